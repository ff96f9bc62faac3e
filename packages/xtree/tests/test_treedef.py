"""Tree definitions: equality, hash, pickle, repr, algebra."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest
from tree_samples import TREES, Equal, Layer, Mode, Pair, Point

import xtree
from xtree.interning import is_marker


@pytest.mark.parametrize("name", TREES)
def test_equal_structures_are_equal_and_hash_equally(name):
    a, b = xtree.structure(TREES[name]), xtree.structure(TREES[name])
    assert a == b and hash(a) == hash(b) and {a: 1}[b] == 1
    assert a != "something else"
    assert a.is_prefix(b)


@pytest.mark.parametrize("name", [n for n in TREES if "identity" not in n])
def test_structures_of_plain_metadata_are_one_object(name):
    if name in ("partial", "static"):
        return
    assert xtree.structure(TREES[name]) is xtree.structure(copy.deepcopy(TREES[name]))


def test_all_sample_structures_differ():
    structures = [xtree.structure(tree) for tree in TREES.values()]
    assert len(set(structures)) == len(structures)


@pytest.mark.parametrize("name", TREES)
def test_a_pickled_structure_is_the_same_again(name):
    treedef = xtree.structure(TREES[name])
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef and repr(again) == repr(treedef)
    assert copy.copy(treedef) == treedef and copy.deepcopy(treedef) == treedef


def test_unpickling_a_type_that_is_not_registered_names_it():
    with pytest.raises(xtree.RegistrationError, match="int is not registered"):
        xtree.treedef_from_node_data((int, None), [])


@pytest.mark.parametrize("name", TREES)
def test_a_structure_is_rebuilt_from_its_parts(name):
    treedef = xtree.structure(TREES[name])
    again = xtree.treedef_from_node_data(treedef.node_data(), treedef.children())
    assert again == treedef
    assert xtree.treedef_children(treedef) == treedef.children()


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (1, "PyTreeDef(*)"),
        (None, "PyTreeDef(None)"),
        ((1,), "PyTreeDef((*,))"),
        (
            {"b": 1, "a": (2, [None, 3]), "c": ()},
            "PyTreeDef({'a': (*, [None, *]), 'b': *, 'c': ()})",
        ),
        (Point(1, 2), "PyTreeDef(CustomNode(namedtuple[Point], [*, *]))"),
        (Layer(1, 2), "PyTreeDef(CustomNode(Layer[('relu',)], [*, *]))"),
        (Pair(1, 2), "PyTreeDef(CustomNode(Pair[pair], [*, *]))"),
        (Mode("m"), "PyTreeDef(CustomNode(Mode[Mode(name='m')], []))"),
    ],
)
def test_repr_shows_the_containers_and_their_metadata(tree, text):
    assert repr(xtree.structure(tree)) == text


def test_counts_of_leaves_and_nodes():
    treedef = xtree.structure({"a": (1, None), "b": []})
    assert (treedef.num_leaves, treedef.num_nodes) == (1, 5)
    assert [xtree.treedef_is_leaf(xtree.structure(t)) for t in (1, None, (), (1,))] == [
        True,
        True,
        True,
        False,
    ]


def test_metadata_is_compared_with_its_type():
    structures = [xtree.structure(Pair(1, 2, data)) for data in (1, 1.0, True, "1", (1,), (True,))]
    assert len(set(structures)) == 6


def test_structures_with_metadata_by_value_compare_by_value():
    one = xtree.structure([Pair(1, 2, Equal("one")), 3])
    two = xtree.structure([Pair(1, 2, Equal("two")), 3])
    assert one == two and hash(one) == hash(two) and one is not two
    assert one != xtree.structure([Pair(1, [2], Equal("one")), 3])
    assert one != xtree.structure([Pair(1, 2, "one"), 3])
    assert one != xtree.structure((Pair(1, 2, Equal("one")), 3))
    assert xtree.structure(Pair(1, 2, (Equal(""), 1))) != xtree.structure(
        Pair(1, 2, (Equal(""), True))
    )
    assert xtree.structure(Pair(1, 2, (Equal(""), 1))) == xtree.structure(
        Pair(1, 2, (Equal(""), 1))
    )
    assert xtree.structure(Pair(1, 2, frozenset({1}))) != xtree.structure(
        Pair(1, 2, frozenset({2}))
    )
    assert xtree.structure(Pair(1, 2, Equal(""))) != xtree.structure(Pair(1, 2, Mode("")))


def test_metadata_that_cannot_be_hashed_is_compared():
    tree = {"a": (1, Pair(1, 2, ["unhashable"]))}
    leaves, treedef = xtree.flatten(tree)
    again = xtree.structure({"a": (3, Pair(4, 5, ["unhashable"]))})
    assert treedef == again and hash(treedef) == hash(again)
    assert treedef != xtree.structure({"a": (3, Pair(4, 5, ["another"]))})
    assert treedef.unflatten(leaves) == tree
    found = {treedef: "found"}
    assert found[again] == "found"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}), ({"a": 1}, {"a": True}), ({"a": 1}, {"b": 1}), ([1], [1, 2]),
        ([1], (1,)), ({1}, {2}), ({1}, frozenset({1})), (({"a": [1]}, 2), ({"a": [2]}, 2)),
        (bytearray(b"1"), bytearray(b"2")),
    ],
)  # fmt: skip
def test_structures_with_metadata_that_differs_differ(one, other):
    first, second = xtree.structure(Pair(1, 2, one)), xtree.structure(Pair(1, 2, other))
    assert first != second
    assert {first: 1}.get(second) is None
    again = xtree.structure(Pair(3, 4, copy.deepcopy(one)))
    assert first == again and {first: 1}[again] == 1


@pytest.mark.parametrize("data", [{"a": [1]}, [1, [2]], ({"a": 1}, 2)], ids=str)
def test_metadata_that_was_changed_gives_another_structure(data):
    tree = [Pair(1, 2, data)]
    for _ in range(20):  # the way that is compiled for a structure that stays the same
        before = xtree.structure(tree)
    held = data[0] if isinstance(data, tuple) else data
    held["b" if isinstance(held, dict) else 0] = 5
    after = xtree.structure(tree)
    assert before != after
    assert {before: 1}.get(after) is None


def test_metadata_without_equality_is_named_when_it_is_compared():
    class Ambiguous:
        def __eq__(self, other):
            raise ValueError("ambiguous")

        __hash__ = None

    data = Ambiguous()
    one, other = xtree.structure(Pair(1, 2, data)), xtree.structure(Pair(1, 2, Ambiguous()))
    assert {one: 1}[xtree.structure(Pair(3, 4, data))] == 1
    with pytest.raises(xtree.MalformedNodeError, match="Ambiguous cannot be compared") as error:
        _ = one == other
    assert "arrays belong among the children" in str(error.value)


def test_structures_and_what_they_hold_are_released():
    class Function:
        def __call__(self):
            return 0

    function = Function()
    alive = weakref.ref(function)
    for _ in range(100):
        xtree.flatten({"f": xtree.Partial(function, 1), "x": [1]})
        xtree.flatten([xtree.Partial(function, 1)] * 9)
    del function
    gc.collect()
    assert alive() is None
    xtree.flatten(Pair(1, 2, object()))
    assert xtree.structure((1, 2)) is xtree.structure((3, 4))


class Missing:
    """A marker, as libraries have them."""


class Tag:
    def __init__(self, name):
        self.name = name


MISSING = Missing()
DIAGONAL, UPPER = Tag("diagonal"), Tag("upper")


def test_markers_of_modules_are_metadata_by_value():
    for data in (MISSING, (MISSING, 1), frozenset({DIAGONAL, UPPER}), (MISSING, frozenset())):
        one, two = xtree.structure([Pair(1, 2, data), 3]), xtree.structure([Pair(4, 5, data), 6])
        assert one is two
        identity = id(one)
        del one, two
        gc.collect()
        assert id(xtree.structure([Pair(7, 8, data), 9])) == identity  # it stays
    assert xtree.structure(Pair(1, 2, DIAGONAL)) != xtree.structure(Pair(1, 2, UPPER))
    assert xtree.structure(Pair(1, 2, MISSING)) != xtree.structure(Pair(1, 2, Missing()))
    leaves, treedef = xtree.flatten(Pair(1, 2, (MISSING, frozenset({UPPER}))))
    assert treedef.unflatten(leaves).name == (MISSING, frozenset({UPPER}))


def test_only_constants_of_modules_are_markers():
    class Local:
        pass

    class WithEquality:
        def __eq__(self, other):
            return True

        __hash__ = object.__hash__

    large = Tag([0] * 100)
    others = [Local(), WithEquality(), Missing(), Tag("of nobody"), large, object(), len, gc]
    for other in others:
        assert not is_marker(other)
    assert is_marker(MISSING) and is_marker(UPPER)
    for kind in (Missing, Tag):
        alive = weakref.ref(value := kind() if kind is Missing else kind("released"))
        xtree.flatten([Pair(1, 2, value)] * 9)
        del value
        gc.collect()
        assert alive() is None


def test_structures_of_any_depth_with_metadata_by_value_have_a_hash():
    def nested(data):
        tree = Pair(1, 2, data)
        for _ in range(900):
            tree = [tree]
        return xtree.structure(tree)

    assert hash(nested(Equal("one"))) == hash(nested(Equal("two")))
    assert nested(Equal("one")) == nested(Equal("two"))


def test_is_prefix_says_whether_subtrees_can_replace_leaves():
    prefix, full = xtree.structure((0, {"a": 0})), xtree.structure(([1, 2], {"a": (3,)}))
    assert prefix.is_prefix(full) and not full.is_prefix(prefix)
    assert xtree.structure(0).is_prefix(full)
    assert not xtree.structure(None).is_prefix(xtree.structure(0))
    assert not xtree.structure((0, 0)).is_prefix(xtree.structure((0, 0, 0)))
    assert not xtree.structure({"a": 0}).is_prefix(xtree.structure({"b": 0}))


def test_compose_replaces_every_leaf():
    outer, inner = xtree.structure({"a": 0, "b": [0, None]}), xtree.structure((0, 0))
    assert outer.compose(inner) == xtree.structure({"a": (0, 0), "b": [(0, 0), None]})
    assert xtree.structure(0).compose(inner) is inner


def test_compose_beyond_the_limit_of_depth_is_refused():
    tree = 0
    for _ in range(600):
        tree = [tree]
    treedef = xtree.structure(tree)
    with pytest.raises(xtree.DepthError, match="more than 1000 levels"):
        treedef.compose(treedef)


def test_a_tuple_of_structures():
    parts = [xtree.structure(1), xtree.structure([1])]
    assert xtree.treedef_tuple(parts) == xtree.structure((1, [1]))
    assert xtree.treedef_tuple([]) == xtree.structure(())


def test_a_structure_is_not_made_directly():
    with pytest.raises(TypeError, match="a tree definition is not made directly"):
        xtree.PyTreeDef()


@pytest.mark.parametrize(("count", "word"), [(1, "few"), (3, "many")])
def test_a_wrong_number_of_leaves_is_refused(count, word):
    with pytest.raises(ValueError, match=f"too {word} leaves") as error:
        xtree.unflatten(xtree.structure((1, 2)), [0] * count)
    assert f"{count} leaves" in str(error.value) and "expected  2 leaves" in str(error.value)


def test_unflatten_takes_any_iterable():
    assert xtree.structure([1, 2]).unflatten(x for x in (3, 4)) == [3, 4]


def test_leaves_may_be_put_in_more_than_once():
    treedef = xtree.structure({"a": [1, (2, None)], "b": Point(3, Pair(4, {5: 6}))})
    built = [treedef.unflatten(range(5)) for _ in range(100)]
    assert treedef.build is not None
    assert all(tree == built[0] for tree in built)
    built[0]["a"].append(1)
    assert len(built[1]["a"]) == 2


def test_a_structure_is_walked_from_its_leaves_up():
    treedef = xtree.structure({"b": 0, "a": 0, "c": [0, None]})
    seen = []
    result = treedef.walk(lambda xs, data: seen.append((xs, data)) or len(xs), str, [1, 2, 3])
    assert seen == [((), None), (("3", 0), None), (("1", "2", 2), ["a", "b", "c"])]
    assert result == 3
    assert xtree.structure(0).walk(None, None, [5]) == 5
