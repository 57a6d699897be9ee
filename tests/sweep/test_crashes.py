"""Many times kill -9, of drivers and workers, at random moments: the exported bytes are those of a quiet run."""

import os
import random
import re
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from lazyscope import sweep


def done(store):
    """Results that the store holds now."""
    return sum(plan.done for plan in sweep.status(store)[0]) if store.exists() else 0


def wait_for(condition, process, seconds=300.0):
    """Wait until a condition holds; the process must not end before it does."""
    limit = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.03)


@pytest.mark.parametrize(("drivers", "workers", "draws"), [(2, 2, 4), pytest.param(12, 8, 8, marks=pytest.mark.slow)])
def test_kills_leave_no_trace_in_the_results(
    here, plan_file, lazyscope, run, workers_of, alive, drivers, workers, draws
):
    rng = random.Random(3)
    plan = plan_file(d=24, draws=draws, steps=500)  # 24 tasks a draw, half of them simulations of up to 0.1 s
    assert run("run", plan, "--store", "quiet.sqlite")[0] == 0

    store, lost, held = here / "stormy.sqlite", [], 0
    victims = ["driver"] * drivers + ["worker"] * workers
    rng.shuffle(victims)
    driver = lazyscope("run", plan, "--store", store)
    for victim in victims:
        # The moment: before the first new result (a driver may be making its store), or soon after it.
        early = victim == "driver" and rng.random() < 0.5 and bool(lost)  # one with workers first
        wanted = done(store) + (not early)
        wait_for(lambda wanted=wanted: done(store) >= wanted, driver)
        time.sleep(rng.uniform(0.0, 0.8 if early else 0.1))
        if victim == "worker":
            wait_for(lambda pid=driver.pid: workers_of(pid), driver)
            os.kill(rng.choice(workers_of(driver.pid)), signal.SIGKILL)
            continue
        lost += workers_of(driver.pid)
        assert driver.poll() is None, "the sweep ended before the last kill"
        driver.kill()
        driver.wait()  # not for its workers, which have yet to notice: the next driver meets them
        assert done(store) >= held, "a result that was there is gone"
        held = done(store)
        driver = lazyscope("run", plan, "--store", store)
    out, err = driver.communicate(timeout=600)
    assert (driver.returncode, err) == (0, "")
    assert re.search(rf"\d+ computed, \d+ had a result already; kept in {re.escape(str(store))}", out.replace("\n", ""))
    assert lost, "no driver was killed while it had workers"
    assert not any(map(alive, lost)), "workers outlive their driver"

    for suffix in ("csv", "nc"):
        for name in ("quiet", "stormy"):
            sweep.export(f"{name}.sqlite", f"{name}.{suffix}")
        assert (here / f"quiet.{suffix}").read_bytes() == (here / f"stormy.{suffix}").read_bytes()
    with xr.open_datatree("stormy.nc", engine="h5netcdf") as tree:
        assert len(tree.children) == 6
        assert all(group.sizes["width"] == 4 for group in tree.children.values())
    assert {path.name for path in here.iterdir()} == {
        "plan.toml", *(f"{name}.{suffix}" for name in ("quiet", "stormy") for suffix in ("csv", "nc", "sqlite"))
    }, "no log, lock or half file is left"  # fmt: skip


def test_ctrl_c_is_one_line_and_the_same_command_goes_on(here, plan_file, lazyscope, run, workers_of, alive):
    plan, store = plan_file(steps=400), here / "plan.sqlite"
    driver = lazyscope("run", plan, "--workers", 2)
    wait_for(lambda: done(store) >= 3, driver)
    workers = workers_of(driver.pid)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: driver and workers alike
    out, err = driver.communicate(timeout=120)
    told = re.fullmatch(
        r"lazyscope: interrupted; (\d+) of 96 tasks are done and kept, the same command goes on from there\n", err
    )
    assert (driver.returncode, out) == (130, "")
    assert told, err
    assert len(workers) == 2
    assert not any(map(alive, workers))
    assert {path.name for path in here.iterdir()} == {"plan.toml", "plan.sqlite"}
    db = sqlite3.connect(store)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert db.execute("SELECT count(*) FROM results").fetchone() == (int(told[1]),)
    db.close()
    code, out, err = run("run", plan)
    assert (code, err) == (0, "")
    assert f"{96 - int(told[1])} computed, {told[1]} had a result already" in out


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_what_is_cleaned_up_after_a_killed_driver_is_not_told(here, plan_file, lazyscope, sign):
    """The process that cleans up warned of leaked folders and semaphores, which nobody can do anything about."""
    driver = lazyscope("run", plan_file(), "--workers", 2)
    wait_for(lambda: done(here / "plan.sqlite") >= 1, driver)
    driver.send_signal(sign)
    assert driver.communicate(timeout=120) == ("", "")  # their end is that of all who could say something
    if Path("/dev/shm").is_dir():
        assert not list(Path("/dev/shm").glob(f"*_{driver.pid}_*"))


def test_ctrl_c_in_a_single_process(here, plan_file, lazyscope):
    driver = lazyscope("run", plan_file(steps=2000), "--workers", 1)
    wait_for(lambda: done(here / "plan.sqlite") >= 1, driver)
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=120)
    assert (driver.returncode, out) == (130, "")
    assert re.fullmatch(r"lazyscope: interrupted; \d+ of 96 tasks [^\n]+\n", err)
    assert np.isfinite(sum(plan.seconds for plan in sweep.status(here / "plan.sqlite")[0]))
