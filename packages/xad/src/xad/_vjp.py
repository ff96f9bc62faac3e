"""Reverse and linear modes: `vjp`, `linearize`, `linear_transpose`, `grad`, `value_and_grad`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import (
    Any,
    ClassVar,
    Literal as typing_Literal,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

import xtree
from xad._linearize import LinearProgram, linearize_flat, zero_absorbing
from xad.arguments import (
    ArgNums,
    FlatFunction,
    as_tangents,
    check_reduce_axes,
    check_reverse_arguments,
    flat_arguments,
    flatten_differentiated,
    normalize_argnums,
    split_tangents_and_refs,
    write_tangents,
)
from xad.pull_backs import (
    DontWant,
    NotNeeded,
    NotSaveable,
    check_places,
    flags_of,
    flatten_saved,
    literals_shown,
    mirror_tree,
    place_cotangents,
    residual_entries,
    restore,
)
from xad.tangents import (
    Tangent,
    check_tangents,
    is_differentiable,
    retype_as,
    zeros_of,
)
from xad.transpose import backward_pass
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Jaxpr,
    Linear,
    Literal,
    ShapedArray,
    Var,
    Zero,
    as_array,
    dtypes,
    eval_closed,
    scalar_array,
    stage,
    typeof,
)
from xprim.errors import ShapeError, described, message, place_of
from xprim.refs import BaseRef
from xprim.sharded_types import cotangent, near
from xprim.tracebacks import boundary, shorten
from xprim.transformed import check_function, find, path_of, transformed, transforming
from xprim.typing import AxisName, PyTree
from xtree.namespaces import late_import
from xtree.records import Immutable, Record, set_once

__all__ = ()

_backward_logs = late_import("xad.backward_logs", "few rules log")


# ------------------------------------------------------------------------------ linear functions
# What `vjp`, `linearize` and `linear_transpose` return: linear functions that are pytrees.
#
# The leaves are the residuals, what the derivative keeps of the point it was taken at; the rest,
# a linear program and the structures of arguments and results, is metadata. So such a function
# may leave a `jit`, go into another, be mapped by `vmap`, carried by a `scan`, or be the
# residuals of a `custom_vjp` rule.


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

    operation: str
    in_tree: Any
    in_avals: Sequence[ShapedArray]
    out_tree: Any
    out_avals: Sequence[ShapedArray]
    references: tuple[int, ...] = ()


class _Form(Immutable):
    """A linear function without its residuals: what two calls of a compiled function share."""

    __slots__ = (
        "jaxpr", "meshes", "nonzero_in", "nonzero_out", "numbers", "same_as", "signature",
    )  # fmt: skip
    jaxpr: Jaxpr
    nonzero_in: tuple[bool, ...]
    nonzero_out: tuple[bool, ...]
    signature: Signature
    numbers: tuple[int, ...]  # of the primal that each residual of a pull-back is, or -1
    same_as: Sequence[int]  # for each primal, the number of the last one that is the same array
    meshes: Mapping[Var, tuple[Any, ...]]

    def __init__(
        self, jaxpr: Jaxpr, nonzero_in: tuple[bool, ...], nonzero_out: tuple[bool, ...],
        signature: Signature, numbers: tuple[int, ...], same_as: Sequence[int],
        meshes: Mapping[Var, tuple[Any, ...]] | None = None,
    ) -> None:  # fmt: skip
        set_once(self, "jaxpr", jaxpr)
        set_once(self, "nonzero_in", nonzero_in)
        set_once(self, "nonzero_out", nonzero_out)
        set_once(self, "signature", signature)
        set_once(self, "numbers", numbers)
        set_once(self, "same_as", same_as)
        set_once(self, "meshes", {} if meshes is None else meshes)

    def flatten_shown(self) -> tuple[list[Any], Any]:
        """Return the variables and literals of the structured residuals, and their structure."""
        return xtree.flatten(residual_entries(self.jaxpr))


class _LinearFunction:
    """A linear program with what its arguments and results look like; a node of trees."""

    __slots__ = ("__weakref__", "_form", "_held", "_program", "_signature")

    operation: ClassVar[str]

    def __init__(
        self, program: LinearProgram, signature: Signature, form: _Form | None = None,
        held: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self._program = program
        self._signature = signature
        self._form = form  # that of the program, when this is not a tape, but of plain equations
        self._held = held  # by `_refer_to_primals`, for a tape

    def tree_flatten(self) -> tuple[tuple[Any, ...], _Form]:
        """Return the residuals, and the rest."""
        if self._form is None:
            program = self._program
            jaxpr, residuals = _with_scalars_as_constants(program.as_program())
            primals = [x() if type(x) is weakref.ref else x for x in self._held]
            last = {key: i for i, x in enumerate(primals) if x is not None
                    for key in _identities(x)}  # fmt: skip
            numbers = tuple([max([last.get(key, -1) for key in _identities(x)]) for x in residuals])
            same_as = [i if x is None else max([last[key] for key in _identities(x)])
                       for i, x in enumerate(primals)]  # fmt: skip
            self._held = ()
            self._form = _Form(jaxpr, program.nonzero_in, program.nonzero_out, self._signature,
                               numbers, same_as, program.meshes)  # fmt: skip
            self._program = _program_of(self._form, residuals)
        return tuple(self._program.residuals), self._form

    @classmethod
    def of_program(cls, closed: ClosedJaxpr, signature: Signature) -> Self:
        """Return the function of a program that is linear in all of its arguments."""
        nonzero_in, nonzero_out = (True,) * len(closed.in_avals), (True,) * len(closed.out_avals)
        numbers = (-1,) * len(closed.consts)  # no residual is a primal: the program is staged
        form = _Form(closed.jaxpr, nonzero_in, nonzero_out, signature, numbers,
                     range(len(nonzero_in)))  # fmt: skip
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


def _are_equal(x: Any, y: Any) -> bool:
    """Return whether a value is one that is known, or an array of equal elements."""
    if x is y:
        return True
    mine, other = as_array(x), as_array(y)
    if type(mine) is not ConcreteArray or type(other) is not ConcreteArray:
        return False
    return bool((mine.to_host() == other.to_host()).all())


def _refer_to_primals(program: LinearProgram, leaves: Sequence[Any]) -> list[Any]:
    """Return each primal that is a residual, a reference to the elements of each other, or None.

    A kernel holds the elements of an array without the array; whether it does is found out when it
    matters. The reference is weak: elements that nothing else holds are of no residual.
    """
    residual_ids = set(map(id, program.residuals))
    return [
        x if id(x) in residual_ids
        else weakref.ref(x.host) if type(x) is ConcreteArray and x.host is not None
        else None
        for x in leaves
    ]  # fmt: skip


def _identities(x: Any) -> tuple[int, ...]:
    """Return the id of an array, and that of its elements, which a kernel has without the array."""
    if type(x) is not ConcreteArray or x.host is None:
        return (id(x),)
    return id(x), id(x.host)


def _program_of(form: _Form, residuals: Sequence[Any]) -> LinearProgram:
    return LinearProgram(form.jaxpr, residuals, form.nonzero_in, form.nonzero_out, form.meshes)


def _with_scalars_as_constants(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """Return a tape whose floating scalars, which it holds in place, are constants as well."""
    variable_by_id: dict[int, Var] = {}
    residuals = list(closed.consts)

    def constant(x: Any, eqn: Equation) -> Any:
        if type(x) is not Literal:
            return x
        if not is_differentiable(x.aval) and not any(x is shown for shown in literals_shown(eqn)):
            return x
        if id(x) not in variable_by_id:
            variable_by_id[id(x)] = Var(x.aval)
            residuals.append(x.value)
        return variable_by_id[id(x)]

    eqns = [eqn.replace(inputs=[constant(x, eqn) for x in eqn.inputs]) for eqn in closed.eqns]
    constvars = [*closed.jaxpr.constvars, *variable_by_id.values()]
    return closed.jaxpr.replace(constvars=constvars, eqns=eqns), residuals


def cotangents_of(
    program: LinearProgram, in_avals: Sequence[ShapedArray], cotangents: Sequence[Tangent],
    is_tape: bool = True, unwanted: Collection[int] = (),
) -> list[Any]:  # fmt: skip
    """Return the cotangent of each primal as an array; integers get zeros of dtype float0."""
    results = iter(active_cotangents_of(program, in_avals, cotangents, is_tape, unwanted))
    return [next(results) if nz else zeros_of(a)
            for a, nz in zip(in_avals, program.nonzero_in, strict=True)]  # fmt: skip


def active_cotangents_of(
    program: LinearProgram, in_avals: Sequence[ShapedArray], cotangents: Sequence[Tangent],
    is_tape: bool = True, unwanted: Collection[int] = (),
) -> list[Any]:  # fmt: skip
    """Return the cotangents of the primals that were differentiated, as arrays of their types.

    Args:
      program: the derivative.
      in_avals: the types of all primals.
      cotangents: of all results.
      is_tape: whether every equation of the program is known to depend on a tangent.
      unwanted: the numbers of primals whose cotangents are not read and may be zeros.
    """
    given = [ct for ct, nz in zip(cotangents, program.nonzero_out, strict=True) if nz]
    avals = [a for a, nz in zip(in_avals, program.nonzero_in, strict=True) if nz]
    args = [Linear(a) for a in avals]
    meshes, jaxpr = program.meshes, program.jaxpr
    dropped: Collection[Var] = ()
    if unwanted:
        numbers = [i for i, nz in enumerate(program.nonzero_in) if nz]
        dropped = [v for v, i in zip(jaxpr.invars, numbers, strict=True) if i in unwanted]
    results = backward_pass(
        jaxpr, program.residuals, args, given, is_tape, meshes=meshes, unwanted=dropped
    )
    avals = [a if a.type_sharding is None else cotangent(a) for a in avals]
    found = []
    for v, ct, aval in zip(jaxpr.invars, results, avals, strict=True):
        if ct.aval is not aval or type(ct) is Zero:
            with near(meshes.get(v, ())):
                ct = retype_as(ct, aval)
        found.append(ct)
    return found


@xtree.register_pytree_node_class
class PullBack(_LinearFunction):
    """From a cotangent of the result to a tuple of cotangents of the primals.

    What it saves of the forward pass can be looked at and edited: `args_res` holds the arguments
    that the backward pass needs as they were, `structured_residuals` what rules say to show of
    their residuals, `opaque_residuals` what else was computed.
    """

    __slots__ = ("_edited",)
    _edited: dict[str, Any]

    def tree_flatten(self) -> tuple[tuple[Any, ...], _Form]:
        """Return the residuals, and the rest."""
        residuals, form = super().tree_flatten()
        if not hasattr(self, "_edited"):
            return residuals, form
        edited = self._edited
        values = flatten_saved(edited["args_res"], len(form.signature.in_avals))
        shown = self._values_by_number(form)
        rest = iter(edited["opaque_residuals"])
        opaque = [n < 0 and i not in shown for i, n in enumerate(form.numbers)]
        if len(edited["opaque_residuals"]) != sum(opaque):
            raise ValueError(message(
                "vjp: opaque_residuals", "their number is fixed.",
                got=f"{len(edited['opaque_residuals'])}", expected=f"{sum(opaque)}",
            ))  # fmt: skip
        return tuple([
            shown[i] if i in shown else next(rest) if is_opaque else values[n]
            for i, (n, is_opaque) in enumerate(zip(form.numbers, opaque, strict=True))
        ]), form  # fmt: skip

    def _values_by_number(self, form: _Form) -> dict[int, Any]:
        """Return the structured residuals by number, as they are after they were edited.

        Raises:
          ValueError: they have another structure; or a number that is a constant of a compiled
            call is another one.
        """
        values = self._edited["structured_residuals"]
        expected, tree = form.flatten_shown()
        found, given = xtree.flatten(values)
        if given != tree:
            raise ValueError(message(
                "vjp: structured_residuals", "their structure is fixed.", got=f"{given}",
                expected=f"{tree}",
            ))  # fmt: skip
        for atom, value in zip(expected, found, strict=True):
            if type(atom) is Literal and not _are_equal(value, atom.value):
                raise ValueError(message(
                    "vjp: structured_residuals", "a constant of a call cannot be edited.",
                    got=described(value), expected=f"{atom.value}",
                ))  # fmt: skip
        pairs = zip(self._numbers_of(expected, form), found, strict=True)
        return {number: as_array(value) for number, value in pairs if number >= 0}

    @staticmethod
    def _numbers_of(atoms: Sequence[Any], form: _Form) -> list[int]:
        """Return which residual each variable is; -1 for a literal."""
        number = {v: i for i, v in enumerate(form.jaxpr.constvars)}
        return [-1 if type(x) is Literal else number[x] for x in atoms]

    def residual_numbers(self) -> list[Any]:
        """Return trees like `structured_residuals` of the numbers of the leaves of this."""
        _, form = super().tree_flatten()
        atoms, tree = form.flatten_shown()
        entries: list[Any] = xtree.unflatten(tree, self._numbers_of(atoms, form))
        return entries

    def _save(self) -> dict[str, Any]:
        """Return what can be edited, which is the state from now on."""
        if not hasattr(self, "_edited"):
            residuals, form = super().tree_flatten()
            pairs = list(zip(residuals, form.numbers, strict=True))
            value_by_number = {n: x for x, n in pairs if n >= 0}
            leaves = [value_by_number.get(i, NotNeeded()) for i in form.same_as]
            by_variable = dict(zip(form.jaxpr.constvars, residuals, strict=True))
            atoms, tree = form.flatten_shown()
            shown = {x for x in atoms if type(x) is Var}
            self._edited = {
                "args_res": list(mirror_tree(form.signature.in_tree, leaves)),
                "opaque_residuals": [
                    x for v, (x, n) in zip(form.jaxpr.constvars, pairs, strict=True)
                    if n < 0 and v not in shown
                ],
                "structured_residuals": xtree.unflatten(
                    tree, [x.value if type(x) is Literal else by_variable[x] for x in atoms]
                ),
            }  # fmt: skip
        return self._edited

    @property
    def args_res(self) -> Any:
        """The arguments that the backward pass needs as they were, in a list of trees like them.

        `NotNeeded()` stands for one that it does not need, `NotSaveable()` for one that it needs
        and `saveable_args` left out: put it back before the call. A tuple stands for a node of
        the arguments that is not a list, dictionary or tuple. The list can be edited, or assigned.
        """
        return self._save()["args_res"]

    @args_res.setter
    def args_res(self, values: Any) -> None:
        self._edited = self._save() | {"args_res": values}

    @property
    def opaque_residuals(self) -> list[Any]:
        """What the forward pass computed for the backward pass: a list that can be edited."""
        found: list[Any] = self._save()["opaque_residuals"]
        return found

    @opaque_residuals.setter
    def opaque_residuals(self, values: list[Any]) -> None:
        if not isinstance(values, list | tuple):
            raise TypeError(message(
                "vjp: opaque_residuals", "it must be a list of arrays.", got=described(values)
            ))  # fmt: skip
        self._edited = self._save() | {"opaque_residuals": list(values)}

    @property
    def structured_residuals(self) -> list[Any]:
        """What rules say to show of their residuals: a list of trees that can be edited.

        A rule of `custom_vjp` does so by `structured_residuals.structure_residuals`, an operation
        with rules as methods by the fourth thing that its forward rule returns. The rules come in
        the order in which they ran. Those inside a call of a program, of `jit` or `scan`, are in a
        list of their own; those of a compiled `cond` in a `backward_logs.CondSum`. What a
        checkpoint computes again is not listed.
        """
        found: list[Any] = self._save()["structured_residuals"]
        return found

    @structured_residuals.setter
    def structured_residuals(self, values: list[Any]) -> None:
        self._edited = self._save() | {"structured_residuals": values}

    def replace(self, **saved: Any) -> Self:
        """Return this with other values of what it saves.

        Args:
          **saved: any of `args_res`, `opaque_residuals` and `structured_residuals`.

        Raises:
          TypeError: for another name.
        """
        unknown = sorted(saved.keys() - self._save().keys())
        if unknown:
            raise TypeError(message(
                "vjp: replace", f"unknown attribute {unknown[0]!r}.",
                expected="args_res, opaque_residuals, structured_residuals",
            ))  # fmt: skip
        residuals, form = self.tree_flatten()
        copied = self.tree_unflatten(form, residuals)
        for name, values in saved.items():
            setattr(copied, name, values)
        return copied

    @property
    def in_tree(self) -> Any:
        """The structure of the tuple of primals."""
        return self._signature.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._signature.out_tree

    @property
    def out_nzs(self) -> Any:
        """Booleans in a tree like the result: whether each depends on what is differentiated."""
        return mirror_tree(self.out_tree, self._program.nonzero_out)

    def leave_out(self, is_saveable: Sequence[bool]) -> None:
        """Put `NotSaveable()` in place of the residuals that are primals not to be saved."""
        residuals, form = self.tree_flatten()
        pairs = zip(residuals, form.numbers, strict=True)
        held = [x if n < 0 or is_saveable[n] else NotSaveable() for x, n in pairs]
        self._program = _program_of(form, held)

    def _complete_program(self) -> LinearProgram:
        """Return the program with the residuals that `args_res` has now.

        Raises:
          ValueError: some were left out and not put back.
        """
        edited = hasattr(self, "_edited")
        if not edited and NotSaveable not in map(type, self._program.residuals):
            return self._program
        residuals, form = self.tree_flatten()
        tree, avals = form.signature.in_tree, form.signature.in_avals
        pairs = zip(residuals, form.numbers, strict=True)
        complete = [x if n < 0 else restore(x, n, tree, avals) for x, n in pairs]
        if edited:
            self._check_shown(form)
        return _program_of(form, complete)

    def _check_shown(self, form: _Form) -> None:
        """Raise ValueError for a structured residual that was edited to another type."""
        values, tree = xtree.flatten(self._edited["structured_residuals"])
        atoms, _ = form.flatten_shown()
        for i, (atom, value) in enumerate(zip(atoms, values, strict=True)):
            expected, given = atom.aval, typeof(value)
            if (given.shape, given.dtype) != (expected.shape, expected.dtype):
                raise ValueError(message(
                    "vjp: structured_residuals",
                    f"the value at {path_of(tree, i)} is of another type than it was.",
                    got=described(value), expected=expected.strong().str_long(),
                ))  # fmt: skip

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
                f"the primal{where} is a reference, whose cotangent is held by a reference, too.",
                expected="pull_back.with_refs(...)(cotangent), with a reference there",
                hint="GradValue() requests the cotangent of an array among the results",
            ))  # fmt: skip
        found: tuple[Any, ...] = xtree.unflatten(
            signature.in_tree, self._pull_back(cotangents[0], ())
        )
        return found

    def _pull_back(
        self, cotangent: Any, afterwards: Sequence[Tangent], unwanted: Collection[int] = ()
    ) -> list[Any]:
        """Return cotangents of the primals, given those of the results and of references."""
        signature = self._signature
        cts = check_tangents(
            cotangent, signature.out_tree, signature.out_avals, signature.operation, "cotangent"
        )
        program = self._complete_program()
        is_tape = self._form is None
        given = [*cts, *afterwards]
        return cotangents_of(program, signature.in_avals, given, is_tape, unwanted)

    def with_logs(self, cotangent: Any) -> tuple[tuple[Any, ...], dict[Hashable, Any]]:
        """Pull a cotangent back, and return the cotangents of the primals and what rules logged.

        Backward rules log by `custom_vjp.defvjp_with_logs` or `backward_logs.log`. What is logged
        inside of a `scan` is stacked along its steps; a compiled `cond` gives a
        `backward_logs.CondSum`.

        Args:
          cotangent: a tree like the result.

        Raises:
          ValueError: two rules logged under one name.
        """
        cotangents, logs = _backward_logs.collect(self, cotangent)
        return cotangents, logs

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
          where a reference has the cotangent, and `DidntWant()` where it is not requested.

        Raises:
          ValueError: the places have another structure than the primals, or a reference has
            another type than its primal.

        Example:
          >>> from xad import vjp
          >>> from xad.pull_backs import GradValue
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
        leaves = check_places(places, signature)

        def pull_back(cotangent: Any) -> Any:
            numbers = signature.references
            refs = {i: leaves[i] for i in numbers if isinstance(leaves[i], BaseRef)}
            refs = {i: c for i, c in refs.items() if is_differentiable(c.aval)}
            afterwards = [refs[i].value() if i in refs else Zero(signature.in_avals[i])
                          for i in numbers]  # fmt: skip
            unwanted = [i for i, place in enumerate(leaves) if isinstance(place, DontWant)]
            cotangents = self._pull_back(cotangent, afterwards, unwanted)
            write_tangents(refs, dict(enumerate(cotangents)))
            return xtree.unflatten(signature.in_tree, place_cotangents(cotangents, leaves, numbers))

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
                "unexpected tree structure: the cotangents must have the structure of the "
                "function's result.", got=f"{given}",
                expected=f"{signature.out_tree}",
            ))  # fmt: skip
        pairs = zip(xtree.leaves(cotangents), signature.out_avals, strict=True)
        cts = [_integer(x, a, signature.operation) for x, a in pairs]
        program = self._complete_program()
        results = active_cotangents_of(program, signature.in_avals, cts, is_tape=False)
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
        refs: dict[int, BaseRef] = {}
        if signature.references:
            dots, refs = split_tangents_and_refs(
                tangents, signature.references, signature.in_tree, signature.in_avals,
                signature.operation,
            )  # fmt: skip
        else:
            dots = check_tangents(
                tangents, signature.in_tree, signature.in_avals, signature.operation
            )
        residuals, form = self.tree_flatten()
        operands = [d for d, nz in zip(dots, form.nonzero_in, strict=True) if nz]
        with near(self._program.meshes_of_all):
            results = iter(eval_closed(ClosedJaxpr(form.jaxpr, residuals), *operands))
        avals = [*signature.out_avals, *[signature.in_avals[i] for i in signature.references]]
        found = [retype_as(next(results), a) if nz else zeros_of(a)
                 for a, nz in zip(avals, form.nonzero_out, strict=True)]  # fmt: skip
        count = len(signature.out_avals)
        write_tangents(refs, dict(zip(signature.references, found[count:], strict=True)))
        return as_tangents(signature.out_tree, found[:count])


# ------------------------------------------------------------------------------------------- vjp
# Reverse and linear modes as functions: `vjp`, `fwd_and_bwd`, `linearize`, `linear_transpose`.

T = TypeVar("T")
Aux = TypeVar("Aux")


@overload
def vjp(
    fun: Callable[..., T], *primals: Any, has_aux: typing_Literal[False] = ...,
    reduce_axes: Sequence[Any] = ..., saveable_args: PyTree = ..., in_nzs: PyTree | None = ...,
) -> tuple[T, PullBack]: ...  # fmt: skip
@overload
def vjp(
    fun: Callable[..., tuple[T, Aux]], *primals: Any, has_aux: typing_Literal[True],
    reduce_axes: Sequence[Any] = ..., saveable_args: PyTree = ..., in_nzs: PyTree | None = ...,
) -> tuple[T, PullBack, Aux]: ...  # fmt: skip
@overload
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool, reduce_axes: Sequence[Any] = ...,
    saveable_args: PyTree = ..., in_nzs: PyTree | None = ...,
) -> tuple[Any, ...]: ...  # fmt: skip
@boundary
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True, in_nzs: PyTree | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Evaluate a function and return its result with the function that pulls cotangents back.

    For a function with Jacobian `J` at `primals` the returned function maps a cotangent `v` of the
    result to `v J`, a cotangent of each primal.

    Args:
      fun: a function of pytrees of arrays.
      *primals: where to evaluate it. A reference among them is written as `fun` writes it; its
        cotangent is a reference, too, which `vjp_fun.with_refs` takes.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      reduce_axes: must be empty (JAX's experimental argument).
      saveable_args: whether `vjp_fun` may hold a primal that the backward pass needs as it was: a
        boolean, or a tuple with one for each primal (or with such a tuple for its children). Those
        that it may not hold are to be put back into `vjp_fun.args_res` before it is called.
      in_nzs: whether to differentiate with respect to a primal, as for `saveable_args`; None means
        all. The others have zeros for cotangents, and `vjp_fun.out_nzs` says which results depend
        on a primal that is differentiated.

    Returns:
      `(result, vjp_fun)`, or `(result, vjp_fun, auxiliary)` with `has_aux`. `vjp_fun` takes a tree
      like the result and returns a tuple with a tree like each primal; it can be called again. It
      is a pytree, whose leaves are what it keeps of the point, so it may leave `jit` or be mapped.
      `vjp_fun.args_res` holds the primals that it keeps, `vjp_fun.opaque_residuals` the rest.

    Raises:
      ValueError: `saveable_args` or `in_nzs` do not fit the primals.

    Example:
      >>> from xad import vjp
      >>> y, pull_back = vjp(lambda x: x * x, 3.0)
      >>> float(pull_back(1.0)[0])
      6.0

      The weights are left out of what is saved, and put back before the backward pass:

      >>> import xnp
      >>> w, x = xnp.ones((2, 2)), xnp.ones(2)
      >>> y, pull_back = vjp(xnp.matmul, w, x, saveable_args=(False, True))
      >>> pull_back.args_res
      [NotSaveable(), Array([1., 1.], dtype=float32)]
      >>> pull_back.args_res[0] = w
      >>> print(pull_back(y)[1])
      [4. 4.]
    """
    check_reduce_axes(reduce_axes, "vjp")
    result = _with_derivative("vjp", PullBack, fun, primals, has_aux, in_nzs)
    if saveable_args is not True:
        pull_back = result[1]
        pull_back.leave_out(flags_of(saveable_args, pull_back.in_tree, "vjp: saveable_args"))
    return result


