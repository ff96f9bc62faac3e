"""Checks of derivatives: of the rules of a primitive, and of whole functions.

`check_derivatives` takes one sample of a primitive (see `xprim.testing`) and checks, in float64,
its `jvp` rule against finite differences, its reverse mode against its forward mode, and the
derivative of the rule itself. `check_grads` does the same for a function of pytrees, to any order.
`check_rule` compares a function that has rules with the derivative that its function has
without the rule.

The finite difference is the central one of fourth order over points at h and 2h. Its error is
about h^4 |f^(5)| / 30 + eps |f| / h, least near h = eps^(1/5) = 7e-4, where it is about 1e-12
relative to the scale of f and its derivatives. Where these grow quickly, or a kink (a tie, another
pivot) is within 2h, smaller steps do better; a rule agrees at one of them, a wrong one at none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import xtree
from xad._jvp import jvp, jvp_flat
from xad._vjp import vjp
from xad.custom_rules import FunctionWithRules
from xad.tangents import instantiate, is_differentiable, tangent_aval
from xad.transpose import backward_pass
from xprim import (
    LINEAR,
    Array,
    Linear,
    LinearIn,
    MultiLinear,
    Primitive,
    Undefined,
    Zero,
    as_array,
    config,
    dtypes,
    from_numpy,
    get_primitive,
    optional_transforms,
    trace_to_jaxpr,
)
from xprim.errors import MissingRuleError, UndefinedRuleError, described, message
from xprim.testing import Sample
from xprim.transformed import name_of

__all__ = [
    "STEPS", "RTOL", "ATOL", "check_derivatives", "check_transpose", "check_grads", "check_jvp",
    "check_rule", "check_vjp", "numerical_jvp",
]  # fmt: skip

__dir__ = __all__.copy

STEPS = (1e-3, 1e-5, 1e-7)
RTOL = 1e-5
ATOL = 1e-6


def check_derivatives(primitive: Primitive | str, sample: Sample, *, seed: int = 0) -> None:
    """Check the derivative rules of a primitive at one sample.

    A sample that is not `smooth` is differentiated without comparison with finite differences. Real
    operands are converted to float64, complex ones to complex128; with operands that are not
    finite, and with primitives that refuse these dtypes, only shapes and dtypes are checked. Where
    the owner says that there is no derivative by all operands together (`MissingRuleError`, or a
    ValueError that speaks of the derivative), each operand is tried alone.

    Raises:
      AssertionError: naming the primitive, the sample and what differs.
    """
    primitive = get_primitive(primitive) if isinstance(primitive, str) else primitive
    if isinstance(primitive.rules["jvp"], Undefined):
        return
    with config.enable_x64(True):
        case = _Case(primitive, sample, seed)
        if not _check(case) and len(case.active) > 1:
            for i in case.active:
                _check(_Case(primitive, sample, seed, only=i))


def _check(case: _Case) -> bool:
    """Check a case as far as it has derivatives; return whether it has one at all."""
    if not case.active:
        return True
    try:
        case.check_forward()
    except (MissingRuleError, ValueError) as error:
        if not _is_declared_gap(error):
            raise
        return False
    case.check_reverse()
    try:
        case.check_second_order()
    except (MissingRuleError, ValueError) as error:
        if not _is_declared_gap(error):
            raise
    return True


def _is_declared_gap(error: Exception) -> bool:
    return isinstance(error, MissingRuleError) or "derivative" in str(error)


class _Case:
    """One sample in double precision, as a function of its active operands."""

    def __init__(
        self, primitive: Primitive, sample: Sample, seed: int, only: int | None = None
    ) -> None:
        self.primitive, self.rng = primitive, np.random.default_rng(seed)
        self.params = _widen_params(dict(sample.params))
        self.label = f"{primitive.name} {sample.label()} {self.params}"
        hosts = [_widen(np.asarray(x)) for x in sample.operands]
        self.operands: list[Array] = [from_numpy(h, canonical=False) for h in hosts]
        try:
            primitive.infer(tuple([x.aval for x in self.operands]), self.params)
        except (TypeError, ValueError):  # it refuses double precision, or its params name a dtype
            self.params = dict(sample.params)
            self.operands = list(sample.arrays())
        differentiable = [i for i, x in enumerate(self.operands) if is_differentiable(x.aval)]
        wanted = sample.unit_tangents if only is None else (only,)
        self.active = [i for i in differentiable if wanted is None or i in wanted]
        self.smooth = sample.smooth and self._comparable(differentiable)
        self.point = [self.operands[i] for i in self.active]
        self.dots = [self.direction(x) for x in self.point]

    def _comparable(self, differentiable: Sequence[int]) -> bool:
        """Return whether finite differences make sense: finite operands in double precision."""
        finite = all(np.isfinite(np.asarray(self.operands[i])).all() for i in differentiable)
        return finite and all(_precision(self.operands[i].dtype) == 64 for i in self.active)

    def direction(self, x: Array) -> Array:
        values = self.rng.standard_normal(x.shape)
        if dtypes.is_complex(x.dtype):
            values = values + 1j * self.rng.standard_normal(x.shape)
        return from_numpy(np.asarray(values).astype(x.dtype), canonical=False)

    def fun(self, *active: Array) -> list[Array]:
        """Apply the primitive; results of other than inexact dtype are left out."""
        operands = list(self.operands)
        for i, x in zip(self.active, active, strict=True):
            operands[i] = x
        outs = self.primitive.bind(*operands, **self.params)
        return [out for out in outs if is_differentiable(out.aval)]

    def forward(self, *active: Array) -> list[Array]:
        """Push the direction forward."""
        _, dots = jvp_flat(self.fun, active, self.dots)
        return [instantiate(d) for d in dots]

    def check_forward(self) -> None:
        """Compare the jvp rule with finite differences, its primal results with the primitive."""
        outs, dots = jvp_flat(self.fun, self.point, self.dots)
        for out, dot, plain in zip(outs, dots, self.fun(*self.point), strict=True):
            self._compare_results(out, plain)
            expected = tangent_aval(out)
            found = dot.aval
            assert found.shape == expected.shape and found.dtype == expected.dtype, (
                f"{self.label}: the tangent is {found.str_long()}, not {expected.str_long()}"
            )
        if self.smooth:
            self._compare(
                self.fun, self.forward(*self.point), "the jvp rule and finite differences"
            )

    def _compare_results(self, out: Any, plain: Any) -> None:
        # Not exactly equal: a rule may ask for more (the vectors of a decomposition) and so take
        # another path to the same numbers.
        found, expected = _in_double(out), _in_double(plain)
        rtol = 1e3 * float(dtypes.finfo(out.dtype).eps)
        with np.errstate(all="ignore"):  # of the greatest numbers |z| is infinite
            size = float(np.nan_to_num(np.abs(expected[np.isfinite(expected)])).max(initial=0.0))
        where = f"{self.label}: the result of the jvp rule"
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size, err_msg=where)

    def check_reverse(self) -> None:
        """Compare reverse with forward mode: <ct, J v> = <J^T ct, v>."""
        if not self._transposable():
            return
        outs, pull = vjp(self.fun, *self.point)
        cts = [self.direction(out) for out in outs]
        bars = pull(cts)
        for x, bar in zip(self.point, bars, strict=True):
            assert bar.shape == x.shape and bar.dtype == x.dtype, (
                f"{self.label}: the cotangent is {bar.aval.str_long()}, not {x.aval.str_long()}"
            )
        if self.smooth:
            left = _inner(cts, self.forward(*self.point))
            right = _inner(bars, self.dots)
            scale = _norm(cts) * _norm(self.forward(*self.point)) + _norm(bars) * _norm(self.dots)
            assert abs(left - right) <= 1e-9 * max(scale, 1.0), (
                f"{self.label}: forward and reverse mode differ: {left} and {right}"
            )

    def _transposable(self) -> bool:
        rule = self.primitive.rules["jvp"]
        symbolic = rule is LINEAR or isinstance(rule, LinearIn | MultiLinear)
        return not (symbolic and isinstance(self.primitive.rules["transpose"], Undefined))

    def check_second_order(self) -> None:
        """Compare the derivative of the jvp rule with finite differences of it."""
        outs = self.fun(*self.point)
        if not self.smooth or not outs:
            return
        found = [instantiate(d) for d in jvp_flat(self.forward, self.point, self.dots)[1]]
        self._compare(self.forward, found, "the derivative of the jvp rule and differences", 10)

    def _compare(
        self, fun: Callable[..., Any], found: Sequence[Any], what: str, slack: float = 1.0
    ) -> None:
        """Compare derivatives with differences of `fun`, with the next step where one fails."""
        numeric: list[list[Any]] = []
        for step in STEPS:
            numeric.append(numerical_jvp(fun, self.point, self.dots, step))
            if _agree(found, numeric[-1], slack):
                return
        for a, coarse, fine in zip(found, *numeric[-2:], strict=True):
            # At a tie the derivative jumps, and its differences grow as 1/h: nothing to compare.
            jumps = np.abs(fine) > 50 * np.abs(coarse)
            np.testing.assert_allclose(
                np.where(jumps, 0, a), np.where(jumps, 0, coarse), rtol=slack * RTOL,
                atol=slack * ATOL, err_msg=f"{self.label}: {what}",
            )  # fmt: skip


def _agree(found: Sequence[Any], expected: Sequence[Any], slack: float) -> bool:
    return all(
        np.allclose(
            a, b, rtol=slack * RTOL, atol=slack * ATOL * float(np.abs(b).max(initial=1.0)),
        )
        for a, b in zip(found, expected, strict=True)
    )  # fmt: skip


def check_transpose(primitive: Primitive | str, sample: Sample, *, seed: int = 0) -> None:
    """Check the transpose rule of a primitive that is linear: <y, A x> = <A^T y, x>.

    Raises:
      AssertionError: naming the primitive and the sample.
    """
    primitive = get_primitive(primitive) if isinstance(primitive, str) else primitive
    rule = primitive.rules["jvp"]
    if isinstance(primitive.rules["transpose"], Undefined):
        return
    with config.enable_x64(True):
        case = _Case(primitive, sample, seed)
        for group in _linear_groups(rule, case):
            _check_transpose_in(case, group)


def _linear_groups(rule: Any, case: _Case) -> list[tuple[int, ...]]:
    """Return the groups of operands that the primitive is linear in together."""
    if rule is LINEAR:
        return [tuple(range(len(case.operands)))] if case.active else []
    if isinstance(rule, LinearIn):
        return [rule.argnums] if set(rule.argnums) <= set(case.active) else []
    if isinstance(rule, MultiLinear):
        return [(i,) for i in rule.argnums if i in case.active]
    return []


def _check_transpose_in(case: _Case, group: tuple[int, ...]) -> None:
    xs = [case.direction(case.operands[i]) for i in group]

    def linear(*args: Array) -> Sequence[Array]:
        operands = list(case.operands)
        for i, x in zip(group, args, strict=True):
            operands[i] = x
        return case.primitive.bind(*operands, **case.params)

    ys = linear(*xs)
    cts = [case.direction(y) for y in ys]
    jaxpr, consts = trace_to_jaxpr(linear, [x.aval for x in xs])
    bars = backward_pass(jaxpr, consts, [Linear(x.aval) for x in xs], cts)
    left = _inner(cts, ys)
    right = sum(_inner([b], [x]) for b, x in zip(bars, xs, strict=True) if type(b) is not Zero)
    scale = max(_norm(cts) * _norm(ys), 1.0)
    assert abs(left - right) <= 1e-9 * scale or not np.isfinite(left), (
        f"{case.label}: the transpose in operands {group} is wrong: {left} and {right}"
    )


Tolerance = float | Mapping[Any, float] | None
"""A tolerance, or several by dtype; None for the default of the dtype."""


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of a function at a point against finite differences.

    Args:
      f: a function of pytrees of floating or complex arrays, smooth at `args`.
      args: the arguments.
      order: up to which order; each order checks the derivative of the one before.
      modes: `"fwd"` for jvp, `"rev"` for vjp.
      atol: absolute tolerance; by default by the dtype: 1e-5 in float64, 2e-2 in float32, 0.1 in
        half precision, whose differences have few digits.
      rtol: relative tolerance, likewise. Both may be given by dtype, as `{np.float32: 1e-3}`.
      eps: the step of the finite differences; by default by the dtype.

    Raises:
      AssertionError: when a derivative differs.

    Example:
      >>> check_grads(lambda x: x * x * x, (2.0,), order=2)
    """
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {min(unknown)!r}.")
    for mode in modes:
        check = check_jvp if mode == "fwd" else check_vjp
        _check_to_order(f, tuple(args), order, mode, lambda g, a, c=check: c(g, a, atol, rtol, eps))


