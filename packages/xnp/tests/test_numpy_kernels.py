"""Programs of NumPy calls: they give what the primitives give one by one, with less memory."""

from __future__ import annotations

import functools
import itertools
import operator
import tracemalloc
from typing import Any

import numpy as np
import pytest

import xnp
from xnp import lax
from xnp.numpy import dispatch
from xnp.testing.samples import TABLE
from xprim import (
    ClosedJaxpr,
    ConcreteArray,
    config,
    dtypes,
    eval_closed,
    get_primitive,
    shaped_array,
    state,
    trace_to_jaxpr,
)
from xprim.kernels import KernelTable, Refusal, numpy_function, same_elements
from xprim.testing import check_ufunc, functions_entered

LARGE = np.linspace(-2, 2, 3000 * 8, dtype=np.float32).reshape(3000, 8)
OTHER = np.linspace(5, 1, 3000 * 8, dtype=np.float32).reshape(3000, 8)
ROW = np.linspace(1, 2, 8, dtype=np.float32)
COLUMN = np.linspace(1, 2, 3000, dtype=np.float32).reshape(3000, 1)


def rows(x: Any, shape: Any = (3000, 8)) -> Any:
    """Repeat a vector along leading dimensions."""
    return lax.broadcast_in_dim(x, shape, (len(shape) - 1,))


def twice(x: Any) -> Any:
    """Double by a primitive that NumPy has as a function of its own."""
    return lax.add(x, x)


def kept_and_used(x: Any, y: Any) -> Any:
    d = lax.sub(x, y)
    return lax.mul(d, d), d


def seen_in_another_shape(x: Any, y: Any) -> Any:
    d = lax.sub(x, y)
    flat = lax.reshape(d, (24000,))
    return lax.neg(d), flat


def used_again_later(x: Any, y: Any) -> Any:
    d = lax.sub(x, y)
    e = lax.mul(d, x)
    return (lax.add(e, d),)


def a_result_twice(x: Any, y: Any) -> Any:
    d = lax.sub(lax.sub(x, y), x)
    return d, d


def a_view_of_an_argument(x: Any, y: Any) -> Any:
    return (lax.neg(lax.reshape(x, (8, 3000))), x)


def row_used_otherwise(x: Any, row: Any) -> Any:
    whole = rows(row)
    return lax.sub(x, whole), lax.exp(whole)


def row_as_result(x: Any, row: Any) -> Any:
    whole = rows(row)
    return lax.mul(x, whole), whole


def two_rows(x: Any, row: Any) -> Any:
    return (lax.add(rows(row), rows(twice(row))), lax.mul(rows(row), x))


def row_of_a_row(x: Any, row: Any) -> Any:
    once = rows(row, (1, 8))
    return (lax.sub(lax.broadcast_in_dim(once, (3000, 8), (0, 1)), x),)


def row_turned_into_a_column(x: Any, row: Any) -> Any:
    short = lax.slice(x, (0, 0), (8, 8))
    return (lax.sub(short, lax.broadcast_in_dim(row, (8, 8), (0,))),)


def number_spread(x: Any, row: Any) -> Any:
    return (lax.mul(x, lax.broadcast_in_dim(lax.slice(row, (0,), (1,))[0], (3000, 8), ())),)


def variance(x: Any, row: Any) -> Any:
    centered = lax.sub(x, rows(row))
    return (lax.reduce_sum(lax.integer_pow(centered, 2), (0,)),)


def compared(x: Any, y: Any) -> Any:
    d = lax.sub(x, y)
    return lax.lt(d, x), lax.bitwise_not(lax.lt(lax.sub(y, x), y))


OF_TWO = [kept_and_used, seen_in_another_shape, used_again_later, a_result_twice,
          a_view_of_an_argument, compared]  # fmt: skip
OF_ROWS = [row_used_otherwise, row_as_result, two_rows, row_of_a_row, row_turned_into_a_column,
           number_spread, variance]  # fmt: skip


def compiled(function: Any, *args: Any) -> Any:
    avals = [shaped_array(a.shape, a.dtype) for a in args]
    return numpy_function(ClosedJaxpr(*trace_to_jaxpr(function, avals)))


