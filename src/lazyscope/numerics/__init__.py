"""Numerics: matrices, quadrature, Krylov methods, ridge paths, BLAS. Nothing in here knows a network."""
