"""Padded arrays, and sums of them: XLA asks at each element whether it is padding.

    y = pad(k[0] * x, (2, 0)) + pad(k[1] * x, (1, 1)) + pad(k[2] * x, (0, 2))

A convolution in full is such a sum, and so is what reverse mode makes of shifted slices. XLA's
kernel for CPUs chooses between each array and the padding, element by element: nine arrays of a
million take 2.1 ms. In the middle, where no array has padding, the sum is one of slices, which
takes 0.2 ms; the ends are sums of padded arrays as before, of few elements. The order of the terms
is the same, and so are the results.

The kernel of an argument that is padded, and nothing else, has the padding as an operand: it
chooses between addresses, and loads a million elements one by one, in 0.25 ms. Where the kernel has
another operation XLA puts the padding into it, and it takes 0.1 ms: so what is padded are the bits
of the elements as unsigned integers, which is the same in the machine's code.

Subject upstream: the code for padding in fusions of the CPU compiler; no issue is known.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from xprim import Equation, Jaxpr, Literal, ShapedArray, shaped_array

__all__ = ()

_LEAST_ELEMENTS: Final = 1 << 16  # of the sum: the kernels of its ends take 15 to 30 ms to compile
_LEAST_ELEMENTS_OF_ONE: Final = 1 << 12
_SUMS: Final = frozenset({"add", "sub"})


class _Padded(NamedTuple):
    """An array from an index of the sum's leading dimension on."""

    x: Any
    start: int

    @property
    def stop(self) -> int:
        """The index of the sum at which it ends."""
        return self.start + int(self.x.aval.shape[0])


class PaddedArgument(NamedTuple):
    """An argument of a program that is padded, and is a result as it is then."""

    eqn: Equation

    def write(self, b: Any, names: dict[Any, str]) -> str:
        """Write the padding of the bits, and return the name of what they are."""
        x, (out,), params = self.eqn.inputs[0], self.eqn.outputs, self.eqn.params
        value: Any = self.eqn.inputs[1]  # a literal
        avals = [x.aval, out.aval]
        dtype = np.dtype(f"uint{8 * out.aval.dtype.itemsize}")
        bits = [shaped_array(aval.shape, dtype) for aval in avals]
        (name,) = b.op("stablehlo.bitcast_convert", [names[x]], avals[:1], bits[:1])
        number = value.value.to_host().view(dtype)
        (name,) = self.eqn.primitive.rules["stablehlo"](
            b, [name, b.scalar(number.item(), dtype)], [bits[0], shaped_array((), dtype)],
            [bits[1]], **params,
        )  # fmt: skip
        return str(b.op("stablehlo.bitcast_convert", [name], bits[1:], avals[1:])[0])


class PaddedSum(NamedTuple):
    """A tree of sums of padded arrays.

    Attributes:
      name: the operation, or "pad".
      terms: two such trees, or the array.
      aval: the abstract value of the sum.
      start: the first index of the leading dimension where no array has padding.
      stop: the index after the last one.
      eqns: the equations in place of which it is written.
    """

    name: str
    terms: tuple[Any, ...]
    aval: ShapedArray
    start: int
    stop: int
    eqns: tuple[Equation, ...]

    @property
    def has_middle(self) -> bool:
        """Whether most of the sum has no padding."""
        return 2 * (self.stop - self.start) > int(self.aval.shape[0])

    def write(self, b: Any, names: dict[Any, str]) -> str:
        """Write the two ends and the middle, and return the name of what they are joined to."""
        marks = sorted({0, self.start, self.stop, int(self.aval.shape[0])})
        regions = list(itertools.pairwise(marks))
        parts = [_write_region(b, names, self, *region) for region in regions]
        if len(parts) == 1:
            return parts[0]
        avals = [_of_length(self.aval, stop - start) for start, stop in regions]
        joined = b.op("stablehlo.concatenate", parts, avals, [self.aval], "dimension = 0 : i64")
        return str(joined[0])


Written: TypeAlias = PaddedSum | PaddedArgument


def find_padded_sums(
    jaxpr: Jaxpr, planned: Container[Equation] = ()
) -> dict[Equation, Written | None]:
    """Return the sums by the last of their equations; None for the others, which are left out.

    Arguments that are padded are found as well.

    Args:
      jaxpr: the program.
      planned: equations that are written otherwise.
    """
    pads = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "pad" and _is_at_ends(eqn)]
    if len(pads) < 2:
        return _find_padded_arguments(jaxpr)
    sums: dict[Any, PaddedSum] = {eqn.outputs[0]: _of_pad(eqn) for eqn in pads}
    uses = _uses(jaxpr)
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _SUMS and eqn not in planned:
            _join_terms(eqn, sums, uses)
    found = [tree for tree in sums.values() if len(tree.eqns) > 1]
    others = [eqn for tree in found for eqn in tree.eqns]
    last = {tree.eqns[-1]: tree for tree in found}
    return _find_padded_arguments(jaxpr) | dict.fromkeys(others) | last


