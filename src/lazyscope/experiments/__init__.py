"""Experiments: a question, its work, its numbers, its picture and its verdict, one file each.

A file of a sub-folder that defines `EXPERIMENT` is an experiment, known by its name: `lazy-to-rich` is defined in
`lazy_to_rich.py`. Another package adds its own through the entry-point group `lazyscope.experiments`. What they share
is in `frame`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from lazyscope import plugins
from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    from lazyscope.experiments.frame.experiment import AnyExperiment


def load(name: str | None) -> AnyExperiment:
    """Return one experiment; of this package, only its own file is imported.

    >>> load("fig1").title
    'Quadratic target, σ = u² (Limitations of Lazy Training, Figure 1)'
    >>> load("fig9")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The NAME parameter of lazyscope figure must be fig1, fig2, fig3, ...
    """
    file = str(name).replace("-", "_")
    experiment = _in_module(_modules()[file]) if file in _modules() else None
    if experiment is None:
        experiment = next((other for other in _others() if other.name == name), None)
    if experiment is not None and experiment.name == name:
        return experiment
    *others, last = load_all()
    must = f"be {', '.join(others)} or {last}"
    raise InvalidParameter.of("lazyscope figure", "NAME", must, "none" if name is None else repr(name))


def load_all() -> dict[str, AnyExperiment]:
    """Return every experiment by its name, in the order of the papers; all their kinds of work are then known.

    >>> list(load_all())[:3]
    ['fig1', 'fig2', 'fig3']
    """
    own = [experiment for module in _modules().values() if (experiment := _in_module(module)) is not None]
    return {
        experiment.name: experiment
        for experiment in [*sorted(own, key=lambda experiment: (experiment.place, experiment.name)), *_others()]
    }


@cache
def _modules() -> dict[str, str]:
    """Return the modules of the sub-folders by the names of their files; none is imported."""

    def below(path: str, prefix: str) -> Iterator[tuple[str, str]]:
        for module in pkgutil.iter_modules([path]):
            yield module.name, f"{prefix}.{module.name}"
            if module.ispkg and module.name != "frame":
                yield from below(f"{path}/{module.name}", f"{prefix}.{module.name}")

    return dict(below(__path__[0], __name__))


def _in_module(module: str) -> AnyExperiment | None:
    return getattr(importlib.import_module(module), "EXPERIMENT", None)


def _others() -> list[AnyExperiment]:
    """Return the experiments of other packages; a note names one that cannot be used, and it is left out."""
    from lazyscope.experiments.frame.experiment import Experiment

    experiments: list[AnyExperiment] = []

    def take(name: str, named: Any) -> None:
        if not isinstance(named, Experiment) or named.name != name:
            must = f"be an Experiment of the name {name}"
            raise InvalidParameter.of(plugins.EXPERIMENTS, name, must, type(named).__name__)
        experiments.append(named)

    plugins.collect(plugins.EXPERIMENTS, take)
    return experiments
