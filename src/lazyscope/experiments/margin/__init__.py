"""Max-margin classification with random features."""
