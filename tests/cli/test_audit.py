"""``tracebridge audit``: the packaged deliberations and plain polls, from the command line to the files."""

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracebridge import read_model
from tracebridge.cli.app import app
from tracebridge.confidence.card import read_card
from tracebridge.confidence.reading import read_confidence
from tracebridge.resources import packaged

QUICK = ["--replicates", "60", "--certificate-replicates", "0"]


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], catch_exceptions=False, standalone_mode=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def metrics_of(document):
    axes = ("routing", "routers", "calibration", "commitment")
    return {metric["name"]: metric for axis in axes for metric in document["audit"]["corpus"][axis]}


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def routes(tmp_path_factory):
    """Scores from elsewhere for every poll: those that know the labels, and those that know nothing."""
    folder = tmp_path_factory.mktemp("routes")
    lines = [
        {"trace_id": t.trace_id, "block_id": b.block_id, "agent": p.agent, "score": float(bool(p.correct))}
        for t in read_confidence([packaged("demo", "deliberations.jsonl.gz")]).traces
        for b in t.blocks
        for p in b.polls
    ]
    (folder / "gold.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "flat.jsonl").write_text("\n".join(json.dumps({**line, "score": 0.5}) for line in lines))
    return [f"--route-by={name}={folder / name}.jsonl" for name in ("gold", "flat")]


@pytest.fixture(scope="module")
def audited(tmp_path_factory, routes):
    folder = tmp_path_factory.mktemp("audit") / "out"
    return run("--demo", "-o", folder, *QUICK, *routes, "--json"), folder


@pytest.mark.storm
class TestDeliberations:
    def test_both_engines_and_the_audit_say_the_same(self, audited):
        result, folder = audited
        document = json.loads((folder / "audit.json").read_text())
        assert json.loads(result.stdout) == document
        metrics = metrics_of(document)
        figures = document["formal_model"]["figures"]
        assert figures["candidate_routing_accuracy"] == pytest.approx(metrics["CRA"]["value"], abs=1e-12)
        assert figures["divergence_rate"] == pytest.approx(metrics["PSDR"]["value"], abs=1e-12)
        assert figures["commitment_shift"] == pytest.approx(metrics["NPCS_unconditional"]["value"], abs=1e-12)
        for review in document["formal_model"]["routing"]:
            assert all(found["agree"] for found in review["properties"])

    def test_the_envelope_of_routers(self, audited):
        formal = json.loads((audited[1] / "audit.json").read_text())["formal_model"]
        value = {router["rule"]: router["passes"] for router in formal["routers"]}
        for rule in ("random_valid", "majority_vote", "learned", "isotonic"):
            assert value["worst"] < value[rule] < value["oracle"]
        valid = next(review for review in formal["routing"] if review["action_set"] == "valid")
        found = {p["name"]: p["engines"][0]["value"]["value"] for p in valid["properties"]}
        assert found["best_router"] == pytest.approx(value["oracle"], abs=1e-12)
        assert found["worst_router"] == pytest.approx(value["worst"], abs=1e-12)

    def test_the_files_read_back(self, audited):
        folder = audited[1]
        assert read_card(folder / "card.json").groups["formal_model"]["states"] == 20  # of 25 those that came about
        for action_set in ("tie", "valid", "all"):
            process = read_model(folder / f"routing_{action_set}.prism").described
            assert process.n_choices > process.n_states
        assert read_model(folder / "chain" / "chain.json").fitted.vocabulary is not None
        for table in ("metrics", "reliability", "risk_coverage", "regressions", "routers"):
            assert rows_of(folder / f"{table}.csv")
        for plot in folder.glob("*.svg"):
            assert ET.fromstring(plot.read_text()).tag.endswith("svg")  # noqa: S314 - our own file

    def test_the_same_run_writes_the_same_bytes(self, audited, routes, tmp_path):
        run("--demo", "-o", tmp_path / "out", *QUICK, *routes)
        again, first = contents(tmp_path / "out"), contents(audited[1])
        assert list(again) == list(first)
        assert [name for name in first if again[name] != first[name]] == []

    def test_scores_from_elsewhere_route(self, audited):
        """Scores that know the labels are the oracle; those that know nothing are random."""
        value = {row["rule"]: float(row["passes"]) for row in rows_of(audited[1] / "routers.csv")}
        assert value["gold"] == pytest.approx(value["oracle"], abs=1e-12)
        assert value["flat"] == pytest.approx(value["random_valid"], abs=1e-12)


POLLS = """item,agent,candidate,confidence,correct
q1,=cmd(),4,90,1
q1,b,5,80,0
q2,=cmd(),7,60,0
q2,b,7,60,0
q3,=cmd(),,Unparseable,
q3,b,1,100,1
"""


def test_plain_polls_have_routing_and_calibration_and_no_chain(tmp_path):
    (tmp_path / "polls.csv").write_text(POLLS)
    result = run(tmp_path / "polls.csv", "-o", tmp_path / "out", *QUICK)
    assert result.return_value == 0
    assert "no chain of these deliberations: no deliberation has a known end" in result.stdout
    assert "commitment is undefined: no answer was spoken in public" in result.stderr
    assert "selections are derived, not observed" in result.stderr
    document = json.loads((tmp_path / "out" / "audit.json").read_text())
    metrics = metrics_of(document)
    assert metrics["CRA"]["value"] == pytest.approx(2 / 3)
    assert metrics["PSDR"]["status"] == "undefined"
    assert not (tmp_path / "out" / "chain").exists()
    assert document["corpus"]["scale"]["maximum"] == 100


DELIBERATION = """{"schema": "broadcast-trace/0.1", "trace_id": "t%d", "problem_uid": "p", "mode": "broadcast",
"cell": {"actor_model": "m", "benchmark": "b", "judge_model": "j"}, "protocol": {"name": "p", "version": "1"},
"score_scale": {"min": 0, "max": 100, "integer": true, "elicitation": null}, "blocks": [{"block_id": "b", "round": 0,
"turn": 0, "index": 0, "polls": [{"agent": "a", "order": 0, "score_raw": 90, "parse_ok": true, "candidate": "1",
"correct": true}], "selection": {"agent": "a"}, "speak": {"utt_id": "u", "agent": "a", "candidate": "%s",
"correct": %s}}], "outcome": {"passed": true, "stop": "pass"}}"""


@pytest.mark.storm
def test_without_a_judge_answers_that_differ_diverge(tmp_path):
    """And a test that has nothing to compare is undefined in the files, not a fault."""
    lines = [DELIBERATION % (0, 2, "false"), DELIBERATION % (1, 1, "true"), DELIBERATION % (2, 1, "true")]
    (tmp_path / "d.jsonl").write_text("".join(line.replace("\n", "") + "\n" for line in lines))
    result = run(tmp_path / "d.jsonl", "-o", tmp_path / "out", *QUICK)
    document = json.loads((tmp_path / "out" / "audit.json").read_text())
    metrics = metrics_of(document)
    assert metrics["PSDR"]["value"] == pytest.approx(1 / 3)
    assert metrics["PSDRg"]["value"] == 1
    assert document["formal_model"]["selection_ignorability"][0]["p_value"] == "NaN"
    assert "no judge compared answers" in result.stderr
    assert "selections are derived" not in result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"trace_id": "q1"}', "missing required field"),
        ('{"trace_id": "no", "block_id": "b", "agent": "b", "score": 1}', "no such poll"),
        ('{"trace_id": "q1", "block_id": "?", "agent": "b", "score": NaN}', "line 1|JSON"),
        ("", "holds no score"),
    ],
)
def test_scores_of_no_poll_are_refused(tmp_path, line, message):
    from tracebridge.errors import InputError

    (tmp_path / "polls.csv").write_text(POLLS)
    (tmp_path / "scores.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        run(tmp_path / "polls.csv", "-o", tmp_path / "out", *QUICK, f"--route-by=x={tmp_path / 'scores.jsonl'}")


def test_either_files_or_the_demo(tmp_path):
    import click

    for arguments in (["-o", tmp_path], ["--demo", "polls.csv", "-o", tmp_path]):
        with pytest.raises(click.UsageError, match="or --demo"):
            run(*arguments)
