"""Attention by cuDNN: the operation, its forward derivative, and the transpose of that.

    attention            (inputs)                               -> result, residual
    attention_tangent    (inputs, result, residual, tangents)   -> their tangents
    attention_cotangent  (inputs, result, residual, cotangent)  -> cotangents of the inputs

The inputs are queries (B, T, N, H), keys and values (B, S, K, H), then the bias if there is one,
then the lengths of the sequences if there are; the residual (B, N, T) is the logarithm of the sums
of e^score. The first and the last operation are calls of cuDNN in programs for CUDA; the second one
is linear in the tangents, and the last is its transpose, so reverse mode meets cuDNN alone. What
cuDNN has not (the tangents, second derivatives, programs that XLA divides among devices) is a
formula, in float32.

Source: Dao, FlashAttention-2, 2023, section 3.1, for the residual and the derivative. The names and
options of the calls are those that JAX writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import xprim
from xnp.primitives import solvers, table
from xnp.primitives.control_flow import trace_fun
from xnp.primitives.lowering_text import is_split
from xnp.primitives.precision import Precision
from xnp.primitives.solvers import layout
from xnp.primitives.table import add, bind, broadcast_to, in_dtype, iota, mul, reshape, sub
from xprim import EAGER, Linear, Primitive, ShapedArray, Zero, dtypes, not_mapped, shaped_array
from xprim.contracts import BatchAxis, Builder, JVPHandle, TransposeHandle, by_platform
from xprim.dimension_names import Names
from xprim.errors import MissingRuleError, message

__all__ = ()

HIDDEN = -0.7 * 3.4028234663852886e38  # nearly the least float32: no infinity, whose softmax is NaN


class Options(NamedTuple):
    """The options of a call of cuDNN's attention.

    Attributes:
      scale: the factor of the scores.
      mask: `NO_MASK`, `CAUSAL`, `PADDING` or `PADDING_CAUSAL`.
      window: how many keys up to its own place a query sees; 0 for all.
      has_bias: whether something is added to the scores.
      dropout_rate: which share of the weights is zero.
      seed: of the random numbers that choose them.
      moves_bias: of the derivatives, whether the bias has a tangent: a mask has none.
    """

    scale: float
    mask: str = "NO_MASK"
    window: int = 0
    has_bias: bool = False
    dropout_rate: float = 0.0
    seed: int = 42
    moves_bias: bool = False

    @property
    def has_lengths(self) -> bool:
        """Whether the lengths of the sequences are among the inputs."""
        return self.mask.startswith("PADDING")

    @property
    def is_causal(self) -> bool:
        """Whether a query sees the keys up to its own place alone."""
        return self.mask.endswith("CAUSAL")

    @property
    def num_inputs(self) -> int:
        """How many inputs there are."""
        return 3 + self.has_bias + 2 * self.has_lengths

    @property
    def smooth(self) -> tuple[int, ...]:
        """The inputs that have tangents."""
        return tuple(range(3 + self.moves_bias))


# ------------------------------------------------------------------------------------- formulas
# In float32, with each head of keys repeated for the heads of queries that it serves.

_FULL = (Precision.HIGHEST, Precision.HIGHEST)


def _product(x: Any, y: Any, contracted: Any, batch: Any) -> Any:
    return bind("dot_general", x, y, dimension_numbers=(contracted, batch), precision=_FULL,
                preferred_element_type=None)  # fmt: skip


def _scores(x: Any, y: Any) -> Any:
    """Return the products (B, N, T, S) of vectors (B, T, N, H) and (B, S, N, H)."""
    return _product(x, y, ((3,), (3,)), ((0, 2), (0, 2)))


def _sum_over_keys(weights: Any, y: Any) -> Any:
    """Return the sums over S of vectors (B, S, N, H) with weights (B, N, T, S)."""
    return table.permute(_product(weights, y, ((3,), (1,)), ((0, 1), (0, 2))), (0, 2, 1, 3))


def _sum_over_queries(weights: Any, x: Any) -> Any:
    """Return the sums over T of vectors (B, T, N, H) with weights (B, N, T, S)."""
    return table.permute(_product(weights, x, ((2,), (1,)), ((0, 1), (0, 2))), (0, 2, 1, 3))


def _repeat_heads(x: Any, heads: int) -> Any:
    b, s, k, h = x.aval.shape
    if k == heads:
        return x
    whole = broadcast_to(x, (b, s, k, heads // k, h), (0, 1, 2, 4))
    return reshape(whole, (b, s, heads, h))


def _sum_heads(x: Any, aval: ShapedArray) -> Any:
    """Transpose `_repeat_heads`: sum over the heads of queries that a head of keys serves."""
    b, s, k, h = aval.shape
    heads = x.aval.shape[2]
    return x if k == heads else table.sum_axes(reshape(x, (b, s, k, heads // k, h)), (3,))


def _broadcast_rows(x: Any, like: Any) -> Any:
    return broadcast_to(x, like.aval.shape, (0, 1, 2))


class _Weights:
    """What the formulas have of the inputs: the vectors in float32, the weights, what is hidden."""

    def __init__(self, inputs: Sequence[Any], options: Options) -> None:
        if options.dropout_rate:
            raise MissingRuleError(message(
                "dot_product_attention", "cuDNN alone knows which weights its dropout drops.",
                hint="reverse mode of a program for one GPU needs nothing else; for other\n"
                "derivatives drop weights by hand",
            ))  # fmt: skip
        self.options, (self.q, k, v) = options, [in_dtype(x, dtypes.float32) for x in inputs[:3]]
        heads = self.q.aval.shape[2]
        self.k, self.v = _repeat_heads(k, heads), _repeat_heads(v, heads)
        scores = table.scale_by(_scores(self.q, self.k), options.scale)
        if options.has_bias:
            scores = add(scores, self.broadcast_bias(inputs[3], scores))
        self.seen = self._mask_of_block(scores.aval.shape, inputs[options.num_inputs - 2 :])
        if self.seen is not None:
            scores = table.select(
                self.seen, scores, table.fill(scores.aval.shape, HIDDEN, scores.dtype)
            )
        most = bind("stop_gradient", bind("reduce_max", scores, axes=(3,)))
        powers = bind("exp", sub(scores, _broadcast_rows(most, scores)))
        total = table.sum_axes(powers, (3,))
        self.residual = add(most, bind("log", total))
        self.weights = bind("div", powers, _broadcast_rows(total, powers))

    def broadcast_bias(self, bias: Any, like: Any) -> Any:
        """Return a bias in float32, repeated for all examples and heads."""
        return broadcast_to(in_dtype(bias, dtypes.float32), like.aval.shape, (0, 1, 2, 3))

    def _mask_of_block(self, shape: tuple[int, ...], lengths: Sequence[Any]) -> Any:
        options, found = self.options, []
        t, s = iota(shape, 2), iota(shape, 3)
        if options.is_causal:
            found.append(bind("ge", t, s))
        if options.window:
            reach = table.fill(shape, options.window - 1, dtypes.int32)
            found.append(bind("ge", add(s, reach), t))
        if options.has_lengths:
            found += [bind("lt", place, broadcast_to(count, shape, (0,)))
                      for place, count in zip((t, s), lengths, strict=True)]  # fmt: skip
        masks = iter(found)
        seen = next(masks, None)
        for mask in masks:
            seen = bind("and", seen, mask)
        return seen

    def score_tangents(self, dots: Sequence[Any]) -> Any:
        """Return P * (dS - sum(P * dS)), the tangents of the weights, and sum(P * dS)."""
        q_dot, k_dot = [in_dtype(x, dtypes.float32) for x in dots[:2]]
        k_dot = _repeat_heads(k_dot, self.q.aval.shape[2])
        scores = add(_scores(q_dot, self.k), _scores(self.q, k_dot))
        scores = table.scale_by(scores, self.options.scale)
        if self.options.moves_bias:
            scores = add(scores, self.broadcast_bias(dots[3], scores))
        mean = table.sum_axes(mul(self.weights, self.visible(scores)), (3,))
        return mul(self.weights, sub(self.visible(scores), _broadcast_rows(mean, scores))), mean

    def visible(self, x: Any) -> Any:
        """Return what is not hidden, zeros elsewhere."""
        return x if self.seen is None else table.select(
            self.seen, x, table.fill(x.aval.shape, 0, x.aval.dtype))  # fmt: skip


def _value(*inputs: Any, options: Options) -> tuple[Any, Any]:
    """Return the averages and the residual."""
    of = _Weights(inputs, options)
    return table.convert(_sum_over_keys(of.weights, of.v), inputs[0].dtype), of.residual


def _tangents(*operands: Any, options: Options) -> tuple[Any, Any]:
    """Return dP V + P dV, and the tangent sum(P * dS) of the residual."""
    inputs, dots = operands[: options.num_inputs], operands[options.num_inputs + 2 :]
    of = _Weights(inputs, options)
    weights, mean = of.score_tangents(dots)
    v_dot = _repeat_heads(in_dtype(dots[2], dtypes.float32), of.q.aval.shape[2])
    result = add(_sum_over_keys(weights, of.v), _sum_over_keys(of.weights, v_dot))
    return table.convert(result, inputs[0].dtype), mean


def _cotangents(*operands: Any, options: Options) -> list[Any]:
    """Return the transpose of `_tangents`, of the result and perhaps of the residual.

    With D = dO V^T that is dS = P * (D - sum(P * D) + d_residual), whose products with the keys and
    the queries are their cotangents; that of the values is P^T dO.
    """
    inputs, (bar, *residual_bar) = (
        operands[: options.num_inputs],
        operands[options.num_inputs + 2 :],
    )
    of = _Weights(inputs, options)
    bar = in_dtype(bar, dtypes.float32)
    weights_bar = _scores(bar, of.v)
    shift = table.sum_axes(mul(of.weights, weights_bar), (3,))
    if residual_bar:
        shift = sub(shift, residual_bar[0])
    scores_bar = of.visible(mul(of.weights, sub(weights_bar, _broadcast_rows(shift, weights_bar))))
    inner = table.scale_by(scores_bar, options.scale)
    found = [
        _sum_over_keys(inner, of.k),
        _sum_heads(_sum_over_queries(inner, of.q), inputs[1].aval),
        _sum_heads(_sum_over_queries(of.weights, bar), inputs[2].aval),
    ]
    if options.moves_bias:
        shape = inputs[3].aval.shape
        axes = tuple([i for i in (0, 1) if shape[i] == 1])
        found.append(reshape(table.sum_axes(scores_bar, axes) if axes else scores_bar, shape))
    return [table.convert(x, inputs[i].dtype) for i, x in enumerate(found)]


# ------------------------------------------------------------------------------------ cudnn calls

# Where a batch dimension of scores (B, N, T, S) and of vectors (B, T, N, H) stands.
_OF_SCORES, _OF_VECTORS = (0, 1), (0, 2)


def _products(**contracted: tuple[int, int, tuple[int, int]]) -> dict[str, Any]:
    """Return how products are described: the dimensions contracted, and the batch of the left."""
    return {
        f"{name}_dot_dimension_numbers": {
            "lhs_contracting_dimensions": [str(left)],
            "rhs_contracting_dimensions": [str(right)],
            "lhs_batch_dimensions": [str(i) for i in batch],
            "rhs_batch_dimensions": [str(i) for i in _OF_VECTORS],
        }
        for name, (left, right, batch) in contracted.items()
    }


# By the names that XLA reads: scores and averages; dK, dQ, dV, and the cotangents of the weights.
_FORWARD = _products(bmm1=(3, 3, _OF_VECTORS), bmm2=(3, 1, _OF_SCORES))
_BACKWARD = _products(
    bmm1_grad_gemm1=(2, 1, _OF_SCORES), bmm1_grad_gemm2=(3, 1, _OF_SCORES),
    bmm2_grad_gemm1=(2, 1, _OF_SCORES), bmm2_grad_gemm2=(3, 3, _OF_VECTORS),
)  # fmt: skip
_LETTERS = {dtypes.bfloat16: "BF16", dtypes.float16: "F16"}


def _config(query: ShapedArray, key: ShapedArray, options: Options, products: Any) -> str:
    """Return the options of a call: the JSON that XLA reads them from."""
    b, t, n, _ = query.shape
    scores = {
        "element_type": _LETTERS[query.dtype],
        "dimensions": [str(size) for size in (b, n, t, key.shape[1])],
        "tuple_shapes": [],
        "layout": {
            "dim_level_types": [], "dim_unique": [], "dim_ordered": [],
            "minor_to_major": ["3", "2", "1", "0"], "tiles": [], "element_size_in_bits": "0",
            "memory_space": "0", "index_primitive_type": "PRIMITIVE_TYPE_INVALID",
            "pointer_primitive_type": "PRIMITIVE_TYPE_INVALID",
            "dynamic_shape_metadata_prefix_bytes": "0",
        },
        "is_dynamic_dimension": [False] * 4,
    }  # fmt: skip
    algorithm = {
        "algo_id": "0", "math_type": "TENSOR_OP_MATH", "tuning_knobs": {"17": "1", "24": "0"},
        "is_cudnn_frontend": True, "workspace_size": "0",
    }  # fmt: skip
    attention = {
        "algorithm": algorithm, "fmha_scale": options.scale, "intermediate_tensor_shape": scores,
        "is_flash_attention": True, "mask_type": options.mask, **products,
        "dropout_rate": options.dropout_rate, "seed": options.seed,
        "sliding_window_length": options.window, "max_seg_per_batch": 1,
        "is_paged_attention": False,
    }  # fmt: skip
    return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": attention})


def _by_head(aval: ShapedArray) -> ShapedArray:
    b, t, n, h = aval.shape
    return shaped_array((b, n, t, h), aval.dtype)


# The last result of a call is memory of which XLA makes as much as cuDNN wants.
_WORKSPACE = shaped_array((0,), dtypes.uint8)
_HEADS_OUTSIDE = (3, 1, 2, 0)  # (B, N, T, H) as (B, T, N, H) lies in memory


def _call(
    b: Builder, name: str, config: str, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    vectors: Sequence[ShapedArray], others: Sequence[ShapedArray] = (),
) -> list[str]:  # fmt: skip
    """Write a call whose first results are vectors (B, T, N, H)."""
    avals_out = [*map(_by_head, vectors), *others, _WORKSPACE]
    orders: list[tuple[int, ...]] = [_HEADS_OUTSIDE] * len(vectors)
    orders += [tuple(range(a.ndim - 1, -1, -1)) for a in (*others, _WORKSPACE)]
    attributes = (
        f'call_target_name = "__cudnn$fmha{name}", api_version = 2 : i32, '
        f"backend_config = {json.dumps(config)}, operand_layouts = {solvers.layouts(avals_in)}, "
        f"result_layouts = [{', '.join(map(layout, orders))}]"
    )
    results = b.op("stablehlo.custom_call", operands, avals_in, avals_out, attributes)[:-1]
    order = "permutation = array<i64: 0, 2, 1, 3>"
    turned = [
        b.op("stablehlo.transpose", [x], [_by_head(aval)], [aval], order)[0]
        for x, aval in zip(results, vectors, strict=False)
    ]
    return [*turned, *results[len(vectors) :]]


def _name(options: Options, *, is_backward: bool) -> str:
    return (
        f"{'ScaleBias' if options.has_bias else ''}Softmax"
        f"{'Dropout' if options.dropout_rate else ''}{'Backward' if is_backward else ''}"
    )


def _forward_call(
    b: Builder, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], *, options: Options, residual: bool,
) -> list[str]:  # fmt: skip
    if is_split(b):
        return b.traced(
            lambda *xs: _value(*xs, options=options)[: 1 + residual], operands, avals_in,
            ("attention", options, residual),
        )  # fmt: skip
    config = _config(avals_in[0], avals_in[1], options, _FORWARD)
    name = _name(options, is_backward=False)
    return _call(b, name, config, operands, avals_in, avals_out[:1], avals_out[1:])


def _backward_call(
    b: Builder, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], *, options: Options,
) -> list[str]:  # fmt: skip
    count = options.num_inputs
    if is_split(b) or len(operands) > count + 3:
        return b.traced(
            lambda *xs: _cotangents(*xs, options=options), operands, avals_in,
            ("attention_cotangent", options),
        )  # fmt: skip
    # cuDNN's order: queries, keys, values, residual, cotangent, bias, result, lengths
    bias = [3] * options.has_bias
    order = [0, 1, 2, count + 1, count + 2, *bias, count, *range(3 + len(bias), count)]
    config = _config(avals_in[0], avals_in[1], options, _BACKWARD)
    return _call(
        b, _name(options, is_backward=True), config, [operands[i] for i in order],
        [avals_in[i] for i in order], avals_out[:3], avals_out[3:],
    )  # fmt: skip


def _tangent_text(
    b: Builder, operands: Sequence[str], avals_in: Any, avals_out: Any, *, options: Options
) -> list[str]:
    return b.traced(
        lambda *xs: _tangents(*xs, options=options), operands, avals_in,
        ("attention_tangent", options),
    )  # fmt: skip


def _refuse(b: Builder, *_: Any, **_params: Any) -> list[str]:
    raise MissingRuleError(message(
        "dot_product_attention", f"cuDNN is not available in programs for {b.platform}.",
        expected="a program for cuda",
        hint="leave implementation out: programs for other platforms are made of XLA's operations",
    ))  # fmt: skip


# ----------------------------------------------------------------------------------------- rules


def _compile(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the `numpy` rule of what only a compiled program computes."""

    def rule(*operands: Any, **params: Any) -> Any:
        if not EAGER.backend.compiles:
            raise MissingRuleError(message(
                "dot_product_attention", "cuDNN computes in compiled programs alone.",
                hint="import xjit",
            ))  # fmt: skip
        found = primitive()
        avals_out = found.infer(tuple([x.aval for x in operands]), params)
        return EAGER.backend.evaluate(found, operands, params, avals_out)

    return rule


