"""The smallest sizes and the most extreme scales of everything that is registered: a right number, or a refusal.

A case is one problem, regime, activation and fidelity at d = 1, 2 or 3 and a width of one neuron or a few. It is
computed at ordinary units and at others, up to 10^±150: a number is right when it has no NaN, when its residual is
within the tolerance of its claim, when it does not depend on the units of the labels, and when it lies between 0 and
the best constant's risk where the population's optimum is computed. `tests/validation` goes through all cases of one
neuron; `make soak` through as many of all as there is time for, in random order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from lazyscope.activations import activation_names
from lazyscope.evidence.claim import Claim
from lazyscope.evidence.registry import claims
from lazyscope.protocols import NoisySGD
from soak.calls import Calls
from soak.tally import Deadline, Tally

GOALS = {"accepted": 1000}
EXPONENTS = (-150, -141, -139, -100, -45, -20, -4, 4, 20, 45, 100, 139, 141, 150)
# Two routes of linear algebra on nearly dependent features, each good to 1e-5; float32 labels differ by their rounding,
# 6e-8 each, which a fit to few of them amplifies.
_DESCENTS = 0.03  # share of the descents of `exact` that are tried: seconds each
SAME = {"limit": 1e-9, "exact": 2e-5, "simulate": 1e-3}


@dataclass(frozen=True)
class Case:
    """One pair in one fidelity at one size; `call(k)` is the expression of it with labels in units of 10^k."""

    claim: Claim
    d: int
    width: int
    activation: str
    variant: str = ""

    @property
    def problem(self) -> str:
        """The name of the problem's class."""
        return self.claim.problem.__name__

    @property
    def regime(self) -> str:
        """The name of the regime's class."""
        return self.claim.regime.__name__

    def call(self, exponent: int) -> str:
        """Return an expression that can be pasted after `import lazyscope as ls, numpy as np`."""
        words = [f"{name}={self.size(name, exponent)}" for name in self.claim.arguments]
        if self.claim.method:
            words.append(f"method={self.claim.method!r}")
        if self.claim.protocol is not None:
            words.append(f"protocol={PROTOCOLS[self.claim.protocol.__name__]}")
        verb = "bayes" if self.regime == "Bayes" else self.claim.fidelity
        model = REGIMES.get(self.regime, "ls.{regime}({activation!r}{variant})").format(
            regime=self.regime, activation=self.activation, variant=self.variant
        )
        problem = PROBLEMS[self.problem](self.d, exponent)
        if (self.problem, self.regime) == ("GaussianMixture", "MeanField"):  # whose particles ask for Σ = I
            problem = f"ls.GaussianMixture({_scaled(_DELTA[: self.d], 0)})"
        if (self.problem, self.regime) == ("LinearTarget", "NeuralTangent"):  # whose theorem asks for a linear one
            problem = f"ls.LinearTarget(1e{exponent}, 3e{exponent - 1})"
        what = [problem, *([] if verb == "bayes" else [model])]
        if verb == "bayes":
            words = [f"fidelity={self.claim.fidelity!r}"]
        return f"ls.{verb}({', '.join([*what, *words])})"

    def size(self, name: str, exponent: int) -> str:
        """Return the value of a size, small, as an expression."""
        if name == "rho":
            return repr(self.width / self.d)
        if name == "ridge" and self.problem == "SpectralTarget":
            return f"[0.0, 1e{exponent}]"  # it has the units of the eigenvalues
        if name == "ridge" and self.d == 1:
            return "0.0"
        if name == "times":  # labels of size s move overlaps s² times faster: else it would take minutes
            return f"np.array({SIZES[name]}) * 1e{-2 * max(exponent, 0)}"
        if name == "width" and self.regime == "GaussianFeatures":
            return "3"  # as many as its spectrum has
        if name == "width" and self.claim.protocol is NoisySGD:
            return str(2 * self.width)  # neurons start in pairs
        return {"width": str(self.width), "d": str(self.d)}.get(name) or SIZES[name]


def _scaled(values: tuple[float, ...], exponent: int) -> str:
    return f"np.array({list(values)}) * 1e{exponent}"


