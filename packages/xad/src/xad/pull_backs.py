"""Pull-backs: where they leave each cotangent, what they save of the arguments, what they show.

`vjp(f, x, y)[1].with_refs(ref, GradValue())` says for each leaf of the arguments where its
cotangent goes: to the caller, to a reference, or nowhere; the marks `GradRef` and `DidntWant`
stand in the result where no cotangent does.

`vjp(f, w, x, saveable_args=(False, True))` leaves out the weights of what the backward pass needs;
`pull_back.args_res` shows `NotSaveable()` in their place, where the caller puts them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import xprim
import xtree
from xad.arguments import check_each_once
from xprim import Array, ClosedJaxpr, Equation, Jaxpr, Literal, ShapedArray, Zero, as_array, dtypes
from xprim.errors import described, message
from xprim.refs import BaseRef
from xprim.transformed import path_of
from xtree.namespaces import late_import

__all__ = [
    "DidntWant", "DontWant", "GradRef", "GradValue", "NotNeeded", "NotSaveable",
    "StructuredResiduals", "literals_shown", "residual_entries", "structure_residuals",
]  # fmt: skip

__dir__ = __all__.copy

_backward_logs = late_import("xad.backward_logs", "few rules show their residuals")


class _Mark:
    """A value that says something by its class alone."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Mark):
    """Asks `with_refs` for a cotangent among the results."""

    __slots__ = ()


class DontWant(_Mark):
    """Tells `with_refs` that a cotangent is not needed."""

    __slots__ = ()


class MarkNode(_Mark):
    """A mark that is a tree without leaves, so that it may leave a compiled function."""

    __slots__ = ()

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return no leaves."""
        return (), None

    @classmethod
    def tree_unflatten(cls, _data: None, _leaves: Sequence[Any]) -> MarkNode:
        """Return the mark."""
        return cls()


@xtree.register_pytree_node_class
class GradRef(MarkNode):
    """Stands for a cotangent that was added to a reference."""

    __slots__ = ()


@xtree.register_pytree_node_class
class DidntWant(MarkNode):
    """Stands for a cotangent that is not requested."""

    __slots__ = ()


def check_places(places: tuple[Any, ...], signature: Any) -> list[Any]:
    """Return where the cotangent of each leaf goes.

    Args:
      places: trees like the primals, of references, `GradValue` and `DontWant`.
      signature: of the pull-back, with the structure and the types of the primals.

    Raises:
      ValueError: they do not fit the primals.
    """
    leaves, tree = xtree.flatten(places)
    name = f"{signature.operation}: with_refs"
    if tree != signature.in_tree:
        raise ValueError(message(
            name, "its arguments have another structure than the primals.", got=f"{tree}",
            expected=f"{signature.in_tree}, of references, GradValue() and DontWant()",
            hint="None is a tree without leaves: write GradValue() or DontWant()",
        ))  # fmt: skip
    for i in signature.references:
        if not isinstance(leaves[i], BaseRef | DontWant):
            raise ValueError(message(
                name, f"the primal{path_of(tree, i, ' at ')} is a reference, whose cotangent is "
                "not a result.",
                got=described(leaves[i]), expected="a reference, or DontWant()",
            ))  # fmt: skip
    check_each_once(
        [leaves[i] for i in signature.references if isinstance(leaves[i], BaseRef)], name
    )
    for leaf, aval in zip(leaves, signature.in_avals, strict=True):
        if isinstance(leaf, BaseRef):
            if leaf.aval.shape != aval.shape or leaf.aval.dtype != aval.dtype:
                raise ValueError(message(
                    name, "a reference is of another type than its primal.",
                    got=leaf.aval.str_long(), expected=aval.strong().str_long(),
                ))  # fmt: skip
        elif not isinstance(leaf, GradValue | DontWant):
            raise ValueError(message(
                name, "this says nothing about a cotangent.", got=described(leaf),
                expected="a reference, GradValue() or DontWant()",
            ))  # fmt: skip
    return leaves


def place_cotangents(
    cotangents: Sequence[Any], places: Sequence[Any], written: Sequence[int] = ()
) -> list[Any]:
    """Return the cotangents, those that go to references added there.

    Args:
      cotangents: an array each.
      places: as `checked_places` gives them.
      written: the numbers of those that lie in their references already.
    """
    results: list[Any] = []
    for i, (ct, place) in enumerate(zip(cotangents, places, strict=True)):
        if i in written and isinstance(place, BaseRef):
            results.append(GradRef())
        elif isinstance(place, GradValue):
            results.append(ct)
        elif isinstance(place, DontWant):
            results.append(DidntWant())
        else:
            if type(ct) is not Zero and ct.dtype != dtypes.float0:
                now: Array = place.value()
                place.write(now + ct, is_shared=False)
            results.append(GradRef())
    return results


# ------------------------------------------------------------------------------- saved arguments


@xtree.register_pytree_node_class
class NotNeeded(MarkNode):
    """Stands for an argument that the backward pass does not need as it was."""

    __slots__ = ()


@xtree.register_pytree_node_class
class NotSaveable(MarkNode):
    """Stands for an argument that the backward pass needs and that was not saved."""

    __slots__ = ()


def flags_of(prefix: Any, tree: Any, name: str) -> list[bool]:
    """Return a boolean for each leaf of a structure.

    Args:
      prefix: a boolean, or a container with a prefix for each child. Its containers need the
        structure's number of children, not its types; two dictionaries need the same keys.
      tree: the structure.
      name: the argument, for errors.

    Raises:
      ValueError: a part of the prefix is neither, or its children are others than those.
    """
    if isinstance(prefix, bool):
        return [prefix] * tree.num_leaves
    try:
        parts, _ = xtree.flatten_one_level(prefix)
    except ValueError:
        raise ValueError(message(
            name, "it must be a tree of booleans.", got=described(prefix),
            expected="a boolean, or a tuple with an entry for each argument",
        )) from None  # fmt: skip
    children, node = tree.children(), tree.node_data()
    keyed = isinstance(prefix, dict) and node is not None and node[0] is dict
    if node is None or len(parts) != len(children) or (keyed and prefix.keys() != {*node[1]}):
        raise ValueError(message(
            name, "it has other children than the arguments.", got=described(prefix),
            expected=f"a boolean, or as many entries as {tree}",
        ))  # fmt: skip
    pairs = zip(parts, children, strict=True)
    return [flag for part, child in pairs for flag in flags_of(part, child, name)]


def mirror_tree(tree: Any, leaves: Iterable[Any]) -> Any:
    """Return leaves in a structure's lists and dictionaries, with a tuple for any other node."""
    rest = iter(leaves)

    def mirror(each: Any) -> Any:
        node = each.node_data()
        if node is None:
            return next(rest)
        kind, data = node
        children = [mirror(child) for child in each.children()]
        if kind is dict:
            return dict(zip(data, children, strict=True))
        if kind is type(None):
            return None
        return children if kind is list else tuple(children)

    return mirror(tree)


