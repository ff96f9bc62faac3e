"""Functions of complex numbers near zero, near poles and far out, by both engines.

The reference is NumPy in complex128, whose range and digits leave room for complex64.
"""

from __future__ import annotations

import cmath
import functools

import numpy as np
import pytest

import xnp
from xjit import jit
from xnp import lax
from xprim import config

PARTS = [0.0, 1.0, -1.0, 0.5, -2.0, 1e-30, -1e-30, 1e-20, 1e-5, -1e-3, 0.1, 30.0, -90.0, 1e15,
         -1e15, 1e20, 1e30, 3e38, -3e38]  # fmt: skip
POINTS = np.array([complex(x, y) for x in PARTS for y in PARTS], np.complex64)
NAMES = """
abs angle exp expm1 log log1p log2 log10 sqrt square reciprocal sin cos tan sinh cosh tanh
arcsin arccos arctan arcsinh arccosh arctanh sign""".split()
# Of these each part by itself has its digits, although the other one may be far larger.
OF_PARTS = ["sin", "cos", "sinh", "cosh", "exp", "log"]


def _log1p(z):
    """Return log(1 + z), where NumPy's own loses small real parts."""
    return np.where(np.abs(z) < 1e-4, z - z * z / 2 + z**3 / 3, np.log(1 + z))


@functools.cache
def _compiled():
    found = jit(lambda z: [getattr(xnp, name)(z) for name in NAMES])(POINTS)
    return dict(zip(NAMES, map(np.asarray, found), strict=True))


def _result(name, compiled):
    return _compiled()[name] if compiled else np.asarray(getattr(xnp, name)(POINTS))


def _expected(name):
    with np.errstate(all="ignore"):
        reference = _log1p if name == "log1p" else getattr(np, name)
        expected = reference(POINTS.astype(np.complex128))
    size = np.abs(expected)
    return expected, np.isfinite(size) & (size < 3e38)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_a_complex_function_has_the_digits_of_float32(name, compiled):
    expected, known = _expected(name)
    found = _result(name, compiled)[known].astype(np.complex128)
    # a few roundings; what is subnormal may be zero
    close = np.abs(found - expected[known]) <= 2e-6 * np.abs(expected[known]) + 2e-38
    rows = zip(POINTS[known], found, expected[known], close, strict=True)
    assert [row[:3] for row in rows if not row[3]] == []


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", OF_PARTS)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_each_part_of_a_complex_function_has_the_digits_of_float32(name, compiled):
    expected, known = _expected(name)
    found = _result(name, compiled)
    # angles of thousands and more: their remainders by pi have few digits
    known &= np.abs(POINTS.real) + np.abs(POINTS.imag) < 100
    for part in ("real", "imag"):
        ours, theirs = getattr(found, part)[known], getattr(expected, part)[known]
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-38)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_sign_of_a_tiny_number_has_all_digits(dtype):
    info = np.finfo(dtype)
    steps = np.array([complex(x, y) for x in (1, 2, 0, -9) for y in (1, -3, 5, 2**20)])
    expected = steps / np.abs(steps)
    with config.enable_x64(True):
        for size in (info.smallest_subnormal, info.tiny / 2, info.tiny, 7 * info.tiny):
            z = np.empty(steps.shape, dtype)
            z.real, z.imag = steps.real * size, steps.imag * size
            for sign in (xnp.sign, jit(xnp.sign)):
                np.testing.assert_allclose(sign(xnp.asarray(z)), expected, 0, 4 * info.eps)


def test_sinc_is_1_at_small_numbers():
    x = np.array([1e-30j, 1e-20, 1e-5j, 1e-4 + 1e-4j, 0], np.complex64)
    for sinc in (xnp.sinc, jit(xnp.sinc)):
        np.testing.assert_allclose(sinc(x), np.ones(5), rtol=1e-6)


