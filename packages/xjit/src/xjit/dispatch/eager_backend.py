"""Eager evaluation of large operations: compiled once for each (primitive, avals, params).

`EagerBackend.takes` decides by costs (`xprim.eager_costs`) and placement alone, so equal programs
take equal paths: operations on data that lives on an accelerator or a second device go to XLA, and
so does work that is large, asynchronously; the rest runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xprim
from xjit import jaxlib_gateway as gateway
from xjit._devices import devices
from xjit.cache.memory import room
from xjit.checks import run_with_checks
from xjit.dispatch.fast_path import DeletedBuffer, wrap_buffers
from xjit.dispatch.placement import buffers_at, default_placement
from xjit.dispatch.placement_inference import common_placement
from xjit.dispatch.program import DeviceKernel, program_of
from xjit.dispatch.sharded_arrays import in_memory, moves_memory
from xjit.dispatch.transfer import copy_there, device_put_p, move_to_sharding, put, put_over
from xjit.sharding.shardings import device_named_by, sharding_named_by
from xnp.lax import copy_p
from xprim import Array, ClosedJaxpr, ConcreteArray, Primitive, config, shaped_array, state
from xprim.eager_costs import SMALL, WORTH_COMPILING, new_pages_time, saved_time
from xprim.jaxpr import memo_of, program_of_equation
from xprim.kernels import Kernel, KernelTable, forget_kernels
from xprim.static_keys import params_key
from xprim.strict_options import no_execution, results_are_checked

__all__ = ()

# From operands to the buffers of the results; None where an operand is not placed yet, or is gone.
_Start = Callable[[Sequence[ConcreteArray]], list[Any] | None]

# By primitive, abstract values and params; `run` starts the program on the default device.
_kernels = KernelTable("compiled operations", limit=4096)
room.when_short(lambda share: forget_kernels())


def lend_buffer(x: ConcreteArray) -> Any:
    """Return the one buffer of an array that other libraries see, from now on the array's own.

    What is in host memory alone goes to the default device, whose it is. What several devices hold
    is gathered there.
    """
    buffer = x.buffer
    if buffer is None or type(buffer) is DeletedBuffer or hasattr(buffer._sharding, "gathered"):
        (buffer,) = buffers_at(default_placement(), [x])
    return buffer


class EagerBackend:
    """What `xjit` offers to eager evaluation."""

    __slots__ = ()

    compiles = True

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any],
        avals_out: tuple[xprim.ShapedArray, ...],
    ) -> bool:  # fmt: skip
        """Return whether an operation is compiled rather than run by NumPy."""
        try:
            if avals_out[0].size < SMALL and operands[0].aval.size < SMALL and not _away[0]:
                return False
        except IndexError:  # no operands, or no results
            pass
        if _away[0] and _any_away(operands):
            return True
        avals_in = [x.aval for x in operands]
        saved = saved_time(primitive, avals_in, avals_out, params)
        if saved < WORTH_COMPILING:
            return False
        waited = new_pages_time(avals_out)
        if saved - waited >= WORTH_COMPILING:
            return True
        return waited > 0 and self.platform(operands) != "cpu"

    def on_host(self, x: ConcreteArray) -> bool:
        """Return whether the buffer of an array lies where NumPy can stand for its device."""
        return not (_away[0] and _any_away((x,)))

    def dlpack(
        self, x: ConcreteArray, *, stream: Any = None, max_version: Any = None,
        dl_device: Any = None,
    ) -> Any:  # fmt: skip
        """Lend the buffer of an array to another library, which must not write to it."""
        return gateway.to_dlpack(lend_buffer(x), stream)

    def dlpack_device(self, x: ConcreteArray) -> tuple[int, int]:
        """Return the device of what `dlpack` lends, after bringing there what is on the host."""
        found: tuple[int, int] = gateway.dlpack_device_of_capsule(lend_buffer(x))
        return found

    def borrow(self, source: Any, *, share: bool) -> ConcreteArray:
        """Return an array, where it lies, of what another library lends by DLPack."""
        buffer = gateway.from_dlpack(source, may_alias=share)
        kind = buffer.aval
        return ConcreteArray(None, shaped_array(kind.shape, kind.dtype), buffer)

    def device_put(self, x: Array, device: Any, operation: str) -> Array:
        """Put an array on a device, or where a sharding or a platform says."""
        sharding = sharding_named_by(device, operation)
        if sharding is not None:
            return put_over(x, sharding, None)
        return put(x, device_named_by(device, operation))

    def devices(self) -> list[Any]:
        """Return the devices of the default platform, then the CPU's."""
        found = devices()
        return found if found[0].platform == "cpu" else [*found, *devices("cpu")]

    def platform(self, operands: Sequence[ConcreteArray] = ()) -> str:
        """Return the platform of the device that the arrays are committed to, or of the default."""
        return common_placement(operands, "platform").platform

    def run_program(
        self, closed: ClosedJaxpr, operands: Sequence[ConcreteArray], name: str
    ) -> tuple[ConcreteArray, ...]:
        """Compile and run a whole program, which keeps what is compiled in its memo."""
        return run_with_checks(closed, operands, name)

    def evaluate(
        self,
        primitive: Primitive,
        operands: tuple[Any, ...],
        params: dict[str, Any],
        avals_out: tuple[xprim.ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:
        """Compile and run one primitive."""
        if primitive is device_put_p:  # no program: its devices may be others than the operand's
            return (move_to_sharding(operands[0], params["sharding"]),)
        if moves_memory(primitive):
            return (in_memory(operands[0], params["kind"]),)
        if primitive is copy_p and _in_other_memory(operands[0]):
            return (copy_there(operands[0]),)
        return compile_and_run(primitive, operands, params)

    def compiled_operation(
        self, primitive: Primitive, operands: Sequence[ConcreteArray], params: dict[str, Any]
    ) -> Callable[[Sequence[ConcreteArray]], ConcreteArray | None] | None:
        """Return what starts an operation that ran on such operands before, or None.

        The function takes operands of the same abstract values, and returns the result, or None
        where they are not all where they were.
        """
        kernel = _kernels.find((primitive, *[x.aval for x in operands], *params_key(params)))
        if kernel is None or kernel.run is None:
            return None
        if not self.takes(primitive, tuple(operands), params, kernel.avals_out):
            return None
        begin, (out_aval,) = kernel.run, kernel.avals_out

        def start(arrays: Sequence[ConcreteArray]) -> ConcreteArray | None:
            if (
                gateway.several_devices[0]
                or results_are_checked()
                or (no_execution.used and no_execution.value)
            ):
                return None
            outs = begin(arrays)
            return None if outs is None else ConcreteArray(None, out_aval, outs[0])

        return start


def _in_other_memory(x: ConcreteArray) -> bool:
    """Return whether an array lies in a kind of memory in which its devices do not compute."""
    where = getattr(x.buffer, "_sharding", None)
    return type(where) is gateway.SpreadOver and where.memory_kind is not None


class NoDevices(xprim.HostBackend):
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
    if primitive.call_like:
        closed = _program_of_call(primitive, operands, params)
        return tuple(program_of(closed, primitive.name).call(operands))
    types = (primitive, *[x.aval for x in operands], *params_key(params))
    kernel = _kernels.get((*types, state.__dict__["options"])) or _kernels.find(types)
    if kernel is not None and kernel.run is not None and not gateway.several_devices[0]:
        outs = kernel.run(operands)
        if outs is not None:
            return tuple(wrap_buffers(outs, kernel.avals_out))
    closed = kernel.programs[0] if kernel is not None else (
        program_of_equation(primitive, [x.aval for x in operands], params))  # fmt: skip
    on_device = program_of(closed, primitive.name).kernel_for(operands)
    results = on_device.call(operands)
    if kernel is None or kernel.run is None:
        _kernels.keep(types, Kernel(_start_of(on_device), on_device.avals_out, (closed,)))
    return tuple(results)


def _program_of_call(
    primitive: Primitive, operands: Sequence[ConcreteArray], params: dict[str, Any]
) -> ClosedJaxpr:
    memo, avals = memo_of(params), [x.aval for x in operands]
    key = (primitive, *avals, config.trace_context(), *params_key(params))
    if key not in memo:
        memo[key] = program_of_equation(primitive, avals, params)
    found: ClosedJaxpr = memo[key]
    return found


def _start_of(kernel: DeviceKernel) -> _Start:
    begin, handlers = kernel.starter, kernel.handlers

    def start(arrays: Sequence[ConcreteArray]) -> list[Any] | None:
        try:
            outs: list[Any] = begin([x.buffer for x in arrays]).consume_with_handlers(handlers)
        except (TypeError, gateway.RuntimeFailure):
            return None
        return outs

    return start


_away = gateway.away_from_host


def _any_away(operands: tuple[Any, ...]) -> bool:
    """Return whether an operand was put where NumPy cannot stand for the device.

    What NumPy computes belongs to the default device: an operand that was put elsewhere is away,
    though it be on the host, where an option chose another default.
    """
    chosen = config.values.default_device
    for x in operands:
        if type(x) is ConcreteArray and x.buffer is not None:
            if gateway.is_away(x.buffer):
                return True
            if chosen is not None and _is_elsewhere(x.buffer):
                return True
    return False


def _is_elsewhere(buffer: Any) -> bool:
    where = gateway.placement_of(buffer)
    here = getattr(where, "_device", None)
    return bool(where.committed and here is not default_placement().device)
