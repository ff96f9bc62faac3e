"""Primitives with one result, as programs written for JAX use them.

    y = lax.div_p.bind(x, 2.0)              # in a program written for JAX: an array
    (y,) = lax.div_p.bind(x, 2.0)           # in a program of this family: a tuple, always

Both hold the same primitive, since programs compare `eqn.primitive is lax.div_p`. So the members
that differ look at whose code reads them: that of the nine packages gets what the primitive has,
all other code what JAX's primitive of that name has. The reading counts, not the call:
`jax.vmap(lax.div_p.bind)` is read by the program, whoever calls it.

Likewise what `get_bind_params` of a call with a jvp rule gives to other code has `subfuns`, the
function and its rule on flat lists as JAX wraps them, which `bind` then leaves to the rule it has.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, cast

import xprim
from xstack import lax
from xstack.extend.core import jaxpr_as_fun, primitives
from xstack.extend.linear_util import WrappedFun, wrap_init
from xstack.interpreters.ad import instantiate_zeros

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

_own = {
    name: vars(xprim.Primitive)[name] for name in ("bind", "bind_with_trace", "get_bind_params")
}
_own_answer = xprim.Primitive.multiple_results
# Whether a module is one of the family, by its name.
_is_ours: dict[str, bool] = {}


def install() -> None:
    """Give code outside of the family one result where JAX's primitives have one."""
    for name, function in _own.items():
        kind = _BindParams if name == "get_bind_params" else _Method
        setattr(xprim.Primitive, name, kind(function))
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
        if primitive is None or _is_family(sys._getframe(1).f_globals):
            return method
        if primitive is xprim.custom_jvp_call_p:
            return partial(_bind_call, method)
        if not _is_single(primitive):
            return method
        return lambda *args, **params: method(*args, **params)[0]


class _BindParams:
    """A method that gives the params to the family, and to other code wrapped functions, too."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, primitive: xprim.Primitive | None, owner: type | None = None) -> Any:
        method = self._function.__get__(primitive, owner)
        if (
            primitive is None
            or primitive is not xprim.custom_jvp_call_p
            or _is_family(sys._getframe(1).f_globals)
        ):
            return method
        return lambda params: {**method(params), "subfuns": _wrap_functions(params)}


def _bind_call(method: Any, *args: Any, subfuns: Any = (), **params: Any) -> Any:
    """Apply a call with a jvp rule; what `subfuns` says is in the other params."""
    del subfuns
    return method(*args, **params)


def _wrap_functions(params: dict[str, Any]) -> tuple[WrappedFun, WrappedFun]:
    """Return the function of a call with a jvp rule, and its rule, both of flat lists."""

    def run_rule(*primals_and_tangents: Any) -> list[Any]:
        count = len(primals_and_tangents) // 2
        outs, dots = params["jvp"](primals_and_tangents[:count], primals_and_tangents[count:])
        return [*outs, *map(instantiate_zeros, dots)]

    return wrap_init(jaxpr_as_fun(params["call"])), wrap_init(run_rule)


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
