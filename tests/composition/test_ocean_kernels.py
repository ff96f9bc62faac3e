"""The kernels of an ocean model in the benchmarks: the same numbers from every side."""

import importlib.util

import numpy as np
import pytest

import xstack
from benchmarks.namespaces import load
from benchmarks.workloads import ocean_kernels

INPUTS = ocean_kernels.operands((8, 9, 6))
KERNELS = ["equation of state", "isoneutral mixing", "turbulent kinetic energy"]


def _results(side, name):
    ns = load(side)
    fun, args = ocean_kernels.kernels(ns, INPUTS)[name]
    return [np.asarray(x) for x in fun(*args)]


def _compare(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert np.all(np.isfinite(b))
        # float64 and some hundred operations, of which some cancel
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-14 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("name", KERNELS)
def test_compiled_kernels_are_those_of_numpy(name):
    with xstack.enable_x64(True):
        _compare(_results("xstack", name), _results("numpy", name))


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("name", KERNELS)
def test_the_loops_of_numba_are_those_of_numpy(name):
    _compare(_results("numba", name), _results("numpy", name))


def test_the_density_of_sea_water_is_the_published_one():
    rho, by_salt, by_temp = ocean_kernels.density(34.7118, 28.8099, 10.0, np.sqrt)
    assert abs(rho - 1021.840) < 0.005  # TEOS-10 in 75 terms; the rms difference is 0.005
    h = 1e-4
    for slot, found in enumerate((by_salt, by_temp)):
        up, down = [34.7118, 28.8099, 10.0], [34.7118, 28.8099, 10.0]
        up[slot], down[slot] = up[slot] + h, down[slot] - h
        difference = (ocean_kernels.density(*up, np.sqrt)[0]
                      - ocean_kernels.density(*down, np.sqrt)[0]) / (2 * h)  # fmt: skip
        assert abs(found - difference) < 1e-7
