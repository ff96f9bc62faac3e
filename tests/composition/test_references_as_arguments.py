"""References as arguments of functions that are differentiated: `vjp`, `jvp`, `linearize`, ..."""

import threading

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import jit, lax, new_ref, vmap

jax = pytest.importorskip("jax")
with_oracle = pytest.mark.skipif(
    jax.__version_info__ < (0, 12), reason="older releases write no cotangents to references"
)


def multiply(lib, r, x):
    r[...] = r[...] * x
    return r[...] ** 2


def write_a_part(lib, r, x):
    r[1:] = r[1:] * x + r[:-1]
    return lib.numpy.sum(r[...] ** 3)


def add_in_a_loop(lib, r, x):
    def body(i, c):
        r[i] += c
        return c * x

    return lib.lax.fori_loop(0, 3, body, x * r[0])


def branch(lib, r, x):
    def double():
        r[...] *= 2 * x

    lib.lax.cond(x > 1, double, lambda: None)
    return r[...].sum() * x


def compiled(lib, r, x):
    return lib.jit(lambda r, x: multiply(lib, r, x))(r, x).sum()


def overwritten(lib, r, x):
    r[...] = lib.numpy.full(3, x)
    return r[...].sum() ** 2


def only_read(lib, r, x):
    return lib.numpy.sum(r[1:] * x)


OF_THREE = [write_a_part, add_in_a_loop, branch, compiled, overwritten, only_read]


def everything(lib, fun):
    """Return what each transformation gives for a function of a reference of three and a number."""

    def ref(*values):
        return lib.new_ref(lib.numpy.array(values, "float32"))

    def of(r, x):
        return fun(lib, r, x)

    found = []
    r, d = ref(1, 2, 3), ref(1, -1, 2)
    found += [*lib.jvp(of, (r, 2.0), (d, 0.5)), r[...], d[...]]
    r, d = ref(1, 2, 3), ref(1, -1, 2)
    y, push = lib.linearize(of, r, 2.0)
    found += [y, r[...], push(d, 0.5), d[...], push(d, 0.5), d[...]]
    r, g = ref(1, 2, 3), ref(5, 6, 7)
    y, pull = lib.vjp(of, r, 2.0)
    for _ in range(2):
        of_ref, of_x = pull.with_refs(g, lib.ad.GradValue())(3.0)
        found += [y, r[...], of_x, g[...]]
        assert type(of_ref).__name__ == "GradRef"

    @lib.jit
    def inside(values, cotangents):
        r, g = lib.new_ref(values), lib.new_ref(cotangents)
        y, pull = lib.vjp(of, r, 2.0)
        of_x = pull.with_refs(g, lib.ad.GradValue())(3.0)[1]
        return y, of_x, r[...], g[...]

    found += inside(ref(1, 2, 3)[...], ref(5, 6, 7)[...])
    return [np.asarray(x) for x in found]


@with_oracle
@pytest.mark.parametrize("fun", OF_THREE, ids=lambda f: f.__name__)
def test_derivatives_by_references_are_those_of_the_oracle(fun):
    for mine, theirs in zip(everything(xstack, fun), everything(jax, fun), strict=True):
        # a few operations in another order, in float32
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def finite_differences(fun, values, x, cotangents, step=1e-5):
    """Return the gradient of `y + cotangents . r` by the reference and the number, in float64."""

    def total(values, x):
        r = new_ref(values)
        y = fun(xstack, r, x)
        return float(y + (cotangents * r[...]).sum())

    values, x = np.asarray(values), np.float64(x)
    steps = np.eye(len(values)) * step
    by_values = [(total(values + s, x) - total(values - s, x)) / (2 * step) for s in steps]
    return np.array(by_values), (total(values, x + step) - total(values, x - step)) / (2 * step)


@pytest.mark.parametrize("fun", OF_THREE, ids=lambda f: f.__name__)
def test_derivatives_by_references_are_differences(fun):
    with xstack.enable_x64(True):
        values, cotangents = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
        r, g = new_ref(values), new_ref(cotangents)
        _, pull = xstack.vjp(lambda r, x: fun(xstack, r, x), r, 2.0)
        x_bar = pull.with_refs(g, xstack.ad.GradValue())(1.0)[1]
        by_values, by_x = finite_differences(fun, values, 2.0, cotangents)
    np.testing.assert_allclose(g[...], by_values, rtol=1e-6)  # of central differences
    np.testing.assert_allclose(x_bar, by_x, rtol=1e-6)


