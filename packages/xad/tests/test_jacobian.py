import numpy as np
import pytest

import xtree
from packages.xad.tests.programs import add, cos, dot, mul, real, sin, to_float, to_integer, total
from xad import (
    _jacobian,
    float0,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    jvp_and_value,
    value_and_jacobian,
)
from xprim import as_array, optional_transforms

X = np.array([0.3, -1.2, 2.0], np.float32)


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(autouse=True)
def _one_by_one(monkeypatch):
    """Without batching; with it, these run in the top `tests/composition/`."""
    monkeypatch.setattr(optional_transforms, "find", lambda name: None)


@pytest.mark.parametrize("method", [jacfwd, jacrev, jacobian])
def test_jacobians_have_the_shape_of_result_and_argument(method):
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    close(method(dot)(X, w), w.T)
    jac = method(dot, 1)(X, w)
    assert jac.shape == (2, 3, 2)
    close(jac, np.einsum("i,jk->jik", X, np.eye(2)))
    close(method(lambda x: total(sin(x)))(X), np.cos(X))
    close(method(sin)(1.0), np.cos(1.0))
    assert method(lambda x: x)(np.zeros((0, 2), np.float32)).shape == (0, 2, 0, 2)
    assert method(total)(np.zeros((0,), np.float32)).shape == (0,)


@pytest.mark.parametrize("method", [jacfwd, jacrev, jacobian])
def test_jacobians_of_trees_nest_the_trees(method):
    def f(p, x):
        return {"a": mul(p["w"], x), "b": total(p["w"])}

    jac = method(f, (0, 1))({"w": X}, X + 1)
    close(jac["a"][0]["w"], np.diag(X + 1))
    close(jac["a"][1], np.diag(X))
    close(jac["b"][0]["w"], np.ones(3))
    close(jac["b"][1], np.zeros(3))


def test_jacobians_by_leaves_of_several_shapes():
    def f(p):
        return mul(p["a"], total(mul(p["b"], p["b"]))), total(p["none"])

    p = {"a": X, "b": np.float32([[2, 3]]), "none": np.zeros((0, 2), np.float32)}
    first, second = jacfwd(f)(p)
    close(first["a"], 13 * np.eye(3))
    close(first["b"], np.einsum("i,jk->ijk", X, 2 * p["b"]))
    assert first["none"].shape == (3, 0, 2) and second["none"].shape == (0, 2)
    close(second["a"], np.zeros(3))
    close(second["b"], np.zeros((1, 2)))


@pytest.mark.parametrize("method", [jacfwd, jacrev])
def test_jacobians_pass_auxiliary_outputs_through(method):
    jac, aux = method(lambda x: (sin(x), {"n": 3, "x": x}), has_aux=True)(X)
    close(jac, np.diag(np.cos(X)))
    assert aux["n"] == 3
    close(aux["x"], X)


def test_hessian_is_the_matrix_of_second_derivatives():
    close(hessian(lambda x: total(mul(mul(x, x), sin(x))))(X),
          np.diag((2 - X**2) * np.sin(X) + 4 * X * np.cos(X)))  # fmt: skip
    hess, aux = hessian(lambda x: (total(sin(x)), "aux"), has_aux=True)(X)
    close(hess, np.diag(-np.sin(X)))
    assert aux == "aux"


def test_jacobians_compose_with_each_other_and_with_grad():
    f = lambda x: mul(sin(x), x)  # noqa: E731
    second = np.zeros((3, 3, 3), np.float32)
    second[range(3), range(3), range(3)] = 2 * np.cos(X) - X * np.sin(X)
    for outer in (jacfwd, jacrev):
        for inner in (jacfwd, jacrev):
            close(outer(inner(f))(X), second)
    close(grad(lambda x: total(jacfwd(f)(x)))(X), 2 * np.cos(X) - X * np.sin(X))
    close(jvp(jacrev(f), (X,), (X,))[1], np.diag((2 * np.cos(X) - X * np.sin(X)) * X))


