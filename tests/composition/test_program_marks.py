"""`lax.composite`, `lax.dce_sink` and `lax.stage`: what compilers are told of a program.

The reference of a composite is its decomposition, called as it is; of its text, the oracle's.
"""

import functools
import re

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import export, grad, hessian, jit, jvp, lax, make_jaxpr, random, tree, vmap
from xstack.core import Tracer
from xstack.experimental import checkify, io_callback
from xstack.experimental.xla_metadata import (
    fuse_limit,
    must_fuse_call,
    set_xla_metadata,
    xla_metadata_call2,
)

X = np.float32([0.3, -1.2, 2.0])


def ratio(x):
    return lax.sin(x) / lax.cos(x)


tangent = lax.composite(ratio, name="my.tangent", version=2)

TRANSFORMED = {
    "itself": lambda f: f,
    "jit": jit,
    "vmap": vmap,
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "grad": lambda f: vmap(grad(f)),
    "grad of jit": lambda f: vmap(grad(jit(f))),
    "hessian": lambda f: vmap(hessian(f)),
    "jit of grad of vmap": lambda f: jit(grad(lambda x: vmap(f)(x).sum())),
    "scan": lambda f: lambda x: lax.scan(lambda c, v: (f(c) + v, f(v)), x[0], x),
    "cond": lambda f: lambda x: lax.cond(x[0] > 0, f, lambda v: v, x),
    "checkify": lambda f: lambda x: checkify.checkify(f)(x)[1],
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_composite_is_what_it_is_made_of(name):
    got, expected = (tree.leaves(TRANSFORMED[name](f)(X)) for f in (tangent, ratio))
    for a, b in zip(got, expected, strict=True):
        # Programs that are compiled apart may fuse and round otherwise, by a few ulp.
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_composite_is_one_operation_of_the_program_and_its_derivative_is_none():
    text = jit(tangent).lower(X).as_text()
    (operation,) = re.findall(r'"stablehlo.composite".*', text)
    assert 'name = "my.tangent"' in operation and "version = 2 : i32" in operation
    assert "decomposition = @my.tangent" in operation and "func.func private @my.tangent" in text
    assert "composite" not in jit(grad(tangent)).lower(X[0]).as_text()
    assert "composite" not in jit(vmap(tangent)).lower(X).as_text()


def test_attributes_are_those_of_the_oracle():
    jax = pytest.importorskip("jax")
    options = {
        "axis": 0, "b": 1.5, "c": None, "e": 's"', "h": True, "d": (1, 2.0),
        "g": np.float32([1, 2]), "i": np.int8(3),
    }  # fmt: skip

    def attributes(lax, jit, xnp):
        f = functools.partial(lax.composite, name="my.f")(lambda x, /, **_: x + 1)
        module = jit(lambda x: f(x, **options)).lower(X).compiler_ir("stablehlo")
        text = str(module)
        return re.search(r"composite_attributes = (\{.*?\}), ", text)[1]

    assert attributes(lax, jit, xnp) == attributes(jax.lax, jax.jit, jax.numpy)


def test_attributes_reach_the_function():
    f = functools.partial(lax.composite, name="my.sum")(lambda x, /, *, axis: x.sum(axis))
    x = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(f(x, axis=0), [4, 6])
    np.testing.assert_array_equal(f(x, axis=1), [3, 7])
    np.testing.assert_array_equal(f(x, axis=None), 10)


def test_captured_values_are_operands():
    big = xnp.arange(1000.0)

    def f(x):
        return lax.composite(lambda v: v * x + big, name="my.f")(x)

    np.testing.assert_array_equal(jit(f)(3.0), 9 + np.arange(1000.0))
    assert grad(lambda x: jit(f)(x).sum())(3.0) == 6000
    assert "dense" not in jit(f).lower(3.0).as_text()


def test_effects_of_a_composite_happen_in_order():
    seen = []

    def show(x):
        io_callback(lambda v: seen.append(float(v)), None, x, ordered=True)
        return x

    jit(lambda x: lax.composite(show, name="my.show")(x) + show(x + 1))(1.0).block_until_ready()
    assert seen == [1.0, 2.0]


def test_a_composite_is_exported_with_its_name():
    kept = export.export(jit(tangent))(X)
    assert 'composite "my.tangent"' in kept.mlir_module()
    read = export.deserialize(kept.serialize())
    np.testing.assert_allclose(read.call(X), ratio(X), rtol=1e-6)  # of two compilations


def test_keys_go_through_a_composite():
    key = random.key(0)
    split = lax.composite(lambda k: random.split(k)[0], name="my.split")
    expected = random.key_data(random.split(key)[0])
    np.testing.assert_array_equal(random.key_data(split(key)), expected)
    np.testing.assert_array_equal(random.key_data(jit(split)(key)), expected)


def test_wrong_composites_are_refused():
    named = lax.composite(lambda x, *, a: x, name="my.f")
    with pytest.raises(TypeError, match=r"composite\(my.f\): an attribute is of a type") as error:
        named(X, a=object())
    assert "got       an object" in str(error.value)
    with pytest.raises(TypeError, match=r"composite\(my.f\): the attribute a is traced.") as error:
        jit(lambda x: named(X, a=x))(1.0)
    assert "hint      pass it by position" in str(error.value)
    with pytest.raises(TypeError, match="composite: expected a function"):
        lax.composite(3, name="my.f")
    plain = lax.composite(lambda x: x + 1, name="plain")
    np.testing.assert_array_equal(plain(X), X + 1)
    with pytest.raises(ValueError, match="composite: compilers know no operation") as error:
        jit(plain)(X)
    assert "got       'plain'" in str(error.value) and "'my.tangent'" in str(error.value)


# --- values that must be computed ----------------------------------------------------------------


@pytest.mark.parametrize("is_kept", [False, True])
def test_what_goes_down_a_sink_stays_in_the_program(is_kept):
    def f(x):
        lax.dce_sink({"a": lax.sin(x), "b": [lax.cos(x)]}, prevent_mlir_dce=is_kept)
        return x * x

    lowered = jit(f).lower(2.0)
    assert "stablehlo.sine" in lowered.as_text() and "stablehlo.cosine" in lowered.as_text()
    assert ("sine" in lowered.compile().as_text()) == is_kept
    assert f(2.0) == jit(f)(2.0) == 4
    assert grad(f)(2.0) == grad(jit(f))(2.0) == jit(grad(f))(2.0) == 4
    assert "stablehlo.sine" in jit(grad(f)).lower(2.0).as_text()
    np.testing.assert_array_equal(jit(vmap(f))(X), X * X)
    assert lax.scan(lambda c, x: (f(c), x), 2.0, X)[0] == 256


def test_without_a_sink_it_is_left_out():
    text = jit(lambda x: (lax.sin(x), x * x)[1]).lower(2.0).as_text()
    assert "sine" not in text


# --- values as tracers ---------------------------------------------------------------------------


def test_stage_gives_a_value_of_the_program():
    seen = []
    jaxpr = make_jaxpr(lambda: seen.append(lax.stage(1.0)) or seen[0] + 1)()
    assert isinstance(seen[0], Tracer) and len(jaxpr.eqns) == 2
    assert not isinstance(lax.stage(1.0), Tracer)
    assert lax.stage(1.0).weak_type and lax.stage(np.int8(1)).dtype == np.int8
    assert grad(lambda x: lax.stage(x) * x)(3.0) == 6
    np.testing.assert_array_equal(vmap(lax.stage)(X), X)
    with pytest.raises(TypeError, match="stage"):
        lax.stage("text")


MARK = "mhlo.frontend_attributes = "


def marks(text, operation):
    """Return the metadata of the operations of a name in a text."""
    lines = [line for line in text.splitlines() if f"stablehlo.{operation}" in line]
    return [line.partition(MARK)[2].partition("}")[0].lstrip("{") for line in lines]


def in_loop(x):
    with set_xla_metadata(a="b"):
        return lax.while_loop(lambda c: c < 10, lambda c: c + xnp.sin(c) + 2, x)


def in_branches(x):
    def other(v):
        with set_xla_metadata(a=None):
            return xnp.cos(v)

    with set_xla_metadata(a="b"):
        return lax.cond(x < 0, xnp.sin, other, x)


def in_functions(x):
    with set_xla_metadata(a="b", n=3):
        return jit(set_xla_metadata(lambda v: xnp.sin(v), n=True))(x)


@pytest.mark.parametrize(("f", "operation", "expected"), [
    (set_xla_metadata(xnp.sin, a="b"), "sine", 'a = "b"'),
    (set_xla_metadata(xnp.sin, quoted='"b"\n'), "sine", r'quoted = "\22b\22\0A"'),
    (set_xla_metadata(xnp.sin, **{"k ä": "ü\b"}), "sine", r'"k \C3\A4" = "\C3\BC\08"'),
    (in_loop, "sine", 'a = "b"'), (in_loop, "compare", 'a = "b"'),
    (in_branches, "sine", 'a = "b"'), (in_branches, "cosine", ""),
    (in_functions, "sine", 'a = "b", n = "true"'),
    (grad(set_xla_metadata(xnp.sin, a="b")), "cosine", 'a = "b"'),
    (lambda x: vmap(set_xla_metadata(xnp.sin, a="b"))(xnp.ones(3) * x), "sine", 'a = "b"'),
    (lambda x: set_xla_metadata(xnp.sin, a="b")(x) * 2, "multiply", ""),
])  # fmt: skip
def test_operations_have_the_metadata_of_where_they_were_traced(f, operation, expected):
    compiled = jit(f)
    text = compiled.lower(1.0).as_text()
    assert set(marks(text, operation)) == {expected}
    np.testing.assert_allclose(compiled(1.0), f(1.0), rtol=1e-6)  # XLA takes it


def test_another_metadata_makes_another_program():
    f = jit(lambda x: xnp.sin(x))
    texts = []
    for keys in ({"a": "b"}, {}, {"c": "d"}):
        with set_xla_metadata(**keys):
            texts.append(f.lower(1.0).as_text())
    assert [marks(text, "sine") for text in texts] == [['a = "b"'], [""], ['c = "d"']]
    assert 'frontend_attributes={a="b"}' in jit(in_loop).lower(1.0).compile().as_text()


def of_values(lib, set_metadata, x):
    with set_metadata(c="d"):
        inside = set_metadata(lib.numpy.tan(x), c="e", a=True)
    both = set_metadata({"sin": lib.numpy.sin(x), "exp": [lib.numpy.exp(x)]}, a="b", n=3)
    return inside + both["sin"] + both["exp"][0] + lib.numpy.sin(2 * x) + set_metadata(x, a="b")


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap", "jvp"])
def test_the_operation_that_made_a_value_has_its_metadata_as_in_the_oracle(transform):
    jax = pytest.importorskip("jax", minversion="0.12")
    from jax.experimental import xla_metadata

    def text_of(lib, set_metadata):
        def f(x):
            return of_values(lib, set_metadata, x)

        args = (np.float32(0.5),)
        if transform == "grad":
            f = lib.value_and_grad(f)
        elif transform == "vmap":
            f, args = lib.vmap(f), (np.float32([0.5, 1.0]),)
        elif transform == "jvp":
            g = f
            f = lambda x: lib.jvp(g, (x,), (x,))  # noqa: E731
        return lib.jit(f).lower(*args).as_text()

    own = text_of(xstack, set_xla_metadata)
    other = text_of(jax, xla_metadata.set_xla_metadata)
    for operation in ("tan", "sine", "exponential"):
        keys = [{*m.split(", ")} for m in marks(own, operation)]
        assert keys == [{*m.split(", ")} for m in marks(other, operation)]


def test_metadata_of_a_value_changes_no_result():
    def f(x):
        return of_values(xstack, set_xla_metadata, x)

    np.testing.assert_allclose(jit(f)(0.5), f(0.5), rtol=1e-6)  # exp of XLA and of NumPy
    with pytest.raises(TypeError, match="a str is not an array"):
        set_xla_metadata("x", a="b")


def test_a_constraint_over_one_device_says_nothing_to_a_program_of_several():
    one, two = (xstack.make_mesh((n,), ("x",)) for n in (1, 2))
    lies = [xstack.NamedSharding(m, xstack.P("x")) for m in (one, two)]
    exported = export.export(jit(lambda x: lax.with_sharding_constraint(x, lies[0]) * 2))(X[:2])
    x = xstack.device_put(X[:2], lies[1])
    np.testing.assert_array_equal(exported.call(x), X[:2] * 2)


@pytest.mark.parametrize("wrapped", [lambda f: f, jit])
@pytest.mark.parametrize(
    ("of_backward", "counts"), [("same", (True, False)), ("drop", (False, False)),
                                ({"tag": "back"}, (False, True))],
)  # fmt: skip
def test_the_backward_pass_of_a_function_has_the_metadata_that_is_asked_for_it(
    wrapped, of_backward, counts
):
    marked = xla_metadata_call2({"tag": "out"}, ad_metadata=of_backward)
    text = jit(grad(marked(wrapped(lambda x: lax.sin(x) * x)))).lower(X[0]).as_text()
    lines = text.splitlines()
    forward = [line for line in lines if "stablehlo.sine" in line or "stablehlo.cosine" in line]
    backward = [line for line in lines if "stablehlo.multiply" in line]
    assert all('tag = "out"' in line for line in forward) and len(forward) == len(backward) - 1 == 2
    for line in backward:
        assert ('tag = "out"' in line, 'tag = "back"' in line) == counts


def test_marks_for_fusion_and_what_is_no_metadata():
    assert 'MUST_FUSE = "1"' in jit(must_fuse_call("1")(ratio)).lower(X).as_text()
    assert 'FUSE_LIMIT = "true"' in jit(fuse_limit()(ratio)).lower(X).as_text()
    with pytest.raises(ValueError, match="xla_metadata_call2: this says nothing of the backward"):
        xla_metadata_call2(ratio, {"tag": 1}, ad_metadata="keep")


def test_marked_updates_of_many_small_arrays_keep_their_marks():
    xs = [xnp.ones((n,)) for n in range(2, 9)]
    with set_xla_metadata(a="b"):
        marked = jit(lambda xs: [0.5 * x for x in xs]).lower(xs).as_text()
    assert marked.count('a = "b"') >= len(xs)
    assert "xla_cpu_small_call" not in marked
    assert "xla_cpu_small_call" in jit(lambda xs: [0.5 * x for x in xs]).lower(xs).as_text()
