"""Transformations of functions of one vector, to be nested in each other."""

import xnp
from xad import checkpoint, grad, jacfwd, jacrev, jvp, linearize, vjp
from xbatch import vmap
from xjit import jit
from xnp import lax

# from a function of a vector to a vector like it, to such a function
TRANSFORMS = {
    "grad": lambda f: grad(lambda x: (f(x) ** 2).sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * x,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](x * x),
    "vjp": lambda f: lambda x: vjp(f, x)[1](xnp.cos(x))[0],
    "jacfwd": lambda f: lambda x: jacfwd(f)(x).sum(-1),
    "jacrev": lambda f: lambda x: jacrev(f)(x).sum(0),
    "vmap": lambda f: lambda x: vmap(lambda s: f(x * s))(xnp.arange(1.0, 3.0)).sum(0),
    "jit": jit,
    "checkpoint": checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "cond": lambda f: lambda x: lax.cond(x[0] > 0, f, xnp.cos, x),
}


def nested(fun, inner, outer):
    """Return a function under two of the transformations."""
    return TRANSFORMS[outer](TRANSFORMS[inner](fun))
