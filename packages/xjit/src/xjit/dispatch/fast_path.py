"""The fast path of a compiled function: from the arguments of a call straight to its executable.

The code of a fast path is generated for the parameters of the function; results become arrays
here, and buffers that were donated or deleted are marked.
"""

from __future__ import annotations

import functools
import inspect
import operator
import textwrap
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.dispatch.arguments import (
    ABSENT,
    ABSENT_VALUE,
    ARRAY,
    DICT,
    HOST_TREE,
    MAX_PARAMETERS,
    NO_LEAVES,
    NUMBER,
    NUMPY,
    SMALL_TREES,
    STATIC,
    TREE,
    UNKNOWN,
    Absent,
    Code,
    FixedParameters,
    Place,
    Signature,
    dict_reader,
    find_fixed_parameters,
    host_pool,
    kind_of,
    leaf_key,
    leaf_order,
    parameters_of_call,
    text_of_arguments,
    tree_pool,
    without_absent,
)
from xprim import EAGER, ConcreteArray, ShapedArray, state
from xprim.array import is_shared
from xprim.errors import described, message
from xprim.kernels import Refusal, forget_with_kernels, log_refusal
from xprim.key_uses import may_be_key, note_again
from xprim.static_keys import static_key
from xprim.tracebacks import shorten
from xtree.generated_code import define_function
from xtree.records import has_equality_of_identity

__all__ = ()


# --------------------------------------------------------------------------------------- deleted
# Arrays whose memory was given up: what stands in their place, and the error of using one.


class DeletedBuffer:
    """Stands for the buffer of an array that was donated or deleted; says so when it is read.

    Args:
      why: what happened to it.
      array_text: the shape and dtype of the array, "" for one that stands for several.
    """

    __slots__ = ("array_text", "why")
    committed = False
    _sharding = None  # no placement: the front of a compiled function turns to the long way

    def __init__(self, why: str, array_text: str = "") -> None:
        self.why = why
        self.array_text = array_text


def raise_deleted(array_text: str, buffer: DeletedBuffer) -> NoReturn:
    """Raise the error for an array whose memory was given up.

    Args:
      array_text: its shape and dtype, "" where they are not known.
      buffer: what stands for its memory.
    """
    hint = "use what the call returns, x = f(x), or leave the argument out of donate_argnums"
    raise RuntimeError(message(
        "Array has been deleted" + (f" with shape={array_text}" if array_text else ""),
        f"it {buffer.why}.",
        hint=hint if "donated" in buffer.why else "",
    ))  # fmt: skip


def give_up(x: ConcreteArray, deleted: DeletedBuffer) -> None:
    """Take an array's value away, but not from one that stands for a number everywhere."""
    if is_shared(x):
        x.buffer = None
    else:
        x.host, x.buffer = None, deleted


def give_up_all(arrays: Sequence[Any], deleted: DeletedBuffer) -> None:
    """Take the values from arrays that were donated; NumPy arrays among them were copied."""
    for x in arrays:
        if type(x) is ConcreteArray:
            give_up(x, deleted)


# --------------------------------------------------------------------------------- dispatch code
# The code that fronts of compiled functions are written from, and that of results without a loop.
#
# `function_maker` fills the template of a call for the parameters of a function and the kinds of
# the arguments. All names of the template begin with an underscore; those of the parameters do
# not.

_TEMPLATE = """
def make(_entries, _inline_cache, _specializations, _slow, _deleted):
{prepared}
    def jitted({parameters}):
        try:
{body}
        except Exception as _error:
            _shorten(_error)
            raise
    return jitted
"""

_BODY = """
{specializations}
        _now = _state.__dict__
        if _now["trace"] is not _EAGER:
            return _slow({given})
        try:
            _context = _now["options"]
{flatten}
{look_up}
{written}
            _buffers = [{buffers}]
            if _several[0] and _is_elsewhere(_buffers, _where):
                return _slow({given})
            _outs = _start(_buffers).consume_with_handlers(_handlers)
        except _MISS:
            pass
        else:
{released}
{donated}
{noted}
            if _out_aval is None:
                return _finish(_outs)
            _result = _new(_Array)
            _result.aval = _out_aval
            _result.host = None
            _result.buffer = _outs[0]
            _result.first_use = None
            return _result
        return _slow({given})
"""

