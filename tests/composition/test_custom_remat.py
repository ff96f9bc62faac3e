"""`custom_remat`, `custom_vjp.defremat`: what a checkpoint keeps of a function with such rules."""

import numpy as np
import pytest

import xnp
import xstack
from tests.composition.functions import close
from tests.composition.nestings import TRANSFORMS, nested
from xad import (
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    custom_vjp,
    grad,
    hessian,
    saved_residuals,
)
from xbatch import vmap
from xjit import jit
from xnp import lax

XS = np.float32([0.7, -1.3, 0.4])
WHERE = {
    "plain": lambda f: f,
    "jit": jit,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "cond": lambda f: lambda x: lax.cond(x.sum() < 1e9, f, lambda v: v, x),
    "vmap": lambda f: lambda x: vmap(f)(x[None])[0],
    "checkpoint": checkpoint,
}


def sine(ran=None):
    """The sine, whose cosine is kept; `ran` gets the names of the rules that run."""
    ran = [] if ran is None else ran

    @custom_vjp
    def f(x):
        ran.append("f")
        return xnp.sin(x)

    def fwd(x):
        ran.append("fwd")
        return xnp.sin(x), {"cos": xnp.cos(x)}

    def rem(kept, x):
        ran.append("rem")
        return xnp.sin(x), kept["cos"]

    f.defremat(fwd, rem, lambda cos, ct: (ct * cos,))
    return f


def by_policy(policies=None):
    """The square of the sine: its residuals depend on the policy, which `policies` gets."""

    def fwd(policy, x):
        if policies is not None:
            policies.append(policy)
        return xnp.sin(x) ** 2, None if policy is None else xnp.cos(x)

    def rem(cos, x):
        cos = xnp.cos(x) if cos is None else cos
        return xnp.sin(x) ** 2, (xnp.sin(x), cos)

    return xstack.custom_remat(
        lambda x: xnp.sin(x) ** 2, fwd, rem, lambda kept, ct: (2 * ct * kept[0] * kept[1],)
    )


def kept(f, x=XS):
    """Return the operations whose results a gradient stores."""
    found = saved_residuals(lambda x: f(x).sum(), x)
    return [r.origin.split(" from ")[0] for r in found if "argument" not in r.origin]


