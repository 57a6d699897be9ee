"""MNIST: the files are read as they are, dots depend on their fields alone, and lines and dots agree on digits."""

import gzip

import numpy as np
import pytest

from lazyscope.errors import UnreadableFile
from lazyscope.experiments.ridge import mnist, mnist_images
from lazyscope.experiments.ridge.mnist import MnistDraw, MnistForecast

NAMES = [name for pair in mnist_images._FILES for name in pair]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Four files of seven and three tiny images, one of them not gzipped."""
    rng = np.random.default_rng(0)
    for name, count in zip(NAMES, (7, 7, 3, 3), strict=True):
        shape = (count, 4, 4) if "images" in name else (count,)
        content = bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape)
        content += rng.integers(0, 256 if len(shape) == 3 else 10, shape).astype(np.uint8).tobytes()
        if name.startswith("t10k-labels"):
            tmp_path.joinpath(name).write_bytes(content)
        else:
            tmp_path.joinpath(f"{name}.gz").write_bytes(gzip.compress(content))
    monkeypatch.setenv("LAZYSCOPE_DATA", "nowhere")
    mnist_images.images.cache_clear()
    yield tmp_path
    mnist_images.images.cache_clear()


def test_idx_files_are_read(folder):
    mnist_images.locate(folder)
    X, digit = mnist_images.images()
    assert X.shape == (10, 16) and digit.shape == (10,) and digit.min() >= 0 and digit.max() <= 9
    assert np.allclose(np.linalg.norm(X, axis=1), 1.0)
    assert {*np.unique(mnist.images("mnist")[1])} <= {-1.0, 1.0}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file.unlink(), "must hold train-images"),
        (lambda file: file.write_bytes(b"no gzip at all"), "readable"),
        (lambda file: file.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x09abc")), "IDX file"),
        (lambda file: file.write_bytes(gzip.compress(b"")), "IDX file"),
    ],
)
def test_other_files_are_refused_in_a_line(folder, spoil, words):
    spoil(folder / f"{NAMES[0]}.gz")
    with pytest.raises(UnreadableFile, match=words) as refused:
        mnist_images.locate(folder)
    assert "\n" not in str(refused.value)


def test_pool_training_and_test_images_are_apart():
    pools, rest = mnist.parts(1797, 3, 300, 0)
    assert [len(mine) for mine in pools] == [300] * 3 and len({*np.concatenate([*pools, rest])}) == 1797


def test_a_dot_depends_on_its_fields_alone():
    for regime in ("RF", "NT"):
        one, again, other = (
            MnistDraw("digits", regime, 1, 300, 50, 20, (0.1,), k).compute()["risk"] for k in (0, 0, 1)
        )
        assert one == again != other


def test_both_gram_matrices_give_the_same_fit():
    rng = np.random.default_rng(1)
    X, Z, W = (rng.standard_normal(shape) for shape in ((30, 5), (10, 5), (40, 5)))
    y, z, ridges = rng.standard_normal(30), rng.standard_normal(10), np.array([0.1, 1.0])
    U, V = (np.maximum(part @ W.T, 0.0) * np.sqrt(2.0 / 40) for part in (X, Z))
    for some in (slice(0, 40), slice(0, 20)):  # more and fewer neurons than rows
        u, v, N = U[:, some] * np.sqrt(40 / len(W[some])), V[:, some] * np.sqrt(40 / len(W[some])), len(W[some])
        fits = [v @ np.linalg.solve(u.T @ u + ridge * np.eye(N), u.T @ y) for ridge in ridges]
        expected = [np.mean((fit - z) ** 2) for fit in fits]
        assert np.allclose(mnist._fit_features(X, Z, W[some], ridges, y, z), expected, rtol=1e-9)


def test_lines_and_dots_agree_on_digits():
    """Twelve draws at N = 200, n = 100, against a pool of 600: both scatter by some percent."""
    line = MnistForecast("digits", "RF", 1, 600, (100,), (200.0,), (0.1,)).compute()
    dots = [MnistDraw("digits", "RF", 1, 600, 100, 200, (0.1,), k).compute()["risk"] for k in range(12)]
    assert abs(np.log(line["risk"].item() / np.mean(dots))) < 0.15
