"""Jacobians and Hessians: all directions of a derivative at once.

Forward mode pushes each basis vector of the argument through the linearized function, reverse mode
pulls each basis vector of the result back; so `jacfwd` costs about as many evaluations as there are
argument elements, `jacrev` as result elements. The basis vectors are batched where `xbatch` is
installed, else taken one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtree
from xad.arguments import ArgNums, FlatFunction, as_arrays, check_inexact, normalized_argnums
from xad.grad import cotangents_of
from xad.linearize import linearize_flat
from xad.tangents import instantiate, zeros_of
from xnp import lax
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Zero,
    closed_without_dead_code,
    dtypes,
    eval_closed,
    providers,
    shaped_array,
)


def jacfwd(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian by forward mode.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.

    Returns:
      A function of the same arguments. For a result of shape `r` and an argument of shape `a` it
      gives an array of shape `r + a`, in a tree like the result whose leaves are trees like the
      argument; followed by the auxiliary output with `has_aux`.

    Example:
      >>> import numpy as np
      >>> from xad import jacfwd
      >>> np.asarray(jacfwd(lambda x: x * x)(np.array([1.0, 2.0])))
      array([[2., 0.],
             [0., 4.]], dtype=float32)
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, "jacfwd", _by_columns)


def jacrev(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian by reverse mode.

    Args and result are those of `jacfwd`; `allow_int` accepts integer arguments, whose derivative
    is zero of dtype `float0`. Cheaper than `jacfwd` when the result is smaller than the argument.
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, "jacrev", _by_rows, allow_int)


jacobian = jacrev


def hessian(
    fun: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the matrix of second derivatives, forward over reverse.

    Args:
      fun: a function of pytrees of arrays, of a result of any shape.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.

    Returns:
      A function of the same arguments; for a scalar result and an argument of shape `a` it gives an
      array of shape `a + a`.
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def _jacobian(
    fun: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    holomorphic: bool,
    operation: str,
    method: Callable[..., list[list[Any]]],
    allow_int: bool = False,
) -> Callable[..., Any]:
    if not callable(fun):
        raise TypeError(f"{operation}: expected a function, got {fun!r}.")

    @functools.wraps(fun)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        numbers = normalized_argnums(argnums, len(args), operation)
        single = isinstance(argnums, int)
        selected = args[numbers[0]] if single else tuple([args[i] for i in numbers])
        leaves, tree = xtree.flatten(selected)
        primals = as_arrays(leaves, operation)
        check_inexact(primals, tree, operation, holomorphic=holomorphic, allow_int=allow_int)

        def rebuild(xs: Any) -> tuple[list[Any], dict[str, Any]]:
            values = xtree.unflatten(tree, xs)
            full = list(args)
            for i, value in zip(numbers, (values,) if single else values, strict=True):
                full[i] = value
            return full, kwargs

        flat = FlatFunction(fun, rebuild, operation=operation, has_aux=has_aux)
        nonzero = [dtypes.is_inexact(x.aval.dtype) for x in primals]
        outs, program = linearize_flat(flat, primals, nonzero)
        _check_results(outs, operation, holomorphic)
        blocks = method(program, nonzero, primals, outs)
        trees = [xtree.unflatten(tree, row) for row in blocks]
        result = xtree.unflatten(flat.out_tree, trees)
        return (result, flat.aux) if has_aux else result

    return jacobian_of


def _check_results(outs: Sequence[Array], operation: str, holomorphic: bool) -> None:
    for out in outs:
        dtype = out.aval.dtype
        if holomorphic and not dtypes.is_complex(dtype):
            raise TypeError(
                f"{operation}: holomorphic=True needs complex results, got {dtype.name}."
            )
        if not dtypes.is_inexact(dtype):
            raise TypeError(
                f"{operation}: the results must be floating, got {dtype.name}."
                "\n  hint      has_aux=True passes integer outputs through"
            )
        if operation == "jacrev" and dtypes.is_complex(dtype) and not holomorphic:
            raise TypeError(
                "jacrev: the results must be real unless holomorphic=True, got "
                f"{dtype.name}.\n  hint      differentiate the real and imaginary parts"
            )


def _by_columns(program: Any, nonzero: Any, primals: Any, outs: Any) -> list[list[Any]]:
    """Return, for each result, its derivative by each primal: one tangent for each element."""
    closed, _ = closed_without_dead_code(
        ClosedJaxpr(program.jaxpr, program.residuals), keep_arguments=True
    )
    active = [p for p, nz in zip(primals, nonzero, strict=True) if nz]
    columns: list[list[Any]] = []  # for each active primal, a list of results with basis in front
    for k, primal in enumerate(active):

        def push(dot: Any, k: int = k) -> list[Any]:
            dots = [dot if i == k else instantiate(Zero(p.aval.strong())) for i, p in enumerate(active)]
            results = iter(eval_closed(closed, *dots))
            return [next(results) if nz else zeros_of(o.aval)
                    for o, nz in zip(outs, program.nonzero_out, strict=True)]  # fmt: skip

        columns.append(_mapped(push, primal.aval))
    blocks = []
    for i, out in enumerate(outs):
        taken = iter(columns)
        row = []
        for p, nz in zip(primals, nonzero, strict=True):
            shape = out.aval.shape + p.aval.shape
            row.append(_last(next(taken)[i], shape) if nz else np.zeros(shape, dtypes.float0))
        blocks.append(row)
    return blocks


def _by_rows(program: Any, nonzero: Any, primals: Any, outs: Any) -> list[list[Any]]:
    """Return, for each result, its derivative by each primal: one cotangent for each element."""
    blocks = []
    for k, out in enumerate(outs):

        def pull(ct: Any, k: int = k) -> list[Any]:
            cts = [ct if i == k else Zero(o.aval.strong()) for i, o in enumerate(outs)]
            return cotangents_of(program, nonzero, primals, cts)

        rows = _mapped(pull, out.aval)
        blocks.append([
            lax.reshape(r, out.aval.shape + p.aval.shape) if nz
            else np.zeros(out.aval.shape + p.aval.shape, dtypes.float0)
            for r, p, nz in zip(rows, primals, nonzero, strict=True)
        ])  # fmt: skip
    return blocks


def _mapped(fun: Callable[[Any], list[Any]], aval: Any) -> list[Any]:
    """Apply a linear function to every basis vector of `aval`; results have the basis in front."""
    eye = np.eye(aval.size, dtype=aval.dtype).reshape(aval.size, *aval.shape)
    basis = ConcreteArray(eye, shaped_array(eye.shape, aval.dtype))
    vmap = providers.find("vmap")
    if vmap is not None and aval.size > 0:
        return vmap(fun)(basis)  # type: ignore[no-any-return]
    rows = [fun(lax.index_in_dim(basis, i, keepdims=False)) for i in range(aval.size)]
    if not rows:
        return [
            lax.full((0, *r.aval.shape), 0, r.aval.dtype) if isinstance(r, Array) else r
            for r in fun(lax.full(aval.shape, 0, aval.dtype))
        ]
    return [
        lax.concatenate([lax.expand_dims(r, (0,)) for r in column], 0)
        if isinstance(column[0], Array) else column[0]
        for column in zip(*rows, strict=True)
    ]  # fmt: skip


def _last(columns: Any, shape: tuple[int, ...]) -> Any:
    """Move the basis dimension from the front to the back and give it the argument's shape."""
    order = (*range(1, columns.aval.ndim), 0)
    return lax.reshape(lax.transpose(columns, order), shape)
