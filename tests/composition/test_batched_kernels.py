"""What is batched again without a compiler, by functions of ndarrays, gives the same numbers."""

import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xnp
from tests.nets.cells import IN_FULL
from xnp.testing.samples import TABLE
from xprim import Primitive, Undefined, config, get_primitive, kernels, undefined
from xprim.errors import ImpureRuleError, MissingRuleError
from xstack import grad, hessian, jacfwd, jacrev, jvp, lax, random, vmap

X = np.linspace(0.2, 1.1, 24).astype(np.float32).reshape(3, 8)


@pytest.fixture(autouse=True)
def _kernels_at_the_second_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("xbatch.batching", "xad._jvp", "xad._linearize"):
        monkeypatch.setattr(sys.modules[name]._kernels, "uses", 1)
    kernels.forget_kernels()
    yield
    kernels.forget_kernels()


def bits(tree: Any) -> Any:
    if isinstance(tree, tuple | list):
        return [bits(item) for item in tree]
    return tree.aval, np.asarray(tree).tobytes()


def assert_repeats(compute: Any) -> None:
    first = bits(compute())
    for _ in range(2):  # the second time makes the kernel
        assert bits(compute()) == first


NAMES = [n for n in sorted(TABLE) if not isinstance(get_primitive(n).rules["batch"], Undefined)]


def _bound(primitive: Primitive, params: Any, *operands: Any) -> Any:
    return list(primitive.bind(*operands, **params))


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_the_same_by_its_kernel(name: str) -> None:
    primitive = get_primitive(name)
    rows = TABLE[name] if IN_FULL else TABLE[name][:2]
    for sample in rows:
        operands = sample.arrays()
        batches = [xnp.stack([x, x[..., ::-1] if x.ndim else x]) for x in operands
                   if not isinstance(x, np.ndarray) and x.dtype.kind != "V"]  # fmt: skip
        if len(batches) != len(operands):
            continue
        for axes in (0, [None, *[0] * (len(operands) - 1)]):
            if axes != 0 and len(operands) < 2:
                continue
            given = batches if axes == 0 else [operands[0], *batches[1:]]
            f = vmap(functools.partial(_bound, primitive, sample.params), in_axes=axes)
            try:
                assert_repeats(lambda f=f, xs=given: f(*xs))
            except (MissingRuleError, NotImplementedError, ValueError, TypeError):
                continue  # what is not a batch of samples


FUNCTIONS = {
    "one function": lambda x: xnp.tanh(x),
    "a number beside": lambda x: 1.0 - x * 2,
    "broadcast": lambda x: x[:2, None] * x + x[0],
    "what is not mapped": lambda x: x + xnp.asarray(X[0]) @ xnp.ones((8, 8)),
    "product": lambda x: xnp.dot(x, xnp.ones((8, 4))) @ xnp.ones((4, 8)) * x,
    "reductions": lambda x: (x.max() - x.mean()) * xnp.sort(x),
    "indices": lambda x: x[::-1] * x[3] + x.at[2].set(1.0),
    "several results": lambda x: xnp.concatenate(xnp.split(x, 2)[::-1]),
    "selection": lambda x: xnp.where(x > 0.5, x, xnp.sin(x)),
    "powers": lambda x: x**2 + x**0.5,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_batch_is_the_same_by_kernels(name: str) -> None:
    f = FUNCTIONS[name]
    x = xnp.asarray(X)

    def loss(v: Any) -> Any:
        return xnp.sum(f(v) ** 2)

    assert_repeats(lambda: vmap(f)(x))
    assert_repeats(lambda: vmap(f, in_axes=1, out_axes=1)(xnp.asarray(X.T)))
    assert_repeats(lambda: vmap(vmap(lambda a, v: f(v) * a, (0, None)), (None, 0))(x[:, 0], x))
    assert_repeats(lambda: vmap(grad(loss))(x))
    assert_repeats(lambda: vmap(lambda v: jvp(f, (v,), (v,)))(x))
    assert_repeats(lambda: [hessian(loss)(x[0]), jacrev(f)(x[1]), jacfwd(f)(x[2])])
    assert_repeats(lambda: jvp(vmap(grad(loss)), (x,), (x,)))
    expected = [grad(loss)(row) for row in x]
    np.testing.assert_allclose(vmap(grad(loss))(x), expected, rtol=2e-6, atol=1e-6)  # sums differ


def test_axis_names_and_random_draws_go_by_their_rules() -> None:
    x = xnp.asarray(X)
    assert_repeats(lambda: vmap(lambda v: v - lax.pmean(v, "i"), axis_name="i")(x))
    keys = random.split(random.key(0), 3)
    with config.debug_key_reuse(False):
        assert_repeats(lambda: vmap(lambda k, v: random.normal(k, (8,)) + v)(keys, x))


def test_a_kernel_serves_one_size_and_place_of_a_batch() -> None:
    for shape in ((3, 8), (8, 3), (5, 8)):
        x = xnp.asarray(np.resize(X, shape))
        for axis in (0, 1):
            for _ in range(3):
                got = vmap(lambda v: xnp.cumsum(v) - v[0], in_axes=axis)(x)
                rows = np.asarray(x) if axis == 0 else np.asarray(x).T
                np.testing.assert_allclose(got, np.cumsum(rows, 1) - rows[:, :1], rtol=1e-6)


changes = [1.0]


def test_a_batch_rule_that_is_not_pure_is_found() -> None:
    gap = undefined("a test")

    def batch(axis: Any, xs: Any, dims: Any) -> Any:
        changes[0] += 1.0
        out = get_primitive("mul").bind(xs[0], xnp.float32(changes[0]))
        return out, dims

    odd = Primitive(
        "odd_for_test_batched_kernels", shape=lambda x: (x,), numpy=lambda x: (x,), stablehlo=gap,
        jvp=gap, transpose=gap, batch=batch,
    )  # fmt: skip
    f = vmap(lambda v: odd.bind(v)[0])
    with config.enable_checks(True), pytest.raises(ImpureRuleError, match="its batch rule"):
        [f(xnp.asarray(X)) for _ in range(4)]
