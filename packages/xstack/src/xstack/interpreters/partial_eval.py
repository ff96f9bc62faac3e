"""Programs of functions, and what is left of them when some results are not used.

These are the functions that libraries written for JAX take from its module of this name; this
family has no partial evaluation (see docs/decisions/0002), and `xstack.make_jaxpr` is the way to a
program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xprim
from xprim import ClosedJaxpr, Jaxpr, ShapedArray, as_array, state, trace_to_jaxpr
from xstack.extend.linear_util import WrappedFun

__all__ = ["PartialVal", "close_jaxpr", "dce_jaxpr", "trace_to_jaxpr_dynamic",
           "trace_to_jaxpr_nounits"]  # fmt: skip

__dir__ = __all__.copy


class PartialVal(tuple[Any, Any]):
    """A value that is known, or of which the type alone is known: a pair of type and value.

    Args:
      pair: `(None, value)`, or `(abstract value, None)`.

    Example:
      >>> import xstack.numpy
      >>> from xstack.core import ShapedArray
      >>> PartialVal.unknown(ShapedArray((2,), "float32")).is_known()
      False
    """

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return the pair of a value that is known."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Return the pair of a value whose abstract value is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self[0] is None

    def get_aval(self) -> ShapedArray:
        """Return the abstract value."""
        aval: ShapedArray = as_array(self[1]).aval if self.is_known() else self[0]
        return aval


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ShapedArray]
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """Return the program of a function of flat arrays.

    Args:
      fun: takes arrays and returns a sequence of arrays.
      in_avals: the abstract values of its arguments.

    Returns:
      The program, the abstract values of its results, and the values of its `constvars`.

    Example:
      >>> import xstack.numpy
      >>> from xstack.core import ShapedArray
      >>> from xstack.extend.linear_util import wrap_init
      >>> twice = wrap_init(lambda x: [2 * x])
      >>> trace_to_jaxpr_dynamic(twice, [ShapedArray((), "float32")])[0]
      { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """

    def flat(*args: Any) -> list[Any]:
        return [as_array(x) for x in fun.call_wrapped(*args)]

    jaxpr, consts = trace_to_jaxpr(flat, list(in_avals))
    return jaxpr, [v.aval for v in jaxpr.outvars], list(consts)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Return the program of a function some of whose arguments are known.

    Args:
      fun: takes arrays and returns a sequence of arrays.
      pvals: for each argument its value, or its type.
      instantiate: whether (or which) results are results of the program although no argument that
        is unknown is needed for them.

    Returns:
      The program of the unknown arguments; for each result its value, where it is known, else its
      type; the values of the program's `constvars`.

    Example:
      >>> import xstack.numpy
      >>> from xstack.core import ShapedArray
      >>> from xstack.extend.linear_util import wrap_init
      >>> given = [PartialVal.known(2.0), PartialVal.unknown(ShapedArray((), "float32"))]
      >>> jaxpr, out, _ = trace_to_jaxpr_nounits(wrap_init(lambda x, y: [x + 1, x * y]), given)
      >>> len(jaxpr.outvars), float(out[0][1]), out[1].is_known()
      (1, 3.0, False)
    """
    known: list[bool] = []
    values: list[Any] = []

    def unknown_part(*args: Any) -> list[Any]:
        rest = iter(args)
        outs = fun.call_wrapped(*[p[1] if p.is_known() else next(rest) for p in pvals])
        wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
        own = state.trace
        arrays = [as_array(x) for x in outs]
        known.extend([
            not w and getattr(x, "_trace", None) is not own
            for x, w in zip(arrays, wanted, strict=True)
        ])  # fmt: skip
        values.extend(arrays)
        return [x for x, k in zip(arrays, known, strict=True) if not k]

    jaxpr, consts = trace_to_jaxpr(unknown_part, [p[0] for p in pvals if not p.is_known()])
    types = iter([v.aval for v in jaxpr.outvars])
    out = [PartialVal.known(x) if k else PartialVal.unknown(next(types))
           for x, k in zip(values, known, strict=True)]  # fmt: skip
    return jaxpr, out, list(consts)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Return a program without what its used results do not need.

    Args:
      jaxpr: the program.
      used_outputs: for each result, whether it is used.
      instantiate: whether (or which) arguments stay although they are not needed.

    Returns:
      The program of the arguments that stay, and for each argument whether it does.

    Example:
      >>> import xstack.numpy
      >>> from xprim import make_jaxpr
      >>> closed = make_jaxpr(lambda x, y: (x * 2, y * 3))(1.0, 1.0)
      >>> dce_jaxpr(closed.jaxpr, [True, False])
      ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }, [True, False])
    """
    live, used = xprim.remove_dead_code(jaxpr, used_outputs)
    count = len(jaxpr.invars)
    kept = [instantiate] * count if isinstance(instantiate, bool) else list(instantiate)
    stays = [u or k for u, k in zip(used, kept, strict=True)]
    arguments = [v for v, s in zip(jaxpr.invars, stays, strict=True) if s]
    return live.replace(invars=arguments), stays


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return a program that has no constants as a closed one.

    Args:
      jaxpr: the program.

    Example:
      >>> import xstack.numpy
      >>> from xprim import make_jaxpr
      >>> close_jaxpr(make_jaxpr(lambda x: x)(1.0).jaxpr)
      { lambda ; a:f32[]. let  in (a,) }
    """
    return ClosedJaxpr(jaxpr, ())
