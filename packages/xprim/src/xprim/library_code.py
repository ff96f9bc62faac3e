"""What of the standard library, NumPy and this family is known to be constant.

A program may be shared without looking into `math.sin`, `np.linspace` or `xnp.where`: what they
compute depends on their arguments alone. That is known of the modules listed here and of nothing
else: `time`, `os`, `random`, `numpy.random` are like any user's modules, and are looked into.

A name can be written, so nothing is believed by name: a module counts when it is the one in
`sys.modules` *and* its file lies in the folder of the library; a function when its code comes from
such a file and its globals are those of such a module; a class when its module holds it.

Neighbours: `function_keys` asks; `source` says which folders are the family's own.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import sysconfig
import types
from typing import Any

import ml_dtypes
import numpy as np

from xprim import source

__all__ = ()

_STANDARD = frozenset(
    "__future__ _abc _bisect _collections _collections_abc _functools _heapq _operator abc bisect "
    "builtins cmath collections contextlib copy dataclasses enum fractions functools heapq "
    "itertools keyword math numbers operator statistics string textwrap types typing".split()
)
# Parts of NumPy that hold state or read the world outside.
_IMPURE = tuple(
    "numpy.random numpy.testing numpy.ctypeslib numpy.f2py numpy.distutils numpy._core.arrayprint "
    "numpy._core.memmap numpy._core._ufunc_config numpy._core.printoptions numpy.core "
    "numpy.lib._npyio_impl numpy.lib._datasource numpy.lib._format_impl numpy.lib.npyio".split()
)
_LIBRARY_FOLDERS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(str(module.__file__))), "")
    for module in (np, ml_dtypes)
)
_STANDARD_FOLDERS = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")}
    | {os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")}
)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made at run time, its contents may change

# Builtin functions whose value depends on their arguments alone, as they were at import. Without
# those that look up names (`getattr`, `vars`), read the world (`open`, `input`) or run text.
_BUILTINS = {
    id(getattr(builtins, name)): getattr(builtins, name)
    for name in (
        "abs all any anext aiter ascii bin callable chr divmod format hash hex isinstance "
        "issubclass iter len max min next oct ord pow print repr round sorted sum"
    ).split()
}


def is_library_module(module: types.ModuleType) -> bool:
    """Return whether a module is one of those whose functions are known to be constant."""
    name = module.__dict__.get("__name__")
    if type(name) is not str or sys.modules.get(name) is not module:
        return False
    return _is_library_file(name, _origin(module))


def _origin(module: types.ModuleType) -> str:
    contents = module.__dict__
    found = contents.get("__file__") or getattr(contents.get("__spec__"), "origin", None)
    return found if isinstance(found, str) else ""


@functools.lru_cache(maxsize=4096)
def _is_library_file(name: str, origin: str) -> bool:
    """Return whether a module of this name and file is of a library, by what `origin` says."""
    if _is_family_file(origin):
        return True
    root = name.partition(".")[0]
    if root in _STANDARD:
        return origin in ("built-in", "frozen") or _is_standard_file(origin)
    return root in ("numpy", "ml_dtypes") and _is_pure_file(name, origin)


def _is_family_file(origin: str) -> bool:
    return os.path.isabs(origin) and source.is_hidden(origin)


def _is_standard_file(origin: str) -> bool:
    return origin.startswith(_STANDARD_FOLDERS) and "site-packages" not in origin


def _is_pure_file(name: str, origin: str) -> bool:
    impure = any(name == part or name.startswith(part + ".") for part in _IMPURE)
    return origin.startswith(_LIBRARY_FOLDERS) and not impure


def is_library_function(fun: types.FunctionType) -> bool:
    """Return whether the code and the globals of a Python function are a library's own."""
    module = sys.modules.get(fun.__globals__.get("__name__", ""))
    if module is None or module.__dict__ is not fun.__globals__:
        return False
    return _is_library_code(fun.__code__.co_filename) and is_library_module(module)


@functools.lru_cache(maxsize=4096)
def _is_library_code(filename: str) -> bool:
    """Return whether code of this file is a library's, not the user's."""
    if filename.startswith("<"):
        return filename.startswith("<frozen ")
    return (
        _is_family_file(filename)
        or filename.startswith(_LIBRARY_FOLDERS)
        or _is_standard_file(filename)
    )


def is_at_home(value: Any) -> bool:
    """Return whether a library module holds a function or class under its own name."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if not isinstance(module, types.ModuleType) or not is_library_module(module):
        return False
    found: Any = module
    for name in value.__qualname__.split("."):
        found = vars(found).get(name) if isinstance(found, type | types.ModuleType) else None
    return found is value


def is_library_class(cls: type) -> bool:
    """Return whether a class is a library's own, and what it holds known to be constant."""
    if not cls.__flags__ & _HEAP_TYPE:
        return _is_pure_name(cls.__module__)
    return is_at_home(cls)


@functools.lru_cache(maxsize=4096)
def _is_pure_name(module_name: str) -> bool:
    """Return whether classes written in C, whose module's name cannot be written, are constant."""
    root = module_name.partition(".")[0]
    if root in _STANDARD:
        return True
    impure = any(module_name == part or module_name.startswith(part + ".") for part in _IMPURE)
    return root in ("numpy", "ml_dtypes") and not impure


def is_pure_builtin(value: types.BuiltinFunctionType) -> bool:
    """Return whether a function written in C, bound to nothing, depends on its arguments alone."""
    owner = value.__self__
    if owner is builtins:
        return _BUILTINS.get(id(value)) is value
    return (
        isinstance(owner, types.ModuleType)
        and is_library_module(owner)
        and value.__name__ != "fromfile"
        and not value.__name__.startswith("_")  # such read or set the state of NumPy
    )


def is_compiled_ufunc(value: np.ufunc) -> bool:
    """Return whether a ufunc has loops for numbers; `np.frompyfunc` makes one that calls Python."""
    return any(kind not in "O->" for signature in value.types for kind in signature)
