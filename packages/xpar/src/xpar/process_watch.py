"""Who of the other processes lives: signs of life through the coordination service.

Each process writes a number under its own key again and again, and reads those of all. One whose
number has not changed for the time of a heartbeat has failed; one that ends by an exception says
so before. Whoever waits for a result asks here in between, and raises `ProcessFailureError`.

Neighbours: `distributed` starts the watch, `process_barriers` waits for others through it,
`program_agreement` has all compile the same.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from xjit import jaxlib_gateway as gateway
from xpar import program_agreement
from xprim.errors import XStackRuntimeError, message

__all__ = ["ProcessFailureError"]

__dir__ = __all__.copy

_BEATS = "xpar/beats"
_LEFT = "left"
_LEAVING = "leaving "
_ENDED_BY = "ended by "
_LONGEST_PAUSE = 0.002  # seconds between two looks at a result that is not there yet
_LOOKS = 200  # without a pause, for results that are there at once


class ProcessFailureError(XStackRuntimeError):
    """Other processes have failed, so what this one waits for will not come.

    Processes that work together exchange values in each program; when one is killed, stops or does
    not answer for the time of a heartbeat, the others cannot go on. The usual remedy is to end, and
    to have all start again from the last checkpoint.

    Attributes:
      failed_processes: the numbers of the processes that have failed.
      failed_devices: their devices.

    Example:
      >>> issubclass(ProcessFailureError, RuntimeError)
      True
    """

    def __init__(
        self, failed_devices: Any = (), text: str = "", failed_processes: Sequence[int] = ()
    ) -> None:
        super().__init__(text)
        self.failed_processes = frozenset(failed_processes)
        self.failed_devices = frozenset(failed_devices)


class ProcessWatch:
    """Signs of life of this process and all others.

    Args:
      member: the connection to the coordination service.
      process_id: the number of this process.
      names: for each process, where it runs.
      timeout: after how many seconds without a sign a process has failed.
    """

    def __init__(
        self, member: gateway.Member, process_id: int, names: Sequence[str], timeout: float
    ) -> None:
        self.member = member
        self.process_id = process_id
        self.names = list(names)
        self.timeout = timeout
        self.is_leaving = False  # whether this process runs no more programs
        # Each reads what all have written, so many look more rarely.
        self._interval = min(timeout / 10, max(0.5, len(self.names) / 200))
        self._seen: dict[int, tuple[str, float]] = {}
        self._reasons: dict[int, str] = {}
        self._left_at: dict[int, float] = {}
        self._answered_at = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="xpar: signs of life", daemon=True)

    def start(self) -> None:
        """Begin to give and to look for signs."""
        self.member.set(f"{_BEATS}/{self.process_id}", "0")
        now = time.monotonic()
        self._answered_at = now
        self._seen = {i: ("", now) for i in range(len(self.names)) if i != self.process_id}
        self._thread.start()

    def stop(self, last_word: str = _LEFT) -> None:
        """Give no more signs; the others are told why."""
        self._is_over.set()
        self._thread.join(self._interval)
        with contextlib.suppress(gateway.XlaError):
            self.member.set(f"{_BEATS}/{self.process_id}", last_word)

    def stop_by(self, error: BaseException) -> None:
        """Give no more signs, since this process ends by an exception."""
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        self.stop(_ENDED_BY + line)

    @property
    def failures(self) -> dict[int, str]:
        """For each process that has failed, how that is known."""
        if not self._is_over.is_set() and time.monotonic() > self._answered_at + self.timeout:
            self._reasons.setdefault(0, f"the coordinator has not answered for {self.timeout:g} s")
        return dict(self._reasons)

    def failure(self) -> ProcessFailureError | None:
        """Return the error where a process has failed."""
        failures = self.failures
        if not failures:
            return None
        numbers = sorted(failures)
        plural = len(numbers) > 1
        which = f"process{'es' if plural else ''} {', '.join(map(str, numbers))}"
        return ProcessFailureError(
            self._devices_of(numbers),
            message(
                "distributed",
                f"{which} of {len(self.names)} {'have' if plural else 'has'} failed.",
                got="\n".join([f"process {i} ({self.names[i]}): {failures[i]}" for i in numbers]),
                hint="end this process, and start all again from the last checkpoint",
            ),
            numbers,
        )  # fmt: skip

    def check(self) -> None:
        """Raise where a process has failed."""
        if self._reasons or time.monotonic() > self._answered_at + self.timeout:
            error = self.failure()
            if error is not None:
                raise error

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Return when `is_done`, which costs nothing to ask, says so.

        Raises:
          ProcessFailureError: another process has failed, or has left while this one waited.
        """
        for _ in range(_LOOKS):
            if is_done():
                return
        self._look(is_done, 2e-5, _LONGEST_PAUSE)

    def wait_for_word(self, is_said: Callable[[], bool]) -> None:
        """Return when `is_said`, which asks the coordinator, says so; raise as `wait` does."""
        self._look(is_said, 1e-3, 0.05)

    def _look(self, is_done: Callable[[], bool], pause: float, longest: float) -> None:
        since = time.monotonic()
        while not is_done():
            self.check()
            self._check_left(since)
            time.sleep(pause)
            pause = min(pause * 1.5, longest)

    def explain(self, failure: BaseException) -> None:
        """Raise what stands behind a failure of the runtime, when it shows within a heartbeat."""
        if not _is_of_connections(str(failure)):
            return
        end = time.monotonic() + self.timeout + self._interval
        while time.monotonic() < end:
            found = self.failure() or self._of_left()
            if found is not None:
                raise found from failure
            time.sleep(min(self._interval / 4, 0.05))

    def agree(self, text: str, name: str, devices: tuple[Any, ...]) -> None:
        """Raise where other processes compile another program for their part of these devices."""
        program_agreement.agree(self, text, name, devices)

    def _check_left(self, since: float) -> None:
        """Raise where another process left, and what this one waits for does not come."""
        if self.is_leaving:
            return
        now = time.monotonic()
        if any(now > max(at, since) + self.timeout for at in self._left_at.values()):
            found = self._of_left()
            if found is not None:
                raise found

    def _of_left(self) -> ProcessFailureError | None:
        numbers = sorted(self._left_at)
        if not numbers:
            return None
        which = ", ".join(map(str, numbers))
        return ProcessFailureError(
            self._devices_of(numbers),
            message(
                "distributed", f"process {which} of {len(self.names)} has ended, "
                "and this one still waits for its values.",
                got=f"a program that process {self.process_id} runs",
                expected="all processes to run the same programs in the same order",
            ),
            numbers,
        )  # fmt: skip

    def _devices_of(self, numbers: Sequence[int]) -> list[Any]:
        if not gateway.has_clients():
            return []
        return [d for d in gateway.all_devices() if d.process_index in numbers]

    def _run(self) -> None:
        beat = 0
        while not self._is_over.wait(self._interval):
            beat += 1
            try:
                word = f"{_LEAVING}{beat}" if self.is_leaving else str(beat)
                self.member.set(f"{_BEATS}/{self.process_id}", word)
                found = self.member.texts(_BEATS)
            except gateway.XlaError:
                continue  # `failures` tells when this lasts
            self._answered_at = time.monotonic()
            self._note(found, self._answered_at)

    def _note(self, beats: dict[str, str], now: float) -> None:
        for process, (last, at) in list(self._seen.items()):
            beat = beats.get(str(process), "")
            if beat.startswith((_LEFT, _LEAVING)):
                self._left_at.setdefault(process, now)
            if beat == _LEFT:
                continue
            if beat.startswith(_ENDED_BY):
                self._reasons.setdefault(process, "it " + beat)
            elif beat != last:
                self._seen[process] = beat, now
            elif now - at > self.timeout - 2 * self._interval:
                silence = f"no sign of life for {self.timeout:g} s (heartbeat_timeout_seconds)"
                self._reasons.setdefault(process, silence)


def _is_of_connections(text: str) -> bool:
    """Return whether a failure of the runtime may come from the end of another process."""
    words = ("Gloo", "NCCL", "closed by peer", "Connection", "DEADLINE_EXCEEDED", "UNAVAILABLE")
    return any(word in text for word in words)
