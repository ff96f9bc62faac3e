"""Checks in programs: under every transformation, beside the eager error and beside the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xprim import Operand, Primitive, as_array, call_rules, shaped_array, undefined
from xstack import lax
from xstack.debug import error_if
from xstack.experimental import checkify as c

XS = np.float32([1, 2, -3, -4])


def positive(v, name="x"):
    c.check(v > 0, name + " is {}, not positive", v)
    return v


def first_line(error):
    text = error.get()
    return None if text is None else text.splitlines()[0].removesuffix(" (`check` failed)")


def summed(xs):
    return lax.scan(lambda s, x: (s + positive(x) ** 2, x * 2), 0.0, xs)[0]


@xstack.custom_jvp
def own_slope(x):
    return positive(x) * 2


own_slope.defjvp(lambda primals, tangents: (own_slope(primals[0]), tangents[0] * 7.0))


@xstack.custom_vjp
def own_pullback(x):
    return positive(x) * 2


own_pullback.defvjp(
    lambda x: (own_pullback(x), x), lambda r, ct: (ct * positive(r - 1, "residual"),)
)

strangers_call_p = Primitive("strangers_call", call_like=True, **call_rules("strangers_call"))


def called(x):
    """Bind a call of somebody else's, whose rules are those that all calls share."""
    closed = xstack.make_jaxpr(positive)(x)
    return strangers_call_p.bind(as_array(x), jaxpr=closed)[0]


own_batch = xstack.custom_batching.custom_vmap(positive)

BELOW = xstack.vmap(
    xstack.vmap(lambda x, y: c.check(x < y, "{} is not below {}", x, y), (0, None)), (None, 0)
)
MESH = xstack.make_mesh((1,), ("i",))

# What fails, with which arguments, and what the failure says; None for no failure.
PROGRAMS = {
    "call": (xstack.jit(positive), (-1.0,), "x is -1.0, not positive"),
    "scan": (summed, (XS,), "x is -3.0, not positive"),
    "scan of none": (summed, (-XS[2:],), None),
    "while body": (
        lambda x: lax.while_loop(lambda s: s < 5, lambda s: positive(s - 3) + 6, x), (1.0,),
        "x is -2.0, not positive",
    ),
    "while condition": (
        lambda x: lax.while_loop(lambda s: positive(s) > 1, lambda s: s - 2, x), (2.0,),
        "x is 0.0, not positive",
    ),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, s: positive(s) - 1, x), (3.5,),
             "x is -0.5, not positive"),
    "branch": (lambda p, x: lax.cond(p, positive, lambda v: v, x), (True, -2.0),
               "x is -2.0, not positive"),
    "other branch": (lambda p, x: lax.cond(p, positive, lambda v: v, x), (False, -2.0), None),
    "grad": (xstack.grad(lambda x: positive(x) ** 2), (-2.0,), "x is -2.0, not positive"),
    "grad of scan": (xstack.grad(summed), (XS,), "x is -3.0, not positive"),
    "checkpoint": (xstack.grad(xstack.checkpoint(lambda x: xnp.sin(positive(x) ** 2))), (-2.0,),
                   "x is -2.0, not positive"),
    "vmap": (xstack.vmap(positive), (XS,), "x is -3.0, not positive (at mapped index 2)"),
    "vmap of vmap": (BELOW, (np.float32([1, 2, 3]), np.float32([4, 2.5])),
                     "3.0 is not below 2.5 (at mapped index 1, 2)"),
    "vmap of scan": (xstack.vmap(summed), (XS.reshape(2, 2),),
                     "x is -3.0, not positive (at mapped index 1)"),
    "custom_jvp": (own_slope, (-1.0,), "x is -1.0, not positive"),
    "grad of custom_jvp": (xstack.grad(own_slope), (-1.0,), "x is -1.0, not positive"),
    "custom_vjp": (own_pullback, (-1.0,), "x is -1.0, not positive"),
    "custom_vmap": (own_batch, (-1.0,), "x is -1.0, not positive"),
    "stranger's call": (called, (-1.0,), "x is -1.0, not positive"),
    "grad of stranger's call": (xstack.grad(called), (-2.0,), "x is -2.0, not positive"),
    "grad of custom_vjp": (xstack.grad(own_pullback), (0.5,), "residual is -0.5, not positive"),
    "shard_map": (
        xstack.shard_map(lambda x: (c.check(xnp.all(x > 0), "sum {}", x.sum()), x)[1],
                         mesh=MESH, in_specs=xstack.P("i"), out_specs=xstack.P("i")),
        (XS,), "sum -4.0",
    ),
    "pmap": (xstack.pmap(lambda x: positive(x.sum()), devices=xstack.devices()[:1]),
             (XS[None],), "x is -4.0, not positive"),
}  # fmt: skip


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_failure_is_a_value_beside_the_result(name):
    fun, args, expected = PROGRAMS[name]
    error, out = c.checkify(fun)(*args)
    assert first_line(error) == expected
    if expected is None:
        error.throw()
        xstack.tree.map(np.testing.assert_array_equal, out, fun(*args))
    else:
        with pytest.raises(c.JaxRuntimeError, match=r"test_checkify.py:"):
            error.throw()
    assert first_line(xstack.jit(c.checkify(fun))(*args)[0]) == expected


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("pmap", "shard_map")])
def test_without_checkify_the_call_raises_the_same(name):
    fun, args, expected = PROGRAMS[name]
    for call in (fun, xstack.jit(fun)):
        if expected is None:
            call(*args)
            continue
        with pytest.raises(c.JaxRuntimeError) as caught:
            xstack.block_until_ready(call(*args))
        # evaluated, a loop stops at its first failure; compiled, all examples of a batch are there
        assert str(caught.value).splitlines()[0].removesuffix(" (`check` failed)") == expected


