"""Partial application as a tree."""

from __future__ import annotations

import functools
import operator

import xtree


def test_bound_arguments_are_leaves():
    partial = xtree.Partial(divmod, 7)
    assert partial(2) == (3, 1)
    assert xtree.leaves(partial) == [7]
    assert xtree.map(lambda x: x + 1, partial)(2) == (4, 0)
    assert isinstance(partial, functools.partial)


def test_a_partial_of_a_partial_has_all_arguments():
    partial = xtree.Partial(xtree.Partial(dict, a=1), b=[2])
    assert partial() == {"a": 1, "b": [2]}
    assert xtree.leaves(partial) == [1, 2]


def test_what_functools_partial_binds_is_constant():
    inner = functools.partial(divmod, 7)
    partial = xtree.Partial(inner, 2)
    assert partial() == (3, 1) and partial.args == (2,)
    assert xtree.structure(partial) == xtree.structure(xtree.Partial(inner, 3))
    assert hash(xtree.structure(partial)) == hash(xtree.structure(xtree.Partial(inner, 3)))
    assert xtree.structure(partial) != xtree.structure(xtree.Partial(functools.partial(max), 3))
    assert repr(partial.func) == repr(inner)
    assert xtree.map(lambda x: x + 1, partial)() == (2, 1)


def test_partials_of_one_function_have_one_structure():
    assert xtree.structure(xtree.Partial(len, 1)) == xtree.structure(xtree.Partial(len, 2))
    assert xtree.structure(xtree.Partial(len, 1)) != xtree.structure(xtree.Partial(max, 1))


def test_a_partial_that_is_bound_compares_as_itself():
    add_one = functools.partial(operator.add, 1)
    bound = xtree.Partial(add_one, 2)
    assert bound.func == add_one and add_one == bound.func
    assert hash(bound.func) == hash(add_one)
