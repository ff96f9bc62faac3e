"""End the daemon threads that use the library before the interpreter ends.

Until Python 3.14 a thread that comes out of the runtime when the interpreter is gone is unwound
through C++ that allows no unwinding, and the process dies by a signal. So at exit each daemon
thread that has used the library is asked to end, by a `SystemExit` at its next step, which Python
does not report; those that are inside the library are waited for, and asked again. A thread that
comes to the library later ends at its first step there.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
import time
from types import FrameType

from xprim.config import no_more_threads, threads_seen
from xprim.source import is_hidden

__all__ = ()

# A thread may be inside a long program; after this it is left to its fate.
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.001
# What is between the library and the thread's code may forget the first `SystemExit`.
_ASK_AGAIN_SECONDS = 0.1
# Until then a thread that is outside the library may be on its way into it.
_GRACE_SECONDS = 0.15


def end_threads_at_exit() -> None:
    """Have daemon threads end before the interpreter does; called once."""
    if sys.version_info < (3, 14):  # from there on such threads are stopped where they are
        atexit.register(_end_daemon_threads)


def _end_daemon_threads() -> None:
    no_more_threads.set()
    threads = [t for t in threading.enumerate() if t.daemon and t.ident in threads_seen
               and t is not threading.current_thread()]  # fmt: skip
    start, asked, waited = time.monotonic(), 0, 0.0
    while threads and waited < _PATIENCE_SECONDS:
        if waited >= asked * _ASK_AGAIN_SECONDS:
            asked += 1
            for thread in threads:
                _ask_to_end(thread)
        time.sleep(_PAUSE_SECONDS)
        waited = time.monotonic() - start
        early = waited < _GRACE_SECONDS
        threads = [t for t in threads if t.is_alive() and (early or _is_inside(t))]


def _ask_to_end(thread: threading.Thread) -> None:
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )


def _is_inside(thread: threading.Thread) -> bool:
    """Return whether a thread is in a call of the library."""
    frame: FrameType | None = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if is_hidden(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False
