"""The gateway to jaxlib: buffers, executables, custom calls."""

from __future__ import annotations

import textwrap
import threading
from importlib.util import find_spec

import ml_dtypes
import numpy as np
import pytest

import xjit.jaxlib_gateway as gateway
from packages.xjit.tests.new_process import run_in_new_process

pytestmark = pytest.mark.of_the_cpu

ALL_DTYPES = [
    *"bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split(),
    *"float16 float32 float64 complex64 complex128".split(),
    *"bfloat16 int2 int4 uint2 uint4 float4_e2m1fn".split(),
    *"float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz".split(),
    *"float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split(),
]

ADD = """
func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = stablehlo.add %x, %x : tensor<8xf32>
  return %y : tensor<8xf32>
}
"""

CALLBACK = """
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {
    api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : ui64},
    operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]
  } : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
"""

CHOLESKY = """
func.func public @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>) {
  %y:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {
    api_version = 4 : i32, backend_config = {uplo = 76 : ui8},
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>],
    output_operand_aliases = [#stablehlo.output_operand_alias<
      output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]
  } : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)
  return %y#0, %y#1 : tensor<3x3xf32>, tensor<i32>
}
"""


def dtype_named(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def aligned(count):
    """Return float32 zeros at a multiple of 64 bytes, where XLA could use the memory itself."""
    memory = np.zeros(count * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 4 * count].view(np.float32)


# ---- clients


def test_importing_starts_no_client_and_no_jax():
    program = """
        import sys, threading
        import xjit.jaxlib_gateway.clients as clients
        import os
        assert not clients._client_by_platform
        assert threading.active_count() == 1
        assert "jax" not in sys.modules and "jaxlib.mlir" not in sys.modules
        assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ
    """
    run_in_new_process(program)


def test_everyday_use_on_one_device_imports_no_jax():
    program = f"""
        import sys
        import numpy as np, ml_dtypes
        import xjit.jaxlib_gateway as g
        x = g.put(np.ones(8, np.float32))
        y = g.compile_program({ADD!r}).execute([x])[0]
        g.to_numpy(y), g.unsafe_pointer(y), g.to_dlpack(y), g.from_dlpack(np.ones(3))
        g.to_numpy(g.put(np.ones(8, ml_dtypes.bfloat16)))
        g.copy_to_device(y, g.local_devices()[0])
        print("jax" in sys.modules)
    """
    assert run_in_new_process(program) == "False"


def test_the_client_is_made_once_by_many_threads():
    program = """
        import threading
        import xjit.jaxlib_gateway as g
        made, start = [], threading.Barrier(8)
        def ask():
            start.wait()
            made.append(g.client("cpu"))
        threads = [threading.Thread(target=ask) for _ in range(8)]
        [t.start() for t in threads], [t.join() for t in threads]
        print(len(made), len({id(c) for c in made}))
    """
    assert run_in_new_process(program) == "8 1"


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("jax_first", [True, False])
def test_jax_lives_in_the_same_process(jax_first):
    ours = f"""
        import xjit.jaxlib_gateway as g
        x = g.put(np.arange(8, dtype=np.float32))
        double = g.compile_program({ADD!r})
        assert g.to_numpy(double.execute([x])[0]).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
        assert g.to_numpy(g.put(np.arange(3.0))).dtype == np.float64
    """
    theirs = """
        import jax
        assert (jax.jit(lambda v: v + 1)(jax.numpy.arange(3)) == jax.numpy.arange(1, 4)).all()
        assert jax.numpy.arange(3.0).dtype == np.float32
        assert jax.grad(jax.numpy.sin)(0.0) == 1.0
    """
    steps = (theirs, ours, theirs, ours) if jax_first else (ours, theirs, ours, theirs)
    run_in_new_process("\n".join(map(textwrap.dedent, ("import numpy as np", *steps))))


def test_a_fingerprint_names_versions_and_device_and_is_stable():
    text = gateway.device_fingerprint("cpu")
    assert text == gateway.device_fingerprint("cpu")
    assert (
        gateway.version() in text
        and "cpu" in text
        and f"{len(gateway.local_devices())} devices" in text
    )


# ---- buffers


@pytest.mark.parametrize("shape", [(), (3,), (2, 5), (0, 4)])
@pytest.mark.parametrize("name", ALL_DTYPES)
def test_every_dtype_and_shape_survives_the_round_trip(name, shape):
    dtype = dtype_named(name)
    values = np.arange(int(np.prod(shape))).reshape(shape) % 2
    host = values.astype(dtype) if dtype.kind != "c" else (values * (1 - 2j)).astype(dtype)
    back = gateway.to_numpy(gateway.put(host))
    assert back.dtype == dtype and back.shape == shape and not back.flags.writeable
    assert back.tobytes() == host.tobytes()


def test_layout_and_byte_order_do_not_matter():
    grid = np.arange(24.0).reshape(4, 6)
    for host in (grid[::2, ::-1], grid.T, np.asfortranarray(grid), grid.astype(">f8")):
        np.testing.assert_array_equal(gateway.to_numpy(gateway.put(host)), host)


@pytest.mark.parametrize("dtype", ["O", "S3", "M8[s]", "longdouble"])
def test_a_dtype_that_xla_lacks_is_refused_by_name(dtype):
    with pytest.raises(TypeError, match="put: XLA has no arrays of dtype"):
        gateway.put(np.zeros(2, dtype))


@pytest.mark.parametrize("count", [8, 100_000])
@pytest.mark.parametrize("may_alias", [False, True])
def test_a_buffer_never_shows_later_writes_to_its_source(count, may_alias):
    host = aligned(count)  # a writeable view: even a promise does not make it safe
    buffer = gateway.put(host, may_alias=may_alias)
    host[:] = 7
    assert not gateway.to_numpy(buffer).any()


def test_read_only_memory_is_shared_when_the_caller_allows_it():
    host = aligned(16)
    host.flags.writeable = False
    assert gateway.unsafe_pointer(gateway.put(host, may_alias=True)) == host.ctypes.data
    assert gateway.unsafe_pointer(gateway.put(host)) != host.ctypes.data


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn"])
def test_what_was_read_outlives_the_buffer(name):
    buffer = gateway.put(np.ones(1000, dtype_named(name)))
    view = gateway.to_numpy(buffer)
    if name == "float32":
        assert view.ctypes.data == gateway.unsafe_pointer(buffer)
    gateway.delete(buffer)
    del buffer
    others = [gateway.put(np.zeros(1000, dtype_named(name))) for _ in range(20)]
    assert (view == 1).all() and len(others) == 20


def test_a_deleted_buffer_says_so():
    buffer = gateway.put(np.ones(3))
    assert not gateway.is_deleted(buffer)
    gateway.delete(buffer)
    assert gateway.is_deleted(buffer)
    for use in (gateway.to_numpy, gateway.is_ready, gateway.block_until_ready):
        with pytest.raises(gateway.XlaError, match="deleted"):
            use(buffer)


def test_a_buffer_knows_its_type_size_and_device():
    buffer = gateway.put(np.zeros((2, 3), np.int16))
    assert (buffer.aval.shape, buffer.aval.dtype) == ((2, 3), np.int16)
    assert repr(buffer.aval) == "int16[2,3]"
    assert gateway.nbytes_on_device(buffer) == 12
    assert gateway.device_of(buffer) == gateway.local_devices("cpu")[0]
    assert gateway.copy_to_device(buffer, gateway.device_of(buffer)) is buffer


def test_memory_that_is_shared_through_dlpack_is_not_deleted():
    buffer = gateway.put(np.ones(3))
    capsule = gateway.to_dlpack(buffer)
    with pytest.raises(RuntimeError, match="shared through DLPack"):
        gateway.delete(buffer)
    del capsule


def test_dlpack_gives_and_takes_arrays():
    class Shared:
        def __init__(self, buffer):
            self.buffer = buffer

        def __dlpack__(self, **_):
            return gateway.to_dlpack(self.buffer)

        def __dlpack_device__(self):
            return gateway.dlpack_device(gateway.device_of(self.buffer))

    for name in ("float32", "complex128", "bool", "bfloat16", "float8_e5m2"):
        host = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype_named(name))
        buffer = gateway.put(host)
        back = gateway.from_dlpack(Shared(buffer))
        assert gateway.unsafe_pointer(back) != gateway.unsafe_pointer(buffer)
        np.testing.assert_array_equal(gateway.to_numpy(back), host)
        shared = gateway.from_dlpack(Shared(buffer), may_alias=True)
        np.testing.assert_array_equal(gateway.to_numpy(shared), host)
    np.testing.assert_array_equal(np.from_dlpack(Shared(gateway.put(np.arange(4)))), np.arange(4))
    strided = np.arange(12.0).reshape(3, 4).T
    np.testing.assert_array_equal(gateway.to_numpy(gateway.from_dlpack(strided)), strided)


