"""Calls of array functions on operands that an explicit axis of a mesh shards.

`STATEMENTS` has for each name a program of a library and its `numpy`, and the operands: a shape and
what is in it (`values`). `placements` has the ways to shard the operands: each dimension of each
one by itself, and each dimension of all together.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Program = Callable[..., Any]
Operand = tuple[tuple[int, ...], str]

STATEMENTS: dict[str, tuple[Program, tuple[Operand, ...]]] = {}

V: Operand = ((8,), "numbers")
SHORT: Operand = ((4,), "numbers")
M: Operand = ((8, 4), "numbers")
THREE: Operand = ((8, 4, 4), "numbers")
COMPLEX: Operand = ((8, 4), "complex")
INDEX: Operand = ((4,), "positions")
MASK: Operand = ((8, 4), "mask")
DEFINITE: Operand = ((2, 4, 4), "definite")
KEYS: Operand = ((8, 2), "bits")
SIDES: Operand = ((2, 4, 2), "numbers")


def values(operand: Operand, seed: int) -> np.ndarray[Any, Any]:
    """Return the elements of an operand."""
    shape, kind = operand
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    mixed = rng.permutation(count).reshape(shape)
    match kind:
        case "numbers":
            return (mixed / count + 0.25).astype(np.float32)
        case "complex":
            return (rng.normal(size=shape) + 1j * mixed).astype(np.complex64)
        case "integers":
            return mixed.astype(np.int32)
        case "positions":
            return (np.arange(count).reshape(shape) % 4).astype(np.int32)
        case "bits":
            return rng.integers(0, 2**31, shape).astype(np.uint32)
        case "mask":
            return np.equal(mixed % 3, 0)
        case "sorted":
            return np.sort(rng.normal(size=shape)).astype(np.float32)
    assert kind == "definite"
    root = rng.normal(size=shape)
    return (root @ np.swapaxes(root, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(np.float32)


def placements(operands: tuple[Operand, ...]) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield names of placements over an axis "x" of two devices, and the specs of operands."""
    shapes = [shape for shape, _ in operands]
    for i, shape in enumerate(shapes):
        for d in range(len(shape)):
            if shape[d] % 2 == 0:
                specs: list[list[Any]] = [[None] * len(s) for s in shapes]
                specs[i][d] = "x"
                yield f"dimension {d} of operand {i}", specs
    for d in range(max(map(len, shapes)) if len(shapes) > 1 else 0):
        if all(len(s) <= d or s[d] % 2 == 0 for s in shapes):
            yield (
                f"dimension {d} of all",
                [["x" if k == d else None for k in range(len(s))] for s in shapes],
            )


def add(name: str, program: Program, *operands: Operand) -> None:
    """Add a statement."""
    assert name not in STATEMENTS
    STATEMENTS[name] = program, operands


def _special(j: Any) -> Any:
    return importlib.import_module(f"{j.__name__}.scipy.special")


def _of_keys(fun: Callable[[Any], Any]) -> Program:
    """Return the program that does something to each of several keys."""

    def program(j: Any, n: Any, data: Any) -> Any:
        return j.vmap(fun(j))(j.random.wrap_key_data(data))

    return program


