"""What XLA's partitioner gets wrong: products, repeated constraints, pads, windows, transforms, ...

Products that it splits wrongly get barriers behind their results, or before their operands:

    wrong:   y[z|x, -] = a[z|x, y] @ b[y, x]    with y requested as [-, y]

One axis cuts the contracted dimension, and is requested along another dimension of the result: then
XLA sums in the groups of one order of the devices and puts pieces together in that of another
(jaxlib 0.10.2 to 0.12.0.1, for some layouts of three axes or more, of two for products in batches;
from JAX alike). With a barrier behind the product its result is sharded as the operands are, and
is then resharded as requested.

    wrong:   sum_ijk a[x, z, -] b[-, z, x]

One axis cuts one of three or more contracted dimensions in one operand and another one in the
other: then XLA sums products of pieces that do not belong together (jaxlib 0.10.2 to 0.12.0.1, from
two axes on; from JAX alike). The smaller operand is gathered along the contracted dimensions.

Known is only what programs say of arguments, results and by constraints and types; that reaches the
dimensions which correspond through their operations and the programs they call.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xjit.jaxlib_gateway import SLICES_BEYOND_PIECES
from xjit.sharding import shardings as sharding_kinds
from xjit.sharding.rules import rule_of
from xjit.sharding.shardings import NamedSharding, Sharding, axes_of, says_of_explicit_axes
from xjit.xla_workarounds.arithmetic import clamp_start
from xnp.primitives.precision import DotAlgorithm, DotAlgorithmPreset
from xnp.primitives.reductions import greatest, least
from xnp.primitives.table import bind, broadcast_to, convert, fill, mul, permute, reshape
from xprim import (
    Array,
    Builder,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Literal,
    ShapedArray,
    Var,
    shaped_array,
)
from xprim.dimension_names import Names, alike
from xprim.jaxpr import held_programs

__all__ = ()

_FEWEST = 3  # axes: of 800 random products over two none was wrong, of 1,800 over three 13
_FEWEST_OF_BATCHES = 2  # of 300 products in batches over two one was
_FEWEST_CONTRACTED = 3  # dimensions: of 121 products over two none was wrong, of 36 over three 12


class Barriers(NamedTuple):
    """Products, by their results, that the partitioner gets wrong."""

    behind: frozenset[Var] = frozenset()
    """Those whose results no sharding may reach that is said of them elsewhere."""
    before: frozenset[Var] = frozenset()
    """Those one of whose operands must be replicated along the contracted dimensions."""


def barriers_of(
    closed: ClosedJaxpr, in_shardings: Sequence[Sharding | None],
    out_shardings: Sequence[Sharding | None],
) -> Barriers:  # fmt: skip
    """Return the products of a program, and of those that it calls, that need barriers."""
    if not _has_many_axes(closed, (*in_shardings, *out_shardings)):
        return Barriers()
    found = _Dimensions()
    found.walk(closed)
    for x, place in [*zip(closed.jaxpr.invars, in_shardings, strict=False),
                     *zip(closed.jaxpr.outvars, out_shardings, strict=False)]:  # fmt: skip
        found.say(x, place)
    return found.barriers()


def _has_many_axes(closed: ClosedJaxpr, shardings: Iterable[Sharding | None]) -> bool:
    meshes: list[Any] = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
    meshes += [sharding_kinds.mesh_within(closed), sharding_kinds.abstract_mesh_within(closed)]
    return any(
        len([n for n in m.axis_sizes if n > 1]) >= _FEWEST_OF_BATCHES
        for m in meshes
        if m is not None
    )


class _Dimensions:
    """Classes of dimensions that correspond, and the axes that cut some of them.

    A dimension is a number. Results get those of the operands that theirs correspond to, so that
    only what comes together from several operands has to be joined.
    """

    def __init__(self) -> None:
        self._dims: dict[Var, list[int]] = {}
        self._parents: list[int] = []  # of each dimension, in the direction of its class
        self._said: list[tuple[int, tuple[Any, ...]]] = []
        self._products: list[tuple[Var, list[list[int]], int]] = []
        self._walked: set[int] = set()
        self._sizes: dict[Any, int] = {}

    def say(self, x: Any, place: Any) -> None:
        """Note the sharding of a value."""
        if isinstance(x, Var) and isinstance(place, NamedSharding):
            self._sizes.update(place.mesh.shape)
            parts = zip(self._of(x), place.spec, strict=False)
            self._said += [(dim, axes_of(part)) for dim, part in parts if axes_of(part)]

    def walk(self, closed: ClosedJaxpr) -> None:
        """Join the dimensions of a program and of those that it calls."""
        if id(closed) in self._walked:
            return
        self._walked.add(id(closed))
        for x in closed.jaxpr.invars:
            self.say(x, x.aval.type_sharding)
        for eqn in closed.jaxpr.eqns:
            self._join_equation(eqn)
            for y in eqn.outputs:
                if y.aval.type_sharding is not None:
                    self.say(y, y.aval.type_sharding)
            if eqn.params:
                self._look_into(eqn)

    def _look_into(self, eqn: Equation) -> None:
        """Take from an equation what it says, what it sums over, and the programs that it calls."""
        self.say(eqn.outputs[0] if eqn.outputs else None, eqn.params.get("sharding"))
        for inner in held_programs(eqn.params):
            self.walk(inner)
            self._join_ranks(eqn.inputs, inner.jaxpr.invars)
            self._join_ranks(eqn.outputs, inner.jaxpr.outvars)
        if eqn.primitive.name == "dot_general":
            contracted, (in_batches, _) = eqn.params["dimension_numbers"]
            fewest = _FEWEST_OF_BATCHES if in_batches else _FEWEST
            pairs = [(self._of(x), dims) for x, dims in zip(eqn.inputs, contracted, strict=True)]
            summed = [[known[d] for d in dims] for known, dims in pairs if known]
            self._products.append((eqn.outputs[0], summed, fewest))

    def barriers(self) -> Barriers:
        """Return the products whose contracted dimensions share axes with the result or others."""
        axes: dict[int, set[Any]] = {}
        for dim, names in self._said:
            axes.setdefault(self._root(dim), set()).update(n for n in names if self._sizes[n] > 1)

        def of(dims: Iterable[int]) -> set[Any]:
            return set().union(*[axes.get(self._root(dim), ()) for dim in dims])

        behind, before = set(), set()
        for y, contracted, fewest in self._products:
            each = [of(dims) for dims in zip(*contracted, strict=True)]
            summed, kept = set().union(*each), of(self._of(y))
            if summed & kept and len(summed | kept) >= fewest:
                behind.add(y)
            if len(each) >= _FEWEST_CONTRACTED and len(summed) < sum(map(len, each)):
                before.add(y)
        return Barriers(frozenset(behind), frozenset(before))

    def _of(self, x: Any) -> list[int]:
        """Return the dimensions of a value; literals have none that anything is said of."""
        if type(x) is Literal:
            return []
        found = self._dims.get(x)
        if found is None:
            first = len(self._parents)
            found = self._dims[x] = list(range(first, first + x.aval.ndim))
            self._parents += found
        return found

    def _join_equation(self, eqn: Equation) -> None:
        """Join the dimensions of operands and results that have one name."""
        rule = rule_of(eqn.primitive)
        if rule is alike:
            self._join_alike(eqn)
        elif eqn.primitive.name == "reshape":
            self._join_runs(eqn.inputs[0], eqn.outputs[0])
        elif (names := _names_of(rule, eqn)) is None:
            self._join_ranks(eqn.inputs, eqn.outputs)  # constraints: `AS_SAID`
        else:
            self._join_names(eqn, names)

    def _join_alike(self, eqn: Equation) -> None:
        """Give the results the dimensions of the operands, which are of one shape or scalars."""
        known: list[int] = []
        for x in eqn.inputs:
            dims = self._of(x)
            if dims and dims is not known:
                self._join_all(known, dims)
                known = known or dims
        for y in eqn.outputs if known else ():
            if self._dims.setdefault(y, known) is not known:
                self._join_all(known, self._dims[y])

    def _join_names(self, eqn: Equation, names: Names) -> None:
        first: dict[Any, int] = {}
        for x, of_x in zip(eqn.inputs, names.operands, strict=True):
            for d, (dim, name) in enumerate(zip(self._of(x), of_x, strict=False)):
                # along a dimension that must be whole the compiler may cut all the same
                key = (None, d) if name is None else name
                if first.setdefault(key, dim) != dim:
                    self._join(dim, first[key])
        for y, of_y in zip(eqn.outputs, names.results, strict=True):
            dims = [self._number_of_name(first, d, name) for d, name in enumerate(of_y)]
            self._join_all(self._dims.setdefault(y, dims), dims)

    def _number_of_name(self, first: dict[Any, int], d: int, name: Any) -> int:
        """Return the dimension of a name, a new one if no operand has it."""
        key = (None, d) if name is None else name
        found = first.get(key)
        if found is None:
            found = first[key] = len(self._parents)
            self._parents.append(found)
        return found

    def _join_runs(self, x: Any, y: Any) -> None:
        """Join the dimensions of a reshape that begin at the same place of each row."""
        before, after = self._of(x), self._of(y)
        there = {start: after[d] for d, start in _starts(y.aval.shape)}
        for d, start in _starts(x.aval.shape):
            if start in there and before:
                self._join(before[d], there[start])

    def _join_ranks(self, outer: Sequence[Any], inner: Sequence[Any]) -> None:
        """Join values of programs and their calls; loops have a dimension more outside."""
        for x, y in zip(outer, inner, strict=False):
            more = x.aval.ndim - y.aval.ndim
            if more in (0, 1):
                self._join_all(self._of(x)[more:], self._of(y))

    def _join_all(self, these: Sequence[int], those: Sequence[int]) -> None:
        for a, b in zip(these, those, strict=False):
            self._join(a, b)

    def _root(self, dim: int) -> int:
        parents = self._parents
        while (parent := parents[dim]) != dim:
            parents[dim] = parents[parent]
            dim = parent
        return dim

    def _join(self, a: int, b: int) -> None:
        if a != b:
            self._parents[self._root(a)] = self._root(b)


def _names_of(rule: Any, eqn: Equation) -> Names | None:
    """Return the names of the dimensions of an equation, None where its rule gives no names."""
    if not callable(rule):
        return None
    names = rule([x.aval for x in eqn.inputs], [y.aval for y in eqn.outputs], eqn.params)
    return names if isinstance(names, Names) else None


def _starts(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each dimension of more than one element how many elements of rows precede it."""
    found, before = [], 1
    for d, size in enumerate(shape):
        if size != 1:
            found.append((d, before))
        before *= size
    return found


