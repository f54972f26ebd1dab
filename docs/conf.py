"""How the documentation is built; warnings are errors in `python tools/check.py docs`."""

import sys
from pathlib import Path

import sklearn_ethiclens

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "sklearn-ethiclens"
author = "the sklearn-ethiclens developers"
copyright = f"2026, {author}"
version = release = sklearn_ethiclens.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "catalogue",
    "myst_parser",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "sg_execution_times.rst"]
html_theme = "alabaster"
html_theme_options = {"description": "Audit classifiers for group disparities", "page_width": "70em"}

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings state types with their shapes
numpydoc_show_class_members = False


def skip_generated(app, what, name, member, skip, options):
    """Leave out what scikit-learn generates on every estimator: its texts refer to pages of scikit-learn's own docs."""
    return skip or (name.startswith("set_") and name.endswith("_request") and "RequestMethod" in repr(member))


def setup(app):
    app.connect("autodoc-skip-member", skip_generated)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
}
