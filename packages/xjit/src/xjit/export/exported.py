"""`export`, and `Exported`: a program compiled elsewhere or before, how it is read and called."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import xprim
import xtree
from xjit import jaxlib_gateway as gateway
from xjit.debug.monitoring import retraces
from xjit.dispatch.jit import jit
from xjit.dispatch.program import program_of
from xjit.export import files
from xjit.export.files import HEAD, Devices, DisabledSafetyCheck, Shardings, devices_of
from xjit.export.symbolic_shapes import check_facts, scope_of, sizes_in, solved
from xjit.host_kernels import is_rule, named_rules, numbered_rules
from xjit.lowering.modules import LoweredProgram, lower
from xjit.lowering.stablehlo_text import Builder, Module, declared, dense, sharding_text, type_text
from xjit.sharding.meshes import AbstractMesh, Mesh, ProgramOfThisProcess
from xjit.sharding.shardings import Sharding
from xjit.stages import TracedFunction, Wrapped
from xjit.xla_workarounds.arithmetic import hide_stored_nan
from xnp import lax
from xprim import ClosedJaxpr, ShapedArray, ShapeDtypeStruct, Zero, dtypes, symbolic_dimensions
from xprim.contracts import BatchAxis
from xprim.errors import described, message
from xprim.extended import unwrap, wrap
from xprim.requirements import require
from xprim.sharded_types import whole
from xprim.source import is_hidden
from xprim.symbolic_dimensions import SymbolicScope, is_symbolic, value_of, written_for_programs
from xprim.tracebacks import boundaries, boundary

__all__ = [
    "StoredModule", "module_text", "stored_module", "call_exported_p", "call_flat", "Exported",
    "deserialize", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "default_export_platform", "export",
]  # fmt: skip

__dir__ = __all__.copy

# --------------------------------------------------------------------------------------- modules
# Programs in the portable form of StableHLO, and how they become part of another program.
#
# What: `StoredModule`, one program as bytes; `module_text`, the text of what is stored: `main`
# takes the kept arguments alone, and large constants are written into it. Idea: the runtime
# compiles the portable form as it is, and it is what StableHLO promises to read for years. A
# program that calls an exported one holds its functions, under names of their own.

_SYMBOL = re.compile(r"func\.func (?:public |private )?@([\w$.-]+)")
_MESH = re.compile(r"^ *sdy\.mesh @([\w$.-]+) = (.*)$", re.MULTILINE)
_MAIN_LINE = re.compile(r"func\.func public @main\(.*")
_MAIN = re.compile(r"func\.func public @main\((.*)\) -> \((.*)\) \{$", re.MULTILINE)
# What is said of an argument or a result: where it lies, whether its memory may be taken.
_SAID = re.compile(
    r" \{(?:(?:, )?(?:[\w.]+ = true|sdy\.sharding = #sdy\.sharding<@[\w$.-]+, \[[^]]*\]>))+\}"
)


@dataclass(frozen=True, eq=False)
class StoredModule:
    """One program whose function `main` takes and gives arrays.

    Attributes:
      portable: the program in StableHLO's portable form; one with symbolic dimensions is its text,
        compressed, with `$[2*b]` for a dimension.
      is_symbolic: whether it has symbolic dimensions.
    """

    portable: bytes
    is_symbolic: bool = False

    @functools.cached_property
    def text(self) -> str:
        """The program as StableHLO text."""
        if self.is_symbolic:
            return zlib.decompress(self.portable).decode()
        return gateway.text_of_portable(self.portable)

    def write_call(
        self, builder: Builder, operands: Any, avals_in: Any, avals_out: Any,
        values: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """Write a call of `main` into another program, which gets the functions when it is first.

        Args:
          builder: writes the other program.
          operands: names of the kept arguments.
          avals_in: their abstract values.
          avals_out: those of the results.
          values: of the variables of symbolic dimensions.

        Returns:
          The names of the results.
        """
        imported = builder.module.imported
        key = (self, *sorted(values.items()))
        if key not in imported:
            text = (
                symbolic_dimensions.substituted_text(self.text, values)
                if self.is_symbolic
                else self.text
            )
            text = numbered_rules(text, builder.platform, builder.module.callbacks)
            functions = hide_stored_nan(functions_of(text), builder.platform)
            functions = with_meshes_of(builder.module, functions)
            functions, imported[key] = rename_functions(builder.module, functions)
            builder.module.functions.append(functions)
        types_in = ", ".join(map(type_text, avals_in))
        types_out = ", ".join(map(type_text, avals_out))
        results = [builder.fresh() for _ in avals_out]
        left = f"{', '.join(results)} = " if results else ""
        called = f"func.call @{imported[key]}({', '.join(operands)})"
        builder.lines.append(f"{left}{called} : ({types_in}) -> ({types_out})")
        return results


def stored_module(text: str, is_symbolic: bool) -> StoredModule:
    """Return the program of a text, to be stored."""
    if is_symbolic:
        return StoredModule(zlib.compress(text.encode()), True)
    return StoredModule(gateway.portable(text))


def functions_of(text: str) -> str:
    """Return the functions of a module's text, without the module around them."""
    return text[text.index("{\n", text.index("module @")) + 2 : text.rindex("}")]


