"""What must hold for every random program of public functions.

    check_refusals      what evaluation refuses, tracing refuses, with an error that users expect
    check_compiled      jit == evaluation: shapes, dtypes, weak types; values within rounding
    check_batched       vmap == the loop over the examples
    check_derivatives   forward == reverse, element by element; gradients have their operands' types
    check_wrapped       the calls inside jit, checkpoint, loops, branches, custom rules, closures,
                        then all of it differentiated and compiled == the plain program

The first four look at one call at a time, with equal operands on both sides: so no rounding of one
call is an input of the next, and values, special ones too, are compared as tightly as the function
allows. The last looks at a program as a whole, where its results do not hang on the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import xnp
from tests.nets.public_program_wrappers import WRAPPERS
from tests.nets.public_programs import NEEDS_VALUES, Call, PublicProgram, Tried
from xad import grad, jacfwd, jacrev
from xbatch import vmap
from xjit import jit
from xprim import ConcreteArray, dtypes, shaped_array
from xprim.errors import MissingRuleError

REFUSALS = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)
# Values may be refused where they are known: an index out of range, an integer that does not fit.
_OF_VALUES = (IndexError, OverflowError, ZeroDivisionError)
# A few ulp of each format, times the length of the sums that the calls make of 8 elements or less.
_RELATIVE = {2: 4e-3, 4: 4e-6, 8: 1e-13}
_BFLOAT16 = 3e-2
# Only the types of their results are compared.
NOT_UNIQUE = {
    "xnp.linalg.svd", "lax.linalg.svd", "lax.linalg.eig", "lax.linalg.eigh",
    "xnp.linalg.eig", "xnp.linalg.eigh", "xnp.scipy.linalg.eigh", "xnp.scipy.linalg.svd",
}  # fmt: skip
ILL_CONDITIONED = {"xnp.poly"}
# What LAPACK gives for NaN and infinities depends on its build and on the layout: only the types.
FACTORISATIONS = {
    f"{space}.linalg.{name}"
    for space in ("xnp", "lax", "xnp.scipy")
    for name in "lu qr cholesky eigvals eigvalsh eigh eig svd svdvals pinv lstsq inv solve det "
    "slogdet matrix_rank cond geqrf triangular_solve tensorinv tensorsolve cho_factor lu_factor "
    "polar qr_multiply solve_triangular expm expm_frechet schur hessenberg tridiagonal sqrtm funm "
    "rsf2csf eigh_tridiagonal".split()
} | {"xnp.roots"}  # fmt: skip
# negative dimensions and sampling rates of 0, which are refused where they are seen
_LOOKS_AT_VALUES = {
    "xnp.unravel_index",
    *(f"xnp.scipy.signal.{name}" for name in ("csd", "istft", "stft", "welch")),
}


class Finding(AssertionError):  # noqa: N818 - a test that fails prints its name first
    """Something that must hold for a call or a program does not."""


def _show(x: Any) -> str:
    return f"{x.aval.str_short()} {np.asarray(x).tolist()}"


def _say(tried: Tried, what: str) -> Finding:
    operands = "\n".join([f"    {_show(x)}" for x in tried.operands])
    return Finding(f"{tried.call}: {what}\n  operands\n{operands}")


# ------------------------------------------------------------------------------------ refusals


def check_refusals(tried: Tried) -> None:
    """Check that evaluation and tracing refuse the same calls, and how."""
    for error in (tried.error, tried.traced):
        if error is not None and not isinstance(error, REFUSALS):
            raise _say(tried, f"an error of a kind that users do not expect: {error!r}") from error
    if isinstance(tried.traced, NEEDS_VALUES) or "known while tracing" in str(tried.traced):
        return
    if isinstance(tried.error, _OF_VALUES) or tried.call.path in _LOOKS_AT_VALUES:
        return
    if (tried.error is None) != (tried.traced is None):
        who = "evaluation" if tried.traced is None else "tracing"
        raise _say(tried, f"only {who} refuses: {tried.error or tried.traced}")


# -------------------------------------------------------------------------------------- values


def _tolerance(dtype: np.dtype[Any]) -> float:
    if not dtypes.is_inexact(dtype):
        return 0.0
    if dtype == dtypes.bfloat16:
        return _BFLOAT16
    return _RELATIVE[np.zeros(0, dtype).real.dtype.itemsize]


def differ(
    found: Any, wanted: Any, slack: float = 1.0, scale: float = 0.0, *, overflows: bool = False
) -> str:
    """Return in what two arrays differ: type, the places of NaN and infinities, or a value.

    Args:
      found: the array that is tried.
      wanted: the array that it shall be equal to.
      slack: how many times the usual tolerance is allowed.
      scale: the magnitude of what the elements are differences of, where they are smaller.
      overflows: whether sums and products overflow on the way: then infinity and NaN count as one,
        for which of them comes is a matter of their order.
    """
    if found.aval is not wanted.aval:
        return f"the type is {found.aval} and not {wanted.aval}"
    f, w = np.asarray(found), np.asarray(wanted)
    w_dtype = w.dtype
    relative = slack * _tolerance(w.dtype)
    if not relative:
        return "" if np.array_equal(f, w) else f"{f.tolist()} and not {w.tolist()}"
    wide = np.complex128 if w.dtype.kind == "c" else np.float64
    f, w = f.astype(wide), w.astype(wide)
    finite = np.isfinite(w)
    scale = np.abs(w[finite]).max(initial=scale)
    with np.errstate(all="ignore"):
        # the compiler takes a subnormal result for zero
        near = np.abs(f - w) <= relative * (scale + np.abs(w)) + float(dtypes.finfo(w_dtype).tiny)
    same = (f == w) | (np.isnan(f) & np.isnan(w)) | (finite & near)
    if overflows or wide is np.complex128:
        # which parts of a product with an infinity are NaN is up to the multiplication
        same |= ~finite & ~np.isfinite(f)
        # what overflows may be finite where a product and a sum are rounded once
        large = np.abs(f) > float(dtypes.finfo(w_dtype).max) / 64
        same |= np.isinf(w) & large & (np.sign(f) == np.sign(w))
    return "" if same.all() else f"{f.tolist()} and not {w.tolist()}"


def _compare(tried: Tried, how: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    if len(found) != len(wanted):
        raise _say(tried, f"{how}: {len(found)} results and not {len(wanted)}")
    scale = _scale(tried)
    for k, (f, w) in enumerate(zip(found, wanted, strict=True)):
        if f.aval is w.aval and not _has_defined_values(tried):
            continue
        slack = 100.0 if tried.call.path in FACTORISATIONS else 1.0
        difference = differ(f, w, slack, scale, overflows=_overflows(tried, w.dtype))
        if difference and (f.aval is not w.aval or _is_stable_value(tried, k, w)):
            raise _say(tried, f"{how}: {difference}")


def _has_defined_values(tried: Tried) -> bool:
    path = tried.call.path
    if path in FACTORISATIONS and not all(_is_finite(x) for x in tried.operands):
        return False
    if path == "xnp.geomspace" and any((np.asarray(x) == 0).any() for x in tried.operands):
        return False  # no quotients are equal through zero: NumPy refuses it
    return path not in NOT_UNIQUE and path not in ILL_CONDITIONED


def _overflows(tried: Tried, dtype: np.dtype[Any]) -> bool:
    """Say whether the square of a finite number among the operands is beyond a floating dtype."""
    if not dtypes.is_inexact(dtype):
        return False
    largest = float(dtypes.finfo(dtype).max) ** 0.5
    return any(_magnitude(x) > largest for x in tried.operands)


def _is_finite(x: Any) -> bool:
    return bool(np.isfinite(np.asarray(x).astype(np.complex128)).all())


def _is_stable_value(tried: Tried, k: int, wanted: Any) -> bool:
    """Say whether a result stays where it is when the operands move by a few ulp."""
    operands, is_matrix = tried.operands, tried.call.path in FACTORISATIONS
    if is_matrix:  # of integers too, which are made floats
        operands = [_of_floats(x) for x in operands]
        wanted = tried.call(*operands)[k]
    moves = _moves(operands, of_largest=is_matrix)
    return not any(differ(tried.call(*moved)[k], wanted, slack=10) for moved in moves)


def _of_floats(x: Any) -> Any:
    return x if dtypes.is_inexact(x.dtype) or x.ndim < 2 else x.astype(np.float32)


def _moves(operands: Sequence[Any], of_largest: bool = False) -> Iterator[list[Any]]:
    """Yield the operands a few times, the real ones moved by a few ulp each.

    Args:
      operands: arrays.
      of_largest: whether the ulp are those of an array's largest element, which is as near as
        factorisations come; otherwise each element's own.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        yield [_moved(x, rng, of_largest) if dtypes.is_inexact(x.dtype) else x for x in operands]


