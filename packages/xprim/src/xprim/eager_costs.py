"""Where eager work runs: the cost model that NumPy, kernels, loops and the compiler share.

Small work is done by NumPy at once; large work is compiled, once for its types. The choice depends
on primitives, abstract values and placement alone, never on timing, so equal calls take equal
paths. Every threshold of that choice stands here, with its unit and what it was measured by:

    operation       compiled where its `cost` rule says that this saves `WORTH_COMPILING`
    array function  compiled as one program where the compiler takes one of its operations, or
                    where its passes over memory but one take as long
    loop            compiled where its work exceeds that of `loop_steps_by_numpy`
    kernel          written after as many uses as pay for it

Who asks: `EAGER.backend` about an operation, `xnp.numpy.dispatch` about an array function,
`xnp.primitives.control_flow` about a loop, `xprim.kernels` and `xad` about kernels.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xprim import dtypes
from xprim.avals import ShapedArray
from xprim.jaxpr import ClosedJaxpr, Equation, held_programs
from xprim.primitive import Primitive

__all__ = [
    "EQUATIONS_BEFORE_KERNEL", "HUGE", "KEPT_WHEN_FREED", "READ_AT_ONCE", "SMALL",
    "USES_BEFORE_KERNEL", "WORTH_COMPILING", "count_equation", "count_operations", "huge_pages",
    "is_malloc_set", "loop_steps_by_numpy", "loop_work", "malloc_asks_for_huge_pages",
    "new_pages_time", "no_work_of_numpy", "passes_time", "saved_time",
]  # fmt: skip

__dir__ = __all__.copy

SMALL = 1 << 13
"""Elements: with fewer in the first operand and the results, NumPy gets the work at once."""
READ_AT_ONCE = 1 << 12
"""Elements: NumPy reads no larger device buffer in place, since it may not be computed yet."""
HUGE = 1 << 24
"""Elements: larger results go by the rule, which says what did not fit into memory."""
WORTH_COMPILING = 1 << 19
"""Nanoseconds that compiling must save at each call; a compilation takes 12 ms and more."""
KEPT_WHEN_FREED = (1 << 25) - (1 << 13)
"""Bytes: glibc takes larger arrays from the system each time (mallopt(3), M_MMAP_THRESHOLD)."""
USES_BEFORE_KERNEL = 16
"""Uses of a derivative before its kernel is made: 0.13 ms for each direction, saving 4 us."""
EQUATIONS_BEFORE_KERNEL = 128
"""Equations of a loop's step that NumPy evaluates in the time that it takes to write a kernel."""

# What is supposed where there is no `cost` rule, in nanoseconds for each element of the results;
# floats of 16 bits and fewer are converted one by one.
_SUPPOSED, _SUPPOSED_NARROW = 0.25, 4.0
_PASS = 0.125  # nanoseconds that one pass over memory takes for each element
# Nanoseconds for each byte of new pages of 4 kB, which the system fills with zeros: `x * 2` of
# 4e7 bytes takes XLA 14 ms of processor time, and NumPy, which asks for pages of 2 MB, 4.
_NEW_PAGES = 0.25
# Bytes: XLA says at once what does not fit, where a rule of NumPy may look at all operands first.
_MAY_NOT_FIT = 1 << 36

# Work of loops, in equations of NumPy on small arrays. To compile a loop costs as much as 8192 to
# 16384 of them; it is compiled much before it has cost that, since loops are run more than once.
_LOOP_WORK = 512
# A long body takes long to compile: it is worth that when each of its equations runs so often.
_LEAST_STEPS = 16
_ELEMENTS_PER_UNIT = 4096
_NANOSECONDS_PER_UNIT = 1500


def saved_time(
    primitive: Primitive, avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray],
    params: dict[str, Any],
) -> float:  # fmt: skip
    """Return the nanoseconds that compiling an operation saves, by its `cost` rule."""
    rule = primitive.rules.get("cost")
    saved: float | None = None if rule is None else rule(avals_in, avals_out, **params)
    return _estimate(avals_out) if saved is None else saved


def _estimate(avals_out: Sequence[ShapedArray]) -> float:
    costs = [
        a.size * (_SUPPOSED_NARROW if a.dtype.itemsize < 4 and dtypes.is_inexact(a.dtype)
                  else _SUPPOSED)
        for a in avals_out
    ]  # fmt: skip
    return max(costs, default=0.0)


def no_work_of_numpy(
    avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], **_params: Any
) -> float:
    """Say that NumPy returns a view: the `cost` rule of an operation that moves nothing."""
    return 0.0


def new_pages_time(avals_out: Sequence[ShapedArray]) -> float:
    """Return the nanoseconds that XLA's results on a CPU wait for memory, and NumPy's do not.

    Both take the memory of an array of more than `KEPT_WHEN_FREED` bytes from the system. NumPy
    asks for huge pages (`NUMPY_MADVISE_HUGEPAGE`, NumPy's manual, "Global state"), XLA does not.
    """
    sizes = [a.size * a.dtype.itemsize for a in avals_out]
    if (
        not KEPT_WHEN_FREED < max(sizes, default=0) < _MAY_NOT_FIT
        or not _numpy_alone_has_huge_pages()
    ):
        return 0.0
    return _NEW_PAGES * sum([size for size in sizes if size > KEPT_WHEN_FREED])


