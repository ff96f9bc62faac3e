"""Map, reduce, transpose, broadcast."""

from __future__ import annotations

import pytest
from tree_samples import TREES, Layer, Point

import xtree


@pytest.mark.parametrize("name", TREES)
def test_map_calls_the_function_for_each_leaf(name):
    tree = TREES[name]
    mapped = xtree.map(lambda leaf: ("seen", leaf), tree)
    seen = xtree.leaves(mapped, is_leaf=lambda x: type(x) is tuple and x[:1] == ("seen",))
    assert seen == [("seen", leaf) for leaf in xtree.leaves(tree)]


def test_map_of_several_trees_gives_the_subtrees_of_the_others():
    assert xtree.map(lambda x, y: x + y, (1, [2]), (10, [20])) == (11, [22])
    assert xtree.map(lambda x, y: (x, y), {"a": 1}, {"a": [2, 3]}) == {"a": (1, [2, 3])}
    assert xtree.map(lambda x, y: y, (None, 1), (None, 2)) == (None, 2)


def test_map_names_the_tree_that_differs():
    with pytest.raises(
        xtree.StructureMismatchError, match=r"map: the first tree and tree 3 differ"
    ):
        xtree.map(max, [1, 2], [1, 2], [1, 2, 3])


def test_map_with_is_leaf_treats_none_as_a_leaf():
    replaced = xtree.map(lambda x: 0 if x is None else x, [None, 1], is_leaf=lambda x: x is None)
    assert replaced == [0, 1]


def test_reduce_combines_from_left_to_right():
    assert xtree.reduce(lambda a, b: f"({a}{b})", ["a", ("b", "c")]) == "((ab)c)"
    assert xtree.reduce(lambda a, b: a + b, [1, 2], 10) == 13
    assert xtree.reduce(lambda a, b: a + b, [], None) is None
    assert xtree.reduce(lambda a, b: a + b, [[1], [2]], [], is_leaf=lambda x: x in ([1], [2])) == [
        1,
        2,
    ]
    with pytest.raises(TypeError, match="reduce: the tree has no leaves"):
        xtree.reduce(lambda a, b: a, [None])


def test_reduce_associative_is_balanced():
    def join(a, b):
        return f"({a}{b})"

    assert xtree.reduce_associative(join, list("abcde")) == "((ab)(c(de)))"
    assert xtree.reduce_associative(join, "a") == "a"
    assert xtree.reduce_associative(join, [], identity=None) is None
    with pytest.raises(TypeError, match="reduce_associative: the tree has no leaves"):
        xtree.reduce_associative(join, [])


def test_all_says_whether_every_leaf_is_true():
    assert xtree.all({"a": 1, "b": [True, None]}) is True
    assert xtree.all([1, 0]) is False
    assert xtree.all([1, None], is_leaf=lambda x: x is None) is False


def test_transpose_turns_a_tree_inside_out():
    outer, inner = xtree.structure({"a": 0, "b": 0}), xtree.structure((0, [0]))
    tree = {"a": (1, [2]), "b": (3, [4])}
    expected = ({"a": 1, "b": 3}, [{"a": 2, "b": 4}])
    assert xtree.transpose(outer, inner, tree) == expected
    assert xtree.transpose(outer, None, tree) == expected
    assert xtree.transpose(inner, outer, expected) == tree
    assert xtree.transpose(xtree.structure([]), inner, []) == ([], [[]])


@pytest.mark.parametrize(
    ("outer", "inner", "tree", "match"),
    [
        ([0, 0], (0, 0), [(1, 2), (1, 2, 3)], "an inner tree has another structure"),
        ([0, 0], None, [(1, 2), [1, 2]], "an inner tree has another structure"),
        ([0, 0, 0], (0, 0), [(1, 2, 3), (4, 5, 6)], "does not have the outer structure"),
    ],
)
def test_transpose_refuses_trees_of_other_structures(outer, inner, tree, match):
    inner_treedef = None if inner is None else xtree.structure(inner)
    with pytest.raises(TypeError, match=match):
        xtree.transpose(xtree.structure(outer), inner_treedef, tree)


class Flat:
    """A mapping that flattens what is inside of its values, too, as that of Haiku."""

    def __init__(self, mapping):
        self.mapping = mapping


xtree.register_pytree_node(
    Flat,
    lambda flat: (xtree.leaves(flat.mapping), xtree.structure(flat.mapping)),
    lambda structure, leaves: Flat(xtree.unflatten(structure, leaves)),
)


def test_transpose_of_a_class_that_flattens_its_values():
    outer, inner = xtree.structure(Flat({"a": 1, "b": 2})), xtree.structure([1, 2])
    found = xtree.transpose(outer, inner, Flat({"a": [3, 4], "b": [5, 6]}))
    assert [each.mapping for each in found] == [{"a": 3, "b": 5}, {"a": 4, "b": 6}]
    for tree in (Flat({"a": [3], "b": [5, 6]}), {"a": [3, 4], "b": [5, 6]}):
        with pytest.raises(
            TypeError, match="transpose: Mismatch: the tree does not have the outer"
        ):
            xtree.transpose(outer, inner, tree)


def test_transpose_refuses_what_is_no_structure():
    with pytest.raises(TypeError, match="outer_treedef is not a structure"):
        xtree.transpose([0], None, [1])
    with pytest.raises(TypeError, match="inner_treedef is not a structure"):
        xtree.transpose(xtree.structure([0]), (0,), [(1,)])
    with pytest.raises(TypeError, match="the structure of the inner trees is unknown"):
        xtree.transpose(xtree.structure([]), None, [])


def test_broadcast_gives_the_structure_of_the_full_tree():
    full = Layer([1, 2], Point(3, None))
    assert xtree.broadcast(Layer("w", "b"), full) == Layer(["w", "w"], Point("b", None))
    assert xtree.broadcast(1, None) is None


def test_the_default_of_reduce_prints_as_not_given():
    assert repr(xtree.reduce.__defaults__[0]) == "<not given>"
