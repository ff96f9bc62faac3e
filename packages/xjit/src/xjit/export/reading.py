"""`deserialize`: from bytes to an `Exported`.

Neighbours: `files` describes the bytes and writes them, `exported` is what comes out.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from xjit.export.calling_conventions import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from xjit.export.exported import Exported
from xjit.export.files import DIGEST_FROM, HEAD, MARK, VERSION, aval_of_form
from xjit.export.modules import StoredModule
from xjit.export.safety import DisabledSafetyCheck
from xjit.export.several_devices import spread_of_form
from xjit.export.tree_forms import tree_of_form
from xprim import Effect, ShapedArray
from xprim.errors import message
from xprim.symbolic_dimensions import SymbolicScope
from xprim.tracebacks import boundary

__all__ = ["deserialize"]

__dir__ = __all__.copy


@boundary
def deserialize(blob: bytes | bytearray) -> Exported:
    """Read an exported program back.

    A program may call the routines of the runtime, so only read what you trust.

    Args:
      blob: what `Exported.serialize` returned.

    Raises:
      TypeError: `blob` is not bytes.
      ValueError: the bytes are of something else, damaged, or of a newer version; or hold a class
        that is not registered here.

    Example:
      >>> deserialize(b"something else")
      Traceback (most recent call last):
      ValueError: deserialize: these are not the bytes of an exported program.
        hint      Exported.serialize() makes them
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(
            message("deserialize", "an exported program is bytes.", got=type(blob).__name__)
        )
    data = bytes(blob)
    if not data.startswith(MARK):
        raise ValueError(message(
            "deserialize", "these are not the bytes of an exported program.",
            hint="Exported.serialize() makes them",
        ))  # fmt: skip
    if len(data) < HEAD.size:
        raise _damaged("it ends too early")
    _, version, digest, length = HEAD.unpack_from(data)
    if not 1 <= version <= VERSION:
        raise ValueError(message(
            "deserialize", "the program was stored by a newer version of xjit.",
            got=f"version {version} of the format", expected=f"version {VERSION} or older",
            hint="a newer xstack-xjit reads it",
        ))  # fmt: skip
    if hashlib.sha256(data[DIGEST_FROM:]).digest() != digest:
        raise _damaged("the checksum does not fit")
    start = HEAD.size + length
    return _exported(json.loads(data[HEAD.size : start]), memoryview(data)[start:])


def _damaged(what: str) -> ValueError:
    return ValueError(message("deserialize", "the bytes are damaged.", got=what))


def _avals(
    facts: dict[str, Any], name: str, side: int, scope: SymbolicScope | None
) -> tuple[ShapedArray, ...]:
    """Return the abstract values of the arguments or results; older files say no types of them."""
    forms = facts[name]
    types = facts["types"][side] if "types" in facts else [None] * len(forms)
    return tuple([aval_of_form(a, scope, t) for a, t in zip(forms, types, strict=True)])


def _exported(facts: dict[str, Any], programs: memoryview) -> Exported:
    convention = facts["calling_convention"]
    low = minimum_supported_calling_convention_version
    high = maximum_supported_calling_convention_version
    if not low <= convention <= high:
        raise ValueError(message(
            "deserialize", "the program is called in a way that is not known here.",
            got=f"calling convention {convention}", expected=f"one from {low} to {high}",
        ))  # fmt: skip
    constraints, known = facts.get("symbolic") or (None, ())
    scope = None if constraints is None else SymbolicScope(constraints)
    modules = {place: StoredModule(bytes(programs[place[0] : sum(place)]), scope is not None)
               for place in map(tuple, facts["programs"])}  # fmt: skip
    platforms, derivative = tuple(facts["platforms"]), facts["vjp"]
    return Exported(
        fun_name=facts["fun_name"],
        in_tree=tree_of_form(facts["in_tree"]),
        in_avals=_avals(facts, "in_avals", 0, scope),
        out_tree=tree_of_form(facts["out_tree"]),
        out_avals=_avals(facts, "out_avals", 1, scope),
        platforms=platforms,
        unordered_effects=tuple(Effect(n, ordered=False, exact=e) for n, e in facts["effects"]),
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, facts["disabled_checks"])),
        module_kept_var_idx=tuple(facts["kept"]),
        modules=dict(zip(platforms, [modules[tuple(p)] for p in facts["programs"]], strict=True)),
        make_vjp=None if derivative is None else lambda: _exported(derivative, programs),
        symbolic_facts=dict(known),
        spread=spread_of_form(facts.get("devices")),
    )
