"""One-pass SGD of N neurons as d → ∞: differential equations for the overlaps of weights (Saad and Solla 1995)."""
