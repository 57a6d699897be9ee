"""The verb `lens`: one door for tables of data and for networks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    from lazyscope.lenses.data.lens import DataLens


def lens(subject: Any, x: Any = None, y: Any = None, **options: Any) -> Any:
    """Look at a table of data, or at a network.

    - `lens("house.csv", target="price")`, `lens(frame, target="price")` and `lens(X, y)` train the four regimes on the
      data, with cross-validation, and say whether training the features is worth it. Options: `task`, `drop`, `widths`,
      `folds`, `budget`, `seed`, `rows`.
    - `lens("diabetes")`, "digits" and "breast_cancer" do so on data that ship with scikit-learn.
    - `lens(model, x, y)` watches a PyTorch module, a Keras model on PyTorch or JAX, or a JAX function with parameters,
      `lens((f, params), x, y)`, along training: call the result to look. Made after training it needs the parameters
      of the start, `initial`. Options: `test=(x, y)`, `loss`, `orders` of Taylor models, `directions` of random ones
      for the tangent kernel, and `chunk`, the rows whose Jacobian is in memory at once.

    The result has a `verdict`, a `dataset`, and `save("report.html")`.

    >>> import numpy as np
    >>> noise = np.random.default_rng(0).standard_normal((80, 4))
    >>> print(lens(noise[:, 1:], noise[:, 0], widths=[10], folds=2).verdict)
    No regime learns: none predicts the target clearly better than a constant does.
    """
    model = as_network(subject)
    if model is None:
        return _data(subject, x, y, options)
    if x is None or y is None:
        raise InvalidParameter.of(
            "lens", "x and y", "be given with a network: lens(model, x, y)", "one or none of them"
        )
    from lazyscope.lenses.network.lens import NetworkLens

    return NetworkLens.of(model, x, y, **options)


def as_network(subject: Any) -> Any:
    """Return the subject as a differentiable function where it is a network, without loading a library for it."""
    if "keras" in sys.modules:
        from lazyscope.lenses.network.keras_model import is_keras, keras_model

        if is_keras(subject):
            return keras_model(subject)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(subject, torch.nn.Module):
        from lazyscope.lenses.network.torch_model import TorchModel

        return TorchModel(subject)
    if isinstance(subject, tuple) and len(subject) == 2 and callable(subject[0]):
        from lazyscope.lenses.network.jax_model import JaxModel

        return JaxModel(*subject)
    if callable(subject):
        must = "be a PyTorch module, a Keras model, or a pair of a JAX function f(params, x) and its parameters"
        raise InvalidParameter.of("lens", "model", must, f"a {type(subject).__name__}", "Pass (function, params).")
    return None


def _data(subject: Any, x: Any, y: Any, options: dict[str, Any]) -> DataLens:
    from lazyscope.lenses.data.budget import Budget, seconds_of

    if not isinstance(options.get("budget", Budget(1.0)), Budget):  # runs while libraries are loaded and files read
        options = {**options, "budget": Budget(seconds_of(options["budget"], "lens"))}
    import pandas as pd

    from lazyscope.lenses.data import table
    from lazyscope.lenses.data.lens import data_lens

    target, task, drop = (options.pop(name, None) for name in ("target", "task", "drop"))
    if y is not None:
        must = "be left out for a table: lens(X, y) or lens(frame, target=…)"
        advice = "A model in its place is one of PyTorch, Keras or JAX."
        raise InvalidParameter.of("lens", "y", must, f"three, the first of type {type(subject).__name__},", advice)
    if isinstance(subject, (str, Path)) and str(subject) in table.EXAMPLES:
        _refuse("an example, which has its own", target=target, task=task, drop=drop)
        return data_lens(table.example(str(subject)), **options)
    if x is not None:
        _refuse("arrays, lens(X, y)", target=target, drop=drop)
        return data_lens(table.from_arrays(subject, x, task=task), **options)
    name = Path(subject).stem if isinstance(subject, (str, Path)) else "data"
    frame = table.read(subject) if isinstance(subject, (str, Path)) else subject
    if not isinstance(frame, pd.DataFrame):
        must = "be a file, a pandas frame, (X, y), or a network with its data"
        raise InvalidParameter.of("lens", "subject", must, f"a {type(subject).__name__}")
    if target is None:
        raise InvalidParameter.of("lens", "target", f"name the column to predict: {table.columns(frame)}", None)
    return data_lens(table.describe(frame, target, task=task, drop=tuple(drop or ()), name=name), **options)


def _refuse(where: str, **given: Any) -> None:
    """Refuse options that would change nothing."""
    for name, value in given.items():
        if value:
            raise InvalidParameter.of("lens", name, f"be left out with {where}", repr(value))
