"""Scopes of equations in every nesting: each once, outermost first, backward where they are."""

import re

import pytest

import xstack
from xjit.lowering.modules import source_locations


def _custom_vjp(x, f, level):
    g = x.custom_vjp(f)
    g.defvjp(lambda v: x.vjp(f, v), lambda pullback, ct: pullback(ct))
    return g


def _custom_jvp(x, f, level):
    g = x.custom_jvp(f)
    g.defjvp(lambda primals, tangents: x.jvp(f, primals, tangents))
    return g


def _rule_with_grad(x, f, level):
    g = x.custom_vjp(f)
    derivative = x.jit(x.grad(lambda v: f(v).sum()))
    g.defvjp(lambda v: (f(v), v), lambda v, ct: (ct * derivative(v),))
    return g


NESTS = {
    "jit": lambda x, f, level: x.jit(f),
    "scan": lambda x, f, level: lambda v: x.lax.fori_loop(0, 3, lambda _, c: f(c), v),
    "cond": lambda x, f, level: lambda v: x.lax.cond(v.sum() > level, f, lambda w: 2 * w, v),
    "vmap": lambda x, f, level: lambda v: x.vmap(f)(v[None])[0],
    "checkpoint": lambda x, f, level: x.checkpoint(f),
    "custom_vjp": _custom_vjp,
    "custom_jvp": _custom_jvp,
    "rule_with_grad": _rule_with_grad,
}  # fmt: skip


def _nested(x, outer, inner):
    """Return a loss that computes sines in `base`, in two nestings with scopes of their own."""

    def in_scope(name, f):
        return x.named_scope(name)(f)

    base = in_scope("base", lambda v: x.numpy.sin(v) * v)
    inside = in_scope("inner", NESTS[inner](x, base, 0.0))
    outside = in_scope("outer", NESTS[outer](x, inside, 1.0))
    return in_scope("loss", lambda v: outside(v).sum())


def _sites(text):
    """Return (operation, whether it is of a backward pass, scopes) for each of a compiled text."""
    found = set()
    for name in set(re.findall(r'op_name="([^"]*)"', text)):
        operation = name.rpartition("/")[2]
        scopes = tuple(re.findall(r"\b(?:loss|outer|inner|base)\b", name.rpartition("/")[0]))
        if operation in {"sin", "cos"} and scopes:
            found.add((operation, "backward" in name or "transpose" in name, scopes))
    return found


def _compiled(f, v):
    with source_locations(True):
        return xstack.jit(f).lower(v).compile().as_text()


@pytest.mark.sampled(every=16, per="inner")
@pytest.mark.parametrize("outer", NESTS)
@pytest.mark.parametrize("inner", NESTS)
def test_each_operation_has_the_scopes_around_it_once(outer, inner):
    v = xstack.numpy.arange(3.0) + 1
    f = _nested(xstack, outer, inner)
    found = _sites(_compiled(xstack.value_and_grad(f), v))
    assert {operation for operation, _, _ in found} == {"sin", "cos"}
    assert {scopes for _, _, scopes in found} == {("loss", "outer", "inner", "base")}
    with xstack.named_scope("caller"):  # whose scope is not that of what was derived before
        again = _compiled(xstack.value_and_grad(f), v)
    assert _sites(again) == found
    assert "caller" not in again


@pytest.mark.sampled(every=32, per="inner")
@pytest.mark.parametrize("outer", NESTS)
@pytest.mark.parametrize("inner", NESTS)
def test_scopes_are_those_of_jax(outer, inner):
    jax = pytest.importorskip("jax")
    v = xstack.numpy.arange(3.0) + 1
    ours = _sites(_compiled(xstack.value_and_grad(_nested(xstack, outer, inner)), v))
    oracle = jax.jit(jax.value_and_grad(_nested(jax, outer, inner))).lower(v.__array__())
    theirs = _sites(oracle.compile().as_text())
    # JAX repeats those around a checkpoint, and computes all of a rule of custom_jvp forwards
    expected = {(kind, back, tuple(dict.fromkeys(names))) for kind, back, names in theirs}
    if "custom_jvp" in (inner, outer):
        ours, expected = [{(kind, names) for kind, _, names in x} for x in (ours, expected)]
    assert ours == expected


def test_a_program_differentiated_inside_of_a_rule_has_its_own_passes():
    np = xstack.numpy
    h = xstack.jit(lambda x: (np.log(x) * x + np.sin(x) * np.cos(x)).sum())

    @xstack.custom_vjp
    def f(x):
        return x.sum()

    f.defvjp(lambda x: (x.sum(), x), lambda x, ct: (ct * xstack.value_and_grad(h)(x)[1],))
    x = np.array([1.0, -1.0])
    assert xstack.debug.find_nan(xstack.grad(f), x).is_backward  # all of it: it is in a rule
    found = xstack.debug.find_nan(xstack.value_and_grad(h), x)
    assert (found.operation, found.is_backward) == ("log", False)
    again = xstack.debug.find_nan(xstack.grad(f), x)
    assert (again.operation, again.is_backward) == ("log", True)
