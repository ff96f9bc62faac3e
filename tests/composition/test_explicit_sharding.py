"""Axes of type Explicit: shardings as parts of types, through operations and transformations."""

import functools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import xnp
import xrandom
from xad import checkpoint, custom_jvp, grad, jvp, vjp
from xbatch import vmap
from xjit import device_put, devices, jit
from xjit.sharding.rules import results_of
from xnp import lax
from xpar import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    ForbiddenCollectiveError,
    NamedSharding,
    P,
    ShardingTypeError,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    make_mesh,
    no_collectives,
    reshard,
    set_mesh,
    shard_map,
    use_abstract_mesh,
    with_sharding_constraint,
)
from xprim import (
    Primitive,
    ShapeDtypeStruct,
    dimension_names,
    eval_shape,
    make_jaxpr,
    shaped_array,
    typeof,
    undefined,
)
from xprim.errors import TracerBoolConversionError

HOST = np.arange(64, dtype=np.float32).reshape(8, 8) / 64


@pytest.fixture(autouse=True)
def mesh():
    if len(devices("cpu")) < 8:
        yield None
        return
    found = make_mesh((2, 4), ("x", "y"), AxisType.Explicit)
    with set_mesh(found):
        yield found


def spread(*parts):
    return device_put(HOST, P(*parts))


def type_of(value):
    return str(typeof(value)).removeprefix("float32")


_none = undefined("the test asks for no derivative")
strangers_totals_p = Primitive(
    "strangers_totals",
    shape=lambda x, *, axes: (
        shaped_array(tuple(n for d, n in enumerate(x.shape) if d not in axes), x.dtype),
    ),
    numpy=lambda x, *, axes: (x.sum(axes),),
    stablehlo=lambda b, operands, ins, outs, *, axes: b.traced(
        lambda x: [lax.reduce_sum(x, axes)], operands, ins, ("strangers_totals", axes)
    ),
    jvp=_none, transpose=_none, batch=_none,
    dimensions=dimension_names.without("axes"),
)  # fmt: skip

