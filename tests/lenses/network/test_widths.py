"""The width lens on three parametrisations of a two-layer network on digits, against the exponents of theory."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import lazyscope as ls
from lazyscope.errors import InvalidParameter

WIDTHS = [128, 256, 512, 1024, 2048]
X, LABELS = load_digits(return_X_y=True)
X = torch.tensor((X[:60] - X[:60].mean()) / X[:60].std(), dtype=torch.float32)
Y = torch.tensor(np.where(LABELS[:60] % 2 == 1, 1.0, -1.0), dtype=torch.float32)


class TwoLayer(torch.nn.Module):
    """f = N^{−power} Σ a_i tanh(w_i·x/√d), a and w standard normal."""

    def __init__(self, N, power):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, N, bias=False), torch.nn.Linear(N, 1, bias=False)
        for layer in (self.first, self.second):
            torch.nn.init.normal_(layer.weight)
        self.scale = N**-power

    def forward(self, x):
        return self.scale * self.second(torch.tanh(self.first(x / 8.0)))


def gradient_descent(rate, steps):
    def train(model, N):
        optimizer = torch.optim.SGD(model.parameters(), lr=rate(N))
        for _ in range(steps):
            optimizer.zero_grad()
            (model(X)[:, 0] - Y).square().mean().backward()
            optimizer.step()

    return train


# f = N^{−p}Σ aσ(w·x), step η: ∂f/∂w = N^{−p}a, so that Δh = η N^{−p}; ∂f/∂a = N^{−p}σ, so that Δf = N·N^{−2p}η.
# NTK p = ½, η = O(1): Δh = N^{−½}, Δf = O(1), ΔK = 1/N. Mean field p = 1, η = O(N): Δh = O(1), Δf = O(1). Standard:
# a ~ N^{−½} as PyTorch has it, which is p = ½ with a's of its own size: ∂f/∂a = σ, Δf = Nη in one step, Δh = N^{−½}η.
def test_ntk_is_lazy():
    found = ls.lens_widths(lambda N: TwoLayer(N, 0.5), WIDTHS, gradient_descent(lambda N: 0.1, 10), X, seeds=8)
    assert found.kind == "lazy" and found.verdict.startswith("Lazy: the wider, the less features change")
    assert found.exponents["features"] == pytest.approx(-0.5, abs=0.1)
    assert found.exponents["kernel"] == pytest.approx(-1.0, abs=0.1)  # σσ′Δh is a mean over neurons of random signs
    assert found.exponents["outputs"] == pytest.approx(0.0, abs=0.1)


def test_mean_field_learns_features_at_any_width():
    found = ls.lens_widths(lambda N: TwoLayer(N, 1.0), WIDTHS, gradient_descent(lambda N: 0.2 * N, 10), X, seeds=4)
    assert found.kind == "feature learning"
    for name in ("features", "kernel", "outputs"):
        assert found.exponents[name] == pytest.approx(0.0, abs=0.1), name
    data = found.dataset
    assert data.features.dims == ("seed", "width") and data.attrs["verdict"] == found.verdict


class Standard(torch.nn.Module):
    """PyTorch's own initialisation, weights of size 1/√fan-in."""

    def __init__(self, N):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(64, N), torch.nn.Tanh(), torch.nn.Linear(N, 1))

    def forward(self, x):
        return self.body(x)


def test_the_standard_parametrisation_with_one_step_size_is_unstable():
    # the first layer's share of Δf, a²σ′²‖x‖² = O(1), is 21/(N/5) of the second's: beyond N = 500 the slope is near one
    found = ls.lens_widths(Standard, [512, 1024, 2048, 4096], gradient_descent(lambda N: 0.01, 1), X, seeds=8)
    assert found.kind == "unstable" and "step size must fall" in found.verdict
    assert found.exponents["features"] == pytest.approx(-0.5, abs=0.1)
    assert found.exponents["outputs"] == pytest.approx(1.0, abs=0.1)


def test_checkpoints_stand_for_training():
    saved = {}
    for N in (16, 32, 64):
        torch.manual_seed(N)
        net = TwoLayer(N, 1.0)
        before = {name: value.clone() for name, value in net.state_dict().items()}
        gradient_descent(lambda N: 0.2 * N, 5)(net, N)
        saved[N] = (before, {name: value.clone() for name, value in net.state_dict().items()})
    found = ls.lens_widths(lambda N: TwoLayer(N, 1.0), [16, 32, 64], saved, X)
    assert found.measured["outputs"].shape == (1, 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"widths": [16, 32]}, "at least three different ones"),
        ({"make_model": lambda N: N}, "return a PyTorch module or a pair"),
        ({"train": lambda model, N: None}, "did not move"),
        ({"train": {16: ({}, {})}}, "state_dict|checkpoints"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(change, said):
    arguments = {
        "make_model": lambda N: TwoLayer(N, 1.0),
        "widths": [16, 32, 64],
        "train": lambda model, N: None,
        "x": X,
    }
    with pytest.raises(InvalidParameter, match=said) as caught:
        ls.lens_widths(**{**arguments, **change})
    assert "\n" not in str(caught.value)
