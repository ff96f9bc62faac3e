import re
import threading
from collections import namedtuple

import numpy as np
import pytest

import xnp
import xtree
from xbatch import vmap
from xnp import lax
from xprim import (
    Array,
    ShapedArray,
    Zero,
    as_array,
    axis_size,
    config,
    dtypes,
    get_primitive,
    make_jaxpr,
    state,
)
from xprim.errors import TracerBoolConversionError, UnexpectedTracerError

RNG = np.random.default_rng(0)


def bind(name, *operands, **params):
    return get_primitive(name).bind(*[as_array(x) for x in operands], **params)[0]


def add(x, y):
    return bind("add", x, y)


def mul(x, y):
    return bind("mul", x, y)


def total(x):
    return bind("reduce_sum", x, axes=tuple(range(x.ndim)))


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def equal(found, want):
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6)


def refused(fun, *args, error=ValueError, **kwargs):
    with pytest.raises(error) as caught:
        fun(*args, **kwargs)
    return str(caught.value)


def test_the_function_sees_one_example():
    seen = []
    vmap(lambda x: seen.append(x.shape) or x)(floats(5, 3))
    assert seen == [(3,)]


def test_every_example_gets_its_result():
    x, y = floats(5, 3), floats(5, 3)
    equal(vmap(add)(x, y), x + y)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_in_axes_and_out_axes_place_the_axis_where_they_say(axis):
    x = floats(2, 3, 4)
    out = vmap(lambda v: bind("neg", v), in_axes=axis, out_axes=axis)(x)
    equal(out, -x)
    moved = vmap(lambda v: bind("neg", v), in_axes=axis, out_axes=0)(x)
    equal(moved, -np.moveaxis(x, axis, 0))


def test_an_argument_with_axis_none_is_shared():
    x, w = floats(5, 3), floats(3)
    equal(vmap(add, in_axes=(0, None))(x, w), x + w)


def test_in_axes_may_be_a_list():
    x, w = floats(5, 3), floats(3)
    equal(vmap(add, in_axes=[0, None])(x, w), x + w)
    equal(vmap(add, in_axes=[None, 1])(w, x.T), x + w)


def test_in_axes_may_be_a_prefix_of_the_arguments():
    x = {"a": floats(4, 2), "b": [floats(2, 4), floats(4)]}
    seen = []

    def fun(tree, scale):
        seen.append(xtree.map(lambda v: v.shape, tree))
        return mul(tree["a"], scale)

    axes = ({"a": 0, "b": [1, None]}, None)
    equal(vmap(fun, in_axes=axes)(x, np.float32(2)), x["a"] * 2)
    assert seen == [{"a": (2,), "b": [(2,), (4,)]}]


def test_a_none_among_the_arguments_has_no_axis():
    equal(vmap(lambda x, _: x, in_axes=0)(floats(3, 2) * 0, None), np.zeros((3, 2)))


def test_keyword_arguments_are_mapped_over_axis_0():
    x, y = floats(5, 3), floats(5, 3)
    equal(vmap(lambda x, *, y: add(x, y), in_axes=None)(x[0], y=y), x[0] + y)
    equal(vmap(lambda x, *, y: add(x, y["v"]))(x, y={"v": y}), x + y)


def test_a_structure_given_by_position_and_by_keyword_is_told_apart():
    f = vmap(lambda x, y=None: x if y is None else y, in_axes=(0, None), out_axes=0)
    x = floats(3)
    equal(f((x,), {"y": x})["y"], np.stack([x] * 3))
    message = refused(f, x, y=x)
    assert "1 argument" in message


def test_out_axes_may_be_a_prefix_of_the_result():
    x = floats(4, 3)
    a, (b, c) = vmap(lambda v: (v, [v, v]), out_axes=(1, [0, -1]))(x)
    equal(a, x.T)
    equal(b, x)
    equal(c, x.T)


def test_a_result_that_is_the_same_for_all_is_repeated_or_given_once():
    w = floats(3)
    equal(vmap(lambda x: as_array(w), out_axes=1)(floats(5, 2)), np.stack([w] * 5, axis=1))
    equal(vmap(lambda x: as_array(w), out_axes=None)(floats(5, 2)), w)
    equal(vmap(lambda x: 2.5)(floats(5, 2)), np.full(5, 2.5))


def test_axis_size_serves_where_nothing_is_mapped():
    assert vmap(lambda x: x, in_axes=None, axis_size=4)(floats(2)).shape == (4, 2)
    assert vmap(lambda: 1.0, axis_size=3)().shape == (3,)


