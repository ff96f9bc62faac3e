import functools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from xbatch import vmap
from xpar import collectives as ours, pmap
from xprim import Linear, as_array, eval_closed, get_primitive, make_jaxpr, state

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(0)
GROUPS = [[0, 2], [3, 1]]


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def call(name, *args, **kwargs):
    """Return a function of the namespace of collectives and of the values of one member."""
    return lambda lax, x: getattr(lax, name)(x, "i", *args, **kwargs)


CASES = {
    "psum": (call("psum"), (4, 3)),
    "psum of bool": (lambda lax, x: lax.psum(x > 0, "i"), (4, 3)),
    "pmean": (call("pmean"), (4, 3)),
    "pmax": (call("pmax"), (4, 3)),
    "pmin": (call("pmin"), (4, 3)),
    "all_gather": (call("all_gather"), (4, 3)),
    "all_gather axis 1": (call("all_gather", axis=1), (4, 3, 2)),
    "all_gather axis -1": (call("all_gather", axis=-1), (4, 3, 2)),
    "all_gather tiled": (call("all_gather", axis=1, tiled=True), (4, 3, 2)),
    "all_gather scalars": (call("all_gather"), (4,)),
    "psum_scatter": (call("psum_scatter"), (4, 4, 2)),
    "psum_scatter dim 1": (call("psum_scatter", scatter_dimension=1), (4, 2, 4)),
    "psum_scatter tiled": (call("psum_scatter", scatter_dimension=1, tiled=True), (4, 2, 8)),
    "all_to_all 0 1": (call("all_to_all", 0, 1), (4, 4, 2)),
    "all_to_all 1 0": (call("all_to_all", 1, 0), (4, 2, 4, 3)),
    "all_to_all 1 1": (call("all_to_all", 1, 1), (4, 2, 4)),
    "all_to_all 0 2": (call("all_to_all", 0, 2), (4, 4, 2, 3)),
    "all_to_all tiled": (call("all_to_all", 0, 1, tiled=True), (4, 8, 3)),
    "all_to_all tiled back": (call("all_to_all", 1, 0, tiled=True), (4, 3, 8)),
    "ppermute": (call("ppermute", [(0, 1), (1, 3), (3, 0), (2, 2)]), (4, 3)),
    "pshuffle": (call("pshuffle", [1, 2, 3, 0]), (4, 3)),
    "pswapaxes": (call("pswapaxes", 0), (4, 4, 2)),
    "pbroadcast": (call("pbroadcast", 2), (4, 3)),
    "axis_index": (lambda lax, x: lax.axis_index("i"), (4,)),
    "tree": (lambda lax, x: lax.psum({"a": x, "b": [x[0]]}, "i")["b"][0], (4, 3)),
}


def ours_compare(x):
    return get_primitive("gt").bind(x, as_array(np.float32(0)))[0]


@pytest.fixture(autouse=True)
def _operators(monkeypatch):
    """Let `x > 0` and `x[0]` work in the cases above where the array functions are not loaded."""
    from xprim import Array

    if Array.__gt__ is object.__gt__:
        monkeypatch.setattr(Array, "__gt__", lambda x, y: ours_compare(x), raising=False)
    if not hasattr(Array, "__getitem__"):
        from xnp.primitives.table import reshape, slice_dim

        monkeypatch.setattr(
            Array, "__getitem__", lambda x, i: reshape(slice_dim(x, 0, i, i + 1), x.shape[1:]),
            raising=False,
        )  # fmt: skip


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("in_axis", [0, -1])
def test_collectives_under_vmap_equal_the_oracle(name, in_axis):
    fun, shape = CASES[name]
    x = floats(*shape)
    value = np.moveaxis(x, 0, in_axis)
    found = vmap(functools.partial(fun, ours), axis_name="i", in_axes=in_axis)(value)
    want = jax.vmap(functools.partial(fun, jax.lax), axis_name="i", in_axes=in_axis)(value)
    assert found.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if "axis_index" not in n])
