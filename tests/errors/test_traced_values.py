"""The messages about traced values where Python, NumPy or a shape needs the value itself."""

import math

import numpy as np
import pytest

import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xnp.numpy.index_entries import TracedSliceError
from xprim.requirements import TracedIntegerError
from xstack import grad, jit, jvp, lax, vmap
from xstack.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

refused = Refusals()


@refused(
    TracerBoolConversionError,
    """
    bool: a traced value has no truth value: its elements are not known while tracing.
      got       a traced bool[]
      where     the operation gt(f32[], f32[]) at test_traced_values.py:LINE in relu
      hint      choose with xnp.where or lax.cond, loop with lax.while_loop;
                write & | ~ for and, or, not;
                if it is an option and not data, make that argument static:
                jit(f, static_argnames=...)
    """,
    TypeError,
    ConcretizationTypeError,
)
def a_traced_condition_of_if():
    def relu(x):
        return x if x > 0 else 0.0

    jit(relu)(1.0)


@refused(
    TracerBoolConversionError,
    """
    bool: a traced value has no truth value: its elements are not known while tracing.
      got       a traced bool[]
      where     the operation gt(f32[], f32[]) at test_traced_values.py:LINE in halved
      hint      choose with xnp.where or lax.cond, loop with lax.while_loop;
                write & | ~ for and, or, not;
                if it is an option and not data, make that argument static:
                jit(f, static_argnames=...)
    """,
)
def a_traced_condition_of_while():
    def halved(x):
        while x > 1.0:
            x = x / 2.0
        return x

    jit(halved)(8.0)


@refused(
    TracerBoolConversionError,
    """
    bool: a traced value has no truth value: its elements are not known while tracing.
      got       a traced bool[]
      hint      choose with xnp.where or lax.cond, loop with lax.while_loop;
                write & | ~ for and, or, not;
                if it is an option and not data, make that argument static:
                jit(f, static_argnames=...)
    """,
)
def a_condition_on_one_example_under_vmap():
    def relu(x):
        return x if x > 0 else 0.0

    vmap(relu)(xnp.arange(3.0))


@refused(
    TracerBoolConversionError,
    """
    bool: a traced value has no truth value: its elements are not known while tracing.
      got       a traced bool[]
      where     the operation gt(f32[], f32[]) at test_traced_values.py:LINE in step
      hint      choose with xnp.where or lax.cond, loop with lax.while_loop;
                write & | ~ for and, or, not;
                if it is an option and not data, make that argument static:
                jit(f, static_argnames=...)
    """,
)
def a_condition_inside_the_body_of_scan():
    def step(total, x):
        return (total + x if x > 0 else total), None

    lax.scan(step, 0.0, xnp.arange(3.0))


@refused(
    TracerBoolConversionError,
    """
    bool: a traced value has no truth value: its elements are not known while tracing.
      got       a traced bool[]
      where     the operation gt(f32[], f32[]) at test_traced_values.py:LINE in relu
      hint      choose with xnp.where or lax.cond, loop with lax.while_loop;
                write & | ~ for and, or, not;
                if it is an option and not data, make that argument static:
                jit(f, static_argnames=...)
    """,
)
def a_condition_inside_grad_inside_jit():
    def relu(x):
        return x if x > 0 else 0.0

    jit(grad(relu))(1.0)


@refused(
    ConcretizationTypeError,
    """
    int: Abstract tracer value encountered where concrete value is expected.
      got       a traced f32[]
      where     the argument x of <lambda> at test_traced_values.py:LINE
      hint      stay with arrays: xnp functions for those of math, or try using `x.astype(int)`;
                if it shapes the program, make that argument static: jit(f, static_argnums=...)
    """,
    TypeError,
)
def int_of_a_traced_value():
    jit(lambda x: int(x))(1.0)


@refused(
    ConcretizationTypeError,
    """
    float: Abstract tracer value encountered where concrete value is expected.
      got       a traced f32[]
      where     the operation add(f32[], f32[]) at test_traced_values.py:LINE in <lambda>
      hint      stay with arrays: xnp functions for those of math, or try using `x.astype(float)`;
                if it shapes the program, make that argument static: jit(f, static_argnums=...)
    """,
)
def float_of_a_traced_value():
    jit(lambda x: float(x + 1))(1.0)


@refused(
    ConcretizationTypeError,
    """
    item: The item() method was called on traced array.
      got       a traced f32[]
      where     the argument x of <lambda> at test_traced_values.py:LINE
      hint      stay with arrays: xnp functions for those of math, or try using `x.astype(int)`;
                if it shapes the program, make that argument static: jit(f, static_argnums=...)
    """,
)
def item_of_a_traced_value():
    jit(lambda x: x.item())(1.0)


