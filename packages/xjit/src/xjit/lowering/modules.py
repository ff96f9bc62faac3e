"""Lowering: from a closed jaxpr to the text of a StableHLO module.

Dead code and repeated equations go first, in inner programs too; then each equation's `stablehlo`
rule writes its operations. Arguments that nothing needs are dropped, large constants become leading
arguments, so the text says only what is computed: two functions with equal programs give equal
text, and are compiled once. Donated arguments are marked with the result that takes their memory.
"""

from __future__ import annotations

import functools
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.host_kernels import write_host_kernel
from xjit.lowering.operation_metadata import (
    add_metadata,
    label,
    locate,
    metadata_of,
    xla_metadata,
)
from xjit.lowering.stablehlo_text import (
    Builder,
    Members,
    Module,
    everywhere_text,
    explicit_text,
    mark_optimised,
    merge_repeated,
    numbers_of_devices,
    optimise,
    sharding_text,
    type_text,
)
from xjit.lowering.unreduced_programs import passed
from xjit.sharding.inspection import Inspection
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import (
    NamedSharding,
    Sharding,
    along_explicit_axes,
    cuts_of,
)
from xjit.xla_workarounds import arithmetic, padded_sums, small_kernels
from xjit.xla_workarounds.fusion import equations_to_fence, sums_to_fence
from xjit.xla_workarounds.partitioning import (
    REWRITTEN,
    barriers_of,
    without_repeated,
    write_split,
)
from xprim import (
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Jaxpr,
    Literal,
    ShapedArray,
    Undefined,
    Var,
    config,
    effects_text,
    extended,
    get_primitive,
    ordered_effects,
    prune_dead_code,
    source,
    trace_to_jaxpr,
)
from xprim.contracts import is_gpu
from xprim.errors import MissingRuleError, message
from xprim.sharded_types import whole
from xprim.static_keys import static_key
from xprim.strict_options import host_kernels
from xtree.interning import remember
from xtree.records import Record

__all__ = [
    "NO_LAYOUTS", "Layouts", "LoweredProgram", "lower", "program_text", "source_locations",
    "text_of_piece", "warn_of_useless_donations",
]  # fmt: skip

__dir__ = __all__.copy

source_locations = config.define(
    config.Option(
        "source_locations",
        False,
        "Whether programs carry the user's file and line for each operation (profiles show them).",
        kind=bool,
        in_cache_key=True,
    )
)

program_text = config.define(
    config.Option(
        "program_text",
        "plain",
        "How `as_text` shows StableHLO: as it was written for the compiler ('plain'), or as MLIR "
        "prints it ('mlir'), for programs that search it for what JAX prints.",
        choices=("plain", "mlir"),
    )
)

_MAX_STAGED = 1024
# Programs that `stablehlo` rules trace, by function, abstract values and params.
_staged: dict[Any, ClosedJaxpr] = {}


class Layouts(NamedTuple):
    """In which orders the dimensions of arguments and results lie in memory, the slowest first.

    "auto" leaves one to XLA; None, as nothing at all for all, stands for the order of NumPy.
    """

    ins: Sequence[Any] = ()
    outs: Sequence[Any] = ()


NO_LAYOUTS = Layouts()


class LoweredProgram(Record):
    """The text of a program and how to call it.

    Attributes:
      name: the module's name.
      body: the text of its functions.
      constants: Arrays to pass before the arguments.
      kept: the numbers of the arguments that the program takes.
      donated: the numbers (among all arguments) of those whose memory becomes that of results.
      useless: the numbers of those that were donated, but no result can take their memory.
      in_avals: the abstract values of the kept arguments.
      out_avals: the abstract values of the results.
      callbacks: the Python functions that it calls.
      platform: what it is written for.
      inspections: who asks how values inside it lie.
      splits: who says how operations of it are split over devices.
    """

    name: str
    body: str
    constants: tuple[ConcreteArray, ...]
    kept: tuple[int, ...]
    donated: tuple[int, ...]
    useless: tuple[int, ...]
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    callbacks: tuple[Callable[..., Any], ...]
    platform: str
    inspections: tuple[Inspection, ...] = ()
    splits: tuple[Any, ...] = ()

    @property
    def python_functions(self) -> tuple[Callable[..., Any], ...]:
        """What belongs to this process: a program with one in it is not for others."""
        asking = [inspection.callback for inspection in self.inspections]
        return (*self.callbacks, *asking, *self.splits)

    @property
    def text(self) -> str:
        """The text of the whole module."""
        return f"module @{self.name} {{\n{self.body}\n}}\n"


