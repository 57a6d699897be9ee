"""What training and fitting cost: against a plain PyTorch loop, a plain NumPy loop, and the matrix-product peak."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from statistics import median

import numpy as np

import lazyscope as ls
from benchmarks.harness import Bound, Figure, interleaved, run_python
from lazyscope.numerics.blas import threads_for
from lazyscope.training.linear.features import Features, fit
from lazyscope.training.sgd import single
from lazyscope.training.sgd.network import Networks
from lazyscope.training.sgd.square import SquareNetworks
from lazyscope.training.sgd.stream import Law, batches, law_of
from lazyscope.training.sgd.tangent import Tangents

D = 450  # the paper's dimension
BATCH = 100  # and its batch
FASTER_THAN_TORCH = {45: Bound(1.5, at_least=True), 450: Bound(1.8, at_least=True), 4500: Bound(8.0, at_least=True)}
TANGENT = Bound(1.0, at_least=True)  # nothing is promised for NT; it must not be slower
PEAK_SHARE = Bound(1.0 / 0.55)  # of the time that the same flops take at the peak
FASTER_THAN_NUMPY = Bound(8.0, at_least=True)
FEATURES = Bound(1.6)
COMMITTEE = {1: Bound(2.0, at_least=True), 100: Bound(2.0, at_least=True)}  # by batch

Steps = Callable[[int], object]


def _law(d: int) -> Law:
    return law_of(ls.QuadraticTarget.exponential(d, seed=100))


def _weights(N: int, d: int) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal((N, d)) / np.sqrt(d)).astype(np.float32)


def engine(regime: str, widths: list[int], step_sizes: list[float]) -> Steps:
    """What `sgd.train` does between two points of its trace: sample, step, look for the diverged every 50 steps.

    Not `train` itself: forty points and a test are nothing in 2·10⁵ steps, and half of the time in a few hundred.
    """
    law, rng, plan = _law(D), np.random.default_rng(1), ls.SGD()
    starts, N = [_weights(N, D) for N in widths for _ in step_sizes], [N for N in widths for _ in step_sizes]
    sizes = step_sizes * len(widths)
    pack = SquareNetworks(starts, N, sizes) if regime == "NN" else Tangents(starts, N, sizes, ls.Activation("square"))

    def run(steps: int) -> None:
        with threads_for(D * BATCH * pack.state.shape[1]):
            for step, (X, y) in enumerate(batches(law, BATCH, steps, rng)):
                pack.step(X, y, 1.0 / plan.rate(1.0, step))
                if step % 50 == 0:
                    assert pack.healthy().all()

    return run


def plain_torch(regime: str, widths: list[int], step_sizes: list[float]) -> Steps:
    """The same protocol as a user of PyTorch writes it: modules aside, autograd and torch.optim.SGD."""
    import torch

    (N,), (rate,) = widths, step_sizes
    gamma = torch.tensor(_law(D).gamma, dtype=torch.float32)
    W = torch.tensor(_weights(N, D))
    c = torch.zeros((), requires_grad=True)
    if regime == "NN":
        W.requires_grad_()
        a = torch.zeros((), requires_grad=True)
        groups = [{"params": [W], "lr": rate * N}, {"params": [a, c], "lr": rate}]
    else:
        V = torch.zeros_like(W, requires_grad=True)
        groups = [{"params": [V], "lr": rate * N}, {"params": [c], "lr": rate}]
    optimizer = torch.optim.SGD(groups)

    def run(steps: int) -> None:
        for _ in range(steps):
            x = torch.randn(BATCH, D)
            y = x.square() @ gamma - gamma.sum()
            H = x @ W.T
            f = a / N * H.square().sum(1) + c if regime == "NN" else 2 / N * (H * (x @ V.T)).sum(1) + c
            loss = (f - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def report_steps(side: str) -> None:
    """Print the seconds of a step for each regime and width. Runs in a process of its own."""
    make = {"engine": engine, "torch": plain_torch}[side]
    cases = [(regime, N) for regime in ("NN", "NT") for N in FASTER_THAN_TORCH]
    print(json.dumps({f"{regime} {N}": _a_step(make(regime, [N], [1e-3])) for regime, N in cases}))


def _a_step(run: Steps, blocks: int = 3, seconds: float = 0.3) -> float:
    """Return the seconds of a step: the median of blocks."""
    run(20)  # loads, compiles, touches memory
    steps = 1 + int(seconds / _seconds(run, 20))
    return median(_seconds(run, steps) for _ in range(blocks))


def _seconds(run: Steps, steps: int) -> float:
    start = time.perf_counter()
    run(steps)
    return (time.perf_counter() - start) / steps


def sgd_against_torch(rounds: int = 5) -> Iterable[Figure]:
    """One network, batch 100, float32, all cores, sampling included: our engine and a plain PyTorch loop, in turn.

    Each in a process of its own: the OpenMP threads of PyTorch and the BLAS threads of SciPy spin for a while after
    their work, on the cores that the other needs, and either side would be timed with the other's spinning.
    """
    for name, (ours, peer) in _in_turn("report_steps", rounds).items():
        regime, N = name.split()
        bound = FASTER_THAN_TORCH[int(N)] if regime == "NN" else TANGENT
        yield Figure(f"SGD {regime}, N = {N}, d = {D}: a step", ours, peer, "plain PyTorch loop", bound)


def _in_turn(report: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the seconds of a step by our engine and by PyTorch, medians over rounds of a process each."""
    if find_spec("torch") is None:
        raise SystemExit("The peer of this benchmark is PyTorch. Install it: pip install 'lazyscope[torch]'")
    code = f"from benchmarks.simulate import {report}; {report}({{!r}})"
    taken = [{side: json.loads(run_python(code.format(side))) for side in ("engine", "torch")} for _ in range(rounds)]
    return {
        name: (median(each["engine"][name] for each in taken), median(each["torch"][name] for each in taken))
        for name in taken[0]["engine"]
    }


