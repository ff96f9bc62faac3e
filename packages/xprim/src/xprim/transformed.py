"""The functions that transformations take and return: names, docstrings, signatures."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType, NoneType
from typing import Any, TypeVar, cast

import numpy as np

import xtree
from xprim.array import Array, as_array, from_numpy
from xprim.errors import described, place_of
from xtree.errors import message
from xtree.namespaces import import_by_name

__all__ = [
    "attribute_of_wrapped", "check_function", "find", "name_of", "look_like", "looking_like",
    "Transformed", "Transforms", "transformed", "transforming", "as_arrays", "flat_arrays",
    "path_of", "paths_of", "unchangeable",
]  # fmt: skip

__dir__ = __all__.copy

# ------------------------------------------------------------------------------------- callables
# What transformations ask of a user's callable: that it returns its result, its name, its looks.
#
# A callable need not be a function: it may be a partial, an object with `__call__`, a builtin or
# a test's mock, whose `__name__`, `__doc__` and other attributes may be missing or be no strings.
# Everything in the family that reads them reads them here.

F = TypeVar("F", bound=Callable[..., Any])

_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DELAYED = inspect.CO_GENERATOR | _ASYNC
_TYPES_BY_ATTRIBUTE: dict[str, Any] = {
    "__name__": str,
    "__qualname__": str,
    "__module__": (str, NoneType),
    "__doc__": (str, NoneType),
    "__annotations__": dict,
    "__type_params__": tuple,
}


def check_function(fun: Any, operation: str, hint: str = "") -> None:
    """Raise a TypeError unless `fun` is something that returns its result when it is called.

    A generator function or an async function returns before its body has run, so that there would
    be nothing to transform.

    Example:
      >>> check_function(abs, "grad")
      >>> check_function(3, "grad")
      Traceback (most recent call last):
      ...
      TypeError: grad: expected a function, got an int.
    """
    if not callable(fun):
        raise TypeError(message(
            operation, f"expected a function, got {described(fun)}.", hint=hint
        ))  # fmt: skip
    flags = _code_flags(fun)
    if flags & _DELAYED:
        kind, what = ("an async", "await") if flags & _ASYNC else ("a generator", "yield")
        raise TypeError(message(
            operation, f"expected a function, got {kind} function: {place_of(fun)}.",
            hint=f"{what} around the call of a function that returns its result",
        ))  # fmt: skip


def _code_flags(fun: Any) -> int:
    while isinstance(fun, functools.partial | MethodType):
        fun = fun.func if isinstance(fun, functools.partial) else fun.__func__
    if not isinstance(fun, FunctionType):
        fun = inspect.getattr_static(type(fun), "__call__", None)
    return fun.__code__.co_flags if isinstance(fun, FunctionType) else 0


def name_of(fun: Any, otherwise: str = "the function") -> str:
    """Return a callable's `__name__`, or `otherwise` where that is missing or no string.

    Example:
      >>> name_of(len), name_of(functools.partial(len))
      ('len', 'the function')
    """
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) and name else otherwise


def look_like(wrapper: F, fun: Any, updated: tuple[str, ...] = functools.WRAPPER_UPDATES) -> F:
    """Give `wrapper` the name, documentation and attributes of `fun`, as far as it has them."""
    if type(fun) is FunctionType:
        functools.update_wrapper(wrapper, fun, updated=updated)
        return wrapper
    assigned = [
        name
        for name in functools.WRAPPER_ASSIGNMENTS
        if isinstance(getattr(fun, name, ...), _TYPES_BY_ATTRIBUTE.get(name, object))
    ]
    functools.update_wrapper(wrapper, fun, assigned, updated)
    return wrapper


def looking_like(fun: Any) -> Callable[[F], F]:
    """Return the decorator that does what `look_like` does.

    Example:
      >>> @looking_like(len)
      ... def wrapper(x):
      ...     return len(x)
      >>> wrapper.__name__
      'len'
    """
    return functools.partial(look_like, fun=fun)


def attribute_of_wrapped(decorated: Any, name: str) -> Any:
    """Return a public attribute of what an object decorates, for its `__getattr__`.

    Rules are set through decorators of other kinds so: `def_vmap` of a `custom_vjp` around a
    `custom_vmap`.

    Args:
      decorated: an object with the decorated function as `fun`.
      name: an attribute that the object does not have.

    Raises:
      AttributeError: where the function has none either, or the name is private.

    Example:
      >>> class Decorated:
      ...     fun = functools.partial(max, default=1)
      >>> attribute_of_wrapped(Decorated(), "keywords")
      {'default': 1}
    """
    fun = None if name == "fun" or name.startswith("_") else decorated.fun
    if fun is None or not hasattr(fun, name):
        raise AttributeError(
            f"{type(decorated).__name__!r} object has no attribute {name!r}",
            name=name, obj=decorated,
        )  # fmt: skip
    return getattr(fun, name)


# ----------------------------------------------------------------------------------- transformed
# The functions that transformations return, and what they say they are.
#
# `transformed(run, fun, "jit")` is called as `run`, looks like `fun`, and prints as what it is:
# `<jit of loss at train.py:12>`, or `<jit of <grad of loss at train.py:12>>`. The text is made
# when it is requested. Python's functions cannot have a repr of their own, so these are objects;
# they become methods in classes, and are pickled and copied by name, as functions are.
#
# `Transforms` gives the same repr to classes whose objects stand for a function, as `custom_jvp`.

_MOST_WRAPPERS = 100


class Transforms:
    """What says by its repr by which transformation, and of what function, it was made.

    Attributes:
      transformation: the name of the transformation.
    """

    __slots__ = ()

    transformation: str

    def __repr__(self) -> str:
        return f"<{self.transformation} of {_origin(getattr(self, '__wrapped__', None))}>"


class Transformed(Transforms, functools.partial):  # type: ignore[type-arg]
    """A function that a transformation returned; made by `transformed`.

    A `functools.partial` of no arguments hands a call on in 0.03 us, by position or by name; a
    `__call__` of Python's takes five times as long.
    """

    __slots__ = ("__name__", "__qualname__", "is_static", "transformation")

    __name__: str
    __qualname__: str
    is_static: bool  # made of a `staticmethod`: an attribute of a class that gets no instance

    def __new__(cls, run: Callable[..., Any], transformation: str) -> Transformed:
        """Make one that has the metadata of `run` until it is replaced."""
        self = super().__new__(cls, run)
        self.__name__ = run.__name__
        self.__qualname__ = run.__qualname__
        self.transformation = transformation
        self.is_static = False
        return self

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the function it was made of, with `follow_wrapped=False`, too."""
        return inspect.signature(self.__wrapped__)  # type: ignore[attr-defined]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None or self.is_static else MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__


