"""One sample a step: equal to the batch engine and to Theorem 3's own words, gradients, floors, divergence, bits."""

from itertools import pairwise

import numba
import numpy as np
import pytest

import lazyscope as ls
from lazyscope.training.sgd import network, population, single, square, tangent
from lazyscope.training.sgd.stream import Law, draw


def trained(starts, widths, step_sizes):
    return square.SquareNetworks(starts, widths, step_sizes)


def lazy(starts, widths, step_sizes):
    return tangent.Tangents(starts, widths, step_sizes, ls.Activation("square"))


KINDS = [trained, lazy]


def data(d, seed=0):
    return Law(d, gamma=np.random.default_rng(seed).exponential(size=d) / np.sqrt(d))


def starts(d, widths, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((N, d), dtype=np.float32) / np.float32(np.sqrt(d)) for N in widths]


def in_double(pack):
    """The same models in float64, so that rounding cannot hide a difference."""
    for name in ("state", "fixed", "a", "c", "N", "step_size"):
        if hasattr(pack, name):
            setattr(pack, name, np.asarray(getattr(pack, name), dtype=np.float64, order="F"))
    return pack


def samples(law, n, seed=2):
    return draw(law, n, np.random.default_rng(seed))


def risk_of(law, pack, m):
    return population.risk(law, pack.form(m), float(pack.c[m]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(1,) * 40, (15, 16, 17, 1, 32, 33, 900)], ids=["one by one", "in blocks"])
