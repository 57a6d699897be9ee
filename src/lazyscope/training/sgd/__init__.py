"""Networks trained by one-pass SGD."""
