"""Names that libraries take from private modules of JAX, where they look for them.

Each is a public thing of this family under the path that a library imports it from. Nothing of the
family imports them, and only what some published library needs is here:

    ad_util, checkify, flatten_util     several libraries
    api_util                            e3nn-jax, and by it JAX MD
    compiler                            chex, which counts in it what is compiled
    core                                flax, numpyro
    dispatch                            equinox
    distributed                         Orbax, which reads the state of several processes
    dtypes, traceback_util              equinox, flax
    state.types, tree_util              flax
    xla_bridge                          chex

These modules have no files: the calls of `_show` below define what they show.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType, ModuleType
from typing import Any

import xstack
import xtree
from xprim.source import hide, is_hidden
from xstack.namespaces import namespace
from xtree.namespaces import import_by_name, late_import, moved_modules

_clearing = late_import("xjit.cache.clearing", "few programs read the clients by platform")
_distributed = late_import("xpar.distributed", "few programs run in several processes")

moved_modules("xstack", """
        experimental.checkify: _src.checkify
        extend.core.types: _src.ad_util
        flatten_util: _src.flatten_util
""")  # fmt: skip

with namespace(globals()):
    from xstack import flatten_util as flatten_util
    from xstack.experimental import checkify as checkify
    from xstack.extend.core import types as ad_util  # noqa: F401 - a public name


class _PrivateModule(ModuleType):
    """A module that shows objects, and all public names of other modules, imported at first use."""

    def __init__(self, name: str, shown: tuple[str, ...], objects: dict[str, Any]) -> None:
        super().__init__(f"{__name__}.{name}", __doc__)
        self._shown = shown
        vars(self).update(objects)

    def __getattr__(self, name: str) -> Any:
        for module in map(import_by_name, () if name.startswith("__") else self._shown):
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        own = [name for name in vars(self) if not name.startswith("_")]
        return sorted({*own, *[x for name in self._shown for x in import_by_name(name).__all__]})


def _show(name: str, *shown: str, **objects: Any) -> ModuleType:
    """Let a module be imported that shows the names of others, and objects of its own."""
    module = _PrivateModule(name, shown, objects)
    sys.modules[module.__name__] = module
    return module


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:  # fmt: skip
    """Return positions and names of parameters, where one of both is given.

    Args:
      sig: of the function.
      argnums: positions; None for those of `argnames`.
      argnames: names; None for those of the parameters at `argnums`.

    Example:
      >>> infer_argnums_and_argnames(inspect.signature(lambda x, y: x), None, "y")
      ((1,), ('y',))
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    by_either = [(i, name) for i, (name, parameter) in enumerate(sig.parameters.items())
                 if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]  # fmt: skip
    if argnums is None:
        numbers = tuple([i for i, name in by_either if name in names])
    elif argnames is None:
        at = {i % len(sig.parameters) for i in numbers}
        names = tuple([name for i, name in by_either if i in at])
    return numbers, names


def _wait_for_tokens() -> None:
    """Wait until the side effects of programs are over."""
    xstack.effects_barrier()


class _ProcessState:
    """What is known of the processes that work together, as it is when it is read."""

    @property
    def client(self) -> Any:
        """The runtime's connection to the coordination service; None for one process alone."""
        return _distributed.coordination_client()

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return xstack.process_index()

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return xstack.process_count()


def _api_boundary(fun: Any = None, **_options: Any) -> Any:
    """Return a function as it is: errors leave out the frames of every registered library."""
    return fun if fun is not None else _api_boundary


def _include_frame(frame: FrameType) -> bool:
    """Return whether errors show a frame."""
    return not is_hidden(frame.f_code.co_filename)


class _BackendsInUse(Mapping[str, Any]):
    """The clients by platform, as they are when it is read; empty before devices are used."""

    def __getitem__(self, platform: str) -> Any:
        return _clearing.backends_in_use()[platform]

    def __iter__(self) -> Iterator[str]:
        return iter(_clearing.backends_in_use())

    def __len__(self) -> int:
        return len(_clearing.backends_in_use())


api_util = _show(
    "api_util", "xstack.api_util", infer_argnums_and_argnames=infer_argnums_and_argnames
)
compiler = _show("compiler")
core = _show("core", "xstack.core", "xstack.extend.core")
dispatch = _show("dispatch", wait_for_tokens=_wait_for_tokens)
distributed = _show("distributed", global_state=_ProcessState())
dtypes = _show("dtypes", "xstack.dtypes", "xprim.dtypes")
state = _show("state", types=_show("state.types", "xprim.refs"))
traceback_util = _show(
    "traceback_util", api_boundary=_api_boundary, include_frame=_include_frame,
    register_exclusion=hide, _exclude_paths=[],
)  # fmt: skip
tree_util = _show("tree_util", "xstack.tree_util", _registry=xtree.default_registry)
xla_bridge = _show("xla_bridge", "xstack", "xstack.extend.backend", _backends=_BackendsInUse())
