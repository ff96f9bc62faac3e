import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xprim import config, dtypes, promotion
from xprim.errors import TypePromotionError

SETTINGS = list(itertools.product([False, True], ["standard", "strict"]))
TYPES = [*dtypes.ALL, int, float, complex]
OPERANDS = [(d, weak) for d in dtypes.ALL for weak in (False, True)]


@pytest.fixture(params=SETTINGS, ids=lambda s: f"x64={s[0]}-{s[1]}")
def setting(request):
    """The options of one setting, here and in the oracle, where 64-bit dtypes are also honoured."""
    x64, mode = request.param
    with config.enable_x64(x64), config.numpy_dtype_promotion(mode):
        yield x64, mode


@pytest.fixture
def jax_dtypes(setting):
    jax = pytest.importorskip("jax")
    internal = pytest.importorskip("jax._src.dtypes")
    jax_config = pytest.importorskip("jax._src.config")
    x64, mode = setting
    with (
        jax.enable_x64(x64),
        jax.numpy_dtype_promotion(mode),
        jax_config.explicit_x64_dtypes("allow"),
    ):
        yield internal


def outcome(function, *args, **kwargs):
    """The result, or that there is none, in the form that both libraries share."""
    try:
        return function(*args, **kwargs)
    except ValueError as error:
        return f"no promotion: {type(error).__name__}"


def test_promote_types_equals_jax_for_every_pair(jax_dtypes):
    for a, b in itertools.product(TYPES, repeat=2):
        ours = outcome(promotion.promote_types, a, b)
        assert ours == outcome(jax_dtypes.promote_types, a, b), (a, b)


def test_result_type_equals_jax_for_every_pair(jax_dtypes):
    for a, b in itertools.product(TYPES, repeat=2):
        ours = outcome(promotion.result_type, a, b, return_weak_type_flag=True)
        theirs = outcome(jax_dtypes.result_type, a, b, return_weak_type_flag=True)
        assert ours == theirs, (a, b)


def test_promote_equals_jax_for_every_pair_of_weak_and_strong_operands(jax_dtypes, monkeypatch):
    class Value(SimpleNamespace):
        """Stands for an array: the oracle keeps its dtype as it is."""

    kept = jax_dtypes._types_whose_dtype_should_not_be_canonicalized
    monkeypatch.setattr(
        jax_dtypes, "_types_whose_dtype_should_not_be_canonicalized", (*kept, Value)
    )
    values = [Value(dtype=d, aval=SimpleNamespace(weak_type=weak)) for d, weak in OPERANDS]
    value_by_operand = dict(zip(OPERANDS, values, strict=True))
    for count in (1, 2):
        for operands in itertools.product(OPERANDS, repeat=count):
            theirs = outcome(
                jax_dtypes.lattice_result_type, *(value_by_operand[o] for o in operands)
            )
            assert outcome(promotion.promote, *operands) == theirs, operands


@given(st.lists(st.sampled_from(OPERANDS), min_size=1, max_size=5), st.sampled_from(SETTINGS))
def test_promotion_ignores_order_and_repetition(operands, setting):
    with config.enable_x64(setting[0]), config.numpy_dtype_promotion(setting[1]):
        expected = outcome(promotion.promote, *operands)
        assert outcome(promotion.promote, *reversed(operands)) == expected
        if len(operands) > 1:
            assert outcome(promotion.promote, *operands, operands[0]) == expected


def test_python_scalars_keep_the_precision_of_arrays():
    assert promotion.result_type(dtypes.float16, 2.0) == "float16"
    assert promotion.result_type("int8", 3) == "int8"
    assert promotion.result_type(np.zeros(2, "bfloat16"), 1j) == "complex64"
    assert promotion.result_type("int32", 1.0, return_weak_type_flag=True) == (
        dtypes.float32,
        True,
    )


def test_a_bool_is_never_weak():
    assert promotion.result_type(True, return_weak_type_flag=True) == (dtypes.bool_, False)
    assert promotion.promote((dtypes.bool_, True)) == (dtypes.bool_, False)


