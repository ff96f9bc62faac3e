"""Types of values that are made of several arrays: `HiType`, and how transformations see them.

A value of such a type, an instance of a class that `register_hitype` names, is a node of trees: its
leaves are arrays, and the type is part of the structure. So a function of trees of arrays, such as
`jit`, `cond` or `checkpoint`, accepts it as it is. Where the arrays are traced it is a `HiValue`.

A type chooses the type of its tangents. Where that is the type of the tangents of its arrays, they
are differentiated. Otherwise the value has further leaves, the *perturbations*: arrays of the
tangent type that are zero, so a derivative with respect to the value is one with respect to them.
The rules of operations define how perturbations of results depend on those of operands. An
instance of a class has scalars in place of them, which cost no memory, until it is differentiated.

    Layout                     what leaves a value has
    as_arguments, restore      derivatives with respect to values: functions of perturbations
    one_of, all_of             a value of a batch and that of the batch, for `vmap` and `scan`
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, NoReturn, TypeVar

import numpy as np

import xtree
from xprim import dtypes
from xprim.array import Array, as_array, float0_array, scalar_array
from xprim.avals import ShapedArray, ShapeDtypeStruct, type_of_by_class
from xprim.calls import bind_one
from xprim.eager import EAGER
from xprim.primitive import get_primitive
from xprim.rules import Zero
from xprim.sharded_types import reshard_as
from xprim.trace import Tracer, use_trace
from xtree.errors import message
from xtree.interning import remember
from xtree.records import Record

__all__ = [
    "HiType", "HiValue", "Layout", "MappingSpec", "StepOfArrays", "all_of", "along_leading_axes",
    "as_arguments", "aval_method", "aval_property", "from_leaves", "is_high", "layout_of",
    "leaves_of_new", "one_of", "register_hitype", "tangent_from", "tangents_of",
    "unflatten_tangents", "with_all_leaves", "with_perturbations",
]  # fmt: skip

__dir__ = __all__.copy

Type = Any  # a HiType or a ShapedArray


# ------------------------------------------------------------------------------------------ types


class HiType:
    """The base of types whose values are made of several arrays.

    A subclass has `__eq__` and `__hash__`, as a frozen dataclass does, and the first three methods;
    the others are for the transformations that use them.
    """

    __slots__ = ()

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that a value is made of."""
        self._require("lo_ty", "a value in a traced function")

    def lower_val(self, value: Any, /) -> list[Any]:
        """Return the arrays of a value, in the order of `lo_ty`.

        Args:
          value: an instance of the registered class.
        """
        self._require("lower_val", "a value in a traced function")

    def raise_val(self, *arrays: Any) -> Any:
        """Return the value that is made of these arrays.

        Args:
          *arrays: in the order of `lo_ty`.
        """
        self._require("raise_val", "a value in a traced function")

    def to_tangent_aval(self) -> Type:
        """Return the type of tangents, that of an array or one of this kind."""
        self._require("to_tangent_aval", "a derivative")

    def to_ct_aval(self) -> Type:
        """Return the type of cotangents, which is that of tangents."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """Return the zero of a tangent type: by default zeros for all of its arrays."""
        return from_leaves(self, zeros(layout_of(self).arrays))

    def vspace_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two values of a tangent type: by default the sums of its arrays.

        Args:
          x: a value of this type.
          y: another one.
        """
        return xtree.map(add, x, y)

    def dec_rank(self, size: int | None, spec: Any) -> HiType:
        """Return the type of one element of a batch of this type, for `vmap` and `scan`.

        Args:
          size: how many elements there are.
          spec: the entry of `in_axes` for the value, a `MappingSpec`.
        """
        self._require("dec_rank", "vmap or scan")

    def inc_rank(self, size: int | None, spec: Any) -> HiType:
        """Return the type of a batch of values of this type, for `vmap` and `scan`.

        Args:
          size: how many elements there are.
          spec: the entry of `out_axes` for the value, a `MappingSpec`.
        """
        self._require("inc_rank", "vmap or scan")

    def leading_axis_spec(self) -> Any:
        """Return the `MappingSpec` of the leading axis, along which `scan` goes."""
        self._require("leading_axis_spec", "scan")

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """Return how texts show the type.

        Args:
          short_dtypes: whether dtypes are abbreviated.
          mesh_axis_types: whether axes of meshes are shown with their kind.
        """
        return repr(self)

    def _require(self, method: str, purpose: str) -> NoReturn:
        raise NotImplementedError(message(
            type(self).__name__, f"{purpose} needs its method {method}.", got=f"{self!r}",
        ))  # fmt: skip


