"""The network lens on PyTorch and JAX: derivatives against explicit ones, laziness where it is known, and refusals."""

import copy
import sys
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import torch

import lazyscope as ls
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.network.jax_model import JaxModel
from lazyscope.lenses.network.laziness import laziness, movement, relative_error
from lazyscope.lenses.network.sketch import alignment, change, drift
from lazyscope.lenses.network.torch_model import TorchModel

pytestmark = pytest.mark.usefixtures("doubles")


def module(d=3, m=6, k=2, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(d, m), torch.nn.Tanh(), torch.nn.Linear(m, k)).double()


def function(params, x):
    h = jnp.tanh(x @ params["first"]["w"] + params["first"]["b"])
    return h @ params["second"]["w"] + params["second"]["b"]


def params_of(net):
    """The weights of `module` as a tree."""
    first, second = net[0], net[2]
    return {
        "first": {"w": jnp.asarray(first.weight.detach().numpy().T), "b": jnp.asarray(first.bias.detach().numpy())},
        "second": {"w": jnp.asarray(second.weight.detach().numpy().T), "b": jnp.asarray(second.bias.detach().numpy())},
    }


@pytest.fixture(params=["torch", "jax"])
def model(request, doubles):
    net = module()
    return TorchModel(net) if request.param == "torch" else JaxModel(function, params_of(net))


def inputs(model, n=6):
    return model.array(np.random.default_rng(1).standard_normal((n, 3)))


def numerical_jacobian(model, theta, x):
    """(n·k, P), by central differences of the values alone."""
    h = 1e-5
    columns = [(model.values(theta + h * e, x) - model.values(theta - h * e, x)).ravel() for e in np.eye(len(theta))]
    return np.stack(columns, axis=1) / (2 * h)


def test_the_kernel_is_that_of_explicit_jacobians_whatever_the_chunk(model):
    x, theta = inputs(model), model.state()
    J = numerical_jacobian(model, theta, x).reshape(6, 2, -1)
    expected = np.einsum("akp,bkp->ab", J, J) / 2
    for chunk in (2, 4, 100):
        np.testing.assert_allclose(model.kernel(theta, x, chunk), expected, rtol=1e-7)


def test_products_with_the_kernel_need_no_jacobian(model):
    x, theta = inputs(model), model.state()
    J = numerical_jacobian(model, theta, x)
    u = np.random.default_rng(2).standard_normal((6, 2))
    for rows in (3, 100):
        model.at_once = rows
        np.testing.assert_allclose(model.times(theta, x, u).ravel(), J @ (J.T @ u.ravel()), rtol=1e-6, atol=1e-9)


def test_taylor_pieces_are_those_of_the_values_along_a_line(model):
    x, theta = inputs(model), model.state()
    delta = 0.3 * np.random.default_rng(3).standard_normal(len(theta))
    pieces = model.pieces(theta, delta, x, 4)
    # f(θ + tδ) at Chebyshev points of a short line, as a polynomial in t
    t = 0.1 * np.cos(np.pi * (np.arange(12) + 0.5) / 12)
    values = np.stack([model.values(theta + s * delta, x).ravel() for s in t])
    fitted = np.polynomial.polynomial.polyfit(t / 0.1, values, 9)
    for j in range(4):
        np.testing.assert_allclose(pieces[j].ravel(), fitted[j] / 0.1**j, atol=10.0 ** (j - 9) * factorial(4))


@pytest.mark.parametrize(("order", "loss"), [(1, "cross-entropy"), (2, "square")])
def test_the_gradient_of_a_taylor_model_is_that_of_differences(model, order, loss):
    x, theta = inputs(model), model.state()
    delta = 0.1 * np.random.default_rng(4).standard_normal(len(theta))
    Y = np.eye(2)[np.arange(6) % 2]
    model.at_once = 3
    value, gradient = model.taylor_loss(theta, delta, x, Y, order, loss)
    F = sum(model.pieces(theta, delta, x, order))
    if loss == "square":
        assert value == pytest.approx(0.5 * np.mean(np.sum((F - Y) ** 2, axis=1)))
    else:
        logs = F - np.log(np.exp(F).sum(axis=1, keepdims=True))
        assert value == pytest.approx(-np.mean(np.sum(logs * Y, axis=1)))
    h = 1e-5
    for i in range(0, len(theta), 7):
        e = np.zeros(len(theta))
        e[i] = h
        up, down = (model.taylor_loss(theta, delta + s * e, x, Y, order, loss)[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * h), abs=1e-8)