# what is done to x: float32[8@x,8@y], u: float32[8@x,8], v: float32[8,8@y], and the type it has
TYPES = {
    "a sine": (lambda x, u, v: lax.sin(x), "[8@x,8@y]"),
    "None gives way": (lambda x, u, v: u + v, "[8@x,8@y]"),
    "a Python number": (lambda x, u, v: 2 * x + 1, "[8@x,8@y]"),
    "a choice": (lambda x, u, v: xnp.where(x > 0, x, u), "[8@x,8@y]"),
    "a sum over a cut dimension": (lambda x, u, v: x.sum(0), "[8@y]"),
    "a sum over all": (lambda x, u, v: x.sum(), "[]"),
    "a maximum": (lambda x, u, v: x.max(1), "[8@x]"),
    "a product": (lambda x, u, v: u @ v, "[8@x,8@y]"),
    "a transposition": (lambda x, u, v: x.T, "[8@y,8@x]"),
    "a new dimension": (lambda x, u, v: x[:, None], "[8@x,1,8@y]"),
    "repeated": (lambda x, u, v: xnp.broadcast_to(u, (3, 8, 8)), "[3,8@x,8]"),
    "a split dimension": (lambda x, u, v: x.reshape(4, 2, 8), "[4@x,2,8@y]"),
    "merged dimensions": (lambda x, u, v: u.reshape(-1), "[64@x]"),
    "joined": (lambda x, u, v: xnp.concatenate([u, u], 1), "[8@x,16]"),
    "a slice of a whole dimension": (lambda x, u, v: u[:, 2:4], "[8@x,2]"),
    "an element of a whole dimension": (lambda x, u, v: u[:, 1], "[8@x]"),
    "rows by number": (lambda x, u, v: xnp.take(v, xnp.array([1, 0, 2]), 0), "[3,8@y]"),
    "padded": (lambda x, u, v: xnp.pad(u, ((0, 0), (1, 1))), "[8@x,10]"),
    "sorted": (lambda x, u, v: xnp.sort(u, 1), "[8@x,8]"),
    "summed up": (lambda x, u, v: xnp.cumsum(v, 0), "[8,8@y]"),
    "the place of the greatest": (lambda x, u, v: xnp.argmax(u, 1).astype("f4"), "[8@x]"),
    "a softmax": (lambda x, u, v: xnp.nn.softmax(x, 1), "[8@x,8@y]"),
    "a decomposition": (lambda x, u, v: xnp.linalg.qr(u.reshape(8, 2, 4))[1], "[8@x,2,4]"),
    "a Fourier transform": (lambda x, u, v: xnp.fft.fft(u).real, "[8@x,8]"),
    "a Fourier transform along a cut dimension": (lambda x, u, v: xnp.fft.fft(v).real, "[8,8@y]"),
    "a transform of both": (lambda x, u, v: xnp.fft.fft2(x).imag, "[8@x,8@y]"),
    "a place among cut elements": (lambda x, u, v: xnp.searchsorted(
        v[0], 0.05, method="compare_all").astype("f4"), "[]"),
    "a median": (lambda x, u, v: xnp.median(v, 0), "[8@y]"),
    "products of windows": (lambda x, u, v: lax.reduce_window(
        x, 1.0, lax.mul, (3, 3), (1, 1), "SAME"), "[8@x,8@y]"),
    "a solution": (lambda x, u, v: xnp.linalg.solve(np.eye(8, dtype="f4") + HOST, v), "[8,8@y]"),
    "a triangular solution": (lambda x, u, v: lax.linalg.triangular_solve(
        np.eye(8, dtype="f4") + HOST, u, lower=True), "[8@x,8]"),
    "the matrix of a diagonal": (lambda x, u, v: xnp.diag(u[:, 0]), "[8@x,8]"),
    "elements along lines": (lambda x, u, v: xnp.take_along_axis(
        xnp.asarray(HOST), (u > 0.5).astype("i4"), 1), "[8@x,8]"),
    "bits of all": (lambda x, u, v: lax.reduce_xor((v * 64).astype("i4"), (1,)).astype("f4"),
                    "[8]"),
    "zeros like it": (lambda x, u, v: xnp.zeros_like(x), "[8@x,8@y]"),
    "a loop": (lambda x, u, v: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + x, x), "[8@x,8@y]"),
    "a scan": (lambda x, u, v: lax.scan(lambda c, r: (c + r, c * r), v[0], v)[1], "[8,8@y]"),
    "a branch": (lambda x, u, v: lax.cond(True, lax.sin, lax.cos, x), "[8@x,8@y]"),
    "a call": (lambda x, u, v: jit(lambda z: z * z)(x), "[8@x,8@y]"),
    "checkpointed": (lambda x, u, v: checkpoint(lax.tanh)(x), "[8@x,8@y]"),
    "a batch": (lambda x, u, v: vmap(lambda r, s: r * s)(x, u), "[8@x,8@y]"),
    "moved": (lambda x, u, v: reshard(x, P(None, "x")), "[8,8@x]"),
    "made whole": (lambda x, u, v: reshard(x, P()), "[8,8]"),
    "a stranger's primitive": (lambda x, u, v: strangers_totals_p.bind(v, axes=(0,))[0], "[8@y]"),
    "asked for": (lambda x, u, v: xnp.einsum("ij,kj->ik", x, v, out_sharding=P("y")), "[8@y,8]"),
}  # fmt: skip


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", TYPES)
def test_results_have_types_and_values(name):
    fun, wanted = TYPES[name]
    operands = spread("x", "y"), spread("x"), spread(None, "y")
    seen = []

    def traced(*xs):
        result = fun(*xs)
        seen.append(type_of(result))
        return result

    compiled, eager = jit(traced)(*operands), fun(*operands)
    assert [*seen, type_of(compiled), type_of(eager)] == [wanted] * 3
    plain = fun(*[xnp.asarray(HOST)] * 3) if name not in ("moved", "made whole", "asked for") else (
        HOST if name != "asked for" else HOST @ HOST.T)  # fmt: skip
    for found in (compiled, eager):
        np.testing.assert_allclose(np.asarray(found), np.asarray(plain), rtol=1e-5, atol=1e-6)
        spec = (
            found.sharding.spec
            if found.aval.type_sharding is None
            else found.aval.type_sharding.spec
        )
        assert found.sharding.is_equivalent_to(NamedSharding(found.sharding.mesh, spec), found.ndim)


