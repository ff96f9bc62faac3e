"""`vmap`: write the program for one example, run it on a batch."""

from __future__ import annotations

import difflib
import functools
import inspect
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import xnp
import xtree
from xbatch.batching import BatchAxis, BatchTracer, batch_flat
from xnp import lax
from xnp.primitives.table import join_chunks, split_chunks
from xprim import Array, Zero, as_array, dtypes, not_mapped, state
from xprim.errors import argument_names, message
from xprim.function_keys import describe_function
from xprim.refs import BaseRef
from xprim.requirements import require, require_choice
from xprim.sharded_types import reshard_as, with_dimension
from xprim.strict_options import calls_its_function
from xprim.tracebacks import boundary, shorten
from xprim.transformed import as_arrays, check_function, flat_arrays, path_of, transforming
from xprim.typing import AxisName, PyTree
from xtree.interning import remember

__all__ = ["is_vmappable", "register_vmappable", "unregister_vmappable"]

__dir__ = __all__.copy

# ---------------------------------------------------------------------------------- mapped types
# Types that `vmap` takes apart by functions of their own, where a tree of arrays does not say
# how.
#
# An object of a registered type is one leaf: one entry of `in_axes` or `out_axes`, an int or an
# object of the type's own specifications, stands for all of it. On the way in the type's function
# makes of it what stands for one example, on the way out of that the whole again; each calls back
# with the arrays inside. So some of them may be mapped along other axes, or not at all.


class _Kind(NamedTuple):
    """How `vmap` takes objects of a type apart and puts them together."""

    spec_type: type
    axis_size_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]
    make_iota: Callable[[Any], Any] | None


# By the type of the objects; as many as were registered.
kinds: dict[type, _Kind] = {}


class Held:
    """An object of a registered type among leaves, with its entry of `in_axes`."""

    __slots__ = ("spec", "value")

    aval = "an object"  # stands for it in a tree of types

    def __init__(self, value: Any, spec: Any = None) -> None:
        self.value = value
        self.spec = spec


# Results that are not arrays.
_STAY = frozenset({Held, Zero})


@boundary
def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable[..., Any],
    from_elt: Callable[..., Any], make_iota: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Let `vmap` take the objects of a type apart by functions.

    Args:
      data_type: the type; its subclasses are others.
      spec_type: the type of its entries in `in_axes` and `out_axes`, `int` or one of its own. None
        may stand there for any type.
      axis_size_type: the type of `axis_size` that `make_iota` is for; its objects have `__index__`.
      to_elt: `to_elt(element, number, x, spec)` returns what stands for one example of `x`. For an
        array `a` inside, `element(a, axis)` is its part along that axis, or `a` itself for the axis
        None; `number()` is the number of the example.
      from_elt: `from_elt(whole, axis_size, x, spec)` returns the whole of such a result `x`. For an
        array `a` inside, `whole(axis_size, a, axis)` is that of all examples, along that axis.
      make_iota: returns the numbers of the examples, from an `axis_size` of `axis_size_type`; None
        for those from 0, as int32.

    Raises:
      TypeError: a type is not a type, or a function cannot be called.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> class Scaled:
      ...     def __init__(self, values, scale):
      ...         self.values, self.scale = values, scale
      >>> register_vmappable(
      ...     Scaled, int, int,
      ...     lambda element, number, x, axis: Scaled(element(x.values, axis), x.scale),
      ...     lambda whole, size, x, axis: Scaled(whole(size, x.values, axis), x.scale),
      ... )
      >>> vmap(lambda x: x.values * x.scale, axis_size=2)(Scaled(np.array([1, 2]), 10))
      Array([10, 20], dtype=int32)
      >>> unregister_vmappable(Scaled)
    """
    for name, given in (("data_type", data_type), ("spec_type", spec_type),
                        ("axis_size_type", axis_size_type)):  # fmt: skip
        require(
            isinstance(given, type), "register_vmappable", "{} must be a type.", name, got=given,
            error=TypeError,
        )  # fmt: skip
    for name, function in (("to_elt", to_elt), ("from_elt", from_elt), ("make_iota", make_iota)):
        if not callable(function) and (function is not None or name != "make_iota"):
            raise TypeError(message(
                "register_vmappable", f"{name} must be a function.", got=repr(function)
            ))  # fmt: skip
    kinds[data_type] = _Kind(spec_type, axis_size_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """Let `vmap` treat the objects of a type as any others again."""
    kinds.pop(data_type, None)


def is_vmappable(x: Any) -> bool:
    """Return whether the type of an object is registered."""
    return type(x) in kinds


def is_spec(axis: Any) -> bool:
    """Return whether an entry of `in_axes` or `out_axes` is of a registered type."""
    return any(_is_of(axis, kind.spec_type) for kind in tuple(kinds.values()))


def _is_of(axis: Any, spec_type: type) -> bool:
    return isinstance(axis, spec_type) and type(axis) is not bool


def as_leaves(tree: Any) -> Any:
    """Return a tree in which objects of registered types are leaves."""
    leaves, structure = xtree.flatten(tree, is_leaf=is_vmappable)
    return xtree.unflatten(structure, [Held(x) if is_vmappable(x) else x for x in leaves])


def _has_objects(values: Sequence[Any]) -> bool:
    """Return whether objects of registered types are among arguments or results."""
    return any(type(x) is Held for x in values)


def with_specs(values: list[Any], axes: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the arguments, the objects with their entries, and the axes of arrays alone."""
    pairs = [*zip(values, axes, strict=True)]
    for x, axis in pairs:
        _check_spec(x, axis, "in_axes")
    return ([Held(x.value, a) if type(x) is Held else x for x, a in pairs],
            [None if type(x) is Held else a for x, a in pairs])  # fmt: skip


