"""Lowering of primitives whose rules come one by one: as functions of arrays.

Programs are written as text here, with no MLIR object (see the page on lowering), so a rule that
makes such objects cannot run. What `lower_fun` makes of a function of Arrays can.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from xstack.interpreters import rule_tables
from xstack.interpreters.rule_tables import Primitive, Rule, RuleTable, lowerings
from xtree.errors import message

__all__ = ["lower_fun", "register_lowering"]

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


def register_lowering(prim: Primitive, rule: Rule, platform: str | None = None) -> Rule:
    """Say how a primitive is compiled.

    Args:
      prim: of `xstack.extend.core.Primitive`.
      rule: what `lower_fun` returns.
      platform: where the rule holds, as `"cpu"`; everywhere by default.

    Returns:
      The rule.

    Raises:
      TypeError: when the program is lowered, for a rule that `lower_fun` did not make.

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
    table[prim] = rule if isinstance(rule, _Lowered) else partial(_refuse, rule)
    return rule


def _refuse(rule: Rule, context: Any, *_operands: Any, **_params: Any) -> Any:
    raise TypeError(message(
        "register_lowering", "a rule that makes MLIR objects cannot run: programs are text here.",
        got=f"the rule {getattr(rule, '__name__', rule)!r} of {context.primitive}",
        expected="mlir.lower_fun(function of arrays)",
        hint="xprim.Primitive(..., stablehlo=rule) has rules that write text",
    ))  # fmt: skip
