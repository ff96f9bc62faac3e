"""The contracts of `xprim`: implemented in full, and nothing beyond them is asked for."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import xprim
from xad._jvp import JVPHandle
from xad._linearize import Linearized, LinearizeHandle
from xad.transpose import TransposeHandle
from xbatch.batching import BatchAxis
from xjit.checkify._checkify import EnabledChecks
from xjit.dispatch.eager_backend import EagerBackend, NoDevices
from xjit.lowering.stablehlo_text import Builder
from xprim import contracts
from xstack.compiler_on_demand import CompilerOnDemand

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))
PAIRS = [
    (xprim.Backend, xprim.HostBackend),
    (xprim.Backend, EagerBackend),
    (xprim.Backend, NoDevices),
    (xprim.Backend, CompilerOnDemand),
    (contracts.Builder, Builder),
    (contracts.BatchAxis, BatchAxis),
    (contracts.JVPHandle, JVPHandle),
    (contracts.LinearizeHandle, LinearizeHandle),
    (contracts.SplitProgram, Linearized),
    (contracts.TransposeHandle, TransposeHandle),
    (contracts.ChecksHandle, EnabledChecks),
]


def members(contract: type) -> dict[str, Any]:
    """Return what a contract declares, by name."""
    found: dict[str, Any] = {}
    for cls in reversed(contract.__mro__[:-1]):
        if cls.__module__.startswith("xprim"):
            found |= dict.fromkeys(inspect.get_annotations(cls))
            found |= {k: v for k, v in cls.__dict__.items() if not k.startswith("_")}
    return found


@pytest.mark.parametrize(("contract", "implementation"), PAIRS, ids=lambda cls: cls.__name__)
def test_an_implementation_has_every_member_with_the_same_parameters(contract, implementation):
    declared = members(contract)
    assert declared
    for name, member in declared.items():
        assert hasattr(implementation, name), f"{implementation.__name__} lacks {name}"
        if inspect.isfunction(member):
            found = inspect.signature(getattr(implementation, name)).parameters.values()
            wanted = inspect.signature(member).parameters.values()
            own = [(p.name, p.kind, p.default) for p in found if p.name != "self"]
            assert own == [(p.name, p.kind, p.default) for p in wanted if p.name != "self"], (
                f"{implementation.__name__}.{name}"
            )


@pytest.mark.parametrize("contract", dict.fromkeys(c for c, _ in PAIRS), ids=lambda c: c.__name__)
def test_every_member_says_in_a_sentence_what_it_does(contract):
    for name, member in members(contract).items():
        text = inspect.getdoc(contract if member is None else member) or ""
        assert name in text if member is None else text.split("\n")[0].rstrip(":"), name


# --- nothing else is asked for --------------------------------------------------------------------

# The first parameter of a rule, by which it gets what a contract describes, and the second.
RULE_PARAMETERS = {
    ("b", "operands"): [contracts.Builder],
    ("builder", "operands"): [contracts.Builder],
    ("inner", "names"): [contracts.Builder],
    ("axis", "operands"): [contracts.BatchAxis],
    ("handle", "primals"): [contracts.JVPHandle, contracts.LinearizeHandle],
    ("handle", "cts"): [contracts.TransposeHandle],
    ("handle", "state"): [contracts.ChecksHandle],
    ("handle", "before"): [contracts.ChecksHandle],
}


def unchecked_rules(source: str) -> list[int]:
    """Return the lines of rules in which a type checker does not know what they are given.

    A lambda cannot say that; it may use what the contract declares.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            args = [a for a in (*node.args.posonlyargs, *node.args.args) if a.arg != "self"]
            kinds = RULE_PARAMETERS.get(tuple([a.arg for a in args[:2]]), [])
            if isinstance(node, ast.FunctionDef):
                typed = {is_typed(args[0], kind.__name__) for kind in kinds}
                found += [node.lineno] if kinds and typed == {False} else []
            else:
                allowed = {name for kind in kinds for name in members(kind)}
                found += [n.lineno for n in ast.walk(node) if kinds and isinstance(n, ast.Attribute)
                          and is_name(n.value, args[0].arg) and n.attr not in allowed]  # fmt: skip
    return found


def is_typed(arg: ast.arg, name: str) -> bool:
    return arg.annotation is not None and ast.unparse(arg.annotation).rpartition(".")[2] == name


def is_name(node: ast.AST | None, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def undeclared_of_backend(source: str) -> list[tuple[int, str]]:
    """Return what a module asks of `EAGER.backend` that `Backend` does not declare."""
    allowed, found = members(xprim.Backend), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and is_backend(node.value) and node.attr not in allowed:
            found.append((node.lineno, node.attr))
        if (
            isinstance(node, ast.Call) and is_name(node.func, "getattr", "hasattr")
            and node.args and is_backend(node.args[0])
        ):  # fmt: skip
            found.append((node.lineno, "getattr"))
    return found


def is_backend(node: ast.AST) -> bool:
    return is_name(node, "backend") or (
        isinstance(node, ast.Attribute) and node.attr == "backend"
        and is_name(node.value, "EAGER", "_EAGER", "self")
    )  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "packages")))
def test_rules_use_only_what_the_contracts_declare(path):
    assert unchecked_rules(path.read_text()) == []
    assert undeclared_of_backend(path.read_text()) == []


def test_a_use_beyond_the_contracts_is_found():
    rule = "def _stablehlo(b: {}, operands, avals_in, avals_out):\n    return b.op(b.secret)\n"
    assert unchecked_rules(rule.format("Any")) == [1]
    assert unchecked_rules(rule.format("Builder")) == []  # mypy knows that there is no `secret`
    assert unchecked_rules("_batch = lambda axis, operands, dims: axis.secret(operands)") == [1]
    assert unchecked_rules("_batch = lambda axis, operands, dims: axis.move(operands)") == []
    assert unchecked_rules("def _jvp(handle, primals):\n    return handle.secret(args)") == [1]
    assert undeclared_of_backend("backend = EAGER.backend\nbackend.secret(1)") == [(2, "secret")]
    assert undeclared_of_backend("put = getattr(EAGER.backend, 'device_put', None)")


# --- the form of errors ---------------------------------------------------------------------------

LABEL = re.compile(r"\\n  (got|expected|where|hint)  ")
# Texts that are not `operation: sentence`, to which `message` would have nothing to add.
LABELS_BY_HAND = {
    "xbatch/_custom_vmap.py": "the sentence begins with whose rule it is",
    "xjit/cache/functions.py": "it has a label of its own, what changed",
    "xjit/debug/monitoring.py": "a line for the first warnings of several",
    "xjit/dispatch/arguments.py": "the sentence begins with the option that is wrong",
    "xjit/jaxlib_gateway/clients.py": "the sentence begins with the variable that is wrong",
    "xjit/lowering/modules.py": "a line for an error that is there",
    "xnp/numpy/index_entries.py": "the sentence begins with words that programs search for",
    "xnp/numpy/index_update.py": "a line for Python's own text about an attribute",
    "xprim/errors.py": "a line for an error of Python that is there",
    "xprim/requirements.py": "a line for the text of a user",
    "xprim/testing.py": "what an assertion says",
    "xrandom/samplers.py": "the sentence begins with the argument that is wrong",
    "xtree/namespaces.py": "a line for the error of a missing name",
}


def test_the_labels_of_errors_are_written_by_one_function():
    found = {str(p).partition("/src/")[2] for p in SOURCES if LABEL.search(p.read_text())}
    assert found == set(LABELS_BY_HAND)
