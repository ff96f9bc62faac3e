"""Loops and branches under differentiation, batching and compilation, against Python's own."""

import numpy as np
import pytest

import xnp
from tests.composition.functions import close
from xad import checkpoint, grad, jvp
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import make_jaxpr
from xprim.errors import ConcretizationTypeError
from xstack.extend.core import Primitive

XS = np.float32([0.5, -1.0, 2.0, 0.25])


def scanned(init, xs):
    """c' = sin(c) * x + c, and the squares on the way."""
    return lax.scan(lambda c, x: (xnp.sin(c) * x + c, c * c), init, xs)


def unrolled(init, xs):
    squares = []
    for x in xs:
        squares.append(init * init)
        init = xnp.sin(init) * x + init
    return init, xnp.stack(squares)


def loss_of(loop):
    def loss(init, xs):
        last, squares = loop(init, xs)
        return last + xnp.sum(squares)

    return loss


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_grad_of_scan_is_grad_of_the_unrolled_loop(wrap, argnums):
    found = wrap(grad(loss_of(scanned), argnums))(0.3, xnp.asarray(XS))
    close(found, grad(loss_of(unrolled), argnums)(0.3, xnp.asarray(XS)))


def test_second_derivatives_of_scan():
    f, g = (grad(grad(loss_of(loop))) for loop in (scanned, unrolled))
    close(f(0.3, xnp.asarray(XS)), g(0.3, xnp.asarray(XS)))


def test_jvp_of_scan_and_vmap_of_its_gradient():
    args, tangents = (0.3, xnp.asarray(XS)), (1.0, xnp.ones(4))
    close(jvp(loss_of(scanned), args, tangents), jvp(loss_of(unrolled), args, tangents))
    batch = np.stack([XS, XS * 2, XS[::-1]])
    found = vmap(grad(loss_of(scanned), 1), (None, 0))(0.3, batch)
    for k, xs in enumerate(batch):
        close(found[k], grad(loss_of(unrolled), 1)(0.3, xnp.asarray(xs)))


def test_scan_with_a_checkpointed_body():
    def body(c, x):
        return xnp.sin(c) * x + c, c * c

    def loss(c, xs):
        last, squares = lax.scan(checkpoint(body), c, xs)
        return last + xnp.sum(squares)

    close(jit(grad(loss))(0.3, xnp.asarray(XS)), grad(loss_of(unrolled))(0.3, xnp.asarray(XS)))


def test_a_scan_that_captures_what_is_differentiated():
    def loss(w):
        return lax.scan(lambda c, _: (c * w, None), 1.0, None, length=3)[0]

    assert float(grad(loss)(2.0)) == 12.0
    close(vmap(grad(loss))(np.float32([1, 2])), np.float32([3, 12]))


def test_cond_takes_one_branch_and_under_vmap_each_example_its_own():
    def f(x):
        return lax.cond(x > 0, lambda v: v * v, lambda v: -3 * v, x)

    close(vmap(f)(np.float32([-1, 2])), np.float32([3, 4]))
    close(vmap(grad(f))(np.float32([-1, 2])), np.float32([-3, 4]))
    close(jit(vmap(grad(f)))(np.float32([-1, 2])), np.float32([-3, 4]))


def test_the_branch_that_is_not_taken_leaves_no_nan_in_the_gradient():
    def f(x):
        return lax.cond(x > 0, xnp.log, lambda v: v, x)

    assert float(grad(f)(-1.0)) == 1.0
    assert float(jit(grad(f))(-1.0)) == 1.0


def test_switch_clamps_its_index_and_batches_over_it():
    branches = [lambda x: x, lambda x: x * 2, lambda x: x * 3]
    found = vmap(lambda i: lax.switch(i, branches, 1.0))(np.int32([-5, 0, 1, 2, 9]))
    close(found, np.float32([1, 1, 2, 3, 3]))


def test_while_with_a_batched_condition_stops_each_example_by_itself():
    def f(x):
        return lax.while_loop(lambda v: v < 10, lambda v: v * 2, x)

    close(vmap(f)(np.float32([1, 3, 20])), np.float32([16, 12, 20]))
    close(jvp(f, (3.0,), (1.0,)), (np.float32(12), np.float32(4)))


def test_fori_loop_with_bounds_known_while_tracing_has_a_gradient():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, v: v * x, x)

    assert float(jit(grad(f))(2.0)) == 32.0


def test_loops_nested_in_branches_nested_in_loops():
    def inner(c):
        return lax.fori_loop(0, 2, lambda i, v: v + xnp.cos(v), c)

    def f(x, xs):
        def body(c, v):
            c = lax.cond(v > 0, inner, lambda u: u * 0.5, c)
            return c, c

        return xnp.sum(lax.scan(body, x, xs)[1])

    def python(x, xs):
        total = 0.0
        for v in xs:
            if v > 0:
                for _ in range(2):
                    x = x + xnp.cos(x)
            else:
                x = x * 0.5
            total = total + x
        return total

    wanted = grad(python)(0.3, XS)
    close(grad(f)(0.3, xnp.asarray(XS)), wanted)
    close(jit(grad(f))(0.3, xnp.asarray(XS)), wanted)
    close(vmap(jit(grad(f)), (None, 0))(0.3, XS[None])[0], wanted)


def test_map_and_associative_scan_have_gradients():
    xs = xnp.asarray(XS)
    close(grad(lambda v: xnp.sum(lax.map(xnp.sin, v)))(xs), np.cos(XS))
    products = grad(lambda v: lax.associative_scan(xnp.multiply, v)[-1])(xs)
    close(products, XS.prod() / XS)


