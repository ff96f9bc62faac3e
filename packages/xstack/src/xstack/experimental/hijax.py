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

`HiType`, for types that are made of several arrays, can be defined and registered; no operation
takes one. A class of several arrays is a pytree here (`xstack.tree_util.register_dataclass`), whose
leaves are traced.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import xtree
from xad import SymbolicZero, backward_logs, custom_derivative, jvp, linearize, vjp
from xad.accumulators import GradAccum, NullAccum, RefAccum, ValAccum, accumulator
from xnp import moveaxis
from xprim import AbstractValue, ShapedArray, Zero, typeof
from xprim.errors import described
from xprim.transformed import path_of
from xstack.absences import hint_for
from xstack.interpreters.ad import instantiate_zeros, is_undefined_primal
from xtree.errors import message
from xtree.namespaces import namespace
from xtree.records import Record, set_once

__all__ = [
    "AbstractValue",
    "GradAccum",
    "HiPrim",
    "HiType",
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

    __slots__ = __match_args__ = ("size", "name", "spmd_name", "explicit_mesh_axis")

    def __init__(self, size: int) -> None:
        set_once(self, "size", size)
        for attribute in ("name", "spmd_name", "explicit_mesh_axis"):
            set_once(self, attribute, None)


@xtree.register_static
class _Saved(Record):
    """What is known about zeros when the backward pass is traced.

    Args:
      is_perturbed: for each leaf of the operands, whether its cotangent is used.
      is_nonzero: for each leaf of the result, whether it has a tangent.
    """

    __slots__ = __match_args__ = ("is_perturbed", "is_nonzero")

    def __init__(self, is_perturbed: tuple[bool, ...], is_nonzero: tuple[bool, ...]) -> None:
        set_once(self, "is_perturbed", is_perturbed)
        set_once(self, "is_nonzero", is_nonzero)


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

    Rules that call the operation itself, `self(x)`, hold at every order. `transpose`, `dce`,
    `remat` and `batch_dim_rule`, which JAX calls, are not called: transposes, what is not used,
    checkpoints and batch dimensions follow from the operations of `expand` and of the rules.

    Raises:
      AttributeError: `in_avals`, `out_aval` or `params` is not set.
      TypeError: an abstract value is no type of an array; a rule of two methods has one of them;
        when it is called: operands of other types than `in_avals`, or a result of `expand` of
        another type than `out_aval`.

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
        for aval in [*xtree.leaves(self.in_avals), *xtree.leaves(self.out_aval)]:
            if isinstance(aval, HiType):
                raise TypeError(message(
                    name, "operations on types made of several arrays are not traced.",
                    got=f"{aval!r}", hint="register the class as a pytree: its leaves are",
                ))  # fmt: skip
        self._check_rules()
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def __call__(self, *operands: Any) -> Any:
        """Run the operation; transformations see its rules.

        Args:
          *operands: of the types that `in_avals` says.
        """
        self._check_types("operand", "in_avals", self.in_avals, operands)
        return self._function(*operands)

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
    def _function(self) -> Callable[..., Any]:
        def operation(*operands: Any) -> Any:
            result = self.expand(*operands)
            self._check_types("result", "out_aval", self.out_aval, result)
            return result

        operation.__name__ = type(self).__name__
        ruled: custom_derivative[..., Any] = custom_derivative(operation)
        if self._defines("jvp") or self._defines("lin"):
            ruled.defjvp(self._push)
        if self._defines("vjp_fwd"):
            ruled.defvjp(self._run_forward, self._run_backward, symbolic_zeros=True)
        if hasattr(self, "batch"):
            ruled.def_vmap(partial(self._run_batch, self.batch))
        has_rules = any([ruled.jvp, ruled.fwd, ruled.vmap_rule])
        return ruled if has_rules else operation

    def _defines(self, method: str) -> bool:
        """Return whether the class has a rule of its own, not one that is derived."""
        return getattr(type(self), method) is not getattr(HiPrim, method)

    def _push(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        if self._defines("jvp"):
            out, out_dot = self.jvp(primals, tangents)
        else:
            nzs_in = xtree.map(lambda _: True, primals)
            out, residuals, *rest = self.lin(nzs_in, *primals)
            out_dot = self.linearized(residuals, *_structured(rest), *tangents)
        return out, xtree.map(instantiate_zeros, out_dot, is_leaf=_is_zero)

    def _run_forward(self, *marked: Any) -> tuple[Any, Any]:
        operands = xtree.map(lambda x: x.value, marked)
        nzs_in = xtree.map(lambda x: x.perturbed, marked)
        out, residuals, *rest = self.vjp_fwd(nzs_in, *operands)
        is_nonzero = xtree.broadcast_prefix(rest[0] if rest else True, out)
        saved = _Saved(tuple(xtree.leaves(nzs_in)), tuple(is_nonzero))
        return out, (residuals, _structured(rest), saved)

    def _run_backward(self, stored: Any, outgrad: Any) -> Any:
        residuals, structured, saved = stored
        leaves, tree = xtree.flatten(outgrad)
        outgrad = xtree.unflatten(tree, [
            ct if is_nonzero and not isinstance(ct, SymbolicZero) else Zero(_aval_of(ct))
            for ct, is_nonzero in zip(leaves, saved.is_nonzero, strict=True)
        ])  # fmt: skip
        if not hasattr(self, "vjp_bwd"):
            cts = self.vjp_bwd_retval(residuals, outgrad)
        else:
            avals, in_tree = xtree.flatten(self.in_avals)
            accums = list(map(accumulator, avals, saved.is_perturbed))
            accumulators = xtree.unflatten(in_tree, accums)
            backward_logs.log(self.vjp_bwd(residuals, *structured, outgrad, *accumulators))
            cts = xtree.unflatten(in_tree, [accum.freeze() for accum in accums])
        return xtree.map(lambda ct: None if isinstance(ct, Zero) else ct, cts, is_leaf=_is_zero)

    def _run_batch(
        self, batch: Callable[..., Any], axis_size: int, is_mapped: Any, *operands: Any
    ) -> tuple[Any, Any]:
        dims = xtree.map(lambda mapped: 0 if mapped else None, tuple(is_mapped))
        outs, out_dims = batch(AxisData(axis_size), operands, dims)
        leaves, tree = xtree.flatten(outs)
        out_dims = xtree.leaves(out_dims, is_leaf=lambda dim: dim is None)
        moved = [x if dim is None else moveaxis(x, dim, 0)
                 for x, dim in zip(leaves, out_dims, strict=True)]  # fmt: skip
        is_mapped = [dim is not None for dim in out_dims]
        return xtree.unflatten(tree, moved), xtree.unflatten(tree, is_mapped)

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

    def _check_types(self, what: str, attribute: str, types: Any, values: Any) -> None:
        """Raise for operands, or results, of other types than an attribute has."""
        avals, tree = xtree.flatten(types)
        leaves, given = xtree.flatten(values)
        name = type(self).__name__
        if given != tree:
            raise TypeError(message(
                name, f"the {what}s have another structure than {attribute}.", got=f"{given}",
                expected=f"{tree}",
            ))  # fmt: skip
        for i, (value, aval) in enumerate(zip(leaves, avals, strict=True)):
            actual = typeof(value)
            if (actual.shape, actual.dtype) != (aval.shape, aval.dtype):
                raise TypeError(message(
                    name, f"{what}{path_of(tree, i, ' ')} is of another type than {attribute}.",
                    got=described(value), expected=aval.str_long(),
                ))  # fmt: skip


def _structured(rest: Sequence[Any]) -> tuple[Any, ...]:
    """Return the structured residuals as arguments: none, or one."""
    return () if len(rest) < 2 or rest[1] is None else (rest[1],)


def _aval_of(ct: Any) -> ShapedArray:
    aval: ShapedArray = ct.aval if isinstance(ct, SymbolicZero) else typeof(ct)
    return aval


def _is_zero(value: Any) -> bool:
    return isinstance(value, Zero)


VJPHiPrimitive = HiPrim

# Rules that a class leaves to be derived, under the names that say from which.
linearize_from_jvp = (HiPrim.lin, HiPrim.linearized)
vjp_from_lin = vjp_from_jvp = (HiPrim.vjp_fwd, HiPrim.vjp_bwd_retval)
jvp_from_lin = HiPrim.jvp


# ------------------------------------------------------------------------------------------- types


class HiType:
    """The base of types whose values are made of several arrays."""

    __slots__ = ()


class aval_property(property):  # noqa: N801 - as property
    """A property of a type that its traced values have, too."""


def aval_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a type as one that its traced values have, too.

    Args:
      method: takes the value.

    Example:
      >>> aval_method(len)([1, 2])
      2
    """
    return method


def register_hitype(value_class: type, type_of: Callable[[Any], Any]) -> None:
    """Say what the type of values of a class is.

    Args:
      value_class: the class.
      type_of: gives the `HiType` of a value.

    Example:
      >>> register_hitype(slice, lambda value: HiType())
    """
    _type_of_by_class[value_class] = type_of


# The types of values that users have registered.
_type_of_by_class: dict[type, Callable[[Any], Any]] = {}


namespace(globals(), hint=hint_for).close()
