"""Benchmarks of what theorems compute, a module for each family of `lazyscope.limits`."""
