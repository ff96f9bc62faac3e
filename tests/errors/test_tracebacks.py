"""Tracebacks show the user's frames and none of the library's, unless they are asked for."""

import contextlib
import linecache
import pickle
import re
import sys
import traceback
import types

import numpy as np
import pytest

import xstack
import xstack.dlpack
import xstack.experimental.checkify
import xstack.experimental.ode
import xstack.experimental.sparse
import xstack.export
import xstack.numpy as xnp
import xstack.scipy.interpolate
import xstack.scipy.linalg
import xstack.scipy.spatial.transform
import xstack.scipy.special
import xstack.scipy.stats
import xtree
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
    assert "call_vmapped" in found
    assert len(found) > 5


def test_a_note_says_how_to_see_the_frames_that_were_removed():
    with xstack.config.traceback_filtering("remove_frames"):
        error, found = frames_of(jit(vmap(loss)), ROWS)
    assert "loss" in found
    assert len(error.__notes__) == 1
    assert "XSTACK_TRACEBACK_FILTERING=off" in error.__notes__[0]


@contextlib.contextmanager
def in_ipython():
    """Let the process look like one that IPython runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=object))
        yield


def is_marked(frame):
    return "__tracebackhide__" in frame.f_locals


def marks(function):
    """Return the functions in the traceback of a wrong call, and whether each is marked."""
    with pytest.raises(TypeError) as caught:
        function(ROWS)
    walk = list(traceback.walk_tb(caught.value.__traceback__))[1:]
    return [(frame.f_code.co_name, is_marked(frame)) for frame, _ in walk]


def test_frames_are_only_marked_for_tools_that_hide_marked_frames():
    with xstack.config.traceback_filtering("tracebackhide"):
        found = marks(vmap(loss))
    assert ("call_vmapped", True) in found
    assert ("loss", False) in found
    assert found[-1][1]
    assert marks(vmap(loss)) == [("loss", False)]


@pytest.mark.parametrize("mode", ["auto", "tracebackhide"])
def test_ipython_gets_marked_frames_between_those_of_the_user_and_none_after_them(mode):
    # It leaves marked frames out, but never the last frame.
    with in_ipython(), xstack.config.traceback_filtering(mode):
        found = marks(scanned)
        detour = marks(lambda x: xnp.concatenate([x, xnp.ones(3)]))
    assert [name for name, marked in found if not marked] == ["scanned", "<lambda>", "loss"]
    assert found[-1] == ("loss", False)
    assert any(marked for _, marked in found)
    assert detour == [("<lambda>", False)]


def test_ipython_is_given_no_detour_of_the_library_as_a_cause():
    with in_ipython(), pytest.raises(TypeError) as caught:
        grad(lambda x: x)("text")
    error = caught.value
    assert error.__context__ is None or error.__suppress_context__


CELL = """
def loss(x):
    return xnp.dot(x, xnp.ones(4))
def scanned(x):
    return lax.scan(lambda total, row: (total + loss(row), None), 0.0, x)[0]
def called(x):
    return CALL