def _shape(*avals: ShapedArray, options: Options, residual: bool) -> Any:
    b, t, n, _ = avals[0].shape
    found = (avals[0].strong(), shaped_array((b, n, t), dtypes.float32))
    return found[: 1 + residual]


def _tangent_shape(*avals: ShapedArray, options: Options) -> Any:
    return tuple([aval.strong() for aval in avals[options.num_inputs : options.num_inputs + 2]])


def _cotangent_shape(*avals: ShapedArray, options: Options) -> Any:
    return tuple([avals[i].strong() for i in options.smooth])


def _dimensions(avals: Sequence[ShapedArray], out: Sequence[ShapedArray], params: Any) -> Names:
    """Examples correspond, and so do heads where keys have as many as queries."""
    heads = avals[0].shape[2]

    def names(aval: ShapedArray, is_bias: bool) -> tuple[Any, ...]:
        of_heads = {4: 1 if is_bias else 2, 3: 1}.get(aval.ndim)
        of_all: list[Any] = [None] * aval.ndim
        if aval.shape[0] == avals[0].shape[0]:
            of_all[0] = "example"
        if of_heads is not None and aval.shape[of_heads] == heads:
            of_all[of_heads] = "head"
        return tuple(of_all)

    options: Options = params["options"]
    return Names(
        [names(aval, options.has_bias and i in (3, options.num_inputs + 5))
         for i, aval in enumerate(avals)],
        [names(aval, i == 3) for i, aval in enumerate(out)],
    )  # fmt: skip


