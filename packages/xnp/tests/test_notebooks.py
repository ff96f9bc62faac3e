"""What a notebook shows of an array: a table, a heat map, escaped and of bounded size."""

import base64
import re
import struct
import zlib

import numpy as np
import pytest

import xnp
from xprim import make_jaxpr
from xtree.errors import preformatted


def cells_of(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<td>(.*?)</td>", row) for row in rows]


def pixels_of(html: str) -> np.ndarray:
    """Read the picture with the standard library: the chunks of a PNG file without filters."""
    (data,) = re.findall(r'base64,([^"]+)"', html)
    png = base64.b64decode(data)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, chunks = 8, {}
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        kind, body = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", png[place + 8 + length : place + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_small_matrix_is_a_table_of_its_elements():
    html = xnp.array([[1.0, 2.5], [-3.0, xnp.nan]])._repr_html_()
    assert cells_of(html) == [["1", "2.5"], ["-3", "nan"]]
    assert "float32[2,2]" in html and "<img" not in html


def test_a_vector_is_a_row_and_a_long_one_shows_its_ends():
    assert cells_of(xnp.arange(3)._repr_html_()) == [["0", "1", "2"]]
    (row,) = cells_of(xnp.arange(1000)._repr_html_())
    assert row == ["0", "1", "2", "3", "&#8230;", "996", "997", "998", "999"]


def test_a_large_matrix_is_a_picture_whose_pixels_are_the_means_of_blocks():
    x = np.zeros((128, 128), np.float32)
    x[:64] = 1
    x[0:2, 0:2] = np.nan
    pixels = pixels_of(xnp.asarray(x)._repr_html_()).astype(int)
    assert pixels.shape == (64, 64, 3)
    assert pixels[0, 0].tolist() == [200, 40, 40]  # without a finite element
    assert pixels[0, 1].tolist() == [246, 229, 92] and pixels[63, 63].tolist() == [38, 30, 84]


@pytest.mark.parametrize("x", [
    np.full((9, 9), np.inf), np.zeros((9, 9)), np.ones((9, 9), bool), np.ones((9, 9), np.uint8),
    np.full((9, 9), 1 + 2j, np.complex64), np.arange(81, dtype=np.int64).reshape(9, 9),
])  # fmt: skip
def test_every_dtype_has_a_picture(x):
    assert pixels_of(xnp.asarray(x)._repr_html_()).shape == (9, 9, 3)


def test_half_precision_higher_ranks_and_large_numbers():
    assert cells_of(xnp.ones((2, 2), "bfloat16")._repr_html_()) == [["1", "1"], ["1", "1"]]
    html = xnp.arange(24).reshape(3, 2, 4)._repr_html_()
    assert "the first of 3 matrices" in html and cells_of(html)[1] == ["4", "5", "6", "7"]
    assert cells_of(xnp.array([1e30, 2e-20])._repr_html_()) == [["1e+30", "2e-20"]]


@pytest.mark.parametrize("x", [xnp.float32(2.5), xnp.zeros((0, 3))])
def test_scalars_and_empty_arrays_show_their_text(x):
    assert x._repr_html_() == preformatted(repr(x))


def test_what_is_made_is_bounded():
    rng = np.random.default_rng(0)
    html = xnp.asarray(rng.normal(size=(1500, 700)).astype(np.float32))._repr_html_()
    # 64 x 64 pixels of 3 bytes that hardly compress, in base64, and a table of 81 cells
    assert len(html) < 64 * 64 * 3 * 4 / 3 + 6000


def test_a_program_shows_its_text_escaped():
    program = make_jaxpr(lambda x: xnp.sin(x) * 2)(1.0)
    html = program._repr_html_()
    assert html == preformatted(str(program)) and "sin" in html and "mul" in html


def test_a_large_array_prints_its_shape_and_a_summary():
    text = repr(xnp.zeros((2000, 3)))
    assert "..." in text and text.endswith("shape=(2000, 3), dtype=float32)")
    assert "shape" not in repr(xnp.zeros(1000))
