"""What the Python array API standard asks of a namespace: its version, and what it can do.

The functions of the standard are those of NumPy's API; `x.__array_namespace__()` gives `xnp`.
Source: https://data-apis.org/array-api/2025.12/, section Inspection.
"""

from __future__ import annotations

import sys
from typing import Any

from xnp.numpy.scalar_types import isdtype
from xnp.placing import on_device
from xprim import EAGER, Array, dtypes, scalar_array
from xprim.errors import message
from xprim.typing import DeviceLike

__all__ = ["__array_api_version__", "__array_namespace_info__"]

__dir__ = __all__.copy

__array_api_version__ = "2025.12"

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)
_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating",
          "complex floating", "numeric")  # fmt: skip
_NARROW = "bool int8 int16 int32 uint8 uint16 uint32 float32 complex64"
_WIDE = "int64 uint64 float64 complex128"


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807 - the standard's name
    """Return an object that says what the namespace can do, as the array API standard asks.

    Returns:
      An object with the methods `capabilities`, `default_device`, `default_dtypes`, `devices` and
      `dtypes`.

    Example:
      >>> import xnp
      >>> sorted(xnp.__array_namespace_info__().dtypes(kind="real floating"))
      ['float32']
    """
    return ArrayNamespaceInfo()


class ArrayNamespaceInfo:
    """The devices, dtypes and capabilities of the namespace."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return what depends on values: it works eagerly, and not in programs that are traced.

        NumPy holds at most 64 dimensions.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the device on which arrays are made."""
        device: Any = scalar_array(0, dtypes.int32).device
        return device

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of Python's numbers, and of indices; they depend on `enable_x64`.

        Args:
          device: means nothing here: dtypes are the same on all.
        """
        del device
        integer = dtypes.canonicalize_dtype(int)
        return {
            "real floating": dtypes.canonicalize_dtype(float),
            "complex floating": dtypes.canonicalize_dtype(complex),
            "integral": integer,
            "indexing": integer,
        }

    def devices(self) -> list[Any]:
        """Return the devices that `device=` takes."""
        return EAGER.backend.devices()

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the standard's dtypes that arrays can have now, by name.

        Args:
          device: means nothing here: dtypes are the same on all.
          kind: the name of a kind as `isdtype` takes it, or a tuple of some; None for all.

        Raises:
          ValueError: there is no such kind.
        """
        del device
        kinds = _KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown:
            raise ValueError(message(
                "dtypes", "there is no such kind.", got=f"{unknown[0]!r}",
                expected=f"{', '.join(map(repr, _KINDS))}, or a tuple of them",
            ))  # fmt: skip
        wide = dtypes.canonicalize_dtype(float) == dtypes.float64
        names = f"{_NARROW} {_WIDE}" if wide else _NARROW
        return {name: d for name in names.split()
                if isdtype(d := dtypes.dtype(name), kinds)}  # fmt: skip


# ------------------------------------------------------------------------------ methods of arrays


def namespace_of(self: Any, *, api_version: str | None = None) -> Any:
    """Return `xnp`, whose functions take the array.

    Args:
      self: the array.
      api_version: the version of the standard that is asked for; None for the newest.
    """
    del self
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(message(
            "__array_namespace__", f"version {api_version!r} is not known.",
            expected=f"{', '.join(VERSIONS)}, or None",
        ))  # fmt: skip
    return sys.modules["xnp"]  # `xnp.numpy` has neither `linalg` nor `fft`


def to_device(self: Array, device: DeviceLike, *, stream: object = None) -> Array:
    """Return the array on a device.

    Args:
      self: the array.
      device: a device, the name of a platform, or a sharding of one device.
      stream: must be None: there are no streams to choose.
    """
    if stream is not None:
        raise ValueError(message(
            "to_device", "there are no streams to choose.", got=f"stream={stream!r}",
            expected="None",
        ))  # fmt: skip
    return on_device(self, device, "to_device")


def host_device(self: Any) -> str:
    """The device that holds the array: without a compiler, the host."""
    del self
    return "cpu"
