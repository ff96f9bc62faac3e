"""Elementwise primitives: their NumPy rules against the oracle, on every sample."""

from __future__ import annotations

import functools
import importlib

import numpy as np
import pytest

from tests.nets.cells import IN_FULL, spread
from xnp import lax
from xnp.testing.samples.elementwise import values_of
from xprim import as_array, dtypes, get_primitive, primitives, shaped_array, state
from xprim.errors import MissingRuleError
from xprim.testing import Sample, check_shape

FAMILIES = ("elementwise", "special")
TABLE = {
    name: samples
    for family in FAMILIES
    for name, samples in importlib.import_module(f"xnp.testing.samples.{family}").TABLE.items()
}

# Where XLA itself is far from the exact value, the oracle of a function is SciPy, in test_special.
_INDEPENDENT = {"igamma_grad_a", "random_gamma_grad"}


@pytest.mark.parametrize("name", sorted(TABLE))
def test_numpy_rule_has_the_shape_and_dtype_that_the_shape_rule_says(name):
    for sample in TABLE[name]:
        check_shape(name, sample)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_numpy_rule_does_not_write_to_its_operands(name):
    primitive = get_primitive(name)
    for sample in TABLE[name][:6]:
        hosts = [np.array(x) for x in sample.operands]
        for host in hosts:
            host.flags.writeable = False
        state.run_quietly(primitive.rule("numpy"), *hosts, **dict(sample.params))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_numpy_rule_gives_of_scalars_what_it_gives_of_vectors(name):
    of_dtypes = {tuple([np.asarray(x).dtype for x in s.operands]): s for s in TABLE[name]}
    rule = get_primitive(name).rule("numpy")
    for sample in of_dtypes.values():
        if not all(np.size(x) for x in sample.operands):
            continue
        vectors = [np.ravel(x)[-1:] for x in sample.operands]
        scalars = [x.reshape(()) for x in vectors]
        found, expected = [
            state.run_quietly(rule, *hosts, **dict(sample.params)) for hosts in (scalars, vectors)
        ]
        for x, y in zip(found, expected, strict=True):
            assert (np.shape(x), np.asarray(x).dtype) == ((), y.dtype)
            np.testing.assert_array_equal(widened(x), widened(y)[0], err_msg=sample.label())


def widened(x):
    x = np.asarray(x)
    if dtypes.is_complex(x.dtype):
        return x.astype(np.complex128)
    return x.astype(np.float64) if dtypes.is_inexact(x.dtype) else x


@functools.cache
def oracle(name):
    jax = pytest.importorskip("jax")
    from jax._src.lax import lax as jax_lax, special

    for module in (jax_lax, special):
        found = getattr(module, f"{name}_p", None)
        if found is not None:
            return jax, found
    return jax, None


def ordinary(sample):
    """Whether the oracle takes these dtypes in its eager mode, and gives them one meaning."""
    dtype_names = {np.asarray(x).dtype.name for x in sample.operands}
    return dtype_names <= {
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "bfloat16", "float16", "complex64", "complex128",
    }  # fmt: skip


def chosen(name):
    """Return some samples of different dtypes and params; an ordinary run tries half of them."""
    found = {}
    for sample in TABLE[name]:
        if ordinary(sample):
            kinds = tuple(np.asarray(x).dtype.name for x in sample.operands)
            found[(kinds, tuple(sorted(map(str, sample.params.items()))))] = sample
    few = list(found.values())[:5]
    return few if IN_FULL else [few[k] for k in spread(name, [0] * len(few), 2)]


SAME_AS_ORACLE = sorted(
    set(TABLE) - _INDEPENDENT - {"convert_element_type", "polynomial", "optimization_barrier"}
)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", SAME_AS_ORACLE)
def test_numpy_rule_agrees_with_the_oracle(name):
    jax, primitive = oracle(name)
    if primitive is None:
        pytest.skip("this release of the oracle has no such primitive")
    tried = chosen(name)
    with jax.enable_x64(True):
        results = oracle_results(jax, primitive, tried, name)
    for sample, expected in zip(tried, results, strict=True):
        hosts = [np.asarray(x) for x in sample.operands]
        (found,) = state.run_quietly(
            get_primitive(name).rule("numpy"), *hosts, **dict(sample.params)
        )
        assert np.asarray(found).dtype == expected.dtype
        np.testing.assert_allclose(
            widened(found), widened(expected), rtol=sample.tolerance.rtol,
            atol=sample.tolerance.atol, err_msg=f"{name} {sample.label()}",
        )  # fmt: skip


def oracle_results(jax, primitive, tried, name):
    """Return what the oracle gives for some samples, in one program: compiling takes the time."""
    extra = _oracle_params(name)

    def program(operands_of_samples):
        return [
            primitive.bind(*operands, **params_of(jax, sample), **extra)
            for sample, operands in zip(tried, operands_of_samples, strict=True)
        ]

    return jax.jit(program)([operands_of(sample, name) for sample in tried])


