"""Arrays of extended dtypes: what an operation on them is for the numbers they are made of.

An array of `key<fry>[3]` is kept as its *physical* array, here `uint32[3,2]`: that of its elements,
with the dimensions of one element last. So it is a batch of arrays of numbers, mapped over trailing
dimensions, and an operation that moves elements without looking at them (`STRUCTURAL`) is what its
`batch` rule says; no primitive needs more. Transformations and jaxprs see logical arrays alone.
The step to physical ones is made at the very end, and in one way:

    physical_program   what one operation amounts to, as a jaxpr: evaluated eagerly, and
    physical           a whole jaxpr with each operation replaced so: for the compiler

    wrap[dtype]  unwrap    the two primitives between an array of numbers and an extended one

An operation on numbers has no `physical` rule; it raises before any other rule runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xprim import config, dimension_names, dtypes
from xprim.array import Array, ConcreteArray, as_array
from xprim.avals import ShapedArray, shaped_array
from xprim.calls import BatchDimension, bind_one
from xprim.config import state
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.jaxpr import (
    ClosedJaxpr,
    Equation,
    eval_closed,
    interpret,
    map_programs,
    programs_inside,
)
from xprim.primitive import Primitive, has_extended
from xprim.rules import ELEMENTWISE, STRUCTURAL, ZERO, not_mapped, undefined
from xprim.staging import trace_to_jaxpr
from xprim.static_keys import params_key
from xprim.trace import Trace
from xtree.interning import remember

__all__ = ["as_physical", "physical", "unwrap", "unwrap_p", "wrap", "wrap_p", "wrapped"]

__dir__ = __all__.copy

_MAX_PROGRAMS = 2048
# Programs on physical arrays, by primitive, logical abstract values and params.
_programs: dict[Any, tuple[ClosedJaxpr, tuple[ShapedArray, ...]]] = {}


def wrap(data: Any, dtype: dtypes.ExtendedDType) -> Array:
    """Return the array of an extended dtype that is made of these numbers.

    Args:
      data: of the dtype `dtype.base` and a shape that ends in `dtype.element_shape`.
      dtype: the extended dtype.

    Returns:
      An array of `dtype`, of the shape of `data` without the dimensions of one element.

    Raises:
      TypeError: the numbers are of another dtype, or their last dimensions are others.

    Example:
      >>> class Angle(dtypes.ExtendedDType):
      ...     name, base, elements = "angle<turns>", dtypes.uint16, "angles"
      >>> wrap(as_array(7, dtypes.uint16), Angle()).aval
      ShapedArray(angle<turns>[])
    """
    x = as_array(data, what="wrap: the data")
    if type(x) is ConcreteArray and x.buffer is None:
        (aval,) = _wrap_shape(x.aval, dtype=dtype)
        return wrapped(x, aval)
    out: Array = wrap_p.bind(x, dtype=dtype)[0]
    return out


def unwrap(x: Array) -> Array:
    """Return the numbers of which an array of an extended dtype is made.

    Args:
      x: an array of an extended dtype.

    Returns:
      An array of the dtype's `base`, whose last dimensions are those of one element.

    Raises:
      TypeError: the array holds numbers already.
    """
    if type(x) is ConcreteArray and x.buffer is None:
        _unwrap_shape(x.aval)
        return as_physical(x)
    out: Array = unwrap_p.bind(x)[0]
    return out


def as_physical(x: ConcreteArray) -> ConcreteArray:
    """Return the physical array of a concrete array; one that holds numbers is its own."""
    aval, buffer = x.aval, x.buffer
    if aval.physical is None or aval.dtype is dtypes.float0:
        return x
    if buffer is not None:
        out = ConcreteArray(None, aval.physical, buffer)
        out.first_use = getattr(x, "first_use", None)  # one memory, one key
        return out
    return ConcreteArray(x.to_stored(), aval.physical)


def wrapped(x: ConcreteArray, aval: ShapedArray) -> ConcreteArray:
    """Return the concrete array of an extended dtype of which another is the physical one.

    Args:
      x: a concrete array of numbers.
      aval: an abstract value for which `aval.physical is x.aval`.
    """
    out = ConcreteArray(None, aval, x.buffer)
    if x.buffer is not None:
        out.first_use = getattr(x, "first_use", None)
    else:
        out._elements = x.to_stored() if x.host is None else x.host
    return out


def evaluate(
    eager: Trace, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, ...]:
    """Apply a primitive to concrete arrays, where an operand or result has an extended dtype."""
    program, avals_out = physical_program(primitive, tuple([x.aval for x in operands]), params)
    previous = state.trace
    state.trace = eager
    try:
        results = eval_closed(program, *[as_physical(x) for x in operands])
    finally:
        state.trace = previous
    return tuple([
        r if r.aval is a or a.physical is None else wrapped(r, a)
        for r, a in zip(results, avals_out, strict=True)
    ])  # fmt: skip


def physical_program(
    primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]
) -> tuple[ClosedJaxpr, tuple[ShapedArray, ...]]:
    """Return what an operation amounts to on physical arrays, and its logical results' types."""
    key = (primitive, avals, config.trace_context(), *params_key(params))
    try:
        found = _programs.get(key)
    except TypeError:  # `infer` says which param cannot be hashed
        found = None
    if found is None:
        avals_out = primitive.infer(avals, params)
        jaxpr, consts = trace_to_jaxpr(
            lambda *arrays: _apply(primitive, avals, avals_out, arrays, params),
            [_physical_aval(a) for a in avals],
        )
        program = ClosedJaxpr(jaxpr, consts)
        found = remember(_programs, key, (program, avals_out), _MAX_PROGRAMS)
    return found


