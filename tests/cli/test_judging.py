"""What the data say, as `check` and `assess` show it: intervals, shares, verdicts, certificate, plans, support."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tracebridge.chain import sample_traces
from tracebridge.cli import run
from tracebridge.inference import SCENARIOS
from tracebridge.traces import write_traces

LIGHT = ("--engine", "closed-form", "--draws", "400", "--bootstrap", "50", "--certificate-replicates", "39")
FAST = (*LIGHT, "--futures", "3")

PROPS = """//@ credible 0.95
"open": P>=0.6 [ F "success" ];
//@ credible 0.95
"clear": P>=0.2 [ F "success" ];
"rate": P=? [ F "success" ];
"""


def write_runs(path: Path, *cases: tuple[str, str, int]) -> None:
    """So many runs of each outcome and path, every second of the same task."""
    rows = [
        {
            "trace_id": f"{outcome}{word}-{i}",
            "task_id": f"t{i // 2}",
            "outcome": outcome,
            "steps": [{"name": s} for s in word],
        }
        for outcome, word, number in cases
        for i in range(number)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.props").write_text(PROPS)
    write_runs(
        tmp_path / "runs.jsonl",
        ("success", "ab", 30),
        ("success", "aab", 12),
        ("failure", "ab", 14),
        ("failure", "b", 10),
        ("censored", "aa", 4),
    )
    return tmp_path


def assessed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    capsys.readouterr()
    code = run(["assess", "runs.jsonl", "my.props", "-o", "out", "--force", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_check_of_a_fit_shows_intervals_and_decides_by_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "runs.jsonl", "-o", "chain.json"]) == 0
    capsys.readouterr()
    arguments = ["check", "chain.json", "my.props", "--engine", "closed-form", "--draws", "400", "--futures", "4"]
    assert run(arguments) == 4
    shown = capsys.readouterr()
    head, *rows = shown.out.splitlines()
    assert "95 % interval" in head
    assert "P(sat.)" in head
    assert [row.split()[1] for row in rows[:3]] == ["undecided", "satisfied", "answered"]
    assert "posterior of the mass-one prior" in shown.out
    assert "400 draws" in shown.out
    assert "more runs would decide it" in shown.err
    assert "no certificate" in shown.err
    assert run([*arguments, "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    open_, clear, rate = document["properties"]
    assert document["certificate"] is None
    assert open_["verdict"] == "undecided"
    assert open_["at_estimate"] == "satisfied"
    assert open_["plan"]["outlooks"]
    assert clear["uncertainty"]["satisfied"] == 1
    assert rate["uncertainty"]["interval"]["lower"] < rate["uncertainty"]["point"] < 0.9
    assert rate["uncertainty"]["draws"] == 400


def test_no_draws_leave_credible_properties_undecided_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "runs.jsonl", "-o", "chain.json"]) == 0
    capsys.readouterr()
    assert run(["check", "chain.json", "my.props", "--engine", "closed-form", "--draws", "0"]) == 4
    shown = capsys.readouterr()
    assert "interval" not in shown.out
    assert "no posterior interval was computed" in shown.err


def test_every_point_of_an_experiment_is_judged_by_the_data(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "d.props").write_text('const int d;\n//@ credible 0.9\n"soon": P>=0.3 [ F<=d "success" ];\n')
    assert run(["fit", "runs.jsonl", "-o", "chain.json"]) == 0
    capsys.readouterr()
    arguments = ["check", "chain.json", "d.props", "--const", "d=1:3", "--engine", "closed-form", "--draws", "300"]
    assert run([*arguments, "--json"]) == 1
    points = json.loads(capsys.readouterr().out)["points"]
    shares = [point["properties"][0]["uncertainty"]["satisfied"] for point in points]
    assert shares == sorted(shares)
    assert [point["properties"][0]["verdict"] for point in points] == ["violated", "satisfied", "satisfied"]
    assert run(arguments) == 1
    shown = capsys.readouterr().out
    assert "P(sat.)" in shown
    assert "closed form: no value has a second engine beside it" in shown


@pytest.mark.storm
def test_an_experiment_says_once_that_the_engines_agree(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "d.props").write_text('const int d;\n"soon": P=? [ F<=d "success" ];\n"other": P=? [ X "success" ];\n')
    assert run(["fit", "runs.jsonl", "-o", "chain.json"]) == 0
    capsys.readouterr()
    assert run(["check", "chain.json", "d.props", "--const", "d=1:3", "--draws", "20"]) == 0
    assert capsys.readouterr().out.count("closed form and Storm agree on every property") == 1


def test_check_finds_the_certificate_that_assess_recorded(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of that very chain.json only, and only from a record of ours."""
    _, document = assessed(capsys, *FAST, "--draws", "50")
    standings = document["standings"]
    arguments = ["check", "out/chain.json", "my.props", "--engine", "closed-form", "--draws", "50", "--futures", "0"]
    run([*arguments, "--json"])
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["certificate"]["standings"] == standings
    assert "results.json records it" in shown.err
    assert [each["standing"]["scope"] for each in found["properties"]] == ["timing"] * 3
    assert [each["marks"] for each in found["properties"]] == [each["marks"] for each in document["properties"]]

    chain = here / "out" / "chain.json"
    chain.write_text(chain.read_text() + "\n")
    run([*arguments, "--json"])
    shown = capsys.readouterr()
    assert json.loads(shown.out)["certificate"] is None
    assert "is about another chain.json" in shown.err


