"""What answers the questions of eager evaluation where there is no compiler."""

import numpy as np
import pytest

from xprim import (
    EAGER,
    HOST,
    HostBackend,
    Primitive,
    as_array,
    install_backend,
    lending_device,
    make_jaxpr,
)

times_p = Primitive(
    "test_times", shape=lambda x, y: (x,), numpy=lambda x, y: (x * y,), stablehlo=None, jvp=None,
    transpose=None, batch=None,
)  # fmt: skip
X = as_array(np.float32([1, 2, 3]))


def test_numpy_takes_no_operation_and_computes_each():
    assert not HOST.takes(times_p, (X, X), {}, (X.aval,)) and not HOST.compiles
    (y,) = HOST.evaluate(times_p, (X, X), {}, (X.aval,))
    assert y.to_host().tolist() == [1, 4, 9] and y.aval is X.aval
    assert HOST.compiled_operation(times_p, (X, X), {}) is None
    assert HOST.on_host(X) and HOST.platform([X]) == HOST.platform() == "cpu"


def test_numpy_runs_no_whole_programs():
    closed = make_jaxpr(lambda x: x)(1.0)
    with pytest.raises(RuntimeError, match="loop: there is no compiler for this program"):
        HOST.run_program(closed, [as_array(1.0)], "loop")


class Gpu:
    platform = "cuda"

    def __repr__(self):
        return "Gpu(0)"


class Cpu:
    platform = "cpu"


def test_there_is_one_place_without_a_compiler():
    assert HOST.device_put(X, "cpu", "zeros") is HOST.device_put(X, Cpu(), "zeros") is X
    for device, shown in (("gpu", "'gpu'"), (Gpu(), "Gpu(0)")):
        with pytest.raises(ValueError, match=r"zeros: there is no device") as e:
            HOST.device_put(X, device, "zeros")
        assert shown in str(e.value) and "xstack-xjit" in str(e.value)


def test_memory_is_lent_and_borrowed_by_dlpack():
    class Lender:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **options):
            return HOST.dlpack(self.x, **{k: v for k, v in options.items() if k != "copy"})

        def __dlpack_device__(self):
            return (1, 0)

    assert np.from_dlpack(Lender(X)).tolist() == [1, 2, 3]
    source = np.float64([1, 2])
    copied, shared = HOST.borrow(source, share=False), HOST.borrow(source, share=True)
    source[0] = 7
    assert copied.to_host().tolist() == [1, 2] and shared.to_host().tolist() == [7, 2]
    assert copied.dtype == np.float64


def test_memory_of_a_backend_that_names_no_device_is_that_of_the_cpu():
    class Accelerator(HostBackend):
        def dlpack_device(self, x):
            return 2, 1

    assert lending_device(Accelerator(), X) == (2, 1)
    assert lending_device(object(), X) == (1, 0)  # as of xjit 0.2.0


def test_a_backend_may_extend_the_one_of_numpy_and_none_is_that_one():
    class Doubling(HostBackend):
        def takes(self, primitive, operands, params, avals_out):
            return primitive is times_p

        def evaluate(self, primitive, operands, params, avals_out):
            outs = super().evaluate(primitive, operands, params, avals_out)
            return tuple([as_array(2 * y.to_host()) for y in outs])

    previous = EAGER.backend
    try:
        install_backend(Doubling())
        assert times_p.bind(X, X)[0].to_host().tolist() == [2, 8, 18]
        install_backend(None)
        assert EAGER.backend is HOST
        assert times_p.bind(X, X)[0].to_host().tolist() == [1, 4, 9]
    finally:
        install_backend(previous)
