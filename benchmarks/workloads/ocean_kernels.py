"""Three kernels of an ocean model on a grid, float64 on one thread, beside JAX, NumPy and numba.

They are the subjects of the suite pyhpc-benchmarks (D. Häfner), written anew from the formulas:
the equation of state of sea water, the slopes and diffusivities of mixing along surfaces of equal
density, and one step of turbulent kinetic energy. Array code is the same for every side; numba
runs the loops of `ocean_loops`, which return the same numbers.

Sources: T. J. McDougall and P. M. Barker, Getting started with TEOS-10, 2011, appendix K (48 terms
of density); S. M. Griffies et al., Isoneutral diffusion in a z-coordinate ocean model, 1998; P.
Gaspar et al., A simple eddy kinetic energy model, 1990; P. K. Sweby, High resolution schemes using
flux limiters, 1984 (superbee).
"""

from __future__ import annotations

import functools
import importlib
import os
from types import SimpleNamespace
from typing import Any

import numpy

from benchmarks.timing import best
from benchmarks.workloads.ocean_constants import (
    ABOVE,
    DENOMINATOR,
    DT,
    EPS_SLOPE,
    EXPANSION,
    HALINE,
    K_LATERAL,
    NUMERATOR,
    PRESSURE_TERM,
    SLOPE_LIMIT,
    SLOPE_WIDTH,
    STEEP,
    THERMOBARIC,
    ZERO_CELSIUS,
)  # fmt: skip

SHAPE = (100, 100, 32)


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    os.environ["NPROC"] = "1"  # the threads of XLA
    if ns.name != "numba" and ns.compiles:
        importlib.import_module(ns.name).config.update("jax_enable_x64", True)
    inputs = operands(SHAPE)
    return {
        name: (lambda fun=fun, args=args: best(lambda: ns.wait(fun(*args)), seconds=0.2))
        for name, (fun, args) in kernels(ns, inputs).items()
    }  # fmt: skip


def kernels(ns: Any, inputs: Any) -> dict[str, Any]:
    """Return the functions of a side by name, each with its operands: nothing is run."""
    if ns.name == "numba":
        return importlib.import_module("benchmarks.workloads.ocean_loops").kernels(inputs)
    array = ns.numpy.asarray
    data = {name: array(value) for name, value in vars(inputs).items()}
    functions = {
        "equation of state": (equation_of_state, ("salt", "temp", "pressure")),
        "isoneutral mixing": (isoneutral_mixing, ("salt", "temp", "k_iso", *_GRID)),
        "turbulent kinetic energy": (turbulent_energy, (
            "tke", "tendency", "velocity", "k_m", "length", "forcing", "surface", "bottom", *_GRID,
        )),
    }  # fmt: skip
    found = {}
    for name, (function, names) in functions.items():
        fun = functools.partial(function, ns)
        found[name] = (ns.jit(fun) if ns.compiles else fun, [data[n] for n in names])
    return found


_GRID = ("mask", "dx", "dy", "dz", "cos")