_SPECIALIZATIONS = """
        if _specializations:
            _special = _specializations.get(({types}))
            if _special is not None:
                return _special[0]({names})
"""

# How the keys among the arguments are noted. Where each argument is one array, `_keys` has a mark
# or None for each, and no loop is needed, which would take a hundredth of a short call.
_NOTE_KEYS = """
            if _keys:
                {marks} = _keys
{noted}
"""
_NOTE_KEY = """
                if _mark_{x} is not None:
                    if {x}.first_use is None:
                        {x}.first_use = _mark_{x}[1]
                    else:
                        _note_again({x}, _mark_{x}[2])
"""
_NOTE_KEYS_OF_TREES = """
            if _keys:
                _arrays = ({arrays})
                for _number, _mark, _use in _keys:
                    _key = _arrays[_number]
                    if _key.first_use is None:
                        _key.first_use = _mark
                    else:
                        _note_again(_key, _use)
"""

_LOOK_UP = """
            _where, _start, _handlers, _out_aval, _finish, _keys{readers} = _entries[{key}_context,]
"""

# Most functions are called with one kind of arrays: what the last call found is tried first.
_LOOK_IN_INLINE_CACHE = """
            {last}_last_context, _where, _start, _handlers, _out_aval, _finish, _keys = (
                _inline_cache[0])
            if not ({same}_context is _last_context):
                _where, _start, _handlers, _out_aval, _finish, _keys = _entries[{key}_context,]
                _inline_cache[0] = (
                    {found}_context, _where, _start, _handlers, _out_aval, _finish, _keys)
"""

# The memory that host values were written to is free again when the program is over: where a result
# is ready, as those of short programs are at once.
_RELEASE = """
            if _outs and _outs[0].is_ready():
{released}
"""

# What the template says about a parameter of each kind; `{x}` is its name.
_FIELDS = ("arrays", "buffers", "donated", "flatten", "found", "released", "key", "last",
           "prepared", "readers", "same", "written")  # fmt: skip
_NOTHING = dict.fromkeys(_FIELDS, "")
_POOLED = {
    "arrays": "{x}, ",
    "written": "_pooled_{x} = _fill_{x}({x})\n",
    "buffers": "_pooled_{x}[1], ",
    "readers": ", _fill_{x}, _release_{x}",
    "released": "_release_{x}(_pooled_{x})\n",
}
_FLATTENED = {
    "prepared": "_flatten_{x} = _flattener()\n",
    "flatten": "_leaves_{x}, _tree_{x} = _flatten_{x}({x})\n",
    "donated": "_give_up(_leaves_{x}, _deleted)\n",
}


def _small_tree(count: int) -> dict[str, str]:
    """Return what the template says about a tree of so many arrays."""
    leaves = [f"_leaf{i}_{{x}}" for i in range(count)]
    return _NOTHING | _FLATTENED | {
        "flatten": f"""\
{_FLATTENED["flatten"]}\
if len(_leaves_{{x}}) != {count}:
    return _slow({{given}})
[{", ".join(leaves)}] = _leaves_{{x}}
""",
        "key": "_tree_{x}, " + "".join([f"{leaf}.aval, " for leaf in leaves]),
        "arrays": "".join([f"{leaf}, " for leaf in leaves]),
        "buffers": "".join([f"{leaf}.buffer, " for leaf in leaves]),
    }  # fmt: skip


