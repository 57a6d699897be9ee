"""Calls of the API over problems, regimes and fidelities, against what mathematics says of their answers.

Every call is an expression that can be pasted after `import lazyscope as ls, numpy as np`. Whatever it does, it returns
numbers without NaN whose residual is within the tolerance of its claim, or raises a `LazyscopeError`. Tries go over a
grid of small sizes and extreme scales, and by turns through random calls in pairs that must agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import chain, pairwise, product

import numpy as np
import xarray as xr

import lazyscope as ls
from lazyscope.activations import Activation, activation_names
from lazyscope.evidence.registry import claims
from lazyscope.weights import draw as draw_weights
from lazyscope.weights import generator
from soak.second_route import risk as second_route
from soak.tally import Deadline, Tally

GOALS = {"accepted": 5000}
ENOUGH = 5500  # accepted calls
_SAME = 2e-5  # two exact risks of nearly dependent features, each good to 1e-5 (`exact.random_features.ACCURACY`)
_CLOSE = 1e-9  # closed forms and fixed points: some 1e4 roundings of numbers of order 1, times their condition
_EXPONENTS = (-150, -130, -60, -20, 0, 20, 60, 130, 150)
_FAST = "ls.SGD(steps=40, batch=5, step_sizes=(0.01,), test=100)"
_TOLERANCE = {claim.key: claim.tolerance for claim in claims()}


class Calls:
    """Make calls and count them; what they raise, and numbers that are none, are findings."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    @property
    def accepted(self) -> int:
        """How many calls gave a result."""
        return self.tally.counts.get("accepted", 0)

    def __call__(self, expression: str) -> xr.Dataset | None:
        """Evaluate; None where it was refused."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                result = eval(expression, {"ls": ls, "np": np})
        except ls.LazyscopeError as error:
            self.tally.count("refused")
            self.tally.check("\n" not in str(error), f"{expression}: a message of more than one line")
            return None
        except Exception as error:
            self.tally.check(False, f"{expression}: {type(error).__name__}: {str(error)[:200]}")
            return None
        self.tally.count("accepted")
        wrong = list(_wrong(result))
        self.tally.check(not wrong, f"{expression}: {'; '.join(wrong)}")
        return None if wrong else result

    def agree(self, what: str, tolerance: float, first: str, second: str) -> None:
        """Two calls must give the same risks, where neither is refused."""
        one, two = self(first), self(second)
        if one is not None and two is not None:
            gap = float(np.max(np.abs(one.risk.values - two.risk.values)))
            self.tally.check(gap <= tolerance, f"{what}: {first} and {second} differ by {gap:.1e}")


def _wrong(result: xr.Dataset) -> Iterator[str]:
    """Say what is wrong with a result by itself."""
    for name in result.variables:
        values = result[name].values
        if values.dtype.kind == "f" and np.any(np.isnan(values)):
            yield f"NaN in {name}"
    tolerance = _TOLERANCE.get(result.attrs.get("claim", ""), np.inf)
    for name in ("residual", "gap"):
        if name in result and not np.all(result[name].values <= tolerance):
            yield f"{name} {float(result[name].max()):.1e} above {tolerance:.0e}"
    risk = result.risk.values
    if np.min(risk) < -_CLOSE:
        yield f"risk {np.min(risk):.3g} below 0"
    absolute = any(f"{name} target" in result.attrs["problem"] for name in ("linear", "harmonic", "spectral"))
    sampled = any(f'"{name}"' in result.attrs.get("arguments", "") for name in ("samples", "psi2"))
    population = result.attrs["fidelity"] in ("limit", "exact") and not absolute and not sampled
    on_the_way = any(word in result.attrs["theorem"] for word in ("flow", "SGD")) or "converged" in result
    if population and not on_the_way and np.max(risk) > 1.0 + _SAME:
        yield f"risk {np.max(risk):.6g} above that of the best constant"


def array(M: np.ndarray) -> str:
    """Return an expression for an array, exact to the last bit."""
    return f"np.array({M.tolist()})"


# -- the grid: small sizes, every activation, extreme scales ------------------------------------------------------


def grid(rng: np.random.Generator) -> Iterator[Callable[[Calls], None]]:
    """Yield tries in random order; each is one (d, N, activation, regime, fidelity) at every scale of B."""
    points = list(
        product((1, 2, 3), (1, 2, 5), activation_names(), ("RandomFeatures", "NeuralTangent", "Trained"), range(5))
    )
    slow = ("Trained", 1)  # exact descent of a network: seconds each, so that one in twenty is tried
    for index in rng.permutation(len(points)):
        d, N, name, regime, fidelity = points[index]
        if (regime, fidelity) == slow and name != "square" and rng.random() > 0.05:
            continue
        if fidelity > 2 and name != "square":
            continue
        B, seed = rng.standard_normal(d), int(rng.integers(1000))
        if rng.random() < 0.5:
            B = np.abs(B)
        yield lambda calls, at=(B, N, name, regime, fidelity, seed), rng=rng: _at_scales(calls, at, rng)


def _at_scales(calls: Calls, at: tuple, rng: np.random.Generator) -> None:
    B, N, name, regime, fidelity, seed = at
    weights = f", weights=ls.FixedWeights({array(rng.standard_normal((B.size, N)))})" if rng.random() < 0.1 else ""
    if regime == "Trained":
        weights = rng.choice(["", "", f", alpha={10.0 ** rng.uniform(-3, 3)!r}"])
    model = f"ls.{regime}({name!r}{weights})"

    def call(k: int) -> str:
        problem = f"ls.QuadraticTarget({array(B)} * 1e{k})"
        if fidelity == 0:
            return f"ls.limit({problem}, {model}, rho={N / B.size!r})"
        if fidelity == 1:
            return f"ls.exact({problem}, {model}, width={N}, seed={seed})"
        if fidelity == 2:
            how = "samples=200" if regime == "RandomFeatures" else f"protocol={_FAST}"
            return f"ls.simulate({problem}, {model}, width={N}, seed={seed}, {how})"
        if fidelity == 3:
            return f"ls.flow({problem}, {model}, width={N}, seed={seed}, times=[0.0, 0.1, 1.0, 100.0])"
        return f"ls.finite_step({problem}, {model}, width={N}, seed={seed}, step_size=1e-3, batch=10, samples=[100])"

    plain = calls(call(0))
    network = regime == "Trained" and ("alpha" in model or name != "square" or fidelity > 1)
    # a network's training knows the scale of the target; random features on samples and NT are linear in it, in float32
    same = np.inf if network else 1e-3 if fidelity == 2 else _SAME
    for k in rng.choice([k for k in _EXPONENTS if k], 2, replace=False):
        scaled = calls(call(int(k)))
        if plain is not None and scaled is not None:
            gap = float(np.max(np.abs(plain.risk.values - scaled.risk.values) / np.maximum(1.0, plain.risk.values)))
            calls.tally.check(gap <= same, f"scale of B: {call(0)} and {call(int(k))} differ by {gap:.1e}")
    if fidelity == 1 and B.size < 3 and regime != "Trained" and plain is not None:
        problem, lazy = ls.QuadraticTarget(B), eval(model, {"ls": ls, "np": np})
        W = draw_weights(problem, lazy, N, generator(seed, 0, N))
        other = second_route(B, W, Activation(name), regime == "NeuralTangent")
        gap = abs(float(plain.risk) - other)
        calls.tally.check(gap <= _SAME, f"second route: {call(0)} is {float(plain.risk)!r}, least squares {other!r}")


# -- random calls in pairs that must agree ------------------------------------------------------------------------


class Draw:
    """Random problems, regimes and sizes, as expressions."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.d = int(rng.choice([1, 2, 3, 5, 8, 13]))
        self.N = int(rng.choice([1, 2, 5, 12]))
        self.name = str(rng.choice(activation_names()))
        self.lazy = str(rng.choice(["RandomFeatures", "NeuralTangent"]))

    def symmetric(self) -> np.ndarray:
        """A full symmetric matrix of order 1, definite half of the time."""
        A = self.rng.standard_normal((self.d, self.d))
        return A @ A.T / self.d if self.rng.random() < 0.5 else 0.5 * (A + A.T)

    def rotation(self) -> np.ndarray:
        """A random rotation."""
        return np.linalg.qr(self.rng.standard_normal((self.d, self.d)))[0]

    def mixture(self) -> tuple[np.ndarray, np.ndarray]:
        """Δ and Σ with Σ ± Δ definite."""
        A, D = self.rng.standard_normal((self.d, self.d)), self.symmetric()
        Sigma = np.eye(self.d) + A @ A.T / self.d
        return self.rng.uniform(0.1, 0.9) * D / np.linalg.norm(D, 2), Sigma

    def weights(self, W: np.ndarray) -> str:
        """A lazy regime with given weights, (d, N)."""
        return f"ls.{self.lazy}({self.name!r}, weights=ls.FixedWeights({array(W)}))"