def rename_functions(module: Module, functions: str) -> tuple[str, str]:
    """Return functions as private ones under names new to a module, and the name of `main`."""
    found = _SYMBOL.findall(functions)
    names = {name: module.symbol(name) for name in found}
    symbols = re.compile(rf"@({'|'.join(map(re.escape, found))})(?![\w$.-])")
    unsaid = _MAIN_LINE.sub(lambda match: _SAID.sub("", match[0]), functions)
    renamed = symbols.sub(lambda match: f"@{names[match[1]]}", unsaid)
    return renamed.replace("func.func public", "func.func private"), names["main"]


def with_meshes_of(module: Module, functions: str) -> str:
    """Return functions that name the meshes of a module, which gets those that it has not."""
    symbols = {name: declared(module, text) for name, text in _MESH.findall(functions)}
    if not symbols:
        return functions
    without = _MESH.sub("", functions)
    names = "|".join(map(re.escape, symbols))
    return re.sub(rf"<@({names})(?=, )", lambda match: f"<@{symbols[match[1]]}", without)


def module_text(lowered: LoweredProgram, in_avals: Any, out_avals: Any) -> str:
    """Return the text of a lowered program with its constants written into it.

    Args:
      lowered: the program.
      in_avals: the abstract values of the kept arguments.
      out_avals: those of the results.
    """
    if not lowered.constants:
        return lowered.text
    module = Module(_no_programs, _no_programs, lowered.platform)
    functions, symbol = rename_functions(module, lowered.body)
    constants = [x.aval.stored for x in lowered.constants]
    arguments, results = [a.stored for a in in_avals], [a.stored for a in out_avals]
    names = _number("c", constants), _number("arg", arguments), _number("r", results)
    types_in, types_out = _types([*constants, *arguments]), _types(results)
    left, returned = (f"{names[2]} = ", f" {names[2]} : {types_out}") if results else ("", "")
    operands = ", ".join(filter(None, names[:2]))
    given, taken = _MAIN.search(lowered.body).groups()  # type: ignore[union-attr]
    head = given[given.index("%arg0: ") :] if arguments else ""
    lines = [
        *[f"%c{i} = stablehlo.constant {_dense(x)}" for i, x in enumerate(lowered.constants)],
        f"{left}func.call @{symbol}({operands}) : ({types_in}) -> ({types_out})",
        f"return{returned}",
    ]
    main = "\n".join([f"func.func public @main({head}) -> ({taken}) {{", *lines, "}"])
    return f"module @{lowered.name} {{\n{functions}\n{main}\n}}\n"


def _number(name: str, avals: list[ShapedArray]) -> str:
    return ", ".join([f"%{name}{i}" for i in range(len(avals))])


def _types(avals: list[ShapedArray]) -> str:
    return ", ".join(map(type_text, avals))


def _dense(array: Any) -> str:
    aval = array.aval.stored
    return dense(array.to_stored(), aval.strong(), type_text(aval.strong()))


def _no_programs(*_: Any) -> Any:
    raise AssertionError("a module of texts alone")


