"""Minimisation of functions of several variables: `minimize`.

    BFGS      an approximate inverse Hessian, corrected at each step (Nocedal and Wright, Numerical
              optimization (2006), algorithm 6.1)
    l-bfgs    the same from the last steps alone (algorithm 7.4)

Steps are found by a line search for the strong Wolfe conditions (algorithms 3.5, 3.6), which is one
loop: it first widens an interval, then narrows it. All is a program, so that minimisations are
compiled and batched. Their derivatives are those of the steps; `xad.implicit.argmin` has those of
what they find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import xnp
from xad._vjp import value_and_grad
from xnp import lax
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import PyTree

__all__ = ["OptimizeResults", "minimize"]

__dir__ = __all__.copy

Function = Callable[[Any], Any]


class OptimizeResults(NamedTuple):
    """What `minimize` found.

    Attributes:
      x: the place.
      success: whether the gradient is small there (or, for l-bfgs, the last decrease).
      status: 0 for success, 1 after the greatest number of steps, 5 where the line search found no
        step, 2 for l-bfgs after the greatest number of evaluations.
      fun: the value there.
      jac: the gradient there.
      hess_inv: the approximate inverse of the Hessian; None for l-bfgs.
      nfev: how often the function was evaluated.
      njev: how often its gradient was.
      nit: the number of steps.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


_BFGS = {"maxiter", "norm", "gtol", "line_search_maxiter"}
_LBFGS = {"maxiter", "norm", "maxcor", "ftol", "gtol", "maxfun", "maxgrad", "maxls"}
_METHODS = {
    "bfgs": _BFGS, "l-bfgs": _LBFGS, "l-bfgs-experimental-do-not-rely-on-this": _LBFGS,
}  # fmt: skip


