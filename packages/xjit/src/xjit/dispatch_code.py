"""The code that fronts of compiled functions are written from, and that of results without a loop.

`function_maker` fills the template of a call for the parameters of a function and the kinds of the
arguments. All names of the template begin with an underscore; those of the parameters do not.

Neighbours: `dispatch` decides what is written, `results` wraps what programs give.
"""

from __future__ import annotations

import functools
import operator
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.deleted import give_up_all
from xjit.operands import ABSENT, ARRAY, DICT, HOST_TREE, NUMBER, NUMPY, STATIC, TREE, leaf_key
from xjit.parameters import ABSENT_VALUE, Absent, Code, without_absent
from xprim import EAGER, ConcreteArray, state
from xprim.array import is_shared
from xprim.static_keys import static_key
from xprim.tracebacks import shorten
from xtree.compiling import written_function

__all__ = ()

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
            if _out_aval is None:
                return _finish(_outs)
            _result = _new(_Array)
            _result.aval = _out_aval
            _result.host = None
            _result.buffer = _outs[0]
            return _result
        return _slow({given})
"""

_SPECIALIZATIONS = """
        if _specializations:
            _special = _specializations.get(({types}))
            if _special is not None:
                return _special[0]({names})
"""

_LOOK_UP = """
            _where, _start, _handlers, _out_aval, _finish{readers} = _entries[{key}_context,]
"""

# Most functions are called with one kind of arrays: what the last call found is tried first.
_LOOK_IN_INLINE_CACHE = """
            {last}_last_context, _where, _start, _handlers, _out_aval, _finish = _inline_cache[0]
            if not ({same}_context is _last_context):
                _where, _start, _handlers, _out_aval, _finish = _entries[{key}_context,]
                _inline_cache[0] = (
                    {found}_context, _where, _start, _handlers, _out_aval, _finish)
"""

# The memory that host values were written to is free again when the program is over: where a result
# is ready, as those of short programs are at once.
_RELEASE = """
            if _outs and _outs[0].is_ready():
{released}
"""

# What the template says about a parameter of each kind; `{x}` is its name.
_FIELDS = ("buffers", "donated", "flatten", "found", "released", "key", "last", "prepared",
           "readers", "same", "written")  # fmt: skip
_NOTHING = dict.fromkeys(_FIELDS, "")
_POOLED = {
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
_CODE = {
    ABSENT: _NOTHING,
    ARRAY: _NOTHING | {
        "key": "{x}.aval, ",
        "last": "_last_{x}, ",
        "same": "{x}.aval is _last_{x} and ",
        "found": "{x}.aval, ",
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
        "last": "_last_{x}, ",
        "same": "{x} is _last_{x} and ",
        "found": "{x} if type({x}) in _CONSTANT else _NEVER, ",
    },
    TREE: _NOTHING | _FLATTENED | {
        "key": "_tree_{x}, *[_leaf.aval for _leaf in _leaves_{x}], ",
        "buffers": "*[_leaf.buffer for _leaf in _leaves_{x}], ",
    },
    HOST_TREE: _NOTHING | _FLATTENED | _POOLED | {
        "key": "_tree_{x}, *map(_leaf_key, _leaves_{x}), ",
        "written": "_pooled_{x} = _fill_{x}(_leaves_{x})\n",
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
        "buffers": "*[_leaf.buffer for _leaf in _read_{x}({x})], ",
        "readers": ", _read_{x}",
        "donated": "_give_up({x}.values(), _deleted)\n",
    },
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
    filled["buffers"] = [filled["buffers"][i] for i in code.order]
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
        buffers=text_by_field["buffers"],
        donated=textwrap.indent(text_by_field["donated"], " " * 12),
    )
    text = _TEMPLATE.format(
        parameters=code.parameters,
        prepared=textwrap.indent(text_by_field["prepared"], " " * 4),
        body=textwrap.indent(body, " " * 4),
    )
    # The text holds only the template, names of parameters, and names of keywords as literals.
    return _written("make", text)


def unrolled_wrap(count: int) -> Callable[..., list[ConcreteArray]]:
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
    return _written("wrap", "\n".join(lines))


def _written(name: str, text: str) -> Callable[..., Any]:
    # A name in this folder, so that the frame is hidden; no such file, so that no line is shown.
    function: Callable[..., Any] = written_function(
        name, text, dict(_NAMESPACE), f"{__file__}-made"
    )
    return function


def is_elsewhere(buffers: Sequence[Any], where: Any) -> bool:
    """Return whether a buffer is not at a placement (AttributeError: whether it is no buffer).

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
# Types whose values stay what they are, so that the same object is the same value.
_CONSTANT = frozenset((bool, int, float, str, bytes, type(None), Absent))
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
    "_CONSTANT": _CONSTANT,
    "_NEVER": object(),
    "_flattener": xtree.flattener,
    "_leaf_key": leaf_key,
    "_are_strings": frozenset([str]).issuperset,
    "_give_up": give_up_all,
    "_is_shared": is_shared,
    "_new": object.__new__,  # and three stores: 0.05 us less than calling the class
}
