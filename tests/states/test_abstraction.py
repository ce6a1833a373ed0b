import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import FitError, ModelError, UsageError
from tracebridge.states.abstraction import Abstraction, Split
from tracebridge.states.construction import abstract_features
from tracebridge.states.description import StateDescription
from tracebridge.states.features import FeatureVector, count_features, encode_runs
from tracebridge.states.grouping import group_steps
from tracebridge.states.manual import StateMap, StateRule
from tracebridge.states.remarks import state_remarks
from tracebridge.states.rule_columns import one_hot
from tracebridge.states.text_features import TextFeatures
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=60)


def corpus(**steps_by_name):
    """One run a step name, with that many steps."""
    return [
        Trace(trace_id=name, outcome=Outcome.SUCCESS, steps=(Step(name=name, kind="tool"),) * n)
        for name, n in steps_by_name.items()
    ]


def test_few_vectors_are_states_as_they_are():
    abstraction = abstract_features(count_features(corpus(a=1, b=2)))
    assert abstraction.space.names == ("a", "b")
    assert not abstraction.silhouettes
    assert not abstraction.folded
    assert dict(abstraction.space.labels) == {"a": ("a",), "b": ("b",), "tool": ("a", "b")}


def test_rare_vectors_fold_by_count_and_by_rank():
    counts = count_features(corpus(a=5, b=3, c=3, d=1))
    by_count = abstract_features(counts, min_count=3)
    assert by_count.space.names == ("a", "b", "c", "other")
    assert [(vector.name, n) for vector, n in by_count.folded] == [("d", 1)]
    by_rank = abstract_features(counts, top=2)
    assert by_rank.space.names == ("a", "b", "other")  # b and c tie: the first by name stays
    assert [(vector.name, n) for vector, n in by_rank.folded] == [("c", 3), ("d", 1)]
    assert abstract_features(counts, top=0).space.names == ("other",)
    assert abstract_features(counts, top=4, min_count=1).space.names == ("a", "b", "c", "d")


def test_more_vectors_than_k_max_are_clustered_into_at_most_so_many():
    counts = count_features(corpus(a=1, b=2, c=3, d=4, e=5))
    abstraction = abstract_features(counts, k_max=3)
    assert set(abstraction.silhouettes) == {2, 3}
    assert len(abstraction.space.names) in {2, 3}
    assert sorted(v.name for members in abstraction.space.members for v in members) == list("abcde")
    assert len(abstract_features(counts, k_max=1).space.names) == 1


def test_a_property_splits_states_until_its_words_are_labels():
    counts = count_features(corpus(a=1, b=2, c=3, d=4, e=5))
    coarse = abstract_features(counts, k_max=1)
    assert "a" in coarse.space.mixed_labels
    split = abstract_features(counts, k_max=1, propositions=["a", "d", "no such word"])
    assert len(split.space.names) == 3
    assert {"a", "d"} <= set(split.space.labels)
    folded = abstract_features(counts, top=1, propositions=["a"])
    assert "a" in folded.space.labels
    assert folded.space.names[:1] == ("e",)


def test_steps_that_come_later():
    runs = encode_runs(corpus(a=2, new=1))
    strict = abstract_features(count_features(corpus(a=5, b=1)))
    with pytest.raises(FitError, match=r"no state holds the step .*new"):
        strict.paths(runs)
    folding = abstract_features(count_features(corpus(a=5, b=1)), min_count=2)
    names = [folding.space.names[code] for code in folding.paths(runs)]
    assert names == ["a", "a", "other"]
    assert folding.paths(encode_runs([])).tolist() == []


def test_nothing_has_no_state():
    abstraction = abstract_features(count_features([Trace(trace_id="x", outcome=Outcome.SUCCESS)]))
    assert abstraction.space.names == ()
    assert abstraction.state_codes([]).tolist() == []


def test_one_hot_rows():
    rows = [
        FeatureVector("t", "a", False, True),
        FeatureVector("t", "b", True, False),
        FeatureVector("u", "a", False, False),
    ]
    #                                               t  u  a  b  error retry
    np.testing.assert_array_equal(one_hot(rows), [[1, 0, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0], [0, 1, 1, 0, 0, 0]])


