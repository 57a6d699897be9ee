"""The stream of samples: drawn on this thread or beside it, the numbers are the same."""

import threading

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.numerics.blas import threads_for
from lazyscope.training.sgd import stream


@pytest.mark.parametrize("problem", [ls.QuadraticTarget(np.arange(1.0, 51.0)), ls.GaussianMixture(np.full(50, 0.5))])
def test_one_seed_gives_one_stream_whoever_draws_it(problem, monkeypatch):
    law, drawn, drew = stream.law_of(problem), [], []
    monkeypatch.setattr(stream, "_CHUNK", 5 * 7 * 50)  # five batches of seven samples
    plain = stream.Buffer.draw
    monkeypatch.setattr(stream.Buffer, "draw", lambda *given: (drew.append(threading.get_ident()), plain(*given))[1])
    for cores in (1, 2):
        monkeypatch.setattr(stream, "cores", lambda count=cores: count)
        with threads_for(0):
            batches = stream.batches(law, 7, 13, np.random.default_rng(3))
            drawn.append([(X.copy(), y.copy()) for X, y in batches])
    assert [who == threading.get_ident() for who in drew] == [True] * 3 + [False] * 3
    assert [len(batches) for batches in drawn] == [13, 13]
    for (X, y), (other, label) in zip(*drawn, strict=True):
        assert np.array_equal(X, other) and np.array_equal(y, label)
