"""Kernels: executable forms of programs, each made once and cached by what determines it.

A *kernel* is the executable form of a jaxpr for given abstract values at a placement, on a back
end: a function of ndarrays on the host (`numpy_function` makes those), or a program of the
compiler's on a device. Code that evaluates the same computation repeatedly owns a `KernelTable`:

    (what is computed, abstract values, static values) + options of this thread -> kernel

The table decides at which use to make a kernel, bounds their number, and drops all of them when an
option or the compiler back end changes for the process. `ProgramKernels` do the same for programs
that run many times in one call: a program holds its kernel itself. A maker that cannot make a
kernel raises `Refusal` with the reason, and the operation is evaluated by its rules.

Reasons go to the logger `xprim.kernels`; `XSTACK_LOG=kernels` or `config.update("log", "kernels")`
shows them. A rule that fails unexpectedly while a kernel is made is always shown; under
`config.enable_checks` its error is raised, and a kernel is made anew at each use and compared with
the one that was kept.
"""

from __future__ import annotations

import functools
import marshal
import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from xprim import config, dtypes
from xprim.array import ConcreteArray
from xprim.avals import ShapedArray
from xprim.config import state
from xprim.eager import EAGER
from xprim.eager_costs import HUGE, READ_AT_ONCE
from xprim.errors import ImpureRuleError, XStackError, message, place_of
from xprim.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from xprim.jaxpr_passes import first_difference, remove_dead_code
from xprim.primitive import Primitive
from xprim.rules import NumpyCall, Operand
from xprim.staging import trace_to_closed
from xprim.strict_options import no_execution, results_are_checked
from xtree.generated_code import define_function
from xtree.interning import forkable_rlock, remember
from xtree.namespaces import late_import

__all__ = [
    "REFUSED", "Kernel", "KernelTable", "ProgramKernels", "Refusal", "forget_kernels",
    "forget_with_kernels", "log", "log_refusal", "numpy_operand", "numpy_function",
    "same_elements", "staged_function",
]  # fmt: skip

__dir__ = __all__.copy

_logging = late_import("logging", "it takes 5 ms to import, as long as twenty modules of ours")

MAX_KERNELS = 2048  # in one table

log = config.define(
    config.Option("log", "", "What is logged: 'kernels', or nothing.", choices=("", "kernels"))
)

_tables: list[KernelTable] = []
# Other tables, which die with their owners, and guards them for threads.
_watched: weakref.WeakSet[Clearable] = weakref.WeakSet()
_lock = forkable_rlock()  # a finaliser may make what is watched
_values = config.values
_checks = config.enable_checks


class Refusal(Exception):  # noqa: N818 - no error: the operation goes by its rules
    """Raised where a kernel is not to be made; the text is the reason."""


class Kernel:
    """The executable form of a program.

    Attributes:
      run: the function; of ndarrays to ndarrays on the host, of arrays to arrays on a device. Where
        programs are staged, an `EquationTemplate`. None where a kernel was refused, so that a
        look-up finds that out as well.
      avals_out: the abstract values of the results; of an array function with one result, its own.
      programs: what it was made from, while kernels are compared with their rules.
    """

    __slots__ = ("avals_out", "programs", "run")

    def __init__(
        self,
        run: Any,
        avals_out: Any,
        programs: Sequence[ClosedJaxpr] = (),
    ) -> None:
        self.run = run
        self.avals_out = avals_out
        self.programs = programs


REFUSED = Kernel(None, ())


