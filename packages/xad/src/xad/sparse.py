"""Sparse Jacobians and Hessians: a few products with the derivative, in place of one a column.

Columns of a Jacobian that have no row in common can be computed by one product, with the sum of
their basis vectors. Which may share one is a colouring of the columns; each nonzero is then an
element of one of as many products as there are colours. So for rows, with products from the left.
Of a symmetric matrix an element can also be read at its mirror image: a *star* colouring needs
fewer colours.

Sources: Curtis, Powell and Reid, "On the estimation of sparse Jacobian matrices", J. Inst. Math.
Appl. 13, 1974; Coleman and More, "Estimation of sparse Hessian matrices and graph coloring
problems", Math. Programming 28, 1984; Gebremedhin, Manne and Pothen, "What color is your
Jacobian?", SIAM Review 47, 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtree
from xad._jvp import jvp
from xad._sparsity import Ints, SparsityPattern, sparsity, spec_of
from xad._vjp import grad, vjp
from xnp.sparse import BCOO
from xprim import Array, from_numpy, get_primitive
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.transformed import check_function, find, flat_arrays, transforming
from xtree.records import Record, set_once

__all__ = [
    "SparseDerivative", "SparsityPattern", "color_columns", "color_symmetric",
    "plan_sparse_hessian", "plan_sparse_jacobian", "sparse_hessian", "sparse_jacobian", "sparsity",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- colouring


@boundary
def color_columns(pattern: SparsityPattern) -> Ints:
    """Return a colour for each column, such that columns of one colour have no row in common.

    Each column in turn gets the least colour that no column with a common row has.

    Source: Curtis, Powell and Reid, J. Inst. Math. Appl. 13, 1974.

    Example:
      >>> import numpy as np
      >>> from xad.sparse import color_columns, sparsity
      >>> color_columns(sparsity(lambda x: x[1:] - x[:-1], np.ones(5))).tolist()
      [0, 1, 0, 1, 0]
    """
    used = [0] * pattern.shape[0]  # for each row, a bit for each colour
    colors = np.zeros(pattern.shape[1], np.int64)
    for column, rows in enumerate(_rows_by_column(pattern)):
        taken = 0
        for row in rows:
            taken |= used[row]
        color = (~taken & (taken + 1)).bit_length() - 1  # the least bit that is not set
        colors[column] = color
        bit = 1 << color
        for row in rows:
            used[row] |= bit
    return colors


@boundary
def color_symmetric(pattern: SparsityPattern) -> Ints:
    """Return a star colouring of the columns of a symmetric matrix.

    Adjacent columns have different colours, and no path of four has two alone: then each element,
    or its mirror image, is the only one of its row among the columns of some colour.

    Source: Gebremedhin, Manne and Pothen, SIAM Review 47, 2005, algorithm 4.1.

    Example:
      >>> import numpy as np
      >>> from xad.sparse import SparsityPattern, color_symmetric
      >>> arrow = np.eye(4, dtype=bool); arrow[0] = arrow[:, 0] = True
      >>> color_symmetric(SparsityPattern(*np.nonzero(arrow), (4, 4))).tolist()
      [0, 1, 1, 1]
    """
    require(
        pattern.shape[0] == pattern.shape[1], "color_symmetric",
        "the matrix must be square, got {!r}.", pattern,
    )  # fmt: skip
    around = [[r for r in rows if r != c] for c, rows in enumerate(_rows_by_column(pattern))]
    colors = [-1] * len(around)
    for v, adjacent in enumerate(around):
        taken = set()
        for w in adjacent:
            color = colors[w]
            if color >= 0:
                taken.add(color)
            for x in around[w]:
                other = colors[x]
                if x == v or other < 0 or other in taken:
                    continue
                # a later w would join v and x by a path of two colours, or a fourth column does
                if color < 0 or any(y != w and colors[y] == color for y in around[x]):
                    taken.add(other)
        color = 0
        while color in taken:
            color += 1
        colors[v] = color
    return np.asarray(colors, np.int64)


def _rows_by_column(pattern: SparsityPattern) -> list[list[int]]:
    order = np.argsort(pattern.cols, kind="stable")
    ends = np.searchsorted(pattern.cols[order], np.arange(1, pattern.shape[1]))
    pieces = np.split(pattern.rows[order], ends)[: pattern.shape[1]]
    return [rows.tolist() for rows in pieces]


# ------------------------------------------------------------------------------------------ plans


class SparseDerivative(Record):
    """How the sparse Jacobian or Hessian of a function is computed: made once, used at any point.

    Attributes:
      pattern: which elements can be nonzero.
      colors: the colour of each column, or of each row by `mode="rev"`.
      mode: `"fwd"` (products with columns), `"rev"` (with rows) or `"symmetric"`.
      places: for each element of the pattern, the product it is read from and where in it.
    """

    __slots__ = __match_args__ = ("colors", "mode", "pattern", "places")
    pattern: SparsityPattern
    colors: Ints
    mode: str
    places: tuple[Ints, Ints]

    def __init__(
        self, pattern: SparsityPattern, colors: Ints, mode: str, places: tuple[Ints, Ints]
    ) -> None:
        set_once(self, "pattern", pattern)
        set_once(self, "colors", colors)
        set_once(self, "mode", mode)
        set_once(self, "places", places)

    @property
    def num_products(self) -> int:
        """How many products with the derivative there are: one for each colour."""
        return int(self.colors.max(initial=-1)) + 1

    @property
    def seeds(self) -> Ints:
        """What the derivative is multiplied with: for each colour, the sum of its basis vectors."""
        basis: Ints = self.colors == np.arange(self.num_products)[:, None]
        return basis.astype(np.float32)

    def __repr__(self) -> str:
        return f"SparseDerivative({self.pattern!r}, {self.num_products} products, {self.mode!r})"


def _plan(pattern: SparsityPattern, mode: str) -> SparseDerivative:
    rows, cols = pattern.rows, pattern.cols
    if mode == "symmetric":
        colors = color_symmetric(pattern)
        # A row and a colour that occur once name the element; else its mirror image does.
        keys = rows * (colors.max(initial=0) + 1) + colors[cols]
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        is_alone = counts[inverse.reshape(-1)] == 1
        places = np.where(is_alone, colors[cols], colors[rows]), np.where(is_alone, rows, cols)
        return SparseDerivative(pattern, colors, mode, places)
    found = []
    if mode in ("auto", "fwd"):
        colors = color_columns(pattern)
        found.append(SparseDerivative(pattern, colors, "fwd", (colors[cols], rows)))
    if mode in ("auto", "rev"):
        colors = color_columns(SparsityPattern(cols, rows, pattern.shape[::-1]))
        found.append(SparseDerivative(pattern, colors, "rev", (colors[rows], cols)))
    require(found, "sparse_jacobian", "mode must be 'auto', 'fwd' or 'rev'.", got=mode)
    return min(found, key=lambda plan: plan.num_products)


@boundary
def plan_sparse_jacobian(
    fun: Callable[..., Any], *args: Any, argnums: int = 0, mode: str = "auto",
    pattern: SparsityPattern | None = None, **kwargs: Any,
) -> SparseDerivative:  # fmt: skip
    """Return how the sparse Jacobian of a function is computed, for arguments of these shapes.

    Args:
      fun: a function of pytrees of arrays.
      *args: its arguments, or instances of `ShapeDtypeStruct`.
      argnums: the argument to differentiate with respect to.
      mode: `"fwd"` colours the columns, `"rev"` the rows, `"auto"` takes what needs fewer products.
      pattern: which elements can be nonzero; None finds it by `sparsity`.
      **kwargs: further arguments.

    Raises:
      ValueError: `mode` is none of these.

    Example:
      >>> import numpy as np
      >>> from xad.sparse import plan_sparse_jacobian
      >>> plan_sparse_jacobian(lambda x: x[1:] - x[:-1], np.ones(1000))
      SparseDerivative(SparsityPattern(1998 of 999 x 1000), 2 products, 'fwd')
    """
    found = sparsity(fun, *args, argnums=argnums, **kwargs) if pattern is None else pattern
    return _plan(found, mode)


@boundary
def plan_sparse_hessian(
    fun: Callable[..., Any], *args: Any, argnums: int = 0,
    pattern: SparsityPattern | None = None, **kwargs: Any,
) -> SparseDerivative:  # fmt: skip
    """Return how the sparse Hessian of a function is computed, for arguments of these shapes.

    Args and result are those of `plan_sparse_jacobian`; the columns get a star colouring.
    """
    if pattern is None:
        pattern = sparsity(grad(fun, argnums), *args, argnums=argnums, **kwargs)
    return _plan(pattern.symmetrized(), "symmetric")


# ---------------------------------------------------------------------------------- derivatives


@boundary
def sparse_jacobian(
    fun: Callable[..., Any], argnums: int = 0, *, mode: str = "auto",
    plan: SparseDerivative | None = None, chunk_size: int | None = None,
) -> Callable[..., BCOO]:  # fmt: skip
    """Return a function that computes the Jacobian as a sparse matrix, by a few products.

    Args:
      fun: a function of pytrees of arrays.
      argnums: the argument to differentiate with respect to.
      mode: `"fwd"` colours the columns, `"rev"` the rows, `"auto"` takes what needs fewer products.
      plan: of `plan_sparse_jacobian`, for arguments of these shapes; None makes one for the shapes
        of each call, and keeps the last.
      chunk_size: how many products are computed at once; None takes all.

    Returns:
      A function of the same arguments. It gives a `BCOO` of shape [m, n] for a result of m elements
      and an argument of n, both in the order of their leaves, each by rows.

    Differentiable in: the arguments.

    Source: Curtis, Powell and Reid, J. Inst. Math. Appl. 13, 1974.

    Example:
      >>> import numpy as np
      >>> from xad.sparse import sparse_jacobian
      >>> jacobian = sparse_jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
      >>> jacobian, jacobian.todense().tolist()
      (BCOO(float32[2, 3], nse=4), [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]])
    """
    check_function(fun, "sparse_jacobian")
    return _derivative(fun, argnums, plan, chunk_size, "sparse_jacobian", lambda args, kwargs: (
        plan_sparse_jacobian(fun, *args, argnums=argnums, mode=mode, **kwargs)
    ))  # fmt: skip


@boundary
def sparse_hessian(
    fun: Callable[..., Any], argnums: int = 0, *, plan: SparseDerivative | None = None,
    chunk_size: int | None = None,
) -> Callable[..., BCOO]:  # fmt: skip
    """Return a function that computes the Hessian as a sparse matrix, by a few products.

    Args:
      fun: a function of pytrees of arrays to a scalar.
      argnums: the argument to differentiate with respect to.
      plan: of `plan_sparse_hessian`, for arguments of these shapes; None makes one for those of
        each call, and keeps the last.
      chunk_size: how many products are computed at once; None takes all.

    Returns:
      A function of the same arguments. It gives a symmetric `BCOO` of shape [n, n] for an argument
      of n elements, in the order of its leaves, each by rows.

    Differentiable in: the arguments.

    Source: Coleman and More, Math. Programming 28, 1984.

    Example:
      >>> import numpy as np
      >>> from xad.sparse import sparse_hessian
      >>> hessian = sparse_hessian(lambda x: (x[1:] * x[:-1] ** 2).sum())
      >>> hessian(np.array([1.0, 2.0, 3.0])).todense().tolist()
      [[4.0, 2.0, 0.0], [2.0, 6.0, 4.0], [0.0, 4.0, 0.0]]
    """
    check_function(fun, "sparse_hessian")
    return _derivative(
        grad(fun, argnums), argnums, plan, chunk_size, "sparse_hessian",
        lambda args, kwargs: plan_sparse_hessian(fun, *args, argnums=argnums, **kwargs),
    )  # fmt: skip


def _derivative(
    fun: Callable[..., Any], argnums: int, plan: SparseDerivative | None, chunk_size: int | None,
    operation: str, make_plan: Callable[[Any, Any], SparseDerivative],
) -> Callable[..., BCOO]:  # fmt: skip
    kept: dict[Any, SparseDerivative] = {}

    @transforming(fun, operation)
    @boundary
    def derivative(*args: Any, **kwargs: Any) -> BCOO:
        leaves, tree = xtree.flatten((args, kwargs))
        key = tree, tuple([(s.shape, s.dtype) for s in map(spec_of, leaves)])
        chosen = plan or kept.get(key)
        if chosen is None:
            kept.clear()
            chosen = kept[key] = make_plan(args, kwargs)
        values, in_tree = flat_arrays(args[argnums], operation, "the argument")

        def of_vector(x: Any) -> Any:
            pieces = _unravel(x, values)
            given = list(args)
            given[argnums] = xtree.unflatten(in_tree, pieces)
            return _ravel(flat_arrays(fun(*given, **kwargs), operation, "the result")[0])

        return _matrix(chosen, of_vector, _ravel(values), chunk_size, operation)

    return derivative


def _matrix(
    plan: SparseDerivative, fun: Any, x: Any, chunk_size: int | None, operation: str
) -> BCOO:
    shape, side = plan.pattern.shape, 1 if plan.mode != "rev" else 0
    out, pull = vjp(fun, x) if plan.mode == "rev" else (None, None)
    if shape[1] != x.shape[0] or (out is not None and shape[0] != out.shape[0]):
        raise ValueError(message(
            operation, "the plan is for arguments of other shapes.", got=f"{x.shape[0]} elements",
            expected=f"{shape[side]} elements, as in {plan!r}",
        ))  # fmt: skip

    def product(seed: Any) -> Any:
        if pull is not None:
            return pull(seed)[0]
        return jvp(fun, (x,), (seed,))[1]

    dtype = x.dtype if out is None else out.dtype
    seeds = from_numpy(plan.seeds.astype(dtype), canonical=True)
    vmap = find("vmap")
    if plan.num_products == 0:
        compressed = from_numpy(np.zeros((1, max(shape)), dtype), canonical=True)
    elif vmap is not None:
        compressed = vmap(product, chunk_size=chunk_size)(seeds)
    else:
        rows = [product(seeds[i]) for i in range(plan.num_products)]
        compressed = get_primitive("concatenate").bind(
            *[_reshape(r, (1, r.shape[0])) for r in rows], dimension=0
        )[0]
    products, places = plan.places
    flat = _reshape(compressed, (compressed.shape[0] * compressed.shape[1],))
    numbers = products * compressed.shape[1] + places
    data = flat[from_numpy(numbers.astype(np.int32), canonical=True)]
    indices = np.stack([plan.pattern.rows, plan.pattern.cols], -1).astype(np.int32)
    return BCOO((data, from_numpy(indices, canonical=True)), shape=shape, indices_sorted=True,
                unique_indices=True)  # fmt: skip


def _ravel(leaves: Sequence[Array]) -> Any:
    flat = [_reshape(x, (x.size,)) for x in leaves]
    return flat[0] if len(flat) == 1 else get_primitive("concatenate").bind(*flat, dimension=0)[0]


def _unravel(x: Any, like: Sequence[Array]) -> list[Any]:
    pieces, start = [], 0
    for leaf in like:
        piece = get_primitive("slice").bind(
            x, start_indices=(start,), limit_indices=(start + leaf.size,), strides=None
        )[0]
        pieces.append(_reshape(piece, leaf.shape))
        start += leaf.size
    return pieces


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return get_primitive("reshape").bind(x, new_sizes=shape, dimensions=None)[0]
