"""Samplers against those of jax: bit for bit where only exact operations are used.

What jax draws in loops is kept in a table, since it takes a second to compile each of these
samplers, and of what it draws in exact operations there are digests; `nox -s fuzz` has it draw
again. Both are what JAX 0.12 draws (0.10.2 draws the same), written by
`python -m packages.xrandom.tests.test_samplers_against_jax`.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xrandom
from packages.xrandom.tests.oracle import assert_close, assert_equal, jax, layout
from xprim import config

LAYOUTS = pytest.mark.parametrize("partitionable", [True, False], ids=["partitionable", "original"])
TABLE = Path(__file__).with_name("samples_of_jax.json")
DIGESTS = Path(__file__).with_name("digests_of_jax.json")
Call = tuple[str, tuple[Any, ...], dict[str, Any]]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def _both(name: str, *args: Any, seed: int = 11, **kwargs: Any) -> tuple[Any, Any]:
    ours = getattr(xrandom, name)(xrandom.PRNGKey(seed), *args, **kwargs)
    theirs = getattr(jax.random, name)(jax.random.PRNGKey(seed), *args, **kwargs)
    return ours, theirs


@pytest.mark.sampled(every=4, per="dtype")
@LAYOUTS
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (1000,)], ids=str)
def test_uniform_is_that_of_jax(partitionable: bool, dtype: str, shape: tuple[int, ...]) -> None:
    with layout(partitionable, x64=True):
        assert_equal(*_both("uniform", shape, dtype))
        assert_equal(*_both("uniform", shape, dtype, -1.0, 1.0))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_between_other_bounds_is_that_of_jax_without_fused_multiply_add(dtype: str) -> None:
    low, high = np.array([[-3.3], [0.001]], dtype), np.array([7.7, 1.1, 5.0], dtype)
    # a compiled program may contract u * (high - low) + low to one rounding
    with layout(True, x64=True), jax.disable_jit():
        assert_equal(*_both("uniform", (2, 3), dtype, -3.3, 7.7))
        assert_equal(*_both("uniform", (2, 3), dtype, low, high))
        assert_equal(*_both("uniform", (4,), dtype, 5.0, 1.0))


INTEGERS = ["int8", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.sampled(every=4, per="dtype")
@LAYOUTS
@pytest.mark.parametrize("dtype", INTEGERS)
def test_randint_is_that_of_jax(partitionable: bool, dtype: str) -> None:
    info = np.iinfo(dtype)
    bounds = [(-5, 7), (9, 2), (int(info.min), int(info.max))]
    with layout(partitionable, x64=True):
        for low, high in bounds:
            if dtype == "uint64" and high > 2**63 - 1:
                continue  # jax has no Python integers of that size
            assert_equal(*_both("randint", (50,), low, high, dtype))
        if info.bits < 64:
            assert_equal(*_both("randint", (50,), int(info.min), int(info.max) + 1, dtype))
        if info.bits == 32:  # below, jax wraps such bounds around before it clips them
            assert_equal(*_both("randint", (50,), -(2**40), 2**40, dtype))


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_randint_between_arrays_is_that_of_jax(dtype: str) -> None:
    with layout(True, x64=True):
        low, high = np.array([[0], [5], [100]]), np.array([10, 7, 120, 300])
        assert_equal(*_both("randint", (3, 4), low, high, dtype))
        assert_equal(*_both("randint", (3, 4), low.astype("int8"), np.uint8(200), dtype))


def test_an_empty_choice_keeps_the_other_dimensions() -> None:
    a = np.zeros((4, 5), np.float32)
    assert xrandom.choice(xrandom.key(0), a, (0,)).shape == (0, 5)
    assert xrandom.choice(xrandom.key(0), a, (2, 0), axis=1).shape == (4, 2, 0)


@pytest.mark.sampled(every=4, per="dtype")
@LAYOUTS
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (1000,)], ids=str)
def test_normal_is_that_of_jax(partitionable: bool, dtype: str, shape: tuple[int, ...]) -> None:
    rtol = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-11}[dtype]
    with layout(partitionable, x64=True):
        assert_close(*_both("normal", shape, dtype), rtol=rtol)


def test_complex_normal_is_that_of_jax() -> None:
    for dtype in ("complex64", "complex128"):
        with layout(True, x64=True):
            ours, theirs = _both("normal", (50,), dtype)
            assert_close(ours.real, theirs.real)
            assert_close(ours.imag, theirs.imag)


_A = np.array([0.3, 1.0, 2.5, 8.0], np.float32)
CONTINUOUS: list[Call] = [
    ("truncated_normal", (-1.0, 2.0, (200,)), {}),
    ("truncated_normal", (np.minimum(_A, 2.75), 10.0), {}),
    ("lognormal", (), {"shape": (50,)}),
    ("lognormal", (_A,), {}),
    ("exponential", ((200,),), {}),
    ("laplace", ((200,),), {}),
    ("logistic", ((200,),), {}),
    ("cauchy", ((200,),), {}),
    ("gumbel", ((200,),), {}),
    ("gumbel", ((200,),), {"mode": "high"}),
    ("pareto", (_A,), {}),
    ("pareto", (2.0, (50,)), {}),
    ("rayleigh", (_A, (3, 4)), {}),
    ("weibull_min", (2.0, 3.0, (50,)), {}),
    ("weibull_min", (_A, 1.5, (4,)), {}),
    ("triangular", (-1.0, 0.5, 3.0, (50,)), {}),
    ("wald", (_A, (10, 4)), {}),
    ("maxwell", ((50,),), {}),
    ("double_sided_maxwell", (1.0, 2.0, (50,)), {}),
    ("double_sided_maxwell", (_A, 2.0), {}),
]


@pytest.mark.sampled(every=6, per="name")
@LAYOUTS
@pytest.mark.parametrize(("name", "args", "kwargs"), CONTINUOUS)
def test_continuous_samplers_are_those_of_jax(
    partitionable: bool, name: str, args: Any, kwargs: Any
) -> None:
    with layout(partitionable):
        # cancellation near zero multiplies the rounding of a fused multiply-add
        assert_close(*_both(name, *args, **kwargs), rtol=5e-6, atol=1e-6)


def test_the_default_dtype_of_normal_follows_the_configuration() -> None:
    for x64, dtype in ((False, "float32"), (True, "float64")):
        with layout(True, x64):
            assert xrandom.normal(xrandom.key(0), (3,)).dtype.name == dtype


def test_categories_are_of_the_default_integer_dtype() -> None:
    logits = np.zeros((3, 4), np.float32)
    with config.enable_x64(True):
        one = xrandom.categorical(xrandom.key(0), logits)
        other = xrandom.categorical(xrandom.key(0), logits, shape=(2, 3), replace=False)
    assert [one.dtype.name, other.dtype.name] == ["int64", "int32"]


_ROWS = np.arange(24, dtype=np.float32).reshape(4, 6)
_OF_FIVE = np.array([0.1, 0.0, 0.4, 0.3, 0.2], np.float32)
_TABLE_OF_FIVE = np.arange(20, dtype=np.float32).reshape(4, 5)
_CHANCES = np.array([[0.1], [0.5], [0.99]], np.float32)
_LOGITS = np.log(np.arange(1, 25, dtype=np.float32)).reshape(2, 3, 4)
EXACT: list[Call] = [
    *[("permutation", (n,), {}) for n in (0, 10, 3000)],
    *[("permutation", (_ROWS,), {"axis": axis, "independent": independent})
      for axis in (0, -1) for independent in (False, True)],
    ("permutation", (_ROWS[0],), {}),
    *[call for replace in (True, False) for call in (
        ("choice", (5, (3,), replace), {}),
        ("choice", (5, (3,), replace, _OF_FIVE), {}),
        ("choice", (_TABLE_OF_FIVE, (2, 1), replace), {"axis": 1}),
        ("choice", (_TABLE_OF_FIVE, (2,), replace, _OF_FIVE), {"axis": 1}))],
    ("choice", (5, (500,), True, _OF_FIVE), {}),
    ("choice", (7,), {}),
    ("choice", (7, (0,)), {}),
    ("bernoulli", (0.3, (100,)), {}),
    ("bernoulli", (_CHANCES, (3, 20)), {}),
    ("bernoulli", (_CHANCES,), {"mode": "high"}),
    ("bernoulli", (), {}),
    ("rademacher", ((100,),), {}),
    ("rademacher", ((10,), "float32"), {}),
    ("geometric", (0.2, (100,)), {}),
    ("geometric", (_CHANCES,), {}),
    *[("categorical", (_LOGITS, axis, *shape), options)
      for axis, batch in ((-1, (2, 3)), (0, (3, 4)))
      for shape, options in (((), {}), (((5, *batch),), {}), (((2, *batch),), {"replace": False}))],
    ("categorical", (_LOGITS[0, 0],), {"shape": (7,)}),
]  # fmt: skip
_OF_DEFAULT_DTYPES: list[Call] = [
    ("uniform", ((3,),), {}), ("bits", ((3,),), {}), ("randint", ((3,), 0, 100), {}),
    ("permutation", (10,), {}),
]  # fmt: skip
ROWS_OF_EXACT: dict[str, tuple[Call, bool, bool]] = {
    f"{call[0]} {k}{', original' if not partitionable else ''}{', x64' if x64 else ''}":
    (call, partitionable, x64)
    for calls, first, ways in (
        (EXACT, 0, [(True, False), (False, False)]),
        (_OF_DEFAULT_DTYPES, len(EXACT), [(True, False), (True, True)]),
    )
    for k, call in enumerate(calls, first)
    for partitionable, x64 in ways
}  # fmt: skip


def _drawn(module: Any, row: str) -> np.ndarray:
    (name, args, kwargs), partitionable, x64 = ROWS_OF_EXACT[row]
    with layout(partitionable, x64):
        return np.asarray(getattr(module, name)(module.PRNGKey(11), *args, **kwargs))


def _digest(x: np.ndarray) -> str:
    return f"{x.dtype.name}{list(x.shape)} {hashlib.sha256(x.tobytes()).hexdigest()[:16]}"


@pytest.mark.fuzz
@pytest.mark.parametrize("row", ROWS_OF_EXACT)
def test_samplers_of_exact_operations_draw_the_bits_of_jax(row: str) -> None:
    ours = _drawn(xrandom, row)
    if "FUZZ_PROGRAMS" in os.environ:  # which shows what differs
        assert_equal(ours, _drawn(jax.random, row))
    assert _digest(ours) == json.loads(DIGESTS.read_text())[row]


_COV = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
BY_REJECTION: list[Call] = [
    ("gamma", (_A, (200, 4)), {}),
    ("loggamma", (_A * 0.1, (50, 4)), {}),
    ("beta", (_A, 2.0, (50, 4)), {}),
    ("dirichlet", (_A, (30,)), {}),
    ("chisquare", (_A,), {}),
    ("f", (_A, 3.0), {}),
    ("t", (_A,), {}),
    ("generalized_normal", (1.5, (30,)), {}),
    ("ball", (3, 2.0, (20,)), {}),
    ("poisson", (_A * 10, (300, 4)), {}),
    ("poisson", (0.0,), {}),
    ("binomial", (np.array([5.0, 50.0, np.inf, np.nan, -1.0], np.float32), 0.7, (60, 5)), {}),
    ("binomial", (100.0, _A / 9, (50, 4)), {}),
    ("multinomial", (30.0, np.array([0.2, 0.3, 0.5], np.float32)), {}),
    ("multivariate_normal", (np.ones(2, np.float32), _COV, (20,)), {}),
    ("multivariate_normal", (np.zeros((3, 1, 2), np.float32), _COV), {"method": "eigh"}),
    ("multivariate_normal", (np.zeros(2, np.float32), _COV), {"method": "svd"}),
    ("orthogonal", (3, (2,)), {}),
    ("orthogonal", (3,), {"m": 5}),
    ("orthogonal", (5,), {"m": 3}),
]


ROWS = [f"{name} {k}" for k, (name, _, _) in enumerate(BY_REJECTION)]


def _drawn_by_rejection(module: Any, row: str) -> np.ndarray:
    name, args, kwargs = BY_REJECTION[ROWS.index(row)]
    with layout(True):
        drawn = getattr(module, name)(module.PRNGKey(11), *args, **kwargs)
    return np.asarray(drawn, np.float64)


@pytest.mark.fuzz
@pytest.mark.parametrize("row", ROWS)
def test_samplers_with_loops_are_those_of_jax(row: str) -> None:
    ours = _drawn_by_rejection(xrandom, row)
    theirs = np.asarray(json.loads(TABLE.read_text())[row])
    _assert_most_are_close(ours, theirs)
    if "FUZZ_PROGRAMS" in os.environ:
        _assert_most_are_close(ours, _drawn_by_rejection(jax.random, row))


def _assert_most_are_close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    close = np.isclose(ours, theirs, rtol=2e-5, atol=2e-6, equal_nan=True)
    # a last-bit difference can turn a rejection into an acceptance, and draws another sample
    assert (~close).sum() <= 0.01 * close.size


def test_samplers_refuse_what_does_not_fit() -> None:
    key = xrandom.key(0)
    with pytest.raises(ValueError, match="uniform: the dtype must be a real floating one"):
        xrandom.uniform(key, (), "int32")
    with pytest.raises(ValueError, match="uniform: minval must broadcast to the shape"):
        xrandom.uniform(key, (2,), minval=np.zeros(3, np.float32))
    with pytest.raises(
        TypeError, match=r"normal: Shapes must be 1D .*: shape is a tuple of length 1"
    ):
        xrandom.normal(key, (1.5,))
    with pytest.raises(ValueError, match="sizes must not be negative"):
        xrandom.normal(key, (-1,))
    with pytest.raises(TypeError, match="randint: the dtype must be an integer one"):
        xrandom.randint(key, (), 0, 1, "float32")
    with pytest.raises(TypeError, match="bernoulli: p must be of a floating dtype"):
        xrandom.bernoulli(key, 1)
    with pytest.raises(ValueError, match="bernoulli: the parameters must broadcast"):
        xrandom.bernoulli(key, np.ones(3, np.float32), (2,))
    with pytest.raises(ValueError, match="gumbel: unknown mode"):
        xrandom.gumbel(key, mode="middle")
    with pytest.raises(ValueError, match="fewer categories than samples"):
        xrandom.categorical(key, np.zeros(3, np.float32), shape=(4,), replace=False)
    with pytest.raises(ValueError, match="drawn without replacement than there are"):
        xrandom.choice(key, 3, (4,), replace=False)
    with pytest.raises(TypeError, match="choice: shape must be a sequence of integers"):
        xrandom.choice(key, 5, shape=3)
    with pytest.raises(ValueError, match="one probability for each element"):
        xrandom.choice(key, 3, (4,), p=np.ones(2, np.float32))
    with pytest.raises(TypeError, match="an integer or an array of at least one dimension"):
        xrandom.permutation(key, 2.5)


def _to_seven_digits(values: Any) -> Any:
    """Return nested lists of numbers of float32, the tolerance being coarser."""
    return [_to_seven_digits(x) for x in values] if np.ndim(values) else float(f"{values:.7g}")


if __name__ == "__main__":
    rows = {row: _to_seven_digits(_drawn_by_rejection(jax.random, row)) for row in ROWS}
    lines = [f" {json.dumps(row)}: {json.dumps(found)}" for row, found in rows.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    digests = {row: _digest(_drawn(jax.random, row)) for row in ROWS_OF_EXACT}
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")
