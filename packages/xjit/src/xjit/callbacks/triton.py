"""Call kernels written in Triton from programs for CUDA.

Triton compiles a kernel for a compute capability, with or without a GPU; the program holds its code
and how it is started, in the form that the handler of the CUDA plugin reads: a message of protocol
buffers, compressed by zlib.

Source: the message is `TritonAnyKernelCall` of `jaxlib/gpu/triton.proto` of the JAX project, which
`jax_triton` writes, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.byte_formats import bytes_field, float_field, integer_field
from xjit.callbacks.ffi import TRITON_TARGET, ffi_call
from xprim import Array, as_array
from xprim.errors import message
from xprim.requirements import require, require_type
from xprim.tracebacks import boundaries
from xtree.namespaces import late_import

__all__ = ["triton_call"]

__dir__ = __all__.copy

_triton = late_import("triton", "the extra triton installs it")
_compiler = late_import("triton.compiler", "the extra triton installs it")
_backends = late_import("triton.backends.compiler", "the extra triton installs it")

Grid = int | tuple[int, ...]

_TYPES = {
    "bool": "i1", "bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_ALIGNED = 16  # bytes: XLA's arrays begin at multiples of more


def triton_call(
    kernel: Any, *args: Any, out_shape: Any, grid: Grid | Callable[[Mapping[str, Any]], Grid],
    num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1,
    compute_capability: int | None = None, vmap_method: str | None = "sequential",
    **constants: Any,
) -> Any:  # fmt: skip
    """Run a kernel of Triton on arrays, in a program for CUDA.

    Args:
      kernel: a function under `triton.jit`; its parameters are the arguments, then a pointer for
        each result, and the constants by their names.
      *args: arrays, which the kernel gets as pointers and must not write to, and numbers of Python,
        which are parts of the program.
      out_shape: what has the shape and dtype of the result, or a sequence of such.
      grid: how many programs of the kernel run, along up to three axes; or a function of the
        constants that returns it.
      num_warps: how many warps of 32 threads each of them has.
      num_stages: how many loads a loop has under way.
      num_ctas: how many blocks form a cluster.
      compute_capability: for which GPUs it is compiled, as 90; None for the one of this machine.
      vmap_method: what `vmap` does, as in `ffi_call`; "sequential" calls it for each example.
      **constants: the kernel's parameters of type `tl.constexpr`.

    Returns:
      An Array, or a sequence of Arrays as `out_shape` is one.

    Raises:
      ImportError: Triton is not installed.
      TypeError: the kernel is not under `triton.jit`; an argument is neither an array nor a number,
        or has elements of a dtype that Triton has not.
      OverflowError: an integer has more than 64 bits.
      ValueError: the grid has no one to three positive sizes, or the kernel other parameters; there
        is no GPU to compile for.
      MissingRuleError: the program is compiled for another platform.

    Differentiable: by a rule of the user's, `custom_vjp` or `custom_jvp`, around the call.
    """
    require_type(
        "triton_call", kernel, _triton.JITFunction,
        "the kernel must be a function under triton.jit.",
        hint="of one under triton.autotune pass the best: kernel.fn, and its constants"
    )  # fmt: skip
    several = isinstance(out_shape, Sequence)
    results = list(out_shape) if several else [out_shape]
    given = [x if _is_number(x) else as_array(x, what="triton_call") for x in args]
    names = _names_of(kernel, len(given) + len(results), constants)
    types = [_type_of(x) for x in (*given, *results)]
    sizes = _sizes(grid(constants) if callable(grid) else grid)
    compiled = _compile(
        kernel, dict(zip(names, types, strict=True)), constants,
        {i: x for i, x in enumerate((*given, *results)) if not _is_number(x) or _is_multiple(x)},
        {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas},
        compute_capability,
    )  # fmt: skip
    parameters = [
        _scalar(x, t) if _is_number(x) else _ARRAY
        for x, t in zip((*given, *results), types, strict=True)
    ]
    call = ffi_call(TRITON_TARGET, out_shape, vmap_method=vmap_method)
    operands = [x for x in given if isinstance(x, Array)]
    return call(*operands, opaque=zlib.compress(call_message(compiled, sizes, parameters)))


def _is_number(x: Any) -> bool:
    return isinstance(x, bool | int | float) and not isinstance(x, np.generic)


def _is_multiple(x: Any) -> bool:
    """Whether a number is an integer that Triton may take for a multiple of 16."""
    return type(x) is int and x % _ALIGNED == 0


def _names_of(kernel: Any, count: int, constants: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters that are not constants."""
    names = [name for name in kernel.arg_names if name not in constants]
    unknown = [name for name in constants if name not in kernel.arg_names]
    if len(names) != count or unknown:
        raise ValueError(message(
            "triton_call", "the kernel has other parameters.",
            got=f"{count} arguments and results, constants {', '.join(constants) or '-'}",
            expected=f"{kernel.fn.__name__}({', '.join(kernel.arg_names)})",
        ))  # fmt: skip
    return names


