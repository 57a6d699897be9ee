"""Random features as a transformer: x ↦ σ(Wx + b)/√N, to put before any linear model."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from lazyscope.estimators.base import Array, NeuronsOnRows


@dataclass(eq=False, repr=False)
class RandomFeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeuronsOnRows):
    """Features σ(⟨w_i, x⟩ + b_i)/√N of random neurons, i = 1 … N.

    Inner products of two feature vectors tend to the kernel E σ(⟨w, x⟩ + b)σ(⟨w, x′⟩ + b) as N grows.

    Parameters
    ----------
    width : int
        N, the number of neurons.
    activation : str, callable or Activation
        σ; names as in `lazyscope.activation_names`.
    scale : "auto" or float
        Standard deviation of a weight; "auto" is 1/√E‖x‖² on the data of `fit`. Columns of unlike size should be
        scaled first (`StandardScaler`).
    bias : float
        Standard deviation of an offset b_i; 0 leaves offsets out.
    directions : "random" or "rows"
        Where neurons look: anywhere alike, or from the mean to samples of `fit` drawn at random, so that more of them
        look where there are more samples; ⟨w, x⟩ has the same size in both.
    random_state : int, RandomState or None
        Fixes the weights.

    Attributes
    ----------
    layer_ : FirstLayer
        W (N, d), b (N,) and σ.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(RandomFeatureMap(300, random_state=0), Ridge(1e-3)).fit(X, y)
    >>> model[0].transform(X).shape, model.score(X, y) > 0.5
    ((442, 300), True)
    """

    width: int = 200
    activation: Any = "relu"
    _: KW_ONLY
    scale: Any = "auto"
    bias: float = 0.3
    directions: str = "random"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> RandomFeatureMap:
        """Draw the weights for inputs of this size; `y` is ignored."""
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.layer_ = self._drawn(X)
        self._n_features_out = self.layer_.width
        return self

    def transform(self, X: Any) -> Array:
        """Return the features, (n, N), in the precision of X; 2ndN flops."""
        return self.layer_.features(self._inputs(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
