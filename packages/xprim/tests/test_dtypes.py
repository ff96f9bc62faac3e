import enum

import ml_dtypes
import numpy as np
import pytest

from xprim import config, dtypes

NAMES = [d.name for d in dtypes.ALL]


class KeyDType(dtypes.ExtendedDType):
    type = dtypes.prng_key
    name = "key<test>"
    itemsize = 8


class OwnArray:
    """What marks a value as our own: an `aval`."""

    aval = object()
    dtype = dtypes.float64


def test_the_dtypes_are_those_of_the_installed_jax():
    jax_dtypes = pytest.importorskip("jax._src.dtypes")
    assert set(dtypes.ALL) == set(jax_dtypes._jax_types)
    assert dtypes.float0 == jax_dtypes.float0


@pytest.mark.parametrize("d", [*dtypes.ALL, dtypes.float0], ids=str)
def test_short_names_are_those_of_the_jaxprs_of_jax(d):
    core = pytest.importorskip("jax._src.core")
    assert f"{dtypes.short_name(d)}[3]" == core.ShapedArray((3,), d).str_short(short_dtypes=True)


def test_short_names_of_the_common_dtypes():
    names = {"float32": "f32", "int4": "i4", "uint8": "u8", "bfloat16": "bf16", "bool": "bool"}
    names |= {"complex64": "c64", "float8_e4m3fn": "f8_e4m3fn"}
    for name, short in names.items():
        assert dtypes.short_name(np.dtype(name)) == short
    assert dtypes.short_name(KeyDType()) == "key<test>"
    assert dtypes.short_name(np.dtype("datetime64[s]")) == "datetime64[s]"


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_is_of_exactly_one_kind(name):
    d = np.dtype(name)
    kinds = [
        f(d) for f in (dtypes.is_bool, dtypes.is_integer, dtypes.is_floating, dtypes.is_complex)
    ]
    assert sum(kinds) == 1
    assert dtypes.is_inexact(d) == (dtypes.is_floating(d) or dtypes.is_complex(d))
    assert dtypes.is_integer(d) == (dtypes.is_signed_integer(d) or dtypes.is_unsigned_integer(d))
    assert dtypes.is_supported(d)
    assert dtypes.is_supported(d.newbyteorder(">"))


def test_float0_and_extended_dtypes_are_of_no_kind():
    for d in (dtypes.float0, KeyDType()):
        assert not dtypes.is_bool(d)
        assert not dtypes.is_integer(d)
        assert not dtypes.is_inexact(d)
        assert not dtypes.is_supported(d)
    assert dtypes.is_extended(KeyDType())
    assert not dtypes.is_extended(dtypes.float0)


@pytest.mark.parametrize("name", NAMES)
def test_issubdtype_agrees_with_jax_for_every_pair(name):
    jnp = pytest.importorskip("jax.numpy")
    abstract = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger]
    abstract += [np.inexact, np.floating, np.complexfloating, np.bool_]
    for other in (*abstract, *dtypes.ALL):
        assert dtypes.issubdtype(name, other) == jnp.issubdtype(name, other), other
        assert dtypes.issubdtype(np.dtype(name), other) == jnp.issubdtype(name, other), other


def test_issubdtype_knows_extended_dtypes():
    assert dtypes.issubdtype(KeyDType(), dtypes.extended)
    assert dtypes.issubdtype(KeyDType(), dtypes.prng_key)
    assert not dtypes.issubdtype(KeyDType(), np.number)
    assert not dtypes.issubdtype("float32", dtypes.extended)
    key_dtype = KeyDType()
    assert dtypes.issubdtype(key_dtype, key_dtype)
    assert not dtypes.issubdtype("float32", key_dtype)


def test_nobody_chose_so_64_bits_become_32_unless_enable_x64():
    wide = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
    for name in NAMES:
        assert dtypes.canonicalize_dtype(name) == np.dtype(wide.get(name, name))
        with config.enable_x64(True):
            assert dtypes.canonicalize_dtype(name) == np.dtype(name)


def test_a_requested_64_bit_dtype_is_honoured_without_a_flag():
    for name in NAMES:
        assert dtypes.requested_dtype(name) == np.dtype(name)
    assert dtypes.requested_dtype(np.float64) == np.float64
    for x64, width in ((False, 32), (True, 64)):
        with config.enable_x64(x64):
            assert dtypes.requested_dtype(int) == f"int{width}"
            assert dtypes.requested_dtype(float) == f"float{width}"
            assert dtypes.requested_dtype(None) == f"float{width}"
            assert dtypes.requested_dtype(complex) == f"complex{2 * width}"
            assert dtypes.requested_dtype(bool) == "bool"


def test_equal_dtypes_become_one_object_of_native_byte_order():
    assert dtypes.canonicalize_dtype(np.dtype(np.longlong).newbyteorder(">")) is dtypes.int32
    assert dtypes.requested_dtype(np.longlong) is dtypes.int64
    assert dtypes.requested_dtype(">f4") is dtypes.float32
    assert dtypes.requested_dtype(ml_dtypes.bfloat16) is dtypes.bfloat16


def test_extended_dtypes_and_float0_stay_as_they_are():
    key_dtype = KeyDType()
    for d in (key_dtype, dtypes.float0):
        assert dtypes.canonicalize_dtype(d) is d
        assert dtypes.requested_dtype(d) is d