@refused(
    ConcretizationTypeError,
    """
    format: Abstract tracer value encountered where concrete value is expected.
      got       a traced f32[]
      where     the argument x of <lambda> at test_traced_values.py:LINE
      hint      stay with arrays: xnp functions for those of math, or try using `x.astype(int)`;
                if it shapes the program, make that argument static: jit(f, static_argnums=...)
    """,
)
def a_format_of_a_traced_value():
    jit(lambda x: f"{x:.2f}")(1.0)


@refused(
    TracerIntegerConversionError,
    """
    int: The __index__() method was called on traced array: its value is not known.
      got       a traced i32[]
      where     the argument n of <lambda> at test_traced_values.py:LINE
      hint      index arrays, not lists: xnp.array(a_list)[i]; loop with lax.fori_loop;
                if it shapes the program, make that argument static: jit(f, static_argnums=...)
    """,
    TypeError,
)
def range_of_a_traced_value():
    jit(lambda n: list(range(n)))(3)


@refused(
    TracerIntegerConversionError,
    """
    int: The __index__() method was called on traced array: its value is not known.
      got       a traced i32[]
      where     the argument i of <lambda> at test_traced_values.py:LINE
      hint      index arrays, not lists: xnp.array(a_list)[i]; loop with lax.fori_loop;
                if it shapes the program, make that argument static: jit(f, static_argnums=...)
    """,
)
def a_list_indexed_by_a_traced_value():
    jit(lambda i: [1.0, 2.0, 3.0][i])(0)


@refused(
    TracerArrayConversionError,
    """
    numpy.asarray: The numpy.ndarray conversion method __array__() was called on traced array.
      got       a traced f32[]
      where     the argument x of <lambda> at test_traced_values.py:LINE
      hint      call the xnp function of the same name instead of NumPy's;
                to index a NumPy array with a traced value, write xnp.asarray(table)[i]
    """,
    TypeError,
)
def a_traced_value_given_to_numpy():
    jit(lambda x: np.asarray(x))(1.0)


@refused(
    TracerArrayConversionError,
    """
    numpy.asarray: The numpy.ndarray conversion method __array__() was called on traced array.
      got       a traced f32[3]
      where     the argument x of <lambda> at test_traced_values.py:LINE
      hint      call the xnp function of the same name instead of NumPy's;
                to index a NumPy array with a traced value, write xnp.asarray(table)[i]
    """,
)
def a_value_under_grad_given_to_numpy():
    grad(lambda x: np.asarray(x).sum())(xnp.ones(3))


@refused(
    ConcretizationTypeError,
    """
    float: a number has no derivative, and one is taken by this value.
      got       a traced f32[], the argument params['w'] of loss at test_traced_values.py:LINE
      where     test_traced_values.py:LINE in loss
      hint      compute with arrays and the functions of xnp, not with numbers and those of math;
                a number that is to be a constant: float(lax.stop_gradient(x))
    """,
    TypeError,
)
def a_value_under_grad_given_to_math():
    def loss(params, y):
        return y * math.sin(params["w"])

    grad(loss)({"b": 1.0, "w": 2.0}, 3.0)


@refused(
    ConcretizationTypeError,
    """
    complex: a number has no derivative, and one is taken by this value.
      got       a traced c64[]
      where     test_traced_values.py:LINE in <lambda>
      hint      compute with arrays and the functions of xnp, not with numbers and those of math;
                a number that is to be a constant: float(lax.stop_gradient(x))
    """,
)
def complex_of_a_value_under_jvp():
    jvp(lambda x: complex(x * x), (1j,), (1j,))


@refused(
    ConcretizationTypeError,
    """
    zeros: Shapes must be 1D sequences of concrete values of integer type: shape is traced.
      got       a traced i32[]
      where     the argument n of <lambda> at test_traced_values.py:LINE
      hint      compute it from x.shape with math or NumPy, or make that argument static:
                jit(f, static_argnums=...) or jit(f, static_argnames=...)
    """,
    TypeError,
)
def zeros_of_a_traced_shape():
    jit(lambda n: xnp.zeros(n))(3)


@refused(
    TracedIntegerError,
    """
    zeros: a dimension is a traced value, but it must be known while tracing.
      got       a traced i32[]
      where     the argument n of <lambda> at test_traced_values.py:LINE
      hint      compute it from x.shape with math or NumPy, or make that argument static:
                jit(f, static_argnums=...) or jit(f, static_argnames=...)
    """,
)
def zeros_of_a_shape_with_a_traced_size():
    jit(lambda n: xnp.zeros((2, n)))(3)


@refused(
    ConcretizationTypeError,
    """
    reshape: Shapes must be 1D sequences of concrete values of integer type: shape is traced.
      got       a traced i32[]
      where     the operation reduce_prod(i32[2]) at test_traced_values.py:LINE in <lambda>
      hint      compute it from x.shape with math or NumPy, or make that argument static:
                jit(f, static_argnums=...) or jit(f, static_argnames=...)
    """,
)
def reshape_to_a_traced_size():
    jit(lambda x: x.reshape(xnp.array(x.shape).prod()))(xnp.ones((2, 3)))