def lower(
    closed: ClosedJaxpr,
    *,
    name: str = "main",
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    platform: str = "cpu",
    axis_sizes: Mapping[Any, int] | None = None,
    devices: Sequence[Any] = (),
    in_shardings: Sequence[Sharding | None] = (),
    out_shardings: Sequence[Sharding | None] = (),
    layouts: Layouts = NO_LAYOUTS,
    is_portable: bool = False,
    is_users: bool = False,
) -> LoweredProgram:
    """Write the program of a closed jaxpr as StableHLO.

    Args:
      closed: the program; its constants are concrete arrays.
      name: of the module, as profiles show it.
      donated: for each argument, whether its memory may become that of a result.
      keep_unused: whether arguments that nothing needs stay arguments.
      platform: `cpu`, `cuda`, `rocm` or `tpu`: some primitives are written differently for them.
      axis_sizes: the named axes that run over replicas of the program, which are numbered row by
        row over them.
      devices: those that the program is split over, in the order in which it counts them.
      in_shardings: for each argument its sharding; of None nothing is said.
      out_shardings: for each result its sharding, None leaves that to XLA.
      layouts: in which orders the dimensions of arguments and results lie in memory.
      is_portable: whether the text is for readers elsewhere: it calls no routines of this library.
      is_users: whether it is of a function that a user compiles, and not derived from one.

    Raises:
      MissingRuleError: a primitive has no `stablehlo` rule; the message names the user's line.
    """
    numbers = extended.physical(closed)
    if platform != "cpu":
        numbers = return_to_device(numbers)
    stacked, in_shardings, out_shardings = passed(numbers, in_shardings, out_shardings)
    smaller, needed = prune_dead_code(stacked, keep_arguments=keep_unused)
    kept = tuple([i for i, need in enumerate(needed) if need or keep_unused])
    shardings, orders = _of_kept(in_shardings, kept), _of_kept(layouts.ins, kept)
    merged = merge_repeated(smaller)
    shorter = without_repeated(merged.jaxpr, shardings, out_shardings)
    mark_optimised(smaller := ClosedJaxpr(shorter, merged.consts))
    given = tuple(donated) or (False,) * len(needed)
    module = _module(platform, axis_sizes or {}, devices, (*in_shardings, *out_shardings))
    module.is_portable = is_portable
    module.is_users = is_users
    module.calls_host = platform == "cpu" and not is_portable and host_kernels.value
    _note_what_is_said(module, smaller, shardings, out_shardings)
    outs = layouts.outs or (None,) * len(smaller.out_avals)
    results = _results_in_place(smaller, [given[i] for i in kept], orders, outs)
    module.main = smaller.jaxpr
    constants = module.add_function(
        "main", smaller, public=True, of_captured=lambda aval: _everywhere(module, aval),
        arg_attributes=_argument_attributes(module, smaller, results, shardings, orders, outs),
        result_attributes=_result_attributes(module, out_shardings, smaller.out_avals, outs),
    )  # fmt: skip
    return LoweredProgram(
        name=module.symbol(f"jit_{name}"), constants=tuple(constants), kept=kept,
        body="\n".join([*module.declarations(), *module.functions]),
        donated=tuple([i for i, r in zip(kept, results, strict=True) if r is not None]),
        useless=tuple([i for i, r in zip(kept, results, strict=True) if r is None and given[i]]),
        in_avals=tuple([closed.in_avals[i] for i in kept]), out_avals=numbers.out_avals,
        callbacks=tuple(module.callbacks), platform=platform,
        inspections=tuple(module.inspections), splits=tuple(module.splits),
    )  # fmt: skip


