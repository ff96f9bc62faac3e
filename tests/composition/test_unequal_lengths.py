"""`scan(lengths=)`: sequences of unequal lengths, padded to one array.

The reference goes along each sequence by itself, in Python, without its padding.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
import xrandom
from tests.composition.nestings import TRANSFORMS, nested
from xad.sparse import sparse_jacobian
from xjit.debug import find_nan
from xnp import lax
from xpar import PartitionSpec, make_mesh, set_mesh, shard_map
from xprim import as_array, config, make_jaxpr
from xstack import new_ref

STEPS, LENGTHS = 5, np.array([3, 0, 5, 1])
DRAWN = np.random.default_rng(5).uniform(0.2, 1.5, (STEPS, 4, 3)).astype(np.float32)
IS_PADDING = np.arange(STEPS)[:, None] >= LENGTHS
PADDED = np.where(IS_PADDING[..., None], np.nan, DRAWN)
W = np.float32([0.7, -1.3, 0.4])


def step(w: Any) -> Any:
    """A step whose derivative is infinite at 0 and NaN below, as at many a padded element."""

    def f(carry: Any, x: Any) -> Any:
        carry = xnp.sqrt(x) * xnp.sin(w * carry) + 0.5
        return carry, {"y": carry * x}

    return f


def first(w: Any) -> Any:
    return xnp.cos(w)


def in_one_array(w: Any, xs: Any = PADDED, lengths: Any = LENGTHS, **options: Any) -> Any:
    """All sequences in one scan, with an axis of sequences in every array."""
    carry = xnp.broadcast_to(first(w), (4, 3))
    last, ys = lax.scan(step(w), carry, xs, lengths=lengths, **options)
    return last, ys["y"]


def under_vmap(w: Any, xs: Any = PADDED, lengths: Any = LENGTHS, **options: Any) -> Any:
    """One scan of one sequence, mapped over sequences."""

    def one(xs: Any, n: Any) -> Any:
        last, ys = lax.scan(step(w), first(w), xs, lengths=n, **options)
        return last, ys["y"]

    return xbatch.vmap(one, (1, 0), (0, 1))(as_array(xs), as_array(lengths))


def written_out(w: Any, xs: Any = DRAWN, lengths: Any = LENGTHS, reverse: bool = False) -> Any:
    lasts, columns = [], []
    for b, n in enumerate(lengths):
        carry, ys = first(w), [xnp.zeros(3)] * STEPS
        for i in range(n - 1, -1, -1) if reverse else range(n):
            carry, y = step(w)(carry, xs[i, b])
            ys[i] = y["y"]
        lasts.append(carry)
        columns.append(xnp.stack(ys))
    return xnp.stack(lasts), xnp.stack(columns, 1)


def close(found: Any, expected: Any) -> None:
    """Compare to float32: the same operations, whose sums are ordered otherwise."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def total(f: Any) -> Any:
    def of(w: Any, xs: Any, **options: Any) -> Any:
        last, ys = f(w, xs, **options)
        return (last * w).sum() + (ys**2).sum()

    return of


@functools.cache
def expected_gradient(reverse: bool) -> Any:
    return xad.grad(lambda w, xs: total(written_out)(w, xs, reverse=reverse), (0, 1))(W, DRAWN)


WAYS = {"in one array": in_one_array, "under vmap": under_vmap}
OPTIONS = {
    "plain": {}, "reverse": {"reverse": True}, "blocks": {"checkpoint_every": 2},
    "reversed blocks": {"checkpoint_every": 3, "reverse": True}, "unrolled": {"unroll": 2},
}  # fmt: skip


@pytest.mark.sampled(every=8, per="way")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_each_sequence_goes_its_own_way(way: str, options: str) -> None:
    f, chosen = WAYS[way], OPTIONS[options]
    reverse = chosen.get("reverse", False)
    close(xjit.jit(lambda w: f(w, **chosen))(W), written_out(W, reverse=reverse))
    found = xjit.jit(xad.grad(lambda w, xs: total(f)(w, xs, **chosen), (0, 1)))(W, PADDED)
    close(found, expected_gradient(reverse))
    assert (np.asarray(found[1])[IS_PADDING] == 0).all()


@pytest.mark.parametrize("way", WAYS)
def test_lengths_may_be_traced_and_larger_than_there_are_steps(way: str) -> None:
    f = xjit.jit(lambda n: WAYS[way](W, lengths=n))
    close(f(LENGTHS), written_out(W))
    close(WAYS[way](W, lengths=LENGTHS), written_out(W))
    close(f(LENGTHS + 9 * (LENGTHS == 5)), written_out(W))
    close(f(LENGTHS.astype(np.int8)), written_out(W))
    close(f(np.where(LENGTHS == 5, 2**31 + 1, LENGTHS).astype(np.uint32)), written_out(W))
    with config.enable_x64(True):  # 2**32 + 1 and -(2**32) + 1 are 1 in 32 bits
        far = np.where(LENGTHS == 5, 2**32 + 1, np.where(LENGTHS == 0, 1 - 2**32, LENGTHS))
        close(f(far), written_out(W))
    close(WAYS[way](W, DRAWN, np.full(4, STEPS)), written_out(W, lengths=[STEPS] * 4))


