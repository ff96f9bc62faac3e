"""Large operands in every layout: what is quicker gives what NumPy gives."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import xnp.numpy as xnp
from xnp.primitives.table import for_memory_order
from xprim import shaped_array

WIDE = np.arange(600 * 1100, dtype=np.float32).reshape(600, 1100)
TALL = np.arange(1100 * 600, 0, -1, dtype=np.float32).reshape(1100, 600)
STACK = np.arange(3 * 600 * 700, dtype=np.int32).reshape(3, 600, 700)
NARROW = np.arange(4800 * 10, dtype=np.float32).reshape(4800, 10)
ROW = np.linspace(1, 2, 10, dtype=np.float32)

ACROSS: dict[str, tuple[Any, Any]] = {
    "one across": (WIDE, TALL.T),
    "the other across": (TALL.T, WIDE),
    "a stack across": (STACK, STACK.transpose(0, 2, 1).copy().transpose(0, 2, 1)),
    "reversed columns": (WIDE, TALL.T[:, ::-1]),
    "every second row": (WIDE[::2], TALL.T[::2]),
}
REPEATED: dict[str, tuple[Any, Any]] = {
    "a short row": (NARROW, ROW),
    "a short row first": (ROW, NARROW),
    "a row of rank 2": (NARROW, ROW[None]),
    "a row of a stack": (NARROW.reshape(16, 300, 10), ROW),
    "a row that is a view": (NARROW, np.repeat(ROW, 3)[::3]),
}
OTHERS: dict[str, tuple[Any, Any]] = {
    "both across": (TALL.T, TALL.T),
    "none across": (WIDE, WIDE),
    "across, and a number": (TALL.T, np.float32(2)),
    "across, and a row": (TALL.T, WIDE[:1]),
    "across, and a column": (TALL.T, WIDE[:, :1]),
    "across, and a vector": (TALL.T, WIDE[0]),
    "repeated by strides": (WIDE, np.broadcast_to(WIDE[:, :1], WIDE.shape)),
    "few elements": (NARROW[:1000], ROW),
    "a prime number of rows": (NARROW[:4799], ROW),
    "a column": (NARROW, NARROW[:, :1]),
    "a row, the whole not in order": (np.asfortranarray(NARROW), ROW),
    "both wide and short": (NARROW, NARROW),
    "an outer product": (NARROW[:, :1], ROW),
}


def _arranged(function: Any, a: Any, b: Any) -> Any:
    out = np.less(a, b) if function is np.less else np.subtract(a, b)
    return for_memory_order(function, a, b, shaped_array(out.shape, out.dtype))


@pytest.mark.parametrize("function", [np.multiply, np.subtract, np.less])
@pytest.mark.parametrize("name", ACROSS | REPEATED | OTHERS)
def test_every_layout_gives_what_the_function_gives(name: str, function: Any) -> None:
    a, b = (ACROSS | REPEATED | OTHERS)[name]
    got, expected = _arranged(function, a, b)(a, b), function(a, b)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ACROSS | REPEATED | OTHERS)
def test_only_what_gains_is_rearranged(name: str) -> None:
    given: list[Any] = []

    def noted(a: Any, b: Any, **keywords: Any) -> Any:
        given.append((np.shape(a), np.shape(b)))
        return np.subtract(a, b, **keywords)

    a, b = (ACROSS | REPEATED | OTHERS)[name]
    _arranged(noted, a, b)(a, b)
    if name in ACROSS:
        assert len(given) == -(-a.shape[-1] // 512)
    elif name in REPEATED:
        assert len(given) == 1 and {shape[-1] for shape in given[0]} == {4000}
    else:
        assert given == [(np.shape(a), np.shape(b))]


def test_operators_of_arrays_use_them() -> None:
    x, y = xnp.asarray(WIDE[:, :600]), xnp.asarray(WIDE[:, 300:900])
    narrow = xnp.asarray(NARROW)
    for _ in range(2):  # the second time by a kernel
        np.testing.assert_array_equal(np.asarray(x * y.T), WIDE[:, :600] * WIDE[:, 300:900].T)
        np.testing.assert_array_equal(np.asarray(y > x.T), WIDE[:, 300:900] > WIDE[:, :600].T)
        np.testing.assert_array_equal(np.asarray(narrow - narrow[3]), NARROW - NARROW[3])
        np.testing.assert_array_equal(np.asarray(narrow[3] * narrow), NARROW[3] * NARROW)


FAULTS = """
import resource
import xnp.numpy as xnp
x = xnp.ones((10000, 10))
def norm(x):
    x = x - x.mean(0)
    return x / (x.std(0) + 1)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    norm(x)
before = faults()
for _ in range(100):
    norm(x)
print((faults() - before) / 100)
"""


def _faults(**variables: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True,
        env=os.environ | variables,
    )  # fmt: skip
    return float(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory")
def test_the_memory_of_results_is_used_again() -> None:
    assert _faults() < 20  # 300 and more where each result has its pages made anew


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory")
def test_an_option_leaves_freed_memory_to_the_system() -> None:
    assert _faults(XSTACK_KEEP_FREED_MEMORY="0") > 50


def test_importing_leaves_the_allocator_as_it_is() -> None:
    code = (
        "import numpy as np\nmade = []\nempty = np.empty\n"
        "np.empty = lambda *args, **more: made.append(args) or empty(*args, **more)\n"
        "import xnp, xnp.numpy\nassert not [a for a in made if a[0] == (1 << 25) - (1 << 13)]\n"
        "xnp.ones((200, 200)) + xnp.ones(200); xnp.ones((200, 200)) + xnp.ones(200)\n"
        "assert [a for a in made if a[0] == (1 << 25) - (1 << 13)]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
