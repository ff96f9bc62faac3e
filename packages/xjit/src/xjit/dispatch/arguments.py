"""Arguments of calls: static and traced, donated, by name; and the operands they become."""

from __future__ import annotations

import copy
import functools
import inspect
import keyword
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import xprim
import xtree
from xjit import jaxlib_gateway as gateway
from xprim import Array, ConcreteArray, as_array, config, dtypes, from_numpy, shaped_array, state
from xprim.errors import brief, described, message, suggest_registration
from xprim.memory import refuse_masked
from xprim.refs import BaseRef
from xprim.static_keys import static_key
from xprim.transformed import name_of

__all__ = ()


# ------------------------------------------------------------------------------------- arguments
# The arguments of a call of a compiled function: static and traced, donated, and their names.
#
# `Signature` knows which arguments are static or donated, by position and by name, for a
# function's parameters. `Arguments` is one call taken apart: the leaves of the traced arguments,
# their structure, and the static values as a hashable key in which 1, 1.0 and True differ.


class Signature:
    """Which arguments of a function are static and which are donated.

    Args:
      fun: the function.
      options: keyword arguments of `jit`: `static_argnums`, `donate_argnames`, ...
      api: the public function that takes them, for errors.
    """

    __slots__ = ("api", "donate_names", "donate_nums", "donates", "flatten",
                 "has_static", "name", "parameters", "static_names", "static_nums")  # fmt: skip

    def __init__(
        self, fun: Callable[..., Any], options: Mapping[str, Any], api: str = "jit"
    ) -> None:
        self.api = api
        self.name = name_of(fun, type(fun).__name__)
        declared = _parameters_of(fun)
        self.parameters = None if declared is None else _positional_names(declared)
        everything = _all_names(declared)
        _check_named(f"{api}: static_argnames", options["static_argnames"], declared, self.name)
        _check_named(f"{api}: donate_argnames", options["donate_argnames"], declared, self.name)
        self.static_nums, self.static_names = self._resolve(
            "static", options["static_argnums"], options["static_argnames"], everything
        )
        self.donate_nums, self.donate_names = self._resolve(
            "donate", options["donate_argnums"], options["donate_argnames"], everything
        )
        self.donates = bool(self.donate_nums or self.donate_names)
        self.has_static = bool(self.static_nums or self.static_names)
        self.flatten = xtree.flattener()
        both = (self.static_names & self.donate_names) or (
            set(self.static_nums) & set(self.donate_nums))  # fmt: skip
        if both:
            static, donated = [
                f"{kind}_argnames" if options[f"{kind}_argnums"] is None else f"{kind}_argnums"
                for kind in ("static", "donate")
            ]
            raise ValueError(
                f"{api}: {static} and {donated} cannot intersect: {sorted(both, key=str)} of "
                f"{self.name}."
            )

    def _resolve(
        self, kind: str, nums: Any, names: Any, everything: frozenset[str] | None
    ) -> tuple[tuple[int, ...], frozenset[str]]:
        """Return positions and names; where one was given, the other follows from the function."""
        positions = _integers(nums, f"{self.api}: {kind}_argnums")
        words = _strings(names, f"{self.api}: {kind}_argnames")
        self._check_words(kind, words, everything)
        parameters = self.parameters
        if parameters is None:
            return positions, frozenset(words)
        count = len(parameters)
        resolved = [self._check_position(kind, i, count) for i in positions]
        if names is None:
            words = [parameters[i] for i in resolved if 0 <= i < count]
        elif nums is None:
            resolved = [parameters.index(word) for word in words if word in parameters]
        return tuple(resolved), frozenset(words)

    def _check_words(self, kind: str, words: list[str], everything: frozenset[str] | None) -> None:
        for word in words:
            if everything is not None and word not in everything:
                raise ValueError(message(
                    f"{self.api}",
                    f"{kind}_argnames names {word!r}, which {self.name} does not have.",
                    expected=f"some of {', '.join(sorted(everything))}",
                ))  # fmt: skip

    def _check_position(self, kind: str, i: int, count: int) -> int:
        if not -count <= i < count and not self._takes_more(i):
            raise ValueError(message(
                f"{self.api}", f"{kind}_argnums has {i}, but {self.name} takes {count} positional "
                f"argument{'' if count == 1 else 's'}.",
                expected=f"an int from {-count} to {count - 1}",
            ))  # fmt: skip
        if i < 0 and self._takes_more(i):
            return i  # counted from the end of each call
        return i + count if i < 0 else i

    def _takes_more(self, position: int) -> bool:
        return self.parameters is not None and self.parameters[-1:] == ["*"]

    def key(self) -> tuple[Any, ...]:
        """Return what programs depend on."""
        return (self.static_nums, tuple(sorted(self.static_names)), self.donate_nums,
                tuple(sorted(self.donate_names)))  # fmt: skip

    def parts(self) -> dict[str, Any]:
        """Return what it is made of again in another process, by `of_parts`."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "flatten"}

    @classmethod
    def of_parts(cls, parts: dict[str, Any]) -> Signature:
        """Return the signature that `parts` describes."""
        made = cls.__new__(cls)
        for name, value in parts.items():
            setattr(made, name, value)
        made.flatten = xtree.flattener()
        return made

    def is_static(self, place: int | str, count: int) -> bool:
        """Return whether the argument at a place is static, of `count` positional ones."""
        if isinstance(place, str):
            return place in self.static_names
        return place in self.static_nums or place - count in self.static_nums

    def is_donated(self, place: int | str, count: int) -> bool:
        """Return whether the argument at a place is donated, of `count` positional ones."""
        if isinstance(place, str):
            return place in self.donate_names
        return place in self.donate_nums or place - count in self.donate_nums

    def split(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        """Take one call apart."""
        if not self.has_static:
            leaves, tree = self.flatten((args, kwargs))
            return Arguments(self, leaves, tree, (), (), len(args))._note_refs()
        count = len(args)
        fixed: list[tuple[Any, Any]] = []
        dynamic = []
        for i, value in enumerate(args):
            if self.is_static(i, count):
                fixed.append((i, value))
            else:
                dynamic.append(value)
        named = {}
        for key, value in kwargs.items():
            if key in self.static_names:
                fixed.append((key, value))
            else:
                named[key] = value
        statics = tuple([(where, self._static_key(where, value)) for where, value in fixed])
        leaves, tree = self.flatten((tuple(dynamic), named))
        return Arguments(self, leaves, tree, tuple(fixed), statics, len(args))._note_refs()

    def _static_key(self, where: Any, value: Any) -> Hashable:
        try:
            hash(value)
        except TypeError:
            pass
        else:
            if not isinstance(value, Array):
                return static_key(value)
        name = self.argument_name(where)
        hint = "pass a tuple instead of a list or dict, or make it a traced argument"
        if hasattr(value, "__array__"):
            hint = "leave it out of the static arguments: arrays are traced"
        raise ValueError(message(
            f"{self.api}",
            f"the static argument {name} of {self.name}: Non-hashable static arguments are not "
            "supported.",
            got=described(value), hint=hint,
        ))  # fmt: skip

    def argument_name(self, where: Any) -> str:
        """Return what the function calls the argument at a position or of a name."""
        if isinstance(where, str):
            return where
        known = self.parameters
        if known is not None and where < len(known) and known[where] != "*":
            return str(known[where])
        return f"number {where}"

    def donated(self, arguments: Arguments) -> list[bool]:
        """Return for each leaf whether it is donated."""
        if not self.donates:
            return [False] * len(arguments.leaves)
        flags = []
        fixed = {where for where, _ in arguments.fixed}
        positions = iter([i for i in range(arguments.num_args) if i not in fixed])
        args_tree, kwargs_tree = arguments.tree.children()
        nums = {i + arguments.num_args if i < 0 else i for i in self.donate_nums}
        for child, i in zip(args_tree.children(), positions, strict=True):
            flags += [i in nums] * child.num_leaves
        keys = kwargs_tree.node_data()[1]
        for child, key in zip(kwargs_tree.children(), keys, strict=True):
            flags += [key in self.donate_names] * child.num_leaves
        return flags


class Arguments:
    """One call taken apart: `fun(*args, **kwargs)` is `call(fun, leaves)`.

    Attributes:
      refs: the places among the leaves where a reference is, and the classes of the references.
    """

    __slots__ = ("refs", "fixed", "leaves", "num_args", "signature", "statics", "tree")

    def __init__(
        self, signature: Signature, leaves: list[Any], tree: Any, fixed: tuple[Any, ...],
        statics: tuple[Any, ...], num_args: int,
    ) -> None:  # fmt: skip
        self.signature = signature
        self.leaves = leaves
        self.tree = tree
        self.fixed = fixed
        self.statics = statics
        self.num_args = num_args
        self.refs: tuple[tuple[int, type[BaseRef]], ...] = ()

    def _note_refs(self) -> Arguments:
        self.refs = tuple(
            [(i, type(x)) for i, x in enumerate(self.leaves) if isinstance(x, BaseRef)]
        )
        return self

    def key(self, avals: Sequence[xprim.ShapedArray], *, in_axes: bool = False) -> tuple[Any, ...]:
        """Return what the trace of a call depends on, the abstract values third.

        Args:
          avals: of the leaves.
          in_axes: whether the named axes of now count, as they do inside transformations.
        """
        statics = (*self.statics, *self.refs) if self.refs else self.statics
        key = (self.tree, statics, tuple(avals), config.trace_context())
        axes = state.axis_sizes
        return (*key, tuple(axes.items())) if in_axes and axes else key

    def fill(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments with other leaves in place of the traced ones."""
        args, kwargs = self.tree.unflatten(leaves)
        if not self.fixed:
            return args, kwargs
        fixed = dict(self.fixed)
        rest = iter(args)
        everything = [fixed[i] if i in fixed else next(rest) for i in range(self.num_args)]
        named = {key: value for key, value in self.fixed if isinstance(key, str)}
        return everything, kwargs | named

    def arrays(self) -> list[Any]:
        """Return the leaves as Arrays; host values are let in.

        Raises:
          TypeError: naming the first leaf that is not an array.
        """
        found = []
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, Array):
                found.append(leaf)
                continue
            if isinstance(leaf, BaseRef):
                found.append(leaf.lend())
                continue
            try:
                found.append(as_array(leaf))
            except TypeError:
                raise self._not_an_array(i, leaf) from None
            except OverflowError as error:
                name, signature = self.names()[i], self.signature
                raise OverflowError(
                    f"{signature.api}: the argument {name} of {signature.name}: {error}"
                ) from None
        return found

    def signature_without_static(self) -> Signature:
        """Return the signature of a function of the traced arguments alone."""
        signature, count = copy.copy(self.signature), self.num_args
        fixed = {where for where, _ in self.fixed}
        traced = [i for i in range(count) if i not in fixed]
        donated = [new for new, i in enumerate(traced) if signature.is_donated(i, count)]
        signature.static_nums, signature.static_names = (), frozenset()
        signature.donate_nums = tuple(donated)
        return signature

    def without_leaves(self) -> Arguments:
        """Return the same call without its arrays, to be kept."""
        return self.with_leaves([])

    def with_leaves(self, leaves: list[Any]) -> Arguments:
        """Return the same call of other leaves."""
        made = Arguments(self.signature, leaves, self.tree, self.fixed, self.statics, self.num_args)
        made.refs = self.refs
        return made

    def avals(self) -> list[Any]:
        """Return the abstract values of the leaves, which may be arrays or only describe some."""
        found = []
        for i, leaf in enumerate(self.leaves):
            if hasattr(leaf, "aval"):
                found.append(leaf.aval)
            elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
                found.append(
                    as_array(leaf).aval if hasattr(leaf, "__array__") else
                    shaped_array(tuple(leaf.shape), leaf.dtype)
                )  # fmt: skip
            else:
                try:
                    found.append(as_array(leaf).aval)
                except TypeError:
                    raise self._not_an_array(i, leaf) from None
        return found

    def _not_an_array(self, i: int, leaf: Any) -> TypeError:
        name, fun, api = self.names()[i], self.signature.name, self.signature.api
        refuse_masked(leaf, f"{api}: the argument {name} of {fun}")
        argument = name.split("[")[0].split(".")[0]
        static = f"if it is an option, make it static: static_argnames={argument!r}"
        hint = ";\n".join(filter(None, [suggest_registration(leaf), static]))
        if hasattr(leaf, "dtype"):
            hint = "NumPy arrays of numbers and booleans can be traced; convert it with .astype"
        return TypeError(message(
            api, f"the argument {name} of {fun} is not an array of numbers.",
            got=f"{described(leaf)}: {brief(leaf)}",
            expected="an Array, a NumPy array or a number, or a tree of them", hint=hint,
        ))  # fmt: skip

    def names(self) -> list[str]:
        """Return what the function calls each leaf: `params['w']`."""
        filler = self.tree.unflatten([0] * self.tree.num_leaves)
        paths: list[tuple[Any, Any]] = xtree.leaves_with_path(filler)
        return [self.name_of(path) for path, _ in paths]

    def name_of(self, path: Sequence[Any]) -> str:
        """Return what the function calls what lies at a path in its arguments."""
        if path[0].idx == 1:
            return str(path[1].key) + xtree.keystr(path[2:])
        fixed = {where for where, _ in self.fixed}
        position = [i for i in range(self.num_args) if i not in fixed][path[1].idx]
        return self.signature.argument_name(position) + xtree.keystr(path[2:])


