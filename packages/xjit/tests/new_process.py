"""Run a program in a process of its own, without the settings of this one."""

import os
import subprocess
import sys
import textwrap

_SETTINGS = {"XSTACK_ENABLE_COMPILATION_CACHE": "0", "XSTACK_RETRACES": "allow"}


def run_in_new_process(program, seconds=120, **environment):
    """Run a Python program and return what it prints; fail where it fails."""
    variables = {
        k: v for k, v in os.environ.items() if not k.startswith(("XSTACK_", "XLA_", "TF_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=variables | _SETTINGS | environment,
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-3000:]}"
    assert done.stderr == ""
    return done.stdout.strip()
