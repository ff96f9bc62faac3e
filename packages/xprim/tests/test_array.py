import enum
import pickle

import numpy as np
import pytest

from xprim import (
    Array,
    ConcreteArray,
    array,
    as_array,
    attach_methods,
    config,
    dtypes,
    from_numpy,
    scalar_array,
    shaped_array,
)


def test_python_scalars_enter_weakly_typed_in_default_dtypes():
    for value, dtype, weak in ((True, "bool", False), (3, "int32", True), (1.5, "float32", True),
                               (2j, "complex64", True)):  # fmt: skip
        x = as_array(value)
        assert (x.dtype.name, x.weak_type, x.shape) == (dtype, weak, ())
        assert x.to_host()[()] == value
    with config.enable_x64(True):
        assert as_array(3).dtype == np.int64 and as_array(1.5).dtype == np.float64
    assert as_array(3, np.dtype("int8")).aval is shaped_array((), np.dtype("int8"))


class Colour(enum.IntEnum):
    RED = 7


class Length(float):
    pass


def test_subclasses_of_scalars_and_objects_with_array_protocols_enter():
    assert as_array(Colour.RED).to_host() == 7 and as_array(Colour.RED).weak_type
    assert as_array(Length(2.5)).to_host() == 2.5

    class Own:
        def __xstack_array__(self):
            return np.arange(3)

    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

    assert as_array(Own()).shape == (3,)
    assert as_array(Foreign()).dtype == np.float32
    x = as_array(1.0)
    assert as_array(x) is x


def test_signed_zeros_and_nan_keep_their_bits():
    assert np.signbit(as_array(-0.0).to_host()) and not np.signbit(as_array(0.0).to_host())
    assert np.isnan(as_array(float("nan")).to_host())
    assert as_array(True) is not as_array(1)
    assert as_array(1).dtype != as_array(1.0).dtype


def test_equal_bits_of_a_number_are_one_array_and_other_bits_another():
    nan = float("nan")
    for number in (0.0, nan, 0j, complex(nan, -0.0)):
        assert scalar_array(number) is scalar_array(type(number)(number))
    for one, other in [(0.0, -0.0), (nan, -nan), (0j, complex(0.0, -0.0)), (1.0, 1 + 0j)]:
        first, second = scalar_array(one).to_host(), scalar_array(other).to_host()
        assert scalar_array(one) is not scalar_array(other)
        assert first.tobytes() == first.dtype.type(one).tobytes()
        assert second.tobytes() == second.dtype.type(other).tobytes()


def test_scalars_are_cached_in_bounds(monkeypatch):
    assert scalar_array(12345) is scalar_array(12345)
    monkeypatch.setattr(array, "_MAX_CACHED_SCALARS", 1)
    scalar_array(54321)
    assert scalar_array(98765).to_host() == 98765


def test_numpy_arrays_are_copied_and_narrowed_on_entry():
    host = np.arange(3.0)
    x = as_array(host)
    host[0] = 9
    assert x.dtype == np.float32 and x.to_host()[0] == 0
    small = np.ones(3, np.float32)
    kept = from_numpy(small, copy=False)
    assert kept.to_host() is small
    assert from_numpy(host, canonical=False).dtype == np.float64
    assert from_numpy(np.arange(3, dtype=">f4")).dtype == np.dtype("float32")
    assert from_numpy(np.int64(5)).dtype == np.int32
    with config.enable_x64(True):
        assert as_array(host).dtype == np.float64


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(
        OverflowError, match="Python int 2147483648 too large to convert to int32"
    ) as e:
        as_array(2**31)
    assert "expected  a value from -2147483648 to 2147483647" in str(e.value)
    assert "int64" in str(e.value)
    with pytest.raises(OverflowError, match="too large to convert to int32") as e:
        as_array(2**70)
    assert "hint" not in str(e.value)
    with pytest.raises(OverflowError, match="the int64 value 5000000000 does not fit in int32"):
        as_array(np.array([1, 5_000_000_000]))
    with pytest.raises(OverflowError):
        scalar_array(-1, np.dtype("uint8"))


def test_values_that_are_no_arrays_are_refused_by_name():
    with pytest.raises(TypeError, match=r"loss: a str is not an array") as e:
        as_array("text", what="loss")
    assert "'text'" in str(e.value)
    with pytest.raises(TypeError, match="make an array of it first"):
        as_array([1, 2])
    with pytest.raises(TypeError, match="NumPy arrays of dtype object cannot be used") as e:
        as_array(np.array([[1], [1, 2]], dtype=object))
    assert "different lengths" in str(e.value)
    with pytest.raises(TypeError, match="cannot be used"):
        as_array(np.array(["a"]))
    with pytest.raises(TypeError, match="is not an array") as e:
        as_array("x" * 200)
    assert len(str(e.value).splitlines()[1]) < 100


def test_arrays_leave_as_read_only_views():
    x = as_array(np.arange(3, dtype=np.float32))
    view = np.asarray(x)
    assert np.shares_memory(view, x.to_host())
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    assert not np.shares_memory(np.array(x, copy=True), x.to_host())
    assert np.asarray(x, dtype=np.int32).dtype == np.int32
    with pytest.raises(ValueError, match="copy"):  # NumPy says it where it reads the buffer
        np.array(x, dtype=np.int32, copy=False)


def test_arrays_know_their_type():
    x = as_array(np.ones((2, 3), np.float16))
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), 2, 6, 2, 12)
    assert isinstance(x, Array) and isinstance(x, ConcreteArray)
    with pytest.raises(TypeError, match="Array: cannot be instantiated directly"):
        Array()
    with pytest.raises(TypeError):
        hash(x)


def test_arrays_pickle_by_value():
    x = as_array(2.5)
    y = pickle.loads(pickle.dumps(x))
    assert y.aval is x.aval and y.to_host() == 2.5


class Buffer:
    """What a package with devices might hold."""


def test_buffers_are_read_by_their_owner_and_deleted_ones_say_so(monkeypatch):
    monkeypatch.setattr(array, "_buffer_reader", [np.asarray])
    array.register_buffer_reader(lambda buffer: np.array([1.0, 2.0], np.float32))
    x = ConcreteArray(None, shaped_array((2,), np.dtype("float32")), Buffer())
    assert x.to_host().tolist() == [1.0, 2.0]
    deleted = ConcreteArray(None, shaped_array((2,), np.dtype("float32")))
    with pytest.raises(RuntimeError, match="was deleted or donated") as e:
        deleted.to_host()
    assert "donate_argnums" in str(e.value)


def test_methods_are_attached_by_the_package_that_owns_them():
    class Own(ConcreteArray):
        pass

    attach_methods({"first": lambda self: self.to_host().ravel()[0]}, to=Own)
    x = Own(np.arange(3), shaped_array((3,), np.dtype("int64")))
    assert x.first() == 0
    assert not hasattr(ConcreteArray, "first")


def test_small_dtypes_enter_and_leave():
    for dtype in (dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.int4):
        x = as_array(np.array([1, 2, 3], dtype))
        assert x.dtype == dtype and np.asarray(x).tolist() == [1, 2, 3]
