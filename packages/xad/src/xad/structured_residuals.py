"""Residuals of backward rules that a pull-back shows as the trees that the rules made of them.

    structure_residuals(tree)      in a `fwd` rule: part of the residuals, which `bwd` gets back
    pull_back.structured_residuals these trees, one for each rule that ran, in order

What a function computes for its derivative is an opaque list, but for what a rule says to be
structured. The tree of a rule's residuals goes with its backward rule (`residual_tree`), so that
the operands of the equation on the tape are known by their places in it; calls of programs lead
from the operands inside to those outside. Each such residual passes `structured_residual`, an
identity, so that it is an array of its own: it is neither an argument nor another residual, and
can be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xtree
from xprim import (
    ELEMENTWISE,
    LINEAR,
    Array,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Literal,
    Primitive,
    custom_vjp_linear_p,
)
from xtree.namespaces import late_import

__all__ = ["StructuredResiduals", "literals_shown", "residual_entries", "structure_residuals"]

__dir__ = __all__.copy

_backward_logs = late_import("xad.backward_logs", "few rules show their residuals")


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


structured_residual_p = Primitive(
    "structured_residual",
    shape=_same,
    numpy=_view,
    stablehlo=lambda b, operands, avals_in, avals_out, **_params: operands,
    jvp=LINEAR,
    transpose=lambda cts, x, **_params: cts,
    batch=ELEMENTWISE,
)


# --------------------------------------------------------------------------------------- the tape


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
    if eqn.primitive is not custom_vjp_linear_p:
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
