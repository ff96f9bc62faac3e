"""How control flow turns the user's functions into programs, and checks what they return.

The user's functions become jaxprs; what they close over becomes operands. Errors compare the types
of branches, and of a carry before and after one step, leaf by leaf.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
import xtree
from xnp.primitives.table import fill, select_rows
from xprim import Array, ClosedJaxpr, ShapedArray, config, dtypes, promotion, trace_to_jaxpr
from xprim.array import is_shared
from xprim.avals import type_of_by_class
from xprim.errors import LazyNames, argument_names, described, message, place_of
from xprim.kept_programs import KeptPrograms, Staged, stage_with_refs
from xprim.refs import BaseRef, RefUse
from xprim.sharded_types import vary
from xprim.transformed import flat_arrays, name_of, paths_of, unchangeable
from xtree.namespaces import late_import

__all__ = ()

_high_types = late_import("xprim.high_types", "few programs have types of their own")


# -------------------------------------------------------------------------- control flow references
# References among the arguments of functions that control flow calls.
#
# A branch closes over the references among its operands, which is what a function may do with any
# reference. Of a reference that a loop goes along each step has an element of its own: a reference
# of the step, whose last value is one more y; all of them together are what is written to the
# reference in the end.


def close_over_refs(
    functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...], operation: str
) -> tuple[Sequence[Callable[..., Any]], tuple[Any, ...]]:
    """Return functions that close over the references among the operands, and the other operands.

    Raises:
      ValueError: one reference is passed twice.
    """
    leaves, tree = xtree.flatten(operands)
    refs = _refs_in(leaves, operation)
    if not refs:
        return functions, operands

    def closing_over(fun: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            rest = iter(values)
            return fun(
                *tree.unflatten([x if isinstance(x, BaseRef) else next(rest) for x in leaves])
            )

        return functools.wraps(fun)(call) if callable(fun) else fun

    arrays = tuple([x for x in leaves if not isinstance(x, BaseRef)])
    return [closing_over(f) for f in functions], arrays


def along_refs(
    f: Callable[..., Any], xs: Any, run: Callable[[Callable[..., Any], Any], Any],
    skips: tuple[int, ...] | None,
) -> Any:  # fmt: skip
    """Run a scan along arrays among which are references, and write what the steps made of these.

    Args:
      f: from the carry and elements of `xs` to the next carry and a y.
      xs: a tree of arrays and references.
      run: the scan, without references: from the function and its `xs` to the carry and ys.
      skips: where the scan may leave out steps, the shape of the sequences that it does so for by
        themselves. The ys of those are zeros, and their elements stay.
    """
    leaves, tree = xtree.flatten(xs)
    refs = _refs_in(leaves, "scan")
    ran = None if skips is None else fill(skips, True, dtypes.bool_)

    def step(carry: Any, elements: Any) -> Any:
        own = [c.argument(x) if isinstance(c, BaseRef) else x
               for c, x in zip(leaves, elements, strict=True)]  # fmt: skip
        result = f(carry, tree.unflatten(own))
        if not isinstance(result, tuple | list) or len(result) != 2:
            return result  # which raises
        return result[0], (result[1], [x.lend() for x in own if isinstance(x, BaseRef)], ran)

    values = [x.value() if isinstance(x, BaseRef) else x for x in leaves]
    carry, (ys, ends, ran) = run(functools.wraps(f)(step) if callable(f) else f, values)
    for ref, end in zip(refs, ends, strict=True):
        ref.write(end if ran is None else select_rows(ran, end, ref.value()))
    return carry, ys


def check_each_ref_once(tree: Any, operation: str) -> None:
    """Refuse a reference that is given twice: a write to the one would be one to the other."""
    _refs_in(xtree.leaves(tree), operation)


def _refs_in(leaves: Sequence[Any], operation: str) -> list[BaseRef]:
    found = [x for x in leaves if isinstance(x, BaseRef)]
    if len({id(x) for x in found}) < len(found):
        raise ValueError(message(
            operation, f"one {found[0].kind} is used under two names.",
            got=f"a {found[0].kind} that is passed twice",
            expected="each of them once, so that it is clear what a write changes",
        ))  # fmt: skip
    return found


# -------------------------------------------------------------------------- control flow staging
# How control flow turns the user's functions into programs, and checks what they return.
#
# `stage_checked` traces a function of pytrees once and keeps the program for the next call with an
# equal function and equal types, so a loop that is called again does not trace again. Traced values
# from outside become leading operands; a program that has such is not kept, as they are of one
# call.

# Bodies and branches of control flow.
_programs = KeptPrograms(limit=1024)


def value_without_jit(x: Any) -> Any:
    """Return the NumPy value of an array under `config.disable_jit`, or None where it is traced."""
    if not config.values.disable_jit:
        return None
    value = x if type(x) is xprim.ConcreteArray else x.concrete()
    return None if value is None else value.to_host()


def as_traced(tree: Any) -> Any:
    """Return a tree with Arrays for numbers, as the function of a loop or branch is given them.

    What `config.disable_jit` calls then finds the attributes, and the weak types, of traced values.
    """
    return xtree.map(
        lambda x: xprim.as_array(x) if isinstance(x, _NUMBERS) else x, unchangeable(tree)
    )


_NUMBERS = (bool, int, float, complex, np.generic)


def stage_checked(
    fun: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray], *, operation: str,
    what: str, writes_refs: bool = False, users: Callable[..., Any] | None = None,
) -> Staged:  # fmt: skip
    """Trace a function.

    Args:
      fun: takes the children of `in_tree` as its arguments, returns a pytree.
      in_tree: the structure of the tuple of arguments.
      avals: the abstract values of its leaves.
      operation: what errors name.
      what: how errors call the function: `the body`.
      writes_refs: whether it may write outer references, which the asker passes along then.
      users: the user's function, where `fun` is one of ours that calls it, and depends on nothing
        else but the abstract values.
    """
    if not callable(fun):
        raise TypeError(message(operation, f"{what} must be a function.", got=described(fun)))
    known = fun if users is None else users
    around = () if users is None or users is fun else ((what, fun.__qualname__),)
    found = _programs.program_of(
        known, in_tree, avals, lambda: _trace(fun, in_tree, avals, operation, what), around
    )
    if found.refs and not writes_refs:
        raise found.refs[0].ref.write_refused(f"{what} of {operation}")
    return found


def _trace(
    fun: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray], operation: str, what: str
) -> Staged:
    out_trees: list[Any] = []

    def flat(*leaves: Array) -> list[Array]:
        result = fun(*xtree.unflatten(in_tree, leaves))
        results, tree = flatten_carry(result, operation, f"the result of {what}")
        out_trees.append(tree)
        return results

    numbers = range(len(avals))
    names = LazyNames(lambda: argument_names(fun, xtree.unflatten(in_tree, numbers), {}), fun)
    name = name_of(fun, operation)
    uses: list[RefUse] = []
    jaxpr, consts = trace_to_jaxpr(flat, avals, name=name, arg_names=names, refs=uses)
    if uses:
        return stage_with_refs(jaxpr, consts, uses, out_trees[0])
    return Staged(*xprim.close_over(jaxpr, consts), out_trees[0])


def flatten_carry(tree: Any, operation: str, what: str) -> tuple[list[Array], Any]:
    """Return the leaves of a carry, or of the result of a function, as arrays, and its structure.

    Args:
      tree: the carry; a value of a `HiType` has all of its perturbations, as one in a function has.
      operation: what errors name.
      what: how errors call the tree.
    """
    if type_of_by_class:
        tree = _high_types.with_perturbations(tree)
    return flat_arrays(tree, operation, what)


def ref_values(uses: Sequence[RefUse]) -> list[Array]:
    """Return the values that references have where a program begins."""
    return [use.before for use in uses]


def write_refs(uses: Sequence[RefUse], values: Sequence[Array]) -> None:
    """Write the values that references have where a program ends."""
    for use, value in zip(uses, values, strict=True):
        use.ref.write(value)


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Return whether two abstract values are equal but for the weak type."""
    return a.shape == b.shape and a.dtype == b.dtype and a.type_sharding == b.type_sharding


