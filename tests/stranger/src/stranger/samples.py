"""Samples of `softplus`, from which the packages of the family make their checks."""

import numpy as np

from xprim.testing import EXACT, Sample, Tolerance

_ULPS = {
    "float16": Tolerance(4e-3, 1e-7, "a few ulp of the exponential and logarithm"),
    "float32": Tolerance(1e-6, 1e-12, "a few ulp of the exponential and logarithm"),
    "float64": Tolerance(1e-14, 1e-300, "a few ulp of the exponential and logarithm"),
}

TABLE = {
    "softplus": [
        Sample([np.asarray(values, dtype)], tolerance=_ULPS[dtype], note=note)
        for dtype in _ULPS
        for note, values in (
            ("ordinary", [[-2.0, -0.5, 0.0], [0.5, 3.0, 9.0]]),
            ("scalar", 0.25),
            ("large", [60.0, -12.0]),
            ("special", [-0.0, np.inf, -np.inf, np.nan]),
        )
    ]
    + [Sample([np.zeros((0, 3), np.float32)], tolerance=EXACT, note="empty")]
}