def _rotation(calls: Calls, rng: np.random.Generator) -> None:
    """No direction is special: B → QBQᵀ changes no limit, and with W → QW no exact risk."""
    draw = Draw(rng)
    B, Q = draw.symmetric(), draw.rotation()
    turned = 0.5 * (Q @ B @ Q.T + (Q @ B @ Q.T).T)
    rho = rng.uniform(0.1, 4.0)
    for regime in (f"ls.RandomFeatures({draw.name!r})", "ls.NeuralTangent()", "ls.Trained()"):
        calls.agree("rotation", _CLOSE, *(f"ls.limit(ls.QuadraticTarget({array(M)}), {regime}, rho={rho!r})"
                                          for M in (B, turned)))  # fmt: skip
    W = rng.standard_normal((draw.d, draw.N)) / np.sqrt(draw.d)
    calls.agree("rotation with the weights", _SAME, *(f"ls.exact(ls.QuadraticTarget({array(M)}), {draw.weights(V)})"
                                                      for M, V in ((B, W), (turned, Q @ W))))  # fmt: skip


def _permutation(calls: Calls, rng: np.random.Generator) -> None:
    """Neurons have no order."""
    draw = Draw(rng)
    W = rng.standard_normal((draw.d, draw.N)) / np.sqrt(draw.d) * 10.0 ** rng.choice([0, 0, 0, -3, 2, -100, 100])
    order = rng.permutation(draw.N)
    D, S = draw.mixture()
    for problem in (f"ls.QuadraticTarget({array(draw.symmetric())})", f"ls.GaussianMixture({array(D)}, {array(S)})"):
        calls.agree("permutation", _SAME, *(f"ls.exact({problem}, {draw.weights(V)})" for V in (W, W[:, order])))