def _batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the `batch` rule: examples of examples are examples."""

    def rule(axis: BatchAxis, operands: Any, dims: Any, *, options: Options, **params: Any) -> Any:
        shapes = [_of_one(x.aval.shape, d) for x, d in zip(operands, dims, strict=True)]
        examples, found = shapes[0][0], primitive()

        def merge(i: int, x: Any, dim: Any) -> Any:
            is_shared = options.has_bias and i == 3 and dim is not_mapped and shapes[i][0] == 1
            if is_shared and not options.moves_bias:  # a tangent would be of each example
                return x
            whole = (axis.size, examples, *shapes[i][1:])
            x = broadcast_to(axis.to_front(x, dim), whole, range(len(whole)))
            return reshape(x, (axis.size * examples, *shapes[i][1:]))

        given = [merge(i, x, d) for i, (x, d) in enumerate(zip(operands, dims, strict=True))]
        results = found.bind(*given, options=options, **params)
        parts = [reshape(x, (axis.size, examples, *x.aval.shape[1:])) for x in results]
        if found is attention_cotangent_p and options.moves_bias and shapes[3][0] < examples:
            parts[3] = reshape(table.sum_axes(parts[3], (1,)), (axis.size, *shapes[3]))
        return tuple(parts), (0,) * len(parts)

    return rule


def _of_one(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    return shape if dim is not_mapped else (*shape[:dim], *shape[dim + 1 :])


def _jvp(
    handle: JVPHandle, primals: Any, tangents: Any, *, options: Options, residual: bool
) -> Any:
    outs = attention_p.bind(*primals, options=options, residual=True)
    moves_bias = options.has_bias and type(tangents[3]) is not Zero
    options = options._replace(moves_bias=moves_bias)
    dots = [handle.instantiate(tangents[i]) for i in options.smooth]
    out_dots = attention_tangent_p.bind(*primals, *outs, *dots, options=options)
    return outs[: 1 + residual], out_dots[: 1 + residual]


def _jvp_of_linear(
    primitive: Callable[[], Primitive], formula: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the `jvp` rule of what is linear in its last operands: those after the residual."""

    def rule(handle: JVPHandle, primals: Any, tangents: Any, *, options: Options) -> Any:
        first = options.num_inputs + 2
        outs = primitive().bind(*primals, options=options)
        if all(type(t) is Zero for t in tangents[:first]):
            dots = [handle.instantiate(t) for t in tangents[first:]]
            return outs, primitive().bind(*primals[:first], *dots, options=options)
        # the formula has the result and the residual of the inputs: their tangents count there
        smooth = [type(t) is not Zero and i not in (first - 2, first - 1)
                  for i, t in enumerate(tangents)]  # fmt: skip
        avals = [x.aval for x in primals]
        program = trace_fun(lambda *xs: formula(*xs, options=options), avals, str(primitive()))
        forward, _ = handle.jvp_jaxpr(program, smooth, True)
        dots = [t for t, is_smooth in zip(tangents, smooth, strict=True) if is_smooth]
        return outs, xprim.eval_closed(forward, *primals, *dots)[len(outs) :]

    return rule


