"""Replaying evidence: what is as recorded is said so, and what was changed anywhere is found."""

from __future__ import annotations

import copy
import json
import random
import shutil
from fractions import Fraction

import pytest
from tests.small_evidence import assess_small, edited, leaves

from tracebridge.errors import InputError, ModelError, PropertyError, UsageError
from tracebridge.pipeline import replay
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import digest_of
from tracebridge.report.evidence_reading import evidence_of
from tracebridge.report.evidence_schema import Options
from tracebridge.report.folder import require_unrecorded
from tracebridge.report.replay import recomputation, replay_evidence
from tracebridge.report.replay.account import Account, Unknown, Within
from tracebridge.report.replay.consistency import inconsistencies


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("replay")


@pytest.fixture(scope="module")
def evidence(folder):
    assess_small(folder, resamples=0)
    return Evidence(document=json.loads((folder / "out" / "evidence.json").read_text()))


@pytest.fixture
def copied(folder, evidence, tmp_path):
    return shutil.copytree(folder / "out", tmp_path / "out")


# ---------------------------------------------------------------- as recorded


def test_from_the_counts_all_is_found_again_and_the_rest_is_accounted_for(folder, evidence):
    found = replay(folder / "out" / "evidence.json")
    assert found.ok, found.differences
    assert found.exit_code == 0
    assert (found.rounded, found.allowed) == (0, 0)  # the same versions on the same machine: the same bits
    values = len(leaves(dict(evidence.document))) - 1  # the digest is no part of what it seals
    assert found.equal + found.unknown == values
    for part in ("certificate", "observed"):
        assert any(each.path.startswith(f"results.{part}") for each in found.not_recomputed)
    given = {each.path: each.reason for each in found.not_recomputed if each.reason in recomputation.GIVEN.values()}
    assert {*given} == {"tool", "command", "inputs", "properties", "chain.abstraction", "chain.counts"}
    assert all(reason == recomputation.GIVEN[path.partition(".")[0]] for path, reason in given.items())
    others = {each.reason for each in found.not_recomputed} - {*given.values()}
    assert others == {recomputation.NEEDS_TRACES, "hashes, compared with the files themselves"}
    assert found.notes == ()


def test_from_the_traces_every_number_is_found_again(folder, evidence):
    found = replay(folder / "out" / "evidence.json", [folder / "runs.jsonl"])
    assert found.ok, found.differences
    left = {each.path for each in found.not_recomputed}
    assert left == {"tool", "command", "inputs", "properties", "files['results.json']"}
    assert found.equal + found.unknown == len(leaves(dict(evidence.document))) - 1


@pytest.mark.parametrize(
    "options",
    [
        {"resamples": 10, "futures": 2},
        {"model": "order2", "robust": 0.9},
        {"model": "auto", "tasks": 40, "replicates": 39},
        {"prior": "none", "support": "observed", "policy": "failure", "exact": True, "draws": 0, "resamples": 0},
    ],
)
def test_other_models_and_options_are_found_again(tmp_path, options):
    assess_small(tmp_path, **options)
    path = tmp_path / "out" / "evidence.json"
    (tmp_path / "out" / "report.html").unlink()  # to render it takes longer than the rest
    for traces in (None, [tmp_path / "runs.jsonl"]):
        found = replay(path, traces)
        assert found.ok, found.differences


# ---------------------------------------------------------------- edits


