"""What a pull-back saves of the arguments, beside the oracle: left out, put back, edited."""

import numpy as np
import pytest

import xstack

jax = pytest.importorskip("jax", minversion="0.12")

W, X = np.float32([[1, 2], [3, 4]]), np.float32([0.25, -0.5])


def layer(lib):
    return lambda w, x: lib.numpy.tanh(w @ x)


def saved_by_all(lib):
    y, pull_back = lib.vjp(layer(lib), lib.numpy.asarray(W), lib.numpy.asarray(X))
    return pull_back.args_res, pull_back.out_nzs, pull_back(y)


def put_back(lib, saveable_args=(False, True)):
    w, x = lib.numpy.asarray(W), lib.numpy.asarray(X)
    y, pull_back = lib.vjp(layer(lib), w, x, saveable_args=saveable_args)
    before, count = list(pull_back.args_res), len(lib.tree.leaves(pull_back))
    functional = pull_back.replace(args_res=[w, x])(y)
    pull_back.args_res[0] = w
    return before, count, functional, pull_back(y)


def put_back_in_other_containers(lib):
    d = {"b": lib.numpy.asarray(W), "a": lib.numpy.asarray(X)}
    y, pull_back = lib.vjp(lambda d: d["b"] @ d["a"], d, saveable_args=((True, False),))
    before = list(pull_back.args_res)
    pull_back.args_res = [d]
    return before, pull_back(y)


def put_back_in_a_compiled_pass(lib):
    forward = lib.jit(lambda w, x: lib.vjp(layer(lib), w, x, saveable_args=(False, True)))

    @lib.jit
    def backward(pull_back, w, y_bar):
        pull_back.args_res[0] = w
        return pull_back(y_bar)

    y, pull_back = forward(W, X)
    return pull_back.args_res, backward(pull_back, W, y)


def saved_by_a_mapped_call(lib):
    xs = np.stack([X, 2 * X])
    compute = lib.vmap(lambda x: lib.vjp(layer(lib), W, x, saveable_args=(False, True)))
    ys, pull_back = compute(xs)

    def backward(pull_back, y):
        return pull_back.replace(args_res=[lib.numpy.asarray(W), pull_back.args_res[1]])(y)

    return pull_back.args_res[0], lib.vmap(backward)(pull_back, ys)


def edited(lib):
    y, pull_back = lib.vjp(lambda x: lib.numpy.sin(x) * 2, lib.numpy.asarray(X))
    pull_back.opaque_residuals[0] = lib.numpy.ones(2)
    return pull_back.args_res, pull_back(y)


def one_array_for_two_arguments(lib):
    x = lib.numpy.asarray(X)
    y, pull_back = lib.vjp(lambda x, y: lib.numpy.sin(x) * y, x, x)
    before = list(pull_back.args_res)
    pull_back.args_res[0] = 3 * x
    first = pull_back(y)
    pull_back.args_res[1] = 2 * x  # the last one counts
    return before, first, pull_back(y)


def of_some_arguments(lib):
    y, pull_back = lib.vjp(lambda w, x: (w @ x, [x]), W, X, in_nzs=(True, False))
    return pull_back.out_nzs, pull_back(y)


def of_some_tangents(lib):
    _, push_forward = lib.linearize(lambda w, x: w @ x, W, X, in_nzs=(False, True))
    return push_forward(W, X)