@pytest.mark.parametrize("outer_dim", [0, 1])
def test_another_vmap_passes_through_a_collective(name, outer_dim):
    fun, shape = CASES[name]
    x = floats(*shape[:outer_dim], 2, *shape[outer_dim:])
    inner = vmap(functools.partial(fun, ours), axis_name="i")
    want = np.stack([np.asarray(inner(np.take(x, k, outer_dim))) for k in range(2)])
    found = vmap(inner, in_axes=outer_dim)(x)
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if "axis_index" not in n])
def test_a_collective_over_the_outer_axis_inside_another_vmap(name):
    fun, shape = CASES[name]
    x = floats(2, *shape)
    want = np.stack([
        np.asarray(vmap(functools.partial(fun, ours), axis_name="i")(x[k])) for k in range(2)
    ])  # fmt: skip
    for place in (0, 1, len(shape) - 1):
        value = np.moveaxis(x, 0, 1)  # the members first
        value = np.moveaxis(value, 1, place + 1) if place + 1 < value.ndim else value
        inner = vmap(functools.partial(fun, ours), in_axes=place if place + 1 < value.ndim else 0)
        found = vmap(inner, axis_name="i")(value)
        np.testing.assert_allclose(np.swapaxes(np.asarray(found), 0, 1), want, rtol=1e-6)


def test_several_axes_at_once_equal_the_oracle():
    x = floats(2, 3, 6)

    def fun(lax, v):
        names = ("i", "j")
        return (lax.psum(v, names), lax.pmax(v, names), lax.pmean(v, names),
                lax.axis_index(names), lax.psum(1, names))  # fmt: skip

    def both(vm, lax):
        return vm(vm(functools.partial(fun, lax), axis_name="j"), axis_name="i")(x)

    for found, want in zip(both(vmap, ours), both(jax.vmap, jax.lax), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-5)


def test_gathering_and_scattering_over_several_axes_count_the_first_slowest():
    x = floats(2, 3, 6)
    both = lambda f: vmap(vmap(f, axis_name="j"), axis_name="i")(x)  # noqa: E731
    gathered = np.asarray(both(lambda v: ours.all_gather(v, ("i", "j"))))
    np.testing.assert_array_equal(gathered[1, 2], x.reshape(6, 6))
    scattered = np.asarray(both(lambda v: ours.psum_scatter(v, ("i", "j"))))
    # sums of six numbers of size 1 may cancel: a few eps of the terms
    np.testing.assert_allclose(scattered.reshape(6), x.sum((0, 1)), rtol=1e-5, atol=2e-6)


def test_groups_of_members_work_by_themselves():
    x = floats(4, 2)
    run = lambda f: np.asarray(vmap(f, axis_name="i")(x))  # noqa: E731
    summed = run(lambda v: ours.psum(v, "i", axis_index_groups=GROUPS))
    np.testing.assert_allclose(summed[[0, 2]], np.stack([x[0] + x[2]] * 2), rtol=1e-6)
    np.testing.assert_allclose(summed[[1, 3]], np.stack([x[3] + x[1]] * 2), rtol=1e-6)
    gathered = run(lambda v: ours.all_gather(v, "i", axis_index_groups=GROUPS))
    np.testing.assert_array_equal(gathered[1], x[[3, 1]])
    scattered = run(lambda v: ours.psum_scatter(v, "i", axis_index_groups=GROUPS))
    np.testing.assert_allclose(scattered[1], (x[1] + x[3])[1], rtol=1e-6)
    swapped = run(lambda v: ours.all_to_all(v, "i", 0, 0, axis_index_groups=GROUPS))
    np.testing.assert_array_equal(swapped[3], x[[3, 1], 0])
    largest = run(lambda v: ours.pmax(v, "i", axis_index_groups=GROUPS))
    np.testing.assert_array_equal(largest[0], np.maximum(x[0], x[2]))
    assert (run(lambda v: ours.psum(1, "i", axis_index_groups=GROUPS)) == 2).all()


def test_a_python_number_is_summed_to_a_python_number():
    found = []
    vmap(lambda v: found.append(ours.psum(1, "i")) or v, axis_name="i")(floats(5))
    assert found == [5]
    assert type(found[0]) is int


