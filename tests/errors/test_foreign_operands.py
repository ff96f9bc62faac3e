"""The messages about operands that are not arrays, and about dtypes that are none of ours."""

import datetime

import numpy as np
import pytest

import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xprim.errors import TypePromotionError
from xstack import jit

refused = Refusals()

X3 = xnp.arange(3.0)


@refused(
    TypeError,
    """
    add: a str is not an array.
      got       'a'
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def a_string_added():
    X3 + "a"


@refused(
    TypeError,
    """
    add: a list is not an array.
      hint      make an array of it first: xnp.array(...)
    """,
)
def a_list_added():
    X3 + [1, 2, 3]


@refused(
    TypeError,
    """
    multiply: None is not an array.
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def none_multiplied():
    None * X3


@refused(
    TypeError,
    """
    add: a dict is not an array.
      got       {}
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def a_dict_added_under_jit():
    jit(lambda x: x + {})(X3)


@refused(
    TypeError,
    """
    sin: a str is not an array.
      got       'a'
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def sin_of_a_string():
    xnp.sin("a")


@refused(
    TypeError,
    """
    sin: a list is not an array.
      got       [1.0, 2.0]
      expected  an Array, a NumPy array or a Python scalar
      hint      make an array of it first: xnp.array(...)
    """,
)
def sin_of_a_list():
    xnp.sin([1.0, 2.0])


@refused(
    TypeError,
    """
    sum: None is not an array.
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def sum_of_none():
    xnp.sum(None)


@refused(
    TypeError,
    """
    add: NumPy arrays of dtype object cannot be used.
      expected  a boolean, integer, floating or complex dtype
      hint      rows of different lengths, or numbers mixed with other objects, make such;
                x.astype(float) converts one that holds numbers only
    """,
)
def an_object_array_added():
    X3 + np.array([1, "a", None], dtype=object)


@refused(
    TypeError,
    """
    asarray: NumPy arrays of dtype <U1 cannot be used.
      expected  a boolean, integer, floating or complex dtype
    """,
)
def an_array_of_strings():
    xnp.asarray(np.array(["a", "b"]))


@refused(
    TypeError,
    """
    asarray: NumPy arrays of dtype datetime64[D] cannot be used.
      expected  a boolean, integer, floating or complex dtype
    """,
)
def an_array_of_dates():
    xnp.asarray(np.array(["2020-01-01"], dtype="datetime64[D]"))


@refused(
    TypeError,
    """
    array: a str is not an array.
      got       'a'
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def an_array_of_a_string():
    xnp.array("a")


@refused(
    TypeError,
    """
    arange: the bounds must be numbers, got a str.
    """,
)
def arange_up_to_a_string():
    xnp.arange("10")


@refused(
    TypeError,
    """
    zeros: 'float31' is not a dtype.
      expected  a boolean, integer, floating or complex dtype
      hint      did you mean 'float32'?
    """,
)
def a_dtype_that_does_not_exist():
    xnp.zeros(3, dtype="float31")


@refused(
    TypeError,
    """
    astype: values cannot have dtype('<U').
      expected  a boolean, integer, floating or complex dtype
    """,
)
def a_conversion_to_strings():
    X3.astype(str)


@refused(
    TypePromotionError,
    """
    add: float32 and float8_e4m3fn have no available implicit dtype promotion path.
      hint      floats of 4, 6, 8 bits and integers of 1, 2, 4 bits never promote by themselves:
                convert one of them first, such as x.astype('float32')
    """,
    TypeError,
    ValueError,
)
def narrow_floats_that_do_not_promote():
    xnp.ones(3, "float8_e4m3fn") + X3


@refused(
    TypeError,
    """
    bitwise_or: takes integers and booleans, got dtype float32.
    """,
)
def floats_combined_bit_by_bit():
    X3 | X3


@refused(
    ValueError,
    """
    bool: the truth value of several elements is ambiguous, got float32[3].
      hint      ask for x.any() or x.all()
    """,
)
def a_truth_value_of_several_elements():
    bool(X3)


@refused(
    TypeError,
    """
    float: only an array of rank 0 is a number, got float32[3].
    """,
)
def a_float_of_several_elements():
    float(X3)


@refused(
    ValueError,
    """
    item: only an array of one element is a Python number, got float32[3].
      hint      x.item(i) or x[i].item() for one element, x.tolist() for all
    """,
)
def an_item_of_several_elements():
    X3.item()


@refused(
    TypeError,
    """
    sin() takes 1 positional argument but 2 were given
    """,
)
def an_argument_too_many():
    xnp.sin(X3, X3)


@refused(
    OverflowError,
    """
    array: Python int 1099511627776 too large to convert to int32.
      expected  a value from -2147483648 to 2147483647
      hint      xnp.array(value, dtype='int64') holds it
    """,
)
def an_integer_that_does_not_fit_in_int32():
    xnp.array(2**40)


@refused(
    OverflowError,
    """
    array: Python int 1099511627776 too large to convert to int32.
      expected  a value from -2147483648 to 2147483647
      hint      int64 holds it
    """,
)
def an_integer_among_others_that_does_not_fit():
    xnp.array([1, 2**40])


@refused(
    OverflowError,
    """
    add: Python int 1099511627776 too large to convert to int32.
      expected  a value from -2147483648 to 2147483647
      hint      xnp.array(value, dtype='int64') holds it
    """,
)
def an_integer_added_that_does_not_fit():
    xnp.arange(3) + 2**40


@refused(
    OverflowError,
    """
    add: Python int 300 too large to convert to uint8.
      expected  a value from 0 to 255
      hint      xnp.array(value, dtype='int64') holds it
    """,
)
def an_integer_added_to_bytes_that_does_not_fit():
    jit(lambda x: x + 300)(xnp.ones(3, "uint8"))


@refused(
    OverflowError,
    """
    multiply: Python int -1 too large to convert to uint8.
      expected  a value from 0 to 255
      hint      xnp.array(value, dtype='int64') holds it
    """,
)
def a_negative_integer_for_unsigned_ones():
    xnp.ones(3, "uint8") * -1


@refused(
    OverflowError,
    """
    array: the int64 value 1099511627776 does not fit in int32, the default integer dtype.
      hint      pass dtype='int64', or set enable_x64
    """,
)
def a_numpy_integer_that_does_not_fit():
    xnp.asarray(np.array([2**40]))


@refused(
    OverflowError,
    """
    array: Python int 1180591620717411303424 too large to convert to int32.
      expected  a value from -2147483648 to 2147483647
    """,
)
def an_integer_of_more_than_64_bits():
    xnp.array(2**70)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_an_operand_is_complete(case):
    case.check()


def test_an_operand_of_an_unknown_class_may_answer_itself():
    class Answers:
        def __radd__(self, other):
            return "answered"

    assert X3 + Answers() == "answered"
    with pytest.raises(TypeError, match="unsupported operand type"):
        X3 + datetime.date(2020, 1, 1)
    assert (X3 == "a") is False
    assert (X3 != None) is True  # noqa: E711 - the operator is what is tried


def test_an_integer_of_64_bits_is_honoured_when_asked_for():
    assert int(xnp.array(2**40, dtype="int64")) == 2**40