# -------------------------------------------------------------- constraints that say the same twice
# Constraints that say again how arguments and results are sharded: XLA computes other values.
#
#     jit(f, in_shardings=P("x"))  where f begins with  with_sharding_constraint(x, P("x"))
#
# Some programs whose text says one sharding twice have wrong values (jaxlib 0.10.2 to 0.12.0.1,
# found by random programs over meshes; subject upstream: partitioning; no issue is known). So a
# constraint that an argument or a result repeats is left out of the jaxpr.


def without_repeated(
    jaxpr: Jaxpr, in_shardings: Sequence[Sharding | None], out_shardings: Sequence[Sharding | None]
) -> Jaxpr:
    """Leave out constraints of arguments and results that the text says of these anyhow."""
    named = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "sharding_constraint"]
    said = [eqn for eqn in named if not says_of_explicit_axes(eqn.outputs[0].aval.type_sharding)]
    if not said:
        return jaxpr
    uses = Counter([*[x for eqn in jaxpr.eqns for x in eqn.inputs], *jaxpr.outvars])
    given = dict(zip(jaxpr.invars, in_shardings, strict=False))
    requested = dict(zip(jaxpr.outvars, out_shardings, strict=False))
    same: dict[Any, Any] = {}
    for eqn in said:
        x, (y,), where = same.get(eqn.inputs[0], eqn.inputs[0]), eqn.outputs, eqn.params["sharding"]
        if given.get(x) == where or (requested.get(y) == where and uses[y] == 1):
            same[y] = x
    return _without_copies(jaxpr, same) if same else jaxpr


