"""The faults of XLA that programs are rewritten around are there, for the versions named."""

import importlib.metadata
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import xnp
from xjit import jaxlib_gateway as gateway, jit
from xjit.export import deserialize, export
from xjit.jaxlib_gateway import FOLDS_DIVISION_BY_ZERO
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec
from xjit.xla_workarounds import arithmetic, fusion
from xjit.xla_workarounds.arithmetic import EXTREMES, EXTREMES_OF_TWO
from xjit.xla_workarounds.partitioning import REWRITTEN, _pad_in_steps
from xnp import lax
from xprim import config, dtypes

DIVIDE_AS_IT_IS = """
import numpy as np
from xjit import jit
from xjit.lowering import stablehlo_text
from xnp import lax
stablehlo_text.GUARDED = frozenset()
x = np.arange(3, dtype=np.int32)
jit(lambda x: lax.div(np.int32(7), x * 0)).lower(x).compile()
print("went on")
"""


def test_xla_ends_the_process_by_constants_divided_by_zero_where_we_say_so():
    # where this fails, XLA is repaired: FOLDS_DIVISION_BY_ZERO and write_division can go
    done = subprocess.run(
        [sys.executable, "-c", DIVIDE_AS_IT_IS],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode < 0) == FOLDS_DIVISION_BY_ZERO, (done.returncode, done.stderr[-2000:])
    assert FOLDS_DIVISION_BY_ZERO or done.stdout == "went on\n"


SPLIT_AS_IT_IS = """
import numpy as np
import xnp
from xjit import devices, jit
from xjit.jaxlib_gateway import XlaError
from xjit.lowering import modules
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, P
from xnp import lax
from xprim import get_primitive
modules.REWRITTEN = frozenset()
mesh = Mesh(np.array(devices("cpu")[:8]).reshape(2, 4), ("x", "y"))
x = np.arange(1, 33, dtype=np.float32).reshape(8, 4)
windows = {{"window_dimensions": (3, 1), "window_strides": (1, 1)}}
images = np.random.default_rng(0).uniform(-1, 1, (8, 4, 8)).astype(np.float32)
kernels = np.random.default_rng(1).uniform(-1, 1, (4, 4, 3)).astype(np.float32)
def f(*operands):
    {program}
operands, ins, out = {operands}, {ins}, {out}
ins = tuple([NamedSharding(mesh, spec) for spec in ins])
outs = [NamedSharding(mesh, spec) for spec in (out if type(out) is tuple else (out,))]
outs = tuple(outs) if type(out) is tuple else outs[0]
found = jit(f, in_shardings=ins, out_shardings=outs)(*operands)
try:
    is_right = np.allclose(found, f(*operands), atol=1e-3)
except XlaError:  # pieces of wrong sizes
    is_right = False
assert not is_right, "XLA is repaired"
"""
SPLIT_WRONGLY = {
    "pad": ("return lax.pad(operands[0], np.float32(0), [(0, 1, 1), (0, 0, 0)])",
            "(x,)", "(P(),)", 'P("x")'),
    "reduce_window_sum": ("return lax.reduce_window(operands[0], np.float32(0), lax.add, "
                          "**windows, padding=((1, 2), (0, 0)), base_dilation=(2, 1))",
                          "(x,)", "(P(),)", 'P("x")'),
    "select_and_gather_add": (
        "return lax.select_and_gather_add_p.bind(*map(xnp.asarray, operands), **windows, "
        "padding=((1, 1), (0, 0)), "
        'select_prim=get_primitive("ge"), base_dilation=(1, 1), window_dilation=(1, 1))[0]',
        "(x, x)", '(P("x"), P("x"))', 'P("y")'),
    "conv_general_dilated": (
        'return lax.conv_general_dilated(*operands, (1,), "SAME", batch_group_count=2)',
        "(images, kernels)", '(P(None, "x"), P("y"))', 'P("x")'),
    "dynamic_update_slice": (
        "return lax.dynamic_update_slice(*map(xnp.asarray, operands), (np.int32(99), 0))",
        "(x, -x[:1])", '(P("x"), P())', 'P("x")'),
    "dot_general": (
        "return (operands[0][:, None] * operands[1]) @ operands[1]",
        "(xnp.arange(8.0), xnp.ones(8))", '(P(), P(("x", "y")))', 'P("y")'),
    "scatter_add": (
        "y = xnp.asarray(operands[0]).at[7].add(1.5); return y, y.at[4].add(1.5)",
        "(x,)", "(P(),)", '(P("x"), P(None, "x"))'),
}  # fmt: skip
# The jaxlib from which on XLA has a fault that earlier ones do not have; that which repairs one.
SINCE = {"dot_general": (0, 12)}
BEFORE = {"scatter_add": (0, 12)}
JAXLIB = tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2]))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", SPLIT_WRONGLY)
def test_xla_splits_operations_wrongly_or_ends_the_process(name):
    # where this fails, XLA is repaired: the operation can leave REWRITTEN
    if SINCE.get(name, (0,)) > JAXLIB or BEFORE.get(name, (99,)) <= JAXLIB:
        pytest.skip("this jaxlib splits it rightly")
    assert name in REWRITTEN
    program, operands, ins, out = SPLIT_WRONGLY[name]
    code = SPLIT_AS_IT_IS.format(program=program, operands=operands, ins=ins, out=out)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "XSTACK_NUM_CPU_DEVICES": "8"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode <= 0, done.stderr[-2000:]


