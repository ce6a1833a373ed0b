import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain import (
    ChainFit,
    DeclaredSupport,
    TransitionCounts,
    fit_chain,
    fit_counts,
    read_declared_support,
)
from tracebridge.chain.support import left_out_note
from tracebridge.errors import FitError, ModelError, UsageError
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=40)

GRAPH = {"plan": ["search", "answer"], "search": ["search", "answer", "delete"], "answer": [], "delete": ["answer"]}
RUNS = [
    (["plan", "search", "answer"], "success"),
    (["plan", "answer"], "failure"),
    (["plan", "search", "search"], "censored"),
]


def rows_of(chain):
    exact = chain.exact_transitions()
    return {name: {chain.states[j]: value for j, value in exact.row(i).items()} for i, name in enumerate(chain.states)}


def test_rows_have_the_declared_successors_and_both_ends():
    fit = fit_counts(TransitionCounts.from_paths(RUNS), support=GRAPH)
    rows = rows_of(fit.chain)
    assert fit.chain.states == ("answer", "delete", "plan", "search", "success", "failure")
    quarter, fifth = Fraction(1, 4), Fraction(1, 5)  # the prior has mass one over each row's successors
    plan = {"search": 2 + quarter, "answer": 1 + quarter, "success": quarter, "failure": quarter}
    assert rows["plan"] == {name: value / 4 for name, value in plan.items()}
    search = {"search": 1 + fifth, "answer": 1 + fifth, "delete": fifth, "success": fifth, "failure": fifth}
    assert rows["search"] == {name: value / 3 for name, value in search.items()}
    assert rows["delete"] == dict.fromkeys(["answer", "success", "failure"], Fraction(1, 3))
    assert fit.alpha == (Fraction(1, 2), Fraction(1, 3), quarter, fifth)
    assert (fit.support, fit.declared) == ("declared", DeclaredSupport(successors=GRAPH))
    assert any("declared states that no run visited: 'delete'" in note for note in fit.notes)
    assert any("only declared transitions are possible in this chain" in note for note in fit.notes)
    assert any("from 'delete' no way to an end was seen" in note for note in fit.notes)
    counts = fit.row_counts()
    assert counts.states == fit.chain.states[:4]
    assert counts.counts.toarray()[3].tolist() == [1, 0, 0, 1, 0, 0]


def test_without_a_prior_only_what_was_seen_is_possible():
    counts = TransitionCounts.from_paths(RUNS)
    fit = fit_counts(counts, prior="none", support=GRAPH)
    assert rows_of(fit.chain) == rows_of(fit_counts(counts, prior="none").chain)
    assert "delete" not in fit.chain.states
    assert any("only observed transitions are possible in this chain" in note for note in fit.notes)
    assert not any("are possible in this chain" in note for note in fit_counts(counts).notes)


@law
@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), max_size=4), st.sampled_from(list(Outcome))), min_size=1))
def test_the_graph_of_everything_is_full_support_and_the_observed_one_observed(corpus):
    counts = TransitionCounts.from_paths(corpus)
    if not any(names and outcome != "censored" for names, outcome in corpus):
        return
    states = [name for name in counts.states if any(name in names for names, _ in corpus)]
    seen = {name: [] for name in states}
    for names, _ in corpus:
        for source, target in pairwise(names):
            seen[source].append(target)
    for prior in ("mass-one", "jeffreys", Fraction(1, 7)):
        full = fit_counts(counts, prior=prior, support="full")
        assert rows_of(fit_counts(counts, prior=prior, support=dict.fromkeys(states, states)).chain) == rows_of(
            full.chain
        )
        observed = fit_counts(counts, prior=prior, support="observed")
        assert rows_of(fit_counts(counts, prior=prior, support=seen).chain) == rows_of(observed.chain)


def test_runs_that_leave_the_graph_are_listed():
    counts = TransitionCounts.from_paths(
        [*RUNS, (["answer", "plan", "guess"], "success"), (["answer", "plan"], "failure")]
    )
    for prior in ("mass-one", "none"):
        with pytest.raises(FitError) as caught:
            fit_counts(counts, prior=prior, support=GRAPH)
        message = str(caught.value)
        assert "state 'guess' was visited and is not declared" in message
        assert "'answer' -> 'plan' was observed and is not declared (count 2)" in message
        assert "'plan' -> 'search'" not in message
    many = TransitionCounts.from_paths([([f"s{i:02}" for i in range(30)], "success")])
    with pytest.raises(FitError, match="and 10 more"):
        fit_counts(many, support={"x": []})


