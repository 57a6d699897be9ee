"""One panel of a matrix flow: s(t), and a(t) where it is trained, at the Chebyshev points, by Newton's method.

With K the closed form of `riccati`, the unknowns satisfy

    s = a Tr K − Tr B − b₀ + c,   c = c₀ − 2μ∫s,   and   a² − a₀² = (Tr K − Tr K₀)/2,

the last by a conservation law (for small a, the equation for ȧ itself). The derivatives follow from K:
δ Tr K = Σ_i 2K_ii δλ_i − 16 Σ_i (K²)_ii (δu_i + 2u_i δλ_i).

The guess is the solution for typical weights (`typical`, the spectrum in groups), with Tr K, ⟨B, K⟩ and ‖K‖² each
as if λ were shifted a little, to first order, by what varies slowly. In many dimensions these shifts hardly depend on
the path, and are some percent: then K is computed at every fourth point only, the shifts are interpolated, and the
guess is solved again. Where this leaves more than the tolerance, K is computed at every other point, or at all of them;
and where that is not enough either, Newton's method takes the true K, of which one or two sweeps are needed. What its
last step changes is added to first order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.limits.flow import constants
from lazyscope.limits.flow.modes import Modes
from lazyscope.limits.flow.moments import Moment, Panel, Start
from lazyscope.limits.flow.panels import Clock, rule
from lazyscope.limits.flow.riccati import Measured, Riccati
from lazyscope.limits.flow.shifts import log_ratio, shifted_slopes, sums_and_units, typical_diagonal, unlearned, worth
from lazyscope.limits.flow.typical import Typical, typical


@dataclass(frozen=True, eq=False)
class _Path:
    """λ and u along a panel, points × d or groups, for given s and a."""

    tau: FloatArray
    theta: FloatArray
    lam: FloatArray
    u: FloatArray


@dataclass(frozen=True, eq=False)
class _Slopes:
    """Derivatives of Tr K at all points but the first: δ Tr K = Σ_i by_lambda_i δλ_i + by_u_i δu_i, in sums."""

    pull: FloatArray  # Σ by_lambda
    pull_b: FloatArray  # Σ b·by_lambda
    by_u: FloatArray  # points × groups
    by_u_u: FloatArray  # groups × points × points: by_u at the one, u at the other
    response: FloatArray  # groups × points × points: how u answers to its source


class Newton:
    """The unknowns of one panel, and their equations. Without K, typical weights are meant: there is no W to know."""

    def __init__(
        self,
        start: Start,
        K: Riccati | None,
        clock: Clock,
        first: Moment,
        tolerance: float,
        trust: bool,
        stride: int,
    ) -> None:
        self.start, self.K, self.clock, self.first, self.tolerance = start, K, clock, first, tolerance
        self.rule, self.evaluations, self.trust, self.stride = rule(), 0, trust, stride
        x = self.rule.x
        self.t, speed = clock.time(x), clock.speed(x)
        self.integral = self.rule.integral * speed
        self.derivative = self.rule.derivative / speed[:, None]
        self.scale = float(np.sqrt(max(start.energy, first.s**2)))  # errors are relative where the risk is large
        self.groups = start.groups
        self.log_m: FloatArray | None = None
        self.tail, self.spare = np.inf, False
        self.inverse: FloatArray | None = None  # of the derivatives
        self.modes: Modes | None = None  # of the present s and a
        self.shift = self._continued()
        self.s, self.a = self._first_guess()

    def _first_guess(self) -> tuple[FloatArray, FloatArray]:
        """Continue s as a power of t, and a with log t, as they end in the panel before; but not far."""
        first, (early, late) = self.first, constants.LAYER_CHANGES
        if first.t == 0.0:
            layer = float(_layer_slope(first.a, first.s, first.sums)) * self.start.trained_layer
            return np.full_like(self.t, first.s), first.a + np.clip(layer * self.t, -early, early)
        s_slope, a_slope = first.slopes
        x = np.log(self.t / first.t)
        power = float(np.clip(s_slope / first.s, *constants.POWERS)) if first.s != 0.0 else 0.0
        return first.s * np.exp(power * x), first.a + np.clip(a_slope * x, -late, late)

    def solve(self) -> Panel:
        """Find the unknowns: first for typical weights, then with K."""
        if self.K is None:
            return self._settled(self._guess(constants.TYPICAL_ENOUGH * np.sqrt(self.tolerance)), None, 0.0)
        enough, begin = constants.NEWTON_ENOUGH * np.sqrt(self.tolerance), (self.s.copy(), self.a.copy())
        try:
            usual = self._guess((constants.COARSE_GUESS_ENOUGH if self.stride else constants.GUESS_ENOUGH) * enough)
            if self.stride:
                panel = self._interpolated(self.K, usual)
                if panel is not None:
                    return panel
                self.stride = 0
        except (FloatingPointError, NotConverged):
            if self.trust or self.stride:
                raise
            self.s, self.a, self.modes = *begin, None
        for _ in range(constants.NEWTON_SWEEPS):
            path = self._path(self.start.b, self.first.u)
            sums, slopes, full = self._measured(path, self.K)
            step = self._step(sums, slopes)
            if self._size(step) < enough:
                return self._finish(path, sums, full, step)
            self._move(step)
        raise NotConverged("Newton's method for the scalars of the flow did not converge.")

    def _guess(self, enough: float) -> Typical:
        """Solve for typical weights; a panel that is too long for them is too long."""
        before = np.inf
        for sweep in range(constants.GUESS_SWEEPS):
            afresh = self.inverse is None or before > constants.NEAR
            path = self._path(self.groups.b, self.first.group_u)
            usual, sums, slopes = self._guessed(path, afresh)
            step = self._step(sums, slopes)
            size = self._size(step)
            if size < enough:
                self.tail = self._tail(self._risk(np.concatenate([self.first.sums[None], sums])))
                if self.tail > constants.ACCEPTED * self.tolerance:
                    break
                return usual
            if sweep > 2 and size > constants.SLOW * before:
                break
            if size > constants.STALE * before:
                self.inverse = None
            before = size
            self._move(step)
        raise NotConverged("The panel is too long.")

    def _interpolated(self, K: Riccati, usual: Typical) -> Panel | None:
        """Find the shifts at a few points and solve again; None where they are not smooth, or not small.

        They were found on a path that then changes by what they have changed: they are off by about the product.
        """
        kept: dict[int, tuple[FloatArray, FloatArray]] = {}
        for _ in range(constants.ROUNDS):
            few = np.arange(self.stride, self.t.size, self.stride)
            path = self._path(self.start.b, self.first.u)
            sums, units = sums_and_units(usual, self.groups)
            for q in [q for q in few.tolist() if q not in kept]:
                diagonal, norm = K.sums(path.lam[q], path.u[q])
                self.evaluations += 1
                true = np.array([diagonal.sum(), diagonal @ self.start.b, norm])
                kappa = typical_diagonal(path.lam[q], path.u[q], self.start.gamma, usual.log_m[q - 1])
                kept[q] = (true - sums[q - 1]) / units[q - 1], log_ratio(diagonal, kappa, path.u[q])
            coarse = rule(few.size)
            shifts = np.stack([self.shift[0], *(kept[q][0] for q in few.tolist())])
            off = float(np.max(np.abs(shifts)))
            if off > constants.LARGEST_SHIFT:
                self.tail = np.inf
                raise NotConverged("The guess is far off.")
            changed = float(np.max(np.abs(shifts - self.shift[np.append(0, few)])[:, 0]))
            self.shift = coarse.at(self.rule.x) @ shifts
            usual = self._guess(constants.SHIFTED_ENOUGH * self.tolerance)
            worths = worth(usual, self.groups, self.a[1:], off * changed, coarse.coefficients[-1] @ shifts)
            left, missed = (float(np.max(each)) / self.start.energy for each in worths)
            missed /= constants.BEYOND_SEEN
            if max(left, missed) < constants.MAY_MISS * self.tolerance:
                self.spare = max(left, missed) < constants.STRIDE_AGAIN * self.tolerance
                return self._settled(usual, [kept[q][1] for q in few.tolist()], max(left, missed))
            if left > constants.MAY_MISS * self.tolerance:
                kept.clear()
            elif self.stride == 1:
                return None
            else:
                self.stride //= 2
        return None

    def _tail(self, risk: FloatArray) -> float:
        """Return the last Chebyshev coefficients of the unknowns and of the risk: what more points would add."""
        seen = np.stack([self.s / self.scale, self.a / (1.0 + np.max(np.abs(self.a))), risk / self.scale**2], axis=1)
        return float(np.max(np.abs(self.rule.coefficients[-constants.TAIL :] @ seen)))

    def _risk(self, sums: FloatArray) -> FloatArray:
        """Return 2‖aK − B‖² + s² at the points; s is not polynomial at the first one, where it is known."""
        b = self.start.b
        square = self.a**2 * sums[:, 2] - 2.0 * self.a * sums[:, 1] + b @ b
        return np.asarray(2.0 * square + np.append(self.first.s, self.s[1:]) ** 2)

    def _answers(self) -> Modes:
        """Return how u answers to its sources, for the present s and a."""
        if self.modes is None:
            self.modes = Modes.of(self.derivative[1:, 1:], self.a[1:], self.s[1:], float(self.start.b[-1]))
        return self.modes

    def _path(self, b: FloatArray, first_u: FloatArray) -> _Path:
        """Return λ and u."""
        first = self.first
        tau = first.tau + self.integral @ self.a
        theta = first.theta + 4.0 * (self.integral @ (self.a * self.s))
        u = self._answers().solve(b, self.a[1:] ** 2, -self.derivative[1:, 0], first_u)
        lam = 8.0 * np.multiply.outer(tau, b) - theta[:, None]
        return _Path(tau, theta, lam, np.concatenate([first_u[None], np.maximum(u, 0.0)]))

    def _typical(self, lam: FloatArray, u: FloatArray, log_m: FloatArray | None = None) -> Typical:
        return typical(lam, u, self.start.gamma, self.start.width, self.groups.count, log_m)

    def _guessed(self, path: _Path, afresh: bool) -> tuple[Typical, FloatArray, _Slopes | None]:
        """Return the sums of typical weights, shifted, and their derivatives if these are computed afresh."""
        usual, b = self._typical(path.lam[1:], path.u[1:], self.log_m), self.groups.b
        self.log_m = usual.log_m
        sums, units = sums_and_units(usual, self.groups)
        sums = sums + self.shift[1:] * units
        if not afresh:
            return usual, sums, None
        by_lambda, by_u = shifted_slopes(usual, self.groups, self.shift[1:, :1])
        by_u_u = by_u.T[:, :, None] * path.u[1:].T[:, None, :]
        response = self._answers().response(b)
        return usual, sums, _Slopes(by_lambda.sum(axis=1), by_lambda @ b, by_u, by_u_u, response)

    def _measured(self, path: _Path, K: Riccati) -> tuple[FloatArray, _Slopes, Sequence[Measured]]:
        """Return the sums and derivatives of the given weights, and K at all points but the first."""
        self.evaluations += self.t.size - 1
        full = [K(lam, u) for lam, u in zip(path.lam[1:], path.u[1:], strict=True)]
        squared = np.stack([K_t.squares_times(np.ones_like(K_t.diagonal)) for K_t in full])
        diagonal, b, u = np.stack([K_t.diagonal for K_t in full]), self.start.b, path.u[1:]
        by_lambda, by_u = 2.0 * diagonal - 32.0 * u * squared, -16.0 * squared
        sums = np.stack([diagonal.sum(axis=1), diagonal @ b, squared.sum(axis=1)], axis=1)
        by_u_u = np.stack([by_u[:, group] @ u[:, group].T for group in self.groups.slices()])
        response = self._answers().response(self.groups.b)
        slopes = _Slopes(by_lambda.sum(axis=1), by_lambda @ b, self.groups.sum(by_u), by_u_u, response)
        return sums, slopes, full

    def _continued(self) -> FloatArray:
        """Return the shifts from typical weights to these, points × 3: as they are at the first point.

        That of Tr K has its slope there too, for a guess that is not improved with K: with any other, s would jump.
        """
        first, b = self.first, self.groups.b
        if self.K is None:
            return np.zeros((self.t.size, 3))
        now = self._typical((8.0 * b * first.tau - first.theta)[None], first.group_u[None])
        self.first_log_m, self.log_m = now.log_m, np.repeat(now.log_m, self.t.size - 1)
        (sums,), (units,) = sums_and_units(now, self.groups)
        shift = np.repeat(((first.sums - sums) / units)[None], self.t.size, axis=0)
        if first.t > 0.0 and not self.stride:
            x = np.log(self.t / first.t)
            drift = first.t * (_trace_slope(first) - self._guessed_slope(shift[0, 0], sums[0], units[0])) / units[0]
            shift[:, 0] += float(np.clip(drift, -constants.LARGEST_DRIFT, constants.LARGEST_DRIFT)) * x / (1.0 + x)
        return shift

    def _guessed_slope(self, shift: float, trace: float, unit: float) -> float:
        """Return d Tr K/dt at the first point for typical weights with this shift, by a short step."""
        first, b, h = self.first, self.groups.b, constants.DIFFERENCE * self.first.t
        moving = 8.0 * first.a * b - 4.0 * first.a * first.s
        lam = 8.0 * b * first.tau - first.theta + h * moving
        u = first.group_u + h * (first.a**2 - 2.0 * moving * first.group_u)
        then = self._typical(lam[None], np.maximum(u, 0.0)[None], self.first_log_m)
        (sums,), (units,) = sums_and_units(then, self.groups)
        return float(sums[0] - trace + shift * (units[0] - unit)) / h

    def _offset(self) -> FloatArray:
        return np.asarray(self.first.c - 2.0 * self.start.offset_rate * (self.integral @ self.s))

    def _step(self, sums: FloatArray, slopes: _Slopes | None) -> FloatArray:
        """Return what Newton's method subtracts from s and from a; without new derivatives it takes the last ones."""
        start, first = self.start, self.first
        s, a, T = self.s[1:], self.a[1:], sums[:, 0]
        left = s - (a * T - float(start.b.sum()) - start.b0 + self._offset()[1:])
        if start.trained_layer:
            if self._conserving():
                second = a**2 - first.a**2 - 0.5 * (T - first.sums[0])
            else:
                begin = _layer_slope(first.a, first.s, first.sums)
                second = a - first.a - self.integral[1:] @ np.append(begin, _layer_slope(a, s, sums))
            left = np.concatenate([left, second])
        if slopes is not None:
            self.inverse = np.asarray(np.linalg.inv(self._jacobian(sums, slopes)), dtype=np.float64)
        assert self.inverse is not None
        return np.asarray(self.inverse @ left)

    def _conserving(self) -> bool:
        """Say whether a is large enough for the conservation law to determine it."""
        return bool(np.min(np.abs(self.a)) > constants.SMALL_LAYER)

    def _jacobian(self, sums: FloatArray, slopes: _Slopes) -> FloatArray:
        """Return the derivatives of both equations by s and a, at all points but the first."""
        start, first, p = self.start, self.first, self.t.size - 1
        inner, whole, S = self.integral[1:, 1:], self.integral[1:], self.rule.from_inside
        s, a, T = self.s[1:], self.a[1:], sums[:, 0]
        pull, pull_b = slopes.pull[:, None], slopes.pull_b[:, None]
        # δu = response·(8au δs + (2a − 16(b − s/2)u)δa), weighted by d Tr K/du and summed: group by group
        weighted = slopes.response * slopes.by_u_u
        along = 8.0 * weighted.sum(axis=0)
        T_by_s = -4.0 * ((pull * whole * self.a) @ S) + along * a
        by_s = np.eye(p) + 2.0 * start.offset_rate * (whole @ S) - a[:, None] * T_by_s
        if not start.trained_layer:
            return np.asarray(by_s)
        fresh = 2.0 * a * np.einsum("iqr,qi->qr", slopes.response, slopes.by_u)
        damped = 16.0 * np.tensordot(self.groups.b, weighted, axes=1)
        T_by_a = 8.0 * pull_b * inner - 4.0 * pull * inner * s + fresh + along * s - damped
        by_a = -np.diag(T) - a[:, None] * T_by_a
        if self._conserving():
            second_by_s, second_by_a = -0.5 * T_by_s, np.diag(2.0 * a) - 0.5 * T_by_a
        else:
            second_by_s = 2.0 * (whole * np.append(first.sums[0], T)) @ S
            second_by_a = np.eye(p) + 4.0 * inner * sums[:, 2]
        return np.block([[by_s, by_a], [second_by_s, second_by_a]])

    def _size(self, step: FloatArray) -> float:
        """Return the size of a step, in units of s and a."""
        p = self.t.size - 1
        of_a = np.max(np.abs(step[p:]) / (1.0 + np.abs(self.a[1:]))) if step.size > p else 0.0
        return max(float(np.max(np.abs(step[:p]))) / self.scale, float(of_a))

    def _move(self, step: FloatArray) -> None:
        p, self.modes = self.t.size - 1, None
        self.s -= self.rule.from_inside @ step[:p]
        if step.size > p:
            self.a[1:] -= step[p:]

    def _settled(self, usual: Typical, logs: Sequence[FloatArray] | None, error: float) -> Panel:
        """Return the panel of the guess, its diagonal corrected by logarithms of ratios at a few points, if any."""
        begin, gamma, end = self.first, self.start.gamma, self._path(self.start.b, self.first.u)
        sums, units = sums_and_units(usual, self.groups)
        sums = np.concatenate([begin.sums[None], sums + self.shift[1:] * units])
        diagonal = typical_diagonal(end.lam[1:], end.u[1:], gamma, usual.log_m)
        if logs is not None:
            first = typical_diagonal(end.lam[0], begin.u, gamma, self.first_log_m[0])
            spread = rule(len(logs)).at(self.rule.x[1:]) @ np.stack([log_ratio(begin.diagonal, first, begin.u), *logs])
            diagonal = diagonal * np.exp(spread * unlearned(diagonal, end.u[1:]))
        diagonal *= (sums[1:, 0] / diagonal.sum(axis=1))[:, None]
        return self._panel(end, np.concatenate([begin.diagonal[None], diagonal]), sums, error)

    def _finish(self, path: _Path, seen: FloatArray, full: Sequence[Measured], step: FloatArray) -> Panel:
        """Take the last step, and add to first order what it changes."""
        b, first, size = self.start.b, self.first, self._size(step)
        diagonal = np.stack([first.diagonal, *(each.diagonal for each in full)])
        norm = np.append(first.sums[2], seen[:, 2])
        self._move(step)
        end = self._path(b, first.u)
        if size > self.tolerance:
            for q, each in enumerate(full, start=1):
                moved = end.lam[q] - path.lam[q]
                w = end.u[q] - path.u[q] + 2.0 * path.u[q] * moved
                diagonal[q] += 2.0 * each.diagonal * moved - 16.0 * each.squares_times(w)
                norm[q] += each.change_of_norm(moved, w)
        return self._panel(end, diagonal, np.stack([diagonal.sum(axis=1), diagonal @ b, norm], axis=1), size**2)

    def _panel(self, end: _Path, diagonal: FloatArray, sums: FloatArray, error: float) -> Panel:
        """Return what was found; `error` is what is left besides the tails."""
        risk = self._risk(sums)
        group_u = self._path(self.groups.b, self.first.group_u).u
        scalars = self.s, self.a, self._offset(), end.tau, end.theta
        return Panel(self.clock, *scalars, end.u, group_u, diagonal, sums, risk, max(self._tail(risk), error))


def _layer_slope(a: FloatArray | float, s: FloatArray | float, sums: FloatArray) -> FloatArray:
    """Return ȧ = 4⟨B, K⟩ − 4a‖K‖² − 2s Tr K."""
    return np.asarray(4.0 * sums[..., 1] - 4.0 * a * sums[..., 2] - 2.0 * s * sums[..., 0])


def _trace_slope(now: Moment) -> float:
    """Return d Tr K/dt = 16a⟨B, K⟩ − 8as Tr K − 16a²‖K‖²."""
    T, with_b, norm = now.sums.tolist()
    return float(now.a * (16.0 * with_b - 8.0 * now.s * T - 16.0 * now.a * norm))
