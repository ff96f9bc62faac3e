"""Run a program in several processes that work together, and never leave one behind."""

import os
import signal
import socket
import subprocess
import sys
import textwrap

_SETTINGS = {
    "XSTACK_ENABLE_COMPILATION_CACHE": "0", "XSTACK_RETRACES": "allow",
    "XSTACK_NUM_CPU_DEVICES": "2", "XSTACK_PLATFORMS": "cpu",
}  # fmt: skip

BEGINNING = """
    import os, signal, sys, time
    from pathlib import Path
    import numpy as np
    import xjit, xnp, xpar
    from xpar import NamedSharding, P, distributed, multihost_utils
"""


def free_address():
    """Return an address of this machine whose port nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def run_processes(program, count, timeout=150, stopped=(), **environment):
    """Run a program in so many processes, each with its number in the environment.

    Args:
        program: what each runs.
        count: how many there are.
        timeout: how long each may take, in seconds; then it is killed.
        stopped: the numbers of those that will not end, and are killed when the others have.
        environment: variables for all.

    Returns:
        For each, its exit status (negative for a signal) and what it printed on both streams.
    """
    variables = {
        k: v for k, v in os.environ.items() if not k.startswith(("XSTACK_", "XLA_", "TF_"))
    }
    variables |= _SETTINGS | {
        "XSTACK_COORDINATOR_ADDRESS": free_address(), "XSTACK_NUM_PROCESSES": str(count),
    } | environment  # fmt: skip
    source = textwrap.dedent(BEGINNING) + textwrap.dedent(program)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", source], env=variables | {"XSTACK_PROCESS_ID": str(number)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for number in range(count)
    ]  # fmt: skip
    try:
        ended = {
            number: _ended(running[number], 0 if number in stopped else timeout)
            for number in sorted(range(count), key=lambda number: number in stopped)
        }
        return [ended[number] for number in range(count)]
    finally:
        for process in running:
            process.kill()
            process.wait()


def _ended(process, timeout):
    """Return status and output of a process; one that stopped itself is killed."""
    try:
        printed, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        if timeout:  # it hangs: its fault handler shows where
            process.send_signal(signal.SIGABRT)
        else:
            process.kill()
        printed, _ = process.communicate()
    lines = [line for line in printed.splitlines() if not line.startswith("[Gloo]")]
    return process.returncode, "\n".join(lines)
