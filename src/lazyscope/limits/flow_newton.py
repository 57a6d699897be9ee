"""One panel of a matrix flow: s(t), and a(t) where it is trained, at the Chebyshev points, by Newton's method.

With K the closed form of `flow_riccati`, the unknowns satisfy

    s = a Tr K − Tr B − b₀ + c,   c = c₀ − 2μ∫s,   and   a² − a₀² = (Tr K − Tr K₀)/2,

the last by a conservation law (for small a, the equation for ȧ itself). The derivatives follow from K:
δ Tr K = Σ_i 2K_ii δλ_i − 16 Σ_i (K²)_ii (δu_i + 2u_i δλ_i). The guess is the solution for typical weights, times a
factor that varies slowly; it is good to a percent or better, so that one or two sweeps over the true K are enough.
What the last step of Newton's method changes is added to first order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.limits.flow_panels import Clock, rule
from lazyscope.limits.flow_riccati import Measured, Riccati
from lazyscope.limits.flow_typical import typical

_SWEEPS, _GUESS_SWEEPS = 8, 20
_SMALL = 0.05  # below this a, the conserved quantity says too little of it
_BINS = 32


@dataclass(frozen=True, eq=False)
class Moment:
    """The flow at one time; `diagonal` and `norm` are those of K, the norm squared."""

    t: float
    s: float
    a: float
    c: float
    tau: float
    theta: float
    u: FloatArray
    diagonal: FloatArray
    norm: float


class Setting(Protocol):
    """What a panel must know of the start."""

    @property
    def b(self) -> FloatArray:
        """Spectrum of B, ascending."""

    @property
    def b0(self) -> float:
        """Constant of the target."""

    @property
    def trained_layer(self) -> bool:
        """Whether a is trained."""

    @property
    def offset_rate(self) -> float:
        """μ of ċ = −2μs."""

    @property
    def energy(self) -> float:
        """2‖B‖²."""

    @property
    def gamma(self) -> float:
        """Mean entry of diag K at the start."""

    @property
    def width(self) -> float:
        """N."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The flow on one panel of time, at its Chebyshev points: the first axis of every array."""

    clock: Clock
    s: FloatArray
    a: FloatArray
    c: FloatArray
    tau: FloatArray
    theta: FloatArray
    u: FloatArray  # points × d
    diagonal: FloatArray  # of K, points × d
    norm: FloatArray  # ‖K‖²
    risk: FloatArray  # 2‖aK − B‖² + s²
    error: float  # of the normalised risk, estimated

    def at(self, name: str, times: FloatArray) -> FloatArray:
        """Interpolate."""
        return np.asarray(rule().at(self.clock.place(times)) @ getattr(self, name))

    @property
    def last(self) -> Moment:
        """The end of the panel."""
        names = ("s", "a", "c", "tau", "theta", "u", "diagonal", "norm")
        return Moment(self.clock.end, *(getattr(self, name)[-1] for name in names))


