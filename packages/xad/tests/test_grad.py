import gc
import weakref

import numpy as np
import pytest

import xnp
import xtree
from packages.xad.tests.programs import (
    add,
    conj,
    div,
    dot,
    exp,
    floor,
    greater,
    imag,
    log,
    mul,
    neg,
    real,
    repeat,
    select,
    sin,
    sub,
    tanh,
    to_float,
    to_integer,
    total,
)
from xad import fwd_and_bwd, grad, jvp, linearize, value_and_grad, vjp
from xprim import (
    Primitive,
    as_array,
    config,
    dtypes,
    ensure_compile_time_eval,
    eval_closed,
    make_jaxpr,
    undefined,
)
from xprim.errors import (
    MissingRuleError,
    ShapeError,
    TracerBoolConversionError,
    UnexpectedTracerError,
)

X = np.array([0.3, -1.2, 2.0], np.float32)


def close(got, expected, rtol=1e-5):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=rtol, atol=1e-6)


def test_gradient_is_the_derivative():
    close(grad(lambda x: mul(sin(x), x))(2.0), np.sin(2.0) + 2.0 * np.cos(2.0))


def test_gradients_of_any_order():
    f = sin
    for derivative in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos):
        f = grad(f)
        close(f(0.7), derivative(0.7))


def test_perturbations_of_nested_derivatives_are_not_confused():
    # d/dx [x * d/dy (x + y)] = 1, and 2 where the two perturbations are mixed up
    close(grad(lambda x: mul(x, grad(lambda y: add(x, y))(1.0)))(1.0), 1.0)
    close(jvp(lambda x: mul(x, jvp(lambda y: add(x, y), (1.0,), (1.0,))[1]), (1.0,), (1.0,))[1], 1)
    inner = grad(lambda x: mul(x, jvp(lambda y: mul(x, y), (2.0,), (1.0,))[1]))  # x * x
    close(inner(3.0), 6.0)


def test_grad_inside_jvp_inside_vjp():
    def f(x):
        return jvp(grad(lambda y: mul(sin(y), mul(x, y))), (x,), (1.0,))[1]

    # g(y) = x y sin y, g' = x (sin y + y cos y), g'' = x (2 cos y - y sin y), at y = x:
    # f(x) = 2 x cos x - x^2 sin x, f' = 2 cos x - 4 x sin x - x^2 cos x
    # along x alone of the derivative: both the outer x and y move
    y, pull = vjp(f, 0.8)
    x = 0.8
    close(y, 2 * x * np.cos(x) - x * x * np.sin(x))
    close(pull(1.0)[0], 2 * np.cos(x) - 4 * x * np.sin(x) - x * x * np.cos(x))


def test_what_a_function_closes_over_is_differentiated_by_the_outer_transformation():
    def outer(w):
        return total(grad(lambda x: total(mul(w, mul(x, x))))(X))  # 2 w x

    close(grad(outer)(as_array(X)), 2 * X)


def test_the_same_input_used_twice_gets_both_contributions():
    close(grad(lambda x: add(x, x))(1.0), 2.0)
    close(grad(lambda x, y: mul(x, y), (0, 1))(2.0, 2.0), (2.0, 2.0))


def test_a_constant_function_has_gradient_zero_and_the_identity_one():
    close(grad(lambda x: as_array(4.0))(1.0), 0.0)
    close(grad(lambda x: x)(1.0), 1.0)
    close(grad(lambda x: 4.0)(1.0), 0.0)


def test_integers_and_comparisons_have_no_derivative():
    close(grad(lambda x: mul(x, to_float(to_integer(x))))(2.5), 2.0)
    close(grad(lambda x: select(greater(x, 0.0), neg(x), mul(x, x)))(3.0), 6.0)
    close(grad(lambda x: mul(floor(x), x))(2.5), 2.0)


def test_allow_int_gives_zeros_of_dtype_float0():
    gradient = grad(lambda n: mul(to_float(n), 2.0), allow_int=True)(3)
    assert gradient.dtype == dtypes.float0 and gradient.shape == ()
    tree = grad(lambda t: mul(t["x"], to_float(t["n"])), allow_int=True)({"x": 2.0, "n": 3})
    assert tree["n"].dtype == dtypes.float0
    close(tree["x"], 3.0)


