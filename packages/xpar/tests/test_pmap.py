"""`pmap` on eight virtual CPU devices, against NumPy and against the same function under `vmap`."""

import functools
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from xbatch import vmap
from xjit import check_captured_values, device_put, devices, jit, statistics
from xjit.dispatch.program import Program
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, P
from xnp import lax
from xpar import (
    all_gather,
    axis_index,
    pmap,
    pmax,
    pmean,
    ppermute,
    psum,
    psum_scatter,
    shard_map,
)
from xprim import as_array, config
from xprim.testing import functions_entered

N = 8


CPUS = devices("cpu")[:N]


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)


def share(v):
    return lax.div(v, psum(v, "i"))


def test_every_device_computes_its_slice(x):
    result = pmap(lambda v: lax.mul(v, v), devices=CPUS)(x)
    np.testing.assert_array_equal(result, x * x)
    assert result.devices() == set(CPUS)


def test_jit_shard_map_and_pmap_run_one_class_of_programs_at_placements_of_their_own(
    x, monkeypatch
):
    mesh, run = Mesh(np.array(CPUS), ("i",)), []
    plain = Program.kernel

    def kernel(program, placement, *rest):
        run.append((type(program), len(placement.devices)))
        return plain(program, placement, *rest)

    monkeypatch.setattr(Program, "kernel", kernel)
    for fun in (
        jit(lambda v: lax.mul(v, v)),
        shard_map(lambda v: lax.mul(v, v), mesh=mesh, in_specs=P("i"), out_specs=P("i")),
        pmap(lambda v: lax.mul(v, v), devices=CPUS),
    ):
        np.testing.assert_array_equal(fun(x), x * x)
    assert run == [(Program, 1), (Program, N), (Program, N)]


@pytest.mark.parametrize(
    "collective",
    [
        lambda v: psum(v, "i"),
        lambda v: pmean(v, "i"),
        lambda v: pmax(v, "i"),
        lambda v: all_gather(v, "i"),
        lambda v: all_gather(v, "i", tiled=True),
        lambda v: ppermute(v, "i", [(k, (k + 3) % N) for k in range(N)]),
        lambda v: lax.add(v, lax.convert_element_type(axis_index("i"), np.float32)),
        lambda v: psum_scatter(all_gather(v, "i"), "i"),
    ],
)
def test_collectives_agree_with_vmap(x, collective):
    on_devices = pmap(collective, axis_name="i", devices=CPUS)(x)
    on_batch = vmap(collective, axis_name="i")(x)
    # sums over devices are taken in another order than along an axis: a few ulp of float32
    np.testing.assert_allclose(on_devices, on_batch, rtol=1e-5, atol=1e-6)


def test_results_stay_on_their_devices_from_call_to_call(x):
    double = pmap(lambda v: lax.add(v, v), devices=CPUS)
    y = double(double(x))
    np.testing.assert_array_equal(y, 4 * x)
    assert y.devices() == set(CPUS)


def test_axes_of_arguments_and_results(x):
    scaled = pmap(
        lambda c, v: (lax.mul(v, c), psum(v, "i")),
        axis_name="i", in_axes=(None, 1), out_axes=(1, None), devices=CPUS,
    )  # fmt: skip
    whole, total = scaled(2.0, x.T)
    np.testing.assert_array_equal(whole, 2 * x.T)
    np.testing.assert_allclose(total, x.sum(0), rtol=1e-5)


LAYOUTS = {"rows": lambda a: a, "columns": np.asfortranarray, "backwards": lambda a: a[::-1]}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, np.bool_, np.float16])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((N, 3), 0), ((3, N), 1), ((N,), 0), ((2, 3, N), 2), ((2, N, 0), 1), ((N, 0, 3), 0)],
)
def test_host_arrays_reach_the_devices_whatever_their_layout(shape, axis, dtype, layout):
    given = LAYOUTS[layout]((np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype))
    both = pmap(lambda a, b: (a, b), in_axes=(axis, None), out_axes=(axis, None), devices=CPUS)
    cut, whole = both(given, given)
    for result in (cut, whole):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, given)


