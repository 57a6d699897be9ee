"""Both layers by mini-batches: a network drawn, trained on targets (n, k), and evaluated."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import train_test_split

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter
from lazyscope.estimators.base import Array, FirstLayer, NeuronsOnRows, blocks, generator, product
from lazyscope.estimators.networks.network import Kind, TwoLayerNetwork
from lazyscope.estimators.networks.training import Plan, Samples, Trainer

_AUTO_BATCH, _LEAST_BATCH, _AUTO_STEPS = 200, 32, 10  # samples in a batch, and steps an epoch where they are few
_DECAYS = (1e-4, 1e-2, 1e-1)  # candidates of weight_decay="auto"
_HELD, _LEAST = 0.2, 40  # share of the samples on which it is chosen, and how many there must be
_PATIENT_STEPS, _WORTH = 100, 1e-2  # without the held-out loss falling by such a share, before a candidate ends
_CHEAP = 3e7  # flops of an epoch below which float64 costs nothing that anybody would notice


@dataclass(eq=False, repr=False)
class BothLayers(NeuronsOnRows):
    """What regression and classification share: train on targets (n, k), and evaluate f, (n, k)."""

    _kind: ClassVar[Kind]

    width: int = 200
    activation: Any = "relu"
    _: KW_ONLY
    solver: str = "adam"
    learning_rate: float = 3e-3
    schedule: str = "constant"
    batch_size: Any = "auto"
    max_iter: int = 200
    tol: float = 1e-4
    n_iter_no_change: int = 10
    weight_decay: Any = "auto"
    momentum: float = 0.9
    early_stopping: bool = False
    validation_fraction: float = 0.1
    scale: Any = "auto"
    bias: float = 0.3
    precision: str = "auto"
    random_state: Any = None

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
        auto = min(_AUTO_BATCH, max(_LEAST_BATCH, n // _AUTO_STEPS))
        batch = min(n, auto if plan.batch_size is None else plan.batch_size)
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
        if self._chooses(trainer.plan, X, v):
            self._train_chosen(trainer, X, Y, v, labels)
            return
        held = None
        if trainer.plan.validation_fraction is not None:
            X, Y, v, held = self._split(X, Y, v, labels, trainer)
        trainer.run(Samples.of(X, Y, v, trainer.network.theta.dtype), held)
        self._keep(trainer)

    def _chooses(self, plan: Plan, X: Any, v: FloatArray | None) -> bool:
        """Whether weight decay and epochs are to be chosen on held-out samples: left to us, and enough samples."""
        auto = isinstance(self.weight_decay, str) and plan.schedule == "constant" and plan.validation_fraction is None
        return bool(auto and (X.shape[0] if v is None else np.count_nonzero(v)) >= _LEAST)

    def _train_chosen(self, trainer: Trainer, X: Any, Y: Array, v: FloatArray | None, labels: Any) -> None:
        """Train from one start with each weight decay on four fifths; then on all, with the best and as many epochs."""
        dtype, k = trainer.network.theta.dtype, Y.shape[1]
        chosen, start = replace(trainer.plan, validation_fraction=_HELD), trainer.network.theta.copy()
        trainer.plan = chosen
        X_in, Y_in, v_in, held = self._split(X, Y, v, labels, trainer)
        samples = Samples.of(X_in, Y_in, v_in, dtype)
        patience = max(chosen.n_iter_no_change, -(-_PATIENT_STEPS // -(-len(samples) // trainer.batch)))
        network, seed = trainer.network, int(trainer.rng.integers(2**63))

        def attempt(decay: float, epochs: int, patience: int) -> Trainer:
            fresh = TwoLayerNetwork(*_unpacked(start, network.W.shape, k), network.sigma, network.kind, len(network.H))
            plan = replace(chosen, weight_decay=decay, max_iter=epochs, n_iter_no_change=patience, tol=_WORTH)
            return Trainer(fresh, plan, np.random.default_rng(seed), trainer.batch, trainer.owner)

        tried = [attempt(decay, chosen.max_iter, patience) for decay in _DECAYS]
        for candidate in tried:
            candidate.run(samples, held, warn=False)
        best = min(tried, key=lambda candidate: min(candidate.validated))
        epochs = int(np.argmin(best.validated)) + 1
        final = attempt(best.plan.weight_decay, epochs, epochs + 1)
        final.run(Samples.of(X, Y, v, dtype), None, warn=epochs == chosen.max_iter)
        final.validated = best.validated
        self._keep(final)

    def _split(self, X: Any, Y: Array, v: FloatArray | None, labels: Any, trainer: Trainer) -> Any:
        """Hold a share of the samples out, the same share of every class where that can be."""
        n, fraction = X.shape[0], trainer.plan.validation_fraction
        scarce = labels is not None and not shares_can_be_equal(labels, int(np.ceil(fraction * n)))
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
        self.loss_, self.weight_decay_ = self.loss_curve_[-1], trainer.plan.weight_decay
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


def shares_can_be_equal(labels: Any, held: int) -> bool:
    """Whether every class can be among so many samples held out and among the others: that splits can be stratified.

    >>> shares_can_be_equal([0, 0, 1, 1, 2, 2], 3), shares_can_be_equal([0, 0, 1, 1, 2, 2], 2)
    (True, False)
    """
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(counts) <= min(held, len(labels) - held))


def _unpacked(theta: Array, shape: tuple[int, ...], k: int) -> tuple[Array, Array]:
    """Return W̃ and A from a copy of the vector of parameters; c is zero at the start."""
    N, D = shape
    return theta[: N * D].reshape(N, D).copy(), theta[N * D : N * (D + k)].reshape(N, k).copy()