def test_argnums_selects_arguments_and_keeps_their_trees():
    def f(a, b, *, scale):
        return mul(total(mul(a["w"], b[0])), scale)

    a, b = {"w": X}, (X + 1, None)
    close(grad(f)(a, b, scale=2.0)["w"], 2 * (X + 1))
    gradient = grad(f, -1)(a, b, scale=2.0)
    close(gradient[0], 2 * X)
    assert gradient[1] is None
    both = grad(f, (1, 0))(a, b, scale=2.0)
    assert xtree.structure(both) == xtree.structure((b, a))
    assert isinstance(grad(f, (0,))(a, b, scale=2.0), tuple)
    close(grad(f, np.int64(0))(a, b, scale=2.0)["w"], 2 * (X + 1))


def test_value_and_grad_gives_both():
    value, gradient = value_and_grad(lambda x: mul(x, x))(3.0)
    assert float(value) == 9.0 and float(gradient) == 6.0


def test_auxiliary_output_leaves_as_values_of_the_enclosing_computation():
    def f(x):
        return mul(x, x), {"inside": sin(x), "text": "as it is", "input": x, "none": None}

    gradient, aux = grad(f, has_aux=True)(3.0)
    close(gradient, 6.0)
    close(aux["inside"], np.sin(3.0))
    close(aux["input"], 3.0)
    assert aux["text"] == "as it is" and aux["none"] is None
    (value, _), gradient = value_and_grad(f, has_aux=True)(3.0)
    close(value, 9.0)
    # the auxiliary output of an inner gradient is differentiated by an outer one
    close(grad(lambda x: grad(f, has_aux=True)(x)[1]["inside"])(3.0), np.cos(3.0))
    assert len(make_jaxpr(lambda x: grad(f, has_aux=True)(x)[1]["inside"])(3.0).out_avals) == 1


def test_python_control_flow_works_on_values():
    def f(x):
        while x < 10:
            x = mul(x, x)
        return x if x.concrete() is not None else None

    close(grad(f)(2.0), 4 * 2.0**3)


def test_gradient_of_a_program_with_contractions_equals_the_oracle():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=(3, 4)).astype("f4"), rng.normal(size=(4,)).astype("f4")

    def ours(p):
        return total(tanh(add(dot(X, p["w"]), p["b"])))

    def theirs(p):
        return jnp.sum(jnp.tanh(X @ p["w"] + p["b"]))

    got, expected = grad(ours)({"w": w, "b": b}), jax.grad(theirs)({"w": w, "b": b})
    close(got["w"], expected["w"])
    close(got["b"], expected["b"])


def _with_values(closed, *args):
    return eval_closed(closed, *[as_array(a) for a in args])


def test_a_staged_gradient_is_the_same_program_evaluated():
    def f(x):
        return total(mul(div(sin(x), exp(x)), log(add(mul(x, x), repeat(1.0, 3)))))

    first = make_jaxpr(grad(f))(X)
    close(_with_values(first, X)[0], grad(f)(X))
    second = make_jaxpr(grad(lambda x: total(grad(f)(x))))(X)
    close(_with_values(second, X)[0], grad(lambda x: total(grad(f)(x)))(X), rtol=1e-4)


def test_gradients_of_real_functions_of_complex_arguments_follow_the_oracle():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    z = np.complex64(0.3 - 1.7j)
    pairs = [
        (lambda z: real(mul(z, conj(z))), lambda z: jnp.real(z * jnp.conj(z))),
        (lambda z: imag(mul(z, z)), lambda z: jnp.imag(z * z)),
        (
            lambda z: add(real(sin(z)), imag(exp(z))),
            lambda z: jnp.real(jnp.sin(z)) + jnp.imag(jnp.exp(z)),
        ),
    ]
    for ours, theirs in pairs:
        close(grad(ours)(z), jax.grad(theirs)(z))