REFUSED = {
    "contracted on both sides": (lambda x, u, v: x @ x.T, "matmul: the contracted dimensions"),
    "other axes": (lambda x, u, v: reshard(u, P("y")) + u, "add: corresponding dimensions are"),
    "one axis twice": (lambda x, u, v: u + u.T, "add: two dimensions of the result would be"),
    "sorted along": (lambda x, u, v: xnp.sort(u, 0), "sort: the dimension 0 .* must be whole"),
    "summed up along": (lambda x, u, v: xnp.cumsum(u, 0), "cumsum: the dimension 0"),
    "indexed": (lambda x, u, v: u[xnp.array([1, 0])], "gather: the dimension 0 of f32"),
    "updated": (lambda x, u, v: u.at[1].set(0.0), "scatter: the dimension 0 of f32"),
    "cut to what does not divide": (lambda x, u, v: u[:3], "slice: a dimension of size 3 of the"),
    "merged": (lambda x, u, v: v.reshape(-1), "reshape: an axis would shard dimensions that it"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_ambiguous_is_refused_with_the_remedy(name):
    fun, text = REFUSED[name]
    operands = spread("x", "y"), spread("x"), spread(None, "y")
    for called in (fun, jit(fun)):
        with pytest.raises(ShardingTypeError, match=text) as caught:
            called(*operands)
        assert "hint" in str(caught.value)
        assert "float32[8" in str(caught.value)


def test_a_primitive_without_a_rule_is_refused_with_the_remedy():
    def sums(x):
        return xnp.cumsum(x, 0)

    silent = SimpleNamespace(name="windows", rules={"batch": None}, call_like=False)
    aval = spread("x").aval
    with pytest.raises(ShardingTypeError, match="it does not say how its results are sharded") as e:
        results_of(silent, [aval], {}, [aval])
    assert "auto_axes(f)" in str(e.value)
    with pytest.raises(ShardingTypeError, match="must be whole"):
        sums(spread("x"))
    result = auto_axes(sums)(spread("x"), out_sharding=P("x"))
    assert type_of(result) == "[8@x,8]"
    np.testing.assert_allclose(result, HOST.cumsum(0), rtol=1e-6)


def test_derivatives_are_spread_as_what_they_are_of():
    x, w = spread("x", "y"), spread("y")

    def loss(x, w):
        hidden = lax.tanh(xnp.dot(x, w, out_sharding=P("x")))
        return (hidden * hidden.sum(0)).sum()

    plain = grad(
        lambda x, w: (lax.tanh(x @ w) * lax.tanh(x @ w).sum(0)).sum(), argnums=(0, 1)
    )(xnp.asarray(HOST), xnp.asarray(HOST))  # fmt: skip
    for fun in (grad(loss, argnums=(0, 1)), jit(grad(loss, argnums=(0, 1)))):
        found = fun(x, w)
        assert [type_of(g) for g in found] == ["[8@x,8@y]", "[8@y,8]"]
        for f, p in zip(found, plain, strict=True):
            np.testing.assert_allclose(np.asarray(f), np.asarray(p), rtol=2e-5, atol=2e-5)
    value, push = vjp(lambda w: spread("x") @ reshard(w, P()), w)
    assert [type_of(v) for v in push(value)] == ["[8@y,8]"]
    assert type_of(jvp(lax.sin, (x,), (x,))[1]) == "[8@x,8@y]"


def test_a_product_whose_transpose_is_ambiguous_has_a_gradient_of_every_order():
    u, w = spread("x"), spread(None, "y")

    def loss(u):
        return (lax.sin(u @ w) ** 2).sum()

    def second(u):
        return (grad(loss)(u) ** 2).sum()

    dense = np.asarray(grad(lambda u: (grad(lambda u: (
        lax.sin(u @ HOST) ** 2).sum())(u) ** 2).sum())(xnp.asarray(HOST)))  # fmt: skip
    for fun in (grad(second), jit(grad(second))):
        found = fun(u)
        assert type_of(found) == "[8@x,8]"
        np.testing.assert_allclose(np.asarray(found), dense, rtol=2e-4, atol=2e-4)
    batch = vmap(grad(loss))(xnp.ones((3, 8, 8)))
    assert batch.shape == (3, 8, 8)


def test_custom_rules_see_types():
    @custom_jvp
    def twice(x):
        return 2 * x

    seen = []

    @twice.defjvp
    def rule(primals, tangents):
        seen.append(type_of(primals[0]))
        return twice(*primals), 2 * tangents[0]

    assert type_of(grad(lambda x: twice(x).sum())(spread("x"))) == "[8@x,8]"
    assert seen == ["[8@x,8]"]


def test_a_loop_whose_carry_changes_its_sharding_is_refused():
    with pytest.raises(TypeError, match=r"must return a carry of the types") as caught:
        jit(lambda v: lax.scan(lambda c, r: (c + r, r), xnp.zeros(8), v))(spread(None, "y"))
    assert "float32[8@y]" in str(caught.value)


def test_types_print_as_in_the_oracle():
    assert str(typeof(spread("x", "y"))) == "float32[8@x,8@y]"
    assert str(typeof(device_put(HOST, P(("x", "y"))))) == "float32[8@(x,y),8]"
    assert repr(typeof(spread("x"))) == "ShapedArray(float32[8@x,8])"
    assert str(make_jaxpr(lax.sin)(spread("x"))) == (
        "{ lambda ; a:f32[8@x,8]. let b:f32[8@x,8] = sin a in (b,) }"
    )
    assert typeof(np.ones(3)).sharding.spec == P(None)
    assert typeof(spread("x")).sharding.spec == P("x", None)
    assert pickle.loads(pickle.dumps(typeof(spread("x")))) is typeof(spread("x"))


def test_arrays_out_of_nothing_lie_as_asked():
    for made in (
        xnp.zeros((8, 8), out_sharding=P("x")),
        jit(lambda: xnp.ones((8, 8), out_sharding=P("x")))(),
        xrandom.normal(xrandom.key(0), (8, 8), out_sharding=P("x")),
        xnp.arange(64.0, out_sharding=P("x")).reshape(8, 8),
        lax.broadcasted_iota("float32", (8, 8), 1, out_sharding=P("x")),
        spread("x").at[xnp.array([0, 1])].add(1.0, out_sharding=P("x")),
        spread("y").at[xnp.arange(8)].get(out_sharding=P("x")),
        xnp.reshape(spread(None, "y"), (8, 8), out_sharding=P("x")),
    ):
        assert type_of(made) == "[8@x,8]"
        assert made.sharding.shard_shape(made.shape) == (4, 8)
    drawn = xrandom.normal(xrandom.key(0), (8, 8), out_sharding=P("x"))
    np.testing.assert_array_equal(np.asarray(drawn), xrandom.normal(xrandom.key(0), (8, 8)))


def test_auto_axes_leaves_a_function_to_the_compiler():
    a, b = spread("x"), spread(None, "x")
    seen = []

    @auto_axes
    def added(a, b):
        seen.append((str(get_abstract_mesh().axis_types), type_of(a)))
        return {"sum": a + b}

    for fun in (added, jit(functools.partial(added, out_sharding=P("x")))):
        options = {"out_sharding": P("x")} if fun is added else {}
        result = fun(a, b, **options)["sum"]
        assert type_of(result) == "[8@x,8]"
        np.testing.assert_array_equal(np.asarray(result), 2 * HOST)
    assert seen == [("(Auto, Auto)", "[8,8]")] * 2
    part = auto_axes(
        lambda z: (seen.append(type_of(z)), z * 2)[1], axes="x", out_sharding=P("x", "y")
    )
    assert type_of(jit(part)(spread("x", "y"))) == "[8@x,8@y]"
    assert seen[-1] == "[8,8@y]"
    gradient = grad(lambda a: auto_axes(lambda v: v @ v.T, out_sharding=P("x"))(a).sum())(a)
    assert type_of(gradient) == "[8@x,8]"
    np.testing.assert_allclose(gradient, grad(lambda a: (a @ a.T).sum())(HOST), rtol=1e-5)
    with pytest.raises(TypeError, match="the sharding of the results is missing"):
        added(a, b)
    with pytest.raises(ValueError, match="the mesh has no axis 'z'"):
        auto_axes(lax.sin, axes="z")(a, out_sharding=P())


def test_functions_of_axis_modes_run_with_values_outside_of_jit():
    seen = []

    def body(a, scale):
        if a.sum() > 3 and float(a[0, 0]) == 0:  # no traced value can do this
            seen.append((str(np.asarray(a)), str(a.sharding.mesh.axis_types), a.sharding.spec))
        return {"sum": a * scale + a, "two": 2.0}

    x = spread("x")
    outs = {"sum": P("x", "y"), "two": P()}
    result = auto_axes(body, out_sharding=outs)(x, scale=3)
    assert seen == [(str(HOST), "(Auto, Auto)", P("x"))]
    assert type_of(result["sum"]) == "[8@x,8@y]" and result["sum"].sharding.mesh == x.sharding.mesh
    np.testing.assert_array_equal(result["sum"], 4 * HOST)
    part = auto_axes(body, axes="y", out_sharding=P())
    assert type_of(part(x, scale=1)["sum"]) == "[8,8]"
    assert seen[-1][1] == "(Explicit, Auto)"
    nested = auto_axes(lambda a: explicit_axes(body, in_sharding=P("y"))(a, scale=1)["sum"])
    assert type_of(nested(x, out_sharding=P(None, "x"))) == "[8,8@x]"
    assert seen[-1][1:] == ("(Explicit, Explicit)", P("y"))
    with pytest.raises(ValueError, match="out_sharding is not a tree prefix"):
        auto_axes(body, out_sharding={"other": P()})(x, scale=1)

    with set_mesh(make_mesh((2, 4), ("x", "y"), AxisType.Auto)) as mesh:
        y = explicit_axes(body, in_sharding=P("x"))(HOST, scale=1)["sum"]
        assert y.sharding.mesh == mesh and y.sharding.spec[0] == "x"
        assert type_of(y) == "[8,8]"

    def loss(a):  # derivatives are taken along with values, in jit there are none
        squares = auto_axes(lambda a: a @ a.T if a.sum() > 3 else a, out_sharding=P("x"))
        return (squares(a) ** 2).sum()

    expected = grad(lambda a: ((a @ a.T) ** 2).sum())
    for transformed, reference in (
        (grad(loss), expected),
        (grad(lambda a: (grad(loss)(a) ** 2).sum()), grad(lambda a: (expected(a) ** 2).sum())),
    ):
        found = transformed(x)
        assert type_of(found) == "[8@x,8]"
        np.testing.assert_allclose(found, reference(HOST), rtol=1e-5)  # sums of 8 by 8 devices
    with pytest.raises(TracerBoolConversionError):
        jit(loss)(x)
    captured = jit(lambda a: auto_axes(lambda: 2 * a, out_sharding=P(None, "x"))())(x)
    assert type_of(captured) == "[8,8@x]"


class Holder:
    def __init__(self, held):
        self.held = held

    def __call__(self, a):
        return a + self.held.T @ self.held

    def method(self, a):
        return self(a)


def test_arrays_that_functions_of_axis_modes_name_have_other_types_inside():
    x, y = spread("x"), spread("x", "y")  # of `y.T @ y` no type says how it is sharded
    holder, nested = Holder(y), {"of": [y]}
    functions = {
        "closure": lambda a: a + y.T @ y,
        "of a function": lambda a: (lambda: a + y.T @ y)(),
        "by default": lambda a, y=y: a + y.T @ y,
        "partial": functools.partial(lambda y, a: a + y.T @ y, y),
        "keyword": functools.partial(lambda a, y: a + y.T @ y, y=y),
        "held": holder, "method": holder.method, "attribute": lambda a: holder(a),
        "nested": lambda a: a + nested["of"][0].T @ nested["of"][0],
        "decorated": functools.wraps(holder.method)(lambda a: holder.method(a)),
    }  # fmt: skip
    for name, fun in functions.items():
        result = auto_axes(fun)(x, out_sharding=P("x"))
        assert type_of(result) == "[8@x,8]", name
        np.testing.assert_allclose(result, HOST + HOST.T @ HOST, rtol=1e-6, err_msg=name)


def test_explicit_axes_of_an_automatic_mesh():
    seen = []

    def body(y):
        z = y * 2
        seen.append((str(get_abstract_mesh().axis_types), type_of(y), type_of(z)))
        return z

    with set_mesh(make_mesh((2, 4), ("x", "y"), AxisType.Auto)):
        inner = explicit_axes(body, in_sharding=P("x", "y"))
        result = jit(lambda x: inner(lax.sin(x)) + 1)(HOST)
        slope = grad(lambda x: inner(x).sum())(HOST)
        with pytest.raises(TypeError, match="the sharding of the arguments is missing"):
            explicit_axes(body)(HOST)
    assert seen[0] == ("(Explicit, Explicit)", "[8@x,8@y]", "[8@x,8@y]")
    assert type_of(result) == type_of(slope) == "[8,8]"
    np.testing.assert_allclose(result, 2 * np.sin(HOST) + 1, rtol=1e-5)
    np.testing.assert_array_equal(slope, np.full((8, 8), 2.0))
    with set_mesh(None), pytest.raises(ValueError, match="explicit_axes: there is no mesh"):
        explicit_axes(body, in_sharding=P("x"))(HOST)


def test_an_axis_of_another_type_is_left_to_the_compiler():
    with set_mesh(make_mesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))):
        x = device_put(HOST, P("x", "y"))
        assert type_of(x) == "[8@x,8]"
        results = [jit(lambda x: lax.sin(x) * 2)(x), jit(lambda x: reshard(x, P("x", None)))(x)]
        replicated = jit(lambda x: reshard(x, P(None, None)))(x)
    for result in results:
        assert type_of(result) == "[8@x,8]"
        assert result.sharding.spec == P("x", "y")
    assert type_of(replicated) == "[8,8]"
    assert replicated.sharding.spec == P(None, "y")


