"""Options: typed, read in nanoseconds, overridable per thread for the length of a scope.

`state` is what a thread is doing now: its trace, its options, named axes, name scopes.
"""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import threading
import types
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Self, TypedDict, TypeVar

import numpy as np

from xtree.boundaries import boundary
from xtree.errors import message
from xtree.interning import forkable_lock
from xtree.namespaces import late_import

if TYPE_CHECKING:
    from xprim.source import Source

__all__ = [
    "STALE", "ThreadItems", "ThreadState", "no_more_threads", "state", "threads_seen", "update",
    "read", "options", "TraceContext", "trace_context", "names_in_trace_context",
    "when_changed", "announce_change", "NOT_GIVEN", "Option", "ProcessOption", "define", "Override",
    "carry_overrides", "values",
    "enable_x64", "explicit_x64_dtypes", "numpy_dtype_promotion",
    "numpy_rank_promotion", "default_matmul_precision", "threefry_partitionable",
    "default_prng_impl", "default_device", "disable_jit", "debug_nans", "debug_infs",
    "debug_key_reuse", "check_tracer_leaks", "enable_checks", "log_compiles",
    "explain_cache_misses", "traceback_filtering", "transfer_guard",
    "transfer_guard_host_to_device", "transfer_guard_device_to_host",
    "transfer_guard_device_to_device", "index_checks", "discrete_derivatives", "scalar_constants",
]  # fmt: skip

__dir__ = __all__.copy

_config_object = late_import("xprim.config_object", "names that no option has yet are rare")


# ---------------------------------------------------------------------------------- thread state
# What a thread is doing now: its trace, its options, named axes, name scopes and source override.
#
# All of it lives in one `threading.local` (a `ContextVar` would be copied into worker threads,
# which would then record into a stranger's jaxpr). An attribute of such an object costs 60 ns,
# its dictionary 28 ns and each item of that 10 ns, so hot code takes the dictionary once:
#
#
# `ThreadItems` says what is in it.


class ThreadItems(TypedDict):
    """The items of `state.__dict__`, which are the attributes of `state`.

    Attributes:
      trace: the trace that interprets primitives now.
      options: stands for the values of all options on which programs depend, as the last call of
        `config.trace_context` found them; `STALE` before, and when the thread enters or leaves a
        scope of other values. Part of the key of whatever depends on them.
      axis_sizes: the named axes in scope; replaced, never written to.
      name_stack: the names of the scopes that the thread is in.
      source: the user's line for all operations, or None where each looks for its own.
      run_quietly: calls a function with NumPy's floating-point warnings off, which rules expect. A
        `contextvars` context of the thread costs 0.1 us, `np.errstate` 0.5 us.
      derived_refs: who asks for the references of the next program that is derived: `derived_refs`.
      constant_refs: how many programs were staged that have values of references as constants.
    """

    trace: Any  # a `trace.Trace`: traces are above options
    options: tuple[int, Any]
    axis_sizes: Mapping[Any, int]
    name_stack: tuple[str, ...]
    source: Source | None
    run_quietly: Callable[..., Any]
    derived_refs: Any
    constant_refs: int


STALE: Final[tuple[int, Any]] = (-1, None)

threads_seen: set[int] = set()
"""The identifiers of all threads that have used the library; of ended ones, too."""

no_more_threads: Final = threading.Event()
"""Set when the interpreter ends: then a thread that uses the library for the first time ends."""


