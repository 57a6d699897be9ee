"""Gradient flow on the population risk, σ = u², quadratic target."""