_CODE = {
    ABSENT: _NOTHING,
    ARRAY: _NOTHING | {
        "key": "{x}.aval, ",
        "last": "_last_{x}, ",
        "same": "{x}.aval is _last_{x} and ",
        "found": "{x}.aval, ",
        "arrays": "{x}, ",
        "buffers": "{x}.buffer, ",
        "donated": """\
if {x}.aval.shape or not _is_shared({x}):
    {x}.host = None
    {x}.buffer = _deleted
else:
    {x}.buffer = None
""",
    },
    STATIC: _NOTHING | {
        "key": "_static_key({x}), ",
        "last": "_last_{x}, _type_of_{x}, ",
        "same": "{x} is _last_{x} and type({x}) is _type_of_{x} and ",
        "found": "{x} if _is_constant(type({x})) else _NEVER, type({x}), ",
    },
    TREE: _NOTHING | _FLATTENED | {
        "key": "_tree_{x}, *[_leaf.aval for _leaf in _leaves_{x}], ",
        "arrays": "*_leaves_{x}, ",
        "buffers": "*[_leaf.buffer for _leaf in _leaves_{x}], ",
    },
    HOST_TREE: _NOTHING | _FLATTENED | _POOLED | {
        "key": "_tree_{x}, *map(_leaf_key, _leaves_{x}), ",
        "written": "_pooled_{x} = _fill_{x}(_leaves_{x})\n",
        "arrays": "*_leaves_{x}, ",
        "buffers": "*[_buffer[1] for _buffer in _pooled_{x}], ",
        "released": "_release_{x}(_pooled_{x})\n",
    },
    DICT: _NOTHING | {
        "flatten": """\
_keys_{x} = tuple({x})
if not _are_strings(map(type, _keys_{x})):
    return _slow({given})
""",
        "key": "_keys_{x}, *[_leaf.aval for _leaf in {x}.values()], ",
        "arrays": "*_read_{x}({x}), ",
        "buffers": "*[_leaf.buffer for _leaf in _read_{x}({x})], ",
        "readers": ", _read_{x}",
        "donated": "_give_up({x}.values(), _deleted)\n",
    },
    **{kind: _small_tree(count) for count, kind in enumerate(SMALL_TREES)},
    NUMPY: _NOTHING | _POOLED | {"key": "{x}.dtype, {x}.shape, "},
    NUMBER: _NOTHING | _POOLED,
}  # fmt: skip


@functools.lru_cache(maxsize=1024)
def function_maker(code: Code, donated: frozenset[int]) -> Callable[..., Any]:
    """Return a function that makes a front or a specialised function.

    Args:
      code: what it is written from.
      donated: the numbers of the donated arguments.

    Returns:
      A function of the entries, the inline cache, the specialised functions by types, the long way,
      and what stands for the buffers of donated arguments.
    """
    filled = {field: [_CODE[kind][field].format(x=x, given=code.given)
                      for kind, x in zip(code.kinds, code.names, strict=True)]
              for field in _FIELDS}  # fmt: skip
    for field in ("arrays", "buffers"):
        filled[field] = [filled[field][i] for i in code.order]
    filled["donated"] = [text for i, text in enumerate(filled["donated"]) if i in donated]
    text_by_field = {field: "".join(texts) for field, texts in filled.items()}
    types = "".join([f"type({name}), " for name in code.names])
    released = textwrap.indent(text_by_field["released"], " " * 16)
    body = _BODY.format(
        given=code.given,
        specializations=_SPECIALIZATIONS.format(types=types, names=", ".join(code.names))
        if code.is_front
        else "",
        flatten=textwrap.indent(text_by_field["flatten"], " " * 12),
        written=textwrap.indent(text_by_field["written"], " " * 12),
        released=_RELEASE.format(released=released) if released else "",
        look_up=(_LOOK_IN_INLINE_CACHE if code.is_front else _LOOK_UP).format(**text_by_field),
        noted=_code_that_notes(code, text_by_field["arrays"]),
        buffers=text_by_field["buffers"],
        donated=textwrap.indent(text_by_field["donated"], " " * 12),
    )
    text = _TEMPLATE.format(
        parameters=code.parameters,
        prepared=textwrap.indent(text_by_field["prepared"], " " * 4),
        body=textwrap.indent(body, " " * 4),
    )
    # The text holds only the template, names of parameters, and names of keywords as literals.
    return _generate("make", text)


_PLAIN = frozenset([ARRAY, STATIC, ABSENT])


