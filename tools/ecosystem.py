"""Run the test suites of libraries written for JAX, on JAX and on xstack: `nox -s ecosystem`.

    nox -s ecosystem -- optax chex            all tests of two libraries, on both
    nox -s ecosystem -- haiku --every 16      every sixteenth test of each file
    nox -s ecosystem -- equinox               one whose tests are in its repository alone
    nox -s ecosystem -- equinox --source F    the same, of a checkout in the folder F
    nox -s ecosystem -- arrays                libraries for NumPy, given our arrays
    python tools/ecosystem.py                 the table of what was found, as Markdown

A library's tests come with its source distribution, from the registry; where that holds none, they
are cloned from the library's repository, at the release that is installed. The same tests run twice
in one environment, by JAX and with `pytest -p xstack.as_jax`; `docs/ecosystem.json` keeps what
passes, the processor time of each run and what passes on JAX alone, and the page
`docs/ecosystem.md` shows it.

This module is also the plugin of pytest that takes the sample (`--every`).
"""

import argparse
import datetime
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import xstack

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "ecosystem.json"
_EVERY = "ECOSYSTEM_EVERY"
_SECONDS = 3000


@dataclass(frozen=True)
class Suite:
    """Where the tests of a library are, and what they need."""

    distribution: str
    tests: tuple[str, ...]
    needs: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    """Files that need data, networks or libraries of hundreds of megabytes."""
    repository: str = ""
    """Where the tests are when the source distribution has none; releases have the tag `v1.2.3`."""


_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
_ARRAYS = "arrays"
_ACCEPT_ARRAYS = ("scipy", "matplotlib", "pandas", "xarray", "polars", "pyarrow")
_FLAX = ("optax", "treescope", "cloudpickle", "tensorboardX", "msgpack")
_BY_NAME = {
    "optax": Suite("optax", ("optax",), ("flax", "scikit-learn")),
    "chex": Suite("chex", ("chex",), ("cloudpickle", "dm-tree")),
    "einops": Suite(
        "einops", ("einops/tests",), ("flax",), {"EINOPS_TEST_BACKENDS": "numpy,jax"}
    ),
    "flax-linen": Suite("flax", ("tests/linen",), _FLAX),
    "flax-nnx": Suite("flax", ("tests/nnx",), _FLAX, without=("tests/nnx/integration_test.py",)),
    "flax-core": Suite("flax", ("tests/core",), _FLAX),
    "haiku": Suite(
        "dm-haiku", ("haiku",), ("cloudpickle", "dill", "mock", "dm-tree", "optax"),
        without=(
            "haiku/_src/integration/jax2tf_test.py", "haiku/_src/reshape_test.py",
            "haiku/_src/transform_test.py", "haiku/_src/integration/checkpoint_test.py",
            "haiku/_src/integration/doctest_test.py",
        ),
    ),
    "distrax": Suite("distrax", ("distrax",), ("dm-haiku", "flax", "mock")),
    "numpyro": Suite(
        "numpyro", ("test",), ("flax", "dm-haiku", "optax", "funsor", "scipy", "matplotlib"),
        without=("test/test_examples.py", "test/test_example_utils.py"),
    ),
    "equinox": Suite(
        "equinox", ("tests",), ("beartype", "cloudpickle", "optax", "tqdm"),
        repository="https://github.com/patrick-kidger/equinox",
    ),
    "lineax": Suite(
        "lineax", ("tests",), ("beartype",), repository="https://github.com/patrick-kidger/lineax",
    ),
    "optimistix": Suite(
        "optimistix", ("tests",), ("beartype", "optax", "scipy"),
        repository="https://github.com/patrick-kidger/optimistix",
    ),
    "diffrax": Suite(
        "diffrax", ("test",), ("beartype", "optax", "scipy"),
        repository="https://github.com/patrick-kidger/diffrax",
    ),
    "jaxtyping": Suite(
        "jaxtyping", ("test",),
        ("beartype", "cloudpickle", "equinox", "pytest-asyncio", "typeguard<3"),
        repository="https://github.com/patrick-kidger/jaxtyping",
    ),
}  # fmt: skip

# How the dtypes of JAX and of xstack, such as `jax.numpy.float32`, stand in the ids of tests.
_SCALAR_TYPE = re.compile(r"<(?:class 'jax\.numpy|scalar type xnp)\.(\w+)'?>")

