"""Every function of `xnp.nn` gives what jax.nn gives, along each route."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xad
import xnp
from packages.xnp.tests import numpy_cases
from tests.nets.cells import IN_FULL
from xprim import eval_closed, make_jaxpr

jax = pytest.importorskip("jax")

HOST = numpy_cases.operands()
OURS = {name: xnp.array(value) for name, value in HOST.items()}
THEIRS = {name: jax.numpy.array(value) for name, value in HOST.items()}


def evaluate(text: str, namespace: Any, arrays: dict[str, Any]) -> Any:
    return eval(text, {"ns": namespace}, dict(arrays))


@functools.cache
def expected_of_all() -> dict[str, Any]:
    """Return what the oracle gives for all expressions, by one program: compiling costs most."""
    texts = numpy_cases.cases(numpy_cases.NN)
    program = jax.jit(lambda arrays: {text: evaluate(text, jax.nn, arrays) for text in texts})
    expected: dict[str, Any] = program(THEIRS)
    return expected


@pytest.mark.parametrize("text", numpy_cases.cases(numpy_cases.NN))
def test_a_function_gives_what_jax_nn_gives_along_every_route(text: str) -> None:
    expected = expected_of_all()[text]
    closed = make_jaxpr(lambda arrays: evaluate(text, xnp.nn, arrays))(OURS)
    (staged,) = eval_closed(closed, *[OURS[name] for name in sorted(OURS)])
    for found in (evaluate(text, xnp.nn, OURS), evaluate(text, xnp.nn, OURS), staged):
        assert found.dtype == expected.dtype
        assert found.weak_type == expected.weak_type
        tolerance = 2e-3 if expected.dtype == "float16" else 3e-5
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance
        )


OPTIONS: list[dict[str, Any]] = [
    {}, {"is_causal": True}, {"scale": 0.3, "bias": True}, {"mask": True},
    {"local_window_size": (2, 1)}, {"local_window_size": 1},
    {"key_value_seq_lengths": [2, 5], "query_seq_lengths": [3, 4]}, {"return_residual": True},
]  # fmt: skip


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_attention_and_its_derivative_are_those_of_jax(
    options: dict[str, Any], heads: int, dtype: str
) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal((2, 4, 4, 8)).astype(dtype),
        rng.standard_normal((2, 5, heads, 8)).astype(dtype),
        rng.standard_normal((2, 5, heads, 8)).astype(dtype),
    ]
    given = dict(options)
    if "bias" in given:
        given["bias"] = rng.standard_normal((2, 4, 4, 5)).astype(dtype)
    if "mask" in given:
        given["mask"] = rng.uniform(size=(2, 1, 4, 5)) < 0.7
    for name in ("key_value_seq_lengths", "query_seq_lengths"):
        if name in given:
            given[name] = np.array(given[name], np.int32)

    def outputs(nn: Any, *qkv: Any) -> Any:
        results = nn.dot_product_attention(*qkv, **given)
        return results if isinstance(results, tuple) else (results,)

    tolerance = 5e-3 if dtype == "float16" else 3e-5
    of_jax = functools.partial(outputs, jax.nn)
    # One program compiles faster than its steps; of float16 the oracle has none for CPUs.
    expected = (of_jax if dtype == "float16" else jax.jit(of_jax))(*arrays)
    found = outputs(xnp.nn, *arrays)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            np.asarray(ours), np.asarray(theirs), rtol=tolerance, atol=tolerance
        )
    argnums = (0, 1, 2)
    ours = xad.grad(lambda *qkv: (outputs(xnp.nn, *qkv)[0] ** 2).sum(), argnums)(*arrays)
    gradient = jax.jit(jax.grad(lambda *qkv: (outputs(jax.nn, *qkv)[0] ** 2).sum(), argnums))
    theirs = gradient(*[x.astype("float32") for x in arrays])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            np.asarray(a), np.asarray(b), rtol=10 * tolerance, atol=10 * tolerance
        )


def test_attention_refuses_shapes_that_do_not_go_together() -> None:
    q, k = xnp.zeros((3, 3, 2)), xnp.zeros((3, 2, 2))
    with pytest.raises(ValueError, match="the shapes do not go together"):
        xnp.nn.dot_product_attention(q, k, k)


@pytest.mark.parametrize(
    ("key", "options", "error", "text"),
    [
        ((3, 1, 4), {}, ValueError, "the shapes do not go together"),
        ((1, 1, 3, 1, 4), {}, ValueError, "the shapes do not go together"),
        ((1, 3, 0, 4), {}, ValueError, "the shapes do not go together"),
        ((1, 3, 1, 4), {"local_window_size": (1, 2, 3)}, ValueError, "a window has a size"),
        ((1, 3, 1, 4), {"local_window_size": -1}, ValueError, "a window has a size"),
        ((1, 3, 1, 4), {"mask": np.ones((1, 1, 2, 3))}, TypeError, "a mask is boolean"),
        ((1, 3, 1, 4), {"implementation": ["xla"]}, ValueError, "unknown implementation"),
    ],
)
def test_attention_refuses_what_it_would_misread(
    key: tuple[int, ...], options: dict[str, Any], error: type[Exception], text: str
) -> None:
    k = xnp.ones(key)
    with pytest.raises(error, match=f"dot_product_attention: .*{text}"):
        xnp.nn.dot_product_attention(xnp.ones((1, 2, 1, 4)), k, k, **options)


def test_a_window_of_attention_may_be_an_integer_of_numpy() -> None:
    q, k = xnp.ones((1, 2, 1, 4)), xnp.arange(12.0).reshape(1, 3, 1, 4)
    attend = xnp.nn.dot_product_attention
    expected = attend(q, k, k, local_window_size=(1, 1))
    np.testing.assert_array_equal(attend(q, k, k, local_window_size=np.int64(1)), expected)


ACTIVATIONS = [
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
    "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign",
    "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh", "softmax",
    "log_softmax", "standardize", "glu",
]  # fmt: skip
KINDS = ["bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32",
         "weak int", "weak float", "weak bool"]  # fmt: skip
# Where the oracle gives another type, or refuses
OTHER_TYPES = {
    ("relu", "bool"), ("relu", "weak bool"),  # of booleans the oracle's are weak integers
}  # fmt: skip
# of unsigned integers the oracle's wrap around
OTHER_NUMBERS = {"softmax", "log_softmax", "log_sigmoid", "hard_tanh"}


def _operand(np_: Any, kind: str) -> Any:
    if kind.startswith("weak "):
        number = {"int": 3, "float": 3.0, "bool": True}[kind.removeprefix("weak ")]
        return np_.broadcast_to(np_.asarray(number), (4,))
    return np_.asarray([3, 1, 2, 1]).astype(kind)


@pytest.mark.sampled(every=12)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_activations_of_every_dtype_have_the_type_and_the_value_of_the_oracle(kind: str) -> None:
    """Of integers the oracle's results are weak at times (relu6), and some are refused.

    An ordinary run tries half of the functions for each dtype.
    """
    for name in ACTIVATIONS if IN_FULL else ACTIVATIONS[KINDS.index(kind) // 3 % 2 :: 2]:
        if (name, kind) in OTHER_TYPES:
            continue
        found = getattr(xnp.nn, name)(_operand(xnp, kind))
        again = getattr(xnp.nn, name)(_operand(xnp, kind))
        assert (again.dtype, again.weak_type) == (found.dtype, found.weak_type)
        try:
            expected = getattr(jax.nn, name)(_operand(jax.numpy, kind))
        except TypeError:  # the oracle has `sigmoid`, `gelu`, ... of floats alone
            expected = getattr(jax.nn, name)(_operand(jax.numpy, kind).astype("float32"))
        assert found.dtype == expected.dtype, name
        if "weak" in kind and "bool" not in kind and expected.weak_type:  # is never lost
            assert found.weak_type, name
        if name in OTHER_NUMBERS and kind.startswith("u"):
            continue
        wide = [np.asarray(y).astype("float32") for y in (found, expected)]
        # one unit of the last place of bfloat16 is 2^-8, of float16 2^-10
        rtol = {"bfloat16": 1e-2, "float16": 2e-3}.get(kind, 1e-5)
        np.testing.assert_allclose(wide[0], wide[1], rtol=rtol, atol=1e-6, err_msg=name)
