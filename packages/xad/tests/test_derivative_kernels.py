"""Primitives that are differentiated again, by functions of ndarrays, give the same numbers."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest

import xnp
import xtree
from tests.nets.cells import IN_FULL
from xad import grad, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp
from xad._linearize import linearize_flat
from xad.derivative_kernels import KernelEquation
from xnp import lax
from xnp.testing.samples import TABLE
from xprim import (
    ELEMENTWISE,
    LINEAR,
    Primitive,
    Undefined,
    config,
    dtypes,
    get_primitive,
    kernels,
    make_jaxpr,
    named_scope,
    prune_dead_code,
    scalar_array,
    undefined,
)
from xprim.errors import ImpureRuleError, MissingRuleError
from xprim.kernels import REFUSED
from xprim.source import describe

X = np.linspace(0.5, 1.5, 8).astype(np.float32)


@pytest.fixture(autouse=True)
def _kernels_at_the_second_use(monkeypatch):
    for name in ("xad._jvp", "xad._linearize"):
        monkeypatch.setattr(sys.modules[name]._kernels, "uses", 1)
    kernels.forget_kernels()


def bits(tree):
    """Return what tells two results apart: types and bytes of all arrays."""
    if isinstance(tree, tuple | list):
        return [bits(item) for item in tree]
    if isinstance(tree, np.ndarray):  # float0
        return tree.dtype, tree.shape
    return tree.aval, np.asarray(tree).tobytes()


def assert_repeats(compute):
    first = bits(compute())
    for _ in range(2):  # the second time makes the kernel
        assert bits(compute()) == first


def kernels_of(fun, *primals):
    """Return the primitives and array functions of the kernels that a third evaluation records."""
    arrays = [xnp.asarray(x) for x in primals]
    for _ in range(3):
        _, program = linearize_flat(fun, arrays, [True] * len(arrays))
    return [
        getattr(eqn.primitive, "name", None) or eqn.primitive.__name__
        for eqn in program.jaxpr.eqns if type(eqn) is KernelEquation
    ]  # fmt: skip


NAMES = [n for n in sorted(TABLE) if not isinstance(get_primitive(n).rules["jvp"], Undefined)]


def samples_of(name, first=0):
    """Return samples to differentiate at: twelve, or in an ordinary run the one of number `first`.

    Kernels are about types and params, not values; each test begins at another sample.
    """
    rows = [row for row in TABLE[name] if any(dtypes.is_inexact(x.dtype) for x in row.operands)]
    if IN_FULL:
        return rows[:: max(1, len(rows) // 12)]
    return rows[first * len(rows) // 3 :][:1]


def function_of(name, sample):
    """Return a sample as a function of the operands to differentiate by, and these."""
    primitive, operands = get_primitive(name), sample.arrays()
    inexact = [i for i, x in enumerate(operands) if dtypes.is_inexact(x.dtype)]
    active = [i for i in inexact if sample.unit_tangents is None or i in sample.unit_tangents]

    def fun(*xs):
        given = list(operands)
        for i, x in zip(active, xs, strict=True):
            given[i] = x
        return list(primitive.bind(*given, **sample.params))

    return fun, [operands[i] for i in active]


def assert_repeats_if_defined(compute):
    try:
        assert_repeats(compute)
    except (MissingRuleError, ValueError) as error:  # it has none: other tests look at that
        if "rule" not in str(error) and "derivative" not in str(error):
            raise


@pytest.mark.fuzz
@pytest.mark.parametrize("name", NAMES)
def test_tangents_of_a_primitive_are_the_same_by_its_kernel(name):
    for sample in samples_of(name):
        fun, point = function_of(name, sample)
        ones = tuple([xnp.ones_like(x) for x in point])
        assert_repeats_if_defined(lambda f=fun, xs=point, v=ones: jvp(f, xs, v))


MATRIX = np.linspace(0.2, 1.1, 24).astype(np.float32).reshape(3, 8)
UNARY = [
    "sin", "tanh", "exp", "log1p", "sqrt", "square", "abs", "negative", "sign", "floor", "cumsum",
    "sum", "mean", "std", "max", "prod", "ravel", "transpose", "sort", "isfinite",
    "sinc", "cbrt", "round", "median", "diff", "argmax", "nan_to_num", "reciprocal",
]  # fmt: skip
BINARY = [
    "add", "subtract", "multiply", "divide", "power", "maximum", "arctan2", "hypot", "less",
    "floor_divide", "remainder", "logaddexp", "heaviside", "copysign", "nextafter",
]  # fmt: skip
SECOND = {
    "row": lambda x: x[0], "column": lambda x: x[:, :1], "itself": lambda x: x,
    "float": lambda x: 0.75, "int": lambda x: 2, "weak": lambda x: scalar_array(0.75),
    "constant": lambda x: xnp.asarray(MATRIX[::-1]), "wide": lambda x: np.float64(0.75),
    "integers": lambda x: xnp.arange(8),
}  # fmt: skip


def same_in_both_modes(function, x):
    """Check that an array function gives the same bits by its kernels as by its rules."""

    def fun(x):
        outs = function(x)
        return [*outs] if isinstance(outs, tuple | list) else [outs]

    def compute():
        outs, pull = vjp(fun, x)
        return outs, pull([_ones_like(out) for out in outs])

    assert_repeats(lambda: jvp(fun, (x,), (xnp.cos(x),)))
    assert_repeats(compute)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", UNARY)
def test_derivatives_of_an_array_function_are_the_same_by_its_kernel(name, dtype):
    with config.enable_x64(True):
        same_in_both_modes(getattr(xnp, name), xnp.asarray(MATRIX, dtype=dtype))


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("name", BINARY)
def test_derivatives_of_a_function_of_two_are_the_same_by_its_kernel(name, second):
    function, other = getattr(xnp, name), SECOND[second]
    same_in_both_modes(lambda x: function(x, other(x)), xnp.asarray(MATRIX))
    same_in_both_modes(lambda x: function(other(x), x), xnp.asarray(MATRIX))


def test_an_array_function_still_warns_of_ranks_at_each_call():
    x = xnp.asarray(MATRIX)
    with config.numpy_rank_promotion("warn"):
        for _ in range(4):
            with pytest.warns(UserWarning, match="Following NumPy automatic rank promotion"):
                jvp(lambda x: x + x[0], (x,), (x,))
            with pytest.warns(UserWarning, match="Following NumPy automatic rank promotion"):
                grad(lambda x: xnp.sum(x * x[0]))(x)


def test_an_array_function_still_refuses_a_promotion_at_each_call():
    x, y = xnp.asarray(MATRIX), xnp.arange(8)
    for _ in range(4):
        assert jvp(lambda x: x + y, (x,), (x,))[1].shape == (3, 8)
    with config.numpy_dtype_promotion("strict"):
        for _ in range(4):
            with pytest.raises(TypeError, match="strict"):
                jvp(lambda x: x + y, (x,), (x,))
            with pytest.raises(TypeError, match="strict"):
                grad(lambda x: xnp.sum(x * y))(x)


def test_a_number_that_no_float_holds_is_refused_by_the_function_itself():
    x = xnp.asarray(X)
    for _ in range(4):
        with pytest.raises(OverflowError):
            jvp(lambda x: x * 10**400, (x,), (x,))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", NAMES)
def test_cotangents_of_a_primitive_are_the_same_by_its_kernel(name):
    for sample in samples_of(name, 1):
        fun, point = function_of(name, sample)

        def compute(fun=fun, point=point):
            outs, pull = vjp(fun, *point)
            return outs, pull([_ones_like(out) for out in outs])

        assert_repeats_if_defined(compute)


def _ones_like(out):
    if dtypes.is_inexact(out.dtype):
        return xnp.ones_like(out)
    return np.zeros(out.shape, dtypes.float0)


def rosenbrock(x):
    return xnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def shared(x):
    y = x + 1.0  # its tangent is that of x
    return xnp.sum(x * y * x + y * y * xnp.sin(y * x))


def several_results(x):
    a, b = xnp.split(x, 2)
    return xnp.sum(xnp.sort(a * b) * xnp.tanh(b))


@pytest.mark.parametrize("fun", [rosenbrock, shared, several_results])
def test_a_gradient_is_the_same_at_every_call(fun):
    assert_repeats(lambda: value_and_grad(fun)(X))


def test_the_second_call_records_kernels():
    assert kernels_of(lambda x: [xnp.sin(x) * x], X) == ["sin", "multiply"]
    # one operation: no conversion of the number, no broadcast
    assert kernels_of(lambda x: [1.0 - x + xnp.ones((2, 1))], X) == ["subtract", "add"]


def test_the_sum_with_a_constant_records_nothing():
    assert kernels_of(lambda x: [x + 1.0], X) == []


def test_cotangents_of_weak_type_stay_weak():
    for _ in range(3):
        assert grad(lambda x: x * x * 2.0)(3.0).weak_type
        assert not grad(lambda x: x * x * 2.0)(np.float32(3.0)).weak_type


def test_tangents_of_weak_type_stay_weak():
    for _ in range(3):
        assert jvp(lambda x: x * x * 2.0, (3.0,), (1.0,))[1].weak_type
        assert not jvp(lambda x: x * x * 2.0, (np.float32(3.0),), (np.float32(1.0),))[1].weak_type


def test_a_pull_back_by_kernels_can_be_called_again():
    for _ in range(3):
        y, pull = vjp(lambda x: xnp.sin(x) * x, X)
    assert bits(pull(y)) == bits(pull(y))


@pytest.mark.parametrize("transformed", [jacfwd, jacrev])
def test_jacobians_by_kernels_are_right(transformed):
    for _ in range(3):
        found = transformed(lambda x: xnp.sin(x) * x[0])(X)
    expected = np.diag(np.cos(X) * X[0]) + np.outer(np.sin(X), np.eye(8)[0])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_linear_function_from_kernels_is_right():
    for _ in range(3):
        _, push = linearize(lambda x: (xnp.sin(x) * x[0]).sum(), X)
    expected = np.cos(X).sum() * X[0] + np.sin(X).sum()
    np.testing.assert_allclose(push(np.ones(8, np.float32)), expected, rtol=1e-6)


def test_second_derivatives_through_kernels_are_right():
    for _ in range(3):
        found = grad(lambda x: xnp.sum(grad(lambda y: xnp.sum(y**3))(x) * x))(X)
    np.testing.assert_allclose(found, 9 * X**2, rtol=1e-6)


def test_a_result_that_nothing_needs_has_no_cotangent():
    def fun(x):
        xnp.sin(x)
        a, _ = xnp.split(xnp.cos(x), 2)
        return xnp.sum(a)

    assert_repeats(lambda: grad(fun)(X))


# --- templates ------------------------------------------------------------------------------------


def programs_of(fun, point):
    """Return a function's derivatives as jaxprs: text, lines and name scopes, constants; errors."""

    def forward(*xs):
        return jvp(fun, xs, tuple(map(_ones_like, xs)))

    def backward(*xs):
        outs, pull = vjp(fun, *xs)
        return outs, pull([_ones_like(out) for out in outs])

    def twice(*xs):
        return jvp(backward, xs, tuple(map(_ones_like, xs)))

    def backward_twice(*xs):
        def inexact(*ys):
            return [y for y in xtree.leaves(backward(*ys)) if y.dtype != dtypes.float0]

        outs, pull = vjp(inexact, *xs)
        return pull([_ones_like(out) for out in outs])

    def linear(*xs):
        return linearize(fun, *xs)[1](*map(_ones_like, xs))

    def residuals(*xs):
        return xtree.leaves(vjp(fun, *xs)[1])

    found = []
    for derivative in (forward, backward, twice, backward_twice, linear, residuals):
        try:
            closed = make_jaxpr(derivative)(*point)
        except (MissingRuleError, ValueError) as error:
            found.append(str(error))
            continue
        live = prune_dead_code(closed, keep_arguments=True)[0]
        places = [(describe(eqn.source), eqn.name_stack) for eqn in live.eqns]
        found.append((str(live), places, bits(live.consts)))
    return found


