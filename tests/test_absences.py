"""The page for who comes from JAX names what is not here: no less, and no more."""

import re
from pathlib import Path
from types import ModuleType

import pytest

import xstack
from tests.public_names import kept, resolve

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explain" / "coming_from_jax.md"
# Modules of JAX's own workings, and those whose own imports cannot be told from what they offer.
ASIDE = re.compile(
    r"extend|core|config|Array|testing|_utils|monitoring|jet|ode|example_libraries"
    r"|experimental\.\w*$|compilation_cache|serialize_executable|layout|experimental\.random"
    r"|sparse\.linalg$"
)
HOLDERS = ["", *(h.partition(".")[2] for h in kept() if "." in h and not ASIDE.search(h))]
HOLDERS += ["scipy.sparse.linalg", "experimental.sparse", "experimental.checkify"]
# Of meshes, which the packages above bring in a step of their own.
ON_THE_WAY = {"lax.pcast", "lax.with_sharding_constraint"}


def listed():
    """Return the names of the table, and the reasons."""
    section = PAGE.read_text().partition("## Names that stay out")[2]
    rows = re.findall(r"^\| (`.*`) \| (.+) \|$", section, re.MULTILINE)
    return {name: reason for names, reason in rows for name in re.findall(r"`([\w.]+)`", names)}


def is_here(holder, name):
    """Return whether a module or class of xstack, or one in it that is missing, has a name."""
    try:
        return hasattr(resolve(holder), name)
    except (ImportError, AttributeError):
        return False


def public_names(module):
    """Return the names that a module of JAX gives to users: no modules, nothing withdrawn."""
    names = [name for name in dir(module) if not name.startswith("_") and hasattr(module, name)]
    return [name for name in names if not isinstance(getattr(module, name), ModuleType)]


def test_every_name_of_the_table_is_absent_and_has_a_reason():
    table = listed()
    assert len(table) >= 15
    assert all(len(reason.split()) >= 4 for reason in table.values())
    here = [name for name in table if is_here(*f"xstack.{name}".rpartition(".")[::2])]
    assert not here, f"these are here: take them off the page: {here}"


MODULES = [module for module in kept() if not re.search("Array|_src|interpreters|extend", module)]


@pytest.mark.parametrize("module", MODULES)
def test_a_name_that_is_not_here_says_where_the_page_is(module):
    try:
        found = resolve(module)
    except ImportError:
        pytest.skip("of an optional distribution")
    if not isinstance(found, ModuleType) or not found.__name__.startswith("xstack"):
        return
    with pytest.raises(AttributeError, match=r"qzxqzx'\.\n.*docs/explain/coming_from_jax\.md"):
        found.qzxqzx  # noqa: B018


def test_modules_of_experiments_that_are_not_here_say_so_when_they_are_imported():
    with pytest.raises(ImportError, match=r"'pallas' from 'xstack.experimental'.\n  hint .*\.md"):
        from xstack.experimental import pallas  # noqa: F401
    with pytest.raises(ImportError, match="did you mean 'sparse'"):
        from xstack.experimental import sprase  # noqa: F401
    with pytest.raises(AttributeError, match=r"coming_from_jax\.md"):
        xstack.experimental.pallas  # noqa: B018
    assert not hasattr(xstack.experimental, "pallas")


def test_every_public_name_of_the_oracle_is_here_or_in_the_table():
    jax = pytest.importorskip("jax")
    if jax.__version_info__ < (0, 12):
        pytest.skip("the page is about JAX 0.12")
    absent = {
        f"{holder}.{name}".lstrip(".")
        for holder in HOLDERS
        for name in public_names(resolve(f"jax.{holder}".rstrip(".")))
        if not hasattr(resolve(f"xstack.{holder}".rstrip(".")), name)
    }
    assert absent - ON_THE_WAY - set(listed()) == set()
    assert hasattr(xstack, "lax")