def gathered_again(lib):
    """Weights of a layer that are sharded, gathered in either pass, and saved in neither."""
    mesh = lib.make_mesh((2,), ("d",), devices=lib.devices()[:2])

    def gather(w):
        return lib.lax.all_gather(w, "d", tiled=True)

    @lib.custom_vjp
    def f(part, x):
        return layer(lib)(gather(part), x)

    def forward(part, x):
        y, pull_back = lib.vjp(layer(lib), gather(part), x, saveable_args=(False, True))
        return y, (pull_back, part)

    def backward(residuals, y_bar):
        pull_back, part = residuals
        pull_back.args_res[0] = gather(lib.lax.optimization_barrier(part))
        w_bar, x_bar = pull_back(y_bar)
        return lib.lax.psum_scatter(w_bar, "d", scatter_dimension=0, tiled=True), x_bar

    f.defvjp(forward, backward)
    specs = (lib.P("d"), lib.P())
    mapped = lib.shard_map(lambda w, x: lib.lax.pmean(f(w, x).sum(), "d"), mesh=mesh,
                           in_specs=specs, out_specs=lib.P(), check_vma=False)  # fmt: skip
    w = lib.device_put(W, lib.NamedSharding(mesh, specs[0]))
    x = lib.device_put(X, lib.NamedSharding(mesh, specs[1]))
    return lib.jit(lib.grad(mapped))(w, x)


PROGRAMS = [
    saved_by_all, put_back, put_back_in_other_containers, put_back_in_a_compiled_pass,
    saved_by_a_mapped_call, edited, of_some_arguments, of_some_tangents, gathered_again,
    one_array_for_two_arguments,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_pull_back_saves_what_the_oracle_saves(program):
    own, other = program(xstack), program(jax)
    # `repr` shows the marks and containers, of which one of the libraries' trees has no leaves
    assert _shown(own) == _shown(other)
    for x, y in zip(xstack.tree.leaves(own), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5)  # 1 - tanh(2.5)^2 loses 5 bits


def _shown(value):
    if isinstance(value, list | tuple):
        return type(value)(map(_shown, value))
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    return np.shape(value) if hasattr(value, "shape") else repr(value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda p: p(X), r"vjp: the backward pass needs the argument at \[0\]"),
        (lambda p: p.replace(args_res=[]), r"got +0 leaves\n +expected +2"),
        (lambda p: p.replace(args_res=[X, X])(X), r"args_res: the value at \[0\] is of another"),
        (lambda p: p.replace(opaque_residuals=[]), "opaque_residuals: their number is fixed"),
        (lambda p: p.replace(opaque_residuals=None), "opaque_residuals: it must be a list"),
        (lambda p: p.replace(out_nzs=True), "replace: unknown attribute 'out_nzs'"),
    ],
)
def test_what_is_put_back_must_be_what_was_left_out(call, text):
    _, pull_back = xstack.vjp(layer(xstack), W, X, saveable_args=(False, True))
    with pytest.raises((ValueError, TypeError), match=text):
        xstack.tree.leaves(call(pull_back))


@pytest.mark.parametrize("flags", [None, "all", 1, (True,), (True, (True, True)), ({}, True)])
def test_flags_must_fit_the_arguments(flags):
    with pytest.raises(ValueError, match=r"vjp: saveable_args: it (must be|has other)"):
        xstack.vjp(layer(xstack), W, X, saveable_args=flags)


def test_flags_of_a_dictionary_need_its_keys():
    xstack.vjp(lambda d: d["a"] * 2.0, {"a": X}, saveable_args=({"a": False},))
    with pytest.raises(ValueError, match="saveable_args: it has other children"):
        xstack.vjp(lambda d: d["a"] * 2.0, {"a": X}, saveable_args=({"b": False},))


@pytest.mark.parametrize("value", [X, np.float32(0.5)], ids=["array", "scalar"])
def test_arguments_are_saved_alike_when_a_derivative_runs_often(value):
    """From some use on, rules of small arrays are kernels, which have elements without arrays."""
    f = lambda x, y: xstack.numpy.sin(x) * y  # noqa: E731 - one function for all runs
    x, y = xstack.numpy.asarray(value), xstack.numpy.asarray(2 * value)
    shown = set()
    for _ in range(40):
        _, pull_back = xstack.vjp(f, x, y, saveable_args=(True, False))
        shown.add((repr(pull_back.args_res), len(pull_back.opaque_residuals)))
        pull_back.args_res[1] = y
        np.testing.assert_allclose(pull_back(x)[0], x * np.cos(x) * y, rtol=1e-6)  # 3 roundings
    assert shown == {("[NotNeeded(), NotSaveable()]", 2)}