called(xnp.ones((3, 5)))
"""


@pytest.mark.parametrize(
    ("call", "last"),
    [
        ("loss(x)", "xnp.dot(x"),
        ("vmap(loss)(x)", "xnp.dot(x"),
        ("jit(grad(scanned))(x)", "xnp.dot(x"),
        ("x @ x", "x @ x"),
        ("xnp.zeros((3.5, 'a'))", "xnp.zeros((3.5"),
        ("jit(lambda v: v if v.sum() > 0 else -v)(x)", "v.sum() > 0"),
    ],
)
def test_what_ipython_prints_ends_in_the_cell_of_the_user(call, last, monkeypatch):
    ultratb = pytest.importorskip("IPython.core.ultratb")
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", object)
    cell = CELL.replace("CALL", call)
    name = f"<cell {call}>"
    monkeypatch.setitem(linecache.cache, name, (len(cell), None, cell.splitlines(True), name))
    names = {"xnp": xnp, "lax": lax, "jit": jit, "grad": grad, "vmap": vmap}
    with pytest.raises((TypeError, ValueError)) as caught:
        exec(compile(cell, name, "exec"), names)
    error = caught.value
    printed = ultratb.VerboseTB(include_vars=False).text(
        type(error), error, error.__traceback__.tb_next
    )
    printed = re.sub(r"\x1b\[[0-9;]*m", "", printed)
    frames, message = printed.split(f"{type(error).__name__}: ", 1)
    assert "packages" not in frames and "site-packages" not in frames
    assert last in [line for line in frames.splitlines() if line.startswith("---->")][-1]
    assert str(error).splitlines()[0] in message


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


@xstack.custom_jvp
def without_tangent(v):
    return v


@without_tangent.defjvp
def _(primals, tangents):
    return primals[0]


@xstack.custom_jvp
def without_rule(v):
    return v


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
jit(lambda v: {1: 2}[v])(1)
jit(lambda v: v in {1, 2})(1)
xstack.config.enable_x46
xstack.ShapeDtypeStruct((3,), 'flaot32')
xnp.arange(x)
xnp.histogram(x, bins=-1)
x.view(3)
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
lax.add(x, xnp.ones(4))
lax.mul(x, 'a')
lax.sin('a')
lax.sin(1)
lax.pow(x, None)
lax.dot(x, x)
lax.dot_general(x, x, (((0,), (1,)), ((), ())))
lax.reshape(x, (7,))
lax.transpose(x, (0, 0))
lax.broadcast_in_dim(x, (2,), (0,))
lax.concatenate([x, xnp.ones(3)], 0)
lax.reduce(x, 0.0, 3, (0,))
lax.sort(x, dimension=5)
lax.top_k(x, 99)
lax.cumsum(x, 4)
lax.select(x, x, x)
lax.clamp(x, x, xnp.ones(9))
lax.iota('nonsense', 3)
lax.fori_loop(0, 'a', f, x)
lax.switch(0, [], x)
lax.map(3, x)
lax.associative_scan(lambda a, b: a @ b, x)
lax.bitcast_convert_type(x, 'nope')
lax.cond('a', f, f, x)
xtree.map(f, [x], (x,))
xtree.map(lambda a, b: a + b, {'a': x}, {'a': x, 'b': x})
xtree.map(lambda a: a + xnp.ones(9), [x])
xtree.unflatten(xtree.structure([1, 2]), [1])
xtree.map(3, [x])
xtree.reduce(lambda a, b: a @ b, [x, x])
xtree.transpose(xtree.structure([1]), xtree.structure([1, 2]), [1])
random.split(k, -1)
random.uniform(k, (2,), minval='a')
random.bernoulli(k, 'a')
random.permutation(k, 'a')
random.categorical(k, xnp.ones(3), shape=(2, 2), axis=5)
random.key('a')
random.fold_in(k, 'a')
nn.softmax(x, axis=9)
nn.relu('a')
nn.gelu(None)
nn.initializers.normal()(k, 'a')
nn.logsumexp(x, axis=7)
nn.standardize(x, axis=9)
xsp.special.gamma('a')
xsp.special.logsumexp(x, axis=9)
xsp.linalg.solve(x, x)
xsp.linalg.cho_solve((x, True), x)
jit(lambda v: missing)(x)
grad(lambda v: v['a'])(x)
vmap(lambda v: v.nothing)(x)
vmap(lambda a, b: a)(x, xnp.ones(5))
grad(lambda v: 1 / 0)(1.0)
jit(grad(lambda v: [1][5]))(1.0)
lax.scan(lambda c, v: (c, missing), 0.0, x)
lax.scan(lambda c, v: c, 0.0, x)
lax.while_loop(lambda v: True, lambda v: v.nothing, 1.0)
lax.cond(True, lambda v: v.nothing, lambda v: v, 1.0)
grad(cj)(1.0)
cj2(1.0)
xstack.custom_jvp(3)
xstack.linearize(lambda v: v.nothing, 1.0)
xstack.hessian(lambda v: v.nothing)(1.0)
xstack.shard_map(f, mesh=mesh, in_specs=P('q'), out_specs=P())(x)
xstack.make_mesh((99,), ('i',))
xstack.tree.map(f, [x], (x,))
jit(f).lower('a')
jit(f).lower(x).compile()(xnp.ones(7))
xnp.vectorize(lambda a: a.nothing)(x)
xnp.piecewise(x, [x > 0], [lambda v: v.nothing])
xnp.apply_along_axis(lambda v: v.nothing, 0, x)
xnp.pad(x, 3, mode='nope')
x.at['a'].set(1)
x.at[0].set(xnp.ones(9))
x.nothing
x[0] = 1
x.T @ x.T
-xnp.array(True)
x << 2
round(x, 'a')
int(x)
len(xnp.float32(3))
list(xnp.float32(3))
hash(x)
x.sum(axis='a')
x.mean(axis=9)
divmod(x, 'a')
xnp.float32('a')
xnp.concatenate(3)
xnp.split(x, 4)
xnp.tensordot(x, x, axes=3)
xstack.vjp(lambda v: v.nothing, 1.0)
xstack.jvp(lambda v: v.nothing, (1.0,), (1.0,))
xstack.checkpoint(lambda v: v.nothing)(1.0)
xstack.value_and_grad(lambda v: v.nothing)(1.0)
xstack.eval_shape(lambda v: v.nothing, 1.0)
xnp.set_printoptions(nonsense=1)
xstack.nn.one_hot('a', 3)
xstack.ops.segment_sum(x, 'a')
xstack.debug.print('{nope}', x=x)
xstack.config.update('nope', 1)
xstack.config.jax_nope = 1
xnp.ndarray(3)
xnp.bitwise_and(x, x)
xnp.add.reduce('a')
xnp.add(x)
xnp.add(x, x, x, x, x)
xnp.sum()
lax.add(x)
grad()
np.add(x, jit)
np.add(x, np.ones(7))
np.sum(x, axis=9)
np.concatenate([x, np.ones(7)])
np.linalg.inv(x)
np.add.at(x, 0, 1)
np.add(x, x, out=np.ones(2))
np.asarray(x, dtype='nope')
x.__array__('nope')
x.__array__(float, copy=False)
complex(x)
range(x)
[1][x]
x ** 'a'
pow(x, 2, 5)
f'{x:nope}'
format(xnp.float32(1), 'zz')
memoryview(k)
x.__array_namespace__(api_version='1')
x.addressable_data(9)
x.tolist(3)
jit(lambda v: np.add(v, 'a'))(x)
jit(lambda v: v.__array__())(x)
jit(lambda v: f'{v:3.2f}')(x)
vmap(f, in_axes=(0, 0))(x)
""".strip().split("\n")


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_a_wrong_call_shows_no_frame_of_the_library(call):
    names = {"np": np, "xstack": xstack, "xnp": xnp, "lax": lax, "nn": xstack.nn, "jit": jit,
             "grad": grad, "vmap": vmap, "random": xstack.random, "x": xnp.ones((2, 3)),
             "k": xstack.random.key(0), "f": xnp.sum, "xtree": xtree,
             "xsp": xstack.scipy, "cj": without_tangent, "cj2": without_rule,
             "mesh": xstack.make_mesh((1,), ("i",)), "P": xstack.P}  # fmt: skip
    with pytest.raises(Exception, match=r"\S") as caught:
        exec(compile(call, "<user>", "exec"), names)
    frames = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert [
        f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename != "<user>"
    ] == []
    with in_ipython(), pytest.raises(Exception, match=r"\S") as caught:
        exec(compile(call, "<user>", "exec"), names)
    entries = list(traceback.walk_tb(caught.value.__traceback__))[1:]
    assert entries[-1][0].f_code.co_filename == "<user>"
    shown = [entry.f_code.co_filename for entry, _ in entries if not is_marked(entry)]
    assert set(shown) == {"<user>"}


