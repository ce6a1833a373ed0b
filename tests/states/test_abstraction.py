import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import FitError, ModelError, UsageError
from tracebridge.states.abstraction import Abstraction, abstract_features, one_hot
from tracebridge.states.features import FeatureVector, count_features, encode_runs
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
