from __future__ import annotations

import numpy as np
import pytest

from xjit import device_put, devices, jit, stages, statistics
from xjit.dispatch import program
from xjit.lowering.annotations import composite
from xjit.lowering.modules import program_text, source_locations
from xjit.sharding.shardings import SingleDeviceSharding
from xnp import lax
from xprim import ShapeDtypeStruct, as_array, named_scope

ONES = as_array(np.ones((2, 3), np.float32))


def test_a_function_is_traced_lowered_and_compiled_by_steps():
    f = jit(lambda p: lax.mul(p["x"], p["y"]))
    example = {"x": ONES, "y": ShapeDtypeStruct((2, 3), np.float32)}
    before = statistics.compiled
    traced = f.trace(example)
    assert [e.primitive.name for e in traced.jaxpr.eqns] == ["mul"]
    lowered = traced.lower()
    assert "stablehlo.multiply" in lowered.as_text()
    assert statistics.compiled == before
    compiled = lowered.compile()
    assert "multiply" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] == 6.0
    assert compiled.memory_analysis()["output_size_in_bytes"] == 24
    out = compiled({"x": ONES, "y": ONES})
    np.testing.assert_array_equal(out, np.ones((2, 3)))
    assert lowered.out_info == ShapeDtypeStruct((2, 3), np.float32)
    assert compiled.in_tree == lowered.in_tree == traced.in_tree


def test_static_arguments_are_part_of_what_is_compiled():
    f = jit(lambda x, n: lax.mul(x, float(n)), static_argnums=1)
    compiled = f.lower(ONES, 3).compile()
    np.testing.assert_array_equal(compiled(ONES), np.full((2, 3), 3.0))


def test_a_compiled_function_refuses_other_arguments():
    compiled = jit(lambda x, y: lax.add(x, y)).lower(ONES, ONES).compile()
    with pytest.raises(TypeError, match=r"(?s)y: float32\[3\].*float32\[2,3\]"):
        compiled(ONES, as_array(np.ones(3, np.float32)))
    with pytest.raises(TypeError, match="another structure"):
        compiled(ONES)


def test_eval_shape_compiles_nothing():
    before = statistics.compiled
    shape = jit(lambda x: (lax.reduce_sum(x, (0,)), x)).eval_shape(ONES)
    assert shape[0] == ShapeDtypeStruct((3,), np.float32)
    assert statistics.compiled == before


def test_lowering_donation_marks_the_result_that_takes_the_memory():
    f = jit(lambda x, y, z: (lax.reduce_sum(y, (0, 1)), lax.add(x, y), z), donate_argnums=(0, 1))
    fact = "Some donated buffers were not usable: no result of .* can take the memory of y:"
    with pytest.warns(UserWarning, match=fact):
        text = f.lower(ONES, ONES, 1.0).as_text()
    assert "%arg0: tensor<2x3xf32> {tf.aliasing_output = 1 : i32}" in text
    assert "%arg1: tensor<2x3xf32>, %arg2" in text


def test_texts_of_equal_programs_are_equal_but_for_the_name():
    def one(x):
        return lax.add(lax.sin(x), 1.0)

    def two(y):
        return lax.add(lax.sin(y), 1.0)

    assert jit(one).lower(ONES).as_text() == jit(two).lower(ONES).as_text().replace("two", "one")


def test_dead_and_repeated_operations_are_not_written():
    def f(x):
        lax.cos(x)
        return lax.add(lax.sin(x), lax.sin(x))

    text = jit(f).lower(ONES).as_text()
    assert text.count("sine") == 1 and "cosine" not in text


def test_source_locations_are_written_when_asked_for():
    f = jit(lambda x: lax.neg(x))
    assert "loc(" not in f.lower(ONES).as_text()
    with source_locations(True):
        assert "test_stages.py" in f.lower(ONES).as_text()
        np.testing.assert_array_equal(f(ONES), -np.ones((2, 3)))


