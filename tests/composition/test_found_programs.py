"""Programs that were found at random to fail once, in their smallest form.

Each is the case of a defect; `test_random_programs` finds them, these keep them.
"""

from __future__ import annotations

import functools
from importlib.metadata import version

import numpy as np
import pytest

import xnp
from tests.composition.program_checks import check
from tests.composition.program_data import Case, Program, Step
from tests.composition.program_strategy import operations
from xad import checkpoint, custom_vjp, grad, jacfwd, jacrev
from xbatch import vmap
from xjit import jit
from xnp import lax, ops
from xnp.scipy.linalg import circulant
from xnp.scipy.signal import istft
from xprim import from_numpy

assert operations

# A jitted function that captures a boolean array: its constant was written as packed bits.
CAPTURED_BOOLEANS = Case(
    Program((Step("jit", (1,), (Program((), (0,)),)),), (2,)),
    (("b", (2, 1, 2)), ("i", (3,))),
)
# Evaluated at once, the inner jit runs compiled; in the jaxpr it runs as one equation of many.
INNER_JIT = Case(
    Program((Step("jit", (0,), (Program((Step("tanh", (1,)),), (3,)),)),), (2,)),
    (("f", ()), ("f", (3, 2))),
    seed=1,
)


@pytest.mark.parametrize("case", [CAPTURED_BOOLEANS, INNER_JIT], ids=["booleans", "inner-jit"])
def test_a_program_that_once_failed_passes_all_checks(case):
    check(case, each_equation=True)


def _jaxlib_is_before_0_11() -> bool:
    return tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)


@pytest.mark.xfail(
    _jaxlib_is_before_0_11(), strict=True,
    reason="its XLA takes the barrier away before it merges loops, as it does for JAX",
)  # fmt: skip
def test_an_update_made_of_the_array_itself_is_read_before_it_is_written():
    def f(x):
        x = lax.bitwise_not(lax.cumsum(x, 0))
        update = lax.rev(lax.slice_in_dim(x, 0, 2), (0,))
        return lax.dynamic_update_slice_in_dim(x, update, lax.reduce_sum(x, (0,)), 0)

    x = from_numpy(np.array([1, 3, -3], np.int32))
    np.testing.assert_array_equal(f(x), [-5, -2, -2])
    np.testing.assert_array_equal(jit(f)(x), [-5, -2, -2])


@pytest.mark.parametrize("shape", [(4,), (9,), (2, 1, 2), (1,), (0,), (16,)])
def test_a_jitted_function_returns_the_booleans_that_it_captured(shape):
    host = np.random.default_rng(1).integers(0, 2, shape).astype(bool)
    captured = from_numpy(host)
    found = jit(lambda x: lax.bitwise_xor(captured, lax.full(shape, True)))(0)
    np.testing.assert_array_equal(found, ~host)


@custom_vjp
def arctangent(x):
    return lax.atan(x)


arctangent.defvjp(
    lambda x: (arctangent(x), x),
    lambda x, y_bar: (lax.div(y_bar, lax.add(lax.square(x), 1.0)),),
)


def test_gradient_of_a_checkpointed_function_with_a_custom_vjp():
    assert float(grad(checkpoint(arctangent))(0.5)) == pytest.approx(0.8)


INNER_CALLS = {
    "jit": jit(lax.sin),
    "cond": lambda x: lax.cond(lax.gt(x, 0.0), lax.sin, lax.cos, x),
    "scan": lambda x: lax.scan(lambda c, _: (lax.sin(c), None), x, None, length=2)[0],
}


@pytest.mark.parametrize("name", INNER_CALLS)
def test_gradient_of_a_checkpointed_function_that_goes_on_after_a_call(name):
    def loss(x):
        return lax.sin(INNER_CALLS[name](x))

    assert float(grad(checkpoint(loss))(0.5)) == pytest.approx(float(grad(loss)(0.5)), rel=1e-6)


def test_scatter_whose_indices_are_its_operand():
    # XLA on the CPU overwrites the operand while it reads indices from the same memory
    def added(x):
        numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        return lax.scatter_add(x, x, np.ones((3, 1), np.int32), numbers, mode="fill")

    x = np.array([[1], [0], [0]], np.int32)
    np.testing.assert_array_equal(jit(added)(x), [[3], [1], [0]])
    np.testing.assert_array_equal(added(x), [[3], [1], [0]])


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_segments_of_small_positions_and_no_segments_have_values_and_derivatives(name, dtype):
    x, of_one = xnp.array([[1.0], [2.0], [3.0]]), getattr(ops, name)
    positions = xnp.array([0, 1, 1], dtype)
    assert of_one(x, positions).shape == (2, 1)  # the greatest of them, and 1
    none = functools.partial(of_one, segment_ids=positions, num_segments=0)
    for method in (jacfwd, jacrev):
        assert method(none)(x).shape == jit(method(none))(x).shape == (0, 1, 3, 1)


@pytest.mark.parametrize(("function", "shape"), [
    (xnp.spacing, ()), (xnp.spacing, (3,)), (circulant, (0,)), (circulant, (3,)),
    (lambda x: x[np.zeros((2, 0), int)], (0,)),
])  # fmt: skip
def test_weak_types_are_the_same_in_all_ways_to_run_a_function(function, shape):
    x = xnp.full(shape, 2.0)
    assert x.aval.weak_type
    is_weak = function(x).aval.weak_type
    assert is_weak == (function is not xnp.spacing)
    assert jit(function)(x).aval.weak_type == is_weak
    assert vmap(function)(x[None]).aval.weak_type == is_weak


def test_results_that_are_quotients_of_constants_do_not_end_the_process():
    # the weights of the frames, a constant, were an argument of a function of one kernel
    x = np.array([[0.25, 1.5, -1.25], [-0.5, 1.0, 0.0]], np.float32)

    def total(x, run):
        return sum(values.sum() for values in run(istft)(x))

    slope = grad(total)(x, jit)
    assert slope.shape == x.shape
    np.testing.assert_allclose(slope, grad(total)(x, lambda f: f), rtol=1e-6)
