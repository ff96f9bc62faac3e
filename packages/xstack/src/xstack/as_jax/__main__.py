"""The command `python -m xstack.as_jax`: run a program in which `import jax` finds `xstack`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from xstack import as_jax
from xtree.errors import message

_USAGE = """\
usage: python -m xstack.as_jax SCRIPT [ARGUMENTS]
       python -m xstack.as_jax -m MODULE [ARGUMENTS]

Run a program that is written for JAX on xstack, with all processes of Python that it starts."""


def main(arguments: Sequence[str]) -> int:
    """Run a script or a module (`-m`) as Python does; return 2 where none is named.

    Args:
      arguments: the program and its own arguments, as after `python`.
    """
    option, *rest = arguments or ("--help",)
    if option in ("-h", "--help"):
        print(_USAGE)
        return 0 if arguments else 2
    if option == "-m" and not rest:
        print(message("python -m xstack.as_jax", "-m lacks a module."), file=sys.stderr)
        return 2
    if option.startswith("-") and option != "-m":
        print(message(
            "python -m xstack.as_jax", f"unknown option {option}.",
            expected="a script, or -m and a module",
            hint=f"XSTACK_AS_JAX=1 python {option} ... runs Python with any option of its own",
        ), file=sys.stderr)  # fmt: skip
        return 2
    os.environ["XSTACK_AS_JAX"] = "1"
    as_jax.install()
    if option == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [option, *rest]
        sys.path[0] = os.path.dirname(os.path.abspath(option))
        runpy.run_path(option, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
