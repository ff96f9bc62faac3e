"""The net for programs that are taken for others: functions that differ in one reachable thing.

Each kind of difference (`functions_that_differ`) goes through each transformation that keeps
programs by function: what comes out before and after the change is what the plain functions give.
Once with fresh function objects, and once with one object that is transformed anew.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import types
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import tests.nets.differences  # noqa: F401 - fills the table
import xstack.numpy as xnp
from tests.nets.cells import IN_FULL, drawn
from tests.nets.differences.table import (
    KINDS,
    NOT_SEEN_IN_ONE_OBJECT,
    Function,
    Maker,
    defined,
)
from xprim.function_keys import function_key, is_by_identity
from xstack import (
    checkpoint,
    custom_jvp,
    grad,
    jit,
    jvp,
    lax,
    linearize,
    pmap,
    tree_util,
    vjp,
    vmap,
)

X = 1.5


def _through_branches(f: Function) -> Function:
    return lambda x: lax.cond(x > 0, f, lambda v: v, x)


def _static(f: Function) -> Function:
    return lambda x: jit(_apply, static_argnums=0)(f, x)


def _apply(f: Function, x: Any) -> Any:
    return f(x)


TRANSFORMATIONS: dict[str, Callable[[Function], Function]] = {
    "jit": jit,
    "jit of jit": lambda f: jit(jit(f)),
    "jit of a lambda": lambda f: jit(lambda x: f(x)),
    "jit of a partial": lambda f: jit(functools.partial(f)),
    "a static argument of jit": _static,
    "a partial among the arguments of jit": lambda f: (
        lambda x: jit(_apply)(tree_util.Partial(f), x)
    ),
    "ahead of time": lambda f: lambda x: jit(f).lower(x).compile()(x),
    "vmap of jit": lambda f: lambda x: vmap(jit(f))(xnp.stack([x, x]))[0],
    "jit of vmap": lambda f: lambda x: jit(vmap(f))(xnp.stack([x, x]))[0],
    "checkpoint": checkpoint,
    "jit of checkpoint": lambda f: jit(checkpoint(f)),
    "pmap": lambda f: lambda x: pmap(f)(xnp.stack([x]))[0],
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, 2)[1][1],
    "the body of scan": lambda f: (
        lambda x: lax.scan(lambda c, v: (c, f(v)), 0.0, xnp.stack([x]))[1][0]
    ),
    "a bare body": lambda f: lambda x: lax.map(f, xnp.stack([x]))[0],
    "cond": _through_branches,
    "a bare branch": lambda f: lambda x: lax.switch(0, [f], x),
    "while_loop": lambda f: (
        lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]
    ),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 1, lambda _, v: f(v), x),
}
# These give the derivative, which for `x * number` is the number.
DERIVATIVES: dict[str, Callable[[Function], Function]] = {
    "grad of jit": lambda f: grad(jit(f)),
    "jit of grad": lambda f: jit(grad(f)),
    "grad of checkpoint": lambda f: grad(checkpoint(f)),
    "vjp of jit": lambda f: lambda x: vjp(jit(f), x)[1](1.0)[0],
    "jvp of jit": lambda f: lambda x: jvp(jit(f), (x,), (1.0,))[1],
    "linearize of jit": lambda f: lambda x: linearize(jit(f), x)[1](1.0),
    "grad of scan": lambda f: grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0]),
    "grad of cond": lambda f: grad(_through_branches(f)),
}


def _changes_one_function(name: str) -> bool:
    """Return whether a kind changes what one function object gives (rather than makes another)."""
    if name in NOT_SEEN_IN_ONE_OBJECT:
        return False
    f, results = None, []
    for make in KINDS[name]():
        f = f or make()
        results.append(float(f(1.0)))
    return results[0] != results[1]


CHANGED = [name for name in KINDS if _changes_one_function(name)]
CELLS = [
    (name, through, way)
    for name in KINDS
    for through in (*TRANSFORMATIONS, *DERIVATIVES)
    for way in ("fresh functions", "one function")
    if (way == "fresh functions" or name in CHANGED)
]


def test_the_net_is_as_wide_as_it_says() -> None:
    print(f"{len(KINDS)} kinds, {len(CELLS)} cells")
    assert len(KINDS) >= 150
    assert len(CELLS) >= 6000


@pytest.mark.parametrize("name", KINDS)
def test_functions_that_differ_in_one_thing_have_different_keys(name: str) -> None:
    functions, keys = [], []  # a key keeps no function alive
    for make in KINDS[name]():
        functions.append(make())
        keys.append(function_key(functions[-1]))
    assert len(keys) == 2
    assert keys[0] != keys[1] or is_by_identity(keys[0])


@pytest.mark.fuzz
@pytest.mark.parametrize("cell", drawn(CELLS, 125), ids=" | ".join)
def test_functions_that_differ_in_one_thing_give_what_the_plain_ones_give(
    cell: tuple[str, str, str],
) -> None:
    name, through, way = cell
    transform = TRANSFORMATIONS.get(through) or DERIVATIVES[through]
    x = xnp.asarray(X)
    expected, found, f = [], [], None
    for make in KINDS[name]():
        if f is None or way == "fresh functions":
            f = make()
        number = _number(make)
        expected.append(number if through in DERIVATIVES else X * number)
        found.append(float(transform(_seeded(make, f, way))(x)))
        found_again = float(transform(_seeded(make, f, way))(x))
        assert found_again == found[-1]
    assert expected[0] != expected[1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def _number(make: Maker) -> float:
    """Return what the plain function multiplies by."""
    return float(make()(1.0))


def _seeded(make: Maker, f: Function, way: str) -> Function:
    """Return the function to transform; a maker may bring the world to where it was."""
    return make() if way == "fresh functions" else f


# --- drawn paths: how the function that differs is reached ---------------------------------------


def _in_a_module(f: Function) -> Function:
    module = types.ModuleType("user_module_on_the_way")
    module.g = f  # type: ignore[attr-defined]
    return defined("def f(x): return m.g(x)", m=module)[0]  # type: ignore[no-any-return]


def _in_a_class(f: Function) -> Function:
    config = type("Config", (), {"g": staticmethod(f)})
    return lambda x: config.g(x)


def _in_a_property(f: Function) -> Function:
    config = type("Config", (), {"g": property(lambda self: f)})
    return lambda x: config().g(x)


def _in_a_default(f: Function) -> Function:
    def g(x: Any, h: Function = f) -> Any:
        return h(x)

    return g


def _wrapped(f: Function) -> Function:
    @functools.wraps(f)
    def g(x: Any) -> Any:
        return f(x)

    return g


def _in_an_attribute(f: Function) -> Function:
    def g(x: Any) -> Any:
        return g.inner(x)  # type: ignore[attr-defined]

    g.inner = f  # type: ignore[attr-defined]
    return g


@dataclasses.dataclass(frozen=True)
class Holder:
    inner: Any

    def apply(self, x: Any) -> Any:
        return self.inner(x)


class Pair(NamedTuple):
    inner: Any
    number: int


WAYS: dict[str, Callable[[Function], Function]] = {
    "a closure": lambda f: lambda x: f(x),
    "a closure with a tuple": lambda f: (lambda t: lambda x: t[0](x))((f, 1)),
    "a closure with a list": lambda f: (lambda t: lambda x: t[0](x))([f, 1]),
    "a closure with a dict": lambda f: (lambda t: lambda x: t["f"](x))({"f": f}),
    "a closure with a named tuple": lambda f: (lambda t: lambda x: t.inner(x))(Pair(f, 1)),
    "a method of a frozen dataclass": lambda f: Holder(f).apply,
    "a global": lambda f: defined("def f(x): return g(x)", g=f)[0],
    "a global of a helper": lambda f: defined("def h(x): return g(x)\ndef f(x): return h(x)", g=f)[
        0
    ],
    "a module": _in_a_module,
    "a static method": _in_a_class,
    "a property": _in_a_property,
    "a default": _in_a_default,
    "functools.wraps": _wrapped,
    "an attribute of the function": _in_an_attribute,
    "a partial": lambda f: functools.partial(_apply, f),
    "a nested function": lambda f: lambda x: (lambda y: f(y))(x),
    "a comprehension": lambda f: lambda x: [f(y) for y in (x,)][0],  # noqa: RUF015
    "jit": jit,
    "checkpoint": checkpoint,
    "a branch": _through_branches,
    "vmap": lambda f: lambda x: vmap(f)(xnp.stack([x]))[0],
}
# Kinds that show the change through whatever holds the function.
SHOWN = sorted(set(KINDS) - {"the_string_behind_a_bound_builtin"})


@pytest.mark.fuzz
@hypothesis.settings(
    max_examples=4000 if IN_FULL else 150, deadline=None, derandomize=True, database=None
)
@hypothesis.given(
    name=st.sampled_from(SHOWN),
    ways=st.lists(st.sampled_from(sorted(WAYS)), min_size=1, max_size=3),
    through=st.sampled_from(sorted(TRANSFORMATIONS)),
)
def test_a_difference_is_seen_however_the_function_is_reached(
    name: str, ways: list[str], through: str
) -> None:
    x = xnp.asarray(X)
    expected, found = [], []
    for make in KINDS[name]():
        expected.append(X * _number(make))
        f = make()
        for way in ways:
            f = WAYS[way](f)
        found.append(float(TRANSFORMATIONS[through](f)(x)))
    assert expected[0] != expected[1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# --- functions that are equal share --------------------------------------------------------------

# Lists and dicts may change; the classes and modules are made anew each time.
CONSTANT_WAYS = sorted(set(WAYS) - {
    "a closure with a list", "a closure with a dict", "a static method", "a property",
})  # fmt: skip


def _printing(scale: float) -> Function:
    def f(x: Any) -> Any:
        print("traced")
        return x * scale + math.pi * np.float32(2) + len("ab")

    return f


@pytest.mark.parametrize("through", ["jit", "jit of grad", "scan", "a bare body"])
@pytest.mark.parametrize("way", ["nothing", *CONSTANT_WAYS])
def test_functions_that_are_equal_are_traced_once(
    way: str, through: str, capsys: pytest.CaptureFixture[str]
) -> None:
    transform = TRANSFORMATIONS.get(through) or DERIVATIVES[through]
    x = xnp.asarray(X)
    times = []
    for _ in range(4):
        transform(WAYS.get(way, lambda f: f)(_printing(2.25)))(x)
        times.append(capsys.readouterr().out.count("traced"))
    assert times[1:] == [0, 0, 0]


# --- static values, and what a call reaches through its arguments --------------------------------


class P(NamedTuple):
    value: Any


@dataclasses.dataclass(frozen=True)
class D:
    value: Any


class Word(enum.StrEnum):
    A = "a"


VALUES: list[list[Any]] = [
    [1, 1.0, True, np.float32(1), np.int32(1)],
    [0.0, -0.0, 0, False],
    ["a", Word.A],
    [2, 3],
    [float("nan"), 1.0],
]
HOLDERS: dict[str, Callable[[Any], Any]] = {
    "bare": lambda v: v,
    "a named tuple": P,
    "a frozen dataclass": D,
    "a tuple": lambda v: (v,),
    "a named tuple in a tuple": lambda v: (P(v), 1),
    "a tuple in a dataclass": lambda v: D((v,)),
    "a frozenset": lambda v: frozenset([v]),
}


def _tell(value: Any, x: Any) -> Any:
    """Return x times a number that tells values apart that compare equal."""
    while isinstance(value, tuple | frozenset | D):
        value = value.value if isinstance(value, D) else next(iter(value))
    return x * (zlib.crc32(f"{type(value)} {value!r}".encode()) % 1000 + 1)


def _nondiff(c: Any, x: Any) -> Any:
    f = custom_jvp(_tell, nondiff_argnums=(0,))
    f.defjvp(lambda v, p, t: (_tell(v, *p), _tell(v, *t)))
    return f(c, x)


_JITTED_BY_NUMBER = jit(_tell, static_argnums=0)
_JITTED_BY_NAME = jit(_tell, static_argnames="value")
_PMAPPED = pmap(_tell, static_broadcasted_argnums=0)
_CHECKPOINTED = checkpoint(_tell, static_argnums=0)
PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "static_argnums": _JITTED_BY_NUMBER,
    "static_argnums of a fresh jit": lambda c, x: jit(_tell, static_argnums=0)(c, x),
    "static_argnames": lambda c, x: _JITTED_BY_NAME(value=c, x=x),
    "static_argnums under vmap": lambda c, x: vmap(
        lambda v: _JITTED_BY_NUMBER(c, v))(xnp.stack([x]))[0],
    "static_argnums under grad": lambda c, x: x * grad(lambda v: _JITTED_BY_NUMBER(c, v))(x),
    "ahead of time": lambda c, x: _JITTED_BY_NUMBER.lower(c, x).compile()(x),
    "pmap": lambda c, x: _PMAPPED(c, xnp.stack([x]))[0],
    "checkpoint": _CHECKPOINTED,
    "jit of checkpoint": lambda c, x: jit(lambda v: _CHECKPOINTED(c, v))(x),
    "nondiff_argnums": _nondiff,
    "a closure": lambda c, x: jit(lambda v: _tell(c, v))(x),
    "a default": lambda c, x: jit(lambda v, d=c: _tell(d, v), static_argnums=1)(x),
    "a partial": lambda c, x: jit(functools.partial(_tell, c))(x),
    "a body of scan": lambda c, x: lax.scan(lambda s, _: (s, _tell(c, s)), x, None, 1)[1][0],
    "a branch": lambda c, x: lax.cond(True, lambda v: _tell(c, v), lambda v: v, x),
}  # fmt: skip
STATIC_CELLS = [
    (place, holder, k) for place in PLACES for holder in HOLDERS for k in range(len(VALUES))
]


@pytest.mark.fuzz
@pytest.mark.parametrize("cell", drawn(STATIC_CELLS, 40), ids=str)
def test_static_values_that_only_compare_equal_are_different(cell: tuple[str, str, int]) -> None:
    place, holder, k = cell
    x = xnp.asarray(X)
    for value in (*VALUES[k], *VALUES[k]):
        held = HOLDERS[holder](value)
        assert float(PLACES[place](held, x)) == float(_tell(held, x)), repr(held)


@pytest.mark.parametrize("way", ["a node", "the metadata", "a static value"])
def test_a_global_of_a_method_of_an_argument_is_seen_by_a_fresh_jit(way: str) -> None:
    source = (
        "class A:\n def __init__(self, x): self.x = x\n def scaled(self): return self.x * scale"
    )
    cls, space = defined(source, "A", scale=2.0)
    if way == "a node":
        tree_util.register_pytree_node(cls, lambda a: ((a.x,), None), lambda _, c: cls(*c))
        call = lambda: jit(lambda a: a.scaled())(cls(1.0))  # noqa: E731
    elif way == "the metadata":
        call = lambda: jit(lambda p: p(1.0))(  # noqa: E731
            tree_util.Partial(lambda x: cls(x).scaled())
        )
    else:
        f = lambda a, x: x * a.scaled()  # noqa: E731
        call = lambda: jit(f, static_argnums=0)(cls(1.0), 1.0)  # noqa: E731
    assert float(call()) == 2.0
    space["scale"] = 3.0
    assert float(call()) == 3.0


def test_metadata_that_only_compares_equal_is_different() -> None:
    @functools.partial(tree_util.register_dataclass, data_fields=["x"], meta_fields=["c"])
    @dataclasses.dataclass
    class C:
        x: Any
        c: Any

    f = jit(lambda a: _tell(a.c, a.x))
    for hold in HOLDERS.values():
        for values in VALUES:
            for value in (*values, *values):
                argument = C(xnp.asarray(X), hold(value))
                assert float(f(argument)) == float(_tell(argument.c, X)), repr(argument)


def test_params_of_operations_that_only_compare_equal_are_different() -> None:
    zeros, far = xnp.zeros(4), xnp.asarray([9])
    for fill in (0.0, -0.0, 0.0, -0.0):
        f = jit(lambda i, fill=fill: zeros.at[i].get(mode="fill", fill_value=fill))
        assert bool(np.signbit(np.asarray(f(far)))[0]) == bool(np.signbit(fill))

    def both(i: Any) -> Any:  # equal but for the param: not one common subexpression
        return [zeros.at[i].get(mode="fill", fill_value=fill) for fill in (0.0, -0.0)]

    assert [bool(np.signbit(np.asarray(y))[0]) for y in jit(both)(far)] == [False, True]