def _code_that_notes(code: Code, arrays: str) -> str:
    """Return the text that notes the keys among the arguments; `arrays` is that of all leaves."""
    names = [code.names[i] for i in code.order if code.kinds[i] is ARRAY]
    if not _PLAIN.issuperset(code.kinds):
        return _NOTE_KEYS_OF_TREES.format(arrays=arrays)
    if not names:
        return ""
    return _NOTE_KEYS.format(
        marks="".join([f"_mark_{x}, " for x in names]),
        noted="".join([_NOTE_KEY.format(x=x) for x in names]),
    )


def _marks_of_code(marks: Sequence[Any], kinds: Sequence[str]) -> Sequence[Any]:
    """Return marks of keys by argument, as the code for such kinds of arguments has them."""
    if not marks or not _PLAIN.issuperset(kinds):
        return marks
    mark_by_number = {mark[0]: mark for mark in marks}
    return tuple([mark_by_number.get(k) for k in range(list(kinds).count(ARRAY))])


def unroll_wrap(count: int) -> Callable[..., list[ConcreteArray]]:
    """Return a function from so many buffers and abstract values to arrays, without a loop."""
    buffers, kinds, arrays = [[f"{c}{i}" for i in range(count)] for c in "bax"]
    lines = [
        "def wrap(outs, avals):",
        f" [{', '.join(buffers)}], [{', '.join(kinds)}] = outs, avals",
        *[
            f" {x} = _new(_Array); {x}.aval = {aval}; {x}.host = None; {x}.buffer = {buffer}"
            for x, aval, buffer in zip(arrays, kinds, buffers, strict=True)
        ],
        f" return [{', '.join(arrays)}]",
    ]
    return _generate("wrap", "\n".join(lines))


def _generate(name: str, text: str) -> Callable[..., Any]:
    function: Callable[..., Any] = define_function(name, text, _NAMESPACE, home=__file__)
    return function


def is_elsewhere(buffers: Sequence[Any], where: Any) -> bool:
    """Return whether a buffer is not at a placement (AttributeError: whether it is not a buffer).

    Args:
      buffers: of the arguments.
      where: the sharding object of all, or a list with one for each.
    """
    if type(where) is list:
        found = [buffer._sharding for buffer in buffers]
        return any(map(operator.is_not, found, where)) and not all(
            here is wanted or (type(here) is _SpreadOver and alike(here, wanted, buffer.aval.ndim))
            for here, wanted, buffer in zip(found, where, buffers, strict=True)
        )
    there = not where.committed
    for buffer in buffers:
        sharding = buffer._sharding
        if sharding is where or type(sharding) is _passing:
            there = True
        elif sharding.committed or sharding._device is not where._device:
            return True
    return not there  # results are committed where an argument is


_passing, _SpreadOver, alike = gateway.PassingSharding, gateway.SpreadOver, gateway.alike
# Then the long way is taken, which says what is wrong, if something is. TypeError: an argument that
# has no buffer yet; OverflowError: an integer that does not fit; a failure of the runtime: a buffer
# that is donated twice, or no memory.
_MISS = (KeyError, AttributeError, TypeError, OverflowError, gateway.RuntimeFailure)
_CONSTANT = frozenset((bool, int, float, str, bytes, type(None), Absent))


def _is_constant(kind: type) -> bool:
    """Return whether the same object of a type is the same static value, whatever happens to it."""
    return kind in _CONSTANT or has_equality_of_identity(kind)


_NAMESPACE: dict[str, Any] = {
    "_state": state,
    "_EAGER": EAGER,
    "_several": gateway.several_devices,
    "_is_elsewhere": is_elsewhere,
    "_MISS": _MISS,
    "_shorten": shorten,
    "_Array": ConcreteArray,
    "_ABSENT": ABSENT_VALUE,
    "_without_absent": without_absent,
    "_static_key": static_key,
    "_is_constant": _is_constant,
    "_NEVER": object(),
    "_flattener": xtree.flattener,
    "_leaf_key": leaf_key,
    "_are_strings": frozenset([str]).issuperset,
    "_give_up": give_up_all,
    "_is_shared": is_shared,
    "_note_again": note_again,
    "_new": object.__new__,  # and four stores: 0.05 us less than calling the class
}