@boundary
def fwd_and_bwd(
    fun: Callable[..., Any], argnums: ArgNums, has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the forward and the backward pass of a function as two functions.

    What `vjp` does at a point, made once: for steps whose two halves are compiled apart, each one
    time.

    Args:
      fun: a function of pytrees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      jitted: whether both are compiled; without `xjit` they never are.

    Returns:
      `fwd` and `bwd`. `fwd` takes the arguments of `fun` and returns `(result, residuals)`, or
      `(result, residuals, auxiliary)` with `has_aux`. `bwd(residuals, cotangent)` returns the
      cotangent of the argument `argnums`, a tuple of such when `argnums` is a sequence.

    Raises:
      ValueError: when `fwd` is called with fewer arguments than `argnums` names.

    Example:
      >>> from xad import fwd_and_bwd
      >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
      >>> y, residuals = fwd(3.0, 5.0)
      >>> [float(x_bar) for x_bar in bwd(residuals, 2.0)]
      [10.0, 6.0]
    """
    check_function(fun, "fwd_and_bwd")

    def fwd(*args: Any, **kwargs: Any) -> Any:
        _, numbers = normalize_argnums(argnums, len(args), "fwd_and_bwd")

        def of_selected(*selected: Any) -> Any:
            full = list(args)
            for i, value in zip(numbers, selected, strict=True):
                full[i] = value
            return fun(*full, **kwargs)

        return vjp(of_selected, *[args[i] for i in numbers], has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents[0] if hasattr(argnums, "__index__") else cotangents

    jit = find("jit") if jitted else None
    return (fwd, bwd) if jit is None else (jit(fwd), jit(bwd))


@overload
def linearize(
    fun: Callable[..., T], *primals: Any, has_aux: typing_Literal[False] = ...,
    in_nzs: PyTree | None = ...,
) -> tuple[T, Callable[..., T]]: ...  # fmt: skip
@overload
def linearize(
    fun: Callable[..., tuple[T, Aux]], *primals: Any, has_aux: typing_Literal[True],
    in_nzs: PyTree | None = ...,
) -> tuple[T, Callable[..., T], Aux]: ...  # fmt: skip
@overload
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool, in_nzs: PyTree | None = ...
) -> tuple[Any, ...]: ...
@boundary
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: PyTree | None = None
) -> tuple[Any, ...]:
    """Evaluate a function and return its result with its derivative as a linear function.

    Args:
      fun: a function of pytrees of arrays.
      *primals: where to evaluate it. The tangent of a reference is a reference, with the tangent
        of the value before; `jvp_fun` writes there that of the value afterwards.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.
      in_nzs: whether to differentiate with respect to a primal, as for `vjp`; None means all. The
        tangents of the others are ignored.

    Returns:
      `(result, jvp_fun)`, or `(result, jvp_fun, auxiliary)`. `jvp_fun` maps tangents of the primals
      to the tangent of the result without evaluating `fun` again; it is a pytree as that of `vjp`.

    Example:
      >>> from xad import linearize
      >>> y, push_forward = linearize(lambda x: x * x, 3.0)
      >>> float(push_forward(1.0))
      6.0
    """
    return _with_derivative("linearize", PushForward, fun, primals, has_aux, in_nzs)


def _with_derivative(
    operation: str, kind: Callable[..., Any], fun: Callable[..., Any],
    primals: tuple[Any, ...], has_aux: bool, in_nzs: PyTree | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Evaluate a function; return its result with its derivative, a function of a kind."""
    flat, leaves, in_tree = flat_arguments(fun, primals, operation=operation, has_aux=has_aux)
    in_avals = [x.aval for x in leaves]
    active = [is_differentiable(a) for a in in_avals]
    if in_nzs is not None:
        flags = flags_of(in_nzs, in_tree, f"{operation}: in_nzs")
        active = [a and b for a, b in zip(active, flags, strict=True)]
    outs, program = linearize_flat(flat, leaves, active)
    held = _refer_to_primals(program, leaves)
    references = () if flat.references is None else tuple(flat.references.refs)
    outs = flat.results_of(outs)
    out_avals = [x.aval for x in outs]
    signature = Signature(operation, in_tree, in_avals, flat.out_tree, out_avals, references)
    derivative = kind(program, signature, held=held)
    result = xtree.unflatten(flat.out_tree, outs)
    return (result, derivative, flat.aux) if has_aux else (result, derivative)


@boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[AxisName] = ()
) -> Callable[..., tuple[Any, ...]]:
    """Return the transpose of a function that is linear in all of its arguments.

    For `f(x) = A x` the result maps `y` to `A^T y`. The function is staged, not evaluated; only
    the shapes and dtypes of `primals` are used.

    Args:
      fun: a linear function of pytrees of arrays.
      *primals: arrays or `ShapeDtypeStruct` objects of the arguments' shapes and dtypes.
      reduce_axes: must be empty (JAX's experimental argument).

    Returns:
      A function from a tree like the result of `fun` to a tuple of trees like the arguments.

    Raises:
      TypeError: for booleans, and where some arguments and results are integers and some are not;
        `MissingRuleError` when `fun` is not linear.
    """
    check_reduce_axes(reduce_axes, "linear_transpose")
    check_function(fun, "linear_transpose")
    in_leaves, in_tree = xtree.flatten(primals)
    in_avals = [typeof(x) for x in in_leaves]
    closed, out_tree = stage(fun, primals, {}, operation="linear_transpose")
    of_integers = all(dtypes.is_integer(a.dtype) for a in [*in_avals, *closed.out_avals])
    if not of_integers and not all(map(is_differentiable, in_avals)):
        raise TypeError(message(
            "linear_transpose",
            "arguments must be floating or complex, or integers as all results.",
            got=f"({', '.join([a.str_long() for a in in_avals])}) -> "
            f"({', '.join([a.str_long() for a in closed.out_avals])})",
        ))  # fmt: skip
    signature = Signature("linear_transpose", in_tree, in_avals, out_tree, closed.out_avals)
    return (IntegerPullBack if of_integers else PullBack).of_program(closed, signature)


