"""Every public function of arrays, and the forms in which random programs call it.

The functions are read from the namespaces, so one that is added tomorrow is drawn tomorrow. What
random programs cannot call is named in `NOT_DRAWN`, with the reason. A *form* is a way to fill the
parameters of a function from a few arrays; which forms a function takes is found by trying.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import xnp
import xnp.lax.linalg
from tests.nets.value_cells import module_at
from tests.nets.value_rows_of_modules import MODULES
from xnp import lax, nn
from xprim import Primitive, from_numpy

_FILES = "it reads or writes files or memory"
_FUNCTIONS = "it takes functions; random programs wrap each of their steps in such calls"
_STATE = "it changes how things are printed"
_HOST = "it answers for Python: no arrays come out"
_IN_PLACE = "it refuses to change an array in place, and has a test of that"
_UNSET = "the elements of its result are not defined"
_VECTORS = "it takes vectors as long as a list of dimensions; the net of derivatives has its row"
_ROWS = "it takes pairs, or a number by its name; the net of values has its row"
_NUMBERED = "it takes dimension numbers; `tests/composition/program_shapes.py` draws it"

NOT_DRAWN = {
    **dict.fromkeys(
        "xnp.load xnp.save xnp.savez xnp.fromfile xnp.from_dlpack xnp.frombuffer xnp.fromiter"
        " xnp.fromstring".split(), _FILES),
    **dict.fromkeys(
        "xnp.apply_along_axis xnp.apply_over_axes xnp.fromfunction xnp.frompyfunc xnp.piecewise"
        " xnp.vectorize xnp.ufunc lax.associative_scan lax.cond lax.fori_loop lax.map lax.reduce"
        " lax.reduce_window lax.scan lax.switch lax.while_loop lax.platform_dependent"
        " lax.scatter_apply lax.custom_linear_solve lax.custom_root"
        " xnp.scipy.linalg.funm".split(), _FUNCTIONS),
    "nn.scaled_matmul": "its operands are in narrow formats",
    "lax.rng_bit_generator": "its key is four words; `test_random_bits` has its values",
    "lax.rng_uniform": "its result is another in each call",
    **dict.fromkeys("xnp.printoptions xnp.set_printoptions xnp.get_printoptions".split(), _STATE),
    **dict.fromkeys(
        "xnp.array_repr xnp.array_str xnp.can_cast xnp.dtype xnp.einsum_path xnp.isdtype"
        " xnp.issubdtype xnp.promote_types xnp.result_type".split(), _HOST),
    **dict.fromkeys("xnp.fill_diagonal xnp.place xnp.put xnp.put_along_axis".split(), _IN_PLACE),
    **dict.fromkeys("xnp.empty xnp.empty_like lax.empty".split(), _UNSET),
    "xnp.image.scale_and_translate": _VECTORS,
    **dict.fromkeys(
        "xnp.scipy.linalg.eigh_tridiagonal xnp.scipy.linalg.leslie lax.linalg.cholesky_update"
        " lax.linalg.householder_product lax.linalg.ormqr lax.linalg.tridiagonal_solve"
        " xnp.scipy.ndimage.map_coordinates".split(), _VECTORS),
    **dict.fromkeys(
        "xnp.scipy.linalg.cho_solve xnp.scipy.linalg.lu_solve xnp.scipy.special.bessel_jn".split(),
        _ROWS),
    **dict.fromkeys(
        "lax.conv_general_dilated_local lax.conv_general_dilated_patches lax.ragged_dot"
        " lax.ragged_dot_general".split(), _VECTORS),
    **dict.fromkeys(
        "lax.gather lax.scatter lax.scatter_add lax.scatter_max lax.scatter_min lax.scatter_mul"
        " lax.scatter_sub lax.index_take".split(), _NUMBERED),
    **dict.fromkeys(
        "xnp.finfo xnp.iinfo xnp.mask_indices lax.conv_dimension_numbers lax.padtype_to_pads"
        " lax.conv_general_permutations lax.conv_general_shape_tuple lax.conv_shape_tuple"
        " lax.conv_transpose_shape_tuple lax.dtype lax.reduce_window_shape_tuple".split(), _HOST),
}  # fmt: skip

_MODULES: dict[str, ModuleType] = {
    "xnp": xnp,
    "xnp.linalg": xnp.linalg,
    "lax": lax,
    "lax.linalg": xnp.lax.linalg,
    "nn": nn,
    "xnp.fft": xnp.fft,
    "xnp.image": xnp.image,
    "xnp.ops": xnp.ops,
    **{f"xnp.{path}": module_at(xnp, path) for path in MODULES if path.startswith("scipy.")},
}


def _is_drawn(path: str, value: Any) -> bool:
    plain = callable(value) and not isinstance(value, type | Primitive | ModuleType)
    return plain and path not in NOT_DRAWN


def _public(title: str, module: ModuleType) -> dict[str, Callable[..., Any]]:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    found = {f"{title}.{name}": getattr(module, name) for name in names if name[0] != "_"}
    return {path: value for path, value in found.items() if _is_drawn(path, value)}


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return the public functions that random programs draw from, by path, without aliases."""
    found: dict[str, Callable[..., Any]] = {}
    seen: set[int] = set()
    for title, module in _MODULES.items():
        for path, value in _public(title, module).items():
            if id(value) not in seen:
                seen.add(id(value))
                found[path] = value
    return found


# --------------------------------------------------------------------------------------- forms

# A form takes the arrays and a list of whole numbers between 0 and 5 that are not arrays.
Form = Callable[[Sequence[Any], Sequence[int]], tuple[tuple[Any, ...], dict[str, Any]]]

