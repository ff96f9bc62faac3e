"""References that rules of users read and write, in programs that are derived from others."""

import gc
import weakref

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import grad, jit, lax, new_ref, vmap
from xstack.testing import max_compiles


def adding():
    """Return a function that adds the cotangent of its argument to its reference."""

    @xstack.custom_vjp
    def watched(ref, x):
        return x

    def bwd(ref, x_bar):
        ref[...] += x_bar
        return None, x_bar

    watched.defvjp(lambda ref, x: (x, ref), bwd)
    return watched


watched = adding()
WATCHED_INSIDE = {
    "scan": (
        lambda r, x: lax.scan(lambda c, _: (watched(r, c) * 2, None), x, None, 3)[0],
        8.0, 2 + 4 + 8.0,
    ),
    "scan, reverse, unrolled": (
        lambda r, x: lax.scan(
            lambda c, s: (watched(r, c) * s, None), x, xnp.arange(1.0, 4.0), reverse=True, unroll=2
        )[0],
        6.0, 1 + 2 + 6.0,
    ),
    "jit, closed over": (lambda r, x: jit(lambda x: watched(r, x) * 3)(x), 3.0, 3.0),
    "jit, passed": (lambda r, x: jit(lambda r, x: watched(r, x) * 3)(r, x), 3.0, 3.0),
    "jit in scan": (
        lambda r, x: lax.scan(lambda c, _: (jit(watched)(r, c) * 2, None), x, None, 3)[0],
        8.0, 14.0,
    ),
    "scan in scan": (
        lambda r, x: lax.fori_loop(
            0, 2, lambda _, c: lax.scan(lambda c, _: (watched(r, c) * 2, None), c, None, 2)[0], x
        ),
        16.0, 30.0,
    ),
    "checkpoint": (lambda r, x: xstack.checkpoint(lambda x: watched(r, x) * 3)(x), 3.0, 3.0),
    "scan of checkpoint": (
        lambda r, x: lax.scan(
            xstack.checkpoint(lambda c, _: (watched(r, c) * 2, None)), x, None, 3
        )[0],
        8.0, 14.0,
    ),
    "cond": (
        lambda r, x: lax.cond(x > 0, lambda x: watched(r, x) * 3, lambda x: x, x), 3.0, 3.0
    ),
    "switch, two references": (
        lambda r, x: lax.switch(
            xnp.asarray(x > 0, int), [lambda x: watched(ELSEWHERE, x), lambda x: watched(r, x)], x
        ) * 3,
        3.0, 3.0,
    ),
}  # fmt: skip
ELSEWHERE = new_ref(0.0)


@pytest.mark.parametrize("name", WATCHED_INSIDE)
def test_a_backward_rule_writes_its_reference_in_a_program_of_its_own(name):
    fun, gradient, sum_of_cotangents = WATCHED_INSIDE[name]
    f = grad(lambda x, r: fun(r, x))
    sums = new_ref(0.0)
    for k in (1, 2):  # the second call takes what the first one derived
        assert float(f(1.0, sums)) == gradient and float(sums[...]) == k * sum_of_cotangents
    other = new_ref(0.0)
    assert float(f(1.0, other)) == gradient
    assert float(other[...]) == sum_of_cotangents and float(sums[...]) == 2 * sum_of_cotangents
    compiled = jit(f)
    for k in (2, 3):
        assert float(compiled(1.0, other)) == gradient
        assert float(other[...]) == k * sum_of_cotangents
    assert float(ELSEWHERE[...]) == 0


@pytest.mark.parametrize("name", [name for name in WATCHED_INSIDE if "cond" not in name
                                  and "switch" not in name])  # fmt: skip
def test_a_reference_that_a_rule_writes_may_be_made_in_what_is_transformed(name):
    fun, gradient, total = WATCHED_INSIDE[name]

    def f(x):
        sums = new_ref(0.0)
        return grad(lambda x: fun(sums, x))(x), sums[...]

    np.testing.assert_array_equal(jit(f)(1.0), [gradient, total])
    np.testing.assert_array_equal(vmap(f)(xnp.ones(2)), [[gradient] * 2, [total] * 2])
    np.testing.assert_array_equal(
        lax.scan(lambda c, x: (c, f(x)), 0.0, xnp.ones(2))[1], [[gradient] * 2, [total] * 2]
    )


FACTOR = new_ref(1.0)


