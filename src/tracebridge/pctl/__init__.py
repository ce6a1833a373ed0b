"""The property language: PRISM's property language with Storm's additions, from text to typed tree and back.

``pctl.lark`` is the reference of the language. A text becomes a :class:`~tracebridge.pctl.ast.PropertyFile`; constants,
label definitions and references to properties are substituted exactly; ``lint`` and ``portability`` say what is
doubtful and which tool takes what, and ``tool_form`` rewrites what a tool lacks; ``explain`` reads a formula aloud.
Nothing here knows a chain. The parser generator is loaded with the first text.
"""

from tracebridge.pctl import ast
from tracebridge.pctl.constants import resolve_constants
from tracebridge.pctl.constructs import CONSTRUCTS, Construct, ConstructSupport, construct_table
from tracebridge.pctl.evaluation import evaluate_constant, step_window
from tracebridge.pctl.experiment import Experiment
from tracebridge.pctl.explain import explain
from tracebridge.pctl.finding import Finding
from tracebridge.pctl.folding import fold_steps
from tracebridge.pctl.formatter import format_properties
from tracebridge.pctl.lint import lint
from tracebridge.pctl.parser import parse_formula, parse_properties, read_properties
from tracebridge.pctl.portability import ToolSupport, portability, tool_support
from tracebridge.pctl.printer import format_formula
from tracebridge.pctl.references import expand_labels
from tracebridge.pctl.rewrite import rewrite
from tracebridge.pctl.tool_syntax import tool_form

__all__ = [
    "CONSTRUCTS",
    "Construct",
    "ConstructSupport",
    "Experiment",
    "Finding",
    "ToolSupport",
    "ast",
    "construct_table",
    "evaluate_constant",
    "expand_labels",
    "explain",
    "fold_steps",
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
    "tool_form",
    "tool_support",
]
