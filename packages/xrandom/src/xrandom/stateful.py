"""Generators that count their draws: `stateful_rng(seed).normal(size=3)`.

A generator holds a key and a reference to a counter. Each draw folds the counter into the key and
adds one to it, so draws differ though no key is split, in compiled functions and in loops as well.
What a program draws depends on the order of its draws; keys that are passed along are what is to be
preferred where that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xnp
import xrandom
import xtree
from xnp.refs import Ref, new_ref
from xprim import EAGER, Array, state
from xprim.errors import message
from xprim.requirements import require, static_shape
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike
from xtree.boundaries import boundary_methods

__all__ = ["StatefulPRNG", "stateful_rng"]

__dir__ = __all__.copy


@boundary_methods
class StatefulPRNG:
    """A generator of random numbers with a counter of its own; `stateful_rng` makes one.

    It is a pytree of its key and its counter, so functions that are transformed take it as an
    argument, or close over it. It cannot be a result of one, as no reference can.

    Example:
      >>> rng = stateful_rng(42)
      >>> float(rng.uniform()) == float(rng.uniform())
      False
    """

    __slots__ = ("_base_key", "_counter")

    def __init__(self, base_key: Array, counter: Ref) -> None:
        self._base_key = base_key
        self._counter = counter

    def __repr__(self) -> str:
        return f"StatefulPRNG(key={self._base_key!r}, counter={self._counter!r})"

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Return a new random key, or several, and count on.

        Args:
          shape: of an array of keys; () for one.

        Returns:
          Keys of dtype `key<fry>`.

        Raises:
          ValueError: for a generator that `split` made, outside of the `vmap` that takes it apart.

        Example:
          >>> stateful_rng(0).key(3).shape
          (3,)
        """
        if self._base_key.shape:
            raise ValueError(message(
                "StatefulPRNG", "a generator that split() made draws inside of vmap alone.",
                got=f"generators of shape {self._base_key.shape}",
                hint="spawn() makes a list of generators",
            ))  # fmt: skip
        key = xrandom.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        sizes = static_shape(shape, "StatefulPRNG.key")
        return xrandom.split(key, sizes) if sizes else key

    def random(
        self, size: int | Sequence[int] | None = None, dtype: DTypeLike = float
    ) -> Array:  # fmt: skip
        """Draw floating numbers from [0, 1).

        Args:
          size: their shape; None for one number.
          dtype: theirs.

        Example:
          >>> stateful_rng(0).random(3).shape
          (3,)
        """
        return xrandom.uniform(self.key(), _shape_of(size), dtype)

    def uniform(
        self, low: ArrayLike = 0, high: ArrayLike = 1, size: int | Sequence[int] | None = None,
        *, dtype: DTypeLike = float,
    ) -> Array:  # fmt: skip
        """Draw floating numbers from [low, high).

        Args:
          low: the least number that can come.
          high: the end, which does not come.
          size: the shape; None for that of `low` and `high` together.
          dtype: of the result.

        Example:
          >>> stateful_rng(0).uniform(2.0, 3.0, 4).shape
          (4,)
        """
        shape = _shape_of(size, low, high)
        return xrandom.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(
        self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: int | Sequence[int] | None = None,
        *, dtype: DTypeLike = float,
    ) -> Array:  # fmt: skip
        """Draw from a normal distribution.

        Args:
          loc: its mean.
          scale: its standard deviation.
          size: the shape; None for that of `loc` and `scale` together.
          dtype: of the result.

        Example:
          >>> stateful_rng(0).normal(size=(2, 3)).shape
          (2, 3)
        """
        drawn = xrandom.normal(self.key(), _shape_of(size, loc, scale), dtype)
        return (xnp.asarray(loc) + xnp.asarray(scale) * drawn).astype(drawn.dtype)

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None,
        size: int | Sequence[int] | None = None, *, dtype: DTypeLike = int,
    ) -> Array:  # fmt: skip
        """Draw integers from low to high - 1.

        Args:
          low: the least; with no `high` the numbers are from 0 to `low` - 1.
          high: one more than the greatest.
          size: the shape; None for that of `low` and `high` together.
          dtype: of the result.

        Example:
          >>> stateful_rng(0).integers(10, size=5).shape
          (5,)
        """
        if high is None:
            low, high = 0, low
        return xrandom.randint(self.key(), _shape_of(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Make independent generators side by side in one object, for `vmap` to take apart.

        Args:
          num: how many, or their shape.

        Example:
          >>> import xbatch
          >>> xbatch.vmap(lambda rng: rng.uniform())(stateful_rng(1).split(3)).shape
          (3,)
        """
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(xnp.zeros(keys.shape, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Make a list of independent generators.

        Args:
          n_children: how many.

        Example:
          >>> [float(rng.random()) < 1 for rng in stateful_rng(1).spawn(2)]
          [True, True]
        """
        return [StatefulPRNG(key, new_ref(xnp.zeros((), int))) for key in self.key(n_children)]


def _shape_of(size: int | Sequence[int] | None, *parameters: ArrayLike) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*[xnp.shape(p) for p in parameters])
    return static_shape(size, "StatefulPRNG: size")


def _flatten(rng: StatefulPRNG) -> tuple[tuple[Any, Any], None]:
    return (rng._base_key, rng._counter), None


def _unflatten(_: None, children: Sequence[Any]) -> StatefulPRNG:
    return StatefulPRNG(*children)


xtree.register_pytree_node(StatefulPRNG, _flatten, _unflatten)


def stateful_rng(seed: ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """Make a generator whose draws differ from each other.

    Args:
      seed: an integer; None, outside of transformed functions alone, for one of the system's.
      impl: the kind of keys, as of `xrandom.key`.

    Returns:
      A `StatefulPRNG`, with methods like those of NumPy's generators.

    Raises:
      TypeError: for no seed while a function is traced: the program would keep the one it saw.

    Example:
      >>> rng = stateful_rng(42)
      >>> rng.normal(size=2).shape, rng.integers(0, 10, 3).shape
      ((2,), (3,))
    """
    if seed is None:
        require(
            state.__dict__["trace"] is EAGER, "stateful_rng",
            "a seed is needed while a function is traced.",
            hint="make the generator outside, and pass it to the function", error=TypeError,
        )  # fmt: skip
        seed = int(np.random.SeedSequence().generate_state(1, np.uint32)[0] >> 1)
    base_key = xrandom.key(seed, impl=impl)
    return StatefulPRNG(base_key, new_ref(xnp.zeros((), int)))


boundaries(globals())
