"""Functions wrapped in transformations of their arguments and results, one around the other.

A transformation is a generator: it is given the arguments, yields those of the function inside
with its keywords, is sent the results, and yields its own. One with auxiliary output yields a pair,
whose second is what a store remembers until it is requested, once.

    @transformation_with_aux
    def flattened(tree, *leaves):
        result = yield unflatten(tree, leaves), {}
        yield flatten(result)                    # (leaves, tree): the second is auxiliary

    wrapped, tree_of_results = flattened(wrap_init(f), tree)
    wrapped.call_wrapped(*leaves), tree_of_results()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

__all__ = [
    "StoreException",
    "WrappedFun",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]

__dir__ = __all__.copy


class StoreException(Exception):  # noqa: N818 - the name that its users catch
    """Says that auxiliary output was requested before the function ran, or was given twice."""


class _Store:
    """Holds the auxiliary output of one call."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Any] = []

    def store(self, value: Any) -> None:
        if self.values:
            raise StoreException("a wrapped function with auxiliary output runs once.")
        self.values.append(value)

    def __call__(self) -> Any:
        if not self.values:
            raise StoreException("the wrapped function did not run yet.")
        return self.values[0]


class WrappedFun:
    """A function with its transformations; made by `wrap_init`.

    Args:
      f: the function inside.
      params: keywords that it is called with.
      debug_info: what errors may say of it.

    Attributes:
      f: the function with all transformations.
      in_type: None.

    Example:
      >>> wrap_init(lambda x, y: x + y, {"y": 2}).call_wrapped(1)
      3
    """

    __slots__ = ("__weakref__", "debug_info", "f", "in_type", "params")

    def __init__(
        self, f: Callable[..., Any], params: Mapping[str, Any], debug_info: Any = None
    ) -> None:
        self.f = f
        self.params = dict(params)
        self.debug_info = debug_info
        self.in_type = None

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, transform: Callable[..., Any]) -> WrappedFun:
        """Return this function inside one more: `transform(this, *args, **params)`."""
        return WrappedFun(partial(transform, self.f), self.params, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with its transformations."""
        return self.f(*args, **self.params, **kwargs)


def wrap_init(
    f: Callable[..., Any], params: Mapping[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """Return a function that transformations can be put around.

    Args:
      f: any function.
      params: keywords that it is called with.
      debug_info: what errors may say of it.

    Example:
      >>> wrap_init(abs).call_wrapped(-1)
      1
    """
    return WrappedFun(f, params or {}, debug_info)


def transformation(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Return what puts a generator around wrapped functions.

    Args:
      gen: yields arguments and keywords, is sent the results, yields its own.

    Example:
      >>> @transformation
      ... def negated(*args):
      ...     result = yield args, {}
      ...     yield -result
      >>> negated(wrap_init(abs)).call_wrapped(-3)
      -3
    """
    return transformation2(_running(gen))


def transformation2(transform: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Return what puts a function around wrapped functions.

    Args:
      transform: `(function inside, *own, *args) -> results`.

    Example:
      >>> twice = transformation2(lambda f, x: f(f(x)))
      >>> twice(wrap_init(lambda x: x + 1)).call_wrapped(0)
      2
    """

    @wraps(transform)
    def around(fun: WrappedFun, *own: Any) -> WrappedFun:
        return fun.wrap(lambda f, *args, **kwargs: transform(f, *own, *args, **kwargs))

    return around


def transformation_with_aux(
    gen: Callable[..., Any],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Return what puts a generator with auxiliary output around wrapped functions.

    Args:
      gen: as for `transformation`; what it yields last is a pair of results and auxiliary output.

    Raises:
      StoreException: when the output is requested before the function ran, or it ran twice.

    Example:
      >>> @transformation_with_aux
      ... def counted(*args):
      ...     result = yield args, {}
      ...     yield result, len(args)
      >>> wrapped, count = counted(wrap_init(max))
      >>> wrapped.call_wrapped(3, 4), count()
      (4, 2)
    """
    run = _running(gen)

    @wraps(gen)
    def around(fun: WrappedFun, *own: Any, **_use: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = _Store()

        def storing(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            result, aux = run(f, *own, *args, **kwargs)
            store.store(aux)
            return result

        return fun.wrap(storing), store

    return around


def transformation_with_aux2(
    transform: Callable[..., Any],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Return what puts a function with a store around wrapped functions.

    Args:
      transform: `(function inside, store, *own, *args) -> results`, which calls
        `store.store(output)`.

    Example:
      >>> @transformation_with_aux2
      ... def counted(f, store, *args):
      ...     store.store(len(args))
      ...     return f(*args)
      >>> wrapped, count = counted(wrap_init(max))
      >>> wrapped.call_wrapped(3, 4), count()
      (4, 2)
    """

    @wraps(transform)
    def around(fun: WrappedFun, *own: Any, **_use: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = _Store()
        inside = fun.wrap(lambda f, *args, **kwargs: transform(f, store, *own, *args, **kwargs))
        return inside, store

    return around


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return the auxiliary output of the one of two functions that ran, and whether the first did.

    Args:
      aux1: what `transformation_with_aux` gave for the first.
      aux2: what it gave for the second.

    Raises:
      StoreException: when none ran, or both did.

    Example:
      >>> seven = transformation_with_aux2(lambda f, store: store.store(7))
      >>> (ran, first), (_, second) = seven(wrap_init(abs)), seven(wrap_init(abs))
      >>> ran.call_wrapped()
      >>> merge_linear_aux(first, second)
      (True, 7)
    """
    found = []
    for first, aux in ((True, aux1), (False, aux2)):
        try:
            found.append((first, aux()))
        except StoreException:
            continue
    if len(found) != 1:
        raise StoreException("one of two functions must have run, and one alone.")
    return found[0]


def _running(gen: Callable[..., Any]) -> Callable[..., Any]:
    """Return a generator's transformation as a function of the function inside."""

    @wraps(gen)
    def run(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        steps = gen(*args, **kwargs)
        inner, keywords = next(steps)
        try:
            result = f(*inner, **keywords)
        except BaseException as error:
            steps.throw(error)  # the generator undoes what it did, and raises
            raise
        out = steps.send(result)
        steps.close()
        return out

    return run
