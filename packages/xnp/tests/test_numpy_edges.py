"""Where functions of NumPy's names stop: what is refused and how, and what is given at the edge."""

import io

import numpy as np
import pytest

import xnp
import xnp.scipy.linalg
from xprim import config, eval_closed, make_jaxpr
from xprim.errors import ConcretizationTypeError

X = np.float32([[4, 1, 3], [2, 6, 5]])
H = (X / 8).astype(np.float16)
SQUARES = np.float32([[[4, 1], [1, 3]], [[5, 2], [0, 6]]])


@pytest.mark.parametrize(
    ("call", "kinds", "text"),
    [
        (lambda: xnp.zeros((-1, 1)), (TypeError, ValueError), "dimensions must not be negative"),
        (lambda: xnp.diag_indices(-1), (ValueError,), "must not be negative, got -1 and 2"),
        (lambda: xnp.diag_indices(2, -1), (ValueError,), "must not be negative, got 2 and -1"),
        (lambda: xnp.hypot(1j, 1.0), (ValueError,), "not well defined for complex"),
        (lambda: xnp.isin(1, 2, method="x"), (ValueError,), "unknown method 'x'"),
        (
            lambda: xnp.cov(X, dtype=int),
            (ValueError,),
            "dtype must be a subclass of float or complex",
        ),
        (lambda: make_jaxpr(lambda i: xnp.zeros(3)[i:])(1), (IndexError, TypeError), "of a slice"),
        (
            lambda: xnp.interp(0.0, X[0], X[0], period=X[0, :1]),
            (ValueError,),
            "period must be a scalar; got",
        ),
        (lambda: xnp.interp(0.0, X[0, :0], X[0, :0]), (ValueError,), "have no points"),
        (
            lambda: xnp.ravel_multi_index((np.int8(1), np.int8(1)), (20, 20)),
            (ValueError,),
            "int8 does not hold the positions of",
        ),
        (lambda: xnp.ones(()).view("int8"), (ValueError,), "rank 0 cannot become elements of ano"),
        (lambda: xnp.ones(3).view("complex64"), (ValueError,), "3, does not divide into elements"),
    ],
)
def test_what_is_refused_is_refused_as_an_error_of_these_kinds(call, kinds, text):
    with pytest.raises(kinds[0], match=text) as caught:
        call()
    assert isinstance(caught.value, kinds)


@pytest.mark.parametrize(
    "call",
    [
        xnp.trim_zeros,
        lambda x: xnp.ravel_multi_index((x, x), (4, 4)),
        lambda x: x.tobytes(),
    ],
)
def test_functions_that_look_at_values_say_so_while_tracing(call):
    with pytest.raises(ConcretizationTypeError):
        make_jaxpr(call)(np.array([0, 1]))


def test_a_traced_vector_is_a_shape_of_unravel_index():
    def traced(shape):
        return make_jaxpr(lambda sizes: xnp.unravel_index(4, sizes))(shape)

    program = traced(np.array([2, 3]))
    assert [int(x) for x in eval_closed(program, np.array([2, 3]))] == [1, 1]
    for shape in (np.zeros((1, 2), int), np.ones(2), np.array(True), [np.array([2])]):
        with pytest.raises(TypeError, match="must be integers"):
            traced(shape)


def test_the_shape_of_unravel_index_may_be_traced():
    jaxpr = make_jaxpr(lambda i, shape: xnp.unravel_index(i, shape))(np.int32(4), (2, 3))
    assert [str(v.aval) for v in jaxpr.jaxpr.outvars] == ["int32[]", "int32[]"]


def test_the_bits_of_traced_complex_numbers_and_booleans_are_read():
    shapes = [
        make_jaxpr(lambda x, to=to: x.view(to))(np.zeros((2, 4), own)).out_avals[0].shape
        for own, to in [("complex64", "int8"), ("int32", "complex64"), ("bool", "int16")]
    ]
    assert shapes == [(2, 32), (2, 2), (2, 2)]


@pytest.mark.parametrize("wide", ["int4", "uint4", "float32", "int8"])
@pytest.mark.parametrize("narrow", ["int4", "uint4"])
def test_bits_of_packed_integers_of_no_elements(wide, narrow):
    count = xnp.dtype(wide).itemsize * 2 if wide in ("float32", "int8") else 1
    assert xnp.zeros((3, 0), wide).view(narrow).shape == (3, 0)
    assert xnp.zeros((0, 2), wide).view(narrow).shape == (0, 2 * count)


def test_astype_without_a_copy_returns_an_array_that_has_the_dtype():
    x = xnp.ones(3)
    assert x.astype("float32") is x
    assert x.astype("float32", copy=True) is not x
    assert not xnp.array(1.0).astype("float32").weak_type


def test_load_returns_python_objects_in_an_array_of_numpys():
    file = io.BytesIO()
    np.save(file, np.array([1, "a"], object), allow_pickle=True)
    file.seek(0)
    assert xnp.load(file, allow_pickle=True).tolist() == [1, "a"]


