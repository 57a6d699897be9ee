"""Derivatives of activations of any order, in closed form, as Taylor coefficients at u.

    σ(u + z) = Σ_k c_k(u) z^k,      c_k = σ^{(k)}(u)/k!.

They follow from the equation that σ solves, coefficient by coefficient:

- y = tanh, sigmoid:  y′ = α + βy + γy²      (k+1) c_{k+1} = αδ_{k0} + βc_k + γ Σ_j c_j c_{k−j}
- y = e^{−κu²/2}:     y′ = −κuy              (k+1) c_{k+1} = −κ (u c_k + c_{k−1})
- u₊^p/p!:            c_k = u₊^{p−k}/((p−k)! k!)
- ∫y (softplus, erf): c_{k+1} = c_k[y]/(k+1);     u·y (silu, gelu): c_k = u c_k[y] + c_{k−1}[y]

and polynomials (`numpy.polynomial.Polynomial` is a callable with its own derivatives), sine and cosine. No finite
differences, no automatic differentiation: rounding alone, float32 or float64.
"""

from __future__ import annotations

from math import factorial, inf, pi, sqrt
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, whole_number
from lazyscope.compiled import compiled
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.exponential import exp_into, tanh_into

_ANALYTIC = ("tanh", "sigmoid", "softplus", "erf", "gelu", "silu", "sin", "cos")
_POLYNOMIALS = {"square": Polynomial([0, 0, 1]), "cube": Polynomial([0, 0, 0, 1])}
_BLOCK = 1024  # points at once: a few rows of them stay in the first-level cache


def smoothness(sigma: Activation) -> float:
    """Return the largest k with σ ∈ C^k and σ^{(k)} Lipschitz: p − 1 for u₊^p, ∞ for an analytic σ.

    Assumption A of Bai & Lee (2019) asks for k = 2 with the quadratic model, and in general for the order of the model;
    its bounds on |σ′| and |σ″| near 0 are not asked for ("merely for technical convenience", footnote 2 there).

    >>> smoothness(Activation("relu3")), smoothness(Activation("relu")), smoothness(Activation("tanh"))
    (2.0, 0.0, inf)
    """
    if sigma.rectified is not None:
        return float(sigma.rectified.power - 1)
    if polynomial(sigma) is not None or sigma.name_or_callable in _ANALYTIC:
        return inf
    must = f"have derivatives in closed form: {', '.join((*_POLYNOMIALS, *_ANALYTIC))}, relu^p, or a Polynomial"
    advice = "A callable tells its values only; numpy.polynomial.Polynomial([…]) tells its derivatives, too."
    raise InvalidParameter.of("Taylor", "activation", must, sigma.name, advice)


def polynomial(sigma: Activation) -> Polynomial | None:
    """Return σ as a polynomial in u where it is one."""
    source = sigma.name_or_callable
    if isinstance(source, Polynomial):
        return source.convert()
    return _POLYNOMIALS.get(source) if isinstance(source, str) else None


def require_smooth(sigma: Activation, order: int) -> None:
    """Refuse an activation that is too rough for a Taylor model of this order.

    >>> require_smooth(Activation("relu"), 2)
    Traceback (most recent call last):
    lazyscope.errors.NoTheorem: The Taylor model of order 2 assumes σ ∈ C² with σ^(2) Lipschitz (Assumption A of Bai & \
Lee 2019). Got relu, which has 0 such derivatives, instead. Use relu3, or a smooth σ such as tanh or softplus.
    """
    have = smoothness(sigma)
    if have < order:
        power = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(order))
        smoother = f"relu{order + 1}, or " if order + 1 <= 5 else ""
        raise NoTheorem.of(
            f"The Taylor model of order {order}",
            f"σ ∈ C{power} with σ^({order}) Lipschitz (Assumption A of Bai & Lee 2019)",
            f"{sigma.name}, which has {max(0, int(have))} such derivatives,",
            f"Use {smoother}a smooth σ such as tanh or softplus.",
        )


