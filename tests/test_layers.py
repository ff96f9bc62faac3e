"""The floors of the family hold, and the tools that hold them find what they should."""

import ast
import doctest
import functools
from pathlib import Path

import pytest

from tests.nets.cells import IN_FULL
from tools import code_metrics, layers, public_modules
from tools.run_markdown import blocks_of
from tools.site_pages import written_files

ROOT = Path(__file__).resolve().parents[1]
PAGES = written_files(["docs/**/*.md", "packages/*/README.md", "README.md"])


def problems(module: str, source: str) -> list[str]:
    return list(layers.check_module(module, source))


if IN_FULL:  # to read all files takes eight seconds: an ordinary run leaves it to `nox -s lint`

    @pytest.mark.fuzz
    def test_every_package_imports_only_what_lies_below_it():
        assert layers.check_workspace() == []


def test_the_lint_session_fails_where_a_package_imports_what_lies_above_it(monkeypatch, capsys):
    assert (
        '"layers"' in (ROOT / "noxfile.py").read_text().partition("def lint(")[2].split("def ")[0]
    )
    offences = ["packages/xad/src/xad/grad.py:1: xjit lies on the same floor"]
    monkeypatch.setattr(layers, "check_workspace", lambda: offences)
    assert layers.main() == 1 and offences[0] in capsys.readouterr().out
    monkeypatch.setattr(layers, "check_workspace", list)
    assert layers.main() == 0


def test_arrows_only_point_down_and_floor_three_stays_apart():
    for package, siblings in layers.SIBLINGS_BY_PACKAGE.items():
        for sibling in siblings:
            assert layers.FLOOR_BY_PACKAGE[sibling] < layers.FLOOR_BY_PACKAGE[package]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("xad.grad", "import xjit"),
        ("xad.grad", "from xbatch._vmap import vmap"),
        ("xnp.array", "from xad import grad"),
        ("xprim.rules", "import xnp.lax as lax"),
        ("xtree.registry", "import numpy as np"),
        ("xad.grad", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import xjit"),
        ("xad.grad", "xjit = late_import('xjit', 'few programs')"),
        ("xad.grad", "import scipy.special"),
        ("xjit.lowering.compile", "import jax"),
        ("xjit.jaxlib_gateway", "import jax"),
        ("xjit.lowering.compile", "from jaxlib import _jax"),
        ("xstack.numpy", "import jaxlib"),
    ],
)
def test_an_import_that_the_floors_forbid_is_found(module, source):
    assert len(problems(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("xad.grad", "import functools\nimport numpy as np\nfrom xnp import lax\nimport xtree"),
        ("xad.grad", "from . import jvp\nfrom .transpose import transpose\nimport xad.vjp"),
        ("xjit.jaxlib_gateway", "from jaxlib import _jax, xla_client"),
        ("xjit.jaxlib_gateway.client", "import jaxlib.lapack"),
        ("xpar.pmap", "import xjit, xbatch"),
    ],
)
def test_an_import_from_a_lower_floor_is_allowed(module, source):
    assert problems(module, source) == []


def test_an_import_inside_a_function_is_found_and_a_declared_late_import_is_not():
    source = "def plot():\n    import matplotlib.pyplot as plt\n    return plt"
    (found,) = problems("xstack.demo", source)
    assert found.startswith("2: matplotlib.pyplot is imported inside a function")
    assert problems("xad.grad", "def f():\n    import functools") != []
    late = "_plots = late_import('matplotlib.pyplot', 'the extra demo')"
    assert problems("xstack.demo", late) == []
    (found,) = problems("xad.grad", late)
    assert found == "1: xad may not import matplotlib: it is not among its dependencies"
    (found,) = problems("xstack.demo", f"def f():\n    {late}")
    assert found.startswith("2: matplotlib.pyplot is imported inside a function")


@pytest.mark.parametrize("source", [
    "import importlib\nimportlib.import_module(name)",
    "from importlib import import_module",
    "import builtins\nbuiltins.__import__ = f",
    "def f(name):\n    return __import__(name)",
])  # fmt: skip
def test_nothing_else_imports_late(source):
    assert len(problems("xjit.stages", source)) == 1
    assert problems("xtree.namespaces", source) == []


