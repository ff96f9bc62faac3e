"""Which dimensions of an operation's operands and results are cut alike, in words of factors.

A *factor* is a name for a dimension, or for a part of one: in `"i j, j k -> i k"` both operands and
the result of a product of matrices have theirs. Where one of them is cut along an axis, XLA cuts
all of that name. `SdyShardingRule` is such a rule, `rule_of_text` reads the short form, `rule_text`
writes what a program says.

Source of the form: the documentation of Shardy, "OpShardingRuleAttr".

Neighbours: `custom_partitioning` is what has such rules; those of primitives are `sharding_rules`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from xprim.errors import message
from xprim.tracebacks import boundary

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule"]

__dir__ = __all__.copy

BATCHING = "\N{HORIZONTAL ELLIPSIS}"
"""Stands at the beginning of a mapping for leading dimensions of any number."""

_NAME = re.compile(r"[^\W\d_]\w*")
_BATCHING = re.compile(rf"(?:\.\.\.|{BATCHING})(\d*)")
_TOKEN = re.compile(r"\(([^()]*)\)|(\S+)")


class CompoundFactor(tuple[str, ...]):
    """The factors of one dimension, the slowest first: `CompoundFactor("i", "j")`.

    Raises:
      ValueError: there are fewer than two names, or one is no name.
    """

    __slots__ = ()

    @boundary
    def __new__(cls, *factors: str) -> CompoundFactor:
        """Make one of names."""
        if len(factors) < 2:
            raise _wrong("a dimension of several factors has two or more.", factors)
        for factor in factors:
            _check_name(factor)
        return super().__new__(cls, factors)

    def __getnewargs__(self) -> tuple[str, ...]:  # for copies and pickles
        return tuple(self)


class ArrayMapping(tuple[Any, ...]):
    """The factors of one operand or result: for each dimension a name or a `CompoundFactor`.

    `BATCHING`, with digits behind it where there are several kinds, stands first for leading
    dimensions.

    Raises:
      ValueError: something is no name, or `BATCHING` stands elsewhere.
    """

    __slots__ = ()

    @boundary
    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        """Make one of what each dimension has."""
        for i, dim in enumerate(dim_mappings):
            if not isinstance(dim, CompoundFactor) and not (i == 0 and _is_batching(dim)):
                _check_name(dim)
        return super().__new__(cls, dim_mappings)

    def __getnewargs__(self) -> tuple[Any, ...]:  # for copies and pickles
        return tuple(self)


class SdyShardingRule:
    """Which dimensions of operands and results correspond.

    Args:
      operand_mappings: an `ArrayMapping` for each operand.
      result_mappings: one for each result.
      reduction_factors: factors that no result has, along which members have parts of a sum.
      need_replication_factors: factors that must not be cut.
      permutation_factors: factors along which members exchange values in a ring.
      **factor_sizes: the size of each factor that is a part of a dimension.

    Raises:
      ValueError: a factor is unknown, occurs twice among the special ones, or has a size that it
        needs not, or lacks one that it needs.

    Example:
      >>> rule = SdyShardingRule((ArrayMapping("i", "j"),), (ArrayMapping("i"),), ("j",))
      >>> rule
      SdyShardingRule('i j -> i', reduction_factors=('j',))
    """

    __slots__ = ("factor_sizes", "need_replication_factors", "operand_mappings",
                 "permutation_factors", "reduction_factors", "result_mappings")  # fmt: skip

    @boundary
    def __init__(
        self, operand_mappings: Sequence[ArrayMapping], result_mappings: Sequence[ArrayMapping],
        reduction_factors: Sequence[str] = (), need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (), **factor_sizes: int,
    ) -> None:  # fmt: skip
        self.operand_mappings = tuple(operand_mappings)
        self.result_mappings = tuple(result_mappings)
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)
        self.factor_sizes = factor_sizes
        self._check()

    def _check(self) -> None:
        dims = [dim for mapping in self._mappings() for dim in mapping]
        parts = {name for dim in dims if isinstance(dim, CompoundFactor) for name in dim}
        whole = {dim for dim in dims if isinstance(dim, str)}
        self._check_special(parts | whole)
        for name in sorted(parts - whole - set(self.factor_sizes)):
            raise _wrong(f"the factor {name!r} is a part of a dimension: say how large.", self)
        for name in sorted(set(self.factor_sizes) - (parts - whole)):
            raise _wrong(f"the size of {name!r} is not that of a part of a dimension.", self)

    def _check_special(self, names: set[str]) -> None:
        special = [name for _, some in self._special() for name in some]
        for name in special:
            if name not in names:
                raise _wrong(f"no dimension has the factor {name!r}.", self)
            if special.count(name) > 1:
                raise _wrong(f"the factor {name!r} is of one kind at most, once.", self)

    def _mappings(self) -> tuple[ArrayMapping, ...]:
        return *self.operand_mappings, *self.result_mappings

    def _special(self) -> list[tuple[str, tuple[str, ...]]]:
        return [("reduction", self.reduction_factors),
                ("need_replication", self.need_replication_factors),
                ("permutation", self.permutation_factors)]  # fmt: skip

    def __repr__(self) -> str:
        sides = [", ".join(map(_mapping_text, side))
                 for side in (self.operand_mappings, self.result_mappings)]  # fmt: skip
        given = [f"{kind}_factors={names!r}" for kind, names in self._special() if names]
        given += [f"{name}={size}" for name, size in self.factor_sizes.items()]
        return f"SdyShardingRule({', '.join([repr(' -> '.join(sides).strip()), *given])})"

    def text(
        self, in_shapes: Sequence[tuple[int, ...]], out_shapes: Sequence[tuple[int, ...]]
    ) -> str:
        """Return the attribute of an operation of these shapes, as a program has it.

        Raises:
          ValueError: the shapes do not fit the rule.
        """
        given = [self.operand_mappings, in_shapes], [self.result_mappings, out_shapes]
        for what, (mappings, shapes) in zip(("operands", "results"), given, strict=True):
            if len(mappings) != len(shapes):
                raise _wrong(f"it is about {len(mappings)} {what}, there are {len(shapes)}.", self)
        batches: dict[str, int] = {}
        sides = [[self._dimensions(m, s, batches) for m, s in zip(*pair, strict=True)]
                 for pair in given]  # fmt: skip
        sizes = self._sizes([*sides[0], *sides[1]], [*in_shapes, *out_shapes])
        symbols = {name: _symbol(i) for i, name in enumerate(sizes)}
        shown = [", ".join([_dimensions_text(dims, symbols) for dims in side]) for side in sides]
        inside = ", ".join([f"{symbols[name]}={size}" for name, size in sizes.items()])
        special = "".join([f" {kind}={{{_listed(some, symbols)}}}"
                           for kind, some in self._special() if some])  # fmt: skip
        return f"#sdy.op_sharding_rule<({shown[0]})->({shown[1]}) {{{inside}}}{special}, custom>"

    def _dimensions(
        self, mapping: ArrayMapping, shape: tuple[int, ...], batches: dict[str, int]
    ) -> list[tuple[str, ...]]:
        """Return the factors of each dimension, with names for the leading ones."""
        dims = [dim if isinstance(dim, CompoundFactor) else (dim,) for dim in mapping]
        leading: list[tuple[str, ...]] = []
        if mapping and _is_batching(mapping[0]):
            group, dims = mapping[0].lstrip(f".{BATCHING}") or "0", dims[1:]
            count = batches.setdefault(group, max(len(shape) - len(dims), 0))
            leading = [(f"{BATCHING}{group}_{i}",) for i in range(count)]
        if len(leading) + len(dims) != len(shape):
            raise _wrong(
                f"'{_mapping_text(mapping)}' has {len(leading) + len(dims)} dimensions, the value "
                f"{len(shape)}.", self,
            )  # fmt: skip
        return [*leading, *dims]

    def _sizes(
        self, values: Sequence[Sequence[tuple[str, ...]]], shapes: Sequence[tuple[int, ...]]
    ) -> dict[str, int]:
        """Return the size of each factor, in the order in which they occur: the smallest."""
        pairs = [pair for dims, shape in zip(values, shapes, strict=True)
                 for pair in zip(dims, shape, strict=True)]  # fmt: skip
        found: dict[str, list[int]] = {}
        for factors, size in pairs:
            for name in factors:
                known = found.setdefault(name, [])
                known += [size] if len(factors) == 1 else []
        for name, known in found.items():
            if name.startswith(BATCHING) and len(set(known)) > 1:
                raise _wrong(f"leading dimensions differ: {min(known)} and {max(known)}.", self)
        sizes = {name: min(known or [self.factor_sizes[name]]) for name, known in found.items()}
        self._check_parts(pairs, sizes)
        return sizes

    def _check_parts(self, pairs: Sequence[Any], sizes: Mapping[str, int]) -> None:
        for factors, size in pairs:
            if len(factors) > 1 and math.prod([sizes[name] for name in factors]) != size:
                raise _wrong(f"the factors {' '.join(factors)} are not {size} together.", self)


def rule_of_text(text: str, **kwargs: Any) -> SdyShardingRule:
    """Return the rule of the short form: `"... i j, j k -> ... i k"`, `"(i j) -> i j"` with sizes.

    Args:
      text: for each value the factors of its dimensions with spaces between them, in parentheses
        those of one dimension; values apart by commas, operands and results by an arrow.
      **kwargs: further arguments of `SdyShardingRule`.
    """
    sides = text.split("->")
    if len(sides) != 2:
        raise _wrong("there must be one arrow between operands and results.", repr(text))
    operands, results = [[_mapping_of(part) for part in side.split(",")] for side in sides]
    return SdyShardingRule(operands, results, **kwargs)


def _mapping_of(text: str) -> ArrayMapping:
    dims: list[Any] = []
    for match in _TOKEN.finditer(text):
        parts, name = match.groups()
        dims.append(name if parts is None else CompoundFactor(*parts.split()))
    return ArrayMapping(*dims)


def _mapping_text(mapping: ArrayMapping) -> str:
    return " ".join([f"({' '.join(d)})" if isinstance(d, CompoundFactor) else d for d in mapping])


def _dimensions_text(dims: Sequence[tuple[str, ...]], symbols: Mapping[str, str]) -> str:
    return f"[{', '.join([''.join([symbols[name] for name in factors]) for factors in dims])}]"


def _listed(names: Sequence[str], symbols: Mapping[str, str]) -> str:
    return ", ".join([symbols[name] for name in names])


def _symbol(i: int) -> str:
    """Return what the dialect calls a factor: i, j, ..., z, z_1, ..."""
    return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"


def _is_batching(name: Any) -> bool:
    return isinstance(name, str) and _BATCHING.fullmatch(name) is not None


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong("factors are words: a letter, then letters, digits and _.", repr(name))


def _wrong(what: str, got: Any) -> ValueError:
    return ValueError(message("sharding_rule", what, got=str(got)))