def _integers(value: Any, option: str) -> tuple[int, ...]:
    if value is None:
        return ()
    found = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in found):
        raise TypeError(f"{option} must be an integer or several, got {value!r}.")
    return found


def _strings(value: Any, option: str) -> list[str]:
    if value is None:
        return []
    several = isinstance(value, Iterable) and not isinstance(value, str)
    found: Iterable[Any] = tuple(value) if several else (value,)
    if not all(isinstance(word, str) for word in found):
        raise TypeError(f"{option} must be a string or several, got {value!r}.")
    return list(found)


def own_parameters(fun: Callable[..., Any]) -> tuple[inspect.Parameter, ...] | None:
    """Return the parameters that a function really has, None where they cannot be told.

    One that stands for another (`functools.wraps`, `__signature__`) shows those of the other, but
    may treat what is passed by name otherwise than what is passed by position.
    """
    shown = fun
    while isinstance(shown, functools.partial):
        shown = shown.func
    if hasattr(shown, "__signature__"):
        return None
    return _parameters_of(fun, follow_wrapped=False)


def _parameters_of(
    fun: Callable[..., Any], *, follow_wrapped: bool = True
) -> tuple[inspect.Parameter, ...] | None:
    """Return the parameters of a function as it shows them, None where they cannot be told."""
    try:
        signature = inspect.signature(fun, follow_wrapped=follow_wrapped)
    except (TypeError, ValueError):
        return None
    return tuple(signature.parameters.values())


