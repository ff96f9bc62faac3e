"""Samples: operands and params for each primitive, from which every check of its rules is made.

A primitive's owner gives a table `{primitive name: [Sample, ...]}`. The packages that consume a
kind of rule bring the checks: `check_shape` and `check_ufunc` here (the `shape` rule and the
`ufunc` rule against the `numpy` rule),
`xjit.testing.check_lowering`, `xad.testing.check_derivatives`, `xbatch.testing.check_batch`. So a
stranger's primitive gets the whole suite for one table.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import numpy as np

from xprim import dtypes
from xprim.array import ConcreteArray
from xprim.avals import shaped_array
from xprim.config import state
from xprim.kernels import Refusal, numpy_function, same_elements
from xprim.primitive import Primitive, get_primitive
from xprim.staging import trace_to_closed

__all__ = [
    "Tolerance", "EXACT", "Sample", "SampleTable", "check_shape", "check_ufunc",
    "functions_entered",
]  # fmt: skip

__dir__ = __all__.copy


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far the compiled result may be from the `numpy` rule, and why."""

    rtol: float = 0.0
    atol: float = 0.0
    reason: str = "exact"


EXACT = Tolerance()


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of a primitive.

    Attributes:
      operands: NumPy arrays, with the dtypes that the primitive shall see.
      params: the params of the call.
      tolerance: of the compiled result against the `numpy` rule.
      smooth: whether derivatives exist at these operands and can be checked by finite differences.
      unit_tangents: operands to differentiate in; None for all of inexact dtype.
      note: what is special about this sample, for the name of the test.
    """

    operands: Sequence[np.ndarray[Any, Any]]
    params: Mapping[str, Any] = field(default_factory=dict)
    tolerance: Tolerance = EXACT
    smooth: bool = True
    unit_tangents: tuple[int, ...] | None = None
    note: str = ""

    def arrays(self) -> list[ConcreteArray]:
        """Return the operands as Arrays of exactly their dtypes."""
        hosts = [np.asarray(x) for x in self.operands]
        return [ConcreteArray(h.copy(), shaped_array(h.shape, h.dtype)) for h in hosts]

    def label(self) -> str:
        """Return a short name for test reports."""
        kinds = "-".join(
            f"{dtypes.short_name(x.dtype)}{list(x.shape)}".replace(" ", "") for x in self.operands
        )
        return f"{kinds}{'-' + self.note if self.note else ''}"


SampleTable = Mapping[str, Sequence[Sample]]


def check_shape(primitive: Primitive | str, sample: Sample) -> None:
    """Check that the `numpy` rule gives what the `shape` rule says.

    Raises:
      AssertionError: naming the result whose shape or dtype differs.
    """
    if isinstance(primitive, str):
        primitive = get_primitive(primitive)
    arrays = sample.arrays()
    params = dict(sample.params)
    avals = primitive.infer(tuple([x.aval for x in arrays]), params)
    hosts = [x.to_host() for x in arrays]
    results = state.run_quietly(primitive.rule("numpy"), *hosts, **params)
    assert len(results) == len(avals), f"{primitive}: {len(results)} results, {len(avals)} avals"
    for i, (result, aval) in enumerate(zip(results, avals, strict=True)):
        found = np.asarray(result)
        assert found.shape == aval.shape, (
            f"{primitive}: result {i} has shape {found.shape}, the shape rule says {aval.shape}"
        )
        assert found.dtype == aval.dtype, (
            f"{primitive}: result {i} has dtype {found.dtype}, the shape rule says {aval.dtype}"
        )


def check_ufunc(primitive: Primitive | str, sample: Sample) -> None:
    """Check that a kernel, which follows the `ufunc` rule, gives what the `numpy` rule gives.

    Raises:
      AssertionError: naming the result that differs.
    """
    if isinstance(primitive, str):
        primitive = get_primitive(primitive)
    arrays, params = sample.arrays(), dict(sample.params)
    program = trace_to_closed(lambda *xs: primitive.bind(*xs, **params), [x.aval for x in arrays])
    try:
        kernel = numpy_function(program)
    except Refusal:
        return
    hosts = [x.to_host() for x in arrays]
    results = state.run_quietly(kernel, *hosts)
    expected = state.run_quietly(primitive.rule("numpy"), *hosts, **params)
    for i, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert same_elements(result, np.asarray(wanted)), (
            f"{primitive}: result {i} of the kernel is {result}, the numpy rule gives {wanted}"
            f"\n  where     {primitive.place_of_rule('ufunc')}"
        )


def functions_entered(call: Callable[[], Any]) -> list[CodeType]:
    """Return the code of each Python function that a call enters, in order, once for each time.

    So a test counts what a short way costs, without a clock. Comprehensions, which are functions
    before Python 3.12, are left out.

    Example:
      >>> [code.co_name for code in functions_entered(lambda: sum([1, 2]))]
      ['<lambda>']
    """
    entered: list[CodeType] = []

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<listcomp>":
            entered.append(frame.f_code)

    was_collecting, previous = gc.isenabled(), sys.getprofile()
    gc.disable()  # what others left behind may be collected at any call
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(previous)
        if was_collecting:
            gc.enable()
    return entered
