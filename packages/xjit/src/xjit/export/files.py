r"""The bytes of an `Exported`: a mark, a version, a checksum, facts as JSON, and programs.

    mark      "xstack export\n"
    version   of this format, 4 bytes, little endian
    digest    SHA-256 of all that follows
    length    of the facts, 8 bytes
    facts     JSON: structures, types, platforms, which program is for which, the derivative
    programs  one after the other, each in StableHLO's portable form

A reader looks at the mark, the version and the digest before anything else, so what is damaged,
foreign or newer is refused with a sentence. Stored examples of every version are in the tests.

Neighbours: `exported` is what is stored, `tree_forms` how structures are; `reading` reads.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from typing import Any, Final

import numpy as np

from xjit.export.several_devices import sharding_of_form, spread_form, type_form
from xjit.export.tree_forms import tree_form
from xprim import ShapedArray, dtypes, shaped_array
from xprim.errors import message
from xprim.symbolic_dimensions import SymbolicScope, dimension_text, is_symbolic

__all__ = ["DIGEST_FROM", "HEAD", "MARK", "VERSION", "aval_of_form", "serialized"]

__dir__ = __all__.copy

MARK: Final = b"xstack export\n"
VERSION: Final = 1
HEAD: Final = struct.Struct(f"<{len(MARK)}sI32sQ")
DIGEST_FROM: Final = HEAD.size - 8


def serialized(exported: Any, vjp_order: int) -> bytes:
    """Return an `Exported` as bytes, with so many derivatives."""
    if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
        raise ValueError(
            message(
                "serialize",
                "vjp_order counts derivatives.",
                got=repr(vjp_order),
                expected="0, 1, ...",
            )
        )
    programs: list[bytes] = []
    facts = json.dumps(_facts(exported, vjp_order, programs)).encode()
    rest = b"".join([facts, *programs])
    digest = hashlib.sha256(struct.pack("<Q", len(facts)) + rest).digest()
    return HEAD.pack(MARK, VERSION, digest, len(facts)) + rest


def _facts(exported: Any, vjp_order: int, programs: list[bytes]) -> dict[str, Any]:
    """Return what is stored of an `Exported` as JSON; its programs are appended."""
    places: dict[bytes, tuple[int, int]] = {}
    for module in exported.modules.values():
        if module.portable not in places:
            places[module.portable] = (sum(map(len, programs)), len(module.portable))
            programs.append(module.portable)
    return {
        "fun_name": exported.fun_name,
        "in_tree": tree_form(exported.in_tree),
        "in_avals": [_aval_form(a) for a in exported.in_avals],
        "out_tree": tree_form(exported.out_tree),
        "out_avals": [_aval_form(a) for a in exported.out_avals],
        "platforms": list(exported.platforms),
        "programs": [places[exported.modules[p].portable] for p in exported.platforms],
        "symbolic": _symbolic_form(exported),
        "kept": list(exported.module_kept_var_idx),
        "effects": [[e.name, e.exact] for e in exported.unordered_effects],
        "disabled_checks": [str(c) for c in exported.disabled_safety_checks],
        "calling_convention": exported.calling_convention_version,
        "devices": spread_form(exported.spread),
        "types": [
            [type_form(a.spread) for a in avals]
            for avals in (exported.in_avals, exported.out_avals)
        ],
        "vjp": _facts(exported.vjp(), vjp_order - 1, programs) if vjp_order else None,
    }


def _symbolic_form(exported: Any) -> Any:
    """Return what is known of symbolic dimensions, None where there are none."""
    sizes = [d for a in exported.in_avals for d in a.shape if is_symbolic(d)]
    if not sizes:
        return None
    return [list(sizes[0].scope.constraints), list(exported.symbolic_facts.items())]


def _aval_form(aval: ShapedArray) -> list[Any]:
    shape = [dimension_text(d) if is_symbolic(d) else d for d in aval.shape]
    return [shape, _dtype_form(aval.dtype), aval.weak_type]


def aval_of_form(
    form: list[Any], scope: SymbolicScope | None = None, of_type: Any = None
) -> ShapedArray:
    """Return the abstract value that was stored; its symbolic dimensions are of the scope."""
    shape, dtype, weak_type = form
    sizes = [d if scope is None or type(d) is int else scope.dimension(d) for d in shape]
    found = shaped_array(tuple(sizes), _dtype_of_form(dtype), weak_type)
    return found if of_type is None else found.update(sharding=sharding_of_form(of_type))


def _dtype_form(dtype: Any) -> str:
    if not dtypes.is_extended(dtype):
        return "float0" if dtype == dtypes.float0 else str(dtype.name)
    home = dtype.__reduce__()  # the name of the one such object in its module
    if not isinstance(home, str):
        raise ValueError(
            message(
                "serialize", "arrays of this dtype have no name to be stored under.", got=str(dtype)
            )
        )
    return f"{type(dtype).__module__}:{home}"


def _dtype_of_form(form: str) -> Any:
    module, separator, name = form.partition(":")
    if not separator:
        return dtypes.float0 if form == "float0" else np.dtype(form)
    found = getattr(sys.modules.get(module), name, None)
    if not dtypes.is_extended(found):
        raise ValueError(message(
            "deserialize", "the program takes or gives arrays of a dtype that is not known here.",
            got=name, hint=f"import {module.partition('.')[0]} first",
        ))  # fmt: skip
    return found
