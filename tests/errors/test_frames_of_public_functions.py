"""Whatever a public function is wrongly called with, its error ends in the frames of the user."""

import traceback

import pytest

import xstack
from tests.public_names import kept, resolve

# What writers of libraries use, whose callers are on the way of programs; and programs that are
# there to be read and changed.
_FOR_LIBRARIES = ("core", "extend", "interpreters", "_src", "typing", "tree_util", "api_util",
                  "example_libraries", "experimental.sparse", "experimental.layout",
                  "test_util")  # fmt: skip
# What starts something, waits, or changes the state of the process.
_WITH_EFFECTS = ("distributed", "profiler", "monitoring", "testing", "config", "tools", "errors",
                 "experimental.multihost_utils", "experimental.io_callback")  # fmt: skip
_SKIPPED = ("breakpoint", "clear_backends", "clear_caches", "effects_barrier",
            "print_environment_info", "set_mesh", "use_mesh", "set_printoptions", "live_arrays",
            "Ref",  # made by `new_ref`
            "Tolerance")  # a dataclass, whose `__init__` Python writes  # fmt: skip
_WRONG = ("object()", "'a', 'b'", "-77", "None", "3, 'flaot32'", "*'abcdefgh'")


def _is_python_s_own(value):
    """Whether Python itself makes the error: of an enumeration, of an abstract class."""
    return isinstance(value, type) and (
        issubclass(value, BaseException)
        or hasattr(value, "__members__")
        or getattr(value, "_is_protocol", False)
    )


def _functions():
    seen = set()
    for holder in kept():
        module = holder.removeprefix("xstack").removeprefix(".")
        if module.startswith((*_FOR_LIBRARIES, *_WITH_EFFECTS)) or "Array" in module:
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
    assert count > 6_000
    assert shown == {}


def test_what_the_library_calls_for_itself_does_not_show_either():
    assert _frames(xstack.scipy.stats.norm.pdf, "") == {"<user>"}


def test_what_a_user_calls_within_a_transformed_function_shows():
    import inspect

    def wrong(x):
        return inspect.signature(wrong).bind(x, x)

    found = _frames(xstack.vmap(wrong), "__import__('numpy').ones(3)")
    assert found == {"<user>", __file__, inspect.__file__}