def varying_alike_with(choice: ShapedArray, values: Sequence[Array]) -> list[Array]:
    """Return values that vary over the manual axes over which a choice does.

    Members that choose otherwise run other programs: what these share with the others' has to be
    summed, in derivatives, outside of them.
    """
    return [vary(x, choice.vma, choice.type_sharding.mesh) for x in values]


def retype_varying(
    closed: ClosedJaxpr, avals: Sequence[ShapedArray], choice: ShapedArray
) -> ClosedJaxpr:
    """Return a program for operands that vary over more axes, whose results vary as a choice does.

    Args:
      closed: the program.
      avals: the types of its operands.
      choice: the type of the value that says whether the program runs.
    """

    def run(*args: Array) -> list[Array]:
        return varying_alike_with(choice, xprim.eval_closed(closed, *args))

    return ClosedJaxpr(*trace_to_jaxpr(run, avals, name=closed.jaxpr.name))


def settle_carry(
    stage: Callable[[list[Array]], Staged], carry: list[Array], first: int,
    fits: Callable[[Staged], bool],
) -> tuple[list[Array], Staged]:  # fmt: skip
    """Stage a body, and give the carry types that the body keeps where that can be.

    A weakly typed part gets the dtype that the body makes of it. A part that all members of a mesh
    share, and that the body makes vary from member to member, counts as varying from the start.

    Args:
      stage: stages the body for a carry.
      carry: the first carry.
      first: the number of the first result of the body that is of the next carry.
      fits: whether a body returns a carry of the structure of the first one.

    Returns:
      The carry, and the body staged for it.
    """
    body, is_first = stage(carry), True
    while fits(body):
        outs = body.out_avals[first : first + len(carry)]
        promoted = weak_carry_promoted(carry, outs) if is_first else carry
        promoted = [
            vary(x, out.vma, out.type_sharding.mesh) if out.vma else x
            for x, out in zip(promoted, outs, strict=True)
        ]
        if all(a is b for a, b in zip(promoted, carry, strict=True)):
            mesh = next((x.aval.type_sharding.mesh for x in carry if x.aval.vma), None)
            if mesh is not None:
                body = _with_results_varying(body, first, [x.aval.vma for x in carry], mesh)
            return carry, body
        carry, is_first = promoted, False
        body = stage(carry)
    return carry, body