def test_holomorphic_functions_have_complex_derivatives():
    z = np.complex64(0.3 - 1.7j)
    close(grad(lambda z: mul(z, sin(z)), holomorphic=True)(z), np.sin(z) + z * np.cos(z))


def test_gradients_keep_the_dtype_and_the_weak_type_of_the_argument():
    jax = pytest.importorskip("jax")
    expected = jax.grad(lambda x: x * x)(3.0)
    got = grad(lambda x: mul(x, x))(3.0)
    assert (got.dtype, got.weak_type) == (expected.dtype, expected.weak_type) == (np.float32, True)
    assert not grad(lambda x: mul(x, x))(np.float32(3)).weak_type
    with config.enable_x64(True):
        assert grad(lambda x: mul(x, x))(np.float64(3)).dtype == np.float64
    assert grad(lambda x: mul(x, x))(np.float16(3)).dtype == np.float16


def test_vjp_gives_the_result_and_a_function_that_can_be_called_again():
    y, pull = vjp(lambda x, y: {"p": mul(x, y), "q": sub(x, y)}, 2.0, 5.0)
    close(y["p"], 10.0)
    close(pull({"p": 1.0, "q": 0.0}), (5.0, 2.0))
    close(pull({"p": 0.0, "q": 2.0}), (2.0, -2.0))


def test_vjp_of_an_integer_result_takes_a_float0_cotangent():
    _, pull = vjp(lambda x: (to_integer(x), mul(x, x)), 3.0)
    close(pull((np.zeros((), dtypes.float0), 1.0))[0], 6.0)


def test_linearize_pushes_tangents_without_evaluating_again():
    calls = []

    def f(x, y):
        calls.append(1)
        return mul(sin(x), y), to_integer(x)

    y, push = linearize(f, 1.0, 2.0)
    close(y[0], 2 * np.sin(1.0))
    tangent, none = push(1.0, 0.0)
    close(tangent, 2 * np.cos(1.0))
    assert none.dtype == dtypes.float0
    close(push(0.0, 1.0)[0], np.sin(1.0))
    assert len(calls) == 1


def test_linearize_composes_with_grad():
    close(grad(lambda x: linearize(sin, x)[1](1.0))(0.4), -np.sin(0.4))


def test_tracers_show_what_is_known_of_them():
    seen = []
    grad(lambda x: (seen.append(repr(x)), mul(x, x))[1])(3.0)
    jvp(lambda x: (seen.append(repr(x)), x)[1], (3.0,), (1.0,))
    make_jaxpr(grad(lambda x: (seen.append(repr(x)), mul(x, x))[1]))(3.0)
    assert "GradTracer<~f32[]>" in seen[0] and "Array(3." in seen[0]
    assert "JvpTracer<~f32[]>" in seen[1]
    assert "GradTracer<~f32[]>(primal=JaxprTracer<~f32[]>" in seen[2]


def test_the_trace_is_restored_when_a_differentiated_function_raises():
    def broken(x):
        raise KeyError("mine")

    for transformation in (grad, lambda f: lambda x: jvp(f, (x,), (x,)), make_jaxpr):
        with pytest.raises(KeyError, match="mine"):
            transformation(broken)(1.0)
        close(sin(1.0), np.sin(1.0))


def test_a_tracer_that_outlives_its_gradient_is_reported():
    kept = []
    grad(lambda x: (kept.append(mul(x, x)), x)[1])(3.0)
    with pytest.raises(UnexpectedTracerError, match="after the transformation that made it"):
        sin(kept[0])
    with pytest.raises(UnexpectedTracerError):
        grad(lambda y: mul(y, kept[0]))(1.0)


def test_leaks_are_found_when_the_scope_ends_if_asked():
    kept = []
    with config.check_tracer_leaks(True):
        with pytest.raises(UnexpectedTracerError, match="kept in a list of length 1"):
            grad(lambda x: (kept.append(mul(x, x)), x)[1])(3.0)
        kept.clear()
        close(grad(lambda x: mul(x, x))(3.0), 6.0)
        gradient, aux = grad(lambda x: (mul(x, x), {"x": x}), has_aux=True)(3.0)
        close((gradient, aux["x"]), (6.0, 3.0))


