"""Functions with a batching rule of their own: `custom_vmap`, and `sequential_vmap`.

The function is staged when it is called, so what it closes over is known, and becomes the primitive
`custom_vmap_call`, which holds its program and its rule. Evaluating or compiling it runs the
program; batching it calls the rule; differentiating it keeps both, so that a batch of derivatives
(`jacfwd`, `vmap` of `jvp`) still meets the rule; what is differentiated in reverse is the program.

    call   the program, a closed jaxpr from the operands to the results
    rule   (axis, operands, are mapped) -> (results, are mapped), batch dimensions in front
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import xprim
import xtree
from xnp import lax
from xprim import ClosedJaxpr, Primitive, Var, close_over, eval_closed, trace_to_jaxpr, transformed
from xprim.calls import all_to_front, front_dims, nonzero, rules_of_program, where_true, with_zeros
from xprim.contracts import BatchAxis, ChecksHandle, JVPHandle, LinearizeHandle
from xprim.errors import MissingRuleError, message
from xprim.function_keys import constant_by_attributes
from xprim.tracebacks import boundary
from xprim.transformed import attribute_of_wrapped, check_function, flat_arrays, look_like, name_of
from xtree.boundaries import boundary_methods

FlatRule = Callable[[Any, Sequence[Any], Sequence[bool]], tuple[Sequence[Any], Sequence[bool]]]


@boundary_methods
@constant_by_attributes
class custom_vmap(transformed.Transforms):  # noqa: N801 - a decorator
    """Give a function a rule that says what `vmap` of it does.

    The rule is set with `def_vmap`. It is called as `rule(axis_size, in_batched, *args)`, where
    `in_batched` is a list of trees of bools that tell which arrays of `args` have a batch axis,
    always axis 0, and returns the results and a tree of bools of the same structure that tells
    which of them have one.

    Args:
      fun: a function of pytrees of arrays. Arguments are passed to the rule by position.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> @custom_vmap
      ... def twice(x):
      ...     return x + x
      >>> @twice.def_vmap
      ... def rule(axis_size, in_batched, x):
      ...     print("a batch of", axis_size)
      ...     return x + x, in_batched[0]
      >>> vmap(twice)(np.array([1, 2]))
      a batch of 2
      Array([2, 4], dtype=int32)
    """

    transformation = "custom_vmap"

    @boundary
    def __init__(self, fun: Callable[..., Any]) -> None:
        check_function(fun, "custom_vmap")
        look_like(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return attribute_of_wrapped(self, name)

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the batching rule and return it; usable as a decorator."""
        check_function(vmap_rule, "custom_vmap.def_vmap")
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        name = name_of(self.fun)
        operands, in_tree = flat_arrays(_positional(self.fun, args, kwargs), name, "the arguments")
        out_tree: Any = None

        def flat_fun(*values: Any) -> list[Any]:
            nonlocal out_tree
            results, out_tree = flat_arrays(self.fun(*xtree.unflatten(in_tree, values)), name)
            return results

        avals = [x.aval for x in operands]
        jaxpr, consts = trace_to_jaxpr(flat_fun, avals, name=name)
        call, captured = close_over(jaxpr, consts)
        rule = self._flat_rule(in_tree, out_tree, len(captured), call)
        results = custom_vmap_call_p.bind(*captured, *operands, call=call, rule=rule)
        return xtree.unflatten(out_tree, results)

    def _flat_rule(
        self, in_tree: Any, out_tree: Any, num_captured: int, call: ClosedJaxpr
    ) -> FlatRule:
        """Return the user's rule as a function of flat lists."""

        def rule(axis: Any, values: Sequence[Any], mapped: Sequence[bool]) -> Any:
            if self.vmap_rule is None:
                raise _no_rule(self.fun)
            if any(mapped[:num_captured]):
                raise _captures_mapped(self.fun)
            in_batched = xtree.unflatten(in_tree, mapped[num_captured:])
            args = xtree.unflatten(in_tree, values[num_captured:])
            answer = self.vmap_rule(axis.size, in_batched, *args)
            return _check(self.fun, answer, out_tree, axis, call.out_avals)

        return rule


