"""Settings of the site, which ``python -m tools.website`` builds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import banditree

sys.path.insert(0, str(Path(__file__).parents[2]))  # for tools.website
sys.modules["banditree.clustering"] = banditree.clustering  # users find it there, and so does the reference

project = "banditree"
author = "the banditree authors"
project_copyright = "2026, the banditree authors"
version = release = banditree.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "tools.website.mathml",
    "tools.website.commands",
]
root_doc = "index"
default_role = "code"
nitpicky = False
napoleon_google_docstring = False

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_links_external_new_tab = False

autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # names and defaults; types are in the source
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
templates_path = [str(Path(__file__).with_name("templates"))]

html_theme = "pydata_sphinx_theme"
html_title = "banditree"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "banditree"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["sphinx-version"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 4,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def name_examples(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put a heading over the examples at the end of a docstring, which would belong to its parameters otherwise."""
    first = next((i for i, line in enumerate(lines) if line.startswith(">>>")), None)
    sections = [line for line in lines[:first] if line and set(line) == {"-"}]
    if first and sections and "Examples" not in lines[:first]:
        lines[first:first] = ["Examples", "--------", ""]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", name_examples, priority=400)  # before napoleon reads the sections
