"""Functions of arrays, given sparse ones: `sparsify`.

The function is staged for the shapes and dtypes of its arguments, and its program is run on them,
sparse where they are. An operation that has a sparse operand needs a row in the table below; every
other one is run as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import xnp.numpy as xn
import xtree
from xnp import lax
from xnp.primitives.control_flow import split_at
from xnp.sparse import layouts
from xnp.sparse.formats import JAXSparse, as_bcoo
from xnp.sparse.layouts import Coordinates, bcoo_reshape, bcoo_slice, joined, squeezed
from xprim import (
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    as_array,
    shaped_array,
    trace_to_closed,
)
from xprim.errors import message
from xprim.jaxpr import interpret
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.transformed import check_function, flat_arrays, transforming

__all__ = ()


@boundary
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function that takes sparse arrays where `f` takes arrays.

    Args:
      f: a function of pytrees of arrays. What it does to a sparse one is computed from the values
        that are stored: products, sums, transposes, reshapes, slices, concatenations, functions of
        elements that leave 0 alone, and branches and loops of these. Anything else is a TypeError.
      use_tracer: taken for programs written for JAX, where it chooses between two ways to do the
        same.

    Returns:
      The function; its results are sparse where they are made of sparse arrays alone.

    Raises:
      TypeError: for an operation that would fill the zeros.

    Example:
      >>> import xnp
      >>> from xnp.sparse import BCOO
      >>> m = BCOO.fromdense(xnp.array([[0.0, 2.0], [3.0, 0.0]]))
      >>> sparsify(lambda m, v: xnp.sin(2 * m).T @ v)(m, xnp.ones(2)).round(4).tolist()
      [-0.2793999910354614, -0.7567999958992004]
      >>> sparsify(xnp.tanh)(m)
      BCOO(float32[2, 2], nse=2)
    """
    check_function(f, "sparsify")

    @transforming(f, "sparsify")
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = xtree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, JAXSparse))
        leaves = list(map(as_bcoo, leaves))
        values = [x if _is_sparse(x) else as_array(x) for x in leaves]
        out_tree: Any = None

        def flat(*arrays: Any) -> list[Any]:
            nonlocal out_tree
            positional, named = xtree.unflatten(tree, arrays)
            results, out_tree = flat_arrays(f(*positional, **named), "sparsify")
            return results

        avals = [shaped_array(x.shape, x.dtype) if _is_sparse(x) else x.aval for x in values]
        results = _run(trace_to_closed(flat, avals), values)
        return xtree.unflatten(out_tree, results)

    return sparsified


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Coordinates)


def _run(program: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """Run a program on arrays and sparse arrays."""
    return interpret(program.jaxpr, program.consts, values, _apply)


def _apply(eqn: Equation, operands: Sequence[Any]) -> Any:
    """Return the results of an equation."""
    if not any(map(_is_sparse, operands)):
        return eqn.primitive.bind(*operands, **eqn.params)
    name = eqn.primitive.name
    if "inline" in eqn.primitive.rules:
        return _run(eqn.params["jaxpr"], operands)
    if name == "custom_jvp_call":
        return _run(eqn.params["call"], operands)
    if name == "checkpoint":
        return _bind_again(eqn, operands)
    if name in _KEEP_ZERO:
        return [_of_elements(eqn, *operands)]
    if name in _OF_PROGRAMS:
        return _OF_PROGRAMS[name](*operands, **eqn.params)
    if name in _RULES:
        return [_RULES[name](*operands, **eqn.params)]
    raise TypeError(message(
        "sparsify", f"{name} has no rule for sparse arrays.",
        got=", ".join(map(_describe, operands)),
        hint="give it the dense array, x.todense(), or apply sparsify to parts",
    ))  # fmt: skip


def _bind_again(eqn: Equation, operands: Sequence[Any]) -> Any:
    """Bind a call whose program is one of the components of the sparse arrays."""
    leaves, tree = xtree.flatten(list(operands))
    out_tree: Any = None

    def of_components(*arrays: Any) -> list[Any]:
        nonlocal out_tree
        results = _run(eqn.params["jaxpr"], xtree.unflatten(tree, arrays))
        flat, out_tree = flat_arrays(results, "sparsify")
        return flat

    program = trace_to_closed(of_components, [x.aval for x in leaves])
    outs = eqn.primitive.bind(*leaves, **{**eqn.params, "jaxpr": program})
    return xtree.unflatten(out_tree, outs)


def _describe(x: Any) -> str:
    return repr(x) if _is_sparse(x) else str(x.aval.str_short())


# functions of elements with f(0) = 0; those that are linear take values of equal indices apart
_LINEAR = frozenset(["neg", "convert_element_type", "real", "imag", "copy"])
_KEEP_ZERO = _LINEAR | frozenset([
    "abs", "sign", "sin", "sinh", "tan", "tanh", "asin", "asinh", "atan", "atanh", "sqrt", "cbrt",
    "expm1", "log1p", "integer_pow", "square", "floor", "ceil", "round", "erf", "conj",
])  # fmt: skip


def _of_elements(eqn: Equation, x: Any) -> Any:
    """Return a function of elements, applied to the values."""
    if eqn.params.get("y", 1) <= 0:
        raise TypeError(message(
            "sparsify", f"the power {eqn.params['y']} of the zeros is not 0.", got=f"{x!r}",
        ))  # fmt: skip
    if eqn.primitive.name not in _LINEAR:
        x = layouts.with_unique_indices(x)
    (data,) = eqn.primitive.bind(x.data, **eqn.params)
    return layouts.with_data(x, data)


def _mul(x: Any, y: Any, **_: Any) -> Any:
    if _is_sparse(x) and _is_sparse(y):
        return layouts.bcoo_multiply_sparse(x, y)
    return layouts.with_data(x, layouts.bcoo_multiply_dense(x, y)) if _is_sparse(x) else _mul(y, x)


def _div(x: Any, y: Any) -> Any:
    require(
        not _is_sparse(y), "sparsify", "div by a sparse array divides by its zeros.", got=y,
        error=TypeError,
    )  # fmt: skip
    return _mul(x, 1 / y)


def _add(x: Any, y: Any) -> Any:
    if _is_sparse(x) and _is_sparse(y):
        return joined(x, y)
    x, y = (v.todense() if _is_sparse(v) else v for v in (x, y))
    return x + y


def _sub(x: Any, y: Any) -> Any:
    return _add(x, layouts.with_data(y, -y.data) if _is_sparse(y) else -y)


def _reduce_sum(x: Any, *, axes: Any, **_: Any) -> Any:
    total = layouts.bcoo_reduce_sum(x, axes=axes)
    return total if total.n_sparse else total.todense()


def _reshape(x: Any, *, new_sizes: Any, dimensions: Any = None, **_: Any) -> Any:
    return bcoo_reshape(x, new_sizes=new_sizes, dimensions=dimensions)


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, precision: Any = None,
                 preferred_element_type: Any = None, **_: Any) -> Any:  # fmt: skip
    return layouts.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    return bcoo_slice(x, start_indices=start_indices, limit_indices=limit_indices, strides=strides)


