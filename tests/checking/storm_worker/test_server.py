"""The worker's end of the protocol, with messages that no client of ours would send."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tracebridge.checking import storm_worker
from tracebridge.checking.storm_worker.protocol import (
    LENGTH,
    MAX_MESSAGE,
    AskVersion,
    Evaluate,
    Failure,
    Loaded,
    LoadModel,
    Reply,
    Values,
    Version,
    pack_mask,
)

pytestmark = pytest.mark.storm

SCRIPT = str(Path(storm_worker.__file__).with_name("__main__.py"))


@dataclass
class Pipes:
    """A worker process seen through its bare pipes."""

    process: subprocess.Popen[bytes]
    requests: int
    replies: int

    def send(self, body: bytes) -> None:
        os.write(self.requests, LENGTH.pack(len(body)) + body)

    def receive(self) -> Reply:
        (length,) = LENGTH.unpack(os.read(self.replies, LENGTH.size))
        reply: Reply = msgspec.msgpack.decode(os.read(self.replies, length), type=Reply)
        return reply

    def ask(self, request: object) -> Reply:
        self.send(msgspec.msgpack.encode(request))
        return self.receive()


@pytest.fixture(scope="module")
def pipes() -> Iterator[Pipes]:
    yield from worker_process()


@pytest.fixture
def doomed() -> Iterator[Pipes]:
    yield from worker_process()


def worker_process() -> Iterator[Pipes]:
    inner_read, requests = os.pipe()
    replies, inner_write = os.pipe()
    command = [sys.executable, "-P", SCRIPT, str(inner_read), str(inner_write)]
    process = subprocess.Popen(
        command, pass_fds=(inner_read, inner_write), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    os.close(inner_read)
    os.close(inner_write)
    opened = Pipes(process, requests, replies)
    yield opened
    if process.poll() is None:
        os.close(requests)
        assert process.wait(timeout=30) == 0  # a closed pipe is the way to end it
    else:
        os.close(requests)
    os.close(replies)
    assert process.stdout is not None
    process.stdout.close()


def model(**changes: object) -> LoadModel:
    two = np.eye(2)
    fields = {
        "model": 0,
        "indptr": np.array([0, 1, 2], dtype="<i8").tobytes(),
        "indices": np.array([1, 1], dtype="<i8").tobytes(),
        "values": np.ones(2).tobytes(),
        "initial": pack_mask(two[0] == 1),
        "rewards": [],
        "forget": [],
    }
    return LoadModel(**{**fields, **changes})  # type: ignore[arg-type]


def test_malformed_messages_are_answered_and_survived(pipes: Pipes) -> None:
    for body in (b"", b"\xc1garbage", msgspec.msgpack.encode({"type": "Evaluate"}), msgspec.msgpack.encode([1, 2])):
        pipes.send(body)
        reply = pipes.receive()
        assert isinstance(reply, Failure)
        assert reply.kind == "protocol"
    assert isinstance(pipes.ask(AskVersion()), Version)


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([1, 7], dtype="<i8").tobytes()},
        {"indices": np.array([-1, 1], dtype="<i8").tobytes()},
        {"indices": b"\x00"},
        {"indptr": np.array([0, 1, 9], dtype="<i8").tobytes()},
        {"indptr": np.array([0, 3, 2], dtype="<i8").tobytes()},
        {"indptr": np.array([1, 1, 2], dtype="<i8").tobytes()},
        {"indptr": b""},
        {"values": np.ones(3).tobytes()},
        {"values": ["1/1", "zebra"]},
        {"values": ["1/1", "1/0"]},
        {"initial": b""},
    ],
)
def test_arrays_that_do_not_fit_are_refused(pipes: Pipes, changes: dict[str, object]) -> None:
    reply = pipes.ask(model(**changes))
    assert isinstance(reply, Failure)
    assert reply.kind == "protocol"
    assert pipes.ask(model()) == Loaded()


def test_evaluation_checks_its_request(pipes: Pipes) -> None:
    assert pipes.ask(model()) == Loaded()
    target = [pack_mask(np.array([False, True]))]
    answer = pipes.ask(Evaluate(0, 'P=? [ F "a0" ]', "elimination", target))
    assert isinstance(answer, Values)
    assert answer.values == np.ones(2).tobytes()
    for request, kind in (
        (Evaluate(5, 'P=? [ F "a0" ]', "elimination", target), "protocol"),
        (Evaluate(0, 'P=? [ F "a0" ]', "exact", target), "protocol"),
        (Evaluate(0, 'P=? [ F "a0" ]', "elimination", [b"", b""]), "protocol"),
        (Evaluate(0, 'P=? [ F "a0" ]', "elimination", target * 65), "protocol"),
        (Evaluate(0, "P=? [ F true ]", "elimination", [], [np.ones(2).tobytes()]), "protocol"),
        (Evaluate(0, "P=? [ F true ]; P=? [ F true ]", "elimination", []), "protocol"),
        (Evaluate(0, 'P=? [ F "missing" ]', "elimination", []), "storm"),
        (Evaluate(0, "P=? [", "elimination", []), "property"),
        (Evaluate(0, 'R{"v0"}=? [ F<=3 "a0" ]', "elimination", target, [np.ones(3).tobytes()]), "storm"),
    ):
        reply = pipes.ask(request)
        assert isinstance(reply, Failure), request
        assert reply.kind == kind, reply
    assert "gave no result" in reply.message  # Storm's None


def test_what_a_formula_may_need_besides_the_chain(pipes: Pipes) -> None:
    assert pipes.ask(model()) == Loaded()
    last, both = pack_mask(np.array([False, True])), pack_mask(np.array([True, True]))
    ones = np.array([1.0, 1.0, 0.0]).tobytes()
    for request, expected in (
        (Evaluate(0, 'P=? [ F (X "a2") ]', "elimination", [both, both, last]), [1, 1]),
        (Evaluate(0, 'R{"v0"}=? [ C<=2 ]', "elimination", [], [ones], leaving=last), [2, 1]),
        (Evaluate(0, 'R{"v1"}=? [ I=1 ]', "elimination", [], [ones, np.array([5.0, 7, 9]).tobytes()], last), [7, 9]),
        (Evaluate(0, 'P=? [ F{"v0"}<=0 "a0" ]', "elimination", [last], [ones], bounded=True), [0, 1]),
        (Evaluate(0, 'P=? [ F{"v0"}>=2 "a0" ]', "elimination", [last], [ones], last, bounded=True), [0, 0]),
        (
            Evaluate(0, 'P=? [ F "a0" || F "a1" ]', "elimination", [last, last], [ones], conditional=True),
            [1, 1],
        ),
        (Evaluate(0, 'P=? [ F "init" ]', "elimination", []), [1, 0]),  # nothing of the above stays
    ):
        reply = pipes.ask(request)
        assert isinstance(reply, Values), reply
        assert np.frombuffer(reply.values).tolist() == expected, request


PROCESS = {  # two choices in the first state: to stay, or to go to the last
    "groups": np.array([0, 2, 3], dtype="<i8").tobytes(),
    "indptr": np.array([0, 1, 2, 3], dtype="<i8").tobytes(),
    "indices": np.array([0, 1, 1], dtype="<i8").tobytes(),
    "values": np.ones(3).tobytes(),
}


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": b""},
        {"groups": np.array([0, 3], dtype="<i8").tobytes()},
        {"groups": np.array([0, 0, 3], dtype="<i8").tobytes()},
        {"groups": np.array([0, 2, 9], dtype="<i8").tobytes()},
        {"indptr": np.array([0, 1, 1, 3], dtype="<i8").tobytes()},
        {"indices": np.array([0, 1, 2], dtype="<i8").tobytes()},
        {"values": np.ones(4).tobytes()},
        {"initial": b""},
    ],
)
def test_arrays_of_a_process_that_do_not_fit_are_refused(pipes: Pipes, changes: dict[str, object]) -> None:
    reply = pipes.ask(model(**(PROCESS | changes)))
    assert isinstance(reply, Failure)
    assert reply.kind == "protocol"
    assert pipes.ask(model(**PROCESS)) == Loaded()


def test_a_process_is_answered_in_every_state_and_at_its_start(pipes: Pipes) -> None:
    assert pipes.ask(model(**PROCESS)) == Loaded()
    last = pack_mask(np.array([False, True]))
    ones = np.array([1.0, 1.0, 0.0]).tobytes()
    for request, expected in (
        (Evaluate(0, 'Pmax=? [ F "a0" ]', "policy-iteration", [last]), [1, 1]),
        (Evaluate(0, 'Pmin=? [ F "a0" ]', "sound", [last]), [0, 1]),
        (Evaluate(0, 'R{"v0"}max=? [ C<=3 ]', "policy-iteration", [], [ones], leaving=last), [3, 1]),
    ):
        reply = pipes.ask(request)
        assert isinstance(reply, Values), reply
        assert np.frombuffer(reply.values).tolist() == expected, request
    bounded = pipes.ask(Evaluate(0, 'Pmax=? [ F{"v0"}<=1 "a0" ]', "sound", [last], [ones], bounded=True))
    assert isinstance(bounded, Failure)
    assert bounded.kind == "protocol"
    assert pipes.ask(model()) == Loaded()
    at_start = pipes.ask(Evaluate(0, 'P=? [ F "a0" ]', "elimination", [last], at_start=True))
    assert isinstance(at_start, Failure)
    assert at_start.kind == "protocol"


def test_several_objectives_are_answered_at_the_start_in_rationals(pipes: Pipes) -> None:
    last = pack_mask(np.array([False, True]))
    assert pipes.ask(model(**PROCESS)) == Loaded()
    in_doubles = pipes.ask(Evaluate(0, 'multi(P>=1 [ F "a0" ])', "sound", [last], at_start=True))
    assert isinstance(in_doubles, Failure)
    assert in_doubles.kind == "protocol"
    assert pipes.ask(model(**(PROCESS | {"values": ["1/1"] * 3}))) == Loaded()
    for formula, expected in (
        ('multi(P>=1 [ F "a0" ], P<=0 [ F<=1 "a0" ])', 1),
        ('multi(P>=1 [ F "a0" ], P>=1 [ F<=1 "a0" ])', 1),
        ('multi(P<=0 [ F "a0" ], P>=1 [ F "a0" ])', 0),
    ):
        reply = pipes.ask(Evaluate(0, formula, "exact", [last], at_start=True))
        assert isinstance(reply, Values), reply
        assert isinstance(reply.values, bytes)
        assert np.frombuffer(reply.values).tolist() == [expected], formula
    pareto = pipes.ask(Evaluate(0, 'multi(Pmax=? [ F "a0" ], Pmin=? [ F<=1 "a0" ])', "exact", [last], at_start=True))
    assert isinstance(pareto, Failure)
    assert "Pareto" in pareto.message


def test_a_message_that_is_too_long_ends_the_process(doomed: Pipes) -> None:
    os.write(doomed.requests, LENGTH.pack(MAX_MESSAGE + 1))
    assert doomed.process.wait(timeout=30) == 1
    assert doomed.process.stdout is not None
    assert b"too long" in doomed.process.stdout.read()


def test_the_process_imports_nothing_of_the_package_around_it() -> None:
    reading, writing = os.pipe()
    os.close(writing)  # the process ends as soon as it reads
    with Path(os.devnull).open("wb") as sink:
        ends = (reading, sink.fileno())
        command = [sys.executable, "-X", "importtime", "-P", SCRIPT, *map(str, ends)]
        finished = subprocess.run(command, pass_fds=ends, stderr=subprocess.PIPE, text=True, check=True)
    os.close(reading)
    imported = {line.rpartition("|")[2].strip() for line in finished.stderr.splitlines()}
    assert "storm_worker.server" in imported
    assert not [name for name in imported if name.partition(".")[0] == "tracebridge"]
