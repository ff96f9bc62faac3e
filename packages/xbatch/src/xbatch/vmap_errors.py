"""The errors of `vmap`: what was asked, what the arguments are, and by which name they are known.

All of this runs only after something was found wrong, so it may take its time: argument names come
from the function's signature, and sizes that differ are listed argument by argument.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import xtree
from xbatch.mapped_types import is_spec
from xprim import Array
from xprim.descriptions import argument_names
from xprim.errors import message
from xprim.leaves import path_of

__all__ = ()

_E = TypeVar("_E", bound=Exception)


_MAX_LISTED = 20


def _wrong(kind: type[_E], problem: str, **labels: str) -> _E:
    """Return the error of `vmap` that says this."""
    return kind(message("vmap", problem, **labels))


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def check_in_axes(in_axes: Any) -> None:
    """Raise a TypeError unless `in_axes` is an int, None, or a tuple of trees of them."""
    one = in_axes is None or type(in_axes) is int or is_spec(in_axes)
    if not one and not isinstance(in_axes, tuple):
        raise _wrong(
            TypeError,
            "in_axes must be an int, None, or a tuple with an entry for each argument.",
            got=repr(in_axes),
        )
    _check_leaves("in_axes", in_axes)


def check_out_axes(out_axes: Any) -> None:
    """Raise a TypeError unless `out_axes` is a tree of ints and None."""
    _check_leaves("out_axes", out_axes)


def _check_leaves(name: str, axes: Any) -> None:
    for path, leaf in xtree.leaves_with_path(axes):
        if type(leaf) is not int and not is_spec(leaf):
            raise _wrong(
                TypeError,
                f"{name} may hold only ints and None.",
                got=f"{name}{xtree.keystr(path)} = {leaf!r}",
            )


def checked_size(axis_size: Any) -> int:
    """Return `axis_size` as an int."""
    try:
        size = operator.index(axis_size)
    except TypeError:
        raise _wrong(TypeError, "axis_size must be an int or None.", got=repr(axis_size)) from None
    if size < 0:
        raise _wrong(ValueError, "axis_size must not be negative.", got=str(size))
    return size


def checked_chunk_size(chunk_size: Any, named: bool) -> int:
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
        ValueError, "chunk_size does not go with references, objects of registered types or "
        "examples that a mesh cuts.",
    )  # fmt: skip


def examples_cut_otherwise(part: Any, other: Any) -> ValueError:
    """Return the error for arguments whose examples are cut along different axes of a mesh."""
    return _wrong(
        ValueError, "the axes of the examples are cut along different axes of a mesh.",
        got=f"{part!r} and {other!r}", hint="reshard(x, P(...)) makes the arguments agree",
    )  # fmt: skip


def examples_cut_already(mesh_axes: Any, part: Any) -> ValueError:
    """Return the error for `spmd_axis_name` beside examples that explicit axes cut."""
    return _wrong(
        ValueError, "the types of the arguments say how the examples are cut, and so does "
        "spmd_axis_name.", got=f"{part!r} and spmd_axis_name={mesh_axes!r}",
        hint="leave spmd_axis_name out",
    )  # fmt: skip


def in_axes_mismatch(in_axes: Any, args: Any, mismatch: Any) -> Exception:
    """Return the error for `in_axes` that is no prefix of the arguments."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        hint = ""
        if len(args) == 1 and isinstance(args[0], tuple | list) and len(in_axes) == len(args[0]):
            hint = "for one argument that is a tuple, write in_axes=((...),)"
        return _wrong(
            ValueError,
            "in_axes must have one entry for each positional argument.",
            got=f"{_counted(len(in_axes), 'entry', 'entries')} in in_axes={in_axes!r}, "
            + _counted(len(args), "argument", "arguments"),
            hint=hint,
        )
    error: Exception = mismatch.error("vmap", "in_axes", "args")
    return error


def out_axes_mismatch(mismatch: Any) -> Exception:
    """Return the error for `out_axes` that is no prefix of the result."""
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
            got=f"{_counted(len(names), 'array', 'arrays')} among the arguments, none with an "
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
        f"the axes to map have different sizes: {_joined(distinct)}.",
        got="\n".join(lines),
        expected="one size along all mapped axes",
    )


def _joined(numbers: Sequence[int]) -> str:
    *first, last = [str(n) for n in numbers]
    return f"{', '.join(first)} and {last}" if first else last


def mapped_result(x: Any, dim: int, i: int, out_tree: Any) -> ValueError:
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
        got=f"{name}: {_counted(ndim, 'dimension', 'dimensions')} with that of the examples",
        expected=f"an int from {-ndim} to {ndim - 1}",
    )


def _result_name(i: int, out_tree: Any) -> str:
    return f"the result{path_of(out_tree, i)}"
