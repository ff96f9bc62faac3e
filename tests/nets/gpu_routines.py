"""Programs written for a GPU, run on a CPU: NumPy plays the libraries.

Each call of a routine becomes a call of a Python function that does what the documentation of the
library says of the routine, with operands and results as they lie in memory. So what a program
makes of the results (rows and columns, pivots from 1, packed vectors, codes of failure) is tried
where no GPU is. The oracle's own programs run in the same way, which tries the routines here.

Sources: the documentation of cuSOLVER, cuSPARSE and cuDNN, and LAPACK's for what has its names.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xstack
from tests.nets.gpu_programs import lowered
from xjit.dispatch.placement import default_placement

scipy_linalg = pytest.importorskip("scipy.linalg")

Config = dict[str, Any]
_CALL = re.compile(r'call_target_name = "(?:cu|hip|__cudnn\$)(\w+)"')
_LIST = re.compile(r"(operand|result)_layouts = \[(.*?xindex>)\]")
_LAYOUT = re.compile(r"dense<(?:\[([\d, ]*)\]|(\d*))> : tensor<\d+xindex>")
_CONFIG = re.compile(r"backend_config = \{([^}]*)\}")
_JSON = re.compile(r'api_version = 2 : i32, backend_config = ("(?:[^"\\]|\\.)*")')
_ALIASES = re.compile(r"output_operand_aliases = \[(?:#[^>]*>(?:, )?)*\], ")
_TYPES = re.compile(r" : \(([^()]*)\) -> \(?(.*?)\)?$")
_DTYPES = {"f32": np.float32, "f64": np.float64, "complex<f32>": np.complex64,
           "complex<f64>": np.complex128, "i32": np.int32, "f16": np.float16,
           "bf16": ml_dtypes.bfloat16, "ui8": np.uint8}  # fmt: skip


def run(fun: Callable[..., Any], operands: Sequence[Any], platform: str = "cuda") -> Any:
    """Return what a function computes as a program for a GPU, the libraries being played."""
    stage = lowered(fun, operands, platform)
    program = stage._lowered
    callbacks = list(program.callbacks)
    lines = [_played(line, callbacks) for line in program.body.splitlines()]
    parts = {name: getattr(program, name) for name in program.__match_args__}
    parts |= {"body": "\n".join(lines), "callbacks": tuple(callbacks), "platform": "cpu"}
    played = type(program)(**parts)
    traced = stage._traced
    kernel = traced._program.kernel(default_placement(), played)
    outs = kernel.call([xstack.numpy.asarray(x) for x in operands])
    return traced.out_tree.unflatten(outs)


def _played(line: str, callbacks: list[Any]) -> str:
    line = line.replace("xla_ffi_python_gpu_callback", "xla_ffi_python_cpu_callback")
    found = _CALL.search(line)
    if found is None:
        return line
    kind = _Attention if found[1].startswith("fmha") else _Routine
    callbacks.append(kind(found[1], line))
    line = _CALL.sub('call_target_name = "xla_ffi_python_cpu_callback"', line)
    line = _CONFIG.sub(f"backend_config = {{index = {len(callbacks) - 1} : ui64}}", line, count=1)
    line = _JSON.sub(
        f"api_version = 4 : i32, backend_config = {{index = {len(callbacks) - 1} : ui64}}", line
    )
    return _ALIASES.sub("", line)


class _Routine:
    """A routine with its options: of operands as they lie in memory, to such results."""

    def __init__(self, name: str, line: str) -> None:
        self.routine = self.of_name(name)
        self.config = self.read_config(line)
        layouts = [_layouts(text) for _, text in _LIST.findall(line)]
        self.layouts_in, self.layouts_out = layouts
        types = _TYPES.search(line)
        self.types_out = [_type(t) for t in re.findall(r"tensor<(.*?)>(?=,|$|\))", types[2])]

    def of_name(self, name: str) -> Any:
        """Return the function that plays it."""
        return globals()[name.removesuffix("_ffi").lstrip("_")]

    def read_config(self, line: str) -> Config:
        """Return its options."""
        return dict(map(_option, filter(None, _CONFIG.search(line)[1].split(", "))))

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Run it."""
        given = [_read(np.asarray(x), o) for x, o in zip(operands, self.layouts_in, strict=True)]
        outs = self.routine(self.config, self.types_out, *given)
        return tuple([
            _written(np.asarray(y, dtype).reshape(shape), order)
            for y, (shape, dtype), order in zip(outs, self.types_out, self.layouts_out, strict=True)
        ])  # fmt: skip