def _without_copies(jaxpr: Jaxpr, same: Mapping[Any, Any]) -> Jaxpr:
    """Leave out the equations that make the keys of `same`: its values stand in their places."""
    eqns = [eqn.replace(inputs=tuple([same.get(x, x) for x in eqn.inputs]))
            for eqn in jaxpr.eqns if same.keys().isdisjoint(eqn.outputs)]  # fmt: skip
    outvars = tuple([same.get(x, x) for x in jaxpr.outvars])
    return jaxpr.replace(eqns=eqns, outvars=outvars)


# ------------------------------------------------------------ operations that are written as others
# Operations that XLA's partitioner gets wrong: they are written as others, or their values held.
#
#     pad                     values between elements, or an edge that is cut off
#     reduce_window_*         elements that are apart (`base_dilation`)
#     select_and_gather_add   windows over two operands
#     conv_general_dilated    space and kernel both sharded, and groups of a batch
#     dynamic_update_slice    a start out of bounds, where nothing is written
#     dot_general             a vector, or nothing to contract (jaxlib 0.12 to 0.12.0.1)
#     scatter, scatter_*      one index, into pieces of what each device has in full (jaxlib 0.10.2)
#
# Where such a dimension is sharded, pieces have wrong values or wrong sizes, or the process ends
# (jaxlib 0.10.2 to 0.12.0.1, of JAX alike; subject upstream: SPMD partitioner; no issue is known).