def _leaves(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


# fft
for k in "fft ifft rfft irfft hfft ihfft".split():
    add(f"fft.{k}", lambda j, n, x, k=k: getattr(n.fft, k)(x), M)
    add(f"fft.{k}(axis=0)", lambda j, n, x, k=k: getattr(n.fft, k)(x, axis=0), M)
for k in "fft2 rfft2 fftn rfftn irfftn".split():
    add(
        f"fft.{k}", lambda j, n, x, k=k: getattr(n.fft, k)(x, axes=(-2, -1)), ((2, 4, 4), "numbers")
    )
add("lax.fft", lambda j, n, x: j.lax.fft(x, "fft", (4,)), COMPLEX)
add("fft.fftshift", lambda j, n, x: n.fft.fftshift(x), M)
# sort & search
for k in "sort argsort".split():
    for ax in (0, -1):
        add(f"{k}({ax})", lambda j, n, x, k=k, ax=ax: getattr(n, k)(x, axis=ax), M)
add("sort of two", lambda j, n, x, y: tuple(j.lax.sort((x, y), num_keys=1)), M, M)
add("lax.top_k", lambda j, n, x: tuple(j.lax.top_k(x, 2)), M)
add("lax.top_k(0)", lambda j, n, x: tuple(j.lax.top_k(x, 2, axis=0)), M)
add("lax.approx_max_k", lambda j, n, x: tuple(j.lax.approx_max_k(x, 2)), M)
for meth in ("scan", "scan_unrolled", "sort", "compare_all"):
    add(
        f"searchsorted {meth}",
        lambda j, n, a, v, meth=meth: n.searchsorted(a, v, method=meth),
        ((8,), "sorted"),
        SHORT,
    )
add(
    "searchsorted 2d",
    lambda j, n, a, v: n.searchsorted(a, v),
    ((8,), "sorted"),
    ((4, 2), "numbers"),
)
add("digitize", lambda j, n, x, b: n.digitize(x, b), V, ((4,), "sorted"))
add("interp", lambda j, n, x, xp, fp: n.interp(x, xp, fp), V, ((4,), "sorted"), SHORT)
add("histogram", lambda j, n, x: n.histogram(x, bins=4)[0], V)
add("bincount", lambda j, n, x: n.bincount(x, length=8), ((8,), "positions"))
add("median", lambda j, n, x: n.median(x, axis=0), M)
add("median(1)", lambda j, n, x: n.median(x, axis=1), M)
add("percentile", lambda j, n, x: n.percentile(x, 30.0, axis=0), M)
add("percentile(1)", lambda j, n, x: n.percentile(x, 30.0, axis=1), M)
add("unique", lambda j, n, x: n.unique(x, size=4), ((8,), "positions"))
add("lexsort", lambda j, n, x, y: n.lexsort((x, y)), V, V)
add("partition", lambda j, n, x: n.partition(x, 2), M)
# cumulative
for k in "cumsum cumprod".split():
    for ax in (0, 1):
        add(f"{k}({ax})", lambda j, n, x, k=k, ax=ax: getattr(n, k)(x, axis=ax), M)
for k in "cumsum cumprod cummax cummin cumlogsumexp".split():
    for ax in (0, 1):
        add(f"lax.{k}({ax})", lambda j, n, x, k=k, ax=ax: getattr(j.lax, k)(x, axis=ax), M)
add("diff", lambda j, n, x: n.diff(x, axis=0), M)
add("diff(1)", lambda j, n, x: n.diff(x, axis=1), M)
add("associative_scan", lambda j, n, x: j.lax.associative_scan(n.add, x), M)
# arg reductions, reductions
for (
    k
) in "argmax argmin sum prod max min all any mean var std amax nansum ptp count_nonzero".split():
    for ax in (0, 1, None):
        add(f"{k}({ax})", lambda j, n, x, k=k, ax=ax: getattr(n, k)(x, axis=ax), M)
add("lax.reduce max", lambda j, n, x: j.lax.reduce(x, np.float32(-np.inf), j.lax.max, (0,)), M)
add(
    "reduce by a function",
    lambda j, n, x: j.lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b * 0, (0,)),
    M,
)
add("lax.reduce_precision", lambda j, n, x: j.lax.reduce_precision(x, 8, 7), M)
for k in "reduce_and reduce_or reduce_xor".split():
    add(f"lax.{k}", lambda j, n, x, k=k: getattr(j.lax, k)(x, (0,)), ((8, 4), "integers"))
