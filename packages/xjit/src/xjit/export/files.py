"""The bytes of an `Exported`: version, checksum, facts as JSON, programs; safety checks."""

from __future__ import annotations

import base64
import collections
import hashlib
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.dispatch.placement import OverMesh, Placement
from xjit.sharding import shardings as sharding_kinds
from xjit.sharding.meshes import AbstractMesh, AxisType, Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec, Sharding, axes_of, name_tiles
from xprim import ShapedArray, dtypes, shaped_array
from xprim.errors import message
from xprim.requirements import require
from xprim.symbolic_dimensions import SymbolicScope, dimension_text, is_symbolic

__all__ = [
    "register_namedtuple_serialization", "register_pytree_node_serialization", "tree_form",
    "tree_of_form", "DisabledSafetyCheck", "check_custom_calls", "Devices", "Shardings",
    "StoredSharding", "devices_of", "sharding_of_form", "shardings_form", "shardings_of_form",
    "type_form", "DIGEST_FROM", "HEAD", "MARK", "VERSION", "aval_of_form", "serialized",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ tree forms
# The structure of arguments and results as JSON.
#
# Python's containers are known; a class of somebody's own is stored under a name that both sides
# register, with the bytes of its metadata.

T = TypeVar("T")


class _Registered(NamedTuple):
    """How one class is stored."""

    type: type
    name: str
    serialize: Callable[[Any], bytes]
    deserialize: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any] | None


# Classes of pytrees that exported programs may name.
_by_type: dict[type, _Registered] = {}
# The same, to be read again.
_by_name: dict[str, _Registered] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Say how a class of nodes is stored where it is in the arguments of exported functions.

    Args:
      nodetype: the class; it is registered as a pytree node already, unless `from_children` is
        given.
      serialized_name: what stands for it in the bytes; the reader registers the same.
      serialize_auxdata: from the metadata of a node to bytes.
      deserialize_auxdata: from these bytes to metadata.
      from_children: from metadata and children to an object, whose structure alone is used; by
        default the node is put together as it was registered.

    Returns:
      The class, so that this serves as a decorator.

    Raises:
      ValueError: the class or the name is registered, or the class is not a pytree node.

    Example:
      >>> import xtree
      >>> class Pair:
      ...     def __init__(self, a, b):
      ...         self.a, self.b = a, b
      >>> _ = xtree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None),
      ...                                lambda _, children: Pair(*children))
      >>> register_pytree_node_serialization(
      ...     Pair, serialized_name="example.Pair", serialize_auxdata=lambda _: b"",
      ...     deserialize_auxdata=lambda _: None).__name__
      'Pair'
    """
    operation = "register_pytree_node_serialization"
    if nodetype in _by_type:
        raise ValueError(message(
            operation, f"{nodetype.__name__} is registered already.",
            got=f"serialized_name={serialized_name!r}",
            expected=f"the name {_by_type[nodetype].name!r}",
        ))  # fmt: skip
    if serialized_name in _by_name:
        raise ValueError(message(
            operation, f"the name {serialized_name!r} stands for another class.",
            got=nodetype.__name__, expected=_by_name[serialized_name].type.__name__,
        ))  # fmt: skip
    if from_children is None and xtree.default_registry.find(nodetype) is None:
        raise ValueError(message(
            operation, f"{nodetype.__name__} is not a pytree node.",
            hint="call register_pytree_node first, or give from_children",
        ))  # fmt: skip
    entry = _Registered(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _by_type[nodetype] = _by_name[serialized_name] = entry
    return nodetype


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Say under which name a namedtuple is stored.

    Args:
      nodetype: the namedtuple; the reader's has the same fields, in any order.
      serialized_name: what stands for it in the bytes.

    Returns:
      The class, so that this serves as a decorator.

    Raises:
      ValueError: it is not a namedtuple, or the class or the name is registered.
    """
    fields = getattr(nodetype, "_fields", None)
    if not issubclass(nodetype, tuple) or not isinstance(fields, tuple):
        raise ValueError(message(
            "register_namedtuple_serialization", "the class is not a namedtuple.",
            got=nodetype.__name__, hint="register_pytree_node_serialization takes other classes",
        ))  # fmt: skip
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=lambda names, values: nodetype(**dict(zip(names, values, strict=True))),
    )


