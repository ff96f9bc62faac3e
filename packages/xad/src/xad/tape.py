"""The tape: a trace that records what depends on tangents and evaluates the rest at once.

Its tracers are the tangents. What a primitive that mixes primals and tangents gives depends on
tangents as well, but for the calls in a rule of the user's: those are divided (`known_parts`).

Neighbours: `linearize` runs forward mode over a tape, `transpose` walks it backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xad.known_parts import divided
from xad.tangents import JvpRule
from xprim import (
    JaxprTrace,
    JaxprTracer,
    Primitive,
    Trace,
    Zero,
    config,
    effects_text,
    get_primitive,
    unrepeatable_effects,
)
from xprim.errors import UndefinedRuleError, message

__all__ = ()


# In place of what a tape that absorbs zeros records.
_ABSORBING = {"mul": "absorbing_product", "div": "absorbing_quotient"}

zero_absorbing = config.define(config.Option(
    "zero_absorbing", False, "Whether tangents and cotangents that are zero stay zero through "
    "infinite or NaN derivatives, as of a branch of where that is not selected, in reverse mode "
    "and linearize.", kind=bool, in_cache_key=True,
))  # fmt: skip
_values = config.values


class TapeTrace(JaxprTrace):
    """Records what depends on tangents, evaluates the rest through its parent."""

    __slots__ = ("absorbs", "divides_calls", "records_all")

    name = "linearize"

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.keeps_sources = parent.keeps_sources  # the tape itself is run at once
        self.absorbs = _values.zero_absorbing
        self.records_all = False
        self.divides_calls = False  # while a user's rule runs, which may mix primals and tangents

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Record what depends on a tangent, hand the rest to the parent."""
        for x in operands:
            if type(x) is JaxprTracer and x._trace is self:  # `owns`, on a hot path
                break
        else:
            if not self.records_all:
                return self.parent.process(primitive, operands, params)  # type: ignore[union-attr]
        if self.divides_calls and (primitive.call_like or "dce" in primitive.rules):
            return self._process_in_parts(primitive, operands, params)
        if not primitive.call_like:
            if self.absorbs and primitive.name in _ABSORBING:
                return self._append_absorbing(primitive, operands)
            return self.append(primitive, operands, params)
        return super().process(primitive, operands, params)

    def _append_absorbing(self, primitive: Primitive, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Record a product or quotient by what is known so that a tangent of 0 stays 0."""
        x, y = operands
        if primitive.name == "mul" and self.owns(y):
            x, y = y, x
        return self.append(get_primitive(_ABSORBING[primitive.name]), (x, y), {})

    def _process_in_parts(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate what of a call needs no tangent and record the rest."""
        rules = primitive.rules
        if "in_parts" in rules:
            return rules["in_parts"](*operands, **params)  # type: ignore[no-any-return]
        if "dce" not in rules:
            return super().process(primitive, operands, params)
        known = tuple([not self.owns(x) for x in operands])
        now, recorded = divided(primitive, [x.aval for x in operands], known, params)
        if now.results and recorded.results and unrepeatable_effects(primitive.effects(params)):
            raise _would_repeat_effects(primitive, params)
        result_by_number: dict[int, Any] = {}
        evaluate = self.parent.process  # type: ignore[union-attr]
        for part, process in ((recorded, self.append), (now, evaluate)):
            if part.results:
                needed = tuple([operands[k] for k in part.operands])
                results = process(primitive, needed, part.params)
                result_by_number.update(zip(part.results, results, strict=True))
        return tuple([result_by_number[k] for k in range(len(result_by_number))])

    def run_rule(self, rule: JvpRule, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Run a jvp rule of the user's, whose operations may mix primals and tangents.

        What a linear function gives whatever its operands is zero.

        Raises:
          TypeError: when a result depends on the tangents.
        """
        previous, self.divides_calls = self.divides_calls, True
        try:
            outs, dots = rule(primals, tangents)
        finally:
            self.divides_calls = previous
        for out in outs:
            if self.owns(out):
                raise _depends_on_tangents(out)
        return outs, [dot if self.owns(dot) else Zero(dot.aval) for dot in dots]

    def owns(self, value: Any) -> bool:
        """Return whether a value depends on a tangent."""
        return type(value) is JaxprTracer and value._trace is self


def _depends_on_tangents(out: Any) -> TypeError:
    origin = out.origin()
    return TypeError(message(
        "custom_jvp", "a rule's result depends on its tangents.",
        got=f"{out.aval.str_short()}, {origin}" if origin else "",
        expected="a pair (result, tangent) whose result is computed from the primals alone",
    ))  # fmt: skip


def _would_repeat_effects(primitive: Primitive, params: dict[str, Any]) -> UndefinedRuleError:
    return UndefinedRuleError(message(
        "custom_jvp", f"{primitive.name} in a rule has side effects, which reverse mode would "
        "repeat, as it computes primals and tangents apart.",
        got=f"effects: {effects_text(primitive.effects(params))}",
        hint="leave what has the effects out of the call that gets both",
    ))  # fmt: skip
