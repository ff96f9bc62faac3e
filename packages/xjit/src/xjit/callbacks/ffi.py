"""Call functions of C, C++ or CUDA from programs: XLA's foreign function interface."""

from __future__ import annotations

import ctypes
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import xprim
from xjit import jaxlib_gateway as gateway
from xjit.callbacks.primitive import VMAP_METHODS
from xjit.dispatch.eager_backend import compile_and_run
from xjit.jaxlib_gateway import element_type
from xjit.lowering.operation_metadata import quote
from xjit.lowering.stablehlo_text import Builder, by_one_member, dense, once_text, type_text
from xnp import lax
from xprim import Array, Effect, Primitive, ShapedArray, as_array, dtypes, shaped_array, state
from xprim.contracts import BatchAxis
from xprim.errors import MissingRuleError, described, message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries, boundary

__all__ = [
    "VMAP_METHODS", "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir",
    "pycapsule", "register_ffi_target", "register_ffi_target_as_batch_partitionable",
    "register_ffi_type", "register_ffi_type_id",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------- ffi attributes
# Attributes and layouts of foreign calls, as text of MLIR.
#
# Source: the built-in attributes of MLIR (https://mlir.llvm.org/docs/Dialects/Builtin); the types
# that XLA decodes them to, `xla/ffi/api/api.h`.

Layout = Any
"""An order of dimensions, the slowest first, or an object that has one as `major_to_minor`."""


def attribute_text(value: Any, operation: str) -> str:
    """Return a value as an attribute: Python's numbers have 64 bits, NumPy's their own type.

    Raises:
      TypeError: no attribute is such a value.
    """
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value, operation)
    raise TypeError(message(
        operation, "an attribute is of a type that functions cannot be given.",
        got=described(value),
        expected="a number, a string, a dtype, a NumPy array, or a tuple or dict of these",
        hint="arrays whose values the program computes are operands, by position",
    ))  # fmt: skip


def _dictionary(value: dict[str, Any], operation: str) -> str:
    items = [f"{quote(k)} = {attribute_text(v, operation)}" for k, v in sorted(value.items())]
    return f"{{{', '.join(items)}}}"


def _array(value: np.ndarray[Any, Any], operation: str) -> str:
    aval = shaped_array(value.shape, value.dtype)
    return dense(value, aval, type_text(aval))


def _number(value: Any) -> str:
    require(
        not dtypes.is_complex(value.dtype), "ffi_call",
        "a complex attribute goes as an array: np.array([value]).", error=TypeError,
    )  # fmt: skip
    text = element_type(value.dtype)
    if dtypes.is_integer(value.dtype):
        return f"{int(value)} : {text}"
    bits = int.from_bytes(value.tobytes(), "little")
    return f"0x{bits:0{value.dtype.itemsize * 2}X} : {text}"


_WRITERS: tuple[tuple[Any, Callable[[Any, str], str]], ...] = (
    (bool | np.bool_, lambda value, _: "true" if value else "false"),
    (np.generic, lambda value, _: _number(value)),  # before Python's: np.float64 is a float
    (int, lambda value, _: _number(np.int64(value))),
    (float, lambda value, _: _number(np.float64(value))),
    (str | bytes, lambda value, _: quote(value)),
    (dict, _dictionary),
    (tuple | list, lambda value, operation: (
        f"[{', '.join([attribute_text(v, operation) for v in value])}]")),
    (np.ndarray, _array),
    (np.dtype, lambda value, _: element_type(value)),
)  # fmt: skip


def layout_of(layout: Layout, aval: ShapedArray, operation: str) -> tuple[int, ...]:
    """Return the order of the dimensions of an array in memory, the slowest first.

    Raises:
      ValueError: it is not an order of these dimensions.
    """
    if layout is None:
        return tuple(range(aval.ndim))
    given: Any = getattr(layout, "major_to_minor", layout)
    order = tuple([operator.index(i) for i in given])
    if sorted(order) != list(range(aval.ndim)):
        raise ValueError(message(
            operation, "a layout is an order of the dimensions.", got=f"{order}",
            expected=f"the numbers from 0 to {aval.ndim - 1} for {aval.str_long()}",
        ))  # fmt: skip
    return order


