"""Samples of the array primitives, from which every check of their rules is made."""

__all__ = ()