@pytest.mark.parametrize("options", [{"k_max": 0}, {"min_count": -1}, {"top": -1}])
def test_options_out_of_range(options):
    with pytest.raises(UsageError):
        abstract_features(count_features([]), **options)


def test_too_many_vectors_are_refused_before_memory_is_taken():
    counts = count_features(corpus(**{f"n{i}": 1 for i in range(12_000)}))
    with pytest.raises(FitError, match="too many") as caught:
        abstract_features(counts)
    assert "top" in str(caught.value)
    assert len(abstract_features(counts, top=10).space.names) == 11


step_names = st.sampled_from(["a", "b", "error", "x y", "ü"])
traces = st.builds(
    Trace,
    trace_id=st.just("t"),
    outcome=st.sampled_from(Outcome),
    steps=st.lists(st.builds(Step, name=step_names, error=st.booleans()), max_size=6).map(tuple),
)


@law
@given(
    st.lists(traces, max_size=8),
    st.integers(1, 4),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(0, 4)),
    st.randoms(),
)
def test_the_document_is_the_abstraction_and_order_does_not_matter(runs, k_max, min_count, top, random):
    options = {"k_max": k_max, "min_count": min_count, "top": top, "propositions": ["error", "a"]}
    abstraction = abstract_features(count_features(runs), **options)
    assert "error" not in abstraction.space.mixed_labels
    text = json.dumps(abstraction.to_dict())
    assert Abstraction.from_dict(json.loads(text)) == abstraction
    random.shuffle(runs)
    assert json.dumps(abstract_features(count_features(runs), **options).to_dict()) == text
    held = sorted(vector for members in abstraction.space.members for vector in members)
    assert held == list(count_features(runs).vectors)


def test_documents_that_do_not_hold_together_are_refused():
    good = abstract_features(count_features(corpus(a=1, b=2))).to_dict()

    def refused(match, **changes):
        with pytest.raises(ModelError, match=match):
            Abstraction.from_dict(good | changes, "f.json")

    refused("f.json, field abstraction: labels does not follow", labels={})
    refused("mixed_labels", mixed_labels={"a": ["b"]})
    refused("Expected", states={"a": [["tool", "a", "no", False]]})
    refused("exactly one state", states={"a": [["tool", "a", False, False]], "b": [["tool", "a", False, False]]})
    refused("invalid literal", silhouettes={"two": 0.5})
    refused("unknown field", more=1)
    with pytest.raises(ModelError):
        Abstraction.from_dict([1])


# ---------------------------------------------------------------- what was split, and what is in a state


def test_splits_are_reported():
    counts = count_features(corpus(a=1, b=2, c=3, d=4, e=5))
    assert abstract_features(counts, propositions=["a"]).splits == ()  # nothing to split: every name is a state
    split = abstract_features(counts, k_max=1, propositions=["a", "d", "no such word"])
    assert split.splits == (Split(state="e+d+3more", parts=("a", "d", "e+c+b"), propositions=("a", "d")),)
    assert split.propositions == ("a", "d")
    assert state_remarks(split) == [
        "state 'e+d+3more' was split into 'a', 'd', 'e+c+b', because properties name 'a', 'd'"
    ]
    folded = abstract_features(counts, top=1, propositions=["tool", "b"])
    assert folded.splits == (Split(state="other", parts=("other", "other_2"), propositions=("b",)),)


def test_descriptions_by_hand():
    look, search = Step(name="look", kind="tool"), Step(name="search", kind="tool", error=True)
    runs = [Trace(trace_id="x", outcome=Outcome.SUCCESS, steps=(look, look, search, search, Step(name="say")))]
    (one,) = abstract_features(count_features(runs), k_max=1).descriptions
    assert one == StateDescription(
        state="look+search+say",
        steps=5,
        share=1,
        purity=2 / 5,
        names=(("look", 2 / 5), ("search", 2 / 5), ("say", 1 / 5)),
        kinds=(("tool", 4 / 5), ("action", 1 / 5)),
        errors=2 / 5,
        retries=1 / 5,
    )
    assert one.dominant() == "look 40%, search 40%, say 20%; tool 80%, action 20%; error 40%; retry 20%"
    every = abstract_features(count_features(runs)).descriptions
    assert {each.state: (each.steps, each.purity) for each in every} == {
        "look": (2, 1),
        "say": (1, 1),
        "search.error": (1, 1),
        "search.retry.error": (1, 1),
    }
    assert sum(each.share for each in every) == 1


