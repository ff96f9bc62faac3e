"""Derivatives by sparse arrays, which are sparse: of the values, at the same indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xad
import xnp
import xrandom
import xtree
from xnp.sparse import BCOO, JAXSparse
from xprim.requirements import require, static_int
from xprim.tracebacks import boundary
from xprim.transformed import check_function, transforming
from xprim.typing import ArrayLike, DTypeLike

__all__ = ()

Argnums = int | Sequence[int]


@boundary
def value_and_grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that returns the value of `fun` and its gradient.

    Args:
      fun: a function of trees of dense and sparse arrays.
      argnums: which arguments to differentiate by, as in `xstack.grad`.
      has_aux: whether `fun` returns a pair, of which the second is passed on.
      **kwargs: of `xstack.value_and_grad`.

    Returns:
      A function like `fun`. Where an argument is sparse, the gradient is: it has the same indices.
    """
    check_function(fun, "value_and_grad")

    @transforming(fun, "value_and_grad")
    def value_and_gradient(*args: Any, **named: Any) -> tuple[Any, Any]:
        split = _Split(fun, argnums, args, has_aux)
        differentiated = xad.value_and_grad(split.of_data, argnums, has_aux, **kwargs)
        value, found = differentiated(*split.args, **named)
        return value, split.in_form_of_arguments(found)

    return value_and_gradient


@boundary
def grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return a function that returns the gradient of `fun`, sparse by arguments that are.

    Args:
      fun: a function of trees of dense and sparse arrays.
      argnums: which arguments to differentiate by, as in `xstack.grad`.
      has_aux: whether `fun` returns a pair, of which the second is passed on.
      **kwargs: of `xstack.grad`.

    Example:
      >>> import xnp
      >>> from xstack.experimental import sparse
      >>> m = sparse.BCOO.fromdense(xnp.array([[0.0, 2.0], [3.0, 0.0]]))
      >>> g = grad(lambda m: ((m @ xnp.ones(2)) ** 2).sum())(m)
      >>> g, g.data.tolist()
      (BCOO(float32[2, 2], nse=2), [4.0, 6.0])
    """
    check_function(fun, "grad")
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @transforming(fun, "grad")
    def gradient(*args: Any, **named: Any) -> Any:
        value, found = both(*args, **named)
        return (found, value[1]) if has_aux else found

    return gradient


@boundary
def jacfwd(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `fun`, in forward mode.

    Args:
      fun: a function of trees of dense and sparse arrays, which returns dense ones.
      argnums: which arguments to differentiate by, as in `xstack.jacfwd`.
      has_aux: whether `fun` returns a pair, of which the second is passed on.
      **kwargs: of `xstack.jacfwd`.

    Returns:
      A function like `fun`. Where an argument is sparse, the Jacobian is a `BCOO` of the same
      indices, with the dimensions of the result in front, as batch.
    """
    return _jacobian(xad.jacfwd, "jacfwd", fun, argnums, has_aux, kwargs)