def test_numbers_beyond_64_bits_in_a_list_become_floats_where_these_are_asked_for():
    assert xnp.array([1 << 64, 1], float).tolist() == [2.0**64, 1.0]


@pytest.mark.parametrize("kwargs", [{"step": 2}, {"stop": None, "step": 3}, {"step": -1}])
@pytest.mark.parametrize("bound", [5, 5.5, -4])
def test_arange_takes_its_one_bound_for_the_end_beside_a_step_too(bound, kwargs):
    np.testing.assert_array_equal(xnp.arange(bound, **kwargs), np.arange(bound, **kwargs))


def test_frombuffer_reads_floats_of_64_bits_as_numpy_does():
    assert xnp.frombuffer(np.array([1.5, 2.5])).tolist() == [1.5, 2.5]
    assert xnp.frombuffer(np.array([1, 2], np.int64), int).tolist() == [1, 2]


def test_grids_are_tuples_of_one_dtype():
    assert isinstance(xnp.meshgrid(X[0], X[1]), tuple)
    with config.numpy_dtype_promotion("strict"):
        assert xnp.mgrid[1:6:8j, 2:4].dtype == np.float32
        assert [a.dtype for a in xnp.ogrid[1:6, 2:4]] == [np.int32, np.int32]


def test_what_is_no_array_is_no_complex_object():
    assert not xnp.iscomplexobj(None)
    assert xnp.isrealobj("a")


RANKS = [
    lambda: xnp.matmul(np.ones((3, 1, 3, 4)), np.ones((5, 4, 1))),
    lambda: xnp.polyfit(X[0], X[1], 1, cov=True),
    lambda: xnp.polyfit(X[0], X.T, 1, full=True),
    lambda: xnp.where(X > 2, X, X[0]),
    lambda: xnp.select([X > 2], [X[0]], 0.0),
    lambda: xnp.full((2, 3), X[0]),
    lambda: xnp.array_equiv(X, X[0]),
    lambda: xnp.unravel_index(np.arange(3), (2, 3)),
    lambda: xnp.interp(X, np.arange(4.0), np.arange(4)),
    lambda: xnp.array([[X[0], X[0]], [[1, 2, 3], 4 * X[0]]]),
    lambda: xnp.corrcoef(X + 1j),
    lambda: xnp.cov(X, aweights=X[0]),
    lambda: xnp.quantile(H, H[0, :1], weights=H, method="inverted_cdf"),
    lambda: xnp.var(H, axis=0, mean=H[:1]),
    lambda: xnp.nanstd(H, axis=0, mean=H[:1]),
    lambda: xnp.scipy.linalg.lu(SQUARES),
    lambda: xnp.scipy.linalg.expm(SQUARES),
    lambda: xnp.scipy.linalg.sqrtm(SQUARES[0]),
    lambda: xnp.scipy.linalg.funm(SQUARES[0], lambda v: v * v),
]


@pytest.mark.parametrize("call", RANKS)
def test_the_strict_options_are_about_operands_of_users(call):
    with config.numpy_rank_promotion("raise"), config.numpy_dtype_promotion("strict"):
        call()
        with pytest.raises(ValueError, match=r"add: operands .* could not be broadcast together"):
            xnp.add(X, X[0])


def test_nothing_is_interpolated_between_no_points():
    assert xnp.interp(X[:0], X[0, :0], X[0, :0], period=2.0).shape == X[:0].shape


def test_functions_with_the_methods_of_ufuncs_are_instances_of_the_class():
    assert isinstance(xnp.add, xnp.ufunc)
    assert isinstance(xnp.frompyfunc(max, 2, 1), xnp.ufunc)
    assert not isinstance(xnp.sin, xnp.ufunc)
    assert not isinstance(np.add, xnp.ufunc)


def test_ufuncs_of_one_function_are_equal_and_do_not_change():
    one, other = xnp.frompyfunc(max, 2, 1, identity=0), xnp.frompyfunc(max, 2, 1, identity=0)
    assert one == other
    assert hash(one) == hash(other)
    assert one != xnp.frompyfunc(max, 2, 1)
    assert one != xnp.frompyfunc(min, 2, 1, identity=0)
    with pytest.raises(AttributeError, match="max: a ufunc does not change, nor its nin"):
        one.nin = 3


@pytest.mark.parametrize("options", [{}, {"initial": 2}, {"axis": 1}, {"axis": None}])
@pytest.mark.parametrize("shape", [(0, 3), (3, 2)])
def test_ufuncs_reduce_in_the_dtype_of_the_elements(shape, options):
    joined = xnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    for dtype in ("float16", "int8", "complex64"):
        total = joined.reduce(np.ones(shape, dtype), **options)
        assert total.dtype == dtype
        assert not total.weak_type


