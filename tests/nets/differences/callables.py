"""Callables that are not plain functions. (See `table`.)"""

from __future__ import annotations

import contextlib
import functools

import numpy as np

from tests.nets.differences.table import (
    changed_in,
    defined,
    kind,
    pair,
    remade,
    unseen,
)


@kind
def an_argument_of_a_partial():
    return pair(lambda c: functools.partial(lambda s, x: x * s, c))


@kind
def a_keyword_of_a_partial():
    return pair(lambda c: functools.partial(lambda x, s: x * s, s=c))


@kind
def the_function_of_a_partial():
    yield lambda: functools.partial(lambda x: x * 2.0)
    yield lambda: functools.partial(lambda x: x * 3.0)


@kind
def a_subclass_of_partial():
    class Scaled(functools.partial):
        def __call__(self, x):
            return x * self.scale

    def make(c):
        made = Scaled(abs)
        made.scale = c
        return made

    return pair(make)


@unseen
def the_dict_behind_a_bound_builtin():
    config = {"scale": 2.0}
    f, _ = defined("def f(x): return x * get('scale')", get=config.get)
    yield remade(f)
    config["scale"] = 3.0
    yield remade(f)


@unseen
def the_list_behind_a_method_wrapper():
    scales = [2.0]
    f, _ = defined("def f(x): return x * get(0)", get=scales.__getitem__)
    yield remade(f)
    scales[0] = 3.0
    yield remade(f)


@kind
def the_list_given_to_an_unbound_method():
    scales = [2.0]

    def make():
        return functools.partial(lambda g, s, x: x * g(s, 0), list.__getitem__, scales)

    yield make
    scales[0] = 3.0
    yield make


@kind
def the_string_behind_a_bound_builtin():
    return pair(lambda c: lambda x: x * float(c("0")), "{}2".format, "{}3".format)


@unseen
def a_ufunc_made_of_a_function():
    values = [2.0]
    f, _ = defined("def f(x): return x * float(u(0.0))",
                   u=np.frompyfunc(lambda _: values[0], 1, 1))  # fmt: skip
    yield remade(f)
    values[0] = 3.0
    yield remade(f)


@unseen
def a_vectorized_function_of_numpy():
    values = [2.0]
    f, _ = defined("def f(x): return x * float(u(0.0))",
                   u=np.vectorize(lambda _: values[0]))  # fmt: skip
    yield remade(f)
    values[0] = 3.0
    yield remade(f)


@unseen
def a_function_that_remembers():
    @functools.lru_cache
    def scale():
        return values[0]

    values = [2.0]
    f, _ = defined("def f(x): return x * scale()", scale=scale)
    yield remade(f)
    values[0] = 3.0
    scale.cache_clear()
    yield remade(f)


@unseen
def the_registry_of_a_single_dispatch():
    @functools.singledispatch
    def scale(x):
        return 2.0

    f, _ = defined("def f(x): return x * scale(1)", scale=scale)
    yield remade(f)
    scale.register(int, lambda x: 3.0)
    yield remade(f)


@unseen
def a_generator():
    for scale in (2.0, 3.0):
        yield remade(defined("def f(x): return x * next(n)", n=(scale for _ in range(9)))[0])


@kind
def a_context_manager():
    source = (
        "@contextlib.contextmanager\ndef scaled(): yield scale\n"
        "def f(x):\n with scaled() as s: return x * s"
    )
    return changed_in({"scale": 2.0, "contextlib": contextlib}, source, scale=3.0)
