"""How the manual is built: sphinx-build -W -n docs BUILD."""

from __future__ import annotations

import sys
from pathlib import Path

import tracebridge

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "tracebridge"
author = "the tracebridge authors"
copyright = "the tracebridge authors; GPL-3.0-or-later"  # noqa: A001
version = release = tracebridge.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference_pages"]
exclude_patterns = ["_ext"]
default_role = "literal"  # `name` in a docstring
smartquotes = False  # two hyphens are an option's
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_title = f"tracebridge {release}"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # property files in examples have no lexer

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_use_ivar = True
# What a signature names and the manual has no page for: types of other packages, and our own that are not public.
nitpick_ignore_regex = [("py:.*", r"(?!tracebridge\.).*"), ("py:class", r"tracebridge\.\w+\..*")]
