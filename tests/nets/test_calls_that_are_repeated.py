"""The first call of a function, which evaluates it, and the next ones, by a kernel: the same.

A kernel stands for all calls with operands of its types. A function that asks for the *value* of a
Python number, or whether it is one, may answer otherwise in its kernel: with another dtype, another
weak type, other values. A cell is a function, one of its forms, and a kind of operands.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xtree
from tests.nets.cells import IN_FULL, drawn
from tests.nets.public_functions import FORMS, forms_of, functions
from xprim import Array, from_numpy, scalar_array

CALLS = 3
_PARTS = 8
# Of each part of the functions an ordinary run tries so many, and so many cells of these; all are
# some 41,000.
_FUNCTIONS_AT_MOST = 6
_AT_MOST = 100


def _arrays(*values: Any, dtype: str) -> tuple[Any, ...]:
    return tuple([from_numpy(np.array(v).astype(dtype)) for v in values])


KINDS: dict[str, tuple[Any, ...]] = {
    "bool": (True, False, True),
    "int": (1, 0, 2),
    "float": (0.0, 1.5, 2.0),
    "complex": (1 + 0j, 2j, 1j),
    "weak arrays": tuple([scalar_array(v) for v in (0.5, 1.0, 0.0)]),
    "bool array": _arrays(True, False, True, dtype="bool"),
    "int8 vectors": _arrays([1, 0, 2], [0, 1, 2], 1, dtype="int8"),
    "bfloat16 vectors": _arrays([1, 0, 2], [0, 1, 2], 1, dtype="bfloat16"),
    "float32 matrices": _arrays(np.eye(3), np.eye(3), np.eye(3), dtype="float32"),
    "array and number": (*_arrays([0.5, 0.0], dtype="float16"), 1, 0.0),
    "number and array": (1, *_arrays([0, 1], [1, 1], dtype="int32")),
    "number and small integers": (2, *_arrays([0, 1], [1, 1], dtype="int8")),
    "bool array and numbers": (*_arrays([True, False], dtype="bool"), 0, 1.0),
}


def _part(part: int) -> list[tuple[str, str, str]]:
    """Return cells of a part of the functions: which forms one takes is found by trying."""
    paths = drawn(sorted(functions())[part::_PARTS], _FUNCTIONS_AT_MOST)
    cells = [(path, form, kind) for path in paths for form in forms_of(path) for kind in KINDS]
    return drawn(cells, _AT_MOST)


def _called(path: str, form: str, kind: str) -> Iterator[Any]:
    """Yield the arrays of each call, or what it refuses with."""
    for _ in range(CALLS):
        try:
            args, kwargs = FORMS[form][1](KINDS[kind], (1, 2))
            found = functions()[path](*args, **kwargs)
        except Exception as error:
            yield type(error)
            continue
        yield [leaf for leaf in xtree.leaves(found) if isinstance(leaf, Array)]


def _difference(first: Any, later: Any) -> str:
    """Say what differs between the arrays of two calls, or nothing."""
    if isinstance(first, type) or isinstance(later, type):
        return "" if first == later else f"{first}, then {later}"
    types = [[x.aval for x in some] for some in (first, later)]
    if types[0] != types[1]:
        return f"the types {types[0]}, then {types[1]}"
    for x, y in zip(first, later, strict=True):
        a, b = np.asarray(x), np.asarray(y)
        # a kernel starts the same NumPy functions in the same order
        if a.tobytes() != b.tobytes() and not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            return f"{x}, then {y}"
    return ""


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(_PARTS))
def test_the_next_calls_give_what_the_first_one_gave(part):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in _part(part):
            first, *later = _called(*cell)
            differences = filter(None, [_difference(first, results) for results in later])
            wrong += [f"{cell}: {difference}" for difference in differences]
    assert not wrong, "\n".join(wrong)


def test_the_size_of_the_net():
    print(f"calls of {len(functions())} functions with {len(KINDS)} kinds of operands")
    assert len(functions()) >= 740
    assert not IN_FULL or sum(len(_part(part)) for part in range(_PARTS)) >= 40_000