class ThreadState(threading.local):
    """The state of each thread: see `ThreadItems` for its attributes."""

    __dict__: ThreadItems  # type: ignore[assignment]  # declared: others may read it

    trace: Any  # that of the class is where threads start
    options: tuple[int, Any]
    axis_sizes: Mapping[Any, int]
    name_stack: tuple[str, ...]
    source: Source | None
    run_quietly: Callable[..., Any]
    derived_refs: Any
    constant_refs: int

    def __init__(self) -> None:
        self.trace = getattr(type(self), "trace", None)
        self.options = STALE
        self.axis_sizes = MappingProxyType({})
        self.name_stack = ()
        self.source = None
        self.derived_refs = None
        self.constant_refs = 0
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        threads_seen.add(threading.get_ident())
        if no_more_threads.is_set():
            raise SystemExit
        self.run_quietly = context.run

    def run_inside_quiet_call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call, inside of a call of `run_quietly`, a function that makes such calls itself.

        A context cannot be entered again: until the function returns, `run_quietly` just calls.
        """
        before, self.run_quietly = self.run_quietly, _call
        try:
            return function(*args, **kwargs)
        finally:
            self.run_quietly = before


def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


state = ThreadState()


# ----------------------------------------------------------------------------------- option help
# What `help` shows of one option of the configuration, and what copies and pickles of it are.


class NotGiven:
    """The type of `config.NOT_GIVEN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<not given>"


class OneOfItsName:
    """Copies of an option are the option; a pickle holds its name."""

    __slots__ = ()
    name: str

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.modules[type(self).__module__].option_named, (self.name, "config")


class DocOfOption:
    """`Option.__doc__`: for the class what it is, for an option what that one does."""

    def __init__(self, of_class: str | None) -> None:
        self._of_class = of_class

    def __get__(self, option: Any, _: type) -> str | None:
        if option is None:
            return self._of_class
        takes = f" One of {', '.join(map(repr, option.choices))}." if option.choices else ""
        name, variable = option.name, option.environment_variable
        of_process = isinstance(option, ProcessOption)
        block = "." if of_process else f"; `with config.{name}(value):` is for a block."
        return (
            f"{option.doc}\n\nBy default {option.default!r}.{takes}\n\n"
            f"config.{name}.value reads it; config.update({name!r}, value) sets it, and\n"
            f"{variable} in the environment{block}"
        )


# ---------------------------------------------------------------------------------------- config
# Options: typed, read in nanoseconds, overridable per thread for the length of a scope.
#
# An option has a process-wide value and, in a thread that is inside `with option(value):`, a
# value of that thread. Both live on one `threading.local` subclass: the process-wide value is an
# attribute of the *class*, the override one of the thread's *instance*, so a hot path reads
# `config.values.enable_x64`, one attribute look-up, and finds whichever holds; changing the class
# reaches every thread without an override. Options that change what a traced program means are
# declared with `in_cache_key=True`; `trace_context()` joins them into one interned tuple that
# caches use as part of their key.
#
# Each option starts from the environment variable `XSTACK_<NAME>` where that is set, else from
# its default. `errors` has the form of messages, `thread_state` the interned tuple of a thread.

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


def update(name: str, val: object) -> None:
    """Set an option for the whole process.

    Threads that are inside a scoped override of the option keep the overriding value until they
    leave it. A leading `jax_` of the name is ignored, so that settings of programs written for
    JAX work.

    Args:
        name: the option, such as `"enable_x64"`.
        val: the new value, of the type and among the choices that the option declares.

    Raises:
        AttributeError: unknown option (the message lists those of similar names).
        TypeError, ValueError: the value is not one that the option takes.

    Example:
        >>> update("numpy_rank_promotion", "raise")
        >>> read("numpy_rank_promotion")
        'raise'
        >>> update("numpy_rank_promotion", "allow")
    """
    option_named(name, "config.update").set(val)


def read(name: str) -> Any:
    """Return the value that an option has in this thread.

    Example:
        >>> read("enable_x64")
        False
    """
    return option_named(name, "config.read").value


def options() -> Mapping[str, Option[Any]]:
    """Return all options by name, in the order of their definition (read-only)."""
    return types.MappingProxyType(_option_by_name)


class TraceContext(tuple[object, ...]):
    """The values of the options with `in_cache_key`, in the order of definition.

    Those after the last one that differs from its default are left out: an option that a package
    defines when it is imported makes no other context, so nothing is traced again for it.

    Interned: equal contexts are the same object, so that hashing and comparing one costs what it
    costs for an identity, however many options there are.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__


def names_in_trace_context() -> tuple[str, ...]:
    """Return the names of the options whose values `trace_context()` holds, in its order.

    Where the context is shorter, the options after its end have their defaults.
    """
    return tuple(_names_in_cache_key)


def trace_context() -> TraceContext:
    """Return the options that traced and compiled programs depend on, as seen by this thread.

    The result is meant as part of a cache key: it is the same object as long as those options
    have the same values.

    Example:
        >>> outside = trace_context()
        >>> with enable_x64(True):
        ...     trace_context() is outside
        False
        >>> trace_context() is outside
        True
    """
    context: TraceContext
    epoch, context = state.options
    if epoch != _Values.epoch:
        # The epoch is read before the values: a change in between makes the entry stale, not wrong.
        epoch = _Values.epoch
        now = [getattr(values, name) for name in _names_in_cache_key]
        while now and now[-1] == _option_by_name[_names_in_cache_key[len(now) - 1]].default:
            now.pop()
        context = _intern(tuple(now))
        state.options = (epoch, context)
    return context


def when_changed(callback: Callable[[], None]) -> Callable[[], None]:
    """Have `callback` called after each process-wide change of an option or of the eager backend.

    Overrides of a thread are not announced: what depends on options is keyed by `trace_context()`
    or, on hot paths, by `state.options`, and thrown away when this calls.
    """
    _callbacks.append(callback)
    return callback


def announce_change() -> None:
    """Call everything that `when_changed` was given."""
    for callback in _callbacks:
        callback()


_callbacks: list[Callable[[], None]] = []


NOT_GIVEN: Final = NotGiven()


class Option(OneOfItsName, Generic[T]):
    """One option: `option.value` reads it, `option(value)` overrides it for a scope of this thread.

    The override is a context manager and a decorator. A boolean option may be called without a
    value, meaning True.

    Attributes:
        name: the name under which `update` and `read` know the option.
        kind: the Python type of its values, or None where a validator decides.
        choices: the values allowed, or None if the type alone decides.
        default: the value without environment variable and `update`.
        doc: what the option does.
        in_cache_key: whether traced and compiled programs depend on it.
        used: whether this process ever requested another value than the default, so that hot paths
            look at a seldom option only where somebody uses it.

    Example:
        >>> with enable_x64():
        ...     enable_x64.value
        True
        >>> enable_x64.value
        False
    """

    __slots__ = ("choices", "default", "doc", "in_cache_key", "kind", "name", "spreads_to",
                 "used", "validate")  # fmt: skip

    def __init_subclass__(cls) -> None:
        cls.__doc__ = DocOfOption(cls.__doc__)  # type: ignore[assignment]

    def __init__(
        self,
        name: str,
        default: T,
        doc: str,
        *,
        kind: type | None = None,
        choices: tuple[T, ...] | None = None,
        in_cache_key: bool = False,
        validate: Callable[[Any], bool] | None = None,
        spreads_to: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.default = default
        self.doc = doc
        self.kind = kind
        self.choices = choices
        self.in_cache_key = in_cache_key
        self.validate = validate
        self.spreads_to = spreads_to  # further options that every change of this one also sets
        self.used = False

    @property
    def value(self) -> T:
        """The value in this thread: that of the innermost override, else the process-wide one."""
        return getattr(values, self.name)  # type: ignore[no-any-return]

    @property
    def environment_variable(self) -> str:
        """The name of the environment variable that sets the starting value."""
        return f"XSTACK_{self.name.upper()}"

    @boundary
    def __call__(self, new_val: T | NotGiven = NOT_GIVEN) -> Override:
        """Return a context manager and decorator under which the option is `new_val`."""
        if new_val is NOT_GIVEN:
            new_val = self._default_value()
        return Override((self.name, *self.spreads_to), self.check(new_val))

    def set(self, value: object) -> None:
        """Set the process-wide value."""
        checked = self.check(value)
        with _definition_lock:
            for name in (self.name, *self.spreads_to):
                setattr(_Values, name, checked)
            _Values.epoch += 1
        announce_change()

    def check(self, value: object) -> T:
        """Return `value` if the option takes it, else raise TypeError or ValueError."""
        checked = self._check(value)
        if checked != self.default:
            self.used = True
            for name in _option_by_name.keys() & self.spreads_to:  # those that are defined yet
                _option_by_name[name].used = True
        return checked

    def _check(self, value: object) -> T:
        if self.choices is not None:
            # By type too: 1 == True, but an option never holds a value of another type.
            if any(type(value) is type(choice) and value == choice for choice in self.choices):
                return value  # type: ignore[return-value]
        elif self.validate is not None:
            if self.validate(value):
                return value  # type: ignore[return-value]
        elif self.kind is not None and type(value) is self.kind:
            return value  # type: ignore[return-value]
        raise self._refusal(f"config.{self.name}", value)

    def parse(self, text: str) -> T:
        """Return the value that the text of an environment variable stands for."""
        value: object = text
        if self.kind is bool:
            value = _BOOLEAN_BY_TEXT.get(text.strip().lower(), text)
        elif self.kind is int and text.strip().lstrip("+-").isdigit():
            value = int(text)
        elif text.strip().lower() in ("", "none") and self.default is None:
            value = None
        try:
            return self.check(value)
        except (TypeError, ValueError):
            raise self._refusal(self.environment_variable, text, ValueError) from None

    def describe_choices(self) -> str:
        """Say in words which values the option takes."""
        if self.choices is not None:
            return "one of " + ", ".join(map(repr, self.choices))
        if self.kind is bool:
            return "True or False"
        return self.kind.__name__ if self.kind is not None else self.doc

    def _default_value(self) -> Any:
        if self.kind is bool:
            return True
        problem = "the value for the scope is missing."
        raise TypeError(message(f"config.{self.name}", problem, expected=self.describe_choices()))

    def _refusal(
        self, operation: str, value: object, error: type[Exception] | None = None
    ) -> Exception:
        if error is None:
            same_type = any(type(value) is type(choice) for choice in self.choices or ())
            error = ValueError if same_type else TypeError
        problem = "the option does not take this value."
        return error(message(operation, problem, got=repr(value), expected=self.describe_choices()))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"<option {self.name} = {self.value!r}>"


Option.__doc__ = DocOfOption(Option.__doc__)  # type: ignore[assignment]


class ProcessOption(Option[T]):
    """An option of the process, which has no value for a block of one thread.

    Attributes:
        reason: why it is, for the error; a sentence.
        deadline: until when it may be set, behind a comma; or nothing.
    """

    __slots__ = ()
    reason: str
    deadline = ""

    def __call__(self, new_val: T | NotGiven = NOT_GIVEN) -> Override:
        """Raise the error that names `config.update`."""
        raise TypeError(message(
            f"config.{self.name}", self.reason,
            hint=f'config.update("{self.name}", ...){self.deadline}',
        ))  # fmt: skip


def define(option: Option[T]) -> Option[T]:
    """Add an option to the configuration and give it its starting value; return it.

    Packages define their own options with this, at import. The starting value comes from the
    environment variable `XSTACK_<NAME>` if it is set.

    Raises:
        ValueError: the name is taken, or the environment variable does not hold a value of the
        option.
    """
    if option.name in _option_by_name or hasattr(_Values, option.name):
        raise ValueError(message("config.define", f"the name {option.name!r} is taken."))
    text = os.environ.get(option.environment_variable)
    value = option.default if text is None else option.parse(text)
    with _definition_lock:
        _option_by_name[option.name] = option
        setattr(_Values, option.name, value)
        if option.in_cache_key:
            _names_in_cache_key.append(option.name)
        _Values.epoch += 1
    return option


class Override:
    """What `option(value)` makes: a context manager and decorator that sets a thread's value."""

    __slots__ = ("_names", "_previous_by_thread", "_value")

    def __init__(self, names: tuple[str, ...], value: object) -> None:
        self._names = names
        self._value = value
        # One override may be entered several times, and by several threads.
        self._previous_by_thread: dict[int, list[dict[str, object]]] = {}

    def __enter__(self) -> None:
        own = values.__dict__
        previous = {name: own.get(name, NOT_GIVEN) for name in self._names}
        self._previous_by_thread.setdefault(threading.get_ident(), []).append(previous)
        for name in self._names:
            setattr(values, name, self._value)
        state.options = STALE

    def __exit__(self, *exception: object) -> None:
        thread = threading.get_ident()
        previous_of_thread = self._previous_by_thread[thread]
        own = values.__dict__
        for name, previous in previous_of_thread.pop().items():
            if previous is NOT_GIVEN:
                own.pop(name, None)
            else:
                setattr(values, name, previous)
        state.options = STALE
        if not previous_of_thread:
            del self._previous_by_thread[thread]

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function, run under this override at each call."""

        @functools.wraps(function)
        def under_override(*args: P.args, **kwargs: P.kwargs) -> R:
            with Override(self._names, self._value):
                return function(*args, **kwargs)

        return under_override


def carry_overrides(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, run in whichever thread under the overrides that this thread has now.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with enable_x64(True), ThreadPoolExecutor() as pool:
        ...     pool.submit(carry_overrides(lambda: read("enable_x64"))).result()
        True
    """
    carried = dict(values.__dict__)

    @functools.wraps(function)
    def under_overrides(*args: P.args, **kwargs: P.kwargs) -> R:
        own = values.__dict__
        previous = dict(own)
        own.clear()
        own.update(carried)
        state.options = STALE
        try:
            return function(*args, **kwargs)
        finally:
            own.clear()
            own.update(previous)
            state.options = STALE

    return under_overrides


class _Values(threading.local):
    """The values of all options: the class's for the process, an instance's for its thread."""

    check_tracer_leaks: bool
    debug_infs: bool
    debug_key_reuse: bool | str
    debug_nans: bool
    default_device: Any
    default_matmul_precision: str | None
    default_prng_impl: str
    disable_jit: bool
    discrete_derivatives: str
    enable_checks: bool
    enable_x64: bool
    explain_cache_misses: bool
    index_checks: str
    log_compiles: bool
    explicit_x64_dtypes: str
    numpy_dtype_promotion: str
    numpy_rank_promotion: str
    scalar_constants: bool
    threefry_partitionable: bool
    traceback_filtering: str
    transfer_guard: str
    transfer_guard_device_to_device: str
    transfer_guard_device_to_host: str
    transfer_guard_host_to_device: str

    epoch: int = 0  # counts the process-wide changes: a thread sees that its context is stale


_definition_lock = forkable_lock()
_option_by_name: dict[str, Option[Any]] = {}  # those that packages have defined
_names_in_cache_key: list[str] = []
_BOOLEAN_BY_TEXT: Final = dict.fromkeys("1 true yes on y t".split(), True) | dict.fromkeys(
    "0 false no off n f".split(), False)  # fmt: skip

values = _Values()


# Two contexts of equal values, one dropped meanwhile, only cost a cache miss elsewhere.
@functools.lru_cache(maxsize=256)
def _intern(context: tuple[object, ...]) -> TraceContext:
    """Return the one object for the options of a thread, so that keys are compared by identity."""
    return TraceContext(context)


def option_named(name: str, operation: str) -> Option[Any]:
    """Return an option; an AttributeError suggests the nearest name where there is none."""
    option = _option_by_name.get(name.removeprefix("jax_")) if isinstance(name, str) else None
    if option is None:
        option = _config_object.option_elsewhere(name, operation, _option_by_name)
    return option


def _flag(name: str, doc: str, default: bool = False, in_cache_key: bool = True) -> Option[bool]:
    return define(Option(name, default, doc, kind=bool, in_cache_key=in_cache_key))


def _choice(
    name: str, choices: tuple[T, ...], doc: str, in_cache_key: bool = True, **more: Any
) -> Option[T]:
    """Define an option whose first choice is its default."""
    option = Option(name, choices[0], doc, choices=choices, in_cache_key=in_cache_key, **more)
    return define(option)


def _names_a_device(value: Any) -> bool:
    return value is None or isinstance(value, str) or hasattr(value, "platform")


enable_x64 = _flag(
    "enable_x64", "Whether Python scalars and NumPy input without an explicit dtype keep 64 bits."
)
explicit_x64_dtypes = _choice(
    "explicit_x64_dtypes", ("allow", "warn", "error"),
    "What a 64-bit dtype by name means without enable_x64: itself, or, with a warning, that of 32 "
    "bits.",
)  # fmt: skip
numpy_dtype_promotion = _choice(
    "numpy_dtype_promotion", ("standard", "strict"),
    "'strict' promotes nothing but Python scalars; operands of different dtypes are an error.",
)  # fmt: skip
numpy_rank_promotion = _choice(
    "numpy_rank_promotion", ("allow", "warn", "raise"),
    "What happens when operands of different rank are broadcast against each other.",
)  # fmt: skip
# Names and meaning: the option jax_default_matmul_precision of JAX; from ANY_F8 on, the dot
# algorithms of the StableHLO specification.
_PRECISIONS: Final[tuple[str | None, ...]] = (
    None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
default_matmul_precision = _choice(
    "default_matmul_precision",
    _PRECISIONS,
    "The precision of matrix products and convolutions that do not name one: None is full float32 "
    "on every platform, tensorfloat32 is faster on GPUs.",
)
threefry_partitionable = _flag(
    "threefry_partitionable",
    "Whether random bits depend on their position alone; False is the original counter layout.",
    default=True,
)
default_prng_impl = _choice(
    "default_prng_impl",
    ("threefry2x32", "rbg", "unsafe_rbg"),
    "The generator behind keys that are made without naming one.",
)
default_device = define(Option[Any](
    "default_device", None,
    "Where new arrays go: None, the name of a platform such as 'cpu', or a device.",
    in_cache_key=True, validate=_names_a_device,
))  # fmt: skip
disable_jit = _flag(
    "disable_jit", "Whether `jit` calls its function as it is, and control flow runs as Python."
)
debug_nans = _flag("debug_nans", "Whether a result that holds a NaN is an error.")
debug_infs = _flag("debug_infs", "Whether an infinity made of finite operands is an error.")
index_checks = _choice(
    "index_checks", ("known", "raise", "allow"),
    "Which positions are an error when out of bounds, where no mode is given: 'allow' none.",
)  # fmt: skip
debug_key_reuse = define(Option[Any](
    "debug_key_reuse", "warn",
    "What using a random key twice is: a warning, once for each line, an error (True), or nothing "
    "(False).",
    kind=bool, choices=("warn", True, False), in_cache_key=True,
))  # fmt: skip
discrete_derivatives = _choice(
    "discrete_derivatives", ("warn", "error", "allow"),
    "What a derivative by a parameter of a sampler of integers is, which is zero: a warning, once "
    "for each line, an error, or nothing.",
)  # fmt: skip
scalar_constants = _flag(
    "scalar_constants",
    "Whether scalar arrays that a function closes over are constants of what `make_jaxpr` returns "
    "everywhere, and not literals outside of traced functions.",
)
check_tracer_leaks = _flag(
    "check_tracer_leaks",
    "Whether a traced value that outlives its transformation is reported as that ends.",
)
enable_checks = _flag(
    "enable_checks", "Whether every jaxpr is checked as it is built (slow; finds errors in rules)."
)
log_compiles = _flag(
    "log_compiles", "Whether each compilation is logged as a warning.", in_cache_key=False
)
explain_cache_misses = _flag(
    "explain_cache_misses", "Whether each cache miss is logged with its cause.", in_cache_key=False
)
traceback_filtering = _choice(
    "traceback_filtering",
    ("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    "How the frames of the library are removed from tracebacks.",
    in_cache_key=False,
)

_TRANSFER_LEVELS: Final = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_GUARDS: Final = tuple(
    f"transfer_guard_{way}" for way in ("host_to_device", "device_to_host", "device_to_device")
)
transfer_guard = _choice(
    "transfer_guard",
    _TRANSFER_LEVELS,
    "Which transfers are allowed, in all three directions at once.",
    in_cache_key=False,
    spreads_to=_GUARDS,
)


def _guard(name: str) -> Option[str]:
    """Define the option for one direction, so that XSTACK_TRANSFER_GUARD reaches it, too."""
    doc = f"Which transfers are allowed, {name.removeprefix('transfer_guard_').replace('_', ' ')}."
    option = Option(name, transfer_guard.value, doc, choices=_TRANSFER_LEVELS)
    option.used = transfer_guard.used
    return define(option)


transfer_guard_host_to_device, transfer_guard_device_to_host, transfer_guard_device_to_device = map(
    _guard, _GUARDS
)
