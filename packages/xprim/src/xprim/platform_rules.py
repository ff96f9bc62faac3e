"""One `stablehlo` rule made of several: which one writes the operation depends on the platform.

    stablehlo=by_platform("qr", cpu=_lapack, gpu=_cusolver)

A program is written for `cpu`, `cuda`, `rocm`, `tpu`, or another one by its name. `gpu` serves
`cuda` and `rocm` where they have no rule of their own, `default` what is left. What a library of a
platform computes (LAPACK, cuSOLVER) is such a rule, and so is another form of the same operation
that the compiler of one platform knows better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xprim.contracts import Builder
from xprim.errors import MissingRuleError, message

__all__ = ["by_platform", "is_gpu", "names_of_platform", "platforms_of"]

__dir__ = __all__.copy

_FAMILY: Mapping[str, tuple[str, ...]] = {
    "cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu"), "gpu": ("gpu", "cuda"),
}  # fmt: skip

Rule = Callable[..., Any]


def names_of_platform(platform: str) -> tuple[str, ...]:
    """Return the names under which something for a platform may stand, the nearest one first.

    Example:
      >>> names_of_platform("cuda"), names_of_platform("cpu")
      (('cuda', 'gpu'), ('cpu',))
    """
    return _FAMILY.get(platform, (platform,))


def is_gpu(platform: str) -> bool:
    """Return whether a platform is a GPU's.

    Example:
      >>> is_gpu("cuda"), is_gpu("cpu")
      (True, False)
    """
    return platform in _FAMILY


def by_platform(name: str, *, default: Rule | None = None, **rules: Rule) -> Rule:
    """Return the `stablehlo` rule that has the rule of the program's platform write.

    Args:
      name: of the primitive, for the error on platforms without a rule.
      default: the rule for the platforms that are not named.
      **rules: rules by platform: `cpu`, `gpu`, `cuda`, `rocm`, `tpu`.

    Returns:
      A rule, which raises `MissingRuleError` where none serves the platform.

    Example:
      >>> rule = by_platform("where_am_i", cpu=lambda b, *_: ["%cpu"], gpu=lambda b, *_: ["%gpu"])
      >>> platforms_of(rule)
      ('cpu', 'gpu')
    """

    def rule(
        b: Builder, operands: Sequence[str], avals_in: Any, avals_out: Any, **params: Any
    ) -> Any:
        platform = b.platform
        for known in names_of_platform(platform):
            found = rules.get(known)
            if found is not None:
                return found(b, operands, avals_in, avals_out, **params)
        if default is None:
            raise _missing(name, platform, tuple(rules))
        return default(b, operands, avals_in, avals_out, **params)

    rule.platforms = (*rules, *(() if default is None else ("default",)))  # type: ignore[attr-defined]
    return rule


def platforms_of(rule: Any) -> tuple[str, ...]:
    """Return the names for which a rule has rules; none where it writes the same on all."""
    found: tuple[str, ...] = getattr(rule, "platforms", ())
    return found


def _missing(name: str, platform: str, known: tuple[str, ...]) -> MissingRuleError:
    return MissingRuleError(message(
        name, f"is not available in programs for {platform}.",
        expected=f"a program for {' or '.join(known)}",
        hint="compute it on the CPU: jit(f, backend='cpu'), or device_put to a CPU",
    ))  # fmt: skip