_SCATTERS = frozenset(
    ["scatter", "scatter_add", "scatter_mul", "scatter_max", "scatter_min"]
    if SLICES_BEYOND_PIECES else ()
)  # fmt: skip

Operands = Sequence[str]
Avals = Sequence[ShapedArray]
Steps = Callable[..., Any]


def write_split(
    b: Builder, name: str, rule: Callable[..., Operands], operands: Operands, avals_in: Avals,
    avals_out: Avals, params: Mapping[str, Any],
) -> Operands:  # fmt: skip
    """Write an operation of a program that the compiler splits.

    Args:
      b: the builder.
      name: of the primitive, one of `REWRITTEN`.
      rule: writes the operation as it is; the other arguments are its.
      operands: the names of the operands.
      avals_in: their types.
      avals_out: the types of the results.
      params: of the primitive.
    """
    is_rewritten = name in _STEPS and avals_out[0].size
    steps = _STEPS[name](name, avals_in, params) if is_rewritten else None
    if steps is not None:
        plain = [shaped_array(a.shape, a.dtype) for a in avals_in]
        return b.traced(steps, operands, plain, (name, "split", *params.values()))
    prepare = _PREPARATIONS.get(name)
    if prepare is not None:
        operands = prepare(b, operands, avals_in, avals_out, params)
    results = rule(b, operands, avals_in, avals_out, **params)
    hold = _HELD_RESULTS.get(name)
    return results if hold is None else hold(b, results, avals_out, avals_out, params)


# ----------------------------------------------------------------------------- reductions of bits


def _hold_lines(
    b: Builder, operands: Operands, avals_in: Avals, _avals_out: Avals, params: Mapping[str, Any]
) -> Operands:
    """Replicate an operand along the reduced dimensions: XLA refuses to combine bits of devices.

    Its collectives on CPUs know `and` and `or` of truth values alone ("Unsupported reduction
    computation", jaxlib 0.10.2 to 0.12.0.1; from JAX alike).
    """
    (x,), (aval,) = operands, avals_in
    return [b.hold_whole(x, aval, params["axes"])] if b.platform == "cpu" else operands


def _hold_lines_of_integers(
    b: Builder, operands: Operands, avals_in: Avals, avals_out: Avals, params: Mapping[str, Any]
) -> Operands:
    if avals_in[0].dtype == np.dtype(bool):
        return operands
    return _hold_lines(b, operands, avals_in, avals_out, params)


# ------------------------------------------------------------------------------------- transforms


def _hold_signals(
    b: Builder, operands: Operands, avals: Avals, _avals_out: Avals, params: Mapping[str, Any]
) -> Operands:
    """Replicate what a transform takes, or gives, along its dimensions.

    XLA splits transforms of arrays of three dimensions, and gathers others itself, with a warning.
    What it gathers may have a layout that the CPU's routine refuses when it runs ("RET_CHECK
    failure ... IsMonotonicWithDim0Major", jaxlib 0.10.2 to 0.12.0.1, from JAX alike): a vector has
    but one.
    """
    (x,), (aval,) = operands, avals
    dims = range(aval.ndim - len(params["fft_lengths"]), aval.ndim)
    if b.platform != "cpu" or not (aval.size and b.may_be_cut(aval, dims)):
        return operands
    held = b.hold_whole(x, aval, dims)
    if not all(type(n) is int for n in aval.shape):
        return [held]
    flat = shaped_array((aval.size,), aval.dtype)
    (line,) = b.op("stablehlo.reshape", [held], [aval], [flat])
    (line,) = b.op("stablehlo.optimization_barrier", [line], [flat], [flat])
    return b.op("stablehlo.reshape", [line], [flat], [aval])


# ------------------------------------------------------------------------------- pads and windows