def as_vector(f: Any) -> Any:
    def of(w: Any) -> Any:
        last, ys = f(w)
        return 0.1 * (last.sum(0) + ys.sum((0, 1)) + w)

    return of


@pytest.mark.sampled(every=82, per="way")
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("way", [*WAYS, "reversed", "blocks"])
def test_transformations_of_transformed_scans(way: str, inner: str, outer: str) -> None:
    options = {"reversed": {"reverse": True}, "blocks": {"checkpoint_every": 2}}.get(way, {})
    reverse = {"reverse": True} if way == "reversed" else {}
    f = WAYS.get(way, in_one_array)
    found = nested(as_vector(lambda w: f(w, **options)), inner, outer)(W)
    close([found], [nested(as_vector(lambda w: written_out(w, **reverse)), inner, outer)(W)])


def members(w: Any) -> Any:
    """Two members of a mesh, each with the sequences of a half."""

    def part(w: Any, xs: Any, lengths: Any) -> Any:
        last, ys = lax.scan(step(w), xnp.broadcast_to(first(w), (2, 3)), xs, lengths=lengths)
        return last, ys["y"]

    return shard_map(
        part,
        in_specs=(PartitionSpec(), PartitionSpec(None, "m"), PartitionSpec("m")),
        out_specs=(PartitionSpec("m"), PartitionSpec(None, "m")),
    )(w, as_array(PADDED), as_array(LENGTHS))


@pytest.mark.sampled(every=80)
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
def test_members_of_a_mesh_end_by_themselves(inner: str, outer: str) -> None:
    with set_mesh(make_mesh((2,), ("m",))):
        found = nested(as_vector(members), inner, outer)(W)
    close([found], [nested(as_vector(written_out), inner, outer)(W)])


def test_steps_after_the_longest_sequence_do_not_run() -> None:
    ran = []

    def f(carry: Any, x: Any) -> Any:
        xjit.debug.callback(lambda i: ran.append(int(i)), x[0], ordered=True)
        return carry + x, None

    start, xs = xnp.zeros(2, int), np.repeat(np.arange(6)[:, None], 2, 1)
    for lengths in (np.array([2, 4]), 4):
        for reverse in (False, True):
            ran.clear()
            run = xjit.jit(lambda n, r=reverse: lax.scan(f, start, xs, lengths=n, reverse=r))
            run(lengths)[0].block_until_ready()
            assert ran == ([3, 2, 1, 0] if reverse else [0, 1, 2, 3])


def test_an_early_end_counts_the_steps_that_are_run() -> None:
    def sums(reverse: bool, n: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + x, c), 0.0, xs, lengths=n, reverse=reverse,
                        until=lambda c: (c == 0) | (c > 4))  # fmt: skip

    xs = np.float32([1, 2, 3, np.nan, np.nan])
    for run in (sums, xjit.jit(sums, static_argnums=0)):
        assert [v.tolist() for v in run(False, 3, xs)] == [6, [0, 1, 3, 0, 0]]
        assert [v.tolist() for v in run(True, 3, xs)] == [5, [0, 3, 0, 0, 0]]
        assert [v.tolist() for v in run(False, 0, xs)] == [0, [0] * 5]
    rows = lax.scan(lambda c, x: (c + x, c), xnp.zeros(2), np.stack([xs, xs], 1),
                    lengths=np.array([1, 3]), until=lambda c: c.max() > 2)  # fmt: skip
    assert rows[0].tolist() == [1, 3]


def test_keys_references_and_counters_go_along() -> None:
    def f(carry: Any, x: Any) -> Any:
        keys, n = carry
        keys, now = xbatch.vmap(xrandom.split, out_axes=1)(keys)
        return (keys, n + 1), now

    keys = xrandom.split(xrandom.key(0), 2)
    (last, n), ys = lax.scan(f, (keys, xnp.zeros(2, int)), None, 3, lengths=np.array([2, 3]))
    assert n.tolist() == [2, 3]
    (alone, _), _ = lax.scan(f, (keys, xnp.zeros(2, int)), None, 2)
    assert (xrandom.key_data(last[0]) == xrandom.key_data(alone[0])).all()
    assert ys.shape == (3, 2)

    def double(_: Any, ref: Any) -> Any:
        ref[...] = 2 * ref[...]
        return (), None

    def doubled(lengths: Any, **options: Any) -> Any:
        ref = new_ref(xnp.arange(1, 7).reshape(3, 2))
        lax.scan(double, (), ref, lengths=lengths, **options)
        return ref[...].tolist()

    assert doubled(2) == [[2, 4], [6, 8], [5, 6]]
    assert doubled(np.array([1, 3])) == [[2, 4], [3, 8], [5, 12]]
    assert doubled(None, until=lambda c: True) == [[2, 4], [3, 4], [5, 6]]


