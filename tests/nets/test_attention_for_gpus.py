"""cuDNN's attention in programs for CUDA: its calls are the oracle's, and compute what XLA's do."""

from __future__ import annotations

import itertools
import logging
import threading

import ml_dtypes
import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.nets import gpu_routines
from tests.nets.cells import COMPILER_OPTIONS, drawn
from tests.nets.gpu_programs import Call, calls_in, jax, lowered
from xjit.debug.explanations import explain
from xjit.debug.monitoring import retraces
from xprim.errors import MissingRuleError

DTYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
# (B, T, N, H), then keys and their heads
SHAPES = [(2, 16, 4, 64, 16, 4), (1, 8, 6, 16, 24, 2), (3, 4, 2, 8, 4, 1)]
OPTIONS = [
    {}, {"scale": 0.3}, {"is_causal": True}, {"is_causal": True, "local_window_size": (3, 0)},
    {"bias": (0, 0)}, {"bias": (1, 1), "is_causal": True}, {"bias": (0, 1)},
    {"mask": (0, 0)}, {"mask": (1, 0), "bias": (0, 0)},
    {"query_seq_lengths": True, "key_value_seq_lengths": True},
    {"key_value_seq_lengths": True, "is_causal": True}, {"query_seq_lengths": True},
    {"return_residual": True},
]  # fmt: skip
KINDS = ["value", "gradient", "batch", "gradient of a batch"]
CELLS = list(itertools.product(DTYPES, SHAPES, OPTIONS, KINDS))
JAX_CALLS_IT = "jax._src.cudnn.fused_attention_stablehlo"


def given(dtype, shape, options):
    """Return operands and keywords; a bias or mask may be one for all examples or heads."""
    b, t, n, h, s, k = shape
    rng = np.random.default_rng(0)
    operands = [rng.standard_normal(x).astype(DTYPES[dtype])
                for x in ((b, t, n, h), (b, s, k, h), (b, s, k, h))]  # fmt: skip
    keywords = dict(options)
    for name in {"bias", "mask"} & keywords.keys():
        of_all, of_heads = keywords[name]
        x = rng.standard_normal((1 if of_all else b, 1 if of_heads else n, t, s))
        keywords[name] = (x < 0.7) if name == "mask" else x.astype(DTYPES[dtype])
        if name == "mask":
            keywords[name][..., 0] = True  # what a query that sees nothing gets is not said
    for name, most in (("query_seq_lengths", t), ("key_value_seq_lengths", s)):
        if name in keywords:
            keywords[name] = np.arange(most, most - b, -1, dtype=np.int32)
    return operands, keywords


def function(package, keywords, kind, implementation):
    """Return a function of queries, keys, values and perhaps a bias."""

    def attend(*xs):
        rest = {**keywords, "bias": xs[3]} if len(xs) > 3 else keywords
        return package.nn.dot_product_attention(*xs[:3], implementation=implementation, **rest)

    def loss(*xs):
        out = attend(*xs)
        return ((out[0] if isinstance(out, tuple) else out).astype("float32") ** 2).sum()

    def gradient(*xs):
        return package.grad(loss, tuple(range(len(xs))))(*xs)

    of_one = gradient if kind.startswith("gradient") else attend
    return package.vmap(of_one) if kind.endswith("batch") else of_one


def operands_of(operands, keywords, kind):
    xs = [*operands, *[keywords[name] for name in ("bias",) if name in keywords]]
    return [np.stack([x, x * 2]) for x in xs] if kind.endswith("batch") else xs


@pytest.fixture
def oracle_with_cudnn(monkeypatch):
    """Have the oracle write its calls where no cuDNN is."""
    module = pytest.importorskip(JAX_CALLS_IT)
    monkeypatch.setattr(module, "check_cudnn_version", lambda: 91900)


@pytest.mark.fuzz
def test_cudnn_is_called_as_the_oracle_calls_it(oracle_with_cudnn):
    for dtype, shape, options, kind in drawn(CELLS, 17):
        operands, keywords = given(dtype, shape, options)
        xs = operands_of(operands, keywords, kind)
        ours = lowered(function(xstack, keywords, kind, "cudnn"), xs, "cuda").as_text()
        found = calls_in(ours)
        assert found and all(call.target.startswith("__cudnn$fmha") for call in found), kind
        try:
            theirs = jax.jit(function(jax, keywords, kind, "cudnn")).trace(*xs)
        except (TypeError, ValueError):  # batches of what is one for all examples or heads
            assert kind.endswith("batch") and options, options
            continue
        expected = calls_in(theirs.lower(lowering_platforms=("cuda",)).as_text())
        if "mask" in keywords and "bias" not in keywords:
            # jaxlib 0.10's oracle makes a cotangent of the mask, and merges examples without it
            found, expected = [[call[:2] for call in calls] for calls in (found, expected)]
        assert found == expected, (dtype, shape, options, kind)


