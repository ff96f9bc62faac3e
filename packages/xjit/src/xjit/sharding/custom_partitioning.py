"""Functions that the user partitions, where XLA partitions the program around them."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xprim
import xtree
from xjit import jaxlib_gateway as gateway
from xjit.cache.memory import Bounded
from xjit.lowering.annotations import as_a_call
from xjit.lowering.modules import text_of_piece
from xjit.lowering.stablehlo_text import Builder
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec, Sharding, name_tiles
from xprim import EAGER, ClosedJaxpr, Primitive, ShapedArray, Tracer, close_over, stage, state
from xprim.calls import rules_of_program
from xprim.errors import UndefinedRuleError, message, place_of
from xprim.kept_programs import KeptPrograms, Staged
from xprim.tracebacks import boundaries, boundary, shorten
from xprim.transformed import check_function, flat_arrays

__all__ = [
    "BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning",
    "custom_partitioning_p",
]  # fmt: skip

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------- factor rules
# Which dimensions of an operation's operands and results are cut alike, in words of factors.
#
# A *factor* is a name for a dimension, or for a part of one: in `"i j, j k -> i k"` both operands
# and the result of a product of matrices have theirs. Where one of them is cut along an axis, XLA
# cuts all of that name. `SdyShardingRule` is such a rule, `rule_of_text` reads the short form,
# `rule_text` writes what a program says.
#
# Source of the form: the documentation of Shardy, "OpShardingRuleAttr".

BATCHING = "\N{HORIZONTAL ELLIPSIS}"
"""Stands at the beginning of a mapping for leading dimensions of any number."""

_NAME = re.compile(r"[^\W\d_]\w*")
_BATCHING = re.compile(rf"(?:\.\.\.|{BATCHING})(\d*)")
_TOKEN = re.compile(r"\(([^()]*)\)|(\S+)")


class CompoundFactor(tuple[str, ...]):
    """The factors of one dimension, the slowest first: `CompoundFactor("i", "j")`.

    Raises:
      ValueError: there are fewer than two names, or one is not a name.
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
      ValueError: something is not a name, or `BATCHING` stands elsewhere.
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
        special = "".join([f" {kind}={{{_format_names(some, symbols)}}}"
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


def _format_names(names: Sequence[str], symbols: Mapping[str, str]) -> str:
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


# --------------------------------------------------------------------------- custom partitioning
# Functions whose operation the user splits over devices, where XLA splits the program around it.
#
# To everything but a compiler for several devices such a function is the program that it is
# written as. There it is one operation: the text has the `sharding_rule`, by which XLA says how
# operands and results lie together, and while XLA splits the program it asks `partition` what
# each device computes of its pieces.
#
# Source: the documentation of Shardy, "OpShardingRuleAttr";
# `jax.experimental.custom_partitioning` for names and arguments.

# The programs of functions that are split, each traced once for its arguments' types.
_programs = KeptPrograms(limit=1024)
_MAX_SPLITS = 256


class custom_partitioning:  # noqa: N801 - a decorator
    """Make a function whose operation is split over devices as one says.

    Args:
      fun: a function of trees of arrays by position. It computes the whole: on one device, and
        where the operation is differentiated or batched.
      static_argnums: the numbers of arguments that are not arrays, but hashable.

    Raises:
      TypeError: `fun` closes over traced values, which must be arguments; a static argument cannot
        be hashed.
      ValueError: it is called before `def_partition`.

    Example:
      >>> from xjit import jit
      >>> from xnp import lax
      >>> @custom_partitioning
      ... def doubled(x):
      ...     return x + x
      >>> @functools.partial(doubled.def_partition, sharding_rule="i -> i")
      ... def partition(mesh, arg_shapes, result_shape):
      ...     (x,) = arg_shapes
      ...     return mesh, lambda piece: piece + piece, x.sharding, (x.sharding,)
      >>> jit(doubled)(2.0), doubled.sharding_rule
      (Array(4., dtype=float32, weak_type=True), 'i -> i')
    """

    @boundary
    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        check_function(fun, "custom_partitioning")
        self.fun = fun
        self.static_argnums = (
            (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        )
        self.partition: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        self._rule_options: dict[str, Any] = {}
        # One for each text of a program: with another number in it, it would compile again.
        self._splits: Bounded[_Split] = Bounded(_MAX_SPLITS)
        functools.update_wrapper(self, fun)

    @boundary
    def def_partition(
        self, partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable[..., Any] | None = None, *,
        reduction_factors: Sequence[str] = (), need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (), **factor_sizes: int,
    ) -> Callable[..., Any]:  # fmt: skip
        """Say how the operation is split.

        Args:
          partition: `partition(*static_args, mesh, arg_shapes, result_shape)`, given trees of
            `ShapeDtypeStruct` with the shardings that XLA has in mind, returns `(mesh, lower_fn,
            result_shardings, arg_shardings)`: what each device computes of its pieces, where it may
            use collectives over the axes of the mesh, and how results and arguments shall lie.
          infer_sharding_from_operands: of XLA's former partitioner. Shardy goes by the rule, so
            this is not called; given alone, it is an error.
          propagate_user_sharding: likewise.
          decode_shardings: shardings have names here; False raises.
          sharding_rule: which dimensions correspond: "i j, j k -> i k", a `SdyShardingRule`, or
            `rule(*static_args, mesh, arg_types, result_types)` that returns one, or a text with a
            dict of the following.
          reduction_factors: of a rule that is a text; see `SdyShardingRule`.
          need_replication_factors: likewise.
          permutation_factors: likewise.
          **factor_sizes: likewise.

        Returns:
          `partition`.

        Raises:
          UndefinedRuleError: there is no rule (a `NotImplementedError` and a `ValueError`).
          ValueError: the rule is wrong; a keyword needs a rule that is a text.
        """
        check_function(partition, "custom_partitioning")
        options = {
            key: value for key, value in (
                ("reduction_factors", tuple(reduction_factors)),
                ("need_replication_factors", tuple(need_replication_factors)),
                ("permutation_factors", tuple(permutation_factors)), *factor_sizes.items(),
            ) if value != ()
        }  # fmt: skip
        if not decode_shardings:
            raise ValueError(message(
                "custom_partitioning", "shardings have names here.", got="decode_shardings=False",
            ))  # fmt: skip
        if sharding_rule is None:
            raise UndefinedRuleError(message(
                "custom_partitioning", "the sharding rule is missing, from which XLA infers "
                "the shardings of operands and results.", where=place_of(self.fun),
                hint="def_partition(partition, sharding_rule='... i -> ... i')",
            ))  # fmt: skip
        if isinstance(sharding_rule, str):
            rule_of_text(sharding_rule, **options)  # which raises the errors
        elif options:
            raise ValueError(message(
                "custom_partitioning", "only a rule that is a text has further words.",
                got=", ".join(options), expected="a SdyShardingRule has them itself",
            ))  # fmt: skip
        self.partition, self.sharding_rule, self._rule_options = partition, sharding_rule, options
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, whose program is split as was said."""
        try:
            return self._call(*self._by_position(args, kwargs))
        except Exception as error:
            shorten(error)
            raise

    def _by_position(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments: `static_argnums` counts those, too, that have their defaults."""
        try:
            signature = inspect.signature(self.fun)
        except ValueError:  # a builtin function without one
            if kwargs:
                raise
            return args
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(message(
                "custom_partitioning", "arguments are given by position.",
                got=f"{', '.join(bound.kwargs)} of {place_of(self.fun)}",
            ))  # fmt: skip
        return bound.args

    def _call(self, *args: Any) -> Any:
        if self.partition is None:
            raise ValueError(message(
                "custom_partitioning", "the sharding of its results is unknown.",
                where=place_of(self.fun), hint="f.def_partition(partition, sharding_rule=...)",
            ))  # fmt: skip
        numbers = set(xprim.static_positions(self.static_argnums, len(args), "custom_partitioning"))
        statics = tuple([args[n] for n in sorted(numbers)])
        operands, in_tree = flat_arrays(
            tuple([x for n, x in enumerate(args) if n not in numbers]), "custom_partitioning",
            "the argument",
        )  # fmt: skip
        staged = self._program_for(in_tree, operands, sorted(numbers), statics)
        if staged.captured:
            raise TypeError(message(
                "custom_partitioning", "what each device computes cannot reach values that are "
                "traced around it.",
                got=f"{len(staged.captured)} of them in {place_of(self.fun)}",
                hint="make them arguments of the function",
            ))  # fmt: skip
        division = _Division(self, statics, in_tree, staged.out_tree)
        outs = custom_partitioning_p.bind(
            *operands, jaxpr=staged.closed, name=getattr(self.fun, "__name__", "custom"),
            division=division,
        )  # fmt: skip
        return xtree.unflatten(staged.out_tree, outs)

    def _program_for(
        self, in_tree: Any, operands: Sequence[Any], numbers: Sequence[int], statics: Sequence[Any]
    ) -> Staged:
        places = list(zip(numbers, statics, strict=True))

        def whole(*args: Any) -> Any:
            every = list(args)
            for number, value in places:
                every.insert(number, value)
            return self.fun(*every)

        def trace() -> Staged:
            args = in_tree.unflatten(operands)
            closed, out_tree = stage(whole, args, {}, operation="custom_partitioning")
            found, captured = close_over(closed.jaxpr, closed.consts)
            return Staged(found, [x for x in captured if isinstance(x, Tracer)], out_tree)

        return _programs.program_of(self.fun, in_tree, [x.aval for x in operands], trace, places)

    def rule_for(
        self, statics: tuple[Any, ...], mesh: Mesh, avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray],
    ) -> str:  # fmt: skip
        """Return the sharding rule of operands and results of these types, as a program has it."""
        rule, options = self.sharding_rule, self._rule_options
        if callable(rule):
            rule = rule(*statics, mesh, list(avals_in), list(avals_out))
            if isinstance(rule, tuple | list) and len(rule) == 2:
                rule, options = rule
        if isinstance(rule, str):
            rule = rule_of_text(rule, **options)
        if not isinstance(rule, SdyShardingRule):
            raise TypeError(message(
                "custom_partitioning", "the sharding rule is of another type.", got=repr(rule),
                expected="a text or a SdyShardingRule",
            ))  # fmt: skip
        return rule.text([a.shape for a in avals_in], [a.shape for a in avals_out])

    def split_for(self, key: tuple[Any, ...], make: Callable[[], _Split]) -> _Split:
        """Return who tells XLA how the operation is split, one for each text of a program."""
        found = self._splits.get(key)
        if found is None:
            found = make()
            self._splits.put(key, found)
        return found


class _Division:
    """How one call is split: by whom, with which static arguments, from which trees to which."""

    __slots__ = ("in_tree", "out_tree", "owner", "statics")

    def __init__(
        self, owner: custom_partitioning, statics: tuple[Any, ...], in_tree: Any, out_tree: Any
    ) -> None:
        self.owner, self.statics, self.in_tree, self.out_tree = owner, statics, in_tree, out_tree

    def _parts(self) -> tuple[Any, ...]:
        return id(self.owner), self.statics, self.in_tree, self.out_tree, self.owner.partition

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Division) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return f"<by {place_of(self.owner.partition or self.owner.fun)}>"


class _Split:
    """Tells XLA how one operation of a program is split: a `jaxlib_gateway.Partitioner`.

    Attributes:
      config: the number by which XLA knows it.
      error: what the user's function raised when XLA called it.
    """

    def __init__(
        self, division: _Division, mesh: Mesh, devices: tuple[Any, ...], platform: str,
        avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray],
    ) -> None:  # fmt: skip
        self.division, self.mesh, self.devices = division, mesh, devices
        self.platform = platform
        self.avals_in, self.avals_out = tuple(avals_in), tuple(avals_out)
        self.count = len(devices)
        self.in_ndims = [a.ndim for a in avals_in]
        self.out_ndims = [a.ndim for a in avals_out]
        self.options = state.options
        self.error: Exception | None = None
        self.config = gateway.ask_partitioner(self)

    def split(
        self, operands: Sequence[gateway.Tiles], results: Sequence[gateway.Tiles]
    ) -> tuple[str, Sequence[gateway.Tiles], Sequence[gateway.Tiles]]:
        """Return what each device computes, and how operands and results shall lie."""
        previous, state.trace = state.trace, EAGER
        try:
            return self._split(operands, results)
        except Exception as error:
            self.error = error
            raise
        finally:
            state.trace = previous

    def _split(self, operands: Any, results: Any) -> tuple[str, Any, Any]:
        division = self.division
        owner = division.owner
        assert owner.partition is not None, "it is requested before"
        given = [
            tree.unflatten([
                xprim.ShapeDtypeStruct(a.shape, a.dtype, sharding=self._name_dimensions(t))
                for a, t in zip(avals, tiles, strict=True)
            ])
            for tree, avals, tiles in (
                (division.in_tree, self.avals_in, operands),
                (division.out_tree, self.avals_out, results))
        ]  # fmt: skip
        found = owner.partition(*division.statics, self.mesh, *given)
        if not isinstance(found, tuple | list) or len(found) != 4:
            raise self._wrong("it returns (mesh, lower_fn, result_shardings, arg_shardings).",
                              repr(found))  # fmt: skip
        mesh, lower_fn, of_results, of_arguments = found
        outs = self._tiles(division.out_tree, of_results, self.avals_out, "result_shardings")
        ins = self._tiles(division.in_tree, of_arguments, self.avals_in, "arg_shardings")
        pieces = [_piece(a, t) for a, t in zip(self.avals_in, ins, strict=True)]
        with xprim.extended_axes(dict(mesh.shape)):
            closed, out_tree = stage(
                lower_fn, division.in_tree.unflatten(pieces), {}, operation="custom_partitioning"
            )
        self._check_pieces(closed, out_tree, outs)
        return text_of_piece(closed, mesh, self.devices, self.platform), ins, outs

    def _check_pieces(self, closed: ClosedJaxpr, out_tree: Any, outs: Any) -> None:
        wanted = [_piece(a, t).strong() for a, t in zip(self.avals_out, outs, strict=True)]
        got, tree = [a.strong() for a in closed.out_avals], self.division.out_tree
        if out_tree != tree or got != wanted:
            raise self._wrong(
                "lower_fn must return the pieces of the results.",
                f"{', '.join([a.str_long() for a in got])} of the structure {out_tree}",
                f"{', '.join([a.str_long() for a in wanted])} of the structure {tree}",
            )

    def _name_dimensions(self, tiles: gateway.Tiles) -> Sharding:
        """Return a sharding by the names of the mesh, with an entry for each dimension."""
        found = name_tiles(self.mesh, self.devices, tiles)
        if not isinstance(found, NamedSharding):
            return found
        rest = len(tiles.counts) - len(found.spec)
        return found.update(spec=PartitionSpec(*found.spec, *[None] * rest))

    def _tiles(
        self, tree: Any, shardings: Any, avals: Sequence[ShapedArray], what: str
    ) -> list[gateway.Tiles]:
        found = tree.flatten_up_to(shardings)
        for sharding, aval in zip(found, avals, strict=True):
            if not isinstance(sharding, Sharding) or len(sharding.device_set) != self.count:
                raise self._wrong(
                    f"{what} are shardings over the devices of the program.", repr(sharding),
                    f"one for {aval.str_long()} over {self.count} devices",
                )  # fmt: skip
        return [
            s.tiles(a.ndim).renumber(s.devices_in_order, self.devices)
            for s, a in zip(found, avals, strict=True)
        ]

    def _wrong(self, what: str, got: str, expected: str = "") -> TypeError:
        where = place_of(self.division.owner.partition or self.division.owner.fun)
        return TypeError(message(
            "custom_partitioning", what, got=got, expected=expected, where=where
        ))  # fmt: skip


