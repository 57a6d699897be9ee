"""Files: arrays that users bring, and results that they take away.

Nothing is ever unpickled, and nothing is half written: a result goes to a temporary file beside its target, which
then replaces the target in one step.
"""

from __future__ import annotations

import csv
import json
import os
import socket
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory, jsonable
from lazyscope.errors import InvalidParameter, LazyscopeError, UnreadableFile

if TYPE_CHECKING:
    import xarray as xr

RESULT_SUFFIXES = (".csv", ".json", ".nc")
PICTURE_SUFFIXES = (".png", ".pdf", ".svg")

# What a parsed line of text costs at its peak: a Python float is 24 bytes, its place in a list 8, the text itself.
_BYTES_PER_CHARACTER = 20.0
_LONGEST_SHOWN = 200  # characters of a path in an error message


def read_array(path: str | os.PathLike[str]) -> FloatArray:
    r"""Read a vector or a matrix of numbers from `.npy`, or from text: `.csv`, `.tsv`, `.txt`.

    Text is separated by commas, semicolons or blanks, with an optional header line and `#` comments; a single row
    or a single column is a vector.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "B.csv")
    ...     _ = path.write_text("a;b\n2;0\n0;1\n")
    ...     print(read_array(path))
    [[2. 0.]
     [0. 1.]]
    """
    file = Path(path)
    readers = {".npy": _read_npy, ".csv": _read_csv, ".tsv": _read_csv, ".txt": _read_csv}
    if file.suffix.lower() not in readers:
        raise unreadable(
            file, "end in .npy, .csv, .tsv or .txt", file.name or "a folder", "Save the array with numpy.save."
        )
    try:
        if not file.is_file():
            got = "a folder" if file.is_dir() else "something that is no file" if file.exists() else "no such file"
            raise unreadable(file, "be a file", got, "Check the path.")
        array = readers[file.suffix.lower()](file)
    except OSError as error:
        raise unreadable(file, "be readable", error.strerror or error, "Check its permissions.") from None
    if array.size == 0:
        raise unreadable(file, "hold at least one number", f"an array of shape {array.shape}")
    return array


def unreadable(file: Path, must: str, got: object, advice: str = "") -> UnreadableFile:
    """Return the error for a file that must be or hold something else."""
    return UnreadableFile(" ".join(f"The file {file} must {must}. Got {got} instead. {advice}".split()))


def _read_npy(file: Path) -> FloatArray:
    """Map the file, which reads its header only and refuses pickled objects; copy once it is known to fit."""
    must, advice = "hold an array of real numbers", "Save it with numpy.save, without pickled objects."
    try:
        mapped = np.lib.format.open_memmap(file, mode="r")
    except (ValueError, TypeError, OverflowError, EOFError) as error:  # all that a spoilt header has been seen to raise
        raise unreadable(file, must, _one_line(error), advice) from None
    if mapped.dtype.kind not in "biuf":
        raise unreadable(file, must, f"values of type {mapped.dtype}", advice)
    fits_in_memory(8.0 * mapped.size, f"The array in {file}", "Use a smaller array.")
    return np.array(mapped, dtype=np.float64)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:120]


def _read_csv(file: Path) -> FloatArray:
    fits_in_memory(_BYTES_PER_CHARACTER * file.stat().st_size, f"The table in {file}", "Save it as .npy.")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise unreadable(file, "be text in UTF-8", "other bytes", "Save binary arrays as .npy.") from None
    separator = ";" if ";" in text else "," if "," in text else None
    rows: list[list[float]] = []
    heading = True
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            rows.append([float(cell) for cell in line.split(separator)])
        except ValueError as error:
            if not heading:
                advice = "Use a point for decimals, commas, semicolons or blanks between numbers, and no names of rows."
                raise unreadable(file, "hold numbers", f"line {number}: {_one_line(error)}", advice) from None
        heading = False
        if len(rows) > 1 and len(rows[-1]) != len(rows[0]):
            got = f"{len(rows[0])} on the first row and {len(rows[-1])} on line {number}"
            raise unreadable(file, "have as many numbers on every row", got)
    table = np.array(rows, dtype=np.float64)
    if table.ndim == 2:
        _check_not_numbered(file, table)
    return table.ravel() if 1 in table.shape else table


