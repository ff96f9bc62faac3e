"""Devices: names, counts, the number of virtual CPU devices, the choice of a backend."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import xjit as xd
from xjit.jaxlib_gateway import clients
from xprim import config, runtime_options

pytestmark = pytest.mark.of_the_cpu


def run_in_new_process(program, **environment):
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("XSTACK_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=variables | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode:
        return f"exit code {done.returncode}\n{done.stderr}"
    return done.stdout.strip()


def count_in_new_process(**environment):
    return run_in_new_process(
        "import xjit as xd; print(xd.device_count('cpu'), xd.local_device_count('cpu'))",
        **environment,
    )


@pytest.fixture
def fresh_choice(monkeypatch):
    """Let a test choose platforms without a trace afterwards."""
    monkeypatch.delenv("XSTACK_PLATFORMS", raising=False)
    clients.platforms.cache_clear()
    clients.find_gpu_plugin.cache_clear()
    yield monkeypatch
    clients.platforms.cache_clear()
    clients.find_gpu_plugin.cache_clear()


def test_devices_are_listed_by_their_ids():
    listed = xd.devices("cpu")
    assert listed == xd.local_devices(backend="cpu")
    assert [device.id for device in listed] == list(range(len(listed)))
    assert all(isinstance(device, xd.Device) and device.platform == "cpu" for device in listed)
    assert xd.default_device("cpu") == listed[0]
    assert xd.device_count("cpu") == xd.local_device_count("cpu") == len(listed)


def test_one_process_is_number_zero_of_one():
    assert xd.process_index("cpu") == 0
    assert xd.process_count("cpu") == 1
    assert xd.process_indices("cpu") == [0]
    assert xd.local_devices(0, "cpu") == xd.local_devices(host_id=0, backend="cpu")
    with pytest.raises(ValueError, match="unknown process"):
        xd.local_devices(3, "cpu")
    with pytest.raises(ValueError, match="one argument"):
        xd.local_devices(0, "cpu", host_id=0)


def test_an_unknown_platform_is_named_in_the_error():
    with pytest.raises(RuntimeError, match="'abacus' is not the name of a platform"):
        xd.devices("abacus")


def test_the_environment_sets_the_number_of_cpu_devices():
    assert count_in_new_process() == "1 1"
    assert count_in_new_process(XSTACK_NUM_CPU_DEVICES="3") == "3 3"
    assert count_in_new_process(XLA_FLAGS="--xla_force_host_platform_device_count=2") == "2 2"
    for count in ("many", "99999999999"):
        assert "positive integer" in count_in_new_process(XSTACK_NUM_CPU_DEVICES=count)


def test_the_number_of_cpu_devices_is_set_before_the_first_use():
    program = """
        import xjit as xd
        xd.set_num_cpu_devices(4)
        print(xd.device_count("cpu"))
        xd.set_num_cpu_devices(4)
        try:
            xd.set_num_cpu_devices(5)
        except RuntimeError as error:
            print(error)
    """
    printed = run_in_new_process(program, XSTACK_NUM_CPU_DEVICES="2")
    assert printed.splitlines()[:3] == [
        "4",
        "set_num_cpu_devices: the CPU client is already in use.",
        "  got       5 devices, after a start with 4",
    ]


@pytest.mark.parametrize("count", [0, -1, 2.0, True, "8", 4097, 99999999999])
def test_the_number_of_cpu_devices_is_a_positive_integer(count):
    with pytest.raises(ValueError, match="must be a positive integer"):
        xd.set_num_cpu_devices(count)


def test_a_gpu_without_its_plugin_says_what_to_install(fresh_choice, tmp_path):
    fresh_choice.setattr(clients, "_folders_of", lambda name: [tmp_path])
    for name in ("gpu", "cuda"):
        with pytest.raises(RuntimeError, match="jax-cuda13-plugin"):
            xd.devices(name)
    assert clients.platforms() == ("cpu",)
    assert xd.default_backend() == "cpu"


def test_the_newest_plugin_is_found_by_its_library(fresh_choice, tmp_path):
    for cuda in ("12", "13"):
        folder = tmp_path / f"xla_cuda{cuda}"
        folder.mkdir()
        (folder / "xla_cuda_plugin.so").touch()
    fresh_choice.setattr(clients, "_folders_of", lambda name: [tmp_path])
    found = clients.find_gpu_plugin()
    assert found == (tmp_path / "xla_cuda13" / "xla_cuda_plugin.so", "jax_cuda13_plugin")
    assert clients.platforms() == ("gpu", "cpu")


def test_a_gpu_that_cannot_start_gives_way_to_the_cpu_with_one_warning(monkeypatch):
    def broken(_):
        raise RuntimeError("no driver")

    monkeypatch.delenv("XSTACK_PLATFORMS", raising=False)
    monkeypatch.setattr(clients, "_failure_by_platform", {})
    monkeypatch.setattr(clients, "platforms", lambda: ("gpu", "cpu"))
    monkeypatch.setattr(clients, "make_gpu_client", broken)
    with pytest.warns(UserWarning, match="the GPU cannot be used: no driver"):
        assert clients.default_backend() == "cpu"
    assert clients.default_backend() == "cpu"


def test_options_choose_platforms_and_devices_until_they_are_in_use():
    program = """if True:
        import xjit
        from xprim import config
        config.update("jax_platforms", "cpu")
        config.update("jax_platform_name", "cpu")
        config.update("jax_num_cpu_devices", 3)
        print(config.read("jax_num_cpu_devices"), xjit.device_count())
        config.update("jax_num_cpu_devices", 3)  # as it is
        for name, value in (("num_cpu_devices", 4), ("platforms", "gpu")):
            try:
                config.update(name, value)
            except RuntimeError as error:
                print(str(error).splitlines()[0])
    """
    lines = run_in_new_process(program, XSTACK_NUM_CPU_DEVICES="2").splitlines()
    assert lines == [
        "3 3",
        "config.update: num_cpu_devices is set too late: the CPU is in use.",
        "config.update: platforms is set too late: the platforms have been looked up.",
    ]


@pytest.fixture
def gpu_options(monkeypatch):
    """Let a test choose what a GPU's client is made with."""
    for name in ("MEM_FRACTION", "PREALLOCATE", "ALLOCATOR"):
        monkeypatch.delenv(f"XLA_PYTHON_CLIENT_{name}", raising=False)
    monkeypatch.delenv("XLA_CLIENT_MEM_FRACTION", raising=False)
    before = {option: option.value for option in clients._GPU_OPTIONS}
    yield monkeypatch
    for option, value in before.items():
        option.reopen()
        option.set(value)


