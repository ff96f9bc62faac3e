"""`config.index_checks`: positions in arrays that are out of bounds, known and in programs."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import checkpoint, config, grad, jit, lax, vmap
from xstack.errors import IndexCheckError
from xstack.experimental import checkify

X = xnp.arange(4.0)
WHERE = r"(?s)index: {} is out of bounds for axis 0 with size 4\..*test_index_checks\.py:\d+ in "

BEYOND = {
    "above": ([0, 4], 4), "below": ([-5, 1], -5), "first of several": ([1, 7, 9], 7),
}  # fmt: skip


@pytest.mark.parametrize(("positions", "bad"), BEYOND.values(), ids=BEYOND)
@pytest.mark.parametrize("kind", [np.asarray, xnp.asarray, list], ids=["numpy", "xnp", "list"])
def test_positions_that_are_known_are_refused_as_they_are_written(positions, bad, kind):
    index = kind(positions)
    for use in (lambda: X[index], lambda: X.at[index].get(), lambda: X.at[index].set(0),
                lambda: X.at[index].add(1), lambda: jit(lambda x: x[index])(X),
                lambda: vmap(lambda x: x[index])(X[None])):  # fmt: skip
        with pytest.raises(IndexError, match=WHERE.format(bad)):
            use()


def test_positions_within_bounds_are_read_and_written_as_numpy_does():
    index = np.array([-4, 3, 0])
    np.testing.assert_array_equal(X[index], np.arange(4.0)[index])
    wanted = np.arange(4.0)
    wanted[index] = 7
    np.testing.assert_array_equal(X.at[index].set(7), wanted)
    with config.index_checks("raise"):
        np.testing.assert_array_equal(jit(lambda x, i: x[i])(X, index), np.arange(4.0)[index])
        np.testing.assert_array_equal(jit(lambda x, i: x.at[i].set(7))(X, index), wanted)


MODES = ["clip", "fill", "promise_in_bounds"]


@pytest.mark.parametrize("option", ["known", "raise"])
def test_a_mode_says_what_happens_so_nothing_is_refused(option):
    index = xnp.array([1, 9])
    with config.index_checks(option):
        for compiled in (lambda f: f, jit):
            for mode in MODES:
                compiled(lambda x, i, mode=mode: x.at[i].get(mode=mode))(X, index)
            dropped = compiled(lambda x, i: x.at[i].set(5.0, mode="drop"))(X, index)
            assert dropped.tolist() == [0, 5, 2, 3]
            filled = compiled(lambda x, i: x.at[i].get(fill_value=-1.0))(X, index)
            assert filled.tolist() == [1, -1]
            assert np.isnan(compiled(lambda x, i: xnp.take(x, i, mode="fill"))(X, index)[1])
            beyond = compiled(lambda x, i: x.at[i].set(5.0, wrap_negative_indices=False))
            assert beyond(X, xnp.array([-1, 1])).tolist() == [0, 5, 2, 3]


def _scanned(x, i):
    return lax.scan(lambda carry, k: (carry, x[k]), 0.0, i)[1]


GATHERED = lax.GatherDimensionNumbers((), (0,), (0,))
SCATTERED = lax.ScatterDimensionNumbers((), (0,), (0,))

PROGRAMS = {
    "read": lambda x, i: x[i],
    "read at one": lambda x, i: x[i[1]],
    "written": lambda x, i: x.at[i].set(1.0),
    "in a loop": _scanned,
    "differentiated": grad(lambda x, i: x[i].sum()),
    "recomputed": grad(checkpoint(lambda x, i: xnp.sin(x[i]).sum())),
    "in an inner jit": lambda x, i: jit(lambda i: x[i] * 2)(i),
    "taken": xnp.take,
    "taken along an axis": lambda x, i: xnp.take_along_axis(x, i, 0),
    "put along an axis": lambda x, i: xnp.put_along_axis(x, i, 9.0, 0, inplace=False),
    "gathered": lambda x, i: lax.gather(x, i[:, None], GATHERED, (1,)),
    "scattered": lambda x, i: lax.scatter(x, i[:, None], xnp.ones(2), SCATTERED),
    "added": lambda x, i: lax.scatter_add(x, i[:, None], xnp.ones(2), SCATTERED),
    "applied": lambda x, i: lax.scatter_apply(x, i[:, None], xnp.sin, SCATTERED),
    "a window": lambda x, i: lax.dynamic_slice(x, (i[1],), (1,)),
    "a window in one dimension": lambda x, i: lax.dynamic_slice_in_dim(x, i[1], 1),
    "one position": lambda x, i: lax.dynamic_index_in_dim(x, i[1]),
    "a window written": lambda x, i: lax.dynamic_update_slice(x, xnp.ones(1), (i[1],)),
    "one position written": lambda x, i: lax.dynamic_update_index_in_dim(x, 1.0, i[1], 0),
}


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_compiled_program_raises_with_the_line_where_it_is_asked_for(program):
    index = xnp.array([2, 6])
    with config.index_checks("raise"):
        compiled = jit(program)
        compiled(X, xnp.array([2, 3]))
        with pytest.raises(IndexCheckError, match=WHERE.format(6)):
            compiled(X, index)
    jit(program)(X, index)  # the option is part of what a program is kept by


def test_functions_with_an_answer_of_their_own_give_it_unless_programs_are_to_raise():
    assert np.isnan(xnp.take(X, 9))
    assert lax.dynamic_slice(X, (3,), (2,)).tolist() == [2.0, 3.0]
    for compiled in (lambda f: f, jit):
        window = compiled(lambda k: lax.dynamic_slice(X, (k,), (2,)))
        with config.index_checks("raise"):
            assert window(2).tolist() == [2.0, 3.0] and window(-4).tolist() == [0.0, 1.0]
            for start in (3, -5):
                with pytest.raises(IndexCheckError, match=f"index: {start} is out of bounds"):
                    window(start)


def test_windows_of_gather_and_scatter_are_checked_where_programs_are_to_raise():
    numbers = lax.GatherDimensionNumbers((1,), (), (0,))
    beyond = np.array([[1], [3]])
    read = lambda mode=None: lax.gather(X, beyond, numbers, (2,), mode=mode)  # noqa: E731
    assert read()[1].tolist() == [2.0, 3.0]  # a window that does not fit is moved inside
    with config.index_checks("raise"):
        with pytest.raises(IndexCheckError, match="index: 3 is out of bounds for axis 0"):
            read()
        with pytest.raises(IndexCheckError, match="index: -1 is out of bounds for axis 0"):
            lax.scatter_mul(X, np.array([[-1]]), np.ones(1, np.float32), SCATTERED)
        assert np.isnan(read("fill")[1]).all() and read("clip")[1].tolist() == [2.0, 3.0]
        assert xstack.ops.segment_sum(X, np.array([0, 1, 9, 9]), 2).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
def test_nothing_is_written_where_there_are_no_elements(mode):
    empty, index = xnp.zeros((0, 2)), xnp.array([0, 3])
    for compiled in (lambda f: f, jit):
        for write in (
            lambda x, i: x.at[i].set(1.0, mode=mode),
            lambda x, i: x.at[i, 1].add(1.0, mode=mode),
            lambda x, i: x.at[5].set(1.0, mode=mode),
        ):
            assert compiled(write)(empty, index).shape == (0, 2)
    with pytest.raises(ValueError, match="do not broadcast"):
        empty.at[index].set(xnp.ones(3), mode=mode)


def test_writing_where_there_are_no_elements_is_refused_as_other_places_out_of_bounds():
    empty, index = xnp.zeros(0), xnp.array([0, 3])
    write = lambda x, i: x.at[i].set(1.0)  # noqa: E731
    with pytest.raises(IndexError, match=r"dimension 0 of shape .* has no elements to update"):
        write(empty, index)
    assert jit(write)(empty, index).shape == (0,)
    with config.index_checks("raise"), pytest.raises(IndexError, match="has no elements to update"):
        jit(write)(empty, index)
    with config.index_checks("allow"):
        assert write(empty, index).shape == (0,)


def _turns(k):
    return lax.while_loop(lambda c: c[0] < k, lambda c: (c[0] + 1, c[1] + X[c[0]]), (0, 0.0))[1]


BRANCHES = {
    "read": lambda i: X[i],
    "in an inner jit": lambda i: jit(lambda i: X[i])(i),
    "in a scan": lambda i: lax.scan(lambda c, k: (c + X[k], None), 0.0, xnp.stack([i, i]))[0],
    "in a loop of known length": lambda i: lax.fori_loop(0, 2, lambda k, c: c + X[i], 0.0),
    "in a loop": lambda i: _turns(i + 1),
    "in another branch": lambda i: lax.cond(i > 2, lambda: X[i], lambda: 1.0),
    "recomputed": lambda i: checkpoint(lambda j: X[j] * 2)(i),
    "mapped": lambda i: vmap(lambda j: X[j])(xnp.stack([i, i])).sum(),
    "differentiated": lambda i: grad(lambda w: w * X[i])(1.0),
}


@pytest.mark.parametrize("branch", BRANCHES.values(), ids=BRANCHES)
def test_a_branch_of_a_batch_is_checked_for_the_examples_that_take_it(branch):
    def program(takes, i):
        return lax.cond(takes, branch, lambda i: 0.0, i)

    positions, run = xnp.array([9, 3, 8]), jit(vmap(program))
    with config.index_checks("raise"):
        found = run(xnp.array([False, True, False]), positions)
        assert found.tolist() == [0.0, float(branch(3)), 0.0]
        with pytest.raises(
            IndexCheckError, match=r"index: [48] is out .* \(at mapped index 2(, 0)?\)"
        ):
            run(xnp.array([False, True, True]), positions)


def test_a_loop_of_a_batch_is_checked_for_the_examples_that_go_on():
    def first_after(k):
        return lax.while_loop(lambda i: X[i] < 3, lambda i: i + 1, k)

    with config.index_checks("raise"):
        assert jit(vmap(_turns))(xnp.array([2, 4])).tolist() == [1.0, 6.0]
        assert jit(vmap(first_after))(xnp.array([3, 0])).tolist() == [3, 3]
        with pytest.raises(
            IndexCheckError, match=r"index: 4 is out of bounds .* \(at mapped index 1\)"
        ):
            jit(vmap(_turns))(xnp.array([2, 5]))


def test_the_example_of_a_batch_is_named():
    with (
        config.index_checks("raise"),
        pytest.raises(IndexError, match=r"index: 5 .* \(at mapped index 2\)"),
    ):
        jit(vmap(lambda i: X[i]))(xnp.array([0, 3, 5]))


@pytest.mark.parametrize(("dtype", "bad"), [(np.int8, -5), (np.uint8, 200), (np.uint32, 2**31)])
def test_positions_of_any_integer_dtype_are_compared_as_what_they_are(dtype, bad):
    index = np.array([1, bad], dtype)
    with config.index_checks("raise"), pytest.raises(IndexError, match=f"index: {bad} is out"):
        jit(lambda i: X[i])(index)
    long = xnp.zeros(300)
    with config.index_checks("raise"):
        assert not jit(lambda i: long[i])(np.array([-128, 127], np.int8)).any()


def test_checkify_makes_a_value_of_it_where_it_asks_for_indices():
    def read(i):
        return X[i]

    with config.index_checks("raise"):
        error, _ = checkify.checkify(read, errors=checkify.index_checks)(7)
        assert "7 is out of bounds" in error.get()
        with pytest.raises(IndexError, match="7 is out of bounds"):
            checkify.checkify(jit(read))(7)


def test_nothing_is_refused_where_the_option_allows_it():
    with config.index_checks("allow"):
        assert X[xnp.array([9])].tolist() == [3.0]
        assert X.at[xnp.array([9])].set(0.0).tolist() == X.tolist()
    with pytest.raises(ValueError, match="does not take this value"):
        xstack.config.update("index_checks", "warn")


def test_where_all_is_allowed_known_positions_are_moved_inside():
    x, column = xnp.arange(3), xnp.arange(6).reshape(2, 3)
    with config.index_checks("allow"):
        for f in (lambda g: g, jit):
            assert int(f(lambda x: x[5])(x)) == 2 and int(f(lambda x: x[-9])(x)) == 0
            assert f(lambda x: x[7, 1:])(column).tolist() == [4, 5]
            assert f(lambda x: x.at[5].set(9))(x).tolist() == [0, 1, 2]
        with pytest.raises(IndexError, match="Too many indices"):
            jit(lambda x: x[0, 0])(x)
    for f in (lambda g: g, jit):  # nothing that was found out then is kept
        with pytest.raises(IndexError):
            f(lambda x: x[5])(x)
        with pytest.raises(IndexError):
            f(lambda x: x.at[5].set(9))(x)


def test_nested_sequences_of_traced_positions_are_an_index():
    x = np.arange(12).reshape(3, 4)
    for index in (((1, 2), (0, 3)), (((1, 1), (2, 0)), 3), ([1, 2], 0)):
        got = jit(lambda i: xnp.asarray(x)[i])(index)
        np.testing.assert_array_equal(got, x[index])
