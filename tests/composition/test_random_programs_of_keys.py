"""Random programs with keys give what the same programs with the words of the keys give.

An array of keys is converted to the array of its words when a program is evaluated or compiled
(`xprim.extended`): in carries, branches, batches and residuals, at any depth. `FUZZ_PROGRAMS` says
how many programs are tried (`nox -s fuzz`); an ordinary run tries the same few each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xstack
from tests.composition.programs_of_keys import Raw, Typed, program
from tests.nets.cells import seeds

_PARTS = 4


def _differ(found: Any, expected: Any) -> str:
    for kind, xs, ys in zip(("keys", "ints", "floats"), found, expected, strict=True):
        assert len(xs) == len(ys)
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            x, y = np.asarray(x), np.asarray(y)
            if x.shape != y.shape or x.dtype != y.dtype:
                return f"{kind} {i}: {x.dtype}{x.shape} for {y.dtype}{y.shape}"
            # Numbers of programs that XLA fuses otherwise: some 1e-7 a step, for tens of steps.
            same = np.allclose(x, y, 1e-4, 1e-5) if kind == "floats" else (x == y).all()
            if not same:
                return f"{kind} {i}: {x} for {y}"
    return ""


def _check(seed: int) -> None:
    impl = "rbg" if seed % 8 == 7 else "threefry2x32"
    typed, raw = [program(form(xstack, impl), seed) for form in (Typed, Raw)]
    expected = xstack.jit(raw)(3, 5)
    found = xstack.jit(typed)(3, 5)
    assert not (told := _differ(found, expected)), f"compiled, {told}"
    if seed % 4 == 0:
        assert not (told := _differ(typed(3, 5), expected)), f"evaluated, {told}"


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(_PARTS))
def test_a_program_of_keys_gives_what_it_gives_of_their_words(part: int) -> None:
    findings = []
    for seed in seeds(range(14, 18), one_of=40, part=part, parts=_PARTS):
        try:
            _check(seed)
        except Exception as error:
            error.add_note(f"the program is that of the seed {seed}")
            findings.append(error)
            if len(findings) == 5:
                break
    if findings:
        raise ExceptionGroup(f"{len(findings)} findings", findings)


def test_an_eager_call_that_changes_no_key_may_be_repeated():
    for _ in range(3):  # the later ones find what the first one kept
        assert xstack.numpy.transpose(xstack.random.key(0), ()).shape == ()
