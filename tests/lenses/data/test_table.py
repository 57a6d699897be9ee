"""Tables: what is read, what is guessed, what is refused in one line."""

import numpy as np
import pandas as pd
import pytest

from lazyscope.errors import InvalidParameter, LazyscopeError, UnreadableFile
from lazyscope.lenses.data.preparing import folds, whole
from lazyscope.lenses.data.table import EXAMPLES, describe, example, from_arrays, read


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
        (
            lambda t: t.assign(note=[f"free text {i}" for i in range(len(t))], size=np.inf, pairs=[[1]] * len(t)),
            "price",
            "Got 3 columns that are neither: size, note, pairs instead. Leave them out: --drop size,note,pairs",
        ),
        (
            lambda t: t.assign(people=[f"{7003 * (i + 1):,}" for i in range(len(t))]),
            "price",
            "Got column 'people', whose commas may stand for thousands or for decimals, instead. Write its numbers",
        ),
        (lambda t: t[:1], "price", "have at least 4 rows. Got too few rows, 1, instead"),
        (lambda t: t.assign(size=np.inf), "price", "infinity in column 'size'"),
        (lambda t: t, "cost", "name a column: size, kind, new, price"),
        (lambda t: t[["price"]].assign(one=1), "price", "a column that varies"),
        (lambda t: t.assign(price=[f"c{i}" for i in range(len(t))]), "price", "different texts"),
        (lambda t: t.assign(price=np.nan), "price", "have values. Got 'price' without any"),
        (lambda t: t.assign(price=np.r_[np.inf, t["price"][1:]]), "price", "hold finite real numbers"),
        (lambda t: pd.concat([t, t["size"]], axis=1), "price", "name every column once. Got several columns 'size'"),
        (lambda t: t.assign(pairs=[[1, 2]] * len(t)), "price", "a list in column 'pairs'"),
    ],
)
def test_bad_tables_are_refused_in_one_line(change, target, said):
    with pytest.raises(InvalidParameter, match=said) as caught:
        describe(change(frame(60)), target)
    assert "\n" not in str(caught.value)


def test_targets_that_do_not_fit_the_task_are_refused():
    with pytest.raises(InvalidParameter, match="hold numbers for a regression"):
        describe(frame(), "kind", task="regression")
    with pytest.raises(InvalidParameter, match=r"at most 50 classes\. Got 'price' with 60 different numbers"):
        describe(frame(60), "price", task="classification")
    with pytest.raises(InvalidParameter, match="leave the target in"):
        describe(frame(), "price", drop=["price"])


def test_columns_may_be_empty_of_mixed_types_and_named_by_numbers():
    table = frame(60).assign(empty=np.nan, mixed=[1, "one", True] * 20).rename(columns={"size": 0})
    table.loc[2, "mixed"] = None
    found = describe(table, "price")
    assert "empty columns were left out: empty" in found.notes
    assert whole(found).shape == (60, 8)  # two numbers, three kinds, and "1", "one", "True"


def test_a_column_that_is_empty_in_one_fold_warns_nobody():
    table = frame(12)
    table["rare"], table["name"] = [1.0, 2.0] + [np.nan] * 10, ["a", "b"] + [None] * 10
    for part in folds(describe(table, "price"), 6, 0):  # a warning would be an error here
        assert np.all(np.isfinite(part.X)) and np.all(np.isfinite(part.X_test))


def test_rare_categories_of_many_are_taken_together():
    rng = np.random.default_rng(0)
    table = frame(2000).assign(place=[f"p{i}" for i in np.minimum(rng.geometric(0.02, 2000), 150)])
    assert table["place"].nunique() > 100
    assert whole(describe(table, "price")).shape[1] == 2 + 3 + 50


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"x", "must end in .csv"),
        ("a.csv", b"\xff\xfe\x00bin", "UTF-8"),
        ("a.csv", b"just words\nand more\n", "at least two columns"),
        ("a.csv", b"", "hold a table. Got an empty file instead"),
        ("a.csv", b"a,b\n", "Got no rows below a header of 2 columns instead"),
        ("a.csv", b"a,b\n1,2\n1,2,3,4\n", "have 2 entries in every line, as above. Got 4 entries in line 3 instead"),
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
    np.savez(tmp_path / "twice.npz", x=np.zeros((4, 2)), x_0=np.ones(4))
    with pytest.raises(UnreadableFile, match=r"name every column once\. Got two columns x_0"):
        read(tmp_path / "twice.npz")
    np.savez(tmp_path / "p.npz", x=np.array([{}, {}], dtype=object))
    with pytest.raises(LazyscopeError, match="allow_pickle"):
        read(tmp_path / "p.npz")