def _check_to_order(
    f: Callable[..., Any], args: tuple[Any, ...], order: int, mode: str, check: Callable[..., None]
) -> None:
    check(f, args)
    if order <= 1:
        return
    rng = np.random.default_rng(order)
    if mode == "fwd":
        dots = _like(args, rng)

        def derivative(*xs: Any) -> Any:
            return jvp(f, xs, dots)[1]
    else:
        cts = _like(f(*args), rng)

        def derivative(*xs: Any) -> Any:
            return vjp(f, *xs)[1](cts)

    _check_to_order(derivative, args, order - 1, mode, check)


def check_rule(
    f: Callable[..., Any], *args: Any, order: int = 2, rtol: float | None = None,
    atol: float | None = None,
) -> None:  # fmt: skip
    """Check the rules of a function of the user's against its derivatives without them.

    The function itself is differentiated, as if it had no rule, and the two are compared in
    forward and in reverse mode, in all of their combinations up to an order, and in batches. For
    a rule that is not meant to be the derivative (a clipped gradient) this is not a check.

    Args:
      f: a `custom_jvp`, `custom_vjp` or `custom_derivative` whose function can be differentiated
        without it.
      *args: where; arguments of integers, and those of `nondiff_argnums`, are constants.
      order: up to which order.
      rtol: relative tolerance, by default by the dtype: 1e-8 in float64, 1e-4 in float32, 2e-2 in
        half precision, and ten times that for each further order.
      atol: absolute tolerance, likewise.

    Raises:
      AssertionError: a derivative differs; it names the modes, the innermost first.
      TypeError: `f` has no rule of this kind.
      ValueError: what is compared is NaN with the rule and without it, so that nothing is checked.

    Example:
      >>> from xad import custom_vjp
      >>> square = custom_vjp(lambda x: x * x)
      >>> square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
      >>> check_rule(square, 2.0)
    """
    if not isinstance(f, FunctionWithRules):
        raise TypeError(message(
            "check_rule", "the function has no rule.", got=described(f),
            expected="a custom_jvp, custom_vjp or custom_derivative",
        ))  # fmt: skip
    rule = _RuleCheck(f, args, rtol, atol)
    rule.compare("", rule.function(f), rule.function(f.fun), 0)
    rule.check_batch("", rule.function(f))
    rule.check(rule.function(f), rule.function(f.fun), "", order)


