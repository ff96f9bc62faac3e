"""The messages of loops and branches about the functions that they are given."""

import pytest

import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xstack import jit, lax

refused = Refusals()

X3 = xnp.ones(3)


@refused(
    TypeError,
    """
    scan: the body must return a carry of the types that it gets.
      got       carry: float32[4]
      expected  carry: float32[3]
      where     body at test_control_flow.py:LINE
      hint      a carry keeps its shape from step to step: start with an array of the final size
    """,
)
def a_carry_of_scan_that_grows():
    def body(carry, x):
        return xnp.append(carry, x), None

    lax.scan(body, X3, X3)


@refused(
    TypeError,
    """
    scan: the body must return a carry of the types that it gets.
      got       carry: int8[]
      expected  carry: float32[]
      where     body at test_control_flow.py:LINE
      hint      .astype(...) in the function, or on the first carry, makes the dtypes equal
    """,
)
def a_carry_of_scan_of_another_dtype():
    def body(carry, x):
        return (carry > x).astype(xnp.int8), x

    lax.scan(body, xnp.float32(0.0), X3)


@refused(
    TypeError,
    """
    scan: the body must return a carry of the structure that it gets.
      got       PyTreeDef((*, *))
      expected  PyTreeDef({'a': *, 'b': *})
      where     body at test_control_flow.py:LINE
    """,
)
def a_carry_of_scan_of_another_structure():
    def body(carry, x):
        return (carry["a"], carry["b"]), x

    lax.scan(body, {"a": 0.0, "b": 1.0}, X3)


@refused(
    TypeError,
    """
    scan: the body must return a pair (carry, y).
      got       PyTreeDef(*)
      where     body at test_control_flow.py:LINE
      hint      return carry, None if there is no y
    """,
)
def a_body_of_scan_without_a_pair():
    def body(carry, x):
        return carry + x

    lax.scan(body, 0.0, X3)


@refused(
    ValueError,
    """
    scan: the leading dimensions of xs and length must be equal.
      got       xs[0]: float32[3], xs[1]: float32[4]
    """,
)
def scan_along_two_lengths():
    lax.scan(lambda carry, x: (carry, x), 0.0, (X3, xnp.ones(4)))


@refused(
    ValueError,
    """
    scan: how many steps there are must be said by xs or length.
      got       no arrays in xs, and length=None
    """,
)
def scan_of_no_length():
    lax.scan(lambda carry, x: (carry, x), 0.0, None)


@refused(
    TypeError,
    """
    while_loop: body_fun must return a carry of the types that it gets.
      got       carry: float32[6]
      expected  carry: float32[3]
      where     body at test_control_flow.py:LINE
      hint      a carry keeps its shape from step to step: start with an array of the final size
    """,
)
def a_carry_of_while_loop_that_grows():
    def body(x):
        return xnp.concatenate([x, x])

    lax.while_loop(lambda x: x.sum() < 10, body, X3)


@refused(
    TypeError,
    """
    while_loop: cond_fun must return a boolean scalar.
      got       float32[]
      where     <lambda> at test_control_flow.py:LINE
      hint      compare with 0, or reduce with all() or any()
    """,
)
def a_condition_of_while_loop_that_is_no_boolean():
    lax.while_loop(lambda x: x, lambda x: x + 1, 0.0)


@refused(
    TypeError,
    """
    while_loop: cond_fun must return a boolean scalar.
      got       bool[3]
      where     <lambda> at test_control_flow.py:LINE
      hint      compare with 0, or reduce with all() or any()
    """,
)
def a_condition_of_while_loop_with_elements():
    lax.while_loop(lambda x: x > 0, lambda x: x + 1, X3)


@refused(
    TypeError,
    """
    fori_loop: body_fun must return a carry of the types that it gets.
      got       carry: float32[2]
      expected  carry: float32[]
      where     body at test_control_flow.py:LINE
      hint      a carry keeps its shape from step to step: start with an array of the final size
    """,
)
def a_carry_of_fori_loop_of_another_shape():
    def body(i, x):
        return xnp.stack([x, x])

    lax.fori_loop(0, 3, body, 1.0)


