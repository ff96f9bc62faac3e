"""Every transformation returns a function that says what it is; places name cells of notebooks."""

import functools
import linecache
import re
import sys
import types

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xnp.sparse import sparsify
from xpar import P, auto_axes, explicit_axes, make_mesh
from xprim.jaxpr import format_jaxpr
from xstack import grad, jit, lax, vmap
from xstack.custom_batching import custom_vmap, sequential_vmap
from xstack.experimental import checkify
from xtree import Partial


def loss(x):
    return (x * x).sum()


PLACE = f"loss at test_functions_say_what_they_are.py:{loss.__code__.co_firstlineno}"
SHARDED = functools.partial(
    xstack.shard_map, mesh=make_mesh((1,), ("i",)), in_specs=P("i"), out_specs=P()
)
TRANSFORMATIONS = {
    "jit": jit, "grad": grad, "vmap": vmap, "pmap": xstack.pmap, "shard_map": SHARDED,
    "value_and_grad": xstack.value_and_grad, "jacfwd": xstack.jacfwd, "jacrev": xstack.jacrev,
    "hessian": xstack.hessian, "checkpoint": xstack.checkpoint, "make_jaxpr": xstack.make_jaxpr,
    "custom_jvp": xstack.custom_jvp, "custom_vjp": xstack.custom_vjp, "vectorize": xnp.vectorize,
    "custom_gradient": xstack.custom_gradient, "custom_vmap": custom_vmap,
    "custom_remat": lambda f: xstack.custom_remat(f, f, f, f),
    "named_call": xstack.named_call, "checkify": checkify.checkify, "sparsify": sparsify,
    "auto_axes": auto_axes, "explicit_axes": explicit_axes,
    "annotate_function": xstack.profiler.annotate_function,
    "ensure_compile_time_eval": xstack.ensure_compile_time_eval(),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformation_names_itself_and_the_function(name):
    transform = TRANSFORMATIONS[name]
    assert repr(transform(loss)) == f"<{name} of {PLACE}>"
    assert repr(jit(transform(loss))) == f"<jit of <{name} of {PLACE}>>"


def test_other_names_of_transformations_say_which_they_are():
    assert repr(xstack.remat(loss)) == f"<checkpoint of {PLACE}>"
    assert repr(sequential_vmap(loss)) == f"<custom_vmap of {PLACE}>"
    assert repr(jit(xnp.sin)) == "<jit of sin>"  # a file of the library helps nobody


def test_functions_that_say_what_they_are_compute_as_before():
    x = xnp.arange(3.0)
    for fun in (jit(grad(loss)), grad(jit(loss)), jit(vmap(grad(loss), in_axes=None, axis_size=1))):
        assert np.ravel(fun(x)).tolist() == [0.0, 2.0, 4.0]
    assert xstack.hessian(loss)(x).tolist() == (2 * np.eye(3)).tolist()

    class Model:
        @functools.partial(jit, static_argnums=0)
        def apply(self, x):
            return x + 1

        @grad
        @staticmethod
        def slope(x):
            return x * x

    assert Model().apply(1.0) == 2.0
    assert Model.slope(3.0) == 6.0


def test_a_partial_of_a_jitted_function_holds_the_jitted_function():
    f = jit(lambda x, y: x + y)
    partial = Partial(f, xnp.ones(2))
    assert partial.func is f
    assert functools.partial(f, xnp.ones(2))(1.0).tolist() == partial(1.0).tolist() == [2.0, 2.0]


def test_defaults_reach_the_rule_of_a_transformed_function():
    def scaled(x, scale=2.0):
        return x * scale

    for fun in (scaled, jit(scaled), xstack.checkpoint(scaled)):
        f = xstack.custom_jvp(fun)
        f.defjvp(lambda primals, tangents: (primals[0] * primals[1], tangents[0] * primals[1]))
        assert grad(f)(1.0) == 2.0


class Shell:
    """What IPython's shell tells of its cells (IPython 8 and later)."""

    class compile:  # noqa: N801 - an attribute of the shell
        @staticmethod
        def format_code_name(name):
            found = re.fullmatch(r"<cell (\d+)>", name)
            return ("Cell", f"In[{found[1]}]") if found else None


@pytest.fixture
def in_a_notebook(monkeypatch):
    shell = types.SimpleNamespace(get_ipython=Shell)
    monkeypatch.setitem(sys.modules, "IPython", shell)

    def run(number, text):
        file = f"<cell {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        names = {"jit": jit, "grad": grad, "xnp": xnp, "xstack": xstack, "lax": lax}
        exec(compile(text, file, "exec"), names)
        return names

    return run


def test_places_in_a_notebook_are_cells(in_a_notebook):
    names = in_a_notebook(11, "\ndef loss(x):\n    y = x + 1\n    return float(y)\n")
    f = jit(names["loss"])
    assert repr(f) == "<jit of loss at Cell In[11]:2>"
    with pytest.raises(TypeError, match=r"add\(f32\[\], f32\[\]\) at Cell In\[11\]:3 in loss"):
        f(1.0)
    names = in_a_notebook(3, "def f(x):\n    return x * 2\n")
    text = format_jaxpr(xstack.make_jaxpr(names["f"])(1.0).jaxpr, source_info=True)
    assert "Cell In[3]:2 in f" in text
    names = in_a_notebook(4, "@jit\ndef f(x):\n    return bool(x)\n")
    with pytest.raises(TypeError, match=r"the argument x of f at Cell In\[4\]:1"):
        names["f"](1.0)


def test_the_origin_of_an_argument_names_the_function_and_its_line():
    def step(total, row):
        return total, float(row)

    line = step.__code__.co_firstlineno
    where = f"the argument row of step at test_functions_say_what_they_are.py:{line}"
    for run in (
        lambda: jit(step)(0.0, 1.0),
        lambda: lax.scan(step, 0.0, xnp.ones(3)),
        lambda: xstack.make_jaxpr(step)(0.0, 1.0),
        lambda: xstack.eval_shape(step, 0.0, 1.0),
        lambda: jit(grad(functools.partial(step)))(0.0, 1.0),
    ):
        with pytest.raises(TypeError) as caught:
            run()
        assert where in str(caught.value)
