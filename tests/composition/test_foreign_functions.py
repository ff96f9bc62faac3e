"""Calls of functions of C++, built where a compiler is."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from xad import jvp
from xbatch import vmap
from xjit import XlaError, compile_and_run, jit
from xjit.callbacks import ffi
from xprim import Primitive, ShapeDtypeStruct, as_array, undefined
from xprim.errors import MissingRuleError

SOURCE = r"""
#include <cstdint>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

// y = x * factor + offsets[i % size], row by row; counts its calls
static int64_t calls = 0;
static ffi::Error Scale(ffi::Buffer<ffi::F32> x, double factor, ffi::Span<const float> offsets,
                        std::string_view mode, ffi::ResultBuffer<ffi::F32> y) {
  calls += 1;
  if (mode == "fail") return ffi::Error::InvalidArgument("asked to fail");
  for (int64_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = x.typed_data()[i] * factor + offsets[i % offsets.size()];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ScaleHandler, Scale, ffi::Ffi::Bind()
    .Arg<ffi::Buffer<ffi::F32>>().Attr<double>("factor").Attr<ffi::Span<const float>>("offsets")
    .Attr<std::string_view>("mode").Ret<ffi::Buffer<ffi::F32>>());
extern "C" int64_t count_calls() { return calls; }

// copies memory as it lies, and says how many elements there are
static ffi::Error Raw(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                      ffi::ResultBuffer<ffi::S32> n) {
  for (int64_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i];
  n->typed_data()[0] = static_cast<int32_t>(x.element_count());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(RawHandler, Raw, ffi::Ffi::Bind()
    .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::S32>>());

static ffi::Error Bump(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  y->typed_data()[0] += 1.0f;  // the memory is that of x, if they are aliased
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(BumpHandler, Bump, ffi::Ffi::Bind()
    .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no compiler of C++ here")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "functions.cc").write_text(SOURCE)
    command = [compiler, "-std=c++17", "-O0", "-shared", "-fPIC", f"-I{ffi.include_dir()}"]
    subprocess.run([*command, "functions.cc", "-o", "functions.so"], cwd=folder, check=True)
    found = ctypes.CDLL(str(folder / "functions.so"))
    found.count_calls.restype = ctypes.c_int64
    for name in ("Scale", "Raw", "Bump"):
        capsule = ffi.pycapsule(getattr(found, f"{name}Handler"))
        ffi.register_ffi_target(f"xjit_test_{name}", capsule, platform="cpu")
    return found


def scale(x, *, mode="work", **options):
    call = ffi.ffi_call("xjit_test_Scale", ShapeDtypeStruct(x.shape, x.dtype), **options)
    return call(x, factor=2.0, offsets=np.float32([10, 20, 30]), mode=mode)


X = np.arange(6, dtype=np.float32).reshape(2, 3)
EXPECTED = X * 2 + np.float32([10, 20, 30])


def test_a_function_gets_operands_and_attributes(library):
    for f in (scale, jit(scale), lambda x: jit(scale, inline=True)(x)):
        np.testing.assert_array_equal(np.asarray(f(as_array(X))), EXPECTED)


def test_its_error_is_raised_at_the_call(library):
    with pytest.raises(RuntimeError, match="asked to fail"):
        np.asarray(jit(lambda x: scale(x, mode="fail"))(X))


def test_a_function_with_a_side_effect_is_called_although_nothing_needs_it(library):
    def unused(x, has_side_effect):
        scale(x, has_side_effect=has_side_effect)
        return x

    for has_side_effect, more in ((False, 0), (True, 1)):
        before = library.count_calls()
        jit(unused, static_argnums=1)(X, has_side_effect).block_until_ready()
        assert library.count_calls() == before + more


def test_layouts_are_the_order_of_the_memory(library):
    shapes = (ShapeDtypeStruct((2, 3), np.float32), ShapeDtypeStruct((), np.int32))
    columns = ffi.ffi_call("xjit_test_Raw", shapes, input_layouts=[(1, 0)])
    y, n = jit(columns)(X)
    np.testing.assert_array_equal(np.asarray(y).ravel(), X.T.ravel())
    assert int(n) == 6
    both = ffi.ffi_call(
        "xjit_test_Raw", list(shapes), input_layouts=[(1, 0)], output_layouts=[(1, 0), ()]
    )
    assert isinstance(both(X), list)
    np.testing.assert_array_equal(np.asarray(both(X)[0]), X)


def test_an_aliased_result_is_the_memory_of_its_operand(library):
    shape = ShapeDtypeStruct((3,), np.float32)
    bump = ffi.ffi_call("xjit_test_Bump", shape, input_output_aliases={0: 0})
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(np.asarray(jit(bump)(x)), [2, 2, 3])
    np.testing.assert_array_equal(x, [1, 2, 3])


@pytest.mark.parametrize(
    ("method", "calls"),
    [("sequential", 4), ("sequential_unrolled", 4), ("broadcast_all", 1), ("expand_dims", 1),
     ("legacy_vectorized", 1)],
)  # fmt: skip
def test_a_batch_calls_the_function_as_its_method_says(library, method, calls):
    batch = np.arange(12, dtype=np.float32).reshape(4, 3)
    before = library.count_calls()
    result = jit(vmap(lambda x: scale(x, vmap_method=method), in_axes=1))(batch.T)
    np.testing.assert_array_equal(np.asarray(result), batch * 2 + np.float32([10, 20, 30]))
    assert library.count_calls() == before + calls


def test_a_primitive_of_yours_is_lowered_to_a_call(library):
    rule = ffi.ffi_lowering("xjit_test_Scale", backend_config={"mode": "work"})
    scaled = Primitive(
        "xjit_test_scaled", shape=lambda x, **_: (x,), numpy=undefined("it is compiled"),
        stablehlo=rule, jvp=undefined("a test"), transpose=undefined("a test"),
        batch=undefined("a test"),
    )  # fmt: skip
    params = {"factor": 2.0, "offsets": (1.0,)}
    with pytest.raises(XlaError):  # an array of doubles is not a span of floats
        compile_and_run(scaled, (as_array(X),), params)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: scale(as_array(X), vmap_method="no"), ValueError, "unknown vmap_method"),
        (lambda: scale(as_array(X), input_layouts=[(0, 0)]), ValueError, "an order of the dim"),
        (lambda: scale(as_array(X), input_layouts=[]), ValueError, "an entry for each array"),
        (lambda: scale(as_array(X), input_output_aliases={1: 0}), ValueError, "1 operands"),
        (lambda: scale(as_array(X), legacy_backend_config="x"), ValueError, "before 4"),
        (lambda: scale(as_array(X), custom_call_api_version=2), ValueError, "for version 4"),
        (lambda: ffi.ffi_call("f", 3), ValueError, "result 0 has no shape"),
        (lambda: ffi.ffi_call("f", X)(X, a=object()), TypeError, "a type that functions cannot"),
        (lambda: ffi.ffi_call("f", X)(X, a=as_array(X)), TypeError, "are operands, by position"),
        (lambda: ffi.ffi_lowering("f", layout=3), TypeError, "no option 'layout'"),
        (lambda: ffi.register_ffi_type_id("f", None), ValueError, "registers the id of a type"),
        (lambda: ffi.register_ffi_target("f", None, api_version=7), ValueError, "two versions"),
        (lambda: ffi.ffi_call("xjit_there_is_none", X)(X), XlaError, "xjit_there_is_none"),
    ],
)  # fmt: skip
def test_misuse_says_what_is_wrong(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()


def test_derivatives_and_batches_that_nobody_declared_are_refused():
    call = ffi.ffi_call("f", ShapeDtypeStruct((3,), np.float32))
    with pytest.raises(MissingRuleError, match="what its function does with a batch"):
        vmap(call)(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="derivative of the function 'f' is not known"):
        jvp(call, (np.ones(3, np.float32),), (np.ones(3, np.float32),))