def test_a_power_has_the_range_of_its_result():
    x = [-2.5 + 0.5j, -3e38 - 3e38j, 1e-3, 0.02 + 0.02j, 0.5 - 1e20j, 3e38 - 3e38j]
    y = [1e3 + 1e3j, 1e-30j, -1e3j, 20 - 40j, -2, -1e-20 - 1e-20j]
    x, y = np.array(x, np.complex64), np.array(y, np.complex64)
    expected = np.power(x.astype(complex), y.astype(complex))
    for power in (lax.pow, jit(lax.pow)):
        np.testing.assert_allclose(power(x, y), expected, rtol=2e-4, atol=1e-38)


def test_a_power_beyond_all_numbers_is_infinite():
    x, y = (
        np.array([1e3 + 1e3j, -2.5 + 0.5j], np.complex64),
        np.array([1e3 + 1e3j, 9e3], np.complex64),
    )
    for power in (lax.pow, jit(lax.pow)):
        assert np.isinf(np.abs(power(x, y))).all() and not np.isnan(power(x, y)).any()


# Both ends of the range, and numbers within a factor of four of the greatest.
ENDS = [0.0, 1.0, -0.5, 3e-38, 8e37, 9e37, -1.7e38, 3.4e38, float(np.finfo(np.float32).max)]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_a_quotient_of_complex_numbers_leaves_the_range_only_where_it_does(compiled):
    numbers = np.array([complex(re, im) for re in ENDS for im in ENDS], np.complex64)
    x, y = [v.ravel() for v in np.meshgrid(numbers, numbers[1:], indexing="ij")]
    divide = jit(lax.div) if compiled else lax.div
    found = np.asarray(divide(x, y)).astype(np.complex128)
    expected = x.astype(np.complex128) / y
    known = np.abs(expected) < 3e38
    # a few roundings; what is subnormal may be zero
    close = np.abs(found - expected) <= 1e-6 * np.abs(expected) + 4e-38
    wrong = known & ~close
    rows = zip(x[wrong], y[wrong], found[wrong], expected[wrong], strict=True)
    assert list(rows) == []
    beyond = np.maximum(np.abs(expected.real), np.abs(expected.imag)) > 3.5e38
    assert beyond.any() and np.isinf(np.abs(found[beyond])).all()


def test_complex_numbers_with_a_nan_come_last_when_compiled():
    parts = [0, 1, -np.inf, np.inf, np.nan]
    x = np.array([complex(re, im) for re in parts for im in parts], np.complex64)
    x = np.random.default_rng(0).permutation(x)
    ordered, places = jit(lambda x: (xnp.sort(x), xnp.argsort(x)))(x)
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))


def test_sinc_is_0_at_the_ends_of_lines_along_the_real_axis():
    x = np.array([complex(np.inf, -2), complex(-np.inf, 3)], np.complex64)
    for sinc in (xnp.sinc, jit(xnp.sinc)):
        assert np.asarray(sinc(x)).tolist() == [0, 0]


# -------------------------------------------------------------------------------- special values
# Every elementary function at all pairs of parts that are zero, infinite, NaN or at an end of the
# range: both engines agree, and have what C99, Annex G names. Python's `cmath` has its tables.

FUNCTIONS = """
abs angle exp exp2 expm1 log log1p log2 log10 sqrt square reciprocal sin cos tan sinh cosh tanh
arcsin arccos arctan arcsinh arccosh arctanh sign sinc conj negative nan_to_num""".split()
OF_LAX = ["logistic", "rsqrt"]
POWERS = [-3, -2, -1, 2, 3]
OF_TWO = "add subtract multiply divide power logaddexp logaddexp2 maximum minimum equal".split()
ANNEX_G = {"exp": "exp", "log": "log", "sqrt": "sqrt", **{
    f"{head}{name}{tail}": f"{'a' if head else ''}{name}{tail}"
    for head in ("", "arc") for name in ("sin", "cos", "tan") for tail in ("", "h")
}}  # fmt: skip
DTYPES = ["complex64", "complex128"]


