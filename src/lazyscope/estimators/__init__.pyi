"""The estimators and where they live: `lazy_loader` loads a name on first use."""

from .feature_map import RandomFeatureMap as RandomFeatureMap
from .neural_tangent import NeuralTangentClassifier as NeuralTangentClassifier
from .neural_tangent import NeuralTangentRegressor as NeuralTangentRegressor
from .random_features import RandomFeaturesClassifier as RandomFeaturesClassifier
from .random_features import RandomFeaturesRegressor as RandomFeaturesRegressor
from .taylor import TaylorNetClassifier as TaylorNetClassifier
from .taylor import TaylorNetRegressor as TaylorNetRegressor
from .two_layer import TwoLayerClassifier as TwoLayerClassifier
from .two_layer import TwoLayerRegressor as TwoLayerRegressor