@refused(
    ConcretizationTypeError,
    """
    arange: a bound is a traced value. It arose in the xnp.arange argument 'stop'.
      got       a traced i32[]
      where     the argument n of <lambda> at test_traced_values.py:LINE
      hint      compute it from x.shape with math or NumPy, or make that argument static:
                jit(f, static_argnums=...) or jit(f, static_argnames=...)
    """,
)
def arange_up_to_a_traced_bound():
    jit(lambda n: xnp.arange(n))(3)


@refused(
    TracedIntegerError,
    """
    sum: the axis is a traced value, but it must be known while tracing.
      got       a traced i32[]
      where     the argument axis of <lambda> at test_traced_values.py:LINE
      hint      compute it from x.shape with math or NumPy, or make that argument static:
                jit(f, static_argnums=...) or jit(f, static_argnames=...)
    """,
)
def a_traced_axis():
    jit(lambda x, axis: x.sum(axis=axis))(xnp.ones(3), 0)


@refused(
    TracedSliceError,
    """
    index: a bound of a slice is a traced value, but the shape of the result depends on it.
      got       a traced i32[]
      where     the argument n of <lambda> at test_traced_values.py:LINE
      hint      lax.dynamic_slice(x, (start,), (size,)) takes a slice of fixed size at a traced
                start; if the bound is an option, make that argument static:
                jit(f, static_argnums=...)
    """,
)
def a_slice_up_to_a_traced_bound():
    jit(lambda x, n: x[:n])(xnp.ones(3), 2)


@refused(
    NonConcreteBooleanIndexError,
    """
    index: a traced boolean mask cannot index: the shape of the result depends on its values.
      got       a traced bool[3]
      where     the operation gt(f32[3], f32[]) at test_traced_values.py:LINE in <lambda>
      hint      keep the shape: xnp.where(mask, x, fill), or reductions with where=mask;
                for at most n elements: xnp.nonzero(mask, size=n, fill_value=...)
    """,
    IndexError,
)
def a_traced_mask():
    jit(lambda x: x[x > 0])(xnp.arange(3.0))


@refused(
    ConcretizationTypeError,
    """
    nonzero: the size of the result depends on traced values.
      got       a traced bool[3]
      where     the operation ne(f32[3], f32[]) at test_traced_values.py:LINE in <lambda>
      hint      give size=, the number of positions to return; xnp.where(mask, x, y) needs none
    """,
)
def nonzero_of_a_traced_array():
    jit(lambda x: xnp.nonzero(x))(xnp.arange(3.0))


@refused(
    TypeError,
    """
    array: arrays are immutable and do not support item assignment.
      hint      x = x.at[0].set(123) makes a new array
    """,
)
def an_assignment_to_an_element():
    x = xnp.arange(3.0)
    x[0] = 123


@refused(
    TypeError,
    """
    array: arrays are immutable and do not support item assignment.
      hint      x = x.at[1:, 0].set(0.0) makes a new array
    """,
)
def an_assignment_to_a_slice_of_a_traced_array():
    def cleared(x):
        x[1:, 0] = 0.0
        return x

    jit(cleared)(xnp.ones((2, 2)))


@refused(
    TypeError,
    """
    array: arrays are immutable and do not support item deletion.
      hint      xnp.delete(x, 0) makes a new array
    """,
)
def an_element_deleted():
    x = xnp.arange(3.0)
    del x[0]


@refused(
    ConcretizationTypeError,
    """
    hash: unhashable type: dictionaries and sets need the value, and a traced one is not known yet.
      got       a traced i32[]
      where     the argument i of chosen at test_traced_values.py:LINE
      hint      look up in arrays, not in dictionaries or sets: xnp.array(a_list)[i], lax.switch;
                if it shapes the program, make that argument static: jit(f, static_argnums=...)
    """,
    TypeError,
)
def a_traced_key_of_a_dictionary():
    def chosen(i):
        return {0: 1.0, 1: 2.0}[i]

    jit(chosen)(1)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_a_traced_value_is_complete(case):
    case.check()


def test_the_line_in_a_message_is_the_users_own():
    def relu(x):
        return x if x > 0 else 0.0

    with pytest.raises(TracerBoolConversionError) as caught:
        jit(relu)(1.0)
    line = relu.__code__.co_firstlineno + 1
    assert f"at test_traced_values.py:{line} in relu" in str(caught.value)


def test_adding_in_place_makes_a_new_array():
    def f(x):
        start = x
        x += 1.0
        return x - start

    assert float(jit(f)(1.0)) == 1.0


def test_a_value_under_grad_alone_answers_to_python():
    def f(x):
        return x * x if x > 0 and int(x) < 10 and f"{x:.1f}" == "3.0" else x

    assert float(grad(f)(3.0)) == 6.0