class KernelTable(dict[Any, Any]):
    """Kernels by what determines them.

    A hot path looks up `table.get((*key, state.__dict__["options"]))` itself.

    Args:
      name: what is computed, for the log.
      uses: how often something is evaluated by its rules before a kernel is made.
      rule_kind: the kind of rule that the programs are traced from, for errors.
      limit: how many kernels are kept; the table is emptied when there would be more.

    Tables live as long as the process: they are made when a module is imported.

    Example:
      >>> table = KernelTable("halves", uses=1)
      >>> def make():
      ...     return Kernel(lambda x: x / 2, ())
      >>> [table.use(("half", "float32[3]"), make) is None for _ in range(3)]
      [True, False, False]
    """

    __slots__ = ("limit", "name", "rule_kind", "uses")

    def __init__(
        self, name: str, *, uses: int = 0, rule_kind: str = "jvp", limit: int = MAX_KERNELS
    ) -> None:
        super().__init__()
        self.name = name
        self.rule_kind = rule_kind
        self.uses = uses
        self.limit = limit
        _tables.append(self)

    def keep(self, key: Sequence[Hashable], kernel: Any) -> Any:
        """Store what was made for a key, which is completed by the options, and return it."""
        config.trace_context()
        return remember(self, (*key, state.__dict__["options"]), kernel, self.limit)

    def find(self, key: Sequence[Hashable]) -> Any:
        """Return what is kept for a key under the options of this thread, or None.

        Right after the thread left a scope of other options a hot path finds nothing.
        """
        config.trace_context()
        return self.get((*key, state.__dict__["options"]))

    def make(self, key: Sequence[Hashable], make: Callable[..., Any], *args: Any) -> Any:
        """Return the kernel of a key, made now unless it is kept; or `REFUSED`.

        Args:
          key: its first item is what is computed: a primitive, or a function.
          make: called with `args` under evaluation; returns a `Kernel`, or raises `Refusal`.
          *args: of `make`.
        """
        found = self.find(key)
        return self.keep(key, _make_kernel(self.name, key, make, args)) if found is None else found

    def use(self, key: Sequence[Any], make: Callable[..., Any], *args: Any) -> Any:
        """Count a use, and return the kernel when it was used often enough to be worth making.

        Args:
          key: of a primitive, and what else the kernel depends on.
          make: as for `make`.
          *args: as for `make`.

        Returns:
          The kernel, or None: the operation must go by its rules.
        """
        try:
            found = self.get((*key, state.__dict__["options"])) or self.find(key)
        except TypeError:  # an unhashable param: the rules say which
            return None
        if found is REFUSED:
            return None
        if type(found) is _Checked:
            return found.compare(_make_kernel(self.name, key, make, args))
        if found is None or type(found) is int:
            checked = _checks.used and _values.enable_checks
            count = found or 0
            if count < self.uses and not checked:
                self.keep(key, count + 1)
                return None
            found = self.keep(key, _make_kernel(self.name, key, make, args))
            if found is REFUSED:
                return None
            if checked:
                self.keep(key, _Checked(found, key[0], self.rule_kind))
            else:
                found.programs = ()
        return found


class ProgramKernels:
    """Kernels of programs, each kept by its program: a loop's step runs many times in one call.

    A program dies with the function that it came from, and its kernel with it, so there is nothing
    to bound. The options of the thread and the back end are part of the key.

    Args:
      name: what is computed, for the log.
      worth: how many equations go by the rules before a kernel is made.
    """

    def __init__(self, name: str, *, worth: int) -> None:
        self.name = name
        self.worth = worth

    def use(
        self, closed: ClosedJaxpr, times: float, make: Callable[[ClosedJaxpr], Kernel]
    ) -> Kernel | None:
        """Count uses of a program, and return its kernel when that is worth making.

        Args:
          closed: the program.
          times: how often it is to run.
          make: as for `KernelTable.make`, of the program.
        """
        key = (self.name, config.trace_context(), EAGER.backend)
        found: Any = closed.memo.get(key, 0)
        if not isinstance(found, Kernel):  # the number of equations that went by the rules
            found += times * len(closed.jaxpr.eqns)
            if found >= self.worth:
                found = _make_kernel(self.name, (closed.jaxpr.name,), make, (closed,))
            closed.memo[key] = found
        return found if isinstance(found, Kernel) and found is not REFUSED else None


def _make_kernel(table: str, key: Sequence[Any], make: Callable[..., Any], args: Any) -> Any:
    """Return a kernel made under evaluation, or `REFUSED` with the reason in the log."""
    previous, state.trace = state.trace, EAGER
    try:
        return make(*args)
    except Exception as error:
        expected = isinstance(error, Refusal | XStackError)
        if _values.enable_checks and not expected:
            raise
        what = [_describe(a) for a in key if a is not None and (a or type(a) is not tuple)]
        reason = str(error).partition("\n")[0]
        if not isinstance(error, Refusal):
            reason = f"{failing_line(error, make)}: {type(error).__name__}: {reason}"
        log_refusal(table, " ".join(what), reason, shown=not expected)
        return REFUSED
    finally:
        state.trace = previous