def _keys_as_json(keys: Sequence[Any]) -> bytes:
    _check_keys(keys)
    return json.dumps(list(keys)).encode()


def _check_keys(keys: Sequence[Any]) -> None:
    for key in keys:
        require(
            isinstance(key, str | int | float) and json.loads(json.dumps(key)) == key, "serialize",
            "a key of a dict cannot be stored.", got=key,
            expected="keys that are strings or numbers",
        )  # fmt: skip


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_keys_as_json,
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
)


def tree_form(tree: xtree.PyTreeDef) -> Any:
    """Return a structure as JSON's values.

    Raises:
      ValueError: a class in it is not registered for this.

    Example:
      >>> tree_form(xtree.structure((1, {"a": None})))
      ['tuple', ['*', ['dict', ['a'], [['none']]]]]
    """
    node = tree.node_data()
    if node is None:
        return "*"
    kind, data = node
    children = [tree_form(child) for child in tree.children()]
    if kind is tuple or kind is list:
        return [kind.__name__, children]
    if kind is type(None):
        return ["none"]
    if kind is dict:
        _check_keys(data)
        return ["dict", list(data), children]
    entry = _by_type.get(kind)
    if entry is None:
        is_named = issubclass(kind, tuple)
        raise ValueError(message(
            "serialize", f"it is not known how {kind.__name__} is stored.", got=f"{tree}",
            hint=f"register_{'namedtuple' if is_named else 'pytree_node'}_serialization says so",
        ))  # fmt: skip
    return ["node", entry.name, base64.b64encode(entry.serialize(data)).decode(), children]


def tree_of_form(form: Any) -> xtree.PyTreeDef:
    """Return the structure that `tree_form` gave.

    Raises:
      ValueError: a class in it is not registered here.
    """
    if form == "*":
        return xtree.structure(0)
    kind, *rest = form
    if kind == "none":
        return xtree.structure(None)
    children = [tree_of_form(child) for child in rest[-1]]
    if kind in ("tuple", "list"):
        data = ({"tuple": tuple, "list": list}[kind], None)
        return xtree.treedef_from_node_data(data, children)
    if kind == "dict":
        return xtree.treedef_from_node_data((dict, tuple(rest[0])), children)
    entry = _by_name.get(rest[0])
    if entry is None:
        raise ValueError(message(
            "deserialize", f"the class that is stored as {rest[0]!r} is not known here.",
            hint="register_pytree_node_serialization or register_namedtuple_serialization, under "
            "this serialized_name, comes first",
        ))  # fmt: skip
    data = entry.deserialize(base64.b64decode(rest[1]))
    if entry.from_children is None:
        return xtree.treedef_from_node_data((entry.type, data), children)
    leaf = object()
    values = [child.unflatten([leaf] * child.num_leaves) for child in children]
    return xtree.structure(entry.from_children(data, values))


# ---------------------------------------------------------------------------------------- safety
# What is checked of a program before it is stored, and what users may allow.
#
# A program may call routines of the runtime by name. Of those named here it is promised that a
# later runtime has them with the same meaning; a Python function, or a routine that somebody
# registered, is of this process alone.

_CUSTOM_CALL = "custom_call:"
_TARGETS = re.compile(
    r"custom_call @([\w$.-]+)|custom_call @\"([^\"]+)\"|call_target_name = \"([^\"]+)\""
)
# jaxlib keeps these for programs that were exported: tests of backward compatibility there hold
# https://docs.jax.dev/en/latest/export/export.html#compatibility-guarantees-for-custom-calls
_STABLE = re.compile(
    r"(lapack|cusolver|hipsolver|cublas|hipblas|cusparse|hipsparse)_\w+_ffi"
    r"|cu_lu_pivots_to_permutation|hip_lu_pivots_to_permutation"
    r"|Sharding|SPMDFullToShardShape|SPMDShardToFullShape|Eigh|Qr|LuDecomposition|ApproxTopK"
    r"|ProductOfElementaryHouseholderReflectors"
    r"|xstack_host_rule"  # the NumPy rule of a primitive: `host_kernels`
)


