"""Many small arrays in one kernel (`small_kernels`): the same results, where that is safe."""

import re

import numpy as np
import pytest

import xnp
from xjit import jit
from xjit.export import export
from xnp import lax
from xprim import config

SMALL = "xla_cpu_small_call"
SHAPES = [(3, 3, 4, 8), (3, 3, 8, 8), (3, 3, 8, 2), (8,), (2,), (4,), (7, 1)]


def _arrays(seed, shapes=SHAPES, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [xnp.asarray(rng.normal(size=shape).astype(dtype)) for shape in shapes]


def _update(params, momenta, grads, rate):
    momenta = [0.9 * m + g for m, g in zip(momenta, grads, strict=True)]
    return [p - rate * m for p, m in zip(params, momenta, strict=True)], momenta


@pytest.mark.parametrize("donated", [(), (0, 1)])
def test_updates_of_many_arrays_share_a_kernel_and_give_what_numpy_gives(donated):
    arguments = [_arrays(seed) for seed in range(3)]
    expected = _update(*[[np.asarray(x) for x in xs] for xs in arguments], np.float32(0.1))
    compiled = jit(_update, donate_argnums=donated)
    assert compiled.lower(*arguments, 0.1).as_text().count(SMALL) == 1
    for own, reference in zip(compiled(*arguments, 0.1), expected, strict=True):
        for x, y in zip(own, reference, strict=True):
            # two roundings or one, by a fused multiply and add: an ulp of the larger operand
            np.testing.assert_allclose(np.asarray(x), y, rtol=1e-6, atol=1e-6)


def test_special_values_pass_through_updates():
    def f(xs):
        return [xnp.sqrt(x) / x - 2.0 * x for x in xs]

    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 3e38], np.float32)
    xs = [xnp.asarray(np.tile(special, n)) for n in range(1, 8)]
    compiled = jit(f)
    assert SMALL in compiled.lower(xs).as_text()
    with np.errstate(all="ignore"):
        for x, y in zip(xs, compiled(xs), strict=True):
            host = np.asarray(x)
            np.testing.assert_allclose(np.asarray(y), np.sqrt(host) / host - np.float32(2) * host,
                                       rtol=1e-6)  # fmt: skip


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x - x,
        lambda x: x / x,
        lambda x: 0.0 * x,
        lambda x: x + float("nan"),
        lambda x: x * float("inf"),
        lambda x: (x * 2).astype(np.int32) + 1,
    ],
)
def test_results_that_options_make_constants_are_written_outside(f):
    assert SMALL not in jit(lambda xs: [f(x) for x in xs]).lower(_arrays(0)).as_text()


def test_results_that_are_arguments_or_one_another_do_not_end_the_process():
    def f(xs):
        return [(x, xnp.negative(-x), x * 1.0, 1.0 * x, x + x, 2.0 * x) for x in xs]

    xs = _arrays(0)
    for x, (same, twice, times, left, double, product) in zip(xs, jit(f)(xs), strict=True):
        for y in (same, twice, times, left):
            np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
        for y in (double, product):
            np.testing.assert_array_equal(np.asarray(y), 2 * np.asarray(x))


@pytest.mark.parametrize("long", [0, 3, 6])
def test_a_long_update_has_no_function_of_one_result(long):
    def f(xs):
        return [_polynomial(x) if i == long else 0.5 * x for i, x in enumerate(xs)]

    xs = [0.5 * x for x in _arrays(0)]
    compiled = jit(f)
    assert SMALL in compiled.lower(xs).as_text()
    for x, y in zip(f(xs), compiled(xs), strict=True):
        # each of 60 steps rounds once or twice
        np.testing.assert_allclose(np.asarray(y), np.asarray(x), rtol=1e-4)


def _polynomial(x):
    y = x
    for n in range(30):
        y = y * 0.25 + x / (n + 1.0)
    return y


def test_constants_as_operands_do_not_end_the_process():
    def f(xs):
        zeros = [xnp.zeros_like(x) for x in xs]
        return [(0.5 * z + x, 0.5 * z - 1.0, xnp.ones_like(x) * 3.0) for x, z in
                zip(xs, zeros, strict=True)]  # fmt: skip

    xs = _arrays(0)
    for x, (same, half, three) in zip(xs, jit(f)(xs), strict=True):
        np.testing.assert_array_equal(np.asarray(same), np.asarray(x))
        np.testing.assert_array_equal(np.asarray(half), np.full(x.shape, -1.0, np.float32))
        np.testing.assert_array_equal(np.asarray(three), np.full(x.shape, 3.0, np.float32))
    for half, three in jit(lambda: [each[1:] for each in f(_arrays(0))])():
        assert np.all(np.asarray(half) == -1.0)
        assert np.all(np.asarray(three) == 3.0)