def test_memory_of_a_gpu_grows_on_demand(gpu_options):
    options = clients.gpu_client_options({})
    assert options["preallocate"] is False and options["allocator"] == "default"
    assert "memory_fraction" not in options and "visible_devices" not in options


def test_options_and_jaxs_environment_variables_say_how_memory_is_taken(gpu_options):
    gpu_options.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    gpu_options.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".9")
    gpu_options.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    of_environment = clients.gpu_client_options({})
    assert [of_environment[k] for k in ("preallocate", "memory_fraction", "allocator")] == [
        True, 0.9, "platform"
    ]  # fmt: skip
    config.update("gpu_preallocate", False)
    config.update("gpu_memory_fraction", 0.5)
    config.update("gpu_allocator", "cuda_async")
    config.update("jax_cuda_visible_devices", "2, 0")
    options = clients.gpu_client_options({})
    assert [options[k] for k in ("preallocate", "memory_fraction", "allocator")] == [
        False, 0.5, "cuda_async"
    ]  # fmt: skip
    assert options["visible_devices"] == [2, 0]


def test_processes_have_a_number_and_devices_of_their_own(gpu_options):
    config.update("cuda_visible_devices", "0,1")
    processes = {"node_id": 1, "num_nodes": 4, "visible_devices": [3], "distributed_client": None}
    options = clients.gpu_client_options(processes)
    assert (options["node_id"], options["num_nodes"], options["visible_devices"]) == (1, 4, [3])
    processes["visible_devices"] = ()
    assert clients.gpu_client_options(processes)["visible_devices"] == [0, 1]


def test_a_variable_that_says_nothing_is_refused(gpu_options):
    gpu_options.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "mine")
    with pytest.raises(ValueError, match="environment variable says nothing that a GPU knows"):
        clients.gpu_client_options({})