class DisabledSafetyCheck:
    """A check that somebody does without.

    Example:
      >>> DisabledSafetyCheck.platform(), DisabledSafetyCheck.custom_call("mine").is_custom_call()
      (platform, 'mine')
    """

    __slots__ = ("_text",)

    def __init__(self, _text: str) -> None:
        self._text = _text

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow running a program on another platform than it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow a program that calls the routine of this name; "ALL" allows every routine."""
        return cls(_CUSTOM_CALL + target_name)

    def is_custom_call(self) -> str | None:
        """Return the name of the routine that this allows, None for another check."""
        name = self._text.removeprefix(_CUSTOM_CALL)
        return None if name == self._text else name

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def check_custom_calls(
    name: str, text: str, disabled_checks: Iterable[DisabledSafetyCheck]
) -> None:
    """Raise if a program calls a routine that a later runtime may not have.

    Args:
      name: of the function.
      text: of the program.
      disabled_checks: which may allow routines.
    """
    allowed = {check.is_custom_call() for check in disabled_checks}
    if "ALL" in allowed:
        return
    called = {next(filter(None, groups)) for groups in _TARGETS.findall(text)}
    unknown = sorted(t for t in called - allowed if not _STABLE.fullmatch(t))
    if unknown:
        raise ValueError(message(
            "export", f"{name} calls a routine that a later runtime may not have.",
            got=", ".join(unknown),
            hint=f"disabled_checks=[DisabledSafetyCheck.custom_call({unknown[0]!r})] allows it",
        ))  # fmt: skip


def is_platform_free(disabled_checks: Sequence[DisabledSafetyCheck]) -> bool:
    """Return whether a program may run on a platform that it was not exported for."""
    return DisabledSafetyCheck.platform() in disabled_checks


# ------------------------------------------------------------------------------- several devices
# Stored programs of several devices: the sharding of their arguments and results.
#
# What: `StoredSharding`, a sharding without devices; `Shardings`, those of one program. Idea: a
# program counts its devices from 0, and the one that calls it has as many, in an order of its
# own. So what is stored names axes and numbers; a mesh of the caller gives them devices.


@dataclass(frozen=True)
class StoredSharding:
    """How an array lies on a mesh whose devices are numbers.

    Attributes:
      axes: the names of the axes and their sizes.
      parts: for each dimension, the axes that it is cut along.
      order: the numbers of the devices, row by row over the axes.
    """

    axes: tuple[tuple[str, int], ...]
    parts: tuple[tuple[str, ...], ...]
    order: tuple[int, ...]

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec."""
        short = [p[0] if len(p) == 1 else p or None for p in self.parts]
        return PartitionSpec(*short)

    @property
    def abstract(self) -> NamedSharding:
        """The sharding over a mesh without devices."""
        names, sizes = [name for name, _ in self.axes], [size for _, size in self.axes]
        mesh = AbstractMesh(sizes, names, AxisType.Auto)
        return NamedSharding(mesh, self.spec)

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return which device, by its number, holds which piece."""
        tiles = self.abstract.tiles(ndim)
        return gateway.Tiles(tiles.counts, np.array(self.order)[tiles.devices])

    def on(self, devices: Sequence[Any]) -> NamedSharding:
        """Return the sharding over these devices, which the program counts in their order."""
        grid = np.empty(len(self.order), object)
        grid[:] = [devices[i] for i in self.order]
        sizes = [size for _, size in self.axes]
        mesh = Mesh(grid.reshape(sizes), tuple([name for name, _ in self.axes]))
        return NamedSharding(mesh, self.spec)

    def over(self, mesh: Mesh | AbstractMesh | None, ndim: int) -> Sharding:
        """Return the sharding over a mesh of a caller, in the words of that mesh."""
        if mesh is None:
            return self.abstract
        is_in_order = self.order == tuple(range(len(self.order)))
        if is_in_order and mesh.shape_tuple == self.abstract.mesh.shape_tuple:
            return NamedSharding(mesh, self.spec)
        if not isinstance(mesh, Mesh):
            raise ValueError(message(
                "in_shardings_jax", "the mesh has other axes than the program was exported for.",
                got=repr(mesh), expected=repr(self.abstract.mesh),
            ))  # fmt: skip
        return name_tiles(mesh, mesh.devices_in_order, self.tiles(ndim))


@dataclass(frozen=True)
class Shardings:
    """How the arguments and results of a program of several devices lie.

    Attributes:
      nr_devices: how many devices there are.
      arguments: for each leaf of the arguments, None for one that may lie anyhow.
      results: for each leaf of the result.
    """

    nr_devices: int
    arguments: tuple[StoredSharding | None, ...]
    results: tuple[StoredSharding | None, ...]


@dataclass(frozen=True)
class Devices:
    """The devices of a program that is to be exported, and how its values lie on them.

    Attributes:
      devices: those that it is split over; numbers, where it was traced for meshes without.
      arguments: for each leaf of the arguments; nothing at all where there is one device.
      results: likewise.
    """

    devices: tuple[Any, ...] = ()
    arguments: tuple[Sharding | None, ...] = ()
    results: tuple[Sharding | None, ...] = ()

    def shardings(self) -> Shardings | None:
        """Return what is stored of it, None for a program of one device."""
        if not self.devices:
            return None
        stored = [tuple([_store_sharding(s, self.devices) for s in side])
                  for side in (self.arguments, self.results)]  # fmt: skip
        return Shardings(len(self.devices), *stored)


def devices_of(traced: Any) -> Devices:
    """Return on which devices a traced function runs.

    Raises:
      ValueError: its replicas each run a copy of the program.
    """
    program = traced._program
    requested = [*program.in_shardings, *traced._shardings, *program.out_shardings]
    meshes = [s.mesh for s in requested if isinstance(s, NamedSharding)]
    if meshes and not any(
        isinstance(m, Mesh) for m in [*meshes, sharding_kinds.mesh_within(program.closed)]
    ):
        return _without_devices(traced, meshes[0])
    placement: Placement = program.placement_ahead(traced._shardings)
    if len(placement.devices) == 1:
        return Devices()
    if not isinstance(placement, OverMesh):
        raise ValueError(message(
            "export", f"{traced.fun_name} runs as copies on several devices.",
            got=", ".join(map(str, placement.devices)), hint="export jit(shard_map(...))",
        ))  # fmt: skip
    count = len(program.closed.out_avals)
    return Devices(placement.devices, tuple(placement.in_shardings),
                   tuple(placement.out_shardings) or (None,) * count)  # fmt: skip


def _without_devices(traced: Any, mesh: Mesh | AbstractMesh) -> Devices:
    """Return the devices of a function that is exported for meshes without devices: numbers."""
    if mesh.size == 1:
        return Devices()
    program = traced._program
    everywhere = NamedSharding(mesh, PartitionSpec())
    requested = program.in_shardings or [None] * len(traced._shardings)
    pairs = zip(requested, traced._shardings, strict=True)
    arguments: list[Sharding | None] = [
        next((s for s in pair if isinstance(s, NamedSharding)), everywhere) for pair in pairs
    ]
    count = len(program.closed.out_avals)
    return Devices(tuple(range(mesh.size)), tuple(arguments),
                   tuple(program.out_shardings) or (None,) * count)  # fmt: skip


def _store_sharding(sharding: Sharding | None, devices: Sequence[Any]) -> StoredSharding | None:
    if sharding is None:
        return None
    if not isinstance(sharding, NamedSharding):
        return _store_tiles(sharding, devices)
    if sharding.spec.unreduced:
        raise ValueError(message(
            "export", "arguments and results of an exported program are whole values or pieces.",
            got=repr(sharding.spec), hint="reshard(x, P(...)) inside adds up parts of sums",
        ))  # fmt: skip
    mesh = sharding.mesh
    names = [str(name) for name in mesh.axis_names]
    name_of = dict(zip(mesh.axis_names, names, strict=True))
    order = tuple(range(mesh.size))
    if isinstance(mesh, Mesh):
        order = tuple([devices.index(d) for d in mesh.devices_in_order])
    return StoredSharding(
        tuple([(name_of[name], size) for name, size in mesh.shape_tuple]),
        tuple([tuple([name_of[n] for n in axes_of(part)]) for part in sharding.spec]), order,
    )  # fmt: skip


def _store_tiles(sharding: Sharding, devices: Sequence[Any]) -> StoredSharding:
    """Return pieces without names as ones over a mesh with an axis for each dimension."""
    tiles = sharding.tiles(0)
    copies = len(devices) // math.prod(tiles.counts)
    axes = [(f"d{i}", size) for i, size in enumerate((*tiles.counts, copies))]
    own = sharding.devices_in_order
    order = [devices.index(own[i]) for i in tiles.devices.reshape(-1).tolist()]
    parts = [(name,) if size > 1 else () for name, size in axes[:-1]]
    return StoredSharding(tuple(axes), tuple(parts), tuple(order))


def shardings_form(shardings: Shardings | None) -> Any:
    """Return the shardings of values as JSON's values, each mesh once; None for one device."""
    if shardings is None:
        return None
    meshes: dict[Any, int] = {}

    def form(sharding: StoredSharding | None) -> Any:
        if sharding is None:
            return None
        place = meshes.setdefault((sharding.axes, sharding.order), len(meshes))
        return [place, sharding.parts]

    sides = [[form(s) for s in side] for side in (shardings.arguments, shardings.results)]
    return {"count": shardings.nr_devices, "meshes": list(meshes), "arguments": sides[0],
            "results": sides[1]}  # fmt: skip