def test_code_of_text_is_made_in_one_module():
    source = "def f(text):\n    exec(compile(text, 'f', 'exec'))"
    found = problems("xjit.dispatch.jit", source)
    assert [line.partition(" is called")[0] for line in found] == ["2: exec", "2: compile"]
    assert problems("xtree.generated_code", source) == []
    assert problems("xjit.stages", "import re\nre.compile('a')\nf.compile()") == []


@pytest.mark.parametrize("source", [
    "import xjit",
    "def test_f():\n    import xbatch.vmap",
    "import pytest\nxjit = pytest.importorskip('xjit')",
    "from packages.xjit.tests import programs",
])  # fmt: skip
def test_a_test_that_needs_a_sibling_that_its_package_does_not_declare_is_found(source):
    (found,) = layers.check_test("xad", source)
    assert "a test of xad may not need x" in found
    assert list(layers.check_test("xstack", source)) == []
    assert (
        list(layers.check_test("xad", "import xad, xnp, jax\nfrom packages.xprim import a")) == []
    )


SHOWING = {
    "low": "from low import shown\n__all__ = ['f', *_NAMES, 'shown']\n_NAMES = ('g',)\nstate = 1",
    "low.shown": "__all__ = 'p q t'.split()\nclass A:\n    __slots__ = ('_host',)\n"
    "class T:\n    __dict__: dict\nt = T()",
    "low.hidden": "def h(): pass",
    "low._inside": "__all__ = ['h']",
    "low.again": "from low.shown import t\n__all__ = ['t']",
    "low.block": "with namespace(globals()):\n    from low.hidden import h as k, i as i",
    "low.star": "from low.shown import *\nif not X:\n    __all__ = ['s', *low.shown.__all__]",
}


@pytest.mark.parametrize(("source", "problem"), [
    ("from low.hidden import h", "1: low.hidden is not public"),
    ("import low.hidden", "1: low.hidden is not public"),
    ("from low import hidden", "1: low.hidden is not public"),
    ("from low._inside import h", "1: low._inside is not public"),
    ("from low import state", "1: low does not list state in __all__"),
    ("from low.block import h", "1: low.block does not list h in __all__"),
    ("import low.shown\n\nx = low.shown.r", "3: low.shown does not list r in __all__"),
    ("from low import shown\nx = shown.r", "2: low.shown does not list r in __all__"),
    ("def f(x):\n    return x._host", "2: ._host is read, which another package than high defines"),
    ("from low import f\nx = f.__dict__['a']", "2: f.__dict__ is read, an object of low.f"),
    ("from low import shown\nv = shown.p\nv.__dict__",
     "3: v.__dict__ is read, an object of low.shown.p"),
    ("def _host(): pass\nx._host", "2: ._host is read, which another package than high defines"),
])  # fmt: skip
def test_what_a_sibling_does_not_show_is_found(source, problem):
    found = list(public_modules.private_uses({**SHOWING, "high": source}))
    assert found == [f"high:{problem}"]


@pytest.mark.parametrize(("sources", "problem"), [
    ({"low": "", "low.hidden": "__all__ = ()"}, "low:1: has no __all__"),
    ({"low": "__all__ = ()", "low.hidden": "def h(): pass"}, "low.hidden:1: has no __all__"),
    ({"low": "from low.cut import cut as cut\n__all__ = ['cut']", "low.cut": "__all__ = ()"},
     "low.cut:1: hides behind low.cut.cut"),
])  # fmt: skip
def test_a_module_that_is_neither_public_nor_private_is_found(sources, problem):
    (found,) = public_modules.unclear_modules(sources)
    assert found.startswith(problem)


def test_modules_that_say_what_they_show_are_clear():
    sources = {
        "low": "from low import shown\nfrom low._cut import cut\n__all__ = ['shown', 'cut']",
        "low.shown": "__all__ = ['f']", "low._cut": "def cut(): pass", "low.own": "__all__ = ()",
    }  # fmt: skip
    assert list(public_modules.unclear_modules(sources)) == []
    assert "low.own" not in public_modules.shown_by(sources).names_by_module


