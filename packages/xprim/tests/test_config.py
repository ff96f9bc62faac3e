import asyncio
import copy
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import threading

import numpy as np
import pytest

from xprim import config, state


@pytest.fixture(autouse=True)
def _restored_options():
    before = {name: option.value for name, option in config.options().items()}
    yield
    for name, value in before.items():
        config.update(name, value)


def in_new_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def run_python(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_update_changes_what_read_value_and_values_show():
    config.update("enable_x64", True)
    assert config.read("enable_x64") is True
    assert config.enable_x64.value is True
    assert config.values.enable_x64 is True


def test_update_takes_the_names_of_jax():
    config.update("jax_enable_x64", True)
    assert config.read("jax_enable_x64") is True


@pytest.mark.parametrize("call", [config.read, lambda name: config.update(name, 1)])
def test_an_unknown_option_is_refused_with_the_names_that_are_close(call):
    with pytest.raises(AttributeError, match=r"(?s)no option 'enable_x46'.*hint .*enable_x64"):
        call("enable_x46")
    with pytest.raises(AttributeError, match=r"(?s)no option 'zzz'.*hint .*dir\(xstack\.config\)"):
        call("zzz")


def test_a_value_of_the_wrong_type_or_choice_is_refused_and_changes_nothing():
    with pytest.raises(TypeError, match=r"(?s)config\.enable_x64: .*got +1.*True or False"):
        config.update("enable_x64", 1)
    with pytest.raises(ValueError, match=r"(?s)got +'loose'.*one of 'standard', 'strict'"):
        config.update("numpy_dtype_promotion", "loose")
    with pytest.raises(TypeError, match=r"got +3"):
        config.update("numpy_dtype_promotion", 3)
    with pytest.raises(TypeError, match=r"config\.default_device"):
        config.default_device(3)
    assert config.enable_x64.value is False
    assert config.numpy_dtype_promotion.value == "standard"


def test_a_scope_overrides_and_restores_also_after_an_exception():
    with config.enable_x64(True):
        assert config.enable_x64.value is True
        with config.enable_x64(False):
            assert config.enable_x64.value is False
        assert config.enable_x64.value is True
    with pytest.raises(KeyError, match="True"), config.debug_nans():
        raise KeyError(config.debug_nans.value)
    assert not config.debug_nans.value
    assert not config.enable_x64.value


def test_scopes_are_called_as_in_jax():
    with config.enable_x64(), config.debug_nans(True), config.log_compiles(), config.disable_jit():
        assert config.enable_x64.value
        assert config.log_compiles.value
        assert config.disable_jit.value
    with config.enable_x64(new_val=True):
        assert config.enable_x64.value
    with config.default_matmul_precision("highest"):
        assert config.default_matmul_precision.value == "highest"
    with pytest.raises(TypeError, match="the value for the scope is missing"):
        config.default_matmul_precision()


def test_an_override_decorates_a_function_for_each_of_its_calls():
    @config.enable_x64(True)
    def inside(depth):
        """Say whether."""
        return config.enable_x64.value and (depth == 0 or inside(depth - 1))

    assert inside(3) is True
    assert config.enable_x64.value is False
    assert inside.__doc__ == "Say whether."


def test_one_override_object_may_be_entered_again_and_by_other_threads():
    override = config.enable_x64(True)

    def enter():
        with override, override:
            return config.enable_x64.value

    with override:
        assert enter()
        assert in_new_thread(enter)
        assert config.enable_x64.value
    assert not config.enable_x64.value
    assert enter()


def test_an_override_is_seen_by_its_own_thread_alone():
    with config.enable_x64(True):
        assert in_new_thread(lambda: config.enable_x64.value) is False
    assert asyncio.run(asyncio.to_thread(lambda: config.enable_x64.value)) is False


def test_a_global_change_reaches_running_threads_but_not_those_under_an_override():
    changed, seen = threading.Event(), {}
    ready = threading.Barrier(3)

    def watch(name, scope):
        with scope:
            before = (config.enable_x64.value, config.trace_context())
            ready.wait(10)
            changed.wait(10)
            seen[name] = (before, (config.enable_x64.value, config.trace_context()))

    threads = [
        threading.Thread(target=watch, args=("free", config.debug_nans(True))),
        threading.Thread(target=watch, args=("overridden", config.enable_x64(False))),
    ]
    for thread in threads:
        thread.start()
    ready.wait(10)
    config.update("enable_x64", True)
    changed.set()
    for thread in threads:
        thread.join()
    assert [value for value, _ in seen["free"]] == [False, True]
    assert [value for value, _ in seen["overridden"]] == [False, False]
    assert seen["free"][0][1] is not seen["free"][1][1]
    assert seen["overridden"][0][1] is seen["overridden"][1][1]


def test_equal_trace_contexts_are_one_object_and_hash_by_identity():
    outside = config.trace_context()
    with config.enable_x64(True):
        inside = config.trace_context()
        assert in_new_thread(config.trace_context) is outside
    assert inside is not outside
    assert inside != outside
    assert config.trace_context() is outside
    config.update("enable_x64", True)
    assert config.trace_context() is inside
    assert hash(inside) == object.__hash__(inside)


def test_each_option_in_the_cache_key_changes_the_context_and_no_other_does():
    other = {
        "default_device": "cpu", "compilation_cache_dir": "/c", "compilation_cache_max_size": 1,
        "persistent_cache_min_compile_time_secs": 1, "persistent_cache_min_entry_size_bytes": 1,
    }  # fmt: skip
    outside = config.trace_context()
    for name, option in config.options().items():
        value = other.get(name)
        if not (value or option.choices or option.kind is bool):
            continue  # of another package, which this one does not know
        if isinstance(option, config.ProcessOption):
            continue  # it has no value for a block
        if value is None and option.kind is bool:
            value = not option.value
        elif value is None:
            value = next(choice for choice in option.choices if choice != option.value)
        with option(value):
            assert (config.trace_context() is not outside) == option.in_cache_key, name
        assert config.trace_context() is outside


def test_an_option_that_is_defined_later_makes_another_context_by_its_value_alone():
    before = config.trace_context()
    option = config.define(
        config.Option("of_a_late_import", False, "an option", kind=bool, in_cache_key=True)
    )
    try:
        assert config.trace_context() is before
        with option(True):
            assert config.trace_context() is not before
        with config.enable_x64(not config.enable_x64.value):
            inside = config.trace_context()
            assert inside is not before
            with option(True):
                assert config.trace_context() not in (before, inside)
        assert config.trace_context() is before
    finally:
        config._names_in_cache_key.remove(option.name)
        del config._option_by_name[option.name]
        delattr(config._Values, option.name)
        config._Values.epoch += 1


def test_the_options_that_change_a_program_enter_the_cache_key():
    keyed = {name for name, option in config.options().items() if option.in_cache_key}
    assert {"enable_x64", "default_matmul_precision", "threefry_partitionable"} <= keyed
    assert not keyed & {"log_compiles", "explain_cache_misses", "transfer_guard"}


def test_transfer_guard_sets_its_three_directions():
    with config.transfer_guard("disallow"):
        assert config.transfer_guard_host_to_device.value == "disallow"
        with config.transfer_guard_device_to_host("allow"):
            assert config.transfer_guard_device_to_host.value == "allow"
            assert config.transfer_guard_device_to_device.value == "disallow"
    assert config.transfer_guard_host_to_device.value == "allow"
    config.update("transfer_guard", "log")
    assert config.transfer_guard_device_to_device.value == "log"


def test_every_option_has_a_typed_attribute_a_default_it_takes_and_a_doc():
    own = {n: o for n, o in config.options().items() if hasattr(config, n)}
    assert len(own) >= 20  # the others were defined by packages that are imported already
    for name, option in own.items():
        assert getattr(config, name) is option
        assert name in config._Values.__annotations__
        assert option.check(option.default) == option.default
        assert option.doc
        assert repr(option.value) in repr(option)
    with pytest.raises(TypeError):
        config.options()["new"] = config.enable_x64


def test_packages_define_options_once():
    option = config.Option("test_only_lines", 3, "How many lines.", kind=int)
    try:
        assert config.define(option) is option
        assert config.read("test_only_lines") == 3
        assert option.parse(" 12 ") == 12
        config.update("test_only_lines", 4)
        with pytest.raises(ValueError, match="'test_only_lines' is taken"):
            config.define(option)
        with pytest.raises(TypeError, match=r"expected +int"):
            config.update("test_only_lines", "4")
    finally:
        del config._option_by_name["test_only_lines"], config._Values.test_only_lines


@pytest.mark.parametrize(("text", "value"), [("1", True), ("True", True), ("off", False)])
def test_the_text_of_a_flag_is_understood(text, value):
    assert config.enable_x64.parse(text) is value


def test_environment_variables_set_the_starting_values():
    run = run_python(
        "from xprim import config as c\n"
        "print(c.read('enable_x64'), c.read('default_matmul_precision'), c.read('default_device'),"
        " c.read('transfer_guard_device_to_host'), c.read('transfer_guard_host_to_device'))",
        XSTACK_ENABLE_X64="yes",
        XSTACK_DEFAULT_MATMUL_PRECISION="highest",
        XSTACK_DEFAULT_DEVICE="cpu",
        XSTACK_TRANSFER_GUARD="log",
        XSTACK_TRANSFER_GUARD_HOST_TO_DEVICE="allow",
    )
    assert run.stdout.split() == ["True", "highest", "cpu", "log", "allow"], run.stderr


def test_an_environment_variable_with_a_wrong_value_is_named():
    run = run_python("from xprim import config", XSTACK_ENABLE_X64="maybe")
    assert run.returncode != 0
    assert "ValueError: XSTACK_ENABLE_X64: the option does not take this value." in run.stderr
    assert "got       'maybe'" in run.stderr


def test_a_generator_closed_inside_another_scope_restores_its_own_option():
    def generate():
        with config.debug_nans(True):
            yield config.debug_nans.value

    generator = generate()
    assert next(generator) is True
    with config.enable_x64(True):
        generator.close()
        assert config.enable_x64.value
    assert not config.debug_nans.value


def test_an_option_is_one_object_also_where_it_is_copied_or_pickled():
    option = config.debug_nans
    assert copy.copy(option) is option and copy.deepcopy([option])[0] is option
    assert pickle.loads(pickle.dumps(option)) is option


def test_help_of_an_option_says_what_it_does_and_how_it_is_set():
    text = pydoc.render_doc(config.transfer_guard, renderer=pydoc.plaintext)
    for words in (config.transfer_guard.doc, "By default 'allow'. One of 'allow', 'log'",
                  "config.update('transfer_guard', value)", "XSTACK_TRANSFER_GUARD"):  # fmt: skip
        assert words in text
    assert config.Option.__doc__.startswith("One option: ")
    assert "= <not given>" in str(inspect.signature(config.debug_nans))


def test_quiet_calls_inside_of_a_quiet_call():
    def inner(number):
        return state.run_quietly(lambda: 1 / np.float64(number))

    before = state.run_quietly
    with pytest.raises(RuntimeError, match="cannot enter context"):
        before(inner, 0)
    assert before(state.run_inside_quiet_call, inner, 0) == np.inf  # no warning is an error
    with pytest.raises(ZeroDivisionError):
        before(state.run_inside_quiet_call, lambda: 1 / 0)
    assert state.run_quietly == before


@pytest.mark.parametrize(("name", "value", "other"), [
    ("cpu_collectives_implementation", "gloo", "mpi"), ("use_shardy_partitioner", True, False),
    ("threefry_gpu_kernel_lowering", False, True),
])  # fmt: skip
def test_an_option_with_one_value_takes_it_and_refuses_another(name, value, other):
    config.update(f"jax_{name}", value)
    assert config.read(name) == value
    with pytest.raises(ValueError, match=rf"config\.{name}: the option does not take") as caught:
        config.update(name, other)
    assert f"expected  {value!r}: " in str(caught.value)
    with pytest.raises(TypeError, match="it is one for the process"):
        config.option_named(name, "test")(value)


def test_the_help_of_an_option_of_the_process_says_what_it_does_and_names_no_block():
    text = config.option_named("use_shardy_partitioner", "test").__doc__
    assert text.startswith("Shardy divides programs") and "is for a block" not in text
    assert "`with config.enable_x64(value):` is for a block." in (
        config.option_named("enable_x64", "test").__doc__
    )
