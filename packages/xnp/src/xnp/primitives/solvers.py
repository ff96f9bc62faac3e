"""Calls of LAPACK and cuSOLVER: which algorithm, layouts of matrices, results of what failed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xnp.primitives.lowering_text import Text, choose, compare as compare_text, parts_of
from xnp.primitives.matrices import LETTER, compare_positions
from xnp.primitives.table import add, bind, broadcast_to, fill, select
from xprim import EAGER, ConcreteArray, Primitive, ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder, is_gpu
from xprim.errors import message
from xprim.requirements import require

__all__ = ()

# ------------------------------------------------------------------------- factorisation choices
# Which algorithm computes a factorisation: the arguments of `eig`, `eigh` and `svd`.
#
# The host and the CPU back end have LAPACK alone: QR iteration for `eig` and `eigh`, divide and
# conquer for `svd`. GPUs have others. What a platform does not have raises where a program is
# lowered for it, so that no choice is silently another one.


class EigImplementation(enum.Enum):
    """The library that computes `eig`."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """The algorithm of `eigh`."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """The algorithm of `svd`."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def check_choice(operation: str, name: str, chosen: Any, *had: enum.Enum) -> None:
    """Raise unless a choice is None or one of those that can be had.

    Args:
      operation: what errors call the function.
      name: of the argument.
      chosen: what the caller gave.
      *had: the members of an enumeration that can be had.
    """
    kind = type(had[0])
    if chosen is None or chosen in had:
        return
    if not isinstance(chosen, kind):
        raise TypeError(f"{operation}: {name} must be a {kind.__name__} or None, got {chosen!r}.")
    raise ValueError(message(
        operation, f"{chosen} is not available here.",
        expected=f"{' or '.join(map(str, had))}, or None",
    ))  # fmt: skip


def by_compiler(primitive: Primitive, operand: Any, params: dict[str, Any]) -> Any:
    """Have the compiler compute by an algorithm that the host has not, where the operand belongs.

    For `numpy` rules. A program for a CPU refuses what no CPU has.
    """
    x = ConcreteArray(operand, shaped_array(operand.shape, operand.dtype))
    outs = EAGER.backend.evaluate(primitive, (x,), params, primitive.infer((x.aval,), params))
    return tuple([y.to_host() for y in outs])


def is_for_compiler(chosen: Any, *had: enum.Enum) -> bool:
    """Return whether an algorithm is none of those that the host has, and there is a compiler."""
    return chosen is not None and chosen not in had and EAGER.backend.compiles


def omit_none(**params: Any) -> dict[str, Any]:
    """Return the params that are not None: programs show what was requested alone."""
    return {name: value for name, value in params.items() if value is not None}


def check_magma(operation: str, use_magma: bool | None) -> None:
    """Refuse to use MAGMA, a library for GPUs."""
    require(not use_magma, operation, "MAGMA is not available here; leave use_magma out.")


# ----------------------------------------------------------------------------------- lapack text
# The text of calls of routines of libraries, and of what their results need.
#
# `lapack_call` writes those that jaxlib registers for the CPU, `gpu_call` those that the plugins
# for GPUs register: cuSOLVER, cuSPARSE and kernels of the plugin's own, under `cu...` for CUDA
# and `hip...` for ROCm. They want column-major matrices, which the layouts of operands and
# results say, and report failure by an integer for each matrix.
#
# What is written for a GPU says, too, which result may take the memory of which operand, and that
# the routine does with each part of a batch what it does with the whole, so that XLA splits a
# batch over devices without gathering it.

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
      cells: how many dimensions of the operand with the most are not batch dimensions; None
        where the routine takes no batches.
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
        f"operand_layouts = {layouts(avals_in, batch)}",
        f"result_layouts = {layouts(avals_out, batch)}",
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


def layouts(avals: Sequence[ShapedArray], batch: int | None = None) -> str:
    """Return the layouts of values: row-major, matrices with so many dimensions before by columns.

    Args:
      avals: their abstract values.
      batch: how many dimensions come before the two of a column-major matrix; None without any.
    """
    texts = []
    for aval in avals:
        order = list(range(aval.ndim - 1, -1, -1))
        if batch is not None and aval.ndim == batch + 2:
            order[0], order[1] = order[1], order[0]
        texts.append(layout(order))
    return f"[{', '.join(texts)}]"


