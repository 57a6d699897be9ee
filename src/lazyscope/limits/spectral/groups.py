"""Deterministic equivalents for neurons that bring several features each: the tangent model at finite width.

A neuron of the tangent model has d features, σ′(⟨w, x⟩)⟨a, x⟩/√d for a in an orthonormal basis: d − 1 across w and one
along it. Their kernel K_N = (1/N)Σ_i φ_iφ_iᵀ is a sum of independent operators of rank d, one for each neuron, and its
mean K has the eigenvalues ξ_k = X_k + Y_k, m_k times each, X_k from the features across and Y_k from those along. Leave
one neuron out of the resolvent G = (K_N + ν)⁻¹ and put it back by Woodbury's identity, with d×d blocks φᵀGφ/N, which
for a G of the form below have one eigenvalue across w and one along it:

    G ≈ (ν + pX + qY)⁻¹,      N(d − 1)(1 − p) = Σ m pX/(ν + pX + qY),      N(1 − q) = Σ m qY/(ν + pX + qY),
    n − λ/ν = df₁ = Σ m (pX + qY)/(ν + pX + qY) = N(d − 1)(1 − p) + N(1 − q).

With one feature a neuron (Y alone) this is `equivalent`, ν₂ = ν/q. Kernel ridge regression with a kernel of resolvent G
has risk + τ² = (ν²⟨f, G²f⟩ + τ²)/(1 − df₂/n), and G² = −dG/dν, df₂ = df₁ + ν d df₁/dν. Let a = ν/p, c = q/p and

    h = a/(a + X + cY),    x = X/(a + X + cY),    y = cY/(a + X + cY),    h + x + y = 1;    S_xy = Σ m xy, and so on.

The logarithmic derivatives α, β of p, q in ν solve a 2×2 system whose determinant is a sum of positive terms,

    α(N(d − 1)p + S_xh + S_xy) − βS_xy = S_xh,      β(Nq + S_yh + S_xy) − αS_xy = S_yh,

bias = n Σ E h(h + αx + βy)/w,    variance = τ² Σ m((x + y)² + h(αx + βy))/w,    w = λ/ν + N(d − 1)pα + Nqβ,

where E are the energies of the target.

Since Nd − df₁ = Np(d − 1 + c), a and c satisfy (n − df₁)(Nd − df₁) = λN(d − 1 + c)/a, in which nothing cancels.

The d×d blocks are averages over the other N neurons, which need more than d of them to be near their mean: the formula
is for N ≥ 2d, where measured errors are a few per cent at d = 12 and about one at d = 24 (docs/every-size.md). For
N < d it can be wrong: two neurons with σ = u² share a feature, ⟨w, x⟩⟨w′, x⟩, and N of them have less than Nd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.spectral.equivalent import Spectrum, check_tail, errors
from lazyscope.numerics.compiled import compiled

_TINY = 1e-17  # of a: eigenvalues below act as a tail
_QUADRATIC = 1e-8  # of a logarithm: where a step is as small, the next one would be its square


@dataclass(frozen=True, eq=False)
class Groups:
    """The spectrum of the mean kernel, and how much of it is due to the features along the weights: Y and its tail."""

    whole: Spectrum
    Y: FloatArray
    tail_along: float
    d: int


def risks(
    groups: Groups, noise: float, N: FloatArray, n: FloatArray, ridge: FloatArray, degrees: int = 0
) -> dict[str, FloatArray]:
    """Return the risk and what it is made of, for finite N and sizes that broadcast against one another.

    About eight values of a, with two or three of c each, at every point: sums of as many terms as there are eigenspaces
    that are not tiny.
    """
    shape = np.broadcast_shapes(N.shape, n.shape, ridge.shape)
    N, n, ridge = (np.array(np.broadcast_to(size, shape), dtype=np.float64).ravel() for size in (N, n, ridge))
    spectrum, d, tau2 = groups.whole, groups.d, noise**2
    trace = float(np.sum(spectrum.multiplicity * spectrum.xi)) + spectrum.tail
    Y = np.minimum(groups.Y, spectrum.xi) / trace
    X = spectrum.xi / trace - Y
    tails = np.array([max(0.0, spectrum.tail - groups.tail_along), groups.tail_along]) / trace
    ridge = ridge / trace
    seen = spectrum.xi > 0.0
    parts = (X[seen], Y[seen], spectrum.multiplicity[seen], spectrum.energy[seen])
    a, c, residual, sums = _solved(*parts, tails, spectrum.rank, float(d), N, n, ridge)
    sums[7] += float(np.sum(spectrum.energy[~seen]))
    check_tail(spectrum, a * trace, np.minimum(N * d, n))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = _errors(spectrum, tau2, d, a, c, sums, N, n, ridge)
        whole = X[:degrees] + c[:, None] * Y[:degrees]
        learnt = np.where(whole + a[:, None] > 0.0, whole / (whole + a[:, None]), 0.0)
    values |= {"residual": residual} | ({"learnt": learnt} if degrees else {})
    return {name: value.reshape(*shape, *value.shape[1:]) for name, value in values.items()}


def _errors(
    spectrum: Spectrum, tau2: float, d: int, a: FloatArray, c: FloatArray, sums: FloatArray, N: FloatArray,
    n: FloatArray, ridge: FloatArray,
) -> dict[str, FloatArray]:  # fmt: skip
    """Bias, variance and training error from the root and the sums over eigenspaces there, without a subtraction."""
    across, along, S_xh, S_yh, S_xy, S_xx, S_yy, e_hh, e_xh, e_yh = sums
    df1, many = across + along, np.isinf(n)
    features, weight = N * d, N * (d - 1.0 + c)  # Nd − df₁ = p·weight
    free = (ridge == 0.0) | many
    # p from weight·p² + (n − Nd)p = λ/a, by the form of the root that does not cancel
    gap, product = np.where(many, 1.0, n - features), np.where(free, 0.0, ridge / a)
    large = np.abs(gap) + np.sqrt(gap**2 + 4.0 * weight * product)
    exact = np.minimum(np.minimum(features, n), spectrum.rank)
    p = np.where(free, np.maximum(features - exact, 0.0) / weight,
                 np.where(gap > 0.0, 2.0 * product / large, large / (2.0 * weight)))  # fmt: skip
    left = np.where(free, np.where(many, 1.0, n - exact), product / p)  # n − df₁ = λ/ν
    A, B = N * (d - 1.0) * p + S_xh, N * c * p + S_yh
    det = A * B + (A + B) * S_xy
    alpha = np.where(det > 0.0, (S_xh * (B + S_xy) + S_yh * S_xy) / det, 0.0)
    beta = np.where(det > 0.0, (S_yh * (A + S_xy) + S_xh * S_xy) / det, 0.0)
    whole = left + N * (d - 1.0) * p * alpha + N * c * p * beta
    once = e_hh + alpha * e_xh + beta * e_yh + spectrum.beyond
    df2 = S_xx + 2.0 * S_xy + S_yy + alpha * S_xh + beta * S_yh
    bias = np.where(many, once, n * once / whole)
    variance = np.where(many, 0.0, tau2 * df2 / whole)
    return errors(bias, variance, np.where(many, 1.0, left / n), tau2, df1)


@compiled
def _solved(
    X: FloatArray,
    Y: FloatArray,
    m: FloatArray,
    energy: FloatArray,
    tails: FloatArray,
    rank: float,
    d: float,
    N: FloatArray,
    n: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Solve for a and c at every point, by Newton's method in log a around one in log c, both inside brackets.

    For given a, c·p(c) = q(c) with p = 1 − Σmx/(N(d − 1)), q = 1 − Σmy/N has one solution with p > 0. Then
    (n − df₁)(Nd − df₁) = λN(d − 1 + c)/a says which df₁ belongs to a, as in `equivalent`. Eigenspaces from which on all
    X + cY < 10⁻¹⁷a enter by their traces.
    """
    a_out, c_out, residual, sums = np.zeros(n.size), np.ones(n.size), np.zeros(n.size), np.zeros((10, n.size))
    largest, unseen = np.zeros(X.size + 1), np.zeros(X.size + 1)
    across, along = np.full(X.size + 1, tails[0]), np.full(X.size + 1, tails[1])
    for k in range(X.size - 1, -1, -1):  # of eigenspace k and all that follow
        largest[k] = max(largest[k + 1], X[k] + Y[k])
        unseen[k] = unseen[k + 1] + energy[k]
        across[k] = across[k + 1] + m[k] * X[k]
        along[k] = along[k + 1] + m[k] * Y[k]
    for i in range(n.size):
        features = N[i] * d
        least = min(n[i], features)
        free = ridge[i] == 0.0 or np.isinf(n[i])
        if free and least >= rank:
            for k in range(X.size):  # ν = 0: everything that features see is learnt
                x = X[k] / (X[k] + Y[k])
                sums[0, i] += m[k] * x
                sums[1, i] += m[k] * (1.0 - x)
                sums[4, i] += m[k] * x * (1.0 - x)
                sums[5, i] += m[k] * x * x
                sums[6, i] += m[k] * (1.0 - x) ** 2
            continue
        low, high = -700.0, 700.0
        z, u = np.log((1.0 + 2.0 * (0.0 if free else ridge[i])) / least), 0.0  # log a, log c
        a, c, fx, fy, last = 1.0, 1.0, 0.0, 0.0, False
        while True:
            a = np.exp(z)
            below, above, settled = -60.0, 60.0, False
            while True:
                c = np.exp(u)
                fx, fy, xh, yh, xy, k = 0.0, 0.0, 0.0, 0.0, 0.0, 0
                while largest[k] * max(1.0, c) > _TINY * a:
                    whole = 1.0 / (a + X[k] + c * Y[k])
                    x, y, h = m[k] * X[k] * whole, c * Y[k] * whole, a * whole
                    fx += x
                    fy += m[k] * y
                    xh += x * h
                    yh += m[k] * y * h
                    xy += x * y
                    k += 1
                fx += across[k] / a
                xh += across[k] / a
                fy += c * along[k] / a
                yh += c * along[k] / a
                p, q = 1.0 - fx / (N[i] * (d - 1.0)), 1.0 - fy / N[i]
                error = c * p - q
                du = c * p + c * xy / (N[i] * (d - 1.0)) + (yh + xy) / N[i]
                if settled:
                    break
                if error > 0.0:
                    above = u
                else:
                    below = u
                step = u - error / du if du > 0.0 else 0.5 * (below + above)
                step = min(max(step, u - 2.0), u + 2.0)
                if abs(step - u) <= _QUADRATIC:
                    settled = True
                elif not below < step < above:
                    step = 0.5 * (below + above)
                    settled = above - below <= _QUADRATIC
                u = step
            # d log c / d log a, for the slope of df₁ and of the equation
            dc = -(c * xh / (N[i] * (d - 1.0)) - yh / N[i]) / du if du > 0.0 else 0.0
            df1, slope = fx + fy, xh + yh - dc * yh  # slope: −d df₁/d log a
            if free:
                value, change = least - df1, slope
            else:
                C = ridge[i] * N[i] * (d - 1.0 + c) / a
                root = np.sqrt((n[i] - features) ** 2 + 4.0 * C)
                wanted = 2.0 * (n[i] * features - C) / (n[i] + features + root)
                value, change = wanted - df1, C / root * (1.0 - dc * c / (d - 1.0 + c)) + slope
            residual[i] = max(abs(value) / least, abs(error) / max(1.0, c))
            if last:
                break
            if value > 0.0:
                high = z
            else:
                low = z
            step = z - value / change if change > 0.0 else 0.5 * (low + high)
            step = min(max(step, z - 4.0), z + 4.0)  # far from the root the slope says little
            if abs(step - z) <= _QUADRATIC:
                last = True
            elif not low < step < high:
                step = 0.5 * (low + high)
                last = high - low <= _QUADRATIC
            z = step
        a_out[i], c_out[i] = a, c
        sums[0, i], sums[1, i], sums[2, i], sums[3, i], sums[4, i] = fx, fy, xh, yh, xy
        for j in range(k):
            whole = 1.0 / (a + X[j] + c * Y[j])
            x, y, h = X[j] * whole, c * Y[j] * whole, a * whole
            sums[5, i] += m[j] * x * x
            sums[6, i] += m[j] * y * y
            sums[7, i] += energy[j] * h * h
            sums[8, i] += energy[j] * x * h
            sums[9, i] += energy[j] * y * h
        sums[7, i] += unseen[k]
    return a_out, c_out, residual, sums