METHODS = sorted(
    name
    for name in dir(xstack.Array)
    if not name.startswith("_") and callable(getattr(xnp.ones((2, 3)), name, None))
)


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_call_of_a_method_shows_no_frame_of_the_library(name):
    method = getattr(xnp.ones((2, 3)), name)
    found = set()
    for given in ("object()", "'a', 'b'", "-77", "{}", "0, 1, 2, 3, 4, 5, 6, 7, 8"):
        try:
            exec(compile(f"method({given})", "<user>", "exec"), {"method": method})
        except Exception as error:
            found |= {
                (frame.filename, given) for frame in traceback.extract_tb(error.__traceback__)[1:]
            }
    assert {file for file, _ in found} <= {"<user>"}, found


READERS = [name for name in sorted(dir(xnp.ones(3)))
           if name not in ("__buffer__", "__class__", "__getstate__", "__init_subclass__",
                           "__subclasshook__", "_item", "to_host", "to_stored")]  # fmt: skip


def test_no_use_of_a_deleted_array_shows_a_frame_of_the_library():
    deleted = xstack.device_put(xnp.ones((2, 3)), xstack.devices()[1])
    deleted.delete()
    uses = [f"d.{name}{given}" for name in READERS for given in ("", "()", "(1)", "('a')")]
    uses += ["np.asarray(d)", "memoryview(d)", "np.array(d, dtype=float)", "d + 1", "xnp.sin(d)",
             "jit(xnp.sin)(d)", "np.sin(d)", "pickle.dumps(d)", "xstack.device_get(d)"]  # fmt: skip
    names = {"np": np, "xnp": xnp, "xstack": xstack, "jit": jit, "pickle": pickle, "d": deleted}
    shown, count = {}, 0
    for use in uses:
        try:
            exec(compile(use, "<user>", "exec"), names)
        except Exception as error:
            count += 1
            frames = traceback.extract_tb(error.__traceback__)[1:]
            files = {frame.filename for frame in frames} - {"<user>"}
            if files:
                shown[use] = files
    assert count > 300
    assert shown == {}


