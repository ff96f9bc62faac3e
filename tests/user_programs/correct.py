"""Programs as users write them, in which type checkers find no error.

`tools/user_types.py` runs mypy and pyright over this file; nothing here runs. The programs of the
tutorials are checked in the same way.
"""

from functools import partial
from typing import assert_type

import numpy as np

import xpar
import xstack
import xstack.numpy as xnp
from xstack import Array, P, grad, jit, lax, nn, random, tree, value_and_grad, vmap
from xstack.experimental import sparse
from xstack.experimental.custom_partitioning import custom_partitioning
from xstack.experimental.layout import Format, Layout
from xstack.sharding import AxisType, NamedSharding
from xstack.typing import ArrayLike, DTypeLike

# Random numbers.
key = random.key(0)
k1, k2 = random.split(key)
assert_type(k1, Array)
assert_type(random.normal(k2, (3, 2)), Array)
assert_type(random.uniform(k1, 3, "float32", minval=-1.0), Array)
keys = random.split(key, 10)
noise = vmap(random.normal)(keys)

# Arrays.
x = xnp.arange(6.0).reshape(2, 3)
rows, columns = x.shape
assert_type(x.at[0].set(1.0), Array)
assert_type(x.at[0, :].add(x[1]), Array)
assert_type(x @ x.T + 1, Array)
assert_type(2.0 * x - np.ones(3), Array)
assert_type(xnp.add(x, 1), Array)
assert_type(xnp.sin(2.0), Array)
assert_type(x.sum(axis=0), Array)
assert_type(xnp.linalg.norm(x), Array)
assert_type(nn.relu(x), Array)
sizes: tuple[int, ...] = x.shape
zeros = xnp.zeros((rows, np.int64(3)), dtype=xnp.float32)
halves = x.astype("float16"), x.astype(np.float64), x.astype(xnp.int32)
joined = xnp.concatenate([x, zeros]), xnp.stack([x, zeros], axis=-1)
mean = float(xnp.mean(x, axis=(0, 1)))
host = np.asarray(x)
for row in x:
    row.max()
best = x[xnp.argmax(x[:, 0]), 1:]
scaled = xnp.where(x > 2, x, 0.0)


def standardized(values: ArrayLike, dtype: DTypeLike = None) -> Array:
    values = xnp.asarray(values, dtype)
    return (values - values.mean()) / values.std()


# Transformations.
def loss(weights: Array, inputs: ArrayLike, scale: float = 1.0) -> Array:
    return scale * xnp.sum(xnp.tanh(weights @ xnp.asarray(inputs)) ** 2)


assert_type(jit(loss)(x, zeros), Array)
assert_type(value_and_grad(loss)(x, zeros, scale=2.0)[0], Array)
gradient = grad(loss)(x, zeros)
step = jit(vmap(grad(loss), in_axes=(None, 0)))
hessian = xstack.hessian(loss)(x, zeros)
checkpointed = xstack.checkpoint(loss)(x, zeros)


@partial(jit, static_argnames=("n",))
def power(value: Array, n: int) -> Array:
    return value**n


@xstack.custom_jvp
def clipped(value: Array) -> Array:
    return xnp.clip(value, -1, 1)


@clipped.defjvp
def clipped_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return clipped(*primals), tangents[0]


assert_type(clipped(x), Array)
cubes: Array = power(x, n=3)


def clipped_twice(value: Array) -> Array:
    return clipped(clipped(value))


# Control flow.
def running(carry: Array, value: Array) -> tuple[Array, Array]:
    return carry + value, carry


total, steps = lax.scan(running, xnp.zeros(3), x)
assert_type(total, Array)
assert_type(steps, Array)
total, steps = lax.scan(lambda carry, value: (carry + value, carry), 0.0, xnp.arange(3.0))
assert_type(lax.cond(x[0, 0] > 0, clipped_twice, standardized, x), Array)
either = lax.cond(x[0, 0] > 0, lambda v: v, lambda v: -v, x) + 1
doubled = lax.while_loop(lambda v: v < 100, lambda v: v * 2, 1) + 1
assert_type(lax.fori_loop(0, 3, lambda i, v: v + i, xnp.zeros(2)), Array)