@pytest.mark.sampled(every=9, per="make")
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("make", [sine, by_policy])
def test_derivatives_are_those_of_the_function_in_every_nesting(make, inner, outer):
    own = make()
    fun = checkpoint(lambda x: own(xnp.tanh(x)) * x)
    plain = {sine: xnp.sin, by_policy: lambda x: xnp.sin(x) ** 2}[make]
    expected = nested(lambda x: plain(xnp.tanh(x)) * x, inner, outer)(XS)
    # the same operations in float32, sums ordered otherwise
    np.testing.assert_allclose(nested(fun, inner, outer)(XS), expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("inside", WHERE)
@pytest.mark.parametrize("outside", ["plain", "jit", "scan", "vmap"])
def test_rules_hold_wherever_the_call_stands(inside, outside):
    f = WHERE[outside](checkpoint(WHERE[inside](sine())))
    close(grad(lambda x: f(x).sum())(XS), np.cos(XS))
    second = grad(lambda x: grad(lambda x: f(x).sum())(x).sum())
    close(second(XS), -np.sin(XS))


def test_a_checkpoint_keeps_what_the_fwd_rule_returns_and_runs_the_rem_rule_again():
    ran = []
    f = sine(ran)
    assert kept(checkpoint(f)) == ["output of cos"]
    assert kept(checkpoint(lambda x: f(xnp.tanh(x)))) == ["output of cos"]
    assert kept(checkpoint(jit(f))) == ["output of cos"]
    assert kept(checkpoint(xnp.sin)) == []
    _, pull = xstack.vjp(checkpoint(f), XS)
    ran.clear()
    program = str(xstack.make_jaxpr(pull)(XS))
    assert " cos " not in program and " sin " not in program


def scanned(f):
    """Apply a function in each of three steps, to values of the carry and of elements."""
    return lambda x: lax.scan(lambda c, w: (f(c * w) + c, f(w)), x, xnp.ones((3, 3)) * 0.9)


def chosen_in_scan(f):
    return scanned(lambda v: lax.cond(v.sum() < 1e9, f, lambda v: v * v, v))


def nested_scans(f):
    return scanned(lambda v: lax.scan(lambda c, _: (f(c), c), v, None, length=2)[0])


def scan_in_a_branch(f):
    return lambda x: lax.cond(x.sum() < 1e9, scanned(f), lambda x: (x, xnp.ones((3, 3)) * x), x)


def bounded(f):
    def step(c):
        return c[0] + 1, f(c[1] * 0.9) + c[1], c[2] + f(c[1])

    return lambda x: lax.while_loop(lambda c: c[0] < 3, step, (0, x, x * 0), max_steps=3)[1:]


def bounded_in_scan(f):
    def step(c, bound):
        return lax.fori_loop(0, bound, lambda i, c: f(c) + c, c, max_steps=3), f(c)

    return lambda x: lax.scan(step, x, xnp.arange(3))


LOOPS = [scanned, chosen_in_scan, nested_scans, scan_in_a_branch, bounded, bounded_in_scan]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("compiled", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("loop", LOOPS)
def test_derivatives_of_loops_with_such_calls_are_those_of_the_function(loop, compiled):
    def total(f):
        def value(x):
            carry, ys = loop(f)(x)
            return (carry * xnp.arange(3.0)).sum() + (ys**2).sum()

        return value

    f, plain = checkpoint(total(sine())), total(xnp.sin)
    close(compiled(f)(XS), plain(XS))
    close(compiled(grad(f))(XS), grad(plain)(XS))
    second = compiled(grad(lambda x: grad(f)(x).sum()))(XS)
    # the same operations in float32, sums ordered otherwise
    np.testing.assert_allclose(second, grad(lambda x: grad(plain)(x).sum())(XS), rtol=2e-5)
    close(compiled(vmap(grad(f)))(XS[None])[0], grad(plain)(XS))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_checkpoint_of_a_loop_keeps_what_fwd_returns_in_each_step(loop):
    fun = checkpoint(lambda x: loop(sine())(x)[0])
    stored = saved_residuals(lambda x: fun(x).sum(), XS)
    assert any(r.aval.shape[:1] == (3,) and r.aval.ndim > 1 for r in stored)
    _, pull = xstack.vjp(fun, XS)
    assert " cos " not in str(xstack.make_jaxpr(pull)(XS))
    forward = str(xstack.make_jaxpr(lambda x: xstack.vjp(fun, x)[0])(XS))
    assert "remat_residual" not in forward and "saved_value" not in forward


# What a policy keeps of the values in a body, beside carries and elements.
NAMED = {
    "none": None, "dots": checkpoint_policies.dots_saveable,
    "a name": checkpoint_policies.save_only_these_names("h"),
    "no name": checkpoint_policies.save_only_these_names("other"),
    "to the host": checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["h"],
        offload_src="device", offload_dst="pinned_host",
    ),
}  # fmt: skip


def layer(x):
    h = checkpoint_name(xnp.tanh(xnp.eye(3) * 0.7 @ x), "h")
    return xnp.sin(h) * x


@pytest.mark.sampled(every=36)
@pytest.mark.parametrize("compiled", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("policy", NAMED)
@pytest.mark.parametrize("loop", LOOPS)
def test_policies_speak_of_values_in_loops_and_branches(loop, policy, compiled):
    def total(x):
        carry, ys = loop(layer)(x)
        return (carry * xnp.arange(3.0)).sum() + (ys**2).sum()

    f = checkpoint(total, policy=NAMED[policy])
    close(compiled(f)(XS), total(XS))
    close(compiled(grad(f))(XS), grad(total)(XS))
    # the same operations in float32, sums ordered otherwise
    np.testing.assert_allclose(compiled(hessian(f))(XS), hessian(total)(XS), rtol=2e-4, atol=1e-5)
    close(grad(lambda x: vmap(f)(x).sum())(XS[None])[0], grad(total)(XS))
    stored = [r for r in saved_residuals(f, XS) if "kept by" in r.reason]
    assert bool(stored) == (policy in ("dots", "a name", "to the host"))
    made = "output of dot_general" if policy == "dots" else "named 'h'"
    assert all(r.origin.startswith(f"{made} from test_custom_remat.py") for r in stored)


def test_what_a_policy_keeps_of_a_loop_is_not_computed_again():
    def products(policy):
        _, pull = xstack.vjp(checkpoint(lambda x: scanned(layer)(x)[0], policy=policy), XS)
        return str(xstack.make_jaxpr(pull)(XS)).count("dot_general")

    # one of the cotangent for each call of the layer in a step; with its own where nothing is kept
    assert products(checkpoint_policies.dots_saveable) == products(None) // 2 == 1


def test_branches_keep_residuals_of_their_own():
    def fwd(x):
        return xnp.sin(x), (xnp.cos(x), xnp.arange(4), x.astype("bfloat16"))

    f = custom_vjp(lambda x: xnp.sin(x))
    f.defremat(fwd, lambda kept, x: (xnp.sin(x), kept[0]), lambda cos, ct: (ct * cos,))
    fun = checkpoint(lambda p, x: lax.cond(p, sine(), f, x).sum())
    for p in (True, False):
        close(jit(grad(fun, 1))(p, XS), np.cos(XS))
        close(grad(fun, 1)(p, XS), np.cos(XS))


def test_a_policy_that_has_no_hash_is_an_error_at_once():
    class Policy:
        __hash__ = None

        def __call__(self, *args, **params):
            return False

    for f in (sine(), xnp.sin):
        with pytest.raises(TypeError, match="the policy must be hashable, got a"):
            checkpoint(f, policy=Policy())


def test_the_forward_pass_runs_the_fwd_rule_alone():
    f = custom_vjp(lambda x: xnp.exp(x))
    f.defremat(
        lambda x: (xnp.sin(x), xnp.cos(x)), lambda cos, x: (xnp.sin(x), cos),
        lambda cos, ct: (ct * cos,),
    )  # fmt: skip
    close(checkpoint(f)(XS), np.exp(XS))
    value, pull = xstack.vjp(checkpoint(f), XS)
    close(value, np.sin(XS))
    close(pull(xnp.ones(3))[0], np.cos(XS))


def test_elsewhere_the_rules_of_defvjp_hold_and_without_them_rem_runs_after_fwd():
    ran = []
    f = sine(ran)
    close(grad(lambda x: f(x).sum())(XS), np.cos(XS))
    assert ran == ["fwd", "rem"]
    f.defvjp(lambda x: (xnp.sin(x), None), lambda _, ct: (100 * ct,))
    close(grad(lambda x: f(x).sum())(XS), np.full(3, 100))
    close(grad(lambda x: checkpoint(f)(x).sum())(XS), np.cos(XS))


def test_the_fwd_rule_of_custom_remat_is_given_the_policy():
    policies = []
    f = by_policy(policies)
    save = checkpoint_policies.save_only_these_names("nothing")
    for policy in (None, save, checkpoint_policies.nothing_saveable):
        close(grad(lambda x: checkpoint(jit(f), policy=policy)(x).sum())(XS), np.sin(2 * XS))  # noqa: B023
    assert policies == [None, save, checkpoint_policies.nothing_saveable]
    assert kept(checkpoint(f)) == []
    assert kept(checkpoint(f, policy=save)) == ["output of cos"]


def test_rules_of_several_arguments_with_static_ones():
    def power(x, n, y):
        return x**n * y["y"]

    f = xstack.custom_remat(
        power, lambda policy, x, n, y: (power(x, n, y), n * x ** (n - 1)),
        lambda slope, x, n, y: (power(x, n, y), (slope * y["y"], x**n)),
        lambda kept, ct: (ct * kept[0], {"y": ct * kept[1]}), static_argnames="n",
    )  # fmt: skip
    for wrap in (lambda f: f, checkpoint):
        call = wrap(lambda x, y: f(x, 3, y))
        dx, dy = grad(call, (0, 1))(2.0, {"y": 5.0})
        assert (float(dx), float(dy["y"])) == (60.0, 8.0)


@pytest.mark.parametrize(("fwd", "rem", "bwd", "text"), [
    (lambda p, x: x, lambda r, x: (x, r), lambda r, ct: (ct,),
     r"custom_remat: the fwd rule.* must return a pair \(result, residuals\)"),
    (lambda p, x: (x, x), lambda r, x: x, lambda r, ct: (ct,),
     r"custom_remat: the rem rule.* must return a pair \(result, residuals\)"),
    (lambda p, x: (x, x), lambda r, x: ((x, x), r), lambda r, ct: (ct,),
     "custom_remat: the rem rule of .* returned a result of another structure"),
    (lambda p, x: (x, x), lambda r, x: (x, r), lambda r, ct: ct,
     "custom_remat: the bwd rule.* must return a tuple of cotangents"),
    (lambda p, x: (x, x), lambda r, x: (x, r), lambda r, ct: (ct, ct),
     "a tuple of length 1"),
])  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda f: f, checkpoint])
def test_rules_that_return_something_else_are_errors(wrap, fwd, rem, bwd, text):
    f = xstack.custom_remat(lambda x: x, fwd, rem, bwd)
    with pytest.raises(TypeError, match=text):
        grad(lambda x: wrap(f)(x).sum())(XS)