def _check_spec(x: Any, axis: Any, name: str) -> None:
    wanted = kinds[type(x.value)].spec_type if type(x) is Held else int
    if axis is not None and axis is not not_mapped and not _is_of(axis, wanted):
        what = f"a {type(x.value).__qualname__}" if type(x) is Held else "an array"
        raise TypeError(message(
            "vmap", f"the entry of {name} for {what} must be of type {wanted.__name__}, or None.",
            got=repr(axis),
        ))  # fmt: skip


# --- elements -------------------------------------------------------------------------------------


def elements_of(axis: BatchAxis, axis_size: Any, values: Any) -> tuple[Any, ...]:
    """Return the arguments for one example, inside the trace: objects by their functions."""
    trace: Any = state.trace

    def element(x: Any, spec: Any) -> Any:
        kind = kinds.get(type(x))
        if kind is not None:
            return kind.to_elt(element, number, x, spec)
        if spec is None:
            return x
        array = as_array(x, what="vmap: an array of an object")
        return BatchTracer(trace, array, _dimension(array, spec, axis.size))

    def number() -> Any:
        makers = [k.make_iota for k in tuple(kinds.values()) if k.axis_size_type is type(axis_size)]
        make = next((m for m in makers if m is not None), None)
        counted = lax.iota(dtypes.int32, axis.size) if make is None else as_array(make(axis_size))
        return BatchTracer(trace, counted, _dimension(counted, 0, axis.size))

    return tuple([element(x.value, x.spec) if type(x) is Held else x for x in values])


def _dimension(x: Array, axis: Any, size: int) -> Any:
    shape, place = x.aval.shape, axis + len(x.aval.shape) if axis < 0 else axis
    require(
        0 <= place < len(shape) and shape[place] == size, "vmap",
        "an array of an object has no {} examples along axis {}.", size, axis, got=x,
        hint="axis_size=... says how many examples there are",
    )  # fmt: skip
    return place


# --- results --------------------------------------------------------------------------------------


def flat_results(result: Any) -> tuple[list[Any], Any]:
    """Return the results as a list, objects as `Held`, and their structure."""
    leaves, structure = xtree.flatten(as_leaves(result))
    return _arrays_beside(leaves, structure), structure


def _arrays_and_zeros(result: Any, chunk_size: int | None) -> tuple[list[Any], Any]:
    """Return the results as a list and their structure.

    A `Zero` stays one: a derivative rule that is mapped returns it as the tangent or cotangent of
    what has none. Chunks are of arrays alone.
    """
    leaves, structure = xtree.flatten(result)
    for x in leaves:
        if not isinstance(x, Array):
            if chunk_size is not None:
                if any(type(x) in _STAY for x in leaves):
                    raise not_in_chunks()
                return flat_arrays(result, "vmap")
            return _arrays_beside(leaves, structure), structure
    return leaves, structure


def _arrays_beside(leaves: list[Any], structure: Any) -> list[Any]:
    """Return leaves as arrays; objects and zeros stay as they are."""
    arrays = as_arrays([0 if type(x) in _STAY else x for x in leaves], "vmap", structure,
                       "the result")  # fmt: skip
    return [x if type(x) in _STAY else a for x, a in zip(leaves, arrays, strict=True)]


def wholes_of(
    axis: BatchAxis, axis_size: Any, results: list[Any], wanted: list[Any],
    placed: Callable[..., Any],
) -> list[Any]:  # fmt: skip
    """Return the results, inside the trace: objects as those of all examples, by their functions.

    `placed(i, x, dim, wanted)` puts the batch dimension of an array where it is wanted.
    """
    found = []
    for i, (x, spec) in enumerate(zip(results, wanted, strict=True)):
        _check_spec(x, spec, "out_axes")
        spec = None if spec is not_mapped else spec
        if type(x) is Held:
            x = Held(_whole_of(axis, partial(placed, i), axis_size, x.value, spec))
        found.append(x)
    return found


def _whole_of(axis: BatchAxis, place: Callable[..., Any], axis_size: Any, x: Any, spec: Any) -> Any:
    kind = kinds.get(type(x))
    if kind is not None:  # no closure, which would hold itself and what it saw until a collection
        return kind.from_elt(partial(_whole_of, axis, place), axis_size, x, spec)
    array, dim = as_array(x, what="vmap: an array of a result"), not_mapped
    if type(array) is BatchTracer and array._trace.axis is axis:
        array, dim = array.value, array.dim
    spec = not_mapped if spec is None else spec
    return array if dim is spec else place(array, dim, spec)


