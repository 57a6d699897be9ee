"""A Keras model as a differentiable function of its trainable variables, by `stateless_call`: backends PyTorch and JAX.

Layers of Keras read their variables, not the parameters of the PyTorch module that they are also: `torch.func` alone
would change nothing. The variables stay the model's own, so that a look sees what training has made of them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.network.jax_model import JaxModel
from lazyscope.lenses.network.torch_model import TorchModel


def is_keras(subject: Any) -> bool:
    """Whether the subject is a Keras model, without loading Keras for it."""
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(subject, getattr(keras, "Model", ()))


def keras_model(model: Any) -> TorchModel | JaxModel:
    """Return a built Keras model as a differentiable function, by its backend."""
    backend = sys.modules["keras"].backend.backend()
    if not model.built:
        must, got = "have all its parameters", f"a {type(model).__name__} that is not built"
        raise InvalidParameter.of("lens", "model", must, got, "Give it keras.Input((d,)), or call it on a row first.")
    if not model.trainable_variables:
        must = "have parameters that can be trained"
        raise InvalidParameter.of("lens", "model", must, f"a {type(model).__name__} without any")
    if backend == "torch":
        return TorchModel(_as_module(model))
    if backend == "jax":
        return KerasOnJax(model)
    must = "run on PyTorch or JAX"
    advice = 'Set KERAS_BACKEND to "torch" or "jax" before keras is imported.'
    raise InvalidParameter.of("lens", "model", must, f"a Keras model on {backend}", advice)


def _name(variable: Any) -> str:
    """Return the path of a variable with dots, as PyTorch names parameters: dense.kernel."""
    return str(variable.path).replace("/", ".")


def _as_module(model: Any) -> Any:
    """Return a PyTorch module whose parameters and buffers are the tensors of the model's variables."""
    import torch

    class KerasOnTorch(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trained, self.others = list(model.trainable_variables), list(model.non_trainable_variables)
            for number, variable in enumerate(self.trained):
                self.register_parameter(_flat(variable, number), variable.value)
            for number, variable in enumerate(self.others):
                self.register_buffer(_flat(variable, number), variable.value.detach())

        def forward(self, *inputs: Any) -> Any:
            trained = [getattr(self, _flat(variable, number)) for number, variable in enumerate(self.trained)]
            others = [getattr(self, _flat(variable, number)) for number, variable in enumerate(self.others)]
            return model.stateless_call(trained, others, *inputs, training=False)[0]

    def _flat(variable: Any, number: int) -> str:
        return f"{_name(variable).replace('.', '_')}_{number}"

    return KerasOnTorch()


class KerasOnJax(JaxModel):
    """A Keras model on JAX. Its running statistics are constants of the compiled functions, which follow them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.others = [np.array(variable.value) for variable in model.non_trainable_variables]
        others = list(self.others)

        def function(params: dict[str, Any], x: Any) -> Any:
            inputs = x.parts if hasattr(x, "parts") else (x,)
            return model.stateless_call(list(params.values()), others, *inputs, training=False)[0]

        super().__init__(function, self._params())

    def _params(self) -> dict[str, Any]:
        """Return the trainable variables in their order, which the keys keep: JAX sorts them."""
        return {f"{k:04d}.{_name(v)}": v.value for k, v in enumerate(self.model.trainable_variables)}

    def state(self) -> FloatArray:
        """Return θ as it is now: variables of Keras change."""
        return self.vector(self._params())

    def surroundings(self) -> FloatArray:
        """Return running statistics as they are now."""
        now = [np.array(variable.value) for variable in self.model.non_trainable_variables]
        if any(not np.array_equal(a, b) for a, b in zip(now, self.others, strict=True)):
            at_once = self.at_once
            self.__init__(self.model)  # type: ignore[misc]  # what was compiled has the old statistics in it
            self.at_once = at_once
        buffers = [part.ravel() for part in self.others if part.dtype.kind == "f"]
        return np.concatenate(buffers).astype(np.float64) if buffers else np.zeros(0)