def _pairs(dtype, ends=True):
    info = np.finfo(dtype)
    parts = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    parts += [float(info.smallest_subnormal), float(info.max)] if ends else [3.0]
    return np.array([complex(x, y) for x in parts for y in parts], dtype)


def _parts(z):
    z = np.asarray(z)
    return np.stack([z.real, z.imag], -1) if np.iscomplexobj(z) else z[..., None]


def _without_subnormals(z):
    parts = _parts(z)
    tiny = np.abs(parts) < np.finfo(z.dtype).tiny
    return np.where(tiny, np.copysign(0, parts), parts).astype(parts.dtype).view(z.dtype)[..., 0]


def _agree(found, expected, operands, has_signs=True):
    """Return where values agree in digits, and in signs if they have them.

    C99 leaves the signs open of what stands beside a NaN, and where both parts of an operand are
    infinite; those of a result that is subnormal are lost with it.
    """
    found, expected = _parts(found), _parts(expected)
    if found.dtype == bool:
        return (found == expected)[..., 0]
    info = np.finfo(expected.dtype)
    size = np.where(np.isfinite(expected), np.abs(expected), 0).max(-1, keepdims=True)
    is_open = np.isnan(expected).any(-1) | ((size > 0) & (size < info.tiny))[..., 0]
    for z in operands:
        is_open |= np.isnan(z) | (np.isinf(z.real) & np.isinf(z.imag))
    # roundings of the greater part: most of the sums whose logarithm is drawn
    rounding = 64 * info.eps * size + 4 * info.tiny
    close = (found == expected) | (np.isnan(found) & np.isnan(expected))
    close |= np.abs(found - expected) <= rounding
    close |= is_open[..., None] & (np.abs(found) == np.abs(expected))
    are_zero = (found == 0) & (expected == 0)
    has_sign = (are_zero | (np.abs(expected) > rounding)) & ~is_open[..., None] & has_signs
    return (close & (~has_sign | (np.signbit(found) == np.signbit(expected)))).all(-1)


def _cases():
    functions = {name: getattr(xnp, name) for name in FUNCTIONS}
    functions |= {name: getattr(lax, name) for name in OF_LAX}
    for y in POWERS:
        functions[f"power {y}"] = functools.partial(lax.integer_pow, y=y)
    return functions, {name: getattr(xnp, name) for name in OF_TWO}


@functools.cache
def _special_values(dtype):
    """Return name -> (operands, eager values, compiled values)."""
    with config.enable_x64(True):
        z, few = _pairs(dtype), _pairs(dtype, ends=False)
        x, y = [v.ravel() for v in np.meshgrid(few, few)]
        of_one, of_two = _cases()
        operands = dict.fromkeys(of_one, (z,)) | dict.fromkeys(of_two, (x, y))
        functions = of_one | of_two

        def all_of(operands):
            return {name: function(*operands[name]) for name, function in functions.items()}

        eager, compiled = all_of(operands), jit(all_of)(operands)
        flushed = all_of(operands | dict.fromkeys(of_one, (_without_subnormals(z),)))
        return {
            name: [operands[name], *[np.asarray(of[name]) for of in (eager, flushed, compiled)]]
            for name in functions
        }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_LAX, *[f"power {y}" for y in POWERS], *OF_TWO])
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_complex_values_at_special_parts_are_the_same_compiled(name, dtype):
    operands, eager, flushed, compiled = _special_values(dtype)[name]
    # a compiled program takes subnormal operands for zeros
    has_signs = name != "power"  # whose angles of 0 are sums of products
    right = _agree(compiled, eager, operands, has_signs)
    right |= _agree(compiled, flushed, operands, has_signs)
    rows = zip(*operands, eager, compiled, right, strict=True)
    assert [row[:-1] for row in rows if not row[-1]] == []


