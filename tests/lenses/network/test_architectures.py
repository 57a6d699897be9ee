"""Networks that people have: each against the explicit computation in float64, gradient by gradient."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import lazyscope as ls

CLOSE = 1e-5


class Residual(nn.Module):
    """A small ResNet: convolutions, BatchNorm, a skip."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout(0.5))
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        h = self.first(x)
        return self.out(torch.relu(h + self.second(h)).mean(dim=(2, 3)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.body, self.out = nn.TransformerEncoder(layer, 2), nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.body(x).mean(dim=1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        return self.out(self.body(x)[0][:, -1])


class Tied(nn.Module):
    """An embedding whose transpose is the last layer."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids):
        return self.out(torch.tanh(self.embed(ids).mean(dim=1)))


CASES = {
    "resnet": (Residual, lambda rng: rng.standard_normal((12, 1, 6, 6))),
    "transformer": (Encoder, lambda rng: rng.standard_normal((12, 5, 8))),
    "lstm": (Recurrent, lambda rng: rng.standard_normal((12, 4, 3))),
    "tied": (Tied, lambda rng: rng.integers(0, 6, (12, 3))),
}


def trained(net, x, y, steps=5):
    """Train in training mode, so that dropout drops and BatchNorm moves its statistics."""
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


def explicit(net, start, x):
    """The score by hand: gradients of every output of every row by `torch.autograd`, in float64."""
    now = copy.deepcopy(net).double().eval()
    before = copy.deepcopy(now)
    with torch.no_grad():  # parameters of the start, running statistics of now
        for parameter, old in zip(before.parameters(), start, strict=True):
            parameter.copy_(old.double())

    def jacobian(model):
        parameters, rows = list(model.parameters()), []
        for k in range(len(x)):
            for value in model(x[k : k + 1])[0]:
                parts = torch.autograd.grad(value, parameters, retain_graph=True)
                rows.append(torch.cat([part.reshape(-1) for part in parts]))
        return torch.stack(rows).numpy()

    J, J0 = jacobian(now), jacobian(before)
    f, f0 = (model(x).detach().numpy().ravel() for model in (now, before))
    delta = np.concatenate(
        [(a - b).detach().numpy().ravel() for a, b in zip(now.parameters(), before.parameters(), strict=True)]
    )
    n, k = len(x), len(f) // len(x)
    K, K0 = (np.einsum("akp,bkp->ab", M.reshape(n, k, -1), M.reshape(n, k, -1)) for M in (J, J0))
    missed = np.linalg.norm(f - f0 - J0 @ delta) / np.linalg.norm(f - f0)
    return 1.0 - min(1.0, max(missed, np.linalg.norm(K - K0) / np.linalg.norm(K0)))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("name", CASES)
def test_laziness_is_that_of_the_explicit_computation(name):
    make, draw = CASES[name]
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    net, data = make(), draw(rng)
    x = torch.as_tensor(data, dtype=torch.long if data.dtype.kind == "i" else torch.float32)
    y = torch.as_tensor(rng.integers(0, 2, 12))
    look = ls.lens(net, x, y.numpy(), orders=2)
    start = [parameter.detach().clone() for parameter in net.parameters()]
    trained(net, x, y)
    seen = look(1).laziness
    exact = x if data.dtype.kind == "i" else x.double()
    assert 0.0 < seen < 1.0
    assert seen == pytest.approx(explicit(net, start, exact), abs=CLOSE)
    assert net.training and torch.backends.mha.get_fastpath_enabled()  # all is as it was
    if name == "tied":
        assert len(look.start) == 24  # counted once


def test_a_function_of_jax_with_nested_parameters_and_two_inputs(doubles):
    """As Flax has them: apply({"params": …}, a, b), here with a dictionary of inputs."""

    def apply(variables, batch):
        params = variables["params"]
        h = jnp.tanh(batch["a"] @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"])
        return {"logits": (h * batch["b"]) @ params["Dense_1"]["kernel"]}

    rng = np.random.default_rng(0)
    shapes = {"Dense_0": {"kernel": (3, 6), "bias": (6,)}, "Dense_1": {"kernel": (6, 2)}}
    draw = lambda shape: jnp.asarray(rng.standard_normal(shape))  # noqa: E731
    params = jax.tree_util.tree_map(draw, {"params": shapes}, is_leaf=lambda leaf: isinstance(leaf, tuple))
    batch = {"a": rng.standard_normal((7, 3)), "b": rng.standard_normal((7, 6))}
    look = ls.lens((apply, params), batch, rng.integers(0, 2, 7), orders=1)
    moved = jax.tree_util.tree_map(lambda leaf: leaf + 0.05 * draw(leaf.shape), params)
    seen = look(1, moved).laziness
    flat, tree = jax.flatten_util.ravel_pytree(params)
    other = jax.flatten_util.ravel_pytree(moved)[0]
    f = lambda theta: apply(tree(theta), {k: jnp.asarray(v) for k, v in batch.items()})["logits"]  # noqa: E731
    J0, J = (np.asarray(jax.jacrev(f)(theta)) for theta in (flat, other))
    K0, K = (np.einsum("akp,bkp->ab", M, M) for M in (J0, J))
    f0, f1 = np.asarray(f(flat)), np.asarray(f(other))
    missed = np.linalg.norm(f1 - f0 - J0 @ np.asarray(other - flat)) / np.linalg.norm(f1 - f0)
    expected = 1.0 - min(1.0, max(missed, np.linalg.norm(K - K0) / np.linalg.norm(K0)))
    assert seen == pytest.approx(expected, abs=CLOSE) and 0.0 < seen < 1.0


class Output:
    """What a model of Hugging Face returns: an object with logits."""

    def __init__(self, logits):
        self.logits, self.loss = logits, None


class Named(nn.Module):
    """Takes inputs by name, has a frozen layer and a buffer."""

    def __init__(self):
        super().__init__()
        self.embed, self.frozen, self.out = nn.Embedding(5, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.frozen.requires_grad_(False)
        self.register_buffer("scale", torch.full((4,), 0.5))

    def forward(self, ids, mask):
        h = (self.embed(ids) * mask[:, :, None]).sum(dim=1) * self.scale
        return Output(self.out(torch.tanh(self.frozen(h))))


@pytest.mark.parametrize("half", [None, torch.bfloat16, torch.float16])
def test_inputs_by_name_outputs_with_logits_frozen_parts_buffers_and_half_precision(half):
    torch.manual_seed(0)
    net, rng = Named(), np.random.default_rng(0)
    if half is not None:
        net.to(half)
        net.out.float()  # mixed, as people have it
    batch = {"ids": rng.integers(0, 5, (9, 3)), "mask": np.ones((9, 3), dtype=np.float32)}
    look = ls.lens(net, batch, rng.integers(0, 2, 9), orders=1)
    assert len(look.start) == 5 * 4 + 4 * 2 + 2 and set(look.model.layers) == {"embed", "out"}
    with torch.no_grad():
        for parameter in (net.embed.weight, net.out.weight):
            parameter.mul_(1.25)  # a power of two, and a quarter: exact enough in half precision
    seen = look(1)
    assert 0.0 < seen.laziness < 1.0
    by_position = ls.lens(
        net, (torch.as_tensor(batch["ids"]), torch.as_tensor(batch["mask"])), np.zeros(9, int), orders=1
    )
    np.testing.assert_allclose(by_position.start_values, look.model.values(look.model.state(), look.x), rtol=1e-6)


def test_several_inputs_must_have_the_same_rows():
    with pytest.raises(ls.errors.InvalidParameter, match="have the same rows in each of its arrays"):
        ls.lens(Named(), {"ids": np.zeros((3, 2), int), "mask": np.ones((4, 2))}, np.zeros(3, int))


def test_a_network_that_insists_on_its_precision_is_looked_at_in_it():
    class Insists(nn.Linear):
        def forward(self, x):
            return super().forward(x) @ torch.ones(2, 2, dtype=torch.float32)  # a product of float64 would be refused

    look = ls.lens(Insists(3, 2), np.ones((4, 3)), np.zeros((4, 2)), orders=1)
    assert look.model.dtype == torch.float32