def text_of_piece(closed: ClosedJaxpr, mesh: Any, devices: Sequence[Any], platform: str) -> str:
    """Return the module of a program that each device of a mesh runs on its own pieces.

    All that it captures stands in the text: it takes the pieces alone.
    """
    module = _module(platform, dict(mesh.shape), devices)
    numbers = np.array(numbers_of_devices(module, mesh.devices_in_order))
    module.members = Members(mesh, tuple(mesh.axis_names), numbers.reshape(mesh.axis_sizes))
    symbol, captured = module.function(optimise(extended.physical(closed)), "piece")
    builder = Builder(module)
    values = [builder.constant(c.to_host(), c.aval) for c in captured]
    names = [f"%arg{i}" for i in range(len(closed.in_avals))]
    outs = [builder.fresh() for _ in closed.out_avals]
    types = [", ".join(map(type_text, avals)) for avals in (
        [c.aval for c in captured], closed.in_avals, closed.out_avals)]  # fmt: skip
    given = ", ".join(filter(None, types[:2]))
    arguments = ", ".join(
        [f"{n}: {type_text(a)}" for n, a in zip(names, closed.in_avals, strict=True)]
    )
    main = "\n".join([
        f"func.func public @main({arguments}) -> ({types[2]}) {{",
        *builder.prelude,
        f"{', '.join(outs)} = func.call @{symbol}({', '.join([*values, *names])}) : ({given}) -> "
        f"({types[2]})",
        f"return {', '.join(outs)} : {types[2]}",
        "}",
    ])  # fmt: skip
    return "\n".join(["module @piece {", *module.declarations(), *module.functions, main, "}"])


def _mesh_of(shardings: Sequence[Sharding | None], devices: tuple[Any, ...]) -> Any:
    """Return the mesh by whose names users call the devices of a program, if there is one."""
    meshes: list[Any] = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
    known = [mesh for mesh in meshes if isinstance(mesh, Mesh)]
    return next((mesh for mesh in known if mesh.devices_in_order == devices), None)


def _note_what_is_said(module: Module, closed: ClosedJaxpr, ins: Any, outs: Any) -> None:
    if module.devices:
        module.cuts = cuts_of(closed, ins, outs)
        module.barriers = barriers_of(closed, ins, outs)


def _module(
    platform: str, axis_sizes: Mapping[Any, int], devices: Sequence[Any],
    shardings: Sequence[Sharding | None] = (),
) -> Module:  # fmt: skip
    module = Module(_write_jaxpr, _stage_program, platform)
    module.axis_sizes = dict(axis_sizes)
    module.devices = list(devices)
    module.mesh = _mesh_of(shardings, tuple(devices))
    return module


def _of_kept(values: Sequence[Any], kept: Sequence[int]) -> list[Any]:
    """Return what there is for each argument that is kept, None where there is nothing at all."""
    return [values[i] for i in kept] if values else [None] * len(kept)


def _argument_attributes(
    module: Module, closed: ClosedJaxpr, results: Sequence[int | None],
    shardings: Sequence[Sharding | None], layouts: Sequence[Any], of_results: Sequence[Any],
) -> list[str]:  # fmt: skip
    """Return what the text says of each argument: which result takes its memory, its sharding.

    XLA would choose for those of which nothing is said. Where results may lie otherwise, it looks
    for one of the same size on each device.

    Args:
      module: what is written.
      closed: the program.
      results: for each argument the result that takes its memory.
      shardings: for each argument its sharding over devices.
      layouts: for each argument the order in which it lies.
      of_results: likewise for the results.
    """
    texts = []
    for i, (aval, result) in enumerate(zip(closed.in_avals, results, strict=True)):
        text = "" if result is None else f"tf.aliasing_output = {result} : i32"
        if result is not None and (module.devices or layouts[i] != of_results[result]):
            text = "jax.buffer_donor = true"
        where = _sharding_attribute(module, shardings[i], aval)
        texts.append(", ".join(filter(None, (text, where))))
    return _with_layouts(layouts, texts)


