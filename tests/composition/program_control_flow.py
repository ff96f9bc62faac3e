"""The operations of random programs that hold programs: calls, branches, loops, custom rules.

The programs inside see the values of the program around them, as Python closures do; so what is
captured becomes constants of jitted functions, branches and loop bodies. Importing this registers
the operations. Neighbour: `program_strategy` draws the inner programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.composition.program_data import (
    EPS,
    ULPS,
    Operation,
    Program,
    Step,
    UnfitError,
    Value,
    abstract,
    register,
)
from tests.composition.program_operations import MAX_SIZE, Env, choose, of_kind
from tests.composition.program_shapes import scalar_index
from xad import checkpoint, custom_jvp, custom_vjp
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import Array

# Set by `program_strategy`: draws a program inside another, (draw, env, wanted) -> Program.
DrawInner = Callable[[Any, Env, Sequence[Callable[[Value], bool] | None]], Program]
inner_program: list[DrawInner] = []


def _draw_inner(draw: Any, env: Env, *wanted: Callable[[Value], bool] | None) -> Program:
    return inner_program[0](draw, env, wanted)


def _like(x: Value) -> Callable[[Value], bool]:
    return lambda v: v.kind == x.kind and v.shape == x.shape


def _any(v: Value) -> bool:
    return v.size > 0


# ------------------------------------------------------------------------------------------- calls


def _call(name: str, transformed: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    def draw_call(draw: Any, env: Env) -> Any:
        number = choose(draw, env, _any)
        return (number,), (_draw_inner(draw, [*env, env[number]], None),)

    def apply(run: Any, xs: Sequence[Array], params: Any) -> Any:
        return transformed(lambda *args: run.inner(params[0], *args))(*xs)

    register(
        Operation(name, draw_call, lambda env, xs, params: abstract(params[0], [*env, *xs]), apply)
    )


_call("jit", jit)
_call("checkpoint", checkpoint)


def _draw_vmap(draw: Any, env: Env) -> Any:
    number = choose(draw, env, lambda v: len(v.shape) >= 1 and v.size > 0)
    element = env[number].of_shape(env[number].shape[1:])
    return (number,), (_draw_inner(draw, [*env, element], None),)


def _vmapped(env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    (x,) = operands
    (out,) = abstract(params[0], [*env, x.of_shape(x.shape[1:])])
    return [_stacked(out, x.shape[0])]


def _stacked(x: Value, n: int) -> Value:
    result = x.of_shape((n, *x.shape))
    if result.size > MAX_SIZE or len(result.shape) > 4:
        raise UnfitError
    return result


def _vmap(run: Any, xs: Sequence[Array], params: Any) -> Any:
    return vmap(lambda *args: run.inner(params[0], *args))(*xs)


register(Operation("vmap", _draw_vmap, _vmapped, _vmap))


# ---------------------------------------------------------------------------------------- branches


def _predicate(x: Array) -> Array:
    if x.dtype == np.bool_:
        return lax.reduce_or(x, tuple(range(x.ndim)))
    return lax.gt(scalar_index(x), 0)


def _draw_branches(count: int, kinds: str) -> Callable[[Any, Env], Any]:
    def draw_branches(draw: Any, env: Env) -> Any:
        chooser = choose(draw, env, lambda v: v.kind in kinds and v.size > 0)
        number = choose(draw, env, _any)
        inner = [*env, env[number]]
        fits = _like(env[number])
        return (chooser, number), tuple(_draw_inner(draw, inner, fits) for _ in range(count))

    return draw_branches


def _either(env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    results = [abstract(branch, [*env, operands[1]])[0] for branch in params]
    for other in results[1:]:
        results[0] = results[0].union(other)
    return results[:1]


def _cond(run: Any, xs: Sequence[Array], params: Any) -> Any:
    chooser, x = xs
    functions = [lambda v, p=p: run.inner(p, v) for p in params]
    return lax.cond(_predicate(chooser), *functions, x)


def _switch(run: Any, xs: Sequence[Array], params: Any) -> Any:
    chooser, x = xs
    functions = [lambda v, p=p: run.inner(p, v) for p in params]
    return lax.switch(scalar_index(chooser), functions, x)  # which brings the index inside


register(Operation("cond", _draw_branches(2, "bi"), _either, _cond))
register(Operation("switch", _draw_branches(3, "i"), _either, _switch))


# ------------------------------------------------------------------------------------------- loops


def _invariant(carry: Value) -> Value:
    """Return what holds of a carry before and after each iteration, errors aside."""
    if carry.kind != "f":
        return carry
    unit = Value("f", carry.shape, -1.0, 1.0, ULPS * EPS)
    return carry.union(unit)


def _closing(program: Program, env_size: int) -> Program:
    """Let the first result be a tanh of itself, which keeps a carry small."""
    step = Step("tanh", (program.results[0],))
    number = env_size + _results_of(program)
    return Program((*program.steps, step), (number, *program.results[1:]))


def _results_of(program: Program) -> int:
    return sum(2 if step.op == "scan" else 1 for step in program.steps)


def _draw_scan(draw: Any, env: Env) -> Any:
    init = choose(draw, env, lambda v: 0 < v.size <= 8)
    xs = choose(draw, env, lambda v: len(v.shape) >= 1 and 0 < v.shape[0] <= 4 and v.size > 0)
    element = env[xs].of_shape(env[xs].shape[1:])
    inner = [*env, _invariant(env[init]), element]
    body = _draw_inner(draw, inner, _like(env[init]), None)
    if env[init].kind == "f":
        body = _closing(body, len(inner))
    return (init, xs), (body, draw(st.booleans()))


def _scanned(env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    carry, xs = operands
    element = xs.of_shape(xs.shape[1:])
    ys: Value | None = None
    for _ in range(xs.shape[0]):
        held = replace(_invariant(carry), error=max(carry.error, _invariant(carry).error))
        after, y = abstract(params[0], [*env, held, element])
        carry = replace(_invariant(after), error=after.error)
        ys = y if ys is None else ys.union(y)
    assert ys is not None
    return [operands[0].union(carry), _stacked(ys, xs.shape[0])]


def _scan(run: Any, operands: Sequence[Array], params: Any) -> Any:
    init, xs = operands
    body, reverse = params
    return lax.scan(lambda c, x: run.inner(body, c, x), init, xs, reverse=reverse)


register(Operation("scan", _draw_scan, _scanned, _scan))

_TRIPS = 3


def _draw_fori(draw: Any, env: Env) -> Any:
    init = choose(draw, env, lambda v: 0 < v.size <= 8)
    inner = [*env, Value("i", ()), _invariant(env[init])]
    body = _draw_inner(draw, inner, _like(env[init]))
    if env[init].kind == "f":
        body = _closing(body, len(inner))
    return (init,), (body,)


def _looped(env: Env, operands: Sequence[Value], params: Any) -> list[Value]:
    (carry,) = operands
    for _ in range(_TRIPS):
        (after,) = abstract(params[0], [*env, Value("i", ()), _invariant(carry)])
        carry = replace(_invariant(after), error=after.error)
    return [operands[0].union(carry)]


def _fori_loop(run: Any, operands: Sequence[Array], params: Any) -> Any:
    (body,) = params
    return [lax.fori_loop(0, _TRIPS, lambda i, c: run.inner(body, i, c)[0], operands[0])]


register(Operation("fori_loop", _draw_fori, _looped, _fori_loop))


def _while_loop(run: Any, operands: Sequence[Array], params: Any) -> Any:
    """Multiply and add as often as the data says."""
    x, trips = operands
    count = lax.rem(lax.abs(scalar_index(trips)), 4)
    three = lax.full(x.shape, 3, x.dtype)
    state = (np.int32(0), x)
    return lax.while_loop(
        lambda s: lax.lt(s[0], count),
        lambda s: (lax.add(s[0], 1), lax.add(lax.mul(s[1], three), 1 if x.ndim == 0 else three)),
        state,
    )[1:]


register(
    Operation(
        "while_loop",
        lambda draw, env: (
            (choose(draw, env, of_kind("i")), choose(draw, env, of_kind("i"))),
            (),
        ),
        lambda env, xs, params: [Value("i", xs[0].shape)],
        _while_loop,
    )
)


# ------------------------------------------------------------------------------------ custom rules


@custom_jvp
def _sine(x: Any) -> Any:
    return lax.sin(x)


@_sine.defjvp
def _sine_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return _sine(x), lax.mul(lax.cos(x), x_dot)


@custom_vjp
def _arctangent(x: Any) -> Any:
    return lax.atan(x)


def _arctangent_fwd(x: Any) -> Any:
    return _arctangent(x), x


def _arctangent_bwd(x: Any, y_bar: Any) -> Any:
    return (lax.div(y_bar, lax.add(lax.square(x), 1.0)),)


_arctangent.defvjp(_arctangent_fwd, _arctangent_bwd)


def _custom(name: str, fun: Callable[..., Any], bound: float) -> None:
    register(
        Operation(
            name,
            lambda draw, env: ((choose(draw, env, of_kind("f")),), ()),
            lambda env, xs, params: [
                Value("f", xs[0].shape, -bound, bound, xs[0].error + ULPS * EPS)
            ],
            lambda run, xs, params: [fun(*xs)],
        )
    )


_custom("custom_jvp", _sine, 1.0)
_custom("custom_vjp", _arctangent, 1.6)