class _RuleCheck:
    """A function with a rule at a point, as one of the leaves that are differentiated.

    Attributes:
      point: these leaves.
    """

    def __init__(
        self,
        f: FunctionWithRules[..., Any],
        args: tuple[Any, ...],
        rtol: float | None,
        atol: float | None,
    ) -> None:
        self.name = name_of(f.fun)
        self.tolerance = rtol, atol
        self._fixed = {i % len(args): args[i] for i in f.nondiff_argnums}
        self._args = args
        rest = [x for i, x in enumerate(args) if i not in self._fixed]
        self._leaves, self._tree = xtree.flatten(rest)
        self._leaves = list(map(as_array, self._leaves))
        self._active = [i for i, x in enumerate(self._leaves) if is_differentiable(x.aval)]
        self.point = [self._leaves[i] for i in self._active]

    def function(self, fun: Callable[..., Any]) -> Callable[..., list[Any]]:
        """Return a function of all arguments as one from leaves to leaves of floats."""

        def flat(*xs: Any) -> list[Any]:
            leaves = list(self._leaves)
            for i, x in zip(self._active, xs, strict=True):
                leaves[i] = x
            rest = iter(xtree.unflatten(self._tree, leaves))
            full = [self._fixed[i] if i in self._fixed else next(rest)
                    for i in range(len(self._args))]  # fmt: skip
            found = map(as_array, xtree.leaves(fun(*full)))
            return [y for y in found if is_differentiable(y.aval)]

        return flat

    def check(self, found: Any, expected: Any, before: str, order: int) -> None:
        """Compare the next derivatives of two functions in both modes, and those of these."""
        for mode in ("forward", "reverse") if order else ():
            what = f"{before} {mode}".strip()
            ours, theirs = [self._derivative(g, mode) for g in (found, expected)]
            try:
                self._compare(
                    f"the result that the {what} rule of {self.name} gives is another.",
                    self._primal(found, mode), expected(*self.point), order=0,
                )  # fmt: skip
                self.compare(what, ours, theirs, len(what.split()))
            except UndefinedRuleError:
                if mode == "reverse":
                    raise
                continue  # a bwd rule that has no transpose
            self.check_batch(what, ours)
            self.check(ours, theirs, what, order - 1)

    def _derivative(self, g: Callable[..., Any], mode: str) -> Callable[..., list[Any]]:
        rng = np.random.default_rng(0)
        if mode == "forward":
            dots = _like(tuple(self.point), rng)
            return lambda *xs: jvp(g, xs, dots)[1]
        cts = _like(g(*self.point), rng)
        return lambda *xs: list(vjp(g, *xs)[1](cts))

    def _primal(self, g: Callable[..., Any], mode: str) -> Any:
        if mode == "reverse":
            return vjp(g, *self.point)[0]
        return jvp(g, self.point, _like(tuple(self.point), np.random.default_rng(0)))[0]

    def compare(self, what: str, found: Any, expected: Any, order: int) -> None:
        """Compare what two functions give at the point."""
        fact = f"{_kind(what)} of {self.name} is not that of its function."
        self._compare(fact, found(*self.point), expected(*self.point), order)

    def _compare(self, fact: str, found: Any, expected: Any, order: int) -> None:
        for x, y in zip(found, expected, strict=True):
            default = {64: 1e-8, 32: 1e-4, 16: 2e-2}[_precision(x.dtype)] * 10.0 ** max(
                order - 1, 0
            )
            rtol, atol = [default if t is None else t for t in self.tolerance]
            got, wanted = np.asarray(x), np.asarray(y)
            if np.isnan(wanted).any() and np.array_equal(np.isnan(wanted), np.isnan(got)):
                raise ValueError(message(
                    "check_rule", f"nothing is checked: {self.name} or its derivative is NaN at "
                    "this point, with the rule and without.", got=f"{got}",
                    hint="another point",
                ))  # fmt: skip
            scale = atol * max(1.0, float(np.abs(wanted).max(initial=0.0)))
            if not np.allclose(got, wanted, rtol=rtol, atol=scale, equal_nan=True):
                raise AssertionError(message(
                    "check_rule", fact, got=f"{got}", expected=f"{wanted}"
                ))  # fmt: skip

    def check_batch(self, what: str, derivative: Callable[..., Any]) -> None:
        """Compare a batch of two points with each of them."""
        vmap = optional_transforms.find("vmap")
        if vmap is None:
            return
        points = [self.point, [x * 0.99 for x in map(np.asarray, self.point)]]
        batch = [np.stack([a, np.asarray(b, a.dtype)]) for a, b in
                 zip(map(np.asarray, points[0]), points[1], strict=True)]  # fmt: skip
        rows = vmap(derivative)(*map(as_array, batch))
        fact = f"{_kind(what)} of {self.name} in a batch is not that of each example."
        for k in range(2):
            single = derivative(*[as_array(x[k]) for x in batch])
            self._compare(fact, [y[k] for y in map(np.asarray, rows)], single, len(what.split()))


