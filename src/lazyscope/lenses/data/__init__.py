"""The data lens: what the four regimes make of a table."""