def test_arguments_of_a_function_come_through_a_barrier():
    arguments = [_arrays(seed) for seed in range(3)]
    lines = jit(_update).lower(*arguments, 0.1).as_text().splitlines()
    (at,) = [i for i, line in enumerate(lines) if SMALL in line]
    names = re.search(r"@updates\((.*?)\)", lines[at])[1].split(", ")
    barrier = lines[at - 1]
    assert "stablehlo.optimization_barrier" in barrier
    assert all(barrier.index(name) < barrier.index("=") for name in names)


def test_few_or_large_or_equal_arrays_have_kernels_of_their_own():
    def text(shapes):
        args = [[xnp.zeros(shape, np.float32) for shape in shapes]] * 3
        return jit(_update).lower(*args, 0.1).as_text()

    assert SMALL in text(SHAPES)
    assert SMALL not in text([(8,)])
    assert SMALL not in text([(512, 512 + n) for n in range(8)])
    assert SMALL not in text([(8, 8)] * 12)


def test_exported_programs_and_those_of_gpus_have_none():
    arguments = [_arrays(seed) for seed in range(3)]
    traced = jit(_update).trace(*arguments, 0.1)
    assert SMALL not in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert SMALL not in export(jit(_update))(*arguments, 0.1).mlir_module()


# ------------------------------------------------------------------------------------ convolutions

KERNELS = [(3, 3, 4, 6), (3, 3, 6, 8), (1, 3, 8, 4), (2, 2, 4, 5)]


def _inputs(dtype=np.float32):
    rng = np.random.default_rng(0)
    kernels = [xnp.asarray(rng.normal(size=k).astype(dtype)) for k in KERNELS]
    xs = [xnp.asarray(rng.normal(size=(2, 5, 6, k[2])).astype(dtype)) for k in KERNELS]
    ys = [xnp.asarray(rng.normal(size=(2, 5, 6, k[3])).astype(dtype)) for k in KERNELS]
    return kernels, xs, ys


def _gradients_of_inputs(kernels, ys):
    return [
        lax.conv_general_dilated(
            y, lax.rev(k, (0, 1)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWOI", "NHWC")
        )
        for k, y in zip(kernels, ys, strict=True)
    ]


def _gradients_of_kernels(xs, ys):
    pads = [[(n // 2, n - 1 - n // 2) for n in k[:2]] for k in KERNELS]
    return [
        lax.conv_general_dilated(x, y, (1, 1), pad, dimension_numbers=("CHWN", "IHWO", "HWNC"))
        for x, y, pad in zip(xs, ys, pads, strict=True)
    ]


def _compare(f, arguments):
    """Compare a compiled function with NumPy's rules on float64."""
    with config.enable_x64(True):
        exact = [[xnp.asarray(np.asarray(x, np.float64)) for x in xs] for xs in arguments]
        reference = f(*exact)
    compiled = jit(f)
    for x, y in zip(compiled(*arguments), reference, strict=True):
        # sums of at most 72 products of numbers below 5 in float32
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-4)
    return compiled.lower(*arguments).as_text()


def test_reversed_kernels_are_moved_by_one_function():
    kernels, _, ys = _inputs()
    text = _compare(_gradients_of_inputs, (kernels, ys))
    assert text.count(SMALL) == 1
    assert "dim_numbers = [b, 0, 1, f]x[0, 1, o, i]" not in text


def test_a_reversed_kernel_that_is_read_elsewhere_is_written_too():
    def f(kernels, ys):
        flipped = [lax.rev(k, (0, 1)) for k in kernels]
        return [*_gradients_of_inputs(kernels, ys), *flipped]

    kernels, _, ys = _inputs()
    _compare(f, (kernels, ys))


def test_gradients_of_kernels_are_moved_and_used_where_they_are_results_or_read():
    _, xs, ys = _inputs()

    def read(xs, ys):
        return [xnp.sum(g) * g for g in _gradients_of_kernels(xs, ys)]

    def update(momenta, xs, ys):
        grads = _gradients_of_kernels(xs, ys)
        momenta = [0.9 * m + g for m, g in zip(momenta, grads, strict=True)]
        return [*momenta, *[m - 0.1 * g for m, g in zip(momenta, grads, strict=True)]]

    momenta = _arrays(1, KERNELS)
    assert SMALL in _compare(_gradients_of_kernels, (xs, ys))
    assert SMALL in _compare(read, (xs, ys))
    assert SMALL in _compare(update, (momenta, xs, ys))


def test_moved_convolutions_in_inner_programs_and_batches_and_loops():
    kernels, _, ys = _inputs()
    inner = jit(_gradients_of_inputs)

    def looped(kernels, ys):
        def body(_, ys):
            found = _gradients_of_inputs(kernels, [inner_y[..., : k.shape[3]] for inner_y, k in
                                                   zip(ys, kernels, strict=True)])  # fmt: skip
            return [y + xnp.sum(g) for y, g in zip(ys, found, strict=True)]

        return lax.fori_loop(0, 2, body, ys)

    _compare(lambda kernels, ys: inner(kernels, ys), (kernels, ys))
    small = [[0.01 * x for x in each] for each in (kernels, ys)]
    _compare(looped, small)
