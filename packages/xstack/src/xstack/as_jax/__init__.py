"""Libraries that import JAX, run on this family: `import jax` finds `xstack`.

    import xstack.as_jax

    xstack.as_jax.install()     # before the first library is imported
    import optax

    python -m xstack.as_jax train.py --steps 10      # a program as it is, or -m MODULE
    XSTACK_AS_JAX=1 python train.py                  # a program and all processes that it starts
    pytest -p xstack.as_jax                          # tests as they are

Nothing is changed in the libraries: a finder answers for `jax` and the modules below it. The module
`jax` shows the names of `xstack`, and says which version of JAX they are from; `jax.numpy` is
`xstack.numpy` itself. `bind` of a primitive with one result gives libraries that result. JAX, if it
is installed, cannot be imported in that process. Why it is requested and never done by itself:
docs/decisions/0026-libraries-written-for-jax.md.

A module of JAX that is not here is a `ModuleNotFoundError` that says what there is instead. Modules
that libraries import and seldom use (Pallas) can be imported; to use one is that error.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import xstack
from xtree.errors import message
from xtree.namespaces import import_by_name, late_import

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
else:
    Loader = object  # `importlib.abc` takes six times as long as the rest of `import xstack`

__all__ = ["VERSION", "install", "pytest_addoption", "uninstall"]

__dir__ = __all__.copy

_absent = late_import("xstack.unknown_names", "what errors say, when there is one")

_config = late_import("xprim.config", "install() alone imports nothing")
_single_results = late_import("xstack.as_jax.single_results", "install() alone imports nothing")

VERSION = (0, 12, 0)
"""The version of JAX whose names these are, which libraries ask for."""


def install() -> None:
    """Let `import jax` find `xstack` from now on, in this process.

    Programs written for JAX expect what its options are by default: `import jax` sets
    `explicit_x64_dtypes` to "warn", `index_checks`, `discrete_derivatives` and `retraces` to
    "allow", `callback_errors` to "runtime", `debug_key_reuse` to False, `scalar_constants` to True,
    `program_text` to "mlir" and `names_in_errors` to "jax.numpy", and the environment
    variables `JAX_...` count as `XSTACK_...` where these are not set.

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
    for name, value in list(os.environ.items()):
        if name.startswith("JAX_"):
            os.environ.setdefault(f"XSTACK_{name.removeprefix('JAX_')}", value)
    sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Let `import jax` find JAX again; libraries that are imported keep what they have.

    Example:
      >>> uninstall()
    """
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    if "jax" in sys.modules:
        _single_results.uninstall()
        while _values_before:
            _config.update(*_values_before.popitem())
    for name, module in list(sys.modules.items()):
        if name == "jax" or name.startswith("jax.") or type(module) is _AbsentModule:
            del sys.modules[name]


def pytest_addoption(parser: object) -> None:
    """Install, since pytest calls this when it loads the module by `-p xstack.as_jax`.

    That is before the plugins of other libraries and before every `conftest.py`.

    Args:
      parser: of pytest; it gets no option.
    """
    del parser
    install()


# Options whose default is another in JAX. Libraries that pad lists of positions with an
# index beyond the last one rely on the second.
_VALUES_IN_JAX: dict[str, Any] = {
    "explicit_x64_dtypes": "warn", "index_checks": "allow", "debug_key_reuse": False,
    "discrete_derivatives": "allow", "retraces": "allow", "callback_errors": "runtime",
    "scalar_constants": True, "program_text": "mlir", "names_in_errors": "jax.numpy",
}  # fmt: skip
# What those options were before `import jax`, for `uninstall`.
_values_before: dict[str, Any] = {}


class _NamedJax(ModuleType):
    """Shows the names of a module of ours, beside what it is requested of JAX's own."""

    def __init__(self, shown: ModuleType) -> None:
        super().__init__("jax", shown.__doc__)
        self._shown = shown
        self.__path__: list[str] = []
        self.__version_info__ = VERSION
        self.__version__ = ".".join(map(str, VERSION))

    def __getattr__(self, name: str) -> Any:
        value = import_by_name("xstack._src") if name == "_src" else getattr(self._shown, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._shown)


# Modules that are not here and that libraries import at their top, to use them in few functions;
# those below them, too.
_IMPORTABLE = (
    "experimental.array_serialization.", "experimental.colocated_python.", "experimental.mosaic.",
    "experimental.pallas.", "extend.ifrt_programs.", "interpreters.pxla.",
)  # fmt: skip


class _AbsentModule(ModuleType):
    """A module of JAX that can be imported here; its classes stand in annotations and as bases."""

    def __getattr__(self, name: str) -> Any:
        if name == self.__name__.rpartition(".")[2]:  # `jax.extend.ifrt_programs` holds such a one
            return self
        if not name[0].isupper():
            raise AttributeError(_absent.why_not(f"{self.__name__}.{name}"))
        return _AbsentClass(name, (), {"__module__": self.__name__})


class _AbsentClass(type):
    """Makes the classes of such a module, whose calls and attributes say why they are not here."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        raise TypeError(_absent.why_not(f"{cls.__module__}.{cls.__name__}"))

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(_absent.why_not(f"{cls.__module__}.{cls.__name__}.{name}"))


class _Finder(Loader):
    """Answers for `jax` and everything below it with the modules of `xstack`."""

    def __init__(self) -> None:
        self._own_specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, below = fullname.partition(".")
        if top == "xstack":  # what `from jax.experimental import pallas` asks for
            is_absent = f"{below}.".startswith(_IMPORTABLE)
            return ModuleSpec(fullname, self, is_package=True) if is_absent else None
        if top != "jax":
            return None
        own = _own_name(fullname)
        try:
            import_by_name(own)
        except ModuleNotFoundError as error:
            if error.name is None or not own.startswith(error.name):
                raise
            if _is_import_statement():
                text = _absent.why_not(fullname)
                raise ModuleNotFoundError(text, name=fullname) from None
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name == "jax":
            for option, value in _VALUES_IN_JAX.items():
                is_known = hasattr(xstack.config, option)  # not to an older package
                if is_known and f"XSTACK_{option.upper()}" not in os.environ:
                    _values_before[option] = _config.read(option)
                    _config.update(option, value)
            _single_results.install()
            return _NamedJax(xstack)
        if spec.name.startswith("xstack."):
            return _AbsentModule(spec.name.replace("xstack", "jax", 1))
        module: ModuleType = import_by_name(_own_name(spec.name))
        self._own_specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give a module back its own spec, which the import statement has replaced."""
        if module.__name__ in self._own_specs:
            module.__spec__ = self._own_specs[module.__name__]


def _is_import_statement() -> bool:
    """Return whether an import statement is what asks the finder, not `importlib.util.find_spec`.

    The import system asks in `_find_spec`; an import statement reaches it by way of this name.
    """
    asking = sys._getframe(3)
    return asking.f_code.co_name == "_find_and_load_unlocked"


def _own_name(name: str) -> str:
    return "xstack" + name.removeprefix("jax")


_FINDER = _Finder()