def test_loops_in_python_do_the_same() -> None:
    expected = [in_one_array(W, reverse=r) for r in (False, True)]
    with config.disable_jit(True):
        for e, reverse in zip(expected, (False, True), strict=True):
            close(in_one_array(W, reverse=reverse), e)
            close(under_vmap(W, reverse=reverse), e)
        close(in_one_array(W, lengths=np.zeros(4, int)), in_one_array(W, lengths=np.zeros(4, int)))


def test_analyses_of_programs_know_where_a_scan_stops() -> None:
    def mean(x: Any) -> Any:
        last, ys = lax.scan(lambda c, x: (0.5 * c + xnp.log(x), c), 0.0, x, lengths=2)
        return last + ys.sum()

    x = np.float32([1, 2, 3, 4])
    jacobian = sparse_jacobian(lambda x: mean(x)[None])(x)
    close([jacobian.todense()[0]], [[1.5, 0.5, 0, 0]])
    close([xad.grad(xad.checkpoint(mean, budget=1000))(x)], [[1.5, 0.5, 0, 0]])
    found = find_nan(mean, np.float32([1, -1, -1, -1]))
    assert (found.operation, found.steps) == ("log", (1,))
    assert find_nan(mean, np.float32([1, 1, -1, -1])) is None


def test_no_warning_says_that_another_way_is_cheaper() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        w = xnp.ones((200, 200))
        xbatch.vmap(lambda n: lax.scan(
            lambda c, _: (c @ w @ w, None), w, None, 3, lengths=n
        )[0])(np.array([1, 2]))  # fmt: skip


ROWS = np.zeros((5, 4, 3), np.float32)
ONES = np.ones(4, int)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda f: lax.scan(f, ROWS[0], ROWS, lengths=np.ones(4)), TypeError, "must be integers"),
    (lambda f: lax.scan(f, ROWS[0], ROWS, lengths=6), ValueError, "a length of 6"),
    (lambda f: lax.scan(f, ROWS[0], ROWS, lengths=ONES - 2), ValueError, "a length of -1"),
    (lambda f: lax.scan(f, ROWS[0], ROWS, lengths=ONES[1:]), ValueError,
     r"the carry: float32\[4,3\]"),
    (lambda f: lax.scan(f, ROWS[0], ROWS.swapaxes(1, 2), lengths=ONES), ValueError,
     r"an element of xs: float32\[3,4\]"),
    (lambda f: lax.scan(lambda c, x: (c, x.sum()), ROWS[0], ROWS, lengths=ONES), ValueError,
     r"the y: float32\[\]"),
    (lambda f: lax.scan(lambda c, x: c, ROWS[0], ROWS, lengths=ONES), TypeError,
     "return a pair"),
    (lambda f: lax.scan(lambda c, x: (c[:, :2], x), ROWS[0], ROWS, lengths=ONES), TypeError,
     "a carry of the types"),
    (lambda f: lax.scan(f, ROWS[0], ROWS, lengths="abc"), TypeError, "lengths"),
])  # fmt: skip
def test_lengths_that_fit_nothing(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(lambda c, x: (c + x, x))


def test_a_weak_carry_gets_the_dtype_of_the_step() -> None:
    last, _ = lax.scan(lambda c, x: (c + x, None), xnp.zeros(2, int) * 1, np.ones((3, 2), int),
                       lengths=np.array([1, 3]))  # fmt: skip
    assert last.tolist() == [1, 3]
    last, _ = lax.scan(lambda c, x: (c + x, None), 0, np.float32([1, 2, 3]), lengths=2)
    assert float(last) == 3 and last.dtype == np.float32


def test_a_gradient_stores_the_mask_of_examples_once_a_step() -> None:
    def total(w: Any, x: Any, n: Any) -> Any:
        return lax.scan(lambda c, x: (xnp.tanh(c @ w + x), None), x[0], x, lengths=n)[0].sum()

    def of_batch(w: Any, xs: Any, ns: Any) -> Any:
        return xbatch.vmap(total, (None, 0, 0))(w, xs, ns).sum()

    xs, ns = xnp.ones((5, 7, 3)), xnp.array([7, 2, 0, 7, 4])
    program = make_jaxpr(xad.grad(of_batch))(xnp.eye(3), xs, ns)
    forward, _ = [eqn for eqn in program.eqns if eqn.primitive.name == "scan"]
    masks = [v.aval.shape for v in forward.outputs if v.aval.dtype != "float32"]
    assert masks and set(masks) <= {(7,), (7, 5)}
