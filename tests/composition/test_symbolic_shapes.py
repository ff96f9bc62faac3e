"""Exported programs with symbolic dimensions, in calls of several sizes."""

from __future__ import annotations

import decimal
import fractions
import math
import operator
import os

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.composition.symbolic_functions import FUNCTIONS, REFUSED
from xstack import ShapeDtypeStruct, export

ALWAYS = (
    "mean var sort cumsum0 reshape slice rev concat eye scan fori grad gather at number "
    "numpy_int numpy_array pad_by_size linspace arange2 nonzero_of_size split_in_two "
    "resize_nearest resize_linear uniform_of_shape bernoulli randint".split()
)
ROWS = sorted(FUNCTIONS) if "FUZZ_PROGRAMS" in os.environ else ALWAYS


def described(text, **options):
    return ShapeDtypeStruct(export.symbolic_shape(text, **options), np.float32)


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.sampled(every=4)
@pytest.mark.fuzz
@pytest.mark.parametrize("name", ROWS)
def test_a_public_function_of_a_batch_of_any_size_gives_what_it_gives_for_that_size(name):
    fun = FUNCTIONS[name]
    exported = export.export(xstack.jit(lambda x: fun(x)))(described("b, 3"))
    for size in (4, 7):
        x = drawn(size, 3)
        got, want = [xstack.tree.leaves(r) for r in (exported.call(x), xstack.jit(fun)(x))]
        for u, v in zip(got, want, strict=True):
            np.testing.assert_allclose(u, v, rtol=1e-5, atol=1e-5)  # the same program of float32


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_the_number_is_refused(name):
    fun = REFUSED[name]
    with pytest.raises(xstack.errors.XStackError):
        export.export(xstack.jit(lambda x: fun(x)))(described("b, 3"))


def model(params, x):
    h = xnp.tanh(x @ params["w"])
    return {"mean": h.mean(0), "twice": x.shape[0] * 2, "flat": h.reshape(-1)[1:]}


PARAMS = {"w": drawn(3, 2)}


def test_a_stored_program_and_its_derivative_take_every_size():
    exported = export.export(xstack.jit(model))(PARAMS, described("b, 3"))
    assert [a.str_long() for a in exported.out_avals][:2] == ["float32[2*b - 1]", "float32[2]"]
    assert "tensor<$[b]x3xf32>" in exported.mlir_module() and exported.uses_global_constants
    again = export.deserialize(exported.serialize(vjp_order=1))
    assert str(again.in_avals) == str(exported.in_avals)
    for size in (1, 4):
        x = drawn(size, 3)
        got, want = again.call(PARAMS, x), model(PARAMS, x)
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-6)
        slope, expected = [
            xstack.grad(lambda p, f=f, x=x: f(p, x)["mean"].sum())(PARAMS)["w"]
            for f in (again.call, model)
        ]
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-6)
    inner = export.export(xstack.jit(lambda x: again.call(PARAMS, x)["flat"]))(described("n, 3"))
    assert inner.out_avals[0].str_long() == "float32[2*n - 1]"
    x = drawn(5, 3)
    np.testing.assert_allclose(inner.call(x), model(PARAMS, x)["flat"], rtol=1e-5)


