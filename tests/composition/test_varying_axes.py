"""Along which axes of a mesh values vary: types, what they allow, and derivatives, beside JAX."""

import functools

import numpy as np
import pytest

import xnp
import xstack
from tests.nets import member_programs
from tests.nets.cells import seeds
from tests.nets.member_programs import Space
from xad import checkpoint, custom_vjp, grad, jvp, vjp
from xbatch import vmap
from xjit import jit
from xnp import lax
from xpar import (
    P,
    all_gather,
    axis_index,
    make_mesh,
    pcast,
    pmax,
    pmean,
    ppermute,
    psum,
    pvary,
    shard_map,
)

MESH = make_mesh((4, 2), ("x", "y"))
RNG = np.random.default_rng(0)
W, X, Z, U = (RNG.normal(size=s).astype(np.float32) for s in ((8,), (32,), (16,), (64,)))
SPECS = (P(), P("x"), P("y"), P(("x", "y")))

OURS = Space(lax=xstack.lax, numpy=xnp, grad=grad, jit=jit, checkpoint=checkpoint,
             custom_vjp=custom_vjp, pcast=pcast, vma=lambda v: xstack.typeof(v).vma)  # fmt: skip


def members(fun, in_specs, out_specs, **options):
    return shard_map(fun, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


def weighed(fun):
    """A number made of a result, with a different weight for each element."""
    return lambda *xs: (y := fun(*xs), (y * xnp.cos(xnp.arange(y.size) * 1.0)).sum())[1]


# --- beside the oracle -------------------------------------------------------------------------


def oracle():
    jax = pytest.importorskip("jax")
    if len(jax.devices()) < 8:
        pytest.skip("the oracle has fewer than eight devices")
    space = Space(
        lax=jax.lax, numpy=jax.numpy, grad=jax.grad, jit=jax.jit, checkpoint=jax.checkpoint,
        custom_vjp=jax.custom_vjp, pcast=jax.lax.pcast,
        vma=lambda v: getattr(jax.typeof(v), "vma", None) or _vma_of_12(jax.typeof(v)),
    )  # fmt: skip
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=auto)
    spec = jax.sharding.PartitionSpec
    specs = (spec(), spec("x"), spec("y"), spec(("x", "y")))
    return jax, space, mesh, specs


def _vma_of_12(aval):
    kind = getattr(aval, "manual_axis_type", None)
    return getattr(kind, "varying", frozenset())


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(2))
def test_random_programs_of_members_have_the_values_and_gradients_of_the_oracle(part):
    jax, *there = oracle()
    wrong = []
    for seed in seeds(range(6), one_of=40, part=part, parts=2):  # each compiles four programs
        steps = member_programs.draw(seed)
        ours, theirs = pair_of_programs(jax, *there, steps)

        def weighed_there(*xs, f=theirs):
            y = f(*xs)
            return (y * jax.numpy.cos(jax.numpy.arange(y.size) * 1.0)).sum()

        try:
            want = [jax.jit(theirs)(W, X, Z, U),
                    *jax.jit(jax.grad(weighed_there, (0, 1, 2, 3)))(W, X, Z, U)]  # fmt: skip
        except NotImplementedError:  # the oracle has no derivative of pmax
            continue
        got = [jit(ours)(W, X, Z, U), *jit(grad(weighed(ours), (0, 1, 2, 3)))(W, X, Z, U)]
        for a, b in zip(got, want, strict=True):
            # sums of up to 64 float32 terms in another order, through up to eight steps
            scale = 1 + np.abs(np.asarray(b)).max()
            if not np.allclose(a, b, rtol=1e-3, atol=1e-4 * scale):
                wrong.append((seed, [step[:5] for step in steps]))
                break
    assert not wrong, wrong[:3]


def pair_of_programs(jax, space, mesh, specs, steps):
    """Return a program of members for both namespaces."""
    ours = members(lambda *xs: member_programs.run(OURS, steps, *xs), SPECS, SPECS[3])
    theirs = jax.shard_map(lambda *xs: member_programs.run(space, steps, *xs), mesh=mesh,
                           in_specs=specs, out_specs=specs[3])  # fmt: skip
    return ours, theirs


