"""Kernels of draws: in eager code a sampler's operations are one function of NumPy arrays.

Of eager draws of few numbers most of the time goes to the operations around NumPy's: types,
promotion, an array for each result; loops would be traced at each call. The second use of a
sampler's function with operands of the same types writes it as a kernel, which gives the same bits
as its operations do one by one. Draws that the compiler takes, or of traced values, have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import xprim
from xprim import ConcreteArray, ShapedArray, state
from xprim.eager import EAGER
from xprim.kernels import Kernel, KernelTable, numpy_function, numpy_operand

__all__ = ()

_LONGEST: Final = 512  # operations of a program: `binomial` has some 280

# Kernels by function, static values and abstract values: the second draw of such is worth one.
_kernels = KernelTable("draws", uses=1)


def draw(function: Callable[..., Any], arrays: Sequence[Any], *statics: Any) -> Any:
    """Return `function(*arrays, *statics)`, in eager code by a kernel from the second use on.

    Args:
      function: returns an array, or a list of arrays; what it does depends on the types of the
        arrays, not on their elements.
      arrays: its operands.
      statics: its other arguments, which are hashable: each of one type, numbers but no -0.0.
    """
    now = state.__dict__
    if now["trace"] is not EAGER:
        return function(*arrays, *statics)
    hosts, key = [], [function, *statics]
    for x in arrays:
        host = numpy_operand(x) if type(x) is ConcreteArray else None
        if host is None:
            return function(*arrays, *statics)
        hosts.append(host)
        key.append(x.aval)
    kernel = _kernels.get((*key, now["options"]))
    if type(kernel) is not Kernel:
        kernel = _kernels.use(key, _kernel_of, function, [x.aval for x in arrays], statics)
    if kernel is None or kernel.run is None:
        return function(*arrays, *statics)
    results = now["run_quietly"](kernel.run, *hosts)
    if type(kernel.avals_out) is list:
        return list(map(ConcreteArray, results, kernel.avals_out))
    return ConcreteArray(results[0], kernel.avals_out)


def _kernel_of(
    function: Callable[..., Any], avals: Sequence[ShapedArray], statics: Sequence[Any]
) -> Kernel:
    is_list: list[bool] = []

    def flat(*arrays: Any) -> list[Any]:
        found = function(*arrays, *statics)
        is_list.append(type(found) is list)
        return found if is_list[-1] else [found]

    program = xprim.trace_to_closed(flat, avals)
    run = numpy_function(program, longest=_LONGEST)
    outs = list(program.out_avals)
    return Kernel(run, outs if is_list[0] else outs[0], (program,))
