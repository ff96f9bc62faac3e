"""What asks for more memory than there is says so, from every package.

400 TB are more than any machine's address space, so nothing is ever filled.
"""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from packages.xjit.tests.new_process import run_in_new_process

ASKED = r"out of memory: 400,000,000,000,000 bytes \(364 TiB\) were requested\."


def test_random_numbers_that_do_not_fit_name_the_sampler():
    with pytest.raises(xstack.errors.OutOfMemoryError, match=f"^random_normal: {ASKED}"):
        float(xstack.random.normal(xstack.random.key(0), (10**14,))[0])


def test_the_result_of_a_pmap_that_did_not_fit_raises_wherever_it_is_used():
    program = """
    import numpy as np
    import xstack
    import xstack.numpy as xnp
    from xjit.dispatch import program

    program._MOST_UNAWAITED = 1 << 62
    uses = [
        np.asarray, repr, lambda r: float(r[0, 0, 0]), lambda r: r.block_until_ready(),
        lambda r: xstack.jit(lambda x: x[0, 0] + 1)(r).block_until_ready(),
        lambda r: r.sum().item(), xstack.device_get,
        lambda r: np.asarray(xstack.pmap(lambda x: x.sum())(r)),
        lambda r: np.asarray(xstack.pmap(lambda x: x + 1, donate_argnums=0)(r)),
        lambda r: np.asarray(xstack.pmap(lambda x: xstack.lax.psum(x, 'i'), axis_name='i')(r)),
        lambda r: xstack.device_put(r, xstack.devices()[1]).block_until_ready(),
        lambda r: r.__dlpack__(), lambda r: r.tolist(),
    ]
    for number, use in enumerate(uses):
        r = xstack.pmap(lambda x: x @ x.T)(xnp.ones((2, 10**7, 1)))
        try:
            use(r)
        except xstack.errors.OutOfMemoryError as error:
            assert "400,000,000,000,000 bytes" in str(error), error
        else:
            raise AssertionError(number)
    print("alive")
    """
    assert run_in_new_process(program, XSTACK_NUM_CPU_DEVICES="2") == "alive"


@pytest.mark.parametrize(
    ("operation", "ask"),
    [
        ("mul", lambda: xnp.ones((10**7, 1)) * xnp.ones((1, 10**7))),
        ("sin", lambda: xnp.sin(xnp.broadcast_to(xnp.ones(()), (10**7, 10**7)))),
        ("iota", lambda: xnp.arange(10**14, dtype="int64")),
        ("iota of 2**38", lambda: xnp.arange(2**38, dtype="int64")),
        ("sort", lambda: xnp.sort(xnp.broadcast_to(xnp.ones(()), (10**7, 10**7)))),
        ("gradient", lambda: xstack.grad(lambda x: (x * x.T).sum())(xnp.ones((10**7, 1)))),
        ("mapped", lambda: xstack.vmap(lambda a: a * xnp.ones(10**7))(xnp.ones(10**7))),
        ("cumsum", lambda: xnp.cumsum(xnp.broadcast_to(xnp.ones(()), (10**7, 10**7)))),
        ("copy", lambda: xnp.array(np.broadcast_to(np.float32(1), (10**7, 10**7)))),
        ("update", lambda: xnp.broadcast_to(xnp.ones(()), (10**7, 10**7)).at[0, 0].set(2.0)),
        ("index", lambda: xnp.broadcast_to(xnp.ones(()), (10**7, 10**7))[xnp.arange(10**7)]),
        ("pad", lambda: xnp.pad(xnp.ones(3), (0, 10**14))),
        ("random", lambda: xstack.random.uniform(xstack.random.key(0), (10**14,))),
        ("concatenate", lambda: xnp.concatenate(
            [xnp.broadcast_to(xnp.ones(()), (10**14,)), xnp.ones(1)])),
        ("eye", lambda: xnp.eye(10**7)),
        ("numpy", lambda: np.array(xnp.broadcast_to(xnp.ones(()), (10**7, 10**7)))),
        ("astype", lambda: xnp.broadcast_to(xnp.ones(()), (10**7, 10**7)).astype("int32")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_every_way_to_ask_for_too_much_raises_one_class(operation, ask):
    with pytest.raises(xstack.errors.OutOfMemoryError, match=r"(400,000,000,|requested)") as caught:
        np.asarray(ask())
    assert "out of memory: " in str(caught.value)
