"""Problems: what nature does. A data law, a target, noise; nothing about networks."""

from lazyscope.problems.base import GaussianProblem, Option, Problem, SizedProblem
from lazyscope.problems.harmonic import HarmonicTarget
from lazyscope.problems.labels import LinearLabels
from lazyscope.problems.linear import LinearTarget
from lazyscope.problems.mixture import GaussianMixture
from lazyscope.problems.monomial import RidgeMonomial
from lazyscope.problems.multi_index import MultiIndex
from lazyscope.problems.parity import SparseParity
from lazyscope.problems.quadratic import QuadraticTarget
from lazyscope.problems.spectral import SpectralTarget

__all__ = [
    "GaussianMixture",
    "GaussianProblem",
    "HarmonicTarget",
    "LinearLabels",
    "LinearTarget",
    "MultiIndex",
    "Option",
    "Problem",
    "QuadraticTarget",
    "RidgeMonomial",
    "SizedProblem",
    "SparseParity",
    "SpectralTarget",
]