def test_a_value_that_all_members_share_is_counted_once_for_each():
    w = floats(3)
    out = vmap(lambda v: ours.psum(as_array(w), "i"), axis_name="i", out_axes=None)(floats(4))
    np.testing.assert_allclose(np.asarray(out), 4 * w, rtol=1e-6)
    out = vmap(lambda v: ours.pmax(as_array(w), "i"), axis_name="i", out_axes=None)(floats(4))
    np.testing.assert_array_equal(np.asarray(out), w)
    out = vmap(lambda v: ours.all_gather(as_array(w), "i"), axis_name="i")(floats(4))
    np.testing.assert_array_equal(np.asarray(out)[0], np.stack([w] * 4))


def test_who_gets_nothing_in_a_ppermute_has_zeros():
    x = floats(4, 2)
    out = np.asarray(vmap(lambda v: ours.ppermute(v, "i", [(0, 1), (3, 2)]), axis_name="i")(x))
    np.testing.assert_array_equal(out, np.stack([0 * x[0], x[0], x[3], 0 * x[0]]))


def test_a_staged_collective_is_batched_later():
    jaxpr = make_jaxpr(lambda v: ours.psum(v, "i"), axis_env=[("i", 4)])(np.float32(1))
    assert str(jaxpr).count("psum[") == 1
    x = floats(4)
    out = vmap(lambda v: eval_closed(jaxpr, v)[0], axis_name="i")(x)
    np.testing.assert_allclose(np.asarray(out), np.full(4, x.sum()), rtol=1e-5)
    with pytest.raises(NameError, match="'i' is not bound"):
        eval_closed(jaxpr, as_array(np.float32(1)))


LINEAR_CASES = [n for n in CASES if n not in
                ("psum of bool", "pmax", "pmin", "axis_index", "tree")]  # fmt: skip


@pytest.mark.parametrize("name", LINEAR_CASES)
def test_the_transpose_of_a_linear_collective_satisfies_the_inner_product_identity(name):
    fun, shape = CASES[name]
    x = floats(*shape)

    def transposed(jaxpr, ct):
        for eqn in reversed(jaxpr.eqns):
            operands = [v.value if hasattr(v, "value") else Linear(v.aval) for v in eqn.inputs]
            (ct, *_) = eqn.primitive.rule("transpose")((ct,), *operands, **eqn.params)
        return ct

    jaxpr = make_jaxpr(functools.partial(fun, ours), axis_env=[("i", 4)])(x[0])
    y = np.asarray(vmap(functools.partial(fun, ours), axis_name="i")(x))
    ct = floats(*y.shape)
    back = np.asarray(vmap(lambda c: transposed(jaxpr.jaxpr, c), axis_name="i")(ct))
    assert back.shape == x.shape
    np.testing.assert_allclose((ct * y).sum(), (back * x).sum(), rtol=1e-4)


def test_the_derivative_of_pmax_is_that_of_the_member_chosen():
    x = np.array([1, 3, 3, 2], np.float32)
    x_dot = np.array([5, 6, 8, 7], np.float32)
    rule = get_primitive("pmax").rule("jvp")

    def fun(v, v_dot):
        (y,), (y_dot,) = rule((v,), (v_dot,), axes=("i",), axis_index_groups=None)
        return y, y_dot

    y, y_dot = vmap(fun, axis_name="i")(x, x_dot)
    np.testing.assert_array_equal(np.asarray(y), np.full(4, 3))
    np.testing.assert_array_equal(np.asarray(y_dot), np.full(4, 7))


@pytest.mark.parametrize(("fun", "text"), [
    (lambda v: ours.psum(v, "k"), "axis name 'k' is not bound"),
    (lambda v: ours.axis_index("k"), "axis name 'k' is not bound"),
    (lambda v: ours.axis_size("k"), "axis name 'k' is not bound"),
])  # fmt: skip
def test_an_unbound_name_is_told_with_those_in_scope(fun, text):
    with pytest.raises(NameError, match=text) as caught:
        vmap(fun, axis_name="i")(floats(4))
    assert "'i'" in str(caught.value)
    with pytest.raises(NameError, match=text):
        fun(floats(4))


