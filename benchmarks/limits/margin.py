"""The margin's limit against a root finder on its four equations, and the exact solver against a convex one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

import lazyscope as ls
from benchmarks.harness import Bound, Figure, interleaved
from lazyscope.problems import LinearLabels
from lazyscope.regimes import RandomFeatures

PSI1 = np.linspace(1.0, 12.0, 50)
PSI2, SIGNAL = 2.0, 4.0
EIGENVALUES = 1000
# c₁, c₂, s, κ: the best start found for the root finder, all 50 points in 18 evaluations each; others lose up to 32
START = np.array([0.6, 0.8, 0.5, 0.8])

FASTER_THAN_ROOT = Bound(100.0, at_least=True)
FASTER_THAN_CVXPY = Bound(3.0, at_least=True)

Equations = Callable[[np.ndarray], np.ndarray]


def margin_curve(repeats: int = 11) -> Iterable[Figure]:
    """A curve in ψ₁, without and with labels, which the peer has not; it has its spectra before the clock starts.

    Ours takes less than a millisecond: it is asked ten times at a turn, so that it is not the time to wake the caches
    after a tenth of a second of the peer's work that is measured.
    """
    from scipy.optimize import root

    from lazyscope.limits.margin.classifier import random_features

    problem, regime = LinearLabels(SIGNAL), RandomFeatures("relu")
    systems = [printed_equations(psi1, PSI2) for psi1 in PSI1.tolist()]

    def ours() -> dict[str, np.ndarray]:
        return random_features(problem, regime, PSI1, np.array([PSI2]))

    def labelled() -> object:
        return ls.limit(problem, regime, psi1=PSI1, psi2=PSI2, method="margin")

    def point_by_point() -> list[object]:
        return [root(equations, START, tol=1e-8) for equations in systems]

    def warm() -> None:
        y = found[0].x
        for equations in systems:
            y = root(equations, y, tol=1e-8).x

    found = point_by_point()
    curve = ours()
    right = [
        bool(one.success) and abs(float(one.x[3] - kappa)) < 0.01
        for one, kappa in zip(found, curve["margin"], strict=True)
    ]
    pieces = {"ours": ten_times(ours), "root": point_by_point, "warm": warm, "labelled": ten_times(labelled)}
    seconds = interleaved(pieces, repeats)
    seconds |= {name: seconds[name] / 10 for name in ("ours", "labelled")}
    worst = float(np.max(curve["residual"]))
    extra = {"solved_by_root": sum(right), "residual": worst, "root_warm_started": seconds["warm"]}
    note = (
        f"residual {worst:.0e}; root solves {sum(right)} of {len(right)}, "
        f"and takes {seconds['warm'] / seconds['ours']:.0f} times as long if each point starts from the last"
    )
    what = f"margin, {PSI1.size}-point curve in ψ₁: against scipy.optimize.root"
    against = f"root on four equations, {EIGENVALUES} eigenvalues, 1e-8"
    yield Figure(what, seconds["ours"], seconds["root"], against, FASTER_THAN_ROOT, note=note, extra=extra)
    what = "margin, the same curve by limit(…), labels included"
    yield Figure(what, seconds["labelled"], seconds["root"], against, FASTER_THAN_ROOT)


def ten_times(piece: Callable[[], object]) -> Callable[[], None]:
    """Return the piece done ten times over."""

    def run() -> None:
        for _ in range(10):
            piece()

    return run


def printed_equations(psi1: float, psi2: float) -> Equations:
    """The four equations as theory prints them: quantiles of the spectrum, an effective link, 80 Hermite nodes."""
    from scipy.special import expit, ndtr

    sigma, psi = ls.Activation("relu"), psi1 / psi2
    b1, b_star = sigma.b1, sigma.b_star
    lam, w2, r2 = spectrum(psi1, b1, b_star)
    g, p = np.polynomial.hermite_e.hermegauss(80)
    p = p / p.sum()
    rho, hidden = SIGNAL * np.sqrt(r2), SIGNAL * np.sqrt(1.0 - r2)
    weight = p * ((expit(rho * g[:, None] + hidden * g) + 1.0 - expit(-rho * g[:, None] + hidden * g)) @ p)

    def equations(y: np.ndarray) -> np.ndarray:
        c1, c2, s, kappa = y
        x = (kappa - c1 * g) / c2
        below, density = ndtr(x), np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
        F = c2 * np.sqrt(weight @ ((x * x + 1.0) * below + x * density))
        F1, F2 = -c2 * (weight @ (g * (x * below + density))) / F, c2 * (weight @ below) / F
        D = F1 - c1 * F2 / c2
        bottom = lam * F2 / c2 + s
        share = lam * (D * D * w2 + psi) / bottom**2
        return np.array(
            [
                c1 + np.mean(lam * w2 * D / bottom),
                c1 * c1 + c2 * c2 - np.mean(lam * share),
                1.0 - np.mean(share),
                s - (F - c1 * F1 - c2 * F2),
            ]
        )

    return equations


def spectrum(psi1: float, b1: float, b_star: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Quantiles of the spectrum of b₁²WWᵀ + b⋆²I, the squared weights of mean one, and what features see."""
    low, high = (1.0 - np.sqrt(psi1)) ** 2, (1.0 + np.sqrt(psi1)) ** 2
    angle = (np.arange(100_000)[::-1] + 0.5) * np.pi / 100_000
    ell = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(angle)
    cumulative = np.cumsum(np.sin(angle) ** 2 / ell)
    cumulative /= cumulative[-1]
    continuous = round(EIGENVALUES * min(1.0, 1.0 / psi1))
    quantiles = np.interp((np.arange(continuous) + 0.5) / continuous, cumulative, ell)
    lam = b1**2 * np.concatenate([np.zeros(EIGENVALUES - continuous), quantiles]) + b_star**2
    aligned = 1.0 - b_star**2 / lam
    return lam, aligned / aligned.mean(), float(psi1 * aligned.mean())


def hard_margin(repeats: int = 3, n: int = 800, N: int = 2000, d: int = 400) -> Iterable[Figure]:
    """One draw of ReLU features: the simulation's solver against cvxpy's dual form, ½zᵀKz − Σz over z ≥ 0."""
    import cvxpy

    from lazyscope.numerics.hard_margin import solve

    rng = np.random.default_rng(0)
    W, X = rng.standard_normal((N, d)), rng.standard_normal((n, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-SIGNAL * X[:, 0])), 1.0, -1.0)
    G = (np.maximum(X @ W.T, 0.0) - 1.0 / np.sqrt(2.0 * np.pi)) * y[:, None]
    margins: dict[str, float] = {}

    def ours() -> None:
        margins["ours"] = solve(G).margin

    def theirs() -> None:
        z = cvxpy.Variable(n, nonneg=True)
        dual = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.quad_form(z, cvxpy.psd_wrap(G @ G.T)) - cvxpy.sum(z)))
        dual.solve()
        margins["theirs"] = 1.0 / np.sqrt(-2.0 * dual.value)
        margins["solver"] = dual.solver_stats.solver_name

    seconds = interleaved({"ours": ours, "theirs": theirs}, repeats, warm_up=False)
    apart = abs(margins["ours"] - margins["theirs"])
    note = f"margins {apart:.0e} apart; {margins['solver']}"
    extra = {**margins, "cvxpy": cvxpy.__version__}
    what = f"hard margin, n = {n}, N = {N}: against cvxpy"
    against = f"cvxpy {cvxpy.__version__}, dual form"
    yield Figure(what, seconds["ours"], seconds["theirs"], against, FASTER_THAN_CVXPY, note=note, extra=extra)
