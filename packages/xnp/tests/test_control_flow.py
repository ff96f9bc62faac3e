"""Control flow evaluated eagerly: meaning, weak types, errors, dead code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtree
from xnp import lax
from xnp.lax import control_flow_staging
from xprim import as_array, check_jaxpr, config, eval_closed, make_jaxpr, remove_dead_code


def _values(tree: Any) -> list[Any]:
    return [np.asarray(x).tolist() for x in xtree.leaves(tree)]


def test_cond_runs_the_branch_that_the_predicate_chooses() -> None:
    for pred in (True, False, np.True_, 1, 0, 2.5, np.float32(0)):
        found = lax.cond(pred, lambda a, b: {"r": a + b}, lambda a, b: {"r": a - b}, 5, 3)
        assert _values(found) == [8 if pred else 2]


def test_cond_takes_one_operand_by_keyword() -> None:
    assert _values(lax.cond(True, lambda x: x[0], lambda x: x[1], operand=(1, 2))) == [1]
    with pytest.raises(TypeError, match="by position or as operand="):
        lax.cond(True, lambda x: x, lambda x: x, 1, operand=2)


@pytest.mark.parametrize("index", [-7, 0, 1, 2, 9, np.uint8(1), np.int64(2), np.uint8(255)])
def test_switch_clamps_its_index(index: Any) -> None:
    branches = [lambda x: x, lambda x: x + 1, lambda x: x * x]
    expected = [5, 6, 25][min(max(int(index), 0), 2)]
    assert _values(lax.switch(index, branches, 5)) == [expected]


def test_switch_of_one_branch_calls_it() -> None:
    assert _values(lax.switch(3, [lambda x: x + 1], 5)) == [6]
    with pytest.raises(ValueError, match="switch: there must be at least one branch"):
        lax.switch(0, [], 5)


def test_while_loop_repeats_while_its_condition_holds() -> None:
    i, total = lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] + s[0]), (0, 0))
    assert (int(i), int(total)) == (5, 10)
    assert int(lax.while_loop(lambda s: s < 0, lambda s: s + 1, 3)) == 3


@pytest.mark.parametrize("upper", [4, np.int32(4)])
def test_a_counter_from_a_python_number_leaves_other_dtypes_alone(upper):
    def total(start):
        return lax.fori_loop(0, upper, lambda i, total: as_array(total) + i, start)

    for start in (np.int8(0), np.float16(0), as_array(0)):
        result = total(start)
        assert result.dtype == start.dtype and int(result) == 6
    assert total(0).aval.weak_type


def test_a_carry_is_strong_after_any_number_of_steps_if_the_body_returns_a_strong_one():
    for steps in (0, 1, 2):
        xs = as_array(np.ones(steps, np.float32))
        carry, ys = lax.scan(lambda c, x: (c + x, c * as_array(np.float16(2))), 1.0, xs)
        assert not carry.aval.weak_type
        assert ys.dtype == np.float32  # a weak carry would have left it float16


def test_fori_loop_counts_in_the_dtype_of_its_bounds() -> None:
    assert int(lax.fori_loop(2, 5, lambda i, t: t + i, 0)) == 9
    assert int(lax.fori_loop(5, 2, lambda i, t: t + i, 7)) == 7
    seen: list[Any] = []
    lax.fori_loop(np.uint8(1), np.uint8(3), lambda i, t: (seen.append(i.dtype), t)[1], 0)
    assert seen[0] == np.uint8


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, True, 100])
def test_scan_is_a_loop_with_a_carry(reverse: bool, unroll: int | bool) -> None:
    xs = {"a": np.arange(5), "b": np.arange(10.0).reshape(5, 2).astype(np.float32)}

    def step(c: Any, x: Any) -> Any:
        c = c * 2 + x["a"]
        return c, (c, x["b"].sum())

    carry, ys = lax.scan(step, 1, xs, reverse=reverse, unroll=unroll)
    expected, rows = 1, {}
    for i in reversed(range(5)) if reverse else range(5):
        expected = expected * 2 + i
        rows[i] = expected
    assert int(carry) == expected
    assert _values(ys) == [[rows[i] for i in range(5)], xs["b"].sum(1).tolist()]


def test_scan_without_arrays_takes_a_length() -> None:
    carry, ys = lax.scan(lambda c, _: (c + 1, c), 0, None, 4)
    assert _values((carry, ys)) == [4, [0, 1, 2, 3]]
    carry, ys = lax.scan(lambda c, x: (c + x, c), 0, np.zeros(0, np.int32))
    assert _values((carry, ys)) == [0, []]


def test_map_applies_a_function_to_each_element() -> None:
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(lax.map(lambda v: v * v, x)), x * x)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_combines_all_before(size: int, reverse: bool) -> None:
    x = np.random.RandomState(0).randint(0, 9, (3, size))
    found = lax.associative_scan(lax.add, x, reverse=reverse, axis=1)
    expected = x[:, ::-1].cumsum(1)[:, ::-1] if reverse else x.cumsum(1)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_associative_scan_of_a_pair_composes_affine_maps_in_order() -> None:
    a, b = np.float32([2, 3, 4]), np.float32([1, 1, 1])
    found = lax.associative_scan(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), (a, b))
    assert _values(found) == [[2, 6, 24], [1, 4, 17]]


def test_a_weak_carry_takes_the_type_that_the_body_returns() -> None:
    half = np.float32(0.5)
    assert lax.fori_loop(0, 3, lambda i, c: c + half, 0).dtype == np.float32
    assert lax.while_loop(lambda c: c < 2, lambda c: c + half, 0).dtype == np.float32
    assert lax.scan(lambda c, x: (c + x, None), 0, np.ones(3, np.float16))[0].dtype == np.float16


@pytest.mark.parametrize("is_weak", [False, True])
def test_results_of_branches_are_weak_where_those_of_the_first_are(is_weak: bool) -> None:
    strong = lambda: np.float32(2)  # noqa: E731
    first, other = ((lambda: 1.5), strong) if is_weak else (strong, (lambda: 1.5))
    for index in (0, 1):
        assert lax.cond(bool(index), other, first).weak_type == is_weak
        assert lax.switch(index, [first, other]).weak_type == is_weak
    check_jaxpr(make_jaxpr(lambda p: lax.cond(p, other, first))(True).jaxpr)


def test_control_flow_runs_as_python_when_jit_is_disabled() -> None:
    seen: list[int] = []
    with config.disable_jit(True):
        lax.fori_loop(0, 3, lambda i, c: (seen.append(int(i)), c)[1], 0)
        carry, ys = lax.scan(lambda c, x: (c + x, c), 0, np.arange(4), reverse=True)
        assert int(lax.while_loop(lambda c: c < 5, lambda c: c + 2, 0)) == 6
        assert int(lax.cond(False, lambda: 1, lambda: 2)) == 2
        assert int(lax.switch(1, [lambda: 1, lambda: 2])) == 2
    assert seen == [0, 1, 2]
    assert _values((carry, ys)) == [6, [6, 5, 3, 0]]


def test_an_equal_function_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[Any] = []
    original = control_flow_staging._trace

    def counting(fun: Any, *args: Any) -> Any:
        traced.append(fun)
        return original(fun, *args)

    monkeypatch.setattr(control_flow_staging, "_trace", counting)
    for _ in range(3):
        lax.scan(lambda c, x: (c + x * 17, None), np.int32(0), np.arange(3))
    assert len(traced) == 1
    lax.scan(lambda c, x: (c + x * 17, None), 0, np.arange(3, dtype=np.float32))
    assert len(traced) > 1


def test_platform_dependent_chooses_by_platform() -> None:
    found = lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x)
    assert int(found) == 4
    assert int(lax.platform_dependent(3, tpu=lambda x: x + 1, default=lambda x: x)) == 3
    with pytest.raises(ValueError, match="no function for the platform 'cpu'"):
        lax.platform_dependent(3, tpu=lambda x: x + 1, cuda=lambda x: x)


# --- errors ------------------------------------------------------------------------------------

ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: lax.scan(lambda c, x: ({"a": c["a"] + 1.5}, x), {"a": np.int32(1)}, np.arange(3)),
        TypeError,
        r"scan: the body must return a carry of the types(.|\n)*got +carry\['a'\]: float32\[\]"
        r"(.|\n)*expected +carry\['a'\]: int32\[\]",
    ),
    (
        lambda: lax.scan(lambda c, x: ((c, c), x), 0, np.arange(3)),
        TypeError,
        r"scan: the body must return a carry of the structure",
    ),
    (
        lambda: lax.scan(lambda c, x: c + x, 0, np.arange(3)),
        TypeError,
        r"scan: the body must return a pair",
    ),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0, {"a": np.ones(3), "b": np.ones(4)}),
        ValueError,
        r"leading dimensions of xs(.|\n)*xs\['a'\]: float32\[3\], xs\['b'\]: float32\[4\]",
    ),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0, np.ones(3), length=4),
        ValueError,
        r"leading dimensions of xs(.|\n)*length=4",
    ),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0, np.float32(3)),
        ValueError,
        r"every array of xs needs a leading dimension(.|\n)*xs: float32\[\]",
    ),
    (lambda: lax.scan(lambda c, x: (c, x), 0), ValueError, r"must be said by xs or length"),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0, np.ones(3), unroll=-1),
        ValueError,
        r"scan: unroll must be 'auto', a bool or an integer that is",
    ),
    (lambda: lax.scan(3, 0, np.ones(3)), TypeError, r"scan: the body must be a function"),
    (
        lambda: lax.cond(True, lambda x: x, lambda x: (x, x), 1),
        TypeError,
        r"cond: the branches must return results of the same structure",
    ),
    (
        lambda: lax.cond(True, lambda x: [x], lambda x: [x + 1.5], 1),
        TypeError,
        r"same types(.|\n)*result\[0\]: float32\[\] in false_fun, int32\[\] in true_fun",
    ),
    (
        lambda: lax.cond(np.ones(2), lambda: 1, lambda: 2),
        TypeError,
        r"cond: the predicate must be a scalar",
    ),
    (
        lambda: lax.cond(lambda: 1, lambda: 1, lambda: 2),
        TypeError,
        r"cond: the predicate must be a scalar, got a function",
    ),
    (
        lambda: lax.switch(0.5, [lambda: 1, lambda: 2]),
        TypeError,
        r"switch: the index must be an integer scalar",
    ),
    (
        lambda: lax.while_loop(lambda c: c, lambda c: c + 1, 0),
        TypeError,
        r"while_loop: cond_fun must return a boolean scalar(.|\n)*int32\[\]",
    ),
    (
        lambda: lax.while_loop(lambda c: (c < 1, c), lambda c: c + 1, 0),
        TypeError,
        r"while_loop: cond_fun must return a boolean scalar(.|\n)*structure",
    ),
    (
        lambda: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0], c[1][:1]), (0, np.ones(2))),
        TypeError,
        r"while_loop: body_fun must return a carry of the types(.|\n)*carry\[1\]: float32\[1\]",
    ),
    (
        lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 0),
        TypeError,
        r"fori_loop: upper must be an integer scalar",
    ),
    (
        lambda: lax.fori_loop(0, 2, lambda i, c: (c, c), 0),
        TypeError,
        r"fori_loop: body_fun must return a carry of the structure",
    ),
    (
        lambda: make_jaxpr(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3),
        ValueError,
        r"fori_loop: .*Can only use `unroll` with bounds that are known",
    ),
    (
        lambda: lax.associative_scan(lax.add, np.ones(3), axis=1),
        ValueError,
        r"associative_scan: axis 1 is out of range",
    ),
    (lambda: lax.map(lambda x: x, np.ones(3), batch_size=-1), ValueError, r"must not be negative"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_mistakes_are_explained(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# --- dead code ---------------------------------------------------------------------------------


def _live(fun: Callable[..., Any], *args: Any) -> Any:
    jaxpr, _ = remove_dead_code(make_jaxpr(fun)(*args).jaxpr)
    check_jaxpr(jaxpr)
    return {eqn.primitive.name: eqn for eqn in jaxpr.eqns}


def test_dead_parts_of_a_scan_are_dropped() -> None:
    def used(xs: Any, unused: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            a, b, d = c
            return (a + x[0], b * a, lax.sin(d) + x[1]), (b, d)

        return lax.scan(step, (np.float32(0), np.float32(1), np.float32(2)), (xs, unused))[0][0]

    eqn = _live(used, np.ones(3, np.float32), np.ones(3, np.float32))["scan"]
    assert eqn.params["num_carry"] == 1
    assert len(eqn.inputs) == 2
    assert len(eqn.outputs) == 1
    assert [e.primitive.name for e in eqn.params["jaxpr"].eqns] == ["add"]


def test_a_while_loop_keeps_what_its_condition_needs() -> None:
    def used(x: Any) -> Any:
        step = lambda s: (s[0] + 1, s[1] * s[1], lax.sin(s[2]))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < 3, step, (0, x, x))[1]

    eqn = _live(used, np.ones(3, np.float32))["while"]
    assert [e.primitive.name for e in eqn.params["body_jaxpr"].eqns] == ["add", "mul"]


def test_dead_results_of_branches_are_dropped() -> None:
    def used(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(p, lambda x, y: (x, y), lambda x, y: (lax.sin(x), x), x, y)[0]

    eqn = _live(used, True, np.ones(3, np.float32), np.zeros(3, np.float32))["cond"]
    assert len(eqn.inputs) == 2
    assert len(eqn.outputs) == 1


def test_without_jit_what_is_traced_is_chosen_as_with_it():
    x = np.array([1, 4])
    programs = [
        lambda n: lax.cond(n > 2, lambda: 5, lambda: 7),
        lambda n: lax.switch(n, [lambda: 5, lambda: 7, lambda: 8]),
        lambda n: lax.while_loop(lambda x: x < 10, lambda x: 2 * x, n),
        lambda n: lax.fori_loop(0, n, lambda i, x: x + i, 1),
    ]
    for program in programs:
        expected = [np.asarray(program(n)) for n in x]
        with config.disable_jit(True):
            closed = make_jaxpr(program)(x[0])
        np.testing.assert_array_equal([eval_closed(closed, as_array(n))[0] for n in x], expected)
