"""The same results as `jax.tree_util`, where it is installed."""

from __future__ import annotations

import collections
from collections import OrderedDict, defaultdict

import pytest

jax = pytest.importorskip("jax")

import xtree  # noqa: E402
import xtree.tree_util as tu  # noqa: E402

jtu = jax.tree_util
Point = collections.namedtuple("Point", ["x", "y"])

TREES = [
    1,
    None,
    (),
    {"b": 1, "a": (2, [None, 3]), "c": ()},
    {10: 1, 2: [3, 4]},
    {2.5: 1, 1: 2},
    OrderedDict(b=1, a={"z": 2}),
    defaultdict(list, b=1, a=2),
    Point(1, {"k": Point(2, None)}),
    [1, {"k1": 2, "k2": (3, 4)}, 5],
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_leaves_structure_and_paths_are_the_same(tree):
    leaves, treedef = jtu.tree_flatten(tree)
    assert xtree.leaves(tree) == leaves
    ours = xtree.structure(tree)
    assert repr(ours) == repr(treedef)
    assert (ours.num_leaves, ours.num_nodes) == (treedef.num_leaves, treedef.num_nodes)
    expected = [(jtu.keystr(path), leaf) for path, leaf in jtu.tree_leaves_with_path(tree)]
    assert [(xtree.keystr(path), leaf) for path, leaf in xtree.leaves_with_path(tree)] == expected
    simple = [jtu.keystr(p, simple=True, separator="/") for p, _ in jtu.tree_leaves_with_path(tree)]
    assert [
        xtree.keystr(p, simple=True, separator="/") for p, _ in xtree.leaves_with_path(tree)
    ] == simple
    mapped = jtu.tree_map(lambda x: x + 1, tree)
    assert repr(xtree.map(lambda x: x + 1, tree)) == repr(mapped)
    assert xtree.treedef_is_leaf(ours) == jtu.treedef_is_leaf(treedef)


@pytest.mark.parametrize("full", TREES, ids=repr)
@pytest.mark.parametrize("prefix", [0, *TREES[2:]], ids=repr)
def test_broadcasting_accepts_and_gives_the_same(prefix, full):
    try:
        expected = jtu.tree_broadcast(prefix, full)
    except ValueError:
        with pytest.raises(ValueError, match="differ"):
            xtree.broadcast(prefix, full)
    else:
        assert repr(xtree.broadcast(prefix, full)) == repr(expected)


@pytest.mark.parametrize("full", TREES, ids=repr)
@pytest.mark.parametrize("prefix", TREES, ids=repr)
def test_flatten_up_to_accepts_and_gives_the_same(prefix, full):
    try:
        expected = jtu.tree_structure(prefix).flatten_up_to(full)
    except ValueError:
        with pytest.raises(ValueError, match="differ"):
            xtree.structure(prefix).flatten_up_to(full)
    else:
        assert xtree.structure(prefix).flatten_up_to(full) == expected


@pytest.mark.parametrize("count", range(1, 12))
def test_associative_reduction_groups_the_same(count):
    leaves = [str(i) for i in range(count)]
    ours = xtree.reduce_associative(lambda a, b: f"({a},{b})", leaves)
    assert ours == jtu.tree_reduce_associative(lambda a, b: f"({a},{b})", leaves)


def test_transpose_is_the_same():
    tree = [(1, 2, 3), (4, 5, 6)]
    ours = xtree.transpose(xtree.structure([0, 0]), xtree.structure((0, 0, 0)), tree)
    theirs = jtu.tree_transpose(jtu.tree_structure([0, 0]), jtu.tree_structure((0, 0, 0)), tree)
    assert ours == theirs


def test_every_public_name_is_there():
    assert [name for name in dir(jax.tree) if name[0] != "_" and not hasattr(xtree, name)] == []
    missing = {name for name in dir(jtu) if name[0] != "_" and not hasattr(tu, name)}
    assert missing == set()
