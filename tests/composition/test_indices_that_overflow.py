"""Indices that integer arithmetic carried out of bounds, in compiled programs.

The compiler leaves out the bound of an index that it knows not to be negative, and what it knows of
`abs` is wrong of the least integer: a compiled gather read 16 GB before the array, and the process
ended. Each operation here gives a negative number where mathematics has none.
"""

import numpy as np
import pytest

from xjit import jit
from xnp import lax
from xprim import from_numpy

X = np.arange(8, dtype=np.float32).reshape(4, 2)
LEAST = -(2**31)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
UPDATED = lax.ScatterDimensionNumbers((1,), (0,), (0,))

# an operation, and integers of which it is negative, large, or none of both
INDICES = {
    "abs": (lax.abs, [LEAST, LEAST + 1, -3]),
    "neg": (lax.neg, [LEAST, 2, -3]),
    "square": (lax.square, [46341, 65536, -1]),
    "product with itself": (lambda i: lax.mul(i, i), [46341, 65536, -1]),
    "integer power": (lambda i: lax.integer_pow(i, 2), [46341, 65536, -1]),
    "sum": (lambda i: lax.add(lax.abs(i), lax.abs(i)), [2**30, 2**30 + 1, 1]),
    "max": (lambda i: lax.max(lax.abs(i), lax.neg(i)), [LEAST, 7, 1]),
    "cumsum": (lax.cumsum, [2**31 - 1, 1, 3]),
}
USES = {
    "gather, clip": lambda x, i: lax.gather(x, i[:, None], ROWS, (1, 2), mode="clip"),
    "gather, fill": lambda x, i: lax.gather(
        x, i[:, None], ROWS, (1, 2), mode="fill", fill_value=0.0
    ),
    "scatter, clip": lambda x, i: lax.scatter_add(x, i[:, None], x[:3], UPDATED, mode="clip"),
    "scatter, drop": lambda x, i: lax.scatter_add(x, i[:, None], x[:3], UPDATED, mode="drop"),
    "slice": lambda x, i: [lax.dynamic_slice(x, (i[k], 0), (2, 2)) for k in range(3)],
    "update": lambda x, i: [lax.dynamic_update_slice(x, x[:2], (i[k], 0)) for k in range(3)],
}


@pytest.mark.parametrize("operation", INDICES)
def test_an_index_that_overflowed_is_out_of_bounds_in_compiled_programs(operation):
    function, integers = INDICES[operation]

    def used(x, i):
        return {name: use(x, function(i)) for name, use in USES.items()}

    operands = from_numpy(X), from_numpy(np.int32(integers))
    # reading and adding up at most three numbers is exact
    for name, found in jit(used)(*operands).items():
        expected = USES[name](operands[0], function(operands[1]))
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected), err_msg=name)
