"""Equations that repeat another one are written by its line: the text is that of the rules."""

import numpy as np
import pytest

import xnp
from xjit import jit
from xjit.lowering import modules
from xnp import lax
from xprim import Primitive, shaped_array, undefined

X = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4)
N = np.arange(1, 13, dtype=np.int32).reshape(3, 4)


def _literals(x):
    for _ in range(8):
        x = x * 1.5 + x * -0.0 + x * 0.0
    return x


def _same_operand_twice(x):
    for _ in range(8):
        x = x * x + xnp.tanh(x) * x
    return x


def _params_alone_differ(x):
    for _ in range(4):
        x = x + lax.cumsum(x, axis=0) + lax.cumsum(x, axis=1) + lax.cumsum(x, axis=0, reverse=True)
    return x


def _shapes_and_products(x):
    for _ in range(6):
        x = xnp.tanh(x @ x.T @ x + x[0]) + xnp.sum(x, axis=1, keepdims=True)
    return x


def _integers(n):
    for _ in range(8):
        n = n // 3 + n % 5 + (n << 1) + n // n
    return n


def _conversions(x):
    for _ in range(6):
        x = x.astype(np.float16).astype(np.float32) + x.astype(np.int8) + (x > 0.5)
    return x


PROGRAMS = [
    (_literals, X), (_same_operand_twice, X), (_params_alone_differ, X),
    (_shapes_and_products, X), (_integers, N), (_conversions, X),
]  # fmt: skip


@pytest.mark.parametrize(("fun", "x"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_the_text_is_that_of_the_rules(fun, x, monkeypatch):
    by_form = jit(lambda x: fun(x)).lower(x).as_text()
    monkeypatch.setattr(modules, "_forms_of", lambda builder, jaxpr: None)
    assert jit(lambda x: fun(x)).lower(x).as_text() == by_form


def test_most_equations_of_a_long_program_are_written_by_form(monkeypatch):
    written = []
    rule = modules._write_equation
    monkeypatch.setattr(
        modules,
        "_write_equation",
        lambda b, eqn, names: (written.append(eqn), rule(b, eqn, names))[1],
    )

    def loss(x):
        for _ in range(50):
            x = xnp.tanh(xnp.dot(x, x.T) @ x + x[0])
        return x

    traced = jit(loss).trace(X)
    traced.lower()
    assert 0 < len(written) < len(traced.jaxpr.eqns) / 8


def test_params_of_equal_value_and_another_type_or_sign_are_not_alike():
    seen = []

    def stablehlo(b, operands, avals_in, avals_out, *, value):
        seen.append(value)
        return b.op("stablehlo.abs", operands, avals_in, avals_out)

    def gap():
        return undefined("a primitive of this test")

    typed = Primitive(
        "test_forms_typed", shape=lambda x, value: (shaped_array(x.shape, x.dtype),),
        numpy=lambda x, value: (np.abs(x),), stablehlo=stablehlo, jvp=gap(), transpose=gap(),
        batch=gap(),
    )  # fmt: skip
    values = [1, 1.0, True, 0.0, -0.0, np.float32(0), np.int32(0), (1,), (True,), (0.0,), (-0.0,),
              (np.float32(0),), (np.int32(0),), "a", None]  # fmt: skip

    def fun(x):
        for _ in range(3):  # in turn, so that each comes when the others are known
            for value in values:
                x = typed.bind(x, value=value)[0]
        return x

    jit(fun).lower(X)
    first = [(type(v), repr(v)) for v in values]
    assert [(type(v), repr(v)) for v in seen[: len(values)]] == first
    # of NumPy's scalars and what holds them, each is written anew or by a form of its own
    assert {(type(v), repr(v)) for v in seen} == set(first)
    assert len(seen) >= 2 * len(values)


def test_a_form_takes_names_in_order_and_once():
    assert modules._form("%5 = stablehlo.add %3, %4 : f32", "%5", ["%3", "%4"]) == (
        "%s = stablehlo.add %s, %s : f32"
    )
    assert modules._form("%5 = f(%3, %9) {a = 50 % 3}", "%5", ["%3"]) == (
        "%s = f(%s, %%9) {a = 50 %% 3}"
    )
    assert not modules._form("%5 = stablehlo.add %4, %3 : f32", "%5", ["%3", "%4"])
    assert not modules._form("%5 = stablehlo.add %3, %3 : f32", "%5", ["%3", "%3"])
    assert not modules._form("%5 = stablehlo.abs %12 : f32", "%5", ["%1"])
    assert modules._form("%15 = f(%1)", "%15", ["%1"]) == "%s = f(%s)"
