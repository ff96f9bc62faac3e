"""Late imports: the public names of a module, and modules that few programs need.

The public names of a module are written once, as the imports that bring them.

    with namespace(globals()):
        from xad._checkpoint import checkpoint as checkpoint, remat as remat

Type checkers, editors and readers see imports. At run time nothing inside the block is imported:
each name is noted with its module and looked up when it is first used. `__all__`, `dir()` and the
errors about misspelt names follow from the same lines, so nothing is listed twice. Python 3.15 has
`lazy from xad._checkpoint import checkpoint` (PEP 810) for this.

An import statement calls `builtins.__import__`. While a block is open a function stands in its
place that notes what the module of the block asks for, and hands every other import on, of whatever
thread. This module imports nothing that a bare interpreter does not have: `import xstack` is it and
little else.

What a module itself imports late it declares at its top, with the reason:

    _mlir = late_import("xjit.jaxlib_gateway.mlir_modules", "MLIR takes 30 ms")

Names that are computed go through `import_by_name`. Nothing else imports late, which
`tools/layers.py` holds.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import sys
from _thread import allocate_lock  # as `threading` does, which takes milliseconds to import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType, TracebackType
    from typing import Any

__all__ = [
    "CollectorPause", "LateModule", "Namespace", "import_by_name", "late_import", "moved_modules",
    "namespace",
]  # fmt: skip

__dir__ = __all__.copy


def namespace(
    module_globals: dict[str, Any],
    *,
    at_once: bool = False,
    after: str = "",
    hint: Callable[[str, str, str], str] | None = None,
    overview: bool | str = False,
) -> Namespace:
    r"""Return the namespace of a module, whose `with` block holds the imports of its public names.

    In the block stand `from module import name as name`, where the redundant alias tells type
    checkers that the name is public, and `from module import *`, which imports that module for its
    list, and none of its names: those that it imports at their first use stay so in a block that is
    `at_once`, too. A module may have several blocks, each with its own options. A name
    that the package has as a submodule, too (`xad.grad`), must be imported at once, since importing
    a submodule binds its name. A module that defines its names itself, and lists them in `__all__`,
    has no block and calls `namespace(globals()).close()` at its end.

    Args:
      module_globals: `globals()` of the module.
      at_once: import at the end of the block; by default each name is imported at its first use.
      after: a module to import before any name of the block.
      hint: a function of the module's name, an unknown name and what errors say of it by default
        ("did you mean ...?", or nothing), which returns what they say.
      overview: whether the module's docstring names all that it shows, so that `help(module)` shows
        that and not the whole help of every name besides. The name of another module stands for
        what the docstring of that module says after its first paragraph, which is added.

    Example:
      >>> import types
      >>> geometry = types.ModuleType("geometry")
      >>> geometry.namespace = namespace
      >>> exec("with namespace(globals()):\n  from math import pi, sqrt", vars(geometry))
      >>> dir(geometry), geometry.pi
      (['pi', 'sqrt'], 3.141592653589793)
      >>> geometry.sqtr
      Traceback (most recent call last):
      AttributeError: module 'geometry' has no attribute 'sqtr'.
        hint      did you mean 'sqrt'?
    """
    return Namespace(module_globals, at_once, after, hint, overview)


class Namespace:
    """What a module shows; made by `namespace`."""

    __slots__ = ("_after", "_at_once", "_globals", "_hint", "_homes", "_overview")

    def __init__(
        self,
        module_globals: dict[str, Any],
        at_once: bool,
        after: str,
        hint: Callable[[str, str, str], str] | None,
        overview: bool | str = False,
    ) -> None:
        self._globals = module_globals
        self._at_once = at_once
        self._after = after
        self._hint = hint
        self._overview = overview
        self._homes: dict[str, _Home] = module_globals.setdefault("_home_by_name", {})

    def __enter__(self) -> None:
        _open_block(self._globals)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _close_block(self._globals)
        noted = {name: x for name, x in self._globals.items() if type(x) is _Home}
        for name, home in noted.items():
            home.after = self._after
            del self._globals[name]
        self._homes.update(noted)
        listed = self._globals.get("__all__", ())
        self._globals["__all__"] = [*listed, *[name for name in noted if name not in listed]]
        self.close()
        if self._at_once and error is None:
            for name, home in noted.items():
                if not home.is_late():
                    self._find(name)

    def close(self) -> None:
        """Let `dir()` show the names of `__all__`, and errors about others suggest one of them."""
        self._globals["__getattr__"] = self._find
        self._globals["__dir__"] = self._dir
        if isinstance(self._overview, str):
            doc, other = self._globals["__doc__"], sys.modules[self._overview].__doc__
            if doc and other:  # python -OO has none
                self._globals["__doc__"] = f"{doc.rstrip()}\n\n{other.partition(chr(10) * 2)[2]}"

    def _find(self, name: str) -> Any:
        home = self._homes.get(name)
        if home is None:
            asking = sys._getframe(1)
            if asking.f_code.co_filename == _IMPORT_SYSTEM:
                raise AttributeError(name)  # it tries a submodule next, and drops the text
            try:
                raise self._unknown(name, asking)
            except Exception as error:
                _boundaries.leave(error)
                raise
        value = self._globals[name] = home.value(self._globals["__name__"])
        return value

    def _dir(self) -> list[str]:
        if self._overview and _is_asked_by_help():
            return []
        return sorted(self._globals["__all__"])

    def _unknown(self, name: str, asking: FrameType) -> AttributeError | ImportError:
        module = self._globals["__name__"]
        message = f"module {module!r} has no attribute {name!r}"
        if name.startswith("_"):  # a protocol looks, which does not read the answer
            return AttributeError(message)
        near = _errors.nearest(name, self._globals["__all__"])
        hint = f"did you mean {near!r}?" if near else ""
        if self._is_submodule(name):
            hint = f"it is a separate module: import {module}.{name}"
        elif self._hint is not None:
            hint = self._hint(module, name, hint)
        if not hint:
            return AttributeError(message)
        if _errors.imports_from(asking) and f"{module}.{name}" not in sys.modules:
            message = f"cannot import name {name!r} from {module!r}.\n  hint      {hint}"
            return ImportError(message, name=module, path=self._globals.get("__file__"))
        # With an object at hand Python would add a suggestion of its own to the traceback.
        return AttributeError(f"{message}.\n  hint      {hint}", name=name, obj=None)

    def _is_submodule(self, name: str) -> bool:
        """Whether an import finds what the module does not show."""
        paths = self._globals.get("__path__")
        if paths is None:
            return False
        full_name = f"{self._globals['__name__']}.{name}"
        return any(finder.find_spec(full_name, paths) for finder in sys.meta_path)


def _is_asked_by_help() -> bool:
    """Whether `help` asks for the members of a module, through `inspect.getmembers` and `dir`."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") == "inspect":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_globals.get("__name__") == "pydoc"


