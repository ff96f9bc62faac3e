"""Primitives whose rules come one by one, in tables, as libraries written for JAX define theirs.

A primitive of this family is defined in one call (`xprim.Primitive`), with its rules in the forms
of `xprim.rules`. Libraries that were written for JAX make an empty primitive and fill tables that
others own. `Primitive` here is of the first kind, with rules that read those tables when they are
requested, and put what they find into the forms of the registry:

    a result alone, or a list when there are several     always a tuple, but from `bind`
    `None` where an operand is not mapped                `not_mapped`
    `UndefinedPrimal(aval)`                              `Linear(aval)`, the same class

so every transformation knows such a primitive, too. `ad`, `batching` and `mlir` show the tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import xprim
from xprim import BatchAxis, Builder, JVPHandle, Zero, as_array, get_primitive, not_mapped
from xprim.errors import MissingRuleError, described, place_of
from xprim.requirements import require_type
from xprim.tracebacks import boundary
from xtree.errors import message

__all__ = ["LoweringRuleContext", "Primitive", "RuleTable"]

__dir__ = __all__.copy

Rule = Callable[..., Any]


class RuleTable(dict[Any, Rule]):
    """Rules of one kind by primitive; those of this family's own primitives are not to be set.

    Args:
      kind: what the rules are, for errors.

    Raises:
      TypeError: when the key is not a primitive of `xstack.extend.core.Primitive`.

    Example:
      >>> from xstack.interpreters import ad
      >>> from xstack.lax import sin_p
      >>> ad.primitive_jvps[sin_p] = lambda primals, tangents: (primals, tangents)
      Traceback (most recent call last):
      TypeError: sin: the rules of a primitive come from who defined it.
        hint      a primitive of your own: xstack.extend.core.Primitive(name)
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __setitem__(self, primitive: Any, rule: Rule) -> None:
        if not isinstance(primitive, Primitive):
            raise TypeError(message(
                str(primitive), "the rules of a primitive come from who defined it.",
                hint="a primitive of your own: xstack.extend.core.Primitive(name)",
            ))  # fmt: skip
        super().__setitem__(primitive, rule)

    def of(self, primitive: Primitive, how: str) -> Rule:
        """Return the rule of a primitive; the error says by which line one is added."""
        rule = self.get(primitive)
        if rule is None:
            raise missing(primitive, self.kind, how)
        return rule


def missing(primitive: Primitive, kind: str, how: str) -> MissingRuleError:
    """Return the error about a rule that is not set."""
    return MissingRuleError(message(str(primitive), f"has no {kind} rule.", hint=how))


primitive_jvps = RuleTable("jvp")
primitive_transposes = RuleTable("transpose")
primitive_batchers = RuleTable("batch")
axis_primitive_batchers = RuleTable("batch")
fancy_primitive_batchers = RuleTable("batch")
lowerings = RuleTable("stablehlo")  # of every platform
# Rules of one platform alone, as users register them.
platform_lowerings: dict[str, RuleTable] = {}


class LoweringRuleContext:
    """What a lowering rule knows of the equation that it writes, and of the program.

    Attributes:
      builder: writes the text of the program.
      primitive: of the equation.
      avals_in: abstract values of the operands.
      avals_out: abstract values of the results.
      platforms: for which the program is compiled.

    Example:
      >>> LoweringRuleContext(None, None, (), (), ("cpu",)).replace(avals_in=(1,)).avals_in
      (1,)
    """

    __slots__ = ("avals_in", "avals_out", "builder", "platforms", "primitive")

    def __init__(
        self, builder: Any, primitive: Any, avals_in: Sequence[Any], avals_out: Sequence[Any],
        platforms: Sequence[str],
    ) -> None:  # fmt: skip
        self.builder = builder
        self.primitive = primitive
        self.avals_in = avals_in
        self.avals_out = avals_out
        self.platforms = platforms

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """Return a context with other attributes, for a function that a rule calls.

        Args:
          **changes: attributes by name.
        """
        kept = {name: getattr(self, name) for name in self.__slots__}
        return LoweringRuleContext(**(kept | changes))

    @property
    def module_context(self) -> LoweringRuleContext:
        """What a rule knows of the program: this object, which has `platforms`."""
        return self

    def add_keepalive(self, kept: Any) -> None:
        """Have an object live as long as the primitive does.

        Args:
          kept: an object, or None.
        """
        if kept is not None:
            self.primitive.kept.append(kept)