def _describe(part: Any) -> str:
    """Return a part of a key as the log shows it."""
    if type(part) is ShapedArray:
        return part.str_short()
    if type(part) is bytes:
        return " ".join(map(repr, marshal.loads(part)))  # values of `params_key`
    return getattr(part, "__name__", str(part))


def log_refusal(table: str, what: str, reason: str, *, shown: bool = False) -> None:
    """Log why a table has no kernel for something.

    Args:
      table: the name of the table.
      what: the computation without a kernel.
      reason: why it has none.
      shown: log a warning, even where the option `log` is not set.
    """
    shown = shown or log.value == "kernels"
    if shown or "logging" in sys.modules:  # else there is no handler
        level = _logging.WARNING if shown else _logging.DEBUG
        logger = _logging.getLogger("xprim.kernels")
        logger.log(level, "%s: no kernel for %s: %s", table, what, reason)


class Clearable(Protocol):
    """What holds kernels in tables of its own."""

    def clear(self) -> None:
        """Forget all kernels."""


def forget_with_kernels(owner: Clearable) -> None:
    """Have an object forget its kernels whenever all tables are emptied, as long as it lives."""
    with _lock:
        _watched.add(owner)


@config.when_changed
def forget_kernels() -> None:
    """Empty all tables."""
    with _lock:
        tables = (*_tables, *_watched)
    for table in tables:  # what dies with kernels may make others
        table.clear()


def numpy_operand(x: ConcreteArray) -> Any:
    """Return the host elements of an array if NumPy may compute with them, else None.

    An array that has a buffer belongs to the device of that buffer: the compiler back end says
    whether that is the host's own memory, in which case its elements are read in place. Large ones
    are left to it, for they may still be in the making.
    """
    if x.buffer is None:
        return x.host
    if x.aval.size > READ_AT_ONCE or dtypes.is_extended(x.aval.dtype):
        return None
    return x.to_host() if EAGER.backend.on_host(x) else None


# --- what failed, and what changed ----------------------------------------------------------------


def failing_line(error: BaseException, make: Callable[..., Any]) -> str:
    """Return the file and line of the rule in which making a kernel failed."""
    ours = {os.path.dirname(__file__), os.path.dirname(make.__code__.co_filename)}
    place = "an unknown place"
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if os.path.dirname(file) not in ours:
            place = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


class _Checked:
    """Stands in a table for a kernel that is compared with the rules at each use."""

    __slots__ = ("computed", "kernel", "rule_kind")

    def __init__(self, kernel: Kernel, computed: Any, rule_kind: str) -> None:
        self.kernel = kernel
        self.computed = computed  # a primitive, or a function
        self.rule_kind = rule_kind

    def compare(self, made_again: Kernel) -> Kernel | None:
        """Return the kernel if the rules still give the programs that it was made from."""
        if made_again is REFUSED:
            return None
        for old, new in zip(self.kernel.programs, made_again.programs, strict=True):
            found = first_difference(old, new)
            if found is not None:
                raise self._impure(*found)
        return self.kernel

    def _impure(self, old: str, new: str) -> ImpureRuleError:
        found, kind = self.computed, self.rule_kind
        if isinstance(found, Primitive):
            name, subject, place = found.name, f"its {kind} rule", found.place_of_rule(kind)
            what = "a rule is a pure function of operands, abstract values and params"
        else:
            name, subject, place = found.__name__, "it", place_of(found)
            what = "what is written as a kernel is a pure function of operands and static values"
        return ImpureRuleError(message(
            name, f"{subject} does something else than before for operands of the same types.",
            got=new, expected=f"{old}, as when it was written as a kernel", where=place,
            hint=f"{what}: pass what changes as one of these",
        ))  # fmt: skip


# --------------------------------------------------------------------------------- kernels of NumPy
# Kernels on the host: a program written as one Python function of ndarrays.
#
# Each equation becomes one line that calls the `numpy` rule of its primitive, with its params and
# the literals bound as constants of the function. Where a `ufunc` rule says which call of NumPy
# equals the rule, the line makes that call: it saves a Python call. Ufuncs broadcast their operands
# themselves, and write over a large operand that nothing else needs. A call-like primitive is
# called by its `kernel` rule, which gets functions of the programs that it holds from `write`.
#
# Under `config.enable_checks` each call of NumPy is compared with the rule that it stands for.

MAX_EQUATIONS = 64
_LARGE = 1 << 13  # elements: where new memory costs more than to name the old


