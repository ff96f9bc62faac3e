"""A call primitive of a stranger's, made with `xprim.call_rules`, under every transformation."""

import numpy as np
import pytest

import xnp
from tests.composition.functions import close
from xad import checkpoint, checkpoint_policies, grad, hessian, jvp, linear_transpose
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import Primitive, as_array, call_rules, make_jaxpr, remove_dead_code
from xprim.calls import call_in_place

HISTORY = []


def _derived(kind, params, entries):
    """Give each derived call labels that tell which value of the first call stands for what."""
    ins, outs = entries(params["ins"], params["outs"], "new", str.upper)
    HISTORY.append(kind)
    return {"ins": tuple(ins), "outs": tuple(outs)}


labelled_p = Primitive(
    "test_labelled_call",
    call_like=True,
    **call_rules("test_labelled_call", derived=_derived, inline=call_in_place),
)


def labelled(x, y):
    """Return (x sin(y), x y) by way of a call of its program."""
    closed = make_jaxpr(lambda x, y: (x * xnp.sin(y), x * y))(x, y)
    return labelled_p.bind(
        as_array(x), as_array(y), jaxpr=closed, ins=("x", "y"), outs=("s", "p")
    )  # fmt: skip


def plain(x, y):
    return x * xnp.sin(y), x * y


def eqns_of(fun, *args):
    jaxpr, _ = remove_dead_code(make_jaxpr(fun)(*args).jaxpr)
    return [e for e in jaxpr.eqns if e.primitive is labelled_p]


@pytest.mark.parametrize("wrap", [lambda f: f, jit, checkpoint], ids=["plain", "jit", "checkpoint"])
def test_it_has_all_derivatives_and_batches(wrap):
    def loss(f):
        return lambda x, y: xnp.sum(wrap(f)(x, y)[0] * wrap(f)(x, y)[1])

    xs, ys = np.float32([0.5, 2.0, -1.0]), np.float32([1.0, 0.3, 2.0])
    one, other = loss(labelled), loss(plain)
    close(one(xs, ys), other(xs, ys))
    close(grad(one, (0, 1))(xs, ys), grad(other, (0, 1))(xs, ys))
    close(jvp(one, (xs, ys), (ys, xs)), jvp(other, (xs, ys), (ys, xs)))
    close(vmap(grad(one, 1), (0, None))(xs, 0.5), vmap(grad(other, 1), (0, None))(xs, 0.5))
    close(hessian(one)(0.5, 2.0), hessian(other)(0.5, 2.0))
    scanned = [
        grad(lambda c, f=f: lax.scan(lambda c, x: (sum(f(c, x)), None), c, xs)[0])(1.5)
        for f in (labelled, plain)
    ]
    close(*scanned)
    close(*[vmap(lambda c, f=f: f(c, 1.0), out_axes=(0, 0))(xs) for f in (labelled, plain)])


def test_its_params_follow_the_values_of_each_derived_call():
    HISTORY.clear()
    (eqn,) = eqns_of(lambda x, y, d: jvp(lambda x: labelled(x, y), (x,), (d,)), 1.0, 2.0, 3.0)
    assert (eqn.params["ins"], eqn.params["outs"]) == (("x", "y", "x"), ("s", "p", "s", "p"))
    (eqn,) = eqns_of(lambda x, y: labelled(x, y)[1], 1.0, 2.0)
    assert (eqn.params["ins"], eqn.params["outs"]) == (("x", "y"), ("p",))
    (eqn,) = eqns_of(vmap(labelled, (0, None)), np.ones(3), 2.0)
    assert (eqn.params["ins"], eqn.params["outs"]) == (("X", "y"), ("S", "P"))
    primal, backward = eqns_of(grad(lambda y, x: labelled(x, y)[0]), 2.0, 1.0)
    assert (primal.params["ins"], primal.params["outs"]) == (("y",), ("new",))
    assert (backward.params["ins"], backward.params["outs"]) == (("new", "x", "s"), ("y",))
    assert set(HISTORY) == {"jvp", "primal", "linear", "transpose", "batched", "dce"}


def test_its_linear_part_can_be_transposed():
    transposed = linear_transpose(lambda x: labelled(x, 2.0)[1], 1.0)
    close(transposed(3.0), (np.float32(6.0),))


def test_checkpoint_policies_see_inside_a_call_that_can_be_written_out():
    asked = []

    def policy(primitive, *avals, **params):
        asked.append(primitive.name)
        return checkpoint_policies.everything_saveable(primitive, *avals, **params)

    grad(checkpoint(lambda x: labelled(x, x)[0], policy=policy))(1.0)
    assert "sin" in asked and "test_labelled_call" not in asked


def test_what_a_checkpoint_computes_again_is_kept_from_being_merged():
    def barriers(f):
        return jit(f).lower(1.0).as_text().count("optimization_barrier")

    f = checkpoint(lambda x: xnp.sin(xnp.sin(x)))
    assert barriers(f) == 0 and barriers(lambda x: jvp(f, (x,), (1.0,))) == 0
    assert barriers(grad(f)) == 1
    assert barriers(grad(checkpoint(lambda x: xnp.sin(xnp.sin(x)), prevent_cse=False))) == 0
    flags = [
        e.params["differentiated"] for e in make_jaxpr(grad(f))(1.0).eqns if e.params.get("jaxpr")
    ]
    assert flags == [False, True]
