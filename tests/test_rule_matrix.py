"""Every primitive has every required rule and at least one row of samples; the tool shows them all.

The rows of `xnp` are checked by the tests of the packages that consume each kind of rule; the rows
of the other owners, few, are checked here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
import xpar
import xprim
import xrandom
from tests.sample_rows import AXIS_SIZE, COLLECTIVES, DERIVATIVES, PLACES, RANDOM, all_rows
from xad.testing import check_derivatives
from xbatch import vmap
from xbatch.testing import check_batch
from xjit.testing import check_lowering
from xprim import Undefined, extended_axes, from_numpy, get_primitive, kinds, primitives
from xprim.__main__ import import_owners, main
from xprim.testing import check_shape

import_owners()
_OWNERS = (xprim, xnp, xrandom, xad, xbatch, xjit, xpar)
_FOLDERS = tuple([str(Path(owner.__file__).parent) for owner in _OWNERS])
# Other tests of the same process may have registered primitives of their own.
OURS = [p for p in primitives() if p.defined_at.startswith(_FOLDERS)]
ROWS = all_rows()
ROOT = Path(__file__).resolve().parents[1]

# Rules that only make sense for programs; each needs a test of its own (a sample holds no program).
CALLS = {
    "checkpoint": "packages/xad/tests", "custom_jvp_call": "packages/xad/tests",
    "custom_vjp_call": "packages/xad/tests", "custom_vjp_linear": "packages/xad/tests",
    "custom_vmap_call": "packages/xbatch/tests", "jit": "packages/xjit/tests",
    "linear_call": "packages/xad/tests", "pmap": "packages/xpar/tests",
    "cond": "packages/xnp/tests",
    "random_gamma": "packages/xrandom/tests", "scan": "packages/xnp/tests",
    "while": "packages/xnp/tests", "reduce": "packages/xnp/tests",
}  # fmt: skip


@pytest.mark.parametrize("primitive", OURS, ids=str)
def test_a_primitive_has_a_rule_of_every_required_kind(primitive):
    for kind in kinds.values():
        if kind.required:
            rule = primitive.rules.get(kind.name)
            assert rule is not None, f"{primitive} has no rule of kind {kind.name}"
            if isinstance(rule, Undefined):
                assert len(rule.reason.split()) >= 3, f"{primitive}: {kind.name}: say why"


@pytest.mark.parametrize("primitive", OURS, ids=str)
def test_a_primitive_has_a_row_of_samples_or_holds_a_program(primitive):
    if primitive.call_like:
        return
    assert ROWS.get(primitive.name), (
        f"{primitive} has no row of samples; add one to the TABLE of its family"
    )


def test_no_row_is_of_a_primitive_that_does_not_exist():
    assert set(ROWS) <= {p.name for p in primitives()}


def test_the_required_kinds_are_the_six_of_the_core():
    required = [k.name for k in kinds.values() if k.required]
    assert required == ["shape", "numpy", "stablehlo", "jvp", "transpose", "batch"]
    assert all(kind.signature and kind.doc and kind.consumer for kind in kinds.values())


def test_the_matrix_prints_a_line_for_each_primitive_and_a_column_for_each_kind(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["primitive", *kinds]
    names = [line.split()[0] for line in lines[1:] if line and line.split()[0] != "+"]
    assert names == sorted(p.name for p in primitives())


@pytest.mark.parametrize("name", ["sin", "gather", "scan", "psum", "threefry2x32"])
def test_a_primitive_prints_each_rule_with_its_place(name, capsys):
    assert main([name]) == 0
    printed = capsys.readouterr().out
    for kind in kinds.values():
        assert kind.name in printed or not kind.required
    assert ".py:" in printed
    assert main(["no_such_primitive"]) == 2


# -------------------------------------------------------------- the rows that live with these tests

SMALL = [(name, row) for table in (RANDOM, DERIVATIVES) for name in table for row in table[name]]
IDS = [f"{name}-{k}" for k, (name, _) in enumerate(SMALL)]


@pytest.mark.parametrize(("name", "row"), SMALL, ids=IDS)
def test_rules_of_small_owners_agree_on_their_samples(name, row):
    check_shape(name, row)
    check_derivatives(name, row)
    if row.operands:
        check_batch(name, row)


@pytest.mark.parametrize("name", [*RANDOM, *DERIVATIVES])
def test_lowering_of_small_owners_agrees_with_numpy(name):
    check_lowering(name, *{**RANDOM, **DERIVATIVES}[name])


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_gives_what_its_shape_rule_says_under_vmap(name):
    primitive = get_primitive(name)
    for row in COLLECTIVES[name]:
        arrays = row.arrays()
        with extended_axes({"i": AXIS_SIZE}):
            (aval,) = primitive.infer(tuple(x.aval for x in arrays), dict(row.params))
        batches = [from_numpy(np.stack([np.asarray(x)] * AXIS_SIZE)) for x in arrays]
        mapped = vmap(
            lambda *xs, p=primitive, row=row: p.bind(*xs, **row.params)[0],
            axis_name="i", axis_size=AXIS_SIZE,
        )  # fmt: skip
        result = mapped(*batches)
        assert result.shape == (AXIS_SIZE, *aval.shape)
        assert result.dtype == aval.dtype


@pytest.mark.parametrize("name", PLACES)
def test_a_primitive_that_names_its_place_gives_what_its_shape_rule_says(name):
    for row in PLACES[name]:
        check_shape(name, row)


def test_every_primitive_that_holds_programs_is_named_with_the_place_of_its_tests():
    assert {p.name for p in OURS if p.call_like} <= set(CALLS)
    for name, folder in CALLS.items():
        assert any((ROOT / folder).glob("test_*.py")), f"{name}: {folder} has no tests"


def test_the_samples_cover_every_dtype_that_a_sum_supports():
    seen = {np.asarray(row.operands[0]).dtype.name for row in ROWS["add"]}
    assert seen >= {"bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32",
                    "float64", "complex64", "complex128"} - {"bool"}  # fmt: skip
