"""The runtime's profiler: what it records, and the classes in which it shows it.

What: `start`, `stop`, `data_of`, `write_files`, annotations, the server and memory profiles.
Idea: a session gives its record as bytes on every jaxlib; what is read or written is made of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib import _profile_data, _profiler

from .clients import client
from .runtime import RuntimeFailure, fail

__all__ = ()

ProfileData = _profile_data.ProfileData
ProfilePlane = _profile_data.ProfilePlane
ProfileLine = _profile_data.ProfileLine
ProfileEvent = _profile_data.ProfileEvent
ProfileOptions = _profiler.ProfileOptions
TraceMe = _profiler.TraceMe


def start(options: Any, facts: dict[str, str]) -> Any:
    """Start to record, and return the session.

    Args:
        options: a `ProfileOptions`.
        facts: what the record shall say of this process, by name.
    """
    _profiler.clear_metadata()
    for name, value in facts.items():
        _profiler.set_metadata(name, value)
    try:
        return _profiler.ProfilerSession(options)
    except RuntimeFailure as error:
        fail("start_trace", "the profiler could not be started", error)


def stop(session: Any) -> bytes:
    """Stop to record, and return the record."""
    record: bytes = session.stop()
    _profiler.clear_metadata()
    return record


def data_of(record: bytes) -> Any:
    """Return a record as a `ProfileData`."""
    return ProfileData.from_serialized_xspace(record)


def write_files(record: bytes, folder: str) -> None:
    """Write a record as TensorBoard and XProf read it, under `folder/plugins/profile`."""
    session = _profiler.ProfilerSession(_idle_options())
    try:
        session.export(record, folder)
    finally:
        session.stop()


def _idle_options() -> Any:
    """Return options with which a session records next to nothing."""
    options = ProfileOptions()
    options.host_tracer_level = 0
    options.python_tracer_level = 0
    return options


def start_server(port: int) -> Any:
    """Listen for those who ask for a record; the server lives as long as the object."""
    try:
        return _profiler.start_server(port)
    except RuntimeFailure as error:
        fail("start_server", f"no server could be started at port {port}", error)


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Have records contain what a process of ours records, whose server listens at `port`."""
    found: Callable[[], None] = _profiler.register_subprocess(pid, port)
    return found


def heap_profile(platform: str | None) -> bytes:
    """Return the buffers and programs of a platform as a protocol buffer of `pprof`."""
    profile: bytes = client(platform).heap_profile()
    return profile