def minimize(
    fun: Callable[..., Any], x0: PyTree, args: tuple[Any, ...] = (), *, method: str,
    tol: float | None = None, options: Mapping[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """Return where a function is least, near a start.

    Args:
      fun: `fun(x, *args)` returns a number; differentiable.
      x0: where to start, a vector of floats.
      args: further arguments.
      method: "BFGS" or "l-bfgs", also written "l-bfgs-experimental-do-not-rely-on-this".
      tol: stands for `gtol` (and, of l-bfgs, `ftol`).
      options: `maxiter`; `norm`, the order of the norm of gradients; `gtol`, below which it ends;
        for BFGS `line_search_maxiter`; for l-bfgs `maxcor`, the steps that are kept, `ftol`, the
        relative decrease below which it ends, `maxfun`, `maxgrad`, `maxls`.

    Returns:
      `OptimizeResults`.

    Raises:
      ValueError: another method or option; `x0` is not a vector of floats.

    Differentiable in: what `fun` depends on and `x0`: the derivatives are those of the steps, in
    both modes; reverse mode needs a `maxiter` that is known ("BFGS" has a default). Those of the
    solution are what `xad.implicit.argmin` has.

    Example:
      >>> import xnp
      >>> found = minimize(lambda x: ((x - 3.0) ** 2).sum(), xnp.zeros(2), method="BFGS")
      >>> bool(found.success), found.x.round(3).tolist()
      (True, [3.0, 3.0])
    """
    known = _METHODS.get(str(method).lower())
    given = dict(options or {})
    if known is None or set(given) - known:
        raise ValueError(message(
            "minimize", "unknown method or option.", got=f"{method!r}, {given}",
            expected=f"one of {tuple(_METHODS)}, options {sorted(known or _BFGS | _LBFGS)}",
        ))  # fmt: skip
    x = as_array(x0, what="minimize: x0")
    require(
        x.ndim == 1 and dtypes.is_floating(x.dtype), "minimize", "x0 must be a vector of floats.",
        got=x,
    )  # fmt: skip
    if not isinstance(args, tuple):
        raise TypeError(message("minimize", "args must be a tuple.", got=f"{type(args).__name__}"))
    if tol is not None:
        given.setdefault("gtol", tol)
        if known is _LBFGS:
            given.setdefault("ftol", tol)

    def value(x: Any) -> Any:
        return fun(x, *args)

    run = _bfgs if known is _BFGS else _limit_bfgs
    return run(value_and_grad(value), x, **given)


# --- the line search ------------------------------------------------------------------------------

_DECREASE, _CURVATURE = 1e-4, 0.9


class _Point(NamedTuple):
    """A place on the line: the step, the value, the derivative along the line, the gradient."""

    step: Any
    value: Any
    derivative: Any
    gradient: Any


class _Search(NamedTuple):
    trial: Any
    low: _Point  # the best place so far
    high: _Point  # the other end, once there is one
    narrowing: Any
    done: Any
    count: Any


def _choose(mask: Any, a: Any, b: Any) -> Any:
    return type(a)(*[xnp.where(mask, x, y) for x, y in zip(a, b, strict=True)])


def _line_search(
    function: Function, x: Any, direction: Any, start: _Point, first: Any, most: int
) -> tuple[_Point, Any, Any]:
    """Return a place that fulfils the strong Wolfe conditions, whether it does, and the count."""

    def step(s: _Search) -> _Search:
        value, gradient = function(x + s.trial * direction)
        here = _Point(s.trial, value, (gradient * direction).sum(), gradient)
        sufficient = value <= start.value + _DECREASE * s.trial * start.derivative
        better = sufficient & ((value < s.low.value) | (~s.narrowing & (s.count == 0)))
        done = better & (abs(here.derivative) <= -_CURVATURE * start.derivative)
        # the interval lies on the side to which the function descends from the better end
        turns = xnp.where(
            s.narrowing, here.derivative * (s.high.step - s.low.step) >= 0, here.derivative >= 0
        )
        high = _choose(better, _choose(turns, s.low, s.high), here)
        low = _choose(better, here, s.low)
        narrowing = s.narrowing | ~better | turns
        trial = xnp.where(narrowing, _between(low, high), 2 * s.trial)
        return _Search(trial, low, high, narrowing, done, s.count + 1)

    false = xnp.zeros((), bool)
    state = _Search(first, start, start, false, false, 0)
    found = lax.while_loop(
        lambda s: ~s.done & (s.count < most), step, state, max_steps=_find_bound(most)
    )
    return found.low, found.done, found.count


def _between(low: _Point, high: _Point) -> Any:
    """Return the minimum of the parabola through the better end, not too near to either end."""
    width = high.step - low.step
    curvature = high.value - low.value - low.derivative * width
    share = -low.derivative * width / (2 * xnp.where(curvature > 0, curvature, 1))
    usable = (curvature > 0) & (share > 0.1) & (share < 0.9)
    return low.step + width * xnp.where(usable, share, 0.5)


# --- BFGS -----------------------------------------------------------------------------------------


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    memory: Any  # the inverse Hessian, or the last steps
    status: Any
    evaluations: Any
    steps: Any


def _size(gradient: Any, order: Any) -> Any:
    return xnp.linalg.norm(gradient, ord=order)


def _iterate(
    function: Function, x: Any, memory: Any, options: dict[str, Any],
    direction_of: Callable[[Any, Any], Any], remembered: Callable[..., Any],
) -> _State:  # fmt: skip
    """Take steps until the gradient is small.

    `options` are norm, gtol, ftol (or None), maxiter, maxfun, maxls; `direction_of` goes from the
    memory and the gradient to a direction; `remembered` puts a step and its change of gradient
    into the memory.
    """
    order, gtol, ftol = options["norm"], options["gtol"], options["ftol"]
    value, gradient = function(x)
    gradient = xnp.asarray(gradient)
    finished = xnp.where(_size(gradient, order) < gtol, 0, -1)

    def step(s: _State) -> _State:
        direction = direction_of(s.memory, s.gradient)
        derivative = (direction * s.gradient).sum()
        # rounding may turn a direction upwards: then straight down
        downwards = derivative < 0
        direction = xnp.where(downwards, direction, -s.gradient)
        derivative = xnp.where(downwards, derivative, -(s.gradient * s.gradient).sum())
        length = xnp.sqrt((s.gradient * s.gradient).sum())
        first = xnp.where(s.steps == 0, xnp.minimum(1.0, 1.0 / length), 1.0).astype(s.x.dtype)
        start = _Point(xnp.zeros_like(s.value), s.value, derivative, s.gradient)
        point, _, count = _line_search(function, s.x, direction, start, first, options["maxls"])
        moved = point.step * direction
        change = point.gradient - s.gradient
        decrease = s.value - point.value
        small = _size(point.gradient, order) < gtol
        if ftol is not None:
            scale = xnp.maximum(xnp.maximum(abs(s.value), abs(point.value)), 1.0)
            small = small | ((decrease <= ftol * scale) & (point.step > 0))
        evaluations, steps = s.evaluations + count, s.steps + 1
        status = xnp.where(steps >= options["maxiter"], 1, -1)
        status = xnp.where(evaluations >= options["maxfun"], 2, status)
        status = xnp.where(point.step == 0, 5, status)
        status = xnp.where(small, 0, status)
        memory = remembered(s.memory, moved, change)
        return _State(s.x + moved, point.value, point.gradient, memory, status, evaluations, steps)

    begin = _State(x, value, gradient, memory, finished, 1, 0)
    return lax.while_loop(
        lambda s: s.status < 0, step, begin, max_steps=_find_bound(options["maxiter"]),
        checkpoints="log",
    )  # fmt: skip


def _find_bound(steps: Any) -> int | None:
    """Return a bound that reverse mode can go back by, None where there is none.

    Derivatives of second order take as many steps as the bound says.
    """
    return steps if isinstance(steps, int) and steps < _MANY else None


def _results(s: _State, hess_inv: Any) -> OptimizeResults:
    return OptimizeResults(
        s.x, s.status == 0, s.status, s.value, s.gradient, hess_inv, s.evaluations, s.evaluations,
        s.steps,
    )  # fmt: skip


_MANY = 2**31 - 1


def _bfgs(
    function: Function, x: Any, maxiter: int | None = None, norm: Any = xnp.inf, gtol: Any = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:  # fmt: skip
    identity = xnp.eye(x.size, dtype=x.dtype)
    options = {"norm": norm, "gtol": gtol, "ftol": None, "maxfun": _MANY,
               "maxiter": 200 * x.size if maxiter is None else maxiter,
               "maxls": line_search_maxiter}  # fmt: skip

    def remember(inverse: Any, s: Any, y: Any) -> Any:
        """Return (I - s y^T / r) H (I - y s^T / r) + s s^T / r, with r = y . s > 0."""
        r = (y * s).sum()
        usable = r > 0
        left = identity - s[:, None] * y / xnp.where(usable, r, 1)
        new = left @ inverse @ left.T + s[:, None] * s / xnp.where(usable, r, 1)
        return xnp.where(usable, new, inverse)

    found = _iterate(function, x, identity, options, lambda h, g: -(h @ g), remember)
    return _results(found, found.memory)


class _Steps(NamedTuple):
    """The last steps s, changes of gradients y, and 1 / (y . s), 0 where there is none."""

    s: Any
    y: Any
    inverse: Any


def _limit_bfgs(
    function: Function, x: Any, maxiter: int | None = None, norm: Any = 2, maxcor: int = 10,
    ftol: Any = 2.220446049250313e-09, gtol: Any = 1e-5, maxfun: float | None = None,
    maxgrad: float | None = None, maxls: int = 20,
) -> OptimizeResults:  # fmt: skip
    limits = [int(min(v, _MANY)) for v in (maxfun, maxgrad) if v is not None]
    options = {"norm": norm, "gtol": gtol, "ftol": ftol, "maxls": maxls,
               "maxfun": min(limits, default=_MANY),
               "maxiter": _MANY if maxiter is None else maxiter}  # fmt: skip

    def remember(memory: _Steps, s: Any, y: Any) -> _Steps:
        r = (y * s).sum()
        usable = r > 0
        new = (s, y, 1 / xnp.where(usable, r, 1))
        kept = [xnp.concatenate([old[1:], v[None]])
                for old, v in zip(memory, new, strict=True)]  # fmt: skip
        result: _Steps = _choose(usable, _Steps(*kept), memory)
        return result

    empty = xnp.zeros((maxcor, x.size), x.dtype)
    memory = _Steps(empty, empty, xnp.zeros((maxcor,), x.dtype))
    return _results(_iterate(function, x, memory, options, _two_loops, remember), None)


def _two_loops(memory: _Steps, gradient: Any) -> Any:
    """Return the direction from the last steps, newest first and back (algorithm 7.4)."""

    def backward(q: Any, step: Any) -> Any:
        s, y, inverse = step
        a = inverse * (s * q).sum()
        return q - a * y, a

    q, factors = lax.scan(backward, gradient, tuple(memory), reverse=True)
    s, y, inverse = [v[-1] for v in memory]
    square = (y * y).sum()
    known = inverse > 0
    scale = xnp.where(known, 1 / (xnp.where(known, inverse * square, 1)), 1)

    def forward(r: Any, step: Any) -> Any:
        (s, y, inverse), a = step
        b = inverse * (y * r).sum()
        return r + s * (a - b), None

    r, _ = lax.scan(forward, scale * q, (tuple(memory), factors))
    del s
    return -r


boundaries(globals())