# --- types -------------------------------------------------------------------------------------

TYPES = {  # what a member does: the type that it gives
    "what an axis cuts": (lambda w, x: x, "float32[8]{V:x}"),
    "what all share": (lambda w, x: w, "float32[8]"),
    "both": (lambda w, x: w * x, "float32[8]{V:x}"),
    "a number": (lambda w, x: axis_index("y"), "int32[]{V:y}"),
    "over two axes": (lambda w, x: x * axis_index("y"), "float32[8]{V:(x,y)}"),
    "a sum": (lambda w, x: psum(x, "x"), "float32[8]"),
    "a sum over another axis": (lambda w, x: psum(x, "y"), "float32[8]{V:x}"),
    "a sum of what all share": (lambda w, x: psum(w, "x"), "float32[8]"),
    "gathered": (lambda w, x: all_gather(x, "x", tiled=True), "float32[32]{V:x}"),
    "gathered for all": (
        lambda w, x: all_gather(x, "x", tiled=True, to="invarying"), "float32[32]",
    ),
    "cast": (lambda w, x: pcast(w, ("x", "y"), to="varying"), "float32[8]{V:(x,y)}"),
    "a call": (lambda w, x: jit(lambda a: a + x)(w), "float32[8]{V:x}"),
    "a carry that begins shared": (
        lambda w, x: lax.scan(lambda c, _: (c + x, None), w, None, 2)[0], "float32[8]{V:x}",
    ),
    "a carry that becomes shared": (
        lambda w, x: lax.fori_loop(0, 2, lambda _, c: psum(c, "x"), x), "float32[8]{V:x}",
    ),
    "a branch that varies": (
        lambda w, x: lax.cond(w[0] > 0, lambda: x, lambda: w), "float32[8]{V:x}",
    ),
    "a predicate that varies": (
        lambda w, x: lax.cond(x[0] > 0, lambda: w, lambda: 2 * w), "float32[8]{V:x}",
    ),
    "a loop that ends by what varies": (
        lambda w, x: lax.while_loop(lambda c: c[0] < x[0], lambda c: c + 1, w), "float32[8]{V:x}",
    ),
    "an example": (lambda w, x: vmap(lambda a: a * w)(x[:, None])[0], "float32[8]{V:x}"),
    "a gradient by what all share": (
        lambda w, x: grad(lambda w: (w * x).sum())(w), "float32[8]",
    ),
    "a gradient by what varies": (
        lambda w, x: grad(lambda x: (w * x).sum())(x), "float32[8]{V:x}",
    ),
    "a tangent": (lambda w, x: jvp(lambda w: w + x, (w,), (w,))[1], "float32[8]{V:x}"),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_types_say_along_which_axes_values_vary(name):
    program, wanted = TYPES[name]
    seen = []

    def member(w, x):
        y = program(w, x)
        seen.append(xstack.typeof(y))
        return y.sum()

    unchecked = {"check_vma": False}
    for options in ({}, unchecked):
        jit(members(lambda w, x: pvary(member(w, x), ("x", "y"))[None], (P(), P("x")),
                    P(("x", "y")), **options))(W, X)  # fmt: skip
    assert seen[0].str_long() == wanted
    assert seen[0].vma == seen[0].manual_axis_type.varying == seen[0].mat.varying
    assert seen[1].vma == frozenset() and "{" not in seen[1].str_long()


def test_types_outside_of_members_name_no_manual_axes():
    x = xnp.ones(3)
    assert xstack.typeof(x).vma == frozenset()
    assert xstack.typeof(x).manual_axis_type == (frozenset(),) * 3
    mapped = members(lambda x: x, P("x"), P("x"))
    assert xstack.make_jaxpr(mapped)(X).out_avals[0].vma == frozenset()


# --- derivatives -------------------------------------------------------------------------------

OWN = {"in_specs": (P(), P("x")), "out_specs": P()}


def mean_square(w, x):
    return xnp.mean((xnp.sin(x) * w.sum() - 1) ** 2)


@pytest.mark.parametrize("place", ["outside", "inside", "inside, of the mean", "pulled back"])
def test_a_gradient_means_the_same_wherever_it_is_taken(place):
    want = jit(grad(mean_square))(W, X)
    loss = {
        "outside": lambda w, x: grad(members(
            lambda w, x: pmean(mean_square(w, x), "x"), **OWN))(w, x),
        "inside": members(lambda w, x: grad(mean_square)(w, x) / 4, **OWN),
        "inside, of the mean": members(
            lambda w, x: grad(lambda w: pmean(mean_square(w, x), "x"))(w), **OWN),
        "pulled back": members(
            lambda w, x: vjp(lambda w: mean_square(w, x), w)[1](xnp.float32(0.25))[0], **OWN),
    }[place]  # fmt: skip
    # a mean of 32 float32 terms in another order
    np.testing.assert_allclose(jit(loss)(W, X), want, rtol=1e-5, atol=1e-6)


def test_a_step_of_data_parallel_training_written_for_jax_is_that_of_one_device():
    def step(w, x):
        return w - 0.1 * xstack.lax.pmean(grad(mean_square)(w, x), "x") / 4

    got = jit(members(step, **OWN))(W, X)
    np.testing.assert_allclose(got, W - 0.1 * grad(mean_square)(W, X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("branches", "slopes"),
    [
        ((lambda w: 2 * w.sum(), lambda w: w.sum()), [2.0, 1.0]),
        ((lambda w: (w * w).sum(), lambda w: 3 * w[0]), None),
    ],
)
def test_members_that_take_branches_of_their_own_sum_their_slopes(branches, slopes):
    """The sum is a collective, for which those in another branch would wait for ever."""
    pieces = X.reshape(4, 8)

    def member(w, x):
        return grad(lambda w: lax.cond(x[0] > 0, *branches, w))(w)

    want = sum(grad(branches[0] if piece[0] > 0 else branches[1])(W) for piece in pieces)
    assert {bool(piece[0] > 0) for piece in pieces} == {True, False}
    np.testing.assert_allclose(jit(members(member, **OWN))(W, X), want, rtol=1e-6)
    if slopes is not None:
        assert want[0] == sum(slopes[0] if piece[0] > 0 else slopes[1] for piece in pieces)


@pytest.mark.parametrize("in_cell", [False, True])
def test_members_that_end_a_loop_after_steps_of_their_own_sum_their_slopes_outside(in_cell):
    def member(w, x):
        total = xstack.new_ref(0 * x[0])

        def step(state):
            if in_cell:
                total[...] += (w * state[1]).sum()
            return state[0] + 1, xnp.sin(w * state[1])

        def goes_on(state):
            return state[0] < 1 + (x[0] > 0)

        h = lax.while_loop(goes_on, step, (0, x), max_steps=3)[1]
        return h.sum() + (total[...] if in_cell else 0)

    def loss(w, x):
        return sum(member(w, piece) for piece in x.reshape(4, 8))

    over_mesh = members(lambda w, x: psum(member(w, x), "x"), **OWN)
    gradient = jit(grad(over_mesh, (0, 1)))
    sent = xstack.debug.explain_communication(gradient, W, X).collectives
    assert not any(c.is_repeated for c in sent)  # or members wait for others for ever
    for found, wanted in zip(gradient(W, X), grad(loss, (0, 1))(W, X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)  # a few float32 terms


def test_second_derivatives_of_a_bounded_loop_are_those_of_its_steps():
    def bounded(w, x):
        def step(state):
            return state[0] + 1, xnp.sin(w * state[1] + w)

        return lax.while_loop(lambda state: state[0] < 3, step, (0, x), max_steps=5)[1]

    def repeated(w, x):
        return functools.reduce(lambda h, _: xnp.sin(w * h + w), range(3), x)

    def curvature(loss):
        return jit(grad(lambda w, x: (grad(loss)(w, x) * xnp.arange(8)).sum(), (0, 1)))

    over_mesh = members(lambda w, x: psum((bounded(w, x) ** 2).sum(), "x"), **OWN)
    wanted = curvature(lambda w, x: sum((repeated(w, v) ** 2).sum() for v in x.reshape(4, 8)))
    for a, b in zip(curvature(over_mesh)(W, X), wanted(W, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)  # of terms up to 100 in float32


def _layer(w, b, x):
    return xnp.tanh(x @ w.T + b)


def _chosen(w, b, x, i=1):
    """The layer in one branch; the others have no use of one parameter, or of both."""
    branches = (lambda w, b, x: x, _layer, lambda w, b, x: x @ w.T)
    return lax.switch(i + xnp.int32(0 * w.sum()), branches, w, b, x)


def _looped(w, b, x):
    return lax.scan(lambda h, _: (_layer(w, b, h), None), x, None, length=5)[0]


def _repeated(layer):
    return lambda w, b, x: functools.reduce(lambda h, _: layer(w, b, h), range(5), x)


def _bounded(layer):
    def loop(w, b, x):
        def step(state):
            return state[0] + 1, layer(w, b, state[1])

        return lax.while_loop(lambda state: state[0] < 5, step, (0, x), max_steps=7)[1]

    return loop


USES = {  # of two parameters that all members share
    "five times": _repeated(_layer),
    "in five calls": _repeated(jit(_layer)),
    "in five checkpoints": _repeated(checkpoint(_layer)),
    "for examples": _repeated(lambda w, b, x: vmap(lambda row: _layer(w, b, row))(x)),
    "in a loop": _looped,
    "in a loop of checkpoints": lambda w, b, x: lax.scan(
        checkpoint(lambda h, _: (_layer(w, b, h), None)), x, None, length=5)[0],
    "in a call of a loop": jit(_looped),
    "in a bounded loop": _bounded(_layer),
    "in branches of a bounded loop": _bounded(_chosen),
    "in branches": _repeated(_chosen),
    "in branches of a loop": lambda w, b, x: lax.scan(
        lambda h, i: (_chosen(w, b, h, i), None), x, xnp.arange(5))[0],
    "in branches of a call": jit(_repeated(_chosen)),
}  # fmt: skip


@pytest.mark.sampled(every=2, per="place")
@pytest.mark.parametrize("place", ["inside", "outside"])
@pytest.mark.parametrize("uses", USES)
def test_members_sum_the_gradients_of_all_uses_of_a_parameter_once(uses, place):
    def loss(w, b, x):
        return (USES[uses](w, b, x) ** 2).sum()

    def member(w, b, x):
        if place == "outside":
            return psum(loss(w, b, x), "x")
        return grad(lambda *p: psum(loss(*p, x), "x"), (0, 1))(w, b)

    over_mesh = members(member, (P(), P(), P("x")), P())
    args = [RNG.normal(size=s).astype(np.float32) for s in ((4, 4), (4,), (16, 4))]
    gradient = jit(over_mesh if place == "inside" else grad(over_mesh, (0, 1)))
    for found, wanted in zip(gradient(*args), grad(loss, (0, 1))(*args), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)  # 80 uses of float32
    sent = xstack.debug.explain_communication(gradient, *args).collectives
    assert sum(c.bytes for c in sent if c.bytes > 4) in (80, 84)  # w and b, and perhaps the loss
    assert not any(c.is_repeated for c in sent)


@pytest.mark.parametrize("which", range(3))
def test_branches_whose_cotangents_vary_are_shared_or_zero_have_the_gradient_of_one_device(which):
    branches = (
        lambda w, x: (w * x, 0.0),
        lambda w, x: (x, (w**2).sum()),
        lambda w, x: (x, 0.0),
    )

    def member(i, w, x):
        y, shared = lax.switch(i, branches, w, x)
        return psum((y**2).sum(), "x") + shared

    def on_one_device(w, x):
        y, shared = branches[which](xnp.tile(w, 4), x)
        return (y**2).sum() + shared / 4

    gradient = jit(grad(members(member, (P(), P(), P("x")), P()), (1, 2)))
    for a, b in zip(gradient(which, W, X), grad(on_one_device, (0, 1))(W, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)  # sums of 4 terms of float32


def test_a_cotangent_that_members_share_is_not_summed_beside_those_of_each():
    def loss(w, x):
        return (w * x).sum() + (w**3).sum() * axis_index("y") + (w * jit(xnp.sin)(w * x)).sum()

    def member(w, x):
        return psum(loss(w, x), ("x", "y")) + (w**2).sum()

    def wanted(w, x):
        each = [loss_of(w, part, y) for part in x.reshape(4, 8) for y in range(2)]
        return sum(each) + (w**2).sum()

    def loss_of(w, x, y):
        return (w * x).sum() + (w**3).sum() * y + (w * xnp.sin(w * x)).sum()

    found = grad(members(member, (P(), P("x")), P()))(W, X)
    np.testing.assert_allclose(found, grad(wanted)(W, X), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("compiled", [False, True])
def test_terms_of_members_are_summed_in_the_wider_dtype_of_a_cast(compiled):
    scaled = members(lambda w, x: w.astype("float32") * x, (P(), P("x")), P("x"))
    x = np.float32([60_000, 60_000, -60_000, 8])  # float16 has no sum of the first two
    gradient = grad(lambda w: scaled(w, x).sum())
    with xstack.set_mesh(MESH):  # other tests of the process may hold meshes of this shape
        found = (jit(gradient) if compiled else gradient)(np.float16(1))
    assert found.dtype == np.float16 and float(found) == 60_000


def test_without_types_a_gradient_inside_of_a_member_is_of_its_own_part():
    own = members(lambda w, x: grad(lambda w: (w * x).sum())(w), (P(), P("x")), P("x"),
                  check_vma=False)  # fmt: skip
    np.testing.assert_allclose(own(W, X), X, rtol=1e-6)


def test_a_rule_that_gives_what_varies_for_what_all_share_is_summed():
    @custom_vjp
    def scaled(w, x):
        return w * x

    scaled.defvjp(lambda w, x: (w * x, (w, x)), lambda r, ct: (ct * r[1], ct * r[0]))
    got = members(lambda w, x: grad(lambda w: scaled(w, x).sum())(w), **OWN)(W, X)
    np.testing.assert_allclose(got, X.reshape(4, 8).sum(0), rtol=1e-5, atol=1e-6)


def test_what_varies_may_not_be_written_where_all_members_share():
    def member(x):
        ref = xstack.new_ref(xnp.zeros(8))
        ref[...] = x
        return ref[...]

    with pytest.raises(TypeError, match=r"(?s)varies over manual axes.*V:x.*pcast"):
        members(member, P("x"), P("x"))(X)


# --- values outside of jit ---------------------------------------------------------------------


def test_gradients_of_a_function_that_looks_are_those_of_one_that_does_not():
    shown = []

    def member(w, x, looks):
        total = psum((w * x).sum(), "x")
        if looks:
            shown.append(str(total))
            own = grad(lambda w: (xnp.sin(w) * x).sum())(w)
            shown.append(str(own))
            if total > 0:
                return psum((own * w).sum() * total, "y")
        own = grad(lambda w: (xnp.sin(w) * x).sum())(w)
        return psum((own * w).sum() * total, "y")

    def mapped(looks):
        return members(lambda w, x: member(w, x, looks), (P(), P("x")), P())

    for outer in (
        lambda f: f,
        lambda f: grad(f, (0, 1)),
        lambda f: grad(lambda w, x: f(w, x) ** 2),
    ):
        found, wanted = [outer(mapped(looks))(W, X) for looks in (True, False)]
        for a, b in zip(xstack.tree.leaves(found), xstack.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert len(shown) == 6 and "float32[8], the same at all mesh coordinates" in shown[1]


def test_a_number_that_would_lose_a_derivative_is_an_error():
    def member(w, x):
        return psum((x * float(psum(w.sum(), "x"))).sum(), "x")

    mapped = members(member, (P(), P("x")), P())
    np.testing.assert_allclose(mapped(W, X), X.sum() * 4 * W.sum(), rtol=1e-5)
    with pytest.raises(xstack.errors.ConcretizationTypeError, match="derivative"):
        grad(mapped)(W, X)


FIRST_TO_SECOND = [(0, 1), (1, 0)]
SOME_REACH = {
    "cond": lambda a: lax.cond(a.sum() > 9, lambda a: psum(a, "x"), lambda a: a, a),
    "switch": lambda a: lax.switch(
        axis_index("x"), [lambda a: ppermute(a, "x", FIRST_TO_SECOND), lambda a: -a], a),
    "while_loop": lambda a: lax.while_loop(
        lambda c: c.sum() < 20, lambda c: c + 1 + 0 * psum(c, "x"), a),
    "condition": lambda a: lax.while_loop(
        lambda c: (c.sum() < 20) & (psum(c.sum(), "x") < 99), lambda c: c + 1, a),
    "inner": lambda a: lax.cond(
        a.sum() > 9, jit(lambda a: lax.fori_loop(0, 2, lambda i, c: pmax(c, "x"), a)),
        lambda a: a, a),
}  # fmt: skip
"""Programs whose members would wait for each other for ever."""


@pytest.mark.parametrize("wrap", [jit, lambda f: f])
@pytest.mark.parametrize("name", SOME_REACH)
def test_a_collective_that_some_members_do_not_reach_is_refused(name, wrap):
    mesh = make_mesh((2,), ("x",))
    f = shard_map(SOME_REACH[name], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    said = r": members of the axis 'x' would wait for each other: a value that differs among them"
    with pytest.raises(ValueError, match=said):
        wrap(f)(np.arange(4.0, dtype=np.float32))


def test_members_that_decide_alike_meet_in_collectives():
    mesh = make_mesh((2, 2), ("x", "y"))

    def member(a):
        alike = lax.while_loop(
            lambda c: pmax(c.sum() < 5, "x"), lambda c: c + 1 + 0 * psum(c, "x"), a
        )
        return lax.cond(  # members of y decide alike, whatever those of x do
            a.sum() > 3, lambda c: c + psum(c, "y"), lambda c: c + 0 * psum(c, "y"), alike
        )

    f = shard_map(member, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = np.arange(4.0, dtype=np.float32)
    np.testing.assert_array_equal(jit(f)(x), [2, 3, 12, 15])


def test_a_collective_in_the_branch_of_a_platform_is_reached_by_all():
    def member(a):
        return lax.platform_dependent(
            a, cpu=lambda a: psum(a, "x"), default=lambda a: -psum(a, "x")
        )

    f = shard_map(member, mesh=make_mesh((2,), ("x",)), in_specs=P("x"), out_specs=P())
    np.testing.assert_array_equal(jit(f)(np.arange(4.0, dtype=np.float32)), [2, 4])


# ----------------------------------------------------- results that vary as their own operand does


def test_a_barrier_leaves_each_operand_as_it_varies():
    def member(w, x):
        held, own = lax.optimization_barrier((w, x))
        assert (xstack.typeof(held).vma, xstack.typeof(own).vma) == (frozenset(), {"x"})
        return grad(lambda w: (lax.optimization_barrier((w, x))[0] * x).sum())(held)

    summed = jit(members(member, (P(), P("x")), P()))(W, X)
    np.testing.assert_allclose(summed, X.reshape(4, 8).sum(0), rtol=1e-5)  # sums of four


@pytest.mark.parametrize("staged", [jit, lambda f: f])
def test_solutions_vary_as_the_equations_do(staged):
    """From a guess or a right-hand side that all share; beside square roots and quotients."""

    def root(x):
        return lax.custom_root(
            lambda v: v * v - x, xnp.ones(8), lambda f, guess: xnp.sqrt(x),
            lambda g, y: y / g(xnp.ones_like(y)),
        )  # fmt: skip

    def quotient(x):
        solution = lax.custom_linear_solve(lambda v: x * v, xnp.ones(8), lambda _, b: b / x,
                                           lambda _, b: b / x)  # fmt: skip
        assert xstack.typeof(solution).vma == {"x"}
        return solution

    x = np.abs(X) + 1
    for found, expected, slope in [(root, x**0.5, 0.5 * x**-0.5), (quotient, 1 / x, -(x**-2.0))]:
        f = members(found, P("x"), P("x"))
        np.testing.assert_allclose(staged(f)(x), expected, rtol=1e-6)
        np.testing.assert_allclose(staged(grad(lambda x, f=f: f(x).sum()))(x), slope, rtol=1e-5)
