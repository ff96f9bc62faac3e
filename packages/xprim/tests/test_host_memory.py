"""Memory that leaves and enters: nobody writes to an array, and no mask is lost on the way."""

import pickle
import re
import sys

import numpy as np
import pytest

import xprim
from xprim import ConcreteArray, dtypes, from_numpy

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "complex64", "bfloat16", "float8_e4m3fn"]


def views_of(x):
    seen = [np.asarray(x), np.asarray(x)[...], np.asarray(x).T]
    if sys.version_info >= (3, 12) and x.dtype.isbuiltin == 1:
        seen.append(np.asarray(memoryview(x)))
    return seen


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_a_view_of_an_array_cannot_be_made_writeable(dtype, shape):
    x = from_numpy(np.ones(shape, dtypes.dtype(dtype)), canonical=False)
    for view in views_of(x):
        while isinstance(view, np.ndarray):  # nor what it is a view of
            with pytest.raises(ValueError, match="WRITEABLE"):
                view.flags.writeable = True
            view = view.base
    np.testing.assert_array_equal(np.asarray(x).astype(complex), np.ones(shape))


def test_an_array_made_in_place_of_writeable_memory_is_sealed_too():
    theirs = np.asarray(memoryview(bytearray(4)))
    theirs.flags.writeable = False
    x = from_numpy(theirs, copy=False)
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.asarray(x).flags.writeable = True


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes lend buffers from Python 3.12 on")
def test_an_array_is_a_read_only_buffer():
    x = from_numpy(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert memoryview(x).readonly
    assert memoryview(x).shape == (2, 3)
    assert np.frombuffer(x, np.int32).tolist() == [0, 1, 2, 3, 4, 5]
    turned = ConcreteArray(x.to_host().T, xprim.shaped_array((3, 2), x.dtype))
    assert np.frombuffer(turned, np.int32).tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes lend buffers from Python 3.12 on")
def test_dtypes_without_a_buffer_form_say_so():
    with pytest.raises(BufferError, match="has no bfloat16 elements"):
        memoryview(from_numpy(np.ones(2, dtypes.bfloat16)))


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, TimeoutError])
@pytest.mark.parametrize("read", [np.asarray, np.array, memoryview])
def test_what_interrupts_a_wait_for_elements_is_raised_once(read, interrupt, monkeypatch):
    if read is memoryview and sys.version_info < (3, 12):
        pytest.skip("classes lend buffers from Python 3.12 on")
    answers = [interrupt("now"), np.arange(3.0), np.arange(3.0)]

    def wait(buffer):
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(xprim.array, "_buffer_reader", [wait])
    x, y = (ConcreteArray(None, xprim.shaped_array((3,), np.float64), "there") for _ in range(2))
    with pytest.raises(interrupt, match="now"):
        read(x)
    assert np.asarray(y).tolist() == read(x).tolist() == x.__array__().tolist() == [0.0, 1.0, 2.0]


def test_repeated_elements_without_room_for_all_are_seen_but_not_copied():
    host = np.broadcast_to(np.float32(1), (10**7, 10**7))
    x = ConcreteArray(host, xprim.shaped_array(host.shape, host.dtype))
    assert np.asarray(x).strides == (0, 0)
    with pytest.raises(xprim.errors.OutOfMemoryError, match="asarray: out of memory: 400,000,000,"):
        np.array(x)
    if sys.version_info >= (3, 12):
        with pytest.raises(xprim.errors.OutOfMemoryError, match="memoryview: out of memory: 400,"):
            memoryview(x)
    small = np.broadcast_to(np.float32(1), (3, 3))
    assert np.array(ConcreteArray(small, xprim.shaped_array((3, 3), small.dtype))).sum() == 9


def test_a_masked_array_is_refused():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    text = (
        "operand: numpy masked arrays are not supported: the mask would be lost.\n"
        "  got       a masked array float64[2], 1 of 2 elements masked\n  hint"
    )
    with pytest.raises(TypeError, match=re.escape(text)):
        xprim.as_array(masked)
    with pytest.raises(TypeError, match="masked arrays are not supported"):
        xprim.as_array(np.ma.masked)


def test_other_subclasses_are_taken_for_their_elements():
    assert xprim.as_array(np.ones((2, 2)).view(np.matrix)).shape == (2, 2)
    with pytest.raises(TypeError, match="cannot be used"):
        xprim.as_array(np.zeros(2, [("a", int)]).view(np.recarray))


def test_a_traced_value_cannot_be_pickled():
    with pytest.raises(xprim.errors.ConcretizationTypeError,
                       match="pickle: a traced value has no elements to write"):  # fmt: skip
        xprim.make_jaxpr(pickle.dumps)(1.0)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes lend buffers from Python 3.12 on")
def test_a_traced_value_has_no_buffer():
    with pytest.raises(xprim.errors.TracerArrayConversionError, match="not known while tracing"):
        xprim.make_jaxpr(lambda x: memoryview(x))(1.0)


def test_an_array_stands_for_its_dtype_where_limits_are_asked():
    assert xprim.dtypes.finfo(np.ones(2, np.float16)).bits == 16
    assert xprim.dtypes.iinfo(from_numpy(np.ones(2, np.int8))).max == 127
    assert xprim.dtypes.finfo(np.float32).bits == 32


@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "complex128"])
def test_arrays_that_were_pickled_are_as_others(dtype):
    """NumPy calls the dtype of such an array none of its own."""
    given = pickle.loads(pickle.dumps(np.ones((2, 3), dtypes.dtype(dtype))))
    x = from_numpy(given, canonical=False)
    assert np.array_equal(np.asarray(x), given)
    assert np.asarray(x).dtype == given.dtype
    if dtypes.is_numpys(given.dtype) and sys.version_info >= (3, 12):
        assert memoryview(x).shape == (2, 3)