@pytest.mark.parametrize(("fun", "text"), [
    (lambda v: ours.ppermute(v, "i", [(0, 1), (0, 2)]), "sources and destinations must be unique"),
    (lambda v: ours.ppermute(v, "i", [(0, 7)]), "each destination must be within the axis"),
    (lambda v: ours.ppermute(v, ("i", "j"), []), "over several axes it needs members on devices"),
    (lambda v: ours.pshuffle(v, ("i", "j"), [1, 2, 3]), "takes one axis name"),
    (lambda v: ours.all_gather(v, "i", to="unreduced"), "no values of type 'unreduced'"),
    (lambda v: ours.pshuffle(v, "i", [1, 2, 3]), "must be a permutation"),
    (lambda v: ours.pbroadcast(v, "i", 4), "source must be within"),
    (lambda v: ours.all_to_all(v, "i", 0, 0), "must have the size of the axis"),
    (lambda v: ours.all_to_all(v, "i", 1, 0), "split_axis=1 is out of range"),
    (lambda v: ours.all_to_all(v, "i", 0, 0, tiled=True), "multiple of the number of members"),
    (lambda v: ours.psum_scatter(v, "i"), "must have the size of the axis"),
    (lambda v: ours.psum_scatter(v, "i", tiled=True), "multiple of the number of members"),
    (lambda v: ours.all_gather(v, "i", axis=2), "axis=2 is out of range"),
    (lambda v: ours.psum(v, "i", axis_index_groups=[[0, 1], [2]]), "of size 4 into groups"),
    (lambda v: ours.psum(v, "i", axis_index_groups=[[], [0, 1, 2, 3]]), "of size 4 into groups"),
    (lambda v: ours.all_gather(v, "i", axis_index_groups=[[0], [1, 2, 3]]), "groups of one size"),
    (lambda v: ours.psum(v, ("i", "j"), axis_index_groups=[[0]]), "the axis 'i' and 'j' of size 8"),
    (lambda v: ours.psum(v, ("i", "j"), axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]),
     "over several axes it needs members on devices"),
    (lambda v: ours.all_to_all(v, ("i", "j"), 0, 0, axis_index_groups=[[0]]),
     "takes one axis name"),
])  # fmt: skip
def test_wrong_arguments_are_named(fun, text):
    with pytest.raises(ValueError, match=text):
        vmap(vmap(fun, axis_name="i"), axis_name="j")(floats(2, 4, 3))


def test_the_axes_are_gone_afterwards():
    vmap(lambda v: ours.psum(v, "i"), axis_name="i")(floats(4))
    assert "i" not in state.axis_sizes


def test_compiled_for_replicas_collectives_do_the_same():
    program = pathlib.Path(__file__).with_name("compiled_collectives.py")
    run = subprocess.run(
        [sys.executable, str(program)], env=os.environ | {"XSTACK_NUM_CPU_DEVICES": "8"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]


UNEQUAL = [[[0], [1, 2, 3]], [[3, 1], [0], [2]]]
REDUCED = {"psum": np.sum, "pmean": np.mean, "pmax": np.max, "pmin": np.min}


@pytest.mark.parametrize("groups", UNEQUAL, ids=str)
@pytest.mark.parametrize("name", REDUCED)
def test_groups_of_unequal_sizes_are_reduced_one_by_one(name, groups):
    x, wanted = np.float32([1, 2, 4, 9]), np.zeros(4)
    for group in groups:
        wanted[group] = REDUCED[name](x[group])

    def reduced(v):
        return getattr(ours, name)(v, "i", axis_index_groups=groups)

    for mapped in (vmap(reduced, axis_name="i"), pmap(reduced, axis_name="i")):
        np.testing.assert_allclose(np.asarray(mapped(x)), wanted, rtol=1e-6)  # one rounding


def test_a_number_is_counted_in_each_group_of_unequal_sizes():
    counted = vmap(lambda v: v * 0 + ours.psum(1, "i", axis_index_groups=UNEQUAL[0]), axis_name="i")
    np.testing.assert_array_equal(np.asarray(counted(np.zeros(4, np.float32))), [1, 3, 3, 3])
