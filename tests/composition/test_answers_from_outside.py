"""What a comparison with other libraries' public behaviour found, a test for each."""

import copy
import operator

import numpy as np
import pytest
import scipy.linalg as theirs
import scipy.ndimage as theirs_of_images
import scipy.special as special_of_scipy

import xstack as xs
import xstack.numpy as xnp
from xstack import lax, scipy
from xstack.scipy import special, stats

X = np.arange(12, dtype=np.float32).reshape(3, 4)

UPDATES = {
    "set": lambda x, v: v, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "divide": np.divide, "power": np.power, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("values", [
    [3, 2.5, 1, 4], (3, 2, 1, 4), [True, False, True, True], np.uint8([3, 2, 1, 4]),
    np.array([True, False, True, True]), True,
], ids=repr)  # fmt: skip
def test_values_of_an_update_are_of_the_dtype_of_the_array_before_they_are_used(name, values):
    expected = X.copy()
    with np.errstate(divide="ignore"):
        expected[1] = UPDATES[name](X[1], np.asarray(values, np.float32))
    for run in (lambda f: f, xs.jit):
        got = run(lambda x: getattr(x.at[1], name)(values))(xnp.array(X))
        np.testing.assert_allclose(got, expected, rtol=2e-7)
        traced = run(lambda x, i: getattr(x.at[i], name)(values))(xnp.array(X), 1)
        np.testing.assert_allclose(traced, expected, rtol=2e-7)


def test_lists_that_an_array_cannot_hold_are_refused():
    x = xnp.zeros(3, "int8")
    with pytest.raises(TypeError, match="float32 values do not fit in an array of dtype int8"):
        x.at[0].set([1.5])
    with pytest.raises(OverflowError, match="300 too large to convert to int8"):
        x.at[:2].add([1, 300])
    with pytest.raises(TypeError, match="neg: does not accept dtype bool"):
        (x > 0).at[0].subtract(True)


def test_put_takes_the_last_element_for_positions_beyond_it():
    x, places = np.arange(4.0, dtype=np.float32), np.array([1, 9])
    expected = np.float32([0, 7, 2, 7])
    put = xs.jit(lambda x, i: xnp.put(x, i, 7.0, inplace=False))
    np.testing.assert_array_equal(put(x, places), expected)
    with xs.config.index_checks("allow"):
        np.testing.assert_array_equal(xnp.put(x, places, 7.0, inplace=False), expected)
    with pytest.raises(IndexError, match="9"):
        xnp.put(x, places, 7.0, inplace=False)


SLICES = {
    "dynamic_slice": lambda x, i, **k: lax.dynamic_slice(x, (i, 0), (2, 2), **k),
    "dynamic_slice_in_dim": lambda x, i, **k: lax.dynamic_slice_in_dim(x, i, 2, **k),
    "dynamic_index_in_dim": lambda x, i, **k: lax.dynamic_index_in_dim(x, i, **k),
    "dynamic_update_slice": lambda x, i, **k: lax.dynamic_update_slice(x, x[:1], (i, 0), **k),
    "dynamic_update_slice_in_dim": lambda x, i, **k: (
        lax.dynamic_update_slice_in_dim(x, x[:1], i, 0, **k)),
    "dynamic_update_index_in_dim": lambda x, i, **k: (
        lax.dynamic_update_index_in_dim(x, x[0], i, 0, **k)),
}  # fmt: skip


@pytest.mark.parametrize("name", SLICES)
def test_a_negative_start_that_is_not_to_be_counted_is_refused_where_it_is_known(name):
    run, x = SLICES[name], xnp.array(X)
    for f in (run, xs.jit(run, static_argnames=["i", "allow_negative_indices"])):
        with pytest.raises(ValueError, match="the start -1 of dimension 0 is negative"):
            f(x, i=-1, allow_negative_indices=False)
    traced = xs.jit(lambda x, i: run(x, i, allow_negative_indices=False))(x, -1)
    np.testing.assert_array_equal(traced, run(x, 0))


def test_each_dimension_says_whether_its_negative_start_counts():
    take = xs.jit(lambda x, i: lax.dynamic_slice(
        x, (i, -1), (1, 1), allow_negative_indices=(False, True)))  # fmt: skip
    assert take(X, -1).tolist() == [[3.0]]
    with pytest.raises(ValueError, match="the start -1 of dimension 1 is negative"):
        lax.dynamic_slice(xnp.array(X), (-1, -1), (1, 1), allow_negative_indices=(True, False))


def _write_and_read(a, b):
    a[0] = 9.0
    return b[0]


@pytest.mark.parametrize("disabled", [False, True])
def test_one_reference_under_two_names_is_refused_everywhere(disabled):
    @xs.custom_vjp
    def vjp_rule(a, b, x):
        return x

    @xs.custom_jvp
    def jvp_rule(a, b, x):
        return x

    vjp_rule.defvjp(lambda a, b, x: (x, None), lambda _, g: (None, None, g))
    jvp_rule.defjvp(lambda p, t: (p[2], t[2]))
    calls = {
        "cond": lambda r: lax.cond(True, _write_and_read, _write_and_read, r, r),
        "switch": lambda r: lax.switch(1, [_write_and_read, _write_and_read], r, r),
        "platform_dependent": lambda r: lax.platform_dependent(
            r, r, cpu=_write_and_read, default=_write_and_read),
        "custom_vjp": lambda r: vjp_rule(r, r, 1.0),
        "custom_jvp": lambda r: jvp_rule(r, r, 1.0),
        "vmap": lambda r: xs.vmap(_write_and_read)(r, r),
        "checkpoint": lambda r: xs.checkpoint(_write_and_read)(r, r),
    }  # fmt: skip
    for name, call in calls.items():
        with xs.disable_jit(disabled), pytest.raises(ValueError, match=f"{name}.*two names"):
            call(xs.new_ref(xnp.array(X)))


def test_a_shallow_copy_of_a_reference_is_the_reference():
    ref = xs.new_ref(xnp.array([1.0, 2.0]))
    state = copy.copy({"a": ref})
    other = copy.copy(ref)
    other[0] = 5.0
    assert other is ref is state["a"]
    assert ref[...].tolist() == [5.0, 2.0]
    deep = copy.deepcopy(ref)
    deep[0] = 7.0
    assert ref[...].tolist() == [5.0, 2.0]


def _with_jvp(fun):
    made = xs.custom_jvp(fun)
    made.defjvp(lambda p, t: (p[0] * p[0], t[0]))
    return made


def _with_vjp(fun):
    made = xs.custom_vjp(fun)
    made.defvjp(lambda x: (x * x, None), lambda _, g: (g,))
    return made


@pytest.mark.parametrize("transform", [
    xs.jit, xs.vmap, xs.checkpoint, _with_jvp, _with_vjp, xs.custom_batching.custom_vmap,
    lambda f: xs.jit(xs.vmap(f)), lambda f: xs.jit(_with_jvp(f)),
])  # fmt: skip
def test_what_is_made_of_a_static_method_is_one(transform):
    class Model:
        square = transform(staticmethod(lambda x: x * x))
        method = transform(lambda self, x: x * x) if transform is xs.jit else None

    for call in (Model.square, Model().square, transform(staticmethod(lambda x: x * x))):
        assert call(xnp.array([3.0])).tolist() == [9.0]
    if Model.method is not None:
        with pytest.raises(TypeError, match="Model"):
            Model().method(3.0)  # jit of a method gets the object


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"])
def test_products_with_logarithms_are_rounded_once(name, dtype):
    f, numbers = getattr(special, name), np.linspace(0.01, 7, 500)
    x = xnp.array(np.linspace(-3, 5, 500)).astype(dtype)
    y = xnp.array(numbers[::-1].copy()).astype(dtype)
    expected = f(x.astype("float32"), y.astype("float32")).astype(dtype)
    for got in (f(x, y), xs.jit(f)(x, y)):
        np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(expected, np.float32))


