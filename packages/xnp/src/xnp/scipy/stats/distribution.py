"""Distributions from rows of formulas: their functions, with edges, locations and scales.

A row says a distribution's parameters, where it lives, and formulas of the standard form, such as

    expon = continuous("expon", (0, inf), logpdf=lambda x: -x, cdf=lambda x: -expm1(-x), ...)

From it come functions as SciPy's, `expon.logpdf(x, loc=0, scale=1)`. Everything that all of them
share is here, once: promotion; 0 or 1 outside of the support; NaN for NaN, for a scale that is not
positive and for parameters that are not valid; formulas see only points of the support and valid
parameters, so that derivatives are right at the edges and outside, too.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import xnp.numpy as xn
from xnp.lax import stop_gradient
from xnp.numpy.dispatch import cast, dispatched, inexact
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundary
from xtree.namespaces import import_by_name

__all__ = ["Distribution", "as_modules", "continuous", "discrete"]

__dir__ = __all__.copy

Formula = Callable[..., Any]
_HOME = "xnp.scipy.stats"

# kind -> what it is, and its values below and above the support
_VALUES = {
    "pdf": ("density", 0.0, 0.0),
    "logpdf": ("logarithm of the density", -math.inf, -math.inf),
    "pmf": ("probability", 0.0, 0.0),
    "logpmf": ("logarithm of the probability", -math.inf, -math.inf),
    "cdf": ("distribution function", 0.0, 1.0),
    "logcdf": ("logarithm of the distribution function", -math.inf, 0.0),
    "sf": ("survival function, 1 - cdf,", 1.0, 0.0),
    "logsf": ("logarithm of the survival function", 0.0, -math.inf),
}
_QUANTILES = {
    "ppf": "quantile, the inverse of cdf; NaN for q outside of [0, 1],",
    "isf": "inverse of the survival function; NaN for q outside of [0, 1],",
}


class Distribution(ModuleType):
    """The functions of a distribution, as attributes; importable like a module.

    Args:
      name: the distribution's.
      doc: its docstring.
    """

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(f"{_HOME}.{name}", doc)

    def __repr__(self) -> str:
        return f"<distribution {self.__name__}>"

    @property
    def __all__(self) -> list[str]:
        return sorted(name for name in vars(self) if not name.startswith("_"))

    def __dir__(self) -> list[str]:
        return self.__all__

    def __reduce__(self) -> Any:
        return import_by_name, (self.__name__,)


@dataclass(frozen=True)
class _Row:
    """What a row says; see `continuous`."""

    name: str
    support: Any
    shapes: Sequence[str]
    valid: Formula
    shown: Sequence[str]
    formulas: dict[str, Formula]
    located: bool
    ordinary: Sequence[float]
    arguments: dict[str, str] = field(default_factory=dict)

    def used(self, shapes: Sequence[Any], where: Any) -> list[Any]:
        """Return the parameters, but ordinary ones where they are not used.

        A formula's derivatives there are multiplied by 0: they must be numbers.
        """
        ordinary = self.ordinary or [0.5] * len(shapes)
        return [xn.where(where, s, o) for s, o in zip(shapes, ordinary, strict=True)]

    def bounds(self, *shapes: Any) -> tuple[Any, Any]:
        ends = self.support(*shapes) if callable(self.support) else self.support
        return ends[0], ends[1]


def _always(*shapes: Any) -> bool:
    return True


def continuous(
    name: str, support: Any, source: str, *, shapes: Sequence[str] = (), valid: Formula = _always,
    shown: Sequence[str], located: bool = True, ordinary: Sequence[float] = (),
    arguments: dict[str, str] | None = None, at_zeros: tuple[Formula, Formula] | None = None,
    **formulas: Formula,
) -> Distribution:  # fmt: skip
    """Return a distribution on an interval.

    Args:
      name: as SciPy has it.
      support: its two ends, which belong to it, or a function of the parameters to them.
      source: the density and where it is from, for the docstrings.
      shapes: the names of the parameters.
      valid: from the parameters to where they are in their domain.
      shown: the functions to make. `pdf`, `sf`, `logcdf`, `logsf` and `isf` that have no formula
        follow from `logpdf`, `cdf` and `ppf`.
      located: whether the functions take `loc` and `scale`.
      ordinary: some valid parameters, with 0.5 inside of their support; 0.5 for each if not given.
      at_zeros: where the density may be 0 within its support, and a formula of it there: that of
        its logarithm, minus infinity, has no derivatives.
      arguments: the names of first arguments that are not `x` or `q`.
      **formulas: of the standard form, from points of the support, or quantiles, and parameters.
    """
    row = _Row(name, support, shapes, valid, shown, formulas, located, ordinary, arguments or {})
    formulas.setdefault("pdf", _exponential(row, formulas["logpdf"], at_zeros))
    _complete(formulas)
    makers = dict.fromkeys(_VALUES, _continuous_value) | dict.fromkeys(_QUANTILES, _quantile)
    tail = {"loc": 0, "scale": 1} if located else {}
    return _distribution(row, makers, tail, source)


def discrete(
    name: str, support: Any, source: str, *, shapes: Sequence[str] = (), valid: Formula = _always,
    shown: Sequence[str], without_location: Sequence[str] = (), ordinary: Sequence[float] = (),
    at_zeros: tuple[Formula, Formula] | None = None, **formulas: Formula,
) -> Distribution:  # fmt: skip
    """Return a distribution on whole numbers, whose arguments are those of `continuous`.

    `without_location` names the functions that take no `loc`.
    """
    arguments = dict.fromkeys(_VALUES, "k")
    row = _Row(name, support, shapes, valid, shown, formulas, True, ordinary, arguments)
    formulas.setdefault("pmf", _exponential(row, formulas["logpmf"], at_zeros))
    _complete(formulas)
    makers = dict.fromkeys(_VALUES, _discrete_value) | dict.fromkeys(_QUANTILES, _quantile)
    made = _distribution(row, makers, {"loc": 0}, source)
    for kind in without_location:
        _add_function(made, row, kind, makers[kind], {}, source)
    return made


def _exponential(row: _Row, log: Formula, at_zeros: tuple[Formula, Formula] | None) -> Formula:
    """Return the density from its logarithm, but for where it may be 0."""
    if at_zeros is None:
        return lambda x, *shapes: xn.exp(log(x, *shapes))
    may_be_zero, direct = at_zeros

    def density(x: Any, *shapes: Any) -> Any:
        zero = may_be_zero(x, *shapes)
        usual = row.used(shapes, ~zero)
        inside = _interior(*row.bounds(*usual))
        large = xn.exp(log(xn.where(zero, inside, x), *usual))
        return xn.where(zero, direct(xn.where(zero, x, inside), *row.used(shapes, zero)), large)

    return density


def _complete(formulas: dict[str, Formula]) -> None:
    """Add what follows from the distribution function and the quantile."""
    formulas.setdefault("sf", lambda x, *s: 1 - formulas["cdf"](x, *s))
    formulas.setdefault("logcdf", lambda x, *s: _log_of(formulas["cdf"], formulas["sf"], x, s))
    formulas.setdefault("logsf", lambda x, *s: _log_of(formulas["sf"], formulas["cdf"], x, s))
    formulas.setdefault("isf", lambda q, *s: formulas["ppf"](1 - q, *s))


def _log_of(mass: Formula, rest: Formula, x: Any, shapes: Sequence[Any]) -> Any:
    """Return the logarithm of a probability, near 1 by what is left of it."""
    p, q = mass(x, *shapes), rest(x, *shapes)
    large = p > 0.5
    return xn.where(large, xn.log1p(-xn.where(large, q, 0)), xn.log(xn.where(large, 1, p)))


def _reals(operation: str, *arguments: Any) -> list[Array]:
    """Return the arguments in one floating dtype; complex numbers have no order."""
    arrays = inexact(operation, *arguments)
    if dtypes.is_complex(arrays[0].dtype):
        raise TypeError(message(
            operation, "distributions are those of real numbers.",
            got=", ".join([as_array(a).aval.str_long() for a in arguments]),
            hint="xnp.real(x), xnp.imag(x) and xnp.abs(x) are real",
        ))  # fmt: skip
    return arrays


def _continuous_value(row: _Row, kind: str) -> Formula:
    """Return the function of a point, the parameters, the location and the scale."""
    formula = row.formulas[kind]
    _, low, high = _VALUES[kind]

    def value(x: Any, *rest: Any) -> Array:
        is_moved = row.located and not _are_defaults(*rest[-2:])
        x, *parameters = _reals(f"{row.name}.{kind}", x, *rest)  # their types count, moved or not
        if row.located and not is_moved:
            parameters = parameters[:-2]
        located: list[Any] = [*parameters, *([] if is_moved else [0, 1])]
        shapes, (loc, scale) = located[:-2], located[-2:]
        y = (x - loc) / scale if is_moved else x
        first, last = row.bounds(*shapes)
        inside = (y >= first) & (y <= last) & (abs(y) < math.inf)
        z = y
        if is_moved:  # anew, for of infinite points the derivatives by location and scale are NaN
            z = xn.where(inside, x - loc, 0) / xn.where(inside, scale, 1)
        is_valid = row.valid(*shapes)
        used = row.used(shapes, inside & is_valid)
        safe = xn.where(inside & is_valid, z, _interior(*row.bounds(*used)))
        found = formula(safe, *used)
        if kind == "pdf" and is_moved:
            found = found / scale
        elif kind == "logpdf" and is_moved:
            found = found - xn.log(scale)
        found = xn.where(inside, found, xn.where(y < last, low, high) if low != high else low)
        is_defined = (scale > 0) & is_valid & (y == y)
        if row.shapes:  # of infinite parameters a formula may have none
            is_defined = is_defined & (found == found)
        return where_defined(found, is_defined, [x, *parameters])

    return value


def _are_defaults(loc: Any, scale: Any) -> bool:
    """Return whether location and scale are those of a call that gives none."""
    return type(loc) is int and type(scale) is int and (loc, scale) == (0, 1)


def _interior(first: Any, last: Any) -> Any:
    """Return a point between two ends, which does not move with them."""
    if isinstance(first, int | float) and isinstance(last, int | float):
        return min(max(0.5, first + 0.5), last)
    return stop_gradient(xn.minimum(xn.maximum(0.5, first), last))


def where_defined(value: Any, is_defined: Any, arguments: Sequence[Any]) -> Array:
    """Return values; elsewhere NaN, with first and second derivatives that are NaN, too."""
    moved = xn.where(is_defined, 0, sum(arguments[1:], arguments[0]))  # with NaN derivatives
    result: Array = xn.where(is_defined, value, math.nan * moved * moved)
    return cast(result, arguments[0].dtype, all(a.aval.weak_type for a in arguments))


def _discrete_value(row: _Row, kind: str) -> Formula:
    """Return the function of a number, the parameters and the location."""
    formula = row.formulas[kind]
    _, low, high = _VALUES[kind]
    is_mass = kind.endswith("pmf")

    def value(k: Any, *rest: Any) -> Array:
        k, *parameters = _reals(f"{row.name}.{kind}", k, *rest)
        count = len(row.shapes)
        shapes = parameters[:count]
        y = k - parameters[count] if len(parameters) > count else k
        whole = xn.floor(y)
        first, last = row.bounds(*shapes)
        inside = (whole >= first) & (whole <= last) & (abs(y) < math.inf)
        inside = inside & (whole == y) if is_mass else inside
        is_valid = row.valid(*shapes)
        used = row.used(shapes, inside & is_valid)
        found = formula(xn.where(inside & is_valid, whole, row.bounds(*used)[0]), *used)
        found = xn.where(inside, found, low if is_mass else xn.where(whole < first, low, high))
        return where_defined(found, is_valid & (y == y) & (found == found), [k, *parameters])

    return value


def _quantile(row: _Row, kind: str) -> Formula:
    formula = row.formulas[kind]

    def quantile(q: Any, *rest: Any) -> Array:
        q, *parameters = _reals(f"{row.name}.{kind}", q, *rest)
        count = len(row.shapes)
        shapes = parameters[:count]
        inside = (q >= 0) & (q <= 1)
        is_defined = inside & row.valid(*shapes)
        found = formula(xn.where(inside, q, 0.5), *row.used(shapes, is_defined))
        if len(parameters) > count:
            loc, scale = parameters[count:]
            found, is_defined = found * scale + loc, is_defined & (scale > 0)
        return where_defined(found, is_defined, [q, *parameters])

    return quantile


# --- functions ------------------------------------------------------------------------------------


def _distribution(
    row: _Row, makers: dict[str, Any], tail: dict[str, int], source: str
) -> Distribution:
    made = Distribution(row.name, f"The {row.name} distribution: {source}.")
    for kind in row.shown:
        _add_function(made, row, kind, makers[kind], tail, source)
    return made


def _add_function(
    made: Distribution, row: _Row, kind: str, maker: Any, tail: dict[str, int], source: str
) -> None:
    usual = "q" if kind in _QUANTILES else "x"
    names = [row.arguments.get(kind, usual), *row.shapes, *tail]
    function = with_signature(names, tail, maker(row, kind))
    function.__name__, function.__qualname__ = kind, f"{row.name}.{kind}"
    function.__module__ = _HOME
    what = _QUANTILES[kind] if kind in _QUANTILES else _VALUES[kind][0]
    function.__doc__ = (
        f"Return the {what} of the {row.name} distribution, {source}.\n\n"
        f"Args:\n  {', '.join(names)}: numbers that broadcast.\n"
    )
    setattr(made, kind, function)


def with_signature(names: Sequence[str], defaults: dict[str, int], formula: Formula) -> Any:
    """Return a function with these arguments, positional or by name, the last ones with defaults.

    What a call amounts to is found by the types of its operands, as of the array functions.
    """
    parameters = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                          default=defaults.get(n, inspect.Parameter.empty), annotation="ArrayLike")
        for n in names
    ]  # fmt: skip
    signature = inspect.Signature(parameters, return_annotation="Array")
    required, tail = len(names) - len(defaults), tuple(defaults.values())
    evaluate = dispatched(len(names))(formula)

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not required <= len(args) <= len(names):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        else:
            args += tail[len(args) - required :]
        return evaluate(*args)

    function.__signature__ = signature  # type: ignore[attr-defined]
    return boundary(function)


def as_modules(parent: str, distributions: Iterable[Distribution]) -> None:
    """Let `import parent.norm` find the distribution `norm` of a module."""
    for distribution in distributions:
        name = distribution.__name__.rpartition(".")[2]
        sys.modules.setdefault(f"{parent}.{name}", distribution)