# ----------------------------------------------------------------------------------- vmap errors
# The errors of `vmap`: what was requested, what the arguments are, and their names.
#
# All of this runs only after something was found wrong, so it may take its time: argument names
# come from the function's signature, and sizes that differ are listed argument by argument.

_E = TypeVar("_E", bound=Exception)


_MAX_LISTED = 20


def _wrong(kind: type[_E], problem: str, **labels: str) -> _E:
    """Return the error of `vmap` that says this."""
    return kind(message("vmap", problem, **labels))


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def check_in_axes(in_axes: Any) -> None:
    """Raise a TypeError unless `in_axes` is an int, None, or a tuple or dict of what it may be."""
    one = in_axes is None or type(in_axes) is int or is_spec(in_axes)
    if not one and not isinstance(in_axes, tuple | dict):
        raise _wrong(
            TypeError,
            "in_axes must be an int, None, or a tuple with an entry for each argument.",
            got=repr(in_axes),
            hint="a dict gives axes by the names of arguments" if type(in_axes) is str else "",
        )
    if not isinstance(in_axes, dict):
        _check_leaves("in_axes", in_axes)
        return
    for name, axis in in_axes.items():
        if not isinstance(name, str) and name is not ...:
            raise _wrong(TypeError, "in_axes may name arguments alone.", got=repr(name),
                         expected="a str, or ... for all others")  # fmt: skip
        if axis is not None and type(axis) is not int and not is_spec(axis):
            raise _wrong(
                TypeError, "in_axes may give a name only an int or None.",
                got=f"in_axes[{name!r}] = {axis!r}",
                hint="parts of an argument have names, too: \"p['w']\"",
            )  # fmt: skip


def check_out_axes(out_axes: Any) -> None:
    """Raise a TypeError unless `out_axes` is a tree of ints and None."""
    _check_leaves("out_axes", out_axes)


def _check_leaves(name: str, axes: Any) -> None:
    for path, leaf in xtree.leaves_with_path(axes):
        if type(leaf) is not int and not is_spec(leaf):
            raise _wrong(
                TypeError,
                f"{name} must be an int, None, or a tree of them.",
                got=f"{name}{xtree.keystr(path)} = {leaf!r}",
            )


def check_size(axis_size: Any) -> int:
    """Return `axis_size` as an int."""
    try:
        size = operator.index(axis_size)
    except TypeError:
        raise _wrong(TypeError, "axis_size must be an int or None.", got=repr(axis_size)) from None
    if size < 0:
        raise _wrong(ValueError, "axis_size must not be negative.", got=str(size))
    return size


def check_chunk_size(chunk_size: Any, named: bool) -> int:
    """Return `chunk_size` as an int; `named` is whether the axis has a name."""
    try:
        size = operator.index(chunk_size)
    except TypeError:
        raise _wrong(
            TypeError, "chunk_size must be an int or None.", got=repr(chunk_size)
        ) from None
    if size < 1:
        raise _wrong(ValueError, "chunk_size must be at least 1.", got=str(size))
    if named:
        raise _wrong(
            ValueError, "chunk_size does not go with axis_name or spmd_axis_name: collectives are "
            "over all examples.",
        )  # fmt: skip
    return size


def not_in_chunks() -> ValueError:
    """Return the error for what cannot be run a few examples at a time."""
    return _wrong(
        ValueError, "chunk_size does not go with references, zero tangents, objects of registered "
        "types or examples that a mesh cuts.",
    )  # fmt: skip


def examples_cut_otherwise(part: Any, other: Any) -> ValueError:
    """Return the error for arguments whose examples are cut along different axes of a mesh."""
    return _wrong(
        ValueError, "the axes of the examples are sharded along different axes of a mesh.",
        got=f"{part!r} and {other!r}", hint="reshard(x, P(...)) makes the arguments agree",
    )  # fmt: skip


def examples_cut_already(mesh_axes: Any, part: Any) -> ValueError:
    """Return the error for `spmd_axis_name` beside examples that explicit axes cut."""
    return _wrong(
        ValueError, "the types of the arguments and spmd_axis_name both say how the examples "
        "are sharded.", got=f"{part!r} and spmd_axis_name={mesh_axes!r}",
        hint="leave spmd_axis_name out",
    )  # fmt: skip


def no_such_argument(name: str, known: Sequence[str]) -> ValueError:
    """Return the error for `in_axes` that names no argument and no part of one."""
    shown = [*known[:_MAX_LISTED], *(["..."] if len(known) > _MAX_LISTED else [])]
    close = difflib.get_close_matches(name, known, 1)
    return _wrong(
        ValueError,
        f"in_axes names {name}, which is not an argument or a part of one.",
        expected=f"one of {', '.join(shown)}, or what one of them begins with",
        hint=f"perhaps {close[0]}" if close else "",
    )


