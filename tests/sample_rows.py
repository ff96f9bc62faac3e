"""The sample rows of all primitives: the table of `xnp`, and those of the other owners.

An owner keeps its rows in `<package>.testing.samples`, in a `TABLE`; where a package has none, its
rows are here, because it has few primitives. Collectives need an axis in scope: their rows are in
`COLLECTIVES`, for one axis named "i" of `AXIS_SIZE` members, and operands are those of one member.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import xnp.testing.samples
import xrandom.samplers
from xjit import devices
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec
from xnp.testing.samples.values import edge_rows, shape_rule_accepts
from xprim import extended_axes
from xprim.testing import Sample, Tolerance

AXIS_SIZE = 4
OWNERS = (xrandom.samplers,)  # imported, as rows of their primitives ask for rules

_ULPS = Tolerance(4e-6, 4e-6, "erf_inv and log of XLA and of NumPy differ by a few ulp")


def _words(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, shape, dtype=np.uint32)


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


_KEY = _words(2)
_EXTREME_KEY = np.array([0, 2**32 - 1], np.uint32)


def _draws(**params: object) -> list[Sample]:
    """Return rows of a primitive that draws numbers from a key."""
    return [
        Sample([key], {"shape": shape, "partitionable": way, **params}, smooth=False)
        for key in (_KEY, _EXTREME_KEY)
        for shape in ((), (3,), (2, 3), (0,))
        for way in (True, False)
    ]


def _toleranced(rows: list[Sample]) -> list[Sample]:
    return [Sample(r.operands, r.params, _ULPS, smooth=False) for r in rows]


RANDOM: dict[str, list[Sample]] = {
    "threefry2x32": [
        Sample([_words(4, seed=k) for k in range(4)]),
        Sample([*_words(2), _words(2, 3), _words(2, 3, seed=1)], note="one key"),
        Sample([np.zeros(3, np.uint32)] * 4, note="zeros"),
        Sample([np.full(3, 2**32 - 1, np.uint32)] * 4, note="ones"),
        Sample([np.zeros((0,), np.uint32)] * 4, note="empty"),
    ],
    "random_bits": [row for width in (8, 16, 32, 64) for row in _draws(bit_width=width)],
    "random_uniform": _draws(dtype=np.dtype(np.float32)) + _draws(dtype=np.dtype(np.float64)),
    "random_normal": _toleranced(_draws(dtype=np.dtype(np.float32))),
    "random_split": _draws(),
    "random_fold_in": [Sample([_KEY, np.uint32(7)]), Sample([_EXTREME_KEY, np.uint32(2**32 - 1)])],
}

DERIVATIVES: dict[str, list[Sample]] = {
    "name": [
        Sample([np.asarray(x)], {"name": "residual"})
        for x in (np.float32(1), _floats(2, 3), np.arange(3), _floats(0))
    ],
    "remat_residual": [
        Sample([np.asarray(x)], smooth=False, note="its call says the derivative")
        for x in (np.float32(1), _floats(2, 3), _floats(0))
    ],
    "structured_residual": [
        Sample([np.asarray(x)]) for x in (np.float32(1), _floats(2, 3), np.arange(3), _floats(0))
    ],
    "discrete_parameter": [
        Sample(
            [np.asarray(x)],
            {"operation": "poisson", "name": "lam"},
            smooth=False,
            note="tests/test_discrete_derivatives.py has its derivative",
        )
        for x in (np.float32(1), _floats(2, 3), _floats(0))
    ],
    "saved_value": [Sample([_floats(3), _floats(3)], smooth=False, note="the same value twice")],
}

_ALL = {"axes": ("i",), "axis_index_groups": None}
_PAIRS = {"axes": ("i",), "axis_index_groups": ((0, 2), (3, 1))}
_NAMED = {"axis_name": ("i",), "axis_size": AXIS_SIZE, "axis_index_groups": None}
_INTS = np.array([-(2**31), 7], np.int32)

COLLECTIVES: dict[str, list[Sample]] = {
    "psum": [
        *[Sample([x], _ALL) for x in (_floats(2, 3), _floats(), _INTS)],
        Sample([_floats(0, 2)], _ALL),
        Sample([_floats(3)], _PAIRS),
    ],
    **{
        name: [
            *[Sample([x], _ALL) for x in (_floats(2, 3), _floats(), _floats(0, 2), _INTS)],
            Sample([_floats(3)], _PAIRS),
        ]
        for name in ("pmax", "pmin")
    },
    **{
        name: [
            *[Sample([_floats(2, 3)], {"all_gather_dimension": d, **_NAMED}) for d in (0, 1)],
            Sample([_floats(2, 0)], {"all_gather_dimension": 1, **_NAMED}),
        ]
        for name in ("all_gather", "all_gather_invariant", "all_gather_reduced")
    },
    "all_to_all": [
        Sample([_floats(4, 4)], {"split_axis": 1, "concat_axis": 1, **_NAMED}),
        Sample([_floats(4, 2)], {"split_axis": 0, "concat_axis": 0, **_NAMED}),
        Sample([_floats(4, 0)], {"split_axis": 0, "concat_axis": 0, **_NAMED}),
    ],
    "ppermute": [
        Sample([_floats(3)], {"axis_name": ("i",), "perm": ((0, 1), (1, 2), (2, 3), (3, 0))}),
        Sample([_floats(3)], {"axis_name": ("i",), "perm": ((0, 3),)}, note="the others get zero"),
        *[
            Sample([x], {"axis_name": ("i",), "perm": ((0, 3),)})
            for x in (_floats(), _floats(0), _floats(9))
        ],
    ],
    "pbroadcast": [
        Sample([x], {"axis_name": ("i",), "source": s})
        for x, s in (
            (_floats(3), 0),
            (_floats(3), 3),
            (_floats(), 1),
            (_floats(0), 1),
            (_floats(3, 3), 2),
        )
    ],
    "ragged_exchange": [
        Sample(
            [_floats(*rows), _floats(*kept), *[np.arange(4, dtype=np.int32)] * 4],
            {"axis_name": ("i",), "axis_index_groups": None},
        )
        for rows, kept in (((4,), (5,)), ((4, 2), (6, 2)), ((4, 0), (5, 0)))
    ],
    "reduce_scatter": [
        Sample([x], {"scatter_dimension": 0, **_NAMED}) for x in (_floats(4, 2), _floats(4, 0))
    ],
    "axis_index": [Sample([], {"axis_name": ("i",)})],
}

# Along no axis, a cast of types is a value of its own; the others are in test_varying_axes.
_CAST = {"axes": (), "mesh": None}
_ONE = NamedSharding(Mesh(devices("cpu")[:1], "x"), PartitionSpec())
SHARDINGS: dict[str, list[Sample]] = {
    "pvary": [Sample([x], _CAST) for x in (np.float32(1), _floats(2, 3), np.arange(3), _floats(0))],
    "pcast": [
        Sample([x], {**_CAST, "old": "varying", "new": "unreduced"})
        for x in (np.float32(1), _floats(2, 3), np.arange(3), _floats(0))
    ],
    "device_put": [
        Sample([x], {"sharding": _ONE, "source": None})
        for x in (np.float32(1), _floats(2, 3), np.arange(3), _floats(0))
    ],
    "sharding_constraint": [
        Sample([x], {"sharding": _ONE})
        for x in (np.float32(1), _floats(2, 3), np.arange(3), _floats(0))
    ],
}
IDENTITIES: dict[str, list[Sample]] = {
    "layout_constraint": [
        Sample([np.float32(1)], {"order": ()}),
        Sample([np.arange(3)], {"order": (0,)}),
        Sample([_floats(2, 3)], {"order": (1, 0)}),
        Sample([_floats(0, 3)], {"order": (1, 0)}),
    ],
    "xla_metadata_value": [
        Sample([x], {"items": (("a", "b"),)})
        for x in (np.float32(1), _floats(2, 3), np.arange(3), _floats(0))
    ],
}
# Rows of primitives of `xnp` that depend on what runs them, and so have no result of their own.
PLACES: dict[str, list[Sample]] = {
    "platform_index": [Sample([], {"platforms": (("cpu",),), "has_default": True})],
    "rng_words": [Sample([], {"shape": (3,)})],
}


def _collective_accepts(name: str, operands: Sequence[np.ndarray], params: object) -> bool:
    with extended_axes({"i": AXIS_SIZE}):
        return shape_rule_accepts(name, operands, params)


for _name, _rows in COLLECTIVES.items():
    COLLECTIVES[_name] = [*_rows, *edge_rows(_name, _rows, _collective_accepts)]
for _table in (DERIVATIVES, SHARDINGS, IDENTITIES):
    for _name, _rows in _table.items():
        _table[_name] = [*_rows, *edge_rows(_name, _rows)]


def all_rows() -> dict[str, list[Sample]]:
    """Return every table merged; a name in two of them is an error."""
    merged: dict[str, list[Sample]] = {}
    tables = (RANDOM, DERIVATIVES, SHARDINGS, IDENTITIES, COLLECTIVES, PLACES)
    for table in (xnp.testing.samples.TABLE, *tables):
        twice = merged.keys() & table.keys()
        assert not twice, f"two tables have rows of {sorted(twice)}"
        merged.update({name: list(rows) for name, rows in table.items()})
    return merged
