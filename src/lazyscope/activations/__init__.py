"""Activations: what σ is, its Gaussian constants and its derivatives."""

from lazyscope.activations.activation import Activation, activation_names, as_activation

__all__ = ["Activation", "activation_names", "as_activation"]
