"""Labels from a linear score: what max-margin classification learns from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from lazyscope.checks import FloatArray, real_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.numerics.quadrature import panels
from lazyscope.problems.base import Option, Problem

Link = Callable[[FloatArray], FloatArray]

REACH = 9.5
"""Where a Gaussian score ends: beyond it lies 2e-21 of its mass."""

_ROUNDING = 1e-12
_FINEST = 1e-12  # width of a panel around a jump: what it holds no rule of ours could tell
_MOST_PANELS = 4000


def _logistic(t: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.asarray(expit(t))


def _probit(t: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(t))


def _sign(t: FloatArray) -> FloatArray:
    return np.heaviside(t, 0.5)


LINKS: dict[str, Link] = {"logistic": _logistic, "sign": _sign, "probit": _probit}


@dataclass(frozen=True, eq=False)
class LinearLabels(Problem):
    """x ~ N(0, I), y = ±1 with P(y = 1 | x) = f₀(⟨β₀, x⟩), in as many dimensions as you like (Montanari et al. 2019).

    Parameters: `signal`, ‖β₀‖; `link`, f₀: "logistic" 1/(1 + e^−t), "probit" Φ(t), "sign" (labels without noise), or a
    callable on arrays that does not decrease and stays in [0, 1]. Risks are probabilities of a wrong label.

    >>> print(LinearLabels(signal=4.0))
    labels by a logistic link, ‖β₀‖ = 4
    >>> f"{LinearLabels(4.0).bayes_error:.6f} {LinearLabels(1.0, 'sign').bayes_error:.1f}"
    '0.128780 0.0'
    """

    word: ClassVar[str] = "labels"
    title: ClassVar[str] = "linear labels"
    formula: ClassVar[str] = "y = ±1, P(y = 1 | x) = f₀(⟨β₀, x⟩), x ~ N(0, I)"
    options: ClassVar[tuple[Option, ...]] = (
        Option("signal", float, 1.0, "‖β₀‖."),
        Option("link", str, "logistic", "f₀: logistic, sign or probit."),
    )
    usual: ClassVar[dict[str, Any]] = Problem.usual | {"regime": "rf", "psi2": "2", "samples": "2d"}
    signal: float = 1.0
    link: str | Link = "logistic"

    def __post_init__(self) -> None:
        must = "be the norm of β₀, zero or positive, at most 1e6"
        signal = real_number(self.signal, "LinearLabels", "signal", must)
        if not 0.0 <= signal <= 1e6:
            raise InvalidParameter.of("LinearLabels", "signal", must, f"{signal:g}", 'Without noise: link="sign".')
        object.__setattr__(self, "signal", signal)
        if isinstance(self.link, str) and self.link in LINKS:
            return
        if not callable(self.link):
            must = "be one of " + ", ".join(LINKS) + ", or a callable on arrays"
            raise InvalidParameter.of("LinearLabels", "link", must, repr(self.link))
        self._check_callable()

    def _check_callable(self) -> None:
        """A probability that does not decrease, wherever scores of this size are."""
        must = "be a link: map scores to probabilities in [0, 1], and never decrease"
        far = max(10.0, 10.0 * self.signal)
        t = np.sort(np.concatenate([np.linspace(-far, far, 1001), np.linspace(-10.0, 10.0, 1000)]))
        f = self.probability(t)
        if not np.all((f >= -_ROUNDING) & (f <= 1.0 + _ROUNDING)):
            worst = int(np.argmax(np.abs(f - 0.5)))
            raise InvalidParameter.of("LinearLabels", "link", must, f"f({t[worst]:.4g}) = {f[worst]:.4g}")
        drop = int(np.argmin(np.diff(f)))
        if f[drop + 1] < f[drop] - _ROUNDING:
            got = f"a link that falls from {f[drop]:.4g} at {t[drop]:.4g} to {f[drop + 1]:.4g} at {t[drop + 1]:.4g}"
            raise InvalidParameter.of("LinearLabels", "link", must, got, "Pass f(−t) if it decreases everywhere.")
        if f[-1] < _ROUNDING or f[0] > 1.0 - _ROUNDING:
            must = "give labels of both classes"
            raise InvalidParameter.of("LinearLabels", "link", must, f"P(y = 1) = {f[0]:.4g} at every score")

    def probability(self, t: Any) -> FloatArray:
        """P(y = 1) where the score ⟨β₀, x⟩ is t.

        >>> LinearLabels(link="sign").probability([-1.0, 0.0, 2.0])
        array([0. , 0.5, 1. ])
        """
        t = np.asarray(t, dtype=np.float64)
        if isinstance(self.link, str):
            return LINKS[self.link](t)
        must = "map a float64 array to probabilities, elementwise"
        try:
            value = np.asarray(self.link(t), dtype=np.float64)
        except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
            got = f"{type(error).__name__}: {error}"
            raise InvalidParameter.of("LinearLabels", "link", must, got) from None
        if value.shape != t.shape or not np.all(np.isfinite(value)):
            got = "NaN or infinity" if value.shape == t.shape else f"shape {value.shape} for shape {t.shape}"
            raise InvalidParameter.of("LinearLabels", "link", must, got)
        return value

    @cached_property
    def agreement(self) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights for E[h(T)], T = yS the score's agreement with its label, S = ⟨β₀, x⟩/‖β₀‖ ~ N(0, 1).

        T has density φ(t)(f₀(‖β₀‖t) + 1 − f₀(−‖β₀‖t)). Exact to rounding for h smooth at the scale of its distance
        from zero: panels halve towards zero, where a classifier decides, and wherever the link is not smooth.

        >>> t, p = LinearLabels(link="sign").agreement
        >>> f"{p.sum():.12f} {p @ t:.12f}"  # 1 and √(2/π)
        '1.000000000000 0.797884560803'
        """
        t, p = _gaussian_panels(lambda t: self.probability(self.signal * t) + 1.0 - self.probability(-self.signal * t))
        return t[p > 0.0], p[p > 0.0]

    @cached_property
    def bayes_error(self) -> float:
        """E[min(f₀, 1 − f₀)]: what no classifier goes below."""

        def wrong(t: FloatArray) -> FloatArray:
            f = self.probability(self.signal * t)
            return np.minimum(f, 1.0 - f)

        return float(_gaussian_panels(wrong)[1].sum())

    def __str__(self) -> str:
        name = self.link if isinstance(self.link, str) else getattr(self.link, "__name__", type(self.link).__name__)
        return f"labels by a {name} link, ‖β₀‖ = {self.signal:.4g}"


def _gaussian_panels(function: Link) -> tuple[FloatArray, FloatArray]:
    """Return nodes t and weights w(t)φ(t)·function(t), on panels that are halved until each integral is settled."""
    steps = 2.0 ** -np.arange(27)
    right = np.unique(np.concatenate([np.arange(1.0, REACH), steps, [REACH]]))
    edges = np.concatenate([-right[::-1], [0.0], right])
    while True:
        whole, halves = edges, np.sort(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])]))
        t, w = _weighted(function, whole)
        _, finer = _weighted(function, halves)
        gap = np.abs(w.reshape(len(whole) - 1, -1).sum(1) - finer.reshape(len(whole) - 1, -1).sum(1))
        rough = (gap > 1e-16) & (np.diff(whole) > _FINEST)
        if not np.any(rough):
            return t, w
        if len(edges) + np.count_nonzero(rough) > _MOST_PANELS:
            raise NotConverged(
                f"The link needs more than {_MOST_PANELS} panels to integrate to 1e-16. "
                "Pass a function that is smooth but for a few points."
            )
        edges = np.sort(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])[rough]]))


def _weighted(function: Link, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    t, w = panels(edges)
    return t, w * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) * function(t)