# A text of an error (a regular expression) -> why a test that JAX passes fails here.
_REASONS = {
    r"SummaryTest::": "counts XLA's operations, of another program here",
    r"jit_rng_equivalance|jit_with_setup_helpers": "wants a compiled result equal to the last bit",
    r"does not fit in u?int": "a Python integer that the dtype cannot hold; JAX wraps it",
    r"Items are not equal: ACTUAL: Array": "`np.unique` gives an array of ours, not NumPy's",
    r"IsTraceableTest|AssertMaxTracesTest": "looks for names of JAX's classes in the text of a "
    "function",
    r"assert_numerical_grads failed": "a difference of derivatives by finite differences",
    r"inconsistent sizes|does not match|Regex pattern did not match|not found in": "matches the "
    "text of an error of JAX",
    r"fp8_meta": "dtypes of Flax that are none of NumPy's (`fp8_meta`)",
    r"abstract mesh has no devices": "sharding of a mesh without devices",
    r"colocated_python|array_serialization|ifrt|pxla": "imports orbax, which needs parts of JAX "
    "for clusters",
    r"test_distribution_constraints.*DID NOT WARN": "counts on `reshape` to leave a NumPy array "
    "one, whose values are known inside of `jit`",
    r"astype: Explicitly requested dtype int64": "SciPy draws by NumPy's functions, which give "
    "arrays of ours, and casts to int64",
    r"DID NOT WARN": "expects a warning of JAX",
    r"incompatible dtypes|type float64 but expected": "a NumPy result of 64 bits among arrays",
}


def run_suite(name: str, every: int, source: Path | None = None) -> dict[str, Any]:
    """Run a library's tests on both, and return what came out.

    Args:
      name: of the suite.
      every: every n-th test of each file is run.
      source: a folder with the library's source; where it is None, that of the installed release
        is fetched.
    """
    suite = _BY_NAME[name]
    subprocess.run([*_PIP, "install", suite.distribution, *suite.needs], check=True)
    version = metadata.version(suite.distribution)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "source"
        if source is not None:
            shutil.copytree(source, tree)
        elif suite.repository:
            _clone(suite.repository, version, tree)
        else:
            _unpack(suite.distribution, version, tree)
        absent = [path for path in suite.tests if not (tree / path).exists()]
        if absent:
            raise FileNotFoundError(f"the source of {name} {version} has no {', '.join(absent)}")
        own = _run(suite, tree, every, "-p", "xstack.as_jax")
        jax = _run(suite, tree, every)
    return _compared(name, version, every, jax, own)


