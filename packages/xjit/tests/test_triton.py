"""Kernels of Triton in programs for CUDA, up to the text of the program: no GPU is needed.

Triton is played where it is not installed: what it compiles is a text, and what it is asked for is
looked at.
"""

from __future__ import annotations

import re
import types
import zlib

import numpy as np
import pytest

import xnp
from xjit import jit
from xjit.callbacks import triton as triton_calls
from xjit.callbacks.triton import Compiled, call_message, triton_call
from xprim import ShapeDtypeStruct
from xprim.errors import MissingRuleError

X = np.ones((4, 32), np.float32)


class JITFunction:
    """What `triton.jit` gives, as far as it is looked at."""

    def __init__(self, fn, *arg_names):
        self.fn, self.arg_names = fn, list(arg_names)


def add(): ...


KERNEL = JITFunction(add, "x", "y", "n", "out", "BLOCK")


@pytest.fixture
def asked(monkeypatch):
    """Play Triton, and return what it is asked to compile."""
    found = []

    def compile(source, *, target, options):
        found.append((source, target, options))
        metadata = types.SimpleNamespace(name="add", shared=16, global_scratch_size=0)
        return types.SimpleNamespace(metadata=metadata, asm={"ptx": "PTX", "ttir": "TTIR"})

    triton = types.SimpleNamespace(JITFunction=JITFunction, compile=compile)
    monkeypatch.setattr(triton_calls, "_triton", triton)
    monkeypatch.setattr(triton_calls, "_compiler", types.SimpleNamespace(
        ASTSource=lambda **given: types.SimpleNamespace(**given)))  # fmt: skip
    monkeypatch.setattr(triton_calls, "_backends", types.SimpleNamespace(
        GPUTarget=lambda *given: given))  # fmt: skip
    return found


def added(x, y, **more):
    given = {"grid": lambda c: (x.size // c["BLOCK"],), "compute_capability": 90, "BLOCK": 32}
    return triton_call(KERNEL, x, y, x.size, out_shape=x, **(given | more))


def lowered(fun, *operands):
    return jit(fun).trace(*operands).lower(lowering_platforms=("cuda",)).as_text()


def message_in(text):
    (quoted,) = set(re.findall(r'"opaque" = "([^"]*)"', text))  # quotes stand as digits in it
    plain = re.sub(r"\\(..)", lambda m: chr(int(m[1], 16)), quoted)
    return zlib.decompress(plain.encode("latin-1"))


def test_a_program_holds_the_kernel_and_how_it_is_started(asked):
    text = lowered(added, X, X)
    assert 'call_target_name = "triton_kernel_call_ffi"' in text and "api_version = 4" in text
    ((source, target, options),) = asked
    assert target == ("cuda", 90, 32)
    assert options == {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
    assert source.signature == {
        "x": "*fp32", "y": "*fp32", "n": "i32", "out": "*fp32", "BLOCK": "constexpr"
    }  # fmt: skip
    assert source.constexprs == {(4,): 32}
    assert sorted(source.attrs) == [(0,), (1,), (2,), (3,)]  # 128 is a multiple of 16, too
    expected = call_message(
        Compiled("add", "PTX", "TTIR", 16, 4, 1, 90), (4, 1, 1),
        [triton_calls._ARRAY] * 2 + [triton_calls._scalar(128, "i32"), triton_calls._ARRAY],
    )  # fmt: skip
    assert message_in(text) == expected


def test_the_message_is_the_one_that_the_plugin_writes():
    # jax_cuda12_plugin._triton 0.10.2: TritonKernelCall(TritonKernel("add", 4, 1, 16, "PTX",
    # "TTIR", 80), 3, 1, 1, [arrays and scalars]).to_proto("add", b"")
    kernel = Compiled("add", "PTX", "TTIR", 16, 4, 1, 80)
    scalar = triton_calls._scalar
    parameters = [
        triton_calls._ARRAY, scalar(5, "i32"), scalar(-5, "i64"), scalar(0.5, "fp32"),
        scalar(True, "i1"), scalar(0, "i32"),
    ]  # fmt: skip
    expected = bytes.fromhex(
        "0a460a180a036164641004181022035054582a0454544952305050011003180120012a040a0210102a02"
        "18052a0b28fbffffffffffffffff012a053d0000003f2a0210012a0218002203616464"
    )
    assert call_message(kernel, (3, 1, 1), parameters) == expected


def test_several_results_and_scalars_of_each_kind(asked):
    kernel = JITFunction(add, "x", "a", "b", "c", "d", "out", "more")
    shapes = (ShapeDtypeStruct((4,), np.float16), ShapeDtypeStruct((2, 2), np.int8))
    text = lowered(
        lambda x: triton_call(
            kernel, x, True, 7, 2**40, 0.5, out_shape=shapes, grid=3, compute_capability=80
        ),
        X,
    )
    assert "(tensor<4x32xf32>) -> (tensor<4xf16>, tensor<2x2xi8>)" in text
    assert list(asked[0][0].signature.values()) == [
        "*fp32", "i1", "i32", "i64", "fp32", "*fp16", "*i8"
    ]  # fmt: skip
    assert sorted(asked[0][0].attrs) == [(0,), (3,), (5,), (6,)]


@pytest.mark.parametrize(("change", "error", "text"), [
    ({"kernel": add}, TypeError, "must be a function under triton.jit"),
    ({"grid": ()}, ValueError, "one to three positive sizes"),
    ({"grid": (1, 2, 3, 4)}, ValueError, "one to three positive sizes"),
    ({"grid": 0}, ValueError, "one to three positive sizes"),
    ({"OTHER": 3}, ValueError, "the kernel has other parameters"),
    ({"compute_capability": None}, ValueError, "there is no GPU to compile the kernel for"),
])  # fmt: skip
def test_what_cannot_be_called_is_refused(asked, change, error, text):
    options = {"grid": 1, "compute_capability": 90, "BLOCK": 32, **change}
    kernel = options.pop("kernel", KERNEL)
    with pytest.raises(error, match=text):
        triton_call(kernel, X, X, 4, out_shape=X, **options)


def test_numbers_and_dtypes_that_triton_has_not_are_refused(asked):
    kernel = JITFunction(add, "x", "n", "out")
    options = {"out_shape": X, "grid": 1, "compute_capability": 90}
    with pytest.raises(TypeError, match="Triton has no elements of dtype complex64"):
        triton_call(kernel, X.astype(np.complex64), 4, **options)
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError, match="an integer has more than 64 bits"):
            triton_call(kernel, X, number, **options)


@pytest.mark.of_the_cpu
def test_other_platforms_refuse_the_kernel(asked):
    for call in (added, jit(added)):
        with pytest.raises(MissingRuleError, match="cannot be called in programs for cpu"):
            call(xnp.asarray(X), xnp.asarray(X))


def test_triton_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "triton", None)
    with pytest.raises(ImportError, match="triton"):
        triton_call(KERNEL, X, out_shape=X, grid=1)


def test_triton_itself_compiles_a_kernel_without_a_gpu(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    source = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, n, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seen = i < n
    tl.store(out + i, tl.load(x + i, mask=seen) + tl.load(y + i, mask=seen), mask=seen)
"""
    (tmp_path / "kernel_of_test.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = __import__("kernel_of_test").add
    text = lowered(
        lambda x, y: triton_call(
            kernel, x, y, x.size, out_shape=x, grid=1, compute_capability=80, BLOCK=128
        ),
        X,
        X,
    )
    assert b".visible .entry add(" in message_in(text)