AUTOMATIC = {
    "nan": (c.nan_checks, lambda x: xnp.log(x), (-1.0,), "nan generated by primitive: log."),
    "nan of a loop": (c.all_checks, lambda x: lax.fori_loop(0, 3, lambda i, s: xnp.log(s), x),
                      (2.0,), "nan generated by primitive: log."),
    "a moved nan": (c.nan_checks, lambda x: xnp.concatenate([x[::-1], x]), (XS * np.nan,), None),
    "division": (c.div_checks, lambda x: 1 / x, (np.float32(0),), "division by zero"),
    "integer division": (c.float_checks, lambda x, y: lax.div(x, y), (3, 0), "division by zero"),
    "gather": (c.index_checks, lambda x, i: x[i], (XS, 5),
               "out-of-bounds indexing for array of shape (4,): index 5 is out of bounds for axis "
               "0 with size 4."),
    "below": (c.index_checks, lambda x, i: x[i], (XS, -5), "index -1 is out of bounds for axis 0 "
              "with size 4."),
    "from the end": (c.index_checks, lambda x, i: x[i], (XS, -4), None),
    "second axis": (c.index_checks, lambda x, i: x[i, i], (XS.reshape(2, 2), np.array([1, 3])),
                    "index 3 is out of bounds for axis 0 with size 2."),
    "scatter": (c.automatic_checks, lambda x, i: x.at[i].set(1), (XS, 4),
                "index 4 is out of bounds for axis 0 with size 4."),
    "scatter_add": (c.index_checks, lambda x, i: x.at[i].add(1), (XS, np.array([0, 9])),
                    "index 9 is out of bounds for axis 0 with size 4."),
    "slice": (c.index_checks, lambda x, i: lax.dynamic_slice(x, (i,), (2,)), (XS, 3),
              "index 3 is out of bounds for axis 0 with size 4."),
    "update": (c.index_checks, lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)), (XS, 2),
               None),
    "user": (c.automatic_checks, positive, (-1.0,), None),
}  # fmt: skip


@pytest.mark.parametrize("name", AUTOMATIC)
def test_checks_that_nobody_wrote_are_made_where_they_are_asked_for(name):
    kinds, fun, args, expected = AUTOMATIC[name]
    found = first_line(c.checkify(fun, errors=kinds)(*args)[0])
    assert found is None if expected is None else found.endswith(expected)
    assert c.checkify(fun, errors=frozenset())(*args)[0].get() is None


@pytest.mark.parametrize("name", ["nan", "division", "gather", "scatter", "below", "slice"])
def test_they_say_what_the_oracle_says(name):
    pytest.importorskip("jax")
    import jax.numpy
    from jax.experimental import checkify

    kinds, _, args, _ = AUTOMATIC[name]
    fun = {
        "nan": jax.numpy.log, "division": lambda x: 1 / x, "gather": lambda x, i: x[i],
        "scatter": lambda x, i: x.at[i].set(1), "below": lambda x, i: x[i],
        "slice": lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)),
    }[name]  # fmt: skip
    (kind,) = kinds if len(kinds) == 1 else ("index",)
    args = [jax.numpy.asarray(x) for x in args]
    error, _ = checkify.checkify(fun, errors=getattr(checkify, f"{kind}_checks"))(*args)
    ours, _ = c.checkify(AUTOMATIC[name][1], errors=kinds)(*map(np.asarray, args))
    assert first_line(ours) == error.get().strip()


