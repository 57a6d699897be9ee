"""Gradient flows that are stiff, without linear algebra: Runge–Kutta–Chebyshev steps of second order.

A flow ẏ = f(y) down a function has a Jacobian with real eigenvalues. An explicit step is stable up to h·ρ, ρ the
largest of them in size: a few units for the usual methods, whatever their order. s stages that follow the three terms
of Chebyshev polynomials reach

    h·ρ ≤ β(s) ≈ 0.65 s²

(Sommeijer, Shampine, Verwer 1997, J. Comput. Appl. Math. 88, 315), so that a time T costs about √(T·ρ) evaluations for
each root of the number of steps that accuracy asks for, where an explicit method of SciPy takes T·ρ. Its implicit ones
need the Jacobian, (Nd)² numbers for a network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged

_DAMPING = 2.0 / 13.0  # of the polynomial, which keeps |P| below 1 inside the interval
_REACH = 0.653  # β(s)/(s² − 1), a little less than 2/3·(1 − 2/15·damping)
_MOST_STAGES = 400
_AGAIN = 25  # steps after which ρ is measured again
_SAFE = 1.2  # ρ is taken for so many times its measurement, a lower bound
_EXACT, _MOST_POWERS = 0.01, 50  # of the power method that measures it

Flow = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Path:
    """States at the times that were asked for, (T, m), and how often f was evaluated."""

    states: FloatArray
    evaluations: int


def solve(f: Flow, y: FloatArray, times: Sequence[float], *, rtol: float, atol: float, most: int) -> Path:
    """Return the path of ẏ = f(y) from y at time 0, at ascending times; NotConverged after `most` evaluations of f.

    The error of a step is held to rtol·|y| + atol, in the mean square over components. Memory: six states.

    >>> path = solve(lambda y: -np.array([1.0, 1e4]) * y, np.ones(2), [1.0], rtol=1e-5, atol=1e-8, most=10_000)
    >>> path.states.round(4), path.evaluations < 2_500  # 1e4/6 steps of twelve for DOP853
    (array([[0.3679, 0.    ]]), True)
    """
    stepper = _Stepper(f, np.array(y, dtype=np.float64), rtol, atol, most)
    return Path(np.array([stepper.until(float(t)) for t in times]), stepper.evaluations)


class _Stepper:
    """Where the path is, the next step to try, and what is known of ρ."""

    def __init__(self, f: Flow, y: FloatArray, rtol: float, atol: float, most: int) -> None:
        self.f, self.y, self.rtol, self.atol, self.most = f, y, rtol, atol, most
        self.t, self.evaluations, self.since = 0.0, 0, _AGAIN
        self.slope = self._evaluate(y)
        self.direction, self.rho = self.slope.copy(), 0.0
        self.h = 0.0

    def _evaluate(self, y: FloatArray) -> FloatArray:
        self.evaluations += 1
        if self.evaluations > self.most:
            raise NotConverged(f"The flow takes more than {self.most:,} evaluations. Use a shorter time.")
        return self.f(y)

    def until(self, end: float) -> FloatArray:
        """Go on to a time."""
        while self.t < end:
            if self.since >= _AGAIN:
                self._measure()
            if self.h == 0.0:
                self.h = self._first(end - self.t)
            longest = _REACH * (_MOST_STAGES**2 - 1) / max(self.rho, 1e-300)
            h = min(self.h, longest, end - self.t)
            # no sliver of a step is left before the end
            h = h if end - self.t - h > 0.01 * h else end - self.t
            y, slope, error = self._step(h)
            factor = 0.8 * error ** (-1.0 / 3.0) if error > 0.0 else 10.0
            if not np.isfinite(error):
                self.h, self.since = 0.1 * h, _AGAIN
            elif error > 1.0:
                self.h, self.since = h * max(factor, 0.1), _AGAIN if self.since else 0
            else:
                self.t = end if h == end - self.t else self.t + h
                self.y, self.slope = y, slope
                # a step that was cut short by a time that is asked for says nothing against the one before it
                self.h = max(self.h, h * min(factor, 5.0)) if h < self.h else h * min(factor, 5.0)
                self.since += 1
        return self.y

    def _first(self, left: float) -> float:
        """Return a step after which the slope has changed by little: Euler's of 1/ρ shows by how much."""
        h = min(left, 1.0 / max(self.rho, 1e-300))
        there = self._evaluate(self.y + h * self.slope)
        error = self._size(h * (there - self.slope), self.y, self.y)
        return float(min(left, 0.1 * h if not np.isfinite(error) else h * max(0.1, 0.5 / sqrt(max(error, 1e-8)))))

    def _size(self, error: FloatArray, before: FloatArray, after: FloatArray) -> float:
        scale = self.atol + self.rtol * np.maximum(np.abs(before), np.abs(after))
        return float(np.sqrt(np.mean(np.square(error / scale))))

    def _measure(self) -> None:
        """Measure ρ by the power method on differences of f, from the direction that was found last."""
        y, before, small = self.y, 0.0, sqrt(np.finfo(float).eps)
        distance = small * max(float(np.linalg.norm(y)), small)
        for _ in range(_MOST_POWERS):
            length = float(np.linalg.norm(self.direction))
            if length == 0.0:  # f is zero here, or constant
                break
            image = (self._evaluate(y + distance / length * self.direction) - self.slope) / distance
            now = float(np.linalg.norm(image))
            if not np.isfinite(now) or now == 0.0:
                break
            self.direction = image
            done = abs(now - before) <= _EXACT * now
            before = now
            if done:
                break
        self.rho, self.since = _SAFE * before, 0

    def _step(self, h: float) -> tuple[FloatArray, FloatArray, float]:
        """Return y and f after a step, and its error in units of what is allowed."""
        c = _coefficients(max(2, int(np.ceil(sqrt(h * self.rho / _REACH + 1.0)))))
        y0, f0 = self.y, self.slope
        before, here = y0, y0 + c.first * h * f0
        for mu, nu, mu_f, gamma in zip(c.mu, c.nu, c.mu_f, c.gamma, strict=True):
            slope = self._evaluate(here)
            new = (1.0 - mu - nu) * y0 + mu * here + nu * before + h * (mu_f * slope + gamma * f0)
            before, here = here, new
        if not np.all(np.isfinite(here)):
            return here, f0, np.inf
        slope = self._evaluate(here)
        error = 0.8 * (y0 - here) + 0.4 * h * (f0 + slope)
        return here, slope, self._size(error, y0, here)