# -------------------------------------------------------------------------------- exported calls
# The primitive `call_exported`: a call of a stored program, with all of its rules.
#
# The param `exported` is the `Exported`. Nothing of the program is known but its text, so a
# derivative is computed by the `Exported`, and a batch calls it for each example in turn. Compiled,
# the functions of the stored program become functions of the one that calls it.


def call_flat(exported: Any, arrays: Sequence[Any]) -> Sequence[Any]:
    """Call a stored program with the leaves of its arguments, so that it can be differentiated."""
    _check_arguments(exported, [x.aval for x in arrays])

    def call(*operands: Any) -> Sequence[Any]:
        results = call_exported_p.bind(*map(_numbers, operands), exported=exported)
        return [wrap(r, a.dtype) if dtypes.is_extended(a.dtype) else r
                for r, a in zip(results, exported.out_avals, strict=True)]  # fmt: skip

    def backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
        derivative = exported.vjp()
        avals = derivative.in_avals[len(residuals) :]
        given = [_cotangent(ct, a) for ct, a in zip(cotangents, avals, strict=True)]
        results = call_flat(derivative, [*residuals, *given])
        return [Zero(r.aval) if r.aval.dtype == dtypes.float0 else r for r in results]

    def forward(perturbed: Any) -> Any:
        return lambda *operands: (*call_flat(exported, operands), *operands)

    return xprim.custom_vjp_call_p.bind(
        *arrays, call=call, fwd=forward, bwd=backward, count_outs=lambda: len(exported.out_avals)
    )


def _cotangent(ct: Any, aval: ShapedArray) -> Any:
    if type(ct) is Zero:
        return lax.full(ct.aval.shape, 0, aval.dtype)
    return ct


def _numbers(x: Any) -> Any:
    return unwrap(x) if dtypes.is_extended(x.aval.dtype) else x


def _check_arguments(exported: Any, avals: Sequence[ShapedArray]) -> None:
    for i, (given, expected) in enumerate(zip(avals, exported.in_avals, strict=True)):
        if given.dtype != expected.dtype or not _fits(given.shape, expected.shape):
            raise ValueError(message(
                f"call of {exported.fun_name}",
                f"{_name_mismatch(given, expected, _name_of(exported, i))}.",
                got=given.str_long(), expected=expected.str_long(),
            ))  # fmt: skip


def _name_mismatch(given: ShapedArray, expected: ShapedArray, name: str) -> str:
    """Return which property of an argument differs, in the words that programs for JAX match."""
    if given.dtype != expected.dtype:
        return f"Dtype mismatch for {name}"
    if given.ndim != expected.ndim:
        return f"Rank mismatch for {name}"
    sizes = enumerate(zip(given.shape, expected.shape, strict=True))
    d = next(d for d, (g, e) in sizes if not is_symbolic(e) and g != e)
    return f"Shape mismatch for {name}.shape[{d}]"


def _fits(given: Sequence[Any], expected: Sequence[Any]) -> bool:
    return len(given) == len(expected) and all(
        is_symbolic(e) or g == e for g, e in zip(given, expected, strict=True)
    )


def _values_of_variables(exported: Any, avals: Sequence[ShapedArray]) -> dict[str, Any]:
    """Return the values of the symbolic dimensions in a call, which keep to what is known."""
    expected = [a.stored for a in exported.in_avals]
    if not sizes_in(expected):
        return {}
    names = [_name_of(exported, i) for i in range(len(expected))]
    values = solved(expected, avals, names)
    check_facts(exported.symbolic_facts, values, exported.fun_name)
    return values


def _shape(*avals: ShapedArray, exported: Any) -> Any:
    values = _values_of_variables(exported, avals)
    meshes = [a.type_sharding.mesh for a in avals if a.type_sharding is not None]
    outs = [a.stored if dtypes.is_extended(a.dtype) else a for a in exported.out_avals]
    # Types say it over the axes that cut the arguments; over other meshes results are replicated.
    outs = [
        a if a.type_sharding is None or a.type_sharding.mesh in meshes
        else whole(a).update(memory_space=a.memory_space)
        for a in outs
    ]  # fmt: skip
    return [_with_sizes(a, values) for a in outs]


