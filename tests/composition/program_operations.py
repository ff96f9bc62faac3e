"""The operations of random programs that hold no program: elementwise, shapes, sums, indices.

Each says how operands and params are drawn, what is known about its result, and how it is applied.
Importing this registers them. Neighbour: `program_control_flow` has the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.composition.program_data import Operation, UnfitError, Value, register, rounded
from xnp import lax

Env = list[Value]
Test = Callable[[Value], bool]

MAX_SIZE = 24


def choose(draw: Any, env: Env, test: Test) -> int:
    """Draw the number of a value that passes a test; the latest ones are the simplest choice."""
    fitting = [i for i in range(len(env) - 1, -1, -1) if test(env[i])]
    if not fitting:
        raise UnfitError
    return fitting[draw(st.integers(0, len(fitting) - 1))]


def of_kind(kind: str) -> Test:
    """Return the test for a kind."""
    return lambda v: v.kind == kind


# ------------------------------------------------------------------------------------- elementwise


def unary(
    name: str,
    fun: Callable[..., Any],
    image: Callable[[float, float], tuple[float, float]],
    slope: Callable[[float, float], float],
    domain: Callable[[float, float], bool] = lambda lo, hi: True,
) -> None:
    """Register a smooth function of one float."""

    def bound(_env: Env, operands: Sequence[Value], _params: Any) -> list[Value]:
        (x,) = operands
        if not domain(x.lo, x.hi):
            raise UnfitError
        lo, hi = image(x.lo, x.hi)
        return [rounded(x.shape, lo, hi, slope(x.lo, x.hi) * x.error)]

    def draw_operands(draw: Any, env: Env) -> Any:
        return (choose(draw, env, lambda v: v.kind == "f" and domain(v.lo, v.hi)),), ()

    register(Operation(name, draw_operands, bound, lambda run, xs, params: [fun(*xs)]))


def simple(
    name: str,
    tests: Sequence[Test],
    fun: Callable[..., Any],
    result: Callable[..., Value],
    *,
    kinked: bool = False,
) -> None:
    """Register an operation on operands of the same shape that needs no params."""

    def draw_operands(draw: Any, env: Env) -> Any:
        first = choose(draw, env, tests[0])
        shape = env[first].shape
        rest = [
            choose(draw, env, lambda v, t=test: v.shape == shape and t(v)) for test in tests[1:]
        ]
        return (first, *rest), ()

    def bound(_env: Env, operands: Sequence[Value], _params: Any) -> list[Value]:
        return [result(*operands)]

    register(
        Operation(name, draw_operands, bound, lambda run, xs, params: [fun(*xs)], kinked=kinked)
    )


def _whole(x: Value, *_: Value) -> Value:
    return Value(x.kind, x.shape)


def _odd(x: Any) -> Any:
    return lax.bitwise_or(x, lax.full(x.shape, 1, x.dtype))


def _truth(x: Value, *_: Value) -> Value:
    return Value("b", x.shape)


def _product(a: Value, b: Value) -> tuple[float, float]:
    corners = [p * q for p, q in itertools.product((a.lo, a.hi), (b.lo, b.hi))]
    return min(corners), max(corners)


def _mul(x: Value, y: Value) -> Value:
    error = x.magnitude * y.error + y.magnitude * x.error
    return rounded(x.shape, *_product(x, y), error)


def _div(x: Value, y: Value) -> Value:
    least = min(abs(y.lo), abs(y.hi))
    if y.lo * y.hi <= 0 or least < 0.1:
        raise UnfitError
    corners = [p / q for p, q in itertools.product((x.lo, x.hi), (y.lo, y.hi))]
    error = x.error / least + x.magnitude * y.error / least**2
    return rounded(x.shape, min(corners), max(corners), error)


def _pow(x: Value, y: Value) -> Value:
    if x.lo < 0.2 or y.magnitude > 4 or x.hi > 5:
        raise UnfitError
    corners = [p**q for p, q in itertools.product((x.lo, x.hi), (y.lo, y.hi))]
    slope = max(corners) * (y.magnitude / x.lo + abs(math.log(x.lo)) + abs(math.log(x.hi)))
    return rounded(x.shape, min(corners), max(corners), slope * max(x.error, y.error))


def _larger_error(x: Value, *others: Value) -> Value:
    for other in others:
        x = x.union(other)
    return x


def _abs(x: Value) -> Value:
    return Value("f", x.shape, 0.0, x.magnitude, x.error)


def _unit(lo: float, hi: float) -> tuple[float, float]:
    return -1.0, 1.0


def _increasing(fun: Callable[[float], float]) -> Callable[[float, float], tuple[float, float]]:
    return lambda lo, hi: (fun(lo), fun(hi))


def _one(lo: float, hi: float) -> float:
    return 1.0


def _small(lo: float, hi: float) -> bool:
    return max(abs(lo), abs(hi)) <= 4


def _positive(lo: float, hi: float) -> bool:
    return lo >= 0.1


def _largest(lo: float, hi: float) -> float:
    return max(abs(lo), abs(hi))


unary("sin", lax.sin, _unit, _one)
unary("cos", lax.cos, _unit, _one)
unary("tanh", lax.tanh, _unit, _one)
unary("atan", lax.atan, _increasing(math.atan), _one)
unary("asinh", lax.asinh, _increasing(math.asinh), _one)
unary("erf", lax.erf, _unit, lambda lo, hi: 1.2)
unary("logistic", lax.logistic, lambda lo, hi: (0.0, 1.0), _one)
unary("exp", lax.exp, _increasing(math.exp), lambda lo, hi: math.exp(hi), _small)
unary("expm1", lax.expm1, _increasing(math.expm1), lambda lo, hi: math.exp(hi), _small)
unary("sinh", lax.sinh, _increasing(math.sinh), lambda lo, hi: 28.0, _small)
unary("log", lax.log, _increasing(math.log), lambda lo, hi: 1 / lo, _positive)
unary("log1p", lax.log1p, _increasing(math.log1p), lambda lo, hi: 2.0, lambda lo, hi: lo >= -0.5)
unary("sqrt", lax.sqrt, _increasing(math.sqrt), lambda lo, hi: 1 / lo, _positive)
unary("rsqrt", lax.rsqrt, lambda lo, hi: (hi**-0.5, lo**-0.5), lambda lo, hi: lo**-1.5, _positive)
unary("cbrt", lax.cbrt, _increasing(lambda v: v ** (1 / 3)), lambda lo, hi: 1 / lo, _positive)
unary("square", lax.square, lambda lo, hi: (0, _largest(lo, hi) ** 2),
      lambda lo, hi: 2 * _largest(lo, hi))  # fmt: skip
unary("cube", lambda x: lax.integer_pow(x, 3), _increasing(lambda v: v**3),
      lambda lo, hi: 3 * _largest(lo, hi) ** 2)  # fmt: skip
unary("reciprocal", lambda x: lax.integer_pow(x, -1), lambda lo, hi: (1 / hi, 1 / lo),
      lambda lo, hi: lo**-2, _positive)  # fmt: skip
unary("add_half", lambda x: lax.add(x, 0.5), lambda lo, hi: (lo + 0.5, hi + 0.5), _one)
unary("times_three", lambda x: lax.mul(3.0, x), lambda lo, hi: (3 * lo, 3 * hi), lambda lo, hi: 3)
unary("stop_gradient", lambda x: x, lambda lo, hi: (lo, hi), _one)

simple("neg", [of_kind("f")], lax.neg, lambda x: Value("f", x.shape, -x.hi, -x.lo, x.error))
simple("abs", [of_kind("f")], lax.abs, _abs, kinked=True)
for _name in ("floor", "ceil", "round"):
    simple(_name, [lambda v: v.kind == "f" and v.exact], getattr(lax, _name),
           lambda x: Value("f", x.shape, x.lo - 1, x.hi + 1), kinked=True)  # fmt: skip
simple("sign", [lambda v: v.kind == "f" and v.exact], lax.sign,
       lambda x: Value("f", x.shape, -1, 1), kinked=True)  # fmt: skip

_floats = [of_kind("f"), of_kind("f")]
simple("add", _floats, lax.add,
       lambda x, y: rounded(x.shape, x.lo + y.lo, x.hi + y.hi, x.error + y.error))  # fmt: skip
simple("sub", _floats, lax.sub,
       lambda x, y: rounded(x.shape, x.lo - y.hi, x.hi - y.lo, x.error + y.error))  # fmt: skip
simple("mul", _floats, lax.mul, _mul)
simple("div", _floats, lax.div, _div)
simple("pow", _floats, lax.pow, _pow)
simple("max", _floats, lax.max, _larger_error, kinked=True)
simple("min", _floats, lax.min, _larger_error, kinked=True)
simple("clamp", [of_kind("f")], lambda x: lax.clamp(-0.75, x, 1.25),
       lambda x: Value("f", x.shape, -0.75, 1.25, x.error), kinked=True)  # fmt: skip
simple("select_n", [of_kind("b"), of_kind("f"), of_kind("f")], lax.select_n,
       lambda p, x, y: x.union(y))  # fmt: skip

_ints = [of_kind("i"), of_kind("i")]
for _name in ("add", "sub", "mul", "max", "min", "bitwise_and", "bitwise_or",
              "bitwise_xor", "shift_left", "shift_right_logical",
              "shift_right_arithmetic"):  # fmt: skip
    simple(f"int_{_name}", _ints, getattr(lax, _name), _whole)
# Division by zero is the implementation's choice, and XLA's depends on what it knows of operands.
simple("int_div", _ints, lambda x, y: lax.div(x, _odd(y)), _whole)
simple("int_rem", _ints, lambda x, y: lax.rem(x, _odd(y)), _whole)
for _name in ("neg", "abs", "sign", "bitwise_not", "population_count", "clz"):
    simple(f"int_{_name}", [of_kind("i")], getattr(lax, _name), _whole)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    simple(f"bool_{_name}", [of_kind("b")] * 2, getattr(lax, _name), _whole)
simple("bool_not", [of_kind("b")], lax.bitwise_not, _whole)
simple("int_select", [of_kind("b"), *_ints], lax.select_n, lambda p, x, y: _whole(x))
simple("bool_select", [of_kind("b")] * 3, lax.select_n, _whole)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    simple(f"int_{_name}", _ints, getattr(lax, _name), _truth)
    simple(f"float_{_name}", [lambda v: v.kind == "f" and v.exact] * 2, getattr(lax, _name), _truth)


def _converted(name: str, kind: str, fun: Callable[..., Any], result: Callable[..., Value]) -> None:
    def draw_operands(draw: Any, env: Env) -> Any:
        return (choose(draw, env, lambda v: v.kind == kind and v.exact),), ()

    register(
        Operation(
            name,
            draw_operands,
            lambda env, xs, params: [result(*xs)],
            lambda run, xs, params: [fun(run.float_dtype, *xs)],
            kinked=kind == "f",
        )
    )


_converted("int_to_float", "i",
           lambda t, x: lax.convert_element_type(lax.rem(x, np.full(x.shape, 5, np.int32)), t),
           lambda x: Value("f", x.shape, -4, 4))  # fmt: skip
_converted("bool_to_float", "b", lambda t, x: lax.convert_element_type(x, t),
           lambda x: Value("f", x.shape, 0, 1))  # fmt: skip
_converted("bool_to_int", "b", lambda t, x: lax.convert_element_type(x, np.int32),
           lambda x: Value("i", x.shape))  # fmt: skip
_converted("float_to_int", "f", lambda t, x: lax.convert_element_type(x, np.int32),
           lambda x: Value("i", x.shape))  # fmt: skip