@dataclass(frozen=True, eq=False)
class Bins:
    """Eigenvalues in groups of neighbours, which share the derivative of u."""

    edges: np.ndarray[tuple[int], np.dtype[np.int64]]
    count: FloatArray
    b: FloatArray

    @classmethod
    def of(cls, b: FloatArray) -> Bins:
        """Group an ascending spectrum."""
        edges = np.unique(np.linspace(0, b.size, min(_BINS, b.size) + 1).astype(int))[:-1]
        count = np.diff(np.append(edges, b.size)).astype(float)
        return cls(edges, count, np.add.reduceat(b, edges) / count)

    def sum(self, values: FloatArray) -> FloatArray:
        """Sum over the groups, along the last axis."""
        return np.asarray(np.add.reduceat(values, self.edges, axis=-1))

    def slices(self) -> list[slice]:
        """Return the groups."""
        ends = [*self.edges.tolist(), None]
        return [slice(i, j) for i, j in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class _Path:
    """λ and u along a panel, points × d, for given s and a; and the inverses by which u answers to its source."""

    tau: FloatArray
    theta: FloatArray
    lam: FloatArray
    u: FloatArray
    response: FloatArray  # bins × p × p


@dataclass(frozen=True, eq=False)
class _Sight:
    """What the equations see of K at all points but the first: δ Tr K = Σ_i by_lambda_i δλ_i + by_u_i δu_i."""

    diagonal: FloatArray
    norm: FloatArray
    by_lambda: FloatArray
    by_u: FloatArray
    full: Sequence[Measured] = ()


class Newton:
    """The unknowns of one panel, and their equations. Without K, typical weights are meant: there is no W to know."""

    def __init__(
        self,
        start: Setting,
        K: Riccati | None,
        clock: Clock,
        first: Moment,
        tolerance: float,
        trust: bool,
    ) -> None:
        self.start, self.K, self.clock, self.first, self.tolerance = start, K, clock, first, tolerance
        self.rule, self.evaluations, self.trust = rule(), 0, trust
        self.log_m: FloatArray | None = None
        x = self.rule.x
        self.t, speed = clock.time(x), clock.speed(x)
        self.integral = self.rule.integral * speed
        self.derivative = self.rule.derivative / speed[:, None]
        self.scale = float(np.sqrt(start.energy))
        self.bins = Bins.of(start.b)
        self.correction = self._continued()
        self.s, self.a = self._first_guess()

    def _first_guess(self) -> tuple[FloatArray, FloatArray]:
        """Continue s as a power of t, and a as a straight line, but not far."""
        one, b, T = self.first, self.start.b, float(self.first.diagonal.sum())
        layer = float(_layer_slope(one.a, one.s, one.diagonal, one.norm, b)) * self.start.trained_layer
        T_slope = one.a * float((16.0 * b - 8.0 * one.s) @ one.diagonal) - 16.0 * one.a**2 * one.norm
        s_slope = layer * T + one.a * T_slope - 2.0 * self.start.offset_rate * one.s
        a = one.a + np.clip(layer * (self.t - self.t[0]), -0.3, 0.3)
        if one.t == 0.0 or one.s == 0.0:
            return np.full_like(self.t, one.s), a
        return one.s * (self.t / one.t) ** np.clip(one.t * s_slope / one.s, -2.0, 0.0), a

    def solve(self) -> Panel:
        """Find the unknowns: first for typical weights, then with K."""
        if self.K is None:
            return self._finish(*self._guess(1e-3 * np.sqrt(self.tolerance)))
        enough, begin = 0.1 * np.sqrt(self.tolerance), (self.s.copy(), self.a.copy())
        try:
            self._guess(0.1 * enough)
        except (FloatingPointError, NotConverged):
            if self.trust:
                raise
            self.s, self.a = begin
        for _ in range(_SWEEPS):
            path = self._path()
            sight = self._measured(path, self.K)
            step = self._step(path, sight)
            if self._size(step) < enough:
                return self._finish(path, sight, step)
            self._move(step)
        raise NotConverged("Newton's method for the scalars of the flow did not converge.")

    def _guess(self, enough: float) -> tuple[_Path, _Sight, FloatArray]:
        """Solve for typical weights; a panel that is too long for them is too long."""
        for _ in range(_GUESS_SWEEPS):
            path = self._path()
            sight = self._guessed(path)
            step = self._step(path, sight)
            if self._size(step) < enough:
                if self._tail() > 0.5 * self.tolerance:
                    break
                return path, sight, step
            self._move(step)
        raise NotConverged("The panel is too long.")

    def _tail(self) -> float:
        """Return the last Chebyshev coefficients of the unknowns: what more points would add."""
        unknowns = np.stack([self.s / self.scale, self.a / (1.0 + np.max(np.abs(self.a)))], axis=1)
        return float(np.max(np.abs(self.rule.coefficients[-3:-1] @ unknowns)))

    def _path(self) -> _Path:
        """Solve u̇ = a² − 16a(b − s/2)u at the points."""
        one, b, D, points = self.first, self.start.b, self.derivative, np.arange(self.t.size - 1)
        tau = one.tau + self.integral @ self.a
        theta = one.theta + 4.0 * (self.integral @ (self.a * self.s))

        def system(b: FloatArray) -> FloatArray:
            matrices = np.repeat(D[None, 1:, 1:], b.size, axis=0)
            matrices[:, points, points] += 16.0 * self.a[1:] * (b[:, None] - 0.5 * self.s[1:])
            return matrices

        source = self.a[1:] ** 2 - np.multiply.outer(one.u, D[1:, 0])
        u = np.maximum(np.linalg.solve(system(b), source[..., None])[..., 0], 0.0)
        lam = 8.0 * np.multiply.outer(tau, b) - theta[:, None]
        return _Path(
            tau,
            theta,
            lam,
            np.concatenate([one.u[None], u.T]),
            np.asarray(np.linalg.inv(system(self.bins.b)), dtype=np.float64),
        )

    def _guessed(self, path: _Path) -> _Sight:
        """See typical weights, times the correction carried on from the panel before."""
        one = typical(path.lam[1:], path.u[1:], self.start.gamma, self.start.width, self.log_m)
        self.log_m, factor = one.log_m, self.correction[1:, None]
        return _Sight(factor * one.diagonal, one.norm, factor * one.by_lambda, factor * one.by_u)

    def _measured(self, path: _Path, K: Riccati) -> _Sight:
        self.evaluations += self.t.size - 1
        full = [K(lam, u) for lam, u in zip(path.lam[1:], path.u[1:], strict=True)]
        squared = np.stack([one.squares_times(np.ones_like(one.diagonal)) for one in full])
        diagonal = np.stack([one.diagonal for one in full])
        weight = 2.0 * diagonal - 32.0 * path.u[1:] * squared
        return _Sight(diagonal, squared.sum(axis=1), weight, -16.0 * squared, full)

    def _continued(self) -> FloatArray:
        """Return the factor from typical weights to these, with the value and the slope of Tr K at the first point.

        With any other slope, d Tr K/dt = 16a⟨B,K⟩ − 16a²‖K‖² − 8as Tr K, s would jump.
        """
        one, b = self.first, self.start.b
        if self.K is None or one.t == 0.0:
            return np.ones_like(self.t)
        moving = 8.0 * one.a * b - 4.0 * one.a * one.s
        now = typical((8.0 * b * one.tau - one.theta)[None], one.u[None], self.start.gamma, self.start.width)
        guess = float(now.by_lambda[0] @ moving + now.by_u[0] @ (one.a**2 - 2.0 * moving * one.u))
        true = 2.0 * float(moving @ one.diagonal) - 16.0 * one.a**2 * one.norm
        sums = float(now.diagonal.sum()), float(one.diagonal.sum())
        slope = float(np.clip(one.t * (true / sums[1] - guess / sums[0]), -0.3, 0.3))
        x = np.log(self.t / one.t)
        return np.asarray(sums[1] / sums[0] * np.exp(slope * x / (1.0 + x)))

    def _offset(self) -> FloatArray:
        return np.asarray(self.first.c - 2.0 * self.start.offset_rate * (self.integral @ self.s))

    def _step(self, path: _Path, sight: _Sight) -> FloatArray:
        """Return what Newton's method subtracts from s, and from a."""
        one, first, p = self.start, self.first, self.t.size - 1
        inner, whole, S = self.integral[1:, 1:], self.integral[1:], self.rule.from_inside
        s, a, T = self.s[1:], self.a[1:], sight.diagonal.sum(axis=1)
        pull, pull_b = sight.by_lambda.sum(axis=1)[:, None], (sight.by_lambda @ one.b)[:, None]
        # δu = response·(8au δs + (2a − 16(b − s/2)u)δa), weighted by d Tr K/du and summed: bin by bin
        by_u_u = np.stack([sight.by_u[:, group] @ path.u[1:, group].T for group in self.bins.slices()])
        along = 8.0 * np.einsum("iqr,iqr->qr", path.response, by_u_u)
        T_by_s = -4.0 * ((pull * whole * self.a) @ S) + along * a
        residual = s - (a * T - float(one.b.sum()) - one.b0 + self._offset()[1:])
        by_s = np.eye(p) + 2.0 * one.offset_rate * (whole @ S) - a[:, None] * T_by_s
        if not one.trained_layer:
            return np.asarray(np.linalg.solve(by_s, residual))
        fresh = 2.0 * a * np.einsum("iqr,qi->qr", path.response, self.bins.sum(sight.by_u))
        damped = 16.0 * np.einsum("iqr,iqr,i->qr", path.response, by_u_u, self.bins.b)
        T_by_a = 8.0 * pull_b * inner - 4.0 * pull * inner * s + fresh + along * s - damped
        by_a = -np.diag(T) - a[:, None] * T_by_a
        if np.min(np.abs(self.a)) > _SMALL:
            second = a**2 - first.a**2 - 0.5 * (T - first.diagonal.sum())
            second_by_s, second_by_a = -0.5 * T_by_s, np.diag(2.0 * a) - 0.5 * T_by_a
        else:
            begin = _layer_slope(first.a, first.s, first.diagonal, first.norm, one.b)
            second = a - first.a - whole @ np.append(begin, _layer_slope(a, s, sight.diagonal, sight.norm, one.b))
            second_by_s = 2.0 * (whole * np.append(first.diagonal.sum(), T)) @ S
            second_by_a = np.eye(p) + 4.0 * inner * sight.norm
        J = np.block([[by_s, by_a], [second_by_s, second_by_a]])
        return np.asarray(np.linalg.solve(J, np.concatenate([residual, second])))

    def _size(self, step: FloatArray) -> float:
        """Return the size of a step, in units of s and a."""
        p = self.t.size - 1
        of_a = np.max(np.abs(step[p:]) / (1.0 + np.abs(self.a[1:]))) if step.size > p else 0.0
        return max(float(np.max(np.abs(step[:p]))) / self.scale, float(of_a))

    def _move(self, step: FloatArray) -> None:
        p = self.t.size - 1
        self.s -= self.rule.from_inside @ step[:p]
        if step.size > p:
            self.a[1:] -= step[p:]

    def _finish(self, path: _Path, sight: _Sight, step: FloatArray) -> Panel:
        """Take the last step, and add to first order what it changes."""
        b, one, size = self.start.b, self.first, self._size(step)
        diagonal = np.concatenate([one.diagonal[None], sight.diagonal])
        norm = np.append(one.norm, sight.norm)
        self._move(step)
        end = self._path()
        if size > self.tolerance:
            for q, full in enumerate(sight.full, start=1):
                moved = end.lam[q] - path.lam[q]
                w = end.u[q] - path.u[q] + 2.0 * path.u[q] * moved
                diagonal[q] += 2.0 * full.diagonal * moved - 16.0 * full.squares_times(w)
                norm[q] += full.change_of_norm(moved, w)
        risk = 2.0 * (self.a**2 * norm - 2.0 * self.a * (diagonal @ b) + b @ b) + np.append(one.s, self.s[1:]) ** 2
        tail = float(np.max(np.abs(self.rule.coefficients[-3:-1] @ risk))) / self.scale**2
        return Panel(
            self.clock,
            self.s,
            self.a,
            self._offset(),
            end.tau,
            end.theta,
            end.u,
            diagonal,
            norm,
            risk,
            max(tail, self._tail(), size**2),
        )


def _layer_slope(
    a: FloatArray | float, s: FloatArray | float, diagonal: FloatArray, norm: FloatArray | float, b: FloatArray
) -> FloatArray:
    """ȧ = 4⟨B, K⟩ − 4a‖K‖² − 2s Tr K."""
    return np.asarray(4.0 * diagonal @ b - 4.0 * a * norm - 2.0 * s * diagonal.sum(axis=-1))
