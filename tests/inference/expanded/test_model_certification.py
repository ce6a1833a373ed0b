"""Certificates of richer chains: they find what a form cannot say, let pass what it can, and say what they cannot."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.chain.expanded.random_models import FORMS, random_model

from tracebridge import fit_chain, read_traces
from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.errors import ModelError, NothingToCheckError, UsageError
from tracebridge.inference.expanded import certification, replicates
from tracebridge.inference.expanded.certificate import TOLERANCE, ModelCertificate
from tracebridge.inference.expanded.certification import certify_model, count_parameters
from tracebridge.inference.expanded.replicates import Trial, replicate
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import CENSORED, RunPaths

FIRST, ORDER2, CLOCK, PHASES = (parse_model(name) for name in ("first-order", "order2", "clock:0,1,2,4", "phases:2"))


def ending_rarely(model: ExpandedModel, factor: float = 0.3) -> ExpandedModel:
    """The model with ends less likely, so that runs are longer."""
    rows = np.array(model.rows)
    rows[..., -2:] *= factor
    return replace(model, rows=rows / rows.sum(axis=-1, keepdims=True))


@cache
def corpus(name: str, n: int = 150, seed: int = 0, cap: int = 12) -> RunPaths:
    """Runs of a random model of a form, cut after so many steps."""
    hazard = np.zeros(cap + 1)
    hazard[cap] = 1.0
    model = ending_rarely(random_model(name, seed=seed))
    return ModelSimulation(model, hazard).corpora(n, [np.random.SeedSequence(seed)])[0]


@cache
def certificate(truth: str, form: str, *, held_out: bool = False, n: int = 150) -> ModelCertificate:
    paths = corpus(truth, n)
    if not held_out:
        return certify_model(paths, parse_model(form), replicates=39)
    half = n // 2
    test = paths.take(np.arange(half, n))
    return certify_model(paths.take(np.arange(half)), parse_model(form), test=test, replicates=39)


# ---------------------------------------------------------------- what it says


@pytest.mark.parametrize("held_out", [False, True])
def test_a_remembered_state_is_found_and_passes_with_its_own_form(held_out):
    found = certificate("order2", "first-order", held_out=held_out, n=400)
    assert found.verdict("path") == "reject"
    assert found.path.statistics[1].p == pytest.approx(1 / 40)
    assert "previous state" in found.reasons("path")[0]
    assert certificate("order2", "order2", held_out=held_out, n=400).verdict("path") in ("accept", "inconclusive")


def test_a_clock_is_found_in_both_scopes():
    found = certificate("clock:0,2,3", "first-order", n=400)
    assert (found.verdict("timing"), found.verdict("path")) == ("reject", "reject")
    passed = certificate("clock:0,2,3", "clock:0,2,3", n=400)
    assert passed.verdict("timing") != "reject"
    assert passed.verdict("path") != "reject"


def test_hidden_phases_pass_as_phases():
    assert certificate("phases:2", "phases:2", n=400).verdict("path") in ("accept", "inconclusive")


def test_the_cell_that_departs_most_is_named():
    # `b` ends in success after `a`, and in failure after `c`; all else is as a first-order chain has it.
    runs = [("ab", "success"), ("cb", "failure")] * 100
    found = certify_model(RunPaths.of_names(runs), FIRST, replicates=19)
    assert found.verdict("path") == "reject"
    first = found.departures[0]
    assert (first.statistic, first.state, first.observed) in {("previous state", "b", 100), ("previous state", "b", 0)}
    assert first.expected == pytest.approx(50, abs=1)
    assert (first.residual > 0) == ((first.context, first.following) in {("a", "success"), ("c", "failure")})
    assert found.shares[0].state == "b"
    assert sum(share.share for share in found.shares if share.statistic == "previous state") == pytest.approx(1)


def test_p_values_are_even_on_chains_of_the_form():
    # The mean of n independent even p-values has a deviation of .29 / sqrt(n).
    for form, number in (("order2", 20), ("phases:2", 8)):
        model, p = ending_rarely(random_model(form, m=2, seed=1)), []
        for k in range(number):
            paths, _ = ModelSimulation(model).corpora(60, [np.random.SeedSequence((8, k))])
            found = certify_model(paths, parse_model(form), replicates=19, seed=k)
            p.append([found.timing.p, found.path.p])
        assert (np.abs(np.mean(p, axis=0) - 0.5) < 3 * 0.29 / np.sqrt(number)).all()
        assert (np.mean(np.array(p) <= 0.05, axis=0) <= 0.15).all()


@pytest.mark.parametrize("name", [name for name in FORMS if "classes" not in name])
def test_every_kind_of_form_passes_on_its_own_runs(name):
    paths = corpus(name, 120)
    found = certify_model(
        paths.take(np.arange(60)), parse_model(name), test=paths.take(np.arange(60, 120)), replicates=19
    )
    assert min(found.timing.p, found.path.p) > 0.01
    assert found.n_states >= len(paths.states)
    assert ModelCertificate.from_dict(found.to_dict()) == found


# ---------------------------------------------------------------- how it is done


@pytest.mark.parametrize("form", [ORDER2, PHASES], ids=str)
@pytest.mark.parametrize("held_out", [False, True])
def test_the_runs_are_treated_as_every_replicate_is(form, held_out):
    """Given the chain that replicates are drawn from, the runs could be any one of them."""
    paths = corpus(str(form))
    source = estimate(paths, form)
    trial = Trial(warm=source, kappa=1.0, n_fitted=80 if held_out else None)
    seed, number = 4, 6
    drawn, _ = replicate(trial, source, paths, number, seed, None)
    hazard = np.zeros(13)
    hazard[12] = 1.0
    simulation = ModelSimulation(source, hazard)
    for k, child in enumerate(np.random.SeedSequence(seed).spawn(number)):
        _, found = trial.judge(simulation.corpora(paths.n_runs, [child])[0])
        np.testing.assert_allclose(drawn.values[k], found.values[0], atol=1e-9)


@pytest.mark.parametrize("form", [ORDER2, PHASES], ids=str)
def test_neither_slices_nor_the_call_change_the_certificate(form, monkeypatch):
    paths = corpus("order2", 60)
    one = certify_model(paths, form, replicates=19, seed=3).to_dict()
    assert certify_model(paths, form, replicates=19, seed=3).to_dict() == one
    monkeypatch.setattr(replicates, "_SLICE", 1)
    done: list[tuple[int, int]] = []
    sliced = certify_model(paths, form, replicates=19, seed=3, progress=lambda k, n: done.append((k, n)))
    assert done == [(k, 19) for k in range(1, 20)]
    whole = ModelCertificate.from_dict(one)
    for scope in ("timing", "path"):
        assert sliced[scope].p == whole[scope].p
        for ours, theirs in zip(sliced[scope].statistics, whole[scope].statistics, strict=True):
            assert ours.p == theirs.p
            np.testing.assert_allclose([ours.value, ours.noise], [theirs.value, theirs.noise], atol=1e-9)


def test_a_step_cap_is_drawn_too():
    found = certificate("order2", "order2", n=400)
    assert found.runs["censored"] > 20
    assert found.timing.p > 0.05


def test_empty_runs_that_were_cut_change_nothing():
    paths = corpus("order2", 60)
    empty = RunPaths.of_names([([], "censored")] * 5, states=paths.states)
    both = certification._joined(paths, empty)
    assert certify_model(both, FIRST, replicates=19) == certify_model(paths, FIRST, replicates=19)


def test_parameters_are_those_that_runs_can_tell():
    runs = [("aab", "success"), ("ab", "failure"), ("ba", "censored")]
    paths = RunPaths.of_names(runs, states="abc")
    # After a: a, b; after b: success, failure, a. The last step of the cut run is no transition, and c was never seen.
    assert count_parameters(paths, FIRST) == (1 + 2, 6)
    # a in contexts first, a; b in a, first.
    assert count_parameters(paths, ORDER2) == (2 * 1 + 2 * 2, 6)
    assert count_parameters(paths, parse_model("phases:3")) == (3 * 3 + 2 * 2, 6)
    assert count_parameters(paths, parse_model("phases:3:full-shared")) == (3 * 3 + 6, 6)


def test_a_form_that_would_follow_any_runs_gets_no_path_verdict():
    paths = corpus("order2", 20)
    found = certify_model(paths, parse_model("order2+dwell3+clock:0,1,2,3"), replicates=19)
    assert 3 * found.n_parameters > found.n_transitions
    assert found.verdict("path") == "refused"
    assert "no path verdict" in found.reasons("path")[0]
    assert found.verdict("timing") != "refused"


def test_phases_with_more_parameters_than_transitions_get_no_timing_verdict_held_out():
    paths, form = corpus("order2", 20), parse_model("order2+phases:3")
    held_out = certify_model(paths.take(np.arange(10)), form, test=paths.take(np.arange(10, 20)), replicates=19)
    assert held_out.n_parameters > held_out.n_transitions
    assert held_out.verdict("timing") == "refused"
    assert "no timing verdict" in held_out.reasons("timing")[0]
    assert certify_model(paths, form, replicates=19).verdict("timing") != "refused"


def test_what_trials_of_a_task_share_is_noise_and_no_misfit():
    # Tasks that always succeed and tasks that never do: outcomes vary more than those of independent runs. Held out,
    # the second part has a quarter of the tasks that succeed, the first three quarters.
    def trials(solved: int, *, named: bool) -> RunPaths:
        runs = [("a" * (1 + j % 3), "success" if t < solved else "failure") for t in range(8) for j in range(10)]
        tasks = [f"{solved} {t}" for t in range(8) for _ in range(10)] if named else None
        return RunPaths.of_names(runs, tasks=tasks, states="ab")

    by_task, alone = (
        certify_model(trials(6, named=named), parse_model("clock:0,1,2"), test=trials(2, named=named), replicates=39)
        for named in (True, False)
    )
    assert by_task.timing.statistics[0].value == alone.timing.statistics[0].value == pytest.approx(0.5, abs=0.01)
    assert by_task.timing.statistics[0].noise > 1.5 * alone.timing.statistics[0].noise
    assert alone.verdict("timing") == "reject"
    assert by_task.verdict("timing") != "reject"
    assert any("tasks drawn again" in note for note in by_task.notes)


def test_classes_of_tasks_are_part_of_what_is_drawn():
    runs = [("a" * (1 + j % 3), "success" if t < 4 else "failure") for t in range(8) for j in range(10)]
    paths = RunPaths.of_names(runs, tasks=[f"{t}" for t in range(8) for _ in range(10)], states="ab")
    found = certify_model(paths, parse_model("clock:0,1,2+classes:2"), replicates=19)
    assert found.form == "clock:0,1,2+classes:2"
    assert any("class of their task" in note for note in found.notes)


def test_trials_of_one_task_are_said_to_be_taken_as_independent():
    runs = [("ab", "success"), ("a", "failure")] * 10
    paths = RunPaths.of_names(runs, tasks=["x", "y"] * 10)
    assert any("several runs" in note for note in certify_model(paths, FIRST, replicates=19).notes)


# ---------------------------------------------------------------- the document


def test_few_runs_have_low_power_and_prove_nothing():
    found = certificate("order2", "order2")
    assert found.low_power
    assert any("low power" in note for note in found.notes)
    assert not certificate("order2", "order2", n=400).low_power


def test_adequate_needs_a_small_effect_and_little_noise():
    found = certificate("order2", "order2", n=400)
    statistics = [replace(s, effect=0.001, noise=0.002) for s in found.path.statistics]
    small = replace(found, path=replace(found.path, p=0.01, statistics=tuple(statistics)))
    assert small.verdict("path") == "reject"
    assert small.adequate("path")
    for change in ({"effect": TOLERANCE.nats * 1.01}, {"noise": TOLERANCE.nats * 1.01}):
        worse = [*statistics[:-1], replace(statistics[-1], **change)]
        assert not replace(found, path=replace(found.path, statistics=tuple(worse))).adequate("path")
    large = replace(statistics[0], effect=TOLERANCE.gap * 1.01)
    assert not replace(found, timing=replace(found.timing, statistics=(large,))).adequate("timing")


def test_the_verdict_follows_from_p_and_from_what_would_be_seen():
    found = certificate("order2", "order2", n=400)
    seen = tuple(replace(s, resolution=0.01) for s in found.path.statistics)
    path = replace(found.path, p=0.2, statistics=seen)
    assert replace(found, path=path).verdict("path") == "accept"
    blind = (replace(seen[0], resolution=0.3), *seen[1:])
    missed = replace(found, path=replace(path, statistics=blind))
    assert missed.verdict("path") == "inconclusive"
    assert "an effect of 0.1 in probability would be missed" in missed.reasons("path")[1]
    assert replace(found, path=replace(path, p=0.05)).verdict("path") == "reject"
    nothing = tuple(replace(s, resolution=None) for s in seen)
    assert replace(found, path=replace(path, statistics=nothing)).verdict("path") == "inconclusive"
    assert replace(found, path=replace(path, refusals=("why",))).reasons("path") == ("why",)


def test_the_document_reads_back():
    for found in (certificate("order2", "first-order", n=400), certificate("order2", "order2", held_out=True, n=400)):
        text = json.dumps(found.to_dict())
        again = ModelCertificate.from_dict(json.loads(text))
        assert again == found
        assert json.dumps(again.to_dict()) == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "certificate"}, "no document"),
        ({"schema_version": 2}, "version 2"),
        ({"schema_version": True}, "version True"),
        ({"level": "0.05"}, "level"),
        ({"low_power": True}, "low_power does not follow"),
        ({"verdicts": {}}, "verdicts does not follow"),
        ({"more": 1}, "'more' is unknown"),
    ],
)
def test_a_document_that_was_changed_is_refused(change, message):
    data = certificate("order2", "first-order", n=400).to_dict() | change
    with pytest.raises(ModelError, match=message):
        ModelCertificate.from_dict(data)


def test_reasons_may_be_worded_otherwise():
    data = certificate("order2", "first-order", n=400).to_dict()
    data["verdicts"]["path"]["reasons"] = ["other words"]
    assert ModelCertificate.from_dict(data) == certificate("order2", "first-order", n=400)


# ---------------------------------------------------------------- refusals


def test_options_out_of_range_are_refused():
    paths = corpus("order2", 20)
    for options in ({"replicates": 18}, {"replicates": True}, {"level": 0.0}, {"level": 1.0}, {"kappa": 0.0}):
        with pytest.raises(UsageError):
            certify_model(paths, FIRST, **options)
    with pytest.raises(UsageError, match="same states"):
        certify_model(paths, FIRST, test=RunPaths.of_names([("ab", "success")]))
    with pytest.raises(UsageError, match="not chosen"):
        certify_model(paths, parse_model("clock"))


def test_without_a_transition_there_is_nothing_to_certify():
    nothing = RunPaths.of_names([("a", "censored"), ("", "success")], states="abc")
    with pytest.raises(NothingToCheckError):
        certify_model(nothing, FIRST)
    with pytest.raises(NothingToCheckError):
        certify_model(corpus("order2", 20), FIRST, test=nothing)


def test_cut_runs_stay_cut():
    assert (corpus("order2").outcomes == CENSORED).any()


# ---------------------------------------------------------------- real runs


@pytest.mark.shared_data
def test_real_runs_are_not_first_order_in_either_scope(shared_data):
    traces = read_traces(shared_data / "traces" / "tau_bench" / "gpt-4o-airline.json")
    paths = RunPaths.of_traces(fit_chain(traces).abstraction, traces)
    found = certify_model(paths, FIRST, replicates=39)
    assert (found.verdict("timing"), found.verdict("path")) == ("reject", "reject")
    # A study of the same runs with rare labels folded found .17 nats a step.
    assert found.path.statistics[1].effect > 0.1
    assert len(found.departures) == 15