@pytest.mark.parametrize(
    ("function", "args"),
    [(f, (LARGE, OTHER)) for f in OF_TWO] + [(f, (LARGE, ROW)) for f in OF_ROWS],
)
def test_a_program_gives_what_its_primitives_give_and_leaves_the_arguments_alone(function, args):
    given = [a.copy() for a in args]
    results = compiled(function, *args)(*given)
    expected = [np.asarray(r) for r in function(*args)]
    assert len(results) == len(expected)
    for got, wanted in zip(results, expected, strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(got, wanted)
    for after, before in zip(given, args, strict=True):
        np.testing.assert_array_equal(after, before)


def _arrays_at_once(program: Any, *args: Any) -> float:
    """Return the peak of new memory, in arrays of the size of the first argument."""
    program(*args)
    tracemalloc.start()
    try:
        program(*args)
        return tracemalloc.get_traced_memory()[1] / args[0].nbytes
    finally:
        tracemalloc.stop()


def test_a_chain_of_large_operations_needs_the_memory_of_one_result():
    def chain(x: Any, y: Any) -> Any:
        return (lax.neg(lax.integer_pow(lax.mul(lax.sub(x, y), x), 2)),)

    # A little more than one: the objects around the elements.
    assert _arrays_at_once(compiled(chain, LARGE, OTHER), LARGE, OTHER) < 1.1


@pytest.mark.parametrize(("piece", "dims"), [(ROW, (1,)), (COLUMN, (0, 1))])
def test_what_numpy_repeats_itself_is_not_written_out(piece, dims):
    def centered(x: Any, piece: Any) -> Any:
        return (lax.sub(x, lax.broadcast_in_dim(piece, (3000, 8), dims)),)

    # The result, a row as long as the loops of NumPy like it (`memory_order`), and
    # NumPy's own buffers: 1.52 arrays, and 1.35. With the piece written out there are at least 2.
    assert _arrays_at_once(compiled(centered, LARGE, piece), LARGE, piece) < 1.75


def test_narrow_floats_keep_their_own_rules():
    args = [a.astype(np.float16) for a in (LARGE, OTHER)]
    (got,) = compiled(used_again_later, *args)(*args)
    np.testing.assert_array_equal(got, np.asarray(used_again_later(*args)[0]))


WITH_UFUNC = [n for n in sorted(TABLE) if "ufunc" in get_primitive(n).rules]


@pytest.mark.parametrize("name", WITH_UFUNC)
def test_the_call_that_a_ufunc_rule_names_equals_the_numpy_rule(name):
    for sample in TABLE[name]:
        check_ufunc(name, sample)


def test_the_functions_that_programs_are_made_of_have_ufunc_rules():
    assert {"add", "mul", "sin", "exp", "lt", "select_n", "reshape", "transpose", "reduce_sum",
            "integer_pow", "broadcast_in_dim", "not", "div"} <= set(WITH_UFUNC)  # fmt: skip


def test_the_thirtieth_sine_enters_at_most_four_functions():
    x = xnp.asarray(ROW)
    for _ in range(29):
        xnp.sin(x)
    assert len(functions_entered(lambda: xnp.sin(x))) - 1 <= 4  # the lambda itself


def test_a_program_whose_calls_are_compared_gives_the_same():
    def centered(x: Any, row: Any) -> Any:
        return (lax.integer_pow(lax.sub(x, rows(row)), 2),)

    with config.enable_checks(True):
        checked = compiled(centered, LARGE, ROW)
    np.testing.assert_array_equal(
        checked(LARGE, ROW)[0], compiled(centered, LARGE, ROW)(LARGE, ROW)[0]
    )


SAME_SHAPE = sorted(set(WITH_UFUNC) - {
    "broadcast_in_dim", "reduce_sum", "reshape", "select_n", "squeeze", "transpose",
})  # fmt: skip


def _twice(name: str, count: int) -> Any:
    """Return a function that applies a primitive to its own result, whose memory is free then."""
    primitive = get_primitive(name)
    params = TABLE[name][0].params if name == "integer_pow" else {}

    def function(*xs: Any) -> Any:
        (once,) = primitive.bind(*xs, **params)
        return primitive.bind(*[once] * count, **params) if once.dtype == xs[0].dtype else (once,)

    return function


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_every_dtype_gives_the_same_in_small_and_in_large_memory(name):
    count = len(TABLE[name][0].operands)
    for dtype, size in itertools.product(dtypes.ALL, (3, 10000)):
        x = (np.arange(size) % 4).astype(dtype)
        avals = [shaped_array(x.shape, x.dtype)] * count
        try:
            program = ClosedJaxpr(*trace_to_jaxpr(_twice(name, count), avals))
        except TypeError:  # the primitive does not take this dtype
            continue
        try:
            kernel = numpy_function(program)
        except Refusal:
            continue
        expected = eval_closed(program, *[ConcreteArray(x.copy(), avals[0])] * count)
        (got,) = state.run_quietly(kernel, *[x] * count)
        assert same_elements(got, expected[0].to_host())


def test_a_scalar_of_numpy_that_a_rule_gave_is_reshaped_as_an_array():
    aval = shaped_array((), dtypes.float32)
    program = ClosedJaxpr(*trace_to_jaxpr(lambda x: [lax.reshape(x, (1, 1))], [aval]))
    assert numpy_function(program)(np.float32(2))[0].tolist() == [[2]]


def _powers(x: Any) -> Any:
    return lax.while_loop(lambda s: lax.lt(s[0], 5), lambda s: (s[0] + 1, s[1] * x), (0, x))[1]


def _many_steps(x: Any) -> Any:
    return lax.while_loop(lambda s: lax.lt(s[0], 3000), lambda s: (s[0] + 1, s[1] + x), (0, x))[1]


def _no_step(x: Any) -> Any:
    return lax.while_loop(lambda s: lax.lt(s[0], 0), lambda s: (s[0] + 1, s[1] + x), (0, x))[1]


def _sums(x: Any, reverse: bool = False) -> Any:
    return lax.scan(lambda c, y: (c + y, c * y), x[0], x, reverse=reverse)[1]


def _loop_in_a_loop(x: Any) -> Any:
    return lax.scan(lambda c, y: (_powers(c) * 0.5 + y, c), x[0], x)[0]


@pytest.mark.parametrize(
    "function",
    [_powers, _many_steps, _no_step, _sums, functools.partial(_sums, reverse=True),
     _loop_in_a_loop],
)  # fmt: skip
def test_a_kernel_runs_the_loops_in_it_as_their_rules_do(function):
    x = np.float32([0.5, 1.25, -0.75])
    program = ClosedJaxpr(*trace_to_jaxpr(lambda x: [function(x)], [shaped_array((3,), x.dtype)]))
    (expected,) = eval_closed(program, ConcreteArray(x.copy(), shaped_array((3,), x.dtype)))
    (got,) = state.run_quietly(numpy_function(program), x)
    assert same_elements(got, expected.to_host())


# --- the cache of eager calls ---------------------------------------------------------------------

OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "equal": operator.eq, "less": operator.lt, "greater_equal": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("other", [np.float32([3, 1]), 2.0, 3], ids=["array", "float", "int"])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_finds_the_kernel_of_its_function(name, other):
    x = xnp.asarray(np.float32([[1, 2]] * 7))
    y = other if isinstance(other, float | int) else xnp.asarray(other)
    expected = getattr(xnp, name)(x, y)
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelTable, "make", lambda *args: made.append(args))
        result = OPERATORS[name](x, y)
    assert made == []
    assert result.aval is expected.aval
    np.testing.assert_array_equal(result, expected)


def test_kernels_of_one_function_for_scalars_and_arrays_are_apart():
    x = xnp.asarray(np.int8([1, 2]))
    for _ in range(3):
        assert (x + 1).dtype == xnp.int8
        assert (x + xnp.asarray(1)).dtype == xnp.int8  # weak
        assert (x + xnp.asarray(np.int32(1))).dtype == xnp.int32
        assert (x + 1.5).dtype == xnp.float32
        with pytest.raises(OverflowError, match=r"^add: "):
            x + 1000


def test_one_bound_holds_for_all_eager_calls():
    table = dispatch._kernels
    assert [t for t in vars(dispatch).values() if isinstance(t, KernelTable)] == [table]
    xnp.sin(xnp.zeros(3))
    assert 0 < len(table) <= table.limit


def test_a_power_is_as_weak_as_its_operands_in_every_call():
    exponent = xnp.asarray(np.int8([0, 1, 3]))
    assert [xnp.power(2, exponent).weak_type for _ in range(3)] == [False] * 3
    assert not xnp.power(xnp.asarray(2), np.int32([1, 2])).weak_type
    assert xnp.power(xnp.asarray(2), xnp.asarray(3)).weak_type
