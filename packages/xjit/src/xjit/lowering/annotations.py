"""Marks in programs for compilers: names of parts, values to compute, metadata, layouts.

    composite   a part of a program that a compiler may know by its name
    dce_sink    what a value is given to so that nothing leaves it out
    xla_metadata_value_p      marks the operation that made its operand
    with_layout_constraint    the order of the dimensions of a value in memory

A composite is the primitive of that name. To everything but a compiler it is the program that it is
made of: evaluated, differentiated and batched as that, since a name says what the function
computes, not what its derivative does. Params: `jaxpr`, `name`, `version`, `attributes` as text.

Source: StableHLO specification, section composite.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import xprim
import xtree
from xjit import jaxlib_gateway as gateway
from xjit.callbacks import ffi
from xjit.dispatch.calls import jit_p
from xjit.dispatch.placement import order_of, put_in_order
from xjit.dispatch.sharded_arrays import sharding_of
from xjit.lowering.operation_metadata import OPERATION, Items, quote, with_attributes
from xjit.lowering.stablehlo_text import Builder
from xjit.sharding.layouts import Layout, physical_order
from xprim import Array, ClosedJaxpr, Primitive, as_array, dimension_names, not_mapped, stage, state
from xprim.avals import size_of
from xprim.calls import rules_of_program
from xprim.contracts import BatchAxis
from xprim.errors import message
from xprim.kept_programs import KeptPrograms, Staged
from xprim.requirements import require_type
from xprim.tracebacks import boundaries, shorten
from xprim.transformed import check_function, flat_arrays, transforming
from xprim.typing import PyTree

__all__ = ["composite", "dce_sink", "xla_metadata_value_p", "with_layout_constraint"]

__dir__ = __all__.copy

P = ParamSpec("P")
R = TypeVar("R")

# The decompositions of composites.
_programs = KeptPrograms(limit=1024)

_NAMESPACED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


def composite(decomposition: Callable[P, R], name: str, version: int = 0) -> Callable[P, R]:
    """Return a function that a compiler may know by its name, and else compiles as it is written.

    In a program it is one operation, `stablehlo.composite`, which names the function that it is
    made of. A compiler that has something faster under that name takes it; XLA for CPUs has none.

    Args:
      decomposition: the function, of pytrees of arrays by position. Keyword arguments are
        attributes of the operation: numbers, strings, dtypes, NumPy arrays, and tuples and dicts of
        these; None is given to the function alone.
      name: what compilers know it by: words joined by dots, such as "my.tangent".
      version: of what the name means.

    Returns:
      A function with the arguments and the result of `decomposition`.

    Raises:
      TypeError: an attribute is of another type, or traced.
      ValueError: a program is compiled with a name that has no dot.

    Differentiable: as the decomposition, which has no name in derivatives and batches.

    Example:
      >>> from xjit import jit
      >>> from xnp import lax
      >>> tangent = composite(lambda x: lax.sin(x) / lax.cos(x), name="my.tangent")
      >>> tangent(0.0)
      Array(0., dtype=float32, weak_type=True)
      >>> 'stablehlo.composite' in jit(tangent).lower(0.0).as_text()
      True
    """
    check_function(decomposition, "composite")
    version = size_of(version)

    @transforming(decomposition, "composite")
    def call_composite(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            operands, in_tree = flat_arrays(args, "composite", "the argument")
            attributes = _attributes(name, kwargs)
            staged = _program_for(decomposition, args, kwargs, in_tree, operands)
            outs = composite_p.bind(
                *staged.captured, *operands, jaxpr=staged.closed, name=name, version=version,
                attributes=attributes,
            )  # fmt: skip
            return xtree.unflatten(staged.out_tree, outs)  # type: ignore[no-any-return]
        except Exception as error:
            shorten(error)
            raise

    return call_composite


def _program_for(
    fun: Callable[..., Any], args: Any, kwargs: dict[str, Any], in_tree: Any,
    operands: Sequence[Array],
) -> Staged:  # fmt: skip
    """Return the program of a decomposition, traced now unless it is kept."""

    def trace() -> Staged:
        closed, out_tree = stage(functools.partial(fun, **kwargs), args, {}, operation="composite")
        return Staged(*xprim.close_over(closed.jaxpr, closed.consts), out_tree)

    avals, given = [x.aval for x in operands], sorted(kwargs.items())
    return _programs.program_of(fun, in_tree, avals, trace, given)


def _attributes(name: str, kwargs: dict[str, Any]) -> str:
    """Return what is given by keyword as text."""
    for key, value in kwargs.items():
        if any(isinstance(leaf, xprim.Tracer) for leaf in xtree.leaves(value)):
            raise TypeError(message(
                f"composite({name})", f"the attribute {key} is traced.",
                expected="a value that is known when the program is made",
                hint="pass it by position: what a program computes is an argument",
            ))  # fmt: skip
    given = {key: value for key, value in kwargs.items() if value is not None}
    return ffi.attribute_text(given, f"composite({name})")


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               name: str, version: int, attributes: str) -> Any:  # fmt: skip
    if xprim.ordered_effects(jaxpr.effects):  # functions pass no order along
        return b.inline(jaxpr, operands)
    if not _NAMESPACED.fullmatch(name):
        raise ValueError(message(
            "composite", "compilers know no operation by such a name.", got=repr(name),
            expected="letters and digits with a dot between them, such as 'my.tangent'",
        ))  # fmt: skip
    symbol, captured = b.module.function(jaxpr, name)
    constants = [b.array_constant(c) for c in captured]
    return b.op(
        "stablehlo.composite", [*constants, *operands], [*[c.aval for c in captured], *avals_in],
        avals_out,
        f"name = {quote(name)}, composite_attributes = {attributes}, decomposition = @{symbol}, "
        f"version = {version} : i32",
    )  # fmt: skip


def as_a_call(kind: str) -> Callable[..., Any]:
    """Return the rule of calls of programs, which have no attributes."""
    rule = jit_p.rules[kind]

    def transform(*args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> Any:
        return rule(*args, jaxpr=jaxpr, name=name)

    return transform


composite_p = Primitive(
    "composite",
    call_like=True,
    **rules_of_program("jaxpr", runs="inline") | {"stablehlo": _stablehlo},
    jvp=as_a_call("jvp"),
    linearize=as_a_call("linearize"),
    batch=as_a_call("batch"),
)


# --- values that must be computed ----------------------------------------------------------------

_SINK = frozenset([xprim.Effect("dce_sink", ordered=False)])


def dce_sink(val: PyTree, *, prevent_mlir_dce: bool = False) -> None:
    """Have programs compute values although nothing needs them.

    Args:
      val: a tree of arrays.
      prevent_mlir_dce: whether the compiler is kept from leaving them out, too; else they are in
        the text of the program alone.

    Returns:
      Nothing.

    Example:
      >>> from xnp import lax
      >>> from xprim import make_jaxpr
      >>> make_jaxpr(lambda x: (dce_sink(lax.sin(x)), x)[1])(1.0).eqns[-1].primitive
      dce_sink
    """
    for leaf in xtree.leaves(val):
        x = as_array(leaf, what="dce_sink")
        dce_sink_p.bind(x, prevent_mlir_dce=bool(prevent_mlir_dce))


def _sink_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                    prevent_mlir_dce: bool) -> Any:  # fmt: skip
    if prevent_mlir_dce:
        ffi.custom_call_text(b, operands, avals_in, avals_out, "dce_sink", "{}", 4, None, (), True)
    return []


def _sink_jvp(primals: Any, _tangents: Any, **params: Any) -> Any:
    dce_sink_p.bind(*primals, **params)
    return (), ()


def _sink_batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    dce_sink_p.bind(*operands, **params)
    return (), ()


dce_sink_p: Primitive = Primitive(
    "dce_sink",
    shape=lambda *_, **__: (),
    numpy=lambda *_, **__: (),
    stablehlo=_sink_stablehlo,
    jvp=_sink_jvp,
    transpose=xprim.undefined("it has no results"),
    batch=_sink_batch,
    effects=lambda **_: _SINK,
)


# ------------------------------------------------------------------------------- metadata of values
# The primitive of `set_xla_metadata(x, key=...)`: it marks the operation that made its operand.


def _add_to_producer(
    builder: Builder, operands: list[str], _avals_in: Any, _avals_out: Any, *, items: Items
) -> list[str]:
    """Add metadata to the operation of this function that made the operand, if one did."""
    made = re.compile(rf"(%\w+, )*{operands[0]}(, %\w+)* = ")
    for i in range(len(builder.lines) - 1, -1, -1):
        line = builder.lines[i]
        if made.match(line):
            if OPERATION.match(line):
                builder.lines[i] = with_attributes(line, dict(items))
            break
    return operands


def _same(x: Any, **_params: Any) -> Any:
    return (x,)


xla_metadata_value_p: Primitive = Primitive(
    "xla_metadata_value",
    shape=_same,
    numpy=_same,
    stablehlo=_add_to_producer,
    jvp=xprim.LINEAR,
    transpose=lambda cts, _x, *, items: cts,
    batch=xprim.ELEMENTWISE,
    sharding=dimension_names.alike,
    physical=xprim.STRUCTURAL,
)


# -------------------------------------------------------------------------------- layouts of values
# The primitive `layout_constraint`: a value, and its order in memory inside of a program.
#
# Params: `order`, the numbers of the dimensions, the slowest first.


def with_layout_constraint(x: PyTree, layouts: PyTree) -> PyTree:
    """Say in which order the dimensions of values lie in memory, for the compiler to obey.

    It changes no value. What a program returns lies so, too, and so does an array, outside of one.

    Args:
      x: a tree of arrays.
      layouts: a `Layout` for all leaves, or a tree prefix of `x` with one for each.

    Returns:
      A tree like `x`.

    Raises:
      ValueError: a layout is not an order of the dimensions of its array, or no layout.

    Differentiable: a cotangent has the sharding of its value.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> from xjit.sharding.layouts import Layout
      >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
      >>> jit(lambda x: with_layout_constraint(x + x, Layout((1, 0))) @ x.T)(x)
      Array([[ 10.,  28.],
             [ 28., 100.]], dtype=float32)
    """
    leaves, tree = xtree.flatten(x)
    places = xtree.broadcast_prefix(layouts, x, is_leaf=lambda v: isinstance(v, Layout))
    return tree.unflatten(
        [_constrain(leaf, layout) for leaf, layout in zip(leaves, places, strict=True)]
    )


def _constrain(leaf: Any, layout: Any) -> Array:
    x = as_array(leaf, what="with_layout_constraint")
    require_type(
        "with_layout_constraint", layout, Layout, "this is not a layout.",
        expected="Layout(major_to_minor)", error=ValueError
    )  # fmt: skip
    order = ffi.layout_of(layout, x.aval, "with_layout_constraint")
    gateway.orders_used[0] = True  # results of a program may lie so
    if state.trace is xprim.EAGER and isinstance(x, xprim.ConcreteArray):
        inner = physical_order(order, x.aval)
        return x if order_of(x) == inner else put_in_order(x, sharding_of(x), inner)
    return layout_constraint_p.bind(x, order=order)[0]  # type: ignore[no-any-return]


def _write_layout(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                  order: tuple[int, ...]) -> Sequence[str]:  # fmt: skip
    layouts = ffi.layouts_text([order])
    return b.op(
        "stablehlo.custom_call", operands, avals_in, avals_out,
        'call_target_name = "LayoutConstraint", backend_config = "", '
        f"operand_layouts = {layouts}, result_layouts = {layouts}",
    )  # fmt: skip


def _batch_layout(axis: BatchAxis, operands: Any, dims: Any, *, order: tuple[int, ...]) -> Any:
    (x,), (dim,) = operands, dims
    if dim is not_mapped:
        return layout_constraint_p.bind(x, order=order), (dim,)
    return layout_constraint_p.bind(axis.to_front(x, dim), order=ffi.add_batch_to_layout(order)), (
        0,
    )


layout_constraint_p: Primitive = Primitive(
    "layout_constraint",
    shape=_same,
    numpy=_same,
    stablehlo=_write_layout,
    jvp=xprim.LINEAR,
    transpose=lambda cts, x, *, order: layout_constraint_p.bind(cts[0], order=order),
    batch=_batch_layout,
    sharding=dimension_names.alike,
    physical=xprim.STRUCTURAL,
)


boundaries(globals())