add(
    "reduce_window",
    lambda j, n, x: j.lax.reduce_window(x, np.float32(-np.inf), j.lax.max, (2, 1), (2, 1), "VALID"),
    M,
)
add(
    "reduce_window same",
    lambda j, n, x: j.lax.reduce_window(x, np.float32(0), j.lax.add, (3, 1), (1, 1), "SAME"),
    M,
)
add(
    "reduce_window of products",
    lambda j, n, x: j.lax.reduce_window(x, np.float32(1), j.lax.mul, (3, 1), (1, 1), "SAME"),
    M,
)
# shapes
add("rev(0)", lambda j, n, x: j.lax.rev(x, (0,)), M)
add("rev(1)", lambda j, n, x: j.lax.rev(x, (1,)), M)
add("transpose", lambda j, n, x: x.T, M)
add("broadcast_in_dim", lambda j, n, x: j.lax.broadcast_in_dim(x, (3, 8, 4), (1, 2)), M)
add("broadcast_to", lambda j, n, x: n.broadcast_to(x, (3, 8, 4)), M)
add("reshape merge", lambda j, n, x: x.reshape(32), M)
add("reshape merges two of three", lambda j, n, x: x.reshape(8, 16), THREE)
add("reshape split", lambda j, n, x: x.reshape(2, 4, 4), M)
add("reshape splits otherwise", lambda j, n, x: x.reshape(4, 2, 4), M)
add("reshape 1", lambda j, n, x: x.reshape(8, 1, 4), M)
add("ravel", lambda j, n, x: x.ravel(), M)
add("expand_dims", lambda j, n, x: n.expand_dims(x, 1), M)
add("squeeze", lambda j, n, x: n.squeeze(x, 1), ((8, 1, 4), "numbers"))
add("pad(0)", lambda j, n, x: j.lax.pad(x, np.float32(0), ((1, 1, 0), (0, 0, 0))), M)
add("pad(1)", lambda j, n, x: j.lax.pad(x, np.float32(0), ((0, 0, 0), (1, 1, 0))), M)
add("n.pad0", lambda j, n, x: n.pad(x, ((1, 1), (0, 0))), M)
add("concatenate(0)", lambda j, n, x, y: n.concatenate([x, y], 0), M, M)
add("concatenate(1)", lambda j, n, x, y: n.concatenate([x, y], 1), M, M)
add("stack", lambda j, n, x, y: n.stack([x, y]), M, M)
add("split(0)", lambda j, n, x: tuple(n.split(x, 2, 0)), M)
add("split(1)", lambda j, n, x: tuple(n.split(x, 2, 1)), M)
add("lax.split", lambda j, n, x: tuple(j.lax.split(x, (4, 4), 0)), M)
add("tile", lambda j, n, x: n.tile(x, (2, 1)), M)
add("repeat", lambda j, n, x: n.repeat(x, 2, axis=1), M)
add("roll(0)", lambda j, n, x: n.roll(x, 1, 0), M)
add("roll(1)", lambda j, n, x: n.roll(x, 1, 1), M)
add("flip", lambda j, n, x: n.flip(x, 0), M)
add("tril", lambda j, n, x: n.tril(x), M)
add("diag", lambda j, n, x: n.diag(x), V)
add("diagonal", lambda j, n, x: n.diagonal(x), ((8, 8), "numbers"))
add("trace", lambda j, n, x: n.trace(x), ((8, 8), "numbers"))
add("iota like", lambda j, n, x: x + j.lax.broadcasted_iota(np.float32, (8, 4), 0), M)
add("zeros_like", lambda j, n, x: n.zeros_like(x), M)
add("full_like", lambda j, n, x: n.full_like(x, 2.0), M)
add("optimization_barrier", lambda j, n, x: j.lax.optimization_barrier(x), M)
add("bitcast", lambda j, n, x: j.lax.bitcast_convert_type(x, np.int32), M)
add("bitcast16", lambda j, n, x: j.lax.bitcast_convert_type(x, np.int16), M)
add("convert", lambda j, n, x: x.astype(np.int32), M)
add("copy", lambda j, n, x: n.copy(x), M)
add("where", lambda j, n, b, x, y: n.where(b, x, y), MASK, M, M)
add("select_n", lambda j, n, b, x, y: j.lax.select_n(b, x, y), MASK, M, M)
add("clamp", lambda j, n, x: j.lax.clamp(np.float32(0.3), x, np.float32(0.7)), M)
add("add", lambda j, n, x, y: x + y, M, M)
add("add of a row", lambda j, n, x, y: x + y, M, SHORT)
add("sin", lambda j, n, x: n.sin(x), M)
add("complex", lambda j, n, x, y: j.lax.complex(x, y), M, M)
add("real", lambda j, n, x: n.real(x), COMPLEX)
add("abs of complex", lambda j, n, x: n.abs(x), COMPLEX)
for k in "digamma lgamma erf_inv bessel_i0e bessel_i1e".split():
    add(f"lax.{k}", lambda j, n, x, k=k: getattr(j.lax, k)(x), M)
