"""Long elementwise programs are computed once, not again for each kernel that reads them."""

import random

import numpy as np
import pytest

import xnp
from xjit import jit
from xjit.xla_workarounds import fusion
from xjit.xla_workarounds.fusion import equations_to_fence
from xnp import lax, nn
from xprim import ShapeDtypeStruct, make_jaxpr

X = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4)
STEPS = {
    "log_softmax": lambda x: nn.log_softmax(x) * 0.5,
    "distance from the mean": lambda x: x - xnp.mean(x, axis=0) * 0.1,
    "integers": lambda n: n * 3 - xnp.sum(n, axis=1, keepdims=True),
}


def _chain(step, k):
    def chain(x):
        for _ in range(k):
            x = step(x)
        return x

    return chain


def _fences(fun, *operands):
    return len(equations_to_fence(make_jaxpr(fun)(*operands).jaxpr))


def _instructions(fun, x):
    return jit(fun).lower(x).compile().as_text().count(" = ")


@pytest.mark.parametrize("name", STEPS)
def test_a_chain_is_compiled_as_the_sum_of_its_steps(name):
    x = X.astype(np.int32) if name == "integers" else X
    few, more, many = [_instructions(_chain(STEPS[name], k), x) for k in (1, 6, 24)]
    assert many - more < 1.2 * 18 / 5 * (more - few)  # without fences 2.8 and 3.2 times as many


def test_values_are_those_without_fences():
    chain = _chain(STEPS["log_softmax"], 20)
    assert _fences(chain, X) > 4
    with np.errstate(all="raise"):
        np.testing.assert_allclose(jit(chain)(X), chain(X), rtol=1e-5)  # 20 roundings of float32


def test_one_kernel_needs_no_fence_however_long_it_is():
    def polynomial(x):
        y = x
        for c in range(60):
            y = y * x + float(c)
        return y

    assert _fences(polynomial, X) == 0
    assert _fences(lambda x: xnp.sum(polynomial(x)), X) == 0

    def read_twice(x):
        y = polynomial(x)
        return xnp.sum(y), xnp.max(y)

    assert _fences(read_twice, X) == 1


def test_large_arrays_and_scalars_have_fewer_fences():
    chain = _chain(STEPS["distance from the mean"], 20)
    few = _fences(chain, np.zeros((1024, 256), np.float32))
    assert 0 < few < _fences(chain, X)
    assert _fences(lambda x: (_chain(xnp.square, 30)(x), x), np.float32(1)) == 0


def test_what_depends_on_constants_alone_is_left_to_xla():
    chain = _chain(STEPS["log_softmax"], 20)
    assert _fences(lambda x: x + chain(xnp.ones((3, 4))), X) == 0


def test_costly_operations_which_xla_computes_once_need_no_fences():
    assert _fences(_chain(nn.softmax, 20), X) == 0  # its quotient is in memory


def test_loops_have_no_fences_even_where_a_function_has_them_outside():
    chain = jit(_chain(STEPS["log_softmax"], 20))

    def both(x):
        return chain(x), lax.fori_loop(0, 3, lambda i, y: chain(y), x)

    inside = jit(lambda x: lax.fori_loop(0, 3, lambda i, y: chain(y), x)).lower(X).as_text()
    assert "@fence" not in inside
    once = jit(chain).lower(X).as_text().count("call @fence")
    assert jit(both).lower(X).as_text().count("call @fence") == once > 4


def test_other_platforms_have_no_fences():
    program = jit(_chain(STEPS["log_softmax"], 20)).trace(X).lower(lowering_platforms=("cuda",))
    assert "@fence" not in program.as_text()


def _limited(x):
    r = x[1:] - x[:-1]
    ratio = xnp.minimum(r * r, 2.0) / (1.0 + xnp.abs(r))
    return ratio * (x[1:] + x[:-1]) + xnp.maximum(0.0, xnp.minimum(2.0, 2.0 * ratio)) * r


def _divergence(x):
    flux = _limited(x)
    return x + xnp.pad(flux, (0, 1)) - xnp.pad(flux, (1, 0))


FIELD = np.linspace(0.1, 2.0, 5000, dtype=np.float32) ** 2


def test_what_one_kernel_reads_at_several_places_is_computed_once():
    assert _fences(_divergence, FIELD) == 1
    assert _fences(lambda x: _divergence(_divergence(x)), FIELD) == 2
    np.testing.assert_allclose(
        jit(lambda x: _divergence(_divergence(x)))(FIELD), _divergence(_divergence(FIELD)),
        rtol=1e-5,  # roundings of float32, those of sums that cancel by up to 10
    )  # fmt: skip


