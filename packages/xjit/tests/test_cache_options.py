"""Options of the cache on disk: what counts in keys, and the caches that XLA keeps itself."""

from types import SimpleNamespace

import numpy as np
import pytest

import xjit
from xjit.cache import disk as cache_disk
from xjit.lowering.operation_metadata import without_places
from xprim import runtime_options

SAME_BUT_FOR_PLACES = """
def f(x):
    return x * 3 - {}  # a "quoted" word
"""


def test_places_count_in_the_key_unless_that_is_not_wanted(tmp_path):
    """Two functions that differ by the lines they stand on, with the places in the text."""

    def misses(number, option):
        with (
            runtime_options.enable_compilation_cache(True),
            xjit.lowering.modules.source_locations(True),
            runtime_options.compilation_cache_dir(str(tmp_path / str(option))),
            runtime_options.compilation_cache_include_metadata_in_key(option),
        ):
            cache_disk.forget_what_was_found()
            for lines in (1, 5):
                file = tmp_path / f"written {number} {lines}.py"
                file.write_text("\n" * lines + SAME_BUT_FOR_PLACES.format(number))
                space = {}
                exec(compile(file.read_text(), str(file), "exec"), space)
                lowered = xjit.jit(space["f"]).lower(np.float32(2))
                assert f"written {number} {lines}.py" in lowered.as_text()
                assert "written" not in without_places(lowered.as_text())
                assert lowered.compile()(np.float32(2)) == 6 - number
            disk = cache_disk.disk_cache()
            return disk.misses, disk.hits

    assert misses(1, True) == (2, 0)
    assert misses(2, False) == (1, 1)


class Accelerator:
    """Stands for a device of another platform."""

    platform = "cuda"

    def __init__(self, process):
        self.client = SimpleNamespace(process_index=lambda: process)


def test_caches_of_xla_are_for_gpus(tmp_path):
    autotune, mode = runtime_options.XLA_CACHES[1], "xla_gpu_experimental_autotune_cache_mode"
    first, second, cpu = Accelerator(0), Accelerator(1), xjit.devices("cpu")[0]
    beside = tmp_path / "xstack-programs-xla"
    with (
        runtime_options.enable_compilation_cache(True),
        runtime_options.compilation_cache_dir(str(tmp_path)),
    ):
        assert cache_disk.options_of_xla(first) == {}
        with runtime_options.persistent_cache_enable_xla_caches("all"):
            told = cache_disk.options_of_xla(first)
            assert told.pop(mode) == "AUTOTUNE_CACHE_MODE_UPDATE"
            assert told == {name: str(beside / name) for name in runtime_options.XLA_CACHES}
            assert beside.stat().st_mode & 0o777 == 0o700
            assert cache_disk.options_of_xla(second)[mode] == "AUTOTUNE_CACHE_MODE_READ"
            assert cache_disk.options_of_xla(cpu) == {}
            known = cache_disk.options_of_xla(first)
            compiled = xjit.jit(lambda x: x + 41).lower(np.float32(1)).compile(known)
            assert compiled(np.float32(1)) == 42  # this XLA knows options of these names
            beside.chmod(0o777)
            assert cache_disk.options_of_xla(first) == {}
            beside.chmod(0o700)
        with runtime_options.persistent_cache_enable_xla_caches(autotune):
            assert set(cache_disk.options_of_xla(first)) == {autotune, mode}
        with pytest.raises(TypeError, match="persistent_cache_enable_xla_caches"):
            runtime_options.persistent_cache_enable_xla_caches("xla_gpu")
    with (
        runtime_options.enable_compilation_cache(False),
        runtime_options.persistent_cache_enable_xla_caches("all"),
    ):
        assert cache_disk.options_of_xla(first) == {}


def test_caches_of_xla_change_no_key(tmp_path, monkeypatch):
    given = []

    def compiling(text, devices, *, options, **settings):
        given.append(options)
        return compiled(text, devices, options=options, **settings)

    compiled = xjit.lowering.compile.compiler
    monkeypatch.setattr(xjit.lowering.compile, "compiler", compiling)
    told = {runtime_options.XLA_CACHES[1]: str(tmp_path)}
    with (
        runtime_options.enable_compilation_cache(True),
        runtime_options.compilation_cache_dir(str(tmp_path)),
    ):
        cache_disk.forget_what_was_found()
        xjit.jit(lambda x: x * 40 + 2).lower(np.float32(1)).compile()
        xjit.lowering.compile.clear_executables()
        monkeypatch.setattr(xjit.lowering.compile, "options_of_xla", lambda device: told)
        xjit.jit(lambda x: x * 40 + 2.0).lower(np.float32(1)).compile()
        assert cache_disk.disk_cache().hits == 1
        xjit.jit(lambda x: x * 41 + 2).lower(np.float32(1)).compile()
    usual = given[0] or {}  # None where this jaxlib needs no options
    assert given[-1] == usual | told and not usual.keys() & told.keys()
