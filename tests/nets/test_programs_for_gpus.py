"""What is written for GPUs is what the oracle writes for them, and means what it says; on a CPU."""

from __future__ import annotations

import logging
import re
import warnings

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.nets import gpu_routines
from tests.nets.cells import drawn
from tests.nets.gpu_cells import (
    ALONE,
    CUDA_ALONE,
    MADE,
    PLATFORMS,
    ROWS,
    cells_of,
    function_of,
    operands_of,
)
from tests.nets.gpu_programs import calls_in, lowered, operations, oracle_text, our_text
from xjit import host_kernels
from xjit.debug.monitoring import retraces
from xnp.testing import samples
from xprim import EAGER, config, get_primitive
from xstack import lax

PLATFORM = pytest.mark.parametrize("platform", PLATFORMS)
LINALG = lax.linalg
A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]], np.float32)


# ------------------------------------------------------------------- the same text as the oracle's


def needs_none(cell):
    """Return whether all results are known: the oracle calls routines for empty batches, too."""
    return any(0 in shape for shape in cell.shapes)


OLD_ORACLE_REFUSES = {"scipy.linalg.lu"}  # batches, before 0.12


def calls_of_oracle(cell, platform):
    """Return the calls of the oracle's program, None for what its older releases refuse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arguments that it takes no longer one day
        try:
            return calls_in(oracle_text(cell, platform))
        except ValueError:
            if cell.path not in OLD_ORACLE_REFUSES:
                raise
            return None


@pytest.mark.fuzz
@PLATFORM
def test_routines_are_called_as_the_oracle_calls_them(platform):
    wrong = []
    for cell in drawn(cells_of(ROWS), 14):
        ours = calls_in(our_text(cell, platform))
        theirs = [] if needs_none(cell) else calls_of_oracle(cell, platform)
        if theirs is not None and ours != theirs:
            wrong.append((cell.name, ours, theirs))
    assert not wrong, wrong[0]


@pytest.mark.fuzz
@PLATFORM
def test_what_is_made_of_routines_calls_none_that_the_oracle_does_not_call(platform):
    wrong = []
    for cell in drawn(cells_of(MADE), 6):
        ours, theirs = calls_in(our_text(cell, platform)), calls_of_oracle(cell, platform)
        if theirs is None:
            continue
        if not set(ours) <= set(theirs) or bool(ours) != bool(theirs):
            wrong.append((cell.name, ours, theirs))
    assert not wrong, wrong[0]


@pytest.mark.fuzz
@PLATFORM
def test_what_the_oracle_has_not_lowers_all_the_same(platform):
    rows = [*ALONE, *(CUDA_ALONE if platform == "cuda" else [])]
    for cell in drawn(cells_of(rows), 6):
        assert sum(1 for _ in operations(our_text(cell, platform))) > 0, cell.name


def test_the_size_of_the_net_of_programs_for_gpus():
    tables = {"the same calls": ROWS, "made of them": MADE, "ours alone": ALONE}
    sizes = {name: len(cells_of(rows)) for name, rows in tables.items()}
    functions = {row[0] for rows in tables.values() for row in rows}
    print(f"\n{len(functions)} functions, cells on each of {len(PLATFORMS)} platforms: {sizes}")
    assert sum(sizes.values()) > 2000 and len(functions) > 55


def test_the_net_has_every_function_of_matrices():
    functions = {row[0].rpartition(".")[2] for rows in (ROWS, MADE, ALONE) for row in rows}
    made_of_shapes = {
        "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
        "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
        "leslie", "pascal", "toeplitz", "cross", "diagonal", "matmul", "matrix_transpose", "outer",
        "tensordot", "trace", "vecdot", "vector_norm", "lu_pivots_to_permutation",
    }  # fmt: skip
    listed = [name for module in (xnp.linalg, xstack.scipy.linalg, LINALG)
              for name in module.__all__
              if name[0].islower() and not name.endswith("_p")]  # fmt: skip
    assert set(listed) - functions - made_of_shapes == set()


# ------------------------------------------------------------------------------- what it computes


@pytest.mark.fuzz
def test_programs_for_cuda_compute_what_programs_for_the_cpu_do():
    rows = [*ROWS, *MADE, *ALONE, *CUDA_ALONE]
    cells = [c for c in cells_of(rows) if max(map(max, c.shapes)) < 1000]
    wrong = []
    with xstack.enable_x64(True), retraces("allow"):
        for cell in drawn(cells, 3):
            fun, operands = function_of(xstack, cell), operands_of(cell)
            found, expected = gpu_routines.run(fun, operands), on_cpu(cell, fun, operands)
            # the same LAPACK in both, but not in one order of steps: signs and phases are its own
            rtol = 3e-3 if cell.dtype in ("float32", "complex64") else 1e-9
            for x, y in zip(xstack.tree.leaves(found), xstack.tree.leaves(expected), strict=True):
                same = np.allclose(np.abs(x), np.abs(y), rtol, rtol, equal_nan=True)
                if x.aval != y.aval or not same:
                    wrong.append((cell.name, x, y))
            wrong += [
                (cell.name, error) for error in residuals(cell, operands, found) if error > rtol
            ]
    assert not wrong, wrong[0]


def on_cpu(cell, fun, operands):
    """Return what a program for the CPU computes: LAPACK's algorithm stands for the others."""
    kept = tuple([(k, v) for k, v in cell.keywords if k not in ("algorithm", "implementation")])
    return xstack.jit(function_of(xstack, cell._replace(keywords=kept)))(*operands)


