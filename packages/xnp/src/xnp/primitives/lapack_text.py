"""The text of calls of routines of libraries, and of what their results need.

`lapack_call` writes those that jaxlib registers for the CPU, `gpu_call` those that the plugins for
GPUs register: cuSOLVER, cuSPARSE and kernels of the plugin's own, under `cu...` for CUDA and
`hip...` for ROCm. They want column-major matrices, which the layouts of operands and results say,
and report failure by an integer for each matrix.

What is written for a GPU says, too, which result may take the memory of which operand, and that the
routine does with each part of a batch what it does with the whole, so that XLA splits a batch over
devices without gathering it.

Neighbours: `matrices` has the formulas; one module for each factorisation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_text import parts_of
from xnp.primitives.matrices import LETTER
from xprim import Primitive, ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder
from xprim.platform_rules import is_gpu

__all__ = ()

# Stays empty.
_NO_ALIASES: Mapping[int, int] = {}


def lapack_call(
    b: Builder, routine: str, dtype: np.dtype[Any], operands: Sequence[str],
    avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], config: str = "",
    target: str | None = None,
) -> list[str]:  # fmt: skip
    """Write a call of a LAPACK routine and return the names of its results.

    Args:
      b: the builder.
      routine: its name without the letter of the dtype: `potrf`.
      dtype: of the matrices.
      operands: names of the operands.
      avals_in: their abstract values; one at least is a matrix or a batch of them.
      avals_out: those of the results.
      config: the routine's options, as text of MLIR attributes.
      target: the name of the call, where it is not made of the routine's and the dtype's letter.
    """
    batch = max([aval.ndim for aval in avals_in]) - 2
    target = target or f"lapack_{LETTER[dtype]}{routine}_ffi"
    attributes = _call_attributes(target, config, avals_in, avals_out, batch)
    return b.op("stablehlo.custom_call", operands, avals_in, avals_out, ", ".join(attributes))


def gpu_call(
    b: Builder, target: str, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], config: str = "", aliases: Mapping[int, int] = _NO_ALIASES,
    *, column_major: bool = True, cells: int | None = 2,
) -> list[str]:  # fmt: skip
    """Write a call of a routine of a GPU's library and return the names of its results.

    Args:
      b: the builder.
      target: the name of the call without the letters of the platform: `solver_potrf_ffi`.
      operands: names of the operands.
      avals_in: their abstract values.
      avals_out: those of the results.
      config: the routine's options, as text of MLIR attributes.
      aliases: the numbers of operands whose memory results may take, and of these results.
      column_major: whether matrices are wanted in this order.
      cells: how many dimensions of the operand with the most are no batch; None where the routine
        takes no batches.
    """
    ndim = max([aval.ndim for aval in avals_in])
    attributes = _call_attributes(
        f"{'hip' if b.platform == 'rocm' else 'cu'}{target}", config, avals_in, avals_out,
        ndim - 2 if column_major and cells is not None else None,
    )  # fmt: skip
    if aliases:
        several = len(avals_out) > 1
        texts = [_alias(i, str(o) if several else "") for i, o in aliases.items()]
        attributes.append(f"output_operand_aliases = [{', '.join(texts)}]")
    if cells is not None and all(type(aval.size) is int for aval in (*avals_in, *avals_out)):
        batch = ndim - cells
        attributes += [
            f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}',
            f"sdy.sharding_rule = {_batch_rule(avals_in, avals_out, batch)}",
        ]
    return b.op("stablehlo.custom_call", operands, avals_in, avals_out, ", ".join(attributes))


def reflectors_call(
    b: Builder, routine: str, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], config: str = "", *, overwritten: int = 0,
) -> list[str]:  # fmt: skip
    """Write a call of a routine that GPUs have under the same name, with the same operands.

    Args:
      b: the builder.
      routine: `geqrf`, `orgqr` or `ormqr`; the last two have other names for complex matrices.
      operands: names of the operands.
      avals_in: their abstract values.
      avals_out: those of the results.
      config: the routine's options.
      overwritten: the number of the operand whose memory the first result may take.
    """
    if is_gpu(b.platform):
        aliases = {overwritten: 0}
        return gpu_call(b, f"solver_{routine}_ffi", operands, avals_in, avals_out, config, aliases)
    dtype = avals_in[0].dtype
    if dtypes.is_complex(dtype):
        routine = routine.replace("or", "un")
    return lapack_call(b, routine, dtype, operands, avals_in, avals_out, config)


def on_host(primitive: Callable[[], Primitive]) -> Callable[..., list[str]]:
    """Return the `stablehlo` rule that has the host compute it while the program runs.

    For what no library of the platform has.

    Args:
      primitive: returns the primitive, whose NumPy rule it is.
    """

    def rule(
        b: Builder, operands: Sequence[str], avals_in: Any, avals_out: Any, **params: Any
    ) -> list[str]:
        if any(aval.size == 0 for aval in avals_in):
            return [b.constant(0, aval) for aval in avals_out]
        return b.on_host(primitive(), operands, avals_in, avals_out, params)

    return rule


def _alias(operand: int, place: str) -> str:
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{place}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    )


def _call_attributes(
    target: str, config: str, avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray],
    batch: int | None,
) -> list[str]:  # fmt: skip
    return [
        f'call_target_name = "{target}"',
        f"backend_config = {{{config}}}", "api_version = 4 : i32",
        f"operand_layouts = {_layouts(avals_in, batch)}",
        f"result_layouts = {_layouts(avals_out, batch)}",
    ]  # fmt: skip


def _batch_rule(
    avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], batch: int
) -> str:
    """Return the rule that the leading dimensions of all operands and results lie alike."""
    sizes: dict[str, int] = {}

    def factors(aval: ShapedArray) -> str:
        if aval.ndim < batch:  # a result that is not computed, and has no batch
            return "[]"
        names = [_factor(i) for i in range(batch)]
        sizes.update(zip(names, aval.shape[:batch], strict=True))
        for size in aval.shape[batch:]:
            names.append(_factor(len(sizes)))
            sizes[names[-1]] = size
        return f"[{', '.join(names)}]"

    given, found = [", ".join(map(factors, avals)) for avals in (avals_in, avals_out)]
    inside = ", ".join([f"{name}={size}" for name, size in sizes.items()])
    shown = f" {{{inside}}}" if inside else ""
    return f"#sdy.op_sharding_rule<({given})->({found}){shown}, custom>"


def _factor(i: int) -> str:
    """Return what the dialect calls a factor: i, j, ..., z, z_1, ..."""
    return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"


def _layouts(avals: Sequence[ShapedArray], batch: int | None) -> str:
    texts = []
    for aval in avals:
        order = list(range(aval.ndim - 1, -1, -1))
        if batch is not None and aval.ndim == batch + 2:
            order[0], order[1] = order[1], order[0]
        inside = f"[{', '.join(map(str, order))}]" if order else ""
        texts.append(f"dense<{inside}> : tensor<{len(order)}xindex>")
    return f"[{', '.join(texts)}]"


def info_aval(batch: tuple[int, ...]) -> ShapedArray:
    """Return the abstract value of the integers that report failure."""
    return shaped_array(batch, dtypes.int32)


def nan_on_failure(
    b: Any, info: str, batch: tuple[int, ...], value: str, aval: ShapedArray, direction: str = "EQ"
) -> str:
    """Write `value`, with NaN in those members of the batch whose `info` is not zero.

    With `direction` GE, only where it is negative.
    """
    flags = info_aval(batch)
    good = compared(b, direction, info, b.full_like(0, flags), flags)
    truth = shaped_array(batch, dtypes.bool_)
    mask = b.broadcast(good, truth, aval.shape, range(len(batch)))
    return chosen(b, mask, value, b.full_like(_nan_of(aval), aval), aval)


def nan_for_infinity(b: Builder, value: str, aval: ShapedArray) -> str:
    """Write `value` with NaN in the place of its infinities."""
    truth = shaped_array(aval.shape, dtypes.bool_)
    parts, part = parts_of(b, value, aval) if dtypes.is_complex(aval.dtype) else ([value], aval)
    finite = [b.op("stablehlo.is_finite", [x], [part], [truth])[0] for x in parts]
    both = finite[0] if len(finite) == 1 else b.same_type_op("stablehlo.and", finite, truth)
    return chosen(b, both, value, b.full_like(_nan_of(aval), aval), aval)


def _nan_of(aval: ShapedArray) -> complex:
    return complex(np.nan, np.nan) if dtypes.is_complex(aval.dtype) else np.nan


def counted(b: Builder, shape: tuple[int, ...], dim: int) -> str:
    """Write the index along a dimension, as int32."""
    aval = shaped_array(shape, dtypes.int32)
    attribute = f"iota_dimension = {dim} : i64"
    return b.op("stablehlo.iota", [], [], [aval], attribute)[0]


def triangle(b: Builder, value: str, aval: ShapedArray, direction: str) -> str:
    """Write the lower (GE) or upper (LE) triangle of matrices, zeros elsewhere."""
    indices = shaped_array(aval.shape, dtypes.int32)
    rows, columns = counted(b, aval.shape, aval.ndim - 2), counted(b, aval.shape, aval.ndim - 1)
    mask = compared(b, direction, rows, columns, indices)
    return chosen(b, mask, value, b.full_like(0, aval), aval)


def corner(b: Builder, value: str, aval: ShapedArray, rows: int, columns: int) -> str:
    """Write the leading rows and columns of matrices."""
    out = shaped_array((*aval.shape[:-2], rows, columns), aval.dtype)
    if out is aval:
        return value
    attributes = (
        f"start_indices = array<i64: {', '.join(['0'] * aval.ndim)}>, "
        f"limit_indices = array<i64: {', '.join(map(str, out.shape))}>, "
        f"strides = array<i64: {', '.join(['1'] * aval.ndim)}>"
    )
    result: str = b.op("stablehlo.slice", [value], [aval], [out], attributes)[0]
    return result
