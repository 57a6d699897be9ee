"""Random command lines, walked from the tree of commands: every option by its meaning, some of them spoilt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import click
import numpy as np

Rng = np.random.Generator

ACTIVATIONS = (
    "square", "relu", "relu2", "relu3", "abs", "tanh", "erf", "sigmoid", "softplus", "sin", "cos", "cube", "sign",
)  # fmt: skip
BAD = ("", "-1", "0", "nan", "inf", "-inf", "abc", "1e400", "1e-320", "0.5", "1e15", "10" * 20, ",", "1:2", "ρ", "-")
BAD_PATHS = ("missing/a.csv", "a.txt", "", ".", "folder.csv", "a" * 300 + ".csv", "mine.csv", "mine.png", "mine.json")


_EXACT = 'fidelity = "exact"\nwidth = [2, 3]\ndraws = 2\n'
_DRAWN = (
    'fidelity = "simulate"\nwidth = 4\nsamples = 20\n[sgd]\nsteps = 5\n[noisy_sgd]\nsteps = 3\n[descent]\nsteps = 3\n'
)
PLANS = {
    "plan": f'problem = "quadratic"\nd = 6\nregime = ["nt", "nn"]\n{_EXACT}',
    "mixture": f'problem = "mixture"\nd = 6\nregime = ["rf", "joint"]\n{_EXACT}',
    "multi": f'problem = "multi-index"\nd = 6\nregime = ["rf", "nt", "joint", "gs"]\n{_EXACT}',
    "harmonic": f'problem = "harmonic"\nd = 6\nregime = ["rf", "nt"]\n{_EXACT}',
    "monomial": f'problem = "monomial"\nd = [5, 6]\nregime = ["rf", "nt"]\n{_EXACT}',
    "linear": f'problem = "linear"\nd = 6\nregime = "rf"\nridge = 0.1\n{_DRAWN}',
    "labels": f'problem = "labels"\nd = 6\nregime = "rf"\n{_DRAWN}',
    "parity": f'problem = "parity"\nd = 6\nregime = ["nt", "quadratic", "randomized", "nn", "mf"]\n{_DRAWN}',
    "step": f'problem = "multi-index"\nd = 6\nregime = "gs"\ngiant_samples = 9\nridge = 0.1\n{_DRAWN}',
    "spoilt": 'problem = "quadratic"\nname = 99999999999999999999\nregime = "rf"\nfidelity = "exact"\nwidth = 3\n',
    "other": 'problem = ["quadratic"\n',
}
"""Plans of sweeps: one of each problem, and two that are refused."""


@dataclass
class Line:
    """A command line in the making: its path in the tree, its words, and the files that it promises to write."""

    path: tuple[str, ...]
    options: dict[str, str | None] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    spoilt: bool = False

    @property
    def words(self) -> list[str]:
        """The words as a shell would pass them: `--name=value`, which also holds values that begin with a dash."""
        options = [name if value is None else f"{name}={value}" for name, value in self.options.items()]
        return [*self.path, *self.arguments, *options]


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield path and command of every leaf of the tree."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            inner = group.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*path, name))
    else:
        yield path, group


@cache
def _leaves(tree: click.Command) -> dict[tuple[str, ...], click.Command]:
    return dict(commands(tree))


def pick(rng: Rng, *values: Any) -> Any:
    """Return one of the values."""
    return values[int(rng.integers(len(values)))]


def some(rng: Rng, *values: str) -> str:
    """Return some of the values in any order, with commas."""
    chosen = rng.permutation(np.array(values))[: int(rng.integers(1, len(values) + 1))]
    return ",".join(chosen.tolist())


def _whole(low: int, high: int) -> Callable[[Rng], str]:
    return lambda rng: str(int(rng.integers(low, high + 1)))


def _real(low: float, high: float) -> Callable[[Rng], str]:
    return lambda rng: f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}"


def _grid(low: float, high: float, *more: str, whole: bool = False) -> Callable[[Rng], str]:
    """Return a maker of grids between two bounds, at most four numbers; `more` may stand there too."""

    def one(rng: Rng) -> str:
        value = np.exp(rng.uniform(np.log(low), np.log(high)))
        return str(max(1, round(value))) if whole else f"{value:.3g}"

    def make(rng: Rng) -> str:
        kind = pick(rng, "one", "list", "range", "log", "more")
        first, last = sorted((one(rng), one(rng)), key=float)
        if kind == "list":
            return ",".join(dict.fromkeys((first, last)))
        if kind in ("range", "log") and float(first) < float(last):
            return f"{first}:{last}:{int(rng.integers(2, 5))}{'log' if kind == 'log' else ''}"
        return pick(rng, *more) if kind == "more" and more else first

    return make


# What an option means, wherever it occurs; what is special to one command stands below.
MEANINGS: dict[str, Callable[[Rng], str | None]] = {
    "--d": _whole(5, 12),
    "--target-seed": _whole(0, 99),
    "--B": lambda rng: pick(rng, "B.csv", "B.npy", "one.csv"),
    "--delta": lambda rng: pick(rng, "delta.csv", "delta.npy"),
    "--sigma": lambda rng: pick(rng, "sigma.csv"),
    "--weights": lambda rng: pick(rng, "isotropic", "optimal"),
    "--activation": lambda rng: pick(rng, *ACTIVATIONS),
    "--regime": lambda rng: some(rng, "rf", "nt", "nn"),
    "--alpha": _real(0.1, 30.0),
    "--init": _real(0.3, 3.0),
    "--rho": _grid(0.2, 4.0, "inf", "0.5,inf"),
    "--psi1": _grid(0.2, 5.0, "inf", "0.5,inf"),
    "--psi2": _grid(0.5, 4.0),
    "--ridge": _grid(1e-4, 2.0, "0", "0.1,1"),
    "--width": _grid(1, 9, whole=True),
    "--particles": _grid(1, 9, whole=True),
    "--widths": _grid(2, 9, whole=True),
    "--times": lambda rng: pick(rng, "0", "1", "0,1", "0.1:10:4log", "1:3:3", "0.5,2,8"),
    "--samples": _whole(20, 90),
    "--steps": _whole(1, 30),
    "--bound": _real(0.5, 5.0),
    "--batch": _whole(1, 20),
    "--step-size": _real(1e-4, 1e-2),
    "--step-sizes": lambda rng: pick(rng, "0.001", "0.001,0.01", "0.0001:0.001:2log"),
    "--indices": _whole(1, 4),
    "--giant-step": _real(0.1, 5.0),
    "--giant-samples": lambda rng: pick(rng, "inf", "30", "400"),
    "--second-layer": lambda rng: pick(rng, "trained", "fixed"),
    "--draws": _whole(1, 3),
    "--seed": _whole(0, 10**6),
    "--signal": _real(0.2, 6.0),
    "--noise": _real(0.01, 2.0),
    "--nonlinear": _real(0.01, 2.0),
    "--inputs": lambda rng: pick(rng, "sphere", "gaussian", "hypercube"),
    "--link": lambda rng: pick(rng, "logistic", "sign", "probit"),
    "--method": lambda rng: "margin",
    "--k": _whole(1, 4),
    "--flip": _real(0.01, 0.4),
    "--degree": _whole(1, 4),
    "--energies": lambda rng: pick(rng, "0,1", "0,0.5,0.5", "0.1,0.2,0.3,0.4", "0,0,1", "1"),
    "--capacity": _real(1.1, 3.0),
    "--source": _real(0.1, 2.0),
    "--terms": _whole(1, 3000),
    "--n": _whole(5, 30),
    "--target": lambda rng: pick(rng, "y", "label"),
    "--drop": lambda rng: "x1",
    "--folds": _whole(2, 3),
    "--rows": _whole(40, 60),
    "--budget": lambda rng: pick(rng, "20s", "1m"),
    "--plan": lambda rng: "plan",
    "--folder": lambda rng: pick(rng, "missing", "."),
    "--preset": lambda rng: pick(rng, "quick", "paper", "full"),
    "--workers": lambda rng: "1",
    "--host": lambda rng: pick(rng, "999.0.0.1", "nowhere.invalid"),
    "--port": lambda rng: pick(rng, "-1", "65536", "99999999"),
    "--address": lambda rng: pick(rng, "nowhere.invalid:8786", "x"),
    "--store": lambda rng: "store.sqlite",
    "--out": lambda rng: pick(rng, "out.csv", "out.json", "out.nc"),
    "--plot": lambda rng: pick(rng, "plot.png", "plot.svg", None),
    "--report": lambda rng: "report.html",
    "--export": lambda rng: pick(rng, "missing/page.html", "page.txt", "mine.html"),
    "key": lambda rng: pick(rng, "limit/QuadraticTarget/Trained", "exact/GaussianMixture/RandomFeatures", "x"),
    "keys": lambda rng: pick(rng, "limit/", "report/landscape", "bai2020beyond", "x"),
    "data": lambda rng: pick(rng, "table.csv", "table.csv", "mine.csv"),
    "problem": lambda rng: pick(rng, "quadratic", "mixture", "linear", "labels", "parity", "monomial"),
    "plan": lambda rng: f"{pick(rng, *PLANS)}.toml",
    "store": lambda rng: pick(rng, "missing.sqlite", "mine.csv", "store.sqlite"),
    "name": lambda rng: pick(rng, "fig9", "coupling", "fig1"),
    "names": lambda rng: pick(rng, "nothing"),
}
# Options without which a command would be long: always given, and small.
SMALL = {
    "exact": ("--d", "--width"),
    "simulate": ("--d", "--width", "--samples", "--step-sizes", "--batch"),
    "compare": ("--d", "--width", "--samples", "--step-sizes", "--batch", "--draws"),
    "flow": ("--d", "--width", "--times"),
    "report": ("--d", "--n", "--samples", "--steps", "--particles", "--draws"),
    "lens": ("--widths", "--folds", "--rows", "--budget"),
    "forecast": ("--rows",),
    "limit": ("--d", "--rho"),
}


def unknown(tree: click.Command) -> list[str]:
    """Return the parameters that this attack does not know, flags and choices aside: it would leave them out."""
    names = {
        f"{' '.join(path)} {parameter.opts[0]}"
        for path, command in commands(tree)
        for parameter in command.params
        if parameter.opts[0] not in MEANINGS
        and not getattr(parameter, "is_flag", False)
        and not isinstance(parameter.type, click.Choice)
    }
    return sorted(names)


def made(rng: Rng, parameter: click.Parameter) -> str | None:
    """Return a value that the parameter would take; None for a flag."""
    name = parameter.opts[0]
    if getattr(parameter, "is_flag", False):
        return None
    if isinstance(parameter.type, click.Choice):
        return str(pick(rng, *parameter.type.choices))
    return MEANINGS[name](rng)


def line(rng: Rng, tree: click.Command) -> Line:
    """Return a random command line: most as a user would write it, the others with one or two things spoilt."""
    leaves = _leaves(tree)
    weights = np.array([WEIGHTS.get(path[0], 1.0) for path in leaves])
    path = list(leaves)[int(rng.choice(len(leaves), p=weights / weights.sum()))]
    known = {parameter.opts[0]: parameter for parameter in leaves[path].params}
    written = Line(path)
    for name, parameter in known.items():
        if isinstance(parameter, click.Argument):
            if parameter.required or rng.random() < 0.5:
                written.arguments.append(str(made(rng, parameter)))
        elif parameter.required or name in SMALL.get(path[0], ()) or rng.random() < RARE.get(name, 0.25):
            written.options[name] = made(rng, parameter)
    _fit(rng, written, known)
    if rng.random() < 0.36:
        _spoil(rng, written, known)
    return written


WEIGHTS = {
    "explore": 0.5, "figure": 0.7, "lens": 0.05, "forecast": 0.5, "bench": 0.03, "sweep": 0.5, "limit": 4.0,
    "simulate": 0.7,
    "compare": 0.6,
}  # fmt: skip
RARE = {
    "--alpha": 0.08, "--init": 0.08, "--weights": 0.15, "--plot": 0.12, "--out": 0.35, "--force": 0.15, "--steps": 0.0,
    "--bound": 0.0, "--isotropic": 0.1, "--surrogate": 0.1, "--step-size": 0.2, "--list": 0.7, "--backend": 0.0,
    "--address": 0.0, "--host": 0.3, "--B": 0.2, "--delta": 0.15, "--store": 0.0, "--export": 0.5, "--task": 0.0,
    "--folder": 0.1,
}  # fmt: skip


def _fit(rng: Rng, written: Line, known: dict[str, click.Parameter]) -> None:
    """Make the options go with one another, as their help says; what is left to chance is refused by the command."""
    options, path = written.options, written.path
    files = {"--B", "--delta"} & {*options}
    if files:
        for name in ("--d", "--target-seed", "--sigma"):
            options.pop(name, None)
    if "--sigma" in options:
        options["--d"] = "5"  # as the file has
    if path[0] in ("simulate", "compare") and path[1] in ("linear", "labels"):
        options.pop("--regime", None)
        if options.get("--ridge") == "optimal" or "--isotropic" in options:
            options.pop("--surrogate", None)
    if path == ("limit", "linear"):
        nt = not {"--surrogate", "--nonlinear", "--inputs", "--isotropic"} & {*options} and rng.random() < 0.2
        options["--regime"] = "nt" if nt else "rf"
        if nt and "--activation" in options:
            options["--activation"] = pick(rng, "relu", "tanh", "erf")
    if "--inputs" in options:
        options["--inputs"] = pick(rng, "sphere", "gaussian" if path[1] == "linear" else "hypercube")
    if path[1:] == ("multi-index",):
        if "--link" in options:
            options["--link"] = pick(rng, "he1", "he2", "he3", "erf", "relu", "abs", "cube")
        if "--indices" in options:
            options["--link"] = pick(rng, "product", "staircase", "committee-erf", "committee-relu", "committee-square")
        if "--regime" in options:
            options["--regime"] = some(rng, "rf", "nn") if path[0] == "limit" else some(rng, "rf", "nt")
        if "nn" in options.get("--regime", "") and path[0] == "limit":
            name = pick(rng, "erf", "erf2", "square")
            options |= {"--activation": name, "--link": f"committee-{name}", "--width": pick(rng, "1", "2,3")}
        if rng.random() < 0.8:  # else whatever is written, most of which nothing takes
            _for_one_theorem(options, path[0] == "limit")
    if path in (("simulate", "parity"), ("simulate", "monomial")):
        options["--width"] = pick(rng, "2", "4,8", "6")
        options["--regime"] = some(rng, "nt", "quadratic", "randomized", "nn")
        options["--activation"] = pick(rng, "relu3", "relu4", "square", "cube")
    if path[0] == "simulate" and path[1] != "harmonic" and rng.random() < 0.25:
        options["--regime"] = "mf"
        options["--steps"] = made(rng, known["--steps"])
        for name in ("--alpha", "--init", "--weights", "--isotropic", "--surrogate"):
            options.pop(name, None)
    if path[1:] in (("harmonic",), ("spectral",)):
        nt = path[1] == "harmonic" and rng.random() < 0.3
        if "--regime" in known:  # a spectrum alone has one regime
            options["--regime"] = "nt" if nt else "rf"
        if nt and path[0] in ("limit", "compare"):
            least = 2 * int(options.get("--d") or 30)  # the formula's own bound
            wide = ("inf", f"{least},inf") if path[0] == "limit" else ()
            options["--width"] = pick(rng, f"{least}", f"{least},{3 * least}", *wide)
        options.pop("--weights", None)
    if path[0] in ("limit", "exact", "compare") and path[1:] in (("quadratic",), ("mixture",)) and rng.random() < 0.1:
        options["--regime"] = some(rng, "rf", "nt", "joint")
    regimes = (options.get("--regime") or "rf,nt,nn").split(",")
    if path[0] == "limit" and "--activation" in options and path[1] in ("quadratic", "mixture"):
        options["--regime"] = "rf"
        regimes = ["rf"]
    if "rf" not in regimes:
        options.pop("--weights", None)
    for name in ("--alpha", "--init"):
        if name in options and path[0] != "report":
            options["--regime"], options["--activation"] = "nn", "square"
            options.pop("--weights", None)
            if "--activation" not in known:
                options.pop("--activation")
    if path[0] == "flow" and "--step-size" not in options:
        options.pop("--batch", None)
    if path[0] == "flow" and ("nn" not in options.get("--regime", "nn") or "--alpha" in options):
        options.pop("--second-layer", None)
    if path[0] == "flow" and "--step-size" in options:
        options["--regime"] = some(rng, "nt", "nn")
        for name in ("--alpha", "--init"):
            options.pop(name, None)
    if path[0] == "exact" and "nn" in regimes and options.get("--activation", "square") != "square":
        options["--width"] = pick(rng, "1", "2", "1,3")  # a descent
    if path[0] == "report" and path[1] == "interpolation":
        options["--regime"] = some(rng, "rf", "nt", "nn")
        options.setdefault("--activation", "tanh")
    if path[0] == "report" and path[1] == "lazy-to-rich":
        options["--alpha"] = pick(rng, "1", "0.5,2", "1,100")
        if "--d" in options:
            options["--d"] = pick(rng, "1", "2", "4")
    if path[0] in ("lens", "forecast"):
        written.arguments = ["table.csv"]
        options["--target"] = "y"
        options.pop("--example", None)
    if path[0] == "forecast":
        if "--samples" in options:
            options["--samples"] = pick(rng, "5:40:4", "10,30", "20", "30,90")
        if "--ridge" in options:
            options["--ridge"] = pick(rng, "best", "0", "0.1,1", "0.001:1:3log")
        if options.get("--regime") == "nt":
            options.pop("--width", None)
            options["--activation"] = pick(rng, "relu", "tanh", "erf")
    if path[0] != "lens" and not {"--out", "--plot", "--export"} & {*options}:
        options.pop("--force", None)  # there is no file to replace
    if path == ("explore",):
        options["--no-browser"] = None
        for name in ("--port", "--host") if "--export" in options else ("--force",):
            options.pop(name, None)
        if "--export" not in options:
            options["--port"] = made(rng, known["--port"])  # no port that could be listened on
    if path == ("figure",) and "--list" in options:
        options.clear()
        options["--list"] = None
    elif path == ("figure",):
        written.arguments = [pick(rng, "fig9", "coupling")]
        options["--width"] = "3"  # coupling has none: never the minutes of a figure
    if path == ("bench",):
        options["--list"] = None
        written.arguments.clear()
    if path[0] == "sweep" and path[1] != "run":
        written.arguments = [pick(rng, "store.sqlite", "store.sqlite", "missing.sqlite", "mine.csv")]


def _for_one_theorem(options: dict[str, str | None], limit: bool) -> None:
    """Leave out the sizes of `multi-index` that belong to other theorems than the one of its regime and method."""
    if not limit:
        return
    regimes = {*(options.get("--regime") or "rf").split(",")}
    takes = {"--width", "--times", "--step-size"} if "nn" in regimes else set()
    takes |= {"--rho"} if regimes - {"nn"} else set()
    if "--method" in options:
        takes = {"--width", "--samples", "--ridge"}
    for name in {"--rho", "--width", "--samples", "--ridge", "--times", "--step-size"} - takes:
        options.pop(name, None)


def _spoil(rng: Rng, written: Line, known: dict[str, click.Parameter]) -> None:
    """Put something wrong into one option, or add a word that does not belong there."""
    written.spoilt = True
    kind = pick(rng, "value", "value", "value", "value", "path", "unknown", "extra", "bare")
    names = [name for name, value in written.options.items() if value is not None]
    paths = [name for name, one in known.items() if isinstance(one.type, click.Path) and name.startswith("--")]
    if kind == "path" and paths:
        name = str(pick(rng, *paths))
        if written.path != ("figure",) and written.path != ("sweep", "run"):
            written.options[name] = str(pick(rng, *BAD_PATHS))
        return
    if kind == "unknown":
        written.options[f"--{pick(rng, 'widht', 'zzz', 'D', 'regimes')}"] = "1"
    elif kind == "extra":
        written.arguments.append("more")
    elif kind == "bare" and names and written.path != ("figure",):  # the next word would be the folder
        written.options[str(pick(rng, *names))] = None
    elif names:
        written.options[str(pick(rng, *names))] = str(pick(rng, *BAD))
