"""Activations: what σ is, its Gaussian constants and its derivatives."""

from lazyscope.activations.activation import Activation as Activation
from lazyscope.activations.activation import activation_names as activation_names
from lazyscope.activations.activation import as_activation as as_activation
