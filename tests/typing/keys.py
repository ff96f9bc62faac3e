"""Types of keys: arrays for the type checker, as they are at run time."""

from __future__ import annotations

from typing import assert_type

import xrandom
from xprim import Array
from xprim.dtypes import ExtendedDType
from xprim.extended import unwrap, wrap

assert_type(xrandom.key(0), Array)
assert_type(xrandom.PRNGKey(0), Array)
assert_type(xrandom.key_data(xrandom.key(0)), Array)
assert_type(xrandom.wrap_key_data(xrandom.PRNGKey(0)), Array)
assert_type(xrandom.clone(xrandom.key(0)), Array)
assert_type(xrandom.split(xrandom.key(0)), Array)
assert_type(xrandom.fold_in(xrandom.key(0), 1), Array)
assert_type(xrandom.key_impl(xrandom.key(0)), str)
assert_type(unwrap(xrandom.key(0)), Array)


def declared(dtype: ExtendedDType, numbers: Array) -> Array:
    return wrap(numbers, dtype)