class MappingSpec:
    """The base of entries of `in_axes` and `out_axes` for values of a `HiType`."""

    __slots__ = ()


class aval_property:  # noqa: N801 - used as a decorator
    """A property that traced values of a type have.

    Args:
      fget: takes the value.

    Example:
      >>> class Pair(HiType):
      ...     count = aval_property(lambda value: 2)
      >>> HiValue(Pair(), [], []).count
      2
    """

    def __init__(self, fget: Callable[[Any], Any]) -> None:
        self.fget = fget


class aval_method:  # noqa: N801 - used as a decorator
    """A method that traced values of a type have.

    Args:
      fun: takes the value.

    Example:
      >>> class Pair(HiType):
      ...     repeat = aval_method(lambda value, times: [value.aval] * times)
      ...     __repr__ = lambda self: "Pair"
      >>> HiValue(Pair(), [], []).repeat(2)
      [Pair, Pair]
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


_ARRAYS = (Array, np.ndarray, np.generic, int, float, complex)


def register_hitype(value_class: type, type_of: Callable[[Any], Any]) -> None:
    """Make the instances of a class values of a `HiType`.

    Args:
      value_class: the class, which is not registered as a pytree.
      type_of: returns the type of an instance.

    Raises:
      RegistrationError: the class is registered already.
      TypeError: it is not a class, or it is a class of arrays or numbers.
    """
    if not isinstance(value_class, type) or issubclass(value_class, _ARRAYS):
        raise TypeError(message(
            "register_hitype", "the values must have a class of their own.", got=repr(value_class),
            expected="a class, which is not that of arrays or numbers",
        ))  # fmt: skip
    xtree.default_registry.register_as(value_class, HiValue)
    type_of_by_class[value_class] = type_of
    type_of_by_class[HiValue] = lambda value: value.aval


# ----------------------------------------------------------------------------------------- layout


class Layout(Record):
    """What leaves a value has: its arrays, then its perturbations.

    Attributes:
      arrays: the types of the arrays.
      tangent: the type of tangents, or None where the type has none.
      perturbations: the types of the perturbations; none where tangents are those of the arrays.
    """

    arrays: tuple[ShapedArray, ...]
    tangent: Type
    perturbations: tuple[ShapedArray, ...]

    def pick_differentiated(self, leaves: Sequence[Any]) -> list[Any]:
        """Return those of the leaves of a value that have its tangents.

        Args:
          leaves: one for each array and perturbation.
        """
        return list(leaves[len(self.arrays) :] if self.perturbations else leaves)

    def complete(self, tangents: Sequence[Any]) -> list[Any]:
        """Return tangents of all leaves, given those that are differentiated.

        Args:
          tangents: the arrays of a tangent.
        """
        if not self.perturbations:
            return list(tangents)
        return [*[Zero(a.to_tangent_aval()) for a in self.arrays], *tangents]


_MAX_LAYOUTS = 1024
# What leaves the values of a type have.
_layouts: dict[Type, Layout] = {}


def layout_of(type_: Type) -> Layout:
    """Return what leaves the values of a type have; an array is its own.

    Raises:
      TypeError: its tangent type has no sums that are those of its arrays.
    """
    found = _layouts.get(type_)
    return found or remember(_layouts, type_, _make_layout(type_), _MAX_LAYOUTS)


def _make_layout(type_: Type) -> Layout:
    arrays = tuple(type_.lo_ty())
    if type(type_).to_tangent_aval is HiType.to_tangent_aval:
        return Layout(arrays, None, ())
    tangent = type_.to_tangent_aval()
    perturbations = tuple([a.strong() for a in tangent.lo_ty()])
    of_arrays = tuple([a.to_tangent_aval().strong() for a in arrays])
    if isinstance(tangent, HiType):
        _check_tangent_type(type_, tangent, perturbations)
    return Layout(arrays, tangent, () if perturbations == of_arrays else perturbations)


def _check_tangent_type(type_: HiType, tangent: HiType, arrays: tuple[ShapedArray, ...]) -> None:
    """Raise unless the sum of two tangents has the sums of their arrays, as transformations add."""
    if all(a.to_tangent_aval() is a for a in arrays) and _adds_arrays(tangent, arrays):
        return
    raise TypeError(message(
        type(type_).__name__, "its tangents are not added as their arrays are.",
        got=f"the tangent type {tangent!r}",
        expected="an array, or a type of floating arrays whose vspace_add adds each of them",
        hint="the type of a dense array holds every sum",
    ))  # fmt: skip


def _adds_arrays(tangent: HiType, arrays: tuple[ShapedArray, ...]) -> bool:
    """Return whether `vspace_add` adds each array, tried on numbers that sum without error."""
    if type(tangent).vspace_add is HiType.vspace_add:
        return True
    with use_trace(EAGER):
        xs, ys = [
            [as_array(np.arange(start, start + a.size).reshape(a.shape).astype(a.dtype) % 64)
             for a in arrays]
            for start in (3, 11)
        ]  # fmt: skip
        total = tangent.vspace_add(tangent.raise_val(*xs), tangent.raise_val(*ys))
        sums = [np.asarray(x) for x in tangent.lower_val(total)]
    return all(np.array_equal(s, np.asarray(x) + np.asarray(y))
               for s, x, y in zip(sums, xs, ys, strict=True))  # fmt: skip


# ----------------------------------------------------------------------------------------- values


class HiValue:
    """A value of a `HiType` whose arrays are traced.

    It has the attributes of its type; operators call the type's `_add`, `_getitem` and so on.

    Attributes:
      aval: its type.
      arrays: what it is made of.
      perturbations: zeros of the tangent type, where that is not the type of its arrays' tangents.
    """

    __slots__ = ("arrays", "aval", "perturbations")

    def __init__(self, aval: HiType, arrays: Sequence[Any], perturbations: Sequence[Any]) -> None:
        self.aval = aval
        self.arrays = arrays
        self.perturbations = perturbations

    def open(self) -> Any:
        """Return the instance of the registered class, for the implementation of an operation."""
        return self.aval.raise_val(*self.arrays)

    def __repr__(self) -> str:
        return f"HiValue<{self.aval.str_short()}>"

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self.aval, name)
        except AttributeError:
            raise AttributeError(message(
                self.aval.str_short(), f"a traced value of this type has no attribute {name!r}.",
                hint="an operation (HiPrim) reads what a value is made of, in its method expand",
            )) from None  # fmt: skip
        if isinstance(found, aval_property):
            return found.fget(self)
        return MethodType(found.fun, self) if isinstance(found, aval_method) else found


def _operator(name: str) -> Callable[..., Any]:
    def run(self: HiValue, *others: Any) -> Any:
        found = getattr(self.aval, f"_{name}", None)
        if found is None:
            raise TypeError(message(
                self.aval.str_short(), f"a traced value of this type has no __{name}__.",
                hint=f"the type defines it as the aval_method _{name}",
            ))  # fmt: skip
        return (found.fun if isinstance(found, aval_method) else found)(self, *others)

    return run


for _name in (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift",
      "rshift", "and", "xor", "or"),
    *("radd", "rsub", "rmul", "rmatmul", "rtruediv", "rfloordiv", "rmod", "rdivmod", "rpow",
      "rlshift", "rrshift", "rand", "rxor", "ror"),
    *("bool", "neg", "pos", "abs", "invert", "getitem", "setitem", "len", "iter"),
    *("complex", "int", "float", "index", "round", "trunc", "floor", "ceil"),
):  # fmt: skip
    setattr(HiValue, f"__{_name}__", _operator(_name))


def _flatten(value: Any) -> tuple[tuple[Any, ...], HiType]:
    if type(value) is HiValue:
        return (*value.arrays, *value.perturbations), value.aval
    type_ = type_of_by_class[type(value)](value)
    arrays = type_.lower_val(value)
    if any(isinstance(x, Tracer) for x in arrays):
        raise TypeError(message(
            type(value).__name__, "it was made of traced arrays outside of an operation.",
            got=f"a value of type {type_.str_short()}",
            hint="make it in the method expand of an operation (HiPrim) that returns it",
        ))  # fmt: skip
    return (*arrays, *_no_perturbations(type_)), type_


def _no_perturbations(type_: HiType) -> list[Any]:
    """Return the perturbations of a value of which no derivative is: scalars, and no memory."""
    return [_zero(a.update(shape=())) for a in layout_of(type_).perturbations]


def leaves_of_new(value: Any) -> list[Any]:
    """Return the leaves of a value that an operation has made, of arrays that may be traced."""
    if type(value) is HiValue:
        return list(_flatten(_to_hi_value(value))[0])
    type_ = type_of_by_class[type(value)](value)
    return [*type_.lower_val(value), *zeros(layout_of(type_).perturbations)]


def from_leaves(type_: HiType, leaves: Sequence[Any]) -> Any:
    """Return the value that has these leaves: an instance of its class, where none is traced."""
    leaves = list(leaves)
    if all(isinstance(x, ShapedArray | ShapeDtypeStruct) for x in leaves):
        return type_  # of a tree of types, as that of `eval_shape`
    count = len(layout_of(type_).arrays)
    value = HiValue(type_, leaves[:count], leaves[count:])
    is_known = all(isinstance(x, Array | np.ndarray) and not isinstance(x, Tracer) for x in leaves)
    return value.open() if is_known else value


xtree.register_pytree_node(HiValue, _flatten, from_leaves)

V = TypeVar("V")


def is_high(value: Any) -> bool:
    """Return whether a value is one of a `HiType`."""
    return type(value) in type_of_by_class


def _to_hi_value(value: Any) -> HiValue:
    """Return a value with all of its leaves, in which perturbations have their shapes."""
    leaves, type_ = _flatten(value)
    layout = layout_of(type_)
    count = len(layout.arrays)
    return HiValue(type_, leaves[:count], [
        x if x.shape == a.shape else _zero(a)
        for x, a in zip(leaves[count:], layout.perturbations, strict=True)
    ])  # fmt: skip


def with_perturbations(tree: V) -> V:
    """Return a tree whose values of a `HiType` have perturbations of their shapes.

    Args:
      tree: of arrays and values.
    """
    full: V = xtree.map(lambda x: _to_hi_value(x) if is_high(x) else x, tree, is_leaf=is_high)
    return full


def zeros(avals: Sequence[ShapedArray]) -> list[Any]:
    """Return arrays of zeros of these types."""
    return [_zero(a) for a in avals]


def _zero(aval: ShapedArray) -> Any:
    if aval.dtype == dtypes.float0:
        return float0_array(aval.shape)
    zero = scalar_array(0, aval.dtype)
    if aval.shape:
        zero = bind_one("broadcast_in_dim", zero, shape=aval.shape, broadcast_dimensions=())
    return reshard_as(zero, aval)


def add(x: Any, y: Any) -> Any:
    """Return the sum of two arrays, either of which may be a `Zero`."""
    if isinstance(x, Zero) or isinstance(y, Zero):
        return y if isinstance(x, Zero) else x
    return get_primitive("add").bind(as_array(x), as_array(y))[0]


# -------------------------------------------------------------------------------------- tangents


def tangent_from(type_: Type, leaves: Sequence[Any]) -> Any:
    """Return the tangent of a value, given the tangents of its leaves.

    Args:
      type_: the type of the value.
      leaves: one for each leaf.
    """
    layout = layout_of(type_)
    tangents = layout.pick_differentiated(leaves)
    if layout.perturbations:
        pairs = zip(tangents, layout.perturbations, strict=True)
        tangents = [t if np.shape(t) == a.shape else _zero(a) for t, a in pairs]
    if isinstance(layout.tangent, HiType):
        return from_leaves(layout.tangent, tangents)
    return tangents[0]


def tangents_of(type_: Type, tangent: Any) -> list[Any]:
    """Return the tangents of the leaves of a value, given its tangent.

    Args:
      type_: the type of the value.
      tangent: of the tangent type, or a `Zero`.
    """
    if not isinstance(type_, HiType):
        return [tangent]
    layout = layout_of(type_)
    if isinstance(tangent, Zero):
        return layout.complete([Zero(a) for a in layout.tangent.lo_ty()])
    return layout.complete(xtree.leaves(tangent))


class _Leaf:
    """Holds a leaf of a tree, whatever that leaf is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _opaque(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return a tree of `_Leaf`, in which each value of a `HiType` is a `HiValue`."""
    return xtree.unflatten(tree, [_Leaf(x) for x in leaves])


def unflatten_tangents(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return a tree like that of some values with their tangents in it.

    Args:
      tree: the structure of the values.
      leaves: a tangent for each of their leaves.
    """

    def tangent(x: Any) -> Any:
        if type(x) is _Leaf:
            return x.value
        return tangent_from(x.aval, [leaf.value for leaf in (*x.arrays, *x.perturbations)])

    return xtree.map(tangent, _opaque(tree, leaves), is_leaf=is_high)


def with_all_leaves(tree: Any, tangents: Any) -> Any:
    """Return a tree of tangents in which those of values of a `HiType` have all of their leaves.

    Args:
      tree: the structure of the values.
      tangents: a tree of their tangents.
    """
    values = _opaque(tree, [None] * tree.num_leaves)
    if not any(map(is_high, xtree.leaves(values, is_leaf=is_high))):
        return tangents

    def complete(x: Any, tangent: Any) -> Any:
        return HiValue(x.aval, tangents_of(x.aval, tangent), ()) if is_high(x) else tangent

    return xtree.map(complete, values, tangents, is_leaf=lambda x: is_high(x) or type(x) is _Leaf)


def as_arguments(args: V) -> tuple[V, Callable[[Any], V] | None]:
    """Return arguments of which each value of a `HiType` is replaced by one of its tangent type.

    A function of the arguments is differentiated as one of these: of the arrays, where tangents are
    theirs, otherwise of perturbations, at zero.

    Returns:
      The arguments, and the function that makes the values of them again; None where there are no
      such values.
    """
    leaves, tree = xtree.flatten(args, is_leaf=is_high)
    high = {i: _flatten(x) for i, x in enumerate(leaves) if is_high(x)}
    if not high:
        return args, None
    for i, (parts, type_) in high.items():
        leaves[i] = _argument(type_, parts)

    def restore(given: Any) -> V:
        found = tree.flatten_up_to(given)
        for i, (parts, type_) in high.items():
            own = xtree.leaves(found[i])
            if layout_of(type_).perturbations:
                count = len(layout_of(type_).arrays)
                pairs = zip(parts[count:], own, strict=True)
                own = [*parts[:count], *[y if x.shape != y.shape else add(x, y) for x, y in pairs]]
            found[i] = from_leaves(type_, own)
        restored: V = xtree.unflatten(tree, found)
        return restored

    return xtree.unflatten(tree, leaves), restore


def _argument(type_: HiType, leaves: Sequence[Any]) -> Any:
    layout = layout_of(type_)
    if layout.tangent is None:
        type_.to_tangent_aval()  # raises
    arrays = zeros(layout.perturbations) if layout.perturbations else leaves
    if isinstance(layout.tangent, HiType):
        return HiValue(layout.tangent, arrays, ())
    return arrays[0]


# --------------------------------------------------------------------------------------- batches

_SIZE = 1_000_003  # a batch whose dimension no array has by chance


def _axes(element: HiType, spec: Any) -> tuple[list[int | None], list[int | None]]:
    """Return along which axis each array, and each perturbation, of a batch has its elements."""
    batch = element.inc_rank(_SIZE, spec)
    one, many = layout_of(element), layout_of(batch)
    return ([_axis(a, b, element, spec) for a, b in zip(one.arrays, many.arrays, strict=True)],
            [_axis(a, b, element, spec)
             for a, b in zip(one.perturbations, many.perturbations, strict=True)])  # fmt: skip


def _axis(one: ShapedArray, many: ShapedArray, element: HiType, spec: Any) -> int | None:
    if one.shape == many.shape:
        return None
    axis = many.shape.index(_SIZE) if _SIZE in many.shape else 0
    if many.shape[:axis] + many.shape[axis + 1 :] != one.shape:
        raise ValueError(message(
            type(element).__name__, "a batch of it has other dimensions than its elements and one.",
            got=f"inc_rank({spec!r}): {many.str_short()} for {one.str_short()}".replace(
                str(_SIZE), "size"),
        ))  # fmt: skip
    return axis


def one_of(value: Any, size: int, spec: Any, element: Callable[[Any, Any], Any]) -> Any:
    """Return the value that stands for one element of a batch.

    Args:
      value: the batch.
      size: how many elements it has.
      spec: the `MappingSpec`.
      element: `element(array, axis)` is what stands for one element of an array.
    """
    batch = _to_hi_value(value)
    type_ = batch.aval.dec_rank(size, spec)
    axes, of_perturbations = _axes(type_, spec)
    return HiValue(type_, list(map(element, batch.arrays, axes)),
                   list(map(element, batch.perturbations, of_perturbations)))  # fmt: skip


def all_of(value: Any, size: int, spec: Any, batch: Callable[[Any, Any], Any]) -> Any:
    """Return the batch of which a value stands for one element.

    Args:
      value: one element.
      size: how many elements there are.
      spec: the `MappingSpec`.
      batch: `batch(array, axis)` is the array of all elements, along an axis.
    """
    one = _to_hi_value(value)
    axes, of_perturbations = _axes(one.aval, spec)
    leaves = [*map(batch, one.arrays, axes), *map(batch, one.perturbations, of_perturbations)]
    return from_leaves(one.aval.inc_rank(size, spec), leaves)


@xtree.register_pytree_node_class
class _Steps:
    """The leaves of a value in a scan, whose arrays have their elements along the leading axis."""

    def __init__(self, type_: HiType, axes: Sequence[int], leaves: Sequence[Any]) -> None:
        self.aval, self.axes, self.leaves = type_, tuple(axes), leaves

    def tree_flatten(self) -> tuple[Sequence[Any], Any]:
        return self.leaves, (self.aval, self.axes)

    @classmethod
    def tree_unflatten(cls, data: Any, leaves: Sequence[Any]) -> _Steps:
        type_, axes = data
        return cls(type_, axes, leaves)


def along_leading_axes(
    body: Callable[..., Any], xs: Any, length: int | None
) -> tuple[Callable[..., Any], Any, Callable[[Any], Any]]:
    """Return what a scan goes along for values of a `HiType` in its arrays and results.

    Args:
      body: that of the scan.
      xs: the arrays and values.
      length: the number of steps, where it is given.

    Returns:
      A body of arrays, the arrays, and the function that makes the results of the scan's.
    """
    leaves, tree = xtree.flatten(xs, is_leaf=is_high)
    if any(map(is_high, leaves)):
        sizes = [x.shape[0] for x in leaves if not is_high(x) and np.ndim(x)]
        if length is None and not sizes:
            raise ValueError(message(
                "scan", "the number of steps is not known.",
                hint="pass length=..., where xs has values of types of their own alone",
            ))  # fmt: skip
        size = sizes[0] if length is None else length
        xs = xtree.unflatten(tree, [_steps_of(x, size) if is_high(x) else x for x in leaves])
    return StepOfArrays(body), xs, _stack_values


def _steps_of(batch: Any, size: int) -> _Steps:
    value = _to_hi_value(batch)
    spec = value.aval.leading_axis_spec()
    element = value.aval.dec_rank(size, spec)
    axes = _leading_axes(element, spec)
    leaves = [*value.arrays, *value.perturbations]
    moved = [_move(as_array(x), a, 0) for x, a in zip(leaves, axes, strict=True)]
    return _Steps(element, axes, moved)


class StepOfArrays:
    """The body of a scan on values, which takes and returns these as `_Steps`.

    Args:
      body: that of the user.
    """

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = self.__wrapped__ = body  # errors name the wrapped function
        self.__qualname__ = type(self).__qualname__

    def __call__(self, carry: Any, x: Any) -> Any:
        """Return the next carry and what is stacked."""
        result = self.body(carry, xtree.map(_value_of_step, x, is_leaf=_is_steps))
        if not isinstance(result, tuple | list) or len(result) != 2:
            return result  # for which the scan raises
        return result[0], xtree.map(_step_of_value, result[1], is_leaf=is_high)


def _value_of_step(x: Any) -> Any:
    return from_leaves(x.aval, x.leaves) if _is_steps(x) else x


def _step_of_value(y: Any) -> Any:
    if not is_high(y):
        return y
    value = _to_hi_value(y)
    axes = _leading_axes(value.aval, value.aval.leading_axis_spec())
    return _Steps(value.aval, axes, [*value.arrays, *value.perturbations])


def _stack_values(ys: Any) -> Any:
    def stack(x: Any) -> Any:
        if not _is_steps(x):
            return x
        moved = [_move(y, 0, a) for y, a in zip(x.leaves, x.axes, strict=True)]
        return from_leaves(x.aval.inc_rank(x.leaves[0].shape[0], x.aval.leading_axis_spec()), moved)

    return xtree.map(stack, ys, is_leaf=_is_steps)


def _leading_axes(element: HiType, spec: Any) -> list[int]:
    return [axis or 0 for axis in itertools.chain(*_axes(element, spec))]


def _is_steps(x: Any) -> bool:
    return type(x) is _Steps


def _move(x: Any, source: int, target: int) -> Any:
    if source == target:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return bind_one("transpose", x, permutation=tuple(order))
