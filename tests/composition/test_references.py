"""References under jit, derivatives and batches."""

import gc
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import grad, jit, lax, new_ref, vmap
from xstack.experimental.serialize_executable import serialize
from xstack.ref import swap


def running_sum(xs):
    """Return a sum of running sums, and the total: a loop that writes a reference."""
    total = new_ref(xnp.zeros((), xs.dtype))

    def body(c, x):
        total[...] += x * x
        return c + total[...], total[...]

    c, sums = lax.scan(body, xnp.zeros((), xs.dtype), xs)
    return c + total[...], sums


def test_derivatives_and_batches_of_functions_with_references_inside():
    xs = xnp.asarray([1.0, 2.0, 3.0])
    # d/dx_i of sum_k sum_{j<=k} x_j^2 + sum_j x_j^2 is 2 x_i (n - i + 1)
    expected = 2 * np.asarray(xs) * np.array([4, 3, 2])
    gradient = grad(lambda x: running_sum(x)[0])
    for f in (gradient, jit(gradient), grad(jit(lambda x: running_sum(x)[0]))):
        np.testing.assert_allclose(np.asarray(f(xs)), expected)
    batch = xnp.stack([xs, 2 * xs])
    np.testing.assert_allclose(
        np.asarray(jit(vmap(gradient))(batch)), np.stack([expected, 2 * expected])
    )
    np.testing.assert_allclose(
        np.asarray(xstack.jvp(lambda x: running_sum(x)[0], (xs,), (xs,))[1]),
        expected @ np.asarray(xs),
    )
    np.testing.assert_allclose(
        np.asarray(xstack.hessian(lambda x: running_sum(x)[0])(xs)), np.diag([8.0, 6.0, 4.0])
    )


def test_a_compiled_function_writes_what_it_closes_over_and_is_traced_once():
    total, twice = new_ref(xnp.zeros(3)), new_ref(0)

    @jit
    def step(x):
        total[1] += x
        twice[...] = twice[...] + 2
        return total[...].sum()

    for i in range(4):
        assert float(step(1.0)) == i + 1
    assert np.asarray(total[...]).tolist() == [0, 4, 0] and int(twice[...]) == 8
    total[0] = 6.0  # between calls
    assert float(step(0.0)) == 10.0
    assert step.stats()["traces"] == 1


def test_a_compiled_function_writes_its_arguments_whatever_reference_comes():
    @jit
    def scale(state, x):
        state["a"][...] = state["a"][...] * x
        return state["b"][0]

    for start in (1.0, 3.0):
        state = {"a": new_ref(xnp.full(2, start)), "b": new_ref(xnp.ones(1))}
        assert float(scale(state, 2.0)) == 1.0
        assert np.asarray(state["a"][...]).tolist() == [2 * start] * 2
    assert scale.stats()["traces"] == 1
    assert [type(x) for x in xstack.tree.leaves(state)] == [xstack.Ref] * 2


def test_what_is_written_takes_the_memory_of_what_was_there():
    x = new_ref(xnp.zeros(1000))

    @jit
    def add():
        x[...] += 1

    add()
    held = x.lend()
    add()
    assert held.is_deleted()
    read = x[...]
    add()
    assert float(read[0]) == 2.0 and float(x[0]) == 3.0


def test_nested_programs_pass_values_along():
    outside = new_ref(0.0)

    @jit
    def outer(x):
        inside = new_ref(x)

        @jit
        def double():
            inside[...] = inside[...] * 2
            outside[...] += 1

        double()
        double()
        lax.fori_loop(
            0, 4, lambda i, c: lax.cond(i > 1, lambda: inside.addupdate(1.0), lambda: None) or c, 0
        )
        return inside[...]

    assert float(outer(1.0)) == 6.0 and float(outside[...]) == 2.0
    assert float(grad(outer)(1.0)) == 4.0 and float(outside[...]) == 4.0
    assert np.asarray(vmap(outer)(xnp.arange(3.0))).tolist() == [2, 6, 10]


