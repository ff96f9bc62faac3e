"""Look at where time and memory go: records of what the host and the devices do, for Perfetto."""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from xjit._devices import default_backend
from xjit.jaxlib_gateway import profiling, version
from xprim.errors import described, message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.transformed import check_function, transforming
from xtree.interning import forkable_rlock

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileLine", "ProfileOptions", "ProfilePlane",
    "ProfileSession", "StepTraceAnnotation", "TraceAnnotation", "annotate_function",
    "device_memory_profile", "export_profile_data", "register_subprocess",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace",
    "trace",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------------- perfetto
# Records for Perfetto's page: the trace event format, compressed JSON.
#
# Source: Trace Event Format, complete events (`ph: X`) and names of processes and threads (`ph:
# M`), times in microseconds; https://ui.perfetto.dev reads it.

_PORT = 9001  # the page may read from this port of the reader's own machine


def write(data: Any, file: Path) -> Path:
    """Write a `ProfileData` to a file, and return its path."""
    with warnings.catch_warnings():
        # the classes of jaxlib that hold values have no module, which Python means to refuse
        warnings.simplefilter("ignore", DeprecationWarning)
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": list(_events(data))})
    file.write_bytes(gzip.compress(text.encode(), 6))
    return file


def _events(data: Any) -> Iterator[dict[str, Any]]:
    for process, plane in enumerate(data.planes, 1):
        yield _name_event("process_name", plane.name, process)
        for thread, line in enumerate(plane.lines, 1):
            yield _name_event("thread_name", line.name, process, thread)
            for event in line.events:
                yield {
                    "ph": "X", "pid": process, "tid": thread, "name": event.name,
                    "ts": event.start_ns / 1e3, "dur": event.duration_ns / 1e3,
                    "args": {str(k): _plain(v) for k, v in event.stats if k is not None},
                }  # fmt: skip


