"""Ridge regression with random features: double descent."""
