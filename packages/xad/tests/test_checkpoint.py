import collections
import functools
import gc
import weakref

import numpy as np
import pytest

import xnp
from packages.xad.tests.programs import add, cos, dot, exp, mul, sin, tanh, to_float, total
from xad import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint,
    checkpoint_name,
    checkpoint_name_fwd,
    checkpoint_policies,
    grad,
    hessian,
    jvp,
    linearize,
    print_saved_residuals,
    remat,
    saved_residuals,
    value_and_grad,
)
from xnp import lax
from xprim import as_array, eval_closed, make_jaxpr

X = np.array([0.3, -1.2, 2.0], np.float32)
W = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-6)


def layered(x, w):
    h = checkpoint_name(sin(dot(x, w)), "hidden")
    return total(mul(exp(h), checkpoint_name(tanh(dot(h, w)), "out")))


POLICIES = {
    "none": None,
    "everything": checkpoint_policies.everything_saveable,
    "nothing": checkpoint_policies.nothing_saveable,
    "dots": checkpoint_policies.dots_saveable,
    "no batch": checkpoint_policies.dots_with_no_batch_dims_saveable,
    "names": checkpoint_policies.save_only_these_names("hidden"),
    "not names": checkpoint_policies.save_anything_except_these_names("hidden"),
    "other names": checkpoint_policies.save_any_names_but_these("hidden"),
    "both": checkpoint_policies.save_from_both_policies(
        checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("out")
    ),
    "offload": checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["hidden"], names_which_can_be_offloaded=["out"],
        offload_src="device", offload_dst="pinned_host",
    ),
    "offload dots": checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
}  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_a_checkpointed_function_has_the_derivatives_of_the_function(name):
    f = checkpoint(layered, policy=POLICIES[name])
    close(f(X, W), layered(X, W))
    for argnum in (0, 1):
        close(grad(f, argnum)(X, W), grad(layered, argnum)(X, W))
    close(jvp(f, (X, W), (X, W)), jvp(layered, (X, W), (X, W)))
    close(hessian(f)(X, W), hessian(layered)(X, W))
    close(grad(lambda x: total(grad(f)(x, W)))(X), grad(lambda x: total(grad(layered)(x, W)))(X))
    close(grad(checkpoint(lambda x: mul(f(x, W), 2.0)))(X), 2 * np.asarray(grad(layered)(X, W)))


def _recomputed(policy):
    """Return the names of the primitives that the backward pass of `layered` computes again."""
    closed = make_jaxpr(grad(checkpoint(layered, policy=policy)))(X, W)
    backward = closed.eqns[-1]
    assert backward.primitive.name == "checkpoint"
    return [eqn.primitive.name for eqn in backward.params["jaxpr"].eqns]


def test_the_policy_decides_what_is_computed_again():
    assert _recomputed(None).count("dot_general") == 4  # two again, two for the cotangents
    assert _recomputed(checkpoint_policies.dots_saveable).count("dot_general") == 2
    assert "sin" in _recomputed(checkpoint_policies.dots_saveable)
    everything = _recomputed(checkpoint_policies.everything_saveable)
    assert "sin" not in everything and "tanh" not in everything and "exp" not in everything
    named = _recomputed(checkpoint_policies.save_only_these_names("hidden"))
    assert "sin" not in named and "exp" in named


def test_forward_values_that_no_one_needs_are_not_kept():
    square = checkpoint(lambda x: mul(x, x), policy=checkpoint_policies.everything_saveable)
    closed = make_jaxpr(grad(square))(1.0)
    assert len(closed.eqns[0].outputs) == 1  # the derivative needs the argument alone


@pytest.mark.parametrize(
    ("policy", "again"),
    [
        (checkpoint_policies.everything_saveable, set()),
        (checkpoint_policies.nothing_saveable, {"sin", "cos"}),
        (lambda primitive, *_, **__: primitive.name == "sin", {"cos"}),
        (lambda primitive, *_, **__: primitive.name == "cos", {"sin"}),
    ],
)
def test_a_policy_is_asked_for_the_factors_of_derivatives_too(policy, again):
    f = checkpoint(lambda x: sin(mul(sin(x), x)), policy=policy)
    closed = make_jaxpr(grad(f))(0.7)
    _, backward = [eqn for eqn in closed.eqns if eqn.primitive.name == "checkpoint"]
    inside = {eqn.primitive.name for eqn in backward.params["jaxpr"].eqns}
    assert inside & {"sin", "cos"} == again
    slope = np.cos(np.sin(0.7) * 0.7) * (np.sin(0.7) + 0.7 * np.cos(0.7))
    close(grad(f)(0.7), slope)
    close(linearize(f, 0.7)[1](2.0), 2 * slope)