def operands(shape: tuple[int, int, int]) -> Any:
    """Return the fields of an ocean: temperature, salinity, speeds, masks and the grid."""
    rng = numpy.random.default_rng(0)
    levels, columns = shape[2], shape[:2]
    mask = (rng.uniform(size=(*columns, 1)) > 0.1) & (
        numpy.arange(levels) >= rng.integers(0, levels // 2, (*columns, 1))
    )
    draw = functools.partial(rng.uniform, size=shape)
    return SimpleNamespace(
        salt=draw(30.0, 38.0), temp=draw(-2.0, 20.0),
        pressure=numpy.broadcast_to(numpy.linspace(3000.0, 0.0, levels), shape).copy(),
        k_iso=draw(0.0, 1000.0), tke=draw(0.0, 1e-3), tendency=draw(-1e-6, 1e-6),
        velocity=rng.normal(size=(3, *shape)) * 0.1, k_m=draw(1e-4, 1e-2), length=draw(1.0, 50.0),
        forcing=draw(-1e-6, 1e-6), surface=rng.uniform(-1e-5, 1e-5, columns),
        bottom=numpy.where(mask.any(2), mask.argmax(2), levels), mask=mask.astype("d"),
        dx=rng.uniform(0.9e4, 1.1e4, shape[0]), dy=rng.uniform(0.9e4, 1.1e4, shape[1]),
        dz=rng.uniform(20.0, 100.0, levels), cos=numpy.cos(numpy.linspace(-0.5, 0.5, shape[1])),
    )  # fmt: skip


# ---------------------------------------------------------------------------- equation of state


def equation_of_state(ns: Any, salt: Any, temp: Any, pressure: Any) -> Any:
    """Return the density of sea water, and its derivatives by salinity and temperature."""
    return density(salt, temp, pressure, ns.numpy.sqrt)


def density(s: Any, t: Any, p: Any, sqrt: Any) -> Any:
    """Return density and derivatives of arrays or numbers, by the quotient of two polynomials."""
    root = sqrt(s)
    n, a, d, c = NUMERATOR, ABOVE, DENOMINATOR, PRESSURE_TERM
    # numerator: powers of temperature, salinity and its root, pressure and its square
    n0 = n[0] + t * (n[1] + t * (n[2] + t * n[3]))
    n1 = n[4] + t * (n[5] + t * n[6])
    n2 = n[7] + t * (n[8] + t * (n[9] + t * n[10]))
    a0 = a[0] + t * (a[1] + t * a[2]) + s * (a[3] + t * a[4])
    a1 = a[5] + t * (a[6] + t * a[7]) + s * a[8]
    top = n0 + s * (n1 + root * n2) + p * (a0 + p * a1)
    top_s = n1 + 1.5 * root * n2 + p * (a[3] + t * a[4] + p * a[8])
    top_t = (
        n[1] + t * (2 * n[2] + 3 * t * n[3])
        + s * (n[5] + 2 * t * n[6] + root * (n[8] + t * (2 * n[9] + 3 * t * n[10])))
        + p * (a[1] + 2 * t * a[2] + s * a[4] + p * (a[6] + 2 * t * a[7]))
    )  # fmt: skip
    d0 = d[0] + t * (d[1] + t * (d[2] + t * (d[3] + t * d[4])))
    d1 = d[5] + t * (d[6] + t * (d[7] + t * (d[8] + t * d[9])))
    d2 = d[10] + t * (d[11] + t * (d[12] + t * (d[13] + t * d[14])))
    c0 = c[0] + t * (c[1] + t * (c[2] + t * c[3])) + s * (c[4] + t * c[5])
    c1 = c[6] + t * (c[7] + t * c[8]) + s * c[9]
    low = d0 + s * (d1 + s * d[15] + root * d2) + p * (c0 + p * (c1 + p * (c[10] + t * c[11])))
    low_s = d1 + 2 * s * d[15] + 1.5 * root * d2 + p * (c[4] + t * c[5] + p * c[9])
    low_t = (
        d[1] + t * (2 * d[2] + t * (3 * d[3] + 4 * t * d[4]))
        + s * (d[6] + t * (2 * d[7] + t * (3 * d[8] + 4 * t * d[9]))
               + root * (d[11] + t * (2 * d[12] + t * (3 * d[13] + 4 * t * d[14]))))
        + p * (c[1] + t * (2 * c[2] + 3 * t * c[3]) + s * c[5]
               + p * (c[7] + 2 * t * c[8] + p * c[11]))
    )  # fmt: skip
    rho = top / low
    return rho, (top_s - rho * low_s) / low, (top_t - rho * low_t) / low


# ---------------------------------------------------------------------------- isoneutral mixing


def isoneutral_mixing(
    ns: Any, salt: Any, temp: Any, k_iso: Any, mask: Any, dx: Any, dy: Any, dz: Any, cos: Any
) -> Any:
    """Return diffusivities in three directions and the tapered slopes that they come from."""
    np = ns.numpy
    depth = np.cumsum(dz)
    by_temp = mask * -((EXPANSION * (temp - ZERO_CELSIUS)) + HALINE[0] * (1 - THERMOBARIC * depth))
    by_salt = mask * HALINE[1]
    width, height = dx[:, None, None] * cos[None, :, None], dy[None, :, None]
    fields = (temp, salt)
    east = [_difference(np, f, mask, 0) / width[:-1] for f in fields]
    north = [_difference(np, f, mask, 1) / height[:, :-1] for f in fields]
    up = [_difference(np, f, mask, 2) / dz[:-1] for f in fields]
    rates = (by_temp, by_salt)
    k_11, slopes_east = _sideways(np, rates, east, up, k_iso, mask, dz, 0)
    k_22, slopes_north = _sideways(np, rates, north, up, k_iso, mask, dz, 1)
    k_33, slopes_up = _upwards(np, rates, (east, north), up, k_iso, mask, (dx, dy, cos))
    return k_11, k_22, k_33, slopes_east, slopes_north, slopes_up


def _difference(np: Any, x: Any, mask: Any, axis: int) -> Any:
    """Return the differences of neighbours where both are water."""
    above, below = _at(axis, 1, None), _at(axis, 0, -1)
    return (x[above] - x[below]) * (mask[above] * mask[below])


def _at(axis: int, start: int, stop: int | None) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def _taper(np: Any, slope: Any) -> Any:
    return 0.5 * (1 + np.tanh((SLOPE_LIMIT - np.abs(slope)) / SLOPE_WIDTH))


def _slope(np: Any, across: Any, down: Any) -> Any:
    return -across / (np.minimum(0.0, down) - EPS_SLOPE)


def _sideways(
    np: Any, rates: Any, across: Any, up: Any, k_iso: Any, mask: Any, dz: Any, axis: int
) -> Any:
    """Return the diffusivity through the faces in one direction, and four slopes of each."""
    sides = (_at(axis, 0, -1), _at(axis, 1, None))
    wet = mask[sides[0]] * mask[sides[1]]
    k = k_iso[sides[0]] + k_iso[sides[1]]
    levels = k.shape[2]
    k = np.concatenate([2 * k[..., :1], k[..., 1:] + k[..., :-1]], 2) * 0.25
    total, slopes = 0.0, []
    for side in sides:
        flat = rates[0][side] * across[0] + rates[1][side] * across[1]
        steep = [u[side] for u in up]
        for below in (True, False):
            part = slice(1, None) if below else slice(0, levels - 1)
            down = rates[0][side][..., part] * steep[0] + rates[1][side][..., part] * steep[1]
            slope = _slope(np, flat[..., part], down)
            taper = _taper(np, slope)
            size = np.maximum(STEEP, k[..., part] * taper) * wet[..., part] * dz[:-1]
            pads = ((0, 0), (0, 0), (1, 0) if below else (0, 1))
            total = total + np.pad(size, pads)
            slopes.append(np.pad(taper * slope * wet[..., part], pads))
    return total / (4 * dz), np.stack(slopes)


def _upwards(np: Any, rates: Any, across: Any, up: Any, k_iso: Any, mask: Any, grid: Any) -> Any:
    """Return the diffusivity through the tops of inner columns, and eight slopes of each."""
    dx, dy, cos = grid
    inner = (slice(1, -1), slice(1, -1))
    wet = (mask[..., 1:] * mask[..., :-1])[inner]
    k = k_iso[inner][..., :-1]
    total, slopes = 0.0, []
    levels = mask.shape[2]
    for above in (0, 1):
        part = slice(above, levels - 1 + above)
        rate = [r[inner][..., part] for r in rates]
        down = rate[0] * up[0][inner] + rate[1] * up[1][inner]
        for axis, field in enumerate(across):
            size = dx[:, None, None] if axis == 0 else (cos * dy)[None, :, None]
            middle = dx[1:-1, None, None] if axis == 0 else (cos * dy)[None, 1:-1, None]
            for shift in (0, 1):
                n = mask.shape[axis]
                side = slice(shift, n - 2 + shift)
                place = (side, slice(1, -1)) if axis == 0 else (slice(1, -1), side)
                length = size[side] if axis == 0 else size[:, side]
                flat = rate[0] * field[0][place][..., part] + rate[1] * field[1][place][..., part]
                slope = _slope(np, flat, down)
                taper = _taper(np, slope)
                total = total + length * k * taper * slope**2 * wet / (4 * middle)
                slopes.append(taper * slope * wet)
    return total, np.stack(slopes)


# --------------------------------------------------------------------- turbulent kinetic energy


def turbulent_energy(
    ns: Any, tke: Any, tendency: Any, velocity: Any, k_m: Any, length: Any, forcing: Any,
    surface: Any, bottom: Any, mask: Any, dx: Any, dy: Any, dz: Any, cos: Any,
) -> Any:  # fmt: skip
    """Return the energy after a step, its tendency by advection, and what the surface lost."""
    np = ns.numpy
    levels = tke.shape[2]
    level = np.arange(levels)
    wet, is_floor = level >= bottom[..., None], level == bottom[..., None]
    delta = DT / dz[1:] * 0.5 * (k_m[..., :-1] + k_m[..., 1:])
    lower = -delta / dz[1:]
    upper = -delta / dz[:-1]
    lower, upper = np.pad(lower, ((0, 0), (0, 0), (1, 0))), np.pad(upper, ((0, 0), (0, 0), (0, 1)))
    lower = np.where(is_floor, 0.0, lower)
    damping = DT * 0.7 * np.sqrt(np.maximum(0.0, tke)) / length
    middle = np.where(wet, 1.0 - lower - upper + damping, 1.0)
    top = (level == levels - 1) * (DT * surface[..., None] / dz[-1])
    right = np.where(wet, tke + DT * forcing + top, 0.0)
    solved = _tridiagonal(ns, np.where(wet, lower, 0.0), middle, np.where(wet, upper, 0.0), right)
    new = np.where(wet, solved, tke)
    lost = np.where(new[..., -1] < 0, -new[..., -1] * dz[-1] / DT, 0.0)
    is_top = level == levels - 1
    new = np.where(is_top & (new < 0), 0.0, new)

    width, height = dx[:, None, None] * cos[None, :, None], (cos * dy)[None, :, None]
    cosine = cos[None, :, None]
    east = K_LATERAL * _difference(np, tke, mask, 0) / width[:-1]
    north = K_LATERAL * _difference(np, tke, mask, 1) / dy[None, :-1, None] * cosine[:, :-1]
    new = new + DT * mask * (_divergence(np, east, 0) / width + _divergence(np, north, 1) / height)

    spacings = (width, height, dz)
    speeds = (velocity[0], velocity[1] * cosine, velocity[2])
    fluxes = [_superbee(np, tke, v, mask, s, a)
              for a, (v, s) in enumerate(zip(speeds, spacings, strict=True))]  # fmt: skip
    change = sum(_divergence(np, f, a) / s
                 for a, (f, s) in enumerate(zip(fluxes, spacings, strict=True)))  # fmt: skip
    change = -mask * change
    return new + DT * (1.6 * change - 0.6 * tendency), change, lost


def _divergence(np: Any, flux: Any, axis: int) -> Any:
    """Return the flux through the upper face less that through the lower one; none at the ends."""
    pads = [[(0, 0)] * 3 for _ in range(2)]
    pads[0][axis], pads[1][axis] = (0, 1), (1, 0)
    return np.pad(flux, pads[0]) - np.pad(flux, pads[1])


def _superbee(np: Any, x: Any, velocity: Any, mask: Any, spacing: Any, axis: int) -> Any:
    """Return the flux of advection through the faces along an axis, limited by superbee."""
    r = _difference(np, x, mask, axis)
    pads = [[(0, 0)] * 3 for _ in range(2)]
    pads[0][axis], pads[1][axis] = (0, 1), (1, 0)
    ahead, behind = np.pad(r, pads[0])[_at(axis, 1, None)], np.pad(r, pads[1])[_at(axis, 0, -1)]
    lower, upper = _at(axis, 0, -1), _at(axis, 1, None)
    v = velocity[lower]
    if spacing.shape[-1 if spacing.ndim == 1 else axis] > 1:
        spacing = spacing[:-1] if spacing.ndim == 1 else spacing[lower]
    courant = np.abs(v * DT / spacing)
    ratio = np.where(v > 0, behind, ahead) / np.where(np.abs(r) < 1e-20, 1e-20, r)
    limit = np.maximum(0.0, np.maximum(np.minimum(1.0, 2 * ratio), np.minimum(2.0, ratio)))
    mean = v * (x[upper] + x[lower]) * 0.5
    return mean - np.abs(v) * ((1 - limit) + courant * limit) * r * 0.5


def _tridiagonal(ns: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Solve a system of each column by elimination and substitution over the levels."""
    np = ns.numpy
    rows = [np.moveaxis(x, 2, 0) for x in (a, b, c, d)]

    def eliminate(carry: Any, row: Any) -> Any:
        c, d = carry
        low, mid, high, right = row
        scale = 1 / (mid - low * c)
        carry = (high * scale, (right - low * d) * scale)
        return carry, carry

    def substitute(x: Any, row: Any) -> Any:
        c, d = row
        x = d - c * x
        return x, x

    zero = np.zeros_like(rows[0][0])
    scan = ns.lax.scan if ns.compiles else _scan
    _, factors = scan(eliminate, (zero, zero), tuple(rows))
    _, solution = scan(substitute, zero, factors, reverse=True)
    return np.moveaxis(solution, 0, 2)


def _scan(step: Any, carry: Any, xs: Any, reverse: bool = False) -> Any:
    """Run a scan as a loop of Python, for NumPy."""
    count = len(xs[0])
    found: list[Any] = [None] * count
    for i in range(count - 1, -1, -1) if reverse else range(count):
        carry, found[i] = step(carry, tuple(x[i] for x in xs))
    if isinstance(found[0], tuple):
        return carry, tuple(numpy.stack(parts) for parts in zip(*found, strict=True))
    return carry, numpy.stack(found)
