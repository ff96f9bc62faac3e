"""The fast case of a jitted function, as a function of exactly its parameters.

A call with arrays as positional arguments looks up (abstract values, options) in one dictionary,
starts the executable on the arguments' buffers and wraps the results. Arguments of other types
(trees of arrays, NumPy arrays, Python numbers) are looked up by their types first, which gives a
function written for these; what none of them knows goes to `slow`. Calling a function of fixed
parameters costs 0.3 us less than one of `*args`, an eighth of all that JAX takes for such a call,
so these functions are compiled from a template for the number of parameters and their kinds.

Neighbours: `jit` builds these, `calls` is the slow case and fills the dictionaries, `operands`
has the kinds.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import textwrap
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.operands import ARRAY, DICT, HOST_TREE, NUMBER, NUMPY, STATIC, TREE, leaf_key
from xjit.placement import Gone
from xjit.results import give_up_all
from xprim import EAGER, ConcreteArray, config, state
from xprim.array import is_shared
from xprim.static_keys import static_key
from xtree.locks import forkable_lock

_MAX_PARAMETERS = 12

_TEMPLATE = """
def make(fast, last, special_by_types, slow, failed, gone):
{prepared}
    def jitted({parameters}):
{specials}
        if _state.__dict__["trace"] is not _EAGER:
            return slow({arguments}, {{}})
        try:
            context = _values.__dict__["cached_context"]
{flatten}
{look_up}
{written}
            buffers = [{buffers}]
            if _several[0] and _elsewhere(buffers, where):
                return slow({arguments}, {{}})
            outs = start(buffers).consume_with_handlers(handlers)
        except _MISS:
            pass
        except _RuntimeFailure as error:
            failed(error)
        else:
{given_back}
{donated}
            if out_aval is None:
                return finish(outs)
            result = _new(_Array)
            result.aval = out_aval
            result._host = None
            result._buffer = outs[0]
            return result
        return slow({arguments}, {{}})
    return jitted
"""

_SPECIALS = """
        if special_by_types:
            special = special_by_types.get(({types}))
            if special is not None:
                return special({names})
"""

_LOOK_UP = """
            where, start, handlers, out_aval, finish{readers} = fast[{key}context,]
"""

# The memory that host values were written to is free again when the program is over: where a result
# is ready, as those of short programs are at once.
_GIVEN_BACK = """
            if outs and outs[0].is_ready():
{given_back}
"""

# Most functions are called with one kind of arrays: what the last call found is tried first.
_LOOK_AT_LAST = """
            {last}last_context, where, start, handlers, out_aval, finish = last[0]
            if not ({same}context is last_context):
                where, start, handlers, out_aval, finish = fast[{key}context,]
                last[0] = ({found}context, where, start, handlers, out_aval, finish)