def worse(value, rng):
    """Another value of the same kind, farther away than rounding."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 7])
    if isinstance(value, float):
        return value + rng.choice([-1, 1]) * rng.uniform(1e-6, 1) * max(1.0, abs(value))
    if value is None:
        return "something"
    return value + "x" if rng.random() < 0.5 else value[:-1] or "y"


def holders(value, place=()):
    """Every object and list with something in it."""
    if isinstance(value, dict | list) and value:
        yield [*place]
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from holders(item, (*place, key))


def test_two_hundred_random_edits_are_all_found_by_the_digest(evidence):
    rng = random.Random(20)
    places = leaves({key: value for key, value in evidence.document.items() if key != "digest"})
    removable = [*holders(evidence.document)]
    for number in range(200):
        document = copy.deepcopy(dict(evidence.document))
        if number % 4:
            place, value = rng.choice(places)
            changed = edited(Evidence(document=document), place, worse(value, rng), sealed=False).document
        else:
            place = rng.choice(removable)
            holder = document
            for key in place:
                holder = holder[key]
            key = rng.choice([*holder]) if isinstance(holder, dict) else rng.randrange(len(holder))
            del holder[key]
            changed = document
        assert "digest" not in changed or digest_of(changed) != changed["digest"], place


def test_every_number_that_follows_from_the_counts_is_found_if_it_is_changed(evidence):
    """All of them at once, and sealed again: each must be told by its place."""
    fit = recomputation.refitted(evidence.document["chain"])
    document = recomputation.recomputed_document(evidence, fit)
    known = {json.dumps(place) for place, value in leaves(_plain(document)) if _is_number(value)}
    known = {place for place in known if json.loads(place)[0] in ("results", "chain")}
    inputs = {"counts", "abstraction", "schema_version", "k_max", "seed", "level", "draws"}  # what all follows from
    places = [
        (place, value)
        for place, value in leaves(dict(evidence.document))
        if json.dumps(place) in known and not inputs & set(place) and _is_number(value)
    ]
    assert len(places) > 150
    rng = random.Random(21)
    changed = copy.deepcopy(dict(evidence.document))
    for place, value in places:
        holder = changed
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = _another_number(value, rng)
    changed["digest"] = digest_of(changed)
    found = replay_evidence(Evidence(document=changed), folder=None)
    told = {each.path for each in found.differences if each.kind == "recomputed"}
    missed = [place for place, _ in places if _path(place) not in told]
    assert not missed
    assert "digest" not in {each.kind for each in found.differences}


def _plain(value):
    if isinstance(value, Within):
        return value.value
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _is_number(value):
    if isinstance(value, str):
        top, _, bottom = value.partition("/")
        return top.isdigit() and bottom.isdigit()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _another_number(value, rng):
    if isinstance(value, str):
        return str(Fraction(value) + Fraction(1, rng.randrange(2, 99)))
    return worse(value, rng)


def _path(place):
    account = Account()
    new, old = "a", "b"
    for key in reversed(place):
        new, old = ({key: new}, {key: old}) if isinstance(key, str) else ([new] * (key + 1), [new] * key + [old])
    account.compare(old, new)
    (difference,) = account.differences
    return difference.path


ENDED_IN_SUCCESS = ["chain", "counts", "success", "transitions", "plan", "search"]

#: Edits by what they are made in, with the place that each is told by. Those of one row are made together.
EDITS = [
    [
        (["results", "properties", 0, "verdict"], "violated", "results.properties[0].verdict"),
        (["results", "properties", 0, "at_estimate"], "violated", "results.properties[0].at_estimate"),
        (["results", "exit_code"], 0, "results.exit_code"),
        (["results", "standings", "timing", "verdict"], "accept", "results.standings.timing.verdict"),
        (["results", "corpus", "n_runs"], 41, "results.corpus.n_runs"),
        (["results", "corpus", "lengths", "2"], 0, "results.corpus.lengths: runs"),
        (["assumptions", 0, "result"], "untestable", "assumptions[0].result"),
        (["limits", 0, "statement"], "It shows all.", "limits[0].statement"),
        (["readings", 0, "text"], "it works", "readings[0].text"),
        (["tool", "engines", "closed form"], "9.9", "results.tool.engines"),
        (["inputs", 0, "sha256"], "0" * 64, "inputs: files that were read"),
        (["inputs", 1, "bytes"], 1, "inputs: properties"),
        (["files", "chain.json"], "0" * 64, "files['chain.json']"),
    ],
    [
        (["chain", "chain", "transitions", "plan", "plan"], "1/3", "chain.chain.transitions.plan.plan"),
        (["chain", "alpha", "plan"], "2/5", "chain.alpha.plan"),
        (["command", "options", "draws"], 41, "results.properties[0].uncertainty.draws"),
        (["command", "options", "seed"], 1, "results.properties[0].uncertainty.seed"),
    ],
    [(["chain", "prior"], "laplace", "results.fit.prior")],
    [(ENDED_IN_SUCCESS, 1, "chain")],
    [(["chain", "abstraction", "classifier"], "no map", "chain")],
    [(["results", "certificate", "p"], 0.001, "results.certificate")],
    [(["properties", "source"], 'P=? [ F "success" ];', "inputs: properties")],
]


@pytest.mark.parametrize("edits", EDITS)
def test_edits_that_are_sealed_again_are_found_by_what_contradicts_them(evidence, edits):
    changed = evidence
    for place, value, _ in edits:
        changed = edited(changed, place, value)
    assert changed.digest == digest_of(changed.document)
    found = replay_evidence(evidence_of(changed.document), folder=None)
    assert found.exit_code == 6
    told = [each.path for each in found.differences]
    for _, _, path in edits:
        assert any(each.startswith(path) for each in told), path


#: Options with a value that contradicts the chain or the results of the small evidence.
CONTRADICTED = {
    "covariates": ["model"],
    "endings": "rules.toml",
    "engines": ["closed-form", "storm"],
    "exact": True,
    "k_max": 7,
    "min_count": 3,
    "model": "order2",
    "outcomes": ["results.json"],
    "policy": "failure",
    "prior": 0.25,
    "profile": "paper",
    "start": {"plan": "1/2", "search": "1/2"},
    "states": "map.toml",
    "support": "observed",
    "text_features": {"weight": 1.0},
    "top": 1,
    "trace_format": "flat",
    "vocabulary": "vocabulary",
    "weight": "w",
}

#: Options that numbers follow from which are computed again, and those that nothing else in a document tells.
RECOMPUTED = {"seed", "draws", "futures", "replicates", "robust"}
UNTOLD = {"mapping", "resamples", "skip_bad", "time_limit"}


def test_options_that_contradict_the_chain_or_the_results_are_found_without_the_traces(evidence):
    assert [*inconsistencies(evidence)] == []
    assert {*CONTRADICTED} | RECOMPUTED | UNTOLD == {*Options.__struct_fields__}
    for name, value in CONTRADICTED.items():
        changed = evidence_of(edited(evidence, ["command", "options", name], value).document)
        told = {each.path for each in inconsistencies(changed)}
        assert told & {f"command.options.{name}", f"results.{name}"}, name


@pytest.mark.parametrize(
    ("options", "edits"),
    [
        ({"model": "dwell2"}, [("model", each) for each in ("dwell3", "first-order", "auto", "no such model")]),
        (
            {"prior": 0.5, "start": {"plan": "1/3", "search": "2/3"}, "min_count": 1, "k_max": 9, "top": 5},
            [("prior", 0.25), ("prior", None), ("start", "observed"), ("min_count", 0), ("k_max", None), ("top", None)],
        ),
        ({"profile": "paper", "replicates": 0}, [("profile", None), ("prior", "jeffreys"), ("replicates", 19)]),
        ({"covariates": ["trial"]}, [("covariates", ["task_id"])]),
    ],
)
def test_so_are_those_of_other_fits(tmp_path, options, edits):
    found = assess_small(tmp_path, **{"draws": 0, "resamples": 0, **options}).evidence
    assert [*inconsistencies(found)] == []
    for name, value in edits:
        changed = edited(found, ["command", "options", name], value)
        assert f"command.options.{name}" in {each.path for each in inconsistencies(changed)}, (name, value)


#: What may be changed, and sealed again, without that being found even with the traces; all else is found.
UNFOUND = [
    (["tool", "python"], "9.9"),
    (["tool", "platform"], "elsewhere"),
    (["tool", "packages", "networkx"], "9.9"),
    (["command", "options", "mapping"], {"step": "action"}),
    (["command", "options", "time_limit"], 7.5),
    (["command", "options", "skip_bad"], True),
    (["command", "options", "futures"], 3),  # where nothing was undecided, so that none was drawn
    (["inputs", 1, "name"], "other.props"),
]


def is_unfound(place):
    return any(place[: len(other) - 1] == other[:-1] and place[-1] == other[-1] for other, _ in UNFOUND) or (
        place[:2] == ["tool", "packages"] or place[-1] == "resamples"  # so few may draw the same by chance
    )


def test_what_may_be_changed_without_being_found_is_this_and_no_more(folder, copied):
    path, traces = copied / "evidence.json", [folder / "runs.jsonl"]
    (copied / "report.html").unlink()  # it shows these: a page that was not made of them is found
    evidence = Evidence(document=json.loads(path.read_text()))
    changed = evidence
    for place, value in UNFOUND:
        changed = edited(changed, place, value)
    path.write_text(json.dumps(changed.document))
    found = replay(path, traces)
    assert found.ok, found.differences
    assert {*found.versions} == {"Python", "platform", "networkx"}  # which is told
    rng = random.Random(22)
    places = [(place, value) for place, value in leaves(dict(evidence.document)) if not is_unfound(place)]
    for place, value in rng.sample(places, 30):
        path.write_text(json.dumps(edited(evidence, place, worse(value, rng)).document))
        try:
            assert not replay(path, traces).ok, place
        except (InputError, ModelError, PropertyError):  # it can no longer be read as evidence
            continue


@pytest.mark.parametrize(("name", "value"), [("policy", "drop it"), ("prior", "something"), ("model", "order9x")])
def test_options_that_are_none_are_found_with_the_traces_too(folder, evidence, copied, name, value):
    path = copied / "evidence.json"
    path.write_text(json.dumps(edited(evidence, ["command", "options", name], value).document))
    found = replay(path, [folder / "runs.jsonl"])
    assert found.exit_code == 6
    assert f"command.options.{name}" in {each.path for each in found.differences}


def test_a_changed_number_is_told_with_what_it_should_be_and_how_far_it_is_off(evidence):
    place = ["results", "properties", 1, "engines", 0, "value", "value"]
    true = evidence.results["properties"][1]["engines"][0]["value"]["value"]
    found = replay_evidence(edited(evidence, place, true + 0.125), folder=None)
    told = {each.path: each for each in found.differences if each.kind == "recomputed"}
    assert set(told) == {"results.properties[1].engines[0].value.value"}
    (difference,) = told.values()
    assert (difference.recorded, difference.found) == (true + 0.125, true)
    assert difference.amount == pytest.approx(-0.125, abs=1e-12)
    contradicted = [each.message for each in found.differences if each.kind == "inconsistent"]
    assert "the value lies outside of its bounds" in contradicted


def test_what_only_the_runs_can_tell_is_found_with_the_traces(folder, evidence, copied):
    place = ["results", "observed", "R", "1", "value"]
    changed = edited(evidence, place, 0.123)
    (copied / "evidence.json").write_text(json.dumps(changed.document))
    path = copied / "evidence.json"
    assert "results.observed.R.1.value" not in {each.path for each in replay(path).differences}
    found = replay(path, [folder / "runs.jsonl"])
    assert "results.observed.R.1.value" in {each.path for each in found.differences}


def test_properties_that_do_not_parse_are_told_by_their_place_once(evidence):
    changed = edited(evidence, ["properties", "source"], 'P=? [ F "success" ];\nP=? [ F<= ];')
    found = replay_evidence(evidence_of(changed.document), folder=None)
    (told,) = [each for each in found.differences if each.kind == "recomputed"]
    assert told.path.startswith("properties.source:2:")
    assert told.message is not None
    assert "properties.source" not in told.message


# ---------------------------------------------------------------- files


def test_changed_files_and_links_are_found_and_missing_ones_are_said(copied):
    (copied / "model.prism").write_text("dtmc\n")
    (copied / "chain.json").unlink()
    (copied / "summary.md").unlink()
    (copied / "summary.md").symlink_to(copied / "results.json")
    found = replay(copied / "evidence.json")
    assert {each.path: each.kind for each in found.differences} == {"model.prism": "file", "summary.md": "file"}
    assert "files['chain.json']" in {each.path for each in found.not_recomputed}


def test_a_report_that_is_gone_and_files_that_are_not_of_the_record_are_told(copied):
    (copied / "report.html").unlink()
    (copied / "verdict\u202e.txt").write_text("all satisfied")
    (copied / "notes").mkdir()
    found = replay(copied / "evidence.json")
    assert found.ok
    assert found.notes == (
        "there is no report.html beside it; `tracebridge report` makes it from the evidence",
        "beside it, but not of the record, so that nothing vouches for them: notes, verdict\\u{202e}.txt",
    )
    assert found.to_dict()["notes"] == list(found.notes)


def test_a_report_that_was_edited_is_found(copied):
    report = copied / "report.html"
    report.write_text(report.read_text().replace("undecided", "satisfied").replace("</body>", " </body>"))
    (found,) = replay(copied / "evidence.json").differences
    assert (found.path, found.kind, found.recorded, found.found) == ("report.html", "file", None, None)


def test_what_a_replay_compares_is_not_written_over(copied, tmp_path):
    evidence, names = copied / "evidence.json", ["chain.json", "report.html"]
    for name in ("evidence.json", "chain.json", "../out/report.html"):
        with pytest.raises(UsageError, match="is compared with"):
            require_unrecorded(copied / name, evidence, names)
    require_unrecorded(copied / "other.html", evidence, names)
    require_unrecorded(tmp_path / "report.html", evidence, names)


def test_names_of_files_that_lead_elsewhere_are_found(evidence, tmp_path):
    (tmp_path / "secret").write_text("x")
    changed = edited(evidence, ["files", "../secret"], "0" * 64)
    found = replay_evidence(evidence_of(changed.document), folder=tmp_path / "out")
    assert ("../secret", "file") in {(each.path, each.kind) for each in found.differences}


def test_other_traces_are_told_apart(folder, evidence, tmp_path):
    other = tmp_path / "runs.jsonl"
    other.write_text((folder / "runs.jsonl").read_text().replace('"r0"', '"r00"'))
    found = replay(folder / "out" / "evidence.json", [other])
    assert [each.kind for each in found.differences] == ["input"]
    assert not found.with_traces
    with pytest.raises(UsageError, match="give these too"):
        replay(folder / "out" / "evidence.json", endings=folder / "runs.jsonl")


def test_traces_may_have_another_name(folder, copied, tmp_path):
    shutil.copy(folder / "runs.jsonl", tmp_path / "renamed.jsonl")
    (copied / "report.html").unlink()
    assert replay(copied / "evidence.json", [tmp_path / "renamed.jsonl"]).differences == ()


# ---------------------------------------------------------------- engines and versions


@pytest.mark.storm
def test_an_engine_that_is_missing_is_said_and_fails_nothing(tmp_path, monkeypatch):
    options = {"engines": ["closed-form", "storm"], "draws": 0, "resamples": 0, "replicates": 0}
    assess_small(tmp_path, **options)
    assert replay(tmp_path / "out" / "evidence.json").ok
    here = recomputation.engine_version
    monkeypatch.setattr(
        recomputation, "engine_version", lambda name, **rest: "missing" if name == "storm" else here(name, **rest)
    )
    found = replay(tmp_path / "out" / "evidence.json")
    assert found.ok, found.differences
    missing = {each.path for each in found.not_recomputed if each.reason == "Storm is not here"}
    assert {"results.properties[0].engines[1]", "results.properties[0].gap"} <= missing


def test_other_versions_may_draw_other_numbers_within_their_monte_carlo_error(evidence):
    tool = {**evidence.document["tool"]["packages"], "numpy": "0.0.1"}
    older = edited(evidence, ["tool", "packages"], tool)
    uncertainty = older.results["properties"][1]["uncertainty"]
    place = ["results", "properties", 1, "uncertainty", "interval", "lower"]
    end, error = uncertainty["interval"]["lower"], uncertainty["quantile_errors"][0]
    for distance, ok in ((0.0, True), (error, True), (20 * error, False)):
        found = replay_evidence(edited(older, place, end + distance), folder=None)
        recomputed = [each.path for each in found.differences if each.kind == "recomputed"]
        assert recomputed == ([] if ok else ["results.properties[1].uncertainty.interval.lower"])
        assert found.allowed == (distance == error)
        assert found.versions["numpy"][0] == "0.0.1"


def test_the_wording_of_another_version_is_no_difference(evidence):
    older = edited(evidence, ["tool", "version"], "0.0.1")
    older = edited(older, ["results", "tool", "version"], "0.0.1")
    place = ["limits", 0, "statement"]
    found = replay_evidence(edited(older, place, "Told in other words."), folder=None)
    assert "limits[0].statement" in {each.path for each in found.not_recomputed}
    assert {each.path for each in found.differences} == {"files['results.json']"}  # which was not written again


# ---------------------------------------------------------------- hostile documents


def test_random_edits_that_are_sealed_again_never_crash(evidence):
    """Whatever stands in a file: it is refused with a place, or replayed; nothing else."""
    rng = random.Random(22)
    certificate = [place for place, _ in leaves(dict(evidence.document)) if place[:2] == ["results", "certificate"]]
    chain = [place for place, _ in leaves(dict(evidence.document)) if place[:1] == ["chain"]]
    for place in (*rng.sample(certificate, 4), *rng.sample(chain, 4)):
        for value in [rng.choice([None, -1, "1/0"])]:
            document = edited(evidence, place, value).document
            try:
                found = replay_evidence(evidence_of(document), folder=None)
            except ModelError as error:
                assert "results.certificate" in str(error) or "chain" in str(error)  # noqa: PT017 - one of two ends
            else:
                assert found.exit_code == 6 or place[1] == "certificate", place
