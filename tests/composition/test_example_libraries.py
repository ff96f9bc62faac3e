"""Layers and optimizers: beside JAX's, and trained by compiled steps."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack.example_libraries import optimizers, stax

MAKERS = [
    ("sgd", (0.1,)), ("momentum", (0.1, 0.9)), ("nesterov", (0.1, 0.9)), ("adagrad", (0.1,)),
    ("rmsprop", (0.1,)), ("rmsprop_momentum", (0.1,)), ("adam", (0.1,)), ("adamax", (0.1,)),
    ("sm3", (0.1,)),
]  # fmt: skip
PARAMS = {"w": np.linspace(-1, 2, 6, dtype="f").reshape(2, 3), "b": [np.ones(3, "f")]}
GRADS = [
    {"w": np.sin(k + np.arange(6, dtype="f")).reshape(2, 3), "b": [np.array([0, k, -1], "f")]}
    for k in range(4)
]


@pytest.fixture(scope="module")
def oracle():
    """JAX's two modules, and its `jit`: a program compiles faster than its steps."""
    jax = pytest.importorskip("jax")
    from jax.example_libraries import optimizers as their_optimizers, stax as their_stax

    return their_optimizers, their_stax, jax.jit


def after_steps(maker, size, *rest):
    init, update, get_params = maker(size, *rest)
    state = init(PARAMS)
    for i, grads in enumerate(GRADS):
        state = update(i, grads, state)
    return get_params(state)


@pytest.mark.parametrize(("name", "args"), MAKERS)
def test_optimizers_take_the_steps_of_the_oracle(name, args, oracle):
    theirs = oracle[2](lambda: after_steps(getattr(oracle[0], name), *args))()
    ours = after_steps(getattr(optimizers, name), *args)
    np.testing.assert_allclose(ours["w"], theirs["w"], rtol=2e-6, atol=1e-7)  # roundings of float32
    np.testing.assert_allclose(ours["b"][0], theirs["b"][0], rtol=2e-6, atol=1e-7)
    assert ours["w"].dtype == "float32"


@pytest.mark.parametrize(("name", "args"), [
    ("constant", (0.5,)), ("exponential_decay", (0.5, 10, 0.9)),
    ("inverse_time_decay", (0.5, 10, 0.9)), ("inverse_time_decay", (0.5, 10, 0.9, True)),
    ("polynomial_decay", (0.5, 10, 0.1, 2.0)), ("piecewise_constant", ([2, 11], [1.0, 0.5, 0.1])),
])  # fmt: skip
def test_step_sizes_are_those_of_the_oracle(name, args, oracle):
    theirs, ours = (getattr(library, name)(*args) for library in (oracle[0], optimizers))
    for i in (0, 2, 3, 10, 12, 25):
        np.testing.assert_allclose(ours(i), theirs(i), rtol=1e-6)


def test_a_step_is_compiled_with_its_number_and_its_schedule():
    init, update, get_params = optimizers.adam(optimizers.exponential_decay(0.5, 50, 0.5))

    @xstack.jit
    def step(i, state):
        return update(i, xstack.grad(lambda w: xnp.sum((w - 3.0) ** 2))(get_params(state)), state)

    state = init(xnp.zeros(2))
    for i in range(100):
        state = step(i, state)
    np.testing.assert_allclose(get_params(state), 3.0, atol=0.05)


def test_states_are_unpacked_and_packed_again():
    init, update, get_params = optimizers.sm3(0.1)
    state = update(0, GRADS[1], init(PARAMS))
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked["w"], optimizers.JoinPoint) and len(marked["w"].subtree) == 3
    again = optimizers.pack_optimizer_state(marked)
    assert xstack.tree.structure(again) == xstack.tree.structure(state)
    assert get_params(again)["w"].tolist() == get_params(state)["w"].tolist()
    with pytest.raises(TypeError, match="pack_optimizer_state: each leaf must be a JoinPoint"):
        optimizers.pack_optimizer_state({"w": 1.0})


def test_gradients_of_another_structure_or_a_step_that_changes_it_are_refused():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="the gradients have another structure than the parameters"):
        update(0, {"w": 1.0}, init({"v": 1.0}))
    init, update, _ = optimizers.optimizer(
        lambda: (lambda x: x, lambda i, g, x: (x, g), lambda x: x)
    )()
    with pytest.raises(TypeError, match="update gave a state of another structure"):
        update(0, 1.0, init(1.0))
    with pytest.raises(TypeError, match="make_schedule: a step size is a number or a function"):
        optimizers.sgd([0.1, 0.2])
    with pytest.raises(ValueError, match="piecewise_constant: takes a vector of boundaries"):
        optimizers.piecewise_constant([1, 2], [0.1])