@boundary
def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """Return a function whose `vmap` is a loop: one example after the other, by `lax.map`.

    Args:
      f: a function of pytrees of arrays, perhaps one that needs too much memory for a whole batch
        or that calls something which cannot be batched.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> vmap(sequential_vmap(lambda x: x * x))(np.array([1, 2, 3]))
      Array([1, 4, 9], dtype=int32)
    """
    looped = custom_vmap(f)

    @looped.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> Any:
        leaves, tree = xtree.flatten(list(args))
        mapped = xtree.leaves(in_batched)

        def one_example(examples: Sequence[Any]) -> Any:
            given = iter(examples)
            values = [next(given) if m else x for x, m in zip(leaves, mapped, strict=True)]
            return f(*xtree.unflatten(tree, values))

        batch = [x for x, m in zip(leaves, mapped, strict=True) if m]
        results = lax.map(one_example, batch)
        return results, xtree.map(lambda _: True, results)

    return looped


def _positional(fun: Callable[..., Any], args: Any, kwargs: Any) -> list[Any]:
    """Return all arguments by position, defaults filled in."""
    if not kwargs:
        return list(args)
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(message(
            "custom_vmap", "keyword-only arguments cannot be passed on to the rule.",
            got=", ".join(bound.kwargs), hint="make them positional arguments of the function",
        ))  # fmt: skip
    return list(bound.args)


def _no_rule(fun: Callable[..., Any]) -> MissingRuleError:
    name = name_of(fun)
    return MissingRuleError(message(
        "vmap", f"the custom_vmap function {name} has no batching rule.",
        expected=f"a rule (axis_size, in_batched, *args) -> (results, out_batched), set with "
        f"{name}.def_vmap(rule)",
    ))  # fmt: skip


def _captures_mapped(fun: Callable[..., Any]) -> ValueError:
    return ValueError(message(
        "vmap", f"the custom_vmap function {name_of(fun)} closes over a value of the batch, which "
        "its rule would not receive.", hint="pass the value as an argument",
    ))  # fmt: skip


def _check(fun: Any, answer: Any, out_tree: Any, axis: Any, out_avals: Any) -> Any:
    """Return the flat results of a rule and which are mapped, or say what is wrong with them."""
    name = f"custom_vmap: the rule of {name_of(fun)}"
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(
            f"{name} must return a pair (results, out_batched).\n  got       {type(answer)}"
        )
    arrays, tree = flat_arrays(answer[0], name)
    mapped, mapped_tree = xtree.flatten(answer[1])
    for what, found in (("results", tree), ("out_batched", mapped_tree)):
        if found != out_tree:
            raise ValueError(
                f"{name} returned {what} of another structure than the function."
                f"\n  got       {found}\n  expected  {out_tree}"
            )
    for x, m, aval in zip(arrays, mapped, out_avals, strict=True):
        expected = axis.batched_aval(aval) if m else aval
        if x.aval.shape != expected.shape or x.aval.dtype != expected.dtype:
            raise ValueError(
                f"{name} returned a result of the wrong type."
                f"\n  got       {x.aval.str_long()}, out_batched {m}"
                f"\n  expected  {expected.str_long()}"
            )
    return arrays, [bool(m) for m in mapped]


# --- the primitive -----------------------------------------------------------------------------


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, call: ClosedJaxpr, rule: FlatRule) -> Any:
    results, mapped_out = rule(axis, *all_to_front(axis, operands, dims))
    return results, front_dims(mapped_out)


def _jvp(
    handle: JVPHandle, primals: Any, tangents: Any, *, call: ClosedJaxpr, rule: FlatRule
) -> Any:
    mask = nonzero(tangents)
    jvp_call, mask_out = handle.jvp_jaxpr(call, mask, True)
    results = custom_vmap_call_p.bind(
        *primals, *where_true(tangents, mask), call=jvp_call, rule=_jvp_of_rule(handle, rule, mask)
    )
    outs = results[: len(mask_out)]
    return outs, with_zeros(handle, outs, results[len(mask_out) :], mask_out)