def _unpack(distribution: str, version: str, tree: Path) -> None:
    """Fetch and unpack a source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--no-binary", distribution, "--dest", folder]
        subprocess.run([*_PIP, "download", *options, f"{distribution}=={version}"], check=True)
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        (unpacked,) = [path for path in Path(folder).iterdir() if path.is_dir()]
        shutil.move(unpacked, tree)


def _clone(repository: str, version: str, tree: Path) -> None:
    """Clone a repository at the tag of a release."""
    options = ["--quiet", "--depth=1", f"--branch=v{version}"]
    ended = subprocess.run(["git", "clone", *options, repository, str(tree)], check=False)
    if ended.returncode:
        raise RuntimeError(
            f"v{version} of {repository} cannot be cloned; "
            "get it in another way and run this with --source FOLDER"
        )


@dataclass(frozen=True)
class _Run:
    """One run of a suite: the ids that passed, the errors of the others, the processor time."""

    passed: set[str]
    errors: dict[str, str]
    seconds: float


def _run(suite: Suite, tree: Path, every: int, *options: str) -> _Run:
    before = _processor_seconds()
    report = tree / "report.xml"
    report.unlink(missing_ok=True)  # that of the run before
    command = [sys.executable, "-m", "pytest", "-q", "-p", "ecosystem", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", f"--junitxml={report}", "--tb=line"]
    command += [*options, *suite.tests, *[f"--ignore={path}" for path in suite.without]]
    environment = {
        **os.environ, **suite.environment, _EVERY: str(every), "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(Path(__file__).parent),
    }  # fmt: skip
    ended = subprocess.run(command, cwd=tree, env=environment, check=False, timeout=_SECONDS)
    if not report.exists():
        raise RuntimeError(f"pytest ended with status {ended.returncode} and without a report: "
                           f"{' '.join(command)}")  # fmt: skip
    return _Run(*_outcomes(report, tree), _processor_seconds() - before)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _outcomes(report: Path, tree: Path) -> tuple[set[str], dict[str, str]]:
    """Return the ids of the tests that passed, and what the others said, with paths in the tree."""
    passed, errors = set(), {}
    for case in ET.parse(report).getroot().iter("testcase"):
        test = _SCALAR_TYPE.sub(r"\1", f"{case.get('classname')}::{case.get('name')}")
        problem = case.find("failure")
        problem = case.find("error") if problem is None else problem
        if problem is not None:
            said = str(problem.get("message")).replace(f"{tree}/", "")
            errors[test] = " ".join(said.split())[:300]
        elif case.find("skipped") is None:
            passed.add(test)
    return passed - set(errors), errors


def _compared(name: str, version: str, every: int, jax: _Run, own: _Run) -> dict[str, Any]:
    differ = {test: own.errors.get(test, "not run") for test in sorted(jax.passed - own.passed)}
    versions = {"jax": metadata.version("jax"), "xstack": xstack.__version__}
    return {
        "name": name, "version": version, "every": every, **versions,
        "python": sys.version.split()[0], "date": datetime.date.today().isoformat(),
        "passed_by_jax": len(jax.passed), "passed_here_too": len(jax.passed & own.passed),
        "passed_here_alone": len(own.passed - jax.passed),
        "jax_seconds": round(jax.seconds, 1), "own_seconds": round(own.seconds, 1),
        "differ": differ,
    }  # fmt: skip


# ----------------------------------------------------------------------------------------- the page


def table(found: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    rows = [
        "| library | tests | pass on JAX | of these here | share | time of JAX's | date |",
        "|---|---|---|---|---|---|---|",
    ]
    reasons = ["| library | tests | why they fail here alone |", "|---|---|---|"]
    for f in found:
        sample = "all" if f["every"] == 1 else f"one in {f['every']}"
        share = f["passed_here_too"] / max(f["passed_by_jax"], 1)
        time = f["own_seconds"] / f["jax_seconds"]
        rows.append(
            f"| {f['name']} {f['version']} | {sample} | {f['passed_by_jax']} "
            f"| {f['passed_here_too']} | {share:.1%} | {time:.2f} | {f['date']} |"
        )
        for why, count in sorted(_counted(f["differ"]).items()):
            reasons.append(f"| {f['name']} | {count} | {why} |")
    versions = sorted({f"JAX {f['jax']}, Python {f['python']}" for f in found})
    return "\n\n".join([f"With {'; '.join(versions)}.", "\n".join(rows), "\n".join(reasons)])


def _counted(differ: dict[str, str]) -> dict[str, int]:
    """Return how many tests differ for each reason; an error without one stands for itself."""
    counts: dict[str, int] = {}
    for test, text in differ.items():
        known = [why for pattern, why in _REASONS.items() if re.search(pattern, f"{test} {text}")]
        why = known[0] if known else "`" + text[:100].replace("|", "\\|").replace("`", "'") + "`"
        counts[why] = counts.get(why, 0) + 1
    return counts


# ------------------------------------------------------------------------------------------- pytest


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Take every n-th test of each file, the same ones for JAX and for xstack."""
    every = int(os.environ.get(_EVERY, "1"))
    count_by_file: dict[Any, int] = {}
    taken, left = [], []
    for item in items:
        count = count_by_file.get(item.path, 0)
        count_by_file[item.path] = count + 1
        (left if count % every else taken).append(item)
    items[:] = taken
    config.hook.pytest_deselected(items=left)


# ------------------------------------------------------------------------------------------ command


def run_array_libraries() -> int:
    """Install the libraries that accept arrays, and run all calls of them."""
    subprocess.run([*_PIP, "install", *_ACCEPT_ARRAYS], check=True)
    net = str(ROOT / "tests" / "nets" / "test_array_libraries.py")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "fuzz", net]
    full = os.environ | {"FUZZ_PROGRAMS": "1"}
    return subprocess.run(command, check=False, cwd=ROOT, env=full).returncode


def main() -> int:
    """Run the suites that are named and keep what came out; print the table where none is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [[], *_BY_NAME, _ARRAYS]
    parser.add_argument("names", nargs="*", choices=names, metavar="NAME", default=[])
    parser.add_argument("--every", type=int, default=1, help="run every n-th test of each file")
    parser.add_argument(
        "--source", type=Path, metavar="FOLDER",
        help="the library's source with its tests, a checkout of the installed release",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.source is not None:
        if len(arguments.names) != 1 or arguments.names[0] == _ARRAYS:
            parser.error("--source goes with the name of one library")
        if not arguments.source.is_dir():
            parser.error(f"--source: {arguments.source} is not a folder")
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    status = 0
    for name in arguments.names:
        if name == _ARRAYS:
            status = run_array_libraries()
            continue
        result = run_suite(name, arguments.every, arguments.source)
        found = sorted([f for f in found if f["name"] != name] + [result], key=lambda f: f["name"])
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    chosen = [f for f in found if f["name"] in arguments.names] if arguments.names else found
    if chosen:
        print(table(chosen))
    return status


if __name__ == "__main__":
    sys.exit(main())
