"""A short summary in GitHub-flavoured Markdown, as a job on GitHub shows it (``$GITHUB_STEP_SUMMARY``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tracebridge.report.junit import is_advisory
from tracebridge.report.markdown import escape, table
from tracebridge.report.standings import told_once
from tracebridge.report.table import NOTHING, format_number
from tracebridge.traces.problems import counted
from tracebridge.traces.run_dates import dates_text

#: So many properties are listed, those first that are not satisfied; GitHub takes no more than 1 MiB a step.
SHOWN_PROPERTIES = 50

_SHOWN_CHARACTERS = 300
_SHOWN_NAMES = 3
_ORDER = ("error", "violated", "undecided", "unsupported", "satisfied", "answered")


def github_summary(document: Mapping[str, Any], *, title: str = "tracebridge") -> str:
    """The summary: one sentence, the corpus, the verdict table, what the certificate says.

    Args:
        document: what results.json holds (`Evidence.results`), or what `check` writes with ``--json``.
        title: of the section.
    """
    return "\n\n".join([f"## {escape(title)}", *_parts(document)]) + "\n"


def _parts(document: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        (", ".join(f"{name}={value}" for name, value in point.get("constants", {}).items()), position, item)
        for point in document.get("points", [document])
        for position, item in enumerate(point["properties"], start=1)
    ]
    rows.sort(key=lambda row: _ORDER.index(_verdict(row[2])))
    yield f"**{_sentence([item for _, _, item in rows])}** Exit code {document['exit_code']}."
    corpus = document.get("corpus")
    if corpus is not None:
        yield " ".join(f"{escape(line)}." for line in corpus_lines(corpus))
    yield table(
        ["property", "verdict", "value", "interval", "engines"],
        [_row(at, position, item) for at, position, item in rows[:SHOWN_PROPERTIES]],
    )
    if len(rows) > SHOWN_PROPERTIES:
        yield f"{len(rows) - SHOWN_PROPERTIES} more properties are not shown."
    standings = document.get("standings") or (document.get("certificate") or {}).get("standings") or {}
    for scope, standing in told_once(standings).items():
        why = "; ".join(standing["reasons"][:3])
        yield f"Certificate for {escape(scope)}: **{escape(standing['verdict'])}**{f' ({_cell(why)})' if why else ''}."


def _sentence(items: Sequence[Mapping[str, Any]]) -> str:
    """How many properties have which verdict, the worst first."""
    found = Counter(_verdict(item) for item in items)
    parts = [f"{found[verdict]} {verdict}" for verdict in _ORDER if found[verdict]]
    apart = sum(item["agree"] is False for item in items)
    warning = f" THE ENGINES DISAGREE on {apart}." if apart else ""
    return f"{', '.join(parts) or 'nothing was checked'}.{warning}"


def _verdict(item: Mapping[str, Any]) -> str:
    return item["verdict"] or "answered"


def _row(at: str, position: int, item: Mapping[str, Any]) -> list[str]:
    name = item["name"] or f"#{position}"
    requirement = item["annotations"].get("requirement")
    name = f"{requirement}: {name}" if requirement else name
    verdict = _verdict(item)
    if item["verdict"] not in (None, "satisfied") and is_advisory(item):
        verdict += " (advisory)"
    marks = item.get("marks")
    if marks:
        verdict += f" ({', '.join(marks)})"
    agreed = {True: "agree", False: "DISAGREE", None: "one engine"}[item["agree"]]
    cells = [f"{name} [{at}]" if at else name, verdict, value_cell(item), interval_cell(item), agreed]
    return [cell[:_SHOWN_CHARACTERS] for cell in cells]


def corpus_lines(corpus: Mapping[str, Any]) -> tuple[str, str]:
    """What was measured, and when and on whom: two lines without a full stop, from the ``corpus`` of results.json."""
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in corpus["outcomes"].items())
    size = f"{counted(corpus['n_runs'], 'run')} ({outcomes}), {counted(corpus['n_steps'], 'step')}"
    names = _first([file["path"] for file in corpus["files"]])
    models = f"; models: {_first([*corpus['models']])}" if corpus["models"] else ""
    return f"{size}, from {names}", f"When runs began: {dates_text(corpus['dates'], corpus['n_runs'])}{models}"


def _first(names: Sequence[str]) -> str:
    """The first names, each cut, and how many more there are."""
    shown = ", ".join(name[:_SHOWN_CHARACTERS] for name in names[:_SHOWN_NAMES])
    return shown + (f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else "")


def interval_cell(item: Mapping[str, Any]) -> str:
    """The posterior interval of a property's number."""
    found = item["uncertainty"]
    interval = None if found is None else found["interval"]
    return NOTHING if interval is None else f"[{_number(interval['lower'])}, {_number(interval['upper'])}]"


def value_cell(item: Mapping[str, Any]) -> str:
    """The value of the first engine that has one, else the truth."""
    for found in item["engines"]:
        if found["value"] is not None:
            return _number(found["value"]["value"])
        if found["truth"] is not None:
            return str(found["truth"]).lower()
    return NOTHING


def _number(value: float | str) -> str:
    """A number as JSON values carry it; rationals of any length."""
    if isinstance(value, str) and value[-1:].isdigit():
        from flint import fmpz

        top, _, bottom = value.partition("/")
        return format_number(Fraction(int(fmpz(top)), int(fmpz(bottom or "1"))), 4)
    return format_number(float(value), 4)


def _cell(text: str) -> str:
    return escape(text[:_SHOWN_CHARACTERS])
