from __future__ import annotations

import numpy as np
import pytest

import xnp.numpy as xnp
from xjit import compile_and_run, device_put, jaxlib_gateway as gateway, jit, statistics
from xnp import lax, linalg
from xprim import (
    EAGER,
    ConcreteArray,
    ShapedArray,
    as_array,
    config,
    eager_costs,
    get_primitive,
)
from xprim.testing import functions_entered


def test_small_operations_compile_nothing():
    before = statistics.compiled
    x = as_array(np.ones((16, 16), np.float32))
    for _ in range(3):
        x = lax.add(lax.mul(x, x), lax.dot(x, x))
        x = lax.mul(lax.reduce_max(x, (0,)), 0.5)
        x = lax.mul(as_array(np.ones((16, 16), np.float32)), 2.0)
    assert statistics.compiled == before


def test_a_large_product_is_compiled_once_and_not_waited_for():
    x = as_array(np.random.default_rng(0).normal(size=(600, 600)).astype(np.float32))
    before = statistics.compiled
    y, z = lax.dot(x, x), lax.dot(x, x)
    assert statistics.compiled <= before + 1
    assert y.host is None
    np.testing.assert_allclose(y, np.asarray(x) @ np.asarray(x), atol=1e-3)
    np.testing.assert_array_equal(y, z)


def test_which_operations_are_compiled_depends_on_primitive_size_and_dtype():
    def takes(name, *operands, out=None, **params):
        arrays = tuple([as_array(np.zeros(s, d), what=name) for s, d in operands])
        out = arrays[0].aval if out is None else as_array(np.zeros(out, np.float32)).aval
        return EAGER.backend.takes(get_primitive(name), arrays, params, (out,))

    n, f32 = 1 << 20, np.float32
    assert not takes("add", (n, f32), (n, f32))
    assert not takes("add", (4 * n, f32), (4 * n, f32))
    assert takes("exp", (4 * n, f32))
    assert takes("add", (n, np.float16), (n, np.float16))
    assert takes("erf", (1 << 14, f32)) and not takes("erf", (100, f32))
    assert not takes("sort", (4 * n, f32)) and not takes("transpose", (4 * n, f32))
    assert takes("reduce_sum", (n, f32), out=())
    assert takes("div", (n, np.int32), (n, np.int32))
    assert not takes("concatenate", (4 * n, f32), (4 * n, f32), out=(8 * n,), dimension=0)
    assert takes("concatenate", ((n, 2), f32), ((n, 2), f32), out=(n, 4), dimension=1)
    assert not takes("dot_general", ((128, 128), f32), ((128, 128), f32))
    assert takes("dot_general", ((512, 512), f32), ((512, 512), f32))
    assert takes("dot_general", ((128, 128), np.int32), ((128, 128), np.int32))


@pytest.mark.parametrize("numpy_has", [True, False])
def test_results_that_need_new_memory_are_those_of_numpy_where_it_has_huge_pages(
    monkeypatch, numpy_has
):
    monkeypatch.setattr(eager_costs, "_numpy_alone_has_huge_pages", lambda: numpy_has)

    def takes(name, size, dtype=np.float32, out=None):
        aval = ShapedArray((size,), np.dtype(dtype))
        avals_out = (aval if out is None else ShapedArray(out, aval.dtype),)
        operands = (ConcreteArray(None, aval),) * (2 if name == "add" else 1)
        return EAGER.backend.takes(get_primitive(name), operands, {}, avals_out)

    kept = eager_costs.KEPT_WHEN_FREED // 4
    assert takes("exp", kept)
    assert takes("exp", kept + 1) is not numpy_has
    assert takes("add", 50_000_000) is not numpy_has
    assert takes("erf", 50_000_000)  # NumPy takes longer than the pages
    assert takes("reduce_sum", 50_000_000, out=())
    assert takes("add", 50_000_000, np.float16)


