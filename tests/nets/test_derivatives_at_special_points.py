"""The net of derivatives: every differentiable function, at the points where formulas break.

Of each function the first and second derivative, forward and reverse, eager and compiled, at ties,
zeros, branch points, infinities, NaN, subnormals, equal, singular and empty operands:

- forward and reverse mode agree, always;
- a compiled program gives what eager evaluation gives;
- both give what JAX gives where it is installed, or what `derivative_differences` says;
- smooth functions have the derivatives that mpmath finds.

Two rules beyond numbers. Infinity and NaN count as one, as do all results of numbers that overflow
on the way: which of them comes is a matter of the order of operations. And of whole Jacobians at
points that are not finite, what is a number both ways is compared: 0 times infinity is NaN on the
way that multiplies. Subnormals are zeros in compiled programs, and are not compared there.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import xstack
from tests.nets import derivative_rows, derivatives, special_operands
from tests.nets.cells import UNOPTIMISED_CODE, drawn
from tests.nets.derivative_differences import (
    ARRAYS_BETTER_THAN_THE_ORACLE,
    ILL_CONDITIONED,
    NUMBERS_BETTER_THAN_THE_ORACLE,
    UNLIKE_COMPILED,
    UNLIKE_IN_OTHER_MODES,
    left_out,
)
from tests.nets.derivatives import Found
from xnp.testing.samples import TABLE
from xprim import from_numpy, get_primitive
from xprim.errors import MissingRuleError
from xprim.testing import Sample

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning"),
]

ELEMENTWISE = derivative_rows.elementwise()
ARRAYS = derivative_rows.of_arrays()
NAMESPACES = {k: v for k, v in derivatives.namespaces(xstack).items() if k[0] != "_"}


def operands_of(text: str) -> dict[str, np.ndarray]:
    names = derivatives.used(text, special_operands.numbers("xy"))
    return special_operands.numbers("".join(names))


def points_of(text: str) -> dict[str, dict[str, np.ndarray]]:
    names = derivatives.used(text, special_operands.empties())
    points = special_operands.of_arrays(set(names))
    return {point: {n: p[n] for n in names} for point, p in points.items()}


# --- what is in the net -------------------------------------------------------------------------


def test_every_public_function_has_a_row_or_a_reason():
    public = {
        f"{space}.{name}"
        for space, module in NAMESPACES.items()
        for name in dir(module)
        if not name.startswith("_")
        and callable(getattr(module, name))
        and not isinstance(getattr(module, name), type)
    }
    called = {f for text in ELEMENTWISE + ARRAYS for f in derivative_rows.functions_in(text)}
    without = derivative_rows.without_derivative()
    public -= {"lax.DotDimensionNumbers"}
    assert public - called - without == set(), "public functions without a row or a reason"
    assert without - public == set(), "reasons for what is not public"
    makers = {"np.arange", "np.ones"}  # which rows make operands with
    assert without & called <= makers, "rows of what is said to have no derivative"


def test_the_size_of_the_net():
    points = sum(next(iter(operands_of(t).values())).size for t in ELEMENTWISE)
    cells = sum(len(points_of(t)) for t in ARRAYS)
    filled = len(PRIMITIVE_CELLS)
    print(f"{len(ELEMENTWISE)} elementwise expressions at {points} points; {len(ARRAYS)} of arrays "
          f"in {cells} cells; {filled} cells of primitives")  # fmt: skip
    assert len(ELEMENTWISE) >= 215
    assert len(ARRAYS) >= 315
    assert points >= 10_000
    assert cells >= 4_000
    assert filled >= 900


# --- comparing ----------------------------------------------------------------------------------


def differ(found: np.ndarray, expected: np.ndarray, of_arrays: bool = False) -> np.ndarray:
    """Return where two results differ; all that is not finite counts as one."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(found) & np.isfinite(expected)
        largest = np.abs(expected[finite]).max(initial=1.0)
        atol = 1e-6 * (largest if of_arrays or largest < 1e6 else 1.0)
        close = np.isclose(found, expected, rtol=2e-3, atol=atol)
    return ~close & (np.isfinite(found) | np.isfinite(expected))


