"""The arguments of a call of a compiled function: static and traced, donated, and their names.

`Signature` knows which arguments are static or donated, by position and by name, for a function's
parameters. `Arguments` is one call taken apart: the leaves of the traced arguments, their
structure, and the static values as a hashable key in which 1, 1.0 and True differ.

Neighbours: `jit` and `stages` use both.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import xtree
from xprim import Array, ShapedArray, as_array, config, shaped_array, state
from xprim.callables import name_of
from xprim.cells import Cell
from xprim.descriptions import brief, described
from xprim.errors import message
from xprim.host_memory import refuse_masked
from xprim.static_keys import static_key

__all__ = ()


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
        self.static_nums, self.static_names = self._resolved(
            "static", options["static_argnums"], options["static_argnames"], everything
        )
        self.donate_nums, self.donate_names = self._resolved(
            "donate", options["donate_argnums"], options["donate_argnames"], everything
        )
        self.donates = bool(self.donate_nums or self.donate_names)
        self.has_static = bool(self.static_nums or self.static_names)
        self.flatten = xtree.flattener()
        both = (self.static_names & self.donate_names) or (
            set(self.static_nums) & set(self.donate_nums))  # fmt: skip
        if both:
            raise ValueError(
                f"{api}: arguments of {self.name} cannot be both static and donated: "
                f"{sorted(both, key=str)}."
            )

    def _resolved(
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
        resolved = [self._checked_position(kind, i, count) for i in positions]
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

    def _checked_position(self, kind: str, i: int, count: int) -> int:
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
            return Arguments(self, leaves, tree, (), (), len(args))._with_cells_noted()
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
        return Arguments(self, leaves, tree, tuple(fixed), statics, len(args))._with_cells_noted()

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
            f"{self.api}", f"the static argument {name} of {self.name} is not hashable.",
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
      cells: the places among the leaves where a cell is, and the classes of the cells.
    """

    __slots__ = ("cells", "fixed", "leaves", "num_args", "signature", "statics", "tree")

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
        self.cells: tuple[tuple[int, type[Cell]], ...] = ()

    def _with_cells_noted(self) -> Arguments:
        self.cells = tuple([(i, type(x)) for i, x in enumerate(self.leaves) if isinstance(x, Cell)])
        return self

    def key(self, avals: Sequence[ShapedArray], *, in_axes: bool = False) -> tuple[Any, ...]:
        """Return what the trace of a call depends on, the abstract values third.

        Args:
          avals: of the leaves.
          in_axes: whether the named axes of now count, as they do inside transformations.
        """
        statics = (*self.statics, *self.cells) if self.cells else self.statics
        key = (self.tree, statics, tuple(avals), config.trace_context())
        axes = state.axis_sizes
        return (*key, tuple(axes.items())) if in_axes and axes else key

    def filled(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
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
          TypeError: naming the first leaf that is no array.
        """
        found = []
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, Array):
                found.append(leaf)
                continue
            if isinstance(leaf, Cell):
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
        made.cells = self.cells
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
        hint = f"if it is an option, make it static: static_argnames={argument!r}"
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