def _kind(what: str) -> str:
    return f"the {what} derivative" if what else "the result"


def check_jvp(
    f: Callable[..., Any], args: Sequence[Any], atol: Tolerance = None,
    rtol: Tolerance = None, eps: float | None = None,
) -> None:  # fmt: skip
    """Check forward mode at a point against central finite differences in a random direction."""
    args = xtree.map(as_array, tuple(args))
    dots = _like(args, np.random.default_rng(0))
    out, out_dot = jvp(f, args, dots)
    numeric, tolerance = _numeric(f, args, dots, atol, rtol, eps)
    _assert_close(out, f(*args), *tolerance, "check_jvp: the primal result")
    _assert_close(out_dot, numeric, *tolerance, "check_jvp: the derivative")


def check_vjp(
    f: Callable[..., Any], args: Sequence[Any], atol: Tolerance = None,
    rtol: Tolerance = None, eps: float | None = None,
) -> None:  # fmt: skip
    """Check reverse mode at a point: <ct, J v> by finite differences against <J^T ct, v>."""
    args = xtree.map(as_array, tuple(args))
    rng = np.random.default_rng(0)
    out, pull = vjp(f, *args)
    dots, cts = _like(args, rng), _like(out, rng)
    bars = xtree.leaves(pull(cts))
    numeric, (rtol_, atol_) = _numeric(f, args, dots, atol, rtol, eps)
    _assert_close(out, f(*args), rtol_, atol_, "check_vjp: the primal result")
    left = _inner(xtree.leaves(cts), xtree.leaves(numeric))
    right = _inner(bars, xtree.leaves(dots))
    _assert_close(right, left, rtol_, atol_, "check_vjp: the inner product with the cotangents")