def _check_not_numbered(file: Path, table: FloatArray) -> None:
    """Refuse a square matrix that came with the numbers of its rows or columns, as pandas writes them."""
    height, width = table.shape
    first = {"columns, in the first row,": (1, table[0]), "rows, in the first column,": (-1, table[:, 0])}
    for which, (more, numbers) in first.items():
        if height - width == more and numbers.size > 1 and np.array_equal(numbers, np.arange(numbers.size)):
            got, advice = f"the numbers of its {which}", "Write it with to_csv(path, header=False, index=False)."
            raise unreadable(file, "hold the matrix alone", got, advice)


def check_output(path: Path, suffixes: Sequence[str], owner: str, option: str) -> None:
    """Refuse, before anything is computed, a file that could not be written at the end.

    >>> check_output(Path("risk.txt"), RESULT_SUFFIXES, "lazyscope limit", "--out")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The --out parameter of lazyscope limit must end in .csv, .json or .nc. Got ...
    >>> check_output(Path("report.pdf"), [".html"], "lens", "report")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The report parameter of lens must end in .html. Got report.pdf instead.
    """
    if path.suffix.lower() not in suffixes:
        must = "end in " + " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise InvalidParameter.of(owner, option, must, _short(path))
    mode = _mode(path, owner, option)
    if mode is not None and not stat.S_ISREG(mode):
        got = f"the folder {path}" if stat.S_ISDIR(mode) else f"{path}, which is no file"
        raise InvalidParameter.of(owner, option, "be a file", got)
    for place in dict.fromkeys((path.parent, _target(path).parent)):  # of a link also the folder that it points to
        check_folder(place, owner, option)


