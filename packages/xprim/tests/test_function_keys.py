from __future__ import annotations

import functools
import gc
import math
import types
import weakref

import numpy as np

from xprim import as_array
from xprim.function_keys import Identity, describe_function, function_key, is_by_identity

scale = 2.0
table = [1, 2]


def test_fresh_lambdas_of_equal_code_have_equal_keys():
    keys = [function_key(lambda x: x + 1) for _ in range(2)]
    assert keys[0] == keys[1] and hash(keys[0]) == hash(keys[1])


def test_different_code_gives_different_keys():
    assert function_key(lambda x: x + 1) != function_key(lambda x: x + 2)


def test_constants_of_different_types_do_not_collide():
    def adding(c):
        return lambda x: x + c

    keys = [function_key(adding(c)) for c in (1, 1.0, True, np.float32(1), np.float64(1), 1 + 0j)]
    assert len(set(keys)) == len(keys)


def test_negative_zero_and_zero_differ_and_nan_finds_itself():
    def adding(c):
        return lambda x: x + c

    assert function_key(adding(0.0)) != function_key(adding(-0.0))
    assert function_key(adding(math.nan)) == function_key(adding(float("nan")))
    assert function_key(adding((1, (2.0,)))) != function_key(adding((1, (2,))))


def test_defaults_and_keyword_defaults_are_part_of_the_key():
    def with_default(c):
        def fun(x, d=c, *, e=c):
            return x + d + e

        return fun

    assert function_key(with_default(1)) == function_key(with_default(1))
    assert function_key(with_default(1)) != function_key(with_default(2))


def test_a_referenced_global_is_part_of_the_key():
    namespace = {"__name__": "user_module", "scale": 2.0}
    exec("def fun(x): return x * scale", namespace)
    before = function_key(namespace["fun"])
    assert function_key(namespace["fun"]) == before
    namespace["scale"] = 3.0
    assert function_key(namespace["fun"]) != before


def test_a_global_behind_a_helper_and_a_module_is_part_of_the_key():
    settings = types.ModuleType("user_settings")
    settings.scale = 2.0
    namespace = {"__name__": "user_module", "settings": settings}
    exec(
        "def helper(x): return x * settings.scale\ndef make(): return lambda x: helper(x) + 1",
        namespace,
    )
    before = function_key(namespace["make"]())
    assert function_key(namespace["make"]()) == before
    settings.scale = 3.0
    assert function_key(namespace["make"]()) != before


def test_a_class_attribute_is_part_of_the_key():
    class Config:
        scale = 2.0

    Config.__module__ = "user_module"

    def make():
        return lambda x: x * Config.scale

    before = function_key(make())
    assert function_key(make()) == before
    Config.scale = 3.0
    assert function_key(make()) != before


def test_a_function_that_sees_something_mutable_is_known_by_identity():
    seen = []

    def noting(x):
        seen.append(1)
        return x

    class Model:
        pass

    model = Model()
    for fun in (noting, lambda x: x * model.w, lambda x: table, lambda x: globals()):
        assert is_by_identity(function_key(fun))
        assert function_key(fun) == function_key(fun)


def test_a_function_that_writes_its_own_state_is_known_by_identity():
    count = 0

    def counting(x):
        nonlocal count
        count += 1
        return x

    assert is_by_identity(function_key(counting))
    namespace = {"__name__": "user_module", "n": 0}
    exec("def fun(x):\n global n\n n += 1\n return x", namespace)
    assert is_by_identity(function_key(namespace["fun"]))


def test_partials_are_known_by_function_and_bound_values():
    def fun(x, a, b):
        return x + a + b

    key = function_key(functools.partial(fun, a=1, b=2))
    assert key == function_key(functools.partial(fun, a=1, b=2))
    assert key != function_key(functools.partial(fun, a=1, b=3))
    assert key != function_key(functools.partial(fun, a=1, b=2.0))
    assert is_by_identity(function_key(functools.partial(fun, a=[1])))


def test_bound_methods_of_one_object_are_equal_and_of_two_objects_are_not():
    class Model:
        def __call__(self, x):
            return x

        def apply(self, x):
            return x

    one, two = Model(), Model()
    assert function_key(one.apply) == function_key(one.apply)
    assert function_key(one.apply) != function_key(two.apply)
    assert function_key(one) == function_key(one) != function_key(two)


def test_captured_arrays_are_known_by_identity_and_kept_by_nobody():
    x, y = as_array(np.zeros(3)), as_array(np.zeros(3))

    def adding(c):
        return lambda v: v + c

    key = function_key(adding(x))
    assert key == function_key(adding(x)) != function_key(adding(y))
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None
    assert {key: 1}[key] == 1  # a key whose array died still finds itself


def test_a_dead_identity_equals_no_later_object():
    class Thing:
        pass

    thing = Thing()
    key = Identity(thing)
    assert key == Identity(thing)
    del thing
    gc.collect()
    assert all(key != Identity(other) for other in [Thing() for _ in range(50)])


def test_a_key_does_not_keep_its_function_alive():
    seen = []

    def fun(x):
        return seen

    key, ref = function_key(fun), weakref.ref(fun)
    del fun
    gc.collect()
    assert ref() is None and is_by_identity(key)


def test_recursive_functions_have_keys():
    def make():
        def fun(x, n):
            return x if n == 0 else fun(x, n - 1)

        return fun

    assert function_key(make()) == function_key(make())


def test_a_described_function_is_its_parts_and_a_copy_of_its_attributes_is_not():
    def make(inner):
        cache = {}

        def fun(x):
            return cache

        describe_function(fun, lambda: ("made", inner))
        return fun

    assert function_key(make(abs)) == function_key(make(abs)) != function_key(make(len))

    @functools.wraps(make(abs))
    def other(x):
        return x + 1

    assert function_key(other) != function_key(make(abs))
