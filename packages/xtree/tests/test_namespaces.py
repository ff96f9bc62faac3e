"""The public names of a module, written as imports: what is imported when, and what is shown."""

import builtins
import gc
import importlib
import os
import subprocess
import sys
import threading
import traceback
import types
import weakref

import pytest

from xtree import namespaces

HEAD = "from xtree.namespaces import namespace\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `shapes` whose `__init__` a test writes, and two modules of it."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    (folder / "plane.py").write_text("__all__ = ['square', 'circle']\nsquare, circle = 4, 0\n")
    (folder / "solid.py").write_text("cube, solid = 6, 'no module'\n")
    monkeypatch.syspath_prepend(tmp_path)

    def imported(text):
        (folder / "__init__.py").write_text(HEAD + text)
        importlib.invalidate_caches()
        return importlib.import_module("shapes")

    yield imported
    for name in [n for n in sys.modules if n.partition(".")[0] == "shapes"]:
        del sys.modules[name]


def test_a_name_is_imported_when_it_is_first_used(package):
    shapes = package(
        "with namespace(globals()):\n from shapes.solid import cube as cube, solid as s"
    )
    assert "shapes.solid" not in sys.modules and "cube" not in vars(shapes)
    assert shapes.cube == 6 and vars(shapes)["cube"] == 6
    assert shapes.s == "no module"


def test_dir_and_all_show_the_names_of_all_blocks_and_nothing_else(package):
    shapes = package(
        "import math\nwith namespace(globals()):\n from shapes.solid import cube as cube\n"
        "with namespace(globals(), at_once=True):\n from shapes.plane import square as square\n"
    )
    assert shapes.__all__ == ["cube", "square"]
    assert dir(shapes) == ["cube", "square"]
    assert "square" in vars(shapes) and shapes.math.pi > 3


def test_a_star_import_brings_the_names_and_not_the_values(package):
    shapes = package("with namespace(globals()):\n from shapes.plane import *")
    assert shapes.__all__ == ["square", "circle"] and "square" not in vars(shapes)
    brought = {}
    exec("from shapes import *", brought)
    assert brought["square"] == 4 and brought["circle"] == 0


def test_what_a_listing_module_imports_late_stays_late_where_its_list_is_shown(package):
    shapes = package(
        "with namespace(globals()):\n from shapes.solid import cube as cube\n"
        "from shapes.plane import square\n"
        "with namespace(globals(), at_once=True):\n from shapes.plane import circle as circle"
    )
    world = types.ModuleType("world")
    exec(HEAD + "with namespace(globals(), at_once=True):\n from shapes import *", vars(world))
    assert dir(world) == ["circle", "cube"]
    assert "circle" in vars(world) and "cube" not in vars(world)
    assert "shapes.solid" not in sys.modules
    assert world.cube == shapes.cube == 6 and vars(world)["cube"] == 6


def test_a_submodule_of_the_package_itself_is_imported(package):
    shapes = package("with namespace(globals()):\n from shapes import plane as plane")
    assert "shapes.plane" not in sys.modules
    assert shapes.plane is sys.modules["shapes.plane"]


def test_a_name_that_is_a_submodule_too_is_the_name_when_it_is_imported_at_once(package):
    shapes = package(
        "with namespace(globals(), at_once=True):\n from shapes.solid import solid as solid"
    )
    assert shapes.solid == "no module"


def test_a_block_may_ask_for_another_module_first(package):
    shapes = package(
        "with namespace(globals(), after='shapes.plane'):\n from shapes.solid import cube as cube"
    )
    assert "shapes.plane" not in sys.modules
    assert shapes.cube == 6 and "shapes.plane" in sys.modules


def test_an_unknown_name_is_an_error_that_names_the_nearest_and_the_hint(package):
    shapes = package(
        "def hint(module, name, near): return near or f'see the manual of {module}: {name}'\n"
        "with namespace(globals(), hint=hint):\n from shapes.plane import *"
    )
    with pytest.raises(AttributeError) as caught:
        shapes.sqare  # noqa: B018
    assert str(caught.value) == (
        "module 'shapes' has no attribute 'sqare'.\n  hint      did you mean 'square'?"
    )
    with pytest.raises(
        AttributeError, match=r"'pyramid'\.\n  hint      see the manual of shapes: pyr"
    ):
        shapes.pyramid  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute '__wrapped__'$"):
        shapes.__wrapped__  # noqa: B018