class _Home:
    """Where a public name lives: noted while its block is open, looked up later."""

    __slots__ = ("after", "listed", "module", "name")

    def __init__(self, module: str, name: str, listed: bool) -> None:
        self.module = module
        self.name = name
        self.listed = listed  # by the module, whose names `import *` asks for
        self.after = ""

    def is_late(self) -> bool:
        """Say whether the module lists a name that it has not imported yet itself."""
        found = vars(sys.modules[self.module]) if self.listed else {}
        return self.name in found.get("_home_by_name", ()) and self.name not in found

    def value(self, asking: str) -> Any:
        """Import the name for the module that asks for it, which may be its package."""
        if self.after:
            import_by_name(self.after)
        if self.module == asking:
            return import_by_name(f"{asking}.{self.name}")
        return getattr(import_by_name(self.module), self.name)


class _Noted:
    """What an import statement of an open block is given in place of the module."""

    def __init__(self, module: str, names: Sequence[str]) -> None:
        self._module = module
        self._listed = "*" in names
        if self._listed:
            self.__all__ = import_by_name(module).__all__

    def __getattr__(self, name: str) -> _Home:
        return _Home(self._module, name, self._listed)


_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_lock = allocate_lock()
_open: set[int] = set()  # the identities of the globals of modules whose block is open
_import = builtins.__import__


def _open_block(module_globals: dict[str, Any]) -> None:
    global _import
    with _lock:
        if builtins.__import__ is not _noting_import:
            _import = builtins.__import__
            builtins.__import__ = _noting_import
        _open.add(id(module_globals))


def _close_block(module_globals: dict[str, Any]) -> None:
    with _lock:
        _open.discard(id(module_globals))
        if not _open and builtins.__import__ is _noting_import:
            builtins.__import__ = _import