def test_an_option_prints_programs_as_mlir_does():
    square = composite(lambda x: x * x, name="my.square")
    lowered = jit(square).lower(ONES)
    plain = lowered.as_text()
    assert '"stablehlo.composite"(%arg0)' in plain and "@my.square(%arg0" in plain
    with program_text("mlir"):
        printed = lowered.as_text()
        assert "loc(" in jit(lambda x: lax.neg(x)).lower(ONES).as_text(debug_info=True)
        assert "HloModule" in lowered.as_text("hlo")
    assert 'stablehlo.composite "my.square" %arg0 {decomposition = @my.square}' in printed
    assert "-> tensor<2x3xf32> {" in printed and "loc(" not in printed
    assert lowered.as_text() == plain  # what is compiled is the same


def test_wrong_dialects_and_platforms_are_refused():
    lowered = jit(lambda x: x).lower(ONES)
    for ask in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="unknown dialect 'mhlo'"):
            ask("mhlo")
    with pytest.raises(ValueError, match="one platform"):
        jit(lambda x: x).trace(ONES).lower(lowering_platforms=("cpu", "gpu"))


@pytest.mark.parametrize("platform", ["cpu", "cuda", "gpu", "rocm", "tpu"])
def test_a_program_is_written_for_platforms_that_are_not_there(platform):
    traced = jit(lambda x: lax.sin(x)).trace(ONES)
    assert "stablehlo.sine" in traced.lower(lowering_platforms=(platform,)).as_text()
    with pytest.raises(RuntimeError, match="'bogus' is not the name of a platform"):
        traced.lower(lowering_platforms=("bogus",))


def test_the_stages_say_what_they_give_and_the_executable_shows_what_xla_made():
    traced = jit(lambda x: {"a": lax.sin(x)}).trace(ONES)
    assert traced.out_avals["a"].str_short() == "f32[2,3]"
    (module,) = traced.lower().compile().runtime_executable().hlo_modules()
    assert "sine" in module.to_string()


def test_compiler_options_reach_xla():
    f = jit(lambda x: lax.neg(x), compiler_options={"xla_backend_optimization_level": 1})
    np.testing.assert_array_equal(f(ONES), -np.ones((2, 3)))
    with pytest.raises(RuntimeError, match="no_such_option"):
        jit(lambda x: x).lower(ONES).compile(compiler_options={"no_such_option": 1})


def test_device_and_backend_choose_where_it_runs():
    device = devices("cpu")[0]
    for f in (
        jit(lambda x: lax.neg(x), device=device),
        jit(lambda x: lax.neg(x), backend="cpu"),
        jit(lambda x: lax.neg(x), in_shardings=device, out_shardings=device),
    ):
        out = f(ONES)
        assert out.device is device and out.committed
    with pytest.raises(ValueError, match="device and backend"):
        jit(lambda x: x, device=device, backend="cpu")
    with pytest.raises(TypeError, match="is not a place"):
        jit(lambda x: x, device=3)


def test_what_jit_returns_is_wrapped():
    assert isinstance(jit(lambda x: x), stages.Wrapped)


def test_a_program_of_a_thousand_operations_takes_some_fifty_bytes_for_each():
    def f(x, w):
        for _ in range(333):
            x = lax.sin(lax.add(lax.mul(x, w), 0.5))
        return x

    text = jit(f).lower(ONES, ONES).as_text()
    assert text.count("\n") < 1010
    assert len(text) < 55 * 1000
    assert text.count("stablehlo.constant") == 2  # a number, and it repeated to the shape


@pytest.mark.of_the_cpu
def test_a_compiled_function_runs_where_it_was_compiled_for():
    here, there = devices("cpu")[:2]
    x = np.ones(3, np.float32)
    device_put(x, there)  # from now on calls look where their arguments are
    compiled = jit(lambda v: v + 1).lower(x).compile()
    for _ in range(3):
        assert not compiled(x).committed
        assert not compiled(as_array(x)).committed
        committed = compiled(device_put(x, here))
        assert committed.committed and committed.devices() == {here}
        with pytest.raises(
            ValueError, match=r"(?s)compiled for another device.*put on \S*1\n.*expected  \S*0\n"
        ):
            compiled(device_put(x, there))
    elsewhere = jit(lambda v: v + 1, device=there).lower(x).compile()
    for _ in range(3):
        assert elsewhere(x).devices() == {there}
        assert elsewhere(device_put(x, here)).devices() == {there}


