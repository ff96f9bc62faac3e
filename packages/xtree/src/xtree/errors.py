"""The errors of pytree operations, and the one template their texts follow; text for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from types import FrameType

from xtree.namespaces import late_import

__all__ = [
    "DepthError", "KeyOrderError", "MalformedNodeError", "RegistrationError",
    "StructureMismatchError", "message", "shown", "with_article", "escaped", "preformatted",
    "imports_from", "nearest",
]  # fmt: skip

__dir__ = __all__.copy

_difflib = late_import("difflib", "what errors suggest, when there is one")
_opcode = late_import("opcode", "errors about unknown names")


# ---------------------------------------------------------------------------------------- errors
# The errors of pytree operations, and the one template their texts follow.
#
# The first line says which operation failed and what is wrong; the lines after it, each optional,
# say what was given, what was expected, and what would help. Every class also derives from the
# built-in class that fits (`ValueError`, `TypeError`), so callers need not know the names here.


class StructureMismatchError(ValueError):
    """Two trees that must have the same structure, or be prefix and tree, do not.

    The wrong program, `tree.map(f, {"a": (1, 2)}, {"a": (1, 2, 3)})`, asks for one call of `f` per
    leaf of the first tree, but the trees differ at `['a']`. The right one gives both trees the same
    containers down to the leaves of the first: `tree.map(f, {"a": (1, 2)}, {"a": (1, (2, 3))})`.
    """


class DepthError(ValueError):
    """A tree is nested too deeply, which mostly means that a container holds itself.

    The wrong program is `x = []; x.append(x); tree.flatten(x)`. Such a value has no finite list of
    leaves; make a copy that stops somewhere, or keep the value out of the tree (`is_leaf`,
    `register_static`).
    """


class KeyOrderError(ValueError):
    """The keys of a dict have no order, so its leaves have none either.

    The wrong program is `tree.flatten({1: a, "b": b})`. Use keys that can be sorted (all strings,
    all numbers, tuples of these), or an `OrderedDict`, whose order is its own.
    """


class RegistrationError(ValueError):
    """A type is registered twice, or is not registered although an operation needs it to be."""


class MalformedNodeError(TypeError, ValueError):
    """A registered flatten function breaks its promise.

    It must return a pair: an iterable of children, and comparable metadata. It must give the same
    number of children with keys as without, and the same children whenever it is called with the
    same object.
    """


def message(
    operation: str,
    problem: str,
    *,
    got: str = "",
    expected: str = "",
    where: str = "",
    hint: str = "",
) -> str:
    r"""Return a message of the common form; labels without text are left out.

    Args:
        operation: the public function that refuses.
        problem: what is wrong, a sentence with its full stop.
        got: the offending operands, by name, with dtype and shape.
        expected: what would have been right.
        where: the user's file, line and function.
        hint: what to write instead, if that is right in all cases.

    Example:
        >>> print(message("dot", "the contracted dimensions differ: 3 and 4.",
        ...               got="x: f32[2,3], y: f32[4,3]", expected="x.shape[-1] == y.shape[-2]"))
        dot: the contracted dimensions differ: 3 and 4.
          got       x: f32[2,3], y: f32[4,3]
          expected  x.shape[-1] == y.shape[-2]
    """
    lines = [f"{operation}: {problem}"]
    for label, text in (("got", got), ("expected", expected), ("where", where), ("hint", hint)):
        if text:
            lines.append(f"  {label:<10}" + text.replace("\n", "\n" + " " * 12))
    return "\n".join(lines)


def error_text(
    operation: str, problem: str, *, got: str | Iterable[str] = (), **labels: str
) -> str:
    """Return a `message`: what 0.2.0 calls it, for those who have that name."""
    return message(
        operation, problem, got=got if isinstance(got, str) else "\n".join(got), **labels
    )


def with_article(noun: str) -> str:
    """Return a noun with `a` or `an`.

    Example:
      >>> with_article("int"), with_article("tuple")
      ('an int', 'a tuple')
    """
    return f"{'an' if noun[:1] in 'aeiouAEIOU' else 'a'} {noun}"


def shown(value: object, limit: int = 80) -> str:
    """Return the repr of `value` on one line, cut to `limit` characters; never raises."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{type(value).__name__} object whose repr fails>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


# ------------------------------------------------------------------------------------- notebooks
# The rich form of what has a long text, for notebooks: the text, escaped and of bounded length.

_MOST_LINES = 200
_MOST_CHARACTERS = 20_000


def escaped(text: str) -> str:
    """Return a text as HTML shows it.

    Example:
      >>> escaped("a < b & c")
      'a &lt; b &amp; c'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def preformatted(text: str) -> str:
    """Return a text as a block of HTML that keeps its lines; the end of a long one is left out.

    Example:
      >>> preformatted("PyTreeDef([*, *])")
      '<pre style="font-family: monospace">PyTreeDef([*, *])</pre>'
    """
    lines = text[:_MOST_CHARACTERS].split("\n")
    shown = "\n".join(lines[:_MOST_LINES])
    left_out = f"\n... ({len(text):,} characters)" if len(shown) < len(text) else ""
    return f'<pre style="font-family: monospace">{escaped(shown + left_out)}</pre>'


# ------------------------------------------------------------------------------------- misspellings
# What an error about an unknown name suggests.

_NEAR = 0.75  # of difflib's ratio: about one letter in four may be wrong


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was likely meant, or None.

    Args:
      name: the unknown one.
      names: those that there are.

    Example:
      >>> nearest("snh", ["sin", "sinh", "cosh"]), nearest("custom_partitioning", ["custom_vjp"])
      ('sinh', None)
    """
    found = _difflib.get_close_matches(name, names, 1, _NEAR)
    return found[0] if found else None


def imports_from(frame: FrameType) -> bool:
    """Return whether a frame executes `from module import name`.

    Python replaces the text of an AttributeError there by its own, and leaves other errors be.
    """
    return bool(frame.f_code.co_code[frame.f_lasti] == _opcode.opmap["IMPORT_FROM"])
