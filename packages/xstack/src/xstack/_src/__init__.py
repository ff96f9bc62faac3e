"""Names that libraries take from private modules of JAX, where they look for them.

Each is a public thing of this family under the path that a library imports it from. Nothing of the
family imports a module of this folder, and only what some published library needs is here.
"""