@pytest.mark.parametrize("describes", [False, True])
def test_a_program_is_compiled_for_the_device_of_its_arguments(describes):
    here, there = devices("cpu")[:2]
    x = np.ones(3, np.float32)
    given = device_put(x, there)
    if describes:
        given = ShapeDtypeStruct(x.shape, x.dtype, sharding=SingleDeviceSharding(there))
    compiled = jit(lambda v: v + 1).lower(given).compile()
    for _ in range(3):
        for argument in (x, device_put(x, there)):
            found = compiled(argument)
            assert found.devices() == {there} and found.committed
        with pytest.raises(ValueError, match="compiled for another device"):
            compiled(device_put(x, here))
    add = jit(lambda a, b: a + b)
    assert add.lower(x, given).compile()(x, x).devices() == {there}
    with pytest.raises(ValueError, match="Received incompatible devices for jitted computation"):
        add.lower(device_put(x, here), given)
    chosen = jit(lambda v: v + 1, device=here).lower(given).compile()
    assert chosen(device_put(x, there)).devices() == {here}


def test_results_of_a_compiled_function_are_where_they_were_asked_for():
    there = devices("cpu")[1]
    compiled = jit(lambda v: v + 1, out_shardings=there).lower(ONES).compile()
    for _ in range(2):
        assert compiled(ONES).devices() == {there}


def test_equal_functions_are_written_as_text_once(monkeypatch):
    texts = []

    def counted(*args, **kwargs):
        texts.append(kwargs["name"])
        return lower(*args, **kwargs)

    lower = program.lower
    monkeypatch.setattr(program, "lower", counted)
    for _ in range(3):
        jit(lambda x: x * 7.25 - x).lower(np.float32([1, 2])).compile()
    assert len(texts) == 1


def test_every_stage_knows_its_arguments():
    traced = jit(lambda x, *, y: (x + 1, y), donate_argnums=0).trace(ONES, y=np.int32(2))
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile()):
        (x,), named = stage.args_info
        assert (x.shape, x.dtype, x.donated) == ((2, 3), np.float32, True)
        assert (named["y"].shape, named["y"].dtype, named["y"].donated) == ((), np.int32, False)
        assert stage.donate_argnums == (0,)
        assert stage.out_info[0].update(sharding=None) == ShapeDtypeStruct((2, 3), np.float32)
    assert traced.effects == frozenset()


def test_a_program_is_shown_in_each_of_its_forms():
    lowered = jit(lambda x: lax.sin(x)).lower(ONES)
    assert "loc(" not in lowered.as_text() and "test_stages.py" in lowered.as_text(debug_info=True)
    assert "stablehlo.sine" in str(lowered.compiler_ir())
    text = lowered.as_text("hlo")
    assert text.startswith("HloModule") and "sine(" in text
    assert lowered.compiler_ir("hlo").as_hlo_text() == text


def test_scopes_and_lines_are_shown_in_both_notations_when_asked_for():
    lowered = jit(named_scope("outer")(lambda x: lax.sin(x))).lower(ONES)
    for dialect, form in (("stablehlo", 'loc("outer/sin"'), ("hlo", 'op_name="outer/sin"')):
        shown = lowered.as_text(dialect, debug_info=True)
        assert form in shown
        assert "test_stages.py" in shown
        assert "outer" not in lowered.as_text(dialect)


def test_costs_are_estimated_before_and_after_compiling():
    lowered = jit(lambda x: lax.sin(x)).lower(ONES)
    assert lowered.cost_analysis()["transcendentals"] == 6.0
    found = lowered.compile().memory_analysis()
    assert found.output_size_in_bytes == found["output_size_in_bytes"] == 24
    with pytest.raises(AttributeError, match="no_such_size"):
        found.no_such_size  # noqa: B018