@pytest.mark.fuzz
def test_cudnns_attention_computes_what_xlas_operations_do():
    for dtype, shape, options, kind in drawn(CELLS, 4):
        operands, keywords = given(dtype, shape, options)
        xs = operands_of(operands, keywords, kind)
        with retraces("allow"):
            found = gpu_routines.run(function(xstack, keywords, kind, "cudnn"), xs)
            of_operations = function(xstack, keywords, kind, "xla")
            expected = xstack.jit(of_operations, compiler_options=COMPILER_OPTIONS)(*xs)
        # results are rounded to 8 or 11 bits, the weights of XLA's form as well
        rtol = 6e-2 if dtype == "bfloat16" else 8e-3
        for x, y in zip(xstack.tree.leaves(found), xstack.tree.leaves(expected), strict=True):
            assert x.aval == y.aval
            x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
            np.testing.assert_allclose(x, y, rtol, rtol * max(np.abs(y).max(), 1e-3),
                                       err_msg=f"{dtype}, {shape}, {options}, {kind}")  # fmt: skip


def test_the_size_of_the_net_of_attention():
    print(f"\n{len(CELLS)} cells")
    assert len(CELLS) > 300


Q = np.random.default_rng(1).standard_normal((2, 8, 2, 8)).astype(np.float16)


def attend(q, k, v, **keywords):
    return xstack.nn.dot_product_attention(q, k, v, implementation="cudnn", **keywords)


def by_operations(q, k, v, **keywords):
    return xstack.nn.dot_product_attention(q, k, v, implementation="xla", **keywords)


SECOND = {
    "forward": lambda f: lambda q: xstack.jvp(f, (q,), (q,))[1],
    "forward over reverse": lambda f: lambda q: xstack.jvp(
        xstack.grad(lambda q: (f(q).astype("float32") ** 2).sum()), (q,), (q,))[1],
    "reverse over reverse": lambda f: xstack.grad(lambda q: (xstack.grad(
        lambda q: (f(q).astype("float32") ** 2).sum())(q).astype("float32") ** 2).sum()),
    "reverse over forward": lambda f: xstack.grad(lambda q: (xstack.jvp(f, (q,), (q,))[1].astype(
        "float32") ** 2).sum()),
    "of the residual": lambda f: xstack.grad(
        lambda q: f(q, return_residual=True)[1].astype("float32").sum()),
}  # fmt: skip


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", SECOND)
def test_derivatives_that_cudnn_has_not_are_right(kind):
    counts = {"is_causal": True, "key_value_seq_lengths": [8, 5]}

    def of(implementation):
        return SECOND[kind](lambda q, **more: implementation(q, q * 0.5, q + 1, **counts, **more))

    with retraces("allow"):
        found, expected = gpu_routines.run(of(attend), [Q]), xstack.jit(of(by_operations))(Q)
    x, y = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    # chains of float16: cuDNN's results are rounded once, those of XLA's form at each step
    np.testing.assert_allclose(x, y, 3e-2, 3e-2 * np.abs(y).max())


def targets(fun, *operands):
    return [call.target for call in calls_in(lowered(fun, operands, "cuda").as_text())]


def test_dropout_has_its_own_calls_and_cudnn_alone_knows_it(oracle_with_cudnn):
    def loss(q, **more):
        return attend(q, q, q, dropout_rate=0.25, dropout_seed=7, **more).astype("float32").sum()

    found = calls_in(lowered(xstack.grad(loss), [Q], "cuda").as_text())
    low_level = pytest.importorskip(JAX_CALLS_IT).dot_product_attention

    def of_jax(q):
        out = low_level(q, q, q, scale=1 / np.sqrt(8), seed=7, dropout_rate=0.25)
        return out.astype("float32").sum()

    expected = calls_in(
        jax.jit(jax.grad(of_jax)).trace(Q).lower(lowering_platforms=("cuda",)).as_text()
    )
    assert found == expected
    assert [call.target for call in found] == [
        "__cudnn$fmhaSoftmaxDropout", "__cudnn$fmhaSoftmaxDropoutBackward"
    ]  # fmt: skip
    with pytest.raises(MissingRuleError, match="cuDNN alone knows which weights"):
        targets(lambda q: xstack.jvp(loss, (q,), (q,)), Q)
    with pytest.raises(ValueError, match="dropout is a part of cuDNN's attention alone"):
        xstack.nn.dot_product_attention(Q, Q, Q, dropout_rate=0.25)