@dataclass(frozen=True, eq=False)
class _Coefficients:
    """Those of the first stage, and of the others, (s − 1,) each."""

    first: float
    mu: FloatArray
    nu: FloatArray
    mu_f: FloatArray
    gamma: FloatArray


def _coefficients(s: int) -> _Coefficients:
    """Return the coefficients of s stages, from T_j and its derivatives at w₀ = 1 + ε/s²."""
    w0 = 1.0 + _DAMPING / s**2
    T, D, E = np.zeros(s + 1), np.zeros(s + 1), np.zeros(s + 1)  # T_j, T_j′, T_j″
    T[:2], D[1] = (1.0, w0), 1.0
    for j in range(2, s + 1):
        T[j] = 2.0 * w0 * T[j - 1] - T[j - 2]
        D[j] = 2.0 * T[j - 1] + 2.0 * w0 * D[j - 1] - D[j - 2]
        E[j] = 4.0 * D[j - 1] + 2.0 * w0 * E[j - 1] - E[j - 2]
    w1 = D[s] / E[s]
    b = np.empty(s + 1)
    b[2:] = E[2:] / D[2:] ** 2
    b[0], b[1] = b[2], 1.0 / w0
    a = 1.0 - b * T
    mu, nu = 2.0 * b[2:] * w0 / b[1:-1], -b[2:] / b[:-2]
    mu_f = 2.0 * b[2:] * w1 / b[1:-1]
    return _Coefficients(float(b[1] * w1), mu, nu, mu_f, -a[1:-1] * mu_f)
