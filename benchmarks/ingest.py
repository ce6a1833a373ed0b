"""Reading traces of every format against msgspec decoding the same bytes into untyped objects.

python benchmarks/ingest.py [--steps 100000] [--only jsonl,inspect] [--repeat 3] [--sizes 100000,1000000,10000000]
python benchmarks/ingest.py --memory [--sizes 100000,1000000,10000000]

The script makes its own corpora: runs of about twenty steps with texts, errors and three outcomes. A ratio of 2 means
twice the CPU time that the yardstick takes: msgspec for JSON, splitting by csv.reader for CSV, batches as lists by
pyarrow for Parquet. Of formats with one run a file there are fewer steps, and opening the files counts too. With
``--memory`` each size is read in a process of its own, which says how much memory it took at most.

Then a native corpus of each size is fitted by one process, by two, by a local Dask cluster and from a manifest, with
the peak of memory (`scale.py`).
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from make_corpus import runs
from scale import MIB, compare_ways, own_peak
from tracebridge.traces import Outcome, Step, Trace, open_traces, write_traces

Run = dict[str, Any]
encode = msgspec.json.Encoder().encode
SUCCESS, FAILURE = "success", "failure"


# ---------------------------------------------------------------- one run in each format


def reward(run: Run) -> float:
    return float(run["outcome"] == SUCCESS)


def chat(run: Run, *, flat_calls: bool = False) -> list[Run]:
    """Messages in OpenAI's form, or in tau2-bench's: a call, and its result."""
    messages: list[Run] = [
        {"role": "system", "content": "You are an agent. " * 30},
        {"role": "user", "content": "Do it."},
    ]
    for i, step in enumerate(run["steps"]):
        arguments = {"command": step["attributes"]["path"], "timeout": 30}
        call: Run = {"id": f"c{i}", "name": step["name"], "arguments": arguments}
        if not flat_calls:
            call = {"id": f"c{i}", "type": "function", "function": call | {"arguments": json.dumps(arguments)}}
            del call["function"]["id"]
        messages.append({"role": "assistant", "content": step["text"], "tool_calls": [call]})
        result = {"role": "tool", "tool_call_id": f"c{i}", "content": ("Error: " * step["error"]) + step["text"] * 3}
        messages.append(result | ({"error": step["error"]} if flat_calls else {}))
    return messages


def tau2(run: Run) -> Run:
    return {
        "id": run["trace_id"],
        "task_id": run["task_id"],
        "trial": 0,
        "termination_reason": "user_stop" if run["outcome"] != "censored" else "max_steps",
        "reward_info": {"reward": reward(run), "reward_basis": ["DB"]},
        "messages": chat(run, flat_calls=True),
    }


def trajectory(run: Run) -> Run:
    turns = [
        {
            "action": f"{step['name']} {step['attributes']['path']}",
            "observation": step["text"] * 3,
            "response": step["text"],
            "thought": step["text"],
            "execution_time": step["duration"],
            "state": '{"open_file": "n/a", "working_dir": "/repo"}',
        }
        for step in run["steps"]
    ]
    return {"environment": "e", "trajectory": turns, "history": chat(run), "info": {"exit_status": "submitted"}}


def atif(run: Run) -> Run:
    steps: list[Run] = [
        {
            "step_id": i,
            "source": "agent",
            "message": step["text"],
            "tool_calls": [{"tool_call_id": f"c{i}", "function_name": step["name"], "arguments": {"x": step["text"]}}],
            "observation": {"results": [{"source_call_id": f"c{i}", "content": step["text"] * 3}]},
            "metrics": {"prompt_tokens": step["tokens"], "completion_tokens": 7},
        }
        for i, step in enumerate(run["steps"], 1)
    ]
    return {"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": steps}


def sample(run: Run) -> Run:
    messages = chat(run, flat_calls=True)
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"] = call.pop("name")
        if message["role"] == "tool":
            message["error"] = {"type": "unknown", "message": "?"} if message["error"] else None
    value = {SUCCESS: "C", FAILURE: "I"}.get(run["outcome"])
    scores = {} if value is None else {"match": {"value": value, "answer": "x"}}
    return {"id": run["trace_id"], "epoch": 1, "input": "x", "messages": messages, "scores": scores, "metadata": {}}


def spans(run: Run) -> Run:
    def attributes(**values: str) -> list[Run]:
        return [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in values.items()]

    made = [
        {
            "traceId": run["trace_id"],
            "spanId": f"{i:016x}",
            "name": f"execute_tool {step['name']}",
            "startTimeUnixNano": str(10**18 + i),
            "endTimeUnixNano": str(10**18 + i + 1),
            "attributes": attributes(
                gen_ai__operation__name="execute_tool",
                gen_ai__tool__name=step["name"],
                gen_ai__tool__call__result=step["text"],
            ),
            "status": {"code": 2} if step["error"] else {},
        }
        for i, step in enumerate(run["steps"])
    ]
    return {
        "resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "x"}, "spans": made}]}]
    }


def openhands(run: Run) -> Run:
    history: list[Run] = []
    for i, step in enumerate(run["steps"]):
        history += [
            {"id": 2 * i, "timestamp": "t", "source": "agent", "action": "run", "args": {"command": step["text"]}},
            {"id": 2 * i + 1, "timestamp": "t", "source": "agent", "cause": 2 * i, "observation": "run",
             "content": step["text"] * 3, "extras": {"metadata": {"exit_code": int(step["error"])}}},
        ]  # fmt: skip
    report = {"resolved": run["outcome"] == SUCCESS}
    return {"instance_id": run["trace_id"], "instruction": "x", "metadata": {}, "history": history, "report": report}


def session(run: Run) -> Iterator[Run]:
    parent = None
    for i, step in enumerate(run["steps"]):
        use = {"type": "tool_use", "id": f"c{i}", "name": step["name"], "input": {"path": step["text"]}}
        result = {"type": "tool_result", "tool_use_id": f"c{i}", "is_error": step["error"], "content": step["text"] * 3}
        for kind, message in (
            (
                "assistant",
                {"id": f"m{i}", "role": "assistant", "content": [{"type": "text", "text": step["text"]}, use]},
            ),
            ("user", {"role": "user", "content": [result]}),
        ):
            uuid = f"{kind}-{i}"
            yield {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": run["trace_id"], "message": message}
            parent = uuid


def conversation(run: Run) -> Run:
    turns = [{"name": step["name"], "role": "assistant", "content": [step["text"]] * 4} for step in run["steps"]]
    correct = run["outcome"] == SUCCESS
    return {"instance_id": run["trace_id"], "trajectory": turns, "other_data": {"correct": correct}}


def rows(run: Run) -> Iterator[Run]:
    for i, step in enumerate(run["steps"]):
        yield {
            "run_id": run["trace_id"],
            "step": i,
            "state": step["name"],
            "outcome": run["outcome"],
            "task": run["task_id"],
            "error": step["error"],
            "tokens": step["tokens"],
            "duration": step["duration"],
        }


# ---------------------------------------------------------------- files


def write_lines(path: Path, records: Iterable[Any]) -> None:
    with path.open("wb") as file:
        file.writelines(encode(record) + b"\n" for record in records)


def write_array(path: Path, records: Iterable[Any], before: bytes = b"[", after: bytes = b"]") -> None:
    with path.open("wb") as file:
        file.write(before)
        for i, record in enumerate(records):
            file.write(b"," * (i > 0) + encode(record))
        file.write(after)


def write_files(folder: Path, name: str, texts: Iterable[bytes]) -> None:
    folder.mkdir()
    for i, text in enumerate(texts):
        (folder / name.format(i)).write_bytes(text)


def traces(n_steps: int) -> Iterator[Trace]:
    for run in runs(n_steps, 1):
        steps = tuple(Step(**step) for step in run["steps"])
        yield Trace(**{**run, "steps": steps, "outcome": Outcome(run["outcome"])})


def write_eval(path: Path, n_steps: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", encode({"version": 2, "status": "success", "eval": {"task": "t"}}))
        for run in runs(n_steps, 1):
            archive.writestr(f"samples/{run['trace_id']}_epoch_1.json", encode(sample(run)))


def write_csv(path: Path, n_steps: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer: Any = None
        for run in runs(n_steps, 1):
            for row in rows(run):
                if writer is None:
                    writer = csv.DictWriter(file, row)
                    writer.writeheader()
                writer.writerow(row)


def write_parquet(path: Path, n_steps: int) -> None:
    import pyarrow
    import pyarrow.parquet

    writer, held = None, []
    for run in runs(n_steps, 1):
        held += rows(run)
        if len(held) > 50_000:
            table = pyarrow.Table.from_pylist(held)
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
            held = []
    table = pyarrow.Table.from_pylist(held)
    writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
    writer.write_table(table)
    writer.close()


# ---------------------------------------------------------------- yardsticks

decode = msgspec.json.Decoder().decode


def decode_lines(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            decode(line)


def decode_files(path: Path) -> None:
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        decode(file.read_bytes())


def decode_lines_of_files(path: Path) -> None:
    for file in sorted(path.iterdir()):
        decode_lines(file)


def decode_members(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            decode(archive.read(name))


def split_csv(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        for _ in csv.reader(file):
            pass


def list_parquet(path: Path) -> None:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(use_threads=False):
            for column in batch.columns:
                column.to_pylist()


@dataclass(frozen=True)
class Format:
    """How a corpus of a number of steps is written, and what reading it is compared with."""

    file: str
    write: Callable[[Path, int], object]
    yardstick: Callable[[Path], None]


def of_lines(shape: Callable[[Run], Any]) -> Format:
    return Format("c.jsonl", lambda path, n: write_lines(path, map(shape, runs(n, 1))), decode_lines)


def of_files(name: str, shape: Callable[[Run], Any]) -> Format:
    return Format(
        "c", lambda path, n: write_files(path, name, (encode(shape(run)) for run in runs(n, 1))), decode_files
    )


def of_array(shape: Callable[[Run], Any], before: bytes = b"[", after: bytes = b"]") -> Format:
    return Format("c.json", lambda path, n: write_array(path, map(shape, runs(n, 1)), before, after), decode_files)


INSPECT_START = b'{"version":2,"status":"success","eval":{"task":"t"},"samples":['
FORMATS: dict[str, Format] = {
    "jsonl": Format("c.jsonl", lambda path, n: write_traces(traces(n), path), decode_lines),
    "jsonl, defaults given": of_lines(lambda run: run),
    "flat, CSV": Format("c.csv", write_csv, split_csv),
    "flat, JSON Lines": Format(
        "c.jsonl", lambda path, n: write_lines(path, (row for run in runs(n, 1) for row in rows(run))), decode_lines
    ),
    "flat, Parquet": Format("c.parquet", write_parquet, list_parquet),
    "messages": of_lines(lambda run: {"id": run["trace_id"], "messages": chat(run), "reward": reward(run)}),
    "tau-bench": of_array(
        lambda run: {"task_id": run["trace_id"], "trial": 0, "reward": reward(run), "info": {}, "traj": chat(run)}
    ),
    "tau2-bench": of_array(tau2, b'{"info":{},"tasks":[],"simulations":[', b"]}"),
    "inspect, .json": of_array(sample, INSPECT_START, b"]}"),
    "inspect, .eval": Format("c.eval", write_eval, decode_members),
    "otlp": of_lines(spans),
    "openhands": of_lines(openhands),
    "swe-agent, a file a run": of_files("{}.traj", trajectory),
    "mini-swe-agent, a file a run": of_files(
        "{}.traj.json",
        lambda run: {
            "info": {"mini_version": "1", "instance_id": run["trace_id"]},
            "messages": chat(run),
            "trajectory_format": "x",
        },
    ),
    "atif, a file a run": of_files("{}-trajectory.json", atif),
    "ag2, a file a run": of_files("{}.json", conversation),
    "claude-code, a file a run": Format(
        "c",
        lambda path, n: write_files(
            path, "{}.jsonl", (b"".join(encode(line) + b"\n" for line in session(run)) for run in runs(n, 1))
        ),
        decode_lines_of_files,
    ),
}


# ---------------------------------------------------------------- measuring


def seconds(job: Callable[[], object], repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        started = time.process_time()
        job()
        best = min(best, time.process_time() - started)
    return best


def n_steps_of(path: Path) -> int:
    return sum(len(trace.steps) for trace in open_traces(path))


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))


def compare(names: list[str], n_steps: int, repeat: int) -> None:
    print(f"{'format':30} {'MB':>6} {'MB/s':>7} {'steps/s':>9} {'ratio':>6}")
    for name in names:
        form = FORMATS[name]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, form.file)
            form.write(path, n_steps // 10 if "a file a run" in name else n_steps)
            n_read, n_bytes = n_steps_of(path), size_of(path)
            ours = seconds(lambda path=path: n_steps_of(path), repeat)
            theirs = seconds(lambda path=path, form=form: form.yardstick(path), repeat)
            rates = f"{n_bytes / ours / 1e6:7.1f} {n_read / ours:9,.0f}"
            print(f"{name:30} {n_bytes / 1e6:6.1f} {rates} {ours / theirs:6.2f}", flush=True)


def memory(names: list[str], sizes: list[int]) -> None:
    print(f"{'format':30} " + " ".join(f"{size:>14,} steps" for size in sizes))
    for name in names:
        peaks = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, FORMATS[name].file)
                FORMATS[name].write(path, size)
                ended = subprocess.run(
                    [sys.executable, __file__, "--read", str(path)], capture_output=True, text=True, check=True
                )
                peaks.append(f"{float(ended.stdout):10.0f} MiB peak")
        print(f"{name:30} " + " ".join(f"{peak:>20}" for peak in peaks), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", help="formats whose names start so, separated by commas")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--folder", type=Path, help="where the native corpora are written")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        n_steps_of(options.read)
        print(own_peak() / MIB)
        return
    starts = tuple((options.only or "").split(","))
    names = [name for name in FORMATS if name.startswith(starts)]
    if options.memory:
        memory(
            names if options.only else ["jsonl", "flat, CSV", "flat, Parquet"],
            [int(n) for n in options.sizes.split(",")],
        )
    else:
        compare(names, options.steps, options.repeat)
        print()
        compare_ways([int(n) for n in options.sizes.split(",")], folder=options.folder)


if __name__ == "__main__":
    main()
