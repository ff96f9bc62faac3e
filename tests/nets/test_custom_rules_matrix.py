"""Net: functions with rules of their own against the plain function, at depth two.

    rule       custom_jvp, custom_vjp, custom_vmap, custom_gradient
    inside     what the rule's own computation passes through: one or two of jit, checkpoint, scan,
               while, cond, vmap, map
    outside    what the function is transformed with: one or two of grad, value_and_grad, vjp, jvp,
               linearize, hessian, vmap, jit, checkpoint

The rules are correct, so each cell must give what the plain function gives, in forward mode by the
transpose of the backward rule, too. Two refusals are right, and then asked for: reverse mode of a
`while_loop`, and what needs the transpose of a backward rule with such a loop.

A rule that is left out would give the same. So the slopes of a marked rule are twice those of the
function, and a marked rule for batches gives twice the values: each transformation must show that.
"""

import functools
import itertools

import numpy as np
import pytest

import xnp
from tests.nets.cells import covering, drawn
from xad import (
    checkpoint,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from xbatch import custom_vmap, vmap
from xjit import jit
from xnp import lax

X = np.float32([0.3, 0.8, 1.7])
WEIGHTS = np.float32([0.5, -1.0, 2.0])

NO_REVERSE = "Reverse-mode differentiation does not work for lax.while_loop"
NO_TRANSPOSE = "forward mode needs the transpose of the bwd rule"


def plain(x):
    return x * xnp.sin(x)


def slope(x):
    return xnp.sin(x) + x * xnp.cos(x)


# --- inside: from a function of several arrays to one of the same values -------------------------


def _zeros_of_results(fun, xs):
    return tuple(xnp.zeros_like(y) for y in fun(*xs))


def in_scan(fun):
    def run(*xs):
        start = (xs, _zeros_of_results(fun, xs))
        (_, ys), _ = lax.scan(lambda c, _: ((c[0], fun(*c[0])), None), start, None, length=2)
        return ys

    return run


def in_while(fun):
    def run(*xs):
        def step(carry):
            count, args, _ = carry
            return count + 1, args, fun(*args)

        start = (0, xs, _zeros_of_results(fun, xs))
        return lax.while_loop(lambda c: c[0] < 2, step, start)[2]

    return run


def in_cond(fun):
    return lambda *xs: lax.cond(xnp.sum(xs[0]) < 1e6, fun, lambda *ys: fun(*[2 * y for y in ys]),
                                *xs)  # fmt: skip


def in_vmap(fun):
    return lambda *xs: tuple(y[1] for y in vmap(fun)(*[xnp.stack([x, x]) for x in xs]))


def in_map(fun):
    def run(*xs):
        ys = lax.map(lambda args: fun(*args), tuple(xnp.stack([x, x]) for x in xs))
        return tuple(y[0] for y in ys)

    return run


INSIDE = {
    "jit": jit, "checkpoint": checkpoint, "scan": in_scan, "while": in_while, "cond": in_cond,
    "vmap": in_vmap, "map": in_map,
}  # fmt: skip


# --- rules -----------------------------------------------------------------------------------


def with_custom_jvp(inside, mark=1):
    fun = custom_jvp(plain)
    value = plain if mark == 1 else fun  # whose derivative is the marked one again
    rule = inside(lambda x, x_dot: (value(x), mark * slope(x) * x_dot))
    fun.defjvp(lambda primals, tangents: rule(primals[0], tangents[0]))
    return fun


def with_custom_vjp(inside, mark=1):
    fun = custom_vjp(plain)
    value = plain if mark == 1 else fun
    forward = inside(lambda x: (value(x), mark * slope(x)))
    backward = inside(lambda residual, ct: (residual * ct,))
    fun.defvjp(forward, backward)
    return fun


def with_custom_vmap(inside, mark=1):
    fun = custom_vmap(plain)
    rule = inside(lambda xs: (mark * plain(xs),))
    fun.def_vmap(lambda axis_size, in_batched, xs: (rule(xs)[0], in_batched[0]))
    return fun


def with_custom_gradient(inside, mark=1):
    @custom_gradient
    def fun(x):
        y, factor = inside(lambda x: (plain(x), mark * slope(x)))(x)
        return y, lambda ct: inside(lambda ct: (factor * ct,))(ct)

    return fun


RULES = {
    "custom_jvp": with_custom_jvp, "custom_vjp": with_custom_vjp, "custom_vmap": with_custom_vmap,
    "custom_gradient": with_custom_gradient,
}  # fmt: skip
KNOWN_BY_REVERSE = ("custom_vjp", "custom_gradient")


# --- outside: from a function of vectors to another ----------------------------------------------


def weighted(fun):
    return lambda x: xnp.sum(WEIGHTS * fun(x))


def by_vjp(fun):
    def run(x):
        y, pull_back = vjp(fun, x)
        return y + pull_back(xnp.asarray(WEIGHTS))[0]

    return run


def by_linearize(fun):
    def run(x):
        y, push_forward = linearize(fun, x)
        return y + push_forward(xnp.asarray(WEIGHTS))

    return run


OUTSIDE = {
    "grad": lambda fun: grad(weighted(fun)),
    "value_and_grad": lambda fun: lambda x: sum(value_and_grad(weighted(fun))(x)),
    "vjp": by_vjp,
    "jvp": lambda fun: lambda x: sum(jvp(fun, (x,), (xnp.asarray(WEIGHTS),))),
    "linearize": by_linearize,
    "hessian": lambda fun: lambda x: hessian(weighted(fun))(x) @ WEIGHTS,
    "vmap": lambda fun: lambda x: vmap(fun)(xnp.stack([x, 0.5 * x])).sum(0),
    "jit": jit,
    "checkpoint": checkpoint,
}
FORWARD = ("jvp", "linearize")
REVERSE = ("grad", "value_and_grad", "vjp", "hessian")
DERIVED = {"linearize", *REVERSE}


def up_to_two(names):
    return [(n,) for n in names] + list(itertools.product(names, repeat=2))


CELLS = [*itertools.product(RULES, up_to_two(INSIDE), up_to_two(OUTSIDE))]
MARK = 2


def marked_slopes(x):
    """Return the function, with derivatives that are those of `MARK` times it."""
    return MARK * plain(x) - (MARK - 1) * lax.stop_gradient(plain(x))


def shows_a_mark(rule, outside):
    """Return whether a marked rule makes these transformations give what one formula says."""
    if rule == "custom_vmap":  # inside vmap, reverse mode differentiates the function itself
        return "vmap" in outside and not (outside[0] == "vmap" and {*outside} & DERIVED)
    if not {*outside} & {"jvp", *DERIVED}:
        return False
    # the rule of a marked custom_gradient computes the value as well, without a mark
    return rule != "custom_gradient" or len(outside) == 1


MARKED = [cell for cell in CELLS if shows_a_mark(cell[0], cell[2])]


def wrapped(fun, table, names):
    """Apply the transformations of these names, the last one first."""
    return functools.reduce(lambda f, name: table[name](f), reversed(names), fun)


@functools.cache
def expected(outside, like=plain):
    return np.asarray(wrapped(like, OUTSIDE, outside)(xnp.asarray(X)))


def refusals(rule, inside, outside):
    """Return the texts of the refusals that a cell may meet, and whether it must meet one."""
    texts = (NO_REVERSE,) if "while" in inside else ()
    # a rule for cotangents with a loop, or with a branch that depends on the cotangent
    if rule in KNOWN_BY_REVERSE and (texts or (rule == "custom_gradient" and "cond" in inside)):
        texts += (NO_TRANSPOSE,)
    must = rule == "custom_jvp" and "while" in inside
    return texts, must and any(name in REVERSE for name in outside)


def check(rule, inside, outside, mark=1):
    fun = RULES[rule](lambda f: wrapped(f, INSIDE, inside), mark)
    texts, must = refusals(rule, inside, outside)
    run = wrapped(fun, OUTSIDE, outside)
    try:
        found = run(xnp.asarray(X))
    except Exception as error:
        if any(text in str(error) for text in texts):
            return
        raise
    assert not must, "reverse mode of a while loop gave a result"
    like = {1: plain, MARK: marked_slopes}[mark]
    if mark == MARK and rule == "custom_vmap":
        like = lambda x: MARK * plain(x)  # noqa: E731
    # Sums of a few terms of order one in float32, which loops and batches add in other orders.
    np.testing.assert_allclose(found, expected(outside, like), rtol=2e-4, atol=2e-4)


def factors(cell):
    """Return the rule, and the outer and inner one, or None, of what is inside and outside."""
    rule, inside, outside = cell
    return (rule, *(*inside, None)[:2], *(*outside, None)[:2])


def each_of(cells, at_most, strength):
    """Return the mark of a test that runs for each of some cells, or a sample of them."""
    names = lambda x: x if isinstance(x, str) else "-".join(x)  # noqa: E731
    some = drawn(covering(cells, factors, strength), at_most)
    return pytest.mark.parametrize(("rule", "inside", "outside"), some, ids=names)


def test_the_net_has_its_size():
    print(f"custom rules: {len(CELLS)} cells, and {len(MARKED)} with marked rules")
    assert len(CELLS) == 4 * (7 + 7**2) * (9 + 9**2) and len(MARKED) >= 8000


@pytest.mark.sampled(every=16)
@pytest.mark.fuzz
@each_of(CELLS, at_most=150, strength=4)
def test_a_function_with_a_rule_is_the_plain_function(rule, inside, outside):
    check(rule, inside, outside)


@pytest.mark.sampled(every=16)
@pytest.mark.fuzz
@each_of(MARKED, at_most=60, strength=3)
def test_the_rule_of_a_function_is_used(rule, inside, outside):
    check(rule, inside, outside, MARK)