def test_dimensions_have_the_arithmetic_of_integers():
    b, n = export.symbolic_shape("b, n", constraints=["b >= n", "mod(n, 4) == 0", "n <= 64"])
    for expression, text in [
        (2 * b + b - n, "- n + 3*b"), ((6 * b * n) // (2 * n), "3*b"), ((4 * b + 3) % 4, "3"),
        (b**2 - b * b, "0"), ((b + 1) // 2, "floordiv(b + 1, 2)"), (n % 4, "0"), (-1 % b, "b - 1"),
        (divmod(4 * b, 4), "(b, 0)"), (5 - b, "- b + 5"),
    ]:  # fmt: skip
        assert str(expression) == text
    assert b >= n and b * 2 > n and not b < 1 and b != 3 and 2 * b - b == b
    assert export.is_symbolic_dim(b) and not export.is_symbolic_dim(3)
    assert export.symbolic_dim_bounds(n + 1) == (2, 65)
    assert {b: 1}[export.symbolic_shape("b", scope=b.scope)[0]] == 1


def test_dimensions_are_printed_as_the_oracle_prints_them():
    theirs = pytest.importorskip("jax.export")
    for text in [
        "a + b", "2*a - 3*b + 1", "b*a^2 + a*b^2 + a*b", "7 - a", "a*a*a - b", "mod(a, 4) + a",
        "a*floordiv(b + a, 2)*3 - mod(a*b, 5)", "floordiv(a, 4) + mod(a, 4) + b - 1",
        "c*a + a*b + b*c", "floordiv(2*b + a, 3) + floordiv(a, 3)", "max(a, b) + a",
    ]:  # fmt: skip
        ours, other = export.symbolic_shape(text), theirs.symbolic_shape(text)
        assert str(ours[0]) == str(other[0])
        assert str(export.symbolic_shape(str(ours[0]))[0]) == str(ours[0])


def test_the_larger_and_the_smaller_of_two_dimensions_are_dimensions():
    a = export.symbolic_shape("a, b")[0]
    for text, expected in [
        ("max(a, 2)", "max(a, 2)"), ("max(b, a)", "max(a, b)"), ("max(a, 1)", "a"),
        ("min(a, 1)", "1"), ("min(a, b) + 1", "min(a, b) + 1"), ("max(a + 1, a)", "a + 1"),
    ]:  # fmt: skip
        assert str(export.symbolic_shape(text, scope=a.scope)[0]) == expected
    larger = export.symbolic_shape("max(a, 2)", scope=a.scope)[0]
    assert larger >= 2 and not a.scope.assumptions
    f = export.export(xstack.jit(lambda x, y: y.sum() + x.sum()))(
        ShapeDtypeStruct((a,), np.float32), ShapeDtypeStruct((larger,), np.float32)
    )
    assert float(f.call(np.ones(1, np.float32), np.ones(2, np.float32))) == 3
    assert float(f.call(np.ones(4, np.float32), np.ones(4, np.float32))) == 8
    with pytest.raises(ValueError, match="Input shapes do not match"):
        f.call(np.ones(1, np.float32), np.ones(1, np.float32))


def test_a_symbolic_shape_is_a_string():
    with pytest.raises(TypeError, match="symbolic_shape: the shape must be a string or None"):
        export.symbolic_shape(3)


def test_what_is_known_of_a_variable_is_known_of_what_it_equals():
    a, b = export.symbolic_shape("a, b", constraints=["a >= 4", "b <= 8", "a == 2*b"])
    assert a == 2 * b and a >= 4 and b <= 8 and a <= 16


@pytest.mark.parametrize(
    "program",
    [
        lambda x: [x, -x][math.isqrt(x.shape[0]) > 1],
        lambda x: x * (x.shape[0] // fractions.Fraction(100)),
        lambda x: x * (-1) ** x.shape[0],
        lambda x: x * (x.shape[0] & 64),
        lambda x: x * (64 & x.shape[0]),
        lambda x: x * (x.shape[0] >> 6),
        lambda x: x * (~x.shape[0] >> 6),
        lambda x: x * round(x.shape[0], -3),
        lambda x: x * math.gcd(x.shape[0], 64),
        lambda x: x * math.isqrt(x.shape[0] // 64),
        lambda x: x * (150 in range(x.shape[0])),
        lambda x: x * len([0] * x.shape[0]),
        lambda x: x * len(([0] * 150)[100 : x.shape[0]]),
        lambda x: x + np.zeros(x.shape[0], np.float32),
        lambda x: x * operator.index(x.shape[0]),
    ],
)
def test_a_dimension_has_no_number_that_python_could_take(program):
    errors = (xstack.errors.InconclusiveDimensionOperation, TypeError)
    with pytest.raises(errors, match=r"n \* 1\.5 do not|unsupported operand|single integer"):
        export.export(xstack.jit(program))(described("d"))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: operator.lt(2.5, x.shape[0]),
        lambda x: x * operator.gt(1.5, x.shape[0]),
        lambda x: x * operator.lt(100.0, x.shape[0]),
        lambda x: x * operator.gt(fractions.Fraction(100), x.shape[0]),
        lambda x: x * (x.shape[0] < decimal.Decimal(100)),
        lambda x: x * max(x.shape[0], 100.0),
    ],
)
def test_a_number_of_python_is_compared_with_a_dimension_by_what_is_known(program):
    error = xstack.errors.InconclusiveDimensionOperation
    with pytest.raises(error, match=r"Symbolic dimension comparison .* is inconclusive"):
        export.export(xstack.jit(program))(described("d"))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: 2.5 // x.shape[0] + x,
        lambda x: 2.5 % x.shape[0] + x,
        lambda x: 2.5 * x.shape[0] + x,
        lambda x: sum([0.5, x.shape[0]]) + x,
        lambda x: x * (x.shape[0] // 100.0),
        lambda x: x * (106.0 % x.shape[0]),
        lambda x: x * (x.shape[0] % 2.5),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 150])
def test_a_float_and_a_dimension_give_what_they_give_for_each_size(program, size):
    x = drawn(size)
    found = export.export(xstack.jit(program))(described("d")).call(x)
    np.testing.assert_allclose(found, program(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("constraint", ["d <= 200", "d <= 1024", "d >= 60", "d >= 2000000"])
def test_stand_ins_keep_to_what_is_known(constraint):
    threshold = {"d <= 200": 100.0, "d <= 1024": 600.0, "d >= 60": 500.0}.get(constraint)
    (d,) = export.symbolic_shape("d", constraints=[constraint])
    spec = ShapeDtypeStruct((d,), np.float32)
    doubled = export.export(xstack.jit(lambda x: xnp.concatenate([x, x])))(spec)
    assert str(doubled.out_avals[0].shape[0]) == "2*d"
    if threshold is not None:
        with pytest.raises(xstack.errors.InconclusiveDimensionOperation, match="is inconclusive"):
            export.export(xstack.jit(lambda x: x * operator.lt(threshold, x.shape[0])))(spec)


def test_dimensions_are_compared_with_floats_by_what_is_known():
    (a,) = export.symbolic_shape("a", constraints=["a >= 4", "a <= 8"])
    assert a > 3.5 and a >= 3.5 and a > 3.999 and a >= 4.0 and a < 8.5 and a <= 8.0 and a < 8.001
    assert not a < 4.0 and not a <= 3.9 and not a > 8.0 and not a >= 8.1
    for unknown in (lambda: a > 4.0, lambda: a >= 4.5, lambda: a < 8.0, lambda: a <= 7.9):
        with pytest.raises(xstack.errors.InconclusiveDimensionOperation, match="comparison"):
            unknown()


def test_numbers_of_numpy_beside_dimensions_ask_for_no_number():
    (a,) = export.symbolic_shape("a")
    found = [np.int32(2) * a, a - np.int64(1), np.int8(7) // a, a % np.uint8(3)]
    assert list(map(str, found)) == ["2*a", "a - 1", "floordiv(7, a)", "mod(a, 3)"]
    with pytest.raises(xstack.errors.InconclusiveDimensionOperation, match=r"numpy\.sqrt: the sym"):
        np.sqrt(a)


@pytest.mark.parametrize(("text", "like", "match"), [
    ("a, 4", (2, 3), "dimension 1 has different size in `like`, 3"),
    ("a, 5, ...", (2, 3, 4), "dimension 1 has different size in `like`, 3"),
    ("2 + 2, b", (5, 3), "dimension 0 has different size in `like`, 5"),
    ("a, b, ...", (2,), "we parsed 2 already and 'like' shape has only 1 dimensions"),
    ("a, ...", None, "no 'like' shape was given"),
    ("a, _", (2,), "we parsed 1 already and 'like' shape has only 1 dimensions"),
    ("_, b", (None, 3), "a size of 'like' that is None"),
])  # fmt: skip
def test_a_text_fits_the_shape_that_it_is_like(text, like, match):
    with pytest.raises(ValueError, match=match):
        export.symbolic_shape(text, like=like)


def test_what_is_not_known_of_the_other_shape_may_be_anything():
    assert list(map(str, export.symbolic_shape("2*a, 3, _", like=(3, None, 4)))) == [
        "2*a",
        "3",
        "4",
    ]


def test_shapes_are_read_as_the_oracle_reads_them():
    theirs = pytest.importorskip("jax.export")
    if not hasattr(theirs, "symbolic_dim_bounds"):
        pytest.skip("this oracle does not tell bounds")
    for text, like in [
        ("b, 3", None), ("(2*b, n + b^2)", None), ("a, _, ...", (2, 3, 4)), (None, (2, 3)),
        ("floordiv(a + 3, 2), mod(a, 5)", None), ("a*2*b - 1,", None), ("4*a*a", None),
    ]:  # fmt: skip
        ours = [export.symbolic_dim_bounds(d) for d in export.symbolic_shape(text, like=like)]
        other = [theirs.symbolic_dim_bounds(d) for d in theirs.symbolic_shape(text, like=like)]
        assert ours == [tuple(map(float, each)) for each in other], text


def test_descriptions_of_arguments_are_made_from_texts():
    args = ({"x": drawn(2, 3), "y": drawn(3)}, np.int32(1))
    specs = export.symbolic_args_specs(args, ({"x": "b, _", "y": None}, None))
    assert str(specs[0]["x"].shape) == "(b, 3)" and specs[0]["y"].shape == (3,)
    exported = export.export(xstack.jit(lambda p, k: p["x"] @ p["y"] + k))(*specs)
    np.testing.assert_allclose(
        exported.call(*args), args[0]["x"] @ args[0]["y"] + 1, rtol=1e-5, atol=1e-6
    )


def test_sizes_that_do_not_fit_are_refused_with_a_sentence():
    shape = export.symbolic_shape("2*b, b", constraints=["b >= 2", "mod(b, 2) == 0"])
    f = export.export(xstack.jit(lambda x: x.sum(0)))(ShapeDtypeStruct(shape, np.float32))
    np.testing.assert_allclose(f.call(drawn(8, 4)), drawn(8, 4).sum(0), rtol=1e-5, atol=1e-6)
    for size, text in [
        ((8, 3), "Input shapes do not match"), ((6, 3), "mod(b, 2)"),
        ((8,), "Rank mismatch for args[0]"),
    ]:  # fmt: skip
        with pytest.raises(ValueError) as caught:
            f.call(drawn(*size))
        assert text in str(caught.value)
    taken = export.export(xstack.jit(lambda x: x[:5]))(described("b"))
    assert list(taken.symbolic_facts) == ["b - 5"]
    with pytest.raises(ValueError, match=r"sizes with b - 5 >= 0.\n  got       b = 3\n  where"):
        taken.call(drawn(3))


def test_wrong_texts_and_scopes_are_refused():
    for call, text in [
        (lambda: export.symbolic_shape("b + f(x)"), "syntax error in symbolic shape"),
        (lambda: export.symbolic_shape("b, _"), "no 'like' shape was given"),
        (lambda: export.symbolic_shape("a,, b"), "syntax error in symbolic shape"),
        (lambda: export.symbolic_shape("a//0"), "division of a symbolic dimension by zero"),
        (lambda: export.symbolic_shape("mod(3, 0*a)"), "by zero"),
        (lambda: export.symbolic_shape("a**-1"), "not an exponent from 0 to 16"),
        (lambda: export.symbolic_shape("b", constraints=["b > 3"]), "constraint is not understood"),
        (lambda: export.symbolic_shape("b", constraints=["2*b == 3"]), "an equality says"),
        (lambda: export.symbolic_shape("b")[0] + export.symbolic_shape("b")[0], "different scopes"),
        (lambda: export.export(xstack.jit(lambda x, y: x))(described("b"), described("b")),
         "different scopes"),
    ]:  # fmt: skip
        with pytest.raises(ValueError) as caught:
            call()
        assert text in str(caught.value)
    with pytest.raises(xstack.errors.InconclusiveDimensionOperation, match="b > 4 is inconclusive"):
        export.symbolic_shape("b")[0] > 4  # noqa: B015 - it raises