def derivative(sigma: Activation, u: Any, k: int) -> FloatArray:
    """σ^{(k)}(u), elementwise, in float64.

    >>> derivative(Activation("tanh"), [0.0, 1.0], 3).round(6)
    array([-2.      ,  0.621627])
    """
    k = whole_number(k, "derivative", "k", least=0)
    return np.asarray(factorial(k) * taylor_coefficients(sigma, np.asarray(u, dtype=np.float64), k)[k])


def taylor_coefficients(
    sigma: Activation, u: NDArray[Any], order: int, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Return c_0(u) … c_order(u), shape (order + 1, *u.shape), in the precision of u; into `out` where it is given.

    One pass over u in blocks that stay in cache; about order² flops a point and one exp or tanh.

    >>> taylor_coefficients(Activation("square"), np.array([3.0]), 3)[:, 0]
    array([9., 6., 1., 0.])
    """
    require_smooth(sigma, max(0, order - 1))  # σ^{(order)} itself must be a function
    c = np.empty((order + 1, *u.shape), dtype=u.dtype) if out is None else out
    flat, points = c.reshape(order + 1, -1), np.ravel(u)
    if sigma.rectified is not None:
        _rectified(sigma, points, flat)
        return c
    exact = polynomial(sigma)
    if exact is not None:
        for k in range(order + 1):
            flat[k] = exact.deriv(k)(points) / factorial(k) if k else exact(points)
        return c
    for start in range(0, points.size, 1 << 15):
        part = slice(start, start + (1 << 15))
        _RULES[sigma.name](points[part], flat[:, part])
    return c


# -- one rule for each family: fill c (order + 1, n) at the points u (n,) --------------------------------------


def _rectified(sigma: Activation, u: NDArray[Any], c: NDArray[Any]) -> None:
    """u₊^p/p! for parity 0; for |u| and sign (parity ±1) plus or minus the mirror image."""
    shape = sigma.rectified
    assert shape is not None
    _rectified_powers(u, c, shape.power, _factors(shape.power, len(c), c.dtype))
    if shape.parity:
        mirror = np.empty_like(c)
        _rectified_powers(-u, mirror, shape.power, _factors(shape.power, len(c), c.dtype))
        mirror[1::2] *= -1
        c += shape.parity * mirror


def _factors(p: int, orders: int, dtype: Any) -> NDArray[Any]:
    return np.array([1.0 / (factorial(p - k) * factorial(k)) if k <= p else 0.0 for k in range(orders)], dtype=dtype)


@compiled
def _rectified_powers(u: NDArray[Any], c: NDArray[Any], p: int, factors: NDArray[Any]) -> None:
    """c_k = u₊^{p−k}/((p−k)! k!), from the highest order down, each power once; c_p is the step 1{u > 0}."""
    orders, n = c.shape
    zero, one = u.dtype.type(0.0), u.dtype.type(1.0)
    for start in range(0, n, _BLOCK):
        stop = min(n, start + _BLOCK)
        power = np.empty(stop - start, dtype=c.dtype)
        for i in range(start, stop):
            power[i - start] = one if u[i] > zero else zero
        for k in range(p, -1, -1):
            if k < p:
                for i in range(start, stop):
                    power[i - start] *= u[i]
            if k < orders:
                factor = factors[k]
                for i in range(start, stop):
                    c[k, i] = factor * power[i - start]
        for k in range(p + 1, orders):
            for i in range(start, stop):
                c[k, i] = zero


@compiled
def _riccati(c: NDArray[Any], constants: NDArray[Any]) -> None:
    """y′ = α + βy + γy², from c_0 on; constants = (α, β, γ, 1, 1/2, 1/3, …)."""
    orders, n = c.shape
    alpha, beta, gamma = constants[0], constants[1], constants[2]
    for start in range(0, n, _BLOCK):
        stop = min(n, start + _BLOCK)
        square = np.empty(stop - start, dtype=c.dtype)
        for k in range(orders - 1):
            square[:] = gamma - gamma
            for j in range((k + 1) // 2):  # Σ_j c_j c_{k−j} is symmetric: half of it twice
                for i in range(start, stop):
                    square[i - start] += c[j, i] * c[k - j, i]
            half = k // 2
            if k % 2 == 0:
                for i in range(start, stop):
                    square[i - start] += square[i - start] + c[half, i] * c[half, i]
            else:
                for i in range(start, stop):
                    square[i - start] += square[i - start]
            over = constants[3 + k]
            if k == 0:
                for i in range(start, stop):
                    c[1, i] = alpha + beta * c[0, i] + gamma * square[i - start]
            else:
                for i in range(start, stop):
                    c[k + 1, i] = over * (beta * c[k, i] + gamma * square[i - start])


def _riccati_constants(alpha: float, beta: float, gamma: float, c: NDArray[Any]) -> NDArray[Any]:
    return np.array([alpha, beta, gamma, *(1.0 / (k + 1) for k in range(len(c)))], dtype=c.dtype)


def _tanh(u: NDArray[Any], c: NDArray[Any]) -> None:
    tanh_into(u, c[0])
    _riccati(c, _riccati_constants(1.0, 0.0, -1.0, c))


def _sigmoid(u: NDArray[Any], c: NDArray[Any]) -> None:
    tanh_into(0.5 * u, c[0])  # (1 + tanh(u/2))/2 neither over- nor underflows
    c[0] += 1
    c[0] *= 0.5
    _riccati(c, _riccati_constants(0.0, 1.0, -1.0, c))


def _gaussian(u: NDArray[Any], c: NDArray[Any], kappa: float, scale: float) -> None:
    """scale·e^{−κu²/2}."""
    exp_into(u * u * u.dtype.type(-0.5 * kappa), c[0])
    c[0] *= u.dtype.type(scale)
    for k in range(len(c) - 1):
        np.multiply(u, c[k], out=c[k + 1])
        if k:
            c[k + 1] += c[k - 1]
        c[k + 1] *= u.dtype.type(-kappa / (k + 1))


def _integral(u: NDArray[Any], c: NDArray[Any], values: NDArray[Any], of: Any) -> None:
    """The coefficients of σ with σ′ = y: those of y, shifted; c_0 are the values."""
    if len(c) > 1:
        of(u, c[1:])
        for k in range(2, len(c)):
            c[k] /= k
    c[0] = values


def _softplus(u: NDArray[Any], c: NDArray[Any]) -> None:
    _integral(u, c, np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u))), _sigmoid)


def _erf(u: NDArray[Any], c: NDArray[Any]) -> None:
    from scipy.special import erf

    _integral(u, c, erf(u), lambda u, c: _gaussian(u, c, 2.0, 2.0 / sqrt(pi)))


def _normal_cdf(u: NDArray[Any], c: NDArray[Any]) -> None:
    from scipy.special import ndtr

    _integral(u, c, ndtr(u), lambda u, c: _gaussian(u, c, 1.0, 1.0 / sqrt(2.0 * pi)))


def _times_u(u: NDArray[Any], c: NDArray[Any], of: Any) -> None:
    of(u, c)
    for k in range(len(c) - 1, 0, -1):
        c[k] *= u
        c[k] += c[k - 1]
    c[0] *= u


def _trigonometric(u: NDArray[Any], c: NDArray[Any], phase: int) -> None:
    values = (np.sin(u), np.cos(u))
    for k in range(len(c)):
        quarter = (k + phase) % 4
        c[k] = values[quarter % 2] * u.dtype.type((1.0 if quarter < 2 else -1.0) / factorial(k))


_RULES: dict[str, Any] = {
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "erf": _erf,
    "gelu": lambda u, c: _times_u(u, c, _normal_cdf),
    "silu": lambda u, c: _times_u(u, c, _sigmoid),
    "sin": lambda u, c: _trigonometric(u, c, 0),
    "cos": lambda u, c: _trigonometric(u, c, 1),
}