def add_batch_to_layout(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the layout of a batch whose examples have this one: one after the other."""
    return (0, *[i + 1 for i in order])


def layouts_text(orders: Sequence[tuple[int, ...]]) -> str:
    """Return layouts as StableHLO has them: the fastest dimension first."""
    texts = [
        f"dense<{json.dumps(list(order[::-1])) if order else ''}> : tensor<{len(order)}xindex>"
        for order in orders
    ]
    return f"[{', '.join(texts)}]"


# --------------------------------------------------------------------------------- ffi primitive
# The primitive `ffi_call`: a call of a registered function, with all of its rules.
#
# Params: `target`, the name of the function; `result_avals`; `layouts` of the operands and
# results; `aliases`, pairs of an operand and the result that is the same memory; `version` of the
# interface; `config`, the attributes as text; `has_side_effect`; `vmap_method`.

_EFFECTS = frozenset([Effect("foreign function", ordered=False)])

TRITON_TARGET = "triton_kernel_call_ffi"
"""What the CUDA plugin calls the function that starts kernels of Triton."""


def _shape(*_: Any, result_avals: tuple[ShapedArray, ...], **_params: Any) -> Any:
    return result_avals


def _numpy(*operands: Any, **params: Any) -> Any:
    """Run a program of the one call."""
    if state.trace is xprim.EAGER_ON_HOST:
        raise RuntimeError(message(
            "ffi_call",
            f"{params['target']!r} cannot be called in a callback, which a program waits for.",
            hint="call it outside of the callback",
        ))  # fmt: skip
    arrays = [xprim.from_numpy(x, copy=False, canonical=False) for x in operands]
    return tuple([x.to_host() for x in compile_and_run(ffi_call_p, tuple(arrays), params)])


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, target: str,
               layouts: Any, aliases: Any, version: int, config: str, has_side_effect: bool,
               **_: Any) -> Any:  # fmt: skip
    if target == TRITON_TARGET and b.platform != "cuda":
        raise MissingRuleError(message(
            "triton_call", f"a kernel of Triton cannot be called in programs for {b.platform}.",
            expected="a program for cuda",
            hint="lax.platform_dependent(..., cuda=kernel, default=formula) has both",
        ))  # fmt: skip
    texts = [layouts_text(orders) for orders in layouts]
    return custom_call_text(
        b, operands, avals_in, avals_out, target, config, version, texts, aliases, has_side_effect
    )


def custom_call_text(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, target: str, config: str,
    version: int, layouts: Sequence[str] | None, aliases: Sequence[tuple[int, int]],
    has_side_effect: bool,
) -> list[str]:  # fmt: skip
    """Write a call of a registered function and return the names of its results."""
    several = len(avals_out) > 1
    parts = [
        f'call_target_name = "{target}"', f"api_version = {version} : i32",
        f"has_side_effect = {str(has_side_effect).lower()}", f"backend_config = {config}",
    ]  # fmt: skip
    if layouts is not None:
        parts += [f"operand_layouts = {layouts[0]}", f"result_layouts = {layouts[1]}"]
    if aliases:
        texts = [
            "#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{o if several else ''}], operand_index = {i}, operand_tuple_indices = []>"
            for i, o in aliases
        ]
        parts.append(f"output_operand_aliases = [{', '.join(texts)}]")
    once = once_text(b.module, len(avals_out)) if has_side_effect else ""

    def write(b: Builder, operands: Any) -> Any:
        return b.op("stablehlo.custom_call", operands, avals_in, avals_out, ", ".join(parts) + once)

    if has_side_effect:
        return by_one_member(b, operands, avals_in, avals_out, write)
    return list(write(b, operands))


def _jvp(_primals: Any, _tangents: Any, *, target: str, **_: Any) -> Any:
    raise ValueError(message(
        "ffi_call", f"the derivative of the function {target!r} is not known.",
        hint="give the function that calls it its own rule: custom_jvp or custom_vjp",
    ))  # fmt: skip


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, vmap_method: str | None, **params: Any
           ) -> Any:  # fmt: skip
    if vmap_method is None:
        raise MissingRuleError(message(
            "vmap", "ffi_call does not know what its function does with a batch.",
            got=f"{params['target']!r}, vmap_method=None",
            expected=f"vmap_method= one of {VMAP_METHODS}",
            hint="vmap_method='sequential' is right for every function",
        ))  # fmt: skip
    mapped = [d is not xprim.not_mapped for d in dims]
    moved = [axis.to_front(x, d) if m else x
             for x, d, m in zip(operands, dims, mapped, strict=True)]  # fmt: skip
    if vmap_method.startswith("sequential"):
        outs: Any = _one_by_one(moved, mapped, vmap_method, params)
    else:
        outs = _at_once(axis, moved, mapped, vmap_method, params)
    return outs, (0,) * len(outs)


def _one_by_one(
    operands: Sequence[Any], mapped: Sequence[bool], vmap_method: str, params: dict[str, Any]
) -> Any:
    def step(carry: Any, elements: Any) -> Any:
        rest = iter(elements)
        own = [next(rest) if m else x for x, m in zip(operands, mapped, strict=True)]
        return carry, list(ffi_call_p.bind(*own, vmap_method=vmap_method, **params))

    xs = [x for x, m in zip(operands, mapped, strict=True) if m]
    return lax.scan(step, (), xs, unroll=vmap_method == "sequential_unrolled")[1]


def _at_once(
    axis: BatchAxis, operands: Sequence[Any], mapped: Sequence[bool], vmap_method: str,
    params: dict[str, Any],
) -> Any:  # fmt: skip
    """Call the function once; what is not mapped is repeated, has a size of 1, or is as it was."""
    sizes = {"broadcast_all": axis.size, "expand_dims": 1}
    if vmap_method in sizes:
        size = sizes[vmap_method]
        operands = [x if m else lax.broadcast(x, (size,))
                    for x, m in zip(operands, mapped, strict=True)]  # fmt: skip
        mapped = [True] * len(operands)
    orders_in, orders_out = params["layouts"]
    avals = tuple([axis.batched_aval(a) for a in params["result_avals"]])
    layouts = (
        tuple([add_batch_to_layout(o) if m else o for o, m in zip(orders_in, mapped, strict=True)]),
        tuple([add_batch_to_layout(o) for o in orders_out]),
    )
    same = [(i, o) for i, o in params["aliases"] if operands[i].aval.strong() is avals[o].strong()]
    changed = {"layouts": layouts, "result_avals": avals, "aliases": tuple(same)}
    return ffi_call_p.bind(*operands, vmap_method=vmap_method, **(params | changed))


def _effects(*, has_side_effect: bool, **_: Any) -> Any:
    return _EFFECTS if has_side_effect else frozenset()


ffi_call_p = Primitive(
    "ffi_call",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=xprim.undefined("what a foreign function computes is not known to be linear"),
    batch=_batch,
    effects=_effects,
)


# ------------------------------------------------------------------------------------------- ffi
# Call functions of C, C++ or CUDA from programs: XLA's foreign function interface.
#
#
#
# A function is written against `xla/ffi/api/ffi.h` (under `include_dir()`). It gets the memory of
# the operands and of the results; keyword arguments are attributes, which are part of the
# program.


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Let programs call a function by a name.

    Args:
      name: what `ffi_call` names.
      fn: a capsule of the function (`pycapsule`), or a dict of capsules by stage: `instantiate`,
        `prepare`, `initialize`, `execute`.
      platform: "cpu" or "gpu" ("CUDA").
      api_version: 1 for functions of `xla/ffi/api/ffi.h`; 0 for the older interface.
      **kwargs: passed to jaxlib's registration: `traits`.

    Raises:
      ValueError: the platform or version is unknown.
      XlaError: another function has that name.
    """
    gateway.register_ffi_target(name, fn, platform, api_version=api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register the type of a state that functions keep between their stages.

    Args:
      name: of the type, unique in the process.
      type_registration: a dict with a capsule of its `XLA_FFI_TypeId` as `type_id`, and one of its
        `XLA_FFI_TypeInfo` as `type_info`.
      platform: as in `register_ffi_target`.
    """
    gateway.register_ffi_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Refuse: jaxlib takes the identity of a type together with its functions.

    Raises:
      ValueError: always; `register_ffi_type` is what replaced it.
    """
    raise ValueError(message(
        "register_ffi_type_id", "jaxlib registers the id of a type with its other values.",
        got=f"{name!r}, {platform=}",
        hint="register_ffi_type(name, {'type_id': capsule, 'type_info': other})",
    ))  # fmt: skip


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let a program that is split over devices call a function for each part of a batch.

    Args:
      name: of a registered function whose operands and results have leading batch dimensions, and
        whose examples do not depend on each other.
    """
    gateway.register_batch_partitionable(name)


def pycapsule(funcptr: Any) -> Any:
    """Return a function of a library as a capsule, for `register_ffi_target`.

    Args:
      funcptr: a function of a library loaded by `ctypes`.

    Example:
      >>> import ctypes
      >>> type(pycapsule(ctypes.pythonapi.Py_GetVersion)).__name__
      'PyCapsule'
    """
    address = ctypes.cast(funcptr, ctypes.c_void_p)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(("PyCapsule_New", ctypes.pythonapi))(address, None, None)


def include_dir() -> str:
    """Return the folder of the headers, for `-I` of a compiler.

    Example:
      >>> import pathlib
      >>> (pathlib.Path(include_dir()) / "xla/ffi/api/ffi.h").exists()
      True
    """
    return gateway.include_dir()


def ffi_call(
    target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False,
    vmap_method: str | None = None, input_layouts: Sequence[Layout] | None = None,
    output_layouts: Any = None, input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4, legacy_backend_config: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that calls a registered function.

    Args:
      target_name: its name.
      result_shape_dtypes: what has the shape and dtype of the result, or a sequence of such.
      has_side_effect: whether it is called although nothing needs its results.
      vmap_method: what `vmap` does, as in `pure_callback`; None raises there.
      input_layouts: for each operand the order of its dimensions in memory, the slowest first;
        None for the order of NumPy.
      output_layouts: likewise for the results; one order where there is one result.
      input_output_aliases: by the number of an operand, that of the result which is the same
        memory when the function is called.
      custom_call_api_version: 4 for functions of `xla/ffi/api/ffi.h`, less for older ones.
      legacy_backend_config: the text that older ones get in place of attributes.

    Returns:
      A function of the operands; keyword arguments are the attributes: numbers (Python's are
      64-bit), strings, NumPy arrays, and tuples and dicts of these. It gives an Array, or a
      sequence of Arrays as `result_shape_dtypes` is one.

    Raises:
      ValueError: under a derivative, unless a custom rule is before it; wrong layouts or aliases.
      XlaError: no function has the name, or it refuses its operands.
    """
    if vmap_method is not None:
        require_choice("ffi_call", "vmap_method", vmap_method, VMAP_METHODS, also="None")
    require(
        legacy_backend_config is None or custom_call_api_version < 4, "ffi_call",
        "a text of options is for versions of the interface before 4.",
        got={"custom_call_api_version": custom_call_api_version},
        hint="keyword arguments of the call are the attributes",
    )  # fmt: skip
    several = isinstance(result_shape_dtypes, Sequence)
    shapes = list(result_shape_dtypes) if several else [result_shape_dtypes]
    avals = tuple([_result_aval(s, i) for i, s in enumerate(shapes)])
    places = output_layouts if several or output_layouts is None else [output_layouts]
    results_in = _layouts("output_layouts", places, avals)

    @boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        operands = [as_array(x, what=f"ffi_call({target_name!r})") for x in args]
        operands_in = _layouts("input_layouts", input_layouts, [x.aval for x in operands])
        aliases = tuple(sorted((input_output_aliases or {}).items()))
        _check_aliases(aliases, [x.aval for x in operands], avals, operands_in, results_in)
        results = ffi_call_p.bind(
            *map(_strong, operands), target=target_name, result_avals=avals,
            has_side_effect=bool(has_side_effect), vmap_method=vmap_method,
            layouts=(operands_in, results_in), aliases=aliases, version=custom_call_api_version,
            config=_config(custom_call_api_version, legacy_backend_config, kwargs),
        )  # fmt: skip
        if not several:
            return results[0]
        return tuple(results) if isinstance(result_shape_dtypes, tuple) else list(results)

    return call


def ffi_lowering(
    call_target_name: str, *, operand_layouts: Sequence[Layout] | None = None,
    result_layouts: Sequence[Layout] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False, **lowering_args: Any,
) -> Callable[..., list[str]]:  # fmt: skip
    """Return a `stablehlo` rule that calls a registered function, for a primitive of yours.

    Args:
      call_target_name: its name.
      operand_layouts: for each operand the order of its dimensions in memory, as XLA has it: the
        *fastest* first. None for the order of NumPy.
      result_layouts: likewise for the results.
      backend_config: attributes; the params of the primitive join them.
      skip_ffi_layout_processing: whether nothing is said of layouts.
      **lowering_args: `has_side_effect`, `api_version`, `operand_output_aliases`.

    Returns:
      A function (builder, operands, avals_in, avals_out, **params) -> names of the results.
    """
    unknown = lowering_args.keys() - {"has_side_effect", "api_version", "operand_output_aliases"}
    if unknown:
        raise TypeError(f"ffi_lowering: there is no option {min(unknown)!r}.")
    version = lowering_args.get("api_version", 4)
    aliases = tuple(sorted(dict(lowering_args.get("operand_output_aliases") or {}).items()))

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> list[str]:
        orders = [_orders(operand_layouts, avals_in), _orders(result_layouts, avals_out)]
        config = backend_config
        if not isinstance(config, str):
            config = _config(version, None, {**(config or {}), **params})
        texts = None if skip_ffi_layout_processing else [layouts_text(o) for o in orders]
        return custom_call_text(
            b, operands, avals_in, avals_out, call_target_name, config, version, texts, aliases,
            bool(lowering_args.get("has_side_effect", False)),
        )  # fmt: skip

    return rule


build_ffi_lowering_function = ffi_lowering


def _orders(layouts: Any, avals: Sequence[ShapedArray]) -> list[tuple[int, ...]]:
    """Return orders of dimensions, the slowest first, of layouts with the fastest first."""
    given = [None] * len(avals) if layouts is None else layouts
    return [
        layout_of(None if order is None else tuple(order)[::-1], aval, "ffi_lowering")
        for order, aval in zip(given, avals, strict=True)
    ]


def _result_aval(shape: Any, i: int) -> ShapedArray:
    if not (hasattr(shape, "shape") and hasattr(shape, "dtype")):
        raise ValueError(message(
            "ffi_call", f"result {i} has no shape and dtype.", got=described(shape),
            expected="ShapeDtypeStruct(shape, dtype), or a sequence of such",
        ))  # fmt: skip
    return shaped_array(tuple(shape.shape), shape.dtype)


def _layouts(what: str, given: Any, avals: Sequence[ShapedArray]) -> tuple[tuple[int, ...], ...]:
    layouts = [None] * len(avals) if given is None else list(given)
    if len(layouts) != len(avals):
        raise ValueError(message(
            "ffi_call", f"{what} must have an entry for each array.", got=f"{len(layouts)} entries",
            expected=str(len(avals)),
        ))  # fmt: skip
    return tuple(
        [layout_of(x, a, f"ffi_call: {what}") for x, a in zip(layouts, avals, strict=True)]
    )


def _check_aliases(
    aliases: Sequence[tuple[int, int]], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], layouts_in: Any, layouts_out: Any,
) -> None:  # fmt: skip
    for i, o in aliases:
        if not (0 <= i < len(avals_in) and 0 <= o < len(avals_out)):
            problem = f"there are {len(avals_in)} operands and {len(avals_out)} results"
        elif avals_in[i].strong() is not avals_out[o].strong():
            problem = f"they are {avals_in[i].str_long()} and {avals_out[o].str_long()}"
        elif layouts_in[i] != layouts_out[o]:
            problem = f"their layouts are {layouts_in[i]} and {layouts_out[o]}"
        else:
            continue
        raise ValueError(message(
            "ffi_call", f"operand {i} and result {o} cannot be the same memory.", got=problem,
        ))  # fmt: skip


def _config(version: int, legacy: str | None, attributes: Mapping[str, Any]) -> str:
    """Return what a call hands on beside its operands, as text of an MLIR attribute."""
    if version >= 4:
        return attribute_text(dict(attributes), "ffi_call")
    if attributes:
        raise ValueError(message(
            "ffi_call", "attributes are for version 4 of the interface.",
            got=f"{', '.join(attributes)}, custom_call_api_version={version}",
            hint="legacy_backend_config= is the text that older functions get",
        ))  # fmt: skip
    return attribute_text(legacy or "", "ffi_call")


def _strong(x: Array) -> Array:
    """Return an array whose type is not weak: functions of C see dtypes alone."""
    return as_array(x.astype(x.dtype)) if x.aval.weak_type else x


boundaries(globals())