def test_values_are_not_there_under_staging_even_inside_grad():
    with pytest.raises(TracerBoolConversionError):
        make_jaxpr(grad(lambda x: x or sin(x)))(1.0)


# --- errors -------------------------------------------------------------------------------------


def test_gradient_of_a_function_of_no_scalar_result_says_what_to_do():
    with pytest.raises(
        TypeError,
        match=r"grad: the function must return a scalar, but returned an array of shape \[3\]",
    ) as e:
        grad(sin)(X)
    assert "jacrev" in str(e.value) and "float32[3]" in str(e.value)
    with pytest.raises(TypeError, match="returned a tree of 2 arrays"):
        value_and_grad(lambda x: (x, x))(1.0)


def test_gradient_by_an_integer_says_what_to_do():
    with pytest.raises(
        TypeError, match="grad: cannot differentiate with respect to values of dtype int32"
    ) as e:
        grad(to_float)(3)
    assert "3.0 instead of 3" in str(e.value)
    with pytest.raises(TypeError, match=r"dtype int32 at \['n'\]"):
        grad(lambda t: t["x"])({"n": 1, "x": 1.0})


def test_gradient_of_an_integer_or_complex_result_is_refused():
    with pytest.raises(TypeError, match="must return a real floating scalar, got int32"):
        grad(to_integer)(1.0)
    with pytest.raises(TypeError, match="got complex64"):
        grad(lambda z: z)(np.complex64(1))
    with pytest.raises(TypeError, match="holomorphic=True needs complex arguments, got float32"):
        grad(sin, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="holomorphic=True needs a complex result"):
        grad(real, holomorphic=True)(np.complex64(1))


def test_gradient_of_an_undefined_rule_gives_its_reason():
    p = Primitive(
        "test_grad_undefined", shape=lambda x: (x,), numpy=lambda x: (x,), stablehlo=undefined("t"),
        jvp=undefined("a staircase has no slope"), transpose=undefined("t"), batch=undefined("t"),
    )  # fmt: skip
    with pytest.raises(MissingRuleError, match="test_grad_undefined: has no jvp rule: a staircase"):
        grad(lambda x: p.bind(x)[0])(1.0)


def test_argnums_that_do_not_fit_are_refused():
    with pytest.raises(
        ValueError,
        match="requests argument 2, but the function was called with 1 positional argument",
    ):
        grad(sin, 2)(1.0)
    with pytest.raises(ValueError, match="names an argument twice"):
        grad(mul, (0, -2))(1.0, 2.0)
    with pytest.raises(TypeError, match="argnums must be an int or a tuple of ints, got 'x'"):
        grad(sin, "x")(1.0)
    with pytest.raises(TypeError, match="grad: expected a function, got a float"):
        grad(3.0)


def test_leaves_that_are_no_arrays_are_named_by_their_path():
    with pytest.raises(TypeError, match=r"grad: the argument at \['w'\]: a str is not an array"):
        grad(lambda t: t)({"w": "text", "v": 1.0})
    with pytest.raises(TypeError, match=r"vjp: the result at \[1\]"):
        vjp(lambda x: (x, object()), 1.0)
    with pytest.raises(
        TypeError, match="grad: with has_aux=True the function must return a two-element tuple"
    ):
        grad(sin, has_aux=True)(1.0)


