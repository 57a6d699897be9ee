"""Runs: from a problem, a regime and a fidelity to a labelled result."""