def _result_attributes(
    module: Module, shardings: Sequence[Sharding | None], avals: Sequence[ShapedArray],
    layouts: Sequence[Any],
) -> list[str]:  # fmt: skip
    pairs = zip(shardings, avals, strict=bool(shardings))
    return _with_layouts(layouts, [_sharding_attribute(module, s, aval) for s, aval in pairs])


def _sharding_attribute(module: Module, sharding: Sharding | None, aval: ShapedArray) -> str:
    if sharding is None:
        return ""
    return f"sdy.sharding = #sdy.sharding{sharding_text(module, sharding, aval.ndim)}"


def _with_layouts(layouts: Sequence[Any], texts: list[str]) -> list[str]:
    """Add to what the text says of arguments or results in which order they lie."""
    if not any(layouts):
        return texts
    texts = texts or [""] * len(layouts)
    return [
        ", ".join(filter(None, (text, layout and gateway.layout_mode(layout))))
        for text, layout in zip(texts, layouts, strict=True)
    ]


def _everywhere(module: Module, aval: ShapedArray) -> str:
    """Return what the text says of a captured array: each device has the whole."""
    if not module.devices:
        return ""
    return f"sdy.sharding = #sdy.sharding{everywhere_text(module, aval.ndim)}"


def _results_in_place(
    closed: ClosedJaxpr, donated: Sequence[bool], layouts: Sequence[Any], of_results: Sequence[Any]
) -> list[int | None]:
    """Return for each argument the result that takes its memory, if it is donated.

    It has the same type, and lies in the same order if there is such a one.
    """
    if not any(donated):
        return [None] * len(closed.in_avals)
    free: dict[Any, list[int]] = {}
    for i, key in enumerate(zip(closed.out_avals, of_results, strict=True)):
        free.setdefault((key[0].strong(), key[1]), []).append(i)
    keys = [(a.strong(), layout) for a, layout in zip(closed.in_avals, layouts, strict=True)]
    found = [free[key].pop(0) if given and free.get(key) else None
             for key, given in zip(keys, donated, strict=True)]  # fmt: skip
    left = {kind: places for (kind, _), places in free.items() if places}
    return [
        left[key[0]].pop(0) if given and result is None and left.get(key[0]) else result
        for key, given, result in zip(keys, donated, found, strict=True)
    ]


def warn_of_useless_donations(
    name: str, lowered: LoweredProgram, names_of: Callable[[], Sequence[str]] = tuple
) -> None:
    """Say which donated arguments no result could take the memory of: they stay as they are."""
    if not lowered.useless:
        return
    arg_names = names_of()
    shown = [
        f"{arg_names[i] if i < len(arg_names) else f'argument {i}'}: "
        f"{lowered.in_avals[lowered.kept.index(i)].str_long()}"
        for i in lowered.useless
    ]
    warnings.warn(
        message(
            "Some donated buffers were not usable", f"no result of {name} can take the memory of "
            f"{', '.join(shown)}.",
            expected="a result of the same shape and dtype for each donated array",
            hint="leave it out of donate_argnums; it stays readable",
        ),
        stacklevel=source.depth(),
    )  # fmt: skip


