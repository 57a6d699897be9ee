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

from functools import partial
from math import factorial, inf, pi, sqrt
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, whole_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.numerics.exponential import exp_in_place, tanh_in_place

_ANALYTIC = ("tanh", "sigmoid", "softplus", "erf", "gelu", "silu", "sin", "cos")
_POLYNOMIALS = {"square": Polynomial([0, 0, 1]), "cube": Polynomial([0, 0, 0, 1])}
_BLOCK = 1 << 14  # points at once: the rows of c stay in the second-level cache


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
    exact = polynomial(sigma)
    if exact is not None:
        for k in range(order + 1):
            flat[k] = exact.deriv(k)(points) / factorial(k) if k else exact(points)
        return c
    rule = partial(_rectified, sigma) if sigma.rectified is not None else _RULES[sigma.name]
    for start in range(0, points.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        rule(points[part], flat[:, part])
    return c


# -- one rule for each family: fill c (order + 1, n) at the points u (n,) --------------------------------------


def _rectified(sigma: Activation, u: NDArray[Any], c: NDArray[Any]) -> None:
    """u₊^p/p! for parity 0; for |u| and sign (parity ±1) plus or minus the mirror image."""
    shape = sigma.rectified
    assert shape is not None
    _rectified_powers(u, c, shape.power)
    if shape.parity:
        mirror = np.empty_like(c)
        _rectified_powers(-u, mirror, shape.power)
        mirror[1::2] *= -1
        c += shape.parity * mirror


def _rectified_powers(u: NDArray[Any], c: NDArray[Any], p: int) -> None:
    """c_k = u₊^{p−k}/((p−k)! k!), each power once; c_p is the step 1{u > 0}."""
    positive = np.maximum(u, 0)
    power = np.asarray(u > 0, dtype=c.dtype)
    c[p + 1 :] = 0
    for k in range(p, -1, -1):
        if k < p:
            power *= positive
        if k < len(c):
            np.multiply(power, c.dtype.type(1.0 / (factorial(p - k) * factorial(k))), out=c[k])


def _riccati(c: NDArray[Any], alpha: float, beta: float, gamma: float) -> None:
    """y′ = α + βy + γy², from c_0 on."""
    term = np.empty_like(c[0])
    for k in range(len(c) - 1):
        following = c[k + 1]
        np.multiply(c[0], c[k], out=following)
        for j in range(1, k + 1):
            np.multiply(c[j], c[k - j], out=term)
            following += term
        following *= c.dtype.type(gamma)
        if beta:
            following += c.dtype.type(beta) * c[k]
        if k == 0:
            following += c.dtype.type(alpha)
        following /= k + 1


def _tanh(u: NDArray[Any], c: NDArray[Any]) -> None:
    c[0] = u
    tanh_in_place(c[0])
    _riccati(c, 1.0, 0.0, -1.0)


def _sigmoid(u: NDArray[Any], c: NDArray[Any]) -> None:
    np.multiply(u, 0.5, out=c[0])  # (1 + tanh(u/2))/2 neither over- nor underflows
    tanh_in_place(c[0])
    c[0] += 1
    c[0] *= 0.5
    _riccati(c, 0.0, 1.0, -1.0)


def _gaussian(u: NDArray[Any], c: NDArray[Any], kappa: float, scale: float) -> None:
    """scale·e^{−κu²/2}."""
    np.multiply(u, u, out=c[0])
    c[0] *= u.dtype.type(-0.5 * kappa)
    exp_in_place(c[0])
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