_B, _DELTA = (1.3, -0.4, 0.9), (0.6, -0.3, 0.4)
PROBLEMS = {
    "QuadraticTarget": lambda d, k: f"ls.QuadraticTarget({_scaled(_B[:d], k)})",
    "GaussianMixture": lambda d, k: f"ls.GaussianMixture({_scaled(_DELTA[:d], k)}, {_scaled((1.0, 2.0, 0.7)[:d], k)})",
    "MultiIndex": lambda d, k: f"ls.MultiIndex({d}, lambda z: {LINKS[d]} * 1e{k}, noise=1e{k - 1})",
    "LinearTarget": lambda d, k: f"ls.LinearTarget(1e{k}, 3e{k - 1}, 2e{k - 1})",
    "LinearLabels": lambda d, k: "ls.LinearLabels(2.0)",
    "SparseParity": lambda d, k: f"ls.SparseParity({d}, {min(d, 2)}, flip=0.1)",
    "RidgeMonomial": lambda d, k: f"ls.RidgeMonomial({d}, 3, alpha=1e{k})",
    "HarmonicTarget": lambda d, k: f"ls.HarmonicTarget({d}, {_scaled((0.1, 0.5, 0.4), 2 * k)}, noise=1e{k - 1})",
    "SpectralTarget": lambda d, k: (
        f"ls.SpectralTarget({_scaled((1.0, 0.5, 0.01)[:d], k)}, {_scaled((1.0, 0.2, 0.1)[:d], 2 * k)})"
    ),
}
LINKS = {1: "z**3", 2: "(np.abs(z) - 0.3 * z)", 3: "(z**2 + z)"}
REGIMES = {
    "Taylor": "ls.Taylor({variant}{activation!r})",
    "GaussianFeatures": "ls.GaussianFeatures([1.0, 0.5, 0.2])",
    "IsotropicFeatures": "ls.IsotropicFeatures()",
}
SIZES = {
    "samples": "40", "ridge": "[0.1, 1.0]", "psi1": "[0.5, 3.0]", "psi2": "[0.3, 2.0]", "times": "[0.0, 0.5, 5.0]",
    "step_size": "0.1",
}  # fmt: skip
PROTOCOLS = {
    "SGD": "ls.SGD(steps=20, batch=5, step_sizes=(0.01,), test=50)",
    "NoisySGD": "ls.NoisySGD(steps=10)",
    "ParticleDescent": "ls.ParticleDescent(steps=5)",
}


ABSOLUTE = ("LinearTarget", "HarmonicTarget", "SpectralTarget")  # risks in the squared units of the labels
UNITLESS = ("LinearLabels", "SparseParity")  # labels ±1
MOVED = ("Trained", "GiantStep")  # their steps know the units, as NoisySGD's noise does: there is nothing to compare
VARIANTS = {
    "Taylor": ("1, randomized=False, activation=", "2, randomized=False, activation=", "2, activation="),
    "Trained": ("", ", alpha=3.0"),
    "GiantStep": (", step=2.0", ", step=1.0, samples=30"),
}


def cases(widths: tuple[int, ...] = (1,)) -> list[Case]:
    """Return the whole product: what is registered, d = 1, 2, 3, these widths, every activation, every variant."""
    known: dict[tuple[str, str, str, str | None], Claim] = {}
    for claim in claims():  # claims of one pair differ by what they cover, which the verb finds out
        known.setdefault((claim.fidelity, claim.problem.__name__, claim.regime.__name__, claim.method), claim)
    found = []
    for claim in known.values():
        name = claim.regime.__name__
        plain = name in ("Bayes", "GaussianFeatures", "IsotropicFeatures")
        for d, N, sigma in product((1, 2, 3), widths, ("square",) if plain else activation_names()):
            found += [Case(claim, d, N, sigma, variant) for variant in VARIANTS.get(name, ("",))]
    return found


def judge(calls: Calls, case: Case, exponents: tuple[int, ...]) -> None:
    """Compute a case in ordinary units and in these."""
    plain = calls(case.call(0))
    if case.problem in UNITLESS:
        return
    for k in exponents:
        other = calls(case.call(k))
        if plain is None or other is None or case.regime in MOVED or case.claim.protocol is NoisySGD:
            continue
        unit = 10.0 ** (2 * k) if case.problem in ABSOLUTE else 1.0
        risk, here = plain.risk.values, other.risk.values / unit
        gap = float(np.max(np.abs(here - risk) / np.maximum(1.0, risk)))
        what = f"units of the labels: {case.call(0)} and {case.call(k)} differ by {gap:.1e}"
        calls.tally.check(gap <= SAME[case.claim.fidelity], what)


def attack(tally: Tally, rng: np.random.Generator, deadline: Deadline) -> None:
    """Go through all cases in random order, each in ordinary units and in two others."""
    calls = Calls(tally)
    every = cases((1, 2, 5))
    for index in rng.permutation(len(every)):
        if not deadline or calls.accepted >= GOALS["accepted"]:
            break
        case = every[index]
        descends = (case.claim.fidelity, case.regime) == ("exact", "Trained") and case.activation != "square"
        if descends and rng.random() > _DESCENTS:
            continue
        judge(calls, case, tuple(rng.choice(EXPONENTS, 2, replace=False).tolist()))
