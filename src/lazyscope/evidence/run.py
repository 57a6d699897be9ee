"""A run: one draw of a problem, regime and fidelity at some sizes. Every number of the package is the row of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, arithmetic
from lazyscope.errors import NotConverged
from lazyscope.evidence.claim import Claim, Fidelity
from lazyscope.evidence.registry import find
from lazyscope.evidence.work import Row, Work
from lazyscope.problems.base import Problem, SizedProblem
from lazyscope.protocols import TrainingProtocol
from lazyscope.regimes import Regime


@dataclass(frozen=True, eq=False)
class Run(Work):
    """What a claim computes at once; its numbers depend on these fields alone.

    `sizes` has the values of each argument of the claim: N/d, N, n, d or λ, whatever it takes. `number` is that of the
    draw. The claim is looked up once, when the run is made, unless it is `known`; it is not written into a store.

    >>> import lazyscope as ls
    >>> run = Run("exact", ls.QuadraticTarget([2.0, 1.0]), ls.Trained(), {"width": (1,)})
    >>> run.claim.theorem, run.compute()["risk"]
    ("Theorem 3's minimum, for B of any sign", array(0.2))
    """

    fidelity: Fidelity
    problem: Problem
    regime: Regime
    sizes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    method: str | None = None
    protocol: TrainingProtocol | None = None
    number: int = 0
    seed: int = 0
    known: InitVar[Claim | None] = None
    claim: Claim = field(init=False, repr=False, metadata={"stored": False})

    def __post_init__(self, known: Claim | None) -> None:
        claim = known or find(self.fidelity, self.problem, self.regime, self.method)
        object.__setattr__(self, "claim", claim)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all but the claim, which the receiver looks up."""
        stored = (self.fidelity, self.problem, self.regime, dict(self.sizes), self.method, self.protocol)
        return (type(self), (*stored, self.number, self.seed))

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        words = {"width": "N", "samples": "n", "psi1": "N/d", "psi2": "n/d", "ridge": "λ"}
        shown = (name for name in self.sizes if name != "ridge" and len(self.sizes[name]) < 4)
        where = (f"{words.get(name, name)} = {', '.join(f'{v:g}' for v in self.sizes[name])}" for name in shown)
        return ", ".join([f"{self.fidelity} {self.regime.label}", *where])

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first: neurons times samples."""
        return int(max(self.sizes.get("width", (1,))) * max(self.sizes.get("samples", (1,))))

    @property
    def d(self) -> int:
        """The problem's dimension, or the one given where it leaves that open."""
        return self.problem.d if isinstance(self.problem, SizedProblem) else int(self.sizes["d"][0])

    def whole(self, name: str) -> int:
        """Return the one value of a size that is a whole number, such as n."""
        (value,) = self.sizes[name]
        return int(value)

    @property
    def widths(self) -> tuple[int, ...]:
        """N, one or several."""
        return tuple(int(N) for N in self.sizes["width"])

    def grid(self) -> tuple[FloatArray, ...]:
        """Return the sizes as arrays that broadcast against one another, in the order of the claim's arguments."""
        axes = [np.asarray(self.sizes[name], dtype=np.float64) for name in self.claim.arguments]
        return tuple(axis.reshape((1,) * k + (-1,) + (1,) * (len(axes) - 1 - k)) for k, axis in enumerate(axes))

    def at(
        self, *, sizes: Mapping[str, tuple[float, ...]] | None = None, number: int | None = None,
        protocol: TrainingProtocol | None = None,
    ) -> Run:  # fmt: skip
        """Return the same run at other sizes, of another draw or by another protocol; its claim stays."""
        if sizes is None and protocol is None and number == self.number:
            return self
        return replace(
            self,
            sizes=self.sizes if sizes is None else sizes,
            number=self.number if number is None else number,
            protocol=protocol or self.protocol,
            known=self.claim,
        )

    def settled(self) -> Run:
        """Return the same run with every default written out; refuse settings that contradict one another."""
        return self.claim.settle(self)

    def split(self, *names: str) -> list[Run]:
        """Return a run for each combination of the values of these sizes."""
        given = [name for name in names if name in self.sizes]
        if not given:
            return [self]
        return [
            self.at(sizes={**self.sizes, **{name: (value,) for name, value in zip(given, values, strict=True)}})
            for values in product(*(self.sizes[name] for name in given))
        ]

    def parts(self) -> list[Run]:
        """Return what the claim can compute at once: it takes some sizes as arrays, the others one by one."""
        return self.split(*(name for name in self.claim.arguments if name not in self.claim.arrays))

    def pieces(self) -> list[Run]:
        """Return the tasks of a sweep: each width by itself, since finer work loses less in a crash."""
        return [piece for part in self.settled().parts() for piece in part.split("width")]

    def compute(self) -> Row:
        """Do the work: each array has an axis for each size that the claim takes as an array, then its own.

        The units of the problem are taken out before, so that huge and tiny ones give the same numbers. Nothing leaves
        that is not a number, or whose residual is above the tolerance of its claim.
        """
        claim, run = self.claim, self.settled()
        if claim.scale_free and (same := run.problem.in_units(run.regime)) is not run.problem:
            run = replace(run, problem=same, known=claim)
        with arithmetic(f"The arithmetic of {claim.title}"):
            row = {name: np.asarray(value) for name, value in claim.compute(run).items()}
        for name, values in row.items():
            if values.dtype.kind == "f" and (total := np.vdot(values, values)) != total:  # a sum of squares is NaN
                raise NotConverged(
                    f"{claim.title.capitalize()} gave no number for {name}: something over- or underflowed on the way. "
                    "Bring weights, spectra and step sizes closer to 1."
                )
            if name in ("residual", "gap") and not (values <= claim.tolerance).all():
                raise NotConverged(
                    f"The solver of {claim.title} left a {name} of {np.max(values):.1e} (tolerance "
                    f"{claim.tolerance:.0e}): the system is too ill-conditioned. Use smaller sizes, or a problem and "
                    "weights whose numbers are closer to one another."
                )
        return row