def residuals(cell, operands, found):
    """Yield how far a decomposition is from the matrix: phases of its factors fit together."""
    a, keywords = np.asarray(operands[0]), dict(cell.keywords)
    if not a.size or (keywords.get("full_matrices") is True and a.shape[-1] != a.shape[-2]):
        return
    match cell.path:
        case "lax.linalg.svd" if keywords.get("compute_uv", True) and "full_matrices" in keywords:
            u, s, vh = map(np.asarray, found)
            yield np.abs((u * s[..., None, :]) @ vh - a).max() / np.abs(a).max()
        case "lax.linalg.eigh":
            v, w = map(np.asarray, found)
            yield (
                np.abs((v * w[..., None, :]) @ v.conj().swapaxes(-1, -2) - a).max()
                / np.abs(a).max()
            )
        case "lax.linalg.eig" if len(found) == 3:
            w, u, v = map(np.asarray, found)
            yield np.abs(a @ v - v * w[..., None, :]).max() / np.abs(a).max()
            uh = u.conj().swapaxes(-1, -2)
            yield np.abs(uh @ a - uh * w[..., None]).max() / np.abs(a).max()
        case "lax.linalg.qr":
            q, r, *order = map(np.asarray, found)
            taken = np.take_along_axis(a, order[0][..., None, :], -1) if order else a
            yield np.abs(q @ r - taken).max() / np.abs(a).max()
        case "lax.linalg.lu":
            both, _, order = map(np.asarray, found)
            k = min(both.shape[-2:])
            lower = np.tril(both[..., :k], -1) + np.eye(both.shape[-2], k, dtype=both.dtype)
            taken = np.take_along_axis(a, order[..., None], -2)
            yield np.abs(lower @ np.triu(both[..., :k, :]) - taken).max() / np.abs(a).max()


TURNING = np.array([[0.0, -2.0, 0.3], [1.0, 0.5, 0.0], [0.2, 0.1, 3.0]], np.float64)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_packed_eigenvectors_of_cusolver_are_unpacked(dtype):
    options = {"compute_left_eigenvectors": False}
    batch = np.stack([TURNING, TURNING.T, np.diag([1.0, 2.0, 3.0])]).astype(dtype)
    with xstack.enable_x64(True):
        w, v = gpu_routines.run(
            lambda a: LINALG.eig(a, implementation=LINALG.EigImplementation.CUSOLVER, **options),
            [batch],
        )  # fmt: skip
    assert np.iscomplexobj(np.asarray(w)) and np.abs(np.asarray(w)[0].imag).max() > 0.5
    np.testing.assert_allclose(
        batch @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None], atol=1e-12
    )


