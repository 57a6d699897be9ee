"""lazyscope: what a two-layer network learns in each training regime, and what laziness costs.

    problem × regime × fidelity → labelled risk

>>> import lazyscope as ls
>>> target = ls.QuadraticTarget.exponential(450, seed=100)
>>> for regime in (ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained()):
...     print(regime.label, ls.limit(target, regime, rho=0.5).risk.values.round(3))
RF 0.837
NT 0.372
NN 0.032

Names are loaded on first use, so that `import lazyscope` and the command line start at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# The verbs `exact`, `lens` and `simulate` share their names with the packages that implement them. A submodule binds
# its name in the parent when it is first loaded: loading the (empty) packages now, and forgetting the names, leaves
# them to the verbs.
import lazyscope.exact
import lazyscope.lens
import lazyscope.simulate  # noqa: F401

del exact, lens, simulate  # noqa: F821

if TYPE_CHECKING:
    from lazyscope.activations import Activation as Activation
    from lazyscope.activations import activation_names as activation_names
    from lazyscope.errors import InvalidParameter as InvalidParameter
    from lazyscope.errors import LazyscopeError as LazyscopeError
    from lazyscope.errors import NotConverged as NotConverged
    from lazyscope.errors import NoTheorem as NoTheorem
    from lazyscope.errors import TooLarge as TooLarge
    from lazyscope.errors import UnreadableFile as UnreadableFile
    from lazyscope.estimators.feature_map import RandomFeatureMap as RandomFeatureMap
    from lazyscope.estimators.neural_tangent import NeuralTangentClassifier as NeuralTangentClassifier
    from lazyscope.estimators.neural_tangent import NeuralTangentRegressor as NeuralTangentRegressor
    from lazyscope.estimators.random_features import RandomFeaturesClassifier as RandomFeaturesClassifier
    from lazyscope.estimators.random_features import RandomFeaturesRegressor as RandomFeaturesRegressor
    from lazyscope.estimators.taylor import TaylorNetClassifier as TaylorNetClassifier
    from lazyscope.estimators.taylor import TaylorNetRegressor as TaylorNetRegressor
    from lazyscope.estimators.two_layer import TwoLayerClassifier as TwoLayerClassifier
    from lazyscope.estimators.two_layer import TwoLayerRegressor as TwoLayerRegressor
    from lazyscope.lens.verb import lens as lens
    from lazyscope.limits.finite_step import finite_step as finite_step
    from lazyscope.limits.flow import flow as flow
    from lazyscope.limits.flow_saddle import strict_saddle as strict_saddle
    from lazyscope.limits.optimal_ridge import optimal_ridge as optimal_ridge
    from lazyscope.limits.ridge_peak import vanishing_peak as vanishing_peak
    from lazyscope.limits.separability import separability_threshold as separability_threshold
    from lazyscope.problems import GaussianMixture as GaussianMixture
    from lazyscope.problems import LinearLabels as LinearLabels
    from lazyscope.problems import LinearTarget as LinearTarget
    from lazyscope.problems import QuadraticTarget as QuadraticTarget
    from lazyscope.problems import RidgeMonomial as RidgeMonomial
    from lazyscope.problems import SparseParity as SparseParity
    from lazyscope.regimes import Bayes as Bayes
    from lazyscope.regimes import FixedWeights as FixedWeights
    from lazyscope.regimes import GaussianFeatures as GaussianFeatures
    from lazyscope.regimes import IsotropicFeatures as IsotropicFeatures
    from lazyscope.regimes import MeanField as MeanField
    from lazyscope.regimes import NeuralTangent as NeuralTangent
    from lazyscope.regimes import RandomFeatures as RandomFeatures
    from lazyscope.regimes import Taylor as Taylor
    from lazyscope.regimes import Trained as Trained
    from lazyscope.registry import cite as cite
    from lazyscope.registry import claims as claims
    from lazyscope.reports.coupling import coupling as coupling
    from lazyscope.reports.expressivity import expressivity as expressivity
    from lazyscope.reports.generalisation import generalisation as generalisation
    from lazyscope.reports.higher_order import higher_order as higher_order
    from lazyscope.reports.interpolation import interpolation as interpolation
    from lazyscope.reports.landscape import landscape as landscape
    from lazyscope.reports.lazy_to_rich import lazy_to_rich as lazy_to_rich
    from lazyscope.reports.mean_field import mean_field as mean_field
    from lazyscope.reports.sample_complexity import sample_complexity as sample_complexity
    from lazyscope.side_by_side import compare as compare
    from lazyscope.simulate.protocol import SGD as SGD
    from lazyscope.simulate.protocol import ParticleDescent as ParticleDescent
    from lazyscope.simulate.randomized import NoisySGD as NoisySGD
    from lazyscope.verbs import bayes as bayes
    from lazyscope.verbs import exact as exact
    from lazyscope.verbs import limit as limit
    from lazyscope.verbs import simulate as simulate

__version__ = "0.1.0.dev0"

_HOME = {
    "Activation": "activations",
    "NeuralTangentClassifier": "estimators.neural_tangent",
    "NeuralTangentRegressor": "estimators.neural_tangent",
    "RandomFeatureMap": "estimators.feature_map",
    "RandomFeaturesClassifier": "estimators.random_features",
    "RandomFeaturesRegressor": "estimators.random_features",
    "TaylorNetClassifier": "estimators.taylor",
    "TaylorNetRegressor": "estimators.taylor",
    "TwoLayerClassifier": "estimators.two_layer",
    "TwoLayerRegressor": "estimators.two_layer",
    "activation_names": "activations",
    "Bayes": "regimes",
    "FixedWeights": "regimes",
    "GaussianFeatures": "regimes",
    "GaussianMixture": "problems",
    "InvalidParameter": "errors",
    "IsotropicFeatures": "regimes",
    "LazyscopeError": "errors",
    "LinearLabels": "problems",
    "LinearTarget": "problems",
    "MeanField": "regimes",
    "NeuralTangent": "regimes",
    "NoTheorem": "errors",
    "NoisySGD": "simulate.randomized",
    "NotConverged": "errors",
    "ParticleDescent": "simulate.protocol",
    "QuadraticTarget": "problems",
    "RandomFeatures": "regimes",
    "RidgeMonomial": "problems",
    "SGD": "simulate.protocol",
    "SparseParity": "problems",
    "Taylor": "regimes",
    "TooLarge": "errors",
    "Trained": "regimes",
    "UnreadableFile": "errors",
    "bayes": "verbs",
    "cite": "registry",
    "claims": "registry",
    "compare": "side_by_side",
    "coupling": "reports.coupling",
    "exact": "verbs",
    "expressivity": "reports.expressivity",
    "finite_step": "limits.finite_step",
    "flow": "limits.flow",
    "generalisation": "reports.generalisation",
    "higher_order": "reports.higher_order",
    "interpolation": "reports.interpolation",
    "landscape": "reports.landscape",
    "lazy_to_rich": "reports.lazy_to_rich",
    "lens": "lens.verb",
    "limit": "verbs",
    "mean_field": "reports.mean_field",
    "optimal_ridge": "limits.optimal_ridge",
    "sample_complexity": "reports.sample_complexity",
    "separability_threshold": "limits.separability",
    "simulate": "verbs",
    "strict_saddle": "limits.flow_saddle",
    "vanishing_peak": "limits.ridge_peak",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lazyscope' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"lazyscope.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
