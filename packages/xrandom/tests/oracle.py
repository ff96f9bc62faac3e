"""The installed jax as an oracle: both libraries under the same counter layout and precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from xprim import config

jax = pytest.importorskip("jax")


@contextmanager
def layout(partitionable: bool, x64: bool = False) -> Iterator[None]:
    """Use a counter layout (and 64-bit defaults) in both libraries."""
    with (
        config.threefry_partitionable(partitionable),
        config.enable_x64(x64),
        jax.threefry_partitionable(partitionable),
        jax.enable_x64(x64),
    ):
        yield


def assert_equal(ours: Any, theirs: Any) -> None:
    """Check equality bit for bit, shape and dtype included."""
    a, b = np.asarray(ours), np.asarray(theirs)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_array_equal(a, b)


def assert_close(ours: Any, theirs: Any, rtol: float = 2e-6, atol: float = 2e-7) -> None:
    """Check equality to a tolerance, and of shape and dtype."""
    a, b = np.asarray(ours), np.asarray(theirs)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol)


def sampler_of(module: Any, name: str) -> Callable[..., Any]:
    """Return a sampler by its name."""
    return getattr(module, name)  # type: ignore[no-any-return]
