"""
Training on eight devices
=========================

One training step, run data-parallel and then with sharded weights, on eight
virtual devices of this computer; on eight GPUs the program is the same. The step
is written for one device: the shardings of its arrays decide how it is split, and
``explain_communication`` lists what the devices exchange.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import xstack
import xstack.numpy as xnp
from xstack import nn, random
from xstack.sharding import AxisType, NamedSharding, PartitionSpec as P

xstack.config.update("num_cpu_devices", 8)
images, labels = load_digits(return_X_y=True)
x, y = np.float32(images[:1024] / 16), np.int32(labels[:1024])

# %%
# The step
# --------


def init(key, width=256):
    keys = random.split(key)
    scaled = nn.initializers.he_normal()
    return {
        "first": scaled(keys[0], (64, width)),
        "last": scaled(keys[1], (width, 10)),
    }


def loss(params, x, y):
    scores = nn.log_softmax(nn.relu(x @ params["first"]) @ params["last"])
    return -xnp.take_along_axis(scores, y[:, None], axis=1).mean()


@xstack.jit
def step(params, x, y):
    value, gradient = xstack.value_and_grad(loss)(params, x, y)
    return xstack.tree.map(lambda p, g: p - 0.3 * g, params, gradient), value


# %%
# Three shardings
# ---------------
#
# A mesh of 4 x 2 devices has the axes ``data`` and ``model``. The first sharding
# splits the batch over all devices and replicates the weights; the second one
# splits the hidden layer over all; the third one does some of both. With
# ``AxisType.Auto`` the compiler inserts the collectives.

mesh = xstack.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
ways = {
    "data-parallel": (P(("data", "model")), {"first": P(), "last": P()}),
    "tensor-parallel": (
        P(),
        {"first": P(None, ("data", "model")), "last": P(("data", "model"))},
    ),
    "both": (P("data"), {"first": P(None, "model"), "last": P("model")}),
}


def lay_out(tree, specs):
    return xstack.device_put(
        tree, xstack.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    )


start = init(random.key(0))
histories, exchanged = {}, {}
for name, (batch, weights) in ways.items():
    params = lay_out(start, weights)
    there = lay_out((x, y), (batch, P(batch[0]) if batch else P()))
    communication = xstack.debug.explain_communication(step, params, *there)
    print(name, communication, sep="\n", end="\n\n")
    exchanged[name] = communication.bytes / 1e3
    histories[name] = []
    for _ in range(60):
        params, value = step(params, *there)
        histories[name].append(float(value))

# %%
# The same numbers, with other traffic
# ------------------------------------

apart = max(
    abs(np.subtract(histories[name], histories["data-parallel"])).max()
    for name in ways
)
print(f"losses differ by {apart:.1e} at most")
xstack.debug.visualize_array_sharding(params["first"])

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for name, losses in histories.items():
    axes[0].plot(losses, label=name)
axes[0].set(xlabel="step", ylabel="loss")
axes[0].legend()
axes[1].barh(list(exchanged), list(exchanged.values()))
axes[1].set(xlabel="kB exchanged in a step")
plt.show()