def numpy_function(
    program: ClosedJaxpr, *, single: bool = False, longest: int = MAX_EQUATIONS
) -> Callable[..., Any]:
    """Return a program as a function of ndarrays.

    Args:
      program: what is computed.
      single: whether there is one result and it is returned as such, an ndarray or, of rank 0, a
        NumPy scalar; else the function returns a tuple of ndarrays.
      longest: how many operations it may have, and each program inside it.

    Example:
      >>> from xprim import Primitive, shaped_array, trace_to_closed, undefined
      >>> gap = undefined("it is an example")
      >>> cube_p = Primitive(
      ...     "example_cube", shape=lambda x: (x,), numpy=lambda x: (x * x * x,), stablehlo=gap,
      ...     jvp=gap, transpose=gap, batch=gap,
      ... )
      >>> aval = shaped_array((2,), np.dtype(np.float32))
      >>> cubes = numpy_function(trace_to_closed(cube_p.bind, [aval]), single=True)
      >>> cubes(np.float32([2, 3]))
      array([ 8., 27.], dtype=float32)

    Raises:
      Refusal: for a program that is long, has effects, holds calls of primitives without a `kernel`
        rule, or has an operation that the compiler takes or whose result is large; and for all
        where options check the result of each operation.
    """
    jaxpr = remove_dead_code(program.jaxpr)[0]
    _check_worth_writing(program, jaxpr, longest)
    if single and len(jaxpr.eqns) == 1:
        function = _function_of_equation(program.jaxpr, jaxpr.eqns[0])
        if function is not None:
            return function
    writer = _Writer(longest)
    for var, value in zip(jaxpr.constvars, program.consts, strict=True):
        writer.names[var] = writer.constant(value.to_host())
    return writer.function(program.jaxpr.invars, jaxpr, single)


def _check_worth_writing(program: ClosedJaxpr, jaxpr: Jaxpr, longest: int) -> None:
    if results_are_checked() or no_execution.value:
        raise Refusal("debug_nans, debug_infs and no_execution look at each operation")
    if program.effects:
        raise Refusal("it has effects")
    if len(jaxpr.eqns) > longest:
        raise Refusal(f"it has {len(jaxpr.eqns)} operations, more than {longest}")
    if {type(value) for value in program.consts} - {ConcreteArray}:
        raise Refusal("it captured a traced value")
    for eqn in jaxpr.eqns:
        _check_equation(eqn)


def _check_equation(eqn: Equation) -> None:
    if eqn.primitive.call_like:
        if "kernel" not in eqn.primitive.rules:
            raise Refusal(f"it holds a call ({eqn.primitive})")
    elif _is_compiled(eqn):
        raise Refusal(f"the compiler takes its {eqn.primitive}")
    if any(v.aval.size > HUGE for v in eqn.outputs):
        raise Refusal(f"the result of its {eqn.primitive} is huge")
    if any(dtypes.is_extended(v.aval.dtype) for v in (*eqn.inputs, *eqn.outputs)):
        raise Refusal(f"its {eqn.primitive} is about an extended dtype")


def _is_compiled(eqn: Equation) -> bool:
    stand_ins = tuple([ConcreteArray(None, x.aval) for x in eqn.inputs])
    avals_out = tuple([v.aval for v in eqn.outputs])
    return EAGER.backend.takes(eqn.primitive, stand_ins, eqn.params, avals_out)


def staged_function(
    function: Callable[..., Any], avals: Sequence[ShapedArray], statics: Sequence[Any]
) -> tuple[ClosedJaxpr, bool]:
    """Return the program of an array function, and whether it gives one result.

    Raises:
      Refusal: where it does more than a program without calls does, or has to warn each caller.
    """
    single = False

    def flat(*arrays: Any) -> Sequence[Any]:
        nonlocal single
        results = function(*arrays, *statics)
        single = not isinstance(results, tuple | list)
        return (results,) if single else results

    if config.values.numpy_rank_promotion != "allow":
        raise Refusal("numpy_rank_promotion looks at who passes the operands")
    program = trace_to_closed(flat, avals)
    if any(eqn.primitive.call_like for eqn in program.jaxpr.eqns):
        raise Refusal("it holds a call")
    return program, single


# --- the call of NumPy that equals a rule ---------------------------------------------------------


