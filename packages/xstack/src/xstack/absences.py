"""What errors say about names that are near to none."""

ABSENCES = "names of JAX that are not here: see docs/explain/coming_from_jax.md"
