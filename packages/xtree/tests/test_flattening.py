"""Flatten, leaves, structure, and what they refuse."""

from __future__ import annotations

import collections
import enum
import sys
import threading
from collections import OrderedDict

import pytest
from tree_samples import TREES, Equal, Pair, Point

import xtree


@pytest.mark.parametrize("name", TREES)
def test_a_round_trip_gives_the_tree_back(name):
    tree = TREES[name]
    leaves, treedef = xtree.flatten(tree)
    rebuilt = xtree.unflatten(treedef, leaves)
    assert type(rebuilt) is type(tree)
    if name != "partial":
        assert rebuilt == tree
    assert len(leaves) == treedef.num_leaves
    assert xtree.structure(rebuilt) == treedef


@pytest.mark.parametrize("name", TREES)
def test_the_walk_agrees_with_the_fast_path(name):
    tree = TREES[name]
    leaves, treedef = xtree.flatten(tree)
    assert xtree.flatten(tree, is_leaf=lambda x: False) == (leaves, treedef)
    pairs, with_path = xtree.flatten_with_path(tree)
    assert [leaf for _, leaf in pairs] == leaves and with_path == treedef


@pytest.mark.parametrize("name", TREES)
def test_the_compiled_path_agrees_with_the_fast_path(name):
    tree = TREES[name]
    first = xtree.flatten(tree)
    for _ in range(200):
        leaves, treedef = xtree.flatten(tree)
        again = treedef.unflatten(leaves)
        assert (leaves, treedef) == first
    assert xtree.flatten(again) == first
    assert treedef.flatten_up_to(tree) == leaves


def test_a_compiled_structure_is_not_mistaken_for_another():
    usual = {"w": [1, (2, None)], "b": 3, "p": Point(4, 5), "q": Pair(6, 7, 1)}
    others = [
        {**usual, "w": (1, (2, None))},
        {**usual, "w": [1, (2, 3)]},
        {**usual, "w": [1, (2, None), 3]},
        {**usual, "b": [3]},
        {**usual, "p": (4, 5)},
        {**usual, "q": Pair(6, 7, True)},
        {**usual, "q": Pair(6, [7], 1)},
        {**usual, "w": [1, {"a": 2}]},
    ]
    for other in others:
        for _ in range(100):
            _, treedef = xtree.flatten(usual)
        assert treedef.match is not None
        leaves, different = xtree.flatten(other)
        assert different != treedef
        assert different.unflatten(leaves) == other
        assert xtree.flatten(usual)[1] is treedef


@pytest.mark.parametrize("name", TREES)
def test_a_flattener_agrees_with_flatten_however_often_it_met_the_structure(name):
    flatten = xtree.flattener()
    for _ in range(200):
        assert flatten(TREES[name]) == xtree.flatten(TREES[name])
    for other in TREES.values():
        assert flatten(other) == xtree.flatten(other)
    assert flatten(TREES[name]) == xtree.flatten(TREES[name])


def test_a_flattener_compiles_the_structure_of_its_place():
    layers = [(1, 2), (3, 4)]
    flatten = xtree.flattener()
    before = flatten(layers)[1]
    assert before.match is None
    for _ in range(100):
        leaves, treedef = flatten(layers)
    assert (leaves, treedef) == ([1, 2, 3, 4], before)
    assert treedef.match is not None


def test_a_nested_dict_with_other_keys_is_not_mistaken_for_the_compiled_one():
    for _ in range(100):
        xtree.flatten({"outer": {"a": 1, "b": 2}, "x": 1})
    assert xtree.leaves({"outer": {"a": 1, "c": 2}, "x": 1}) == [1, 2, 1]
    assert xtree.leaves({"outer": {"a": 1}, "x": 1}) == [1, 1]


def test_string_enum_keys_come_back_as_themselves():
    class Name(enum.StrEnum):
        A = "a"
        B = "b"

    for _ in range(100):
        xtree.flatten({"outer": {"a": 1, "b": [2]}, "x": {"a": 1, "b": 2}})
    leaves, treedef = xtree.flatten({"outer": {Name.A: 1, Name.B: [2]}, "x": {"a": 1, "b": 2}})
    assert [type(key) for key in treedef.unflatten(leaves)["outer"]] == [Name, Name]
    assert treedef != xtree.structure({"outer": {"a": 1, "b": [2]}, "x": {"a": 1, "b": 2}})


