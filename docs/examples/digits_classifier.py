"""
Classify handwritten digits
===========================

A network with two hidden layers learns to read the 1,797 digits of 8 x 8 pixels
that scikit-learn brings. One compiled call trains an epoch: ``lax.scan`` walks
over the minibatches, so Python is not in the loop.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import xstack
import xstack.numpy as xnp
from xstack import lax, nn, random
from xstack.example_libraries import optimizers

images, labels = load_digits(return_X_y=True)
images = images.astype(np.float32) / 16
train, test = slice(0, 1536), slice(1536, None)

# %%
# The model
# ---------
#
# Parameters are a list of pairs, which is a pytree: ``grad``, ``jit`` and the
# optimizer take it as it is. The initial weights are scaled by ``he_normal``, as
# suits ``relu``.


def init(key, sizes=(64, 128, 64, 10)):
    scaled = nn.initializers.he_normal()
    keys = random.split(key, len(sizes) - 1)
    shapes = itertools.pairwise(sizes)
    return [
        (scaled(k, shape), xnp.zeros(shape[1]))
        for k, shape in zip(keys, shapes, strict=True)
    ]


def logits(params, x):
    for w, b in params[:-1]:
        x = nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    return -xnp.take_along_axis(
        nn.log_softmax(logits(params, x)), y[:, None], axis=1
    ).mean()


# %%
# The training
# ------------
#
# ``random.permutation`` shuffles once an epoch; the scanned function sees one
# minibatch of 64 images at a time.

adam = optimizers.adam(3e-3)


@xstack.jit
def epoch(state, number, x, y):
    order = random.permutation(
        random.fold_in(random.key(1), number), len(x)
    ).reshape(-1, 64)

    def step(state, batch):
        value, gradient = xstack.value_and_grad(loss)(
            adam.params_fn(state), x[batch], y[batch]
        )
        return adam.update_fn(number * len(order), gradient, state), value

    state, losses = lax.scan(step, state, order)
    return state, losses.mean()


@xstack.jit
def accuracy(params, x, y):
    return (logits(params, x).argmax(1) == y).mean()


state = adam.init_fn(init(random.key(0)))
history = []
for number in range(20):
    state, mean_loss = epoch(state, number, images[train], labels[train])
    history.append(
        (mean_loss, accuracy(adam.params_fn(state), images[test], labels[test]))
    )
value, share = history[-1]
print(f"loss {value:.4f}, {share:.1%} of the test images are read correctly")

# %%
# What it learnt
# --------------

params = adam.params_fn(state)
guesses = logits(params, images[test]).argmax(1)
wrong = np.flatnonzero(guesses != labels[test])[:10]

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].plot(np.array(history), label=["loss", "accuracy of the test images"])
axes[0].set(xlabel="epoch", ylim=(0, 1.1))
axes[0].legend()
strip = np.hstack(
    [images[test][i].reshape(8, 8) for i in wrong] or [np.zeros((8, 8))]
)
axes[1].imshow(strip, cmap="gray_r")
axes[1].set(
    title="read as " + ", ".join(str(int(guesses[i])) for i in wrong),
    xticks=[],
    yticks=[],
)
plt.show()
