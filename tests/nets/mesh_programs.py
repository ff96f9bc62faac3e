"""Programs over meshes after the subjects of JAX's public tests, and what is seen of them.

`PROGRAMS` has for each section of `mesh_programs.txt` the sources of programs: statements, and an
expression last. `seen` runs one in the namespace of a library and returns plain Python values: of
arrays the dtype, the shape, the sharding and the elements; of errors the classes.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import io
import itertools
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

_FILE = Path(__file__).with_suffix(".txt")


def _programs() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if title := re.fullmatch(r"\[([a-z ]+)\]", line):
            found[title[1]] = section = []
        elif line and not line.startswith("#"):
            section.append(line.replace(r"\n", "\n"))
    return found


PROGRAMS = _programs()
ALIKE, INTERNALS = "alike", "text and internals"
RAISES = "raises "  # how the text of an error begins
_UNNAMED = ("_internal_pmap_axis_name", "None", "<unnamed axis>")


def seen(source: str, library: Any) -> Any:
    """Return what a program gives with a library, as plain Python values."""
    space = _Space(library)
    tree = ast.parse(source)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr), source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            names = space.names()
            exec(compile(tree, "<program>", "exec"), names)
            return _plain(eval(compile(ast.Expression(last.value), "<program>", "eval"), names))
        except Exception as error:
            return [RAISES, _builtin(error), *[c.__name__ for c in type(error).__mro__]]


def are_alike(theirs: Any, ours: Any) -> bool:
    """Return whether two results are the same, or errors that one clause of `except` catches."""
    if theirs == ours:
        return True
    if not (_is_error(theirs) and _is_error(ours)):
        return False
    return theirs[1] in ours or (ours[1] != "Exception" and ours[1] in theirs)


def _is_error(x: Any) -> bool:
    return isinstance(x, list) and bool(x) and x[0] == RAISES


def _builtin(error: BaseException) -> str:
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


class _Space:
    """What programs are written with: a library, and short names for meshes and arrays."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.numpy = importlib.import_module(f"{library.__name__}.numpy")

    def mesh(self, *sizes: int, names: Any = "xyz", kinds: Any = None) -> Any:
        names = tuple(names[: len(sizes)]) if isinstance(names, str) else names
        kinds = kinds or (self.library.sharding.AxisType.Auto,) * len(sizes)
        return self.library.make_mesh(sizes, names, axis_types=kinds)

    def explicit(self, *sizes: int, names: Any = "xyz") -> Any:
        kinds = (self.library.sharding.AxisType.Explicit,) * len(sizes)
        return self.mesh(*sizes, names=names, kinds=kinds)

    def numbers(self, *shape: int, t: str = "float32") -> Any:
        return self.numpy.arange(math.prod(shape)).reshape(shape).astype(t)

    def put(self, x: Any, mesh: Any, *spec: Any, **sums: Any) -> Any:
        j = self.library
        return j.device_put(x, j.NamedSharding(mesh, j.P(*spec, **sums)))

    def on_members(self, fun: Any, mesh: Any, in_specs: Any, out_specs: Any, **options: Any) -> Any:
        return self.library.shard_map(
            fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options
        )

    def both(self, fun: Any, *args: Any) -> tuple[Any, ...]:
        """Return the results, or the errors, of a function and of it compiled."""
        found: list[Any] = []
        for f in (fun, self.library.jit(fun)):
            try:
                found.append(f(*args))
            except Exception as error:
                found.append(error)
        return tuple(found)

    def varying(self, x: Any) -> list[str]:
        return sorted(self.library.typeof(x).mat.varying)

    def types(self, fun: Any, mesh: Any, in_specs: Any, out_specs: Any, *args: Any) -> Any:
        """Return along which axes each result varies, and the results."""
        found: list[Any] = []

        def noted(*blocks: Any) -> Any:
            results = fun(*blocks)
            found.append([self.varying(v) for v in self.library.tree.leaves(results)])
            return results

        results = self.library.jit(self.on_members(noted, mesh, in_specs, out_specs))(*args)
        return found[0], results

    def printed(self, fun: Any, *args: Any) -> list[str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            fun(*args)
            self.library.effects_barrier()
        return sorted(out.getvalue().splitlines())

    def names(self) -> dict[str, Any]:
        j = self.library
        return {
            "j": j, "n": self.numpy, "np": np, "lax": j.lax, "P": j.P, "NS": j.NamedSharding,
            "AT": j.sharding.AxisType, "Mesh": j.sharding.Mesh, "AM": j.sharding.AbstractMesh,
            "M": self.mesh, "X": self.explicit, "ar": self.numbers, "put": self.put,
            "sm": self.on_members, "both": self.both, "ty": self.varying, "types": self.types,
            "printed": self.printed, "D": j.devices(), "random": j.random, "math": math,
            "functools": functools, "itertools": itertools,
            "mod": lambda name: importlib.import_module(f"{j.__name__}.{name}"),
        }  # fmt: skip


# ---------------------------------------------------------------------------- as plain values


def _plain(x: Any) -> Any:
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, float):
        return float(f"{x:.4g}")
    if isinstance(x, BaseException):
        return RAISES + _builtin(x)
    if all(hasattr(x, name) for name in ("sharding", "dtype", "addressable_shards")):
        return ["array", str(x.dtype), list(x.shape), _place(x.sharding), _elements(x)]
    if hasattr(x, "unreduced") and hasattr(x, "partitions"):
        return ["spec", *_spec(x)]
    if type(x).__name__ in ("NamedSharding", "SingleDeviceSharding"):
        return _place(x)
    if isinstance(x, set | frozenset):
        return ["set", sorted(map(str, x))]
    if isinstance(x, dict):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        kind = type(x).__name__ if type(x) in (list, tuple) else "tuple"
        return [kind, *[_plain(v) for v in x]]
    if isinstance(x, np.generic | np.ndarray):
        return ["numpy", str(x.dtype), list(x.shape), _elements(x)]
    return x.__name__ if isinstance(x, type) else str(x)


def _elements(x: Any) -> Any:
    try:
        x = np.asarray(x)
    except Exception as error:
        return RAISES + _builtin(error)
    if x.dtype.kind in "fV":
        x = x.astype(np.float32)
    return [_plain(v) for v in x.reshape(-1).tolist()]


def _axis(name: Any) -> Any:
    return "unnamed" if str(name) in _UNNAMED else str(name)


def _spec(spec: Any) -> list[Any]:
    """Return the entries of a spec without a tail of None, and its sets of axes."""
    parts: list[Any] = []
    for part in spec.partitions:
        axes = [_axis(name) for name in (part if isinstance(part, tuple) else (part,))]
        parts.append(None if part is None else axes[0] if len(axes) == 1 else axes)
    while parts and parts[-1] is None:
        parts.pop()
    return [parts, sorted(map(str, spec.unreduced)), sorted(map(str, spec.reduced))]


def _place(sharding: Any) -> list[Any]:
    kind = getattr(sharding, "memory_kind", None)
    kind = None if kind in ("device", "unpinned_host") else kind
    if not hasattr(sharding, "spec"):
        return ["on", sorted(d.id for d in sharding.device_set), kind]
    sizes = {_axis(k): v for k, v in sharding.mesh.shape.items()}
    return ["over", str(sizes), *_spec(sharding.spec), kind]