def test_an_empty_batch_gives_empty_results():
    assert vmap(lambda x: mul(x, x))(floats(0, 3)).shape == (0, 3)


def test_containers_of_results_keep_their_types():
    pair = namedtuple("pair", "a b")
    out = vmap(lambda x: pair(x, {"k": x}))(floats(2))
    assert type(out) is pair
    assert out.b["k"].shape == (2,)


def test_vmap_nests():
    x, y = floats(4), floats(5)
    outer = vmap(vmap(mul, in_axes=(None, 0)), in_axes=(0, None))
    equal(outer(x, y), np.multiply.outer(x, y))
    swapped = vmap(vmap(mul, in_axes=(0, None)), in_axes=(None, 0), out_axes=1)
    equal(swapped(x, y), np.multiply.outer(x, y))


def test_a_closed_over_value_of_the_outer_vmap_is_handled_by_it():
    x, y = floats(4), floats(5)
    equal(vmap(lambda a: vmap(lambda b: mul(a, b))(y))(x), np.multiply.outer(x, y))


def test_operations_on_shared_values_run_once():
    seen = []

    def fun(x, w):
        seen.append(type(mul(w, w)).__name__)
        return x

    vmap(fun, in_axes=(0, None))(floats(3), np.float32(2))
    assert seen == ["ConcreteArray"]


@pytest.mark.parametrize(("x_shape", "y_shape", "axes"), [
    ((5, 3), (5, 3), (0, 0)), ((5, 3), (3, 5), (0, 1)), ((5, 3), (3,), (0, None)),
    ((3,), (3, 5), (None, 1)), ((5,), (3,), (0, None)), ((5,), (3, 5), (0, 1)),
    ((5,), (), (0, None)), ((3, 5), (5,), (1, 0)), ((2, 3, 5), (5,), (2, 0)),
    ((), (2, 5), (None, 1)), ((5,), (5,), (0, 0)), ((2, 5, 3), (2, 3), (1, None)),
])  # fmt: skip
def test_elementwise_operands_meet_in_every_layout(x_shape, y_shape, axes):
    x, y = floats(*x_shape), floats(*y_shape)
    out = vmap(bind_sub, in_axes=axes)(x, y)
    loop = [
        (x if axes[0] is None else np.take(x, i, axes[0]))
        - (y if axes[1] is None else np.take(y, i, axes[1]))
        for i in range(5)
    ]
    equal(out, np.stack(loop))


def bind_sub(x, y):
    return bind("sub", x, y)


def test_operands_that_agree_are_not_moved():
    x = as_array(floats(3, 5))
    jaxpr = make_jaxpr(vmap(add, in_axes=1, out_axes=1))(x, x)
    assert [e.primitive.name for e in jaxpr.eqns] == ["add"]


def test_vmap_stages_whole_batches():
    jaxpr = make_jaxpr(vmap(add, in_axes=(0, None)))(floats(4, 3), np.float32(1))
    assert str(jaxpr).count("f32[4,3]") >= 2
    assert len(jaxpr.eqns) == 1


def test_the_axis_name_is_in_scope_only_inside():
    sizes = []
    vmap(lambda x: sizes.append(axis_size("batch")) or x, axis_name="batch")(floats(7))
    assert sizes == [7]
    with pytest.raises(NameError):
        axis_size("batch")


def test_repr_of_a_tracer_shows_where_the_batch_axis_is():
    texts = []
    vmap(lambda x: texts.append(repr(x)) or x, in_axes=1, axis_name="i")(floats(3, 5))
    assert texts == ["BatchTracer<f32[3]>(batch axis 'i' of size 5 at position 1 of f32[3,5])"]


def test_an_exception_restores_the_trace_and_the_axes():
    before, axes = state.trace, state.axis_sizes
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 / 0, axis_name="i")(floats(3))
    assert state.trace is before
    assert state.axis_sizes is axes


def test_a_condition_on_a_traced_value_is_refused():
    with pytest.raises(TracerBoolConversionError):
        vmap(lambda x: not x)(floats(3))


def test_a_leaked_tracer_is_refused_when_it_is_used():
    kept = []
    vmap(lambda x: kept.append(x) or x)(floats(3))
    with pytest.raises(UnexpectedTracerError):
        mul(kept[0], kept[0])
    with pytest.raises(UnexpectedTracerError):
        vmap(lambda x: mul(x, kept[0]))(floats(3))


