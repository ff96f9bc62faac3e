"""
Serve a model with jaxlib alone
===============================

A trained model is exported as bytes: its program and its weights. The server that
answers requests with it imports ``jaxlib``, NumPy and Python's standard library,
none of these packages.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import xstack
import xstack.numpy as xnp
from xstack import export, nn
from xstack.scipy.optimize import minimize

images, labels = load_digits(return_X_y=True)
images = np.float32(images / 16)

# %%
# Train, and export
# -----------------
#
# Logistic regression, by BFGS. The program takes batches of 32 images; the server
# fills up smaller ones.


def scores(weights, x):
    return nn.log_softmax(x @ weights.reshape(64, 10))


def loss(weights):
    right = xnp.take_along_axis(
        scores(weights, images[:1500]), labels[:1500, None], axis=1
    )
    return -right.mean() + 1e-3 * (weights**2).sum()


weights = minimize(loss, xnp.zeros(640), method="BFGS", options={"maxiter": 60}).x
model = xstack.jit(lambda x: xnp.exp(scores(weights, x)))
batch = xstack.ShapeDtypeStruct((32, 64), np.float32)
blob = export.export(model)(batch).serialize()
print(f"{len(blob):,} bytes, weights included")

# %%
# The server
# ----------
#
# .. literalinclude:: /examples/server.py
#    :caption: server.py, all of it
#
# It runs in a process of its own, and says which port it got. In a notebook,
# put :download:`server.py </examples/server.py>` into the notebook's folder first.

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
if not (here / "server.py").exists():
    raise FileNotFoundError(f"server.py, which the page shows, is not in {here}")
stored = Path(tempfile.mkdtemp()) / "model.bin"
stored.write_bytes(blob)
server = subprocess.Popen(
    [sys.executable, here / "server.py", stored], stdout=subprocess.PIPE, text=True
)
address = f"http://127.0.0.1:{int(server.stdout.readline())}"


def ask(x):
    with urlopen(address, json.dumps(x.tolist()).encode()) as reply:
        return np.array(json.load(reply), np.float32)


# %%
# Requests
# --------

first = ask(images[1500:1503])
print("digits", labels[1500:1503], "were read as", first.argmax(1))
here_too = xnp.exp(scores(weights, images[1500:1503]))
print(f"apart from what the model says here: {np.abs(first - here_too).max():.1e}")

guesses, times = [], []
for i in range(1503, 1797, 3):
    before = time.perf_counter()
    guesses.append(ask(images[i : i + 3]).argmax(1))
    times.append(1e3 * (time.perf_counter() - before))
server.terminate()
server.communicate()
share = (np.concatenate(guesses) == labels[1503:]).mean()
print(f"{share:.1%} of the new images are read correctly")

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.hist(times, bins=40)
axes.set(xlabel="milliseconds until the answer is there", ylabel="requests")
plt.show()
