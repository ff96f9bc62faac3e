"""
Molecular dynamics of 500 particles
===================================

Five hundred particles of a Lennard-Jones liquid in a box that repeats. Only the
energy is written down; the forces are its ``grad``. The velocity Verlet scheme
(Swope and others, 1982) keeps the total energy, which is the test that forces and
energy belong together. Lengths, energies and masses are in the units of the
potential.
"""

import matplotlib.pyplot as plt
import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax, random

xstack.config.update("enable_x64", True)
SIDE, DENSITY, STEP = 8, 0.7, 0.004
COUNT = 500
BOX = (COUNT / DENSITY) ** (1 / 3)
CUT = 2.5

# %%
# The energy
# ----------
#
# Each pair counts once, by its nearest images. The potential is shifted and bent
# to reach zero with its derivative at 2.5, so that no energy is lost where
# particles pass the cutoff.


def pair_energy(squared):
    inverse = 1 / squared**3
    at_cut, derivative = (
        4 * (CUT**-12 - CUT**-6),
        4 * (-12 * CUT**-13 + 6 * CUT**-7),
    )
    distance = xnp.sqrt(squared)
    return xnp.where(
        squared < CUT**2,
        4 * (inverse**2 - inverse) - at_cut - (distance - CUT) * derivative,
        0.0,
    )


def energy(x):
    i, j = np.triu_indices(COUNT, 1)
    apart = x[i] - x[j]
    apart = apart - BOX * xnp.round(apart / BOX)
    return pair_energy((apart**2).sum(-1)).sum()


# %%
# The motion
# ----------
#
# The outer ``scan`` records every tenth step; the inner loop takes ten.


def verlet(_, state):
    x, v, force = state
    v = v + STEP / 2 * force
    x = x + STEP * v
    force = -xstack.grad(energy)(x)
    return x, v + STEP / 2 * force, force


@xstack.jit
def run(state):
    def ten(state, _):
        state = lax.fori_loop(0, 10, verlet, state)
        x, v, _ = state
        return state, (energy(x), 0.5 * (v**2).sum())

    return lax.scan(ten, state, length=40)


grid = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3), -1).reshape(-1, 3)
places = (
    xnp.asarray(grid[np.random.default_rng(0).permutation(SIDE**3)[:COUNT]] + 0.5)
    * BOX
    / SIDE
)
speeds = random.normal(random.key(0), places.shape)
speeds = speeds - speeds.mean(0)
(places, speeds, _), (potential, kinetic) = run(
    (places, speeds, -xstack.grad(energy)(places))
)

total = potential + kinetic
drift = xnp.abs(total - total[0]).max() / kinetic.mean()
print(f"400 steps: the total energy stays within {drift:.1e} of the kinetic energy")
print(f"the momentum stays at {xnp.abs(speeds.sum(0)).max():.1e}")

# %%
# Energies, and the order of the liquid
# -------------------------------------
#
# The share of pairs at a distance, beside that of a gas: shells of neighbours are
# what makes it a liquid.

i, j = np.triu_indices(COUNT, 1)
apart = np.asarray(places[i] - places[j])
distances = np.linalg.norm(apart - BOX * np.round(apart / BOX), axis=1)
counts, edges = np.histogram(distances, bins=60, range=(0.5, BOX / 2))
shells = 4 / 3 * np.pi * np.diff(edges**3) * COUNT * (COUNT - 1) / 2 / BOX**3

time = 10 * STEP * np.arange(len(total))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for values, name in (
    (potential, "potential"),
    (kinetic, "kinetic"),
    (total, "total"),
):
    axes[0].plot(time, values, label=name)
axes[0].set(xlabel="time", ylabel="energy")
axes[0].legend()
axes[1].stairs(counts / shells, edges)
axes[1].axhline(1, color="k", linewidth=0.6)
axes[1].set(xlabel="distance", ylabel="pairs beside those of a gas")
plt.show()