def test_leaks_are_found_when_the_scope_ends_if_asked():
    kept, results = [], []
    with config.check_tracer_leaks(True):
        with pytest.raises(UnexpectedTracerError) as e:
            vmap(lambda x: (kept.append(mul(x, x)), x)[1])(floats(3))
        text = str(e.value)
        assert "kept in a list" in text
        assert "of length 1." in text.splitlines()[0] and "got       a traced f32[]" in text
        assert "hint      return the value from the transformed function instead" in text
        kept.clear()
        with pytest.raises(UnexpectedTracerError, match="kept in a dict under 'x'"):
            vmap(lambda x: (kept.append({"x": x}), x)[1])(floats(3))
        kept.clear()
        results.append(vmap(lambda x: {"a": mul(x, x), "b": (x, 1.0)})(floats(3)))
        results.append(vmap(vmap(mul, (0, None)), (None, 0))(floats(3), floats(2)))
        results.append(make_jaxpr(vmap(mul))(floats(3), floats(3)))
    vmap(lambda x: (kept.append(x), x)[1])(floats(3))  # not asked, not found
    assert len(results) == 3


@pytest.mark.parametrize("name", [None, "data", ("data", "model")])
def test_the_name_of_a_mesh_axis_is_for_sharding_constraints_alone(name):
    equal = vmap(vmap(mul), spmd_axis_name=name)(floats(2, 3), floats(2, 3))
    assert equal.shape == (2, 3)


def test_threads_do_not_see_each_others_traces():
    failures = []

    def work(k):
        for _ in range(50):
            x = np.full((3, 2), k, np.float32)
            if not (np.asarray(vmap(add)(x, x)) == 2 * k).all():
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_the_wrapper_keeps_name_and_docstring():
    def norm(x):
        """Return the norm."""
        return x

    assert vmap(norm).__name__ == "norm"
    assert vmap(norm).__doc__ == "Return the norm."


# --- errors ------------------------------------------------------------------------------------


def test_a_batch_size_mismatch_names_every_argument():
    message = refused(vmap(lambda x, y: x), floats(3, 2), {"a": floats(4), "b": floats(4)})
    assert message == (
        "vmap: the axes to map have different sizes: 3 and 4.\n"
        "  got       x: size 3 along axis 0 of float32[3,2]\n"
        "            y['a']: size 4 along axis 0 of float32[4]\n"
        "            y['b']: size 4 along axis 0 of float32[4]\n"
        "  expected  one size along all mapped axes"
    )


def test_a_batch_size_mismatch_in_keywords_and_varargs_names_them():
    message = refused(vmap(lambda *xs, k: k), floats(3), floats(3), k=[floats(2)])
    assert "xs[1]: size 3" in message
    assert "k[0]: size 2" in message


def test_a_batch_size_mismatch_among_many_arrays_shows_the_odd_one():
    message = refused(vmap(lambda xs: xs[0]), [floats(3)] * 50 + [floats(4)])
    assert "xs[50]: size 4 along axis 0 of float32[4]" in message
    assert "all other 50 arrays: size 3" in message
    assert len(message.splitlines()) < 8


def test_axis_size_takes_part_in_a_mismatch():
    message = refused(vmap(lambda x: x, axis_size=7), floats(3))
    assert "axis_size=7" in message
    assert "x: size 3" in message


def test_an_axis_out_of_range_names_the_argument():
    message = refused(vmap(lambda x, y: x, in_axes=(0, {"w": -2})), floats(3), {"w": floats(3)})
    assert message.startswith("vmap: the argument y['w'] has no axis -2.")
    assert "at least 2 dimensions" in message


def test_a_scalar_cannot_be_mapped():
    message = refused(vmap(add), floats(3), 1.0)
    assert "the argument y has no axis 0" in message
    assert "in_axes=None" in message


def test_the_number_of_in_axes_must_fit():
    message = refused(vmap(add, in_axes=(0,)), floats(3), floats(3))
    assert "1 entry in in_axes=(0,), 2 arguments" in message


def test_in_axes_of_another_structure_name_the_place():
    message = refused(vmap(lambda x, y: x, in_axes=(0, {"a": 0})), floats(3), {"b": floats(3)})
    assert "in_axes and args differ at [1]" in message


@pytest.mark.parametrize("in_axes", ["a", {"x": 0.5}, (0, "a"), (0, 1.5), 0.5, (True,)])
def test_in_axes_of_another_type_are_refused_at_once(in_axes):
    assert "in_axes" in refused(vmap, add, in_axes, error=TypeError)


def test_out_axes_must_be_ints_and_fit_the_result():
    assert "out_axes must be an int, None" in refused(vmap, add, out_axes=(0, "b"), error=TypeError)
    message = refused(vmap(lambda x: x, out_axes=(0, 0)), floats(3))
    assert "out_axes and the result differ" in message
    message = refused(vmap(lambda x: {"r": x}, out_axes=3), floats(3, 2))
    assert re.search(r"places the axis of the examples at 3, which the result\['r'\]", message)


