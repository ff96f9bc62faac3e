"""The placement of programs that are only written: over meshes whose devices nobody has.

Devices are numbers there, as in stored programs, so the text is that for any devices of the mesh.

Neighbours: `stages` asks for it, where a program names its platform; `export` stores such programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from xjit import jaxlib_gateway as gateway
from xjit.laid_placement import in_orders_ahead
from xjit.lowering import LoweredProgram
from xjit.meshes import AbstractMesh, Mesh
from xjit.named_shardings import NamedSharding, NoMeshError
from xjit.partition_specs import PartitionSpec
from xjit.placement import Bring, OneDevice, Placement, committed_to
from xjit.places_in_programs import abstract_mesh_within
from xjit.program import Program
from xjit.shardings import Sharding
from xprim import ConcreteArray, ShapedArray
from xprim.errors import message

__all__ = ["Unplaced", "place_ahead"]

__dir__ = __all__.copy


class Unplaced(Placement):
    """A program over a mesh without devices.

    Args:
      mesh: the mesh.
      in_shardings: for each argument, how it lies; None has it whole on each device.
      out_shardings: for each result, how it shall lie; None leaves that to XLA.
    """

    __slots__ = ("_mesh",)
    is_split = True

    def __init__(
        self, mesh: Mesh | AbstractMesh, in_shardings: Sequence[Sharding | None],
        out_shardings: Sequence[Sharding | None],
    ) -> None:  # fmt: skip
        super().__init__(tuple(range(mesh.size)), num_partitions=mesh.size)
        self._mesh = mesh
        everywhere = NamedSharding(mesh, PartitionSpec())
        self.in_shardings = tuple([s or everywhere for s in in_shardings])
        self.out_shardings = tuple(out_shardings)

    def _refuse(self) -> NoReturn:
        raise NoMeshError(message(
            "compile", "the program is over a mesh without devices.", got=repr(self._mesh),
            hint="lower and compile it inside `with set_mesh(mesh):`; export stores it as it is",
        ))  # fmt: skip

    @property
    def platform(self) -> str:
        """Raise: nothing is known of the devices."""
        self._refuse()

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Raise: there are no devices."""
        self._refuse()

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Raise: there are no devices."""
        self._refuse()

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Raise: there are no devices."""
        self._refuse()


def place_ahead(
    program: Program, shardings: Sequence[Sharding | None], platform: str | None,
    orders: Sequence[gateway.Order] = (), devices: Sequence[Any] = (),
) -> tuple[Placement, str]:  # fmt: skip
    """Return the placement of a program that is lowered, and the platform it is written for.

    Args:
      program: the program.
      shardings: for each argument, how its description says that it lies, or None.
      platform: the one that was asked for; without it, that on which the program will run.
      orders: for each argument, in which order its description says that it lies, or None.
      devices: for each argument, the one device that it was put on, or None.

    Raises:
      ValueError: arguments were put on different devices.
      NoMeshError: it is over a mesh without devices, and no platform was asked for.
    """
    placement: Placement
    try:
        base = _on_device_chosen(program, program.placement_ahead(shardings), devices)
        placement = in_orders_ahead(program, base, orders)
    except NoMeshError:
        mesh, given = _mesh_of(program, shardings)
        if platform is None or mesh is None:
            raise
        placement = Unplaced(mesh, given, program.out_shardings)
        return placement, gateway.lowering_platform(platform)
    if platform is None:
        return placement, gateway.lowering_platform(placement.platform)
    return placement, gateway.lowering_platform(platform)


def _on_device_chosen(program: Program, base: Placement, devices: Sequence[Any]) -> Placement:
    """Return the placement of a program that may be anywhere: the device of its arguments."""
    is_free = program.placement is None and isinstance(base, OneDevice)
    chosen = dict.fromkeys([d for d in devices if d is not None]) if is_free else {}
    if len(chosen) > 1:
        raise ValueError(message(
            program.name, "the arguments were put on different devices.",
            got=", ".join(map(str, chosen)), hint="bring them together with device_put(x, device)",
        ))  # fmt: skip
    return committed_to(next(iter(chosen))) if chosen else base


def _mesh_of(program: Program, shardings: Sequence[Sharding | None]) -> Any:
    """Return the mesh that a program names, None for none, and how its arguments lie."""
    asked = program.in_shardings or [None] * len(shardings)
    given = [a or s for a, s in zip(asked, shardings, strict=True)]
    named = [s.mesh for s in (*given, *program.out_shardings) if isinstance(s, NamedSharding)]
    return abstract_mesh_within(program.closed) or next(iter(named), None), given
