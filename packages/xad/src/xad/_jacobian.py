"""Jacobians and Hessians: all directions of a derivative at once.

Forward mode pushes each basis vector of the argument through the linearized function, reverse mode
pulls each basis vector of the result back; so `jacfwd` costs about as many evaluations as there are
argument elements, `jacrev` as result elements, and `jacobian` chooses the smaller number. The basis
vectors are batched where `xbatch` is installed, else taken one by one. `hvp` multiplies a Hessian
by one vector without it.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import xprim
import xtree
from xad._jvp import jvp_of
from xad._linearize import LinearProgram, linearize_flat
from xad._vjp import active_cotangents_of, value_and_grad_of
from xad.arguments import (
    ArgNums,
    check_forward_arguments,
    check_reverse_arguments,
    flatten_differentiated,
)
from xad.tangents import float0_zeros, instantiate, is_differentiable, retype_as, zeros_of
from xnp import lax
from xnp.lax import concatenate_p, reshape_p, slice_p, transpose_p
from xnp.primitives import table
from xprim import (
    Array,
    Jaxpr,
    ShapedArray,
    Var,
    Zero,
    dtypes,
    eval_closed,
    from_numpy,
    shaped_array,
    state,
)
from xprim.errors import message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundary
from xprim.transformed import check_function, transformed, transforming


@boundary
def jacfwd(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian by forward mode.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      chunk_size: how many columns are computed at once: memory is bounded by these. None takes all.

    Returns:
      A function of the same arguments. For a result of shape `r` and an argument of shape `a` it
      gives an array of shape `r + a`, in a tree like the result whose leaves are trees like the
      argument; followed by the auxiliary output with `has_aux`. For a result of integers or
      booleans it is zeros of their dtype.

    Example:
      >>> import numpy as np
      >>> from xad import jacfwd
      >>> np.asarray(jacfwd(lambda x: x * x)(np.array([1.0, 2.0])))
      array([[2., 0.],
             [0., 4.]], dtype=float32)
    """
    return _jacobian(
        fun, argnums, has_aux, holomorphic, False, "jacfwd", "forward", chunk_size, False
    )