@boundary
def jacrev(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `fun`, in reverse mode; see `jacfwd`.

    Args:
      fun: a function of trees of dense and sparse arrays, which returns dense ones.
      argnums: which arguments to differentiate by, as in `xstack.jacrev`.
      has_aux: whether `fun` returns a pair, of which the second is passed on.
      **kwargs: of `xstack.jacrev`.
    """
    return _jacobian(xad.jacrev, "jacrev", fun, argnums, has_aux, kwargs)


jacobian = jacrev


def _jacobian(
    transform: Any, name: str, fun: Callable[..., Any], argnums: Argnums, has_aux: bool, kwargs: Any
) -> Callable[..., Any]:
    check_function(fun, name)

    @transforming(fun, name)
    def jacobian_of(*args: Any, **named: Any) -> Any:
        split = _Split(fun, argnums, args, has_aux)
        found = transform(split.of_data, argnums, has_aux=has_aux, **kwargs)(*split.args, **named)
        found, aux = found if has_aux else (found, None)
        parts = map(split.in_form_of_arguments, split.out_tree.flatten_up_to(found))
        out = xtree.unflatten(split.out_tree, list(parts))
        return (out, aux) if has_aux else out

    return jacobian_of


class _Split:
    """Arguments of a function, with the values of sparse ones in their place."""

    def __init__(self, fun: Any, argnums: Argnums, args: Any, has_aux: bool) -> None:
        self.fun, self.given, self.has_aux = fun, args, has_aux
        self.single = not isinstance(argnums, Sequence)
        numbers: Any = [argnums] if self.single else argnums
        self.numbers = [n % len(args) if -len(args) <= n < len(args) else n for n in numbers]
        self.args = [
            xtree.map(_values, x, is_leaf=_is_sparse) if i in self.numbers else x
            for i, x in enumerate(args)
        ]
        self.out_tree: Any = None

    def of_data(self, *args: Any, **named: Any) -> Any:
        """Call the function with sparse arrays made of their values."""
        whole = [
            _in_form_of(given, x) if i in self.numbers else given
            for i, (given, x) in enumerate(zip(self.given, args, strict=True))
        ]
        out = self.fun(*whole, **named)
        self.out_tree = xtree.structure(out[0] if self.has_aux else out)
        return out

    def in_form_of_arguments(self, found: Any) -> Any:
        """Return derivatives by values as sparse arrays."""
        each = (found,) if self.single else found
        made = [_in_form_of(self.given[i], x) for i, x in zip(self.numbers, each, strict=True)]
        return made[0] if self.single else tuple(made)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _values(x: Any) -> Any:
    return x.data if _is_sparse(x) else x


def _in_form_of(given: Any, values: Any) -> Any:
    return xtree.map(_with_values, given, values, is_leaf=_is_sparse)


def _with_values(given: Any, values: Any) -> Any:
    """Return a sparse array with other values, which may have more dimensions in front."""
    if not _is_sparse(given):
        return values
    more = values.ndim - given.data.ndim
    if more:
        given = given.to_bcoo()
    (_, *rest), tree = xtree.flatten(given)
    lead = values.shape[:more]
    return xtree.unflatten(tree, [values, *[xnp.broadcast_to(x, (*lead, *x.shape)) for x in rest]])


# ------------------------------------------------------------------------------------ random arrays


@boundary
def random_bcoo(
    key: ArrayLike,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = np.float32,
    indices_dtype: DTypeLike = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = xrandom.uniform,
    **kwds: Any,
) -> BCOO:
    """Return a sparse array of random numbers at random places.

    Args:
      key: a random key.
      shape: of the array.
      dtype: of the values; float32 by default.
      indices_dtype: of the indices; int32 by default.
      nse: how many values there are, for each element of the batch: as a number of the places if
        it is below 1.
      n_batch: the number of batch dimensions;
      n_dense: and of dense ones.
      unique_indices: whether places are drawn without repeats.
      sorted_indices: whether they ascend.
      generator: draws the values: `generator(key, shape=..., dtype=..., **kwds)`.
      **kwds: for the generator.

    Example:
      >>> random_bcoo(xrandom.key(0), (10, 10), nse=0.1)
      BCOO(float32[10, 10], nse=10)
    """
    shape = tuple([static_int(n, "random_bcoo: a length of shape") for n in shape])
    stop = len(shape) - n_dense
    require(
        0 <= n_batch <= stop <= len(shape), "random_bcoo",
        "n_batch={} and n_dense={} do not fit the shape {}.", n_batch, n_dense, shape,
    )  # fmt: skip
    batch, lengths = shape[:n_batch], shape[n_batch:stop]
    size = math.prod(lengths)
    count = math.ceil(nse * size) if 0 < nse < 1 else static_int(nse, "random_bcoo: nse")
    require(
        count >= 0 and (not unique_indices or count <= size), "random_bcoo",
        "there are {} places for nse={} values.", size, nse,
    )  # fmt: skip
    key_values, *keys = xrandom.split(key, 1 + math.prod(batch))
    rows = [xrandom.choice(k, size, (count,), replace=not unique_indices) for k in keys]
    numbers = xnp.stack(rows) if rows else xnp.zeros((0, count), np.int32)
    columns = xnp.unravel_index(numbers, lengths) if lengths else ()
    indices = xnp.stack(columns, -1) if columns else xnp.zeros((*numbers.shape, 0), np.int32)
    indices = indices.astype(indices_dtype or np.int32).reshape(*batch, count, len(lengths))
    data = generator(key_values, shape=(*batch, count, *shape[stop:]), dtype=dtype, **kwds)
    made = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return made.sort_indices() if sorted_indices else made
