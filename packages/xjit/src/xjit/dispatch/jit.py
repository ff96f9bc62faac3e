"""`jit`: compile a function when it is first called; and buckets of sizes that share programs."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import numpy as np

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.cache.functions import FlatFunction, Traced
from xjit.debug.monitoring import retraces
from xjit.dispatch.arguments import Arguments, Signature, own_parameters
from xjit.dispatch.calls import Calls, jit_p
from xjit.dispatch.placement import OneDevice, committed_to
from xjit.sharding import shardings
from xjit.sharding.constraints import constrained
from xjit.sharding.layouts import is_layout_request, resolve_layout, split_formats
from xjit.sharding.shardings import (
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    TiledSharding,
    device_named_by,
    one_device_in,
)
from xjit.stages import Wrapped
from xnp import lax
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Jaxpr,
    ShapedArray,
    ShapeDtypeStruct,
    as_array,
    dtypes,
    eval_closed,
    scalar_array,
    shaped_array,
)
from xprim.avals import PINNED_HOST, MemorySpace, size_of
from xprim.errors import message
from xprim.extended import unwrap
from xprim.function_keys import Identity
from xprim.jaxpr import subjaxprs
from xprim.tracebacks import boundary
from xprim.transformed import check_function, name_of, transformed
from xprim.typing import DeviceLike, PyTree

__all__ = [
    "RequestedTrees", "ShardedFunction", "asks_for_mesh", "check_one_choice_of_devices",
    "request_layouts", "request_shardings",
]  # fmt: skip

__dir__ = __all__.copy

# --------------------------------------------------------------------------------------- buckets
# Arguments of many sizes for few programs: sizes are padded to those of buckets.
#
#
# An argument is filled up with zeros to the size of its bucket, the program for that size runs,
# and what its results have too much is cut off. How the sizes of results follow those of
# arguments is found out by tracing with one less. Whether a function can be padded at all (a sum
# can, a mean cannot) is found out by the first call that pads: it computes the unpadded result,
# too, and compares. A greatest element above zero says nothing of those below, so it does the
# same for elements that are all below zero and all above, near and far, unless the program has
# effects or a loop that such elements might keep from ending.


def pad_to_buckets(fun: Callable[..., Any], compiled: Any, options: Mapping[str, Any]) -> Any:
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
      sizes: for names of arguments, for axes, the sizes of buckets.
    """

    def __init__(self, fun: Callable[..., Any], compiled: Any, sizes: Any) -> None:
        self.name = name_of(fun)
        self._fun = fun
        self._compiled = compiled
        self._signature = inspect.signature(fun)
        self._rules = _check_sizes(sizes, self.name, self._signature)
        self._growth: dict[Any, list[Any]] = {}
        self._compared: set[Any] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pad, call, cut off; and compare once."""
        given = self._signature.bind(*args, **kwargs)
        with retraces("allow"):  # a program for each bucket is requested
            results, is_padded = self._results(given)
            if is_padded:
                self._compare_once(given, results)
        return results

    def _results(self, given: inspect.BoundArguments) -> tuple[Any, bool]:
        """Return the results of the padded program, cut off, and whether anything was padded."""
        sizes: list[Padded] = []
        padded = self._with_sizes(given, sizes, _fill)
        results = self._compiled(*padded.args, **padded.kwargs)
        is_padded = any(size != bucket for size, bucket in sizes)
        return (self._cut(results, given, sizes) if is_padded else results), is_padded

    def ahead(self, stage: Callable[..., Any]) -> Callable[..., Any]:
        """Return a stage ahead of time, made for the padded arguments."""

        @boundary
        def stage_padded(*args: Any, **kwargs: Any) -> Any:
            given = self._with_sizes(self._signature.bind(*args, **kwargs), [], _pad_type)
            with retraces("allow"):
                return stage(*given.args, **given.kwargs)

        return stage_padded

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the types of the results for the arguments as they are."""
        with retraces("allow"):
            return self._compiled.eval_shape(*args, **kwargs)

    def _with_sizes(
        self, given: inspect.BoundArguments, sizes: list[Padded], fill: Callable[..., Any]
    ) -> inspect.BoundArguments:  # fmt: skip
        """Return the arguments with each axis that has buckets padded; note the sizes."""
        changed = inspect.BoundArguments(given.signature, dict(given.arguments))
        for name, rules in self._rules.items():
            if name in given.arguments:
                changed.arguments[name] = xtree.map(
                    lambda x, name=name, rules=rules: self._pad_one(x, name, rules, sizes, fill),
                    given.arguments[name],
                )
        return changed

    def _pad_one(
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
            if key not in self._growth:
                self._growth[key] = self._growth_in(given, group, leaves)
            for shape, growths in zip(kept, self._growth[key], strict=True):
                for d, growth in enumerate(growths):
                    shape[d] -= growth * (group.bucket - group.size)
        return kept

    def _types(self, given: inspect.BoundArguments) -> Any:
        """Return what stays of the arguments when sizes vary."""
        leaves, tree = xtree.flatten(dict(given.arguments))
        return tree, tuple([(np.ndim(x), str(getattr(x, "dtype", type(x)))) for x in leaves])

    def _growth_in(
        self, given: inspect.BoundArguments, group: Padded, leaves: Sequence[Any]
    ) -> list[Any]:  # fmt: skip
        """Return for each dimension of the results how it grows with the sizes of a group."""
        smaller = self._with_sizes(given, [], functools.partial(_pad_type, less=group))
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
        if _always_ends(self._compiled.trace(*given.args, **given.kwargs).jaxpr):
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
                    got=f"{_describe(x)} with padding", expected=f"{_describe(y)} without",
                    hint="what is filled up holds zeros: give the function the true size, and\n"
                         "have it leave the rest out (a mean as the sum over the size)",
                ))  # fmt: skip

    def _away_from_zero(
        self, given: inspect.BoundArguments, factor: int
    ) -> inspect.BoundArguments:  # fmt: skip
        """Return the arguments with the padded ones all above zero, or below."""
        changed = inspect.BoundArguments(given.signature, dict(given.arguments))
        for name in self._rules:
            if name in given.arguments:
                changed.arguments[name] = xtree.map(
                    lambda x: _move_away(as_array(x), factor), given.arguments[name]
                )
        return changed


