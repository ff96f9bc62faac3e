"""Kinds of memory and places of computation, as far as a CPU has them."""

import numpy as np
import pytest

import xnp
from xjit import device_put, jit
from xjit.memories import Space, compute_on
from xjit.operation_metadata import scheduling_group, xla_metadata_call

X = np.float32([1, 2, 3])


@pytest.mark.parametrize(("compute_type", "written"), [
    ("device_host", '_xla_compute_type = "host"'), ("device", '_xla_compute_type = "dense"'),
    ("gpu_stream:3", '_xla_stream_annotation = "3"'),
])  # fmt: skip
def test_the_compiler_is_told_where_a_function_runs(compute_type, written):
    on = compute_on(lambda x: xnp.sin(x) * 2, compute_type=compute_type,
                    out_memory_spaces=Space.Device)  # fmt: skip
    program = jit(lambda x: on(x) + 1).lower(X)
    assert program.as_text().count(written) == 2  # the sum is not among them
    np.testing.assert_allclose(program.compile()(X), np.sin(X) * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(on(X), np.sin(X) * 2, rtol=1e-6)


def test_settings_of_a_place_are_written_as_json():
    on = compute_on(compute_type="device_host", compiler_options={"a": [1]})
    assert r'backend_config = "{\"a\": [1]}"' in jit(on(lambda x: x * 2)).lower(X).as_text()


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"compute_type": "moon"}, ValueError, "there is no such place"),
    ({"compute_type": 3}, TypeError, "the place is given by its name"),
    ({"compute_type": "device", "out_memory_spaces": (Space.Host,)}, ValueError, "Space.Host"),
])  # fmt: skip
def test_places_that_are_not_there_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        compute_on(lambda x: x, **options)
    with pytest.raises(TypeError, match="expected a function"):
        compute_on(3, compute_type="device")


def test_arrays_of_a_cpu_are_in_the_memory_of_the_host():
    x = xnp.asarray(X)
    tree = device_put({"a": x, "b": X}, {"a": Space.Host, "b": Space.Device})
    assert tree["a"] is x
    np.testing.assert_array_equal(tree["b"], X)
    np.testing.assert_array_equal(jit(lambda x: device_put(x * 2, Space.Host))(X), X * 2)
    assert repr(Space.Any) == "Space.Any"


def test_groups_of_operations_are_named():
    grouped = scheduling_group("g")(lambda x: x * 2)
    marked = xla_metadata_call(lambda x: grouped(x) + 1, tag=True)
    text = jit(marked).lower(X).as_text()
    assert text.count('scheduling_group = "g"') == 1 and text.count('tag = "true"') == 2
    np.testing.assert_array_equal(jit(marked)(X), X * 2 + 1)
    with pytest.raises(TypeError, match="expected a function"):
        xla_metadata_call(3)