def test_an_import_of_an_unknown_name_says_what_its_use_says(package):
    package("with namespace(globals()):\n from shapes.plane import square, circle")
    with pytest.raises(ImportError, match=r"'sqare' from 'shapes'\.\n.*did you mean 'square'") as e:
        from shapes import sqare  # noqa: F401
    assert e.value.name == "shapes" and e.value.path.endswith("__init__.py")
    with pytest.raises(ImportError, match="cannot import name 'nothing_alike' from 'shapes'"):
        from shapes import nothing_alike  # noqa: F401
    with pytest.raises(AttributeError, match="did you mean 'square'"):
        sys.modules["shapes"].sqare  # noqa: B018


def test_a_name_that_its_module_does_not_have_is_pythons_own_error(package):
    shapes = package("with namespace(globals()):\n from shapes.plane import hexagon as hexagon")
    with pytest.raises(AttributeError, match=r"module 'shapes\.plane' has no attribute 'hexagon'"):
        shapes.hexagon  # noqa: B018


def test_a_module_that_lists_its_names_closes_its_namespace(package):
    shapes = package("import math\n__all__ = ['f']\nf = math.sin\nnamespace(globals()).close()")
    assert dir(shapes) == ["f"] and not hasattr(shapes, "g")


def test_an_error_in_a_block_leaves_imports_as_they_were(package):
    before = builtins.__import__
    with pytest.raises(ZeroDivisionError):
        package("with namespace(globals()):\n from shapes.solid import cube as cube\n 1 / 0")
    assert builtins.__import__ is before
    shapes = package("with namespace(globals()):\n from shapes.solid import cube as cube")
    assert builtins.__import__ is before and shapes.cube == 6


def test_imports_of_other_modules_pass_while_a_block_is_open(package):
    found = {}

    def another_thread():
        exec("from json.decoder import JSONDecoder", found)

    builtins._in_the_block = lambda: (
        thread := threading.Thread(target=another_thread),
        thread.start(),
        thread.join(),
    )
    try:
        package(
            "with namespace(globals()):\n import json\n _in_the_block()\n"
            " from shapes.solid import cube as cube"
        )
    finally:
        del builtins._in_the_block
    assert isinstance(found["JSONDecoder"], type)
    assert sys.modules["shapes"].json is sys.modules["json"]


def test_a_block_inside_of_another_does_not_close_it(package, tmp_path):
    inner = "with namespace(globals()):\n from shapes.plane import square as square"
    (tmp_path / "shapes" / "inner.py").write_text(HEAD + inner)
    shapes = package(
        "with namespace(globals()):\n from shapes.inner import *\n"
        " from shapes.solid import cube as cube\n"
    )
    assert shapes.__all__ == ["square", "cube"] and "shapes.solid" not in sys.modules
    assert (shapes.square, shapes.cube) == (4, 6)


def test_an_error_about_a_submodule_says_that_it_is_one(package):
    shapes = package("with namespace(globals()):\n from shapes.plane import square as square")
    with pytest.raises(AttributeError) as caught:
        shapes.solid  # noqa: B018
    assert str(caught.value) == (
        "module 'shapes' has no attribute 'solid'.\n"
        "  hint      it is a separate module: import shapes.solid"
    )


def test_python_adds_no_suggestion_to_ours(package):
    shapes = package("with namespace(globals()):\n from shapes.plane import square as square")
    with pytest.raises(AttributeError) as caught:
        shapes.sqare  # noqa: B018
    assert caught.value.name == "sqare"
    last = traceback.format_exception(caught.value)[-1]
    assert last.endswith("\n  hint      did you mean 'square'?\n")


def test_a_late_module_is_imported_when_something_of_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "late_example.py").write_text("value = 3")
    monkeypatch.syspath_prepend(tmp_path)
    late = namespaces.late_import("late_example", "it is an example")
    assert repr(late) == "<module 'late_example', imported late>"
    assert not hasattr(late, "__wrapped__")  # what `inspect` asks of all that a module holds
    assert "late_example" not in sys.modules
    assert late.value == 3
    with pytest.raises(AttributeError, match="late_example"):
        late.other  # noqa: B018
    monkeypatch.setattr(sys.modules.pop("late_example"), "value", 4)
    assert late.value == 3  # of the module that is there now