def test_a_host_array_may_be_written_to_after_the_call(x):
    expected = x + 0
    result = pmap(lambda v: lax.add(v, lax.full_like(v, 0)), devices=CPUS)(x)
    x[...] = -1
    np.testing.assert_array_equal(result, expected)


def test_results_keep_their_values_when_later_calls_write_to_the_same_memory(x):
    same = pmap(lambda v: (v, lax.add(v, v)), devices=CPUS)
    given = [x + k for k in range(20)]
    results = [same(v) for v in given]
    for (first, double), v in zip(results, given, strict=True):
        np.testing.assert_array_equal(first, v)
        np.testing.assert_array_equal(double, 2 * v)


def test_programs_that_take_their_time_keep_the_memory_they_read(x):
    @functools.partial(pmap, devices=CPUS)
    def late(v):
        done = lax.fori_loop(0, 20_000, lambda i, w: lax.sin(w), lax.full((64,), 1.0))
        return lax.add(v, lax.mul(lax.full_like(v, 0), done[:3]))

    late(x).block_until_ready()  # now there is memory to write to
    given = [x + k for k in range(4)]
    results = [late(v) for v in given]
    for result, v in zip(results, given, strict=True):
        np.testing.assert_array_equal(result, v)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_result_that_is_gone_does_no_harm_to_later_calls(x, keeps):
    double = pmap(lambda v: lax.add(v, v), devices=CPUS)
    again = pmap(lambda v: lax.mul(v, v), devices=CPUS, donate_argnums=0)
    for k in range(4):
        y = double(x + k)
        if keeps:
            np.testing.assert_array_equal(again(y), 4 * (x + k) ** 2)
        else:
            y.delete()
    np.testing.assert_array_equal(double(x), 2 * x)


def test_threads_that_pass_host_arrays_do_not_see_each_other_s(x):
    double = pmap(lambda v: lax.add(v, v), devices=CPUS)
    double(x).block_until_ready()

    def work(k):
        return all(np.array_equal(double(x + k + i), 2 * (x + k + i)) for i in range(20))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(0, 400, 100)))


def test_a_program_without_results_takes_host_arrays(x):
    seen = pmap(lambda v: {}, devices=CPUS)
    assert seen(x) == {} == seen(x)


def test_trees_and_keyword_arguments(x):
    result = pmap(lambda p, *, v: {"sum": lax.add(p["a"], v)}, devices=CPUS)({"a": x}, v=x)
    np.testing.assert_array_equal(result["sum"], 2 * x)


def test_static_arguments_compile_anew_for_another_value(x):
    traced = []

    def power(v, n):
        traced.append(n)
        return lax.integer_pow(v, n)

    mapped = pmap(power, static_broadcasted_argnums=1, devices=CPUS)
    for n in (2, 3, 2):
        np.testing.assert_allclose(mapped(x, n), x**n, rtol=1e-6)
    assert traced == [2, 3]


def test_donated_arguments_are_gone(x):
    state = pmap(lambda v: lax.add(v, v), devices=CPUS)(x)
    pmap(lambda v: lax.mul(v, v), donate_argnums=0, devices=CPUS)(state)
    with pytest.raises(RuntimeError, match="was donated"):
        np.asarray(state)