def _with_sizes(aval: ShapedArray, values: dict[str, Any]) -> ShapedArray:
    if not any(map(is_symbolic, aval.shape)):
        return aval
    shape = [
        value_of(symbolic_dimensions.dimension_text(d), values) if is_symbolic(d) else d
        for d in aval.shape
    ]
    return aval.update(shape=shape, sharding=aval.type_sharding)


def _name_of(exported: Any, i: int) -> str:
    tree = exported.in_tree.unflatten(range(len(exported.in_avals)))
    (half, place, *rest), _ = xtree.leaves_with_path(tree)[i]
    where = xtree.keystr(tuple(rest))
    kind = "args" if half == xtree.SequenceKey(0) else "kwargs"
    return f"{kind}{xtree.keystr((place,))}{where}"


def _numpy(*operands: Any, exported: Any) -> Any:
    avals = tuple([x.aval for x in operands])
    jaxpr, consts = xprim.trace_to_jaxpr(
        lambda *xs: call_exported_p.bind(*xs, exported=exported), avals
    )
    return tuple(program_of(xprim.ClosedJaxpr(jaxpr, consts), exported.fun_name).call(operands))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, exported: Any) -> Any:
    kept, shardings = exported.module_kept_var_idx, exported.shardings
    if shardings is not None:
        _check_devices(b.module, exported)
        operands = _lying_as(b, operands, avals_in, shardings.arguments)
    results = exported.module_for(b.platform).write_call(
        b, [operands[i] for i in kept], [avals_in[i] for i in kept], avals_out,
        _values_of_variables(exported, avals_in),
    )  # fmt: skip
    return results if shardings is None else _lying_as(b, results, avals_out, shardings.results)


def _check_devices(module: Any, exported: Any) -> None:
    """Raise where a program of several devices is called on another number of them."""
    count = 1 if module.members is not None else max(len(module.devices), 1)
    if count != exported.nr_devices:
        raise ValueError(message(
            "call", f"{exported.fun_name} was exported for {exported.nr_devices} devices and is "
            f"called on {count}.",
            hint="put its arguments on a mesh of so many: device_put(args, s) with s of\n"
            "exported.in_shardings_jax(mesh)",
        ))  # fmt: skip


def _lying_as(b: Builder, names: Any, avals: Any, places: Any) -> list[Any]:
    """Have values lie as a stored program says."""
    found = []
    for name, aval, place in zip(names, avals, places, strict=True):
        if place is not None:
            text = sharding_text(b.module, place.on(b.module.devices), aval.ndim)
            (name,) = b.op("sdy.sharding_constraint", [name], [aval], [aval],
                           f"sharding = #sdy.sharding{text}")  # fmt: skip
        found.append(name)
    return found


def _effects(*, exported: Any) -> frozenset[Any]:
    return frozenset(exported.unordered_effects)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, exported: Any) -> Any:
    mapped = [d is not xprim.not_mapped for d in dims]
    fronts = [axis.to_front(x, d) for x, d, m in zip(operands, dims, mapped, strict=True) if m]

    def one(examples: Sequence[Any]) -> Sequence[Any]:
        given = iter(examples)
        own = [next(given) if m else x for x, m in zip(operands, mapped, strict=True)]
        return call_exported_p.bind(*own, exported=exported)

    outs = lax.map(one, tuple(fronts))
    return outs, (0,) * len(outs)


def _print(*, exported: Any) -> dict[str, Any]:
    return {"name": exported.fun_name}


call_exported_p = xprim.Primitive(
    "call_exported",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=xprim.undefined(
        "of a stored program only the reverse derivative is known",
        "grad and vjp work where serialize(vjp_order=1) stored it",
    ),
    transpose=xprim.undefined("a stored program is not known to be linear"),
    batch=_batch,
    effects=_effects,
    print=_print,
)


# -------------------------------------------------------------------------------------- exported
# `Exported`: a program that was compiled elsewhere or before, and how it is called.


