"""What rules show of their residuals, as trees that can be edited, beside the oracle."""

import functools

import numpy as np
import pytest

import xstack
from xad.backward_logs import CondSum
from xad.pull_backs import StructuredResiduals, structure_residuals
from xstack import lax, numpy as xnp
from xstack.experimental.hijax import VJPHiPrimitive

X, Y = np.float32(3), np.float32(5)


@functools.cache
def product(lib, has_forward):
    """Return x * y, whose backward rule shows y and sin(x); y_bar is by the opaque x."""
    if lib is xstack:
        base = VJPHiPrimitive
    else:
        base = pytest.importorskip("jax.experimental.hijax").HiPrim

    class Product(base):
        def __init__(self, x, y):
            self.in_avals, self.out_aval, self.params = (x, y), x, {}
            super().__init__()

        def expand(self, x, y):
            return x * y

        def vjp_fwd(self, nzs_in, x, y):
            return self(x, y), (x,), True, {"y": y, "sine": lib.numpy.sin(x)}

        def vjp_bwd(self, res, shown, ct, x_accum, y_accum):
            x_accum.accum(ct * shown["y"])
            y_accum.accum(ct * res[0])

        if has_forward:

            def jvp(self, primals, tangents):
                (x, y), (x_dot, y_dot) = primals, tangents
                return self(x, y), x * y_dot + y * x_dot

    return lambda x, y: Product(lib.typeof(x), lib.typeof(y))(x, y)


def in_two_calls(lib, p):
    return lambda x, y: p(lib.numpy.sin(x), y) + p(y, x)


def in_a_compiled_call(lib, p):
    return lambda x, y: lib.jit(p)(x, y) * 2


def in_nested_compiled_calls(lib, p):
    return lambda x, y: lib.jit(lambda x, y: lib.jit(p)(x, y) + p(x, x))(x, y) + p(x, y)


def of_computed_operands(lib, p):
    return lambda x, y: lib.jit(lambda x, y: p(lib.numpy.sin(x), lib.numpy.cos(y)))(x, y) * y


def in_a_scan(lib, p):
    def step(x, each):
        return p(x, each), None

    return lambda x, y: lib.lax.scan(step, x, lib.numpy.stack([y, y + 1, y]))[0]


def in_a_compiled_branch(lib, p):
    def choose(x, y):
        return lib.lax.cond(x > 0, p, lambda x, y: x, x, y)

    return lambda x, y: lib.jit(choose)(x, y)


PROGRAMS = [lambda lib, p: p, in_two_calls, in_a_compiled_call, in_nested_compiled_calls,
            of_computed_operands, in_a_scan, in_a_compiled_branch]  # fmt: skip
NAMES = ["alone", *[program.__name__ for program in PROGRAMS[1:]]]


def _plain(entry):
    """Return an entry without the empty lists of calls that show nothing, and with NumPy arrays."""
    if isinstance(entry, list):
        return [each for each in map(_plain, entry) if each != []]
    if isinstance(entry, dict):
        return {key: _plain(entry[key]) for key in sorted(entry)}
    if hasattr(entry, "branches"):
        return {"index": int(entry.index), "branches": [_plain(b) for b in entry.branches]}
    return np.asarray(entry)


def _doubled(lib, pull_back):
    return lib.tree.map(lambda x: x * 2, pull_back.structured_residuals)


def shown_and_edited(lib, program, has_forward):
    f = program(lib, product(lib, has_forward))
    out, pull_back = lib.vjp(f, lib.numpy.asarray(X), lib.numpy.asarray(Y))
    shown, before = _plain(pull_back.structured_residuals), pull_back(out)
    # an operation with both rules keeps its operands for the forward one
    needed = [] if has_forward else [type(each).__name__ for each in pull_back.args_res]
    replaced = pull_back.replace(structured_residuals=_doubled(lib, pull_back))(out)
    through = lib.jit(lambda pull_back, ct: pull_back(ct))
    pull_back.structured_residuals = _doubled(lib, pull_back)
    return shown, before, replaced, through(pull_back, out), _names(needed)


def _names(needed):
    return [name if name.startswith("Not") else "array" for name in needed]


