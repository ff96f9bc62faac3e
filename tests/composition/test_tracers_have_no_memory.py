"""What only concrete arrays have is refused on traced values by a text that says so."""

from __future__ import annotations

import pytest

import xnp
from xad import grad
from xbatch import vmap
from xjit import jit

NAMES = ["block_until_ready", "device", "devices", "sharding", "is_ready", "delete", "to_host"]


@pytest.mark.parametrize("transform", [jit, grad, vmap])
@pytest.mark.parametrize("name", NAMES)
def test_a_traced_value_says_that_it_has_no_memory(name, transform):
    def f(x):
        assert not hasattr(x, name)
        getattr(x, name)

    x = xnp.ones(3) if transform is vmap else xnp.float32(2.0)
    with pytest.raises(AttributeError) as caught:
        transform(f)(x)
    first, got, hint = str(caught.value).splitlines()
    assert first == f"{name}: only concrete arrays have it, a traced value has no place in memory."
    assert got.startswith("  got       ") and "float32" in got.replace("f32", "float32")
    assert "the array that goes into the transformed function, or the result" in hint


def test_a_name_that_no_array_has_is_refused_plainly():
    with pytest.raises(AttributeError, match=r"^'JaxprTracer' object has no attribute 'foo'$"):
        jit(lambda x: x.foo)(1.0)
