"""The distributions on intervals, on whole numbers (a row each, with its formulas), of vectors.

Sources: N. Johnson, S. Kotz, N. Balakrishnan, Continuous univariate distributions (1994); the names
and standard forms are SciPy's. Formulas take points of the support.
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
from xnp import lax, linalg
from xnp.lax import stop_gradient
from xnp.numpy.dispatch import array_of, cast, convert_to, dispatch_on, inexact
from xnp.scipy import special
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike
from xtree.namespaces import import_by_name

__all__ = [
    "Distribution", "as_modules", "continuous", "discrete",
    "beta", "cauchy", "chi2", "expon", "gamma", "gennorm", "gumbel_l", "gumbel_r", "laplace",
    "logistic", "norm", "pareto", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
    "bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson", "dirichlet", "multinomial",
    "multivariate_normal",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- distribution
# Distributions from rows of formulas: their functions, with edges, locations and scales.
#
# A row says a distribution's parameters, where it lives, and formulas of the standard form, such as
#
#     expon = continuous("expon", (0, inf), logpdf=lambda x: -x, cdf=lambda x: -expm1(-x), ...)
#
# From it come functions as SciPy's, `expon.logpdf(x, loc=0, scale=1)`. Everything that all of them
# share is here, once: promotion; 0 or 1 outside of the support; NaN for NaN, for a scale that is
# not positive and for parameters that are not valid; formulas see only points of the support and
# valid parameters, so that derivatives are right at the edges and outside, too.

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

    def parameters(self, shapes: Sequence[Any], where: Any) -> list[Any]:
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
        usual = row.parameters(shapes, ~zero)
        inside = _interior(*row.bounds(*usual))
        large = xn.exp(log(xn.where(zero, inside, x), *usual))
        return xn.where(
            zero, direct(xn.where(zero, x, inside), *row.parameters(shapes, zero)), large
        )

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
        used = row.parameters(shapes, inside & is_valid)
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
        used = row.parameters(shapes, inside & is_valid)
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
        found = formula(xn.where(inside, q, 0.5), *row.parameters(shapes, is_defined))
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
    evaluate = dispatch_on(len(names))(formula)

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


_INF = math.inf
_LOG_2PI = math.log(2 * math.pi)
_REALS = (-_INF, _INF)
_TAILS = ("cdf", "logcdf", "logpdf", "logsf", "pdf", "sf")


def _log_less(x: Any) -> Any:
    """Return log(1 - e^x) for x <= 0 (M. Maechler, Accurately computing log(1 - exp(-|a|)))."""
    near = x > -math.log(2)
    far = xn.log1p(-xn.exp(xn.where(near, -1, x)))
    return xn.where(near, xn.log(-xn.expm1(xn.where(near, x, -1))), far)


def _log_one_plus_square(x: Any) -> Any:
    """Return log(1 + x^2), also where the square is infinite."""
    far = abs(x) > 1e8
    return xn.where(far, 2 * xn.log(abs(xn.where(far, x, 1))), xn.log1p(xn.where(far, 0, x) ** 2))


def _cotangent(q: Any) -> Any:
    """Return tan(pi (q - 1/2)), the quantile of the Cauchy distribution."""
    upper = q > 0.5
    p = xn.where(upper, 1 - q, q)
    zero, centre = p == 0, p > 0.25
    tangent = xn.where(centre, xn.tan(math.pi * (xn.where(centre, p, 0.5) - 0.5)),
                       -1 / xn.tan(math.pi * xn.where(centre | zero, 0.25, p)))  # fmt: skip
    tangent = xn.where(zero, -_INF, tangent)
    return xn.where(upper, -tangent, tangent)


def _log_mass(a: Any, b: Any) -> Any:
    """Return log(ndtr(b) - ndtr(a)) for a <= b, by the tail in which both are."""
    upper = a > 0
    low, high = xn.where(upper, -b, a), xn.where(upper, -a, b)
    straddles = (a <= 0) & (b > 0)
    first = special.log_ndtr(xn.where(straddles, -1, high))
    alone = low == -_INF  # nothing to take away, and log_ndtr has no derivative there
    second = special.log_ndtr(xn.where(straddles | alone, -2, low))
    less = _log_less(xn.where(alone, -1, xn.minimum(second - first, 0)))
    apart = first + xn.where(alone, 0, less)
    across = xn.log1p(-special.ndtr(xn.where(straddles, a, -1)) - special.ndtr(
        -xn.where(straddles, b, 1)))  # fmt: skip
    return xn.where(straddles, across, apart)


def _share(x: Any, y: Any, a: Any, b: Any) -> Any:
    """Return the mass from x to y as a part of that from a to b."""
    none = x == y  # whose logarithm has no derivatives, while they are the density
    share = xn.exp(_log_mass(xn.where(none, a, x), xn.where(none, b, y)) - _log_mass(a, b))
    low, high = xn.where(none, x, 0), xn.where(none, y, 0)
    z = (low + high) / 2
    rectangle = (high - low) * xn.exp(-(z * z + _LOG_2PI) / 2 - _log_mass(a, b))
    return xn.where(none, rectangle, share)


def _log_t(x: Any, df: Any) -> Any:
    is_normal = df == _INF
    v = xn.where(is_normal, 1, df)
    # Gamma((v + 1) / 2) / Gamma(v / 2) as one quotient: their logarithms would cancel
    scale = xn.log(special.poch(v / 2, 0.5)) - xn.log(v * math.pi) / 2
    value = scale - (v + 1) / 2 * _log_one_plus_square(x / xn.sqrt(v))
    return xn.where(is_normal, -(x * x + _LOG_2PI) / 2, value)


def _unless_infinite(formula: Formula, limit: float, at_one: float) -> Formula:
    """Return a formula of x and a parameter that is constant where that is infinite."""

    def guard(x: Any, p: Any) -> Any:
        is_infinite = p == _INF
        usual = formula(x, xn.where(is_infinite, 4, p))  # has derivatives everywhere
        return xn.where(is_infinite, xn.where(x == 1, at_one, limit), usual)

    return guard


norm = continuous(
    "norm", _REALS, "exp(-x^2 / 2) / sqrt(2 pi)", shown=(*_TAILS, "isf", "ppf"),
    logpdf=lambda x: -(x * x + _LOG_2PI) / 2,
    cdf=special.ndtr, logcdf=special.log_ndtr,
    sf=lambda x: special.ndtr(-x), logsf=lambda x: special.log_ndtr(-x),
    ppf=special.ndtri, isf=lambda q: -special.ndtri(q),
)  # fmt: skip

uniform = continuous(
    "uniform", (0, 1), "1 for 0 <= x <= 1", shown=("cdf", "logpdf", "pdf", "ppf"),
    logpdf=lambda x: 0 * x, cdf=lambda x: x, ppf=lambda q: q,
)  # fmt: skip

expon = continuous(
    "expon", (0, _INF), "exp(-x) for x >= 0", shown=(*_TAILS, "ppf"),
    logpdf=lambda x: -x,
    cdf=lambda x: -xn.expm1(-x), logcdf=lambda x: _log_less(-x),
    sf=lambda x: xn.exp(-x), logsf=lambda x: -x,
    ppf=lambda q: -xn.log1p(-q),
)  # fmt: skip

laplace = continuous(
    "laplace", _REALS, "exp(-|x|) / 2", shown=("cdf", "logpdf", "pdf"),
    logpdf=lambda x: -abs(x) - math.log(2),
    cdf=lambda x: xn.where(x < 0, xn.exp(-abs(x)) / 2, 1 - xn.exp(-abs(x)) / 2),
)  # fmt: skip

logistic = continuous(
    "logistic", _REALS, "exp(-x) / (1 + exp(-x))^2",
    shown=("cdf", "isf", "logpdf", "pdf", "ppf", "sf"), arguments={"ppf": "x", "isf": "x"},
    logpdf=lambda x: -abs(x) - 2 * xn.log1p(xn.exp(-abs(x))),
    cdf=special.expit, sf=lambda x: special.expit(-x),
    ppf=special.logit, isf=lambda q: -special.logit(q),
)  # fmt: skip

cauchy = continuous(
    "cauchy", _REALS, "1 / (pi (1 + x^2))", shown=(*_TAILS, "isf", "ppf"),
    logpdf=lambda x: -math.log(math.pi) - _log_one_plus_square(x),
    cdf=lambda x: xn.arctan2(1, -x) / math.pi, sf=lambda x: xn.arctan2(1, x) / math.pi,
    ppf=_cotangent, isf=lambda q: -_cotangent(q),
)  # fmt: skip


def _exp_of_exponent(x: Any) -> Any:
    """Return e^x for e^(-e^x), which is 0 from x = 11 on in every dtype: derivatives are finite."""
    return xn.exp(xn.minimum(x, 11))


gumbel_r = continuous(
    "gumbel_r", _REALS, "exp(-(x + exp(-x)))", shown=(*_TAILS, "ppf"), arguments={"ppf": "p"},
    logpdf=lambda x: -(x + xn.exp(-x)),
    pdf=lambda x: xn.exp(-xn.maximum(x, -11) - _exp_of_exponent(-x)),
    cdf=lambda x: xn.exp(-_exp_of_exponent(-x)), logcdf=lambda x: -xn.exp(-x),
    sf=lambda x: -xn.expm1(-_exp_of_exponent(-x)),
    logsf=lambda x: _log_less(-_exp_of_exponent(-x)),
    ppf=lambda q: -xn.log(-xn.log(q)),
)  # fmt: skip

gumbel_l = continuous(
    "gumbel_l", _REALS, "exp(x - exp(x))", shown=(*_TAILS, "ppf"), arguments={"ppf": "p"},
    logpdf=lambda x: x - xn.exp(x),
    pdf=lambda x: xn.exp(xn.minimum(x, 11) - _exp_of_exponent(x)),
    cdf=lambda x: -xn.expm1(-_exp_of_exponent(x)),
    logcdf=lambda x: _log_less(-_exp_of_exponent(x)),
    sf=lambda x: xn.exp(-_exp_of_exponent(x)), logsf=lambda x: -xn.exp(x),
    ppf=lambda q: xn.log(-xn.log1p(-q)),
)  # fmt: skip

gamma = continuous(
    "gamma", (0, _INF), "x^(a-1) exp(-x) / Gamma(a) for x >= 0", shapes=("a",), shown=_TAILS,
    valid=lambda a: a > 0,
    logpdf=lambda x, a: special.xlogy(a - 1, x) - x - special.gammaln(a),
    at_zeros=(lambda x, a: (x == 0) | (a == _INF),
              _unless_infinite(lambda x, a: x ** (a - 1) * xn.exp(-x - special.gammaln(a)), 0, 0)),
    cdf=lambda x, a: special.gammainc(a, x), sf=lambda x, a: special.gammaincc(a, x),
)  # fmt: skip

chi2 = continuous(
    "chi2", (0, _INF), "x^(df/2-1) exp(-x/2) / (2^(df/2) Gamma(df/2)) for x >= 0", shapes=("df",),
    shown=_TAILS, valid=lambda df: df > 0,
    logpdf=lambda x, df: special.xlogy(df / 2 - 1, x) - x / 2 - special.gammaln(df / 2)
    - df * (math.log(2) / 2),
    at_zeros=(lambda x, df: (x == 0) | (df == _INF), _unless_infinite(
        lambda x, df: (x / 2) ** (df / 2 - 1) / 2 * xn.exp(-x / 2 - special.gammaln(df / 2)),
        0, 0)),
    cdf=lambda x, df: special.gammainc(df / 2, x / 2),
    sf=lambda x, df: special.gammaincc(df / 2, x / 2),
)  # fmt: skip

beta = continuous(
    "beta", (0, 1), "x^(a-1) (1-x)^(b-1) / B(a, b) for 0 <= x <= 1", shapes=("a", "b"),
    shown=_TAILS, valid=lambda a, b: (a > 0) & (b > 0),
    logpdf=lambda x, a, b: special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x)
    - special.betaln(a, b),
    at_zeros=(lambda x, a, b: (x == 0) | (x == 1),
              lambda x, a, b: x ** (a - 1) * (1 - x) ** (b - 1) * xn.exp(-special.betaln(a, b))),
    cdf=lambda x, a, b: special.betainc(a, b, x),
    sf=lambda x, a, b: special.betainc(b, a, 1 - x),
)  # fmt: skip

pareto = continuous(
    "pareto", (1, _INF), "b / x^(b+1) for x >= 1", shapes=("b",), shown=(*_TAILS, "ppf"),
    valid=lambda b: b > 0,
    logpdf=lambda x, b: xn.log(b) - (b + 1) * xn.log(x),
    cdf=_unless_infinite(lambda x, b: -xn.expm1(-b * xn.log(x)), 1, math.nan),
    logcdf=_unless_infinite(lambda x, b: _log_less(-b * xn.log(x)), 0, math.nan),
    sf=_unless_infinite(lambda x, b: xn.exp(-b * xn.log(x)), 0, math.nan),
    logsf=lambda x, b: -b * xn.log(x),
    ppf=lambda q, b: xn.exp(-xn.log1p(-q) / b),
)  # fmt: skip

t = continuous(
    "t", _REALS, "Gamma((df+1)/2) / (sqrt(pi df) Gamma(df/2)) (1 + x^2/df)^(-(df+1)/2)",
    shapes=("df",), shown=("logpdf", "pdf"), valid=lambda df: df > 0, logpdf=_log_t,
)  # fmt: skip

truncnorm = continuous(
    "truncnorm", lambda a, b: (a, b), "that of norm for a <= x <= b, scaled to a total of 1",
    shapes=("a", "b"), shown=_TAILS, valid=lambda a, b: a < b, ordinary=(-1.0, 2.0),
    logpdf=lambda x, a, b: -(x * x + _LOG_2PI) / 2 - _log_mass(a, b),
    logcdf=lambda x, a, b: _log_mass(a, x) - _log_mass(a, b),
    logsf=lambda x, a, b: _log_mass(x, b) - _log_mass(a, b),
    cdf=lambda x, a, b: _share(a, x, a, b), sf=lambda x, a, b: _share(x, b, a, b),
)  # fmt: skip


def _cdf_of_gennorm(x: Any, beta: Any) -> Any:
    zero = x == 0  # where |x|^beta has no derivatives, while they are the density
    tail = special.gammaincc(1 / beta, abs(xn.where(zero, 1, x)) ** beta) / 2
    density = xn.exp(xn.log(beta / 2) - special.gammaln(1 / beta))
    # the integral of 1 - |x|^beta + ..., which has no second derivative where beta is below 2
    smooth = beta >= 2
    power = xn.where(smooth, (x * x) ** (xn.where(smooth, beta, 2) / 2) / (beta + 1), 0)
    return xn.where(zero, 0.5 + x * density * (1 - power), xn.where(x < 0, tail, 1 - tail))


gennorm = continuous(
    "gennorm", _REALS, "beta / (2 Gamma(1/beta)) exp(-|x|^beta)", shapes=("beta",),
    shown=("cdf", "logpdf", "pdf"), located=False, valid=lambda beta: (beta > 0) & (beta < _INF),
    logpdf=lambda x, beta: xn.log(beta / 2) - special.gammaln(1 / beta) - abs(x) ** beta,
    at_zeros=(lambda x, beta: abs(x) ** beta > 1e4, lambda x, beta: 0 * x),
    cdf=_cdf_of_gennorm,
)  # fmt: skip

vonmises = continuous(
    "vonmises", _REALS, "exp(kappa cos(x)) / (2 pi I_0(kappa))", shapes=("kappa",),
    shown=("logpdf", "pdf"), located=False, valid=lambda kappa: kappa >= 0,
    logpdf=lambda x, kappa: -2 * kappa * xn.sin(x / 2) ** 2
    - xn.log(2 * math.pi * special.i0e(kappa)),
)  # fmt: skip

wrapcauchy = continuous(
    "wrapcauchy", (0, 2 * math.pi), "(1 - c^2) / (2 pi (1 + c^2 - 2 c cos(x))), 0 <= x <= 2 pi",
    shapes=("c",), shown=("logpdf", "pdf"), located=False, valid=lambda c: (c > 0) & (c < 1),
    logpdf=lambda x, c: xn.log1p(-c * c) - _LOG_2PI
    - xn.log((1 - c) ** 2 + 4 * c * xn.sin(x / 2) ** 2),
)  # fmt: skip


# --------------------------------------------------------------------------- discrete distributions
# The distributions on whole numbers: a row each, with its probabilities and formulas.
#
# Sources: N. Johnson, A. Kemp, S. Kotz, Univariate discrete distributions (2005); the names and
# forms are SciPy's. Formulas take numbers of the support.

_MASSES = ("logpmf", "pmf")


def _log_binomial(n: Any, k: Any) -> Any:
    return -xn.log1p(n) - special.betaln(n - k + 1, k + 1)


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _at_an_end(*arguments: Any) -> Any:
    """Return where the probability, the last parameter, is 0 or 1."""
    return (arguments[-1] == 0) | (arguments[-1] == 1)


def _is_count(n: Any) -> Any:
    return (n >= 0) & (xn.floor(n) == n)


bernoulli = discrete(
    "bernoulli", (0, 1), "p for k = 1, 1 - p for k = 0", shapes=("p",), shown=_MASSES,
    without_location=("cdf", "ppf"), valid=_is_probability,
    pmf=lambda k, p: xn.where(k == 1, p, 1 - p),
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: xn.where(k < 1, 1 - p, 1),
    ppf=lambda q, p: xn.where(q == 0, -1, xn.where(q <= 1 - p, 0, 1)),
)  # fmt: skip

binom = discrete(
    "binom", lambda n, p: (0, n), "n! / (k! (n-k)!) p^k (1-p)^(n-k) for 0 <= k <= n",
    shapes=("n", "p"), shown=_MASSES, valid=lambda n, p: _is_count(n) & _is_probability(p),
    ordinary=(1.0, 0.5),
    at_zeros=(_at_an_end,
              lambda k, n, p: xn.exp(_log_binomial(n, k)) * p**k * (1 - p) ** (n - k)),
    logpmf=lambda k, n, p: _log_binomial(n, k) + special.xlogy(k, p)
    + special.xlog1py(n - k, -p),
)  # fmt: skip

betabinom = discrete(
    "betabinom", lambda n, a, b: (0, n), "n! / (k! (n-k)!) B(k+a, n-k+b) / B(a, b)",
    shapes=("n", "a", "b"), shown=_MASSES, ordinary=(1.0, 0.5, 0.5),
    valid=lambda n, a, b: _is_count(n) & (a > 0) & (b > 0),
    logpmf=lambda k, n, a, b: _log_binomial(n, k) + special.betaln(k + a, n - k + b)
    - special.betaln(a, b),
)  # fmt: skip

geom = discrete(
    "geom", (1, _INF), "(1-p)^(k-1) p for k >= 1", shapes=("p",), shown=_MASSES,
    valid=lambda p: (p > 0) & (p <= 1),
    at_zeros=(_at_an_end, lambda k, p: (1 - p) ** (k - 1) * p),
    logpmf=lambda k, p: special.xlog1py(k - 1, -p) + xn.log(p),
)  # fmt: skip

nbinom = discrete(
    "nbinom", (0, _INF), "Gamma(k+n) / (k! Gamma(n)) p^n (1-p)^k for k >= 0", shapes=("n", "p"),
    shown=_MASSES, valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    at_zeros=(_at_an_end,
              lambda k, n, p: p**n * (1 - p) ** k * xn.exp(-special.betaln(n, k + 1)) / (k + n)),
    logpmf=lambda k, n, p: -xn.log(k + n) - special.betaln(n, k + 1) + n * xn.log(p)
    + special.xlog1py(k, -p),
)  # fmt: skip

poisson = discrete(
    "poisson", (0, _INF), "mu^k exp(-mu) / k! for k >= 0", shapes=("mu",),
    shown=(*_MASSES, "cdf"), valid=lambda mu: mu >= 0,
    at_zeros=(lambda k, mu: mu == 0,
              lambda k, mu: mu**k * xn.exp(-mu - special.gammaln(k + 1))),
    logpmf=lambda k, mu: special.xlogy(k, mu) - mu - special.gammaln(k + 1),
    cdf=lambda k, mu: special.gammaincc(k + 1, mu),
)  # fmt: skip

# from where on the series in 1 / mu is right to 1e-11, or to 1e-7 in single precision, where the
# logarithms of the sum lose digits the sooner
_FAR, _FAR_SINGLE = 60.0, 20.0


def _entropy(mu: Any, loc: Any) -> Array:
    """Return -sum p log(p), far out by its series in 1 / mu."""
    mu, loc = [cast(x, x.dtype) for x in inexact("poisson.entropy", mu, loc)]
    is_defined = mu >= 0
    bound = _FAR if mu.dtype == dtypes.float64 else _FAR_SINGLE
    near = xn.expand_dims(xn.where(mu > 0, xn.minimum(mu, bound), 1), -1)
    k = xn.arange(170).astype(mu.dtype)  # beyond, probabilities are below 1e-25
    log_p = special.xlogy(k, near) - near - special.gammaln(k + 1)
    total = -(xn.exp(log_p) * xn.where(log_p > -_INF, log_p, 0)).sum(-1)
    u = 1 / xn.maximum(mu, bound)
    series = u * (1 / 12 + u * (1 / 24 + u * (19 / 360 + u * (9 / 80 + u * (863 / 2520)))))
    far = (1 + math.log(2 * math.pi) - xn.log(u)) / 2 - series
    value = xn.where(mu > bound, far, xn.where(mu > 0, total, special.entr(mu))) + 0 * loc
    return where_defined(value, is_defined, [mu, loc])


poisson.entropy = with_signature(("mu", "loc"), {"loc": 0}, _entropy)  # type: ignore[attr-defined]
poisson.entropy.__name__, poisson.entropy.__qualname__ = "entropy", "poisson.entropy"
poisson.entropy.__module__ = poisson.logpmf.__module__
poisson.entropy.__doc__ = "Return the entropy of the poisson distribution, in nats, for mu >= 0."


# ------------------------------------------------------------------------------------- multivariate
# The distributions of vectors: dirichlet, multinomial, multivariate_normal.
#
# Sources: S. Kotz, N. Balakrishnan, N. Johnson, Continuous multivariate distributions (2000), and
# Discrete multivariate distributions (1997).

# --- dirichlet ------------------------------------------------------------------------------------


@boundary
def _dirichlet_logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the logarithm of the density of the dirichlet distribution.

        Gamma(sum alpha_i) prod x_i^(alpha_i - 1) / Gamma(alpha_i)

    Args:
      x: points of the simplex, of shape (k,) or (k, n); or (k - 1, ...) without the last
        coordinate, which is one less their sum.
      alpha: positive numbers, of shape (k,).

    Returns:
      An array of shape () or (n,); -inf outside of the simplex, NaN where alpha is not positive.
    """
    x, alpha = inexact("dirichlet.logpdf", x, alpha)
    require(
        alpha.ndim == 1 and x.ndim >= 1 and x.shape[0] in (alpha.size, alpha.size - 1), "dirichlet",
        "the points do not fit the parameters.", got={"x": x, "alpha": alpha},
        expected="alpha of shape (k,), x of shape (k, ...) or (k - 1, ...)",
    )  # fmt: skip
    if x.shape[0] == alpha.size - 1:
        x = xn.concatenate([x, 1 - x.sum(0, keepdims=True)])
    a = alpha.reshape((-1,) + (1,) * (x.ndim - 1))
    total = x.sum(0)
    tolerance = 10 * x.shape[0] * float(dtypes.finfo(x.dtype).eps)
    inside = ((x >= 0) & (x <= 1)).all(0) & (abs(total - 1) <= tolerance)
    safe = xn.where(inside, x, 0.5)
    terms = special.xlogy(a - 1, safe) - special.gammaln(a)
    value = xn.where(inside, terms.sum(0) + special.gammaln(alpha.sum()), -math.inf)
    result: Array = xn.where((alpha > 0).all() & ~xn.isnan(total), value, math.nan)
    return result