def test_tangents_and_cotangents_must_fit_the_primals():
    with pytest.raises(
        TypeError,
        match="jvp: unexpected tree structure: the tangents must have the structure of the primals",
    ):
        jvp(sin, (1.0,), ({"a": 1.0},))
    with pytest.raises(
        TypeError, match=r"jvp: the tangent at \[0\] must have the shape and dtype of its primal"
    ) as e:
        jvp(sin, (X,), (np.ones(2, np.float32),))
    assert "float32[2]" in str(e.value) and "float32[3]" in str(e.value)
    with pytest.raises(TypeError, match="must have the shape and dtype"):
        jvp(sin, (1.0,), (np.float16(1),))
    with pytest.raises(TypeError, match="must have the shape and dtype"):
        jvp(sin, (1.0,), (1j,))
    with pytest.raises(TypeError, match="must have dtype float0"):
        jvp(to_float, (1,), (1,))
    with pytest.raises(
        TypeError, match="jvp: primals must be a tuple or list of arguments, got a float"
    ):
        jvp(sin, 1.0, 1.0)
    _, pull = vjp(lambda x: {"y": sin(x)}, 1.0)
    with pytest.raises(TypeError, match="vjp: unexpected tree structure: the cotangents must"):
        pull(1.0)
    with pytest.raises(TypeError, match=r"vjp: the cotangent at \['y'\] must have the shape"):
        pull({"y": np.ones(3, np.float32)})
    with pytest.raises(ValueError, match="vjp: reduce_axes is not supported"):
        vjp(sin, 1.0, reduce_axes=("i",))


def test_a_value_under_differentiation_keeps_its_derivative_in_compile_time_evaluation():
    def f(x):
        with ensure_compile_time_eval():
            return sin(x)

    assert float(grad(f)(1.0)) == float(grad(sin)(1.0))


@pytest.mark.parametrize("jitted", [False, True])
def test_the_two_passes_of_fwd_and_bwd_give_what_vjp_gives(jitted):
    def function(x, y, scale):
        return mul(mul(scale, x), sin(y)), x

    fwd, bwd = fwd_and_bwd(function, argnums=(1, 0), has_aux=True, jitted=jitted)
    for x in (2.0, 3.0):
        result, residuals, aux = fwd(x, 0.5, scale=4.0)
        y_bar, x_bar = bwd(residuals, 1.0)
        assert np.allclose([result, aux], [4 * x * np.sin(0.5), x])
        assert np.allclose([x_bar, y_bar], [4 * np.sin(0.5), 4 * x * np.cos(0.5)])
    fwd, bwd = fwd_and_bwd(mul, argnums=-1, jitted=jitted)
    assert float(bwd(fwd(2.0, 3.0)[1], 5.0)) == 10.0
    with pytest.raises(ValueError, match="fwd_and_bwd"):
        fwd()


def test_what_flows_to_a_result_of_integers_is_not_looked_at_but_for_its_shape():
    y, pull_back = vjp(lambda x: {"value": mul(x, x), "count": to_integer(x)}, X)
    counts = (np.ones(3, np.int32), np.float32([1, 2, 3]), np.zeros(3, dtypes.float0), y["count"])
    for count in counts:
        (x_bar,) = pull_back({"value": np.ones(3, np.float32), "count": count})
        close(x_bar, 2 * X)
    with pytest.raises(ShapeError, match=r"the cotangent at \['count'\] must have the shape"):
        pull_back({"value": np.ones(3, np.float32), "count": 0})
    close(vjp(to_integer, np.float32(2))[1](1)[0], 0.0)
    with pytest.raises(ShapeError, match="must have dtype float0"):  # a tangent says how it changes
        jvp(lambda x: x, (np.ones(2, np.int32),), (np.ones(2, np.int32),))


def test_a_pull_back_frees_an_argument_that_no_derivative_needs():
    x, shift = [xnp.asarray(np.ones(8, np.float32)) for _ in range(2)]
    for _ in range(4):  # the later ones by a kernel
        _, pull_back = vjp(lambda x, shift: xnp.sum(xnp.sin(x) + shift), x, shift)
        alive = weakref.ref(shift.host)
        shift = xnp.asarray(np.ones(8, np.float32))
        gc.collect()
        assert alive() is None
        assert [type(saved).__name__ for saved in pull_back.args_res][1] == "NotNeeded"


def test_seeds_of_derivatives_are_literals_where_scalar_arrays_are_constants():
    with config.scalar_constants(True):
        for derivative in (grad(xnp.sin), lambda x: jvp(xnp.sin, (x,), (1.0,))):
            assert not make_jaxpr(derivative)(0.5).consts
