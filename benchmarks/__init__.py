"""What lazyscope costs, as ratios to a peer measured in the same run. `python -m benchmarks` runs them all."""
