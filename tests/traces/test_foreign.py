from __future__ import annotations

from pathlib import Path

import pytest

from tracebridge.traces.files import InputFile
from tracebridge.traces.foreign import foreign_format


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b'{"sessionId": "s", "projectHash": "p", "messages": []}', "a Gemini CLI session"),
        (b'{"config": {}, "results": {}, "raw_eval_results": {}}', "a HAL upload"),
        (b'{"id": "t", "observations": [], "scores": []}', "a Langfuse trace"),
        (b'{"id": "r", "run_type": "llm", "trace_id": "t"}', "a LangSmith run"),
        (b"PK\x03\x04....word/document.xml....", None),
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
def test_a_real_file_that_is_known_by_sight(shared_data: Path) -> None:
    path = shared_data / "traces" / "atif" / "gemini-cli-trajectory.json"
    with InputFile(path, path.name) as file:
        assert foreign_format(file) == "a Gemini CLI session"
