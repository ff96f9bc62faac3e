"""Records for Perfetto's page: the trace event format, compressed JSON.

Source: Trace Event Format, complete events (`ph: X`) and names of processes and threads (`ph: M`),
times in microseconds; https://ui.perfetto.dev reads it.

Neighbours: `profiler` makes the records.
"""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ()

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
        yield _named("process_name", plane.name, process)
        for thread, line in enumerate(plane.lines, 1):
            yield _named("thread_name", line.name, process, thread)
            for event in line.events:
                yield {
                    "ph": "X", "pid": process, "tid": thread, "name": event.name,
                    "ts": event.start_ns / 1e3, "dur": event.duration_ns / 1e3,
                    "args": {str(k): _plain(v) for k, v in event.stats if k is not None},
                }  # fmt: skip


def _named(kind: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
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