def _with_results_varying(
    body: Staged, first: int, axes: Sequence[frozenset[Any]], mesh: Any
) -> Staged:
    """Return a body whose results, from the first of some on, vary over these axes, too."""
    outs = body.out_avals[first : first + len(axes)]
    if all(wanted <= out.vma for wanted, out in zip(axes, outs, strict=True)):
        return body

    def run(*args: Array) -> list[Array]:
        results = list(xprim.eval_closed(body.closed, *args))
        for i, wanted in enumerate(axes, first):
            results[i] = vary(results[i], wanted, mesh)
        return results

    jaxpr = trace_to_jaxpr(run, body.closed.in_avals, name=body.closed.jaxpr.name)
    return Staged(ClosedJaxpr(*jaxpr), body.captured, body.out_tree, body.refs, body.read)


def results_varying_alike(bodies: Sequence[Staged]) -> list[Staged]:
    """Return branches each of whose results vary over the axes over which that of any branch does.

    Args:
      bodies: branches with results of one structure.
    """
    if not any(a.vma for body in bodies for a in body.out_avals):
        return list(bodies)
    axes = [frozenset[Any]().union(*[a.vma for a in avals])
            for avals in zip(*[body.out_avals for body in bodies], strict=True)]  # fmt: skip
    mesh = next(a.type_sharding.mesh for body in bodies for a in body.out_avals if a.vma)
    return [_with_results_varying(body, 0, axes, mesh) for body in bodies]