def is_static(fun: Any) -> bool:
    """Whether a function is a `staticmethod`, or what a transformation made of one.

    Example:
      >>> is_static(staticmethod(len)), is_static(transformed(len, staticmethod(len), "twice"))
      (True, True)
    """
    return type(fun) is staticmethod or bool(getattr(fun, "is_static", False))


def transformed(
    run: F, fun: Any, transformation: str, updated: tuple[str, ...] = functools.WRAPPER_UPDATES
) -> F:
    """Return a function that does what `run` does, looks like `fun`, and says what it is.

    Args:
      run: what is called.
      fun: the function of the user that was transformed, or any callable.
      transformation: the name of the public function that does it.
      updated: as that of `functools.update_wrapper`: `()` copies no attributes of `fun`.

    Example:
      >>> transformed(lambda x: 2 * len(x), len, "twice")
      <twice of len>
    """
    made = look_like(Transformed(run, transformation), fun, updated)
    made.is_static = is_static(fun)
    if type(run) is FunctionType:  # by whose name Python refuses a call of wrong arguments
        run.__qualname__ = made.__qualname__
    return cast("F", made)


def transforming(fun: Any, transformation: str) -> Callable[[F], F]:
    """Return the decorator that does what `transformed` does.

    Example:
      >>> @transforming(len, "twice")
      ... def twice(x):
      ...     return 2 * len(x)
      >>> twice([1]), twice
      (2, <twice of len>)
    """
    return lambda run: transformed(run, fun, transformation)


def _origin(fun: Any) -> str:
    """Return what a function was made of: another transformation, or a place in a file."""
    inside = fun
    for _ in range(_MOST_WRAPPERS):
        if isinstance(inside, Transforms):
            return repr(inside)
        if isinstance(inside, functools.partial):
            inside = inside.func
        elif isinstance(inside, MethodType):
            inside = inside.__func__
        elif callable(wrapped := getattr(inside, "__wrapped__", None)):
            inside = wrapped
        else:
            break
    return place_of(fun)


# -------------------------------------------------------------------- transformations of packages
# A transformation of a package that may be missing, if it is installed.
#
# Packages of one floor do not import each other. Where one can profit from another (`xad.jacfwd`
# maps its basis vectors with `vmap` rather than one by one), it looks up the transformation by
# name here, whose package is then imported. So do reductions over a named axis, for collectives.