@pytest.mark.parametrize("in_axes", [0, 1, -1])
def test_each_example_has_its_part_of_a_mapped_reference(in_axes):
    start = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = new_ref(start)

    def double(ref):
        ref[0] = ref[1] * 2

    (jit(vmap(double, in_axes=in_axes)) if in_axes else vmap(double))(x)
    expected = np.moveaxis(start.copy(), in_axes, 0)
    expected[:, 0] = 2 * expected[:, 1]
    np.testing.assert_array_equal(np.asarray(x[...]), np.moveaxis(expected, 0, in_axes))


def test_only_constants_leave_derivatives_and_batches():
    seen = new_ref(0.0)

    def keeps(x):
        seen[...] = lax.stop_gradient(x * 3)
        return x * x

    def writes(x):
        seen[...] = x
        return x

    assert float(grad(keeps)(2.0)) == 4.0 and float(seen[...]) == 6.0
    assert float(jit(grad(jit(keeps)))(3.0)) == 6.0 and float(seen[...]) == 9.0
    for f in (grad(writes), jit(grad(writes)), grad(jit(writes))):
        with pytest.raises(ValueError, match="a differentiated value is written"):
            f(1.0)
    for f in (vmap(writes), vmap(jit(writes))):
        with pytest.raises(ValueError, match="a batched value is written"):
            f(xnp.ones(2))
    assert float(seen[...]) == 9.0


def test_a_backward_rule_writes_the_gradient_that_goes_through():
    passed = new_ref(0.0)

    @xstack.custom_vjp
    def watched(x):
        return x

    def backward(_, g):
        passed[...] = g
        return (g,)

    watched.defvjp(lambda x: (x, None), backward)
    grad(lambda x: watched(x) ** 2)(3.0)
    assert float(passed[...]) == 6.0
    jit(grad(lambda x: watched(x) ** 2))(4.0)
    assert float(passed[...]) == 8.0


def test_checkpointed_functions_read_the_value_of_now():
    factor = new_ref(2.0)
    kept = factor[...]
    f = xstack.checkpoint(lambda x: x * factor[...])
    assert float(f(1.0)) == 2.0
    factor[...] = 5.0
    assert float(f(1.0)) == 5.0 and float(grad(f)(1.0)) == 5.0 and float(kept) == 2.0


def counted(ref, wrap):
    """A function that counts its calls in a reference, and reads another element of it."""

    @wrap
    def f(x):
        ref[0] += 1.0
        return xnp.sin(x) * ref[1]

    return f


@pytest.mark.parametrize("policy", [None, xstack.checkpoint_policies.everything_saveable])
@pytest.mark.parametrize(
    "outer", [lambda f: f, grad, lambda f: jit(grad(f)), lambda f: grad(jit(f)),
              lambda f: lambda x: vmap(grad(f))(xnp.full(3, x))[0]],
    ids=["call", "grad", "jit of grad", "grad of jit", "vmap of grad"],
)  # fmt: skip
def test_a_checkpointed_function_writes_a_reference_of_outside_once(outer, policy):
    plain, kept = new_ref(xnp.array([0.0, 2.0])), new_ref(xnp.array([0.0, 2.0]))
    expected = outer(counted(plain, lambda f: f))
    found = outer(counted(kept, lambda f: xstack.checkpoint(f, policy=policy)))
    for k in range(1, 4):
        np.testing.assert_allclose(found(0.5 * k), expected(0.5 * k), rtol=1e-6)  # float32
        np.testing.assert_array_equal(kept[...], [k, 2.0])


def product_in_steps(wrap):
    """x times sin(x), cos(2x): a reference of the differentiated function is written."""

    def f(x):
        total = new_ref(x)

        @wrap
        def step(y):
            total[...] = total[...] * xnp.sin(y)
            return y * total[...]

        return step(x) + step(2 * x) + total[...]

    return f


