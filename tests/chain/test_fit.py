import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from tracebridge.chain import ChainFit, TransitionCounts, fit_chain, fit_counts, read_chain, read_fit, write_fit
from tracebridge.checking import check
from tracebridge.errors import FitError, ModelError, NothingToCheckError, PropertyError, UsageError
from tracebridge.states import TextFeatures, abstract_features, count_features
from tracebridge.traces import open_traces
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=60)


def fractions_of(chain):
    """The chain's exact rows as nested dictionaries of state names."""
    exact = chain.exact_transitions()
    return {name: {chain.states[j]: value for j, value in exact.row(i).items()} for i, name in enumerate(chain.states)}


def solved(chain, constants):
    """x with x = Q x + b over the states that reach an absorber, by exact elimination; elsewhere x is 0."""
    rows = fractions_of(chain)
    absorbers = {name for name in chain.states if rows[name] == {name: 1}}
    reaching = set(absorbers)
    while True:
        more = {name for name in chain.states if name not in reaching and reaching & set(rows[name])}
        if not more:
            break
        reaching |= more
    unknown = [name for name in chain.states if name in reaching - absorbers]
    system = [
        [Fraction(i == j) - rows[name].get(other, 0) for j, other in enumerate(unknown)] + [constants[name]]
        for i, name in enumerate(unknown)
    ]
    n = len(unknown)
    for column in range(n):
        pivot = next(i for i in range(column, n) if system[i][column])
        system[column], system[pivot] = system[pivot], system[column]
        for i in range(n):
            if i != column and system[i][column]:
                factor = system[i][column] / system[column][column]
                system[i] = [a - factor * b for a, b in zip(system[i], system[column], strict=True)]
    return {name: system[i][n] / system[i][i] for i, name in enumerate(unknown)}


def success_probability(chain):
    initial = dict(zip(chain.states, chain.exact_initial(), strict=True))
    reach = solved(chain, {name: row.get("success", Fraction(0)) for name, row in fractions_of(chain).items()})
    return initial["success"] + sum(initial[name] * value for name, value in reach.items())


def mean_time_to_absorption(chain):
    initial = dict(zip(chain.states, chain.exact_initial(), strict=True))
    return sum(initial[name] * value for name, value in solved(chain, dict.fromkeys(chain.states, Fraction(1))).items())


completed = st.tuples(st.lists(st.sampled_from("abcd"), max_size=7), st.sampled_from(["success", "failure"]))
any_run = st.tuples(st.lists(st.sampled_from("abcd"), max_size=5), st.sampled_from(list(Outcome)))


# ---------------------------------------------------------------- laws


@law
@given(st.lists(completed, min_size=1, max_size=15))
def test_without_prior_and_censoring_the_chain_repeats_the_corpus(corpus):
    counts = TransitionCounts.from_paths(corpus)
    for support in ("full", "observed"):
        chain = fit_counts(counts, prior="none", support=support).chain
        assert success_probability(chain) == counts.pass_rate()
        assert mean_time_to_absorption(chain) == counts.mean_length()


@law
@given(st.lists(any_run, min_size=1, max_size=15), st.sampled_from(["failure", "drop"]))
def test_the_identity_holds_under_policies_that_complete_every_run(corpus, policy):
    counts = TransitionCounts.from_paths(corpus)
    assume(policy == "failure" or any(outcome != "censored" for _, outcome in corpus))
    chain = fit_counts(counts, prior="none", policy=policy).chain
    assert success_probability(chain) == counts.pass_rate(policy)
    assert mean_time_to_absorption(chain) == counts.mean_length(policy)