def reading_when_derived(kind):
    """Return the identity with a rule of some kind that multiplies by what `FACTOR` holds then."""
    if kind == "custom_jvp":
        fun = xstack.custom_jvp(lambda x: x)
        fun.defjvp(lambda primals, dots: (primals[0], dots[0] * FACTOR[...]))
    elif kind == "fwd":
        fun = xstack.custom_vjp(lambda x: x)
        fun.defvjp(lambda x: (x, FACTOR[...]), lambda factor, g: (g * factor,))
    else:
        fun = xstack.custom_vjp(lambda x: x)
        fun.defvjp(lambda x: (x, None), lambda _, g: (g * FACTOR[...],))
    return fun


INSIDE = {
    "jit": lambda f: jit(lambda x: f(x) * 2),
    "jit in jit": lambda f: jit(lambda x: jit(f)(x) * 2),
    "checkpoint": lambda f: xstack.checkpoint(lambda x: f(x) * 2),
    "cond": lambda f: lambda x: lax.cond(x > 0, lambda x: f(x) * 2, lambda x: x, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c) * 2, None), x, None, 1)[0],
    "jit of scan": lambda f: jit(
        lambda x: lax.scan(lambda c, _: (f(c) * 2, None), x, None, 1)[0]
    ),
}  # fmt: skip


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("kind", ["custom_jvp", "fwd", "bwd"])
def test_a_rule_reads_what_its_reference_holds_when_it_runs(kind, inside):
    f = INSIDE[inside](reading_when_derived(kind))
    gradient, compiled = grad(f), jit(grad(f)) if inside != "cond" else None
    for factor in (2.0, 5.0, 7.0):
        FACTOR[...] = factor
        assert float(gradient(1.0)) == 2 * factor
        if compiled is not None:
            assert float(compiled(1.0)) == 2 * factor


def test_a_rule_for_batches_reads_what_its_reference_holds_when_it_runs():
    times = xstack.custom_batching.custom_vmap(lambda x: x)
    times.def_vmap(lambda size, batched, x: (x * FACTOR[...], True))
    batched = vmap(jit(times))
    for factor in (2.0, 5.0):
        FACTOR[...] = factor
        np.testing.assert_array_equal(batched(xnp.ones(2)), [factor] * 2)
        np.testing.assert_array_equal(jit(batched)(xnp.ones(2)), [factor] * 2)


def test_a_forward_rule_writes_its_reference_in_a_compiled_function():
    calls = new_ref(0)
    fun = xstack.custom_vjp(lambda x: x)

    def fwd(x):
        calls[...] += 1
        return x, calls[...]

    fun.defvjp(fwd, lambda count, g: (g * count,))
    f = grad(jit(lambda x: fun(x) * 2))
    assert [float(f(1.0)) for _ in range(3)] == [2.0, 4.0, 6.0] and int(calls[...]) == 3
    assert float(jit(f)(1.0)) == 8.0 and int(calls[...]) == 4


def summed(r):
    """Return `2 * x` with rules that add up in `r` the values it is differentiated at."""
    fun = xstack.custom_vjp(lambda x: x * 2)

    def fwd(x):
        r[...] += x
        return x * 2, (x, r[...])

    fun.defvjp(fwd, lambda kept, g: (g * 2 + kept[0] + 0 * kept[1],))
    return fun


STEPS = np.arange(1, 4, dtype=np.float32)
policies = xstack.checkpoint_policies


def last_of_scan(step):
    return lambda x: lax.scan(step, x, STEPS)[0]