def _scale(tried: Tried) -> float:
    """Return the magnitude of the operands, at most 1: results of zero are differences of it."""
    largest = max([_magnitude(x) for x in tried.operands], default=0.0)
    return largest if tried.call.path in _SLOPES_THAT_CANCEL else min(1.0, largest)


def _magnitude(x: Any) -> float:
    """Return the greatest absolute value of the finite elements."""
    found = np.abs(np.asarray(x).astype(np.complex128))
    return float(found[np.isfinite(found)].max(initial=0.0))


def check_compiled(tried: Tried) -> None:
    """Check that the call gives the same compiled, which may take subnormal numbers for zero.

    The halves and quarters of the least normal number are such, which a formula may come by.
    """
    assert tried.results is not None
    if any(_has_subnormals(x, below=8) or _has_complex_infinities(x) for x in tried.operands):
        return
    found = jit(lambda *xs: tried.call(*xs))(*tried.operands)
    if any(dtypes.is_bool(x.dtype) for x in tried.operands):
        found = [_with_nan_of(w, f) for f, w in zip(found, tried.results, strict=True)]
    _compare(tried, "compiled", found, tried.results)


def _with_nan_of(wanted: Any, found: Any) -> Any:
    """Return an array with NaN where it has zero instead: XLA takes False times NaN for zero."""
    host = np.asarray(found)
    if not dtypes.is_inexact(found.dtype) or host.shape != wanted.shape:
        return found
    is_nan = np.isnan(np.asarray(wanted)) & (host == 0)
    return _with_elements(found, np.where(is_nan, np.nan, host)) if is_nan.any() else found


