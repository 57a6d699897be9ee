"""Both layers by mini-batches: a network drawn, trained on targets (n, k), and evaluated."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter
from lazyscope.estimators.base import Array, FirstLayer, NeuronsOnRows, blocks, generator, product
from lazyscope.estimators.networks.network import Kind, TwoLayerNetwork
from lazyscope.estimators.networks.training import Plan, Samples, Trainer

_AUTO_BATCH = 200
_CHEAP = 3e7  # flops of an epoch below which float64 costs nothing that anybody would notice


class BothLayers(NeuronsOnRows):
    """What regression and classification share: train on targets (n, k), and evaluate f, (n, k)."""

    _kind: Kind

    def __init__(
        self,
        width: int = 200,
        activation: Any = "relu",
        *,
        solver: str = "adam",
        learning_rate: float = 3e-3,
        schedule: str = "constant",
        batch_size: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        n_iter_no_change: int = 10,
        weight_decay: float = 1e-4,
        momentum: float = 0.9,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        scale: Any = "auto",
        bias: float = 0.3,
        precision: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.activation = activation
        self.solver = solver
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scale = scale
        self.bias = bias
        self.precision = precision
        self.random_state = random_state

    def _start(self, X: Any, k: int, v: FloatArray | None) -> Trainer:
        """Draw the network: the first layer as everywhere, the second a_i ~ N(0, 1/N)."""
        owner, plan, layer = type(self).__name__, Plan.of(self), self._drawn(X, v)
        N, d = layer.W.shape
        if not layer.sigma.has_derivative:
            must = "have a derivative: training follows it"
            raise InvalidParameter.of(owner, "activation", must, layer.sigma.name, 'Use "tanh" or "erf".')
        rng = generator(self.random_state, N, d, 1)
        A = rng.standard_normal((N, k)) / sqrt(N)
        n = int(X.shape[0] if v is None else np.count_nonzero(v))
        batch = min(n, _AUTO_BATCH if plan.batch_size is None else plan.batch_size)
        dtype = self._dtype(X.dtype, n, N, d)
        fits_in_memory(dtype.itemsize * (n * (d + 1.0) + 4.0 * N * (d + k)), "Training", "Use a smaller width.")
        W = np.column_stack([layer.W, layer.b]).astype(dtype)
        network = TwoLayerNetwork(W, A.astype(dtype), layer.sigma, self._kind, batch)
        return Trainer(network, plan, rng, batch, owner)

    def _dtype(self, given: Any, n: int, N: int, d: int) -> np.dtype[Any]:
        if self.precision not in ("auto", "float32", "float64"):
            must = 'be "auto", "float32" or "float64"'
            raise InvalidParameter.of(type(self).__name__, "precision", must, repr(self.precision))
        if self.precision != "auto":
            return np.dtype(self.precision)
        return np.dtype(given if 6.0 * n * N * d <= _CHEAP else np.float32)

    def _train(self, X: Any, Y: Array, v: FloatArray | None, labels: Any = None) -> None:
        trainer = self._start(X, Y.shape[1], v)
        held = None
        if trainer.plan.validation_fraction is not None:
            X, Y, v, held = self._split(X, Y, v, labels, trainer)
        trainer.run(Samples.of(X, Y, v, trainer.network.theta.dtype), held)
        self._keep(trainer)

    def _split(self, X: Any, Y: Array, v: FloatArray | None, labels: Any, trainer: Trainer) -> Any:
        """Hold a share of the samples out, the same share of every class where that can be."""
        n, fraction = X.shape[0], trainer.plan.validation_fraction
        scarce = labels is not None and min(np.unique(labels, return_counts=True)[1]) < 2
        seed = int(trainer.rng.integers(2**31))
        try:
            rows, out = train_test_split(
                np.arange(n), test_size=fraction, random_state=seed, stratify=None if scarce else labels
            )
        except ValueError as error:
            must = "leave samples on both sides"
            raise InvalidParameter.of(
                type(self).__name__, "validation_fraction", must, f"{fraction:g}: {error}"
            ) from None
        weights = (None, None) if v is None else (v[rows], v[out])
        if v is not None and not (np.any(weights[0]) and np.any(weights[1])):
            weights = (v[rows], None)
        return X[rows], Y[rows], weights[0], Samples.of(X[out], Y[out], weights[1], trainer.network.theta.dtype)

    def _keep(self, trainer: Trainer) -> None:
        network = trainer.network
        N = len(network.W)
        W = network.W.astype(np.float64)
        self.layer_ = FirstLayer(np.ascontiguousarray(W[:, :-1]), W[:, -1].copy(), network.sigma)
        self._A, self._c = sqrt(N) * network.A.astype(np.float64), network.c.astype(np.float64)  # features carry 1/√N
        self.n_iter_, self.loss_curve_ = len(trainer.losses), [self._unit() * loss for loss in trainer.losses]
        self.loss_ = self.loss_curve_[-1]
        if trainer.validated:
            self.validation_curve_ = [self._unit() * loss for loss in trainer.validated]

    def _unit(self) -> float:
        return 1.0

    def _continue(self, X: Any, Y: Array, v: FloatArray | None) -> None:
        """Train for one more epoch."""
        if not hasattr(self, "_trainer"):
            self._trainer = self._start(X, Y.shape[1], v)
        trainer = self._trainer
        trainer.plan = Plan.of(self)
        trainer.epoch(Samples.of(X, Y, v, trainer.network.theta.dtype))
        self._keep(trainer)

    def _values(self, X: Any) -> FloatArray:
        X = self._inputs(X)
        A = self._A.astype(X.dtype, copy=False)
        parts = [product(self.layer_.features(X[part]), A.T) for part in blocks(X.shape[0], len(A))]
        return np.asarray(np.concatenate(parts) + self._c)