def shardings_of_form(form: Any) -> Shardings | None:
    """Return what `shardings_form` gave a form of."""
    if form is None:
        return None
    meshes = [(tuple([(name, size) for name, size in axes]), tuple(order))
              for axes, order in form["meshes"]]  # fmt: skip
    sides = [
        tuple([s and StoredSharding(meshes[s[0]][0], tuple(map(tuple, s[1])), meshes[s[0]][1])
               for s in form[side]])
        for side in ("arguments", "results")
    ]  # fmt: skip
    return Shardings(form["count"], *sides)


def type_form(sharding: Any) -> Any:
    """Return as JSON's values what a type says of axes and of the memory of the host, or None."""
    if sharding is None:
        return None
    mesh, spec = sharding.mesh, sharding.spec
    axes = [
        [str(name), size, kind.name]
        for (name, size), kind in zip(mesh.shape_tuple, mesh.axis_types, strict=True)
    ]
    sums = [sorted(map(str, names)) for names in (spec.unreduced, spec.reduced)]
    memory = [] if sharding.memory is None else [sharding.memory]
    return [axes, [[str(name) for name in axes_of(part)] for part in spec], *sums, *memory]


def sharding_of_form(form: Any) -> NamedSharding:
    """Return the sharding, over a mesh without devices, of which `type_form` gave a form."""
    axes, parts, unreduced, reduced, *memory = form
    names, sizes, kinds = zip(*axes, strict=True) if axes else ((), (), ())
    mesh = AbstractMesh(sizes, names, [AxisType[kind] for kind in kinds])
    spec = PartitionSpec(*map(tuple, parts), unreduced=set(unreduced), reduced=set(reduced))
    return NamedSharding(mesh, spec, memory_kind=memory[0] if memory else None)


