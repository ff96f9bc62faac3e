"""What the demo accepts as data, and the one clear line for what it does not."""

import numpy as np
import pytest

from xstack.demo.data import load
from xstack.demo.settings import DemoError


def save(tmp_path, **arrays):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


@pytest.fixture
def examples():
    rng = np.random.default_rng(0)
    return {"x": rng.random((50, 4)), "y": np.arange(50) % 3}


def test_npz_is_split_scaled_and_numbered(tmp_path, examples):
    data = load(save(tmp_path, x=examples["x"] * 100 - 7, y=examples["y"] + 4), seed=0)
    assert data.train_x.shape == (40, 4)
    assert data.test_x.shape == (10, 4)
    assert data.train_x.dtype == np.float32
    assert 0 <= data.train_x.min() <= data.train_x.max() <= 1
    assert data.classes == ["4", "5", "6"]
    assert set(data.train_y) == {0, 1, 2}


def test_csv_with_and_without_a_header(tmp_path, examples):
    table = np.column_stack([examples["x"], examples["y"]])
    plain, headed = tmp_path / "plain.csv", tmp_path / "headed.csv"
    np.savetxt(plain, table, delimiter=",")
    np.savetxt(headed, table, delimiter=",", header="a,b,c,d,label", comments="")
    np.testing.assert_allclose(load(plain, 0).train_x, load(headed, 0).train_x)


def test_square_feature_counts_are_drawn_as_images(tmp_path, examples):
    images = np.random.default_rng(0).random((50, 8, 8))
    assert load(save(tmp_path, x=images, y=examples["y"]), 0).image_shape == (8, 8)
    assert load(save(tmp_path, **examples), 0).image_shape is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros(50)}, r"x must have shape \(examples, features\.\.\.\), got \(50,\)"),
        ({"y": np.zeros(49, int)}, "one label for each of 50 examples, got shape"),
        ({"x": np.full((50, 4), np.nan)}, "example 0 has a value that is NaN"),
        ({"y": np.linspace(0, 1, 50)}, "labels must be the integers"),
        ({"y": np.arange(50) - 1}, "labels must be the integers"),
        ({"y": np.full(50, 10**6)}, "outside the classes"),
        ({"y": np.zeros(50, int)}, "all labels are 0"),
        ({"x": np.full((50, 4), "a")}, "must be numbers"),
    ],
)
def test_bad_arrays_get_one_clear_line(tmp_path, examples, change, message):
    with pytest.raises(DemoError, match=message) as caught:
        load(save(tmp_path, **(examples | change)), 0)
    assert "\n" not in str(caught.value)


def test_missing_file_missing_array_and_unknown_kind(tmp_path, examples):
    with pytest.raises(DemoError, match="unknown file"):
        load(tmp_path / "nothing.npz", 0)
    with pytest.raises(DemoError, match="has no array 'y', only x"):
        load(save(tmp_path, x=examples["x"]), 0)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(DemoError, match=r"must be an \.npz or a \.csv file"):
        load(tmp_path / "notes.txt", 0)
    (tmp_path / "broken.npz").write_bytes(b"not a zip file")
    with pytest.raises(DemoError, match="cannot be read"):
        load(tmp_path / "broken.npz", 0)
