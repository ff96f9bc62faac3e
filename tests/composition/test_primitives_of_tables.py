"""A primitive whose rules come one by one goes through every transformation."""

import pickle

import numpy as np
import pytest
from jaxlib.mlir.dialects import stablehlo as dialect

import xad.sparse
import xprim
import xstack
import xstack.numpy as xnp
from xprim.errors import MissingRuleError
from xstack.core import ShapedArray
from xstack.experimental import checkify, sparse
from xstack.extend.core import Primitive
from xstack.extend.linear_util import wrap_init
from xstack.interpreters import ad, batching, mlir, partial_eval

X, Y, Z = 2.0, 10.0, 3.0


def multiply_add_primitive():
    """Return x * y + z, with the rules of the example in JAX's documentation of primitives."""
    p = Primitive("multiply_add")
    p.def_impl(lambda x, y, z: x * y + z)
    p.def_abstract_eval(lambda x, y, z: ShapedArray(x.shape, x.dtype))

    def jvp(primals, tangents):
        x, y, _ = primals
        x_dot, y_dot, z_dot = tangents
        zero = ad.instantiate_zeros
        inner = p.bind(zero(x_dot), y, p.bind(x, zero(y_dot), zero(z_dot)))
        return p.bind(*primals), inner

    def transpose(ct, x, y, z):
        of_x, of_y = map(ad.is_undefined_primal, (x, y))
        nothing = xnp.zeros_like(ct)
        return (
            p.bind(ct, y, nothing) if of_x else None,
            p.bind(x, ct, nothing) if of_y else None,
            ct,
        )

    ad.primitive_jvps[p] = jvp
    ad.primitive_transposes[p] = transpose

    def batch(xs, dims):
        (size,) = {x.shape[d] for x, d in zip(xs, dims, strict=True) if d is not None}
        return p.bind(*map(batching.bdim_at_front, xs, dims, [size] * 3)), 0

    batching.primitive_batchers[p] = batch
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))
    return p


P = multiply_add_primitive()


def square_add(a, b):
    return P.bind(a, a, b)


@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_derivatives(compiled):
    jit = xstack.jit if compiled else lambda f: f
    assert jit(square_add)(X, Y) == 14
    primal, tangent = xstack.jvp(jit(square_add), (X, Y), (1.0, 1.0))
    assert (primal, tangent) == (14, 5)
    assert jit(xstack.grad(square_add))(X, Y) == 4
    assert jit(xstack.grad(lambda a, b: square_add(a, b) ** 2, argnums=1))(X, Y) == 28
    assert jit(xstack.grad(xstack.grad(square_add)))(X, Y) == 2


def test_batches_and_their_derivatives():
    xs, ys = xnp.array([1.0, 2.0]), xnp.array([10.0, 20.0])
    np.testing.assert_array_equal(xstack.vmap(square_add)(xs, ys), [11, 24])
    slopes = xstack.jit(xstack.vmap(xstack.grad(square_add)))(xs, ys)
    np.testing.assert_array_equal(slopes, [2, 4])


def test_axis_rules_are_given_the_size_and_the_name():
    p = Primitive("size_of_batch")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    batching.axis_primitive_batchers[p] = lambda size, name, _, xs, dims: (xs[0] * size, dims[0])
    np.testing.assert_array_equal(xstack.vmap(p.bind, axis_name="i")(xnp.ones(3)), [3, 3, 3])
    batching.fancy_primitive_batchers[p] = lambda axis, xs, dims: (xs[0] + axis.size, None)
    with pytest.raises(ValueError):
        xstack.vmap(p.bind, out_axes=None)(xnp.ones(3)) + xnp.ones(4)


def _draw_and_square(key):
    return square_add(xstack.random.normal(key, (3,)), 1.0)


def _square_in_loop(key):
    return xstack.lax.scan(lambda k, x: (k, square_add(x, 1.0)), key, xnp.arange(3.0))[1]


def _sum_squares(x):
    return square_add(x, xnp.ones_like(x)).sum()


