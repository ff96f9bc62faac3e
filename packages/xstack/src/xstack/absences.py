"""What errors say about names that are near to none."""

__all__ = ()

ABSENCES = "names of JAX that are not here: see docs/explain/coming_from_jax.md"