def _steps_of_pad(_name: str, _avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    config = params["padding_config"]
    if all(min(low, high) >= 0 and not interior for low, high, interior in config):
        return None
    return functools.partial(_pad_in_steps, padding_config=config)


def _pad_in_steps(x: Array, value: Array, *, padding_config: Any) -> Any:
    """Put values between the elements, then cut edges off, then add edges."""
    x, edges = _put_between(x, value, padding_config)
    cuts = [_cut(n, low, high) for n, (low, high) in zip(x.shape, edges, strict=True)]
    starts, limits, config = zip(*cuts, strict=True)
    x = bind("slice", x, start_indices=starts, limit_indices=limits, strides=None)
    return (bind("pad", x, value, padding_config=config),)


def _put_between(x: Array, value: Array, config: Any) -> tuple[Array, list[tuple[int, int]]]:
    """Put values behind each element, in a dimension of its own; return what edges are left."""
    behind = [interior if n > 1 else 0 for n, (_, _, interior) in zip(x.shape, config, strict=True)]
    edges = [(low, high - k) for (low, high, _), k in zip(config, behind, strict=True)]
    if not any(behind):
        return x, edges
    joined = [n * (k + 1) for n, k in zip(x.shape, behind, strict=True)]
    plain = tuple([edge for k in behind for edge in ((0, 0, 0), (0, k, 0))])
    x = reshape(x, [size for n in x.shape for size in (n, 1)])
    return reshape(bind("pad", x, value, padding_config=plain), joined), edges


def _cut(n: int, low: int, high: int) -> tuple[int, int, tuple[int, int, int]]:
    """Return the bounds of the elements of a dimension that stay, and its edges then."""
    start = min(max(-low, 0), n)
    limit = max(min(n + high, n), start)
    if start == limit:
        return start, limit, (n + low + high, 0, 0)
    return start, limit, (max(low, 0), max(high, 0), 0)


_NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "reduce_window_sum": lambda dtype: 0,
    "reduce_window_max": least,
    "reduce_window_min": greatest,
}


