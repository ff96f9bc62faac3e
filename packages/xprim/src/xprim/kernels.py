"""Kernels: executable forms of programs, each made once and cached by what determines it.

A *kernel* is the executable form of a jaxpr for given abstract values at a placement, on a back
end: a function of ndarrays on the host (`numpy_kernels` writes those), or a program of the
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

import marshal
import os
import sys
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from xprim import config, dtypes
from xprim.array import ConcreteArray
from xprim.avals import ShapedArray
from xprim.config import state
from xprim.eager import EAGER
from xprim.eager_costs import READ_AT_ONCE
from xprim.errors import ImpureRuleError, XStackError, message
from xprim.jaxpr import ClosedJaxpr
from xprim.jaxpr_passes import first_difference
from xprim.primitive import Primitive
from xtree.interning import forkable_rlock, remember
from xtree.namespaces import late_import

__all__ = [
    "REFUSED",
    "Kernel",
    "KernelTable",
    "ProgramKernels",
    "Refusal",
    "forget_kernels",
    "forget_with_kernels",
    "log",
    "log_refusal",
    "numpy_operand",
]

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
        return self.keep(key, _made(self.name, key, make, args)) if found is None else found

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
            return found.compared(_made(self.name, key, make, args))
        if found is None or type(found) is int:
            checked = _checks.used and _values.enable_checks
            count = found or 0
            if count < self.uses and not checked:
                self.keep(key, count + 1)
                return None
            found = self.keep(key, _made(self.name, key, make, args))
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
                found = _made(self.name, (closed.jaxpr.name,), make, (closed,))
            closed.memo[key] = found
        return found if isinstance(found, Kernel) and found is not REFUSED else None


def _made(table: str, key: Sequence[Any], make: Callable[..., Any], args: Any) -> Any:
    """Return a kernel made under evaluation, or `REFUSED` with the reason in the log."""
    previous, state.trace = state.trace, EAGER
    try:
        return make(*args)
    except Exception as error:
        expected = isinstance(error, Refusal | XStackError)
        if _values.enable_checks and not expected:
            raise
        what = [_shown(a) for a in key if a is not None and (a or type(a) is not tuple)]
        reason = str(error).partition("\n")[0]
        if not isinstance(error, Refusal):
            reason = f"{failing_line(error, make)}: {type(error).__name__}: {reason}"
        log_refusal(table, " ".join(what), reason, shown=not expected)
        return REFUSED
    finally:
        state.trace = previous


def _shown(part: Any) -> str:
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

    __slots__ = ("kernel", "primitive", "rule_kind")

    def __init__(self, kernel: Kernel, primitive: Primitive, rule_kind: str) -> None:
        self.kernel = kernel
        self.primitive = primitive
        self.rule_kind = rule_kind

    def compared(self, made_again: Kernel) -> Kernel | None:
        """Return the kernel if the rules still give the programs that it was made from."""
        if made_again is REFUSED:
            return None
        for old, new in zip(self.kernel.programs, made_again.programs, strict=True):
            found = first_difference(old, new)
            if found is not None:
                raise self._impure(*found)
        return self.kernel

    def _impure(self, old: str, new: str) -> ImpureRuleError:
        name, kind = self.primitive.name, self.rule_kind
        return ImpureRuleError(message(
            name,
            f"its {kind} rule does something else than before for operands of the same types.",
            got=f"{new}", expected=f"{old}, as when it was written as a kernel",
            where=f"{self.primitive.place_of_rule(kind)}",
            hint="a rule is a pure function of operands, abstract values and params: pass what "
            "changes as one of these",
        ))  # fmt: skip
