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

import xprim
import xtree
from xad._jvp import jvp
from xad._vjp import grad, vjp
from xad.tangents import is_differentiable
from xnp.sparse import BCOO
from xprim import Array, ClosedJaxpr, Equation, Linear, ShapeDtypeStruct, from_numpy, get_primitive
from xprim.calls import Programs
from xprim.errors import message
from xprim.jaxpr import held_programs, interpret
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.transformed import check_function, find, flat_arrays, transforming
from xtree.records import Record

__all__ = [
    "SparseDerivative", "SparsityPattern", "color_columns", "color_symmetric",
    "plan_sparse_hessian", "plan_sparse_jacobian", "sparse_hessian", "sparse_jacobian",
    "sparsity",
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

    pattern: SparsityPattern
    colors: Ints
    mode: str
    places: tuple[Ints, Ints]

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
    return _plan(pattern.symmetrize(), "symmetric")


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


# ----------------------------------------------------------------------------------------- sparsity
# Which elements of a Jacobian can be nonzero: `sparsity`, found from the jaxpr of a function.
#
# Every value of the program gets, for each of its elements, the set of input elements that it may
# depend on. An elementwise operation joins the sets of its operands; one that moves elements (a
# slice, a transpose, a gather at indices that are known) is run on the numbers of the elements and
# tells where each came from; a reduction joins the sets of what it reduces; a product those of a
# row and a column. Loops repeat until the sets stay. What is none of these makes each element of
# its results depend on all that any operand depends on: the pattern is never too small.
#
# Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008, chapter 7 (propagation
# of index domains).

Ints = np.ndarray[Any, Any]


class SparsityPattern(Record):
    """Which elements of a matrix can be nonzero.

    Attributes:
      rows: the row of each, ascending.
      cols: the column of each, ascending within a row.
      shape: of the matrix: the elements of the result, and of the argument.
    """

    rows: Ints
    cols: Ints
    shape: tuple[int, int]

    @property
    def nse(self) -> int:
        """How many elements can be nonzero."""
        return len(self.rows)

    def todense(self) -> Ints:
        """Return the pattern as a NumPy array of booleans."""
        dense = np.zeros(self.shape, bool)
        dense[self.rows, self.cols] = True
        return dense

    def symmetrize(self) -> SparsityPattern:
        """Return the pattern joined with its transpose; the matrix must be square."""
        rows = np.concatenate([self.rows, self.cols])
        cols = np.concatenate([self.cols, self.rows])
        return _pattern(rows, cols, self.shape)

    def __repr__(self) -> str:
        return f"SparsityPattern({self.nse} of {self.shape[0]} x {self.shape[1]})"


def _pattern(rows: Ints, cols: Ints, shape: tuple[int, int]) -> SparsityPattern:
    keys = np.unique(rows * np.int64(max(shape[1], 1)) + cols)
    return SparsityPattern(*np.divmod(keys, max(shape[1], 1)), shape)


@boundary
def sparsity(
    fun: Callable[..., Any], *args: Any, argnums: int = 0, **kwargs: Any
) -> SparsityPattern:
    """Return which elements of the Jacobian of a function can be nonzero.

    The pattern holds for all values of the arguments, of which shapes and dtypes alone are read; a
    number that the function is to know, such as an index, is closed over.

    Args:
      fun: a function of pytrees of arrays.
      *args: its arguments, or instances of `ShapeDtypeStruct`.
      argnums: the argument to differentiate with respect to.
      **kwargs: further arguments.

    Returns:
      The pattern of the matrix of all elements of the result by all elements of the argument, both
      in the order of their leaves, each by rows.

    Source: Griewank and Walther, "Evaluating Derivatives", SIAM 2008, chapter 7.

    Example:
      >>> import numpy as np
      >>> from xad.sparse import sparsity
      >>> sparsity(lambda x: x[1:] * x[:-1], np.ones(4)).todense().astype(int)
      array([[1, 1, 0, 0],
             [0, 1, 1, 0],
             [0, 0, 1, 1]])
    """
    if not isinstance(argnums, int) or not -len(args) <= argnums < len(args):
        raise ValueError(message(
            "sparsity", "argnums must be the number of one argument.", got=repr(argnums),
            expected=f"an int below {len(args)}",
        ))  # fmt: skip
    specs = xtree.map(spec_of, (args, kwargs))
    closed = xprim.make_jaxpr(lambda args, kwargs: fun(*args, **kwargs))(*specs)
    counts = [len(xtree.leaves(arg)) for arg in args]
    first = sum(counts[: argnums % len(args)])
    chosen = range(first, first + counts[argnums])
    return pattern_of(closed, chosen)


def spec_of(x: Any) -> ShapeDtypeStruct:
    """Return the shape and dtype of a leaf of the arguments."""
    return x if isinstance(x, ShapeDtypeStruct) else ShapeDtypeStruct.like(xprim.as_array(x))


def pattern_of(closed: ClosedJaxpr, chosen: Sequence[int]) -> SparsityPattern:
    """Return the pattern of a program's results by some of its arguments."""
    key = ("sparsity", tuple(chosen))
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = _pattern_of(closed, chosen)
    return found


def _pattern_of(closed: ClosedJaxpr, chosen: Sequence[int]) -> SparsityPattern:
    width = 0
    args = []
    for i, aval in enumerate(closed.in_avals):
        if i in chosen and is_differentiable(aval):
            args.append(_Sets.of_elements(width, aval.size))
        else:
            args.append(_Sets.empty(aval.size))
        width += aval.size if i in chosen else 0
    with xprim.ensure_compile_time_eval():
        outs = _Propagation(max(width, 1)).run(closed, args)
    sets = _join(list(map(_as_sets, outs)))
    height = sum(a.size for a in closed.out_avals)
    rows = np.repeat(np.arange(height, dtype=np.int64), sets.lengths)
    return SparsityPattern(rows, sets.indices, (height, width))


# ---------------------------------------------------------------------------------- index sets


class _Sets:
    """A set of columns for each element of an array: `indices[starts[i]:starts[i + 1]]`, sorted."""

    __slots__ = ("indices", "starts")

    def __init__(self, starts: Ints, indices: Ints) -> None:
        self.starts = starts
        self.indices = indices

    @staticmethod
    def empty(size: int) -> _Sets:
        return _Sets(np.zeros(size + 1, np.int64), np.zeros(0, np.int64))

    @staticmethod
    def of_elements(first: int, size: int) -> _Sets:
        return _Sets(np.arange(size + 1, dtype=np.int64), np.arange(first, first + size))

    @staticmethod
    def of_keys(keys: Ints, size: int, width: int) -> _Sets:
        """Return the sets of pairs `row * width + column`, each any number of times."""
        rows, cols = np.divmod(np.unique(keys), width)
        starts = np.searchsorted(rows, np.arange(size + 1))
        return _Sets(starts.astype(np.int64), cols)

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    def keys(self, width: int, rows: Ints | None = None) -> Ints:
        """Return the pairs; `rows` says which row each element belongs to, in place of its own."""
        numbers = np.arange(self.size, dtype=np.int64) if rows is None else rows
        keys: Ints = np.repeat(numbers, self.lengths) * width + self.indices
        return keys

    def at(self, places: Ints) -> _Sets:
        """Return the sets of some elements; a negative place has an empty one."""
        lengths = np.where(places < 0, 0, self.lengths[places] if self.size else 0)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        offsets = np.repeat(self.starts[:-1][places] if self.size else places, lengths)
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        return _Sets(starts, self.indices[offsets + within])


def _join(parts: Sequence[_Sets]) -> _Sets:
    """Return the sets of the elements of several arrays, one after the other."""
    lengths = np.concatenate([[0], *[p.lengths for p in parts]])
    return _Sets(np.cumsum(lengths), np.concatenate([np.zeros(0, np.int64),
                                                     *[p.indices for p in parts]]))  # fmt: skip


# --------------------------------------------------------------------------------- propagation

# Operations whose results are elements of their operands, wherever the others lead.
_MOVES = frozenset([
    "broadcast_in_dim", "concatenate", "dynamic_slice", "dynamic_update_slice", "gather", "pad",
    "reshape", "rev", "scatter", "slice", "split", "squeeze", "transpose",
])  # fmt: skip
_REDUCTIONS = frozenset(["reduce_max", "reduce_min", "reduce_prod", "reduce_sum"])
_WINDOWS = frozenset(["reduce_window_max", "reduce_window_min", "reduce_window_sum"])
_CUMULATIVE = frozenset(["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"])
_SAME = frozenset(["branch_operands", "optimization_barrier"])


class _Propagation:
    """Runs a program on sets of columns; values that depend on no argument are arrays."""

    def __init__(self, width: int) -> None:
        self.width = width

    def run(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        consts = [c if type(c) is xprim.ConcreteArray else _Sets.empty(c.aval.size)
                  for c in closed.consts]  # fmt: skip
        return interpret(closed.jaxpr, consts, args, self.equation)

    def equation(self, eqn: Equation, operands: Sequence[Any]) -> Sequence[Any]:
        if all(isinstance(x, Array) for x in operands) and not eqn.effects:
            return eqn.primitive.evaluate(operands, eqn.params)
        sets = list(map(_as_sets, operands))
        if not any(len(s.indices) for s in sets):
            return _no_sets(eqn)
        results = self._results(eqn, operands, sets)
        return [s if is_differentiable(v.aval) else _Sets.empty(v.aval.size)
                for s, v in zip(results, eqn.outputs, strict=True)]  # fmt: skip

    def _results(
        self, eqn: Equation, operands: Sequence[Any], sets: Sequence[_Sets]
    ) -> Sequence[_Sets]:
        primitive, name = eqn.primitive, eqn.primitive.name
        rules = primitive.rules
        if rules.get("jvp") is xprim.ZERO:
            return _no_sets(eqn)
        if rules.get("batch") is xprim.ELEMENTWISE:
            return [self._elementwise(sets, v.aval.size) for v in eqn.outputs]
        if name in _SAME:
            return sets[len(sets) - len(eqn.outputs) :]
        rule = _Propagation._call if held_programs(eqn.params) else _RULES.get(name)
        found = None if rule is None else rule(self, eqn, operands, sets)
        return self._everything(eqn, sets) if found is None else found

    def _everything(self, eqn: Equation, sets: Sequence[_Sets]) -> list[_Sets]:
        """Each element of the results depends on all that any operand depends on."""
        columns = np.unique(np.concatenate([s.indices for s in sets]))
        return [
            _Sets(np.arange(v.aval.size + 1) * len(columns), np.tile(columns, v.aval.size))
            for v in eqn.outputs
        ]

    def _union(self, parts: Sequence[_Sets]) -> _Sets:
        distinct = list({id(p): p for p in parts if len(p.indices)}.values())
        if len(distinct) < 2:
            return distinct[0] if distinct else parts[0]
        keys = np.concatenate([p.keys(self.width) for p in distinct])
        return _Sets.of_keys(keys, parts[0].size, self.width)

    def _elementwise(self, sets: Sequence[_Sets], size: int) -> _Sets:
        ones = np.zeros(size, np.int64)
        return self._union([s if s.size == size else s.at(ones) for s in sets])

    def _move(
        self, eqn: Equation, operands: Sequence[Any], sets: Sequence[_Sets]
    ) -> Sequence[_Sets] | None:
        """Run the operation on the numbers of elements; None where an index is not known."""
        name = eqn.primitive.name
        moved = {"gather": 1, "dynamic_slice": 1, "dynamic_update_slice": 2}.get(name, len(sets))
        pieces: list[Any] = []
        start = 0
        for i, (x, s, v) in enumerate(zip(operands, sets, eqn.inputs, strict=True)):
            is_index = i >= moved or (name == "scatter" and i == 1)
            if is_index and not isinstance(x, Array):
                return None
            if is_index:
                pieces.append(x)
                continue
            numbers = np.arange(start, start + s.size, dtype=np.int32).reshape(v.aval.shape)
            pieces.append(from_numpy(numbers, canonical=True))
            start += s.size
        params = dict(eqn.params)
        if params.get("fill_value") is not None:
            params["fill_value"] = -1
        results = eqn.primitive.bind(*pieces, **params)
        values = _join([s for i, s in enumerate(sets)
                          if i < moved and not (name == "scatter" and i == 1)])  # fmt: skip
        places = [np.asarray(r).reshape(-1).astype(np.int64) for r in results]
        return [values.at(np.where(p < values.size, p, -1)) for p in places]

    def _scatter_add(
        self, eqn: Equation, operands: Sequence[Any], sets: Sequence[_Sets]
    ) -> Sequence[_Sets] | None:
        """Add to the sets of the operand those of the updates that come to the same place."""
        _, indices, _ = operands
        if not isinstance(indices, Array):
            return None
        target, updates = sets[0], sets[2]
        aval, update_aval = eqn.inputs[0].aval, eqn.inputs[2].aval
        places = _places_of_updates(eqn, indices, aval, update_aval)
        added = updates.keys(self.width, places)
        inside = np.repeat(places, updates.lengths) >= 0
        keys = np.concatenate([target.keys(self.width), added[inside]])
        return [_Sets.of_keys(keys, target.size, self.width)]

    def _reduce(self, eqn: Equation, _: Any, sets: Sequence[_Sets]) -> list[_Sets]:
        return [self._of_rows(eqn, sets[0])[0]]

    def _center(self, eqn: Equation, _: Any, sets: Sequence[_Sets]) -> list[_Sets]:
        """An element depends on what those along the axes do."""
        totals, rows = self._of_rows(eqn, sets[0])
        return [totals.at(rows)]

    def _of_rows(self, eqn: Equation, s: _Sets) -> tuple[_Sets, Any]:
        """Return the sets of the sums along the axes, and the number of that of each element."""
        shape, axes = eqn.inputs[0].aval.shape, set(eqn.params["axes"])
        sizes = [1 if d in axes else n for d, n in enumerate(shape)]
        count = int(np.prod(sizes, dtype=np.int64))
        grid = np.arange(count, dtype=np.int64).reshape(sizes)
        rows = np.broadcast_to(grid, shape).reshape(-1)
        return _Sets.of_keys(s.keys(self.width, rows), count, self.width), rows

    def _cumulate(self, eqn: Equation, _: Any, sets: Sequence[_Sets]) -> list[_Sets]:
        """An element depends on what those before it along the axis do."""
        s, shape, axis = sets[0], eqn.inputs[0].aval.shape, eqn.params["axis"]
        numbers = np.moveaxis(np.arange(s.size).reshape(shape), axis, 0)
        order = range(shape[axis])
        keys = []
        for i in reversed(order) if eqn.params.get("reverse") else order:
            later = numbers[: i + 1] if eqn.params.get("reverse") else numbers[i:]
            here = s.at(numbers[i].reshape(-1))
            for rows in later.reshape(len(later), -1):
                keys.append(here.keys(self.width, rows))  # noqa: PERF401 - two loops
        return [_Sets.of_keys(np.concatenate(keys), s.size, self.width)]

    def _windows(self, eqn: Equation, _: Any, sets: Sequence[_Sets]) -> list[_Sets]:
        """A window depends on what its elements do: windows of the numbers, one place at a time."""
        s, params, shape = sets[0], eqn.params, eqn.inputs[0].aval.shape
        strides, out_shape = params["window_strides"], eqn.outputs[0].aval.shape
        dilations = params.get("window_dilation", (1,) * len(shape))
        padding, spread = params["padding"], params.get("base_dilation", (1,) * len(shape))
        outs = np.indices(out_shape).reshape(len(shape), -1)
        keys = []
        for offset in np.ndindex(*params["window_dimensions"]):
            inside = np.ones(outs.shape[1], bool)
            place = np.zeros(outs.shape[1], np.int64)
            for d, size in enumerate(shape):
                at = outs[d] * strides[d] + offset[d] * dilations[d] - padding[d][0]
                at, rest = np.divmod(at, spread[d])
                inside &= (at >= 0) & (at < size) & (rest == 0)
                place = place * size + np.clip(at, 0, size - 1)
            keys.append(s.at(np.where(inside, place, -1)).keys(self.width))
        return [_Sets.of_keys(np.concatenate(keys), eqn.outputs[0].aval.size, self.width)]

    def _contract(
        self, eqn: Equation, operands: Sequence[Any], sets: Sequence[_Sets]
    ) -> list[_Sets]:
        """An element depends on what a row and a column do; zeros that are known count as none."""
        (summed, batch) = eqn.params["dimension_numbers"]
        sides = []
        for k in (0, 1):
            shape = eqn.inputs[k].aval.shape
            own, lead = list(summed[k]), list(batch[k])
            free = [d for d in range(len(shape)) if d not in (*own, *lead)]
            numbers = np.arange(sets[k].size).reshape(shape).transpose(*lead, *free, *own)
            count = [int(np.prod([shape[d] for d in dims], dtype=np.int64))
                     for dims in (lead, free, own)]  # fmt: skip
            sides.append(numbers.reshape(count))
        left, right = sides
        out = np.arange(left.shape[0] * left.shape[1] * right.shape[1]).reshape(
            left.shape[0], left.shape[1], right.shape[1]
        )
        keys = [np.zeros(0, np.int64)]
        for k, (mine, other) in enumerate(((left, right), (right, left))):
            known = operands[1 - k]
            values = np.asarray(known).reshape(-1) if isinstance(known, Array) else None
            table = out if k == 0 else out.transpose(0, 2, 1)
            for j in range(other.shape[1]):  # the rows of mine, with row j of the other
                numbers, rows = mine, np.broadcast_to(table[:, :, j, None], mine.shape)
                if values is not None:
                    keep = np.broadcast_to((values[other[:, j]] != 0)[:, None], mine.shape)
                    numbers, rows = mine[keep], rows[keep]
                keys.append(sets[k].at(numbers.reshape(-1)).keys(self.width, rows.reshape(-1)))
        return [_Sets.of_keys(np.concatenate(keys), out.size, self.width)]

    # --- programs inside -----------------------------------------------------------------------

    def _call(
        self, eqn: Equation, operands: Sequence[Any], sets: Sequence[_Sets]
    ) -> Sequence[_Sets] | None:
        if eqn.primitive.name == "scan":  # it alone has results that are rows of all steps
            return self._scan(eqn.params, operands, sets)
        declared = eqn.primitive.rules.get("programs")
        if isinstance(declared, Programs):
            bodies = [name for name in declared.takes if name != declared.test]
            if len(bodies) == 1:
                return self._body(bodies[0], declared, eqn, operands, sets)
        program = held_programs(eqn.params)[0]
        if len(program.in_avals) != len(operands) or len(program.out_avals) != len(eqn.outputs):
            return None
        return self._inside(program, operands)

    def _body(
        self, name: str, declared: Programs, eqn: Equation, operands: Sequence[Any],
        sets: Sequence[_Sets],
    ) -> Sequence[_Sets] | None:  # fmt: skip
        """Return the sets of a loop, of a choice, or of a call by the operands its body takes."""
        body, groups = eqn.params[name], declared.takes[name]
        spans = declared.spans(eqn.params, len(operands))
        given = [operands[k] for group in groups for k in spans[group]]
        programs = body if type(body) is tuple else (body,)
        sizes = (len(given), len(eqn.outputs))
        if any((len(p.in_avals), len(p.out_avals)) != sizes for p in programs):
            return None
        if declared.carry:
            carry = spans[declared.carry]
            if groups[-1] != declared.carry or len(carry) != len(eqn.outputs):
                return None
            return self._until_they_stay(
                body, given[: len(given) - len(carry)], [sets[k] for k in carry]
            )
        each = [self._inside(p, given) for p in programs]
        return [self._union(parts) for parts in zip(*each, strict=True)]

    def _inside(self, program: ClosedJaxpr, operands: Sequence[Any]) -> list[_Sets]:
        return list(map(_as_sets, self.run(program, operands)))

    def _until_they_stay(
        self, body: ClosedJaxpr, consts: Sequence[Any], carry: Sequence[_Sets]
    ) -> list[_Sets]:
        """Return the sets of a carry after any number of steps."""
        carry = list(carry)
        while True:
            after = self._inside(body, [*consts, *carry])
            joint = [self._union([a, b]) for a, b in zip(carry, after, strict=True)]
            if all(len(a.indices) == len(b.indices) for a, b in zip(carry, joint, strict=True)):
                return joint
            carry = joint

    def _scan(
        self, params: dict[str, Any], operands: Sequence[Any], sets: Sequence[_Sets]
    ) -> list[_Sets]:
        """Run each step of a scan, also those that it may stop before."""
        stops = params.get("num_stops", 0)
        operands, sets = operands[stops:], sets[stops:]
        length, count = params["length"], params["num_consts"]
        end = count + params["num_carry"]
        consts, carry = operands[:count], list(operands[count:end])
        rows: list[list[_Sets]] = [[] for _ in range(length)]
        steps = range(length)
        for i in reversed(steps) if params["reverse"] else steps:
            elements = [_element(x, s, i, length)
                        for x, s in zip(operands[end:], sets[end:], strict=True)]  # fmt: skip
            outs = self.run(params["jaxpr"], [*consts, *carry, *elements])
            carry = outs[: len(carry)]
            rows[i] = [_as_sets(y) for y in outs[len(carry) :]]
        ys = (
            [_join(parts) for parts in zip(*rows, strict=True)]
            if length
            else [_Sets.empty(0) for _ in params["jaxpr"].out_avals[params["num_carry"] :]]
        )
        return [*[_as_sets(c) for c in carry], *ys]


_RULES: dict[str, Any] = {
    **dict.fromkeys(_MOVES, _Propagation._move),
    **dict.fromkeys(_REDUCTIONS, _Propagation._reduce),
    **dict.fromkeys(_CUMULATIVE, _Propagation._cumulate),
    **dict.fromkeys(_WINDOWS, _Propagation._windows),
    "center": _Propagation._center,
    "dot_general": _Propagation._contract,
    "scatter_add": _Propagation._scatter_add,
}


def _no_sets(eqn: Equation) -> list[_Sets]:
    return [_Sets.empty(v.aval.size) for v in eqn.outputs]


def _as_sets(x: Any) -> _Sets:
    return _Sets.empty(x.aval.size) if isinstance(x, Array) else x


def _element(x: Any, s: _Sets, i: int, length: int) -> Any:
    if isinstance(x, Array):
        return from_numpy(np.asarray(x)[i], canonical=False)
    size = s.size // length
    return s.at(np.arange(i * size, (i + 1) * size))


def _places_of_updates(eqn: Equation, indices: Any, aval: Any, update_aval: Any) -> Ints:
    """Return for each element of the updates of a scatter where it comes to, -1 for nowhere.

    The transpose of a scatter reads the cotangent at the places of the updates: of the numbers of
    the elements, counted from 1 as what is outside reads 0, it gives the places.
    """
    numbers = from_numpy(np.arange(1, aval.size + 1, dtype=np.int32).reshape(aval.shape),
                         canonical=True)  # fmt: skip
    rule = eqn.primitive.rule("transpose")
    results = rule((numbers,), Linear(aval), indices, Linear(update_aval), **eqn.params)
    return np.asarray(results[2]).reshape(-1).astype(np.int64) - 1