# Interpreters of programs, each of which runs equations whose `bind` returns one array alone.
INTERPRETERS = {
    "keys": lambda: (xstack.jit(_draw_and_square)(xstack.random.key(0)),
                     xstack.random.normal(xstack.random.key(0), (3,)) ** 2 + 1.0),
    "keys in a loop": lambda: (xstack.jit(_square_in_loop)(xstack.random.key(0)),
                               xnp.arange(3.0) ** 2 + 1.0),
    "checkify": lambda: (checkify.checkify(lambda x: square_add(x, 1.0),
                                           checkify.all_checks)(xnp.arange(3.0))[1],
                         xnp.arange(3.0) ** 2 + 1.0),
    "sparsify": lambda: (sparse.sparsify(lambda m, x: m @ square_add(x, 1.0))(
        sparse.BCOO.fromdense(xnp.eye(3)), xnp.arange(3.0)), xnp.arange(3.0) ** 2 + 1.0),
    "sparse derivatives": lambda: (
        xad.sparse.sparse_jacobian(lambda x: x * square_add(xnp.arange(3.0), 1.0))(
            xnp.ones(3)).todense(), xnp.diag(xnp.arange(3.0) ** 2 + 1.0)),
    "eval_jaxpr": lambda: (xprim.jaxpr_as_fun(xstack.make_jaxpr(_sum_squares)(xnp.ones(3)))(
        xnp.ones(3))[0], 6.0),
    "checkpoint": lambda: (xstack.grad(xstack.checkpoint(_sum_squares))(xnp.ones(3)), 2.0),
    "gradient of a batch": lambda: (
        xstack.vmap(xstack.grad(_sum_squares))(xnp.ones((2, 3))), xnp.full((2, 3), 2.0)),
    "linearize": lambda: (xstack.linearize(_sum_squares, xnp.ones(3))[1](xnp.ones(3)), 6.0),
}  # fmt: skip


@pytest.mark.parametrize("name", INTERPRETERS)
def test_interpreters_run_a_primitive_of_one_result(name):
    found, expected = INTERPRETERS[name]()
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-6)


def test_a_nan_is_found_behind_a_primitive_of_one_result():
    with xstack.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        xstack.jit(lambda x: xnp.log(-square_add(x, 1.0)))(xnp.ones(3))


def test_several_results():
    p = Primitive("parts")
    p.multiple_results = True
    p.def_impl(lambda x, *, scales: [x * s for s in scales])
    p.def_abstract_eval(lambda x, *, scales: [x for _ in scales])
    rule = mlir.lower_fun(lambda x, *, scales: [x * s for s in scales], multiple_results=True)
    mlir.register_lowering(p, rule)
    assert p.bind(2.0, scales=(1, 3)) == [2, 6]
    assert [float(v) for v in xstack.jit(lambda x: p.bind(x, scales=(1, 3)))(2.0)] == [2, 6]


@pytest.mark.parametrize(("ask", "kind"), [
    (lambda f: f(1.0), "numpy"),
    (lambda f: xstack.make_jaxpr(f)(1.0), "shape"),
    (lambda f: xstack.grad(f)(1.0), "jvp"),
    (lambda f: xstack.vmap(f)(xnp.ones(2)), "batch"),
])  # fmt: skip
def test_a_rule_that_is_missing_says_how_one_is_added(ask, kind):
    p = Primitive("bare")
    with pytest.raises(MissingRuleError, match=rf"bare: has no {kind} rule\.\n  hint .* adds one"):
        ask(p.bind)


def lowered_by(rule, impl=lambda x: [x], count=1):
    """Return a primitive of several results, `count` like its first operand, with that rule."""
    p = Primitive("of_rule")
    p.multiple_results = True
    p.def_impl(impl)
    p.def_abstract_eval(lambda x, *rest: [x] * count)
    mlir.register_lowering(p, rule)
    return p


def _negate(ctx, x):
    return dialect.negate(x)


def _make_type(ctx, x):
    return [x.type]


def _make_number(ctx, x):
    return [3.0]


