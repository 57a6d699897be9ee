"""Activations: what σ is, its Gaussian constants and its derivatives."""

from lazyscope.activations.activation import Activation, activation_names, as_activation
from lazyscope.activations.named import Definition

__all__ = ["Activation", "Definition", "activation_names", "as_activation"]
