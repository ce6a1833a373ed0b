"""Evidence of small corpora for the page, and a strict reader of what is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tracebridge.pipeline import assess
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_reading import evidence_of
from tracebridge.resources import packaged

Run = tuple[Sequence[str], str]

QUICK = {"draws": 100, "resamples": 20, "replicates": 19, "futures": 0, "engines": ("closed-form",)}

LONG_NAME = "x" * 149 + "/" + "y" * 150
HOSTILE_NAMES = (
    "<img src=x onerror=alert(1)>",
    "</script><script>document.title='run'</script>",
    "</style></svg></title><iframe src=javascript:alert(1)>",
    "\"' onmouseover='document.title=1' x=\"",
    "a\u202egnp.exe",
    "two\u2028lines\ufeff",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt;",
    "*stars* `ticks` | bar [link](javascript:alert(1))",
    LONG_NAME,
)

VOID = frozenset({"meta", "link", "br", "img", "input", "hr", "wbr"})


def hostile_runs() -> list[Run]:
    names = list(HOSTILE_NAMES)
    return [(names[k:] + names[:k], ("success", "failure", "censored")[k % 3]) for k in range(len(names))]


def write_runs(folder: Path, runs: Sequence[Run]) -> Path:
    """A file of runs, given as names of steps and an outcome."""
    path = folder / "runs.jsonl"
    rows = [
        {"trace_id": f"run-{k}", "task_id": f"task-{k % 7}", "outcome": outcome, "steps": [{"name": n} for n in names]}
        for k, (names, outcome) in enumerate(runs)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def evidence_of_runs(folder: Path, runs: Sequence[Run], properties: str | None = None, **options: Any) -> Evidence:
    """The evidence of runs as it is read back from JSON."""
    traces = write_runs(folder, runs)
    source = None
    if properties is not None:
        source = folder / "own.props"
        source.write_text(properties, encoding="utf-8")
    return reread(assess([traces], source, **(QUICK | options)).evidence)


def demo_evidence(folder: Path, **options: Any) -> tuple[Evidence, str, str]:
    """The evidence of the packaged corpus, and summary.md and report.html as assess wrote them."""
    traces = packaged("demo", "refund_agent.jsonl")
    found = assess([traces], output=folder / "out", **(QUICK | {"resamples": 50, "futures": 2} | options))
    summary, report = ((folder / "out" / name).read_text(encoding="utf-8") for name in ("summary.md", "report.html"))
    return reread(found.evidence), summary, report


def reread(evidence: Evidence) -> Evidence:
    return evidence_of(json.loads(json.dumps(evidence.document)))


class Page(HTMLParser):
    """A page read strictly: every element is closed in its turn, or this is no page.

    Attributes:
        elements: tag and attributes of each, in order. tables: the texts of the cells of each, row by row.
        text: all text outside style and script. raw: the content of each style and script element.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self._texts: list[str] = []
        self.raw: dict[str, list[str]] = {"style": [], "script": []}
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {self._open}"
        self.text = "".join(self._texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> ends nothing"
        assert self._open[-1] == tag, f"</{tag}> inside {self._open[-5:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside in self.raw:
            self.raw[inside].append(data)
            return
        self._texts.append(data)
        if ("td" in self._open or "th" in self._open) and "svg" not in self._open:
            self.tables[-1][-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def table(self, head: str) -> list[list[str]]:
        """The first table with this text in its first head."""
        return next(rows for rows in self.tables if rows[0][0].strip() == head)
