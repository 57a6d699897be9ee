"""Traces of one-pass SGD on the quadratic target beside what theory says of the same weights, σ = u².

`TraceDraw` is the risk along training, simulated and predicted (`limits.finite_step`, `limits.flow`); `StairsDraw` the
share of each eigendirection that a trained network has learned on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope import weights
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Measurement, Row
from lazyscope.limits.sgd.finite_step import finite_step
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, Trained
from lazyscope.runs.side_by_side import as_normal
from lazyscope.training.sgd import population
from lazyscope.training.sgd.loop import measured
from lazyscope.training.sgd.square import SquareNetworks
from lazyscope.training.sgd.stream import law_of

if TYPE_CHECKING:
    import xarray as xr

_POINTS, _EARLIEST = 80, 0.005  # of a staircase, log-spaced from this share of the steps on


@dataclass(frozen=True, eq=False)
class TraceDraw(Measurement):
    """One draw of weights and data: the risk of SGD against samples, its prediction, and the flow of ε → 0.

    >>> protocol = SGD(steps=100, batch=20, step_sizes=(0.01,), decay=(), test=1)
    >>> row = TraceDraw(QuadraticTarget([2.0, 1.0, 0.5]), NeuralTangent(), 2, protocol).compute()
    >>> sorted(row), bool(abs(row["simulated"][-1] - row["predicted"][-1]) < 0.1)
    (['flow', 'predicted', 'samples', 'simulated'], True)
    """

    problem: QuadraticTarget
    regime: Trained | NeuralTangent
    width: int
    protocol: SGD
    number: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        (size,) = self.protocol.step_sizes
        return f"{self.regime.label}, N = {self.width}, ε = {size:g}, draw {self.number + 1}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.width * self.problem.d * self.protocol.steps

    def compute(self) -> Row:
        """Train, and predict for the same weights."""
        protocol = self.protocol
        if len(protocol.step_sizes) != 1:
            raise InvalidParameter.of("TraceDraw", "protocol", "have one step size", protocol.step_sizes)
        sizes = {"width": (self.width,)}
        run = Run(
            "simulate", self.problem, self.regime, sizes, None, protocol, number=self.number, seed=self.seed
        ).compute()
        line = finite_step(
            self.problem,
            self.regime,
            width=self.width,
            step_size=protocol.step_sizes[0],
            batch=protocol.batch,
            samples=run["samples"].astype(int),
            decay=protocol.decay,
            second_layer=protocol.second_layer,
            seed=self.seed,
            draw=self.number,
            paths=1,
        )
        return {
            "samples": run["samples"],
            "simulated": run["trace"][0, 0],
            "predicted": line.risk.values,
            "flow": line.flow.values,
        }


def assemble(draws: Sequence[TraceDraw], rows: Sequence[Row]) -> xr.Dataset:
    """Return the mean trace of draws that differ in number alone, beside its prediction.

    Over `point`, with `samples` and `time` = Σε: `simulated` and `stderr`, `predicted` and `flow`, means over the same
    weights; `added` and `added_stderr`, simulated over flow less 1, and `added_predicted`; `finite_size`, the part of
    the noise that the prediction leaves out, some 1/min(N, d) of it (the diffusion has Tr X·I + X where the exact
    covariance has Tr X·I + 2X); z, what of the difference is beyond that, draw by draw, in standard errors as `compare`
    counts them.
    """
    import xarray as xr

    first = draws[0]
    table = {name: np.array([row[name] for row in rows]) for name in ("simulated", "predicted", "flow")}
    difference = table["simulated"] - table["predicted"]
    added = table["simulated"] / table["flow"] - 1.0
    roots = np.sqrt(len(rows))
    means = {name: values.mean(axis=0) for name, values in table.items()}
    finite_size = np.abs(means["predicted"] - means["flow"]) / min(first.width, first.problem.d)
    beyond = np.maximum(np.abs(difference.mean(axis=0)) - finite_size, 0.0)
    values: dict[str, Any] = {
        **means,
        "stderr": table["simulated"].std(axis=0, ddof=1) / roots,
        "added": added.mean(axis=0),
        "added_stderr": added.std(axis=0, ddof=1) / roots,
        "added_predicted": np.mean(table["predicted"] / table["flow"] - 1.0, axis=0),
        "finite_size": finite_size,
        "z": as_normal(beyond, difference.std(axis=0, ddof=1) / roots, len(rows)),
    }
    protocol, samples = first.protocol, rows[0]["samples"]
    clock = np.cumsum([protocol.rate(protocol.step_sizes[0], step) for step in range(protocol.steps)])
    time = clock[(samples / protocol.batch).astype(int) - 1]
    coordinates = {"samples": ("point", samples), "time": ("point", time)}
    return xr.Dataset({name: ("point", one) for name, one in values.items()}, coordinates)


@dataclass(frozen=True, eq=False)
class StairsDraw(Measurement):
    """SGD from the weights of (seed, 0, N), on the stream `number`; second layer 1, the first trained (Theorem 3).

    Weights start at `init` times the usual ones. The share of direction i is ⟨v_i, Gv_i⟩/λ_i(B), largest eigenvalue
    first, as in `flow`.

    >>> protocol = SGD(steps=400, batch=20, step_sizes=(0.01,), decay=(), test=1, second_layer="fixed")
    >>> row = StairsDraw(QuadraticTarget([4.0, 1.0, 0.0]), 2, 2, protocol).compute()
    >>> row["learned"].shape == (row["time"].size, 2), bool(row["learned"][-1, 0] > 0.8)
    (True, True)
    """

    problem: QuadraticTarget
    width: int
    directions: int
    protocol: SGD
    init: float = 1.0
    number: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"staircase, stream {self.number + 1}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.width * self.problem.d * self.protocol.steps

    def compute(self) -> Row:
        """Train; return `time` = Σε, `risk`, and `learned`, points × directions."""
        law, (size,) = law_of(self.problem), self.protocol.step_sizes
        assert law.gamma is not None
        W = self.init * weights.generator(self.seed, 0, self.width).standard_normal((self.width, law.d))
        start = np.asarray(W / np.sqrt(law.d), dtype=np.float32)
        pack = SquareNetworks([start], [self.width], [size], True)
        top = np.argsort(-law.gamma, kind="stable")[: self.directions]
        points = np.geomspace(max(1.0, _EARLIEST * self.protocol.steps), self.protocol.steps, _POINTS)
        steps = np.unique(points.round().astype(int))

        def shares() -> list[float]:
            G = pack.form(0)
            assert law.gamma is not None
            return [population.risk(law, G, float(pack.c[0])), *(np.diagonal(G)[top] / law.gamma[top])]

        table = measured(law, (pack,), self.protocol, weights.generator(self.seed, self.number, 0), steps, shares)
        return {"time": table[:, 0], "risk": table[:, 1], "learned": table[:, 2:]}
