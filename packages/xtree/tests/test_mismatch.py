"""Trees that do not fit: the errors name the place and the difference."""

from __future__ import annotations

from collections import OrderedDict, defaultdict

import pytest
from tree_samples import Equal, Pair, Point

import xtree


def first_lines(prefix, tree):
    with pytest.raises(xtree.StructureMismatchError) as error:
        xtree.structure(prefix).flatten_up_to(tree)
    return str(error.value)


@pytest.mark.parametrize(
    ("prefix", "tree", "expected"),
    [
        (
            [1],
            (1,),
            ["different types", "got       the tree: a tuple of length 1", "a list of length 1"],
        ),
        (
            {"a": [1, 2]},
            {"a": [1]},
            ["at ['a']: different lengths", "the tree['a']: a list of length 1"],
        ),
        ({"a": 1, "b": 2}, {"a": 1}, ["different keys", "without the keys ['b']"]),
        ({"a": 1}, {"a": 1, "c": 2}, ["different keys", "with the additional keys ['c']"]),
        ({"a": 1}, {"b": 1}, ["without the keys ['a'] and with the additional keys ['b']"]),
        (
            (1, None),
            (1, 2),
            ["at [1]: different types", "expected  None", "is_leaf=lambda x: x is None"],
        ),
        ((1, [2]), (1, None), ["at [1]: different types", "the tree[1]: None", "is_leaf"]),
        ({"a": 1}, OrderedDict(a=1), ["different types", "expected  a dict"]),
        (
            OrderedDict(a=1, b=2),
            OrderedDict(b=1, a=2),
            ["different metadata of OrderedDict", "('b', 'a')"],
        ),
        (defaultdict(int, a=1), defaultdict(list, a=1), ["different metadata of defaultdict"]),
        ([Pair(1, 2, "x")], [Pair(1, 2, "y")], ["at [0]: different metadata of Pair", "'y'"]),
        (Point(1, [2]), Point(1, 2), ["at .y: different types"]),
        ((1, 2), 3, ["got       the tree: an int, 3"]),
    ],
)
def test_the_error_names_the_place_and_the_difference(prefix, tree, expected):
    text = first_lines(prefix, tree)
    assert all(part in text for part in expected), text


def test_subtrees_lie_at_the_leaves():
    prefix = {"a": 0, "b": [0, None, Pair(0, 0)]}
    tree = {"b": [(1, 2), None, Pair([3], 4)], "a": {"x": 5}}
    assert xtree.structure(prefix).flatten_up_to(tree) == [{"x": 5}, (1, 2), [3], 4]
    assert xtree.structure(0).flatten_up_to(tree) == [tree]
    assert xtree.structure({}).flatten_up_to({}) == []
    assert xtree.structure({"k": 0}).flatten_up_to({"k": [1]}) == [[1]]


def test_metadata_that_is_equal_fits():
    assert xtree.structure(Pair(1, 2, 1)).flatten_up_to(Pair(3, 4, True)) == [3, 4]
    assert xtree.structure(Pair(1, 2, Equal("a"))).flatten_up_to(Pair(3, 4, Equal("b"))) == [3, 4]


def test_metadata_that_cannot_be_compared_is_reported():
    class Ambiguous:
        def __eq__(self, other):
            raise ValueError("ambiguous")

        __hash__ = object.__hash__

    with pytest.raises(xtree.MalformedNodeError, match="Ambiguous cannot be compared") as error:
        xtree.structure(Pair(1, 2, Ambiguous())).flatten_up_to(Pair(1, 2, Ambiguous()))
    assert "arrays belong among the children" in str(error.value)


def test_a_different_number_of_children_of_a_class_is_reported():
    class Many:
        def __init__(self, *items):
            self.items = items

    xtree.register_pytree_node(Many, lambda m: (m.items, None), lambda d, c: Many(*c))
    assert "3 children of" in first_lines(Many(1, 2), Many(1, 2, 3))


def test_a_failing_repr_does_not_hide_the_error():
    class Silent:
        def __repr__(self):
            raise ValueError

    assert "a Silent, <Silent object whose repr fails>" in first_lines([1], Silent()).replace(
        "test_a_failing_repr_does_not_hide_the_error.<locals>.", ""
    )


def test_a_long_repr_is_cut():
    assert "..." in first_lines([1], "x" * 1000)


def test_deep_trees_are_compared_too():
    def nested(depth, leaf):
        for _ in range(depth):
            leaf = [leaf, 0]
        return leaf

    treedef = xtree.structure(nested(300, 0))
    assert treedef.flatten_up_to(nested(300, 1)) == [1] + [0] * 300
    with pytest.raises(xtree.StructureMismatchError, match=r"\[0\]: different types"):
        treedef.flatten_up_to(nested(299, 1))


def test_all_places_of_a_prefix_are_told():
    mismatches = xtree.prefix_errors((0, [0], {"a": 0}), (0, [0, 1], {"b": 0}))
    assert [xtree.keystr(m.path) for m in mismatches] == ["[1]", "[2]"]
    assert xtree.prefix_errors((0, None), (1, [2]), is_leaf=lambda x: x is None) == []
    text = str(mismatches[0].error("vmap", "in_axes", "args"))
    assert text.startswith("vmap: in_axes and args differ at [1]: different lengths.")


def test_broadcast_prefix_repeats_each_leaf():
    full = ([1, 2], {"a": 3, "b": (4, None)})
    assert xtree.broadcast_prefix((0, "x"), full) == [0, 0, "x", "x"]
    assert xtree.broadcast_prefix(7, full) == [7] * 4
    assert xtree.broadcast_prefix((None, 1), full, is_leaf=lambda x: x is None) == [
        None,
        None,
        1,
        1,
    ]
    with pytest.raises(
        xtree.StructureMismatchError, match="broadcast: the prefix and the full tree"
    ):
        xtree.broadcast_prefix((0, 0, 0), full)