# --------------------------------------------------------------------------------------- results
# Results of programs: from the runtime's buffers to the tree of arrays that the caller gets.
#
# `finisher` makes, once for each program, the function that does this; the common shapes of
# results (one array, a pair, a flat tuple or dict, anything else) each have their shortest way.

Finish = Callable[[list[Any]], Any]

_new = object.__new__  # and four stores: 0.05 us less than calling the class


def finisher(out_tree: Any, avals: Sequence[ShapedArray]) -> Finish:
    """Return a function from buffers to the result of a call.

    Args:
      out_tree: structure of the result.
      avals: the abstract values of its leaves.
    """
    avals = tuple(avals)
    data = out_tree.node_data()
    if data is None:
        return _one(avals[0])
    flat = all(child.node_data() is None for child in out_tree.children())
    if flat and data[0] is tuple and len(avals) == 2:
        return _pair(*avals)
    keys = [k for k, aval in enumerate(avals) if may_be_key(aval)]
    wrap = _wrap_with_keys(keys) if keys else wrap_buffers
    if flat and data[0] is tuple:
        return lambda outs: tuple(wrap(outs, avals))
    if flat and data[0] is dict:
        return lambda outs: dict(zip(data[1], wrap(outs, avals), strict=True))
    unflatten = out_tree.unflatten
    return lambda outs: unflatten(wrap(outs, avals))


