"""Phrases of error messages that programs written for JAX look for, in both libraries.

A row is a program that is refused, the class that its users catch and the phrase that they match.
The oracle refuses it in the same words, so that a test suite written for JAX finds them here; the
rest of our messages is our own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

import xstack
from xnp.numpy.dispatch import names_in_errors

jax = pytest.importorskip("jax")

Program = Callable[[Any], Any]
ROWS: dict[str, tuple[type[Exception], str, Program]] = {}


def refused(error: type[Exception], phrase: str) -> Callable[[Program], Program]:
    def add(program: Program) -> Program:
        ROWS[program.__name__] = (error, phrase, program)
        return program

    return add


@refused(RuntimeError, "Array has been deleted with shape=int32[3]")
def a_deleted_array(lib: Any) -> None:
    x = lib.numpy.arange(3, dtype="int32")
    x.delete()
    _ = x + 1


@refused(RuntimeError, "Array has been deleted")
def a_donated_array(lib: Any) -> None:
    x = lib.numpy.ones(4)
    lib.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.asarray(x)


@refused(ValueError, "Received incompatible devices for jitted computation")
def two_devices(lib: Any) -> None:
    first, second = [lib.device_put(np.ones(8, np.float32), d) for d in lib.devices("cpu")[:2]]
    lib.jit(lambda x, y: x + y)(first, second)


@refused(TypeError, "unhashable type")
def the_hash_of_a_traced_value(lib: Any) -> None:
    lib.jit(hash)(1.0)


@refused(IndexError, "Too many indices: array is 1-dimensional, but 2 were indexed")
def an_index_for_each_of_two_dimensions(lib: Any) -> None:
    _ = lib.numpy.zeros(3)[0, 0]


@refused(IndexError, "boolean index did not match shape")
def a_mask_of_another_shape(lib: Any) -> None:
    _ = lib.numpy.arange(4)[lib.numpy.array([True, False])]


@refused(TypeError, "Indexer must have integer or boolean type, got indexer with type float")
def a_float_as_index(lib: Any) -> None:
    _ = lib.numpy.zeros(2)[0.0]


@refused(TypeError, "Indexer must have integer or boolean type, got indexer with type float32")
def an_array_of_floats_as_index(lib: Any) -> None:
    lib.numpy.zeros(2).at[lib.numpy.zeros(1)].set(1.0)


@refused(IndexError, "index is out of bounds for axis 1 with size 0")
def a_traced_index_of_an_empty_dimension(lib: Any) -> None:
    x = lib.numpy.ones((2, 0))
    lib.jit(lambda i: x[0, i])(0)


@refused(TypeError, "arrays are immutable")
def an_assignment(lib: Any) -> None:
    lib.numpy.zeros(2)[0] = 1.0


@refused(ValueError, "Reverse-mode differentiation does not work for lax.while_loop")
def a_gradient_of_a_loop_without_a_bound(lib: Any) -> None:
    lib.grad(lambda x: lib.lax.while_loop(lambda v: v < 5, lambda v: v * 2, x))(1.0)


@refused(ValueError, "Can only use `unroll`")
def a_loop_of_traced_length_that_is_unrolled(lib: Any) -> None:
    lib.jit(lambda n: lib.lax.fori_loop(0, n, lambda i, c: c + 1, 0, unroll=2))(3)


@refused(TypeError, "lower and upper arguments to fori_loop must have equal types")
def bounds_of_two_dtypes(lib: Any) -> None:
    with lib.numpy_dtype_promotion("strict"):
        lib.lax.fori_loop(np.int16(0), lib.numpy.int32(3), lambda i, c: c, 0.0)


@refused(NameError, "unbound axis name: x")
def a_collective_outside_of_its_axis(lib: Any) -> None:
    lib.lax.psum(lib.numpy.ones(3), "x")


@refused(NameError, "unbound axis name: y")
def an_index_of_another_axis(lib: Any) -> None:
    lib.vmap(lambda x: x + lib.lax.axis_index("y"), axis_name="x")(lib.numpy.ones(3))


@refused(ValueError, "no available implicit dtype promotion path")
def operands_of_two_dtypes_where_strict(lib: Any) -> None:
    with lib.numpy_dtype_promotion("strict"):
        lib.numpy.float32(1) + lib.numpy.int32(1)


@refused(ValueError, "no available implicit dtype promotion path")
def a_float_of_8_bits_with_another(lib: Any) -> None:
    lib.numpy.ones(2, lib.numpy.float8_e4m3fn) * lib.numpy.ones(2)


@refused(ValueError, "mode must be one of ['full', 'same', 'valid']")
def an_unknown_mode(lib: Any) -> None:
    lib.numpy.convolve(lib.numpy.ones(3), lib.numpy.ones(2), mode="half")


@refused(ValueError, "num_segments must be non-negative")
def a_negative_number_of_segments(lib: Any) -> None:
    x = lib.numpy.arange(3)
    lib.ops.segment_sum(x, x, num_segments=-1)


@refused(ValueError, "Number of devices")
def a_mesh_of_more_devices_than_there_are(lib: Any) -> None:
    lib.make_mesh((4096,), ("x",))


@refused(ValueError, "Expected shard shape (4,) doesn't match the single device array shape (5,)")
def a_piece_of_another_shape(lib: Any) -> None:
    mesh = lib.sharding.Mesh(np.array(lib.devices("cpu")[:2]), ("x",))
    along = lib.sharding.NamedSharding(mesh, lib.sharding.PartitionSpec("x"))
    lib.make_array_from_callback((8,), along, lambda _: np.zeros(5, np.float32))


@refused(ValueError, "must have one shard each. An argument array had 2 shard(s)")
def pieces_over_two_devices(lib: Any) -> None:
    mesh = lib.sharding.Mesh(np.array(lib.devices("cpu")[:2]), ("x",))
    along = lib.sharding.NamedSharding(mesh, lib.sharding.PartitionSpec("x"))
    x = lib.device_put(np.arange(8), along)
    lib.make_array_from_single_device_arrays((8,), along, [x, x])


@refused(ValueError, "require replication")
def a_result_that_varies_over_devices(lib: Any) -> None:
    mesh = lib.sharding.Mesh(np.array(lib.devices("cpu")[:2]), ("x",))
    p = lib.sharding.PartitionSpec
    f = lib.shard_map(lambda x: x * 2, mesh=mesh, in_specs=p("x"), out_specs=p())
    f(lib.numpy.arange(4.0))


S = np.float32(1)


@refused(ValueError, "Function to be exported must be the result of `jit`")
def an_export_of_a_function_that_is_not_compiled(lib: Any) -> None:
    lib.export.export(lambda x: x)(S)


@refused(ValueError, "The invocation args and kwargs must have the same pytree structure")
def a_call_of_an_exported_program_with_another_tree(lib: Any) -> None:
    lib.export.export(lib.jit(lambda x: x[0]))((S, S)).call(S)


@refused(ValueError, "Dtype mismatch for args[0]")
def a_call_of_an_exported_program_with_another_dtype(lib: Any) -> None:
    lib.export.export(lib.jit(lambda x: x))(S).call(np.int32(1))


@refused(ValueError, "Rank mismatch for kwargs['b']['c']")
def a_call_of_an_exported_program_with_another_rank(lib: Any) -> None:
    lib.export.export(lib.jit(lambda a, b: a))(S, b={"c": S}).call(S, b={"c": np.ones(2, "f")})


@refused(ValueError, "Shape mismatch for args[1][0].shape[1]")
def a_call_of_an_exported_program_with_another_size(lib: Any) -> None:
    f = lib.export.export(lib.jit(lambda x, y: x))(S, [np.ones((2, 3), "f")])
    f.call(S, [np.ones((2, 4), "f")])


@refused(ValueError, "Function 'f' was exported for platform")
def a_call_of_a_program_for_another_platform(lib: Any) -> None:
    def f(x: Any) -> Any:
        return x

    lib.export.export(lib.jit(f), platforms=["tpu"])(S).call(S)


@refused(ValueError, "Input shapes do not match the polymorphic shapes specification")
def a_call_with_sizes_that_no_variables_have(lib: Any) -> None:
    shape = lib.export.symbolic_shape("2*b, b")
    f = lib.export.export(lib.jit(lambda x: x))(lib.ShapeDtypeStruct(shape, np.float32))
    f.call(np.ones((4, 3), np.float32))


@refused(ValueError, "syntax error in symbolic shape 'a ^ a'")
def a_symbolic_size_with_a_symbolic_exponent(lib: Any) -> None:
    lib.export.symbolic_shape("a ^ a")


@refused(ValueError, "because we parsed 2 already and 'like' shape has only 1 dimensions")
def a_placeholder_beyond_the_dimensions(lib: Any) -> None:
    lib.export.symbolic_shape("a, b, _", like=(3,))


@refused(Exception, "is inconclusive")
def a_comparison_of_two_symbolic_sizes(lib: Any) -> None:
    a, b = lib.export.symbolic_shape("a, b")
    _ = a < b


@refused(ValueError, "Pure callbacks do not support JVP")
def a_derivative_of_a_callback(lib: Any) -> None:
    lib.grad(lambda x: lib.pure_callback(np.sin, lib.ShapeDtypeStruct((), np.float32), x))(1.0)


@refused(ValueError, "IO callbacks do not support JVP")
def a_derivative_of_a_callback_with_a_side_effect(lib: Any) -> None:
    out = lib.ShapeDtypeStruct((), np.float32)
    lib.grad(lambda x: lib.experimental.io_callback(np.sin, out, x))(1.0)


@refused(ValueError, "Cannot `vmap` ordered IO callback")
def a_batch_of_ordered_callbacks(lib: Any) -> None:
    out = lib.ShapeDtypeStruct((), np.float32)
    f = lambda x: lib.experimental.io_callback(np.sin, out, x, ordered=True)  # noqa: E731
    lib.vmap(f)(np.ones(2, np.float32))


@refused(NotImplementedError, "vmap is only supported for")
def a_batch_of_a_callback_without_a_method(lib: Any) -> None:
    out = lib.ShapeDtypeStruct((), np.float32)
    lib.vmap(lambda x: lib.pure_callback(np.sin, out, x))(np.ones(2, np.float32))


@refused(ValueError, "ppermute sources and destinations must be unique")
def a_permutation_of_devices_with_a_source_twice(lib: Any) -> None:
    mesh = lib.sharding.Mesh(np.array(lib.devices("cpu")[:2]), ("i",))
    p = lib.sharding.PartitionSpec("i")
    f = lambda x: lib.lax.ppermute(x, "i", [(0, 1), (0, 0)])  # noqa: E731
    lib.shard_map(f, mesh=mesh, in_specs=p, out_specs=p)(np.ones(2, np.float32))


@refused(ValueError, "appeared at both a and b")
def a_reference_that_is_two_arguments(lib: Any) -> None:
    ref = lib.new_ref(S)
    lib.jit(lambda a, b: a[...] + b[...])(ref, ref)


@refused(ValueError, "both closed over and passed as the argument a")
def a_reference_that_is_an_argument_and_closed_over(lib: Any) -> None:
    ref = lib.new_ref(S)
    lib.jit(lambda a: a[...] + ref[...])(ref)


@refused(ValueError, "zero-size array to reduction operation max which has no identity")
def a_maximum_of_no_elements(lib: Any) -> None:
    lib.numpy.max(lib.numpy.ones((0, 3)), axis=0)


@refused(ValueError, "does not have an identity, so to use a where mask one has to specify 'in")
def a_minimum_of_a_selection_without_a_start(lib: Any) -> None:
    lib.numpy.min(lib.numpy.ones(3), where=np.array([True, False, True]))


@refused(ValueError, "initial value must be a scalar. Got array of shape (1, 2)")
def a_sum_that_starts_from_a_matrix(lib: Any) -> None:
    lib.numpy.sum(lib.numpy.ones(3), initial=lib.numpy.ones((1, 2)))


@refused(ValueError, "The input array has rank 2, however axis was not set to an explicit value")
def a_cumulative_sum_of_a_matrix_without_an_axis(lib: Any) -> None:
    lib.numpy.cumulative_sum(lib.numpy.ones((2, 2)))


@refused(NotImplementedError, "The 'out' argument to ")
def a_sum_into_an_array(lib: Any) -> None:
    lib.numpy.sum(lib.numpy.ones(3), out=lib.numpy.ones(()))


@refused(ValueError, "numpy.fft.rfft2 only supports 2 axes. Got axes = [0]")
def a_transform_of_a_plane_along_one_axis(lib: Any) -> None:
    with names_of_jax(lib):
        lib.numpy.fft.rfft2(lib.numpy.ones((2, 2)), axes=[0])


@refused(ValueError, "numpy.fft.ifftn does not support repeated axes. Got axes [1, 1]")
def a_transform_twice_along_one_axis(lib: Any) -> None:
    with names_of_jax(lib):
        lib.numpy.fft.ifftn(lib.numpy.ones((2, 2)), axes=[1, 1])


@refused(ValueError, "jax.numpy.fft.fft does not support multiple axes. Please use jax.numpy.fft.")
def a_transform_along_one_axis_of_two(lib: Any) -> None:
    with names_of_jax(lib):
        lib.numpy.fft.fft(lib.numpy.ones((2, 2)), axis=[0, 1])


@refused(NotImplementedError, "The 'out' argument to jnp.mean is not supported")
def a_mean_into_an_array(lib: Any) -> None:
    with names_of_jax(lib):
        lib.numpy.mean(lib.numpy.ones(3), out=lib.numpy.ones(()))


def names_of_jax(lib: Any) -> AbstractContextManager[Any]:
    """Return the context of programs that run by `xstack.as_jax`, which sets this option."""
    return names_in_errors("jax.numpy") if lib is xstack else nullcontext()


@pytest.mark.parametrize("name", ROWS)
def test_an_error_has_the_phrase_that_programs_for_jax_match(name: str) -> None:
    error, phrase, program = ROWS[name]
    for lib in (jax, xstack):
        if len(lib.devices("cpu")) < 2 and "device" in name + phrase:
            pytest.skip("one device")
        with pytest.raises(error) as caught:
            program(lib)
        assert phrase in str(caught.value), lib.__name__


@pytest.mark.parametrize(
    "index", [[0, [0, 1]], [0, np.arange(2)], [0, None], [0, slice(None)], ["a"]]
)
def test_a_list_that_is_not_an_array_of_positions_is_refused_as_an_index(index: Any) -> None:
    """NumPy's error about an inhomogeneous array came out of an index with rows of two lengths."""
    for lib in (jax, xstack):
        x = lib.numpy.arange(6).reshape(3, 2)
        for use in (lambda x=x: x[index], lambda x=x: x.at[index].set(0)):
            with pytest.raises(TypeError):
                use()
