"""
A Kalman filter by scan
=======================

A ball is tracked by positions with much noise. The filter is one ``lax.scan`` over
the measurements; since the whole of it can be differentiated, the noise levels are
not guessed but found by the gradient of the likelihood. Formulas: Kalman (1960),
the likelihood by the innovations of Schweppe (1965).
"""

import matplotlib.pyplot as plt
import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax, random
from xstack.scipy.stats import multivariate_normal

xstack.config.update("enable_x64", True)
STEP, TIMES = 0.1, 200
# The state is x, y and their speeds.
MOVE = xnp.eye(4) + STEP * xnp.eye(4, k=2)
LOOK = xnp.eye(2, 4)


def noise(params):
    shake = xnp.diag(xnp.array([STEP**2 / 2, STEP**2 / 2, STEP, STEP]) ** 2)
    return xnp.exp(params["push"]) ** 2 * shake, xnp.exp(
        params["blur"]
    ) ** 2 * xnp.eye(2)


# %%
# A path, and what is seen of it
# ------------------------------

truth = {"push": np.log(1.5), "blur": np.log(0.4)}


@xstack.jit
def simulate(key):
    pushes, blurs = noise(truth)

    def one(state, key):
        for_push, for_blur = random.split(key)
        state = random.multivariate_normal(
            for_push, MOVE @ state, pushes, method="svd"
        )
        return state, (
            state,
            random.multivariate_normal(for_blur, LOOK @ state, blurs),
        )

    start = xnp.array([0.0, 0.0, 1.0, 0.5])
    return lax.scan(one, start, random.split(key, TIMES))[1]


states, seen = simulate(random.key(0))

# %%
# The filter
# ----------
#
# The carry is the mean and the covariance of the state; each step adds the log
# density of what was seen to the likelihood.


@xstack.jit
def filtered(params, seen):
    pushes, blurs = noise(params)

    def one(carry, z):
        mean, cov = carry
        mean, cov = MOVE @ mean, MOVE @ cov @ MOVE.T + pushes
        spread = LOOK @ cov @ LOOK.T + blurs
        gain = xnp.linalg.solve(spread, LOOK @ cov).T
        density = multivariate_normal.logpdf(z, LOOK @ mean, spread)
        mean, cov = mean + gain @ (z - LOOK @ mean), cov - gain @ LOOK @ cov
        return (mean, cov), (mean, density)

    start = (xnp.zeros(4), 10 * xnp.eye(4))
    _, (means, densities) = lax.scan(one, start, seen)
    return means, densities.sum()


# %%
# Noise levels by gradient
# ------------------------


@xstack.jit
def ascend(params):
    gradient = xstack.grad(lambda p: filtered(p, seen)[1])(params)
    return xstack.tree.map(lambda p, g: p + 0.001 * g, params, gradient)


guess = params = {"push": xnp.array(np.log(0.2)), "blur": xnp.array(np.log(2.0))}
for _ in range(800):
    params = ascend(params)
for name in truth:
    guessed, found, true = (xnp.exp(p[name]) for p in (guess, params, truth))
    print(f"{name}: guessed {guessed:.2f}, found {found:.2f}, true {true:.2f}")

# %%
# The track
# ---------

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(*np.asarray(seen).T, ".", color="0.6", markersize=4, label="seen")
axes.plot(*np.asarray(states[:, :2]).T, "k", label="true")
for label, which in (
    ("filtered, guessed noise", guess),
    ("filtered, found noise", params),
):
    means = filtered(which, seen)[0][:, :2]
    error = xnp.sqrt(((means - states[:, :2]) ** 2).sum(1).mean())
    axes.plot(*np.asarray(means).T, linewidth=1, label=f"{label}: {error:.2f} off")
axes.legend()
plt.show()