@refused(
    TypeError,
    """
    fori_loop: body_fun must return a carry of the structure that it gets.
      got       PyTreeDef((*, *))
      expected  PyTreeDef(*)
      where     body at test_control_flow.py:LINE
    """,
)
def a_carry_of_fori_loop_with_traced_bounds():
    def body(i, x):
        return x, x

    jit(lambda n: lax.fori_loop(0, n, body, 1.0))(3)


@refused(
    TypeError,
    """
    fori_loop: upper must be an integer scalar.
      got       float32[]
    """,
)
def a_bound_of_fori_loop_that_is_no_integer():
    lax.fori_loop(0, 3.5, lambda i, x: x, 1.0)


@refused(
    TypeError,
    """
    cond: the branches must return results of the same types.
      got       result: float32[2] in false_fun, float32[3] in true_fun
      where     shorter at test_control_flow.py:LINE, longer at test_control_flow.py:LINE
    """,
)
def branches_of_cond_of_two_shapes():
    def longer(x):
        return x

    def shorter(x):
        return x[:2]

    lax.cond(True, longer, shorter, X3)


@refused(
    TypeError,
    """
    cond: the branches must return results of the same types.
      got       result: float32[] in false_fun, int32[] in true_fun
      where     <lambda> at test_control_flow.py:LINE, <lambda> at test_control_flow.py:LINE
    """,
)
def branches_of_cond_of_two_dtypes():
    jit(lambda p: lax.cond(p, lambda: 1, lambda: 2.0))(True)


@refused(
    TypeError,
    """
    cond: the branches must return results of the same structure.
      got       false_fun: PyTreeDef({'b': *}), true_fun: PyTreeDef({'a': *})
      where     <lambda> at test_control_flow.py:LINE, <lambda> at test_control_flow.py:LINE
    """,
)
def branches_of_cond_of_two_structures():
    lax.cond(True, lambda x: {"a": x}, lambda x: {"b": x}, X3)


@refused(
    TypeError,
    """
    cond: the branches must return results of the same structure.
      got       false_fun: PyTreeDef(None), true_fun: PyTreeDef(*)
      where     <lambda> at test_control_flow.py:LINE, <lambda> at test_control_flow.py:LINE
    """,
)
def a_branch_of_cond_that_returns_nothing():
    lax.cond(True, lambda x: x, lambda x: None, X3)


@refused(
    TypeError,
    """
    cond: the predicate must be a scalar.
      got       bool[3]
      hint      vmap maps cond over an array of predicates, where selects elementwise
    """,
)
def a_predicate_of_cond_with_elements():
    lax.cond(X3 > 0, lambda x: x, lambda x: -x, X3)


@refused(
    TypeError,
    """
    switch: the branches must return results of the same types.
      got       result: float32[3] in branches[0], float32[2] in branches[1]
      where     <lambda> at test_control_flow.py:LINE, <lambda> at test_control_flow.py:LINE
    """,
)
def branches_of_switch_of_two_shapes():
    lax.switch(1, [lambda x: x, lambda x: x[:2], lambda x: x], X3)


@refused(
    TypeError,
    """
    switch: the index must be an integer scalar.
      got       float32[]
    """,
)
def an_index_of_switch_that_is_no_integer():
    lax.switch(1.5, [lambda x: x, lambda x: -x], X3)


@refused(
    TypeError,
    """
    switch: the branches must be a sequence of functions.
      got       the function <lambda>
      expected  switch(index, [f, g, ...], *operands)
    """,
)
def a_switch_of_one_function():
    lax.switch(0, lambda x: x, X3)


@refused(
    TypeError,
    """
    map: f must be a function, got an int.
    """,
)
def map_of_no_function():
    lax.map(3, X3)


@refused(
    ValueError,
    """
    associative_scan: fn must return a tree like its arguments, of the same shapes.
      got       PyTreeDef(*) of float32[1]
      expected  PyTreeDef(*) of float32[2]
      where     first at test_control_flow.py:LINE
    """,
)
def an_associative_scan_that_changes_shapes():
    def first(a, b):
        return a[:1]

    lax.associative_scan(first, xnp.ones(5))


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_control_flow_is_complete(case):
    case.check()
