"""References on the host: reading, writing, control flow, errors."""

import copy
import threading

import numpy as np
import pytest

import xnp
from xnp import lax, refs
from xnp.refs import new_ref
from xprim import ShapeDtypeStruct, config, make_jaxpr, typeof
from xprim.refs import AbstractRef


def test_a_reference_is_read_and_written_by_indices():
    expected = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = new_ref(expected)
    for index, value in ((0, 7.0), ((1, slice(0, 2)), 1.0), (..., 2.0), (np.array([1, 0]), 3.0)):
        x[index] = value
        expected[index] = value
        np.testing.assert_array_equal(np.asarray(x[...]), expected)
    x[0, 1] += 5.0
    assert float(x[0, 1]) == 8.0
    assert x.shape == (2, 3) and x.ndim == 2 and x.size == 6 and len(x) == 2
    assert repr(new_ref(xnp.zeros(2))) == "Ref([0., 0.], dtype=float32)"


def test_the_first_value_and_values_that_were_read_stay_as_they_are():
    first = xnp.zeros(3)
    x = new_ref(first)
    x[0] = 1.0
    read = x[...]
    x[1] = 2.0
    assert np.asarray(first).tolist() == [0, 0, 0]
    assert np.asarray(read).tolist() == [1, 0, 0]


def test_addupdate_adds_at_repeated_positions():
    x = new_ref(xnp.zeros(3))
    refs.addupdate(x, np.array([0, 0, 2]), 1.5)
    assert np.asarray(x[...]).tolist() == [3.0, 0.0, 1.5]


def test_swap_returns_what_was_there():
    x = new_ref(xnp.arange(3))
    assert int(refs.swap(x, 1, 9)) == 1
    assert np.asarray(refs.get(x)).tolist() == [0, 9, 2]
    refs.set(x, None, 4)
    assert np.asarray(refs.get(x, slice(1))).tolist() == [4]


def test_a_part_writes_through():
    x = new_ref(xnp.zeros((2, 3)))
    row = x.at[1]
    row[0] = 5.0
    row.at[1:].addupdate(1.0)
    assert np.asarray(x[...]).tolist() == [[0, 0, 0], [5, 1, 1]]
    assert np.asarray(row[...]).tolist() == [5, 1, 1]


def test_the_type_of_a_reference_is_not_weak():
    assert not new_ref(1.0).aval.weak_type
    assert refs.empty_ref(ShapeDtypeStruct((2,), np.int16)).dtype == np.int16


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_loops_write_references_of_outside(steps):
    total, square = new_ref(0.0), new_ref(xnp.zeros(2))

    def step(c, x):
        total[...] += x
        square[1] = total[...] ** 2
        return c + 1, total[...]

    _, sums = lax.scan(step, 0, xnp.arange(float(steps)))
    expected = np.cumsum(np.arange(float(steps)))
    np.testing.assert_allclose(np.asarray(sums), expected)
    last = expected[-1] if steps else 0.0
    assert float(total[...]) == last and float(square[1]) == last**2
    lax.fori_loop(0, steps, lambda i, c: (total.addupdate(1.0), c)[1], 0)
    lax.fori_loop(0, xnp.int32(steps), lambda i, c: (total.addupdate(1.0), c)[1], 0)
    assert float(total[...]) == last + 2 * steps


def test_the_condition_of_a_while_loop_sees_what_the_body_wrote():
    total, limit = new_ref(0), new_ref(7)

    def body(n):
        total[...] += 2
        return n + 1

    assert int(lax.while_loop(lambda n: total[...] < limit[...], body, 0)) == 4
    assert int(total[...]) == 8


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_branches_write_different_references(chosen):
    a, b = new_ref(1.0), new_ref(2.0)

    def add():
        a[...] += b[...]

    def move():
        a[...], b[...] = b[...], a[...]

    lax.switch(chosen, [add, move, lambda: None])
    assert (float(a[...]), float(b[...])) == [(3, 2), (2, 1), (1, 2)][chosen]


def test_a_loop_that_runs_again_reads_the_values_of_then():
    factor = new_ref(2.0)
    kept = [factor[...]]  # the old value lives on

    def product(x):
        return lax.scan(lambda c, x: (c, x * factor[...]), 0, x)[1]

    assert np.asarray(product(xnp.ones(2))).tolist() == [2, 2]
    factor[...] = 3.0
    assert np.asarray(product(xnp.ones(2))).tolist() == [3, 3]
    assert float(kept[0]) == 2.0


def test_a_copy_of_what_holds_a_reference_has_its_own():
    x = new_ref(1.0)
    copied = copy.deepcopy({"a": x, "b": [x]})
    copied["a"][...] = 5.0
    assert copied["a"] is copied["b"][0] and float(x[...]) == 1.0


def test_loops_of_python_write_references_too():
    total = new_ref(0.0)
    with config.disable_jit(True):
        lax.fori_loop(0, 3, lambda i, c: (total.addupdate(1.0), c)[1], 0)
    assert float(total[...]) == 3.0


