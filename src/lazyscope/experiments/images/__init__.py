"""Networks trained on real images: what they fit, and what they learn."""
