"""Taylor models of a two-layer network in its first layer (Bai & Lee 2019, Eqs. 1–3 and §6).

    f_{W₀+W}(x) = (1/√m) Σ_r a_r σ((w_{0,r} + w_r)·x) = Σ_k f^{(k)}_W(x),
    f^{(k)}_W(x) = (1/√m) Σ_r a_r σ^{(k)}(w_{0,r}·x)/k! (w_r·x)^k,

a fixed. f^{(1)} is the tangent model f^L, f^{(2)} the quadratic model f^Q. (The seed's §3 is damaged where the ½
of 1/2! would stand; §6 prints 1/k!, and Theorem 7's proof needs the ½.) Values, gradients and Hessian products without
automatic differentiation: two matrix products U = W₀Xᵀ and Z = WXᵀ, one elementwise pass for D_ri = ∂/∂z, and one
matrix product for the gradient,

    ∇ Σ_i g_i f(x_i) = (1/√m) diag(a) D diag(g) X.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth, taylor_coefficients
from lazyscope.checks import FloatArray, fits_in_memory, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.training.taylor.blocks import blocks_of, over_blocks, scratch
from lazyscope.training.taylor.pieces import add_pieces

Array = NDArray[Any]
"""float32 or float64, as W₀ is."""


@dataclass(frozen=True, eq=False)
class TaylorModel:
    """W₀ (m, d), signs a (m,) and σ: everything about the network that training does not change.

    W, the displacement of W₀, has the shape of W₀; X has samples as rows. Computations are in the precision of W₀.

    >>> model = TaylorModel.symmetric(200, 5, "relu3", np.random.default_rng(0))
    >>> X = np.eye(5)
    >>> W = 0.01 * np.random.default_rng(1).standard_normal((200, 5))
    >>> rest = model.network(W, X) - model.truncated(2, W, X)
    >>> bool(np.max(np.abs(rest)) < 1e-3 * np.max(np.abs(model.piece(1, W, X))))
    True
    """

    W0: Array
    a: Array
    sigma: Activation
    Bx: float = 1.0

    def __post_init__(self) -> None:
        W0, a = np.asarray(self.W0), np.asarray(self.a)
        if W0.ndim != 2 or W0.size == 0 or W0.dtype not in (np.float32, np.float64) or not np.all(np.isfinite(W0)):
            must = "be an (m, d) array of finite float32 or float64 numbers, a row for each neuron"
            raise InvalidParameter.of("TaylorModel", "W0", must, f"shape {W0.shape}, {W0.dtype}")
        if a.shape != W0.shape[:1] or not np.all(np.abs(a) == 1):
            raise InvalidParameter.of("TaylorModel", "a", f"be m = {len(W0)} signs, ±1", f"shape {a.shape}")
        object.__setattr__(self, "W0", np.ascontiguousarray(W0))
        object.__setattr__(self, "a", np.ascontiguousarray(a, dtype=W0.dtype))
        object.__setattr__(self, "sigma", as_activation(self.sigma))

    @classmethod
    def symmetric(
        cls,
        m: int,
        d: int,
        sigma: Activation | str,
        rng: np.random.Generator,
        Bx: float = 1.0,
        dtype: Any = np.float64,
    ) -> TaylorModel:
        """Draw the symmetric initialisation, Eq. 3: a = (+1 …, −1 …), w_{0,r} = w_{0,r+m/2} ~ N(0, I/B_x²).

        Then f_{W₀} = 0, and w₀·x ~ N(0, 1) on the sphere of radius B_x.
        """
        m, d = whole_number(m, "TaylorModel.symmetric", "m"), whole_number(d, "TaylorModel.symmetric", "d")
        if m % 2:
            must = "be even: the symmetric initialisation copies each weight into the other half, with the other sign"
            raise InvalidParameter.of("TaylorModel.symmetric", "m", must, m)
        if real_number(Bx, "TaylorModel.symmetric", "Bx") <= 0:
            raise InvalidParameter.of("TaylorModel.symmetric", "Bx", "be a positive radius", Bx)
        half = (rng.standard_normal((m // 2, d)) / Bx).astype(dtype)
        return cls(np.concatenate([half, half]), np.repeat([1.0, -1.0], m // 2), as_activation(sigma), float(Bx))

    @property
    def m(self) -> int:
        """Number of neurons."""
        return len(self.W0)

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self.W0.shape[1])

    def in_precision(self, dtype: Any) -> TaylorModel:
        """Return the same model in float32 or float64."""
        return replace(self, W0=self.W0.astype(dtype))

    # -- values ----------------------------------------------------------------------------------------------

    def piece(self, k: int, W: Array, X: Array) -> FloatArray:
        """Return f^{(k)}_W at the rows of X; k = 0 is f_{W₀}, zero under the symmetric initialisation."""
        return self.expand(W, X, (k,), derivatives=0).values

    def truncated(self, order: int, W: Array, X: Array) -> FloatArray:
        """Return f^{(1)} + … + f^{(order)}, the Taylor model without f_{W₀}."""
        return self.expand(W, X, upto(order), derivatives=0).values

    def network(self, W: Array, X: Array) -> FloatArray:
        """Return f_{W₀+W}, the network itself."""
        return self.expand(W, X, None, derivatives=0).values

    # -- derivatives in W --------------------------------------------------------------------------------------

    def gradient(self, orders: int | Iterable[int] | None, W: Array, X: Array, g: Array) -> Array:
        """Return ∇_W Σ_i g_i f(x_i), (m, d), for f = Σ_{k ∈ orders} f^{(k)}, or the network where orders is None."""
        return self.expand(W, X, orders).gradient(g)

    def expand(
        self,
        W: Array,
        X: Array,
        orders: int | Iterable[int] | None,
        derivatives: int = 1,
        reuse: Expansion | None = None,
    ) -> Expansion:
        """Return values and, as far as asked for, first and second derivatives of f = Σ_{k ∈ orders} f^{(k)} at W.

        `orders` is one k or several; None is the network f_{W₀+W}. 4nmd flops (2nmd for the network) and, for each
        derivative, 8nm bytes in float64; 2nmd flops more for each gradient. `reuse` gives up the memory of an earlier
        expansion, which is void afterwards: fresh memory costs a tenth of the time.
        """
        kept = None if orders is None else _kept(orders)
        W, X = self._displacement(W), self._inputs(X)
        require_smooth(self.sigma, (derivatives if kept is None else len(kept)) - 1)
        n = len(X)
        fits_in_memory(
            derivatives * self.W0.itemsize * n * float(self.m), f"{self.m} neurons × {n} samples", "Pass fewer samples."
        )
        tables = [np.empty((0, n), dtype=self.W0.dtype)] * 2
        for k in range(derivatives):
            old = None if reuse is None else (reuse.D, reuse.E)[k]
            fits = old is not None and old.shape == (self.m, n) and old.dtype == self.W0.dtype
            tables[k] = old if old is not None and fits else np.empty((self.m, n), dtype=self.W0.dtype)
        XT = np.ascontiguousarray(X.T)

        def block(rows: slice) -> FloatArray:
            views = [table[rows] if len(table) else table for table in tables]
            return _network_block(self, W, XT, rows, views) if kept is None else _block(self, W, XT, kept, rows, views)

        parts = over_blocks(block, blocks_of(self.m, n), 4.0 * self.m * n * self.d)
        return Expansion(self, X, np.sum(parts, axis=0) / sqrt(self.m), tables[0], tables[1])

    def _displacement(self, W: Array) -> Array:
        W = np.asarray(W)
        if W.shape != self.W0.shape:
            must = f"have the shape of W0, (m, d) = {self.W0.shape}, a row for each neuron"
            raise InvalidParameter.of("TaylorModel", "W", must, f"shape {W.shape}")
        return np.ascontiguousarray(W, dtype=self.W0.dtype)

    def _inputs(self, X: Array) -> Array:
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.d or len(X) == 0:
            must = f"be an (n, d) array of inputs with d = {self.d}"
            raise InvalidParameter.of("TaylorModel", "X", must, f"shape {X.shape}")
        return np.ascontiguousarray(X, dtype=self.W0.dtype)


@dataclass(frozen=True, eq=False)
class Expansion:
    """f at W, with what its derivatives in W need: D = ∂f/∂z and E = ∂²f/∂z² for each neuron and sample, times √m a_r.

    >>> model = TaylorModel.symmetric(4, 2, "square", np.random.default_rng(0))
    >>> here = model.expand(np.ones((4, 2)), np.eye(2), (1, 2))
    >>> here.values.shape, here.gradient(np.ones(2)).shape
    ((2,), (4, 2))
    """

    model: TaylorModel
    X: Array
    values: FloatArray
    D: Array
    E: Array

    def gradient(self, g: Array) -> Array:
        """Return ∇_W Σ_i g_i f(x_i), (m, d): 2nmd flops. g scales the rows of X, never the large D."""
        return self._scaled(self.D @ (np.asarray(g, dtype=self.X.dtype)[:, None] * self.X))

    def along(self, V: Array) -> FloatArray:
        """Return ⟨∇_W f(x_i), V⟩ for each sample."""
        Z = self.model._displacement(V) @ self.X.T
        Z *= self.D
        return np.asarray(self.model.a @ Z, dtype=np.float64) / sqrt(self.model.m)

    def hessian_product(self, g: Array, V: Array) -> Array:
        """Return ∇²_W (Σ_i g_i f(x_i)) [V], (m, d): each neuron sees its own row of V alone."""
        Z = self.model._displacement(V) @ self.X.T
        Z *= self.E
        return self._scaled(Z @ (np.asarray(g, dtype=self.X.dtype)[:, None] * self.X))

    def curvature(self, V: Array) -> FloatArray:
        """Return ∇²_W f(x_i)[V, V] for each sample."""
        Z = self.model._displacement(V) @ self.X.T
        np.square(Z, out=Z)
        Z *= self.E
        return np.asarray(self.model.a @ Z, dtype=np.float64) / sqrt(self.model.m)

    def along_over_signs(self, V: Array) -> FloatArray:
        """Return E_Σ′ ⟨∇_W f(x_i), VΣ′⟩² over independent signs Σ′, for each sample: Σ_r ⟨∂f/∂w_r, v_r⟩²."""
        Z = self.model._displacement(V) @ self.X.T
        Z *= self.D
        np.square(Z, out=Z)
        return np.asarray(np.sum(Z, axis=0, dtype=np.float64)) / self.model.m

    def _scaled(self, rows: Array) -> Array:
        rows *= (self.model.a / sqrt(self.model.m)).astype(rows.dtype)[:, None]
        return rows


def upto(order: int) -> tuple[int, ...]:
    """Return the orders of the Taylor model, 1 … order.

    >>> upto(3)
    (1, 2, 3)
    """
    return tuple(range(1, whole_number(order, "Taylor", "order") + 1))


def _kept(orders: int | Iterable[int]) -> NDArray[np.float64]:
    """Return flags for k = 0 … highest: which f^{(k)} belong to the model."""
    chosen = [orders] if isinstance(orders, (int, np.integer)) else list(orders)
    chosen = [whole_number(k, "TaylorModel", "orders", least=0) for k in chosen]
    if not chosen:
        raise InvalidParameter.of("TaylorModel", "orders", "name at least one order", "none")
    flags = np.zeros(max(chosen) + 1)
    flags[chosen] = 1.0
    return flags


def _block(model: TaylorModel, W: Array, XT: Array, kept: FloatArray, rows: slice, tables: list[Array]) -> FloatArray:
    """Return Σ_r a_r v_ri over the neurons of one block, in float64; write D and E of the block into their tables."""
    u, z = scratch(2, rows.stop - rows.start, XT.shape[1], XT.dtype)
    np.matmul(model.W0[rows], XT, out=u)
    np.matmul(W[rows], XT, out=z)
    total = np.zeros(XT.shape[1], dtype=u.dtype)
    add_pieces(model.sigma, kept, u, z, model.a[rows], total, tables[0], tables[1])
    return total.astype(np.float64)


def _network_block(model: TaylorModel, W: Array, XT: Array, rows: slice, tables: list[Array]) -> FloatArray:
    """Do the same for the network: c_0, c_1 and 2c_2 at w₀ + w."""
    wanted = sum(table.size > 0 for table in tables)
    memory = scratch(2 + wanted, rows.stop - rows.start, XT.shape[1], XT.dtype)
    u, c = memory[0], memory[1:]
    np.matmul(model.W0[rows] + W[rows], XT, out=u)
    taylor_coefficients(model.sigma, u, wanted, out=c)
    for k in range(wanted):
        np.multiply(c[k + 1], k + 1, out=tables[k])
    return np.asarray(model.a[rows] @ c[0], dtype=np.float64)