def test_a_function_that_closes_over_an_array(x):
    weights = as_array(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(
        pmap(lambda v: lax.mul(v, weights), devices=CPUS)(x), x * np.arange(3, dtype=np.float32)
    )


def test_results_feed_compiled_and_eager_functions_where_they_are(x):
    y = pmap(lambda v: lax.mul(v, v), axis_name="i", devices=CPUS)(x)
    assert y.sharding == NamedSharding(Mesh(np.array(CPUS), ("i",)), P("i"))
    twice = jit(lambda v: lax.add(v, v))
    for _ in range(3):
        z = twice(y)
        assert z.sharding.is_equivalent_to(y.sharding, 2)
        np.testing.assert_array_equal(z, 2 * x * x)
    np.testing.assert_array_equal(lax.add(y, y), 2 * x * x)
    np.testing.assert_array_equal(pmap(lambda v: -v, devices=CPUS)(z), -2 * x * x)


def test_a_result_that_is_not_stacked_is_whole_on_each_device(x):
    total = pmap(lambda v: psum(v, "i"), axis_name="i", out_axes=None, devices=CPUS)(x)
    assert total.sharding.is_fully_replicated and total.devices() == set(CPUS)
    np.testing.assert_allclose(total, x.sum(0), rtol=1e-5, atol=1e-6)  # summed in another order


def test_inside_jit_the_replicas_become_a_batch(x):
    np.testing.assert_allclose(
        jit(pmap(share, axis_name="i", devices=CPUS))(x), x / x.sum(0), rtol=1e-5
    )


def test_vmap_of_pmap(x):
    batch = np.stack([x, 2 * x + 1])
    result = vmap(pmap(share, axis_name="i", devices=CPUS))(batch)
    np.testing.assert_allclose(result, batch / batch.sum(1, keepdims=True), rtol=1e-5)


def test_axis_sizes_that_differ_are_named(x):
    with pytest.raises(ValueError, match=r"(?s)differ in size.*float32\[8,3\].*float32\[4,3\]"):
        pmap(lambda a, b: lax.add(a, b), devices=CPUS)(x, x[:4])


def test_more_slices_than_devices_is_an_error_with_a_hint():
    count = len(devices()) + 1
    with pytest.raises(ValueError, match="XSTACK_NUM_CPU_DEVICES"):
        pmap(lambda v: v)(np.zeros((count, 2), np.float32))


def test_nothing_mapped_is_an_error():
    with pytest.raises(ValueError, match="devices are at least one, or None"):
        pmap(lambda v: v, devices=[])
    with pytest.raises(ValueError, match="no argument is mapped"):
        pmap(lambda v: v, in_axes=None, devices=CPUS)(1.0)


def test_unhashable_static_argument_is_an_error(x):
    with pytest.raises(ValueError, match=r"(?s)pmap: the static argument n .*a list of length 1"):
        pmap(lambda v, n: v, static_broadcasted_argnums=1, devices=CPUS)(x, [1])


def test_static_values_of_other_types_that_compare_equal_are_kept_apart():
    f = pmap(lambda x, n: x * n, static_broadcasted_argnums=1)
    x = np.ones((1, 2), np.int32)
    assert [f(x, n).dtype.name for n in (1, 1.0, True, 1)] == ["int32", "float32", "int32", "int32"]


def test_the_axes_of_arguments_are_worked_out_once_for_each_signature(monkeypatch):
    f = pmap(lambda x, y: x + y, in_axes=(0, None))
    x, y = np.ones((1, 2), np.float32), np.float32(2)
    f(x, y)
    monkeypatch.setattr(sys.modules["xpar._pmap"], "_argument_axes", None)
    np.testing.assert_array_equal(f(x, y), [[3, 3]])
    with pytest.raises(TypeError):
        f(np.ones((1, 3), np.float32), y)


def test_a_result_is_put_on_one_device_as_a_whole():
    whole = np.arange(2.0 * len(devices())).reshape(len(devices()), 2)
    for device in devices()[:2]:
        x = device_put(pmap(lambda x: x + 1)(whole), device)
        assert x.devices() == {device}
        assert x.committed
        np.testing.assert_array_equal(np.asarray(x), whole + 1)


# --- the same program class as that of `jit` ----------------------------------------------------


def test_a_program_is_compiled_ahead_of_time(x):
    mapped = pmap(
        lambda c, v, n: (lax.mul(v, psum(v, "i")), lax.mul(c, float(n))), axis_name="i",
        in_axes=(None, 1, None), out_axes=(1, None), devices=CPUS, static_broadcasted_argnums=2,
    )  # fmt: skip
    traced = mapped.trace(2.0, x.T, 3)
    assert [a.shape for a in traced.jaxpr.in_avals] == [(), (3,)]
    assert [o.shape for o in traced.out_info] == [(3, N), ()]
    lowered = traced.lower()
    assert "stablehlo.all_reduce" in lowered.as_text()
    before = statistics.compiled
    compiled = lowered.compile()
    assert statistics.compiled == before + 1
    for _ in range(3):
        whole, scaled = compiled(2.0, x.T)
        np.testing.assert_allclose(whole, (x * x.sum(0)).T, rtol=1e-5)
        assert float(scaled) == 6
    assert whole.devices() == set(CPUS)
    assert "all-reduce" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    with pytest.raises(TypeError, match=r"(?s)other arguments.*float32\[8,3\].*float32\[3,8\]"):
        compiled(2.0, x)
    np.testing.assert_array_equal(mapped(2.0, x.T, 3)[0], whole)
    assert mapped.eval_shape(2.0, x.T, 4)[0].shape == (3, N)


def test_options_of_the_compiler_reach_it(x):
    lowered = pmap(lambda v: lax.neg(v), devices=CPUS).lower(x)
    compiled = lowered.compile({"xla_backend_optimization_level": 1})
    np.testing.assert_array_equal(compiled(x), -x)
    with pytest.raises(RuntimeError, match="no_such_option"):
        lowered.compile({"no_such_option": 1})


def test_equal_functions_share_their_programs(x):
    def make():
        return pmap(lambda v: lax.mul(v, lax.add(v, 7.0)), devices=CPUS)

    np.testing.assert_array_equal(make()(x), x * (x + 7))
    before = statistics.compiled, statistics.found
    again = make()
    np.testing.assert_array_equal(again(x), x * (x + 7))
    assert (statistics.compiled, statistics.found) == before
    assert again._cache_size() == 1


def test_a_fresh_pmap_sees_what_its_function_sees_now(x):
    scale = {"by": 2.0}

    def scaled(v):
        return lax.mul(v, scale["by"])

    first = pmap(scaled, devices=CPUS)
    np.testing.assert_array_equal(first(x), 2 * x)
    scale["by"] = 3.0
    np.testing.assert_array_equal(pmap(scaled, devices=CPUS)(x), 3 * x)
    np.testing.assert_array_equal(first(x[:, :2]), 3 * x[:, :2])  # a new trace looks, too
    np.testing.assert_array_equal(first(x), 3 * x)
    with check_captured_values("raise"):
        checked = pmap(scaled, devices=CPUS)
        np.testing.assert_array_equal(checked(x), 3 * x)
        scale["by"] = 4.0
        with pytest.raises(RuntimeError, match=r"pmap: what scaled sees has changed"):
            checked(x)


def test_an_array_that_is_donated_twice_is_refused_by_name(x):
    state = pmap(lambda v: lax.add(v, v), devices=CPUS)(x)
    both = pmap(lambda a, b: (lax.add(a, b), lax.sub(a, b)), devices=CPUS, donate_argnums=(0, 1))
    with pytest.raises(ValueError, match=r"donated and passed twice: as a and b"):
        both(state, state)
    np.testing.assert_array_equal(state, 2 * x)


def test_arguments_are_named_as_the_function_names_them(x):
    f = pmap(lambda params, v: v, devices=CPUS)
    with pytest.raises(TypeError, match=r"pmap: the argument params\['w'\] of <lambda> is not an"):
        f({"w": "text"}, x)
    with pytest.raises(ValueError, match=r"params\['w'\]: float32\[8,3\] along axis 0; v: .*4,3"):
        f({"w": x}, x[:4])


def test_keyword_arguments_are_cut_along_their_first_axis(x):
    f = pmap(lambda a, b: lax.sub(a, b), in_axes=(1,), devices=CPUS)
    for _ in range(3):
        np.testing.assert_array_equal(f(x.T, b=2 * x), -x)


def test_a_result_that_is_not_finite_is_told_of(x):
    log = pmap(lambda v: lax.log(v), devices=CPUS)
    with config.debug_nans(True), pytest.raises(FloatingPointError, match="NaN was computed"):
        log(-np.abs(x))


def slow_calls(f, calls):
    """Return how often `calls` went the long way of the pmapped function `f`."""
    long_way = f.lower.__wrapped__.__func__.__globals__["Calls"].__call__.__code__
    return functions_entered(calls).count(long_way)


def test_results_of_a_pmap_go_into_the_next_by_the_short_way(x):
    update = pmap(
        lambda p, v, n: {k: lax.add(w, lax.mul(psum(v, "i"), float(n))) for k, w in p.items()},
        axis_name="i", devices=CPUS, donate_argnums=0, static_broadcasted_argnums=2,
    )  # fmt: skip
    v = pmap(lambda v: v, devices=CPUS)(x)
    state, expected = {"a": x, "b": 2 * x}, {"a": x, "b": 2 * x}
    for step in range(6):
        before = state
        state = update(state, v, 2)
        expected = {k: w + 2 * x.sum(0) for k, w in expected.items()}
        if step:
            assert all(w.is_deleted() for w in before.values())
    assert slow_calls(update, lambda: update(state, v, 2)) == 0
    for k, w in update(update({k: w + 0 for k, w in expected.items()}, v, 2), v, 2).items():
        np.testing.assert_allclose(w, expected[k] + 4 * x.sum(0), rtol=1e-5, atol=1e-5)


def test_the_short_way_looks_where_each_argument_is(x):
    f = pmap(lambda a, b: lax.sub(a, b), in_axes=(0, 1), devices=CPUS)
    rows = pmap(lambda v: v, devices=CPUS)(x)
    columns = pmap(lambda v: v, in_axes=1, out_axes=1, devices=CPUS)(2 * x.T)
    square = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    both = {
        axis: pmap(lambda v: v, in_axes=axis, out_axes=axis, devices=CPUS)(square)
        for axis in (0, 1)
    }
    elsewhere = device_put(square, devices("cpu")[1])
    for _ in range(3):
        np.testing.assert_array_equal(f(rows, columns), -x)
        for a in (both[0], both[1], elsewhere, square):
            for b in (both[0], both[1], elsewhere, square):
                np.testing.assert_array_equal(f(a, b), square - square.T)
    assert slow_calls(f, lambda: f(rows, columns)) == 0


def test_one_replica_is_a_piece_too(x):
    f = pmap(lambda v: lax.add(v, v), devices=CPUS[:1])
    y = f(x[:1])
    for _ in range(3):
        np.testing.assert_array_equal(f(y), 4 * x[:1])
        whole = device_put(np.asarray(y), CPUS[0])
        np.testing.assert_array_equal(f(whole), 4 * x[:1])


def test_the_first_of_more_devices_than_the_axis_is_long_are_used(x):
    y = pmap(lambda v: lax.add(v, v), devices=CPUS[::-1])(x[:1])
    np.testing.assert_array_equal(y, 2 * x[:1])
    assert y.devices() == {CPUS[-1]}
    with pytest.raises(ValueError, match="size 2, but only 1 devices were given"):
        pmap(lambda v: v, devices=CPUS[:1])(x[:2])


def test_what_is_donated_twice_to_replicas_is_named_at_later_calls_too(x):
    f = pmap(lambda a, b: (lax.add(a, b), lax.sub(a, b)), devices=CPUS, donate_argnums=(0, 1))
    make = pmap(lambda v: lax.mul(v, v), devices=CPUS)
    for _ in range(3):
        a, b = make(x), make(2 * x)
        with pytest.raises(ValueError, match="donated and passed twice: as a and b"):
            f(a, a)
        np.testing.assert_allclose(f(a, b)[0], 5 * x * x, rtol=1e-5)


def test_what_is_passed_twice_beside_a_donated_argument_is_read_twice(x):
    f = pmap(lambda a, b, c: lax.add(a, lax.mul(b, c)), devices=CPUS, donate_argnums=0)
    make = pmap(lambda v: lax.add(v, v), devices=CPUS)
    b = make(x)
    for _ in range(3):
        np.testing.assert_allclose(f(make(x), b, b), 2 * x + 4 * x * x, rtol=1e-5)


@pytest.mark.parametrize("axis", [False, 0.0, "x"])
@pytest.mark.parametrize("option", ["in_axes", "out_axes"])
def test_axes_are_integers(option, axis):
    with pytest.raises(TypeError, match=rf"^pmap: {option} must be an int, None, or a tree of"):
        pmap(lambda x: x, **{option: axis})
    with pytest.raises(TypeError, match=rf"got +{option}\['a'\] = "):
        pmap(lambda x: {"a": x}, **{option: {"a": axis}})