def test_arguments_of_explicit_axes_stay_sharded_along_the_others():
    with set_mesh(make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)):
        sine = explicit_axes(lax.sin, axes="x", in_sharding=P("x", None))
        result = jit(sine)(device_put(HOST, P("x", "y")))
    assert result.sharding.spec == P("x", "y")


@pytest.mark.parametrize("out_axis", [0, 1, -1])
@pytest.mark.parametrize("wrap", [jit, lambda f: f])
def test_results_that_are_equal_for_all_examples_are_sharded_as_the_batch(mesh, wrap, out_axis):
    with set_mesh(mesh):
        y = wrap(vmap(lambda row: xnp.ones(3), out_axes=out_axis))(spread("x"))
    assert type_of(y) == ("[3,8@x]" if out_axis else "[8@x,3]")


def test_a_map_of_pieces_has_typed_results(mesh):
    body = shard_map(lambda v: v * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    assert type_of(body(spread("x"))) == "[8@x,8]"
    assert type_of(jit(lambda v: lax.sin(body(v)))(spread("x"))) == "[8@x,8]"


def test_no_value_is_exchanged_along_a_forbidden_axis():
    x = spread("x", "y")
    with no_collectives({"x"}):
        assert type_of(x.sum(1)) == "[8@x]"
        assert type_of(reshard(spread(None, "y"), P("x"))) == "[8@x,8]"
        for fun in (
            lambda x: x.sum(0),
            lambda x: reshard(x, P()),
            lambda x: reshard(x, P(None, "x")),
        ):
            with pytest.raises(ForbiddenCollectiveError, match="along the axis 'x', which no_coll"):
                jit(fun)(x)
    assert type_of(x.sum(0)) == "[8@y]"


def test_a_program_is_traced_and_lowered_for_a_mesh_that_is_not_here():
    device = AbstractDevice("some accelerator", 2, "gpu")
    far = AbstractMesh((16, 4), ("a", "b"), AxisType.Explicit, abstract_device=device)
    assert far == AbstractMesh((16, 4), ("a", "b"), AxisType.Explicit, abstract_device=device)
    assert far != AbstractMesh((16, 4), ("a", "b"), AxisType.Explicit)
    assert pickle.loads(pickle.dumps(far)) == far
    with use_abstract_mesh(far):
        x = ShapeDtypeStruct((64, 8), "float32", sharding=P("a", "b"))
        assert get_abstract_mesh() is far
        text = str(make_jaxpr(lambda x: lax.sin(x).sum(1))(x))
    assert "f32[64@a,8@b]" in text
    assert "f32[64@a]" in text
    with (
        pytest.raises(TypeError, match="use_abstract_mesh: this is not an AbstractMesh"),
        use_abstract_mesh(make_mesh((1,), ("x",))),
    ):
        pass


def test_arrays_leave_and_enter_explicit_meshes():
    x = spread("x")
    (one,) = devices("cpu")[:1]
    assert type_of(device_put(x, one)) == "[8,8]"
    automatic = NamedSharding(make_mesh((2, 4), ("x", "y"), AxisType.Auto), P("x"))
    assert type_of(device_put(x, automatic)) == "[8,8]"
    assert type_of(device_put(device_put(x, automatic), P("x"))) == "[8@x,8]"
    assert type_of(with_sharding_constraint(x, P(None, "y"))) == "[8,8@y]"
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(x))), HOST)
    assert type_of(jit(lambda x: x, in_shardings=P("y"), out_shardings=P("x"))(HOST)) == "[8@x,8]"


