"""What was measured: the corpus, how its runs ended, what was dropped, and what censored runs count as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from tracebridge.checking.result import number_from_json
from tracebridge.report.html.data_table import Cell, Column, DataTable, plain_table
from tracebridge.report.html.recorded_numbers import percent
from tracebridge.report.html.svg import drawing, element
from tracebridge.report.results import POLICIES, prior_text
from tracebridge.report.table import NOTHING
from tracebridge.traces.problems import counted
from tracebridge.traces.run_dates import dates_text

Document = Mapping[str, Any]

_MOST_ROWS = 40
_BAR_WIDTH, _BAR_HEIGHT = 760.0, 14.0

_POLICY_MEANING = {
    "censored": "completed runs only",
    "failure": "censored runs count as failures",
    "drop": "censored runs are left out",
}


def outcome_bar(outcomes: Mapping[str, int]) -> Markup:
    """How runs ended, as parts of one bar."""
    total = sum(outcomes.values())
    left, parts = 0.0, []
    for name, number in outcomes.items():
        width = _BAR_WIDTH * number / total if total else 0.0
        if width:
            shape = element("rect", x=left, y=0, width=width, height=_BAR_HEIGHT, class_=f"outcome-bar {name}")
            parts.append(element("g", element("title", f"{number} {name}"), shape))
        left += width
    shares = ", ".join(f"{number} {name}" for name, number in outcomes.items())
    return drawing(_BAR_WIDTH, _BAR_HEIGHT, *parts, key="outcomes", title="How runs ended", description=shares)


def corpus_facts(results: Document) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    corpus, fit = results["corpus"], results["fit"]
    length = corpus["length"]
    yield "runs", f"{corpus['n_runs']:,}"
    spread = f"{_some(length['min'])} to {_some(length['max'])} a run, median {_some(length['median'])}"
    yield "steps", f"{corpus['n_steps']:,} ({spread})"
    per_task = ", ".join(
        f"{tasks} with {counted(int(runs), 'run')}" for runs, tasks in list(corpus["runs_per_task"].items())[:6]
    )
    without = f"; {corpus['n_without_task']} runs name none" if corpus["n_without_task"] else ""
    yield "tasks", f"{corpus['n_tasks']:,}{f' ({per_task} each)' if per_task else ''}{without}"
    models = ", ".join(f"{name} ({number})" for name, number in list(corpus["models"].items())[:10])
    yield "models", models or "not recorded"
    yield "runs began", dates_text(corpus["dates"], corpus["n_runs"])
    yield "dropped", f"{counted(corpus['n_skipped'], 'bad record')}"
    yield "model", fit["model"] + (f", kappa {fit['kappa']:g}" if fit["kappa"] is not None else "")
    yield "states", f"{len(fit['states'])}, the ends of runs among them"
    yield "prior and support", prior_text(fit["prior"], fit["support"])
    yield "start", "as the runs did" if results["observed"] is None or results["observed"]["R"] else "see the notes"


def _some(value: float | None) -> str:
    return NOTHING if value is None else f"{value:g}"


def corpus_tables(results: Document) -> Iterator[DataTable]:
    """Files, terminations, kinds of steps, and the pass rate under each policy."""
    corpus, fit = results["corpus"], results["fit"]
    weighted = fit.get("weighted_pass_rate")
    rows = [
        [
            policy + (" (chosen)" if policy == fit["censored"] else ""),
            _POLICY_MEANING[policy],
            _rate(fit["pass_rate"][policy]),
            *([] if weighted is None else [_rate(weighted[policy])]),
        ]
        for policy in POLICIES
    ]
    heads = ["censored runs as", "the pass rate is over", "pass rate", *([] if weighted is None else ["weighted"])]
    yield plain_table("The pass rate of the runs, by what censored ones (whose end nobody saw) count as", heads, rows)
    files = [
        [Cell(each["path"]), Cell(each["format"]), _count(each["n_records"]), Cell(each["sha256"], code=True)]
        for each in corpus["files"][:_MOST_ROWS]
    ]
    columns = [Column("file"), Column("format"), Column("records", numeric=True), Column("SHA-256")]
    yield DataTable(caption=_first("Files", len(corpus["files"])), columns=columns, rows=files)
    if ends := corpus["terminations"]:
        yield DataTable(
            caption=_first("Why runs ended", len(ends)),
            columns=[Column("termination"), Column("runs", numeric=True)],
            rows=[[Cell(reason), _count(runs)] for reason, runs in list(ends.items())[:_MOST_ROWS]],
            sortable=True,
        )
    if steps := corpus["steps"]:
        most = max(each["n"] for each in steps.values())
        yield DataTable(
            caption=_first("Steps", len(steps)),
            columns=[Column("step"), Column("times", numeric=True), Column("with an error", numeric=True)],
            rows=[
                [Cell(name), Cell(f"{each['n']:,}", sort=each["n"], share=each["n"] / most), _count(each["n_errors"])]
                for name, each in list(steps.items())[:_MOST_ROWS]
            ],
            sortable=True,
        )


def _first(caption: str, number: int) -> str:
    return caption if number <= _MOST_ROWS else f"{caption} (the first {_MOST_ROWS} of {number})"


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", sort=number)


def _rate(text: str | None) -> str:
    if text is None:
        return "no run"
    rate = Fraction(number_from_json(text))
    exact = str(rate)
    return f"{exact} = {float(rate):.4f}" if len(exact) <= 20 else f"{float(rate):.4f}"


def corpus_remarks(results: Document) -> list[str]:
    """What else a reader must know about the corpus and the fit."""
    corpus = results["corpus"]
    skipped = [f"skipped: {problem}" for problem in corpus["problems"]]
    return [*skipped, *corpus["notes"], *results["fit"]["notes"]]


def outcome_words(outcomes: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """Of each outcome its name, how many runs had it, and their share."""
    total = sum(outcomes.values())
    return [(name, f"{n:,}", percent(n / total) if total else NOTHING) for name, n in outcomes.items()]
