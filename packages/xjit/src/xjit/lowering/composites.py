"""Marks in programs for compilers: parts with a name, and values that must be computed.

    composite   a part of a program that a compiler may know by its name
    dce_sink    what a value is given to so that nothing leaves it out

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
from xjit.callbacks.ffi import attribute_text, custom_call_text
from xjit.dispatch.calls import jit_p
from xjit.lowering.operation_metadata import quoted
from xjit.lowering.stablehlo_text import Builder
from xprim import Array, ClosedJaxpr, Effect, Primitive, Tracer, as_array, stage, undefined
from xprim.avals import size_of
from xprim.calls import rules_of_program
from xprim.contracts import BatchAxis
from xprim.errors import message
from xprim.kept_programs import KeptPrograms, Staged
from xprim.leaves import flat_arrays
from xprim.tracebacks import boundaries, shorten
from xprim.transformed import check_function, transforming
from xprim.typing import PyTree

__all__ = ["composite", "dce_sink"]

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
      decomposition: the function, of pytrees of arrays by position. What it is given by keyword are
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
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
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

    return called


def _program_for(
    fun: Callable[..., Any], args: Any, kwargs: dict[str, Any], in_tree: Any,
    operands: Sequence[Array],
) -> Staged:  # fmt: skip
    """Return the program of a decomposition, traced now unless it is kept."""

    def traced() -> Staged:
        closed, out_tree = stage(functools.partial(fun, **kwargs), args, {}, operation="composite")
        return Staged(*xprim.close_over(closed.jaxpr, closed.consts), out_tree)

    avals, given = [x.aval for x in operands], sorted(kwargs.items())
    return _programs.program_of(fun, in_tree, avals, traced, given)


def _attributes(name: str, kwargs: dict[str, Any]) -> str:
    """Return what is given by keyword as text."""
    for key, value in kwargs.items():
        if any(isinstance(leaf, Tracer) for leaf in xtree.leaves(value)):
            raise TypeError(message(
                f"composite({name})", f"the attribute {key} is traced.",
                expected="a value that is known when the program is made",
                hint="pass it by position: what a program computes is an argument",
            ))  # fmt: skip
    given = {key: value for key, value in kwargs.items() if value is not None}
    return attribute_text(given, f"composite({name})")


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
        f"name = {quoted(name)}, composite_attributes = {attributes}, decomposition = @{symbol}, "
        f"version = {version} : i32",
    )  # fmt: skip


def as_a_call(kind: str) -> Callable[..., Any]:
    """Return the rule of calls of programs, which have no attributes."""
    rule = jit_p.rules[kind]

    def transformed(*args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> Any:
        return rule(*args, jaxpr=jaxpr, name=name)

    return transformed


composite_p = Primitive(
    "composite",
    call_like=True,
    **rules_of_program("jaxpr", runs="inline") | {"stablehlo": _stablehlo},
    jvp=as_a_call("jvp"),
    linearize=as_a_call("linearize"),
    batch=as_a_call("batch"),
)


# --- values that must be computed ----------------------------------------------------------------

_SINK = frozenset([Effect("dce_sink", ordered=False)])


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
        custom_call_text(b, operands, avals_in, avals_out, "dce_sink", "{}", 4, None, (), True)
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
    transpose=undefined("it has no results"),
    batch=_sink_batch,
    effects=lambda **_: _SINK,
)


boundaries(globals())