@pytest.mark.parametrize("size", range(4))
def test_padding_in_steps_is_padding(size):
    x, value = lax.full((), 0.5, np.float32) + np.arange(size, dtype=np.float32), np.float32(0.25)
    for low, high, interior in itertools.product(range(-5, 4), range(-5, 4), range(3)):
        if low + high + (size and size + (size - 1) * interior) >= 0:
            config = ((low, high, interior),)
            (found,) = _pad_in_steps(x, lax.full((), value), padding_config=config)
            np.testing.assert_array_equal(found, lax.pad(x, value, config), str(config))


def test_dimensions_of_several_kinds_are_padded_pad_in_steps():
    x = lax.full((), 0.0, np.float32) + np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    config = (-1, 3, 2), (1, 0, 0), (2, -3, 1)
    (found,) = _pad_in_steps(x, lax.full((), np.float32(7)), padding_config=config)
    np.testing.assert_array_equal(found, lax.pad(x, np.float32(7), config))


EXTREMES_AS_THEY_ARE = """
import numpy as np
from xjit import jit
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec
from xjit.xla_workarounds import arithmetic, fusion
from xnp import lax
arithmetic.EXTREMES = arithmetic.EXTREMES_OF_TWO = frozenset()
x = np.ones((64, 128), np.float32)
x[3, 7] = np.nan
windows = {"window_dimensions": (2, 2), "window_strides": (2, 2), "padding": "VALID"}
programs = {
    "reduce_max": lambda x: lax.reduce_max(x, axes=(0, 1)),
    "reduce_min": lambda x: lax.reduce_min(x, axes=(1,)),
    "reduce_window_max": lambda x: lax.reduce_window(x, -np.inf, lax.max, **windows),
    "reduce_window_min": lambda x: lax.reduce_window(x, np.inf, lax.min, **windows),
    "max": lambda x: lax.max(x, 0.0).sum(1),
    "min": lambda x: lax.min(x * x.sum(1, keepdims=True), 0.5),
}
print(*[name for name, f in programs.items() if not np.isnan(np.asarray(jit(f)(x))).any()])
"""


