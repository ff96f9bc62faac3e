"""Libraries that import JAX, run on this family: `import jax` finds `xstack`.

    import xstack.as_jax

    xstack.as_jax.install()     # before the first library is imported
    import optax

Nothing is changed in the libraries: a finder answers for `jax` and the modules below it. The module
`jax` shows the names of `xstack`, and says which version of JAX they are from; `jax.numpy` is
`xstack.numpy` itself. JAX, if it is installed, cannot be imported in that process. Why it is asked
for and never done by itself: docs/decisions/0026-libraries-written-for-jax.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import xstack
from xtree.errors import message
from xtree.namespaces import import_by_name

__all__ = ["VERSION", "install", "uninstall"]

__dir__ = __all__.copy

VERSION = (0, 12, 0)
"""The version of JAX whose names these are, which libraries ask for."""


def install() -> None:
    """Let `import jax` find `xstack` from now on, in this process.

    Raises:
      ImportError: when JAX itself was imported before.

    Example:
      >>> install()
      >>> import jax.numpy as jnp
      >>> import xstack.numpy
      >>> jnp is xstack.numpy
      True
      >>> uninstall()
    """
    if _FINDER in sys.meta_path:
        return
    if "jax" in sys.modules:
        raise ImportError(message(
            "as_jax.install", "JAX itself is imported already.",
            got=str(sys.modules["jax"]),
            hint="install before the first library that imports JAX",
        ))  # fmt: skip
    sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Let `import jax` find JAX again; libraries that are imported keep what they have.

    Example:
      >>> uninstall()
    """
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    for name in [n for n in sys.modules if n == "jax" or n.startswith("jax.")]:
        del sys.modules[name]


class _NamedJax(ModuleType):
    """Shows the names of a module of ours, beside what it is asked for of JAX's own."""

    def __init__(self, shown: ModuleType) -> None:
        super().__init__("jax", shown.__doc__)
        self._shown = shown
        self.__path__: list[str] = []
        self.__version_info__ = VERSION
        self.__version__ = ".".join(map(str, VERSION))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._shown, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._shown)


class _Finder(MetaPathFinder, Loader):
    """Answers for `jax` and everything below it with the modules of `xstack`."""

    def __init__(self) -> None:
        self._own_specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "jax":
            return None
        own = _own_name(fullname)
        try:
            import_by_name(own)
        except ModuleNotFoundError as error:
            if error.name is not None and own.startswith(error.name):
                return None
            raise
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name == "jax":
            return _NamedJax(xstack)
        module: ModuleType = import_by_name(_own_name(spec.name))
        self._own_specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give a module back its own spec, which the import statement has replaced."""
        if not isinstance(module, _NamedJax):
            module.__spec__ = self._own_specs[module.__name__]


def _own_name(name: str) -> str:
    return "xstack" + name.removeprefix("jax")


_FINDER = _Finder()
