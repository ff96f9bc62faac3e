"""`python -m xstack doctor` says what is there and what mends what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xjit import jaxlib_gateway as gateway
from xprim.runtime_options import compilation_cache_dir, enable_compilation_cache
from xstack import doctor
from xstack.__main__ import main


@pytest.fixture(autouse=True)
def healthy(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_NVIDIA_DRIVER", Path("/no/such/file"))
    monkeypatch.setattr(gateway, "find_gpu_plugin", lambda: None)
    with enable_compilation_cache(True), compilation_cache_dir(str(tmp_path)):
        yield tmp_path


def test_a_machine_that_works_is_well(capsys, healthy):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert gateway.version() in text and str(healthy / "xstack-programs") in text
    assert "python" in text and "cpu" in text.lower() and text.endswith("all is well\n")


def test_a_gpu_that_is_not_used_is_told(capsys, monkeypatch, healthy):
    monkeypatch.setattr(doctor, "_NVIDIA_DRIVER", healthy)
    assert main(["doctor"]) == 1
    assert "there is a GPU, but no plugin for it" in capsys.readouterr().out
    monkeypatch.setattr(gateway, "find_gpu_plugin", lambda: "plugin")
    monkeypatch.setenv("XSTACK_PLATFORMS", "cpu")
    assert any("XSTACK_PLATFORMS=cpu leaves it out" in p for p in doctor.problems())
    monkeypatch.delenv("XSTACK_PLATFORMS")
    monkeypatch.setattr(doctor.xjit, "default_backend", lambda: "cpu")
    assert any("it found no device" in p for p in doctor.problems())


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("XSTACK_PLATFORMS", "cuda", "the platform 'gpu' needs the CUDA plugin"),
        ("XSTACK_PLATFORMS", "bogus", "'bogus' is not the name of a platform"),
        ("XSTACK_NUM_CPU_DEVICES", "abc", "must be a positive integer"),
        ("XSTACK_NUM_THREADS", "0", "must be a positive number"),
    ],
)
def test_a_machine_whose_devices_cannot_be_used_is_told_what_mends_it(variable, value, reason):
    done = subprocess.run(
        [sys.executable, "-m", "xstack", "doctor"], env=os.environ | {variable: value},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr == ""
    (wrong,) = [line for line in done.stdout.splitlines() if "no device can be used" in line]
    assert reason in wrong and variable in wrong.partition("; unset ")[2]
    assert "devices" in done.stdout and "none" in done.stdout


def test_the_threads_of_the_cpu_are_among_the_facts(monkeypatch):
    doctor.facts()  # the CPU is in use from now on, which settles the number
    monkeypatch.setattr(doctor.runtime_options.num_threads, "in_force", 3)
    assert dict(doctor.facts())["threads of the CPU"].startswith("3, by num_threads")
    monkeypatch.setattr(doctor.runtime_options.num_threads, "in_force", None)
    assert "each core" in dict(doctor.facts())["threads of the CPU"]


@pytest.mark.parametrize(
    ("given", "tunables", "told"),
    [
        ("all", "", "pages of 2 MB"),
        ("none", "glibc.malloc.hugetlb=1", "pages of 4 kB"),
        ("those who ask", "glibc.malloc.hugetlb=1", "pages of 2 MB"),
        ("those who ask", "", "pages of 4 kB in compiled programs; GLIBC_TUNABLES=glibc.malloc"),
    ],
)
def test_the_pages_of_large_arrays_are_among_the_facts(monkeypatch, given, tunables, told):
    monkeypatch.setattr(doctor.eager_costs, "huge_pages", lambda: given)
    monkeypatch.setenv("GLIBC_TUNABLES", tunables)
    assert dict(doctor.facts())["large arrays"].startswith(told)


def test_a_cache_that_does_not_work_is_told(capsys, healthy):
    (healthy / "xstack-programs").mkdir()
    (healthy / "xstack-programs").chmod(0o777)
    assert main(["doctor"]) == 1 and "chmod 700" in capsys.readouterr().out
    with enable_compilation_cache(False):
        assert any("each process compiles anew" in p for p in doctor.problems())


def test_a_plugin_of_another_version_than_jaxlib_is_told_with_the_line_that_mends_it(monkeypatch):
    versions = {"jaxlib": "0.12.0", "jax-cuda13-plugin": "0.11.2", "jax-cuda13-pjrt": "0.12.0"}
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, ""))
    (told,) = [p for p in doctor.problems() if "jax-cuda13" in p]
    assert told.startswith("jax-cuda13-plugin is 0.11.2, and jaxlib 0.12.0")
    assert told.endswith("pip install 'jax-cuda13-plugin[with-cuda]==0.12.0'")
    assert dict(doctor.facts())["jax-cuda13-pjrt"] == "0.12.0"
    versions["jax-cuda13-plugin"] = "0.12.0.1"
    assert not any("jax-cuda13" in p for p in doctor.problems())


def test_the_driver_is_among_the_facts(monkeypatch, healthy):
    (healthy / "version").write_text("NVRM version: 580.1\nGCC: 12\n")
    monkeypatch.setattr(doctor, "_NVIDIA_DRIVER", healthy / "version")
    assert dict(doctor.facts())["driver"] == "NVRM version: 580.1"
