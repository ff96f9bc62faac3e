"""Words of PyTorch and NumPy that are not here: each error says the word that is."""

import math
import operator
import re
import sys

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xprim.errors import HINTS
from xstack import lax, nn, random
from xstack.unknown_names import _HERE as WORDS

X = xnp.arange(6.0).reshape(2, 3)
KEY = random.key(0)


def message_of(error, call):
    try:  # not pytest.raises: to look through all that it reaches takes `jit` a second
        call()
    except error as caught:
        return str(caught)
    raise AssertionError("it raises nothing")


# --- attributes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "hint"), [
    ("backward", "xstack.grad(loss)(params)"), ("numpy", "np.asarray(x)"),
    ("detach", "lax.stop_gradient(x)"), ("cuda", "device_put"), ("unsqueeze", "x[:, None]"),
    ("add_", "x = x + y"), ("sigmoid", "xstack.nn.sigmoid(x)"), ("exp", "xnp.exp(x)"),
    ("fill", "xnp.full_like(x, value)"), ("append", "xnp.append(x, y)"),
])  # fmt: skip
def test_an_attribute_of_other_libraries_names_the_way_here(name, hint):
    found = message_of(AttributeError, lambda: getattr(X, name))
    assert found.startswith(f"'ConcreteArray' object has no attribute {name!r}.\n  hint      ")
    assert hint in found
    seen = []
    xstack.jit(lambda x: seen.append(message_of(AttributeError, lambda: getattr(x, name))))(X)
    xstack.grad(lambda x: [seen.append(message_of(AttributeError, lambda: getattr(x, name))),
                           x.sum()][1])(X)  # fmt: skip
    hints = {text.partition("\n")[2] for text in [found, *seen]}
    assert len(seen) == 2 and len(hints) == 1


def test_no_attribute_pretends_to_be_there():
    tracers = []
    xstack.make_jaxpr(lambda x: tracers.append([n for n in HINTS if hasattr(x, n)]))(X)
    assert tracers == [[]]
    assert not [name for name in HINTS if hasattr(X, name) or hasattr(type(X), name)]
    assert not set(HINTS) & set(dir(X))
    assert not set(HINTS) & set(dir(xstack.Array))


def test_other_unknown_attributes_are_pythons_errors_which_suggest_a_name():
    with pytest.raises(AttributeError) as caught:
        X.resahpe  # noqa: B018
    assert caught.value.name == "resahpe" and caught.value.obj is X


def test_hints_that_are_programs_run():
    for name, hint in HINTS.items():
        program = hint.rpartition("in place: ")[2].removeprefix("x = ")
        values = {"x": X, "y": X + 1.0, "np": np, "xnp": xnp, "xstack": xstack, "mask": X > 2.0,
                  "indices": xnp.arange(2), "low": 0.0, "high": 1.0, "k": 1, "parts": 1,
                  "value": 1.0, "values": 1.0, "index": 0, "kth": 1, "key": KEY}  # fmt: skip
        if name in ("mm", "bmm", "matmul", "mv"):
            values["y"] = X.T
        elif name in ("det", "inverse"):
            values["x"] = xnp.eye(2)
        elif name == "gather":
            values["indices"] = xnp.zeros((2, 3), int)
        elif name in _NEED_MORE:
            continue
        try:
            code = compile(program, name, "eval")
        except SyntaxError:
            continue  # prose
        eval(code, values)


_NEED_MORE = (
    "one_hot",
    "cross",
    "tile",
    "roll",
    "outer",
    "where",
    "minimum",
    "maximum",
    "allclose",
    "type_as",
    "expand",
    "resize",
    "cuda",
    "tofile",
    "dump",
    "half",
    "assign",
    "type",
    "retain_grad",
    "copy_",
)


