"""Checks of derivatives by finite differences."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xad.testing import (
        check_grads as check_grads, check_jvp as check_jvp, check_rule as check_rule,
        check_vjp as check_vjp,
    )  # fmt: skip
