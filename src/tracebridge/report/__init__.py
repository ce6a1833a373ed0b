"""What a run leaves behind: a folder of documents that people and programs can read."""

from tracebridge.report.figures import KeyFigures, key_figures
from tracebridge.report.folder import OutputFolder
from tracebridge.report.results import results_document
from tracebridge.report.summary import summary_markdown

__all__ = ["KeyFigures", "OutputFolder", "key_figures", "results_document", "summary_markdown"]
