import importlib
import pickle
import sys
import threading
import types

import numpy as np
import pytest

from packages.xprim.tests.operations import NONE, plus, plus_p, scale, scale_p, swap_p
from xprim import (
    Primitive,
    as_array,
    eval_closed,
    get_primitive,
    kinds,
    make_jaxpr,
    primitive,
    primitives,
    rules,
    undefined,
)
from xprim.errors import DuplicateRuleError, MissingRuleError
from xprim.rules import Kind, Linear, Zero, declare_kind, linear_in, multilinear, not_mapped

RULES = {"numpy": NONE, "stablehlo": NONE, "jvp": NONE, "transpose": NONE, "batch": NONE}


def test_primitives_are_found_by_name_and_pickle_by_it():
    assert get_primitive("test_plus") is plus_p
    assert pickle.loads(pickle.dumps(plus_p)) is plus_p
    assert repr(plus_p) == "test_plus"
    names = [p.name for p in primitives()]
    assert names == sorted(names) and "test_plus" in names
    with pytest.raises(KeyError, match="no primitive is named 'nothing'"):
        get_primitive("nothing")


def test_a_forgotten_rule_is_an_error_at_definition():
    with pytest.raises(TypeError, match="shape"):
        Primitive("test_forgotten", **RULES)
    with pytest.raises(TypeError, match="test_unknown: unknown rule kind 'flavour'") as e:
        Primitive("test_unknown", shape=NONE, flavour=NONE, **RULES)
    assert "stablehlo" in str(e.value)


def test_a_name_that_is_no_string_is_refused():
    before = [p.name for p in primitives()]
    with pytest.raises(TypeError, match="Primitive: the name is not a string"):
        Primitive(3, shape=NONE, **RULES)
    assert [p.name for p in primitives()] == before


def test_double_definitions_name_both_places():
    with pytest.raises(DuplicateRuleError, match="the name 'test_plus' is taken") as e:
        Primitive("test_plus", shape=NONE, **RULES)
    assert "test_primitive.py" in str(e.value) and "operations.py" in str(e.value)
    with pytest.raises(DuplicateRuleError, match="a rule of kind 'numpy' exists already") as e:
        plus_p.define("numpy", lambda x, y: (x,))
    assert "test_primitive.py" in str(e.value) and "operations.py" in str(e.value)


def test_missing_rules_say_who_wants_them_and_where_they_belong():
    with pytest.raises(MissingRuleError, match="test_plus: has no shard rule") as e:
        plus_p.rule("shard")
    assert "xpar" in str(e.value) and "operations.py" in str(e.value)
    assert "test_plus_p.define('shard', rule)" in str(e.value)
    with pytest.raises(
        MissingRuleError, match=r"test_plus: has no stablehlo rule: it is for tests."
    ):
        plus_p.rule("stablehlo")
    with pytest.raises(MissingRuleError, match="unheard-of"):
        plus_p.rule("unheard-of")


def test_shape_rules_are_memoised_on_avals_and_params(monkeypatch):
    calls = []

    def shape(x, *, n):
        calls.append(n)
        return (x,)

    p = Primitive("test_memo", shape=shape, **RULES)
    x = as_array(1.0).aval
    assert p.infer((x,), {"n": 1}) is p.infer((x,), {"n": 1})
    p.infer((x,), {"n": 2})
    assert calls == [1, 2]
    monkeypatch.setattr(primitive, "_MAX_MEMO", 1)
    p.infer((x,), {"n": 3})
    p.infer((x,), {"n": 1})
    assert calls == [1, 2, 3, 1]


def test_params_must_be_hashable():
    with pytest.raises(TypeError, match="test_scale: the param 'by' must be hashable, got a list"):
        scale_p.bind(as_array(1.0), by=[2])


def test_operands_must_be_arrays():
    for bad in ([1.0], "2.0", None):
        with pytest.raises(TypeError, match="test_plus: an operand is not an Array") as e:
            plus_p.bind(as_array(1.0), bad)
        assert type(bad).__name__ in str(e.value) and "test_primitive.py" in str(e.value)


