"""Every transformation names the leaf of a result that is not an array, in the same words."""

from __future__ import annotations

import numpy as np
import pytest

import xstack
from xstack import lax

X = np.ones((8, 3), np.float32)


def of_text(*args):
    """Return a tree with a text in it."""
    return {"loss": args[0], "name": ("mse", args[0])}


def with_rule(decorator):
    function = decorator(of_text)
    if decorator is xstack.custom_jvp:
        function.defjvp(lambda primals, tangents: (of_text(*primals), of_text(*tangents)))
    elif decorator is xstack.custom_vjp:
        function.defvjp(lambda x: (of_text(x), None), lambda residuals, ct: (ct["loss"],))
    return function


CALLS = {
    "jit": lambda: xstack.jit(of_text)(X),
    "pmap": lambda: xstack.pmap(of_text)(X),
    "vmap": lambda: xstack.vmap(of_text)(X),
    "jvp": lambda: xstack.jvp(of_text, (X,), (X,)),
    "vjp": lambda: xstack.vjp(of_text, X),
    "linearize": lambda: xstack.linearize(of_text, X),
    "jacfwd": lambda: xstack.jacfwd(of_text)(X),
    "checkpoint": lambda: xstack.checkpoint(of_text)(X),
    "make_jaxpr": lambda: xstack.make_jaxpr(of_text)(X),
    "eval_shape": lambda: xstack.eval_shape(of_text, X),
    "custom_jvp": lambda: xstack.grad(with_rule(xstack.custom_jvp))(X),
    "custom_vjp": lambda: xstack.grad(with_rule(xstack.custom_vjp))(X),
    "of_text": lambda: xstack.custom_batching.custom_vmap(of_text)(X),
    "scan": lambda: lax.scan(lambda c, x: (c, of_text(x)), 0.0, X),
    "cond": lambda: lax.cond(True, of_text, of_text, X),
    "associative_scan": lambda: lax.associative_scan(of_text, X),
}


@pytest.mark.parametrize("operation", CALLS)
def test_a_leaf_that_is_no_array_is_named_by_its_path(operation):
    with pytest.raises(TypeError) as caught:
        CALLS[operation]()
    first, *rest = str(caught.value).split("\n")
    assert first.startswith(f"{operation}: ")
    assert first.endswith("['name'][0]: a str is not an array.") and " the result " in first
    assert rest[0] == "  got       'mse'"
    assert rest[1] == "  expected  an Array, a NumPy array or a Python scalar"
