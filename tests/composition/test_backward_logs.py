"""What backward rules log and add to accumulators, by hand and beside the oracle."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xad.backward_logs import CondSum, NullAccum, RefAccum, ValAccum, collect, log

XS = np.float32([1, 2, 3])


def logged_square(lib, name="square"):
    """Return x -> x^2, which logs x and the cotangent."""

    @lib.custom_vjp
    def square(x):
        return x * x

    square.defvjp_with_logs(
        lambda x: (x * x, x), lambda x, ct: ((2 * x * ct,), {name: {"x": x, "ct": ct}})
    )
    return square


def of_two_rules(lib):
    inner, outer = logged_square(lib, "inner"), logged_square(lib, "outer")
    return lib.vjp(lambda x: outer(inner(x)), 2.0)[1].with_logs(1.0)


def of_a_compiled_call(lib):
    square = logged_square(lib)
    return lib.vjp(lib.jit(lambda x: 3 * square(x)), 2.0)[1].with_logs(1.0)


def of_a_compiled_pass(lib):
    square = logged_square(lib)
    return lib.jit(lambda x: lib.vjp(lambda x: 3 * square(x), x)[1].with_logs(1.0))(2.0)


def of_a_scan(lib, compiled=False):
    square = logged_square(lib)

    def f(xs):
        return lib.lax.scan(lambda c, x: (2 * c + square(x), None), 0.0, xs)[0]

    pull = lambda xs: lib.vjp(f, xs)[1].with_logs(1.0)  # noqa: E731 - one of two forms
    return (lib.jit(pull) if compiled else pull)(lib.numpy.asarray(XS))


def of_a_compiled_scan(lib):
    return of_a_scan(lib, compiled=True)


def of_branches(lib):
    high, low = logged_square(lib, "high"), logged_square(lib, "low")

    @lib.jit
    def pull(x):
        f = lambda x: lib.lax.cond(x > 0, high, lambda x: 2 * low(x), x)  # noqa: E731
        return lib.vjp(f, x)[1].with_logs(1.0)

    return pull(3.0), pull(-3.0)


def of_branches_in_a_scan(lib):
    high, low = logged_square(lib, "high"), logged_square(lib, "low")

    def step(c, x):
        return c + lib.lax.cond(x > 1, lambda x: lib.lax.cond(x > 2, high, low, x), low, x), None

    return lib.jit(
        lambda xs: lib.vjp(lambda xs: lib.lax.scan(step, 0.0, xs)[0], xs)[1].with_logs(1.0)
    )(XS)


def of_a_batch(lib):
    square = logged_square(lib)
    inside = lib.vjp(lib.vmap(square), lib.numpy.asarray(XS))[1].with_logs(XS)
    outside = lib.vmap(lambda x: lib.vjp(square, x)[1].with_logs(1.0))(XS)
    return inside, outside


def of_a_custom_gradient(lib):
    @lib.custom_gradient(with_logs=True)
    def square(x):
        return x * x, lambda ct: ((2 * x * ct,), {"ct": ct})

    return lib.vjp(square, 3.0)[1].with_logs(2.0)


def of_a_loop_that_drops_it(lib):
    square = logged_square(lib)
    return lib.vjp(lambda x: lib.lax.fori_loop(0, 2, lambda i, c: square(c), x), 1.5)[1].with_logs(
        1.0
    )


def of_members(lib, check_vma=True, parts=("i",)):
    """Log along a mesh of two axes what varies along some of them, in a scan and out of one."""

    @lib.custom_vjp
    def square(x):
        return x * x

    square.defvjp_with_logs(
        lambda x: (x * x, x),
        lambda x, ct: (
            (2 * x * ct,),
            {"ct": ct, "sum": (ct * ct).sum(), "same": lib.numpy.ones(3), "nothing": None},
        ),
    )
    inner = logged_square(lib)

    def of_member(x):
        return lib.lax.scan(lambda c, _: (inner(c), None), square(x), None, length=1)[0]

    axes = (lib.sharding.AxisType.Auto,) * 2
    mesh, spec = lib.make_mesh((2, 2), ("i", "j"), axis_types=axes), lib.P(parts)
    run = lib.shard_map(
        of_member, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check_vma
    )  # fmt: skip
    xs = lib.numpy.arange(8.0)
    pull = lambda f: lib.vjp(f, xs)[1].with_logs(xs + 1)  # noqa: E731 - for three forms
    return pull(run), pull(lib.jit(run)), lib.jit(lambda: pull(run))()


def of_members_on_all_axes(lib):
    return of_members(lib, parts=("i", "j"))


def of_unchecked_members(lib):
    return of_members(lib, check_vma=False, parts=("i", "j"))


def derivatives_of_logs_of_members(lib):
    square = logged_square(lib)
    axes = (lib.sharding.AxisType.Auto,) * 2
    mesh, spec = lib.make_mesh((2, 2), ("i", "j"), axis_types=axes), lib.P("i")
    xs = lib.numpy.arange(4.0)

    def loss(xs, ct):
        run = lib.shard_map(square, mesh=mesh, in_specs=spec, out_specs=spec)
        logs = lib.vjp(run, xs)[1].with_logs(ct)[1]["square"]
        return (logs["x"] * logs["ct"]).sum()

    return lib.grad(loss, (0, 1))(xs, xs + 1)


def of_a_pmap(lib):
    square = logged_square(lib)
    xs = lib.numpy.arange(8.0).reshape(4, 2)
    of_rows = lib.vjp(lib.pmap(square), xs)[1].with_logs(xs)
    return of_rows, lib.vjp(lib.pmap(square), xs[:, 0])[1].with_logs(xs[:, 1])


def of_nothing(lib):
    return lib.vjp(lib.numpy.sin, 1.0)[1].with_logs(1.0)


def derivatives_of_what_is_logged(lib):
    square = logged_square(lib)
    return lib.grad(
        lambda x: lib.vjp(lambda y: x * square(y), x)[1].with_logs(1.0)[1]["square"]["ct"]
    )(2.0)


PROGRAMS = [
    of_two_rules, of_a_compiled_call, of_a_compiled_pass, of_a_scan, of_a_compiled_scan,
    of_branches, of_branches_in_a_scan, of_a_batch, of_a_custom_gradient,
    of_a_loop_that_drops_it, of_members, of_members_on_all_axes, of_unchecked_members, of_a_pmap,
    derivatives_of_logs_of_members,
    of_nothing, derivatives_of_what_is_logged,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_pull_back_gives_what_the_oracle_logs(program):
    jax = pytest.importorskip("jax", minversion="0.12")
    assert_same(program(xstack), program(jax))


def assert_same(own, other):
    if isinstance(own, tuple | list):
        assert len(own) == len(other)
        for x, y in zip(own, other, strict=True):
            assert_same(x, y)
    elif isinstance(own, dict):
        assert own.keys() == other.keys()
        for key, value in own.items():
            assert_same(value, other[key])
    elif isinstance(own, CondSum):
        assert_same((own.index, own.branches), (other.index, list(other.branches)))
    elif own is None:
        assert other is None
    else:
        np.testing.assert_allclose(own, other, rtol=1e-6)


def test_logs_have_the_values_of_the_backward_pass():
    (x_bar,), logs = of_two_rules(xstack)
    assert float(x_bar) == 32
    assert {name: [float(v) for v in entry.values()] for name, entry in logs.items()} == {
        "outer": [1, 4], "inner": [8, 2],  # the cotangent, then x
    }  # fmt: skip
    (xs_bar,), logs = of_a_scan(xstack)
    assert xs_bar.tolist() == [8, 8, 6]
    assert logs["square"]["ct"].tolist() == [4, 2, 1]


def test_branches_that_did_not_run_log_zeros():
    (_, high), (_, low) = of_branches(xstack)
    assert [int(s.index) for s in (*high.values(), *low.values())] == [1, 1, 0, 0]
    assert [high["high"].branches[0], low["low"].branches[1]] == [None, None]
    assert float(high["low"].branches[0]["ct"]) == 0
    assert float(low["low"].branches[0]["ct"]) == 2


def test_logs_survive_a_checkpoint():
    square = logged_square(xstack)
    f = xstack.checkpoint(lambda x: xnp.sin(square(x)))
    (x_bar,), logs = xstack.vjp(f, 2.0)[1].with_logs(1.0)
    np.testing.assert_allclose(x_bar, 4 * np.cos(4), rtol=1e-5)  # cos(4) in float32
    np.testing.assert_allclose(logs["square"]["ct"], np.cos(4), rtol=1e-5)


def test_what_is_not_collected_is_not_computed():
    square = logged_square(xstack)

    def f(x):
        return square(x).sum()

    def with_norm(x):
        return xnp.linalg.norm(x)

    @xstack.custom_vjp
    def watched(x):
        return x

    watched.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), {"norm": with_norm(ct)}))
    gradient = xstack.jit(xstack.grad(lambda x: f(watched(x))))
    assert gradient(XS).tolist() == [2, 4, 6]
    assert "sqrt" not in gradient.lower(XS).compile().as_text()


def test_a_name_that_is_logged_twice_is_an_error():
    square = logged_square(xstack)
    _, pull_back = xstack.vjp(lambda x: square(square(x)), 2.0)
    assert float(pull_back(1.0)[0]) == 32
    with pytest.raises(
        ValueError, match=r"(?s)with_logs: 'square' is logged twice.*under its own name"
    ):
        pull_back.with_logs(1.0)


def test_rules_that_log_something_else_say_so():
    @xstack.custom_vjp
    def f(x):
        return x

    f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: (ct,))
    with pytest.raises(TypeError, match=r"defvjp_with_logs: the backward rule must return a pair"):
        xstack.grad(f)(1.0)
    with pytest.raises(TypeError, match=r"(?s)log: a backward rule logs a dictionary.*or None"):
        log(["norm"])


def accumulating_product(lib):
    """Return (scale, {"x": x, "n": n}) -> scale * x, whose rule adds cotangents in two parts."""
    seen = []

    @lib.custom_vjp
    def product(scale, tree):
        return scale * tree["x"]

    def backward(residuals, ct, scale_accum, tree_accum):
        seen.append((type(scale_accum).__name__, type(tree_accum["x"]).__name__))
        scale, x = residuals
        for _ in range(2):
            scale_accum.accum(0.5 * (x * ct).sum())
            tree_accum["x"].accum(0.5 * scale * ct)
        return {"ct": ct}

    product.defvjp_with_accums(lambda s, t: (s * t["x"], (s, t["x"])), backward)
    return product, seen


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_accumulators_hold_what_a_rule_adds(compiled):
    product, seen = accumulating_product(xstack)
    tree = {"x": xnp.asarray(XS), "n": 3}

    def loss(scale, x):
        return product(scale, tree | {"x": x}).sum()

    gradient = xstack.grad(loss, (0, 1))
    scale_bar, x_bar = (xstack.jit(gradient) if compiled else gradient)(2.0, tree["x"])
    assert (float(scale_bar), x_bar.tolist()) == (6, [2, 2, 2])
    assert xstack.grad(loss, 1)(2.0, tree["x"]).tolist() == [2, 2, 2]
    assert seen == [("ValAccum", "ValAccum"), ("NullAccum", "ValAccum")]
    batched = xstack.vmap(xstack.grad(loss), in_axes=(0, None))(XS, tree["x"])
    assert batched.tolist() == [6, 6, 6]
    logs = xstack.vjp(loss, 2.0, tree["x"])[1].with_logs(5.0)[1]
    assert logs["ct"].tolist() == [5, 5, 5]
    assert float(xstack.grad(xstack.grad(loss))(2.0, tree["x"])) == 0


def test_a_custom_gradient_adds_to_accumulators():
    @xstack.custom_gradient(with_accums=ValAccum)
    def product(scale, tree):
        def backward(ct, scale_accum, tree_accum):
            tree_accum["x"].accum(scale * ct)
            scale_accum.accum((tree["x"] * ct).sum())
            return {"kinds": (isinstance(scale_accum, NullAccum), ct)}

        return scale * tree["x"], backward

    tree = {"x": xnp.asarray(XS), "n": 3}
    scale_bar, tree_bar = xstack.grad(
        lambda s, t: product(s, t).sum(), (0, 1), allow_int=True
    )(2.0, tree)  # fmt: skip
    assert (float(scale_bar), tree_bar["x"].tolist()) == (6, [2, 2, 2])
    _, pull_back = xstack.vjp(lambda t: product(2.0, t), tree)
    (tree_bar,), logs = pull_back.with_logs(xnp.asarray(XS))
    assert (tree_bar["x"].tolist(), logs["kinds"][0]) == ([2, 4, 6], True)
    for options, text in (
        ({"with_accums": RefAccum}, r"(?s)a leaf that is not a ValAccum.*RefAccum.*with_refs"),
        ({"with_accums": ValAccum, "remat": True}, "does not go with with_logs or remat"),
    ):
        with pytest.raises(TypeError, match=text):
            xstack.custom_gradient(product, **options)


WRONG_ACCUMS = {
    "a leaf for each of fewer arguments": ((ValAccum,), "different lengths"),
    "another key": ((ValAccum, {"y": ValAccum}), r"at \[1\]: different keys"),
    "a key more": ((ValAccum, {"x": ValAccum, "z": ValAccum}), r"at \[1\]: different keys"),
    "a list": ([ValAccum, ValAccum], "different types"),
    "no leaf": ((ValAccum, None), r"at \[1\]: different types"),
}


@pytest.mark.parametrize("name", WRONG_ACCUMS)
@pytest.mark.parametrize("differentiated", [False, True])
def test_accumulators_of_another_structure_than_the_arguments_are_an_error(name, differentiated):
    tree, text = WRONG_ACCUMS[name]

    @xstack.custom_gradient(with_accums=tree)
    def product(scale, tree):
        return scale * tree["x"], lambda ct, scale_accum, tree_accum: None

    call = lambda s: product(s, {"x": xnp.asarray(XS)}).sum()  # noqa: E731
    with pytest.raises(ValueError, match="with_accums and the arguments of product .*" + text):
        (xstack.grad(call) if differentiated else call)(2.0)


@pytest.mark.parametrize("tree", [ValAccum, (ValAccum, ValAccum), (ValAccum, {"x": ValAccum})])
def test_accumulators_are_a_tree_prefix_of_the_arguments(tree):
    @xstack.custom_gradient(with_accums=tree)
    def product(scale, tree):
        return scale * tree["x"], lambda ct, scale_accum, _: scale_accum.accum(7.0)

    assert float(xstack.grad(lambda s: product(s, {"x": xnp.asarray(XS)}).sum())(2.0)) == 7


@pytest.mark.parametrize("make", [ValAccum, lambda aval: RefAccum(aval, xstack.new_ref(1.0))])
def test_accumulators_take_what_is_of_their_type(make):
    total = make(xstack.typeof(xnp.float32(0)))
    with pytest.raises(ValueError, match=r"(?s)Accum.accum: .*another shape.*float32\[3\]"):
        total.accum(xnp.ones(3))
    with pytest.raises(TypeError, match=r"(?s)Accum.accum: .*real primal is complex.*ct\.real"):
        total.accum(1j)


@pytest.mark.parametrize("options", [{}, {"with_accums": ValAccum}, {"remat": True}])
@pytest.mark.parametrize("returned", ["an array", "a pair"])
def test_a_custom_gradient_returns_a_result_and_a_function(options, returned):
    second = "rem" if options.get("remat") else "vjp_fun"

    @xstack.custom_gradient(**options)
    def square(x):
        return x * x if returned == "an array" else (x * x, 3)

    text = rf"(?s)square must return a pair \(result, {second}\).*{returned}"
    for call in (square, xstack.grad(square)):
        with pytest.raises(TypeError, match=text):
            call(2.0)
    with pytest.raises(TypeError, match="custom_gradient: expected a function, got an int"):
        xstack.custom_gradient(3, **options)


def test_the_rem_of_a_custom_gradient_returns_a_result_and_a_function():
    square = xstack.custom_gradient(lambda x: (x * x, lambda x: (x * x, 3)), remat=True)
    with pytest.raises(TypeError, match=r"the rem of .* must return a pair \(result, vjp_fun\)"):
        xstack.grad(xstack.checkpoint(square))(2.0)


def test_logs_of_members_are_concatenated_along_the_axes_on_which_they_vary():
    (x_bar,), logs = of_members(xstack)[0]
    xs, ct = np.arange(8.0), np.arange(1.0, 9.0) * 2 * np.arange(8.0) ** 2
    np.testing.assert_allclose(x_bar, 2 * xs * ct)
    np.testing.assert_allclose(logs["ct"], ct)
    np.testing.assert_allclose(logs["sum"], (ct * ct).reshape(2, 4).sum(1))
    assert logs["same"].tolist() == [1, 1, 1] and logs["nothing"] is None
    assert logs["ct"].sharding.spec == xstack.P("i")


def test_derivatives_of_logs_of_unchecked_members_sum_over_those_that_do_the_same():
    axes = (xstack.sharding.AxisType.Auto,) * 2
    mesh, spec = xstack.make_mesh((2, 2), ("i", "j"), axis_types=axes), xstack.P("i")
    square = logged_square(xstack)
    run = xstack.shard_map(square, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)

    def loss(xs):  # each of the two members along j logs all of the same values
        logs = xstack.vjp(run, xs)[1].with_logs(xs)[1]["square"]
        assert logs["x"].shape == (8,)
        return (logs["x"] ** 2).sum()

    assert xstack.grad(loss)(xnp.arange(4.0)).tolist() == [0, 4, 8, 12]


def test_logs_of_a_while_loop_are_an_error_and_do_not_vanish():
    def of_loop(x):
        return xstack.lax.while_loop(
            lambda c: c < 9.0, lambda c: xstack.grad(logged_square(xstack))(c), x
        )

    with pytest.raises(NotImplementedError, match=r"rules log inside of while is not collected"):
        collect(xstack.jit(of_loop), 2.0)
