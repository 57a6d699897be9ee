"""What the two verbs cost, against linear algebra of the same size and against the routes they replace."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

import lazyscope as ls
from benchmarks.harness import Bound, Figure, footprint, interleaved

D = 450  # the paper's dimension
N = 4500  # its widest network
RHO = np.geomspace(0.01, 10.0, 1000)

FULL_CURVE, DIAGONAL_CURVE = Bound(3.0), Bound(1.0)
RF_TIME, RF_MEMORY = Bound(1.5), Bound(5.0)
FASTER_THAN_SAMPLES = Bound(20.0, at_least=True)
CHEAPER_THAN_SGD = Bound(100.0, at_least=True)
TWO_GIB = Bound(1.0)
LABELS = Bound(1.0)

Curve = Callable[[], object]


def _covariance(rng: np.random.Generator, spread: float) -> np.ndarray:
    """A full, well-conditioned covariance: eigenvalues uniform on [1, 1 + spread], random eigenvectors."""
    Q, _ = np.linalg.qr(rng.standard_normal((D, D)))
    return (Q * (1.0 + spread * rng.random(D))) @ Q.T


def _full_curves() -> dict[str, Curve]:
    """Every pair that has a limit, on full matrices; all objects are built inside, so that nothing is cached."""
    rng = np.random.default_rng(0)
    B, Gamma, Sigma = (_covariance(rng, spread) for spread in (5.0, 3.0, 1.0))
    Delta = _covariance(rng, 1.0) / np.sqrt(D)
    return {
        "quadratic, RF relu, full Γ": lambda: _quadratic(B, ls.RandomFeatures("relu", weights=Gamma)),
        'quadratic, RF relu, Γ "optimal"': lambda: _quadratic(B, ls.RandomFeatures("relu", weights="optimal")),
        "quadratic, NT": lambda: _quadratic(B, ls.NeuralTangent()),
        "quadratic, NN": lambda: _quadratic(B, ls.Trained()),
        "mixture, RF relu, full Σ, Γ": lambda: _mixture(Delta, Sigma, ls.RandomFeatures("relu", weights=Gamma)),
        "mixture, NT": lambda: _mixture(Delta, None, ls.NeuralTangent()),
        "mixture, NN, full Σ": lambda: _mixture(Delta, Sigma, ls.Trained()),
    }


def _diagonal_curves() -> dict[str, Curve]:
    """The same pairs on vectors of eigenvalues, all of them distinct."""
    rng = np.random.default_rng(0)
    B, Gamma, Sigma = rng.exponential(1.0, D), 1.0 + 3.0 * rng.random(D), 1.0 + rng.random(D)
    Delta = (1.0 + rng.random(D)) / np.sqrt(D)
    return {
        "quadratic, RF relu, diagonal Γ": lambda: _quadratic(B, ls.RandomFeatures("relu", weights=Gamma)),
        'quadratic, RF relu, Γ "optimal"': lambda: _quadratic(B, ls.RandomFeatures("relu", weights="optimal")),
        "quadratic, NT": lambda: _quadratic(B, ls.NeuralTangent()),
        "quadratic, NN": lambda: _quadratic(B, ls.Trained()),
        "mixture, RF relu, diagonal Σ, Γ": lambda: _mixture(Delta, Sigma, ls.RandomFeatures("relu", weights=Gamma)),
        "mixture, NT": lambda: _mixture(Delta, None, ls.NeuralTangent()),
        "mixture, NN, diagonal Σ": lambda: _mixture(Delta, Sigma, ls.Trained()),
    }


def _quadratic(B: np.ndarray, regime: ls.RandomFeatures | ls.NeuralTangent | ls.Trained) -> object:
    return ls.limit(ls.QuadraticTarget(B), regime, rho=RHO)


def _mixture(Delta: np.ndarray, Sigma: np.ndarray | None, regime: ls.RandomFeatures | ls.Trained) -> object:
    return ls.limit(ls.GaussianMixture(Delta, Sigma), regime, rho=RHO)


def limit_curves(repeats: int = 11) -> Iterable[Figure]:
    """1,000-point curves against one symmetric eigendecomposition with vectors."""
    M = _covariance(np.random.default_rng(1), 1.0)
    full, diagonal = _full_curves(), _diagonal_curves()
    pieces: dict[str, Curve] = {"peer": lambda: np.linalg.eigh(M)}
    pieces |= {f"limit, full: {name}": run for name, run in full.items()}
    pieces |= {f"limit, diagonal: {name}": run for name, run in diagonal.items()}
    seconds = interleaved(pieces, repeats)
    peer = seconds.pop("peer")
    for name, measured in seconds.items():
        bound = DIAGONAL_CURVE if name.startswith("limit, diagonal") else FULL_CURVE
        yield Figure(name, measured, peer, f"eigh {D}×{D}", bound)


def _exact(regime: ls.RandomFeatures | ls.NeuralTangent, width: int) -> object:
    return ls.exact(ls.QuadraticTarget.exponential(D, seed=100), regime, width=width)


def labelled_points(repeats: int = 200) -> Iterable[Figure]:
    """One point of `limit`, what checks, labels and provenance add to its numbers."""
    from dataclasses import replace

    from lazyscope.runs.verbs import run_of

    target, features = ls.QuadraticTarget.exponential(D, seed=100), ls.RandomFeatures("relu")
    points: dict[str, tuple[object, object, dict[str, float], str | None]] = {
        "quadratic, RF": (target, features, {"rho": 0.5}, None),
        "quadratic, NT": (target, ls.NeuralTangent(), {"rho": 0.5}, None),
        "quadratic, NN": (target, ls.Trained(), {"rho": 0.5}, None),
        "ridge": (ls.LinearTarget(1.0, 0.5), features, {"psi1": 2.0, "psi2": 3.0, "ridge": 0.1}, None),
        "margin": (ls.LinearLabels(4.0), features, {"psi1": 3.0, "psi2": 2.0}, "margin"),
        "every size": (ls.HarmonicTarget(20, [0, 1, 1]), features, {"width": 100, "samples": 200, "ridge": 0.1}, None),
    }
    for name, (problem, regime, sizes, method) in points.items():
        run, _ = run_of("limit", problem, regime, sizes, method=method)
        run = replace(run, problem=run.problem.in_units(regime), known=run.claim)
        seconds = interleaved(
            {
                "verb": lambda p=problem, r=regime, s=sizes, m=method: ls.limit(p, r, method=m, **s),
                "numbers": lambda run=run: run.claim.compute(run),
            },
            repeats,
        )
        added = seconds["verb"] - seconds["numbers"]
        yield Figure(f"limit of one point, {name}: labels", added, 0.3e-3, "0.3 ms", LABELS, extra=seconds)


def exact_rf(repeats: int = 3) -> Iterable[Figure]:
    """Time in N×N matrix products, memory in N×N matrices (peak minus what the imports left)."""
    rng = np.random.default_rng(0)
    A, B, out = rng.standard_normal((N, N)), rng.standard_normal((N, N)), np.empty((N, N))
    seconds = interleaved(
        {"exact": lambda: _exact(ls.RandomFeatures("relu"), N), "product": lambda: np.matmul(A, B, out=out)}, repeats
    )
    what = f"exact RF relu, N = {N}, d = {D}"
    yield Figure(f"{what}: time", seconds["exact"], seconds["product"], f"one {N}×{N} float64 product", RF_TIME)
    used = footprint(_SETUP.format(regime="ls.RandomFeatures('relu')"), f"ls.exact(target, regime, width={N})")
    yield Figure(f"{what}: memory", used.added, 8.0 * N * N, f"one {N}×{N} float64 matrix", RF_MEMORY, unit="B")


_SETUP = f"""
import lazyscope as ls
target, regime = ls.QuadraticTarget.exponential({D}, seed=100), {{regime}}
ls.exact(target, regime, width=10)  # loads what is loaded on first use
"""


def exact_rf_against_samples(repeats: int = 3, samples: int = 500_000, measured_share: int = 10) -> Iterable[Figure]:
    """The paper's route done well: float32 normal equations from samples, one triangle, then Cholesky."""
    route = NormalEquations(samples // measured_share)
    _exact(ls.RandomFeatures("relu"), 10)  # loads what is loaded on first use
    seconds = interleaved(
        {
            "exact": lambda: _exact(ls.RandomFeatures("relu"), N),
            "accumulate": route.accumulate,
            "solve": route.solve,
        },
        repeats,
        warm_up=False,  # a round takes a quarter of a minute
    )
    peer = measured_share * seconds["accumulate"] + seconds["solve"]
    note = f"{samples // measured_share:,} of {samples:,} samples measured, that part times {measured_share}"
    extra = {"accumulate": seconds["accumulate"], "solve": seconds["solve"], "samples": samples // measured_share}
    what = f"exact RF relu, N = {N}, d = {D}: against samples"
    against = f"normal equations, {samples:,} samples"
    yield Figure(what, seconds["exact"], peer, against, FASTER_THAN_SAMPLES, note=note, extra=extra)


class NormalEquations:
    """ZᵀZ a = Zᵀy for Z = relu(XWᵀ), float32, in batches of 5,000: one BLAS rank-k update a batch, in place."""

    def __init__(self, samples: int, batch: int = 5000) -> None:
        self.rng = np.random.default_rng(0)
        self.samples, self.batch = samples, batch
        self.gamma = self.rng.exponential(1.0, D).astype(np.float32)
        self.W = (self.rng.standard_normal((N, D)) / np.sqrt(D)).astype(np.float32)
        self.Z = np.empty((batch, N), np.float32)
        self.X = np.empty((batch, D), np.float32)

    def accumulate(self) -> None:
        """Draw, featurise, update: n(N² + 2Nd) flops."""
        from scipy.linalg.blas import ssyrk

        self.U, self.V = np.zeros((N, N), np.float32, order="F"), np.zeros(N, np.float32)
        for _ in range(self.samples // self.batch):
            self.rng.standard_normal(dtype=np.float32, out=self.X)
            y = (self.X * self.X) @ self.gamma
            y -= self.gamma.sum()
            np.matmul(self.X, self.W.T, out=self.Z)
            np.maximum(self.Z, 0.0, out=self.Z)
            updated = ssyrk(1.0, self.Z.T, beta=1.0, c=self.U, overwrite_c=1)
            assert updated is self.U or np.shares_memory(updated, self.U)
            self.V += y @ self.Z

    def solve(self) -> np.ndarray:
        """N³/3 flops, in place."""
        from scipy.linalg.lapack import spotrf, spotrs

        factor, failed = spotrf(self.U, overwrite_a=1, clean=0)
        assert not failed, f"float32 Cholesky failed at row {failed}"
        return spotrs(factor, self.V)[0]


def exact_nt_against_sgd(repeats: int = 3, steps: int = 200_000, measured: int = 500) -> Iterable[Figure]:
    """The same point by one-pass SGD, batch 100, float32, fresh samples."""
    route = TangentSGD(D)
    seconds = interleaved(
        {"exact": lambda: _exact(ls.NeuralTangent("relu"), D), "sgd": lambda: route.run(measured)}, repeats
    )
    note = f"{measured} of {steps:,} steps measured, times {steps // measured}"
    extra = {"seconds_a_step": seconds["sgd"] / measured}
    what = f"exact NT relu, N = d = {D}: against SGD"
    peer = seconds["sgd"] * steps / measured
    yield Figure(what, seconds["exact"], peer, f"{steps:,} SGD steps", CHEAPER_THAN_SGD, note=note, extra=extra)


class TangentSGD:
    """f(x) = c + (1/N) Σ 1{w_i·x > 0}⟨a_i, x⟩, squared loss: three products of batch × N × d a step."""

    def __init__(self, width: int, batch: int = 100, rate: float = 1e-3) -> None:
        self.rng = np.random.default_rng(0)
        self.width, self.rate = width, np.float32(rate)
        self.gamma = self.rng.exponential(1.0, D).astype(np.float32)
        self.offset = self.gamma.sum()
        self.W = (self.rng.standard_normal((width, D)) / np.sqrt(D)).astype(np.float32)
        self.A, self.c = np.zeros((width, D), np.float32), np.float32(0.0)
        self.X = np.empty((batch, D), np.float32)
        self.open, self.form = np.empty((batch, width), np.float32), np.empty((batch, width), np.float32)
        self.gradient = np.empty_like(self.A)

    def run(self, steps: int) -> None:
        """Sample, forward, residual, gradient, update; no allocation beyond a vector of the batch's length."""
        X, active, form = self.X, self.open, self.form
        batch = len(X)
        for _ in range(steps):
            self.rng.standard_normal(dtype=np.float32, out=X)
            y = (X * X) @ self.gamma - self.offset
            np.matmul(X, self.W.T, out=active)
            np.greater(active, 0.0, out=active, casting="unsafe")
            np.matmul(X, self.A.T, out=form)
            form *= active
            error = form.sum(axis=1) / self.width + self.c - y
            active *= (error * (2.0 / batch / self.width))[:, None].astype(np.float32)
            np.matmul(active.T, X, out=self.gradient)
            self.gradient *= self.rate * self.width
            self.A -= self.gradient
            self.c -= self.rate * np.float32(2.0) * error.mean()


def exact_nt_wide() -> Iterable[Figure]:
    """The Nd = 2·10⁶ unknowns of N = 4500: the whole process, imports included, stays under 2 GiB."""
    body = f"r = ls.exact(target, regime, width={N}); report |= {{k: float(r[k]) for k in r.data_vars}}"
    used = footprint(_SETUP.format(regime="ls.NeuralTangent('relu')"), body)
    note = f"{used.seconds:.0f} s, {used.report['iterations']:.0f} conjugate-gradient steps"
    extra = {"seconds": used.seconds, "baseline": used.baseline, **used.report}
    what = f"exact NT relu, N = {N}, d = {D}: process"
    yield Figure(what, used.peak, 2.0 * 2**30, "2 GiB", TWO_GIB, unit="B", note=note, extra=extra)