def in_axes_mismatch(in_axes: Any, args: Any, mismatch: Any) -> Exception:
    """Return the error for `in_axes` that is not a prefix of the arguments."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        hint = ""
        if len(args) == 1 and isinstance(args[0], tuple | list) and len(in_axes) == len(args[0]):
            hint = "for one argument that is a tuple, write in_axes=((...),)"
        return _wrong(
            ValueError,
            "in_axes must have one entry for each positional argument.",
            got=f"{_count(len(in_axes), 'entry', 'entries')} in in_axes={in_axes!r}, "
            + _count(len(args), "argument", "arguments"),
            hint=hint,
        )
    error: Exception = mismatch.error("vmap", "in_axes", "args")
    return error


def out_axes_mismatch(mismatch: Any) -> Exception:
    """Return the error for `out_axes` that is not a prefix of the result."""
    error: Exception = mismatch.error("vmap", "out_axes", "the result")
    return error


def bad_arguments(
    fun: Callable[..., Any], args: Any, kwargs: Any, values: Sequence[Array],
    axes: Sequence[int | None], axis_size: int | None,
) -> ValueError:  # fmt: skip
    """Return the error for arguments that cannot be mapped together."""
    names = argument_names(fun, args, kwargs)
    mapped = [(n, x, a) for n, x, a in zip(names, values, axes, strict=True) if a is not None]
    if not mapped and axis_size is None:
        return _wrong(
            ValueError,
            "no argument is mapped, so the number of examples is unknown.",
            got=f"{_count(len(names), 'array', 'arrays')} among the arguments, none with an "
            "axis in in_axes",
            expected="an axis in in_axes that is not None, or axis_size=",
        )
    for name, x, a in mapped:
        if not -x.ndim <= a < x.ndim:
            return _axis_out_of_range(name, x, a)
    return _sizes_differ(mapped, axis_size)


def _axis_out_of_range(name: str, x: Array, axis: int) -> ValueError:
    rank = axis + 1 if axis >= 0 else -axis
    hint = ""
    if x.ndim == 0:
        hint = "in_axes=None for an argument that all examples share" + (
            ";\na list or tuple is a tree of arguments: xnp.array(...) makes one array of numbers"
            if name.endswith("]") else ""
        )  # fmt: skip
    return _wrong(
        ValueError,
        f"the argument {name} has no axis {axis}.",
        got=f"{name}: {x.aval.strong().str_long()}",
        expected=f"an array with at least {rank} dimension{'s' if rank != 1 else ''}",
        hint=hint,
    )


def _sizes_differ(mapped: Sequence[tuple[str, Array, int]], axis_size: int | None) -> ValueError:
    sizes = [x.shape[a] for _, x, a in mapped]
    distinct = sorted(set(sizes) | ({axis_size} if axis_size is not None else set()))
    lines = [] if axis_size is None else [f"axis_size={axis_size}"]
    lines += [
        f"{name}: size {size} along axis {a} of {x.aval.str_long()}"
        for (name, x, a), size in zip(mapped, sizes, strict=True)
    ]
    if len(lines) > _MAX_LISTED:  # keep those that stand out
        common = Counter(sizes).most_common(1)[0][0]
        rare = [t for t, s in zip(lines[-len(sizes) :], sizes, strict=True) if s != common]
        rest = len(sizes) - len(rare)
        shown = rare[: _MAX_LISTED - 1]
        more = [f"... and {len(rare) - len(shown)} more"] if len(rare) > len(shown) else []
        lines = [*lines[: len(lines) - len(sizes)], *shown, *more,
                 f"all other {rest} arrays: size {common}"]  # fmt: skip
    return _wrong(
        ValueError,
        f"the axes to map have different sizes: {_join(distinct)}.",
        got="\n".join(lines),
        expected="one size along all mapped axes",
    )


def _join(numbers: Sequence[int]) -> str:
    *first, last = [str(n) for n in numbers]
    return f"{', '.join(first)} and {last}" if first else last


def map_result(x: Any, dim: int, i: int, out_tree: Any) -> ValueError:
    """Return the error for a result that differs among examples although out_axes is None."""
    name = _result_name(i, out_tree)
    return _wrong(
        ValueError,
        f"out_axes is None for {name}, which differs from example to example.",
        got=f"{name}: {x.aval.str_long()}, mapped along axis {dim}",
        expected="an int in out_axes for results that depend on a mapped argument",
    )


def out_axis_out_of_range(x: Any, axis: int, ndim: int, i: int, out_tree: Any) -> ValueError:
    """Return the error for an entry of `out_axes` that the result has no room for."""
    name = _result_name(i, out_tree)
    return _wrong(
        ValueError,
        f"out_axes places the axis of the examples at {axis}, which {name} does not have.",
        got=f"{name}: {_count(ndim, 'dimension', 'dimensions')} with that of the examples",
        expected=f"an int from {-ndim} to {ndim - 1}",
    )


def _result_name(i: int, out_tree: Any) -> str:
    return f"the result{path_of(out_tree, i)}"


# -------------------------------------------------------------------------------- mapped references
# References among the arguments that `vmap` maps: each example has its own part of one.
#
# Inside, a reference of the batch trace stands for it; its last value goes back as a whole batch.

MappedRefs = dict[int, tuple[BaseRef, int]]
"""By the number of the argument: a reference that is mapped, and its batch dimension."""


def map_refs(leaves: Sequence[Any], values: Sequence[Any], dims: Sequence[Any]) -> MappedRefs:
    """Return the references among the mapped arguments.

    Args:
      leaves: the arguments.
      values: the same as arrays.
      dims: their batch dimensions.

    Raises:
      ValueError: one is passed twice.
    """
    found: MappedRefs = {}
    for i, (x, value, dim) in enumerate(zip(leaves, values, dims, strict=True)):
        if value is not x and dim is not not_mapped and isinstance(x, BaseRef):
            if any(x is ref for ref, _ in found.values()):
                raise ValueError(message(
                    "vmap", f"one {x.kind} is used under two names.",
                    got=f"a {x.kind} of {x.aval.str_long()}, passed twice",
                    hint="leave out the argument, or pass two references",
                ))  # fmt: skip
            found[i] = (x, dim)
    return found


def inside(refs: MappedRefs, elements: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments of the function for one example, with references of its own."""
    return tuple([refs[i][0].argument(x) if i in refs else x for i, x in enumerate(elements)])


