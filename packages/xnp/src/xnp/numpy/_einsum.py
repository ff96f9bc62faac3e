"""Sums of products written as text: `einsum("ij,jk->ik", a, b)` for any number of operands.

The operands are joined two at a time, each pair by one `dot_general`; which pair comes next is
decided by a greedy search (the smallest growth of memory, then the fewest operations), or from the
left. Labels of one operand alone are summed before, repeated labels read the diagonal.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from xnp.numpy.contraction import dot_general
from xnp.numpy.dispatch import array_of, promoted
from xnp.numpy.rearranging import diagonal
from xnp.numpy.reductions import sum as summed
from xnp.numpy.shaping import permute
from xnp.placing import computed_as
from xnp.primitives.precision import PrecisionLike
from xnp.primitives.table import bind, broadcasted
from xprim import Array, dtypes
from xprim.errors import ShapeError, described, message
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = ["einsum", "einsum_path"]

__dir__ = __all__.copy

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@boundary
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: Any,
    out: None = None,
    optimize: bool | str | Sequence[tuple[int, ...]] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the sum of products over labelled dimensions.

    Args:
      subscripts: a label for each dimension of each operand and of the result, as "ij,jk->ik";
        without "->" the labels that occur once, in alphabetical order. "..." stands for further
        dimensions, which broadcast. Or the first operand, with lists of ints as labels behind each.
      *operands: the arrays.
      out: not supported, must be None.
      optimize: "auto", "greedy", "optimal" or True search for a good order of pairs; False takes
        operands from the left; or a path as `einsum_path` returns it.
      precision: how exactly hardware with a choice computes.
      preferred_element_type: the dtype of sums and result.
      _dot_general: what joins a pair in place of `lax.dot_general`, with its arguments: as
        libraries give one that multiplies in fewer bits.
      out_sharding: how the result lies: a sharding, or a partition spec over the mesh set.

    Returns:
      An array whose dimensions are the labels of the result, of the dtype that the operands promote
      to. Where NumPy may return a view of its operand, this is an array of its own.

    Raises:
        TypeError: `out` is given;
            `preferred_element_type` names no dtype;
            `out_sharding` is no sharding.
        ValueError: there is no such `precision`.

    Example:
      >>> import xnp
      >>> xnp.einsum("i,i->", xnp.array([1., 2.]), xnp.array([3., 4.]))
      Array(11., dtype=float32)
    """
    require(out is None, "einsum", "out= is not supported.", error=TypeError)
    if out_sharding is not None:
        return computed_as(out_sharding, einsum, subscripts, *operands, optimize=optimize,
                           precision=precision,
                           preferred_element_type=preferred_element_type,
                           _dot_general=_dot_general)  # fmt: skip
    join = dot_general if _dot_general is None else _by_keywords(_dot_general)
    return _contract(subscripts, operands, optimize, precision, preferred_element_type, join)


