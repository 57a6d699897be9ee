"""Forecasts beyond the rows of tables with little or nothing in them: pure noise is flat, a weak signal in the band.

The truth of noise is 1. That of a weak signal y = √s f + √(1 − s) ε comes from fits on n rows: they are linear in y, so
that one fit of f and one of noise give every share s.
"""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

import lazyscope as ls
from lazyscope.lenses.forecast.advice import advise
from lazyscope.lenses.forecast.kernels import gram
from lazyscope.lenses.forecast.rows import rows_of
from lazyscope.lenses.forecast.verb import SURE, Forecaster

pytestmark = pytest.mark.slow

KERNELS = {"RF": ls.RandomFeatures("relu"), "NT": ls.NeuralTangent("relu")}
LAWS = {
    "Gaussian": lambda rng, P: rng.standard_normal(P),
    "Student, 3 degrees": lambda rng, P: rng.standard_t(3, P),
    "labels": lambda rng, P: rng.choice([-1.0, 1.0], P),
}
BIAS = 0.3
DRAWS = {100: 4, 200: 3, 300: 2, 500: 1, 1000: 1}  # of each size, column count, law and kernel: 198 tables
TIMES = np.array([2.0, 4.0, 10.0, 30.0, 100.0])


def known(X, y, regime, most, scale="auto"):
    return Forecaster.of(rows_of(X, y, regime, None, scale=scale, bias=BIAS, intercept=True, task=None), most)


def noise_tables():
    """Every second table of a kind has rows of unequal lengths."""
    seed = 0
    for P, draws in DRAWS.items():
        for d in (3, 10, 50):
            for law, draw in LAWS.items():
                for kernel in KERNELS:
                    for k in range(draws):
                        seed += 1
                        rng = np.random.default_rng(7000 + seed)
                        X = rng.standard_normal((P, d))
                        X *= np.exp(0.5 * (k % 2) * rng.standard_normal(X.shape))
                        yield {"P": P, "d": d, "law": law, "kernel": kernel}, X, draw(rng, P)


def test_pure_noise_is_flat_to_a_hundred_times_the_rows(keep):
    shares, factors, words, kinds = [], [], [], []
    for kind, X, y in noise_tables():
        table = known(X, y, KERNELS[kind["kernel"]], 100.0 * kind["P"])
        n = TIMES * kind["P"]
        found = table.at(n, np.inf, table.best_ridge(n, np.inf))
        shares.append(found["risk"][0] / table.energy[0])
        factors.append(np.exp(SURE * found["stderr"][0]))
        words.append(advise(table, kind["P"], widths=False).lines[0])
        kinds.append(kind)
    share, factor = np.array(shares), np.array(factors)
    near, inside = np.abs(share - 1.0) <= 0.05, (share / factor <= 1.0) & (share * factor >= 1.0)
    nothing = ["more rows buy nothing" in line for line in words]

    def of(name):
        found = {}
        for value in dict.fromkeys(kind[name] for kind in kinds):
            rows = np.array([kind[name] == value for kind in kinds])
            shares = {"near": near[rows].mean(axis=0).round(3), "inside": inside[rows].mean(axis=0).round(3)}
            found[str(value)] = {"tables": int(rows.sum())} | {key: row.tolist() for key, row in shares.items()}
        return found

    keep(
        tables=len(kinds), times_the_rows=TIMES.tolist(), median=np.median(share, axis=0).round(4).tolist(),
        least=share.min(axis=0).round(3).tolist(), largest=share.max(axis=0).round(3).tolist(),
        within_5_percent=near.mean(axis=0).round(3).tolist(), inside_the_band=inside.mean(axis=0).round(3).tolist(),
        half_width_of_the_band=np.median(np.log(factor), axis=0).round(3).tolist(),
        advice_that_rows_buy_nothing=float(np.mean(nothing)),
        other_advice=[line for line, said in zip(words, nothing, strict=True) if not said],
        by={name: of(name) for name in ("P", "d", "law", "kernel")},
    )  # fmt: skip
    assert np.all(near.mean(axis=0) >= 0.95) and np.all(inside.mean(axis=0) >= 0.85)
    assert np.mean(nothing) >= 0.95


