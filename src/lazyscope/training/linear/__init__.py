"""Linear models on random features, fitted to drawn data."""
