"""Give every test run, of one package or of all, the same environment.

No setting of the person who runs the tests reaches them, and nothing they write stays: the
`XSTACK_*` variables are cleared, the machine is shown as eight virtual CPU devices, on which tests
count, and the cache directories lie in a temporary folder. This happens when pytest loads this
file, before a test imports a package.
"""

import contextlib
import gc
import importlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import processes
from tests.nets.cells import IN_FULL, spread

PACKAGES = Path(__file__).parent / "packages"
VIRTUAL_CPU_DEVICES = "8"
TESTS_BETWEEN_FREEZES = 500
OBJECTS_BETWEEN_COLLECTIONS = 50_000
OUTSIDE_VARIABLES = {
    "JAX_PLATFORMS": "cpu",  # the oracle looks for no accelerator
    "JAX_NUM_CPU_DEVICES": VIRTUAL_CPU_DEVICES,
    # The oracle computes the same without LLVM's optimisations, and compiles in half of the time.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "MPLBACKEND": "Agg",
    "PYTHONFAULTHANDLER": "1",  # a process that dies by a signal says where
}


def _isolate_environment() -> Path | None:
    """Set the variables; return the temporary folder when this process made it."""
    if "PYTEST_XDIST_WORKER" in os.environ:  # the controller has set everything already
        return None
    for name in [name for name in os.environ if name.startswith("XSTACK_")]:
        del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="xstack-tests-"))
    # `python -m tools.gpu_check` runs them on a GPU
    os.environ["XSTACK_PLATFORMS"] = os.environ.get("TESTS_PLATFORMS", "cpu")
    os.environ["XSTACK_NUM_CPU_DEVICES"] = VIRTUAL_CPU_DEVICES
    os.environ["XDG_CACHE_HOME"] = str(folder)
    # Tests count what is compiled; those of the cache switch it on.
    os.environ["XSTACK_ENABLE_COMPILATION_CACHE"] = "0"
    os.environ["XSTACK_RETRACES"] = "allow"  # tests call one function with many types
    os.environ["XSTACK_DEBUG_KEY_REUSE"] = "false"  # tests draw from one key in many ways
    os.environ.update(OUTSIDE_VARIABLES)
    # A hundred tests start processes, each of which would compile the packages from their text.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    return folder


_folder = _isolate_environment()
subprocess.run = processes.run  # shows the stacks of a process that runs into its time

# Shells start what runs in the background with Ctrl-C ignored; tests send it to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _set_hypothesis_profile() -> None:
    try:
        from hypothesis import settings
    except ImportError:
        return
    # A deadline measures the machine, not the program.
    settings.register_profile("xstack", deadline=None, print_blob=True)
    settings.load_profile("xstack")


_set_hypothesis_profile()


@pytest.fixture
def unmeasured_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes without coverage, which imports modules and reads the working directory."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample", type=int, default=1, metavar="N", help="run only every Nth of the tests"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
    """Import a module of the packages by its name before pytest collects its doctests.

    Pytest imports the package first. If that imports the module, pytest would run it again, and
    its primitives would be defined twice.
    """
    if not parent.config.option.doctestmodules or file_path.suffix != ".py":
        return
    _, found, name = file_path.with_suffix("").as_posix().rpartition("/src/")
    if found and file_path.is_relative_to(PACKAGES) and not name.endswith("__main__"):
        with contextlib.suppress(Exception):  # pytest reports what it finds when it imports it
            importlib.import_module(name.removesuffix("/__init__").replace("/", "."))


@pytest.hookimpl(tryfirst=True)  # before pytest looks which tests are marked `fuzz`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = _outside_the_sample(items)
    if os.environ.get("TESTS_PLATFORMS", "cpu") != "cpu":
        left_out += [item for item in items if item.get_closest_marker("of_the_cpu") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    items[:] = items[:: config.getoption("--sample")]


def _outside_the_sample(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the cells of tests marked `sampled` that this run leaves out, and mark all `fuzz`."""
    cells_of_test: dict[str, list[pytest.Function]] = {}
    for item in items:
        if item.get_closest_marker("sampled") is not None and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.fuzz)
            cells_of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    if IN_FULL:
        return []
    left_out: list[pytest.Item] = []
    for name, cells in cells_of_test.items():
        mark = cells[0].get_closest_marker("sampled")
        assert mark is not None
        groups = [_group(cell, **mark.kwargs) for cell in cells]
        kept = set(spread(name, groups, mark.kwargs["every"]))
        left_out += [cell for k, cell in enumerate(cells) if k not in kept]
    return left_out


def _group(item: pytest.Function, every: int, per: str = "") -> str:
    """Return what tells the values of the parameter of which a sample tries each."""
    del every
    return repr(item.callspec.params[per]) if per else ""


def pytest_collection(session: pytest.Session) -> None:
    """Look for no garbage among the tests while they are collected: all of them stay."""
    del session
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have later collections of garbage pass over the 28,000 tests, which stay to the end."""
    del session
    gc.enable()
    gc.collect()
    gc.freeze()
    if not IN_FULL:  # a tenth of the time of an ordinary run would go into collections
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])


_tests_run = itertools.count(1)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Have collections pass over what thousands of earlier tests left, too, such as their caches.

    Else each test that looks among all objects for what is still alive walks over millions.
    """
    del item
    if next(_tests_run) % TESTS_BETWEEN_FREEZES == 0:
        gc.collect()
        gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    del config
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
