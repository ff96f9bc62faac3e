"""Checks of values in programs, and their failures as values.

    check(pred, "text {x}", x=x)     raises where `pred` is False, also in compiled programs
    checkify(f)(x)                   returns the failure beside the result: (error, out)
    check_error(error)               raises it, if there is one

`checkify` also makes checks of every operation: for NaN, division by zero and indices out of
bounds. Under `jit`, `vmap` and `grad` of its result an error is an array like any other.
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.checkify._checkify import (
        Error as Error, ErrorCategory as ErrorCategory, JaxRuntimeError as JaxRuntimeError,
        all_checks as all_checks, automatic_checks as automatic_checks, check as check,
        check_error as check_error, checkify as checkify, debug_check as debug_check,
        div_checks as div_checks, error_if as error_if, float_checks as float_checks,
        index_checks as index_checks, init_error as init_error, nan_checks as nan_checks,
        user_checks as user_checks,
    )  # fmt: skip
