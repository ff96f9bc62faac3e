"""`python -m xprim NAME` and the errors about rules name the row and the formulas.

The reference is the syntax tree of the file: the statement at the line that is named must hold the
primitive's name, and what it says for a kind of rule must be what is shown for it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import xprim
from xprim import Primitive, Undefined, kinds, primitive_maker, primitives, undefined
from xprim.__main__ import describe, import_owners
from xprim.errors import DuplicateRuleError, MissingRuleError
from xprim.primitive import rule_places

import_owners()
ROOT = Path(__file__).resolve().parents[1]
OURS = [p for p in primitives() if "/src/" in p.defined_at]
CORE = ("shape", "numpy", "stablehlo", "jvp", "transpose", "batch")
NONE = undefined("it is for tests")


@pytest.mark.parametrize("primitive", OURS, ids=str)
def test_the_row_of_a_primitive_is_the_line_that_says_its_name(primitive):
    row = _row(primitive)
    names = [n.value for n in ast.walk(row) if isinstance(n, ast.Constant)]
    assert primitive.name in names, f"{primitive.defined_at} is not the row of {primitive}"
    assert describe(primitive, []).endswith(_shown(primitive.defined_at))


@pytest.mark.parametrize("primitive", OURS, ids=str)
def test_the_places_of_the_rules_are_those_that_the_row_says(primitive):
    file = primitive.defined_at.rpartition(":")[0]
    for kind, expression in _said_by_row(primitive):
        rule = primitive.rules[kind]
        if not callable(rule):
            continue
        places = rule_places(rule, primitive.defined_at, primitive.name)
        expected = [f"{file}:{line}" for line in _lines_of(expression, _tree(file))]
        if expected:
            assert _files_and_lines(places) >= set(expected), (kind, places)
            if not isinstance(expression, ast.Tuple):  # one formula, which is shown first
                assert places[0].partition(" ")[0] in expected
        for word in _words_of(expression):
            assert any(word in place for place in places), (kind, word, places)


@pytest.mark.parametrize("primitive", OURS, ids=str)
def test_every_place_that_is_shown_is_a_function_or_the_row(primitive):
    for kind, rule in primitive.rules.items():
        if callable(rule):
            for place in rule_places(rule, primitive.defined_at, primitive.name):
                where = place.partition(" ")[0]
                file, line = where.rsplit(":", 1)
                in_row = where == primitive.defined_at
                assert in_row or int(line) in _starts(file), f"{kind}: nothing stands at {where}"


@pytest.mark.parametrize("primitive", OURS, ids=str)
def test_errors_about_rules_name_the_row_and_the_formula(primitive):
    missing = next(kind for kind in kinds if kind not in primitive.rules)
    with pytest.raises(MissingRuleError) as e:
        primitive.rule(missing)
    assert primitive.defined_at in str(e.value)
    rule = primitive.rules["numpy"]
    with pytest.raises(DuplicateRuleError) as e:
        primitive.define("numpy", lambda x: (x,))
    assert f"{__file__}:" in str(e.value)
    first = primitive.defined_at
    if not isinstance(rule, Undefined):
        first = rule_places(rule, primitive.defined_at, primitive.name)[0].partition(" ")[0]
    assert first in str(e.value)


def test_sine_is_shown_where_its_formula_stands():
    sin = xprim.get_primitive("sin")
    text = describe(sin, [kinds["numpy"], kinds["jvp"]])
    path = ROOT / "packages/xnp/src/xnp/primitives/elementwise.py"
    lines = path.read_text().splitlines()
    row = lines.index("sin_p = unary(") + 1
    formula = next(i for i, line in enumerate(lines, 1) if "cos_p.bind(x)" in line)
    assert f"elementwise.py:{row}\n" in text
    assert f"elementwise.py:{row} numpy.sin" in text
    assert f"elementwise.py:{formula} <lambda>" in text


def test_the_row_is_where_a_stranger_calls_a_maker():
    @primitive_maker
    def doubling(name):
        return Primitive(
            name, shape=NONE, numpy=lambda x: (2 * x,), stablehlo=NONE, jvp=NONE, transpose=NONE,
            batch=NONE,
        )  # fmt: skip

    with_row = doubling("test_of_places")
    line = doubling.__code__.co_firstlineno + 7
    assert with_row.defined_at == f"{__file__}:{line}"
    with pytest.raises(DuplicateRuleError, match=f"{__file__}:{line}"):
        doubling("test_of_places")


# ------------------------------------------------------------------------------- the syntax trees


@functools.cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text())


@functools.cache
def _starts(file: str) -> frozenset[int]:
    """Return the lines at which functions begin: `def`, their first decorator, `lambda`."""
    found = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = getattr(node, "decorator_list", [])
            found.add(min([node.lineno, *(d.lineno for d in decorators)]))
    return frozenset(found)


def _row(primitive: Primitive) -> ast.stmt:
    """Return the innermost statement around the line at which a primitive is defined."""
    file, line = primitive.defined_at.rsplit(":", 1)
    around = [
        node
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.stmt) and node.lineno <= int(line) <= (node.end_lineno or 0)
    ]
    return min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)


def _said_by_row(primitive: Primitive) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(_row(primitive)):
        if isinstance(node, ast.Call) and any(
            isinstance(a, ast.Constant) and a.value == primitive.name for a in node.args
        ):
            for keyword in node.keywords:
                if keyword.arg in CORE and keyword.arg in primitive.rules:
                    yield str(keyword.arg), keyword.value


def _lines_of(expression: ast.expr, tree: ast.Module) -> list[int]:
    """Return where the functions begin that an expression of a row writes, or names."""
    line_by_name = {
        node.name: min([node.lineno, *(d.lineno for d in node.decorator_list)])
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    match expression:
        case ast.Lambda():
            return [expression.lineno]
        case ast.Name(id=name) if name in line_by_name:
            return [line_by_name[name]]
        case ast.Tuple(elts=elements):
            return [line for element in elements for line in _lines_of(element, tree)]
    return []


def _words_of(expression: ast.expr) -> list[str]:
    """Return what an expression of a row calls by name: `sin` for `np.sin`, an operation's name."""
    match expression:
        case ast.Attribute(value=ast.Name(id="np"), attr=name):
            return [name]
        case ast.Constant(value=str(name)):
            return [name]
    return []


def _files_and_lines(places: list[str]) -> set[str]:
    return {place.partition(" ")[0] for place in places}


def _shown(place: str) -> str:
    return place.rpartition("/")[2]