# ----------------------------------------------------------------------------------------- files
# The bytes of an `Exported`: a mark, a version, a checksum, facts as JSON, and programs.
#
#     mark      "xstack export\n"
#     version   of this format, 4 bytes, little endian
#     digest    SHA-256 of all that follows
#     length    of the facts, 8 bytes
#     facts     JSON: structures, types, platforms, which program is for which, the derivative
#     programs  one after the other, each in StableHLO's portable form
#
# A reader looks at the mark, the version and the digest before anything else, so what is damaged,
# foreign or newer raises an error that says so. Stored examples of every version are in the tests.

MARK: Final = b"xstack export\n"
VERSION: Final = 1
HEAD: Final = struct.Struct(f"<{len(MARK)}sI32sQ")
DIGEST_FROM: Final = HEAD.size - 8


def serialized(exported: Any, vjp_order: int) -> bytes:
    """Return an `Exported` as bytes, with so many derivatives."""
    require(
        not isinstance(vjp_order, bool) and isinstance(vjp_order, int) and vjp_order >= 0,
        "serialize", "vjp_order counts derivatives.", got=vjp_order, expected="0, 1, ...",
    )  # fmt: skip
    programs: list[bytes] = []
    facts = json.dumps(_facts(exported, vjp_order, programs)).encode()
    rest = b"".join([facts, *programs])
    digest = hashlib.sha256(struct.pack("<Q", len(facts)) + rest).digest()
    return HEAD.pack(MARK, VERSION, digest, len(facts)) + rest


