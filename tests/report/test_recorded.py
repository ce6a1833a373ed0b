"""What is taken from a results.json that lies beside a chain.json: only what is sound."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tracebridge.report.recorded import recorded_standings

CHAIN = b'{"kind": "chain-fit"}'
GOOD = {
    "kind": "tracebridge-results",
    "files": {"chain.json": hashlib.sha256(CHAIN).hexdigest()},
    "standings": {
        "timing": {"scope": "timing", "verdict": "accept", "mark": None, "reasons": ["fine"]},
        "path": {
            "scope": "path",
            "verdict": "reject",
            "mark": "chain rejected",
            "reasons": ["a\x1b[31m" + "x" * 10_000],
        },
    },
}


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    (tmp_path / "chain.json").write_bytes(CHAIN)
    return tmp_path / "chain.json"


def test_verdicts_and_marks_of_both_scopes(chain: Path) -> None:
    assert recorded_standings(chain) is None
    (chain.parent / "results.json").write_text(json.dumps(GOOD))
    found = recorded_standings(chain)
    assert found is not None
    assert found.standings is not None
    assert {scope: (each.verdict, each.mark) for scope, each in found.standings.items()} == {
        "timing": ("accept", None),
        "path": ("reject", "chain rejected"),
    }
    (reason,) = found.standings["path"].reasons
    assert len(reason) < 600
    assert reason.isprintable()
    assert found.to_dict()["standings"]["timing"]["reasons"] == ["fine"]


def test_a_record_of_another_chain_says_nothing(chain: Path) -> None:
    (chain.parent / "results.json").write_text(json.dumps({**GOOD, "files": {"chain.json": "0" * 64}}))
    found = recorded_standings(chain)
    assert found is not None
    assert found.standings is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "{}",
        json.dumps({**GOOD, "kind": "other"}),
        json.dumps({**GOOD, "files": {"chain.json": 3}}),
        json.dumps({**GOOD, "standings": {}}),
        json.dumps(GOOD).replace("reject", "pass"),
        "\udcff",
    ],
)
def test_what_is_no_record_of_ours_is_left_alone(chain: Path, text: str) -> None:
    (chain.parent / "results.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert recorded_standings(chain) is None


def test_a_folder_of_that_name_is_no_record(chain: Path) -> None:
    (chain.parent / "results.json").mkdir()
    assert recorded_standings(chain) is None
