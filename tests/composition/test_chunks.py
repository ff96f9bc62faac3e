"""Jacobians a few rows or columns at a time, and their memory."""

import re

import numpy as np
import pytest

import xnp
from xad import grad, hessian, jacfwd, jacobian, jacrev
from xbatch import vmap
from xjit import jit
from xnp import linalg
from xprim import make_jaxpr

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)


def product(x):
    return xnp.sin(x) @ xnp.cos(x).T


@pytest.mark.parametrize("derivative", [jacfwd, jacrev, jacobian])
@pytest.mark.parametrize("chunk_size", [1, 4, 21, 1000])
@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_jacobians_in_chunks_are_the_whole_ones(derivative, chunk_size, run):
    found = run(derivative(product, chunk_size=chunk_size))(X)
    np.testing.assert_allclose(found, derivative(product)(X), rtol=1e-5, atol=1e-6)


def test_hessians_and_gradients_in_chunks_are_the_whole_ones():
    def cubes(x):
        return (xnp.sin(x) ** 3).sum()

    np.testing.assert_allclose(hessian(cubes, chunk_size=5)(X), hessian(cubes)(X), atol=1e-6)
    summed = grad(lambda x: vmap(cubes, chunk_size=2)(x).sum())
    np.testing.assert_allclose(summed(X), grad(cubes)(X), atol=1e-6)


def test_the_memory_of_a_jacobian_is_that_of_a_chunk():
    def sorted_products(x):
        return xnp.sort(xnp.sin(x[:, None] * x[None, :20])).sum(1)[:5]

    def temporary_bytes(chunk_size):
        compiled = jit(jacfwd(sorted_products, chunk_size=chunk_size)).lower(xnp.ones(400))
        return compiled.compile().memory_analysis().temp_size_in_bytes

    # the tangents of 10 of 400 columns; what one evaluation needs comes to both
    assert temporary_bytes(10) < temporary_bytes(None) / 10


def test_a_chunk_size_that_means_nothing_is_refused():
    for size in (0, -1, "a", 1.5):
        with pytest.raises(ValueError, match="jacrev: chunk_size must be an int of at least 1"):
            jacrev(product, chunk_size=size)
        with pytest.raises(ValueError, match="hessian: chunk_size must be an int of at least 1"):
            hessian(product, chunk_size=size)


def _operations_of_the_loop(fun, *args):
    """Return the names of the operations in the body of the one loop of a compiled function."""
    text = jit(fun).lower(*args).as_text()
    assert text.count('"stablehlo.while"') == 1
    body = text.split('"stablehlo.while"')[1].split("}, {", 1)[1].split("stablehlo.return", 1)[0]
    return re.findall(r"stablehlo\.(\w+)", body)


@pytest.mark.parametrize("chunk_size", [3, 4])
def test_a_loop_over_chunks_reads_them_by_its_counter(chunk_size):
    # a start that is computed from numbers in memory is computed again for each element
    found = _operations_of_the_loop(vmap(lambda x: xnp.sin(x) * x, chunk_size=chunk_size),
                                    np.ones((12, 5), np.float32))  # fmt: skip
    assert found.count("dynamic_slice") == 1
    assert not {"compare", "select", "clamp"} & set(found)


@pytest.mark.parametrize("derivative", [jacfwd, jacrev])
def test_the_basis_of_a_chunk_is_counted_and_not_read(derivative):
    x = np.ones(12, np.float32)
    found = derivative(lambda x: xnp.sin(x) * x[::-1], chunk_size=4)
    names = _operations_of_the_loop(found, x)
    assert "dynamic_slice" not in names
    assert names.count("compare") == 1
    assert len(jit(found).lower(x).in_avals[0]) == 1  # and no numbers are passed


def test_a_basis_that_many_places_read_is_in_memory_before_they_do():
    # a kernel that pads nine copies of the basis compares its elements anew for each of them
    taps = np.float32([1, 2, 3, 4, 5, 6, 7, 8, 9])
    many = jacfwd(lambda x: xnp.convolve(x, taps), chunk_size=5)
    few = jacfwd(lambda x: xnp.convolve(x, taps[:3]), chunk_size=5)
    x = np.float32(np.arange(23))
    carried = []
    for derivative in (many, few):
        (loop,) = [e for e in make_jaxpr(derivative)(x).jaxpr.eqns if e.primitive.name == "scan"]
        carried.append([v.aval.shape for v in loop.outputs if v.aval.shape == (5, 23)])
    assert carried == [[(5, 23)], []]
    for run in (lambda f: f, jit):
        np.testing.assert_allclose(run(many)(x), jacfwd(lambda x: xnp.convolve(x, taps))(x))


def test_steps_of_a_jacobian_in_chunks_have_as_many_columns_each():
    # 23 in chunks of at most 10 are three of 8, of which one column is beyond the last
    derivative = jacfwd(lambda x: xnp.cumsum(x) ** 2, chunk_size=10)
    program = make_jaxpr(derivative)(np.arange(23, dtype=np.float32))
    names = [e.primitive.name for e in program.jaxpr.eqns]
    assert names.count("scan") == 1 and "concatenate" not in names
    assert program.jaxpr.eqns[names.index("scan")].outputs[-1].aval.shape[:2] == (3, 8)


def test_chunks_of_several_arguments_and_results_and_a_rest_are_the_whole_jacobian():
    def two(x, y):
        return {"a": xnp.sin(x) @ y, "b": (x**2).sum() * y}

    x, y = X[:4], np.float32([1.0, 2.0, 3.0])
    for derivative in (jacfwd, jacrev):
        for size in (1, 2, 4, 5, 7, 14):
            found = jit(derivative(two, (0, 1), chunk_size=size))(x, y)
            expected = derivative(two, (0, 1))(x, y)
            for key, row in expected.items():
                for a, b in zip(found[key], row, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_the_hessian_of_det_is_one_batch_of_a_linear_operation():
    # the smooth form of the cofactors, of 90 operations, is for third derivatives alone
    program = make_jaxpr(jacfwd(grad(linalg.det)))(np.ones((5, 5), np.float32))
    names = [eqn.primitive.name for eqn in program.jaxpr.eqns]
    assert names.count("cofactors_tangent") == 1
    assert not {"svd", "solve", "lu"} & set(names)
    assert len(names) < 12
