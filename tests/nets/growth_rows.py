"""What the net of growth repeats: primitives, samplers, public functions, control flow, rules.

A row is a step from arrays to arrays and the arrays that it begins with. `program` makes of it a
program of k of them, in a chain or side by side, or the gradient of one.

Neighbours: `test_growth` counts, `sample_rows` has the operands of primitives, `public_functions`
the forms of functions.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import xad.testing  # noqa: F401 (the primitives of these packages have rows)
import xpar.collectives  # noqa: F401
import xstack
import xtree
from tests.nets.public_functions import FORMS, functions
from tests.sample_rows import AXIS_SIZE, COLLECTIVES, all_rows
from xprim import Array, dtypes, from_numpy, get_primitive
from xprim.jaxpr import subjaxprs
from xprim.testing import Sample
from xstack import lax, nn, numpy as xnp, random

Step = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """A step, and the operands that it begins with."""

    name: str
    step: Step
    operands: tuple[Any, ...]


KINDS = ("chain", "side by side", "gradient of a chain", "gradient side by side")


def program(row: Row, kind: str, k: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return a program of k steps, and its arguments."""
    fun = _chain(row.step, k) if "chain" in kind else _side_by_side(row.step, k)
    count = 1 if "chain" in kind else k
    arguments = list(row.operands) * count
    if "gradient" not in kind:
        return fun, arguments
    numbers = [i for i, x in enumerate(arguments) if dtypes.is_floating(x.dtype)]

    def loss(*xs: Any) -> Any:
        return sum([_number(x) for x in fun(*xs) if dtypes.is_inexact(x.dtype)])

    return xstack.grad(loss, tuple(numbers)), arguments


def names_of_equations(jaxpr: Any) -> Iterator[str]:
    """Yield the primitive of each equation of a program, those of inner programs with them."""
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for inner in subjaxprs(eqn.params):
            yield from names_of_equations(inner)


def equations(jaxpr: Any) -> int:
    """Return how many equations a program has, those of inner programs with them."""
    return sum(1 for _ in names_of_equations(jaxpr))


def has_gradient(row: Row) -> bool:
    """Return whether a row has an operand to differentiate in, and a result that is a number."""
    return any(dtypes.is_floating(x.dtype) for x in row.operands)


def _arrays(tree: Any) -> list[Any]:
    return [x for x in xtree.leaves(tree) if isinstance(x, Array)]


def _number(x: Any) -> Any:
    return xnp.sum(xnp.real(x)).astype("float32")


def _chain(step: Step, k: int) -> Step:
    def fun(*xs: Any) -> list[Any]:
        outs = []
        for _ in range(k):
            outs = _arrays(step(*xs))
            xs = tuple([_stored(_changed(x, outs)) for x in xs])
        return [*outs, *xs]

    return fun


def _changed(x: Any, outs: Sequence[Any]) -> Any:
    """Return an operand that depends on results, so that the next step has to wait for them."""
    numbers = [y for y in outs if dtypes.is_inexact(y.dtype)]
    if dtypes.is_inexact(x.dtype) and numbers:
        return x + (sum([_number(y) for y in numbers]) * 0.25).astype(x.dtype)
    others = [y for y in outs if not dtypes.is_extended(y.dtype)]
    if not others:
        return x
    bit = xnp.any(others[0] != 0)
    if x.dtype == bool:
        return x ^ bit
    return x + bit.astype(x.dtype)


def _stored(x: Any) -> Any:
    """Return an operand that XLA computes once: it fuses nothing with a branch.

    Sums that it fuses with each later step are computed again there, whatever the step is. The
    branch depends on the data: of integers it knows that they equal themselves.
    """
    if x.size == 0 or dtypes.is_extended(x.dtype):
        return x
    first = xnp.real(xnp.ravel(x)[0])
    is_usual = first if x.dtype == bool else first != 77
    return lax.cond(is_usual, lambda x: x, xnp.zeros_like, x)


def _side_by_side(step: Step, k: int) -> Step:
    def fun(*xs: Any) -> list[Any]:
        size = len(xs) // k
        return [y for i in range(k) for y in _arrays(step(*xs[i * size : (i + 1) * size]))]

    return fun


# ------------------------------------------------------------------------------------ primitives


def primitives() -> Iterator[Row]:
    """Yield a row for each primitive that has samples."""
    for name, samples in sorted(all_rows().items()):
        full = [s for s in samples if s.operands and all(np.size(x) for x in s.operands)]
        if full:
            sample = max(full[:8], key=lambda s: max(np.ndim(x) for x in s.operands))
            yield Row(name, _bound(name, sample), tuple(sample.arrays()))


