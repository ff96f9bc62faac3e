"""Primitives with one result, as programs written for JAX use them.

    y = lax.div_p.bind(x, 2.0)              # in a program written for JAX: an array
    (y,) = lax.div_p.bind(x, 2.0)           # in a program of this family: a tuple, always

Both hold the same primitive, since programs compare `eqn.primitive is lax.div_p`. So the members
that differ look at whose code reads them: that of the nine packages gets what the primitive has,
all other code what JAX's primitive of that name has. The reading counts, not the call:
`jax.vmap(lax.div_p.bind)` is read by the program, whoever calls it.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import xprim
from xstack import lax
from xstack.extend.core import primitives

__all__ = ()

_FAMILY = frozenset(
    ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")
)  # fmt: skip
# Primitives of JAX that `jax.lax` or `jax.extend.core.primitives` has, with several results.
_SEVERAL = (
    "cond", "custom_jvp_call", "custom_vjp_call", "eig", "eigh", "jit", "linear_solve", "lu",
    "optimization_barrier", "qr", "reduce", "scan", "sort", "split", "svd", "top_k", "while",
)  # fmt: skip
_LISTED = {name for module in (lax, primitives) for name in module.__all__}
_SINGLE = _LISTED - {f"{name}_p" for name in _SEVERAL}

_own = {name: vars(xprim.Primitive)[name] for name in ("bind", "bind_with_trace")}
_own_answer = xprim.Primitive.multiple_results
# Whether a module is one of the family, by its name.
_is_ours: dict[str, bool] = {}


def install() -> None:
    """Give code outside of the family one result where JAX's primitives have one."""
    for name, function in _own.items():
        setattr(xprim.Primitive, name, _Method(function))
    _set_answer(_Answer())


def uninstall() -> None:
    """Give all code the primitives as they are."""
    for name, function in _own.items():
        setattr(xprim.Primitive, name, function)
    _set_answer(_own_answer)


def _set_answer(answer: object) -> None:
    xprim.Primitive.multiple_results = cast("bool", answer)


class _Method:
    """A method that gives a tuple to the family, and to other code the result of a single one."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, primitive: xprim.Primitive | None, owner: type | None = None) -> Any:
        method = self._function.__get__(primitive, owner)
        if primitive is None or _is_family(sys._getframe(1).f_globals) or not _is_single(primitive):
            return method
        return lambda *args, **params: method(*args, **params)[0]


class _Answer:
    """What `multiple_results` says: true to the family, and to other code what JAX's says."""

    def __get__(self, primitive: xprim.Primitive | None, owner: type | None = None) -> bool:
        if primitive is None or _is_family(sys._getframe(1).f_globals):
            return _own_answer
        return not _is_single(primitive)


def _is_single(primitive: xprim.Primitive) -> bool:
    return f"{primitive.name}_p" in _SINGLE


def _is_family(names: dict[str, Any]) -> bool:
    """Return whether the globals of a function are those of a module of the family."""
    module = names.get("__name__", "")
    found = _is_ours.get(module)
    if found is None:
        found = _is_ours[module] = module.partition(".")[0] in _FAMILY
    return found