def _write_jaxpr(builder: Builder, jaxpr: Jaxpr, operands: list[str]) -> list[str]:
    """Write the equations of a jaxpr into a builder and return the names of its results."""
    names: dict[Any, str] = dict(zip((*jaxpr.constvars, *jaxpr.invars), operands, strict=True))
    located, is_marked = source_locations.value, xla_metadata.used
    forms = _forms_of(builder, jaxpr)
    module, scopes = builder.module, builder.module.scopes
    fenced = _find_fenced(builder, jaxpr)
    nans = arithmetic.nan_results(jaxpr, builder.platform, module.is_portable)
    plan = _plan_of(builder, jaxpr)
    plain = _find_plain_extremes(builder, jaxpr)
    sums = _find_padded_sums(builder, jaxpr, plan)
    for eqn in jaxpr.eqns:
        if eqn in plan.eqns or eqn in sums:
            _write_with_others(builder, eqn, names, plan, sums)
            continue
        if located or is_marked:
            module.scopes = (*scopes, *eqn.name_stack, label(eqn))
        start = len(builder.lines)
        if eqn in plain:
            names.update(zip(eqn.outputs, _write_equation(builder, eqn, names, True), strict=True))
        elif forms is None or eqn.signature is None or len(eqn.outputs) != 1:
            results = _write_equation(builder, eqn, names)
            names.update(zip(eqn.outputs, results, strict=True))
        else:
            names[eqn.outputs[0]] = _write_again(builder, eqn, names, forms)
        if eqn in fenced:
            (v,) = eqn.outputs
            names[v] = builder.fence(names[v], v.aval)
        if eqn in nans:
            (v,), nan = eqn.outputs, nans[eqn]
            names[v] = builder.broadcast(builder.array_constant(nan), nan.aval, v.aval.shape)
        if is_marked:
            add_metadata(builder, start, (*scopes, *eqn.name_stack))
        if located:
            locate(builder.lines, start, eqn, scopes)
    module.scopes = scopes
    plan.write_last(builder, names)
    outvars: Sequence[Any] = jaxpr.outvars
    return [names[x] if x in names else _literal(builder, x, names) for x in outvars]


def _find_fenced(builder: Builder, jaxpr: Jaxpr) -> frozenset[Equation]:
    if builder.is_split:  # what the partitioner splits has no fences
        return frozenset()
    wrong = sums_to_fence(jaxpr, builder.module.platform)
    return wrong | equations_to_fence(jaxpr) if builder.may_fence else wrong


def _find_plain_extremes(builder: Builder, jaxpr: Jaxpr) -> frozenset[Equation]:
    is_split = builder.is_split or builder.platform != "cpu"
    return frozenset() if is_split else arithmetic.extremes_of_sums(jaxpr)


def _find_padded_sums(
    builder: Builder, jaxpr: Jaxpr, plan: small_kernels.Plan
) -> Mapping[Equation, padded_sums.Written | None]:
    keeps = builder.is_split or builder.platform != "cpu" or builder.module.is_portable
    if keeps or _keeps_lines(jaxpr, builder.module.scopes):
        return {}
    return padded_sums.find_padded_sums(jaxpr, plan.eqns)


def _write_with_others(
    builder: Builder, eqn: Equation, names: dict[Any, str], plan: small_kernels.Plan,
    sums: Mapping[Equation, padded_sums.Written | None],
) -> None:  # fmt: skip
    """Write several equations where the last of them stands, and nothing for the others."""
    if eqn in plan.eqns:
        plan.write(builder, eqn, names)
    elif (tree := sums[eqn]) is not None:
        names[eqn.outputs[0]] = tree.write(builder, names)


def _plan_of(builder: Builder, jaxpr: Jaxpr) -> small_kernels.Plan:
    """Return what is written as kernels of many small arrays."""
    module = builder.module
    if not (module.may_join and builder.may_fence) or _keeps_lines(jaxpr, module.scopes):
        return small_kernels.NO_PLAN
    return small_kernels.plan_of(jaxpr, is_main=jaxpr is module.main)


