"""Programs like those that the oracle's pages on sharp edges and on frequent questions discuss.

    name -> sources, each run as one input of an interactive session

Where the pages are: jax-ml/jax, docs/notebooks/Common_Gotchas_in_JAX.md and docs/faq.rst.
"""

from __future__ import annotations

_METHODS = """
class Scaled:
    def __init__(self, factor, active):
        self.factor, self.active = factor, active

    @{decorator}
    def of(self, y):
        return self.factor * y if self.active else y
"""
_STATIC = "__import__('functools').partial(jit, static_argnums=0)"
_BY_VALUE = """
def _key(s):
    return s.factor, s.active

Scaled.__hash__ = lambda s: hash(_key(s))
Scaled.__eq__ = lambda s, o: _key(s) == _key(o)
"""
_CLASS = [_METHODS.format(decorator="jit")]
_STATIC_CLASS = [_METHODS.format(decorator=_STATIC)]
_LEAVES = """jax.tree_util.register_pytree_node(
    Scaled, lambda s: ((s.factor,), {"active": s.active}), lambda aux, xs: Scaled(*xs, **aux))
"""
_BRANCHING = "def by_size(x):\n    return 3.0 * x**2 if x < 3 else -4 * x\n"

PROGRAMS: dict[str, list[str]] = {
    "a print happens once": [
        "def noisy(x):\n    print('runs')\n    return x\n",
        "jit(noisy)(4.0), jit(noisy)(5.0), jit(noisy)(jnp.array([5.0]))",
    ],
    "a global that changes": [
        "g = 0.0", "def plus(x):\n    return x + g\n", "jit(plus)(4.0)", "g = 10.0",
        "jit(plus)(5.0)", "jit(plus)(jnp.array([4.0]))",
    ],
    "one jitted function and a global that changes": [
        "g = 0", "plus = jit(lambda x: x + g)", "plus(0)", "g = 1", "plus(1)",
    ],
    "a traced value that is saved": [
        "saved = []", "_ = jit(lambda x: saved.append(x) or x)(4.0)",
        "isinstance(saved[0], jax.core.Tracer)",
    ],
    "state within a function": [
        "def f(x):\n    sums = [0, 0]\n    for i in range(10):\n        sums[i % 2] += x\n"
        "    return sums[0] + sums[1]\n",
        "jit(f)(5.0)",
    ],
    "iterators": [
        "numbers = jnp.arange(10)", "lax.fori_loop(0, 10, lambda i, x: x + numbers[i], 0)",
        "it = iter(range(10))", "lax.fori_loop(0, 10, lambda i, x: x + next(it), 0)",
        "lax.scan(lambda c, x: (c, x), 0.0, iter(range(16)))",
        "lax.cond(True, it, lambda x: next(x) + 1, it, lambda x: next(x) - 1)",
    ],
    "scan over a pair": [
        "xs = jnp.arange(16.0)",
        "lax.scan(lambda c, ab: (c + ab[0] * ab[1] + 5.0, c), 0.0, (xs, jnp.ones(16)))",
    ],
    "the older form of cond": [
        "x = jnp.zeros(1)", "lax.cond(True, x, lambda x: x + 1, x, lambda x: x - 1)",
        "lax.cond(False, x, lambda x: x + 1, x, lambda x: x - 1)",
    ],
    "updates": [
        "x = jnp.zeros((3, 3))", "x[1, :] = 1.0", "x.at[1, :].set(1.0)", "x",
        "jnp.ones((5, 6)).at[::2, 3:].add(7.0)",
    ],
    "out of bounds with a mode": [
        "x = jnp.arange(10.0)", "x.at[11].get(mode='clip')", "x.at[11].get(mode='fill')",
        "x.at[11].get(mode='fill', fill_value=-1)", "x.at[11].set(5.0, mode='drop')",
    ],
    "an int out of bounds": ["jnp.arange(10)[11]"],
    "lists are not arrays": ["jnp.sum([1, 2, 3])", "jnp.sum(jnp.array([1, 2, 3]))"],
    "nothing but NaN": ["jnp.nanargmin(jnp.array([jnp.nan])), jnp.nanargmax(jnp.full(2, jnp.nan))"],
    "random keys": [
        "key = random.PRNGKey(0)", "key", "random.normal(key, (1,)), random.normal(key, (1,))",
        "key, subkey = random.split(key)", "key, subkey, random.normal(subkey, (1,))",
        "key, *subkeys = random.split(key, 4)", "[random.normal(k, (1,)) for k in subkeys]",
    ],
    "conditions of Python": [
        _BRANCHING, "grad(by_size)(2.0), grad(by_size)(4.0)", "jit(by_size)(2)",
        "jit(by_size, static_argnums=0)(2.0)",
    ],
    "loops of Python": [
        "def total(x, n):\n    y = 0.0\n    for i in range(n):\n        y += x[i]\n    return y\n",
        "jit(total, static_argnums=1)(jnp.array([2.0, 3.0, 4.0]), 2)",
        "jit(total)(jnp.array([2.0, 3.0, 4.0]), 2)",
    ],
    "sizes that depend on values": [
        "jit(lambda n, v: jnp.ones((n,)) * v)(10, 4)",
        "jit(lambda n, v: jnp.ones((n,)) * v, static_argnums=0)(5, 4)",
        "jit(lambda x: x[~jnp.isnan(x)])(jnp.array([1.0, jnp.nan]))",
        "jit(lambda x: jnp.where(jnp.isnan(x), 0, x).sum())(jnp.array([1.0, jnp.nan]))",
    ],
    "loops of lax": [
        "lax.while_loop(lambda x: x < 10, lambda x: x + 1, 0)",
        "lax.fori_loop(0, 10, lambda i, x: x + i, 0)",
        "grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(1.0)",
        "grad(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x))(1.0)",
        "jax.jvp(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x), (1.0,), (1.0,))",
    ],
    "looking for NaN": [
        "with jax.debug_nans(True):\n    jnp.divide(0.0, 0.0)\n",
        "with jax.debug_nans(True):\n    jit(lambda x, y: (x + y) / (x - y))(0.0, 0.0)\n",
        "jnp.divide(0.0, 0.0)",
    ],
    "double precision": [
        "with jax.enable_x64(True):\n    print(random.uniform(random.key(0), (3,)).dtype)\n",
        "random.uniform(random.key(0), (3,)).dtype",
    ],
    "a 64-bit dtype that is asked for": ["jnp.zeros(3, jnp.float64).dtype"],
    "rounding of compiled programs": [
        "jnp.log(jnp.sqrt(jnp.pi)), jit(lambda x: jnp.log(jnp.sqrt(x)))(jnp.pi)",
        "jnp.log(jnp.exp(100.0)), jit(lambda x: jnp.log(jnp.exp(x)))(100.0)",
    ],
    "a method that is jitted": [*_CLASS, "Scaled(2, True).of(3)"],
    "a method with a static object": [
        *_STATIC_CLASS, "s = Scaled(2, True)", "s.of(3)",
        _BY_VALUE, "Scaled(2, True).of(3), Scaled(2, False).of(3), Scaled(5, True).of(3)",
    ],
    "a static object that changes": [
        *_STATIC_CLASS, "s = Scaled(2, True)", "s.of(3)", "s.active = False", "s.of(3)",
    ],
    "a method of a tree": [
        *_CLASS, _LEAVES, "s = Scaled(2, True)", "s.of(3)", "s.active = False", "s.of(3)",
        "Scaled(jnp.array(2), True).of(3)",
    ],
    "where and NaN": [
        "grad(lambda x: jnp.where(x > 0.0, jnp.log(x), 0.0))(0.0)",
        "grad(lambda x: jnp.log(jnp.where(x > 0.0, x, 1.0)))(0.0)",
    ],
    "steps and smooth steps": [
        "xs = jnp.array([-10.0, -1.0, 0.0, 1.0, 10.0])",
        "vmap(grad(lambda x: (x > 0).astype(float)))(xs)", "vmap(grad(nn.sigmoid))(xs)",
    ],
    "traced values and NumPy": [
        "jit(lambda x: np.asarray(x))(jnp.arange(5))",
        "shape = jax.ShapeDtypeStruct((3,), jnp.float32)",
        "jit(lambda x: jax.pure_callback(np.sin, shape, x))(jnp.arange(3.0))",
    ],
}  # fmt: skip
