"""The order by time: every step stands once, at its time, and advances to the next step of its run or its piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chain.expanded.phase_models import corpus_of, runs

from tracebridge.chain.expanded.side_by_side import SideBySide, observed_batches, piece_length
from tracebridge.errors import ModelError
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.model_form import ModelForm


@given(runs, st.lists(st.integers(0, 2), min_size=5, max_size=5), st.integers(1, 12), st.booleans())
def test_batches_hold_what_was_seen_of_every_step(
    paths: list[tuple[str, str]], corpora: list[int], most_steps: int, grouped: bool
) -> None:
    form = ModelForm(previous=True, group="g" if grouped else None)
    corpus = corpus_of(form, paths)
    space = ContextSpace(form=form, n_states=3, n_groups=corpus.n_groups)
    of_run = np.array(corpora[: corpus.n_runs])
    contexts = space.of_paths(corpus.codes, corpus.offsets, corpus.groups)
    run_of_step = np.repeat(np.arange(corpus.n_runs), corpus.lengths)
    steps, judged = [], []
    for batch in observed_batches(space, corpus, of_run, most_steps=most_steps):
        layout = batch.layout
        assert len(layout.steps) <= most_steps or len(layout.runs) == 1
        run = run_of_step[layout.steps]
        assert np.array_equal(layout.runs[layout.run_of_step], run)
        earlier = layout.steps - corpus.offsets[run]
        assert np.array_equal(earlier, np.repeat(np.arange(len(layout.active)), layout.active))
        for before, going_on, here in layout.advances():
            assert before.start == going_on.start
            assert np.array_equal(layout.steps[going_on] + 1, layout.steps[here])
            assert np.array_equal(run[going_on], run[here])
        shape = (batch.corpora.stop - batch.corpora.start, space.size, 3, 5)
        corpus_of_step, context, code, following = np.unravel_index(batch.event, shape)
        assert np.array_equal(corpus_of_step + batch.corpora.start, of_run[run])
        assert np.array_equal(context, contexts[layout.steps])
        assert np.array_equal(code, corpus.codes[layout.steps])
        assert np.array_equal(batch.leaving, corpus_of_step * 3 + code)
        after = corpus.following[layout.steps]
        assert np.array_equal(batch.cut, np.flatnonzero(after == 5))
        assert np.array_equal(following[after < 5], after[after < 5])
        assert np.array_equal(batch.last, np.flatnonzero(after >= 3))
        of_first, group, first = np.unravel_index(batch.first, (shape[0], space.n_groups, 3))
        assert np.array_equal(of_first + batch.corpora.start, of_run[layout.runs])
        assert np.array_equal(group, corpus.groups[layout.runs])
        assert np.array_equal(first, corpus.codes[corpus.offsets[layout.runs]])
        steps += layout.steps.tolist()
        judged += layout.runs.tolist()
    assert sorted(steps) == list(range(corpus.n_steps))
    assert sorted(judged) == np.flatnonzero(corpus.lengths).tolist()


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 5))
def test_pieces_hold_every_step_and_lead_to_each_other(lengths: list[int], size: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    layout = SideBySide.of(offsets, np.flatnonzero(lengths), size)
    assert sorted(layout.steps.tolist()) == list(range(sum(lengths)))
    run = np.repeat(np.arange(len(lengths)), lengths)[layout.steps]
    assert np.array_equal(layout.runs[layout.run_of_step], run)
    for before, going_on, here in layout.advances():
        assert before.start == going_on.start
        assert np.array_equal(layout.steps[going_on] + 1, layout.steps[here])
    begins = layout.steps[: len(layout.run_of_piece)] - offsets[layout.runs[layout.run_of_piece]]
    assert (begins % size == 0).all()
    assert not begins[layout.firsts].any()
    assert np.array_equal(layout.run_of_piece[layout.firsts], np.arange(len(layout.runs)))
    n_through = len(layout.following)
    assert layout.through.sum() == n_through
    assert np.array_equal(begins[:n_through] + size, begins[layout.following])
    assert np.array_equal(layout.run_of_piece[:n_through], layout.run_of_piece[layout.following])
    for number, pieces in enumerate(layout.handed_on()):
        assert (begins[pieces] == number * size).all()
    last = layout.run_of_piece[n_through:]
    assert sorted(last.tolist()) == list(range(len(layout.runs)))
    left = [lengths[layout.runs[layout.run_of_piece[i]]] - begins[i] for i in range(n_through, len(begins))]
    assert all(1 <= steps <= size for steps in left)


def test_few_long_runs_alone_are_cut() -> None:
    long = np.full(20, 5_000)
    assert piece_length(long, 4) == 50
    assert piece_length(long, 1) is None
    assert piece_length(np.full(500, 60), 4) is None
    assert piece_length(np.full(500, 5_000), 4) is None
    assert piece_length(np.empty(0, dtype=np.int64), 4) is None


def test_runs_of_other_groups_are_refused() -> None:
    form = ModelForm(group="g")
    corpus = corpus_of(form, [("ab", "success"), ("c", "failure")])
    with pytest.raises(ModelError, match="groups"):
        list(observed_batches(ContextSpace(form=form, n_states=3, n_groups=3), corpus, most_steps=9))
    with pytest.raises(ModelError, match="categories"):
        list(observed_batches(ContextSpace(form=ModelForm(), n_states=2), corpus, most_steps=9))
