"""One fresh sample a step, σ = u²: the algorithm of Theorem 3 itself (Ghorbani et al. 2019, §2.3), in its own path.

A step on (x, y) reads h = Wᵀx and subtracts a multiple of xhᵀ: twice through W for four flops a weight, and the memory
is what takes the time. So k steps are made together, and still one after another. Within a block of rows x_1 … x_k,

    h_j = W₀ᵀx_j − Σ_{i<j} ⟨x_j,x_i⟩ z_i,        z_j = 4ε r_j a h_j  (NN),      W_k = W₀ − Σ_j x_j z_jᵀ,

because W_{j−1} = W₀ − Σ_{i<j} x_i z_iᵀ. The inner products of the samples are all that is new; W is read for the block
once and written once. NT is the same with ⟨v_i,x⟩ on the left and z_j = 4ε r_j Wᵀx_j.

No matrix product here comes from BLAS, whose last bits depend on its number of threads: the threads are given models.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.normals import Float32
from lazyscope.protocols import SGD
from lazyscope.training.sgd.pack import Int, Pack
from lazyscope.training.sgd.square import SquareNetworks
from lazyscope.training.sgd.stream import Law, batches
from lazyscope.training.sgd.tangent import Tangents

CHUNK = 1000  # steps between two looks at the models; what is drawn depends on it


def serves(pack: Pack) -> bool:
    """Say whether this path takes the pack: σ = u², NN with a single second-layer weight, or NT."""
    return isinstance(pack, SquareNetworks) or (type(pack) is Tangents and pack.sigma.name == "square")


def walk(law: Law, pack: Pack, protocol: SGD, rng: np.random.Generator, points: Int) -> Iterator[int]:
    """Train on one sample a step; yield the number of steps made at every point, and at least once a chunk."""
    begun = 0
    for X, y in batches(law, CHUNK, -(-protocol.steps // CHUNK), rng):
        end = min(begun + CHUNK, protocol.steps)
        stops = [int(point) for point in points if begun < point < end]
        for start, stop in zip([begun, *stops], [*stops, end], strict=True):
            here = slice(start - begun, stop - begun)
            run(pack, X[here], y[here], _divisors(protocol, start, stop))
            yield stop
        begun = end


def _divisors(protocol: SGD, start: int, stop: int) -> FloatArray:
    """Return what `protocol.rate` divides by, for many steps at once: one by one, that takes as long as a step."""
    left, divisors = protocol.steps - np.arange(start, stop), np.ones(stop - start)
    for share, divisor in protocol.decay:
        divisors[left <= share * protocol.steps] = divisor
    return divisors


def run(pack: Pack, X: Float32, y: Float32, divisors: FloatArray) -> None:
    """Make len(X) steps, one sample each, with step sizes over `divisors`; models run on all threads there are.

    Each thread owns a model, so their number changes no bit. joblib tells its workers their share of the cores.
    """
    from numba import config

    living = [int(m) for m in np.flatnonzero(pack.alive)]
    threads = min(len(living), int(config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    if threads < 2:
        for m in living:
            _run_one(pack, m, X, y, divisors)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda m: _run_one(pack, m, X, y, divisors), living))


def _run_one(pack: Pack, m: int, X: Float32, y: Float32, divisors: FloatArray) -> None:
    """Run model m on a copy of its weights that has rows in memory, so that loops over neurons are vector code."""
    here, dtype = pack.columns(m), pack.state.dtype
    state = _in_rows(pack.state[:, here])
    rates = (pack.step_size[m] / divisors).astype(dtype)
    if isinstance(pack, SquareNetworks):
        trained = not pack.fixed_layer
        pack.a[m], pack.c[m] = _descend(state, state, X, y, rates, pack.N[m], pack.a[m], pack.c[m], False, trained)
    else:
        assert isinstance(pack, Tangents)
        fixed = _in_rows(pack.fixed[:, pack.shared[here]])
        two = dtype.type(2.0)  # f = (2/N) Σ⟨w_i,x⟩⟨v_i,x⟩ + c
        _, pack.c[m] = _descend(state, fixed, X, y, rates, pack.N[m], two, pack.c[m], True, False)
    pack.state[:, here] = state[:, : here.stop - here.start]


def _in_rows(W: Float32) -> Float32:
    """Copy columns into rows of a multiple of eight, a vector register; columns of zeros stay zero in every step."""
    d, columns = W.shape
    rows = np.zeros((d, -(-columns // 8) * 8), dtype=W.dtype)
    rows[:, :columns] = W
    return rows


@compiled
def _descend(
    state: Float32,
    fixed: Float32,
    X: Float32,
    y: Float32,
    rates: Float32,
    N: np.float32,
    a: np.float32,
    c: np.float32,
    tangent: bool,
    train_a: bool,
) -> tuple[np.float32, np.float32]:
    """Make len(X) steps on W or V, (d, columns), in place; return a and c.

    4·d·columns flops a step (NT: 6), 2·d·k for the inner products, k·columns for what the block already changed;
    memory 3·k·columns. f = a q + c with q = ⟨h, g⟩/N: for NN h = g = Wᵀx, for NT h = Vᵀx and g = Wᵀx.
    """

    def add_product(out: Float32, A: Float32, B: Float32) -> None:
        """Add AB to `out`: four terms at a time, so that a number of `out` is loaded once for eight flops.

        The loop over columns is the one that becomes vector instructions: it sums nothing, so no order changes.
        Sixteen rows of `out` at a time stay in the first-level cache, whether out is H (all of it) or W.
        """
        whole = len(B) - len(B) % 4
        for top in range(0, len(out), 16):
            bottom = min(len(out), top + 16)
            for i in range(0, whole, 4):
                for j in range(top, bottom):
                    a0, a1, a2, a3 = A[j, i], A[j, i + 1], A[j, i + 2], A[j, i + 3]
                    for m in range(B.shape[1]):
                        out[j, m] += (a0 * B[i, m] + a1 * B[i + 1, m]) + (a2 * B[i + 2, m] + a3 * B[i + 3, m])
            for i in range(whole, len(B)):
                for j in range(top, bottom):
                    for m in range(B.shape[1]):
                        out[j, m] += A[j, i] * B[i, m]

    k = 16  # more makes the inner products of the samples dearer, fewer the passes over W
    number, columns = state.dtype.type, state.shape[1]
    H, Z, K = np.empty((k, columns), state.dtype), np.empty((k, columns), state.dtype), np.empty((k, k), state.dtype)
    G = np.empty((k, columns), state.dtype) if tangent else H
    for start in range(0, len(X), k):
        x = X[start : start + k]
        n = len(x)
        H[:], K[:] = 0.0, 0.0
        add_product(H[:n], x, state)
        add_product(K[:n, :n], x, x.T.copy())
        if tangent:
            G[:] = 0.0
            add_product(G[:n], x, fixed)
        for j in range(n):
            add_product(H[j : j + 1], K[j : j + 1], Z[:j])
            q = number(0.0)
            for m in range(columns):
                q += H[j, m] * G[j, m]
            q /= N
            pull = number(2.0) * rates[start + j] * (a * q + c - y[start + j])
            slope = -number(2.0) * pull if tangent else -number(2.0) * pull * a
            for m in range(columns):
                Z[j, m] = slope * G[j, m]
            c -= pull
            if train_a:
                a -= pull * q
        add_product(state, x.T, Z[:n])
    return a, c
