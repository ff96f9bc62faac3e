"""`jit(f, buckets=...)`: few programs for arguments of many sizes."""

import numpy as np
import pytest

from xjit import jit
from xnp import lax
from xprim import as_array


def ramp(n, *rest):
    return np.arange(1, n * int(np.prod(rest)) + 1, dtype=np.float32).reshape(n, *rest)


def total_and_doubled(x):
    return {"total": lax.reduce_sum(x, (0,)), "doubled": lax.mul(x, 2.0)}


def test_all_sizes_of_a_bucket_share_a_program():
    f = jit(total_and_doubled, buckets={"x": {0: "pow2"}})
    f(ramp(5))  # compares with the unpadded program, once
    before = f.stats()["traces"]
    for n in (6, 7, 8, 5):
        out = f(ramp(n))
        assert float(out["total"]) == n * (n + 1) / 2
        np.testing.assert_array_equal(out["doubled"], 2 * ramp(n))
    assert f.stats()["traces"] == before
    assert f.trace(ramp(6)).in_avals[0][0].shape == (8,)


SIZES = {"powers": ("pow2", 8), "multiples": (6, 6), "a list": ([4, 5, 9], 5)}


@pytest.mark.parametrize(("rule", "bucket"), SIZES.values(), ids=SIZES)
def test_buckets_are_powers_multiples_or_listed(rule, bucket):
    f = jit(lambda x: x, buckets={"x": {-1: rule}})
    assert f.lower(np.zeros((2, 5), np.float32)).in_avals[0][0].shape == (2, bucket)


def test_several_axes_arguments_and_trees_are_padded():
    f = jit(
        lambda pair, w, *, scale: lax.mul(lax.dot(pair["a"], w), scale),
        buckets={"pair": {0: "pow2", 1: 4}, "w": {0: 4}}, static_argnames="scale",
    )  # fmt: skip
    for rows, inner in ((3, 5), (3, 6), (4, 8), (5, 1)):
        a, w = ramp(rows, inner), ramp(inner, 2)
        np.testing.assert_allclose(f({"a": a}, w, scale=2.0), 2 * (a @ w), rtol=1e-6)


def test_results_whose_sizes_follow_are_cut_off():
    f = jit(lambda x: (lax.pad(x, 0.0, [(0, 0, 1)]), lax.slice(x, (0,), (x.shape[0] - 1,))),
            buckets={"x": {0: "pow2"}})  # fmt: skip
    spread, shorter = f(ramp(3))
    assert spread.tolist() == [1, 0, 2, 0, 3] and shorter.tolist() == [1, 2]


@pytest.mark.parametrize(
    "fun",
    [lambda x: lax.div(lax.reduce_sum(x, (0,)), float(x.shape[0])), lambda x: lax.rev(x, (0,)),
     lambda x: lax.sort(x), lambda x: lax.concatenate([x, x], 0)],
    ids=["mean", "rev", "sort", "concatenate"],
)  # fmt: skip
def test_a_function_that_cannot_be_padded_is_refused_by_the_first_call_that_pads(fun):
    f = jit(fun, buckets={"x": {0: 4}})
    f(ramp(4))
    with pytest.raises(ValueError, match=r"(?s)jit: .* cannot be padded: its result differs.*hint"):
        f(ramp(3))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(
    ("fun", "first"),
    [(lambda x: lax.reduce_max(x, (0,)), 1), (lambda x: lax.reduce_min(x, (0,)), -1),
     (lambda x: lax.rev(lax.sort(x), (0,)), 1),
     (lambda x: lax.reduce_max(lax.sub(x, lax.full_like(x, 10)), (0,)), 1)],
    ids=["max", "min", "sorted down", "shifted max"],
)  # fmt: skip
def test_what_holds_for_elements_of_one_sign_alone_is_refused(fun, first, dtype):
    f = jit(fun, buckets={"x": {0: 4}})
    with pytest.raises(ValueError, match="cannot be padded: its result differs"):
        f((first * ramp(3)).astype(dtype))


def test_programs_that_might_not_end_are_compared_for_the_given_elements_alone():
    def halved(x):
        return lax.while_loop(lambda y: lax.reduce_max(y, (0,)) > 1.0, lambda y: y * 0.5, x)

    f = jit(halved, buckets={"x": {0: 4}})
    np.testing.assert_array_equal(f(ramp(3)), ramp(3) / 4)


def test_small_dtypes_and_no_elements_are_padded_too():
    f = jit(lambda x: x, buckets={"x": {0: "pow2"}})
    for dtype in (np.bool_, np.int8, np.complex64):
        x = as_array(np.array([1, 0, 1], dtype))
        out = f(x)
        assert out.aval is x.aval and np.array_equal(out, x)
    assert f(ramp(0)).shape == (0,)


REFUSED = {
    "another name": ({"y": {0: "pow2"}}, {}, "does not say how arguments of"),
    "another rule": ({"x": {0: "pow3"}}, {}, r'expected  \{"name": \{axis: "pow2"\}\},'),
    "no mapping": ([0], {}, "does not say how"),
    "donation": ({"x": {0: 2}}, {"donate_argnums": 0}, "buckets cannot be joined with donate_argn"),
}


@pytest.mark.parametrize(("buckets", "more", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_bucket_is_refused_at_once(buckets, more, text):
    with pytest.raises(ValueError, match=text):
        jit(lambda x: x, buckets=buckets, **more)


def test_sizes_without_a_bucket_and_axes_that_are_not_there_are_refused():
    f = jit(lambda x: x, buckets={"x": {0: [2, 4]}})
    with pytest.raises(ValueError, match=r"(?s)no bucket of x is large enough.*size of 5.*most 4"):
        f(ramp(5))
    with pytest.raises(ValueError, match=r"buckets names axis 0 of x, which has 0 dimensions"):
        f(1.0)