def test_verdicts_of_policies():
    assert bool(Saveable) and not bool(Recompute)
    assert repr(Saveable) == "Saveable" and repr(Recompute) == "Recompute"
    assert Offloadable("device", "pinned_host").dst == "pinned_host"
    with pytest.raises(ValueError, match="a name must be in one of the two lists"):
        checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip
    with pytest.raises(TypeError, match="checkpoint_name: the name must be a string"):
        checkpoint_name(1.0, 2)
    close(checkpoint_name_fwd(2.0, "x"), 2.0)


def test_decorator_forms_and_static_arguments():
    @checkpoint(static_argnums=(0, -1), prevent_cse=False)
    def f(mode, x, power):
        assert isinstance(mode, str) and isinstance(power, int)
        for _ in range(power):
            x = sin(x)
        return x

    close(f("fast", 1.0, 2), np.sin(np.sin(1.0)))
    close(grad(f, 1)("fast", 1.0, 2), np.cos(np.sin(1.0)) * np.cos(1.0))
    assert remat is checkpoint
    with pytest.raises(ValueError, match="static_argnums names argument 3"):
        checkpoint(sin, static_argnums=3)(1.0)
    with pytest.raises(ValueError, match="concrete=True is not supported"):
        checkpoint(sin, concrete=True)
    with pytest.raises(TypeError, match="checkpoint: the policy must be a function, got a str"):
        checkpoint(sin, policy="dots")
    with pytest.raises(TypeError, match="checkpoint: expected a function"):
        checkpoint(3)


def test_checkpoint_takes_trees_integers_and_what_it_closes_over():
    def outer(w):
        f = checkpoint(lambda t: {"y": mul(mul(t["x"], w), to_float(t["n"])), "n": t["n"]})
        return f({"x": 3.0, "n": 2})["y"]

    close(grad(outer)(5.0), 6.0)
    value, gradient = value_and_grad(checkpoint(lambda x: mul(x, 4.0)))(2.0)
    close((value, gradient), (8.0, 4.0))


def test_checkpoint_under_staging_and_linearize():
    f = checkpoint(lambda x: sin(sin(x)))
    staged = make_jaxpr(grad(f))(1.0)
    close(eval_closed(staged, as_array(1.0))[0], np.cos(np.sin(1.0)) * np.cos(1.0))
    close(linearize(f, 1.0)[1](2.0), 2 * np.cos(np.sin(1.0)) * np.cos(1.0))


def test_dead_results_of_a_checkpoint_are_dropped():
    from xprim import remove_dead_code

    closed = make_jaxpr(lambda x: checkpoint(lambda x: (sin(x), cos(x)))(x)[1])(1.0)
    smaller, _ = remove_dead_code(closed.jaxpr)
    (eqn,) = smaller.eqns
    assert [e.primitive.name for e in eqn.params["jaxpr"].eqns] == ["cos"]


def test_print_saved_residuals_says_what_is_kept_and_why(capsys):
    def f(p, x):
        y = checkpoint_name(mul(sin(p["w"]), x), "product")
        return total(mul(tanh(y), add(y, 1.0)))

    print_saved_residuals(f, {"w": X}, x=X)
    text = capsys.readouterr().out
    assert "f32[3] from the argument x" in text
    assert "f32[3] output of cos from programs.py" in text
    print_saved_residuals(lambda x: mul(checkpoint_name(sin(x), "kept"), mul(x, X)), X)
    text = capsys.readouterr().out
    assert "f32[3] named 'kept' from" in text and "f32[3] from a constant" in text
    assert "transforms.py" not in text  # xtree's frames are hidden
    print_saved_residuals(checkpoint(lambda x: sin(exp(x))), 1.0)
    (line,) = capsys.readouterr().out.splitlines()
    reason = "(4 bytes; read by the derivative of checkpoint at test_checkpoint.py"
    assert line.startswith(f"f32[] from the argument x {reason}")


def test_residuals_inside_of_loops_and_branches_have_lines_of_their_own():
    def step(c, w):
        c = lax.cond(total(c) < 9.0, lambda c: tanh(mul(c, w)), lambda c: sin(exp(c)), c)
        return c, None

    found = saved_residuals(lambda x, ws: lax.scan(step, x, ws)[0], X, W)
    inside = [r for r in found if r.origin.endswith(", in a branch, in each of 3 steps")]
    made = {r.origin.split(" at ")[0].split(" from ")[0] for r in inside}
    assert made >= {"output of exp", "output of cos"}
    assert all(", inside at " in r.reason for r in inside)
    assert all(r.nbytes == 36 and r.aval.shape == (3, 3) for r in inside)


class KeepAll:
    def __call__(self, *_avals, **_params):
        return True


def keep_all(*_avals, extra, **_params):
    return extra


