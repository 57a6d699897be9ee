"""The regimes as scikit-learn estimators: the same networks, on your data.

| estimator | what is trained |
|---|---|
| `RandomFeatureMap` | nothing: x ↦ σ(Wx + b)/√N |
| `RandomFeaturesRegressor`, `…Classifier` | the second layer, by ridge regression or maximum margin |
| `NeuralTangentRegressor`, `…Classifier` | the linearisation in the first layer, by ridge regression |
| `TaylorNetRegressor`, `…Classifier` | the Taylor model of order k |
| `TwoLayerRegressor`, `…Classifier` | both layers, by mini-batches |

scikit-learn takes a second to load, so that every name is loaded from its own module on first use.

>>> from lazyscope.estimators import RandomFeaturesClassifier
>>> RandomFeaturesClassifier(width=50)
RandomFeaturesClassifier(width=50)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
