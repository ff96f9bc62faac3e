"""What the oracle's documentation shows, xstack does: every example of every public name."""

from __future__ import annotations

import sys

import pytest

from tests.nets import documented_examples as net
from tests.nets.cells import IN_FULL, drawn

jax = pytest.importorskip("jax")
IS_NEWEST = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 12)

_ORDER = "the order within a part is not said, and ours is sorted"
_AS_SCIPY = "integers stay integers, as in SciPy"
_OUT_OF_BOUNDS = "an index out of bounds is an error where it is known"
_TRACER = "our name for a traced value"
_NOT_HERE = "an experiment of the oracle's"
_KEY = "a key is printed as other arrays are: its words, shape and dtype"

# public name -> why an example prints something else
DELIBERATE = {
    "xstack.Array.at": _OUT_OF_BOUNDS,
    "xstack.custom_gradient": _NOT_HERE,
    "xstack.disable_jit": _TRACER,
    "xstack.vmap": _NOT_HERE,
    "xstack.numpy.argpartition": _ORDER,
    "xstack.numpy.einsum_path": "the list and the text are NumPy's",
    "xstack.numpy.heaviside": "integers beside a Python number are weak, as in every sum",
    "xstack.numpy.ndarray.at": _OUT_OF_BOUNDS,
    "xstack.numpy.ogrid": "a tuple, as in NumPy 2",
    "xstack.numpy.partition": _ORDER,
    "xstack.numpy.polyadd": "coefficients may be arrays of fewer dimensions, which broadcast",
    "xstack.numpy.polydiv": "numpy.polydiv of our arrays is our polydiv, which cuts off no zeros",
    "xstack.numpy.polysub": "coefficients may be arrays of fewer dimensions, which broadcast",
    "xstack.scipy.signal.convolve": _AS_SCIPY,
    "xstack.scipy.signal.convolve2d": _AS_SCIPY,
    "xstack.scipy.signal.correlate": _AS_SCIPY,
    "xstack.scipy.signal.correlate2d": _AS_SCIPY,
    "xstack.scipy.signal.istft": "an exact zero is printed where the oracle has a rounding error",
    "xstack.experimental.random.StatefulPRNG": _KEY,
    "xstack.experimental.random.StatefulPRNG.key": _KEY,
    "xstack.experimental.random.stateful_rng": _KEY,
    "xstack.scipy.stats.poisson.entropy": "2.20439524 in all digits; a Python number stays weak",
    "xstack.export.export": "functions of arrays are not compiled until jit is asked",
    "xstack.export.Exported.in_shardings_jax": "a program of several devices is not exported",
    "xstack.errors.NonConcreteBooleanIndexError": "setting by a traced mask works",
    "xstack.errors.TracerArrayConversionError": "numpy.sin of a traced value works",
}

_LIST = "a tuple, as in NumPy 2 and in the oracle from 0.12 on"
DELIBERATE |= {} if IS_NEWEST else {
    "xstack.numpy.atleast_1d": _LIST,
    "xstack.numpy.atleast_2d": _LIST,
    "xstack.numpy.atleast_3d": _LIST,
    "xstack.numpy.broadcast_arrays": _LIST,
}  # fmt: skip

EXAMPLES = net.documented()
CELLS = drawn(sorted(EXAMPLES), 6)


def test_the_size_of_the_net(record_property):
    count = sum(map(len, EXAMPLES.values()))
    record_property("examples", count)
    sys.stderr.write(f"documented examples: {count} of {len(EXAMPLES)} names\n")
    assert count > 2000


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files left open
@pytest.mark.parametrize("name", CELLS)
def test_an_example_prints_what_the_oracle_prints(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some examples write files
    found = list(net.differences(EXAMPLES[name]))
    if name in DELIBERATE:
        if found or not (IN_FULL and IS_NEWEST):
            pytest.skip(DELIBERATE[name])
        pytest.fail(f"no difference is left: {DELIBERATE[name]}")
    assert not found, "\n\n".join(map(str, found))


def test_a_difference_is_found():
    sources = ["import jax.numpy as jnp", "jnp.zeros(2) + (jnp.__name__ == 'jax.numpy')"]
    (difference,) = net.differences(sources)
    assert "Array([1., 1.]" in difference.theirs.text and "Array([0., 0.]" in difference.ours.text
