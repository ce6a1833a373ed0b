"""evidence.json: what it holds, what seals it, and what its schema refuses."""

from __future__ import annotations

import copy
import hashlib
import json
import os

import jsonschema
import pytest
from tests.small_evidence import PROPERTIES, assess_small

from tracebridge.chain import document_text
from tracebridge.errors import ModelError
from tracebridge.pipeline import replay
from tracebridge.report import evidence_reading
from tracebridge.report.evidence_reading import evidence_of, hash_beside, is_plain_name, read_evidence
from tracebridge.report.evidence_schema import evidence_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("evidence")


@pytest.fixture(scope="module")
def assessment(folder):
    return assess_small(folder)


@pytest.fixture(scope="module")
def document(assessment, folder):
    return json.loads((folder / "out" / "evidence.json").read_text())


@pytest.fixture(scope="module")
def schema():
    return evidence_schema()


# ---------------------------------------------------------------- what it holds


def test_it_holds_what_was_found_and_what_it_takes_to_find_it_again(document, folder):
    out = folder / "out"
    assert document["results"] == json.loads((out / "results.json").read_text())
    assert document["chain"] == json.loads((out / "chain.json").read_text())
    assert document["properties"] == {"source": PROPERTIES, "constants": {}}
    options = document["command"]["options"]
    assert {options[name] for name in ("seed", "draws", "resamples", "replicates")} == {0, 40, 10, 19}
    assert options["policy"] == "censored"
    assert options["skip_bad"] is False
    corpus, properties = document["inputs"]
    assert corpus["name"] == "runs.jsonl"
    assert (
        corpus["bytes"] == document["results"]["corpus"]["files"][0]["bytes"] == (folder / "runs.jsonl").stat().st_size
    )
    assert properties["bytes"] == len(PROPERTIES)
    assert corpus["sha256"] == hashlib.sha256((folder / "runs.jsonl").read_bytes()).hexdigest()
    assert properties["sha256"] == hashlib.sha256(PROPERTIES.encode()).hexdigest()
    assert [each["name"] for each in document["readings"]] == ["ok", "within", "steps", "twice"]
    for name, sha256 in document["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == sha256
    assert {"chain.json", "results.json", "model.prism", "summary.md"} <= set(document["files"])


def test_it_names_no_place_on_the_machine(document, folder):
    assert str(folder) not in json.dumps(document)
    assert os.getcwd() not in json.dumps(document)  # noqa: PTH109


def test_the_digest_is_that_of_the_rest(document):
    rest = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    assert document["digest"] == hashlib.sha256(text.encode()).hexdigest()


def test_the_same_input_and_seed_give_the_same_bytes(document, tmp_path):
    assess_small(tmp_path)
    assert json.loads((tmp_path / "out" / "evidence.json").read_text()) == document


def test_it_gives_back_the_fit_and_the_properties(assessment, document):
    evidence = evidence_of(document)
    assert evidence.fit.to_dict() == assessment.fitted.fit.to_dict()
    assert [each.name for each in evidence.resolved.properties] == ["ok", "within", "steps", "twice"]
    assert evidence.exit_code == assessment.exit_code


def test_assumptions_say_what_tested_them(document):
    found = {each["id"]: each for each in document["assumptions"]}
    certificate = document["results"]["certificate"]
    p = {each["name"]: each["p"] for each in certificate["statistics"]}
    assert found["markov-order"]["p"] == min(p["previous state"], p["dwell"])
    assert found["time-homogeneity"]["p"] == p["step time"]
    holm = {each["covariate"]: each["p_holm"] for each in certificate["covariates"]}
    assert found["task-independence"]["p"] == holm["task_id"]
    assert found["censoring"] == {
        "id": "censoring",
        "statement": "Whether a run is censored does not depend on how it would have ended, given its states.",
        "tested_by": None,
        "result": "untestable",
        "p": None,
        "reason": "no test of such data could contradict it",
    }


def test_without_a_certificate_nothing_is_said_to_be_tested(tmp_path):
    document = assess_small(tmp_path, replicates=0).evidence.document
    results = {each["id"]: each["result"] for each in document["assumptions"]}
    assert set(results.values()) == {"untested", "untestable"}
    assert results["markov-order"] == "untested"


def test_limits_name_what_rests_on_the_prior_and_on_one_engine(document):
    limits = {each["id"]: each["statement"] for each in document["limits"]}
    assert limits["horizon"].startswith("No run was seen beyond step 4:")
    assert "ok, within, steps, twice" in limits["single-engine"]
    censored = document["results"]["corpus"]["outcomes"]["censored"]
    assert f"How {censored} of 40 runs would have ended was not seen" in limits["censored-runs"]


# ---------------------------------------------------------------- the schema


def test_real_evidence_obeys_the_schema(document, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)


def objects(value, place=()):
    """Places of the objects that have fields of their own, one of each kind."""
    if isinstance(value, dict):
        yield place
        for key, item in value.items():
            yield from objects(item, (*place, key))
    elif isinstance(value, list) and value:
        yield from objects(value[0], (*place, 0))


FREE = {("chain",), ("results", "certificate"), ("results", "ladder"), ("results", "corpus")}
MAPS = {
    "packages",
    "engines",
    "files",
    "constants",
    "annotations",
    "outcomes",
    "terminations",
    "lengths",
    "steps",
    "models",
    "runs_per_task",
    "pass_rate",
    "R",
    "uncertainty",
    "if_all_censored",
    "satisfied",
    "standings",
    "start_states",
    "values",
}


def test_the_schema_forbids_missing_and_unknown_fields(document, schema):
    validator = jsonschema.Draft202012Validator(schema)
    document = {**document, "chain": {}, "results": {**document["results"], "certificate": {}}}
    document["results"]["properties"] = document["results"]["properties"][:1]
    assert validator.is_valid(document)
    tried = 0
    for place in objects(document):
        if any(place[: len(free)] == free for free in FREE):
            continue
        if place and place[-1] in MAPS and not (place[-1] == "uncertainty" and "properties" in place):
            continue
        worse = copy.deepcopy(document)
        holder = worse
        for key in place:
            holder = holder[key]
        holder["surprise"] = 1
        assert not validator.is_valid(worse), place
        with pytest.raises(ModelError, match="surprise"):
            evidence_of(worse)
        del holder["surprise"]
        required = "mark" if place == ("results", "figures") else next(iter(holder))  # figures are there or missing
        value = holder.pop(required)
        assert not validator.is_valid(worse), (*place, required)
        with pytest.raises(ModelError):
            evidence_of(worse)
        holder[required] = value
        tried += 1
    assert tried > 25


# ---------------------------------------------------------------- hostile files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1, 2]", "is an object, not list"),
        ('{"kind": "tracebridge-results"}', "this is 'tracebridge-results', not 'tracebridge-evidence'"),
        ('{"kind": "tracebridge-evidence"}', "missing required field"),
        ('{"kind": "a", "kind": "tracebridge-evidence"}', "the key 'kind' is given twice"),
        ('{"kind": "tracebridge-evidence", "chain": NaN}', "NaN is no JSON number"),
        ('{"kind": "tracebridge-evidence", "chain": ' + "[" * 60 + "]" * 60 + "}", "nested deeper than 40 levels"),
        ('{"chain": ' + "[" * 200_000, "nested too deeply"),
        ('{"kind": ' + "9" * 5_000 + "}", "a whole number in it has too many digits$"),
    ],
)
def test_what_is_no_evidence_is_refused(tmp_path, text, message):
    path = tmp_path / "evidence.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        read_evidence(path)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 3