def _physical_aval(aval: ShapedArray) -> ShapedArray:
    return aval.stored if dtypes.is_extended(aval.dtype) else aval


def _apply(
    primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray],
    arrays: Sequence[Any], params: dict[str, Any],
) -> Sequence[Any]:  # fmt: skip
    """Apply a primitive to physical arrays, under the current trace."""
    rule = primitive.rules["physical"]
    found = {a.dtype for a in avals if dtypes.is_extended(a.dtype)}
    if len(found) > 1 and rule is STRUCTURAL:
        raise TypeError(message(
            f"{primitive.name}", "the operands are of different extended dtypes.",
            got=", ".join([a.str_long() for a in avals]),
        ))  # fmt: skip
    dtype: Any = next(iter(found), _NUMBER)
    if primitive.rules["batch"] is ELEMENTWISE:
        arrays = _align(avals, arrays, dtype)
    if rule is not STRUCTURAL:
        return rule(len(dtype.element_shape), *arrays, **params)  # type: ignore[no-any-return]
    if primitive.rules["batch"] is ELEMENTWISE or not dtype.element_shape:
        return primitive.bind(*arrays, **params)
    return _batch(primitive, avals, avals_out, arrays, params, dtype)


_NUMBER = dtypes.ExtendedDType()  # of operands that are all numbers: no dimensions of an element


def _align(avals: Sequence[ShapedArray], arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """Repeat the operands of an elementwise operation to the physical shape of its result."""
    shape = max([a.shape for a in avals], key=len)
    whole = shape + dtype.element_shape
    aligned = []
    for aval, x in zip(avals, arrays, strict=True):
        dims = tuple(range(aval.ndim))
        if dtypes.is_extended(aval.dtype):
            dims += tuple(range(len(shape), len(whole)))
        if x.aval.ndim and x.aval.shape != whole:
            x = bind_one("broadcast_in_dim", x, shape=whole, broadcast_dimensions=dims)
        aligned.append(x)
    return aligned


def _batch(
    primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray],
    arrays: Sequence[Any], params: dict[str, Any], dtype: Any,
) -> Sequence[Any]:  # fmt: skip
    """Apply a structural primitive by its batch rule, along the dimensions of an element."""
    axis = BatchDimension(math.prod(dtype.element_shape))
    of_elements = [dtypes.is_extended(a.dtype) for a in avals]
    operands = [
        _reshape(x, (*a.shape, axis.size)) if e else x
        for x, a, e in zip(arrays, avals, of_elements, strict=True)
    ]
    dims = [a.ndim if e else not_mapped for a, e in zip(avals, of_elements, strict=True)]
    results, dims_out = primitive.rule("batch")(axis, operands, dims, **params)
    return [
        _reshape(axis.to_back(r, d), (*a.shape, *dtype.element_shape))
        if dtypes.is_extended(a.dtype)
        else r
        for r, d, a in zip(results, dims_out, avals_out, strict=True)
    ]


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.aval.shape == shape else bind_one("reshape", x, new_sizes=shape, dimensions=None)