def _facts(exported: Any, vjp_order: int, programs: list[bytes]) -> dict[str, Any]:
    """Return what is stored of an `Exported` as JSON; its programs are appended."""
    places: dict[bytes, tuple[int, int]] = {}
    for module in exported.modules.values():
        if module.portable not in places:
            places[module.portable] = (sum(map(len, programs)), len(module.portable))
            programs.append(module.portable)
    return {
        "fun_name": exported.fun_name,
        "in_tree": tree_form(exported.in_tree),
        "in_avals": [_aval_form(a) for a in exported.in_avals],
        "out_tree": tree_form(exported.out_tree),
        "out_avals": [_aval_form(a) for a in exported.out_avals],
        "platforms": list(exported.platforms),
        "programs": [places[exported.modules[p].portable] for p in exported.platforms],
        "symbolic": _symbolic_form(exported),
        "kept": list(exported.module_kept_var_idx),
        "effects": [[e.name, e.exact] for e in exported.unordered_effects],
        "disabled_checks": [str(c) for c in exported.disabled_safety_checks],
        "calling_convention": exported.calling_convention_version,
        "devices": shardings_form(exported.shardings),
        "types": [
            [type_form(a.type_sharding) for a in avals]
            for avals in (exported.in_avals, exported.out_avals)
        ],
        "vjp": _facts(exported.vjp(), vjp_order - 1, programs) if vjp_order else None,
    }


def _symbolic_form(exported: Any) -> Any:
    """Return what is known of symbolic dimensions, None where there are none."""
    sizes = [d for a in exported.in_avals for d in a.shape if is_symbolic(d)]
    if not sizes:
        return None
    return [list(sizes[0].scope.constraints), list(exported.symbolic_facts.items())]


def _aval_form(aval: ShapedArray) -> list[Any]:
    shape = [dimension_text(d) if is_symbolic(d) else d for d in aval.shape]
    return [shape, _dtype_form(aval.dtype), aval.weak_type]


def aval_of_form(
    form: list[Any], scope: SymbolicScope | None = None, of_type: Any = None
) -> ShapedArray:
    """Return the abstract value that was stored; its symbolic dimensions are of the scope."""
    shape, dtype, weak_type = form
    sizes = [d if scope is None or type(d) is int else scope.dimension(d) for d in shape]
    found = shaped_array(tuple(sizes), _dtype_of_form(dtype), weak_type)
    return found if of_type is None else found.update(sharding=sharding_of_form(of_type))


def _dtype_form(dtype: Any) -> str:
    if not dtypes.is_extended(dtype):
        return "float0" if dtype == dtypes.float0 else str(dtype.name)
    home = dtype.__reduce__()  # the name of the one such object in its module
    require(
        isinstance(home, str), "serialize", "arrays of this dtype have no name to be stored under.",
        got=dtype,
    )  # fmt: skip
    return f"{type(dtype).__module__}:{home}"


def _dtype_of_form(form: str) -> Any:
    module, separator, name = form.partition(":")
    if not separator:
        return dtypes.float0 if form == "float0" else np.dtype(form)
    found = getattr(sys.modules.get(module), name, None)
    if not dtypes.is_extended(found):
        raise ValueError(message(
            "deserialize", "the program takes or gives arrays of a dtype that is not known here.",
            got=name, hint=f"import {module.partition('.')[0]} first",
        ))  # fmt: skip
    return found
