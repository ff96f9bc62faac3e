"""Arrays pass between libraries without copies: the addresses are compared, for every dtype.

In memory of the CPU; `test_beside_the_oracle` has what depends on the order of the imports.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import pytest

import xnp
from xjit import jit

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip
# NumPy does not import or export these by DLPack; the compiler does.
NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
JAXLIB = tuple([int(n) for n in metadata.version("jaxlib").split(".")[:2]])
SHAPES = ((64,), (), (0, 3))
PAIRS = [(dtype, shape) for dtype in DTYPES for shape in SHAPES]
ALL_PAIRS = [*PAIRS, *[(dtype, (64,)) for dtype in NARROW]]
both = pytest.mark.parametrize(("dtype", "shape"), ALL_PAIRS)
known_to_numpy = pytest.mark.parametrize(("dtype", "shape"), PAIRS)


@pytest.fixture(scope="module")
def jax() -> Any:
    return pytest.importorskip("jax")


def values(dtype: str, shape: tuple[int, ...]) -> Any:
    return (np.arange(int(np.prod(shape))).reshape(shape) % 3).astype(xnp.dtype(dtype))


def ours(dtype: str, shape: tuple[int, ...]) -> Any:
    """Return the result of a program: its memory is the compiler's."""
    return jit(lambda: xnp.asarray(values(dtype, shape), dtype=dtype))()


def theirs(jax: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    with jax.enable_x64(True):
        return jax.device_put(values(dtype, shape))


def address(host: Any) -> int:
    return int(host.__array_interface__["data"][0])


def assert_same_memory(view: Any, array: Any) -> None:
    """Check that a NumPy view is the memory of an array; empty ones have none.

    Before 0.12, jaxlib gives NumPy no view of the dtypes that NumPy has not: `xjit` copies them.
    """
    if array.size and (array.dtype.name not in NARROW or JAXLIB >= (0, 12)):
        assert address(view) == array.unsafe_buffer_pointer()


def assert_equal(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@both
def test_the_oracle_borrows_our_memory_by_dlpack(jax, dtype, shape):
    x = ours(dtype, shape)
    for borrow in (jax.dlpack.from_dlpack, jax.numpy.from_dlpack):
        with jax.enable_x64(True):
            y = borrow(x)
        assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
        assert_equal(y, x)
    del x  # whoever borrows keeps the memory alive
    assert_equal(y, values(dtype, shape))


@both
def test_ours_borrows_the_memory_of_the_oracle_by_dlpack(jax, dtype, shape):
    y = theirs(jax, dtype, shape)
    x = xnp.from_dlpack(y, copy=False)
    assert x.unsafe_buffer_pointer() == y.unsafe_buffer_pointer()
    assert_same_memory(np.asarray(x), y)
    assert_equal(x, y)
    del y
    assert_equal(x, values(dtype, shape))


@pytest.mark.parametrize("copy", [None, True])
def test_without_the_promise_what_is_imported_is_copied(jax, copy):
    y = theirs(jax, "float64", (64,))
    x = xnp.from_dlpack(y, copy=copy)
    assert x.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
    assert x.dtype == np.float32  # as of any values that are copied in without enable_x64
    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@both
def test_the_array_protocol_gives_the_memory_itself(jax, dtype, shape):
    x = ours(dtype, shape)
    view = np.asarray(x)
    assert_same_memory(view, x)
    assert not view.flags.writeable
    y = theirs(jax, dtype, shape)
    shared = xnp.asarray(y, dtype=dtype, copy=False)  # reads their `__array__`
    assert_same_memory(np.asarray(shared), y)
    assert_equal(shared, y)
    np.testing.assert_array_equal(np.asarray(jax.numpy.asarray(x)).astype(x.dtype), view)


@known_to_numpy
def test_numpy_borrows_our_memory_and_must_not_write_to_it(dtype, shape):
    x = ours(dtype, shape)
    view = np.from_dlpack(x)
    assert_same_memory(view, x)
    assert not view.flags.writeable
    assert_equal(view, x)


@known_to_numpy
def test_ours_borrows_from_numpy_only_on_the_promise_that_nobody_writes(dtype, shape):
    host = np.array(values(dtype, shape))
    shared, copied = xnp.from_dlpack(host, copy=False), xnp.from_dlpack(host)
    if host.size and address(host) % 64 == 0:  # else the compiler needs its own, aligned copy
        assert shared.unsafe_buffer_pointer() == address(host)
    assert shared.dtype == host.dtype
    also = xnp.asarray(host, dtype=dtype, copy=False)
    assert host.size == 0 or address(np.asarray(also)) == address(host)
    host[...] = 0
    wanted = np.asarray(values(dtype, shape)).astype(copied.dtype)
    np.testing.assert_array_equal(np.asarray(copied), wanted)


def test_a_slice_of_another_library_is_taken_with_its_strides(jax):
    host = np.arange(24.0, dtype=np.float32).reshape(4, 6)[:, ::2]
    for copy in (None, False):
        np.testing.assert_array_equal(np.asarray(xnp.from_dlpack(host, copy=copy)), host)


def test_torch_borrows_and_lends():
    torch = pytest.importorskip("torch")
    x = ours("float32", (64,))
    assert torch.from_dlpack(x).data_ptr() == x.unsafe_buffer_pointer()
    tensor = torch.arange(64, dtype=torch.bfloat16)
    y = xnp.from_dlpack(tensor, copy=False)
    assert y.unsafe_buffer_pointer() == tensor.data_ptr()
    assert y.dtype == "bfloat16"
