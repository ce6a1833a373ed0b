"""The studies of the literature, re-run: their tables with the printed figures beside ours, and what holds of them.

`STUDIES` has them by name and `run_study` runs one. A study asserts *statements*, each with the number it measured, its
bound and Monte-Carlo standard error; it says which printed figures do not come out, and why. The paper is Tran-Truong
and Le, "Measuring the Unmeasurable: Markov Chain Reliability for LLM Agents", arXiv:2604.24579.
"""

from tracebridge.studies.registry import ALL, STUDIES, Study, chosen_studies, run_study
from tracebridge.studies.result import Findings, StudyResult, Table
from tracebridge.studies.statement import FAILURE_CHANCE, Statement, StatementVerdict

__all__ = [
    "ALL",
    "FAILURE_CHANCE",
    "STUDIES",
    "Findings",
    "Statement",
    "StatementVerdict",
    "Study",
    "StudyResult",
    "Table",
    "chosen_studies",
    "run_study",
]
