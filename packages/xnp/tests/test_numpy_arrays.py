"""Arrays as users meet them: conversions, operators with foreign values, printing, refusals."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xnp
import xtree
from xnp import lax
from xprim import Array, Tracer, config, errors, eval_closed, make_jaxpr


def test_numpy_input_takes_32_bits_unless_a_dtype_is_asked_for() -> None:
    assert xnp.array(np.arange(3.0)).dtype == np.float32
    assert xnp.array(1, dtype="float64").dtype == np.float64
    assert xnp.asarray(np.arange(3)).dtype == np.int32
    with config.enable_x64(True):
        assert xnp.array(1.5).dtype == np.float64
        assert (xnp.array(1.5) * 2).dtype == np.float64
    assert (xnp.array(1.5) * 2).dtype == np.float32


def test_an_array_does_not_share_memory_that_the_user_can_write() -> None:
    host = np.ones(3, np.float32)
    x = xnp.array(host)
    host[0] = 7
    assert x[0] == 1
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5


def test_operators_with_numpy_arrays_give_our_arrays() -> None:
    x = xnp.ones(3)
    for result in (np.ones(3) + x, x + np.ones(3), np.float32(2) * x, x @ np.ones(3)):
        assert isinstance(result, Array)
        assert result.dtype == np.float32


def test_scalar_types_make_arrays_and_serve_as_dtypes() -> None:
    x = xnp.float32(1.5)
    assert isinstance(x, Array)
    assert x.dtype == xnp.float32
    assert np.dtype(xnp.int8) == np.int8
    assert xnp.zeros(2, xnp.bfloat16).dtype == xnp.bfloat16


def test_python_scalars_take_part_as_weak_types() -> None:
    assert (xnp.ones(2, "int8") + 1).dtype == np.int8
    assert xnp.array(2.0).weak_type
    assert not xnp.array([2.0]).weak_type
    assert not (xnp.array(2.0) * xnp.ones(2)).weak_type


def test_the_text_of_arrays() -> None:
    assert repr(xnp.array([1.0, 2.0])) == "Array([1., 2.], dtype=float32)"
    assert repr(xnp.array(1.0)) == "Array(1., dtype=float32, weak_type=True)"
    assert repr(xnp.zeros((0, 3))) == "Array([], shape=(0, 3), dtype=float32)"
    assert f"{xnp.array(1.25):.1f}" == "1.2"
    assert str(xnp.arange(3)) == "[0 1 2]"


def test_the_jaxpr_of_operators_has_literals() -> None:
    x = xnp.ones(3)
    assert "integer_pow[y=2] a" in str(make_jaxpr(lambda v: v**2)(x))
    assert "mul a 2.0:f32[]" in str(make_jaxpr(lambda v: v * 2.0)(x))
    assert len(make_jaxpr(lambda v: v[1:] + 1)(x).eqns) == 2


@pytest.mark.parametrize("number", [True, 3, 2.5])
@pytest.mark.parametrize("value", [4, 1.5, 2j, np.float32(1.5)])
def test_numbers_beside_a_traced_number_of_another_kind_are_literals(
    number: Any, value: Any
) -> None:
    programs = []

    def outer(x: Any) -> Any:
        programs.append(make_jaxpr(lambda: (number * x, x + number))())
        return number * x

    found = make_jaxpr(outer)(value)
    (inner,) = programs
    assert len(inner.consts) == 1 and isinstance(inner.consts[0], Tracer), inner
    product = xnp.array(number) * xnp.array(value)
    assert found.out_avals == (product.aval,)


def test_methods_work_on_traced_values() -> None:
    def f(x: Any) -> Any:
        return x.sum(), x.var(), x.T, x.at[0].set(1.0), x.reshape(-1), x.astype("int32"), len(x)

    assert len(make_jaxpr(f)(xnp.ones((2, 3))).out_avals) == 7


def test_arrays_are_copied_pickled_iterated_and_converted() -> None:
    x = xnp.arange(3)
    assert pickle.loads(pickle.dumps(x)).tolist() == [0, 1, 2]
    assert copy.deepcopy(x).tolist() == [0, 1, 2]
    assert [int(v) for v in x] == [0, 1, 2]
    assert [int(v) for v in reversed(x)] == [2, 1, 0]
    assert 2 in x
    assert 5 not in x
    assert x[1].item() == 1
    assert [10, 20, 30][x[2]] == 30
    assert complex(xnp.array(2.0)) == 2
    assert np.from_dlpack(x).tolist() == [0, 1, 2]


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (
            lambda x: x + xnp.ones(4),
            TypeError,
            r"add: incompatible shapes for .*\(2,3\) and \(4,\)",
        ),
        (lambda x: x @ x, TypeError, "matmul: the contracted dimensions differ: 3 and 2"),
        (lambda x: xnp.dot(x, x), TypeError, r"dot: .*\n  got .*\n.*\n  hint      y.T has shape"),
        (lambda x: x[5], IndexError, "index: 5 is out of bounds for axis 0 with size 2"),
        (lambda x: x[0, -4], IndexError, "-4 is out of bounds for axis 1 with size 3"),
        (lambda x: x[0, 0, 0], IndexError, "Too many indices: array is 2-dimensional, but 3"),
        (lambda x: x.at[7].set(0.0), IndexError, "7 is out of bounds for axis 0"),
        (lambda x: x[1.5], TypeError, "got indexer with type float"),
        (lambda x: x[xnp.ones(2)], TypeError, "got indexer with type float32"),
        (lambda x: x + [1, 2, 3], TypeError, "a list is not an array"),
        (lambda x: x + "a", TypeError, "add: a str is not an array"),
        (lambda x: xnp.sin("a"), TypeError, "sin: a str is not an array"),
        (lambda x: x.astype("uint8") + 300, OverflowError, "300 too large to convert to uint8"),
        (
            lambda x: x.reshape(4, 2),
            TypeError,
            r"cannot reshape array of size 6 into shape \(4, 2\), of size 8",
        ),
        (
            lambda x: x.reshape(4, -1),
            TypeError,
            r"cannot reshape array of size 6 into shape \(4, -1\)",
        ),
        (lambda x: xnp.concatenate([x, x[:, :2]]), TypeError, "array 1 does not fit the first"),
        (lambda x: xnp.where(x > 0, x, xnp.ones(4)), TypeError, "where: incompatible shapes"),
        (lambda x: x.sum(axis=5), ValueError, "sum: axis 5 is out of bounds"),
        (lambda x: x[:0].max(), ValueError, "max: zero-size array to reduction operation max"),
        (lambda x: x.astype("int32") ** -1, ValueError, "negative integer powers"),
        (lambda x: xnp.einsum("ij,jk", x, x), ValueError, "label 'j' have sizes"),
        (lambda x: x.at[0].set(xnp.ones(4)), ValueError, "do not broadcast to the shape"),
        (lambda x: xnp.broadcast_to(x, (2, 2)), ValueError, "Incompatible shapes for broadcasting"),
        (lambda x: xnp.split(x, 2, axis=1), ValueError, "does not divide into 2 equal parts"),
        (
            lambda x: xnp.lax.linalg.lu_pivots_to_permutation(x, 3),
            TypeError,
            r"the pivots must be integers.\n  got       float32\[2,3\]",
        ),
    ],
)
def test_refusals_say_what_is_wrong(function: Any, error: Any, text: str, trace: bool) -> None:
    x = xnp.ones((2, 3))
    for _ in range(2):  # the second call finds what the first one left
        with pytest.raises(error, match=text):
            make_jaxpr(function)(x) if trace else function(x)


def test_assignment_names_at_set() -> None:
    with pytest.raises(TypeError, match=r"x\.at\[0, 1:2\]\.set\(5\)"):
        xnp.ones((2, 3))[0, 1:2] = 5


def test_the_truth_of_several_elements_is_refused() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        bool(xnp.ones(2))
    assert xnp.ones(1)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x[x > 0], errors.NonConcreteBooleanIndexError),
        (lambda x: xnp.nonzero(x), errors.ConcretizationTypeError),
        (lambda x: xnp.unique(x), errors.ConcretizationTypeError),
        (lambda x: x.reshape(xnp.array(2) * x[0].astype("int32")), errors.ConcretizationTypeError),
        (lambda x: xnp.arange(x[0]), errors.ConcretizationTypeError),
    ],
)
def test_shapes_that_depend_on_values_are_refused_while_tracing(function: Any, error: Any) -> None:
    with pytest.raises(error):
        make_jaxpr(function)(xnp.ones(3))


def test_lists_hold_numbers_or_traced_values() -> None:
    (aval,) = make_jaxpr(lambda x: xnp.array([[x[0], 1], [2, x[1]]]))(xnp.ones(2)).out_avals
    assert aval.shape == (2, 2)
    with pytest.raises(TypeError, match="pad the rows to one length"):
        xnp.array([[1, 2], [3]])
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        xnp.array([2**40])


def test_every_pair_of_dtypes_gives_the_same_written_out_and_by_plan() -> None:
    names = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32",
             "complex64", "int4", "float8_e5m2"]  # fmt: skip
    functions = [xnp.add, xnp.multiply, xnp.true_divide, xnp.maximum, xnp.less, xnp.equal]
    for function in functions:
        for one in names:
            for other in [*names, 3, 2.5, True]:
                x = xnp.array([0, 1, 1], dtype=one)
                y = xnp.array([1, 1, 0], dtype=other) if isinstance(other, str) else other
                try:
                    first = function(x, y)
                except TypeError:
                    continue
                second = function(x, y)
                assert first.aval is second.aval, (function, one, other)
                assert second.host.dtype == second.dtype, (function, one, other)
                assert np.array_equal(np.asarray(first, np.complex64),
                                      np.asarray(second, np.complex64), equal_nan=True)  # fmt: skip


def test_names_are_public_and_exist() -> None:
    assert "sin" in xnp.__all__
    # asked for, each name brings its family
    submodules = {name for name in xnp.__all__ if isinstance(getattr(xnp, name), ModuleType)}
    modules = [m for name, m in sys.modules.items() if name.startswith("xnp.numpy.")]
    shown = {name for m in modules for name in getattr(m, "__all__", ())}
    # which `xnp` or `xstack` shows, and no module of the NumPy API
    elsewhere = {"Array", "mutable", "DynamicSlice", "ds"}
    assert shown - elsewhere == {*xnp.__all__} - elsewhere - submodules
    for name in xnp.__all__:
        assert hasattr(xnp, name)


@pytest.mark.parametrize("shape", [(3, 4), (7, 3), (5, 2), (2, 2, 2)])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("value", [5.0, [1.0, 2.0]])
def test_fill_diagonal_is_that_of_numpy(shape: Any, wrap: bool, value: Any) -> None:
    expected = np.zeros(shape, np.float32)
    np.fill_diagonal(expected, value, wrap)
    found = xnp.fill_diagonal(xnp.zeros(shape), xnp.array(value), wrap, inplace=False)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_that_of_numpy_also_at_the_ends(edge_order: int) -> None:
    f = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    x = np.array([0.0, 0.5, 0.75, 2.0, 2.5, 4.0], np.float32)
    for found, expected in zip(
        [*xnp.gradient(f, 0.3, edge_order=edge_order),
         xnp.gradient(f, x, axis=0, edge_order=edge_order)],
        [*np.gradient(f, 0.3, edge_order=edge_order),
         np.gradient(f, x, axis=0, edge_order=edge_order)], strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="edge_order must be 1 or 2"):
        xnp.gradient(f, edge_order=3)


def test_take_refuses_to_raise_for_values() -> None:
    with pytest.raises(ValueError, match="mode 'raise' cannot be"):
        xnp.take(xnp.arange(3), xnp.array([5]), mode="raise")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: xnp.nn.leaky_relu(x, 0.1), -0.1),
        (lambda x: xnp.nn.elu(x, 0.1), 0.1 * math.expm1(-1)),
        (lambda x: xnp.nn.celu(x, 0.1), 0.1 * math.expm1(-10)),
        (lambda x: xnp.hypot(x, 0.1), math.hypot(1, 0.1)),
        (lambda x: xnp.quantile(xnp.stack([x, 0 * x]), 0.1), -0.9),
        (lambda x: xnp.percentile(xnp.stack([x, 0 * x]), 33.3), -0.667),
        (lambda x: xnp.pad(x[None], 1, constant_values=0.1)[0], 0.1),
        (lambda x: xnp.insert(x[None], 0, 0.1)[0], 0.1),
        (lambda x: xnp.append(x, 0.1)[1], 0.1),
        (lambda x: xnp.diff(x[None], prepend=0.1)[0], -1.1),
        (lambda x: xnp.sum(x, initial=0.1), -0.9),
    ],
)
def test_python_numbers_keep_their_digits_beside_float64(function: Any, expected: float) -> None:
    x = xnp.asarray(-1.0, "float64")
    for _ in range(3):  # later calls are those of a kernel
        assert float(function(x)) == pytest.approx(expected, rel=1e-15)


def test_clamp_takes_truths() -> None:
    low, x, high = [np.array(v) for v in ([0, 0, 1], [1, 0, 0], [0, 1, 1])]
    found = xnp.lax.clamp(low > 0, x > 0, high > 0)
    assert np.asarray(found).tolist() == [False, False, True]


def test_functions_of_numpy_read_lists_of_arrays_as_arrays() -> None:
    one, two = xnp.array(1.0), xnp.array(2.0)
    first, second = np.broadcast_arrays(xnp.zeros((2, 1)), [one, two])
    assert isinstance(second, Array)
    assert (first.shape, second.tolist()) == ((2, 2), [[1, 2], [1, 2]])
    assert np.where(xnp.array([True, False]), [one, two], 0).tolist() == [1, 0]
    assert np.concatenate([xnp.zeros(2), [one, two]]).tolist() == [0, 0, 1, 2]
    with pytest.raises(TypeError, match="a list is not an array"):
        np.broadcast_arrays(xnp.zeros(2), [one, xnp.zeros(3)])


def test_functions_of_numpy_with_operands_of_none_or_text_are_numpys() -> None:
    x = xnp.arange(2.0)
    values, none = np.broadcast_arrays(x, None)  # as matplotlib's bar calls it
    assert (values.tolist(), none.tolist()) == ([0, 1], [None, None])
    _, text = np.broadcast_arrays([x[0], x[1]], "/", x)[:2]
    assert text.tolist() == ["/", "/"]
    with pytest.raises(TypeError, match="broadcast_arrays: None is not an array"):
        xnp.broadcast_arrays(x, None)
    with pytest.raises(NameError, match="axis name 'a' is not bound here"):
        np.sum(x, "a")


@pytest.mark.parametrize("program", [
    lambda x: x >= 0.0, lambda x: xnp.where(x > 0, x, -0.0), lambda x: xnp.maximum(x, np.nan),
    lambda x: x * 0j, lambda x: x.at[1].set(0), lambda x: x[-1], lambda x: xnp.max(x, initial=-1),
    lambda x: lax.scan(lambda c, a: (c + a, c), 0.0, x), lambda x: xnp.linspace(0, x, 3),
    lambda x: lax.fori_loop(0, 3, lambda i, c: c + x[i], 0),
])  # fmt: skip
def test_numbers_of_a_program_are_literals_under_scalar_constants(program: Any) -> None:
    # A loop over the equations of a program, as libraries have, finds a number as a literal alone.
    x = xnp.array([1.0, -2.0, 3.0])
    first = x[0]
    with config.scalar_constants(True):
        closed = make_jaxpr(program)(x)
        held = make_jaxpr(lambda y: y * first)(x)
    assert [c for c in closed.consts if c.ndim == 0] == []
    np.testing.assert_array_equal(
        xtree.leaves(eval_closed(closed, x))[-1], xtree.leaves(program(x))[-1]
    )
    assert [c.ndim for c in held.consts] == [0]


def test_an_iterator_over_an_array_reads_no_element_before_it_is_asked(monkeypatch):
    x, read = xnp.arange(5), []
    whole = type(x).__getitem__
    monkeypatch.setattr(type(x), "__getitem__", lambda self, i: read.append(i) or whole(self, i))
    assert np.iterable(x) and read == []
    assert int(next(iter(x))) == 0 and read == [0]
    assert [int(v) for v in reversed(x)] == [4, 3, 2, 1, 0]
    assert [int(v) for v in x] == [0, 1, 2, 3, 4]
