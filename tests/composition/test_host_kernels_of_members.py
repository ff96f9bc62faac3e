"""Members of `pmap` and `shard_map` call NumPy between collectives."""

import os
import subprocess
import sys
import textwrap


def test_virtual_devices_wait_for_each_other_between_kernels():
    code = """
        import numpy as np, xnp, xpar
        from xjit import jit
        from xpar import PartitionSpec as P
        def f(v):
            for _ in range(4):
                v = xnp.sort(v)
                v = v + xpar.pmean(v[0], "i") * 0
            return v
        x = np.random.default_rng(0).normal(size=(8, 3000)).astype("f4")
        for _ in range(5):
            np.testing.assert_array_equal(xpar.pmap(f, axis_name="i")(x), np.sort(x, 1))
        mesh = xpar.make_mesh((8,), ("i",))
        members = lambda v: f(v[0])[None]
        g = jit(xpar.shard_map(members, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
        assert "xstack_host_kernel" in g.lower(x).as_text()
        np.testing.assert_array_equal(g(x), np.sort(x, 1))
        print("over")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], timeout=120, text=True, check=False,
        env={**os.environ, "XSTACK_NUM_CPU_DEVICES": "8"}, capture_output=True,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "over\n"), ended.stderr