@pytest.mark.parametrize("bad", ["O", "S3", "U2", "datetime64[s]", np.longdouble, object])
def test_dtypes_that_values_cannot_have_are_refused(bad):
    with pytest.raises(TypeError, match=r"(?s)zeros: values cannot have .*expected  a boolean"):
        dtypes.requested_dtype(bad, "zeros")
    with pytest.raises(TypeError, match="canonicalize_dtype: values cannot have"):
        dtypes.canonicalize_dtype(bad)


def test_what_does_not_name_a_dtype_is_refused_with_the_name_of_the_function():
    with pytest.raises(TypeError, match=r"ones: 'flot32' is not a dtype\."):
        dtypes.requested_dtype("flot32", "ones")


def test_python_scalars_follow_enable_x64():
    expected = {bool: ("bool", "bool"), int: ("int32", "int64"), float: ("float32", "float64")}
    expected[complex] = ("complex64", "complex128")
    for kind, (narrow, wide) in expected.items():
        assert dtypes.python_scalar_dtype(kind) == narrow
        with config.enable_x64(True):
            assert dtypes.python_scalar_dtype(kind) == wide


@pytest.mark.parametrize("x64", [False, True])
def test_dtype_of_values_agrees_with_jax(x64):
    jax = pytest.importorskip("jax")
    values = [True, 1, 1.0, 1j, np.float64(1), np.int64(1), np.bool_(1), np.zeros(2), bool, int]
    values += [np.zeros(2, "bfloat16"), np.arange(3), np.zeros(1, "complex128"), float, complex]
    values += [np.int8, "uint4", np.dtype("float16")]
    with jax.enable_x64(x64), config.enable_x64(x64):
        for value in values:
            assert dtypes.dtype(value) == jax.dtypes.result_type(value), value


def test_dtype_of_our_own_values_is_not_narrowed():
    assert dtypes.dtype(OwnArray()) is dtypes.float64
    assert dtypes.dtype("float64") is dtypes.float64


def test_dtype_of_a_value_with_an_extended_dtype_is_that_dtype():
    class Foreign:
        dtype = KeyDType()

    assert dtypes.dtype(Foreign()) is Foreign.dtype


def test_dtype_of_subclasses_of_scalars_and_of_objects_with_an_array_form():
    class Color(enum.IntEnum):
        RED = 1

    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.zeros(2)

    assert dtypes.dtype(Color.RED) is dtypes.int32
    assert dtypes.dtype(Wrapped()) is dtypes.float32


@pytest.mark.parametrize("value", [None, object(), [1.0, 2.0]])
def test_a_value_without_a_dtype_is_refused(value):
    with pytest.raises(TypeError, match=r"dtype: a value of type \w+ has no dtype"):
        dtypes.dtype(value)


@pytest.mark.parametrize("name", NAMES)
def test_scalar_type_of_agrees_with_jax(name):
    jax = pytest.importorskip("jax")
    value = np.zeros(2, name)
    assert dtypes.scalar_type_of(value) is jax.dtypes.scalar_type_of(value)


def test_scalar_type_of_a_key_is_refused():
    with pytest.raises(TypeError, match=r"scalar_type_of: elements of .* are not Python scalars"):
        dtypes.scalar_type_of(KeyDType())


@pytest.mark.parametrize("name", NAMES)
def test_inexact_floating_and_complex_counterparts_agree_with_jax(name):
    jax_dtypes = pytest.importorskip("jax._src.dtypes")
    if name in ("int1", "uint1", "int2", "uint2"):  # JAX leaves these as they are
        assert dtypes.to_inexact_dtype(name) == "float32"
        return
    assert dtypes.to_inexact_dtype(name) == jax_dtypes.to_inexact_dtype(name)
    assert dtypes.to_floating_dtype(name) == jax_dtypes.to_floating_dtype(name)
    assert dtypes.to_complex_dtype(name) == jax_dtypes.to_complex_dtype(name)


@pytest.mark.parametrize("name", NAMES)
def test_limits_and_sizes_agree_with_jax(name):
    jax = pytest.importorskip("jax")
    assert dtypes.itemsize_bits(name) == jax.dtypes.itemsize_bits(np.dtype(name))
    if dtypes.is_integer(np.dtype(name)):
        ours, theirs = dtypes.iinfo(name), jax.dtypes.iinfo(name)
        assert (ours.min, ours.max, ours.bits) == (theirs.min, theirs.max, theirs.bits)
        with pytest.raises(ValueError, match=f"finfo: {name} is not a floating dtype"):
            dtypes.finfo(name)
    elif dtypes.is_inexact(np.dtype(name)):
        ours, theirs = dtypes.finfo(name), jax.dtypes.finfo(name)
        for field in ("bits", "eps", "max", "min", "tiny", "nmant", "nexp"):
            assert getattr(ours, field) == getattr(theirs, field), field
        assert ours.dtype == theirs.dtype
        with pytest.raises(ValueError, match=f"(?s)iinfo: {name} .*hint +finfo describes"):
            dtypes.iinfo(name)


def test_itemsize_of_an_extended_dtype_is_its_own():
    assert dtypes.itemsize_bits(KeyDType()) == 64
