"""What dynamics cost: a flow curve in eigendecompositions, particles against the same loop in PyTorch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

import lazyscope as ls
from benchmarks.harness import Bound, Figure, interleaved, run_python
from lazyscope.limits.flow.curve import flow

D = 450  # the paper's dimension
TIMES = np.append(0.0, np.geomspace(0.01, 1000.0, 100))  # Σε: 2·10⁵ steps of 0.002 are 400
WIDTHS = (45, 225, 450, 900)
CURVE = Bound(20.0)
FASTER_THAN_TORCH = Bound(2.0, at_least=True)
PARTICLES = {"d = 20, N = 1000": (4096, 20, 1000), "d = 50, N = 512": (4096, 50, 512)}


def flow_curves(repeats: int = 5) -> Iterable[Figure]:
    """A whole curve, all of its times, at the default tolerance, from a cold start: nothing is kept between curves."""
    M = np.random.default_rng(0).standard_normal((D, D))
    M = M + M.T
    target = ls.QuadraticTarget.exponential(D, seed=100)

    def curve(regime: ls.Trained | ls.NeuralTangent, **options: Any) -> Callable[[], object]:
        return lambda: flow(target, regime, times=TIMES, **options)

    pieces: dict[str, Callable[[], object]] = {
        f"NN, N = {N}{', second layer fixed' if layer == 'fixed' else ''}": curve(
            ls.Trained(), width=N, second_layer=layer
        )
        for N in WIDTHS
        for layer in ("trained", "fixed")
    }
    pieces["NN, N, d → ∞ at N/d = 1/2"] = curve(ls.Trained(), width=D // 2, weights="typical")
    pieces["NT, N = 225"] = curve(ls.NeuralTangent(), width=225)
    seconds = interleaved({"peer": lambda: np.linalg.eigh(M), **pieces}, repeats)
    peer = seconds.pop("peer")
    for name, measured in seconds.items():
        yield Figure(f"flow of {name}, {TIMES.size} times", measured, peer, f"eigh {D}×{D}", CURVE)


def particle_steps(n: int, d: int, N: int) -> Callable[[int], object]:
    """Descent as `particles.descend` makes it, at a constant rate."""
    from lazyscope.numerics.blas import threads_for
    from lazyscope.training.mean_field.particles import Descent, Particles, Sample

    rng = np.random.default_rng(0)
    sample = Sample(rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal(n, dtype=np.float32))
    descent = Descent(sample, ls.Activation("relu"), Particles.start(d, N, rng))

    def run(steps: int) -> None:
        with threads_for(0):
            for _ in range(steps):
                descent.step(1e-3, 4.0)

    return run


def torch_steps(n: int, d: int, N: int) -> Callable[[int], object]:
    """The same loop as a user of PyTorch writes it: autograd, torch.optim.SGD, then the projection."""
    import torch

    X, y = torch.randn(n, d), torch.randn(n)
    W = torch.nn.functional.normalize(torch.randn(d, N), dim=0).requires_grad_()
    a, c = torch.zeros(N, requires_grad=True), torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([{"params": [W, a], "lr": 1e-3 * N}, {"params": [c], "lr": 1e-3}])

    def run(steps: int) -> None:
        for _ in range(steps):
            f = torch.relu(X @ W) @ a / N + c
            loss = (f - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                a.clamp_(-4.0, 4.0)
                W.div_(W.norm(dim=0).clamp(min=1.0))

    return run


def report_steps(side: str, blocks: int = 3, seconds: float = 0.4) -> None:
    """Print the seconds of a step at each size: medians of blocks. Runs in a process of its own."""
    make = {"engine": particle_steps, "torch": torch_steps}[side]
    found = {}
    for name, sizes in PARTICLES.items():
        run = make(*sizes)
        run(5)  # loads, compiles, touches memory
        steps = 1 + int(seconds / _seconds(run, 5))
        found[name] = median(_seconds(run, steps) for _ in range(blocks))
    print(json.dumps(found))


def _seconds(run: Callable[[int], object], steps: int) -> float:
    start = time.perf_counter()
    run(steps)
    return (time.perf_counter() - start) / steps


def particles_against_torch(rounds: int = 5) -> Iterable[Figure]:
    """A step of particle descent, 4096 samples, ReLU, float32, all cores: ours and PyTorch's, in turn."""
    if find_spec("torch") is None:
        raise SystemExit("The peer of this benchmark is PyTorch. Install it: pip install 'lazyscope[peers]'")
    code = "from benchmarks.flow import report_steps; report_steps({!r})"
    taken = [{side: json.loads(run_python(code.format(side))) for side in ("engine", "torch")} for _ in range(rounds)]
    for name in PARTICLES:
        ours, theirs = (median(one[side][name] for one in taken) for side in ("engine", "torch"))
        yield Figure(f"particle descent, {name}: a step", ours, theirs, "plain PyTorch loop", FASTER_THAN_TORCH)