# ------------------------------------------------------------------------------------------ grad
# Gradients of scalar functions: `grad` and `value_and_grad`.

P = ParamSpec("P")
R = TypeVar("R")

_NOTHING = xtree.structure(None)


@boundary
def grad(
    fun: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    zero_absorbing: bool | None = None,
) -> Callable[P, Any]:
    """Return a function that computes the gradient of a scalar function.

    For `f: R^n -> R` the gradient at `x` is the vector of partial derivatives, computed by reverse
    mode: one evaluation of `f` that records its derivative, and one pass backwards over the record.

    Args:
      fun: a function whose result is a scalar of a floating dtype; its arguments are pytrees.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair `(scalar, auxiliary)`, of which the second is passed
        through.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      allow_int: whether to accept integer arguments, whose gradient is zero of dtype `float0`.
      reduce_axes: must be empty (JAX's experimental argument).
      zero_absorbing: whether cotangents that are zero stay zero through infinite or NaN
        derivatives, so that a branch of `where` that is not selected gives no NaN. None takes
        `config.zero_absorbing`. It costs a comparison and a selection for each product.

    Returns:
      A function of the same arguments. Its result has the structure of argument `argnums` (a tuple
      of such when `argnums` is a tuple), followed by the auxiliary output when `has_aux`.

    Raises:
      TypeError: when the result is not a floating scalar, or an argument is not of floating dtype.

    Example:
      >>> from xad import grad
      >>> float(grad(lambda x: x * x)(3.0))
      6.0
    """
    check_reduce_axes(reduce_axes, "grad")
    value_and_gradient = value_and_grad_of(
        fun, argnums, has_aux, holomorphic, allow_int, "grad", zero_absorbing
    )

    @transforming(fun, "grad")
    def gradient(*args: Any, **kwargs: Any) -> Any:
        try:
            value, grads = value_and_gradient(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise
        return (grads, value[1]) if has_aux else grads

    return gradient


@boundary
def value_and_grad(
    fun: Callable[P, R],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    zero_absorbing: bool | None = None,
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes both `fun` and its gradient, evaluating `fun` once.

    Args and errors are those of `grad`.

    Returns:
      A function of the same arguments that returns `(value, gradient)`; with `has_aux` the value is
      the pair that `fun` returns.

    Example:
      >>> from xad import value_and_grad
      >>> value, gradient = value_and_grad(lambda x: x * x)(3.0)
      >>> float(value), float(gradient)
      (9.0, 6.0)
    """
    check_reduce_axes(reduce_axes, "value_and_grad")
    value_and_gradient = value_and_grad_of(
        fun, argnums, has_aux, holomorphic, allow_int, "value_and_grad", zero_absorbing
    )
    return transformed(boundary(value_and_gradient), fun, "value_and_grad")


def value_and_grad_of(
    fun: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    operation: str,
    absorbs: bool | None,
) -> Callable[..., Any]:
    """Return what `value_and_grad` returns, with errors that name an operation."""
    check_function(fun, operation)
    linearized = linearize_flat if absorbs is None else _with_option(absorbs)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        flat, primals, tree = flatten_differentiated(
            fun, args, kwargs, argnums, operation=operation, has_aux=has_aux
        )
        active = check_reverse_arguments(
            primals, tree, operation, holomorphic=holomorphic, allow_int=allow_int
        )
        avals = [x.aval for x in primals]
        outs, program = linearized(flat, primals, active)
        _check_scalar(outs, flat, operation, holomorphic, fun)
        aval = outs[0].aval
        one = scalar_array(1.0, aval.dtype)
        if aval.weak_type:
            weak = scalar_array(1.0, aval.dtype, True)  # a literal in programs, as `one` is
            one = weak if weak.aval == aval else ConcreteArray(one.to_host(), aval)
        cts = cotangents_of(program, avals, [one])
        grads = xtree.unflatten(tree, cts)
        (value,) = outs
        return ((value, flat.aux) if has_aux else value), grads

    return value_and_gradient


def _with_option(absorbs: bool) -> Callable[..., Any]:
    def linearize_inside(*args: Any) -> Any:
        with zero_absorbing(absorbs):
            return linearize_flat(*args)

    return linearize_inside


def _check_scalar(
    outs: list[Array], flat: FlatFunction, operation: str, holomorphic: bool, fun: Any
) -> None:
    if len(outs) != 1 or flat.out_tree.num_nodes != 1:
        if flat.out_tree == _NOTHING:
            raise TypeError(message(
                operation, "the function must return a scalar, but returned None.",
                where=place_of(fun), hint="a function without a return statement returns None",
            ))  # fmt: skip
        count = f"a tree of {len(outs)} array{'' if len(outs) == 1 else 's'}"
        raise TypeError(message(
            operation, f"the function must return a scalar, but returned {count}.",
            got=str(flat.out_tree), where=place_of(fun),
            hint="has_aux=True lets the function return a pair (scalar, auxiliary)",
        ))  # fmt: skip
    aval = outs[0].aval
    if aval.shape != ():
        raise TypeError(message(
            operation, "the function must return a scalar, but returned an array of shape "
            f"{list(aval.shape)}.",
            got=aval.str_long(), expected="shape []", where=place_of(fun),
            hint="sum or average it, use jacrev or jacfwd, or vmap the gradient",
        ))  # fmt: skip
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(message(
                operation, f"holomorphic=True needs a complex result, got {aval.dtype.name}.",
                where=place_of(fun),
            ))  # fmt: skip
    elif not dtypes.is_floating(aval.dtype):
        hint = (
            "holomorphic=True differentiates holomorphic functions"
            if dtypes.is_complex(aval.dtype)
            else "integer results have no gradient; convert with astype('float32')"
        )
        raise TypeError(message(
            operation, f"the function must return a real floating scalar, got {aval.dtype.name}.",
            where=place_of(fun), hint=hint,
        ))  # fmt: skip
