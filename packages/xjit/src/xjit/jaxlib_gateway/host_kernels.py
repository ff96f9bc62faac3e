"""Routines of NumPy inside of compiled CPU programs: called by name, on the program's own memory.

What: `register_host_kernels`, which makes the target `HOST_KERNEL` known, and `await_at_exit`,
which keeps the interpreter until the calls that run are over. Idea: a handler of XLA's typed
foreign function interface is a C function of one pointer, which `ctypes` makes of a Python
function. It reads the call's frame, and lends the buffers as ndarrays:

    %1 = stablehlo.custom_call @xstack_host_kernel(%0) {
        api_version = 4 : i32, backend_config = {kernel = "('sort', (('dimension', 0), ...))"}, ...

The text names the routine and its options, so a program with such a call is kept on disk,
pickled and loaded in another process as any other is.

The lock of the interpreter is held to enter and to leave; NumPy's long loops release it. Work whose
examples are independent is shared with the threads of XLA's pool that are free: a thread of the
pool takes the next piece when it comes, and the call waits for none that has not begun, so calls on
all threads at once cannot wait for each other.

A Python function that is entered by the main thread may be left by Ctrl-C before its first
statement, and `ctypes` would return a pointer to nowhere. So a program must not be one that the
runtime starts in the thread of its caller, as it does where it counts fewer than 1,000 operations:
the last operand, which no kernel gets to see, is the result of arithmetic on `LEAST_ELEMENTS`
elements.

Source of the structures: `xla/ffi/api/c_api.h`, which jaxlib ships, versions 0.3 and 0.5.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from xjit.jaxlib_gateway.runtime import xla_client

__all__ = ()

HOST_KERNEL = "xstack_host_kernel"
"""The name of the custom call; its attribute `kernel` is a text that says which routine runs."""

LEAST_ELEMENTS = 1024
"""So many operations make a program one that the runtime does not run in its caller's thread."""

HostKernel: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], None]
"""Fills the results, given the operands and the results as arrays."""

Resolved: TypeAlias = tuple[HostKernel, int | None]
"""A kernel, and the dimension along which it may be called for pieces; None for the whole alone."""


# ------------------------------------------------------------------------------------ structures


class _Version(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("major", ctypes.c_int), ("minor", ctypes.c_int))  # fmt: skip


class _Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", _Version),
                ("traits", ctypes.c_uint32))  # fmt: skip


class _Extension(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("type", ctypes.c_int),
                ("next", ctypes.c_void_p), ("metadata", ctypes.POINTER(_Metadata)))  # fmt: skip


class _Buffer(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("dtype", ctypes.c_int), ("data", ctypes.c_void_p), ("rank", ctypes.c_int64),
                ("dims", ctypes.POINTER(ctypes.c_int64)))  # fmt: skip


class _Buffers(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("size", ctypes.c_int64), ("types", ctypes.c_void_p),
                ("items", ctypes.POINTER(ctypes.POINTER(_Buffer))))  # fmt: skip


class _Text(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Attributes(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("size", ctypes.c_int64), ("types", ctypes.c_void_p),
                ("names", ctypes.c_void_p),
                ("items", ctypes.POINTER(ctypes.POINTER(_Text))))  # fmt: skip


class _ErrorOptions(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("message", ctypes.c_char_p), ("code", ctypes.c_int))  # fmt: skip


_Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _ScheduleOptions(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("context", ctypes.c_void_p), ("task", _Task),
                ("data", ctypes.c_void_p))  # fmt: skip


class _ThreadsOptions(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p),
                ("context", ctypes.c_void_p),
                ("count", ctypes.POINTER(ctypes.c_int64)))  # fmt: skip


# These never touch Python, so they are called without the interpreter's lock.
_CreateError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorOptions))
_Schedule = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ScheduleOptions))
_CountThreads = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ThreadsOptions))


class _Api(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("version", _Version),
        ("internal", ctypes.c_void_p), ("create_error", _CreateError),
        # the texts of errors, their end, registration, streams, types, contexts, states, memory
        ("others", ctypes.c_void_p * 10), ("schedule", _Schedule),
        ("count_threads", _CountThreads),
    )  # fmt: skip


class _Frame(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t), ("extension", ctypes.POINTER(_Extension)),
        ("api", ctypes.POINTER(_Api)), ("context", ctypes.c_void_p), ("stage", ctypes.c_int),
        ("operands", _Buffers), ("results", _Buffers), ("attributes", _Attributes),
    )  # fmt: skip