def _keeps_lines(jaxpr: Jaxpr, scopes: Sequence[str]) -> bool:
    """Return whether the text says of an operation where it comes from, or what users set."""
    if source_locations.value:
        return True
    stacks = [eqn.name_stack for eqn in jaxpr.eqns] if xla_metadata.used else []
    return any(metadata_of((*scopes, *stack)) for stack in stacks)


def _write_equation(
    builder: Builder, eqn: Equation, names: dict[Any, str], is_plain: bool = False
) -> Sequence[str]:
    inputs: Sequence[Any] = eqn.inputs
    outputs = eqn.outputs
    rule = eqn.primitive.rules.get("stablehlo")
    if rule is None or type(rule) is Undefined:
        raise _missing_rule(eqn)
    before = builder.last_order
    operands = [names[x] if x in names else _literal(builder, x, names, eqn) for x in inputs]
    avals_in, avals_out = [x.aval for x in inputs], [v.aval for v in outputs]
    if builder.module.barriers.before.intersection(outputs) and builder.is_split:
        _gather_an_operand(builder, eqn, operands)
    results = _write_operation(builder, eqn, rule, operands, avals_in, avals_out, is_plain)
    if len(results) != len(outputs):
        raise _wrong_results(eqn, len(results))
    if "effects" in eqn.primitive.rules and builder.last_order is before:
        _check_no_order(eqn)
    return _as_typed(builder, results, outputs) if builder.module.devices else results


def _write_operation(
    builder: Builder, eqn: Equation, rule: Any, operands: list[str], avals_in: list[ShapedArray],
    avals_out: list[ShapedArray], is_plain: bool,
) -> Sequence[str]:  # fmt: skip
    """Write an equation as a call of the host, around a fault of XLA, or by its rule."""
    primitive, params = eqn.primitive, eqn.params
    if builder.module.calls_host and "host" in primitive.rules:
        results = write_host_kernel(builder, primitive, operands, avals_in, avals_out, params)
        if results is not None:
            return results
    if primitive.name in arithmetic.EXTREMES and builder.platform == "cpu" and not is_plain:
        rule = functools.partial(arithmetic.write_extremes, primitive.name, rule)
    if primitive.name in arithmetic.EXTREMES_OF_TWO and builder.platform == "cpu":
        rule = functools.partial(arithmetic.write_extreme_of_two, primitive.name, rule)
    if primitive.name in arithmetic.SATURATING and is_gpu(builder.platform):
        rule = functools.partial(arithmetic.write_in_float32, primitive.name, rule)
    if primitive.name in arithmetic.SLICED:
        operands = arithmetic.clamp_starts(builder, eqn, operands, avals_in)
    if primitive.name in REWRITTEN and builder.is_split:
        return write_split(builder, primitive.name, rule, operands, avals_in, avals_out, params)
    return rule(builder, operands, avals_in, avals_out, **params)  # type: ignore[no-any-return]


def _gather_an_operand(builder: Builder, eqn: Equation, operands: list[str]) -> None:
    """Have the smaller operand of a product replicated along the contracted dimensions."""
    contracted, _ = eqn.params["dimension_numbers"]
    sizes = [math.prod(n for n in x.aval.shape if type(n) is int) for x in eqn.inputs]
    k = sizes.index(min(sizes))
    dims = contracted[k] if builder.module.mesh or builder.members else None
    operands[k] = builder.hold_whole(operands[k], eqn.inputs[k].aval, dims)


# --- equations of one form ------------------------------------------------------------------------
# Most equations of a long program repeat another one with other operands. Where a rule has written
# one line that names each operand once, in order, equations of the same signature are that line
# with their own names. A form belongs to a builder: what else it names is in scope.

_FEWEST_EQUATIONS = 12  # programs with fewer have hardly anything to repeat
_NAME = re.compile(r"(%\w+)")


