"""Lenses: what the four regimes make of your table of data, and how lazily your own network was trained."""