def _linear_map(calls: Calls, rng: np.random.Generator) -> None:
    """Mapping x → Ax with w → A⁻ᵀw changes nothing, nor does it change the Bayes floor and the best network."""
    draw = Draw(rng)
    D, S = draw.mixture()
    A = draw.rotation() @ np.diag(rng.uniform(0.5, 2.0, draw.d)) @ draw.rotation() * 10.0 ** rng.integers(-60, 60)
    mapped = [A @ M @ A.T for M in (D, S)]
    one, two = (f"ls.GaussianMixture({array(0.5 * (M + M.T))}, {array(0.5 * (C + C.T))})" for M, C in ((D, S), mapped))
    W = rng.standard_normal((draw.d, draw.N)) / np.sqrt(draw.d)
    there = np.linalg.solve(A.T, W)
    calls.agree("Σ → AΣAᵀ", _SAME, f"ls.exact({one}, {draw.weights(W)})", f"ls.exact({two}, {draw.weights(there)})")
    calls.agree("Σ → AΣAᵀ", _CLOSE, *(f"ls.exact({p}, ls.Trained(), width={draw.N})" for p in (one, two)))
    calls.agree("Σ → AΣAᵀ", _CLOSE, *(f"ls.bayes({p})" for p in (one, two)))
    calls.agree("Σ → AΣAᵀ", _CLOSE, *(f"ls.bayes({p}, fidelity='exact')" for p in (one, two)))


