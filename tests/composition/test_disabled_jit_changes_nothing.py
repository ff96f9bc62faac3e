"""Under `disable_jit` functions that change their argument in place change no array of the caller.

In a program `carry += 1` binds a name anew; an array of NumPy would be written.
"""

import numpy as np
import pytest

import xstack


def _grown(c):
    c += 1
    return c


def _scanned(c, x):
    c += x
    return c, None


CALLS = {
    "while_loop": lambda a: xstack.lax.while_loop(lambda c: c[0] < 3, _grown, a),
    "while_loop of a tree": lambda a: xstack.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, _grown(c[1])), (0, a))[1],
    "fori_loop": lambda a: xstack.lax.fori_loop(0, 3, lambda i, c: _grown(c), a),
    "scan": lambda a: xstack.lax.scan(_scanned, a, np.ones((3, 2), "float32"))[0],
    "cond": lambda a: xstack.lax.cond(True, _grown, lambda c: c, a),
    "switch": lambda a: xstack.lax.switch(0, [_grown, lambda c: c], a),
    "map": lambda a: xstack.lax.map(_grown, a),
    "jit": lambda a: xstack.jit(_grown)(a),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_no_array_of_the_caller_is_changed(name):
    a = np.zeros(2, np.float32)
    expected = CALLS[name](a)
    with xstack.disable_jit():
        result = CALLS[name](a)
    assert a.tolist() == [0, 0]
    np.testing.assert_array_equal(result, expected)
