"""One plan, one result: whatever the workers, the backend and the order."""

import functools
import os
import re
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import lazyscope as ls
from lazyscope import progress, sweep
from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.sweep import driver, pool
from lazyscope.sweep.share import Share
from lazyscope.sweep.worker import compute, threads_given_back


def exported(store):
    sweep.export(store, "a.csv")
    sweep.export(store, "a.nc")
    return Path("a.csv").read_bytes(), Path("a.nc").read_bytes()


def test_results_do_not_depend_on_the_workers_and_are_computed_once(here, tiny):
    assert sweep.run(tiny, "one.sqlite", workers=1).computed == 36
    assert sweep.run(tiny, "two.sqlite", workers=2).computed == 36
    assert exported("one.sqlite") == exported("two.sqlite")
    times = sqlite3.connect("two.sqlite").execute("SELECT task, finished, seconds FROM results").fetchall()
    again = sweep.run(tiny, "two.sqlite", workers=2)
    assert (again.reused, again.computed, again.complete) == (36, 0, True)
    assert sqlite3.connect("two.sqlite").execute("SELECT task, finished, seconds FROM results").fetchall() == times


def test_results_are_those_of_the_verbs(here, tiny):
    sweep.run(tiny, "a.sqlite", workers=1)
    results = sweep.load(tiny, "a.sqlite")
    assert len(results) == 12
    with threadpool_limits(1):
        for result in results:
            draws = [task.work for task in tiny.tasks if str(task.work.problem) == result.attrs["problem"]]
            draw = next(draw for draw in draws if str(draw.regime) == result.attrs["regime"])
            verb = getattr(ls, result.attrs["fidelity"])
            of_sgd = {"protocol": next(draw.protocol for draw in draws if draw.protocol)}
            settings = {} if verb is ls.exact else {"samples": 2000} if draw.regime.label == "RF" else of_sgd
            expected = verb(draw.problem, draw.regime, width=[3, 9, 12], seed=5, **settings)
            if "step_size" not in result.dims:
                assert result.identical(expected)
            else:  # the verb trains all widths in one product, in float32
                assert result.attrs == expected.attrs
                for name in expected.data_vars:
                    np.testing.assert_allclose(result[name], expected[name], rtol=1e-4, atol=1e-6)


def test_loading_by_plan_by_name_and_the_only_one_agree(here, tiny):
    sweep.run(tiny, "a.sqlite", workers=1)
    for one, two, three in zip(*(sweep.load(plan, "a.sqlite") for plan in (tiny, "tiny", None)), strict=True):
        assert one.identical(two)
        assert one.identical(three)


def test_a_cluster_gives_the_same_bytes(here, tiny):
    import dask
    from distributed import LocalCluster

    sweep.run(tiny, "one.sqlite", workers=1)
    patience = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with patience, LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        assert sweep.run(tiny, "two.sqlite", backend="dask", address=address).computed == 36
        assert exported("one.sqlite") == exported("two.sqlite")
        # A task that kills every worker it gets is given up by Dask, and the driver is told.
        with pool.opened(None, "dask", address) as outcomes, pytest.raises(pool.WorkersLost, match="workers died"):
            list(outcomes([_deadly()]))


CUT = """
import lazyscope as ls
from distributed import LocalCluster, client
from distributed.comm import CommClosedError
from lazyscope import sweep

async def lost(future, raiseit=True):
    raise CommClosedError("cut")

if __name__ == "__main__":
    plan = sweep.Plan.grid("a", [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=[1])
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as cluster:
        client.Future._result = lost
        try:
            sweep.run(plan, "a.sqlite", backend="dask", address=cluster.scheduler_address.removeprefix("tcp://"))
        except ls.errors.LazyscopeError as error:
            print(error)
"""


def test_a_cluster_that_is_lost_while_a_result_is_fetched_is_not_waited_for(here):
    """Dask would log a traceback and forget the task; the bound is only there so that the test ends if it does."""
    Path("cut.py").write_text(CUT)
    done = subprocess.run([sys.executable, "cut.py"], capture_output=True, text=True, timeout=100, check=False)
    told = r"The cluster at \S+ was lost, or has no workers \(cut\)\. What was computed is kept; [^\n]+\n"
    assert re.fullmatch(told, done.stdout), done.stderr
    assert "Traceback" not in done.stderr