INDEXED = {
    "x[0]": lambda x: x[0],
    "x[:, -1]": lambda x: x[:, -1],
    "x[2, 3]": lambda x: x[2, 3],
    "x[i]": lambda x: x[xnp.asarray(np.int32(5))],
    "index_in_dim": lambda x: lax.index_in_dim(x, 3, 1),
    "dynamic_index_in_dim": lambda x: lax.dynamic_index_in_dim(x, 3, 0, keepdims=False),
    "x[:, 2:6]": lambda x: x[:, 2:6],
}


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P(None, "y")], ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["evaluated", "compiled"])
@pytest.mark.parametrize("name", INDEXED)
def test_one_element_of_a_dimension_that_is_cut_is_the_same_everywhere(name, wrap, spec):
    index, x = INDEXED[name], spread(*spec)
    out = wrap(index)(x)
    np.testing.assert_array_equal(out, index(HOST))
    size = lambda part: 1 if part is None else {"x": 2, "y": 4}[part]  # noqa: E731
    for n, part in zip(out.shape, typeof(out).sharding.spec, strict=True):
        assert n % size(part) == 0 and (n > 1 or part is None)
    slope = wrap(grad(lambda x: (index(x) ** 2).sum()))(x)
    assert typeof(slope).sharding.spec == typeof(x).sharding.spec
    expected = grad(lambda x: (index(x) ** 2).sum())(HOST)
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


