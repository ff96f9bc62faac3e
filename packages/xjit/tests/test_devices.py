"""Devices: names, counts, the number of virtual CPU devices, the choice of a backend."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import xjit as xd
from xjit.jaxlib_gateway import clients
from xprim import device_options


def run_in_new_process(program, **environment):
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("XSTACK_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=variables | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stdout.strip() if done.returncode == 0 else done.stderr


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
    with pytest.raises(ValueError, match="there is no such process"):
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


def test_devices_have_no_scope():
    with pytest.raises(TypeError, match="devices are those of the whole process"):
        device_options.num_cpu_devices(2)


def test_the_environment_chooses_the_platforms():
    program = "import xjit.jaxlib_gateway as g; print(g.platforms(), g.default_backend())"
    assert run_in_new_process(program, XSTACK_PLATFORMS="cpu") == "('cpu',) cpu"
    chosen = run_in_new_process(program, XSTACK_PLATFORMS="cuda, cpu")
    assert chosen == "('gpu', 'cpu') gpu"
    assert "not the name of a platform" in run_in_new_process(program, XSTACK_PLATFORMS="tpu9")