def _mode(path: Path, owner: str, option: str) -> int | None:
    """Return what kind of thing a path leads to; None where there is nothing. Refuse what can be no path."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # a name that is too long, a link to itself, a folder that is closed
        got = f"{_short(path)} ({getattr(error, 'strerror', None) or error})"
        raise InvalidParameter.of(owner, option, "be a path that can be written", got, "Choose another.") from None


def _short(path: Path) -> str:
    """Return a path for an error message, without the middle of one that is very long."""
    text = str(path)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:60]}…{text[-20:]}"


def _target(path: Path) -> Path:
    """Return the file that a path stands for, links followed."""
    return Path(os.path.realpath(path))


def check_folder(folder: Path, owner: str, option: str) -> None:
    """Refuse a folder that does not exist or that may not be written to."""
    mode = _mode(folder, owner, option)
    if mode is None or not stat.S_ISDIR(mode):
        must = "lie in a folder that exists"
        raise InvalidParameter.of(owner, option, must, _short(folder), "Make the folder first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        must = "lie in a folder that you may write to"
        raise InvalidParameter.of(owner, option, must, _short(folder), "Choose another folder.")


@dataclass(frozen=True)
class Place:
    """A file that an option asks for, and how its name may end."""

    option: str
    path: Path | None
    suffixes: Sequence[str]


def check_places(owner: str, places: Iterable[Place], *, force: bool) -> None:
    """Refuse, before anything is computed, places that could not all be written, and files that would be replaced.

    A file that exists is replaced only by `force`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder, "a.csv")
    ...     _ = out.write_text("mine")
    ...     check_places("lazyscope limit", [Place("--out", out, RESULT_SUFFIXES)], force=True)
    ...     check_places("lazyscope limit", [Place("--out", out, RESULT_SUFFIXES)], force=False)
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The --out parameter of lazyscope limit must name a new file. Got ...
    """
    seen: dict[Path, str] = {}
    wanted = [(place.option, place.path, place.suffixes) for place in places if place.path is not None]
    for option, path, suffixes in wanted:
        check_output(path, suffixes, owner, option)
        target = _target(path)
        if target in seen:
            got = f"{_short(path)}, the file of {seen[target]},"
            raise InvalidParameter.of(owner, option, "name a file of its own", got)
        seen[target] = option
    for option, path, _ in wanted:
        if path.exists() and not force:
            got = f"{_short(path)}, which exists,"
            raise InvalidParameter.of(owner, option, "name a new file", got, "Pass --force to replace it.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same suffix, which replaces `path` if the block succeeds and else vanishes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as part:
    ...         _ = part.write_text("whole")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['a.txt']
    """
    target = _target(path)  # a link stays a link
    whose = os.fsencode(target.name) + socket.gethostname().encode()
    stem = f".{zlib.crc32(whose):08x}."  # as long as names may be, and no longer, whatever the target's is
    part = target.with_name(f"{stem}{os.getpid()}.part{target.suffix}")
    for old in target.parent.glob(f"{stem}*.part*") if Path("/proc/self").exists() else ():
        if not Path("/proc", old.name.removeprefix(stem).partition(".")[0]).exists():  # its process was killed
            old.unlink(missing_ok=True)
    try:
        yield part
        part.replace(target)
    except OSError as error:
        raise LazyscopeError(f"The file {path} could not be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)


def tidy(results: Iterable[xr.Dataset], d: int) -> list[dict[str, Any]]:
    """Return results as long rows: a regime and a size on each, with what has one value there.

    N = round(ρd) stands in `width` where a limit has no width of its own; a Bayes floor has neither.

    >>> import lazyscope as ls
    >>> target = ls.QuadraticTarget([1.0, 1.0])
    >>> tidy([ls.limit(target, ls.NeuralTangent(), rho=[0.5])], target.d)
    [{'regime': 'NT', 'rho': 0.5, 'width': 1, 'risk': 0.5}]
    """
    rows = []
    for result in results:
        columns = {
            str(name): np.atleast_1d(value.values).tolist()
            for name, value in result.variables.items()
            if set(value.dims) <= {"rho", "width"}
        }
        rho = columns.pop("rho", [None])
        width = columns.pop("width", [_neurons(ratio, d) for ratio in rho])
        for i, (ratio, neurons) in enumerate(zip(rho, width, strict=True)):
            size = {"regime": result.attrs["label"], "rho": ratio, "width": _whole(neurons)}
            rows.append(size | {name: values[i] for name, values in columns.items()})
    return rows


def points(data: xr.Dataset) -> list[dict[str, Any]]:
    """Return all numbers of any Dataset: variables over the same dimensions share their rows, one for each point.

    >>> import xarray as xr
    >>> points(xr.Dataset({"risk": ("psi1", [0.5, 0.25])}, {"psi1": [1.0, 2.0]}))
    [{'psi1': 1.0, 'risk': 0.5}, {'psi1': 2.0, 'risk': 0.25}]
    """
    table: list[dict[str, Any]] = []
    for dims in dict.fromkeys(variable.dims for variable in data.data_vars.values()):
        some = {str(name): variable for name, variable in data.data_vars.items() if variable.dims == dims}
        whole = next(iter(some.values()))
        along = {str(name): value for name, value in data.coords.items() if {*value.dims} <= {*dims}}
        columns = {name: value.broadcast_like(whole).transpose(*dims) for name, value in along.items()} | some
        flat = {name: column.values.ravel().tolist() for name, column in columns.items()}
        table += [{name: flat[name][i] for name in flat} for i in range(whole.size)]
    return table


def _neurons(rho: float | None, d: int) -> float | None:
    return None if rho is None else float(np.rint(rho * d))


def _whole(value: float | None) -> float | int | None:
    return int(value) if value is not None and np.isfinite(value) else value


def document(results: Iterable[xr.Dataset], problem: str, command: str) -> dict[str, Any]:
    """Return results as the object that `--json` prints."""
    return {"problem": problem, "command": command, "results": [_record(result) for result in results]}


def _record(result: xr.Dataset) -> dict[str, Any]:
    return {
        "regime": result.attrs["label"],
        "fidelity": result.attrs["fidelity"],
        "claim": result.attrs["claim"],
        "theorem": result.attrs["theorem"],
        "citations": result.attrs["citations"].split(","),
        "attrs": jsonable(result.attrs),
        "coords": {str(name): jsonable(value.values) for name, value in result.coords.items()},
        "data": {str(name): jsonable(value.values) for name, value in result.data_vars.items()},
    }


def combined(results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Return one Dataset along a `regime` dimension; attributes that differ become coordinates of the regime."""
    import xarray as xr

    template = next((result for result in results if result.sizes), results[0])
    flat = [_along(result, template) for result in results]
    whole = xr.concat(
        flat, dim="regime", join="exact", data_vars="all", coords="minimal", compat="override", combine_attrs="drop"
    )
    names = dict.fromkeys(name for result in results for name in result.attrs)
    for name in names:
        values = [str(result.attrs.get(name, "")) for result in results]
        if len(set(values)) == 1:
            whole.attrs[name] = values[0]
        else:
            whole = whole.assign_coords({"description" if name == "regime" else name: ("regime", values)})
    return whole.assign_coords(regime=[result.attrs["label"] for result in results])


def _grouped(results: Sequence[xr.Dataset], command: str) -> xr.DataTree:
    """Return one group for each regime: traces of training have dimensions that a fit does not have."""
    import xarray as xr

    groups = {result.attrs["label"]: result for result in results}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"command": command}), **groups})


def _along(result: xr.Dataset, template: xr.Dataset) -> xr.Dataset:
    """A floor without sizes is repeated along those of the others, so that they share one grid."""
    if result.sizes or not template.sizes:
        return result
    sizes = template.drop_dims("draw", errors="ignore").coords
    return result.broadcast_like(sizes.to_dataset()).assign_coords(sizes)


def write_points(path: Path, result: xr.Dataset, command: str) -> None:
    """Write one result over any dimensions in the format that the suffix of `path` names: .csv, .json or .nc."""
    suffix, problem = path.suffix.lower(), result.attrs["problem"]
    with replacing(path) as part:
        if suffix == ".csv":
            write_csv(part, points(result), [command, problem, _provenance(result)])
        elif suffix == ".json":
            part.write_text(json.dumps(document([result], problem, command), indent=1) + "\n", encoding="utf-8")
        else:
            result.assign_attrs(command=command).to_netcdf(part, engine="h5netcdf")


def write_results(path: Path, results: Sequence[xr.Dataset], d: int, problem: str, command: str) -> None:
    """Write results in the format that the suffix of `path` names: .csv, .json or .nc."""
    suffix = path.suffix.lower()
    with replacing(path) as part:
        if suffix == ".csv":
            comments = [command, problem, *(_provenance(result) for result in results)]
            write_csv(part, tidy(results, d), comments)
        elif suffix == ".json":
            part.write_text(json.dumps(document(results, problem, command), indent=1) + "\n", encoding="utf-8")
        elif any({"step_size", "step"} & {*result.dims} for result in results):
            _grouped(results, command).to_netcdf(part, engine="h5netcdf")
        else:
            combined(results).assign_attrs(command=command).to_netcdf(part, engine="h5netcdf")


def _provenance(result: xr.Dataset) -> str:
    at = result.attrs
    erratum = f"; erratum: {at['erratum']}" if "erratum" in at else ""
    return f"{at['label']}: {at['regime']}; {at['theorem']}; {at['claim']}; {at['citations']}{erratum}"


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], comments: Iterable[str]) -> None:
    """Write rows under `# ` lines that say where they come from; a column is empty where a row has no such value."""
    from lazyscope import __version__

    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(f"# {line}\n" for line in (f"lazyscope {__version__}", *comments))
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
