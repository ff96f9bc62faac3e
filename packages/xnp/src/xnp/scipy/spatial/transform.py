"""Rotations in three dimensions: `Rotation`, and `Slerp` between them.

A rotation is a unit quaternion (x, y, z, w), the scalar last. Formulas: J. Diebel, Representing
attitude (2006); of Euler angles E. Bernardes and S. Viollet, Quaternion to Euler angles conversion
(2022); of the mean F. Markley et al., Averaging quaternions (2007).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import xnp.numpy as xn
import xtree
from xnp import linalg
from xnp.numpy.dispatch import inexact
from xnp.scipy import special
from xnp.scipy.stats.descriptive import uniform
from xprim import Array, dtypes
from xprim.errors import message
from xprim.requirements import require
from xprim.typing import ArrayLike
from xtree.boundaries import boundary_methods

__all__ = ["Rotation", "Slerp"]

__dir__ = __all__.copy


@boundary_methods
class Rotation:
    """One rotation, or several.

    Args:
      quat: a unit quaternion of shape (4,), or several of shape (n, 4), which are taken as they
        are; `from_quat` makes their length 1.

    It is a pytree, so functions that are transformed take and return it.

    Example:
      >>> import numpy as np
      >>> turn = Rotation.from_euler("z", np.float32(90), degrees=True)
      >>> turn.apply(np.float32([1, 0, 0])).round(3).tolist()
      [0.0, 1.0, 0.0]
    """

    quat: Any
    __slots__ = ("quat",)

    def __init__(self, quat: ArrayLike) -> None:
        self.quat = quat

    # --- made from -----------------------------------------------------------------------------

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """Return rotations of quaternions (x, y, z, w) of any length but 0."""
        q = _of_shape("from_quat", quat, 4)
        return cls(q / _norm(q))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Return rotations of orthogonal matrices of shape (3, 3) or (n, 3, 3)."""
        (m,) = inexact("Rotation.from_matrix", matrix)
        require(
            m.ndim in (2, 3) and m.shape[-2:] == (3, 3), "Rotation.from_matrix", "takes matrices.",
            got=m, expected="shape (3, 3) or (n, 3, 3)",
        )  # fmt: skip
        a, b, c = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
        # four multiples of the quaternion, of which the longest has no cancellation
        xy, xz, yz = (m[..., i, j] + m[..., j, i] for i, j in ((1, 0), (0, 2), (2, 1)))
        dx, dy, dz = (m[..., i, j] - m[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
        rows = [[1 + a - b - c, xy, xz, dx], [xy, 1 - a + b - c, yz, dy],
                [xz, yz, 1 - a - b + c, dz], [dx, dy, dz, 1 + a + b + c]]  # fmt: skip
        candidates = xn.stack([xn.stack(row, -1) for row in rows], -2)
        best = xn.stack([rows[i][i] for i in range(4)], -1).argmax(-1)
        q = xn.take_along_axis(candidates, best[..., None, None], -2)[..., 0, :]
        return cls(q / _norm(q))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Return rotations about vectors of shape (3,) or (n, 3), by their lengths as angles."""
        v = _of_shape("from_rotvec", rotvec, 3)
        v = xn.deg2rad(v) if degrees else v
        square = (v * v).sum(-1, keepdims=True)
        small = square < 1e-6
        angle = xn.sqrt(xn.where(small, 1, square))
        series = 0.5 - square / 48 + square * square / 3840  # sin(angle / 2) / angle
        scale = xn.where(small, series, xn.sin(angle / 2) / angle)
        cosine = xn.where(small, 1 - square / 8 + square * square / 384, xn.cos(angle / 2))
        return cls(xn.concatenate([v * scale, cosine], -1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Return rotations of modified Rodrigues parameters, of shape (3,) or (n, 3)."""
        m = _of_shape("from_mrp", mrp, 3)
        square = (m * m).sum(-1, keepdims=True)
        return cls(xn.concatenate([2 * m, 1 - square], -1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Return rotations about axes one after the other.

        Args:
          seq: one to three axes: "xyz" for axes that stay, "XYZ" for those that turn along.
          angles: of shape () or (n,) for one axis, (k,) or (n, k) for k axes.
          degrees: whether angles are in degrees, not radians.
        """
        axes, turning = _axes(seq)
        (a,) = inexact("Rotation.from_euler", xn.asarray(angles))
        a = a.astype(a.dtype)  # a rotation by a Python number has a dtype as any other
        if len(axes) == 1 and (not a.ndim or a.shape[-1] != 1 or a.ndim == 1):
            a = a[..., None]
        if not 1 <= a.ndim <= 2 or a.shape[-1] != len(axes):
            raise ValueError(message(
                "Rotation.from_euler", "there must be an angle for each axis.",
                got=f"{a.aval.str_long()} for {seq!r}",
            ))  # fmt: skip
        a = xn.deg2rad(a) if degrees else a
        total: Array | None = None
        for i, axis in enumerate(axes):
            half = a[..., i] / 2
            parts = [xn.zeros_like(half)] * 3
            parts[axis] = xn.sin(half)
            q = xn.stack([*parts, xn.cos(half)], -1)
            if total is not None:
                q = _product(total, q) if turning else _product(q, total)
            total = q
        return cls(total)  # type: ignore[arg-type]

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """Return one rotation that changes nothing, or `num` of them."""
        q = xn.asarray([0, 0, 0, 1], dtypes.requested_dtype(dtype, "Rotation.identity"))
        return cls(q if num is None else xn.tile(q, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Draw rotations, all equally likely, with a random key."""
        shape = (4,) if num is None else (num, 4)
        return cls.from_quat(special.ndtri(uniform(random_key, shape)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Return the rotations of several objects in one."""
        return cls(xn.concatenate([xn.atleast_2d(r.quat) for r in rotations]))

    # --- shown as ------------------------------------------------------------------------------

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return quaternions; with `canonical` of the two the one whose scalar is not negative."""
        q = _canonical(self.quat) if canonical else self.quat
        return xn.roll(q, 1, axis=-1) if scalar_first else q

    def as_matrix(self) -> Array:
        """Return matrices of shape (3, 3) or (n, 3, 3)."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        xx, yy, zz, ww = x * x, y * y, z * z, w * w
        rows = [[xx - yy - zz + ww, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), -xx + yy - zz + ww, 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), -xx - yy + zz + ww]]  # fmt: skip
        return xn.stack([xn.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return vectors along the axes, as long as the angles, from 0 to pi."""
        q = _canonical(self.quat)
        v, w = q[..., :3], q[..., 3:]
        square = (v * v).sum(-1, keepdims=True)
        small = square < 1e-6
        sine = xn.sqrt(xn.where(small, 1, square))
        # angle / sin(angle / 2), with the sine s: 2 asin(s) / s
        series = 2 + square / 3 + square * square * (3 / 20)
        scale = xn.where(small, series, 2 * xn.arctan2(sine, w) / sine)
        vector: Array = v * scale
        return xn.rad2deg(vector) if degrees else vector

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters, of length 1 at most."""
        q = _canonical(self.quat)
        result: Array = q[..., :3] / (1 + q[..., 3:])
        return result

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return angles about three axes, of shape (3,) or (n, 3).

        Args:
          seq: as of `from_euler`; next to each other stand different axes. Where the first and
            third axis coincide, the third angle is 0.
          degrees: whether angles are in degrees, not radians.
        """
        axes, turning = _axes(seq)
        require(
            len(axes) == 3 and axes[0] != axes[1] and axes[1] != axes[2], "Rotation.as_euler",
            "takes three axes, neighbours different.", got=seq,
        )  # fmt: skip
        angles = _euler_angles(self.quat, axes[::-1] if turning else axes, turning)
        return xn.rad2deg(angles) if degrees else angles

    # --- computed ------------------------------------------------------------------------------

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Return vectors of shape (3,) or (n, 3), turned, or turned back."""
        v = _of_shape("apply", vectors, 3)
        matrix = self.as_matrix()
        return xn.matvec(matrix.mT if inverse else matrix, v)

    def inv(self) -> Rotation:
        """Return the rotations that undo these."""
        return Rotation(self.quat * xn.asarray([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """Return the angles, from 0 to pi."""
        v, w = self.quat[..., :3], self.quat[..., 3]
        result: Array = 2 * xn.arctan2(_norm(v)[..., 0], abs(w))
        return result

    def mean(self, weights: Any = None) -> Rotation:
        """Return the rotation to which the sum of the squared distances is least."""
        q = xn.atleast_2d(self.quat)
        weighted = q if weights is None else q * xn.asarray(weights)[:, None]
        _, vectors = linalg.eigh(q.T @ weighted)
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation."""
        return bool(self.quat.ndim == 1)

    def __mul__(self, other: Rotation) -> Rotation:
        """Return the rotations of `other`, followed by these."""
        if not isinstance(other, Rotation):
            return NotImplemented
        q = _product(self.quat, other.quat)
        return Rotation(q / _norm(q))

    def __len__(self) -> int:
        require(not self.single, "Rotation", "a single rotation has no length.", error=TypeError)
        return int(self.quat.shape[0])

    def __getitem__(self, indexer: Any) -> Rotation:
        require(not self.single, "Rotation", "a single rotation has no elements.", error=TypeError)
        return Rotation(self.quat[indexer])

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        """Return the quaternions."""
        return (self.quat,), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> Rotation:
        """Return the rotations of quaternions."""
        return cls(children[0])


@boundary_methods
class Slerp:
    """Rotations between rotations, each about one axis with constant speed.

    `Slerp.init(times, rotations)` makes one.

    Args:
      times: that ascend, of shape (n,).
      timedelta: the differences of times.
      rotations: at the first n - 1 times.
      rotvecs: from each to the next.
    """

    times: Any
    timedelta: Any
    rotations: Any
    rotvecs: Any
    __slots__ = ("rotations", "rotvecs", "timedelta", "times")

    def __init__(
        self, times: ArrayLike, timedelta: ArrayLike, rotations: Rotation, rotvecs: ArrayLike
    ) -> None:
        self.times, self.timedelta = times, timedelta
        self.rotations, self.rotvecs = rotations, rotvecs

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Return the rotations between some at times of shape (n,), two or more."""
        (t,) = inexact("Slerp.init", xn.asarray(times))
        if rotations.single or t.ndim != 1 or t.size != len(rotations) or t.size < 2:
            raise ValueError(message(
                "Slerp.init", "there must be two or more rotations, and a time for each.",
                got=f"times: {t.aval.str_long()}, {rotations.quat.aval.str_long()}",
            ))  # fmt: skip
        steps = rotations[:-1].inv() * rotations[1:]
        return cls(t, t[1:] - t[:-1], rotations[:-1], steps.as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """Return the rotations at times of shape () or (m,); beyond the ends they keep turning."""
        (t,) = inexact("Slerp", xn.asarray(times))
        last = self.times.shape[0] - 2
        index = xn.clip(xn.searchsorted(self.times, t, side="right") - 1, 0, last)
        share = (t - self.times[index]) / self.timedelta[index]
        step = Rotation.from_rotvec(self.rotvecs[index] * share[..., None])
        result: Rotation = self.rotations[index] * step
        return result

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return what it is made of."""
        return (self.times, self.timedelta, self.rotations, self.rotvecs), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> Slerp:
        """Return what it was."""
        return cls(*children)


xtree.register_pytree_node_class(Rotation)
xtree.register_pytree_node_class(Slerp)


def _of_shape(operation: str, x: Any, size: int) -> Array:
    (v,) = inexact(f"Rotation.{operation}", x)
    if v.ndim not in (1, 2) or v.shape[-1] != size:
        raise ValueError(message(
            f"Rotation.{operation}", "the shape does not fit.", got=v.aval.str_long(),
            expected=f"({size},) or (n, {size})",
        ))  # fmt: skip
    return v


def _norm(x: Any) -> Any:
    return xn.sqrt((x * x).sum(-1, keepdims=True))


def _canonical(q: Any) -> Any:
    """Return of q and -q the one whose last element that is not 0, of w, x, y, z, is positive."""
    x, y, z, w = (q[..., i : i + 1] for i in range(4))
    rest = (z < 0) & (x == 0) & (y == 0) | (y < 0) & (x == 0) | (x < 0)
    return xn.where((w < 0) | (w == 0) & rest, -q, q)


def _product(p: Any, q: Any) -> Any:
    """Return the product of quaternions (Hamilton's), p after q."""
    u, v = p[..., :3], q[..., :3]
    a, b = p[..., 3:], q[..., 3:]
    vector = a * v + b * u + xn.cross(u, v)
    return xn.concatenate([vector, a * b - (u * v).sum(-1, keepdims=True)], -1)


def _axes(seq: str) -> tuple[list[int], bool]:
    """Return the numbers of axes, and whether they turn along."""
    is_text = isinstance(seq, str)
    turning = is_text and seq.isupper()
    if not is_text or not 1 <= len(seq) <= 3 or set(seq) - set("XYZ" if turning else "xyz"):
        raise ValueError(message(
            "Rotation", "these axes do not exist.", got=f"{seq!r}",
            expected="one to three of x, y, z, or of X, Y, Z",
        ))  # fmt: skip
    return ["xyz".index(c) for c in seq.lower()], turning


def _euler_angles(q: Any, axes: list[int], turning: bool) -> Any:
    i, j, k = axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
    a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
    middle = 2 * xn.arctan2(xn.hypot(c, d), xn.hypot(a, b))
    half_sum, half_difference = xn.arctan2(b, a), xn.arctan2(d, c)
    low, high = middle <= 1e-7, middle >= math.pi - 1e-7
    first, third = half_sum - half_difference, half_sum + half_difference
    outer, inner = (third, first) if turning else (first, third)
    only = xn.where(low, 2 * half_sum, 2 * half_difference * (1 if turning else -1))
    outer = xn.where(low | high, only, outer)
    inner = xn.where(low | high, 0, inner)
    if not symmetric:
        middle = middle - math.pi / 2
        outer, inner = (outer * sign, inner) if turning else (outer, inner * sign)
    angles = xn.stack([outer, middle, inner], -1)
    return (angles + math.pi) % (2 * math.pi) - math.pi