def test_a_wrong_call_shows_its_frames_when_filtering_is_off():
    with xstack.config.traceback_filtering("off"):
        _, found = frames_of(xnp.sin, "a")
    assert "array_function" in found and len(found) > 3


@pytest.mark.parametrize(
    "use",
    [
        lambda: xstack.shard_mapp,
        lambda: xstack.numpy.snh,
        lambda: xstack.numpy.linalg.nrm,
        lambda: xstack.config.enable_x46,
        lambda: xnp.ones(3).add,
        lambda: jit(lambda x: x.unsafe_buffer_pointer())(xnp.ones(3)),
    ],
)
def test_an_unknown_name_shows_one_suggestion_and_no_frame_of_the_library(use):
    with pytest.raises(AttributeError) as caught:
        use()
    last = traceback.format_exception(caught.value)[-1]
    assert last.count("hint") == 1 and last.lower().count("did you mean") <= 1
    files = {entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}


def wrong_uses_of_objects():
    """Methods, operators and constructors of later parts, each given what it cannot take."""
    sparse = xstack.experimental.sparse
    m = sparse.BCOO.fromdense(xnp.eye(2))
    rotation = xstack.scipy.spatial.transform.Rotation
    lowered = jit(lambda x: x + 1).lower(1.0)
    exported = xstack.export.export(jit(lambda x: x + 1))(1.0)
    kde = xstack.scipy.stats.gaussian_kde(xnp.arange(4.0))
    grid = xstack.scipy.interpolate.RegularGridInterpolator((xnp.arange(2.0),), xnp.ones(2))
    checkify = xstack.experimental.checkify
    mesh = xstack.make_mesh((1,), ("x",), devices=xstack.devices()[:1])
    placed = xstack.NamedSharding(mesh, xstack.P("x"))
    error, _ = checkify.checkify(lambda: checkify.check(False, "no"))()
    return {
        "a product": lambda: m @ xnp.ones(3),
        "an index": lambda: m[0, 9],
        "a shape": lambda: m.reshape(7),
        "parts": lambda: sparse.BCOO((xnp.ones(2), xnp.zeros((3, 1), int)), shape=(3,)),
        "fromdense": lambda: sparse.BCOO.fromdense(xnp.eye(2), nse="a"),
        "rows": lambda: sparse.BCSR.fromdense(xnp.ones(3)),
        "a rotation": lambda: rotation.from_quat(xnp.ones(3)),
        "euler": lambda: rotation.from_euler("q", 1.0),
        "a density": lambda: kde(xnp.ones((3, 3))),
        "a grid": lambda: grid(xnp.ones((2, 3))),
        "a dialect": lambda: lowered.as_text("hloo"),
        "an option of XLA": lambda: lowered.compile({"no_such_option": 1}),
        "exported": lambda: exported.call(xnp.ones(3)),
        "a check": error.throw,
        "a mesh": lambda: xstack.set_mesh("x"),
        "a spec": lambda: xstack.P("x").update(foo=1),
        "a sharding": lambda: placed.update(spec=3),
        "a shape of pieces": lambda: placed.shard_shape(("a",)),
        "leaves": lambda: xstack.tree.structure((1, 2)).unflatten([1]),
        "a prefix": lambda: xstack.tree.structure((1, 2)).flatten_up_to(3),
        "a rule": lambda: xstack.custom_batching.custom_vmap(loss).def_vmap(3),
        "a derivative": lambda: xstack.experimental.ode.odeint(3, xnp.ones(2), xnp.arange(2.0)),
        "strides": lambda: lax.conv_general_dilated(xnp.eye(2), xnp.eye(2), (1,), "SAME"),
        "a lender": lambda: xstack.dlpack.from_dlpack(3),
    }


WRONG_USES = wrong_uses_of_objects()


@pytest.mark.parametrize("name", WRONG_USES)
def test_a_wrong_use_of_an_object_shows_no_frame_of_the_library(name):
    with pytest.raises(Exception) as caught:
        WRONG_USES[name]()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
