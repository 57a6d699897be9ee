"""`limit`: N, n, d → ∞. One theorem family per file; nothing here draws a random number."""