def test_holomorphic_jacobians_are_complex_derivatives():
    z = np.array([0.3 - 1.7j, 1j], np.complex64)
    for method in (jacfwd, jacrev):
        close(
            method(lambda z: mul(z, sin(z)), holomorphic=True)(z),
            np.diag(np.sin(z) + z * np.cos(z)),
        )
    # real functions of complex arguments, in reverse mode: as the oracle
    jax = pytest.importorskip("jax")
    close(jacrev(lambda z: real(mul(z, z)))(z), jax.jacrev(lambda z: jax.numpy.real(z * z))(z))


def column(x):
    """Return the products of 2 elements with 3 numbers: more results than elements."""
    return dot(x[:, None], np.float32([[1, 2, 3]]))


@pytest.mark.parametrize(
    ("fun", "x", "mode"), [(column, X[:2], "forward"), (total, X, "reverse"), (sin, X, "reverse")]
)
def test_the_mode_of_a_jacobian_is_that_of_fewer_directions(fun, x, mode, monkeypatch):
    expected = jacrev(fun)(x)
    used = []
    for name, known in (("_by_columns", "forward"), ("_by_rows", "reverse")):
        method = getattr(_jacobian, name)
        monkeypatch.setattr(
            _jacobian, name, lambda *args, m=method, k=known: used.append(k) or m(*args)
        )
    close(jacobian(fun)(x), expected)
    assert used == [mode]


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_the_modes_of_a_jacobian_have_equal_results(mode):
    for fun in (column, total, sin, lambda x: {"a": x, "b": total(x)}):
        value, found = value_and_jacobian(fun, mode=mode)(X[:2])
        expected = jacrev(fun)(X[:2])
        assert xtree.structure(found) == xtree.structure(expected)
        xtree.map(close, found, expected)
        xtree.map(close, value, fun(as_array(X[:2])))
    (value, aux), found = value_and_jacobian(lambda x: (sin(x), "aux"), has_aux=True, mode=mode)(X)
    close(found, np.diag(np.cos(X)))
    close(value, np.sin(X))
    assert aux == "aux"


def test_jacobians_of_complex_arguments_are_those_of_reverse_mode():
    z = np.array([0.3 - 1.7j], np.complex64)
    twice = lambda z: dot(z[:, None], np.complex64([[1, 2]]))  # noqa: E731
    close(jacobian(lambda z: real(twice(z)))(z), jacrev(lambda z: real(twice(z)))(z))
    close(jacobian(twice, holomorphic=True)(z), np.array([[[1], [2]]]))


def test_jacobians_in_a_mode_that_does_not_serve_are_refused():
    with pytest.raises(ValueError, match="jacobian: unknown mode") as e:
        jacobian(sin, mode="backward")
    assert "'auto', 'forward' or 'reverse'" in str(e.value)
    with pytest.raises(ValueError, match="jacobian: unknown mode"):
        jacobian(sin, mode=["forward"])
    with pytest.raises(ValueError, match="integer arguments have no directions for forward mode"):
        jacobian(sin, mode="forward", allow_int=True)
    with pytest.raises(TypeError, match="jacobian: the results must be floating, got int32"):
        jacobian(to_integer)(1.0)
    with pytest.raises(TypeError, match="jacobian: the results must be real unless holomorphic"):
        jacobian(cos)(np.complex64(1))
    found = jacobian(lambda n: column(to_float(n)), allow_int=True)(np.arange(2))
    assert found.dtype == float0 and found.shape == (2, 3, 2)


