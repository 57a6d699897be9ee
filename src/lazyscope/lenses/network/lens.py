"""The network lens: how far a network's training leaves its linearisation, before, along and after.

It is made before training and called along it, or made after training with the parameters of the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.network import laziness, rivals
from lazyscope.lenses.network.admission import DERIVATIVES, in_a_line, require_derivatives, start_values
from lazyscope.lenses.network.differentiable import Differentiable, error, mean_loss, targets
from lazyscope.lenses.network.plan import Plan, plan
from lazyscope.lenses.network.sketch import GROUPS, alignment, change, drift, jackknife, sketched
from lazyscope.lenses.page import write
from lazyscope.progress import within

if TYPE_CHECKING:
    import xarray as xr

_CHUNK_BYTES = 1.28e8  # of one Jacobian; two are in memory
_KERNEL_ROWS = 200
_SKETCHED_ROWS, _DIRECTIONS = 100, 128


@dataclass(frozen=True, eq=False)
class Look:
    """What was seen at one moment."""

    step: float
    loss: float
    error: float
    laziness: float
    taylor: FloatArray
    drift: float
    change: float
    change_stderr: float
    alignment: float
    movement: FloatArray


def _relative(value: float, stderr: float | None = None) -> str:
    """Return a relative change in per cent, from tenfold on as a multiple.

    >>> _relative(0.81), _relative(0.81, 0.02), _relative(135.1)
    ('81%', '81% ± 2', '135 times its size')
    """
    scale = 1.0 if value >= 10.0 else 100.0
    doubt = "" if stderr is None else f" ± {scale * stderr:.0f}"
    return f"{value:.0f}{doubt} times its size" if value >= 10.0 else f"{value:.0%}{doubt}"


@dataclass(eq=False, repr=False)
class NetworkLens:
    """A network under observation.

    Call it to look at the network as it is now. `verdict` is a sentence on the last look, `dataset` all numbers,
    `rivals()` trains the linearised and the quadratic model on the same data, `save` writes the report.
    """

    model: Differentiable
    x: Any
    Y: FloatArray
    loss: Any
    start: FloatArray
    orders: int
    chunk: int
    test: tuple[Any, FloatArray] | None
    directions: int = 0
    looks: list[Look] = field(default_factory=list)
    trained: list[rivals.Rival] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        model: Differentiable,
        x: Any,
        y: Any,
        *,
        initial: Any = None,
        test: Any = None,
        loss: str | None = None,
        orders: int = 3,
        chunk: int | None = None,
        directions: int | None = None,
    ) -> NetworkLens:
        """Check the data, find the loss, and look at the start; at the end too where `initial` is given.

        `directions` random ones make the tangent kernel where its Jacobian is too large, or where they are given.
        """
        x = _inputs(model, x, "x")
        orders = whole_number(orders, "lens", "orders")
        now = model.state()
        start = now if initial is None else model.vector(initial)
        try:
            first = start_values(model, start, x)
        except InvalidParameter:  # a network may insist on the precision of what it makes on the way
            if not model.less_precise():
                raise
            x = _inputs(model, x, "x")
            first = start_values(model, start, x)
        Y, chosen = targets(y, len(x), first.shape[1], loss)
        held = None
        if test is not None:
            if not isinstance(test, (tuple, list)) or len(test) != 2:
                raise InvalidParameter.of("lens", "test", "be a pair (x, y)", f"a {type(test).__name__}")
            inputs = _inputs(model, test[0], "test")
            start_values(model, start, inputs)
            held = (inputs, targets(test[1], len(inputs), first.shape[1], chosen)[0])
        require_derivatives(model, start, x, first.shape[1])
        rows = int(_CHUNK_BYTES / (8.0 * first.shape[1] * len(start)))
        size = max(1, min(len(x), rows)) if chunk is None else whole_number(chunk, "lens", "chunk")
        if chunk is not None:
            model.at_once = size
        sketch = rows < 1 if directions is None else True
        number = _DIRECTIONS if directions is None else whole_number(directions, "lens", "directions", least=2 * GROUPS)
        lens = cls(model, x, Y, chosen, start, orders, size, held, number if sketch else 0)
        lens.plan = plan(model, start, x[: lens.kernel_rows], first.shape[1], orders, size, lens.directions)
        lens.plan.announce()
        with in_a_line(DERIVATIVES):  # of each row by itself, which a network may not allow where those of a sum exist
            lens.start_values, lens.start_kernel = first, lens._kernel(start)
        lens.around = model.surroundings()
        lens.looks.append(lens._look(0.0, start))
        if initial is not None:
            lens(1.0)
        return lens

    start_values: FloatArray = field(init=False)
    start_kernel: FloatArray = field(init=False)
    around: FloatArray = field(init=False)
    plan: Plan = field(init=False)

    @property
    def kernel_rows(self) -> int:
        """How many rows the tangent kernel is of."""
        return min(len(self.x), _SKETCHED_ROWS if self.directions else _KERNEL_ROWS)

    def _kernel(self, theta: FloatArray) -> FloatArray:
        with within():
            x = self.x[: self.kernel_rows]
            if self.directions:
                return sketched(self.model, theta, x, self.directions)
            return self.model.kernel(theta, x, self.chunk)[None]

    def _look(self, step: float, theta: FloatArray) -> Look:
        values = self.model.values(theta, self.x)
        pieces = self.model.pieces(self.start, theta - self.start, self.x, self.orders)
        models = np.cumsum(pieces, axis=0)[1:]
        missed = np.array([laziness.relative_error(values, model, self.start_values) for model in models])
        K = self.start_kernel if theta is self.start else self._kernel(theta)
        moved = change(K, self.start_kernel)
        return Look(
            step=step,
            loss=mean_loss(values, self.Y, self.loss),
            error=error(values, self.Y, self.loss),
            laziness=laziness.laziness(float(missed[0]), moved),
            taylor=missed,
            drift=drift(K, self.start_kernel),
            change=moved,
            change_stderr=jackknife(change, K, self.start_kernel),
            alignment=alignment(K, self.Y[: self.kernel_rows]),
            movement=laziness.movement(theta, self.start, self.model.layers),
        )

    def __call__(self, step: float | None = None, model: Any = None) -> Look:
        """Look at the network as it is now; `model` are its parameters where they are not its own (JAX)."""
        theta = self.model.state() if model is None else self.model.vector(model)
        self._follow_surroundings()
        number = real_number(step, "lens", "step") if step is not None else self.looks[-1].step + 1.0
        self.looks.append(self._look(number, theta.copy()))
        self._theta = theta.copy()
        return self.looks[-1]

    def _follow_surroundings(self) -> None:
        """Look at the start again where running statistics have changed: both ends must be seen with the same ones."""
        around = self.model.surroundings()
        if not np.array_equal(around, self.around):
            self.around, self.start_values = around, self.model.values(self.start, self.x)
            self.start_kernel = self._kernel(self.start)

    def callback(self, base: type) -> Any:
        """Return an object of a class derived from Lightning's or Keras' `Callback`, which looks after every epoch."""
        look = self

        class LensCallback(base):  # type: ignore[misc]  # whichever class the user's library has
            """Looks at the network at the end of every epoch."""

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # Keras
                look(epoch + 1)

            def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:  # Lightning
                look(getattr(trainer, "current_epoch", len(look.looks) - 1) + 1)

        return LensCallback()

    def rivals(self, steps: int = 200, orders: tuple[int, ...] = (1, 2)) -> list[rivals.Rival]:
        """Train Taylor models on the same data until they fit as well as the network did at the last look.

        Without test data their errors are those on the training data.
        """
        goal, test = self.looks[-1].loss, self.test or (self.x, self.Y)
        steps = whole_number(steps, "lens", "steps")
        orders = tuple(whole_number(order, "lens", "orders") for order in orders)
        self.trained = [
            rivals.train(self.model, self.start, self.x, self.Y, test, order, self.loss, goal, steps)
            for order in orders
        ]
        return self.trained

    @property
    def test_error(self) -> float | None:
        """The network's own error on the test data, at the last look."""
        if self.test is None or len(self.looks) < 2:
            return None
        return error(self.model.values(self._theta, self.test[0]), self.test[1], self.loss)

    @property
    def verdict(self) -> str:
        """The last look in a sentence."""
        last = self.looks[-1]
        if np.isnan(last.laziness):
            return "The network has not moved yet: there is nothing to compare its linearisation with."
        kind = "lazy" if last.laziness > 0.8 else "not lazy" if last.laziness < 0.3 else "partly lazy"
        doubt = last.change_stderr if self.directions else None
        moved = np.nanmax(last.movement) if np.any(np.isfinite(last.movement)) else np.nan
        return (
            f"Training was {kind}: laziness {last.laziness:.2f}. The linearisation misses {last.taylor[0]:.0%} of the "
            f"change of the function, the tangent kernel changed by {_relative(last.change, doubt)}, weights by up to "
            f"{_relative(moved)}."
        )

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:  # what a notebook shows: no arrays
        return f"<NetworkLens: {self}>"

    @property
    def dataset(self) -> xr.Dataset:
        """All looks, labelled: dimensions step, order and layer; rivals by their order."""
        from lazyscope.lenses.network.numbers import dataset

        return dataset(self)

    def html(self) -> str:
        """Return the report, one self-contained HTML page."""
        from lazyscope.lenses.network.report import network_page

        return network_page(self)

    def save(self, path: str | Path) -> Path:
        """Write the report."""
        return write(path, self.html)


def _inputs(model: Differentiable, x: Any, name: str) -> Any:
    """Return inputs as the library's own array; a pandas frame as its values."""
    if isinstance(x, list):
        x = np.asarray(x)
    try:
        return model.array(np.array(x) if hasattr(x, "iloc") else x)
    except (TypeError, ValueError) as problem:
        got = f"{type(problem).__name__}: {' '.join(str(problem).split())[:120]}"
        raise InvalidParameter.of("lens", name, "be an array of numbers, rows first", got) from None
