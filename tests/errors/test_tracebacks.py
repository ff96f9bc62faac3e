"""Tracebacks show the user's frames and none of the library's, unless they are asked for."""

import sys
import traceback
import types

import numpy as np
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
    assert found == names


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


WRONG_CALLS = """
xnp.reshape(x, (4, 4))
x.reshape(5)
x + xnp.ones(4)
x @ x
xnp.dot(x, x)
xnp.stack([x, xnp.ones(2)])
x[5]
x[0, 0, 0]
x['a']
x[1.5]
xnp.zeros('a')
xnp.zeros(-1)
xnp.sum(x, axis=7)
xnp.sum([1, 2])
xnp.sin('a')
xnp.sin(None)
x.astype('nonsense')
xnp.array(object())
xnp.array([[1, 2], [3]])
float(x)
bool(x)
xnp.linalg.inv(x)
xnp.linalg.cholesky(xnp.ones(3))
xnp.einsum('ij,jk', x, x)
xnp.where(x)[0].at[0].set('a')
xnp.arange(0, 1, 0)
xnp.broadcast_to(x, (4, 4))
xnp.take(x, 1.5)
lax.dynamic_slice(x, (0,), (1,))
lax.scan(lambda c, v: (c, c, c), 0.0, x)
lax.cond(True, lambda: 1.0, lambda: (1, 2))
lax.while_loop(lambda v: v, lambda v: v, x)
lax.psum(x, 'i')
grad(lambda v: v)(x)
grad(f)(1)
grad(3)
jit(3)
vmap(f)(1.0)
vmap(f, in_axes=5)(x)
jit(lambda v: v + xnp.ones(4))(x)
jit(lambda v: 1 if v > 0 else 2)(1.0)
jit(lambda v: np.asarray(v))(1.0)
jit(lambda v: xnp.zeros(v))(3)
jit(lambda v: v, static_argnums=0)([1])
jit(f)('a')
jit(f)(x, 3)
random.normal('a')
random.normal(k, 'a')
random.split(3.5)
random.choice(k, x, (2,), p=xnp.ones(9))
nn.one_hot(x, -1)
xstack.device_put('a')
xstack.jvp(f, (x,), (1,))
xstack.vjp(f, x)[1](x)
xstack.jacfwd(f)(1)
xstack.checkpoint(lambda v: v + xnp.ones(4))(x)
xstack.make_jaxpr(lambda v: v + xnp.ones(4))(x)
xstack.eval_shape(lambda v: v @ v, x)
xstack.pmap(f)(1.0)
jit(grad(lambda v: vmap(lambda r: r @ r.T)(v)))(x)
""".strip().split("\n")


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_a_wrong_call_shows_no_frame_of_the_library(call):
    names = {"np": np, "xstack": xstack, "xnp": xnp, "lax": lax, "nn": xstack.nn, "jit": jit,
             "grad": grad, "vmap": vmap, "random": xstack.random, "x": xnp.ones((2, 3)),
             "k": xstack.random.key(0), "f": xnp.sum}  # fmt: skip
    with pytest.raises(Exception, match=r"\S") as caught:
        eval(compile(call, "<user>", "eval"), names)
    frames = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert [
        f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename != "<user>"
    ] == []


def test_a_wrong_call_shows_its_frames_when_filtering_is_off():
    with xstack.config.traceback_filtering("off"):
        _, found = frames_of(xnp.sin, "a")
    assert "array_function" in found and len(found) > 3
