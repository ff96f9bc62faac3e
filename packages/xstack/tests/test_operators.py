"""Arrays and tracers have their operators, whichever part of the family is imported first."""

import subprocess
import sys

import pytest

PROGRAMS = {
    "jit": "import numpy as np, xstack; print(xstack.jit(lambda a: a + a)(np.ones(2)))",
    "make_jaxpr": "import xstack; print(xstack.make_jaxpr(lambda a: a * a)(1.0))",
    "xjit alone": "import numpy as np, xjit; print(xjit.jit(lambda a: a + a)(np.ones(2)))",
    "grad": "import xstack; print(xstack.grad(lambda a: a * a)(3.0))",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_work_with_only_one_import(name):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[name]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