def _jvp_of_rule(handle: JVPHandle, rule: FlatRule, mask: Sequence[bool]) -> FlatRule:
    """Return the rule of the derivative: the derivative of the rule."""
    count = len(mask)

    def rule_of_jvp(axis: Any, values: Sequence[Any], mapped: Sequence[bool]) -> Any:
        dots, dots_mapped = iter(values[count:]), iter(mapped[count:])
        primals, tangents, both_mapped = [], [], []
        for x, m, nz in zip(values[:count], mapped[:count], mask, strict=True):
            dot, dot_mapped = (next(dots), next(dots_mapped)) if nz else (None, m)
            either = m or dot_mapped
            primals.append(axis.broadcast(x) if either and not m else x)
            if nz:
                tangents.append(axis.broadcast(dot) if either and not dot_mapped else dot)
            both_mapped.append(either)
        mapped_out: list[bool] = []

        def on_batches(*xs: Any) -> Sequence[Any]:
            outs, outs_mapped = rule(axis, xs, both_mapped)
            mapped_out.extend(outs_mapped)
            return outs

        program = xprim.trace_to_closed(on_batches, [x.aval for x in primals])
        jvp_program, mask_out = handle.jvp_jaxpr(program, mask, True)
        results = eval_closed(jvp_program, *primals, *tangents)
        return results, [*mapped_out, *where_true(mapped_out, mask_out)]

    return rule_of_jvp


def _linearize(handle: LinearizeHandle, primals: Any, tangents: Any, *, call: ClosedJaxpr,
               rule: FlatRule) -> Any:  # fmt: skip
    """Run the program; the tape gets a call that still has a rule, that of the derivative.

    The rule is called with the primals, which the program of that call ignores for its residuals.
    """
    mask = nonzero(tangents)
    split = handle.linearize_jaxpr(call, mask, True)
    results = eval_closed(split.primal, *primals)
    outs = results[: split.num_results]
    residuals = split.residuals(primals, results)
    out_dots = custom_vmap_call_p.bind(
        *primals, *residuals, *where_true(tangents, mask),
        call=_with_ignored_arguments(split.linear, call.in_avals),
        rule=_linear_rule(
            _jvp_of_rule(handle, rule, mask), len(primals), len(residuals), len(outs)
        ),
    ) if any(split.nonzero_out) else ()  # fmt: skip
    return outs, with_zeros(handle, outs, out_dots, split.nonzero_out)


def _with_ignored_arguments(closed: ClosedJaxpr, avals: Sequence[Any]) -> ClosedJaxpr:
    """Return the program with leading arguments that it ignores."""
    return closed.derived(_ignoring, tuple(avals))


def _ignoring(closed: ClosedJaxpr, avals: Sequence[Any]) -> ClosedJaxpr:
    invars = [*[Var(a) for a in avals], *closed.jaxpr.invars]
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


def _linear_rule(
    rule_of_jvp: FlatRule, num_primals: int, num_residuals: int, num_outs: int
) -> FlatRule:
    """Return the rule of the linear part: the tangents that the rule of the derivative gives."""

    def without_residuals(entries: Sequence[Any]) -> list[Any]:
        return [*entries[:num_primals], *entries[num_primals + num_residuals :]]

    def rule(axis: Any, values: Sequence[Any], mapped: Sequence[bool]) -> Any:
        results, mapped_out = rule_of_jvp(
            axis, without_residuals(values), without_residuals(mapped)
        )
        return results[num_outs:], mapped_out[num_outs:]

    return rule


def _with_checks(handle: ChecksHandle, state: Any, operands: Any, *, call: Any, rule: Any) -> Any:
    """Run the program: its own rule is for a batch that came before."""
    return handle.run(call, state, operands)


custom_vmap_call_p = Primitive(
    "custom_vmap_call",
    call_like=True,
    **rules_of_program("call", runs="in_parts", checked=_with_checks),
    jvp=_jvp,
    linearize=_linearize,
    batch=_batch,
)
