"""Key paths: what they hold and how they print."""

from __future__ import annotations

import pytest
from tree_samples import Layer, Pair, Point

import xtree


def test_each_container_has_its_own_keys():
    tree = {"a": [1, Point(2, Layer(3, 4))], "b": Pair(5, 6)}
    paths = [xtree.keystr(path) for path, _ in xtree.leaves_with_path(tree)]
    assert paths == [
        "['a'][0]",
        "['a'][1].x",
        "['a'][1].y.weight",
        "['a'][1].y.bias",
        "['b'][<flat index 0>]",
        "['b'][<flat index 1>]",
    ]
    simple = [xtree.keystr(p, simple=True, separator="/") for p, _ in xtree.leaves_with_path(tree)]
    assert simple == ["a/0", "a/1/x", "a/1/y/weight", "a/1/y/bias", "b/0", "b/1"]


def test_keys_compare_by_class_and_value():
    assert xtree.SequenceKey(1) == xtree.SequenceKey(1) != xtree.DictKey(1)
    assert len({xtree.SequenceKey(1), xtree.DictKey(1), xtree.FlattenedIndexKey(1)}) == 3
    assert repr(xtree.GetAttrKey("x")) == "GetAttrKey(name='x')"
    with pytest.raises(AttributeError):
        xtree.SequenceKey(1).idx = 2


def test_any_value_may_be_a_key():
    assert xtree.keystr((1, "a")) == "1a"
    assert xtree.keystr((1, "a"), simple=True, separator=".") == "1.a"
    assert xtree.keystr(()) == ""


def test_long_sequences_have_keys():
    paths = [path for path, _ in xtree.leaves_with_path([0] * 100)]
    assert paths == [(xtree.SequenceKey(i),) for i in range(100)]


def test_the_arguments_of_a_partial_have_names():
    partial = xtree.Partial(print, 1, end=2)
    paths = [xtree.keystr(path) for path, _ in xtree.leaves_with_path(partial)]
    assert paths == [".args[0]", ".keywords['end']"]


def test_is_leaf_may_take_the_path():
    tree = {"a": (1, 2), "b": (3, 4)}
    leaves = xtree.leaves_with_path(
        tree, is_leaf=lambda path, x: path == (xtree.DictKey("a"),), is_leaf_takes_path=True
    )
    assert [leaf for _, leaf in leaves] == [(1, 2), 3, 4]
    assert xtree.leaves_with_path(1) == [((), 1)]
    assert [x for _, x in xtree.leaves_with_path([(1,)], is_leaf=lambda x: type(x) is tuple)] == [
        (1,)
    ]


def test_map_with_path_gives_path_leaf_and_subtrees():
    result = xtree.map_with_path(lambda p, x, y: (xtree.keystr(p), x, y), [1, (2,)], [3, ([4],)])
    assert result == [("[0]", 1, 3), (("[1][0]", 2, [4]),)]
    with pytest.raises(xtree.StructureMismatchError, match=r"map_with_path: .* tree 2 differ"):
        xtree.map_with_path(lambda p, x, y: x, [1], [1, 2])


def test_positions_of_two_kinds_hash_apart():
    assert hash(xtree.FlattenedIndexKey(1)) != hash(xtree.SequenceKey(1))