def test_xla_loses_nan_among_extremes():
    # where this fails, XLA is repaired: the primitive can leave extremes
    done = subprocess.run(
        [sys.executable, "-c", EXTREMES_AS_THEY_ARE],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert {*done.stdout.split()} == EXTREMES | EXTREMES_OF_TWO, done.stderr[-2000:]


HALVES = np.linspace(0.5, 40, 80, dtype=np.float32)
NAN_BY_CONSTANTS = {
    "a literal": lambda x: lax.exp(x * np.float32(np.nan)),
    "a literal of half precision": lambda x: lax.exp(x.astype(np.float16) * np.float16(np.nan)),
    "a literal beneath a call": lambda x: jit(lambda x: lax.exp(x - np.float32(np.nan)))(x),
    "a literal in a branch": lambda x: lax.cond(
        x[0] > 0, lambda x: lax.exp(x * np.float32(np.nan)), lambda x: x, x),
    "a small array": lambda x: lax.exp(x[:2] * xnp.asarray([np.nan, np.nan], np.float32)),
    "a function of a literal": lambda x: lax.exp(x / xnp.sqrt(-2.0)),
    "a function of a filled array": lambda x: lax.exp(lax.log(xnp.full(80, -2.0)) - 1 + x),
    "no number by infinities": lambda x: lax.exp(lax.full((), np.inf) * 0 * x),
    "sinh": lambda x: lax.sinh(x + np.float32(np.nan)),
    "expm1": lambda x: lax.expm1(x.astype(dtypes.bfloat16) * np.nan),
    "complex sin": lambda x: lax.sin(lax.complex(x, x) * np.complex64(np.nan)),
    "a few elements": lambda x: lax.exp(
        x.reshape(20, 4) + xnp.asarray([np.nan, np.inf, -np.nan, 1], np.float32))[:, ::2],
}  # fmt: skip


def _results_of_nan(compiled=jit):
    """Return the names of programs whose results are not NaN."""
    found = set()
    for name, f in NAN_BY_CONSTANTS.items():
        np.asarray(jit(lambda x: x * 2)(HALVES))  # what memory holds that is given back
        result = np.asarray(compiled(lambda x, f=f: f(x))(xnp.asarray(HALVES)))
        with np.errstate(invalid="ignore"):  # any bits may come, those of a signaling NaN, too
            is_nan = np.isnan(result)
        if not is_nan.all():
            found.add(name)
    return found


def test_exponentials_of_nan_by_constants_are_nan():
    assert not _results_of_nan()


def test_xla_loses_results_of_nan_by_constants_where_we_say_so(monkeypatch):
    # where this fails, XLA is repaired: LOSES_RESULTS_OF_NAN and what it guards can go
    monkeypatch.setattr(arithmetic, "LOSES_RESULTS_OF_NAN", False)
    assert bool(_results_of_nan()) == gateway.LOSES_RESULTS_OF_NAN


def _read(f):
    """Return a function as it is after it was exported, and read."""
    return deserialize(export(jit(f))(HALVES).serialize()).call


def test_exponentials_of_nan_by_constants_of_exported_programs_are_nan():
    assert not _results_of_nan(_read)


def test_programs_exported_where_xla_is_right_are_right_where_it_is_not(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(arithmetic, "LOSES_RESULTS_OF_NAN", False)
        exported = {f: export(jit(f))(HALVES) for f in NAN_BY_CONSTANTS.values()}
    assert not _results_of_nan(lambda f: exported[f.__defaults__[0]].call)


def test_constants_of_stored_programs_that_are_no_nan_stay_as_they_are():
    text = f"""\
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<[1.0, 0xFF800000]> : tensor<2xf32>
    %cst_1 = stablehlo.constant dense<"0x{np.arange(16.0).tobytes().hex()}"> : tensor<16xf64>
    %c = stablehlo.constant dense<2143289344> : tensor<i32>
"""
    assert arithmetic.hide_stored_nan(text, "cpu") == text


def test_nan_that_is_selected_stays_a_constant_and_nan_is_one_argument():
    text = jit(lambda x: xnp.where(x > 1, x, np.nan)).lower(HALVES).as_text()
    assert "%c0" not in text
    text = jit(lambda x: (x * np.nan, x / np.nan, x * 2)).lower(HALVES).as_text()
    assert ("%c0" in text) == gateway.LOSES_RESULTS_OF_NAN
    assert "%c1" not in text


@pytest.mark.parametrize("size", [1, 15, 64, 100, 1000, 1024])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arc_tangents_of_few_elements_are_right_with_wide_registers(size, dtype):
    with config.enable_x64(True):
        x = np.random.default_rng(size).normal(size=size).astype(dtype)
        for name, f in {
            "alone": jit(lambda x: xnp.arctan(x)),
            "of a point": jit(lambda x: xnp.arctan2(x, 1) + 0 * xnp.exp(x)),
        }.items():
            np.testing.assert_allclose(f(x), np.arctan(x), 4 * np.finfo(dtype).eps, err_msg=name)


def test_xla_computes_wide_arc_tangents_of_other_numbers_where_we_say_so():
    # where this fails, XLA is repaired: HAS_WRONG_WIDE_ATAN can go
    if not gateway.has_wide_registers():
        pytest.skip("this processor has no vectors of 512 bits")
    wide = {"xla_cpu_prefer_vector_width": 512}
    found = jit(lambda x: lax.atan(x), compiler_options=wide)(HALVES)
    assert np.allclose(found, np.arctan(HALVES), 1e-5) != gateway.HAS_WRONG_WIDE_ATAN


SLICE_AS_IT_IS = """
import numpy as np
from xjit import jit
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec
from xjit.xla_workarounds import arithmetic, fusion
from xnp import lax
arithmetic.SLICED = frozenset()
f = jit(lambda x, i, k: lax.dynamic_slice(lax.dynamic_slice(x, (i,), (4,)), (k,), (2,)))
print(np.asarray(f(np.arange(16, dtype=np.float32), np.int32(3), np.int32(9))).tolist())
"""


def test_xla_merges_slices_of_slices_as_if_starts_fitted_where_we_say_so():
    # where this fails, XLA is repaired: SLICES_BEYOND_PIECES and clamp_starts can go
    done = subprocess.run(
        [sys.executable, "-c", SLICE_AS_IT_IS],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    is_wrong = done.stdout.strip() != "[5.0, 6.0]"
    assert is_wrong == gateway.SLICES_BEYOND_PIECES, done.stdout


def window(x, i):
    return lax.dynamic_slice(x, (i, 0), (4, 8))


OF_SLICES = {
    "a slice": lambda x, i, k: lax.dynamic_slice(window(x, i), (k, 0), (2, 8)),
    "a slice of columns": lambda x, i, k: lax.dynamic_slice(window(x, i).T, (0, k), (8, 2)),
    "a row": lambda x, i, k: window(x, i).at[k].get(mode="clip"),
    "an element": lambda x, i, k: window(x, i).at[k, i].get(mode="clip"),
    "an element of a row": lambda x, i, k: x.at[i].get(mode="clip").at[k].get(mode="clip"),
    "a row of a slice in a loop": lambda x, i, k: lax.fori_loop(
        0, 2, lambda t, c: c + lax.dynamic_slice(window(x, i + t), (k - t, 0), (2, 8)), x[:2]),
    "a slice of what a scan reads": lambda x, i, k: lax.scan(
        lambda c, row: (c, lax.dynamic_slice(row, (k,), (3,))), 0, window(x, i))[1],
    "an update of a slice": lambda x, i, k: lax.dynamic_update_slice(window(x, i), x[:2], (k, 0)),
    "a start of 8 bits": lambda x, i, k: lax.dynamic_slice(
        window(x, i), (k.astype("int8"), lax.convert_element_type(0, "int8")), (2, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_SLICES)
def test_slices_of_slices_are_clamped_one_after_the_other(name):
    x = xnp.asarray(np.arange(64, dtype=np.float32).reshape(8, 8))
    compiled = jit(OF_SLICES[name])
    for i, k in itertools.product([0, 3, 9, -2], [0, 3, 9, -3]):
        wanted = OF_SLICES[name](x, xnp.int32(i), xnp.int32(k))  # by NumPy
        found = compiled(x, np.int32(i), np.int32(k))
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted), err_msg=f"{i} {k}")


UPDATE = {
    "set": lambda x, i: x.at[i].set(-1),
    "add": lambda x, i: x.at[i].add(-1),
    "max": lambda x, i: x.at[i].max(900),
    "of a slice": lambda x, i: lax.dynamic_update_slice(x, xnp.zeros((1, 4, 8)), (i, 0, 0)),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", UPDATE)
def test_rows_of_an_array_that_is_cut_between_two_updates_are_right(name, traced):
    # XLA reads the rows that it leaves alone by a slice of the slice that cut the array
    devices = np.array(gateway.all_devices("cpu")[:2])
    if len(devices) < 2:
        pytest.skip("it takes two devices")
    rows = NamedSharding(Mesh(devices, ("x",)), PartitionSpec("x"))
    x = np.arange(128, dtype=np.float32).reshape(4, 4, 8)

    def twice(x, i, k):
        first = UPDATE[name](x, i)
        return first, UPDATE[name](first, k)

    for i, k in [(3, 2), (0, 1), (2, 2), (1, 3)]:
        if traced:
            found = jit(twice, out_shardings=(rows, None))(x, np.int32(i), np.int32(k))
        else:
            fixed = jit(lambda x, i=i, k=k: twice(x, i, k), out_shardings=(rows, None))
            found = fixed(x)
        for y, wanted in zip(found, twice(xnp.asarray(x), i, k), strict=True):
            np.testing.assert_array_equal(np.asarray(y), np.asarray(wanted), err_msg=f"{i} {k}")


def _sums_of_repeated_factors(m, w, p, v):
    return {
        "beside the product": lambda q: (p * q).sum(2, keepdims=True) + q,
        "of functions": lambda q: (m.cos(p) * m.tanh(q)).sum(2, keepdims=True) * v,
        "of two repeated ones": lambda q: ((p * v) * q).sum(2, keepdims=True) * p,
    }


@pytest.mark.parametrize("where", ["alone", "in a loop", "in a call"])
@pytest.mark.parametrize("name", ["beside the product", "of functions", "of two repeated ones"])
def test_sums_of_products_with_a_repeated_factor_are_right_beside_a_product_of_matrices(
    name, where
):
    rng = np.random.default_rng(0)
    x, w, p, v = [rng.normal(size=s).astype(np.float32)
                  for s in ((32, 64, 64), (64, 64), (64, 64), (64,))]  # fmt: skip
    f = _sums_of_repeated_factors(xnp, w, p, v)[name]
    program = {
        "alone": lambda x: f(x @ w),
        "in a loop": lambda x: lax.map(lambda c: f((x + c) @ w), np.zeros(2, np.float32))[1],
        "in a call": lambda x: jit(f)(x @ w),
    }[where]  # fmt: skip
    expected = _sums_of_repeated_factors(np, w, p, v)[name](x.astype(np.float64) @ w)
    # 64 and 64 terms of float32
    np.testing.assert_allclose(jit(program)(x), expected, rtol=1e-4, atol=64 * 64 * 1e-6)


def test_xla_misreads_repeated_factors_where_we_say_so(monkeypatch):
    # where this fails, XLA is repaired: MISREADS_REPEATED_FACTORS and sums_to_fence can go
    monkeypatch.setattr(fusion, "MISREADS_REPEATED_FACTORS", False)
    rng = np.random.default_rng(0)
    x, w, p = [rng.normal(size=s).astype(np.float32) for s in ((32, 64, 64), (64, 64), (64, 64))]
    found = jit(lambda x: (p * (x @ w)).sum(2, keepdims=True) + x)(x)
    is_right = np.allclose(found, (p * (x @ w)).sum(2, keepdims=True) + x, rtol=1e-3, atol=1e-1)
    assert is_right != gateway.MISREADS_REPEATED_FACTORS