def _forms_of(builder: Builder, jaxpr: Jaxpr) -> dict[Any, str | None] | None:
    """Return the forms of the lines of a builder, or None where a rule has to write each anew."""
    module = builder.module
    # collectives are counted, and results constrained, for each equation alone
    is_alone = not (module.devices or module.axis_sizes) and module.members is None
    return builder.forms if is_alone and len(jaxpr.eqns) >= _FEWEST_EQUATIONS else None


def _write_again(
    builder: Builder, eqn: Equation, names: dict[Any, str], forms: dict[Any, str | None]
) -> str:
    """Write an equation of one result by the form of its kind, or by its rule; return the name."""
    inputs: Sequence[Any] = eqn.inputs
    try:
        operands = [names[x] for x in inputs]
    except KeyError:
        operands = [names[x] if x in names else _literal(builder, x, names, eqn) for x in inputs]
    key: Any = eqn.signature
    scalars = builder.known_scalars
    if scalars and not scalars.isdisjoint(operands):  # rules look at their values
        key = (key, *[name if name in scalars else None for name in operands])
        operands = [name for name in operands if name not in scalars]
    form = forms.get(key)
    module = builder.module
    if form:
        module.count += 1
        result = f"%{module.count}"
        builder.lines.append(form % (result, *operands))
        return result
    if form is not None or key not in forms or "effects" in eqn.primitive.rules:
        forms.setdefault(key)  # a second one is worth a form
        return _write_equation(builder, eqn, names)[0]
    before = len(builder.lines), len(builder.prelude), module.count, *module.count_notes()
    result = _write_equation(builder, eqn, names)[0]
    after = len(builder.lines) - 1, len(builder.prelude), module.count - 1, *module.count_notes()
    if before == after:
        forms[key] = _form(builder.lines[-1], result, operands)
    return result


def _form(line: str, result: str, operands: Sequence[str]) -> str:
    """Return a line with places for its result and operands; empty where they are not in order."""
    parts = _NAME.split(line)  # names are at odd positions
    own = {result, *operands}
    found = [name for name in parts[1::2] if name in own]
    if len(own) != len(operands) + 1 or found != [result, *operands]:
        return ""
    return "".join(["%s" if part in own else part.replace("%", "%%") for part in parts])


def _as_typed(builder: Builder, results: Sequence[str], outputs: Sequence[Var]) -> list[str]:
    """Have results lie as their types say; along axes that are not explicit XLA may cut more."""
    module = builder.module
    found = []
    for name, v in zip(results, outputs, strict=True):
        if v in module.barriers.behind and builder.is_split:
            (name,) = builder.op("sdy.propagation_barrier", [name], [v.aval], [v.aval],
                                 "allowed_direction = 1 : i32")  # fmt: skip
        sharding = along_explicit_axes(v.aval.type_sharding)
        if sharding is not None:
            is_open = len(sharding.mesh.explicit_axes) < len(sharding.mesh.axis_names)
            text = (explicit_text if is_open else sharding_text)(module, sharding, v.aval.ndim)
            (name,) = builder.op("sdy.sharding_constraint", [name], [v.aval], [v.aval],
                                 f"sharding = #sdy.sharding{text}")  # fmt: skip
        found.append(name)
    return found


def _literal(
    builder: Builder, literal: Literal, names: dict[Any, str], reader: Equation | None = None
) -> str:
    """Return the name of a literal, from now on among the names; NaN has one for each reader."""
    host = literal.value.to_host()
    if not arithmetic.is_hidden(builder.platform, host):
        name = names[literal] = builder.constant(host, literal.aval)
    elif reader is None or reader.primitive.name == "select_n":
        name = builder.constant(host, literal.aval)
    else:
        name = builder.array_constant(literal.value)
    return name


