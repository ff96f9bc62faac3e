"""What type checkers refuse in a user's program: every line that ends in `# refused`, and no other.

`tools/user_types.py` runs mypy and pyright over this file; nothing here runs.
"""

import xpar
import xstack
import xstack.numpy as xnp
from xstack import lax, random

x = xnp.arange(3.0)
key = random.key(0)

# Misspelt names.
xnp.snh(x)  # refused
_ = xstack.shard_mapp  # refused
_ = xstack.random.norml  # refused
_ = lax.scann  # refused
xnp.linalg.eihg(x)  # refused
_ = xstack.tree.mapp  # refused
xstack.nn.rleu(x)  # refused
xstack.nn.initializers.he_norml()  # refused
x.at[0].sett(1.0)  # refused
x.summ()  # refused

# Arguments of another kind.
random.normal("a", 3)  # refused
random.normal(key, 3.5)  # refused
random.split("seed")  # refused
xnp.add("one", 2)  # refused
xnp.sin([1.0, 2.0])  # refused
xnp.zeros("three")  # refused
xnp.sum(x, axis="rows")  # refused
x + "one"  # refused
xstack.jit(3)  # refused
xstack.grad("loss")  # refused


def loss(weights: xstack.Array, bias: float = 0.0) -> xstack.Array:
    return xnp.sum(weights * bias)


xstack.grad(loss)(x, scale=2.0)  # refused
xstack.value_and_grad(loss)(x, bias="a")  # refused
xstack.checkpoint(loss)(x, scale=2.0)  # refused
xstack.jit(loss)(x, scale=2.0)  # refused
xstack.vmap(loss)(x, scale=2.0)  # refused

# Results of another kind.
xnp.linspace(0, 1).summ()  # refused
xnp.unique(x, return_counts=True).sum()  # refused
xnp.average(x, returned=True) + 1  # refused
_ = xnp.linalg.svd(x).s  # refused
u, v, w, z = xnp.linalg.svd(x)  # refused
_ = xnp.linalg.svd(x, compute_uv=False).S  # refused
xstack.vjp(loss, x)[0].summ()  # refused
xstack.jvp(loss, (x,), (x,))[2]  # refused

# Later parts.
mesh = xstack.make_mesh((1,), ("x",))
by_device = xstack.shard_map(loss, mesh=mesh, in_specs=xstack.P(), out_specs=xstack.P())
by_device(x, scale=2.0)  # refused
xstack.device_put(x).summ()  # refused
xstack.P("x", unreducd={"y"})  # refused
_ = x.adressable_shards  # refused
_ = xstack.new_ref(x) + 1  # refused
xstack.export.exprt(xstack.jit(loss))  # refused
xpar.distributd.initialize()  # refused
