"""The array primitives. Each module defines some of them with all of their rules.

    table              the constructors of elementwise primitives
    arithmetic         add, sub, mul, div, ...
    broadcast_in_dim   ... and one module for each primitive that is no row of a table
"""