def last_values(refs: MappedRefs, elements: Sequence[Any]) -> list[Any]:
    """Return the values that the references of one example have in the end."""
    return [elements[i].lend() for i in refs]


def write_outer_refs(
    axis: BatchAxis, refs: MappedRefs, results: Sequence[Any], dims: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Write the last values of references, and return the other results and their dimensions."""
    count = len(results) - len(refs)
    ends = zip(results[count:], dims[count:], refs.values(), strict=True)
    for value, dim, (ref, place) in ends:
        ref.write(
            axis.broadcast(value, place) if dim is not_mapped else axis.move(value, dim, place)
        )
    return [*results[:count]], [*dims[:count]]


# ------------------------------------------------------------------------------------------ vmap
# `vmap`: write the program for one example, run it on a batch.
#
# The wrapped function runs once, on tracers that stand for one example each; every operation is
# carried out on the whole batch at once. This file is the boundary to users: trees of arguments
# and results, prefix trees of axes, and the errors that name an argument. What `in_axes` and
# `out_axes` mean for a structure of arguments or results is worked out once for each structure.

F = TypeVar("F", bound=Callable[..., Any])

_MAX_STRUCTURES = 64  # kept for each vmapped function
_NUMBERS = frozenset((bool, int, float, complex))

AxesByStructure = dict[Any, list[Any]]


@boundary
def vmap(
    fun: F,
    in_axes: int | Sequence[Any] | Mapping[Any, Any] | None = 0,
    out_axes: PyTree = 0,
    axis_name: AxisName = None,
    axis_size: int | None = None,
    spmd_axis_name: AxisName = None,
    sum_match: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "same",
) -> F:
    """Return a function that maps `fun` over an axis of its arguments.

    Args:
      fun: a function of pytrees of arrays, written for one example.
      in_axes: which axis of each positional argument holds the examples: an int (negative ones
        count from the end), None for an argument that all examples share (which may be a function,
        or hold some), or a tuple or list with one entry an argument. An entry may be a tree prefix
        of its argument. Keyword arguments are mapped over axis 0. Or a dict from names of
        arguments and their parts, as errors write them (`"p['w']"`, `"layers[0].bias"`), to ints
        and None, for keyword arguments, too: the longest name counts, `...` stands for all others,
        which are shared without it.
      out_axes: where the axis of the examples goes in the results; a tree prefix of the result.
        None says that a result is the same for all examples, or with `sum_match` that it is the
        sum over them.
      axis_name: a name for the axis, for collectives inside `fun`.
      axis_size: the number of examples; needed only where no argument is mapped.
      spmd_axis_name: the axis of a mesh, or several, that cut the axis of the examples wherever
        `fun` gives the sharding of a value (`with_sharding_constraint`). None leaves that to the
        compiler.
      sum_match: what `out_axes` of None means for a result that differs among examples: an error,
        or with True the sum over the examples, as the transpose of an argument with `in_axes` of
        None has it. Results that are the same for all examples stay what they are.
      chunk_size: how many examples are run at once, chunk after chunk, so that what `fun` computes
        on the way takes the memory of that many; it is traced then, as the body of a loop. None
        runs all at once. The results are equal. It does not go with `axis_name`, since collectives
        are over all examples.
      randomness: what a draw gives whose key is not mapped, such as one that `fun` closes over:
        "same" the same numbers for each example, "error" an error that names the line. A key that
        is mapped draws what it draws without `vmap`.

    Returns:
      A function of the same arguments, with one more axis in those that are mapped and in the
      results.

    Raises:
      ValueError: when sizes differ, an axis is out of range, nothing is mapped, a result that
        differs among examples has `out_axes` None (without `sum_match`), or a prefix does not
        fit; the text names the argument. When `randomness` is none of its choices.
      KeyReuseError: with `randomness="error"`, a key that is not mapped is drawn from.
      TypeError: when `in_axes` or `out_axes` hold something else than ints and None.

    Example:
      >>> import numpy as np
      >>> vmap(lambda x, y: x + y, in_axes=(0, None))(np.array([1, 2]), 10)
      Array([11, 12], dtype=int32)
      >>> vmap(lambda p, x: p["w"] * x, in_axes={"p['w']": 0})({"w": np.array([1, 2]), "b": 3}, 10)
      Array([10, 20], dtype=int32)
      >>> vmap(lambda x: 2 * x, out_axes=None, sum_match=True)(np.array([1, 2]))
      Array(6, dtype=int32)
    """
    check_function(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, Mapping):
        in_axes = dict(in_axes)
    check_in_axes(in_axes)
    check_out_axes(out_axes)
    size_given = axis_size
    if axis_size is not None:
        axis_size = check_size(axis_size)
    mesh_axes = () if spmd_axis_name is None else spmd_axis_name
    mesh_axes = mesh_axes if isinstance(mesh_axes, tuple) else (mesh_axes,)
    if chunk_size is not None:
        named = (axis_name, spmd_axis_name) != (None, None)
        chunk_size = check_chunk_size(chunk_size, named)
    require_choice("vmap", "randomness", randomness, ("same", "error"))
    run = _Mapping(
        fun,
        in_axes,
        out_axes,
        axis_name,
        axis_size,
        mesh_axes,
        size_given,
        chunk_size,
        bool(sum_match),
        randomness,
    ).run

    @transforming(fun, "vmap")
    def call_vmapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    held = tuple(in_axes.items()) if isinstance(in_axes, dict) else in_axes
    options = (
        held, out_axes, axis_name, axis_size, mesh_axes, chunk_size, bool(sum_match), randomness,
    )  # fmt: skip
    describe_function(call_vmapped, lambda: ("vmap", fun, *options))
    return cast("F", call_vmapped)


class _Mapping:
    """A function and how to map it, with what was worked out for the structures it met."""

    __slots__ = ("axis_name", "axis_size", "chunk_size", "fun", "in_axes", "in_memo", "mesh_axes",
                 "out_axes", "out_memo", "randomness", "size_given", "sums")  # fmt: skip

    def __init__(
        self, fun: Callable[..., Any], in_axes: Any, out_axes: Any, axis_name: Any,
        axis_size: int | None, mesh_axes: tuple[Any, ...], size_given: Any,
        chunk_size: int | None, sums: bool, randomness: str,
    ) -> None:  # fmt: skip
        self.fun = fun
        self.randomness = randomness
        self.sums = sums  # results with `out_axes` of None over the examples
        self.chunk_size = chunk_size
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.axis_name = axis_name
        self.axis_size = axis_size
        self.size_given = size_given  # as functions of registered types get it
        self.mesh_axes = mesh_axes
        self.in_memo: AxesByStructure = {}
        self.out_memo: AxesByStructure = {}

    @functools.partial(calls_its_function, inner="flat_fun")
    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function on all examples."""
        fun: Any = self.fun
        with_types = bool(kinds)
        if with_types:
            args, kwargs = as_leaves((args, kwargs))
        leaves, in_tree = xtree.flatten((args, kwargs) if kwargs else args)
        axis, values, dims = self._arguments(args, kwargs, leaves, in_tree)
        chunk_size = self.chunk_size
        if chunk_size is not None and axis.size <= chunk_size:
            chunk_size = None
        refs = map_refs(leaves, values, dims)
        numbers = [i for i, x in enumerate(leaves) if type(x) in _NUMBERS and dims[i] is not_mapped]
        out_tree: Any = None

        def flat_fun(*elements: Any) -> list[Any]:
            nonlocal out_tree
            if numbers:  # the function may ask for their values: they stay what they are
                elements = tuple([leaves[i] if i in numbers else x for i, x in enumerate(elements)])
            if with_types and chunk_size is None:
                elements = elements_of(axis, self._size_of(axis), elements)
            if refs:
                elements = inside(refs, elements)
            if kwargs:
                given, options = xtree.unflatten(in_tree, elements)
                result = fun(*given, **options)
            else:
                result = fun(*xtree.unflatten(in_tree, elements))
            if with_types:
                results, out_tree = flat_results(result)
                if chunk_size is None:
                    results = self._wholes(axis, results, out_tree)
                elif any(type(x) in _STAY for x in results):
                    raise not_in_chunks()
            else:
                results, out_tree = _arrays_and_zeros(result, chunk_size)
            return [*results, *last_values(refs, elements)] if refs else results

        if chunk_size is None:
            results, out_dims = batch_flat(axis, flat_fun, values, dims)
        elif refs or axis.sharding is not None or _has_objects(values):
            raise not_in_chunks()
        else:
            results, out_dims = in_chunks(axis, flat_fun, values, dims, chunk_size)
        if refs:
            results, out_dims = write_outer_refs(axis, refs, results, out_dims)
        wanted = self._select_wanted(results, out_tree)
        placed = [
            x.value if type(x) is Held else x if d is w else self._place(axis, x, d, w, i, out_tree)
            for i, (x, d, w) in enumerate(zip(results, out_dims, wanted, strict=True))
        ]
        return xtree.unflatten(out_tree, placed)

    def _place(self, axis: BatchAxis, x: Any, dim: Any, wanted: Any, i: int, out_tree: Any) -> Any:
        if type(x) is Zero:
            ndim = len(x.aval.shape) + 1
            place = wanted + ndim if wanted < 0 else wanted
            if not 0 <= place < ndim:
                raise out_axis_out_of_range(x, wanted, ndim, i, out_tree)
            return Zero(with_dimension(x.aval, place, axis.size))
        if wanted is not_mapped and self.sums:
            return xnp.sum(x, axis=dim)
        return _place(axis, x, dim, wanted, i, out_tree)

    def _size_of(self, axis: BatchAxis) -> Any:
        return axis.size if self.size_given is None else self.size_given

    def _select_wanted(self, results: Sequence[Any], out_tree: Any) -> list[Any]:
        wanted = self.out_memo.get(out_tree)
        if wanted is None:
            axes = _axes_of_results(self.out_axes, out_tree, results)
            wanted = remember(self.out_memo, out_tree, axes, _MAX_STRUCTURES)
        return wanted

    def _wholes(self, axis: BatchAxis, results: list[Any], out_tree: Any) -> list[Any]:
        """Put objects of registered types among the results together."""

        def place(i: int, x: Any, dim: Any, wanted: Any) -> Any:
            return self._place(axis, x, dim, wanted, i, out_tree)

        wanted = self._select_wanted(results, out_tree)
        return wholes_of(axis, self._size_of(axis), results, wanted, place)

    def _arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any], in_tree: Any
    ) -> tuple[BatchAxis, list[Array], list[Any]]:
        """Return the axis, the arguments as Arrays, and their batch dimensions."""
        structure = (in_tree,) if kwargs else in_tree
        axes = self.in_memo.get(structure)
        if axes is None:
            axes = _axes_of_arguments(self.fun, self.in_axes, args, kwargs)
            remember(self.in_memo, structure, axes, _MAX_STRUCTURES)
        values = [
            x if isinstance(x, Array) else _argument(self.fun, args, kwargs, i, x, axes[i])
            for i, x in enumerate(leaves)
        ]
        if kinds:
            values, axes = with_specs(values, axes)
        size, dims = _dims(values, axes, self.axis_size)
        if dims is None or size is None:
            raise bad_arguments(self.fun, args, kwargs, values, axes, self.axis_size)
        mesh_axes, sharding = self.mesh_axes, None
        pairs = zip(values, dims, strict=True)
        if any(d is not not_mapped and x.aval.type_sharding is not None for x, d in pairs):
            values, sharding = _slice_alike(values, dims, mesh_axes)
            mesh_axes = mesh_axes or _axes_of(sharding)
        axis = BatchAxis(size, self.axis_name, mesh_axes, sharding, self.randomness)
        return axis, values, dims


