"""Nothing is swallowed: who catches every exception raises, keeps or tells it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SILENT = {
    ("xprim/eager.py", "_is_held"): "says whether a buffer may be asked; jaxlib has many "
    "classes of errors for one that may not",
    ("xpar/_shard_map.py", "key"): "the hash of a user's object may raise anything, and a call "
    "whose values cannot be hashed is not kept",
    ("xpar/distributed.py", "_end_now"): "the process ends, whatever its streams say",
    ("xjit/jaxlib_gateway/host_kernels.py", "_wait_at_exit"): "the process ends, and a program "
    "that failed has ended, too",
    ("xtree/errors.py", "shown"): "a repr of the user's fails while another error is told",
}


ATTRIBUTES = {
    ("xjit/debug/prints.py", "_check_format"): "the user's format reads attributes: an error tells",
    ("xjit/jaxlib_gateway/clients.py", "keep_freed_pages"): "a C library without `mallopt`: ctypes "
    "has no other answer",
    ("xnp/sparse/bcoo.py", "__repr__"): "what transformations put into a pytree has no shape, and "
    "a repr does not fail",
    ("xnp/sparse/formats.py", "__repr__"): "likewise",
    (
        "xprim/function_keys.py",
        "attributes_in_dict",
    ): "`object.__getattribute__` has no other answer",
    ("xprim/function_keys.py", "slot_of"): "a slot that holds nothing has no other answer",
}
"""Where a missing attribute is an answer. `xjit.dispatch.fast_path` has one in generated code."""


_BROAD = re.compile(r"\b(?:Base)?Exception\b|except\s*:")


def silent_handlers(source):
    """Yield the functions in which a broad `except` leaves its error unused and raises nothing."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                raises = any(isinstance(n, ast.Raise) for n in ast.walk(node))
                if node.name not in used and not raises:
                    yield function.name
            elif isinstance(node, ast.Call) and _name(node.func) == "suppress":
                yield from [function.name] * any(map(_is_broad, node.args))


def attribute_handlers(source):
    """Yield the functions in which a missing attribute is an answer: a handler that never raises.

    One that raises is not control flow: it makes an error of the caller's, or shortens a traceback.
    """
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.ExceptHandler) and _names_attribute_error(node.type):
                if not any(isinstance(n, ast.Raise) for n in ast.walk(node)):
                    yield function.name
            elif isinstance(node, ast.Call) and _name(node.func) == "suppress":
                yield from [function.name] * any(map(_names_attribute_error, node.args))


def _names_attribute_error(kind):
    if isinstance(kind, ast.Tuple):
        return any(map(_names_attribute_error, kind.elts))
    return kind is not None and _name(kind) == "AttributeError"


def _is_broad(kind):
    if isinstance(kind, ast.Tuple):
        return any(map(_is_broad, kind.elts))
    return kind is None or _name(kind) in ("Exception", "BaseException")


def _name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_what_catches_all_raises_keeps_or_tells_it():
    found = {
        (path.as_posix().partition("/src/")[2], name)
        for path in ROOT.glob("packages/*/src/**/*.py")
        if _BROAD.search(text := path.read_text())  # to read all as programs takes three seconds
        for name in silent_handlers(text)
    }
    assert found == SILENT.keys()


@pytest.mark.parametrize(
    ("handler", "is_silent"),
    [
        ("except Exception:\n  return 1", True),
        ("except:\n  pass", True),
        ("except (ValueError, BaseException) as e:\n  pass", True),
        ("except Exception as e:\n  log(e)", False),
        ("except Exception:\n  raise KeyError from None", False),
        ("except ValueError:\n  pass", False),
    ],
)
def test_a_silent_handler_is_found(handler, is_silent):
    lines = f"try:\n  x()\n{handler}".split("\n")
    source = "\n".join(["def f():", *[f"  {line}" for line in lines]])
    assert list(silent_handlers(source)) == ["f"] * is_silent


def test_a_broad_suppress_is_found():
    source = "def f():\n  with contextlib.suppress(Exception):\n    x()"
    assert list(silent_handlers(source)) == ["f"]


def test_a_missing_attribute_is_no_control_flow():
    """Ask for what is meant: a type, a rule, a protocol, a version."""
    found = {
        (path.as_posix().partition("/src/")[2], name)
        for path in ROOT.glob("packages/*/src/**/*.py")
        if "AttributeError" in (text := path.read_text())
        for name in attribute_handlers(text)
    }
    assert found == ATTRIBUTES.keys()


@pytest.mark.parametrize(
    ("handler", "is_answer"),
    [
        ("try:\n    x.y\n  except AttributeError:\n    return 1", True),
        ("try:\n    x.y\n  except (KeyError, AttributeError):\n    pass", True),
        ("with contextlib.suppress(AttributeError):\n    x.y", True),
        ("try:\n    x.y\n  except AttributeError:\n    raise TypeError from None", False),
        ("try:\n    x.y\n  except KeyError:\n    pass", False),
    ],
)
def test_a_handler_of_missing_attributes_is_found(handler, is_answer):
    assert list(attribute_handlers(f"def f():\n  {handler}")) == ["f"] * is_answer