def _has_complex_infinities(x: Any) -> bool:
    """Say whether a number has no finite part: then C99 leaves much, and back ends differ."""
    host = np.asarray(x)
    return host.dtype.kind == "c" and bool(
        (~np.isfinite(host.real) & ~np.isfinite(host.imag)).any()
    )


def _has_subnormals(x: Any, below: float = 1) -> bool:
    if not dtypes.is_inexact(x.dtype):
        return False
    host = np.asarray(x)
    parts = [host.real, host.imag] if host.dtype.kind == "c" else [host]
    tiny = below * float(dtypes.finfo(x.dtype).tiny)
    return any(((p != 0) & (np.abs(p.astype(np.float64)) < tiny)).any() for p in parts)


def check_batched(tried: Tried) -> None:
    """Check that the call on a batch gives what it gives on each of its examples."""
    if not tried.operands:
        return
    others = [xnp.flip(x) if x.ndim else x for x in tried.operands]
    examples = [tried.operands, others]
    batch = [_stacked(x, y) for x, y in zip(tried.operands, others, strict=True)]
    found = vmap(lambda *xs: tried.call(*xs))(*batch)
    for k, example in enumerate(examples):
        wanted = tried.call(*example)
        _compare(tried, f"example {k} of a batch", [x[k] for x in found], wanted)


