"""What `explain` says of a function, and `compile_all`."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from xjit import jit
from xjit.debug.explanations import explain
from xjit.stored_programs import compile_all
from xnp import lax
from xprim import as_array

TABLE = as_array(np.arange(1000, dtype=np.float32))


def looped(x):
    for _ in range(5):
        x = x * 2 + TABLE
    return lax.fori_loop(0, 3, lambda i, c: c - 1, x)


@pytest.fixture(scope="module")
def found():
    return explain(looped, np.ones(1000, np.float32))


def test_equations_are_counted_by_the_line_that_makes_them(found):
    (top, count), *_ = found.by_line
    assert "test_explanations.py:" in top and "in looped" in top and count == 10
    assert sum(count for _, count in found.by_line) == found.equations > 10


def test_a_block_that_a_scan_would_hold_once_is_found(found):
    (block,) = found.blocks
    assert (block.equations, block.repeats) == (2, 5) and "in looped" in block.where


def test_captured_arrays_have_their_name_size_and_line(found):
    (constant,) = found.constants
    assert (constant.nbytes, constant.type) == (4000, "float32[1000]")
    assert constant.variable == "TABLE" and "in looped" in constant.where


def test_steps_and_memory_are_measured(found):
    assert list(found.seconds) == ["trace", "lower", "compile"]
    assert all(s > 0 for s in found.seconds.values())
    assert found.memory["output_size_in_bytes"] == 4000


def test_the_text_and_the_picture_say_the_same(found, tmp_path):
    text = str(found)
    assert "captured: TABLE float32[1000], 3.9 KiB" in text
    assert "repeated: 2 equations 5 times" in text and "a scan would hold them once" in text
    found.save(tmp_path / "f.svg")
    tree = ET.parse(tmp_path / "f.svg").getroot()
    labels = [e.text for e in tree if e.tag.endswith("text")]
    assert labels[0] == f"looped: {found.equations} equations"
    assert any("in looped: 10" in label for label in labels)
    found.save(tmp_path / "f.txt")
    assert (tmp_path / "f.txt").read_text() == text + "\n"


@pytest.mark.of_the_cpu
def test_the_share_of_each_line_is_that_of_the_instructions_that_were_compiled():
    def f(x):
        y = lax.erf_inv(x)  # one equation, and some forty instructions
        for _ in range(5):
            y = lax.scan(lambda c, _: (c * 2, None), y, None, 3)[0]
        return -y

    found = explain(f, np.ones(3, np.float32))
    shares = {where.partition(" in ")[0]: share for where, share in found.compiled_by_line}
    first = f.__code__.co_firstlineno
    by_equations = [where for where, _ in found.by_line if f":{first + 1} in f" in where]
    assert len(by_equations) == 1 and shares[f"test_explanations.py:{first + 1}"] > 0.2
    assert sum(shares.values()) == pytest.approx(1)
    assert "compiled code:" in str(found) and not found.recomputed


def test_a_function_that_many_lines_call_is_shared_among_them():
    inner = jit(lambda x: lax.erf_inv(x * 2 + 1) - x / 3)

    def f(x):
        y = inner(x[0])
        return y + inner(x[1])

    found = explain(f, np.ones(2, np.float32))
    assert found.compiled_by_line and not found.recomputed


def test_a_line_that_is_computed_again_for_each_use_is_warned_of():
    def f(x):
        for _ in range(7):
            y = x * 1.5 + lax.rev(x, (0,))
            x = y + lax.concatenate([y[1:], y[:1]], 0)
        return x

    found = explain(f, np.ones(8, np.float32))
    (line, times), *_ = found.recomputed
    assert "in f" in line and times >= 3
    assert f"warning: XLA computes {line} again for each use, {times:.1f} times" in str(found)


def test_a_jitted_function_without_equations_is_explained_too():
    found = explain(jit(lambda x: x), 1.0)
    assert found.equations == 0 and not found.blocks and not found.constants
    with pytest.raises(TypeError, match="explain"):
        explain(3)


def test_programs_are_compiled_in_threads_in_the_order_given():
    lowered = [jit(lambda x, k=k: x * k + 1).lower(np.float32(1)) for k in range(4)]
    programs = compile_all(lowered)
    assert [float(p(np.float32(2))) for p in programs] == [1, 3, 5, 7]
    assert compile_all([]) == []


def test_what_cannot_be_compiled_is_raised():
    good = jit(lambda x: x).lower(1.0)
    bad = jit(lambda x: x, compiler_options={"no_such_option": True}).lower(1.0)
    with pytest.raises(RuntimeError, match="no_such_option"):
        compile_all([good, bad])
    with pytest.raises(TypeError, match=r"what jit\(f\).lower"):
        compile_all([good, 3])
