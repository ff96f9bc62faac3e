"""Public names stay: each of the kept list resolves through `xstack`, and only when asked for."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import xnp
import xrandom
import xstack
from tests.public_names import grown, kept, missing, resolve
from xstack.namespaces import hint_for

ROOT = Path(__file__).parents[1]
NAMES = kept()


@pytest.mark.parametrize("holder", NAMES)
def test_every_kept_name_resolves(holder):
    absent = missing(holder, NAMES[holder])
    assert not absent, f"{holder} no longer answers to {', '.join(absent)}"


def test_everything_that_the_array_functions_list_can_be_imported_at_once():
    namespace: dict[str, object] = {}
    exec("from xstack.numpy import *", namespace)
    assert namespace["linalg"] is xstack.numpy.linalg and callable(namespace["zeros"])


def test_the_list_is_sorted_and_without_repeats():
    for names in NAMES.values():
        assert names == sorted(set(names))


def test_names_of_modules_are_found_by_dir():
    for holder in ("xstack", "xstack.numpy", "xstack.lax", "xstack.tree", "xstack.errors"):
        private = [n for n in NAMES[holder] if n.startswith("_")]
        assert set(NAMES[holder]) - set(private) <= set(dir(resolve(holder))), holder


def test_a_name_that_goes_away_is_found_and_a_list_only_grows():
    assert missing("xstack.tree", ["map", "no_such_name"]) == ["no_such_name"]
    assert missing("xstack.no_such_module", ["a"]) == ["a"]
    more = grown(
        {"xstack.tree": ["gone"]}, {"xstack.tree": ["map", "no_such_name"], "xstack.x": ["a"]}
    )
    assert more == {"xstack.tree": ["gone", "map"]}


def test_an_unknown_name_is_an_attribute_error_that_names_the_module():
    with pytest.raises(AttributeError, match="module 'xstack' has no attribute 'no_such_name'"):
        xstack.no_such_name  # noqa: B018


def test_a_name_imports_its_own_package_and_no_other():
    code = (
        "import sys, xstack\n"
        "def loaded(): return {m for m in sys.modules if m in ('xad', 'xbatch', 'xjit', 'xpar')}\n"
        "assert loaded() == set(), loaded()\n"
        "xstack.grad\n"
        "assert loaded() == {'xad'}, loaded()\n"
        "xstack.vmap\n"
        "assert loaded() == {'xad', 'xbatch'}, loaded()\n"
        "xstack.jit\n"
        "assert loaded() == {'xad', 'xbatch', 'xjit'}, loaded()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


NAMESPACES = [
    "xtree", "xprim", "xnp", "xnp.lax", "xnp.linalg", "xnp.numpy", "xrandom", "xad", "xbatch",
    "xjit", "xpar", "xstack", "xstack.numpy", "xstack.lax", "xstack.random", "xstack.nn",
]  # fmt: skip
EVERY_MODULE = """
import importlib, pkgutil, sys, types
names = sys.argv[1].split()
for package in names[:]:
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if "demo" not in found.name and not found.name.endswith("__main__"):
            names.append(found.name)
            importlib.import_module(found.name)
public = [name for name in names if getattr(sys.modules[name], "__all__", ())]
for name in public:
    module = sys.modules[name]
    assert len(module.__all__) == len(set(module.__all__)), name
    assert dir(module) == sorted(module.__all__), f"{name} lacks __dir__ = __all__.copy"
for name in sys.argv[2].split():
    module = importlib.import_module(name)
    for each in module.__all__:
        value = getattr(module, each)
        if isinstance(value, types.ModuleType) and value.__name__ == f"{name}.{each}":
            assert getattr(value, "__all__", ()), f"{name}.{each} is a module"
print(len(public))
"""


def test_no_name_is_hidden_by_a_module_and_dir_shows_the_listed_names_alone():
    packages = " ".join({name.partition(".")[0]: 0 for name in NAMESPACES})
    result = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE, packages, " ".join(NAMESPACES)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 300  # every public module, whoever looks at it


@pytest.mark.parametrize("holder", [xnp.lax, xnp.linalg, xrandom], ids=lambda m: m.__name__)
def test_what_a_module_of_a_folder_lists_is_what_the_folder_shows_of_it(holder):
    for name, home in vars(holder)["_home_by_name"].items():
        if home.module.startswith(holder.__name__) and home.module != holder.__name__:
            listed = getattr(importlib.import_module(home.module), "__all__", ()) or [name]
            assert name in listed, f"{home.module} does not list {name}"
            assert {*listed} <= {*holder.__all__}, home.module


@pytest.mark.parametrize("holder", [h for h in NAMES if isinstance(resolve(h), ModuleType)])
def test_dir_shows_public_names_and_nothing_else(holder):
    shown = dir(resolve(holder))
    private = [name for name in shown if name.startswith("_") and not name.endswith("__")]
    assert shown and not private  # names of the array API standard are between underscores
    assert shown == sorted(resolve(holder).__all__)


@pytest.mark.parametrize(("holder", "name", "nearest"), [
    ("xstack", "custom_partitioning", None), ("xstack", "vmpa", "vmap"),
    ("xtree", "flaten", "flatten"),
    ("xstack.numpy", "snh", "sinh"), ("xstack.random", "norml", "normal"),
    ("xnp.nn", "rleu", "relu"),
    ("xstack.lax", "scann", "scan"), ("xstack.numpy.linalg", "slogdte", "slogdet"),
])  # fmt: skip
def test_an_error_about_a_misspelt_name_suggests_the_nearest(holder, name, nearest):
    with pytest.raises(AttributeError) as caught:
        getattr(resolve(holder), name)
    hint = "names of JAX that are not here" if nearest is None else f"did you mean {nearest!r}?"
    assert str(caught.value).startswith(f"module {holder!r} has no attribute {name!r}.\n  hint")
    assert hint in str(caught.value)


def test_the_page_of_absences_that_errors_name_is_there():
    (page,) = re.findall(r"docs/\S+", hint_for("xstack", "no_such_name", ""))
    text = (Path(__file__).resolve().parents[1] / page).read_text()
    assert "## What is not there yet" in text


def test_names_in_the_readmes_are_there_after_the_import_of_their_package_alone():
    texts = "".join(path.read_text() for path in ROOT.glob("packages/*/README.md"))
    names = sorted(set(re.findall(r"`(x[a-z]+(?:\.[a-z_]+)+)", texts)))
    assert "xpar.distributed.initialize" in names
    program = (
        "import functools, importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    package, *parts = name.split('.')\n"
        "    functools.reduce(getattr, parts, importlib.import_module(package))\n"
    )
    subprocess.run([sys.executable, "-c", program, *names], check=True)
