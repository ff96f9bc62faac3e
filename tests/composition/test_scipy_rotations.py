"""Rotations, compared with SciPy's, and under transformations."""

import itertools

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xrandom
from xnp.scipy.spatial.transform import Rotation, Slerp
from xprim import config

theirs = pytest.importorskip("scipy.spatial.transform")

rng = np.random.default_rng(8)
QUATERNIONS, VECTORS = rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
OTHERS = theirs.Rotation.from_quat(QUATERNIONS)


@pytest.fixture(autouse=True)
def _double():
    with config.enable_x64(True):
        yield


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_forms_of_rotations_are_those_of_scipy():
    for quaternions in (QUATERNIONS, QUATERNIONS[0]):
        ours, other = Rotation.from_quat(quaternions), theirs.Rotation.from_quat(quaternions)
        near(ours.as_quat(), other.as_quat())
        near(
            ours.as_quat(canonical=True, scalar_first=True),
            other.as_quat(canonical=True, scalar_first=True),
        )
        near(ours.as_matrix(), other.as_matrix())
        near(ours.as_rotvec(), other.as_rotvec())
        near(ours.as_rotvec(degrees=True), other.as_rotvec(degrees=True))
        near(ours.as_mrp(), other.as_mrp())
        near(ours.magnitude(), other.magnitude())
        near(ours.inv().as_quat(), other.inv().as_quat())
        assert ours.single == other.single
    near(Rotation.from_matrix(OTHERS.as_matrix()).as_matrix(), OTHERS.as_matrix())
    near(Rotation.from_rotvec(VECTORS).as_quat(), theirs.Rotation.from_rotvec(VECTORS).as_quat())
    near(Rotation.from_rotvec(1e-5 * VECTORS).as_rotvec(), 1e-5 * VECTORS)
    near(Rotation.from_rotvec(0 * VECTORS[0]).as_quat(), [0, 0, 0, 1])
    near(Rotation.from_mrp(VECTORS).as_matrix(), theirs.Rotation.from_mrp(VECTORS).as_matrix())


@pytest.mark.parametrize("case", [str.lower, str.upper], ids=["fixed", "turning"])
def test_angles_of_euler_are_those_of_scipy(case):
    ours, angles = Rotation.from_quat(QUATERNIONS), rng.uniform(-3, 3, size=(4, 3))
    for axes in itertools.product("xyz", repeat=3):
        if axes[0] == axes[1] or axes[1] == axes[2]:
            continue
        seq = case("".join(axes))
        near(ours.as_euler(seq), OTHERS.as_euler(seq))
        near(Rotation.from_euler(seq, angles).as_matrix(),
             theirs.Rotation.from_euler(seq, angles).as_matrix())  # fmt: skip
        locked = [0.3, 0.0 if axes[0] == axes[2] else np.pi / 2, 0.4]
        matrix = theirs.Rotation.from_euler(seq, locked).as_matrix()
        found = Rotation.from_matrix(matrix).as_euler(seq)
        near(found[2], 0.0)
        np.testing.assert_allclose(Rotation.from_euler(seq, found).as_matrix(), matrix, atol=1e-7)
    near(Rotation.from_euler(case("z"), 90.0, degrees=True).as_rotvec(), [0, 0, np.pi / 2])
    near(Rotation.from_euler(case("zx"), angles[:, :2]).as_matrix(),
         theirs.Rotation.from_euler(case("zx"), angles[:, :2]).as_matrix())  # fmt: skip


def test_products_means_and_turned_vectors_are_those_of_scipy():
    ours = Rotation.from_quat(QUATERNIONS)
    near((ours * ours[0]).as_matrix(), (OTHERS * OTHERS[0]).as_matrix())
    near(ours.apply(VECTORS), OTHERS.apply(VECTORS))
    near(ours[1].apply(VECTORS, inverse=True), OTHERS[1].apply(VECTORS, inverse=True))
    weights = rng.uniform(size=6)
    near(ours.mean().as_matrix(), OTHERS.mean().as_matrix())
    near(ours.mean(weights).as_matrix(), OTHERS.mean(weights).as_matrix())
    assert len(Rotation.concatenate([ours, ours[2]])) == 7 and len(Rotation.identity(3)) == 3


def test_rotations_between_rotations_are_those_of_scipy():
    times, at = np.array([0.0, 1.0, 1.5, 2.0, 4.0, 5.0]), np.linspace(0, 5, 11)
    ours = Slerp.init(times, Rotation.from_quat(QUATERNIONS))
    near(ours(at).as_matrix(), theirs.Slerp(times, OTHERS)(at).as_matrix())
    near(
        xjit.jit(lambda s, t: s(t).as_matrix())(ours, 0.7),
        theirs.Slerp(times, OTHERS)(0.7).as_matrix(),
    )


def test_rotations_are_drawn_differentiated_and_batched():
    drawn = Rotation.random(xrandom.key(0), 2000)
    assert abs(np.asarray(drawn.as_matrix()).mean(0)).max() < 0.06  # four standard errors
    near((np.asarray(drawn.quat) ** 2).sum(-1), np.ones(2000))
    turn = lambda v: Rotation.from_rotvec(v).apply(VECTORS[1])[0]  # noqa: E731
    step = 1e-6 * np.eye(3)
    expected = [(turn(VECTORS[0] + s) - turn(VECTORS[0] - s)) / 2e-6 for s in step]
    np.testing.assert_allclose(xad.grad(turn)(VECTORS[0]), expected, rtol=1e-6)
    assert np.isfinite(xad.grad(turn)(np.zeros(3))).all()
    assert np.isfinite(
        xad.grad(lambda q: Rotation(q).as_rotvec().sum())(np.array([0, 0, 0, 1.0]))
    ).all()
    near(xbatch.vmap(lambda r: r.as_matrix())(Rotation.from_quat(QUATERNIONS)), OTHERS.as_matrix())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Rotation.from_quat(np.ones(3)), "Rotation.from_quat: the shape does not fit"),
        (lambda: Rotation.from_matrix(np.ones(3)), "Rotation.from_matrix: takes matrices"),
        (lambda: Rotation.from_euler("ab", np.ones(2)), "Rotation: these axes do not exist"),
        (lambda: Rotation.from_euler("xy", np.ones(3)), "an angle for each axis"),
        (lambda: Rotation.identity().as_euler("xxy"), "takes three axes, neighbours different"),
        (lambda: Slerp.init(np.ones(2), Rotation.identity(3)), "a time for each"),
    ],
)
def test_what_is_refused_says_why(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_a_single_rotation_has_no_length():
    with pytest.raises(TypeError, match="a single rotation has no length"):
        len(Rotation.identity())
    with pytest.raises(TypeError, match="a single rotation has no elements"):
        Rotation.identity()[0]