def _name_event(kind: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else str(value)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Gives files to Perfetto's page."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def serve_once(file: Path, port: int = _PORT) -> None:
    """Print a link to Perfetto's page, and wait until that has read the file from here.

    Args:
      file: what to show.
      port: where to listen, on this machine alone.
    """
    handler = functools.partial(_Handler, directory=str(file.parent))
    with http.server.HTTPServer(("127.0.0.1", port), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/{file.name}"
        sys.stdout.write(f"Open in a browser: https://ui.perfetto.dev/#!/?url={address}\n")
        sys.stdout.flush()
        server.handle_request()


# -------------------------------------------------------------------------------------- profiler
# Look at where time and memory go: records of what the host and the devices do.
#
#
# writes `profiles/plugins/profile/<time>/`, for TensorBoard's and XProf's profile page, and
# `perfetto_trace.json.gz` there, for https://ui.perfetto.dev. `TraceAnnotation` names a part of
# the program in it. The record is in memory, too: `session.profile_data`.

P = ParamSpec("P")
R = TypeVar("R")
Folder = str | os.PathLike[str]

ProfileData = profiling.ProfileData
"""A record: its `planes` (the host, each device) have `lines` (threads), these have `events`."""
ProfilePlane = profiling.ProfilePlane
ProfileLine = profiling.ProfileLine
ProfileEvent = profiling.ProfileEvent


class ProfileOptions(profiling.ProfileOptions):  # type: ignore[misc]
    """What is recorded: `host_tracer_level`, `python_tracer_level`, `session_id`, ...

    Example:
      >>> options = ProfileOptions()
      >>> options.python_tracer_level = 0  # no Python functions: it takes less time
    """

    __slots__ = ()  # an unknown attribute raises


class ProfileSession:
    """A record in the making, then the record; also a context manager.

    Args:
      log_dir: where it is written when it ends; None keeps it in memory.
      create_perfetto_link: whether a link to Perfetto's page is printed, which then reads the
        record from this process; stopping waits for that.
      create_perfetto_trace: whether `perfetto_trace.json.gz` is written beside the other files.
      profiler_options: what is recorded.
    """

    def __init__(
        self, log_dir: Folder | None = None, create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False, profiler_options: ProfileOptions | None = None,
    ) -> None:  # fmt: skip
        if log_dir is None and (create_perfetto_link or create_perfetto_trace):
            raise ValueError(message(
                "trace", "a file for Perfetto needs a folder.", got="log_dir=None",
                hint="trace('profiles', create_perfetto_trace=True)",
            ))  # fmt: skip
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.create_perfetto_link = create_perfetto_link
        self.create_perfetto_trace = create_perfetto_trace
        self.profiler_options = profiler_options
        self._running: Any = None
        self._record: bytes | None = None

    def start(self) -> ProfileSession:
        """Start to record.

        Raises:
          RuntimeError: another session records already.
        """
        with _lock:
            if _sessions:
                raise RuntimeError(message(
                    "start_trace", "another trace is being recorded, and only one can be.",
                    hint="stop_trace() ends it",
                ))  # fmt: skip
            options = self.profiler_options or ProfileOptions()
            facts = {"jaxlib_version": version(), "default_backend": default_backend()}
            self._record = None
            self._running = profiling.start(options, facts)
            _sessions.append(self)
        return self

    def stop(self) -> Any:
        """Stop to record, write the files that were requested, and return the `ProfileData`.

        Raises:
          RuntimeError: this session does not record.
        """
        with _lock:
            if self._running is None:
                raise RuntimeError(
                    "stop_trace: no record is in the making; start_trace begins one."
                )
            self._record = profiling.stop(self._running)
            self._running = None
            _sessions.clear()
        if self.log_dir is not None:
            self.export_profile_data(
                self.log_dir, self.create_perfetto_link, self.create_perfetto_trace
            )
        return self.profile_data

    @property
    def is_running(self) -> bool:
        """Whether it records now."""
        return self._running is not None

    @property
    def profile_data(self) -> Any:
        """The record as a `ProfileData`, None before it has ended."""
        return None if self._record is None else profiling.data_of(self._record)

    def export_profile_data(
        self, log_dir: Folder, create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False, session_id: str | None = None,
    ) -> None:  # fmt: skip
        """Write the record; the arguments are those of the function of this name."""
        if self._record is None:
            raise RuntimeError("export_profile_data: the session has no record yet; stop it first.")
        folder = Path(log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        if session_id is None and self.profiler_options is not None:
            session_id = self.profiler_options.session_id or None
        place = _write(self._record, folder, session_id)
        if create_perfetto_trace or create_perfetto_link:
            file = write(self.profile_data, place / "perfetto_trace.json.gz")
            if create_perfetto_link:
                serve_once(file)

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        if self.is_running:
            self.stop()


_sessions: list[ProfileSession] = []
_servers: list[Any] = []
_lock = forkable_rlock()


def _write(record: bytes, folder: Path, session_id: str | None) -> Path:
    """Write the files of a record and return the folder that they are in."""
    profiles = folder / "plugins" / "profile"
    before = set(profiles.iterdir()) if profiles.exists() else set()
    profiling.write_files(record, str(folder))
    made = sorted(set(profiles.iterdir()) - before) or sorted(before, key=os.path.getmtime)
    if session_id is None:
        return made[-1]
    named = profiles / session_id
    named.mkdir(exist_ok=True)
    for file in made[-1].iterdir():
        file.rename(named / file.name)
    made[-1].rmdir()
    return named


def start_trace(
    log_dir: Folder, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> ProfileSession:  # fmt: skip
    """Start to record until `stop_trace`; the arguments are those of `ProfileSession`.

    Raises:
      RuntimeError: another record is in the making.
    """
    return ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    ).start()


def stop_trace() -> Any:
    """End the record that `start_trace` began, and return it as a `ProfileData`.

    Raises:
      RuntimeError: there is none.
    """
    with _lock:
        if not _sessions:
            raise RuntimeError("stop_trace: no record is in the making; start_trace begins one.")
        return _sessions[0].stop()


@contextmanager
def trace(
    log_dir: Folder | None = None, create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False, profiler_options: ProfileOptions | None = None,
) -> Iterator[ProfileSession]:  # fmt: skip
    """Record what happens in a block.

    Args:
      log_dir: where the record is written; None keeps it in memory.
      create_perfetto_link: as in `ProfileSession`.
      create_perfetto_trace: as in `ProfileSession`.
      profiler_options: as in `ProfileSession`.

    Example:
      >>> with trace() as session:
      ...     with TraceAnnotation("my part"):
      ...         pass
      >>> [e.name for p in session.profile_data.planes for l in p.lines for e in l.events
      ...  if e.name == "my part"]
      ['my part']
    """
    with ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    ) as session:
        yield session


def export_profile_data(
    profile_data: Any, log_dir: Folder, create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False, session_id: str | None = None,
) -> None:  # fmt: skip
    """Write a record.

    Args:
      profile_data: a session that has ended. A `ProfileData` alone goes as a file for Perfetto.
      log_dir: the folder under which `plugins/profile/<session>/` is made.
      create_perfetto_link: as in `ProfileSession`.
      create_perfetto_trace: as in `ProfileSession`.
      session_id: the name of the folder; None for the time.
    """
    if isinstance(profile_data, ProfileSession):
        profile_data.export_profile_data(
            log_dir, create_perfetto_link, create_perfetto_trace, session_id
        )
        return
    if not (isinstance(profile_data, ProfileData) and create_perfetto_trace):
        raise TypeError(message(
            "export_profile_data", "it writes a session that has ended.",
            got=described(profile_data),
            hint="a ProfileData alone has one form: create_perfetto_trace=True",
        ))  # fmt: skip
    place = Path(log_dir) / "plugins" / "profile" / (session_id or "session")
    place.mkdir(parents=True, exist_ok=True)
    file = write(profile_data, place / "perfetto_trace.json.gz")
    if create_perfetto_link:
        serve_once(file)


class TraceAnnotation(profiling.TraceMe):  # type: ignore[misc]
    """Name what a block does in records.

    Args:
      name: what records show.
      **kwargs: further values that they show.

    Example:
      >>> with TraceAnnotation("load", batch=3):
      ...     pass
    """

    __slots__ = ()


class StepTraceAnnotation(TraceAnnotation):
    """Name a step of training in records, which count and compare steps.

    Example:
      >>> with StepTraceAnnotation("train", step_num=7):
      ...     pass
    """

    __slots__ = ()

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)  # `_r` marks what is the root of a step


def annotate_function(
    func: Callable[P, R], name: str | None = None, **decorator_kwargs: Any
) -> Callable[P, R]:
    """Return a function whose calls records show.

    Args:
      func: the function.
      name: what records show; None for its own name.
      **decorator_kwargs: further values that they show.

    Example:
      >>> annotate_function(lambda x: x + 1, name="add")(1)
      2
    """
    check_function(func, "annotate_function")
    shown = name or getattr(func, "__qualname__", "") or type(func).__name__

    @transforming(func, "annotate_function")
    def call_annotated(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return call_annotated


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let TensorBoard and XProf ask this process for records.

    Args:
      port: where to listen.
      requires_backend: whether the devices are started first, so that records show them.

    Raises:
      ValueError: there is a server already.
    """
    with _lock:
        require(not _servers, "start_server", "there is a server already; stop_server ends it.")
        if requires_backend:
            default_backend()
        _servers.append(profiling.start_server(port))
        return _servers[0]


def stop_server() -> None:
    """End the server that `start_server` began.

    Raises:
      ValueError: there is none.
    """
    with _lock:
        require(_servers, "stop_server", "there is no server; start_server begins one.")
        _servers.clear()


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Have records contain what another process of this program records.

    Args:
      pid: its number.
      port: where its server (`start_server`) listens.

    Returns:
      A function that ends this.
    """
    return profiling.register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return which arrays and programs are in a device's memory, as `pprof` reads it.

    Args:
      backend: the platform; None for the default one.

    Returns:
      A protocol buffer of https://github.com/google/pprof, compressed by gzip.
    """
    return gzip.compress(profiling.heap_profile(backend))


def save_device_memory_profile(filename: Folder, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file."""
    Path(filename).write_bytes(device_memory_profile(backend))


boundaries(globals())