def _monotone(calls: Calls, rng: np.random.Generator) -> None:
    """More neurons explain more: with nested weights at finite N, and in ρ in the limit."""
    draw = Draw(rng)
    W = rng.standard_normal((draw.d, draw.N + 3)) / np.sqrt(draw.d)
    D, S = draw.mixture()
    for problem in (f"ls.QuadraticTarget({array(draw.symmetric())})", f"ls.GaussianMixture({array(D)}, {array(S)})"):
        results = [calls(f"ls.exact({problem}, {draw.weights(W[:, :N])})") for N in (draw.N, draw.N + 1, draw.N + 3)]
        risks = [float(result.risk) for result in results if result is not None]
        calls.tally.check(
            all(b <= a + _SAME for a, b in pairwise(risks)),
            f"monotone in N: {risks} of {problem} with columns of {draw.weights(W)}",
        )
        for regime in (f"ls.RandomFeatures({draw.name!r})", "ls.NeuralTangent()", "ls.Trained()"):
            call = f"ls.limit({problem}, {regime}, rho=np.geomspace({1.0 / draw.d!r}, 20.0, 12))"
            line = calls(call)
            if line is not None:
                calls.tally.check(bool(np.all(np.diff(line.risk.values) <= _CLOSE)), f"monotone in ρ: {call}")


def _limit_is_exact(calls: Calls, rng: np.random.Generator) -> None:
    """Theorem 3 holds at every size, and the scale of B is no matter at any."""
    draw = Draw(rng)
    B = np.abs(rng.standard_normal(draw.d)) * 10.0 ** rng.uniform(-130, 130)
    target = f"ls.QuadraticTarget({array(B)})"
    calls.agree(
        "limit = exact", _CLOSE, f"ls.limit({target}, ls.Trained(), rho={draw.N / draw.d!r})",
        f"ls.exact({target}, ls.Trained(), width={draw.N})",
    )  # fmt: skip
    k = int(rng.integers(-450, 450))
    for regime, how in (("ls.RandomFeatures", "samples=300"), ("ls.NeuralTangent", f"protocol={_FAST}")):
        calls.agree("a power of two", 0.0, *(
            f"ls.simulate(ls.QuadraticTarget({array(M)}), {regime}({draw.name!r}), width={draw.N}, {how})"
            for M in (B / np.max(B), np.ldexp(B / np.max(B), k))
        ))  # fmt: skip


def _weights_law(calls: Calls, rng: np.random.Generator) -> None:
    """Γ counts up to its scale, "optimal" is a covariance, and draws depend on (seed, draw, N) alone."""
    draw = Draw(rng)
    A = rng.standard_normal((draw.d, draw.d))
    Gamma, target = A @ A.T, f"ls.QuadraticTarget({array(draw.symmetric())})"
    scale = 10.0 ** rng.uniform(-100, 100)
    rho = rng.uniform(0.1, 3.0)
    laws = [f"ls.RandomFeatures({draw.name!r}, weights={array(G)})" for G in (Gamma, scale * Gamma)]
    calls.agree("scale of Γ", _CLOSE, *(f"ls.limit({target}, {law}, rho={rho!r})" for law in laws))
    calls.agree("scale of Γ", _SAME, *(f"ls.exact({target}, {law}, width={draw.N}, seed=3)" for law in laws))
    calls(f"ls.limit({target}, ls.RandomFeatures({draw.name!r}, weights='optimal'), rho={rho!r})")
    calls(f"ls.exact({target}, ls.{draw.lazy}({draw.name!r}), width=[1, {draw.N + 1}], draws=2, seed={draw.N})")


