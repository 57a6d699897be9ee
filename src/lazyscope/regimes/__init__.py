"""Regimes: how the network is trained. Activation, law of the first-layer weights; nothing about data."""

from lazyscope.regimes.base import FixedWeights, Network, Regime, Weights
from lazyscope.regimes.lazy import JointTangent, NeuralTangent, RandomFeatures
from lazyscope.regimes.trained import GiantStep, MeanField, Taylor, Trained
from lazyscope.regimes.without_network import Bayes, GaussianFeatures, IsotropicFeatures

__all__ = [
    "Bayes",
    "FixedWeights",
    "GaussianFeatures",
    "GiantStep",
    "IsotropicFeatures",
    "JointTangent",
    "MeanField",
    "Network",
    "NeuralTangent",
    "RandomFeatures",
    "Regime",
    "Taylor",
    "Trained",
    "Weights",
]
