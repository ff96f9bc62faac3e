"""First and second derivatives of an expression, forward and reverse, by one library or another.

A library is `xstack` or, as the oracle, `jax`: an expression is a text over its namespaces and the
operands by name, and each derivative is by one operand or by a pair of them.
"""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Operands = dict[str, np.ndarray]
Found = dict[str, np.ndarray]


def namespaces(library: Any) -> dict[str, Any]:
    """Return what the expressions' namespaces are in a library."""
    return {
        "np": library.numpy, "lax": library.lax, "nn": library.nn,
        "linalg": library.numpy.linalg, "laxlinalg": library.lax.linalg,
        "fft": library.numpy.fft, "image": library.image, "ops": library.ops,
        "_numbers": library.lax.ScatterDimensionNumbers((), (0,), (0,)),
        "_ragged": library.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ()),
    }  # fmt: skip


@functools.cache
def _compiled_text(text: str) -> types.CodeType:
    return compile(text, f"<{text}>", "eval")


def function_of(library: Any, text: str, names: Sequence[str]) -> Callable[..., list[Any]]:
    """Return an expression as a function of its operands, to its results of floating dtype."""
    spaces, code = namespaces(library), _compiled_text(text)

    def function(*operands: Any) -> list[Any]:
        result = eval(code, {**spaces, **dict(zip(names, operands, strict=True))})
        return [x for leaf in library.tree.leaves(result) for x in _real_parts(library, leaf)]

    return function


def _real_parts(library: Any, x: Any) -> list[Any]:
    kind = np.dtype(x.dtype).kind if hasattr(x, "dtype") else "O"
    if kind == "c":
        return [x.real, x.imag]
    return [x] if kind == "f" else []


def used(text: str, operands: Operands) -> list[str]:
    """Return the operands that an expression names."""
    found = set(_compiled_text(text).co_names)
    for const in _compiled_text(text).co_consts:  # free names of inner lambdas
        found |= set(const.co_names) if isinstance(const, types.CodeType) else set()
    return [name for name in operands if name in found]


# --- numbers that an elementwise function takes one by one ----------------------------------------


def elementwise(library: Any, text: str, names: Sequence[str]) -> Callable[..., Found]:
    """Return the function of the operands to all derivatives, each number by itself.

    Keys are the order and the modes, innermost first: `x forward`, `xy forward reverse`, ...
    """
    function = function_of(library, text, names)

    def forward(f: Callable[..., Any], i: int) -> Callable[..., Any]:
        def derivative(*xs: Any) -> list[Any]:
            ones = library.numpy.ones_like(xs[i])
            return library.jvp(lambda x: f(*xs[:i], x, *xs[i + 1 :]), (xs[i],), (ones,))[1]

        return derivative

    def reverse(f: Callable[..., Any], i: int) -> Callable[..., Any]:
        def derivative(*xs: Any) -> list[Any]:
            count = len(f(*xs))
            cts = [
                library.vjp(lambda x, k=k: f(*xs[:i], x, *xs[i + 1 :])[k], xs[i])
                for k in range(count)
            ]
            return [pull(library.numpy.ones_like(out))[0] for out, pull in cts]

        return derivative

    modes = {"forward": forward, "reverse": reverse}

    def derivatives(*xs: Any) -> dict[str, list[Any]]:
        found = {}
        for (i, first), (how, mode) in itertools.product(enumerate(names), modes.items()):
            once = mode(function, i)
            found[f"d{first} {how}"] = once(*xs)
            for j, (second, mode2) in itertools.product(range(i, len(names)), modes.items()):
                found[f"d{first}d{names[j]} {how} {second}"] = mode2(once, j)(*xs)
        return found

    return derivatives


# --- Jacobians and Hessians -----------------------------------------------------------------------


def jacobians(library: Any, text: str, names: Sequence[str]) -> Callable[..., Any]:
    """Return the function to whole Jacobians, and to Hessians of weighted sums."""
    function = function_of(library, text, names)
    everything = tuple(range(len(names)))

    def weighted(*xs: Any) -> Any:
        # the weights differ, so that no two results can cancel
        total = 0.0
        for out in function(*xs):
            count = int(np.prod(out.shape))
            total = total + (out.reshape(-1) * (1 + library.numpy.arange(count) / 4)).sum()
        return total

    def derivatives(*xs: Any) -> dict[str, Any]:
        if not function(*xs):
            return {}
        found = {
            "d forward": library.jacfwd(function, everything)(*xs),
            "d reverse": library.jacrev(function, everything)(*xs),
        }
        gradient = library.grad(weighted, everything)
        forward = library.jacfwd(weighted, everything)
        found["dd forward reverse"] = library.jacfwd(gradient, everything)(*xs)
        found["dd reverse reverse"] = library.jacrev(gradient, everything)(*xs)
        found["dd forward forward"] = library.jacfwd(forward, everything)(*xs)
        found["dd reverse forward"] = library.jacrev(forward, everything)(*xs)
        return found

    return derivatives


def taken(
    library: Any, derivatives: Callable[..., Any], operands: Sequence[Any], jit: bool
) -> Found:
    """Return derivatives at a point as NumPy arrays, by name and number of the result."""
    run = library.jit(derivatives) if jit else derivatives
    arrays = [library.numpy.asarray(x) for x in operands]
    return {
        f"{name} [{k}]": np.asarray(leaf)
        for name, found in run(*arrays).items()
        for k, leaf in enumerate(library.tree.leaves(found))
    }
