"""Random programs of the whole public API: all ways to run them agree, as do their derivatives.

`tests/composition/test_random_programs.py` draws operations of `lax` on float32, int32 and bool,
within bounds that let it compare whole programs tightly. So it never met a special value, another
dtype, a weak type, a function of `xnp` or `nn`, a Jacobian beside its transpose, a rule whose
primal passes through a call, or two functions of equal code. Here all of these are drawn.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import xnp
from tests.nets import public_program_checks as checks
from tests.nets.cells import IN_FULL, seeds
from tests.nets.public_functions import NOT_DRAWN, forms_of, functions, takes_a_form
from tests.nets.public_program_wrappers import WRAPPERS
from tests.nets.public_programs import Call, Tried, draw
from xad._linear_call import linear_call
from xbatch import custom_vmap

_PARTS = 8
_ENOUGH = 20  # findings, after which a part ends


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_way_to_run_a_program_of_public_functions_gives_the_same(part):
    findings = []
    for k, seed in enumerate(seeds(range(48), part=part, parts=_PARTS)):
        try:
            checks.check_program(draw(seed), compiled=k % (2 if IN_FULL else 4) == 0)
        except Exception as error:
            error.add_note(f"the program is draw({seed})")
            findings.append(error)
            if len(findings) == _ENOUGH:
                break
    if findings:
        raise ExceptionGroup(f"{len(findings)} findings in {k + 1} programs", findings)


def test_the_size_of_the_net_is_that_of_the_namespaces():
    print(f"programs of {len(functions())} public functions")
    assert len(functions()) >= 740
    assert not IN_FULL or sum(len(forms_of(path)) for path in functions()) >= 3000
    without = [path for path in functions() if not takes_a_form(path)]
    assert not without, f"no form fits them: name them in NOT_DRAWN, or add a form: {without}"
    absent = [path for path in NOT_DRAWN if not hasattr(_module(path), path.rpartition(".")[2])]
    assert not absent, f"no such functions: {absent}"


def _module(path):
    *modules, _ = path.removeprefix("xnp.").split(".")
    return functools.reduce(getattr, modules, xnp)


# ------------------------------------------------------------------ the checks find what they shall

X = xnp.asarray(np.array([0.5, -1.5, 2.0], np.float32))


def _tried(function, monkeypatch, *operands):
    monkeypatch.setitem(functions(), "planted", function)
    call = Call("planted", "x y"[: 2 * len(operands) - 1], tuple(range(len(operands))), (0, 0))
    return Tried(call, list(operands), call(*operands), None, None)


def _wrong_in_reverse(x):
    return linear_call(lambda _, x: 2 * x, lambda _, x_bar: 3 * x_bar, (), x)


@custom_vmap
def _wrong_in_a_batch(x):
    return xnp.sin(x)


_wrong_in_a_batch.def_vmap(lambda size, mapped, x: (xnp.cos(x), True))


def test_a_wrong_batch_rule_is_found(monkeypatch):
    with pytest.raises(checks.Finding, match="of a batch"):
        checks.check_batched(_tried(_wrong_in_a_batch, monkeypatch, X))


def test_a_wrong_transpose_is_found(monkeypatch):
    with pytest.raises(checks.Finding, match="forward and reverse mode"):
        checks.check_derivatives(_tried(_wrong_in_reverse, monkeypatch, X))


def test_a_result_that_depends_on_compilation_is_found(monkeypatch):
    def looks(x):
        return xnp.sin(x) if isinstance(x, type(X)) else xnp.cos(x)

    with pytest.raises(checks.Finding, match="compiled"):
        checks.check_compiled(_tried(looks, monkeypatch, X))


def test_a_weak_type_that_is_lost_is_found(monkeypatch):
    def strong(x):
        return x if isinstance(x, type(X)) else xnp.asarray(x, np.float32)

    with pytest.raises(checks.Finding, match="the type is"):
        checks.check_compiled(_tried(strong, monkeypatch, xnp.asarray(0.5)))


def test_an_error_of_another_kind_is_found(monkeypatch):
    call = Call("xnp.sin", "x", (0,), (0, 0))
    with pytest.raises(checks.Finding, match="do not expect"):
        checks.check_refusals(Tried(call, [X], None, AttributeError("lower"), None))
    with pytest.raises(checks.Finding, match="only tracing refuses"):
        checks.check_refusals(Tried(call, [X], (X,), None, ValueError("no")))


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_gives_what_the_call_gives(name):
    call = Call("xnp.multiply", "x y", (0, 1), (0, 0))
    (found,) = WRAPPERS[name](call)(X, X)
    assert not checks.differ(found, X * X)


DTYPES_OF_MATRICES = [
    "bool",
    "int8",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


@pytest.mark.parametrize("dtype", DTYPES_OF_MATRICES)
def test_singular_matrices_of_every_dtype_are_told(dtype):
    regular = np.asarray(xnp.array([[1, 0, 1], [0, 1, 1], [0, 0, 1]], dtype))
    singular = np.asarray(xnp.array([[1, 0, 1], [1, 0, 1], [0, 1, 1]], dtype))
    assert not checks.lacks_rank(regular)
    assert checks.lacks_rank(singular)
    assert checks.lacks_rank(np.stack([regular, singular]))
