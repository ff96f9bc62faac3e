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
    parameters_of_call,
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
      entries: as those of `Front`, and what reads the arguments of such a call.
    """

    function: Callable[..., Any]
    kinds: tuple[str, ...]
    entries: Entries


_MAX_SPECIALIZATIONS = 64
_MAX_SHAPES = 64


class Dispatcher:
    """The front of one compiled function. The long way of a call fills it.

    A function of fixed parameters has one `Front`; one of `*args` or `**kwargs` has one for each
    shape of a call, which is the number of positional arguments and the names of the others.

    Args:
      signature: says which arguments are static and which donated.
      deleted: stands for the buffers of donated arguments.
    """

    __slots__ = ("__weakref__", "_front", "_front_by_shape", "_slow", "deleted", "signature")

    _slow: Any

    def __init__(self, signature: Signature, deleted: DeletedBuffer) -> None:
        self.signature = signature
        self.deleted = deleted
        self._front: Front | None = None
        self._front_by_shape: dict[Any, Front] = {}
        forget_with_kernels(self)

    def clear(self) -> None:
        """Forget all programs."""
        self._front_by_shape.clear()
        if self._front is not None:
            self._front.clear()

    def function(
        self, slow: Slow, parameters: Sequence[inspect.Parameter] | None
    ) -> Callable[..., Any]:
        """Return the function that users call.

        Args:
          slow: does every other call, from a tuple of arguments and a dict of keyword arguments.
          parameters: of the function; None takes any.
        """
        self._slow = weakref.ref(slow)  # the function holds it, and it holds this
        fixed = fixed_parameters(parameters, self.signature)
        if fixed is None:
            return _function_of_any(self._front_by_shape, slow)
        self._front = Front(self, fixed)
        return self._front.written(slow)

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
          entry: as the values of `Front.entries`, whose placement is on one device.
        """
        try:
            if len(args) + len(kwargs) > MAX_PARAMETERS:
                raise Refusal(f"it has {len(args) + len(kwargs)} arguments")
            front = self._front or self._front_of_shape(len(args), tuple(kwargs))
            places: list[Place] = [*range(len(args)), *kwargs]
            front.add(places, [*args, *kwargs.values()], avals, context, entry)
        except Refusal as refusal:
            log_refusal("calls", self.signature.name, str(refusal))

    def _front_of_shape(self, count: int, names: tuple[str, ...]) -> Front:
        """Return the front of calls with so many positional arguments and others of these names."""
        shape = _shape(count, names)
        front = self._front_by_shape.get(shape)
        if front is None:
            if len(self._front_by_shape) >= _MAX_SHAPES:
                raise Refusal(f"there are calls with {_MAX_SHAPES} other numbers of arguments")
            front = Front(self, parameters_of_call(count, names, self.signature))
            front.function = front.written(self.go_on)
            self._front_by_shape[shape] = front
        return front

    @property
    def go_on(self) -> Slow:
        """The long way, for functions that only a front calls."""
        slow = self._slow

        def go_on(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return slow()(args, kwargs)

        return go_on


class Front:
    """The tables behind a function of fixed parameters that is written for calls of them.

    Args:
      dispatcher: of the compiled function.
      parameters: of its calls.

    Attributes:
      entries: from (abstract values of the arguments, keys of static values, cached context) to
        (placement, function that starts the program, handlers of its results, abstract value of a
        single result or None, function from buffers to the result), for arrays as arguments.
      specializations: by the types of the arguments.
      function: what `written` gave, where a front of any parameters calls it.
    """

    __slots__ = ("_deleted", "_go_on", "_inline_cache", "_parameters", "_signature", "entries",
                 "function", "specializations")  # fmt: skip

    function: Callable[..., Any]

    def __init__(self, dispatcher: Dispatcher, parameters: FixedParameters) -> None:
        self._signature, self._deleted = dispatcher.signature, dispatcher.deleted
        self._go_on = dispatcher.go_on
        self._parameters = parameters
        self.entries: Entries = {}
        self.specializations: dict[Any, Specialization] = {}
        self._inline_cache = [(None,) * (len(parameters.kinds) + 6)]

    def written(self, slow: Slow) -> Callable[..., Any]:
        """Return the function of the parameters; what it does not find goes to `slow`."""
        parameters = self._parameters
        return self._made(parameters.code(), self.entries, slow)

    def clear(self) -> None:
        """Forget all programs."""
        self.entries.clear()
        self.specializations.clear()
        self._forget_last()

    def _forget_last(self) -> None:
        self._inline_cache[0] = (None,) * len(self._inline_cache[0])

    def add(
        self, places: Sequence[Place], values: Sequence[Any], avals: Sequence[ShapedArray],
        context: Any, entry: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Have calls with such values at such places take the short way, or raise `Refusal`."""
        count = sum(isinstance(place, int) for place in places)
        places, values = self._parameters.bound(places, values)
        kinds = [self._kind(x, p, count) for x, p in zip(values, places, strict=True)]
        cached = state.options
        if cached[1] is not context:
            raise Refusal("the options have changed meanwhile")
        if self._parameters.takes(places, kinds):
            self.entries[*_key_of(values, self._parameters.kinds), cached] = entry
            self._forget_last()  # which may be the same call, at another placement
            return
        if type(entry[0]) is list and not _ON_DEVICES.issuperset(kinds):
            raise Refusal("a value from the host is spread over devices")
        found = self._specialization(places, values, kinds)
        donated = self._parameters.donated
        readers = _readers(values, places, found.kinds, avals, entry[0], donated)
        found.entries[*_key_of(values, found.kinds), cached] = (*entry, *readers)

    def _specialization(
        self, places: Sequence[Place], values: Sequence[Any], kinds: Sequence[str]
    ) -> Specialization:
        """Return what arguments of certain types and kinds go to."""
        types = tuple(map(type, values))
        known = self.specializations.get(types)
        if known is not None:
            kinds = _widened(known.kinds, kinds)
            if known.kinds == kinds:
                return known
        if len(self.specializations) >= _MAX_SPECIALIZATIONS:
            raise Refusal(f"there are {_MAX_SPECIALIZATIONS} for arguments of other types")
        names = self._parameters.names
        entries: Entries = {}
        code = Code(", ".join(names), names, tuple(kinds), given_text(names, places, kinds),
                    leaf_order(places, kinds), False)  # fmt: skip
        function = self._made(code, entries, self._go_on)
        made = self.specializations[types] = Specialization(function, code.kinds, entries)
        return made

    def _kind(self, x: Any, place: Place, count: int) -> str:
        if type(x) is Absent:
            return ABSENT
        kind = STATIC if self._signature.is_static(place, count) else kind_of(x)
        if kind is UNKNOWN:
            name = self._signature.argument_name(place)
            raise Refusal(f"the argument {name} is {described(x)}, or holds what is no array")
        return kind

    def _made(self, code: Code, entries: Entries, slow: Slow) -> Callable[..., Any]:
        made: Callable[..., Any] = function_maker(code, self._parameters.donated)(
            entries, self._inline_cache, self.specializations, slow, self._deleted
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


def _shape(count: int, names: tuple[str, ...]) -> Any:
    """Return what stands for the number of positional arguments and the names of the others."""
    return ((count, *names) if count else names) if names else count


def _function_of_any(front_by_shape: dict[Any, Front], slow: Slow) -> Callable[..., Any]:
    """Return the function for any parameters, which only knows the fronts of calls it has met."""
    find = front_by_shape.get

    def jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs:  # `_shape`, written out
                front = find((len(args), *kwargs) if args else tuple(kwargs))
                if front is not None:
                    return front.function(*args, *kwargs.values())
            else:
                front = find(len(args))
                if front is not None:
                    return front.function(*args)
            return slow(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    return jitted