def test_a_checkpoint_keeps_what_the_rem_function_of_custom_gradient_closes_over():
    @xstack.custom_gradient(remat=True)
    def f(x, scale):
        cos = xnp.cos(x)

        def rem(x, scale):
            sin = xnp.sin(x)
            return scale * sin, lambda ct: (scale * ct * cos, (ct * sin).sum())

        return scale * xnp.sin(x), rem

    for wrap in (lambda f: f, checkpoint, lambda f: checkpoint(jit(f))):
        slope = grad(lambda x, scale: wrap(f)(x, scale).sum(), (0, 1))  # noqa: B023
        close(slope(XS, np.float32(2)), (2 * np.cos(XS), np.sin(XS).sum()))
        close(grad(lambda x: slope(x, np.float32(2))[0].sum())(XS), -2 * np.sin(XS))  # noqa: B023
    assert kept(checkpoint(lambda x: f(x, 2.0))) == ["output of cos"]


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="custom_remat"):
        xstack.custom_remat(xnp.sin, None, xnp.sin, xnp.sin)
    with pytest.raises(TypeError, match=r"custom_vjp\.defremat"):
        custom_vjp(xnp.sin).defremat(xnp.sin, 3, xnp.sin)


@pytest.mark.parametrize("transform", ["grad", "jit", "vmap", "second"])
def test_results_are_those_of_the_oracle(transform):
    jax = pytest.importorskip("jax")
    if not hasattr(jax.custom_vjp, "defremat"):
        pytest.skip("this oracle has no defremat")
    options = ("jax_custom_vjp3", "jax_remat3")

    def run(numpy, rules, whole):
        f = rules(lambda x: numpy.sin(x))
        f.defremat(
            lambda x: (numpy.sin(x), numpy.cos(x)), lambda cos, x: (numpy.sin(x), cos),
            lambda cos, ct: (3 * ct * cos,),
        )  # fmt: skip
        g = whole.grad(lambda x: whole.checkpoint(lambda x: f(numpy.tanh(x)) * x)(x).sum())
        h = {
            "grad": g, "jit": whole.jit(g),
            "vmap": lambda x: whole.vmap(g)(numpy.stack([x, 2 * x])),
            "second": whole.grad(lambda x: g(x).sum()),
        }[transform]  # fmt: skip
        return np.asarray(h(XS))

    before = {name: getattr(jax.config, name) for name in options}
    try:
        for name in options:
            jax.config.update(name, True)
        expected = run(jax.numpy, jax.custom_vjp, jax)
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
    close(run(xnp, custom_vjp, xstack), expected)
