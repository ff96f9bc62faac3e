"""Sphinx settings of the site; `nox -s docs` builds it with warnings as errors."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "xstack"
author = "the xstack authors"
copyright = f"2026, {author}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_codeautolink",
    "generated_parts",
    "reference_pages",
    "page_descriptions",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext", "examples"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

default_role = (
    "py:obj"  # `jit` in a docstring is a link where there is such a name, and code anyway
)
toc_object_entries_show_parents = "hide"

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature shows them; the Args section says what they mean
autodoc_class_signature = "separated"
python_maximum_signature_line_length = 88

# Classes are shown under the short name of their package and live in a module: two names for one.
suppress_warnings = [
    "ref.python",
    "config.cache",  # a function among the settings, which sphinx_codeautolink puts there
]

# The copy button takes the code of an example, without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Names in examples lead to the reference.
codeautolink_autodoc_inject = False
codeautolink_concat_default = True  # the blocks of a page are one program
codeautolink_custom_blocks = {"python": "example_blocks.code_of"}
codeautolink_global_preface = "import xstack\nimport xstack.numpy as xnp\nfrom xstack import lax"

# The gallery: each script of `examples` runs in the build and becomes a page with its output, its
# picture and a notebook.
os.environ.setdefault("STEPS", "150")  # the language model trains for a minute otherwise
os.environ.setdefault("XSTACK_NUM_CPU_DEVICES", "8")  # one process runs all scripts


def reset_options(_gallery: dict[str, Any], _script: str) -> None:
    """Undo what the script before has set for its process."""
    import xstack

    xstack.config.update("enable_x64", False)


# In the order of the gallery's pictures: what most people come for stands first.
_PAGES_OF_GALLERY = (
    "digits_classifier", "language_model", "autoencoder", "gaussian_process", "pendulum",
    "hamiltonian_monte_carlo", "kalman_filter", "heat_equation", "molecular_dynamics", "k_means",
    "sharded_training", "served_model",
)  # fmt: skip


def place_in_gallery(script: str) -> int:
    """Return the place of a script among the pages of the gallery."""
    return _PAGES_OF_GALLERY.index(Path(script).stem)


sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"server\.py$",
    "within_subsection_order": place_in_gallery,
    "reset_modules": ("matplotlib", reset_options),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_signature": False,
    "plot_gallery": "True",
    "backreferences_dir": None,
    "image_srcset": ["2x"],
}


def keep_links_of_gallery(_app: Any, page: str, source: list[str]) -> None:
    """Leave the names on pages of the gallery to sphinx-gallery, which links them itself."""
    if page.startswith("gallery/"):
        fields = ":orphan:\n\n" if source[0].startswith(":orphan:\n\n") else ""  # which come first
        source[0] = f"{fields}.. autolink-skip:: file\n\n{source[0].removeprefix(fields)}"


def setup(app: Any) -> None:
    """Connect what Sphinx calls."""
    app.connect("source-read", keep_links_of_gallery)


html_theme = "furo"
html_title = "xstack"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