def test_a_late_module_that_is_not_installed_says_so_when_it_is_asked():
    late = namespaces.late_import("not_installed", "an extra installs it")
    with pytest.raises(ImportError, match="not_installed"):
        late.value  # noqa: B018


# --------------------------------------------------------------- the collector during an import


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Return what imports a module of the given text by name, and the collector's passes."""
    monkeypatch.syspath_prepend(tmp_path)
    passes = []
    threshold = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # this project's conftest sets a large one

    def note(phase, info):
        if phase == "start":
            passes.append(info["generation"])

    def run(text):
        (tmp_path / "made_here.py").write_text(text)
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "made_here", raising=False)
        gc.collect()
        del passes[:]
        gc.callbacks.append(note)
        try:
            return namespaces.import_by_name("made_here")
        finally:
            gc.callbacks.remove(note)

    yield run, passes
    sys.modules.pop("made_here", None)
    gc.enable()
    gc.set_threshold(*threshold)


MANY = "import gc\nwas_enabled = gc.isenabled()\nkept = [[] for _ in range(30_000)]\n"
WAIT = "import sys\nsys._begun.set()\nassert sys._may_end.wait(60)\n"


def test_the_collector_pauses_while_a_module_is_imported(imported, monkeypatch):
    run, passes = imported
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    # this project's conftest freezes what it collected, after which imports leave young objects
    monkeypatch.setattr(namespaces, "_FEW_FROZEN", frozen + 1)
    module = run(MANY)
    if frozen:
        gc.freeze()
    assert module.was_enabled and gc.isenabled()
    assert passes == [] and gc.get_threshold() == threshold


@pytest.fixture
def during_import(imported, monkeypatch):
    """Return what calls a function of this thread while another one is inside of an import."""
    monkeypatch.setattr(sys, "_begun", threading.Event(), raising=False)
    monkeypatch.setattr(sys, "_may_end", threading.Event(), raising=False)

    def run(function):
        thread = threading.Thread(target=imported[0], args=(WAIT,))
        thread.start()
        try:
            assert sys._begun.wait(60)
            function()
        finally:
            sys._may_end.set()
            thread.join()

    return run


def test_a_collector_that_another_thread_turns_off_stays_off(during_import):
    threshold = gc.get_threshold()
    during_import(gc.disable)
    assert not gc.isenabled()
    assert gc.get_threshold() == threshold


def test_a_threshold_that_another_thread_sets_stays_set(during_import):
    during_import(lambda: gc.set_threshold(1234, 9, 8))
    assert gc.get_threshold()[:2] == (1234, 9)


def test_two_imports_at_once_restore_the_threshold(during_import, tmp_path):
    threshold = gc.get_threshold()
    (tmp_path / "made_there.py").write_text("value = 1")
    importlib.invalidate_caches()
    during_import(lambda: namespaces.import_by_name("made_there"))
    assert sys.modules.pop("made_there").value == 1
    assert gc.get_threshold() == threshold


def test_what_a_module_made_counts_as_old(tmp_path):
    (tmp_path / "made_here.py").write_text(MANY)
    code = (
        "import gc; from xtree import namespaces; before = gc.get_freeze_count()\n"
        "namespaces.import_by_name('made_here'); young = gc.get_count()[0]\n"
        "print(young < 2000, gc.get_freeze_count() <= before, len(gc.get_objects(0)) < 2000)"
    )
    folders = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {"PYTHONPATH": folders}
    answer = subprocess.check_output([sys.executable, "-c", code], text=True, env=environment)
    assert answer.split() == ["True"] * 3


def test_the_collector_goes_on_after_a_failed_import(imported):
    run, _ = imported
    with pytest.raises(ZeroDivisionError):
        run(MANY + "1 / 0")
    assert gc.isenabled() and gc.get_threshold()[0] == 700


def test_a_collector_that_is_off_stays_off(imported):
    run, _ = imported
    gc.disable()
    try:
        run(MANY)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_objects_that_a_user_froze_stay_frozen(imported):
    run, _ = imported
    gc.freeze()  # as this project's conftest does, too
    before = gc.get_freeze_count()
    run(MANY)
    assert gc.get_freeze_count() > before // 2


def test_garbage_of_before_an_import_is_collected_later(imported):
    class Node:
        pass

    run, _ = imported
    node = Node()
    node.itself, seen = node, weakref.ref(node)
    del node
    run(MANY)
    gc.collect()
    assert seen() is None