def test_dicts_flatten_in_the_order_of_their_keys():
    assert xtree.leaves({"b": 1, "a": 2, "c": 3}) == [2, 1, 3]
    assert xtree.leaves({2: "two", 10: "ten", 1: "one"}) == ["one", "two", "ten"]
    assert xtree.leaves(OrderedDict(b=1, a=2)) == [1, 2]


def test_numbers_of_several_types_are_sorted_as_numbers():
    one = {2: 3, True: 4, 1.5: 5}
    other = dict(reversed(one.items()))
    assert xtree.flatten(one) == xtree.flatten(other)
    assert xtree.leaves(one) == [4, 5, 3]


@pytest.mark.parametrize(
    "tree",
    [
        {1j: 1, 2j: 2},
        {frozenset({1}): 1, frozenset({2}): 2},
        {object(): 1, object(): 2},
        {1: 1, "a": 2},
        {None: 1, "a": 2},
        {(1, 2): 1, "a": 2},
    ],
)
def test_keys_without_an_order_are_refused_by_name(tree):
    with pytest.raises(xtree.KeyOrderError, match="keys of a dict cannot be sorted") as error:
        xtree.flatten([tree])
    assert "OrderedDict" in str(error.value)


def test_one_key_needs_no_order():
    assert xtree.leaves({1j: 1}) == [1]


def test_none_is_a_node_unless_is_leaf_says_otherwise():
    assert xtree.leaves([None, 1]) == [1]
    assert xtree.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert xtree.flatten(None, is_leaf=lambda x: True)[0] == [None]


def test_subclasses_of_containers_are_leaves():
    class MyDict(dict):
        pass

    class MyList(list):
        pass

    class MyTuple(tuple):
        pass

    tree = [MyDict(a=1), MyList([1]), MyTuple((1,))]
    assert xtree.leaves(tree) == tree


def test_subclasses_of_namedtuples_are_nodes_of_their_own():
    class MyPoint(Point):
        pass

    assert type(xtree.map(lambda x: x, MyPoint(1, 2))) is MyPoint
    assert xtree.structure(MyPoint(1, 2)) != xtree.structure(Point(1, 2))


def test_a_deep_tree_is_flattened_whatever_the_recursion_limit():
    tree = 1
    for _ in range(990):
        tree = [tree]
    leaves, treedef = xtree.flatten(tree)
    assert leaves == [1] and treedef.depth == 990
    assert treedef.flatten_up_to(tree) == [1]
    rebuilt = treedef.unflatten([2])
    assert xtree.leaves(rebuilt) == [2]
    assert repr(treedef).count("[") == 990


@pytest.mark.parametrize("limit", [None, 150_000])
def test_a_tree_of_100_000_levels_is_refused(limit):
    tree = 1
    for _ in range(100_000):
        tree = (tree,)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit or before)
    try:
        with pytest.raises(xtree.DepthError, match="more than 1000 levels"):
            xtree.flatten(tree)
        with pytest.raises(xtree.DepthError, match="more than 1000 levels"):
            xtree.flatten_with_path(tree)
    finally:
        sys.setrecursionlimit(before)


def test_a_list_that_contains_itself_is_refused_with_its_place():
    inner: list = [1]
    inner.append({"k": inner})
    with pytest.raises(xtree.DepthError, match="a list contains itself") as error:
        xtree.flatten((0, inner))
    assert "the container at [1] is found again at [1][1]['k']" in str(error.value)
    loop: list = []
    loop.append(loop)
    with pytest.raises(xtree.DepthError, match=r"at the root is found again at \[0\]"):
        xtree.map(abs, loop)


def test_one_object_at_two_places_is_no_cycle():
    shared = [1]
    assert xtree.leaves([shared, {"a": shared}], is_leaf=lambda x: False) == [1, 1]


def test_a_flatten_function_that_returns_no_pair_is_reported():
    class Broken:
        pass

    xtree.register_pytree_node(Broken, lambda x: 7, lambda data, children: Broken())
    with pytest.raises(
        xtree.MalformedNodeError, match=r"flatten .*Broken: .* else than a pair"
    ) as e:
        xtree.flatten([Broken()])
    assert "test_flattening.py:" in str(e.value)