def _deadly():
    """A task that ends the process it runs in, as the system does when memory runs out."""
    work = SimpleNamespace(fidelity="exact", label="deadly", size=1, compute=functools.partial(os._exit, 1))
    return SimpleNamespace(key="deadly", work=work)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 1.5}, "workers"),
        ({"backend": "mpi"}, "loky or dask"),
        ({"address": "a:1"}, "backend dask"),
        ({"backend": "dask"}, "host:port"),
        ({"backend": "dask", "address": "nonsense"}, "host:port"),
        ({"backend": "dask", "address": "127.0.0.1:9", "workers": 2}, "left out"),
    ],
)
def test_what_does_not_go_together_is_refused_and_leaves_no_file(here, tiny, options, word):
    with pytest.raises(InvalidParameter, match=word):
        sweep.run(tiny, "a.sqlite", **options)
    assert list(here.iterdir()) == []


def test_without_dask_the_line_says_how_to_get_it(here, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidParameter, match=r"pip install 'lazyscope\[dask\]'"):
        sweep.run(tiny, "a.sqlite", backend="dask", address="127.0.0.1:9")


def test_a_task_that_fails_is_kept_apart_and_tried_again(here):
    target, regime = ls.QuadraticTarget.exponential(8), ls.RandomFeatures()
    plan = sweep.Plan.grid("a", [target], [regime], ["simulate"], widths=[4, 50], draws=2, samples=40)
    summary = sweep.run(plan, "a.sqlite", workers=1)
    assert (summary.computed, summary.complete) == (2, False)
    assert [task for task, _ in summary.failures] == [f"simulate RF, N = 50, n = 40, draw {k}" for k in range(2)]
    assert "must be at least the number of features" in summary.failures[0][1]
    assert sweep.status("a.sqlite")[0][0].failed == 2
    assert len(sweep.run(plan, "a.sqlite", workers=1).failures) == 2
    with pytest.raises(LazyscopeError, match="no result yet for 2 of its 4 tasks, 2 of which failed"):
        sweep.load("a", "a.sqlite")
    (result,) = sweep.load("a", "a.sqlite", partial=True)
    assert result.identical(ls.simulate(target, regime, width=[4], samples=40, draws=2))
    assert sweep.export("a.sqlite", "a.csv", partial=True) == ["simulate RF, σ = square: N = 50 (not finished)"]


def test_surprises_in_a_task_become_its_message():
    for error, told in (
        (ZeroDivisionError("a\nb"), "ZeroDivisionError: a b"),
        (MemoryError(), "Out of memory."),
        (MemoryError("9 EiB"), "Out of memory (9 EiB)."),
    ):

        def fail(error=error):
            raise error

        outcome = compute(SimpleNamespace(fidelity="exact", compute=fail), "key", "1")
        assert (outcome.row, outcome.failure) == (None, told)
    outcome = compute(SimpleNamespace(fidelity="exact", compute=lambda: {"risk": np.array([np.nan])}), "key", "1")
    assert outcome.failure == "NaN in risk, which no result may have."
    outcome = compute(SimpleNamespace(fidelity="exact", compute=dict), "key", "another")
    assert "another version of lazyscope" in outcome.failure


def test_workers_that_only_die_are_given_up(here, tiny):
    """Killed again and again before anything is done: no endless loop, and what was there is kept."""

    class Store:
        def add(self, outcome):
            raise AssertionError

    with (
        pool.opened(2, "loky", None) as outcomes,
        pytest.raises(LazyscopeError, match="died 3 times without finishing"),
    ):
        # private: a store and tasks that a plan cannot have
        driver._work({str(i): _deadly() for i in range(2)}, outcomes, Store(), 2)


def test_a_driver_that_stops_early_stops_its_workers_without_a_word(here, tiny, workers_of, alive, capfd):
    """Here because its store is full; pytest turns joblib's warning of unfetched results into an error."""

    class Full:
        def add(self, outcome):
            self.workers = workers_of(os.getpid())
            raise LazyscopeError("full")

    store = Full()
    with pool.opened(2, "loky", None) as outcomes, pytest.raises(LazyscopeError, match="full"):
        # private: a store that is full from the first result on
        driver._work({task.key: task for task in tiny.tasks}, outcomes, store, 36)
    assert len(store.workers) == 2
    assert not any(map(alive, store.workers))
    assert capfd.readouterr() == ("", "")


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_the_linear_algebra_has_one_thread_in_every_task_and_its_own_number_afterwards(here):
    seen = []
    work = SimpleNamespace(fidelity="exact", label="NT", compute=lambda: seen.append(blas_threads()) or {})
    with threadpool_limits(2), pool.opened(1, "loky", None) as outcomes:
        for outcome in outcomes([SimpleNamespace(key="a", work=work)]):
            assert outcome.failure is None
        assert (seen, blas_threads()) == ([{1}], {2})


