"""Arrays of extended dtypes: operations that move elements, against NumPy on the elements' numbers.

An element is named by an integer, and made of numbers that are different for each name. NumPy does
to an array of names what the operation does to the array of elements; then the names are looked up.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xnp.numpy as xnp
from xnp import lax
from xprim import ELEMENTWISE, STRUCTURAL, dtypes, get_primitive, make_jaxpr, primitives
from xprim.extended import physical, unwrap, wrap


class Angle(dtypes.ExtendedDType):
    name, base, elements = "angle<turns>", dtypes.uint16, "angles"
    hint = "angle.turns(x) gives numbers"


class Pair(dtypes.ExtendedDType):
    name, base, element_shape, elements = "pair<u32>", dtypes.uint32, (2,), "pairs"


class Pose(dtypes.ExtendedDType):
    name, base, element_shape, elements = "pose<2d>", dtypes.float32, (2, 3), "poses"


DTYPES = [Angle(), Pair(), Pose()]
NAMES = np.arange(6).reshape(2, 3)

Operation = Callable[[Any, Any], Any]
OPERATIONS: dict[str, Operation] = {
    "reshape": lambda np_, x: x.reshape(3, 2),
    "reshape in the order of columns": lambda np_, x: np_.reshape(x, (3, 2), order="F"),
    "ravel": lambda np_, x: x.ravel(),
    "transpose": lambda np_, x: x.T,
    "moveaxis": lambda np_, x: np_.moveaxis(x, 0, 1),
    "expand and squeeze": lambda np_, x: np_.squeeze(np_.expand_dims(x, (0, 3)), 0),
    "an element": lambda np_, x: x[1, -1],
    "a row": lambda np_, x: x[-1],
    "slices with steps": lambda np_, x: x[::-1, ::2],
    "new axes and an ellipsis": lambda np_, x: x[None, ..., 1],
    "an index array": lambda np_, x: x[:, np.array([2, 0, 2, 1])],
    "two index arrays": lambda np_, x: x[np.array([[1, 0]]), np.array([2, 1])],
    "a mask": lambda np_, x: x[:, np.array([True, False, True])],
    "no rows": lambda np_, x: x[:0],
    "take": lambda np_, x: np_.take(x, np.array([1, 1, 0]), axis=0),
    "take_along_axis": lambda np_, x: np_.take_along_axis(x, np.array([[2, 0], [1, 1]]), 1),
    "concatenate": lambda np_, x: np_.concatenate([x, x[:, :1]], 1),
    "stack": lambda np_, x: np_.stack([x[0], x[1], x[0]], 1),
    "where": lambda np_, x: np_.where(np.array([True, False, True]), x, x[::-1]),
    "where of one": lambda np_, x: np_.where(np.array([[True], [False]]), x, x[0, 0]),
    "broadcast_to": lambda np_, x: np_.broadcast_to(x[0], (4, 3)),
    "flip": lambda np_, x: np_.flip(x, 1),
    "roll": lambda np_, x: np_.roll(x, 1, axis=1),
    "tile": lambda np_, x: np_.tile(x, (2, 2)),
    "repeat": lambda np_, x: np_.repeat(x, np.array([2, 0, 1]), axis=1),
    "rot90": lambda np_, x: np_.rot90(x),
    "split": lambda np_, x: np_.split(x, 3, axis=1)[1],
    "diagonal": lambda np_, x: np_.diagonal(x),
    "pad with the edge": lambda np_, x: np_.pad(x, ((1, 0), (0, 2)), mode="edge"),
    "iteration": lambda np_, x: list(x)[1],
    "reversed": lambda np_, x: list(reversed(x))[1],
    "copy": lambda np_, x: np_.copy(x),
    "delete": lambda np_, x: np_.delete(x, 1, axis=1),
    "append": lambda np_, x: np_.append(x, x[0]),
    "compress": lambda np_, x: np_.compress(np.array([False, True]), x, axis=0),
}


def _set(index: Any, value: Any, x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[index] = value
    return out


# Operations without a form in NumPy, and what NumPy does in their place.
WRITTEN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "set a row": (lambda x: x.at[0].set(x[1]), lambda n: _set(0, n[1], n)),
    "set an element": (lambda x: x.at[1, 2].set(x[0, 0]), lambda n: _set((1, 2), n[0, 0], n)),
    "set by an array": (
        lambda x: x.at[:, np.array([2, 0])].set(x[:, 1:]),
        lambda n: _set((slice(None), [2, 0]), n[:, 1:], n),
    ),
    "set slices": (lambda x: x.at[:, 1:].set(x[:, :2]), lambda n: _set(np.s_[:, 1:], n[:, :2], n)),
    "set out of bounds": (
            lambda x: x.at[np.array([7])].set(x[:1], mode="drop"), lambda n: n,
        ),
    "get": (lambda x: x.at[np.array([1, 0]), 1].get(), lambda n: n[[1, 0], 1]),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (0, 5), (2, 2)), lambda n: n[:, 1:]),
    "dynamic_update_slice": (
        lambda x: lax.dynamic_update_slice(x, x[:1, :2], (1, 9)),
        lambda n: _set((1, slice(1, 3)), n[0, :2], n),
    ),
    "dynamic_index_in_dim": (
        lambda x: lax.dynamic_index_in_dim(x, 2, 1, keepdims=False),
        lambda n: n[:, 2],
    ),
    "rev": (lambda x: lax.rev(x, (0, 1)), lambda n: n[::-1, ::-1]),
    "pad with an element": (
        lambda x: lax.pad(x, x[1, 1], [(1, 0, 0), (-1, 1, 1)]),
        lambda n: np.array([[n[1, 1]] * 5, *[[n[1, 1], r[1], n[1, 1], r[2], n[1, 1]] for r in n]]),
    ),
    "select_n": (
        lambda x: lax.select_n(np.array([0, 1, 2], np.int32), x[0], x[1], x[0, ::-1]),
        lambda n: np.array([n[0, 0], n[1, 1], n[0, 0]]),
    ),
    "optimization_barrier": (lambda x: lax.optimization_barrier((x, 1.0))[0], lambda n: n),
    "cond": (lambda x: lax.cond(True, lambda x: x[0], lambda x: x[1], x), lambda n: n[0]),
    "switch": (lambda x: lax.switch(1, [lambda x: x[0], lambda x: x[1]], x), lambda n: n[1]),
    "the carry of a scan": (
        lambda x: lax.scan(lambda c, y: (c[::-1].at[0].set(y[0]), None), x[0], x)[0],
        lambda n: np.array([n[1, 0], n[0, 1], n[0, 0]]),
    ),
    "what a scan stacks": (
        lambda x: lax.scan(lambda c, y: (y, (c, y[1])), x[0], x, reverse=True)[1][0],
        lambda n: n[[1, 0]],
    ),
    "fori_loop": (lambda x: lax.fori_loop(0, 2, lambda i, c: c.at[i].set(c[1 - i]), x),
                  lambda n: n[[1, 1]]),
    "while_loop": (
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1].T), (0, x[:, 1:]))[
            1
        ],
        lambda n: n[:, 1:].T,
    ),
    "map": (lambda x: lax.map(lambda row: row[::-1], x), lambda n: n[:, ::-1]),
    "an array of a list": (lambda x: xnp.array([x[0, 1], x[1, 0]]), lambda n: n[[0, 1], [1, 0]]),
    "full": (lambda x: xnp.full((2, 2), x[1, 0]), lambda n: np.full((2, 2), n[1, 0])),
}  # fmt: skip


def _table(dtype: dtypes.ExtendedDType) -> np.ndarray:
    """Return the numbers of each element, all different."""
    return (np.arange(6 * int(np.prod(dtype.element_shape))) + 1).astype(dtype.base).reshape(
        6, *dtype.element_shape
    )  # fmt: skip


def _elements(dtype: dtypes.ExtendedDType) -> Any:
    return wrap(_table(dtype)[NAMES], dtype)


def _assert_elements(found: Any, names: Any, dtype: dtypes.ExtendedDType) -> None:
    assert found.dtype is dtype
    assert found.shape == np.shape(names)
    np.testing.assert_array_equal(np.asarray(unwrap(found)), _table(dtype)[names])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_moves_elements_as_numpy_moves_their_names(
    name: str, dtype: dtypes.ExtendedDType
) -> None:
    operation = OPERATIONS[name]
    _assert_elements(operation(xnp, _elements(dtype)), operation(np, NAMES), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", WRITTEN)
def test_an_operation_of_ours_moves_elements_as_it_would_move_their_names(
    name: str, dtype: dtypes.ExtendedDType
) -> None:
    operation, of_names = WRITTEN[name]
    _assert_elements(operation(_elements(dtype)), of_names(NAMES), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_are_equal_where_all_of_their_numbers_are(dtype: dtypes.ExtendedDType) -> None:
    x = _elements(dtype)
    y = x.at[0, 1].set(x[0, 0])
    np.testing.assert_array_equal(np.asarray(x == y), NAMES != 1)
    np.testing.assert_array_equal(np.asarray(x != y), NAMES == 1)
    np.testing.assert_array_equal(np.asarray(x == x[0, 0]), NAMES == 0)
    last = np.array(_table(dtype)[NAMES])
    last.reshape(6, -1)[:, -1] += 1
    if dtype.element_shape:  # one number that differs is enough
        assert not np.asarray(x == wrap(last, dtype)).any()
    assert bool(xnp.array_equal(x, x))
    assert not bool(xnp.array_equal(x, y))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_filled_arrays_are_made_of_the_number(dtype: dtypes.ExtendedDType) -> None:
    for made, value in ((xnp.zeros, 0), (xnp.empty, 0), (xnp.ones, 1)):
        for shape in ((2,), (5000,)):  # small and large ones are made in different ways
            found = made(shape, dtype)
            assert (found.shape, found.dtype) == (shape, dtype)
            assert (np.asarray(unwrap(found)) == value).all()
    x = _elements(dtype)
    assert xnp.zeros_like(x).aval is x.aval
    assert (np.asarray(unwrap(lax.full((2,), 3, dtype))) == 3).all()


def test_programs_are_staged_with_elements_and_become_programs_of_numbers() -> None:
    dtype = Pair()
    closed = make_jaxpr(lambda x: lax.scan(lambda c, y: (y[::-1], c[0]), x[0], x))(_elements(dtype))
    assert [a.str_short() for a in closed.out_avals] == ["pair<u32>[3]", "pair<u32>[2]"]
    program = physical(closed)
    assert [a.str_short() for a in program.in_avals] == ["u32[2,3,2]"]
    assert [a.str_short() for a in program.out_avals] == ["u32[3,2]", "u32[2,2]"]
    assert "pair" not in str(program)
    assert physical(closed) is program
    assert physical(program) is program


def test_elements_that_are_captured_are_constants_of_the_program() -> None:
    x = _elements(Pair())
    closed = make_jaxpr(lambda i: x[i])(0)
    assert [c.aval.str_short() for c in closed.consts] == ["pair<u32>[2,3]"]
    scalar = make_jaxpr(lambda i: (i, x[0, 0]))(0)
    assert scalar.out_avals[1] is x[0, 0].aval
    assert physical(scalar).out_avals[1].str_short() == "u32[2]"


def test_arrays_of_elements_are_written_printed_and_copied() -> None:
    for dtype in (Angle(), Pose()):
        x = _elements(dtype)
        for again in (copy.copy(x), copy.deepcopy(x), x.copy()):
            _assert_elements(again, NAMES, dtype)
    assert repr(_elements(Angle())[1]) == "Array([4, 5, 6], shape=(3,), dtype=angle<turns>)"


ONE = Angle()


class _OneAngle(dtypes.ExtendedDType):
    name, base, elements = "angle<one>", dtypes.uint16, "angles"

    def __reduce__(self) -> str:
        return "ONE_ANGLE"


ONE_ANGLE = _OneAngle()


def test_a_dtype_that_is_one_object_is_that_object_after_pickling() -> None:
    again = pickle.loads(pickle.dumps(_elements(ONE_ANGLE)))
    _assert_elements(again, NAMES, ONE_ANGLE)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x + x, lambda x: -x, lambda x: x < x, lambda x: xnp.sin(x), lambda x: x.sum(),
        lambda x: xnp.dot(x, x.T), lambda x: x.max(), lambda x: xnp.sort(x), lambda x: x.argmin(),
        lambda x: x.astype("int32"), lambda x: x.at[0].add(x[1]), lambda x: xnp.nonzero(x),
        lambda x: xnp.where(x, 1, 2), lambda x: lax.cumsum(x), np.asarray, lambda x: int(x[0, 0]),
        lambda x: lax.bitcast_convert_type(x, "uint16"),
        *[getattr(xnp, name) for name in (
            "real", "imag", "conj", "isreal", "iscomplex", "isnan", "isinf", "isposinf", "signbit",
            "nan_to_num", "clip", "positive", "isfinite")],
        *[lambda x, name=name: getattr(xnp, name)(x[0, 0]) for name in (
            "sum", "prod", "max", "min", "nansum", "nanmax", "mean", "all")],
    ],
)  # fmt: skip
def test_an_operation_on_numbers_refuses_elements_by_their_name(operation: Any) -> None:
    with pytest.raises(TypeError, match=r"^[\w.]+: angles are not numbers\.") as caught:
        operation(_elements(ONE))
    assert "got       angle<turns>[" in str(caught.value)
    assert "hint      angle.turns(x) gives numbers" in str(caught.value)


def test_elements_of_two_dtypes_do_not_mix() -> None:
    x, y = _elements(Angle()), _elements(Pair())
    for operation in (
        lambda: xnp.concatenate([x, y]),
        lambda: xnp.where(True, x, y),
        lambda: x == y,
        lambda: x == 3,
        lambda: x.at[0].set(1),
        lambda: x.at[0].set(y[0]),
        lambda: xnp.arange(3).at[0].set(x[0, 0]),
        lambda: xnp.pad(x, 1),
        lambda: xnp.arange(3).astype(Angle()),
    ):
        with pytest.raises(TypeError):
            operation()
    again = lax.optimization_barrier((x, 1.0, y))
    _assert_elements(again[0], NAMES, x.dtype)
    _assert_elements(again[2], NAMES, y.dtype)


def test_wrap_refuses_numbers_that_are_not_those_of_elements() -> None:
    with pytest.raises(TypeError, match=r"wrap: these are not the numbers of poses(.|\n)*2, 3\]"):
        wrap(np.zeros((4, 3, 2), np.float32), Pose())
    with pytest.raises(TypeError, match=r"got       int32\[4,2,3\]"):
        wrap(np.zeros((4, 2, 3), np.int32), Pose())
    with pytest.raises(TypeError, match="unwrap: the array holds numbers already"):
        unwrap(xnp.zeros(3))


def test_every_primitive_that_only_moves_elements_says_so() -> None:
    structural = {p.name for p in primitives() if p.rules.get("physical") is STRUCTURAL}
    assert structural >= {
        "broadcast_in_dim", "concatenate", "copy", "dynamic_slice", "dynamic_update_slice",
        "gather", "pad", "reshape", "rev", "scatter", "select_n", "slice",
        "split", "squeeze", "stop_gradient", "transpose",
    }  # fmt: skip
    for name in structural:
        assert get_primitive(name).rules["batch"] is ELEMENTWISE or callable(
            get_primitive(name).rules["batch"]
        )
