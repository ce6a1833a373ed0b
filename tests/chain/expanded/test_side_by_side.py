"""The order by time: every step stands once, at its time, and advances to the next step of its run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chain.expanded.phase_models import corpus_of, runs

from tracebridge.chain.expanded.side_by_side import observed_batches
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
        assert np.array_equal(batch.unseen, np.flatnonzero(after == 5))
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


def test_runs_of_other_groups_are_refused() -> None:
    form = ModelForm(group="g")
    corpus = corpus_of(form, [("ab", "success"), ("c", "failure")])
    with pytest.raises(ModelError, match="groups"):
        list(observed_batches(ContextSpace(form=form, n_states=3, n_groups=3), corpus, most_steps=9))
    with pytest.raises(ModelError, match="categories"):
        list(observed_batches(ContextSpace(form=ModelForm(), n_states=2), corpus, most_steps=9))
