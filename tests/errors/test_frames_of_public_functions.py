"""Whatever a public function is wrongly called with, its error ends in the frames of the user."""

import traceback
from typing import Any

import pytest

import xstack
from tests.public_names import kept, resolve

# Modules of no functions; what only tests use.
_WITHOUT = ("interpreters", "_src", "test_util")
# What starts something, waits, or changes the state of the process.
_WITH_EFFECTS = ("distributed", "profiler", "monitoring", "testing", "config", "tools", "errors",
                 "experimental.multihost_utils", "experimental.io_callback")  # fmt: skip
_SKIPPED = ("breakpoint", "clear_backends", "clear_caches", "effects_barrier",
            "print_environment_info", "set_mesh", "use_mesh", "set_printoptions", "live_arrays",
            "Ref",  # made by `new_ref`
            "Tolerance")  # a dataclass, whose `__init__` Python writes  # fmt: skip
_WRONG = ("object()", "'a', 'b'", "-77", "None", "3, 'flaot32'", "*'abcdefgh'")


def _is_python_s_own(value):
    """Whether Python itself makes the error: of an enumeration, of an abstract class, of `Any`."""
    return value is Any or (
        isinstance(value, type)
        and (
            issubclass(value, BaseException)
            or hasattr(value, "__members__")
            or getattr(value, "_is_protocol", False)
        )
    )


def _functions():
    seen = set()
    for holder in kept():
        module = holder.removeprefix("xstack").removeprefix(".")
        if module.startswith((*_WITHOUT, *_WITH_EFFECTS)) or "Array" in module:
            continue
        try:
            found = resolve(holder)
        except (ImportError, AttributeError):  # of an optional distribution
            continue
        if isinstance(found, type):
            continue
        for name in sorted(dir(found)):
            value = getattr(found, name, None)
            if (name.startswith("_") or name in _SKIPPED or not callable(value)
                    or id(value) in seen or _is_python_s_own(value)):  # fmt: skip
                continue
            seen.add(id(value))
            yield f"{module}.{name}".removeprefix("."), value


def _frames(function, given):
    """Return the files of the frames, the caller's aside, that an error of a call shows."""
    try:
        exec(compile(f"function({given})", "<user>", "exec"), {"function": function})
    except Exception as error:
        return {frame.filename for frame in traceback.extract_tb(error.__traceback__)[1:]}
    return set()


@pytest.mark.filterwarnings("ignore")
def test_no_wrong_call_of_a_public_function_shows_frames_of_the_library(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some write files
    shown, count = {}, 0
    for path, function in _functions():
        for given in _WRONG:
            count += 1
            for file in _frames(function, given) - {"<user>"}:
                shown[path] = f"{given}: {file}"
    assert count > 7_500
    assert shown == {}


def test_layers_optimizers_and_schedules_show_no_frames_either():
    from xstack.example_libraries import optimizers, stax

    init, apply = stax.serial(stax.Dense(3), stax.Relu)
    shown = [
        _frames(init, "object(), 'a'"),
        _frames(apply, "[], 'a', 'b'"),
        _frames(apply, "[(1, 2), ()], 'a'"),
        _frames(stax.Relu[1], "(), 'a'"),
        *[_frames(part, "'a', 'b', 'c'") for part in optimizers.adam(0.1)],
        _frames(optimizers.momentum(0.1, 0.9).update_fn, "0, {}, None"),
        _frames(optimizers.inverse_time_decay(0.1, 1, 0.5), "'a'"),
    ]
    assert shown == [{"<user>"}] * len(shown)


def test_what_the_library_calls_for_itself_does_not_show_either():
    assert _frames(xstack.scipy.stats.norm.pdf, "") == {"<user>"}


def test_what_a_user_calls_within_a_transformed_function_shows():
    import inspect

    def wrong(x):
        return inspect.signature(wrong).bind(x, x)

    found = _frames(xstack.vmap(wrong), "__import__('numpy').ones(3)")
    assert found == {"<user>", __file__, inspect.__file__}
