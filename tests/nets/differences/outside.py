"""The world outside: environment, clocks, random numbers, options. (See `table`.)"""

from __future__ import annotations

import contextvars
import io
import os
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.nets.differences.table import (
    Maker,
    defined,
    remade,
    unseen,
    with_attribute,
)
from xprim import config


@unseen
def an_environment_variable():
    f, _ = defined("def f(x): return x * float(os.environ['SCALE_OF_THE_NET'])", os=os)
    for scale in ("2.0", "3.0"):
        os.environ["SCALE_OF_THE_NET"] = scale
        yield remade(f)
    del os.environ["SCALE_OF_THE_NET"]


@unseen
def an_environment_variable_by_getenv():
    f, _ = defined("def f(x): return x * float(os.getenv('SCALE_OF_THE_NET'))", os=os)
    for scale in ("2.0", "3.0"):
        os.environ["SCALE_OF_THE_NET"] = scale
        yield remade(f)
    del os.environ["SCALE_OF_THE_NET"]


def _seeded(seed: Callable[[int], Any], source: str, **namespace: Any) -> Iterator[Maker]:
    f, _ = defined(source, **namespace)
    for number in (0, 1):

        def make(number=number):
            seed(number)
            return remade(f)()

        yield make


@unseen
def random_numbers_of_numpy():
    return _seeded(np.random.seed, "def f(x): return x * float(np.random.normal())")


@unseen
def random_numbers_of_numpy_by_name():
    return _seeded(np.random.seed, "def f(x): return x * float(n())", n=np.random.normal)


@unseen
def random_numbers_of_the_standard_library():
    return _seeded(random.seed, "def f(x): return x * random.random()", random=random)


@unseen
def random_numbers_of_the_standard_library_by_name():
    return _seeded(random.seed, "def f(x): return x * gauss()", gauss=lambda: random.gauss(0, 1))


@unseen
def a_generator_of_random_numbers():
    holder = [np.random.default_rng(0)]

    def seed(number):
        holder[0] = np.random.default_rng(number)

    return _seeded(seed, "def f(x): return x * rng[0].normal()", rng=holder)


@unseen
def a_file():
    file = io.StringIO()

    def seed(number):
        file.seek(0)
        file.write(f"{number + 2}.0\n")
        file.seek(0)

    return _seeded(seed, "def f(x): return x * float(file.readline())", file=file)


@unseen
def the_working_directory():
    before = os.getcwd()
    f, _ = defined("def f(x): return x * float(len(os.getcwd()))", os=os)
    yield remade(f)
    os.chdir("/")
    try:
        yield remade(f)
    finally:
        os.chdir(before)


@unseen
def the_options_of_printing():
    f, _ = defined("def f(x): return x * float(np.get_printoptions()['precision'])")
    for precision in (2, 3):
        with np.printoptions(precision=precision):
            yield remade(f)


@unseen
def the_handling_of_floating_point_errors():
    f, _ = defined("def f(x): return x * (2.0 if np.geterr()['over'] == 'warn' else 3.0)")
    yield remade(f)
    with np.errstate(over="ignore"):
        yield remade(f)


@unseen
def a_context_variable():
    variable = contextvars.ContextVar("scale", default=2.0)
    f, _ = defined("def f(x): return x * variable.get()", variable=variable)
    yield remade(f)
    token = variable.set(3.0)
    yield remade(f)
    variable.reset(token)


@unseen
def a_value_of_the_thread():
    local = threading.local()
    local.scale = 2.0
    return with_attribute(local, "def f(x): return x * thing.scale")


@unseen
def what_a_weak_reference_refers_to():
    class Thing:
        pass

    thing = Thing()
    f, _ = defined("def f(x): return x * (3.0 if ref() is None else 2.0)", ref=weakref.ref(thing))
    yield remade(f)
    del thing
    yield remade(f)


@unseen
def an_option_of_this_library():
    f, _ = defined("def f(x): return x * (3.0 if config.log_compiles.value else 2.0)",
                   config=config)  # fmt: skip
    for flag in (False, True):
        with config.log_compiles(flag):
            yield remade(f)