def _piece(aval: ShapedArray, tiles: gateway.Tiles) -> ShapedArray:
    for size, count in zip(aval.shape, tiles.counts, strict=True):
        if size % count:
            raise ValueError(message(
                "custom_partitioning",
                f"{size} elements cannot be sharded into {count} equal pieces.",
                got=aval.str_long(), hint="return a sharding that does not shard this dimension",
            ))  # fmt: skip
    return xprim.shaped_array(tiles.piece_shape(aval.shape), aval.dtype, aval.weak_type)


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr, name: str,
    division: _Division,
) -> Any:  # fmt: skip
    module = b.module
    is_split = len(module.devices) > 1 and module.members is None
    if not is_split or xprim.ordered_effects(jaxpr.effects):
        return b.inline(jaxpr, operands)
    devices, owner = tuple(module.devices), division.owner
    mesh = module.mesh or Mesh(devices, "device")
    key = (division, mesh, devices, tuple(avals_in), tuple(avals_out), b.platform, state.options)
    split = owner.split_for(
        key, lambda: _Split(division, mesh, devices, b.platform, avals_in, avals_out)
    )
    module.splits.append(split)
    rule = owner.rule_for(division.statics, mesh, avals_in, avals_out)
    return b.op(
        "stablehlo.custom_call", operands, avals_in, avals_out,
        f'call_target_name = "{gateway.PARTITIONER_TARGET}", backend_config = "{split.config}", '
        f"api_version = 2 : i32, has_side_effect = false, sdy.sharding_rule = {rule}",
    )  # fmt: skip


custom_partitioning_p = Primitive(
    "custom_partitioning",
    call_like=True,
    **rules_of_program("jaxpr", runs="inline") | {"stablehlo": _stablehlo},
    jvp=as_a_call("jvp"),
    linearize=as_a_call("linearize"),
    batch=as_a_call("batch"),
)


boundaries(globals())
