"""The loops and the kernels of an ocean model in the benchmarks: the same numbers on every side.

The functions for numba run as plain Python here, which makes them the reference.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import xstack
from benchmarks.namespaces import load
from benchmarks.workloads import compiled_loops, ocean_kernels

INPUTS = ocean_kernels.operands((6, 7, 5))
KERNELS = ["equation of state", "isoneutral mixing", "turbulent kinetic energy"]
LOOPS = [
    "Kalman filter of 3 states", "RNN of 32 units", "pendulum by RK4", "a product and a sum",
    "while with a quotient", "IIR filter", "Mandelbrot set",
]  # fmt: skip


@pytest.fixture(autouse=True)
def plain_python(monkeypatch):
    def njit(fun=None, **options):
        return fun or (lambda fun: fun)

    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(njit=njit))
    monkeypatch.setattr(compiled_loops, "STEPS", 60)


def _results(side, name):
    ns = load(side)
    fun, args = ocean_kernels.kernels(ns, INPUTS)[name]
    return [np.asarray(x) for x in fun(*args)]


@pytest.mark.parametrize("name", KERNELS)
def test_compiled_kernels_are_those_of_numpy_and_of_loops_over_cells(name):
    expected = _results("numpy", name)
    with xstack.enable_x64(True):
        found = _results("xstack", name)
    for a, b, c in zip(expected, found, _results("numba", name), strict=True):
        assert np.all(np.isfinite(a))
        # float64 and some hundred operations, of which some cancel
        tolerance = {"rtol": 1e-9, "atol": 1e-14 * max(1.0, np.abs(a).max())}
        np.testing.assert_allclose(b, a, **tolerance)
        np.testing.assert_allclose(c, a, **tolerance)


@pytest.mark.parametrize("name", LOOPS)
def test_compiled_loops_are_those_of_plain_python(name):
    data = compiled_loops.operands()
    data.inputs, data.points = data.inputs[:20], data.points[:40]
    (fun, x), (loop, y) = [
        compiled_loops.loops(load(side), data)[name] for side in ("xstack", "numba")
    ]
    # 60 steps of float32, which contract; counts of steps are integers
    np.testing.assert_allclose(np.asarray(fun(x)), loop(y), rtol=2e-5, atol=2e-6)


def test_the_density_of_sea_water_is_the_published_one():
    rho, by_salt, by_temp = ocean_kernels.density(34.7118, 28.8099, 10.0, np.sqrt)
    assert abs(rho - 1021.840) < 0.005  # TEOS-10 in 75 terms; the rms difference is 0.005
    h = 1e-4
    for slot, found in enumerate((by_salt, by_temp)):
        up, down = [34.7118, 28.8099, 10.0], [34.7118, 28.8099, 10.0]
        up[slot], down[slot] = up[slot] + h, down[slot] - h
        difference = (
            ocean_kernels.density(*up, np.sqrt)[0] - ocean_kernels.density(*down, np.sqrt)[0]
        ) / (2 * h)
        assert abs(found - difference) < 1e-7