def committee(batch: int, d: int = 1000) -> Steps:
    """SGD on a committee of two erf neurons by two such neurons, as the order-parameter equations have it."""
    law, rng = law_of(ls.MultiIndex(d, "committee-erf2", indices=2)), np.random.default_rng(1)
    pack = Networks([_weights(2, d)], [2], [0.25 / d], ls.Activation("erf2"), fixed_layer=True, summed=True)

    def run(steps: int) -> None:
        with threads_for(d * batch * 2):
            for step, (X, y) in enumerate(batches(law, batch, steps, rng)):
                pack.step(X, y, 1.0)
                if step % 50 == 0:
                    assert pack.healthy().all()

    return run


def committee_torch(batch: int, d: int = 1000) -> Steps:
    """The same as a user of PyTorch writes it."""
    import torch

    W, c = torch.tensor(_weights(2, d), requires_grad=True), torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([W, c], lr=0.25 / d)

    def run(steps: int) -> None:
        for _ in range(steps):
            x = torch.randn(batch, d)
            y = torch.erf(x[:, :2] / 2**0.5).sum(1)
            loss = (torch.erf(x @ W.T / 2**0.5).sum(1) + c - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def report_committees(side: str) -> None:
    """Print the seconds of a step for each batch. Runs in a process of its own."""
    make = {"engine": committee, "torch": committee_torch}[side]
    print(json.dumps({str(batch): _a_step(make(batch)) for batch in COMMITTEE}))


def committee_against_torch(rounds: int = 5) -> Iterable[Figure]:
    """SGD of two erf neurons on two, d = 1000, sampling included: our engine and a plain PyTorch loop, in turn."""
    for name, (ours, peer) in _in_turn("report_committees", rounds).items():
        title = f"SGD on a committee of 2 erf neurons, d = 1000, batch {name}: a step"
        yield Figure(title, ours, peer, "plain PyTorch loop", COMMITTEE[int(name)])


def side_by_side(repeats: int = 5, steps: int = 60) -> Iterable[Figure]:
    """Twelve step sizes of N = d in one pass over the stream, sampling included, in flops at the peak."""
    run = engine("NN", [D], list(np.geomspace(1e-4, 3e-3, 12)))
    peak, flops = Peak(), 4.0 * BATCH * D * 12 * D
    seconds = interleaved({"pack": lambda: run(steps), "peak": peak}, repeats)
    yield Figure(
        f"SGD NN, 12 models of N = d = {D} side by side: a step",
        seconds["pack"] / steps,
        flops / peak.rate(seconds["peak"]),
        "its flops at the float32 peak",
        PEAK_SHARE,
        extra={"share_of_peak": flops * steps / seconds["pack"] / peak.rate(seconds["peak"])},
    )


class Peak:
    """Float32 products of 2048×2048 matrices, by the BLAS that the engine uses: another one would spin beside it."""

    def __init__(self, size: int = 2048, products: int = 3) -> None:
        from scipy.linalg.blas import sgemm

        self.sgemm, self.products = sgemm, products
        self.A = np.asfortranarray(np.random.default_rng(0).standard_normal((size, size)), dtype=np.float32)
        self.out = np.empty_like(self.A)

    def __call__(self) -> None:
        """Multiply."""
        for _ in range(self.products):
            self.sgemm(1.0, self.A, self.A, c=self.out, overwrite_c=1)

    def rate(self, seconds: float) -> float:
        """Flops a second."""
        return self.products * 2.0 * len(self.A) ** 3 / seconds


def one_sample_a_step(repeats: int = 5, steps: int = 100_000, d: int = 100, N: int = 200) -> Iterable[Figure]:
    """Batch 1, Theorem 3's own algorithm, sampling included, against NumPy without a needless copy."""
    law, plan, rate = _law(d), ls.SGD(steps=steps, batch=1), 1e-4
    pack, plain = SquareNetworks([_weights(N, d)], [N], [rate]), PlainNumPy(d, N, rate)
    rng, nowhere = np.random.default_rng(1), np.array([], dtype=int)
    seconds = interleaved(
        {"ours": lambda: list(single.walk(law, pack, plan, rng, nowhere)), "numpy": lambda: plain.run(steps // 10)},
        repeats,
    )
    assert pack.healthy().all()
    ours, peer = seconds["ours"] / steps, seconds["numpy"] / (steps // 10)
    yield Figure(f"SGD NN, one sample a step, N = {N}, d = {d}", ours, peer, "NumPy loop", FASTER_THAN_NUMPY)


class PlainNumPy:
    """f = (a/N)‖Wx‖² + c: two passes over W a step, samples drawn a thousand at a time."""

    def __init__(self, d: int, N: int, rate: float) -> None:
        self.rng, self.rate, self.N = np.random.default_rng(1), np.float32(rate), np.float32(N)
        self.gamma = _law(d).gamma.astype(np.float32)
        self.W, self.a, self.c = _weights(N, d), np.float32(0.0), np.float32(0.0)
        self.move = np.empty_like(self.W)

    def run(self, steps: int) -> None:
        """Sample, forward, residual, rank-one update in place."""
        for _ in range(0, steps, 1000):
            X = self.rng.standard_normal((1000, len(self.gamma)), dtype=np.float32)
            labels = (X * X) @ self.gamma - self.gamma.sum()
            for x, y in zip(X, labels, strict=True):
                h = self.W @ x
                q = h @ h / self.N
                pull = 2 * self.rate * (self.a * q + self.c - y)
                np.multiply.outer((2 * pull * self.a) * h, x, out=self.move)
                self.W -= self.move
                self.a -= pull * q
                self.c -= pull


def streamed_features(repeats: int = 3, samples: int = 500_000, N: int = 4500) -> Iterable[Figure]:
    """The RF fit of the paper from 5·10⁵ samples, by its slope over two short streams, in flops at the peak."""
    law, features = _law(D), Features(_weights(N, D), ls.Activation("relu"))
    short, long = 2 * 4096, 5 * 4096
    peak = Peak()
    seconds = interleaved(
        {
            "short": lambda: fit(law, features, short, np.random.default_rng(1)),
            "long": lambda: fit(law, features, long, np.random.default_rng(1)),
            "peak": peak,
        },
        repeats,
        warm_up=False,  # a round takes ten seconds
    )
    a_sample = (seconds["long"] - seconds["short"]) / (long - short)
    measured = seconds["long"] + (samples - long) * a_sample
    flops = samples * (2.0 * D * N + float(N) ** 2)
    note = f"{long:,} of {samples:,} samples measured, the rest at {1e6 * a_sample:.0f} µs each"
    yield Figure(
        f"RF relu fit, N = {N}, d = {D}, {samples:,} samples",
        measured,
        flops / peak.rate(seconds["peak"]),
        "its flops at the float32 peak",
        FEATURES,
        note=note,
        extra={"seconds_a_sample": a_sample, "seconds_at_the_end": seconds["short"] - short * a_sample},
    )
