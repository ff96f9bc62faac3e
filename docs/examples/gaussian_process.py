"""
A Gaussian process that fits its own hyperparameters
====================================================

Twenty-five noisy points of a curve; how smooth the curve is, how high it swings
and how loud the noise is are found by the gradient of the marginal likelihood,
which goes through a Cholesky factorisation. The formulas are algorithm 2.1 of
Rasmussen and Williams, *Gaussian Processes for Machine Learning* (2006).
"""

import matplotlib.pyplot as plt
import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax, random
from xstack.scipy.linalg import cho_solve
from xstack.scipy.optimize import minimize

xstack.config.update("enable_x64", True)


def curve(x):
    return xnp.sin(3 * x) + 0.3 * x


x = random.uniform(random.key(0), (25,), minval=-3, maxval=3)
y = curve(x) + 0.2 * random.normal(random.key(1), x.shape)

# %%
# The likelihood
# --------------
#
# The hyperparameters are logarithms, so they stay positive. ``vmap`` twice makes
# the kernel of two numbers the matrix of all pairs.


def kernel(log_height, log_length, a, b):
    return xnp.exp(2 * log_height - 0.5 * ((a - b) / xnp.exp(log_length)) ** 2)


def pairs(hyper, a, b):
    row = xstack.vmap(kernel, in_axes=(None, None, None, 0))
    return xstack.vmap(row, in_axes=(None, None, 0, None))(hyper[0], hyper[1], a, b)


def factor(hyper):
    noise = xnp.exp(2 * hyper[2])
    return xnp.linalg.cholesky(pairs(hyper, x, x) + noise * xnp.eye(len(x)))


@xstack.jit
def negative_log_likelihood(hyper):
    root = factor(hyper)
    weights = cho_solve((root, True), y)
    return (
        0.5 * y @ weights
        + xnp.log(xnp.diag(root)).sum()
        + 0.5 * len(x) * xnp.log(2 * xnp.pi)
    )


# %%
# The fit
# -------
#
# ``minimize`` runs BFGS, with the gradient that ``grad`` derives. The Hessian at
# the minimum says how sure each of the hyperparameters is.

start = xnp.log(xnp.array([1.0, 1.0, 0.5]))
result = minimize(negative_log_likelihood, start, method="BFGS")
curvature = xstack.hessian(negative_log_likelihood)(result.x)
deviations = xnp.sqrt(xnp.diag(xnp.linalg.inv(curvature)))
for name, value, deviation in zip(
    ("height", "length", "noise"), result.x, deviations, strict=True
):
    print(
        f"{name}: {xnp.exp(value):.3f}, within a factor of {xnp.exp(deviation):.2f}"
    )

# %%
# The prediction
# --------------


@xstack.jit
def predict(hyper, where):
    root = factor(hyper)
    across = pairs(hyper, x, where)
    mean = across.T @ cho_solve((root, True), y)
    half = lax.linalg.triangular_solve(root, across, left_side=True, lower=True)
    return mean, xnp.sqrt(xnp.exp(2 * hyper[0]) - (half**2).sum(0))


where = xnp.linspace(-4, 4, 300)
figure, axes = plt.subplots(
    1, 2, figsize=(9, 3.2), sharey=True, layout="constrained"
)
for panel, hyper, title in zip(
    axes, (start, result.x), ("before", "after the fit"), strict=True
):
    mean, deviation = map(np.asarray, predict(hyper, where))
    panel.fill_between(
        where, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25
    )
    panel.plot(where, mean, label="mean and 2 standard deviations")
    panel.plot(where, curve(where), "k--", linewidth=0.8, label="the curve")
    panel.plot(x, y, "k.", label="data")
    panel.set(title=f"{title}: {negative_log_likelihood(hyper):.1f} nats")
axes[0].legend(fontsize=8)
plt.show()
