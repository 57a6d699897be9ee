"""One-pass SGD at a finite step size, predicted."""