def assert_same_by_templates(fun, point, monkeypatch):
    tables = [sys.modules[f"xad.{name}"]._templates for name in ("_jvp", "_linearize", "transpose")]
    programs = []
    for uses in (1 << 30, 1, 0):
        for table in tables:
            table.clear()
            monkeypatch.setattr(table, "uses", uses)
        programs.append(programs_of(fun, point))
    assert programs[0] == programs[1] == programs[2]
    return [kernel for table in tables for kernel in table.values() if kernel is not REFUSED]


@pytest.mark.fuzz
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_a_primitive_are_the_same_programs_by_templates(name, monkeypatch):
    for sample in samples_of(name, 2):
        fun, point = function_of(name, sample)
        assert_same_by_templates(fun, point, monkeypatch)


def in_scopes(x):
    for name in "ab":
        with named_scope(name):
            x = xnp.sin(x) * xnp.cos(x)
    return xnp.sum(x)


def saved_twice(x):
    y = xnp.exp(x)  # a residual of this operation and of the next
    return xnp.sum(xnp.tanh(x * y) / y)


@pytest.mark.parametrize("fun", [rosenbrock, shared, several_results, in_scopes, saved_twice])
def test_gradients_are_the_same_programs_by_templates(fun, monkeypatch):
    assert assert_same_by_templates(lambda x: [fun(x)], [xnp.asarray(X)], monkeypatch)


