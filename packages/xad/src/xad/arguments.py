"""From functions of pytrees to functions of flat lists, with the checks every transformation makes.

`FlatFunction` wraps the user's function: called with flat leaves it rebuilds the arguments, calls
the function, flattens the result and remembers its structure (and the auxiliary output).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xprim import Array, as_array, dtypes

ArgNums = int | Sequence[int]


class FlatFunction:
    """A function of pytrees, seen as one of flat lists of arrays.

    Attributes:
      out_tree: the structure of the last result.
      aux: the auxiliary output of the last call.
    """

    __slots__ = ("_fun", "_has_aux", "_operation", "_rebuild", "aux", "out_tree")

    def __init__(
        self,
        fun: Callable[..., Any],
        rebuild: Callable[[Sequence[Any]], tuple[Sequence[Any], dict[str, Any]]],
        *,
        operation: str,
        has_aux: bool = False,
    ) -> None:
        self._fun = fun
        self._rebuild = rebuild
        self._operation = operation
        self._has_aux = has_aux
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *leaves: Any) -> list[Array]:
        args, kwargs = self._rebuild(leaves)
        result = self._fun(*args, **kwargs)
        if self._has_aux:
            result, self.aux = _pair(result, self._operation)
        results, self.out_tree = xtree.flatten(result)
        return [
            r if isinstance(r, Array) else as_array(r, what=f"{self._operation}: a result")
            for r in results
        ]


def _pair(result: Any, operation: str) -> tuple[Any, Any]:
    if not (isinstance(result, tuple | list) and len(result) == 2):
        raise TypeError(
            f"{operation}: with has_aux=True the function must return a pair (result, auxiliary)."
            f"\n  got       {_kind(result)}"
        )
    return result[0], result[1]


def flat_arguments(
    fun: Callable[..., Any], args: Sequence[Any], *, operation: str, has_aux: bool = False,
    kwargs: dict[str, Any] | None = None,
) -> tuple[FlatFunction, list[Array], Any]:  # fmt: skip
    """Flatten all positional arguments of a call; keywords are passed through.

    Returns:
      The flat function, the leaves as arrays, and the structure of `args`.
    """
    leaves, in_tree = xtree.flatten(tuple(args))
    options = kwargs or {}
    flat = FlatFunction(
        fun, lambda xs: (xtree.unflatten(in_tree, xs), options), operation=operation,
        has_aux=has_aux,
    )  # fmt: skip
    return flat, as_arrays(leaves, operation), in_tree


def as_arrays(leaves: Sequence[Any], operation: str) -> list[Array]:
    """Return leaves as arrays."""
    return [x if isinstance(x, Array) else as_array(x, what=f"{operation}: an argument")
            for x in leaves]  # fmt: skip


def normalized_argnums(argnums: ArgNums, count: int, operation: str) -> tuple[int, ...]:
    """Return argument numbers as a tuple of non-negative ints.

    Raises:
      TypeError: for numbers that are no integers.
      ValueError: for numbers outside the arguments, and for duplicates.
    """
    try:
        given = (operator.index(argnums),)  # type: ignore[arg-type]
    except TypeError:
        try:
            given = tuple([operator.index(i) for i in argnums])  # type: ignore[union-attr]
        except TypeError:
            raise TypeError(
                f"{operation}: argnums must be an int or a tuple of ints, got {argnums!r}."
            ) from None
    for i in given:
        if not -count <= i < count:
            raise ValueError(
                f"{operation}: argnums={argnums} asks for argument {i}, but the function was "
                f"called with {count} positional argument{'s' if count != 1 else ''}."
                "\n  hint      keyword arguments cannot be differentiated"
            )
    numbers = tuple([i % count for i in given])
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{operation}: argnums={argnums} names an argument twice.")
    return numbers


def check_inexact(
    leaves: Sequence[Array], tree: Any, operation: str, *, holomorphic: bool, allow_int: bool,
    names: Sequence[str] = (),
) -> None:  # fmt: skip
    """Check that what is differentiated has a dtype that has derivatives."""
    for i, x in enumerate(leaves):
        dtype = x.dtype
        if holomorphic:
            if not dtypes.is_complex(dtype):
                raise TypeError(
                    f"{operation}: holomorphic=True needs complex arguments, got {dtype.name}"
                    f"{_at(tree, i)}."
                )
        elif dtypes.is_complex(dtype) and operation in ("grad", "value_and_grad", "jacrev"):
            continue
        elif not dtypes.is_inexact(dtype) and not allow_int:
            raise TypeError(
                f"{operation}: cannot differentiate with respect to values of dtype {dtype.name}"
                f"{_at(tree, i)}."
                "\n  expected  a floating or complex dtype"
                "\n  hint      pass 3.0 instead of 3, convert with x.astype('float32'), or leave "
                "the argument out of argnums; allow_int=True gives float0 zeros"
            )


def _at(tree: Any, index: int) -> str:
    paths = xtree.leaves_with_path(xtree.unflatten(tree, list(range(tree.num_leaves))))
    path = xtree.keystr(paths[index][0])
    return f" (argument {path})" if path else ""


def _kind(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of length {len(value)}"
    return f"a {type(value).__name__}"