def flatten_saved(args_res: Any, count: int) -> list[Any]:
    """Return what a tree like the arguments holds for each; marks count as leaves.

    Raises:
      ValueError: they are not as many as the arguments' leaves.
    """
    values = xtree.leaves(args_res, is_leaf=lambda x: isinstance(x, NotNeeded | NotSaveable))
    if len(values) != count:
        raise ValueError(message(
            "vjp: args_res", "it has other leaves than the arguments.", got=f"{len(values)} leaves",
            expected=f"{count}, of arrays, NotNeeded() and NotSaveable()",
        ))  # fmt: skip
    return values


def restore(value: Any, number: int, in_tree: Any, in_avals: Sequence[ShapedArray]) -> Array:
    """Return the argument of a number, which the backward pass needs, as the array that it was.

    Raises:
      ValueError: it was not put back, or is of another type.
    """
    at, aval = path_of(in_tree, number, " at "), in_avals[number]
    if isinstance(value, NotNeeded | NotSaveable):
        raise ValueError(message(
            "vjp", f"the backward pass needs the argument{at}, which was not saved.",
            expected=aval.str_long(),
            hint="put it back before the call: pull_back.args_res[0] = x, or\n"
            "pull_back.replace(args_res=[x, ...])",
        ))  # fmt: skip
    array = as_array(value)
    if array.aval.shape != aval.shape or array.aval.dtype != aval.dtype:
        raise ValueError(message(
            "vjp: args_res", f"the value{at} is of another type than the argument was.",
            got=array.aval.str_long(), expected=aval.strong().str_long(),
        ))  # fmt: skip
    return array


# ----------------------------------------------------------------------------- structured residuals
# Residuals of backward rules that a pull-back shows as the trees that the rules made of them.
#
#     structure_residuals(tree)      in a `fwd` rule: part of the residuals, which `bwd` gets back
#     pull_back.structured_residuals these trees, one for each rule that ran, in order
#
# What a function computes for its derivative is an opaque list, but for what a rule says to be
# structured. The tree of a rule's residuals goes with its backward rule (`residual_tree`), so that
# the operands of the equation on the tape are known by their places in it; calls of programs lead
# from the operands inside to those outside. Each such residual passes `structured_residual`, an
# identity, so that it is an array of its own: it is neither an argument nor another residual, and
# can be edited.


@xtree.register_pytree_node_class
class StructuredResiduals:
    """Residuals that the pull-back shows as a tree.

    Attributes:
      tree: the residuals.
    """

    __slots__ = ("tree",)

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        """Return the tree."""
        return (self.tree,), None

    @classmethod
    def tree_unflatten(cls, _data: None, children: Sequence[Any]) -> StructuredResiduals:
        """Return the residuals with other arrays."""
        return cls(*children)

    def __repr__(self) -> str:
        return f"StructuredResiduals({self.tree!r})"