SHARDED_ALONG = {
    "a transform": lambda v: xnp.abs(xnp.fft.fft(v)),
    "a solution": lambda v: xnp.linalg.solve(np.eye(8, dtype="f4") + HOST, v),
    "a triangular matrix": lambda v: lax.linalg.triangular_solve(
        np.eye(8, dtype="f4") + v.T, xnp.asarray(HOST), left_side=True, lower=True),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARDED_ALONG)
def test_derivatives_and_batches_along_what_is_sharded_are_those_of_one_device(name):
    fun = SHARDED_ALONG[name]
    slopes = grad(lambda v: (fun(v) ** 2).sum())
    x = spread(None, "x")
    found, batch = jit(slopes)(x), jit(vmap(fun))(xnp.stack([x, x]))
    np.testing.assert_allclose(found, slopes(xnp.asarray(HOST)), 1e-5, 1e-5)
    np.testing.assert_allclose(batch[1], fun(xnp.asarray(HOST)), 1e-5, 1e-5)
    assert type_of(found) == "[8,8@x]" and "@x" in type_of(batch)


def test_full_like_is_cut_as_its_array_is():
    x = spread("x", "y")
    for f in (lambda x: lax.full_like(x, 3.0), lambda x: lax.full_like(x, 3, np.int32)):
        for wrap in (lambda f: f, jit):
            out = wrap(f)(x)
            assert typeof(out).sharding.spec == P("x", "y")
            assert (np.asarray(out) == 3).all()
    assert typeof(jit(lambda x: lax.full_like(x, 3.0, shape=(8,)))(x)).sharding.spec == P(None)


def test_shapes_of_results_say_that_explicit_axes_cut_nothing(mesh):
    x = spread("x")
    total, twice = eval_shape(lambda x: (x.sum(), 2 * x), x)
    assert total.sharding == NamedSharding(mesh.abstract_mesh, P())
    assert twice.sharding == NamedSharding(mesh.abstract_mesh, P("x", None))
    with set_mesh(mesh.update(axis_types=AxisType.Auto)):
        assert eval_shape(lambda x: x.sum(), HOST).sharding is None