@pytest.mark.parametrize("rule", [_negate, _make_type, _make_number])
def test_a_lowering_of_objects_is_refused_when_it_is_needed(rule):
    p = lowered_by(rule)
    assert p.bind(1.0) == [1]
    text = rf"register_lowering: a rule that makes MLIR objects[^'']*the rule '{rule.__name__}'"
    with pytest.raises(TypeError, match=text):
        xstack.jit(p.bind)(1.0)


def _lower_with_a_fault(ctx, x):
    def fault(x):
        raise ValueError("of the function")

    return mlir.lower_fun(fault)(ctx, x)


def test_errors_of_functions_that_a_rule_lowers_are_raised_as_they_are():
    with pytest.raises(ValueError, match="of the function"):
        xstack.jit(lowered_by(_lower_with_a_fault).bind)(1.0)


def test_a_rule_calls_rules_of_functions_in_contexts_of_its_own():
    def rule(ctx, x, y):
        assert ctx.module_context.platforms == ("cpu",) and len(ctx.avals_out) == 1
        (total,) = mlir.lower_fun(lambda x, y: x + y, multiple_results=False)(ctx, x, y)
        alone = ctx.replace(avals_in=ctx.avals_in[:1])
        return mlir.lower_fun(lambda t: [xnp.exp(t)])(alone, total)

    p = lowered_by(rule, lambda x, y: [xnp.exp(x + y)])
    x, y = xnp.linspace(0.0, 1.0, 5), xnp.ones(5)
    (found,) = xstack.jit(p.bind)(x, y)
    np.testing.assert_allclose(found, np.exp(np.linspace(0, 1, 5) + 1), rtol=1e-6)


@pytest.mark.parametrize("has_side_effect", [False, True])
def test_a_rule_calls_python(has_side_effect):
    calls, released = [], []

    def halves_and_sines(x):
        calls.append(type(x))
        return x / 2, np.sin(x)

    class Held:
        def __del__(self):
            released.append(1)

    def rule(ctx, x):
        ctx.module_context.add_keepalive(Held())
        results, _, kept = mlir.emit_python_callback(
            ctx, halves_and_sines, None, [x], ctx.avals_in, ctx.avals_out,
            has_side_effect=has_side_effect, sharding=None,
        )  # fmt: skip
        ctx.module_context.add_keepalive(kept)
        return results

    p = lowered_by(rule, lambda x: [x / 2, xnp.sin(x)], count=2)
    x = xnp.arange(4.0)

    @xstack.jit
    def run(x):
        half, sine = p.bind(x + 1)
        return half + sine

    for count in (1, 2):
        found = run(x)
        np.testing.assert_allclose(
            found, np.arange(1.0, 5.0) / 2 + np.sin(np.arange(1.0, 5.0)), rtol=1e-6
        )
        assert calls == [np.ndarray] * count and not released
    doubled = xstack.jit(lambda x: sum(p.bind(x)) + sum(p.bind(2 * x)))(x)
    np.testing.assert_allclose(
        doubled, 1.5 * np.arange(4.0) + np.sin(np.arange(4.0)) + np.sin(2 * np.arange(4.0)),
        rtol=1e-6, atol=1e-7,
    )  # fmt: skip


@pytest.mark.parametrize("given", [{"token": object()}, {"sharding": object()}])
def test_a_call_of_python_in_a_rule_has_no_order_and_no_place(given):
    def rule(ctx, x):
        options = {"token": None, "sharding": None} | given
        return mlir.emit_python_callback(
            ctx, lambda x: (x,), options["token"], [x], ctx.avals_in, ctx.avals_out,
            has_side_effect=False, sharding=options["sharding"],
        )[0]  # fmt: skip

    with pytest.raises(NotImplementedError, match=f"a {next(iter(given))} cannot be given"):
        xstack.jit(lowered_by(rule).bind)(1.0)


def test_tables_take_no_rules_for_primitives_of_the_family():
    with pytest.raises(TypeError, match="sin: the rules of a primitive come from who defined it"):
        batching.primitive_batchers[xstack.lax.sin_p] = lambda xs, dims: (xs, dims)