"""

Slow = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Fast = dict[Any, tuple[Any, ...]]
Specials = dict[tuple[type, ...], Callable[..., Any]]


class Ways:
    """The short ways of one jitted function, all filled by the slow one.

    Args:
      static: the positions of static arguments.
      donated: the positions of donated arguments.
      failed: raises the error for a program that could not be started.
      gone: stands for the buffers of donated arguments.

    Attributes:
      fast: from (abstract values of the arguments, keys of static values, cached context) to
        (placement, function that starts the program, handlers of its results, abstract value of a
        single result or None, function from buffers to the result).
      last: one tuple, the key and the value that the last call found in `fast`.
      special_by_types: functions for positional arguments of certain types.
    """

    __slots__ = ("__weakref__", "donated", "failed", "fast", "fast_by_types", "gone", "is_plain",
                 "last", "_slow", "special_by_types", "static")  # fmt: skip

    _slow: Any

    def __init__(
        self, static: Sequence[int], donated: Sequence[int], failed: Callable[[Exception], Any],
        gone: Gone,
    ) -> None:  # fmt: skip
        self.static = frozenset(static)
        self.donated = frozenset(donated)
        self.failed = failed
        self.gone = gone
        self.is_plain = False
        self.fast: Fast = {}
        self.special_by_types: Specials = {}
        self.fast_by_types: dict[tuple[type, ...], tuple[tuple[str, ...], Fast]] = {}
        self.last: list[tuple[Any, ...]] = [()]
        with _lock:
            _all_ways.add(self)

    def clear(self) -> None:
        """Forget all programs."""
        self.fast.clear()
        self.last[0] = (None,) * len(self.last[0])
        self.special_by_types.clear()
        self.fast_by_types.clear()

    def function(self, fun: Callable[..., Any], slow: Slow) -> Callable[..., Any]:
        """Return the function that users call in place of `fun`.

        Args:
          fun: tells the parameters.
          slow: does every other call, from a tuple of arguments and a dict of keyword arguments.
        """
        self._slow = weakref.ref(slow)  # the function holds it, and it holds these ways
        names = _plain_parameters(fun)
        self.is_plain = names is not None
        if names is None:
            return _general(self, slow)
        kinds = tuple([STATIC if i in self.static else ARRAY for i in range(len(names))])
        self.last[0] = (None,) * (len(names) + 6)
        return self._made(names, kinds, self.fast, True, slow)

    def widened(self, args: Sequence[Any], kinds: Sequence[str]) -> tuple[str, ...]:
        """Return kinds for arguments that also fit those of such types that are known already."""
        known = self.fast_by_types.get(tuple(map(type, args)))
        if known is None:
            return tuple(kinds)
        return tuple([max(pair, key=_GENERALITY.index) if pair[0] in _GENERALITY else pair[1]
                      for pair in zip(known[0], kinds, strict=True)])  # fmt: skip

    def add(
        self, args: Sequence[Any], kinds: tuple[str, ...], key: tuple[Any, ...],
        entry: tuple[Any, ...], readers: Sequence[Any],
    ) -> None:  # fmt: skip
        """Have calls with such positional arguments take a short way.

        Args:
          args: the arguments.
          kinds: their kinds, `widened`.
          key: what stands for their values, as `key_of` gives it, and the options.
          entry: as the values of `fast`.
          readers: what reads those that are dicts (a function to the leaves), host values (two: to
            a cell, and one that takes it back) and trees with host values (two, for all leaves).
        """
        in_arrays = _PLAIN if self.is_plain else _GENERAL
        if in_arrays.issuperset(kinds) and (self.is_plain or not self.donated):
            self.fast[key] = entry
            return
        types = tuple(map(type, args))
        known, fast = self.fast_by_types.get(types, (None, {}))
        if known != kinds:
            if len(args) > _MAX_PARAMETERS or len(self.fast_by_types) >= _MAX_SPECIALS:
                return
            names = tuple([f"a{i}" for i in range(len(args))])
            fast = {}
            self.fast_by_types[types] = kinds, fast
            self.special_by_types[types] = self._made(names, kinds, fast, False, self._go_on)
        fast[key] = (*entry, *readers)

    @property
    def _go_on(self) -> Slow:
        """The long way, for functions that only the jitted function calls."""
        slow = self._slow

        def go_on(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return slow()(args, kwargs)

        return go_on

    def _made(
        self, names: tuple[str, ...], kinds: tuple[str, ...], fast: Fast, has_specials: bool,
        slow: Slow,
    ) -> Callable[..., Any]:  # fmt: skip
        make = _maker(names, kinds, self.donated, has_specials)
        made: Callable[..., Any] = make(
            fast, self.last, self.special_by_types, slow, self.failed, self.gone
        )
        return made


@config.when_changed
def _forget() -> None:
    """Forget what was found under other options; threads whose context is stale then look anew."""
    with _lock:
        for ways in list(_all_ways):
            ways.clear()


_lock = forkable_lock()
_all_ways: weakref.WeakSet[Ways] = weakref.WeakSet()
_MAX_SPECIALS = 64
_GENERALITY = (DICT, TREE, HOST_TREE)
_PLAIN, _GENERAL = frozenset((ARRAY, STATIC)), frozenset((ARRAY,))


def key_of(args: Sequence[Any], kinds: Sequence[str]) -> list[Any]:
    """Return what stands for the values of arguments in the keys of a short way."""
    parts: list[Any] = []
    for x, kind in zip(args, kinds, strict=True):
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


def _elsewhere(buffers: Sequence[Any], where: Any) -> bool:
    """Return whether a buffer is not at a placement (AttributeError: whether it is no buffer)."""
    for buffer in buffers:
        sharding = buffer._sharding
        if sharding is not where and type(sharding) is not _passing:
            return True
    return False


_passing = gateway.PassingSharding
# Types whose values stay what they are, so that the same object is the same value.
_CONSTANT = frozenset((bool, int, float, str, bytes, type(None)))
# TypeError: an argument that has no buffer yet; OverflowError: an integer that does not fit
_MISS = (KeyError, AttributeError, TypeError, OverflowError)
_NAMESPACE = {
    "_state": state,
    "_EAGER": EAGER,
    "_values": config.values,
    "_several": gateway.several_devices,
    "_elsewhere": _elsewhere,
    "_MISS": _MISS,
    "_RuntimeFailure": gateway.RuntimeFailure,
    "_Array": ConcreteArray,
    "_static_key": static_key,
    "_CONSTANT": _CONSTANT,
    "_NEVER": object(),
    "_flattener": xtree.flattener,
    "_leaf_key": leaf_key,
    "_are_strings": frozenset([str]).issuperset,
    "_give_up": give_up_all,
    "_is_shared": is_shared,
    "_new": object.__new__,  # and three stores: 0.05 us less than calling the class
}


def _plain_parameters(fun: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the names of the parameters, if all are positional, few, and without defaults."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return None
    names = tuple([p.name for p in parameters])
    plain = all(
        p.kind is p.POSITIONAL_OR_KEYWORD
        and p.default is p.empty
        and p.name.isidentifier()
        and not keyword.iskeyword(p.name)
        and p.name not in _RESERVED
        and not p.name.startswith(_PREFIXES)
        and p.name not in _NAMESPACE
        for p in parameters
    )
    return names if plain and 0 < len(names) <= _MAX_PARAMETERS else None


_PREFIXES = ("last_", "carry_", "back_", "cell_", "cells_", "read_", "keys_", "tree_", "leaves_",
             "flatten_")  # fmt: skip
_RESERVED = frozenset(
    ("fast", "special_by_types", "special", "slow", "failed", "gone", "context", "where", "start",
     "handlers", "out_aval", "finish", "buffers", "outs", "error", "result", "type", "last")
)  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _maker(
    names: tuple[str, ...], kinds: tuple[str, ...], donated: frozenset[int], has_specials: bool
) -> Callable[..., Any]:
    all_names = ", ".join(names)
    arguments = f"({all_names},)"
    types = "".join([f"type({name}), " for name in names])
    pairs_by_field = {
        field: [(_CODE[kind][field], x) for kind, x in zip(kinds, names, strict=True)]
        for field in _FIELDS
    }
    pairs_by_field["donated"] = [
        pair for i, pair in enumerate(pairs_by_field["donated"]) if i in donated
    ]
    code = {
        field: "".join([text.format(x=x, arguments=arguments) for text, x in pairs])
        for field, pairs in pairs_by_field.items()
    }
    text = _TEMPLATE.format(
        parameters=all_names,
        arguments=arguments,
        specials=_SPECIALS.format(types=types, names=all_names) if has_specials else "",
        prepared=textwrap.indent(code["prepared"], " " * 4),
        flatten=textwrap.indent(code["flatten"], " " * 12),
        written=textwrap.indent(code["written"], " " * 12),
        given_back=_GIVEN_BACK.format(given_back=textwrap.indent(code["given_back"], " " * 16))
        if code["given_back"]
        else "",
        look_up=(_LOOK_AT_LAST if has_specials else _LOOK_UP).format(**code),
        buffers=code["buffers"],
        donated=textwrap.indent(code["donated"], " " * 12),
    )
    namespace: dict[str, Any] = dict(_NAMESPACE)
    # The text holds only the template and identifiers, checked above.
    # A name in this folder, so that the frame is hidden; no such file, so that no line is shown.
    exec(compile(text, f"{__file__}-made", "exec"), namespace)
    return namespace["make"]  # type: ignore[no-any-return]


# What the template says about a parameter of each kind; `{x}` is its name.
_FIELDS = ("buffers", "donated", "flatten", "found", "given_back", "key", "last", "prepared",
           "readers", "same", "written")  # fmt: skip
_NOTHING = dict.fromkeys(_FIELDS, "")
_CARRIED = {
    "written": "cell_{x} = carry_{x}({x})\n",
    "buffers": "cell_{x}[1], ",
    "readers": ", carry_{x}, back_{x}",
    "given_back": "back_{x}(cell_{x})\n",
}
_FLATTENED = {
    "prepared": "flatten_{x} = _flattener()\n",
    "flatten": "leaves_{x}, tree_{x} = flatten_{x}({x})\n",
    "donated": "_give_up(leaves_{x}, gone)\n",
}
_CODE = {
    ARRAY: _NOTHING | {
        "key": "{x}.aval, ",
        "last": "last_{x}, ",
        "same": "{x}.aval is last_{x} and ",
        "found": "{x}.aval, ",
        "buffers": "{x}._buffer, ",
        "donated": """\
