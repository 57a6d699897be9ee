"""The empirical risk of a Taylor model, or of the network, as a function of W, with gradient and Hessian products.

    L(W) = (1/n) Σ_i ℓ(y_i, f_W(x_i)) + λ‖W‖⁸_{2,4},
    ∇²L[V] = (1/n) Σ_i ℓ″_i ⟨∇f(x_i), V⟩ ∇f(x_i) + ℓ′_i ∇²f(x_i)[V] + …

`orders=2` is the clean risk L^Q of Bai & Lee (2019, §4.1), `orders=None` the risk of the network, whose mean over signs
is the randomised risk (§3.1). The regulariser does not see signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.losses import Loss, as_loss, labels_for
from lazyscope.training.taylor.model import Array, Expansion, TaylorModel
from lazyscope.training.taylor.signs import (
    flipped,
    norm_24,
    regularizer_gradient,
    regularizer_hessian_product,
    regularizer_over_signs,
)


@dataclass(frozen=True, eq=False)
class Risk:
    """L(W) on samples X (n, d), ‖x_i‖ = B_x, and labels y.

    >>> rng = np.random.default_rng(0)
    >>> model = TaylorModel.symmetric(40, 3, "relu3", rng)
    >>> clean = Risk(model, np.eye(3), np.array([1.0, -1.0, 1.0]), "logistic", orders=2)
    >>> here = clean.at(np.zeros((40, 3)))
    >>> print(f"{here.value:.4f}")  # log 2: f = 0, where the quadratic model has a saddle
    0.6931
    >>> float(np.max(np.abs(here.gradient())))
    0.0
    """

    model: TaylorModel
    X: Array
    y: FloatArray
    loss: Loss | str = "logistic"
    orders: int | tuple[int, ...] | None = 2
    lam: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss, "Risk"))
        X = on_sphere(self.X, self.model.Bx, "Risk")
        object.__setattr__(self, "X", np.ascontiguousarray(X, dtype=self.model.W0.dtype))
        object.__setattr__(self, "y", labels_for(self._loss, self.y, len(X), "Risk"))
        if not self.lam >= 0:
            raise InvalidParameter.of("Risk", "lam", "be at least 0", self.lam)

    @property
    def _loss(self) -> Loss:
        return as_loss(self.loss, "Risk")

    def at(self, W: Array, signs: Array | None = None, derivatives: int = 1) -> Point:
        """Expand the risk at WΣ (or W): values, and first or second derivatives in W as far as asked for."""
        here = W if signs is None else flipped(W, signs)
        return Point(self, W, signs, self.model.expand(here, self.X, self.orders, derivatives))


@dataclass(frozen=True, eq=False)
class Point:
    """The risk at one W, for given signs."""

    risk: Risk
    W: Array
    signs: Array | None
    expansion: Expansion

    @property
    def data_value(self) -> float:
        """(1/n) Σ ℓ(y_i, f(x_i)), without the regulariser."""
        return float(np.mean(self.risk._loss.value(self.risk.y, self.expansion.values)))

    @property
    def value(self) -> float:
        """L(WΣ)."""
        return self.data_value + self.risk.lam * norm_24(self.W) ** 8

    def gradient(self) -> Array:
        """Return ∇_W L(WΣ), (m, d)."""
        g = self._slopes() / len(self.risk.y)
        result = self._signed(self.expansion.gradient(g))
        return result + regularizer_gradient(self.W, self.risk.lam) if self.risk.lam else result

    def hessian_product(self, V: Array) -> Array:
        """Return ∇²_W L(WΣ)[V], (m, d): two matrix products more than a gradient. Needs `derivatives=2`."""
        n, here = len(self.risk.y), self.expansion
        moved = self._signed(np.asarray(V, dtype=self.W.dtype))
        bent = self.risk._loss.curvature(self.risk.y, here.values) * here.along(moved)
        total = self._signed(here.gradient(bent / n) + here.hessian_product(self._slopes() / n, moved))
        return total + regularizer_hessian_product(self.W, self.risk.lam, V) if self.risk.lam else total

    def curvature(self, V: Array) -> float:
        """Return ∇²_W L(WΣ)[V, V] without forming the product: one matrix product."""
        moved, here = self._signed(np.asarray(V, dtype=self.W.dtype)), self.expansion
        bent = self.risk._loss.curvature(self.risk.y, here.values) * here.along(moved) ** 2
        value = float(np.mean(bent + self._slopes() * here.curvature(moved)))
        if self.risk.lam:
            product = regularizer_hessian_product(self.W, self.risk.lam, V)
            value += float(np.sum(np.multiply(product, V, dtype=np.float64)))
        return value

    def curvature_over_signs(self, V: Array) -> float:
        """Return E_Σ′ ∇²_W L(WΣ)[VΣ′, VΣ′] over independent signs Σ′ (the left side of Lemma 1), in closed form."""
        moved, here = self._signed(np.asarray(V, dtype=self.W.dtype)), self.expansion
        bent = self.risk._loss.curvature(self.risk.y, here.values) * here.along_over_signs(moved)
        value = float(np.mean(bent + self._slopes() * here.curvature(moved)))
        return value + regularizer_over_signs(self.W, self.risk.lam, V) if self.risk.lam else value

    def _slopes(self) -> FloatArray:
        return self.risk._loss.slope(self.risk.y, self.expansion.values)

    def _signed(self, rows: Array) -> Array:
        return rows if self.signs is None else flipped(rows, self.signs)


def on_sphere(X: Array, Bx: float, owner: str) -> Array:
    """Refuse inputs that are not on the sphere of radius B_x, where Bai & Lee's statements live.

    >>> on_sphere(np.ones((1, 4)), 1.0, "Risk")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The X parameter of Risk must have rows on the sphere of radius B_x = 1 \
(Bai & Lee 2019, §2). Got a row of norm 2 instead. Divide each row by its norm, or pass Bx.
    """
    X = np.asarray(X)
    must = f"have rows on the sphere of radius B_x = {Bx:g} (Bai & Lee 2019, §2)"
    if X.ndim != 2 or X.dtype.kind not in "fiu" or len(X) == 0:
        raise InvalidParameter.of(owner, "X", must, f"shape {X.shape}, {X.dtype}")
    norms = np.sqrt(np.sum(np.square(X, dtype=np.float64), axis=1))
    off = np.abs(norms - Bx)
    if not np.all(off <= 1e-5 * Bx):  # float32 inputs are on it to 1e-7
        worst = norms[int(np.argmax(np.where(np.isnan(off), np.inf, off)))]
        got = f"a row of norm {worst:.6g}"
        raise InvalidParameter.of(owner, "X", must, got, "Divide each row by its norm, or pass Bx.")
    return X
