"""What the scikit-learn estimators cost, against scikit-learn's own and against explicit Jacobians."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.harness import Bound, Figure, footprint, interleaved
from lazyscope.estimators import (
    NeuralTangentRegressor,
    RandomFeatureMap,
    RandomFeaturesRegressor,
    TwoLayerRegressor,
)

RIDGES = np.geomspace(1e-6, 1e1, 50)
RIDGE_CV = Bound(1.0, at_least=True)
GRID_SEARCH = Bound(5.0, at_least=True)
PER_EPOCH = Bound(2.0, at_least=True)
WHOLE_FIT = Bound(1.0, at_least=True)
PRODUCT_TIME, PRODUCT_MEMORY = Bound(1.0, at_least=True), Bound(0.1)
FOLDS = 5


def _regression(n: int, d: int, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """A sum of ridge functions with a little noise, scaled to variance one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    u = X @ rng.standard_normal((d, 5)) / np.sqrt(d)
    y = np.tanh(u).sum(axis=1) + 0.3 * (u**2).sum(axis=1) + 0.1 * rng.standard_normal(n)
    return X.astype(dtype), ((y - y.mean()) / y.std()).astype(dtype)


def random_features_regressor(repeats: int = 3) -> Iterable[Figure]:
    """50 ridges and the choice among them: against RidgeCV and GridSearchCV over Ridge, on the same features."""
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.model_selection import GridSearchCV

    for n, N, d in ((4000, 500, 50), (800, 1500, 50)):
        X, y = _regression(n, d)
        Phi = RandomFeatureMap(N, random_state=0).fit_transform(X)
        found: dict[str, Any] = {}

        def ours(X: Any = X, y: Any = y, N: int = N, found: dict[str, Any] = found) -> None:
            found["ours"] = RandomFeaturesRegressor(N, ridge=RIDGES, random_state=0).fit(X, y)

        def ridge_cv(Phi: Any = Phi, y: Any = y, n: int = n, found: dict[str, Any] = found) -> None:
            found["RidgeCV"] = RidgeCV(n * RIDGES).fit(Phi, y)

        def grid(Phi: Any = Phi, y: Any = y, n: int = n) -> None:
            GridSearchCV(Ridge(), {"alpha": list(n * RIDGES)}, cv=FOLDS).fit(Phi, y)

        # a single round of the grid: it takes minutes where the others take a second
        seconds = interleaved({"ours": ours, "RidgeCV": ridge_cv}, repeats)
        slow = interleaved({"ours": ours, "grid": grid}, 1, warm_up=False)
        what = f"RandomFeaturesRegressor, {len(RIDGES)} ridges, n = {n}, N = {N}"
        note = "ours draws the features too; the peers are given them"
        extra = {"ridge": found["ours"].ridge_, "ridge of RidgeCV": found["RidgeCV"].alpha_ / n}
        yield Figure(what, seconds["ours"], seconds["RidgeCV"], "RidgeCV", RIDGE_CV, note=note, extra=extra)
        yield Figure(what, slow["ours"], slow["grid"], f"GridSearchCV over Ridge, {FOLDS} folds", GRID_SEARCH)