def test_a_reference_may_lie_in_a_tree():
    params = {"w": new_ref(2.0), "b": xnp.array(3.0)}
    y, pull = xstack.vjp(lambda p: p["w"][...] * p["b"], params)
    total = new_ref(0.0)
    (found,) = pull.with_refs({"w": total, "b": xstack.ad.GradValue()})(1.0)
    assert (float(y), float(total[...]), float(found["b"])) == (6.0, 3.0, 2.0)


def test_a_cotangent_that_nobody_wants_is_left_out():
    _, pull = xstack.vjp(lambda r, x: multiply(xstack, r, x), new_ref(2.0), 3.0)
    of_ref, x_bar = pull.with_refs(xstack.ad.DontWant(), xstack.ad.GradValue())(1.0)
    assert (of_ref, float(x_bar)) == (xstack.ad.DidntWant(), 24.0)


def test_one_reference_may_gather_what_arrays_and_a_reference_get():
    _, pull = xstack.vjp(lambda r, x: multiply(xstack, r, x), new_ref(2.0), 3.0)
    total = new_ref(10.0)
    pull.with_refs(total, total)(1.0)
    assert float(total[...]) == 66.0 + 44.0


def test_a_reference_of_integers_has_no_derivative():
    r, g = new_ref(xnp.arange(3)), new_ref(xnp.arange(3))

    def f(r, x):
        r[0] += 5
        return r[0] * x

    y, pull = xstack.vjp(f, r, 2.0)
    of_ref, x_bar = pull.with_refs(g, xstack.ad.GradValue())(1.0)
    assert (float(y), float(x_bar), of_ref) == (10.0, 5.0, xstack.ad.GradRef())
    assert (r[...].tolist(), g[...].tolist()) == ([5, 1, 2], [0, 1, 2])
    assert [float(v) for v in xstack.jvp(f, (r, 2.0), (g, 1.0))] == [20.0, 10.0]


def test_an_auxiliary_output_may_hold_what_was_read():
    r = new_ref(2.0)
    y, pull, aux = xstack.vjp(lambda r: (r[...] ** 2, r[...]), r, has_aux=True)
    g = new_ref(0.0)
    pull.with_refs(g)(1.0)
    assert (float(y), float(aux), float(g[...])) == (4.0, 2.0, 4.0)


def test_each_step_of_a_loop_may_pull_back_to_references():
    r, g = new_ref(xnp.arange(1.0, 4.0)), new_ref(xnp.zeros(3))

    def step(c, x):
        y, pull = xstack.vjp(lambda r, x: r[0] * x * c, r, x)
        pull.with_refs(g, xstack.ad.DontWant())(1.0)
        return c + 1, y

    _, ys = lax.scan(step, 1.0, xnp.arange(3.0))
    assert (ys.tolist(), g[...].tolist()) == ([0.0, 2.0, 6.0], [8.0, 0.0, 0.0])


def test_examples_of_a_batch_have_references_of_their_own():
    r, g = new_ref(xnp.arange(3.0)), new_ref(xnp.ones(3))

    def one(r, g):
        _, pull = xstack.vjp(lambda r: r[...] ** 3, r)
        pull.with_refs(g)(1.0)

    vmap(one)(r, g)
    assert g[...].tolist() == [1.0, 4.0, 13.0]


def test_derivatives_nest():
    def inner(x):
        r, d = new_ref(x), new_ref(1.0)
        _, y_dot = xstack.jvp(lambda r: multiply(xstack, r, 3.0) * r[...], (r,), (d,))
        return y_dot + d[...]

    # y = 27 x^3, y' = 81 x^2, and the reference's tangent is 3
    assert float(inner(2.0)) == 81 * 4 + 3
    assert float(xstack.grad(inner)(2.0)) == 162 * 2.0
    assert float(jit(xstack.grad(inner))(2.0)) == 162 * 2.0