def _by_keywords(product: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function with the arguments of `lax.dot_general` as `contraction` has it."""

    def join(x: Array, y: Array, contracted: Any, batch: Any, precision: Any, dtype: Any) -> Array:
        dimensions = (contracted, batch)
        return product(x, y, dimensions, precision=precision, preferred_element_type=dtype)

    return join


def _contract(
    subscripts: Any, operands: Any, optimize: Any, precision: Any, preferred_element_type: Any,
    join: Callable[..., Array] = dot_general,
) -> Array:  # fmt: skip
    """Contract operands pair by pair."""
    terms, result, arrays = _parse(subscripts, operands)
    arrays = promoted("einsum", *arrays)
    preferred = None if preferred_element_type is None else (
        dtypes.requested_dtype(preferred_element_type, "einsum"))  # fmt: skip
    sizes = _sizes(terms, arrays)
    pairs = [
        _simplify(t, x, _wanted(i, terms, result))
        for i, (t, x) in enumerate(zip(terms, arrays, strict=True))
    ]
    for step in _path(optimize, [t for t, _ in pairs], result, sizes):
        chosen = [pairs[i] for i in step]
        pairs = [p for i, p in enumerate(pairs) if i not in step]
        while len(chosen) > 1:
            (left, x), (right, y) = chosen[:2]
            rest = "".join([t for t, _ in (*pairs, *chosen[2:])]) + result
            chosen = [_join(left, x, right, y, rest, precision, preferred, join), *chosen[2:]]
        pairs.append(chosen[0])
    ((labels, x),) = pairs
    contracted: Array = _arrange(labels, x, result, sizes, preferred)
    return contracted


@boundary
def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: Any,
    optimize: bool | str | Sequence[tuple[int, ...]] = "auto",
) -> tuple[list[Any], str]:
    """Return the order in which `einsum` would join pairs of operands, and a text about it.

    Args:
      subscripts: as for `einsum`.
      *operands: the arrays; only their shapes count.
      optimize: "auto", "greedy", "optimal" or True search for a good order of pairs; False takes
        operands from the left; or a path, which is returned.

    Returns:
      A list `["einsum_path", (i, j), ...]` of positions in the list of what is left, where each
      result is appended, and a description.

    Example:
      >>> import xnp
      >>> a, b, c = xnp.ones((2, 9)), xnp.ones((9, 9)), xnp.ones((9, 3))
      >>> xnp.einsum_path("ij,jk,kl->il", a, b, c)[0]
      ['einsum_path', (0, 1), (0, 1)]
    """
    terms, result, arrays = _parse(subscripts, operands)
    sizes = _sizes(terms, arrays)
    path = _path(optimize, terms, result, sizes)
    text = f"{','.join(terms)}->{result}: " + ", ".join(map(str, path))
    return ["einsum_path", *path], text


# --- the text -------------------------------------------------------------------------------------


def _parse(subscripts: Any, operands: Sequence[Any]) -> tuple[list[str], str, list[Any]]:
    """Return the labels of each operand, those of the result, and the operands."""
    if not isinstance(subscripts, str):
        subscripts, operands = _of_lists((subscripts, *operands))
    arrays = [array_of(x, "einsum") for x in operands]
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    require(
        len(terms) == len(arrays), "einsum", "{!r} has terms for {} operands, but {} came.",
        subscripts, len(terms), len(arrays),
    )  # fmt: skip
    used = set(text)
    spare = [c for c in _LETTERS if c not in used]
    rank = max([_ellipsis_rank(t, x) for t, x in zip(terms, arrays, strict=True)])
    shared = "".join(spare[:rank])
    terms = [_expand(t, x, shared, subscripts) for t, x in zip(terms, arrays, strict=True)]
    everything = "".join(terms)
    if arrow:
        result = right.replace("...", shared)
    else:
        once = sorted({c for c in everything if everything.count(c) == 1} - set(shared))
        result = shared + "".join(once)
    _check_labels(subscripts, terms, result)
    return terms, result, arrays


def _of_lists(items: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the text form of operands with lists of labels."""
    count = len(items) // 2
    labels: dict[int, int] = {}

    def text(part: Any) -> str:
        names = [
            label if label is Ellipsis else labels.setdefault(label, len(labels))
            for label in _integers(part)
        ]
        require(
            len(labels) <= len(_LETTERS), "einsum", "there may be {} labels, got {}.",
            len(_LETTERS), len(labels),
        )  # fmt: skip
        return "".join(["..." if name is Ellipsis else _LETTERS[name] for name in names])

    terms = [text(items[2 * i + 1]) for i in range(count)]
    arrow = f"->{text(items[-1])}" if len(items) % 2 else ""
    if not arrow:  # NumPy's order of the result: by the numbers
        order = sorted(labels)
        ranks = {_LETTERS[labels[n]]: _LETTERS[i] for i, n in enumerate(order)}
        terms = ["".join([ranks.get(c, c) for c in t]) for t in terms]
    return ",".join(terms) + arrow, [items[2 * i] for i in range(count)]


def _integers(part: Any) -> list[Any]:
    """Return the labels of a list, each an int or `...`."""
    try:
        return [label if label is Ellipsis else operator.index(label) for label in part]
    except TypeError:
        raise TypeError(message(
            "einsum", "behind each operand must stand a list of its labels, which are integers.",
            got=described(part), hint="labels in words go first: einsum('ij,jk->ik', a, b)",
        )) from None  # fmt: skip


def _ellipsis_rank(term: str, x: Any) -> int:
    return x.aval.ndim - len(term.replace("...", "")) if "..." in term else 0


def _expand(term: str, x: Any, shared: str, subscripts: str) -> str:
    if "..." in term:
        rank = _ellipsis_rank(term, x)
        term = term.replace("...", shared[len(shared) - rank :] if rank > 0 else "")
    require(
        len(term) == x.aval.ndim, "einsum",
        "the term {!r} of {!r} names {} dimensions, the operand has {}.", term, subscripts,
        len(term), x.aval.ndim, got=x,
    )  # fmt: skip
    return term


def _check_labels(subscripts: str, terms: list[str], result: str) -> None:
    known = set("".join(terms))
    for c in result:
        require(c in known, "einsum", "the label {!r} of the result is in no operand.", c)
    require(
        len(set(result)) == len(result), "einsum", "a label occurs twice in the result of {!r}.",
        subscripts,
    )  # fmt: skip


def _sizes(terms: list[str], arrays: list[Any]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for label, n in zip(term, x.aval.shape, strict=True):
            known = sizes.get(label, 1)
            if known != 1 and n not in (1, known):
                shown = ", ".join(
                    f"{t}: {a.aval.str_long()}" for t, a in zip(terms, arrays, strict=True)
                )
                raise ShapeError(message(
                    "einsum", f"the dimensions with label {label!r} have sizes {known} and {n}.",
                    got=shown,
                ))  # fmt: skip
            sizes[label] = n if known == 1 else known
    return sizes


# --- the order ------------------------------------------------------------------------------------


def _path(optimize: Any, terms: list[str], result: str, sizes: dict[str, int]) -> list[Any]:
    if isinstance(optimize, list | tuple) and optimize and optimize[0] == "einsum_path":
        return [tuple(step) for step in optimize[1:]]
    if isinstance(optimize, list | tuple) and optimize and not isinstance(optimize[0], str):
        return [tuple(step) for step in optimize]
    if optimize is False or len(terms) <= 2:
        return [tuple(range(len(terms)))]
    return _greedy_path([frozenset(t) for t in terms], frozenset(result), sizes)


def _greedy_path(sets: list[Any], result: Any, sizes: dict[str, int]) -> list[Any]:
    path = []
    while len(sets) > 1:
        pairs = itertools.combinations(range(len(sets)), 2)
        steps = [_contraction(sets, i, j, result, sizes) for i, j in pairs]
        cost, kept = min(steps, key=operator.itemgetter(0))
        i, j = cost[2:]
        path.append((i, j))
        sets = [*[s for k, s in enumerate(sets) if k not in (i, j)], kept]
    return path


def _contraction(sets: list[Any], i: int, j: int, result: Any, sizes: dict[str, int]) -> Any:
    """Return the cost of contracting two operands, and the labels that are kept."""
    joined = sets[i] | sets[j]
    kept = joined & result.union(*[s for k, s in enumerate(sets) if k not in (i, j)])
    growth = _volume(kept, sizes) - _volume(sets[i], sizes) - _volume(sets[j], sizes)
    return (growth, _volume(joined, sizes), i, j), kept


def _volume(labels: Any, sizes: dict[str, int]) -> int:
    return math.prod([sizes[c] for c in labels])


# --- the products ---------------------------------------------------------------------------------


def _wanted(i: int, terms: list[str], result: str) -> str:
    return "".join([t for k, t in enumerate(terms) if k != i]) + result


def _simplify(labels: str, x: Any, wanted: str) -> tuple[str, Any]:
    """Read diagonals of repeated labels and sum over labels that nobody else has."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            sizes = x.aval.shape[i], x.aval.shape[j]
            require(
                sizes[0] == sizes[1], "einsum", "the dimensions of a diagonal have sizes {}.",
                sizes,
            )  # fmt: skip
            x = array_of(diagonal(x, 0, i, j), "einsum")
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + c
    alone = tuple([i for i, c in enumerate(labels) if c not in wanted])
    if alone:
        x = summed(x, alone, x.aval.dtype)
        labels = "".join([c for i, c in enumerate(labels) if i not in alone])
    return labels, x


def _join(
    left: str, x: Any, right: str, y: Any, rest: str, precision: Any, preferred: Any,
    join: Callable[..., Array],
) -> tuple[str, Any]:  # fmt: skip
    """Join two operands by one product, over the labels that nobody else needs."""
    # a size 1 that broadcasts is dropped where the other operand has the label
    left, x = _without_ones(left, x, right, y)
    right, y = _without_ones(right, y, left, x)
    left, x = _simplify(left, x, right + rest)
    right, y = _simplify(right, y, left + rest)
    batch = [c for c in left if c in right and c in rest]
    summed_labels = [c for c in left if c in right and c not in rest]
    dims = [
        (tuple([labels.index(c) for c in summed_labels]), tuple([labels.index(c) for c in batch]))
        for labels in (left, right)
    ]
    (lc, lb), (rc, rb) = dims
    product = join(x, y, (lc, rc), (lb, rb), precision, preferred)
    free = [[c for c in labels if c not in batch and c not in summed_labels]
            for labels in (left, right)]  # fmt: skip
    return "".join([*batch, *free[0], *free[1]]), product


def _without_ones(labels: str, x: Any, others: str, y: Any) -> tuple[str, Any]:
    ones = tuple([
        i for i, c in enumerate(labels)
        if x.aval.shape[i] == 1 and c in others and y.aval.shape[others.index(c)] != 1
    ])  # fmt: skip
    if not ones:
        return labels, x
    x = bind("squeeze", x, dimensions=ones)
    return "".join([c for i, c in enumerate(labels) if i not in ones]), x


def _arrange(labels: str, x: Any, result: str, sizes: dict[str, int], preferred: Any) -> Any:
    labels, x = _simplify(labels, x, result)
    x = permute(x, tuple([labels.index(c) for c in result]))
    x = broadcasted(x, tuple([sizes[c] for c in result]))
    if preferred is not None and x.aval.dtype != preferred:
        x = bind("convert_element_type", x, new_dtype=preferred, weak_type=False)
    return x
