"""Rematerialization: names and policies."""

from xad import checkpoint, checkpoint_name, checkpoint_policies, name_p

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "name_p"]
