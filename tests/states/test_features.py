import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import TraceError
from tracebridge.states import features
from tracebridge.states.features import FeatureCounts, FeatureVector, count_features, encode_runs
from tracebridge.states.flow import RunFlow
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=60)

steps = st.builds(
    Step,
    name=st.sampled_from(["search", "look", "é"]),
    kind=st.sampled_from(["tool", "message"]),
    error=st.booleans(),
    attributes=st.sampled_from([{}, {"retry": True}, {"retry": "true"}, {"retry": 1}, {"retry": False}, {"x": True}]),
)
traces = st.builds(
    Trace, trace_id=st.just("t"), outcome=st.sampled_from(Outcome), steps=st.lists(steps, max_size=7).map(tuple)
)
corpora = st.lists(traces, max_size=12)


def vectors_of(trace):
    """The definition, step by step."""
    found = []
    before = None
    for step in trace.steps:
        repeats = before is not None and before.error and (before.kind, before.name) == (step.kind, step.name)
        retry = repeats or step.attributes.get("retry") is True
        found.append(FeatureVector(step.kind, step.name, step.error, retry))
        before = step
    return found


@law
@given(corpora)
def test_encoding_follows_the_definition(corpus):
    runs = encode_runs(corpus)
    assert list(runs.vectors) == sorted({vector for trace in corpus for vector in vectors_of(trace)})
    assert [features.OUTCOMES[code] for code in runs.outcomes] == [trace.outcome for trace in corpus]
    for r, trace in enumerate(corpus):
        path = runs.codes[runs.offsets[r] : runs.offsets[r + 1]]
        assert [runs.vectors[code] for code in path] == vectors_of(trace)
    assert runs.n_runs == len(corpus)


@law
@given(corpora)
def test_counting_agrees_with_the_paths(corpus):
    counts = count_features(corpus)
    runs = encode_runs(corpus)
    assert counts == runs.counts()
    for code, outcome in enumerate(features.OUTCOMES):
        mine = [r for r in range(runs.n_runs) if runs.outcomes[r] == code]
        codes = [runs.codes[runs.offsets[r] : runs.offsets[r + 1]] for r in mine]
        offsets = np.cumsum([0, *map(len, codes)])
        flat = np.concatenate([np.empty(0, dtype=np.int64), *codes])
        assert getattr(counts, outcome) == RunFlow.from_paths(flat, offsets, len(counts.vectors))
    assert counts.visits.tolist() == np.bincount(runs.codes, minlength=len(counts.vectors)).tolist()
    assert counts.n_runs == len(corpus)


@law
@given(corpora, st.integers(0, 12), st.randoms(use_true_random=False))
def test_order_and_shards_do_not_matter(corpus, cut, random):
    whole = count_features(corpus)
    first, second = count_features(corpus[:cut]), count_features(corpus[cut:])
    shuffled = list(corpus)
    random.shuffle(shuffled)
    assert first + second == second + first == count_features(shuffled) == whole
    assert whole + FeatureCounts.empty() == whole


@law
@given(corpora, st.integers(1, 20), st.integers(0, 5))
def test_batches_do_not_matter(corpus, batch_steps, pending):
    whole, paths = count_features(corpus), encode_runs(corpus)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "_BATCH_SIZE", batch_steps)
        patch.setattr(features, "_PENDING", pending)
        assert count_features(iter(corpus)) == whole
        again = encode_runs(iter(corpus))
    assert again.vectors == paths.vectors
    assert again.codes.tolist() == paths.codes.tolist()
    assert again.offsets.tolist() == paths.offsets.tolist()


def test_a_retry_never_reaches_across_runs():
    failed = Trace(trace_id="a", outcome=Outcome.FAILURE, steps=(Step(name="x", error=True),))
    empty = Trace(trace_id="b", outcome=Outcome.FAILURE)
    again = Trace(trace_id="c", outcome=Outcome.SUCCESS, steps=(Step(name="x"), Step(name="x")), task_id="T")
    runs = encode_runs([failed, empty, again])
    assert not any(vector.retry for vector in runs.vectors)
    assert runs.task_ids == (None, None, "T")
    assert runs.offsets.tolist() == [0, 1, 1, 3]
    assert runs.codes.dtype == np.int32


@pytest.mark.parametrize("step", [Step(name=""), Step(name="x", kind=""), Step(name="x", error=None), Step(name=3)])
def test_steps_that_are_none_are_refused(step):
    with pytest.raises(TraceError, match="a step has kind"):
        count_features([Trace(trace_id="a", outcome=Outcome.SUCCESS, steps=(step,))])


def test_an_outcome_that_is_none_is_refused():
    with pytest.raises(TraceError, match="record 'a', field outcome: 'won' is no Outcome"):
        count_features([Trace(trace_id="a", outcome="won")])


def test_names_that_are_free_text_are_refused(monkeypatch):
    monkeypatch.setattr(features, "MAX_VECTORS", 10)
    trace = Trace(trace_id="a", outcome=Outcome.SUCCESS, steps=tuple(Step(name=f"n{i}") for i in range(6)))
    with pytest.raises(TraceError, match="more than 5 different names, the last of them 'n5'"):
        count_features([trace])
