from __future__ import annotations

from pathlib import Path

import pytest

from tracebridge.traces.files import InputFile
from tracebridge.traces.foreign import foreign_format


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"PK\x03\x04....header.json....", "an Inspect log (.eval)"),
        (b"PK\x03\x04....word/document.xml....", None),
        (b'{"version": 2, "status": "success", "eval": {}}', "an Inspect log"),
        (b'{"environment": "e", "trajectory": []}', "a SWE-agent trajectory"),
        (b'{"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {}}', "an ATIF trajectory"),
        (b'{"resourceSpans": []}', "an OpenTelemetry trace (OTLP)"),
        (b'{"instance_id": "i", "history": []}', "an OpenHands log"),
        (b'{"type": "user", "sessionId": "s"}\n{}', "a Claude Code session"),
        (b'{"mistake_agent": "a", "history": []}', "a Who&When log"),
        (b'[{"role": "user", "content": "hi"}]', "a list of chat messages"),
        (b'{"a": 1}', None),
        (b"text", None),
    ],
)
def test_formats_known_by_sight(tmp_path: Path, content: bytes, name: str | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with InputFile(path, "file") as file:
        assert foreign_format(file) == name


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("inspect/*.eval", "an Inspect log (.eval)"),
        ("inspect/*.json", "an Inspect log"),
        ("swe_agent/*test-repo-i1.traj", "a SWE-agent trajectory"),
        ("atif/hello-world*.json", "an ATIF trajectory"),
        ("otel/*.json*", "an OpenTelemetry trace (OTLP)"),
        ("openhands/*.json*", "an OpenHands log"),
        ("claude_code/*.jsonl", "a Claude Code session"),
        ("who_when/*.json", "a Who&When log"),
    ],
)
def test_real_files_are_known_by_sight(shared_data: Path, pattern: str, name: str) -> None:
    paths = sorted((shared_data / "traces").glob(pattern))
    assert paths
    for path in paths:
        with InputFile(path, path.name) as file:
            assert foreign_format(file) == name
