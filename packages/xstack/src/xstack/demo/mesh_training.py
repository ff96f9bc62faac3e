"""The training over a mesh of data x model, in one process or in several that the launcher started.

The batch is cut along `data`, the hidden layer along `model`; the program is that of one device,
and the compiler puts in what the devices exchange.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import xstack
from xjit import set_num_cpu_devices
from xpar import multihost_utils
from xstack.demo import classifier
from xstack.demo.data import Dataset
from xstack.demo.settings import DemoError, Settings
from xstack.demo.training import REPORTED, CtrlC, Progress, Run, batches, initial_params, look

__all__ = ()


def join(settings: Settings) -> None:
    """Have this process show its part of the devices, and find the others if there are any."""
    count = int(os.environ.get("XSTACK_NUM_PROCESSES", "1"))
    if count == 1:
        set_num_cpu_devices(settings.replicas)
        return
    if settings.mesh is None or settings.replicas % count:
        raise DemoError(f"{count} processes need --mesh DATAxMODEL whose devices divide among them")
    set_num_cpu_devices(settings.replicas // count)
    xstack.distributed.initialize()


def train_over_mesh(data: Dataset, settings: Settings, report: Progress, ctrl_c: CtrlC) -> Run:
    """Train with the batch cut along one axis of a mesh and the hidden layer along the other."""
    run = Run()
    assert settings.mesh is not None
    mesh = xstack.make_mesh(settings.mesh, ("data", "model"), xstack.sharding.AxisType.Auto)

    def lying(*axes: str | None) -> Any:
        return xstack.NamedSharding(mesh, xstack.P(*axes))

    cut = [{"w": lying(None, "model"), "b": lying("model")}, {"w": lying("model"), "b": lying()}]
    update = xstack.jit(
        classifier.update, in_shardings=(cut, lying("data"), lying("data"), lying()),
        out_shardings=(cut, lying()), donate_argnums=0,
    )  # fmt: skip
    gathered = xstack.jit(lambda params: params, out_shardings=lying())
    rate = np.float32(settings.learning_rate)
    start = time.perf_counter()
    params = xstack.device_put(initial_params(data, settings), cut)
    for step, (xs, ys) in enumerate(batches(data, settings), 1):
        params, value = update(params, xs, ys, rate)
        run.losses.append(value)
        is_looked_at = step % REPORTED == 0 or step == settings.steps
        is_last = step == settings.steps or _are_stopped(ctrl_c, is_looked_at)
        if is_last or is_looked_at:
            whole = xstack.tree.map(np.asarray, gathered(params))
            look(run, step, whole, data, report)
        if is_last:
            break
    run.seconds_by_phase["training"] = time.perf_counter() - start
    return run


def _are_stopped(ctrl_c: CtrlC, is_time_to_ask: bool) -> bool:
    """Return whether Ctrl-C was pressed; several processes agree on it, at the same step."""
    if xstack.process_count() == 1:
        return ctrl_c.pressed
    if is_time_to_ask and multihost_utils.process_allgather(np.array(ctrl_c.pressed)).any():
        ctrl_c.pressed = True
    return is_time_to_ask and ctrl_c.pressed