def _bound(name: str, sample: Sample) -> Step:
    def step(*xs: Any) -> Any:
        return get_primitive(name).bind(*xs, **sample.params)

    if name not in COLLECTIVES:
        return step
    return xstack.vmap(step, in_axes=None, axis_name="i", axis_size=AXIS_SIZE)


# -------------------------------------------------------------------------------------- samplers

KEY = random.PRNGKey(7)
_THREE = np.float32([0.5, 1.5, 2.5])

# What the samplers take after their key, where that is not a shape.
SAMPLER_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(["bernoulli", "geometric"], (np.float32([0.2, 0.5, 0.8]),)),
    **dict.fromkeys(
        ["chisquare", "dirichlet", "gamma", "loggamma", "lognormal", "pareto", "poisson",
         "rayleigh", "t", "wald"], (_THREE,)),
    **dict.fromkeys(["beta", "f"], (_THREE, _THREE)),
    "double_sided_maxwell": (_THREE, _THREE, (3,)),
    "weibull_min": (_THREE, _THREE, (3,)),
    "binomial": (np.float32(9), np.float32([0.2, 0.5, 0.8])),
    "multinomial": (np.float32(9), np.float32([0.2, 0.5, 0.3])),
    "triangular": (np.float32(0), np.float32([0.2, 0.5, 0.8]), np.float32(1)),
    "truncated_normal": (np.float32(-1), np.float32([0.2, 0.5, 0.8])),
    "multivariate_normal": (_THREE, np.eye(3, dtype=np.float32)),
    "categorical": (_THREE,),
}  # fmt: skip
_SAMPLER_STATIC: dict[str, tuple[Any, ...]] = {
    "ball": (3,), "choice": (5, (3,)), "clone": (), "fold_in": (7,), "key_data": (),
    "generalized_normal": (2.0, (3,)), "orthogonal": (3,), "permutation": (5,), "split": (2,),
    "randint": ((3,), 0, 10),
}  # fmt: skip
_NO_ARRAYS = ("key_impl", "PRNGKey", "key")


def samplers() -> Iterator[Row]:
    """Yield a row for each function that takes a key first."""
    for name in sorted(dir(random)):
        value = getattr(random, name)
        if name[0] == "_" or not inspect.isfunction(value) or name in _NO_ARRAYS:
            continue
        if next(iter(inspect.signature(value).parameters)) not in ("key", "keys"):
            continue
        arrays = SAMPLER_ARGUMENTS.get(name, ())
        static = () if arrays else _SAMPLER_STATIC.get(name, ((3,),))
        kept = tuple([a for a in arrays if not isinstance(a, tuple)])
        static += tuple([a for a in arrays if isinstance(a, tuple)])
        yield Row(name, _sampled(value, static), (KEY, *map(xnp.asarray, kept)))
    for name in sorted(nn.initializers.__all__):
        init = getattr(nn.initializers, name)
        if not name.endswith(("_normal", "_uniform")):
            init = {"normal": init, "uniform": init, "orthogonal": init}.get(name)
        if init is not None:
            yield Row(f"initializers.{name}", _sampled(init(), ((4, 3),)), (KEY,))


def _sampled(sampler: Step, static: tuple[Any, ...]) -> Step:
    def step(key: Any, *arrays: Any) -> Any:
        own, other = random.split(key)
        return sampler(own, *arrays, *static), other

    return step


# ------------------------------------------------------------------------------ public functions


def _operands() -> list[tuple[Any, ...]]:
    floats = [from_numpy(np.full(s, 0.5, np.float32)) for s in ((3, 3), (3,), (2, 2, 2), ())]
    whole = [from_numpy(np.full(s, 1, np.int32)) for s in ((3, 3), (3,), ())]
    others = [from_numpy(np.ones(3, d)) for d in (bool, "complex64", "uint8")]
    mixed = [(floats[1], whole[1], whole[2]), (others[0], floats[1], floats[1]),
             (floats[1], whole[2], whole[2]), (floats[1], floats[1], whole[2])]  # fmt: skip
    return [*[(x, x, x) for x in (*floats, *whole, *others)], *mixed]


def public_functions() -> Iterator[Row]:
    """Yield a row for each public function, in the first form that can be traced."""
    for path in functions():
        yield Row(path, lambda: None, ())


def with_form(path: str) -> Row | None:
    """Return the row of a public function, None where it needs the values of its operands."""
    function = functions()[path]
    for count, form in FORMS.values():
        for arrays in _operands():
            for number in (1, 3):

                def step(*xs: Any, form: Any = form, number: int = number) -> Any:
                    args, kwargs = form(xs, (number, number))
                    return function(*args, **kwargs)

                row = Row(path, step, arrays[:count])
                if count and _can_be_traced(row):
                    return row
    return None


def _can_be_traced(row: Row) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jaxpr, _ = xstack.make_jaxpr(lambda *xs: _arrays(row.step(*xs)), return_shape=True)(
                *row.operands
            )
    except Exception:
        return False
    return bool(jaxpr.out_avals)


