"""`shard_map`: run a function on each device of a mesh, on its pieces of the data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar, overload

import xtree
from xjit.calls import Arguments, Calls, FlatFunction, Signature, Traced
from xjit.meshes import (
    AbstractMesh,
    Mesh,
    abstract_mesh_now,
    current_abstract_mesh,
    current_mesh,
)
from xjit.named_shardings import NamedSharding, check_axis_names
from xjit.partial_sums import sums_of
from xjit.partition_specs import UNCONSTRAINED, PartitionSpec, axes_of
from xjit.program import Program
from xpar.handed_on import HandedOn, handed_on
from xpar.named_axes import axis_names as names_in, total_size
from xpar.shard_map_primitive import Lay, member_scope, mesh_inside, program_over_mesh, shard_map_p
from xpar.varying_axes import alike_in_parts, axes_brought, checked_axes, unsaid, varying_over
from xprim import ClosedJaxpr, ShapedArray, as_array, source
from xprim.callables import check_function
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.transformed import transformed
from xprim.typing import AxisName, PyTree
from xtree.bounded import remember

P = ParamSpec("P")
AnyMesh = Mesh | AbstractMesh
R = TypeVar("R")

__all__ = ["pcast", "pvary", "shard_map"]

__dir__ = __all__.copy


class _Infer:
    """Stands for specs that are found in types."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Infer"


INFER = _Infer()

_MOST_HANDED_ON = 64  # sets of values: enough for options, and they stay alive


@overload
def shard_map(
    f: Callable[P, R], *, mesh: AnyMesh | None = ..., in_specs: PyTree = ..., out_specs: PyTree,
    axis_names: Iterable[Any] = ..., check_vma: bool = ...,
) -> Callable[P, R]: ...  # fmt: skip