def test_out_axes_none_needs_a_result_that_is_the_same_for_all():
    message = refused(vmap(lambda x: (1.0, x), out_axes=(0, None)), floats(3))
    assert "out_axes is None for the result[1]" in message


def test_without_any_mapped_argument_the_size_is_unknown():
    assert "no argument is mapped" in refused(vmap(add, in_axes=None), 1.0, 2.0)
    assert "no argument is mapped" in refused(vmap(lambda: 1.0))


def test_things_that_are_no_functions_or_arrays_are_refused():
    assert "expected a function, got an int" in refused(vmap, 3, error=TypeError)
    message = refused(vmap(lambda x: x), "text", error=TypeError)
    assert "vmap: the argument x: a str is not an array" in message
    assert "vmap: the result: a str" in refused(vmap(lambda x: "text"), floats(2), error=TypeError)
    assert "axis_size" in refused(vmap, add, axis_size="4", error=TypeError)
    assert "negative" in refused(vmap, add, axis_size=-1)


def test_a_shape_error_inside_speaks_of_one_example():
    message = refused(vmap(add), floats(4, 3), floats(4, 2), error=TypeError)
    assert "float32[3], float32[2]" in message


def test_arguments_and_results_are_arrays():
    out = vmap(lambda x: x)(np.arange(3))
    assert isinstance(out, Array)
    assert out.dtype == np.int32


def test_functions_are_arguments_that_all_examples_share():
    xs = floats(3)
    equal(vmap(lambda f, x: f(x), in_axes=(None, 0))(lambda x: add(x, x), xs), 2 * xs)
    tree = {"f": lambda x: add(x, x), "shift": 1.0}
    equal(vmap(lambda t, x: add(t["f"](x), t["shift"]), in_axes=(None, 0))(tree, xs), 2 * xs + 1)
    axes = ({"f": None, "x": 0},)
    equal(vmap(lambda t: t["f"](t["x"]), in_axes=axes)({"f": lambda x: x, "x": xs}), xs)
    message = refused(vmap(lambda f, x: f(x)), lambda x: x, xs, error=TypeError)
    assert message.startswith("vmap: the argument f: a function is not an array.")


def test_what_every_branch_of_a_cond_passes_through_is_not_mapped_by_its_predicate():
    def f(x, y):
        return lax.cond(
            lax.gt(x, 1.0), lambda a, b: (a, b, b), lambda a, b: (add(a, a), b, add(b, b)), x, y
        )

    xs = floats(3)
    both, same, mixed = vmap(f, in_axes=(0, None), out_axes=(0, None, 0))(xs, 2.0)
    equal(both, np.where(xs > 1, xs, 2 * xs))
    assert float(same) == 2.0
    equal(mixed, np.where(xs > 1, 2, 4))
    assert "out_axes is None" in refused(vmap(f, (0, None), (0, None, None)), xs, 2.0)


def test_a_number_that_is_not_mapped_stays_the_number_that_it_is():
    def pooled(x, size):
        return x[:size] if size % 2 else x  # the number is asked for its value, under any trace

    x = xnp.ones((2, 4))
    assert vmap(pooled, in_axes=(0, None))(x, 3).shape == (2, 3)
    (traced,) = make_jaxpr(lambda x: vmap(pooled, in_axes=(0, None))(x, 3))(x).out_avals
    assert traced.shape == (2, 3)
    half = vmap(lambda x, k: x * k, in_axes=(0, None))(xnp.ones(2, "float16"), 2.5)
    assert half.dtype == "float16" and half.tolist() == [2.5, 2.5]
    assert vmap(lambda x, k: k, in_axes=(0, None))(x, 3).tolist() == [3, 3]


@pytest.mark.parametrize("chunk_size", [None, 2])
def test_sum_match_sums_the_results_that_differ_among_examples(chunk_size):
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.float32([1, 10])

    def f(x, y):
        return {"both": x * y, "shared": y + 1, "each": x}

    axes = {"both": None, "shared": None, "each": 1}
    options = {"out_axes": axes, "sum_match": True, "chunk_size": chunk_size}
    found = vmap(f, (0, None), **options)(x, y)
    np.testing.assert_array_equal(found["both"], (x * y).sum(0))
    np.testing.assert_array_equal(found["shared"], y + 1)
    np.testing.assert_array_equal(found["each"], x.T)
    with pytest.raises(ValueError, match=r"out_axes is None for the result\['both'\]"):
        vmap(f, (0, None), axes)(x, y)