def test_fewer_rows_than_folds():
    X = np.random.default_rng(0).standard_normal((6, 2))
    with pytest.raises(InvalidParameter, match="at least two rows for each of the 5 folds"):
        folds(from_arrays(X, X[:, 0]), 5, 0)
    with pytest.raises(InvalidParameter, match="as many rows in every class as there are folds"):
        folds(from_arrays(X, ["a", "a", "a", "a", "a", "b"]), 3, 0)


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_decimal_commas_are_numbers(tmp_path, separator):
    lines = ["size;price;code", "3,5;1.250,25;1,234", "-0,75;980;2,345", "4;12,5;", "7,125;3,0;1,999", "1,5;2;3,001"]
    text = "\n".join(separator.join(f'"{cell}"' for cell in line.split(";")) for line in lines)
    (tmp_path / "t.csv").write_text(text + "\n")
    read_back = read(tmp_path / "t.csv")
    assert read_back["size"].tolist() == [3.5, -0.75, 4.0, 7.125, 1.5]
    assert read_back["price"].tolist() == [1250.25, 980.0, 12.5, 3.0, 2.0]
    assert read_back["code"].dtype.kind not in "fi"  # 1,234 may be a thousand and more, or a little more than one
    notes = describe(read_back, "price").notes
    assert "decimal commas in size, price" in notes and any("left as text: code" in note for note in notes)


def test_a_number_that_begins_with_zero_tells_decimal_commas_from_thousands(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n0,125;1\n-0,500;2\n1,250;3\n2,375;4\n")
    assert read(tmp_path / "t.csv")["a"].tolist() == [0.125, -0.5, 1.25, 2.375]


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (["2024-02-28", "2024-03-01", None, "2024-02-28 12:00"], [0.0, 2.0, np.nan, 0.5]),
        (["28.02.2024", "01.03.2024", None, "28.02.2024"], [0.0, 2.0, np.nan, 0.0]),
        (["28/02/2024", "01/03/2024", None, "28/02/2024"], [0.0, 2.0, np.nan, 0.0]),
        (["02/28/2024", "03/01/2024", None, "02/28/2024"], [0.0, 2.0, np.nan, 0.0]),
    ],
)
def test_dates_become_days(dates, days):
    table = pd.DataFrame({"when": dates * 5, "x": np.arange(20.0), "y": np.arange(20.0) ** 2})
    found = describe(table, "y", task="regression")
    np.testing.assert_array_equal(found.X["when"][:4], days)
    assert "dates became numbers, days since the first: when" in found.notes
    typed = describe(table.assign(when=pd.date_range("2020-01-01", periods=20)), "y", task="regression")
    assert typed.X["when"].tolist() == list(range(20))


def test_dates_that_nobody_can_read_are_left_out_with_a_word():
    table = pd.DataFrame({"when": ["01/02/2024", "03/04/2024"] * 10, "x": np.arange(20.0), "y": np.arange(20.0)})
    found = describe(table, "y", task="regression")
    assert list(found.X.columns) == ["x"] and "the day or the month first: when" in " ".join(found.notes)


def test_columns_are_dropped_with_commas_and_long_lists_are_shortened():
    table = frame().assign(**{f"c{k}": 1.0 for k in range(40)})
    table["a,b"] = 2.0
    found = describe(table, "price", drop=["size,new", "a,b"])
    assert list(found.X.columns) == ["kind"]
    assert "constant columns were left out: c0, c1, c2, c3, c4 and 35 more" in found.notes
    with pytest.raises(InvalidParameter, match="drop parameter of the table must name a column"):
        describe(table, "price", drop=["size,none"])
