"""Eager evaluation of large operations: compiled once for each (primitive, avals, params).

`EagerBackend.takes` decides by sizes, dtypes and placement alone, so equal programs take equal
paths: operations on data that lives on an accelerator or a second device go to XLA, and so does
work that is large, asynchronously; the rest runs in NumPy.

Where "large" begins was measured, NumPy 2 against jaxlib 0.12 on two cores, float32, per element:
NumPy's vector loops take 0.1-0.5 ns, as XLA's do or less (sin 0.5 against 5 ns, tan 0.4 against 7,
sort 90 against 240), so there XLA only pays by not making the caller wait; the special functions
take 70-120 ns against 0.4-10, 16-bit floats 1.4-6 against 0.1-0.3, integer division 5 against 0.2,
integer matrix products 0.8 ns a multiply-add against 0.02.

Neighbours: `xprim.eager` asks, `program` runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.checks import run_checked
from xjit.placement import buffers_at, common_placement, device_at
from xjit.program import Loaded, Program, program_of
from xjit.results import wrapped
from xjit.shardings import device_named_by
from xjit.transfer import put
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    HostBackend,
    Jaxpr,
    Primitive,
    ShapedArray,
    Var,
    config,
    dtypes,
    shaped_array,
)
from xprim.static_keys import params_key

_MAX_PROGRAMS = 4096

# With fewer elements in the first operand and result, NumPy gets the work at once.
_SMALL = 1 << 13
_LARGE = 1 << 21
# Plain arithmetic waits for memory: at 9 million elements NumPy took 4 ms, XLA 20 ms (two cores).
_LARGE_ARITHMETIC = 1 << 25
_LARGE_NARROW = 1 << 17  # 16-bit floats and the like, which NumPy converts one by one
_LARGE_REDUCTION = 1 << 20
_LARGE_CHOICE = 1 << 17
_NEVER = 1 << 62

# Multiply-adds of a matrix product: with BLAS, and for dtypes that it does not have.
_LARGE_PRODUCT = 1 << 24
_LARGE_PLAIN_PRODUCT = 1 << 18

_VIEWS = ("reshape transpose broadcast_in_dim slice squeeze rev split real imag copy "
          "stop_gradient")  # fmt: skip
_FASTER_IN_NUMPY = "sin cos tan atan2 cbrt pow sort top_k cumsum cumprod cummax cummin"
_ARITHMETIC = "add sub mul neg abs max min square eq ne lt le gt ge and or xor not"
_SPECIAL = ("erf erfc erf_inv lgamma digamma polygamma zeta igamma igammac igamma_grad_a "
            "random_gamma_grad regularized_incomplete_beta bessel_i0e bessel_i1e cumlogsumexp "
            "threefry2x32")  # fmt: skip
_REDUCTIONS = ("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor "
               "reduce argmax argmin reduce_window_sum reduce_window_max "
               "reduce_window_min")  # fmt: skip
_PRODUCTS = "dot_general conv_general_dilated"

_BLAS_DTYPES = frozenset((np.dtype(np.float32), np.dtype(np.float64), *dtypes.COMPLEX))

_values = config.values
_nans, _infs = config.debug_nans, config.debug_infs
# From operands to the buffers of the results; None where an operand is not placed yet, or is gone.
_Start = Callable[[Sequence[ConcreteArray]], list[Any] | None]

_programs: dict[Any, ClosedJaxpr] = {}
# From (primitive, abstract values, cached context, params) to what starts the program on the
# default device, and the abstract values of its results.
_ready: dict[Any, tuple[_Start, tuple[ShapedArray, ...]]] = {}


class EagerBackend:
    """What `xjit` offers to eager evaluation."""

    __slots__ = ()

    compiles = True

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], avals_out: tuple[ShapedArray, ...]
    ) -> bool:
        """Return whether an operation is compiled rather than run by NumPy."""
        try:
            if avals_out[0].size < _SMALL and operands[0].aval.size < _SMALL and not _away[0]:
                return False
        except IndexError:  # no operands, or no results
            pass
        if _away[0] and _any_away(operands):
            return True
        return _is_large.get(primitive.name, _default)(operands, avals_out)

    def on_host(self, x: ConcreteArray) -> bool:
        """Return whether the buffer of an array lies where NumPy can stand for its device."""
        return not (_away[0] and _any_away((x,)))

    def dlpack(
        self, x: ConcreteArray, *, stream: Any = None, max_version: Any = None,
        dl_device: Any = None,
    ) -> Any:  # fmt: skip
        """Lend the buffer of an array to another library, which must not write to it."""
        (buffer,) = buffers_at(common_placement([x], "__dlpack__"), [x])
        return gateway.to_dlpack(buffer, stream)

    def borrow(self, source: Any, *, share: bool) -> ConcreteArray:
        """Return an array, where it lies, of what another library lends by DLPack."""
        buffer = gateway.from_dlpack(source, may_alias=share)
        kind = buffer.aval
        return ConcreteArray(None, shaped_array(kind.shape, kind.dtype), buffer)

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Put an array on a device, or where a sharding of one device or a platform says."""
        return put(x, device_named_by(device, operation))

    def platform(self, operands: Sequence[ConcreteArray] = ()) -> str:
        """Return the platform of the device that the arrays are committed to, or of the default."""
        return str(device_at(common_placement(operands, "platform")).platform)

    def run_program(
        self, closed: ClosedJaxpr, operands: Sequence[ConcreteArray], name: str
    ) -> tuple[ConcreteArray, ...]:
        """Compile and run a whole program, which keeps what is compiled in its memo."""
        return run_checked(closed, operands, name)

    def evaluate(
        self,
        primitive: Primitive,
        operands: tuple[Any, ...],
        params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:
        """Compile and run one primitive."""
        return compile_and_run(primitive, operands, params)

    def started(
        self, primitive: Primitive, operands: Sequence[ConcreteArray], params: dict[str, Any]
    ) -> Callable[[Sequence[ConcreteArray]], ConcreteArray | None] | None:
        """Return what starts an operation that ran on such operands before, or None.

        The function takes operands of the same abstract values, and returns the result, or None
        where they are not all where they were.
        """
        avals = tuple([x.aval for x in operands])
        key = (primitive, avals, _values.__dict__["cached_context"], *params_key(params))
        found = _ready.get(key)
        if found is None or not self.takes(primitive, tuple(operands), found[1]):
            return None
        begin, (out_aval,) = found

        def start(arrays: Sequence[ConcreteArray]) -> ConcreteArray | None:
            if gateway.several_devices[0] or (
                (_nans.used or _infs.used) and (_values.debug_nans or _values.debug_infs)
            ):
                return None
            outs = begin(arrays)
            return None if outs is None else ConcreteArray(None, out_aval, outs[0])

        return start


class NoDevices(HostBackend):
    """Stands where the backend stood in a process that cannot use devices: NumPy does all work."""

    __slots__ = ()

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Raise the error that says why there are no devices."""
        gateway.client()  # raises it
        return super().device_put(x, device, operation)


def compile_and_run(
    primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
) -> tuple[ConcreteArray, ...]:
    """Apply a primitive to concrete arrays with XLA, compiled once for their types and the params.

    Args:
      primitive: it needs a `stablehlo` rule.
      operands: concrete arrays.
      params: hashable; a call-like primitive's program is kept in the memo of the first closed
        jaxpr among them, and dies with it.

    Returns:
      The results, which may still be in the making.
    """
    avals = tuple([x.aval for x in operands])
    key = (primitive, avals, _values.__dict__["cached_context"], *params_key(params))
    found = _ready.get(key)
    if found is not None and not gateway.several_devices[0]:
        start, out_avals = found
        outs = start(operands)
        if outs is not None:
            return tuple(wrapped(outs, out_avals))
    key = (primitive, avals, config.trace_context(), *params_key(params))
    programs = _memo_of_jaxpr(params) if primitive.call_like else _programs
    closed = programs.get(key)
    if closed is None:
        closed = _single_equation(primitive, avals, params)
        if programs is _programs and len(programs) >= _MAX_PROGRAMS:
            programs.clear()
            _ready.clear()
        programs[key] = closed
    program = program_of(closed, primitive.name)
    results = program.call(operands)
    if programs is _programs:
        _keep_ready(key, program)
    return tuple(results)


def _keep_ready(key: tuple[Any, ...], program: Program) -> None:
    """Let the next such operation start its program with one look-up."""
    primitive, avals, context, *params = key
    cached, loaded = _values.__dict__["cached_context"], program.loaded
    if cached[1] is context and loaded is not None:
        start = _start_of(program, loaded)
        _ready[primitive, avals, cached, *params] = start, program.out_avals


def _start_of(program: Program, loaded: Loaded) -> _Start:
    begin, handlers = program.starter(loaded), loaded.handlers

    def start(arrays: Sequence[ConcreteArray]) -> list[Any] | None:
        try:
            outs: list[Any] = begin([x._buffer for x in arrays]).consume_with_handlers(handlers)
        except (TypeError, gateway.RuntimeFailure):
            return None
        return outs

    return start


@config.when_changed
def _forget() -> None:
    """Forget what was found under other options; threads whose context is stale then look anew."""
    _ready.clear()


def _memo_of_jaxpr(params: dict[str, Any]) -> dict[Any, Any]:
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, ClosedJaxpr):
                return item.memo
    return {}


def _single_equation(
    primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]
) -> ClosedJaxpr:
    invars = [Var(a) for a in avals]
    outvars = [Var(a) for a in primitive.infer(avals, params)]
    eqn = Equation(primitive, invars, outvars, params)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], primitive.name))


_away = gateway.away_from_host


def _any_away(operands: tuple[Any, ...]) -> bool:
    """Return whether an operand was put where NumPy cannot stand for the device."""
    for x in operands:
        buffer = getattr(x, "_buffer", None)
        if buffer is not None and gateway.is_away(buffer):
            return True
    return False


def _default(operands: Any, avals_out: Any, limit: int = _LARGE) -> bool:
    for aval in avals_out:
        if aval.size >= _LARGE_NARROW and (
            aval.size >= limit
            or (aval.dtype.itemsize < 4 and dtypes.is_inexact(aval.dtype) and limit < _NEVER)
        ):
            return True
    return False


def _at_least(limit: int) -> Callable[[Any, Any], bool]:
    return lambda operands, avals_out: any(aval.size >= limit for aval in avals_out)


def _reduction(operands: Any, avals_out: Any) -> bool:
    return bool(operands[0].aval.size >= _LARGE_REDUCTION)


def _division(operands: Any, avals_out: Any) -> bool:
    aval = avals_out[0]
    if dtypes.is_integer(aval.dtype):
        return bool(aval.size >= _LARGE_CHOICE)
    return _default(operands, avals_out)


def _product(operands: Any, avals_out: Any) -> bool:
    a, b, out = operands[0].aval, operands[1].aval, avals_out[0]
    work = math.sqrt(a.size * b.size * out.size)  # (mk)(kn)(mn) = (mkn)^2
    return work >= (_LARGE_PRODUCT if a.dtype in _BLAS_DTYPES else _LARGE_PLAIN_PRODUCT)


def _table() -> dict[str, Callable[[Any, Any], bool]]:
    never = functools.partial(_default, limit=_NEVER)
    rows: dict[str, Callable[[Any, Any], bool]] = {}
    rows |= dict.fromkeys((_VIEWS + " " + _FASTER_IN_NUMPY).split(), never)
    arithmetic = functools.partial(_default, limit=_LARGE_ARITHMETIC)
    rows |= dict.fromkeys(_ARITHMETIC.split(), arithmetic)
    rows |= dict.fromkeys(_SPECIAL.split(), _at_least(_SMALL))
    rows |= dict.fromkeys(_REDUCTIONS.split(), _reduction)
    rows |= dict.fromkeys(_PRODUCTS.split(), _product)
    rows |= dict.fromkeys(("div", "rem"), _division)
    rows["select_n"] = _at_least(_LARGE_CHOICE)
    return rows


_is_large = _table()