def test_a_test_takes_from_siblings_what_they_show():
    shown = public_modules.shown_by(SHOWING)
    shown = public_modules.Shown(shown.names_by_module, shown.modules | {"high"})
    found = list(public_modules.private_uses_of_test("high", "from low.hidden import h", shown))
    assert found == ["1: low.hidden is not public"]
    own = "import high\nfrom low import f\nx = high._anything"
    assert list(public_modules.private_uses_of_test("high", own, shown)) == []


def not_public_on(text: str) -> list[str]:
    """Return what the programs of a page take of the packages that is not public."""
    found = []
    for block in blocks_of(text):
        prompts = doctest.DocTestParser().get_examples(block.code)
        program = "".join([p.source for p in prompts]) or block.code
        found += public_modules.private_uses_of_test("a page", program, shown_by_packages())
    return found


@functools.cache
def shown_by_packages() -> public_modules.Shown:
    """Return what every module of every package shows."""
    return public_modules.shown_by(public_modules.sources_of(ROOT, list(layers.FLOOR_BY_PACKAGE)))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_programs_of_pages_use_public_names_alone(page):
    assert not_public_on(page.read_text()) == []


def test_a_program_of_a_page_that_uses_what_is_not_public_is_found():
    assert list(blocks_of((ROOT / "docs/tutorials/xprim.md").read_text()))
    page = "```python\n>>> from xprim import Primitive\n>>> from xad._vjp import grad\n```\n"
    assert not_public_on(page) == ["2: xad._vjp is not public"]
    assert not_public_on("```python\nimport xprim\n\nxprim.hidden\n```\n") == [
        "3: xprim does not list hidden in __all__"
    ]


def test_one_module_runs_text_as_code():
    running = {
        path.relative_to(ROOT / "packages").as_posix()
        for path in ROOT.glob("packages/*/src/**/*.py")
        if "exec(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "exec"
    }
    assert running == {"xtree/src/xtree/generated_code.py"}


def test_what_a_sibling_shows_may_be_taken():
    source = """
    import low, low.shown
    from low import f, g, shown
    from low.shown import p, __all__
    from low.star import s, q
    from low.block import k, i
    from low.shown import *
    from low.again import t
    values = t
    x = values.__dict__
    x = shown.p, low.f, low.shown.q, low.__file__, x._make()
    class B:
        def f(self): self._own = self._own
    """
    text = "\n".join(line.strip(" ") if "def" not in line else line for line in source.split("\n"))
    assert list(public_modules.private_uses({**SHOWING, "high": text})) == []


def test_a_manifest_that_forgets_a_sibling_is_found(tmp_path):
    folder = tmp_path / "packages" / "xad"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "xad"\n'
        'dependencies = ["xstack-xtree", "xstack-xprim>=0.2,<0.3", "xstack-xjit>=0.2,<0.3"]\n'
    )
    found = list(layers.check_manifest(tmp_path, "xad"))
    assert [line.partition(": ")[2] for line in found] == [
        "the distribution is called xad, expected xstack-xad",
        "xad declares xjit, which the floors do not give it",
        "xad does not declare numpy, which the floors give it",
        "xad does not declare xnp, which the floors give it",
        "xstack-xtree is not a compatible-release range (>=0.1,<0.2)",
    ]


BRANCHES = "def f(a):\n" + "    if a:\n        b\n" * 4


def offences(source, exceptions=None, limit=4):
    measured = code_metrics.measure_source("src/a.py", source)
    return code_metrics.check_complexity(measured, limit, exceptions or {})


def test_a_function_above_the_limit_of_complexity_is_found():
    assert offences(BRANCHES) == ["src/a.py:1: f: complexity 5, limit 4"]
    assert offences(BRANCHES, limit=5) == []


