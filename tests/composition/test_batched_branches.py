"""`cond` and `switch` under `vmap` over their predicate: `batching=`, beside a Python loop."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
import xrandom
from xnp import lax
from xprim import make_jaxpr
from xprim.errors import UndefinedRuleError

RNG = np.random.default_rng(0)
BRANCHES = [
    lambda x, w: (x * w, xnp.sin(x).sum()),
    lambda x, w: (x, (x @ w) ** 2),
    lambda x, w: (xnp.sqrt(x), x.sum()),  # infinite derivative at zero
]
WAYS = ["select", "loop", "partition"]


def chosen(i: Any, x: Any, w: Any, batching: Any = None) -> Any:
    return lax.switch(i, BRANCHES, x, w, batching=batching)


def value(i: Any, x: Any, w: Any, batching: Any = None) -> Any:
    rows, number = chosen(i, x, w, batching)
    return (rows * rows).sum() + number


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: xad.grad(f, (1, 2)),
    "jvp": lambda f: lambda i, x, w: xad.jvp(lambda x, w: f(i, x, w), (x, w), (x, w)),
    "grad of grad": lambda f: xad.grad(lambda i, x, w: xad.grad(f, 1)(i, x, w).sum(), 2),
}


@pytest.mark.sampled(every=6, per="batching")
@pytest.mark.parametrize("size", [1, 5, 37])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("batching", WAYS)
def test_a_batch_of_choices_is_a_loop_over_examples(
    batching: str, transform: str, size: int
) -> None:
    derive = TRANSFORMS[transform]
    index = RNG.integers(0, 3, size).astype(np.int32)
    xs = RNG.uniform(0.5, 2, (size, 4)).astype(np.float32)
    xs[index != 2] *= np.float32([0, 1, 1, 1])  # the branch that is not taken has no derivative
    w = RNG.normal(size=4).astype(np.float32)
    expected = [derive(value)(i, x, w) for i, x in zip(index, xs, strict=True)]
    batched = xbatch.vmap(derive(lambda i, x, w: value(i, x, w, batching)), (0, 0, None))
    for found in (batched(index, xs, w), xjit.jit(batched)(index, xs, w)):
        leaves = found if isinstance(found, tuple) else (found,)
        rows = [e if isinstance(e, tuple) else (e,) for e in expected]
        for leaf, parts in zip(leaves, zip(*rows, strict=True), strict=True):
            # float32: the same sums, vectorised
            np.testing.assert_allclose(leaf, np.stack(parts), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("batching", WAYS)
def test_derivatives_of_a_batch_of_choices(batching: str) -> None:
    index = xnp.array([0, 1, 2, 1, 0, 2, 1], dtype="int32")
    xs = xnp.array(RNG.uniform(0.5, 2, (7, 4)).astype(np.float32))
    w = xnp.array(RNG.normal(size=4).astype(np.float32))

    def total(xs: Any, w: Any, batching: Any) -> Any:
        return xbatch.vmap(lambda i, x: value(i, x, w, batching))(index, xs).sum()

    def by_examples(xs: Any, w: Any) -> Any:
        return sum(value(i, x, w) for i, x in zip(index, xs, strict=True))

    expected = xad.grad(by_examples, (0, 1))(xs, w)
    gradient = xad.grad(lambda xs, w: total(xs, w, batching), (0, 1))
    for found in (gradient(xs, w), xjit.jit(gradient)(xs, w)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
    twice = xbatch.vmap(lambda w: total(xs, w, batching))(xnp.stack([w, 2 * w]))
    np.testing.assert_allclose(twice[1], by_examples(xs, 2 * w), rtol=2e-5)


@pytest.mark.parametrize("batching", WAYS)
def test_a_batch_without_examples_has_empty_results_and_derivatives(batching: str) -> None:
    index, xs, w = np.zeros(0, np.int32), np.zeros((0, 4), np.float32), np.ones(4, np.float32)

    def batched(xs: Any, w: Any) -> Any:
        return xbatch.vmap(lambda i, x: value(i, x, w, batching))(index, xs)

    for run in (lambda f: f, xjit.jit):
        assert run(batched)(xs, w).shape == (0,)
        by_xs, by_w = run(xad.grad(lambda xs, w: batched(xs, w).sum(), (0, 1)))(xs, w)
        assert by_xs.shape == (0, 4)
        assert by_w.tolist() == [0.0] * 4


@pytest.mark.parametrize("batching", WAYS)
def test_operands_of_every_type_are_moved(batching: str) -> None:
    keys = xrandom.split(xrandom.key(0), 6)
    flags = xnp.array([True, False, True, True, False, False])

    def one(flag: Any, key: Any) -> Any:
        return lax.cond(flag, lambda k: xrandom.split(k)[0], lambda k: k, key, batching=batching)

    found = xrandom.key_data(xjit.jit(xbatch.vmap(one))(flags, keys))
    for flag, key, data in zip(flags, keys, found, strict=True):
        expected = xrandom.split(key)[0] if flag else key
        np.testing.assert_array_equal(data, xrandom.key_data(expected))


def test_branches_of_blocks_run_for_the_examples_that_take_them() -> None:
    index = np.repeat(np.arange(3, dtype=np.int32), 40)
    closed = make_jaxpr(xbatch.vmap(lambda i, x: chosen(i, x, x, "partition")))(
        index, np.ones((120, 4), np.float32)
    )
    assert "sort" in str(closed)
    assert [e.primitive.name for e in closed.eqns].count("scan") == 1


def test_a_predicate_that_must_not_be_mapped() -> None:
    def one(flag: Any, x: Any) -> Any:
        return lax.cond(flag, lambda x: x + 1, lambda x: x, x, batching="error")

    xs = np.ones(3, np.float32)
    np.testing.assert_array_equal(xbatch.vmap(one, (None, 0))(True, xs), xs + 1)
    with pytest.raises(UndefinedRuleError, match="maps over the predicate") as caught:
        xbatch.vmap(one)(np.array([True, False, True]), xs)
    assert "test_batched_branches.py" in str(caught.value)


def test_ways_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="batching is none of the ways"):
        lax.cond(True, lambda: 1, lambda: 2, batching="both")


def _heavy(count: int, batching: Any = None) -> Any:
    matrix = np.ones((100, 100), np.float32)
    branches = [lambda x, k=k: (matrix @ x) * k for k in range(count)]
    return xbatch.vmap(lambda i, x: lax.switch(i, branches, x, batching=batching))


def test_a_warning_where_all_branches_run_and_few_are_needed() -> None:
    index, xs = np.zeros(500, np.int32), np.ones((500, 100), np.float32)
    with pytest.warns(
        UserWarning, match=r"switch: .* all 8 branches run.*\n.*batching='partition'"
    ) as caught:
        make_jaxpr(_heavy(8))(index, xs)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_jaxpr(_heavy(8, "select"))(index, xs)
        make_jaxpr(_heavy(8))(index[:3], xs[:3])  # it is over before blocks are sorted
        make_jaxpr(_heavy(2))(index, xs)  # at most twice as fast
