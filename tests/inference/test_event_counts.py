from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import FitError, ModelError
from tracebridge.inference.event_counts import EventCounts

EVENT = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 5))


def counted(events) -> EventCounts:
    columns = np.array(events, dtype=np.int64).reshape(-1, 3).T
    return EventCounts.of(*columns, n_contexts=3, n_states=4)


@given(st.lists(EVENT), st.lists(EVENT))
def test_events_are_counted_and_add_up(ours, theirs):
    table = counted(ours) + counted(theirs)
    assert table == counted(ours + theirs)
    columns = (table.contexts, table.states, table.following, table.counts)
    found = {(g, i, j): n for g, i, j, n in zip(*(column.tolist() for column in columns), strict=True)}
    assert found == Counter(ours + theirs)
    assert table.totals.tolist() == [len(ours) + len(theirs)]


@given(st.lists(EVENT))
def test_pooled_events_lose_their_context(events):
    assert counted(events).pooled() == EventCounts.of(
        [0] * len(events), [i for _, i, _ in events], [j for _, _, j in events], n_contexts=1, n_states=4
    )


@given(st.lists(st.tuples(st.integers(0, 23), st.integers(1, 2**40))), st.sampled_from([1, 2**20]))
def test_keys_are_counted_alike_among_few_cells_and_among_many(weighted, n_contexts):
    keys, counts = np.array(weighted, dtype=np.int64).reshape(-1, 2).T
    table = EventCounts.of_keys(keys, counts, n_corpora=1, n_contexts=n_contexts, n_states=4)
    expected = Counter()
    for key, count in weighted:
        expected[key] += count
    assert dict(zip(table.keys.tolist(), table.counts.tolist(), strict=True)) == expected
    assert list(table.keys) == sorted(expected)


def test_what_breaks_the_invariants_is_refused():
    def table(keys, counts):
        return EventCounts(n_corpora=1, n_contexts=1, n_states=2, keys=np.array(keys), counts=np.array(counts))

    assert table([0, 7], [1, 1]).n_cells == 8
    for keys, counts in (([0, 8], [1, 1]), ([1, 0], [1, 1]), ([0, 0], [1, 1]), ([0], [0]), ([-1], [1])):
        with pytest.raises(ModelError, match="ascending keys within their sizes"):
            table(keys, counts)
    for keys, counts in (([0, 9], [1, 1]), ([0, -1], [1, 1]), ([0, 0, 1], [1, -1, 1])):
        with pytest.raises(ModelError, match="ascending keys within their sizes"):
            EventCounts.of_keys(np.array(keys), np.array(counts), n_corpora=1, n_contexts=1, n_states=2)
    with pytest.raises(ModelError, match="2\\^53"):
        table([0, 1], [2**52, 2**52])
    with pytest.raises(FitError, match="too many to count"):
        EventCounts.of([], [], [], n_contexts=2**21, n_states=2**21)
