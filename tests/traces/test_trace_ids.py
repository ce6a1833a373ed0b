"""Sets of trace_ids by their digests, against sets of the ids themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.traces import trace_ids
from tracebridge.traces.trace_ids import CorpusIds, TraceIds, digest_of

IDS = st.lists(st.integers(0, 30).map(str), max_size=12)


@settings(max_examples=40)
@given(ids=IDS, others=IDS)
def test_a_file_is_a_set(ids: list[str], others: list[str]) -> None:
    mine, theirs = TraceIds(), TraceIds()
    assert [mine.claim(each) for each in ids] == [each not in ids[:i] for i, each in enumerate(ids)]
    assert all(theirs.claim(each) for each in set(others))
    assert (len(mine), {each for each in others if each in mine}) == (len(set(ids)), {*others} & {*ids})
    expected = sorted(digest_of(each) for each in {*ids} - {*others})
    assert mine.beyond(theirs).tolist() == [digest.rstrip(b"\0") for digest in expected]
    copy = mine.copy()
    assert copy.claim("new")
    assert "new" not in mine


@settings(max_examples=40)
@given(shards=st.lists(IDS, max_size=8), in_memory=st.sampled_from([0, 3, 10, 1 << 18]))
def test_a_corpus_is_the_union_of_its_files(shards: list[list[str]], in_memory: int) -> None:
    with pytest.MonkeyPatch.context() as patched:  # the others are in a file
        patched.setattr(trace_ids, "_MOST_IN_MEMORY", in_memory)
        corpus, known = CorpusIds(), set[str]()
        for ids in shards:
            held = TraceIds(map(digest_of, ids))
            assert corpus.common(held.beyond(TraceIds())) == {digest_of(each) for each in {*ids} & known}
            corpus.add(held.beyond(TraceIds()))
            known |= {*ids}
        assert corpus.digests() == {digest_of(each) for each in known}


def test_digests_that_end_in_zeros() -> None:
    digests = [bytes(15) + b"\1", b"\1" + bytes(15), bytes(16)]
    corpus = CorpusIds()
    corpus.add(np.array(digests[:2], dtype="S16"))
    assert corpus.common(np.array(digests, dtype="S16")) == frozenset(digests[:2])
