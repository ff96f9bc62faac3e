"""Load jaxlib: the one module whose imports name it.

What: the two modules of jaxlib that the rest of this folder uses, the exception that every
failure of theirs becomes, and the versions.
Idea: XLA reads its log level when its library is loaded and otherwise greets each new client on
stderr, so the level stands in the environment during the import, unless the user has chosen one.
Nothing of jaxlib is configured or changed: `jax` may live in the same process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final, NoReturn

from xprim.eager import largest_arrays
from xprim.errors import OutOfMemoryError, XStackRuntimeError, message
from xprim.memory import out_of_memory

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_user_has_chosen = _LOG_LEVEL in os.environ
os.environ.setdefault(_LOG_LEVEL, "1")

from jaxlib import _jax, xla_client  # noqa: E402  (the log level has to be set before)
from jaxlib.version import __version__ as _jaxlib_version  # noqa: E402

if not _user_has_chosen:
    del os.environ[_LOG_LEVEL]

__all__ = ["Device", "RuntimeFailure", "XlaError", "_jax", "fail", "version", "xla_client"]

__dir__ = __all__.copy

Device = _jax.Device
RuntimeFailure = _jax.JaxRuntimeError


class XlaError(XStackRuntimeError):
    """XLA refused a program, or failed while it compiled or ran one.

    The first line says which step failed; the message of XLA follows. Work on a device is
    asynchronous, so a failure while running shows when the result is read.

    Example:
        >>> issubclass(XlaError, RuntimeError)
        True
    """


def version() -> str:
    """Return the version of jaxlib with the numbers of its runtime, for cache keys.

    Example:
        >>> version().startswith("jaxlib ")
        True
    """
    return f"jaxlib {_jaxlib_version} xla {xla_client._version} ifrt {_jax.ifrt_version_number}"


# Whether XLA ends the process where it divides constant integers by 0 before it compiles (seen on
# 0.10.2, not on 0.12): `jit(lambda: lax.div(1, 0))` would.
_version_info: Final = tuple(map(int, _jaxlib_version.split(".")[:2]))
FOLDS_DIVISION_BY_ZERO: Final = _version_info < (0, 12)
# Whether results of exponentials whose operand is a constant NaN are undefined on CPUs (seen on
# 0.10.2, not on 0.12).
LOSES_RESULTS_OF_NAN: Final = _version_info < (0, 12)
# Whether arc tangents with vectors of 512 bits are wrong on CPUs (seen on 0.10.2, not on 0.12).
HAS_WRONG_WIDE_ATAN: Final = _version_info < (0, 12)
# Whether the CPU compiler drops barriers before it merges common subexpressions (seen on 0.10.2,
# not on 0.12).
DROPS_BARRIERS: Final = _version_info < (0, 12)
# Whether a slice of a slice reads beyond the first one, not at its edge, where its start is out of
# bounds (seen on 0.10.2, not on 0.12).
SLICES_BEYOND_PIECES: Final = _version_info < (0, 12)
# Whether sums of products with a factor that is repeated along leading dimensions are wrong on CPUs
# beside a product of matrices (seen on 0.10.2, not on 0.12).
MISREADS_REPEATED_FACTORS: Final = _version_info < (0, 12)
# Whether buffers ask their sharding for methods that only Python classes have.
ASKS_SHARDINGS: Final = _version_info < (0, 11)
# Whether the CPU compiler makes one kernel only of loops whose body accesses less than 1 kB (0.10.2
# and, by reports, 0.11.2; about 200 kB on 0.12).
LIMITS_LOOPS_TO_1_KB: Final = _version_info < (0, 12)
# Whether the CPU compiler has tiled kernels that write each 64 bytes by way of the stack, in two
# stores and one load, for which the processor waits (seen on 0.10.2, not on 0.12).
TILES_BY_WAY_OF_STACK: Final = _version_info < (0, 12)
# Whether the CPU compiler copies a function for each call before all of its passes, unless an
# option says after fusion (0.10.2; 0.12 does not know the option).
COPIES_FUNCTIONS_FIRST: Final = _version_info < (0, 12)


class XlaMemoryError(XlaError, OutOfMemoryError):
    """A program, or data for one, requested more memory than its device has."""


# "Out of memory allocating 400000000000000 bytes", "... trying to allocate 363.80TiB"
_OUT_OF_MEMORY = r"(?i)out of memory\D*?allocat\D*(\d[\d,]*(?:\.\d+)?) ?([kmgtpe]i?b)?"

# What XLA says of a program that could not begin, since what it waits for has failed.
_OF_AN_OPERAND = "Error (dispatching|preparing) computation"


def _read_size(found: re.Match[str]) -> int | str:
    """Return the bytes that an error of XLA's tells of; with a unit they are rounded."""
    number, unit = found.groups()
    if unit is not None:
        return f"about {number} {unit}"
    return int(float(number.replace(",", ""))) if "." in number else int(number.replace(",", ""))


# Set where programs are known. Those of the first list return a sentence about the memory that a
# program of a name takes, those of the second one the names of programs that allocate so much.
memory_of_program: list[Callable[[str], str]] = []
programs_of_size: list[Callable[[Callable[[int], bool]], set[str]]] = []
_MOST_NAMED = 4

# XLA may list all that a GPU's memory holds after the first line.
_LINES_SHOWN = 3


def _is_size(found: re.Match[str]) -> Callable[[int], bool]:
    """Return a function that says whether an error tells of so many bytes, rounded as there."""
    number, unit = found.groups()
    if unit is None:
        requested = _read_size(found)
        return lambda nbytes: nbytes == requested
    scale = 1024.0 ** ("kmgtpe".index(unit[0].lower()) + 1)
    digits = len(number.partition(".")[2])
    return lambda nbytes: f"{nbytes / scale:.{digits}f}" == number.replace(",", "")


def _allocating(used_by: str, found: re.Match[str] | None) -> tuple[str, str, str]:
    """Return what failed before an operation that waited for it, the program, and a sentence.

    XLA says the size alone. It is that of a result or of the temporaries of a program that is
    loaded: often of one.
    """
    unknown = f"an operand of {used_by}"
    if found is None:
        return unknown, "", ""
    is_size = _is_size(found)
    names = sorted({name for find in programs_of_size for name in find(is_size)})
    if len(names) == 1 and names[0] != used_by:
        return names[0], names[0], f"{used_by} waits for its result"
    if 1 < len(names) <= _MOST_NAMED:
        return unknown, "", f"results or temporaries of this size have {', '.join(names)}"
    return unknown, "", ""


def fail(operation: str, problem: str, cause: BaseException) -> NoReturn:
    """Raise `cause` again as an `XlaError` whose first line is ours."""
    found = re.search(_OUT_OF_MEMORY, str(cause))
    if found is not None or "RESOURCE_EXHAUSTED" in str(cause):
        nbytes, name, why = None if found is None else _read_size(found), operation, ""
        if re.search(_OF_AN_OPERAND, str(cause)):
            operation, name, why = _allocating(operation, found)
        said = "\n".join(str(cause).strip().splitlines()[:_LINES_SHOWN])
        sizes = [describe(name) for describe in memory_of_program]
        got = "\n".join([text for text in (said, *sizes, why) if text])
        text = out_of_memory(operation, nbytes, got, largest_arrays())
        raise XlaMemoryError(str(text)) from cause
    lines = str(cause).strip().replace("\n", "\n" + " " * 12)
    raise XlaError(message(operation, f"{problem}.", got=f"{lines}")) from cause