# --- whole programs ----------------------------------------------------------------------------


def physical(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the same program on physical arrays, with as many arguments and results.

    Args:
      closed: a program; one that has no extended dtypes in it is returned as it is.

    Returns:
      A program without extended dtypes, kept in the memo of `closed`.
    """
    found = closed.memo.get("physical")
    if found is None:
        found = _convert(closed) if _mentions_extended(closed) else _UNCHANGED
        closed.memo["physical"] = found
    return closed if found is _UNCHANGED else found


_UNCHANGED: Any = object()  # the program itself in its own memo would keep itself alive


def _mentions_extended(closed: ClosedJaxpr) -> bool:
    jaxpr = closed.jaxpr
    avals = {v.aval for v in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)}
    avals.update([v.aval for eqn in jaxpr.eqns for v in eqn.outputs])
    return has_extended(avals) or any(physical(p) is not p for p in programs_inside(closed))


def _convert(closed: ClosedJaxpr) -> ClosedJaxpr:
    consts = [as_physical(c) for c in closed.consts]
    jaxpr, found = trace_to_jaxpr(
        lambda *args: interpret(closed.jaxpr, consts, args, _run_equation),
        [_physical_aval(a) for a in closed.in_avals],
        name=closed.jaxpr.name,
    )
    return ClosedJaxpr(jaxpr, found)


def _run_equation(eqn: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    """Run an equation on physical arrays."""
    primitive = eqn.primitive
    if primitive.call_like:
        return primitive.evaluate(operands, map_programs(eqn.params, physical))
    avals, avals_out = [x.aval for x in eqn.inputs], [v.aval for v in eqn.outputs]
    if has_extended((*avals, *avals_out)):
        return _apply(primitive, avals, avals_out, operands, eqn.params)
    return primitive.evaluate(operands, eqn.params)


# --- the two primitives ------------------------------------------------------------------------


def _wrap_shape(data: ShapedArray, *, dtype: Any) -> tuple[ShapedArray, ...]:
    split = data.ndim - len(dtype.element_shape)
    if data.dtype != dtype.base or split < 0 or data.shape[split:] != dtype.element_shape:
        sizes = ", ".join(["...", *map(str, dtype.element_shape)])
        raise TypeError(message(
            "wrap", f"these are not the numbers of {dtype.elements}.", got=data.str_long(),
            expected=f"{dtype.base.name}[{sizes}]",
        ))  # fmt: skip
    return (shaped_array(data.shape[:split], dtype),)


def _unwrap_shape(x: ShapedArray) -> tuple[ShapedArray, ...]:
    if not dtypes.is_extended(x.dtype):
        raise TypeError(message(
            "unwrap", "the array holds numbers already.", got=x.str_long(),
            expected="an array of an extended dtype",
        ))  # fmt: skip
    return (x.stored,)


def _same(*operands: Any, **_params: Any) -> Any:
    return operands


def _same_names(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **_params: Any) -> Any:
    return list(operands)


def _wrap_batch(axis: BatchAxis, operands: Any, dims: Any, *, dtype: Any) -> Any:
    return wrap_p.bind(axis.to_front(operands[0], dims[0]), dtype=dtype), (0,)


def _physical_copy(_trailing: int, x: Any, **_params: Any) -> Any:
    return (bind_one("copy", x),)  # either of the two may be donated; compiled, it is nothing


_NO_NUMBERS = undefined("elements of extended dtypes have no derivatives")

wrap_p: Primitive = Primitive(
    "wrap",
    shape=_wrap_shape,
    numpy=_same,
    stablehlo=_same_names,
    jvp=ZERO,
    transpose=_NO_NUMBERS,
    batch=_wrap_batch,
    physical=_physical_copy,
    sharding=dimension_names.of_last(1),
)

unwrap_p: Primitive = Primitive(
    "unwrap",
    shape=_unwrap_shape,
    numpy=_same,
    stablehlo=_same_names,
    jvp=ZERO,
    transpose=_NO_NUMBERS,
    batch=lambda axis, operands, dims: (unwrap_p.bind(*operands), tuple(dims)),
    physical=_physical_copy,
    keys="words",
    sharding=dimension_names.of_last(0),
)
