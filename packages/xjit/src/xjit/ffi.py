"""Call functions of C, C++ or CUDA from programs: XLA's foreign function interface.

    register_ffi_target("rms_norm", pycapsule(library.RmsNorm), platform="cpu")

    def rms_norm(x, eps):
        call = ffi_call("rms_norm", ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all")
        return call(x, eps=np.float32(eps))

A function is written against `xla/ffi/api/ffi.h` (under `include_dir()`). It gets the memory of the
operands and of the results; keyword arguments are attributes, which are part of the program.

Neighbours: `ffi_attributes` writes attributes, `callbacks` call Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.ffi_attributes import Layout, attribute_text, layout_of, layouts_text
from xjit.ffi_primitive import VMAP_METHODS, custom_call_text, ffi_call_p
from xjit.stablehlo_text import Builder
from xprim import Array, ShapedArray, as_array, shaped_array
from xprim.descriptions import described
from xprim.errors import message
from xprim.tracebacks import boundaries, boundary

__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip

__dir__ = __all__.copy


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
        "register_ffi_type_id", "jaxlib takes a type as a whole.", got=f"{name!r}, {platform=}",
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
      vmap_method: what `vmap` does, as in `pure_callback`; None is refused there.
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
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(message(
            "ffi_call", "there is no such vmap_method.", got=repr(vmap_method),
            expected=f"None or one of {', '.join(map(repr, VMAP_METHODS))}",
        ))  # fmt: skip
    if legacy_backend_config is not None and custom_call_api_version >= 4:
        raise ValueError(message(
            "ffi_call", "a text of options is for versions of the interface before 4.",
            got=f"custom_call_api_version={custom_call_api_version}",
            hint="keyword arguments of the call are the attributes",
        ))  # fmt: skip
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
