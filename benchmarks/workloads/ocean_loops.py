"""The kernels of `ocean_kernels` as loops over cells, compiled by numba with fast mathematics."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.workloads import ocean_kernels as arrays
from benchmarks.workloads.ocean_constants import (
    DT,
    EPS_SLOPE,
    EXPANSION,
    HALINE,
    K_LATERAL,
    SLOPE_LIMIT,
    SLOPE_WIDTH,
    STEEP,
    THERMOBARIC,
    ZERO_CELSIUS,
)


def kernels(inputs: Any) -> dict[str, Any]:
    """Return the functions by name, each with its operands: nothing is run."""
    i = inputs
    grid = (i.mask, i.dx, i.dy, i.dz, i.cos)
    return {
        "equation of state": (_equation_of_state(), [i.salt, i.temp, i.pressure]),
        "isoneutral mixing": (_isoneutral_mixing(), [i.salt, i.temp, i.k_iso, *grid]),
        "turbulent kinetic energy": (
            _turbulent_energy(),
            [
                i.tke,
                i.tendency,
                i.velocity,
                i.k_m,
                i.length,
                i.forcing,
                i.surface,
                i.bottom,
                *grid,
            ],
        ),
    }


def _jit(fun: Any) -> Any:
    return importlib.import_module("numba").njit(fastmath=True, boundscheck=False)(fun)


def _equation_of_state() -> Any:
    density = _jit(arrays.density)

    @_jit
    def run(salt, temp, pressure):  # type: ignore[no-untyped-def]
        rho, by_s, by_t = np.empty_like(salt), np.empty_like(salt), np.empty_like(salt)
        s, t, p = salt.ravel(), temp.ravel(), pressure.ravel()
        a, b, c = rho.ravel(), by_s.ravel(), by_t.ravel()
        for i in range(s.size):
            a[i], b[i], c[i] = density(s[i], t[i], p[i], np.sqrt)
        return rho, by_s, by_t

    return run


def _isoneutral_mixing() -> Any:
    @_jit
    def taper_of(slope):  # type: ignore[no-untyped-def]
        return 0.5 * (1 + np.tanh((SLOPE_LIMIT - abs(slope)) / SLOPE_WIDTH))

    @_jit
    def slope_of(across, down):  # type: ignore[no-untyped-def]
        return -across / (min(0.0, down) - EPS_SLOPE)

    @_jit
    def differences(x, mask, east, north, up, dx, dy, dz, cos):  # type: ignore[no-untyped-def]
        nx, ny, nz = x.shape
        for i in range(nx):
            for j in range(ny):
                for k in range(nz):
                    if i < nx - 1:
                        east[i, j, k] = (
                            (x[i + 1, j, k] - x[i, j, k])
                            * mask[i + 1, j, k]
                            * mask[i, j, k]
                            / (dx[i] * cos[j])
                        )
                    if j < ny - 1:
                        north[i, j, k] = (
                            (x[i, j + 1, k] - x[i, j, k])
                            * mask[i, j + 1, k]
                            * mask[i, j, k]
                            / dy[j]
                        )
                    if k < nz - 1:
                        up[i, j, k] = (
                            (x[i, j, k + 1] - x[i, j, k])
                            * mask[i, j, k + 1]
                            * mask[i, j, k]
                            / dz[k]
                        )

    @_jit
    def sideways(by_t, by_s, across_t, across_s, up_t, up_s, k_iso, mask, dz, di, dj):  # type: ignore[no-untyped-def]
        nx, ny, nz = mask.shape
        total = np.zeros((nx - di, ny - dj, nz))
        slopes = np.zeros((4, nx - di, ny - dj, nz))
        for i in range(nx - di):
            for j in range(ny - dj):
                for k in range(nz):
                    wet = mask[i, j, k] * mask[i + di, j + dj, k]
                    size = k_iso[i, j, k] + k_iso[i + di, j + dj, k]
                    if k == 0:
                        size = 0.5 * size
                    else:
                        size = 0.25 * (size + k_iso[i, j, k - 1] + k_iso[i + di, j + dj, k - 1])
                    found = 0.0
                    for side in range(2):
                        a, b = i + di * side, j + dj * side
                        flat = by_t[a, b, k] * across_t[i, j, k] + by_s[a, b, k] * across_s[i, j, k]
                        for above in range(2):
                            m = k - 1 + above
                            if m < 0 or m > nz - 2:
                                continue
                            down = by_t[a, b, k] * up_t[a, b, m] + by_s[a, b, k] * up_s[a, b, m]
                            slope = slope_of(flat, down)
                            taper = taper_of(slope)
                            found += max(STEEP, size * taper) * wet * dz[m]
                            slopes[2 * side + above, i, j, k] = taper * slope * wet
                    total[i, j, k] = found / (4 * dz[k])
        return total, slopes

    @_jit
    def upwards(by_t, by_s, east_t, east_s, north_t, north_s, up_t, up_s, k_iso, mask, dx, dy, cos):  # type: ignore[no-untyped-def]
        nx, ny, nz = mask.shape
        total = np.zeros((nx - 2, ny - 2, nz - 1))
        slopes = np.zeros((8, nx - 2, ny - 2, nz - 1))
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                for k in range(nz - 1):
                    wet = mask[i, j, k + 1] * mask[i, j, k]
                    found = 0.0
                    for above in range(2):
                        m = k + above
                        t, s = by_t[i, j, m], by_s[i, j, m]
                        down = t * up_t[i, j, k] + s * up_s[i, j, k]
                        for shift in range(2):
                            a = i - 1 + shift
                            slope = slope_of(t * east_t[a, j, m] + s * east_s[a, j, m], down)
                            taper = taper_of(slope)
                            found += dx[a] * k_iso[i, j, k] * taper * slope**2 * wet / (4 * dx[i])
                            slopes[4 * above + shift, i - 1, j - 1, k] = taper * slope * wet
                        for shift in range(2):
                            b = j - 1 + shift
                            slope = slope_of(t * north_t[i, b, m] + s * north_s[i, b, m], down)
                            taper = taper_of(slope)
                            found += (
                                cos[b]
                                * dy[b]
                                * k_iso[i, j, k]
                                * taper
                                * slope**2
                                * wet
                                / (4 * cos[j] * dy[j])
                            )
                            slopes[4 * above + 2 + shift, i - 1, j - 1, k] = taper * slope * wet
                    total[i - 1, j - 1, k] = found
        return total, slopes

    @_jit
    def run(salt, temp, k_iso, mask, dx, dy, dz, cos):  # type: ignore[no-untyped-def]
        nx, ny, nz = mask.shape
        by_t, by_s, depth = np.empty_like(temp), np.empty_like(temp), np.cumsum(dz)
        for i in range(nx):
            for j in range(ny):
                for k in range(nz):
                    by_t[i, j, k] = -mask[i, j, k] * (
                        EXPANSION * (temp[i, j, k] - ZERO_CELSIUS)
                        + HALINE[0] * (1 - THERMOBARIC * depth[k])
                    )
                    by_s[i, j, k] = mask[i, j, k] * HALINE[1]
        east_t, east_s = np.empty((nx - 1, ny, nz)), np.empty((nx - 1, ny, nz))
        north_t, north_s = np.empty((nx, ny - 1, nz)), np.empty((nx, ny - 1, nz))
        up_t, up_s = np.empty((nx, ny, nz - 1)), np.empty((nx, ny, nz - 1))
        differences(temp, mask, east_t, north_t, up_t, dx, dy, dz, cos)
        differences(salt, mask, east_s, north_s, up_s, dx, dy, dz, cos)
        k_11, slopes_east = sideways(by_t, by_s, east_t, east_s, up_t, up_s, k_iso, mask, dz, 1, 0)
        k_22, slopes_north = sideways(
            by_t, by_s, north_t, north_s, up_t, up_s, k_iso, mask, dz, 0, 1
        )
        k_33, slopes_up = upwards(
            by_t, by_s, east_t, east_s, north_t, north_s, up_t, up_s, k_iso, mask, dx, dy, cos
        )
        return k_11, k_22, k_33, slopes_east, slopes_north, slopes_up

    return run


def _turbulent_energy() -> Any:
    @_jit
    def superbee(behind, r, ahead, v, low, high, spacing):  # type: ignore[no-untyped-def]
        courant = abs(v * DT / spacing)
        ratio = (behind if v > 0 else ahead) / (1e-20 if abs(r) < 1e-20 else r)
        limit = max(0.0, min(1.0, 2 * ratio), min(2.0, ratio))
        size = (1 - limit) + courant * limit
        return v * (high + low) * 0.5 - abs(v) * size * r * 0.5

    @_jit
    def implicit(tke, k_m, length, forcing, surface, bottom, dz, new, lost):  # type: ignore[no-untyped-def]
        nx, ny, nz = tke.shape
        b, c, d, delta = np.empty(nz), np.empty(nz), np.empty(nz), np.empty(nz)
        last = nz - 1
        for i in range(nx):
            for j in range(ny):
                floor = bottom[i, j]
                for k in range(nz):
                    new[i, j, k] = tke[i, j, k]
                for k in range(floor, last):
                    delta[k] = DT / dz[k + 1] * 0.5 * (k_m[i, j, k] + k_m[i, j, k + 1])
                for k in range(floor, nz):
                    upper = -delta[k] / dz[k] if k < last else 0.0
                    lower = -delta[k - 1] / dz[k] if k > floor else 0.0
                    b[k] = (
                        1.0
                        - lower
                        - upper
                        + DT * 0.7 * np.sqrt(max(0.0, tke[i, j, k])) / length[i, j, k]
                    )
                    c[k] = upper
                    d[k] = tke[i, j, k] + DT * forcing[i, j, k]
                    if k == last:
                        d[k] += DT * surface[i, j] / dz[k]
                    if k > floor:
                        w = lower / b[k - 1]
                        b[k] -= w * c[k - 1]
                        d[k] -= w * d[k - 1]
                if floor < nz:
                    new[i, j, last] = d[last] / b[last]
                    for k in range(last - 1, floor - 1, -1):
                        new[i, j, k] = (d[k] - c[k] * new[i, j, k + 1]) / b[k]
                lost[i, j] = 0.0
                if new[i, j, last] < 0:
                    lost[i, j] = -new[i, j, last] * dz[last] / DT
                    new[i, j, last] = 0.0

    @_jit
    def fluxes(x, velocity, mask, dx, dy, dz, cos, east, north, up, spread_east, spread_north):  # type: ignore[no-untyped-def]
        nx, ny, nz = x.shape
        for i in range(nx):
            for j in range(ny):
                for k in range(nz):
                    if i < nx - 1:
                        r = (x[i + 1, j, k] - x[i, j, k]) * (mask[i + 1, j, k] * mask[i, j, k])
                        behind = ahead = 0.0
                        if i > 0:
                            behind = (x[i, j, k] - x[i - 1, j, k]) * (
                                mask[i, j, k] * mask[i - 1, j, k]
                            )
                        if i < nx - 2:
                            ahead = (x[i + 2, j, k] - x[i + 1, j, k]) * (
                                mask[i + 2, j, k] * mask[i + 1, j, k]
                            )
                        east[i, j, k] = superbee(
                            behind,
                            r,
                            ahead,
                            velocity[0, i, j, k],
                            x[i, j, k],
                            x[i + 1, j, k],
                            dx[i] * cos[j],
                        )
                        spread_east[i, j, k] = K_LATERAL * r / (dx[i] * cos[j])
                    if j < ny - 1:
                        r = (x[i, j + 1, k] - x[i, j, k]) * (mask[i, j + 1, k] * mask[i, j, k])
                        behind = ahead = 0.0
                        if j > 0:
                            behind = (x[i, j, k] - x[i, j - 1, k]) * (
                                mask[i, j, k] * mask[i, j - 1, k]
                            )
                        if j < ny - 2:
                            ahead = (x[i, j + 2, k] - x[i, j + 1, k]) * (
                                mask[i, j + 2, k] * mask[i, j + 1, k]
                            )
                        north[i, j, k] = superbee(
                            behind,
                            r,
                            ahead,
                            velocity[1, i, j, k] * cos[j],
                            x[i, j, k],
                            x[i, j + 1, k],
                            dy[j] * cos[j],
                        )
                        spread_north[i, j, k] = K_LATERAL * r / dy[j] * cos[j]
                    if k < nz - 1:
                        r = (x[i, j, k + 1] - x[i, j, k]) * (mask[i, j, k + 1] * mask[i, j, k])
                        behind = ahead = 0.0
                        if k > 0:
                            behind = (x[i, j, k] - x[i, j, k - 1]) * (
                                mask[i, j, k] * mask[i, j, k - 1]
                            )
                        if k < nz - 2:
                            ahead = (x[i, j, k + 2] - x[i, j, k + 1]) * (
                                mask[i, j, k + 2] * mask[i, j, k + 1]
                            )
                        up[i, j, k] = superbee(
                            behind,
                            r,
                            ahead,
                            velocity[2, i, j, k],
                            x[i, j, k],
                            x[i, j, k + 1],
                            dz[k],
                        )

    @_jit
    def run(tke, tendency, velocity, k_m, length, forcing, surface, bottom, mask, dx, dy, dz, cos):  # type: ignore[no-untyped-def]
        nx, ny, nz = tke.shape
        new, change, lost = np.empty_like(tke), np.empty_like(tke), np.empty((nx, ny))
        implicit(tke, k_m, length, forcing, surface, bottom, dz, new, lost)
        east, north, up = np.zeros_like(tke), np.zeros_like(tke), np.zeros_like(tke)
        spread_east, spread_north = np.zeros_like(tke), np.zeros_like(tke)
        fluxes(tke, velocity, mask, dx, dy, dz, cos, east, north, up, spread_east, spread_north)
        for i in range(nx):
            for j in range(ny):
                width, height = dx[i] * cos[j], dy[j] * cos[j]
                for k in range(nz):
                    e, n, u = east[i, j, k], north[i, j, k], up[i, j, k]
                    a, b = spread_east[i, j, k], spread_north[i, j, k]
                    if i > 0:
                        e -= east[i - 1, j, k]
                        a -= spread_east[i - 1, j, k]
                    if j > 0:
                        n -= north[i, j - 1, k]
                        b -= spread_north[i, j - 1, k]
                    if k > 0:
                        u -= up[i, j, k - 1]
                    change[i, j, k] = -mask[i, j, k] * (e / width + n / height + u / dz[k])
                    new[i, j, k] += DT * mask[i, j, k] * (a / width + b / height) + DT * (
                        1.6 * change[i, j, k] - 0.6 * tendency[i, j, k]
                    )
        return new, change, lost

    return run
