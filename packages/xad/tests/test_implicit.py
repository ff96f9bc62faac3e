"""`xad.implicit` where neither batches nor compiled programs are installed."""

import numpy as np
import pytest

from packages.xad.tests.programs import cos, mul, sub
from xad import grad
from xad.implicit import fixed_point, root
from xprim import optional_transforms
from xprim.errors import CheckError


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    found = optional_transforms.find
    missing = ("vmap", "error_if", "jit")
    monkeypatch.setattr(
        optional_transforms, "find", lambda name: None if name in missing else found(name)
    )


def test_solutions_and_their_derivatives_need_no_other_package():
    square_root = lambda a: root(lambda x: sub(mul(x, x), a), 1.0)  # noqa: E731
    np.testing.assert_allclose(square_root(4.0), 2, rtol=1e-6)
    np.testing.assert_allclose(grad(square_root)(4.0), 0.25, rtol=1e-5)
    np.testing.assert_allclose(grad(grad(square_root))(4.0), -1 / 32, rtol=1e-5)
    found = fixed_point(cos, 1.0)
    np.testing.assert_allclose(found, np.cos(found), rtol=1e-5)


def test_what_is_no_solution_is_an_error():
    with pytest.raises(CheckError, match="root: the solver of <lambda> did not end at a solu") as e:
        root(lambda x: sub(mul(x, x), 4.0), 1.0, solve=lambda f, x: x)
    assert "x about 1.5 from one, with a residual of 3" in str(e.value)  # (1 - 4) / 2
