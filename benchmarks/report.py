"""What is told: a table for people, a JSON file with its provenance for machines."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, run_python

HEADER = ("what", "measured", "peer", "ratio", "bound", "holds")


def quantity(value: float, unit: str) -> str:
    """A number that fits a column: seconds as s or ms, bytes as MB.

    >>> quantity(0.0123, "s"), quantity(3e8, "B")
    ('12.3 ms', '300 MB')
    """
    if unit == "B":
        return f"{value / 1e6:.0f} MB"
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def cells(figure: Figure) -> tuple[str, ...]:
    """One row of the table."""
    return (
        figure.what,
        quantity(figure.measured, figure.unit),
        f"{quantity(figure.peer, figure.unit)}, {figure.against}",
        f"{figure.ratio:.3g}",
        str(figure.bound),
        "yes" if figure.holds else "NO",
    )


def table(figures: Sequence[Figure]) -> str:
    """All rows, in columns as wide as their longest cell; notes below."""
    rows = [HEADER, *map(cells, figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += [f"{figure.what}: {figure.note}" for figure in figures if figure.note]
    return "\n".join(lines)


def provenance() -> dict[str, Any]:
    """Where and with what the figures were measured; takes a second, for the matrix-product peak."""
    import numpy as np
    import scipy

    import lazyscope

    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "lazyscope": lazyscope.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": {name: _blas(module) for name, module in (("numpy", np), ("scipy", scipy))},
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "matrix_product_peak_gflops": {name: matrix_product_peak(name) for name in ("float64", "float32")},
    }


_PEAK = """
import time
import numpy as np
A = np.random.default_rng(0).standard_normal((2000, 2000)).astype({dtype!r})
out, taken = np.empty_like(A), []
for _ in range(5):
    start = time.perf_counter()
    np.matmul(A, A, out=out)
    taken.append(time.perf_counter() - start)
print(2e-9 * 2000**3 / min(taken))
"""


def matrix_product_peak(dtype: str) -> float:
    """Gflop/s of the fastest of five matrix products, in a process of its own.

    Freeing a 32 MB array would teach this process's malloc to keep such memory, and spare whatever is measured
    next the page faults that a user's fresh process pays: three quarters of a diagonal `limit` curve, once.
    """
    return round(float(run_python(_PEAK.format(dtype=dtype))), 1)


def write(name: str, figures: Sequence[Figure], origin: Mapping[str, Any], folder: Path) -> Path:
    """Write one benchmark's figures and where they come from."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(f), "bound": str(f.bound), "ratio": f.ratio, "holds": f.holds} for f in figures]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"benchmark": name, "figures": rows, "provenance": origin}, indent=2) + "\n")
    return path


def _blas(module: Any) -> str:
    blas = module.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']} ({blas.get('openblas configuration', '')})"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
