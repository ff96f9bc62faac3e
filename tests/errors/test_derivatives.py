"""The messages of derivatives: of what cannot be differentiated, and of rules that do not fit."""

import pytest

import xstack
import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xprim.errors import ArgumentError, ShapeError, UndefinedRuleError
from xstack import checkpoint, custom_jvp, custom_vjp, grad, jvp, lax, vjp

refused = Refusals()

X3 = xnp.arange(3.0)


@refused(
    TypeError,
    """
    grad: the function must return a scalar, but returned an array of shape [3].
      got       float32[3]
      expected  shape []
      where     square at test_derivatives.py:LINE
      hint      sum or average it, use jacrev or jacfwd, or vmap the gradient
    """,
)
def a_gradient_of_an_array():
    def square(x):
        return x * x

    grad(square)(X3)


@refused(
    TypeError,
    """
    grad: the function must return a scalar, but returned a tree of 2 arrays.
      got       PyTreeDef((*, *))
      where     <lambda> at test_derivatives.py:LINE
      hint      has_aux=True lets the function return a pair (scalar, auxiliary)
    """,
)
def a_gradient_of_a_pair():
    grad(lambda x: (x, x + 1))(1.0)


@refused(
    TypeError,
    """
    grad: the function must return a scalar, but returned None.
      where     forgotten at test_derivatives.py:LINE
      hint      a function without a return statement returns None
    """,
)
def a_gradient_of_a_function_without_return():
    def forgotten(x):
        x * x

    grad(forgotten)(1.0)


@refused(
    TypeError,
    """
    grad: cannot differentiate with respect to values of dtype int32.
      expected  a floating or complex dtype
      hint      pass 3.0 instead of 3, convert with x.astype('float32'), or leave it out of
                argnums; allow_int=True gives float0 zeros
    """,
)
def a_gradient_with_respect_to_an_integer():
    grad(lambda x: x * x)(3)


@refused(
    TypeError,
    """
    grad: cannot differentiate with respect to values of dtype int32 at ['count'].
      expected  a floating or complex dtype
      hint      pass 3.0 instead of 3, convert with x.astype('float32'), or leave it out of
                argnums; allow_int=True gives float0 zeros
    """,
)
def a_gradient_with_respect_to_a_tree_that_holds_an_integer():
    grad(lambda p: p["scale"] * p["count"])({"scale": 1.0, "count": 2})


@refused(
    TypeError,
    """
    grad: the function must return a real floating scalar, got int32.
      where     <lambda> at test_derivatives.py:LINE
      hint      integer results have no gradient; convert with astype('float32')
    """,
)
def a_gradient_of_an_integer():
    grad(lambda x: x.astype(int).sum())(X3)


@refused(
    TypeError,
    """
    grad: the function must return a real floating scalar, got complex64.
      where     <lambda> at test_derivatives.py:LINE
      hint      holomorphic=True differentiates holomorphic functions
    """,
)
def a_gradient_of_a_complex_number():
    grad(lambda x: x * 1j)(1.0)


@refused(
    TypeError,
    """
    grad: holomorphic=True needs complex arguments, got float32.
    """,
)
def a_holomorphic_gradient_at_a_real_number():
    grad(lambda x: x * x, holomorphic=True)(1.0)


@refused(
    ArgumentError,
    """
    grad: argnums=1 requests argument 1, but the function was called with 1 positional argument.
      hint      keyword arguments cannot be differentiated
    """,
)
def a_gradient_with_respect_to_an_argument_that_is_not_there():
    grad(lambda x: x, argnums=1)(1.0)


@refused(
    ArgumentError,
    """
    grad: argnums=0 requests argument 0, but the function was called with 0 positional arguments.
      hint      keyword arguments cannot be differentiated
    """,
)
def a_gradient_with_respect_to_a_keyword():
    grad(lambda x: x)(x=1.0)


@refused(
    TypeError,
    """
    grad: argnums must be an int or a tuple of ints, got 'x'.
    """,
)
def argnums_that_are_no_integers():
    grad(lambda x: x, argnums="x")(1.0)


@refused(
    TypeError,
    """
    grad: expected a function, got a float.
    """,
)
def a_gradient_of_no_function():
    grad(3.0)