def overflows(operands: dict[str, np.ndarray]) -> np.ndarray:
    """Return where a finite number is so large that its square overflows, or so small."""
    sizes = [np.abs(x) for x in operands.values()]
    small = np.finfo(np.float32).tiny
    return np.any([(s >= 1e15) & np.isfinite(s) | (s > 0) & (s <= small) for s in sizes], axis=0)


def report(operands: dict[str, np.ndarray], wrong: np.ndarray, *columns: np.ndarray) -> str:
    """Return the points that are wrong, and what was found and expected there."""
    rows = zip(*[x[wrong] for x in (*operands.values(), *columns)], strict=True)
    head = " ".join([*operands, "found", "expected"])
    return f"\n  {head}\n  " + "\n  ".join(" ".join(f"{v:.6g}" for v in row) for row in rows)


def checked(found: Found, expected: Found, operands: dict[str, np.ndarray], left_out: Any,
            what: str) -> None:  # fmt: skip
    for key in found:
        wrong = differ(found[key], expected[key]) & ~left_out
        assert not wrong.any(), f"{what}: {key}" + report(
            operands, wrong, found[key], expected[key]
        )


@functools.cache
def elementwise(text: str, compiled: bool) -> Found:
    operands = operands_of(text)
    program = derivatives.elementwise(xstack, text, list(operands))
    return derivatives.taken(xstack, program, list(operands.values()), compiled)


# --- elementwise --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", drawn(ELEMENTWISE, 40))
def test_forward_and_reverse_mode_agree_number_by_number(text):
    found, operands = elementwise(text, False), operands_of(text)
    every = {key: found[key.replace("reverse", "forward")] for key in found}
    tolerated = overflows(operands)
    for key in found:
        wrong = differ(found[key], every[key])
        both = np.isfinite(found[key]) & np.isfinite(every[key])
        wrong &= both | ~tolerated
        assert not wrong.any(), key + report(operands, wrong, found[key], every[key])


@pytest.mark.parametrize(
    "text", drawn([t for t in ELEMENTWISE if not left_out(UNLIKE_COMPILED, t)], 4)
)
def test_compiled_derivatives_are_the_eager_ones_number_by_number(text):
    operands = operands_of(text)
    checked(elementwise(text, True), elementwise(text, False), operands, overflows(operands),
            "compiled and eager")  # fmt: skip


@pytest.mark.parametrize("text", drawn(ELEMENTWISE, 4))
def test_the_oracle_has_the_same_derivatives_number_by_number(text):
    jax = pytest.importorskip("jax")
    operands = operands_of(text)
    theirs = derivatives.elementwise(jax, text, list(operands))
    try:
        expected = derivatives.taken(jax, theirs, list(operands.values()), True)
    except (AttributeError, NotImplementedError) as error:
        pytest.skip(f"the oracle has no such derivative: {error}")
    exempt = overflows(operands)
    for pattern, condition, _reason in NUMBERS_BETTER_THAN_THE_ORACLE:
        if re.fullmatch(pattern, text):
            exempt |= condition(*operands.values())
    found = {key: v for key, v in elementwise(text, False).items() if "reverse" not in key}
    checked(found, expected, operands, exempt, "ours and the oracle's")


def test_smooth_functions_have_the_derivatives_that_are_their_limits():
    limits = pytest.importorskip("tests.nets.derivative_limits")
    (x,) = special_operands.numbers("x").values()
    x = x[limits.smooth_at(x)]
    for name in drawn(sorted(limits.LIMITS), 12):
        program = derivatives.elementwise(xstack, f"{name}(x)", ["x"])
        found = derivatives.taken(xstack, program, [x], False)
        for order, key in ((1, "dx forward [0]"), (2, "dxdx forward forward [0]")):
            expected = np.array([limits.limit(name, v, order) for v in x])
            known = np.isfinite(expected) & (np.abs(expected) < 1e20)
            known &= ~(x == 0) | (name not in _KINKS_AT_ZERO)
            np.testing.assert_allclose(
                found[key][known], expected[known], rtol=3e-4 if order == 1 else 3e-3, atol=2e-7,
                err_msg=f"{name}: {key} at {x[known]}",
            )  # fmt: skip


