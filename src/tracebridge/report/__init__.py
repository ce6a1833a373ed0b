"""What a run leaves behind: a folder of documents that people and programs can read."""

from tracebridge.report.certificate import certificate_lines, certificate_markdown
from tracebridge.report.figures import KeyFigures, key_figures
from tracebridge.report.findings import Findings, PropertyFinding, marks_of
from tracebridge.report.folder import OutputFolder
from tracebridge.report.observed import ObservedCurve, observed_curve
from tracebridge.report.results import results_document
from tracebridge.report.summary import summary_markdown

__all__ = [
    "Findings",
    "KeyFigures",
    "ObservedCurve",
    "OutputFolder",
    "PropertyFinding",
    "certificate_lines",
    "certificate_markdown",
    "key_figures",
    "marks_of",
    "observed_curve",
    "results_document",
    "summary_markdown",
]