@law
@given(
    st.lists(any_run, min_size=1, max_size=10),
    st.sampled_from(["mass-one", "jeffreys", "laplace", "none", Fraction(2, 7), 3, 0.1]),
    st.sampled_from(["full", "observed"]),
    st.sampled_from(["censored", "failure", "drop"]),
    st.randoms(use_true_random=False),
)
def test_rows_are_posterior_means_and_documents_round_trip(corpus, prior, support, policy, random):
    counts = TransitionCounts.from_paths(corpus)
    if policy == "drop":
        corpus = [run for run in corpus if run[1] != "censored"]
    ending = [names for names, outcome in corpus if policy == "failure" or outcome != "censored"]
    refusal = None
    if not ending and not any(names for names, _ in corpus):
        refusal = NothingToCheckError
    elif prior != "none" and not any(ending) and any(names for names, _ in corpus):
        refusal = FitError
    if refusal is not None:
        with pytest.raises(refusal):
            fit_counts(counts, prior=prior, support=support, policy=policy)
        return
    fit = fit_counts(counts, prior=prior, support=support, policy=policy)
    ends = {"success": "success", "failure": "failure", "censored": "failure" if policy == "failure" else None}
    seen = {}
    for names, outcome in corpus:
        for source, target in pairwise([*names, ends[outcome]]):
            row = seen.setdefault(source, {})
            if target is not None:
                row[target] = row.get(target, 0) + 1
    m = len(seen)
    assert fit.chain.states[:m] == tuple(sorted(seen))
    rows = fractions_of(fit.chain)
    concentration = {"jeffreys": Fraction(1, 2), "laplace": 1, "none": 0, 0.1: Fraction(1, 10)}.get(prior, prior)
    for source, row in seen.items():
        allowed = {*seen, "success", "failure"} if support == "full" else {*row, "success", "failure"}
        alpha = Fraction(1, len(allowed)) if prior == "mass-one" else Fraction(concentration)
        total = sum(row.values()) + alpha * len(allowed)
        expected = (
            {target: (row.get(target, 0) + alpha) / total for target in allowed} if total else {"stuck": Fraction(1)}
        )
        assert rows[source] == {target: value for target, value in expected.items() if value}
        assert fit.alpha[fit.chain.index(source)] == alpha
    assert fit.chain.is_exact
    assert ("stuck" in fit.chain.states) == any("stuck" in row for row in rows.values())
    text = json.dumps(fit.to_dict())
    assert json.dumps(ChainFit.from_dict(json.loads(text)).to_dict()) == text
    random.shuffle(corpus)
    if policy != "drop":
        again = fit_counts(TransitionCounts.from_paths(corpus), prior=prior, support=support, policy=policy)
        assert json.dumps(again.to_dict()) == text


# ---------------------------------------------------------------- the paper


