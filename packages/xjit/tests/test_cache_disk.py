"""The compilation cache on disk, and what can go wrong with it: files, directories, processes."""

import errno
import logging
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import xjit
import xnp
import xtree
from xjit import jit, statistics
from xjit.cache import disk as cache_disk, disk as cache_files, inspection
from xjit.cache.__main__ import main
from xjit.cache.disk import DiskCache, Entry, disk_cache, facts_of, key_of, pack
from xjit.callbacks.functions import pure_callback
from xprim import ShapeDtypeStruct, config, runtime_options
from xprim.runtime_options import compilation_cache_dir, enable_compilation_cache

KEY = "a" * 64
CODE = bytes(range(256)) * 12
ENTRY = Entry(CODE, {"name": "f", "seconds": 2.0, "runtime": "r"})


CACHE_ON = "XSTACK_ENABLE_COMPILATION_CACHE"


def same(code):
    return code


def stored(directory, **options):
    found = DiskCache(directory / "c", **options)
    found.store(KEY, lambda: ENTRY, same)
    assert found.stored == 1
    return found


@pytest.fixture
def kept(tmp_path):
    return stored(tmp_path)


def warnings_in(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_an_entry_is_found_by_its_key_alone(kept):
    assert kept.load(KEY, same) == CODE and kept.load("b" * 64, same) is None
    assert (kept.hits, kept.misses, kept.stored) == (1, 1, 1) and 1.9 < kept.seconds_saved <= 2.0
    assert DiskCache(kept.directory).load(KEY, same) == CODE
    assert kept.directory.stat().st_mode & 0o777 == 0o700
    assert kept.path(KEY).stat().st_mode & 0o777 == 0o600


def test_an_entry_cut_off_at_any_place_is_a_miss_that_is_removed(kept, caplog):
    data = kept.path(KEY).read_bytes()
    for size in range(0, len(data), 64):
        kept.path(KEY).write_bytes(data[:size])
        assert kept.load(KEY, same) is None and not kept.path(KEY).exists()
    assert len(warnings_in(caplog)) == 1 and "an entry was removed" in warnings_in(caplog)[0]


def test_an_entry_with_a_flipped_bit_is_a_miss_that_is_removed(kept):
    data = kept.path(KEY).read_bytes()
    for position in range(0, len(data), 61):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        kept.path(KEY).write_bytes(changed)
        assert kept.load(KEY, same) is None and not kept.path(KEY).exists()
    kept.path(KEY).write_bytes(data)
    assert kept.load(KEY, same) == CODE


def test_an_entry_under_another_key_and_code_that_is_not_taken_are_misses(kept):
    os.rename(kept.path(KEY), kept.path("b" * 64))
    assert kept.load("b" * 64, same) is None

    def refuse(code):
        raise xjit.XlaError("not mine")

    kept.store(KEY, lambda: ENTRY, same)
    assert kept.load(KEY, refuse) is None and not kept.path(KEY).exists()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_can_write_is_a_miss_that_is_removed(kept, mode):
    kept.path(KEY).chmod(mode)
    assert kept.load(KEY, same) is None and not kept.path(KEY).exists()


def test_entries_and_directories_of_other_users_are_not_used(kept, monkeypatch, caplog):
    own = os.geteuid()
    monkeypatch.setattr(cache_files.os, "geteuid", lambda: own + 1)
    other = DiskCache(kept.directory)
    assert other.load(KEY, same) is None
    other.store("b" * 64, lambda: ENTRY, same)
    assert other.stored == 0 and len(list(kept.entries())) == 1
    assert len(warnings_in(caplog)) == 1 and "it belongs to another user" in warnings_in(caplog)[0]
    kept._problem = ""  # the directory is one's own, the file is not
    assert kept.load(KEY, same) is None


def test_links_folders_and_pipes_in_place_of_entries_are_misses(kept, tmp_path):
    path = kept.path(KEY)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert kept.load(KEY, same) is None and (tmp_path / "elsewhere").exists()
    path.mkdir()
    assert kept.load(KEY, same) is None
    path.rmdir()
    os.mkfifo(path)
    assert kept.load(KEY, same) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_is_not_used(kept, mode, caplog):
    kept.directory.chmod(mode)
    other = DiskCache(kept.directory)
    assert other.load(KEY, same) is None
    other.store("b" * 64, lambda: ENTRY, same)
    assert len(warnings_in(caplog)) == 1 and "chmod 700" in warnings_in(caplog)[0]
    kept.directory.chmod(0o700)
    assert DiskCache(kept.directory).load(KEY, same) == CODE


def test_a_file_in_place_of_the_directory_and_a_missing_parent_are_no_cache(tmp_path, caplog):
    (tmp_path / "f").write_text("")
    for path in (tmp_path / "f", tmp_path / "f" / "c"):
        found = DiskCache(path)
        assert found.load(KEY, same) is None
        found.store(KEY, lambda: ENTRY, same)
        assert found.stored == 0
    assert len(warnings_in(caplog)) == 2


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_takes_no_more_is_told_once_and_still_read(kept, code, monkeypatch, caplog):
    plain = os.open

    def refuse(path, flags, *mode):
        if flags & os.O_CREAT:
            raise OSError(code, os.strerror(code))
        return plain(path, flags, *mode)

    monkeypatch.setattr(cache_files.os, "open", refuse)
    for key in ("b" * 64, "c" * 64):
        kept.store(key, lambda: ENTRY, same)
    assert kept.stored == 1 and kept.load(KEY, same) == CODE
    assert len(warnings_in(caplog)) == 1 and os.strerror(code) in warnings_in(caplog)[0]


def test_a_disk_that_is_full_in_the_middle_of_a_file_leaves_nothing_of_it(kept):
    before = sorted(os.listdir(kept.directory))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        kept.store("b" * 64, lambda: ENTRY, same)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(os.listdir(kept.directory)) == before and kept.load(KEY, same) == CODE


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KB, where this user may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"there is no command to mount with: {error}")
    if made.returncode != 0:
        pytest.skip(f"this user may not mount: {made.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_keeps_what_is_on_it(small_disk, caplog):
    found = DiskCache(small_disk / "c")
    keys = [f"{i:064x}" for i in range(30)]
    for key in keys:
        found.store(key, lambda key=key: Entry(CODE, {"name": key, "seconds": 1.0}), same)
    assert 5 <= found.stored < 30
    assert len(warnings_in(caplog)) == 1 and "No space left on device" in warnings_in(caplog)[0]
    assert [found.load(key, same) for key in keys[: found.stored]] == [CODE] * found.stored
    assert not list(found.directory.glob("*.part"))
    later = DiskCache(small_disk / "c")
    assert len(later.entries()) == found.stored and later.load(keys[0], same) == CODE


def test_the_least_recently_used_entries_go_first(tmp_path):
    size = len(pack(KEY, ENTRY))
    found = DiskCache(tmp_path / "c", max_bytes=10 * size)
    for i in range(10):
        found.store(f"{i:064x}", lambda: ENTRY, same)
        os.utime(found.path(f"{i:064x}"), (1e9 + i, 1e9 + i))
    assert found.load(f"{0:064x}", same) == CODE  # used now, so not the next to go
    for i in range(10, 14):
        found.store(f"{i:064x}", lambda: ENTRY, same)
    left = {int(path.name[:64], 16) for path, _, _ in found.entries()}
    assert 0 in left and {1, 2, 3, 4}.isdisjoint(left) and {12, 13} <= left
    assert sum(n for _, n, _ in found.entries()) <= 10 * size


def test_an_entry_larger_than_the_bound_is_not_stored(tmp_path):
    found = DiskCache(tmp_path / "c", max_bytes=100)
    found.store(KEY, lambda: ENTRY, same)
    assert found.entries() == []


def test_a_clock_that_jumps_loses_no_entry_and_stops_no_collection(kept):
    for when in (0, 4e9):
        os.utime(kept.path(KEY), (when, when))
        (kept.directory / "1-1-x.part").write_text("")
        os.utime(kept.directory / "1-1-x.part", (when, when))
        assert kept.collect() == 0 and not (kept.directory / "1-1-x.part").exists()
        assert kept.load(KEY, same) == CODE


def test_collecting_spares_what_another_process_writes_now(kept):
    part = kept.directory / "1-1-x.part"
    part.write_text("half")
    kept.collect()
    assert part.exists()


CHILD = textwrap.dedent("""
    import os, random, signal, sys, time
    import xjit.cache.disk
    from xjit.cache.disk import DiskCache
    from xjit.cache.disk import Entry
    from pathlib import Path

    def content(key, n):
        return f"{key} {n} ".encode() * 2000

    def is_whole(code, key):
        words = code.split()
        return len(words) == 4000 and set(words[::2]) == {key.encode()} and len(set(words)) == 2

    def child(action):
        pid = os.fork()
        if pid == 0:
            try:
                action()
            except BaseException:
                os._exit(1)
            os._exit(0)
        return pid
""")


def run_child(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", CHILD + textwrap.dedent(program), *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    return done.stdout.split()


def test_processes_that_write_and_read_together_see_whole_entries_only(tmp_path):
    """16 at once write one key and many; none fails, none reads a mixture."""
    assert run_child("""
        def work(n):
            def run():
                cache = DiskCache(Path(sys.argv[1], "c"))
                for i in range(12):
                    for key in ("a" * 64, f"{i:064x}"):
                        cache.store(key, lambda: Entry(content(key, n), {}), lambda c: c)
                        found = cache.load(key, lambda c: c)
                        assert found is not None and is_whole(found, key)
                assert cache._is_writable and cache.misses == 0
            return run

        pids = [child(work(n)) for n in range(16)]
        print(sum(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids))
        print(len(DiskCache(Path(sys.argv[1], "c")).entries()))
        print(sum(f.suffix in (".part", ".loading") for f in Path(sys.argv[1], "c").iterdir()))
    """, tmp_path) == ["0", "13", "0"]  # fmt: skip


def test_writers_that_are_killed_leave_no_entry_that_is_not_whole(tmp_path):
    assert run_child("""
        random.seed(0)
        cache = DiskCache(Path(sys.argv[1], "c"))
        cache.store("f" * 64, lambda: Entry(content("f" * 64, 0), {}), lambda c: c)
        for n in range(100):
            begun, tell = os.pipe()
            def write():
                for i in range(n, 10_000):
                    key = f"{i % 50:064x}"
                    cache.store(key, lambda: Entry(content(key, n), {}), lambda c: c)
                    os.write(tell, b".")
            pid = child(write)
            os.read(begun, 1)  # one entry is written, however slow the machine is
            time.sleep(random.random() * 0.006)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(begun), os.close(tell)
        keys = [path.name[:64] for path, _, _ in cache.entries()]
        print(len(keys) == 51, all(is_whole(cache.load(k, lambda c: c), k) for k in keys))
        print(cache.load("f" * 64, lambda c: c) == content("f" * 64, 0))
    """, tmp_path) == ["True", "True", "True"]  # fmt: skip


def test_a_process_that_ends_after_it_has_loaded_an_entry_takes_none_away(tmp_path, monkeypatch):
    """Another one has read its mark, and asks for it when both the mark and it are gone."""
    cache = DiskCache(tmp_path / "c")
    cache.store("a" * 64, lambda: Entry(b"code", {}), lambda c: c)
    mark = cache.path("a" * 64).with_suffix(".loading")
    mark.write_text(f"{os.uname().nodename} 1 0")

    def is_gone(pid, start):
        mark.unlink()
        return True

    monkeypatch.setattr(cache_disk, "_is_gone", is_gone)
    assert cache.load("a" * 64, lambda c: c) == b"code"
    assert cache.path("a" * 64).exists()


def test_an_entry_that_ends_the_process_is_removed_by_the_next_one(tmp_path):
    assert run_child("""
        cache = DiskCache(Path(sys.argv[1], "c"))
        cache.store("a" * 64, lambda: Entry(b"code", {}), lambda c: c)
        def crash():
            cache.load("a" * 64, lambda c: os.kill(os.getpid(), signal.SIGKILL))
        os.waitpid(child(crash), 0)
        import logging
        logging.basicConfig(stream=sys.stdout, format="%(message)s")
        print(cache.load("a" * 64, lambda c: c), len(cache.entries()))
    """, tmp_path)[-2:] == ["None", "0"]  # fmt: skip


def test_a_mark_of_a_process_that_still_loads_is_no_reason_to_miss(kept):
    mark = kept.path(KEY).with_suffix(".loading")
    mark.write_text(cache_disk._this_process())
    assert kept.load(KEY, same) == CODE and mark.exists()
    mark.write_text("elsewhere 1 1")  # another machine, by a shared file system
    assert kept.load(KEY, same) == CODE
    os.utime(mark, (1e9, 1e9))
    assert kept.load(KEY, same) is None and not mark.exists()


def test_a_machine_that_does_not_take_its_own_code_stores_nothing(tmp_path, caplog):
    def refuse(code):
        raise xjit.XlaError("cannot load this\nmore")

    found = DiskCache(tmp_path / "c")
    for _ in range(3):
        found.store(KEY, lambda: ENTRY, refuse)
    assert found.entries() == [] and len(warnings_in(caplog)) == 1
    assert "cannot load this" in warnings_in(caplog)[0]


# --- whole programs ----------------------------------------------------------------------------


@pytest.fixture
def on(tmp_path):
    with (
        enable_compilation_cache(True),
        compilation_cache_dir(str(tmp_path)),
    ):
        xjit.clear_caches()
        yield disk_cache()
        xjit.clear_caches()


def counted(call):
    before = statistics.compiled, statistics.loaded
    result = call()
    return result, statistics.compiled - before[0], statistics.loaded - before[1]


PROGRAMS = {
    "sine": (lambda x: xnp.sin(x) @ x.T, ()),
    "lapack": (lambda x: xnp.linalg.cholesky(x @ x.T + 4 * xnp.eye(3)), ()),
    "tree": (lambda x: {"a": x + 1, "b": (x.sum(), x.astype(xnp.bfloat16))}, ()),
    "donated": (lambda x: x + 2, (0,)),
    "no results": (lambda x: (), ()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_found_on_disk_gives_what_it_gave(on, name):
    fun, donated = PROGRAMS[name]
    x = np.arange(9, dtype=np.float32).reshape(3, 3) / 9

    def call():
        xjit.clear_caches()
        return jit(lambda x: fun(x), donate_argnums=donated)(xnp.asarray(x))

    first, compiled, loaded = counted(call)
    assert (compiled, loaded) == (1, 0)
    again, compiled, loaded = counted(call)
    assert (compiled, loaded) == (0, 1)
    for a, b in zip(xtree.leaves(first), xtree.leaves(again), strict=True):
        assert a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_what_was_loaded_can_be_looked_at_as_what_was_compiled(on):
    def made():
        xjit.clear_caches()
        return jit(lambda x: xnp.cos(x) * 2).lower(np.ones(4, np.float32)).compile()

    (one, c, _), (two, _, loaded) = counted(made), counted(made)
    assert (c, loaded) == (1, 1)
    assert one.as_text() == two.as_text() and one.cost_analysis() == two.cost_analysis()
    assert one.memory_analysis() == two.memory_analysis()


@pytest.mark.parametrize("change", [
    {"runtime": "another jaxlib"}, {"processors": "999"}, {"devices": "[7]"}, {"num_replicas": "2"},
    {"options": "[('a', 1)]"}, {"XLA_FLAGS": "--x"}, {"use_spmd": "True"},
])  # fmt: skip
def test_whatever_else_the_code_depends_on_changes_the_key(change):
    facts = facts_of(xjit.devices()[:1], {"num_replicas": 1, "use_spmd": False})
    assert set(change) <= set(facts)
    assert key_of(b"text", facts) == key_of(b"text", dict(facts))
    assert key_of(b"text", facts) != key_of(b"text", {**facts, **change})
    assert key_of(b"text", facts) != key_of(b"Text", facts)


def test_entries_of_another_jaxlib_are_not_taken(on, monkeypatch):
    f = lambda x: x * 3 + 1  # noqa: E731
    counted(lambda: jit(f)(np.ones(3, np.float32)))
    xjit.clear_caches()
    monkeypatch.setattr(cache_disk, "_fingerprint", lambda platform: "jaxlib 0.0.1")
    assert counted(lambda: jit(f)(np.ones(3, np.float32)))[1:] == (1, 0)
    assert len(on.entries()) == 2


def test_programs_that_call_python_are_not_stored(on):
    def f(x):
        return pure_callback(lambda v: v, ShapeDtypeStruct(x.shape, x.dtype), x) * 3

    jit(f)(np.ones(3, np.float32))
    assert on.entries() == []


def test_options_bound_what_is_stored(on):
    def entries_with(**options):
        for name, value in options.items():
            config.update(f"jax_{name}", value)
        try:
            xjit.clear_caches()
            jit(lambda x: x * 5 - 2)(np.ones(3, np.float32))
            found = len(disk_cache().entries())
            inspection.clear()
            return found
        finally:
            for name in options:
                config.update(name, config.options()[name].default)

    assert entries_with(persistent_cache_min_compile_time_secs=60) == 0
    assert entries_with(persistent_cache_min_entry_size_bytes=1 << 30) == 0
    assert entries_with(compilation_cache_max_size=10) == 0
    assert entries_with(compilation_cache_max_size=-1) == 1
    with enable_compilation_cache(False):
        assert disk_cache() is None
    assert entries_with() == 1


def test_the_directory_is_that_of_the_user_unless_one_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_disk.default_directory() == tmp_path / "xstack" / "programs"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_disk.default_directory() == Path("/home/me/.cache/xstack/programs")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(cache_disk.os.path, "expanduser", lambda path: path)  # no such user either
    assert cache_disk.default_directory() is None
    with enable_compilation_cache(True), compilation_cache_dir(""):
        assert disk_cache() is None


def test_a_directory_is_chosen_and_looked_at_anew(tmp_path):
    before = compilation_cache_dir.value
    with enable_compilation_cache(True):
        inspection.set_cache_dir(tmp_path / "other")
        assert inspection.directory() == tmp_path / "other" / "xstack-programs"
        Path(tmp_path, "other").write_text("a file in its place")
        jit(lambda x: x * 5 - 2)(np.ones(3))
        assert inspection.stats()["stored"] == 0
        Path(tmp_path, "other").unlink()
        Path(tmp_path, "other").mkdir()
        inspection.reset_cache()
        jit(lambda x: x * 7 - 3)(np.ones(3))
        assert inspection.stats()["stored"] == 1
        inspection.set_cache_dir("")
        assert inspection.directory() is None
        inspection.set_cache_dir(before)


def test_the_commands_show_check_explain_and_clean(on, capsys):
    jit(lambda x: xnp.sin(x))(np.ones(3, np.float32))
    jit(lambda x: xnp.cos(x))(np.ones(3, np.float32))
    numbers = inspection.stats()
    assert numbers["entries"] == 2 and numbers["bytes"] > 1000 and numbers["seconds"] > 0
    assert main(["stats", "-v"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(listed) == 2
    assert main(["explain", *listed]) == 0
    text = capsys.readouterr().out
    assert "stablehlo.sine" in text and "stablehlo.cosine" in text and "runtime" not in text
    assert main(["explain", listed[0], "nothing"]) == 1
    assert "no entries begin with 'nothing'" in capsys.readouterr().out
    assert main(["doctor"]) == 0 and capsys.readouterr().out.endswith("works\n")
    path = on.entries()[0][0]
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["doctor"]) == 1 and "1 entries are damaged" in capsys.readouterr().out
    assert main(["gc"]) == 0 and main(["clear"]) == 0
    assert "2 programs removed" in capsys.readouterr().out and on.entries() == []
    on.directory.chmod(0o777)
    assert main(["doctor"]) == 1 and "other users can write" in capsys.readouterr().out
    with enable_compilation_cache(False):
        assert main(["stats"]) == 1 and inspection.directory() is None and inspection.stats() == {}


def test_the_next_process_compiles_nothing(tmp_path):
    program = textwrap.dedent("""
        import numpy as np, xjit, xnp
        x = np.eye(4, dtype=np.float32)
        f = xjit.jit(lambda x: xnp.linalg.cholesky(x * 4) + xnp.sin(x))
        print(xjit.jit(lambda x: f(x).sum())(x), f(x).sum(), np.asarray(f(x)).tobytes().hex())
        print(xjit.statistics.compiled, xjit.statistics.loaded)
    """)
    outs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), CACHE_ON: "1"}, timeout=120,
        )  # fmt: skip
        assert done.stderr == ""
        outs.append(done.stdout.splitlines())
    assert outs[0][0] == outs[1][0]
    compiled = int(outs[0][1].split()[0])
    assert compiled >= 2 and outs[1][1] == f"0 {compiled}"


def test_what_goes_wrong_is_raised_where_that_is_asked_for(kept, tmp_path, monkeypatch):
    with runtime_options.raise_persistent_cache_errors(True):
        kept.path(KEY).write_bytes(b"foreign")
        with pytest.raises(RuntimeError, match="the compilation cache: an entry was removed"):
            kept.load(KEY, same)
        assert kept.load(KEY, same) is None  # an entry that is not there is no error

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(cache_disk, "write_atomically", full)
            for _ in range(2):
                with pytest.raises(RuntimeError, match="nothing more is stored"):
                    kept.store(KEY, lambda: ENTRY, same)
        kept.store(KEY, lambda: ENTRY, same)
        assert kept.load(KEY, same) == CODE
        shared = tmp_path / "shared"
        shared.mkdir(mode=0o777)
        shared.chmod(0o777)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="it is not used"):
                DiskCache(shared).load(KEY, same)


def test_each_program_that_is_looked_for_on_disk_is_an_event(tmp_path):
    seen = []
    xjit.debug.monitoring.register_event_listener(
        lambda name, **_: seen.append(name.rpartition("/")[2])
    )
    try:
        with enable_compilation_cache(True), compilation_cache_dir(str(tmp_path)):
            jit(lambda x: x * 3 - 8.75)(np.float32(1))
    finally:
        xjit.debug.monitoring.clear_event_listeners()
    assert seen == ["compile_requests_use_cache", "cache_misses"]