def huge_pages() -> str:
    """Return who gets pages of 2 MB: `"all"`, `"those who ask"` or `"none"`, as Linux says.

    Source: Documentation/admin-guide/mm/transhuge.rst of Linux.
    """
    try:
        modes = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:  # another system
        return "none"
    return "all" if "[always]" in modes else "those who ask" if "[madvise]" in modes else "none"


def malloc_asks_for_huge_pages() -> bool:
    """Return whether the environment has glibc ask: `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`."""
    return "glibc.malloc.hugetlb=" in os.environ.get("GLIBC_TUNABLES", "")


def is_malloc_set() -> bool:
    """Return whether the environment says which freed memory glibc keeps (mallopt(3))."""
    settings = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return any(name in os.environ for name in settings) or "_threshold=" in tunables


@functools.cache
def _numpy_alone_has_huge_pages() -> bool:
    """Return whether NumPy asks for huge pages, and the C library neither asks nor keeps memory."""
    if malloc_asks_for_huge_pages() or is_malloc_set():
        return False
    return huge_pages() == "those who ask" and os.environ.get("NUMPY_MADVISE_HUGEPAGE") != "0"


def passes_time(eqns: Sequence[Equation]) -> float:
    """Return the nanoseconds that all passes over memory but one take, 0 where one reduces."""
    sizes = [0]
    for eqn in eqns:
        if eqn.primitive.rules.get("cost") is no_work_of_numpy:
            continue
        most, size = max([x.aval.size for x in eqn.inputs], default=0), eqn.outputs[0].aval.size
        if eqn.primitive.call_like or (most > SMALL and size < most // 2):
            return 0
        sizes.append(size)
    return (sum(sizes) - max(sizes)) * _PASS


def loop_work(eqn: Equation) -> float:
    """Return the work of one equation in NumPy, without that of the programs that it holds."""
    avals_in, avals_out = [x.aval for x in eqn.inputs], [v.aval for v in eqn.outputs]
    elements = max([a.size for a in (*avals_in, *avals_out)], default=0)
    rule = eqn.primitive.rules.get("cost")
    saved = (rule and rule(avals_in, avals_out, **eqn.params)) or 0
    return 1 + elements / _ELEMENTS_PER_UNIT + max(saved, 0) / _NANOSECONDS_PER_UNIT


def loop_steps_by_numpy(work: float) -> float:
    """Return how many steps of a loop NumPy runs at most, where one step has so much work."""
    return _LEAST_STEPS + _LOOP_WORK // (1 + work)


# --------------------------------------------------------------------------- operations of programs
# Estimates of how much a program computes: scalar operations, counted from its equations.
#
# What chooses between forms of a program (a loop or a batch, a value kept or computed again)
# compares counts; none is a time. An equation counts the elements that it reads or writes,
# whichever are more; a contraction two operations for each product; a loop its steps; a choice its
# dearest branch.

# Of a loop whose number of steps is not known.
_STEPS = 16
# Elements whose value is a library call or a series: several operations each.
_DEAR = 8
_DEAR_NAMES = frozenset([
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "digamma",
    "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "gelu_by_tanh", "igamma", "lgamma", "log",
    "log1p", "logaddexp", "logaddexp2", "logistic", "logistic_rest", "pow", "silu", "sin", "sinh",
    "tan", "tanh",
])  # fmt: skip


def count_operations(closed: ClosedJaxpr) -> float:
    """Return the estimated number of scalar operations of a program.

    Example:
      >>> from xprim import make_jaxpr
      >>> from xprim.eager_costs import count_operations
      >>> count_operations(make_jaxpr(lambda x: x + x)(1.0))
      1.0
    """
    found = closed.memo.get("operations")
    if found is None:
        found = closed.memo["operations"] = sum(map(count_equation, closed.jaxpr.eqns))
    return float(found)


def count_equation(eqn: Equation) -> float:
    """Return the estimated number of scalar operations of one equation."""
    name = eqn.primitive.name
    if held_programs(eqn.params):
        return _count_of_call(eqn)
    sizes = [_size(x.aval.shape) for x in eqn.inputs]
    out = sum([_size(v.aval.shape) for v in eqn.outputs])
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.inputs[0].aval.shape
        return 2.0 * out * _size([shape[d] for d in contracted])
    if name == "conv_general_dilated":
        kernel = eqn.inputs[1].aval.shape
        features = eqn.params["dimension_numbers"].rhs_spec[0]
        return 2.0 * out * sizes[1] / max(_size([kernel[features]]), 1)
    return float(max([out, *sizes]) * (_DEAR if name in _DEAR_NAMES else 1))


def _count_of_call(eqn: Equation) -> float:
    params = eqn.params
    inner = [count_operations(program) for program in held_programs(params)]
    if "branches" in params:
        return max(inner)
    steps = params.get("length", _STEPS if "rounds" in eqn.primitive.rules else 1)
    return sum(inner) * (steps if isinstance(steps, int) else _STEPS)


def _size(shape: Sequence[Any]) -> int:
    """Return the number of elements; a dimension that is not known counts once."""
    return math.prod([d for d in shape if isinstance(d, int)])
