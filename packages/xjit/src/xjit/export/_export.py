"""`export`: from a compiled function and the types of its arguments to an `Exported`.

The program is traced as `jit` does it, and written once for each platform; what would not mean the
same elsewhere is refused: Python functions, ordered effects, copies on several devices.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import xprim
from xjit import jaxlib_gateway as gateway
from xjit.debug.monitoring import retraces
from xjit.dispatch.jit import jit
from xjit.export.exported import Exported, StoredModule, module_text, stored_module
from xjit.export.files import Devices, DisabledSafetyCheck, check_custom_calls, devices_of
from xjit.export.symbolic_shapes import scope_of
from xjit.host_kernels import is_rule, named_rules
from xjit.lowering.modules import lower
from xjit.stages import TracedFunction, Wrapped
from xprim import ClosedJaxpr, Effect, ShapeDtypeStruct, dtypes, effects_text, eval_closed
from xprim.errors import described, message
from xprim.source import is_hidden
from xprim.symbolic_dimensions import written_for_programs
from xprim.tracebacks import boundaries, boundary

__all__ = ["default_export_platform", "export"]

__dir__ = __all__.copy

_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def default_export_platform() -> str:
    """Return the platform for which programs are exported when none is named.

    Example:
      >>> default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
      True
    """
    name = gateway.default_backend()
    return gateway.lowering_platform(name)


def export(
    fun_jit: Wrapped[Any, Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a compiled function, so that it can be stored and called by other processes.

    A program with shardings runs on as many devices as their mesh has, which may be others, and
    may be none of this process: an `AbstractMesh` is enough.

    Args:
      fun_jit: what `jit` returned, or a function of this family, such as `xnp.sin`.
      platforms: those that it will run on, some of `cpu`, `cuda`, `rocm`, `tpu`, whether they are
        here or not; by default that of the default device. With several, each runs the program
        that was written for it.
      disabled_checks: checks to do without.

    Returns:
      A function of arrays, or of anything with a shape and a dtype, that returns the `Exported`
      for arguments of these types.

    Raises:
      ValueError: `fun_jit` is not what `jit` returned; unknown platform; the program calls
        Python or has effects in order; it runs as copies on several devices; or it calls a routine
        that later runtimes may not have.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> from xjit.export import deserialize
      >>> exported = export(jit(lambda x: x * 2))(np.float32([1, 2]))
      >>> exported.in_avals
      (ShapedArray(float32[2]),)
      >>> deserialize(exported.serialize()).call(np.float32([3, 4]))
      Array([6., 8.], dtype=float32)
    """
    given: Any = fun_jit
    if not isinstance(given, Wrapped):
        if not _is_of_the_family(given):
            raise ValueError(message(
                "export", "the function is not compiled.", got=described(given),
                hint="export(jit(f))(*args)",
            ))  # fmt: skip
        fun_jit = jit(given)
    names = _check_platforms(platforms)
    checks = tuple(disabled_checks)

    @boundary
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        with retraces("allow"):  # a program for each export is what was asked for
            return _export(fun_jit, args, kwargs, names or (default_export_platform(),), checks)

    return do_export


def _is_of_the_family(fun: Any) -> bool:
    """Return whether a function is one of this family, such as `xnp.sin`: it needs no `jit`."""
    code = getattr(inspect.unwrap(fun), "__code__", None) if inspect.isfunction(fun) else None
    return code is not None and is_hidden(code.co_filename)


def _check_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    if platforms is None:
        return ()
    names = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    if not names or not set(names) <= set(_PLATFORMS):
        raise ValueError(message(
            "export", "unknown platform.", got=f"platforms={platforms!r}",
            expected=f"some of {', '.join(map(repr, _PLATFORMS))}",
        ))  # fmt: skip
    return tuple(dict.fromkeys(names))