def test_tasks_in_threads_of_one_process_do_not_lift_each_others_limit():
    """As on a Dask worker: the first to come leaves first."""
    started, go = threading.Barrier(2), threading.Event()

    def first():
        started.wait()
        return {}

    def second():
        started.wait()
        go.wait()
        return {"threads": np.array(sorted(blas_threads()))}

    with threads_given_back(), ThreadPoolExecutor(2) as threads:
        slow = threads.submit(compute, SimpleNamespace(fidelity="exact", compute=second), "b", "1")
        assert threads.submit(compute, SimpleNamespace(fidelity="exact", compute=first), "a", "1").result().row == {}
        go.set()
        assert slow.result().row["threads"].tolist() == [1]


def test_a_task_refuses_to_compute_if_the_threads_are_not_its_to_set():
    with threadpool_limits(2), ThreadPoolExecutor(1) as other:
        task = SimpleNamespace(fidelity="exact", compute=dict)
        outcome = other.submit(compute, task, "key", "1").result()
    assert "at 2 threads" in str(outcome.failure)


def test_steps_of_a_task_are_told_with_its_own_label(here, tiny):
    """Computed in this process, a task reports its steps while the last line still names the one before it."""
    words = []
    with progress.reporting(lambda done, total, what, share: words.append(what) if not total else None):
        sweep.run(tiny, "a.sqlite", workers=1)
    labels = {task.work.label for task in tiny.tasks}
    told = [what for what in words if "step " in what]
    assert told and all(what.startswith("now ") and what[4:].rsplit(", step", 1)[0] in labels for what in told)


def test_progress_counts_tasks(here, tiny):
    seen = []
    with progress.reporting(lambda *told: seen.append(told) if told[1] else None):
        sweep.run(tiny, "a.sqlite", workers=1)
    assert [done for done, _, _, _ in seen] == list(range(37))
    assert {total for _, total, _, _ in seen} == {36}
    assert seen[1][2].startswith("simulate"), "the long tasks come first"
    assert seen[0][3] is None and all(0.0 < share < 1.0 for *_, share in seen[1:-1]) and seen[-1][3] == 1.0


def test_the_share_of_the_work_that_is_done_is_learnt_from_finished_tasks():
    """Ten tasks of ten seconds, then ninety of a tenth: after the first, 10 of 109 seconds are done, not 1 of 100."""
    long, short = (SimpleNamespace(fidelity="simulate", label=f"NN, N = {N}", size=N) for N in (10_000, 1))
    share = Share([long] * 10 + [short] * 90)
    assert share.after(long, 10.0) == pytest.approx(10.0 / 109.0)
    for _ in range(8):
        share.after(long, 10.0)
    assert share.after(long, 10.0) == pytest.approx(100.0 / 109.0)
    assert [share.after(short, 0.1) for _ in range(90)][-1] == 1.0


def test_groups_hold_what_belongs_together(here):
    """Overlapping grids: a width with more draws than the others is a result of its own."""
    target, regimes = ls.QuadraticTarget([3.0, 2.0, 1.0]), [ls.NeuralTangent()]
    grids = [({"widths": [1, 2]}, 2), ({"widths": [2, 3]}, 3), ({"widths": [1], "seed": 7}, 2)]
    plans = [sweep.Plan.grid("a", [target], regimes, draws=draws, **size) for size, draws in grids]
    plan = sweep.Plan.union("a", plans)
    sweep.run(plan, "a.sqlite", workers=1)
    results = sweep.load(plan, "a.sqlite")
    assert [(result.width.values.tolist(), result.sizes["draw"]) for result in results] == [
        ([1], 2),
        ([2, 3], 3),
        ([1], 2),
    ]
    with threadpool_limits(1):
        assert results[1].identical(ls.exact(target, regimes[0], width=[2, 3], draws=3))