def _move_away(x: Array, factor: int) -> Array:
    """Return factor (|x| + 1), of the type of x; x itself without a sign, or a wide step."""
    dtype = x.aval.dtype
    kind = "" if dtypes.is_extended(dtype) else np.dtype(dtype).kind
    is_float = dtypes.is_inexact(dtype) and kind != "c"
    if not is_float and (kind != "i" or abs(factor) > 1):
        return x
    one, scale = scalar_array(1, dtype), scalar_array(factor, dtype)
    return lax.mul(lax.add(lax.abs(x), one), scale)


def _always_ends(program: ClosedJaxpr) -> bool:
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


def _describe(x: Any) -> str:
    aval = as_array(x).aval
    is_short = aval.size <= 8 and not dtypes.is_extended(aval.dtype)
    return str(np.asarray(x)) if is_short else aval.str_long()


def _fill(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array with zeros behind its elements, up to a shape."""
    array = as_array(x)
    if array.shape == shape:
        return x
    edges = [(0, n - m, 0) for n, m in zip(shape, array.shape, strict=True)]
    return lax.pad(array, scalar_array(0, array.dtype), edges)


def _pad_type(x: Any, shape: tuple[int, ...], less: Padded | None = None) -> Any:
    """Return the type of what `_fill` gives, or of one smaller in the sizes of a group."""
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


def _check_sizes(sizes: Any, name: str, signature: inspect.Signature) -> dict[str, dict[int, Any]]:
    """Return the option, whose names, axes and rules are right."""
    for argument, rules in sizes.items() if isinstance(sizes, Mapping) else [("", None)]:
        if (
            argument not in signature.parameters
            or not isinstance(rules, Mapping)
            or not all(map(_is_rule, rules, rules.values()))
        ):
            raise ValueError(message(
                "jit", f"buckets does not say how arguments of {name} are padded.",
                got=f"buckets={sizes!r}",
                expected='{"name": {axis: "pow2"}}, or a number for its multiples, or sizes',
            ))  # fmt: skip
    return {argument: dict(rules) for argument, rules in sizes.items()}


def _is_rule(axis: Any, rule: Any) -> bool:
    if type(axis) is not int:
        return False
    if isinstance(rule, list | tuple):
        return bool(rule) and all(type(n) is int and n > 0 for n in rule)
    return rule == "pow2" or (type(rule) is int and rule > 0)


# ------------------------------------------------------------------------------------------- jit
# `jit`: compile a function when it is first called, and call what was compiled after that.
#
# A call like one before is a look-up and the start of an executable (`dispatch`). Everything else
# (another placement, a trace, a transformation) is `calls.Calls`.

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    fun: Callable[P, R],
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
    max_traces: int | None = ...,
    buckets: Mapping[str, Mapping[int, Any]] | None = ...,
) -> Wrapped[P, R]: ...


@overload
def jit(
    fun: None = None,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
    max_traces: int | None = ...,
    buckets: Mapping[str, Mapping[int, Any]] | None = ...,
) -> Callable[[Callable[P, R]], Wrapped[P, R]]: ...


@boundary
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: DeviceLike = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    max_traces: int | None = None,
    buckets: Mapping[str, Mapping[int, Any]] | None = None,
) -> Callable[..., Any]:
    """Return a function that computes what `fun` computes, compiled by XLA.

    `fun` is traced when it is called with new shapes, dtypes or static values: Python runs then,
    and only then. Equal functions share their programs.

    Args:
      fun: a function of pytrees of arrays; without it, `jit` returns a decorator.
      in_shardings: the shardings of the arguments: a sharding or device for all, or a tree prefix
        of the arguments (a tuple with an entry for each positional one). A partition spec is over
        the context mesh. None, for all or some, leaves them as they come.
      out_shardings: likewise for the results; None leaves them to the compiler.
      static_argnums: positions of arguments that are part of the program; they must be hashable.
      static_argnames: names of such arguments.
      donate_argnums: positions of arguments whose memory the results may take; not usable after.
      donate_argnames: names of such arguments.
      keep_unused: whether arguments that the program does not need are transferred all the same.
      device: where to run; None follows the arguments.
      backend: name of the platform whose first device runs it (`"cpu"`, `"gpu"`).
      inline: whether the operations become part of an enclosing program one by one.
      compiler_options: settings of XLA by name.
      max_traces: how often it may be traced; None for any number of times.
      buckets: for names of arguments, for axes, which sizes programs are made for: `"pow2"` for
        powers of two, a number for its multiples, or a list of sizes. Arguments are filled up with
        zeros, and results cut off; the first call that does so checks that it changes nothing.

    Returns:
      The compiled function. It has `lower`, `trace`, `eval_shape`, `clear_cache`, `stats`.

    Raises:
      TypeError: `fun` is not callable, or an argument is not an array and not static.
      ValueError: a static argument is not hashable.
      RetraceError: it would be traced more than `max_traces` times.

    Example:
      >>> jit(lambda x: x + x)(3.0)
      Array(6., dtype=float32, weak_type=True)
    """
    options: dict[str, Any] = {
        "in_shardings": in_shardings, "out_shardings": out_shardings,
        "static_argnums": static_argnums, "static_argnames": static_argnames,
        "donate_argnums": donate_argnums, "donate_argnames": donate_argnames,
        "keep_unused": keep_unused, "device": device, "backend": backend, "inline": inline,
        "compiler_options": compiler_options, "buckets": buckets,
        "max_traces": None if max_traces is None else size_of(max_traces),
    }  # fmt: skip
    if fun is None:
        return functools.partial(jit, **options)
    check_function(fun, "jit", "options go by keyword: jit(f, static_argnums=...)")
    return _make_jitted(fun, _with_layouts(options))  # type: ignore[no-any-return]


def _with_layouts(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with shardings alone in their places, and `layouts` beside them."""
    shardings, layouts = {}, []
    for name in ("in_shardings", "out_shardings"):
        shardings[name], requested = split_formats(options[name], f"jit({name})")
        layouts.append(requested)
    found = None if layouts == [None, None] else request_layouts(*layouts)
    return {**options, **shardings, "layouts": found}


class _JitCalls(Calls):
    """The calls of one jitted function.

    Args:
      fun: the function.
      options: the keyword arguments of `jit`, without shardings over meshes.
      own: what else its programs depend on.
    """

    def __init__(
        self, fun: Callable[..., Any], options: dict[str, Any], own: Hashable = None
    ) -> None:
        self._inline = bool(options["inline"])
        self._placement = _choose_placement(options)
        device = one_device_in(options["out_shardings"], "jit(out_shardings)")
        out_placement = None if device is None else committed_to(device)
        self._layouts: RequestedTrees | None = options["layouts"]
        if self._layouts is not None:
            own = (own, self._layouts.key)
            if out_placement is not None:  # results are made there, in the requested orders
                _check_one_device(self._placement, out_placement)
                self._placement, out_placement = out_placement, None
        self._structure = _request_structure(options)
        if self._structure is not None:
            own = (own, self._structure.key)
        places = [None if p is None else Identity(p) for p in (self._placement, out_placement)]
        super().__init__(
            fun, Signature(fun, options), (self._inline, *places, own),
            keep_unused=bool(options["keep_unused"]), out_placement=out_placement,
            compiler_options=options["compiler_options"], max_traces=options["max_traces"],
        )  # fmt: skip

    writes_captured_refs = True

    def layouts_of(self, traced: Traced, arguments: Arguments) -> dict[str, Any]:
        """Return the orders that were requested, none for captured values."""
        if self._layouts is None:
            return {}
        captured = (None,) * len(traced.captured)
        more_in, more_out = traced.refs.counts() if traced.refs else (0, 0)
        ins, outs = traced.closed.in_avals, traced.closed.out_avals
        in_avals = ins[len(captured) : len(ins) - more_in]
        of_arguments = self._layouts.of_arguments(arguments, in_avals)
        out_avals = outs[: len(outs) - more_out]
        of_results = self._layouts.of_results(self.name, traced.out_tree, out_avals)
        return {"in_layouts": (*captured, *of_arguments, *(None,) * more_in),
                "out_layouts": (*of_results, *(None,) * more_out)}  # fmt: skip

    def flat_function(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> FlatFunction:
        """Return what is traced: the function, and its results as the options name them."""
        if self._structure is None:
            return super().flat_function(arguments, avals)
        return ShardedFunction(self.fun, arguments, avals, self._structure)

    def placement_of(self, traced: Traced) -> OneDevice | None:
        """Return the device that `jit` was requested to use."""
        return self._placement

    def bind(self, traced: Traced, operands: Sequence[Any]) -> Sequence[Any]:
        """Make a call one equation of the current trace, or several if it is to be inline."""
        if self._inline:
            return eval_closed(traced.closed, *operands)
        options: dict[str, Any] = {}
        if self._placement is not None:
            options["placement"] = self._placement
        if self.compiler_options:
            options["compiler_options"] = tuple(sorted(self.compiler_options.items()))
        return jit_p.bind(*operands, jaxpr=traced.closed, name=self.name, **options)


class _ShardedCalls(_JitCalls):
    """The calls of a function whose arguments or results are requested on a mesh.

    Its program says so in equations, so derived programs do, too; called by itself, its arguments
    are brought where they shall be, and its results are there.
    """

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        self.shardings = request_shardings(options["in_shardings"], options["out_shardings"])
        plain = options | {"in_shardings": None, "out_shardings": None}
        super().__init__(fun, plain, self.shardings.key)

    def flat_function(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> FlatFunction:
        """Return what is traced: the function, and the shardings of its arguments and results."""
        return ShardedFunction(self.fun, arguments, avals, self.shardings)

    def shardings_of(self, traced: Traced) -> dict[str, Any]:
        """Return the shardings that were resolved for a trace, none for captured values."""
        params = traced.params
        captured = (None,) * len(traced.captured)
        more_in, more_out = traced.refs.counts() if traced.refs else (0, 0)
        return {"in_shardings": (*captured, *params["in_shardings"], *(None,) * more_in),
                "out_shardings": (*params["out_shardings"], *(None,) * more_out)}  # fmt: skip


def _make_jitted(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    if options["buckets"] is not None:
        return pad_to_buckets(fun, _make_jitted(fun, options | {"buckets": None}), options)
    check_one_choice_of_devices(options)
    if asks_for_mesh(options):
        calls: _JitCalls = _ShardedCalls(fun, options)
    else:
        calls = _JitCalls(fun, options)
    front = calls.dispatcher.function(calls.__call__, own_parameters(fun))
    own = functools.WRAPPER_UPDATES if type(fun) is FunctionType else ()
    jitted: Any = transformed(front, fun, "jit", updated=own)
    calls.give_methods(jitted)
    if options["out_shardings"] is not None:
        # `xprim.eval_shape` asks, as this knows the shardings of results; decorators copy it to
        # their own
        jitted.asked_results = weakref.ref(jitted), calls.eval_shape
    return jitted


def _check_one_device(where: OneDevice | None, of_results: OneDevice) -> None:
    """Raise where arguments and results are requested on different devices."""
    if where is not None and where is not of_results:
        raise ValueError(message(
            "jit", "results of a layout are on the device that makes them.",
            got=f"out_shardings on {of_results.device}, in_shardings or device on {where.device}",
        ))  # fmt: skip


def _choose_placement(options: dict[str, Any]) -> OneDevice | None:
    device = device_named_by(options["device"], "jit(device)")
    requested = one_device_in(options["in_shardings"], "jit(in_shardings)")
    if options["backend"] is not None:
        if device is not None:
            raise ValueError("jit: device and backend name the same thing; give one of them.")
        device = device_named_by(options["backend"], "jit(backend)")
    device = device if requested is None else requested
    return None if device is None else committed_to(device)


# --------------------------------------------------------------- requested shardings and layouts
# The shardings and layouts that `jit` is requested to give arguments and results, as trees.
#
# `RequestedTrees` holds what the user gave, shardings or layouts; `ShardedFunction` is what `jit`
# traces for shardings: a function that says in equations how its arguments and results are sharded.

_OVER_MESH = NamedSharding | TiledSharding | PartitionSpec


def asks_for_mesh(options: dict[str, Any]) -> bool:
    """Return whether the options of `jit` name a sharding over a mesh, or another memory."""
    places = [*_leaves(options["in_shardings"]), *_leaves(options["out_shardings"])]
    outs = [s for s in _leaves(options["out_shardings"]) if isinstance(s, SingleDeviceSharding)]
    return any(s.memory for s in outs) or any(isinstance(place, _OVER_MESH) for place in places)


def _request_structure(options: dict[str, Any]) -> RequestedTrees | None:
    """Return the trees in which the options of `jit` name one device or nothing, None for no tree.

    They say nothing of the shardings of values, and must fit the arguments and the results all the
    same.
    """
    trees = [options["in_shardings"], options["out_shardings"]]
    if all(_is_leaf(tree) for tree in trees):
        return None
    return request_shardings(*[xtree.map(lambda _: None, t, is_leaf=_is_leaf) for t in trees])


def check_one_choice_of_devices(options: dict[str, Any]) -> None:
    """Raise where devices are named beside shardings."""
    places = [*_leaves(options["in_shardings"]), *_leaves(options["out_shardings"])]
    if all(place is None for place in places):
        return
    for name in ("device", "backend"):
        if options[name] is not None:
            raise ValueError(message(
                "jit", f"shardings say on which devices it runs, and {name} does, too.",
                got=f"{name}={options[name]!r}", hint=f"leave {name} out",
            ))  # fmt: skip


class RequestedTrees:
    """Trees of requested shardings, or layouts, for the arguments and results of a function.

    Args:
      for_inputs: a tree prefix of the positional arguments, or one request for all; None for none.
      for_outputs: a tree prefix of the result.
      is_leaf: whether a value is one request.
      resolve: from a request, the type of an array, the option and the label of the array, to what
        the program gets.

    Attributes:
      key: hashable, equal for equal requests.
    """

    __slots__ = ("_for_inputs", "_for_outputs", "_is_leaf", "_resolve", "key")

    def __init__(
        self, for_inputs: Any, for_outputs: Any, is_leaf: Callable[[Any], bool],
        resolve: Callable[[Any, ShapedArray, str, str], Any],
    ) -> None:  # fmt: skip
        self._for_inputs = for_inputs
        self._for_outputs = for_outputs
        self._is_leaf = is_leaf
        self._resolve = resolve
        flat = [xtree.flatten(tree, is_leaf=is_leaf) for tree in (for_inputs, for_outputs)]
        self.key = tuple([(structure, *leaves) for leaves, structure in flat])

    def of_arguments(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
        """Return what is requested of each leaf of the arguments; None of those by name."""
        requested, name = self._for_inputs, f"jit({arguments.signature.name})"
        args_tree, kwargs_tree = arguments.tree.children()
        if isinstance(requested, list):
            requested = tuple(requested)
        if self._is_leaf(requested):
            found = [requested] * (args_tree.num_leaves + kwargs_tree.num_leaves)
        else:
            template = args_tree.unflatten(range(args_tree.num_leaves))
            if isinstance(requested, tuple) and len(requested) != len(template):
                raise ValueError(message(
                    name, f"in_shardings must have an entry for each of {len(template)} "
                    "positional arguments that are traced.", got=f"{len(requested)} entries",
                ))  # fmt: skip
            found = self._broadcast(requested, template, f"{name}: in_shardings", "arguments")
            found += [None] * kwargs_tree.num_leaves
        return self._resolve_all(found, avals, f"{name}: in_shardings", arguments.names())

    def of_results(
        self, name: str, out_tree: Any, avals: Sequence[ShapedArray]
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return what is requested of each leaf of the result of a function of a name."""
        option, requested = f"jit({name}): out_shardings", self._for_outputs
        template = out_tree.unflatten(range(len(avals)))
        found = ([requested] * len(avals) if self._is_leaf(requested)
                 else self._broadcast(requested, template, option, "result"))  # fmt: skip
        return self._resolve_all(found, avals, option, [f"result {i}" for i in range(len(avals))])

    def _resolve_all(
        self, requests: list[Any], avals: Sequence[ShapedArray], option: str,
        labels: Sequence[str],
    ) -> tuple[Any, ...]:  # fmt: skip
        rows = zip(requests, avals, labels, strict=True)
        return tuple([self._resolve(r, aval, option, label) for r, aval, label in rows])

    def _broadcast(self, requested: Any, template: Any, option: str, of: str) -> list[Any]:
        try:
            return list(xtree.broadcast_prefix(requested, template, is_leaf=self._is_leaf))
        except (ValueError, TypeError) as error:
            name, _, what = option.rpartition(": ")
            raise ValueError(message(
                name, f"{what} is not a tree prefix of the {of}.",
                got="\n".join(str(error).splitlines()),
            )) from None  # fmt: skip


def request_shardings(in_shardings: Any, out_shardings: Any) -> RequestedTrees:
    """Return the shardings that the options of `jit` name, once each leaf is checked."""
    for tree, what in ((in_shardings, "in_shardings"), (out_shardings, "out_shardings")):
        for leaf in _leaves(tree):
            _check_leaf(leaf, what)
    return RequestedTrees(in_shardings, out_shardings, _is_leaf, _resolve_sharding)


def request_layouts(in_layouts: Any, out_layouts: Any) -> RequestedTrees:
    """Return the layouts that the options of `jit` name; arrays have orders from now on."""
    gateway.orders_used[0] = True
    return RequestedTrees(in_layouts, out_layouts, is_layout_request, resolve_layout)


class ShardedFunction(FlatFunction):
    """A function of the leaves of its arguments, with the shardings of these and its results."""

    __slots__ = ("_in_shardings", "_out_shardings", "_requested")

    def __init__(
        self, fun: Callable[..., Any], arguments: Arguments, avals: Sequence[ShapedArray],
        requested: RequestedTrees,
    ) -> None:  # fmt: skip
        super().__init__(fun, arguments, avals)
        self._requested = requested
        self._in_shardings: tuple[Sharding | None, ...] = requested.of_arguments(arguments, avals)
        self._out_shardings: tuple[Sharding | None, ...] = ()

    def run(self, *leaves: Any) -> list[Any]:
        """Call the function and return the leaves of its result."""
        pairs = zip(leaves, self._in_shardings, strict=True)
        outs = super().run(*[constrained(x, _of_argument(x, sharding)) for x, sharding in pairs])
        name = self.arguments.signature.name
        own = self.out_tree.num_leaves  # what is written to references follows these
        requested = self._requested.of_results(name, self.out_tree, [x.aval for x in outs[:own]])
        self._out_shardings = requested
        pairs = zip(outs[:own], requested, strict=True)
        return [*[constrained(x, sharding) for x, sharding in pairs], *outs[own:]]

    def params(self, closed: ClosedJaxpr, num_captured: int) -> dict[str, Any]:
        """Return the shardings, for the program."""
        return {"in_shardings": self._in_shardings, "out_shardings": self._out_shardings}


def _of_argument(x: Any, sharding: Sharding | None) -> Sharding | None:
    """Return the sharding of an argument inside: one that comes from the device is there."""
    if (
        sharding is None
        or sharding.memory != PINNED_HOST
        or x.aval.memory_space is MemorySpace.Host
    ):
        return sharding
    return sharding.with_memory_kind(None)


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, Sharding | PartitionSpec | gateway.Device)


def _leaves(tree: Any) -> list[Any]:
    return list(xtree.leaves(tree, is_leaf=_is_leaf))


def _check_leaf(leaf: Any, what: str) -> None:
    if not _is_leaf(leaf):
        raise TypeError(message(
            "jit", f"{what} holds something that is not a sharding.", got=repr(leaf),
            expected="shardings, partition specs, devices or None",
        ))  # fmt: skip
    spec = leaf if isinstance(leaf, PartitionSpec) else getattr(leaf, "spec", ())
    if any(part is UNCONSTRAINED for part in spec):
        raise ValueError(message(
            "jit", f"{what} must describe whole arrays, without an unconstrained dimension.",
            got=repr(spec), hint="None leaves an array to the compiler; "
            "with_sharding_constraint inside of the\nfunction takes P.UNCONSTRAINED",
        ))  # fmt: skip


def _resolve_sharding(
    place: Any, aval: ShapedArray, option: str, label: str
) -> Sharding | None:  # fmt: skip
    """Return a place as a sharding, once it fits the shape."""
    sharding: Any = shardings.resolve(place, option)
    if isinstance(sharding, gateway.Device):
        sharding = SingleDeviceSharding(sharding)
    if sharding is not None:
        sharding.check_shape(aval.shape, f"{option} of {label}")
    return sharding  # type: ignore[no-any-return]