def _numpy_call(eqn: Equation) -> NumpyCall | None:
    """Return the call that the owner of a primitive says equals its rule, or None."""
    rule = eqn.primitive.rules.get("ufunc")
    if rule is None:
        return None
    found = rule([x.aval for x in eqn.inputs], [v.aval for v in eqn.outputs], **eqn.params)
    return found if found is None or type(found) is NumpyCall else NumpyCall(found)


def _is_elementwise(call: NumpyCall | None) -> bool:
    """Say whether a call broadcasts its operands and may write over one of them."""
    function = None if call is None else call.function
    return isinstance(function, np.ufunc) and function.signature is None  # matmul has a signature


def _arguments(call: NumpyCall, operands: Sequence[Any], constant: Callable[[Any], Any]) -> Any:
    """Return the arguments of a call: operands, and what `constant` makes of its constants."""
    if call.arguments is None:
        return operands
    return [operands[x.number] if type(x) is Operand else constant(x) for x in call.arguments]


def _function_of_equation(jaxpr: Jaxpr, eqn: Equation) -> Callable[..., Any] | None:
    """Return the NumPy function that an equation alone amounts to, or None."""
    if list(eqn.inputs) != list(jaxpr.invars) or list(eqn.outputs) != list(jaxpr.outvars):
        return None
    call = _numpy_call(eqn)
    if call is None or call.arguments is not None:
        return None
    if config.values.enable_checks:
        return _compare(eqn, call)
    return _specialize(call, [x.aval for x in eqn.inputs], eqn)


def _specialize(call: NumpyCall, avals: list[ShapedArray], eqn: Equation) -> Callable[..., Any]:
    out = eqn.outputs[0].aval
    return call.function if call.specialize is None else call.specialize(avals, out)


def _compare(eqn: Equation, call: NumpyCall) -> Callable[..., Any]:
    """Return a function of an equation's operands that does both the call and the rule."""
    rule = eqn.primitive.rule("numpy")
    function = _specialize(call, [x.aval for x in eqn.inputs], eqn)

    def run(*operands: Any) -> Any:
        got = np.asarray(function(*_arguments(call, operands, lambda x: x)))
        expected = np.asarray(rule(*operands, **eqn.params)[0])
        if not same_elements(got, expected):
            raise _differs(eqn, function, got, expected)
        return got

    return run


