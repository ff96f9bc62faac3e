"""The training runs: on one device, then the same steps on several with averaged gradients."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

import numpy as np

import xstack
from xstack import random
from xstack.demo import classifier
from xstack.demo.data import Dataset
from xstack.demo.settings import DemoError, Settings

__all__ = ["CtrlC"]

__dir__ = __all__.copy

REPORTED = 50  # after this many steps loss and accuracy are looked at

Progress = Callable[[int, float, float], None]  # step, loss, held-out accuracy


@dataclass(slots=True)
class Run:
    """What a training gave, also when it was stopped before its last step."""

    params: Any = None
    losses: list[float] = field(default_factory=list)
    accuracies: list[tuple[int, float]] = field(default_factory=list)
    seconds_by_phase: dict[str, float] = field(default_factory=dict)


def batches(data: Dataset, settings: Settings) -> Iterator[tuple[Any, Any]]:
    """Yield `steps` batches: every epoch shuffles all examples with a key of its own."""
    size = min(settings.batch_size, len(data.train_x) // settings.replicas * settings.replicas)
    key = random.fold_in(random.PRNGKey(settings.seed), 1)
    step = 0
    while True:
        key, subkey = random.split(key)
        order = np.asarray(random.permutation(subkey, len(data.train_x)))
        for start in range(0, len(order) - size + 1, size):
            if step == settings.steps:
                return
            chosen = order[start : start + size]
            yield data.train_x[chosen], data.train_y[chosen]
            step += 1


def initial_params(data: Dataset, settings: Settings) -> Any:
    """Return the parameters that both runs start from."""
    sizes = [data.train_x.shape[1], settings.hidden, len(data.classes)]
    return classifier.initial_params(random.PRNGKey(settings.seed), sizes)


def accuracy(params: Any, data: Dataset) -> float:
    """Return the part of the held-out examples that is classified right."""
    return float((find_classes(params, data) == data.test_y).mean())


def find_classes(params: Any, data: Dataset) -> Any:
    """Return the predicted class number of each held-out example."""
    return np.asarray(PREDICTED(params, data.test_x))


PREDICTED = xstack.jit(classifier.predict)


def train(data: Dataset, settings: Settings, report: Progress, ctrl_c: CtrlC) -> Run:
    """Train on one device with a compiled update whose parameters are donated.

    Between two steps, and only there, `ctrl_c` may end it: the parameters are whole, and there is
    something to draw.
    """
    run = Run()
    device = _choose_device(settings.device)
    params = xstack.device_put(initial_params(data, settings), device)
    rate = np.float32(settings.learning_rate)
    first_x, first_y = next(batches(data, settings))
    update = xstack.jit(classifier.update, donate_argnums=0)
    start = time.perf_counter()
    lowered = update.lower(params, first_x, first_y, rate)
    run.seconds_by_phase["tracing"] = time.perf_counter() - start
    start = time.perf_counter()
    compiled = lowered.compile()
    run.seconds_by_phase["compilation"] = time.perf_counter() - start
    start = time.perf_counter()
    for step, (xs, ys) in enumerate(batches(data, settings), 1):
        params, value = compiled(params, xs, ys, rate)
        run.losses.append(value)
        is_last = ctrl_c.pressed or step == settings.steps
        if is_last or step % REPORTED == 0:
            look(run, step, params, data, report)
        if is_last:
            break
    run.seconds_by_phase["training"] = time.perf_counter() - start
    return run


def _choose_device(platform: str) -> Any:
    try:
        here = xstack.process_index()
        return next(d for d in xstack.devices(platform) if d.process_index == here)
    except (ValueError, RuntimeError) as error:
        reason = " ".join(line.strip() for line in str(error).splitlines()[:2])
        raise DemoError(f"--device {platform}: {reason}") from error


def train_data_parallel(data: Dataset, settings: Settings, report: Progress, ctrl_c: CtrlC) -> Run:
    """Train on several devices: each takes a part of every batch, gradients are averaged."""
    run = Run()
    n = settings.replicas
    replicated = xstack.tree.map(
        lambda p: np.broadcast_to(np.asarray(p), (n, *p.shape)), initial_params(data, settings)
    )
    update = xstack.pmap(
        classifier.update_replicas, axis_name="replicas", in_axes=(0, 0, 0, None), donate_argnums=0
    )
    rate = np.float32(settings.learning_rate)
    start = time.perf_counter()
    params = replicated
    for step, (xs, ys) in enumerate(batches(data, settings), 1):
        images, labels = [a.reshape(n, len(a) // n, *a.shape[1:]) for a in (xs, ys)]
        params, value = update(params, images, labels, rate)
        run.losses.append(value)
        is_last = ctrl_c.pressed or step == settings.steps
        if is_last or step % REPORTED == 0:
            first = xstack.tree.map(lambda p: np.asarray(p)[0], params)
            look(run, step, first, data, report)
        if is_last:
            break
    run.seconds_by_phase["training"] = time.perf_counter() - start
    return run


def look(run: Run, step: int, params: Any, data: Dataset, report: Progress) -> None:
    """Note how good the parameters are after a step, and tell the user.

    Args:
      run: its losses become numbers; of several devices, that of the first.
      step: how many there have been.
      params: whole, on one device or the host.
      data: what the accuracy is measured on.
      report: tells the user.
    """
    run.losses = [float(np.asarray(value).reshape(-1)[0]) for value in run.losses]
    run.params = params
    run.accuracies.append((step, accuracy(params, data)))
    report(step, run.losses[-1], run.accuracies[-1][1])


# ----------------------------------------------------------------------------------------- stopping
# Ctrl-C in a training loop that donates its parameters.
#
# A `KeyboardInterrupt` may come between the start of an update, which takes the memory of the old
# parameters, and the assignment of the new ones: then neither is left. So Ctrl-C is a question
# here, which the loop answers when a step is complete and the parameters are whole.


class CtrlC:
    """Notes Ctrl-C instead of interrupting, for the time of a block; a second one interrupts.

    Attributes:
      pressed: whether it was pressed.

    Example:
      >>> with CtrlC() as ctrl_c:
      ...     for step in range(3):
      ...         if ctrl_c.pressed:
      ...             break
      >>> ctrl_c.pressed
      False
    """

    def __init__(self) -> None:
        self.pressed = False
        self._previous: Any = None

    def __enter__(self) -> CtrlC:
        if threading.current_thread() is threading.main_thread():  # signals come to no other
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
