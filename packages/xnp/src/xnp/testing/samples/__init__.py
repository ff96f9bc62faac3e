"""The sample tables of all families of primitives, merged: `TABLE[primitive name]`.

Each module of this folder describes one family and has a `TABLE` of its own; `values` adds, to each
primitive's rows, the dtypes and the values at their edges that these do not have.
"""

from __future__ import annotations

import pkgutil

from xnp.primitives import load_all
from xnp.testing.samples.values import edge_rows
from xprim.testing import Sample
from xtree.namespaces import import_by_name

__all__ = ["TABLE"]

__dir__ = __all__.copy

TABLE: dict[str, list[Sample]] = {}

load_all()  # checks made from the samples walk over the registry

for _module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
    _family = getattr(import_by_name(f"{__name__}.{_module.name}"), "TABLE", {})
    for _name, _samples in _family.items():
        if _name in TABLE:
            raise ValueError(f"samples: two families have samples of {_name!r}.")
        TABLE[_name] = [*_samples, *edge_rows(_name, _samples)]
