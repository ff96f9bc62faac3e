"""Meshes: devices in a grid whose axes have names."""

from __future__ import annotations

import collections
import enum
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast

import numpy as np

from xjit import jaxlib_gateway as gateway
from xprim import config
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundary
from xtree.boundaries import boundary_methods
from xtree.errors import escaped, preformatted
from xtree.interning import InternTable, equality_key, is_hashable
from xtree.records import Immutable, Record, set_once

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "abstract_mesh_now",
    "current_abstract_mesh", "current_mesh", "mesh_now", "meshes_shaped",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------- of this process
# What cannot leave a process, since it holds devices or functions of it, and never changes.


class OfThisProcess:
    """A copy of it is itself, as where a tree that holds it is copied; a pickle raises."""

    __slots__ = ()
    _holds: ClassVar[str]  # what of this process
    _instead: ClassVar[str]  # what can be pickled

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(message(
            "pickle", f"this {kind} holds {self._holds} of this process.", hint=self._instead,
        ))  # fmt: skip


class ProgramOfThisProcess(OfThisProcess):
    """A stage of a compilation; its methods are boundaries."""

    __slots__ = ()
    _holds = "functions"
    _instead = (
        "pickle lowered.compile() for equal devices, or export.export(f)(...).serialize() for any"
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        boundary_methods(cls)


# ------------------------------------------------------------------------------------- notebooks
# The rich form of meshes, shardings, and stages of compiling in notebooks: small tables.
#
# A mesh is the grid of its devices, with the names of the axes; of more than two axes the first
# plane. A sharding is a table of the dimensions, and of the axes that cut them. A program is a
# table of what goes in and comes out, and its text, folded.

_MOST = 16  # rows and columns of a table


def mesh_html(mesh: Any) -> str:
    """Return a mesh as HTML: its axes, and the grid of its devices where it has any."""
    axes = ", ".join(
        f"{name!r}: {size} ({kind!r})"
        for (name, size), kind in zip(mesh.shape_tuple, mesh.axis_types, strict=True)
    )
    title = f"<code>{type(mesh).__name__}({escaped(axes)})</code>"
    devices = None if isinstance(mesh, AbstractMesh) else mesh.devices
    if devices is None or not devices.size:
        return f"<div>{title}</div>"
    plane = devices.reshape(-1, *devices.shape[-2:])[0] if devices.ndim > 1 else devices[None]
    which = f", the first of {devices.size // plane.size} planes" if devices.ndim > 2 else ""
    names = [escaped(str(name)) for name in mesh.axis_names[-2:]]
    corner = f"{names[0]} &#8595; {names[1]} &#8594;" if devices.ndim > 1 else f"{names[0]} &#8594;"
    columns = _first(list(range(plane.shape[1])))
    head = [corner, *map(str, columns)]
    rows = [
        ["" if devices.ndim == 1 else str(i), *[escaped(str(d)) for d in _first(list(row))]]
        for i, row in zip(_first(list(range(len(plane)))), _first(list(plane)), strict=True)
        if not isinstance(row, str)
    ]
    return f"<div>{title}{which}{_table(head, rows)}</div>"


def sharding_html(sharding: Any) -> str:
    """Return a sharding over a mesh as HTML: what cuts each dimension, and the mesh."""
    sizes = sharding.mesh.shape
    rows = []
    for dim, part in enumerate(sharding.spec):
        names = part if isinstance(part, tuple) else () if part is None else (part,)
        known = [name for name in names if name in sizes]
        pieces = str(math.prod([sizes[name] for name in known])) if known else "1"
        text = ", ".join(map(repr, known)) or ("no axis" if part is None else repr(part))
        rows.append([str(dim), escaped(text), pieces])
    title = f"<code>NamedSharding({escaped(repr(sharding.spec))})</code>"
    table = (
        _table(["dimension", "sharded along", "pieces"], rows)
        if rows
        else ", replicated on each device"
    )
    return f"<div>{title}{table}{mesh_html(sharding.mesh)}</div>"


def stage_html(stage: Any) -> str:
    """Return a lowered or compiled function as HTML."""
    traced = stage._traced
    if hasattr(stage, "memory_analysis"):
        kind, avals_out, fact = "HLO", stage._kernel.avals_out, ("bytes", _bytes(stage))
    else:
        kind, avals_out = "StableHLO", traced._program.closed.out_avals
        fact = ("for", stage._lowered.platform)
    rows = [["takes", _types(traced._avals)], ["returns", _types(avals_out)], fact]
    text = stage.as_text()
    lines = len(text.splitlines())
    title = f"<code>{type(stage).__name__}({escaped(traced.fun_name)})</code>"
    folded = f"<details><summary>{kind}, {lines} lines</summary>{preformatted(text)}</details>"
    return f"<div>{title}{_table((), rows)}{folded}</div>"


def _bytes(compiled: Any) -> str:
    sizes = compiled.memory_analysis().items()
    names = {name: name.removesuffix("_in_bytes").removesuffix("_size") for name, _ in sizes}
    return ", ".join([f"{names[name]} {size:,}" for name, size in sizes if size])


def _types(avals: Iterable[Any]) -> str:
    texts = [f"<code>{escaped(aval.str_long())}</code>" for aval in avals]
    return ", ".join(_first(texts)) or "nothing"


def _first(items: list[Any]) -> list[Any]:
    return items if len(items) <= _MOST else [*items[:_MOST], "&#8230;"]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"] if head else []
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


# ----------------------------------------------------------------------------------- mesh blocks
# Blocks of meshes: the devices of one process among those of all.


def block_of(devices: np.ndarray[Any, Any], own: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return the part of an array of devices that holds some of them and no other.

    Raises:
      ValueError: they are not a block of it.
    """
    is_own = np.reshape([d in own for d in devices.flat], devices.shape).astype(bool)
    if is_own.all() or not devices.ndim:
        return devices
    block = tuple([slice(min(places), max(places) + 1) for places in np.nonzero(is_own)
                   if len(places)])  # fmt: skip
    if not is_own.any() or not is_own[block].all():
        raise ValueError(message(
            "Mesh.local_mesh", "the devices of this process are not a block of the mesh.",
            got=f"{[d.id for d in own]} of {[d.id for d in devices.flat]}, shape {devices.shape}",
            hint="mesh.local_devices lists them",
        ))  # fmt: skip
    return devices[block]


# ---------------------------------------------------------------------------------------- meshes
# Meshes: devices in a grid whose axes have names.
#
# `Mesh` is a grid of devices, `AbstractMesh` only its shape. The mesh of a thread (`set_mesh` of
# `xpar`, or `with mesh:`) is an option that programs depend on, so partition specs may stand for
# shardings wherever one is requested.

F = TypeVar("F", bound=Callable[..., Any])


class AxisType(enum.Enum):
    """Who decides the shardings of arrays along an axis of a mesh.

    `Auto`: the compiler, from the shardings that are known. `Explicit`: the program, by the types
    of its values (`float32[8@x,4]`), from which those of results follow while it is traced.
    `Manual`: the code, inside `shard_map`, which sees one device's piece.
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class _Grid(Immutable):
    """What a mesh says of its axes. Equal meshes are one object while somebody holds it."""

    __slots__ = ("__weakref__", "_hash", "_sizes", "axis_names", "axis_types")

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]
    _hash: int
    _sizes: tuple[int, ...]

    @property
    def shape(self) -> Mapping[Any, int]:
        """The sizes of the axes by name, in order."""
        return collections.OrderedDict(zip(self.axis_names, self._sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """The names and sizes of the axes."""
        return tuple(zip(self.axis_names, self._sizes, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._sizes

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self._sizes) if self._sizes else 0

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return not self.axis_names

    def _set_axes(
        self, sizes: tuple[int, ...], names: tuple[Any, ...], types: tuple[AxisType, ...], more: Any
    ) -> None:
        """Set the axes of a mesh that is being made, and its hash, which depends on `more`, too."""
        set_once(self, "_sizes", sizes)
        set_once(self, "axis_names", names)
        set_once(self, "axis_types", types)
        set_once(self, "_hash", hash((self.shape_tuple, types, more)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The axes of type Manual."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether it has axes, all of type Auto."""
        return self._are_all(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether it has axes, all of type Explicit."""
        return self._are_all(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether it has axes, all of type Manual."""
        return self._are_all(AxisType.Manual)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Whether it has axes, none of type Auto."""
        return bool(self.axis_types) and AxisType.Auto not in self.axis_types

    def _are_all(self, wanted: AxisType) -> bool:
        return set(self.axis_types) == {wanted}

    def _types_with(self, types: Mapping[Any, AxisType]) -> list[AxisType]:
        """Return the types of the axes, some of them others."""
        check = [name for name in types if name not in self.axis_names]
        if check:
            raise ValueError(message(
                "update_axis_types", f"the mesh has no axis {check[0]!r}.", got=repr(self),
            ))  # fmt: skip
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return [types.get(name, kind) for name, kind in pairs]

    def _of_type(self, wanted: AxisType) -> tuple[Any, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple([name for name, kind in pairs if kind is wanted])

    def _repr_html_(self) -> str:
        return mesh_html(self)

    def _describe(self, name: str, device: AbstractDevice | None = None) -> str:
        axes = "".join([f"{n!r}: {size}, " for n, size in self.shape_tuple])
        of_device = "" if device is None else f", {device!r}"
        return f"{name}({axes}axis_types={self.axis_types!r}{of_device})"


class Mesh(_Grid, OfThisProcess):
    """Devices in a grid with named axes, which does not change.

    Two that are made of the same are one object.

    Args:
      devices: an array of devices, one dimension for each axis; each device once.
      axis_names: the names of the axes; a single string names one axis.
      axis_types: for each axis, or for all; `AxisType.Auto` by default.

    Raises:
      ValueError: names and dimensions differ in number, a name or device occurs twice, or a device
        belongs to another platform than the first.

    Example:
      >>> from xjit import devices
      >>> Mesh(np.array(devices("cpu")[:1]), ("x",))
      Mesh('x': 1, axis_types=(Auto,))
    """

    __slots__ = ("_abstract", "_flat", "_scope", "devices")
    devices: np.ndarray[Any, Any]
    _abstract: AbstractMesh
    _flat: tuple[Any, ...]
    _scope: Any
    _holds = "devices"
    _instead = "pickle mesh.abstract_mesh, or the shape and the names"

    @boundary
    def __new__(
        cls, devices: Any, axis_names: str | Sequence[Any],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Self:  # fmt: skip
        """Return the mesh of these devices and axes."""
        grid = np.array(devices, dtype=object)
        if grid.ndim == 0:
            grid = grid.reshape((1,) * (1 if isinstance(axis_names, str) else len(axis_names)))
        flat = tuple([] if grid.shape == () and grid.item() is None else grid.flat)
        names = _check_names("Mesh", axis_names, grid.shape)
        types = _check_types("Mesh", axis_types, len(names))
        if flat or grid.shape:  # no axes and no devices: the mesh of no program
            _check_devices(flat)
            gateway.note_devices(flat)

        def make() -> Mesh:
            self = object.__new__(cls)
            grid.flags.writeable = False
            # a view, whose flags cannot be set back, since it does not own the grid
            set_once(self, "devices", grid.view())
            set_once(self, "_flat", flat)
            self._set_axes(grid.shape, names, types, flat)
            set_once(self, "_abstract", AbstractMesh(grid.shape, names, types))
            # which several threads may enter, and one twice
            set_once(self, "_scope", current_mesh(self))
            return self

        key = cls, flat, grid.shape, equality_key(names), types
        return cast("Self", _meshes.get_or_make(key, make))

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices, row by row."""
        return self._flat

    @property
    def size(self) -> int:
        """The number of devices."""
        return len(self._flat)

    @property
    def empty(self) -> bool:
        """Whether it has no devices."""
        return not self._flat

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The ids of the devices, in the shape of the mesh."""
        return np.array([d.id for d in self._flat]).reshape(self._sizes)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        here = self._flat[0].client.process_index() if self._flat else 0
        return [d for d in self._flat if d.process_index == here]

    @property
    def local_mesh(self) -> Mesh:
        """The block of the devices of this process; ValueError where they are none."""
        block = block_of(self.devices, self.local_devices)
        return self if block.size == self.size else Mesh(block, self.axis_names, self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        """Whether some devices belong to other processes."""
        return len(self.local_devices) < self.size

    def with_types(self, axis_types: Sequence[AxisType]) -> Mesh:
        """Return the mesh with other types of its axes."""
        types = tuple(axis_types)
        return self if types == self.axis_types else Mesh(self.devices, self.axis_names, types)

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> Mesh:
        """Return the mesh with other types of the axes that are named.

        Raises:
          ValueError: it has no such axis.
        """
        return self.with_types(self._types_with(name_to_type))

    def update(
        self, devices: Any = None, axis_names: str | Sequence[Any] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:  # fmt: skip
        """Return the mesh with what is given in the place of its own."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @property
    def _flat_devices_tuple(self) -> tuple[Any, ...]:
        """The devices, by the name that libraries written for JAX read."""
        return self._flat

    def devices_like(self, other: Mesh | AbstractMesh) -> Mesh:
        """Return the devices, row by row, in the shape and with the axes of another mesh.

        Raises:
          ValueError: it is of another number of devices.
        """
        if other.shape_tuple == self.shape_tuple:
            return self.with_types(other.axis_types)
        if other.size != self.size:
            raise ValueError(message(
                "use_abstract_mesh", f"a mesh of {self.size} devices cannot be one of "
                f"{other.size}.", got=repr(other),
                expected=f"axis sizes whose product is {self.size}",
            ))  # fmt: skip
        return Mesh(self.devices.reshape(other.axis_sizes), other.axis_names, other.axis_types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        return self._abstract

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mesh) or self._hash != other._hash:
            return False
        return self._flat == other._flat and self.shape_tuple == other.shape_tuple and (
            self.axis_types == other.axis_types)  # fmt: skip

    __hash__ = _Grid.__hash__

    def __call__(self, fun: F) -> F:
        """Return a function that runs `fun` in the scope of the mesh; as a decorator."""

        @functools.wraps(fun)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fun(*args, **kwargs)

        return cast("F", within)

    def __enter__(self) -> Mesh:
        self._scope.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._scope.__exit__(*exception)

    def __repr__(self) -> str:
        return self._describe("Mesh")


class AbstractDevice(Record):
    """The kind of device that an abstract mesh is thought of.

    Attributes:
      device_kind: as devices name it: `cpu`, `NVIDIA H100`.
      num_cores: of each device; None where it is not known.
      platform: `cpu`, `gpu`, ...
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return (f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
                f"platform={self.platform})")  # fmt: skip


class AbstractMesh(_Grid):
    """The shape of a mesh, without devices, which does not change.

    Two that are made of the same are one object.

    Args:
      axis_sizes: the sizes of the axes.
      axis_names: their names.
      axis_types: for each axis, or for all; `AxisType.Explicit` by default, as for `make_mesh`.
      abstract_device: the kind of its devices, None for any.

    Example:
      >>> AbstractMesh((4, 2), ("x", "y")).size
      8
    """

    __slots__ = ("abstract_device",)
    abstract_device: AbstractDevice | None

    @boundary
    def __new__(
        cls, axis_sizes: Sequence[int], axis_names: str | Sequence[Any],
        axis_types: AxisType | Sequence[AxisType] | None = None, *,
        abstract_device: AbstractDevice | None = None,
    ) -> Self:  # fmt: skip
        """Return the mesh of these axes."""
        sizes = tuple([int(size) for size in axis_sizes])
        names = _check_names("AbstractMesh", axis_names, sizes)
        types = _check_types("AbstractMesh", axis_types, len(names), AxisType.Explicit)

        def make() -> AbstractMesh:
            self = object.__new__(cls)
            set_once(self, "abstract_device", abstract_device)
            self._set_axes(sizes, names, types, abstract_device)
            return self

        key = cls, sizes, equality_key(names), types, abstract_device
        return cast("Self", _abstract_meshes.get_or_make(key, make))

    def with_types(self, axis_types: Sequence[AxisType]) -> AbstractMesh:
        """Return the mesh with other types of its axes."""
        return AbstractMesh(self._sizes, self.axis_names, tuple(axis_types),
                            abstract_device=self.abstract_device)  # fmt: skip

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """Return the mesh with other types of the axes that are named.

        Raises:
          ValueError: it has no such axis.
        """
        return self.with_types(self._types_with(name_to_type))

    def update(
        self, axis_sizes: Sequence[int] | None = None,
        axis_names: str | Sequence[Any] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None, **changes: Any,
    ) -> AbstractMesh:  # fmt: skip
        """Return the mesh with what is given in the place of its own; `abstract_device`, too."""
        return AbstractMesh(
            self._sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **changes},
        )

    @property
    def devices(self) -> np.ndarray[Any, Any]:
        """Raise ValueError: it has none."""
        raise ValueError(message(
            "AbstractMesh", "it has no devices.", got=repr(self),
            hint="make_mesh(axis_sizes, axis_names) makes a mesh of devices",
        ))  # fmt: skip

    def __enter__(self) -> NoReturn:
        raise ValueError(message(
            "AbstractMesh", "it is not entered: it has no devices.", got=repr(self),
            hint="with use_abstract_mesh(mesh): traces for it",
        ))  # fmt: skip

    def __exit__(self, *_: object) -> None:
        """Stand for what `with` looks up before it enters."""

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, AbstractMesh) or self._hash != other._hash:
            return False
        return (self.shape_tuple == other.shape_tuple and self.axis_types == other.axis_types
                and self.abstract_device == other.abstract_device)  # fmt: skip

    __hash__ = _Grid.__hash__

    def __reduce__(self) -> Any:
        return _abstract_mesh, (self._sizes, self.axis_names, self.axis_types, self.abstract_device)

    def __repr__(self) -> str:
        return self._describe("AbstractMesh", self.abstract_device)


_meshes: InternTable[Mesh] = InternTable()
_abstract_meshes: InternTable[AbstractMesh] = InternTable()


def meshes_shaped(shape: tuple[tuple[Any, int], ...]) -> list[Mesh]:
    """Return the meshes that somebody holds with these axes, one for each order of devices."""
    living = _meshes.living()
    return [*{m.devices_in_order: m for m in living if m.shape_tuple == shape}.values()]


def _abstract_mesh(sizes: Any, names: Any, types: Any, device: Any) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


def _check_names(
    operation: str, axis_names: str | Sequence[Any], shape: tuple[int, ...]
) -> tuple[Any, ...]:
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if len(names) != len(shape):
        raise ValueError(message(
            operation, f"there must be a name for each of {len(shape)} axes.",
            got=f"axis_names={names!r} for the shape {shape}",
        ))  # fmt: skip
    require(
        all(is_hashable(name) for name in names), operation,
        "the names of axes must be hashable.", got={"axis_names": names}, error=TypeError,
    )  # fmt: skip
    require(
        len(set(names)) == len(names) and None not in names, operation,
        "each axis must have its own name.", got={"axis_names": names},
    )  # fmt: skip
    return names


def _check_types(
    operation: str, axis_types: Any, count: int, default: AxisType = AxisType.Auto
) -> tuple[AxisType, ...]:
    if axis_types is None or isinstance(axis_types, AxisType):
        axis_types = (axis_types or default,) * count
    types = tuple(axis_types)
    wrong = [t for t in types if not isinstance(t, AxisType)]
    require(
        not wrong, operation, "the types of axes are members of AxisType.",
        got={"axis_types": axis_types}, error=TypeError,
    )  # fmt: skip
    require(
        len(types) == count, operation, "axis_types must have an AxisType for each of {} axes.",
        count, got={"axis_types": types},
    )  # fmt: skip
    return types


def _check_devices(devices: tuple[Any, ...]) -> None:
    for device in devices:
        require(
            isinstance(device, gateway.Device), "Mesh", "its elements must be devices.", got=device,
            hint="Mesh(np.array(devices()).reshape(4, 2), ('x', 'y')), or make_mesh",
            error=TypeError,
        )  # fmt: skip
    if len(set(devices)) != len(devices):
        twice = next(d for d in devices if devices.count(d) > 1)
        raise ValueError(message("Mesh", "a device occurs twice.", got=str(twice)))
    platforms = sorted({device.platform for device in devices})
    if len(platforms) > 1:
        raise ValueError(message(
            "Mesh", "all devices must be of one platform.", got=" and ".join(platforms)
        ))  # fmt: skip
    if not devices:
        raise ValueError(message("Mesh", "there must be at least one device.", got="none"))


current_mesh: config.Option[Mesh | None] = config.define(
    config.Option(
        "current_mesh", None,
        "The mesh that partition specs refer to where no mesh is named (set_mesh, `with mesh:`).",
        validate=lambda value: value is None or isinstance(value, Mesh), in_cache_key=True,
    )
)  # fmt: skip

current_abstract_mesh: config.Option[AbstractMesh | None] = config.define(
    config.Option(
        "current_abstract_mesh", None,
        "The mesh without devices that a part of a program is traced for (use_abstract_mesh, "
        "auto_axes, explicit_axes).",
        validate=lambda value: value is None or isinstance(value, AbstractMesh), in_cache_key=True,
    )
)  # fmt: skip


def abstract_mesh_now() -> AbstractMesh | None:
    """Return the mesh that the part of a program is for which is traced now, or None."""
    mesh = current_abstract_mesh.value
    if mesh is None and current_mesh.value is not None:
        mesh = current_mesh.value.abstract_mesh
    return mesh


def mesh_now() -> Mesh | AbstractMesh | None:
    """Return the mesh that partition specs refer to now, with its devices where it has some."""
    mesh, abstract = current_mesh.value, current_abstract_mesh.value
    if abstract is None:
        return mesh
    if mesh is None or mesh.shape_tuple != abstract.shape_tuple:
        return abstract
    return mesh.with_types(abstract.axis_types)
