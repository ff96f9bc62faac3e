"""The sessions of the workspace; `nox -l` lists them.

Three kinds of environment, kept few so that a fresh machine is quick. *Working* ones (`demo`,
`tests`, `docs`, `bench`, `fuzz`, `coverage`) install the packages editable. *Clean* ones (`build`,
`tests_isolated`, `tests_jaxlib`) install wheels, built once by the session `wheels`; `tests_skew`
builds its own, of releases. `lint` and `types` install no package of ours at all.

A package of ours is only ever installed from this tree, without its dependencies; what it needs
from others is read from its metadata and installed by name. So no name of ours is ever looked up in
an index, where some of them are other people's.
"""

import logging
import os
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit(
        "xstack needs Python 3.11 or newer, and nox runs here on Python "
        f"{sys.version_info[0]}.{sys.version_info[1]}: install nox with a newer one "
        "(python3.12 -m pip install nox) and run it as python3.12 -m nox."
    )

import nox
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent
DIST = ROOT / "dist"
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text())
# From the bottom floor to the top.
PACKAGES = ["xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack"]
# What the examples of the docstrings and pages need beside the packages' own dependencies.
EXTRAS_OF_EXAMPLES = ["demo", "checkpoints", "pictures"]
COVERED_AT_95_PERCENT = ["xtree", "xprim", "xad", "xbatch"]
# jaxlib 0.11 and later have no build for Python 3.11.
PYTHON_AND_JAXLIB = [
    ("3.11", "0.10.2"),
    ("3.12", "0.10.2"),
    ("3.12", "0.12.*"),
    ("3.13", "0.12.*"),
]

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "tests"]
# Without uv nox says so in each session, which is not news: virtualenv serves as well.
logging.getLogger("nox").addFilter(lambda record: record.getMessage() != "uv binary not found.")
nox.options.error_on_missing_interpreters = False  # `tests_jaxlib` skips a Python that is not here


# ----------------------------------------------------------------------------- working environments