def test_the_entropy_of_poisson_is_not_weakly_typed():
    for mu in (3.0, xnp.array(3.0)):
        assert not stats.poisson.entropy(mu).weak_type
        assert not xs.jit(stats.poisson.entropy)(mu).weak_type


@pytest.mark.parametrize("number", [np.array(0), xnp.array(0), xnp.array(-0.0)])
def test_an_array_is_no_choice_of_an_option_even_if_it_equals_one(number):
    with pytest.raises(ValueError, match="round: unknown rounding_method"):
        lax.round(xnp.array([0.5]), number)
    with pytest.raises(ValueError, match="round: unknown rounding_method"):
        xs.jit(lambda x, n: lax.round(x, n))(xnp.array([0.5]), number)
    assert lax.round(xnp.array([0.5]), np.int64(0)).tolist() == [1.0]


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
def test_trim_zeros_differentiates_outside_of_jit(trim):
    x = np.array([0.0, 1.5, 0.0, 2.0, 0.0], np.float32)
    taken = np.flatnonzero(x)
    first = int(taken[0]) if "f" in trim else 0
    end = int(taken[-1]) + 1 if "b" in trim else x.size
    y, pull_back = xs.vjp(lambda v: xnp.trim_zeros(v, trim), xnp.array(x))
    np.testing.assert_array_equal(y, x[first:end])
    expected = np.zeros(5, np.float32)
    expected[first:end] = 1 + np.arange(end - first)
    np.testing.assert_array_equal(pull_back(xnp.arange(1.0, 1 + end - first))[0], expected)
    tangent = xs.jvp(lambda v: xnp.trim_zeros(v, trim), (xnp.array(x),), (xnp.ones(5),))[1]
    np.testing.assert_array_equal(tangent, np.ones(end - first))
    with pytest.raises(xs.errors.ConcretizationTypeError, match="trim_zeros: the result's shape"):
        xs.jit(lambda v: xnp.trim_zeros(v, trim))(x)


COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("run", [lambda f: f, xs.jit, xs.vmap], ids=["eager", "jit", "vmap"])
def test_integers_beyond_a_dtype_compare_as_in_numpy(name, run):
    compare = getattr(operator, name)
    for x in (np.array([100, 1], np.uint8), np.array([-3, 4], np.int8)):
        for number in (300, -300, 2**40, -(2**70)):
            wide = x.astype(object)  # of Python's integers
            for f in (lambda a, n=number: compare(a, n), lambda a, n=number: compare(n, a)):
                got = run(f)(xnp.asarray(x))
                assert got.dtype == bool
                np.testing.assert_array_equal(got, f(wide).astype(bool))
    with pytest.raises(OverflowError, match="Python int 300 too large to convert to uint8"):
        xnp.uint8(1) + 300


INDICES_OF_BOOLEANS = {
    "False": np.s_[False], "True": np.s_[True], "then a slice": np.s_[False, 1:],
    "after a slice": np.s_[:2, False], "after an integer": np.s_[0, :2, False],
    "before an ellipsis": np.s_[True, ..., 1], "two": np.s_[True, :, False],
    "with a list": np.s_[True, [0, 2]], "of NumPy": np.s_[np.False_, 0],
    "an array": np.s_[np.array(True)],
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES_OF_BOOLEANS)
@pytest.mark.parametrize("run", [lambda f: f, xs.jit], ids=["eager", "jit"])
def test_booleans_among_the_indices_are_those_of_numpy(name, run):
    index = INDICES_OF_BOOLEANS[name]
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    np.testing.assert_array_equal(run(lambda x: x[index])(xnp.asarray(x)), x[index])
    expected = x.copy()
    expected[index] = -1.0
    np.testing.assert_array_equal(run(lambda x: x.at[index].set(-1.0))(xnp.asarray(x)), expected)
    slope = np.asarray(run(xs.grad(lambda x: (x[index] ** 2).sum()))(xnp.asarray(x)))
    np.testing.assert_array_equal(slope, np.where(expected == -1, 2 * x, 0))


@pytest.mark.parametrize("name", ["fft", "ifft", "fftn", "rfft", "ihfft"])
@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 3, 4)])
def test_transforms_along_what_has_elements_beside_what_has_none(name, shape):
    axes = {"axes": (-1,)} if name == "fftn" else {}
    transform = getattr(xnp.fft, name)
    expected = getattr(np.fft, name)(np.zeros(shape), **axes)
    for run in (lambda f: f, xs.jit):
        found = run(lambda x: transform(x, **axes))(xnp.zeros(shape))
        assert found.shape == expected.shape and found.dtype == np.complex64