def test_long_uncompiled_loops_under_transformations_equal_python():
    def run(x, n=400):
        return lax.fori_loop(0, n, lambda i, c: xnp.sin(c) * 0.9 + x, x)

    def by_hand(x, n=400):
        c, dc = np.float64(x), np.float64(1)
        for _ in range(n):
            c, dc = np.sin(c) * 0.9 + x, np.cos(c) * 0.9 * dc + 1
        return c, dc

    expected = [by_hand(v) for v in (0.1, 0.5, 0.9)]
    xs = np.float32([0.1, 0.5, 0.9])
    np.testing.assert_allclose([run(x) for x in xs], [c for c, _ in expected], rtol=1e-4)
    np.testing.assert_allclose(vmap(run)(xs), [c for c, _ in expected], rtol=1e-4)
    for derivative in (grad(run), lambda x: jvp(run, (x,), (np.float32(1),))[1]):
        np.testing.assert_allclose(
            [derivative(x) for x in xs], [dc for _, dc in expected], rtol=1e-4
        )


def test_what_a_loop_hands_on_as_it_got_it_stays_one_value_for_all_examples():
    weights, starts, steps = xnp.ones((2, 2)), xnp.ones((4, 2)), xnp.arange(4)

    def run(weights, x, steps):
        def step(state):
            count, x, weights = state
            return count + 1, x @ weights, weights

        return lax.while_loop(lambda state: state[0] < steps, step, (0, x, weights))[1:]

    batched = vmap(run, in_axes=(None, 0, 0), out_axes=(0, None))
    for mapped in (batched, jit(batched)):
        xs, kept = mapped(weights, starts, steps)
        assert kept.shape == (2, 2)
        assert xs.tolist() == [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0], [8.0, 8.0]]
    twice = vmap(batched, in_axes=(None, 0, 0), out_axes=(0, None))
    xs, kept = twice(weights, xnp.stack([starts, 2.0 * starts]), xnp.stack([steps, steps]))
    assert xs.shape == (2, 4, 2)
    assert kept.shape == (2, 2)
    # the products are of one matrix, whatever the batch
    program = str(make_jaxpr(batched)(weights, starts, steps))
    assert "f32[4,2,2]" not in program


def test_a_carry_that_is_exchanged_with_another_differs_from_example_to_example():
    def run(x, y, steps):
        state = (0, x, y)
        return lax.while_loop(lambda s: s[0] < steps, lambda s: (s[0] + 1, s[2], s[1]), state)[1:]

    x, y = vmap(run, in_axes=(None, None, 0))(1.0, 2.0, xnp.arange(3))
    assert x.tolist() == [1.0, 2.0, 1.0]
    assert y.tolist() == [2.0, 1.0, 2.0]


@pytest.mark.parametrize("loop", ["scan", "while_loop", "fori_loop", "fori_loop of a traced bound"])
def test_a_traced_value_that_a_loop_hands_on_is_its_result(loop):
    def handed_on(x, y):
        if loop == "scan":
            return lax.scan(lambda c, _: ((c[0] + 1.0, c[1]), None), (x, y), length=2)[0]
        if loop == "while_loop":
            return lax.while_loop(lambda c: c[0] < 3.0, lambda c: (c[0] + 1.0, c[1]), (x, y))
        bound = 2 if loop == "fori_loop" else y.astype(int)
        return lax.fori_loop(0, bound, lambda i, c: (c[0] + 1.0, c[1]), (x, y))

    program = make_jaxpr(handed_on)(1.0, xnp.float32(2.0)).jaxpr
    assert program.outvars[1] is program.invars[1]
    assert program.outvars[0] is not program.invars[0]
    # so a choice by a mapped value, between branches that return it, is none for it
    chosen = vmap(lambda x, y: lax.cond(x < 0, handed_on, handed_on, x, y)[1], (0, None), None)
    assert float(chosen(xnp.arange(3.0), xnp.float32(2.0))) == 2.0
    assert grad(lambda y: jit(handed_on)(1.0, y)[1] * 3.0)(2.0) == 3.0


@pytest.mark.parametrize("what", ["length", "unroll"])
def test_what_a_scan_must_know_while_tracing_is_refused_as_a_traced_value(what):
    run = jit(lambda n: lax.scan(lambda c, _: (c + 1, None), 0, **{"length": 4, what: n})[0])
    with pytest.raises(ConcretizationTypeError, match=f"scan: {what} is a traced value"):
        run(3)


def test_branches_for_other_platforms_are_not_written():
    foreign = Primitive("kernel_of_another_platform")
    foreign.def_abstract_eval(lambda x: x)

    def run(x):
        return lax.platform_dependent(x, cpu=xnp.sin, cuda=foreign.bind)

    x = xnp.arange(3.0)
    steps = jit(lambda x: lax.scan(lambda c, x: (c, run(x)), 0.0, x)[1])
    for found in (run(x), jit(run)(x), steps(x)):
        close(found, np.sin(np.arange(3.0)))
    text = jit(lambda x: lax.platform_dependent(x, cpu=xnp.sin, default=xnp.cos)).lower(x).as_text()
    assert "stablehlo.sine" in text
    assert "stablehlo.cosine" not in text
    assert "stablehlo.case" not in text


@pytest.mark.parametrize("kind", [ValueError, NotImplementedError])
def test_a_platform_without_a_function_is_refused_compiled_too(kind):
    for functions in ({"tpu": xnp.sin}, {"tpu": xnp.sin, "cuda": xnp.cos}):
        run = jit(lambda x, named=functions: lax.platform_dependent(x, **named))
        with pytest.raises(kind, match="no function for the platform 'cpu'"):
            run(1.0)
    with pytest.raises(TypeError, match="platform_dependent: cpu must be a function, got an int"):
        lax.platform_dependent(1.0, cpu=3)
