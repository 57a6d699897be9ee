"""Arrays come in without running code or filling the memory; results go out whole or not at all."""

import csv
import json
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import lazyscope as ls
from lazyscope import files
from lazyscope.errors import InvalidParameter, LazyscopeError, TooLarge, UnreadableFile


class Bomb:
    """A pickle that creates a file when it is opened."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("array", [np.arange(3.0), np.eye(3), np.arange(4, dtype=np.int8), np.eye(2, dtype=np.float32)])
def test_npy_round_trip(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    read = files.read_array(tmp_path / "a.npy")
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "1;2\n3;4\n",
        "1 2\n3 4\n",
        " 1\t2\n3  4",
        "a,b\n1,2\n3,4\n",
        "\ufeff1,2\r\n3,4\r\n",
        "# made by hand\nx;y\n1.0;2e0\n\n3;4\n",
    ],
)
def test_csv_dialects(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    np.testing.assert_array_equal(files.read_array(tmp_path / "a.csv"), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.TXT"])
def test_text_by_other_names(tmp_path, name):
    (tmp_path / name).write_text("1\t2\n3\t4\n")
    np.testing.assert_array_equal(files.read_array(tmp_path / name), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("text", ["1,2,3\n", "1\n2\n3\n", "eigenvalues\n1\n2\n3\n", "1 2 3"])
def test_a_row_or_a_column_is_a_vector(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    np.testing.assert_array_equal(files.read_array(tmp_path / "a.csv"), [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.csv", b"", "at least one number"),
        ("a.csv", b"only,a,header\n", "at least one number"),
        ("a.csv", b"1,2\n3\n", "as many numbers on every row"),
        ("a.csv", b"1,2\n3,x\n", "line 2"),
        ("a.csv", b"a,b\nc,d\n", "line 2"),
        ("a.csv", b"1,2\n3,\n", "line 2"),
        ("a.csv", b"1;2\n1,5;2\n", "point for decimals"),
        ("a.csv", b"\x93NUMPY\x00\xff\xfe", "UTF-8"),
        ("a.npy", b"", "array of real numbers"),
        ("a.npy", b"1,2\n3,4\n", "array of real numbers"),
        ("a.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'}", "array of real numbers"),
        ("a.npy", b"PK\x03\x04 a zip file", "array of real numbers"),
        ("a.csv", b",0,1\n0,3,4\n1,4,5\n", "numbers of its rows"),
        ("a.csv", b"0,1\n3,4\n4,5\n", "numbers of its columns"),
        ("a.csv", b",a,b\na,3,4\nb,4,5\n", "no names of rows"),
        ("a.doc", b"1,2\n", ".tsv or .txt"),
        ("a", b"1,2\n", ".tsv or .txt"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_in_one_line(tmp_path, name, content, word):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableFile, match=word) as caught:
        files.read_array(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("array", [np.array(["a", "b"]), np.array([1j]), np.zeros(2, dtype="f8,i4"), np.zeros((0, 3))])
def test_arrays_of_something_else_are_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UnreadableFile):
        files.read_array(tmp_path / "a.npy")


def test_missing_files_and_folders_are_refused(tmp_path):
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(UnreadableFile, match="a folder"):
        files.read_array(tmp_path / "folder.npy")
    with pytest.raises(UnreadableFile, match="no such file"):
        files.read_array(tmp_path / "missing.csv")


def test_permission_problems_are_unreadable(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("1")

    def denied(self, encoding):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)  # the tests may run as root, whom nothing is denied
    with pytest.raises(UnreadableFile, match="Permission denied"):
        files.read_array(tmp_path / "a.csv")


@pytest.mark.parametrize("raw", [True, False])
def test_pickles_are_refused_and_not_executed(tmp_path, raw):
    mark = tmp_path / "executed"
    if raw:
        (tmp_path / "a.npy").write_bytes(pickle.dumps(Bomb(mark)))
    else:
        np.save(tmp_path / "a.npy", np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableFile):
        files.read_array(tmp_path / "a.npy")
    assert not mark.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True) if not raw else pickle.loads((tmp_path / "a.npy").read_bytes())
    assert mark.exists(), "the pickle would have created it"


def test_size_is_known_before_reading(tmp_path):
    """Eight exabytes in the header: refused whether the file is short (spoilt) or as long as it says (sparse)."""
    path = tmp_path / "a.npy"
    with path.open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**18,)}
        np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(UnreadableFile):
        files.read_array(path)
    with path.open("r+b") as stream:
        stream.seek(0)
        np.lib.format.write_array_header_1_0(stream, header | {"shape": (2**39,)})
        stream.truncate(stream.tell() + 8 * 2**39)
    with pytest.raises(TooLarge, match="needs about"):
        files.read_array(path)


def test_replacing_keeps_the_old_file_if_the_new_one_fails(tmp_path):
    old = tmp_path / "a.csv"
    old.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replacing(old) as part:
        part.write_text("half")
        raise ZeroDivisionError
    with pytest.raises(LazyscopeError, match="could not be written"), files.replacing(old) as part:
        raise OSError(28, "No space left on device")
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_replacing_writes_through_a_link(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    with files.replacing(link) as part:
        part.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("name", ["risk.txt", "risk", "missing/risk.csv", "folder.csv"])
def test_places_that_cannot_be_written_are_refused(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidParameter, match="--out"):
        files.check_output(tmp_path / name, files.RESULT_SUFFIXES, "lazyscope limit", "--out")


@pytest.fixture(scope="module")
def results():
    mixture = ls.GaussianMixture.three_level(20)
    regimes = (ls.RandomFeatures(), ls.Trained())
    limits = [*(ls.limit(mixture, regime, rho=[0.1, 2.0, np.inf]) for regime in regimes), ls.bayes(mixture)]
    exacts = [ls.exact(mixture, regime, width=[2, 40], draws=2) for regime in regimes]
    return {"limit": limits, "exact": [*exacts, ls.bayes(mixture, fidelity="exact")]}


@pytest.mark.parametrize("fidelity", ["limit", "exact"])
def test_netcdf_holds_every_number_and_every_attribute(tmp_path, results, fidelity):
    path = tmp_path / "a.nc"
    files.write_results(path, results[fidelity], 20, "mixture", "lazyscope limit mixture")
    with xr.open_dataset(path, engine="h5netcdf") as whole:
        assert whole.attrs["command"] == "lazyscope limit mixture"
        for result in results[fidelity]:
            one = whole.sel(regime=result.attrs["label"])
            for name, values in result.data_vars.items():
                np.testing.assert_array_equal(*np.broadcast_arrays(one[name].values, values.values))
            for name, text in result.attrs.items():
                where = "description" if name == "regime" else name
                assert text == (whole.attrs[where] if where in whole.attrs else one[where].item())


@pytest.mark.parametrize("fidelity", ["limit", "exact"])
def test_csv_and_json_hold_the_same_numbers(tmp_path, results, fidelity):
    for suffix in (".csv", ".json"):
        files.write_results(tmp_path / f"a{suffix}", results[fidelity], 20, "mixture", "the command")
    text = (tmp_path / "a.csv").read_text().splitlines()
    comments = [line for line in text if line.startswith("# ")]
    rows = list(csv.DictReader(text[len(comments) :]))
    assert "# the command" in comments
    assert any("Theorem" in line or "Hermite" in line for line in comments)
    for record, result in zip(json.loads((tmp_path / "a.json").read_text())["results"], results[fidelity], strict=True):
        mine = [row for row in rows if row["regime"] == record["regime"]]
        risks = [float(row["risk"]) for row in mine]
        assert risks == np.atleast_1d(record["data"]["risk"]).tolist() == np.atleast_1d(result.risk).tolist()


def test_widths_of_a_limit_are_whole(results):
    rows = files.tidy(results["limit"], 20)
    assert [row["width"] for row in rows] == [2, 40, np.inf] * 2 + [None]


def test_what_a_killed_process_left_is_swept_up_by_the_next_that_writes_there(tmp_path):
    """A kill inside the block leaves the temporary file, and SQLite's journal of it; those of the living stay."""
    target = tmp_path / "a.sqlite"
    with files.replacing(target) as part:
        part.write_text("mine")
        names = [part.name, part.name + "-journal"]
    gone = subprocess.Popen(["true"])
    gone.wait()
    for owner in (gone.pid, os.getppid()):
        for name in names:
            (tmp_path / name.replace(f".{os.getpid()}.", f".{owner}.")).write_text("half")
    with files.replacing(target) as part:
        part.write_text("mine again")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"a.sqlite", *(name.replace(f".{os.getpid()}.", f".{os.getppid()}.") for name in names)}
