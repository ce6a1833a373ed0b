"""``tracebridge study``: what it prints, its document, and its exit code."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from joblib import parallel_config

from tracebridge.cli import run
from tracebridge.studies import STUDIES, Findings, registry
from tracebridge.studies.statement import fixed, rate


def test_a_study_is_printed_with_its_statements(capsys):
    assert run(["study", "exponential-limit", "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    assert "exponential-limit: the exponential limit for rare failures (Proposition 7, Fig. 6)" in printed.out
    assert "0.05569" in printed.out
    assert "holds" in printed.out
    assert "Not reproduced: Fig. 6" in printed.out
    assert max(map(len, printed.out.splitlines())) <= 100
    assert printed.err == "3 statements: 3 hold, 0 fail\n"


def test_the_document_stands_alone_and_is_the_same_every_time(capsys):
    documents = []
    for _ in range(2):
        assert run(["study", "perturbation", "--replicates", "4", "--jobs", "1", "--seed", "7", "--json"]) == 0
        documents.append(capsys.readouterr().out)
    assert documents[0] == documents[1]
    document = json.loads(documents[0])
    assert (document["kind"], document["seed"], document["exit_code"]) == ("tracebridge-studies", 7, 0)
    (study,) = document["studies"]
    assert (study["name"], study["replicates"], study["full_replicates"]) == ("perturbation", 4, 1_000)
    assert {statement["verdict"] for statement in study["statements"]} == {"holds"}


def test_the_list_names_every_study(capsys):
    assert run(["study", "--list", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == list(STUDIES)
    assert run(["study", "--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in STUDIES)


@pytest.fixture
def weak_study(monkeypatch):
    """A study whose statements fail, hold, and lie within error."""
    findings = Findings(
        tables=(),
        statements=(
            fixed("two is at most one", 2.0, upper=1),
            fixed("one is at most one", 1.0, upper=1),
            rate("heads", 3, 4, "coins", upper=0.5),
        ),
    )
    study = replace(STUDIES["correlation"], run=lambda replication: findings)
    monkeypatch.setitem(STUDIES, "correlation", study)
    monkeypatch.setattr(registry, "STUDIES", {"correlation": study})


def test_a_statement_that_fails_is_the_exit_code(weak_study, capsys):
    assert run(["study", "all", "--replicates", "1"]) == 1
    printed = capsys.readouterr()
    assert "3 statements: 1 holds, 1 fails, 1 within error" in printed.err
    assert "fails: correlation: two is at most one: 2, not at most 1" in printed.err
    assert run(["study", "all", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["exit_code"] == 1


def test_what_cannot_be_run_is_refused(capsys):
    assert run(["study"]) == 2
    assert "name a study, or all: closed-form" in capsys.readouterr().err
    assert run(["study", "coverge"]) == 2
    assert "did you mean coverage?" in capsys.readouterr().err
    assert run(["study", "coverage", "--replicates", "0"]) == 2
    assert run(["study", "coverage", "--jobs", "2", "--cluster", "tcp://127.0.0.1:9"]) == 2


def test_a_cluster_has_the_work_and_changes_nothing(monkeypatch, capsys):
    used = []

    @contextmanager
    def workers(address):
        used.append(address)
        with parallel_config(backend="threading", n_jobs=2):
            yield

    monkeypatch.setattr("tracebridge.sharding.cluster.cluster", workers)
    arguments = ["study", "perturbation", "--replicates", "4", "--json"]
    documents = []
    for where in (["--jobs", "1"], ["--cluster", "tcp://here:1"]):
        assert run([*arguments, *where]) == 0
        documents.append(capsys.readouterr().out)
    assert used == ["tcp://here:1"]
    assert documents[0] == documents[1]
