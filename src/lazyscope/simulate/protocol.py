"""How a network is trained by stochastic gradient descent: the paper's numerical protocol, as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import positive_numbers, real_number, whole_number
from lazyscope.errors import InvalidParameter


@dataclass(frozen=True)
class SGD:
    """One-pass stochastic gradient descent: every sample is fresh and used once.

    Defaults follow Ghorbani et al. 2019, §4, and their published scripts: batches of 100, 2·10⁵ steps, constant step
    sizes from {0.001, …, 0.03} of which the best counts, divided by 10 over the last 30,000 steps and by 15 over the
    last 15,000 (here: 15% and 7.5% of the steps), risk on 10⁴ fresh samples.

    >>> SGD(steps=1000).rate(0.01, 0), SGD(steps=1000).rate(0.01, 900)
    (0.01, 0.001)
    """

    steps: int = 200_000
    batch: int = 100
    step_sizes: tuple[float, ...] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03)
    decay: tuple[tuple[float, float], ...] = ((0.15, 10.0), (0.075, 15.0))
    test: int = 10_000

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "test"):
            object.__setattr__(self, name, whole_number(getattr(self, name), "SGD", name))
        sizes = positive_numbers(list(self.step_sizes), "SGD", "step_sizes", "Pass steps like 0.01.")
        if not np.all(np.isfinite(sizes)):
            raise InvalidParameter.of("SGD", "step_sizes", "be finite", "inf", "Pass steps like 0.01.")
        object.__setattr__(self, "step_sizes", tuple(float(size) for size in sizes))
        for share, divisor in self.decay:
            if not 0.0 <= real_number(share, "SGD", "decay") <= 1.0 or not real_number(divisor, "SGD", "decay") > 0.0:
                must = "be pairs (last share of the steps, divisor), 0 ≤ share ≤ 1 and divisor > 0"
                raise InvalidParameter.of("SGD", "decay", must, (share, divisor))

    def rate(self, step_size: float, step: int) -> float:
        """Return the step size in force at a step: that of the last decay that has begun."""
        left = self.steps - step
        begun = [divisor for share, divisor in self.decay if left <= share * self.steps]
        return step_size / begun[-1] if begun else step_size