def test_both_libraries_see_the_same_network():
    net = module()
    other, x = JaxModel(function, params_of(net)), np.random.default_rng(1).standard_normal((9, 3))
    one = TorchModel(net)
    np.testing.assert_allclose(one.values(one.state(), one.array(x)), other.values(other.state(), other.array(x)))
    K = one.kernel(one.state(), one.array(x), 4)
    np.testing.assert_allclose(K, other.kernel(other.state(), other.array(x), 4), rtol=1e-10)
    assert list(one.layers) == ["0", "2"] and list(other.layers) == ["['first']", "['second']"]


# -- laziness --------------------------------------------------------------------------------------------------


class TwoLayers(torch.nn.Module):
    """f = scale·Σ a_i tanh(w_i·x): scale 1/√m is the lazy scaling, 1/m the mean-field one."""

    def __init__(self, d, m, scale):
        super().__init__()
        self.scale = scale
        self.first, self.second = torch.nn.Linear(d, m, bias=False), torch.nn.Linear(m, 1, bias=False)
        torch.nn.init.normal_(self.first.weight, std=d**-0.5)
        torch.nn.init.normal_(self.second.weight)

    def forward(self, x):
        return self.scale * self.second(torch.tanh(self.first(x)))


def watched(m, scale, rate, amplitude, steps):
    torch.manual_seed(0)
    net, x = TwoLayers(5, m, scale), torch.randn(100, 5)
    y = amplitude * x[:, 0] * x[:, 1]
    look = ls.lens(net, x, y.numpy())
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        (0.5 * ((net(x)[:, 0] - y) ** 2).mean()).backward()
        optimizer.step()
        if step in (steps // 2, steps):
            look(step)
    return look


def test_lazy_scaling_is_near_one_and_mean_field_near_zero():
    lazy = watched(2000, 2000**-0.5, 0.2, 1.0, steps=300)
    rich = watched(300, 1 / 300, 0.1 * 300, 3.0, steps=1000)
    assert lazy.looks[-1].laziness > 0.95 and lazy.verdict.startswith("Training was lazy")
    assert rich.looks[-1].laziness < 0.05 and rich.verdict.startswith("Training was not lazy")
    assert lazy.looks[-1].drift < 0.01 < 0.2 < rich.looks[-1].drift
    assert np.all(lazy.looks[-1].movement < 0.2) and np.any(rich.looks[-1].movement > 1.0)
    assert lazy.looks[-1].loss < 0.7 * lazy.looks[0].loss  # it did learn
    assert lazy.looks[1].laziness > lazy.looks[2].laziness  # the farther, the less lazy


def test_scores_in_closed_form():
    assert laziness(0.0, 0.0) == 1.0 and laziness(2.0, 0.1) == laziness(0.1, 2.0) == 0.0 and laziness(0.2, 0.1) == 0.8
    assert np.isnan(laziness(np.nan, 0.0))
    assert np.isnan(relative_error(np.ones(2), np.ones(2), np.ones(2)))
    K0 = np.diag([1.0, 0.0])[None]
    assert drift(np.diag([0.0, 1.0])[None], K0) == 1.0 and drift(5 * K0, K0) == 0.0 and change(3 * K0, K0) == 2.0
    rng = np.random.default_rng(0)
    M, Y = rng.standard_normal((6, 6)), rng.standard_normal((6, 2))
    K = M @ M.T
    C = np.eye(6) - 1 / 6
    expected = np.trace(C @ K @ C @ Y @ Y.T) / np.linalg.norm(C @ K @ C) / np.linalg.norm(C @ Y @ Y.T @ C)
    assert alignment(K[None], Y) == pytest.approx(expected)
    assert np.isnan(movement(np.ones(1), np.zeros(1), {"a": slice(0, 1)})[0])


@pytest.fixture(scope="module")
def after():
    """A small classifier, looked at after training."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((150, 4))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    net = torch.nn.Sequential(torch.nn.Linear(4, 30), torch.nn.Tanh(), torch.nn.Linear(30, 2)).double()
    start = copy.deepcopy(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.tensor(x[:100])), torch.tensor(y[:100])).backward()
        optimizer.step()
    net.train()
    look = ls.lens(net, x[:100], y[:100], initial=start, test=(x[100:], y[100:]))
    look.rivals(steps=60)
    return net, look


def test_after_training_with_the_start_and_its_rivals(after):
    net, look = after
    assert net.training  # as it was
    assert look.loss == "cross-entropy" and len(look.looks) == 2
    assert look.looks[1].error == 0.0 and look.looks[1].laziness < 0.6
    linear, quadratic = look.trained
    assert linear.caught_up and linear.loss <= look.looks[-1].loss
    assert (linear.order, quadratic.order) == (1, 2) and 0 <= look.test_error < 0.5
    data = look.dataset
    assert data.taylor_error.dims == ("step", "order") and list(data.layer.values) == ["0", "2"]
    assert data.rival_error.sel(rival="linearised") == linear.test
    assert 0 <= data.laziness.values[-1] <= 1 and np.isnan(data.laziness.values[0])


def test_the_report_needs_nothing_else(after, tmp_path):
    _, look = after
    text = look.save(tmp_path / "network.html").read_text(encoding="utf-8")
    assert look.verdict in text and "linearised" in text and "<script" not in text and "http-equiv" not in text
    look(2.0)
    assert "<svg" in look.html()


def test_a_linear_network_is_perfectly_lazy_and_its_rival_is_itself():
    torch.manual_seed(0)
    net, x = torch.nn.Linear(3, 1).double(), torch.randn(20, 3).double()
    y = (x[:, 0] - x[:, 1]).numpy()
    look = ls.lens(net, x, y)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, -1.0, 0.0]]))
        net.bias.zero_()
    assert look().laziness == pytest.approx(1.0, abs=1e-12)
    (linear,) = look.rivals(orders=(1,))
    assert linear.train < 1e-10


def test_jax_parameters_are_passed_along():
    net, x = module(k=1), np.random.default_rng(0).standard_normal((30, 3))
    params = params_of(net)
    look = ls.lens((function, params), x, x[:, 0] * x[:, 1], orders=2)
    moved = jax.tree_util.tree_map(lambda leaf: leaf + 0.01, params)
    assert look(1, moved).laziness > 0.8
    assert look.dataset.sizes == {"step": 2, "order": 2, "layer": 2}
    after = ls.lens((function, moved), x, x[:, 0] * x[:, 1], initial=params)
    assert after.looks[-1].taylor[0] == pytest.approx(look.looks[-1].taylor[0])


class Keras:
    """What a callback of Keras is called with."""

    def set_model(self, model):
        self.model = model


class Lightning:
    """What a callback of Lightning is called with."""

    current_epoch = 4


def test_hooks_of_other_libraries():
    net, x = module(k=1), np.zeros((5, 3)) + np.arange(5)[:, None]
    look = ls.lens(net, x, np.arange(5.0))
    callback = look.callback(Keras)
    callback.set_model(net)
    callback.on_epoch_end(0, logs={})
    look.callback(Lightning).on_train_epoch_end(Lightning(), net)
    assert isinstance(callback, Keras) and [one.step for one in look.looks] == [0.0, 1.0, 5.0]
    assert look.verdict.startswith("The network has not moved")


class Rows(TorchModel):
    """Remembers how many rows every Jacobian had."""

    seen: list[int] = []  # noqa: RUF012

    def _jacobian(self, theta, x):
        self.seen.append(len(x))
        return super()._jacobian(theta, x)


def test_jacobians_never_hold_more_rows_than_a_chunk():
    model = Rows(module())
    model.kernel(model.state(), inputs(model, 50), 8)
    assert max(model.seen) == 8 and sum(model.seen) > 50


class Detached(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).detach()


class Chosen(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).argmax(dim=1, keepdim=True).float()


class Wide(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x)[:, :, None]


class Centred(torch.nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        return out - out.mean(dim=0)


class Own(torch.nn.BatchNorm1d):
    """Statistics of the batch, none of the past."""

    def __init__(self):
        super().__init__(3, track_running_stats=False)


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (Own(), "no batch statistics. Got Own"),
        (Centred(3, 1), "outputs that change with the other rows of a batch"),
        (torch.nn.Linear(5, 1), "run on the inputs. Got RuntimeError"),
        (torch.nn.LazyLinear(1), "waits for its first input"),
        (torch.nn.Flatten(), "have parameters that can be trained"),
        (Detached(3, 1), "be differentiable in its parameters"),
        (Chosen(3, 2), "be differentiable in its parameters"),
        (Wide(3, 1), r"outputs of shape \(n,\) or \(n, k\)"),
        (lambda x: x, "be a PyTorch module, a Keras model, or a pair"),
    ],
)
def test_networks_that_cannot_be_looked_at_are_refused_in_one_line(net, said):
    with pytest.raises(InvalidParameter, match=said) as caught:
        ls.lens(net, np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros(4))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((np.ones((4, 3)), None), {}, "be given with a network"),
        ((np.ones((4, 3)), np.zeros(5)), {}, "one row for each of the 4 inputs"),
        ((np.ones((4, 3)), np.zeros((4, 3))), {}, "as many columns as the network has outputs, 2"),
        ((np.ones((4, 3)), np.array([0, 1, 2, 0])), {}, "be classes 0 … 1"),
        ((np.ones((4, 3)), np.zeros((4, 2))), {"loss": "hinge"}, 'be "square" or "cross-entropy"'),
        ((np.ones((4, 3)), np.zeros((4, 2))), {"loss": "cross-entropy"}, "be whole numbers"),
        ((np.ones((4, 3)), np.zeros((4, 2))), {"initial": {"a": 1}}, "be a state_dict"),
        ((np.ones((4, 3)), np.zeros((4, 2))), {"test": 3}, "be a pair"),
        ((np.ones((4, 3)), np.zeros((4, 2))), {"chunk": 0}, "chunk parameter"),
        ((np.ones((4, 3)), np.zeros((4, 2))), {"orders": 0}, "orders parameter"),
        ((np.ones((4, 3)), np.full((4, 2), np.nan)), {}, "hold finite numbers"),
        ((np.ones((4, 3)), np.array(["a"] * 4)), {}, "hold finite numbers"),
        ((np.ones((0, 3)), np.zeros((0, 2))), {}, "have rows"),
        (([["a", "b", "c"]], np.zeros((1, 2))), {}, "be an array of numbers, rows first"),
        ((np.ones((4, 3)), np.zeros((4, 2))), {"test": (np.ones((4, 2)), np.zeros((4, 2)))}, "run on the inputs"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments, options, said):
    with pytest.raises(InvalidParameter, match=said):
        ls.lens(module(), *arguments, **options)


def test_trees_that_are_no_parameters_are_refused():
    with pytest.raises(InvalidParameter, match="tree of arrays of real numbers"):
        ls.lens((function, {"a": 1}), np.ones((4, 3)), np.zeros(4))
    params = params_of(module())
    look = ls.lens((function, params), np.ones((4, 3)), np.zeros((4, 2)))
    with pytest.raises(InvalidParameter, match="same shape as the model's"):
        look(1, {"first": params["first"]})
    with pytest.raises(InvalidParameter, match="outputs of shape"):
        ls.lens((lambda p, x: p["w"], {"w": jnp.ones(3)}), np.ones((4, 3)), np.zeros(4))
    with pytest.raises(InvalidParameter, match="outputs that change with the other rows"):
        ls.lens((lambda w, x: x @ w - (x @ w).mean(0), jnp.ones((3, 1))), np.arange(12.0).reshape(4, 3), np.zeros(4))


def test_tensors_and_frames_are_data_too():
    x = np.random.default_rng(0).standard_normal((7, 3))
    y = torch.tensor(x[:, 0], requires_grad=True)
    looks = [ls.lens(module(k=1), data, y).looks[0] for data in (x, torch.tensor(x), pd.DataFrame(x))]
    assert looks[0].loss == looks[1].loss == looks[2].loss


def test_without_jax_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(InvalidParameter, match=r"pip install 'lazyscope\[jax\]'"):
        ls.lens((function, {}), np.ones((4, 3)), np.zeros(4))


def test_a_notebook_shows_a_sentence_and_no_arrays():
    look = ls.lens(module(), torch.randn(5, 3), torch.randn(5, 2))
    assert repr(look) == f"<NetworkLens: {look.verdict}>"
