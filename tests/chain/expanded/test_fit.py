"""Fits of richer chains: what they rest on, and their documents."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.chain.expanded.corpora import as_paths, forms, runs

from tracebridge.chain import (
    TransitionCounts,
    WeightedCounts,
    document_text,
    fit_counts,
    parse_document,
    write_document,
)
from tracebridge.chain.expanded import path_document
from tracebridge.chain.expanded.first_order_base import over_states
from tracebridge.chain.expanded.fit import ExpandedFit, fit_expanded, read_expanded_fit
from tracebridge.chain.expanded.path_document import (
    PathsDocument,
    in_document_order,
    paths_from_document,
    paths_to_dict,
)
from tracebridge.errors import FitError, ModelError, NothingToCheckError, UsageError
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths

RUNS = [
    (["plan", "search", "search", "answer"], "success"),
    (["plan", "answer"], "failure"),
    (["search", "search", "search"], "censored"),
    (["plan", "search", "answer"], "success"),
    (["plan", "answer"], "failure"),
    ([], "failure"),
]
TASKS = ["t1", "t1", "t2", None, "t2", "t2"]


def base_of(runs=RUNS, **options):
    return fit_counts(TransitionCounts.from_paths(run[:2] for run in runs), **options)


def fitted(name: str = "order2+clock:0,1,3", **options) -> ExpandedFit:
    return fit_expanded(base_of(), RunPaths.of_names(RUNS, tasks=TASKS), parse_model(name), **options)


def read(document) -> ExpandedFit:
    return ExpandedFit.from_dict(parse_document(document_text(document)), "chain.json")


def test_the_first_order_form_is_the_first_order_chain():
    fit = fitted("first-order")
    plain = fit.base.chain
    assert fit.chain.states == plain.states
    np.testing.assert_allclose(fit.chain.transitions.toarray(), plain.transitions.toarray(), rtol=1e-14)
    np.testing.assert_allclose(fit.chain.initial, plain.initial, rtol=1e-14)
    assert (fit.counts, fit.policy, fit.prior, fit.support, fit.start) == (
        *(fit.base.counts, "censored", "mass-one"),
        *("full", "observed"),
    )


@settings(max_examples=25)
@given(runs, forms, st.sampled_from(["censored", "failure", "drop"]), st.floats(0.1, 70))
def test_a_document_is_read_back_byte_for_byte(drawn, form, policy, kappa):
    try:
        base = base_of(drawn, policy=policy)
        fit = fit_expanded(base, as_paths(drawn).under(policy), form, kappa=kappa, remarks=["a remark"])
    except (FitError, NothingToCheckError):  # no end was seen, or no step
        assume(False)
    text = document_text(fit.to_dict())
    again = ExpandedFit.from_dict(parse_document(text))
    assert document_text(again.to_dict()) == text
    assert again.chain.states == fit.chain.states
    assert (again.chain.transitions != fit.chain.transitions).nnz == 0
    for name in ("codes", "offsets", "outcomes", "tasks", "groups"):
        np.testing.assert_array_equal(getattr(again.paths, name), getattr(fit.paths, name))


@settings(max_examples=8)
@given(st.permutations(range(len(RUNS))))
def test_the_order_of_runs_leaves_no_trace(order):
    moved = RunPaths.of_names([RUNS[i] for i in order], tasks=[TASKS[i] for i in order])
    fit = fit_expanded(base_of(), moved, parse_model("order2+clock:0,1,3"))
    assert fit.to_dict() == fitted().to_dict()


def test_a_file(tmp_path):
    write_document(tmp_path / "chain.json", fitted().to_dict())
    assert read_expanded_fit(tmp_path / "chain.json").to_dict() == fitted().to_dict()


def changed(path: list, value):
    document = copy.deepcopy(fitted().to_dict())
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value(inner[path[-1]]) if callable(value) else value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["kind"], "chain-fit", "kind"),
        (["schema_version"], 2, "version 2"),
        (["form"], "order2", "parameters.rows"),
        (["form"], "order2+clock:0,2,3", "do not follow"),
        (["form"], "order2+clock", "not chosen yet"),
        (["form"], "order2+clock:0,1,3+group:model", "groups"),
        (["form"], f"order2+dwell32+clock:{','.join(map(str, range(1000)))}+phases:32", "parameters.start"),
        (["form"], "walk", "'walk'"),
        (["kappa"], 2.0, "do not follow"),
        (["kappa"], 0.0, "kappa"),
        (["kappa"], "1", "kappa"),
        (["parameters", "groups"], ["x"], "groups"),
        (["parameters", "rows", 0], lambda value: value + 1e-3, "sum to one"),
        (["parameters", "rows"], lambda values: values[5:] + values[:5], "do not follow"),
        (["parameters", "start"], lambda values: values[::-1], "do not start as those of the base"),
        (["parameters", "advance"], [1.0], "3"),
        (["parameters", "class_weights", 0], -1.0, "not negative"),
        (["parameters", "rows"], lambda values: [*values, 0.0], "parameters.rows"),
        (["paths", "runs", 0, 4], 2, "not the runs"),
        (["paths", "runs", 0, 4], 0, "fewer than once"),
        (["paths", "runs", 0, 4], 2**70, "fewer than once or more than"),
        (["paths", "runs", 1, 4], 10**6, "more than 1000000"),
        (["paths", "runs", 0, 0], 7, "not there"),
        (["paths", "runs", 0, 0], -1, "not there"),
        (["paths", "runs", 0, 1], 3, "outcomes"),
        (["paths", "runs", 0, 1], 256, "outcome 256"),
        (["paths", "runs", 0, 2], 2**40, "out of range"),
        (["paths", "runs", 0, 2], 5, "tasks"),
        (["paths", "runs", 0, 3], 1, "groups"),
        (["paths", "runs"], lambda rows: rows[::-1], "ascend"),
        (["paths", "runs"], lambda rows: [rows[0], *rows], "not the runs|distinct"),
        (["paths", "sequences"], lambda texts: [*texts[:-1], "0 x"], "no sequence"),
        (["paths", "sequences"], lambda texts: [*texts[:-1], "0  1"], "no sequence"),
        (["paths", "sequences"], lambda texts: [*texts[:-1], "999999999"], "codes"),
        (["paths", "sequences"], lambda texts: [*texts, "2 2 2 2"], "ascend|taken"),
        (["paths", "tasks"], ["t2", "t1"], "ascend"),
        (["base", "prior"], "jeffreys", "alpha"),
        (["base", "start"], "smoothed", "not the observed one|does not follow"),
        (["seed"], None, "seed"),
        (["seed"], -1, "seed"),
    ],
)
def test_what_was_changed_is_refused(path, value, message):
    with pytest.raises(ModelError, match=message) as caught:
        read(changed(path, value))
    assert all(problem.location.path == "chain.json" for problem in caught.value.problems)


def test_another_base_is_refused():
    """One run fewer in the counts of the base, which is right by itself."""
    document = fitted().to_dict() | {"base": base_of(RUNS[:-1]).to_dict()}
    with pytest.raises(ModelError, match=r"parameters|not the runs"):
        read(document)
    for others in (RUNS[:-1], [*RUNS, (["plan"], "censored")]):
        with pytest.raises(ModelError, match="not the runs"):
            fit_expanded(base_of(), RunPaths.of_names(others), ModelForm(previous=True))
    with pytest.raises(ModelError, match="'walk'"):
        fit_expanded(base_of(), RunPaths.of_names([*RUNS, (["walk"], "success")]), ModelForm())


def test_runs_must_be_under_the_policy_of_the_base():
    base = base_of(policy="failure")
    paths = RunPaths.of_names(RUNS)
    with pytest.raises(ModelError, match="policy"):
        fit_expanded(base, paths, ModelForm(previous=True))
    assert fit_expanded(base, paths.under("failure"), ModelForm(previous=True)).policy == "failure"


def test_states_that_no_run_of_the_policy_visits_are_left_out():
    more = [*RUNS, (["lost"], "censored")]
    fit = fit_expanded(base_of(more, policy="drop"), RunPaths.of_names(more).under("drop"), ModelForm(dwell=2))
    assert fit.model.states == ("answer", "plan", "search")


def test_options_that_richer_chains_do_not_have():
    paths = RunPaths.of_names(RUNS)
    counts = WeightedCounts.from_paths((*run, weight) for run, weight in zip(RUNS, [1, 2, 1, 1, 1, 1], strict=True))
    for base, option in [
        (fit_counts(counts), "--weight"),
        (base_of(prior="none"), "--prior"),
        (base_of(prior="laplace"), "--prior"),
        (base_of(profile="paper"), "--prior"),
        (base_of(support="observed"), "--support"),
        (base_of(start="smoothed"), "--start"),
        (base_of(start={"plan": Fraction(1)}), "--start"),
    ]:
        with pytest.raises(UsageError, match=option):
            fit_expanded(base, paths, ModelForm(previous=True))


def test_parameters_of_another_form_are_refused():
    with pytest.raises(ModelError, match="order2"):
        fitted("dwell2", model=fitted("order2").model)


def test_a_large_corpus_is_written_without_its_runs(monkeypatch):
    monkeypatch.setattr(path_document, "MAX_STEPS", 5)
    fit = fitted()
    assert fit.paths is not None
    assert any("too many for the document" in note for note in fit.notes)
    document = fit.to_dict()
    assert document["paths"] is None
    again = read(document)
    assert again.paths is None
    assert document_text(again.to_dict()) == document_text(document)
    for field, value in (("kappa", -1.0), ("parameters", document["parameters"] | {"start": [0.0, 0, 1, 0, 0]})):
        with pytest.raises(ModelError, match=r"kappa|do not start"):
            read(document | {field: value})
    with pytest.raises(ModelError, match="more than 5 steps"):
        read(document | {"paths": paths_to_dict(fit.paths)})


@settings(max_examples=40)
@given(runs, st.data())
def test_runs_in_a_document(drawn, data):
    tasks = data.draw(st.lists(st.sampled_from(["p", "q", None]), min_size=len(drawn), max_size=len(drawn)))
    paths = RunPaths.of_names([run[:2] for run in drawn], tasks=tasks, groups=[run[2] for run in drawn])
    written = json.loads(json.dumps(paths_to_dict(paths)))
    again = paths_from_document(msgspec.convert(written, PathsDocument, strict=True), paths.states)
    ordered = in_document_order(paths)
    for name in ("codes", "offsets", "outcomes", "tasks", "groups", "task_names", "group_names"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ordered, name))

    def names_of(each: RunPaths) -> list:
        return sorted(
            (
                tuple(each.states[code] for code in each.codes[each.offsets[r] : each.offsets[r + 1]]),
                *(int(each.outcomes[r]), int(each.tasks[r]), int(each.groups[r])),
            )
            for r in range(each.n_runs)
        )

    assert names_of(again) == names_of(paths)


def test_runs_over_more_states():
    paths = over_states(RunPaths.of_names([(["b", "d"], "success")]), ("a", "b", "c", "d"))
    assert paths.codes.tolist() == [1, 3]
