"""The property language: PRISM's property language for DTMCs, with annotations, from text to typed tree and back.

``pctl.lark`` is the reference of the language. A text becomes a :class:`~tracebridge.pctl.ast.PropertyFile`; constants
and label definitions are substituted exactly; ``lint`` and ``portability`` say what is doubtful and which tool takes
what; ``explain`` reads a formula aloud. Nothing here knows a chain. The parser generator is loaded with the first text.
"""

from tracebridge.pctl import ast
from tracebridge.pctl.constants import resolve_constants
from tracebridge.pctl.evaluation import evaluate_constant, step_window
from tracebridge.pctl.explain import explain
from tracebridge.pctl.finding import Finding
from tracebridge.pctl.formatter import format_properties
from tracebridge.pctl.lint import lint
from tracebridge.pctl.parser import parse_formula, parse_properties, read_properties
from tracebridge.pctl.portability import portability
from tracebridge.pctl.printer import format_formula
from tracebridge.pctl.rewrite import rewrite

__all__ = [
    "Finding",
    "ast",
    "evaluate_constant",
    "explain",
    "format_formula",
    "format_properties",
    "lint",
    "parse_formula",
    "parse_properties",
    "portability",
    "read_properties",
    "resolve_constants",
    "rewrite",
    "step_window",
]
