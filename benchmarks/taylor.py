"""Taylor models of a two-layer network: values and gradient, against nested forward derivatives and the network itself.

Both peers get the best form of nested `jvp` that we know: one nest that returns f, f′, …, f^(k) together, in the
direction W at W₀, pulled back by `vjp`; JAX is compiled beforehand. All sides get the same arrays and the same
cotangent g, and return Σ_k f^(k)/k! and the gradient of Σ g_i f(x_i).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from math import factorial, sqrt
from typing import Any

import numpy as np

from benchmarks.harness import Bound, Figure, Piece, interleaved
from lazyscope.training.taylor.model import Expansion, TaylorModel, upto

M, D, BATCH = 10_000, 100, 1000
FASTER_THAN_TORCH = Bound(4.0, at_least=True)
FASTER_THAN_JAX = {2: Bound(1.2, at_least=True), 4: Bound(2.0, at_least=True)}
PLAIN = Bound(3.0)
CASES = ((2, "relu3"), (4, "tanh"))  # relu³/6, the seed's own, is smooth enough for order 2 alone


@dataclass(frozen=True, eq=False)
class Arrays:
    """The model, and what all sides compute with."""

    model: TaylorModel
    W: np.ndarray
    X: np.ndarray
    g: np.ndarray

    @classmethod
    def drawn(cls, sigma: str, dtype: Any) -> Arrays:
        """Draw them."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((BATCH, D))
        X /= np.linalg.norm(X, axis=1)[:, None]
        model = TaylorModel.symmetric(M, D, sigma, rng, dtype=dtype)
        W = 0.1 * rng.standard_normal((M, D))
        return cls(model, W.astype(dtype), X.astype(dtype), rng.standard_normal(BATCH).astype(dtype))

    def taylor(self, orders: tuple[int, ...] | None) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """Return lazyscope's route to values and gradient, as a training loop takes it; the network's for None."""
        last: Expansion | None = None

        def run() -> tuple[np.ndarray, np.ndarray]:
            nonlocal last
            last = self.model.expand(self.W, self.X, orders, reuse=last)
            return last.values, last.gradient(self.g)

        return run


def _nested(network: Callable[[Any], Any], jvp: Any, W0: Any, W: Any, order: int) -> Any:
    """Σ_k f^(k)/k! by one nest of forward derivatives."""

    def lifted(inner: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], tuple[Any, ...]]:
        def function(V: Any) -> tuple[Any, ...]:
            values, slopes = jvp(inner, (V,), (W,))
            return (*values, slopes[-1])

        return function

    function: Callable[[Any], tuple[Any, ...]] = lambda V: (network(V),)  # noqa: E731
    for _ in range(order):
        function = lifted(function)
    return sum(value / factorial(k) for k, value in enumerate(function(W0)) if k)


def torch_peer(arrays: Arrays, order: int) -> Callable[[], tuple[Any, Any]]:
    """Eager `torch.func`."""
    import torch

    sigma = {"relu3": lambda u: torch.relu(u) ** 3 / 6.0, "tanh": torch.tanh}[arrays.model.sigma.name]
    W0, a, W, X, g = (
        torch.from_numpy(array) for array in (arrays.model.W0, arrays.model.a, arrays.W, arrays.X, arrays.g)
    )

    def run() -> tuple[Any, Any]:
        def taylor(W: Any) -> Any:
            return _nested(lambda V: a @ sigma(V @ X.T) / sqrt(M), torch.func.jvp, W0, W, order)

        values, pull = torch.func.vjp(taylor, W)
        return values, pull(g)[0]

    return run


def jax_peer(arrays: Arrays, order: int) -> Callable[[], tuple[Any, Any]]:
    """JAX, compiled."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    sigma = {"relu3": lambda u: jnp.maximum(u, 0.0) ** 3 / 6.0, "tanh": jnp.tanh}[arrays.model.sigma.name]
    inputs = [jnp.asarray(array) for array in (arrays.model.W0, arrays.model.a, arrays.W, arrays.X, arrays.g)]

    @jax.jit
    def both(W0: Any, a: Any, W: Any, X: Any, g: Any) -> tuple[Any, Any]:
        def taylor(W: Any) -> Any:
            return _nested(lambda V: a @ sigma(V @ X.T) / sqrt(M), jax.jvp, W0, W, order)

        values, pull = jax.vjp(taylor, W)
        return values, pull(g)[0]

    return lambda: jax.block_until_ready(both(*inputs))


def taylor_models(repeats: int = 7) -> Iterable[Figure]:
    """Order 2 (relu³/6) and order 4 (tanh), m = 10⁴, d = 100, batch 1000, in float32 and float64."""
    for dtype in (np.float32, np.float64):
        for order, sigma in CASES:
            yield from _figures(order, sigma, dtype, repeats)


def taylor_models_torch(repeats: int = 2) -> Iterable[Figure]:
    """The same against eager PyTorch, float32: seconds at order 2, tens of seconds at order 4, so few rounds."""
    if find_spec("torch") is None:
        return
    for order, sigma in CASES:
        arrays = Arrays.drawn(sigma, np.float32)
        ours, peer = arrays.taylor(upto(order)), torch_peer(arrays, order)
        _same(ours(), peer())
        seconds = interleaved({"taylor": ours, "torch": peer}, repeats, warm_up=False)
        what = f"Taylor, order {order}, {sigma}, float32"
        yield Figure(what, seconds["taylor"], seconds["torch"], "nested jvp, eager torch.func", FASTER_THAN_TORCH)


def _figures(order: int, sigma: str, dtype: Any, repeats: int) -> Iterable[Figure]:
    arrays = Arrays.drawn(sigma, dtype)
    pieces: dict[str, Piece] = {"taylor": arrays.taylor(upto(order)), "network": arrays.taylor(None)}
    if find_spec("jax") is not None:
        pieces["jax"] = peer = jax_peer(arrays, order)
        _same(arrays.taylor(upto(order))(), peer())
    seconds = interleaved(pieces, repeats)
    what = f"Taylor, order {order}, {sigma}, {np.dtype(dtype).name}"
    yield Figure(what, seconds["taylor"], seconds["network"], "the network itself", PLAIN)
    if "jax" in seconds:
        yield Figure(what, seconds["taylor"], seconds["jax"], "nested jvp, jitted JAX", FASTER_THAN_JAX[order])


def _same(ours: tuple[np.ndarray, np.ndarray], theirs: tuple[Any, Any]) -> None:
    for found, wanted in zip(ours, theirs, strict=True):
        gap = np.max(np.abs(found - np.asarray(wanted))) / np.max(np.abs(found))
        assert gap < (1e-5 if ours[1].dtype == np.float32 else 1e-12), f"they compute something else: {gap:.1e}"