@nox.session
def demo(session: nox.Session) -> None:
    """Train the classifier of handwritten digits; arguments go to `python -m xstack.demo`."""
    install_editable(session, extras=["demo"])
    session.run("python", "-m", "xstack.demo", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test and every example; arguments go to pytest instead of these."""
    install_editable(session, extras=EXTRAS_OF_EXAMPLES, groups=["test"])
    if session.posargs:
        session.run("python", "-m", "pytest", *session.posargs)
        return
    session.run("python", "-m", "pytest", "-n", "auto", "--dist=worksteal", *paths_of_tests())
    run_examples(session)


@nox.session
def coverage(session: nox.Session) -> None:
    """Measure branch coverage; the packages that carry the others must reach 95%."""
    install_editable(session, extras=EXTRAS_OF_EXAMPLES, groups=["test", "coverage"])
    session.run(
        *("python", "-m", "pytest", "-n", "auto", "--dist=worksteal", "--cov", "--cov-report="),
        *(session.posargs or paths_of_tests()),
    )
    session.run("coverage", "report", success_codes=[0, 2])
    for package in COVERED_AT_95_PERCENT:
        only = f"--include=packages/{package}/src/*"
        session.run("coverage", "report", only, "--fail-under=95")


@nox.session
def array_api(session: nox.Session) -> None:
    """Compare every function of the array API standard with its reference implementation."""
    install_editable(session, groups=["array-api"])
    session.run("python", "-m", "pytest", "tests/array_api", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Run the random programs in nightly number (FUZZ_PROGRAMS); arguments go to pytest.

    FUZZ_SEED says which are drawn: others each day, and the same again where it is set.
    """
    install_editable(session, extras=EXTRAS_OF_EXAMPLES, groups=["test"])
    session.env["FUZZ_PROGRAMS"] = os.environ.get("FUZZ_PROGRAMS", "10000")
    session.env["FUZZ_SEED"] = os.environ.get("FUZZ_SEED", str(date.today().toordinal()))
    session.log(f"the programs are those of FUZZ_SEED={session.env['FUZZ_SEED']}")
    options = ("-n", "auto", "--dist=worksteal", "-m", "fuzz")
    session.run("python", "-m", "pytest", *options, *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks beside JAX; arguments go on (`--quick`, `--check`)."""
    install_editable(session, groups=["bench"])
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session(default=False)
def ecosystem(session: nox.Session) -> None:
    """Run the test suites of libraries written for JAX, on JAX and here; names are arguments."""
    install_editable(session, groups=["ecosystem"])
    session.run("python", "tools/ecosystem.py", *session.posargs)


@nox.session(default=False)
def gpu(session: nox.Session) -> None:
    """Try everything on a GPU, if there is one; arguments go to tools/gpu_check.py."""
    install_editable(session, groups=["bench", "test"])
    if shutil.which("nvidia-smi"):
        session.install(*third_party(["xjit"], extras=["cuda13"]))
    session.run("python", "-m", "tools.gpu_check", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site with warnings as errors, and run every example of it."""
    install_editable(session, extras=EXTRAS_OF_EXAMPLES, groups=["docs", "isolated"])
    source, target = ROOT / "docs", ROOT / "docs" / "_build" / "html"
    session.run("sphinx-build", "-W", "--keep-going", "-E", "-q", "-b", "html", source, target)
    session.run("python", "tools/site_links.py", str(target))
    session.run("python", "tools/site_search.py", str(target))
    run_examples(session)
    session.log(f"the site is at {target / 'index.html'}")


# ------------------------------------------------------------------------ environments without ours


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format, complexity, the floors, the words, and the links of the pages."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    for tool in ("code_metrics", "layers", "retired_words", "doc_links"):
        session.run("python", f"tools/{tool}.py")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types: strictly in every `src`; what mypy and pyright say of users' programs."""
    session.install(*group("types"), *third_party(PACKAGES, without=["jaxlib"]))
    session.run("mypy", *(session.posargs or [str(p) for p in sources()]))
    if not session.posargs and any((ROOT / "tests" / "typing").glob("*.py")):
        session.run("mypy", "tests/typing")
        session.run("python", "tools/user_types.py")


@nox.session
def changelog(session: nox.Session) -> None:
    """Write a package's changelog from its fragments: `nox -s changelog -- xad [--draft]`."""
    package, *options = session.posargs
    session.install(*group("changelog"))
    version = manifest(package)["project"]["version"]
    where = ("--config", "pyproject.toml", "--dir", f"packages/{package}")
    session.run("towncrier", "build", *where, "--version", version, *options)


@nox.session(default=False)
def release(session: nox.Session) -> None:
    """Make a release: `nox -s release -- prepare 0.2.0 [PACKAGE ...]`, then `-- record`."""
    session.install(*group("changelog"))
    session.run("python", "tools/releases.py", *session.posargs)


# ------------------------------------------------------------------------------- clean environments


@nox.session(default=False)
def wheels(session: nox.Session) -> None:
    """Build every package into `dist/`: an sdist, and the wheel from that sdist."""
    session.install(*group("build"))
    shutil.rmtree(DIST, ignore_errors=True)
    for package in PACKAGES:
        folder = ROOT / "packages" / package
        session.run(
            *("python", "-m", "build", "--no-isolation", "--outdir", str(DIST), str(folder)),
            silent=True,
        )


@nox.session(requires=["wheels"])
def build(session: nox.Session) -> None:
    """Install all wheels into a clean environment and try the result."""
    install_wheels(session, PACKAGES)
    with session.chdir(session.create_tmp()):  # away from the tree, so that only the wheels answer
        session.run("python", str(ROOT / "tools" / "smoke_test.py"))


@nox.session(requires=["wheels"])
def distributions(session: nox.Session) -> None:
    """Check what would be uploaded: metadata, equal bytes of two builds, an install from it alone.

    Writes beside the wheels what was installed: `tested.txt`, versions that go together, for
    `pip install -r`, and `xstack.cdx.json`, a bill of materials in the form of CycloneDX.
    """
    session.install(*group("distributions"))
    session.run("twine", "check", "--strict", *map(str, files_of_dist()))
    work = Path(session.create_tmp()).resolve()
    again, downloads, clean = work / "again", work / "downloads", work / "clean"
    for folder in (again, downloads, clean):
        shutil.rmtree(folder, ignore_errors=True)
    for package in PACKAGES:
        folder = str(ROOT / "packages" / package)
        build = ("python", "-m", "build", "--no-isolation", "--outdir", str(again), folder)
        session.run(*build, silent=True)
    others = [path.name for path in files_of_dist()
              if path.read_bytes() != (again / path.name).read_bytes()]  # fmt: skip
    if others:
        session.error(f"a second build gives other bytes of {', '.join(others)}")
    needed = {r for package in PACKAGES
              for r in requirements_of_others(metadata_of(wheel_of(package)), ())}  # fmt: skip
    pip = ("python", "-m", "pip")
    session.run(*pip, "download", "--quiet", "--dest", str(downloads), *sorted(needed))
    session.run("python", "-m", "venv", str(clean))
    only_these = ("--no-index", "--find-links", str(DIST), "--find-links", str(downloads))
    session.run(*pip, "--python", str(clean), "install", "--quiet", *only_these, "xstack")
    with session.chdir(work):  # away from the tree, so that only the wheels answer
        bin_folder = clean / ("Scripts" if os.name == "nt" else "bin")
        smoke_test = str(ROOT / "tools" / "smoke_test.py")
        session.run(str(bin_folder / "python"), smoke_test, external=True)
    listed = session.run(*pip, "--python", str(clean), "list", "--format=freeze", silent=True)
    lines = [line for line in str(listed).splitlines() if "==" in line]
    installed = [line for line in lines if not line.startswith(("pip==", "setuptools=="))]
    (DIST / "tested.txt").write_text("\n".join(installed) + "\n")
    bill = ("--output-file", str(DIST / "xstack.cdx.json"), "--output-reproducible")
    session.run("cyclonedx-py", "environment", *bill, str(bin_folder / "python"))


@nox.session(requires=["wheels"])
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def tests_isolated(session: nox.Session, package: str) -> None:
    """Run one package's tests with only its declared dependencies, all from wheels."""
    install_wheels(session, closure(package))
    session.install(*group("isolated"))
    session.run("python", "-m", "pytest", f"packages/{package}/tests", *session.posargs)


@nox.session
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def tests_skew(session: nox.Session, package: str) -> None:
    """Try a package beside released siblings, and its release beside today's; see tools/skew.py.

    Arguments go on: `--as-released HEAD~5` takes a commit as the release of every package,
    `--tests own` leaves the composition tests out, what is left goes to pytest.
    """
    try_skew(session, package, *session.posargs)


@nox.session(default=False)
def tests_skew_sample(session: nox.Session) -> None:
    """Try all packages as `tests_skew` does, with a sample of their own tests, for a landing."""
    try_skew(session, *PACKAGES, "--tests", "own", "--sample", "25")


@nox.session(requires=["wheels"])
@nox.parametrize("python,jaxlib", PYTHON_AND_JAXLIB)
def tests_jaxlib(session: nox.Session, jaxlib: str) -> None:
    """Run what meets jaxlib on the oldest and the newest jaxlib; arguments go to pytest."""
    pinned = [f"jaxlib=={jaxlib}", f"jax=={jaxlib}"]
    install_wheels(session, PACKAGES, *pinned, *group("test"), extras=EXTRAS_OF_EXAMPLES)
    what = ["packages/xjit/tests", "packages/xpar/tests", "tests"]
    options = ("-n", "auto", "--dist=worksteal")
    session.run("python", "-m", "pytest", *options, *(session.posargs or what))


# ------------------------------------------------------------------------------------------ helpers


def install_editable(
    session: nox.Session, *, groups: Iterable[str] = (), extras: Iterable[str] = ()
) -> None:
    """Install all packages editable, what they need from others, and the groups."""
    needed = [requirement for name in groups for requirement in group(name)]
    session.install(*third_party(PACKAGES, extras=extras), *needed, "hatchling>=1.27", "editables")
    editable = [part for package in PACKAGES for part in ("-e", f"packages/{package}")]
    session.install("--no-deps", "--no-build-isolation", *editable)


def install_wheels(
    session: nox.Session, packages: list[str], *more: str, extras: Iterable[str] = ()
) -> None:
    """Install the wheels of some packages, without dependencies, and what these name of others."""
    paths = [wheel_of(package) for package in packages]
    check_ranges(session, paths)
    needed = sorted(
        {r for path in paths for r in requirements_of_others(metadata_of(path), extras)}
    )
    if needed or more:
        session.install(*needed, *more)
    session.install("--no-deps", *map(str, paths))


def try_skew(session: nox.Session, *arguments: str) -> None:
    """Run `tools/skew.py` in an environment without packages of ours: it builds them itself."""
    session.install(*third_party(PACKAGES), *group("skew"))
    parallel = {"PYTEST_ADDOPTS": "-n auto --dist=worksteal"}
    session.run("python", "tools/skew.py", *arguments, env=parallel)


def run_examples(session: nox.Session) -> None:
    """Run the examples of the docstrings and of the pages."""
    found = [str(path) for path in sources() if any(path.rglob("*.py"))]
    session.run("python", "-m", "pytest", "-q", "-n", "auto", "--doctest-modules", *found)
    settings = {"XSTACK_NUM_CPU_DEVICES": "8", "XDG_CACHE_HOME": session.create_tmp()}
    session.run("python", "tools/run_markdown.py", env=settings)


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group of the workspace."""
    return list(nox.project.dependency_groups(GROUPS, name))


def manifest(package: str) -> dict[str, Any]:
    """Return a package's `pyproject.toml`."""
    return tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())


def third_party(
    packages: list[str], *, extras: Iterable[str] = (), without: Iterable[str] = ()
) -> list[str]:
    """Return what packages need from others, as their `pyproject.toml` says."""
    found: dict[str, None] = {}
    for package in packages:
        project = manifest(package)["project"]
        optional = project.get("optional-dependencies", {})
        for requirement in [
            *project["dependencies"],
            *(r for e in extras for r in optional.get(e, [])),
        ]:
            if (
                not is_ours(Requirement(requirement))
                and Requirement(requirement).name not in without
            ):
                found[requirement] = None
    return list(found)


def closure(package: str) -> list[str]:
    """Return a package and every package of ours that it needs, lowest floor first."""
    required = map(Requirement, manifest(package)["project"]["dependencies"])
    names = {r.name.removeprefix("xstack-") for r in required if is_ours(r)} | {package}
    return [name for name in PACKAGES if name in names]


def sources() -> list[Path]:
    """Return the source folders of all packages."""
    return [ROOT / "packages" / package / "src" for package in PACKAGES]


def paths_of_tests() -> list[str]:
    """Return the test folders of all packages and the top one."""
    folders = [*(ROOT / "packages" / package / "tests" for package in PACKAGES), ROOT / "tests"]
    return [str(folder) for folder in folders if any(folder.rglob("test_*.py"))]


def is_ours(requirement: Requirement) -> bool:
    """Say whether a requirement names a package of this workspace."""
    return canonicalize_name(requirement.name).partition("-")[0] == "xstack"


def wheel_of(package: str) -> Path:
    """Return the wheel of a package in `dist/`."""
    stem = "xstack" if package == "xstack" else f"xstack_{package}"
    (path,) = DIST.glob(f"{stem}-[0-9]*.whl")
    return path


def files_of_dist() -> list[Path]:
    """Return the sdists and wheels that `wheels` built."""
    return sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])


