"""Outside of `jit`, a function of members sees values: prints, branches, conversions, errors."""

import io
import pdb
import sys

import numpy as np
import pytest

import xnp
from xbatch import vmap
from xjit import block_until_ready, debug, devices, jit
from xjit.callbacks.functions import effects_barrier
from xnp.refs import new_ref
from xpar import P, axis_index, make_mesh, pmean, psum, shard_map
from xprim.errors import ConcretizationTypeError, TracerBoolConversionError

MESH = make_mesh((2, 2), ("x", "y"))
X = np.arange(16, dtype=np.float32).reshape(4, 4)
W = np.ones(2, np.float32)


def show(x):
    sys.stdout.write(f"{x}\n")


def members(fun, in_specs=None, out_specs=None, **options):
    specs = {"in_specs": in_specs or (P(), P("x", "y")), "out_specs": out_specs or P("x", "y")}
    return shard_map(fun, mesh=MESH, **specs, **options)


def test_a_print_shows_each_block_with_its_mesh_coordinates(capsys):
    members(lambda w, x: show(x) or x)(W, X)
    shown = capsys.readouterr().out
    assert shown.startswith("float32[2,2]{V:(x,y)} at mesh coordinates (x, y):\n(0, 0):\n[[0. 1.]")
    assert "(1, 0):\n[[ 8.  9.]\n [12. 13.]]" in shown and "(1, 1)" in shown


def test_a_print_shows_what_all_share_once(capsys):
    members(lambda w, x: show(psum(x.sum(), ("x", "y"))) or x)(W, X)
    assert capsys.readouterr().out == "float32[], the same at all mesh coordinates:\n120.0\n"


def test_every_call_of_a_function_that_looks_prints_anew(capsys):
    mapped = members(lambda w, x: show(x.sum()) or x)
    for k in (1, 2, 2):
        mapped(W, k * X)
    shown = capsys.readouterr().out.split("float32[]{V:(x,y)} at mesh coordinates (x, y):\n")
    assert [part.splitlines()[0] for part in shown[1:]] == ["(0, 0): 10.0"] + ["(0, 0): 20.0"] * 2


def test_a_function_that_does_not_look_is_traced_once():
    count = []
    mapped = members(lambda w, x: count.append(1) or w[0] * x)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(mapped(W, k * X), k * X)
    assert len(count) == 1


def test_branches_by_what_all_share_are_taken_anew_by_each_call():
    def member(w, x):
        return x if psum(x.sum(), ("x", "y")) > 0 else -2 * x

    mapped = members(member)
    for x, wanted in ((X, X), (-X, 2 * X), (X, X)):
        np.testing.assert_array_equal(mapped(W, x), wanted)
    with pytest.raises(TracerBoolConversionError):
        jit(mapped)(W, X)
    with pytest.raises(TracerBoolConversionError):
        vmap(mapped, (None, 0))(W, X[None])


def test_numbers_and_arrays_of_what_all_share_are_known():
    seen = []

    def member(w, x):
        mean = pmean(x, ("x", "y"))
        seen.extend([float(mean[0, 0]), np.asarray(mean), int(w.size * w[0]), mean.tolist()])
        return x

    members(member)(W, X)
    block = X.reshape(2, 2, 2, 2).mean((0, 2))
    assert seen[0] == block[0, 0] and seen[2] == 2 and seen[3] == block.tolist()
    np.testing.assert_array_equal(seen[1], block)


def test_one_value_of_what_varies_is_an_error_that_names_the_members():
    with pytest.raises(ValueError, match="each member holds its own") as caught:
        members(lambda w, x: x if x.sum() > 11 else -x)(W, X)
    assert "(0, 0): False" in str(caught.value) and "(0, 1): True" in str(caught.value)


def test_without_types_every_value_counts_as_the_members_own(capsys):
    members(lambda w, x: show(w.sum()) or x, check_vma=False)(W, X)
    assert "(0, 0): 2.0\n(0, 1): 2.0" in capsys.readouterr().out


def test_an_error_of_the_function_says_for_whom_it_ran():
    def member(w, x):
        if psum(x.sum(), ("x", "y")) > 0:
            raise ArithmeticError("the sum is positive")
        return x

    with pytest.raises(ArithmeticError, match="positive") as caught:
        members(member)(W, X)
    (note,) = caught.value.__notes__
    assert note.startswith("while member ran, once for all members of Mesh('x': 2, 'y': 2")


def test_an_error_names_the_members_also_where_no_value_was_looked_at():
    def member(w, x):
        raise ArithmeticError("before anything else")

    with pytest.raises(ArithmeticError, match="before") as caught:
        members(member)(W, X)
    (note,) = caught.value.__notes__
    assert note.startswith("while member ran, once for all members of Mesh('x': 2, 'y': 2")


def test_on_part_of_the_axes_blocks_are_those_of_these_axes(capsys):
    mapped = shard_map(lambda x: show(x.sum(0)) or x, mesh=MESH, in_specs=P("x"),
                       out_specs=P("x"), axis_names={"x"})  # fmt: skip
    np.testing.assert_array_equal(mapped(X), X)
    shown = capsys.readouterr().out
    assert "at mesh coordinates (x):\n(0,): [ 4.  6.  8. 10.]\n(1,): [20. 22. 24. 26.]" in shown


