"""References: arrays that are written in place, inside and outside of transformed functions."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.refs import (
        Ref as Ref, RefView as RefView, addupdate as addupdate, empty_ref as empty_ref,
        free_ref as free_ref, freeze as freeze, get as get, new_ref as new_ref, set as set,
        swap as swap,
    )  # fmt: skip
