"""Pytrees: leaves and map."""

from xstack import tree, tree_util


def test_numbers_of_leaves():
    assert len(tree.leaves([1, "a", object()])) == 3
    assert len(tree.leaves((1, (2, 3), ()))) == 3
    assert len(tree.leaves([1, {"k1": 2, "k2": (3, 4)}, 5])) == 5


def test_map_of_one_and_of_two_trees():
    nested = [1, {"k1": 2, "k2": (3, 4)}, 5]
    squares = tree_util.tree_map(lambda x: x * x, nested)
    assert squares == [1, {"k1": 4, "k2": (9, 16)}, 25]
    assert tree.map(lambda x, y: x + y, nested, squares) == [
        2,
        {"k1": 6, "k2": (12, 20)},
        30,
    ]