def _is_none(value: Any) -> bool:
    return value is None


def _axes_by_name(fun: Any, in_axes: dict[Any, Any], args: Any, kwargs: Any) -> list[Any]:
    """Return the axis of each leaf: that of the longest name among its own and what it is in."""
    leaves = argument_names(fun, args, kwargs)
    names = [[leaf[:k] for k in range(len(leaf), 0, -1) if leaf[k : k + 1] in ("", "[", ".")]
             for leaf in leaves]  # fmt: skip
    unknown = set(in_axes) - {...}.union(*names)
    if unknown and (others := unknown - _parameters(fun)):  # which may hold no arrays
        raise no_such_argument(min(others), leaves)
    return [in_axes.get(next((n for n in own if n in in_axes), ...)) for own in names]


def _parameters(fun: Any) -> set[str]:
    try:
        return set(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return set()


def _axes_of_arguments(fun: Any, in_axes: Any, args: Any, kwargs: Any) -> list[Any]:
    """Return the axis of each leaf of the arguments; None where it is not mapped."""
    if isinstance(in_axes, dict):
        return _axes_by_name(fun, in_axes, args, kwargs)
    options = [0] * len(xtree.leaves(kwargs))
    if in_axes is None or type(in_axes) is int:
        return [in_axes] * len(xtree.leaves(args)) + options
    mismatches = xtree.prefix_errors(in_axes, args, is_leaf=_is_none)
    if mismatches:
        raise in_axes_mismatch(in_axes, args, mismatches[0])
    return xtree.broadcast_prefix(in_axes, args, is_leaf=_is_none) + options


def _axes_of_results(out_axes: Any, out_tree: Any, results: Sequence[Any]) -> list[Any]:
    """Return the wanted axis of each leaf of the results; `not_mapped` stands for None."""
    count = out_tree.num_leaves
    if out_axes is None or type(out_axes) is int:
        axes = [out_axes] * count
    else:
        full = xtree.unflatten(out_tree, [x.aval for x in results])
        mismatches = xtree.prefix_errors(out_axes, full, is_leaf=_is_none)
        if mismatches:
            raise out_axes_mismatch(mismatches[0])
        axes = xtree.broadcast_prefix(out_axes, full, is_leaf=_is_none)
    return [not_mapped if a is None else a for a in axes]


def _argument(fun: Any, args: Any, kwargs: Any, i: int, value: Any, axis: int | None) -> Any:
    """Convert a foreign value; one that is not an array (a function) passes where it is not mapped.

    An error names the argument.
    """
    if type(value) is Held:
        return value
    if axis is not None and isinstance(value, BaseRef):
        return value.lend()
    try:
        return as_array(value)
    except (TypeError, OverflowError):
        if axis is None:
            return value
    return as_array(value, what=f"vmap: the argument {argument_names(fun, args, kwargs)[i]}")


def _dims(
    values: Sequence[Array], axes: Sequence[int | None], size: int | None
) -> tuple[int | None, list[Any] | None]:
    """Return the batch size and the batch dimension of each argument; None when they do not fit."""
    dims: list[Any] = []
    for x, a in zip(values, axes, strict=True):
        if a is None:
            dims.append(not_mapped)
            continue
        shape = x.aval.shape
        if a < 0:
            a += len(shape)
        if not 0 <= a < len(shape):
            return None, None
        if size is None:
            size = shape[a]
        elif shape[a] != size:
            return None, None
        dims.append(a)
    return size, dims


def _slice_alike(
    values: list[Array], dims: Sequence[Any], mesh_axes: tuple[Any, ...]
) -> tuple[list[Array], Any]:
    """Return values whose mapped dimensions are all cut along the same explicit axes of a mesh.

    Beside them comes the sharding of such a dimension alone, or None where no axis cuts it.
    """
    mapped = [i for i, d in enumerate(dims) if d is not not_mapped]
    along = None
    for i in mapped:
        sharding = values[i].aval.type_sharding
        part = None if sharding is None else sharding.spec[dims[i]]
        if part is None:
            continue
        if along is not None and along.spec[0] != part:
            raise examples_cut_otherwise(along.spec[0], part)
        along = sharding.update(spec=type(sharding.spec)(part))
    if along is None:
        return values, None
    part = along.spec[0]
    if mesh_axes and mesh_axes != (part if type(part) is tuple else (part,)):
        raise examples_cut_already(mesh_axes, part)
    found = list(values)
    for i in mapped:
        found[i] = reshard_as(values[i], _cut(values[i].aval, dims[i], along))
    return found, along


def _cut(aval: Any, dim: int, along: Any) -> Any:
    """Return a type, one dimension of which is cut as `along` says."""
    where = (
        along.update(spec=[None] * aval.ndim) if aval.type_sharding is None else aval.type_sharding
    )
    parts = list(where.spec)
    parts[dim] = along.spec[0]
    return aval.update(sharding=where.update(spec=parts))


def _axes_of(sharding: Any) -> tuple[Any, ...]:
    if sharding is None:
        return ()
    part = sharding.spec[0]
    return part if isinstance(part, tuple) else (part,)


def _place(axis: BatchAxis, x: Any, dim: Any, wanted: Any, i: int, out_tree: Any) -> Any:
    """Put the batch dimension of a result where `out_axes` wants it."""
    if wanted is not_mapped:
        raise map_result(x, dim, i, out_tree)
    ndim = x.aval.ndim + (dim is not_mapped)
    place = wanted + ndim if wanted < 0 else wanted
    if not 0 <= place < ndim:
        raise out_axis_out_of_range(x, wanted, ndim, i, out_tree)
    if dim is not not_mapped:
        return axis.move(x, dim, place)
    found, along = axis.broadcast(x, place), axis.sharding
    return found if along is None else reshard_as(found, _cut(found.aval, place, along))


# ------------------------------------------------------------------------------------------- chunks
# A batch a few examples at a time, in the memory of these: what `vmap(chunk_size=)` runs.
#
# The examples are chunks of one size, which a loop runs one after the other, and a rest.
# So the function is batched, and compiled, for a chunk; results are those of the full batch.


def in_chunks(
    axis: BatchAxis, fun: Callable[..., Any], values: Sequence[Any], dims: Sequence[Any], size: int
) -> tuple[list[Any], list[Any]]:
    """Run a function of flat lists on all examples, `size` of them at once.

    Returns:
      The results, and for each its batch dimension, which is in front, or `not_mapped`.
    """
    mapped = [i for i, d in enumerate(dims) if d is not not_mapped]
    fronts = [axis.to_front(values[i], dims[i]) for i in mapped]
    are_mapped: list[bool] = []

    def run(parts: Sequence[Any], size: int) -> list[Any]:
        full, full_dims = list(values), [not_mapped] * len(values)
        for i, part in zip(mapped, parts, strict=True):
            full[i], full_dims[i] = part, 0
        chunk = BatchAxis(size, randomness=axis.randomness)
        results, out_dims = batch_flat(chunk, fun, full, full_dims)
        are_mapped[:] = [d is not not_mapped for d in out_dims]
        return [x if d is not_mapped else chunk.to_front(x, d)
                for x, d in zip(results, out_dims, strict=True)]  # fmt: skip

    chunks, rest = split_chunks(fronts, axis.size, size)
    turns = axis.size // size
    stacked = lax.scan(lambda _, parts: ((), run(parts, size)), (), chunks, length=turns)[1]
    pieces = [stacked, *[run(parts, axis.size % size) for parts in rest]]
    results = [
        join_chunks(*parts) if m else lax.index_in_dim(parts[0], 0, 0, False)
        for m, *parts in zip(are_mapped, *pieces, strict=True)
    ]
    return results, [0 if m else not_mapped for m in are_mapped]
