"""A JAX function f(params, x) as a differentiable function of one vector of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import factorial
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.network.differentiable import LossName, kernel_by_chunks, rows_of
from lazyscope.lenses.network.inputs import Several, output_of, taken

_AT_ONCE = 1024  # rows of a forward pass, unless the user names fewer


class JaxModel:
    """A function with its parameters, a tree of arrays, as θ."""

    def __init__(self, function: Callable[[Any, Any], Any], params: Any) -> None:
        try:
            import jax
            from jax.flatten_util import ravel_pytree
        except ImportError:
            must = "have its library: a function with parameters is looked at by JAX"
            raise InvalidParameter.of("lens", "model", must, "none", "pip install 'lazyscope[jax]'") from None

        _know_several_inputs()
        self.jax, self.function, self.at_once = jax, function, _AT_ONCE
        leaves = jax.tree_util.tree_leaves(params)
        if not leaves or not all(jax.numpy.issubdtype(jax.numpy.asarray(leaf).dtype, np.inexact) for leaf in leaves):
            must = "come with a tree of arrays of real numbers as parameters"
            raise InvalidParameter.of("lens", "model", must, f"a {type(params).__name__}")
        self.shapes = jax.tree_util.tree_map(np.shape, params)
        vector, self.tree = ravel_pytree(params)
        self.dtype, self.theta = vector.dtype, np.asarray(vector, dtype=np.float64)
        self.layers = _layers(jax, params)
        # compiled once for each shape of inputs, and each order
        self._values = jax.jit(self._flat_function)
        self._jacobians = jax.jit(jax.vmap(jax.jacrev(self._one_row), (None, 0)))
        self._times = jax.jit(self._product)
        self._piece = cache(lambda order: jax.jit(lambda theta, delta, x: self._along(theta, delta, x, order)))
        self._loss_and_gradient = cache(
            lambda order, loss: jax.jit(jax.value_and_grad(lambda d, t, x, Y: self._taylor(d, t, x, Y, order, loss)))
        )

    # -- vectors and arrays ------------------------------------------------------------------------------------

    def state(self) -> FloatArray:
        """Return θ as it was given: parameters of JAX do not change."""
        return self.theta

    def vector(self, other: Any) -> FloatArray:
        """Return θ of another tree of the same shape."""
        from jax.flatten_util import ravel_pytree

        if self.jax.tree_util.tree_map(np.shape, other) != self.shapes:
            must = "be parameters of the same shape as the model's"
            raise InvalidParameter.of("lens", "initial", must, f"a {type(other).__name__} that does not fit")
        return np.asarray(ravel_pytree(other)[0], dtype=np.float64)

    def array(self, x: Any) -> Any:
        """Return inputs as arrays of the parameters' precision, whole numbers as they are; several stay several."""

        def convert(part: Any) -> Any:
            array = self.jax.numpy.asarray(part)
            return array.astype(self.dtype) if self.jax.numpy.issubdtype(array.dtype, np.inexact) else array

        return taken(x.parts if isinstance(x, Several) else x, convert)

    def surroundings(self) -> FloatArray:
        """Nothing: a function of JAX has parameters and inputs alone."""
        return np.zeros(0)

    def less_precise(self) -> bool:
        """Return False: the precision is that of the parameters from the start."""
        return False

    def _own(self, vector: FloatArray) -> Any:
        return self.jax.numpy.asarray(vector, dtype=self.dtype)

    def _rows(self, x: Any) -> Iterator[slice]:
        return rows_of(len(x), self.at_once)

    def _flat_function(self, theta: Any, x: Any) -> Any:
        out = output_of(self.function(self.tree(theta), x.parts if isinstance(x, Several) else x))
        shape = getattr(out, "shape", None)
        if shape is None or len(shape) not in (1, 2) or shape[0] != len(x):
            must = f"map n inputs to outputs of shape (n,) or (n, k); n = {len(x)} here"
            raise InvalidParameter.of("lens", "model", must, shape if shape is not None else type(out).__name__)
        return out.reshape(len(x), -1)

    def _one_row(self, theta: Any, row: Any) -> Any:
        return self._flat_function(theta, row[None])[0]

    # -- values and derivatives --------------------------------------------------------------------------------

    def values(self, theta: FloatArray, x: Any) -> FloatArray:
        """f(x; θ), (n, k)."""
        own = self._own(theta)
        return np.concatenate([_numpy(self._values(own, x[rows])) for rows in self._rows(x)])

    def pieces(self, theta: FloatArray, delta: FloatArray, x: Any, order: int) -> Sequence[FloatArray]:
        """Taylor pieces along δ, orders 0 … order, by nested forward derivatives."""
        own, along = self._own(theta), self._own(delta)
        blocks = [self._piece(order)(own, along, x[rows]) for rows in self._rows(x)]
        return [np.concatenate([_numpy(block[j]) for block in blocks]) for j in range(order + 1)]

    def _along(self, theta: Any, delta: Any, x: Any, order: int) -> list[Any]:
        def derivative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda t: self.jax.jvp(function, (t,), (delta,))[1]

        function: Callable[[Any], Any] = lambda t: self._flat_function(t, x)  # noqa: E731
        values = []
        for j in range(order + 1):
            values.append(function(theta) / factorial(j))
            function = derivative(function)
        return values

    def kernel(self, theta: FloatArray, x: Any, chunk: int) -> FloatArray:
        """The tangent kernel, mean over outputs: Jacobians of two chunks of rows in memory at a time."""
        own = self._own(theta)

        def gram(J: Any, other: Any) -> FloatArray:
            return np.asarray(_numpy(self.jax.numpy.einsum("akp,bkp->ab", J, other)) / J.shape[1])

        return kernel_by_chunks(len(x), chunk, lambda rows: self._jacobians(own, x[rows]), gram)

    def times(self, theta: FloatArray, x: Any, u: FloatArray) -> FloatArray:
        """J(Jᵀu): one backward and one forward derivative."""
        own, weights = self._own(theta), self._own(u)
        gradient = sum(self._pull(own, x[rows], weights[rows]) for rows in self._rows(x))
        return np.concatenate([_numpy(self._times(own, x[rows], gradient)) for rows in self._rows(x)])

    def _pull(self, theta: Any, x: Any, u: Any) -> Any:
        return self.jax.vjp(lambda t: self._flat_function(t, x), theta)[1](u)[0]

    def _product(self, theta: Any, x: Any, direction: Any) -> Any:
        return self.jax.jvp(lambda t: self._flat_function(t, x), (theta,), (direction,))[1]

    def taylor_loss(
        self, theta: FloatArray, delta: FloatArray, x: Any, Y: FloatArray, order: int, loss: LossName
    ) -> tuple[float, FloatArray]:
        """Mean loss of the Taylor model at θ + δ and its gradient in δ, rows by blocks."""
        own, along, wanted = self._own(theta), self._own(delta), self._own(Y)
        total, gradient = 0.0, np.zeros(len(theta))
        for rows in self._rows(x):
            value, slope = self._loss_and_gradient(order, loss)(along, own, x[rows], wanted[rows])
            total += float(value) / len(x)
            gradient += np.asarray(slope, dtype=np.float64) / len(x)
        return total, gradient

    def _taylor(self, delta: Any, theta: Any, x: Any, Y: Any, order: int, loss: LossName) -> Any:
        F = sum(self._along(theta, delta, x, order))
        if loss == "square":
            return 0.5 * ((F - Y) ** 2).sum()
        return -(self.jax.nn.log_softmax(F, axis=1) * Y).sum()


@cache
def _know_several_inputs() -> None:
    """Tell JAX once how several inputs are taken apart."""
    from jax.tree_util import register_pytree_node

    register_pytree_node(Several, lambda x: ((x.parts,), None), lambda _, parts: Several(parts[0]))


def _numpy(array: Any) -> FloatArray:
    return np.asarray(array, dtype=np.float64)


def _layers(jax: Any, params: Any) -> dict[str, slice]:
    """Return which part of θ belongs to which branch of the tree: arrays with one parent together, under its name."""
    layers: dict[str, slice] = {}
    start = 0
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        stop = start + int(np.size(leaf))
        name = jax.tree_util.keystr(path[:-1] if len(path) > 1 else path)
        layers[name] = slice(layers[name].start if name in layers else start, stop)
        start = stop
    return layers