def test_an_exception_needs_a_reason_and_may_not_be_idle():
    assert offences(BRANCHES, {"src/a.py::f": (5, "a table")}) == []
    assert offences(BRANCHES, {"src/a.py::f": (5, "")}) != []
    assert offences(BRANCHES + "    if a:\n        b\n", {"src/a.py::f": (5, "a table")}) == [
        "src/a.py:1: f: complexity 6, limit 5"
    ]
    assert offences("x = 1\n", {"src/a.py::f": (5, "a table")}) == [
        "pyproject.toml:1: the exception src/a.py::f is not needed"
    ]


def test_the_size_of_a_module_or_function_fails_no_build():
    assert offences("def f():\n" + "    a = 1\n" * 700) == []


@pytest.mark.parametrize(
    ("body", "complexity", "depth"),
    [
        ("return 1", 1, 0),
        ("if a:\n  b\nelif c:\n  d\nelse:\n  e", 3, 1),
        ("for a in b:\n  if a:\n    while a:\n      pass", 4, 3),
        ("return [a for a in b if a]", 2, 0),
        ("return a if b else c", 2, 0),
        ("try:\n  a\nexcept A:\n  b\nexcept B:\n  if c:\n    d", 4, 2),
        ("match a:\n  case 1:\n    b\n  case 2:\n    c\n  case _:\n    d", 3, 1),
        ("def g():\n  if a:\n    b\nreturn g", 1, 0),
        ("with a:\n  with b:\n    pass", 1, 2),
        ("if a:\n  b\nelse:\n  if c:\n    d\n  e", 3, 2),
    ],
)
def test_complexity_and_nesting_are_counted_as_documented(body, complexity, depth):
    source = "def f():\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    ast.parse(source)
    measured = code_metrics.measure_source("a.py", source)
    values = {m.measure: m.value for m in measured if m.name == "f"}
    assert (values["complexity"], values["nesting"]) == (complexity, depth)


def test_lines_of_code_are_those_with_more_than_comments_and_docstrings():
    source = """\"\"\"Two\nlines.\"\"\"\n\nx = (  # of three lines\n    1\n)\n# none\n"""
    function = 'def f():\n    """None."""\n    return "a\\\nb"\n'
    assert code_metrics.code_lines(source) == 3
    assert code_metrics.code_lines(source + function) == 6


def test_the_report_adds_up_the_core(tmp_path):
    for count, package in enumerate(layers.FLOOR_BY_PACKAGE, 1):
        folder = tmp_path / "packages" / package / "src" / package
        folder.mkdir(parents=True)
        (folder / "module.py").write_text("import os\n" * count)
        (folder / "testing.py").write_text("import os\n")
    lines = [line.split() for line in code_metrics.report(tmp_path)]
    value = {line[0]: int(line[1]) for line in lines}
    assert value.keys() >= {*layers.FLOOR_BY_PACKAGE, "core"}
    assert value["core"] == sum(value[p] for p in code_metrics.CORE) > 0
    assert value["imports"] == value["all"] == sum(value[p] for p in layers.FLOOR_BY_PACKAGE)


def test_modules_that_import_each_other_for_types_are_an_offence():
    below = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from xad.upper import Upper\n"
    sources = {"xad.lower": below, "xad.upper": "from xad.lower import Lower", "xad.other": ""}
    assert [*layers.check_cycles(sources)] == ["xad.lower: imports in a circle with xad.upper"]
    assert [*layers.check_cycles({**sources, "xad.lower": ""})] == []


def test_import_cycles_are_those_of_imports_that_run():
    sources = {
        "p": "",
        "p.a": "from p import b",
        "p.b": "from p.c import f",
        "p.c": "import p.a",
        "p.d": "if TYPE_CHECKING:\n    from p.e import f",
        "p.e": "import p.d\ndef f():\n    import p.e",
    }
    assert [sorted(cycle) for cycle in code_metrics.import_cycles(sources)] == [
        ["p.a", "p.b", "p.c"]
    ]


def test_every_transformation_of_another_package_is_there():
    """`optional_transforms.find` takes a name that is not there for an older version."""
    from xprim import optional_transforms

    for name in optional_transforms._MODULE_BY_NAME:
        assert callable(optional_transforms.find(name)), name
