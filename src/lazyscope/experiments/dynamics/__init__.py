"""Risk along training on the quadratic target."""