def above(x, n):
    c.check(x > len(n), "{x} is too small", x=x)
    return x * len(n)


@pytest.mark.parametrize(
    "fun",
    [
        above,
        xstack.jit(above, static_argnums=1),
        xstack.jit(above, static_argnames="n"),
        xstack.jit(lambda x, n: xstack.jit(above, static_argnums=1)(x, n), static_argnums=1),
        lambda x, n: xstack.vmap(lambda y: above(y, n))(xnp.stack([x, x]))[0],
        lambda x, n: lax.scan(lambda y, _: (above(y, n), None), x, None, 1)[0],
    ],
)
@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_arguments_that_are_no_arrays_are_what_they_are(fun, named, compiled):
    checked = c.checkify(fun)
    if compiled:
        checked = xstack.jit(checked, static_argnames="n") if named else (
            xstack.jit(checked, static_argnums=1))  # fmt: skip
    call = (lambda x, n: checked(x, n=n)) if named else checked
    error, out = call(np.float32(3), "ab")
    assert error.get() is None and out == 6
    assert "1.0 is too small" in first_line(call(xnp.float32(1), "ab")[0])
    assert "3.0 is too small" in first_line(call(np.float32(3), "abcd")[0])
    slope = xstack.grad(lambda x: c.checkify(fun)(x, "ab")[1])(3.0)
    assert slope == 2


def test_functions_and_numbers_that_a_function_is_given_have_their_values():
    def apply(f, x, n, deep):
        return f(x) * range(5)[n] if deep["deep"] else x

    for wrapped in (apply, xstack.jit(apply, static_argnums=(0, 2), static_argnames="deep")):
        deep = {"deep": True} if wrapped is apply else Hashed(deep=True)
        error, out = c.checkify(wrapped, c.float_checks)(xnp.log, xnp.float32(-1), 3, deep=deep)
        assert np.isnan(out) and "nan generated by primitive: log" in error.get()


class Hashed(dict):
    def __hash__(self):
        return 0


def test_an_error_of_a_batch_names_each_example():
    error, out = xstack.vmap(c.checkify(lambda x: xnp.sqrt(positive(x))))(XS)
    assert [line for line in error.get().splitlines() if "mapped" in line] == [
        f"at mapped index {i}: x is {XS[i]}, not positive (`check` failed)" for i in (2, 3)
    ]
    np.testing.assert_array_equal(np.isnan(out), XS < 0)
    chosen = xstack.vmap(c.checkify(lambda p, x: lax.cond(p, positive, lambda v: v, x)))
    assert chosen(XS > 0, XS)[0].get() is None


def test_a_function_with_checks_is_differentiated_as_the_function():
    for fun in (summed, lambda xs: own_slope(xs[0]), lambda xs: own_pullback(xs[1])):
        got = xstack.grad(lambda xs, fun=fun: c.checkify(fun)(xs)[1])(-XS[2:])
        np.testing.assert_array_equal(got, xstack.grad(fun)(-XS[2:]))


def test_an_error_is_a_tree_of_arrays_that_programs_carry_and_raise():
    def guarded(x):
        error, out = c.checkify(positive)(x)
        c.check_error(error)
        return error, out

    error, _ = xstack.jit(guarded)(1.0)
    assert error.get() is None and "Error(None)" in repr(error)
    for call in (guarded, xstack.jit(guarded)):
        with pytest.raises(c.JaxRuntimeError, match=r"x is -2.0, not positive"):
            call(-2.0)
    assert first_line(c.checkify(guarded)(-2.0)[0]) is not None
    with pytest.raises(xstack.errors.ConcretizationTypeError, match="known while tracing"):
        xstack.jit(lambda x: c.checkify(positive)(x)[0].get())(1.0)


def test_every_dtype_is_shown_and_many_values():
    for dtype in ("bool", "int8", "uint64", "int64", "float16", "bfloat16", "float64", "complex64"):
        with xstack.enable_x64():
            value = xnp.asarray([1, 0], dtype)
            error, _ = xstack.jit(c.checkify(lambda v: c.check(v[1] == 1, "{} {n}", v, n=v[0])))(
                value
            )
            shown = f"{np.asarray(value)} {np.asarray(value)[0]}"
            assert error.get().startswith(shown + " ("), dtype