def _open_dimension(calls: Calls, rng: np.random.Generator) -> None:
    """Ridge regression is quadratic in the scale of its labels; a margin's error lies between Bayes and a coin."""
    draw = Draw(rng)
    signal, noise, beyond = rng.exponential(size=3) * (rng.random(3) < 0.8)
    where = f"psi1={rng.exponential() + 0.01!r}, psi2={rng.exponential() + 0.01!r}, ridge={rng.exponential()!r}"
    k = int(rng.integers(-300, 300))
    lines = []
    for unit in (1.0, 2.0**k):
        target = f"ls.LinearTarget({signal * unit!r}, {noise * unit!r}, {beyond * unit!r})"
        lines.append(calls(f"ls.limit({target}, ls.RandomFeatures({draw.name!r}), {where})"))
    if None not in lines:
        gap = np.max(np.abs(np.ldexp(lines[1].risk.values, -2 * k) - lines[0].risk.values))
        calls.tally.check(gap <= _CLOSE * (1.0 + float(lines[0].risk)), f"scale of labels: {target}, {where}, k = {k}")
    calls(f"ls.simulate(ls.LinearTarget(1.0, {noise!r}, {beyond!r}), ls.RandomFeatures({draw.name!r}), "
          f"width={draw.N}, samples=20, d=4, ridge=[0.0, {rng.exponential()!r}])")  # fmt: skip
    labels = f"ls.LinearLabels({rng.exponential() * 3!r})"
    line = calls(f"ls.limit({labels}, ls.RandomFeatures({draw.name!r}), psi1={rng.exponential() + 0.05!r}, psi2=0.3, "
                 "method='margin')")  # fmt: skip
    floor = calls(f"ls.bayes({labels})")
    if line is not None and floor is not None:
        inside = float(floor.risk) - _CLOSE <= float(line.risk) <= 0.5 + _CLOSE
        calls.tally.check(inside, f"error {float(line.risk)} of {labels} with {draw.name}")
    calls(f"ls.simulate({labels}, ls.RandomFeatures({draw.name!r}), width=12, samples=10, d=5, method='margin')")


def _particles(calls: Calls, rng: np.random.Generator) -> None:
    """Particles and Taylor models on anything give numbers."""
    draw = Draw(rng)
    target = f"ls.QuadraticTarget({array(draw.symmetric())} * 1e{int(rng.integers(-135, 135))})"
    few = "samples=60, protocol=ls.ParticleDescent(steps=20)"
    calls(f"ls.simulate({target}, ls.MeanField({draw.name!r}), width=6, {few})")
    monomial = f"ls.RidgeMonomial({draw.d + 1}, {rng.integers(1, 6)}, alpha={10.0 ** rng.uniform(-18, 18)!r})"
    calls(f"ls.simulate({monomial}, ls.MeanField({draw.name!r}), width=6, {few})")


ATTACKS = (
    _rotation, _permutation, _linear_map, _monotone, _limit_is_exact, _weights_law, _open_dimension, _particles,
)  # fmt: skip


def attack(tally: Tally, rng: np.random.Generator, deadline: Deadline) -> None:
    """Go over the grid and through the invariants by turns, until enough calls were accepted."""
    calls = Calls(tally)
    tries = chain.from_iterable(grid(rng) for _ in iter(int, 1))  # over and over, never the same numbers
    while deadline and calls.accepted < ENOUGH:
        for _ in range(2):
            next(tries)(calls)
        ATTACKS[int(rng.integers(len(ATTACKS)))](calls, rng)