# Functions of a function; for 3, the derivative and the sum of the values it was called with.
CALLED_INSIDE = {
    "alone": (lambda f: f, 5.0, 3.0),
    "jit": (lambda f: jit(lambda x: f(x) * 3), 9.0, 3.0),
    "scan": (
        lambda f: lambda x: lax.scan(lambda c, y: (c + f(c * y), y), x, STEPS)[0], 6291.0, 156.0),
    "scan of a product": (
        lambda f: lambda x: lax.scan(lambda c, y: (c, f(c * y)), x, STEPS)[1].sum(), 54.0, 18.0),
    "reversed scan": (
        lambda f: lambda x: lax.scan(lambda c, y: (c, f(c * y)), x, STEPS, reverse=True)[1].sum(),
        54.0, 18.0),
    "fori_loop": (lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: c + f(c), x), 300.0, 39.0),
    "checkpoint": (lambda f: xstack.checkpoint(lambda x: f(x) * 3), 9.0, 3.0),
    "checkpoint of jit": (lambda f: xstack.checkpoint(jit(lambda x: f(x) * 3)), 9.0, 3.0),
    "scan of checkpoint": (
        lambda f: lambda x: lax.scan(
            xstack.checkpoint(lambda c, y: (c + f(c * y), y)), x, STEPS)[0], 6291.0, 156.0),
    "checkpoint of scan": (
        lambda f: xstack.checkpoint(
            lambda x: lax.scan(lambda c, y: (c + f(c * y), y), x, STEPS)[0]), 6291.0, 156.0),
    "checkpoint, dots saved": (
        lambda f: xstack.checkpoint(lambda x: f(x) * 3, policy=policies.dots_saveable), 9.0, 3.0),
    "checkpoint of jit, all saved": (
        lambda f: xstack.checkpoint(
            jit(lambda x: f(x) * 3), policy=policies.everything_saveable), 9.0, 3.0),
    "scan of checkpoint, all saved": (
        lambda f: last_of_scan(
            xstack.checkpoint(lambda c, y: (c + f(c * y), y),
                              policy=policies.everything_saveable)), 6291.0, 156.0),
    "checkpoint of scan, products saved": (
        lambda f: xstack.checkpoint(
            last_of_scan(lambda c, y: (c + f(c * y), y)),
            policy=lambda p, *_, **__: p.name == "mul"), 6291.0, 156.0),
    "checkpoint in checkpoint, a name saved": (
        lambda f: xstack.checkpoint(
            lambda x: xstack.checkpoint(
                lambda x: f(xstack.ad_checkpoint.checkpoint_name(x * 1, "x")) * 3,
                policy=policies.save_only_these_names("x"))(x),
            policy=policies.nothing_saveable), 9.0, 3.0),
    "cond": (lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 5.0, 3.0),
    "switch": (
        lambda f: lambda x: lax.switch(1, [lambda x: x, lambda x: f(x) * 3], x), 9.0, 3.0),
    "scan of cond": (
        lambda f: lambda x: lax.scan(
            lambda c, y: (lax.cond(y > 1, f, lambda z: z, c), y), x, STEPS)[0], 19.0, 9.0),
    "two branches": (
        lambda f: lambda x: lax.scan(
            lambda c, y: (lax.switch(xnp.asarray(y, int) - 1, [
                lambda z: f(z) * z, lambda z: f(z + 1), lambda z: z * 2], c), y),
            x, STEPS)[0], 279.0, 22.0),
    "scan of scan": (
        lambda f: lambda x: lax.scan(
            lambda c, y: (lax.scan(lambda d, _: (d + f(d), None), c, None, 2)[0], y),
            x, STEPS[:1])[0], 39.0, 12.0),
    "jit of scan of jit": (
        lambda f: jit(
            lambda x: lax.scan(lambda c, y: (c + jit(f)(c * y), y), x, STEPS)[0]), 6291.0, 156.0),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CALLED_INSIDE)
def test_a_forward_rule_writes_its_reference_once_for_each_value(name, compiled):
    inside, gradient, total = CALLED_INSIDE[name]
    sums = new_ref(0.0)
    f = inside(summed(sums))
    g = jit(grad(f)) if compiled else grad(f)
    for k in (1, 2, 3):  # later calls take what the first one derived
        assert float(g(3.0)) == gradient and float(sums[...]) == k * total
    value = float(f(3.0))
    assert float(sums[...]) == 3 * total  # nothing is differentiated, no rule runs
    assert [float(x) for x in xstack.value_and_grad(f)(3.0)] == [value, gradient]
    assert float(sums[...]) == 4 * total


@pytest.mark.parametrize("name", [n for n in CALLED_INSIDE if "checkpoint" not in n])
def test_a_forward_rule_in_a_loop_of_an_optimizer(name):
    """The whole loop of updates is one program, which writes the reference in its steps."""
    inside, gradient, total = CALLED_INSIDE[name]
    sums = new_ref(0.0)
    f = inside(summed(sums))
    steps = jit(lambda x: lax.scan(lambda c, _: (c, grad(f)(x)), 0.0, None, 2)[1])
    np.testing.assert_array_equal(steps(3.0), [gradient] * 2)
    assert float(sums[...]) == 2 * total


def test_what_a_rule_derives_is_compiled_once_and_keeps_no_reference_alive():
    def used():
        sums = new_ref(0.0)
        traces = []

        def inner(x):
            traces.append(x)
            return watched(sums, x) * 3

        inner = jit(inner)
        f = grad(lambda x: inner(x))
        f(1.0)
        with max_compiles(0):
            f(2.0)
        assert len(traces) == 1 and float(sums[...]) == 6.0
        return weakref.ref(sums)

    gone = used()
    gc.collect()
    assert gone() is None
