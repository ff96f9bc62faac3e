"""dot_general: sums of products over contracted dimensions, the general matrix product.

    out[batch, lhs free, rhs free] = sum over contracted of lhs[...] * rhs[...]

`dimension_numbers` is ((lhs contracting, rhs contracting), (lhs batch, rhs batch)). With NumPy,
each operand becomes a (batched) matrix by a transposition and a reshape, views where that is
possible, and one call of the matrix product does the rest; the way there is worked out once for
each shape.
Sums of dtypes of 16 bits and fewer are kept in float32 and rounded once.

Semantics: StableHLO specification, section dot_general.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs
from xnp.primitives.lowering_text import TWO_BITS, is_split, upcast
from xnp.primitives.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    dtype_kind,
    holds_products,
    precision_attribute,
    precision_for,
)
from xnp.primitives.table import NATIVE, bind, convert
from xprim import Eager, Linear, Primitive, ShapedArray, Zero, dtypes, not_mapped, shaped_array
from xprim.contracts import BatchAxis, Builder, is_in_loop
from xprim.dimension_names import Names
from xprim.errors import message

__all__ = ()

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def _shape(
    lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: Dims, precision: Any,
    preferred_element_type: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    (lc, rc), (lb, rb) = dimension_numbers
    _check_dims("lhs", lhs, lc, lb)
    _check_dims("rhs", rhs, rc, rb)
    for what, ls, rs in (("contracted", lc, rc), ("batch", lb, rb)):
        sizes = [lhs.shape[i] for i in ls], [rhs.shape[i] for i in rs]
        if sizes[0] != sizes[1]:
            raise TypeError(message(
                "dot_general",
                f"the {what} dimensions differ: {_listing(sizes[0])} and {_listing(sizes[1])}.",
                got=f"lhs: {lhs.str_long()}, rhs: {rhs.str_long()}, dimensions {tuple(ls)} and "
                f"{tuple(rs)}", expected="equal sizes",
            ))  # fmt: skip
    shape = (*[lhs.shape[i] for i in lb], *_free_sizes(lhs.shape, lc, lb),
             *_free_sizes(rhs.shape, rc, rb))  # fmt: skip
    dtype = product_dtype("dot_general", lhs.dtype, rhs.dtype, preferred_element_type)
    weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
    return (shaped_array(shape, dtype, weak),)


def _check_dims(name: str, aval: ShapedArray, contract: Sequence[int], batch: Sequence[int]) -> (
    None
):  # fmt: skip
    dims = (*contract, *batch)
    if len(set(dims)) != len(dims) or any(not 0 <= d < aval.ndim for d in dims):
        raise TypeError(message(
            "dot_general", f"contracting and batch dimensions of {name} must be distinct and "
            f"within its {aval.ndim} dimensions.",
            got=f"contracting {tuple(contract)}, batch {tuple(batch)} for {aval.str_long()}",
        ))  # fmt: skip


def _listing(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else str(tuple(sizes))


def _free(ndim: int, contract: Sequence[int], batch: Sequence[int]) -> tuple[int, ...]:
    return tuple([i for i in range(ndim) if i not in contract and i not in batch])


def _free_sizes(shape: tuple[int, ...], contract: Any, batch: Any) -> list[int]:
    return [shape[i] for i in _free(len(shape), contract, batch)]


def product_dtype(
    operation: str, lhs: np.dtype[Any], rhs: np.dtype[Any], preferred: np.dtype[Any] | None
) -> np.dtype[Any]:
    """Return the dtype of sums of products of two dtypes, or raise a TypeError.

    Of operands of two dtypes the one with the greater range (then digits, then bits) gives that of
    the result: XLA's HigherPrecisionType.
    """
    dtype = lhs if lhs == rhs else max(lhs, rhs, key=_width)
    if preferred is None or preferred == dtype:
        return dtype
    if not holds_products(dtype, preferred):
        raise TypeError(message(
            operation, "preferred_element_type must hold the products of the operands.",
            got=f"{preferred.name} for operands of dtype {lhs.name}",
            expected="a dtype of the same kind (integer, floating, complex)",
        ))  # fmt: skip
    return preferred


def _width(dtype: np.dtype[Any]) -> tuple[bool, int, int, int, bool]:
    """Return by what dtypes are compared: complex, range, digits, bits, and a sign last."""
    if dtype_kind(dtype) in ("bool", "integer"):
        return False, -1, -1, dtypes.itemsize_bits(dtype), dtypes.is_signed_integer(dtype)
    info = dtypes.finfo(dtype)
    return dtypes.is_complex(dtype), int(info.maxexp), int(info.nmant), info.bits, True


# ---------------------------------------------------------------------------------------- NumPy


def _numpy(lhs: Any, rhs: Any, **params: Any) -> Any:
    return (_ufunc((lhs, rhs), (), **params)(lhs, rhs),)


def _ufunc(typed: Any, _out: Any, *, dimension_numbers: Any, precision: Any,
           preferred_element_type: Any) -> Callable[[Any, Any], Any]:  # fmt: skip
    lhs, rhs = typed
    return _product_function(dimension_numbers, lhs.shape, rhs.shape, lhs.dtype, rhs.dtype,
                             precision, preferred_element_type)  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _product_function(
    dims: Dims, lhs_shape: Any, rhs_shape: Any, lhs_dtype: Any, rhs_dtype: Any, precision: Any,
    preferred: Any,
) -> Callable[[Any, Any], Any]:  # fmt: skip
    """Return the function of two ndarrays that computes the product for these types."""
    out = product_dtype("dot_general", lhs_dtype, rhs_dtype, preferred)
    multiply = _make_multiply(dims, lhs_shape, rhs_shape)
    total = accumulation_dtype(lhs_dtype, rhs_dtype, out)
    rounding = _roundings(precision, lhs_dtype, rhs_dtype, out)
    if rounding is None and lhs_dtype == rhs_dtype == out == total:
        return multiply
    lhs_round, rhs_round = rounding or (lhs_dtype, rhs_dtype)

    def convert(lhs: Any, rhs: Any) -> Any:
        lhs = lhs.astype(lhs_round, copy=False).astype(total, copy=False)
        rhs = rhs.astype(rhs_round, copy=False).astype(total, copy=False)
        return np.asarray(multiply(lhs, rhs)).astype(out, copy=False)

    return convert


def accumulation_dtype(lhs: Any, rhs: Any, out: Any) -> np.dtype[Any]:
    """Return the dtype in which NumPy sums products: at least float32, or 32-bit integers."""
    wide = out
    for dtype in (lhs, rhs):
        if dtype_kind(dtype) == dtype_kind(wide) and wide != dtype:
            wide = max(wide, dtype, key=lambda d: _width(d)[2:])  # by digits
    if wide in NATIVE:
        return wide  # type: ignore[no-any-return]
    return dtypes.float32 if dtypes.is_floating(wide) else dtypes.int32


def _roundings(precision: Any, lhs: Any, rhs: Any, out: Any) -> tuple[Any, Any] | None:
    """Return what an algorithm rounds the operands to, where one part of each is used."""
    if isinstance(precision, DotAlgorithmPreset):
        precision = precision.algorithm(lhs, rhs, out)
    if not isinstance(precision, DotAlgorithm) or precision.num_primitive_operations > 1:
        return None  # sums of several parts are as exact as float32
    types = (precision.lhs_precision_type, precision.rhs_precision_type)
    if "tf32" in types:
        return None  # NumPy has no such dtype and keeps the bits
    return np.dtype(types[0]), np.dtype(types[1])


def _make_multiply(dims: Dims, lhs_shape: Any, rhs_shape: Any) -> Callable[[Any, Any], Any]:
    (lc, rc), (lb, rb) = dims
    lf, rf = _free(len(lhs_shape), lc, lb), _free(len(rhs_shape), rc, rb)
    dot = _dot_of(lhs_shape, rhs_shape)
    if not lb:
        plain_lhs = lc == (len(lhs_shape) - 1,) and len(lhs_shape) <= 2
        if plain_lhs and rc == (0,) and len(rhs_shape) <= 2:
            return dot
    order = sorted(range(len(lc)), key=lambda i: lc[i])
    lc, rc = tuple([lc[i] for i in order]), tuple([rc[i] for i in order])
    product = np.matmul if lb else dot
    if not lb and len(lhs_shape) == 2 and len(rhs_shape) == 2 and len(lc) == 1:
        return _matrix_product(dot, flip_lhs=lc == (0,), flip_rhs=rc == (1,))
    lhs_matrix = _as_matrix(lhs_shape, lb, lf, lc, rows_last=False)
    rhs_matrix = _as_matrix(rhs_shape, rb, rf, rc, rows_last=True)
    shape = (*[lhs_shape[i] for i in (*lb, *lf)], *[rhs_shape[i] for i in rf])

    def multiply(lhs: Any, rhs: Any) -> Any:
        return product(lhs_matrix(lhs), rhs_matrix(rhs)).reshape(shape)

    return multiply


def _dot_of(lhs_shape: Any, rhs_shape: Any) -> Callable[[Any, Any], Any]:
    """Return np.dot, but where it leaves out the products of a single 0, which may be NaN."""
    return np.matmul if 1 in (math.prod(lhs_shape), math.prod(rhs_shape)) else np.dot


def _matrix_product(
    dot: Callable[[Any, Any], Any], *, flip_lhs: bool, flip_rhs: bool
) -> Callable[[Any, Any], Any]:
    if flip_lhs and flip_rhs:
        return lambda lhs, rhs: dot(lhs.T, rhs.T)
    if flip_lhs:
        return lambda lhs, rhs: dot(lhs.T, rhs)
    return lambda lhs, rhs: dot(lhs, rhs.T) if flip_rhs else dot(lhs, rhs)


def _as_matrix(
    shape: Any, batch: Any, free: Any, contract: Any, *, rows_last: bool
) -> Callable[[Any], Any]:
    """Return the function that brings an operand to (*batch, free, contract), flat but for batch.

    With `rows_last` to (*batch, contract, free). Where the operand's dimensions are in the other
    order of the two, a reshape and a swap of axes avoid a copy.
    """
    sizes = {"free": math.prod([shape[d] for d in free]),
             "contract": math.prod([shape[d] for d in contract])}  # fmt: skip
    last_two = (contract, free) if rows_last else (free, contract)
    rows, columns = ("contract", "free") if rows_last else ("free", "contract")
    head = tuple([shape[i] for i in batch])
    swapped = (*batch, *last_two[1], *last_two[0])
    if swapped == tuple(range(len(shape))):
        flat = (*head, sizes[columns], sizes[rows])
        return lambda x: x.reshape(flat).swapaxes(-1, -2)
    target = (*head, sizes[rows], sizes[columns])
    permutation = (*batch, *last_two[0], *last_two[1])
    if permutation == tuple(range(len(shape))):
        return lambda x: x.reshape(target)
    return lambda x: x.transpose(permutation).reshape(target)


# ------------------------------------------------------------------------------------- StableHLO


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension_numbers: Any,
    precision: Any, preferred_element_type: Any,
) -> Any:  # fmt: skip
    lhs, rhs = avals_in
    (out,) = avals_out
    if lhs.dtype != rhs.dtype or not dtypes.is_floating(lhs.dtype) or b.platform == "cpu":
        # XLA for the CPU knows products of one dtype throughout only
        total = out.dtype if lhs.dtype == rhs.dtype == out.dtype else (
            accumulation_dtype(lhs.dtype, rhs.dtype, out.dtype))  # fmt: skip
        if not lhs.dtype == rhs.dtype == total:
            operands = [b.convert(x, a, total) for x, a in zip(operands, avals_in, strict=True)]
            avals_in = [shaped_array(a.shape, total) for a in avals_in]
        result_aval = out if total == out.dtype else shaped_array(out.shape, total)
    else:
        result_aval = out
    is_plain = not isinstance(precision, (DotAlgorithm, DotAlgorithmPreset))
    if is_plain and _is_small_in_loop(b, avals_in, result_aval, dimension_numbers):
        result = _sum_of_products(b, operands, avals_in, result_aval, dimension_numbers)
        return [b.convert(result, result_aval, out.dtype)]
    precision = precision_for(b.platform, precision, avals_in[0].dtype)
    attributes = _attributes(dimension_numbers, precision, lhs.dtype, rhs.dtype, out.dtype)
    (result,) = b.op("stablehlo.dot_general", operands, avals_in, [result_aval], attributes)
    return [b.convert(result, result_aval, out.dtype)]


# A product of two matrices keeps XLA from making one kernel of the loop around it. Up to so many
# products of numbers, 8 x 8 x 8, the sums take no longer than the call of the library does.
_MOST_PRODUCTS = 512


def _is_small_in_loop(
    b: Builder, avals: Sequence[ShapedArray], out: ShapedArray, dimension_numbers: Any
) -> bool:
    """Return whether a product of two real matrices is written as sums."""
    if b.platform != "cpu" or not is_in_loop(b) or is_split(b):
        return False
    if out.dtype not in (dtypes.float32, dtypes.float64):
        return False
    (contracted, _), _ = dimension_numbers
    sizes = [*out.shape, *[avals[0].shape[i] for i in contracted]]
    if not all(type(n) is int for n in sizes) or not 0 < math.prod(sizes) <= _MOST_PRODUCTS:
        return False
    return all(
        a.ndim > len(c) + len(d) for a, c, d in zip(avals, *dimension_numbers, strict=True)
    )  # of a vector XLA writes such sums itself


def _sum_of_products(
    b: Builder, operands: Sequence[str], avals: Sequence[ShapedArray], out: ShapedArray,
    dimension_numbers: Any,
) -> str:  # fmt: skip
    """Write the products of elements, contracted dimensions first, and their sums over these."""
    contracted, batch = dimension_numbers
    count = len(contracted[0])
    shape = (*[avals[0].shape[i] for i in contracted[0]], *out.shape)
    products = shaped_array(shape, out.dtype)
    names, place = [], count + len(batch[0])
    for x, aval, along, members in zip(operands, avals, contracted, batch, strict=True):
        places = {**{d: k for k, d in enumerate(along)},
                  **{d: count + k for k, d in enumerate(members)}}  # fmt: skip
        for d in _free(aval.ndim, along, members):
            places[d] = place
            place += 1
        order = sorted(range(aval.ndim), key=places.__getitem__)
        ordered = shaped_array(tuple([aval.shape[d] for d in order]), aval.dtype)
        if order != list(range(aval.ndim)):
            attribute = f"permutation = array<i64: {', '.join(map(str, order))}>"
            (x,) = b.op("stablehlo.transpose", [x], [aval], [ordered], attribute)
        names.append(b.broadcast(x, ordered, shape, sorted(places.values())))
    product = b.same_type_op("stablehlo.multiply", names, products)
    if not count:
        return product
    return b.op(
        "stablehlo.reduce", [product, b.scalar(0, out.dtype)],
        [products, shaped_array((), out.dtype)], [out],
        f"dimensions = array<i64: {', '.join(map(str, range(count)))}>",
        b.reducer("stablehlo.add", out.dtype),
    )[0]  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _attributes(dimension_numbers: Any, precision: Any, lhs: Any, rhs: Any, out: Any) -> str:
    """Return the attributes of the product in text."""
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {list(lb)}, "
        f"rhs_batching_dimensions = {list(rb)}, lhs_contracting_dimensions = {list(lc)}, "
        f"rhs_contracting_dimensions = {list(rc)}>"
    )
    attributes = [f"dot_dimension_numbers = {numbers}", precision_attribute(precision),
                  _algorithm_attribute(precision, lhs, rhs, out)]  # fmt: skip
    return ", ".join([a for a in attributes if a])


def _algorithm_attribute(precision: Any, lhs: Any, rhs: Any, out: Any) -> str:
    if isinstance(precision, DotAlgorithmPreset):
        precision = precision.algorithm(lhs, rhs, out)
    if not isinstance(precision, DotAlgorithm):
        return ""
    lhs_type, rhs_type, total = [_mlir_type(t) for t in precision[:3]]
    return (
        f"algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {lhs_type}, "
        f"rhs_precision_type = {rhs_type}, accumulation_type = {total}, "
        f"lhs_component_count = {precision.lhs_component_count}, "
        f"rhs_component_count = {precision.rhs_component_count}, "
        f"num_primitive_operations = {precision.num_primitive_operations}, "
        f"allow_imprecise_accumulation = {str(precision.allow_imprecise_accumulation).lower()}>"
    )


_MLIR_TYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e4m3": "f8E4M3",
    "float8_e3m4": "f8E3M4", "float8_e8m0fnu": "f8E8M0FNU",
}  # fmt: skip


def _mlir_type(kind: Any) -> str:
    return "tf32" if kind == "tf32" else _MLIR_TYPES[np.dtype(kind).name]


# --------------------------------------------------------------------------- transpose and batch


def _transpose(
    cts: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any,
    preferred_element_type: Any,
) -> Any:  # fmt: skip
    (ct,) = cts
    for_lhs, for_rhs = _transpose_numbers(dimension_numbers, lhs.aval.ndim, rhs.aval.ndim)
    if type(lhs) is Linear:
        numbers, permutation = for_lhs
        result = _bind(ct, rhs, numbers, precision, lhs.aval.dtype)
        return _arrange(result, permutation), Zero(rhs.aval)
    numbers, permutation = for_rhs
    result = _bind(lhs, ct, numbers, precision, rhs.aval.dtype)
    return Zero(lhs.aval), _arrange(result, permutation)


@functools.lru_cache(maxsize=4096)
def _transpose_numbers(dimension_numbers: Any, lhs_ndim: int, rhs_ndim: int) -> Any:
    """Return, for each operand, the product that gives its cotangent and how to arrange it.

    The cotangent has the dimensions (batch, lhs free, rhs free). Contracting one operand's free
    dimensions leaves (batch, the other's free, contracted in the order of this one), or that with
    the last two swapped; the permutation brings them to their places, None where they are there.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    batch = tuple(range(len(lb)))
    lf, rf = _free(lhs_ndim, lc, lb), _free(rhs_ndim, rc, rb)
    ct_lf = tuple(range(len(lb), len(lb) + len(lf)))
    ct_rf = tuple(range(len(lb) + len(lf), len(lb) + len(lf) + len(rf)))
    lhs_dims = (*lb, *lf, *[lc[i] for i in sorted(range(len(rc)), key=rc.__getitem__)])
    rhs_dims = (*rb, *[rc[i] for i in sorted(range(len(lc)), key=lc.__getitem__)], *rf)
    return (
        (((ct_rf, rf), (batch, rb)), _placing(lhs_dims)),
        (((lf, ct_lf), (lb, batch)), _placing(rhs_dims)),
    )


def _bind(lhs: Any, rhs: Any, dims: Any, precision: Any, dtype: Any) -> Any:
    is_plain = lhs.aval.dtype == rhs.aval.dtype == dtype
    preferred = None if is_plain or _takes_real_part(lhs, rhs, dtype) else dtype
    (result,) = dot_general_p.bind(
        lhs, rhs, dimension_numbers=dims, precision=precision, preferred_element_type=preferred
    )
    if result.aval.dtype == dtype:
        return result
    return convert(bind("real", result), dtype)


def _takes_real_part(lhs: Any, rhs: Any, dtype: Any) -> bool:
    """Return whether the cotangent is of a real operand whose product is complex."""
    kinds = dtype_kind(lhs.aval.dtype), dtype_kind(rhs.aval.dtype)
    return dtype_kind(dtype) == "floating" and "complex" in kinds


def _placing(dims: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the permutation that brings dimension i to the place `dims[i]`, None for none."""
    permutation = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    return None if permutation == tuple(range(len(dims))) else permutation


def _arrange(x: Any, permutation: tuple[int, ...] | None) -> Any:
    if permutation is None:
        return x
    return xprim.get_primitive("transpose").bind(x, permutation=permutation)[0]


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, dimension_numbers: Any,
    precision: Any, preferred_element_type: Any,
) -> Any:  # fmt: skip
    lhs, rhs = operands
    ld, rd = dims
    (lc, rc), (lb, rb) = dimension_numbers
    if ld is not not_mapped:
        lc, lb = _past(lc, ld), _past(lb, ld)
    if rd is not not_mapped:
        rc, rb = _past(rc, rd), _past(rb, rd)
    lf, rf = _free(lhs.aval.ndim, lc, lb), _free(rhs.aval.ndim, rc, rb)
    if ld is not_mapped:
        out = len(rb) + len(lf) + rf.index(rd)
    elif rd is not_mapped:
        out = len(lb) + lf.index(ld)
    else:
        lb, rb, out = (ld, *lb), (rd, *rb), 0
    results = dot_general_p.bind(
        lhs, rhs, dimension_numbers=((lc, rc), (lb, rb)), precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
    return results, (out,)


def _past(dims: Sequence[int], d: int) -> tuple[int, ...]:
    return tuple([i + (i >= d) for i in dims])


def _print(*, dimension_numbers: Any, **params: Any) -> dict[str, Any]:
    """Show the numbers as lists, as JAX's users know them, and what is not None."""
    lists = tuple([tuple([list(dims) for dims in pair]) for pair in dimension_numbers])
    return {"dimension_numbers": lists} | {k: v for k, v in params.items() if v is not None}


def corresponding_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Dimensions that are summed over, and those of batches, have a name on both sides."""
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    left = _of_side("lhs", avals[0].ndim, lc, lb)
    right = _of_side("rhs", avals[1].ndim, rc, rb)
    free = [name for name in (*left, *right) if name[0] in ("lhs", "rhs")]
    return Names([left, right], [(*[("each", i) for i in range(len(lb))], *free)])


def _of_side(side: str, ndim: int, summed: Sequence[int], batch: Sequence[int]) -> tuple[Any, ...]:
    names: dict[int, Any] = {d: ("sum", i) for i, d in enumerate(summed)}
    names |= {d: ("each", i) for i, d in enumerate(batch)}
    return tuple([names.get(d, (side, d)) for d in range(ndim)])


dot_general_p: Primitive = Primitive(
    "dot_general",
    shape=_shape,
    numpy=_numpy,
    stablehlo=upcast(_stablehlo, TWO_BITS, np.int8),
    jvp=xprim.multilinear(0, 1),
    transpose=_transpose,
    batch=_batch,
    print=_print,
    eager=Eager(costs.product, ufunc=_ufunc),
    sharding=corresponding_dimensions,
)
