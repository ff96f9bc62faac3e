"""Follow a call through the packages, as Markdown: `python tools/walk.py [sin|grad|vmap|jit|pmap]`.

Each program runs in a process of its own under `sys.setprofile`, which sees every Python function
that is entered. Two calls are shown: the first, which makes the kernel (the functions by module, in
the order in which they are first entered), and the thirtieth, which finds it (every call, indented
by depth). So the page `docs/design/walk.md` says what happens, not what somebody remembers.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

PACKAGES = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")
KNOWN_AT = 30

_USER = "f = lambda v: xnp.sum(xnp.sin(v) * v)\n"
SETUP_AND_CALL = {
    "sin": ("import xnp\nx = xnp.arange(8.0)", "xnp.sin(x)"),
    "grad": (f"import xnp\nfrom xad import grad\n{_USER}g = grad(f)\nx = xnp.arange(8.0)", "g(x)"),
    "vmap": (
        f"import xnp\nfrom xbatch import vmap\n{_USER}g = vmap(f)\nx = xnp.ones((4, 8))",
        "g(x)",
    ),
    "jit": (f"import xnp\nfrom xjit import jit\n{_USER}g = jit(f)\nx = xnp.arange(8.0)", "g(x)"),
    "pmap": (
        f"import xnp\nfrom xpar import pmap\n{_USER}g = pmap(f)\nx = xnp.ones((8, 8))",
        "g(x)",
    ),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function of ours: how deep, where it stands, and its docstring's first line."""

    depth: int
    module: str
    name: str
    summary: str


def main() -> int:
    """Print the walks that are requested, or all of them."""
    if sys.argv[1:2] == ["--record"]:
        print(json.dumps(record(sys.argv[2])))
        return 0
    programs = sys.argv[1:] or list(SETUP_AND_CALL)
    print("\n\n".join(walk_as_markdown(program) for program in programs))
    return 0


def walk(program: str) -> tuple[list[Call], list[Call]]:
    """Return the calls of the first and of the thirtieth run of a program, in a fresh process."""
    with tempfile.TemporaryDirectory() as cache:
        settings = {
            "XSTACK_NUM_CPU_DEVICES": "8",
            "XSTACK_PLATFORMS": "cpu",
            "XDG_CACHE_HOME": cache,
        }
        done = subprocess.run(
            [sys.executable, __file__, "--record", program],
            capture_output=True, text=True, check=False, env=os.environ | settings,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the walk of {program} failed:\n{done.stderr}")
    first, known = json.loads(done.stdout)
    return [Call(*c) for c in first], [Call(*c) for c in known]


def record(program: str) -> list[list[tuple[int, str, str, str]]]:
    """Run a program here, and return the calls of its first and of its thirtieth run."""
    setup, call = SETUP_AND_CALL[program]
    space: dict[str, Any] = {}
    exec(compile(setup, "program.py", "exec"), space)
    code = compile(call, "program.py", "eval")
    first = followed(lambda: eval(code, space))
    for _ in range(KNOWN_AT - 2):
        eval(code, space)
    return [first, followed(lambda: eval(code, space))]


def followed(run: Callable[[], object]) -> list[tuple[int, str, str, str]]:
    """Return the calls of our functions that a function makes."""
    found: list[tuple[int, str, str, str]] = []
    entered: list[bool] = []  # for each open frame, whether it is ours

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            module = _module_of(frame)
            ours = module.partition(".")[0] in PACKAGES
            if ours:
                code = frame.f_code
                found.append((sum(entered), module, code.co_qualname, _summary(code)))
            entered.append(ours)
        elif event == "return" and entered:
            entered.pop()

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def _module_of(frame: FrameType) -> str:
    """Return the dotted name of a frame's module; of code made at run time, of its writer's."""
    home, is_written, _ = frame.f_code.co_filename.partition("#")
    if is_written:  # as `xtree.generated_code` names its files
        for module in list(sys.modules.values()):
            if getattr(module, "__file__", None) == home:
                return module.__name__
    return str(frame.f_globals.get("__name__") or "")


def walk_as_markdown(program: str) -> str:
    """Return the section of one program."""
    setup, call = SETUP_AND_CALL[program]
    first, known = walk(program)
    parts = [
        f"## `{program}`",
        f"```text\n{setup}\n{call}\n```",
        f"The thirtieth call enters {_functions(len(known))} of ours:",
        "```text\n" + "\n".join(map(_line, known)) + "\n```",
        f"The first one made what it finds, in {len(first)} calls of these functions:",
        "\n".join(["| module | functions, in the order in which they are entered |", "|---|---|"]
                  + _rows(first)),
    ]  # fmt: skip
    return "\n\n".join(parts)


def _functions(count: int) -> str:
    return f"{count} Python function{'s' if count != 1 else ''}"


def _line(call: Call) -> str:
    name = f"{'  ' * call.depth}{call.module}.{call.name}"
    return f"{name:<64} {call.summary}".rstrip()


def _rows(calls: list[Call]) -> list[str]:
    names: dict[str, dict[str, None]] = {}
    for call in calls:
        if call.name.endswith(">"):  # a lambda or a comprehension of a function that is shown
            continue
        names.setdefault(call.module, {})[call.name.replace("<locals>.", "")] = None
    return [f"| `{m}` | {', '.join(f'`{n}`' for n in found)} |" for m, found in names.items()]


def _summary(code: CodeType) -> str:
    """Return the first line of a function's docstring, or nothing."""
    first = code.co_consts[0] if code.co_consts else None
    has_none = sys.version_info >= (3, 13) and not code.co_flags & 0x4000000
    return first.partition("\n")[0] if isinstance(first, str) and not has_none else ""


if __name__ == "__main__":
    sys.exit(main())