def _tangent_transpose(handle: TransposeHandle, cts: Any, *operands: Any, options: Options) -> Any:
    first = options.num_inputs + 2
    bars = [handle.instantiate(ct) for ct in cts if type(ct) is not Zero or ct is cts[0]]
    found = attention_cotangent_p.bind(*operands[:first], *bars, options=options)
    return _to_linear(operands, first, found)


def _cotangent_transpose(
    handle: TransposeHandle, cts: Any, *operands: Any, options: Options
) -> Any:
    first = options.num_inputs + 2
    dots = [handle.instantiate(ct) for ct in cts]
    found = attention_tangent_p.bind(*operands[:first], *dots, options=options)
    return _to_linear(operands, first, found)


def _to_linear(operands: Sequence[Any], first: int, found: Sequence[Any]) -> tuple[Any, ...]:
    """Return what was found for the operands that are linear."""
    given = zip(operands[first:], found, strict=False)
    return (
        *[Zero(x.aval) for x in operands[:first]],
        *[bar if type(x) is Linear else Zero(x.aval) for x, bar in given],
    )


@xprim.primitive_maker
def _primitive(name: str, cuda: Callable[..., Any], **rules: Any) -> Primitive:
    """Return one of the three primitives, which are batched, divided and refused alike.

    Args:
      name: of the primitive.
      cuda: its `stablehlo` rule in programs for CUDA; other platforms have none.
      **rules: those that the others have otherwise.
    """
    made: Primitive = Primitive(
        name,
        numpy=_compile(lambda: made),
        stablehlo=by_platform(name, cuda=cuda, default=_refuse),
        batch=_batch(lambda: made),
        call_like=True,
        sharding=_dimensions,
        **rules,
    )
    return made


attention_p: Primitive = _primitive(
    "attention", cuda=_forward_call, shape=_shape, jvp=_jvp,
    transpose=xprim.undefined("weights are not a linear function of queries and keys"),
)  # fmt: skip

attention_tangent_p: Primitive = _primitive(
    "attention_tangent", cuda=_tangent_text, shape=_tangent_shape,
    jvp=_jvp_of_linear(lambda: attention_tangent_p, _tangents), transpose=_tangent_transpose,
)  # fmt: skip

attention_cotangent_p: Primitive = _primitive(
    "attention_cotangent", cuda=_backward_call, shape=_cotangent_shape,
    jvp=_jvp_of_linear(lambda: attention_cotangent_p, _cotangents),
    transpose=_cotangent_transpose,
)  # fmt: skip