def test_values_that_are_captured_and_numbers_of_members_are_known(capsys):
    extra = xnp.float32(10)
    members(lambda w, x: show(extra * axis_index("x")) or x)(W, X)
    assert capsys.readouterr().out.splitlines()[1:] == ["(0,): 0.0", "(1,): 10.0"]


def test_what_jit_stages_inside_is_not_known():
    with pytest.raises(TracerBoolConversionError):
        members(lambda w, x: jit(lambda a: a if a[0] > 0 else -a)(w)[0] * x)(W, X)
    with pytest.raises(ConcretizationTypeError):
        jit(members(lambda w, x: float(w[0]) * x))(W, X)


def test_prints_and_breakpoints_of_compiled_programs_name_the_member(capsys):
    out = io.StringIO()

    def member(w, x):
        debug.print("{member}: {x}", x=x.sum())
        debug.breakpoint(backend=(lambda: "c", out), num_frames=1)
        return x

    block_until_ready(jit(members(member))(W, X))
    effects_barrier()
    sums = X.reshape(2, 2, 2, 2).sum((1, 3))
    wanted = [f"(x, y) = ({i}, {j}): {sums[i, j]}" for i in range(2) for j in range(2)]
    assert sorted(capsys.readouterr().out.splitlines()) == wanted
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert f"in member, member (x, y) = ({i}, {j})" in out.getvalue()


@pytest.mark.parametrize("wraps", [lambda f: f, jit, lambda f: jit(jit(f))])
def test_a_line_of_members_begins_with_the_place_of_its_member(wraps, capsys):
    def member(w, x):
        debug.print("sum {x:.1f} of {}", x.shape, x=x.sum())
        debug.print("total {}", psum(x.sum(), ("x", "y")))
        return x

    block_until_ready(wraps(members(member))(W, X))
    effects_barrier()
    sums = X.reshape(2, 2, 2, 2).sum((1, 3))
    places = [(i, j) for i in range(2) for j in range(2)]
    wanted = [f"(x, y) = ({i}, {j}): sum {sums[i, j]:.1f} of (2, 2)" for i, j in places]
    wanted += [f"(x, y) = ({i}, {j}): total {X.sum()}" for i, j in places]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(wanted)


def test_a_record_of_members_begins_with_the_place_of_its_member(caplog):
    caplog.set_level("INFO", "xjit")
    block_until_ready(jit(members(lambda w, x: (debug.log("here"), x)[1]))(W, X))
    effects_barrier()
    wanted = [f"(x, y) = ({i}, {j}): here" for i in range(2) for j in range(2)]
    assert sorted(record.getMessage() for record in caplog.records) == wanted


def test_a_print_of_one_member_alone_has_the_text_alone(capsys):
    mesh = make_mesh((1,), ("x",), devices=devices("cpu")[:1])
    run = shard_map(lambda x: (debug.print("{}", x), x)[1], mesh=mesh, in_specs=P(), out_specs=P())
    jit(run)(1)
    effects_barrier()
    assert capsys.readouterr().out == "1\n"


def test_a_print_outside_of_members_has_none_to_name(capsys):
    jit(lambda x: debug.print("{member} {}", x))(1)
    effects_barrier()
    assert capsys.readouterr().out == "() 1\n"


def test_pdb_steps_through_a_function_of_members_and_prints_blocks():
    commands, printed = io.StringIO("p x\nn\nn\np y.sum()\nc\n"), io.StringIO()
    debugger = pdb.Pdb(stdin=commands, stdout=printed, nosigint=True, readrc=False)
    debugger.prompt = ""

    def member(w, x):
        debugger.set_trace()
        y = x * 2
        return y + 1

    tracing = sys.gettrace()
    try:
        found = members(member)(W, X)
    finally:
        sys.settrace(tracing)
    np.testing.assert_array_equal(found, 2 * X + 1)
    text = printed.getvalue()
    assert "y = x * 2" in text and "return y + 1" in text
    assert "(1, 0):\n[[ 8.  9.]\n [12. 13.]]" in text  # x at one of the mesh coordinates
    assert "(0, 0): 20.0" in text, text  # y.sum()


def test_a_print_of_examples_of_vmap_shows_their_batch(capsys):
    found = members(lambda w, x: vmap(vmap(lambda e: show(e) or 2 * e))(x))(W, X)
    np.testing.assert_array_equal(found, 2 * X)
    shown = capsys.readouterr().out
    assert shown.startswith("BatchTracer<f32[]{V:(x,y)}>(batch axis of size 2 at position 0 of ")
    assert "at mesh coordinates (x, y):\n(0, 0):\n[[0. 1.]" in shown


def test_a_print_of_what_all_share_shows_it_within_vmap(capsys):
    members(lambda w, x: vmap(lambda e: show(w.sum()) or e)(x))(W, X)
    assert capsys.readouterr().out == "float32[], the same at all mesh coordinates:\n2.0\n"


def test_a_print_after_effects_and_of_a_reference_shows_values(capsys):
    def member(w, x):
        debug.print("before {}", w.sum())
        total = new_ref(xnp.zeros_like(x))
        total[...] += x
        show(total[...] + 1)
        return x

    members(member)(W, X)
    effects_barrier()
    shown = capsys.readouterr().out
    assert "(0, 0):\n[[1. 2.]" in shown and "before 2.0" in shown