add("lax.igamma", lambda j, n, x, y: j.lax.igamma(x, y), M, M)
add("lax.betainc", lambda j, n, x, y, z: j.lax.betainc(x, y, z), M, M, M)
add("lax.nextafter", lambda j, n, x, y: j.lax.nextafter(x, y), M, M)
add("lax.population_count", lambda j, n, x: j.lax.population_count(x), ((8, 4), "bits"))
# indexing
add("slice(0)", lambda j, n, x: j.lax.slice(x, (0, 0), (4, 4)), M)
add("slice(1)", lambda j, n, x: j.lax.slice(x, (0, 0), (8, 2)), M)
add("slice strided", lambda j, n, x: j.lax.slice(x, (0, 0), (8, 4), (2, 1)), M)
add("dynamic_slice(0)", lambda j, n, x: j.lax.dynamic_slice(x, (1, 0), (4, 4)), M)
add("dynamic_slice(1)", lambda j, n, x: j.lax.dynamic_slice(x, (0, 1), (8, 2)), M)
add(
    "dynamic_update_slice",
    lambda j, n, x, u: j.lax.dynamic_update_slice(x, u, (0, 1)),
    M,
    ((8, 2), "numbers"),
)
add(
    "dynamic_update_slice(0)",
    lambda j, n, x, u: j.lax.dynamic_update_slice(x, u, (1, 0)),
    M,
    ((4, 4), "numbers"),
)
add("dynamic_index_in_dim", lambda j, n, x: j.lax.dynamic_index_in_dim(x, 1, 1), M)
add("x[:, 1]", lambda j, n, x: x[:, 1], M)
add("x[1]", lambda j, n, x: x[1], M)
add("x[:, ::2]", lambda j, n, x: x[:, ::2], M)
add("x[i]", lambda j, n, x, i: x[i], M, INDEX)
add("x[:, i]", lambda j, n, x, i: x[:, i], M, INDEX)
add("take", lambda j, n, x, i: n.take(x, i, axis=0), M, INDEX)
add("take(1)", lambda j, n, x, i: n.take(x, i, axis=1), M, INDEX)
add("take_along_axis", lambda j, n, x, i: n.take_along_axis(x, i, axis=1), M, ((8, 4), "positions"))
add(
    "take_along_axis(0)",
    lambda j, n, x, i: n.take_along_axis(x, i, axis=0),
    M,
    ((8, 4), "positions"),
)
add("at.set", lambda j, n, x, u: x.at[:, 1].set(u), M, V)
add("at.set const", lambda j, n, x: x.at[:, 1].set(0.0), M)
add("at.set row", lambda j, n, x: x.at[1].set(0.0), M)
add("at.add i", lambda j, n, x, i, u: x.at[i].add(u), M, INDEX, ((4, 4), "numbers"))
add("at.max i", lambda j, n, x, i, u: x.at[i].max(u), M, INDEX, ((4, 4), "numbers"))
add(
    "segment_sum",
    lambda j, n, x, i: j.ops.segment_sum(x, i, num_segments=4),
    M,
    ((8,), "positions"),
)
add("compress", lambda j, n, x, b: n.compress(b, x, axis=0, size=4), M, ((8,), "mask"))
add("nonzero", lambda j, n, x: n.nonzero(x, size=3)[0], ((8,), "mask"))
add("argwhere", lambda j, n, x: n.argwhere(x, size=3), MASK)
add("one_hot", lambda j, n, i: j.nn.one_hot(i, 4), ((8,), "positions"))
# contractions
add("dot mv", lambda j, n, x, y: x @ y, M, SHORT)
add("dot mm", lambda j, n, x, y: x @ y, M, ((4, 8), "numbers"))
add("dot batch", lambda j, n, x, y: n.einsum("bij,bjk->bik", x, y), THREE, THREE)
add("vdot", lambda j, n, x, y: n.vdot(x, y), V, V)
add("outer", lambda j, n, x, y: n.outer(x, y), V, SHORT)
add(
    "conv",
    lambda j, n, x, k: j.lax.conv(x, k, (1, 1), "SAME"),
    ((2, 4, 8, 8), "numbers"),
    ((4, 4, 3, 3), "numbers"),
)
add("convolve", lambda j, n, x, k: n.convolve(x, k), V, SHORT)
add(
    "ragged_dot",
    lambda j, n, x, y: j.lax.ragged_dot(x, y, n.array([2, 6])),
    M,
    ((2, 4, 4), "numbers"),
)
# linalg
for k in "inv det slogdet cholesky qr eigh eigvalsh pinv".split():
    add(f"linalg.{k}", lambda j, n, x, k=k: _leaves(getattr(n.linalg, k)(x)), DEFINITE)