@pytest.mark.parametrize(
    "outer", [grad, lambda f: grad(grad(f)), lambda f: jit(grad(f)), xstack.hessian],
    ids=["grad", "grad of grad", "jit of grad", "hessian"],
)  # fmt: skip
def test_what_a_checkpointed_function_writes_is_differentiated(outer):
    expected = outer(product_in_steps(lambda f: f))(0.7)
    found = outer(product_in_steps(xstack.checkpoint))(0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # float32, sums of a few products


def test_a_checkpointed_body_counts_the_steps_of_a_loop():
    def f(x):
        count = new_ref(0.0)
        body = xstack.checkpoint(counted_step(count))
        return lax.scan(body, x, None, length=4)[0] * count[...]

    def counted_step(count):
        def step(c, _):
            count[...] += 1.0
            return xnp.sin(c), None

        return step

    y = x = 0.7
    slope = 4.0
    for _ in range(4):
        slope, y = slope * np.cos(y), np.sin(y)
    assert float(f(x)) == pytest.approx(4 * y)
    assert float(grad(f)(x)) == pytest.approx(slope)
    assert float(jit(grad(f))(x)) == pytest.approx(slope)


def test_a_checkpointed_function_hands_no_tangent_and_no_batch_to_a_reference_of_outside():
    ref = new_ref(0.0)

    @xstack.checkpoint
    def f(x):
        ref[...] = x
        return x

    with pytest.raises(ValueError, match="a differentiated value is written"):
        grad(f)(1.0)
    with pytest.raises(ValueError, match="a batched value is written"):
        vmap(f)(xnp.ones(2))
    with pytest.raises(ValueError, match="passed to the function and closed over"):
        xstack.checkpoint(lambda a: (f(1.0), a.__setitem__((), 2.0)))(ref)
    assert float(ref[...]) == 1.0


def test_one_reference_has_one_name_in_a_program():
    x = new_ref(1.0)
    with pytest.raises(ValueError, match="appeared at both a and b"):
        jit(lambda a, b: a[...] + b[...])(x, x)
    with pytest.raises(ValueError, match="both closed over and passed as the argument a"):
        jit(lambda a: a[...] + x[...])(x)
    with pytest.raises(ValueError, match="passed twice"):
        vmap(lambda a, b: 0, axis_size=1)(*[new_ref(xnp.ones(1))] * 2)


def add_to(ref, x):
    """Add, and return what was there: a write and a read of the argument."""
    before = ref[...]
    ref[...] = before + x
    return before


MESH = xstack.make_mesh((2,), ("i",))
ONE = xstack.P("i")
CALLS = {
    "cond": lambda f: lambda r, x: lax.cond(True, f, lambda r, x: x, r, x),
    "switch": lambda f: lambda r, x: lax.switch(1, [lambda r, x: x, f], r, x),
    "scan": lambda f: lambda r, x: lax.scan(lambda c, rx: (c, f(*rx)), 0, (r, x))[1],
    "scan backwards": lambda f: (
        lambda r, x: lax.scan(lambda c, rx: (c, f(*rx)), 0, (r, x), reverse=True)[1]
    ),
    "pmap": lambda f: xstack.pmap(f),
    "shard_map": lambda f: xstack.shard_map(f, mesh=MESH, in_specs=(ONE, ONE), out_specs=ONE),
    "ahead of time": lambda f: jit(f).lower(new_ref(X), X).compile(),
    "jit": jit,
}
X = np.float32([1, 2])


@pytest.mark.parametrize("outer", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CALLS)
def test_whatever_calls_a_function_passes_references_on(name, outer):
    call = CALLS[name](add_to)
    f = call if name == "ahead of time" else outer(lambda r, x: call(r, x))
    for _ in range(2):
        ref = new_ref(X)
        assert np.asarray(f(ref, X * 10)).tolist() == [1, 2]
        assert np.asarray(f(ref, X)).tolist() == [11, 22]
        assert np.asarray(ref[...]).tolist() == [12, 24]


@pytest.mark.parametrize("name", CALLS)
def test_a_reference_of_outside_is_read_as_it_is_now(name):
    factor = new_ref(2.0)
    call = CALLS[name](lambda r, x: x * factor[...] + r[...])
    for value in (3.0, 4.0):
        factor[...] = value
        assert np.asarray(call(new_ref(X), X)).tolist() == (X * value + X).tolist()


def test_a_program_that_is_compiled_ahead_of_time_keeps_and_writes_references_of_outside():
    def made():
        counts = new_ref(xnp.zeros(2))
        return jit(lambda x: swap(counts, None, counts[...] + x)).lower(X).compile()

    program = made()
    gc.collect()
    assert [np.asarray(program(X)).tolist() for _ in range(3)] == [[0, 0], [1, 2], [2, 4]]
    with pytest.raises(ValueError, match="a program that uses references cannot be stored"):
        serialize(program)


def test_programs_and_shapes_of_functions_with_references_can_be_looked_at():
    ref, of_outside = new_ref(X), new_ref(1.0)

    def f(r, x):
        of_outside[...] = 2.0
        return add_to(r, x)

    closed = xstack.make_jaxpr(f)(ref, X)
    assert [v.aval.shape for v in closed.jaxpr.outvars] == [(2,), (2,), ()]
    assert xstack.eval_shape(f, ref, X).shape == (2,)
    assert np.asarray(ref[...]).tolist() == [1, 2] and float(of_outside[...]) == 1.0


REFUSED = {
    "returned": lambda x: jit(lambda: x)(),
    "returned by a step": lambda x: lax.scan(lambda c, i: (c, x), 0, xnp.arange(3)),
    "returned by a branch": lambda x: lax.cond(True, lambda: x, lambda: x),
    "operand of a loop": lambda x: lax.fori_loop(0, 3, lambda i, r: r, x),
    "computed with": lambda x: xnp.sin(x),
    "passed to branches twice": lambda x: lax.cond(True, lambda a, b: 0, lambda a, b: 0, x, x),
    "gone along twice": lambda x: lax.scan(lambda c, ab: (c, 0), 0, [new_ref(X)[...], x, x]),
    "written by each replica": lambda x: xstack.pmap(add_to, in_axes=(None, 0))(x, X),
    "written by each replica, of outside": lambda x: xstack.pmap(x.addupdate)(X),
    "written by members, of outside": lambda x: xstack.shard_map(
        lambda y: x.addupdate(y[0]), mesh=MESH, in_specs=ONE, out_specs=None)(X),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_where_references_are_refused_an_error_says_so(name):
    with pytest.raises((ValueError, TypeError), match=r"reference|Ref|varies over manual axes"):
        REFUSED[name](new_ref(1.0))


def test_programs_keep_no_reference_alive():
    def used():
        x = new_ref(xnp.zeros(3))
        jit(lambda: x[0])()
        return weakref.ref(x)

    dead = used()
    gc.collect()
    assert dead() is None


def test_threads_lose_no_update_of_a_compiled_function():
    x = new_ref(0)

    @jit
    def add():
        x[...] += 1

    add()
    threads = [threading.Thread(target=lambda: [add() for _ in range(50)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert int(x[...]) == 201


def test_programs_agree_with_jax():
    jax = pytest.importorskip("jax")

    def program(space):
        np_, control, ref = space.numpy, space.lax, space.new_ref(space.numpy.zeros(3))

        @space.jit
        def step(x):
            ref[0] += x
            control.cond(x > 1, lambda: ref.addupdate(x, 1), lambda: None)

            def body(c, y):
                ref[2] = ref[2] * 2 + y + c
                return c + 1.0, ref[2]

            return control.scan(body, x, np_.arange(3.0))

        results = [step(float(i)) for i in range(3)]
        return [np.asarray(leaf) for leaf in space.tree.leaves(results)], np.asarray(ref[...])

    ours, theirs = program(xstack), program(jax)
    for a, b in zip(ours[0], theirs[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)


def watching():
    """Return the identity of (ref, x) whose derivative writes the cotangent into the reference."""

    @xstack.custom_vjp
    def watched(ref, x):
        return x

    def bwd(residuals, x_bar):
        residuals["ref"][...] = x_bar
        return None, x_bar

    watched.defvjp(lambda ref, x: (x, {"ref": ref, "x": x}), bwd)
    return watched


@pytest.mark.parametrize("compiled", [False, True])
def test_a_derivative_rule_takes_a_reference_keeps_it_and_writes_it(compiled):
    watched, met = watching(), new_ref(0.0)

    def f(x, ref):
        return xnp.cos(watched(ref, xnp.sin(x)))

    gradient = jit(grad(f)) if compiled else grad(f)
    x = xnp.float32(1.0)
    expected = -np.sin(np.sin(1.0))
    np.testing.assert_allclose(gradient(x, met), expected * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(met[...], expected, rtol=1e-6)
    np.testing.assert_allclose(f(x, met), np.cos(np.sin(1.0)), rtol=1e-6)


def test_a_function_with_a_derivative_rule_writes_its_reference_forwards():
    @xstack.custom_vjp
    def thrice(x, ref):
        ref[...] = x * 2
        return x * 3

    thrice.defvjp(lambda x, ref: (thrice(x, ref), None), lambda _, y_bar: (y_bar * 3, None))
    seen = new_ref(0.0)
    assert float(thrice(2.0, seen)) == 6.0 and float(seen[...]) == 4.0
    assert float(grad(lambda x: thrice(x, seen))(3.0)) == 3.0 and float(seen[...]) == 6.0


@pytest.mark.parametrize("compiled", [False, True])
def test_cotangents_are_added_to_references(compiled):
    sums = {"w": new_ref(xnp.zeros(3)), "b": new_ref(10.0)}

    def f(params, x, n):
        return xnp.sum(params["w"] * x) * n + params["b"] * x[0]

    def step(params, x):
        _, pull_back = xstack.vjp(f, params, x, 2)
        return pull_back.with_refs(sums, xstack.ad.GradValue(), xstack.ad.DontWant())(1.0)

    step = jit(step) if compiled else step
    params, x = {"w": xnp.arange(3.0), "b": xnp.float32(5.0)}, xnp.asarray([1.0, 2.0, 4.0])
    for _ in range(2):
        refs, x_bar, nothing = step(params, x)
    assert refs == {"w": xstack.ad.GradRef(), "b": xstack.ad.GradRef()}
    assert nothing == xstack.ad.DidntWant()
    np.testing.assert_array_equal(x_bar, [5.0, 2.0, 4.0])
    np.testing.assert_array_equal(sums["w"][...], [4.0, 8.0, 16.0])
    assert float(sums["b"][...]) == 12.0


@pytest.mark.parametrize("traced", [False, True])
def test_what_leads_to_unwanted_cotangents_alone_is_not_transposed(traced):
    value, no = xstack.ad.GradValue(), xstack.ad.DontWant()
    w, x = xnp.arange(16.0).reshape(4, 4), xnp.arange(4.0)

    def f(w, x):
        return xnp.tanh(w @ xnp.sin(x)) * x

    _, pull_back = xstack.vjp(f, w, x)

    def products(*places):
        def step(w, x):
            pull = xstack.vjp(f, w, x)[1] if traced else pull_back
            return pull.with_refs(*places)(x)

        return str(xstack.make_jaxpr(step)(w, x)).count("dot_general")

    assert products(value, value) - products(value, no) == 1
    w_bar, x_bar = pull_back(x)
    assert (pull_back.with_refs(value, no)(x)[0] == w_bar).all()
    assert (pull_back.with_refs(no, value)(x)[1] == x_bar).all()


def test_places_of_cotangents_that_do_not_fit_are_refused():
    _, pull_back = xstack.vjp(lambda x, y: x * y, 2.0, xnp.ones(3))
    value = xstack.ad.GradValue()
    with pytest.raises(ValueError, match="another structure than the primals") as caught:
        pull_back.with_refs(None, value)
    assert "write GradValue() or DontWant()" in str(caught.value)
    with pytest.raises(ValueError, match="of another type than its primal") as caught:
        pull_back.with_refs(value, new_ref(xnp.zeros(4)))
    assert "float32[4]" in str(caught.value) and "float32[3]" in str(caught.value)
    with pytest.raises(ValueError, match="says nothing about a cotangent"):
        pull_back.with_refs(value, xnp.zeros(3))


@jit
def accumulated(ref, x):
    """Add to a reference, in a program of its own."""
    ref[...] = ref[...] + x * 2
    return x.sum()


def in_a_scan(x):
    ref = new_ref(xnp.zeros(3))
    total, _ = lax.scan(lambda c, _: (c + accumulated(ref, x), None), 0.0, None, length=2)
    return total + (ref[...] ** 2).sum()


def in_a_branch(x):
    ref = new_ref(xnp.zeros(3))
    lax.cond(x[1] > 0, lambda: accumulated(ref, x), lambda: x.sum())
    return (ref[...] ** 2).sum()


def of_the_argument(x):
    ref = new_ref(x)
    accumulated(ref, xnp.ones(3))
    return (ref[...] ** 2).sum()


# By hand, for x = 0, 1, 2: sum(2 x) + sum((4 x)^2); sum((2 x)^2); sum((x + 2)^2).
@pytest.mark.parametrize(
    ("fun", "expected"),
    [(in_a_scan, [2, 34, 66]), (in_a_branch, [0, 8, 16]), (of_the_argument, [4, 6, 8])],
)
@pytest.mark.parametrize("outer", [lambda g: g, jit, xstack.checkpoint])
def test_derivatives_go_through_a_program_that_gets_a_reference(fun, expected, outer):
    x = xnp.arange(3.0)
    np.testing.assert_array_equal(outer(grad(fun))(x), expected)
    np.testing.assert_array_equal(grad(outer(fun))(x), expected)
    np.testing.assert_array_equal(vmap(outer(grad(fun)))(x[None]), [expected])


def test_compiled_functions_with_shardings_write_to_their_arguments_and_captured_references():
    mesh = xstack.make_mesh((4,), ("x",), axis_types=(xstack.sharding.AxisType.Auto,))
    parts, one = xstack.NamedSharding(mesh, xstack.P("x")), xstack.NamedSharding(mesh, xstack.P())
    xs = np.arange(8, dtype=np.float32)
    for options in (
        {"out_shardings": parts}, {"out_shardings": {"twice": parts}},
        {"out_shardings": {"twice": None}}, {"in_shardings": (one, parts)},
        {"in_shardings": (None, parts), "out_shardings": {"twice": parts}},
    ):  # fmt: skip
        captured, argument = xstack.new_ref(1.0), xstack.new_ref(2.0)

        @partial(xstack.jit, **options)
        def add(ref, xs, captured=captured):
            ref[...] += xs.sum()
            captured[...] *= 2
            return {"twice": 2 * xs}

        for times in (1, 2):
            result = add(argument, xs)
            np.testing.assert_array_equal(result["twice"], 2 * xs)
            assert (float(argument[...]), float(captured[...])) == (2 + 28 * times, 2**times)
        if options.get("out_shardings") != {"twice": None}:
            assert result["twice"].sharding.is_equivalent_to(parts, 1)


def test_a_compiled_function_with_shardings_may_write_and_return_nothing():
    device = xstack.sharding.SingleDeviceSharding(xstack.devices()[0])
    ref = xstack.new_ref(1)

    @partial(xstack.jit, in_shardings=(device,), out_shardings=())
    def increment(ref):
        ref[...] += 1
        return ()

    assert increment(ref) == () and int(ref[...]) == 2
