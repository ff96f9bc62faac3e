"""NumPy routines inside of compiled CPU programs, where they beat what XLA compiles.

A primitive whose owner gave it a rule of kind `host` is written as a call of its NumPy rule, where
that rule says so for the shapes and dtypes at hand. The call names the primitive and its params,
which every process knows. What is exported, split by XLA over devices, or written for another
platform has the plain operations.
"""

from __future__ import annotations

import ast
import functools
import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.callbacks.primitive import CompiledCallback, callback_p
from xprim import Primitive, ShapedArray, dtypes, get_primitive, shaped_array
from xtree.records import Record

if TYPE_CHECKING:
    from xjit.lowering.stablehlo_text import Builder

__all__ = [
    "prepare_host_kernels", "write_host_kernel", "HostRule", "is_rule", "named_rules",
    "numbered_rules", "write_on_host",
]  # fmt: skip

__dir__ = __all__.copy


def write_host_kernel(
    b: Builder, primitive: Primitive, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], params: Mapping[str, Any],
) -> list[str] | None:  # fmt: skip
    """Write the call of a primitive's NumPy rule, and return the names of its results.

    Returns:
      None where XLA is to compute it.
    """
    if b.is_split or not all(map(_is_callable_on, (*avals_in, *avals_out))):
        return None
    source = max(range(len(avals_in)), key=lambda i: avals_in[i].size)
    dims = primitive.rules["host"](avals_in, avals_out, **params)
    if dims is None:
        return None
    shape = avals_in[0].shape
    split = max(dims, key=lambda d: shape[d], default=None)
    text = repr((primitive.name, tuple(sorted(params.items())), split))
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):  # a param that no text stands for
        return None
    part = _arithmetic(b, operands[source], avals_in[source])
    avals_in = (*avals_in, shaped_array((gateway.LEAST_ELEMENTS,), avals_in[source].dtype))
    quoted = text.replace("\\", "\\\\").replace('"', "\\22")
    return b.op(
        "stablehlo.custom_call", [*operands, part], avals_in, avals_out,
        f'call_target_name = "{gateway.HOST_KERNEL}", api_version = 4 : i32, '
        f'backend_config = {{kernel = "{quoted}"}}, '
        f"operand_layouts = {_layouts(avals_in)}, result_layouts = {_layouts(avals_out)}",
    )  # fmt: skip


def _is_callable_on(aval: ShapedArray) -> bool:
    """Return whether kernels take or fill arrays of a type."""
    is_filled = type(aval.size) is int and aval.size > 0
    return is_filled and aval.dtype in gateway.HOST_KERNEL_DTYPES


def _arithmetic(b: Builder, operand: str, aval: ShapedArray) -> str:
    """Write arithmetic that the call depends on, so that the program leaves its caller's thread.

    See `xjit.jaxlib_gateway.host_kernels`.
    """
    flat = shaped_array((aval.size,), aval.dtype)
    part, scalar = shaped_array((gateway.LEAST_ELEMENTS,), aval.dtype), shaped_array((), aval.dtype)
    (name,) = b.op("stablehlo.reshape", [operand], [aval], [flat])
    (name,) = b.op(  # the first elements; fewer are followed by zeros
        "stablehlo.pad", [name, b.scalar(0, aval.dtype)], [flat, scalar], [part],
        "edge_padding_low = array<i64: 0>, interior_padding = array<i64: 0>, "
        f"edge_padding_high = array<i64: {gateway.LEAST_ELEMENTS - aval.size}>",
    )  # fmt: skip
    op = "stablehlo.not" if dtypes.is_bool(aval.dtype) else "stablehlo.negate"
    return b.same_type_op(op, [name], part)


def _layouts(avals: Sequence[ShapedArray]) -> str:
    """Return the attribute that says of arrays that they lie in the order of NumPy."""
    orders = [", ".join(map(str, range(a.ndim - 1, -1, -1))) for a in avals]
    texts = [f"dense<{f'[{order}]' if order else ''}> : tensor<{a.ndim}xindex>"
             for order, a in zip(orders, avals, strict=True)]  # fmt: skip
    return f"[{', '.join(texts)}]"


def prepare_host_kernels() -> None:
    """Have the runtime know the calls, before it loads a program with one."""
    gateway.register_host_kernels(_kernel_named)


