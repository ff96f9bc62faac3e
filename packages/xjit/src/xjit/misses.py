"""Why a call is traced: the first things in which it differs from the call traced before it.

Keys hold whole structures, of a state of thousands of leaves maybe. What is said of them is the
first place where they differ, and a bounded number of leaves.

Neighbours: `arguments` makes the keys, `function_caches` and `retraces` say what is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from xtree.errors import shown
from xtree.mismatch import find_mismatches

if TYPE_CHECKING:
    from xjit.arguments import Arguments

__all__ = ()

_MOST = 3  # leaves that are told
_LONGEST = 60  # characters of a static value


class _Leaf(int):
    """Stands for a leaf in the description of a structure."""

    __qualname__ = "array"

    def __repr__(self) -> str:
        return "*"


def explain_miss(
    before: tuple[Any, ...] | None, after: tuple[Any, ...], arguments: Arguments
) -> str:
    """Say in what two keys of a function's cache differ.

    Args:
      before: (structure, statics, avals, context) of the last call that was traced, or None.
      after: the same of this call.
      arguments: of this call.
    """
    if before is None:
        return "it was not called before"
    reasons = []
    if before[0] != after[0]:
        reasons.append(f"the structure of the arguments: {_structures(before, after, arguments)}")
    elif before[2] != after[2]:
        reasons += _leaves(before[2], after[2], arguments)
    if before[1] != after[1]:
        name_of = arguments.signature.argument_name
        old, new = _statics(before[1], after[1], name_of), _statics(after[1], before[1], name_of)
        reasons.append(f"static values: {old} became {new}")
    if before[3] is not after[3]:
        reasons.append("options of the configuration")
    return "; ".join(reasons) or "the function sees other values"


def _structures(before: tuple[Any, ...], after: tuple[Any, ...], arguments: Arguments) -> str:
    old, new = before[0], after[0]
    filled_old, filled_new = [tree.unflatten(map(_Leaf, range(tree.num_leaves)))
                              for tree in (old, new)]  # fmt: skip
    for prefix, full in ((old, filled_new), (new, filled_old)):
        for found in find_mismatches(prefix, full, limit=1):
            sides = (found.expected, found.got)
            one, other = sides if prefix is old else sides[::-1]
            if len(found.path) < 2:  # other numbers of arguments, or other names
                return f"{one} became {other}"
            return f"{arguments.name_of(found.path)}: {one} became {other}"
    return "other metadata"


def _leaves(before: Sequence[Any], after: Sequence[Any], arguments: Arguments) -> Iterator[str]:
    changed = [c for c in zip(arguments.names(), before, after, strict=True) if c[1] is not c[2]]
    for name, old, new in changed[:_MOST]:
        # an array here, a Python number there
        hint = f": pass an array each time, xnp.{new.dtype.name}({name})"
        hint = hint if old.strong() is new.strong() else ""
        yield f"{name}: {old.str_long()} became {new.str_long()}{hint}"
    if len(changed) > _MOST:
        yield f"and {len(changed) - _MOST} leaves more"


def _statics(statics: Any, other: Any, name_of: Callable[[Any], str]) -> str:
    """Return the static values that another call does not have."""
    changed = [pair for pair in statics if pair not in other]
    texts = [
        f"{name_of(where)}={_text(key)}" if type(key) is tuple else f"{key.__name__}s: {where}"
        for where, key in changed[:_MOST]
    ]
    more = [f"{len(changed) - _MOST} more"] if len(changed) > _MOST else []
    return ", ".join([*texts, *more]) or "none"


def _text(key: Any) -> str:
    """Return the value whose `static_key` this is, as it prints."""
    kind, *parts = key
    if kind is tuple:
        texts = ", ".join(map(_text, parts)) + "," * (len(parts) == 1)
        return f"({texts})" if len(texts) <= _LONGEST else f"({texts[:_LONGEST]}...)"
    return repr(float.fromhex(parts[0])) if kind is float else shown(parts[0], _LONGEST)