_KINKS_AT_ZERO = {"lax.cbrt", "np.sqrt", "lax.rsqrt", "np.log", "np.log2", "np.log10",
                  "np.reciprocal", "lax.lgamma", "lax.digamma"}  # fmt: skip


# --- of arrays ----------------------------------------------------------------------------------


def tame(operands: dict[str, np.ndarray]) -> bool:
    """Return whether all numbers are finite, and so are their squares and inverses."""
    return not any(
        overflows({name: x}).any() or not np.isfinite(x).all() for name, x in operands.items()
    )


def agree(
    found: Found, expected: Found, operands: dict[str, np.ndarray], what: str, *,
    in_part: bool = False,
) -> None:  # fmt: skip
    """Compare all numbers; where slopes are infinite both ways, what is a number both ways.

    With `in_part`, what `found` has no number for is not compared.
    """
    spoiled = [any(not np.isfinite(x).all() for x in each.values()) for each in (found, expected)]
    strict = tame(operands) and not all(spoiled)
    for key in found:
        ours, theirs = found[key], expected[key]
        assert ours.shape == theirs.shape, f"{what}: {key}: {ours.shape} and {theirs.shape}"
        wrong = differ(ours, theirs, of_arrays=True)
        if in_part:
            wrong &= np.isfinite(ours)
        elif not strict:
            wrong &= np.isfinite(ours) & np.isfinite(theirs)
        assert not wrong.any(), (
            f"{what}: {key}\n  found     {ours[wrong][:4]}\n  expected  {theirs[wrong][:4]}"
        )


def jacobians(library: Any, text: str, compiled: bool) -> Any:
    """Return the function from operands to derivatives; compiled, it is compiled once."""
    names = derivatives.used(text, special_operands.empties())
    program = derivatives.jacobians(library, text, names)
    run = library.jit(program, compiler_options=UNOPTIMISED_CODE) if compiled else program
    return lambda operands: derivatives.taken(library, run, list(operands.values()), False)


CELLS = [
    (text, point) for text in ARRAYS for point in points_of(text)
    if (text, point) not in ILL_CONDITIONED
]  # fmt: skip


@pytest.mark.parametrize(("text", "point"), drawn(CELLS, 60))
def test_forward_and_reverse_mode_agree_on_jacobians(text, point):
    if point in left_out(UNLIKE_IN_OTHER_MODES, text):
        pytest.skip("it has no derivative there")
    operands = points_of(text)[point]
    found = jacobians(xstack, text, False)(operands)
    reverse = {key: x for key, x in found.items() if key.startswith(("d reverse", "dd reverse"))}
    forward = {key: found[key.replace("d reverse", "d forward", 1)] for key in reverse}
    agree(reverse, forward, operands, "reverse and forward")
    inner = {key: x for key, x in found.items() if key.startswith("dd forward reverse")}
    other = {key: found[key.replace("reverse", "forward")] for key in inner}
    agree(inner, other, operands, "forward over reverse and over forward")


@pytest.mark.parametrize("text", drawn(ARRAYS, 3))
def test_compiled_jacobians_are_the_eager_ones(text):
    skipped = left_out(UNLIKE_COMPILED, text) | {"subnormal"}
    eager, compiled = jacobians(xstack, text, False), jacobians(xstack, text, True)
    for point, operands in points_of(text).items():
        if not {point, "*"} & skipped and (text, point) not in ILL_CONDITIONED:
            agree(compiled(operands), eager(operands), operands, f"compiled and eager at {point}")


