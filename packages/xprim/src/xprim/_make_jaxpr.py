"""The public doors of staging: `make_jaxpr`, `eval_shape`, `closure_convert`, `typeof`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import xtree
from xprim.array import Array, as_array
from xprim.avals import ShapedArray, ShapeDtypeStruct, size_of, type_of_by_class
from xprim.config import state, values
from xprim.eager import EAGER, FoldingTrace
from xprim.errors import LazyNames, argument_names, message
from xprim.jaxpr import ClosedJaxpr, eval_jaxpr
from xprim.refs import AbstractRef, BaseRef, RefUse
from xprim.staging import close_over, trace_to_jaxpr
from xprim.trace import Trace, extended_axes
from xprim.tracebacks import boundary
from xprim.transformed import check_function, flat_arrays, look_like, name_of, transforming

if TYPE_CHECKING:
    from xprim.typing import ArrayLike, PyTree


@overload
def typeof(x: BaseRef) -> AbstractRef: ...
@overload
def typeof(x: ArrayLike) -> ShapedArray: ...
@boundary
def typeof(x: ArrayLike | BaseRef) -> ShapedArray | AbstractRef:
    """Return the abstract value of an array, tracer, scalar, `ShapeDtypeStruct` or reference.

    Example:
      >>> typeof(1.0)
      ShapedArray(~float32[])
    """
    return AbstractRef(x.aval) if isinstance(x, BaseRef) else _type_of_value(x)


def _type_of_value(x: Any) -> ShapedArray:
    """Return the abstract value of what `typeof` accepts; of a reference, that of its value."""
    type_of = type_of_by_class.get(type(x))
    if type_of is not None:  # attributes of x may be operations
        return type_of(x)  # type: ignore[no-any-return]
    aval = getattr(x, "aval", None)
    if isinstance(aval, ShapedArray):
        return aval
    if isinstance(x, ShapedArray):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return ShapedArray(x.shape, x.dtype)
    return as_array(x, what="typeof").aval


@boundary
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Return a function that stages `fun` and returns its jaxpr instead of running it.

    Args:
      fun: a function of pytrees of arrays.
      static_argnums: positions of arguments that are passed to `fun` as they are.
      axis_env: pairs of an axis name and its size, as an enclosing `pmap` would bind them.
      return_shape: also return the tree of `ShapeDtypeStruct` that `fun` gives.

    Returns:
      A function of the same arguments that returns a `ClosedJaxpr`. A scalar array that `fun`
      closes over is a literal in it; where `make_jaxpr` is called in a traced function, it is a
      constant as other arrays are, since the next call may find a traced one in its place. The
      option `scalar_constants` has it be one everywhere.

    Example:
      >>> from xprim import make_jaxpr
      >>> make_jaxpr(lambda x: x)(1.0)
      { lambda ; a:f32[]. let in (a,) }
    """
    check_function(fun, "make_jaxpr")
    given = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    static = tuple(map(size_of, given))

    @transforming(fun, "make_jaxpr")
    @boundary
    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        with extended_axes(dict(axis_env or ())):
            closed, out_tree = stage(
                fun, args, kwargs, static, operation="make_jaxpr", takes_refs=True,
                keeps_scalars=state.trace is not EAGER or values.scalar_constants,
            )  # fmt: skip
        if return_shape:
            return closed, xtree.unflatten(out_tree, _shapes_of_results(closed, out_tree))
        return closed

    return jaxpr_of


@boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> PyTree:
    """Return the shapes and dtypes of `fun(*args, **kwargs)` without computing it.

    Args:
      fun: a function of pytrees of arrays.
      *args: arrays, or anything with a shape and a dtype.
      **kwargs: likewise.

    Returns:
      The pytree of `ShapeDtypeStruct`; one that the function returns stays as it is.
    """
    check_function(fun, "eval_shape")
    of, own = getattr(fun, "__dict__", {}).get("asked_results", (None, None))
    if own is not None and of() is fun:  # it is compiled, and gives the shardings of its results
        return own(*args, **kwargs)
    described_leaves: dict[int, ShapeDtypeStruct] = {}

    def with_arrays(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = xtree.flatten(fun(*args, **kwargs))
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, ShapeDtypeStruct):  # the function says it itself
                described_leaves[i], leaves[i] = leaf, 0
        return tree.unflatten(leaves)

    look_like(with_arrays, fun)
    closed, out_tree = stage(with_arrays, args, kwargs, (), operation="eval_shape", takes_refs=True)
    shapes = _shapes_of_results(closed, out_tree)
    return xtree.unflatten(out_tree, [described_leaves.get(i, s) for i, s in enumerate(shapes)])


def _shapes_of_results(closed: ClosedJaxpr, out_tree: Any) -> list[ShapeDtypeStruct]:
    """Return the types of the leaves of a function's result."""
    avals = closed.out_avals[: out_tree.num_leaves]  # those of written references follow
    return [
        ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=_sharding_said(a))
        for a in avals
    ]


def _sharding_said(aval: ShapedArray) -> Any:
    """Return what a type says of explicit axes: also that it is cut along none of those now set."""
    said = aval.type_sharding or aval.sharding
    return said if said is not None and said.mesh.explicit_axes else aval.type_sharding