def operands_of(sample, name):
    if name == "select_n":  # where scalars go with arrays
        return sample.operands
    shape = np.broadcast_shapes(*[np.shape(x) for x in sample.operands])
    if name == "clamp":  # the same of the bounds; the oracle repeats no operand between them
        low, x, high = sample.operands
        return [low, np.broadcast_to(x, shape), high]
    return [np.broadcast_to(x, shape) for x in sample.operands]


def params_of(jax, sample):
    params = dict(sample.params)
    if "rounding_method" in params:
        params["rounding_method"] = jax.lax.RoundingMethod(params["rounding_method"])
    return params


def _oracle_params(name):
    tunable = {"sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "logistic",
               "sin", "cos", "tan", "tanh", "erfc"}  # fmt: skip
    if name not in tunable:
        return {}
    import inspect

    import jax

    takes = "accuracy" in inspect.signature(getattr(jax.lax, name, lambda: 0)).parameters
    return {"accuracy": None} if takes else {}


@pytest.mark.parametrize("old", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "new", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool", "float16"]
)
def test_conversion_of_floats_agrees_with_the_compiled_oracle(old, new):
    jax = pytest.importorskip("jax")
    values = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 3.7, -3.7, 300, -300, 0.9, -0.9])
    x = values.astype(np.dtype(getattr(dtypes, old)))
    with jax.enable_x64(True):
        expected = jax.jit(lambda v: jax.lax.convert_element_type(v, new))(x)
    rule = get_primitive("convert_element_type").rule("numpy")
    (found,) = state.run_quietly(rule, x, new_dtype=np.dtype(new), weak_type=False)
    np.testing.assert_array_equal(found, expected)


def test_integer_division_by_zero_gives_all_bits_set():
    np.testing.assert_array_equal(lax.div(np.int32([7, -7]), np.int32([0, 0])), [-1, -1])
    np.testing.assert_array_equal(lax.div(np.uint8([7]), np.uint8([0])), [255])


def test_division_of_the_least_integer_by_minus_one_wraps_around():
    np.testing.assert_array_equal(lax.div(np.int32([-(2**31)]), np.int32([-1])), [-(2**31)])


def test_a_product_of_two_large_integers_keeps_its_upper_half():
    values = [2**63 - 1, -(2**63), 12345678901234567, -98765432109876543]
    x = np.array(values, np.int64)
    rule = get_primitive("mulhi").rule("numpy")
    for y in values:
        (found,) = rule(x, np.full_like(x, y))
        assert found.tolist() == [(v * y) >> 64 for v in values]


def test_every_elementwise_primitive_has_samples():
    families = (
        "elementwise", "conversion", "special_error", "special_gamma", "special_functions"
    )  # fmt: skip
    for family in families:
        module = importlib.import_module(f"xnp.primitives.{family}")
        held = set(map(id, vars(module).values()))  # arrays among them do not compare as one
        own = {p.name for p in primitives() if id(p) in held}
        assert own <= set(TABLE), family


def test_a_nonlinear_primitive_says_that_it_has_no_transpose():
    with pytest.raises(MissingRuleError, match="sin: has no transpose rule: it is not linear"):
        get_primitive("sin").rule("transpose")


def test_sign_keeps_negative_zero_and_nan():
    found = np.asarray(lax.sign(np.float32([-0.0, np.nan])))
    assert np.signbit(found[0]) and np.isnan(found[1])


def test_total_order_tells_zeros_apart_and_orders_nan():
    x = np.array([-np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan], np.float32)
    (found,) = get_primitive("lt_to").rule("numpy")(x[:-1], x[1:])
    assert found.all()
    assert not get_primitive("eq_to").rule("numpy")(x[3:4], x[4:5])[0].any()


def test_a_copy_is_not_a_view():
    x = as_array(np.float32([1, 2]))
    assert get_primitive("copy").bind(x)[0].to_host() is not x.to_host()


@pytest.mark.parametrize("name", sorted(set(TABLE) - {"convert_element_type", "select_n",
                                                      "bitcast_convert_type"}))  # fmt: skip
def test_numpy_rule_covers_every_dtype_that_the_shape_rule_takes(name):
    sample = TABLE[name][0]
    taken = 0
    for dtype in dtypes.ALL:
        params = dict(sample.params)
        if "input_dtype" in params:
            params["input_dtype"] = dtype
        operands = [np.resize(values_of(dtype), 4)] * len(sample.operands)
        avals = tuple([shaped_array(x.shape, x.dtype) for x in operands])
        try:
            get_primitive(name).infer(avals, params)
        except TypeError:
            continue
        check_shape(name, Sample(operands, params))
        taken += 1
    assert taken


def test_there_is_a_conversion_between_any_two_dtypes():
    for old in dtypes.ALL:
        for new in dtypes.ALL:
            params = {"new_dtype": new, "weak_type": False}
            check_shape("convert_element_type", Sample([values_of(old)], params))


def test_integers_that_no_dtype_holds_become_floats():
    assert float(lax.convert_element_type(2**100, "float32")) == 2.0**100
    assert complex(lax.convert_element_type(-(2**70), "complex64")) == -(2.0**70)