def _of_annex_g(name, z):
    if name in ("tanh", "arccosh") and z.real == 0 and np.isnan(z.imag):
        # since C17 (defect report 471); `cmath` is older
        return complex(z.real, np.nan) if name == "tanh" else complex(np.nan, np.pi / 2)
    return getattr(cmath, ANNEX_G[name])(complex(z))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ANNEX_G)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_complex_values_at_special_parts_are_those_of_annex_g(name, dtype):
    (z,), eager, _, compiled = _special_values(dtype)[name]
    tiny = np.finfo(dtype).tiny
    wrong, count = [], 0
    for at, point in enumerate(z):
        if any(0 < abs(part) < tiny for part in (point.real, point.imag)):
            continue
        try:
            if name == "tan":  # -i tanh(i z)
                turned = _of_annex_g("tanh", point.dtype.type(complex(-point.imag, point.real)))
                expected = np.array([complex(turned.imag, -turned.real)], dtype)
            else:
                expected = np.array([_of_annex_g(name, point)], dtype)
        except (ValueError, OverflowError):  # where C99 raises a flag
            continue
        count += 1
        for found in (eager, compiled):
            if not _agree(found[at : at + 1], expected, (z[at : at + 1],))[0]:
                wrong.append((point, found[at], expected[0]))
    assert wrong == [] and count >= 30


def _quotient_of_annex_g(x, y):
    """Return x / y as C99 has it, section G.5.1, without its scaling."""
    (a, b), (c, d) = [(z.real, z.imag) for z in (x, y)]
    size = np.fmax(np.abs(c), np.abs(d))
    real, imag = [(part / (c * c + d * d)) for part in (a * c + b * d, b * c - a * d)]
    is_open = np.isnan(real) & np.isnan(imag)
    of_zero = is_open & (y == 0) & ~(np.isnan(a) & np.isnan(b))
    endless = np.copysign(np.inf, c)
    real, imag = [np.where(of_zero, endless * n, z) for n, z in ((a, real), (b, imag))]
    signs = [np.copysign(np.isinf(part), part) for part in (a, b, c, d)]
    of_infinite = is_open & ~of_zero & (np.isinf(a) | np.isinf(b)) & np.isfinite(y)
    by_infinite = is_open & np.isinf(size) & np.isfinite(x)
    for chosen, factor, (e, f, g, h) in (
        (of_infinite, np.inf, (*signs[:2], c, d)), (by_infinite, 0.0, (a, b, *signs[2:])),
    ):  # fmt: skip
        real = np.where(chosen, factor * (e * g + f * h), real)
        imag = np.where(chosen, factor * (f * g - e * h), imag)
    return real + 1j * imag, np.isinf(real) | np.isinf(imag)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_quotients_of_special_numbers_are_those_of_annex_g(dtype):
    (x, y), eager, _, compiled = _special_values(dtype)["divide"]
    expected, is_infinite = _quotient_of_annex_g(x, y)
    for found in (eager, compiled):
        np.testing.assert_array_equal(np.isinf(found.real) | np.isinf(found.imag), is_infinite)
        # one infinite part makes an infinity, whatever the other is
        np.testing.assert_array_equal(
            np.isnan(found)[~is_infinite], np.isnan(expected)[~is_infinite]
        )
        np.testing.assert_array_equal(found == 0, expected == 0)
    assert np.isnan(expected).sum() > 100 and (expected == 0).sum() > 100


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_special_numbers_that_are_known(dtype):
    (x, y), eager, _, compiled = _special_values(dtype)["power"]
    for found in (eager, compiled):
        assert (found[(y == 0) | (x == 1)] == 1).all()
        assert (found[(x == 0) & (y.real > 0) & np.isfinite(y)] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_nothing_added_to_a_number_is_its_logarithm(name, dtype):
    (x, y), eager, _, compiled = _special_values(dtype)[name]
    nothing = (x.real == -np.inf) & np.isfinite(y)
    for found in (eager, compiled):
        np.testing.assert_array_equal(found.real[nothing], y.real[nothing])