def test_the_norm_of_a_tree_is_clipped(oracle):
    norm = optimizers.l2_norm(PARAMS)
    np.testing.assert_allclose(norm, oracle[0].l2_norm(PARAMS), rtol=1e-6)
    for most in (0.5, 100.0):
        ours, theirs = (lib.clip_grads(PARAMS, most)["w"] for lib in (optimizers, oracle[0]))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def network(stax):
    """Return a network with every kind of layer, and the shape of its input."""
    convolved = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"), stax.BatchNorm(), stax.Relu,
        stax.MaxPool((2, 2), strides=(2, 2)), stax.ConvTranspose(2, (2, 2), strides=(2, 2)),
        stax.SumPool((2, 2), padding="SAME"), stax.AvgPool((2, 2), padding="SAME"),
        stax.AvgPool((3, 3), strides=(2, 2)), stax.Flatten,
    )  # fmt: skip
    two = stax.parallel(stax.serial(stax.Dense(5), stax.Tanh, stax.Softplus),
                        stax.serial(stax.Dense(5), stax.Sigmoid, stax.Elu))  # fmt: skip
    rest = [stax.LeakyRelu, stax.Selu, stax.Gelu, stax.Identity, stax.Exp, stax.Softmax]
    return stax.serial(
        convolved, stax.FanOut(2), two, stax.FanInSum, *rest, stax.FanOut(2),
        stax.parallel(stax.Identity, stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))),
        stax.FanInConcat(), stax.Dropout(0.8), stax.LogSoftmax,
    ), (2, 8, 8, 3)  # fmt: skip


def test_a_network_has_the_shapes_and_values_of_the_oracle(oracle):
    jax = pytest.importorskip("jax")
    (our_init, our_apply), shape = network(stax)
    (their_init, their_apply), _ = network(oracle[1])
    their_shapes = []

    def initialize(key):
        their_shape, their_params = their_init(key, shape)
        their_shapes.append(their_shape)
        return their_params

    our_shape, params = our_init(xstack.random.key(3), shape)
    their_params = jax.eval_shape(initialize, jax.random.key(3))
    assert our_shape == their_shapes[0] == (2, 10)
    leaves = [np.asarray(p) for p in xstack.tree.leaves(params)]
    kinds = [(p.shape, p.dtype) for p in leaves]
    assert kinds == [(p.shape, p.dtype) for p in jax.tree.leaves(their_params)]
    x = np.cos(np.arange(np.prod(shape), dtype="f")).reshape(shape)
    ours = our_apply(params, x, rng=xstack.random.key(5))
    same = jax.tree.unflatten(jax.tree.structure(their_params), leaves)
    theirs = jax.jit(their_apply)(same, x, rng=jax.random.key(5))
    # chains of float32 operations in another order
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_first_parameters_are_those_of_the_oracle(oracle):
    jax = pytest.importorskip("jax")
    layers = [lib.serial(lib.Dense(3), lib.Relu, lib.Dense(2)) for lib in (stax, oracle[1])]
    _, ours = layers[0][0](xstack.random.key(3), (-1, 4))
    theirs = jax.jit(lambda key: layers[1][0](key, (-1, 4))[1])(jax.random.key(3))
    for p, q in zip(xstack.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-5, atol=1e-6)


def test_a_layer_that_draws_asks_for_a_key_and_rests_outside_of_training():
    init, apply = stax.Dropout(0.5, mode="test")
    x = xnp.arange(4.0)
    assert init(None, (4,)) == ((4,), ())
    assert apply((), x, rng=xstack.random.key(0)) is x
    with pytest.raises(ValueError, match=r"Dropout: the layer draws numbers.*\n  hint"):
        stax.Dropout(0.5)[1]((), x)


def test_batch_norm_leaves_out_what_is_not_asked_for():
    for center, scale in ((True, False), (False, True), (False, False)):
        init, apply = stax.BatchNorm(axis=0, center=center, scale=scale)
        _, params = init(xstack.random.key(0), (6, 2))
        assert [isinstance(p, tuple) for p in params] == [not center, not scale]
        z = apply(params, xnp.arange(12.0).reshape(6, 2))
        np.testing.assert_allclose(z.mean(0), 0, atol=1e-6)


def test_initializers_of_stax_have_their_short_names():
    key, initializers = xstack.random.PRNGKey(0), xstack.nn.initializers
    for short, whole in (("glorot", initializers.glorot_normal), ("randn", initializers.normal)):
        got, expected = getattr(stax, short)()(key, (2, 3)), whole()(key, (2, 3))
        np.testing.assert_array_equal(got, expected)
    assert stax.logsoftmax is stax.log_softmax