# ---- executables


def test_a_program_runs_and_knows_its_outputs():
    text = """
    func.func public @main(%x: tensor<2xf32>) -> (tensor<2xi1>, tensor<bf16>, tensor<3xi4>) {
      %y = stablehlo.compare EQ, %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
      %z = stablehlo.constant dense<1.5> : tensor<bf16>
      %i = stablehlo.constant dense<[1, -8, 7]> : tensor<3xi4>
      return %y, %z, %i : tensor<2xi1>, tensor<bf16>, tensor<3xi4>
    }
    """
    program = gateway.compile_program(text)
    assert list(map(repr, program.outputs)) == ["bool[2]", "bfloat16[]", "int4[3]"]
    outputs = program.execute([gateway.put(np.array([1, np.nan], np.float32))])
    results = [gateway.to_numpy(output) for output in outputs]
    assert results[0].tolist() == [True, False] and float(results[1]) == 1.5
    assert results[2].astype(int).tolist() == [1, -8, 7]
    given = gateway.compile_program(text, outputs=results)
    assert given.outputs == program.outputs


def test_programs_may_have_one_output_or_none():
    none = gateway.compile_program("func.func public @main() { return }")
    assert none.outputs == () and none.execute([]) == []
    assert list(map(repr, gateway.compile_program(ADD).outputs)) == ["float32[8]"]


