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
CURVE = Bound(15.0)
FASTER_THAN_TORCH = Bound(2.0, at_least=True)
SGD_CURVE = Bound(50.0)
FASTER_THAN_LOOPS = Bound(20.0, at_least=True)
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


def order_parameter_curves(repeats: int = 3) -> Iterable[Figure]:
    """SGD as a differential equation: erf, N = r = 2 to t = 200; N = 8, r = 4 against the same in NumPy loops."""
    from lazyscope.limits.sgd.order_parameters.machine import Machine

    M = np.random.default_rng(0).standard_normal((D, D))
    M = M + M.T
    pair, start = ls.MultiIndex(1000, "committee-erf2", indices=2), (0.25 * np.eye(2), np.diag([0.02, 0.01]))

    def curve() -> object:
        return ls.order_parameters(
            pair, ls.Trained("erf2"), times=np.linspace(0, 200, 1000), step_size=0.5, overlaps=start
        )

    seconds = interleaved({"peer": lambda: np.linalg.eigh(M), "ours": curve}, repeats)
    yield Figure(
        "SGD's equations, erf, N = r = 2, t = 200", seconds["ours"], seconds["peer"], f"eigh {D}×{D}", SGD_CURVE
    )
    machine = Machine.of(ls.MultiIndex(1000, "committee-erf2", indices=4), ls.Trained("erf2"), 8)
    begin, times = machine.drawn(1000, 0.5, 0, 0), np.linspace(0.0, 1.0, 1000)
    pieces = {
        "peer": lambda: _loops(machine.b, begin, machine.N, times, 0.5),
        "ours": lambda: machine.path(begin, times, 0.5),
    }
    seconds = interleaved(pieces, 1)
    name = "SGD's equations, erf, N = 8, r = 4, 1,000 times"
    yield Figure(name, seconds["ours"], seconds["peer"], "NumPy loops and solve_ivp", FASTER_THAN_LOOPS)


def _loops(b: Any, begin: Any, N: int, times: Any, step: float) -> Any:
    """The equations of Saad and Solla for erf(u/√2) as one writes them down, a NumPy call for each integral."""
    from scipy.integrate import solve_ivp

    r = b.size
    n = N + r

    def I3(C: Any, i: int, j: int, k: int) -> Any:
        free = (1 + C[i, i]) * (1 + C[k, k]) - C[i, k] ** 2
        return 2 / np.pi * (C[j, k] * (1 + C[i, i]) - C[i, j] * C[i, k]) / (1 + C[i, i]) / np.sqrt(free)

    def I4(C: Any, i: int, j: int, k: int, m: int) -> Any:
        p, q, c = 1 + C[i, i], 1 + C[j, j], C[i, j]
        free = p * q - c**2
        both = free * C[k, m] - C[j, k] * C[j, m] * p - C[i, k] * C[i, m] * q
        both += c * C[i, k] * C[j, m] + c * C[i, m] * C[j, k]
        one = free * (1 + C[k, k]) - C[j, k] ** 2 * p - C[i, k] ** 2 * q + 2 * c * C[i, k] * C[j, k]
        two = free * (1 + C[m, m]) - C[j, m] ** 2 * p - C[i, m] ** 2 * q + 2 * c * C[i, m] * C[j, m]
        return 4 / np.pi**2 / np.sqrt(free) * np.arcsin(both / np.sqrt(one * two))

    def moved(t: float, state: Any) -> Any:
        Q, R = state[: N * N].reshape(N, N), state[N * N :].reshape(N, r)
        C = np.block([[Q, R], [R.T, np.eye(r)]])
        D = np.concatenate([np.ones(N), -b])
        dQ, dR = np.zeros((N, N)), np.zeros((N, r))
        for i in range(N):
            for m in range(r):
                dR[i, m] = -step * sum(D[k] * I3(C, i, N + m, k) for k in range(n))
            for j in range(i, N):
                drift = sum(D[k] * (I3(C, i, j, k) + I3(C, j, i, k)) for k in range(n))
                noise = sum((2 - (k == m)) * D[k] * D[m] * I4(C, i, j, k, m) for k in range(n) for m in range(k + 1))
                dQ[i, j] = dQ[j, i] = -step * drift + step**2 * noise
        return np.concatenate([dQ.ravel(), dR.ravel()])

    return solve_ivp(moved, (0.0, times[-1]), begin[: N * n], "DOP853", times, rtol=1e-10, atol=1e-13).y


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
        raise SystemExit("The peer of this benchmark is PyTorch. Install it: pip install 'lazyscope[torch]'")
    code = "from benchmarks.limits.flow import report_steps; report_steps({!r})"
    taken = [{side: json.loads(run_python(code.format(side))) for side in ("engine", "torch")} for _ in range(rounds)]
    for name in PARTICLES:
        ours, theirs = (median(one[side][name] for one in taken) for side in ("engine", "torch"))
        yield Figure(f"particle descent, {name}: a step", ours, theirs, "plain PyTorch loop", FASTER_THAN_TORCH)