def _type_of(x: Any) -> str:
    if isinstance(x, bool):
        return "i1"
    if isinstance(x, int):
        require(
            -(2**63) <= x < 2**63, "triton_call", "an integer has more than 64 bits.", got=x,
            error=OverflowError,
        )  # fmt: skip
        return "i32" if -(2**31) <= x < 2**31 else "i64"
    if isinstance(x, float):
        return "fp32"
    name = np.dtype(x.dtype).name
    require(
        name in _TYPES, "triton_call", "Triton has no elements of dtype {}.", name,
        expected=", ".join(_TYPES), error=TypeError,
    )  # fmt: skip
    return f"*{_TYPES[name]}"


def _sizes(grid: Any) -> tuple[int, int, int]:
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise ValueError(message(
            "triton_call", "the grid has one to three positive sizes.", got=repr(grid),
        ))  # fmt: skip
    first, second, third = (*sizes, 1, 1)[:3]
    return first, second, third


def _compile(
    kernel: Any, types: Mapping[str, str], constants: Mapping[str, Any], aligned: Mapping[int, Any],
    options: Mapping[str, int], compute_capability: int | None,
) -> Compiled:  # fmt: skip
    """Return the code of a kernel; Triton keeps it on disk for the next time."""
    capability = _own_capability() if compute_capability is None else compute_capability
    order = {name: i for i, name in enumerate(kernel.arg_names)}
    places = [order[name] for name in types]
    source = _compiler.ASTSource(
        fn=kernel, signature={n: types.get(n, "constexpr") for n in kernel.arg_names},
        constexprs={(order[name],): value for name, value in constants.items()},
        attrs={(places[i],): [["tt.divisibility", _ALIGNED]] for i in aligned},
    )  # fmt: skip
    target = _backends.GPUTarget("cuda", capability, 32)
    found = _triton.compile(source, target=target, options=dict(options))
    scratch = getattr(found.metadata, "global_scratch_size", 0)
    if scratch:
        raise ValueError(message(
            "triton_call", "the kernel needs scratch memory, which the plugin does not provide.",
            got=f"{scratch} bytes",
        ))  # fmt: skip
    return Compiled(
        found.metadata.name, found.asm["ptx"], found.asm["ttir"], found.metadata.shared,
        options["num_warps"], options["num_ctas"], capability,
    )  # fmt: skip


def _own_capability() -> int:
    try:
        text = gateway.default_device("gpu").compute_capability
    except RuntimeError as error:
        raise ValueError(message(
            "triton_call", "there is no GPU to compile the kernel for.",
            hint="compute_capability=90 compiles for an H100, wherever the program is written",
        )) from error  # fmt: skip
    return int(text.replace(".", ""))


# --------------------------------------------------------------------------------------- message
# What the handler reads.


class Compiled(NamedTuple):
    """The code of a kernel, and what it is started with."""

    name: str
    ptx: str
    ttir: str
    shared: int
    num_warps: int
    num_ctas: int
    capability: int


def call_message(
    kernel: Compiled, sizes: tuple[int, int, int], parameters: Sequence[bytes]
) -> bytes:
    """Return the message `TritonAnyKernelCall` of one kernel."""
    code = b"".join([
        _text(1, kernel.name), _number(2, kernel.num_warps), _number(3, kernel.shared),
        _text(4, kernel.ptx), _text(5, kernel.ttir), _number(6, kernel.capability),
        integer_field(10, kernel.num_ctas),  # optional: there though it were 0
    ])  # fmt: skip
    call = b"".join([
        bytes_field(1, code), *[_number(2 + i, size) for i, size in enumerate(sizes)],
        *[bytes_field(5, parameter) for parameter in parameters],
    ])  # fmt: skip
    return bytes_field(1, call) + _text(4, kernel.name)


def _number(field: int, value: int) -> bytes:
    return integer_field(field, value) if value else b""


def _text(field: int, text: str) -> bytes:
    return bytes_field(field, text.encode()) if text else b""


# A parameter that is an array: no bytes of it are set to zero before, and how it is aligned.
_ARRAY = bytes_field(1, _number(2, _ALIGNED))


def _scalar(value: Any, kind: str) -> bytes:
    """Return a parameter that is a number: one field of several, which is there though it is 0."""
    if kind == "fp32":
        return float_field(7, value)
    return integer_field({"i1": 2, "i32": 3, "i64": 5}[kind], int(value))


boundaries(globals())
