"""
A heat equation with implicit steps
===================================

A bar of 2,000 cells conducts heat, better where it is hot, so the equation is not
linear. Implicit steps can be large, but each needs the Jacobian of its residual:
2,000 x 2,000 numbers, nearly all of them zero. Three products with vectors give
the others, whatever the number of cells (Curtis, Powell and Reid, 1974): cells
that are three apart do not meet in one equation, so their columns share a product.
"""

import matplotlib.pyplot as plt
import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax

xstack.config.update("enable_x64", True)
CELLS, STEP = 2_000, 2e-3
WIDTH = 1 / CELLS

# %%
# The equation
# ------------
#
# The flux between two neighbours is the conductivity at their mean temperature
# times the difference; no heat leaves the ends.


def rate(u):
    flux = (0.05 + (u[1:] + u[:-1]) / 4) * xnp.diff(u) / WIDTH
    return xnp.diff(flux, prepend=0.0, append=0.0) / WIDTH


def residual(new, old):
    return new - old - STEP * rate(new)


# %%
# Its Jacobian by three products
# ------------------------------
#
# ``linearize`` traces the derivative once, and ``vmap`` applies it to three
# vectors of zeros and ones. Entry ``i`` of product ``c`` is the derivative by the
# one neighbour of ``i`` whose number is ``c`` modulo 3.

seeds = xnp.asarray(np.arange(CELLS) % 3 == np.arange(3)[:, None], float)


def tridiagonal(f, u):
    products = xstack.vmap(xstack.linearize(f, u)[1])(seeds)
    cells = xnp.arange(CELLS)
    lower, diagonal, upper = (
        products[(cells + shift) % 3, cells] for shift in (-1, 0, 1)
    )
    return lower.at[0].set(0), diagonal, upper.at[-1].set(0)


def newton(old):
    def one(_, new):
        bands = tridiagonal(lambda v: residual(v, old), new)
        return (
            new
            - lax.linalg.tridiagonal_solve(*bands, residual(new, old)[:, None])[
                :, 0
            ]
        )

    return lax.fori_loop(0, 4, one, old)


small = xnp.linspace(0, 1, CELLS) ** 2
v = xnp.cos(xnp.arange(CELLS))
lower, diagonal, upper = tridiagonal(lambda u: residual(u, small), small)
by_bands = diagonal * v + lower * xnp.roll(v, 1) + upper * xnp.roll(v, -1)
by_jvp = xstack.jvp(lambda u: residual(u, small), (small,), (v,))[1]
error = xnp.abs(by_bands - by_jvp).max() / xnp.abs(by_jvp).max()
print(f"the bands agree with jvp to {error:.1e}")

# %%
# The run
# -------
#
# An explicit step is stable up to half the square of a cell's width, divided by
# the conductivity.

place = xnp.linspace(0, 1, CELLS)
begin = xnp.exp(-(((place - 0.3) / 0.06) ** 2)) + 0.5 * xnp.exp(
    -(((place - 0.75) / 0.05) ** 4)
)
last, history = xstack.jit(
    lambda u: lax.scan(lambda u, _: (newton(u), u), u, length=100)
)(begin)
print(f"heat before {begin.sum() * WIDTH:.6f}, after {last.sum() * WIDTH:.6f}")
left = xnp.abs(residual(newton(last), last)).max()
print(f"the last step leaves a residual of {left:.1e}")
longest = 0.5 * WIDTH**2 / 0.55
print(f"a step is {STEP / longest:,.0f} times the longest explicit one")

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for number in (0, 1, 3, 10, 30, 99):
    axes.plot(place, history[number], label=f"{number * STEP:.3f}")
axes.set(xlabel="place", ylabel="temperature")
axes.legend(title="time")
plt.show()