@pytest.mark.parametrize("number", [2.0, np.float32(2.0), np.array(2.0, np.float32)])
def test_numbers_among_the_operands_are_made_arrays(number):
    assert float(plus_p.bind(as_array(1.0), number)[0]) == 3.0
    staged = make_jaxpr(lambda x: plus_p.bind(x, number)[0])(1.0)
    assert float(eval_closed(staged, as_array(1.0))[0]) == 3.0
    assert plus_p.get_bind_params({"by": 2}) == {"by": 2}


def test_shape_errors_reach_the_user():
    with pytest.raises(
        TypeError, match=r"test_plus: the shapes differ: float32\[2\], float32\[3\]"
    ):
        plus(np.ones(2), np.ones(3))


def test_evaluation_gives_tuples_of_arrays():
    x, y = as_array(np.ones(2, np.float32)), as_array(3.0)
    assert np.asarray(plus(x, y)).tolist() == [4, 4]
    a, b = swap_p.bind(x, y)
    assert a.weak_type and b.shape == (2,)
    assert scale(np.arange(3, dtype=np.int8), 2).dtype == np.int8


def test_rule_kinds_are_declared_once():
    kind = declare_kind("test_kind", signature="() -> ()", consumer="tests", doc="for tests")
    try:
        assert kinds["test_kind"] is kind
        assert (
            declare_kind("test_kind", signature="() -> ()", consumer="tests", doc="for tests")
            == kind
        )
        with pytest.raises(
            DuplicateRuleError, match="the kind 'test_kind' is declared already, by tests"
        ):
            declare_kind("test_kind", signature="(x)", consumer="others", doc="")
        p = Primitive("test_with_kind", shape=NONE, test_kind=len, **RULES)
        assert p.rule("test_kind") is len
        scale_p.define("test_kind", len)
    finally:
        del kinds["test_kind"]


def test_symbols_have_readable_forms():
    aval = as_array(1.0).aval
    assert repr(Zero(aval)) == "Zero(f32[])" and repr(Linear(aval)) == "Linear(f32[])"
    assert repr(rules.LINEAR) == "LINEAR" and repr(not_mapped) == "not_mapped"
    assert pickle.loads(pickle.dumps(not_mapped)) is not_mapped
    assert linear_in(0, 2).argnums == (0, 2) and multilinear(1).argnums == (1,)
    assert undefined("why").reason == "why"
    assert isinstance(kinds["jvp"], Kind) and kinds["jvp"].required


HALF_IMPORTED = """
from packages.xprim.tests import halfway
from packages.xprim.tests.test_primitive import NONE, RULES
from xprim import Primitive
p = Primitive("test_halfway", shape=NONE, **RULES)
halfway.reached.set()
assert halfway.may_go_on.wait(60)
after = "what the rules of p name"
"""


def test_a_primitive_is_found_when_its_module_is_imported_to_the_end(tmp_path, monkeypatch):
    """Its rules name what comes later in the module; another thread must not meet it before."""
    halfway = types.SimpleNamespace(reached=threading.Event(), may_go_on=threading.Event())
    monkeypatch.setitem(sys.modules, "packages.xprim.tests.halfway", halfway)
    monkeypatch.setattr("packages.xprim.tests.halfway", halfway, raising=False)
    (tmp_path / "half_imported_module.py").write_text(HALF_IMPORTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("xprim.primitive._finders", [
        lambda name: name == "test_halfway" and importlib.import_module("half_imported_module")
    ])  # fmt: skip
    found = []

    def look():
        get_primitive("test_halfway")
        found.append(hasattr(sys.modules["half_imported_module"], "after"))

    first, second = threading.Thread(target=look), threading.Thread(target=look)
    first.start()
    assert halfway.reached.wait(60)
    second.start()
    second.join(0.2)
    assert found == []  # it waits
    halfway.may_go_on.set()
    first.join(60), second.join(60)
    assert found == [True, True]
