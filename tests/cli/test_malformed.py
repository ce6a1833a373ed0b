"""Malformed traces through the command line: every verb says, once, what is wrong with which file."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import resource
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tracebridge.cli import run

SAY = {"role": "assistant", "content": "hi"}
SIMULATION = {"id": "u", "reward_info": {"reward": 1.0}, "messages": [SAY]}
NATIVE = b'{"trace_id":"a","outcome":"success","steps":[{"name":"x"}]}\n'
TRAJECTORY = {"environment": "e", "trajectory": [{"action": "ls"}], "history": [], "info": {"exit_status": None}}


def inspect(**fields: Any) -> bytes:
    sample = {"id": 1, "epoch": 1, "messages": [SAY], **fields}
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [sample]}
    return json.dumps(log).encode()


def messages(**fields: Any) -> bytes:
    return json.dumps([{"messages": [SAY], "reward": 1, **fields}]).encode()


def zip_that_lies(claimed: int) -> bytes:
    """An archive whose directory claims a size that its few bytes cannot have."""
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", inspect())
        archive.writestr("samples/1_epoch_1.json", b" " * 1000)
    data = bytearray(stored.getvalue())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = claimed.to_bytes(4, "little")
    return bytes(data)


FINE = ""
# What stands in a file, large ones to be made, and the message that says so; FINE is read without one.
TEXTS: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "simulations without task, trial or termination": (
        json.dumps({"info": {}, "simulations": [SIMULATION]}).encode(),
        FINE,
    ),
    "a bare list without the wrapper": (json.dumps([SIMULATION]).encode(), FINE),
    "JSON Lines called .json": (
        json.dumps(SIMULATION).encode() + b"\n" + json.dumps(SIMULATION | {"id": "v"}).encode(),
        FINE,
    ),
    "no exit status": (json.dumps(TRAJECTORY).encode(), FINE),
    "a byte-order mark": (b"\xef\xbb\xbf" + NATIVE, FINE),
    "escape sequences of terminals": (
        NATIVE.replace(b'"x"', rb'"\u001b[31mred"'),
        r"corpus:1, record a, .*control character U\+001B",
    ),
    "escape sequences in texts": (messages(termination="\x1b[31mred"), FINE),
    "NUL": (NATIVE + NATIVE.replace(b"x", b"\0"), "corpus:2:.* NUL byte"),
    "NUL in a document": (messages().replace(b"hi", b"\0"), "NUL byte"),
    "invalid UTF-8": (NATIVE.replace(b"x", b"\xff"), "corpus:1:.* byte 0xff is not valid UTF-8"),
    "invalid UTF-8 in a document": (messages().replace(b"hi", b"\xff"), "byte 0xff is not valid UTF-8"),
    "UTF-16": (NATIVE.decode().encode("utf-16"), "UTF-16 text, where UTF-8 is needed"),
    "half a surrogate pair": (
        NATIVE.replace(b"x", rb"\ud800"),
        r"corpus:1: the escape \\ud800 is half of a surrogate pair",
    ),
    "a key twice": (NATIVE.replace(b'"x"', b'"x","name":"y"'), "corpus:1: the key 'name' stands twice"),
    "a key twice in a document": (
        messages().replace(b'"reward"', b'"reward": 0, "reward"'),
        "the key 'reward' stands twice",
    ),
    "a last line that breaks off": (NATIVE + NATIVE[:30], "corpus:2:.* the JSON text breaks off .*written to its end"),
    "a document that breaks off": (messages()[:-5], "corpus:1:.* the JSON text breaks off"),
    "nothing": (b"", "the file is empty"),
    "blank lines": (b"\n \n", "the file is empty"),
    "NaN": (NATIVE.replace(b'"x"', b'"x","confidence":NaN'), "corpus:1: 'NaN' is not a JSON number"),
    "Infinity": (NATIVE.replace(b'"x"', b'"x","duration":1e999'), "corpus:1: '1e999' is not a JSON number"),
    "an integer of many digits": (messages(reward="PLACE").replace(b'"PLACE"', b"9" * 5000), "cannot be decoded"),
    "a line of 50 MB": (lambda: NATIVE.replace(b'"x"', b'"x","text":"' + b"t" * 50_000_000 + b'"'), FINE),
    "a line of 70 MB": (
        lambda: NATIVE.replace(b'"x"', b'"x","text":"' + b"t" * 70_000_000 + b'"'),
        "corpus:1: the line is longer than 64 MiB",
    ),
    "nesting": (
        NATIVE.replace(b'"x"', b'"x","attributes":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001),
        "nested too deeply",
    ),
    "nesting in a document": (
        messages(x="PLACE").replace(b'"PLACE"', b"[" * 10_000 + b"]" * 10_000),
        "nested too deeply",
    ),
    "half a success": (messages(reward=0.5), "record 0, field reward: the reward 0.5 is neither 0 nor 1"),
    "half a success at a limit": (
        inspect(scores={"s": {"value": 0.375}}, limit={"type": "token"}),
        "0.375 is neither 0 nor 1",
    ),
    "annotators who disagree": (
        b"run_id,state,outcome\r\na,x,success\r\na,y,failure\r\n",
        "corpus:3, record a, field outcome: 'failure' contradicts 'success' above",
    ),
    "a gzip bomb": (
        lambda: gzip.compress(b'[{"messages": [], "reward": 1}' + b" " * (300 << 20), 1),
        "these are no logs",
    ),
    "a zstandard bomb": (
        lambda: zstandard.compress(b'[{"messages": [], "reward": 1}' + b" " * (300 << 20)),
        "bytes that decompress to .* these are no logs",
    ),
    "a zip bomb": (zip_that_lies(4_000_000_000), "bytes claim to hold 4,000,.*: this is no archive of logs"),
    "a zip that lies about a size": (zip_that_lies(900), "its size or checksum is not the recorded one"),
    "a zip without its end": (zip_that_lies(1000)[:-30], "the zip archive is damaged or cut off"),
    "gzip that breaks off": (gzip.compress(NATIVE * 100)[:-20], "compressed data are damaged or cut off"),
}


def told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str, *options: str, verbs: int = 4
) -> list[tuple[int, str]]:
    """Exit code and all that is said, of each verb that reads traces in its own way."""
    new = tmp_path / "new"
    commands: list[list[str]] = [
        ["traces", "validate", path],
        ["traces", "summary", path],
        ["traces", "convert", path, "-o", str(new)],
        ["fit", path, "-o", str(new)],
    ]
    found = []
    for command in commands[:verbs]:
        code = run([*command, *options])
        out, err = capsys.readouterr()
        assert new.exists() == (code == 0 and "-o" in command)
        assert not list(tmp_path.glob(".new*"))
        new.unlink(missing_ok=True)
        assert "internal error" not in err
        assert "\x1b" not in out + err
        found.append((code, err if code and command[1] != "validate" else out))
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    text_or_maker, message = TEXTS[name]
    data = text_or_maker() if callable(text_or_maker) else text_or_maker
    path = tmp_path / "corpus"
    path.write_bytes(data)
    is_large = len(data) > 10_000_000 or "bomb" in name
    for code, text in told(capsys, tmp_path, str(path), verbs=1 if is_large else 3 if message is FINE else 4):
        if message is FINE:
            assert code == 0
        else:
            assert code == 3
            assert len(re.findall(message, text)) == 1
            assert text.count("corpus") == 1


REAL = {
    "01_git_lfs_pointer.eval": (3, "this is a Git LFS pointer, .*git lfs pull"),
    "02_zip_method93_zstd_noscores_retries.eval": (0, FINE),
    "03_inspect_v1_NaN_accuracy_nosamples.json": (5, "no run"),
    "04_inspect_future_version4.json": (3, "version 4 of the log format is not known; 1 to 3 are"),
    "05_inspect_cancelled_zero_samples.json": (5, "no run"),
    "06_inspect_all_tool_error_types.json": (3, "record 0, field messages: a tool result that no tool call waits for"),
    "07_tau2_tasks_but_empty_simulations.json": (5, "no run"),
    "13_atif_schema_1.4_nonconforming_is_error.json": (
        3,
        "field schema_version: the schema version '1.4' is not one of",
    ),
    "14_atif_observation_content_is_object.json": (3, r"field steps\[1\].observation.results\[0\].content: Expected"),
    "15_atif_streamed_jsonl_header_no_footer.jsonl": (3, "being streamed, without its end"),
    "16_whowhen_string_bools_nested_escapes.json": (3, "selected because they failed"),
    "19_tau_trial_field_holds_task_index.json": (0, FINE),
    "22_react_text_halted_section.txt": (3, "the format is not recognised; the file holds text that starts"),
    "24_openhands_max_iteration_error_with_patch_TRIMMED.jsonl": (0, FINE),
    "25_confidence_unparseable_and_near_one.txt": (3, "the format is not recognised; the file holds text that starts"),
}


@pytest.mark.shared_data
def test_real_files(shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared_data / "malformed"
    assert {path.name for path in folder.iterdir()} == set(REAL)
    for name, (expected, message) in REAL.items():
        for code, text in told(capsys, tmp_path, str(folder / name), verbs=4 if expected else 3):
            assert code == expected, (name, text)
            assert re.search(message, text), (name, text)


def test_a_cancelled_evaluation_says_why_there_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(
        inspect().replace(b'"success"', b'"cancelled"', 1).replace(b'"samples": [', b'"samples": [], "x": [')
    )
    assert run(["traces", "summary", str(path)]) == 5
    assert (
        "note: file.json, field status: the evaluation did not end well (status 'cancelled')" in capsys.readouterr().err
    )
    assert run(["traces", "validate", str(path), "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["n_runs"] == 0


def test_outcomes_that_contradict_the_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.traj").write_text(json.dumps(TRAJECTORY))
    outcomes = tmp_path / "evaluation"
    (outcomes / "logs" / "one").mkdir(parents=True)
    (outcomes / "results.json").write_text('{"resolved": [], "unresolved_ids": ["one"]}')
    (outcomes / "logs" / "one" / "run_instance.log").write_text("resolved: True\n")
    for code, text in told(capsys, tmp_path, str(tmp_path / "one.traj"), "--outcomes", str(outcomes)):
        assert code == 3
        assert "one.traj, record one, field outcome: the outcomes of 'one' contradict each other" in text


def test_folders_whose_links_form_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "corpus"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file.jsonl").write_bytes(NATIVE)
    for name in ("a", "b", "c"):
        (folder / "inner" / name).symlink_to(folder, target_is_directory=True)
    (folder / "gone.jsonl").symlink_to("nowhere")
    for path in (folder, folder / "**", folder / "**" / "*.jsonl", folder / "**" / "inner" / "**" / "file.*"):
        assert run(["traces", "summary", str(path)]) == 0
        assert capsys.readouterr().out.startswith("1 run (1 success")
    run(["traces", "summary", str(folder)])
    assert "4 links are not read, to a folder or to nothing: gone.jsonl, inner/a, inner/b" in capsys.readouterr().err


def test_a_folder_that_cannot_be_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "file.jsonl").write_bytes(NATIVE)
    listed = os.scandir

    def scandir(path: str) -> Any:
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert run(["traces", "summary", str(tmp_path)]) == 3
    assert "secret: the folder cannot be listed: Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["summary", "validate"])
def test_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_bytes, args=(NATIVE,))
    writing.start()
    assert run(["traces", verb, str(pipe)]) == 0
    writing.join()
    assert "1 run" in capsys.readouterr().out


def written_bomb(path: Path, start: bytes, filling: bytes, megabytes: int) -> None:
    """A compressed file of a start and then one byte over and over, made without holding it in memory."""
    with path.open("wb") as stored:
        if path.suffix == ".gz":
            stream: Any = gzip.GzipFile(fileobj=stored, mode="wb", compresslevel=1)
        else:
            stream = zstandard.ZstdCompressor(level=1).stream_writer(stored, closefd=False)
        with stream:
            stream.write(start)
            for _ in range(megabytes):
                stream.write(filling * (1 << 20))


def test_bombs_take_bounded_memory(tmp_path: Path) -> None:
    written_bomb(tmp_path / "document.json.zst", b'[{"messages": [], "reward": 1}', b" ", 600)
    written_bomb(tmp_path / "lines.jsonl.gz", NATIVE + b'{"trace_id":"', b"x", 80)
    written_bomb(tmp_path / "lines.jsonl.zst", NATIVE.replace(b'"a"', b'"b"') + b'{"trace_id":"', b"x", 600)
    n_bytes = 800_000_000
    ended = subprocess.run(
        [sys.executable, "-m", "tracebridge", "traces", "validate", str(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3, ended.stderr
    problems = ended.stdout.splitlines()
    assert [line.partition(":")[0] for line in problems[:-1]] == [
        "document.json.zst",
        "lines.jsonl.gz",
        "lines.jsonl.zst",
    ]
    assert problems[-1] == "fine: 2 runs; not usable: 3 records"
