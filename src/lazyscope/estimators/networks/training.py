"""Training by mini-batches: shuffled epochs, a schedule of the step size, early stopping, and when to stop."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import cos, pi
from typing import Any

import numpy as np
from scipy import sparse

from lazyscope.checks import real_number, whole_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.estimators.base import Array
from lazyscope.estimators.networks.network import TwoLayerNetwork
from lazyscope.numerics.blas import threads_for
from lazyscope.progress import report

_SCHEDULES = ("constant", "linear", "cosine")
_SOLVERS = ("adam", "sgd")
_DECAY = 1e-4


@dataclass(frozen=True)
class Plan:
    """How a network is trained; the parameters of the estimators, checked."""

    solver: str
    learning_rate: float
    schedule: str
    batch_size: int | None
    max_iter: int
    tol: float
    n_iter_no_change: int
    weight_decay: float
    momentum: float
    validation_fraction: float | None

    @classmethod
    def of(cls, estimator: Any) -> Plan:
        """Read and check the parameters of an estimator."""
        owner = type(estimator).__name__
        for name, allowed in (("solver", _SOLVERS), ("schedule", _SCHEDULES)):
            if getattr(estimator, name) not in allowed:
                raise InvalidParameter.of(
                    owner, name, f"be one of {', '.join(allowed)}", repr(getattr(estimator, name))
                )
        auto = isinstance(estimator.batch_size, str) and estimator.batch_size == "auto"
        return cls(
            solver=estimator.solver,
            learning_rate=_number(estimator, "learning_rate", above=0.0),
            schedule=estimator.schedule,
            batch_size=None if auto else whole_number(estimator.batch_size, owner, "batch_size"),
            max_iter=whole_number(estimator.max_iter, owner, "max_iter"),
            tol=_number(estimator, "tol"),
            n_iter_no_change=whole_number(estimator.n_iter_no_change, owner, "n_iter_no_change"),
            weight_decay=_decay(estimator),
            momentum=_number(estimator, "momentum", below=1.0),
            validation_fraction=(
                _number(estimator, "validation_fraction", above=0.0, below=1.0) if estimator.early_stopping else None
            ),
        )

    def rate(self, done: float) -> float:
        """Return the step size when a share `done` of all epochs is over."""
        if self.schedule == "linear":
            return self.learning_rate * (1.0 - done)
        if self.schedule == "cosine":
            return self.learning_rate * 0.5 * (1.0 + cos(pi * done))
        return self.learning_rate


def _decay(estimator: Any) -> float:
    """Return the weight decay; "auto" is the default until a better one has been chosen."""
    if isinstance(estimator.weight_decay, str):
        if estimator.weight_decay != "auto":
            must = 'be "auto" or a number, zero or positive'
            raise InvalidParameter.of(type(estimator).__name__, "weight_decay", must, repr(estimator.weight_decay))
        return _DECAY
    return _number(estimator, "weight_decay")


def _number(estimator: Any, name: str, above: float | None = None, below: float = np.inf) -> float:
    owner, least = type(estimator).__name__, "be positive" if above is not None else "be zero or positive"
    must = least + (f" and below {below:g}" if np.isfinite(below) else "")
    value = real_number(getattr(estimator, name), owner, name, must)
    if not (value > above if above is not None else value >= 0.0) or not value < below:
        raise InvalidParameter.of(owner, name, must, f"{value:g}")
    return value


@dataclass(eq=False)
class Samples:
    """Inputs with a column of ones for the offsets, targets (n, k), and weights whose mean is one."""

    X: Any
    Y: Array
    v: Array

    @classmethod
    def of(cls, X: Any, Y: Array, v: Array | None, dtype: Any) -> Samples:
        """Copy into the precision of training; samples without weight are left out."""
        if v is None:
            v = np.ones(X.shape[0])
        elif not np.all(v):
            X, Y, v = X[v > 0], Y[v > 0], v[v > 0]
        if not sparse.issparse(X):
            wide = np.empty((X.shape[0], X.shape[1] + 1), dtype=dtype)
            wide[:, :-1], wide[:, -1] = X, 1.0
            X = wide
        return cls(X, np.ascontiguousarray(Y, dtype=dtype), (v / v.mean()).astype(dtype))

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def batches(self, order: Any, size: int) -> Iterator[tuple[Array, Array, Array]]:
        """Yield batches in a given order; the memory of one is used for the next."""
        n, D = len(order), self.X.shape[1] + int(sparse.issparse(self.X))
        count = -(-n // size)
        buffer = np.ones((-(-n // count), D), dtype=self.Y.dtype)
        for k in range(count):
            rows = order[k * n // count : (k + 1) * n // count]
            X = buffer[: len(rows)]
            if sparse.issparse(self.X):
                X[:, :-1] = self.X[rows].toarray()
            else:
                np.take(self.X, rows, axis=0, out=X, mode="clip")
            yield X, self.Y[rows], self.v[rows]


@dataclass(eq=False)
class Trainer:
    """A network on its way: what `fit` runs to the end and `partial_fit` continues."""

    network: TwoLayerNetwork
    plan: Plan
    rng: np.random.Generator
    batch: int
    owner: str
    losses: list[float] = field(default_factory=list)
    validated: list[float] = field(default_factory=list)

    def epoch(self, samples: Samples) -> float:
        """Pass once over the samples, and return the mean loss that the batches had on the way."""
        total, plan, network = 0.0, self.plan, self.network
        order = self.rng.permutation(len(samples))
        count = -(-len(samples) // self.batch)
        for k, (X, Y, v) in enumerate(samples.batches(order, self.batch)):
            F = network.outputs(X)
            total += float(v @ network.losses(F, Y))
            network.backward(X, F, Y, v / v.dtype.type(len(v)))
            rate = plan.rate((len(self.losses) + k / count) / plan.max_iter)
            if plan.solver == "adam":
                network.adam(rate, plan.weight_decay)
            else:
                network.momentum(rate, plan.weight_decay, plan.momentum)
        self.losses.append(total / len(samples))
        if not np.isfinite(self.losses[-1]):
            raise NotConverged(
                f"Training of {self.owner} diverged in epoch {len(self.losses)}. Pass a smaller learning_rate than "
                f"{plan.learning_rate:g}, or scale the columns of X (StandardScaler)."
            )
        return self.losses[-1]

    def validate(self, samples: Samples) -> float:
        """Return the mean loss on samples that are not trained on."""
        total = 0.0
        for X, Y, v in samples.batches(np.arange(len(samples)), self.batch):
            total += float(v @ self.network.losses(self.network.outputs(X), Y))
        self.validated.append(total / len(samples))
        return self.validated[-1]

    def run(self, samples: Samples, held: Samples | None, warn: bool = True) -> None:
        """Train until the loss, or that of the held-out samples, has not fallen by `tol` for a number of epochs."""
        plan, network = self.plan, self.network
        best, since, kept = np.inf, 0, network.theta.copy()
        N, D = network.W.shape
        with threads_for(self.batch * N * D), np.errstate(over="ignore", invalid="ignore"):
            for epoch in range(plan.max_iter):
                loss = self.epoch(samples)
                report(epoch + 1, plan.max_iter, f"{self.owner}: epoch {epoch + 1}, loss {loss:.4g}")
                if held is not None:
                    loss = self.validate(held)
                since = 0 if loss < best - plan.tol * min(abs(best), 1.0) else since + 1
                if held is not None and loss < best:
                    kept[:] = network.theta
                best = min(best, loss)
                if since >= plan.n_iter_no_change and (held is not None or plan.schedule == "constant"):
                    break
            else:
                if warn:
                    self._warn()
        if held is not None:
            network.theta[:] = kept

    def _warn(self) -> None:
        """Warn where training with a constant step size did not end before its last epoch."""
        if self.plan.schedule != "constant":
            return
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{self.owner} stopped after max_iter = {self.plan.max_iter} epochs while the loss was still falling. "
            'Increase max_iter or learning_rate, or pass schedule="cosine", which ends by itself.',
            ConvergenceWarning,
            stacklevel=4,
        )
