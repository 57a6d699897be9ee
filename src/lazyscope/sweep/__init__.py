"""Sweeps that survive anything: plan → tasks → workers → one SQLite file → results, the same bits however they came.

`run` computes what a store has not yet; `status` tells how far it is; `load` and `export` give the results back.
"""

from lazyscope.evidence.work import Work
from lazyscope.sweep.collect import export, load
from lazyscope.sweep.driver import Summary, run, status
from lazyscope.sweep.plan import NUMERICS, Plan, Task
from lazyscope.sweep.store import Status

__all__ = ["NUMERICS", "Plan", "Status", "Summary", "Task", "Work", "export", "load", "run", "status"]