def test_what_failed_or_is_not_finite_is_nan_as_on_the_cpu():
    bad = np.stack([A, -A, np.where(np.eye(3) > 0, np.nan, A), np.where(np.eye(3) > 0, np.inf, A)])
    for fun in (lambda a: LINALG.cholesky(a, symmetrize_input=False), LINALG.eigh, LINALG.svd,
                LINALG.tridiagonal, LINALG.schur, LINALG.hessenberg):  # fmt: skip
        found, expected = gpu_routines.run(fun, [bad]), xstack.jit(fun)(bad)
        for x, y in zip(xstack.tree.leaves(found), xstack.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(np.isnan(x), np.isnan(y))


TRANSFORMED = {
    "derivative of solve": lambda a: xstack.grad(lambda a: xnp.linalg.solve(a, a[0]).sum())(a),
    "derivative of cholesky": lambda a: xstack.grad(lambda a: xnp.linalg.cholesky(a).sum())(a),
    "derivative of qr": lambda a: xstack.grad(lambda a: abs(xnp.linalg.qr(a)[1]).sum())(a),
    "derivative of svd": lambda a: xstack.grad(lambda a: abs(xnp.linalg.svd(a)[0]).sum())(a),
    "derivative of eigh": lambda a: xstack.grad(lambda a: xnp.linalg.eigh(a)[0][0])(a),
    "derivative of eigvals": lambda a: xstack.grad(lambda a: xnp.linalg.eigvals(a).real.sum())(a),
    "derivative of det": xstack.grad(xnp.linalg.det),
    "derivative of lu": lambda a: xstack.grad(lambda a: LINALG.lu(a)[0].sum())(a),
    "derivative of tridiagonal_solve": lambda a: xstack.grad(
        lambda d: LINALG.tridiagonal_solve(a[0], d, a[1], a).sum())(4 + a[2]),
    "derivative of sqrtm": lambda a: xstack.jvp(xstack.scipy.linalg.sqrtm, (a,), (a,))[1].real,
    "second derivative": lambda a: xstack.hessian(lambda t: xnp.linalg.slogdet(a + t * a)[1])(1.0),
    "vmap": lambda a: xstack.vmap(xnp.linalg.inv)(xnp.stack([a, 2 * a])),
    "vmap of schur": lambda a: xstack.vmap(LINALG.schur)(xnp.stack([a, 2 * a]))[0],
    "scan": lambda a: lax.scan(lambda x, _: (xnp.linalg.solve(x, a), x), a, length=3)[1],
    "scan of schur": lambda a: lax.scan(lambda x, _: (LINALG.schur(x)[0], x), a, length=2)[1],
    "cond": lambda a: lax.cond(a[0, 0] > 0, xnp.linalg.inv, xnp.linalg.cholesky, a),
    "cond of schur": lambda a: lax.cond(a[0, 0] > 0, lambda a: LINALG.schur(a)[0], abs, a),
    "while": lambda a: lax.fori_loop(0, 3, lambda i, x: xnp.linalg.qr(x)[1] @ x, a),
}  # fmt: skip


@pytest.mark.sampled(every=18)
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_programs_for_cuda_compute_what_those_for_the_cpu_do(name):
    fun = TRANSFORMED[name]
    found, expected = gpu_routines.run(fun, [A]), xstack.jit(fun)(A)
    np.testing.assert_allclose(
        found, expected, rtol=2e-3, atol=2e-4
    )  # float32, other order of steps


# -------------------------------------------------------------------------- what libraries have not


def test_what_the_host_computes_is_said_once_for_each_function(caplog):
    host_kernels._say.cache_clear()
    with caplog.at_level(logging.WARNING, "xjit"):
        for size in (2, 3):
            lowered(lambda a: LINALG.schur(a), [np.eye(size, dtype=np.float32)], "cuda")
        lowered(lambda a: LINALG.hessenberg(a), [A], "cuda")
    said = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert said == ["schur", "hessenberg"]


def test_algorithms_that_a_platform_lacks_are_refused_where_a_program_is_written_for_it():
    jacobi, cusolver = LINALG.SvdAlgorithm.JACOBI, LINALG.EigImplementation.CUSOLVER
    divided = LINALG.SvdAlgorithm.DIVIDE_AND_CONQUER
    assert "gesvdj" in lowered(lambda a: LINALG.svd(a, algorithm=jacobi), [A], "cuda").as_text()
    assert "gesdd" in lowered(lambda a: LINALG.svd(a, algorithm=divided), [A], "rocm").as_text()
    for fun, platform, name in [
        (lambda a: LINALG.svd(a, algorithm=jacobi), "cpu", "svd"),
        (lambda a: LINALG.svd(a, algorithm=divided), "cuda", "svd"),
        (lambda a: LINALG.eig(a, implementation=cusolver, compute_left_eigenvectors=False), "rocm",
         "eig"),
        (lambda a: LINALG.eig(a, implementation=cusolver), "cuda", "eig"),
        (lambda a: LINALG.eigh(a, implementation=LINALG.EighImplementation.QDWH), "cuda", "eigh"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"{name}: .* is not available here"):
            lowered(fun, [A], platform)


def test_algorithms_that_the_host_lacks_are_left_to_the_compiler_outside_of_programs(monkeypatch):
    jacobi, qr = LINALG.SvdAlgorithm.JACOBI, LINALG.EighImplementation.JACOBI
    cusolver = LINALG.EigImplementation.CUSOLVER
    calls = {
        "svd": lambda: LINALG.svd(A, algorithm=jacobi), "eigh": lambda: LINALG.eigh(
            A, implementation=qr),
        "eig": lambda: LINALG.eig(A, implementation=cusolver, compute_left_eigenvectors=False),
    }  # fmt: skip
    for name, call in calls.items():  # a CPU has none of them
        with pytest.raises(ValueError, match=f"{name}: .* is not available here"):
            call()
    played = []

    def on_gpu(self, primitive, operands, params, avals_out):
        played.append(primitive.name)
        return tuple(
            gpu_routines.run(
                lambda x: primitive.bind(x, **params), [operands[0].to_host()])
        )  # fmt: skip

    monkeypatch.setattr(type(EAGER.backend), "evaluate", on_gpu)
    found = [call() for call in calls.values()]
    assert played == list(calls)
    np.testing.assert_allclose(found[0][1], np.linalg.svd(A)[1], rtol=1e-5)  # float32
    np.testing.assert_allclose(found[1][1], np.linalg.eigh(A)[0], rtol=1e-5)


def test_a_platform_without_a_rule_is_named_with_those_that_have_one():
    with pytest.raises(NotImplementedError, match="qr: is not available in programs for tpu"):
        lowered(lambda a: LINALG.qr(a), [A], "tpu")


# ------------------------------------------------------------------------------------------- export


@pytest.mark.fuzz
def test_linear_algebra_is_exported_for_a_gpu_from_a_machine_without_one():
    cells = [c for c in cells_of([*ROWS, *MADE]) if c.dtype == "float32"]
    cells = [c for c in cells if not {"algorithm", "implementation"} & dict(c.keywords).keys()]
    checks = [xstack.export.DisabledSafetyCheck.custom_call("ALL")]
    for cell in drawn(cells, 3):
        fun = function_of(xstack, cell)
        made = xstack.export.export(
            xstack.jit(lambda *xs, fun=fun: xstack.tree.leaves(fun(*xs))),
            platforms=("cpu", "cuda"), disabled_checks=checks,
        )(*operands_of(cell))  # fmt: skip
        back = xstack.export.deserialize(made.serialize())
        stored, lowered_here = [
            [c.target for c in calls_in(text)]
            for text in (back.mlir_module("cuda"), our_text(cell, "cuda"))
        ]
        # what is stored is without dead code: the order of rows where nobody asks for it
        assert set(stored) <= set(lowered_here) and len(stored) <= len(lowered_here), cell.name
        assert bool(stored) == bool(lowered_here), cell.name
        assert not any("lapack" in target for target in stored), cell.name


def test_what_the_host_computes_is_exported_by_its_name_and_runs_where_it_is_read():
    def fun(a):
        t, z = LINALG.schur(a)
        return z @ t @ z.T, LINALG.hessenberg(2 * a)[0]

    made = xstack.export.export(xstack.jit(fun), platforms=("cpu", "cuda"))(TURNING)
    back = xstack.export.deserialize(made.serialize())
    assert [c.target for c in calls_in(back.mlir_module("cuda"))] == ["xstack_host_rule"] * 2
    with xstack.enable_x64(True):
        found = gpu_routines.run(back.call, [TURNING.astype(np.float32)])
        np.testing.assert_allclose(found[0], TURNING, atol=1e-5)
        np.testing.assert_allclose(found[1], LINALG.hessenberg(2 * TURNING)[0], atol=1e-5)


def test_python_functions_of_users_are_not_exported():
    def fun(x):
        return xstack.pure_callback(np.sin, x, x)

    with pytest.raises(ValueError, match="calls Python functions"):
        xstack.export.export(xstack.jit(fun), platforms=("cuda",))(np.float32(1))


def test_platform_dependent_chooses_the_function_of_the_gpu():
    def fun(x):
        return lax.platform_dependent(x, cuda=lambda x: x + 1, rocm=lambda x: x + 2,
                                      default=lambda x: x + 3)  # fmt: skip

    for platform, number in [("cuda", 1.0), ("rocm", 2.0), ("cpu", 3.0)]:
        text = lowered(fun, [np.float32(0)], platform).as_text()
        assert f"dense<{number:e}>" in text or f"dense<{number}" in text, text


# ------------------------------------------------------------------ operands that lie alike

EXTREMES = [
    (name, sample) for name in ("argmax", "argmin") for sample in samples.TABLE[name]
    if sample.operands[0].size
]  # fmt: skip
_PACKED = re.compile(r"tensor<[\dx]*(u?i[24]|f4\w+)>")


@pytest.mark.sampled(every=6, per="name")
@pytest.mark.parametrize(("name", "sample"), EXTREMES)
def test_operands_that_are_reduced_together_share_no_bytes(name, sample):
    # XLA for GPUs refuses a reduction of two operands whose layouts differ, sizes in bits included.
    primitive = get_primitive(name)

    def find(x):
        return primitive.bind(x, **sample.params)[0]

    with retraces("allow"), config.enable_x64(True):
        operands = [xnp.asarray(x) for x in sample.operands]
        text = lowered(find, operands, "cuda").as_text()
        found, expected = gpu_routines.run(find, operands), find(operands[0])
    types = [line.partition(" : ")[2] for line in text.splitlines() if "dimensions = array" in line]
    assert types and not any(_PACKED.search(line) for line in types)
    np.testing.assert_array_equal(found, expected)