def _noting_import(
    name: str,
    globals: Any = None,  # noqa: A002 - callers may give it by name
    locals: Any = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    if fromlist and level == 0 and id(globals) in _open:
        return _Noted(name, fromlist)
    return _import(name, globals, locals, fromlist or (), level)


def import_by_name(name: str) -> Any:
    """Return the module of a name, imported now unless it is there.

    The garbage collector pauses meanwhile: a module makes hundreds of objects and no garbage, which
    the collector would look at up to three times (a twentieth of a warm start). Afterwards
    they count as old, as if it had.

    Example:
      >>> import_by_name("math").sqrt(4)
      2.0
    """
    if name in sys.modules:
        return importlib.import_module(name)
    with CollectorPause() as pause:
        module = importlib.import_module(name)
        many = pause.is_first and gc.get_count()[0] > _MANY_OBJECTS
        if many and gc.isenabled() and gc.get_freeze_count() < _FEW_FROZEN:
            gc.freeze()  # both move lists of objects, and look at none
            gc.unfreeze()
    return module


_MANY_OBJECTS = 2000  # for fewer it does not pay to have those of the user count as old, too
_FEW_FROZEN = 1000  # Python 3.12 begins with 375; who freezes objects freezes many


class CollectorPause:
    """Pause the garbage collector, until many objects are made, for work that leaves no garbage.

    Not by `gc.disable`, which another thread may call meanwhile, and which the end of the pause
    would undo unseen, but by the threshold of young objects. Pauses may nest: the first one counts.

    Example:
      >>> with CollectorPause() as pause:
      ...     pause.is_first, gc.isenabled()
      (True, True)
    """

    __slots__ = ("_before", "is_first")

    def __enter__(self) -> CollectorPause:
        self._before = before = gc.get_threshold()
        self.is_first = 0 < before[0] < _PAUSED and gc.isenabled()
        if self.is_first:
            gc.set_threshold(_PAUSED, *before[1:])
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_first and gc.get_threshold()[0] == _PAUSED:  # else another one was set meanwhile
            gc.set_threshold(*self._before)


# More than a module makes when it is imported, or a program of a thousand equations when it is
# traced. Not a number that never comes: a thread that saves and restores the threshold meanwhile
# would leave it set.
_PAUSED = 50_003


def late_import(name: str, reason: str) -> Any:
    """Return what stands for a module until something of it is requested, and then asks it.

    Args:
      name: of the module, as it is written in an import.
      reason: why it is not imported with the module that declares this: what it costs, or which
        extra installs it. It is for readers and for `tools/layers.py`.

    Raises:
      ImportError: an attribute is read of a module that is not installed.

    Example:
      >>> fractions = late_import("fractions", "few numbers are rational")
      >>> fractions.Fraction(2, 4)
      Fraction(1, 2)
    """
    del reason
    return LateModule(name)


class LateModule:
    """Stands for a module that is imported late; made by `late_import`."""

    __slots__ = ("_module",)

    def __init__(self, name: str) -> None:
        self._module = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a protocol looks at what is among a module's names
            raise AttributeError(name)
        return getattr(import_by_name(self._module), name)

    def __repr__(self) -> str:
        return f"<module {self._module!r}, imported late>"


def moved_modules(package: str, table: str) -> None:
    """Let modules of a package be imported by the names that they had before.

    Args:
      package: its name.
      table: lines `new: old old ...` of names below it; a line that has no colon continues one.

    Example:
      >>> moved_modules("xtree", "flattening: flatten_of_old")
      >>> import xtree.flatten_of_old
      >>> xtree.flatten_of_old.__name__
      'xtree.flattening'
    """
    if not any(type(finder) is _MovedModules for finder in sys.meta_path):
        sys.meta_path.append(_MovedModules())  # searched last, for names that no other finder has
    _moved_tables.setdefault(package, []).append(table)


_moved_tables: dict[str, list[str]] = {}  # by package: what `moved_modules` was given, a text each


class _MovedModules:
    """The finder and loader of modules by the names that they had."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return type(__spec__)(name, self) if self._home(name) else None  # type: ignore[arg-type]

    def _home(self, name: str) -> str:
        package, _, rest = name.partition(".")
        home = ""
        for word in " ".join(_moved_tables.get(package, ())).split():
            if word.endswith(":"):
                home = word[:-1]
            elif word == rest:
                return f"{package}.{home}"
        return ""

    def create_module(self, spec: Any) -> None:
        """Leave it to the import system: `exec_module` puts the module in its place."""

    def exec_module(self, module: Any) -> None:
        name = module.__name__
        sys.modules[name] = import_by_name(self._home(name))


_boundaries = late_import("xtree.boundaries", "only errors leave through one")
_errors = late_import("xtree.errors", "what errors suggest, when there is one")