FORMS: dict[str, tuple[int, Form]] = {
    "x": (1, lambda a, n: ((a[0],), {})),
    "x y": (2, lambda a, n: ((a[0], a[1]), {})),
    "x y z": (3, lambda a, n: ((a[0], a[1], a[2]), {})),
    "x axis": (1, lambda a, n: ((a[0],), {"axis": n[0] % 2 - 1})),
    "x axes": (1, lambda a, n: ((a[0], (n[0] % 2,)), {})),
    "x keepdims": (1, lambda a, n: ((a[0],), {"axis": -1, "keepdims": True})),
    "x where": (2, lambda a, n: ((a[0],), {"where": a[1] > 0, "initial": 1})),
    "x y axis": (2, lambda a, n: ((a[0], a[1]), {"axis": n[0] % 2 - 1})),
    "x n": (1, lambda a, n: ((a[0], n[0]), {})),
    "x n n": (1, lambda a, n: ((a[0], n[0], n[1]), {})),
    "x y n": (2, lambda a, n: ((a[0], a[1], n[0]), {})),
    "[x y]": (2, lambda a, n: (([a[0], a[1]],), {})),
    "[x y] axis": (2, lambda a, n: (([a[0], a[1]], n[0] % 2), {})),
    "n": (0, lambda a, n: ((n[0],), {})),
    "n n": (0, lambda a, n: ((n[0], n[1]), {})),
    "shape x": (1, lambda a, n: (((n[0], n[1]), a[0]), {})),
    "x shape": (1, lambda a, n: ((a[0], (n[0], *a[0].shape)), {})),
    "x flat": (1, lambda a, n: ((a[0], (a[0].size,)), {})),
    "text x": (1, lambda a, n: (("ij->ji", a[0]), {})),
    "text x y": (2, lambda a, n: (("ij,jk->ik", a[0], a[1]), {})),
    "x axis dtype": (1, lambda a, n: ((a[0], n[0] % 2, np.int32), {})),
    "x sizes text": (
        1,
        lambda a, n: ((a[0], tuple([max(s + n[0] - 2, 1) for s in a[0].shape]), "linear"), {}),
    ),
    "x order": (1, lambda a, n: ((a[0], tuple(range(a[0].ndim))[::-1]), {})),
    "x zero pads": (1, lambda a, n: ((a[0], a[0].dtype.type(0), ((n[0], 1, 1),) * a[0].ndim), {})),
    "x starts stops": (1, lambda a, n: ((a[0], (0,) * a[0].ndim, a[0].shape), {})),
    "x i sizes": (2, lambda a, n: ((a[0], (a[1],) * a[0].ndim, (1,) * a[0].ndim), {})),
    "x y i": (3, lambda a, n: ((a[0], a[1], (a[2],) * a[0].ndim), {})),
    "x y i axis": (3, lambda a, n: ((a[0], a[1], a[2], n[0] % 2), {})),
    "x y numbers": (2, lambda a, n: ((a[0], a[1], (((a[0].ndim - 1,), (0,)), ((), ()))), {})),
    "x y strides": (2, lambda a, n: ((a[0], a[1], (1 + n[0] % 2,), "SAME"), {})),
    "x y strides pads": (2, lambda a, n: ((a[0], a[1], (1,), ((n[0], n[1]),)), {})),
    "x y strides pads dilations": (
        2,
        lambda a, n: ((a[0], a[1], (1,), ((n[0], n[1]),), None, (1 + n[0] % 2,)), {}),
    ),
    "x y n axis": (2, lambda a, n: ((a[0], a[1], n[0], n[1] % 2), {})),
    "x kind length": (1, lambda a, n: ((a[0], "FFT", a[0].shape[-1:]), {})),
    "x shape dims": (
        1,
        lambda a, n: ((a[0], (n[0], *a[0].shape), tuple(range(1, a[0].ndim + 1))), {}),
    ),
    "x dtype": (1, lambda a, n: ((a[0], ("float32", "int32", "bool", "complex64")[n[0] % 4]), {})),
}


def _standard_operands() -> list[tuple[Any, ...]]:
    """Return the operands on which forms are tried; what takes none of them is not drawn."""
    floats = [from_numpy(np.full(s, 0.5, np.float32)) for s in ((), (3,), (3, 3), (2, 2, 2))]
    whole = [from_numpy(np.full(s, 1, np.int32)) for s in ((), (3,), (3, 3))]
    others = [
        from_numpy(np.ones(s, d)) for s, d in (((3,), bool), ((3,), "complex64"), ((3,), "uint8"))
    ]
    rows = [(x, x, x) for x in (*floats, *whole, *others, from_numpy(np.ones((1, 3), "float32")))]
    mixed = [(floats[1], whole[1], whole[0]), (others[0], floats[1], floats[1])]
    return [*rows, *mixed, (floats[1], whole[0], whole[0]), (floats[1], floats[1], whole[0])]


@functools.cache
def forms_of(path: str) -> tuple[str, ...]:
    """Return the names of the forms that a function takes."""
    return tuple(_forms_taken(path))


def takes_a_form(path: str) -> bool:
    """Return whether there is a form that a function takes."""
    return any(True for _ in _forms_taken(path))


def _forms_taken(path: str) -> Iterator[str]:
    function = functions()[path]
    for name, (_, form) in FORMS.items():
        if any(_accepts(function, form, x, n) for x in _standard_operands() for n in (1, 3)):
            yield name


def _accepts(function: Callable[..., Any], form: Form, arrays: Sequence[Any], number: int) -> bool:
    args, kwargs = form(arrays, (number, number))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args, **kwargs)
    except Exception:
        return False
    return True
