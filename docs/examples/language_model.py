"""
A language model of characters
==============================

A transformer with two blocks learns to write, letter by letter, in the manner of
Python's own reference manual, whose text comes with every Python. Six hundred
steps take a minute on two cores; ``STEPS`` in the environment sets another
number. The run of this page is a short one, whose words are not words yet.
"""

import os
from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax, nn, random
from xstack.example_libraries import optimizers

STEPS = int(os.environ.get("STEPS", "600"))
WIDTH, HEADS, BLOCKS, CONTEXT, BATCH = 96, 4, 2, 64, 24

text = "\n".join(topics[name] for name in sorted(topics))
letters = sorted(set(text))
number_of = {letter: i for i, letter in enumerate(letters)}
codes = np.array([number_of[letter] for letter in text], np.int32)
print(f"{len(codes):,} characters, {len(letters)} different ones")

# %%
# The model
# ---------
#
# Attention comes from ``nn.dot_product_attention``. The weights of the blocks are
# stacked, and ``lax.scan`` applies one block after the other, so a deep model
# compiles as fast as a shallow one.


def init(key):
    def weights(key, *shape):
        return random.normal(key, shape) / np.sqrt(shape[-2])

    keys = iter(random.split(key, 7))
    return {
        "letters": 0.1 * random.normal(next(keys), (len(letters), WIDTH)),
        "places": 0.1 * random.normal(next(keys), (CONTEXT, WIDTH)),
        "blocks": {
            "qkv": weights(next(keys), BLOCKS, WIDTH, 3 * WIDTH),
            "mix": weights(next(keys), BLOCKS, WIDTH, WIDTH),
            "up": weights(next(keys), BLOCKS, WIDTH, 4 * WIDTH),
            "down": weights(next(keys), BLOCKS, 4 * WIDTH, WIDTH),
        },
        "out": weights(next(keys), WIDTH, len(letters)),
    }


def block(x, w):
    shape = (*x.shape[:2], HEADS, WIDTH // HEADS)
    q, k, v = (
        part.reshape(shape)
        for part in xnp.split(nn.standardize(x) @ w["qkv"], 3, axis=-1)
    )
    x = (
        x
        + nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
        @ w["mix"]
    )
    return x + nn.gelu(nn.standardize(x) @ w["up"]) @ w["down"], None


def logits(params, tokens):
    x = params["letters"][tokens] + params["places"][: tokens.shape[1]]
    x, _ = lax.scan(block, x, params["blocks"])
    return nn.standardize(x) @ params["out"]


def loss(params, tokens):
    guesses = nn.log_softmax(logits(params, tokens[:, :-1]))
    return -xnp.take_along_axis(guesses, tokens[:, 1:, None], axis=2).mean()


# %%
# The training
# ------------
#
# Where a batch begins is drawn inside of the compiled step. The schedule lowers
# the step size to a tenth at the end.

adam = optimizers.adam(optimizers.exponential_decay(3e-3, STEPS, 0.1))


@xstack.jit
def step(number, state, codes):
    key = random.fold_in(random.key(1), number)
    begins = random.randint(key, (BATCH, 1), 0, len(codes) - CONTEXT)
    tokens = codes[begins + xnp.arange(CONTEXT + 1)]
    value, gradient = xstack.value_and_grad(loss)(adam.params_fn(state), tokens)
    return adam.update_fn(number, gradient, state), value


codes = xnp.asarray(codes)
state = adam.init_fn(init(random.key(0)))
losses = []
for number in range(STEPS):
    state, value = step(number, state, codes)
    losses.append(value)
print(f"{STEPS} steps: loss {losses[0]:.2f} -> {losses[-1]:.2f} nats a character")

# %%
# What it writes
# --------------
#
# One compiled loop draws the letters: the carry is the window of the last 64
# letters and the key.


@xstack.jit
def sample(params, window, key):
    def one(carry, _):
        window, key = carry
        key, now = random.split(key)
        letter = random.categorical(now, logits(params, window[None])[0, -1] / 0.7)
        return (xnp.append(window[1:], letter), key), letter

    return lax.scan(one, (window, key), length=300)[1]


written = sample(adam.params_fn(state), codes[1000 : 1000 + CONTEXT], random.key(7))
print("".join(letters[i] for i in written))

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(np.array(losses), linewidth=0.8)
axes.set(xlabel="step", ylabel="nats a character")
plt.show()
