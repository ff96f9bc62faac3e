"""What rules are given by the packages that ask them: everything that they may use of it.

    Builder            `stablehlo` rules write operations with it               made by xjit
    BatchAxis          `batch` rules move dimensions and batch programs         made by xbatch
    JVPHandle          `jvp` rules of calls differentiate their programs        made by xad
    LinearizeHandle    `linearize` rules split them                             made by xad
    TransposeHandle    `transpose` rules transpose them                         made by xad
    ChecksHandle       `checked` rules carry what failed first through them     made by xjit

These are protocols: the objects have more than is declared here, and rules must not use it, for
the packages have versions of their own. A rule whose parameter has one of these types is checked by
a type checker.

Operands in a `stablehlo` rule are names of values in the text (`%7`), each with an abstract value
that says its type. In the other rules operands are Arrays, or stand-ins from `rules`.

`by_platform` makes a `stablehlo` rule of one for each platform.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from xprim.avals import ShapedArray
from xprim.errors import MissingRuleError, message
from xprim.jaxpr import ClosedJaxpr, Jaxpr

__all__ = [
    "BatchAxis", "Builder", "ChecksHandle", "JVPHandle", "LinearizeHandle", "SplitProgram",
    "TransposeHandle", "is_in_loop", "loop_region", "outline", "by_platform", "is_gpu",
    "names_of_platform", "platforms_of",
]  # fmt: skip

__dir__ = __all__.copy

Names = Sequence[str]


class Builder(Protocol):
    """Writes the operations of a function, or of a region inside it, as StableHLO text.

    Attributes:
      order: the name of the value, of type `xprim.ORDER`, that the ordered effect written last
        gave. An operation with such an effect takes it as an operand and sets it to a result, which
        is what keeps the order. A rule with regions whose programs have such effects
        (`xprim.ordered_effects`) begins each region by setting it there, to an argument of the
        block or to that of the builder outside, returns it from the region, and sets it outside to
        the result of the operation.
    """

    order: str

    @property
    def platform(self) -> str:
        """The platform the program is written for: `cpu`, `cuda`, ..."""

    @property
    def axis_sizes(self) -> Mapping[Any, int]:
        """The named axes that run over replicas, which are numbered row by row over them."""

    @property
    def members(self) -> Any:
        """The devices of a mesh that run a manual computation, or None.

        Their `numbers`, in the shape of the mesh, are what collectives call them; `axis_sizes` are
        those of the mesh then. None stands for replicas.
        """

    @property
    def is_split(self) -> bool:
        """Whether the compiler cuts values over several devices, so that each runs a part of them.

        Not in a manual computation along all axes: what a rule writes there is what each runs.
        """

    def may_be_cut(self, aval: ShapedArray, dims: Sequence[int]) -> bool:
        """Return whether the program cuts arrays of this rank along one of these dimensions.

        What it says of arguments, results and by constraints counts; the rest is the compiler's.
        """

    def hold_whole(self, name: str, aval: ShapedArray, dims: Sequence[int] | None = None) -> str:
        """Return a value that the compiler does not cut, in a program that is split.

        With `dims` it does not do so along these dimensions, and may along the others.
        For what operations take and give that the compiler splits wrongly.
        """

    def channel(self) -> str:
        """Return the attribute that a collective between devices of a mesh has, or nothing."""

    def channel_number(self) -> int | None:
        """Return the number of the next collective between devices of a mesh; None for replicas."""

    def op(
        self, name: str, operands: Names, avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray], attributes: str = "", regions: str = "",
    ) -> list[str]:  # fmt: skip
        """Append an operation in generic form and return the names of its results.

        Args:
          name: the full name, `stablehlo.add`.
          operands: names of the operands.
          avals_in: their abstract values.
          avals_out: the abstract values of the results.
          attributes: the inside of the attribute dictionary, `dimension = 0 : i64`.
          regions: the text of regions in parentheses, as `region` and `regions` return it.
        """

    def same_type_op(self, name: str, operands: Names, aval: ShapedArray) -> str:
        """Append an operation whose operands and result all have one type: `stablehlo.add`."""

    def constant(self, value: Any, aval: ShapedArray) -> str:
        """Return the name of a constant: a scalar repeated to a shape, or a whole array."""

    def scalar(self, value: Any, dtype: np.dtype[Any]) -> str:
        """Return the name of a constant of rank 0."""

    def known_scalar(self, name: str) -> Any:
        """Return the value of a constant of rank 0 by its name, None where it is not one."""

    def full_like(self, value: Any, aval: ShapedArray) -> str:
        """Return the name of a constant of the type of `aval` filled with a scalar."""

    def array_constant(self, value: Any) -> str:
        """Return the name of an Array that the program captured."""

    def broadcast(
        self, operand: str, aval: ShapedArray, shape: tuple[int, ...], dims: Sequence[int] = ()
    ) -> str:
        """Repeat an operand to a shape; `dims` says where its dimensions go."""

    def convert(self, operand: str, aval: ShapedArray, dtype: np.dtype[Any]) -> str:
        """Convert an operand to another element type, by value."""

    def region(
        self, avals: Sequence[ShapedArray], body: Callable[[Any, list[str]], Names],
        result_avals: Sequence[ShapedArray],
    ) -> str:  # fmt: skip
        """Return the text of a region.

        Args:
          avals: the abstract values of the block's arguments.
          body: writes the block into the `Builder` it gets, from the names of the arguments, and
            returns the names of the results.
          result_avals: the abstract values of the results.
        """

    def loop_region(
        self, avals: Sequence[ShapedArray], body: Callable[[Any, list[str]], Names],
        result_avals: Sequence[ShapedArray],
    ) -> str:  # fmt: skip
        """Return the text of the body of a loop, as `region` does; `is_in_loop` holds inside."""

    @property
    def is_in_loop(self) -> bool:
        """Whether what is written runs once for each step of a loop.

        The compiler for CPUs makes one kernel of a loop whose body has no call and no product of
        matrices, so small ones are written as arithmetic there.
        """

    def regions(self, *texts: str) -> str:
        """Join the regions of one operation, each as `region` returns it."""

    def reducer(self, name: str, dtype: np.dtype[Any]) -> str:
        """Return the region of a reduction by one operation on two scalars."""

    def inline(self, closed: ClosedJaxpr, operands: Names) -> list[str]:
        """Write the equations of a program here and return the names of its results."""

    def call(self, closed: ClosedJaxpr, operands: Names, name: str = "") -> list[str]:
        """Call a program as a private function, which is written once for each jaxpr."""

    def on_host(
        self, primitive: Any, operands: Names, avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray], params: Mapping[str, Any],
    ) -> list[str]:  # fmt: skip
        """Have the host run the NumPy rule of a primitive while the program runs.

        For what a platform has no routine for. Operands and results are copied to the host and
        back; the first program that does so for a primitive logs that.
        """

    def traced(
        self, fun: Callable[..., Any], operands: Names, avals_in: Sequence[ShapedArray], key: Any
    ) -> list[str]:
        """Write what a function of Arrays does: for primitives with no operation of their own.

        Args:
          fun: takes Arrays, returns a sequence of Arrays.
          operands: names of the operands.
          avals_in: their abstract values.
          key: hashable; equal keys (with equal `avals_in`) promise the same program.
        """

    def outline(
        self, body: Callable[[Any, list[str]], Names], operands: Names,
        avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], key: Any, name: str,
    ) -> list[str]:  # fmt: skip
        """Write operations as a private function, once for each key, and call it.

        On the CPU the compiler does not inline it, so it is not fused with what uses its results,
        which would compute it again for each use. For what is long and has few operands. Inside of
        such a function, and in computations that are manual along some axes of a mesh only, the
        body stands in place.

        Args:
          body: writes the operations into the `Builder` it gets, from the names of the operands,
            and returns the names of the results.
          operands: names of the operands.
          avals_in: their abstract values.
          avals_out: the abstract values of the results.
          key: hashable; equal keys (with equal `avals_in`) promise the same operations.
          name: of the function.
        """


def outline(
    b: Builder, body: Callable[[Any, list[str]], Names], operands: Names,
    avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], key: Any, name: str,
) -> list[str]:  # fmt: skip
    """Write operations as `b.outline` does; in place by a builder of xjit 0.2.0, which has none."""
    if not hasattr(b, "outline"):
        return list(body(b, list(operands)))
    return b.outline(body, operands, avals_in, avals_out, key, name)


def loop_region(
    b: Builder, avals: Sequence[ShapedArray], body: Callable[[Any, list[str]], Names],
    result_avals: Sequence[ShapedArray],
) -> str:  # fmt: skip
    """Return `b.loop_region(...)`, or `b.region(...)` of a builder of xjit 0.2.0."""
    region = b.loop_region if hasattr(b, "loop_region") else b.region
    return region(avals, body, result_avals)


def is_in_loop(b: Builder) -> bool:
    """Return `b.is_in_loop`; builders of xjit 0.2.0 cannot tell."""
    return hasattr(b, "is_in_loop") and b.is_in_loop


class BatchAxis(Protocol):
    """The axis that `vmap` maps over."""

    @property
    def size(self) -> int:
        """How many examples there are."""

    @property
    def name(self) -> Any:
        """The axis name that collectives use, or None."""

    @property
    def mesh_axes(self) -> tuple[Any, ...]:
        """The axes of a mesh that cut its dimension, where a program has shardings."""

    @property
    def sharding(self) -> Any:
        """The sharding of its dimension alone along explicit axes of a mesh, or None."""

    def with_auto_sharding(self) -> BatchAxis:
        """Return the same axis where types do not say how it is cut."""

    def to_front(self, x: Any, dim: Any) -> Any:
        """Return an operand with its batch dimension first; one that is not mapped is repeated."""

    def move(self, x: Any, source: int, destination: int) -> Any:
        """Move a dimension of an array, the others staying in order."""

    def broadcast(self, x: Any, dim: int = 0) -> Any:
        """Repeat an array that is not mapped along a new batch dimension at position `dim`."""

    def batched_aval(self, aval: ShapedArray) -> ShapedArray:
        """Return the abstract value of a batch, its dimension in front, of such values."""

    def cotangent_for(self, ct: Any, dim: Any) -> Any:
        """Bring a cotangent, its batch dimension in front, to the layout of its operand."""

    def run(
        self, fun: Callable[..., Sequence[Any]], values: Sequence[Any], dims: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Run a function of flat arrays on batches; return results with their batch dimensions."""

    def batch_jaxpr(
        self, closed: ClosedJaxpr, mapped: Sequence[bool],
        instantiate: bool | Sequence[bool] = False,
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:  # fmt: skip
        """Return the program for whole batches, and for each result whether it is mapped.

        Args:
          closed: the program.
          mapped: for each argument, whether it has a batch dimension, which is in front.
          instantiate: whether (or which) results are repeated where they are not mapped.
        """


class ChecksHandle(Protocol):
    """Runs the programs of a call with their checks.

    The state is a few arrays that say what failed first. The handle is hashable: what is derived
    for it may be kept in the memo of a program.
    """

    def __hash__(self) -> int:
        """Return equal numbers for handles that do the same."""

    @property
    def avals(self) -> Sequence[ShapedArray]:
        """The types of the state."""

    def run(
        self, closed: ClosedJaxpr, state: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[Sequence[Any], list[Any]]:
        """Run a program; return the state after it, and its results."""

    def program(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the state after so many operands, and gives it first."""

    def remove_checks(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the state likewise, leaves it alone, and checks nothing."""

    def first(self, state: Sequence[Any], states: Sequence[Any]) -> Sequence[Any]:
        """Return the state after members that began with none that failed: theirs are stacked."""


class JVPHandle(Protocol):
    """Differentiates the programs of a call in forward mode."""

    def instantiate(self, tangent: Any) -> Any:
        """Return a tangent as an array, zeros included."""

    def tangent_aval(self, value: Any) -> ShapedArray:
        """Return the abstract value of the tangents of an array."""

    def jvp_jaxpr(
        self, closed: ClosedJaxpr, nonzero: Sequence[bool],
        instantiate: bool | Sequence[bool] = False,
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:  # fmt: skip
        """Return the forward derivative of a program.

        Args:
          closed: the program.
          nonzero: for each argument, whether it has a tangent that is not zero.
          instantiate: whether (or which) tangents of results are made arrays although zero.

        Returns:
          A program from the primals and the nonzero tangents to the results and their nonzero
          tangents, and for each result whether its tangent is among them.
        """


class SplitProgram(Protocol):
    """A program as a primal part, which leaves residuals, and the linear part that takes them."""

    @property
    def primal(self) -> ClosedJaxpr:
        """From the arguments to the results followed by residuals."""

    @property
    def linear(self) -> ClosedJaxpr:
        """From residuals followed by nonzero tangents to the nonzero tangents of results."""

    @property
    def nonzero_out(self) -> tuple[bool, ...]:
        """For each result, whether its tangent is a result of `linear`."""

    @property
    def forwarded(self) -> tuple[int, ...]:
        """For each residual the argument that it is, or -1: the next extra result of `primal`."""

    @property
    def num_results(self) -> int:
        """How many results of `primal` are results of the original program."""

    def residuals(self, arguments: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """Pick the residuals from the arguments and all results of `primal`."""


class LinearizeHandle(JVPHandle, Protocol):
    """Differentiates the programs of a call in reverse mode, whose first half is to linearize."""

    def linearize_jaxpr(
        self, closed: ClosedJaxpr, nonzero: Sequence[bool],
        instantiate: bool | Sequence[bool] = False,
    ) -> SplitProgram:  # fmt: skip
        """Split a program; the arguments are those of `jvp_jaxpr`."""

    def run_rule(
        self, rule: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> Any:
        """Run a forward rule of a user's, whose operations may mix primals and tangents."""


class TransposeHandle(Protocol):
    """Transposes the linear programs of a call."""

    def instantiate(self, tangent: Any) -> Any:
        """Return a cotangent as an array, zeros included."""

    def tangent_aval(self, value: Any) -> ShapedArray:
        """Return the abstract value of the cotangents of an array."""

    def backward_pass(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any],
        cotangents: Sequence[Any], all_linear: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Return the cotangents of the arguments that are `Linear`, in their order.

        Args:
          jaxpr: a program that is linear in some arguments.
          consts: the values of its constants.
          args: for each argument its value, or `Linear(aval)`.
          cotangents: for each result its cotangent, an Array or a `Zero`.
          all_linear: whether every equation is known to depend on a linear argument.
        """

    def transpose_jaxpr(
        self, closed: ClosedJaxpr, linear: Sequence[bool], nonzero_cts: Sequence[bool],
        instantiate_all: bool = False,
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:  # fmt: skip
        """Return the transpose of a program.

        Args:
          closed: the program.
          linear: for each argument, whether to transpose with respect to it.
          nonzero_cts: for each result, whether its cotangent is given.
          instantiate_all: whether cotangents of linear arguments are results although zero.

        Returns:
          A program from the other arguments followed by the given cotangents to the nonzero
          cotangents of the linear arguments, and for each linear argument whether it is among them.
        """


# ------------------------------------------------------------------------------- rules of platforms
# `by_platform("qr", cpu=_lapack, gpu=_cusolver)` makes one `stablehlo` rule of several.
#
# A program is written for `cpu`, `cuda`, `rocm`, `tpu`, or another one by its name. `gpu` serves
# `cuda` and `rocm` where they have no rule of their own, `default` what is left. What a library of
# a platform computes (LAPACK, cuSOLVER) is such a rule, and so is another form of the same
# operation that the compiler of one platform knows better.

_FAMILY: Mapping[str, tuple[str, ...]] = {
    "cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu"), "gpu": ("gpu", "cuda"),
}  # fmt: skip

Rule = Callable[..., Any]


def names_of_platform(platform: str) -> tuple[str, ...]:
    """Return the names under which something for a platform may stand, the nearest one first.

    Example:
      >>> names_of_platform("cuda"), names_of_platform("cpu")
      (('cuda', 'gpu'), ('cpu',))
    """
    return _FAMILY.get(platform, (platform,))


def is_gpu(platform: str) -> bool:
    """Return whether a platform is a GPU's.

    Example:
      >>> is_gpu("cuda"), is_gpu("cpu")
      (True, False)
    """
    return platform in _FAMILY


def by_platform(name: str, *, default: Rule | None = None, **rules: Rule) -> Rule:
    """Return the `stablehlo` rule that has the rule of the program's platform write.

    Args:
      name: of the primitive, for the error on platforms without a rule.
      default: the rule for the platforms that are not named.
      **rules: rules by platform: `cpu`, `gpu`, `cuda`, `rocm`, `tpu`.

    Returns:
      A rule, which raises `MissingRuleError` where none serves the platform.

    Example:
      >>> rule = by_platform("where_am_i", cpu=lambda b, *_: ["%cpu"], gpu=lambda b, *_: ["%gpu"])
      >>> platforms_of(rule)
      ('cpu', 'gpu')
    """

    def rule(
        b: Builder, operands: Sequence[str], avals_in: Any, avals_out: Any, **params: Any
    ) -> Any:
        platform = b.platform
        for known in names_of_platform(platform):
            found = rules.get(known)
            if found is not None:
                return found(b, operands, avals_in, avals_out, **params)
        if default is None:
            raise _missing(name, platform, tuple(rules))
        return default(b, operands, avals_in, avals_out, **params)

    rule.platforms = (*rules, *(() if default is None else ("default",)))  # type: ignore[attr-defined]
    return rule


def platforms_of(rule: Any) -> tuple[str, ...]:
    """Return the names for which a rule has rules; none where it writes the same on all."""
    found: tuple[str, ...] = getattr(rule, "platforms", ())
    return found


def _missing(name: str, platform: str, known: tuple[str, ...]) -> MissingRuleError:
    return MissingRuleError(message(
        name, f"is not available in programs for {platform}.",
        expected=f"a program for {' or '.join(known)}",
        hint="compute it on the CPU: jit(f, backend='cpu'), or device_put to a CPU",
    ))  # fmt: skip