def _value_of(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    slope = scalar_array(float(x.to_host()[0]), x.dtype)  # needs an array that has a value
    return doubled_p.bind(x), (lax.mul(x_dot, lax.broadcast(slope, x.shape)),)


doubled_p = Primitive(
    "doubled_for_test_derivative_kernels",
    shape=lambda x: (x,),
    numpy=lambda x: (x + x,),
    stablehlo=undefined("a test"),
    jvp=_value_of,
    transpose=undefined("it is not linear"),
    batch=ELEMENTWISE,
)


def test_a_rule_that_looks_at_values_is_called_each_time():
    for k in (1, 2, 3):
        gradient = grad(lambda x: xnp.sum(doubled_p.bind(x)[0]))(k * X)
        np.testing.assert_allclose(gradient, np.full(8, k * X[0]))


def test_an_option_of_this_thread_has_kernels_of_its_own():
    for _ in range(3):
        assert grad(rosenbrock)(X).dtype == np.float32
        with config.enable_x64(True):
            assert grad(rosenbrock)(X.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (-0.0, 0.0)])
@pytest.mark.parametrize("staged", [False, True], ids=["kernel", "template"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: jvp(f, (x,), (x,))[0],
        lambda f: lambda x: vjp(f, x)[0],
    ],
    ids=["forward", "reverse"],
)
def test_equal_params_of_other_signs_have_programs_of_their_own(
    transform, staged, first, second, monkeypatch
):
    for name in ("_jvp", "_linearize"):
        monkeypatch.setattr(sys.modules[f"xad.{name}"]._templates, "uses", 1)
    x, beyond = xnp.asarray(X), xnp.array([0, 9])

    def filled(fill):
        fun = transform(lambda x: x.at[beyond].get(mode="fill", fill_value=fill))
        return str(make_jaxpr(fun)(x)) if staged else bits(fun(x))

    expected = filled(second)
    kernels.forget_kernels()
    for _ in range(3):
        filled(first)
    assert filled(first) != expected
    assert filled(second) == expected


