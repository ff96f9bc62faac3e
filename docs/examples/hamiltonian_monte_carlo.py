"""
Hamiltonian Monte Carlo
=======================

Eight chains sample a density in the shape of a banana (Haario, Saksman and
Tamminen, 1999). A leapfrog step needs the gradient of the log density, ``vmap``
runs the chains side by side, and one ``lax.scan`` is the whole run: 8,000 draws
are one call of one compiled program. The method is that of Neal, *MCMC using
Hamiltonian dynamics* (2011).
"""

import matplotlib.pyplot as plt
import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax, random

CHAINS, DRAWS, LEAPS, STEP = 8, 1_000, 20, 0.18


def log_density(x):
    return -0.5 * (x[0] / 2) ** 2 - 0.5 * (x[1] + 0.5 * x[0] ** 2 - 2) ** 2


# %%
# One draw
# --------


def leapfrog(_, state):
    x, momentum = state
    momentum = momentum + 0.5 * STEP * xstack.grad(log_density)(x)
    x = x + STEP * momentum
    return x, momentum + 0.5 * STEP * xstack.grad(log_density)(x)


def energy(x, momentum):
    return 0.5 * momentum @ momentum - log_density(x)


def draw(x, key):
    for_momentum, for_choice = random.split(key)
    momentum = random.normal(for_momentum, x.shape)
    there, its_momentum = lax.fori_loop(0, LEAPS, leapfrog, (x, momentum))
    gain = energy(x, momentum) - energy(there, its_momentum)
    accepted = xnp.log(random.uniform(for_choice)) < gain
    x = xnp.where(accepted, there, x)
    return x, (x, accepted)


@xstack.jit
def run(starts, key):
    def chain(start, key):
        return lax.scan(draw, start, random.split(key, DRAWS))[1]

    return xstack.vmap(chain)(starts, random.split(key, CHAINS))


draws, accepted = run(random.normal(random.key(0), (CHAINS, 2)), random.key(1))

# %%
# Are they from the density?
# --------------------------
#
# Exact: the first coordinate has mean 0 and standard deviation 2, the second one
# mean 0. The ratio of variances between and within chains (Gelman and Rubin, 1992)
# is near 1 where chains agree.

kept = draws[:, 200:]
within = kept.var(axis=1).mean(0)
between = kept.mean(axis=1).var(0, ddof=1)
print(f"accepted {accepted.mean():.0%}")
print(
    "mean",
    kept.mean((0, 1)).round(2),
    "standard deviation",
    kept.std((0, 1)).round(2),
)
print("Gelman-Rubin", xnp.sqrt(1 + between / within).round(3))

figure, axes = plt.subplots(
    1, 2, figsize=(9, 3.2), width_ratios=(2, 1), layout="constrained"
)
axes[0].plot(np.asarray(draws[:4, :300, 0]).T, linewidth=0.6)
axes[0].set(xlabel="draw", ylabel="first coordinate", title="traces of four chains")
axes[1].plot(*np.asarray(kept).reshape(-1, 2).T, ".", markersize=1)
axes[1].set(title="all draws")
plt.show()