def _concatenate(*operands: Any, dimension: int) -> Any:
    if all(map(_is_sparse, operands)):
        return layouts.bcoo_concatenate(operands, dimension=dimension)
    return xn.concatenate([x.todense() if _is_sparse(x) else x for x in operands], dimension)


def _pow(x: Any, y: Any) -> Any:
    require(
        _is_sparse(x) and isinstance(y, ConcreteArray) and y.ndim == 0, "sparsify",
        "pow of a sparse array needs a number as exponent, known while it is staged.", got=(x, y),
        error=TypeError,
    )  # fmt: skip
    return x ** y.item()


# Control flow: what is carried and chosen are trees of which a sparse array is a part.


def _cond(index: Any, *operands: Any, branches: Any, batching: Any = None, **_: Any) -> Any:
    functions = [functools.partial(_run, branch) for branch in branches]
    return lax.switch(index, functions, operands, batching=batching)


def _while(*operands: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
           body_nconsts: int, **_: Any) -> Any:  # fmt: skip
    of_test, of_body, carry = split_at(operands, cond_nconsts, body_nconsts)
    return lax.while_loop(
        lambda carry: _run(cond_jaxpr, (*of_test, *carry))[0],
        lambda carry: _run(body_jaxpr, (*of_body, *carry)), carry,
    )  # fmt: skip


def _scan(*operands: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int,
          reverse: bool, unroll: Any, num_stops: int = 0) -> Any:  # fmt: skip
    stops, consts, first, xs = split_at(operands, num_stops, num_consts, num_carry)

    def step(carry: Any, x: Any) -> Any:
        return split_at(_run(jaxpr, (*consts, *carry, *x)), num_carry)

    carry, ys = lax.scan(
        step, first, xs, length, reverse, unroll, lengths=stops[0] if stops else None,
    )  # fmt: skip
    return [*carry, *ys]


def _squeeze(x: Any, *, dimensions: Any) -> Any:
    return squeezed(x, [d % x.ndim for d in dimensions])


_RULES: dict[str, Callable[..., Any]] = {
    "mul": _mul, "div": _div, "add": _add, "sub": _sub, "dot_general": _dot_general,
    "reduce_sum": _reduce_sum, "reshape": _reshape, "slice": _slice, "squeeze": _squeeze,
    "concatenate": _concatenate, "transpose": layouts.bcoo_transpose, "rev": layouts.bcoo_rev,
    "pow": _pow,
}  # fmt: skip
_OF_PROGRAMS: dict[str, Callable[..., Any]] = {"cond": _cond, "while": _while, "scan": _scan}
