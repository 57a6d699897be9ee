"""Two-layer networks trained by mini-batches."""
