"""A PyTorch module as a differentiable function of one vector of parameters, by `torch.func`.

Derivatives in a direction are forward-mode and nested for higher orders; nothing is written into the module, which is
looked at in evaluation mode and left as it was: no dropout, BatchNorm with the statistics that it has now. Attention is
computed by its plain formula, as the fast kernels have no derivatives of the second order: 8·heads·t² bytes a row for t
tokens, and two to four times the time of the fast ones. Small networks are looked at in float64, whatever their own
precision is, others in float32 at least; what the module itself has in half precision stays so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import factorial
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.network.differentiable import LossName, kernel_by_chunks, rows_of
from lazyscope.lenses.network.inputs import Several, arguments, output_of, taken

_AT_ONCE = 1024  # rows of a forward pass, unless the user names fewer
_SMALL = 200_000  # parameters up to which a network is looked at in float64


class TorchModel:
    """A module with its trainable parameters as θ."""

    def __init__(self, module: Any) -> None:
        import torch

        _load_forward_derivatives()
        self.torch, self.module, self.at_once, self.by_rows = torch, module, _AT_ONCE, False
        _refuse_batch_statistics(module)
        if any(isinstance(parameter, torch.nn.UninitializedParameter) for parameter in module.parameters()):
            must = "have all its parameters"
            got = f"a {type(module).__name__} that waits for its first input"
            raise InvalidParameter.of("lens", "model", must, got, "Call it on a row first.")
        self.names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
        if not self.names:
            must = "have parameters that can be trained"
            raise InvalidParameter.of("lens", "model", must, f"a {type(module).__name__} without any")
        parameters = dict(module.named_parameters())
        self.shapes = {name: tuple(parameters[name].shape) for name in self.names}
        self.device = parameters[self.names[0]].device
        small = sum(parameters[name].numel() for name in self.names) <= _SMALL and self.device.type == "cpu"
        self.own = self._at_least_float32(parameters)
        self.dtype = torch.float64 if small else self.own
        self.layers = _layers(self.shapes)

    def _at_least_float32(self, parameters: Mapping[str, Any]) -> Any:
        types = {parameters[name].dtype for name in self.names}
        return self.torch.float64 if self.torch.float64 in types else self.torch.float32

    def less_precise(self) -> bool:
        """Look in the module's own precision from now on; False where that is done already."""
        before, self.dtype = self.dtype, self.own
        return bool(before != self.own)

    def surroundings(self) -> FloatArray:
        """Return what is neither a parameter nor an input but changes along training: running statistics."""
        buffers = [_numpy(buffer).ravel() for buffer in self.module.buffers() if buffer.is_floating_point()]
        return np.concatenate(buffers) if buffers else np.zeros(0)

    # -- vectors and arrays ------------------------------------------------------------------------------------

    def state(self) -> FloatArray:
        """Return θ as it is now."""
        return self._flat(dict(self.module.named_parameters()))

    def vector(self, other: Any) -> FloatArray:
        """Return θ of a state dictionary or of another module."""
        saved = other.state_dict() if hasattr(other, "state_dict") else other
        if not isinstance(saved, Mapping) or any(
            name not in saved or tuple(saved[name].shape) != shape for name, shape in self.shapes.items()
        ):
            must = "be a state_dict (copied: copy.deepcopy(model.state_dict())) or a module of the same shape"
            raise InvalidParameter.of("lens", "initial", must, f"a {type(other).__name__} that does not fit")
        return self._flat(saved)

    def array(self, x: Any) -> Any:
        """Return inputs as tensors, whole numbers as they are; a tuple or a dictionary of arrays is several inputs."""

        def convert(part: Any) -> Any:
            tensor = self.torch.as_tensor(part, device=self.device)
            return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

        return taken(x.parts if isinstance(x, Several) else x, convert)

    def _flat(self, named: Mapping[str, Any]) -> FloatArray:
        parts = [named[name].detach().cpu().double().numpy().ravel() for name in self.names]
        return np.concatenate(parts).astype(np.float64)

    def _named(self, vector: Any) -> dict[str, Any]:
        if isinstance(vector, np.ndarray):
            vector = self.torch.as_tensor(vector, dtype=self.dtype, device=self.device)
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        parts = self.torch.split(vector, sizes)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def _rows(self, x: Any) -> Iterator[slice]:
        return rows_of(len(x), self.at_once)

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Evaluation mode inside, and what every module was before outside."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        modes = {module: module.training for module in self.module.modules()}
        fast = self.torch.backends.mha.get_fastpath_enabled()
        self.torch.backends.mha.set_fastpath_enabled(False)
        self.module.eval()
        try:
            with sdpa_kernel(SDPBackend.MATH):
                yield
        finally:
            self.torch.backends.mha.set_fastpath_enabled(fast)
            for module, mode in modes.items():
                module.training = mode

    def _function(self, x: Any) -> Callable[[dict[str, Any]], Any]:
        """Return θ ↦ f(x; θ), (n, k)."""
        from torch.func import functional_call

        inputs, named = arguments(x)
        fixed = self._fixed()

        def function(parameters: dict[str, Any]) -> Any:
            out = output_of(functional_call(self.module, {**fixed, **parameters}, inputs, named))
            if not isinstance(out, self.torch.Tensor) or out.ndim not in (1, 2) or len(out) != len(x):
                shape = tuple(out.shape) if isinstance(out, self.torch.Tensor) else type(out).__name__
                must = f"map n inputs to outputs of shape (n,) or (n, k); n = {len(x)} here"
                raise InvalidParameter.of("lens", "model", must, shape)
            return out.reshape(len(x), -1)

        return function

    def _fixed(self) -> dict[str, Any]:
        """Return what is not trained, frozen parameters and buffers, in the precision of the look."""
        frozen = {name: part for name, part in self.module.named_parameters() if not part.requires_grad}
        everything = {**frozen, **dict(self.module.named_buffers())}
        return {name: _in(part, self.dtype) for name, part in everything.items()}

    # -- values and derivatives --------------------------------------------------------------------------------

    def values(self, theta: FloatArray, x: Any) -> FloatArray:
        """f(x; θ), (n, k)."""
        parameters = self._named(theta)
        with self._still(), self.torch.no_grad():
            parts = [_numpy(self._function(x[rows])(parameters)) for rows in self._rows(x)]
        return np.concatenate(parts)

    def features(self, theta: FloatArray, x: Any) -> list[FloatArray]:
        """Return the outputs of every layer with parameters of its own but the last, on x."""
        seen: list[FloatArray] = []
        layers = [part for part in self.module.modules() if any(True for _ in part.parameters(recurse=False))]

        def keep(_: Any, __: Any, out: Any) -> None:
            out = output_of(out)
            if isinstance(out, self.torch.Tensor):
                seen.append(_numpy(out))

        hooks = [layer.register_forward_hook(keep) for layer in layers]
        try:
            with self._still(), self.torch.no_grad():
                self._function(x)(self._named(theta))
        finally:
            for hook in hooks:
                hook.remove()
        return seen[:-1]

    def pieces(self, theta: FloatArray, delta: FloatArray, x: Any, order: int) -> Sequence[FloatArray]:
        """Taylor pieces along δ, orders 0 … order; order j costs 2ʲ forward passes."""
        parameters, direction = self._named(theta), self._named(delta)
        pieces: list[list[FloatArray]] = [[] for _ in range(order + 1)]
        with self._still(), self.torch.no_grad():
            for rows in self._rows(x):
                along = self._function(x[rows])
                for j in range(order + 1):
                    pieces[j].append(_numpy(along(parameters)) / factorial(j))
                    along = self._derivative(along, direction)
        return [np.concatenate(parts) for parts in pieces]

    def _derivative(self, function: Callable[..., Any], direction: Any) -> Callable[..., Any]:
        from torch.func import jvp

        return lambda parameters: jvp(function, (parameters,), (direction,))[1]

    def kernel(self, theta: FloatArray, x: Any, chunk: int) -> FloatArray:
        """The tangent kernel, mean over outputs: Jacobians of two chunks of rows in memory at a time."""

        def gram(J: Any, other: Any) -> FloatArray:
            return np.asarray(_numpy(self.torch.einsum("akp,bkp->ab", J, other)) / J.shape[1])

        return kernel_by_chunks(len(x), chunk, lambda rows: self._jacobian(theta, x[rows]), gram)

    def _jacobian(self, theta: FloatArray, x: Any) -> Any:
        """(n, k, P)."""
        from torch.func import jacrev, vmap

        parameters, several = self._named(theta), isinstance(x, Several)

        def one(parameters: dict[str, Any], row: Any) -> Any:
            single = Several(row).each(lambda part: part[None]) if several else row[None]
            return self._function(single)(parameters)[0]

        if not self.by_rows:
            try:
                with self._still():
                    J = vmap(jacrev(one), (None, 0))(parameters, x.parts if several else x)
                parts = [J[name].reshape(len(x), J[name].shape[1], -1) for name in self.names]
                return self.torch.cat(parts, dim=2).detach()
            except RuntimeError:  # recurrent layers, for one, have no rule for rows side by side
                self.by_rows = True
        return self.torch.stack([self._gradients(parameters, x[row : row + 1]) for row in range(len(x))])

    def _gradients(self, parameters: dict[str, Any], x: Any) -> Any:
        """Return the gradients of the outputs for one row, (k, P), a backward pass for each."""
        from torch.func import vjp

        with self._still():
            values, pull = vjp(self._function(x), parameters)[:2]
            unit = self.torch.eye(values.shape[1], dtype=values.dtype, device=values.device)
            rows = [pull(direction[None])[0] for direction in unit]
        return self.torch.stack([self.torch.cat([part[n].reshape(-1) for n in self.names]) for part in rows]).detach()

    def times(self, theta: FloatArray, x: Any, u: FloatArray) -> FloatArray:
        """J(Jᵀu), rows by blocks: one backward pass for Jᵀu, one forward derivative for the product with J."""
        from torch.func import vjp

        parameters = self._named(theta)
        weights = self.torch.as_tensor(u, dtype=self.dtype, device=self.device)
        gradient: dict[str, Any] | None = None
        with self._still():
            for rows in self._rows(x):
                pull: Any = vjp(self._function(x[rows]), parameters)[1]
                (part,) = pull(weights[rows])
                gradient = part if gradient is None else {name: gradient[name] + part[name] for name in self.names}
            forward = [
                _numpy(self._derivative(self._function(x[rows]), gradient)(parameters)) for rows in self._rows(x)
            ]
        return np.concatenate(forward)

    def taylor_loss(
        self, theta: FloatArray, delta: FloatArray, x: Any, Y: FloatArray, order: int, loss: LossName
    ) -> tuple[float, FloatArray]:
        """Mean loss of the Taylor model at θ + δ and its gradient in δ, rows by blocks."""
        parameters = self._named(theta)
        move = self.torch.as_tensor(delta, dtype=self.dtype, device=self.device).requires_grad_()
        wanted, total = self.torch.as_tensor(Y, dtype=self.dtype, device=self.device), 0.0
        with self._still():
            for rows in self._rows(x):
                along, direction, model = self._function(x[rows]), self._named(move), 0.0
                for j in range(order + 1):
                    model = model + along(parameters) / factorial(j)
                    along = self._derivative(along, direction)
                value = self._loss(model, wanted[rows], loss) / len(x)
                value.backward()
                total += float(value.detach())
        assert move.grad is not None
        return total, np.asarray(move.grad.cpu().double().numpy())

    def _loss(self, F: Any, Y: Any, loss: LossName) -> Any:
        if loss == "square":
            return 0.5 * ((F - Y) ** 2).sum()
        return -(self.torch.log_softmax(F, dim=1) * Y).sum()