class _Attention(_Routine):
    """A call of cuDNN's attention, whose options are JSON."""

    def of_name(self, name: str) -> Any:
        """Return the function that plays it."""
        return functools.partial(attention_backward if name.endswith("Backward") else attention,
                                 "Bias" in name)  # fmt: skip

    def read_config(self, line: str) -> Config:
        """Return its options."""
        return json.loads(json.loads(_JSON.search(line)[1]))["cudnn_fmha_backend_config"]


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition(" = ")
    if value in ("true", "false"):
        return name, value == "true"
    return name, value.strip('"') if value.startswith('"') else int(value.split(" : ")[0])


def _layouts(text: str) -> list[tuple[int, ...]]:
    return [tuple([int(d) for d in (a or b).split(", ") if d]) for a, b in _LAYOUT.findall(text)]


def _type(text: str) -> tuple[tuple[int, ...], Any]:
    *sizes, dtype = re.split(r"x(?=\d|f|c|i|b|u)", text)
    return tuple(map(int, sizes)), _DTYPES[dtype]


def _read(x: Any, order: tuple[int, ...]) -> Any:
    """Return what stands in memory, of which `x` shows the bytes as if rows came first."""
    slowest_first = order[::-1]
    memory = x.reshape([x.shape[d] for d in slowest_first])
    return memory.transpose(np.argsort(slowest_first))


def _written(y: Any, order: tuple[int, ...]) -> Any:
    return np.ascontiguousarray(y.transpose(order[::-1])).reshape(y.shape)


def _each(fun: Callable[..., Any], cells: int, *operands: Any) -> list[Any]:
    """Call a function for each member of a batch and stack its results."""
    batch = operands[0].shape[: operands[0].ndim - cells]
    flat = [x.reshape((-1, *x.shape[len(batch) :])) for x in operands]
    found = [fun(*[x[i] for x in flat]) for i in range(flat[0].shape[0])]
    return [np.stack(ys).reshape((*batch, *np.shape(ys[0]))) for ys in zip(*found, strict=True)]


def solver_potrf(config: Config, types: Any, a: Any) -> Any:
    assert config == {"lower": True}

    def one(a: Any) -> Any:
        half = np.tril(a, -1)
        whole = half + half.conj().T + np.diag(np.diagonal(a).real)
        try:
            factor, info = np.linalg.cholesky(whole), 0
        except np.linalg.LinAlgError:
            factor, info = np.full_like(a, 7), 1
        return np.tril(factor) + np.triu(a, 1), np.int32(info)

    return _each(one, 2, a)


def solver_getrf(config: Config, types: Any, a: Any) -> Any:
    def one(a: Any) -> Any:
        letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[a.dtype.char]
        lu, pivots, info = getattr(scipy_linalg.lapack, f"{letter}getrf")(a)
        return lu, (pivots + 1).astype(np.int32), np.int32(info)

    return _each(one, 2, a)


def lu_pivots_to_permutation(config: Config, types: Any, pivots: Any) -> Any:
    size = types[0][0][-1]

    def one(pivots: Any) -> Any:
        order = np.arange(size, dtype=np.int32)
        for i, j in enumerate(pivots):
            order[[i, j]] = order[[j, i]]
        return (order,)

    return _each(one, 1, pivots)


def solver_geqrf(config: Config, types: Any, a: Any) -> Any:
    def one(a: Any) -> Any:
        h, taus = np.linalg.qr(a, mode="raw")
        return h.T, taus

    return _each(one, 2, a)