def two_layer_regressor(repeats: int = 3, epochs: int = 10) -> Iterable[Figure]:
    """An epoch of Adam on batches of 200, and the accuracy after as many epochs as MLPRegressor's."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    common = {"batch_size": 200, "tol": 0.0, "n_iter_no_change": 10**6, "random_state": 0}
    for n, N, d, dtype in (
        (10_000, 200, 50, np.float64),
        (10_000, 1000, 100, np.float64),
        (10_000, 200, 50, np.float32),
    ):
        X, y = _regression(n + 2000, d, dtype)

        def fit(model: Any, X: Any = X, y: Any = y, n: int = n) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                return model.fit(X[:n], y[:n])

        def ours(iterations: int, N: int = N, fit: Any = fit) -> Any:
            return fit(TwoLayerRegressor(N, max_iter=iterations, weight_decay=1e-4, **common))

        def theirs(iterations: int, N: int = N, fit: Any = fit) -> Any:
            return fit(MLPRegressor(hidden_layer_sizes=(N,), max_iter=iterations, **common))

        seconds = interleaved(
            {"ours": lambda ours=ours: ours(epochs), "theirs": lambda theirs=theirs: theirs(epochs)}, repeats
        )
        scores = {name: run(3 * epochs).score(X[n:], y[n:]) for name, run in (("ours", ours), ("theirs", theirs))}
        what = f"TwoLayerRegressor, an epoch, n = {n}, N = {N}, d = {d}, {np.dtype(dtype).name} inputs"
        yield Figure(
            what, seconds["ours"] / epochs, seconds["theirs"] / epochs, "MLPRegressor", PER_EPOCH,
            note=f"R² on fresh samples after {3 * epochs} epochs: {scores['ours']:.4f} against {scores['theirs']:.4f}",
            extra={"r2": scores["ours"], "r2 of MLPRegressor": scores["theirs"]},
        )  # fmt: skip


def estimators_against_peers(repeats: int = 3, n: int = 1000, N: int = 200) -> Iterable[Figure]:
    """A fit with all its choices, n = 1,000 rows of Friedman's first function: against scikit-learn's of that kind."""
    from sklearn.datasets import make_friedman1
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = make_friedman1(n + 2000, noise=1.0, random_state=1)
    X = StandardScaler().fit(X[:n]).transform(X)
    gamma = list(np.array([0.1, 0.3, 1.0]) / X.shape[1])
    features = make_pipeline(Nystroem(n_components=N, random_state=0), RidgeCV(np.geomspace(1e-4, 1e2, 25)))
    kernel = {"alpha": np.geomspace(1e-3, 1.0, 4), "gamma": gamma}
    pairs = {
        "Nystroem + RidgeCV, kernel width by cross-validation": (
            RandomFeaturesRegressor(N, "auto", random_state=0),
            GridSearchCV(features, {"nystroem__gamma": gamma}, cv=3),
        ),
        "KernelRidge, ridge and width by cross-validation": (
            NeuralTangentRegressor(N, "auto", random_state=0),
            GridSearchCV(KernelRidge(kernel="rbf"), kernel, cv=3),
        ),
        "MLPRegressor": (
            TwoLayerRegressor(N, random_state=0),
            MLPRegressor(hidden_layer_sizes=(N,), random_state=0),
        ),
    }
    for against, (ours, peer) in pairs.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            seconds = interleaved(
                {"ours": lambda ours=ours: ours.fit(X[:n], y[:n]), "theirs": lambda peer=peer: peer.fit(X[:n], y[:n])},
                repeats,
            )
        scores = [model.score(X[n:], y[n:]) for model in (ours, peer)]
        yield Figure(
            f"{type(ours).__name__}, a fit, n = {n}, N = {N}", seconds["ours"], seconds["theirs"], against, WHOLE_FIT,
            note=f"R² on fresh samples: {scores[0]:.4f} against {scores[1]:.4f}",
            extra={"r2": scores[0], "r2 of the peer": scores[1]},
        )  # fmt: skip


_TANGENT = """
import numpy as np
from lazyscope.activations import Activation
from lazyscope.estimators.base import FirstLayer
from lazyscope.estimators.tangent import Tangent
n, N, d = 2000, 200, 50
rng = np.random.default_rng(0)
layer = FirstLayer(rng.standard_normal((N, d)) / d**0.5, np.zeros(N), Activation("relu"))
X, u = rng.standard_normal((n, d)), rng.standard_normal(n)
Tangent.of(layer, X[:5], d**-0.5, 0.3).times(u[:5])  # loads what is loaded on first use
"""
_FREE = "tangent = Tangent.of(layer, X, d**-0.5, 0.3)\nfor _ in range(10): tangent.times(u)"
_EXPLICIT = "J = Tangent.of(layer, X, d**-0.5, 0.3).jacobian()\nfor _ in range(10): J @ (u @ J)"


def tangent_products(repeats: int = 21) -> Iterable[Figure]:
    """Products with the tangent kernel: by two matrix products, against the explicit Jacobian."""
    names: dict[str, Any] = {}
    exec(_TANGENT, names)
    Tangent, layer, X, u, d = (names[key] for key in ("Tangent", "layer", "X", "u", "d"))
    tangent = Tangent.of(layer, X, d**-0.5, 0.3)
    J = tangent.jacobian()
    assert np.allclose(tangent.times(u), J @ (J.T @ u))
    seconds = interleaved({"free": lambda: tangent.times(u), "explicit": lambda: J @ (u @ J)}, repeats)
    what = f"tangent-kernel product, n = {len(X)}, N = {len(layer.W)}, d = {d}"
    yield Figure(what, seconds["free"], seconds["explicit"], "explicit Jacobian, already formed", PRODUCT_TIME)
    free, explicit = footprint(_TANGENT, _FREE), footprint(_TANGENT, _EXPLICIT)
    yield Figure(f"{what}: memory", free.added, explicit.added, "explicit Jacobian", PRODUCT_MEMORY, unit="B")


_NETWORK = """
import numpy as np, torch
from lazyscope.lenses.network.torch_model import TorchModel
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(50, 200), torch.nn.Tanh(), torch.nn.Linear(200, 200), torch.nn.Tanh(),
                          torch.nn.Linear(200, 1))
model = TorchModel(net)
x, u, theta = model.array(np.random.default_rng(0).standard_normal((1000, 50))), np.ones((1000, 1)), model.state()
model.times(theta, x[:5], u[:5]), model._jacobian(theta, x[:5])  # loads what is loaded on first use
"""
_NETWORK_FREE = "for _ in range(3): model.times(theta, x, u)"
_NETWORK_EXPLICIT = """
J = model._jacobian(theta, x).reshape(len(x), -1)
w = torch.ones(len(x))
for _ in range(3): J @ (w @ J)
"""


def network_tangent_products(repeats: int = 5) -> Iterable[Figure]:
    """Products with the tangent kernel of a three-layer network: derivatives, against an explicit Jacobian."""
    names: dict[str, Any] = {}
    exec(_NETWORK, names)
    model, theta, x, u, torch = (names[key] for key in ("model", "theta", "x", "u", "torch"))
    J, w = model._jacobian(theta, x).reshape(len(x), -1), torch.ones(len(x))
    assert np.allclose(model.times(theta, x, u)[:, 0], (J @ (w @ J)).numpy(), rtol=1e-3)

    def free() -> None:
        for _ in range(10):
            model.times(theta, x, u)

    def explicit() -> None:
        J = model._jacobian(theta, x).reshape(len(x), -1)
        for _ in range(10):
            J @ (w @ J)

    seconds = interleaved({"free": free, "explicit": explicit}, repeats)
    what = f"network: ten tangent-kernel products, n = {len(x)}, {len(theta):,} parameters"
    yield Figure(what, seconds["free"], seconds["explicit"], "explicit Jacobian, formed once", PRODUCT_TIME)
    small, large = footprint(_NETWORK, _NETWORK_FREE), footprint(_NETWORK, _NETWORK_EXPLICIT)
    yield Figure(f"{what}: memory", small.added, large.added, "explicit Jacobian", PRODUCT_MEMORY, unit="B")