_METADATA = 1  # the type of the extension by which XLA asks for the version of a handler
_INTERNAL, _RESOURCE_EXHAUSTED = 13, 8  # codes of errors

_DTYPES: dict[int, np.dtype[Any]] = {
    number: np.dtype(kind)
    for number, kind in {
        1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16,
        8: np.uint32, 9: np.uint64, 10: np.float16, 11: np.float32, 12: np.float64,
        15: np.complex64, 16: ml_dtypes.bfloat16, 18: np.complex128, 19: ml_dtypes.float8_e5m2,
        20: ml_dtypes.float8_e4m3fn, 23: ml_dtypes.float8_e4m3b11fnuz,
        24: ml_dtypes.float8_e5m2fnuz, 25: ml_dtypes.float8_e4m3fnuz,
        28: ml_dtypes.float8_e4m3, 29: ml_dtypes.float8_e3m4, 33: ml_dtypes.float8_e8m0fnu,
    }.items()
}  # fmt: skip
"""By the number that the interface gives them. Those of fewer than 8 bits lie packed or not."""

HOST_KERNEL_DTYPES = frozenset(_DTYPES.values())
"""The dtypes of arrays that kernels take and fill."""


# ---------------------------------------------------------------------------------------- calls

_resolve: list[Callable[[str], Resolved]] = []
# By the text of the call; programs name few, and all of them stay in use.
_kernels: dict[bytes, Resolved] = {}
_lock = threading.Lock()


def register_host_kernels(resolve: Callable[[str], Resolved]) -> None:
    """Let CPU programs call routines of NumPy, as `@xstack_host_kernel`; once is enough.

    Args:
      resolve: returns what the text in the attribute of a call names.
    """
    with _lock:
        if not _resolve:
            address = ctypes.cast(_handler, ctypes.c_void_p)
            make = ctypes.PYFUNCTYPE(
                ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
            )(("PyCapsule_New", ctypes.pythonapi))
            xla_client.register_custom_call_target(
                HOST_KERNEL, make(address, None, None), platform="cpu", api_version=1
            )
            atexit.register(_wait_at_exit)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_forget_running)
            _resolve.append(resolve)


def _handle(pointer: Any) -> int | None:
    """Run the routine that a call names; the address of an error of XLA's, or None."""
    frame = pointer[0]
    try:
        if frame.extension and frame.extension[0].type == _METADATA:
            version = frame.extension[0].metadata[0].version
            version.major, version.minor = 0, frame.api[0].version.minor
            return None
        kernel, split = _kernel_of(frame.attributes.items[0][0])
        operands, results = _arrays(frame.operands)[:-1], _arrays(frame.results)
        if split is None or operands[0].nbytes < _LEAST_BYTES_TO_SHARE:
            kernel(operands, results)
        else:
            _run_in_pieces(frame, kernel, operands, results, split)
        return None
    except BaseException as error:
        code = _RESOURCE_EXHAUSTED if isinstance(error, MemoryError) else _INTERNAL
        text = f"a NumPy routine in a compiled program: {type(error).__name__}: {error}"
        return _new_error(frame, text, code)


_handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))(_handle)


def _kernel_of(text: Any) -> Resolved:
    key = ctypes.string_at(text.data, text.length)
    found = _kernels.get(key)
    if found is None:
        found = _kernels[key] = _resolve[0](key.decode())
    return found


def _arrays(buffers: Any) -> list[np.ndarray[Any, Any]]:
    """Return the memory of buffers, in the order of NumPy, as arrays."""
    found = []
    for i in range(buffers.size):
        buffer = buffers.items[i][0]
        dtype = _DTYPES[buffer.dtype]
        shape = tuple(buffer.dims[: buffer.rank])
        size = math.prod(shape) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(buffer.data)
        found.append(np.ndarray(shape, dtype, memory))
    return found


def _new_error(frame: Any, text: str, code: int) -> int | None:
    options = _ErrorOptions(ctypes.sizeof(_ErrorOptions), None, text.encode(), code)
    address: int | None = frame.api[0].create_error(ctypes.byref(options))
    return address


# --------------------------------------------------------------------------------------- threads

_LEAST_BYTES_TO_SHARE = 1 << 17  # below, one thread is done before another has come
_PIECES_PER_THREAD = 4

