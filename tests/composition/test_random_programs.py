"""Random programs: evaluation, compilation, batching and differentiation agree on all of them.

Operations of `lax` within bounds that allow tight comparisons; the public functions, special values
and all dtypes are drawn by `tests/nets`. `FUZZ_PROGRAMS` says how many programs the test marked
`fuzz` draws, an eighth of it (`nox -s fuzz` sets 10,000).
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.composition.program_checks import check, check_values
from tests.composition.program_data import Case
from tests.composition.program_strategy import cases
from tests.nets.cells import IN_FULL, PROGRAMS

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much,
          HealthCheck.large_base_example]  # fmt: skip
_PARTS = 8
_ORDINARY_PARTS = 4
# The same programs at every run: a test that fails now and then blames the wrong change.
_ORDINARY = settings(
    max_examples=20 // _ORDINARY_PARTS, derandomize=True, database=None,
    suppress_health_check=_QUIET, phases=[Phase.generate, Phase.shrink],
)  # fmt: skip


@pytest.mark.parametrize("part", range(_ORDINARY_PARTS))  # each draws others
@_ORDINARY
@given(case=cases())
def test_every_way_to_run_a_random_program_gives_the_same(part: int, case: Case):
    check(case, compiled_batch=case.seed % 2 == 0)


@settings(_ORDINARY, max_examples=8)
@given(cases(max_steps=8))
def test_each_equation_of_a_random_program_is_the_same_compiled_alone(case: Case):
    check_values(case, each_equation=True)


@pytest.mark.fuzz
@pytest.mark.skipif(not IN_FULL, reason="FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("part", range(_PARTS))  # so that several processes share the work
@settings(
    max_examples=max(PROGRAMS // 8 // _PARTS, 1),
    suppress_health_check=_QUIET,
    phases=[Phase.generate, Phase.shrink],
    database=None,
)
@given(case=cases())
def test_many_random_programs(part: int, case: Case):
    check(case, each_equation=case.seed % 32 == 0, compiled_batch=case.seed % 2 == 0)