def stage(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static_argnums: Any = (),
    *,
    operation: str,
    takes_refs: bool = False,
    uses: list[RefUse] | None = None,
    keeps_scalars: bool = False,
) -> tuple[ClosedJaxpr, Any]:
    """Stage a function of pytrees; returns its closed jaxpr and the structure of its result.

    Args:
      fun: the function.
      args: its arguments.
      kwargs: its keyword arguments.
      static_argnums: which of `args` it gets as they are.
      operation: what errors name.
      takes_refs: whether it may use references as a program that is only looked at: the values of
        references of outside are constants, and what is written to any reference is one more
        result.
      uses: is filled with how it uses outer references, whose values are its last arguments then,
        and its last results where it writes them; None lets them be read.
      keeps_scalars: whether scalar arrays that it closes over are constants, not literals.
    """
    fixed = {i: args[i] for i in static_positions(static_argnums, len(args), operation)}
    dynamic = [a for i, a in enumerate(args) if i not in fixed]
    leaves, in_tree = xtree.flatten((dynamic, kwargs))
    names = LazyNames(lambda: _names(fun, args, kwargs, fixed), fun)
    avals = [_aval_of(x, i, names, operation) for i, x in enumerate(leaves)]
    refs = {i: type(x) for i, x in enumerate(leaves) if takes_refs and isinstance(x, BaseRef)}
    out_tree: list[Any] = []

    def flat_fun(*leaves: Array) -> list[Array]:
        inside = {i: kind.argument(leaves[i]) for i, kind in refs.items()}
        given = [inside.get(i, x) for i, x in enumerate(leaves)]
        values, options = xtree.unflatten(in_tree, given)
        rest = iter(values)
        everything = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
        results, tree = flat_arrays(fun(*everything, **options), operation)
        out_tree.append(tree)
        ends = [(ref.lend(), leaves[i]) for i, ref in inside.items()]
        return [*results, *[end for end, start in ends if end is not start]]

    uses = [] if takes_refs else uses
    jaxpr, consts = trace_to_jaxpr(
        flat_fun, avals, name=name_of(fun, ""), arg_names=names, refs=uses,
        keeps_scalars=keeps_scalars,
    )  # fmt: skip
    if uses and takes_refs:
        own = len(jaxpr.invars) - len(uses)
        consts = [*consts, *[use.before for use in uses]]
        jaxpr = jaxpr.replace(
            constvars=[*jaxpr.constvars, *jaxpr.invars[own:]], invars=jaxpr.invars[:own]
        )
    return ClosedJaxpr(jaxpr, consts), out_tree[0]


def _names(fun: Any, args: Sequence[Any], kwargs: Any, fixed: Any) -> list[str]:
    """Return what to call the leaves of the arguments that are not static."""
    shown = [None if i in fixed else a for i, a in enumerate(args)]  # None has no leaves
    return argument_names(fun, shown, kwargs)


def _aval_of(value: Any, index: int, names: Sequence[str], operation: str) -> ShapedArray:
    """Return the abstract value of an argument; an error names it."""
    try:
        return _type_of_value(value)
    except (TypeError, OverflowError):
        as_array(value, what=f"{operation}: the argument {names[index]}")
        raise


def static_positions(static_argnums: Sequence[int], count: int, operation: str) -> tuple[int, ...]:
    """Return the positions of static arguments as numbers from 0.

    Raises:
      ValueError: when one is not among the `count` arguments.
    """
    for i in static_argnums:
        if not -count <= i < count:
            raise ValueError(
                f"{operation}: static_argnums names argument {i}, but the function was called with "
                f"{count} positional argument{'s' if count != 1 else ''}."
            )
    return tuple([i % count for i in static_argnums])


@boundary
def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """Turn the traced values that `fun` closes over into explicit arguments.

    Args:
      fun: a function of pytrees of arrays.
      *example_args: arguments of the shapes and dtypes it will be called with.

    Returns:
      A function that takes the same arguments followed by the captured values, and the list of
      these values: those among the constants that are under differentiation or batching.
    """
    closed, out_tree = stage(fun, example_args, {}, operation="closure_convert")
    closed, captured = close_over(closed.jaxpr, closed.consts)
    in_tree = xtree.structure(tuple(example_args))

    def call_converted(*args_and_captured: Any) -> Any:
        count = len(args_and_captured) - len(captured)
        args, values = args_and_captured[:count], args_and_captured[count:]
        leaves, tree = xtree.flatten(tuple(args))
        if tree != in_tree:
            raise TypeError(message(
                "closure_convert", "the arguments have another structure than the examples.",
                got=f"{tree}", expected=f"{in_tree}",
            ))  # fmt: skip
        operands = [as_array(x) for x in (*values, *leaves)]
        return xtree.unflatten(out_tree, eval_jaxpr(closed.jaxpr, closed.consts, *operands))

    return call_converted, captured


class ensure_compile_time_eval:  # noqa: N801 - named as users know it
    """Evaluate operations inside the block now, even while a function is being staged.

    Works as a context manager and as a decorator. Operations on tracers, which have no values yet,
    are staged as elsewhere.
    """

    def __init__(self) -> None:
        self._previous: list[Trace] = []

    def __enter__(self) -> None:
        previous = state.trace
        self._previous.append(previous)
        state.trace = EAGER if previous is EAGER else FoldingTrace(previous)

    def __exit__(self, *exc: object) -> None:
        state.trace = self._previous.pop()

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fun` with its operations evaluated at once."""

        @transforming(fun, "ensure_compile_time_eval")
        def call_evaluated(*args: Any, **kwargs: Any) -> Any:
            with ensure_compile_time_eval():
                return fun(*args, **kwargs)

        return call_evaluated