@dataclass(frozen=True, eq=False, repr=False)
class Exported(ProgramOfThisProcess):
    """A program as portable StableHLO, with all that is needed to call it.

    Attributes:
      fun_name: the name of the function, for errors.
      in_tree: the structure of (args, kwargs).
      in_avals: the abstract values of the leaves of the arguments.
      out_tree: the structure of the result.
      out_avals: the abstract values of its leaves.
      platforms: those that it was written for: `cpu`, `cuda`, `rocm`, `tpu`.
      unordered_effects: what it does beside computing its results.
      disabled_safety_checks: the checks that somebody did without.
      module_kept_var_idx: the numbers of the leaves of the arguments that `main` takes.
      symbolic_facts: what sizes it was made for: expressions that are not negative, each with the
        constraint or the line that it comes from.
      shardings: those of its arguments and results, None for a program of one device.
    """

    _holds = "functions"
    _instead = "exported.serialize() gives bytes, and export.deserialize takes them"

    fun_name: str
    in_tree: xtree.PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: xtree.PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    module_kept_var_idx: tuple[int, ...]
    modules: Mapping[str, StoredModule] = field(repr=False)
    make_vjp: Callable[[], Exported] | None = field(default=None, repr=False)
    symbolic_facts: Mapping[str, str] = field(default_factory=dict, repr=False)
    shardings: Shardings | None = None
    ordered_effects: tuple[Any, ...] = ()

    @property
    def nr_devices(self) -> int:
        """How many devices it runs on."""
        return 1 if self.shardings is None else self.shardings.nr_devices

    @property
    def calling_convention_version(self) -> int:
        """How `main` is called, which readers look at."""
        return of_one_device if self.shardings is None else of_several_devices

    @property
    def uses_global_constants(self) -> bool:
        """Whether there are symbolic dimensions in it."""
        return any(module.is_symbolic for module in self.modules.values())

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program for the first platform, in the portable form of StableHLO."""
        return self.modules[self.platforms[0]].portable

    def mlir_module(self, platform: str | None = None) -> str:
        """Return the program as StableHLO text.

        Args:
          platform: one of `platforms`; by default the first.
        """
        return self.module_for(platform or self.platforms[0]).text

    def module_for(self, platform: str) -> StoredModule:
        """Return the program for a platform.

        Raises:
          ValueError: it was not exported for that one.
        """
        found = next((p for p in self.platforms if p in _NAMES.get(platform, (platform,))), None)
        if found is None and files.is_platform_free(self.disabled_safety_checks):
            found = self.platforms[0]
        if found is None:
            raise ValueError(message(
                "call", f"Function {self.fun_name!r} was exported for platforms "
                f"{self.platforms}, and not for {platform!r}.",
                hint="export(f, platforms=(...)) names several",
            ))  # fmt: skip
        return self.modules[found]

    def in_shardings_jax(
        self, mesh: Mesh | AbstractMesh | None = None
    ) -> tuple[Sharding | None, ...]:
        """Return for each leaf of the arguments its sharding: None on one device.

        Args:
          mesh: of as many devices, in the order in which the program shall count them; by default
            one without devices, of the axes that it was exported for.

        Raises:
          ValueError: the mesh has another number of devices.
        """
        return self._over(mesh, self.shardings and self.shardings.arguments, self.in_avals)

    def out_shardings_jax(
        self, mesh: Mesh | AbstractMesh | None = None
    ) -> tuple[Sharding | None, ...]:
        """Return the sharding of each leaf of the result; as `in_shardings_jax`."""
        return self._over(mesh, self.shardings and self.shardings.results, self.out_avals)

    def _over(self, mesh: Any, stored: Any, avals: Any) -> tuple[Sharding | None, ...]:
        if mesh is not None and mesh.size != self.nr_devices:
            raise ValueError(message(
                "export", f"{self.fun_name} was exported for another number of devices.",
                got=repr(mesh), expected=f"a mesh of {self.nr_devices} devices",
            ))  # fmt: skip
        return tuple(
            [
                s and s.over(mesh, a.ndim)
                for s, a in zip(stored or (None,) * len(avals), avals, strict=True)
            ]
        )

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """The sharding of each leaf of the arguments, as XLA writes it: None on one device."""
        return tuple(
            [
                s and s._to_xla_hlo_sharding(a.ndim)
                for s, a in zip(self.in_shardings_jax(), self.in_avals, strict=True)
            ]
        )

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """The sharding of each leaf of the result, as XLA writes it: None on one device."""
        return tuple(
            [
                s and s._to_xla_hlo_sharding(a.ndim)
                for s, a in zip(self.out_shardings_jax(), self.out_avals, strict=True)
            ]
        )

    def has_vjp(self) -> bool:
        """Return whether its derivative is known."""
        return self.make_vjp is not None

    def vjp(self) -> Exported:
        """Return the derivative, exported.

        It takes the leaves of the arguments and a cotangent for each leaf of the result, and gives
        a tuple of cotangents of the arguments. Those of integers are of dtype `float0`.

        Raises:
          ValueError: it was read from bytes that were written without.
        """
        return self._vjp

    @functools.cached_property
    def _vjp(self) -> Exported:
        if self.make_vjp is None:
            raise ValueError(message(
                "vjp", f"No VJP is available: the derivative of {self.fun_name} was not stored.",
                hint="serialize(vjp_order=1) stores it",
            ))  # fmt: skip
        return self.make_vjp()

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Return it as bytes.

        Args:
          vjp_order: how many derivatives in reverse mode are stored, too: 1 lets a reader use
            `grad`, 2 `grad` of `grad`.

        Raises:
          ValueError: a class in the arguments or results is not registered for this, or the
            derivative is not known.
        """
        return bytearray(files.serialized(self, vjp_order))

    @boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program, by itself or inside of compiled functions.

        `grad` works where the derivative is known, `vmap` calls it for each example in turn.

        Raises:
          ValueError: the arguments have another structure, shape or dtype, or it was not exported
            for the platform.

        Example:
          >>> import numpy as np
          >>> from xjit import jit
          >>> from xjit.export import export
          >>> exported = export(jit(lambda x: x + x))(np.float32([1, 2]))
          >>> exported.call(np.float32([3, 4]))
          Array([6., 8.], dtype=float32)
        """
        leaves, tree = xtree.flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(message(
                f"call of {self.fun_name}", "The invocation args and kwargs must have the same "
                "pytree structure as those that it was exported for.",
                got=f"{tree}", expected=f"{self.in_tree}",
            ))  # fmt: skip
        arrays = [xprim.as_array(x, what=f"{self.fun_name}: the argument") for x in leaves]
        return self.out_tree.unflatten(self._make_jitted(*arrays))

    @functools.cached_property
    def _make_jitted(self) -> Callable[..., Sequence[Any]]:
        def flat(*arrays: Any) -> Sequence[Any]:
            return call_flat(self, arrays)

        flat.__name__ = f"call_{self.fun_name}"
        return jit(flat)

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name!r}, platforms={self.platforms})"


_NAMES: Final = {"gpu": ("cuda", "rocm"), "cuda": ("cuda",), "rocm": ("rocm",)}


# --------------------------------------------------------------------------------------- reading
# `deserialize`: from bytes to an `Exported`.


@boundary
def deserialize(blob: bytes | bytearray) -> Exported:
    """Read an exported program back.

    A program may call the routines of the runtime, so only read what you trust.

    Args:
      blob: what `Exported.serialize` returned.

    Raises:
      TypeError: `blob` is not bytes.
      ValueError: the bytes are of something else, damaged, or of a newer version; or hold a class
        that is not registered here.

    Example:
      >>> deserialize(b"something else")
      Traceback (most recent call last):
      ValueError: deserialize: these are not the bytes of an exported program.
        hint      Exported.serialize() makes them
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(
            message("deserialize", "an exported program is bytes.", got=type(blob).__name__)
        )
    data = bytes(blob)
    require(
        data.startswith(files.MARK), "deserialize",
        "these are not the bytes of an exported program.",
        hint="Exported.serialize() makes them",
    )  # fmt: skip
    if len(data) < HEAD.size:
        raise _damage_error("it ends too early")
    _, version, digest, length = HEAD.unpack_from(data)
    if not 1 <= version <= files.VERSION:
        raise ValueError(message(
            "deserialize", "the program was stored by a newer version of xjit.",
            got=f"version {version} of the format", expected=f"version {files.VERSION} or older",
            hint="a newer xstack-xjit reads it",
        ))  # fmt: skip
    if hashlib.sha256(data[files.DIGEST_FROM :]).digest() != digest:
        raise _damage_error("the checksum does not fit")
    start = HEAD.size + length
    return _read_exported(json.loads(data[HEAD.size : start]), memoryview(data)[start:])


