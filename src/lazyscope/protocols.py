"""Protocols: how a network is trained, as data. One-pass SGD, noisy SGD on given samples, descent of particles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from lazyscope.checks import positive_numbers, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.losses import as_loss
from lazyscope.problems import GaussianMixture, Option, Problem
from lazyscope.regimes import JointTangent, NeuralTangent, Regime

_STEP_SIZES = "Pass steps like 0.01."
_LARGEST = 1e30  # networks are trained in float32, which ends at 3e38


class TrainingProtocol:
    """How a network is trained: the base of all protocols.

    A subclass has a `word`, the name of its table in sweep plans, where every field of it may be set; `options` are
    those that the command line has.
    """

    word: ClassVar[str] = ""
    options: ClassVar[tuple[Option, ...]] = ()

    @classmethod
    def paper(cls, problem: Problem, regime: Regime) -> Self:
        """Return the protocol of a pair that names none."""
        return cls()


@dataclass(frozen=True)
class SGD(TrainingProtocol):
    """One-pass stochastic gradient descent: every sample is fresh and used once.

    Defaults are those of Ghorbani et al. 2019, §4, and their published scripts, for a trained network on the quadratic
    target: batches of 100, 2·10⁵ steps, constant step sizes from {0.001, …, 0.03} of which the best counts, divided
    by 10 over the last 30,000 steps and by 15 over the last 15,000 (here: 15% and 7.5% of the steps), risk on 10⁴
    fresh samples. `SGD.paper(problem, regime)` is the protocol of any pair. `second_layer` of a trained network is
    trained from 0, "fixed" to 1 as in Theorem 3, or "sum": fixed, and the network is f = Σσ(⟨w_i, x⟩) + c, not the
    mean, with gradients of (f − y)² that nothing multiplies, as Saad and Solla 1995 have it. `rule` is how a trained
    network steps: "plain", or "adam" (Kingma & Ba 2015), whose step sizes are a tenth of plain ones. `halving` saves
    work where many step sizes are tried: at each of these shares of the steps, the half of them with the higher risk
    is given up.

    >>> SGD(steps=1000).rate(0.01, 0), SGD(steps=1000).rate(0.01, 900)
    (0.01, 0.001)
    """

    word: ClassVar[str] = "sgd"
    options: ClassVar[tuple[Option, ...]] = (
        Option("batch", int, None, "Samples a step of SGD, for nt and nn: 100 by default."),
        Option(
            "step_sizes", list, None, "Of SGD, with commas; the best counts. By default 0.001 to 0.03, six of them."
        ),
    )
    steps: int = 200_000
    batch: int = 100
    step_sizes: tuple[float, ...] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03)
    decay: tuple[tuple[float, float], ...] = ((0.15, 10.0), (0.075, 15.0))
    test: int = 10_000
    second_layer: Literal["trained", "fixed", "sum"] = "trained"
    rule: Literal["plain", "adam"] = "plain"
    halving: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "test"):
            object.__setattr__(self, name, whole_number(getattr(self, name), "SGD", name))
        sizes = np.atleast_1d(positive_numbers(self.step_sizes, "SGD", "step_sizes", _STEP_SIZES))
        if not np.all(sizes <= _LARGEST):
            must = f"be finite, and at most {_LARGEST:g}, which is more than any that converge"
            raise InvalidParameter.of("SGD", "step_sizes", must, f"{np.max(sizes):g}", _STEP_SIZES)
        object.__setattr__(self, "step_sizes", tuple(float(size) for size in sizes))
        if self.second_layer not in ("trained", "fixed", "sum"):
            raise InvalidParameter.of("SGD", "second_layer", 'be "trained", "fixed" or "sum"', repr(self.second_layer))
        if self.rule not in ("plain", "adam"):
            raise InvalidParameter.of("SGD", "rule", 'be "plain" or "adam"', repr(self.rule))
        must = "be pairs (last share of the steps, divisor), 0 ≤ share ≤ 1 and divisor > 0"
        try:
            pairs = tuple(tuple(pair) for pair in self.decay)
        except TypeError:
            raise InvalidParameter.of("SGD", "decay", must, repr(self.decay)) from None
        for pair in pairs:
            numbers = [real_number(number, "SGD", "decay") for number in pair]
            if len(numbers) != 2 or not 0.0 <= numbers[0] <= 1.0 or not numbers[1] > 0.0:
                raise InvalidParameter.of("SGD", "decay", must, pair)
        object.__setattr__(self, "decay", pairs)
        given = [] if self.halving is None else np.atleast_1d(np.asarray(self.halving, dtype=object)).tolist()
        shares = sorted(real_number(share, "SGD", "halving") for share in given)
        if not all(0.0 < share < 1.0 for share in shares):
            raise InvalidParameter.of("SGD", "halving", "be shares of the steps between 0 and 1", shares)
        object.__setattr__(self, "halving", tuple(shares) or None)

    @classmethod
    def paper(cls, problem: Problem, regime: Regime) -> Self:
        """Return the paper's protocol: 1.4·10⁵ steps on the mixture; NT decays over the last 20,000 and 10,000.

        >>> import lazyscope as ls
        >>> SGD.paper(ls.GaussianMixture([0.1]), ls.NeuralTangent()).steps
        140000
        """
        steps = 140_000 if isinstance(problem, GaussianMixture) else 200_000
        last = (20_000, 10_000) if isinstance(regime, (NeuralTangent, JointTangent)) else (30_000, 15_000)
        return cls(steps=steps, decay=((last[0] / steps, 10.0), (last[1] / steps, 15.0)))

    def rate(self, step_size: float, step: int) -> float:
        """Return the step size in force at a step: that of the last decay that has begun."""
        left = self.steps - step
        begun = [divisor for share, divisor in self.decay if left <= share * self.steps]
        return step_size / begun[-1] if begun else step_size


@dataclass(frozen=True)
class ParticleDescent(TrainingProtocol):
    """How particles descend: so many `steps` of gradient descent, a at most `bound` in size and ‖w‖ ≤ 1.

    The step size looks after itself: it grows while the risk falls, and a step that raises the risk is taken back.

    >>> ParticleDescent(steps=500)
    ParticleDescent(steps=500, bound=4.0)
    """

    word: ClassVar[str] = "descent"
    options: ClassVar[tuple[Option, ...]] = (
        Option("steps", int, None, "Of the descent of particles, for mf: 2000 by default."),
        Option("bound", float, None, "A, for mf: particles live on |a| ≤ A, ‖w‖ ≤ 1; 4 by default."),
    )
    steps: int = 2000
    bound: float = 4.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", whole_number(self.steps, "ParticleDescent", "steps"))
        bound = real_number(self.bound, "ParticleDescent", "bound")
        if not 0.0 < bound <= 1e6:
            raise InvalidParameter.of("ParticleDescent", "bound", "be positive, at most 1e6", f"{bound:g}")
        object.__setattr__(self, "bound", bound)


@dataclass(frozen=True)
class NoisySGD(TrainingProtocol):
    """How W is trained, from a random start of size `start` (1 is the scale on which f^{(k)} = O(1)).

    `step_size` η multiplies m^{1−1/k}/B_x² times the gradient; it falls linearly to zero over the second half of the
    steps, and with it `noise`, the size of the perturbation of a step. `lam` is λ of λ‖B_x W‖⁸_{2,4}. `loss` is
    "logistic" for labels and "square" for numbers where it is left out.

    >>> NoisySGD(steps=100).rate(0), NoisySGD(steps=100).rate(75)
    (1.0, 0.5)
    """

    word: ClassVar[str] = "noisy_sgd"
    steps: int = 1000
    batch: int = 256
    step_size: float = 1.0
    momentum: float = 0.9
    noise: float = 0.01
    start: float = 0.3
    lam: float = 0.0
    loss: str | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch"):
            object.__setattr__(self, name, whole_number(getattr(self, name), "NoisySGD", name))
        for name, least, most in (
            ("step_size", 0.0, np.inf),
            ("momentum", 0.0, 1.0),
            ("noise", 0.0, np.inf),
            ("start", 0.0, np.inf),
            ("lam", 0.0, np.inf),
        ):
            value = real_number(getattr(self, name), "NoisySGD", name)
            if not least <= value < most:
                bound = f"be at least {least:g}" + (f" and below {most:g}" if np.isfinite(most) else "")
                raise InvalidParameter.of("NoisySGD", name, bound, f"{value:g}")
        if self.loss is not None:
            as_loss(self.loss, "NoisySGD")

    def rate(self, step: int) -> float:
        """Return the share of the step size in force at a step."""
        return min(1.0, 2.0 * (self.steps - step) / self.steps)
