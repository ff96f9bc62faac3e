"""The messages of `jit`: its options, its arguments, donated arrays, platforms, stages."""

from dataclasses import dataclass

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xjit.dispatch.program import DonatedTwiceError
from xjit.sharding.shardings import UnknownPlatformError
from xstack import jit, lax

refused = Refusals()

X3 = xnp.arange(3.0)


def scaled(x, factor):
    return x * factor[0]


@refused(
    ValueError,
    """
    jit: the static argument factor of scaled: Non-hashable static arguments are not supported.
      got       a list of length 1
      hint      pass a tuple instead of a list or dict, or make it a traced argument
    """,
)
def a_list_as_static_argument():
    jit(scaled, static_argnums=1)(X3, [2.0])


@refused(
    ValueError,
    """
    jit: the static argument factor of scaled: Non-hashable static arguments are not supported.
      got       a NumPy array float64[1]
      hint      leave it out of the static arguments: arrays are traced
    """,
)
def an_array_as_static_argument():
    jit(scaled, static_argnames="factor")(X3, factor=np.ones(1))


@refused(
    RuntimeError,
    """
    Array has been deleted: it was donated to <lambda>.
      hint      use what the call returns, x = f(x), or leave the argument out of donate_argnums
    """,
)
def a_donated_array_used_again():
    update = jit(lambda state: state + 1, donate_argnums=0)
    state = xnp.arange(1000.0)
    update(state)
    state + 1


@refused(
    RuntimeError,
    """
    Array has been deleted with shape=float32[1000]: it was donated to <lambda>.
      hint      use what the call returns, x = f(x), or leave the argument out of donate_argnums
    """,
)
def a_donated_array_donated_again():
    update = jit(lambda state: state + 1, donate_argnums=0)
    state = xnp.arange(1000.0)
    update(state)
    update(state)


@refused(
    DonatedTwiceError,
    """
    <lambda>: an array is donated and passed twice: as x and y.
      hint      pass a copy, or leave it out of donate_argnums
    """,
    ValueError,
)
def an_array_donated_twice_in_one_call():
    update = jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))
    state = xnp.arange(1000.0)
    update(state, state)


@refused(
    RuntimeError,
    """
    Array has been deleted with shape=float32[1000]: it was deleted by x.delete().
    """,
)
def a_deleted_array():
    x = xnp.arange(1000.0)
    xstack.device_put(x).delete()
    x + 1


@refused(
    TypeError,
    """
    jit: expected a function, got an int.
      hint      options go by keyword: jit(f, static_argnums=...)
    """,
)
def jit_of_no_function():
    jit(3)


@refused(
    ValueError,
    """
    jit: static_argnums has 2, but scaled takes 2 positional arguments.
      expected  an int from -2 to 1
    """,
)
def a_static_position_that_is_not_there():
    jit(scaled, static_argnums=2)


@refused(
    ValueError,
    """
    jit: static_argnames names 'factr', which scaled does not have.
      expected  some of factor, x
    """,
)
def a_static_name_that_is_not_there():
    jit(scaled, static_argnames=["factr"])


@refused(
    TypeError,
    """
    jit: static_argnums must be an integer or several, got 'factor'.
    """,
)
def static_positions_that_are_no_integers():
    jit(scaled, static_argnums="factor")


@refused(
    ValueError,
    """
    jit: static_argnums and donate_argnums cannot intersect: ['x'] of scaled.
    """,
)
def an_argument_both_static_and_donated():
    jit(scaled, static_argnums=0, donate_argnums=0)


@refused(
    TypeError,
    """
    jit: the argument mode of <lambda> is not an array of numbers.
      got       a str: 'relu'
      expected  an Array, a NumPy array or a number, or a tree of them
      hint      if it is an option, make it static: static_argnames='mode'
    """,
)
def a_string_as_traced_argument():
    jit(lambda x, mode: x)(X3, "relu")


class Net:
    def __init__(self):
        self.weights = xnp.ones(3)

    def __repr__(self):
        return "Net()"


@dataclass
class Point:
    x: float