def _damage_error(what: str) -> ValueError:
    return ValueError(message("deserialize", "the bytes are damaged.", got=what))


def _avals(
    facts: dict[str, Any], name: str, side: int, scope: SymbolicScope | None
) -> tuple[ShapedArray, ...]:
    """Return the abstract values of the arguments or results; older files say no types of them."""
    forms = facts[name]
    types = facts["types"][side] if "types" in facts else [None] * len(forms)
    return tuple([files.aval_of_form(a, scope, t) for a, t in zip(forms, types, strict=True)])


def _read_exported(facts: dict[str, Any], programs: memoryview) -> Exported:
    convention = facts["calling_convention"]
    low = minimum_supported_calling_convention_version
    high = maximum_supported_calling_convention_version
    if not low <= convention <= high:
        raise ValueError(message(
            "deserialize", "the program is called in a way that is not known here.",
            got=f"calling convention {convention}", expected=f"one from {low} to {high}",
        ))  # fmt: skip
    constraints, known = facts.get("symbolic") or (None, ())
    scope = None if constraints is None else SymbolicScope(constraints)
    modules = {place: StoredModule(bytes(programs[place[0] : sum(place)]), scope is not None)
               for place in map(tuple, facts["programs"])}  # fmt: skip
    platforms, derivative = tuple(facts["platforms"]), facts["vjp"]
    return Exported(
        fun_name=facts["fun_name"],
        in_tree=files.tree_of_form(facts["in_tree"]),
        in_avals=_avals(facts, "in_avals", 0, scope),
        out_tree=files.tree_of_form(facts["out_tree"]),
        out_avals=_avals(facts, "out_avals", 1, scope),
        platforms=platforms,
        unordered_effects=tuple(
            xprim.Effect(n, ordered=False, exact=e) for n, e in facts["effects"]
        ),
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, facts["disabled_checks"])),
        module_kept_var_idx=tuple(facts["kept"]),
        modules=dict(zip(platforms, [modules[tuple(p)] for p in facts["programs"]], strict=True)),
        make_vjp=None if derivative is None else lambda: _read_exported(derivative, programs),
        symbolic_facts=dict(known),
        shardings=files.shardings_of_form(facts.get("devices")),
    )