@refused(
    TypeError,
    """
    grad: the argument: a str is not an array.
      got       'one'
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def a_gradient_with_respect_to_a_string():
    grad(lambda x: x)("one")


@refused(
    TypeError,
    """
    grad: with has_aux=True the function must return a two-element tuple (result, auxiliary).
      got       an array float32[]
      where     <lambda> at test_derivatives.py:LINE
    """,
)
def an_auxiliary_result_that_is_not_there():
    grad(lambda x: x * x, has_aux=True)(1.0)


@refused(
    UndefinedRuleError,
    """
    Reverse-mode differentiation does not work for lax.while_loop: it has no max_steps.
      where     the loop whose body is at test_derivatives.py:LINE in <lambda>
      hint      max_steps=N bounds it; or use scan, or fori_loop with bounds that are integers;
                maxiter=N bounds that of a solver
    """,
    NotImplementedError,
    ValueError,
)
def a_while_loop_in_reverse_mode():
    grad(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2, x))(1.0)


@refused(
    UndefinedRuleError,
    """
    custom_vjp: forward mode needs the transpose of the bwd rule clip_twice, which has none: it is \
not linear in the cotangent.
      got       max: has no transpose rule: it is not linear.
      hint      a custom_jvp rule serves both modes
    """,
    TypeError,
)
def a_custom_vjp_in_forward_mode_whose_rule_is_not_linear():
    def clip_twice(_, ct):
        return (xnp.maximum(2 * ct, 0),)

    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), clip_twice)
    jvp(f, (1.0,), (1.0,))


@refused(
    ShapeError,
    """
    jvp: the tangent at [0] must have the shape and dtype of its primal.
      got       float32[4]
      expected  float32[3]
    """,
)
def a_tangent_of_another_shape():
    jvp(lambda x: x, (X3,), (xnp.ones(4),))


@refused(
    TypeError,
    """
    jvp: primals must be a tuple or list of arguments, got an array float32[3].
      hint      jvp(f, (x,), (x_dot,)) for a function of one argument
    """,
)
def arguments_of_jvp_that_are_no_tuple():
    jvp(lambda x: x, X3, X3)


@refused(
    ShapeError,
    """
    vjp: the cotangent must have the shape and dtype of its primal.
      got       float32[4]
      expected  float32[3]
    """,
)
def a_cotangent_of_another_shape():
    vjp(lambda x: x, X3)[1](xnp.ones(4))


@refused(
    ShapeError,
    """
    vjp: unexpected tree structure: the cotangents must have the structure of the function's result.
      got       PyTreeDef(*)
      expected  PyTreeDef((*, *))
    """,
)
def a_cotangent_of_another_structure():
    vjp(lambda x: (x, x), X3)[1](X3)


@refused(
    UndefinedRuleError,
    """
    linear_transpose: the program is not linear: its arguments meet in mul with each other.
      expected  a function that is linear in all of its arguments together
    """,
)
def a_linear_transpose_of_a_square():
    xstack.linear_transpose(lambda x: x * x, 1.0)(1.0)


@refused(
    AttributeError,
    """
    custom_jvp: no rule is defined for double.
      hint      decorate the rule with @double.defjvp
    """,
)
def a_custom_jvp_without_its_rule():
    @custom_jvp
    def double(x):
        return 2 * x

    double(1.0)


def tripled_with(forward, backward):
    """Return the gradient of a function with these rules at 1."""

    @custom_vjp
    def triple(x):
        return 3 * x

    triple.defvjp(forward, backward)
    return grad(triple)(1.0)


@refused(
    TypeError,
    """
    custom_vjp: the bwd rule of triple must return a tuple of cotangents.
      got       an array float32[]
      expected  a tuple of length 1, a cotangent for each differentiable argument
      hint      one argument: return (cotangent,)
    """,
)
def a_backward_rule_that_returns_no_tuple():
    tripled_with(lambda x: (3 * x, None), lambda _, ct: 3 * ct)


@refused(
    TypeError,
    """
    custom_vjp: the bwd rule of triple must return a tuple of cotangents.
      got       a tuple of length 2
      expected  a tuple of length 1, a cotangent for each differentiable argument
      hint      one argument: return (cotangent,)
    """,
)
def a_backward_rule_that_returns_too_much():
    tripled_with(lambda x: (3 * x, None), lambda _, ct: (3 * ct, None))


@refused(
    ShapeError,
    """
    custom_vjp: the bwd rule of triple: the cotangent must have the shape and dtype of its primal.
      got       float32[2]
      expected  float32[]
    """,
)
def a_backward_rule_that_returns_another_shape():
    tripled_with(lambda x: (3 * x, None), lambda _, ct: (xnp.ones(2) * ct,))


@refused(
    TypeError,
    """
    custom_vjp: the fwd rule of triple must return a pair (result, residuals).
      got       an array float32[]
    """,
)
def a_forward_rule_that_returns_no_pair():
    tripled_with(lambda x: 3 * x, lambda _, ct: (3 * ct,))


@refused(
    TypeError,
    """
    custom_jvp: defjvps takes one rule for each argument, or None.
      got       1 for 2 arguments
      where     product at test_derivatives.py:LINE
    """,
)
def too_few_rules_of_defjvps():
    @custom_jvp
    def product(x, y):
        return x * y

    product.defjvps(lambda t, _, x, y: t * y)
    grad(product)(1.0, 2.0)


@refused(
    TypeError,
    """
    checkpoint: the policy must be a function, got a str.
      hint      checkpoint_policies has the common ones
    """,
)
def a_checkpoint_policy_that_is_no_function():
    checkpoint(xnp.sin, policy="dots_saveable")


@refused(
    TypeError,
    """
    checkpoint: save_only_these_names is not a policy but makes one.
      hint      policy=checkpoint_policies.save_only_these_names(...)
    """,
)
def a_checkpoint_policy_that_was_not_made():
    checkpoint(xnp.sin, policy=xstack.checkpoint_policies.save_only_these_names)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_a_derivative_is_complete(case):
    case.check()
