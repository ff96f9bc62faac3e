"""What `vjp`, `linearize` and `linear_transpose` return: linear functions that are pytrees.

The leaves are the residuals, what the derivative keeps of the point it was taken at; the rest, a
linear program and the structures of arguments and results, is metadata. So such a function may
leave a `jit`, go into another, be mapped by `vmap`, carried by a `scan`, or be the residuals of a
`custom_vjp` rule.

Neighbours: `vjp` makes them, `linearize` the programs, `transpose` runs them backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import xtree
from xad._linearize import LinearProgram
from xad.gradient_refs import checked_places, placed
from xad.reference_arguments import tangents_and_cells, write_tangents
from xad.tangents import (
    Tangent,
    checked_tangents,
    float0_zeros,
    is_differentiable,
    typed_as,
    zeros_of,
)
from xad.transpose import backward_pass
from xprim import (
    Array,
    ClosedJaxpr,
    Jaxpr,
    Linear,
    Literal,
    ShapedArray,
    Var,
    Zero,
    as_array,
    eval_closed,
    scalar_array,
)
from xprim.cells import Cell
from xprim.errors import ShapeError, message
from xprim.leaves import path_of
from xprim.sharded_types import cotangent, near
from xprim.tracebacks import boundary
from xtree.records import Record, set_once

__all__ = ()


class Signature(Record):
    """From what to what a linear function maps.

    Attributes:
      operation: what made it, for errors.
      in_tree: the structure of the tuple of primals.
      in_avals: the abstract values of the primals.
      out_tree: the structure of the result.
      out_avals: the abstract values of the results.
      references: the numbers of the primals that are references. The values of these afterwards
        follow the results of the linear program.
    """

    __slots__ = __match_args__ = (
        "operation",
        "in_tree",
        "in_avals",
        "out_tree",
        "out_avals",
        "references",
    )
    operation: str
    in_tree: Any
    in_avals: Sequence[ShapedArray]
    out_tree: Any
    out_avals: Sequence[ShapedArray]
    references: tuple[int, ...]

    def __init__(
        self, operation: str, in_tree: Any, in_avals: Sequence[ShapedArray], out_tree: Any,
        out_avals: Sequence[ShapedArray], references: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        set_once(self, "operation", operation)
        set_once(self, "in_tree", in_tree)
        set_once(self, "in_avals", in_avals)
        set_once(self, "out_tree", out_tree)
        set_once(self, "out_avals", out_avals)
        set_once(self, "references", references)


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """A linear function without its residuals: what two calls of a compiled function share."""

    jaxpr: Jaxpr
    nonzero_in: tuple[bool, ...]
    nonzero_out: tuple[bool, ...]
    signature: Signature


class _LinearFunction:
    """A linear program with what its arguments and results look like; a node of trees."""

    __slots__ = ("__weakref__", "_form", "_program", "_signature")

    operation: ClassVar[str]

    def __init__(
        self, program: LinearProgram, signature: Signature, form: _Form | None = None
    ) -> None:
        self._program = program
        self._signature = signature
        self._form = form  # that of the program, when this is no tape, but of plain equations

    def tree_flatten(self) -> tuple[tuple[Any, ...], _Form]:
        """Return the residuals, and the rest."""
        if self._form is None:
            program = self._program
            jaxpr, residuals = _with_scalars_as_constants(program.closed())
            self._form = _Form(jaxpr, program.nonzero_in, program.nonzero_out, self._signature)
            self._program = _program_of(self._form, residuals, program.meshes)
        return tuple(self._program.residuals), self._form

    @classmethod
    def of_program(cls, closed: ClosedJaxpr, signature: Signature) -> Self:
        """Return the function of a program that is linear in all of its arguments."""
        nonzero_in, nonzero_out = (True,) * len(closed.in_avals), (True,) * len(closed.out_avals)
        form = _Form(closed.jaxpr, nonzero_in, nonzero_out, signature)
        return cls.tree_unflatten(form, closed.consts)

    @classmethod
    def tree_unflatten(cls, form: _Form, residuals: Sequence[Any]) -> Self:
        """Return the function with other residuals."""
        return cls(_program_of(form, residuals), form.signature, form)

    def __repr__(self) -> str:
        signature = self._signature
        ins, outs = [", ".join([a.str_short() for a in avals])
                     for avals in (signature.in_avals, signature.out_avals)]  # fmt: skip
        return f"<{type(self).__name__} of {signature.operation}: ({ins}) -> ({outs})>"


def _program_of(
    form: _Form, residuals: Sequence[Any], meshes: tuple[Any, ...] = ()
) -> LinearProgram:
    return LinearProgram(form.jaxpr, residuals, form.nonzero_in, form.nonzero_out, meshes)


def _with_scalars_as_constants(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """Return a tape whose floating scalars, which it holds in place, are constants as well."""
    variable_by_id: dict[int, Var] = {}
    residuals = list(closed.consts)

    def constant(x: Any) -> Any:
        if type(x) is not Literal or not is_differentiable(x.aval):
            return x
        if id(x) not in variable_by_id:
            variable_by_id[id(x)] = Var(x.aval)
            residuals.append(x.value)
        return variable_by_id[id(x)]

    eqns = [eqn.replace(inputs=[constant(x) for x in eqn.inputs]) for eqn in closed.eqns]
    constvars = [*closed.jaxpr.constvars, *variable_by_id.values()]
    return closed.jaxpr.replace(constvars=constvars, eqns=eqns), residuals


def cotangents_of(
    program: LinearProgram, in_avals: Sequence[ShapedArray], cotangents: Sequence[Tangent],
    is_tape: bool = True,
) -> list[Any]:  # fmt: skip
    """Return the cotangent of each primal as an array; integers get zeros of dtype float0."""
    results = iter(active_cotangents_of(program, in_avals, cotangents, is_tape))
    return [next(results) if nz else float0_zeros(a.shape)
            for a, nz in zip(in_avals, program.nonzero_in, strict=True)]  # fmt: skip


def active_cotangents_of(
    program: LinearProgram, in_avals: Sequence[ShapedArray], cotangents: Sequence[Tangent],
    is_tape: bool = True,
) -> list[Any]:  # fmt: skip
    """Return the cotangents of the primals that were differentiated, as arrays of their types.

    Args:
      program: the derivative.
      in_avals: the types of all primals.
      cotangents: of all results.
      is_tape: whether every equation of the program is known to depend on a tangent.
    """
    if program.meshes:
        nowhere = LinearProgram(
            program.jaxpr, program.residuals, program.nonzero_in, program.nonzero_out
        )
        with near(program.meshes):
            return active_cotangents_of(nowhere, in_avals, cotangents, is_tape)
    given = [ct for ct, nz in zip(cotangents, program.nonzero_out, strict=True) if nz]
    avals = [a for a, nz in zip(in_avals, program.nonzero_in, strict=True) if nz]
    args = [Linear(a) for a in avals]
    results = backward_pass(program.jaxpr, program.residuals, args, given, is_tape)
    avals = [a if a.spread is None else cotangent(a) for a in avals]
    return [r if r.aval is a and type(r) is not Zero else typed_as(r, a)
            for r, a in zip(results, avals, strict=True)]  # fmt: skip


@xtree.register_pytree_node_class
class PullBack(_LinearFunction):
    """From a cotangent of the result to a tuple of cotangents of the primals."""

    __slots__ = ()

    @boundary
    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """Pull a cotangent back; integers among the primals get zeros of dtype `float0`."""
        signature = self._signature
        if len(cotangents) != 1:
            raise TypeError(message(
                f"{signature.operation}",
                "the returned function takes one argument, a tree like the result.",
                got=f"{len(cotangents)} arguments", expected=f"{signature.out_tree}",
            ))  # fmt: skip
        if signature.references:
            where = path_of(signature.in_tree, signature.references[0], " at ")
            raise ValueError(message(
                f"{signature.operation}",
                f"the primal{where} is a reference, whose cotangent lies in a reference, too.",
                expected="pull_back.with_refs(...)(cotangent), with a reference there",
                hint="GradValue() asks for the cotangent of an array among the results",
            ))  # fmt: skip
        found: tuple[Any, ...] = xtree.unflatten(signature.in_tree, self._pulled(cotangents[0], ()))
        return found

    def _pulled(self, cotangent: Any, afterwards: Sequence[Tangent]) -> list[Any]:
        """Return cotangents of the primals, given those of the results and of references."""
        signature = self._signature
        cts = checked_tangents(
            cotangent, signature.out_tree, signature.out_avals, signature.operation, "cotangent"
        )
        is_tape = self._form is None
        return cotangents_of(self._program, signature.in_avals, [*cts, *afterwards], is_tape)

    @boundary
    def with_refs(self, *places: Any) -> Callable[[Any], Any]:
        """Return the function that adds cotangents to references instead of returning them.

        A gradient that is summed over many steps is so in one place of memory.

        Args:
          *places: a tree like each primal. A leaf is the reference that the cotangent is added to,
            `GradValue()` for one that is returned, or `DontWant()`. For a primal that is itself a
            reference it has the cotangent of the value afterwards, and gets that of the value
            before: for one that is only read, that is added to, too.

        Returns:
          A function of the cotangent of the result. It returns what this does, with `GradRef()`
          where a reference has the cotangent, and `DidntWant()` where nobody asked for it.

        Raises:
          ValueError: the places have another structure than the primals, or a reference has
            another type than its primal.

        Example:
          >>> from xad import vjp
          >>> from xad.gradient_refs import GradValue
          >>> from xnp.refs import new_ref
          >>> total = new_ref(0.0)
          >>> _, pull_back = vjp(lambda x, y: x * y, 3.0, 5.0)
          >>> add = pull_back.with_refs(total, GradValue())
          >>> for _ in range(2):
          ...     x_bar, y_bar = add(1.0)
          >>> x_bar, float(y_bar), float(total[...])
          (GradRef(), 3.0, 10.0)
        """
        signature = self._signature
        leaves = checked_places(places, signature)

        def pull_back(cotangent: Any) -> Any:
            numbers = signature.references
            cells = {i: leaves[i] for i in numbers if isinstance(leaves[i], Cell)}
            cells = {i: c for i, c in cells.items() if is_differentiable(c.aval)}
            afterwards = [cells[i].value() if i in cells else Zero(signature.in_avals[i])
                          for i in numbers]  # fmt: skip
            cotangents = self._pulled(cotangent, afterwards)
            write_tangents(cells, dict(enumerate(cotangents)))
            return xtree.unflatten(signature.in_tree, placed(cotangents, leaves, numbers))

        return pull_back


@xtree.register_pytree_node_class
class IntegerPullBack(PullBack):
    """The transpose of a linear function of integers, whose cotangents are integers, too."""

    __slots__ = ()

    @boundary
    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """Pull back a tree like the result; each argument of the call is one."""
        signature = self._signature
        given = xtree.structure(cotangents)
        if given != xtree.treedef_tuple((signature.out_tree,)):
            raise ShapeError(message(
                f"{signature.operation}",
                "the cotangents must have the structure of the function's result.", got=f"{given}",
                expected=f"{signature.out_tree}",
            ))  # fmt: skip
        pairs = zip(xtree.leaves(cotangents), signature.out_avals, strict=True)
        cts = [_integer(x, a, signature.operation) for x, a in pairs]
        results = active_cotangents_of(self._program, signature.in_avals, cts, is_tape=False)
        found: tuple[Any, ...] = xtree.unflatten(signature.in_tree, results)
        return found


def _integer(value: Any, aval: ShapedArray, operation: str) -> Array:
    array: Array = scalar_array(value, aval.dtype) if type(value) is int else as_array(value)
    if array.aval.shape != aval.shape or array.aval.dtype != aval.dtype:
        raise ShapeError(message(
            operation, "the cotangent must have the shape and dtype of its primal.",
            got=array.aval.str_long(), expected=aval.strong().str_long(),
        ))  # fmt: skip
    return array


@xtree.register_pytree_node_class
class PushForward(_LinearFunction):
    """From tangents of the primals to the tangent of the result."""

    __slots__ = ()

    @boundary
    def __call__(self, *tangents: Any) -> Any:
        """Push tangents forward; integers among the results get zeros of dtype `float0`."""
        signature = self._signature
        cells: dict[int, Cell] = {}
        if signature.references:
            dots, cells = tangents_and_cells(
                tangents, signature.references, signature.in_tree, signature.in_avals,
                signature.operation,
            )  # fmt: skip
        else:
            dots = checked_tangents(
                tangents, signature.in_tree, signature.in_avals, signature.operation
            )
        residuals, form = self.tree_flatten()
        operands = [d for d, nz in zip(dots, form.nonzero_in, strict=True) if nz]
        with near(self._program.meshes):
            results = iter(eval_closed(ClosedJaxpr(form.jaxpr, residuals), *operands))
        avals = [*signature.out_avals, *[signature.in_avals[i] for i in signature.references]]
        found = [typed_as(next(results), a) if nz else zeros_of(a)
                 for a, nz in zip(avals, form.nonzero_out, strict=True)]  # fmt: skip
        count = len(signature.out_avals)
        write_tangents(cells, dict(zip(signature.references, found[count:], strict=True)))
        return xtree.unflatten(signature.out_tree, found[:count])