def _kernel_named(text: str) -> tuple[gateway.HostKernel, int | None]:
    """Return what the text of a call names, and the dimension along which it may be divided."""
    name, params, split = ast.literal_eval(text)
    primitive, options = get_primitive(name), dict(params)
    rule, fill = primitive.rule("numpy"), primitive.rules.get("fill")

    def kernel(operands: Sequence[Any], results: Sequence[Any]) -> None:
        with np.errstate(all="ignore"):  # as eager operations run
            if fill is not None:
                fill(operands, results, **options)
                return
            found = rule(*operands, **options)
        for result, value in zip(results, found, strict=True):
            np.copyto(result, value)

    return kernel, split


# ------------------------------------------------------------------------- where XLA has no routine
# What a platform has no routine for: the NumPy rule of a primitive, called by the program.
#
# A Python function is of its process, but a rule has a name that every process knows: a program
# that is stored says the name and the params in the place of the function's number.

TARGET = "xstack_host_rule"
_CALL = re.compile(
    r'call_target_name = "xla_ffi_python_[cg]pu_callback"(.*?)backend_config = '
    r"\{index = (\d+) : ui64\}"
)
_CONFIG = re.compile(r'backend_config = \{rule = "(.*?)"\}')
_logger = logging.getLogger("xjit")


class HostRule(Record):
    """The NumPy rule of a primitive with its params, as programs call functions of Python."""

    primitive: Primitive
    params: tuple[tuple[str, Any], ...]

    def __call__(
        self, operands: Sequence[np.ndarray[Any, Any]], avals: Sequence[ShapedArray]
    ) -> Sequence[np.ndarray[Any, Any]]:
        """Return the results for arrays on the host."""
        with np.errstate(all="ignore"):  # as eager operations run
            results: Sequence[Any] = self.primitive.rule("numpy")(*operands, **dict(self.params))
        return results

    def __str__(self) -> str:
        return f"the NumPy rule of {self.primitive}"


def write_on_host(
    b: Builder, primitive: Primitive, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], params: Mapping[str, Any],
) -> list[str]:  # fmt: skip
    """Write the call of a primitive's NumPy rule and return the names of its results."""
    _say(str(primitive), b.platform)
    host = HostRule(primitive, tuple(sorted(params.items())))
    rule = callback_p.rule("stablehlo")
    return list(rule(b, operands, avals_in, avals_out, host=host, effect=None))


@functools.lru_cache(maxsize=256)
def _say(name: str, platform: str) -> None:
    """Say once for each primitive and platform that the host computes it."""
    _logger.warning(
        "%s: no library of %s has it: the host computes it while the program runs, with copies of "
        "its operands and results (this is said once)", name, platform,
    )  # fmt: skip


def is_rule(function: Any) -> bool:
    """Return whether a function that a program calls is a rule, which every process has."""
    return isinstance(getattr(function, "host", None), HostRule)


def named_rules(text: str, functions: Sequence[Any]) -> str:
    """Return the text of a program to be stored: rules by their names, not by numbers.

    Args:
      text: of the program.
      functions: those that it calls, rules all of them.
    """

    def name_rule(match: re.Match[str]) -> str:
        rule = functions[int(match[2])].host
        told = repr((rule.primitive.name, rule.params)).replace('"', "'")
        return f'call_target_name = "{TARGET}"{match[1]}backend_config = {{rule = "{told}"}}'

    return _CALL.sub(name_rule, text)


def numbered_rules(text: str, platform: str, functions: list[Any]) -> str:
    """Return the text of a stored program with the numbers of its rules in another program.

    Args:
      text: what `named_rules` returned, or MLIR of it.
      platform: what the other program is written for.
      functions: those that it calls; the rules come after them.
    """
    kind = "cpu" if platform == "cpu" else "gpu"
    lines = text.split("\n")
    for i, line in enumerate(lines):
        found = _CONFIG.search(line) if TARGET in line else None
        if found is not None:
            name, params = ast.literal_eval(found[1])
            rule = HostRule(get_primitive(name), params)
            functions.append(CompiledCallback(rule, (), ordered=False))
            config = f"backend_config = {{index = {len(functions) - 1} : ui64}}"
            line = line.replace(TARGET, f"xla_ffi_python_{kind}_callback")
            lines[i] = line.replace(found[0], config)
    return "\n".join(lines)