class Primitive(xprim.Primitive):
    """An operation whose rules are set one by one.

    `def_impl(f)` says what it computes, from Arrays; `def_abstract_eval(f)` the abstract values of
    its results. The other rules are entries of `xstack.interpreters.ad.primitive_jvps`,
    `ad.primitive_transposes`, `xstack.interpreters.batching.primitive_batchers`, and what
    `xstack.interpreters.mlir.register_lowering` is given. A primitive for this family alone is
    better defined in one call, `xprim.Primitive`, where a forgotten rule is an error at once.

    Args:
      name: what jaxprs print; several primitives may have one name.

    Attributes:
      multiple_results: whether `bind` and the rules give a list of results, or one alone; set it
        after the primitive is made.

    Returns:
      From `bind`: one array, or a list of them when `multiple_results` is set.

    Raises:
      TypeError: when the name is not a string.
      MissingRuleError: when a transformation asks for a rule that was not set.

    Example:
      >>> import xstack
      >>> from xstack.interpreters import ad, batching, mlir
      >>> half_p = Primitive("half")
      >>> half_p.def_impl(lambda x: x / 2) and None
      >>> half_p.def_abstract_eval(lambda x: x) and None
      >>> ad.deflinear(half_p, lambda ct: [half_p.bind(ct)])
      >>> batching.defvectorized(half_p)
      >>> rule = mlir.lower_fun(lambda x: x / 2, multiple_results=False)
      >>> mlir.register_lowering(half_p, rule) is rule
      True
      >>> float(xstack.grad(xstack.jit(half_p.bind))(3.0))
      0.5
      >>> xstack.vmap(half_p.bind)(xstack.numpy.arange(3.0))
      Array([0. , 0.5, 1. ], dtype=float32)

    Source:
      the page "JAX Internals: primitives" of JAX's documentation, whose names and forms of rules
      these are.
    """

    multiple_results = False

    @boundary
    @xprim.primitive_maker
    def __init__(self, name: str) -> None:
        self.impl: Rule | None = None
        self.abstract_eval: Rule | None = None
        self.kept: list[Any] = []  # what lowering rules keep alive
        self.registered_as = _free_name(name)
        super().__init__(
            self.registered_as, call_like=True, shape=self._shape, numpy=self._numpy,
            stablehlo=self._stablehlo, jvp=self._jvp, linearize=self._linearize,
            transpose=self._transpose, batch=self._batch,
        )  # fmt: skip
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return get_primitive, (self.registered_as,)

    def def_impl(self, impl: Rule) -> Rule:
        """Set what the primitive computes, from Arrays; return the function."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Set the function from abstract values to those of the results; return it."""
        self.abstract_eval = abstract_eval
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Set the same for a function that gives effects, too; there must be none."""
        self.abstract_eval = lambda *avals, **params: _without_effects(
            self, abstract_eval(*avals, **params)
        )
        return abstract_eval

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive to what can be made Arrays, under the current trace."""
        results = super().bind(*map(as_array, operands), **params)
        return list(results) if self.multiple_results else results[0]

    def infer(self, avals: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Return the abstract values of the results, which no memo keeps."""
        return self._shape(*avals, **params)

    # what the registry is given

    def _several(self, results: Any) -> tuple[Any, ...]:
        return tuple(results) if self.multiple_results else (results,)

    def _shape(self, *avals: Any, **params: Any) -> tuple[Any, ...]:
        if self.abstract_eval is None:
            raise missing(self, "shape", f"{self}_p.def_abstract_eval(rule) adds one")
        found = self.abstract_eval(*avals, **params)
        if isinstance(found, tuple | list) is not self.multiple_results:
            raise ValueError(message(
                f"{self}", "the abstract evaluation rule must return a tuple or list where "
                "multiple_results is set, and one abstract value where it is not.",
                got=described(found), expected=f"multiple_results={not self.multiple_results}",
                where=place_of(self.abstract_eval),
            ))  # fmt: skip
        return self._several(found)

    def _numpy(self, *operands: Any, **params: Any) -> tuple[Any, ...]:
        if self.impl is None:
            raise missing(self, "numpy", f"{self}_p.def_impl(rule) adds one")
        return tuple(map(as_array, self._several(self.impl(*operands, **params))))

    def _stablehlo(
        self, b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
    ) -> Sequence[Any]:
        table = platform_lowerings.get(b.platform, lowerings)
        how = f"mlir.register_lowering({self}_p, mlir.lower_fun(f)) adds one"
        rule = table.get(self) or lowerings.of(self, how)
        context = LoweringRuleContext(b, self, avals_in, avals_out, (b.platform,))
        return list(rule(context, *operands, **params))

    def _jvp(
        self, handle: JVPHandle, primals: Any, tangents: Any, **params: Any
    ) -> tuple[tuple[Any, ...], list[Any]]:
        rule = primitive_jvps.of(self, f"ad.primitive_jvps[{self}_p] = rule adds one")
        outs, dots = rule(tuple(primals), tuple(tangents), **params)
        outs = tuple(map(as_array, self._several(outs)))
        return outs, [
            _zero_of(out) if dot is None or dot is Zero else dot if type(dot) is Zero
            else as_array(dot)
            for out, dot in zip(outs, self._several(dots), strict=True)
        ]  # fmt: skip

    def _linearize(
        self, handle: xprim.LinearizeHandle, primals: Any, tangents: Any, **params: Any
    ) -> Any:
        return handle.run_rule(partial(self._jvp, handle, **params), primals, tangents)

    def _transpose(
        self, handle: xprim.TransposeHandle, cotangents: Any, *operands: Any, **params: Any
    ) -> list[Any]:
        rule = primitive_transposes.of(self, f"ad.primitive_transposes[{self}_p] = rule adds one")
        given = list(cotangents) if self.multiple_results else cotangents[0]
        found = rule(given, *operands, **params)
        if found is Zero or type(found) is Zero:
            found = [None] * len(operands)
        return [
            Zero(x.aval) if ct is None or ct is Zero else ct
            for x, ct in zip(operands, found, strict=True)
        ]

    def _batch(self, axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        places = tuple([None if d is not_mapped else d for d in dims])
        if self in fancy_primitive_batchers:
            results, out = fancy_primitive_batchers[self](axis, operands, places, **params)
        elif self in axis_primitive_batchers:
            rule = axis_primitive_batchers[self]
            results, out = rule(axis.size, axis.name, None, operands, places, **params)
        else:
            how = f"batching.primitive_batchers[{self}_p] = rule adds one"
            results, out = primitive_batchers.of(self, how)(operands, places, **params)
        results = tuple(map(as_array, self._several(results)))
        ends = out if self.multiple_results else (out,)
        return results, tuple([
            not_mapped if d is None or d is not_mapped else d % x.ndim
            for x, d in zip(results, ends, strict=True)
        ])  # fmt: skip


def _free_name(name: str) -> str:
    """Return a name for the registry that no primitive has, nor one that is imported later."""
    require_type("Primitive", name, str, "the name is not a string.")
    for count in itertools.count(1):
        free = f"tables.{name}.{count}"
        try:
            get_primitive(free)
        except KeyError:
            break
    return free


def _without_effects(primitive: Primitive, found: Any) -> Any:
    avals, effects = found
    if effects:
        raise TypeError(message(
            str(primitive), "effects of a primitive whose rules come one by one are not known.",
            got=str(effects), expected="no effects",
            hint="xprim.Primitive(..., effects=rule) defines one that has some",
        ))  # fmt: skip
    return avals


def _zero_of(x: Any) -> Zero:
    return Zero(x.aval.to_tangent_aval())
