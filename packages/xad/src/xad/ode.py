"""Ordinary differential equations: `odeint`, with derivatives by the adjoint equation.

Steps are Dormand and Prince's (A family of embedded Runge-Kutta formulae, 1980): of order 5, with
an estimate of their error of order 4, by which their length is chosen (Hairer, Norsett, Wanner,
Solving ordinary differential equations I (1993), II.4), and with a polynomial of order 4 between
(II.6).

The steps themselves are not differentiated. Forward mode solves the variational equation with the
equation (Hairer et al., I.14), reverse mode the adjoint equation backwards in time (Chen et al.,
Neural ordinary differential equations, 2018): it stores the solution at the requested times,
and no steps. Each is the transpose of the other, and both are solved by what has these
derivatives itself: so there are derivatives of any order, in any modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xnp
import xtree
from xad._jvp import jvp
from xad._linear_call import linear_call
from xad._vjp import vjp
from xad.custom_rules import SymbolicZero, custom_jvp
from xnp import lax
from xnp.flatten_util import ravel_pytree
from xprim import Tracer, as_array, closure_convert, dtypes
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.transformed import check_function
from xprim.typing import ArrayLike, PyTree

__all__ = ["odeint"]

__dir__ = __all__.copy

# Butcher's tableau (table II.5.2), the weights of the error, those of the middle of a step (of the
# polynomial of order 4, II.6.12 at 1/2)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_MIDDLE = (
    6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
)  # fmt: skip
_SAFETY, _LEAST, _MOST = 0.9, 0.2, 10.0  # of the change of a step's length

Function = Callable[..., Any]


def odeint(
    func: Callable[..., Any], y0: PyTree, t: ArrayLike, *args: Any, rtol: float = 1.4e-8,
    atol: float = 1.4e-8, mxstep: float = np.inf, hmax: float = np.inf,
) -> PyTree:  # fmt: skip
    """Solve dy/dt = func(y, t, *args), y(t[0]) = y0.

    Args:
      func: returns a pytree with the leaves of `y0`, in nodes of any type; may capture values.
      y0: the start, a pytree of arrays of real or complex floats.
      t: times, a vector, of which the first is that of the start. They ascend or descend: the
        solution at a time that turns back, or is NaN, is NaN.
      *args: pytrees of arrays.
      rtol: the relative error that a step may have;
      atol: and the absolute one, which is added. Values or times of 16 bits are integrated in
        float32, with errors of their own precision at least, and the result is rounded.
      mxstep: how many steps are taken between two times at most; what is not reached then is
        where the last step ended.
      hmax: the greatest length of a step.

    Returns:
      The solution at the times, a pytree like `y0` with one more dimension in front.

    Raises:
      TypeError: a value is not an array of floats, or a derivative with other leaves than `y0`.
      ValueError: `t` is not a vector, or has no elements; a tolerance is negative or NaN; `mxstep`
        or `hmax` is not positive.

    Example:
      >>> import xnp
      >>> y = odeint(lambda y, t: -y, 1.0, xnp.array([0.0, 1.0]), rtol=1e-6)
      >>> [round(v, 4) for v in y.tolist()]
      [1.0, 0.3679]

    Differentiable in: y0, t, args, and what `func` captures, to any order in any modes. The error
    of each derivative is controlled as that of the solution is, by `rtol` and `atol`.
    """
    check_function(func, "odeint")
    _check_limits(rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
    start = xtree.map(lambda x: _check(x, "y0", dtypes.is_inexact), y0)
    times = _check(t, "t", dtypes.is_floating)
    require(times.ndim == 1 and times.size, "odeint", "the times must be a vector of one or more, "
            "the first that of the start.", got=times)  # fmt: skip
    args = xtree.map(lambda x: as_array(x, what="odeint: args"), args)
    converted, captured = closure_convert(func, start, times[0], *args)
    parameters = (*args, *captured)
    flat, unravel = ravel_pytree(xtree.map(_real_parts, start))
    # derivatives that are rounded to 16 bits have no smaller errors, however short a step is
    narrow = [x.dtype for x in (*xtree.leaves(start), times) if x.dtype.itemsize == 2]
    least_error = max([float(dtypes.finfo(d).eps) for d in narrow], default=0.0)
    values_dtype, times_dtype = flat.dtype, times.dtype
    flat, times = [x.astype(np.float32) if x.dtype in narrow else x for x in (flat, times)]
    start_avals, parameter_avals = xtree.map(lambda x: as_array(x).aval, (start, parameters))
    leaf_avals = xtree.leaves(start_avals)
    parts, part_tree = xtree.flatten(xtree.map(_real_parts, parameters))

    def whole(y: Any) -> Any:
        return xtree.map(_with_parts, start_avals, unravel(y.astype(values_dtype)))

    # descending times are those of the mirrored equation, which ascend
    direction = xnp.where(times[-1] < times[0], -1, 1).astype(times.dtype)

    def field(y: Any, t: Any, direction: Any, *parts: Any) -> Any:
        values = xtree.map(_with_parts, parameter_avals, xtree.unflatten(part_tree, parts))
        leaves = xtree.leaves(converted(whole(y), (direction * t).astype(times_dtype), *values))
        _check_field(leaves, leaf_avals)
        derivatives = [_like(aval, leaf) for aval, leaf in zip(leaf_avals, leaves, strict=True)]
        return (direction * ravel_pytree(list(map(_real_parts, derivatives)))[0]).astype(y.dtype)

    limits = (max(float(rtol), least_error), max(float(atol), least_error), mxstep, hmax)
    # until the latest time so far: one that turns back has no share in the derivatives of others
    times = direction * times
    latest = lax.stop_gradient(lax.cummax(xnp.where(xnp.isnan(times), times[0], times)))
    ascends = times >= latest
    solution = _integrated(
        field, limits, flat, xnp.where(ascends, times, latest), direction, *parts
    )
    return lax.map(whole, xnp.where(ascends[:, None], solution, np.nan))


def _check_limits(**values: Any) -> None:
    for name, value in values.items():
        may_be_zero = name.endswith("tol")
        is_fit = value >= 0 if may_be_zero else value > 0
        require(
            isinstance(is_fit, Tracer) or is_fit, "odeint",
            f"{name} must be {'at least 0' if may_be_zero else 'positive'}.", got=value,
        )  # fmt: skip


def _check_field(leaves: Sequence[Any], avals: Sequence[Any]) -> None:
    got = [as_array(x, what="odeint: the derivative").aval for x in leaves]
    if [a.shape for a in got] != [a.shape for a in avals]:
        raise TypeError(message(
            "odeint", "the function must return a derivative for each value of the start.",
            got=", ".join([a.str_long() for a in got]),
            expected=", ".join([a.str_long() for a in avals]),
        ))  # fmt: skip


def _check(x: Any, name: str, fits: Callable[[Any], bool]) -> Any:
    array = as_array(x, what=f"odeint: {name}")
    require(
        fits(array.dtype), "odeint", "the start and the times must be floats.", got=array,
        error=TypeError,
    )  # fmt: skip
    return array


def _real_parts(x: Any) -> Any:
    """Return the real and the imaginary part of complex numbers, and real ones as they are."""
    return (xnp.real(x), xnp.imag(x)) if dtypes.is_complex(x.dtype) else x


def _with_parts(aval: Any, parts: Any) -> Any:
    return lax.complex(*parts) if dtypes.is_complex(aval.dtype) else parts


def _like(aval: Any, derivative: Any) -> Any:
    """Return a derivative as complex numbers where the value is complex."""
    return xnp.asarray(derivative, aval.dtype if dtypes.is_complex(aval.dtype) else None)


def _solve(field: Function, limits: Any, y0: Any, t: Any, *args: Any) -> Any:
    """Return the solution at times, of shape (len(t), len(y0))."""
    rtol, atol, mxstep, hmax = limits

    def function(y: Any, t: Any) -> Any:
        return field(y, t, *args)

    first = function(y0, t[0])
    length = xnp.minimum(_first_step(function, t[0], y0, first, rtol, atol), hmax)
    # the last step: from the time `last` to `now`, and its polynomial
    zero = [xnp.zeros_like(y0)] * 4
    start = (y0, first, t[0], length.astype(t.dtype), t[0], [*zero, y0])

    step = _make_controlled_step(function, rtol, atol, hmax)

    def towards(carry: Any, target: Any) -> Any:
        def is_unfinished(state: Any) -> Any:
            count, (_, _, now, length, _, _) = state
            return (now < target) & (count < mxstep) & (length > 0)

        _, carry = lax.while_loop(is_unfinished, step, (0, carry))
        _, _, now, _, last, polynomial = carry
        width = now - last
        share = xnp.where(width > 0, (target - last) / xnp.where(width > 0, width, 1), 1)
        share = xnp.minimum(share, 1.0).astype(y0.dtype)
        value = polynomial[0]
        for c in polynomial[1:]:
            value = value * share + c
        return carry, value

    _, values = lax.scan(towards, start, t[1:])
    return xnp.concatenate([y0[None], values])


def _make_controlled_step(function: Function, rtol: float, atol: float, hmax: Any) -> Function:
    """Return what tries a step, takes it where its error is small, and chooses the next length."""

    def step(state: Any) -> Any:
        count, (y, f, now, length, last, polynomial) = state
        new_y, new_f, error, stages = _step(function, y, f, now, length)
        scale = atol + rtol * xnp.maximum(abs(y), abs(new_y))
        ratio = _mean_square(error / scale)
        accepted = ratio <= 1
        factor = xnp.clip(_SAFETY * xnp.maximum(ratio, 1e-10) ** -0.2, _LEAST, _MOST)
        factor = xnp.where(xnp.isfinite(ratio), factor, _LEAST)
        factor = xnp.where(accepted, factor, xnp.minimum(factor, 1.0))
        taken = (new_y, new_f, now + length, now, _polynomial(y, new_y, stages, length))
        kept = (y, f, now, last, polynomial)
        chosen = xtree.map(lambda a, b: xnp.where(accepted, a, b), taken, kept)
        y, f, now, last, polynomial = chosen
        length = xnp.minimum(length * factor, hmax).astype(now.dtype)
        # a step that does not change the time any more ends it
        length = xnp.where(now + length > now, length, 0)
        return count + 1, (y, f, now, length, last, polynomial)

    return step


def _first_step(function: Function, t: Any, y: Any, f: Any, rtol: Any, atol: Any) -> Any:
    """Return the length of a first step (Hairer et al., II.4, algorithm for the starting step)."""
    scale = atol + abs(y) * rtol
    d0, d1 = _mean_square(y / scale), _mean_square(f / scale)
    short = xnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / xnp.where(d1 > 0, d1, 1))
    other = function(y + short * f, t + short)
    d2 = _mean_square((other - f) / scale) / short
    most = xnp.maximum(d1, d2)
    long = (0.01 / xnp.where(most > 0, most, 1)) ** 0.2
    long = xnp.where(most <= 1e-15, xnp.maximum(1e-6, short * 1e-3), long)
    return xnp.minimum(100 * short, long)


def _mean_square(x: Any) -> Any:
    return xnp.sqrt(xnp.mean(x * x)) if x.size else xnp.zeros((), x.dtype)


def _combine(weights: Any, stages: list[Any]) -> Any:
    terms = [w * k for w, k in zip(weights, stages, strict=False) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _step(function: Function, y: Any, f: Any, t: Any, h: Any) -> tuple[Any, Any, Any, list[Any]]:
    """Return the value after a step, its derivative, the estimate of the error, and the stages."""
    stages, length = [f], h.astype(y.dtype)
    for weights, share in zip(_STAGES, _TIMES, strict=True):
        value = y + length * _combine(weights, stages)
        stages.append(function(value, t + share * h))
    return value, stages[-1], length * _combine(_ERROR, stages), stages


def _polynomial(y: Any, new_y: Any, stages: list[Any], h: Any) -> list[Any]:
    """Return the coefficients, highest first, of the polynomial of a step's share.

    It has the values at the ends and in the middle and the derivatives at the ends.
    """
    length = h.astype(y.dtype)
    middle = y + length * _combine(_MIDDLE, stages)
    left, right = length * stages[0], length * stages[-1]
    a = 2 * right - 2 * left - 8 * new_y - 8 * y + 16 * middle
    b = -3 * right + 5 * left + 14 * new_y + 18 * y - 32 * middle
    c = right - 4 * left - 5 * new_y - 11 * y + 16 * middle
    return [a, b, c, left, y]


# --- derivatives ----------------------------------------------------------------------------------

_integrated = custom_jvp(_solve, nondiff_argnums=(0, 1))


def _tangent_rule(field: Function, limits: Any, primals: Any, tangents: Any) -> Any:
    y0, t, *args = primals
    y0_dot, t_dot, *arg_dots = tangents
    solution = _integrated(field, limits, *primals)
    moved = [i for i, dot in enumerate(arg_dots) if type(dot) is not SymbolicZero]
    times_move = type(t_dot) is not SymbolicZero
    variation = _Variation(field, limits, moved, times_move)
    linear = (
        xnp.zeros_like(y0) if type(y0_dot) is SymbolicZero else y0_dot,
        xnp.zeros_like(t) if not times_move else t_dot,
        *[arg_dots[i] for i in moved],
    )
    residuals = (solution, t, *args)
    return solution, linear_call(variation.push, variation.pull, residuals, linear)


_integrated.defjvp(_tangent_rule, symbolic_zeros=True)


class _Variation:
    """How the solution changes with the start, the times and some of the arguments.

    Attributes:
      moved: the numbers of the arguments that change.
      times_move: whether the times do.
    """

    def __init__(
        self, field: Function, limits: Any, moved: Sequence[int], times_move: bool
    ) -> None:
        self.field = field
        self.limits = limits
        self.moved = moved
        self.times_move = times_move

    def _field_with(self, t: Any, args: Sequence[Any]) -> Function:
        """Return the field at a time as a function of the value and of moving arguments."""

        def function(y: Any, *values: Any) -> Any:
            full = list(args)
            for i, value in zip(self.moved, values, strict=True):
                full[i] = value
            return self.field(y, t, *full)

        return function

    def _derivatives(self, solution: Any, t: Any, args: Sequence[Any]) -> Any:
        return lax.map(lambda point: self.field(*point, *args), (solution, t))

    def push(self, residuals: Any, dots: Any) -> Any:
        """Solve the variational equation, v' = df/dy v + df/da adot, with y' = f."""
        solution, t, *args = residuals
        y0_dot, t_dot, *arg_dots = dots
        size, count = solution.shape[1], len(args)

        def both(state: Any, now: Any, *values: Any) -> Any:
            args, dots = values[:count], values[count:]
            point = (state[:size], *[args[i] for i in self.moved])
            f, f_dot = jvp(self._field_with(now, args), point, (state[size:], *dots))
            return xnp.concatenate([f, f_dot])

        derivatives = self._derivatives(solution, t, args) if self.times_move else None
        if derivatives is not None:
            y0_dot = y0_dot - derivatives[0] * t_dot[0].astype(y0_dot.dtype)
        start = xnp.concatenate([solution[0], y0_dot])
        result = _integrated(both, self.limits, start, t, *args, *arg_dots)[:, size:]
        if derivatives is not None:
            result = result + derivatives * t_dot[:, None].astype(result.dtype)
        return result

    def pull(self, residuals: Any, cotangent: Any) -> Any:
        """Solve back in time, in s = -t: y' = -f, ybar' = ybar df/dy, abar' = ybar df/da."""
        solution, t, *args = residuals
        size, dtype = solution.shape[1], solution.dtype
        shapes = [args[i].aval for i in self.moved]

        def reverse_field(state: Any, s: Any, *args: Any) -> Any:
            y, y_bar = state[:size], state[size : 2 * size]
            f = self._field_with(-s, args)
            value, pull = vjp(f, y, *[args[i] for i in self.moved])
            derivatives = [x.reshape(-1).astype(dtype) for x in pull(y_bar)]
            return xnp.concatenate([-value, *derivatives])

        def backwards(carry: Any, step: Any) -> Any:
            y_bar, args_bar = carry
            y, now, before, cotangent_before = step
            state = xnp.concatenate([y, y_bar, args_bar])
            ends = xnp.stack([-now, -before])
            state = _integrated(reverse_field, self.limits, state, ends, *args)[1]
            return (state[size : 2 * size] + cotangent_before, state[2 * size :]), None

        steps = (solution[1:], t[1:], t[:-1], cotangent[:-1])
        start = (cotangent[-1], xnp.zeros(sum(a.size for a in shapes), dtype))
        (y_bar, args_bar), _ = lax.scan(backwards, start, steps, reverse=True)
        return y_bar, self._times_bar(residuals, cotangent, y_bar), *_split(args_bar, shapes)

    def _times_bar(self, residuals: Any, cotangent: Any, y_bar: Any) -> Any:
        """Return the cotangent of the times: the solution at others does not depend on one."""
        solution, t, *args = residuals
        if not self.times_move:
            return xnp.zeros_like(t)
        derivatives = self._derivatives(solution, t, args)
        t_bar = (derivatives * cotangent).sum(1)
        return (t_bar - (derivatives[0] * y_bar).sum() * (xnp.arange(len(t)) == 0)).astype(t.dtype)


def _split(flat: Any, avals: Sequence[Any]) -> list[Any]:
    """Return parts of a vector as arrays of these types."""
    ends = np.cumsum([0, *[a.size for a in avals]])
    return [
        flat[begin:end].reshape(a.shape).astype(a.dtype)
        for a, begin, end in zip(avals, ends[:-1], ends[1:], strict=True)
    ]


boundaries(globals())
