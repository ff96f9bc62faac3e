"""Random keys and numbers over a mesh of eight virtual CPU devices: the same as on one device."""

import numpy as np
import pytest

import xnp.numpy as xnp
import xrandom
from xad import grad
from xbatch import vmap
from xjit import device_put, devices, jit
from xpar import AxisType, Mesh, NamedSharding, P, set_mesh
from xstack import typeof

N = 8
MESH = Mesh(np.array(devices("cpu")[:N]).reshape(4, 2), ("x", "y"))


def on(*parts):
    return NamedSharding(MESH, P(*parts))


def test_random_keys_are_spread_by_their_own_dimensions():
    keys = xrandom.split(xrandom.key(0), 8)
    x = device_put(keys, on(("x", "y")))
    assert x.shape == (8,) and x.addressable_data(2).shape == (1,)
    words = xrandom.key_data(x)
    np.testing.assert_array_equal(words, xrandom.key_data(keys))
    assert (x.sharding, words.sharding) == (on(("x", "y")), on(("x", "y"), None))
    np.testing.assert_array_equal(
        xrandom.key_data(jit(lambda k: k[::-1], out_shardings=on("y"))(x)),
        xrandom.key_data(keys[::-1]),
    )


@pytest.mark.parametrize("sharding", [on(), on("x"), on("y", "x"), on(None, ("x", "y"))])
@pytest.mark.parametrize("sampler", [xrandom.normal, xrandom.uniform, xrandom.bits])
def test_numbers_do_not_depend_on_how_they_lie(sampler, sharding):
    draw = jit(lambda key: sampler(key, (16, 24)), out_shardings=sharding)
    found = draw(xrandom.key(7))
    assert found.sharding == sharding
    # jit(sampler) on one device gives the same bits; the transforms of them round alike
    np.testing.assert_array_equal(found, jit(lambda key: sampler(key, (16, 24)))(xrandom.key(7)))


EXPLICIT = Mesh(MESH.devices, ("x", "y"), AxisType.Explicit)
KEYS = xrandom.split(xrandom.key(5), (8, 2))
RATES = np.arange(1, 17, dtype=np.float32).reshape(8, 2)
SAMPLERS = {
    # name: (a draw from one key and one number, what its result has beside the keys' dimensions)
    "bits": (lambda k, a: xrandom.bits(k, (3,)), 1),
    "split": (lambda k, a: xrandom.key_data(xrandom.split(k)), 2),
    "fold_in": (lambda k, a: xrandom.key_data(xrandom.fold_in(k, 3)), 1),
    "uniform": (lambda k, a: xrandom.uniform(k, maxval=a), 0),
    "normal": (lambda k, a: xrandom.normal(k, (2,)), 1),
    "randint": (lambda k, a: xrandom.randint(k, (2,), 0, 9), 1),
    "categorical": (lambda k, a: xrandom.categorical(k, xnp.stack([a, a])), 0),
    "permutation": (lambda k, a: xrandom.permutation(k, 3), 1),
    "gamma": (lambda k, a: xrandom.gamma(k, a), 0),
    "loggamma": (lambda k, a: xrandom.loggamma(k, 0.5), 0),
    "poisson": (lambda k, a: xrandom.poisson(k, a), 0),
    "dirichlet": (lambda k, a: xrandom.dirichlet(k, xnp.ones(3)), 1),
    "truncated_normal": (lambda k, a: xrandom.truncated_normal(k, -1.0, a), 0),
}


@pytest.mark.sampled(every=40)
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P(None, "y"), P(("x", "y"))], ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["evaluated", "compiled"])
def test_keys_that_explicit_axes_cut_are_drawn_from_where_they_are(name, spec, wrap):
    draw, more = SAMPLERS[name]
    mapped = vmap(vmap(draw))
    sharding = NamedSharding(EXPLICIT, spec)
    with set_mesh(EXPLICIT):
        out = wrap(mapped)(device_put(KEYS, sharding), device_put(RATES, sharding))
        parts = [*spec, *[None] * (2 - len(spec) + more)]
        assert typeof(out).sharding.spec == P(*parts)
    # one device computes the same bits; the transforms of them may be fused otherwise
    np.testing.assert_allclose(out, mapped(KEYS, RATES), rtol=1e-5, atol=1e-6)


CUT = {
    # how keys and exponents are cut, and so the samples
    "keys": (P("x"), None, P("x", None)),
    "exponents": (None, P(None, "y"), P(None, "y")),
    "both": (P("x"), P(None, "y"), P("x", "y")),
}


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["evaluated", "compiled"])
@pytest.mark.parametrize("name", CUT)
def test_gamma_is_cut_as_keys_and_exponents_are(name, wrap):
    of_keys, of_rates, expected = CUT[name]
    draw = vmap(vmap(xrandom.gamma))
    with set_mesh(EXPLICIT):
        keys = device_put(KEYS, of_keys) if of_keys else KEYS
        rates = device_put(RATES, of_rates) if of_rates else RATES
        out = wrap(draw)(keys, rates)
        slopes = wrap(grad(lambda a: draw(keys, a).sum()))(rates)
    assert typeof(out).sharding.spec == expected
    np.testing.assert_allclose(out, draw(KEYS, RATES), rtol=1e-5)
    np.testing.assert_allclose(slopes, grad(lambda a: draw(KEYS, a).sum())(RATES), rtol=1e-4)


FUNCTIONS_OF_KEYS = {
    "wrap_key_data": lambda k: xrandom.wrap_key_data(xrandom.key_data(k), impl=k.dtype.impl),
    "key_data": xrandom.key_data,
    "clone": xrandom.clone,
    "split": vmap(vmap(xrandom.split)),
    "split_shape": vmap(vmap(lambda k: xrandom.split(k, (2, 3)))),
    "split_scalar": lambda k: xrandom.split(k[0, 0], (8, 2)),
    "fold_in": vmap(vmap(lambda k: xrandom.fold_in(k, 3))),
    "getitem": lambda k: k[:, 1],
    "slice": lambda k: k[:, None, :1],
    "transpose": lambda k: k.T,
    "reshape": lambda k: k.reshape(8, 2, 1),
    "stack": lambda k: xnp.stack([k, k]),
    "concatenate": lambda k: xnp.concatenate([k, k], axis=1),
    "broadcast_to": lambda k: xnp.broadcast_to(k, (3, 8, 2)),
    "where": lambda k: xnp.where(True, k, k),
    "equal": lambda k: k == k[:, ::-1],
}


@pytest.mark.sampled(every=48)
@pytest.mark.parametrize("name", FUNCTIONS_OF_KEYS)
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("spec", [P(), P("x"), P("x", "y"), P(None, "y"), P(("x", "y"))], ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["evaluated", "compiled"])
def test_specs_of_keys_have_an_entry_for_each_dimension(name, impl, spec, wrap):
    function = FUNCTIONS_OF_KEYS[name]
    keys = xrandom.split(xrandom.key(5, impl=impl), (8, 2))
    with set_mesh(EXPLICIT):
        out = wrap(function)(device_put(keys, NamedSharding(EXPLICIT, spec)))
        assert out.sharding.spec == typeof(out).sharding.spec
        assert len(out.sharding.spec) == out.ndim
        assert [shard.data.ndim for shard in out.addressable_shards] == [out.ndim] * N
    expected = function(keys)
    if out.dtype == keys.dtype:
        out, expected = xrandom.key_data(out), xrandom.key_data(expected)
    np.testing.assert_array_equal(out, expected)
