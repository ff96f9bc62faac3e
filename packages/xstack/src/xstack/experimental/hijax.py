"""Operations whose derivative and batching rules are methods of a class: `HiPrim`.

    class Sine(HiPrim):                      # what a rule does not say is derived
        def __init__(self, x_aval):
            self.in_avals, self.out_aval, self.params = (x_aval,), x_aval, {}
            super().__init__()
        def expand(self, x): ...             # the operation
        def jvp(self, primals, tangents): ...                              forward mode
        def vjp_fwd(self, nzs_in, x): ...                                  reverse mode
        def vjp_bwd_retval(self, res, ct): ...
        def batch(self, axis_data, args, dims): ...                        vmap

An instance is a `custom_derivative` of `expand`, with those of the rules that its class defines. So
forward mode follows from a reverse rule and reverse mode from a forward rule, and a class without
rules is differentiated and batched through the operations of `expand`.

Operands and results may be values of a `HiType`, a type that is made of several arrays and chooses
its tangents. Rules see such values and their tangents; the `custom_derivative` sees their leaves.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar

import xtree
from xad import SymbolicZero, backward_logs, custom_derivative, jvp, linearize, vjp
from xad.backward_logs import GradAccum, NullAccum, RefAccum, ValAccum, accumulator
from xad.pull_backs import structure_residuals
from xbatch import register_vmappable
from xnp import broadcast_to, expand_dims, moveaxis
from xprim import AbstractValue, ShapedArray, Zero, state, typeof
from xprim.errors import described
from xprim.high_types import (
    HiType,
    HiValue,
    MappingSpec,
    all_of,
    aval_method,
    aval_property,
    from_leaves,
    is_high,
    layout_of,
    leaves_of_new,
    one_of,
    register_hitype as _register_hitype,
    tangent_from,
    tangents_of,
)
from xprim.transformed import path_of
from xstack.interpreters.ad import instantiate_zeros, is_undefined_primal
from xstack.namespaces import namespace
from xtree.errors import message
from xtree.records import Record

__all__ = [
    "AbstractValue",
    "GradAccum",
    "HiPrim",
    "HiType",
    "MappingSpec",
    "NullAccum",
    "RefAccum",
    "ShapedArray",
    "VJPHiPrimitive",
    "ValAccum",
    "Zero",
    "aval_method",
    "aval_property",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp_from_lin",
    "linearize_from_jvp",
    "register_hitype",
    "vjp_from_jvp",
    "vjp_from_lin",
]


# -------------------------------------------------------------------------------------- operations


class AxisData(Record):
    """The axis that `vmap` adds, as `batch` rules see it.

    Attributes:
      size: the number of examples.
      name: None, since rules get the values of all examples.
      spmd_name: None; the sharding of the axis follows from that of the operands.
      explicit_mesh_axis: None, as `spmd_name`.
    """

    size: int
    name: None = None
    spmd_name: None = None
    explicit_mesh_axis: None = None


@xtree.register_static
class _Saved(Record):
    """What is known about zeros when the backward pass is traced.

    Args:
      is_perturbed: for each leaf of the operands, whether its cotangent is used.
      is_needed: for each value among the operands, whether its cotangent is.
      is_nonzero: for each value of the result, whether it has a tangent.
    """

    is_perturbed: tuple[bool, ...]
    is_needed: tuple[bool, ...]
    is_nonzero: tuple[bool, ...]


class _Types:
    """A tree of types, with the leaves that values of these types have.

    Attributes:
      avals: its leaves, a `ShapedArray` or a `HiType` each.
      layouts: what leaves a value of each has.
      tree: its structure.
    """

    __slots__ = ("avals", "layouts", "tree")

    def __init__(self, types: Any) -> None:
        leaves, self.tree = xtree.flatten(types)
        self.avals: list[Any] = [a if isinstance(a, HiType) else typeof(a) for a in leaves]
        self.layouts = list(map(layout_of, self.avals))

    @property
    def chooses_tangents(self) -> bool:
        """Whether tangents of one of the types are not those of its arrays."""
        return any(layout.tangent is None or layout.perturbations for layout in self.layouts)

    def values(self, leaves: Iterable[Any], value: Callable[[Any, list[Any]], Any]) -> Any:
        """Return the tree of `value(type, leaves)` for each value."""
        remaining = iter(leaves)
        return xtree.unflatten(self.tree, [
            value(aval, list(islice(remaining, len(layout.arrays) + len(layout.perturbations))))
            for aval, layout in zip(self.avals, self.layouts, strict=True)
        ])  # fmt: skip

    def flags(self, of_leaves: Iterable[bool]) -> Any:
        """Return, in a tree, for which values one of the leaves that has its tangents is marked."""
        return self.values(
            of_leaves, lambda aval, part: any(layout_of(aval).pick_differentiated(part))
        )

    def tangent_leaves(self, tangents: Sequence[Any]) -> list[Any]:
        """Return tangents of all leaves, given a tangent or None for each value, in order."""
        found = []
        for aval, tangent in zip(self.avals, tangents, strict=True):
            given = Zero(aval) if tangent is None else tangent
            found += tangents_of(aval, given)
        return found


def _value_of(aval: Any, leaves: list[Any]) -> Any:
    return from_leaves(aval, leaves) if isinstance(aval, HiType) else leaves[0]


def _open_value(aval: Any, leaves: list[Any]) -> Any:
    value = _value_of(aval, leaves)
    return value.open() if type(value) is HiValue else value


class HiPrim:
    """The base of operations with rules as methods.

    The constructor of a subclass sets three attributes and calls that of this class:

    - `in_avals`: a tuple with the type of each operand, `typeof(x)`, or a pytree of types;
    - `out_aval`: the type of the result, or a pytree of types;
    - `params`: a dict of hashable values, which become attributes.

    `expand(*operands)` is the operation. These methods may be defined; what is not is derived:

    - `jvp`, or `lin` and `linearized`, for `jvp` and `linearize`;
    - `vjp_fwd` and `vjp_bwd_retval` for `grad` and `vjp`. `vjp_bwd(res, ct, *accums)` in place of
      the latter adds cotangents to a `GradAccum` for each leaf of the operands: a `NullAccum` where
      none is needed, else a `ValAccum`. Structured residuals, the fourth thing that `vjp_fwd` may
      return, follow `res`. The dict that `vjp_bwd` may return reaches `pull_back.with_logs`;
    - `batch(axis_data, args, dims)` for `vmap`: it gets the operands and, in the same structure,
      their batch dimensions, 0 or None, and returns the result and its batch dimensions. A class
      with this method has its `expand` traced, so Python's control flow there may use shapes alone.

    A type may be a `HiType`. `expand` gets and returns instances of its class; rules get a traced
    `HiValue`, which operations accept. Where a type chooses its tangents, there are derivatives by
    rules alone. The batch dimension of such a value is the `leading_axis_spec` of its type; where a
    type has none, the operations of `expand` are batched.

    Rules that call the operation itself, `self(x)`, hold at every order. `transpose`, `dce`,
    `remat` and `batch_dim_rule`, which JAX calls, are not called: transposes, what is not used,
    checkpoints and batch dimensions follow from the operations of `expand` and of the rules.

    Raises:
      AttributeError: `in_avals`, `out_aval` or `params` is not set.
      TypeError: a rule of two methods has one of them; the class has effects; when it is called:
        operands of other types than `in_avals`, or a result of `expand` of another type than
        `out_aval`.

    Example:
      >>> import xstack
      >>> import xstack.numpy as xnp
      >>> class Log1pExp(HiPrim):
      ...     def __init__(self, x_aval):
      ...         self.in_avals, self.out_aval, self.params = (x_aval,), x_aval, {}
      ...         super().__init__()
      ...     def expand(self, x):
      ...         return xnp.log(1 + xnp.exp(x))
      ...     def vjp_fwd(self, nzs_in, x):
      ...         return self(x), x
      ...     def vjp_bwd_retval(self, x, ct):
      ...         return ((1 - 1 / (1 + xnp.exp(x))) * ct,)
      >>> def log1pexp(x):
      ...     return Log1pExp(xstack.typeof(x))(x)
      >>> float(xstack.grad(log1pexp)(100.0)), float(xstack.jvp(log1pexp, (100.0,), (1.0,))[1])
      (1.0, 1.0)
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Hashable]
    effects: ClassVar[frozenset[Any]] = frozenset()

    def __init__(self) -> None:
        name = type(self).__name__
        for attribute in ("in_avals", "out_aval", "params"):
            if not hasattr(self, attribute):
                raise AttributeError(message(
                    name, f"its constructor does not set self.{attribute}.",
                    expected="self.in_avals, self.out_aval and self.params, before "
                    "super().__init__()",
                ))  # fmt: skip
        if self.effects:
            raise TypeError(message(
                name, "an operation has the effects of the operations in its method expand.",
                got=f"effects = {set(self.effects)}", expected="no attribute effects",
                hint="io_callback(..., ordered=True), debug.print and references have effects",
            ))  # fmt: skip
        self._check_rules()
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def __call__(self, *operands: Any) -> Any:
        """Run the operation; transformations see its rules.

        Args:
          *operands: of the types that `in_avals` says.
        """
        self._check_types("operand", "in_avals", self._ins, operands)
        leaves = self._function(*xtree.leaves(operands))
        return self._outs.values(leaves, _value_of)

    def check(self, *avals: Any) -> None:
        """Raise an error for types of operands that do not go together; by default none.

        Args:
          *avals: `in_avals`.
        """

    def expand(self, *operands: Any) -> Any:
        """Return the result, computed by operations on arrays.

        Args:
          *operands: arrays, or pytrees of arrays.
        """
        raise NotImplementedError(message(
            type(self).__name__, "it has no method expand.",
            expected="expand(self, *operands), which computes the result",
        ))  # fmt: skip

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the result and its tangent.

        Args:
          primals: the operands.
          tangents: like the operands; zeros are arrays.
        """
        return jvp(self, primals, tangents)

    def lin(self, nzs_in: tuple[Any, ...], *operands: Any) -> tuple[Any, ...]:
        """Return the result and what `linearized` needs.

        A rule may add which results have tangents, a tree of booleans, and structured residuals.

        Args:
          nzs_in: which operands have a tangent, in booleans.
          *operands: the operands.
        """
        return linearize(self, *operands)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Return the tangent of the result.

        Args:
          residuals: from `lin`; structured residuals, where there are any, follow.
          *tangents: of the operands.
        """
        return residuals(*tangents)

    def vjp_fwd(self, nzs_in: tuple[Any, ...], *operands: Any) -> tuple[Any, ...]:
        """Return the result and what the backward rule needs.

        A rule may add which results have tangents, a tree of booleans, and structured residuals.

        Args:
          nzs_in: for which operands a cotangent is used, in booleans.
          *operands: the operands.
        """
        return vjp(self, *operands)

    def vjp_bwd_retval(self, res: Any, outgrad: Any) -> Any:
        """Return a tuple with the cotangent of each operand; None stands for zero.

        Args:
          res: from `vjp_fwd`.
          outgrad: the cotangent of the result, with `Zero` for a leaf that nothing depends on (with
            an array of zeros where there is a forward rule, too).
        """
        return res(xtree.map(instantiate_zeros, outgrad, is_leaf=_is_zero))

    def pp_params(self) -> dict[str, Any]:
        """Return the params that `repr` shows: by default those without a leading underscore."""
        return {k: v for k, v in self.params.items() if not k.startswith("_")}

    def __repr__(self) -> str:
        params = " ".join(f"{name}={value}" for name, value in self.pp_params().items())
        return f"{type(self).__name__}[{params}]"

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items())))

    def __eq__(self, other: object) -> bool:
        return (type(self) is type(other) and isinstance(other, HiPrim)
                and self.params == other.params)  # fmt: skip

    # ------------------------------------------------------------------------ as custom_derivative

    @cached_property
    def _ins(self) -> _Types:
        return _Types(tuple(self.in_avals))

    @cached_property
    def _outs(self) -> _Types:
        return _Types(self.out_aval)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        """The operation as a function from the leaves of its operands to those of its result."""

        def operation(*leaves: Any) -> Any:
            result = self.expand(*self._ins.values(leaves, _open_value))
            self._check_types("result", "out_aval", self._outs, result)
            return self._leaves_of(result)

        operation.__name__ = type(self).__name__
        ruled: custom_derivative[..., Any] = custom_derivative(operation)
        if self._defines("jvp") or self._defines("lin"):
            ruled.defjvp(self._push)
        if self._defines("vjp_fwd"):
            ruled.defvjp(self._run_forward, self._run_backward, symbolic_zeros=True)
        if not ruled.jvp and not ruled.fwd and self._chooses_tangents:
            ruled.defjvp(self._refuse)
        if hasattr(self, "batch") and self._has_leading_axes:
            ruled.def_vmap(partial(self._run_batch, self.batch))
        has_rules = any([ruled.jvp, ruled.fwd, ruled.vmap_rule])
        return ruled if has_rules else operation

    @property
    def _chooses_tangents(self) -> bool:
        return self._ins.chooses_tangents or self._outs.chooses_tangents

    @property
    def _has_leading_axes(self) -> bool:
        """Whether each `HiType` has a `leading_axis_spec`."""
        types = [a for a in (*self._ins.avals, *self._outs.avals) if isinstance(a, HiType)]
        return all(type(t).leading_axis_spec is not HiType.leading_axis_spec for t in types)

    def _leaves_of(self, result: Any) -> tuple[Any, ...]:
        """Return the leaves of a result, which may be new values of traced arrays."""
        found = self._outs.tree.flatten_up_to(result)
        return tuple([
            leaf for aval, x in zip(self._outs.avals, found, strict=True)
            for leaf in (leaves_of_new(x) if isinstance(aval, HiType) else [x])
        ])  # fmt: skip

    def _defines(self, method: str) -> bool:
        """Return whether the class has a rule of its own, not one that is derived."""
        return getattr(type(self), method) is not getattr(HiPrim, method)

    def _refuse(self, primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(message(
            type(self).__name__, "it has a type that chooses its tangents, and no rule for them.",
            got=f"{self.in_avals} -> {self.out_aval}",
            expected="jvp, or vjp_fwd and vjp_bwd_retval",
        ))  # fmt: skip

    def _push(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        values = self._ins.values(primals, _value_of)
        dots = self._ins.values(tangents, tangent_from)
        if self._defines("jvp"):
            out, out_dot = self.jvp(values, dots)
        else:
            nzs_in = self._ins.flags([True] * len(primals))
            out, residuals, *rest = self.lin(nzs_in, *values)
            out_dot = self.linearized(residuals, *_list_structured(rest), *dots)
        of_leaves = self._outs.tangent_leaves(self._outs.tree.flatten_up_to(out_dot))
        return self._leaves_of(out), tuple(map(instantiate_zeros, of_leaves))

    def _run_forward(self, *marked: Any) -> tuple[Any, Any]:
        operands = self._ins.values([x.value for x in marked], _value_of)
        is_perturbed = tuple([x.perturbed for x in marked])
        nzs_in = self._ins.flags(is_perturbed)
        out, residuals, *rest = self.vjp_fwd(nzs_in, *operands)
        is_nonzero = xtree.broadcast_prefix(rest[0] if rest else True, self.out_aval)
        saved = _Saved(is_perturbed, tuple(xtree.leaves(nzs_in)), tuple(is_nonzero))
        shown = tuple(map(structure_residuals, _list_structured(rest)))
        return self._leaves_of(out), (residuals, shown, saved)

    def _run_backward(self, stored: Any, cotangents: Any) -> Any:
        residuals, structured, saved = stored
        is_nonzero = iter(saved.is_nonzero)

        def cotangent(aval: Any, cts: list[Any]) -> Any:
            layout = layout_of(aval)
            cts = layout.pick_differentiated(cts)
            if not next(is_nonzero) or all(isinstance(ct, SymbolicZero) for ct in cts):
                return Zero(aval.to_ct_aval())
            cts = [instantiate_zeros(Zero(ct.aval)) if isinstance(ct, SymbolicZero) else ct
                   for ct in cts]  # fmt: skip
            return tangent_from(aval, layout.complete(cts))

        outgrad = self._outs.values(cotangents, cotangent)
        if not hasattr(self, "vjp_bwd"):
            cts = self._cotangents_of_leaves(self.vjp_bwd_retval(residuals, outgrad))
        else:
            accums = list(map(accumulator, self._ins.avals, saved.is_needed))
            accumulators = xtree.unflatten(self._ins.tree, accums)
            shown = [each.tree for each in structured]
            backward_logs.log(self.vjp_bwd(residuals, *shown, outgrad, *accumulators))
            cts = self._ins.tangent_leaves([accum.freeze() for accum in accums])
        return tuple([
            ct if is_perturbed and not isinstance(ct, Zero) else None
            for ct, is_perturbed in zip(cts, saved.is_perturbed, strict=True)
        ])  # fmt: skip

    def _cotangents_of_leaves(self, cts: Any) -> list[Any]:
        """Return what a backward rule returns as the cotangents of all leaves."""
        if not isinstance(cts, tuple | list) or len(cts) != len(self.in_avals):
            raise TypeError(message(
                type(self).__name__, "vjp_bwd_retval returns a tuple with the cotangent of each "
                "operand.", got=described(cts), expected=f"{len(self.in_avals)} cotangents",
            ))  # fmt: skip
        found: list[Any] = []
        for types, ct in zip(self.in_avals, cts, strict=True):
            avals, tree = xtree.flatten(types)
            found += [None] * len(avals) if ct is None else tree.flatten_up_to(ct)
        return self._ins.tangent_leaves(found)

    def _run_batch(
        self, batch: Callable[..., Any], axis_size: int, is_mapped: Any, *leaves: Any
    ) -> tuple[Any, Any]:
        flags = iter(is_mapped)
        dims: list[Any] = []

        def value(aval: Any, part: list[Any]) -> Any:
            mapped = [next(flags) for _ in part]
            spec = aval.leading_axis_spec() if any(mapped) else None
            dims.append(spec)
            if spec is None or not isinstance(aval, HiType):
                return _value_of(aval, part)
            of_part = iter(mapped)
            return all_of(HiValue(aval, part, ()), axis_size, spec, lambda x, axis: (
                moveaxis(x, 0, axis or 0) if next(of_part)
                else broadcast_to(expand_dims(x, axis or 0), _with_size(x.shape, axis, axis_size))
            ))  # fmt: skip

        args = self._ins.values(leaves, value)
        outs, out_dims = batch(AxisData(axis_size), args, xtree.unflatten(self._ins.tree, dims))
        found = self._outs.tree.flatten_up_to(outs)
        specs = self._outs.tree.flatten_up_to(out_dims)
        moved: list[Any] = []
        mapped: list[bool] = []

        def to_front(x: Any, axis: Any) -> Any:
            moved.append(x if axis is None else moveaxis(x, axis, 0))
            mapped.append(axis is not None)

        for aval, x, spec in zip(self._outs.avals, found, specs, strict=True):
            if isinstance(aval, HiType) and spec is not None:
                one_of(x, axis_size, spec, to_front)
            else:
                for leaf in xtree.leaves(x):
                    to_front(leaf, spec)
        return tuple(moved), tuple(mapped)

    def _check_rules(self) -> None:
        """Raise for a rule that runs before or after one that the class does not define."""
        has_backward = self._defines("vjp_bwd_retval") or hasattr(self, "vjp_bwd")
        for first, then, is_defined in (
            ("vjp_fwd", "vjp_bwd_retval or vjp_bwd", has_backward),
            ("lin", "linearized", self._defines("linearized")),
        ):
            if self._defines(first) is not is_defined:
                raise TypeError(message(
                    type(self).__name__, "a rule of two methods has one of them.",
                    got=then if is_defined else first, expected=f"{first} and {then}",
                ))  # fmt: skip

    def _check_types(self, what: str, attribute: str, types: _Types, values: Any) -> None:
        """Raise for operands, or results, of other types than an attribute has."""
        leaves, given = xtree.flatten(values, is_leaf=is_high)
        name = type(self).__name__
        if given != types.tree:
            raise TypeError(message(
                name, f"the {what}s have another structure than {attribute}.", got=f"{given}",
                expected=f"{types.tree}",
            ))  # fmt: skip
        for i, (value, aval) in enumerate(zip(leaves, types.avals, strict=True)):
            actual = typeof(value)
            if not _is_of(actual, aval):
                where = path_of(types.tree, i, " ")
                raise TypeError(message(
                    name, f"{what}{where} is of another type than {attribute}.",
                    got=str(actual) if is_high(value) else described(value),
                    expected=str(aval),
                ))  # fmt: skip


def _list_structured(rest: Sequence[Any]) -> tuple[Any, ...]:
    """Return the structured residuals as arguments: none, or one."""
    return () if len(rest) < 2 or rest[1] is None else (rest[1],)


def _is_of(actual: Any, aval: Any) -> bool:
    """Return whether a value is of a type, weak types aside."""
    if isinstance(actual, HiType) or isinstance(aval, HiType):
        return type(actual) is type(aval) and _shapes(actual) == _shapes(aval)
    return (actual.shape, actual.dtype) == (aval.shape, aval.dtype)


def _shapes(type_: HiType) -> list[Any]:
    return [(a.shape, a.dtype) for a in layout_of(type_).arrays]


def _with_size(shape: tuple[int, ...], axis: int | None, size: int) -> tuple[int, ...]:
    place = axis or 0
    return (*shape[:place], size, *shape[place:])


def _is_zero(value: Any) -> bool:
    return isinstance(value, Zero)


VJPHiPrimitive = HiPrim

# Rules that a class leaves to be derived, under the names that say from which.
linearize_from_jvp = (HiPrim.lin, HiPrim.linearized)
vjp_from_lin = vjp_from_jvp = (HiPrim.vjp_fwd, HiPrim.vjp_bwd_retval)
jvp_from_lin = HiPrim.jvp


# ------------------------------------------------------------------------------------------- types


def register_hitype(value_class: type, type_of: Callable[[Any], Any]) -> None:
    """Make the instances of a class values of a `HiType`.

    Args:
      value_class: the class, which is not registered as a pytree.
      type_of: returns the type of an instance.

    Raises:
      RegistrationError: the class is registered already.
      TypeError: it is not a class, or it is a class of arrays or numbers.

    Example:
      >>> from dataclasses import dataclass
      >>> import xstack
      >>> import xstack.numpy as xnp
      >>> @dataclass(frozen=True)
      ... class Percent:
      ...     array: xstack.Array
      >>> @dataclass(frozen=True)
      ... class PercentType(HiType):
      ...     shape: tuple
      ...     def lo_ty(self):
      ...         return [ShapedArray(self.shape, "int8")]
      ...     def lower_val(self, value):
      ...         return [value.array]
      ...     def raise_val(self, array):
      ...         return Percent(array)
      ...     def to_tangent_aval(self):
      ...         return ShapedArray(self.shape, "float32")
      >>> register_hitype(Percent, lambda value: PercentType(value.array.shape))
      >>> class Share(HiPrim):
      ...     def __init__(self, aval):
      ...         self.in_avals, self.params = (aval,), {}
      ...         self.out_aval = ShapedArray(aval.shape, "float32")
      ...         super().__init__()
      ...     def expand(self, percent):
      ...         return percent.array / xnp.float32(100)
      ...     def vjp_fwd(self, nzs_in, percent):
      ...         return self(percent), None
      ...     def vjp_bwd_retval(self, _, ct):
      ...         return (ct,)
      >>> def square(percent):
      ...     return Share(xstack.typeof(percent))(percent) ** 2
      >>> half = Percent(xnp.int8(50))
      >>> float(xstack.jit(square)(half)), float(xstack.grad(square)(half))
      (0.25, 1.0)
    """
    _register_hitype(value_class, type_of)
    for cls in (value_class, HiValue):
        _let_vmap_map(cls)


def _let_vmap_map(value_class: type) -> None:
    register_vmappable(
        value_class, MappingSpec, int,
        lambda element, _, x, spec: (
            x if spec is None else one_of(x, _current_size(), spec, element)
        ),
        lambda batch, size, x, spec: (
            x if spec is None
            else all_of(x, operator.index(size), spec, lambda array, axis: batch(size, array, axis))
        ),
    )  # fmt: skip


def _current_size() -> int:
    """Return how many examples the `vmap` has whose function is running."""
    trace: Any = state.trace
    return int(trace.axis.size)


namespace(globals()).close()
