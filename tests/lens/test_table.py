"""Tables: what is read, what is guessed, what is refused in one line."""

import numpy as np
import pandas as pd
import pytest

from lazyscope.errors import InvalidParameter, LazyscopeError, UnreadableFile
from lazyscope.lens.preparing import folds, whole
from lazyscope.lens.table import EXAMPLES, describe, example, from_arrays, read


def frame(n=40):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.standard_normal(n),
            "kind": rng.choice(["a", "b", "c"], n),
            "new": rng.integers(0, 2, n).astype(bool),
            "price": rng.standard_normal(n),
        }
    )


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
def test_every_format_gives_the_same_table(tmp_path, suffix):
    path, table = tmp_path / f"t{suffix}", frame()
    if suffix == ".csv":
        table.to_csv(path, index=False, sep=";")
    elif suffix == ".tsv":
        table.to_csv(path, index=False, sep="\t")
    elif suffix == ".parquet":
        table.to_parquet(path)
    else:
        np.savez(path, **{name: table[name].to_numpy().astype(str if name == "kind" else None) for name in table})
    found = describe(read(path), "price")
    assert found.X.shape == (40, 3) and found.task == "regression"
    np.testing.assert_allclose(found.y, table["price"])
    assert whole(found).shape == (40, 5)  # two numbers and three categories


def test_a_matrix_in_an_archive_becomes_columns(tmp_path):
    np.savez(tmp_path / "m.npz", X=np.arange(12.0).reshape(6, 2), y=np.arange(6) % 2)
    assert list(read(tmp_path / "m.npz").columns) == ["X_0", "X_1", "y"]


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (np.linspace(0, 1, 40), "regression"),
        (np.arange(40), "regression"),
        (np.arange(40) % 10, "classification"),
        (np.arange(40) % 2 * 1.0, "classification"),
        (np.array(["yes", "no"] * 20), "classification"),
        (np.arange(40) % 2 == 0, "classification"),
    ],
)
def test_the_task_is_guessed(values, task):
    assert from_arrays(np.random.default_rng(0).standard_normal((40, 2)), values).task == task


def test_missing_values_and_constants_are_handled_and_said():
    table = frame()
    table.loc[3, "size"] = np.nan
    table.loc[5, "kind"] = None
    table.loc[7, "price"] = np.nan
    table["same"] = 1.0
    found = describe(table, "price")
    assert len(found.y) == 39 and "same" not in found.X
    said = " ".join(found.notes)
    assert (
        "1 rows without a target" in said
        and "constant columns were left out: same" in said
        and "2 missing values" in said
    )
    X = whole(found)
    assert np.all(np.isfinite(X)) and X.shape == (39, 6)  # a flag for the missing size
    parts = folds(found, 3, 0)
    assert sum(len(part.y_test) for part in parts) == 39
    assert all(abs(part.X.mean()) < 1e-12 for part in parts)  # prepared by the training rows of the fold


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_there(name):
    assert len(example(name).y) > 400


@pytest.mark.parametrize(
    ("change", "target", "said"),
    [
        (lambda t: t.assign(price=1.0), "price", "must vary"),
        (lambda t: t.assign(price="same"), "price", "at least two classes"),
        (lambda t: t.assign(note=[f"free text {i}" for i in range(len(t))]), "price", "--drop note"),
        (lambda t: t.assign(day=pd.date_range("2020-01-01", periods=len(t))), "price", "dates in column 'day'"),
        (lambda t: t.assign(size=np.inf), "price", "infinity in column 'size'"),
        (lambda t: t, "cost", "name a column: size, kind, new, price"),
        (lambda t: t[["price"]].assign(one=1), "price", "a column that varies"),
        (lambda t: t.assign(price=[f"c{i}" for i in range(len(t))]), "price", "different texts"),
    ],
)
def test_bad_tables_are_refused_in_one_line(change, target, said):
    with pytest.raises(InvalidParameter, match=said) as caught:
        describe(change(frame(60)), target)
    assert "\n" not in str(caught.value)


def test_text_is_no_target_of_a_regression():
    with pytest.raises(InvalidParameter, match="hold numbers for a regression"):
        describe(frame(), "kind", task="regression")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"x", "must end in .csv"),
        ("a.csv", b"\xff\xfe\x00bin", "UTF-8"),
        ("a.csv", b"just words\nand more\n", "at least two columns"),
        ("a.csv", b"", "hold a table"),
        ("a.csv", b"a,b\n1,2\n1,2,3,4\n", "hold a table"),
        ("a.parquet", b"PAR1 nothing", "hold a table"),
        ("a.npz", b"PK nothing", "archive of arrays"),
    ],
)
def test_files_that_are_no_tables_are_refused_in_one_line(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=said) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_and_pickles_are_refused(tmp_path):
    with pytest.raises(UnreadableFile, match="no such file"):
        read(tmp_path / "none.csv")
    np.savez(tmp_path / "p.npz", x=np.array([{}, {}], dtype=object))
    with pytest.raises(LazyscopeError, match="allow_pickle"):
        read(tmp_path / "p.npz")


def test_fewer_rows_than_folds():
    X = np.random.default_rng(0).standard_normal((6, 2))
    with pytest.raises(InvalidParameter, match="at least two rows for each of the 5 folds"):
        folds(from_arrays(X, X[:, 0]), 5, 0)
    with pytest.raises(InvalidParameter, match="as many rows in every class as there are folds"):
        folds(from_arrays(X, ["a", "a", "a", "a", "a", "b"]), 3, 0)