if {x}.aval.shape or not _is_shared({x}):
    {x}._host = None
    {x}._buffer = gone
else:
    {x}._buffer = None
""",
    },
    STATIC: _NOTHING | {
        "key": "_static_key({x}), ",
        "last": "last_{x}, ",
        "same": "{x} is last_{x} and ",
        "found": "{x} if type({x}) in _CONSTANT else _NEVER, ",
    },
    TREE: _NOTHING | _FLATTENED | {
        "key": "tree_{x}, *[leaf.aval for leaf in leaves_{x}], ",
        "buffers": "*[leaf._buffer for leaf in leaves_{x}], ",
    },
    HOST_TREE: _NOTHING | _FLATTENED | _CARRIED | {
        "key": "tree_{x}, *map(_leaf_key, leaves_{x}), ",
        "written": "cells_{x} = carry_{x}(leaves_{x})\n",
        "buffers": "*[cell[1] for cell in cells_{x}], ",
        "given_back": "back_{x}(cells_{x})\n",
    },
    DICT: _NOTHING | {
        "flatten": """\
keys_{x} = tuple({x})
if not _are_strings(map(type, keys_{x})):
    return slow({arguments}, {{}})
""",
        "key": "keys_{x}, *[leaf.aval for leaf in {x}.values()], ",
        "buffers": "*[leaf._buffer for leaf in read_{x}({x})], ",
        "readers": ", read_{x}",
        "donated": "_give_up({x}.values(), gone)\n",
    },
    NUMPY: _NOTHING | _CARRIED | {"key": "{x}.dtype, {x}.shape, "},
    NUMBER: _NOTHING | _CARRIED,
}  # fmt: skip


def _general(ways: Ways, slow: Slow) -> Callable[..., Any]:
    """Return the function for any parameters; the template, with the arguments as a tuple."""
    values, several = config.values, gateway.several_devices
    runtime_failure, fast, special_by_types = (
        gateway.RuntimeFailure, ways.fast, ways.special_by_types)  # fmt: skip
    failed = ways.failed

    def jitted(*args: Any, **kwargs: Any) -> Any:
        if kwargs or state.__dict__["trace"] is not EAGER:
            return slow(args, kwargs)
        if special_by_types:
            special = special_by_types.get(tuple(map(type, args)))
            if special is not None:
                return special(*args)
        try:
            key = (*[x.aval for x in args], values.__dict__["cached_context"])
            where, start, handlers, out_aval, finish = fast[key]
            buffers = [x._buffer for x in args]
            if several[0] and _elsewhere(buffers, where):
                return slow(args, kwargs)
            outs = start(buffers).consume_with_handlers(handlers)
        except _MISS:
            pass
        except runtime_failure as error:
            failed(error)
        else:
            return ConcreteArray(None, out_aval, outs[0]) if out_aval is not None else finish(outs)
        return slow(args, kwargs)

    return jitted