def _export(
    fun_jit: Any, args: Any, kwargs: Any, platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:  # fmt: skip
    traced = fun_jit.trace(*args, **kwargs)
    name, closed = traced.fun_name, traced.jaxpr
    if traced.cells is not None:
        raise _OfThisProcessError(message(
            "export", f"{name} uses references, which are places in this process.",
            hint="take the value of each, ref[...], as an argument, and return the next one",
        ))  # fmt: skip
    scope = scope_of(name, closed.in_avals)
    where = devices_of(traced)
    _check_effects(name, closed)
    texts, kept = _texts(name, closed, platforms, where)
    module_by_text: dict[str, StoredModule] = {}
    for text in dict.fromkeys(texts.values()):
        check_custom_calls(name, text, checks)
        module_by_text[text] = stored_module(text, scope is not None)
    return Exported(
        fun_name=name, in_tree=traced.in_tree, in_avals=tuple(closed.in_avals),
        out_tree=traced.out_tree, out_avals=tuple(closed.out_avals),
        platforms=platforms, spread=where.spread(),
        unordered_effects=tuple(sorted(closed.effects, key=str)), disabled_safety_checks=checks,
        module_kept_var_idx=kept, modules={p: module_by_text[t] for p, t in texts.items()},
        make_vjp=functools.partial(_export_vjp, traced, platforms, checks),
        symbolic_facts={} if scope is None else scope.facts | scope.assumptions,
    )  # fmt: skip


def _texts(
    name: str, closed: ClosedJaxpr, platforms: Sequence[str], where: Devices
) -> tuple[dict[str, str], tuple[int, ...]]:
    """Return the program for each platform, and which arguments all of them take."""
    with written_for_programs():
        lower_for = functools.partial(
            lower, closed, name=name, devices=where.devices, in_shardings=where.arguments,
            out_shardings=where.results, is_portable=True,
        )  # fmt: skip
        lowered = {p: lower_for(platform=p) for p in platforms}
        for program in lowered.values():
            _check_no_python(name, [f for f in program.python_functions if not is_rule(f)])
        if len({program.kept for program in lowered.values()}) > 1:
            lowered = {p: lower_for(platform=each.platform, keep_unused=True)
                       for p, each in lowered.items()}  # fmt: skip
        kept = next(iter(lowered.values())).kept
        avals = [closed.in_avals[i] for i in kept]
        texts = {p: module_text(each, avals, closed.out_avals) for p, each in lowered.items()}
        return {p: named_rules(t, lowered[p].callbacks) for p, t in texts.items()}, kept


def _check_effects(name: str, closed: ClosedJaxpr) -> None:
    refused = {*xprim.ordered_effects(closed.effects)}
    refused |= {e for e in closed.effects if not isinstance(e, Effect)}
    if refused:
        raise ValueError(message(
            "export", f"{name} has effects in an order that a stored program cannot keep.",
            got=effects_text(refused),
        ))  # fmt: skip


class _OfThisProcessError(ValueError, NotImplementedError):
    """A program to be exported calls functions, or uses references, of this process."""


def _check_no_python(name: str, callbacks: Sequence[Any]) -> None:
    if callbacks:
        called = ", ".join(sorted({str(getattr(c, "host", c)) for c in callbacks}))
        raise _OfThisProcessError(message(
            "export", f"{name} calls Python functions, which are of this process alone.",
            got=called, hint="leave callbacks and prints out of what is exported",
        ))  # fmt: skip


def _export_vjp(
    traced: TracedFunction, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]
) -> Exported:
    vjp = xprim.optional_transforms.find("vjp")
    if vjp is None:
        raise ValueError(
            message(
                "vjp", "the package that differentiates is not installed.", hint="xstack-xad has it"
            )
        )
    name, closed = traced.fun_name, traced.jaxpr
    count = len(closed.in_avals)

    def backward(*leaves: Any) -> Any:
        primals, cotangents = leaves[:count], leaves[count:]
        _, pull = vjp(lambda *xs: tuple(eval_closed(closed, *xs)), *primals)
        return pull(cotangents)

    backward.__name__ = f"{name}_vjp"
    cotangents = [
        ShapeDtypeStruct(a.shape, a.dtype if dtypes.is_inexact(a.dtype) else dtypes.float0)
        for a in closed.out_avals
    ]
    primals = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in closed.in_avals]
    shardings = _shardings_of_derivative(devices_of(traced), [*closed.in_avals, *closed.out_avals])
    with retraces("allow"):
        return _export(jit(backward, **shardings), [*primals, *cotangents], {}, platforms, checks)


def _shardings_of_derivative(where: Devices, avals: Sequence[Any]) -> dict[str, Any]:
    """Return how the operands and results of a derivative lie: cotangents as their values."""
    if not where.devices:
        return {}
    count = len(where.arguments)
    places = [*where.arguments, *where.results]
    cotangents = [s if dtypes.is_inexact(a.dtype) else None
                  for s, a in zip(places, avals, strict=True)]  # fmt: skip
    return {"in_shardings": (*places[:count], *cotangents[count:]),
            "out_shardings": tuple(cotangents[:count])}  # fmt: skip


boundaries(globals())
