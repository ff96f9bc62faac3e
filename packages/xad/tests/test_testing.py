"""The checks of derivatives find what is wrong."""

import numpy as np
import pytest

from packages.xad.tests.programs import add, div, mul, sin, total
from xad import custom_jvp, custom_vjp
from xad.testing import check_derivatives, check_grads, check_jvp, check_transpose, check_vjp
from xprim import ELEMENTWISE, LINEAR, Linear, Primitive, Zero, undefined
from xprim.testing import Sample

X = np.array([0.3, -1.2, 2.0])


def primitive(name, *, jvp, transpose=None, numpy=None):
    return Primitive(
        name,
        shape=lambda x, *rest: (x,),
        numpy=numpy or (lambda x: (2 * x,)),
        stablehlo=undefined("a test"),
        jvp=jvp,
        transpose=transpose or undefined("a test"),
        batch=ELEMENTWISE,
    )


def times(x, factor):
    return (mul(x, factor),)


def test_a_right_primitive_passes():
    p = primitive("test_xad_right", jvp=LINEAR, transpose=lambda cts, x: times(cts[0], 2.0))
    for sample in (Sample([X]), Sample([X.astype("f4")]), Sample([np.zeros((0,))])):
        check_derivatives(p, sample)
        check_transpose(p, sample)


def test_a_wrong_derivative_is_found():
    p = primitive("test_xad_wrong_jvp", jvp=lambda xs, dots: (p.bind(*xs), times(dots[0], 2.001)))
    with pytest.raises(
        AssertionError, match=r"test_xad_wrong_jvp .*the jvp rule and finite differences"
    ):
        check_derivatives(p, Sample([X]))
    check_derivatives(p, Sample([X], smooth=False))


def test_a_wrong_primal_result_is_found():
    p = primitive(
        "test_xad_wrong_primal", jvp=lambda xs, dots: (times(xs[0], 2.1), times(dots[0], 2.0))
    )
    with pytest.raises(AssertionError, match="the result of the jvp rule"):
        check_derivatives(p, Sample([X]))


def test_a_wrong_transpose_is_found():
    transpose = lambda cts, x: times(cts[0], 3.0)  # noqa: E731
    p = primitive("test_xad_wrong_transpose", jvp=LINEAR, transpose=transpose)
    with pytest.raises(AssertionError, match="forward and reverse mode differ"):
        check_derivatives(p, Sample([X]))
    with pytest.raises(AssertionError, match=r"the transpose in operands \(0,\) is wrong"):
        check_transpose(p, Sample([X]))


def test_a_wrong_dtype_or_shape_of_a_tangent_is_found():
    p = primitive("test_xad_wrong_tangent", jvp=lambda xs, dots: (p.bind(*xs), (total(dots[0]),)))
    with pytest.raises(AssertionError, match=r"the tangent is float64\[\], not float64\[3\]"):
        check_derivatives(p, Sample([X]))


def test_a_wrong_second_derivative_is_found():
    q = primitive(
        "test_xad_wrong_second_derivative_inner",
        numpy=lambda x: (np.cos(x),),
        jvp=lambda xs, dots: (q.bind(*xs), (sin(mul(xs[0], dots[0])),)),
    )
    p = primitive(
        "test_xad_wrong_second_derivative",
        numpy=lambda x: (np.sin(x),),
        jvp=lambda xs, dots: (p.bind(*xs), (mul(q.bind(*xs)[0], dots[0]),)),
    )
    with pytest.raises(AssertionError, match="the derivative of the jvp rule"):
        check_derivatives(p, Sample([X]))


def test_primitives_without_derivative_are_passed_over():
    check_derivatives(primitive("test_xad_no_jvp", jvp=undefined("a test")), Sample([X]))
    check_transpose("floor", Sample([X]))
    check_derivatives("add", Sample([np.arange(3), np.arange(3)]))

    def refuses_first(xs, dots):
        if type(dots[0]) is not Zero:
            raise ValueError("no derivative by x")
        return p.bind(*xs), (dots[1],)

    p = primitive("test_xad_partly", numpy=lambda x, y: (x + y,), jvp=refuses_first)
    check_derivatives(p, Sample([X, X]))


def test_multilinear_transposes_are_checked_in_each_operand():
    check_transpose("mul", Sample([X, X]))
    check_transpose("dot_general", Sample(
        [X, X], {"dimension_numbers": (((0,), (0,)), ((), ())), "precision": None,
                 "preferred_element_type": np.dtype("f8")},
    ))  # fmt: skip
    assert Linear is not None


def test_check_grads_checks_functions_of_trees_to_any_order():
    def f(tree, y):
        return {"out": mul(sin(tree["x"]), y), "sum": total(tree["x"])}

    check_grads(f, ({"x": X.astype("f4")}, X.astype("f4")), order=2)
    check_grads(lambda x: div(x, add(mul(x, x), 1.0)), (0.5,), order=3, modes=("rev",))
    check_grads(lambda z: mul(z, z), (np.complex64(1 + 2j),), order=1)
    check_jvp(sin, (X.astype("f4"),))
    check_vjp(sin, (X.astype("f4"),), atol=1e-2, rtol=1e-2, eps=1e-2)


def test_tolerances_may_be_given_by_dtype():
    @custom_jvp
    def nearly(x):
        return mul(2.0, x)

    nearly.defjvp(lambda primals, dots: (nearly(*primals), mul(2.02, dots[0])))  # 1% too large

    for check in (check_grads, check_jvp, check_vjp):
        order = (1,) if check is check_grads else ()
        check(nearly, (np.float32(2.0),), *order, atol={np.float32: 0.1}, rtol={np.float32: 0.1})
        with pytest.raises(AssertionError, match=r"derivative|inner product"):
            check(nearly, (np.float32(2.0),), *order, atol={np.float32: 0}, rtol={np.float32: 1e-3})
        check(nearly, (np.float32(2.0),), *order, rtol={np.float64: 1e-3})  # not of this dtype


def test_check_grads_finds_wrong_custom_rules():
    f = custom_jvp(lambda x: mul(x, x))
    f.defjvp(lambda p, t: (f(p[0]), mul(mul(p[0], t[0]), 3.0)))
    with pytest.raises(AssertionError, match="check_jvp: the derivative"):
        check_grads(f, (1.5,), order=1, modes=("fwd",))
    g = custom_vjp(lambda x: mul(x, x))
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (mul(x, ct),))
    with pytest.raises(AssertionError, match="check_vjp: the inner product"):
        check_grads(g, (1.5,), order=1, modes=("rev",))
    h = custom_jvp(lambda x: mul(x, x))
    h.defjvp(lambda p, t: (sin(p[0]), mul(mul(p[0], t[0]), 2.0)))
    with pytest.raises(AssertionError, match="check_jvp: the primal result"):
        check_jvp(h, (1.5,))
    with pytest.raises(ValueError, match="check_grads: modes are 'fwd' and 'rev', got 'forward'"):
        check_grads(sin, (1.0,), 1, modes=("forward",))


def test_the_transposes_of_the_greatest_numbers_are_checked_without_a_warning():
    p = primitive("test_xad_huge", jvp=LINEAR, transpose=lambda cts, x: times(cts[0], 1e300),
                  numpy=lambda x: (1e300 * x,))  # fmt: skip
    with np.errstate(over="raise"):
        check_transpose(p, Sample([np.full(3, 1e300)]))
