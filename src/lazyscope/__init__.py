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

from importlib import import_module
from typing import Any

import lazy_loader

__version__ = "0.1.0"

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    """Load a public name, or an estimator: those are listed in `lazyscope.estimators`, and found here too.

    >>> import lazyscope as ls
    >>> ls.RandomFeaturesRegressor is ls.estimators.RandomFeaturesRegressor
    True
    """
    if name.endswith(("Regressor", "Classifier", "FeatureMap")):
        estimators = import_module("lazyscope.estimators")
        if name in estimators.__all__:
            return getattr(estimators, name)
    return _public(name)
