"""Errors about a keyword that a public function does not have name the one that was meant.

Python says `sum() got an unexpected keyword argument 'dim'`. Where such an error leaves the
library, `hint_at_keyword` adds what the argument is called here: by the words of other libraries,
or else by the nearest spelling among the function's own parameters. A call that is right pays
nothing for it.

Neighbours: `tracebacks` asks for it where errors leave the library; `integer_arguments` does the
like for arguments that are no integers.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

__all__ = ()

_UNKNOWN = re.compile(r"got an unexpected keyword argument '(\w+)'$")
# What other libraries call an argument -> what it is called here, the likeliest first.
_HERE = {
    "dim": ("axis", "axes", "dimension", "dimensions", "axis1"),
    "dims": ("axis", "axes", "dimensions"),
    "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",),
    "size": ("shape", "newshape"),
    "shape": ("newshape",),
    "input": ("a", "x", "arr"),
    "other": ("x2", "y", "b"),
    "unbiased": ("correction", "ddof"),
    "descending": ("reverse",),
    "dim0": ("axis1",),
    "dim1": ("axis2",),
    "repeats": ("reps",),
    "mean": ("loc",),
    "low": ("minval",),
    "high": ("maxval",),
}


def hint_at_keyword(error: BaseException) -> None:
    """Have an error about an unknown keyword of a public function say the known one.

    Args:
      error: whose traceback ends at the boundary of the function, which Python refused to call.
    """
    found = _UNKNOWN.search(str(error)) if type(error) is TypeError and error.args else None
    traceback = error.__traceback__
    if found is None or traceback is None or traceback.tb_next is not None:
        return
    names = _parameters(traceback.tb_frame.f_locals)
    words = [word for word in _HERE.get(found[1], ()) if word in names]
    spelling = importlib.import_module("xtree.misspellings")  # which takes milliseconds to import
    known = words[0] if words else spelling.nearest(found[1], names)
    if known is not None:
        error.args = (f"{error}.\n  hint      it is called {known}= here",)


def _parameters(of_boundary: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters of the function that a boundary is around."""
    fun = of_boundary.get("_fun", of_boundary.get("fun"))
    code = getattr(fun, "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