@pytest.mark.parametrize(("name", "value"), [
    ("gpu_memory_fraction", 0), ("gpu_memory_fraction", True), ("gpu_preallocate", "yes"),
    ("gpu_allocator", "mine"), ("cuda_visible_devices", "a,b"), ("cuda_visible_devices", [0]),
])  # fmt: skip
def test_options_of_a_gpu_have_values_that_it_knows(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        config.update(name, value)


def test_a_gpu_that_is_in_use_keeps_its_options(gpu_options, tmp_path):
    made = []
    plugin = clients.GpuPlugin(tmp_path, "plugin")
    gpu_options.setattr(clients, "find_gpu_plugin", lambda: plugin)
    for name in ("pjrt_plugin_loaded", "pjrt_plugin_initialized"):
        gpu_options.setattr(clients.xla_client, name, lambda _: True)
    gpu_options.setattr(clients.xla_client, "make_c_api_client",
                        lambda *given: made.append(given) or "client")  # fmt: skip
    config.update("gpu_memory_fraction", 0.25)
    assert clients.make_gpu_client({}) == "client"
    ((name, options),) = made
    assert name == "cuda" and options["memory_fraction"] == 0.25
    with pytest.raises(RuntimeError, match="gpu_memory_fraction is set too late: a GPU is in use"):
        config.update("gpu_memory_fraction", 0.5)
    config.update("gpu_preallocate", False)  # as it is


def test_devices_have_no_scope():
    with pytest.raises(TypeError, match="devices are those of the whole process"):
        runtime_options.num_cpu_devices(2)


def test_the_environment_chooses_the_platforms():
    program = "import xjit.jaxlib_gateway as g; print(g.platforms(), g.default_backend())"
    assert run_in_new_process(program, XSTACK_PLATFORMS="cpu") == "('cpu',) cpu"
    chosen = run_in_new_process(program, XSTACK_PLATFORMS="cuda, cpu")
    assert chosen == "('gpu', 'cpu') gpu"
    assert "not the name of a platform" in run_in_new_process(program, XSTACK_PLATFORMS="tpu9")


_IN_THREADS = """
    import hashlib, os, sys
    import numpy as np
    import xnp
    from xjit import jit
    from xprim import config
    config.update("num_threads", {count})
    x = np.random.default_rng(0).standard_normal((300, 700)).astype("f4")
    def f(x):
        y = x @ x.T
        return x.sum(), y, xnp.tanh(y).sum(0), xnp.sort(x, 0), xnp.linalg.cholesky(
            y + 900 * xnp.eye(300))
    total, *results = jit(f)(x)
    digest = hashlib.sha256(b"".join(np.asarray(y).tobytes() for y in results)).hexdigest()
    names = [open(f"/proc/self/task/{{t}}/comm").read() for t in os.listdir("/proc/self/task")]
    count = sum("XLAEigen" in name for name in names)
    print(count, digest, os.environ.get("NPROC"), float(total))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are read from /proc")
def test_results_are_the_same_for_every_number_of_threads():
    found = [
        run_in_new_process(_IN_THREADS.format(count=1), OMP_NUM_THREADS="8"),
        run_in_new_process(_IN_THREADS.format(count=None), XSTACK_NUM_THREADS="2"),
        run_in_new_process(_IN_THREADS.format(count=None), OMP_NUM_THREADS="8,2"),
    ]
    threads, digests, variables, totals = zip(*[line.split() for line in found], strict=True)
    assert threads == ("1", "2", "8")
    assert len(set(digests)) == 1
    assert set(variables) == {"None"}  # other libraries do not see what XLA was told
    # on jaxlib 0.10 a sum to one number is one of parts, as many as threads: 210,000 numbers of
    # mean size 0.8 in float32
    assert max(map(float, totals)) - min(map(float, totals)) <= 2**-23 * 210_000 * 0.8


_ON_ONE_CORE = """
    import os
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import xnp
    from xjit import jit
    jit(lambda x: x + 1)(xnp.ones(3))
    names = [open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task")]
    print(sum("XLAEigen" in name for name in names))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are read from /proc")
def test_there_are_as_many_threads_as_cores_that_the_process_may_use():
    assert run_in_new_process(_ON_ONE_CORE, OMP_NUM_THREADS="", XSTACK_NUM_THREADS="") == "1"


def test_a_number_of_threads_that_is_none_raises():
    found = count_in_new_process(XSTACK_NUM_THREADS="0")
    assert "client: XSTACK_NUM_THREADS must be a positive number." in found
    with pytest.raises(TypeError, match="num_threads: the option does not take this value"):
        config.update("num_threads", 0)


_FAULTS = """
    import resource
    import numpy as np
    import xnp
    from xjit import jit
    x = xnp.asarray(np.ones(320_000, np.float32))
    f = jit(lambda x: [x * k for k in range(2, 10)])  # 10 MB of results
    for _ in range(3):
        [y.block_until_ready() for y in f(x)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        [y.block_until_ready() for y in f(x)]
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an allocator's settings")
def test_memory_of_results_is_used_again_and_settings_of_the_user_hold():
    kept = float(run_in_new_process(_FAULTS))
    returned = float(run_in_new_process(_FAULTS, MALLOC_MMAP_THRESHOLD_="100000"))
    assert returned > 2000  # the 2,500 pages of the results, from the system each time
    assert kept < returned / 4
