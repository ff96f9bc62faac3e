"""The operations of random programs that move elements, add them up, or read them by index.

Neighbours: `program_operations` has the elementwise ones and the helpers that draw operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.composition.program_data import Operation, UnfitError, Value, register, rounded
from tests.composition.program_operations import MAX_SIZE, Env, choose, of_kind
from xnp import lax

Draw = Any


def moving(
    name: str,
    draw_params: Callable[[Draw, Value], tuple[Any, ...]],
    shape: Callable[..., Sequence[int]],
    fun: Callable[..., Any],
    *,
    least_ndim: int = 0,
    adds_zero: bool = False,
) -> None:
    """Register an operation on one value of any kind that only moves elements."""

    def draw_operands(draw: Draw, env: Env) -> Any:
        number = choose(draw, env, lambda v: len(v.shape) >= least_ndim and v.size > 0)
        return (number,), draw_params(draw, env[number])

    def bound(_env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
        (x,) = operands
        result = x.of_shape(shape(x.shape, *params))
        if result.size > MAX_SIZE:
            raise UnfitError
        return [result.with_zero() if adds_zero and x.kind == "f" else result]

    register(Operation(name, draw_operands, bound, lambda run, xs, params: [fun(xs[0], *params)]))


def _factors(size: int) -> list[tuple[int, ...]]:
    pairs = [(a, size // a) for a in range(1, size + 1) if size % a == 0]
    return [(size,), *pairs, *[(a, 1, b) for a, b in pairs]]


def _axis(draw: Draw, x: Value) -> int:
    return draw(st.integers(0, len(x.shape) - 1))


def _interval(draw: Draw, n: int) -> tuple[int, int, int]:
    start = draw(st.integers(0, n - 1))
    return start, draw(st.integers(start + 1, n)), draw(st.integers(1, 2))


def _sliced(shape: Sequence[int], axis: int, start: int, stop: int, stride: int) -> list[int]:
    return [*shape[:axis], len(range(start, stop, stride)), *shape[axis + 1 :]]


def _draw_slice(draw: Draw, x: Value) -> tuple[int, ...]:
    axis = _axis(draw, x)
    return (axis, *_interval(draw, x.shape[axis]))


def _slice(x: Any, axis: int, start: int, stop: int, stride: int) -> Any:
    return lax.slice_in_dim(x, start, stop, stride, axis)


def _draw_pad(draw: Draw, x: Value) -> tuple[int, ...]:
    low, high = draw(st.integers(-1, 2)), draw(st.integers(-1, 2))
    return _axis(draw, x), low, high, draw(st.integers(0, 1))


def _padded(shape: Sequence[int], axis: int, low: int, high: int, interior: int) -> list[int]:
    n = shape[axis] + (shape[axis] - 1) * interior + low + high
    if n < 1:
        raise UnfitError
    return [*shape[:axis], n, *shape[axis + 1 :]]


def _pad(x: Any, axis: int, low: int, high: int, interior: int) -> Any:
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (low, high, interior)
    zero = lax.convert_element_type(0, x.dtype)
    return lax.pad(x, zero, config)


def _draw_broadcast(draw: Draw, x: Value) -> tuple[int, int]:
    return draw(st.integers(0, len(x.shape))), draw(st.integers(1, 3))


def _broadcast(x: Any, position: int, n: int) -> Any:
    shape = [*x.shape[:position], n, *x.shape[position:]]
    return lax.broadcast_in_dim(x, shape, [i for i in range(x.ndim + 1) if i != position])


moving("reshape", lambda draw, x: (draw(st.sampled_from(_factors(x.size))),),
       lambda shape, new: new, lax.reshape)  # fmt: skip
moving("to_scalar", lambda draw, x: (), lambda shape: () if math.prod(shape) == 1 else shape,
       lambda x: lax.reshape(x, ()) if x.size == 1 else x)  # fmt: skip
moving("transpose", lambda draw, x: (tuple(draw(st.permutations(range(len(x.shape))))),),
       lambda shape, p: [shape[i] for i in p], lax.transpose, least_ndim=1)  # fmt: skip
moving("broadcast_in_dim", _draw_broadcast, lambda s, p, n: [*s[:p], n, *s[p:]], _broadcast)
moving("slice", _draw_slice, _sliced, _slice, least_ndim=1)
moving("pad", _draw_pad, _padded, _pad, least_ndim=1, adds_zero=True)
moving("rev", lambda draw, x: (_axis(draw, x),), lambda shape, axis: shape,
       lambda x, axis: lax.rev(x, (axis,)), least_ndim=1)  # fmt: skip
moving("index_in_dim", lambda draw, x: (_axis(draw, x),),
       lambda shape, axis: [*shape[:axis], *shape[axis + 1 :]],
       lambda x, axis: lax.index_in_dim(x, -1, axis, keepdims=False), least_ndim=1)  # fmt: skip


def _draw_concatenate(draw: Draw, env: Env) -> Any:
    first = choose(draw, env, lambda v: len(v.shape) >= 1)
    x = env[first]
    axis = draw(st.integers(0, len(x.shape) - 1))

    def fits(v: Value) -> bool:
        same = [a == b or i == axis for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=False))]
        return v.kind == x.kind and len(v.shape) == len(x.shape) and all(same)

    return (first, choose(draw, env, fits)), (axis,)


def _concatenated(_env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    x, y = operands
    shape = list(x.shape)
    shape[params[0]] += y.shape[params[0]]
    result = x.union(y).of_shape(shape)
    if result.size > MAX_SIZE:
        raise UnfitError
    return [result]


register(
    Operation(
        "concatenate", _draw_concatenate, _concatenated,
        lambda run, xs, params: [lax.concatenate(xs, *params)],
    )
)  # fmt: skip


# --------------------------------------------------------------------- reductions, scans, products


def along(
    name: str,
    kind: str,
    fun: Callable[..., Any],
    result: Callable[[Value, int], Value],
    *,
    keeps: bool,
    kinked: bool = False,
    needs_exact: bool = False,
) -> None:
    """Register an operation along one axis, which it keeps or sums away."""

    def draw_operands(draw: Draw, env: Env) -> Any:
        number = choose(
            draw, env,
            lambda v: v.kind == kind and bool(v.shape) and (v.exact or not needs_exact),
        )  # fmt: skip
        return (number,), (_axis(draw, env[number]),)

    def bound(_env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
        (x,), (axis,) = operands, params
        shape = x.shape if keeps else [*x.shape[:axis], *x.shape[axis + 1 :]]
        return [result(x, x.shape[axis]).of_shape(shape)]

    register(
        Operation(name, draw_operands, bound, lambda run, xs, params: [fun(*xs, *params)],
                  kinked=kinked)
    )  # fmt: skip


def _summed(x: Value, n: int) -> Value:
    return rounded(x.shape, n * min(x.lo, 0), n * max(x.hi, 0), n * x.error, terms=n)


def _multiplied(x: Value, n: int) -> Value:
    most = max(x.magnitude, 1.0) ** n
    return rounded(x.shape, -most, most, n * most * x.error, terms=n)


def _same(x: Value, n: int) -> Value:
    return x


def _axes(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis: fun(x, (axis,))


along("reduce_sum", "f", _axes(lax.reduce_sum), _summed, keeps=False)
along("reduce_prod", "f", _axes(lax.reduce_prod), _multiplied, keeps=False)
along("reduce_max", "f", _axes(lax.reduce_max), _same, keeps=False, kinked=True)
along("reduce_min", "f", _axes(lax.reduce_min), _same, keeps=False, kinked=True)
along("cumsum", "f", lax.cumsum, _summed, keeps=True)
along("cumprod", "f", lax.cumprod, _multiplied, keeps=True)
along("cummax", "f", lax.cummax, _same, keeps=True, kinked=True)
along("sort", "f", lax.sort, _same, keeps=True, kinked=True)
along("argmax", "f", lambda x, axis: lax.argmax(x, axis, np.int32),
      lambda x, n: Value("i", x.shape), keeps=False, kinked=True, needs_exact=True)  # fmt: skip
along("int_argmin", "i", lambda x, axis: lax.argmin(x, axis, np.int32), _same, keeps=False)
for _name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_xor"):
    along(f"int_{_name}", "i", _axes(getattr(lax, _name)), _same, keeps=False)
along("int_cumsum", "i", lambda x, axis: lax.cumsum(x, axis, reverse=True), _same, keeps=True)
along("int_sort", "i", lax.sort, _same, keeps=True)
along("reduce_and", "b", _axes(lax.reduce_and), _same, keeps=False)
along("reduce_or", "b", _axes(lax.reduce_or), _same, keeps=False)


def _draw_dot(draw: Draw, env: Env) -> Any:
    kind = draw(st.sampled_from("fi"))
    first = choose(draw, env, lambda v: v.kind == kind and bool(v.shape))
    i = draw(st.integers(0, len(env[first].shape) - 1))
    n = env[first].shape[i]
    second = choose(draw, env, lambda v: v.kind == kind and n in v.shape)
    return (first, second), (i, env[second].shape.index(n), draw(st.booleans()))


def _dot_numbers(params: Any) -> Any:
    i, j, batch = params
    return (((), ()), ((i,), (j,))) if batch else (((i,), (j,)), ((), ()))


def _dotted(_env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    (x, y), (i, j, batch) = operands, params
    rest = [*x.shape[:i], *x.shape[i + 1 :], *y.shape[:j], *y.shape[j + 1 :]]
    n = 1 if batch else x.shape[i]
    shape = [x.shape[i], *rest] if batch else rest
    if len(shape) > 3 or math.prod(shape) > MAX_SIZE:
        raise UnfitError
    if x.kind != "f":
        return [x.of_shape(shape)]
    most = x.magnitude * y.magnitude * n
    error = n * (x.magnitude * y.error + y.magnitude * x.error)
    return [rounded(shape, -most, most, error, terms=n)]


register(
    Operation(
        "dot_general", _draw_dot, _dotted,
        lambda run, xs, params: [lax.dot_general(*xs, _dot_numbers(params))],
    )
)  # fmt: skip


# ------------------------------------------------------------------------------ positions as values


def scalar_index(x: Any) -> Any:
    """Return an integer scalar made of all elements of an integer value."""
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def _any_array(v: Value) -> bool:
    return bool(v.shape) and v.size > 0


def _indices(v: Value) -> bool:
    return v.kind == "i" and len(v.shape) == 1


def _draw_dynamic(draw: Draw, env: Env) -> Any:
    first = choose(draw, env, _any_array)
    axis = draw(st.integers(0, len(env[first].shape) - 1))
    size = draw(st.integers(1, env[first].shape[axis]))
    return (first, choose(draw, env, of_kind("i"))), (axis, size)


def _windowed(_env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    x, (axis, size) = operands[0], params
    return [x.of_shape([*x.shape[:axis], size, *x.shape[axis + 1 :]])]


def _dynamic_slice(run: Any, xs: Sequence[Any], params: Any) -> list[Any]:
    axis, size = params
    return [lax.dynamic_slice_in_dim(xs[0], scalar_index(xs[1]), size, axis)]


def _dynamic_update(run: Any, xs: Sequence[Any], params: Any) -> list[Any]:
    axis, size = params
    update = lax.rev(lax.slice_in_dim(xs[0], 0, size, 1, axis), (axis,))
    return [lax.dynamic_update_slice_in_dim(xs[0], update, scalar_index(xs[1]), axis)]


register(Operation("dynamic_slice", _draw_dynamic, _windowed, _dynamic_slice))
register(
    Operation(
        "dynamic_update_slice", _draw_dynamic, lambda env, xs, params: [xs[0]], _dynamic_update
    )
)


def _draw_indexed(draw: Draw, env: Env) -> Any:
    mode = draw(st.sampled_from(["clip", "fill"]))
    return (choose(draw, env, _any_array), choose(draw, env, _indices)), (mode,)


def _take(x: Any, indices: Any, mode: str) -> Any:
    numbers = lax.GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    rows = lax.reshape(indices, (*indices.shape, 1))
    fill = 0 if mode == "fill" else None
    return lax.gather(x, rows, numbers, (1, *x.shape[1:]), mode=mode, fill_value=fill)


def _taken(_env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    x, indices = operands
    result = x.of_shape([*indices.shape, *x.shape[1:]])
    if result.size > MAX_SIZE:
        raise UnfitError
    return [result.with_zero() if x.kind == "f" else result]


register(
    Operation(
        "gather", _draw_indexed, _taken, lambda run, xs, params: [_take(*xs, *params)]
    )
)  # fmt: skip


def _scatter(fun: Callable[..., Any]) -> Callable[..., Any]:
    def apply(run: Any, xs: Sequence[Any], params: Any) -> list[Any]:
        x, indices = xs
        numbers = lax.ScatterDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
        updates = lax.sort(_take(x, lax.neg(indices), "clip"), 0)
        rows = lax.reshape(indices, (*indices.shape, 1))
        return [fun(x, rows, updates, numbers, mode=params[0])]

    return apply


def _scattered(_env: Env, operands: Sequence[Value], _params: Any) -> list[Value]:
    x, indices = operands
    if x.kind != "f":
        return [x]
    return [_summed(x, indices.size + 1).of_shape(x.shape)]


def _draw_scattered(draw: Draw, env: Env) -> Any:
    mode = draw(st.sampled_from(["clip", "fill"]))
    first = choose(draw, env, lambda v: _any_array(v) and v.kind != "b")
    return (first, choose(draw, env, _indices)), (mode,)


register(
    Operation("scatter_add", _draw_scattered, _scattered, _scatter(lax.scatter_add), kinked=True)
)
for _name in ("scatter_max", "scatter_min"):
    register(
        Operation(_name, _draw_scattered, lambda env, xs, params: [xs[0]],
                  _scatter(getattr(lax, _name)), kinked=True)
    )  # fmt: skip


def _set_rows(run: Any, xs: Sequence[Any], params: Any) -> list[Any]:
    """Replace rows at distinct positions by the rows in their order backwards."""
    (x,) = xs
    rows = np.arange(x.shape[0], dtype=np.int32)[:: params[0]].reshape(-1, 1)
    numbers = lax.ScatterDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    updates = lax.slice_in_dim(lax.rev(x, (0,)), 0, len(rows), 1, 0)
    return [lax.scatter(x, rows, updates, numbers, unique_indices=True)]


register(
    Operation(
        "scatter",
        lambda draw, env: ((choose(draw, env, _any_array),), (draw(st.integers(1, 2)),)),
        lambda env, xs, params: [xs[0]],
        _set_rows,
    )
)