@overload
def shard_map(
    f: None = None, *, mesh: AnyMesh | None = ..., in_specs: PyTree = ..., out_specs: PyTree,
    axis_names: Iterable[Any] = ..., check_vma: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...  # fmt: skip


def shard_map(
    f: Callable[..., Any] | None = None, *, mesh: Mesh | AbstractMesh | None = None,
    in_specs: PyTree = INFER, out_specs: PyTree, axis_names: Iterable[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that runs `f` on each device of a mesh, on its pieces of the arguments.

    Where `jit` takes a program for whole arrays and splits it, here the program of one device is
    written, and collectives (`psum`, `all_gather`, `ppermute`, ...) say what devices exchange.

    Args:
      f: a function of pytrees of arrays, which it gets as pieces; without it, a decorator.
      mesh: the devices; by default the mesh that is set (`set_mesh`). An `AbstractMesh` will do:
        its devices are those of the mesh that is set, or on which the arguments lie.
      in_specs: how the arguments are cut: a partition spec for all, or a tree prefix of the tuple
        of arguments. An axis that a spec does not name has the same piece for all its members.
        Of None arrays are whole, and other leaves (numbers, strings, functions) are handed on as
        they are: the function is traced again for each set of them.
        By default they are found in the types of the arguments: as these lie along the explicit
        axes of the mesh.
      out_specs: how the pieces of the results are joined, likewise.
      axis_names: the axes of the mesh over which `f` is written by hand; over the others XLA
        splits it. None at all stands for all of them.
      check_vma: whether types say along which axes values vary (`typeof(x).vma`). They are checked
        against `out_specs`, and derivatives, inside and outside of `f`, are those of the whole
        program. Without them the value of one member is taken where a spec does not name an axis,
        and derivatives inside of `f` are of each member's own part.

    Returns:
      A function of whole arrays, to be called as it is or inside `jit`, `grad`, `vmap`, `scan`.

    Raises:
      ValueError: a spec names an axis that is not among `axis_names`, has more entries than a
        value has dimensions, or does not divide one evenly; a result varies over an axis that its
        spec does not name; the mesh has no devices, and is not of the shape of the one that is set.
      TypeError: it is called with keyword arguments.

    Differentiable. The cotangent of what all members get is the sum of theirs.

    Example:
      >>> import numpy as np
      >>> from xjit import devices
      >>> from xjit.partition_specs import P
      >>> from xpar import psum
      >>> mesh = Mesh(np.array(devices("cpu")[:1]), ("x",))
      >>> total = shard_map(lambda v: psum(v.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> float(total(np.ones(4, np.float32)))
      4.0
    """
    options = {"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs,
               "axis_names": axis_names, "check_vma": check_vma}  # fmt: skip
    if f is None:
        return functools.partial(shard_map, **options)
    check_function(f, "shard_map")
    calls = _ShardMapCalls(f, options)
    front = calls.dispatcher.function(calls.__call__, None)  # specs are of positions
    mapped: Any = transformed(front, f, "shard_map", updated=())
    calls.give_methods(mapped)
    return mapped  # type: ignore[no-any-return]


def pvary(x: PyTree, axis_name: AxisName) -> PyTree:
    """Return values that count as varying over the named axes: the same values.

    Operations do this by themselves where a value that all members share meets one that varies; a
    carry of a loop that begins shared and goes on varying needs it. Its transpose is `psum`.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names.

    Returns:
      A tree of the same values; in a function of `shard_map` their types say that they vary.

    Raises:
      NameError: when a name is not bound.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pvary(x, "i"), axis_name="i")(np.int32([1, 2])))
      [1 2]
    """
    if isinstance(axis_name, set | frozenset):
        raise TypeError(message("pvary", "the names come in a tuple.", got=repr(axis_name),
                                expected="a name, or a tuple of names"))  # fmt: skip
    names = names_in(axis_name)
    total_size(names, "pvary")
    if not checked_axes.value.intersection(names):
        return x
    return xtree.map(lambda leaf: varying_over(as_array(leaf, what="pvary"), names), x)


def pcast(x: PyTree, axis_name: AxisName, *, to: str) -> PyTree:
    """Return values that count as varying over the named axes; see `pvary`.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names.
      to: `"varying"`, or `"unreduced"` for what `out_specs` call parts of a sum; what varies is
        made the same by a collective.

    Returns:
      A tree of the same values.

    Raises:
      NameError: when a name is not bound.
      ValueError: `to` is something else.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pcast(x, "i", to="varying"), axis_name="i")(np.int32([1, 2])))
      [1 2]
    """
    if to not in ("varying", "unreduced"):
        raise ValueError(message(
            "pcast", "values can only be cast to varying ones, or to parts of sums.",
            got=f"{to=}", hint="psum, pmax or all_gather(..., to='invarying') make values the same",
        ))  # fmt: skip
    return pvary(x, axis_name)


class _ShardMapCalls(Calls):
    """The calls of one function that runs on each device of a mesh."""

    obeys_disable_jit = False  # collectives need their devices

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        self.options = options
        for name in ("in_specs", "out_specs"):
            _check_specs(name, options[name])
        asked = options["axis_names"]
        options["axis_names"] = (asked,) if isinstance(asked, str) else tuple(asked)
        own = (options["mesh"], _key(options["in_specs"]), _key(options["out_specs"]),
               options["axis_names"], bool(options["check_vma"]))  # fmt: skip
        plain = dict.fromkeys(
            ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames"))  # fmt: skip
        super().__init__(fun, Signature(fun, plain, "shard_map"), own)
        asked = options["in_specs"]
        leaves = () if asked is INFER else xtree.leaves(asked, is_leaf=_is_spec)
        self._hands_on = any(spec is None for spec in leaves)
        self._of_the_rest: dict[Any, Any] = {}  # at most `_MOST_HANDED_ON`, by what is handed on

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function; what is no array and has the spec None, it gets as it is."""
        if self._hands_on and not kwargs:
            call = handed_on(self.options["in_specs"], args, _is_spec)
            if call is not None:
                return self._function_of_the_rest(call)(*call.rest)
        return super().__call__(args, kwargs)

    def _function_of_the_rest(self, call: HandedOn) -> Callable[..., Any]:
        key = call.key()
        found = self._of_the_rest.get(key)
        if found is None:
            fun = functools.wraps(self.fun, updated=())(call.function(self.fun))
            del fun.__wrapped__  # its parameters are others
            found = shard_map(fun, **self.options | {"in_specs": call.specs})
            if key is not None:
                remember(self._of_the_rest, key, found, _MOST_HANDED_ON)
        return found

    def mesh(self) -> Mesh | AbstractMesh:
        """Return the mesh of a call, with devices where they are known."""
        asked, known = self.options["mesh"], current_mesh.value
        found = known or current_abstract_mesh.value if asked is None else asked
        if not isinstance(found, Mesh | AbstractMesh):
            raise ValueError(message(
                f"shard_map({self.name})", "there is no mesh of devices.", got=repr(found),
                hint="give mesh=, or call it inside `with set_mesh(mesh):`",
            ))  # fmt: skip
        if isinstance(found, Mesh) or known is None:
            return found
        if found.shape_tuple != known.shape_tuple:
            raise ValueError(message(
                f"shard_map({self.name})", "the mesh that is set has other axes.",
                got=f"mesh={found!r}\nset: {known!r}",
                hint="make the abstract mesh of it, mesh.abstract_mesh, or set another mesh",
            ))  # fmt: skip
        return known

    def flat_function(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> FlatFunction:
        """Return what is traced: a function of the pieces of the arguments."""
        return _Member(self, arguments, avals)

    def placement_of(self, traced: Traced) -> None:
        """Return None: the program names its mesh."""

    def program(self, traced: Traced, arguments: Arguments) -> Program:
        """Return the program over the whole mesh."""
        if traced.program is None:
            traced.program = program_over_mesh({"jaxpr": traced.closed, **traced.params})
            traced.program.arg_names = arguments.without_leaves().names
        return traced.program

    def bind(self, traced: Traced, operands: Sequence[Any]) -> Sequence[Any]:
        """Make a call one equation of the current trace."""
        return shard_map_p.bind(*operands, jaxpr=traced.closed, **traced.params)


class _Member(FlatFunction):
    """A function of the pieces of one member, to be traced."""

    __slots__ = ("calls", "lays", "manual", "mesh")

    def __init__(
        self, calls: _ShardMapCalls, arguments: Arguments, avals: Sequence[ShapedArray]
    ) -> None:
        self.calls = calls
        self.mesh = calls.mesh()
        self.manual = _manual_axes(calls, self.mesh)
        self.lays = _argument_lays(calls, self.mesh, self.manual, arguments, avals)
        inside = mesh_inside(self.mesh, self.manual)
        axes = frozenset(self.manual if calls.options["check_vma"] else ())
        pieces = [lay.piece(a, inside, axes) for a, lay in zip(avals, self.lays, strict=True)]
        super().__init__(calls.fun, arguments, pieces)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context that binds the axes."""
        return member_scope(self.mesh, self.manual, self.calls.options["check_vma"])

    def run(self, *leaves: Any) -> list[Any]:
        """Return the leaves of the result, which vary over all axes that their specs name."""
        results = super().run(*leaves)
        if self.calls.options["check_vma"]:
            count = self.out_tree.num_leaves
            lays = _result_lays(self.calls, self.mesh, self.manual, self.out_tree,
                                [x.aval for x in results[:count]])  # fmt: skip
            for i, lay in enumerate(lays):
                results[i] = varying_over(results[i], lay.spec.names())
        return results

    def params(self, closed: ClosedJaxpr, num_captured: int) -> dict[str, Any]:
        """Return the params of `shard_map_p` but for the program."""
        whole = Lay(PartitionSpec())
        count = len(closed.in_avals) - num_captured - len(self.lays)  # cells of outside
        in_lays = (*[whole] * num_captured, *self.lays, *[whole] * count)
        out_lays = (
            *_result_lays(
                self.calls,
                self.mesh,
                self.manual,
                self.out_tree,
                closed.out_avals[: self.out_tree.num_leaves],
            ),  # those of cells follow
            *[self.lays[i] for i in self.written],
        )
        if self.calls.options["check_vma"]:
            _check_varying(self.calls.name, closed, out_lays, self.manual)
        lays = (*in_lays, *out_lays)
        varying = axes_brought(closed).union(*[[*x.spec.names(), *x.spec.sums] for x in lays])
        return {"mesh": self.mesh, "manual": self.manual, "in_lays": in_lays,
                "out_lays": out_lays, "name": self.calls.name,
                "check_vma": bool(self.calls.options["check_vma"]),
                "active": tuple([a for a in self.manual if a in varying])}  # fmt: skip


def _is_spec(value: Any) -> bool:
    return value is None or isinstance(value, PartitionSpec)


def _check_specs(what: str, specs: Any) -> None:
    if specs is INFER:
        return
    for leaf in xtree.leaves(specs, is_leaf=_is_spec):
        if not _is_spec(leaf):
            raise TypeError(message(
                "shard_map", f"{what} holds something that is no partition spec.", got=repr(leaf),
                hint="P('x') cuts the first dimension along the axis x, P() gives all the whole",
            ))  # fmt: skip
        if leaf is not None and UNCONSTRAINED in leaf:
            raise ValueError(message(
                "shard_map", f"{what} leaves a dimension unconstrained.", got=repr(leaf),
                expected="for each dimension the axes of the mesh, or None",
            ))  # fmt: skip


def _key(specs: Any) -> Any:
    leaves, tree = xtree.flatten(specs, is_leaf=_is_spec)
    return (tree, *leaves)


def _manual_axes(calls: _ShardMapCalls, mesh: AnyMesh) -> tuple[Any, ...]:
    asked = calls.options["axis_names"]
    outside = abstract_mesh_now()
    taken = () if outside is None else outside.manual_axes  # by a shard_map around this one
    if not asked:
        return tuple([name for name in mesh.axis_names if name not in taken])
    again = [name for name in asked if name in taken]
    if again:
        raise ValueError(message(
            f"shard_map({calls.name})", f"the axis {again[0]!r} is of type Manual already, inside "
            "of another shard_map.", got=f"axis_names={tuple(asked)}",
        ))  # fmt: skip
    check_axis_names(f"shard_map({calls.name}): axis_names", mesh, PartitionSpec(*asked))
    return tuple([name for name in mesh.axis_names if name in asked])


def _argument_lays(
    calls: _ShardMapCalls, mesh: AnyMesh, manual: Sequence[Any], arguments: Arguments,
    avals: Sequence[ShapedArray],
) -> list[Lay]:  # fmt: skip
    args_tree, kwargs_tree = arguments.tree.children()
    if kwargs_tree.num_leaves:
        raise TypeError(message(
            f"shard_map({calls.name})", "it takes positional arguments alone.",
            got=f"keyword arguments {list(kwargs_tree.node_data()[1])}",
        ))  # fmt: skip
    asked = calls.options["in_specs"]
    asked = tuple(asked) if isinstance(asked, list) else asked
    template = args_tree.unflatten(avals)
    if asked is INFER:
        asked = args_tree.unflatten(_specs_in_types(calls.name, mesh, manual, avals))
    if isinstance(asked, tuple) and len(asked) != len(template):
        raise ValueError(message(
            f"shard_map({calls.name})", f"in_specs must have an entry for each of {len(template)} "
            "arguments.", got=f"{len(asked)} entries",
        ))  # fmt: skip
    names = [f"in_specs of {name}" for name in arguments.names()]
    return _lays(calls, mesh, manual, asked, template, names, avals)


def _specs_in_types(
    name: str, mesh: AnyMesh, manual: Sequence[Any], avals: Sequence[ShapedArray]
) -> list[PartitionSpec]:
    unknown = [axis for axis in manual if axis not in mesh.explicit_axes]
    if unknown:
        raise TypeError(message(
            f"shard_map({name})", f"types do not say how arguments lie along the axis "
            f"{unknown[0]!r}.", got=repr(mesh), expected="in_specs, or axes of type Explicit",
        ))  # fmt: skip
    specs = [PartitionSpec() if a.spread is None else a.spread.spec for a in avals]
    return [_along(spec, manual) for spec in specs]


def _along(spec: PartitionSpec, manual: Sequence[Any]) -> PartitionSpec:
    """Return what a spec says of some axes."""
    return PartitionSpec(
        *[tuple([n for n in axes_of(part) if n in manual]) for part in spec],
        unreduced=spec.unreduced.intersection(manual), reduced=spec.reduced.intersection(manual),
    )  # fmt: skip


def _result_lays(
    calls: _ShardMapCalls, mesh: AnyMesh, manual: Sequence[Any], out_tree: Any,
    avals: Sequence[ShapedArray],
) -> tuple[Lay, ...]:  # fmt: skip
    names = [f"out_specs of result {i}" for i in range(len(avals))]
    lays = _lays(calls, mesh, manual, calls.options["out_specs"], out_tree.unflatten(avals), names,
                 avals, are_pieces=True)  # fmt: skip
    return tuple(lays)


def _lays(
    calls: _ShardMapCalls, mesh: AnyMesh, manual: Sequence[Any], specs: Any, template: Any,
    names: Sequence[str], avals: Sequence[ShapedArray], are_pieces: bool = False,
) -> list[Lay]:  # fmt: skip
    """Return how values lie, after a look at their shapes."""
    operation = f"shard_map({calls.name})"
    try:
        found = xtree.broadcast_prefix(specs, template, is_leaf=_is_spec)
    except (ValueError, TypeError) as error:
        raise ValueError(message(
            operation, f"{names[0].split()[0] if names else 'a spec'} is no tree prefix of its "
            "values.", got=str(error),
        )) from None  # fmt: skip
    lays = []
    for spec, name, aval in zip(found, names, avals, strict=True):
        spec = PartitionSpec() if spec is None else spec
        check_axis_names(f"{operation}: {name}", mesh, spec)
        unmanaged = [n for n in (*spec.names(), *spec.sums) if n not in manual]
        if unmanaged:
            raise ValueError(message(
                f"{operation}: {name}", f"the axis {unmanaged[0]!r} is not among axis_names.",
                got=f"{spec}, axis_names={tuple(manual)}",
            ))  # fmt: skip
        lay = Lay(spec)
        whole = aval
        if not are_pieces:
            _check_sums(f"{operation}: {name}", spec, aval, manual)
        if are_pieces and len(spec) <= aval.ndim:
            whole = lay.whole(aval, dict(mesh.shape))
        NamedSharding(mesh, spec).check_shape(whole.shape, f"{operation}: {name}")
        lays.append(lay)
    return lays


def _check_sums(
    operation: str, spec: PartitionSpec, aval: ShapedArray, manual: Sequence[Any]
) -> None:
    """Raise where types and specs differ in what is in parts: nobody has asked to add these up."""
    if sums_of(aval).unreduced.intersection(manual) != spec.unreduced:
        raise ValueError(message(
            operation, "the argument is in parts of sums along other axes than the spec says.",
            got=f"{spec} for {aval.str_long()}", hint="reshard(x, P(...)) brings it there",
        ))  # fmt: skip


def _check_varying(
    name: str, closed: ClosedJaxpr, out_lays: Sequence[Lay], manual: Sequence[Any]
) -> None:
    """Raise for a result that varies over an axis that its spec does not name."""
    said = [frozenset([*x.spec.names(), *x.spec.unreduced]) for x in out_lays]
    for i, axis in alike_in_parts(closed, [x.spec.unreduced for x in out_lays]):
        raise ValueError(message(
            f"shard_map({name})", f"result {i} is the same for all members of the axis {axis!r}, "
            "whose values its spec says are parts of a sum.",
            got=f"out_specs {out_lays[i].spec} for {closed.out_avals[i].str_long()} on each device",
            hint=f"leave {axis!r} out of unreduced; check_vma=False adds them up all the same",
        ))  # fmt: skip
    for i, axes, eqn in unsaid(closed, said, manual):
        axis = next(name for name in manual if name in axes)
        raise ValueError(message(
            f"shard_map({name})", f"result {i} varies over the axis {axis!r}, which its spec does "
            "not name.",
            got=f"out_specs {out_lays[i].spec} for {closed.out_avals[i].str_long()} on each device",
            where=source.describe(eqn.source) if eqn is not None else "",
            hint=f"psum, pmean or pmax over {axis!r} makes it the same for all;\nall_gather does "
            "with to='invarying'; or name the axis in out_specs;\ncheck_vma=False takes the value "
            "of one member",
        ))  # fmt: skip


boundaries(globals())