def _steps_of_windows(name: str, _avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    dilation = params["base_dilation"]
    if all(base == 1 for base in dilation):
        return None
    config = tuple([(0, 0, base - 1) for base in dilation])
    plain = {**params, "base_dilation": (1,) * len(config)}

    def reduce_padded(x: Array) -> Any:
        value = fill((), _NEUTRAL[name](x.dtype), x.dtype)
        return (bind(name, bind("pad", x, value, padding_config=config), **plain),)

    return reduce_padded


def _hold_each(b: Builder, names: Operands, avals: Avals) -> Operands:
    """Keep the compiler from cutting some arrays."""
    return [b.hold_whole(x, a) if a.ndim else x for x, a in zip(names, avals, strict=True)]


def _clamp_starts(
    b: Builder, operands: Operands, avals_in: Avals, _avals_out: Avals, _params: Any
) -> Operands:
    """Clamp the starts of an update as XLA does where it does not split."""
    x, update, *starts = operands
    sizes = zip(avals_in[0].shape, avals_in[1].shape, strict=True)
    return [x, update, *[clamp_start(b, start, aval, size - width) for start, aval, (size, width) in
                         zip(starts, avals_in[2:], sizes, strict=True)]]  # fmt: skip


# -------------------------------------------------------------------------------------- scatters


def _hold_pieces(
    b: Builder, operands: Operands, avals_in: Avals, _avals_out: Avals, _params: Any
) -> Operands:
    """Have the pieces of a scatter's operand be cut before it, where there is one index.

    XLA reads the window of such a scatter from the piece, on every device, and writes it back
    unchanged where the index is in another piece. It joins that read with the slice that made the
    piece, and then reads a window of another piece.
    """
    x, indices, updates = operands
    aval, of_indices, _ = avals_in
    if any(size != 1 for size in of_indices.shape[:-1]):
        return operands
    (held,) = b.op("stablehlo.optimization_barrier", [x], [aval], [aval])
    return [held, indices, updates]


# ----------------------------------------------------------------------------------- convolutions


def _hold_kernel(
    b: Builder, operands: Operands, avals_in: Avals, avals_out: Avals, params: Mapping[str, Any]
) -> Operands:
    """Have each device compute with the whole kernel where space may be sharded.

    In a gradient of the kernel the cotangent, sharded as the image, stands for the kernel. Where
    the program does not shard space, XLA is kept from doing so of its own accord.
    """
    if not avals_out[0].size:
        return operands
    lhs, rhs = avals_in
    image, kernel, result = [spec[2:] for spec in params["dimension_numbers"]]
    if b.may_be_cut(lhs, image) or b.may_be_cut(avals_out[0], result):
        return [operands[0], b.hold_whole(operands[1], rhs)]
    return [b.hold_whole(operands[0], lhs, image), b.hold_whole(operands[1], rhs, kernel)]


def _convolve_by_groups_of_features(
    lhs: Array, rhs: Array, *, batch_group_count: int, **params: Any
) -> Any:
    """Convolve with the groups of the batch as groups of features, which is the same."""
    batch, features = params["dimension_numbers"].lhs_spec[:2]
    shape = [*lhs.shape]
    groups = batch_group_count
    split = [*shape[:batch], groups, shape[batch] // groups, *shape[batch + 1 :]]
    order = [d for d in range(len(split)) if d != batch]
    order.insert(order.index(features + (features > batch)), batch)
    shape[batch] //= groups
    shape[features] *= groups
    lhs = reshape(permute(reshape(lhs, split), order), shape)
    params["feature_group_count"] = groups  # one of the two counts is 1
    return (bind("conv_general_dilated", lhs, rhs, batch_group_count=1, **params),)


def _steps_of_convolution(_name: str, _avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    if params["batch_group_count"] == 1:
        return None
    return functools.partial(_convolve_by_groups_of_features, **params)


# --------------------------------------------------------------------------------------- products


def _steps_of_product(_name: str, avals: Avals, params: Mapping[str, Any]) -> Steps | None:
    contracted, batch = params["dimension_numbers"]
    lhs, rhs = avals
    dtype = params["preferred_element_type"] or (lhs.dtype if lhs.dtype == rhs.dtype else None)
    by_algorithm = isinstance(params["precision"], DotAlgorithm | DotAlgorithmPreset)
    if not contracted[0] and dtype is not None and not by_algorithm:
        return functools.partial(_multiply_all, batch=batch, dtype=dtype)
    has_free = [a.ndim > len(c) + len(d) for a, c, d in zip(avals, contracted, batch, strict=True)]
    if all(has_free) or not any(has_free):
        return None
    return functools.partial(_multiply_column, has_free.index(False), **params)


def _multiply_column(i: int, *operands: Array, **params: Any) -> Any:
    """Multiply by a vector, operand `i`, as by a matrix of one column."""
    columns = list(operands)
    columns[i] = reshape(columns[i], (*columns[i].shape, 1))
    product = bind("dot_general", *columns, **params)
    _, batch = params["dimension_numbers"]
    place = product.ndim - 1 if i else len(batch[0])
    return (reshape(product, (*product.shape[:place], *product.shape[place + 1 :])),)


def _multiply_all(lhs: Array, rhs: Array, *, batch: Any, dtype: Any) -> Any:
    """Multiply all elements of two operands, for each of a batch."""
    count, factors = len(batch[0]), []
    free = [[d for d in range(x.ndim) if d not in along]
            for x, along in zip((lhs, rhs), batch, strict=True)]  # fmt: skip
    last = [*range(count, count + len(free[0]) + len(free[1]))]
    places = last[: len(free[0])], last[len(free[0]) :]
    shape = [lhs.shape[d] for d in (*batch[0], *free[0])] + [rhs.shape[d] for d in free[1]]
    for x, along, own, dims in zip((lhs, rhs), batch, free, places, strict=True):
        ordered = permute(convert(x, dtype), (*along, *own))
        factors.append(broadcast_to(ordered, shape, (*range(count), *dims)))
    return (mul(*factors),)


_STEPS: dict[str, Callable[[str, Avals, Mapping[str, Any]], Steps | None]] = {
    "pad": _steps_of_pad,
    **dict.fromkeys(_NEUTRAL, _steps_of_windows),
    "conv_general_dilated": _steps_of_convolution,
    "dot_general": _steps_of_product,
}

_Prepare = Callable[[Builder, Operands, Avals, Avals, Any], Operands]

_PREPARATIONS: dict[str, _Prepare] = {
    "conv_general_dilated": _hold_kernel,
    **dict.fromkeys(_SCATTERS, _hold_pieces),
    "dynamic_update_slice": _clamp_starts,
    "fft": _hold_signals,
    "reduce_and": _hold_lines_of_integers,
    "reduce_or": _hold_lines_of_integers,
    "reduce_xor": _hold_lines,
    "select_and_gather_add": lambda b, operands, avals_in, *_: _hold_each(b, operands, avals_in),
}
"""What replaces the operands of an operation that is then written as it is."""

_HELD_RESULTS: dict[str, _Prepare] = {
    name: _PREPARATIONS[name] for name in ("fft", "select_and_gather_add")
}
"""What replaces the results of such an operation."""

REWRITTEN = frozenset([*_STEPS, *_PREPARATIONS])
"""The names of the primitives that are written so in programs that the compiler splits."""
