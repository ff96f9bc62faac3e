"""`partitioned=True` of prints and callbacks: each device shows the pieces that it has."""

import logging

import numpy as np
import pytest

from xjit import debug, device_put, devices, jit
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, PartitionSpec as P
from xnp import lax

X = np.arange(8, dtype=np.float32)


def over(*parts, shape=(4,), names=("i",)):
    """Return a sharding over four devices."""
    return NamedSharding(Mesh(np.array(devices("cpu")[:4]).reshape(shape), names), P(*parts))


def lines(capsys):
    return sorted(capsys.readouterr().out.splitlines())


def shown(x, *others, fmt="{}"):
    debug.print(fmt, x, *others, partitioned=True)
    return x * 2


def test_each_device_prints_its_piece(capsys):
    f = jit(shown)
    for _ in range(2):
        np.testing.assert_array_equal(f(device_put(X, over("i"))), 2 * X)
        assert lines(capsys) == ["[0. 1.]", "[2. 3.]", "[4. 5.]", "[6. 7.]"]
    f(device_put(X[:2], over()))
    assert lines(capsys) == ["[0. 1.]"] * 4
    f(X[:2])
    assert lines(capsys) == ["[0. 1.]"]


def test_pieces_of_several_arguments_come_together(capsys):
    jit(lambda x, y: shown(x, y, fmt="{} {}"))(device_put(X, over("i")), device_put(X[:2], over()))
    assert lines(capsys) == [f"[{i}. {i + 1}.] [0. 1.]" for i in (0, 2, 4, 6)]


def test_pieces_of_matrices_and_of_what_is_computed():
    seen = []
    x = device_put(np.arange(16.0).reshape(4, 4), over("a", "b", shape=(2, 2), names=("a", "b")))

    @jit
    def f(x):
        debug.callback(lambda v: seen.append(np.asarray(v).tolist()), x + 1, partitioned=True)
        return x.sum()

    assert float(f(x)) == 120
    assert sorted(seen) == [[[1, 2], [5, 6]], [[3, 4], [7, 8]], [[9, 10], [13, 14]],
                            [[11, 12], [15, 16]]]  # fmt: skip


def test_nothing_is_gathered():
    """The program exchanges nothing, where that of whole arrays does."""
    x = device_put(X, over("i"))
    text = jit(shown).lower(x).compile().as_text()
    assert "all-gather" not in text and "all-reduce" not in text


def test_pieces_in_loops_derivatives_and_outside_of_programs(capsys):
    x = device_put(X, over("i"))
    jit(lambda x: lax.scan(lambda c, _: (shown(c), None), x, None, length=2)[0])(x)
    twice = [[i, i + 1] for i in (0.0, 2.0, 4.0, 6.0)]
    assert lines(capsys) == sorted(str(np.array(v, np.float32) * k) for v in twice for k in (1, 2))
    shown(x)
    assert lines(capsys) == ["[0. 1. 2. 3. 4. 5. 6. 7.]"]


def test_pieces_are_logged(caplog):
    with caplog.at_level(logging.INFO, logger="xjit"):
        jit(lambda x: (debug.log("x = {}", x, partitioned=True), x)[1])(device_put(X, over("i")))
    found = sorted(record.getMessage() for record in caplog.records if "x = " in record.msg)
    assert found == ["x = [0. 1.]", "x = [2. 3.]", "x = [4. 5.]", "x = [6. 7.]"]


def test_pieces_have_no_order():
    def f(x):
        debug.print("{}", x, ordered=True, partitioned=True)
        return x

    with pytest.raises(ValueError, match=r"(?s)what they do with pieces has no order.*leave out"):
        jit(f)(device_put(X, over("i")))
    np.testing.assert_array_equal(jit(f)(X), X)  # one device has one piece


def test_what_is_raised_by_one_of_them_is_raised():
    def check(v):
        if v[0] == 4:
            raise KeyError("the third piece")

    f = jit(lambda x: (debug.callback(check, x, partitioned=True), x)[1])
    with pytest.raises(KeyError, match="the third piece"):
        f(device_put(X, over("i")))
    np.testing.assert_array_equal(f(device_put(X + 8, over("i"))), X + 8)


def test_the_function_comes_later(capsys):
    jit(lambda x: (debug.print(partitioned=True)("{}", x), x)[1])(device_put(X, over("i")))
    assert len(lines(capsys)) == 4