def test_fits_to_a_graph_are_written_and_read():
    fit = fit_counts(TransitionCounts.from_paths(RUNS), support=GRAPH)
    document = json.loads(json.dumps(fit.to_dict()))
    assert document["schema_version"] == 2
    assert ChainFit.from_dict(document).to_dict() == document
    with pytest.raises(ModelError, match="field alpha: does not follow"):
        ChainFit.from_dict(
            document | {"declared": DeclaredSupport(successors=GRAPH | {"plan": ["plan", *GRAPH["plan"]]}).to_dict()}
        )
    for change in ({"declared": None}, {"support": "full"}):
        with pytest.raises(ModelError, match="belongs to support 'declared'"):
            ChainFit.from_dict(document | change)


def test_labels_of_states_that_were_seen_are_kept():
    traces = [Trace(trace_id="1", outcome=Outcome.SUCCESS, steps=(Step(name="plan", kind="tool"),))]
    fit = fit_chain(traces, support={"plan": ["delete"], "delete": []})
    chain = fit.chain
    assert chain.label("tool").tolist() == [False, True, False, False]
    assert chain.label("delete").tolist() == [True, False, False, False]
    assert chain.rewards["steps"].state.tolist() == [1, 1, 0, 0]


# ---------------------------------------------------------------- files


def test_files(tmp_path):
    expected = DeclaredSupport(successors=GRAPH)
    toml = tmp_path / "graph.toml"
    toml.write_text("[successors]\n" + "".join(f"{state} = {json.dumps(names)}\n" for state, names in GRAPH.items()))
    assert read_declared_support(toml) == expected
    written = tmp_path / "graph.json"
    written.write_text(json.dumps(expected.to_dict()))
    assert read_declared_support(written) == expected
    assert hash(read_declared_support(written)) == hash(expected)
    written.write_text(json.dumps({"successors": GRAPH}))
    assert read_declared_support(str(written)) == expected
    assert DeclaredSupport(successors={"a": ["success", "a", "a"]}).successors == {"a": ("a",)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.toml", "[successors\n", "g.toml: not TOML: .*line 1"),
        ("g.toml", "a = " + "[" * 100_000, "g.toml: (nested too deeply|not TOML)"),
        ("g.toml", "[successors]\na = ['b']\n", "g.toml, field successors: 'b' follows 'a' but is not declared itself"),
        ("g.toml", "[successors]\na = [1]\n", r"Expected `str`, got `int`"),
        ("g.toml", "[successors]\n", "no state is declared"),
        ("g.toml", "[successors]\nsuccess = []\n", "'success' cannot be the name of a state"),
        ("g.toml", "[follows]\na = []\n", "(missing required|unknown) field"),
        ("g.json", '{"successors": {"a": []}, "schema_version": 7}', "schema_version: version 7"),
        ("g.json", "[]", "is an object, not list"),
        ("g.json", "{", "g.json"),
    ],
)
def test_files_that_declare_no_graph_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=message):
        read_declared_support(tmp_path / name)


def test_other_refusals(tmp_path):
    for name in ("no.toml", "no.json"):
        with pytest.raises(ModelError, match="no such file"):
            read_declared_support(tmp_path / name)
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ModelError, match="not TOML"):
        read_declared_support(tmp_path / "bytes.toml")
    counts = TransitionCounts.from_paths(RUNS)
    with pytest.raises(ModelError, match="successors of 'plan' are one text"):
        fit_counts(counts, support={"plan": "search"})
    with pytest.raises(UsageError, match="needs a graph"):
        fit_counts(counts, support="declared")
    with pytest.raises(UsageError, match="leave these options out"):
        fit_counts(counts, support=GRAPH, profile="paper")
    with pytest.raises(FitError, match="means something else"):
        fit_counts(counts, support=GRAPH | {"stuck": []})


# ---------------------------------------------------------------- the start