def test_a_share_is_never_rounded_to_none_or_all():
    steps = (Step(name="a"),) * 999 + (Step(name="b"),)
    (one,) = abstract_features(
        count_features([Trace(trace_id="x", outcome=Outcome.SUCCESS, steps=steps)]), k_max=1
    ).descriptions
    assert one.dominant() == "a >99%, b <1%; action"


# ---------------------------------------------------------------- state maps


def mapped(classifier, runs, **options):
    return abstract_features(count_features(runs, classifier), classifier=classifier, **options)


def test_a_map_gives_the_states():
    rules = StateMap(rules=(StateRule(state="vowel", name=("[aeiou]",)),), default="rest")
    runs = corpus(a=2, b=1, e=3, c=1)
    abstraction = mapped(rules, runs, k_max=1)
    assert abstraction.space.names == ("rest", "vowel")
    assert [each.steps for each in abstraction.descriptions] == [2, 5]
    assert abstraction.splits == ()
    again = Abstraction.from_dict(json.loads(json.dumps(abstraction.to_dict())))
    assert again == abstraction
    encoded = again.encode_runs(corpus(o=1, x=1))  # steps that were not there: the map knows where they belong
    assert [again.space.names[code] for code in again.paths(encoded)] == ["vowel", "rest"]
    assert again.count_features(runs) == count_features(runs, rules)
    with pytest.raises(FitError, match="encoded without the map"):
        again.paths(encode_runs(runs))


def test_a_state_of_a_map_that_no_step_was_in():
    rules = StateMap(rules=(StateRule(state="vowel", name=("[aeiou]",)), StateRule(state="x", name=("x",))))
    abstraction = mapped(rules, corpus(a=1))
    assert "no step is in these states of the map: 'x'" in state_remarks(abstraction)
    with pytest.raises(FitError, match="no state holds the step"):
        abstraction.paths(abstraction.encode_runs(corpus(x=1)))


def test_rare_states_of_a_map_fold_whole():
    rules = StateMap(rules=(StateRule(state="vowel", name=("[aeiou]",)),), default="other")
    runs = corpus(a=1, e=1, b=5)
    kept = mapped(rules, runs, min_count=2)
    assert (kept.space.names, kept.folded) == (("other", "vowel"), ())
    folded = mapped(rules, runs, min_count=3)
    assert folded.space.names == ("other",)
    assert [(vector.name, steps) for vector, steps in folded.folded] == [("a", 1), ("e", 1)]
    assert folded.paths(folded.encode_runs(corpus(u=1))).tolist() == [0]


def test_a_map_is_refused_where_a_property_needs_more_states():
    rules = StateMap(rules=(StateRule(state="vowel", name=("[aeiou]",)),), default="rest")
    with pytest.raises(FitError) as caught:
        mapped(rules, corpus(a=1, e=1, b=5), propositions=["a", "b", "vowel"])
    (problem,) = caught.value.problems
    assert problem.message == "a property names 'a', and the state map mixes steps with and without it in 'vowel'"
    assert "put a rule before" in problem.hint


def test_the_name_of_a_state_outranks_the_name_of_a_step():
    rules = StateMap(rules=(StateRule(state="a", name=("a", "e")), StateRule(state="step_a", name=("b",))), default="c")
    space = mapped(rules, corpus(a=1, e=1, b=1, c=1)).space
    assert space.names == ("a", "c", "step_a")
    words = {renaming.original: renaming.proposition for renaming in space.propositions.renamings}
    assert words == {"a": "step_step_a"}
    assert {"b", "c", "tool"} == set(space.labels)
    assert set(space.mixed_labels) == {"e", "step_step_a"}