@pytest.mark.parametrize(("operand", "keywords", "error", "text"), [
    (Q.astype(np.float32), {}, TypeError, "for float16 or bfloat16, not for float32"),
    (Q[..., :7], {}, ValueError, "vectors of 7 elements are not a multiple of 8 up to 256"),
    (Q, {"local_window_size": 2}, ValueError, "no window that reaches 2 keys behind a query"),
    (Q, {"scale": xnp.float32(2)}, ValueError, "its scale is a part of the program"),
])  # fmt: skip
def test_what_cudnn_has_not_is_refused_with_its_reason(operand, keywords, error, text):
    with pytest.raises(error, match=text):
        attend(operand, operand, operand, **keywords)


def test_a_program_for_another_platform_refuses_cudnn():
    for call in (xstack.jit(attend), attend):
        with pytest.raises(MissingRuleError, match="cuDNN is not available in programs for cpu"):
            call(Q, Q, Q)
    with pytest.raises(MissingRuleError, match="programs for rocm"):
        lowered(attend, [Q, Q, Q], "rocm")


LONG = np.ones((1, 128, 2, 64), ml_dtypes.bfloat16)
REASONS = {
    "for float16 or bfloat16, not for float32": ([LONG.astype(np.float32)] * 3, {}),
    "fewer than 128 queries or keys": ([LONG[:, :64]] * 3, {}),
    "not a multiple of 8 up to 128": ([np.tile(LONG, 4)] * 3, {}),
    "a bias, a mask or lengths": ([LONG] * 3, {"mask": np.ones((128, 128), bool)}),
    "their numbers differ": ([LONG, np.tile(LONG, (1, 2, 1, 1)), np.tile(LONG, (1, 2, 1, 1))],
                             {"is_causal": True}),
    "its scale is a part of the program": ([LONG] * 3, {"scale": xnp.float32(2)}),
}  # fmt: skip


def test_programs_for_cuda_call_cudnn_where_it_serves():
    def plain(q, k, v):
        return xstack.nn.dot_product_attention(q, k, v, is_causal=True)

    def gradient(q, k, v):
        return xstack.grad(lambda *xs: plain(*xs).astype("float32").sum())(q, k, v)

    assert targets(plain, LONG, LONG, LONG) == ["__cudnn$fmhaSoftmax"]
    assert targets(gradient, LONG, LONG, LONG) == [
        "__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward"
    ]  # fmt: skip
    assert targets(xstack.vmap(plain), *[LONG[None]] * 3) == ["__cudnn$fmhaSoftmax"]
    assert "fmha" not in xstack.jit(gradient).lower(LONG, LONG, LONG).as_text()


@pytest.mark.parametrize("reason", REASONS)
def test_where_cudnn_does_not_serve_explain_says_why(reason, caplog):
    operands, keywords = REASONS[reason]

    def plain(q, k, v):
        return xstack.nn.dot_product_attention(q, k, v, **keywords)

    assert targets(plain, *operands) == []
    with caplog.at_level(logging.INFO, logger="xnp"):
        lowered(lambda *xs: plain(*xs), operands, "cuda")
    assert reason in caplog.text
    found = explain(plain, *operands)
    assert any(reason in note for note in found.notes) and reason in str(found)


def test_explanations_in_several_threads_have_their_own_notes_and_restore_the_logger():
    logger = logging.getLogger("xnp")
    before = logger.level, logger.propagate
    both_are_traced = threading.Barrier(2)
    found = {}

    def run(name):
        def plain(q):
            both_are_traced.wait(60)
            logger.info("a note of %s", name)
            both_are_traced.wait(60)
            return q + 1

        found[name] = explain(plain, np.ones(3)).notes

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"one": ["a note of one"], "other": ["a note of other"]}
    assert (logger.level, logger.propagate) == before


def test_attention_that_xla_divides_among_devices_is_made_of_its_operations():
    mesh = xstack.make_mesh((8,), ("x",), axis_types=(xstack.sharding.AxisType.Auto,))
    rows = xstack.NamedSharding(mesh, xstack.P("x"))
    q = xstack.device_put(np.tile(LONG, (8, 1, 1, 1)), rows)
    text = xstack.jit(attend).trace(q, q, q).lower(lowering_platforms=("cuda",)).as_text()
    assert "fmha" not in text and "dot_general" in text
    inside = xstack.shard_map(attend, mesh=mesh, in_specs=xstack.P("x"), out_specs=xstack.P("x"))
    assert "fmha" in xstack.jit(inside).trace(q, q, q).lower(lowering_platforms=("cuda",)).as_text()


def test_a_window_that_ends_at_a_query_is_causal():
    # the oracle says NO_MASK there, with which cuDNN would see the keys behind a query, too
    (call,) = calls_in(lowered(
        lambda q: attend(q, q, q, local_window_size=(3, 0)), [Q], "cuda").as_text())  # fmt: skip
    assert isinstance(call, Call) and "CAUSAL" in call.config