@pytest.mark.parametrize("text", drawn(ARRAYS, 3))
def test_the_oracle_has_the_same_jacobians(text):
    jax = pytest.importorskip("jax")
    ours, theirs = jacobians(xstack, text, False), jacobians(jax, text, True)
    skipped = left_out(ARRAYS_BETTER_THAN_THE_ORACLE, text) | {"subnormal"}
    for point, operands in points_of(text).items():
        if {point, "*"} & skipped or (text, point) in ILL_CONDITIONED:
            continue
        try:
            expected = theirs(operands)
        except (AttributeError, NotImplementedError, jax.errors.ConcretizationTypeError) as error:
            pytest.skip(f"the oracle has no such derivative: {error}")
        agree(ours(operands), expected, operands, f"ours and the oracle's at {point}")


@pytest.mark.parametrize("text", drawn(ELEMENTWISE + ARRAYS, 30))
def test_derivatives_by_operands_without_elements_have_their_shapes(text):
    empties = special_operands.empties()
    names = derivatives.used(text, empties)
    arrays = [xstack.numpy.asarray(empties[n]) for n in names]
    function = derivatives.function_of(xstack, text, names)
    try:
        outs = function(*arrays)
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        pytest.skip(f"it takes no operand without elements: {error}")
    everything = tuple(range(len(names)))
    for jacobian in (xstack.jacfwd, xstack.jacrev):
        found = xstack.tree.leaves(jacobian(function, everything)(*arrays))
        expected = [(*out.shape, *x.shape) for out in outs for x in arrays]
        assert [x.shape for x in found] == expected


# --- primitives ---------------------------------------------------------------------------------


def _small(sample: Sample) -> bool:
    floats = [x for x in sample.operands if np.dtype(x.dtype) in (np.float32, np.float64)]
    return bool(floats) and 0 < sum(np.asarray(x).size for x in floats) <= 16


def _cells_of_primitives() -> list[tuple[str, int, str]]:
    cells = []
    for name, samples in sorted(TABLE.items()):
        small = [i for i, sample in enumerate(samples) if _small(sample)]
        chosen = [small[0], small[len(small) // 2], small[-1]] if small else []
        cells += [
            (name, i, fill)
            for i in dict.fromkeys(chosen)
            for fill in special_operands.FILLS
            if (name, fill) not in ILL_CONDITIONED
        ]
    return cells


PRIMITIVE_CELLS = _cells_of_primitives()


@pytest.mark.parametrize(("name", "number", "fill"), drawn(PRIMITIVE_CELLS, 60))
def test_the_rules_of_a_primitive_agree_in_both_modes(name, number, fill):
    sample, primitive = TABLE[name][number], get_primitive(name)
    hosts = [np.asarray(x) for x in sample.operands]
    active = [i for i, x in enumerate(hosts) if x.dtype in (np.float32, np.float64)]
    for i in active:
        hosts[i] = special_operands.FILLS[fill](hosts[i])
    operands = [from_numpy(x, canonical=False) for x in hosts]

    def function(*moved: Any) -> Any:
        given = list(operands)
        for i, x in zip(active, moved, strict=True):
            given[i] = x
        outs = primitive.bind(*given, **sample.params)
        return [x for x in outs if x.dtype in (np.float32, np.float64)]

    point = [operands[i] for i in active]
    everything = tuple(range(len(active)))
    try:
        forward = xstack.jacfwd(function, everything)(*point)
        reverse = xstack.jacrev(function, everything)(*point)
    except (MissingRuleError, ValueError) as error:
        if isinstance(error, MissingRuleError) or "derivative" in str(error):
            pytest.skip(f"it has no derivative: {error}")
        raise
    ours, theirs = [
        {str(k): np.asarray(x) for k, x in enumerate(xstack.tree.leaves(tree))}
        for tree in (reverse, forward)
    ]
    agree(ours, theirs, dict(zip(map(str, active), [hosts[i] for i in active], strict=True)),
          "reverse and forward", in_part=fill in left_out(UNLIKE_IN_OTHER_MODES, name))  # fmt: skip
