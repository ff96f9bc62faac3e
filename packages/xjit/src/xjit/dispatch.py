"""The front of a compiled function: from the arguments of a call straight to its executable.

A call with arrays as positional arguments looks up (abstract values, options) in one dictionary,
starts the executable on the arguments' buffers and wraps the results. Arguments of other types
(trees of arrays, NumPy arrays, Python numbers) and calls that leave out parameters with defaults
are looked up by their types first, which gives a function specialised for these; what none of them
knows goes to the long way, which fills the tables. Calling a function of fixed parameters costs
0.3 us less than one of `*args`, an eighth of all that JAX takes for such a call, so these functions
are written for the parameters and their kinds.

Neighbours: `dispatch_code` writes the functions, `operands` has the kinds, `calls` and `stages` are
the long ways.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import xtree
from xjit.arguments import Signature
from xjit.deleted import DeletedBuffer
from xjit.dispatch_code import function_maker
from xjit.operands import (
    ABSENT,
    ARRAY,
    DICT,
    HOST_TREE,
    NUMBER,
    NUMPY,
    STATIC,
    TREE,
    UNKNOWN,
    dict_reader,
    host_pool,
    kind_of,
    leaf_key,
    tree_pool,
)
from xjit.parameters import (
    MAX_PARAMETERS,
    NO_LEAVES,
    Absent,
    Code,
    FixedParameters,
    Place,
    fixed_parameters,
    given_text,
    leaf_order,
)
from xprim import ShapedArray, state
from xprim.descriptions import described
from xprim.kernels import Refusal, forget_with_kernels, log_refusal
from xprim.static_keys import static_key
from xprim.tracebacks import shorten

__all__ = ()

Slow = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Entries = dict[Any, tuple[Any, ...]]


class Specialization(NamedTuple):
    """What calls with arguments of certain types go to.

    Attributes:
      function: of the values of all parameters; the long way does what it does not find.
      kinds: of the arguments.
      entries: as those of `Dispatcher`, and what reads the arguments of such a call.
    """

    function: Callable[..., Any]
    kinds: tuple[str, ...]
    entries: Entries


_MAX_SPECIALIZATIONS = 64


class Dispatcher:
    """The front of one compiled function. The long way of a call fills it.

    Args:
      signature: says which arguments are static and which donated.
      deleted: stands for the buffers of donated arguments.

    Attributes:
      entries: from (abstract values of the arguments, keys of static values, cached context) to
        (placement, function that starts the program, handlers of its results, abstract value of a
        single result or None, function from buffers to the result), for arrays as arguments.
      specializations: by the types of the arguments.
    """

    __slots__ = ("__weakref__", "_inline_cache", "_parameters", "_slow", "entries",
                 "deleted", "signature", "specializations")  # fmt: skip

    _slow: Any

    def __init__(self, signature: Signature, deleted: DeletedBuffer) -> None:
        self.signature = signature
        self.deleted = deleted
        self.entries: Entries = {}
        self.specializations: dict[Any, Specialization] = {}
        self._inline_cache: list[tuple[Any, ...]] = [()]
        self._parameters: FixedParameters | None = None
        forget_with_kernels(self)

    def clear(self) -> None:
        """Forget all programs."""
        self.entries.clear()
        self.specializations.clear()
        self._forget_last()

    def _forget_last(self) -> None:
        self._inline_cache[0] = (None,) * len(self._inline_cache[0])

    def function(
        self, slow: Slow, parameters: Sequence[inspect.Parameter] | None
    ) -> Callable[..., Any]:
        """Return the function that users call.

        Args:
          slow: does every other call, from a tuple of arguments and a dict of keyword arguments.
          parameters: of the function; None takes any.
        """
        self._slow = weakref.ref(slow)  # the function holds it, and it holds this
        fixed = self._parameters = fixed_parameters(parameters, self.signature)
        if fixed is None:
            return _function_of_any(self, slow)
        self._inline_cache[0] = (None,) * (len(fixed.kinds) + 6)
        return self._made(fixed.code(), self._donated(fixed.places), self.entries, slow)

    def add(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], avals: Sequence[ShapedArray],
        context: Any, entry: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Have calls with such arguments take the short way; where it has none, say so in the log.

        Args:
          args: the positional arguments.
          kwargs: the keyword arguments.
          avals: the abstract values of the leaves.
          context: the options of this thread when it was called.
          entry: as the values of `entries`, whose placement is on one device.
        """
        try:
            self._add(args, kwargs, avals, context, entry)
        except Refusal as refusal:
            log_refusal("calls", self.signature.name, str(refusal))

    def _add(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], avals: Sequence[ShapedArray],
        context: Any, entry: tuple[Any, ...],
    ) -> None:  # fmt: skip
        places: list[Place] = [*range(len(args)), *kwargs]
        values: Sequence[Any] = [*args, *kwargs.values()]
        if len(values) > MAX_PARAMETERS:
            raise Refusal(f"it has {len(values)} arguments")
        types: tuple[Any, ...] = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        fixed = self._parameters
        if fixed is not None:
            places, values = fixed.bound(places, values)
            types = tuple(map(type, values))
        kinds = [self._kind(x, p, len(args)) for x, p in zip(values, places, strict=True)]
        cached = state.options
        if cached[1] is not context:
            raise Refusal("the options have changed meanwhile")
        if fixed is not None and fixed.takes(places, kinds):
            self.entries[*_key_of(values, fixed.kinds), cached] = entry
            self._forget_last()  # which may be the same call, at another placement
            return
        donated = self._donated(places, len(args))
        if type(entry[0]) is list and not _ON_DEVICES.issuperset(kinds):
            raise Refusal("a value from the host is spread over devices")
        found = self._specialization(types, places, values, kinds, donated)
        readers = _readers(values, places, found.kinds, avals, entry[0], donated)
        found.entries[*_key_of(values, found.kinds), cached] = (*entry, *readers)

    def _specialization(
        self, types: Any, places: Sequence[Place], values: Sequence[Any], kinds: Sequence[str],
        donated: frozenset[int],
    ) -> Specialization:  # fmt: skip
        """Return what arguments of certain types and kinds go to."""
        known = self.specializations.get(types)
        if known is not None:
            kinds = _widened(known.kinds, kinds)
            if known.kinds == kinds:
                return known
        if len(self.specializations) >= _MAX_SPECIALIZATIONS:
            raise Refusal(f"there are {_MAX_SPECIALIZATIONS} for arguments of other types")
        names = tuple([f"a{i}" for i in range(len(values))])
        entries: Entries = {}
        code = Code(", ".join(names), names, tuple(kinds), given_text(names, places, kinds),
                    leaf_order(places, kinds), False)  # fmt: skip
        function = self._made(code, donated, entries, self._go_on)
        made = self.specializations[types] = Specialization(function, code.kinds, entries)
        return made

    def _kind(self, x: Any, place: Place, count: int) -> str:
        if type(x) is Absent:
            return ABSENT
        kind = STATIC if self.signature.is_static(place, count) else kind_of(x)
        if kind is UNKNOWN:
            name = self.signature.argument_name(place)
            raise Refusal(f"the argument {name} is {described(x)}, or holds what is no array")
        return kind

    @property
    def _go_on(self) -> Slow:
        """The long way, for functions that only the front calls."""
        slow = self._slow

        def go_on(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return slow()(args, kwargs)

        return go_on

    def _donated(self, places: Sequence[Place], count: int = 0) -> frozenset[int]:
        signature = self.signature
        return frozenset([i for i, p in enumerate(places) if signature.is_donated(p, count)])

    def _made(
        self, code: Code, donated: frozenset[int], entries: Entries, slow: Slow
    ) -> Callable[..., Any]:
        made: Callable[..., Any] = function_maker(code, donated)(
            entries, self._inline_cache, self.specializations, slow, self.deleted
        )
        return made


def _widened(known: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """Return kinds that fit the arguments of both."""
    return tuple([max(pair, key=_GENERALITY.index) if pair[0] in _GENERALITY else pair[1]
                  for pair in zip(known, kinds, strict=True)])  # fmt: skip


_GENERALITY = (DICT, TREE, HOST_TREE)
_ON_DEVICES = frozenset((ARRAY, DICT, TREE, STATIC, ABSENT))


def _readers(
    values: Sequence[Any], places: Sequence[Place], kinds: Sequence[str],
    avals: Sequence[ShapedArray], where: Any, donated: frozenset[int],
) -> list[Any]:  # fmt: skip
    """Return what reads the dicts and host values among the arguments, for an entry.

    That is a function to the leaves for a dict, and two (to a pooled buffer, and one that takes it
    back) for a host value, or all leaves of a tree with some.
    """
    leaves = [() if kind in NO_LEAVES else xtree.leaves(x)
              for x, kind in zip(values, kinds, strict=True)]  # fmt: skip
    avals_of: dict[int, Sequence[ShapedArray]] = {}
    start = 0
    for i in leaf_order(places, kinds):
        avals_of[i] = avals[start : start + len(leaves[i])]
        start += len(leaves[i])
    readers: list[Any] = []
    for i, (x, kind) in enumerate(zip(values, kinds, strict=True)):
        if kind is DICT:
            readers.append(dict_reader(x))
        elif kind is HOST_TREE:
            readers += tree_pool(leaves[i], avals_of[i], where, kept=i in donated)
        elif kind is NUMPY or kind is NUMBER:
            readers += host_pool(x, avals_of[i][0], where, kept=i in donated)
    return readers


def _key_of(values: Sequence[Any], kinds: Sequence[str]) -> list[Any]:
    """Return what stands for the values of arguments in the keys of entries."""
    parts: list[Any] = []
    for x, kind in zip(values, kinds, strict=True):
        if kind is STATIC:
            parts.append(static_key(x))
        elif kind is ARRAY:
            parts.append(x.aval)
        elif kind is NUMPY:
            parts += (x.dtype, x.shape)
        elif kind is DICT:
            parts += (tuple(x), *[leaf.aval for leaf in x.values()])
        elif kind is TREE:
            leaves, tree = xtree.flatten(x)
            parts += (tree, *[leaf.aval for leaf in leaves])
        elif kind is HOST_TREE:
            leaves, tree = xtree.flatten(x)
            parts += (tree, *map(leaf_key, leaves))
    return parts


def _function_of_any(dispatcher: Dispatcher, slow: Slow) -> Callable[..., Any]:
    """Return the front for any parameters, which only knows specialised functions."""
    find = dispatcher.specializations.get

    def jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs:
                named = kwargs.values()
                special = find((*map(type, args), *kwargs, *map(type, named)))
                return slow(args, kwargs) if special is None else special.function(*args, *named)
            special = find(tuple(map(type, args)))
            return slow(args, kwargs) if special is None else special.function(*args)
        except Exception as error:
            shorten(error)
            raise

    return jitted
