"""What is checked of a program before it is stored, and what users may allow.

A program may call routines of the runtime by name. Of those named here it is promised that a later
runtime has them with the same meaning; a Python function, or a routine that somebody registered,
is of this process alone.

Neighbour: `_export` asks these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xprim.errors import message

__all__ = ["DisabledSafetyCheck", "check_custom_calls"]

__dir__ = __all__.copy

_CUSTOM_CALL = "custom_call:"
_TARGETS = re.compile(
    r"custom_call @([\w$.-]+)|custom_call @\"([^\"]+)\"|call_target_name = \"([^\"]+)\""
)
# jaxlib keeps these for programs that were exported: tests of backward compatibility there hold
# https://docs.jax.dev/en/latest/export/export.html#compatibility-guarantees-for-custom-calls
_STABLE = re.compile(
    r"(lapack|cusolver|hipsolver|cublas|hipblas|cusparse|hipsparse)_\w+_ffi"
    r"|cu_lu_pivots_to_permutation|hip_lu_pivots_to_permutation"
    r"|Sharding|SPMDFullToShardShape|SPMDShardToFullShape|Eigh|Qr|LuDecomposition|ApproxTopK"
    r"|ProductOfElementaryHouseholderReflectors"
    r"|xstack_host_rule"  # the NumPy rule of a primitive: `host_rules`
)


class DisabledSafetyCheck:
    """A check that somebody does without.

    Example:
      >>> DisabledSafetyCheck.platform(), DisabledSafetyCheck.custom_call("mine").is_custom_call()
      (platform, 'mine')
    """

    __slots__ = ("_text",)

    def __init__(self, _text: str) -> None:
        self._text = _text

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow running a program on another platform than it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow a program that calls the routine of this name; "ALL" allows every routine."""
        return cls(_CUSTOM_CALL + target_name)

    def is_custom_call(self) -> str | None:
        """Return the name of the routine that this allows, None for another check."""
        name = self._text.removeprefix(_CUSTOM_CALL)
        return None if name == self._text else name

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def check_custom_calls(
    name: str, text: str, disabled_checks: Iterable[DisabledSafetyCheck]
) -> None:
    """Raise if a program calls a routine that a later runtime may not have.

    Args:
      name: of the function.
      text: of the program.
      disabled_checks: which may allow routines.
    """
    allowed = {check.is_custom_call() for check in disabled_checks}
    if "ALL" in allowed:
        return
    called = {next(filter(None, groups)) for groups in _TARGETS.findall(text)}
    unknown = sorted(t for t in called - allowed if not _STABLE.fullmatch(t))
    if unknown:
        raise ValueError(message(
            "export", f"{name} calls a routine that a later runtime may not have.",
            got=", ".join(unknown),
            hint=f"disabled_checks=[DisabledSafetyCheck.custom_call({unknown[0]!r})] allows it",
        ))  # fmt: skip


def is_platform_free(disabled_checks: Sequence[DisabledSafetyCheck]) -> bool:
    """Return whether a program may run on a platform that it was not exported for."""
    return DisabledSafetyCheck.platform() in disabled_checks