def wrap_buffers(outs: Sequence[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
    """Return arrays of these buffers, as many as there are abstract values."""
    count = len(outs)
    unrolled = _unrolled_by_count.get(count)
    if unrolled is not None:
        return unrolled(outs, avals)
    _note_use(count)
    new, kind = _new, ConcreteArray
    results = []
    for out, aval in zip(outs, avals, strict=True):
        x = new(kind)
        x.aval = aval
        x.host = None
        x.buffer = out
        results.append(x)
    return results


# Code without a loop saves a third of the time. To compile it takes 40 us for each array.
_USES_BEFORE_COMPILING = 128
_MOST_ARRAYS = 256
# Code that wraps so many results.
_unrolled_by_count: dict[int, Callable[..., list[ConcreteArray]]] = {}
# How often so many results were wrapped.
_uses_by_count: dict[int, int] = {}


def _note_use(count: int) -> None:
    uses = _uses_by_count[count] = _uses_by_count.get(count, 0) + 1
    if uses == _USES_BEFORE_COMPILING and 1 < count <= _MOST_ARRAYS:
        _unrolled_by_count[count] = unroll_wrap(count)


def _wrap_with_keys(
    numbers: Sequence[int],
) -> Callable[[Sequence[Any], Sequence[ShapedArray]], list[ConcreteArray]]:
    """Return a `wrap_buffers` for results of which some may be keys, which have no use."""

    def wrap(outs: Sequence[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        results = wrap_buffers(outs, avals)
        for k in numbers:
            results[k].first_use = None
        return results

    return wrap


def _one(aval: ShapedArray) -> Finish:
    return lambda outs: ConcreteArray(None, aval, outs[0])


def _pair(aval_x: ShapedArray, aval_y: ShapedArray) -> Finish:
    new, kind = _new, ConcreteArray
    has_keys = may_be_key(aval_x) or may_be_key(aval_y)

    def finish(outs: list[Any]) -> tuple[ConcreteArray, ConcreteArray]:
        x, y = new(kind), new(kind)
        x.aval, y.aval = aval_x, aval_y
        x.host = y.host = None
        x.buffer, y.buffer = outs
        if has_keys:
            x.first_use = y.first_use = None
        return x, y

    return finish


# -------------------------------------------------------------------------------------- dispatch
# The front of a compiled function: from the arguments of a call straight to its executable.
#
# A call with arrays as positional arguments looks up (abstract values, options) in one
# dictionary, starts the executable on the arguments' buffers and wraps the results. Arguments of
# other types (trees of arrays, NumPy arrays, Python numbers) and calls that leave out parameters
# with defaults are looked up by their types first, which gives a function specialised for these;
# what none of them knows goes to the long way, which fills the tables. Calling a function of
# fixed parameters costs 0.3 us less than one of `*args`, an eighth of all that JAX takes for such
# a call, so these functions are written for the parameters and their kinds.

Slow = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Entries = dict[Any, tuple[Any, ...]]


class Specialization(NamedTuple):
    """What calls with arguments of certain types go to.

    Attributes:
      function: of the values of all parameters; the long way does what it does not find.
      kinds: of the arguments.
      entries: as those of `FastPath`, and what reads the arguments of such a call.
    """

    function: Callable[..., Any]
    kinds: tuple[str, ...]
    entries: Entries


_MAX_SPECIALIZATIONS = 64
_MAX_SHAPES = 64


class Dispatcher:
    """The front of one compiled function. The long way of a call fills it.

    A function of fixed parameters has one `FastPath`; one of `*args` or `**kwargs` has one for each
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
        self._front: FastPath | None = None
        self._front_by_shape: dict[Any, FastPath] = {}
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
        fixed = find_fixed_parameters(parameters, self.signature)
        if fixed is None:
            return _function_of_any(self._front_by_shape, slow)
        self._front = FastPath(self, fixed)
        return self._front.write_function(slow)

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
          entry: as the values of `FastPath.entries`, whose placement is on one device.
        """
        try:
            if len(args) + len(kwargs) > MAX_PARAMETERS:
                raise Refusal(f"it has {len(args) + len(kwargs)} arguments")
            front = self._front or self._front_of_shape(len(args), tuple(kwargs))
            places: list[Place] = [*range(len(args)), *kwargs]
            front.add(places, [*args, *kwargs.values()], avals, context, entry)
        except Refusal as refusal:
            log_refusal("calls", self.signature.name, str(refusal))

    def _front_of_shape(self, count: int, names: tuple[str, ...]) -> FastPath:
        """Return the front of calls with so many positional arguments and others of these names."""
        shape = _shape(count, names)
        front = self._front_by_shape.get(shape)
        if front is None:
            if len(self._front_by_shape) >= _MAX_SHAPES:
                raise Refusal(f"there are calls with {_MAX_SHAPES} other numbers of arguments")
            front = FastPath(self, parameters_of_call(count, names, self.signature))
            front.function = front.write_function(self.go_on)
            self._front_by_shape[shape] = front
        return front

    @property
    def go_on(self) -> Slow:
        """The long way, for functions that only a front calls."""
        slow = self._slow

        def go_on(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return slow()(args, kwargs)

        return go_on


class FastPath:
    """The tables behind a function of fixed parameters that is written for calls of them.

    Args:
      dispatcher: of the compiled function.
      parameters: of its calls.

    Attributes:
      entries: from (abstract values of the arguments, keys of static values, cached context) to
        (placement, function that starts the program, handlers of its results, abstract value of a
        single result or None, function from buffers to the result, how the keys among the arguments
        are noted), for arrays as arguments.
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
        kinds = parameters.kinds
        # a static value stands there with its type
        self._inline_cache = [(None,) * (len(kinds) + kinds.count(STATIC) + 7)]

    def write_function(self, slow: Slow) -> Callable[..., Any]:
        """Return the function of the parameters; what it does not find goes to `slow`."""
        parameters = self._parameters
        return self._make_function(parameters.code(), self.entries, slow)

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
        places, values = self._parameters.bind(places, values)
        kinds = [self._kind(x, p, count) for x, p in zip(values, places, strict=True)]
        cached = state.options
        if cached[1] is not context:
            raise Refusal("the options have changed meanwhile")
        if self._parameters.takes(places, kinds):
            *program, keys = entry
            known = *program, _marks_of_code(keys, kinds)
            self.entries[*_key_of(values, self._parameters.kinds), cached] = known
            self._forget_last()  # which may be the same call, at another placement
            return
        if type(entry[0]) is list and not _ON_DEVICES.issuperset(kinds):
            raise Refusal("a value from the host is sharded over devices")
        found = self._specialization(places, values, kinds)
        donated = self._parameters.donated
        readers = _readers(values, places, found.kinds, avals, entry[0], donated)
        *program, keys = entry
        if keys:  # the buffers of host values are those of other values in the next call
            order = leaf_order(places, found.kinds)
            leaves = [leaf for i in order for leaf in xtree.leaves(values[i])]
            keys = tuple([mark for mark in keys if type(leaves[mark[0]]) is ConcreteArray])
        keys = _marks_of_code(keys, found.kinds)
        found.entries[*_key_of(values, found.kinds), cached] = (*program, keys, *readers)

    def _specialization(
        self, places: Sequence[Place], values: Sequence[Any], kinds: Sequence[str]
    ) -> Specialization:
        """Return what arguments of certain types and kinds go to."""
        types = tuple(map(type, values))
        known = self.specializations.get(types)
        if known is not None:
            kinds = _widen(known.kinds, kinds)
            if known.kinds == kinds:
                return known
        if len(self.specializations) >= _MAX_SPECIALIZATIONS:
            raise Refusal(f"there are {_MAX_SPECIALIZATIONS} for arguments of other types")
        names = self._parameters.names
        entries: Entries = {}
        code = Code(", ".join(names), names, tuple(kinds), text_of_arguments(names, places, kinds),
                    leaf_order(places, kinds), False)  # fmt: skip
        function = self._make_function(code, entries, self._go_on)
        made = self.specializations[types] = Specialization(function, code.kinds, entries)
        return made

    def _kind(self, x: Any, place: Place, count: int) -> str:
        if type(x) is Absent:
            return ABSENT
        kind = STATIC if self._signature.is_static(place, count) else kind_of(x)
        if kind is UNKNOWN:
            name = self._signature.argument_name(place)
            raise Refusal(f"the argument {name} is {described(x)}, or holds what is not an array")
        return kind

    def _make_function(self, code: Code, entries: Entries, slow: Slow) -> Callable[..., Any]:
        made: Callable[..., Any] = function_maker(code, self._parameters.donated)(
            entries, self._inline_cache, self.specializations, slow, self._deleted
        )
        return made


def _widen(known: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """Return kinds that fit the arguments of both."""
    return tuple(map(_wider, known, kinds))


def _wider(known: str, kind: str) -> str:
    if known == kind or known not in _TREES:
        return kind
    return HOST_TREE if HOST_TREE in (known, kind) else TREE


_TREES = frozenset((DICT, TREE, HOST_TREE, *SMALL_TREES))
_ON_DEVICES = frozenset((ARRAY, DICT, TREE, *SMALL_TREES, STATIC, ABSENT))


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
        elif kind is TREE or kind in SMALL_TREES:
            leaves, tree = xtree.flatten(x)
            parts += (tree, *[leaf.aval for leaf in leaves])
        elif kind is HOST_TREE:
            leaves, tree = xtree.flatten(x)
            parts += (tree, *map(leaf_key, leaves))
    return parts


def _shape(count: int, names: tuple[str, ...]) -> Any:
    """Return what stands for the number of positional arguments and the names of the others."""
    return ((count, *names) if count else names) if names else count


def _function_of_any(front_by_shape: dict[Any, FastPath], slow: Slow) -> Callable[..., Any]:
    """Return the function for any parameters, which only knows the fronts of calls it has met."""
    find = front_by_shape.get

    def call_jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            # `_shape`, written out
            if not kwargs:
                front = find(len(args))
                if front is not None:
                    return front.function(*args)
            elif args:
                front = find((len(args), *kwargs))
                if front is not None:
                    return front.function(*args, *kwargs.values())
            else:  # without a list of both, a seventh of what this function takes
                front = find(tuple(kwargs))
                if front is not None:
                    return front.function(*kwargs.values())
            return slow(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    return call_jitted