@pytest.mark.parametrize(
    "bounds", [(1, 5, 1.5), (-1.5, 3, 1), (-1.5, 4, 1.75), (5, 0, -1.25), (0.5, 10000, 1.5)]
)
def test_ranges_of_integers_at_bounds_of_floats_are_those_of_numpy(bounds):
    wanted = np.arange(*bounds, dtype=np.int32)
    np.testing.assert_array_equal(xnp.arange(*bounds, dtype="int32"), wanted)
    staged = make_jaxpr(lambda: xnp.arange(*bounds, dtype="int32"))()
    np.testing.assert_array_equal(eval_closed(staged)[0], wanted)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("make", [xnp.array, xnp.asarray])
@pytest.mark.parametrize(
    ("value", "dtype", "kind"),
    [
        (NAN, "int32", ValueError), ([1.5, NAN], "int8", ValueError),
        ([[INF, NAN]], int, ValueError), (INF, "int32", OverflowError),
        ([-INF, 1.0], "uint8", OverflowError), (300.7, "int8", OverflowError),
        ([1.0, -1.0], "uint8", OverflowError), (1j, float, TypeError),
        ([1j, 2.0], "int32", TypeError), ([0j], "float16", TypeError),
    ],
)  # fmt: skip
def test_numbers_of_python_do_not_silently_become_others(make, value, dtype, kind):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        np.array(value, np.dtype(dtype))
    with pytest.raises(kind, match=r"not of dtype|too large to convert"):
        make(value, dtype=dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (127.9, "int8"), ([-128.9, 0.5], "int8"), (-0.5, "uint8"), ([], "int8"), (NAN, "float16"),
        (NAN, bool), (1j, bool), ([0j, 2j], bool), ([1j, INF], "complex64"), (2.0**31 - 1, "int32"),
    ],
)  # fmt: skip
def test_decimals_of_numbers_of_python_are_dropped_as_by_numpy(value, dtype):
    wanted = np.array(value).astype(dtype)
    np.testing.assert_array_equal(xnp.array(value, dtype=dtype), wanted)


@pytest.mark.parametrize("count", [None, -3, 5, 20, 30])
@pytest.mark.parametrize("order", ["big", "little"])
def test_unpackbits_gives_so_many_bits_and_zeros_beyond(count, order):
    bytes_ = np.array([[7, 200], [1, 255]], np.uint8)
    for axis in (0, 1):
        wanted = np.unpackbits(bytes_, axis, count=count, bitorder=order)
        found = xnp.unpackbits(bytes_, axis, count=count, bitorder=order)
        assert found.dtype == np.uint8 and np.asarray(found).tolist() == wanted.tolist()


@pytest.mark.parametrize("exponent", [np.int32(3), np.uint8(3), xnp.int32(3)])
@pytest.mark.parametrize("base", [np.array([2, -3], np.int32), np.array([2.0, -3.0], np.float32)])
def test_a_power_by_a_known_integer_scalar_is_one_operation_of_a_program(base, exponent):
    closed = make_jaxpr(lambda x: x**exponent)(base)
    assert [e.primitive.name for e in closed.jaxpr.eqns][-1] == "integer_pow"
    wanted = xnp.asarray(base) ** exponent
    (found,) = eval_closed(closed, xnp.asarray(base))
    assert found.dtype == wanted.dtype and found.tolist() == wanted.tolist() == [8, -27]


def test_a_negative_known_exponent_of_integers_stays_a_power_of_arrays():
    base = np.array([2, 1, -1], np.int32)
    closed = make_jaxpr(lambda x: x ** np.int32(-3))(base)
    (found,) = eval_closed(closed, xnp.asarray(base))
    assert found.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("what", "index"),
    [("start", lambda n: slice(n, 4)), ("stop", lambda n: slice(n)),
     ("step", lambda n: slice(0, 4, n))],
)  # fmt: skip
@pytest.mark.parametrize("name", ["mgrid", "ogrid", "r_", "c_"])
def test_a_traced_bound_in_brackets_is_named(name, what, index):
    with pytest.raises(ConcretizationTypeError, match=f"{name}: slice {what} of xnp.{name}"):
        make_jaxpr(lambda n: getattr(xnp, name)[index(n)])(2)
    with pytest.raises(ConcretizationTypeError, match=r"in the xnp\.arange argument 'stop'"):
        make_jaxpr(xnp.arange)(2)


def test_errors_name_the_argument_or_option_at_fault():
    x = xnp.arange(3.0)
    for call, text in [
        (lambda: xnp.pad(x, 1, "edge", constant_values=1), "unsupported keyword arguments for"),
        (lambda: xnp.interp(0.5, x, x, right="nearest"), "valid string value of `right` is"),
        (lambda: xnp.rot90(x), r"ndim at least two, but got first argument of float32\[3\]"),
        (lambda: xnp.broadcast_to(xnp.ones((2, 3)), (3,)), "to shape with fewer dimensions"),
        (lambda: xnp.expand_dims(x, (1, 1)), "repeated axis"),
        (lambda: xnp.lax.split(x, [4, -1]), "Sizes passed to split must be nonnegative"),
        (lambda: xnp.lax.reduce(x, 0.0, xnp.lax.add, (0, 0)), "duplicate value in 'axes'"),
    ]:
        with pytest.raises((ValueError, TypeError), match=text):
            call()
