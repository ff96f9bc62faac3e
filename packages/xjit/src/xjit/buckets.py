"""Arguments of many sizes for few programs: sizes are padded to those of buckets.

    jit(f, buckets={"x": {0: "pow2"}})

An argument is filled up with zeros to the size of its bucket, the program for that size runs, and
what its results have too much is cut off. How the sizes of results follow those of arguments is
found out by tracing with one less. Whether a function can be padded at all (a sum can, a mean
cannot) is found out by the first call that pads: it computes the unpadded result, too, and
compares. A greatest element above zero says nothing of those below, so it does the same for
elements that are all below zero and all above, near and far, unless the program has effects or a
loop that such elements might keep from ending.

Neighbours: `jit` takes the option; `retraces` tells of functions that would profit.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import xtree
from xjit.retraces import retraces
from xnp import lax
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Jaxpr,
    ShapeDtypeStruct,
    as_array,
    dtypes,
    scalar_array,
    shaped_array,
)
from xprim.callables import name_of
from xprim.errors import message
from xprim.extended import unwrap
from xprim.jaxpr import subjaxprs
from xprim.tracebacks import boundary

__all__ = ()


def bucketed(fun: Callable[..., Any], compiled: Any, options: Mapping[str, Any]) -> Any:
    """Return a jitted function that pads its arguments, with the methods of all such.

    Args:
      fun: the function.
      compiled: what `jit` made of it.
      options: those of `jit`.

    Raises:
      ValueError: an option asks for what padded copies of arguments do not have.
    """
    for name in ("donate_argnums", "donate_argnames", "in_shardings", "out_shardings"):
        if options[name] is not None:
            raise ValueError(message(
                "jit", f"buckets cannot be joined with {name}.", got=f"{name}={options[name]!r}",
                hint="arguments are copied where they are padded",
            ))  # fmt: skip
    padded = Buckets(fun, compiled, options["buckets"])

    @functools.wraps(fun)
    @boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        return padded(*args, **kwargs)

    made: Any = call
    for name in ("lower", "trace"):
        setattr(made, name, padded.ahead(getattr(compiled, name)))
    made.eval_shape = boundary(padded.eval_shape)
    made.clear_cache, made.stats = compiled.clear_cache, compiled.stats
    return made


class Padded(NamedTuple):
    """Which sizes a call has, and which its program.

    Attributes:
      size: of the argument.
      bucket: what it is filled up to.
    """

    size: int
    bucket: int


class Buckets:
    """A jitted function whose arguments are padded.

    Args:
      fun: the function.
      compiled: what `jit` made of it.
      asked: for names of arguments, for axes, the sizes of buckets.
    """

    def __init__(self, fun: Callable[..., Any], compiled: Any, asked: Any) -> None:
        self.name = name_of(fun)
        self._fun = fun
        self._compiled = compiled
        self._signature = inspect.signature(fun)
        self._asked = _checked(asked, self.name, self._signature)
        self._slopes: dict[Any, list[Any]] = {}
        self._compared: set[Any] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pad, call, cut off; and compare once."""
        given = self._signature.bind(*args, **kwargs)
        with retraces("allow"):  # a program for each bucket is what was asked for
            results, is_padded = self._results(given)
            if is_padded:
                self._compare_once(given, results)
        return results

    def _results(self, given: inspect.BoundArguments) -> tuple[Any, bool]:
        """Return the results of the padded program, cut off, and whether anything was padded."""
        sizes: list[Padded] = []
        padded = self._with_sizes(given, sizes, _filled)
        results = self._compiled(*padded.args, **padded.kwargs)
        is_padded = any(size != bucket for size, bucket in sizes)
        return (self._cut(results, given, sizes) if is_padded else results), is_padded

    def ahead(self, stage: Callable[..., Any]) -> Callable[..., Any]:
        """Return a stage ahead of time, made for the padded arguments."""

        @boundary
        def of_padded(*args: Any, **kwargs: Any) -> Any:
            given = self._with_sizes(self._signature.bind(*args, **kwargs), [], _filled_type)
            with retraces("allow"):
                return stage(*given.args, **given.kwargs)

        return of_padded

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the types of the results for the arguments as they are."""
        with retraces("allow"):
            return self._compiled.eval_shape(*args, **kwargs)

    def _with_sizes(
        self, given: inspect.BoundArguments, sizes: list[Padded], fill: Callable[..., Any]
    ) -> inspect.BoundArguments:  # fmt: skip
        """Return the arguments with each asked axis filled up; note the sizes."""
        changed = inspect.BoundArguments(given.signature, dict(given.arguments))
        for name, rules in self._asked.items():
            if name in given.arguments:
                changed.arguments[name] = xtree.map(
                    lambda x, name=name, rules=rules: self._filled_up(x, name, rules, sizes, fill),
                    given.arguments[name],
                )
        return changed

    def _filled_up(
        self, x: Any, name: str, rules: Mapping[int, Any], sizes: list[Padded],
        fill: Callable[..., Any],
    ) -> Any:  # fmt: skip
        shape = list(np.shape(x) if not hasattr(x, "shape") else x.shape)
        for axis, rule in rules.items():
            if not -len(shape) <= axis < len(shape):
                raise ValueError(message(
                    "jit",
                    f"buckets names axis {axis} of {name}, which has {len(shape)} dimensions.",
                    got=f"{name}: an array of shape {tuple(shape)}",
                ))  # fmt: skip
            size = shape[axis]
            shape[axis] = _bucket(rule, size, name)
            sizes.append(Padded(size, shape[axis]))
        return fill(x, tuple(shape))

    def _cut(
        self, results: Any, given: inspect.BoundArguments, sizes: Sequence[Padded]
    ) -> Any:  # fmt: skip
        """Cut off what results have too much."""
        leaves, tree = xtree.flatten(results)
        kept = self._shapes_of_results(leaves, given, sizes)
        return tree.unflatten([
            x if list(x.shape) == shape else lax.slice(x, (0,) * len(shape), tuple(shape))
            for x, shape in zip(leaves, kept, strict=True)
        ])  # fmt: skip

    def _shapes_of_results(
        self, leaves: Sequence[Any], given: inspect.BoundArguments, sizes: Sequence[Padded]
    ) -> list[list[int]]:  # fmt: skip
        """Return the shapes that the results have without padding: each size that is padded counts.

        Equal sizes vary together, since an operation may ask them to be equal.
        """
        kept = [list(x.shape) for x in leaves]
        groups = list(dict.fromkeys([s for s in sizes if s.size != s.bucket]))
        where = tuple([groups.index(s) if s in groups else -1 for s in sizes])
        for i, group in enumerate(groups):
            key = (where, i, tuple([s.bucket for s in sizes]), self._types(given))
            if key not in self._slopes:
                self._slopes[key] = self._slopes_of(given, group, leaves)
            for shape, slopes in zip(kept, self._slopes[key], strict=True):
                for d, slope in enumerate(slopes):
                    shape[d] -= slope * (group.bucket - group.size)
        return kept

    def _types(self, given: inspect.BoundArguments) -> Any:
        """Return what stays of the arguments when sizes vary."""
        leaves, tree = xtree.flatten(dict(given.arguments))
        return tree, tuple([(np.ndim(x), str(getattr(x, "dtype", type(x)))) for x in leaves])

    def _slopes_of(
        self, given: inspect.BoundArguments, group: Padded, leaves: Sequence[Any]
    ) -> list[Any]:  # fmt: skip
        """Return for each dimension of the results how it grows with the sizes of a group."""
        smaller = self._with_sizes(given, [], functools.partial(_filled_type, less=group))
        traced = xtree.leaves(self._compiled.eval_shape(*smaller.args, **smaller.kwargs))
        return [
            [n - m for n, m in zip(x.shape, y.shape, strict=True)]
            for x, y in zip(leaves, traced, strict=True)
        ]

    def _compare_once(self, given: inspect.BoundArguments, results: Any) -> None:
        """Compare a padded call with an unpadded one, and so for elements of other signs."""
        leaves = xtree.leaves((dict(given.arguments), results))
        types = self._types(given)
        if types in self._compared or any(
            isinstance(x, Array) and type(x) is not ConcreteArray for x in leaves
        ):
            return
        self._compare(given, results)
        if _ends_whatever_it_is_given(self._compiled.trace(*given.args, **given.kwargs).jaxpr):
            for factor in (-1, 1, -100, 100):
                other = self._away_from_zero(given, factor)
                self._compare(other, self._results(other)[0])
        self._compared.add(types)

    def _compare(self, given: inspect.BoundArguments, results: Any) -> None:
        wanted = xtree.leaves(self._compiled(*given.args, **given.kwargs))
        got, _ = xtree.tree_flatten_with_path(results)
        for (path, x), y in zip(got, wanted, strict=True):
            if x.shape != y.shape or not _are_close(_numbers(x), _numbers(y)):
                raise ValueError(message(
                    "jit", f"{self.name} cannot be padded: its result{xtree.keystr(path)} differs.",
                    got=f"{_shown(x)} with padding", expected=f"{_shown(y)} without",
                    hint="what is filled up holds zeros: give the function the true size, and\n"
                         "have it leave the rest out (a mean as the sum over the size)",
                ))  # fmt: skip

    def _away_from_zero(
        self, given: inspect.BoundArguments, factor: int
    ) -> inspect.BoundArguments:  # fmt: skip
        """Return the arguments with the padded ones all above zero, or below."""
        changed = inspect.BoundArguments(given.signature, dict(given.arguments))
        for name in self._asked:
            if name in given.arguments:
                changed.arguments[name] = xtree.map(
                    lambda x: _moved_away(as_array(x), factor), given.arguments[name]
                )
        return changed


def _moved_away(x: Array, factor: int) -> Array:
    """Return factor (|x| + 1), of the type of x; x itself without a sign, or a wide step."""
    dtype = x.aval.dtype
    kind = "" if dtypes.is_extended(dtype) else np.dtype(dtype).kind
    is_float = dtypes.is_inexact(dtype) and kind != "c"
    if not is_float and (kind != "i" or abs(factor) > 1):
        return x
    one, scale = scalar_array(1, dtype), scalar_array(factor, dtype)
    return lax.mul(lax.add(lax.abs(x), one), scale)


def _ends_whatever_it_is_given(program: ClosedJaxpr) -> bool:
    """Return whether a program may be run with other elements: no effects, no open loop."""
    return not program.effects and not _has_open_loop(program.jaxpr)


def _has_open_loop(jaxpr: Jaxpr) -> bool:
    return any(
        "rounds" in eqn.primitive.rules or any(map(_has_open_loop, subjaxprs(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _numbers(x: Any) -> np.ndarray[Any, Any]:
    """Return the numbers that the elements of an array are made of."""
    return np.asarray(unwrap(x) if dtypes.is_extended(x.aval.dtype) else x)


def _are_close(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Return whether numbers differ by no more than sums in another order do."""
    if not dtypes.is_inexact(x.dtype):
        return bool((x == y).all())
    wide = np.complex128 if dtypes.is_complex(x.dtype) else np.float64
    near = 256 * float(dtypes.finfo(x.dtype).eps)
    scale = near * float(np.max(np.abs(y.astype(wide)), initial=0, where=np.isfinite(y)))
    return np.allclose(x.astype(wide), y.astype(wide), rtol=near, atol=scale, equal_nan=True)