SIGNALS = {
    "linear": lambda X: X.sum(axis=1) / np.sqrt(X.shape[1]),
    "square": lambda X: (X**2 - 1.0).sum(axis=1) / np.sqrt(2.0 * X.shape[1]),
    "product": lambda X: X[:, 0] * X[:, 1],
}
EXPLAINABLE = (0.05, 0.2, 0.5)
RIDGES = np.array([0.1, 1.0, 10.0])  # of the mean of the kernel's diagonal, its constant included
POOLS, TESTED = {100: 6, 400: 2}, 1000  # pools of each kind of table
FITS = {400: 8, 1600: 2}


def fitted(n, d):
    """Mean squares of f − its fit for each signal, and of the fit of unit noise, (ridge, signals + 1), n rows."""
    found = []
    for k in range(FITS[n]):
        rng = np.random.default_rng(50000 * d + n + k)
        X = rng.standard_normal((n + TESTED, d))
        K = gram(KERNELS["RF"], X, 1.0 / np.sqrt(d), BIAS)
        K += 10.0 * np.mean(np.diagonal(K))
        F = np.column_stack([signal(X) for signal in SIGNALS.values()])
        Y, new = np.hstack([F[:n], rng.standard_normal((n, 4))]), np.hstack([F[n:], np.zeros((TESTED, 4))])
        for ridge in RIDGES * np.mean(np.diagonal(K)):
            factor = cho_factor(K[:n, :n] + ridge * np.eye(n), overwrite_a=True)
            squares = np.mean((K[n:, :n] @ cho_solve(factor, Y) - new) ** 2, axis=0)
            found.append([*squares[:-4], squares[-4:].mean()])
    return np.mean(np.reshape(found, (FITS[n], len(RIDGES), -1)), axis=0)


def test_weak_signals_stay_in_the_band(keep):
    """Pools forecast four and sixteen times their rows; P = 100, d = 50 has signals that no hundred rows show."""
    cells = {}
    for d in (3, 10, 50):
        fits = {n: fitted(n, d) for n in FITS}
        for i, (name, signal) in enumerate(SIGNALS.items()):
            for s in EXPLAINABLE:
                truth = {n: s * one[:, i] + (1.0 - s) * (1.0 + one[:, -1]) for n, one in fits.items()}
                for P, pools in POOLS.items():
                    n = np.array([size for size in FITS if size >= 4 * P], dtype=float)
                    right = np.array([truth[int(size)] for size in n])
                    for k in range(pools):
                        rng = np.random.default_rng([P, d, i, round(100 * s), k])
                        X = rng.standard_normal((P, d))
                        y = np.sqrt(s) * signal(X) + np.sqrt(1.0 - s) * rng.standard_normal(P)
                        table = known(X, y, KERNELS["RF"], n[-1], 1.0 / np.sqrt(d))
                        found = table.at(n[:, None], np.inf, RIDGES * table.diagonal)
                        off = np.log(found["risk"][0] / right)
                        cell = (P, d, name, s)
                        cells.setdefault(cell, []).append((off, np.abs(off) < SURE * found["stderr"][0]))

    def over(rows):
        off, inside = (np.concatenate([one[k].ravel() for cell in rows for one in cells[cell]]) for k in (0, 1))
        return {"inside": round(float(inside.mean()), 3), "root_mean_square": round(float(np.sqrt(np.mean(off**2))), 3),
                "mean": round(float(off.mean()), 3)}  # fmt: skip

    def by(place):
        return {str(v): over([c for c in cells if c[place] == v]) for v in dict.fromkeys(c[place] for c in cells)}

    whole = over(cells)
    keep(
        pools=sum(map(len, cells.values())), ridges=RIDGES.tolist(), whole=whole, by_rows=by(0), by_columns=by(1),
        by_signal=by(2), by_explainable=by(3), each={str(cell): over([cell]) for cell in cells},
    )  # fmt: skip
    assert whole["inside"] >= 0.8
    assert all(one["inside"] >= 0.8 for place in (0, 2, 3) for one in by(place).values())
