"""The report of an assessment as one HTML page."""

from tracebridge.report.html.page import render_html

__all__ = ["render_html"]
