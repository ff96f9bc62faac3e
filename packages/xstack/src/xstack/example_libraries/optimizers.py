"""Gradient descent in its variants: each a triple of functions `(init, update, get_params)`.

A rule is written for one array; its state is a pytree that holds the parameter. `optimizer` makes
of it a triple for pytrees of parameters: the state of each leaf is flattened by itself and kept in
an `OptimizerState`, which is a pytree, so a step of training can be compiled and differentiated.

    init_fn(params) -> state        update_fn(step, grads, state) -> state
    params_fn(state) -> params

Step sizes are numbers, or schedules: functions from the number of the step to a number.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeAlias

import xnp
import xtree
from xprim import Array
from xprim.errors import described, message
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike, PyTree
from xstack.namespaces import namespace

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule",
    "momentum", "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant",
    "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

__dir__ = __all__.copy

P = ParamSpec("P")
_Triple: TypeAlias = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]


class Optimizer(NamedTuple):
    """How parameters are changed.

    Attributes:
      init_fn: from the parameters to the first state.
      update_fn: from the number of the step, the gradients and the state to the next state.
      params_fn: from a state to the parameters that it holds.
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The states of all leaves of the parameters, flat, with the structures that they had.

    Attributes:
      packed_state: for each leaf the list of the arrays of its state.
      tree_def: the structure of the parameters.
      subtree_defs: for each leaf the structure of its state.
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


xtree.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structures, children: OptimizerState(children[0], *structures),
)


def optimizer(opt_maker: Callable[P, _Triple]) -> Callable[P, Optimizer]:
    """Make an optimizer of pytrees of parameters of one that is written for an array.

    Args:
      opt_maker: a function that returns a triple `(init, update, get_params)`: `init` takes an
        array and gives a pytree; `update` takes the step, the gradient and such a pytree and gives
        one of the same structure; `get_params` takes one and gives the array.

    Returns:
      A function of the same arguments that returns an `Optimizer`.

    Example:
      >>> @optimizer
      ... def signed(size):
      ...     return lambda x: x, lambda i, g, x: x - size * xnp.sign(g), lambda x: x
      >>> init, update, get_params = signed(0.5)
      >>> state = update(0, {"w": xnp.array([3.0, -2.0])}, init({"w": xnp.zeros(2)}))
      >>> get_params(state)["w"].tolist()
      [-0.5, 0.5]
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: P.args, **kwargs: P.kwargs) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_fn(x0_tree: Any) -> OptimizerState:
            leaves, tree = xtree.flatten(x0_tree)
            return _pack([init(x) for x in leaves], tree)

        def update_fn(i: Any, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            grads, tree = xtree.flatten(grad_tree)
            _check_same("the gradients have", tree, "the parameters", opt_state.tree_def)
            states = [update(i, g, s) for g, s in zip(grads, _unpack(opt_state), strict=True)]
            after = _pack(states, tree)
            for new, old in zip(after.subtree_defs, opt_state.subtree_defs, strict=True):
                _check_same("update gave a state of", new, "the state it was given", old)
            return after

        def params_fn(opt_state: OptimizerState) -> Any:
            return xtree.unflatten(opt_state.tree_def, map(get_params, _unpack(opt_state)))

        return Optimizer(boundary(init_fn), boundary(update_fn), boundary(params_fn))

    made = inspect.signature(opt_maker).replace(return_annotation="Optimizer")
    tree_opt_maker.__signature__ = made  # type: ignore[attr-defined]
    return tree_opt_maker


def _pack(states: Sequence[Any], tree: Any) -> OptimizerState:
    flat = [xtree.flatten(state) for state in states]
    return OptimizerState([leaves for leaves, _ in flat], tree, tuple([d for _, d in flat]))


def _unpack(state: OptimizerState) -> list[Any]:
    return list(map(xtree.unflatten, state.subtree_defs, state.packed_state))


def _check_same(what: str, got: Any, like: str, expected: Any) -> None:
    if got != expected:
        raise TypeError(message(
            "optimizer", f"{what} another structure than {like}.", got=str(got),
            expected=str(expected),
        ))  # fmt: skip


def _first(state: tuple[Any, ...]) -> Any:
    return state[0]


def _with_zeros(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return the `init` of a state that is the parameter and some arrays of zeros like it."""
    return lambda x: (x, *[xnp.zeros_like(x) for _ in range(count)])


# --- the variants ---------------------------------------------------------------------------------


