"""Lowering of primitives whose rules come one by one: as functions of arrays.

Programs are written as text here, with no MLIR object (see the page on lowering), so a rule that
makes such objects cannot run. A rule that passes its operands to what `lower_fun` makes of a
function of Arrays, and to `emit_python_callback`, can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from xjit.callbacks.functions import io_callback, pure_callback
from xprim import ShapeDtypeStruct
from xprim.errors import described
from xprim.requirements import require
from xstack.interpreters import rule_tables
from xstack.interpreters.rule_tables import (
    LoweringRuleContext,
    Primitive,
    Rule,
    RuleTable,
    lowerings,
)
from xtree.errors import message

__all__ = ["LoweringRuleContext", "emit_python_callback", "lower_fun", "register_lowering"]

__dir__ = __all__.copy


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Rule:
    """Return the lowering rule that writes what a function of Arrays does.

    Args:
      fun: takes Arrays and the params of the primitive.
      multiple_results: whether it returns a sequence of Arrays, or one Array.

    Example:
      >>> from xstack.extend.core import Primitive
      >>> twice_p = Primitive("twice")
      >>> rule = lower_fun(lambda x: 2 * x, multiple_results=False)
      >>> register_lowering(twice_p, rule) is rule
      True
    """
    return _Lowered(fun, multiple_results)


class _Lowered:
    """The rule of `lower_fun`."""

    __slots__ = ("__weakref__", "fun", "multiple_results")

    def __init__(self, fun: Callable[..., Any], multiple_results: bool) -> None:
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, context: Any, *operands: Any, **params: Any) -> Any:
        def several(*arrays: Any) -> Any:
            found = self.fun(*arrays, **params)
            return found if self.multiple_results else (found,)

        key = (context.primitive, object())  # what the function reads is not known: written anew
        return context.builder.traced(several, operands, context.avals_in, key)


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: None,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    sharding: None = None,
) -> tuple[list[Any], None, None]:
    """Write, in a lowering rule, a call of a Python function while the program runs.

    Args:
      ctx: of the rule.
      callback: takes NumPy arrays, returns a sequence of arrays.
      token: None: calls of such a function are in no order.
      operands: of those that the rule has, or of what other functions here return.
      operand_avals: their abstract values.
      result_avals: those of the results.
      has_side_effect: whether it is called exactly once where the primitive is.
      sharding: None: the process's first device of the program calls it.

    Returns:
      The results; None for the token; None, since the program holds the function by itself.

    Raises:
      NotImplementedError: for a token or a sharding.

    Example:
      >>> import numpy as np
      >>> import xstack
      >>> from xstack.extend.core import Primitive
      >>> sort_p = Primitive("sort_by_numpy")
      >>> sort_p.def_abstract_eval(lambda x: x) and None
      >>> def rule(ctx, x):
      ...     function = lambda x: (np.sort(x),)
      ...     return emit_python_callback(
      ...         ctx, function, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)[0]
      >>> register_lowering(sort_p, rule) is rule
      True
      >>> xstack.jit(sort_p.bind)(xstack.numpy.array([2.0, 1.0]))
      Array([1., 2.], dtype=float32)
    """
    for name, value in (("token", token), ("sharding", sharding)):
        require(
            value is None, "emit_python_callback", f"a {name} cannot be given.",
            got={name: value}, expected="None", error=NotImplementedError,
        )  # fmt: skip
    types = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in result_avals]
    call = io_callback if has_side_effect else pure_callback

    def run(*arrays: Any) -> list[Any]:
        return list(callback(*map(np.asarray, arrays)))

    key = (ctx.primitive, object())
    results = ctx.builder.traced(
        lambda *arrays: call(run, types, *arrays), operands, tuple(operand_avals), key
    )
    return results, None, None


def register_lowering(prim: Primitive, rule: Rule, platform: str | None = None) -> Rule:
    """Say how a primitive is compiled.

    Args:
      prim: of `xstack.extend.core.Primitive`.
      rule: what `lower_fun` returns, or a function from a `LoweringRuleContext`, the operands and
        the params of the primitive to its results, made by functions of this module alone.
      platform: where the rule holds, as `"cpu"`; everywhere by default.

    Returns:
      The rule.

    Raises:
      TypeError: when the program is lowered, for a rule that makes MLIR objects.

    Example:
      >>> from xstack.extend.core import Primitive
      >>> half_p = Primitive("half")
      >>> rule = lower_fun(lambda x: x / 2, multiple_results=False)
      >>> register_lowering(half_p, rule, platform="cpu") is rule
      True
    """
    table = lowerings
    if platform is not None:
        table = rule_tables.platform_lowerings.setdefault(platform, RuleTable("stablehlo"))
    table[prim] = rule if isinstance(rule, _Lowered) else partial(_run_rule, rule)
    return rule


def _run_rule(rule: Rule, context: LoweringRuleContext, *operands: Any, **params: Any) -> Any:
    """Run a rule of the user's, whose operands and results are names of values in the text."""
    try:
        found = rule(context, *operands, **params)
    except Exception as error:
        if _is_of_objects(error.__traceback__):
            raise _of_objects(rule, context, type(error).__name__) from error
        raise
    found = [found] if isinstance(found, str) else found
    if not (isinstance(found, list | tuple) and all(isinstance(name, str) for name in found)):
        raise _of_objects(rule, context, described(found))
    return found


def _is_of_objects(traceback: TracebackType | None) -> bool:
    """Return whether an error comes from the rule or from MLIR, not from functions of Arrays."""
    assert traceback is not None
    frames = []
    while (traceback := traceback.tb_next) is not None:
        frames.append(traceback.tb_frame.f_globals.get("__name__", ""))
    return __name__ not in frames and (len(frames) == 1 or frames[-1].startswith("jaxlib.mlir"))


def _of_objects(rule: Rule, context: LoweringRuleContext, got: str) -> TypeError:
    return TypeError(message(
        "register_lowering", "a rule that makes MLIR objects cannot run: programs are text here.",
        got=f"{got} from the rule {getattr(rule, '__name__', rule)!r} of {context.primitive}",
        expected="mlir.lower_fun(function of arrays), and mlir.emit_python_callback",
        hint="xprim.Primitive(..., stablehlo=rule) has rules that write text",
    ))  # fmt: skip