@pytest.mark.parametrize("has_forward", [False, True], ids=["reverse rule", "both rules"])
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_structured_residuals_are_the_oracles(program, has_forward):
    jax = pytest.importorskip("jax", minversion="0.12")
    own, other = [shown_and_edited(lib, program, has_forward) for lib in (xstack, jax)]
    assert xstack.tree.structure(own) == xstack.tree.structure(other)
    for x, y in zip(xstack.tree.leaves(own), xstack.tree.leaves(other), strict=True):
        if isinstance(x, str | int):
            assert x == y
        else:
            np.testing.assert_allclose(x, y, rtol=1e-6)  # sines of two libraries, 1 ulp each


@pytest.mark.parametrize("has_forward", [False, True], ids=["reverse rule", "both rules"])
def test_editing_what_is_shown_leaves_the_same_array_elsewhere_alone(has_forward):
    """The operand is an argument, an opaque residual and a structured one."""
    p = product(xstack, has_forward)
    for f in (p, xstack.jit(p)):
        x = xnp.float32(3)
        _, pull_back = xstack.vjp(lambda x, f=f: f(x, x) * x, x)
        assert float(pull_back(1.0)[0]) == 27  # (x^3)' = 3 x^2
        pull_back.structured_residuals = _doubled(xstack, pull_back)
        assert float(pull_back(1.0)[0]) == 36  # one of the three factors is doubled
        assert [float(a) for a in pull_back.args_res] == [3.0]


def test_batches_of_structured_residuals():
    p = product(xstack, False)
    pull_back = xstack.vmap(lambda x, y: xstack.vjp(p, x, y)[1], (0, None))(xnp.arange(3.0), Y)
    ((entry),) = pull_back.structured_residuals
    np.testing.assert_allclose(entry["sine"], np.sin(np.arange(3.0)), rtol=1e-6)  # 1 ulp
    x_bar, _ = xstack.vmap(lambda pull_back: pull_back(1.0))(pull_back)
    assert x_bar.tolist() == [5, 5, 5]


def test_integers_among_them_can_be_edited():
    @xstack.custom_vjp
    def pick(x):
        return x[1]

    def backward(residuals, ct):
        return (xnp.zeros(3).at[residuals.tree["i"]].set(ct),)

    pick.defvjp(lambda x: (x[1], structure_residuals({"i": 1})), backward)
    _, pull_back = xstack.vjp(pick, xnp.arange(3.0))
    assert pull_back(1.0)[0].tolist() == [0, 1, 0]
    pull_back.structured_residuals[0]["i"] = 2
    assert pull_back(1.0)[0].tolist() == [0, 0, 1]


def test_what_a_checkpoint_computes_again_is_not_listed():
    _, pull_back = xstack.vjp(xstack.checkpoint(product(xstack, False)), X, Y)
    assert pull_back.structured_residuals == []
    assert [float(ct) for ct in pull_back(1.0)] == [5, 3]


def test_a_branch_that_is_chosen_while_evaluating_shows_its_rules():
    _, pull_back = xstack.vjp(lambda x: lax.cond(x > 0, lambda x: product(xstack, False)(x, x),
                                                 lambda x: x, x), X)  # fmt: skip
    assert not any(isinstance(each, CondSum) for each in pull_back.structured_residuals)
    assert float(pull_back.structured_residuals[0]["y"]) == 3


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda entries: [], r"structured_residuals: their structure is fixed"),
        (lambda entries: [{"y": Y}], r"structured_residuals: their structure is fixed"),
        (lambda entries: [{**entries[0], "y": xnp.ones(3)}],
         r"(?s)the value at \[0\]\['y'\] is of another type.*float32\[3\].*float32\[\]"),
        (lambda entries: [{**entries[0], "y": 1}], r"(?s)at \[0\]\['y'\] is of another type"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(edit, text):
    _, pull_back = xstack.vjp(product(xstack, False), X, Y)
    pull_back.structured_residuals = edit(pull_back.structured_residuals)
    with pytest.raises(ValueError, match=text):
        pull_back(1.0)


def test_the_mark_shows_its_tree():
    assert repr(StructuredResiduals({"a": 1})) == "StructuredResiduals({'a': 1})"