def test_flatten_functions_that_disagree_about_the_children_are_reported():
    class Broken:
        pass

    xtree.register_pytree_node(
        Broken, lambda x: ((1, 2), None), lambda d, c: Broken(), lambda x: ([("a", 1)], None)
    )
    with pytest.raises(xtree.MalformedNodeError, match="disagree about the number") as error:
        xtree.flatten_with_path(Broken())
    assert "1 with keys, 2 without" in str(error.value)


def test_keys_that_are_no_pairs_are_reported():
    class Broken:
        pass

    xtree.register_pytree_node(
        Broken, lambda x: ((1, 2), None), lambda d, c: Broken(), lambda x: ([1, 2], None)
    )
    with pytest.raises(xtree.MalformedNodeError, match="pairs of key and child"):
        xtree.flatten_with_path(Broken())


def test_a_flatten_function_whose_children_change_is_reported():
    class Broken:
        count = 0

    def flatten(value):
        value.count += 1
        return (0,) * (value.count % 2 + 1), None

    xtree.register_pytree_node(Broken, flatten, lambda data, children: Broken())
    broken = Broken()
    with pytest.raises(xtree.MalformedNodeError, match="other children when it was called again"):
        xtree.map(lambda x, y: x, broken, broken)


def test_all_leaves_and_is_tree_node():
    assert xtree.all_leaves([1, "a"]) and not xtree.all_leaves([1, ()])
    assert not xtree.all_leaves([None])
    assert xtree.all_leaves([None], is_leaf=lambda x: x is None)
    assert xtree.is_tree_node(Point) and not xtree.is_tree_node(int)


def test_one_level_is_flattened_with_and_without_keys():
    assert xtree.flatten_one_level([1, [2]]) == ((1, [2]), None)
    assert xtree.flatten_one_level(None) == ((), None)
    pairs, data = xtree.flatten_one_level_with_keys(Pair(1, 2))
    assert pairs == ((xtree.FlattenedIndexKey(0), 1), (xtree.FlattenedIndexKey(1), 2))
    assert data == "pair"
    with pytest.raises(ValueError, match="flatten_one_level: the value is a leaf"):
        xtree.flatten_one_level(1)


def test_a_leaf_type_that_is_registered_later_becomes_a_node():
    class Late:
        pass

    trees = [[Late()] * 8, {"a": Late(), "b": [1]}, Late()]
    flatteners = [xtree.flattener() for _ in trees]
    for tree, flatten in zip(trees, flatteners, strict=True):
        for _ in range(100):
            assert any(isinstance(leaf, Late) for leaf in xtree.leaves(tree))
            flatten(tree)
    xtree.register_static(Late)
    assert [xtree.leaves(tree) for tree in trees] == [[], [1], []]
    assert [f(tree)[0] for f, tree in zip(flatteners, trees, strict=True)] == [[], [1], []]


def test_equal_metadata_comes_back_as_itself():
    kept = xtree.structure(Pair(1, 2, Equal("one")))
    leaves, treedef = xtree.flatten(Pair(1, 2, Equal("two")))
    assert treedef == kept and hash(treedef) == hash(kept)
    assert treedef.unflatten(leaves).name.label == "two"
    for value in (1, 1.0, True, -0.0, 0.0, 0, False):
        leaves, treedef = xtree.flatten(Pair(1, 2, value))
        assert repr(treedef.unflatten(leaves).name) == repr(value)


def test_many_fresh_classes_and_keys_do_not_accumulate():
    for i in range(6000):
        xtree.flatten((type(f"T{i}", (), {})(), {f"k{i}": 1, "z": [1]}))
        xtree.flatten([1, [2], i, i, i, *[0] * (i % 1500)])
    registry = xtree.default_registry
    assert len(registry.flatteners) <= len(registry) + 4100
    treedef = xtree.structure({"a": collections.namedtuple("P", "x")(1)})
    assert treedef.num_leaves == 1


def test_threads_get_the_same_structure():
    trees = [{"k": {"a": i % 7, "b": [i]}, "i": Pair(1, i, str(i))} for i in range(200)]
    results: list = []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait(timeout=60)
        results.append([xtree.structure(tree) for tree in trees])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for structures in results[1:]:
        assert all(a is b for a, b in zip(results[0], structures, strict=True))