def _product(a: Any, taus: Any) -> Any:
    m = a.shape[0]
    q = np.eye(m, dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.zeros(m, a.dtype)
        v[i], v[i + 1 :] = 1, a[i + 1 :, i]
        q = q - tau * np.outer(q @ v, v.conj())
    return q


def solver_orgqr(config: Config, types: Any, a: Any, taus: Any) -> Any:
    return _each(lambda a, taus: (_product(a, taus)[:, : a.shape[1]],), 2, a, taus)


def solver_ormqr(config: Config, types: Any, a: Any, taus: Any, c: Any) -> Any:
    def one(a: Any, taus: Any, c: Any) -> Any:
        q = _product(a, taus)
        q = q.conj().T if config["transpose"] else q
        return (q @ c if config["left"] else c @ q,)

    return _each(one, 2, a, taus, c)


def solver_gesvdj(config: Config, types: Any, a: Any) -> Any:
    if not config["full_matrices"]:
        assert min(a.shape[-2:]) > 32 or a.ndim == 2, "no economic form for batches of small ones"
    return solver_gesvdp(config, types, a)


def solver_gesvdp(config: Config, types: Any, a: Any) -> Any:
    def one(a: Any) -> Any:
        if not np.isfinite(a).all():
            a = np.ones_like(a)  # what comes out then means nothing
        u, s, vh = np.linalg.svd(a, full_matrices=config["full_matrices"])
        if not config["compute_uv"]:
            u, vh = np.full_like(u, np.nan), np.full_like(vh, np.nan)
        return np.full_like(a, 7), s, u, vh.conj().T, np.int32(0)

    return _each(one, 2, a)


def solver_gesvd(config: Config, types: Any, a: Any) -> Any:
    if config["transposed"]:  # the memory of rows, read as columns
        a = a.swapaxes(-1, -2)
    assert a.shape[-2] >= a.shape[-1], "gesvd takes no wide matrices"
    assert not config["transposed"] or config["compute_uv"] in (True, False)

    def one(a: Any) -> Any:
        u, s, vh = np.linalg.svd(a, full_matrices=config["full_matrices"])
        return np.full_like(a, 7), s, u, vh, np.int32(0)

    copy, s, u, vh, info = _each(one, 2, a)
    if config["transposed"]:
        copy, u, vh = [x.swapaxes(-1, -2) for x in (copy, u, vh)]
    if not config["compute_uv"]:
        u = vh = np.zeros(())
    return copy, s, u, vh, info


def solver_syevd(config: Config, types: Any, a: Any) -> Any:
    def one(a: Any) -> Any:
        if not np.isfinite(a).all():
            a = np.eye(a.shape[0], dtype=a.dtype)
        w, v = np.linalg.eigh(a, "L" if config["lower"] else "U")
        return v, w, np.int32(0)

    return _each(one, 2, a)


def solver_sytrd(config: Config, types: Any, a: Any) -> Any:
    def one(a: Any) -> Any:
        name = {"f": "ssytrd", "d": "dsytrd", "F": "chetrd", "D": "zhetrd"}[a.dtype.char]
        c, d, e, taus, info = getattr(scipy_linalg.lapack, name)(a, lower=int(config["lower"]))
        return c, d, e, taus, np.int32(info)

    return _each(one, 2, a)


def _tridiagonal(dl: Any, d: Any, du: Any) -> Any:
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)