# --- keywords -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "keyword", "here"), [
    (lambda: xnp.sum(X, dim=1), "dim", "axis"), (lambda: X.sum(dim=1), "dim", "axis"),
    (lambda: X.mean(dim=0), "dim", "axis"), (lambda: X.max(keepdim=True), "keepdim", "keepdims"),
    (lambda: xnp.concatenate([X, X], dim=0), "dim", "axis"),
    (lambda: nn.softmax(X, dim=1), "dim", "axis"), (lambda: X.std(unbiased=True), "unbiased",
                                                    "correction"),
    (lambda: random.normal(KEY, size=3), "size", "shape"),
    (lambda: xnp.flip(X, dims=0), "dims", "axis"),
    (lambda: xstack.grad(math.sin, argnum=0), "argnum", "argnums"),
    (lambda: xstack.vmap(math.sin, in_axis=0), "in_axis", "in_axes"),
    (lambda: xstack.jit(math.sin, static_argnum=0), "static_argnum", "static_argnums"),
    (lambda: xnp.ones(shap=3), "shap", "shape"),
])  # fmt: skip
def test_an_unknown_keyword_names_the_one_that_is_meant(call, keyword, here):
    found = message_of(TypeError, call)
    assert f"got an unexpected keyword argument {keyword!r}" in found
    if sys.version_info < (3, 13):  # which has a suggestion of its own
        assert found.endswith(f".\n  hint      it is called {here}= here")


def test_a_keyword_that_is_like_none_and_one_of_a_users_function_have_no_hint():
    def sum(x, axis=None):
        return x

    assert message_of(TypeError, lambda: X.sum(nonsense=1)).endswith("argument 'nonsense'")
    assert message_of(TypeError, lambda: sum(X, dim=1)).endswith("argument 'dim'")
    assert message_of(TypeError, lambda: xstack.vmap(sum)(X, dim=X)).endswith("argument 'dim'")


def test_calls_with_wrong_arguments_name_the_users_function():
    def area(width, height):
        return width * height

    assert "area() missing 1 required" in message_of(TypeError, lambda: xstack.jit(area)(1.0))
    too_many = message_of(TypeError, lambda: xstack.jit(area)(1.0, 2.0, 3.0))
    assert "area() takes 2 positional arguments but 3 were given" in too_many


# --- names of modules -----------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "name", "hint"), [
    (xstack, "zeros", "there is xstack.numpy.zeros"), (xnp, "relu", "there is xstack.nn.relu"),
    (xnp, "random", "there is xstack.random"), (xstack, "tensor", "xstack.numpy.array(...)"),
    (random, "seed", "key = xstack.random.key(0)"), (nn, "Linear", "coming_from_pytorch.md"),
    (xnp, "cat", "xstack.numpy.concatenate"), (xstack, "no_grad", "nothing to do"),
    (lax, "sum", "there is xstack.numpy.sum"), (xstack, "save", "xpar.checkpoints.save"),
    (xstack, "sparse_hessian", "there is xad.sparse.sparse_hessian"),
    (xstack, "odeint", "there is xstack.experimental.ode.odeint"),
])  # fmt: skip
def test_a_name_of_other_libraries_or_of_another_module_is_told_so(module, name, hint):
    found = message_of(AttributeError, lambda: getattr(module, name))
    assert found.startswith(f"module {module.__name__!r} has no attribute {name!r}.\n  hint")
    assert hint in found


def test_the_names_in_hints_are_there():
    hints = "\n".join([*WORDS.values(), *HINTS.values()])
    for path in set(re.findall(r"\b(?:xstack|xnp|lax)(?:\.\w+)+", hints)):
        first, _, rest = path.replace("xnp.", "xstack.numpy.").partition(".")
        operator.attrgetter(rest)({"xstack": xstack, "lax": lax}[first])


# --- x.at -----------------------------------------------------------------------------------------


def test_at_without_an_index_in_brackets_says_how_it_is_written():
    def assign():
        X.at[0] = 1.0

    for error, call in [(TypeError, assign), (TypeError, lambda: X.at(0)),
                        (AttributeError, lambda: X.at.set(1.0))]:  # fmt: skip
        assert "x = x.at[index].set(value) makes a new array" in message_of(error, call)
    assert not hasattr(X.at, "nonsense")
