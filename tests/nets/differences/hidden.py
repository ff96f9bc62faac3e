"""What code reaches without naming it: order, names, layouts, registries. (See `table`.)"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import enum
import functools
import itertools
import operator
import os
import types
import typing
from typing import Any

import numpy as np

from tests.nets.differences.table import changed_in, defined, kind, pair, remade, unseen
from xstack import tree_util


@kind
def the_order_of_the_keywords_of_a_partial():
    def first(x, **numbers):
        return x * next(iter(numbers.values()))

    return pair(lambda c: functools.partial(first, **c), {"a": 2.0, "b": 3.0}, {"b": 3.0, "a": 2.0})


@kind
def the_order_of_a_frozenset_in_a_closure():
    return pair(lambda c: lambda x: x * (2 + next(iter(c))), frozenset([0, 8]), frozenset([8, 0]))


@kind
def the_order_of_a_set_in_the_code():
    def make(numbers):
        return defined(f"def f(x):\n for k in {numbers}: return x * (2 + k)")[0]

    return pair(make, "{0, 8}", "{8, 0}")


@kind
def the_order_of_a_list_of_a_set_in_the_code():
    def make(numbers):
        return defined(f"def f(x): return x * (2 + [*{numbers}][0])")[0]

    return pair(make, "{0, 8, 1}", "{8, 0, 1}")


@kind
def the_order_of_the_attributes_of_a_function():
    def make(names):
        def helper():
            pass

        for name in names:
            setattr(helper, name, len(name))
        return defined("def f(x): return x * [*helper.__dict__.values()][0]", helper=helper)[0]

    return pair(make, ("aa", "bbb"), ("bbb", "aa"))


@kind
def an_attribute_of_a_number_of_a_subclass():
    class Number(np.float64):
        pass

    def make(scale):
        number = Number(1.0)
        number.scale = scale
        return lambda x: x * number.scale

    return pair(make)


@kind
def a_method_of_a_number_of_a_subclass():
    class Number(np.float64):
        def scaled(self):
            return 2.0 * self

    number = Number(1.0)
    f, _ = defined("def f(x): return x * float(number.scaled())", number=number)
    yield remade(f)
    Number.scaled = lambda self: 3.0 * self
    yield remade(f)


@kind
def a_slot_of_the_base_of_a_frozen_dataclass():
    class Base:
        __slots__ = ("scale",)

    @dataclasses.dataclass(frozen=True)
    class Config(Base):
        n: int

    def make(scale):
        config = Config(1)
        object.__setattr__(config, "scale", scale)
        return lambda x: x * config.scale

    return pair(make)


@kind
def an_item_of_a_frozen_dataclass_that_is_a_dict():
    @dataclasses.dataclass(frozen=True)
    class Config(dict):
        n: int

    def make(scale):
        config = Config(1)
        config["scale"] = scale
        return lambda x: x * config["scale"]

    return pair(make)


@kind
def the_number_that_a_frozen_dataclass_is():
    @dataclasses.dataclass(frozen=True)
    class Number(float):
        n: float

    return pair(lambda c: (lambda number: lambda x: x * float(number))(Number(c)))


@kind
def the_number_that_a_frozen_dataclass_is_beside_its_fields():
    @dataclasses.dataclass(frozen=True)
    class Number(float):
        n: dataclasses.InitVar[float]

    return pair(lambda c: (lambda number: lambda x: x * float(number))(Number(c)))


@kind
def a_hidden_field_of_a_named_structure():
    def make(seconds):
        found = os.stat_result((1,) * 10, {"st_mtime": seconds})
        return lambda x: x * found.st_mtime

    return pair(make)


@kind
def a_slot_of_a_named_tuple():
    class Base:
        def __init_subclass__(cls):
            cls.scale = 2.0

    class Config(tuple, Base):
        pass

    config = Config((1,))
    f, _ = defined("def f(x): return x * config.scale", config=config)
    yield remade(f)
    Base.scale = Config.scale = 3.0
    yield remade(f)


@kind
def an_object_that_says_it_is_of_another_class():
    class Fake:
        __class__ = property(lambda self: np.float64)
        dtype = np.dtype("float64")

        def __init__(self, scale):
            self.scale = scale

        def tobytes(self):
            return b""

    return pair(lambda c: (lambda fake: lambda x: x * fake.scale)(Fake(c)))


@kind
def the_name_of_a_class():
    class Config:
        pass

    f, _ = defined("def f(x): return x * len(thing.__name__)", thing=Config)
    yield remade(f)
    Config.__name__ = "C"
    yield remade(f)


@kind
def the_qualified_name_of_a_function():
    def make(name):
        def helper():
            pass

        helper.__qualname__ = name
        return defined("def f(x): return x * len(helper.__qualname__)", helper=helper)[0]

    return pair(make, "ab", "abc")


@kind
def the_module_that_a_class_says_it_is_of():
    class Config:
        pass

    f, _ = defined("def f(x): return x * len(thing.__module__)", thing=Config)
    yield remade(f)
    Config.__module__ = "C"
    yield remade(f)


@kind
def the_bases_of_a_class():
    class One:
        pass

    class Two:
        pass

    class Config(One):
        pass

    f, _ = defined("def f(x): return x * (2 if issubclass(C, One) else 3)", C=Config, One=One)
    yield remade(f)
    Config.__bases__ = (Two,)
    yield remade(f)


@kind
def the_arguments_that_a_class_matches():
    class Pair:
        __match_args__ = ("a",)
        a, b = 2.0, 3.0

    source = "def f(x):\n match P():\n  case P(scale): return x * scale"
    f, _ = defined(source, P=Pair)
    yield remade(f)
    Pair.__match_args__ = ("b",)
    yield remade(f)


@kind
def the_metadata_of_a_field():
    notes = {"scale": 2.0}

    @dataclasses.dataclass(frozen=True)
    class Config:
        n: int = dataclasses.field(default=1, metadata=notes)

    source = "def f(x): return x * fields(C)[0].metadata['scale']"
    f, _ = defined(source, C=Config, fields=dataclasses.fields)
    yield remade(f)
    notes["scale"] = 3.0
    yield remade(f)


@unseen
def the_annotations_of_a_class_in_its_dict():
    class Config:
        a: list[float]

    f, _ = defined("def f(x): return x * C.__dict__['__annotations__']['a']", C=Config)
    for scale in (2.0, 3.0):
        Config.__annotations__["a"] = scale
        yield remade(f)


@unseen
def the_hints_of_a_class():
    class Config:
        a: int

    source = "def f(x): return x * (2 if hints(C)['a'] is int else 3)"
    f, _ = defined(source, C=Config, hints=typing.get_type_hints)
    yield remade(f)
    Config.__annotations__["a"] = float
    yield remade(f)


@unseen
def the_defaults_of_a_named_tuple():
    class Config(typing.NamedTuple):
        scale: float = 2.0

    f, _ = defined("def f(x): return x * C._field_defaults['scale']", C=Config)
    yield remade(f)
    Config._field_defaults["scale"] = 3.0
    yield remade(f)


def _behind_a_name(source: str, **space: Any):
    helper, helpers = defined("def g(): pass", "g", scale=2.0)
    f, _ = defined(source, g=helper, **space)
    yield remade(f)
    helpers["scale"] = 3.0
    yield remade(f)


@unseen
def a_global_of_a_function_asked_by_attrgetter():
    source = "def f(x): return x * attrgetter('__globals__')(g)['scale']"
    return _behind_a_name(source, attrgetter=operator.attrgetter)


@unseen
def a_global_of_a_function_asked_by_a_name_made_up():
    source = "def f(x): return x * attrgetter(''.join(['__glo', 'bals__']))(g)['scale']"
    return _behind_a_name(source, attrgetter=operator.attrgetter)


@unseen
def a_global_of_a_function_asked_by_methodcaller():
    source = "def f(x): return x * ask('__getattribute__', '__glo' + str() + 'bals__')(g)['scale']"
    return _behind_a_name(source, ask=operator.methodcaller)


@unseen
def a_global_of_a_function_asked_by_format():
    return _behind_a_name("def f(x): return x * float('{0.__globals__[scale]}'.format(g))")


@kind
def a_flattening_function():
    class Pair:
        pass

    space = {"n": 2}
    flatten, space = defined("def flatten(p): return (1.0,) * n, None", "flatten", **space)
    tree_util.register_pytree_node(Pair, flatten, lambda _, c: Pair())
    source = "def f(x): return x * len(leaves(P()))"
    f, _ = defined(source, P=Pair, leaves=tree_util.tree_leaves)
    yield remade(f)
    space["n"] = 3
    yield remade(f)


@kind
def a_registration_of_a_node():
    class Pair:
        pass

    source = "def f(x): return x * (1 + len(leaves(P())))"
    f, _ = defined(source, P=Pair, leaves=tree_util.tree_leaves)
    yield remade(f)
    tree_util.register_pytree_node(Pair, lambda p: ((1.0, 2.0), None), lambda _, c: Pair())
    yield remade(f)


@kind
def an_enumeration_with_a_dict_of_its_own():
    class Word(enum.Enum):
        A = 1

        def __init__(self, n):
            self.scale = [2.0]

    f, _ = defined("def f(x): return x * word.scale[0]", word=Word.A)
    yield remade(f)
    Word.A.scale[0] = 3.0
    yield remade(f)


@kind
def a_value_put_into_a_member():
    class Word(enum.Enum):
        A = 2.0
        B = 3.0

    f, _ = defined("def f(x): return x * W.A.value", W=Word)
    yield remade(f)
    Word.A._value_ = 3.0
    yield remade(f)


@unseen
def the_precision_of_decimal_numbers():
    f, _ = defined("def f(x): return x * float(D(2) / D(3))", D=decimal.Decimal)
    for precision in (1, 9):
        with decimal.localcontext() as context:
            context.prec = precision
            yield remade(f)


@unseen
def an_error_that_numpy_raises_or_not():
    source = (
        "def f(x):\n try: np.float32(1) / np.float32(0); return x * 2"
        "\n except FloatingPointError: return x * 3"
    )
    f, _ = defined(source)
    for divide in ("ignore", "raise"):
        with np.errstate(divide=divide):
            yield remade(f)


@unseen
def an_iterator():
    return pair(lambda c: (lambda counter: lambda x: x * next(counter))(itertools.count(c)), 2, 3)


@kind
def a_mapping_proxy():
    held = {"scale": 2.0}
    proxy = types.MappingProxyType(held)
    f, _ = defined("def f(x): return x * proxy['scale']", proxy=proxy)
    yield remade(f)
    held["scale"] = 3.0
    yield remade(f)


@kind
def a_simple_namespace():
    return changed_in({"s": types.SimpleNamespace(a=2.0)}, "def f(x): return x * s.a",
                      s=types.SimpleNamespace(a=3.0))  # fmt: skip


@kind
def a_byte_of_a_bytearray():
    data = bytearray([2])
    f, _ = defined("def f(x): return x * data[0]", data=data)
    yield remade(f)
    data[0] = 3
    yield remade(f)


@kind
def a_byte_seen_through_a_memoryview():
    data = bytearray([2])
    f, _ = defined("def f(x): return x * data[0]", data=memoryview(data))
    yield remade(f)
    data[0] = 3
    yield remade(f)


@kind
def an_inner_partial():
    def scaled(a, b, x):
        return x * a * b

    return pair(lambda c: functools.partial(functools.partial(scaled, c), 1.0))


@kind
def a_partial_of_a_bound_method():
    class Config:
        def __init__(self, scale):
            self.scale = scale

        def apply(self, x):
            return x * self.scale

    return pair(lambda c: functools.partial(Config(c).apply))


@kind
def a_partial_method():
    class Config:
        def apply(self, scale, x):
            return x * scale

        doubled = functools.partialmethod(apply, 2.0)

    f, _ = defined("def f(x): return C().doubled(x)", C=Config)
    yield remade(f)
    Config.doubled = functools.partialmethod(Config.apply, 3.0)
    yield remade(f)


@kind
def the_class_of_an_object():
    class One:
        scale = 2.0

    class Two:
        scale = 3.0

    thing = One()
    f, _ = defined("def f(x): return x * thing.scale", thing=thing)
    yield remade(f)
    thing.__class__ = Two
    yield remade(f)


@kind
def the_default_of_a_field():
    @dataclasses.dataclass
    class Config:
        scale: float = 2.0

    f, _ = defined("def f(x): return x * C().scale", C=Config)
    yield remade(f)
    Config.__init__.__defaults__ = (3.0,)
    yield remade(f)


@kind
def a_default_factory():
    held = [2.0]

    @dataclasses.dataclass(frozen=True)
    class Config:
        scale: float = dataclasses.field(default_factory=lambda: held[0])

    f, _ = defined("def f(x): return x * C().scale", C=Config)
    yield remade(f)
    held[0] = 3.0
    yield remade(f)


@kind
def a_context_manager_of_a_library_with_a_function_of_ours():
    @contextlib.contextmanager
    def manager():
        yield space["scale"]

    space = {"scale": 2.0}
    f, _ = defined("def f(x):\n with m() as scale: return x * scale", m=manager)
    yield remade(f)
    space["scale"] = 3.0
    yield remade(f)


@kind
def a_super_attribute():
    class Base:
        scale = 2.0

    class Config(Base):
        scale = 0.0

        def apply(self, x):
            return x * super().scale

    f, _ = defined("def f(x): return C().apply(x)", C=Config)
    yield remade(f)
    Base.scale = 3.0
    yield remade(f)


@kind
def an_attribute_behind_an_alias():
    class Box(typing.Generic[typing.TypeVar("T")]):
        scale = 2.0

    f, _ = defined("def f(x): return x * B.scale", B=Box[int])
    yield remade(f)
    Box.scale = 3.0
    yield remade(f)


@kind
def a_name_deleted_over_a_builtin():
    f, space = defined("def f(x): return x * len('ab')", len=lambda _: 3.0)
    yield remade(f)
    del space["len"]
    yield remade(f)


@kind
def the_builtins_of_a_function():
    source = "def f(x): return x * abs(-2.0)"
    yield remade(defined(source)[0])
    own = {"abs": lambda v: 3.0}
    yield remade(defined(source, __builtins__=own)[0])


@kind
def a_module_that_was_loaded_again():
    module = types.ModuleType("loaded_again")
    exec("scale = 2.0\ndef helper(): return scale", vars(module))
    f, _ = defined("def f(x): return x * m.helper()", m=module)
    yield remade(f)
    exec("scale = 3.0\ndef helper(): return scale", vars(module))
    yield remade(f)