def _positional_names(parameters: Sequence[inspect.Parameter]) -> list[str]:
    """Return the names of the positional parameters, `*` for a variable number at the end."""
    names = [p.name for p in parameters
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    return [*names, "*"] if any(p.kind is p.VAR_POSITIONAL for p in parameters) else names


def _all_names(parameters: Sequence[inspect.Parameter] | None) -> frozenset[str] | None:
    """Return the names of all parameters, or None when the function takes any."""
    if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset([p.name for p in parameters])


def _check_named(
    option: str, names: Any, parameters: Sequence[inspect.Parameter] | None, fun: str
) -> None:
    """Raise a ValueError for the name of a parameter that is passed by position alone."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    nameless = {p.name for p in parameters or () if p.kind in kinds}
    for word in _strings(names, option):
        if word in nameless:
            raise ValueError(
                f"{option} names {word!r}, which {fun} takes by position alone."
                f"\n  hint      {option.split()[-1].replace('names', 'nums')}=... names positions"
            )


# -------------------------------------------------------------------------------------- operands
# Operands of programs from the arguments of a call: abstract values first, then buffers.
#
# NumPy arrays and Python numbers are looked up by their type and shape without becoming arrays;
# only when the program is known are they brought to its device.

# The kinds of arguments that the fast cases of calls know.
ARRAY, STATIC, DICT, TREE, HOST_TREE = "array", "static", "dict", "tree", "host tree"
NUMPY, NUMBER, ABSENT, UNKNOWN = "numpy", "number", "absent", "unknown"
# Trees of so many arrays, whose code names each of them; longer ones, and those of which calls pass
# several numbers of arrays, are of the kind TREE.
SMALL_TREES = tuple([f"tree of {count}" for count in range(17)])

_ONLY_ARRAYS = frozenset([ConcreteArray])
_STR_ONLY = frozenset([str])
_NUMBERS = frozenset([float, int, bool])
_values = config.values


def kind_of(x: Any) -> str:
    """Return the kind of an argument that is not static."""
    kind = type(x)
    if kind is ConcreteArray:
        return ARRAY
    if kind in _NUMBERS:
        return NUMBER
    if kind is np.ndarray or issubclass(kind, np.generic):
        return UNKNOWN if x.dtype == dtypes.float0 else NUMPY
    if kind is dict and x and _ONLY_ARRAYS.issuperset(map(type, x.values())):
        return DICT if _STR_ONLY.issuperset(map(type, x)) else TREE
    if not xtree.is_tree_node(kind):
        return UNKNOWN
    leaves = xtree.leaves(x)
    kinds = set(map(kind_of, leaves))
    if kinds <= {ARRAY}:
        return SMALL_TREES[len(leaves)] if len(leaves) < len(SMALL_TREES) else TREE
    return HOST_TREE if kinds <= {ARRAY, NUMPY, NUMBER} else UNKNOWN


def leaf_key(x: Any) -> Any:
    """Return what stands for the type of a leaf: arrays, NumPy arrays and numbers never agree."""
    kind = type(x)
    if kind is ConcreteArray:
        return x.aval
    if kind is np.ndarray or issubclass(kind, np.generic):
        return x.dtype, x.shape
    return kind


def tree_pool(
    leaves: Sequence[Any], avals: Sequence[xprim.ShapedArray], where: Any, *, kept: bool
) -> tuple[
    Callable[[list[Any]], list[gateway.PooledBuffer]], Callable[[list[gateway.PooledBuffer]], None]
]:
    """Return what brings the leaves of a tree to a placement, and what takes their memory back.

    Args:
      leaves: arrays and host values; the functions are for trees of such leaves.
      avals: the abstract values of their arrays.
      where: the placement.
      kept: as for `host_pool`.
    """
    pools = [
        (_present, None) if type(x) is ConcreteArray else host_pool(x, aval, where, kept=kept)
        for x, aval in zip(leaves, avals, strict=True)
    ]
    fills = [fill for fill, _ in pools]
    from_host = [(i, release) for i, (_, release) in enumerate(pools) if release is not None]

    def fill_all(leaves: list[Any]) -> list[gateway.PooledBuffer]:
        return [fill(x) for fill, x in zip(fills, leaves, strict=True)]

    def release_all(pooled: list[gateway.PooledBuffer]) -> None:
        for i, release in from_host:
            release(pooled[i])

    return fill_all, release_all


def _present(x: ConcreteArray) -> gateway.PooledBuffer:
    return None, x.buffer


def host_pool(x: Any, aval: xprim.ShapedArray, where: Any, *, kept: bool) -> gateway.BufferPool:
    """Return what brings a host value to a placement, and what takes its memory back.

    Args:
      x: a NumPy array or a number; the functions are for values of its type, shape and dtype.
      aval: the abstract value of its array.
      where: the placement.
      kept: whether the program may keep the memory (see `gateway.buffer_pool`).
    """
    fill, release = gateway.buffer_pool(aval.shape, aval.dtype, where, kept=kept)
    if type(x) in _NUMBERS or (x.dtype == aval.dtype and x.dtype.isnative):
        return fill, release
    return lambda value: fill(from_numpy(value).to_host()), release


def dict_reader(x: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """Return a function from a dict with the same keys to its values in the order of its leaves."""
    keys = sorted(x)
    return dict.values if keys == list(x) else operator.itemgetter(*keys)


# ------------------------------------------------------------------------------------ parameters
# The parameters of fronts: which a call leaves out, by what place it passes one, and their text.
#
# A front takes the parameters of the function it stands for, so what is passed by name and what
# is passed by position are one to it, and parameters with defaults may be absent.

Place = int | str
"""Where an argument of a call stands: its position, or its name."""

MAX_PARAMETERS = 32
NO_LEAVES = frozenset((STATIC, ABSENT))


class Absent:
    """The class of `ABSENT_VALUE`, the value of a parameter that a call leaves out."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_ABSENT"  # the name that written functions have for it


ABSENT_VALUE = Absent()


class Code(NamedTuple):
    """What a function is written from.

    Attributes:
      parameters: the text between the parentheses of its head.
      names: of the parameters.
      kinds: of the arguments.
      given: the text of the arguments of the long way.
      order: the numbers of the traced arguments, in the order of their leaves.
      is_front: whether users call it: it looks for specialised functions, and tries what the last
        call found first.
    """

    parameters: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    given: str
    order: tuple[int, ...]
    is_front: bool


class FixedParameters:
    """Parameters of which all calls have the same number, as the front of such calls has them.

    Args:
      names: of the front's parameters.
      places: where a call passes what they stand for.
      signature: says which of them are static and which donated.
      text: of the head of the front.
      has_defaults: whether a call may leave some of them out.
    """

    __slots__ = ("_order", "_positions", "donated", "has_defaults", "kinds", "names", "places",
                 "text")  # fmt: skip

    def __init__(
        self, names: Sequence[str], places: Sequence[Place], signature: Signature, *,
        text: str, count: int = 0, has_defaults: bool = False,
    ) -> None:  # fmt: skip
        self.names, self.places = tuple(names), list(places)
        self.kinds = tuple([STATIC if signature.is_static(p, count) else ARRAY for p in places])
        self.donated = frozenset(
            [i for i, p in enumerate(places) if signature.is_donated(p, count)])  # fmt: skip
        self._order = leaf_order(self.places, self.kinds)
        self._positions: dict[Any, int] = {name: i for i, name in enumerate(self.names)}
        self._positions |= {p: i for i, p in enumerate(places) if isinstance(p, str)}
        self.has_defaults = has_defaults
        self.text = text

    def code(self) -> Code:
        """Return what the front is written from."""
        given = text_of_arguments(self.names, self.places, self.kinds)
        if self.has_defaults:
            # Not a call with `*`, which takes of the C stack: jitted functions nest deep.
            left = f"_without_absent(({', '.join(self.names)},), {self.places!r}, {self.names!r})"
            given = f"(_given := {left})[0], _given[1]"
        return Code(self.text, self.names, self.kinds, given, self._order, True)

    def takes(self, places: Sequence[Place], kinds: Sequence[str]) -> bool:
        """Return whether the front itself takes such a call.

        That is one of arrays, with leaves in the order it has; a static argument may be absent.
        """
        fits = [kind is own or (kind is ABSENT and own is STATIC)
                for kind, own in zip(kinds, self.kinds, strict=True)]  # fmt: skip
        return all(fits) and leaf_order(places, self.kinds) == self._order

    def bind(
        self, places: Sequence[Place], values: Sequence[Any]
    ) -> tuple[list[Place], Sequence[Any]]:
        """Return place and value of each parameter of a call, `ABSENT_VALUE` for those left out."""
        found: list[Any] = [ABSENT_VALUE] * len(self.names)
        where = list(self.places)
        for place, value in zip(places, values, strict=True):
            i = place if isinstance(place, int) else self._positions[place]
            found[i], where[i] = value, place
        return where, found


def _text(parameters: Sequence[inspect.Parameter]) -> str:
    """Return the parameters of a front, which may each be absent where they have a default."""
    plain = [p.replace(annotation=p.empty) for p in parameters]
    absent = [p if p.default is p.empty else p.replace(default=ABSENT_VALUE) for p in plain]
    return str(inspect.Signature(absent))[1:-1]


def find_fixed_parameters(
    parameters: Sequence[inspect.Parameter] | None, signature: Signature
) -> FixedParameters | None:
    """Return the parameters, if they are few, none is variable, and a name says what a place does.

    The front passes what it got by name as what stands at its place.
    """
    if parameters is None or not 0 < len(parameters) <= MAX_PARAMETERS:
        return None
    if not all(map(_is_simple, parameters)):
        return None
    for i, p in enumerate(parameters):
        if p.kind is p.POSITIONAL_OR_KEYWORD and (
            signature.is_static(i, 0) != signature.is_static(p.name, 0)
            or signature.is_donated(i, 0) != signature.is_donated(p.name, 0)
        ):
            return None
    return FixedParameters(
        [p.name for p in parameters],
        [p.name if p.kind is p.KEYWORD_ONLY else i for i, p in enumerate(parameters)],
        signature,
        text=_text(parameters),
        has_defaults=any(p.default is not p.empty for p in parameters),
    )


def parameters_of_call(count: int, names: Sequence[str], signature: Signature) -> FixedParameters:
    """Return parameters for calls with `count` positional arguments, and others of these names.

    All are positional ones of the front, in the order of the call.
    """
    own = [f"a{i}" for i in range(count + len(names))]
    places = [*range(count), *names]
    return FixedParameters(own, places, signature, text=", ".join(own), count=count)


def _is_simple(p: inspect.Parameter) -> bool:
    return (
        p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name.isidentifier()
        and not keyword.iskeyword(p.name)
        and not p.name.startswith("_")  # as the names of the front's own do
    )


def parameters_named(
    num_positional: int, names: Iterable[str]
) -> tuple[inspect.Parameter, ...] | None:
    """Return parameters of a function that takes some by position and some by name, if it can."""
    names = sorted(names)
    positional = [f"a{i}" for i in range(num_positional)]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        return None
    if not set(names).isdisjoint(positional):
        return None
    kind = inspect.Parameter
    return (*[kind(name, kind.POSITIONAL_ONLY) for name in positional],
            *[kind(name, kind.KEYWORD_ONLY) for name in names])  # fmt: skip


def leaf_order(places: Sequence[Place], kinds: Sequence[str]) -> tuple[int, ...]:
    """Return the traced arguments in the order of their leaves: keywords last, and sorted."""
    traced = [i for i, kind in enumerate(kinds) if kind not in NO_LEAVES]
    return tuple(sorted(traced, key=lambda i: (isinstance(places[i], str), places[i])))


def without_absent(
    values: Sequence[Any], places: Sequence[int | str], names: Sequence[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments of a call that left out parameters."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for value, place, name in zip(values, places, names, strict=True):
        if value is ABSENT_VALUE:
            continue
        if place == len(args):
            args.append(value)
        else:
            kwargs[name] = value
    return tuple(args), kwargs


def text_of_arguments(names: Sequence[str], places: Sequence[Place], kinds: Sequence[str]) -> str:
    """Return the text of the two arguments of the long way, for variables of these names."""
    present = [
        (n, p) for n, p, kind in zip(names, places, kinds, strict=True) if kind is not ABSENT
    ]
    args = "".join([f"{name}, " for name, place in present if isinstance(place, int)])
    kwargs = ", ".join([f"{p!r}: {name}" for name, p in present if isinstance(p, str)])
    return f"({args}), {{{kwargs}}}"
