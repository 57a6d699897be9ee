"""Lets tests import what makes the pages, as Sphinx does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