def _numeric(
    f: Callable[..., Any], args: Any, dots: Any, atol: Tolerance, rtol: Tolerance,
    eps: float | None,
) -> tuple[Any, tuple[float, float]]:  # fmt: skip
    leaves, tree = xtree.flatten(args)
    coarsest = min((_precision(x.dtype) for x in leaves), default=64)
    step, tolerance = {16: (3e-2, 0.1), 32: (3e-3, 2e-2), 64: (1e-3, 1e-5)}[coarsest]
    out_tree: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        outs, structure = xtree.flatten(f(*xtree.unflatten(tree, xs)))
        out_tree.append(structure)
        return outs

    numeric = numerical_jvp(flat, leaves, xtree.leaves(dots), eps or step)
    exact = min((x.dtype for x in leaves), key=_precision, default=np.dtype("f8"))
    rtol, atol = [_tolerance_of(t, exact, tolerance) for t in (rtol, atol)]
    return xtree.unflatten(out_tree[0], numeric), (rtol, atol)


def _tolerance_of(given: Tolerance, dtype: Any, default: float) -> float:
    """Return the tolerance for arguments of a dtype, which may be given by dtype."""
    if isinstance(given, Mapping):
        return {np.dtype(key): value for key, value in given.items()}.get(dtype, default)
    return default if given is None else given