@optimizer
def sgd(step_size: StepSize) -> _Triple:
    """Return gradient descent: x - step_size * g.

    Args:
      step_size: a positive number, or a schedule.

    Example:
      >>> init, update, get_params = sgd(0.5)
      >>> float(get_params(update(0, 2.0, init(3.0))))
      2.0
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size: StepSize, mass: float) -> _Triple:
    """Return gradient descent with momentum: v = mass * v + g, x - step_size * v.

    Args:
      step_size: a positive number, or a schedule.
      mass: which part of the velocity stays, in [0, 1).
    """
    return _with_velocity(step_size, mass, lambda velocity, g: velocity)


@optimizer
def nesterov(step_size: StepSize, mass: float) -> _Triple:
    """Return Nesterov's accelerated descent: v = mass * v + g, x - step_size * (mass * v + g).

    Args:
      step_size: a positive number, or a schedule.
      mass: which part of the velocity stays, in [0, 1).
    """
    return _with_velocity(step_size, mass, lambda velocity, g: mass * velocity + g)


def _with_velocity(step_size: Any, mass: float, direction: Callable[[Any, Any], Any]) -> _Triple:
    """Return the parts of an optimizer that steps where its velocity and the gradient say."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * direction(velocity, g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: StepSize, momentum: float = 0.9) -> _Triple:
    """Return Adagrad (Duchi, Hazan, Singer 2011): steps over the root of the sum of squares.

    Args:
      step_size: a positive number, or a schedule.
      momentum: which part of the last step stays.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + xnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - size(i) * m, squares, m

    return _with_zeros(2), update, _first


def _inverse_root(squares: Any) -> Any:
    """Return 1 / sqrt(squares), and 0 where no gradient has been other than 0."""
    return xnp.where(squares > 0, 1 / xnp.sqrt(xnp.where(squares > 0, squares, 1)), 0.0)


@optimizer
def rmsprop(step_size: StepSize, gamma: float = 0.9, eps: float = 1e-8) -> _Triple:
    """Return RMSProp (Hinton 2012): steps over the root of a running mean of squares.

    Args:
      step_size: a positive number, or a schedule.
      gamma: which part of the running mean stays.
      eps: added to the mean under the root.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + xnp.square(g) * (1 - gamma)
        return x - size(i) * g / xnp.sqrt(mean + eps), mean

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(
    step_size: StepSize, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> _Triple:
    """Return RMSProp with momentum.

    Args:
      step_size: a positive number, or a schedule.
      gamma: which part of the running mean of squares stays.
      eps: added to the mean under the root.
      momentum: which part of the last step stays.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, m = state
        mean = mean * gamma + xnp.square(g) * (1 - gamma)
        m = momentum * m + size(i) * g / xnp.sqrt(mean + eps)
        return x - m, mean, m

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """Return Adam (Kingma, Ba 2014), algorithm 1: running moments, without the bias of their start.

    Args:
      step_size: a positive number, or a schedule.
      b1: which part of the first moment stays.
      b2: which part of the second moment stays.
      eps: added to the root of the second moment.

    Example:
      >>> init, update, get_params = adam(0.1)
      >>> round(float(get_params(update(0, 2.0, init(3.0)))), 3)
      2.9
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * xnp.square(g) + b2 * v
        root = xnp.sqrt(v / _bias(b2, i, v.dtype))
        return x - size(i) * (m / _bias(b1, i, m.dtype)) / (root + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """Return Adamax (Kingma, Ba 2014), algorithm 2: Adam with the running maximum.

    Args:
      step_size: a positive number, or a schedule.
      b1: which part of the first moment stays.
      b2: by what the maximum shrinks in a step.
      eps: added to the maximum.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = xnp.maximum(b2 * u, xnp.abs(g))
        return x - (size(i) / _bias(b1, i, m.dtype)) * m / (u + eps), m, u

    return _with_zeros(2), update, _first


def _bias(decay: float, i: Any, dtype: Any) -> Any:
    """Return by what the running mean of the first `i + 1` terms falls short."""
    return 1 - xnp.asarray(decay, dtype) ** (i + 1)


@optimizer
def sm3(step_size: StepSize, momentum: float = 0.9) -> _Triple:
    """Return SM3 (Anil et al. 2019): Adagrad with a vector for each axis in place of an array.

    Args:
      step_size: a positive number, or a schedule.
      momentum: which part of the last step stays.
    """
    size = make_schedule(step_size)

    def init(x: Any) -> Any:
        row = xnp.atleast_1d(x)
        return x, xnp.zeros_like(row), [xnp.zeros(n, row.dtype) for n in row.shape]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, vectors = state
        row = xnp.atleast_1d(g)
        axes = range(row.ndim)
        spread = [xnp.expand_dims(v, [a for a in axes if a != k]) for k, v in enumerate(vectors)]
        squares = functools.reduce(xnp.minimum, spread) + xnp.square(row)
        m = (1 - momentum) * (row * _inverse_root(squares)) + momentum * m
        vectors = [squares.max([a for a in axes if a != k]) for k in axes]
        return x - size(i) * m.reshape(xnp.shape(x)), m, vectors

    return init, update, _first


# --- gradients, and states on disk ----------------------------------------------------------------


def l2_norm(tree: PyTree) -> Array:
    """Return the root of the sum of the squares of all elements of a pytree."""
    return xnp.sqrt(sum(xnp.vdot(x, x).real for x in xtree.leaves(tree)))


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> PyTree:
    """Return gradients, scaled to the norm `max_norm` where theirs is greater.

    Example:
      >>> clip_grads({"w": xnp.array([3.0, 4.0])}, 1.0)["w"].round(6).tolist()
      [0.6000000238418579, 0.800000011920929]
    """
    norm = l2_norm(grad_tree)
    factor = max_norm / xnp.maximum(norm, max_norm)
    return xtree.map(lambda g: xnp.where(norm < max_norm, g, g * factor), grad_tree)


class JoinPoint:
    """Stands where a leaf of the parameters was, and holds its state.

    Attributes:
      subtree: the state, a pytree.
    """

    def __init__(self, subtree: PyTree) -> None:
        self.subtree = subtree

    def __repr__(self) -> str:
        return f"JoinPoint({self.subtree!r})"


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """Return the states of all leaves in the structure of the parameters, to be written.

    Example:
      >>> unpack_optimizer_state(sgd(0.1).init_fn({"w": 1.0}))
      {'w': JoinPoint(1.0)}
    """
    return xtree.unflatten(opt_state.tree_def, map(JoinPoint, _unpack(opt_state)))


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """Return the state that `unpack_optimizer_state` has given the parts of.

    Raises:
      TypeError: a leaf that is not a `JoinPoint`.
    """
    points, tree = xtree.flatten(marked_pytree)
    strangers = [point for point in points if not isinstance(point, JoinPoint)]
    if strangers:
        raise TypeError(message(
            "pack_optimizer_state",
            "each leaf must be a JoinPoint, as unpack_optimizer_state makes them.",
            got=described(strangers[0]),
        ))  # fmt: skip
    return _pack([point.subtree for point in points], tree)


# --------------------------------------------------------------------------------------- step sizes
# Schedules: functions from the number of a step to its size.

Schedule = Callable[[Any], Any]
StepSize = Any  # a number, or a schedule


@boundary
def constant(step_size: float | Array) -> Schedule:
    """Return the schedule that gives the same size at each step."""
    return boundary(lambda i: step_size)


@boundary
def exponential_decay(
    step_size: float | Array, decay_steps: float | Array, decay_rate: float | Array
) -> Schedule:
    """Return the schedule step_size * decay_rate ** (i / decay_steps)."""
    return boundary(lambda i: step_size * decay_rate ** (i / decay_steps))


@boundary
def inverse_time_decay(
    step_size: float | Array,
    decay_steps: float | Array,
    decay_rate: float | Array,
    staircase: bool = False,
) -> Schedule:
    """Return the schedule step_size / (1 + decay_rate * i / decay_steps).

    Args:
      step_size: the first size.
      decay_steps: in how many steps the divisor grows by `decay_rate`.
      decay_rate: by what the divisor grows.
      staircase: whether it grows once in `decay_steps` steps only.
    """
    if staircase:
        return boundary(lambda i: step_size / (1 + decay_rate * xnp.floor(i / decay_steps)))
    return boundary(lambda i: step_size / (1 + decay_rate * i / decay_steps))


@boundary
def polynomial_decay(
    step_size: float | Array,
    decay_steps: float | Array,
    final_step_size: float | Array,
    power: float | Array = 1.0,
) -> Schedule:
    """Return the schedule from `step_size` to `final_step_size`, reached at `decay_steps`.

    Args:
      step_size: the first size.
      decay_steps: the step that has the last size.
      final_step_size: the last size.
      power: of the part of the way that is left; 1 is a straight line.
    """

    def schedule(step_num: Any) -> Any:
        left = 1 - xnp.minimum(step_num, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return boundary(schedule)


@boundary
def piecewise_constant(
    boundaries: Sequence[int] | ArrayLike, values: Sequence[ArrayLike] | ArrayLike
) -> Schedule:
    """Return the schedule of steps: `values[k]` after `boundaries[k - 1]`, up to `boundaries[k]`.

    Args:
      boundaries: numbers of steps that ascend, a vector.
      values: the sizes between, one more.

    Example:
      >>> schedule = piecewise_constant([10, 20], [1.0, 0.5, 0.1])
      >>> [round(float(schedule(i)), 1) for i in (10, 11, 21)]
      [1.0, 0.5, 0.1]
    """
    boundaries, values = xnp.asarray(boundaries), xnp.asarray(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.size + 1,):
        raise ValueError(message(
            "piecewise_constant", "takes a vector of boundaries, and of values one more.",
            got=f"shapes {boundaries.shape} and {values.shape}",
        ))  # fmt: skip
    return boundary(lambda i: values[xnp.sum(i > boundaries)])


@boundary
def make_schedule(scalar_or_schedule: StepSize) -> Schedule:
    """Return a schedule as it is, and the constant one of a number."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule  # type: ignore[no-any-return]
    if xnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(message(
        "make_schedule", "a step size is a number or a function of the step.",
        got=described(scalar_or_schedule),
    ))  # fmt: skip


boundaries(globals())
namespace(globals()).close()
