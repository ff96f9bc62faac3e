"""The differences on the page "coming from JAX", each seen in both libraries.

A row of the page's table has its programs in `differing_programs.SEEN`, or in `HELD_BY` the tests
that hold it, where the oracle never ends or where it takes processes and files to see it. A row
without either fails, and so do a program and a test that belong to no row of the page any more.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstack
import xstack.numpy
from tests.nets.differing_programs import SEEN, Program

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explain/coming_from_jax.md"

HELD_BY = {
    "products of float32 on a GPU": (
        "tests/nets/test_primitives_for_gpus.py",
        "test_products_of_32_bits_are_full_on_gpus_where_nobody_asked_for_less",
    ),
    "`cond`, `switch` or `while_loop` in `shard_map`": ("tests/composition/test_varying_axes.py",
                                 "test_a_collective_that_some_members_do_not_reach_is_refused"),
    "small operations outside": ("packages/xjit/tests/test_eager_backend.py",
                                 "test_small_operations_compile_nothing"),
    "loops outside of `jit`": ("packages/xjit/tests/test_eager_loops.py",
                               "test_a_long_loop_is_compiled_once_and_equals_numpy"),
    "sums of products over several dimensions": (
        "tests/composition/test_random_programs_over_meshes.py",
        "test_the_product_over_three_dimensions_that_xla_splits_wrongly_is_still_known"),
    "`dynamic_update_slice` and gradients": (
        "tests/composition/test_random_programs_over_meshes.py",
        "test_windows_beyond_a_sharded_dimension_are_clamped_as_on_one_device"),
    "`svd`, `pinv`": ("tests/composition/test_jit_of_everything.py",
                      "test_a_singular_value_decomposition_of_infinities_ends"),
    "`eigh`, `hessenberg`": ("tests/composition/test_jit_of_everything.py",
                             "test_similarities_of_matrices_that_are_not_finite_are_nan"),
    "densities of complex": ("tests/composition/test_scipy_distributions.py",
                             "test_complex_numbers_have_no_distribution"),
    "`gcd`, `lcm`": ("packages/xjit/tests/test_integer_algorithms.py",
                     "test_gcd_ends_at_the_ends_of_every_dtype"),
    "arguments that JAX has as experiments": ("tests/test_signatures.py",
                                              "test_each_deliberate_difference_is_one"),
    "`memoryview(x)` with Python 3.11": ("packages/xprim/tests/test_host_memory.py",
                                         "test_an_array_is_a_read_only_buffer"),
    "a compiled function called in a callback": (
        "packages/xjit/tests/test_callbacks.py",
        "test_programs_in_callbacks_in_programs_end_in_any_number_of_threads"),
    "`print(..., ordered=True)` and ordered": (
        "tests/composition/test_callbacks.py",
        "test_each_device_has_its_ordered_effects_in_the_order_of_the_program"),
    "the compilation cache on disk": ("packages/xjit/tests/test_cache_disk.py",
                                      "test_the_directory_is_that_of_the_user_unless_one_is_named"),
    "a random key that is used twice": (
        "tests/test_key_reuse.py",
        "test_by_default_a_second_use_is_a_warning_once_for_its_line"),
    "a derivative by a parameter of `poisson`": (
        "tests/test_discrete_derivatives.py",
        "test_each_discrete_sampler_names_its_parameter"),
    "the third trace of a function": (
        "packages/xjit/tests/test_retraces.py",
        "test_from_the_third_trace_on_each_is_told_with_what_differs"),
    "a call of a program that calls Python": (
        "packages/xjit/tests/test_callbacks.py",
        "test_prints_of_loops_are_all_there_when_the_call_returns"),
    "bytes of an exported program": ("packages/xjit/tests/test_export.py",
                                     "test_foreign_and_newer_bytes_are_refused_with_a_sentence"),
    "tracebacks": ("tests/errors/test_tracebacks.py",
                   "test_a_note_says_how_to_see_the_frames_that_were_removed"),
}  # fmt: skip
NAMED = [name for name, *_ in SEEN] + [*HELD_BY]


def rows() -> list[str]:
    """Return the first cells of the tables of differences."""
    text = PAGE.read_text(encoding="utf-8").partition("## What differs")[2].partition("\n## ")[0]
    cells = [line.split(" | ")[0][2:] for line in text.splitlines() if line.startswith("| ")]
    return [cell for cell in cells if cell != "case"]


def plain(x: Any) -> Any:
    """Return arrays and what holds them as Python values, with five digits of a fraction."""
    if isinstance(x, tuple | list):
        return type(x)([plain(v) for v in x])
    if hasattr(x, "tolist"):
        return plain(np.asarray(x).tolist())
    return round(x, 5) + 0.0 if isinstance(x, float) else x


def seen(program: Program, library: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(plain(program(library, library.numpy)))
        except Exception as error:
            return repr(type(error).__name__)


def test_each_row_of_the_page_is_seen_and_nothing_else():
    found = rows()
    assert len(found) >= 60
    assert [row for row in found if not any(row.startswith(name) for name in NAMED)] == []
    assert [name for name in NAMED if not any(row.startswith(name) for row in found)] == []


@pytest.mark.parametrize("name", HELD_BY)
def test_the_tests_that_hold_a_row_are_there(name):
    path, test = HELD_BY[name]
    assert f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "program", "theirs", "ours"), SEEN)
def test_a_program_gives_here_what_the_page_says(name, program, theirs, ours):
    assert seen(program, xstack) == repr(ours)


@pytest.mark.parametrize(("name", "program", "theirs", "ours"), SEEN)
def test_the_oracle_gives_what_the_page_says_of_it(name, program, theirs, ours):
    jax = pytest.importorskip("jax", "0.12")
    pytest.importorskip("jax.experimental.sparse")
    assert seen(program, jax) == repr(theirs)