add("linalg.svd", lambda j, n, x: [n.abs(v) for v in n.linalg.svd(x)], DEFINITE)
add("linalg.eig", lambda j, n, x: n.abs(n.linalg.eigvals(x)), DEFINITE)
add("linalg.solve", lambda j, n, a, b: n.linalg.solve(a, b), DEFINITE, SIDES)
add("linalg.norm", lambda j, n, x: n.linalg.norm(x, axis=-1), M)
add("lax.lu", lambda j, n, x: tuple(j.lax.linalg.lu(x)), DEFINITE)
add(
    "triangular_solve",
    lambda j, n, a, b: j.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
    DEFINITE,
    SIDES,
)
add(
    "tridiagonal_solve",
    lambda j, n, d, b: j.lax.linalg.tridiagonal_solve(d, d + 3, d, b),
    ((2, 4), "numbers"),
    SIDES,
)
add("schur", lambda j, n, x: tuple(j.lax.linalg.schur(x)), DEFINITE)
add("hessenberg", lambda j, n, x: tuple(j.lax.linalg.hessenberg(x)), DEFINITE)
add("tridiagonal", lambda j, n, x: tuple(j.lax.linalg.tridiagonal(x)), DEFINITE)
add(
    "householder",
    lambda j, n, x, t: j.lax.linalg.householder_product(x, t),
    DEFINITE,
    ((2, 4), "numbers"),
)
add("geqrf", lambda j, n, x: j.lax.linalg.qr(x, full_matrices=False)[1], DEFINITE)
# control flow
add(
    "scan rows",
    lambda j, n, x: j.lax.scan(lambda c, r: (c + r, r * 2), n.zeros_like(x[:, 0]), x.T)[1],
    M,
)
add("map", lambda j, n, x: j.lax.map(lambda r: r * 2, x), M)
add("fori", lambda j, n, x: j.lax.fori_loop(0, 3, lambda i, c: c * 2, x), M)
add(
    "while",
    lambda j, n, x: j.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1],
    M,
)
add("cond", lambda j, n, x: j.lax.cond(True, lambda v: v * 2, lambda v: v, x), M)
add(
    "custom_linear_solve",
    lambda j, n, x: j.lax.custom_linear_solve(lambda v: 2 * v, x, lambda mv, b: b / 2),
    M,
)
# nn
add("softmax", lambda j, n, x: j.nn.softmax(x, axis=-1), M)
add("softmax(0)", lambda j, n, x: j.nn.softmax(x, axis=0), M)
add("logsumexp", lambda j, n, x: _special(j).logsumexp(x, axis=0), M)
add("polyval", lambda j, n, p, x: n.polyval(p, x), SHORT, V)
add("vander", lambda j, n, x: n.vander(x, 3), V)
add("kron", lambda j, n, x, y: n.kron(x, y), V, SHORT)
add("cross", lambda j, n, x, y: n.cross(x, y), ((8, 3), "numbers"), ((8, 3), "numbers"))
add("cov", lambda j, n, x: n.cov(x), M)
add("gradient", lambda j, n, x: n.gradient(x, axis=0), M)
add("gradient(1)", lambda j, n, x: n.gradient(x, axis=1), M)
add("trapezoid", lambda j, n, x: n.trapezoid(x, axis=0), M)
add("isin", lambda j, n, x, y: n.isin(x, y), ((8,), "integers"), INDEX)
add("nan_to_num", lambda j, n, x: n.nan_to_num(x), M)
add("choose", lambda j, n, i, x, y: n.choose(i % 2, [x, y], mode="wrap"), ((8,), "positions"), V, V)
add("unwrap", lambda j, n, x: n.unwrap(x), V)
add("clz", lambda j, n, x: j.lax.clz(x), ((8, 4), "bits"))
add("packbits", lambda j, n, x: n.packbits(x, axis=0), MASK)
add("random.bits", _of_keys(lambda j: lambda key: j.random.bits(key, (4,))), KEYS)
add("random.split", _of_keys(lambda j: lambda key: j.random.key_data(j.random.split(key))), KEYS)
add(
    "random.fold_in",
    _of_keys(lambda j: lambda key: j.random.key_data(j.random.fold_in(key, 3))),
    KEYS,
)
