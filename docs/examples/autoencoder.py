"""
An autoencoder of images
========================

Images of digits are squeezed through eight numbers and drawn again. The encoder
and the decoder are convolutions, the decoder's with ``lax.conv_transpose``; moving
the eight numbers from one image to another draws what lies between.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import xstack
import xstack.numpy as xnp
from xstack import lax, nn, random
from xstack.example_libraries import optimizers

images = (load_digits().images[..., None] / 16).astype(np.float32)
LAYOUT = ("NHWC", "HWIO", "NHWC")

# %%
# The model
# ---------
#
# 8 x 8 pixels become 4 x 4 with 16 channels, then 2 x 2 with 32, then eight
# numbers; the decoder goes back the same way.


def init(key):
    scaled = nn.initializers.he_normal()
    shapes = {
        "in1": (3, 3, 1, 16),
        "in2": (3, 3, 16, 32),
        "code": (128, 8),
        "spread": (8, 128),
        "out2": (3, 3, 32, 16),
        "out1": (3, 3, 16, 1),
    }
    keys = random.split(key, len(shapes))
    return {
        name: scaled(k, shape)
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def encode(params, x):
    for name in ("in1", "in2"):
        x = lax.conv_general_dilated(
            x, params[name], (2, 2), "SAME", dimension_numbers=LAYOUT
        )
        x = nn.gelu(x)
    return x.reshape(len(x), -1) @ params["code"]


def decode(params, code):
    x = nn.gelu(code @ params["spread"]).reshape(-1, 2, 2, 32)
    x = nn.gelu(
        lax.conv_transpose(
            x, params["out2"], (2, 2), "SAME", dimension_numbers=LAYOUT
        )
    )
    x = lax.conv_transpose(
        x, params["out1"], (2, 2), "SAME", dimension_numbers=LAYOUT
    )
    return nn.sigmoid(x)


def loss(params, x):
    return ((decode(params, encode(params, x)) - x) ** 2).mean()


# %%
# The training
# ------------

adam = optimizers.adam(2e-3)


@xstack.jit
def epoch(state, number, x):
    order = random.permutation(random.fold_in(random.key(1), number), 1792).reshape(
        -1, 64
    )

    def step(state, batch):
        value, gradient = xstack.value_and_grad(loss)(
            adam.params_fn(state), x[batch]
        )
        return adam.update_fn(number * 28, gradient, state), value

    return lax.scan(step, state, order)


state = adam.init_fn(init(random.key(0)))
losses = []
for number in range(25):
    state, values = epoch(state, number, images)
    losses.append(values.mean())
print(f"mean square of a pixel: {losses[0]:.4f} -> {losses[-1]:.4f}")

# %%
# Images, what comes back, and what lies between
# ----------------------------------------------

params = adam.params_fn(state)
some = images[:12]
back = decode(params, encode(params, some))
codes = encode(params, images[np.array([0, 4])])
between = decode(
    params, codes[:1] + xnp.linspace(0, 1, 12)[:, None] * (codes[1:] - codes[:1])
)

figure, axes = plt.subplots(3, 1, figsize=(8, 3), layout="constrained")
for panel, row, title in zip(
    axes,
    (some, back, between),
    ("images", "through eight numbers", "from 0 to 4"),
    strict=True,
):
    panel.imshow(np.hstack(np.asarray(row[..., 0])), cmap="gray_r", vmin=0, vmax=1)
    panel.set(xticks=[], yticks=[], title=title)
plt.show()