_MODULE_BY_NAME = {
    "all_gather": "xpar.collectives", "axis_index": "xpar.collectives", "checkpoint": "xad",
    "custom_vmap": "xbatch", "error_if": "xjit.checkify", "jit": "xjit", "jvp": "xad",
    "linear_transpose": "xad", "linearize": "xad", "pmax": "xpar.collectives",
    "pmin": "xpar.collectives", "psum": "xpar.collectives",
    "transpose_on_tape": "xad.transpose", "vjp": "xad", "vmap": "xbatch",
}  # fmt: skip


def find(name: str) -> Callable[..., Any] | None:
    """Return the function of that name, importing its package; None when it is not installed.

    None, too, for an older version of the package that has no such function. A package that is
    missing is looked for at each call: a notebook may install it later.
    """
    module = _MODULE_BY_NAME[name]
    imported = sys.modules.get(module)
    if imported is None and importlib.util.find_spec(module) is None:
        return None
    found: Callable[..., Any] | None = getattr(imported or import_by_name(module), name, None)
    return found


# --------------------------------------------------------------------------------- leaves as arrays
# Leaves of trees as arrays: what goes into a flat function, and what comes out of one.
#
# A transformation flattens the user's arguments, calls the function, and flattens its result. What
# is not an array then is named by its key path:
# `grad: the result at ['loss']: a str is not an array.`

T = TypeVar("T")


def unchangeable(tree: T) -> T:
    """Return a tree with Arrays for NumPy's arrays, which a function could change in place.

    For functions that are called as they are where a program would have traced values.

    Example:
      >>> import numpy as np
      >>> unchangeable((np.zeros(2), 3))
      (Array([0., 0.], dtype=float32), 3)
    """
    if not any(isinstance(x, np.ndarray) for x in xtree.leaves(tree)):
        return tree
    made: T = xtree.map(lambda x: from_numpy(x) if isinstance(x, np.ndarray) else x, tree)
    return made


def flat_arrays(tree: Any, operation: str, what: str = "the result") -> tuple[list[Array], Any]:
    """Return the leaves of a tree as arrays, and its structure.

    Args:
      tree: of arrays and Python numbers.
      operation: the public function, for errors.
      what: the tree is, for errors.

    Raises:
      TypeError: a leaf is not an array; the text names it.
      OverflowError: an integer does not fit its dtype.

    Example:
      >>> arrays, structure = flat_arrays({"a": 1.0, "b": None}, "f")
      >>> len(arrays), structure
      (1, PyTreeDef({'a': *, 'b': None}))
      >>> flat_arrays({"a": "text"}, "f")
      Traceback (most recent call last):
      TypeError: f: the result at ['a']: a str is not an array.
        got       'text'
        expected  an Array, a NumPy array or a Python scalar
    """
    leaves, structure = xtree.flatten(tree)
    for x in leaves:
        if not isinstance(x, Array):
            return as_arrays(leaves, operation, structure, what), structure
    return leaves, structure


def as_arrays(
    leaves: Sequence[Any], operation: str, structure: Any = None, what: str = "the argument"
) -> list[Array]:
    """Return leaves as arrays; an error names the one that is none by its key path.

    Args:
      leaves: arrays and Python numbers.
      operation: the public function, for errors.
      structure: of the tree whose leaves they are, which knows their paths.
      what: the tree is, for errors.

    Example:
      >>> [x.aval.str_short() for x in as_arrays([1, 2.0], "f")]
      ['i32[]', 'f32[]']
    """
    try:
        return [x if isinstance(x, Array) else as_array(x) for x in leaves]
    except (TypeError, OverflowError):
        pass
    paths = [""] * len(leaves) if structure is None else paths_of(structure, " at ")
    return [
        as_array(x, what=f"{operation}: {what}{path}")
        for x, path in zip(leaves, paths, strict=True)
    ]


def paths_of(structure: Any, before: str = "") -> list[str]:
    """Return the key paths of all leaves of a structure as text, with `before` if there are any.

    Example:
      >>> import xtree
      >>> paths_of(xtree.structure({"a": 1, "b": [2, 3]}), "x")
      ["x['a']", "x['b'][0]", "x['b'][1]"]
    """
    numbered = xtree.unflatten(structure, range(structure.num_leaves))
    texts = [xtree.keystr(path) for path, _ in xtree.leaves_with_path(numbered)]
    return [before + text if text else "" for text in texts]


def path_of(structure: Any, index: int, before: str = "") -> str:
    """Return the key path of one leaf as text; a structure that is a leaf has none.

    Example:
      >>> import xtree
      >>> path_of(xtree.structure([1, 2]), 1, " at "), path_of(xtree.structure(1), 0, " at ")
      (' at [1]', '')
    """
    return paths_of(structure, before)[index]