@cache
def _load_forward_derivatives() -> None:
    """Let PyTorch load its rules now: it does so with its own deprecated functions, and says so to its user."""
    import torch
    from torch.func import jvp

    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):  # which of them depends on the version
            warnings.simplefilter("ignore", kind)
        one = torch.ones(1)
        jvp(torch.sin, (one,), (one,))


def _numpy(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _in(tensor: Any, dtype: Any) -> Any:
    return tensor.detach().to(dtype) if tensor.is_floating_point() else tensor


def _layers(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, slice]:
    """Return which part of θ belongs to which module: weight and bias together, under its name."""
    layers: dict[str, slice] = {}
    start = 0
    for name, shape in shapes.items():
        stop = start + int(np.prod(shape))
        owner = name.rpartition(".")[0] or name
        same = owner in layers and layers[owner].stop == start
        layers[owner if same or owner not in layers else name] = slice(layers[owner].start if same else start, stop)
        start = stop
    return layers


def _refuse_batch_statistics(module: Any) -> None:
    from torch.nn.modules.batchnorm import _BatchNorm

    for name, part in module.named_modules():
        if isinstance(part, _BatchNorm) and part.running_mean is None:
            must = "be a function of its parameters and one input: no batch statistics"
            got = f"{type(part).__name__} ({name}), which keeps no running statistics"
            raise InvalidParameter.of("lens", "model", must, got, "Pass track_running_stats=True, or use GroupNorm.")