@boundary
def _dirichlet_pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the density of the dirichlet distribution; arguments as of `logpdf`."""
    return xn.exp(_dirichlet_logpdf(x, alpha))


# --- multinomial ----------------------------------------------------------------------------------


@boundary
def _multinomial_logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the logarithm of the probability n! prod p_i^x_i / x_i! of counts x.

    Args:
      x: counts, of shape (..., k).
      n: their sum, broadcast with the leading dimensions.
      p: probabilities, of shape (..., k).

    Returns:
      An array of the leading dimensions; -inf where the counts do not sum to n, or are not whole.
    """
    (p,) = inexact("multinomial.logpmf", p)
    x, n = [_as_numbers(array_of(count, "multinomial.logpmf"), p) for count in (x, n)]
    x, n, p = inexact("multinomial.logpmf", x, n, p)
    inside = (x.sum(-1) == n) & ((x >= 0) & (xn.floor(x) == x)).all(-1)
    safe = xn.where(inside[..., None], x, 0)
    terms = special.xlogy(safe, p) - special.gammaln(safe + 1)
    value = special.gammaln(n + 1) + terms.sum(-1)
    result: Array = xn.where(inside, value, -math.inf)
    return result


def _as_numbers(counts: Array, p: Array) -> Array:
    """Return counts, which may be integers where probabilities are not, as numbers like these."""
    return counts if dtypes.is_inexact(counts.aval.dtype) else convert_to(counts, p.aval.dtype)


