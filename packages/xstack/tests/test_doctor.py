"""`python -m xstack doctor` says what is there and what mends what is wrong."""

from pathlib import Path

import pytest

from xjit import jaxlib_gateway as gateway
from xprim.cache_options import compilation_cache_dir, enable_compilation_cache
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


def test_a_cache_that_does_not_work_is_told(capsys, healthy):
    (healthy / "xstack-programs").mkdir()
    (healthy / "xstack-programs").chmod(0o777)
    assert main(["doctor"]) == 1 and "chmod 700" in capsys.readouterr().out
    with enable_compilation_cache(False):
        assert any("each process compiles anew" in p for p in doctor.problems())