def test_text_clusters_in_an_abstraction():
    def say(text, n):
        return [
            Trace(trace_id=f"{text}{i}", outcome=Outcome.SUCCESS, steps=(Step(name="say", text=f"{text} {i}"),))
            for i in range(n)
        ]

    runs = say("refund money", 9) + say("parcel street", 6)
    runs += [Trace(trace_id="e", outcome=Outcome.FAILURE, steps=(Step(name="say", text="refund money 3", error=True),))]
    grouped = group_steps(runs, text_features=TextFeatures(weight=3), k_max=2)
    options = {"classifier": grouped.classifier, "clustering": grouped.clustering}
    abstraction = abstract_features(grouped.counts, propositions=["error"], **options)
    assert abstraction.space.names == ("say.error", "say.ok.1", "say.ok.2")
    assert {each.state: each.steps for each in abstraction.descriptions} == {
        "say.error": 1,
        "say.ok.1": 9,
        "say.ok.2": 6,
    }
    assert "says money, refund" in abstraction.descriptions[1].dominant()
    again = Abstraction.from_dict(json.loads(json.dumps(abstraction.to_dict())))
    assert again == abstraction
    new = [Trace(trace_id="n", outcome=Outcome.SUCCESS, steps=(Step(name="speak", text="my parcel"),))]
    assert [again.space.names[code] for code in again.paths(again.encode_runs(new))] == ["say.ok.2"]
    assert any("nearest centre" in remark for remark in state_remarks(abstraction))


def test_approximate_clusters_are_marked(monkeypatch):
    monkeypatch.setattr("tracebridge.states.clustering.MAX_POINTS", 20)
    counts = count_features(corpus(**{f"n{i}": 1 + i % 3 for i in range(60)}))
    abstraction = abstract_features(counts)
    assert abstraction.approximate
    assert abstraction.to_dict()["approximate"] is True
    assert Abstraction.from_dict(json.loads(json.dumps(abstraction.to_dict()))).approximate
    assert any("APPROXIMATE" in remark and "3,000 sampled steps" in remark for remark in state_remarks(abstraction))
    assert not abstract_features(counts, top=10).approximate


# ---------------------------------------------------------------- documents of version 1


def test_documents_of_version_1_are_read():
    """As the first version wrote it, but for the order of keys."""
    old = {
        "k_max": 30,
        "min_count": 0,
        "top": None,
        "states": {"a": [["tool", "a", False, False]], "b": [["tool", "b", False, False]]},
        "folded": [],
        "silhouettes": {},
        "labels": {"a": ["a"], "b": ["b"], "tool": ["a", "b"]},
        "mixed_labels": {},
        "renamed": [],
    }
    abstraction = Abstraction.from_dict(old)
    assert abstraction.descriptions == ()
    assert abstraction.to_dict() == old
    new = abstract_features(count_features(corpus(a=1, b=2)))
    assert new.space == abstraction.space
    assert {key: new.to_dict()[key] for key in old} == old


def test_later_documents_that_do_not_hold_together_are_refused():
    counts = count_features(corpus(a=1, b=2, c=3))
    good = abstract_features(counts, k_max=1, propositions=["a"]).to_dict()

    def refused(match, **changes):
        with pytest.raises(ModelError, match=match):
            Abstraction.from_dict(good | changes, "f.json")

    refused("schema_version 3 is unknown", schema_version=3)
    refused("unknown field", schema_version=1)
    refused("steps are not those of the states", steps={})
    refused("at least 1", steps={name: [0] * len(counts) for name, counts in good["steps"].items()})
    refused("descriptions does not follow", descriptions={})
    refused("cannot have been split", splits=[{"state": "x", "parts": ["a", "c+b"], "propositions": ["b"]}])
    refused("cannot have been split", splits=[{"state": "x", "parts": ["a"], "propositions": ["a"]}])
    refused("cannot have been split", splits=[{"state": "x", "parts": ["a", "z"], "propositions": ["a"]}])
    refused("classifier 'code' is unknown", classifier={"kind": "code"})
    refused("a function has a name", classifier={"kind": "function"})
    refused("no state", classifier={"kind": "rules", "rule": [{}]})