def counts_with_row(m, visits, success):
    """m states, of which ``wait`` is left ``visits`` times, ``success`` of them to success."""
    others = [f"s{i}" for i in range(m - 1)]
    stays = visits - success
    return TransitionCounts.from_paths(
        [
            *([(["wait"], "success")] * success),
            *([(["wait"], "failure")] * (stays // 2)),
            *([(["wait", others[0]], "failure")] * (stays - stays // 2)),
            (others, "success"),
        ]
    )


@pytest.mark.parametrize(
    ("a", "b", "mean", "low", "high"),
    [  # react wait, react retry, reflexion plan, reflexion wait, toolformer wait: Beta(c + 1, n + 7 - c) for m = 6
        (2, 33, 0.057, 0.007, 0.153),
        (2, 57, 0.034, 0.004, 0.092),
        (18, 131, 0.121, 0.074, 0.178),
        (6, 41, 0.128, 0.049, 0.236),
        (4, 51, 0.073, 0.021, 0.154),
    ],
)
def test_table_ii_of_the_paper(a, b, mean, low, high):
    fit = fit_counts(counts_with_row(6, a + b - 8, a - 1), profile="paper")
    assert (fit.prior, fit.support, set(fit.alpha)) == ("laplace", "full", {Fraction(1)})
    chain = fit.chain
    assert fractions_of(chain)["wait"]["success"] == Fraction(a, a + b)
    assert chain.transitions[chain.index("wait"), chain.index("success")] == pytest.approx(mean, abs=5e-4)
    rows = fit.row_counts()
    i = rows.states.index("wait")
    c, n = int(rows.counts[i, 6]), int(rows.counts[[i]].sum())
    alpha = float(fit.alpha[i])
    interval = beta(c + alpha, n + alpha * 8 - c - alpha).interval(0.95)
    assert interval == pytest.approx((low, high), abs=1e-3)


def test_profile_paper_excludes_other_choices():
    counts = counts_with_row(2, 4, 1)
    assert fit_counts(counts, profile="paper", prior="laplace", support="full").alpha[0] == 1
    for options in ({"prior": "none"}, {"support": "observed"}):
        with pytest.raises(UsageError, match="leave these options out"):
            fit_counts(counts, profile="paper", **options)


# ---------------------------------------------------------------- degenerate corpora


def fit_paths(*paths, **options):
    return fit_counts(TransitionCounts.from_paths(paths), **options)


def test_no_success_at_all():
    fit = fit_paths((["a"], "failure"), (["a", "a"], "failure"), prior="none")
    assert success_probability(fit.chain) == 0
    assert fit.chain.states == ("a", "success", "failure")
    assert "no run ended in success" in fit.notes
    smoothed = fit_paths((["a"], "failure"), (["a", "a"], "failure"))
    assert fractions_of(smoothed.chain)["a"] == {
        "a": Fraction(1, 3),
        "success": Fraction(1, 12),
        "failure": Fraction(7, 12),
    }


def test_only_runs_without_a_step():
    fit = fit_paths(([], "success"), ([], "success"), ([], "failure"), ([], "censored"))
    assert fit.chain.states == ("success", "failure")
    assert fit.chain.exact_initial() == [Fraction(2, 3), Fraction(1, 3)]
    assert "censored runs without a step, which tell nothing: 1" in fit.notes
    assert fit_paths(([], "success"), ([], "censored"), policy="failure").chain.exact_initial() == [Fraction(1, 2)] * 2


def test_no_run_at_all():
    with pytest.raises(NothingToCheckError, match="there is no run"):
        fit_counts(TransitionCounts.empty())
    with pytest.raises(NothingToCheckError, match="before their first step"):
        fit_paths(([], "censored"))
    with pytest.raises(NothingToCheckError, match="the policy leaves them out"):
        fit_paths((["a"], "censored"), policy="drop")


def test_all_runs_censored():
    paths = [(["a", "b"], "censored"), (["a", "a"], "censored")]
    for prior in ("mass-one", "laplace", Fraction(1, 9)):
        with pytest.raises(FitError, match="the prior alone would decide") as caught:
            fit_paths(*paths, prior=prior)
        assert "count censored runs as failures" in str(caught.value)
    fit = fit_paths(*paths, prior="none")
    assert fit.chain.states == ("a", "b", "success", "failure", "stuck")
    assert fractions_of(fit.chain)["b"] == {"stuck": 1}
    assert any("'b' was never seen" in note for note in fit.notes)
    assert fit.chain.label("absorbed").tolist() == [False, False, True, True, True]
    assert success_probability(fit_paths(*paths, policy="failure", prior="none").chain) == 0


def test_a_loop_that_no_run_was_seen_to_leave_is_kept():
    fit = fit_paths((["a", "b", "a"], "censored"), (["b"] * 2, "censored"), (["c"], "success"), prior="none")
    assert fractions_of(fit.chain)["a"] == {"b": 1}
    assert fractions_of(fit.chain)["b"] == {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert "stuck" not in fit.chain.states
    assert "no run was seen to leave 'a', 'b': the chain stays there for ever" in fit.notes
    assert success_probability(fit.chain) == Fraction(1, 3)
    smoothed = fit_paths((["a", "b", "a"], "censored"), (["c"], "success"))
    assert any("from 'a', 'b' no way to an end was seen" in note for note in smoothed.notes)


def test_states_of_dropped_runs_are_not_in_the_chain():
    fit = fit_paths((["a"], "success"), (["z", "a"], "censored"), policy="drop")
    assert fit.chain.states == ("a", "success", "failure")
    assert any("not in the chain: 'z'" in note for note in fit.notes)
    assert fit.alpha == (Fraction(1, 3),)
    assert fit.row_counts().states == ("a",)


def test_censored_runs_end_without_a_trace_in_their_last_row():
    fit = fit_paths((["a"], "success"), (["a", "a"], "censored"), prior="none")
    assert fractions_of(fit.chain)["a"] == {"a": Fraction(1, 2), "success": Fraction(1, 2)}
    assert "censored runs: 1 of 2; their transitions count, their ends do not" in fit.notes


# ---------------------------------------------------------------- options and names


@pytest.mark.parametrize("prior", ["half", -1, float("nan"), float("inf"), True, "1e9999999", [1], "-1/2", "1/0"])
def test_priors_that_are_none(prior):
    with pytest.raises(UsageError, match="neither one of mass-one, jeffreys, laplace, none nor a number"):
        fit_paths((["a"], "success"), prior=prior)


def test_other_options_that_are_none():
    for options in ({"support": "some"}, {"policy": "guess"}, {"profile": "thesis"}):
        with pytest.raises(UsageError):
            fit_paths((["a"], "success"), **options)


@pytest.mark.parametrize("name", ["success", "failure", "stuck", "absorbed", "init", "deadlock"])
def test_state_names_that_mean_something_else(name):
    with pytest.raises(FitError, match="means something else"):
        fit_paths(([name], "success"))


def test_full_support_over_too_many_states():
    counts = TransitionCounts.from_paths([([f"s{i}" for i in range(5_000)], "success")])
    with pytest.raises(FitError, match="use support 'observed'"):
        fit_counts(counts)
    assert fit_counts(counts, support="observed").chain.n_states == 5_002


def test_counts_beyond_int64_stay_exact():
    counts = TransitionCounts.from_paths([(["a"], "success")])
    for _ in range(58):
        counts += counts
    fit = fit_counts(counts, prior=Fraction(1, 10**30))
    n = 2**58 * 10**30
    assert fractions_of(fit.chain)["a"]["success"] == Fraction(n + 1, n + 3)
    assert ChainFit.from_dict(json.loads(json.dumps(fit.to_dict()))).to_dict() == fit.to_dict()


# ---------------------------------------------------------------- labels, rewards, documents


def example_traces():
    def trace(i, outcome, *steps):
        return Trace(trace_id=str(i), outcome=Outcome(outcome), steps=tuple(steps))

    def tool(name, error=False):
        return Step(name=name, kind="tool", error=error)

    return [
        trace(1, "success", tool("search", True), tool("search"), tool("answer")),
        trace(2, "failure", tool("search"), Step(name="success", kind="say")),
        trace(3, "censored", tool("search")),
        trace(4, "success"),
    ]


def test_labels_and_rewards_of_a_fit_from_traces():
    fit = fit_chain(example_traces())
    chain = fit.chain
    assert chain.states == (
        "answer", "search.error", "search.ok", "search.retry", "step_success", "success", "failure",
    )  # fmt: skip
    assert {
        name: [s for s, held in zip(chain.states, chain.label(name), strict=True) if held] for name in chain.labels
    } == {
        "success": ["success"],
        "failure": ["failure"],
        "absorbed": ["success", "failure"],
        "answer": ["answer"],
        "error": ["search.error"],
        "retry": ["search.retry"],
        "say": ["step_success"],
        "search": ["search.error", "search.ok", "search.retry"],
        "step_success": ["step_success"],
        "tool": ["answer", "search.error", "search.ok", "search.retry"],
    }
    assert chain.rewards["steps"].state.tolist() == [1] * 5 + [0] * 2
    assert chain.rewards["search"].state.tolist() == [0, 1, 1, 1, 0, 0, 0]
    assert chain.rewards["search.ok"].state.tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert {"answer", "search.error", "tool", "error"} < set(chain.rewards)
    meaning = "because 'success' has a meaning of its own in chains and property files"
    assert f"properties call the name 'success' by 'step_success', {meaning}" in fit.notes


def test_expected_rewards_without_prior_are_means_over_runs():
    """Flow balance again: the fitted occupancy of a state is its mean number of visits."""
    traces = [trace for trace in example_traces() if trace.outcome != "censored"]
    chain = fit_chain(traces, prior="none").chain
    initial = dict(zip(chain.states, chain.exact_initial(), strict=True))
    expected = {"steps": 5, "search": 3, "search.ok": 1, "search.retry": 1, "search.error": 1, "tool": 4, "say": 1}
    for name, total in expected.items():
        earned = dict(zip(chain.states, map(Fraction, chain.rewards[name].state.tolist()), strict=True))
        values = solved(chain, earned)
        assert sum(initial[state] * value for state, value in values.items()) == Fraction(total, 3)


def test_one_rare_kind_of_step_is_one():
    runs = [Trace(trace_id=str(i), outcome=Outcome.SUCCESS, steps=(Step(name=n),)) for i, n in enumerate("aab")]
    assert "1 rare kind of step (1 step) is folded into 'other'" in fit_chain(runs, min_count=2).notes


@pytest.mark.parametrize(
    ("options", "words"),
    [({"min_count": 9}, "min_count=9:"), ({"top": 0}, "min_count=0, top=0:")],
)
def test_folding_every_step_is_told_loudly(options, words):
    notes = fit_chain(example_traces(), **options).notes
    (note,) = [note for note in notes if "folded" in note]
    assert note.startswith("EVERY kind of step (")
    assert f"into 'other' by {words} the chain knows only the lengths and ends of runs" in note
    kept_apart = fit_chain(example_traces(), propositions=["search"], **options).notes
    assert any("the chain knows only what the properties name" in note for note in kept_apart)


def test_a_kind_that_is_also_the_name_of_other_steps_is_told():
    steps = (Step(name="action", kind="tool"), Step(name="x", kind="action"))
    notes = fit_chain([Trace(trace_id="a", outcome=Outcome.SUCCESS, steps=steps)]).notes
    expected = "properties call the kind 'action' by 'kind_action', because 'action' names something else, too"
    assert expected in notes


def test_folding_and_mixing_are_told():
    fit = fit_chain(example_traces(), top=1)
    assert any("4 rare kinds of step (4 steps) are folded into 'other'" in note for note in fit.notes)
    mixed = "'answer', 'error', 'retry', 'say', 'search' and 2 more"  # and step_success, tool
    why = "these words cannot be used in properties, because some states mix steps with and without them"
    assert any(note.startswith(f"{why}: {mixed}") for note in fit.notes)
    for chain in (fit, ChainFit.from_dict(fit.to_dict())):
        with pytest.raises(PropertyError, match='steps with and without it are together in "other"'):
            check(chain, 'P=? [ F "search" ]', engines=["closed-form"])
    split = fit_chain(example_traces(), top=1, propositions=["search"])
    assert split.chain.has_label("search")


def test_an_abstraction_of_other_counts_is_refused():
    abstraction = abstract_features(count_features(example_traces()))
    with pytest.raises(FitError, match="no state 'strange'"):
        fit_counts(TransitionCounts.from_paths([(["strange"], "success")]), abstraction=abstraction)


def test_files_round_trip_byte_for_byte(tmp_path):
    fit = fit_chain(iter(example_traces()))
    write_fit(tmp_path / "chain.json", fit)
    again = read_fit(tmp_path / "chain.json")
    write_fit(tmp_path / "again.json", again)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "chain.json").read_bytes()
    assert again.abstraction == fit.abstraction
    assert again.counts == fit.counts
    assert read_chain(tmp_path / "chain.json").states == fit.chain.states
    np.testing.assert_array_equal(read_chain(tmp_path / "chain.json").transitions.data, fit.chain.transitions.data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "chain.json"]


def test_documents_that_do_not_hold_together_are_refused():
    good = fit_chain(example_traces()).to_dict()

    def refused(match, **changes):
        with pytest.raises(ModelError, match=match):
            ChainFit.from_dict(good | changes, "f.json")

    refused(
        "f.json, field chain: does not follow from the counts",
        prior="laplace",
        alpha=dict.fromkeys(good["alpha"], "1/1"),
    )
    refused("field alpha: does not follow", alpha={})
    refused("neither one of", prior="1e999999999")
    refused("field support: Invalid enum value 'none'", support="none")
    refused("field kind", kind="markov-chain")
    refused("field schema_version", schema_version=0)
    refused("unknown field `more`", more=1)
    refused("f.json, field success: Expected", counts=good["counts"] | {"success": 3})
    refused("no state", counts=TransitionCounts.from_paths([(["q"], "success")]).to_dict())
    refused("field abstraction", abstraction=good["abstraction"] | {"labels": {}})


def test_html_is_escaped():
    fit = fit_paths((["<b>"], "success"), (["<b>"], "censored"))
    html = fit._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "censored runs: 1 of 2" in html


@pytest.mark.shared_data
def test_the_identity_holds_on_real_traces(shared_data):
    fit = fit_chain(open_traces([shared_data / "traces" / "tau2_bench"]), prior="none", policy="failure")
    assert fit.counts.n_runs > 50
    assert success_probability(fit.chain) == fit.counts.pass_rate("failure")
    assert mean_time_to_absorption(fit.chain) == fit.counts.mean_length("failure")


# ---------------------------------------------------------------- where states come from


def saying(i, *texts):
    steps = tuple(Step(name="say", kind="message", text=text) for text in texts)
    return Trace(trace_id=str(i), outcome=Outcome.SUCCESS if i % 3 else Outcome.FAILURE, steps=steps)


def conversations():
    return [saying(i, f"hello friend {i}", f"refund money {i}", f"parcel street {i}") for i in range(12)]


def test_a_map_from_a_file_is_recorded_and_applied_again(tmp_path):
    (tmp_path / "map.toml").write_text(
        'default = "rest"\n[[rule]]\nstate = "broken"\nerror = true\n[[rule]]\nstate = "find"\nname = "sea*"\n'
    )
    fit = fit_chain(example_traces(), states=tmp_path / "map.toml")
    assert fit.chain.states == ("broken", "find", "rest", "success", "failure")
    assert "states are those of a map with 2 rules, which is in the document of the fit" in fit.notes
    write_fit(tmp_path / "chain.json", fit)
    again = read_fit(tmp_path / "chain.json")
    assert again.abstraction == fit.abstraction
    features = again.abstraction.count_features(example_traces())
    assert TransitionCounts.from_features(features, again.abstraction) == fit.counts
    document = json.loads((tmp_path / "chain.json").read_text())["abstraction"]
    assert document["classifier"]["rule"][1] == {"state": "find", "name": ["sea*"]}
    assert document["descriptions"]["broken"]["steps"] == 1


def test_a_function_is_recorded_by_its_name_and_the_fit_says_so(tmp_path):
    def initial(step):
        return step.name[0]

    fit = fit_chain(example_traces(), states=initial)
    assert fit.chain.states == ("a", "s", "success", "failure")
    (note,) = [note for note in fit.notes if "Python function" in note]
    assert note.endswith("initial gives; a document of the fit has its name only, so that it cannot be applied to "
                         "traces again")  # fmt: skip
    write_fit(tmp_path / "chain.json", fit)
    again = read_fit(tmp_path / "chain.json")
    assert again.chain.states == fit.chain.states
    with pytest.raises(FitError, match="its document does not hold"):
        again.abstraction.encode_runs(example_traces())


def test_weights_and_maps_go_together():
    runs = [saying(i, "x").__class__(trace_id=str(i), outcome="success", steps=(Step(name=n),), attributes={"w": 2})
            for i, n in enumerate("ab")]  # fmt: skip
    fit = fit_chain(runs, states=lambda step: "all", weight="w")
    assert fit.chain.states == ("all", "success", "failure")
    assert fit.weighted.total_weight == 4


def test_a_fit_with_text_features(tmp_path):
    options = {"text_features": TextFeatures(weight=2), "propositions": ["message"]}
    fit = fit_chain(conversations(), prior="none", **options)
    assert len(fit.chain.states) == 5
    assert success_probability(fit.chain) == fit.counts.pass_rate()
    assert mean_time_to_absorption(fit.chain) == 3
    assert any(
        note.startswith("states are clusters of rule-based features and text (hashed TF-IDF") for note in fit.notes
    )
    clustered = fit_chain(conversations(), k_max=2, **options)
    assert any("of 2..2 clusters 2 have the highest mean silhouette, 0." in note for note in clustered.notes)
    write_fit(tmp_path / "chain.json", fit)
    again = read_fit(tmp_path / "chain.json")
    assert again.abstraction == fit.abstraction
    runs = again.abstraction.encode_runs(conversations())
    assert TransitionCounts.from_features(runs.counts(), again.abstraction) == fit.counts
    shuffled = fit_chain(conversations()[::-1], prior="none", **options)
    write_fit(tmp_path / "again.json", shuffled)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "chain.json").read_bytes()


def test_a_fit_with_a_sentence_encoder():
    fit = fit_chain(conversations(), text_features=lambda texts: [[t.count("h"), t.count("m"), 1] for t in texts])
    assert any("the encoder" in note and "<lambda>" in note for note in fit.notes)
    assert any("encoder's name only" in note for note in fit.notes)


def test_the_fit_says_what_was_split_for_which_property():
    fit = fit_chain(example_traces(), k_max=1, propositions=["search"])
    assert any(
        note.startswith("state 'search+answer+step_success' was split into") and note.endswith("name 'search'")
        for note in fit.notes
    )
