"""Two random variables that agree in all moments below the k-th and differ by one in that (Bai & Lee 2019, §6.1).

    E z₊^j = E z₋^j for j < k,      E z₊^k = E z₋^k + 1.

On any nodes x_0 < … < x_k the k-th divided difference, Σ_i w_i p(x_i) with w_i = 1/Π_{j≠i}(x_i − x_j), is 0 for every
polynomial of lower degree and 1 for x^k, and its weights alternate in sign. The positive ones, divided by their sum P,
are the law of z₊, the negative ones that of z₋; the k-th moments then differ by 1/P, and to scale by P^{1/k} makes it
1. All of it in fractions. Nodes −k/2, −k/2 + 1, …, k/2 give binomial probabilities; k = 2 is z₊ = ±1, z₋ = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, whole_number
from lazyscope.errors import InvalidParameter


@dataclass(frozen=True)
class MomentPair:
    """z₊ and z₋ as nodes and probabilities, in fractions; both are to be multiplied by `scale` = (1/gap)^{1/k}.

    >>> pair = moment_matched(3)
    >>> [str(x) for x in pair.plus], [str(p) for p in pair.plus_probabilities]
    (['-1/2', '3/2'], ['3/4', '1/4'])
    >>> [str(pair.difference(j)) for j in range(4)]  # of moments, before scaling
    ['0', '0', '0', '3/2']
    >>> print(f"{pair.moment(3, 1) - pair.moment(3, -1):.12f}")
    1.000000000000
    """

    k: int
    plus: tuple[Fraction, ...]
    plus_probabilities: tuple[Fraction, ...]
    minus: tuple[Fraction, ...]
    minus_probabilities: tuple[Fraction, ...]

    def difference(self, j: int) -> Fraction:
        """Return E z₊^j − E z₋^j before scaling, exactly."""
        plus = sum((p * x**j for x, p in zip(self.plus, self.plus_probabilities, strict=True)), Fraction(0))
        return plus - sum((p * x**j for x, p in zip(self.minus, self.minus_probabilities, strict=True)), Fraction(0))

    @property
    def gap(self) -> Fraction:
        """Difference of the k-th moments before scaling."""
        return self.difference(self.k)

    @property
    def scale(self) -> float:
        """Factor of the nodes, which makes that difference one."""
        return float(float(1 / self.gap) ** (1.0 / self.k))

    def moment(self, j: int, sign: int) -> float:
        """Return E z₊^j (sign = 1) or E z₋^j (sign = −1), scaled."""
        nodes, odds = self._law(sign)
        return float(np.sum(odds * (self.scale * nodes) ** j))

    def draw(self, n: int, sign: int, rng: np.random.Generator) -> FloatArray:
        """Draw n independent copies of z₊ (sign = 1) or z₋ (sign = −1)."""
        nodes, odds = self._law(sign)
        return np.asarray(self.scale * rng.choice(nodes, n, p=odds))

    def _law(self, sign: int) -> tuple[FloatArray, FloatArray]:
        nodes, odds = (self.plus, self.plus_probabilities) if sign > 0 else (self.minus, self.minus_probabilities)
        return np.array([float(x) for x in nodes]), np.array([float(p) for p in odds])


def moment_matched(k: int, nodes: Sequence[Any] | None = None) -> MomentPair:
    """Find z₊ and z₋ for any k, exactly; on the k + 1 nodes that you pass, or on −k/2 … k/2.

    >>> pair = moment_matched(2)
    >>> [int(x) for x in pair.plus], [int(x) for x in pair.minus], pair.scale
    ([-1, 1], [0], 1.0)
    """
    k = whole_number(k, "moment_matched", "k")
    must = f"be k + 1 = {k + 1} distinct rational numbers"
    try:
        chosen = [Fraction(x) for x in nodes] if nodes is not None else [Fraction(2 * i - k, 2) for i in range(k + 1)]
    except (TypeError, ValueError):
        raise InvalidParameter.of("moment_matched", "nodes", must, repr(nodes)) from None
    if len(chosen) != k + 1 or len(set(chosen)) != k + 1:
        raise InvalidParameter.of("moment_matched", "nodes", must, [str(x) for x in chosen])
    weights = [1 / prod((x - y for y in chosen if y != x), start=Fraction(1)) for x in chosen]
    total = sum((w for w in weights if w > 0), Fraction(0))
    plus = [(x, w / total) for x, w in zip(chosen, weights, strict=True) if w > 0]
    minus = [(x, -w / total) for x, w in zip(chosen, weights, strict=True) if w < 0]
    return MomentPair(k, *(tuple(column) for law in (plus, minus) for column in zip(*law, strict=True)))