@boundary
def jacrev(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian by reverse mode.

    Args and result are those of `jacfwd`; `allow_int` accepts integer arguments, whose derivative
    is zero of dtype `float0`, and `chunk_size` counts rows. Cheaper than `jacfwd` when the result
    is smaller than the argument.
    """
    return _jacobian(
        fun, argnums, has_aux, holomorphic, allow_int, "jacrev", "reverse", chunk_size, False
    )


@boundary
def jacobian(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    mode: str = "auto",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian by whichever mode has fewer directions.

    For an argument of n elements and a result of m, forward mode pushes n tangents and reverse
    mode pulls m cotangents back, each at about the cost of one evaluation (Griewank and Walther,
    "Evaluating Derivatives", 2008, chapters 3 and 8). `mode="auto"` is forward where n < m, else
    reverse, as for equal numbers the batched products of reverse mode are no slower.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      allow_int: whether to accept integer arguments, whose derivative is zero of dtype `float0`;
        "auto" then is reverse mode.
      mode: "auto", "forward" or "reverse".
      chunk_size: how many directions are computed at once. None takes all.

    Returns:
      What `jacrev` returns: the modes differ in rounding alone.

    Raises:
      ValueError: unknown mode, or it is "forward" with `allow_int`.
      TypeError: the arguments or results are not floating, as for `jacrev`.

    Example:
      >>> import numpy as np
      >>> from xad import jacobian
      >>> np.asarray(jacobian(lambda x: x * x)(np.array([1.0, 2.0])))
      array([[2., 0.],
             [0., 4.]], dtype=float32)
    """
    return _jacobian(
        fun, argnums, has_aux, holomorphic, allow_int, "jacobian", mode, chunk_size, False
    )


@boundary
def value_and_jacobian(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    mode: str = "auto",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes both `fun` and its Jacobian, evaluating `fun` once.

    Args and errors are those of `jacobian`.

    Returns:
      A function of the same arguments that returns `(value, jacobian)`; with `has_aux` the value is
      the pair that `fun` returns.

    Example:
      >>> from xad import value_and_jacobian
      >>> value, derivative = value_and_jacobian(lambda x: x * x)(3.0)
      >>> float(value), float(derivative)
      (9.0, 6.0)
    """
    return _jacobian(
        fun, argnums, has_aux, holomorphic, allow_int, "value_and_jacobian", mode, chunk_size, True
    )


@boundary
def hvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the product of the Hessian of a scalar function with a vector.

    For `f: R^n -> R` with Hessian `H` at `x` this is `H v`, the derivative of the gradient along
    `v`: forward mode over reverse mode, at a small multiple of the cost of `f` and without the
    n x n matrix (Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6,
    1994). For many vectors at one point, `linearize(grad(fun), x)` evaluates once, and `vmap` over
    the tangents takes a batch.

    Args:
      fun: a function whose result is a scalar of a floating dtype; its arguments are pytrees.
      primals: a tuple or list of the arguments.
      tangents: a vector for each, of the same structure, shapes and dtypes.
      has_aux: whether `fun` returns a pair `(scalar, auxiliary)`.

    Returns:
      A tuple with a tree like each primal, as `vjp` gives; `(products, auxiliary)` with `has_aux`.

    Raises:
      TypeError: the result is not a floating scalar, a primal is not floating, or primals and
        tangents differ in structure, shapes or dtypes.

    Example:
      >>> from xad import hvp
      >>> (product,) = hvp(lambda x: x * x * x, (2.0,), (1.0,))
      >>> float(product)
      12.0
    """
    check_function(fun, "hvp")

    @transforming(fun, "hvp")
    def gradient(*args: Any) -> Any:
        every = tuple(range(len(args)))
        value, grads = value_and_grad_of(fun, every, has_aux, False, False, "hvp", None)(*args)
        return (grads, value[1]) if has_aux else grads

    found = jvp_of("hvp", gradient, primals, tangents, has_aux)
    products: tuple[Any, ...] = found[1:] if has_aux else found[1]
    return products


@boundary
def hessian(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the matrix of second derivatives, forward over reverse.

    Args:
      fun: a function of pytrees of arrays, of a result of any shape.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      chunk_size: how many columns are computed at once: memory is bounded by these. None takes all.

    Returns:
      A function of the same arguments; for a scalar result and an argument of shape `a` it gives an
      array of shape `a + a`.
    """
    check_function(fun, "hessian")
    chunk_size = _check_size(chunk_size, "hessian")
    options: dict[str, Any] = {"has_aux": has_aux, "holomorphic": holomorphic}
    gradient = jacrev(fun, argnums, **options)
    second = jacfwd(gradient, argnums, chunk_size=chunk_size, **options)
    return transformed(second, fun, "hessian")


def _jacobian(
    fun: Callable[..., Any], argnums: ArgNums, has_aux: bool, holomorphic: bool, allow_int: bool,
    operation: str, mode: str, chunk_size: int | None, with_value: bool,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that computes the Jacobian by a mode of `_METHODS`, or the value and it."""
    size = _check_size(chunk_size, operation)
    require_choice(operation, "mode", mode, _METHODS)
    reverse, method = mode != "forward", _METHODS[mode]
    require(
        reverse or not allow_int, operation,
        "integer arguments have no directions for forward mode.",
        got={"mode": mode, "allow_int": allow_int}, hint="mode='reverse' accepts them",
    )  # fmt: skip
    check_arguments: Callable[..., Any] = check_forward_arguments
    if reverse:
        check_arguments = functools.partial(check_reverse_arguments, allow_int=allow_int)
    check_function(fun, operation)

    @transforming(fun, operation)
    @boundary
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        flat, primals, tree = flatten_differentiated(
            fun, args, kwargs, argnums, operation=operation, has_aux=has_aux
        )
        check_arguments(primals, tree, operation, holomorphic=holomorphic)
        avals = [x.aval for x in primals]
        outs, program = linearize_flat(flat, primals, [is_differentiable(a) for a in avals])
        _check_results(outs, operation, holomorphic, reverse)
        blocks = method(size, program, avals, [x.aval for x in outs])
        result = xtree.unflatten(flat.out_tree, [xtree.unflatten(tree, row) for row in blocks])
        if with_value:
            value = xtree.unflatten(flat.out_tree, outs)
            return ((value, flat.aux) if has_aux else value), result
        return (result, flat.aux) if has_aux else result

    return jacobian_of


def _check_results(outs: Sequence[Array], operation: str, holomorphic: bool, reverse: bool) -> None:
    for out in outs:
        dtype = out.aval.dtype
        require(
            not holomorphic or dtypes.is_complex(dtype), operation,
            "holomorphic=True needs complex results, got {}.", dtype.name, error=TypeError,
        )  # fmt: skip
        require(
            not reverse or dtypes.is_inexact(dtype), operation,
            "the results must be floating, got {}.", dtype.name,
            hint="has_aux=True passes integer outputs through", error=TypeError,
        )  # fmt: skip
        if reverse and dtypes.is_complex(dtype) and not holomorphic:
            raise TypeError(message(
                operation, f"the results must be real unless holomorphic=True, got {dtype.name}.",
                hint="differentiate the real and imaginary parts",
            ))  # fmt: skip


def _check_size(chunk_size: Any, operation: str) -> int | None:
    if chunk_size is None:
        return None
    try:
        size = operator.index(chunk_size)
    except TypeError:
        size = 0
    require(
        size >= 1, operation, "chunk_size must be an int of at least 1, or None.", got=chunk_size
    )
    return size


def _by_columns(
    chunk_size: int | None,
    program: LinearProgram,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
) -> list[list[Any]]:
    """Return, for each result, its derivative by each primal: one tangent for each element.

    That of integers and booleans is zeros of their dtype.
    """
    closed = program.as_program()
    active = [is_differentiable(a) for a in out_avals]

    def push(dots: list[Any]) -> list[Any]:
        results = iter(eval_closed(closed, *dots))
        return [
            retype_as(next(results), a) if nz else zeros_of(a)
            for a, nz, live in zip(out_avals, program.nonzero_out, active, strict=True)
            if live
        ]

    is_ahead = _most_reads(closed.jaxpr) > _FEW_READS
    found = iter(_map(push, in_avals, chunk_size, is_ahead) if any(active) else ())
    count = sum([a.size for a in in_avals])
    columns = [next(found) if live else _constant_zeros(a, (count, *a.shape))
               for a, live in zip(out_avals, active, strict=True)]  # fmt: skip
    ends = list(itertools.accumulate([a.size for a in in_avals]))
    return [
        [_basis_last(_rows(column, end - a.size, end), out.shape + a.shape)
         for a, end in zip(in_avals, ends, strict=True)]
        for column, out in zip(columns, out_avals, strict=True)
    ]  # fmt: skip


def _by_rows(
    chunk_size: int | None,
    program: LinearProgram,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
) -> list[list[Any]]:
    """Return, for each result, its derivative by each primal: one cotangent for each element."""

    def rows_of(k: int, out: ShapedArray) -> list[Any]:
        def pull(ct: list[Any]) -> list[Any]:
            cts = [ct[0] if i == k else Zero(a) for i, a in enumerate(out_avals)]
            return active_cotangents_of(program, in_avals, cts)

        rows = iter(_map(pull, [out], chunk_size))
        shapes = [out.shape + a.shape for a in in_avals]
        return [
            _reshape(next(rows), shape) if nz else float0_zeros(shape)
            for shape, nz in zip(shapes, program.nonzero_in, strict=True)
        ]

    return [rows_of(k, out) for k, out in enumerate(out_avals)]


def _by_shapes(
    chunk_size: int | None,
    program: LinearProgram,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
) -> list[list[Any]]:
    """Return what `_by_columns` or `_by_rows` does, by the one that has fewer directions."""
    columns, rows = (sum([a.size for a in avals]) for avals in (in_avals, out_avals))
    has_complex, gives_complex = ([dtypes.is_complex(a.dtype) for a in avals]
                                  for avals in (in_avals, out_avals))  # fmt: skip
    # a real function of complex arguments has two real directions for each element
    can_push = all(program.nonzero_in) and (not any(has_complex) or all(gives_complex))
    method = _by_columns if can_push and columns < rows else _by_rows
    return method(chunk_size, program, in_avals, out_avals)


_METHODS: Final = {"auto": _by_shapes, "forward": _by_columns, "reverse": _by_rows}


# Of one number, which a kernel that moves elements around computes again for each equation that
# reads it: more reads than these take longer than a basis in memory.
_FEW_READS: Final = 4

# Without a compiler, more chunks than this are faster as a loop whose body is staged once.
_MAX_EAGER_CHUNKS: Final = 8


def _map(
    fun: Callable[[list[Any]], list[Any]], avals: Sequence[ShapedArray], chunk_size: int | None,
    is_ahead: bool = False,
) -> list[Any]:  # fmt: skip
    """Apply a linear function of several arrays to each basis vector of all their elements.

    One batch holds the vectors of all arrays, so the program of the function is there once. With
    `is_ahead` those of a chunk are in memory when the function is applied.

    Returns:
      Its results with the basis in front: the elements of the first array, then of the second, ...
    """
    vmap = xprim.optional_transforms.find("vmap")
    sizes = [a.size for a in avals]
    count = sum(sizes)
    starts = [end - size for end, size in zip(itertools.accumulate(sizes), sizes, strict=True)]
    if count == 0:
        return _of_no_vector(fun, avals)
    if vmap is None or count == 1:
        return _one_by_one(fun, _basis(avals, starts, 0, count))
    size = count if chunk_size is None else min(chunk_size, count)
    if size == count or (state.trace is xprim.EAGER and count <= _MAX_EAGER_CHUNKS * size):
        chunks = (_basis(avals, starts, first, min(first + size, count))
                  for first in range(0, count, size))  # fmt: skip
        parts = [vmap(fun)([from_numpy(b, copy=False, canonical=False) for b in basis])
                 for basis in chunks]  # fmt: skip
        return [_concatenate(part) for part in zip(*parts, strict=True)]
    return _in_loop(vmap(fun), avals, starts, count, size, is_ahead)


def _in_loop(
    fun: Callable[[list[Any]], list[Any]], avals: Sequence[ShapedArray], starts: Sequence[int],
    count: int, size: int, is_ahead: bool,
) -> list[Any]:  # fmt: skip
    """Apply a batched function to the basis, at most `size` vectors a step, in their memory.

    The steps have as many vectors each, so that the function is there once; those beyond the last
    one are zero. The vectors of a step are compared from its first number, which the loop counts,
    and nothing else: XLA does this arithmetic again for each element and each reader of the basis.
    With `is_ahead` a step computes those of the next one, which the loop then holds.
    """
    turns = -(-count // size)
    size = -(-count // turns)

    def rows_from(first: Any) -> list[Any]:
        return [_basis_from(first, size, a, start) for a, start in zip(avals, starts, strict=True)]

    def step(carry: Any, _: Any) -> Any:
        first, rows = carry
        following = lax.add(first, lax.full_like(first, size))
        if is_ahead:
            return (following, rows_from(following)), fun(rows)
        return (following, rows), fun(rows_from(first))

    first = from_numpy(np.int32(0))
    _, stacked = lax.scan(step, (first, rows_from(first) if is_ahead else []), None, length=turns)
    return [_rows(_reshape(x, (turns * size, *x.aval.shape[2:])), 0, count) for x in stacked]


def _most_reads(jaxpr: Jaxpr) -> int:
    """Return how many equations read the argument that most of them read."""
    reads = collections.Counter([x for eqn in jaxpr.eqns for x in eqn.inputs if type(x) is Var])
    return max([reads[v] for v in jaxpr.invars], default=0)


def _basis_from(first: Any, size: int, aval: ShapedArray, start: int) -> Any:
    """Return `size` basis vectors from number `first`; the array's own begin at `start`."""
    shape = (size, aval.size)
    offset = table.broadcast_to(lax.sub(first, lax.full_like(first, start)), shape)
    chosen = table.bind("eq", table.add(table.iota(shape, 0), offset), table.iota(shape, 1))
    return _reshape(table.convert(chosen, aval.dtype), (size, *aval.shape))


def _basis(
    avals: Sequence[ShapedArray], starts: Sequence[int], first: int, last: int
) -> list[np.ndarray[Any, Any]]:
    """Return some of the basis vectors, as a batch for each array."""
    count = last - first
    return [np.eye(count, a.size, first - start, dtype=a.dtype).reshape(count, *a.shape)
            for start, a in zip(starts, avals, strict=True)]  # fmt: skip


def _concatenate(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else concatenate_p.bind(*parts, dimension=0)[0]


def _of_no_vector(fun: Callable[[list[Any]], list[Any]], avals: Sequence[ShapedArray]) -> list[Any]:
    results = [r.aval for r in fun([instantiate(Zero(a)) for a in avals])]
    empty = [shaped_array((0, *r.shape), r.dtype, r.weak_type) for r in results]
    return [retype_as(Zero(a), a) for a in empty]


def _one_by_one(
    fun: Callable[[list[Any]], list[Any]], basis: Sequence[np.ndarray[Any, Any]]
) -> list[Any]:
    rows = [
        fun([from_numpy(b, copy=False, canonical=False) for b in vector])
        for vector in zip(*basis, strict=True)
    ]
    return [
        _concatenate([_reshape(r, (1, *r.aval.shape)) for r in column])
        for column in zip(*rows, strict=True)
    ]


def _rows(x: Any, start: int, stop: int) -> Any:
    if (start, stop) == (0, x.aval.shape[0]):
        return x
    rest = x.aval.shape[1:]
    return slice_p.bind(
        x, start_indices=(start, *[0] * len(rest)), limit_indices=(stop, *rest), strides=None
    )[0]


def _constant_zeros(aval: ShapedArray, shape: tuple[int, ...]) -> Any:
    return from_numpy(np.zeros(shape, aval.dtype), copy=False, canonical=False)


def _basis_last(columns: Any, shape: tuple[int, ...]) -> Any:
    """Move the basis dimension from the front to the back and give it the argument's shape."""
    order = (*range(1, columns.aval.ndim), 0)
    return _reshape(transpose_p.bind(columns, permutation=order)[0], shape)


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return reshape_p.bind(x, new_sizes=shape, dimensions=None)[0]
