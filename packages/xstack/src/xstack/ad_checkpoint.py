"""Rematerialization: names and policies."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xad import (
        Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable,
        SavedResidual as SavedResidual, checkpoint as checkpoint,
        checkpoint_name as checkpoint_name, checkpoint_name_fwd as checkpoint_name_fwd,
        checkpoint_policies as checkpoint_policies, name_p as name_p,
        print_saved_residuals as print_saved_residuals, saved_residuals as saved_residuals,
    )  # fmt: skip
