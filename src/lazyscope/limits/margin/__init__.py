"""Max-margin classification as N, n, d → ∞."""