_numbers = itertools.count(1)
# The calls whose pieces threads of the pool may take, by the number that the threads are given.
_shared: dict[int, _SharedCall] = {}
_scheduled: set[int] = set()
"""Numbers of tasks that the pool has not run yet: at exit they are waited for."""


class _SharedCall:
    """Pieces of one call, which whoever is free takes."""

    __slots__ = ("_active", "_errors", "_idle", "_kernel", "_pieces")

    def __init__(self, kernel: HostKernel, pieces: Sequence[tuple[Any, Any]]) -> None:
        self._kernel = kernel
        self._pieces = deque(pieces)
        self._errors: list[BaseException] = []
        self._active = 0
        self._idle = threading.Condition()

    def help(self) -> None:
        """Take pieces until none is left; what one raises is for the call."""
        with self._idle:
            self._active += 1
        try:
            while True:
                operands, results = self._pieces.popleft()
                self._kernel(operands, results)
        except IndexError:
            pass
        except BaseException as error:
            self._errors.append(error)
            self._pieces.clear()
        finally:
            with self._idle:
                self._active -= 1
                self._idle.notify_all()

    def finish(self) -> None:
        """Take pieces, wait for the others that have some, and raise what one raised."""
        self.help()
        with self._idle:
            self._idle.wait_for(lambda: not self._active)
        if self._errors:
            raise self._errors[0]


def _run_in_pieces(
    frame: Any, kernel: HostKernel, operands: Sequence[Any], results: Sequence[Any], dim: int
) -> None:
    """Run a kernel whose examples along a dimension are independent, on all free threads."""
    count = operands[0].shape[dim]
    threads = _count_threads(frame)
    pieces = min(count, threads * _PIECES_PER_THREAD)
    if threads < 2 or pieces < 2:
        kernel(operands, results)
        return
    ahead = (slice(None),) * dim
    bounds = [count * i // pieces for i in range(pieces + 1)]
    places = [(*ahead, slice(a, b)) for a, b in itertools.pairwise(bounds)]
    call = _SharedCall(kernel, [([x[p] for x in operands], [y[p] for y in results])
                                for p in places])  # fmt: skip
    numbers = [next(_numbers) for _ in range(min(threads, pieces) - 1)]
    try:
        for number in numbers:
            _shared[number] = call
            _scheduled.add(number)
            options = _ScheduleOptions(
                ctypes.sizeof(_ScheduleOptions), None, frame.context, _help_task, number
            )
            if frame.api[0].schedule(ctypes.byref(options)):  # an error: there is no pool
                _scheduled.discard(number)
        call.finish()
    finally:
        for number in numbers:
            _shared.pop(number, None)


def _help(number: int) -> None:
    """Take part in a call, on a thread of the pool, if it is not over."""
    call = _shared.pop(number, None)
    try:
        if call is not None:
            call.help()
    finally:
        _scheduled.discard(number)


_help_task = _Task(_help)


def _count_threads(frame: Any) -> int:
    count = ctypes.c_int64(1)
    options = _ThreadsOptions(
        ctypes.sizeof(_ThreadsOptions), None, frame.context, ctypes.pointer(count)
    )
    failed = frame.api[0].count_threads(ctypes.byref(options))
    return 1 if failed else count.value


# -------------------------------------------------------------------------------------- at exit
# A thread that comes to Python when the interpreter is gone waits for ever, or ends the process
# by a signal. The runtime starts 32 programs ahead on each device, and then has callers wait.

_MOST_RUNNING = 1024
_running: deque[Any] = deque(maxlen=_MOST_RUNNING)
"""What tells when the last programs with such calls are over."""
_PATIENCE_SECONDS = 10.0


def await_at_exit(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that starts a program which the interpreter waits for at its end."""

    @functools.wraps(start)
    def start_and_note(buffers: Any, with_tokens: bool = False) -> Any:
        results = start(buffers, with_tokens=True)
        if not with_tokens:  # else the caller waits by the token, which can be had once
            _running.append(results.consume_token())
        return results

    return start_and_note


def _forget_running() -> None:
    """Wait for nothing in a forked child: the threads that ran are its parent's."""
    _running.clear()
    _scheduled.clear()
    _shared.clear()


def _wait_at_exit() -> None:
    while _running:
        try:
            _running.pop().block_until_ready()
        except Exception:  # the program has failed, which is as good
            continue
    end = time.monotonic() + _PATIENCE_SECONDS
    while _scheduled and time.monotonic() < end:
        time.sleep(0.001)