def sparse_gtsv2(config: Config, types: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
    assert d.shape[-1] >= 3, "gtsv2 wants three rows"
    return tridiagonal_solve_perturbed(config, types, dl, d, du, b)


def tridiagonal_solve_perturbed(
    config: Config, types: Any, dl: Any, d: Any, du: Any, b: Any
) -> Any:
    return _each(lambda dl, d, du, b: (np.linalg.solve(_tridiagonal(dl, d, du), b),), 1, dl, d, du,
                 b)  # fmt: skip


def cholesky_update(config: Config, types: Any, r: Any, w: Any) -> Any:
    assert r.ndim == 2
    new = np.linalg.cholesky(r.T @ r + np.outer(w, w)).T
    return new + np.tril(np.full_like(r, 7), -1), np.full_like(w, 7)


def hybrid_eig_comp(config: Config, types: Any, a: Any) -> Any:
    def one(a: Any) -> Any:
        w, left, right = scipy_linalg.eig(a, left=True, right=True)
        return w, left, right, np.int32(0)

    return _each(one, 2, a)


def hybrid_eig_real(config: Config, types: Any, a: Any) -> Any:
    w, left, right, info = hybrid_eig_comp(config, types, a)
    return w.real, w.imag, left, right, info


def solver_geev(config: Config, types: Any, a: Any) -> Any:
    assert not config["left"]

    def one(a: Any) -> Any:
        name = {"f": "sgeev", "d": "dgeev", "F": "cgeev", "D": "zgeev"}[a.dtype.char]
        *w, _, right, info = getattr(scipy_linalg.lapack, name)(a)
        values = w[0] if len(w) == 1 else w[0] + 1j * w[1]
        return np.full_like(a, 7), values, np.full_like(a, 7), right, np.int32(info)

    return _each(one, 2, a)


# ------------------------------------------------------------------------------------------- cudnn
# cuDNN's attention, in float64: vectors are (B, T, N, H), scores (B, N, T, S).


def _attended(config: Config, q: Any, k: Any, v: Any, bias: Any, lengths: Any) -> Any:
    """Return vectors in float64, keys repeated, with the weights and the residual."""
    assert not config["dropout_rate"]
    q, k, v = [np.asarray(x, np.float64) for x in (q, k, v)]
    k, v = [np.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v)]
    scores = config["fmha_scale"] * np.einsum("btnh,bsnh->bnts", q, k)
    assert config["intermediate_tensor_shape"]["dimensions"] == list(map(str, scores.shape))
    if bias is not None:
        scores = scores + np.asarray(bias, np.float64)
    t, s = np.indices(scores.shape[2:])
    seen = np.ones(scores.shape, bool)
    if "CAUSAL" in config["mask_type"]:
        seen &= t >= s
    if config["sliding_window_length"]:
        seen &= t - s < config["sliding_window_length"]
    if "PADDING" in config["mask_type"]:
        of_queries, of_keys = [np.asarray(x).reshape(-1, 1, 1, 1) for x in lengths]
        seen &= (t < of_queries) & (s < of_keys)
    most = np.where(seen, scores, -np.inf).max(-1, keepdims=True, initial=-1e30)
    powers = np.exp(np.where(seen, scores - most, -np.inf))
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        residual = (most + np.log(total))[..., 0]
    return q, k, v, powers / np.where(total, total, 1), residual


def attention(
    has_bias: bool, config: Config, types: Any, q: Any, k: Any, v: Any, *rest: Any
) -> Any:
    bias, lengths = (rest[0], rest[1:]) if has_bias else (None, rest)
    q, k, v, weights, residual = _attended(config, q, k, v, bias, lengths)
    found = [np.einsum("bnts,bsnh->bnth", weights, v), *[residual] * (len(types) - 2)]
    return [*found, np.zeros(0, np.uint8)]


def attention_backward(
    has_bias: bool, config: Config, types: Any, q: Any, k: Any, v: Any, residual: Any, bar: Any,
    *rest: Any,
) -> Any:  # fmt: skip
    bias, (result, *lengths) = (rest[0], rest[1:]) if has_bias else (None, rest)
    heads = k.shape[2]
    q, k, v, weights, expected = _attended(config, q, k, v, bias, lengths)
    np.testing.assert_allclose(residual, expected, rtol=1e-4, atol=1e-4)  # in float32
    bar = np.asarray(bar, np.float64)
    by_vectors = np.einsum("btnh,btnh->bnt", bar, np.asarray(result, np.float64))
    scores_bar = weights * (np.einsum("btnh,bsnh->bnts", bar, v) - by_vectors[..., None])
    inner = config["fmha_scale"] * scores_bar

    def joined(x: Any) -> Any:
        b, n, s, h = x.shape
        return x.reshape(b, heads, n // heads, s, h).sum(2)

    found = [
        np.einsum("bnts,bsnh->bnth", inner, k),
        joined(np.einsum("bnts,btnh->bnsh", inner, q)),
        joined(np.einsum("bnts,btnh->bnsh", weights, bar)),
    ]
    if len(types) > 4:  # of a mask nobody wants a cotangent
        over = tuple([i for i in (0, 1) if bias.shape[i] == 1])
        found.append(scores_bar.sum(over, keepdims=True))
    return [*found, np.zeros(0, np.uint8)]
