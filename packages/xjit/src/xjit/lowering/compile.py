"""Compile lowered programs, each text once; quickly first, with full effort later; dump texts."""

from __future__ import annotations

import atexit
import functools
import itertools
import logging
import math
import os
import re
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xjit import jaxlib_gateway as gateway
from xjit.byte_formats import sha256
from xjit.cache.disk import (
    DiskCache,
    Entry,
    compressed,
    disk_cache,
    facts_of,
    key_of,
    options_of_xla,
)
from xjit.cache.memory import Bounded, LocksByKey, room
from xjit.debug import monitoring
from xjit.dispatch.placement import OneDevice, Placement
from xjit.host_kernels import prepare_host_kernels
from xjit.lowering.modules import LoweredProgram
from xjit.lowering.operation_metadata import without_places
from xjit.sharding.inspection import with_probes
from xprim import ClosedJaxpr, Equation, Jaxpr, config, dtypes, runtime_options, shaped_array
from xprim.errors import message
from xprim.jaxpr import subjaxprs
from xprim.source import describe
from xprim.strict_options import first_compile_level
from xtree.interning import forkable_rlock

if TYPE_CHECKING:
    from xjit.lowering.modules import LoweredProgram
    from xprim import ClosedJaxpr

__all__ = [
    "InTurn", "Once", "NAME", "finish", "finish_later", "level_of", "split_options",
    "dump_ir_modes", "dump_ir_to",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ program dumps
# The option `dump_ir_to`: the text of each program that is compiled, in a file of its own.
#
# `XSTACK_DUMP_IR_TO=folder` (or `config.update("dump_ir_to", "folder")`) writes the StableHLO text
# of programs there, numbered in the order in which their executables are requested, those found in
# caches included. The option `dump_ir_modes` names the forms: `stablehlo`, `jaxpr`, or both.

_MODES = ("stablehlo", "jaxpr")

dump_ir_to = config.define(
    config.Option("dump_ir_to", "", "The folder for the texts of compiled programs.", kind=str)
)
dump_ir_modes = config.define(
    config.Option(
        "dump_ir_modes", "stablehlo",
        "The forms of the texts: 'stablehlo', 'jaxpr', or both, separated by a comma.",
        validate=lambda v: isinstance(v, str) and {*v.split(",")} <= {*_MODES},
    )
)  # fmt: skip
_numbers = itertools.count()


def dump(lowered: LoweredProgram, closed: ClosedJaxpr | None) -> None:
    """Write a program to the folder that `dump_ir_to` names; it is made where there is none.

    Raises:
      OSError: the folder cannot be made, or a file in it cannot be written.
    """
    folder, modes = Path(dump_ir_to.value), dump_ir_modes.value.split(",")
    text_by_suffix = {}
    if "stablehlo" in modes:
        text_by_suffix["mlir"] = lowered.text
    if "jaxpr" in modes and closed is not None:
        text_by_suffix["jaxpr.txt"] = str(closed)
    name = re.sub(r"[^\w.-]", "", lowered.name, flags=re.ASCII)[:_NAME_LENGTH]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_new(folder, name, text_by_suffix)
    except OSError as error:
        raise OSError(message(
            "config.dump_ir_to", "the program cannot be written to the folder.",
            got=f"{folder}: {error.strerror}", hint="XSTACK_DUMP_IR_TO= writes none",
        )) from error  # fmt: skip


# Names of files have at most 255 bytes, of which numbers and suffixes take up to 30.
_NAME_LENGTH = 200


def _write_new(folder: Path, name: str, text_by_suffix: dict[str, str]) -> None:
    """Write the texts of a program beside those that are there, from other processes, too."""
    for number in _numbers:
        try:
            for suffix, text in text_by_suffix.items():
                path = folder / f"ir{number:04d}_{name}.{suffix}"
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
        except FileExistsError:
            continue
        return


# ------------------------------------------------------------------------------------ background
# Work that no call waits for, done by one thread, one after the other.
#
# The thread is there while there is work, and takes no room otherwise. At the end of the
# interpreter what has not begun is left out, and what has is waited for: until Python 3.14 a
# thread that comes out of the runtime afterwards would end the process by a signal. A finaliser
# or a handler of a signal may come by again in the same thread, so locks are re-entrant.


class Once:
    """Work that is done by whoever comes first; who comes second waits until it is done.

    Example:
      >>> work = Once(lambda: print("done"))
      >>> work()
      done
      >>> work()
    """

    __slots__ = ("_lock", "_work")

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work
        self._lock = forkable_rlock()

    def __call__(self) -> None:
        """Do the work, or wait until it is done."""
        with self._lock:
            work, self._work = self._work, None
            if work is not None:
                work()


class InTurn:
    """A queue of work with a thread, which ends with the work.

    Args:
      name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._last: threading.Thread | None = None  # which has no work left, and may not have ended
        self._lock = forkable_rlock()
        self._is_over = False

    def add(self, work: Callable[[], None]) -> bool:
        """Have something done later, which raises nothing; False where the process is ending."""
        with self._lock:
            if self._is_over:
                return False
            self._work.append(work)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # there can be no more threads
                    self._work.pop()
                    return False
                self._thread = thread
            return True

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._work:
                    self._thread, self._last = None, self._thread
                    return
                work = self._work.popleft()
            work()
            del work  # it may hold programs that have died meanwhile

    def _end(self) -> None:
        """Leave out what has not begun, and wait for what has."""
        with self._lock:
            self._is_over = True
            self._work.clear()
            threads = self._thread, self._last
        for thread in threads:
            if thread is not None and thread is not threading.current_thread():
                thread.join()

    def _forget(self) -> None:
        """Have no thread in a forked process, where it is not."""
        self._work.clear()
        self._thread = self._last = None

    def end_at_exit(self) -> InTurn:
        """Return this, which ends before the interpreter does, and is empty after a fork."""
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        return self


# ------------------------------------------------------------------------------------ first tier
# A first executable that is made quickly, and replaced by the one of full effort later.
#
# What: the option `first_compile_level`; `level_of`, which says for a program whether it has a
# first tier; `finish_later`, which compiles in full behind the calls; `finish`, which waits for
# that. Idea: an executable of the first tier starts by way of a cell, which is given the full
# code when it is there. All who hold it (programs, fronts of functions, kernels) have the full
# one from then on.

logger = logging.getLogger("xjit")

NAME = first_compile_level.name
_LEVEL = "xla_backend_optimization_level"

_behind = InTurn("xjit compiles in full").end_at_exit()


def split_options(
    options: Mapping[str, Any] | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of XLA among compiler options, and the others, which are ours.

    Raises:
      TypeError, ValueError: unknown level.
    """
    of_xla = dict(options or {})
    if NAME not in of_xla:
        return of_xla, {}
    return of_xla, {NAME: first_compile_level.check(of_xla.pop(NAME))}


def level_of(
    lowered: LoweredProgram, placement: Placement, options: Mapping[str, Any] | None,
    own: Mapping[str, Any],
) -> int | None:  # fmt: skip
    """Return at which level a program is compiled first, None for in full at once.

    Args:
      lowered: the program.
      placement: where it runs: on several devices XLA may lay results out otherwise at each level.
      options: the settings of XLA; a level among them is what the user wants for good.
      own: what `split_options` found for this program.
    """
    level = own.get(NAME, first_compile_level.value)
    if level is None or not isinstance(placement, OneDevice) or placement.platform != "cpu":
        return None
    return None if lowered.inspections or _LEVEL in (options or {}) else level


def quick(settings: Mapping[str, Any], level: int) -> dict[str, Any]:
    """Return the compiler settings of the first tier, from those of the full one."""
    return {**settings, "options": {**(settings["options"] or {}), _LEVEL: level}}


def finish_later(
    first: gateway.Executable, name: str, in_full: Callable[[], gateway.Executable]
) -> None:
    """Have an executable take the code of full effort, as soon as that is there.

    Where it cannot be made the first one stays, and the log says why.

    Args:
      first: what was compiled at a lower level.
      name: of the program.
      in_full: compiles it.
    """
    known = weakref.ref(first)

    def work() -> None:
        executable = known()
        if executable is None:  # it is dead
            return
        try:
            executable.become(in_full())
        except Exception as error:
            logger.warning(
                "%s stays as it was compiled first, with less effort: %s: %s",
                name, type(error).__name__, error,
            )  # fmt: skip
        executable.pending = None

    first.be_replaceable()
    first.pending = Once(work)
    _behind.add(first.pending)


def finish(executable: gateway.Executable) -> None:
    """Have an executable be the one of full effort, now."""
    pending = executable.pending
    if pending is not None:
        pending()


# --------------------------------------------------------------------------------------- compile
# Compile lowered programs, each text once.
#
# What: `executable_for`, and `statistics`, which count programs and seconds. Idea: executables
# are looked up by a digest of the text without the module's name, the device and the options,
# so equal programs of different functions are compiled once. The cache is bounded. What is not
# there is looked for on disk by the same digest, where earlier processes left it.

Options = Mapping[str, bool | int | float | str]

_MAX_EXECUTABLES = 2048
_NAMED_TYPES = 8  # of arguments, in what is said of a long compilation
SLOW_SECONDS = 10.0
"""After so much processor time a compilation says that it is under way."""
# Or after so much time: on a busy machine, or where XLA waits for a device.
_LONG_WAIT_SECONDS = 60.0
# A signal may come to another thread, which does not wake the one that waits.
_LOOK_UP_SECONDS = 0.25


class Statistics:
    """What was compiled in this process so far.

    Attributes:
      compiled: programs given to XLA.
      recompiled: those of them that it was given again, behind the calls (`first_compile_level`).
      found: programs whose executable was there already, for another function or placement.
      loaded: programs whose executable was on disk, from an earlier process.
      seconds: time spent in XLA.
      text_bytes: length of the texts of the programs given to XLA.
    """

    __slots__ = ("compiled", "found", "loaded", "recompiled", "seconds", "text_bytes")

    def __init__(self) -> None:
        self.compiled = 0
        self.recompiled = 0
        self.found = 0
        self.loaded = 0
        self.seconds = 0.0
        self.text_bytes = 0

    def __repr__(self) -> str:
        return f"Statistics({', '.join([f'{n}={getattr(self, n)}' for n in self.__slots__])})"


statistics = Statistics()

# Executables by the digest of their text, devices and settings: other functions find them.
_executables: Bounded[gateway.Executable] = Bounded(_MAX_EXECUTABLES)
room.when_short(_executables.forget)
in_turn = LocksByKey()
"""Held while a program is compiled: threads that want the same one wait for it."""


def executable_for(
    lowered: LoweredProgram, placement: Placement, options: Options | None = None,
    own: Mapping[str, Any] | None = None, closed: ClosedJaxpr | None = None,
) -> gateway.Executable:  # fmt: skip
    """Return the executable of a program at a placement, compiled now or before.

    Args:
      lowered: the program.
      placement: where it runs.
      options: settings of XLA by name.
      own: options of ours by name, where it may be compiled with less effort first.
      closed: the program before it was lowered, which says its lines where compiling takes long.

    Raises:
      XlaError: XLA does not accept or cannot compile the program.
    """
    if dump_ir_to.value:
        dump(lowered, closed)
    level = None if own is None else level_of(lowered, placement, options, own)
    if lowered.python_functions:  # the text names them by number only
        return _load_or_compile(None, lowered, placement, options, level, closed)
    digest = sha256(lowered.body.encode()).digest()
    key = _key(digest, placement, options)
    found = _executables.get(key)
    if found is None:
        with in_turn.of(key):
            found = _executables.get(key)  # another thread has made it meanwhile
            if found is None:
                found = _load_or_compile(digest, lowered, placement, options, level, closed)
                _executables.put(key, found)
                return found
    statistics.found += 1
    return found


def _load_or_compile(
    digest: bytes | None, lowered: LoweredProgram, placement: Placement, options: Options | None,
    level: int | None, closed: ClosedJaxpr | None,
) -> gateway.Executable:  # fmt: skip
    """Return the executable of a program from the disk, or compile it.

    Where the text of a program does not say all, there is no digest of it; where it is not to be
    compiled with less effort first, no level.
    """
    settings = _settings(lowered, placement, options)
    disk = None if digest is None else disk_cache()
    entry = None
    if disk is not None and digest is not None and gateway.are_local(placement.devices):
        entry = _Stored(disk, _digest_on_disk(digest, lowered.body), lowered, placement, settings)
        found = entry.load()
        if found is not None:
            return found
    if level is None:
        return _compile_and_store(lowered, placement, settings, entry, closed)
    is_told = config.values.log_compiles  # which the other thread does not see
    first, _ = _compile(lowered, placement, quick(settings, level), "compiled first", closed=closed)

    def in_full() -> gateway.Executable:
        return _compile_and_store(lowered, placement, settings, entry, closed, is_told)

    finish_later(first, lowered.name, in_full)
    return first


def _digest_on_disk(digest: bytes, body: str) -> bytes:
    """Return the digest by which a program is kept on disk, from that of its whole text."""
    if runtime_options.compilation_cache_include_metadata_in_key.value or ' loc("' not in body:
        return digest
    return sha256(without_places(body).encode()).digest()


def _key(digest: bytes, placement: Placement, options: Options | None) -> tuple[Any, ...]:
    return (digest, placement.devices, placement.num_partitions, placement.is_split,
            tuple(sorted((options or {}).items())))  # fmt: skip


def code_of(
    executable: gateway.Executable, lowered: LoweredProgram, placement: Placement,
    options: Options | None,
) -> tuple[bytes, dict[str, str]]:  # fmt: skip
    """Return the code of a compiled program, and what it depends on beside its text."""
    settings = _settings(lowered, placement, options)
    finish(executable)
    if executable.from_bytes:
        executable, _ = _compile(lowered, placement, settings)
    return executable.serialize(), facts_of(placement.devices, settings)


def load(
    code: bytes, facts: Mapping[str, str], lowered: LoweredProgram, placement: Placement,
    options: Options | None,
) -> None:  # fmt: skip
    """Let a program be found with the code that `code_of` gave, if that was made for this place."""
    settings = _settings(lowered, placement, options)
    if facts != facts_of(placement.devices, settings):
        return
    _prepare(lowered.body)
    try:
        executable = gateway.deserialize_program(code, placement.devices, **settings)
    except (gateway.XlaError, ValueError):  # not taken: it is compiled anew
        return
    statistics.loaded += 1
    digest = sha256(lowered.body.encode()).digest()
    _executables.put(_key(digest, placement, options), executable)


class _Stored:
    """The place of a program on disk."""

    def __init__(
        self, disk: DiskCache, digest: bytes, lowered: LoweredProgram, placement: Placement,
        settings: dict[str, Any],
    ) -> None:  # fmt: skip
        self._disk, self._lowered = disk, lowered
        self._placement, self._settings = placement, settings
        self._facts = facts_of(placement.devices, settings)
        self._key = key_of(digest, self._facts)

    def _use(self, code: bytes) -> gateway.Executable:
        _prepare(self._lowered.body)
        return gateway.deserialize_program(code, self._placement.devices, **self._settings)

    def load(self) -> gateway.Executable | None:
        """Return what is there, None where nothing is."""
        monitoring.record_event(monitoring.CACHE_ASKED)
        start = time.perf_counter()
        found = self._disk.load(self._key, self._use)
        monitoring.record_event(monitoring.CACHE_MISS if found is None else monitoring.CACHE_HIT)
        if found is not None:
            statistics.loaded += 1
            _log("loaded", self._lowered, time.perf_counter() - start)
        return found

    def store(self, executable: gateway.Executable, seconds: float) -> None:
        """Write what took so long to compile."""
        if seconds >= runtime_options.persistent_cache_min_compile_time_secs.value:
            lowered, facts = self._lowered, self._facts
            self._disk.store(
                self._key, lambda: _entry(executable, lowered, facts, seconds), self._use
            )


def _compile_and_store(
    lowered: LoweredProgram, placement: Placement, settings: dict[str, Any],
    entry: _Stored | None, closed: ClosedJaxpr | None, is_told: bool | None = None,
) -> gateway.Executable:  # fmt: skip
    """Return what XLA made of a program with all effort.

    Behind the calls, where another thread compiles it again, `is_told` says what the option
    `log_compiles` says to the caller.
    """
    again = is_told is not None
    what = "compiled in full" if again else "compiled"
    found, seconds = _compile(lowered, placement, settings, what, is_told, closed)
    if entry is not None:
        entry.store(found, seconds)
    return found


def _entry(
    executable: gateway.Executable, lowered: LoweredProgram, facts: dict[str, str], seconds: float
) -> Entry:
    return Entry(executable.serialize(), {
        "name": lowered.name, "seconds": seconds, "text": compressed(lowered.body), **facts,
    })  # fmt: skip


def _settings(
    lowered: LoweredProgram, placement: Placement, options: Options | None
) -> dict[str, Any]:
    """Return what compiling and loading a program are told alike."""
    return {
        "num_replicas": placement.num_replicas, "num_partitions": placement.num_partitions,
        "use_spmd": placement.is_split, "use_shardy": placement.is_split,
        "free_outputs": _free_outputs(lowered, placement),
        "options": with_suited_options(options, lowered.body, placement.platform),
        "is_awaited": gateway.HOST_KERNEL in lowered.body,
        "outputs": [shaped_array(a.shape, dtypes.stored(a.dtype)) for a in lowered.out_avals],
    }  # fmt: skip


def _prepare(text: str) -> None:
    """Make ready for a program what it needs to be loaded."""
    if "lapack_" in text:  # the routines must be known before a program with them is
        gateway.register_lapack()
    if gateway.HOST_KERNEL in text:
        prepare_host_kernels()
    room.make(text)


def _log(what: str, lowered: LoweredProgram, seconds: float, is_told: bool | None = None) -> None:
    is_warned = config.values.log_compiles if is_told is None else is_told
    level = logging.WARNING if is_warned else logging.DEBUG
    if logger.isEnabledFor(level):
        types = ", ".join([a.str_long() for a in lowered.in_avals])
        logger.log(level, "%s %s(%s) in %.3f s", what, lowered.name, types, seconds)


def clear_executables() -> None:
    """Forget all executables that no function holds."""
    _executables.clear()


def _compile(
    lowered: LoweredProgram, placement: Placement, settings: dict[str, Any],
    what: str = "compiled", is_told: bool | None = None, closed: ClosedJaxpr | None = None,
) -> tuple[gateway.Executable, float]:  # fmt: skip
    """Return what XLA made of a program, and the seconds that it took."""
    text, probes = with_probes(lowered.text, lowered.inspections)
    _prepare(text)
    watcher = gateway.watch[0]
    if watcher is not None and not gateway.are_local(placement.devices):
        watcher.agree(lowered.body, lowered.name, placement.devices)
    of_xla = options_of_xla(placement.devices[0])
    if of_xla:
        settings = {**settings, "options": {**of_xla, **(settings["options"] or {})}}
    start = time.perf_counter()
    run = functools.partial(
        compiler, text, placement.devices, host_callbacks=lowered.callbacks, **settings
    )
    try:
        # what asks Python functions of the user stays in their thread; no call waits behind another
        if lowered.python_functions or is_told is not None:
            executable = run()
        elif threading.current_thread() is threading.main_thread():
            executable = _interruptible(run, lowered, closed)
        else:
            executable = _in_this_thread(run, lowered, closed)
    except Exception:
        _raise_what_users_raised(lowered)
        raise
    seconds = time.perf_counter() - start
    statistics.seconds += seconds
    if is_told is None:
        statistics.compiled += 1
        statistics.text_bytes += len(text)
        monitoring.record_event_duration_secs(monitoring.COMPILED, seconds, fun_name=lowered.name)
    else:
        statistics.recompiled += 1
    _log(what, lowered, seconds, is_told)
    for inspection, probe in zip(lowered.inspections, probes, strict=True):
        inspection.callback(placement.sharding_of(inspection.tiles(probe)))
    return executable, seconds


def _in_this_thread(
    run: Callable[[], gateway.Executable], lowered: LoweredProgram, closed: ClosedJaxpr | None
) -> gateway.Executable:
    """Compile where no Ctrl-C arrives; say so where that takes long.

    A thread of its own would be started while the interpreter ends, if this is a daemon thread.
    """
    is_over = threading.Event()
    watch = functools.partial(_watch, is_over, lowered, closed)
    try:
        threading.Thread(target=watch, name="xjit watches", daemon=True).start()
    except RuntimeError:  # there can be no more threads
        return run()
    with _under_way:
        try:
            return run()
        finally:
            is_over.set()


def _interruptible(
    run: Callable[[], gateway.Executable], lowered: LoweredProgram, closed: ClosedJaxpr | None
) -> gateway.Executable:
    """Compile in a thread, so that Ctrl-C ends the wait for it; say so where that takes long.

    XLA cannot be stopped: the thread ends with it, and the interpreter waits for the thread at its
    end, since the process would die by a signal otherwise (Python before 3.12).
    """
    found: list[gateway.Executable] = []
    raised: list[BaseException] = []
    is_over = threading.Event()

    def work() -> None:
        try:
            with _under_way:
                found.append(run())
        except BaseException as error:
            raised.append(error)
        finally:
            is_over.set()

    try:
        threading.Thread(target=work, name=f"xjit compiles {lowered.name}", daemon=False).start()
    except RuntimeError:  # there can be no more threads
        return run()
    _watch(is_over, lowered, closed)
    if raised:
        raise raised.pop()
    return found.pop()


class _UnderWay:
    """Counts the compilations of all threads."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.count -= 1


_under_way = _UnderWay()


def _watch(is_over: threading.Event, lowered: LoweredProgram, closed: ClosedJaxpr | None) -> None:
    """Wait for a compilation, and say once that it takes long.

    It takes what the process has of processors meanwhile, divided by the compilations under way:
    XLA's threads serve all of them, so each one's own is not known. The time of a clock says
    nothing on a busy machine.
    """
    start, last, used, is_said = time.monotonic(), time.process_time(), 0.0, False
    while not is_over.wait(_LOOK_UP_SECONDS):
        now = time.process_time()
        used += (now - last) / max(_under_way.count, 1)
        last = now
        is_long = used >= SLOW_SECONDS or time.monotonic() - start >= _LONG_WAIT_SECONDS
        if is_long and not is_said:
            is_said = True
            logger.warning(_what_takes_long(lowered, closed))


def _what_takes_long(lowered: LoweredProgram, closed: ClosedJaxpr | None) -> str:
    """Say which program takes long to compile, how large it is, and what makes it large."""
    types = [a.str_long() for a in lowered.in_avals]
    if len(types) > _NAMED_TYPES:  # the arguments of a network would fill pages
        types = [*types[: _NAMED_TYPES - 1], f"and {len(types) - _NAMED_TYPES + 1} more"]
    eqns = [] if closed is None else equations_of(closed.jaxpr)
    lines = Counter([describe(eqn.source) for eqn in eqns])
    most = [f", of which {count / lines.total():.0%} of {where}"
            for where, count in lines.most_common(1) if where]  # fmt: skip
    return (
        f"compiling {lowered.name.removeprefix('jit_')}({', '.join(types)}) takes more than "
        f"{SLOW_SECONDS:.0f} s: {lowered.body.count('stablehlo.'):,} operations{''.join(most)}. "
        "Ctrl-C ends the wait; debug.explain(f, *args) shows what takes the time"
    )


def equations_of(jaxpr: Jaxpr) -> Iterator[Equation]:
    """Yield all equations; one that holds programs stands for these."""
    for eqn in jaxpr.eqns:
        inner = list(subjaxprs(eqn.params))
        if not inner:
            yield eqn
        for program in inner:
            yield from equations_of(program)


def _raise_what_users_raised(lowered: LoweredProgram) -> None:
    """Raise what a function raised that XLA called to split an operation."""
    for split in lowered.splits:
        error, split.error = split.error, None
        if error is not None:
            raise error from None


def _free_outputs(lowered: LoweredProgram, placement: Placement) -> list[bool]:
    """Return for each result whether XLA may choose its sharding: where the text says nothing."""
    if not placement.is_split:
        return []
    requested = placement.out_shardings or [None] * len(lowered.out_avals)
    return [sharding is None for sharding in requested]


# What turns text into an executable.
compiler: Callable[..., gateway.Executable] = gateway.compile_program


# ------------------------------------------------------------------------------ compiler options
# Options of XLA that suit a program for the CPU. A setting of the user, as an option or in
# `XLA_FLAGS`, takes precedence.
#
# The width of vectors: XLA uses 256 bits of the 512-bit vector registers that newer processors
# have, since older ones lower their clock when all bits are used. Programs of transcendental
# functions and random bits run in half the time with 512; copies gain nothing and are compiled
# with XLA's default. So are programs without loops of a thousand elements at most, but for random
# bits: they gain 0 to 7% of a call, and short loops that LLVM unrolls have half as much code again.
#
# The size of loops that are one kernel: XLA runs an instruction of a loop's body by a call of 50 to
# 200 ns, and a loop whose body reads and writes less than a limit as one kernel, without any. That
# limit is 1 kB in older versions, so that a step of 32 numbers is already beyond it; newer ones
# have one of the size set here. Above it, kernels that XLA divides over threads are worth their
# calls.
#
# Tiles: older versions compile elementwise operations on arrays alone, without constants, by an
# emitter whose tiles pass through the stack: `-x` takes three times as long as `x * 2`. Transposes
# alone are faster with them (0.22 ms for 0.52, of a million), but not beside anything else: a sum
# of an array and its transpose takes 4.2 ms for 0.6.
#
# Functions that are called: older versions copy one for each call and run all passes over each
# copy; copied after fusion, they go through the first half of the passes once.
#
# Copies of donated arguments: XLA updates one in place where everything else that reads it comes
# before in any order, or else copies it. With its analysis of regions it says in which order they
# come, as it does for other platforms, and copies less. The pass that makes small loops one kernel
# forgets that order, and then a loop reads what was overwritten: so a program with a loop, or with
# an operation that XLA may make one of, has no such analysis.

_GAINS_FROM_WIDTH = re.compile(
    r"\b(?:stablehlo\.(?:exponential|log|logistic|tanh|power|rsqrt|bitcast_convert|xor)|chlo\.)"
)


# The arc tangent of older versions, and the angle of points (y, 1) that it is made of, get 512 bits
# in registers and read them from memory: its results are those of other numbers.
_FAILS_WITH_WIDTH = re.compile(r"\b(?:stablehlo\.atan2|chlo\.atan)\b")


_MANY_PRODUCTS = 32  # in fewer, memory is what takes the time


def _gains_from_width(text: str) -> bool:
    if not gateway.has_wide_registers():
        return False
    if text.count("stablehlo.multiply") < _MANY_PRODUCTS and not _GAINS_FROM_WIDTH.search(text):
        return False
    if _is_short(text):
        return False
    return not (gateway.HAS_WRONG_WIDE_ATAN and _FAILS_WITH_WIDTH.search(text))


_MOST_ELEMENTS_OF_SHORT = 1024
_RUNS_LONG = re.compile(r"\b(?:stablehlo\.(?:while|xor)|tensor<[\dx]*\?)")
_SIZES = re.compile(r"tensor<((?:\d+x)+)")


def _is_short(text: str) -> bool:
    """Return whether a program has few elements everywhere, no loop and no random bits."""
    if _RUNS_LONG.search(text):
        return False
    return all(
        math.prod(map(int, sizes[:-1].split("x"))) <= _MOST_ELEMENTS_OF_SHORT
        for sizes in set(_SIZES.findall(text))
    )


def _has_limited_loops(text: str) -> bool:
    return gateway.LIMITS_LOOPS_TO_1_KB and "stablehlo.while" in text


def _has_slow_tiles(text: str) -> bool:
    return gateway.TILES_BY_WAY_OF_STACK and not _only_transposes(text)


_PERMUTATION = re.compile(r"permutation = array<i64: ([\d, ]+)>")
_NEITHER = re.compile(r"^%\w+ = (?!\"stablehlo\.(?:transpose|reshape)\")", re.MULTILINE)


def _only_transposes(text: str) -> bool:
    """Return whether a program only transposes, and not the last two of several dimensions."""
    if "stablehlo.transpose" not in text or _NEITHER.search(text):
        return False
    orders = [list(map(int, order.split(", "))) for order in _PERMUTATION.findall(text)]
    return all(len(order) < 3 or order[:-2] != list(range(len(order) - 2)) for order in orders)


def _has_copied_functions(text: str) -> bool:
    return gateway.COPIES_FUNCTIONS_FIRST and 'inlineable = "false"' in text


_OPERATIONS = re.compile(r"\b(?:stablehlo|chlo|mhlo|sdy|func)\.(\w+)")
_ORDERED = frozenset({
    "abs", "add", "and", "broadcast_in_dim", "call", "cbrt", "ceil", "clamp", "compare",
    "concatenate", "constant", "convert", "convolution", "cosine", "divide", "dot_general",
    "exponential", "exponential_minus_one", "floor", "func", "iota", "is_finite", "log",
    "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not",
    "optimization_barrier", "or", "pad", "power", "reduce", "remainder", "reshape", "return",
    "reverse", "round_nearest_even", "rsqrt", "select", "sign", "sine", "slice", "sqrt", "subtract",
    "tan", "tanh", "transpose", "xor",
    "conv", "dot", "frontend_attributes",  # attributes
})  # fmt: skip


def _has_needless_copies(text: str) -> bool:
    """Return whether a program updates arguments in place, and nothing in it becomes a loop."""
    if "tf.aliasing_output" not in text and "jax.buffer_donor" not in text:
        return False
    return _ORDERED.issuperset(_OPERATIONS.findall(text))


# Name, value, which programs it suits, and whether only the back end for CPUs knows it.
_SUITED_OPTIONS: tuple[tuple[str, int, Callable[[str], bool], bool], ...] = (
    ("xla_cpu_prefer_vector_width", 512, _gains_from_width, False),
    ("xla_cpu_small_while_loop_byte_threshold", 1 << 16, _has_limited_loops, True),
    ("xla_cpu_disable_tiled_emitter", 1, _has_slow_tiles, True),
    ("xla_cpu_flatten_after_fusion", 1, _has_copied_functions, True),
    ("xla_cpu_copy_insertion_use_region_analysis", True, _has_needless_copies, False),
)


def with_suited_options(
    options: Mapping[str, Any] | None, text: str, platform: str
) -> Mapping[str, Any] | None:
    """Return the compiler options of a program, with those that suit it and are not set yet.

    Args:
      options: compiler options by name.
      text: the StableHLO of the program.
      platform: the platform it is compiled for.
    """
    if platform != "cpu":
        return options
    found, flags = dict(options or {}), os.environ.get("XLA_FLAGS", "")
    for name, value, suits, is_extra in _SUITED_OPTIONS:
        extra = str(found.get(gateway.EXTRA_OPTIONS, ""))
        if name in found or name in extra or name in flags or not suits(text):
            continue
        if is_extra:
            setting = f"{name}={value}"
            found[gateway.EXTRA_OPTIONS] = f"{extra},{setting}" if extra else setting
        else:
            found[name] = value
    return found or None