def test_uint32_and_int32_meet_in_a_64_bit_type_only_under_enable_x64():
    assert promotion.promote_types("uint32", "int32") == "int32"
    with config.enable_x64(True):
        assert promotion.promote_types("uint32", "int32") == "int64"


def test_a_requested_64_bit_operand_stays_64_bit_without_a_flag():
    assert promotion.result_type("float64", "float32") == "float64"
    assert promotion.promote((dtypes.int64, False), (dtypes.int32, True)) == (dtypes.int64, False)
    assert promotion.result_type(np.zeros(2), "float32") == "float32"


def test_result_type_takes_values_and_none():
    own = SimpleNamespace(dtype=dtypes.float64, aval=SimpleNamespace(weak_type=True))
    assert promotion.is_weakly_typed(own)
    assert promotion.is_weakly_typed(1.0)
    assert not promotion.is_weakly_typed(True)
    assert not promotion.is_weakly_typed(np.float64(1.0))
    assert promotion.result_type(own, "float16") == "float16"
    assert promotion.result_type(None) == "float32"
    with pytest.raises(ValueError, match="result_type: needs at least one operand"):
        promotion.result_type()


def test_small_types_do_not_promote_and_the_message_names_them():
    pattern = r"(?s)promote: float32 and float8_e4m3fn have no available implicit.*hint .*astype"
    with pytest.raises(TypePromotionError, match=pattern):
        promotion.promote_types("float8_e4m3fn", "float32")
    with pytest.raises(TypePromotionError, match="int4 and int8"):
        promotion.promote((dtypes.int4, False), (dtypes.int8, False))
    assert promotion.promote_types("float8_e4m3fn", float) == "float8_e4m3fn"


def test_strict_promotion_refuses_different_dtypes_but_adapts_scalars():
    with config.numpy_dtype_promotion("strict"):
        with pytest.raises(TypePromotionError, match="numpy_dtype_promotion is 'strict'"):
            promotion.promote_types("int32", "float32")
        with pytest.raises(TypePromotionError, match="Python float and int16"):
            promotion.result_type("int16", 1.0)
        assert promotion.result_type("int16", 1) == "int16"
    assert promotion.promote_types("int32", "float32") == "float32"


def test_extended_dtypes_promote_with_themselves_alone():
    class KeyDType(dtypes.ExtendedDType):
        name = "key<test>"

    key_dtype = KeyDType()
    assert promotion.promote((key_dtype, False), (key_dtype, False)) == (key_dtype, False)
    with pytest.raises(TypePromotionError, match=r"float32 and key<test> .*never promote"):
        promotion.promote((key_dtype, False), (dtypes.float32, False))


@pytest.mark.parametrize("d", [d for d in dtypes.ALL if dtypes.is_integer(d)], ids=str)
def test_integers_fit_up_to_the_limits_of_the_dtype(d):
    limits = dtypes.iinfo(d)
    for value in (int(limits.min), int(limits.max), 0):
        promotion.check_scalar_fits(value, d)
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(OverflowError, match=f"int {value} too large to convert to {d.name}"):
            promotion.check_scalar_fits(value, d)


def test_an_integer_that_does_not_fit_is_told_where_it_would():
    pattern = r"(?s)add: .*300 .*uint8\.\n  expected  a value from 0 to 255\n  hint      int16 h"
    with pytest.raises(OverflowError, match=pattern):
        promotion.check_scalar_fits(300, dtypes.uint8, "add")
    with pytest.raises(OverflowError, match="hint      uint64 holds it"):
        promotion.check_scalar_fits(2**64 - 1, dtypes.int64)
    with pytest.raises(OverflowError, match="a float holds it"):
        promotion.check_scalar_fits(2**64, dtypes.int64)
    with pytest.raises(OverflowError, match=r"(?s)of 20001 bits.*magnitude of at most 1\.8e308"):
        promotion.check_scalar_fits(2**20000, dtypes.float32)


def test_values_that_are_rounded_or_truncated_pass():
    for value, d in [(10**30, dtypes.float32), (1.5, dtypes.int8), (True, dtypes.int8)]:
        promotion.check_scalar_fits(value, d)
    promotion.check_scalar_fits(10**30, dtypes.bool_)
