"""The messages of the functions on trees."""

import pytest

from tests.errors.refusals import Refusals
from xstack import tree, tree_util
from xtree.errors import DepthError, StructureMismatchError

refused = Refusals()


@refused(
    StructureMismatchError,
    """
    map: the first tree and tree 2 differ: different keys.
      got       tree 2: a dict without the keys ['w'] and with the additional keys ['b']
      expected  a dict with the keys ['w'], as in the first tree
    """,
    ValueError,
)
def trees_of_different_keys():
    tree.map(lambda a, b: a, {"w": 1}, {"b": 1})


@refused(
    StructureMismatchError,
    """
    map: the first tree and tree 2 differ at ['w']: different lengths.
      got       tree 2['w']: a tuple of length 3
      expected  a tuple of length 2, as in the first tree
    """,
)
def trees_of_different_lengths():
    tree.map(lambda a, b: a, {"w": (1, 2)}, {"w": (1, 2, 3)})


@refused(
    StructureMismatchError,
    """
    map: the first tree and tree 2 differ: different types.
      got       tree 2: a tuple of length 2
      expected  a list of length 2, as in the first tree
    """,
)
def trees_of_different_types():
    tree.map(lambda a, b: a, [1, 2], (1, 2))


@refused(
    StructureMismatchError,
    """
    map: the first tree and tree 2 differ at [1]: different types.
      got       tree 2[1]: an int, 2
      expected  a list of length 2, as in the first tree
    """,
)
def a_leaf_in_place_of_a_subtree():
    tree.map(lambda a, b: a, [1, [2, 3]], [1, 2])


@refused(
    TypeError,
    """
    map: the first argument is not a function.
      got       a value of type dict
      expected  map(f, tree, *rest)
    """,
)
def map_with_its_arguments_swapped():
    tree.map({"w": 1}, lambda x: x)


@refused(
    ValueError,
    """
    unflatten: too many leaves for the structure.
      got       3 leaves
      expected  2 leaves
    """,
)
def too_many_leaves():
    tree.unflatten(tree.structure([1, 2]), [1, 2, 3])


@refused(
    TypeError,
    """
    unflatten: the first argument is not a structure.
      got       a value of type list
      expected  unflatten(treedef, leaves)
    """,
)
def unflatten_with_its_arguments_swapped():
    tree.unflatten([1, 2], tree.structure([1, 2]))


@refused(
    TypeError,
    """
    reduce: the tree has no leaves.
      hint      pass initializer=...
    """,
)
def a_reduction_of_no_leaves():
    tree.reduce(lambda a, b: a + b, [])


@refused(
    DepthError,
    """
    flatten: a list contains itself.
      got       the container at the root is found again at [0]
      expected  a finite tree
    """,
    ValueError,
)
def a_list_that_contains_itself():
    endless = []
    endless.append(endless)
    tree.leaves(endless)


@refused(
    TypeError,
    """
    register a_registration_without_functions.<locals>.Layer: flatten_func is not callable.
      got       None
    """,
)
def a_registration_without_functions():
    class Layer: ...

    tree_util.register_pytree_node(Layer, None, None)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_a_tree_is_complete(case):
    case.check()