def test_programs_of_wrapped_functions_with_known_arguments():
    aval = ShapedArray((), xnp.float32)
    fun = wrap_init(lambda x, y: (x * 2, x * y))
    pvals = [partial_eval.PartialVal.known(3.0), partial_eval.PartialVal.unknown(aval)]
    jaxpr, out, consts = partial_eval.trace_to_jaxpr_nounits(fun, pvals)
    assert out[0].is_known() and out[0][1] == 6 and out[1].get_aval() is aval
    assert xstack.core.eval_jaxpr(jaxpr, consts, 5.0) == [15]
    whole = partial_eval.trace_to_jaxpr_nounits(fun, pvals, instantiate=True)
    assert len(whole[0].outvars) == 2


def test_residuals_that_are_truth_values_stay_so():
    seen = []

    @xstack.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), (True, 3, x)), lambda kept, ct: (seen.append(kept[:2]), (ct * 2,))[1])
    xstack.grad(f)(1.0)
    xstack.jit(xstack.grad(f))(1.0)
    assert [(type(a), b) for a, b in seen] == [(bool, 3), (bool, 3)]


def test_a_product_of_ones_own_joins_pairs_of_einsum():
    calls = []

    def product(*args, **options):
        calls.append(args[2])
        return xstack.lax.dot_general(*args, **options)

    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(xnp.einsum("ij,jk->ik", x, y, _dot_general=product), x @ y)
    assert calls == [(((1,), (0,)), ((), ()))]


@pytest.mark.parametrize(("requested", "passed"), [(None, np.float16), ("float32", np.float32)])
def test_a_product_of_ones_own_gets_the_dtype_of_the_result(requested, passed):
    dtypes = []

    def product(*args, preferred_element_type, **options):
        dtypes.append(preferred_element_type)
        return xstack.lax.dot_general(
            *args, preferred_element_type=preferred_element_type, **options
        )

    x, y = xnp.ones((2, 3), np.float16), xnp.ones((3, 4), np.int8)
    xnp.einsum("ij,jk->ik", x, y, preferred_element_type=requested, _dot_general=product)
    assert dtypes == [passed]


def test_the_larger_and_the_smaller_of_sizes_may_be_symbolic():
    core = xstack.core
    (b,) = xstack.export.symbolic_shape("b")
    assert (core.max_dim(2, np.int64(3)), core.min_dim(2, 3)) == (3, 2)
    assert core.max_dim(b, 0) == b and core.min_dim(b, 1) == 1 and core.max_dim(b, b + 1) == b + 1
    for dim in (core.max_dim(b, 4), core.max_dim(4, b)):
        assert str(dim) == "max(b, 4)"
    with pytest.raises(TypeError, match=r"^max_dim: d1 must be an integer, got a float\."):
        core.max_dim(1.5, b)


def test_types_of_batches_and_traces_that_are_installed():
    core, aval = xstack.extend.core, ShapedArray((2, 3), xnp.float32)
    assert core.unmapped_aval(5, 1, aval).shape == (2, 5, 3)
    assert core.mapped_aval(3, 1, aval).shape == (2,) and core.mapped_aval(3, None, aval) is aval
    with pytest.raises(ValueError, match="mapped_aval: dimension 0 of"):
        core.mapped_aval(3, 0, aval)
    with pytest.raises(ValueError, match="unmapped_aval: a batch over an axis of a mesh"):
        core.unmapped_aval(3, 0, aval, "x")
    mesh = xstack.sharding.AbstractMesh((2,), ("x",), (xstack.sharding.AxisType.Explicit,))
    cut = ShapedArray((2, 3), xnp.float32, sharding=xstack.NamedSharding(mesh, xstack.P("x")))
    assert str(core.mapped_aval(3, 1, cut)) == str(cut.dec_rank(3, 1)) == "float32[2@x]"
    assert str(core.unmapped_aval(5, 0, cut)) == str(cut.inc_rank(5, 0)) == "float32[5,2@x,3]"

    def known(x):
        with core.take_current_trace() as trace:
            assert xstack.core.trace_state_clean() and float(xnp.sin(0.0)) == 0
            with core.set_current_trace(trace):
                assert core.find_top_trace() is trace
        return x

    assert xstack.jit(known)(1.0) == 1