def test_products_with_the_hessian_are_those_of_the_matrix():
    def f(p, y):
        return total(mul(mul(p["a"], p["a"]), mul(sin(y), p["b"])))

    p, y = {"a": X, "b": np.float32(2)}, X + 1
    v, w = {"a": X * X, "b": np.float32(-1)}, np.cos(X)
    found = hvp(f, (p, y), (v, w))
    matrix = hessian(f, (0, 1))(p, y)
    for row, product in ((matrix[0]["a"], found[0]["a"]), (matrix[0]["b"], found[0]["b"]),
                         (matrix[1], found[1])):  # fmt: skip
        expected = (np.asarray(row[0]["a"]) @ v["a"] + np.asarray(row[0]["b"]) * v["b"]
                    + np.asarray(row[1]) @ w)  # fmt: skip
        close(product, expected)
    product, aux = hvp(lambda x: (total(sin(x)), "aux"), (X,), (w,), has_aux=True)
    close(product[0], -np.sin(X) * w)
    assert aux == "aux"
    close(grad(lambda x: total(hvp(lambda z: total(sin(z)), (x,), (w,))[0]))(X), -np.cos(X) * w)


def test_products_with_the_hessian_say_what_is_wrong():
    with pytest.raises(TypeError, match="hvp: the function must return a scalar"):
        hvp(sin, (X,), (X,))
    with pytest.raises(TypeError, match="hvp: primals must be a tuple or list of arguments"):
        hvp(total, X, X)
    with pytest.raises(TypeError, match="hvp: "):
        hvp(total, (X,), (X[:2],))


def test_integer_arguments_have_a_derivative_of_dtype_float0():
    jac = jacrev(lambda n: mul(to_float(n), 2.0), allow_int=True)(np.arange(3))
    assert jac.dtype == float0 and jac.shape == (3, 3)


def test_wrong_dtypes_are_refused_with_a_hint():
    with pytest.raises(
        TypeError, match="jacfwd: cannot differentiate with respect to values of dtype int32"
    ):
        jacfwd(to_float)(1)
    with pytest.raises(TypeError, match="dtype complex64") as e:
        jacfwd(sin)(np.complex64(1))
    assert "holomorphic=True" in str(e.value)
    with pytest.raises(
        TypeError, match="jacfwd: holomorphic=True needs complex arguments, got float32"
    ):
        jacfwd(sin, holomorphic=True)(1.0)
    with pytest.raises(
        TypeError, match="jacrev: holomorphic=True needs complex results, got float32"
    ):
        jacrev(real, holomorphic=True)(np.complex64(1))
    whole = jacfwd(lambda x: (to_integer(x), x))(np.float32([1, 2]))
    assert [y.dtype.name for y in whole] == ["int32", "float32"]
    np.testing.assert_array_equal(whole, [np.zeros((2, 2)), np.eye(2)])
    with pytest.raises(TypeError, match="jacrev: the results must be floating, got int32"):
        jacrev(to_integer)(1.0)
    with pytest.raises(TypeError, match="jacrev: the results must be real unless holomorphic=True"):
        jacrev(cos)(np.complex64(1))
    with pytest.raises(TypeError, match=r"hessian|jacrev|jacfwd: expected a function"):
        hessian(add(1.0, 2.0))


def test_a_derivative_comes_with_the_value_and_its_auxiliary_output():
    calls = []

    def fun(x, y):
        calls.append(1)
        return {"z": mul(sin(x), y)}

    tangent, value = jvp_and_value(fun, (X, X), (np.ones_like(X), 2 * X))
    np.testing.assert_allclose(value["z"], np.sin(X) * X, rtol=1e-6)
    np.testing.assert_allclose(tangent["z"], np.cos(X) * X + np.sin(X) * 2 * X, rtol=1e-6)
    assert len(calls) == 1
    tangent, (value, aux) = jvp_and_value(lambda x: (sin(x), "aux"), (X,), (X,), has_aux=True)
    np.testing.assert_allclose(tangent, np.cos(X) * X, rtol=1e-6)
    np.testing.assert_allclose(value, np.sin(X), rtol=1e-6)
    assert aux == "aux"
    with pytest.raises(TypeError, match="jvp_and_value: primals must be a tuple or list"):
        jvp_and_value(sin, X, X)
