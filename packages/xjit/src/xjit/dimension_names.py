"""Which dimensions of operands and results of a primitive correspond: a rule for each, by name.

A rule takes the types of operands and results and the params, and gives the `Names` of dimensions.
A name is any hashable value; None stands for a dimension that is whole. Reshapes, which merge and
split dimensions, give the parts of the result itself.

Elementwise primitives have one rule, reductions another, decompositions of matrices a third: what
`xnp` defines is here, and a primitive of a stranger brings its own as the rule kind `dimensions`.

Neighbours: `sharding_rules` makes shardings of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xjit.partition_specs import axes_of
from xprim import ELEMENTWISE, Primitive, ShapedArray
from xprim.rules import declare_kind

__all__ = ["AS_SAID", "Names", "rule_of"]

__dir__ = __all__.copy

Avals = Sequence[ShapedArray]
Params = dict[str, Any]
Dims = tuple[Any, ...]


class Names(NamedTuple):
    """The names of dimensions.

    Attributes:
      operands: for each operand, a name for each dimension.
      results: likewise for the results.
    """

    operands: list[Dims]
    results: list[Dims]


class _AsSaid:
    """Says that the shape rule of a primitive gives types with their shardings."""

    __slots__ = ()


AS_SAID = _AsSaid()

declare_kind(
    "dimensions",
    signature="(avals_in, avals_out, params) -> xjit.dimension_names.Names",
    consumer="xjit",
    doc="which dimensions of operands and results correspond, for axes of a mesh in types",
)


def rule_of(primitive: Primitive) -> Callable[[Avals, Avals, Params], Any] | None:
    """Return the rule of a primitive, or None where nothing is known of its dimensions."""
    found: Callable[[Avals, Avals, Params], Any] | None = primitive.rules.get("dimensions")
    if found is not None:
        return found
    if primitive.rules["batch"] is ELEMENTWISE:
        return _alike
    return _RULES.get(primitive.name)


def _numbered(aval: ShapedArray) -> Dims:
    return tuple(range(aval.ndim))


def _alike(avals: Avals, out: Avals, params: Params) -> Names:
    """Dimensions correspond by their number; scalars are repeated."""
    return Names([_numbered(a) for a in avals], [_numbered(a) for a in out])


def _without(*keys: str) -> Callable[[Avals, Avals, Params], Names]:
    """Return the rule of what removes the dimensions that params number."""

    def rule(avals: Avals, out: Avals, params: Params) -> Names:
        gone = {int(d) for key in keys for d in _several(params[key])}
        kept = tuple([d for d in range(avals[0].ndim) if d not in gone])
        operands = [_numbered(a) if a.ndim else () for a in avals]
        return Names(operands, [kept for _ in out])

    return rule


def _whole_along(*keys: str) -> Callable[[Avals, Avals, Params], Names]:
    """Return the rule of what works along the dimensions that params number."""

    def rule(avals: Avals, out: Avals, params: Params) -> Names:
        along = {int(d) for key in keys for d in _several(params[key])}

        def names(aval: ShapedArray) -> Dims:
            return tuple([None if d in along else d for d in range(aval.ndim)])

        return Names([names(a) for a in avals], [names(a) for a in out])

    return rule


def _chosen(avals: Avals, out: Avals, params: Params) -> Names:
    """Places of extrema are found along whole dimensions."""
    along = {int(d) for d in _several(params["axes"])}
    names = tuple([None if d in along else d for d in range(avals[0].ndim)])
    return Names([names], [tuple([d for d in names if d is not None])])


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _of_last(count: int) -> Callable[[Avals, Avals, Params], Names]:
    """Return the rule of what treats the last dimensions as a whole: matrices, elements of keys."""

    def rule(avals: Avals, out: Avals, params: Params) -> Names:
        batch = avals[0].ndim - count

        def names(aval: ShapedArray) -> Dims:
            return tuple([d if d < batch else None for d in range(aval.ndim)])

        return Names([names(a) for a in avals], [names(a) for a in out])

    return rule


def _fft(avals: Avals, out: Avals, params: Params) -> Names:
    return _of_last(len(params["fft_lengths"]))(avals, out, params)


def _transpose(avals: Avals, out: Avals, params: Params) -> Names:
    return Names([_numbered(avals[0])], [tuple(params["permutation"])])


def _broadcast(avals: Avals, out: Avals, params: Params) -> Names:
    names: list[Any] = [None] * out[0].ndim
    for d, target in enumerate(params["broadcast_dimensions"]):
        names[target] = d if avals[0].shape[d] == out[0].shape[target] else None
    kept = {name for name in names if name is not None}
    return Names([tuple([d if d in kept else None for d in range(avals[0].ndim)])], [tuple(names)])


def _dot(avals: Avals, out: Avals, params: Params) -> Names:
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    lhs = {
        **{d: ("sum", i) for i, d in enumerate(lc)},
        **{d: ("each", i) for i, d in enumerate(lb)},
    }
    rhs = {
        **{d: ("sum", i) for i, d in enumerate(rc)},
        **{d: ("each", i) for i, d in enumerate(rb)},
    }
    left = tuple([lhs.get(d, ("lhs", d)) for d in range(avals[0].ndim)])
    right = tuple([rhs.get(d, ("rhs", d)) for d in range(avals[1].ndim)])
    free = [n for n in (*left, *right) if n[0] in ("lhs", "rhs")]
    return Names([left, right], [(*[("each", i) for i in range(len(lb))], *free)])


def _convolution(avals: Avals, out: Avals, params: Params) -> Names:
    numbers = params["dimension_numbers"]
    grouped = params["feature_group_count"] > 1 or params["batch_group_count"] > 1
    plain: list[Dims] = [("batch", "sum"), ("features", "sum"), ("batch", "features")]
    words = [(None, None)] * 3 if grouped else plain
    found = []
    for aval, spec, (first, second) in zip((*avals, out[0]), numbers, words, strict=True):
        names: list[Any] = [None] * aval.ndim
        names[spec[0]], names[spec[1]] = first, second
        found.append(tuple(names))
    return Names(found[:2], found[2:])


def _indexed(
    operand: ShapedArray, indices: ShapedArray, dropped: set[int], sizes: dict[int, int],
    pairs: Any,
) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
    """Return names for an operand read or written at indices, for its windows, and for batches.

    Args:
      operand: its type.
      indices: that of the indices.
      dropped: the dimensions of the operand that no window has.
      sizes: for each dimension of the operand, the size of a window.
      pairs: of dimensions of operand and indices that go together.
    """
    is_full = [sizes[d] == n and d not in dropped for d, n in enumerate(operand.shape)]
    names: list[Any] = [d if full else None for d, full in enumerate(is_full)]
    for d, i in pairs:
        names[d] = ("index", i)
    windows = [names[d] for d in range(operand.ndim) if d not in dropped]
    return names, windows, [("index", d) for d in range(indices.ndim - 1)]


def _laid_out(ndim: int, window_dims: Sequence[int], windows: Dims, batch: Dims) -> Dims:
    """Return the names of an array that has windows in some dimensions and batches in the rest."""
    inside, rest = iter(windows), iter(batch)
    return tuple([next(inside) if d in window_dims else next(rest) for d in range(ndim)])


def _gather(avals: Avals, out: Avals, params: Params) -> Names:
    """Windows keep the names of dimensions that they take whole; batches are those of indices."""
    numbers, (operand, indices) = params["dimension_numbers"], avals
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    sizes = dict(enumerate(params["slice_sizes"]))
    names, windows, batch = _indexed(operand, indices, dropped, sizes, pairs)
    result = _laid_out(out[0].ndim, numbers.offset_dims, tuple(windows), tuple(batch))
    return Names([tuple(names), (*batch, None)], [result])


def _scatter(avals: Avals, out: Avals, params: Params) -> Names:
    """Windows lie as the dimensions of the operand that they fill; many may meet in one element."""
    numbers, (operand, indices, updates) = params["dimension_numbers"], avals
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    pairs = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    kept = [d for d in range(operand.ndim) if d not in dropped]
    sizes = dict.fromkeys(range(operand.ndim), -1)
    sizes |= zip(kept, [updates.shape[d] for d in numbers.update_window_dims], strict=True)
    names, windows, batch = _indexed(operand, indices, dropped, sizes, pairs)
    batch = [name if name in names else None for name in batch]
    of_updates = _laid_out(updates.ndim, numbers.update_window_dims, tuple(windows), tuple(batch))
    return Names([tuple(names), (*batch, None), of_updates], [tuple(names)])


def _reshape(avals: Avals, out: Avals, params: Params) -> list[list[Any]] | None:
    """Return by which axes the result is cut; None where that is not clear.

    Runs of dimensions of equal size correspond. What cuts the first dimensions of a run cuts those
    of the result, in the same order.
    """
    if params.get("dimensions") is not None:
        return None
    spread = avals[0].spread
    sizes, parts = spread.mesh.shape, [axes_of(part) for part in spread.spec]
    found: list[Any] = []
    for source, target in _runs(avals[0].shape, out[0].shape):
        axes = _axes_of_run([avals[0].shape[d] for d in source], [parts[d] for d in source])
        placed = None if axes is None else _placed([out[0].shape[d] for d in target], axes, sizes)
        if placed is None:
            return None
        found += placed
    return [found]


def _runs(source: Sequence[int], target: Sequence[int]) -> list[tuple[range, range]]:
    """Return the shortest runs of dimensions of two shapes that have the same elements."""
    runs, i, j = [], 0, 0
    while i < len(source) or j < len(target):
        start, left, right = (i, j), 1, 1
        while True:
            if left <= right and i < len(source):
                left *= source[i]
                i += 1
            elif j < len(target):
                right *= target[j]
                j += 1
            else:
                left *= source[i]
                i += 1
            if left == right:
                break
        runs.append((range(start[0], i), range(start[1], j)))
    return runs


def _axes_of_run(shape: Sequence[int], parts: Sequence[Dims]) -> tuple[Any, ...] | None:
    """Return the axes that cut the first dimensions of a run; None where they cut others."""
    axes: list[Any] = []
    is_past = False
    for n, part in zip(shape, parts, strict=True):
        if part and is_past:
            return None
        is_past = is_past or (n > 1 and not part)
        axes += part
    return tuple(axes)


def _placed(shape: Sequence[int], axes: Sequence[Any], sizes: Any) -> list[Any] | None:
    """Return by which of the axes each dimension is cut, the first ones first."""
    rest, placed = list(axes), []
    for n in shape:
        own: list[Any] = []
        while rest and n > 1 and not n % sizes[rest[0]]:
            n //= sizes[rest[0]]
            own.append(rest.pop(0))
        if rest and n > 1:
            return None
        placed.append(tuple(own) or None)
    return None if rest else placed


def _as_said(avals: Avals, out: Avals, params: Params) -> Any:
    return AS_SAID


_ALONG_AXIS = _whole_along("axis")
_SUMMED, _DROPPED, _MATRICES = _without("axes"), _without("dimensions"), _of_last(2)

_RULES: dict[str, Callable[[Avals, Avals, Params], Any]] = {
    **dict.fromkeys(("clamp", "optimization_barrier", "rev", "concatenate", "pad", "slice", "split",
                     "dynamic_slice", "dynamic_update_slice", "bitcast_convert_type"), _alike),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and",
                     "reduce_or", "reduce_xor"), _SUMMED),
    **dict.fromkeys(("argmax", "argmin"), _chosen),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "top_k"),
                    _ALONG_AXIS),
    **dict.fromkeys(("cholesky", "lu", "qr", "geqrf", "svd", "eigh", "eig", "det", "cofactors",
                     "pinv", "solve", "triangular_solve", "schur", "hessenberg", "tridiagonal",
                     "householder_product", "ormqr", "symmetric_product"), _MATRICES),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"),
                    _scatter),
    **dict.fromkeys(("random_bits", "random_normal", "random_uniform", "random_split"),
                    lambda avals, out, params: Names([(None,) * a.ndim for a in avals],
                                                     [(None,) * a.ndim for a in out])),
    "random_fold_in": _alike, "wrap": _of_last(1), "unwrap": _of_last(0),
    "reduce": _DROPPED, "squeeze": _DROPPED, "sort": _whole_along("dimension"),
    "transpose": _transpose, "broadcast_in_dim": _broadcast, "reshape": _reshape,
    "dot_general": _dot, "conv_general_dilated": _convolution, "gather": _gather, "fft": _fft,
    "sharding_constraint": _as_said, "branch_operands": _as_said,
}  # fmt: skip
