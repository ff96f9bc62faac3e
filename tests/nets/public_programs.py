"""Random programs of public functions: straight lines of calls on arrays of every kind.

A program has arguments (of every dtype, of shapes with and without elements, special values among
them, some weakly typed) and calls: each a public function in one of its forms, on values that
exist so far. Drawing evaluates: a call that is refused stays in the program as a refusal, which has
to be one everywhere, and gives no value. Programs are data, made again from their seed.

Neighbours: `public_functions` has the functions, `public_program_checks` what must hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import xnp
import xtree
from tests.nets.public_functions import FORMS, forms_of, functions
from xprim import Array, dtypes, from_numpy, make_jaxpr
from xprim.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

MAX_CALLS = 6
MAX_SIZE = 100
SMALL = 16
_DTYPES = [
    *["float32"] * 8, *["int32"] * 3, "bool", "float16", "bfloat16", "complex64", "int8", "uint8",
    "uint32", "int16", "float64",
]  # fmt: skip
_SHAPES = [(3,), (3,), (), (3, 3), (2, 3), (1,), (3, 1), (0,), (2, 0), (2, 2, 2)]
_WEAK = [0, 1, -2, 3, 0.0, -0.0, 0.5, -1.5, 2.0, True, 1e30, float("inf"), float("nan")]
_WHOLE = [0, 1, 2, 3, 7]
NEEDS_VALUES = (
    ConcretizationTypeError, NonConcreteBooleanIndexError, TracerArrayConversionError,
    TracerBoolConversionError, TracerIntegerConversionError,
)  # fmt: skip
_QUARTERS = [k / 4 for k in range(-8, 9)]


@dataclass(frozen=True)
class Call:
    """One call: a function, its form, numbers of its operands, and whole numbers for the form."""

    path: str
    form: str
    operands: tuple[int, ...]
    numbers: tuple[int, ...]

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Call the function on these operands; return the arrays among its results."""
        args, kwargs = FORMS[self.form][1](arrays, self.numbers)
        found = functions()[self.path](*args, **kwargs)
        return tuple([leaf for leaf in xtree.leaves(found) if isinstance(leaf, Array)])

    def __str__(self) -> str:
        return f"{self.path}({self.form}; {self.numbers})"


@dataclass
class Tried:
    """What came of a call when it was drawn.

    Attributes:
      operands: the arrays.
      results: what evaluation gave; None where it refused.
      error: what evaluation raised.
      traced: what tracing raised; None where it gave avals.
    """

    call: Call
    operands: list[Any]
    results: tuple[Any, ...] | None
    error: Exception | None
    traced: Exception | None

    @property
    def can_be_traced(self) -> bool:
        """Whether the call gives values, and does so without looking at the operands' values."""
        return self.results is not None and self.traced is None


@dataclass
class PublicProgram:
    """Calls over numbered values: the arguments first, then what each traceable call gives."""

    seed: int
    arguments: list[Any]
    tried: list[Tried]

    def run(self, arguments: Sequence[Any], wrap: Callable[[int, Call], Any]) -> list[Any]:
        """Evaluate on other arguments, with the function `wrap(k, call)` in the place of call k.

        Returns:
          All values, the arguments first.
        """
        env = list(arguments)
        for k, each in enumerate(self.tried):
            if each.can_be_traced:
                env.extend(wrap(k, each.call)(*[env[i] for i in each.call.operands]))
        return env


def special_values(dtype: np.dtype[Any]) -> list[Any]:
    """Return values of a dtype at which functions break: its ends, zeros, ones, halves, NaN."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [0, 1, 2, 3, 7, info.max, info.min, info.max - 1]
    if dtype.kind == "c":
        wide = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5]
        return [complex(x, y) for x in wide for y in wide]
    info = dtypes.finfo(dtype)
    ends = [float(v) for v in (info.max, info.tiny, info.smallest_subnormal, info.eps)]
    return [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, *ends, -ends[2]]


def _argument(rng: random.Random, special: bool) -> Any:
    if rng.random() < 0.15:
        return xnp.asarray(rng.choice(_WEAK if special else _WEAK[:-3]))
    dtype = np.dtype(xnp.dtype(rng.choice(_DTYPES)))
    shape = rng.choice(_SHAPES)
    pool = _QUARTERS if dtypes.is_inexact(dtype) else _WHOLE
    pool = special_values(dtype) if special else pool
    elements = [rng.choice(pool) for _ in range(int(np.prod(shape, dtype=int)))]
    with np.errstate(all="ignore"):
        host = np.array(elements, complex if dtype.kind == "c" else None).astype(dtype)
    return from_numpy(host.reshape(shape), canonical=False)


def draw(seed: int) -> PublicProgram:
    """Draw the program of a seed; one in three has special values."""
    rng = random.Random(seed)
    special = rng.random() < 1 / 3
    program = PublicProgram(seed, [_argument(rng, special) for _ in range(3)], [])
    env = list(program.arguments)
    for _ in range(rng.randrange(1, MAX_CALLS + 1)):
        tried = _try(_draw_call(rng, len(env)), env)
        if tried is not None:
            program.tried.append(tried)
            env.extend(tried.results or () if tried.can_be_traced else ())
    return program


def _draw_call(rng: random.Random, values: int) -> Call:
    path = rng.choice(sorted(functions()))
    form = rng.choice(forms_of(path))
    latest = [max(rng.randrange(values), rng.randrange(values)) for _ in range(FORMS[form][0])]
    return Call(path, form, tuple(latest), (rng.randrange(4), rng.randrange(4)))


def _try(call: Call, env: Sequence[Any]) -> Tried | None:
    """Trace and evaluate a call; None where its results, or what it needs, would be large."""
    operands = [env[i] for i in call.operands]
    traced: Exception | None = None
    try:
        if sum([out.size for out in make_jaxpr(call)(*operands).out_avals]) > MAX_SIZE:
            return None
    except Exception as error:
        traced = error
    # Values that tracing cannot know may be sizes.
    if isinstance(traced, NEEDS_VALUES) and not all(_is_small(x) for x in operands):
        return None
    try:
        return Tried(call, operands, call(*operands), None, traced)
    except Exception as error:
        return Tried(call, operands, None, error, traced)


def _is_small(x: Any) -> bool:
    host = np.asarray(x).astype(np.complex128)
    return bool(np.isfinite(host).all() and (np.abs(host) <= SMALL).all())