def test_check_and_assess_agree_on_runs_that_were_never_seen_to_end(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(here / "runs.jsonl", ("censored", "ab", 5))
    (here / "my.props").write_text('"ends": P>=0.5 [ F "success" ];\n"moves": P>=0.5 [ X "b" ];')
    code, document = assessed(capsys, "--prior", "none", *FAST)
    arguments = ["check", "out/chain.json", "my.props", "--engine", "closed-form", "--draws", "0", "--json"]
    assert run(arguments) == code == 4
    found = json.loads(capsys.readouterr().out)
    for mine, other in zip(found["properties"], document["properties"], strict=True):
        assert (mine["verdict"], mine["marks"]) == (other["verdict"], other["marks"])
    assert found["properties"][0]["verdict"] == "undecided"
    assert "no end was seen" in found["properties"][1]["marks"]
    assert run(["show", "out/chain.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"schema_version", "n_states", "exact", "missing"}
    for verb, code in (("horizon", 4), ("whatif", 0)):
        assert run([verb, "out/chain.json"]) == code
        assert "no run was seen to end" in capsys.readouterr().err


def test_assess_writes_certificate_second_opinions_and_the_observed_curve(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = assessed(capsys, *FAST)
    assert code == document["exit_code"] == 4
    certificate = document["certificate"]
    assert certificate["verdict"] in {"accept", "reject", "inconclusive"}
    assert certificate["replicates"] == 39
    assert [each["covariate"] for each in certificate["covariates"]] == ["task_id"]
    for item in document["properties"]:
        assert item["marks"] == ([] if document["mark"] is None else [document["mark"]])
        methods = {each["method"] for each in item["second_opinion"]["intervals"]}
        assert methods >= {"trace bootstrap, percentile", "task bootstrap, percentile", "delta method", "Wilson score"}
    assert document["figures"]["mark"] == document["mark"]
    assert document["figures"]["uncertainty"]["R_inf"]["posterior"]["level"] == 0.95
    extremes = document["observed"]["if_all_censored"]["R_inf"]
    assert extremes["fail"] < document["figures"]["R_inf"] < extremes["succeed"]
    assert document["observed"]["R"]["2"]["value"] == pytest.approx(30 / 70)  # nobody was cut before
    summary = (here / "out" / "summary.md").read_text()
    for words in (
        "validate nothing", "Aalen-Johansen", "task bootstrap", "Wilson score", "more runs would decide it",
        "Published rule beside it", "if all censored runs failed .. succeeded", "## Certificate",
    ):  # fmt: skip
        assert words in summary, words


def test_a_rejected_chain_is_marked_everywhere_and_is_no_pass(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(
        here / "runs.jsonl", ("success", "aaab", 60), ("failure", "b", 40)
    )  # a is left after three steps exactly
    (here / "my.props").write_text('"clear": P>=0.2 [ F "success" ];')
    code, document = assessed(capsys, *FAST)
    assert document["properties"][0]["verdict"] == "satisfied"
    assert document["certificate"]["verdict"] == "reject"
    assert code == 4
    assert document["mark"] == "chain rejected"
    assert document["properties"][0]["marks"] == ["chain rejected"]
    assert (here / "out" / "summary.md").read_text().count("chain rejected") >= 4
    assert run(["assess", "runs.jsonl", "my.props", "-o", "out", *FAST]) == 4
    shown = capsys.readouterr().out
    assert "certificate: REJECT" in shown
    assert "satisfied (chain rejected)" in " ".join(shown.split())


def test_runs_of_a_chain_are_accepted_and_bear_no_mark(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit, _ = SCENARIOS["F1"].fitted(300, seed=1)
    write_traces(sample_traces(fit.chain, 400, seed=5), here / "runs.jsonl")
    (here / "my.props").write_text('"some": P>=0.05 [ F "success" ];')
    code, document = assessed(capsys, *FAST)
    assert document["certificate"]["verdict"] == "accept"
    assert document["mark"] is None
    assert code == 0
    assert "compatible with the chain" in (here / "out" / "summary.md").read_text()


def test_on_observed_support_verdicts_name_the_unseen_edges(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(here / "runs.jsonl", ("success", "ab", 20), ("failure", "c", 5))
    (here / "my.props").write_text('"never": P<=0 [ !"a" U "b" ];\n"some": P>=0.5 [ F "success" ];')
    code, document = assessed(capsys, "--support", "observed", *FAST)
    never, some = document["properties"]
    assert code in {0, 4}
    assert "relative to support" in never["marks"]
    assert "relative to support" not in some["marks"]
    (edge,) = never["rests_on"][0]["support"]["edges"]
    assert (edge["source"], edge["target"]) == ("c", "b")
    assert edge["bound"] == pytest.approx(1 - 0.05 ** (1 / 5))
    assert "c -\\> b (none of 5, at most 0.45)" in (here / "out" / "summary.md").read_text()
    assert run(["check", "out/chain.json", "my.props", "--engine", "closed-form", "--draws", "50"]) == 0
    shown = capsys.readouterr()
    assert never["marks"] == [*([document["mark"]] if document["mark"] else []), "relative to support"]
    assert "relative" in shown.out
    assert "c -> b (none of 5, at most 0.45)" in shown.err


def test_everything_can_be_turned_off(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    off = ["--draws", "0", "--bootstrap", "0", "--certificate-replicates", "0", "--engine", "closed-form"]
    code, document = assessed(capsys, *off)
    assert code == 4
    assert document["certificate"] == {"missing": "no replicates were asked for"}
    assert document["mark"] == "chain not certified"
    assert document["figures"]["uncertainty"] == {}
    assert [item["second_opinion"] for item in document["properties"]] == [None] * 3
    assert "no posterior was drawn" in (here / "out" / "summary.md").read_text()
    assert run(["assess", "runs.jsonl", "my.props", "-o", "out", "--certificate-replicates", "5"]) == 2
    assert "at least 19" in capsys.readouterr().err


def test_runs_of_one_step_are_not_certified(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(here / "runs.jsonl", ("success", "a", 8), ("failure", "a", 5))
    _, document = assessed(capsys, *FAST)
    assert document["certificate"]["verdict"] == "inconclusive"
    assert document["mark"] == "chain not certified"


def test_the_same_seed_gives_the_same_bytes_also_from_standard_input(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files(name: str, source: str, seed: str) -> dict[str, bytes]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((here / "runs.jsonl").read_bytes())))
        assert run(["assess", source, "my.props", "-o", name, "--seed", seed, *FAST]) == 4
        return {path.name: path.read_bytes() for path in (here / name).iterdir()}

    one, piped, other = files("one", "runs.jsonl", "3"), files("two", "-", "3"), files("three", "runs.jsonl", "4")
    assert piped["chain.json"] == one["chain.json"]
    results = [json.loads(each["results.json"]) for each in (one, piped, other)]
    for key in ("properties", "certificate", "figures", "observed"):
        assert results[0][key] == results[1][key]
    assert results[0]["properties"] != results[2]["properties"]
    assert files("four", "runs.jsonl", "3") == one


def test_a_level_that_cannot_decide_is_refused_with_its_place(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "runs.jsonl", "-o", "chain.json"]) == 0
    for level in ("0.4", "1", "1e999999999", "1/0"):
        (here / "bad.props").write_text(f'\n//@ credible {level}\n"x": P>=0.1 [ F "success" ];')
        capsys.readouterr()
        assert run(["check", "chain.json", "bad.props"]) == 3
        message = capsys.readouterr().err
        assert "bad.props:2:1" in message
        assert "at least 0.5, and below 1" in message
        assert run(["props", "lint", "bad.props"]) == 1


def test_censored_runs_alone_are_reported_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(here / "runs.jsonl", ("censored", "ab", 4))
    _, document = assessed(capsys, *FAST, "--prior", "none")
    assert document["mark"] == "chain not certified, no end was seen"
    (here / "out" / "summary.md").read_text().index("0 success")


@pytest.mark.storm
def test_an_undefined_number_is_called_so_has_no_gap_and_is_not_agreed_on(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "my.props").write_text(
        '"rate": P=? [ F "success" ];\n"none": P=? [ F "success" ] / 0;\n"more": P=? [ F "success" ] / 0 > 1;\n'
        '"never": P=? [ F "success" || G "failure" & !"failure" ];\n'
    )
    assert run(["fit", "runs.jsonl", "-o", "chain.json"]) == 0
    capsys.readouterr()
    assert run(["check", "chain.json", "my.props", "--draws", "40"]) == 4
    out, told = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    for name in ("none", "more", "never"):
        assert rows[name] == ["undecided", "undefined", "-", "-", "-"]
    assert "closed form and Storm agree on every property that has a value" in out
    assert "none, more, never: the value is undefined (such as 0/0)" in told
