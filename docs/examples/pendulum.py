"""
A pendulum whose constants are measured
=======================================

The swing of a damped pendulum was recorded with some noise. The length, the
damping and the angle it was let go at follow from the record: ``odeint`` solves
the equation of motion, ``grad`` goes through the solver by the adjoint equation,
and a few Gauss-Newton steps with ``jacfwd`` end where the gradient is zero.
"""

import matplotlib.pyplot as plt

import xstack
import xstack.numpy as xnp
from xstack import random
from xstack.experimental.ode import odeint

xstack.config.update("enable_x64", True)
GRAVITY = 9.81  # m/s^2

# %%
# The equation of motion
# ----------------------
#
# The state is angle and angular speed. Times are in seconds, the length in metres,
# the damping in 1/s.


def motion(state, time, length, damping):
    angle, speed = state
    return xnp.stack([speed, -GRAVITY / length * xnp.sin(angle) - damping * speed])


def swing(params, times):
    begin = xnp.stack([params["angle"], xnp.zeros(())])
    return odeint(motion, begin, times, params["length"], params["damping"])[:, 0]


times = xnp.linspace(0, 8, 60)
truth = {"length": 1.3, "damping": 0.25, "angle": 1.9}
truth = xstack.tree.map(xnp.asarray, truth)
record = swing(truth, times) + 0.05 * random.normal(random.key(0), times.shape)

# %%
# The fit
# -------
#
# ``ravel_pytree`` makes the three numbers one vector for the linear algebra; the
# model keeps its names.

guess = xstack.tree.map(xnp.asarray, {"length": 1.0, "damping": 0.1, "angle": 1.5})
vector, unravel = xstack.flatten_util.ravel_pytree(guess)


def residuals(vector):
    return swing(unravel(vector), times) - record


@xstack.jit
def gauss_newton(vector):
    jacobian = xstack.jacfwd(residuals)(vector)
    update = xnp.linalg.lstsq(jacobian, -residuals(vector))[0]
    return vector + update, (residuals(vector) ** 2).mean()


for number in range(12):
    vector, error = gauss_newton(vector)
    print(f"step {number}: mean square {error:.6f}")

fitted = unravel(vector)
gradient = xstack.grad(lambda v: (residuals(v) ** 2).mean())(vector)
print({name: round(float(value), 3) for name, value in fitted.items()})
print(f"the largest component of the gradient left: {xnp.abs(gradient).max():.1e}")

# %%
# Fit and record
# --------------

fine = xnp.linspace(0, 8, 400)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(times, record, "k.", label="record")
axes.plot(fine, swing(guess, fine), "--", linewidth=0.8, label="first guess")
axes.plot(fine, swing(fitted, fine), label="fit")
axes.set(xlabel="seconds", ylabel="angle in radians")
axes.legend()
plt.show()
