"""Sphinx settings of the site; `nox -s docs` builds it with warnings as errors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "xstack"
author = "the xstack authors"
copyright = f"2026, {author}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "generated_parts",
]
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature shows them; the Args section says what they mean
autodoc_class_signature = "separated"
python_maximum_signature_line_length = 88

# Classes are shown under the short name of their package and live in a module: two names for one.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = "xstack"
html_static_path = ["_static"]
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