@pytest.mark.parametrize("attribute", ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"])
def test_a_donated_argument_gives_its_memory_to_the_output(attribute):
    text = ADD.replace("%x: tensor<8xf32>", f"%x: tensor<8xf32> {{{attribute}}}")
    program = gateway.compile_program(text)
    argument = gateway.put(np.ones(8, np.float32))
    address = gateway.unsafe_pointer(argument)
    (output,) = program.execute([argument])
    assert gateway.is_deleted(argument)
    assert gateway.unsafe_pointer(output) == address
    assert (gateway.to_numpy(output) == 2).all()


@pytest.mark.parametrize(("name", "mlir"), [("float32", "f32"), ("bfloat16", "bf16")])
def test_donating_does_not_change_an_array_that_is_still_looked_at(name, mlir):
    text = ADD.replace("%x: tensor<8xf32>", "%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}")
    program = gateway.compile_program(text.replace("f32", mlir))
    argument = gateway.put(np.ones(8, dtype_named(name)))
    view = gateway.to_numpy(argument)
    (output,) = program.execute([argument])
    assert (gateway.to_numpy(output) == 2).all() and (view == 1).all()


def test_results_come_before_they_are_computed():
    size = 1200
    lines = [
        f"%{i + 1} = stablehlo.dot_general %{i}, %0, contracting_dims = [1] x [0]"
        f" : (tensor<{size}x{size}xf32>, tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>"
        for i in range(20)
    ]
    kind = f"tensor<{size}x{size}xf32>"
    body = "\n".join([*lines, f"return %20 : {kind}"])
    text = f"func.func public @main(%0: {kind}) -> {kind} {{ {body} }}"
    program = gateway.compile_program(text)
    argument = gateway.block_until_ready(gateway.put(np.eye(size, dtype=np.float32)))
    (output,) = program.execute([argument])
    assert not gateway.is_ready(output)
    assert gateway.is_ready(gateway.block_until_ready(output))
    np.testing.assert_array_equal(gateway.to_numpy(output), np.eye(size))


def test_refused_text_raises_with_the_message_of_xla():
    with pytest.raises(gateway.XlaError, match="compile_program: XLA refused") as caught:
        gateway.compile_program(ADD.replace("stablehlo.add", "stablehlo.frobnicate"))
    assert "frobnicate" in str(caught.value)


def test_an_unknown_option_is_refused_and_a_known_one_is_taken():
    with pytest.raises(gateway.XlaError, match="xla_make_it_fast"):
        gateway.compile_program(ADD, options={"xla_make_it_fast": True})
    program = gateway.compile_program(ADD, options={"xla_backend_optimization_level": 0})
    assert gateway.to_numpy(program.execute([gateway.put(np.ones(8, np.float32))])[0])[0] == 2


def test_arguments_that_do_not_fit_are_refused(capfd):
    program = gateway.compile_program(ADD)
    for arguments in ([], [gateway.put(np.ones(3))]):
        with pytest.raises(gateway.XlaError, match="execute: the program could not be started"):
            program.execute(arguments)
    capfd.readouterr()  # XLA logs these itself


def test_the_number_of_devices_has_to_match():
    with pytest.raises(ValueError, match="1 different devices\n  expected  2"):
        gateway.compile_program(ADD, gateway.local_devices()[:1], num_replicas=2)


def test_a_serialised_program_runs_again():
    data = gateway.compile_program(ADD).serialize()
    program = gateway.deserialize_program(data)
    assert gateway.to_numpy(program.execute([gateway.put(np.ones(8, np.float32))])[0])[0] == 2
    assert list(map(repr, program.outputs)) == ["float32[8]"]
    with pytest.raises(ValueError, match="not the bytes of a serialised program"):
        gateway.deserialize_program(b"something else")
    with pytest.raises(gateway.XlaError, match="deserialize_program"):
        gateway.deserialize_program(data[:60])


def test_a_serialised_program_runs_in_another_process(tmp_path):
    path = tmp_path / "program"
    path.write_bytes(gateway.compile_program(ADD).serialize())
    program = f"""
        import numpy as np
        import xjit.jaxlib_gateway as g
        program = g.deserialize_program(open({str(path)!r}, "rb").read())
        print(g.to_numpy(program.execute([g.put(np.ones(8, np.float32))])[0]).tolist())
    """
    assert run_in_new_process(program) == str([2.0] * 8)


def test_analyses_describe_the_program():
    program = gateway.compile_program(ADD)
    assert program.cost_analysis()["flops"] == 8
    assert program.memory_analysis()["argument_size_in_bytes"] == 32
    assert "add" in program.hlo_text() and "f32[8]" in program.hlo_text()


def test_threads_compile_and_run_side_by_side():
    start, results = threading.Barrier(8), {}

    def work(number):
        start.wait()
        for step in range(3):
            text = ADD.replace("8x", f"{8 + number + step}x")
            program = gateway.compile_program(text)
            argument = gateway.put(np.full(8 + number + step, number, np.float32))
            results[number, step] = gateway.to_numpy(program.execute([argument])[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 24
    for (number, step), result in results.items():
        assert result.tolist() == [2.0 * number] * (8 + number + step)


# ---- custom calls


def test_cholesky_of_lapack_runs_from_text():
    gateway.register_lapack()
    gateway.register_lapack()
    matrix = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
    factor, info = gateway.compile_program(CHOLESKY).execute([gateway.put(matrix)])
    assert gateway.to_numpy(info) == 0
    expected = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(np.tril(gateway.to_numpy(factor)), expected, rtol=1e-6)


def test_lapack_is_loaded_without_the_rest_of_scipy_linalg():
    program = """
        import sys
        import xjit.jaxlib_gateway as gateway
        gateway.register_lapack()
        print([name for name in sys.modules if name.startswith("scipy.linalg")])
        import scipy.linalg.cython_lapack
        print("dpotrf" in scipy.linalg.cython_lapack.__pyx_capi__, scipy.linalg.det([[2.0]]))
    """
    assert run_in_new_process(program).splitlines() == ["[]", "True 2.0"]


def test_a_target_of_ones_own_can_be_registered():
    from jaxlib import lapack

    capsule = {name: fn for name, fn, _ in lapack.registrations()["cpu"]}
    gateway.register_lapack()
    gateway.register_ffi_target("my_cholesky", capsule["lapack_spotrf_ffi"])
    program = gateway.compile_program(CHOLESKY.replace("lapack_spotrf_ffi", "my_cholesky"))
    (factor, _) = program.execute([gateway.put(np.eye(3, dtype=np.float32) * 4)])
    np.testing.assert_array_equal(gateway.to_numpy(factor), np.eye(3) * 2)
    with pytest.raises(ValueError, match="two versions of the interface"):
        gateway.register_ffi_target("x", capsule["lapack_spotrf_ffi"], api_version=4)


def test_a_program_calls_python():
    seen = []

    def sine(x):
        seen.append(x)
        return (np.sin(x),)

    callback = gateway.python_callback(sine, [np.zeros(3, np.float32)])
    program = gateway.compile_program(CALLBACK, host_callbacks=[callback])
    for start in (0, 1):
        x = np.arange(start, start + 3, dtype=np.float32)
        (output,) = program.execute([gateway.put(x)])
        np.testing.assert_array_equal(gateway.to_numpy(output), np.sin(x))
    assert [x.tolist() for x in seen] == [[0, 1, 2], [1, 2, 3]]
    assert not seen[0].flags.writeable


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda x: (), "another number of results"),
        (lambda x: (x[:2],), "declared type"),
        (lambda x: (x.astype(np.float64),), "declared type"),
    ],
)
def test_the_failure_of_a_callback_is_raised_where_the_result_is_read(function, message, capfd):
    callback = gateway.python_callback(function, [np.zeros(3, np.float32)])
    program = gateway.compile_program(CALLBACK, host_callbacks=[callback])
    with pytest.raises(gateway.XlaError, match=message):
        gateway.to_numpy(program.execute([gateway.put(np.ones(3, np.float32))])[0])
    capfd.readouterr()