# ----------------------------------------------------------------------- control flow and rules

X = xnp.asarray(np.float32([0.5, 1.0, 1.5]))
W = xnp.asarray(np.eye(3, dtype=np.float32))


def _layer(x: Any, w: Any) -> Any:
    return xnp.tanh(xnp.dot(w, x))


def _custom_jvp() -> Step:
    @xstack.custom_jvp
    def f(x: Any, w: Any) -> Any:
        return _layer(x, w)

    @f.defjvp
    def _rule(primals: Any, tangents: Any) -> Any:
        return f(*primals), tangents[0] * 2 + primals[0]

    return f


def _custom_vjp() -> Step:
    @xstack.custom_vjp
    def f(x: Any, w: Any) -> Any:
        return _layer(x, w)

    f.defvjp(lambda x, w: (f(x, w), (x, w)), lambda res, ct: (ct * res[0], res[1]))
    return f


def _custom_vmap() -> Step:
    @xstack.custom_batching.custom_vmap
    def f(x: Any, w: Any) -> Any:
        return _layer(x, w)

    @f.def_vmap
    def _rule(size: int, mapped: Any, x: Any, w: Any) -> Any:
        return xnp.tanh(xnp.einsum("bij,bj->bi", w, x)), True

    return f


def _dropout(x: Any, w: Any) -> Any:
    keep = random.bernoulli(random.fold_in(KEY, x[0].astype("uint32")), 0.5, x.shape)
    return xnp.where(keep, _layer(x, w), 0.0)


CONTROL: dict[str, Step] = {
    "scan": lambda x, w: lax.scan(lambda c, r: (_layer(c, w), c * r), x, w),
    "scan backwards": lambda x, w: lax.scan(lambda c, r: (c + r, c), x, w, reverse=True),
    "scan with dropout": lambda x, w: lax.scan(lambda c, r: (_dropout(c, w), c * r), x, w),
    "unrolled scan": lambda x, w: lax.scan(lambda c, r: (_layer(c, w), c), x, w, unroll=True),
    "cond": lambda x, w: lax.cond(x[0] > 0, _layer, lambda x, w: x * 2, x, w),
    "switch": lambda x, w: lax.switch(x[0].astype("int32"), [_layer, lambda x, w: x], x, w),
    "while_loop": lambda x, w: lax.stop_gradient(
        lax.while_loop(lambda c: c[0] < 9, lambda c: c * 2, lax.stop_gradient(x))) + x,
    "fori_loop": lambda x, w: lax.fori_loop(0, 3, lambda i, c: _layer(c, w), x),
    "map": lambda x, w: lax.map(lambda r: _layer(r, w), w),
    "associative_scan": lambda x, w: lax.associative_scan(xnp.multiply, w),
    "cond in scan": lambda x, w: lax.scan(
        lambda c, r: (lax.cond(c[0] > 0, _layer, lambda x, w: x, c, w), c), x, w),
    "jit": lambda x, w: xstack.jit(_layer)(x, w),
    "jit with a draw": lambda x, w: xstack.jit(_dropout)(x, w),
    "dropout": _dropout,
    "checkpoint": lambda x, w: xstack.checkpoint(_layer)(x, w),
    "checkpoint of a scan": lambda x, w: xstack.checkpoint(
        lambda x, w: lax.scan(lambda c, r: (_layer(c, w), c * r), x, w))(x, w),
    "vmap": lambda x, w: xstack.vmap(_layer, (None, 0))(x, xnp.stack([w, w])),
    "vmap of a scan": lambda x, w: xstack.vmap(
        lambda r: lax.scan(lambda c, _: (_layer(c, w), c), r, None, 2))(w),
    "jvp": lambda x, w: xstack.jvp(lambda x: _layer(x, w), (x,), (x,)),
    "grad": lambda x, w: xstack.grad(lambda x: _layer(x, w).sum())(x),
    "hessian": lambda x, w: xstack.hessian(lambda x: _layer(x, w).sum())(x),
    "custom_jvp": _custom_jvp(),
    "custom_vjp": _custom_vjp(),
    "custom_vmap": lambda x, w: xstack.vmap(_custom_vmap())(w, xnp.stack([w, w, w])),
    "linear solve": lambda x, w: lax.custom_linear_solve(
        lambda y: w @ y, x, lambda mv, b: b * 0.5, lambda mv, b: b * 0.5),
    "attention": lambda x, w: nn.dot_product_attention(w[:, None], w[:, None], w[:, None]),
}  # fmt: skip


def controls() -> Iterator[Row]:
    """Yield a row for each way to call functions."""
    for name, step in CONTROL.items():
        yield Row(name, step, (X, W))