def weak_carry_promoted(carry: Sequence[Array], out_avals: Sequence[ShapedArray]) -> list[Array]:
    """Give weakly typed parts of a carry the dtype that the body makes of them.

    `fori_loop(0, 10, lambda i, x: x + 0.5, 0)` starts from an integer and goes on with floats. From
    the second step on a part may not be weakly typed any more: then it is not from the first one.
    """
    promoted = []
    for x, out in zip(carry, out_avals, strict=True):
        if x.aval.weak_type and not (out.weak_type and same_type(x.aval, out)):
            dtype, weak = promotion.promote((x.dtype, True), (out.dtype, out.weak_type))
            if dtype != x.dtype or not weak:
                x = _convert(x, dtype, weak)
        promoted.append(x)
    return promoted


def pass_through(body: Staged, carry: Sequence[Array], outs: Sequence[Array]) -> list[Array]:
    """Return the last carry; a part that the body hands on as it got it is that of the first one.

    So the loop need not be known to give it back: `vmap` and derivatives see the value itself.

    Args:
      body: takes what it captures, the carry, and more; returns the next carry, and more.
      carry: the first one.
      outs: the results of the loop, of which the last carry comes first.
    """
    ins = body.closed.jaxpr.invars[len(body.captured) :]
    return [
        x if after is before else out
        for x, before, after, out in zip(carry, ins, body.closed.jaxpr.outvars, outs, strict=False)
    ]


def _convert(x: Array, dtype: Any, weak: bool) -> Array:
    """Convert, at once what is known: that is none of the program's equations."""
    convert: Any = xprim.get_primitive("convert_element_type")
    with (
        xprim.ensure_compile_time_eval()
        if type(x) is xprim.ConcreteArray
        else contextlib.nullcontext()
    ):
        result: Any = convert.bind(x, new_dtype=dtype, weak_type=weak)[0]
    if type(x) is xprim.ConcreteArray and is_shared(x):  # a literal in programs, in either dtype
        result = xprim.scalar_array(result.to_host().item(), dtype, weak)
    return result  # type: ignore[no-any-return]


def _hint(wrong: Sequence[tuple[ShapedArray, ShapedArray]]) -> str:
    """Return what makes the types of a carry equal."""
    if all(a.shape != b.shape for a, b in wrong):
        return "a carry keeps its shape from step to step: start with an array of the final size"
    if all(a.type_sharding != b.type_sharding for a, b in wrong):
        return "reshard(x, P(...)) in the function, or of the first carry, makes them equal"
    return ".astype(...) in the function, or on the first carry, makes the dtypes equal"


def check_carry(
    carry_in: Any, carry_out: Any, in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray], operation: str, what: str, fun: Callable[..., Any],
) -> None:  # fmt: skip
    """Check that a body returns a carry of the structure and types of the one it gets.

    Args:
      carry_in: the structure of the carry.
      carry_out: the structure of what the body returned.
      in_avals: the abstract values of the leaves of the carry.
      out_avals: those of what the body returned.
      operation: what errors name.
      what: how errors call the function: `the body`.
      fun: the function, whose place errors tell.

    Raises:
      TypeError: naming the key path, what the body returned and what it got.
    """
    if carry_in != carry_out:
        raise TypeError(message(
            operation, f"{what} must return a carry of the structure that it gets.",
            got=f"{carry_out}", expected=f"{carry_in}", where=place_of(fun),
        ))  # fmt: skip
    wrong = [i for i, (a, b) in enumerate(zip(in_avals, out_avals, strict=True))
             if not same_type(a, b)]  # fmt: skip
    if not wrong:
        return
    paths = paths_of(carry_in)
    got = ", ".join([f"carry{paths[i]}: {out_avals[i].strong().str_long()}" for i in wrong[:3]])
    expected = ", ".join([f"carry{paths[i]}: {in_avals[i].strong().str_long()}" for i in wrong[:3]])
    hint = _hint([(in_avals[i], out_avals[i]) for i in wrong])
    raise TypeError(message(
        operation, f"{what} must return a carry of the types that it gets.", got=got,
        expected=expected, where=place_of(fun), hint=hint,
    ))  # fmt: skip
