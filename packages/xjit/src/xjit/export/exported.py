"""`Exported`: a program that was compiled elsewhere or before, and how it is called.

Neighbours: `_export` makes one of a function, `files` of bytes; `exported_calls` has the rules of
its call under transformations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import xtree
from xjit._jit import jit
from xjit.export.calling_conventions import of_one_device, of_several_devices
from xjit.export.exported_calls import call_flat
from xjit.export.files import serialized
from xjit.export.modules import StoredModule
from xjit.export.safety import DisabledSafetyCheck, is_platform_free
from xjit.export.several_devices import Spread
from xjit.meshes import AbstractMesh, Mesh
from xjit.of_this_process import ProgramOfThisProcess
from xjit.shardings import Sharding
from xprim import ShapedArray, as_array
from xprim.errors import message
from xprim.tracebacks import boundary

__all__ = ["Exported"]

__dir__ = __all__.copy


@dataclass(frozen=True, eq=False, repr=False)
class Exported(ProgramOfThisProcess):
    """A program as portable StableHLO, with all that is needed to call it.

    Attributes:
      fun_name: the name of the function, for errors.
      in_tree: the structure of (args, kwargs).
      in_avals: the abstract values of the leaves of the arguments.
      out_tree: the structure of the result.
      out_avals: the abstract values of its leaves.
      platforms: those that it was written for: `cpu`, `cuda`, `rocm`, `tpu`.
      unordered_effects: what it does beside computing its results.
      disabled_safety_checks: the checks that somebody did without.
      module_kept_var_idx: the numbers of the leaves of the arguments that `main` takes.
      symbolic_facts: what sizes it was made for: expressions that are not negative, each with the
        constraint or the line that it comes from.
      spread: how its arguments and results lie, None for a program of one device.
    """

    _holds = "functions"
    _instead = "exported.serialize() gives bytes, and export.deserialize takes them"

    fun_name: str
    in_tree: xtree.PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: xtree.PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    module_kept_var_idx: tuple[int, ...]
    modules: Mapping[str, StoredModule] = field(repr=False)
    make_vjp: Callable[[], Exported] | None = field(default=None, repr=False)
    symbolic_facts: Mapping[str, str] = field(default_factory=dict, repr=False)
    spread: Spread | None = None
    ordered_effects: tuple[Any, ...] = ()

    @property
    def nr_devices(self) -> int:
        """How many devices it runs on."""
        return 1 if self.spread is None else self.spread.nr_devices

    @property
    def calling_convention_version(self) -> int:
        """How `main` is called, which readers look at."""
        return of_one_device if self.spread is None else of_several_devices

    @property
    def uses_global_constants(self) -> bool:
        """Whether there are symbolic dimensions in it."""
        return any(module.is_symbolic for module in self.modules.values())

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program for the first platform, in the portable form of StableHLO."""
        return self.modules[self.platforms[0]].portable

    def mlir_module(self, platform: str | None = None) -> str:
        """Return the program as StableHLO text.

        Args:
          platform: one of `platforms`; by default the first.
        """
        return self.module_for(platform or self.platforms[0]).text

    def module_for(self, platform: str) -> StoredModule:
        """Return the program for a platform.

        Raises:
          ValueError: it was not exported for that one.
        """
        found = next((p for p in self.platforms if p in _NAMES.get(platform, (platform,))), None)
        if found is None and is_platform_free(self.disabled_safety_checks):
            found = self.platforms[0]
        if found is None:
            raise ValueError(message(
                "export", f"{self.fun_name} was not exported for this platform.", got=platform,
                expected=" or ".join(self.platforms),
                hint="export(f, platforms=(...)) names several",
            ))  # fmt: skip
        return self.modules[found]

    def in_shardings_jax(
        self, mesh: Mesh | AbstractMesh | None = None
    ) -> tuple[Sharding | None, ...]:
        """Return for each leaf of the arguments how it lies: None on one device.

        Args:
          mesh: of as many devices, in the order in which the program shall count them; by default
            one without devices, of the axes that it was exported for.

        Raises:
          ValueError: the mesh has another number of devices.
        """
        return self._over(mesh, self.spread and self.spread.arguments, self.in_avals)

    def out_shardings_jax(
        self, mesh: Mesh | AbstractMesh | None = None
    ) -> tuple[Sharding | None, ...]:
        """Return for each leaf of the result how it lies; as `in_shardings_jax`."""
        return self._over(mesh, self.spread and self.spread.results, self.out_avals)

    def _over(self, mesh: Any, stored: Any, avals: Any) -> tuple[Sharding | None, ...]:
        if mesh is not None and mesh.size != self.nr_devices:
            raise ValueError(message(
                "export", f"{self.fun_name} was exported for another number of devices.",
                got=repr(mesh), expected=f"a mesh of {self.nr_devices} devices",
            ))  # fmt: skip
        return tuple(
            [
                s and s.over(mesh, a.ndim)
                for s, a in zip(stored or (None,) * len(avals), avals, strict=True)
            ]
        )

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """For each leaf of the arguments how it lies, as XLA writes it: None on one device."""
        return tuple(
            [
                s and s._to_xla_hlo_sharding(a.ndim)
                for s, a in zip(self.in_shardings_jax(), self.in_avals, strict=True)
            ]
        )

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """For each leaf of the result how it lies, as XLA writes it: None on one device."""
        return tuple(
            [
                s and s._to_xla_hlo_sharding(a.ndim)
                for s, a in zip(self.out_shardings_jax(), self.out_avals, strict=True)
            ]
        )

    def has_vjp(self) -> bool:
        """Return whether its derivative is known."""
        return self.make_vjp is not None

    def vjp(self) -> Exported:
        """Return the derivative, exported.

        It takes the leaves of the arguments and a cotangent for each leaf of the result, and gives
        a tuple of cotangents of the arguments. Those of integers are of dtype `float0`.

        Raises:
          ValueError: it was read from bytes that were written without.
        """
        return self._vjp

    @functools.cached_property
    def _vjp(self) -> Exported:
        if self.make_vjp is None:
            raise ValueError(message(
                "vjp", f"the derivative of {self.fun_name} was not stored.",
                hint="serialize(vjp_order=1) stores it",
            ))  # fmt: skip
        return self.make_vjp()

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Return it as bytes.

        Args:
          vjp_order: how many derivatives in reverse mode are stored, too: 1 lets a reader use
            `grad`, 2 `grad` of `grad`.

        Raises:
          ValueError: a class in the arguments or results is not registered for this, or the
            derivative is not known.
        """
        return bytearray(serialized(self, vjp_order))

    @boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program, by itself or inside of compiled functions.

        `grad` works where the derivative is known, `vmap` calls it for each example in turn.

        Raises:
          ValueError: the arguments have another structure, shape or dtype, or it was not exported
            for the platform.

        Example:
          >>> import numpy as np
          >>> from xjit import jit
          >>> from xjit.export import export
          >>> exported = export(jit(lambda x: x + x))(np.float32([1, 2]))
          >>> exported.call(np.float32([3, 4]))
          Array([6., 8.], dtype=float32)
        """
        leaves, tree = xtree.flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(message(
                "call", f"{self.fun_name} was exported for arguments of another structure.",
                got=f"{tree}", expected=f"{self.in_tree}",
            ))  # fmt: skip
        arrays = [as_array(x, what=f"{self.fun_name}: the argument") for x in leaves]
        return self.out_tree.unflatten(self._jitted(*arrays))

    @functools.cached_property
    def _jitted(self) -> Callable[..., Sequence[Any]]:
        def flat(*arrays: Any) -> Sequence[Any]:
            return call_flat(self, arrays)

        flat.__name__ = f"call_{self.fun_name}"
        return jit(flat)

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name!r}, platforms={self.platforms})"


_NAMES: Final = {"gpu": ("cuda", "rocm"), "cuda": ("cuda",), "rocm": ("rocm",)}
