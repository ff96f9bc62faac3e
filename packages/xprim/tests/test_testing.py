import numpy as np
import pytest

from packages.xprim.tests.operations import NONE, scale_p
from xprim import Primitive
from xprim.testing import EXACT, Sample, Tolerance, check_shape

RULES = {"stablehlo": NONE, "jvp": NONE, "transpose": NONE, "batch": NONE}


def test_check_shape_compares_the_shape_rule_with_the_numpy_rule():
    check_shape("test_scale", Sample([np.ones(3, np.float16)], {"by": 2}))
    check_shape(scale_p, Sample([np.ones(())], {"by": 2}))
    for name, numpy, text in (
        ("test_wrong_shape", lambda x: (x[:1],), r"has shape \(1,\), the shape rule says \(3,\)"),
        ("test_wrong_dtype", lambda x: (x.astype("f8"),), "has dtype float64, the shape rule says"),
        ("test_wrong_count", lambda x: (x, x), "2 results, 1 avals"),
    ):
        p = Primitive(name, shape=lambda x: (x,), numpy=numpy, **RULES)
        with pytest.raises(AssertionError, match=text):
            check_shape(p, Sample([np.ones(3, np.float32)]))


def test_samples_have_labels_and_reasons():
    sample = Sample([np.ones((2, 3), np.float32), np.int8(1)], note="odd")
    assert sample.label() == "f32[2,3]-i8[]-odd"
    assert EXACT.reason == "exact" and Tolerance(1e-3, reason="why").rtol == 1e-3
    assert sample.arrays()[0].to_host() is not sample.operands[0]