@boundary
def _multinomial_pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the probability of counts; arguments as of `logpmf`."""
    return xn.exp(_multinomial_logpmf(x, n, p))


# --- multivariate_normal --------------------------------------------------------------------------


def _normal_logpdf(
    x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None
) -> Array:
    """Return the logarithm of the density of the multivariate normal distribution.

        exp(-(x - mean)^T cov^-1 (x - mean) / 2) / sqrt((2 pi)^k det(cov))

    Args:
      x: points, of shape (..., k); of any shape where mean and cov have no dimensions.
      mean: of shape (..., k), or a number.
      cov: positive definite matrices of shape (..., k, k), or a number, a variance.
      allow_singular: whether cov may be singular; the density is then that on its range, points
        beside which have the density 0, and the matrix is not batched.

    Returns:
      An array of the leading dimensions; NaN where cov is not positive definite.
    """
    x, mean, cov = inexact("multivariate_normal.logpdf", x, mean, cov)
    if not mean.ndim and not cov.ndim:
        result: Array = -((x - mean) ** 2) / (2 * cov) - xn.log(2 * math.pi * cov) / 2
        return result
    mean = mean if mean.ndim else xn.broadcast_to(mean, cov.shape[:1])
    size = mean.shape[-1]
    cov = cov if cov.ndim else xn.eye(size, dtype=cov.dtype) * cov
    require(
        cov.ndim >= 2 and cov.shape[-2:] == (size, size), "multivariate_normal",
        "the covariance does not fit the mean.", got={"mean": mean, "cov": cov},
        expected="mean of shape (..., k), cov of shape (..., k, k)",
    )  # fmt: skip
    difference = (x if x.ndim else xn.broadcast_to(x, (size,))) - mean
    return (_on_the_range if allow_singular else _of_full_rank)(difference, cov)


def _of_full_rank(y: Array, cov: Array) -> Array:
    """Return the logarithm by Cholesky's factor L of cov: |L^-1 y|^2 and the sum of log L_ii."""
    factor = lax.linalg.cholesky(cov)
    shape = xn.broadcast_shapes(y.shape[:-1], cov.shape[:-2])
    y = xn.broadcast_to(y, (*shape, y.shape[-1]))
    factor = xn.broadcast_to(factor, (*shape, *cov.shape[-2:]))
    z = lax.linalg.triangular_solve(factor, y[..., None], left_side=True, lower=True)[..., 0]
    logs = xn.log(xn.diagonal(factor, axis1=-1, axis2=-2)).sum(-1)
    size = y.shape[-1]
    result: Array = -(z * z).sum(-1) / 2 - logs - size / 2 * math.log(2 * math.pi)
    return result


