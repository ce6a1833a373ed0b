"""Features of shards add up in any order and any grouping to the counts of the corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.states import FeatureCounts, FeatureVector, count_features
from tracebridge.states.features import PassageCounter, RunEncoder
from tracebridge.states.light_runs import LightRuns, packed, without_steps
from tracebridge.states.shard_features import FeatureTotal, ShardFeatures
from tracebridge.traces import Outcome, Step, Trace

STEPS = st.builds(
    Step, name=st.sampled_from("abc"), error=st.booleans(), attributes=st.sampled_from([{}, {"retry": True}])
)
RUNS = st.lists(st.tuples(st.lists(STEPS, max_size=4), st.sampled_from(Outcome)), max_size=6)
CORPORA = st.lists(RUNS, max_size=5)


def traces_of(runs: Sequence[tuple[list[Step], Outcome]]) -> list[Trace]:
    return [Trace(trace_id=str(i), outcome=outcome, steps=tuple(steps)) for i, (steps, outcome) in enumerate(runs)]


def features_of(traces: Sequence[Trace]) -> ShardFeatures:
    encoder, counter = RunEncoder(None), PassageCounter()
    for batch in encoder.batches(traces):
        counter.add(batch.codes, batch.offsets, batch.outcomes)
    return ShardFeatures.of(counter, encoder.vectors())


def total(parts: Sequence[ShardFeatures]) -> FeatureCounts:
    whole = FeatureTotal()
    for part in parts:
        whole.add(part)
    return whole.counts()


@settings(max_examples=20)
@given(corpora=CORPORA, data=st.data())
def test_the_sum_is_that_of_one_pass_in_any_order(corpora: list[object], data: st.DataObject) -> None:
    shards = [traces_of(runs) for runs in corpora]  # type: ignore[arg-type]
    parts = [features_of(traces) for traces in shards]
    whole = count_features([trace for traces in shards for trace in traces])
    assert total(parts) == whole
    assert total(data.draw(st.permutations(parts))) == whole
    cut = data.draw(st.integers(0, len(parts)))
    assert total(parts[:cut]) + total(parts[cut:]) == whole


@settings(max_examples=50)
@given(runs=RUNS)
def test_light_runs_have_the_vectors_of_the_runs(runs: list[object]) -> None:
    traces = traces_of(runs)  # type: ignore[arg-type]
    encoder = RunEncoder(None)
    raw = [code for batch in encoder.batches(traces) for code in batch.codes.tolist()]
    distinct = sorted(set(raw))
    codes = np.array([distinct.index(code) for code in raw], dtype=np.int64)
    light = LightRuns(
        heads=tuple(map(without_steps, traces)),
        vectors=tuple(encoder.vectors()[code] for code in distinct),
        codes=packed(codes, len(distinct)),
        lengths=np.array([len(trace.steps) for trace in traces], dtype=np.uint32),
    )
    again = list(LightRuns.from_bytes(light.to_bytes()))
    assert again == list(light)
    assert [(t.trace_id, t.outcome) for t in again] == [(t.trace_id, t.outcome) for t in traces]
    assert count_features(again) == count_features(traces)


@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        ([5, 3], [1, 1]),
        ([3, 3], [1, 1]),
        ([-1], [1]),
        ([3 << 60 | 0], [1]),
        ([2 << 30], [1]),
        ([1], [0]),
        ([1], [1, 1]),
    ],
)
def test_passages_that_are_none(keys: list[int], counts: list[int]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        ShardFeatures(
            vectors=(FeatureVector("tool", "a", False, False),),
            keys=np.array(keys, dtype=np.int64),
            counts=np.array(counts, dtype=np.int64),
        )
