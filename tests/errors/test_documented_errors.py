"""What docstrings say that a wrong argument raises is raised, by every function that takes it."""

import ast
import inspect
import re

import numpy as np
import pytest

import xnp
import xrandom
import xstack
from tools.docstrings import MODULES, functions_of, raised
from xnp import lax, linalg, nn

WORDS = ("mode", "method", "norm", "order", "padding", "UPLO", "indexing", "side", "precision")
WRONG = {
    "axis": 99, "axes": (99, 99), "dtype": "flaot32", "preferred_element_type": "flaot32",
    "shape": (-1,), "out": np.zeros(3), "out_sharding": "rows", "where": "text", "key": "text",
    **dict.fromkeys(("size", "num", "length", "num_classes", "n"), -3),
    **dict.fromkeys(WORDS, "nonsense"),
    **dict.fromkeys("x a b x1 x2 y operand lhs rhs arr m v".split(), "text"),
}  # fmt: skip
# How many wrong calls there are at least.
LEAST = {"xstack.numpy": 600, "xstack.lax": 200}


def called_in(name, doc):
    """Return the arguments of the first call of a function in its example, and their names."""
    names = {"np": np, "numpy": np, "xnp": xnp, "xstack": xstack, "xrandom": xrandom, "lax": lax,
             "linalg": linalg, "nn": nn}  # fmt: skip
    for line in re.findall(r"^ *>>> (.*(?:\n *\.\.\. .*)*)", doc, re.MULTILINE):
        source = re.sub(r"\n *\.\.\. ?", "\n", line)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name:
                if any(isinstance(arg, ast.Starred) for arg in node.args):
                    return None
                values = [*node.args, *[keyword.value for keyword in node.keywords]]
                found = [eval(ast.unparse(value), names) for value in values]
                count = len(node.args)
                keywords = [keyword.arg for keyword in node.keywords]
                return found[:count], dict(zip(keywords, found[count:], strict=True))
        exec(source, names)
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [m for m in MODULES if not m.endswith("initializers")])
def test_a_wrong_argument_raises_what_the_docstring_says(module, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    untrue, count, uncalled = [], 0, []
    for name, function in functions_of(module):
        doc = inspect.getdoc(function)
        try:
            given = called_in(function.__name__, doc) or called_in(name, doc)
            signature = inspect.signature(function)
            signature.bind(*given[0], **given[1])
        except Exception:  # an example that goes on from other lines, or a collective
            uncalled.append(name)
            continue
        for argument in set(signature.parameters) & set(WRONG):
            line = raised(function.__name__, [argument], function.__module__)
            if not line or signature.parameters[argument].kind in (2, 4):
                continue
            expected = {"TypeError": TypeError, "ValueError": ValueError}[
                line.split(":")[0].strip()
            ]
            bound = signature.bind(*given[0], **given[1])
            bound.arguments[argument] = WRONG[argument]
            count += 1
            try:
                function(*bound.args, **bound.kwargs)
            except expected:
                continue
            except Exception as error:
                untrue.append(f"{name}({argument}): {type(error).__name__} {error}")
            else:
                untrue.append(f"{name}({argument}): nothing")
    print(module, count)
    assert untrue == []
    assert count >= LEAST.get(module, 10), count
    assert len(uncalled) <= 25, uncalled
