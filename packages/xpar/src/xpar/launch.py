"""Start processes of one program on this machine, for `python -m xpar launch`.

Each finds the others through the environment, by `distributed.initialize()` without arguments.
What they print is merged line by line, with the number of the process in front. When one dies, the
others are ended, and what it said last, its traceback, is shown last.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

__all__ = ()

_COLOURS = (36, 33, 32, 35, 34, 31)  # of a terminal, one after another
# Gloo's greeting, a line for each group of devices; lines of several threads run into each other.
_NOISE = re.compile(r"\[Gloo\] Rank |\d+ peer ranks|connected peer ranks is")
_HOLD = 1.0  # seconds for which a traceback is kept back, in case its process ends by it
_GRACE = 5.0  # seconds from the request to end to the end by force
_POLL = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status: that of the process which failed first."""
    parser = argparse.ArgumentParser(
        prog="python -m xpar", description="Run a program in several processes of this machine.",
        epilog="The program calls xpar.distributed.initialize() without arguments.",
    )  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="launch")
    launching = commands.add_parser("launch", help="start the processes of a script or module")
    launching.add_argument("-n", "--processes", type=_count, required=True, metavar="N",
                           help="how many processes")  # fmt: skip
    launching.add_argument("-d", "--devices", type=_count, metavar="N",
                           help="how many devices the CPU of each shows")  # fmt: skip
    launching.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                           help="whether the numbers of processes have colours")  # fmt: skip
    launching.add_argument("-m", dest="module", action="store_true",
                           help="the script is the name of a module")  # fmt: skip
    launching.add_argument("script", help="a Python file, or a module after -m")
    launching.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args(arguments)
    if not options.module and not os.path.exists(options.script):
        parser.error(f"there is no file {options.script!r}")
    command = [sys.executable, *(["-m"] if options.module else []), options.script]
    is_coloured = sys.stdout.isatty() if options.color == "auto" else options.color == "always"
    return launch([*command, *options.arguments], options.processes, options.devices, is_coloured)


def launch(
    command: Sequence[str], num_processes: int, num_devices: int | None = None,
    is_coloured: bool = False,
) -> int:  # fmt: skip
    """Run a command in so many processes and return the exit status of the first that failed, or 0.

    Args:
      command: the program with its arguments.
      num_processes: how many there are.
      num_devices: how many devices the CPU of each shows; by default what the environment says.
      is_coloured: whether the numbers before the lines have colours.
    """
    variables = {
        "XSTACK_COORDINATOR_ADDRESS": _free_address(),
        "XSTACK_NUM_PROCESSES": str(num_processes),
        "PYTHONUNBUFFERED": "1",
    }
    if num_devices is not None:
        variables["XSTACK_NUM_CPU_DEVICES"] = str(num_devices)
    screen = threading.Lock()
    children: list[_Child] = []
    received: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in _passed_on()
    }
    try:
        for number in range(num_processes):
            own = os.environ | variables | {"XSTACK_PROCESS_ID": str(number)}
            children.append(_Child(number, command, own, is_coloured, screen))
        failed = _watch(children, received)
        _end(children)
    finally:
        for child in children:
            child.kill()
        for number, handler in previous.items():
            signal.signal(number, handler)
    return _last_words(children, failed, received)


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _passed_on() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


class _Child:
    """One process, and the thread that reads what it prints."""

    def __init__(
        self, number: int, command: Sequence[str], variables: dict[str, str], is_coloured: bool,
        screen: threading.Lock,
    ) -> None:  # fmt: skip
        self.number = number
        tag = f"[{number}]"
        colour = _COLOURS[number % len(_COLOURS)]
        self._tag = f"\033[{colour}m{tag}\033[0m" if is_coloured else tag
        self._screen = screen
        self._held: list[str] = []
        self._held_since = 0.0
        self.process = subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,  # signals come through the launcher alone
        )  # fmt: skip
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            if _NOISE.search(line):
                continue
            with self._screen:
                if not self._held and line.startswith("Traceback (most recent call last)"):
                    self._held_since = time.monotonic()
                    self._held.append(line)
                elif self._held:
                    self._held.append(line)
                else:
                    self._show(line)

    def _show(self, line: str) -> None:
        sys.stdout.write(f"{self._tag} {line.rstrip()}\n")
        sys.stdout.flush()

    def show_held(self) -> None:
        """Show what was kept back."""
        with self._screen:
            held, self._held = self._held, []
            for line in held:
                self._show(line)

    def show_old(self) -> None:
        """Show what was kept back for long, of a process that goes on."""
        if self._held and time.monotonic() > self._held_since + _HOLD:
            self.show_held()

    def said(self, text: str) -> bool:
        """Return whether a text is in what was kept back."""
        with self._screen:
            return any(text in line for line in self._held)

    def send(self, number: int) -> None:
        """Pass a signal on."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """End it by force, and wait until all that it has printed is read."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(_GRACE)


def _watch(children: list[_Child], received: list[int]) -> _Child | None:
    """Wait until all have ended, or one has failed; return that one."""
    while True:
        while received:
            number = received.pop(0)
            for child in children:
                child.send(number)
        failed = [child for child in children if child.process.poll()]
        if failed:
            causes = [child for child in failed if not child.said("ProcessFailureError")]
            return (causes or failed)[0]
        if all(child.process.poll() == 0 for child in children):
            return None
        for child in children:
            child.show_old()
        time.sleep(_POLL)


def _end(children: list[_Child]) -> None:
    """Ask those that still run to end, and wait a moment for them."""
    for child in children:
        child.send(signal.SIGTERM)
        child.send(getattr(signal, "SIGCONT", signal.SIGTERM))  # one that is stopped hears it, too
    end = time.monotonic() + _GRACE
    while time.monotonic() < end and any(c.process.poll() is None for c in children):
        time.sleep(_POLL)


def _last_words(children: list[_Child], failed: _Child | None, received: list[int]) -> int:
    """Show what is left to show, that of the process which failed at the end; return the status."""
    if failed is None:
        for child in children:
            child.show_held()
        return 0
    failed.show_held()
    status = failed.process.returncode
    how = f"with status {status}" if status > 0 else f"by {signal.Signals(-status).name}"
    sys.stderr.write(f"launch: process {failed.number} of {len(children)} ended {how}; the others "
                     "were ended.\n")  # fmt: skip
    return status if status > 0 else 128 - status
