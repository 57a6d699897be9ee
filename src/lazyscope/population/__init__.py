"""`exact`: N and d finite, n = ∞. Closed-form Gaussian integrals and linear algebra for drawn weights."""
