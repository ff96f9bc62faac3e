"""Every primitive has every required rule and at least one row of samples; the tool shows them all.

The rows of `xnp` are checked by the tests of the packages that consume each kind of rule; the rows
of the other owners, few, are checked here.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xjit.checkify._checkify
import xjit.dispatch.eager_backend
import xnp.testing.samples
import xpar
import xprim
import xprim.kernels
import xrandom
from tests.nets.cells import COMPILER_OPTIONS, IN_FULL, spread
from tests.sample_rows import (
    AXIS_SIZE,
    COLLECTIVES,
    DERIVATIVES,
    PLACES,
    RANDOM,
    SHARDINGS,
    all_rows,
)
from xad.testing import check_derivatives
from xbatch import vmap
from xbatch.testing import check_batch
from xjit.testing import check_lowering
from xnp.testing.samples.values import (
    LEFT_OUT,
    MAIN_OPERAND,
    OWN_ROWS_ONLY,
    edges_of,
    lacking_edges,
    shape_rule_accepts,
)
from xprim import Undefined, extended_axes, from_numpy, get_primitive, kinds, primitives
from xprim.__main__ import import_owners, main
from xprim.testing import EXACT, check_shape

import_owners()
_OWNERS = (xprim, xnp, xrandom, xad, xbatch, xjit, xpar)
_FOLDERS = tuple([str(Path(owner.__file__).parent) for owner in _OWNERS])
# Other tests of the same process may have registered primitives of their own.
OURS = [p for p in primitives() if p.defined_at.startswith(_FOLDERS)]
ROWS = all_rows()
ROOT = Path(__file__).resolve().parents[1]

# Rules that only make sense for programs; each needs a test of its own (a sample holds no program).
CALLS = {
    "attention": "tests/nets", "attention_cotangent": "tests/nets",
    "attention_tangent": "tests/nets", "cofactors_tangent": "packages/xad/tests",
    "auto_axes": "tests/composition", "check": "tests/composition",
    "dimension_value": "tests/composition",
    "callback": "packages/xjit/tests", "call_exported": "packages/xjit/tests",
    "composite": "tests/composition",
    "custom_partitioning": "tests/composition",
    "checkpoint": "packages/xad/tests", "custom_jvp_call": "packages/xad/tests",
    "custom_vjp_call": "packages/xad/tests", "custom_vjp_linear": "packages/xad/tests",
    "custom_vmap_call": "packages/xbatch/tests", "jit": "packages/xjit/tests",
    "linear_call": "packages/xad/tests", "loop_tangents": "tests/composition",
    "pmap": "packages/xpar/tests",
    "shard_map": "packages/xpar/tests",
    "cond": "packages/xnp/tests", "custom_linear_solve": "tests/composition",
    "random_gamma": "packages/xrandom/tests", "scan": "packages/xnp/tests",
    "value_outside": "tests/composition",
    "while": "packages/xnp/tests", "reduce": "packages/xnp/tests",
}  # fmt: skip

# A sample holds NumPy arrays, which are of no extended dtype, and no functions of other languages;
# and it has a result.
WITHOUT_ROWS = {
    "backward_log": "tests/composition", "dce_sink": "tests/composition",
    "wrap": "packages/xprim/tests", "unwrap": "packages/xprim/tests",
    "ffi_call": "tests/composition", "inspect_sharding": "packages/xpar/tests",
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
    if primitive.call_like or primitive.name in WITHOUT_ROWS:
        return
    assert ROWS.get(primitive.name), (
        f"{primitive} has no row of samples; add one to the TABLE of its family"
    )


def test_no_row_is_of_a_primitive_that_does_not_exist():
    assert set(ROWS) <= {p.name for p in primitives()}


@pytest.mark.parametrize("kind", kinds.values(), ids=lambda kind: kind.name)
def test_each_kind_is_asked_for_by_the_package_that_is_said_to_consume_it(kind):
    declaring = ROOT / "packages/xprim/src/xprim/rules.py"
    for consumer in re.findall(r"\w+", kind.consumer):
        sources = (ROOT / "packages" / consumer / "src").rglob("*.py")
        text = "".join([path.read_text() for path in sources if path != declaring])
        assert any(f'"{name}"' in text for name in kind.parts or [kind.name]), consumer


def test_every_part_of_a_kind_is_asked_for():
    declaring = ("xprim/rules.py", "xprim/calls.py")
    paths = ROOT.glob("packages/*/src/**/*.py")
    sources = [path.read_text() for path in paths if not any(map(path.match, declaring))]
    for kind in kinds.values():
        for part in kind.parts:
            assert any(f'"{part}"' in text for text in sources), f"{kind.name}: {part}"


def test_every_primitive_with_rules_about_programs_says_where_its_programs_are():
    # these two are of derivative rules, which may run what a param holds beside programs
    parts = kinds["programs"].parts.keys() - {"linearize", "sums_later"}
    for primitive in OURS:
        if not parts.isdisjoint(primitive.rules):
            assert "programs" in primitive.rules, primitive
        if primitive.call_like and "programs" in primitive.rules:
            assert "effects" in primitive.rules, primitive


def test_the_required_kinds_are_the_six_of_the_core():
    required = [k.name for k in kinds.values() if k.required]
    assert required == ["shape", "numpy", "stablehlo", "jvp", "transpose", "batch"]
    assert all(kind.signature and kind.doc and kind.consumer for kind in kinds.values())


def test_the_table_of_kinds_in_the_decision_is_that_of_the_registry():
    page = (ROOT / "docs" / "decisions" / "0031-fourteen-kinds-of-rules.md").read_text()
    table = page.partition("| kind | of | parts |")[2].partition("\n\n")[0]
    rows = {}
    for line in table.splitlines()[2:]:
        names, _, parts = line.strip("|").split("|")
        found = set(re.findall(r"`(\w+)`", parts))
        rows |= dict.fromkeys(re.findall(r"`(\w+)`", names), found)
    rows["programs"].discard("effects")  # which follows, and is a kind of its own
    own = {name: set(kind.parts) for name, kind in kinds.items() if name != "series"}
    assert rows == own and len(own) == 14


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


@pytest.mark.parametrize("name", sorted(xnp.testing.samples.TABLE))
def test_the_numpy_rule_gives_what_the_shape_rule_says(name):
    if get_primitive(name).call_like:
        return  # its rule takes Arrays; the tests of xnp run it
    for row in ROWS[name]:
        check_shape(name, row)


# -------------------------------------------------------------- the rows that live with these tests

SMALL = [
    (name, row)
    for table in (RANDOM, DERIVATIVES, SHARDINGS)
    for name in table
    for row in table[name]
]
IDS = [f"{name}-{k}" for k, (name, _) in enumerate(SMALL)]


@pytest.mark.parametrize(("name", "row"), SMALL, ids=IDS)
def test_rules_of_small_owners_agree_on_their_samples(name, row):
    check_shape(name, row)
    with xprim.config.discrete_derivatives("allow"):
        check_derivatives(name, row)
    if row.operands:
        check_batch(name, row)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [*RANDOM, *DERIVATIVES, *SHARDINGS])
def test_lowering_of_small_owners_agrees_with_numpy(name):
    """An ordinary run tries a third of the rows of each choice of parameters, not optimised."""
    rows = {**RANDOM, **DERIVATIVES, **SHARDINGS}[name]
    if IN_FULL:
        check_lowering(name, *rows)
        return
    choices = [repr({k: v for k, v in row.params.items() if k != "shape"}) for row in rows]
    some = [rows[k] for k in spread(name, choices, 3)]
    check_lowering(name, *some, compiler_options=COMPILER_OPTIONS)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_gives_what_its_shape_rule_says_under_vmap(name):
    primitive = get_primitive(name)
    for row in COLLECTIVES[name]:
        arrays = row.arrays()
        with extended_axes({"i": AXIS_SIZE}):
            (aval,) = primitive.infer(tuple(x.aval for x in arrays), dict(row.params))
        batches = [from_numpy(np.stack([x.to_host()] * AXIS_SIZE), canonical=False) for x in arrays]
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
    for name, folder in {**CALLS, **WITHOUT_ROWS}.items():
        assert any((ROOT / folder).glob("test_*.py")), f"{name}: {folder} has no tests"


# --------------------------------------------------------------------- what the rows must hold

# Written here once more, so that a dtype that falls out of the lists of the samples is missed.
FORMATS = """
bool int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64 float4_e2m1fn
float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
float8_e8m0fnu bfloat16 float16 float32 float64 complex64 complex128
"""
EDGES = {
    "float32": {"nan", "inf", "-inf", "-0.0", "denormal", "max"},
    "float8_e4m3fn": {"nan", "-0.0", "denormal", "max"},
    "complex64": {"nan", "inf", "-inf", "-0.0", "denormal", "max"},
    "int8": {"min", "max"}, "uint64": {"min", "max"}, "bool": set(),
}  # fmt: skip
_SHOWN_ELSEWHERE = (*RANDOM, *PLACES, *WITHOUT_ROWS)
SHOWN = [p.name for p in OURS if not p.call_like and p.name not in _SHOWN_ELSEWHERE
         and any(row.operands for row in ROWS[p.name])]  # fmt: skip

# {primitive: reason}: no operand of rank 0, or none without elements.
_AXIS = "it works along an axis"
_MATRIX = "it takes matrices"
NO_SCALARS = {
    **dict.fromkeys("argmax argmin cumlogsumexp cummax cummin cumprod cumsum top_k sort "
                    "concatenate partition split gather scatter scatter_add scatter_mul "
                    "scatter_min scatter_max fft all_gather all_gather_invariant "
                    "all_gather_reduced all_to_all ragged_exchange reduce_scatter".split(), _AXIS),
    **dict.fromkeys("block_values cholesky cholesky_update cofactors couplings det eig eigh geqrf "
                    "eigenvalue_tangents eigh_tridiagonal hessenberg on_diagonal rotations "
                    "householder_product lu lu_pivots_to_permutation ormqr qr schur solve svd "
                    "symmetric_product triangular_solve tridiagonal "
                    "tridiagonal_solve undetermined".split(), _MATRIX),
    "conv_general_dilated": "its operands have a batch and a feature dimension",
    "saved_value": "it holds what a policy keeps, and looks at nothing",
}  # fmt: skip
NOT_EMPTY = {"saved_value": NO_SCALARS["saved_value"]}


def _accepts(name, operands, params):
    with extended_axes({"i": AXIS_SIZE}):
        return shape_rule_accepts(name, operands, params)


def _variants(name, dtype):
    """Yield rows with the operands of the main dtype, and params that name it, in another one."""
    for row in ROWS[name]:
        main = row.operands[MAIN_OPERAND.get(name, 0)] if row.operands else None
        if main is not None and main.size:
            old = main.dtype
            operands = [np.zeros(x.shape, dtype) if x.dtype == old else x for x in row.operands]
            yield operands, row.params
            yield operands, {k: dtype if isinstance(v, np.dtype) and v == old else v
                             for k, v in row.params.items()}  # fmt: skip
            return


@pytest.mark.parametrize("name", SHOWN)
def test_the_rows_of_a_primitive_hold_every_dtype_that_it_takes_and_the_edges_of_each(name):
    own_only = name in OWN_ROWS_ONLY
    for dtype in [xprim.dtypes.dtype(f) for f in FORMATS.split()]:
        lacking = lacking_edges(name, ROWS[name], dtype)
        if lacking is not None and any(_accepts(name, *v) for v in _variants(name, dtype)):
            shown = any(_main_dtype(name, row) == dtype for row in ROWS[name])
            assert shown or own_only, f"{name} takes {dtype}, and no row of samples has it"
            assert not lacking or own_only, f"{name}: no row of {dtype} has {lacking}"


def _main_dtype(name, row):
    main = MAIN_OPERAND.get(name, 0)
    return row.operands[main].dtype if len(row.operands) > main else None


@pytest.mark.parametrize("name", SHOWN)
def test_the_rows_of_a_primitive_hold_a_scalar_and_an_empty_operand(name):
    operands = [np.asarray(x) for row in ROWS[name] for x in row.operands]
    assert any(x.ndim == 0 for x in operands) != (name in NO_SCALARS), "scalars"
    assert any(x.size == 0 for x in operands) != (name in NOT_EMPTY), "empty operands"


@pytest.mark.parametrize("dtype", EDGES)
def test_the_edges_of_a_dtype_are_all_that_it_has(dtype):
    assert edges_of(xprim.dtypes.dtype(dtype)) == EDGES[dtype]


def test_conversions_are_shown_from_every_dtype_and_to_every_dtype():
    rows = ROWS["convert_element_type"]
    every = {xprim.dtypes.dtype(f) for f in FORMATS.split()}
    assert {row.operands[0].dtype for row in rows} == every
    assert {row.params["new_dtype"] for row in rows} == every


@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_add", "dynamic_slice",
                                  "dynamic_update_slice", "select_n"])  # fmt: skip
def test_indices_of_the_rows_are_negative_and_out_of_range_too(name):
    found = set()
    for row in ROWS[name]:
        main = MAIN_OPERAND.get(name, 0)
        bound = max((*row.operands[main].shape, len(row.operands) - 1))
        for k, x in enumerate(row.operands):
            if k != main and x.dtype == np.int32:
                found |= {"negative"} if (x < 0).any() else set()
                found |= {"beyond"} if (x >= bound).any() else set()
    assert found == {"negative", "beyond"}


def test_what_the_rows_leave_out_is_said_with_a_reason_and_exists():
    edges = {*EDGES["float32"], *EDGES["int8"], "complex edges"}
    known = edges | {d.name for d in xprim.dtypes.ALL}
    for name, reasons in LEFT_OUT.items():
        assert name in ROWS
        assert set(reasons) <= known, name
        assert all(len(reason.split()) >= 4 for reason in reasons.values()), name


def test_every_tolerance_says_why():
    for name, rows in ROWS.items():
        for row in rows:
            if row.tolerance != EXACT:
                assert len(row.tolerance.reason.split()) >= 3, f"{name}: {row.label()}"


def test_a_dtype_or_an_edge_that_falls_out_of_the_rows_is_missed():
    """The test above is itself tried: on the rows of `abs` without some of them."""
    rows, bfloat16 = ROWS["abs"], xprim.dtypes.bfloat16
    assert lacking_edges("abs", rows, bfloat16) is None
    without = [row for row in rows if row.operands[0].dtype != bfloat16]
    assert lacking_edges("abs", without, bfloat16) == EDGES["float32"]
    finite = [row for row in rows if np.isfinite(row.operands[0].astype(np.complex128)).all()]
    assert {"nan", "inf"} <= lacking_edges("abs", finite, bfloat16)


# --- what only the owner of a primitive knows -----------------------------------------------------


def _nodes(node):
    """Yield the nodes of a module, but for names of its members, of attributes and of options."""
    targets = [t.id for t in getattr(node, "targets", ()) if isinstance(t, ast.Name)]
    is_option = isinstance(node, ast.Call) and ast.unparse(node.func) == "config.Option"
    if is_option or {"__all__", "__slots__"}.intersection(targets):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child)


@pytest.mark.parametrize(
    "owner", [xprim.kernels, xjit.dispatch.eager_backend, xjit.checkify._checkify.check_bounds]
)
def test_who_makes_kernels_or_checks_bounds_knows_no_primitive_by_name(owner):
    names = {p.name for p in primitives()}
    texts = [
        node.value
        for node in _nodes(ast.parse(inspect.getsource(owner)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    lists_of_names = [t for t in texts if t.split() and names.issuperset(t.split())]
    assert lists_of_names == []