def test_sum_match_is_the_transpose_of_an_argument_that_all_examples_share():
    x, w = np.arange(6, dtype=np.float32).reshape(3, 2), np.float32([2, 3])
    rows = vmap(lambda y_bar, x: y_bar * x, out_axes=None, sum_match=True)
    np.testing.assert_array_equal(rows(np.ones(3, np.float32), x), x.sum(0))
    twice = vmap(rows, (None, 0))(np.ones(3, np.float32), np.stack([x, 2 * x]) * w)
    np.testing.assert_array_equal(twice, np.stack([x.sum(0), 2 * x.sum(0)]) * w)


def named(p, x, *, scale=1.0):
    return p["w"] * x * scale + p["b"][0]


P = {"w": np.array([1, 2], np.float32), "b": [np.float32(10)]}


@pytest.mark.parametrize(
    ("in_axes", "x", "scale", "expected"),
    [
        ({"p['w']": 0}, 3, 2, [16, 22]),
        ({"p['w']": 0, "scale": None}, 3, 2, [16, 22]),
        ({"p": 0, "p['b']": None, "x": None}, 3, 2, [16, 22]),
        ({"p": 0, "p['b'][0]": None}, 3, 2, [16, 22]),
        ({"p['b']": None, ...: 0}, [3, 5], [2, 1], [16, 20]),
        ({"x": -1, "p['w']": 0}, [3, 5], 2, [16, 30]),
    ],
)
def test_axes_by_name_are_those_of_the_longest_name(in_axes, x, scale, expected):
    x, scale = np.float32(x), np.float32(scale)
    assert vmap(named, in_axes=in_axes)(P, x, scale=scale).tolist() == expected


def test_axes_by_name_serve_arguments_without_names_and_without_arrays():
    total = lambda *xs: sum(xs)  # noqa: E731
    assert vmap(total, in_axes={"xs[1]": 0})(1, np.array([1, 2]), 3).tolist() == [5, 6]
    optional = lambda x, mask=None: x if mask is None else x * mask  # noqa: E731
    in_axes = {"x": 0, "mask": 0}
    assert vmap(optional, in_axes=in_axes)(np.array([1, 2])).tolist() == [1, 2]
    assert vmap(optional, in_axes=in_axes)(np.array([1, 2]), None).tolist() == [1, 2]
    found = vmap(optional, in_axes=in_axes, chunk_size=1)(np.array([1, 2]), np.array([3, 4]))
    assert found.tolist() == [3, 8]


@pytest.mark.parametrize(
    ("in_axes", "kind", "text"),
    [
        ({"q": 0}, ValueError, "in_axes names q, which is not an argument or a part of one"),
        ({"p['v']": 0}, ValueError, "hint      perhaps p['w']"),
        ({"p": (0,)}, TypeError, "in_axes may give a name only an int or None"),
        ({0: 0}, TypeError, "in_axes may name arguments alone"),
        ({"x": None}, ValueError, "no argument is mapped"),
        ("x", TypeError, "hint      a dict gives axes by the names of arguments"),
    ],
)
def test_axes_by_name_that_fit_nothing_are_refused(in_axes, kind, text):
    with pytest.raises(kind) as e:
        vmap(named, in_axes=in_axes)(P, np.float32(1))
    assert text in str(e.value)


@pytest.mark.parametrize(
    ("out_axes", "shape"), [(0, (4, 3, 2)), (-1, (3, 2, 4)), (1, (3, 4, 2)), (None, (3, 2))]
)
def test_zero_tangent_of_an_example_becomes_that_of_the_batch(out_axes, shape):
    """A derivative rule that is mapped may return a `Zero` beside arrays and Python numbers."""

    def rule(x):
        return {
            "primals": (x, 1),
            "tangents": (mul(x, 2.0), Zero(ShapedArray((3, 2), dtypes.float0))),
        }

    axes = {"primals": 0, "tangents": (0, out_axes)}
    x = floats(4)
    found = vmap(rule, out_axes=axes)(x)
    dot, found_zero = found["tangents"]
    equal(dot, 2 * x)
    assert type(found_zero) is Zero
    assert found_zero.aval == ShapedArray(shape, dtypes.float0)
    assert found["primals"][1].shape == (4,)


def test_zero_has_no_place_beyond_its_dimensions_nor_in_chunks():
    def rule(x):
        return x, Zero(ShapedArray((), "float32"))

    with pytest.raises(ValueError, match="axis of the examples at 1"):
        vmap(rule, out_axes=(0, 1))(floats(4))
    with pytest.raises(ValueError, match="does not go with references, zero tangents"):
        vmap(rule, chunk_size=2)(floats(4))
