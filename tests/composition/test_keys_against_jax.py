"""Arrays of keys do what JAX's do: a table of operations and transformations, both sides of each.

Results are compared by their shapes, dtypes and words; what JAX refuses is refused here, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp

jax = pytest.importorskip("jax")

OURS = SimpleNamespace(m=xstack, np=xnp, lax=xstack.lax, random=xstack.random)
THEIRS = SimpleNamespace(m=jax, np=jax.numpy, lax=jax.lax, random=jax.random)

Case = Callable[[Any, Any], Any]
CHOICE = np.array([True, False, True])
ROW = np.array([2, 0], np.int32)


def _draw(n: Any, k: Any) -> Any:
    return n.random.normal(k)


# k are keys of shape (2, 3), n has the namespaces of one side.
STRUCTURE: dict[str, Case] = {
    "reshape": lambda n, k: k.reshape(3, -1),
    "ravel": lambda n, k: k.ravel(),
    "flatten": lambda n, k: k.flatten(),
    "T": lambda n, k: k.T,
    "element": lambda n, k: k[1, 2],
    "negative": lambda n, k: k[-1],
    "slices": lambda n, k: k[:, ::-1][:, 1:],
    "newaxis": lambda n, k: k[None, ..., 0],
    "index array": lambda n, k: k[:, ROW],
    "index arrays": lambda n, k: k[n.np.array([1, 0]), ROW],
    "traced index": lambda n, k: n.m.jit(lambda i: k[i])(1),
    "index out of bounds": lambda n, k: k.at[n.np.array([5])].get(mode="clip"),
    "mask": lambda n, k: k[:, CHOICE],
    "too many indices": lambda n, k: k[0, 0, 0],
    "concatenate": lambda n, k: n.np.concatenate([k, k], 1),
    "stack": lambda n, k: n.np.stack([k[0], k[1]], 1),
    "where": lambda n, k: n.np.where(CHOICE, k, k[::-1]),
    "where of one": lambda n, k: n.np.where(True, k[0, 0], k[0, 1]),
    "select_n": lambda n, k: n.lax.select_n(CHOICE, k[0], k[1]),
    "broadcast_to": lambda n, k: n.np.broadcast_to(k[0], (4, 3)),
    "moveaxis": lambda n, k: n.np.moveaxis(k, 0, 1),
    "squeeze": lambda n, k: n.np.squeeze(k[:1]),
    "roll": lambda n, k: n.np.roll(k, 1, 1),
    "tile": lambda n, k: n.np.tile(k, (2, 1)),
    "repeat": lambda n, k: n.np.repeat(k, 2, axis=0),
    "take": lambda n, k: n.np.take(k, n.np.array([1, 0]), axis=1),
    "take out of bounds": lambda n, k: n.np.take(k, n.np.array([1, 9]), axis=1),
    "split": lambda n, k: n.np.split(k, 3, axis=1)[1],
    "unstack": lambda n, k: n.np.unstack(k)[1],
    "pad with zeros": lambda n, k: n.np.pad(k, 1),
    "pad with the edge": lambda n, k: n.np.pad(k, 1, mode="edge"),
    "at set": lambda n, k: k.at[0].set(k[1]),
    "at set of one": lambda n, k: k.at[0, 1].set(k[1, 2]),
    "at set by arrays": lambda n, k: k.at[n.np.array([0, 1]), ROW].set(k[0, :2]),
    "at set of numbers": lambda n, k: k.at[0].set(1),
    "at get": lambda n, k: k.at[0].get(),
    "at add": lambda n, k: k.at[0].add(k[1]),
    "dynamic_slice": lambda n, k: n.lax.dynamic_slice(k, (0, 1), (2, 2)),
    "dynamic_update_slice": lambda n, k: n.lax.dynamic_update_slice(k, k[:1, :1], (1, 2)),
    "rev": lambda n, k: n.lax.rev(k, (1,)),
    "broadcast_in_dim": lambda n, k: n.lax.broadcast_in_dim(k, (2, 3, 2), (0, 1)),
    "take_along_axis": lambda n, k: n.np.take_along_axis(k, n.np.array([[0], [1]]), 1),
    "iteration": lambda n, k: list(k)[1],
    "iteration over one": lambda n, k: list(k[0, 0]),
    "len": lambda n, k: len(k),
    "len of one": lambda n, k: len(k[0, 0]),
    "copy": lambda n, k: n.np.copy(k),
    "array of a list": lambda n, k: n.np.array([k[0, 0], k[0, 1]]),
    "asarray": lambda n, k: n.np.asarray(k),
    "zeros": lambda n, k: n.np.zeros((2, 2), k.dtype),
    "empty": lambda n, k: n.np.empty(3, k.dtype),
    "ones": lambda n, k: n.np.ones(3, k.dtype),
    "zeros_like": lambda n, k: n.np.zeros_like(k),
    "full": lambda n, k: n.np.full((2,), k[0, 0]),
    "full_like": lambda n, k: n.np.full_like(k, k[0, 0]),
    "eq": lambda n, k: k == k.at[0].set(k[1]),
    "ne": lambda n, k: k != k.at[0].set(k[1]),
    "eq of one": lambda n, k: k == k[0, 0],
    "array_equal": lambda n, k: n.np.array_equal(k, k),
    "attributes": lambda n, k: (k.shape, k.ndim, k.size, str(k.dtype), k.itemsize, k.nbytes),
    "result_type": lambda n, k: str(n.np.result_type(k, k)),
    "issubdtype": lambda n, k: [
        n.m.dtypes.issubdtype(k.dtype, t)
        for t in (n.m.dtypes.prng_key, n.m.dtypes.extended, np.generic, np.number)
    ],
}

REFUSED: dict[str, Case] = {
    "add": lambda n, k: k + k,
    "add a number": lambda n, k: k + 1,
    "negative": lambda n, k: -k,
    "less": lambda n, k: k < k,
    "eq a number": lambda n, k: k == 3,
    "sum": lambda n, k: k.sum(),
    "sort": lambda n, k: n.np.sort(k),
    "argmax": lambda n, k: n.np.argmax(k),
    "astype": lambda n, k: k.astype("uint32"),
    "convert": lambda n, k: n.lax.convert_element_type(k, "uint32"),
    "bitcast": lambda n, k: n.lax.bitcast_convert_type(k, "uint32"),
    "view": lambda n, k: k.view("uint32"),
    "bool": lambda n, k: bool(k[0, 0]),
    "float": lambda n, k: float(k[0, 0]),
    "item": lambda n, k: k[0, 0].item(),
    "tolist": lambda n, k: k.tolist(),
    "NumPy's asarray": lambda n, k: np.asarray(k),
    "NumPy's add": lambda n, k: np.add(k, k),
    "hash": lambda n, k: hash(k),
    "nonzero": lambda n, k: n.np.nonzero(k),
    "any": lambda n, k: n.np.any(k),
    "promotion": lambda n, k: n.np.result_type(k, 1),
    "where with a number": lambda n, k: n.np.where(True, k, 1),
    "concatenate with words": lambda n, k: n.np.concatenate([k, n.random.key_data(k)]),
    "as a predicate": lambda n, k: n.lax.cond(k[0, 0], lambda: 1, lambda: 2),
    "as a traced truth": lambda n, k: n.m.jit(lambda k: 1 if k else 2)(k[0, 0]),
    "as a shape": lambda n, k: n.np.zeros(k[0]),
    "as an index": lambda n, k: n.np.arange(3)[k],
    "as a seed": lambda n, k: n.random.key(k[0, 0]),
    "as a number to fold in": lambda n, k: n.random.fold_in(k[0, 0], k[0, 0]),
    "as a static argument": lambda n, k: n.m.jit(lambda k: 1, static_argnums=0)(k),
    "several for one draw": lambda n, k: n.random.normal(k),
    "to be differentiated in": lambda n, k: n.m.grad(lambda k: _draw(n, k))(k[0, 0]),
}

TRANSFORMED: dict[str, Case] = {
    "tree.map": lambda n, k: n.m.tree.map(lambda x: x.shape, {"a": k}),
    "tree.leaves": lambda n, k: len(n.m.tree.leaves([k, k])),
    "jit": lambda n, k: n.m.jit(lambda k: (k[0], n.random.split(k[0, 0])))(k),
    "jit of the identity": lambda n, k: n.m.jit(lambda k: k)(k),
    "captured by jit": lambda n, k: n.m.jit(lambda i: (k[i], k[0, 0], i))(1),
    "donated": lambda n, k: n.m.jit(lambda k: k[::-1], donate_argnums=0)(n.np.copy(k)),
    "vmap": lambda n, k: n.m.vmap(lambda k: _draw(n, k[0]))(k),
    "vmap over a later axis": lambda n, k: n.m.vmap(
        lambda k: n.random.split(k[0]), in_axes=1, out_axes=1
    )(k),
    "vmap over the last axis": lambda n, k: n.m.vmap(lambda k: k, in_axes=-1, out_axes=-1)(k),
    "vmap twice": lambda n, k: n.m.vmap(n.m.vmap(n.random.uniform))(k),
    "vmap of seeds": lambda n, k: n.m.vmap(n.random.key)(n.np.arange(3)),
    "vmap of fold_in": lambda n, k: n.m.vmap(lambda i: n.random.fold_in(k[0, 0], i))(
        n.np.arange(3)
    ),
    "vmap of what is not mapped": lambda n, k: n.m.vmap(lambda i: k[0])(n.np.arange(2)),
    "vmap of where": lambda n, k: n.m.vmap(n.np.where)(n.np.array(CHOICE), k[0], k[1]),
    "vmap of an index": lambda n, k: n.m.vmap(lambda i, k: k[i], (0, 1))(
        n.np.array([1, 0, 1]), k
    ),
    "vmap of cond": lambda n, k: n.m.vmap(lambda c, a, b: n.lax.cond(c, lambda: a, lambda: b))(
        n.np.array(CHOICE), k[0], k[1]
    ),
    "vmap of scan": lambda n, k: n.m.vmap(
        lambda k: n.lax.scan(lambda c, x: (n.random.split(c)[0], (c, x)), k[0], k)
    )(k),
    "jit of vmap": lambda n, k: n.m.jit(n.m.vmap(lambda k: k, out_axes=1))(k),
    "vmap of jit": lambda n, k: n.m.vmap(n.m.jit(lambda k: n.random.split(k[0])))(k),
    "cond": lambda n, k: n.lax.cond(True, lambda k: k[0], lambda k: k[1], k),
    "switch": lambda n, k: n.lax.switch(1, [lambda k: k[0], lambda k: k[1]], k),
    "scan": lambda n, k: n.lax.scan(
        lambda c, x: (n.random.split(c)[0], n.random.fold_in(x[0], 1)), k[0, 0], k
    ),
    "scan in reverse": lambda n, k: n.lax.scan(lambda c, x: (x[0], c), k[0, 0], k, reverse=True),
    "long scan": lambda n, k: n.lax.scan(
        lambda c, i: (n.random.fold_in(c, i), _draw(n, c)), k[0, 0], n.np.arange(6000)
    )[0],
    "fori_loop": lambda n, k: n.lax.fori_loop(
        0, 3, lambda i, c: n.random.fold_in(c, i), k[0, 0]
    ),
    "while_loop": lambda n, k: n.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, n.random.split(c[1])[1]), (0, k[0, 0])
    ),
    "map": lambda n, k: n.lax.map(lambda k: n.random.uniform(k[0]), k),
    "jit of scan": lambda n, k: n.m.jit(
        lambda k: n.lax.scan(lambda c, x: (n.random.split(c)[0], x[::-1]), k[0, 0], k)
    )(k),
    "jit of while_loop": lambda n, k: n.m.jit(
        lambda k: n.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, n.random.split(c[1])[1]), (0, k)
        )
    )(k[0, 0]),
    "jit of cond": lambda n, k: n.m.jit(
        lambda c, k: n.lax.cond(c, lambda k: k[0], lambda k: k[1], k)
    )(False, k),
    "grad beside a key": lambda n, k: n.m.grad(lambda x, k: x * _draw(n, k))(1.0, k[0, 0]),
    "grad of a key, allowed": lambda n, k: n.m.grad(lambda k: _draw(n, k), allow_int=True)(
        k[0, 0]
    ).dtype,
    "keys as auxiliary output": lambda n, k: n.m.value_and_grad(
        lambda x, k: (x * _draw(n, k[0, 0]), k), has_aux=True
    )(2.0, k),
    "jvp": lambda n, k: n.m.jvp(
        lambda x, k: (x * _draw(n, k[0, 0]), k[0]),
        (2.0, k),
        (1.0, np.zeros(k.shape, n.m.dtypes.float0)),
    ),
    "vjp": lambda n, k: n.m.vjp(lambda x, k: x * _draw(n, k[0, 0]), 2.0, k)[1](1.0),
    "linearize": lambda n, k: n.m.linearize(lambda x: x * _draw(n, k[0, 0]), 2.0)[1](1.0),
    "grad of scan over keys": lambda n, k: n.m.grad(
        lambda x: n.lax.scan(lambda c, k: (c * n.np.exp(_draw(n, k)), None), x, k[0])[0]
    )(1.5),
    "grad of scan with a key in the carry": lambda n, k: n.m.grad(
        lambda x: n.lax.scan(
            lambda c, _: ((n.np.sin(c[0] * _draw(n, c[1])), n.random.split(c[1])[0]), None),
            (x, k[0, 0]), None, length=3,
        )[0][0]
    )(1.5),
    "jit of grad of scan": lambda n, k: n.m.jit(n.m.grad(
        lambda x, k: n.lax.scan(lambda c, k: (n.np.sin(c * _draw(n, k)), k), x, k[0])[0]
    ))(1.5, k),
    "grad of cond": lambda n, k: n.m.grad(
        lambda x, k: n.lax.cond(
            x > 0, lambda x, k: x * _draw(n, k[0, 0]), lambda x, k: n.np.sin(x) * _draw(n, k[0, 1]),
            x, k,
        )
    )(1.5, k),
    "jit of grad of cond": lambda n, k: n.m.jit(n.m.grad(
        lambda x, k: n.lax.cond(
            x > 0, lambda x, k: x * _draw(n, k[0, 0]), lambda x, k: n.np.sin(x) * _draw(n, k[0, 1]),
            x, k,
        )
    ))(-1.5, k),
    "checkpoint": lambda n, k: n.m.grad(
        n.m.checkpoint(lambda x, k: n.np.sin(x * _draw(n, k[0, 0])))
    )(1.5, k),
    "checkpoint in scan": lambda n, k: n.m.grad(
        lambda x: n.lax.scan(
            n.m.checkpoint(lambda c, k: (n.np.sin(c * _draw(n, k)), k)), x, k[0]
        )[0]
    )(1.5),
    "hessian": lambda n, k: n.m.hessian(
        lambda x: n.np.sum(n.np.sin(x) * n.random.normal(k[0, 0], (2,)))
    )(1.5),
    "residual of custom_vjp": lambda n, k: _custom_vjp(n)(2.0, k[0, 0]),
    "argument of custom_jvp": lambda n, k: _custom_jvp(n)(2.0, k[0, 0]),
    "eval_shape": lambda n, k: _described(
        n.m.eval_shape(lambda k: n.random.split(k[0, 0], 5), k)
    ),
    "eval_shape of a struct": lambda n, k: _described(
        n.m.eval_shape(n.random.key_data, n.m.ShapeDtypeStruct((3,), k.dtype))
    ),
    "ShapeDtypeStruct": lambda n, k: _described(n.m.ShapeDtypeStruct((3,), k.dtype)),
    "lower": lambda n, k: n.m.jit(lambda k: k[0]).lower(
        n.m.ShapeDtypeStruct((2, 3), k.dtype)
    ).compile()(k),
    "device_put": lambda n, k: n.m.device_put(k, n.m.devices()[0]),
    "device_get": lambda n, k: n.m.device_get(k),
    "block_until_ready": lambda n, k: k.block_until_ready(),
    "optimization_barrier": lambda n, k: n.lax.optimization_barrier((k, 1.0)),
    "stop_gradient": lambda n, k: n.lax.stop_gradient(k),
    "key_data": lambda n, k: n.random.key_data(k),
    "wrap_key_data": lambda n, k: n.random.wrap_key_data(n.random.key_data(k)),
    "clone": lambda n, k: n.random.clone(k),
    "key_impl": lambda n, k: str(n.random.key_impl(k)),
    "permutation": lambda n, k: n.random.permutation(k[0, 0], 5),
    "choice": lambda n, k: n.random.choice(k[0, 0], 5, (3,), replace=False),
}  # fmt: skip


def _custom_vjp(n: Any) -> Any:
    @n.m.custom_vjp
    def f(x: Any, k: Any) -> Any:
        return x * _draw(n, k)

    f.defvjp(lambda x, k: (f(x, k), (x, k)), lambda res, ct: (ct * _draw(n, res[1]) * 3, None))
    return n.m.jit(n.m.grad(f))


def _custom_jvp(n: Any) -> Any:
    @n.m.custom_jvp
    def f(x: Any, k: Any) -> Any:
        return x * _draw(n, k)

    f.defjvp(lambda primals, dots: (f(*primals), dots[0] * 7 * _draw(n, primals[1])))
    return n.m.grad(f)


def _described(struct: Any) -> Any:
    return struct.shape, str(struct.dtype)


def _plain(n: Any, x: Any) -> Any:
    """Return what is compared of a result."""
    if isinstance(x, tuple | list):
        return [_plain(n, v) for v in x]
    if isinstance(x, dict):
        return {key: _plain(n, v) for key, v in x.items()}
    dtype = getattr(x, "dtype", None)
    if dtype is None or not hasattr(x, "shape"):
        return x
    if n.m.dtypes.issubdtype(dtype, n.m.dtypes.prng_key):
        assert isinstance(x, n.m.Array)
        return "keys", x.shape, np.asarray(n.random.key_data(x)).tolist()
    host = np.asarray(x)
    if host.dtype == n.m.dtypes.float0:
        return "float0", host.shape
    return str(host.dtype), host.shape, np.round(host.astype(np.float64), 5).tolist()


def _result(n: Any, case: Case) -> Any:
    keys = n.random.split(n.random.key(7), (2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _plain(n, case(n, keys))
        except Exception as error:
            return error


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("name", [*STRUCTURE, *TRANSFORMED])
def test_an_operation_on_keys_gives_what_it_gives_in_jax(name: str) -> None:
    case = STRUCTURE.get(name) or TRANSFORMED[name]
    expected, found = _result(THEIRS, case), _result(OURS, case)
    if isinstance(expected, Exception):
        assert isinstance(found, TypeError | ValueError | IndexError), found
    else:
        assert found == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_jax_refuses_of_keys_is_refused_with_our_own_words(name: str) -> None:
    assert isinstance(_result(THEIRS, REFUSED[name]), Exception)
    found = _result(OURS, REFUSED[name])
    assert isinstance(found, TypeError | ValueError), found
    assert "key" in str(found) or name == "hash"
    assert "object has no attribute" not in str(found)
