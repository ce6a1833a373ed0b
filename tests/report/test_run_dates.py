"""When runs began: told in every account of the corpus, a limit where it is not known, and no part of the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.small_evidence import PROPERTIES, SETTINGS, edited, write_corpus

from tracebridge.cli import run
from tracebridge.pipeline import assess, replay
from tracebridge.report.evidence_reading import read_evidence

STARTS = ("2026-01-02T03:04:05+02:00", "2026-03-01T00:00:00", "in spring")
SPAN = "from 2026-01-02T01:04:05Z to 2026-03-01T00:00:00Z"


def assessed(folder: Path, n_dated: int) -> Path:
    """An assessment of forty runs, of which the first ones say when they began."""
    path = write_corpus(folder)
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    for i, record in enumerate(runs):
        record["attributes"] = {"started": STARTS[i % 2 if i < n_dated else 2]}
    path.write_text("".join(json.dumps(record) + "\n" for record in runs))
    (folder / "agent.props").write_text(PROPERTIES)
    assess([path], folder / "agent.props", output=folder / "out", **SETTINGS)
    return folder / "out"


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assessed(tmp_path_factory.mktemp("dated"), 40)


@pytest.fixture(scope="module")
def partly_dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assessed(tmp_path_factory.mktemp("partly"), 4)


def test_every_account_of_the_corpus_says_when_runs_began(
    dated: Path, partly_dated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, n_runs, text in (
        (dated, 40, SPAN),
        (partly_dated, 4, f"{SPAN} (4 of 40 runs; of the others it is not recorded)"),
    ):
        _, first, _, last = SPAN.split()
        dates = json.loads((folder / "results.json").read_text())["corpus"]["dates"]
        assert dates == {"n_runs": n_runs, "first": first, "last": last}
        assert f"When the runs began: {text}." in (folder / "summary.md").read_text()
        assert text in (folder / "report.html").read_text()
        assert run(["traces", "summary", str(folder.parent / "runs.jsonl")]) == 0
        assert f"runs began: {text}\n" in capsys.readouterr().out


def test_what_is_not_known_of_the_dates_is_a_limit(dated: Path, partly_dated: Path) -> None:
    known, unknown = (
        {each["id"]: each["statement"] for each in json.loads((folder / "evidence.json").read_text())["limits"]}
        for folder in (dated, partly_dated)
    )
    assert "unknown-dates" not in known
    assert unknown["unknown-dates"].startswith("When 36 of 40 runs began is not recorded")


def test_with_the_traces_a_changed_date_is_found(dated: Path, tmp_path: Path) -> None:
    traces = [dated.parent / "runs.jsonl"]
    evidence = read_evidence(dated / "evidence.json")
    changed = edited(evidence, ["results", "corpus", "dates", "last"], "2026-02-28T00:00:00Z")
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(changed.document))
    assert "results.corpus.dates.last" in {each.path for each in replay(path, traces).differences}


def test_dates_are_no_part_of_the_model(dated: Path, partly_dated: Path) -> None:
    assert (dated / "chain.json").read_bytes() == (partly_dated / "chain.json").read_bytes()
    results, others = (json.loads((folder / "results.json").read_text()) for folder in (dated, partly_dated))
    for told in ("corpus", "files"):  # of the summary, which says when
        del results[told], others[told]
    assert results == others
