"""Checks of derivatives by finite differences."""

from xad.testing import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]