def test_a_function_that_moves_elements_is_not_compiled_for_its_views():
    x = np.arange(6 << 20, dtype=np.float32)  # a pass over it takes longer than WORTH_COMPILING
    before = statistics.compiled
    for shift in (5, x.size // 2, 5):
        np.testing.assert_array_equal(xnp.roll(as_array(x), shift), np.roll(x, shift))
    assert statistics.compiled == before


def test_one_primitive_can_be_compiled_and_run():
    x = as_array(np.arange(4.0, dtype=np.float32))
    (y,) = compile_and_run(get_primitive("mul"), (x, x), {})
    before = statistics.compiled
    compile_and_run(get_primitive("mul"), (x, x), {})
    np.testing.assert_array_equal(y, [0, 1, 4, 9])
    assert statistics.compiled == before


def test_numpy_and_xla_agree_on_large_inputs():
    x = np.random.default_rng(0).normal(size=1 << 14).astype(np.float32)
    small = np.concatenate([np.asarray(lax.erf(as_array(c))) for c in np.split(x, 16)])
    np.testing.assert_allclose(lax.erf(as_array(x)), small, rtol=1e-5, atol=1e-7)


# --- array functions that amount to one large operation -----------------------------------------

LARGE = np.random.default_rng(1).normal(size=(600, 600)).astype(np.float32)


@pytest.fixture
def one_device():
    """Have operations not look where their operands are, as they do once two devices are used."""
    several = gateway.several_devices[0]
    gateway.several_devices[0] = False
    yield
    gateway.several_devices[0] = several


@pytest.mark.usefixtures("one_device")
@pytest.mark.parametrize(
    ("function", "statics"),
    [(xnp.dot, ()), (xnp.matmul, ()), (lambda a, b: xnp.dot(b, a), ())],
    ids=["dot", "matmul", "dot of the other order"],
)
def test_a_large_operation_that_comes_again_is_started_at_once(function, statics):
    x, y = device_put(LARGE), device_put(LARGE.T.copy())
    first = function(x, y, *statics)
    again = function(x, y, *statics)
    assert first.aval is again.aval
    np.testing.assert_array_equal(first, again)
    with config.debug_nans(True):
        assert len(functions_entered(lambda: function(x, y, *statics))) > 20  # the long way
    function(x, y, *statics)  # after a scope of other options, they are read again
    assert len(functions_entered(lambda: function(x, y, *statics))) <= 14


def test_started_operations_follow_options_and_refuse_what_is_gone():
    x = device_put(np.ones((600, 600), np.float32))
    for _ in range(3):
        product = xnp.dot(x, x)
    with config.enable_x64(True):
        assert xnp.dot(x, x).dtype == np.float32
    bad = device_put(np.full((600, 600), np.nan, np.float32))
    np.testing.assert_array_equal(xnp.dot(bad, bad), np.full((600, 600), np.nan))
    with config.debug_nans(True), pytest.raises(FloatingPointError):
        xnp.dot(bad, x)
    gone = device_put(np.ones((600, 600), np.float32))
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        xnp.dot(gone, x)
    np.testing.assert_array_equal(product, np.full((600, 600), 600))


def test_functions_of_several_primitives_are_right_at_every_call():
    x = device_put(LARGE)
    for _ in range(3):
        np.testing.assert_allclose(xnp.var(x), LARGE.var(), rtol=1e-5)
        np.testing.assert_allclose(xnp.mean(x, 0), LARGE.mean(0), atol=1e-6)
        np.testing.assert_allclose(xnp.sum(x * 0 + 1, axis=1), np.full(600, 600))


# --- array functions of several primitives, one of which the compiler takes ---------------------

N = 1 << 18
NUMBERS = np.random.default_rng(2).normal(size=N).astype(np.float32)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 3e38], np.float32)
NUMBERS[:64], OTHERS = np.repeat(SPECIAL, 8), np.roll(NUMBERS, N // 2)
OTHERS[:64] = np.tile(SPECIAL, 8)
COMPOSED = {
    "fmax": (xnp.fmax, NUMBERS, OTHERS),
    "fmin": (xnp.fmin, NUMBERS, OTHERS),
    "copysign": (xnp.copysign, NUMBERS, OTHERS),
    "a scalar on the right": (xnp.heaviside, NUMBERS, 0.5),
    "a scalar on the left": (xnp.fmax, 0.5, NUMBERS),
    "an operator": (lambda x, y: x // y, np.arange(-N // 2, N // 2, dtype=np.int32), 7),
    "a static argument": (lambda x: xnp.round(x, 2), NUMBERS),
    "one operand": (xnp.sinc, NUMBERS),
    "rows and columns": (xnp.fmin, NUMBERS[:512].reshape(512, 1), OTHERS[:512]),
}


@pytest.fixture
def programs(monkeypatch):
    """Return the names of the programs that evaluation has compiled as a whole."""
    names = []

    class Listening(type(EAGER.backend)):
        def run_program(self, closed, operands, name):
            names.append(name)
            return super().run_program(closed, operands, name)

    monkeypatch.setattr(EAGER, "backend", Listening())
    return names


@pytest.mark.parametrize("place", ["host", "device"])
@pytest.mark.parametrize("name", COMPOSED)
def test_large_operands_make_one_program_of_a_function(name, place, programs):
    function, *values = COMPOSED[name]
    put = as_array if place == "host" else device_put
    operands = [put(v) if isinstance(v, np.ndarray) else v for v in values]
    first, again = function(*operands), function(*operands)
    assert len(programs) == 2, programs
    with config.debug_nans(True):
        pass  # a scope of other options in between
    once_more = function(*operands)
    assert first.aval is again.aval is once_more.aval
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, once_more)
    pieces = [np.array_split(v, 64) if np.ndim(v) == first.ndim else [v] * 64 for v in values]
    by_numpy = np.concatenate(
        [
            function(*[as_array(v) if isinstance(v, np.ndarray) else v for v in piece])
            for piece in zip(*pieces, strict=True)
        ]
    )
    np.testing.assert_allclose(first, by_numpy, rtol=5e-7)
    if function not in (xnp.fmax, xnp.fmin):  # of two zeros, either is the greater
        zeros = np.asarray(first) == 0
        np.testing.assert_array_equal(np.signbit(first)[zeros], np.signbit(by_numpy)[zeros])


def test_many_passes_of_plain_arithmetic_are_one_program(programs):
    x, kernel = np.tile(NUMBERS[64:], 4), np.float32([0.5, 2, -1, 0.25, 3])
    for _ in range(2):
        found = xnp.convolve(as_array(x), as_array(kernel))
        np.testing.assert_allclose(found, np.convolve(x, kernel), rtol=1e-5, atol=1e-5)
        xnp.convolve(as_array(x[:5000]), as_array(kernel))
        xnp.convolve(as_array(x), as_array(kernel[:2]))
    assert len(programs) == 2


def test_large_operands_are_refused_as_small_ones_are(programs):
    x = as_array(np.ones(N, np.int32))
    for _ in range(3):
        with pytest.raises(ValueError, match="not well defined for complex"):
            xnp.hypot(as_array(np.ones(N, np.complex64)), 1.0)
        with pytest.raises(ValueError, match="incompatible shapes"):
            xnp.fmax(as_array(NUMBERS), as_array(NUMBERS[1:]))
        x // 7
        with pytest.raises(OverflowError, match="int32"):
            x // 2**40
    assert set(programs) == {"floor_divide"}


def test_with_debug_nans_each_operation_of_a_function_is_looked_at(programs):
    x = as_array(np.abs(NUMBERS[64:]))
    with config.debug_nans(True), pytest.raises(FloatingPointError, match="rem"):
        xnp.remainder(x, 0.0)
    assert not programs


@pytest.mark.of_the_cpu
@pytest.mark.parametrize("call", [lambda x: x * 2, lambda x: x + x, lambda x: 1.5 - x, xnp.abs])
def test_large_work_that_numpy_does_with_device_buffers_has_a_kernel(call):
    host = np.linspace(-1, 1, 40_000, dtype=np.float32).reshape(200, 200)
    x = device_put(host)
    expected = call(as_array(host))
    results = [call(x) for _ in range(3)]
    for y in results:
        assert y.aval is expected.aval
        np.testing.assert_array_equal(y, expected)
    names = {code.co_name for code in functions_entered(lambda: call(x))}
    assert "process" not in names, "the primitive was evaluated by its rules"
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        call(x)


@pytest.mark.parametrize("n", [3, 4, 5, 8, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64])
def test_eigenvalues_have_one_order_outside_of_programs_and_inside(n, dtype):
    """NumPy has them of single precision in the order that the double precision finds."""
    rng = np.random.default_rng(n)
    for _ in range(8):
        a = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
        a = np.asarray(a if dtype == np.complex64 else a.real, dtype)
        with config.enable_x64(dtype == np.float64):
            for f in (linalg.eigvals, lambda x: linalg.eig(x)[0]):
                np.testing.assert_allclose(f(a), jit(f)(a), atol=1e-5)