def updated(state: tuple[Array, Array]) -> tuple[Array, Array]:
    count, value = state
    return count + 1, value / 2


count, value = lax.while_loop(lambda state: state[0] < 3, updated, (xnp.zeros(()), x))
assert_type(value, Array)

# Results that depend on an option.
grid = xnp.linspace(0, 1, 5) * 2
grid, distance = xnp.linspace(0, 1, 5, retstep=True)
assert_type(distance * grid, Array)
found, counts = xnp.unique(x, return_counts=True)
assert_type(xnp.unique(x).sum() + counts.max(), Array)
left, sizes_of_axes, right = xnp.linalg.svd(x, full_matrices=False)
assert_type(left * sizes_of_axes @ right, Array)
assert_type(xnp.linalg.svd(x, compute_uv=False).max(), Array)
assert_type(xnp.linalg.svd(x).S, Array)
orthogonal, upper = xnp.linalg.qr(x)
assert_type(xnp.linalg.qr(x, mode="r").T @ xnp.linalg.lstsq(x, x)[0], Array)
assert_type(xnp.average(x, weights=x) + nn.logsumexp(x), Array)
slopes = xnp.gradient(x[0]) + 1
rows_and_columns = xnp.gradient(x)[0] + 1
value_there, pull_back = xstack.vjp(loss, x, zeros)
weights_bar, _ = pull_back(value_there)
value_there, slope = xstack.jvp(lambda v: loss(v, zeros), (x,), (x,))
both = slope + value_there
value_there, push_forward = xstack.linearize(lambda v: loss(v, zeros), x)
limits = float(xnp.finfo(x.dtype).eps), xnp.iinfo("int8").max + 1
widest = np.zeros(3, xnp.result_type(x, 1.0)), xnp.promote_types("int8", "float16").itemsize

# Trees.
params = {"weights": x, "biases": [zeros, zeros]}
params = tree.map(lambda p: 0.9 * p, params)
leaves, structure = tree.flatten(params)

# Meshes, shardings, formats.
mesh = xstack.make_mesh((1, 1), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
spec = P("x", None, unreduced={"y"})
place = NamedSharding(mesh, P("x"))
assert_type(xstack.device_put(x, place), Array)
assert_type(xstack.device_put(x, Format(Layout((1, 0)), place)), Array)
on_devices = xstack.device_put({"weights": x, "bias": 0.0}, place)["weights"]
for shard in x.addressable_shards:
    print(shard.index, shard.data.shape, shard.device)


@xstack.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def on_each(value: Array) -> Array:
    return value * lax.axis_index("x")


assert_type(on_each(x), Array)


def summed(value: Array) -> Array:
    return lax.psum(value, "x")


assert_type(xstack.shard_map(summed, mesh=mesh, in_specs=P("x"), out_specs=P())(x), Array)
with xstack.set_mesh(mesh), xstack.config.first_compile_level(0):
    level = xstack.config.first_compile_level.value

# References, callbacks, exported programs, sparse arrays.
count_so_far = xstack.new_ref(xnp.zeros(3))
count_so_far[0] = 1.0
count_so_far[...] += 2.0
assert_type(count_so_far[...], Array)
assert_type(xstack.ref.freeze(count_so_far), Array)
xstack.debug.print("x = {}", x, partitioned=True)
xstack.pure_callback(np.sin, xstack.ShapeDtypeStruct((3,), "float32"), x, vmap_method="sequential")


@custom_partitioning
def doubled_by_parts(value: Array) -> Array:
    return value * 2


exported = xstack.export.export(jit(updated))((x, x))
again = xstack.export.deserialize(exported.serialize()).call((x, x))
matrix = sparse.BCOO.fromdense(xnp.eye(3))
assert_type(matrix.todense() + 1, Array)
xpar.distributed.initialize()
