"""Operations with rules as methods, `HiPrim`: each rule runs where it should, the rest is derived.

The rules here have factors of their own, so that a derivative says which rule computed it.
"""

import pytest

import xstack
import xstack.numpy as xnp
from xstack.experimental.hijax import (
    AxisData,
    HiPrim,
    NullAccum,
    RefAccum,
    ShapedArray,
    ValAccum,
    Zero,
    jvp_from_lin,
    linearize_from_jvp,
    vjp_from_jvp,
    vjp_from_lin,
)


class Operation(HiPrim):
    """Is bound to operands by `on`; its result is of the type of its last operand."""

    def __init__(self, *avals, **params):
        self.in_avals, self.out_aval, self.params = avals, avals[-1], params
        super().__init__()

    @classmethod
    def on(cls, *operands, **params):
        return cls(*xstack.tree.map(xstack.typeof, operands), **params)(*operands)


class Product(Operation):
    def expand(self, x, y):
        return x * y


class ForwardProduct(Product):
    def jvp(self, primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        return self(x, y), 10 * (x_dot * y + x * y_dot)


class ReverseProduct(Product):
    def vjp_fwd(self, nzs_in, x, y):
        self.needed.append(nzs_in)
        return self(x, y), (x if nzs_in[1] else None, y if nzs_in[0] else None)

    def vjp_bwd_retval(self, res, ct):
        x, y = res
        return None if y is None else 100 * ct * y, None if x is None else 100 * ct * x

    needed: list = []  # noqa: RUF012 - `nzs_in` of the forward rules, in turn


class BothProduct(ForwardProduct, ReverseProduct):
    pass


class LinearizedProduct(Product):
    def lin(self, nzs_in, x, y):
        return self(x, y), (x, y)

    def linearized(self, residuals, x_dot, y_dot):
        x, y = residuals
        return 1000 * (x_dot * y + x * y_dot)


# The class, the factor of `jvp` and `linearize`, the factor of `grad`.
FACTORS = [
    (Product, 1, 1),
    (ForwardProduct, 10, 10),
    (ReverseProduct, 100, 100),
    (BothProduct, 10, 100),
    (LinearizedProduct, 1000, 1000),
]


@pytest.mark.parametrize(("operation", "forward", "reverse"), FACTORS)
@pytest.mark.parametrize("compile_", [lambda f: f, xstack.jit], ids=["eager", "jit"])
def test_each_mode_runs_its_rule_or_derives_it(operation, forward, reverse, compile_):
    product = compile_(operation.on)
    assert float(product(2.0, 3.0)) == 6
    out, dot = xstack.jvp(product, (2.0, 3.0), (1.0, 0.5))
    assert (float(out), float(dot)) == (6, forward * 4)
    assert float(xstack.linearize(product, 2.0, 3.0)[1](1.0, 0.5)) == forward * 4
    assert list(map(float, xstack.grad(product, (0, 1))(2.0, 3.0))) == [3 * reverse, 2 * reverse]
    assert float(xstack.grad(xstack.grad(product), 1)(2.0, 3.0)) == reverse


@pytest.mark.parametrize("operation", [row[0] for row in FACTORS])
def test_batches_of_derivatives_are_those_of_each_example(operation):
    xs, ys = xnp.arange(3.0), xnp.arange(3.0) + 1
    batched = xstack.vmap(xstack.grad(operation.on), in_axes=(0, 0))(xs, ys)
    alone = [float(xstack.grad(operation.on)(x, y)) for x, y in zip(xs, ys, strict=True)]
    assert batched.tolist() == alone


def test_rules_that_are_left_to_be_derived_equal_those_of_classes_without_them():
    class Named(ForwardProduct):
        lin, linearized = linearize_from_jvp
        vjp_fwd, vjp_bwd_retval = vjp_from_lin

    class FromJvp(ForwardProduct):
        vjp_fwd, vjp_bwd_retval = vjp_from_jvp

    class FromLin(LinearizedProduct):
        jvp = jvp_from_lin

    for operation, factor in ((Named, 10), (FromJvp, 10), (FromLin, 1000)):
        assert float(xstack.grad(operation.on)(2.0, 3.0)) == factor * 3
        assert float(xstack.jvp(operation.on, (2.0, 3.0), (1.0, 0.0))[1]) == factor * 3


def test_the_derived_rules_can_be_called():
    product = ForwardProduct(xstack.typeof(2.0), xstack.typeof(3.0))
    assert [float(x) for x in product.jvp((2.0, 3.0), (1.0, 0.0))] == [6, 30]
    out, residuals = LinearizedProduct.on, ReverseProduct(*product.in_avals)
    assert float(out(2.0, 3.0)) == 6
    out, pushed = residuals.lin((True, True), 2.0, 3.0)
    assert (float(out), float(residuals.linearized(pushed, 1.0, 0.0))) == (6, 300)
    out, saved = product.vjp_fwd((True, True), 2.0, 3.0)
    x_bar, y_bar = product.vjp_bwd_retval(saved, Zero(product.out_aval))
    assert (float(out), float(x_bar), float(y_bar)) == (6, 0, 0)


@pytest.mark.parametrize("operation", [ReverseProduct, BothProduct])
def test_forward_rules_learn_which_cotangents_are_needed(operation):
    operation.needed.clear()
    xstack.grad(operation.on, 0)(2.0, 3.0)
    xstack.grad(operation.on, 1)(2.0, 3.0)
    xstack.grad(operation.on, (0, 1))(2.0, 3.0)
    assert operation.needed == [(True, False), (False, True), (True, True)]


class Pair(HiPrim):
    """Returns {"a": x^2, "b": (sin x, 3)}, the last of them an integer."""

    def __init__(self, aval):
        self.in_avals = ({"x": aval},)
        self.out_aval = {"a": aval, "b": (aval, ShapedArray((), "int32"))}
        self.params = {}
        self.seen = []
        super().__init__()

    def expand(self, tree):
        return {"a": tree["x"] ** 2, "b": (xnp.sin(tree["x"]), xnp.int32(3))}

    def vjp_fwd(self, nzs_in, tree):
        return self(tree), tree, {"a": True, "b": (True, False)}

    def vjp_bwd_retval(self, tree, ct):
        self.seen.append(xstack.tree.map(lambda x: type(x) is Zero, ct))
        return ({"x": 2 * tree["x"] * ct["a"]},)


def test_pytrees_and_zeros_reach_the_backward_rule():
    pair = Pair(xstack.typeof(2.0))
    assert float(xstack.grad(lambda x: pair({"x": x})["a"])(2.0)) == 4
    assert pair.seen == [{"a": False, "b": (True, True)}]


def test_accumulators_take_the_cotangents_that_are_needed():
    seen = []

    class Element(Product):
        def expand(self, x, y):
            return x[self.i] * y

        def vjp_fwd(self, nzs_in, x, y):
            return self(x, y), (), True, {"y": y, "x": x}

        def vjp_bwd(self, res, structured, ct, x_accum, y_accum):
            seen.append((type(x_accum), type(y_accum)))
            dense = xnp.zeros(x_accum.aval.shape).at[self.i].add(ct * structured["y"])
            x_accum.accum(dense)
            x_accum.accum(dense)
            y_accum.accum(structured["x"][self.i] * ct)
            return {"a log": ct}

    element = lambda x, y: Element.on(x, y, i=1)  # noqa: E731 - used by three transformations
    x = xnp.arange(3.0)
    assert xstack.grad(element)(x, 5.0).tolist() == [0, 10, 0]
    assert float(xstack.grad(element, 1)(x, 5.0)) == 1
    assert xstack.jit(xstack.grad(element))(x, 5.0).tolist() == [0, 10, 0]
    assert seen == [(ValAccum, NullAccum), (NullAccum, ValAccum), (ValAccum, NullAccum)]
    (x_bar, y_bar), logs = xstack.vjp(element, x, 5.0)[1].with_logs(2.0)
    assert (x_bar.tolist(), float(y_bar)) == ([0, 20, 0], 2)
    assert float(logs["a log"]) == 2


def test_an_accumulator_that_gets_another_shape_says_so():
    with pytest.raises(ValueError, match=r"(?s)accum: the cotangent has another shape.*float32\[2"):
        ValAccum(ShapedArray((3,), "float32")).accum(xnp.ones(2))


def test_accumulators_ignore_zeros_and_add_to_references():
    ref = xstack.new_ref(1.0)
    accum = RefAccum(ShapedArray((), "float32"), ref)
    for ct in (None, Zero(accum.aval), xnp.float32(2)):
        accum.accum(ct)
    assert float(ref[...]) == float(accum.freeze()) == 3
    total = ValAccum(accum.aval)
    total.accum(Zero(accum.aval))
    assert type(total.freeze()) is Zero


def test_a_batch_rule_runs_for_batches_alone():
    seen = []

    class MatVec(HiPrim):
        def __init__(self, a, x):
            self.in_avals, self.params = (a, x), {}
            self.out_aval = ShapedArray(a.shape[:1], a.dtype)
            super().__init__()

        def expand(self, a, x):
            return a @ x

        def batch(self, axis_data, args, dims):
            seen.append((axis_data, dims))
            return args[0] @ args[1].T, 1

    matvec = lambda a, x: MatVec(xstack.typeof(a), xstack.typeof(x))(a, x)  # noqa: E731
    a, xs = xnp.arange(6.0).reshape(2, 3), xnp.arange(12.0).reshape(4, 3)
    assert matvec(a, xs[0]).tolist() == (a @ xs[0]).tolist()
    assert not seen
    batched = xstack.vmap(matvec, in_axes=(None, 0))(a, xs)
    assert batched.tolist() == (xs @ a.T).tolist()
    assert seen == [(AxisData(4), (None, 0))]


def test_errors_name_the_operation():
    class Unset(HiPrim):
        def __init__(self):
            self.in_avals, self.params = (), {}
            super().__init__()

    class WithEffects(Unset):
        out_aval, effects = ShapedArray((), "float32"), frozenset({"an effect"})

    product = Product(*[ShapedArray((3,), "float32")] * 2)
    with pytest.raises(AttributeError, match=r"Unset: its constructor does not set self.out_aval"):
        Unset()
    with pytest.raises(TypeError, match=r"(?s)WithEffects: .*has the effects of the operations in"):
        WithEffects()
    with pytest.raises(TypeError, match=r"(?s)Product: operand \[1\] is of another type.*\[3\]"):
        product(xnp.ones(3), 1.0)
    with pytest.raises(TypeError, match=r"Product: the operands have another structure"):
        product(xnp.ones(3))
    with pytest.raises(NotImplementedError, match=r"(?s)Operation: it has no method expand"):
        Operation.on(1.0)


@pytest.mark.parametrize("method", ["vjp_fwd", "vjp_bwd_retval", "vjp_bwd", "lin", "linearized"])
def test_one_of_the_two_methods_of_a_rule_is_an_error(method):
    half = type("Half", (Operation,), {method: lambda _, *operands: operands})
    with pytest.raises(TypeError, match=rf"(?s)Half: a rule of two .*got +{method}"):
        half.on(1.0)


def test_a_result_has_the_type_that_the_operation_states():
    class Short(Operation):
        def expand(self, x):
            return x[:2]

    class Two(Operation):
        def expand(self, x):
            return x, x

    for run in (lambda fun: fun, xstack.jit, xstack.vmap):
        operands = xnp.ones((2, 3)) if run is xstack.vmap else xnp.ones(3)
        with pytest.raises(TypeError, match=r"(?s)Short: result is of another type .*out_aval"):
            run(Short.on)(operands)
        with pytest.raises(TypeError, match=r"Two: the results have another structure"):
            run(Two.on)(operands)


def test_operations_with_equal_params_are_equal_and_show_them():
    aval = xstack.typeof(1.0)
    one, other = Product(aval, i=1, _hidden=2), Product(aval, i=1, _hidden=2)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Product(aval, i=2, _hidden=2)
    assert (one.i, repr(one)) == (1, "Product[i=1]")
