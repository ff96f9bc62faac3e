"""The module that chex imports from `jax._src`, and in which it counts what is compiled."""

__all__ = ()