def test_the_file_of_a_state_map_is_an_input(tmp_path):
    rules = tmp_path / "states.toml"
    rules.write_text('default = "search"\n[[rule]]\nstate = "plan"\nname = "plan"\n')
    found = assess_small(tmp_path, states=rules, draws=0, resamples=0, replicates=0)
    (recorded,) = [each for each in found.evidence.document["inputs"] if each["role"] == "states"]
    assert recorded["name"] == "states.toml"
    assert recorded["bytes"] == rules.stat().st_size
    assert recorded["sha256"] == hashlib.sha256(rules.read_bytes()).hexdigest()
    rules.unlink()  # what it said stands in the document of the fit
    (tmp_path / "out" / "report.html").unlink()
    assert replay(tmp_path / "out" / "evidence.json", [tmp_path / "runs.jsonl"]).differences == ()


def test_a_byte_order_mark_is_no_part_of_the_document(assessment, tmp_path):
    path = tmp_path / "evidence.json"
    path.write_text("\ufeff" + document_text(assessment.evidence.document), encoding="utf-8")
    assert read_evidence(path).document == assessment.evidence.document


def test_large_files_and_what_is_no_file_are_refused(folder, assessment, monkeypatch, tmp_path):
    monkeypatch.setattr(evidence_reading, "MAX_BYTES", 1_000)
    with pytest.raises(ModelError, match="larger than 1,000 bytes"):
        read_evidence(folder / "out" / "evidence.json")
    with pytest.raises(ModelError, match=r"this is a folder \(give .*evidence.json\)"):
        read_evidence(folder / "out")
    with pytest.raises(ModelError, match="there is no such file"):
        read_evidence(tmp_path / "none.json")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="no regular file"):
        read_evidence(tmp_path / "pipe")


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a/b", "..", ".", "", "C:\\x", "a\\b", "nul\x00", "esc\x1b[2J"]
)
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    assert not is_plain_name(name)
    with pytest.raises(ModelError, match="no plain name"):
        hash_beside(tmp_path, name)


def test_links_and_pipes_beside_are_not_followed(tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="a link, which is not followed"):
        hash_beside(tmp_path, "link")
    with pytest.raises(ModelError, match="no regular file"):
        hash_beside(tmp_path, "pipe")
    assert hash_beside(tmp_path, "secret") == hashlib.sha256(b"x").hexdigest()
