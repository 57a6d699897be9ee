"""Functions of a few directions: their moments with neurons, and one giant step of training."""