@pytest.mark.parametrize("policy", [None, xstack.checkpoint_policies.everything_saveable])
def test_a_checkpointed_function_takes_references(policy):
    def f(r, x):
        return xstack.checkpoint(lambda r, x: multiply(xstack, r, x), policy=policy)(r, x)

    r = new_ref(2.0)
    assert (float(f(r, 3.0)), float(r[...])) == (36.0, 6.0)
    r, g = new_ref(2.0), new_ref(10.0)
    _, pull = xstack.vjp(f, r, 3.0)
    x_bar = pull.with_refs(g, xstack.ad.GradValue())(1.0)[1]
    assert (float(x_bar), float(g[...]), float(r[...])) == (44.0, 66.0, 6.0)
    assert float(xstack.grad(
        xstack.checkpoint(lambda r, x: r[...] * x * x, policy=policy), argnums=1
    )(new_ref(2.0), 3.0)) == 12.0  # fmt: skip


def test_a_function_that_fails_leaves_its_reference_as_it_was():
    r = new_ref(2.0)

    def f(r):
        r[...] = 5.0
        raise RuntimeError("no")

    for derive in (lambda: xstack.vjp(f, r), lambda: xstack.jvp(f, (r,), (new_ref(1.0),))):
        with pytest.raises(RuntimeError, match="no"):
            derive()
        assert float(r[...]) == 2.0


def test_threads_differentiate_by_references_of_their_own():
    found = {}

    def work(k):
        total = new_ref(0.0)
        for i in range(50):
            r = new_ref(float(k))
            _, pull = xstack.vjp(lambda r, i=i: r[...] ** 2 * i, r)
            pull.with_refs(total)(1.0)
        found[k] = float(total[...])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {k: 2.0 * k * sum(range(50)) for k in range(4)}


REFUSED = [
    (lambda r: xstack.grad(lambda r: r[...])(r), TypeError,
     r"grad: it cannot differentiate with respect to a Ref: its cotangent is held by a Ref, too"),
    (lambda r: xstack.grad(lambda x, r: r[...], argnums=(0, 1))(1.0, r), TypeError,
     r"with respect to a Ref at \[1\]"),
    (lambda r: xstack.jacrev(lambda r: r[...])(r), TypeError, r"jacrev: it cannot"),
    (lambda r: xstack.jacfwd(lambda r: r[...])(r), TypeError, r"jacfwd: it cannot"),
    (lambda r: xstack.vjp(lambda r: r[...], r)[1](1.0), ValueError,
     r"vjp: the primal at \[0\] is a reference, whose cotangent is held by a reference, too"),
    (lambda r: xstack.vjp(lambda r: r[...], r)[1].with_refs(xstack.ad.GradValue()), ValueError,
     r"with_refs: the primal at \[0\] is a reference, whose cotangent is not a result"),
    (lambda r: xstack.vjp(lambda a, b: a[...], r, r), ValueError, r"vjp: one Ref is used under"),
    (lambda r: xstack.jvp(lambda a: a[...], (r,), (r,)), ValueError, r"jvp: one Ref is used under"),
    (lambda r: xstack.jvp(lambda a: a[...], (r,), (1.0,)), ValueError,
     r"jvp: the tangent at \[0\] of a reference is a reference"),
    (lambda r: xstack.linearize(lambda a: a[...], r)[1](1.0), ValueError,
     r"linearize: the tangent at \[0\] of a reference is a reference"),
    (lambda r: xstack.vjp(lambda a, b: 1.0, new_ref(1.0), new_ref(1.0))[1].with_refs(r, r),
     ValueError, r"with_refs: one Ref is used under two names"),
    (lambda r: xstack.vjp(lambda a: r.__setitem__(..., a[...]), r), ValueError,
     r"a differentiated value is written where nothing is differentiated"),
    (lambda r: xstack.vjp(lambda a: (r.__setitem__(..., 1.0), a[...])[1], r), ValueError,
     r"one Ref is used under two names[\s\S]*passed to the function and closed over"),
    (lambda r: xstack.vjp(lambda a: xstack.ref.freeze(a), r), ValueError, r"freeze: the Ref was"),
    (lambda r: xstack.vjp(lambda a: a, r), TypeError, r"a reference is not an array"),
    (lambda r: xstack.jit(lambda a: {"hi": [0, a]})(r), ValueError,
     r"jit: the result of <lambda> at \['hi'\]\[1\]: a reference is not an array"),
    (lambda r: xstack.lax.scan(lambda c, x: ((c, r), x), (0, 1.0), xnp.ones(3)), ValueError,
     r"scan: the result of the body at \[0\]\[1\]: a reference is not an array"),
    (lambda r: xstack.lax.cond(True, lambda: r, lambda: r), ValueError,
     r"cond: the result of (true|false)_fun: a reference is not an array"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_what_has_no_answer_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(new_ref(2.0))