def layout(minor_to_major: Sequence[int]) -> str:
    """Return the layout of a value whose dimensions lie so in memory, the fastest one first."""
    inside = f"[{', '.join(map(str, minor_to_major))}]" if minor_to_major else ""
    return f"dense<{inside}> : tensor<{len(minor_to_major)}xindex>"


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
    good = compare_text(b, direction, info, b.full_like(0, flags), flags)
    truth = shaped_array(batch, dtypes.bool_)
    mask = b.broadcast(good, truth, aval.shape, range(len(batch)))
    return choose(b, mask, value, b.full_like(_nan_of(aval), aval), aval)


def nan_for_infinity(b: Builder, value: str, aval: ShapedArray) -> str:
    """Write `value` with NaN in the place of its infinities."""
    truth = shaped_array(aval.shape, dtypes.bool_)
    is_complex = dtypes.is_complex(aval.dtype)
    parts = parts_of(b, value, aval) if is_complex else (Text(b, value, aval),)
    finite = [b.op("stablehlo.is_finite", [x.name], [x.aval], [truth])[0] for x in parts]
    both = finite[0] if len(finite) == 1 else b.same_type_op("stablehlo.and", finite, truth)
    return choose(b, both, value, b.full_like(_nan_of(aval), aval), aval)


def _nan_of(aval: ShapedArray) -> complex:
    return complex(np.nan, np.nan) if dtypes.is_complex(aval.dtype) else np.nan


def count(b: Builder, shape: tuple[int, ...], dim: int) -> str:
    """Write the index along a dimension, as int32."""
    aval = shaped_array(shape, dtypes.int32)
    attribute = f"iota_dimension = {dim} : i64"
    return b.op("stablehlo.iota", [], [], [aval], attribute)[0]


def triangle(b: Builder, value: str, aval: ShapedArray, direction: str) -> str:
    """Write the lower (GE) or upper (LE) triangle of matrices, zeros elsewhere."""
    indices = shaped_array(aval.shape, dtypes.int32)
    rows, columns = count(b, aval.shape, aval.ndim - 2), count(b, aval.shape, aval.ndim - 1)
    mask = compare_text(b, direction, rows, columns, indices)
    return choose(b, mask, value, b.full_like(0, aval), aval)


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


# ------------------------------------------------------------------------------- finite matrices
# NaN for matrices that hold an infinity or NaN, where a factorisation of them is undefined.
#
# What LAPACK makes of them depends on the order of its steps, so that the host and the compiler
# would differ. Orthogonal similarities (`eigh`, `hessenberg`, `schur`, `tridiagonal`) mix all
# elements: all of the results of such a matrix are NaN. Elimination (`lu`, `solve`) has answers,
# as NumPy has.


def host_results(a: Any, found: Sequence[Any], lower: bool | None = None) -> tuple[Any, ...]:
    """Return what was found, as NaN for the matrices of `a` that are not finite.

    With `lower` only their lower triangles count, or with False their upper ones.
    """
    counted = a if lower is None else np.tril(a) if lower else np.triu(a)
    finite = np.isfinite(counted).all((-2, -1))
    if finite.all():
        return tuple(found)
    shapes = [(*finite.shape, *[1] * (y.ndim - finite.ndim)) for y in found]
    return tuple([
        np.where(finite.reshape(shape), y, y.dtype.type(np.nan))
        for y, shape in zip(found, shapes, strict=True)
    ])  # fmt: skip


def write_results(
    b: Builder, operand: str, aval: ShapedArray, info: str, found: Sequence[str],
    avals: Sequence[ShapedArray], lower: bool | None = None,
) -> list[str]:  # fmt: skip
    """Write what was found, as `host_results` returns it, and NaN where `info` tells of failure."""
    batch = aval.shape[:-2]
    shown = [nan_on_failure(b, info, batch, x, y) for x, y in zip(found, avals, strict=True)]

    def choose(a: Any, *results: Any) -> list[Any]:
        finite = _are_finite(a, lower)
        dims = tuple(range(finite.aval.ndim))
        return [
            select(broadcast_to(finite, y.aval.shape, dims), y,
                     fill(y.aval.shape, np.nan, y.aval.dtype))
            for y in results
        ]  # fmt: skip

    key = ("results of finite matrices", lower)
    return b.traced(choose, [operand, *shown], [aval, *avals], key=key)


def _are_finite(a: Any, lower: bool | None) -> Any:
    shape = a.aval.shape
    if dtypes.is_complex(a.aval.dtype):  # an infinity or NaN in one of the parts is one of the sum
        a = add(bind("abs", bind("real", a)), bind("abs", bind("imag", a)))
    finite = bind("is_finite", a)
    if lower is not None:
        finite = bind("or", finite, compare_positions(shape, "lt" if lower else "gt"))
    return bind("reduce_and", finite, axes=(len(shape) - 2, len(shape) - 1))