# ------------------------------------------------------------------------------ calling conventions
# How a stored program is called: `main` takes the kept arguments, in their order.
#
#     1    on one device
#     2    on several, where arguments and results lie as the program says
#
# The number rises when that changes. Programs say theirs, and a reader knows which it can call.

of_one_device: Final = 1
of_several_devices: Final = 2
minimum_supported_calling_convention_version: Final = of_one_device
maximum_supported_calling_convention_version: Final = of_several_devices


# ------------------------------------------------------------------------------------------- export
# `export`: from a compiled function and the types of its arguments to an `Exported`.
#
# The program is traced as `jit` does it, and written once for each platform; what would not mean
# the same elsewhere raises an error: Python functions, ordered effects, copies on several devices.

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
                "export", "Function to be exported must be the result of `jit`.",
                got=described(given),
                hint="export(jit(f))(*args)",
            ))  # fmt: skip
        fun_jit = jit(given)
    names = _check_platforms(platforms)
    checks = tuple(disabled_checks)

    @boundary
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        with retraces("allow"):  # each export is a program of its own
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
    if traced.refs is not None:
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
        files.check_custom_calls(name, text, checks)
        module_by_text[text] = stored_module(text, scope is not None)
    return Exported(
        fun_name=name, in_tree=traced.in_tree, in_avals=tuple(closed.in_avals),
        out_tree=traced.out_tree, out_avals=tuple(closed.out_avals),
        platforms=platforms, shardings=where.shardings(),
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
    refused |= {e for e in closed.effects if not isinstance(e, xprim.Effect)}
    if refused:
        raise ValueError(message(
            "export", f"{name} has effects in an order that a stored program cannot keep.",
            got=xprim.effects_text(refused),
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
        _, pull = vjp(lambda *xs: tuple(xprim.eval_closed(closed, *xs)), *primals)
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


boundaries(globals(), names=["default_export_platform", "export"])
