"""
k-means and nearest neighbours
==============================

Both are written for one point and made functions of many by ``vmap``. Lloyd's
algorithm (1957) ends when no point moves to another cluster, so it is a
``lax.while_loop``; the best of sixteen starts costs one more ``vmap``.
"""

import matplotlib.pyplot as plt
import numpy as np

import xstack
import xstack.numpy as xnp
from xstack import lax, random

CLUSTERS = 5
centres = 4 * random.normal(random.key(3), (CLUSTERS, 2))
truth = random.randint(random.key(1), (600,), 0, CLUSTERS)
points = centres[truth] + 0.8 * random.normal(random.key(2), (600, 2))

# %%
# k-means
# -------
#
# ``segment_sum`` adds the points of each cluster. A cluster that lost all of its
# points stays where it was.


def distance(a, b):
    return ((a - b) ** 2).sum()


def nearest(point, means):
    return xstack.vmap(distance, in_axes=(None, 0))(point, means).argmin()


def cluster(key):
    def improve(state):
        means, labels, _ = state
        count = xstack.ops.segment_sum(xnp.ones(len(points)), labels, CLUSTERS)[
            :, None
        ]
        total = xstack.ops.segment_sum(points, labels, CLUSTERS)
        means = xnp.where(count > 0, total / xnp.maximum(count, 1), means)
        new = xstack.vmap(nearest, in_axes=(0, None))(points, means)
        return means, new, (new != labels).any()

    means = random.choice(key, points, (CLUSTERS,), replace=False)
    labels = xstack.vmap(nearest, in_axes=(0, None))(points, means)
    means, labels, _ = lax.while_loop(
        lambda state: state[2], improve, (means, labels, True)
    )
    return means, labels, xstack.vmap(distance)(points, means[labels]).sum()


means, labels, spread = xstack.jit(xstack.vmap(cluster))(
    random.split(random.key(4), 16)
)
best = spread.argmin()
print(f"sum of squares of 16 starts: {spread.min():.1f} to {spread.max():.1f}")

# %%
# Nearest neighbours
# ------------------
#
# A point of the plane belongs where most of its nine nearest data points do. The
# plane is 160 x 160 points; ``lax.map`` with ``batch_size`` looks at 2,000 of them
# at a time, so the table of distances stays small.


def vote(place):
    apart = xstack.vmap(distance, in_axes=(None, 0))(place, points)
    _, indices = lax.top_k(-apart, 9)
    return xnp.bincount(truth[indices], length=CLUSTERS).argmax()


sides = [
    xnp.linspace(points[:, i].min() - 1, points[:, i].max() + 1, 160)
    for i in (0, 1)
]
plane = xnp.stack(xnp.meshgrid(*sides), -1).reshape(-1, 2)
regions = xstack.jit(lambda p: lax.map(vote, p, batch_size=2_000))(plane).reshape(
    160, 160
)

figure, axes = plt.subplots(
    1, 2, figsize=(9, 3.6), sharex=True, sharey=True, layout="constrained"
)
axes[0].scatter(*np.asarray(points).T, c=labels[best], s=6, cmap="tab10")
axes[0].plot(*np.asarray(means[best]).T, "k+", markersize=14)
axes[0].set(title="k-means, and the means")
axes[1].pcolormesh(*sides, regions, cmap="tab10", alpha=0.35)
axes[1].scatter(*np.asarray(points).T, c=truth, s=6, cmap="tab10")
axes[1].set(title="nine nearest neighbours")
plt.show()
