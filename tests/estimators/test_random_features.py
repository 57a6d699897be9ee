"""Random features on data: against explicit linear algebra and scikit-learn's own ridge regression."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_friedman1
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lazyscope import estimators
from lazyscope.errors import InvalidParameter
from lazyscope.estimators import base
from lazyscope.estimators.feature_map import RandomFeatureMap
from lazyscope.estimators.random_features import RandomFeaturesClassifier, RandomFeaturesRegressor
from lazyscope.numerics.ridge import dual, primal

RIDGES = np.geomspace(1e-6, 1e1, 7)


def problem(n=60, d=5, k=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    Y = np.sin(X @ rng.standard_normal((d, k))) + 0.1 * rng.standard_normal((n, k)) + 3.0
    return X, Y[:, 0] if k == 1 else Y


def features(model, X):
    """The features written out."""
    layer = model.layer_
    return np.maximum(X @ layer.W.T + layer.b, 0.0) / np.sqrt(len(layer.b))


@pytest.mark.parametrize("width", [20, 200], ids=["primal", "dual"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("constant", [True, False])
def test_every_ridge_is_that_of_scikit_learn(width, k, constant):
    X, y = problem(k=k)
    model = RandomFeaturesRegressor(width, ridge=RIDGES, fit_intercept=constant, random_state=1).fit(X, y)
    Phi = features(model, X)
    for ridge, ours in zip(RIDGES, model.predict_path(X), strict=True):
        theirs = Ridge(alpha=len(X) * ridge, fit_intercept=constant, solver="svd").fit(Phi, y).predict(Phi)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)
    best = list(RIDGES).index(model.ridge_)
    np.testing.assert_allclose(model.predict(X), model.predict_path(X)[best], rtol=1e-12)
    np.testing.assert_allclose(Phi @ model.coef_.T + model.intercept_, model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("width", [20, 200], ids=["primal", "dual"])
@pytest.mark.parametrize("weighted", [True, False])
def test_gcv_is_that_of_the_explicit_hat_matrix(width, weighted):
    X, y = problem()
    v = np.random.default_rng(3).integers(0, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    model = RandomFeaturesRegressor(width, ridge=RIDGES, random_state=1)
    model.fit(X, y, sample_weight=v if weighted else None)
    n, Phi = v.sum(), features(model, X)
    design = np.column_stack([Phi, np.ones(len(X))]) * np.sqrt(v)[:, None]
    for ridge, ours, freedom in zip(RIDGES, model.gcv_, model.freedom_, strict=True):
        penalty = n * ridge * np.diag([1.0] * width + [0.0])
        H = design @ np.linalg.solve(design.T @ design + penalty, design.T)
        left = np.sqrt(v) * y - H @ (np.sqrt(v) * y)
        expected = (left @ left) / n / (1.0 - np.trace(H) / n) ** 2
        assert freedom == pytest.approx(np.trace(H), rel=1e-6)
        assert ours == pytest.approx(expected, rel=1e-5)
    counted = (1.0 - model.freedom_ / n) / np.maximum(1.0 - (1.0 + 4.0 / np.sqrt(n)) * model.freedom_ / n, 1e-12)
    assert model.ridge_ == RIDGES[np.argmin(model.gcv_ * counted**2)]


@pytest.mark.parametrize("route", ["primal", "dual"])
def test_gcv_is_leaving_one_out_and_fitting_again_where_samples_are_alike(route):
    """Of waves on a regular grid every sample has the same leverage, and GCV is the error of n refits exactly."""
    n, t = 24, 2.0 * np.pi * np.arange(24) / 24
    waves = [amplitude * wave(k * t) for k, amplitude in ((1, 1.0), (2, 0.3), (5, 2.0)) for wave in (np.cos, np.sin)]
    Phi, y = np.column_stack(waves), np.random.default_rng(0).standard_normal(n)
    if route == "primal":
        path = primal(np.asfortranarray(Phi.T @ Phi), (Phi.T @ y)[:, None], np.array([y @ y]), n, RIDGES, False)
    else:
        path = dual(np.asfortranarray(Phi @ Phi.T), y[:, None], n, RIDGES, False)
    for ridge, gcv in zip(RIDGES, path.gcv, strict=True):
        missed = []
        for i in range(n):
            others = np.arange(n) != i
            rest = Phi[others]
            a = np.linalg.solve(rest.T @ rest + n * ridge * np.eye(6), rest.T @ y[others])
            missed.append(y[i] - Phi[i] @ a)
        assert gcv == pytest.approx(np.mean(np.square(missed)), rel=1e-8)


@pytest.mark.parametrize("width", [20, 400], ids=["primal", "dual"])
def test_a_weight_counts_repetitions(width):
    X, y = problem()
    v = np.random.default_rng(4).integers(0, 4, len(X))
    weighted = RandomFeaturesRegressor(width, random_state=0).fit(X, y, sample_weight=v)
    repeated = RandomFeaturesRegressor(width, random_state=0).fit(X.repeat(v, axis=0), y.repeat(v))
    assert weighted.ridge_ == pytest.approx(repeated.ridge_)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8)


def test_partial_fit_is_fit_on_everything():
    X, y = problem(n=300)
    once = RandomFeaturesRegressor(40, scale=0.3, random_state=0).fit(X, y)
    pieces = RandomFeaturesRegressor(40, scale=0.3, random_state=0)
    for part in np.array_split(np.arange(300), 7):
        pieces.partial_fit(X[part], y[part])
    assert pieces.ridge_ == pytest.approx(once.ridge_)
    np.testing.assert_allclose(pieces.predict(X), once.predict(X), rtol=1e-9)
    labels = (y > np.median(y)).astype(str)
    whole = RandomFeaturesClassifier(40, scale=0.3, random_state=0).fit(X, labels)
    halves = RandomFeaturesClassifier(40, scale=0.3, random_state=0)
    halves.partial_fit(X[:150], labels[:150], classes=["False", "True"]).partial_fit(X[150:], labels[150:])
    np.testing.assert_allclose(halves.decision_function(X), whole.decision_function(X), rtol=1e-8)


def test_without_a_ridge_wide_features_interpolate_with_the_least_norm():
    X, y = problem(n=30)
    model = RandomFeaturesRegressor(100, ridge=0.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-7)
    Phi = features(model, X)
    centred = Phi - Phi.mean(axis=0)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(centred) @ (y - y.mean()), rtol=1e-5, atol=1e-6)


def test_sparse_input_is_dense_input():
    X, y = problem(n=80)
    X[np.abs(X) < 0.8] = 0.0
    for make in (sparse.csr_array, sparse.csr_matrix):
        dense = RandomFeaturesRegressor(30, random_state=0).fit(X, y)
        thin = RandomFeaturesRegressor(30, random_state=0).fit(make(X), y)
        np.testing.assert_allclose(thin.predict(make(X)), dense.predict(X), rtol=1e-8)


def test_classes_are_those_of_ridge_classification():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    model = RandomFeaturesClassifier(150, ridge=1e-3, random_state=0).fit(X, y)
    Phi = features(model, X)
    theirs = RidgeClassifier(alpha=400 * 1e-3, solver="svd").fit(Phi, y)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(Phi), rtol=1e-6, atol=1e-8)
    assert (model.predict(X) == theirs.predict(Phi)).all()
    assert model.coef_.shape == (10, 150) and model.intercept_.shape == (10,)


def test_pipelines_grids_frames_and_names():
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), RandomFeaturesRegressor(random_state=0))
    grid = {"randomfeaturesregressor__width": [20, 80], "randomfeaturesregressor__activation": ["relu", "tanh"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(frame, y)
    assert search.best_score_ > 0.4
    mapped = make_column_transformer((RandomFeatureMap(4, random_state=0), ["age", "bmi"])).set_output(
        transform="pandas"
    )
    names = list(mapped.fit_transform(frame).columns)
    assert names == [f"randomfeaturemap__randomfeaturemap{i}" for i in range(4)]
    model = RandomFeaturesRegressor(20, random_state=0).fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_the_map_keeps_the_precision_and_tends_to_the_kernel():
    X, _ = problem(n=6)
    narrow, wide = (RandomFeatureMap(N, bias=0.0, random_state=0).fit(X) for N in (50, 20000))
    assert wide.transform(X.astype(np.float32)).dtype == np.float32
    # E σ(w·x)σ(w·x′) of ReLU: the arc-cosine kernel of order one
    s = 1.0 / np.mean(np.sum(X**2, axis=1))
    norms = np.linalg.norm(X, axis=1)
    cos = np.clip(X @ X.T / np.outer(norms, norms), -1, 1)
    angle = np.arccos(cos)
    kernel = s * np.outer(norms, norms) * (np.sin(angle) + (np.pi - angle) * cos) / (2 * np.pi)
    errors = [np.max(np.abs(m.transform(X) @ m.transform(X).T - kernel)) for m in (narrow, wide)]
    assert errors[1] < 0.03 and errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("model", [RandomFeaturesRegressor, RandomFeaturesClassifier, RandomFeatureMap])
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"width": 0}, "width parameter of {name} must be a whole number"),
        ({"width": 2.5}, "width parameter of {name} must be a whole number"),
        ({"scale": -1.0}, "scale parameter of {name} must be"),
        ({"scale": "wide"}, "scale parameter of {name} must be"),
        ({"bias": -0.1}, "bias parameter of {name} must be zero or positive"),
        ({"activation": "rellu"}, "Did you mean 'relu'"),
        ({"ridge": -1.0}, "ridge parameter of {name} must be"),
        ({"ridge": []}, "ridge parameter of {name} must be"),
        ({"ridge": "gcv"}, "ridge parameter of {name} must be"),
        ({"method": "lasso"}, "method parameter of {name} must be"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(model, parameters, said):
    if not set(parameters) <= set(model().get_params()):
        return
    X, y = problem(n=20)
    with pytest.raises(InvalidParameter, match=said.format(name=model.__name__)) as caught:
        model(**parameters).fit(X, y > 3)
    assert "\n" not in str(caught.value)


def test_one_class_and_strange_classes_are_refused():
    X, _ = problem(n=20)
    with pytest.raises(InvalidParameter, match=r"at least two classes\. Got one class, 'a', instead"):
        RandomFeaturesClassifier().fit(X, ["a"] * 20)
    model = RandomFeaturesClassifier()
    with pytest.raises(InvalidParameter, match="name all classes in the first call"):
        model.partial_fit(X, [0, 1] * 10)
    model.partial_fit(X, [0, 1] * 10, classes=[0, 1])
    with pytest.raises(InvalidParameter, match=r"hold classes that were named at first\. Got 2 instead"):
        model.partial_fit(X, [1, 2] * 10)


def test_weights_too_small_to_judge_by_are_refused():
    X, y = problem(n=20)
    with pytest.raises(InvalidParameter, match="they count how often a sample was seen"):
        RandomFeaturesRegressor().fit(X, y, sample_weight=np.full(20, 0.01))


def test_the_widest_margin_is_that_of_a_hard_support_vector_machine():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    two = y < 2
    model = RandomFeaturesClassifier(60, method="margin", fit_intercept=False, random_state=0).fit(X[two], y[two])
    # the dual problem by another solver: min ‖Σ z_i y_i φ_i‖ over the simplex
    G = features(model, X[two]) * np.where(y[two] == 1, 1.0, -1.0)[:, None]
    found = minimize(
        lambda z: 0.5 * z @ (G @ G.T) @ z,
        np.full(len(G), 1.0 / len(G)),
        jac=lambda z: G @ (G.T @ z),
        bounds=[(0, None)] * len(G),
        constraints={"type": "eq", "fun": lambda z: z.sum() - 1, "jac": lambda z: np.ones(len(G))},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert model.margin_[0] == pytest.approx(np.linalg.norm(found.x @ G), rel=1e-4)
    assert np.linalg.norm(model.coef_) == pytest.approx(1.0)
    many = RandomFeaturesClassifier(300, method="margin", random_state=0).fit(X, y)
    assert many.score(X, y) == 1.0 and many.margin_.shape == (10,)
    narrow = RandomFeaturesClassifier(3, method="margin", random_state=0)
    with pytest.raises(InvalidParameter, match='must be "ridge" where the features do not separate the classes'):
        narrow.fit(X, y)


def alone(kind, X, y):
    """Fit every choice of activation="auto" by its own parameters."""
    unit = 1.0 / np.sqrt(np.mean(np.sum(X * X, axis=1)))
    return [
        kind(60, sigma, scale=scale * unit, bias=bias, directions=directions, random_state=0).fit(X, y)
        for directions in base.DIRECTIONS
        for sigma, scale, bias in kind._choices  # which the documentation names
    ]


@pytest.mark.parametrize("name", ["RandomFeatures", "NeuralTangent"])
def test_the_activation_of_lowest_gcv_is_kept(name):
    """As if it had been asked for by its own parameters; smooth targets have smooth activations."""
    X, y = make_friedman1(300, noise=0.5, random_state=0)
    kind = getattr(estimators, f"{name}Regressor")
    found = kind(60, activation="auto", random_state=0).fit(X, y)
    best = min(alone(kind, X, y), key=lambda model: model._score)
    assert found.activation_ == best.activation == "erf" and found.directions_ == best.directions
    np.testing.assert_array_equal(found.predict(X), best.predict(X))


@pytest.mark.parametrize("name", ["RandomFeatures", "NeuralTangent"])
def test_for_classes_the_activation_of_fewest_left_out_errors_is_kept(name):
    """Each sample is left out, and the ridge regression fitted again, by hand."""
    X, y = load_iris(return_X_y=True)
    X, y = (X[::3] - X.mean(axis=0)) / X.std(axis=0), y[::3]
    kind = getattr(estimators, f"{name}Classifier")
    found, counts = kind(60, activation="auto", random_state=0).fit(X, y), []
    models, Y = alone(kind, X, y), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    for model in models:
        K, wrong = model._gram(X), 0
        for i in range(len(y)):
            rest = np.delete(np.arange(len(y)), i)
            # the shift stays n λ, as in the formula
            centred = K[np.ix_(rest, rest)] - K[rest][:, rest].mean(axis=0)
            centred -= centred.mean(axis=1, keepdims=True)
            alpha = np.linalg.solve(centred + len(y) * model.ridge_ * np.eye(len(rest)), Y[rest] - Y[rest].mean(axis=0))
            here = K[i, rest] - K[np.ix_(rest, rest)].mean(axis=0)
            here = here - here.mean()
            wrong += np.argmax(Y[rest].mean(axis=0) + here @ alpha) != y[i]
        counts.append(wrong)
    best = min(range(len(models)), key=lambda k: (counts[k], models[k]._score))
    assert (found.activation_, found.directions_) == (models[best].activation, models[best].directions)
    np.testing.assert_array_equal(found.predict(X), models[best].predict(X))


def test_directions_of_rows_are_those_of_rows_and_give_inputs_of_the_same_size():
    X = np.random.default_rng(0).standard_normal((300, 5)) * [3.0, 1.0, 1.0, 1.0, 0.1] + 2.0
    layers = [
        base.FirstLayer.draw(
            given, width=40, activation="relu", scale="auto", bias=0.0, random_state=0, directions="rows"
        )
        for given in (X, sparse.csr_array(X))
    ]
    np.testing.assert_allclose(layers[0].W, layers[1].W, rtol=1e-12)
    W, centred = layers[0].W, X - X.mean(axis=0)
    cosines = (W / np.linalg.norm(W, axis=1)[:, None]) @ (centred / np.linalg.norm(centred, axis=1)[:, None]).T
    assert np.all(np.max(cosines, axis=1) > 1.0 - 1e-12) and len(set(np.argmax(cosines, axis=1))) == 40
    assert np.mean((X @ W.T) ** 2) == pytest.approx(1.0)  # s²E‖x‖² for isotropic weights
    with pytest.raises(InvalidParameter, match="directions parameter of RandomFeatureMap must be 'random' or 'rows'"):
        estimators.RandomFeatureMap(5, directions="up").fit(X)
    assert np.all(np.isfinite(estimators.RandomFeatureMap(5, directions="rows").fit(np.ones((4, 2))).layer_.W))
