"""What every primitive becomes in programs for GPUs, on its samples, and how exact products are.

A cell is a sample of a primitive, or a function that makes products, and a platform. That a text is
right is `test_programs_for_gpus`'s subject; here each is written, and what differs from the text
for a CPU is a table, so that none differs by chance.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from tests.nets import gpu_routines
from tests.nets.cells import drawn
from tests.nets.gpu_programs import lowered
from xjit.debug.explanations import _products, explain
from xjit.lowering.compile import equations_of
from xjit.lowering.modules import lower
from xjit.lowering.stablehlo_text import _NOT_INLINED
from xjit.testing import _program_of_samples
from xnp.testing import samples
from xprim import Undefined, get_primitive
from xstack import lax
from xstack.doctor import facts

GPUS = ("cuda", "rocm")

WRITTEN_OTHERWISE = {
    "argmax": "one pass over pairs, where a CPU takes two", "argmin": "likewise",
    "cholesky": "cuSOLVER", "cholesky_update": "a kernel of the plugin's",
    "eig": "LAPACK, by the plugin",
    "eigh": "cuSOLVER", "geqrf": "cuSOLVER", "householder_product": "cuSOLVER", "lu": "cuSOLVER",
    "lu_pivots_to_permutation": "a kernel of the plugin's", "ormqr": "cuSOLVER", "qr": "cuSOLVER",
    "svd": "cuSOLVER", "tridiagonal": "cuSOLVER", "tridiagonal_solve": "cuSPARSE",
    "triangular_solve": "XLA has cuBLAS do it", "hessenberg": "the host", "schur": "the host",
    "det": "lu", "pinv": "svd", "solve": "lu", "eigh_tridiagonal": "eigh",
    "cumlogsumexp": "windows, where a CPU loops over blocks",
    "dynamic_update_slice": "a CPU needs a barrier",
    "dot_general": "full float32 is asked for; products of narrow floats are native",
    "conv_general_dilated": "likewise; integers by float64", "cofactors": "svd",
    "in_memory": "a CPU has one memory",
    "atan2": "a CPU takes denormal operands for zero",
    "erfc": "what a CPU's exponential rounds away is put back",
    "gather": "a CPU gets the NaN that fills as an argument",
    "select_and_scatter_add": "slices, where windows are tiles, on a CPU",
}  # fmt: skip
WRITTEN_OTHERWISE_OF_COMPLEX = WRITTEN_OTHERWISE | dict.fromkeys(
    ("log", "log1p", "log2", "logaddexp", "logaddexp2", "pow", "xlog1py", "xlogy"),
    "a CPU takes parts that are denormal numbers for zero",
)


def text_of(primitive, sample, platform):
    return lower(_program_of_samples(primitive, [sample]), platform=platform).body


def cells():
    rows = []
    for name, table in sorted(samples.TABLE.items()):
        seen = set()
        for sample in table:
            key = (tuple([(x.shape, x.dtype.name) for x in sample.arrays()]), str(sample.params))
            if key not in seen:
                seen.add(key)
                rows.append((name, sample))
    return rows


@pytest.mark.fuzz
@pytest.mark.parametrize("platform", GPUS)
def test_each_sample_is_written_for_gpus_and_what_differs_is_known(platform):
    for name, sample in drawn(cells(), 120):
        primitive = get_primitive(name)
        if type(primitive.rules.get("stablehlo")) is Undefined:
            continue
        text = text_of(primitive, sample, platform)
        is_complex = any(np.iscomplexobj(x) for x in sample.operands)
        is_guarded = "f8E5M2>" in text  # GPUs make its largest number of what is above all
        if not is_guarded and name not in (
            WRITTEN_OTHERWISE_OF_COMPLEX if is_complex else WRITTEN_OTHERWISE
        ):
            on_cpu = text_of(primitive, sample, "cpu").replace(_NOT_INLINED, "")
            assert text == on_cpu, name
        assert "lapack" not in text, name


@pytest.mark.fuzz
def test_operands_of_a_reduction_have_layouts_that_xla_can_compare():
    # elements of less than a byte have layouts of their own, `reduce_decomposer.cc` refuses others
    for name, sample in drawn([(n, s) for n, s in cells() if n in ("argmax", "argmin")], 20):
        text = text_of(get_primitive(name), sample, "cuda")
        for line in re.findall(r"\}\) \{dimensions = .*", text):
            types = re.findall(r"tensor<(?:\d+x)*([uisf]\w+)>", line)
            assert not {"i4", "ui4", "i2", "ui2", "f4E2M1FN"} & set(types), (name, line)


def test_the_size_of_the_net_of_primitives_for_gpus():
    names = {name for name, _ in cells()}
    print(f"\n{len(names)} primitives, {len(cells())} samples of other types or params")
    assert len(cells()) > 1000


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize(
    "dtype", ["int4", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
)
def test_convolutions_of_integers_are_exact_where_cudnn_has_none(dtype):
    with xstack.enable_x64(True):
        kind, info = xnp.dtype(dtype), xnp.iinfo(dtype)
        rng = np.random.default_rng(0)
        drawn_as = np.uint64 if dtype == "uint64" else np.int64
        image, kernel = [
            rng.integers(int(info.min), int(info.max), shape, drawn_as, endpoint=True).astype(kind)
            for shape in ((2, 3, 6, 5), (4, 3, 3, 2))
        ]  # fmt: skip

        def fun(image, kernel):
            return lax.conv_general_dilated(image, kernel, (1, 2), "SAME", rhs_dilation=(2, 1))

        text = lowered(fun, [image, kernel], "cuda").as_text()
        assert not re.search(r"convolution.*xu?i\d+>\) ->", text)
        found = gpu_routines.run(fun, [image, kernel])
        np.testing.assert_array_equal(found, xstack.jit(fun)(image, kernel))


def test_narrow_integers_with_a_wide_result_take_one_convolution():
    image, kernel = np.full((1, 2, 9), -128, np.int8), np.full((1, 2, 9), -128, np.int8)

    def fun(image, kernel):
        return lax.conv_general_dilated(image, kernel, (1,), "VALID",
                                        preferred_element_type=np.int32)  # fmt: skip

    assert lowered(fun, [image, kernel], "cuda").as_text().count("stablehlo.convolution") == 1
    assert gpu_routines.run(fun, [image, kernel]).item() == 18 * 128**2


# ---------------------------------------------------------------------------------------- precision

X = np.ones((4, 4), np.float32)
IMAGE, KERNEL = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 2, 2), np.float32)
LONG = np.ones(200, np.float32)
HEADS = np.ones((1, 4, 2, 3), np.float32)

PRODUCTS = {
    "matmul": lambda: xnp.matmul(X, X), "operator": lambda: xnp.asarray(X) @ X,
    "dot": lambda: xnp.dot(X, X), "vdot": lambda: xnp.vdot(X, X), "inner": lambda: xnp.inner(X, X),
    "tensordot": lambda: xnp.tensordot(X, X), "einsum": lambda: xnp.einsum("ij,jk,kl->il", X, X, X),
    "vecdot": lambda: xnp.vecdot(X, X), "matvec": lambda: xnp.matvec(X, X[0]),
    "complex": lambda: xnp.matmul(X * 1j, X), "lax.dot": lambda: lax.dot(X, X),
    "batch_matmul": lambda: lax.batch_matmul(X[None], X[None]),
    "half and single": lambda: xnp.matmul(X.astype(np.float16), X),
    "conv": lambda: lax.conv(IMAGE, KERNEL, (1, 1), "SAME"),
    "conv_transpose": lambda: lax.conv_transpose(
        np.ones((1, 5, 2), np.float32), np.ones((2, 2, 3), np.float32), (1,), "SAME"),
    "convolve": lambda: xnp.convolve(LONG, LONG), "correlate": lambda: xnp.correlate(LONG, LONG),
    "attention": lambda: xstack.nn.dot_product_attention(HEADS, HEADS, HEADS),
    "ragged_dot": lambda: lax.ragged_dot(X, X[None], np.array([4], np.int32)),
    "gradient of matmul": lambda: xstack.grad(lambda x: (x @ X).sum())(X),
    "gradient of conv": lambda: xstack.grad(
        lambda k: lax.conv(IMAGE, k, (1, 1), "SAME").sum())(KERNEL),
    "gradient of attention": lambda: xstack.grad(
        lambda q: xstack.nn.dot_product_attention(q, HEADS, HEADS).sum())(HEADS),
    "expm": lambda: xstack.scipy.linalg.expm(X),
    "gradient of cholesky": lambda: xstack.grad(lambda x: xnp.linalg.cholesky(x).sum())(X),
    "matrix_power": lambda: xnp.linalg.matrix_power(X, 3), "cov": lambda: xnp.cov(X),
}  # fmt: skip
_PRODUCT = re.compile(r"stablehlo\.(?:dot_general|convolution)")


def products(fun, platform):
    """Return the lines of the products of 32 bits in a program."""
    text = xstack.jit(fun).trace().lower(lowering_platforms=(platform,)).as_text()
    lines = [line for line in text.splitlines() if _PRODUCT.search(line)]
    return [line for line in lines if re.search(r"f32>+(?:, |\) ->)", line)]


OF_LIBRARIES = ("expm", "gradient of cholesky")  # no TPU has them


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_32_bits_are_full_on_gpus_where_nobody_asked_for_less(name):
    for platform in ("cuda",) if name in OF_LIBRARIES else ("cuda", "tpu"):
        found = products(lambda: PRODUCTS[name](), platform)
        assert found and all(line.count("precision HIGHEST") == 2 for line in found), found


def test_less_is_what_a_call_an_option_or_a_scope_asks_for():
    def full(x):
        return x @ x

    def less(x):
        return xnp.matmul(x, x, precision="tensorfloat32")

    text = text_for_cuda(full)
    assert "precision HIGHEST" in text
    assert "precision HIGH>" in text_for_cuda(less)
    assert "precision DEFAULT" in text_for_cuda(lambda x: lax.dot(x, x, precision="default"))
    with xstack.default_matmul_precision("tensorfloat32"):
        assert "precision HIGH>" in text_for_cuda(full)
    assert "tf32" in text_for_cuda(lambda x: lax.dot(x, x, precision="TF32_TF32_F32"))


def text_for_cuda(fun):
    return xstack.jit(fun).trace(X).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32"])
def test_products_of_other_dtypes_say_nothing(dtype):
    x = xnp.ones((4, 4), dtype)
    text = xstack.jit(lambda: x @ x).trace().lower(lowering_platforms=("cuda",)).as_text()
    assert "dot_general" in text and "precision_config" not in text


def test_programs_for_the_cpu_say_nothing_of_precision():
    assert "precision_config" not in xstack.jit(lambda x: x @ x).lower(X).as_text()


def test_explain_lists_the_products_with_the_precision_of_each():
    def fun(x):
        y = xnp.matmul(x, x, precision="tensorfloat32")
        return xnp.matmul(y, x) @ x.astype(xnp.bfloat16).astype(np.float32)

    found = explain(fun, X)
    assert sum(p.count for p in found.products) == 3
    assert {p.precision for p in found.products} == {"float32"}  # this is a CPU
    assert "product: dot_general of f32[4,4] and f32[4,4] in float32, at test_prim" in str(found)
    eqns = list(equations_of(xstack.jit(fun).trace(X).jaxpr.jaxpr))
    on_gpu = [(p.precision, p.count) for p in _products(eqns, "cuda")]
    assert on_gpu == [("TensorFloat-32", 1), ("float32", 2)]


def test_explain_names_algorithms_and_other_dtypes():
    def fun(x):
        return (lax.dot(x, x, precision="TF32_TF32_F32"), lax.dot(x, x, precision="default"),
                lax.dot(x.astype(np.float16), x.astype(np.float16)))  # fmt: skip

    eqns = list(equations_of(xstack.jit(fun).trace(X).jaxpr.jaxpr))
    assert [p.precision for p in _products(eqns, "cuda")] == [
        "TF32_TF32_F32", "TensorFloat-32", "float16",
    ]  # fmt: skip


def test_doctor_tells_how_exact_products_are():
    assert "products of float32:" in xstack.print_environment_info(return_string=True)
    with xstack.default_matmul_precision("tensorfloat32"):
        assert "tensorfloat32" in dict(facts())["products of float32"]