def test_a_program_that_reads_a_reference_has_its_value_as_a_constant():
    x = new_ref(xnp.arange(3.0))
    closed = make_jaxpr(lambda y: x[...] + y)(1.0)
    assert [c.shape for c in closed.consts] == [(3,)]


def _ended():
    x = new_ref(1.0)
    refs.freeze(x)
    return x


def _outlived():
    made = []

    def make(c, _):
        made.append(new_ref(c))
        return c, None

    lax.scan(make, 0.0, None, length=1)
    return made[0]


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: new_ref(xnp.zeros(3)).__setitem__(0, np.int32(1)), ValueError, "another dtype"),
        (lambda: new_ref(xnp.zeros(3))[7], IndexError, "index 7 is out of bounds"),
        (lambda: new_ref(xnp.zeros(3)).__setitem__(-4, 1.0), IndexError, "index -4 is out"),
        (lambda: new_ref(xnp.zeros(3)).addupdate(1.0, 3), IndexError, "index 3 is out"),
        (lambda: _ended()[...], ValueError, "used after freeze"),
        (lambda: refs.free_ref(_ended()), ValueError, "used after freeze"),
        (lambda: _outlived()[...], ValueError, "outside of the function that made it"),
        (lambda: xnp.sin(new_ref(1.0)), TypeError, "a reference is not an array"),
        (lambda: np.asarray(new_ref(1.0)), TypeError, r"ref\[...\] is its value"),
        (lambda: new_ref([1, 2]), TypeError, "a list is not an array"),
        (lambda: new_ref(1.0, pin=True), ValueError, "memory of their device"),
        (lambda: new_ref(1.0, kind="any"), ValueError, "kind must be None"),
        (lambda: new_ref(xnp.zeros(3, int)).__setitem__(0, 1.5), ValueError, "another dtype"),
        (lambda: new_ref(0).__setitem__(..., xnp.add(1, 0.5)), ValueError, "another dtype"),
        (lambda: new_ref(1.0).__setitem__(..., 1j), ValueError, "another dtype"),
        (lambda: new_ref(False).__setitem__(..., 2), ValueError, "another dtype"),
        (lambda: refs.addupdate(new_ref(xnp.zeros(3, int)), 0, 1.5), ValueError, "another dtype"),
        (lambda: refs.empty_ref(3), TypeError, "a shape and a dtype"),
        (lambda: refs.get(3), TypeError, "it takes a reference"),
        (lambda: len(new_ref(1.0)), TypeError, "rank 0"),
        (
            lambda: lax.while_loop(lambda c: (new.addupdate(1.0), c < 3)[1], lambda c: c + 1, 0),
            ValueError,
            "cond_fun of while_loop cannot write",
        ),
        (
            lambda: lax.scan(lambda c, _: (new.end("freeze"), None), 0.0, None, length=1),
            ValueError,
            "made outside of the function",
        ),
    ],
)
def test_misuse_says_what_is_wrong(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()


new = new_ref(0.0)


def test_each_thread_traces_for_itself():
    errors = []

    def work():
        try:
            x = new_ref(0.0)
            for _ in range(5):
                lax.fori_loop(0, 10, lambda i, c: (x.addupdate(1.0), c)[1], 0)
            assert float(x[...]) == 50.0
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


@pytest.mark.parametrize(
    "use",
    [
        lambda r: r + 1, lambda r: 1 - r, lambda r: xnp.ones(3) * r, lambda r: np.ones(3) * r,
        lambda r: -r, lambda r: r @ r, lambda r: r < 1, lambda r: r**2, abs, float,
    ],
)  # fmt: skip
def test_a_reference_is_no_operand_and_says_how_its_value_is_read(use):
    with pytest.raises(
        TypeError, match=r"(?s)a reference is not an array.*ref\[\.\.\.\] is its value"
    ):
        use(new_ref(xnp.zeros(3)))


def test_typeof_a_reference_is_the_type_of_a_reference():
    kind = typeof(new_ref(xnp.zeros((2, 3))))
    assert isinstance(kind, AbstractRef)
    assert (str(kind), kind.shape, kind.inner_aval) == (
        "Ref{float32[2,3]}", (2, 3), typeof(xnp.zeros((2, 3)))
    )  # fmt: skip
    assert kind == typeof(new_ref(xnp.ones((2, 3)))) != typeof(new_ref(xnp.ones(3)))


@pytest.mark.parametrize("part", [lambda r: r, lambda r: r.at[...], lambda r: r.at[:].at[...]])
def test_references_and_their_parts_have_the_functions_as_methods(part):
    ref = new_ref(xnp.arange(3.0))
    place = part(ref)
    place.set(5.0, 0)
    assert place.get().tolist() == [5.0, 1.0, 2.0]
    assert place.get(0) == 5.0
    assert place.swap(xnp.zeros(2), slice(1, None)).tolist() == [1.0, 2.0]
    assert place.swap(7.0).tolist() == [5.0, 0.0, 0.0]
    place.addupdate(1.0)
    assert ref[...].tolist() == [8.0, 8.0, 8.0]