def _stage_program(
    fun: Callable[..., Any], avals: tuple[ShapedArray, ...], key: Any
) -> ClosedJaxpr:
    """Stage a function that is a rule written with other primitives, once for each key."""
    full_key = (static_key(key), avals, config.trace_context())
    closed = _staged.get(full_key)
    if closed is None:
        with config.index_checks("allow"):  # a rule does not leave its arrays
            jaxpr, consts = trace_to_jaxpr(fun, [whole(a) for a in avals])
        # their lines would be where the first program with such a rule was lowered
        jaxpr = jaxpr.replace(eqns=[
            Equation(eqn.primitive, eqn.inputs, eqn.outputs, eqn.params, None, eqn.name_stack,
                     eqn.signature)
            for eqn in jaxpr.eqns
        ])  # fmt: skip
        closed = optimise(ClosedJaxpr(jaxpr, consts))
        remember(_staged, full_key, closed, _MAX_STAGED)
    return closed


def _missing_rule(eqn: Equation) -> MissingRuleError:
    try:
        eqn.primitive.rule("stablehlo")
    except MissingRuleError as error:
        where = source.describe(eqn.source)
        return type(error)(f"{error}\n  where     {where}" if where else str(error))
    raise AssertionError(eqn)


def _check_no_order(eqn: Equation) -> None:
    """Raise for an equation whose effects must happen in order, but whose rule made none."""
    ordered = ordered_effects(eqn.effects)
    if ordered:
        raise TypeError(message(
            eqn.primitive.name, "it has side effects whose order a compiled program would not "
            "keep.",
            got=f"effects: {effects_text(ordered)}", where=source.describe(eqn.source),
            hint="run it outside of jit, declare Effect(name, ordered=False) where any order is "
            "right, or pass builder.order along in its stablehlo rule",
        ))  # fmt: skip


def _wrong_results(eqn: Equation, count: int) -> TypeError:
    return TypeError(message(
        f"{eqn.primitive.name}", f"its stablehlo rule returned {count} names.",
        expected=f"{len(eqn.outputs)}, one for each result",
    ))  # fmt: skip


# ---------------------------------------------------------------------------- values in host memory


def return_to_device(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program whose results, and what it puts on its devices, are in their memory.

    What was put into the memory of the host is there until another kind is said; XLA refuses a
    result that is there but is wanted on the device.
    """
    on_host: set[Any] = set()
    eqns: list[Equation] = []

    def fetch(v: Any) -> Any:
        copy = Var(v.aval)
        eqns.append(Equation(get_primitive("in_memory"), [v], [copy], {"kind": "device"}, None))
        return copy

    for eqn in closed.eqns:
        if eqn.primitive.name == "device_put":  # to memory of the host it would be `in_memory`
            eqn = eqn.replace(inputs=[fetch(v) if v in on_host else v for v in eqn.inputs])
        eqns.append(eqn)
        on_host.update(compress(eqn.outputs, _leaves_on_host(eqn, on_host)))
    outvars = [fetch(v) if v in on_host else v for v in closed.jaxpr.outvars]
    if len(eqns) == len(closed.eqns):
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns, outvars=outvars), closed.consts)


def _leaves_on_host(eqn: Equation, on_host: set[Any]) -> list[bool]:
    """Return for each result of an equation whether it is in the memory of the host."""
    name, program = eqn.primitive.name, eqn.params.get("jaxpr")
    if name == "in_memory":
        return [eqn.params["kind"] != "device"]
    if name == "optimization_barrier":
        return [x in on_host for x in eqn.inputs]
    if not isinstance(program, ClosedJaxpr) or len(program.out_avals) != len(eqn.outputs):
        return [False] * len(eqn.outputs)
    inside: set[Any] = set()
    if len(program.jaxpr.invars) == len(eqn.inputs):  # what is passed through stays where it is
        inside.update(compress(program.jaxpr.invars, [x in on_host for x in eqn.inputs]))
    for inner in program.eqns:
        inside.update(compress(inner.outputs, _leaves_on_host(inner, inside)))
    return [v in inside for v in program.jaxpr.outvars]
