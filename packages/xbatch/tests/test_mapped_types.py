"""Types that vmap maps by functions of their own."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xtree
from xbatch import is_vmappable, register_vmappable, unregister_vmappable, vmap
from xnp import numpy as xnp


@dataclass
class State:
    """Positions differ among examples, the table is one for all."""

    position: Any
    table: Any


@dataclass
class Pair:
    left: Any
    right: Any


@dataclass(frozen=True)
class Axes:
    left: int | None
    right: int | None


class Count:
    def __init__(self, n):
        self.n = n

    def __index__(self):
        return self.n


def _state_element(element, number, x, axis):
    return State(element(x.position, axis), x.table)


def _whole_state(whole, size, x, axis):
    return State(whole(size, x.position, axis), x.table)


def _pair_element(element, number, x, axes):
    axes = axes or Axes(None, None)
    return Pair(element(x.left, axes.left), element(x.right, axes.right))


def _whole_pair(whole, size, x, axes):
    return Pair(whole(size, x.left, axes.left), whole(size, x.right, axes.right))


@pytest.fixture(autouse=True)
def types():
    register_vmappable(State, int, int, _state_element, _whole_state)
    register_vmappable(
        Pair, Axes, Count, _pair_element, _whole_pair, lambda size: size.n - np.arange(size.n)
    )
    yield
    unregister_vmappable(State)
    unregister_vmappable(Pair)
    assert not is_vmappable(State(1, 2))


def _close(x, y):
    np.testing.assert_allclose(np.asarray(x), y, rtol=1e-6)  # a few roundings of float32


P, T = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.float32([10.0, 20.0])


def test_what_an_object_does_not_map_is_one_for_all_examples():
    def f(s, k):
        assert s.position.shape == s.table.shape == (2,)
        return State(s.position * k + s.table, s.table), s.position.sum()

    state, total = vmap(f)(State(P, T), np.float32([1, 2, 3]))
    _close(state.position, P * [[1], [2], [3]] + T)
    assert state.table is T
    _close(total, P.sum(1))


def test_axes_in_and_out_are_those_of_the_entry():
    out = vmap(lambda s: State(s.position * 2, s.table), 1, -1, axis_size=2)(State(P, T))
    _close(out.position, P * 2)
    out = vmap(lambda s: State(s.position * 2, s.table), -1, axis_size=2)(State(P, T))
    _close(out.position, P.T * 2)
    out = vmap(lambda s: s, None, None, axis_size=2)(State(P, T))
    _close(out.position, P)


def test_entries_may_be_of_a_type_of_their_own():
    x = Pair(P, P.T)
    f = vmap(lambda p: Pair(p.left + p.right, p.left), (Axes(0, 1),), Axes(1, 0), axis_size=3)
    out = f(x)
    _close(out.left, (P + P).T)
    _close(out.right, P)
    whole = vmap(lambda p: p.left, Axes(1, None), axis_size=2)(x)
    _close(whole, P.T)


def test_objects_stand_in_trees_beside_arrays_and_in_keywords():
    tree = {"state": State(P, T), "scale": np.float32([1, 2, 3])}
    out = vmap(lambda t, *, s: {"a": (t["state"], t["scale"] * s.position.sum())})(
        tree, s=State(P, T)
    )
    _close(out["a"][0].position, P)
    _close(out["a"][1], P.sum(1) * [1, 2, 3])
    out = vmap(
        lambda t: t["state"].position * t["scale"], ({"state": 0, "scale": None},), axis_size=3
    )({**tree, "scale": 2.0})
    _close(out, P * 2)


def test_maps_nest_and_objects_hold_objects():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    out = vmap(
        vmap(lambda s: State(s.position.sum() * s.table, s.table), axis_size=3), axis_size=2
    )(State(x, 2.0))
    _close(out.position, x.sum(-1) * 2)
    inner = Pair(State(P, T), P)

    def pair_of_states(element, number, p, axes):
        return Pair(element(p.left, 0), element(p.right, None))

    register_vmappable(Pair, int, int, pair_of_states,
                       lambda whole, size, p, d: Pair(whole(size, p.left, d), p.right))  # fmt: skip
    out = vmap(lambda p: Pair(p.left, p.right), axis_size=3)(inner)
    _close(out.left.position, P)
    assert out.right is P


def test_the_number_of_the_example_is_counted_from_the_size_given():
    seen = []

    def element(element, number, x, axes):
        seen.append(number().shape)
        return Pair(number(), x.right)

    register_vmappable(State, int, int, lambda e, number, x, axis: State(number(), 0), _whole_state)
    _close(vmap(lambda s: s.position * 2, axis_size=3)(State(P, T)), [0, 2, 4])
    register_vmappable(
        Pair, Axes, Count, element, _whole_pair, lambda size: size.n - np.arange(size.n)
    )
    _close(vmap(lambda p: p.left, Axes(0, 0), axis_size=Count(4))(Pair(P, P)), [4, 3, 2, 1])
    assert seen == [()]


def test_a_type_that_is_also_a_node_is_mapped_by_its_functions():
    class Node:
        def __init__(self, a, b):
            self.a, self.b = a, b

    xtree.register_pytree_node(Node, lambda n: ((n.a, n.b), None), lambda _, c: Node(*c))
    assert vmap(lambda n: n.a + n.b)(Node(T, T)).shape == (2,)
    register_vmappable(Node, int, int, lambda e, number, n, axis: Node(e(n.a, axis), n.b),
                       lambda whole, size, n, axis: Node(whole(size, n.a, axis), n.b))  # fmt: skip
    assert vmap(lambda n: n.a + n.b, axis_size=2)(Node(T, T)).shape == (2, 2)
    unregister_vmappable(Node)
    assert vmap(lambda n: n.a + n.b)(Node(T, T)).shape == (2,)


def test_errors_say_what_does_not_fit():
    f = vmap(lambda s: s.position)
    with pytest.raises(ValueError, match="no argument is mapped"):
        f(State(P, T))
    with pytest.raises(ValueError, match="no 5 examples along axis 0"):
        vmap(lambda s: s.position, axis_size=5)(State(P, T))
    with pytest.raises(TypeError, match="in_axes for a Pair must be of type Axes"):
        vmap(lambda p: p.left, axis_size=3)(Pair(P, P))
    with pytest.raises(TypeError, match="in_axes for an array must be of type int"):
        vmap(lambda p: p, Axes(0, 0), axis_size=3)(P)
    with pytest.raises(TypeError, match="out_axes for a Pair must be of type Axes"):
        vmap(lambda x: Pair(x, x))(P)
    with pytest.raises(ValueError, match="out_axes is None"):
        vmap(lambda s: s, out_axes=None, axis_size=3)(State(P, T))
    with pytest.raises(TypeError, match="the result at \\['a'\\]"):
        vmap(lambda s: {"a": "text", "s": s}, axis_size=3)(State(P, T))
    with pytest.raises(TypeError, match="data_type must be a type"):
        register_vmappable(3, int, int, _state_element, _whole_state)
    with pytest.raises(TypeError, match="from_elt must be a function"):
        register_vmappable(State, int, int, _state_element, None)


def test_functions_that_map_no_object_are_as_before():
    assert vmap(lambda x: xnp.sum(x))(P).shape == (3,)
    assert vmap(lambda x, y: (x, y), (0, None), (0, None))(P, 2)[1] == 2
