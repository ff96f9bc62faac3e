"""Calls that look odd and are right: what JAX takes, these functions take; and what they refuse."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import lax, random
from xstack.nn import initializers

TRUTHS = xnp.array([True, False, True])


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", "sum prod mean var std all any nansum nanmean".split())
def test_a_mask_of_numbers_is_refused(name):
    with pytest.raises(ValueError, match="where must be a mask of booleans") as caught:
        getattr(xnp, name)(xnp.ones(3), where=xnp.array([1, 0, 1]))
    assert "where=mask != 0" in str(caught.value)


@pytest.mark.parametrize("name", "max min".split())
def test_a_mask_of_numbers_is_refused_beside_initial(name):
    with pytest.raises(ValueError, match=f"{name}: where must be a mask of booleans"):
        getattr(xnp, name)(xnp.ones(3), where=xnp.array([1, 0, 1]), initial=0)


@pytest.mark.parametrize("name", "sum prod max min".split())
def test_a_reduction_starts_from_a_scalar(name):
    with pytest.raises(ValueError, match=f"{name}: initial value must be a scalar"):
        getattr(xnp, name)(xnp.ones(3), initial=xnp.ones(3))
    assert getattr(xnp, name)(xnp.ones(3), initial=xnp.float32(1)).shape == ()


@pytest.mark.parametrize(
    ("signature", "fun", "expected"),
    [
        ("(n)->(n,n)", lambda x: x, "expected  shape [3, 3]"),
        ("(n)->(n)", lambda x: x[:2], "expected  shape [3]"),
        ("(n)->(n)", lambda x: x[0], "expected  shape [3]"),
        ("(n)->()", lambda x: x, "expected  shape []"),
        ("(n)->(k),(k)", lambda x: (x, x[:1]), "expected  shape [3]"),
    ],
)
def test_vectorize_holds_results_to_the_signature(signature, fun, expected):
    for shape in ((3,), (2, 3), (0, 3)):
        with pytest.raises(ValueError, match="is not as the signature") as caught:
            xnp.vectorize(fun, signature=signature)(xnp.ones(shape))
        assert expected in str(caught.value)


def test_vectorize_counts_the_results():
    with pytest.raises(TypeError, match=r"must return 1 arrays, as '\(n\)->\(n\)' says, got 2"):
        xnp.vectorize(lambda x: (x, x), signature="(n)->(n)")(xnp.ones(3))


def test_dict_keys_of_several_types_are_refused_by_every_transformation():
    tree = {1: 1.0, "a": 2.0}
    for use in (xstack.jit(lambda t: 0), xstack.tree.leaves, xstack.grad(lambda t: 0.0)):
        with pytest.raises(ValueError, match="the keys of a dict cannot be sorted") as caught:
            use(tree)
        assert "all of them strings, or all numbers" in str(caught.value)


# --- lax and control flow -----------------------------------------------------------------------

BINARY = """add sub mul div max min rem pow atan2 nextafter lt le gt ge eq ne complex igamma igammac
zeta polygamma""".split()


@pytest.mark.parametrize("name", BINARY)
def test_sizes_of_one_are_repeated_by_lax(name):
    function = getattr(lax, name)
    x, y = xnp.full((3, 1), 1.5), xnp.full((1, 4), 2.5)
    full = [xnp.full((3, 4), 1.5), xnp.full((3, 4), 2.5)]
    np.testing.assert_array_equal(function(x, y), function(*full))
    assert xstack.eval_shape(function, x, y).shape == (3, 4)
    batched = xstack.vmap(function)(x, xnp.full((3, 1), 2.5))
    assert batched.shape == (3, 1)


@pytest.mark.parametrize("name", "bitwise_and bitwise_or bitwise_xor shift_left".split())
def test_sizes_of_one_are_repeated_by_lax_on_integers(name):
    x, y = xnp.full((3, 1), 5), xnp.full((1, 4), 3)
    assert getattr(lax, name)(x, y).shape == (3, 4)


def test_lax_goes_on_refusing_other_ranks_and_sizes():
    for x, y in (((3,), (1, 3)), ((2,), (3,)), ((2, 1), (3, 4))):
        with pytest.raises(TypeError, match="the operands' shapes differ"):
            lax.add(xnp.ones(x), xnp.ones(y))
    x = xnp.full((2, 1), 0.5)
    assert lax.betainc(x, xnp.ones((1, 3)), x).shape == (2, 3)


def test_gradients_of_repeated_sizes_are_summed():
    x, y = xnp.full((3, 1), 1.5), xnp.full((1, 4), 2.5)
    gradients = xstack.grad(lambda x, y: lax.mul(x, y).sum(), (0, 1))(x, y)
    assert [g.tolist() for g in gradients] == [[[10.0]] * 3, [[4.5] * 4]]


def test_unroll_and_batch_size_may_be_zero():
    xs = xnp.arange(5.0)
    total, sums = lax.scan(lambda c, x: (c + x, c), 0.0, xs, unroll=0)
    assert (float(total), sums.tolist()) == (10.0, [0.0, 0.0, 1.0, 3.0, 6.0])
    assert lax.map(lambda x: x + 1, xs, batch_size=0).tolist() == (xs + 1).tolist()
    assert lax.fori_loop(0, 5, lambda i, c: c + i, 0, unroll=0) == 10
    assert lax.scan(lambda c, x: (c, x), 0.0, xs[:0], unroll=0)[1].shape == (0,)
    with pytest.raises(ValueError, match=r"unroll must be 'auto', a bool or an integer that"):
        lax.scan(lambda c, x: (c, x), 0.0, xs, unroll=-1)
    with pytest.raises(ValueError, match="map: batch_size must not be negative, got -1"):
        lax.map(lambda x: x, xs, batch_size=-1)


def test_the_older_form_of_cond_gives_each_function_an_operand():
    def choose(p, x, y):
        return lax.cond(p, x, lambda v: v + 1, y, lambda v: v["a"] * 2)

    for p, expected in ((True, 2.0), (False, 6.0)):
        for way in (choose, xstack.jit(choose)):
            assert float(way(p, 1.0, {"a": 3.0})) == expected
    slopes = xstack.grad(lambda x, y: choose(False, x, y), (0, 1))(1.0, {"a": 3.0})
    assert (float(slopes[0]), float(slopes[1]["a"])) == (0.0, 2.0)
    assert float(lax.cond(True, lambda f, v: v, lambda f, v: -v, 1.0, 2.0)) == 2.0


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize(("split", "concat"), [*itertools.product(range(3), repeat=2)])
def test_all_to_all_over_two_axes_is_that_over_their_product(split, concat, tiled):
    def exchange(names):
        return lambda x: lax.all_to_all(x, names, split, concat, tiled=tiled)

    shape = [6, 6, 6]
    x = xnp.arange(6.0 * 216).reshape(2, 3, *shape)
    two = xstack.vmap(xstack.vmap(exchange(("i", "j")), axis_name="j"), axis_name="i")(x)
    one = xstack.vmap(exchange("k"), axis_name="k")(x.reshape(6, *shape))
    np.testing.assert_array_equal(two.reshape(one.shape), one)


def test_a_shape_that_the_function_says_itself_passes_eval_shape():
    own = xstack.ShapeDtypeStruct((3,), np.float32)
    result = xstack.eval_shape(lambda x: {"x": x + 1, "own": own}, 1.0)
    assert result["own"] is own and result["x"].shape == ()


# --- NumPy functions ----------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [range(2), [0, 1], (0, -1), np.array([0, 1]), (np.int64(0), 1)])
def test_axes_are_given_as_any_sequence(axes):
    x = xnp.ones((2, 3))
    assert xnp.sum(x, axis=axes) == 6.0
    assert xnp.flip(x, axis=axes).shape == (2, 3)
    assert xnp.expand_dims(xnp.ones(3), axes).ndim == 3
    assert xnp.squeeze(xnp.ones((1, 1)), axis=axes).shape == ()
    assert xnp.mean(x, axis=axes) == xnp.max(x, axis=axes) == 1.0


@pytest.mark.parametrize("size", [3, 100])
def test_the_diagonal_of_eye_and_tri_may_be_traced(size):
    for name in ("eye", "tri"):
        function = getattr(xnp, name)
        traced = xstack.jit(lambda k, function=function: function(size, size + 1, k))
        for k in (-2, 0, 1, 5 * size):
            np.testing.assert_array_equal(traced(k), getattr(np, name)(size, size + 1, k))
    each = xstack.vmap(lambda k: xnp.eye(3, k=k))(xnp.arange(3))
    np.testing.assert_array_equal(each, [np.eye(3, k=k) for k in range(3)])
    with pytest.raises(TypeError, match="eye: k must be an integer, got float32"):
        xstack.jit(lambda k: xnp.eye(3, k=k))(1.0)


@pytest.mark.parametrize("places", [0, 2, -1, 5, [1, 3], [3, 1], [-1, 0], [2, 2], []])
def test_values_are_inserted_at_traced_positions(places):
    x = np.arange(5.0, dtype=np.float32)
    values = 9.0 if np.ndim(places) == 0 else 9.0 + np.arange(len(places), dtype=np.float32)
    traced = xstack.jit(lambda at: xnp.insert(x, at, values))
    np.testing.assert_array_equal(traced(np.array(places, np.int32)),
                                  np.insert(x, np.array(places, np.int32), values))  # fmt: skip
    rows = np.arange(10.0, dtype=np.float32).reshape(2, 5)
    by_axis = xstack.jit(lambda at: xnp.insert(rows, at, 7.0, axis=1))
    at = np.array(places, np.int32)
    np.testing.assert_array_equal(by_axis(at), np.insert(rows, at, 7.0, axis=1))


def test_weights_of_an_average_follow_its_axes_in_any_order():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for axes in itertools.permutations(range(3), 2):
        weights = np.arange(1.0, 13.0, dtype=np.float32)[: x.shape[axes[0]] * x.shape[axes[1]]]
        weights = weights.reshape(x.shape[axes[0]], x.shape[axes[1]])
        got = xnp.average(x, axis=axes, weights=weights)
        np.testing.assert_allclose(got, np.average(x, axes, weights), rtol=1e-6)


def test_sums_of_dtype_bool_say_whether_any_holds():
    x = xnp.array([0.5, 0.0, 2.0])
    wanted = {"sum": True, "prod": False, "cumsum": [True] * 3, "cumprod": [True, False, False]}
    for name, expected in wanted.items():
        of_truths = functools.partial(getattr(xnp, name), dtype=bool)
        for result in (of_truths(x), xstack.jit(of_truths)(x)):
            assert (result.tolist(), result.dtype) == (expected, np.bool_)


def test_einsum_of_booleans_is_a_product_of_truths():
    square = xnp.array([[True, False], [True, True]])
    for subscripts, count in (("ij->i", 1), ("ij->", 1), ("ii->", 1), ("ij,jk->ik", 2)):
        got = xnp.einsum(subscripts, *[square] * count)
        want = np.einsum(subscripts, *[np.asarray(square)] * count)
        assert got.dtype == np.bool_ and got.tolist() == want.tolist()


def test_booleans_are_shifted_as_integers():
    assert (TRUTHS << TRUTHS).tolist() == [2, 0, 2] and (TRUTHS << TRUTHS).dtype == np.int32
    assert (TRUTHS >> TRUTHS).tolist() == [0, 0, 0]
    assert (1 << TRUTHS).tolist() == [2, 1, 2]
    assert xstack.jit(xnp.left_shift)(TRUTHS, TRUTHS).tolist() == [2, 0, 2]


def test_vectorize_of_no_elements_gives_the_shapes_of_the_function():
    empty = xnp.ones((0, 3))
    assert xnp.vectorize(lambda x: x + 1)(empty).shape == (0, 3)
    total = xnp.vectorize(lambda x: (x.sum(), x), signature="(n)->(),(n)")(empty)
    assert [r.shape for r in total] == [(0,), (0, 3)]
    kinds = xnp.vectorize(lambda x, y: x < y)(empty, xnp.ones((1, 3)))
    assert (kinds.shape, kinds.dtype) == ((0, 3), np.bool_)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 4, 3), (0, 3)])
def test_the_raw_qr_factorisation_is_that_of_lapack(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x = x + 1j * np.flip(x) if dtype is np.complex64 else x
    got = xnp.linalg.qr(x, mode="raw")
    if x.size:
        for a, b in zip(got, np.linalg.qr(x, mode="raw"), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
    compiled = xstack.jit(lambda x: xnp.linalg.qr(x, mode="raw"))(x)
    for a, b in zip(got, compiled, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=1e-5)


# --- weights of neural networks -----------------------------------------------------------------

SCALED = "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform".split()


@pytest.mark.parametrize("name", SCALED)
def test_complex_weights_have_the_variance_that_is_asked_for(name):
    weights = np.asarray(getattr(initializers, name)()(random.key(0), (200, 300), np.complex64))
    fan = {"glorot": 250, "he": 100, "lecun": 200}[name.partition("_")[0]]
    assert weights.dtype == np.complex64
    assert abs((np.abs(weights) ** 2).mean() * fan - 1) < 0.02
    assert abs(weights.mean()) < 3e-3 / fan**0.5 * 3
    limit = 2**0.5 if name.endswith("uniform") else 2 / np.sqrt(1 - 4 / np.expm1(4.0))
    assert np.abs(weights).max() * fan**0.5 <= limit * 1.0001


def test_complex_orthogonal_weights_are_unitary():
    q = np.asarray(initializers.orthogonal()(random.key(0), (6, 4), np.complex64))
    np.testing.assert_allclose(q.conj().T @ q, np.eye(4), atol=1e-5)
    wide = np.asarray(random.orthogonal(random.key(1), 3, m=5, dtype=np.complex64))
    np.testing.assert_allclose(wide @ wide.conj().T, np.eye(3), atol=1e-5)
    kernel = initializers.delta_orthogonal()(random.key(0), (3, 3, 4, 4), np.complex64)
    assert kernel.dtype == np.complex64 and not kernel[0].any()


# --- compile-time evaluation, donation, configuration ---------------------------------------------


def test_compile_time_evaluation_beside_traced_values():
    def f(x):
        with xstack.ensure_compile_time_eval():
            table = lax.scan(lambda c, y: (c + y, c), 0.0, xnp.arange(4.0))[1]
            slope = xstack.grad(lambda y: y**2)(3.0)
            rows = xstack.vmap(lambda y: y * 2)(table)
            size = xstack.jit(lambda y: y.sum())(rows)
            assert float(size) == 8.0 and float(slope) == 6.0
            return x * slope + table[int(size) // 4]

    for way in (f, xstack.jit(f), xstack.checkpoint(f), xstack.jit(xstack.vmap(f))):
        np.testing.assert_array_equal(way(xnp.ones(2)), [7.0, 7.0])
    assert xstack.grad(f)(1.0) == 6.0
    assert len(xstack.make_jaxpr(f)(1.0).eqns) == 2


def test_collectives_of_constants_reach_their_axis_in_compile_time_evaluation():
    def f(x):
        with xstack.ensure_compile_time_eval():
            return lax.psum(x, "i") + lax.axis_index("i") + lax.psum(xnp.float32(2), "i")

    assert xstack.vmap(f, axis_name="i")(xnp.ones(3)).tolist() == [9.0, 10.0, 11.0]


def test_a_float_is_no_axis_whatever_was_called_before():
    x = xnp.ones((2, 3))
    for function in (xnp.sum, xnp.max, xnp.mean, xnp.argmax, xnp.cumsum, xnp.any):
        assert function(x, axis=1).shape[0] == 2
        with pytest.raises(TypeError, match="the axis must be an integer, got a float"):
            function(x, axis=1.0)


def test_masks_of_numbers_are_refused_by_softmax_and_kin():
    for name in ("softmax", "log_softmax", "logsumexp"):
        with pytest.raises(ValueError, match="where must be a mask of booleans"):
            getattr(xstack.nn, name)(xnp.ones(3), where=xnp.ones(3))


def test_silent_misuses_are_refused():
    square, line = xnp.ones((2, 2)), xnp.ones(2)
    for call, error, text in (
        (lambda: xnp.histogram2d(square, square), ValueError, "x and y must be vectors"),
        (lambda: xnp.compress(xnp.array([True] * 3), line), IndexError, "beyond the 2 elements"),
        (
            lambda: xnp.hypot(1j, 1.0),
            ValueError,
            "hypot: xnp.hypot is not well defined for complex-valued inputs",
        ),
        (lambda: xnp.ediff1d(TRUTHS), TypeError, "ediff1d: takes numbers, got booleans"),
        (lambda: xnp.i0(1j), TypeError, "i0: takes real numbers"),
        (
            lambda: xnp.var(line, dtype=int),
            ValueError,
            "var: the dtype must hold fractions, got int",
        ),
        (lambda: xnp.repeat(line, 2, total_repeat_length=-1), ValueError, "length is negative: -1"),
        (lambda: xnp.arange(4, dtype=bool), TypeError, "4 booleans are not a range"),
        (lambda: xnp.fabs(1j), TypeError, "fabs: takes real numbers"),
        (lambda: lax.convert_element_type(line, None), TypeError, "the dtype is missing"),
        (lambda: xnp.linalg.cond(square[:0]), ValueError, "no condition number"),
        (lambda: lax.bitcast_convert_type(line, None), TypeError, "the dtype is missing"),
        (lambda: xnp.polyval(2.0, line), ValueError, "the coefficients must have a dimension"),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_to_more_digits_than_there_are_changes_nothing(dtype):
    x = xnp.array([1.25, -0.5, 0.0, np.inf, np.finfo(dtype).max], dtype)
    for decimals in (60, 99, 400):
        assert xnp.round(x, decimals).tolist() == x.tolist()
    assert xnp.round(x[:3], -400).tolist() == [0.0, 0.0, 0.0]
    assert xnp.round(x[-1:], 2).tolist() == x[-1:].tolist()


def test_further_parameters_may_be_traced_or_of_any_dtype():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for name in ("std", "var", "nanstd", "nanvar"):
        traced = xstack.jit(lambda ddof, name=name: getattr(xnp, name)(x, ddof=ddof))
        np.testing.assert_allclose(traced(1), getattr(np, name)(x, ddof=1), rtol=1e-6)
    for offset in (-1, 0, 2, 9):
        traced = xstack.jit(lambda k: xnp.trace(x, k))
        assert traced(offset) == np.trace(x, offset)
    assert xnp.inner(x, x, preferred_element_type=np.int8).dtype == np.int8
    assert xnp.polyval(x, xnp.ones(4)).tolist() == np.polyval(x, np.ones(4)).tolist()
    assert xnp.roots(2.0).shape == (0,) and xnp.poly(2.0).tolist() == [1.0, -2.0]
    assert xnp.interp(x, x[0], x[0].astype(np.float16)).dtype == np.float32
    assert xnp.linalg.trace(x, dtype=bool).tolist() is True
    assert xnp.linalg.vector_norm(x, axis=range(2)).shape == ()
    assert xstack.nn.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert lax.full(3, 1.0).shape == (3,)
    assert lax.broadcasted_iota("int32", 3, 0).tolist() == [0, 1, 2]
    assert xnp.bincount(TRUTHS).tolist() == [1, 2] and xnp.poly([]).shape == ()
    assert xnp.roll(x, 1, np.uint8(1))[0, 0] == 3.0
    assert xnp.linalg.trace(x, offset=np.array(1)) == np.trace(x, 1)
    assert xnp.ldexp(3.0, TRUTHS).tolist() == [6.0, 3.0, 6.0]
    assert lax.one_minus_square(xnp.arange(3)).tolist() == [1, 0, -3]


def test_a_donated_argument_that_no_result_can_use_stays_readable():
    total = xstack.jit(lambda x: x.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match="donated buffers were not usable") as caught:
        total(xnp.ones(5))
    assert len(caught) == 1 and caught[0].filename == __file__
    assert "x: float32[5]" in str(caught[0].message)
    for _ in range(12):  # the shorter ways of calls, too
        x = xnp.ones(5)
        assert total(x) == 5.0 and x.sum() == 5.0


def test_of_a_donated_tree_only_the_arrays_that_results_take_are_gone():
    part = xstack.jit(lambda tree, y: tree["a"] + y, donate_argnums=0)
    for _ in range(12):
        tree = {name: xnp.ones(3) for name in ("a", "unused")}
        part(tree, xnp.ones(3))
        assert tree["a"].is_deleted() and tree["unused"].sum() == 3.0


def test_a_donated_argument_of_pmap_that_no_result_can_use_stays_readable():
    x = xnp.ones((1, 3))
    with pytest.warns(
        UserWarning, match=r"no result of <lambda> can take the memory of v: float32\[1,3\]"
    ):
        xstack.pmap(lambda v: v.sum(), donate_argnums=0)(x)
    assert x.sum() == 3.0


def test_options_are_read_as_attributes():
    config = xstack.config
    assert config.jax_enable_x64 is False and config.jax_numpy_rank_promotion == "allow"
    with config.enable_x64(True):
        assert config.jax_enable_x64 is True and config.read("jax_enable_x64") is True
        assert config.values["jax_enable_x64"] is True
        assert config.enable_x64 and config.enable_x64 is xstack.enable_x64
    assert not config.enable_x64
    assert {"jax_enable_x64", "enable_x64", "update", "values"} <= {*dir(config)}


@pytest.mark.parametrize("name", ["jax_enable_x64", "enable_x64"])
def test_options_cannot_be_assigned(name):
    plain = name.removeprefix("jax_")
    with pytest.raises(AttributeError, match=f"config: {name} cannot be assigned") as caught:
        setattr(xstack.config, name, True)
    assert f"config.update({plain!r}, True)" in str(caught.value)
    assert xstack.config.jax_enable_x64 is False


def test_an_option_that_is_not_there_is_named():
    for name in ("jax_nope", "nope"):
        with pytest.raises(AttributeError, match=f"there is no option '{name}'"):
            getattr(xstack.config, name)
        with pytest.raises(AttributeError, match="there is no option 'nope'"):
            setattr(xstack.config, name, True)


def test_the_configuration_can_be_changed_before_anything_else():
    program = """
        import xstack
        xstack.config.update("jax_enable_x64", True)
        assert xstack.config.jax_enable_x64 and xstack.numpy.ones(1).dtype == "float64"
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_a_float_does_not_go_into_integers_by_at():
    with pytest.raises(TypeError, match=r"1\.5|float"):
        xnp.arange(3).at[0].set(1.5)