def metadata_of(wheel: Path) -> Message:
    """Return the metadata that a wheel carries."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


def requirements_of_others(metadata: Message, extras: Iterable[str]) -> Iterator[str]:
    """Yield the requirements of a wheel that are not ours, with those of the extras."""
    for text in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        marker = requirement.marker
        wanted = marker is None or any(marker.evaluate({"extra": e}) for e in ["", *extras])
        if wanted and not is_ours(requirement):
            yield f"{requirement.name}{requirement.specifier}"


def check_ranges(session: nox.Session, paths: list[Path]) -> None:
    """Stop when a wheel's range of a sibling does not admit the sibling's wheel."""
    found = [metadata_of(path) for path in paths]
    version_by_name = {canonicalize_name(m["Name"]): Version(m["Version"]) for m in found}
    for metadata in found:
        for requirement in map(Requirement, metadata.get_all("Requires-Dist", [])):
            version = version_by_name.get(canonicalize_name(requirement.name))
            if is_ours(requirement) and (version is None or version not in requirement.specifier):
                session.error(f"{metadata['Name']} wants {requirement}, and the tree has {version}")


def let_pyenv_answer() -> None:
    """Let pyenv's `python3.x` commands run for every version that it has."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    minors = {python for python, _ in PYTHON_AND_JAXLIB}
    found = [v.name for v in sorted(root.glob("3.*")) if v.name.rpartition(".")[0] in minors]
    if found and "PYENV_VERSION" not in os.environ:
        own = ".".join(map(str, sys.version_info[:3]))
        os.environ["PYENV_VERSION"] = ":".join(sorted(found, key=lambda v: v != own))


let_pyenv_answer()
