"""The walks of the docs: what a call passes through, followed by the tool that makes the page."""

from __future__ import annotations

import functools
import importlib
import types
from pathlib import Path

import pytest

from tools import walk

ROOT = Path(__file__).resolve().parents[1]
walked = functools.cache(walk.walk)

# Where the function stands that a person calls, or what is made for it, and what the first call
# cannot do without.
LANDMARKS = {
    "sin": ("xnp.numpy.dispatch", "xprim.staging.trace_to_jaxpr"),
    "grad": ("xad._vjp", "xad.transpose.backward_pass"),
    "vmap": ("xbatch._vmap", "xbatch.batching.batch_flat"),
    "jit": ("xjit.dispatch.fast_path", "xjit.lowering.modules.lower"),
    "pmap": ("xjit.dispatch.fast_path", "xjit.lowering.modules.lower"),
}


def test_the_page_shows_every_walk():
    assert "<!-- markdown-of: tools/walk.py -->" in (ROOT / "docs/design/walk.md").read_text()
    assert list(walk.SETUP_AND_CALL) == list(LANDMARKS)


@pytest.mark.parametrize("program", LANDMARKS)
def test_a_walk_begins_where_the_user_calls_and_passes_the_landmarks(program):
    first, known = walked(program)
    entry, landmark = LANDMARKS[program]
    assert known[0].module.startswith(entry) and known[0].depth == 0
    assert first[0].depth == 0 and len(known) < len(first)
    assert landmark in {f"{c.module}.{c.name}" for c in first}
    assert landmark not in {f"{c.module}.{c.name}" for c in known} or program in ("grad", "vmap")


@pytest.mark.parametrize("program", LANDMARKS)
def test_what_a_walk_names_is_there(program):
    for call in {(c.module, c.name) for calls in walked(program) for c in calls}:
        module, name = call
        holder = importlib.import_module(module)
        for part in name.partition(".<locals>")[0].split("."):
            if part.startswith("<") or part == "__create_fn__" or not hasattr(holder, part):
                break
            holder = getattr(holder, part)
        else:
            assert callable(holder) or isinstance(holder, property | types.ModuleType)


def test_depths_nest_and_counts_are_those_of_the_profiler():
    def inner():
        return 1

    inner.__globals__  # noqa: B018 - a function of this module, which is none of ours
    assert walk.followed(inner) == []
    import xnp

    x = xnp.arange(8.0)
    for _ in range(40):
        xnp.sin(x)
    found = walk.followed(lambda: xnp.sin(x))
    assert [c[0] for c in found] == [0, 1]
    assert found[1][1:3] == ("xprim.array", "ConcreteArray.__init__")


def test_the_markdown_names_each_function_once_by_module():
    text = walk.walk_as_markdown("sin")
    assert "The thirtieth call enters" in text
    (row,) = [line for line in text.split("\n") if line.startswith("| `xprim.staging` |")]
    assert row.count("`trace_to_jaxpr`") == 1
    assert "<lambda>` |" not in text and "<genexpr>" not in text
