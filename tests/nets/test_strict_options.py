"""The net of the strict options: what the caller passes is held to them, what is inside is not.

Every row of the net of values is called under each strict option and under all of them at once:
as it is, staged, differentiated and mapped.

- What an option of promotion refuses, the oracle refuses, too; and what the oracle refuses, we do.
- Where the operands and the results are finite numbers, no other option raises.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstack
from tests.nets.cells import drawn
from tests.nets.value_cells import Library, Point, called, cells, library
from tests.nets.value_operands import Operands, layouts
from tests.nets.value_rows import TABLES
from tests.nets.value_rows_of_modules import MODULES
from xprim import config

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]
jax = pytest.importorskip("jax")

ROWS = {**TABLES, **MODULES}
OURS, THEIRS = library(xstack, *ROWS), library(jax, *ROWS)
LAYOUTS = ("plain", "broadcast", "scalar", "one")
PROMOTION = {"numpy_dtype_promotion": "strict", "numpy_rank_promotion": "raise"}
OTHERS = {
    "debug_nans": True, "debug_infs": True, "enable_checks": True, "debug_key_reuse": True,
    "discrete_derivatives": "error",
    "transfer_guard": "disallow", "index_checks": "raise", "check_tracer_leaks": True,
    "disable_jit": True,
}  # fmt: skip
# What walks all objects that there are, or traces each operation again, is tried on few.
SLOW = ("enable_checks", "check_tracer_leaks")

# Elementwise functions all check their operands; the oracle leaves some out.
STRICTER = ("xnp.gcd(*", "xnp.lcm(*", "xnp.heaviside(*", "xnp.nan_to_num(v, nan=*")
# The oracle checks what it makes of the operands, too.
MORE_LENIENT = (
    "scipy.stats.poisson.entropy(*", "scipy.special.hyp1f1(*", "scipy.special.sph_harm_y(*",
)  # fmt: skip
# The position is out of bounds, or an infinity is what a function inside is defined as there.
REFUSED_RIGHTLY = (
    "lax.dynamic_slice(v, (i[[]0] + 9,)*", "scipy.stats.multinomial.pmf(*",
)  # fmt: skip


def _as_it_is(library: Library, root: Any, point: Point) -> Any:
    return called(library, point)


def _staged(library: Library, root: Any, point: Point) -> Any:
    return root.eval_shape(lambda a: _arrays_among(called(library, point, a)), _own(library, point))


def _differentiated(library: Library, root: Any, point: Point) -> Any:
    arrays = _own(library, point)
    varied = {k: x for k, x in arrays.items() if np.issubdtype(x.dtype, np.floating)}

    def total(varied: Operands) -> Any:
        leaves = _arrays_among(called(library, point, {**arrays, **varied}))
        return sum(root.numpy.sum(x) for x in leaves if np.issubdtype(x.dtype, np.floating))

    return root.grad(total)(varied)


def _mapped(library: Library, root: Any, point: Point) -> Any:
    arrays = {k: x[None] for k, x in _own(library, point).items()}
    return root.vmap(lambda a: _arrays_among(called(library, point, a)))(arrays)


def _own(library: Library, point: Point) -> Operands:
    return {k: library.array(v) for k, v in point.operands.items() if isinstance(v, np.ndarray)}


def _arrays_among(leaves: list[Any]) -> list[Any]:
    return [x for x in leaves if hasattr(x, "dtype") and hasattr(x, "shape")]


WAYS: dict[str, Callable[[Library, Any, Point], Any]] = {
    "as it is": _as_it_is, "staged": _staged, "differentiated": _differentiated, "mapped": _mapped,
}  # fmt: skip


def _error(root: Any, options: dict[str, Any], call: Callable[[], Any]) -> Exception | None:
    with contextlib.ExitStack() as stack:
        for name, value in options.items():
            option = getattr(root, name) if root is jax else config.option_named(name, "net")
            stack.enter_context(option(value))
        try:
            call()
        except Exception as error:
            return error
    return None


@functools.cache
def _points(*dtypes: str) -> list[Point]:
    """Return all points; the operands of a dtype are the same for all."""
    operands = {d: [(n, o) for n, o in layouts(d).items() if n in LAYOUTS] for d in dtypes}
    return [Point(c, n, o) for c in cells(dtypes, ROWS) for n, o in operands[c.dtype]]


def _failing(way: str, points: list[Point], options: dict[str, Any]) -> list[tuple[Point, str]]:
    """Return those of the points that are refused under the options alone, with the error."""
    call = WAYS[way]
    found = []
    for point in points:
        if _error(xstack, {}, lambda p=point: call(OURS, xstack, p)) is None:
            error = _error(xstack, options, lambda p=point: call(OURS, xstack, p))
            if error is not None:
                found.append((point, str(error).partition("\n")[0]))
    return found


def _are_in(rows: tuple[str, ...], point: Point) -> bool:
    return any(fnmatch.fnmatch(str(point), row) for row in rows)


@pytest.mark.parametrize(("way", "count"), [
    ("as it is", 60), ("staged", 20), ("differentiated", 10), ("mapped", 10),
])  # fmt: skip
def test_what_the_strict_options_refuse_the_oracle_refuses_too(way: str, count: int) -> None:
    sample = drawn(_points("float32", "int32", "complex64"), count)
    refused = _failing(way, sample, PROMOTION)
    wrong = [
        f"{point}: {text}" for point, text in refused
        if not _are_in(STRICTER, point)
        and _error(jax, PROMOTION, lambda p=point: WAYS[way](THEIRS, jax, p)) is None
    ]  # fmt: skip
    assert wrong == []


FORMS_OF_OPERANDS = ("f(x, y)", "f(v, w)", "f(x, y, z)", "f(s, s)", "f(m, x, y)", "f([x, y])")


def _differing() -> list[Point]:
    """Return the calls with several operands, of which one has another dtype, or another rank."""
    plain = layouts("float32")["plain"]
    x, s = plain["x"], plain["s"]
    dtype = {k: plain[k].astype("int32") for k in ("y", "w", "z")} | {"t": s.astype("int32")}
    rank = {"y": x[0], "w": plain["w"][None], "z": x[0], "t": s[None]}
    return [
        Point(cell._replace(form=cell.form.replace("f(s, s)", "f(s, t)")), name, {**plain, **other})
        for cell in cells(["float32"], ROWS) if cell.form in FORMS_OF_OPERANDS
        for name, other in (("dtype", dtype), ("rank", rank))
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["as it is", "staged", "mapped"])
def test_what_the_oracle_refuses_the_strict_options_refuse_too(way: str) -> None:
    let_pass, refused = [], 0
    for point in drawn(_differing(), 20):
        theirs = _error(jax, PROMOTION, lambda p=point: _staged(THEIRS, jax, p))
        if theirs is not None and _error(jax, {}, lambda p=point: _staged(THEIRS, jax, p)) is None:
            refused += 1
            ours = _error(xstack, PROMOTION, lambda p=point: WAYS[way](OURS, xstack, p))
            if ours is None and not _are_in(MORE_LENIENT, point):
                let_pass.append(f"{point}: {theirs}".partition("\n")[0])
    assert refused > 5
    assert let_pass == []


def _is_finite(point: Point) -> bool:
    try:
        leaves = _arrays_among(called(OURS, point))
    except Exception:
        return False
    numbers = [np.asarray(x) for x in leaves]
    return all(np.isfinite(x).all() for x in numbers if x.dtype.kind in "fc")


@pytest.mark.parametrize(("names", "count"), [
    *[((name,), 1 if name in SLOW else 10) for name in OTHERS], (tuple(OTHERS), 1),
])  # fmt: skip
def test_no_strict_option_raises_where_all_numbers_are_finite(
    names: tuple[str, ...], count: int
) -> None:
    plain = [p for p in _points("float32", "complex64") if p.layout == "plain"]
    plain = plain[:: 40 if {*names} & {*SLOW} else 1]  # in a full run, too
    sample = [p for p in drawn(plain, count) if not _are_in(REFUSED_RIGHTLY, p) and _is_finite(p)]
    options = {name: OTHERS[name] for name in names}
    assert [f"{p}: {text}" for p, text in _failing("as it is", sample, options)] == []


@pytest.mark.parametrize("way", ["differentiated", "mapped"])
def test_no_check_of_values_raises_in_a_derivative_of_finite_numbers(way: str) -> None:
    plain = [p for p in drawn(_points("float32"), 30) if p.layout == "plain"]
    sample = [p for p in plain if not _are_in(REFUSED_RIGHTLY, p) and _is_finite(p)]
    options = {"debug_nans": True, "debug_infs": True}
    refused = []
    for point, text in _failing(way, sample, options):
        results = xstack.tree.leaves(WAYS[way](OURS, xstack, point))
        if all(np.isfinite(np.asarray(x)).all() for x in results):
            refused.append(f"{point}: {text}")
    assert refused == []
