"""Boundaries: where library frames are cut out of tracebacks; code made at run time.

Between a user's call and the line that says what is wrong lie frames that help nobody. An error
that leaves a boundary is shown to the function that `when_leaving` was given, which may cut them
out of its traceback. `boundary` is for one function, `boundaries` for all that a module makes
public.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from xtree.interning import is_hashable, value_key
from xtree.leaving import boundary, leave, when_leaving
from xtree.registry import default_registry

if TYPE_CHECKING:
    from xtree.treedef import PyTreeDef

__all__ = [
    "USES_BEFORE_COMPILING", "can_match", "compile_build", "compile_match", "is_compilable",
    "written_function", "boundaries", "boundary", "boundary_methods", "is_boundary", "leave",
    "when_leaving",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- compiling
# Compile a structure that is used often into Python functions of its own.
#
# `build` unpacks the list of leaves and evaluates the tree as one nested literal, `{'b': x0, 'w':
# [x1, (x2, x3)]}`. `match` is the way back: it takes a tree apart with straight-line code,
# checking type, length and keys of each container, and gives the leaves, or None when the tree
# has another structure. Both cost a third to a fifth of walking the structure; they are a
# shortcut only, and no result depends on whether it was taken.

# Compiling takes some 10 us a node, and saves some 0.2 us a node at each use.
USES_BEFORE_COMPILING = 64
_MAX_NODES = 2000
# CPython's parser refuses expressions nested some 100 levels and more.
_MAX_DEPTH = 30
# So many are looked at one by one in the time that a call for all takes.
_FEW_KEYS = 4

_STR_ONLY = frozenset({str})


def is_compilable(treedef: PyTreeDef) -> bool:
    """Say whether a structure is neither so small nor so large that compiling it does not pay."""
    return (
        not treedef.is_flat and 3 <= treedef.num_nodes <= _MAX_NODES and treedef.depth <= _MAX_DEPTH
    )


def compile_build(treedef: PyTreeDef) -> Callable[[list[Any]], Any]:
    """Return the function from a list of the right number of leaves to the tree."""
    names = [f"x{i}" for i in range(treedef.num_leaves)]
    constants: dict[str, Any] = {}
    expression = _literal(treedef, iter(names), constants)
    lines = ["def build(leaves):", f" [{', '.join(names)}] = leaves", f" return {expression}"]
    build: Callable[[list[Any]], Any] = _function("build", lines, constants)
    return build


def compile_match(treedef: PyTreeDef) -> Callable[[Any], list[Any] | None]:
    """Return the function from a tree to its leaves, or to None if it has another structure."""
    code = _MatchCode()
    code.add(treedef, "x0")
    code.constants |= {
        "is_leaves_only": default_registry.leaf_types.issuperset,
        "is_str_only": _STR_ONLY.issuperset,
        "value_key": value_key,
    }
    lines = [
        "def match(x0):",
        " try:",
        *[f"  {line}" for line in code.lines],
        f"  leaves = [{', '.join(code.leaves)}]",
        " except KeyError:",
        "  return None",
        " if not is_leaves_only(map(type, leaves)): return None",
        *[f" {line}" for line in code.checks_of_keys],
        " return leaves",
    ]
    match: Callable[[Any], list[Any] | None] = _function("match", lines, code.constants)
    return match


class _MatchCode:
    """Straight-line code that takes one structure apart."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.checks_of_keys: list[str] = []
        self.constants: dict[str, Any] = {}
        self.count = 0

    def add(self, treedef: PyTreeDef, value: str) -> None:
        """Append the code for the variable `value`, which should hold a tree of this structure."""
        node = treedef.node
        if node is None:
            self.leaves.append(value)
            return
        kind = node.type
        if kind is type(None):
            self.lines.append(f"if {value} is not None: return None")
            return
        names = [self._new_name() for _ in treedef.child_defs]
        type_ = kind.__name__ if kind in (tuple, list, dict) else self._constant(kind)
        self.lines.append(f"if type({value}) is not {type_}: return None")
        if kind is dict:
            self._take_items(treedef, value, names)
        elif kind is tuple or kind is list:
            self._unpack(value, names)
        else:
            self._take_children(treedef, value, names)
        for child, name in zip(treedef.child_defs, names, strict=True):
            self.add(child, name)

    def _take_items(self, treedef: PyTreeDef, value: str, names: list[str]) -> None:
        # Exactly str: an instance of a subclass may equal a string, but must come back as itself.
        self.checks_of_keys += (
            [f"for key in {value}:", "  if type(key) is not str: return None"]
            if len(names) <= _FEW_KEYS
            else [f"if not is_str_only(map(type, {value})): return None"]
        )
        self.lines.append(f"if len({value}) != {len(names)}: return None")
        for key, name in zip(treedef.data, names, strict=True):
            self.lines.append(f"{name} = {value}[{key!r}]")

    def _take_children(self, treedef: PyTreeDef, value: str, names: list[str]) -> None:
        assert treedef.node is not None
        children_of = self._constant(treedef.node.children)
        data_key = self._constant(value_key(treedef.data)[0])
        self.lines.append(f"{value}, data = {children_of}({value})")
        self.lines.append(f"if value_key(data)[0] != {data_key}: return None")
        self._unpack(value, names)

    def _unpack(self, value: str, names: list[str]) -> None:
        self.lines.append(f"if len({value}) != {len(names)}: return None")
        if names:
            self.lines.append(f"[{', '.join(names)}] = {value}")

    def _new_name(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def _constant(self, value: Any) -> str:
        return _constant(value, self.constants)


def can_match(treedef: PyTreeDef) -> bool:
    """Say whether `match` can check a structure fast.

    The keys of dicts must be strings, and metadata hashable: a list, which can change, is compared
    by what it holds at each time.
    """
    node = treedef.node
    if node is not None and node.type is dict:
        if not _STR_ONLY.issuperset(map(type, treedef.data)):
            return False
    elif not is_hashable(treedef.data):
        return False
    return all(map(can_match, treedef.child_defs))


def _literal(treedef: PyTreeDef, names: Iterator[str], constants: dict[str, Any]) -> str:
    node = treedef.node
    if node is None:
        return next(names)
    items = [_literal(child, names, constants) for child in treedef.child_defs]
    if node.type is list:
        return f"[{', '.join(items)}]"
    if node.type is dict:
        keys = [_constant(key, constants) for key in treedef.data]
        return "{" + ", ".join(map(": ".join, zip(keys, items, strict=True))) + "}"
    if node.type is type(None):
        return "None"
    children = f"({', '.join(items)},)" if items else "()"
    if node.type is tuple:
        return children
    data = _constant(treedef.data, constants)
    return f"{_constant(node.unflatten, constants)}({data}, {children})"


def _constant(value: Any, constants: dict[str, Any]) -> str:
    if type(value) is str:
        return repr(value)
    name = f"c{len(constants)}"
    constants[name] = value
    return name


def written_function(name: str, text: str, namespace: dict[str, Any], file: str) -> Any:
    """Return the function of a name that a text defines, where all text that is run comes by.

    Args:
      name: of the function.
      text: Python, of names that the caller makes or has looked at; nothing else may be in it.
      namespace: the values of the names in it, which belongs to the function from now on.
      file: what tracebacks show; one in a folder of the library is hidden from users.

    Example:
      >>> written_function("add", "def add(x): return x + k", {"k": 1}, "<made>")(2)
      3
    """
    exec(compile(text, file, "exec"), namespace)
    return namespace[name]


def _function(name: str, lines: list[str], constants: dict[str, Any]) -> Any:
    # The text holds only names made here, counts, and string keys as repr quotes them.
    return written_function(name, "\n".join(lines), constants, "<xtree.boundaries>")


# ------------------------------------------------------------------------------------ boundaries
# Where errors leave the library for the user's code: what `boundary` does there.
#
# Between a user's call and the line that says what is wrong with it lie frames that help nobody.
# An error that leaves a boundary is shown to the function that `when_leaving` was given, which
# may cut them out of its traceback (`xprim.tracebacks` does); without one, all frames stay.
#
# A `try` that nothing leaves costs nothing, so hot functions have one themselves and call
# `leave`. `boundary` is for one function, `boundaries` for all that a module makes public,
# `boundary_methods` for those of a class.

C = TypeVar("C")


def boundaries(
    module_globals: dict[str, Any], *, written: bool = False, names: Iterable[str] | None = None
) -> None:
    r"""Make every public function of a module a boundary; the last line of the module.

    What the module lists of others stays as it is, and so does what is a boundary already. Two
    names of one function stay names of one.

    Args:
      module_globals: its `globals()`.
      written: write each boundary for the parameters of its function. A call then costs 0.02 us
        more than one of the function, instead of 0.1 us; the first of its form takes 0.1 ms.
      names: the functions that become boundaries; by default all in `__all__`.

    Example:
      >>> import types
      >>> module = types.ModuleType("geometry")
      >>> exec("__all__ = ['area']\ndef area(a, b=1): return a * b", vars(module))
      >>> plain = module.area
      >>> boundaries(vars(module), written=True)
      >>> module.area(3), module.area(3, b=2), module.area.__wrapped__ is plain
      (3, 6, True)
    """
    home = module_globals["__name__"]
    make = functools.cache(_write if written else boundary)
    for name in module_globals["__all__"] if names is None else names:
        fun = module_globals.get(name)
        if type(fun) is FunctionType and fun.__module__ == home and not is_boundary(fun):
            module_globals[name] = make(fun)


def boundary_methods(cls: type[C]) -> type[C]:
    """Make each public method of a class a boundary, its operators, too; a decorator.

    Properties stay as they are, and so does what flattens and compares, which is called often and
    seldom goes wrong.

    Example:
      >>> @boundary_methods
      ... class Square:
      ...     def __init__(self, side):
      ...         self.side = side
      ...     def area(self):
      ...         return self.side**2
      >>> Square(3).area(), is_boundary(Square.area)
      (9, True)
    """
    for name, member in list(vars(cls).items()):
        is_special = name.startswith("__") and name.endswith("__")
        if name in _NO_BOUNDARIES or (name.startswith("_") and not is_special):
            continue
        kind = type(member)
        fun = member.__func__ if kind in (classmethod, staticmethod) else member
        if type(fun) is FunctionType and not is_boundary(fun):
            made = boundary(fun)
            setattr(cls, name, made if fun is member else kind(made))
    return cls


_NO_BOUNDARIES = frozenset((
    "tree_flatten", "tree_unflatten", "__repr__", "__str__", "__hash__", "__eq__", "__ne__",
    "__setattr__", "__delattr__", "__getattr__", "__init_subclass__", "__class_getitem__",
    "__reduce__", "__copy__", "__deepcopy__", "__getnewargs__", "__dir__", "__del__",
))  # fmt: skip


def is_boundary(fun: FunctionType) -> bool:
    """Return whether errors leave a function through a boundary, its own or one around it."""
    code = fun.__code__
    return code.co_filename in _OURS or not _LEAVING_NAMES.isdisjoint(code.co_names)


_MADE = f"{__file__}-made"  # hidden as this file is; there is no such file, so no line is shown
_OURS = (boundary.__code__.co_filename, _MADE)
_LEAVING_NAMES = frozenset(("leave", "shorten", "_shorten"))
_VARIABLE = 0x04 | 0x08  # of `co_flags`: *args, **kwargs; `inspect` takes long to import


def _write(fun: FunctionType) -> Callable[..., Any]:
    code = fun.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    if code.co_flags & _VARIABLE or any(name.startswith("_") for name in names):
        return boundary(fun)
    template = _template(count, code.co_posonlyargcount, code.co_kwonlyargcount)
    named = _rename(template, dict(zip(template.co_varnames, names, strict=False)))
    made = FunctionType(named, globals(), fun.__name__, fun.__defaults__, (CellType(fun),))
    made.__kwdefaults__ = fun.__kwdefaults__
    return functools.update_wrapper(made, fun)


@functools.cache
def _template(count: int, only_positional: int, keywords: int) -> CodeType:
    """Return the code of a boundary with so many parameters, named `a0`, `a1`, ...

    To write and compile one costs as much as to rename thirty, so those of one form share it.
    """
    names = [f"a{i}" for i in range(count + keywords)]
    slash = ["/"] if only_positional else []
    star = ["*", *names[count:]] if keywords else []
    parameters = [*names[:only_positional], *slash, *names[only_positional:count], *star]
    given = [*names[:count], *[f"{name}={name}" for name in names[count:]]]
    call = f"_fun({', '.join(given)})"
    if not only_positional:  # the function refuses a keyword within the boundary
        parameters.append("**_unknown")
        call = f"_fun({', '.join([*given, '**_unknown'])}) if _unknown else {call}"
    text = _TEMPLATE.format(parameters=", ".join(parameters), call=call)
    # The text holds the template and these names. It sees this module, as `boundary` does.
    made: FunctionType = written_function("_make", text, globals(), _MADE)(None)
    return made.__code__


def _rename(code: CodeType, names: dict[str, str]) -> CodeType:
    """Return code with other names for its variables, and for the keywords of its calls."""
    consts = [
        tuple([names.get(n, n) for n in c]) if type(c) is tuple else names.get(c, c)
        for c in code.co_consts
    ]
    variables = tuple([names.get(name, name) for name in code.co_varnames])
    return code.replace(co_varnames=variables, co_consts=tuple(consts))


_TEMPLATE = """
def _make(_fun):
    def bounded({parameters}):
        try:
            return {call}
        except Exception as _error:
            leave(_error)
            raise
    return bounded
"""