def structure_residuals(tree: Any) -> StructuredResiduals:
    """Mark residuals of a `fwd` rule, so that `pull_back.structured_residuals` shows their tree.

    Args:
      tree: a pytree of arrays and numbers. `bwd` gets it as the attribute `tree` of what this
        returns, and `pull_back.structured_residuals` may have other arrays by then.

    Example:
      >>> from xad import custom_vjp, vjp
      >>> @custom_vjp
      ... def scaled(x):
      ...     return 2 * x
      >>> scaled.defvjp(
      ...     lambda x: (2 * x, structure_residuals({"factor": 2.0})),
      ...     lambda residuals, ct: (residuals.tree["factor"] * ct,),
      ... )
      >>> _, pull_back = vjp(scaled, 3.0)
      >>> pull_back.structured_residuals
      [{'factor': Array(2., dtype=float32, weak_type=True)}]
      >>> pull_back.structured_residuals[0]["factor"] = 5.0
      >>> float(pull_back(1.0)[0])
      5.0
    """
    return StructuredResiduals(xtree.map(_own_array, tree))


def _own_array(leaf: Any) -> Any:
    if not isinstance(leaf, Array | bool | int | float | complex) and not hasattr(leaf, "dtype"):
        return leaf  # a reference, or what the rule's check of residuals names
    return structured_residual_p.bind(leaf)[0]


def _same(x: Any, **_params: Any) -> Any:
    return (x,)


def _view(x: Any, **_params: Any) -> Any:
    return (np.asarray(x).view(),)  # another array, by which `args_res` knows an argument


structured_residual_p = xprim.Primitive(
    "structured_residual",
    shape=_same,
    numpy=_view,
    stablehlo=lambda b, operands, avals_in, avals_out, **_params: operands,
    jvp=xprim.LINEAR,
    transpose=lambda cts, x, **_params: cts,
    batch=xprim.ELEMENTWISE,
)


# --- the tape -------------------------------------------------------------------------------------


def residual_entries(jaxpr: Jaxpr) -> list[Any]:
    """Return the structured residuals of a linear program: trees of its variables and literals.

    A rule gives a tree. A call of a program, of `jit` or `scan`, gives a list, a `cond` a
    `CondSum` with a list for each branch; those without such residuals give nothing. Residuals that
    the backward pass computes again, as in a checkpoint, are left out.
    """
    return [entry for eqn in jaxpr.eqns for entry in _entries_of(eqn)]


def literals_shown(eqn: Equation) -> list[Literal]:
    """Return the literals among the structured residuals of an equation."""
    return [x for x in xtree.leaves(_entries_of(eqn)) if type(x) is Literal]


def _entries_of(eqn: Equation) -> list[Any]:
    params, inputs = eqn.params, eqn.inputs
    own = _entries_of_rule(eqn)
    if own:
        return own
    branches = params.get("branches")
    if branches is not None:
        index, *operands = inputs
        of_branches = [_entries_inside(closed, operands) for closed in branches]
        return [_backward_logs.CondSum(index, of_branches)] if any(of_branches) else []
    closed = params.get("jaxpr")
    if not isinstance(closed, ClosedJaxpr):
        return []
    ahead = len(inputs) - len(closed.jaxpr.invars)  # the lengths of a scan
    inside = _entries_inside(closed, inputs[ahead:])
    return [inside] if inside else []


def _entries_of_rule(eqn: Equation) -> list[Any]:
    """Return the entries of the equation of a backward rule, of `custom_vjp` or in both modes."""
    params, inputs = eqn.params, eqn.inputs
    if "structured" in params:
        tree, numbers = params["structured"]
        found: list[Any] = xtree.unflatten(tree, [inputs[k] for k in numbers])
        return found
    if eqn.primitive is not xprim.custom_vjp_linear_p:
        return []
    entries: list[Any] = []
    tree = getattr(params["bwd"], "residual_tree", None)
    if tree is not None:
        _collect(tree, 0, inputs, entries)
    return entries


def _collect(tree: Any, start: int, atoms: Sequence[Any], entries: list[Any]) -> int:
    """Append the entries of a structure whose leaves are the atoms from `start` on."""
    node = tree.node_data()
    if node is None:
        return start + 1
    if node[0] is StructuredResiduals:
        (child,) = tree.children()
        end = start + int(child.num_leaves)
        entries.append(xtree.unflatten(child, atoms[start:end]))
        return end
    for child in tree.children():
        start = _collect(child, start, atoms, entries)
    return start


def _entries_inside(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Return the entries of a program in terms of the operands of its call."""
    outside = dict(zip(closed.jaxpr.invars, operands, strict=True))
    found = []
    for entry in residual_entries(closed.jaxpr):
        leaves, tree = xtree.flatten(entry)
        if all(type(x) is Literal or x in outside for x in leaves):
            atoms = [x if type(x) is Literal else outside[x] for x in leaves]
            found.append(xtree.unflatten(tree, atoms))
    return found