def test_shifts_of_what_is_in_memory_or_costs_little_need_no_fence():
    def stencil(x):
        return x[1:-1] * 0.5 + 0.25 * (x[:-2] + x[2:])

    def rolled(x):
        for _ in range(30):
            x = x * 1.5 + 0.5
        return xnp.roll(x, 1)

    def laplacians(x):
        for _ in range(30):
            x = xnp.sum(x) + stencil(x)
        return x

    assert _fences(rolled, FIELD) == 0
    assert _fences(laplacians, FIELD) <= 15  # not after each
    assert _fences(lambda x: _divergence(x[:500]), FIELD) == 0  # a call costs more


@pytest.mark.parametrize(("function", "fences"), [
    (lax.erfc, 11), (lax.erf_inv, 11), (lax.asinh, 5), (lax.tanh, 0),
    (lambda x: xnp.where(x > 9, x, x * lax.erfc(-x)), 11),
])  # fmt: skip
def test_a_long_chain_is_divided_where_one_value_is_passed_on(function, fences):
    x = np.linspace(-0.4, 0.4, 1024, dtype="f")
    chain = _chain(function, 12)
    assert _fences(chain, x) == fences  # the last result is in memory as it is
    np.testing.assert_allclose(jit(chain)(x), chain(x), rtol=2e-5, atol=1e-6)  # a dozen roundings
    assert _fences(chain, x[:1000]) == 0  # where calls would cost more


def test_what_is_passed_on_with_another_value_divides_no_chain():
    def beside(x):
        y = x + 1
        for _ in range(12):
            x = lax.erfc(x)
        return x * y

    def at_once(x):
        return sum(lax.erfc(x * n) for n in range(12))

    x = np.linspace(-0.4, 0.4, 1024, dtype="f")
    assert _fences(beside, x) == _fences(at_once, x) == 0
    assert _fences(_chain(lax.tanh, 40), x) == 2


def _random_program(seed):
    draw = random.Random(seed)
    binary = (xnp.add, xnp.multiply, xnp.subtract, xnp.maximum)
    unary = (xnp.tanh, xnp.negative, xnp.abs, lambda x: x * 1.5, lambda x: x[::-1])

    def fun(a, b):
        values = [a, b]
        for _ in range(draw.randint(5, 80)):
            one, two = draw.choice(values[-6:]), draw.choice(values[-6:])
            is_binary = draw.random() < 0.6
            values.append(draw.choice(binary)(one, two) if is_binary else draw.choice(unary)(one))
        return values[-1], draw.choice(values), draw.choice(values).sum()

    x = ShapeDtypeStruct((draw.choice([10, 2000, 300000]),), "float32")
    return make_jaxpr(fun)(x, x).jaxpr


def test_the_bound_on_the_work_of_kernels_leaves_out_no_fence(monkeypatch):
    programs = [_random_program(seed) for seed in range(40)]
    found = [fusion.equations_to_fence(program) for program in programs]
    code = fusion._code_of_kernels
    monkeypatch.setattr(fusion, "_code_of_kernels", lambda *given: (code(*given)[0], 1000))
    assert found == [fusion.equations_to_fence(program) for program in programs]
    assert 5 < sum(map(bool, found)) < 40


def test_blocks_of_repeated_elements_are_computed_in_their_own_shape():
    x, y = (np.arange(1000, dtype=np.float32).reshape(s) for s in ((25, 40), (40, 25)))
    assert _fences(xnp.kron, x, y) == 1
    assert _fences(xnp.kron, x[:3], y[:3]) == 0  # few elements
    assert _fences(lambda x: xnp.outer(x, x), x) == 0  # nothing is merged
    assert _fences(lambda x: xnp.outer(x, x).ravel(), x) == 1
    assert _fences(lambda x: (xnp.ones((40, 25, 40)) * x).reshape(40, 1000), x) == 1
    assert _fences(lambda x: xnp.outer(x, x).ravel().sum(), x) == 0
    assert _fences(lambda x: 2 * xnp.outer(x, x).ravel(), x) == 1
    full = np.ones((40, 25, 40), np.float32)  # is read in order
    assert _fences(lambda x, z: (z * x).reshape(40, 1000), x, full) == 1
    assert _fences(lambda x, z: 2 * (z * x).reshape(40, 1000), x, full) == 0
    assert _fences(lambda x, z: (z * x).reshape(40, 1000) @ xnp.ones((1000, 3)), x, full) == 1
    np.testing.assert_array_equal(jit(xnp.kron)(x, y), np.kron(x, y))  # one product an element
    differences = jit(lambda x: (x[:, :, None] - x[:, None]).reshape(25, 1600))(x)
    np.testing.assert_array_equal(differences, (x[:, :, None] - x[:, None]).reshape(25, 1600))
