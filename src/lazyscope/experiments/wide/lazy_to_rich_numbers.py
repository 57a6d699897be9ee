"""From lazy to rich: what an output scale α does to a trained network, along training and in the end.

f = α(h(W) − h(W₀)) + c moves its weights by O(1/α): for α → ∞ it is its own linearisation, NT, and ends at the risk of
NT for the same W₀; for α → 0 it forgets W₀ and ends at the floor of Theorem 3 (Chizat, Oyallon and Bach 2019; Montanari
2019, "lazy limit"). In between, σ = u², the end is a closed form (`exact`, Σ_{i>N}λ_i(B + αK₀)²/‖B‖²).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray, positive_numbers, whole_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.work import Measurement, Row
from lazyscope.experiments.exponents import computed
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, Trained
from lazyscope.runs.verbs import exact, limit
from lazyscope.training.sgd import lazy_to_rich as training

if TYPE_CHECKING:
    import xarray as xr

QUANTITIES = training.QUANTITIES


@dataclass(frozen=True, eq=False)
class LazyToRichDraw(Measurement):
    """One training at one α: what it measures on its way, for one draw of the weights and of the data."""

    problem: QuadraticTarget
    width: int
    alpha: float
    init: float = 1.0
    protocol: SGD | None = None
    number: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"α = {self.alpha:g}, draw {self.number + 1}"

    @property
    def plan(self) -> SGD:
        """The protocol, the usual one for this α where none is given."""
        return self.protocol or training.plan(self.problem, self.alpha, init=self.init)

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.width * self.problem.d * self.plan.steps

    def pieces(self) -> list[LazyToRichDraw]:
        """Return itself, the protocol written out."""
        return [replace(self, protocol=self.plan)]

    def compute(self) -> Row:
        """Train."""
        regime = Trained(alpha=self.alpha, init=self.init)
        return {**training.train(self.problem, regime, self.width, self.plan, self.seed, self.number)}


def lazy_to_rich(
    problem: QuadraticTarget,
    *,
    width: int,
    alpha: Any,
    init: float = 1.0,
    draws: int = 1,
    seed: int = 0,
    protocol: SGD | None = None,
) -> xr.Dataset:
    """Return what training with output scale α does, against α and along training, for σ = u².

    Parameters
    ----------
    problem
        A `QuadraticTarget` with B ⪰ 0.
    width
        N.
    alpha
        Output scales, positive: a sequence, which becomes the dimension `alpha`.
    init
        Scale of the initial weights; in the end it counts as init²·α does.
    draws, seed
        Independent repetitions, of the weights and of the data.
    protocol
        `SGD(…)` with one step size, for every α; by default one that suits α.

    Returns
    -------
    xarray.Dataset
        Over (`alpha`, `point`), means over draws: `risk`, `curvature`, `distance`, `movement`, `drift`, `alignment`
        (see their `long_name`) and `time` = Σε. Over `alpha`: `end`, the risk when training ends, `end_stderr`, and
        `exact`, its closed form; `tangent` and `floor`, the risks of NT (same weights) and of Theorem 3.

    Examples
    --------
    >>> import lazyscope as ls
    >>> short = ls.SGD(steps=300, batch=20, step_sizes=(0.005,), decay=())
    >>> found = lazy_to_rich(ls.QuadraticTarget.exponential(12), width=6, alpha=[3.0, 300.0], protocol=short)
    >>> bool(found.movement[0, -1] > 10 * found.movement[1, -1])
    True
    """
    if not isinstance(problem, QuadraticTarget):
        raise NoTheorem.of("This report", "a QuadraticTarget", type(problem).__name__, "Use simulate.")
    N, draws = whole_number(width, "lazy_to_rich", "width"), whole_number(draws, "lazy_to_rich", "draws")
    seed = whole_number(seed, "lazy_to_rich", "seed", least=0)
    scales = np.atleast_1d(positive_numbers(alpha, "lazy_to_rich", "alpha", "Pass scales like [0.1, 1, 10]."))
    if protocol is not None and len(protocol.step_sizes) != 1:
        raise InvalidParameter.of("lazy_to_rich", "protocol", "have one step size", protocol.step_sizes)
    Trained(alpha=float(scales[0]), init=init)
    work = [LazyToRichDraw(problem, N, float(a), init, protocol, k, seed) for a in scales for k in range(draws)]
    return assemble(work, computed(work))


def assemble(work: list[LazyToRichDraw], rows: list[Row]) -> xr.Dataset:
    """Return the report of some draws: every α with the same numbers of draws."""
    import xarray as xr

    scales = sorted({one.alpha for one in work})
    first = work[0]
    by_scale = {a: [row for one, row in zip(work, rows, strict=True) if one.alpha == a] for a in scales}
    draws = len(by_scale[scales[0]])
    points = min(len(row["time"]) for row in rows)

    def mean(name: str) -> FloatArray:
        return np.array([np.mean([row[name][-points:] for row in by_scale[a]], axis=0) for a in scales])

    ends = np.array([[row["risk"][-1] for row in by_scale[a]] for a in scales])
    variables: dict[str, Any] = {name: (("alpha", "point"), mean(name)) for name in ("time", *QUANTITIES)}
    variables["end"] = ("alpha", ends.mean(axis=1))
    if draws > 1:
        variables["end_stderr"] = ("alpha", ends.std(axis=1, ddof=1) / np.sqrt(draws))
    same = {"width": first.width, "draws": draws, "seed": first.seed}
    closed = [float(exact(first.problem, Trained(alpha=a, init=first.init), **same).risk) for a in scales]
    variables["exact"] = ("alpha", np.array(closed))
    variables["tangent"] = float(exact(first.problem, NeuralTangent(), **same).risk)
    variables["floor"] = float(limit(first.problem, Trained(), rho=first.width / first.problem.d).risk)
    result = xr.Dataset(variables, {"alpha": scales})
    for name, words in QUANTITIES.items():
        result[name].attrs["long_name"] = words
    result.attrs = {"problem": str(first.problem), "width": first.width, "draws": draws, "seed": first.seed}
    return result
