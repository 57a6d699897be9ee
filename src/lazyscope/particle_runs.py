"""One run of particles is the unit of work of the mean field: one draw of nature, of n samples and of the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from lazyscope.draws import Row
from lazyscope.evidence import Claim
from lazyscope.problems.base import Problem, SizedProblem
from lazyscope.regimes import MeanField
from lazyscope.registry import find
from lazyscope.results import dataset
from lazyscope.simulate.protocol import ParticleDescent

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class ParticleRun:
    """One descent of a measure; its numbers depend on its fields alone.

    >>> import lazyscope as ls
    >>> run = ParticleRun(ls.SparseParity(4), MeanField(8), 4, 100, ParticleDescent(steps=50))
    >>> sorted(run.compute())
    ['risk', 'step', 'trace', 'train']
    """

    problem: Problem
    regime: MeanField
    d: int
    samples: int
    protocol: ParticleDescent
    number: int = 0
    seed: int = 0
    fidelity: ClassVar[Literal["simulate"]] = "simulate"

    @property
    def claim(self) -> Claim:
        """The claim that serves it."""
        return find(self.fidelity, self.problem, self.regime)

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"{self.regime.label}, N = {self.regime.particles}, n = {self.samples}, draw {self.number + 1}"

    def compute(self) -> Row:
        """Do the work."""
        how = (self.samples, self.protocol, self.seed, self.number)
        row: Row = self.claim.compute(self.problem, self.regime, self.d, *how)
        return row


def assemble(runs: Sequence[ParticleRun], rows: Sequence[Row]) -> xr.Dataset:
    """Return the result of the verb from runs that differ in their number alone: means, with standard errors."""
    first, draws = runs[0], len(runs)
    N, d = first.regime.particles, first.d
    variables: dict[str, tuple[tuple[str, ...], Any]] = {}
    for name, error in (("risk", "stderr"), ("train", "train_stderr")):
        table = np.array([float(row[name]) for row in rows])
        variables[name] = ((), table.mean())
        if draws > 1:
            variables[error] = ((), table.std(ddof=1) / np.sqrt(draws))
            variables |= {"risk_draws": (("draw",), table)} if name == "risk" else {}
    variables["trace"] = (("step",), np.mean([row["trace"] for row in rows], axis=0))
    sizes: dict[str, float] = {"rho": N / d}
    if not isinstance(first.problem, SizedProblem):
        sizes = {"psi1": N / d, "psi2": first.samples / d}
    coordinates: dict[str, tuple[tuple[str, ...], Any]] = {
        "width": ((), N),
        **{name: ((), value) for name, value in sizes.items()},
        "step": (("step",), rows[0]["step"]),
    }
    arguments = {"particles": N, "samples": first.samples, "d": d, "draws": draws, "seed": first.seed}
    result = dataset(
        coordinates,
        variables,
        claim=first.claim,
        problem=first.problem,
        regime=first.regime,
        arguments=arguments | {"protocol": asdict(first.protocol)},
    )
    result["trace"].attrs["long_name"] = "squared error on the samples against steps, over that of the best constant"
    return result
