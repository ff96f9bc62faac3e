"""Rematerialization: names and policies."""

from xad import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint,
    checkpoint_name,
    checkpoint_name_fwd,
    checkpoint_policies,
    name_p,
    print_saved_residuals,
)

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_name_fwd",
    "checkpoint_policies",
    "name_p",
    "print_saved_residuals",
]
