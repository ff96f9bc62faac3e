"""Tracebacks show the user's frames and none of the library's, unless they are asked for."""

import sys
import traceback
import types

import pytest

import xstack
import xstack.numpy as xnp
from xstack import grad, jit, lax, vmap


def loss(x):
    return xnp.dot(x, xnp.ones(4))


def scanned(x):
    return lax.scan(lambda total, row: (total + loss(row), None), 0.0, x)[0]


def nested(x):
    return jit(grad(lambda v: vmap(loss)(v).sum()))(x)


def frames_of(function, *args):
    """Return what a function raises, and the names of the functions in its traceback."""
    with pytest.raises(TypeError) as caught:
        function(*args)
    frames = traceback.extract_tb(caught.value.__traceback__)
    return caught.value, [frame.name for frame in frames][1:]


ROWS = xnp.ones((3, 5))

FAST_PATHS = ("jitted", "operator")  # these stand before all others, and catch nothing


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (vmap(loss), ["loss"]),
        (scanned, ["scanned", "<lambda>", "loss"]),
        (nested, ["nested", "<lambda>", "loss"]),
        (lambda x: x[0] + xnp.ones(4), ["<lambda>"]),
        (lambda x: grad(lambda v: v)(x), ["<lambda>"]),
    ],
    ids=["vmap", "scan", "jit of grad of vmap", "operator", "grad of no scalar"],
)
def test_a_traceback_holds_only_frames_of_the_user(function, names):
    _, found = frames_of(function, ROWS)
    assert [name for name in found if name not in FAST_PATHS] == names


def test_no_frame_is_left_out_when_filtering_is_off():
    with xstack.config.traceback_filtering("off"):
        _, found = frames_of(vmap(loss), ROWS)
    assert "vmapped" in found
    assert len(found) > 5


def test_a_note_says_how_to_see_the_frames_that_were_removed():
    with xstack.config.traceback_filtering("remove_frames"):
        error, found = frames_of(jit(vmap(loss)), ROWS)
    assert "loss" in found
    assert len(error.__notes__) == 1
    assert "XSTACK_TRACEBACK_FILTERING=off" in error.__notes__[0]


def test_frames_are_only_marked_for_tools_that_hide_marked_frames(monkeypatch):
    def marks():
        with pytest.raises(TypeError) as caught:
            vmap(loss)(ROWS)
        walk = traceback.walk_tb(caught.value.__traceback__)
        return {f.f_code.co_name: "__tracebackhide__" in f.f_locals for f, _ in walk}

    with xstack.config.traceback_filtering("tracebackhide"):
        found = marks()
    assert found["vmapped"]
    assert not found["loss"]
    assert "vmapped" not in marks()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=object))
    assert marks()["vmapped"]


def test_an_error_of_the_user_keeps_its_type_and_its_cause():
    def fails(x):
        try:
            return {}["missing"]
        except KeyError as error:
            raise RuntimeError("no data") from error

    with pytest.raises(RuntimeError, match="no data") as caught:
        jit(vmap(fails))(ROWS)
    assert isinstance(caught.value.__cause__, KeyError)


def test_detours_of_the_library_do_not_show_as_causes():
    for refused in (
        lambda: xnp.concatenate([ROWS, xnp.ones(3)]),
        lambda: ROWS.reshape(4, 4),
        lambda: grad(lambda x: x)("text"),
        lambda: vmap(lambda a, b: a)(ROWS, "text"),
    ):
        with pytest.raises(TypeError) as caught:
            refused()
        error = caught.value
        assert error.__cause__ is None
        assert error.__context__ is None or error.__suppress_context__