def test_a_primitive_may_have_the_name_of_any_other():
    first, second = Primitive("sin"), Primitive("sin")
    first.def_abstract_eval(lambda x: x)
    assert str(second) == "sin" and second is not first and xstack.lax.sin_p is not first
    assert "sin a" in str(xstack.make_jaxpr(first.bind)(1.0))
    assert pickle.loads(pickle.dumps(first)) is first
    assert float(xnp.sin(0.0)) == 0


def test_a_name_that_is_no_string_is_refused():
    with pytest.raises(TypeError, match="Primitive: the name is not a string"):
        Primitive(object())


@pytest.mark.parametrize("several", [True, False])
def test_an_abstract_evaluation_of_the_wrong_form_is_refused(several):
    wrong_p = Primitive("wrong")
    wrong_p.multiple_results = several
    wrong_p.def_abstract_eval(lambda x: x if several else [x])
    wrong_p.def_impl(lambda x: [x] if several else x)
    with pytest.raises(ValueError, match=r"wrong: the abstract evaluation rule must return(.|\n)*"
                                         rf"expected  multiple_results={not several}"):  # fmt: skip
        xstack.jit(wrong_p.bind)(1.0)


class CountingTracer(xstack.core.Tracer):
    def __init__(self, trace, value):
        super().__init__(trace, xstack.typeof(value))
        self.value = value


class CountingTrace(xstack.core.Trace):
    """Written as JAX's traces are: no parent is given, and one result or a list comes back."""

    def __init__(self, parent):
        super().__init__()
        self.parent_trace, self.seen = parent, []

    def process_primitive(self, primitive, tracers, params):
        self.seen.append(primitive.name)
        values = [x.value if isinstance(x, CountingTracer) else x for x in tracers]
        avals = [xstack.typeof(x) for x in values]
        found = primitive.bind_with_trace(self.parent_trace, values, avals, params)
        if primitive.multiple_results and not primitive.call_primitive:
            return [CountingTracer(self, x) for x in found]
        return CountingTracer(self, found)


def test_a_trace_written_for_jax_sees_every_operation():
    with xstack.extend.core.take_current_trace() as parent:
        trace = CountingTrace(parent)
        with xstack.extend.core.set_current_trace(trace):
            found = P.bind(xnp.sin(CountingTracer(trace, X)), X, Y)
    assert trace.seen == ["sin", P.name]
    assert float(found.value) == float(xnp.sin(X) * X + Y)


def test_equations_say_their_scope_and_line_as_in_jax():
    def scoped(x):
        with xstack.named_scope("outer"):
            return xnp.sin(x)

    (equation,) = xstack.make_jaxpr(scoped)(1.0).eqns
    assert equation.source_info.name_stack == "outer"
    assert equation.source_info.traceback is equation.source is not None


def test_gradient_of_a_batch_whose_rule_maps_the_derivative_rule():
    """Equinox maps the rules of a primitive: the tangent of an integer result is a `Zero`."""
    scale = Primitive("scale_and_count")
    scale.multiple_results = True
    scale.def_impl(lambda x: (3 * x, xnp.sign(x).astype("int32")))
    scale.def_abstract_eval(lambda x: (x, ShapedArray(x.shape, "int32")))
    many = Primitive("many_scale_and_count")
    many.multiple_results = True
    many.def_impl(scale.impl)
    many.def_abstract_eval(scale.abstract_eval)

    no_tangent = ad.Zero(ShapedArray((), xstack.dtypes.float0))

    def jvp(primals, tangents):
        return scale.bind(*primals), (3 * ad.instantiate_zeros(*tangents), no_tangent)

    ad.primitive_jvps[scale] = jvp
    ad.primitive_jvps[many] = xstack.vmap(jvp)
    batching.primitive_batchers[scale] = lambda xs, dims: (many.bind(*xs), (0, 0))

    def loss(x):
        scaled, counts = xstack.vmap(lambda x: scale.bind(x))(x)
        return xnp.sum(scaled * counts)

    found = xstack.grad(loss)(xnp.asarray([2.0, -1.0, 5.0]))
    np.testing.assert_array_equal(found, [3.0, -3.0, 3.0])