@refused(
    TypeError,
    f"""
    jit: the argument net of <lambda> is not an array of numbers.
      got       a {__name__}.Net: Net()
      expected  an Array, a NumPy array or a number, or a tree of them
      hint      if it holds arrays, make it a pytree: register_pytree_node(Net, flatten, unflatten);
                if it is an option, make it static: static_argnames='net'
    """,
)
def an_object_of_a_class_as_traced_argument():
    jit(lambda net: net.weights)(Net())


@refused(
    TypeError,
    f"""
    grad: the argument: a {__name__}.Point is not an array.
      got       Point(x=2.0)
      expected  an Array, a NumPy array or a Python scalar
      hint      if it holds arrays, make it a pytree: register_dataclass(Point)
    """,
)
def a_dataclass_as_differentiated_argument():
    xstack.grad(lambda p: p.x**2)(Point(2.0))


@refused(
    TypeError,
    """
    jit: the argument x of <lambda> is not an array of numbers.
      got       a NumPy array object[2]: array([1, None], dtype=object)
      expected  an Array, a NumPy array or a number, or a tree of them
      hint      NumPy arrays of numbers and booleans can be traced; convert it with .astype
    """,
)
def an_object_array_as_traced_argument():
    jit(lambda x: x)(np.array([1, None]))


@refused(
    TypeError,
    """
    jit: the result of <lambda> at ['name']: a str is not an array.
      got       'mse'
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def a_result_that_is_no_array():
    jit(lambda x: {"loss": x, "name": "mse"})(1.0)


@refused(
    RuntimeError,
    """
    Unknown backend: 'abacus' is not the name of a platform.
      expected  one of cpu, gpu, cuda
    """,
)
def a_platform_that_does_not_exist():
    xstack.devices("abacus")


@refused(
    UnknownPlatformError,
    """
    jit(backend): unknown platform 'abacus'.
      expected  'cpu', a device, or a SingleDeviceSharding
      hint      Unknown backend: 'abacus' is not the name of a platform.
    """,
)
def a_backend_that_does_not_exist():
    jit(lambda x: x, backend="abacus")(1.0)


@refused(
    TypeError,
    """
    <lambda>: it was compiled for other arguments.
      got       x: float32[4]
      expected  float32[3]
    """,
)
def a_compiled_function_called_with_another_shape():
    jit(lambda x: x + 1).lower(X3).compile()(xnp.ones(4))


@refused(
    AttributeError,
    """
    config.update: there is no option 'enable_x46'.
      hint      did you mean enable_x64?
    """,
)
def a_configuration_option_that_does_not_exist():
    xstack.config.update("enable_x46", True)


@refused(
    AttributeError,
    """
    config: there is no option 'enable_x46'.
      hint      did you mean enable_x64?
    """,
)
def an_option_that_does_not_exist_as_an_attribute():
    _ = xstack.config.enable_x46


@refused(
    AttributeError,
    """
    config: there is no option 'enable_x46'.
      hint      did you mean enable_x64?
    """,
)
def an_option_that_does_not_exist_assigned():
    xstack.config.enable_x46 = True


@refused(
    TypeError,
    """
    config.enable_x64: the option does not take this value.
      got       'maybe'
      expected  True or False
    """,
)
def a_configuration_option_of_another_type():
    xstack.config.update("enable_x64", "maybe")


@refused(
    TypeError,
    """
    jit() got an unexpected keyword argument 'static_args'.
      hint      it is called static_argnums= here
    """,
)
def an_unknown_option_of_jit():
    jit(lambda x: x, static_args=0)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_a_compiled_function_is_complete(case):
    case.check()


def test_a_donated_number_lives_on_wherever_else_it_occurs():
    update = jit(lambda x: x + 1.0, donate_argnums=0)
    x, y = xnp.array(1.0), xnp.array(1.0)
    assert float(update(x)) == 2.0
    assert float(y) == 1.0
    assert float(jit(lambda a: a * 1.0)(1.0)) == 1.0
    assert float(lax.add(y, 1.0)) == 2.0