def test_a_serialised_program_asks_for_its_callbacks():
    callback = gateway.python_callback(lambda x: (x + 1,), [np.zeros(3, np.float32)])
    data = gateway.compile_program(CALLBACK, host_callbacks=[callback]).serialize()
    with pytest.raises(ValueError, match="number of Python callbacks differs"):
        gateway.deserialize_program(data)
    program = gateway.deserialize_program(data, host_callbacks=[callback])
    (output,) = program.execute([gateway.put(np.ones(3, np.float32))])
    assert gateway.to_numpy(output).tolist() == [2, 2, 2]


def test_a_program_with_callbacks_that_is_no_stablehlo_is_refused():
    with pytest.raises(gateway.XlaError, match="XLA refused the program"):
        gateway.compile_program("what?", host_callbacks=[lambda: ()])


class _Offer:
    """An object that offers a capsule and names a device for it."""

    def __init__(self, capsule, device=(1, 0)):
        self._capsule, self._device = capsule, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, **options):
        return self._capsule


def _changed(**fields):
    """Return a capsule of three numbers with fields of its header overwritten, and their owner."""
    owner = np.arange(3.0)
    capsule = owner.__dlpack__()
    header = gateway.buffers._header(capsule)
    for name, value in fields.items():
        setattr(header, name, value)
    return capsule, owner


def test_a_capsule_that_names_another_device_than_its_object_is_refused():
    capsule, _ = _changed(device_type=2)
    with pytest.raises(ValueError, match="the object and its capsule name different devices"):
        gateway.from_dlpack(_Offer(capsule))


def test_a_capsule_without_memory_is_refused():
    capsule, _ = _changed(data=None)
    with pytest.raises(ValueError, match=r"the capsule of shape \(3,\) has no memory: null"):
        gateway.from_dlpack(_Offer(capsule))


def test_read_only_memory_of_numpy_is_taken():
    theirs = np.arange(3.0)
    theirs.flags.writeable = False
    assert gateway.to_numpy(gateway.from_dlpack(theirs)).tolist() == [0, 1, 2]