def _stacked(x: Any, y: Any) -> Any:
    return _with_elements(x, np.stack([np.asarray(x), np.asarray(y)]))


def _with_elements(x: Any, host: np.ndarray[Any, Any]) -> Any:
    """Return an array of the dtype and weak type of another."""
    with np.errstate(all="ignore"):
        host = np.asarray(host.astype(x.dtype))  # arithmetic of rank 0 gives scalars
    return ConcreteArray(host, shaped_array(host.shape, x.dtype, x.aval.weak_type))


# --------------------------------------------------------------------------------- derivatives


def check_derivatives(tried: Tried) -> None:
    """Check forward against reverse mode, and the types of what they give."""
    floats = [i for i, x in enumerate(tried.operands) if _is_real(x)]
    if not floats or not any(_is_real(y) for y in tried.results or ()):
        return

    def of_floats(*xs: Any) -> list[Any]:
        operands = list(tried.operands)
        for i, x in zip(floats, xs, strict=True):
            operands[i] = x
        return [y for y in tried.call(*operands) if _is_real(y)]

    xs, numbers = [tried.operands[i] for i in floats], tuple(range(len(floats)))
    if not _has_defined_values(tried) or _is_singular(tried):
        return
    if any(_has_subnormals(x) for x in xs):  # quotients by them overflow, in one mode or the other
        return
    try:
        forward = jacfwd(of_floats, numbers)(*xs)
        reverse = jacrev(of_floats, numbers)(*xs)
    except (MissingRuleError, ValueError) as error:
        if _has_no_derivative(error):
            return
        raise
    outputs = [y for y in tried.results if _is_real(y)]
    overflows = any(_overflows(tried, y.dtype) for y in outputs)
    for k, (y, of_y, others) in enumerate(zip(outputs, forward, reverse, strict=True)):
        for x, f, r in zip(xs, of_y, others, strict=True):
            if (f.dtype, r.dtype) != (y.dtype, x.dtype):
                raise _say(tried, f"slopes of {f.dtype} and {r.dtype} for {y.dtype} by {x.dtype}")
        matrix = _matrix(others, y.size)
        found = _matrix(of_y, y.size)
        if overflows:  # on the way, in one mode or the other
            found = np.where(np.isfinite(found) & np.isfinite(matrix), found, matrix)
        if tried.call.path.startswith("xnp.scipy."):
            found = _without_slopes_of_nan(y, found, matrix)
        least = _SLOPES_THAT_CANCEL.get(tried.call.path, 0.0)
        difference = _slopes_differ(found, matrix, [y, *xs], least)
        if difference and all(
            not _slopes_differ(_matrix(jacrev(of_floats, numbers)(*moved)[k], y.size),
                               matrix, [y, *xs], least, slack=10)
            for moved in _moves(xs)
        ):  # fmt: skip
            raise _say(tried, f"forward and reverse mode: {difference}")


# What is left of a line that goes through all points is 0, and so are its slopes: ones less ones.
_SLOPES_THAT_CANCEL = {"xnp.scipy.signal.detrend": 1.0, "xnp.polyfit": 0.0}


def _without_slopes_of_nan(y: Any, found: Any, matrix: Any) -> Any:
    """Return slopes without a difference between 0 and NaN where the value itself is NaN.

    Outside of a distribution's parameters, or of NaN, neither is more right: its formulas choose
    NaN by `where`, whose other branch has a slope of 0 one way and 0 times NaN the other.
    """
    nothing = np.isnan(np.asarray(y)).reshape(-1, 1)
    for one in (found, matrix):
        nothing = nothing & (np.isnan(one) | (one == 0))
    return np.where(nothing, matrix, found)


