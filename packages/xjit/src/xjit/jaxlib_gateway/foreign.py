"""What a compiled program may call: libraries of C code, and Python.

What: `register_ffi_target`, `register_lapack` and `python_callback`.
Idea: a custom call names its target, and the runtime finds the target in a table for each
platform. Python functions are not in that table: a program is compiled with its list of callbacks,
and the target `CALLBACK_TARGET[platform]` calls the one with the index in its `backend_config`:

    %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%0) {
        api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : ui64},
        operand_layouts = [dense<0> : tensor<1xindex>],
        result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<3xf32>) -> tensor<3xf32>

Neighbours: `executables` compiles programs with them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xprim.errors import message

from .clients import canonical_platform
from .runtime import RuntimeFailure, fail, xla_client

__all__ = ()

CALLBACK_TARGET = {"cpu": "xla_ffi_python_cpu_callback", "gpu": "xla_ffi_python_gpu_callback"}
# The same, called by each device that a program is split over, with its own pieces.
PIECES_TARGET = {
    "cpu": "xla_ffi_partitioned_python_cpu_callback",
    "gpu": "xla_ffi_partitioned_python_gpu_callback",
}

_XLA_NAME_BY_PLATFORM = {"cpu": "cpu", "gpu": "CUDA"}
_lapack_lock = threading.Lock()
_lapack_is_registered = threading.Event()


def register_ffi_target(
    name: str, target: Any, platform: str = "cpu", *, api_version: int = 1, **more: Any
) -> None:
    """Let programs of `platform` call the C function in the capsule `target` by `name`.

    Args:
        name: what stands after `stablehlo.custom_call @`.
        target: a `PyCapsule` of the function, or a dictionary of capsules by stage.
        platform: `"cpu"` or `"gpu"`.
        api_version: 1 for the typed interface of `xla/ffi/api/ffi.h` (a program then says
            `api_version = 4 : i32`), 0 for the untyped one.
        **more: further arguments of jaxlib's.
    """
    if api_version not in (0, 1):
        raise ValueError(message(
            "register_ffi_target", "there are two versions of the interface.",
            got=f"{api_version!r}", expected="1 (typed) or 0 (untyped)",
        ))  # fmt: skip
    xla_platform = _XLA_NAME_BY_PLATFORM[canonical_platform(platform.lower())]
    try:
        xla_client.register_custom_call_target(
            name, target, platform=xla_platform, api_version=api_version, **more
        )
    except RuntimeFailure as error:
        fail("register_ffi_target", f"{name!r} could not be registered", error)


def register_ffi_type(name: str, registration: Any, platform: str = "cpu") -> None:
    """Let functions of `platform` keep states of a type; `registration` has its capsules."""
    xla_platform = _XLA_NAME_BY_PLATFORM[canonical_platform(platform.lower())]
    try:
        xla_client.register_custom_type(name, registration, platform=xla_platform)
    except RuntimeFailure as error:
        fail("register_ffi_type", f"{name!r} could not be registered", error)


def register_batch_partitionable(name: str) -> None:
    """Say that a registered function does with each part of a batch what it does with the whole."""
    try:
        xla_client.register_custom_call_as_batch_partitionable(name)
    except RuntimeFailure as error:
        fail("register_batch_partitionable", f"{name!r} could not be registered", error)


def include_dir() -> str:
    """Return the folder of the headers for functions that programs call."""
    return str(Path(xla_client.__file__).parent / "include")


def register_lapack() -> None:
    """Let CPU programs call LAPACK, as `@lapack_spotrf_ffi` and the like; once is enough.

    The routines are those of SciPy, which this loads.
    """
    if _lapack_is_registered.is_set():
        return
    with _lapack_lock:
        if _lapack_is_registered.is_set():
            return
        from jaxlib import lapack  # loads SciPy's libraries, which few programs need

        lapack._lapack.initialize()
        for name, target, api_version in lapack.registrations()["cpu"]:
            register_ffi_target(name, target, "cpu", api_version=api_version)
        _lapack_is_registered.set()


def python_callback(
    function: Callable[..., Any], outputs: Sequence[Any]
) -> Callable[..., tuple[np.ndarray[Any, Any], ...]]:
    """Return `function` as the runtime wants it among the `host_callbacks` of a program.

    Args:
        function: takes one read-only NumPy array for each operand, which it may keep, and returns
            a sequence of array-likes, one for each of `outputs`. It runs on a thread of the
            runtime; its exception becomes the failure of the program.
        outputs: objects with `shape` and `dtype`, as the program's text says.

    Example:
        >>> callback = python_callback(lambda x: (x + 1,), [np.zeros(2)])
        >>> callback(np.array([1.0, 2.0]))
        (array([2., 3.]),)
    """
    expected = [(tuple(o.shape), np.dtype(o.dtype)) for o in outputs]

    def call(*operands: Any) -> tuple[np.ndarray[Any, Any], ...]:
        results = function(*operands)
        if len(results) != len(expected):
            raise ValueError(message(
                "python_callback", "the function returned another number of results.",
                got=f"{len(results)}", expected=f"{len(expected)}",
            ))  # fmt: skip
        return tuple(
            _checked(position, result, shape, dtype)
            for position, (result, (shape, dtype)) in enumerate(zip(results, expected, strict=True))
        )

    return call


def _checked(
    position: int, result: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    array = np.asarray(result)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(message(
            "python_callback", f"result {position} does not have the declared type.",
            got=f"{array.dtype}{list(array.shape)}", expected=f"{dtype}{list(shape)}",
        ))  # fmt: skip
    return np.ascontiguousarray(array).reshape(shape)
