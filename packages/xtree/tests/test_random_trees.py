"""Properties of random trees."""

from __future__ import annotations

import pickle

import pytest

hypothesis = pytest.importorskip("hypothesis")

from collections import OrderedDict  # noqa: E402

from hypothesis import strategies as st  # noqa: E402
from tree_samples import Layer, Mode, Pair, Point  # noqa: E402

import xtree  # noqa: E402
from tests.nets.cells import IN_FULL  # noqa: E402

pytestmark = pytest.mark.fuzz

# A few odd characters: before it draws from all, Hypothesis reads the table of Unicode for seconds.
LETTERS = "ab_0 '\"\\\n\0\xe9\u2028\U0001f600"


def texts(max_size):
    return st.text(LETTERS, max_size=max_size)


leaf = st.integers() | texts(3) | st.floats(allow_nan=False)
metadata = st.sampled_from(["a", 1, True, 1.0, (1, "b"), None, frozenset({1})])


def containers(children):
    words, numbers = texts(3), st.integers() | st.booleans()
    return (
        st.lists(children, max_size=7)
        | st.lists(children, max_size=7).map(tuple)
        | st.dictionaries(words, children, max_size=4)
        | st.dictionaries(numbers, children, max_size=4)
        | st.dictionaries(texts(3), children, max_size=4).map(OrderedDict)
        | st.builds(Point, children, children)
        | st.builds(Pair, children, children, metadata)
        | st.builds(Layer, children, children, metadata)
        | st.builds(Mode, texts(2))
    )


trees = st.recursive(leaf | st.none(), containers, max_leaves=20)
# A random tree takes ten milliseconds to check; `nox -s fuzz` draws more of them.
shallow = hypothesis.settings(deadline=None, max_examples=1000 if IN_FULL else 50)


@shallow
@hypothesis.given(trees)
def test_round_trips_and_ways_to_flatten_agree(tree):
    leaves, treedef = xtree.flatten(tree)
    rebuilt = treedef.unflatten(leaves)
    assert repr(rebuilt) == repr(xtree.map(lambda x: x, tree))
    assert rebuilt == tree
    assert xtree.flatten(rebuilt) == (leaves, treedef)
    assert xtree.flatten(tree, is_leaf=lambda x: False) == (leaves, treedef)
    assert [x for _, x in xtree.leaves_with_path(tree)] == leaves
    assert treedef.flatten_up_to(tree) == leaves
    assert pickle.loads(pickle.dumps(treedef)) == treedef


@shallow
@hypothesis.given(trees, trees)
def test_structures_are_equal_exactly_if_they_print_equally(one, other):
    a, b = xtree.structure(one), xtree.structure(other)
    assert (a == b) == (repr(a) == repr(b)) or "frozenset" in repr(a)
    if a == b:
        assert hash(a) == hash(b)


@shallow
@hypothesis.given(trees)
def test_compiled_structures_agree(tree):
    expected = xtree.flatten(tree)
    for _ in range(70):
        leaves, treedef = xtree.flatten(tree)
        rebuilt = treedef.unflatten(leaves)
    assert xtree.flatten(tree) == expected
    assert rebuilt == tree and repr(treedef.unflatten(leaves)) == repr(rebuilt)


@shallow
@hypothesis.given(trees, trees)
def test_composition_replaces_leaves_by_trees(outer, inner):
    outer_def, inner_def = xtree.structure(outer), xtree.structure(inner)
    composed = xtree.structure(xtree.map(lambda _: inner, outer))
    assert outer_def.compose(inner_def) == composed
    assert outer_def.is_prefix(composed)
    assert composed.num_leaves == outer_def.num_leaves * inner_def.num_leaves


@shallow
@hypothesis.given(trees, trees)
def test_prefix_errors_are_empty_exactly_for_prefixes(prefix, tree):
    mismatches = xtree.prefix_errors(prefix, tree)
    treedef = xtree.structure(prefix)
    if mismatches:
        with pytest.raises(xtree.StructureMismatchError):
            treedef.flatten_up_to(tree)
    else:
        assert len(treedef.flatten_up_to(tree)) == treedef.num_leaves
        assert len(xtree.broadcast_prefix(prefix, tree)) == len(xtree.leaves(tree))


@shallow
@hypothesis.given(st.lists(trees, min_size=1, max_size=4))
def test_paths_are_unique_and_lead_to_the_leaves(tree):
    pairs = xtree.leaves_with_path(tree)
    paths = [path for path, _ in pairs]
    assert len({xtree.keystr(path) for path in paths}) == len(paths)
