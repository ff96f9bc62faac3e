"""Registration of classes."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys

import pytest

import xtree


def test_a_second_registration_is_refused_with_both_places():
    class Node:
        pass

    xtree.register_static(Node)
    with pytest.raises(
        xtree.RegistrationError, match="is registered as a pytree node already"
    ) as e:
        xtree.register_pytree_node(Node, lambda x: ((), None), lambda d, c: Node())
    lines = str(e.value).splitlines()
    assert "test_register.py:" in lines[1] and "test_register.py:" in lines[2]
    assert lines[1].split(":")[-1] != lines[2].split(":")[-1]
    with pytest.raises(xtree.RegistrationError, match="dict"):
        xtree.register_pytree_node(dict, lambda d: ((), None), lambda d, c: {})


def test_the_registry_shows_what_is_registered_and_where():
    class Node:
        pass

    registry = xtree.default_registry
    before = len(registry)
    assert Node not in registry and not registry.is_node(Node)
    xtree.register_static(Node)
    assert Node in registry and len(registry) == before + 1
    [node] = [node for node in registry if node.type is Node]
    assert "test_register.py:" in node.place and "Node" in repr(node)
    assert pickle.loads(pickle.dumps(registry)) is registry


def test_keys_of_a_class_are_used_in_paths():
    @xtree.register_pytree_with_keys_class
    class Node:
        def __init__(self, x):
            self.x = x

        def tree_flatten_with_keys(self):
            return [(xtree.GetAttrKey("x"), self.x)], None

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children)

    assert xtree.leaves(Node(3)) == [3]
    assert xtree.keystr(xtree.leaves_with_path(Node(3))[0][0]) == ".x"
    assert xtree.map(lambda x: x + 1, Node(3)).x == 4


def test_a_faster_flatten_function_beside_the_keys_is_used():
    calls = []

    @xtree.register_pytree_with_keys_class
    class Node:
        def tree_flatten_with_keys(self):
            calls.append("keys")
            return [("k", 1)], None

        def tree_flatten(self):
            calls.append("plain")
            return (1,), None

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls()

    xtree.flatten(Node())
    assert calls == ["plain"]


def test_a_class_without_the_methods_is_refused():
    with pytest.raises(xtree.RegistrationError, match="has no method tree_flatten"):
        xtree.register_pytree_node_class(type("Empty", (), {}))
    with pytest.raises(xtree.RegistrationError, match="has no method tree_flatten_with_keys"):
        xtree.register_pytree_with_keys_class(type("Empty", (), {}))


def test_arguments_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="flatten_func is not callable"):
        xtree.register_pytree_node(type("A", (), {}), None, None)
    with pytest.raises(TypeError, match="the node type is not a class"):
        xtree.register_pytree_node(3, len, len)


def test_static_values_that_cannot_be_hashed_are_compared():
    @xtree.register_static
    class Options(dict):
        pass

    same = xtree.structure([1, Options(a=2)])
    assert same == xtree.structure([1, Options(a=2)])
    assert same != xtree.structure([1, Options(a=3)])
    assert xtree.unflatten(same, [5]) == [5, {"a": 2}]


def test_a_dataclass_has_data_and_static_fields():
    @xtree.register_dataclass
    @dataclasses.dataclass
    class Node:
        x: object
        y: object = dataclasses.field(default=2, metadata={"static": True})
        z: object = xtree.static(default=3, metadata={"unit": "m"})

    assert xtree.leaves(Node([1, 4])) == [1, 4]
    assert xtree.map(lambda v: -v, Node(1, 5)) == Node(-1, 5)
    assert xtree.structure(Node(1, 5)) != xtree.structure(Node(1, 6))
    assert dataclasses.fields(Node)[2].metadata == {"unit": "m", "static": True}


def test_fields_may_be_named_and_dropped():
    @xtree.register_dataclass(data_fields=["a"], meta_fields=["b"], drop_fields=["c"])
    @dataclasses.dataclass
    class Node:
        a: int
        b: int
        c: int = 7
        d: int = dataclasses.field(init=False, default=8)

    assert xtree.flatten(Node(1, 2, 3))[0] == [1]
    assert xtree.map(lambda v: v, Node(1, 2, 3)) == Node(1, 2, 7)

    @dataclasses.dataclass
    class Other:
        a: int
        b: int = 0

    xtree.register_dataclass(Other, drop_fields=["b"])
    assert xtree.map(lambda v: v, Other(1, 2)) == Other(1, 0)


def test_a_class_that_is_no_dataclass_needs_the_names_of_its_fields():
    class Node:
        def __init__(self, a):
            self.a = a

    with pytest.raises(TypeError, match="the class is not a dataclass"):
        xtree.register_dataclass(Node)
    xtree.register_dataclass(Node, ["a"], [])
    assert xtree.map(lambda v: v + 1, Node(1)).a == 2


def test_a_static_dataclass_without_data_has_no_leaves():
    @xtree.register_dataclass
    @dataclasses.dataclass
    class Node:
        n: int = xtree.static()

    assert xtree.flatten([Node(3)])[0] == []


@pytest.mark.parametrize(
    ("data_fields", "meta_fields", "error", "match"),
    [
        (["a"], None, TypeError, "data_fields is given without meta_fields"),
        (None, ["a"], TypeError, "meta_fields is given without data_fields"),
        (["a"], [], ValueError, r"the fields \['b'\] are neither data nor metadata"),
        (["a", "b", "q"], [], ValueError, r"\['q'\] are not fields of the constructor"),
        (["a", "b"], ["a"], ValueError, r"the fields \['a'\] are named twice"),
    ],
)
def test_wrong_fields_are_refused(data_fields, meta_fields, error, match):
    nodetype = dataclasses.make_dataclass("Node", ["a", "b"])
    with pytest.raises(error, match=match):
        xtree.register_dataclass(nodetype, data_fields, meta_fields)


def test_register_dataclass_refuses_what_is_no_class():
    with pytest.raises(TypeError, match="the node type is not a class"):
        xtree.register_dataclass(3)


@pytest.mark.parametrize("container", ["dict", "tuple", "list", "OrderedDict", "defaultdict"])
def test_containers_of_python_are_registered_before_whatever_a_program_registers(container):
    program = f"""
from collections import OrderedDict, defaultdict
import xtree
assert {container} in xtree.default_registry
try:
    xtree.register_pytree_node({container}, lambda x: ((), None), lambda data, x: None)
except xtree.RegistrationError as error:
    assert "(a Python container)" in str(error)
else:
    raise AssertionError("registered twice")
assert xtree.leaves({{"a": [1]}}) == [1]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
