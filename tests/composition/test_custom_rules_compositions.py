"""Functions with rules of their own under all transformations, and rules made of these."""

import functools

import numpy as np
import pytest

import xnp
from tests.composition.functions import close
from xad import checkpoint, custom_jvp, custom_vjp, grad, hessian, jacfwd, jacrev, jvp, vjp
from xbatch import custom_vmap, vmap
from xjit import jit
from xnp import lax
from xprim.errors import UnexpectedTracerError

XS = np.float32([0.5, 1.0, 2.0])


@custom_jvp
def twice_wrong(x):
    """x^2 with a derivative that is wrong by a factor on purpose, so that its use shows."""
    return x * x


twice_wrong.defjvp(lambda primals, tangents: (twice_wrong(*primals), 100.0 * tangents[0]))


@custom_vjp
def clipped(x):
    """The identity whose cotangents are clipped to [-1, 1]."""
    return x


clipped.defvjp(lambda x: (x, None), lambda _, bar: (xnp.clip(bar, -1.0, 1.0),))

WRAPPERS = {
    "plain": lambda f: f,
    "jit": jit,
    "inside scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "inside cond": lambda f: lambda x: lax.cond(x < 1e9, f, lambda v: v, x),
    "inside vmap": lambda f: lambda x: vmap(f)(x[None])[0],
}


@pytest.mark.parametrize("name", [*WRAPPERS, "checkpoint"])
def test_a_custom_jvp_is_used_wherever_the_function_stands(name):
    wrap = {**WRAPPERS, "checkpoint": checkpoint}[name]
    f = wrap(twice_wrong)
    assert float(f(xnp.asarray(3.0))) == 9.0
    assert float(grad(f)(xnp.asarray(3.0))) == 100.0
    assert float(jvp(f, (xnp.asarray(3.0),), (xnp.asarray(1.0),))[1]) == 100.0
    close(jit(vmap(grad(f)))(XS), np.full(3, 100, np.float32))


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_custom_vjp_is_used_wherever_the_function_stands(name):
    f = WRAPPERS[name](clipped)
    assert float(grad(lambda x: 5.0 * f(x))(xnp.asarray(3.0))) == 1.0
    found = jit(vmap(grad(lambda x: 5.0 * x * f(x))))(XS)
    close(found, np.clip(5 * XS, -1, 1) + 5 * XS)


def test_the_rule_of_a_rule_is_differentiated_like_any_function():
    @custom_jvp
    def sine(x):
        return xnp.sin(x)

    @sine.defjvp
    def _(primals, tangents):
        return sine(*primals), xnp.cos(primals[0]) * tangents[0]

    assert float(grad(grad(grad(sine)))(0.5)) == pytest.approx(-np.cos(0.5), rel=1e-6)
    close(hessian(lambda x: xnp.sum(sine(x)))(XS), np.diag(-np.sin(XS)))
    close(jit(jacfwd(sine))(XS), np.diag(np.cos(XS)))


def test_python_control_flow_on_values_works_in_a_rule_under_eager_grad():
    @custom_vjp
    def f(x):
        return abs(x)

    f.defvjp(lambda x: (abs(x), x), lambda x, bar: (bar if float(x) > 0 else -bar,))
    assert float(grad(f)(-2.0)) == -1.0


def test_a_custom_vjp_that_captures_the_batch_of_an_enclosing_vmap():
    def outer(scale, x):
        @custom_vjp
        def f(v):
            return v * 2.0

        f.defvjp(lambda v: (v * 2.0, None), lambda _, bar: (bar * scale,))
        return f(x)

    close(vmap(grad(outer, 1), (0, None))(XS, 1.0), XS)


def test_custom_vmap_is_used_under_jit_and_grad_of_its_rule_works():
    @custom_vmap
    def f(x):
        return xnp.sin(x)

    @f.def_vmap
    def _(axis_size, in_batched, x):
        assert axis_size == 3
        assert in_batched == [True]
        return xnp.sin(x) + 10.0, True

    close(f(0.5), np.sin(np.float32(0.5)))
    close(vmap(f)(XS), np.sin(XS) + 10)
    close(jit(vmap(f))(XS), np.sin(XS) + 10)
    close(vmap(jit(f))(XS), np.sin(XS) + 10)
    close(grad(lambda v: xnp.sum(vmap(f)(v)))(XS), np.cos(XS))


def test_stop_gradient_inside_every_transformation():
    def f(x):
        return x * lax.stop_gradient(x)

    for g in (grad(f), grad(jit(f)), jit(grad(f)), grad(checkpoint(f))):
        assert float(g(3.0)) == 3.0
    close(vmap(grad(f))(XS), XS)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["plain", "jit"])