def test_steps_are_those_of_the_batch_engine_at_batch_one(kind, lengths):
    # widths below, at and above d, none a multiple of the vector's length nor d of the loop's four
    d, widths, sizes = 11, [3, 11, 40], [0.001, 0.0015, 0.002]
    law, n = data(d), sum(lengths)
    X, y = (part.astype(np.float64) for part in samples(law, n))
    divisors = np.where(np.arange(n) < n // 2, 1.0, 10.0)
    fast, slow = (in_double(kind(starts(d, widths), widths, sizes)) for _ in range(2))
    for start, stop in pairwise(np.cumsum([0, *lengths])):
        single.run(fast, X[start:stop], y[start:stop], divisors[start:stop])
        for i in range(start, stop):
            slow.step(X[i : i + 1], y[i : i + 1], float(divisors[i]))
        # the same sums in another order: float64 rounds 2e-16, a thousand steps a thousand times that at most
        for name in ("state", "c", *(("a",) if kind is trained else ())):
            assert np.max(np.abs(getattr(fast, name) - getattr(slow, name))) < 1e-12, name
    assert n < 1000 or all(risk_of(law, fast, m) < 0.9 for m in range(3))  # they have learnt


@pytest.mark.parametrize("kind", KINDS)
def test_float32_is_float64_to_its_own_rounding(kind):
    d, N = 30, 30
    law = data(d)
    X, y = samples(law, 2000)
    wide, narrow = in_double(kind(starts(d, [N]), [N], [0.002])), kind(starts(d, [N]), [N], [0.002])
    single.run(wide, X.astype(np.float64), y.astype(np.float64), np.ones(len(X)))
    single.run(narrow, X, y, np.ones(len(X)))
    assert narrow.state.dtype == np.float32
    # each step rounds by 6e-8, at random: √2000 of them are 3e-6; the descent contracts more than it expands
    assert narrow.form(0) == pytest.approx(wide.form(0), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_is_the_gradient_of_the_loss_on_one_sample(kind):
    d, N, rate, h = 4, 3, 1e-3, 1e-5
    rng = np.random.default_rng(5)
    pack = in_double(kind(starts(d, [N]), [N], [rate]))
    pack.state[:], pack.c[:] = rng.standard_normal((d, N)), -0.2
    fixed = None
    if kind is trained:
        pack.a[:] = 0.7
    else:
        fixed = pack.fixed
    X, y = (part.astype(np.float64) for part in samples(data(d), 1))

    def loss(V, a, c):
        q = np.sum((X @ V) ** 2) if fixed is None else 2.0 * np.sum((X @ V) * (X @ fixed))
        return float((a * q / N + c - y[0]) ** 2)

    V, a, c = pack.state.copy(), float(pack.a[0]) if kind is trained else 1.0, float(pack.c[0])
    gradient = np.zeros_like(V)
    for i in np.ndindex(*V.shape):
        E = np.zeros_like(V)
        E[i] = h
        gradient[i] = (loss(V + E, a, c) - loss(V - E, a, c)) / (2 * h)
    single.run(pack, X, y, np.ones(1))
    # the gradient of the weights is multiplied by N; central differences err by h² = 1e-10 and rounding/h = 1e-11
    assert (V - pack.state) / rate == pytest.approx(N * gradient, rel=1e-7, abs=1e-8)
    assert (c - pack.c[0]) / rate == pytest.approx((loss(V, a, c + h) - loss(V, a, c - h)) / (2 * h), rel=1e-7)
    if kind is trained:
        assert (a - pack.a[0]) / rate == pytest.approx((loss(V, a + h, c) - loss(V, a - h, c)) / (2 * h), rel=1e-7)


def theorem_3(d, N, step_size):
    """A network whose second layer is fixed to 1: f = (1/N) Σ⟨w_i,x⟩² + c."""
    pack = in_double(trained(starts(d, [N]), [N], [step_size]))
    pack.fixed_layer, pack.a[:], pack.step_size[:] = True, 1.0, step_size
    return pack


@pytest.mark.parametrize("N", [3, 25])
def test_with_the_second_layer_fixed_it_is_the_algorithm_of_theorem_3_to_the_letter(N):
    """W ← W − ε∇(y − f)², c ← c − ε∇(y − f)² for f = Σ⟨w_i,x⟩² + c: ours has w_i√N for w_i, and the same ε."""
    d, rate = 8, 0.004
    law, pack = data(d), theorem_3(d, N, rate)
    X, y = (part.astype(np.float64) for part in samples(law, 300))
    W, c = starts(d, [N])[0].T.astype(np.float64) / np.sqrt(N), 0.0
    for x, label in zip(X, y, strict=True):
        h = W.T @ x
        r = h @ h + c - label
        W -= rate * 4.0 * r * np.outer(x, h)
        c -= rate * 2.0 * r
    single.run(pack, X, y, np.ones(len(X)))
    # N > d is trained in d columns; R was rounded to float32
    assert pack.form(0) == pytest.approx(W @ W.T, abs=1e-12 if d >= N else 1e-6)
    assert pack.c[0] == pytest.approx(c, abs=1e-12 if d >= N else 1e-6)
    assert pack.a[0] == 1.0


@pytest.mark.parametrize("fixed", [False, True], ids=["a is trained", "a = 1"])
def test_the_floor_of_theorem_3_is_reached(fixed):
    d, widths = 10, [3, 6, 10]
    law = data(d)
    pack = trained(starts(d, widths), widths, [0.0005] * 3)
    if fixed:
        pack.fixed_layer, pack.a[:] = True, 1.0
    plan = ls.SGD(steps=100_000, batch=1, step_sizes=(0.0005,))
    for _ in single.walk(law, pack, plan, np.random.default_rng(3), np.array([], dtype=int)):
        pass
    tail = np.sort(law.gamma)[::-1]
    floor = np.array([2.0 * np.sum(tail[N:] ** 2) for N in widths]) / law.energy
    risk = np.array([risk_of(law, pack, m) for m in range(3)])
    # from above; the distance that the paper's protocol promises
    assert np.all((risk > floor) & (risk < floor + 0.015))


@pytest.mark.parametrize("kind", KINDS)
def test_divergence_is_noticed_and_stays_with_its_model(kind):
    d, widths = 12, [5, 40, 5]
    law = data(d)
    X, y = samples(law, 1000)
    pack, alone = kind(starts(d, widths), widths, [0.0005, 5.0, 0.0005]), kind(starts(d, [5]), [5], [0.0005])
    for part in (pack, alone):
        single.run(part, X, y, np.ones(len(X)))
    with np.errstate(all="ignore"):
        assert pack.healthy().tolist() == [True, False, True]
    pack.bury(1)
    X, y = samples(law, 1000, seed=3)
    for part in (pack, alone):
        single.run(part, X, y, np.ones(len(X)))
    assert pack.alive.tolist() == [True, False, True]
    assert np.array_equal(pack.form(0), alone.form(0)) and pack.c[0] == alone.c[0]
    assert np.all(np.isfinite(pack.state)) and np.all(np.isfinite(pack.c))


@pytest.mark.parametrize("kind", KINDS)
def test_neither_threads_nor_neighbours_change_a_bit(kind, monkeypatch):
    d, widths, sizes = 20, [4, 20, 50, 7], [0.0005, 0.001, 0.0004, 0.0003]
    law = data(d)
    plan = ls.SGD(steps=1500, batch=1, step_sizes=(0.002,))

    def states(threads, kept=slice(None)):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        pack = kind(starts(d, widths)[kept], widths[kept], sizes[kept])
        for _ in single.walk(law, pack, plan, np.random.default_rng(4), np.array([10, 1200])):
            pass
        assert np.all(pack.healthy())
        return [(pack.form(m), pack.c[m]) for m in range(len(pack))]

    once, again, threaded, alone = states(1), states(1), states(3), states(1, slice(2, 3))
    for others in (again, threaded):
        assert all(np.array_equal(G, H) and c == e for (G, c), (H, e) in zip(once, others, strict=True))
    assert np.array_equal(once[2][0], alone[0][0]) and once[2][1] == alone[0][1]


def test_a_walk_stops_at_every_point_and_follows_the_schedule():
    law, plan = data(5), ls.SGD(steps=2345, batch=1, step_sizes=(0.01,))
    pack = trained(starts(5, [2]), [2], [0.01])
    points = np.array([1, 2, 700, 1000, 1001, 2345])
    stops = list(single.walk(law, pack, plan, np.random.default_rng(0), points))
    assert stops == sorted({*points.tolist(), 1000, 2000, 2345})
    # private: they are computed at once and never leave the loop, so that no result shows a single one
    divisors = single._divisors(plan, 0, plan.steps)
    assert divisors == pytest.approx([1.0 / plan.rate(1.0, step) for step in range(plan.steps)])


def test_what_it_serves():
    W = starts(4, [3])
    assert single.serves(trained(W, [3], [0.1])) and single.serves(lazy(W, [3], [0.1]))
    assert not single.serves(tangent.Tangents(W, [3], [0.1], ls.Activation("tanh")))
    assert not single.serves(network.Networks(W, [3], [0.1], ls.Activation("square")))
