"""Under `disable_jit` functions meet the values that they meet when they are traced.

In a program `carry += 1` binds a name anew; an array of NumPy would be written. A number is an
array in a program, of a weak type.
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


ONES = np.ones(3, np.float32)
OF_NUMBERS = {
    "while_loop": lambda lax: lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, 0),
    "while_loop of steps": lambda lax: lax.while_loop(
        lambda c: c.sum() < 3, lambda c: c.astype(c.dtype) + 1, 0, max_steps=9),
    "while_loop of no step": lambda lax: lax.while_loop(lambda c: c > 3, lambda c: c + 1, 1.5),
    "fori_loop": lambda lax: lax.fori_loop(0, 3, lambda i, c: c.astype("int32") + i, 0),
    "fori_loop of a number": lambda lax: lax.fori_loop(0, 3, lambda i, c: 2, 0),
    "scan": lambda lax: lax.scan(lambda c, x: (c + 1, c.reshape(1)), 0, ONES),
    "scan to a dtype": lambda lax: lax.scan(lambda c, x: (c + np.int8(1), c), 0, ONES),
    "scan to a dtype, reversed": lambda lax: lax.scan(
        lambda c, x: (c + np.int8(1), (c, 1.5)), 0, ONES, reverse=True),
    "scan until": lambda lax: lax.scan(
        lambda c, x: (c + np.int16(1), c), 0, ONES, until=lambda c: c > 1),
    "scan of a tree": lambda lax: lax.scan(
        lambda c, x: ({"n": c["n"] + 1, "x": x * c["n"].astype(x.dtype)}, None),
        {"n": 1, "x": 0.0}, ONES),
    "scan of no steps": lambda lax: lax.scan(lambda c, x: (c + 1, c + x), 0, ONES[:0]),
    "cond": lambda lax: lax.cond(True, lambda c: c.sum(), lambda c: c, 3),
    "switch": lambda lax: lax.switch(1, [lambda c: c, lambda c: c.T], 3.5),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers_are_arrays_of_the_types_that_programs_have(name):
    def described(tree):
        return xstack.tree.map(lambda x: (x.aval, np.asarray(x).tolist()), tree)

    expected = described(OF_NUMBERS[name](xstack.lax))
    with xstack.disable_jit():
        assert described(OF_NUMBERS[name](xstack.lax)) == expected