@pytest.mark.parametrize("rule", ["custom_jvp", "custom_vjp"])
def test_what_is_the_same_for_all_examples_has_one_derivative(rule, wrap):
    """`f(w)` inside vmap is computed once; its gradient is that of the sum over the examples."""
    if rule == "custom_jvp":
        f = custom_jvp(lambda w: w * w)
        f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * primals[0] * tangents[0]))
    else:
        f = custom_vjp(lambda w: w * w)
        f.defvjp(lambda w: (f(w), w), lambda w, bar: (3.0 * w * bar,))

    def loss(w, out_axes):
        xs, same = vmap(wrap(lambda x: (x * w, f(w))), out_axes=(0, out_axes))(XS)
        return xnp.sum(xs) + xnp.sum(same)

    close(wrap(lambda w: loss(w, None))(2.0), 7.0 + 4.0)
    close(wrap(grad(lambda w: loss(w, None)))(2.0), 3.5 + 6.0)
    close(grad(wrap(lambda w: loss(w, 0)))(2.0), 3.5 + 3 * 6.0)
    close(vmap(grad(lambda w: loss(w, None)))(np.float32([2.0, 1.0])), np.float32([9.5, 6.5]))


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["plain", "jit"])
def test_a_rule_may_send_the_derivative_past_a_result_that_is_constant(wrap):
    straight = custom_jvp(lambda x, y: y)
    straight.defjvp(lambda primals, tangents: (straight(*primals), tangents[0]))
    bars = np.float32([1.0, 2.0, 3.0])

    def loss(x, y):
        return xnp.sum(bars * vmap(straight, in_axes=(0, None))(x, y))

    close(grad(wrap(loss))(XS, 5.0), bars)
    close(jvp(wrap(loss), (XS, 5.0), (XS, 0.0)), (30.0, np.sum(bars * XS)))


def test_residuals_that_all_examples_share_are_kept_once():
    shapes = []
    product = custom_vjp(lambda x, w: x @ w)

    def bwd(kept, bar):
        shapes.extend(k.shape for k in kept)
        return bar @ kept[1].T, xnp.outer(kept[0], bar)

    product.defvjp(lambda x, w: (x @ w, (x, w)), bwd)
    rng = np.random.default_rng(0)
    xs, w = rng.normal(size=(4, 2)).astype("f"), rng.normal(size=(2, 3)).astype("f")
    rows, matrix = grad(lambda x, w: xnp.sum(vmap(product, (0, None))(x, w)), (0, 1))(xs, w)
    close(matrix, np.repeat(xs.sum(0)[:, None], 3, 1), rtol=1e-5)
    close(rows, np.repeat(w.sum(1)[None], 4, 0), rtol=1e-5)
    assert shapes == [(2,), (2, 3)]


def test_a_rule_that_alone_sees_the_batch_is_refused():
    def scaled(x, scale):
        same = custom_vjp(lambda x: x)
        same.defvjp(lambda x: (x, None), lambda kept, bar: (bar * scale,))
        return same(x)

    close(grad(lambda x: vmap(lambda s: scaled(x * s, s))(XS).sum())(1.0), np.sum(XS * XS))
    with pytest.raises(ValueError, match="a custom derivative rule depends on a value of the b"):
        grad(lambda x: vmap(lambda s: scaled(x, s))(XS).sum())(1.0)


def test_symbolic_zeros_reach_the_rules_of_a_batch():
    seen = []
    f = custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        seen.append([type(t).__name__ for t in tangents])
        return f(*primals), tangents[0] * primals[1]

    f.defjvp(rule, symbolic_zeros=True)
    close(grad(lambda x: vmap(f, (0, None))(x, 2.0).sum())(XS), np.float32([2, 2, 2]))
    assert len(seen) == 1 and seen[0][1] == "SymbolicZero"


PAIRS = {
    "plain": lambda f: f,
    "jit": jit,
    "checkpoint": checkpoint,
    "vmap": lambda f: lambda x, y: vmap(f)(x[None], y[None])[0],
    "jit of vmap": lambda f: jit(lambda x, y: vmap(f, (0, None))(x[None], y)[0]),
    "inside scan": lambda f: jit(
        lambda x, y: lax.scan(lambda c, v: (f(c, v), None), x, y[None])[0]),
}  # fmt: skip


