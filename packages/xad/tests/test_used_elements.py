"""What primitives declare about the elements that they use holds for their transposes."""

import numpy as np
import pytest

import xnp
from xad import vjp
from xnp.testing.samples import TABLE
from xprim import STRUCTURAL, dtypes, get_primitive

DECLARED = [
    name for name in sorted(TABLE)
    if "uses_all" in (rules := get_primitive(name).rules) or rules.get("physical") is STRUCTURAL
]  # fmt: skip


def test_the_operations_that_move_or_add_up_elements_declare_it():
    assert {"reduce_sum", "cumsum", "concatenate", "gather", "pad", "select_n"} <= {*DECLARED}


@pytest.mark.parametrize("name", DECLARED)
def test_the_transpose_of_ones_is_positive_where_an_operand_is_used(name):
    primitive = get_primitive(name)
    rows = [row for row in TABLE[name]
            if any(x.dtype == np.float32 and x.size for x in row.operands)]  # fmt: skip
    for row in rows[:: max(1, len(rows) // 3)]:
        operands = row.arrays()
        moved = [i for i, x in enumerate(operands) if dtypes.is_inexact(x.dtype)]

        def apply(*xs, moved=moved, operands=operands, params=row.params):
            now = dict(enumerate(operands)) | dict(zip(moved, xs, strict=True))
            return primitive.bind(*now.values(), **params)

        results, pull_back = vjp(apply, *[operands[i] for i in moved])
        if not all(dtypes.is_inexact(y.dtype) for y in results):
            continue
        for cotangent in pull_back(tuple(map(xnp.ones_like, results))):
            found = np.asarray(cotangent)
            assert (found >= 0).all()
            if "uses_all" in primitive.rules and all(y.size for y in results):
                assert (found > 0).all()
