"""Random-features ridge regression as N, n, d → ∞."""