def _shown(x: Any) -> str:
    aval = as_array(x).aval
    is_short = aval.size <= 8 and not dtypes.is_extended(aval.dtype)
    return str(np.asarray(x)) if is_short else aval.str_long()


def _filled(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array with zeros behind its elements, up to a shape."""
    array = as_array(x)
    if array.shape == shape:
        return x
    edges = [(0, n - m, 0) for n, m in zip(shape, array.shape, strict=True)]
    return lax.pad(array, scalar_array(0, array.dtype), edges)


def _filled_type(x: Any, shape: tuple[int, ...], less: Padded | None = None) -> Any:
    """Return the type of what `_filled` gives, or of one smaller in the sizes of a group."""
    own = tuple(np.shape(x)) if not hasattr(x, "shape") else tuple(x.shape)
    if less is not None:
        shape = tuple([
            n - 1 if Padded(m, n) == less else n for m, n in zip(own, shape, strict=True)
        ])  # fmt: skip
    aval = x.aval if hasattr(x, "aval") else None
    if aval is None and not isinstance(x, ShapeDtypeStruct):
        aval = as_array(x).aval
    dtype, weak = (x.dtype, False) if aval is None else (aval.dtype, aval.weak_type)
    return ShapeDtypeStruct(shaped_array(shape, dtype).shape, dtype, weak_type=weak)


def _bucket(rule: Any, size: int, name: str) -> int:
    if rule == "pow2":
        return 1 << max(size - 1, 0).bit_length()
    if type(rule) is int:
        return -(-size // rule) * rule
    found: list[int] = [n for n in rule if n >= size]
    if not found:
        raise ValueError(message(
            "jit", f"no bucket of {name} is large enough.", got=f"a size of {size}",
            expected=f"at most {max(rule)}",
        ))  # fmt: skip
    return min(found)


def _checked(asked: Any, name: str, signature: inspect.Signature) -> dict[str, dict[int, Any]]:
    """Return the option, whose names, axes and rules are right."""
    for argument, rules in asked.items() if isinstance(asked, Mapping) else [("", None)]:
        if (
            argument not in signature.parameters
            or not isinstance(rules, Mapping)
            or not all(map(_is_rule, rules, rules.values()))
        ):
            raise ValueError(message(
                "jit", f"buckets does not say how arguments of {name} are padded.",
                got=f"buckets={asked!r}",
                expected='{"name": {axis: "pow2"}}, or a number for its multiples, or sizes',
            ))  # fmt: skip
    return {argument: dict(rules) for argument, rules in asked.items()}


def _is_rule(axis: Any, rule: Any) -> bool:
    if type(axis) is not int:
        return False
    if isinstance(rule, list | tuple):
        return bool(rule) and all(type(n) is int and n > 0 for n in rule)
    return rule == "pow2" or (type(rule) is int and rule > 0)
