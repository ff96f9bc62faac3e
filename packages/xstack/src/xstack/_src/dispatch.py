"""Names that equinox imports from `jax._src.dispatch`."""

from xstack import effects_barrier

__all__ = ["wait_for_tokens"]

__dir__ = __all__.copy

wait_for_tokens = effects_barrier