def numerical_jvp(
    fun: Callable[..., Sequence[Any]], point: Sequence[Any], dots: Sequence[Any], step: float
) -> list[np.ndarray[Any, Any]]:
    """Return the derivative of a flat function in a direction, by differences of fourth order.

    f'(0) ~ (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h
    """

    def at(distance: float) -> list[np.ndarray[Any, Any]]:
        moved = [
            from_numpy(
                np.asarray(np.asarray(x) + distance * np.asarray(d)).astype(x.dtype),
                canonical=False,
            )
            for x, d in zip(point, dots, strict=True)
        ]
        return [_in_double(out) for out in fun(*moved)]

    values = zip(at(step), at(-step), at(2 * step), at(-2 * step), strict=True)
    return [np.asarray((8 * (a - b) - (c - d)) / (12 * step)) for a, b, c, d in values]


# --- numbers -----------------------------------------------------------------------------------


def _in_double(x: Any) -> np.ndarray[Any, Any]:
    host = np.asarray(x)
    return host.astype(np.complex128 if host.dtype.kind == "c" else np.float64)


def _widen(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if dtypes.is_complex(host.dtype):
        return host.astype(np.complex128)
    return host.astype(np.float64) if dtypes.is_inexact(host.dtype) else host


def _widen_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params with the floating dtypes among them in double precision."""
    return {
        name: _widen(np.zeros((), value)).dtype if isinstance(value, np.dtype) else value
        for name, value in params.items()
    }


def _precision(dtype: Any) -> int:
    if dtype in (np.float64, np.complex128):
        return 64
    return 32 if dtype in (np.float32, np.complex64) else 16


def _like(tree: Any, rng: np.random.Generator) -> Any:
    def direction(x: Any) -> Any:
        x = as_array(x)
        if not is_differentiable(x.aval):
            return np.zeros(x.shape, dtypes.float0)
        values = rng.standard_normal(x.shape)
        if dtypes.is_complex(x.dtype):
            values = values + 1j * rng.standard_normal(x.shape)
        return from_numpy(np.asarray(values).astype(x.dtype), canonical=False)

    return xtree.map(direction, tree)


def _inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Return the real part of the bilinear product, the pairing of tangents and cotangents."""
    total = 0.0
    for x, y in zip(xs, ys, strict=True):
        if np.asarray(x).dtype != dtypes.float0:
            with np.errstate(all="ignore"):
                total += float(np.real(np.sum(_in_double(x) * _in_double(y))))
    return total


def _norm(xs: Sequence[Any]) -> float:
    hypot: Any = np.hypot.reduce  # it squares nothing that overflows, but its sums may
    with np.errstate(all="ignore"):
        return float(sum(hypot(np.abs(_in_double(x).ravel()), initial=0) for x in xs))


def _assert_close(found: Any, expected: Any, rtol: float, atol: float, what: str) -> None:
    for a, b in zip(xtree.leaves(found), xtree.leaves(expected), strict=True):
        if np.asarray(a).dtype != dtypes.float0:
            np.testing.assert_allclose(
                _in_double(a), _in_double(b), rtol=rtol, atol=atol, err_msg=what
            )