def test_error_if_gives_its_argument_and_debug_check_is_for_checkify_alone():
    f = xstack.jit(lambda x: error_if(x, x > 3, "too large: {}", x) * 2)
    assert f(2.0) == 4.0
    with pytest.raises(c.JaxRuntimeError, match=r"too large: 4.0.*\n  where     test_checkify.py"):
        f(4.0)

    def g(x):
        c.debug_check(x < 3, "debug")
        return x

    assert g(4.0) == xstack.jit(g)(4.0) == 4.0
    assert first_line(c.checkify(g)(4.0)[0]) == "debug"


def test_wrong_checks_are_refused():
    for call, error, text in [
        (lambda: c.check(1.0, "text"), TypeError, "predicate must be boolean.\n  got       "),
        (lambda: c.check(True, 3), TypeError, "the text must be a string"),
        (lambda: c.check(True, "{a}", b=1), ValueError, "does not fit its arguments"),
        (lambda: c.check(True, "{a}"), KeyError, "does not fit its arguments"),
        (lambda: c.check(True, "{}"), IndexError, "does not fit its arguments"),
        (lambda: c.checkify(positive, errors=frozenset(["x"])), ValueError, "unknown kind"),
        (lambda: c.checkify(positive, errors=3), TypeError, "errors must be a set of checks"),
        (lambda: c.check_error(3), TypeError, "must be one of checkify"),
    ]:
        with pytest.raises(error) as caught:
            call()
        assert text in str(caught.value)


def test_a_primitive_of_ones_own_says_what_is_checked():
    none = undefined("it is for tests")
    part = Primitive(
        "test_part_over", shape=lambda x, *_: (shaped_array((), x.dtype),),
        numpy=lambda x, place, y: (x[min(int(place[0]), len(x) - 1)] / y,), stablehlo=none,
        jvp=none, transpose=none, batch=none, divisor=Operand(2),
        windows=lambda x, place, y: (place, (0,), (1,)),
    )  # fmt: skip
    checked = c.checkify(lambda x, k, y: part.bind(x, k, y)[0], c.div_checks | c.index_checks)
    two, zero = np.float32(2), np.float32(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        for place, divisor, text in [
            (3, two, None),
            (3, zero, "division by zero"),
            (4, two, "out-of-bounds indexing for array of shape (4,): index 4 is out of bounds for "
                     "axis 0 with size 4."),
        ]:  # fmt: skip
            error, _ = checked(XS, np.int32([place]), divisor)
            assert first_line(error) == text


@pytest.mark.parametrize("read", [
    lambda x: x[5], lambda x: x[xnp.asarray(5)], lambda x: x[xnp.asarray([5])],
    lambda x: x.at[5].set(2.0), lambda x: xstack.jit(lambda x: x[5])(x), lambda x: x[:, None][5, 0],
])  # fmt: skip
def test_a_position_that_is_known_to_be_out_of_bounds_is_a_failure_beside_the_result(read):
    x = xnp.ones(2)
    error, out = c.checkify(read, errors=c.index_checks)(x)
    assert "index 5 is out of bounds for axis 0 with size 2" in error.get()
    none, same = c.checkify(read, errors=c.float_checks)(x)
    assert none.get() is None
    np.testing.assert_array_equal(same, out)
    with pytest.raises(IndexError):
        read(x)


def test_an_error_of_each_turn_of_a_loop_is_raised_without_its_number():
    def checked(carry, x):
        error, y = c.checkify(positive)(x)
        return carry, (y, error)

    def f(xs):
        _, (ys, errors) = lax.scan(checked, None, xs)
        c.check_error(errors)
        return ys

    error, _ = c.checkify(f)(XS)
    assert error.get().startswith("x is -3.0, not positive (at mapped index 2)")


def test_sorting_makes_no_nan():
    x = xnp.asarray(np.float32([1, np.nan]))
    assert c.checkify(lambda x: xnp.sort(x), errors=c.nan_checks)(x)[0].get() is None


def test_a_debug_check_takes_one_boolean():
    with pytest.raises(TypeError, match="debug_check: the predicate must be one boolean"):
        c.debug_check(xnp.array([True, False]), "no")
    with pytest.raises(TypeError, match=r"pred.all\(\) holds where all of them do"):
        c.checkify(lambda x: c.debug_check(x > 0, "no"))(xnp.ones(2))
    error, _ = c.checkify(xstack.vmap(lambda x: c.debug_check(x > 0, "no")))(xnp.array([1.0, -1.0]))
    assert "no" in error.get()