@pytest.mark.parametrize("wrap", PAIRS)
def test_residuals_may_differ_by_what_is_perturbed(wrap):
    f = custom_vjp(lambda x, y: xnp.sin(x) * y)

    def fwd(x, y):
        (x, x_moves), (y, y_moves) = (x.value, x.perturbed), (y.value, y.perturbed)
        kept = {"both": (x, y)} if x_moves and y_moves else [y, x] if x_moves else (x,)
        return xnp.sin(x) * y, kept

    def bwd(kept, ct):
        if isinstance(kept, list):
            return ct * xnp.cos(kept[1]) * kept[0], None
        if isinstance(kept, tuple):
            return None, ct * xnp.sin(kept[0])
        x, y = kept["both"]
        return ct * xnp.cos(x) * y, ct * xnp.sin(x)

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    g, x, y = PAIRS[wrap](f), xnp.asarray(1.0), xnp.asarray(3.0)
    pulls = [vjp(lambda x: g(x, y), x)[1], vjp(g, x, y)[1], vjp(lambda y: g(x, y), y)[1]]
    dx, dy = 3 * np.cos(1.0), np.sin(1.0)
    for pull, expected in [*zip(pulls, [(dx,), (dx, dy), (dy,)], strict=True), (pulls[0], (dx,))]:
        close(np.stack(pull(xnp.asarray(1.0))), np.float32(expected))


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_rule_may_take_the_jvp_of_a_function_with_a_reverse_rule(wrap):
    inner = custom_vjp(xnp.sin)
    inner.defvjp(lambda x: (xnp.sin(x), x), lambda x, bar: (bar * xnp.cos(x),))
    outer = custom_jvp(inner)
    outer.defjvp(lambda primals, tangents: jvp(WRAPPERS[wrap](inner), primals, tangents))
    x = xnp.asarray(0.7)
    for outside in (lambda f: f, jit, checkpoint):
        close(outside(grad(outer))(x), np.cos(0.7))
        close(outside(vmap(grad(outer)))(XS), np.cos(XS))
        close(outside(hessian(outer))(x), -np.sin(0.7))
        close(outside(lambda x: jvp(outer, (x,), (x,))[1])(x), 0.7 * np.cos(0.7))
        close(outside(lambda x: jvp(grad(outer), (x,), (x,))[1])(x), -0.7 * np.sin(0.7))


def test_a_rule_whose_primal_and_tangent_pass_through_one_cond_of_a_batch():
    @custom_jvp
    def half_or_square(x):
        return xnp.where(x > 1, x * x, x / 2)

    @half_or_square.defjvp
    def _(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return lax.cond(
            x > 1,
            lambda x, dot: (x * x, 2 * x * dot),
            lambda x, dot: (x / 2, dot / 2),
            x, x_dot,
        )  # fmt: skip

    expected = np.float32([0.5, 0.5, 4.0])
    close(vmap(grad(half_or_square))(XS), expected)
    close(grad(lambda x: xnp.sum(vmap(half_or_square)(x)))(XS), expected)
    close(vmap(hessian(half_or_square))(XS), np.float32([0, 0, 2]))


@pytest.mark.parametrize("call", [
    checkpoint,
    lambda fun: lambda *xs: lax.scan(
        lambda c, _: ((c[0], fun(*c[0])), None), (xs, xs), None, length=2)[0][1],
], ids=["checkpoint", "scan"])  # fmt: skip
def test_such_a_cond_may_stand_in_a_call_that_computes_it_again(call):
    squared = custom_jvp(lambda x: x * x)

    def both(x, dot):
        rule = lambda x, dot: (x * x, 2 * x * dot)  # noqa: E731
        return lax.cond(x > 1, rule, lambda x, dot: (x * x, 3 * x * dot), x, dot)

    squared.defjvp(lambda primals, tangents: call(both)(primals[0], tangents[0]))
    expected = np.where(XS > 1, 2, 3) * XS
    total = lambda x: xnp.sum(vmap(squared)(x))  # noqa: E731
    for gradient in (grad(total), jit(grad(total)), vmap(grad(squared)), grad(jit(total))):
        close(gradient(XS), expected)
    close(jvp(vmap(squared), (XS,), (XS,))[1], expected * XS)


def test_a_rule_for_batches_is_set_through_a_rule_for_derivatives():
    @custom_vjp
    @custom_vmap
    def f(x, y):
        return xnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        return xnp.cos(x) * y, True

    f.defvjp(lambda x, y: (f(x, y), xnp.cos(x)), lambda c, ct: (3.0 * c * ct, 0.0 * ct))
    assert vmap(f)(xnp.zeros(3), xnp.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert float(grad(f)(0.0, 1.0)) == 3.0
    with pytest.raises(AttributeError, match="'custom_vjp' object has no attribute 'def_vmapp'"):
        _ = f.def_vmapp
    assert not hasattr(f, "_cache_size")


def test_a_traced_array_that_nondiff_argnums_names_is_named_by_the_error():
    @functools.partial(custom_jvp, nondiff_argnums=(1,))
    def picked(x, positions):
        return x[positions]

    picked.defjvp(lambda positions, primals, dots: (primals[0][positions], dots[0][positions]))
    x, positions = xnp.arange(4.0), xnp.array([1, 3])
    close(jit(jacrev(picked))(x, positions), np.eye(4)[[1, 3]])
    text = "the argument positions of picked, which nondiff_argnums names, is a traced value"
    with pytest.raises(UnexpectedTracerError, match=text):
        jacrev(jit(picked))(x, positions)
