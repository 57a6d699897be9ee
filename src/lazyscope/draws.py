"""One draw is the unit of work: verbs loop over draws, a sweep sends them to workers; both assemble the same result.

A draw depends on its own fields alone, not on other widths, on the order, or on who computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lazyscope import weights
from lazyscope.checks import fits_in_memory
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.evidence import Claim
from lazyscope.problems.base import SizedProblem
from lazyscope.progress import report
from lazyscope.regimes import Regime
from lazyscope.registry import find
from lazyscope.results import dataset
from lazyscope.simulate.protocol import SGD
from lazyscope.simulate.randomized import NoisySGD

if TYPE_CHECKING:
    import xarray as xr

Row = dict[str, NDArray[Any]]
"""What a draw returns: name → array, whose first axis are the widths (`samples`: the points of a trace)."""

_FITTED_SAMPLES = 500_000  # of the paper, §4
_TESTED_SAMPLES = 10_000


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of the weights (and, to simulate, of the data) at some widths.

    `samples` is the number that random features are fitted to, `protocol` how the other regimes are trained: the
    paper's where they are None. Regimes that go over given samples again and again (`NoisySGD`) take both.
    `settled()` writes such defaults out.

    >>> import lazyscope as ls
    >>> Draw("exact", ls.QuadraticTarget([2.0, 1.0]), ls.Trained(), widths=(1,)).compute()["risk"]
    array([0.2])
    """

    fidelity: Literal["exact", "simulate"]
    problem: SizedProblem
    regime: Regime
    widths: tuple[int, ...]
    number: int = 0
    seed: int = 0
    samples: int | None = None
    protocol: SGD | NoisySGD | None = None

    @property
    def claim(self) -> Claim:
        """The claim that serves it."""
        return find(self.fidelity, self.problem, self.regime)

    def settled(self) -> Draw:
        """Return the same draw with every default written out; refuse settings that contradict one another."""
        if self.fidelity == "exact":
            return self
        if "training" in self.claim.arguments:
            return self._with_training()
        if "protocol" not in self.claim.arguments:
            if self.protocol is not None:
                must = "be left out: random features are fitted, not trained"
                raise InvalidParameter.of("simulate", "protocol", must, self.protocol)
            return replace(self, samples=self.samples or _FITTED_SAMPLES)
        protocol = self.protocol or SGD.paper(self.problem, self.regime)
        if not isinstance(protocol, SGD):
            raise InvalidParameter.of("simulate", "protocol", "be an SGD(…)", type(protocol).__name__)
        if self.samples is not None:
            if self.samples < protocol.batch:
                must = f"fill at least one batch of {protocol.batch}"
                raise InvalidParameter.of("simulate", "samples", must, self.samples)
            protocol = replace(protocol, steps=self.samples // protocol.batch)
        return replace(self, protocol=protocol, samples=None)

    def _with_training(self) -> Draw:
        """Check what a regime needs that is trained on given samples."""
        if self.samples is None:
            must = "be the number of samples: training goes over them again and again"
            raise InvalidParameter.of("simulate", "samples", must, "none", "Pass n, for example samples=1000.")
        size = 8.0 * self.samples * self.problem.d
        fits_in_memory(size, f"A sample of n = {self.samples}", "Use fewer samples.")
        if self.protocol is not None and not isinstance(self.protocol, NoisySGD):
            raise InvalidParameter.of("simulate", "protocol", "be a NoisySGD(…)", type(self.protocol).__name__)
        return self

    def pieces(self) -> list[Draw]:
        """Return the widths of the settled draw, each by itself: the finer the work, the less a crash can lose."""
        whole = self.settled()
        return [replace(whole, widths=(N,)) for N in whole.widths]

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"{self.fidelity} {self.regime.label}, N = {', '.join(map(str, self.widths))}"

    @property
    def size(self) -> int:
        """What tells long work from short."""
        return max(self.widths)

    def compute(self) -> Row:
        """Do the work."""
        one = self.settled()
        evaluate, seed, number = one.claim.evaluate, one.seed, one.number
        if one.fidelity == "exact":
            points: list[dict[str, Any]] = []
            for N in one.widths:
                report(len(points), 0, f"N = {N}")
                points.append(evaluate(one.problem, one.regime, N, weights.generator(seed, number, N)))
            return {name: np.array([point[name] for point in points]) for name in points[0]}
        how: tuple[Any, ...] = (one.samples, _TESTED_SAMPLES, seed, number)
        if "training" in one.claim.arguments:
            how = (*how, one.protocol)
        elif one.protocol is not None:
            how = (one.protocol, seed, number)
        row: Row = evaluate(one.problem, one.regime, one.widths, *how)
        return row


def assemble(draws: Sequence[Draw], rows: Sequence[Row], scalar: bool = False) -> xr.Dataset:
    """Return the result of a verb from its draws, which differ in number and widths alone.

    `scalar` drops the dimension of a single width.
    """
    pieces = sorted(zip(draws, rows, strict=True), key=lambda pair: pair[0].number)
    table = [_joined([row for _, row in group]) for _, group in groupby(pieces, key=lambda pair: pair[0].number)]
    first = pieces[0][0].settled()
    widths = np.array([N for draw, _ in pieces if draw.number == first.number for N in draw.widths])
    sgd = first.protocol if isinstance(first.protocol, SGD) else None
    variables = _trained(table, widths, sgd) if sgd else _measured(table, first.claim)
    if first.claim.finite_size is not None:
        known = {name: values for name, (_, values) in variables.items()}
        known |= {"width": widths, "n": first.samples, "samples": table[0].get("samples")}
        variables["finite_size"] = (("width",), first.claim.finite_size(known))
    coordinates: dict[str, tuple[tuple[str, ...], Any]] = {
        "width": (("width",), widths),
        "rho": (("width",), widths / first.problem.d),
    }
    if scalar:
        variables = {name: (dims[1:], values[0]) for name, (dims, values) in variables.items()}
        coordinates = {name: ((), values[0]) for name, (_, values) in coordinates.items()}
    if sgd is not None:
        coordinates["step_size"] = (("step_size",), np.array(sgd.step_sizes))
        coordinates["samples"] = (("samples",), table[0]["samples"])
    arguments: dict[str, Any] = {
        "width": widths[0] if scalar else widths,
        "draws": len(table),
        "seed": first.seed,
        "samples": first.samples,
        "protocol": first.protocol and asdict(first.protocol),
    }
    return dataset(
        coordinates,
        variables,
        claim=first.claim,
        problem=first.problem,
        regime=first.regime,
        arguments={name: value for name, value in arguments.items() if value is not None},
    )


def _joined(rows: Sequence[Row]) -> Row:
    """Put the widths of one draw, computed apart, together."""
    return {
        name: rows[0][name] if name == "samples" else np.concatenate([row[name] for row in rows]) for name in rows[0]
    }


def _measured(table: Sequence[Row], claim: Claim) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Reduce draws: risks to their mean (or their best) and standard error, what a solver reports not at all."""
    stacked = {name: np.stack([row[name] for row in table], axis=1) for name in table[0]}
    variables = over_draws(stacked.pop("risk"), best=claim.best_of_draws)
    for name, values in stacked.items():
        single = name == "train" or len(table) == 1
        variables[name] = (("width",), values.mean(axis=1)) if single else (("width", "draw"), values)
    return variables


def over_draws(risk: NDArray[Any], *, best: bool = False) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Reduce a (width, draw) table of risks to `risk` and, from two draws on, `stderr` and `risk_draws`."""
    draws = risk.shape[1]
    variables: dict[str, tuple[tuple[str, ...], Any]] = {
        "risk": (("width",), risk.min(axis=1) if best else risk.mean(axis=1))
    }
    if draws > 1:
        if not best:
            variables["stderr"] = (("width",), risk.std(axis=1, ddof=1) / np.sqrt(draws))
        variables["risk_draws"] = (("width", "draw"), risk)
    return variables


def _trained(table: Sequence[Row], widths: NDArray[Any], protocol: SGD) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Average traces over draws and keep, at each width, the step size whose mean risk at the end is lowest."""
    trace = np.stack([row["trace"] for row in table])  # (draw, width, step size, samples)
    tested = np.stack([row["tested"] for row in table])
    final = trace[..., -1].mean(axis=0)
    lost = np.all(np.isinf(final), axis=1)
    if np.any(lost):
        where = f"N = {widths[int(np.argmax(lost))]}, in one draw or another"
        raise NotConverged(
            f"SGD diverged at {where}, with every step size of {protocol.step_sizes}. "
            "Pass protocol=SGD(step_sizes=…) with smaller ones."
        )
    best = np.argmin(final, axis=1)
    here = np.arange(len(best))
    variables = over_draws(trace[:, here, best, -1].T)
    variables["tested"] = (("width",), tested[:, here, best].mean(axis=0))
    variables["step_size_best"] = (("width",), np.array(protocol.step_sizes)[best])
    variables["trace"] = (("width", "samples"), trace[:, here, best].mean(axis=0))
    variables["risk_by_step"] = (("width", "step_size"), final)
    variables["diverged"] = (("width", "step_size"), ~np.isfinite(final))
    return variables
