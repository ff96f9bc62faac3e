"""What `checkpoint` may keep: policies, the names they speak of, and their verdicts.

A policy looks at one equation, `policy(primitive, *avals, **params)`, and says whether its results
are kept for the backward pass. `checkpoint_name` marks a value for the policies that go by name; it
is the identity otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import xtree
from xprim import ELEMENTWISE, LINEAR, Primitive, as_array
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import PyTree
from xtree.records import Record, set_once


class _Verdict:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        return self.name == "Saveable"


Saveable: Final = _Verdict("Saveable")
Recompute: Final = _Verdict("Recompute")


class Offloadable(Record):
    """The verdict that a result may be kept in another memory.

    Where the program runs on a backend with one memory (the CPU, NumPy) it is kept there.

    Attributes:
      src: the kind of memory that the value is in.
      dst: the kind of memory to keep it in.
    """

    __slots__ = __match_args__ = ("src", "dst")
    src: str
    dst: str

    def __init__(
        self, src: str, dst: str,
    ) -> None:  # fmt: skip
        set_once(self, "src", src)
        set_once(self, "dst", dst)


Verdict = bool | _Verdict | Offloadable
Policy = Callable[..., Verdict]


def is_saved(verdict: Verdict) -> bool:
    """Return whether a policy's verdict keeps the value."""
    return isinstance(verdict, Offloadable) or bool(verdict)


@boundary
def checkpoint_name(x: PyTree, name: str) -> PyTree:
    """Give a value a name that policies such as `save_only_these_names` can refer to.

    Args:
      x: a pytree of arrays.
      name: the name.

    Returns:
      The same tree; its values are what the name stands for.
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: the name must be a string, got a {type(name).__name__}.")
    return xtree.map(lambda leaf: name_p.bind(as_array(leaf), name=name)[0], x)


@boundary
def checkpoint_name_fwd(x: PyTree, name: str) -> PyTree:
    """Give a value a name, as `checkpoint_name` does (JAX's name for use in `fwd` rules)."""
    return checkpoint_name(x, name)


def _same(x: Any, **_params: Any) -> Any:
    return (x,)


name_p = Primitive(
    "name",
    shape=_same,
    numpy=_same,
    stablehlo=lambda b, operands, avals_in, avals_out, *, name: operands,
    jvp=LINEAR,
    transpose=lambda cts, x, *, name: cts,
    batch=ELEMENTWISE,
)


class checkpoint_policies:  # noqa: N801 - a namespace, named as users know it
    """Policies for `checkpoint`: which intermediate results the forward pass may keep."""

    @staticmethod
    def everything_saveable(*_avals: Any, **_params: Any) -> bool:
        """Keep everything."""
        return True

    @staticmethod
    def nothing_saveable(*_avals: Any, **_params: Any) -> bool:
        """Keep nothing but the arguments."""
        return False

    @staticmethod
    def dots_saveable(prim: Primitive, *_avals: Any, **_params: Any) -> bool:
        """Keep the results of contractions, which are dear to compute again."""
        return prim.name in _CONTRACTIONS

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(prim: Primitive, *_avals: Any, **params: Any) -> bool:
        """Keep the results of contractions without batch dimensions, such as weights times data."""
        if prim.name != "dot_general":
            return False
        _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not lhs_batch and not rhs_batch

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Keep the values that `checkpoint_name` gave one of these names."""

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> bool:
            return primitive is name_p and params["name"] in names

        return policy

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """Keep everything but the values with these names."""

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> bool:
            return not (primitive is name_p and params["name"] in names)

        return policy

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Keep the values that `checkpoint_name` gave any other name."""

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> bool:
            return primitive is name_p and params["name"] not in names

        return policy

    @staticmethod
    def save_and_offload_only_these_names(
        *,
        names_which_can_be_saved: Sequence[str],
        names_which_can_be_offloaded: Sequence[str],
        offload_src: str,
        offload_dst: str,
    ) -> Policy:
        """Keep the values with the first names where they are, those with the others elsewhere."""
        saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
        if saved & offloaded:
            raise ValueError(message(
                "save_and_offload_only_these_names", "a name must be in one of the two lists.",
                got=f"{sorted(saved & offloaded)} in both",
            ))  # fmt: skip

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> Verdict:
            if primitive is name_p and params["name"] in saved:
                return Saveable
            if primitive is name_p and params["name"] in offloaded:
                return Offloadable(offload_src, offload_dst)
            return Recompute

        return policy

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
        """Keep the results of contractions without batch dimensions, in another memory."""

        def policy(primitive: Primitive, *avals: Any, **params: Any) -> Verdict:
            if checkpoint_policies.dots_with_no_batch_dims_saveable(primitive, *avals, **params):
                return Offloadable(offload_src, offload_dst)
            return Recompute

        return policy

    @staticmethod
    def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
        """Keep what either policy keeps."""

        def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
            return is_saved(policy_1(primitive, *avals, **params)) or is_saved(
                policy_2(primitive, *avals, **params)
            )

        return policy


POLICY_MAKERS: tuple[Any, ...] = (
    checkpoint_policies.save_only_these_names,
    checkpoint_policies.save_anything_except_these_names,
    checkpoint_policies.save_any_names_but_these,
    checkpoint_policies.save_and_offload_only_these_names,
    checkpoint_policies.offload_dot_with_no_batch_dims,
    checkpoint_policies.save_from_both_policies,
)

_CONTRACTIONS = ("dot_general", "conv_general_dilated", "ragged_dot_general")