# --- what rules may not do ------------------------------------------------------------------------


class Setting:
    scale = 2.0


def _by_setting(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return scaled_p.bind(x), (lax.mul(x_dot, scalar_array(Setting.scale, x.dtype)),)


def _transpose_by_setting(cts, x):
    return (lax.mul(cts[0], scalar_array(Setting.scale, x.aval.dtype)),)


def _primitive(name, **rules):
    kept = {
        "shape": lambda x: (x,), "numpy": lambda x: (x + x,), "stablehlo": undefined("a test"),
        "jvp": LINEAR, "transpose": undefined("a test"), "batch": ELEMENTWISE,
    }  # fmt: skip
    return Primitive(f"{name}_for_test_derivative_kernels", **kept | rules)


scaled_p = _primitive("scaled", jvp=_by_setting)
linear_p = _primitive("linear", transpose=_transpose_by_setting)


@pytest.mark.parametrize(
    ("primitive", "rule", "transformed"),
    [
        (scaled_p, _by_setting, lambda f: grad(f)(X)),
        (scaled_p, _by_setting, lambda f: jvp(f, (X,), (X,))),
        (linear_p, _transpose_by_setting, lambda f: grad(f)(X)),
    ],
    ids=["jvp in reverse", "jvp forward", "transpose"],
)
def test_checks_find_a_rule_that_reads_what_is_no_operand(
    primitive, rule, transformed, monkeypatch
):
    def fun(x):
        return xnp.sum(primitive.bind(x)[0])

    with config.enable_checks(True):
        for _ in range(3):
            transformed(fun)
        monkeypatch.setattr(Setting, "scale", 3.0)
        with pytest.raises(ImpureRuleError, match="does something else than before") as caught:
            transformed(fun)
    code = rule.__code__
    assert f"{code.co_filename}:{code.co_firstlineno}" in str(caught.value)
    assert "mul(2.0" in str(caught.value) or ", 2.0)" in str(caught.value)


def test_checks_pass_where_rules_are_pure():
    with config.enable_checks(True):
        assert_repeats(lambda: value_and_grad(rosenbrock)(X))
        assert_repeats(lambda: jvp(rosenbrock, (X,), (X,)))
        assert_repeats(lambda: grad(several_results)(X))


def test_a_rule_that_fails_on_abstract_values_is_named_in_the_log(caplog):
    with caplog.at_level("WARNING", "xprim.kernels"):
        for _ in range(4):
            grad(lambda x: xnp.sum(doubled_p.bind(x)[0]))(X)
    (record,) = [r for r in caplog.records if "doubled" in r.getMessage()]
    line = _value_of.__code__.co_firstlineno + 2
    text = record.getMessage()
    assert "linearize: no kernel for doubled_for_test_derivative_kernels" in text
    assert f"{__file__}:{line}: AttributeError: to_host" in text


def test_under_checks_the_error_of_such_a_rule_is_raised():
    with config.enable_checks(True), pytest.raises(AttributeError, match="to_host"):
        grad(lambda x: xnp.sum(doubled_p.bind(x)[0]))(X)


def test_a_function_of_one_operation_is_no_failure(caplog):
    with caplog.at_level("WARNING", "xprim.kernels"):
        for name in NAMES:
            fun, point = function_of(name, TABLE[name][0])
            for _ in range(3):
                with contextlib.suppress(MissingRuleError, ValueError):
                    vjp(fun, *point)
    assert [r.getMessage() for r in caplog.records] == []


THIRTIETH = """
import numpy as np, xnp
from xad import grad
from xprim.testing import functions_entered

gradient = grad(lambda v: xnp.sum(xnp.sin(v) * v))
x = xnp.asarray(np.arange(3.0))
for _ in range(29):
    gradient(x)
print(len(functions_entered(lambda: gradient(x))) - 1)  # the lambda itself
"""


def test_the_thirtieth_gradient_enters_at_most_a_hundred_functions():
    """Counted in a process of its own: where several devices are in use, places are asked for."""
    done = subprocess.run(
        [sys.executable, "-c", THIRTIETH], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= 100