def test_starts():
    counts = TransitionCounts.from_paths(
        [(["a"], "success"), (["b"], "failure"), (["b", "a"], "failure"), ([], "success")]
    )
    assert fit_counts(counts).chain.exact_initial() == [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4), 0]
    smoothed = fit_counts(counts, start="smoothed")
    third = Fraction(1, 3)  # mass one over a, b and success, in which a run was seen to start; none failed at once
    assert smoothed.chain.exact_initial() == [(1 + third) / 5, (2 + third) / 5, (1 + third) / 5, 0]
    half = Fraction(1, 2)
    jeffreys = fit_counts(counts, start="smoothed", prior="jeffreys").chain.exact_initial()
    assert jeffreys == [(1 + half) / (4 + 3 * half), (2 + half) / (4 + 3 * half), (1 + half) / (4 + 3 * half), 0]
    assert (
        fit_counts(counts, start="smoothed", prior="none").chain.exact_initial()
        == fit_counts(counts).chain.exact_initial()
    )
    asked = fit_counts(counts, start={"b": 0.25, "a": "3/4"})
    assert asked.chain.exact_initial() == [Fraction(3, 4), Fraction(1, 4), 0, 0]
    assert asked.start == {"a": Fraction(3, 4), "b": Fraction(1, 4)}
    np.testing.assert_array_equal(asked.chain.transitions.toarray(), fit_counts(counts).chain.transitions.toarray())
    assert "the start was given, and is not that of the runs" in asked.notes
    assert "the start is smoothed by the prior: runs may start in states in which none did" in smoothed.notes
    for fit in (smoothed, asked):
        document = json.loads(json.dumps(fit.to_dict()))
        assert ChainFit.from_dict(document).to_dict() == document
    assert fit_counts(counts).to_dict()["schema_version"] == 1


@pytest.mark.parametrize(
    ("start", "error", "message"),
    [
        ("first", UsageError, "'first' is no start; there are observed, smoothed"),
        ({"a": 0.5}, UsageError, "sums to 1/2, not 1"),
        ({"a": 0.1, "b": -0.9}, UsageError, "below zero"),
        ({"a": float("nan")}, UsageError, "start: "),
        ({"c": 1}, FitError, "names 'c', which is no state"),
        ({}, UsageError, "sums to 0"),
    ],
)
def test_starts_that_are_none(start, error, message):
    with pytest.raises(error, match=message):
        fit_counts(TransitionCounts.from_paths([(["a"], "success"), (["b"], "failure")]), start=start)


def test_declared_states_that_no_run_gets_to_are_named():
    graph = DeclaredSupport(successors={"a": ["a"], "b": ["a"], "c": []})
    assert left_out_note(graph, ("a", "success", "failure")) == [
        "declared states that no run can get to are not in the chain: 'b', 'c'"
    ]
    assert left_out_note(graph, ("a", "b", "c")) == []


def test_runs_end_in_final_states_only():
    """Smoothing puts no mass on an end where none is declared."""
    final = DeclaredSupport(successors=GRAPH, final=["answer", "delete"])
    runs = [(["plan", "search", "answer"], "success"), (["plan", "search", "search"], "censored")]
    fit = fit_counts(TransitionCounts.from_paths(runs), support=final)
    rows = rows_of(fit.chain)
    assert set(rows["plan"]) == {"search", "answer"}
    assert set(rows["search"]) == {"search", "answer", "delete"}
    assert rows["answer"] == {"success": Fraction(3, 4), "failure": Fraction(1, 4)}
    assert set(rows["delete"]) == {"answer", "success", "failure"}
    again = ChainFit.from_dict(json.loads(json.dumps(fit.to_dict())))
    assert again.declared == final
    assert rows_of(again.chain) == rows
    with pytest.raises(FitError, match=r"'plan' -> 'failure' was observed and is not declared \(count 1\)"):
        fit_counts(TransitionCounts.from_paths([*runs, (["plan"], "failure")]), support=final)


def test_a_graph_says_where_runs_end(tmp_path):
    path = tmp_path / "graph.toml"
    path.write_text('final = ["b"]\n[successors]\na = ["b"]\nb = []\n')
    graph = read_declared_support(path)
    assert (graph.may_end("a"), graph.may_end("b"), graph.may_follow("a", "success")) == (False, True, False)
    assert DeclaredSupport.from_dict(graph.to_dict()) == graph
    for final, message in (
        ([], "from 'a' no run could ever end"),
        (["c"], "'c' is not declared"),
        (["a"], "from 'b' no run could ever end"),
        ("b", "one text, not a list"),
    ):
        with pytest.raises(ModelError, match=message) as caught:
            DeclaredSupport(successors={"a": ["b"], "b": []}, final=final)
        assert caught.value.problems[0].location.field == "final"