def same_elements(a: Any, b: Any) -> bool:
    """Return whether two ndarrays have the same types and elements; a NaN equals any other."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    return a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=dtypes.is_inexact(a.dtype))


def _differs(eqn: Equation, function: Any, got: Any, expected: Any) -> ImpureRuleError:
    name = eqn.primitive.name
    operands = ", ".join([x.aval.str_short() for x in eqn.inputs])
    return ImpureRuleError(message(
        name, "its ufunc rule names a call of NumPy that is not what its numpy rule does.",
        got=f"{function!r} of {operands}: {got.dtype}{list(got.shape)}, {got.ravel()[:4]}",
        expected=f"{expected.dtype}{list(expected.shape)}, {expected.ravel()[:4]}",
        where=f"ufunc rule at {eqn.primitive.place_of_rule('ufunc')}\nnumpy rule at "
        f"{eqn.primitive.place_of_rule('numpy')}",
        hint="both are pure functions of operands, abstract values and params",
    ))  # fmt: skip


def _implicit_broadcasts(jaxpr: Jaxpr, calls: dict[Equation, NumpyCall | None]) -> dict[Any, Any]:
    """Return what is broadcast, by variables that only meet operands of their shape in ufuncs."""
    sources = {
        eqn.outputs[0]: eqn.inputs[0]
        for eqn, call in calls.items()
        if call is not None and call.function is np.broadcast_to
    }
    computed = [*jaxpr.outvars]
    for eqn in jaxpr.eqns:
        call = calls[eqn]
        if not _is_elementwise(call) or not _has_whole_operand(eqn, sources):
            computed += eqn.inputs
    for x in computed:
        if type(x) is Var:
            sources.pop(x, None)
    return sources


def _has_whole_operand(eqn: Equation, sources: dict[Any, Any]) -> bool:
    shape = eqn.outputs[0].aval.shape
    return any(x.aval.shape == shape and not (type(x) is Var and x in sources) for x in eqn.inputs)


class _Writer:
    """Writes the text of the function; names of variables are numbers, constants are globals."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.globals: dict[str, Any] = {}
        self.names: dict[Any, str] = {}
        self.uses: Counter[Any] = Counter()
        self.calls: dict[Equation, NumpyCall | None] = {}
        self.implicit: dict[Any, Any] = {}
        self.compares = config.values.enable_checks
        self.own: set[Any] = set()  # variables whose memory was made here, and is large

    def constant(self, value: Any) -> str:
        name = f"c{len(self.globals)}"
        self.globals[name] = value
        return name

    def atom(self, x: Any) -> str:
        return self.constant(x.value.to_host()) if type(x) is Literal else self.names[x]

    def fresh(self, var: Any) -> str:
        name = self.names[var] = f"v{len(self.names)}"
        return name

    def function(self, invars: Any, jaxpr: Jaxpr, single: bool) -> Callable[..., Any]:
        arguments = ", ".join([self.fresh(v) for v in invars])
        atoms = [*jaxpr.outvars, *[x for eqn in jaxpr.eqns for x in eqn.inputs]]
        self.uses = Counter(atoms)
        self.calls = {eqn: _numpy_call(eqn) for eqn in jaxpr.eqns}
        if not self.compares:
            self.implicit = _implicit_broadcasts(jaxpr, self.calls)
        lines = [line for eqn in jaxpr.eqns for line in self.lines(eqn)]
        results = ", ".join([self.atom(v) for v in jaxpr.outvars])
        result = results if single or not results else f"{results},"
        body = "\n    ".join([*lines, f"return ({result})"])
        text = f"def kernel({arguments}):\n    {body}"
        function: Callable[..., Any] = define_function("kernel", text, self.globals, home=__file__)
        return function

    def lines(self, eqn: Equation) -> list[str]:
        if eqn.outputs and eqn.outputs[0] in self.implicit:
            return []
        text = self.numpy_call(eqn) or self.rule_call(eqn)
        left = [self.fresh(v) for v in eqn.outputs]
        lines = [f"{', '.join(left)}{text}"]
        for name, v in zip(left, eqn.outputs, strict=True):
            if not v.aval.shape:  # NumPy gives scalars, rules take arrays
                lines.append(f"{name} = {self.constant(np.asarray)}({name})")
        return lines

    def rule_call(self, eqn: Equation) -> str:
        operands = [self.atom(x) for x in eqn.inputs]
        if eqn.primitive.call_like:
            write = functools.partial(numpy_function, longest=self.longest)
            avals = [x.aval for x in eqn.inputs]
            rule = eqn.primitive.rule("kernel")(write, avals, **eqn.params)
        else:
            rule = eqn.primitive.rule("numpy")
            if eqn.params:
                operands.append(f"**{self.constant(dict(eqn.params))}")
        return f", = {self.constant(rule)}({', '.join(operands)})"

    def numpy_call(self, eqn: Equation) -> str:
        """Return the call that equals the rule, if there is one."""
        call = self.calls[eqn]
        if call is None or call.function is np.broadcast_to:
            return ""
        if self.compares:
            function, operands = _compare(eqn, call), [self.atom(x) for x in eqn.inputs]
        elif _is_elementwise(call):
            function, operands = self.ufunc_call(call, eqn)
        else:
            function = call.function
            operands = _arguments(call, [self.atom(x) for x in eqn.inputs], self.constant)
        return f" = {self.constant(function)}({', '.join(operands)})"

    def ufunc_call(self, call: NumpyCall, eqn: Equation) -> tuple[Callable[..., Any], list[str]]:
        """Return a function and its arguments, with the memory at hand."""
        sources = [self.implicit.get(x, x) if type(x) is Var else x for x in eqn.inputs]
        (out,), function = eqn.outputs, _specialize(call, [x.aval for x in sources], eqn)
        operands = [*_arguments(call, [self.atom(x) for x in sources], self.constant)]
        if out.aval.size >= _LARGE:
            self.own.add(out)
            if function is call.function:
                operands += [
                    f"out={self.names[x]}" for x in eqn.inputs if self.may_write_over(x, eqn)
                ][:1]
        return function, operands

    def may_write_over(self, x: Any, eqn: Equation) -> bool:
        """Say whether an input has the type of the result, and its memory no other use."""
        aval = eqn.outputs[0].aval
        return (
            x in self.own
            and self.uses[x] == list(eqn.inputs).count(x)
            and (x.aval.shape, x.aval.dtype) == (aval.shape, aval.dtype)
        )