@pytest.mark.parametrize(("policy", "name"), [
    (functools.partial(keep_all, extra=True), "keep_all"), (KeepAll(), "KeepAll"),
])  # fmt: skip
def test_a_residual_is_kept_by_the_name_of_its_policy(policy, name):
    found = saved_residuals(checkpoint(lambda x: sin(exp(x)), policy=policy), 1.0)
    assert found[-1].reason.endswith(f"; kept by the policy {name}")


# --- programs that are kept ----------------------------------------------------------------------


def test_a_checkpointed_function_that_is_called_again_is_not_traced_again(capsys):
    def fun(x, scale=1.0):
        print("traced")  # noqa: T201 - a list would make it another function
        return xnp.sin(x) * scale

    once = checkpoint(fun)
    for x in range(10):
        assert float(once(float(x))) == pytest.approx(np.sin(x), abs=1e-6)
        checkpoint(fun)(float(x))  # the same function
        grad(once)(float(x))
    make_jaxpr(lambda x: once(once(x)))(1.0)
    assert capsys.readouterr().out == "traced\n"
    once(np.float32([1.0]))
    once(1.0, scale=2.0)
    assert capsys.readouterr().out == "traced\n" * 2


def test_a_checkpointed_function_that_closes_over_traced_values_is_traced_for_each():
    def scaled(y):
        return checkpoint(lambda x: mul(x, y))(3.0)

    assert [float(grad(scaled)(y)) for y in (1.0, 2.0)] == [3.0, 3.0]
    assert [float(scaled(as_array(y))) for y in (1.0, 2.0)] == [3.0, 6.0]
    once = checkpoint(lambda x: mul(x, held[0]))
    held = [as_array(2.0)]
    assert float(grad(lambda y: held.__setitem__(0, y) or once(3.0))(2.0)) == 3.0


def test_what_a_function_sees_is_looked_at_again():
    options = {"scale": 2.0}
    scaled = checkpoint(lambda x: x * options["scale"])
    assert [float(scaled(3.0)), float(scaled(3.0))] == [6.0, 6.0]
    options["scale"] = 5.0
    assert float(scaled(3.0)) == 15.0
    assert float(grad(scaled)(3.0)) == 5.0


def test_static_arguments_are_told_apart_by_value_and_type():
    power = checkpoint(lambda x, n: x * n, static_argnums=1)
    found = [power(as_array(3), n) for n in (2, 2.0, 3, True)]
    assert [(y.dtype.name, float(y)) for y in found] == [
        ("int32", 6.0), ("float32", 6.0), ("int32", 9.0), ("int32", 3.0)
    ]  # fmt: skip
    signed = checkpoint(lambda x, zero: xnp.copysign(x, zero), static_argnums=1)
    assert [float(signed(1.0, zero)) for zero in (0.0, -0.0)] == [1.0, -1.0]
    typed = checkpoint(lambda x, pair: x * pair.first, static_argnums=1)
    pair_type = collections.namedtuple("Pair", "first")
    found = [typed(as_array(3), pair_type(one)) for one in (1, 1.0)]
    assert [y.dtype.name for y in found] == ["int32", "float32"]
    listed = checkpoint(lambda x, ns: x * ns[0], static_argnums=1)
    assert [float(listed(2.0, [n])) for n in (1.0, 2.0)] == [2.0, 4.0]


def test_a_function_that_is_static_is_known_by_value_and_dies_with_what_it_captured(capsys):
    def apply(f, x, rest=None):
        print("traced")  # noqa: T201 - a list would make it another function
        return f(x)

    def scaled_by(captured):
        return lambda x: mul(x, captured)

    captured = as_array(X)
    alive = weakref.ref(captured)
    scaled = scaled_by(captured)
    once = checkpoint(apply, static_argnums=(0, 2))
    for _ in range(3):
        close(once(scaled, 2.0, None), 2 * X)
    close(once(scaled_by(as_array(2 * X)), 2.0, None), 4 * X)
    assert capsys.readouterr().out == "traced\n" * 2
    del captured, scaled
    gc.collect()
    assert alive() is None


def test_a_static_value_without_a_hash_and_a_function_that_may_change_are_traced_each_time():
    traced = []

    def scaled(x, factors):
        traced.append(factors)
        return x * factors[0]

    once = checkpoint(scaled, static_argnums=1)
    assert [float(once(2.0, [n])) for n in (3.0, 4.0, 4.0)] == [6.0, 8.0, 8.0]
    assert len(traced) == 3


def test_a_kept_program_does_not_keep_its_function_alive():
    captured = as_array(X)

    def fun(x):
        return add(x, captured)

    checkpoint(fun)(X)
    alive = weakref.ref(fun)
    del fun
    gc.collect()
    assert alive() is None