def _find_padded_arguments(jaxpr: Jaxpr) -> dict[Equation, Written | None]:
    pads = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "pad" and _is_large(eqn)]
    return {
        eqn: PaddedArgument(eqn) for eqn in pads
        if eqn.inputs[0] in jaxpr.invars and eqn.outputs[0] in jaxpr.outvars
    }  # fmt: skip


def _is_large(eqn: Equation) -> bool:
    """Return whether a large array of numbers is padded with a number, or has elements removed."""
    value, out = eqn.inputs[1], eqn.outputs[0].aval
    is_large = type(out.size) is int and out.size >= _LEAST_ELEMENTS_OF_ONE
    return is_large and type(value) is Literal and out.dtype.kind in "iuf"


def _join_terms(eqn: Equation, sums: dict[Any, PaddedSum], uses: Counter[Any]) -> None:
    """Put a sum in place of its two terms, where these are sums that nothing else reads."""
    terms = [sums[x] for x in eqn.inputs if uses[x] == 1 and x in sums]
    joined = _join(eqn, terms) if len(terms) == 2 else None
    if joined is not None and joined.has_middle:
        sums[eqn.outputs[0]] = joined
        for x in eqn.inputs:
            del sums[x]


def _uses(jaxpr: Jaxpr) -> Counter[Any]:
    read = [x for eqn in jaxpr.eqns for x in eqn.inputs]
    return Counter([x for x in (*read, *jaxpr.outvars) if type(x) is not Literal])


def _is_at_ends(eqn: Equation) -> bool:
    """Return whether zeros are added to, or elements taken from, a leading dimension alone."""
    (x, value), out = eqn.inputs, eqn.outputs[0].aval
    if type(x) is Literal or type(value) is not Literal or not _is_large(eqn):
        return False
    (_, _, interior), *others = eqn.params["padding_config"] or [(0, 0, 1)]
    return (
        out.size >= _LEAST_ELEMENTS
        and not interior
        and not any(map(any, others))
        and not any(np.asarray(value.value.to_host()).tobytes())  # and not -0.0
    )


def _of_pad(eqn: Equation) -> PaddedSum:
    padded = _Padded(eqn.inputs[0], eqn.params["padding_config"][0][0])
    aval = eqn.outputs[0].aval
    start, stop = max(padded.start, 0), min(padded.stop, int(aval.shape[0]))
    return PaddedSum("pad", (padded,), aval, start, stop, (eqn,))


def _join(eqn: Equation, terms: Sequence[PaddedSum]) -> PaddedSum:
    eqns = [e for term in terms for e in term.eqns]
    return PaddedSum(
        eqn.primitive.name, tuple(terms), eqn.outputs[0].aval, max([t.start for t in terms]),
        min([t.stop for t in terms]), (*eqns, eqn),
    )  # fmt: skip


def _write_region(b: Any, names: dict[Any, str], tree: PaddedSum, start: int, stop: int) -> str:
    """Write the part of a sum between two indices of its leading dimension."""
    aval = _of_length(tree.aval, stop - start)
    if tree.name == "pad":
        return _write_part(b, names, tree.terms[0], aval, start)
    parts = [_write_region(b, names, term, start, stop) for term in tree.terms]
    operation = "stablehlo.add" if tree.name == "add" else "stablehlo.subtract"
    return str(b.same_type_op(operation, parts, aval))


def _write_part(
    b: Any, names: dict[Any, str], padded: _Padded, aval: ShapedArray, start: int
) -> str:
    """Write what an array has from an index of the sum on, with zeros where it has nothing."""
    (x, at), length = padded, int(aval.shape[0])
    first, last = max(start, at), min(start + length, padded.stop)
    if first >= last:
        return str(b.full_like(0, aval))
    part = _of_length(aval, last - first)
    others = [0] * (aval.ndim - 1)
    (name,) = b.op(
        "stablehlo.slice", [names[x]], [x.aval], [part],
        f"start_indices = {_array([first - at, *others])}, "
        f"limit_indices = {_array([last - at, *aval.shape[1:]])}, "
        f"strides = {_array([1] * aval.ndim)}",
    )  # fmt: skip
    if part.shape == aval.shape:
        return str(name)
    zero, scalar = b.scalar(0, aval.dtype), shaped_array((), aval.dtype)
    (name,) = b.op(
        "stablehlo.pad", [name, zero], [part, scalar], [aval],
        f"edge_padding_low = {_array([first - start, *others])}, "
        f"edge_padding_high = {_array([start + length - last, *others])}, "
        f"interior_padding = {_array([0] * aval.ndim)}",
    )  # fmt: skip
    return str(name)


def _array(values: Sequence[Any]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def _of_length(aval: ShapedArray, length: int) -> ShapedArray:
    return shaped_array((length, *aval.shape[1:]), aval.dtype)