def test_jacobians_of_integer_results_have_no_elements_that_change():
    x = xnp.array([0.5, 2.5])
    for f, shape in (
        (lambda x: xnp.floor(x).astype(int), (2, 2)),
        (lambda x: xnp.arange(3), (3, 2)),
    ):
        for run in (lambda f: f, xs.jit):
            slope = run(xs.jacfwd(f))(x)
            assert slope.shape == shape and not np.asarray(slope).astype(float).any()


def test_companions_of_fiedler_have_batches():
    a = np.random.default_rng(0).uniform(1, 2, (2, 3, 5))
    ours = scipy.linalg.fiedler_companion(a)
    oracle = np.array([[theirs.fiedler_companion(row) for row in rows] for rows in a])
    np.testing.assert_allclose(ours, oracle, rtol=1e-6)
    np.testing.assert_allclose(xs.vmap(scipy.linalg.fiedler_companion)(a), oracle, rtol=1e-6)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_images_between_their_elements_and_beyond_are_those_of_scipy(mode, order, size):
    image = np.random.default_rng(size).normal(size=size).astype(np.float32)
    # not at the halves, where the nearest element is open, nor within an ulp of them
    at = np.array(
        [
            -9.3,
            -size + 0.3,
            -1.2,
            -1.0,
            -0.9,
            -0.1,
            0,
            0.2,
            size - 1.6,
            size - 1.1,
            size - 1,
            size - 0.9,
            size - 0.6,
            size - 0.1,
            size,
            size + 0.7,
            2 * size + 0.1,
        ]
    )
    expected = theirs_of_images.map_coordinates(image, [at], order=order, mode=mode, cval=5)
    for run in (lambda f: f, xs.jit):
        found = run(lambda i, at: scipy.ndimage.map_coordinates(i, [at], order, mode, 5))(image, at)
        # weights of float32 positions up to 15: of 8 ulp of 1
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=4e-6)


def test_shardings_over_meshes_without_devices_are_compared():
    mesh = xs.sharding.AbstractMesh((2, 1), ("x", "y"))
    one = xs.NamedSharding(mesh, xs.P("x"))
    for spec, same in (
        (xs.P("x", None), True),
        (xs.P(("x", "y")), True),
        (xs.P(None, "x"), False),
        (xs.P(), False),
    ):
        assert one.is_equivalent_to(xs.NamedSharding(mesh, spec), 2) is same


REFUSALS = {
    "PartitionSpec: an entry is a name": lambda: xs.P((("x", "y"), "z")),
    "broadcast_shapes: a size must not be negative": lambda: xnp.broadcast_shapes((-1,), (2,)),
    "dynamic_slice: index arguments to dynamic_slice must be integers": lambda: lax.dynamic_slice(
        X, (np.int32(0), np.int8(0)), (1, 1)),
    "dynamic_update_slice: index arguments to": lambda: lax.dynamic_update_slice(
        X, X[:1, :1], (np.int32(0), np.int8(0))),
    "choice: shape must be a sequence": lambda: xs.random.choice(xs.random.key(0), 5, shape=3),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSALS)
def test_what_has_no_meaning_is_refused(text):
    with pytest.raises((TypeError, ValueError), match=f"^{text}"):
        REFUSALS[text]()


@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
@pytest.mark.parametrize("run", [lambda f: f, xs.jit], ids=["eager", "jit"])
def test_entropies_of_operands_whose_quotient_leaves_the_range(name, run):
    sizes = np.float32([1e-37, 1e-30, 1e-20, 1e-12, 0.3, 1.0, 1e12, 1e20, 1e30, 1e36])
    p, q = [x.ravel() for x in np.meshgrid(sizes, sizes)]
    wide = p.astype(float), q.astype(float)
    expected = getattr(special_of_scipy, name)(*wide)
    found = run(getattr(special, name))(p, q)
    # what is below the least normal number is flushed
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1.2e-38)
    by_p, by_q = run(xs.grad(lambda p, q: getattr(special, name)(p, q).sum(), (0, 1)))(p, q)
    one = 1 if name == "kl_div" else 0
    np.testing.assert_allclose(by_p, np.log(wide[0] / wide[1]) + 1 - one, rtol=2e-6, atol=1e-6)
    normal = wide[0] / wide[1] < 1e37
    np.testing.assert_allclose(
        by_q[normal], (one - wide[0] / wide[1])[normal], rtol=1e-5, atol=1e-6
    )
