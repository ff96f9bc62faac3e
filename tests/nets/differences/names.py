"""Globals, and what lies behind them. (See `table`.)"""

from __future__ import annotations

import builtins
import functools
from typing import Any

import numpy as np

from tests.nets.differences.table import (
    changed_in,
    defined,
    kind,
    remade,
    unseen,
)


@kind
def a_global_number():
    return changed_in({"scale": 2.0}, "def f(x): return x * scale", scale=3.0)


@kind
def a_global_that_was_not_there():
    source = "def f(x):\n try: return x * scale\n except NameError: return x"
    return changed_in({}, source, scale=3.0)


@kind
def a_global_over_a_builtin():
    return changed_in({}, "def f(x): return x * len('ab')", len=lambda x: 3.0)


@kind
def a_builtin_that_was_replaced():
    space = {"__builtins__": {**vars(builtins)}}
    f, space = defined("def f(x): return x * len('ab')", **space)
    yield remade(f)
    space["__builtins__"]["len"] = lambda x: 3.0
    yield remade(f)


@kind
def a_global_list():
    scales = [2.0]
    f, _ = defined("def f(x): return x * scales[0]", scales=scales)
    yield remade(f)
    scales[0] = 3.0
    yield remade(f)


@kind
def a_global_dict():
    config = {"scale": 2.0}
    f, _ = defined("def f(x): return x * config['scale']", config=config)
    yield remade(f)
    config["scale"] = 3.0
    yield remade(f)


@kind
def a_global_of_a_helper():
    source = "def g(x): return x * scale\ndef f(x): return g(x)"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_helper():
    source = "def g(x): return x * 2.0\ndef f(x): return g(x)"
    return changed_in({}, source, g=lambda x: x * 3.0)


@kind
def a_global_of_a_nested_function():
    source = "def f(x):\n def g(y): return y * scale\n return g(x)"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_in_a_comprehension():
    return changed_in({"scale": 2.0}, "def f(x): return sum([x * scale for _ in 'a'])", scale=3.0)


@kind
def a_global_of_a_recursive_function():
    source = "def f(x, n=2): return x * scale if n == 0 else f(x, n - 1)"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_that_the_function_writes():
    source = "def f(x):\n global n\n n = n + 0.0\n return x * n"
    return changed_in({"n": 2.0}, source, n=3.0)


@unseen
def a_global_read_by_eval():
    return changed_in({"scale": 2.0}, "def f(x): return x * eval('scale')", scale=3.0)


@unseen
def a_global_read_through_globals():
    return changed_in({"scale": 2.0}, "def f(x): return x * globals()['scale']", scale=3.0)


@kind
def two_globals_dicts():
    for scale in (2.0, 3.0):
        f, _ = defined("def f(x): return x * scale", scale=scale)
        yield remade(f)


@kind
def a_function_in_a_function_attribute():
    def f(x):
        return x * f.scale

    f.scale = 2.0
    yield lambda: f
    f.scale = 3.0
    yield lambda: f


@kind
def a_wrapped_function():
    def wrapping(inner):
        @functools.wraps(inner)
        def f(x):
            return f.__wrapped__(x)

        return f

    yield lambda: wrapping(lambda x: x * 2.0)
    yield lambda: wrapping(lambda x: x * 3.0)


@kind
def what_a_wrapper_of_no_closure_wraps():
    source = "def f(x): return f.__wrapped__(x)"
    f, _ = defined(source)
    f.__wrapped__ = lambda x: x * 2.0
    yield lambda: f
    f.__wrapped__ = lambda x: x * 3.0
    yield lambda: f


@kind
def a_global_of_a_wrapper_that_took_its_name_from_a_library():
    space = {"scale": 2.0, "functools": functools}
    source = "@functools.wraps(np.sin)\ndef f(x): return x * scale"
    f, space = defined(source, **space)
    f.__dict__.clear()
    f.__module__ = "numpy"
    yield remade(f)
    space["scale"] = 3.0
    yield remade(f)


@kind
def a_global_of_a_function_that_says_it_is_of_the_standard_library():
    return changed_in({"scale": 2.0, "__name__": "math"}, "def f(x): return x * scale", scale=3.0)


@kind
def a_global_of_a_function_with_the_file_name_of_a_library():
    space: dict[str, Any] = {"__name__": "numpy", "scale": 2.0}
    exec(compile("def f(x): return x * scale", np.__file__, "exec"), space)
    yield remade(space["f"])
    space["scale"] = 3.0
    yield remade(space["f"])
