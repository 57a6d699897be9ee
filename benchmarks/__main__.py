"""`python -m benchmarks [NAME…]`: run all benchmarks or the named ones; exit code 1 where a bound does not hold.

`--list` names them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import core, estimators, explorer, forecast, simulate, startup, taylor
from benchmarks.harness import Figure, MachineUse
from benchmarks.limits import every_size, flow, margin, ridge
from benchmarks.report import provenance, table, write

Benchmark = Callable[[], Iterable[Figure]]

# From small arrays to large: what a large one leaves behind in malloc flatters whatever is measured after it.
BENCHMARKS: dict[str, Benchmark] = {
    run.__name__: run
    for run in (
        startup.import_time,
        startup.command_line,
        explorer.explorer_start,
        explorer.explorer_slider,
        explorer.explorer_kept_alive,
        explorer.explorer_upload,
        core.limit_curves,
        core.labelled_points,
        ridge.ridge_grid,
        ridge.ridge_path,
        every_size.every_size_grid,
        every_size.every_size_curve,
        every_size.every_size_path,
        margin.margin_curve,
        margin.hard_margin,
        flow.flow_curves,
        flow.order_parameter_curves,
        flow.particles_against_torch,
        estimators.tangent_products,
        estimators.network_tangent_products,
        estimators.two_layer_regressor,
        estimators.estimators_against_peers,
        estimators.random_features_regressor,
        simulate.one_sample_a_step,
        core.exact_nt_against_sgd,
        simulate.sgd_against_torch,
        simulate.committee_against_torch,
        simulate.side_by_side,
        forecast.forecast_grid,
        core.exact_rf,
        core.exact_rf_against_samples,
        simulate.streamed_features,
        core.exact_nt_wide,
        taylor.taylor_models,
        taylor.taylor_models_torch,
    )
}
RESULTS = Path(__file__).parent / "results"
QUIET = 0.05  # beyond it, threads of one matrix product wait for one another and the peer looks slow


def main(
    names: Sequence[str],
    benchmarks: Mapping[str, Benchmark] = BENCHMARKS,
    folder: Path = RESULTS,
    origin: Callable[[], Mapping[str, Any]] = provenance,
) -> int:
    """Run, print, write; return the exit code."""
    if [*names] == ["--list"]:
        for name, run in benchmarks.items():
            print(f"{name:<28}{(run.__doc__ or '').strip().splitlines()[0]}")
        return 0
    unknown = [name for name in names if name not in benchmarks]
    if unknown:
        print(f"No benchmark named {unknown[0]!r}. There are: {', '.join(benchmarks)}.", file=sys.stderr)
        return 2
    where, figures, disturbed = dict(origin()), [], []
    for name in names or benchmarks:
        print(f"{name} …", file=sys.stderr, flush=True)
        before = MachineUse.now()
        found = list(benchmarks[name]())
        others = MachineUse.now().others_since(before)
        if others > QUIET:
            disturbed.append(f"{name} ({others:.0%})")
        write(name, found, {**where, "others_share_of_processor_time": round(others, 3)}, folder)
        figures += found
    print(table(figures))
    if disturbed:
        print(f"Not a quiet machine: other processes took part of it during {', '.join(disturbed)}. Run again.")
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