def _matrix(parts: Sequence[Any], rows: int) -> np.ndarray[Any, Any]:
    """Return the Jacobians with respect to several operands side by side."""
    return np.hstack([np.asarray(p).astype(np.float64).reshape(rows, p.size // max(rows, 1))
                      for p in parts])  # fmt: skip


def _slopes_differ(f: Any, r: Any, values: Sequence[Any], least: float, slack: float = 1.0) -> str:
    """Return in what the Jacobians of forward and reverse mode differ.

    Where one slope is infinite or NaN, a mode may have NaN along its row or column, which it finds
    in one pass or with factors of zero: only entries beside no other such entry are compared.
    """
    bad_r = ~np.isfinite(r)
    poisoned = _beside_another(~np.isfinite(f)) | _beside_another(bad_r)
    relative = 10 * slack * max(_tolerance(v.dtype) for v in values)
    y, *xs = [_magnitude(v) for v in values]
    # slopes that cancel leave rounding errors of what a slope usually is
    scale = np.abs(r[~bad_r]).max(initial=max(least, y / max(xs)) if any(xs) else least)
    with np.errstate(all="ignore"):
        near = np.abs(f - r) <= relative * (scale + np.abs(r))
    same = (f == r) | (np.isnan(f) & np.isnan(r)) | near | poisoned
    return "" if same.all() else f"{f.tolist()} and {r.tolist()}"


def _beside_another(bad: Any) -> Any:
    """Return which entries of a matrix have a marked one beside them, in their row or column."""
    return (bad.sum(0, keepdims=True) > bad) | (bad.sum(1, keepdims=True) > bad)


def _rounds(x: Any) -> bool:
    """Say whether an array has integers that single precision rounds, and their sums with them."""
    return bool(dtypes.is_integer(x.dtype)) and _magnitude(x) > 2**24


def _is_singular(tried: Tried) -> bool:
    """Say whether a matrix is factored that has no inverse, where factors have no slopes."""
    if tried.call.path not in FACTORISATIONS:
        return False
    if not all(_is_finite(x) for x in tried.operands):
        return True
    return any(lacks_rank(np.asarray(x)) for x in tried.operands if x.ndim > 1 and x.size)


def lacks_rank(matrices: np.ndarray) -> bool:
    """Say whether one of some matrices of any dtype is singular, to the precision of the dtype."""
    eps = dtypes.finfo(matrices.dtype).eps if dtypes.is_inexact(matrices.dtype) else 0.0
    wide = matrices.astype(np.complex128 if matrices.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        ranks = np.linalg.matrix_rank(wide, rtol=max(wide.shape[-2:]) * max(eps, 2.0**-52))
    return bool((ranks < min(wide.shape[-2:])).any())


def _has_no_derivative(error: Exception) -> bool:
    return isinstance(error, MissingRuleError) or "is not available" in str(error)


def _is_real(x: Any) -> bool:
    return bool(dtypes.is_inexact(x.dtype)) and x.dtype.kind != "c"


# ---------------------------------------------------------------------------- whole programs


def check_wrapped(program: PublicProgram, *, compiled: bool = True) -> None:
    """Check a program whose calls are inside of others, drawn by its seed, against the plain."""
    plain = _loss(program, lambda k, call: call)
    wrapped = _loss(program, lambda k, call: _wrapper(program, k)(call))
    floats = [x for x in program.arguments if _is_real(x)]
    if not floats or any(_has_subnormals(x) for x in program.arguments):
        return
    if {t.call.path for t in program.tried} & (NOT_UNIQUE | ILL_CONDITIONED):
        return
    if any(_is_singular(t) or any(map(_rounds, t.operands)) for t in program.tried):
        return
    ways: dict[str, Callable[..., Any]] = {"wrapped": grad(wrapped)}
    if compiled:
        ways["wrapped and compiled"] = jit(grad(wrapped))
    try:
        wanted = grad(plain)(floats)
    except (MissingRuleError, ValueError) as error:
        if _has_no_derivative(error):
            return
        raise
    for how, way in ways.items():
        try:
            found = way(floats)
        except ValueError as error:
            # a rule of one's own asks for derivatives by all operands, the plain one need not
            if _has_no_derivative(error):
                return
            raise
        _compare_gradients(program, how, found, wanted, lambda xs: grad(plain)(xs))


def wrapper_names(program: PublicProgram) -> list[str]:
    """Return the names of the wrappers around the calls of a program."""
    names = list(WRAPPERS)
    return [names[(program.seed + 7 * k) % len(names)] for k in range(len(program.tried))]


def _wrapper(program: PublicProgram, k: int) -> Callable[[Call], Callable[..., Any]]:
    return WRAPPERS[wrapper_names(program)[k]]


def _loss(program: PublicProgram, wrap: Callable[[int, Call], Any]) -> Callable[..., Any]:
    def loss(floats: Sequence[Any]) -> Any:
        given = iter(floats)
        arguments = [next(given) if _is_real(x) else x for x in program.arguments]
        values = program.run(arguments, wrap)
        parts = [xnp.sum(v.astype(np.float32)) for v in values if _is_real(v)]
        return sum(parts[1:], parts[0])

    return loss


def _compare_gradients(
    program: PublicProgram, how: str, found: Any, wanted: Any, again: Callable[[Any], Any]
) -> None:
    for i, (f, w) in enumerate(zip(found, wanted, strict=True)):
        if f.aval is not w.aval:
            raise Finding(f"{how}: gradient {i} is {f.aval.str_short()}, not {w.aval.str_short()}")
        # what passes through a narrower dtype has its rounding, which a last digit may turn over
        narrowest = min([f.dtype, *[y.dtype for y in _all(program) if _is_real(y)]],
                        key=lambda dtype: -float(dtypes.finfo(dtype).eps))  # fmt: skip
        slack = 100 if narrowest.itemsize > 2 else 4
        difference = differ(f.astype(narrowest), w.astype(narrowest), slack=slack)
        # a slope that is infinite is zero times infinity to those who know of the zero no more
        if not (np.isfinite(np.asarray(w)).all() and np.isfinite(np.asarray(f)).all()):
            continue
        if difference and _is_stable(program, again, i, w):
            raise Finding(f"{how}: gradient {i}: {difference}\n  calls\n{_calls(program)}")


def _all(program: PublicProgram) -> list[Any]:
    """Return all results on the way."""
    return [y for tried in program.tried for y in tried.results or ()]


def _calls(program: PublicProgram) -> str:
    pairs = zip(wrapper_names(program), program.tried, strict=True)
    return "\n".join([f"    {name}: {tried.call}" for name, tried in pairs])


def _is_stable(program: PublicProgram, gradient: Callable[[Any], Any], i: int, wanted: Any) -> bool:
    """Say whether the plain gradient stays where it is when its arguments move by a few ulp."""
    floats = [x for x in program.arguments if _is_real(x)]
    return not any(differ(gradient(moved)[i], wanted, slack=10) for moved in _moves(floats))


def _moved(x: Any, rng: np.random.Generator, of_largest: bool) -> Any:
    ulps = 8 * float(dtypes.finfo(x.dtype).eps) * rng.uniform(-1, 1, x.shape)
    host = np.asarray(x).astype(np.float64 if _is_real(x) else np.complex128)
    with np.errstate(all="ignore"):
        return _with_elements(x, host + ulps * (_magnitude(x) if of_largest else host))


def check_program(program: PublicProgram, *, compiled: bool = True) -> None:
    """Check everything that must hold; `compiled` says whether to ask the compiler too."""
    for tried in program.tried:
        check_refusals(tried)
        if tried.can_be_traced:
            check_batched(tried)
            check_derivatives(tried)
            if compiled:
                check_compiled(tried)
    check_wrapped(program, compiled=compiled)