def _on_the_range(y: Array, cov: Array) -> Array:
    """Return the logarithm by the eigenvalues that are not negligible (SciPy's 1e6 eps)."""
    values, vectors = linalg.eigh(cov)
    cut = 1e6 * float(dtypes.finfo(cov.dtype).eps) * abs(values).max(-1, keepdims=True)
    kept = values > cut
    safe = xn.where(kept, values, 1)
    z = xn.matvec(vectors.mT, y)
    distance = xn.where(kept, z * z / safe, 0).sum(-1)
    beside = (xn.where(kept, 0, z) ** 2).sum(-1) > cut[..., 0]
    rank = kept.sum(-1)
    value = -(distance + xn.log(safe).sum(-1) + rank * math.log(2 * math.pi)) / 2
    result: Array = xn.where(beside, -math.inf, value)
    return result


def _normal_pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Return the density of the multivariate normal distribution; arguments as of `logpdf`."""
    return xn.exp(_normal_logpdf(x, mean, cov))


def _make_distribution(name: str, **functions: Any) -> Distribution:
    made = Distribution(name, f"The {name} distribution, of vectors.")
    for kind, function in functions.items():
        function.__name__, function.__qualname__ = kind, f"{name}.{kind}"
        function.__module__ = "xnp.scipy.stats"
        setattr(made, kind, function)
    return made


dirichlet = _make_distribution("dirichlet", logpdf=_dirichlet_logpdf, pdf=_dirichlet_pdf)
multinomial = _make_distribution("multinomial", logpmf=_multinomial_logpmf, pmf=_multinomial_pmf)
multivariate_normal = _make_distribution(
    "multivariate_normal", logpdf=_normal_logpdf, pdf=_normal_pdf
)
