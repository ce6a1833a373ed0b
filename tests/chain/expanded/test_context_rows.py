"""Counts by context and their shrinkage, against loops over steps and over levels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chain.expanded.corpora import as_paths, forms, runs

from tracebridge.chain.expanded import context_rows
from tracebridge.chain.expanded.context_rows import (
    category_rows,
    context_counts,
    context_levels,
    shrunk_rows,
    start_counts,
    survivor_counts,
)
from tracebridge.chain.expanded.estimation import space_of
from tracebridge.errors import FitError, ModelError, UsageError
from tracebridge.states.expansion import Context, ContextSpace
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths

ENDS = {"success": 3, "failure": 4}


def events(drawn, form, ends=ENDS):
    """(group, bin, dwell, previous, state, next) of every step whose successor was seen, one step after the other.

    With ends of censored runs, of their last steps too.
    """
    for path, outcome, group in drawn:
        stay = 0
        for i, name in enumerate(path):
            stay = stay + 1 if i and path[i - 1] == name else 0
            following = "abc".index(path[i + 1]) if i + 1 < len(path) else ends.get(outcome)
            if following is None:
                continue
            yield (
                sorted({run[2] for run in drawn}).index(group) if form.group else 0,
                sum(first <= i for first in form.bins) - 1,
                min(stay, form.dwell - 1),
                ("abc".index(path[i - 1]) if i else 3) if form.previous else 0,
                "abc".index(name),
                following,
            )


@settings(max_examples=40)
@given(runs, forms)
def test_counts_are_those_of_a_loop_over_steps(drawn, form):
    paths = as_paths(drawn)
    space = space_of(paths, form)
    counts = context_counts(space, paths)[0]
    found = Counter(events(drawn, form))
    assert counts.sum() == sum(found.values())
    for (group, bin_, dwell, previous, state, following), n in found.items():
        context = space.codes(Context(*(np.array(part) for part in (group, bin_, dwell, previous))))
        assert counts[context, state, following] == n


@settings(max_examples=40)
@given(runs, forms, st.integers(1, 3), st.randoms(use_true_random=False))
def test_corpora_are_counted_apart(drawn, form, b, random):
    paths = as_paths(drawn)
    space = space_of(paths, form)
    corpora = np.array([random.randrange(b) for _ in drawn])
    counts, starts = context_counts(space, paths, corpora, b), start_counts(space, paths, corpora, b)
    for i in range(b):
        alone = paths.take(np.flatnonzero(corpora == i))
        np.testing.assert_array_equal(counts[i], context_counts(space, alone)[0])
        np.testing.assert_array_equal(starts[i], start_counts(space, alone)[0])


@settings(max_examples=40)
@given(runs, forms, st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(drawn, form, random):
    order = np.array(random.sample(range(len(drawn)), len(drawn)))
    paths = as_paths(drawn)
    space = space_of(paths, form)
    np.testing.assert_array_equal(context_counts(space, paths), context_counts(space, paths.take(order)))


def back_off(drawn, form, kappa, cell, ends):
    """The row of one context and state by recursion over ever shorter contexts, from the list of events.

    A tree of choices: the run ends in success or failure or goes on, with mass min(kappa, 1); if it goes on, where to,
    with mass kappa times the coarser probability to go on. Runs that were cut, number 5, chose the first alone.
    """
    *here, state = cell
    forgotten = [1, 2, 3, 0]
    sizes = [len({run[2] for run in drawn}) if form.group else 1, len(form.bins), form.dwell, 4 if form.previous else 1]
    kept = [True] * 4  # group, bin, dwell, previous
    levels = [list(kept)]
    for part in forgotten:
        if sizes[part] > 1:
            kept[part] = False
            levels.append(list(kept))
    row = None
    for level in reversed(levels):
        tally = Counter(
            event[5]
            for event in events(drawn, form, ends)
            if event[4] == state and all(event[i] == here[i] or not level[i] for i in range(4))
        )
        total = sum(tally.values())
        if row is None:
            onward, ending = [tally[x] + 1 / 5 for x in range(3)], [(tally[x] + 1 / 5) / (total + 1) for x in (3, 4)]
            row = [*((1 - sum(ending)) * each / sum(onward) for each in onward), *ending]
            continue
        mass = min(kappa, 1)
        before = sum(row[:3])
        went_on = sum(tally[x] for x in range(3))
        on = (went_on + tally[5] + mass * before) / (total + mass)
        to = [(tally[x] + kappa * before * (row[x] / before)) / (went_on + kappa * before) for x in range(3)]
        row = [*(on * each for each in to), *((tally[x] + mass * row[x]) / (total + mass) for x in (3, 4))]
    return row


@settings(max_examples=40)
@given(runs, forms, st.floats(0.01, 50), st.booleans(), st.data())
def test_rows_are_those_of_a_recursion_over_contexts(drawn, form, kappa, cuts_known, data):
    paths = as_paths(drawn)
    space = space_of(paths, form)
    cut = survivor_counts(space, paths) if cuts_known else None
    rows = shrunk_rows(space, context_counts(space, paths), kappa, survivors=cut)[0]
    np.testing.assert_allclose(rows.sum(axis=-1), 1, rtol=1e-12)
    parts = tuple(data.draw(st.integers(0, size - 1)) for size in space.shape)
    state = data.draw(st.integers(0, 2))
    context = space.codes(Context(*(np.array(part) for part in parts)))
    ends = ENDS | {"censored": 5} if cuts_known else ENDS
    expected = back_off(drawn, form, kappa, (*parts, state), ends)
    assert rows[context, state].tolist() == pytest.approx(expected, rel=1e-11)


@settings(max_examples=40)
@given(runs, forms)
def test_a_large_kappa_forgets_contexts_and_a_small_one_keeps_what_was_seen(drawn, form):
    """A large one forgets them where runs go, but not where they end."""
    paths = as_paths(drawn)
    space = space_of(paths, form)
    counts = context_counts(space, paths)[0]
    plain = category_rows(counts.sum(axis=0))[:, :3]
    shrunk = shrunk_rows(space, counts, 1e12)
    onward = shrunk[..., :3] / shrunk[..., :3].sum(axis=-1, keepdims=True)
    expected = np.broadcast_to(plain / plain.sum(axis=-1, keepdims=True), onward.shape)
    np.testing.assert_allclose(onward, expected, rtol=1e-9)
    np.testing.assert_allclose(shrunk[..., 3:], shrunk_rows(space, counts, 1.0)[..., 3:], rtol=1e-12)
    if len(context_levels(space, counts)) > 1:
        totals = counts.sum(axis=-1)
        seen = totals > 0
        sharp = shrunk_rows(space, counts, 1e-12)
        np.testing.assert_allclose(sharp[seen], (counts / np.maximum(totals, 1)[..., np.newaxis])[seen], atol=1e-10)


@settings(max_examples=40)
@given(runs, forms, st.floats(0.01, 1))
def test_up_to_one_kappa_is_the_mass_of_a_dirichlet_prior_around_the_coarser_row(drawn, form, kappa):
    paths = as_paths(drawn)
    space = space_of(paths, form)
    *finer, expected = context_levels(space, context_counts(space, paths)[0])
    expected = category_rows(expected)
    for level in reversed(finer):
        expected = (level + kappa * expected) / (level.sum(axis=-1, keepdims=True) + kappa)
    found = shrunk_rows(space, context_counts(space, paths)[0], kappa)
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-12)


@settings(max_examples=40)
@given(runs, forms, st.integers(1, 3), st.floats(0.1, 1), st.integers(0, 99))
def test_a_phase_is_shrunk_to_all_phases(drawn, form, n_phases, kappa, seed):
    paths = as_paths(drawn)
    space = space_of(paths, form)
    shares = np.random.default_rng(seed).dirichlet(np.ones(n_phases))
    counts = context_counts(space, paths) * shares[:, np.newaxis, np.newaxis, np.newaxis]
    rows = shrunk_rows(space, counts, kappa, over_phases=True)
    assert rows.shape == counts.shape
    pooled = category_rows(counts.sum(axis=(0, 1)))
    for z in range(n_phases):
        own = counts[z].sum(axis=0)
        expected = (own + kappa * pooled) / (own.sum(axis=-1, keepdims=True) + kappa) if n_phases > 1 else pooled
        levels = context_levels(space, counts[z])[:-1]
        for level in reversed(levels):
            expected = (level + kappa * expected) / (level.sum(axis=-1, keepdims=True) + kappa)
        np.testing.assert_allclose(rows[z], np.reshape(expected, counts.shape[1:]), rtol=1e-12)


@pytest.mark.parametrize("kappa", [0, -1.0, float("nan"), float("inf")])
def test_kappa_is_above_zero(kappa):
    paths = as_paths([(["a"], "success", "x")])
    space = space_of(paths, ModelForm(previous=True))
    with pytest.raises(UsageError, match="kappa"):
        shrunk_rows(space, context_counts(space, paths), kappa)


def test_too_many_contexts_are_refused_before_memory_is_taken(monkeypatch):
    paths = as_paths([(["a"], "success", "x")])
    space = space_of(paths, ModelForm(previous=True, dwell=32, clock=tuple(range(1000)), group="model"))
    context_counts(space, paths)  # 4 * 32 * 1000 contexts of 3 x 5 entries
    with pytest.raises(FitError, match="fewer bins"):
        context_counts(space, paths, np.zeros(1, dtype=np.int64), 100)
    monkeypatch.setattr(context_rows, "MAX_CELLS", 100)
    with pytest.raises(FitError, match="contexts of 3 states"):
        context_counts(space, paths)


def test_runs_of_other_contexts_are_refused():
    paths = as_paths([(["a"], "success", "x"), (["b"], "success", "y")])
    space = space_of(paths, ModelForm(group="model"))
    with pytest.raises(ModelError, match="groups"):
        context_counts(space, as_paths([(["a"], "success", "x")]))
    with pytest.raises(ModelError, match="corpora"):
        context_counts(space, paths, np.array([0, 2]), 2)


def test_no_run_has_a_step():
    paths = as_paths([([], "success", "x"), ([], "censored", "x")], states="")
    space = space_of(paths, ModelForm(previous=True))
    assert shrunk_rows(space, context_counts(space, paths)).shape == (1, 1, 0, 2)
    assert start_counts(space, paths).tolist() == [[[1, 0]]]


@settings(max_examples=40)
@given(runs, st.floats(1, 50), st.integers(0, 99))
def test_the_whole_row_of_a_phase_is_shrunk_with_mass_kappa(drawn, kappa, seed):
    paths = as_paths(drawn)
    space = space_of(paths, ModelForm())
    shares = np.random.default_rng(seed).dirichlet(np.ones(3))
    counts = context_counts(space, paths) * shares[:, np.newaxis, np.newaxis, np.newaxis]
    expected = (counts + kappa * category_rows(counts.sum(axis=0))) / (counts.sum(axis=-1, keepdims=True) + kappa)
    np.testing.assert_allclose(shrunk_rows(space, counts, kappa, over_phases=True), expected, rtol=1e-12)


def test_runs_that_were_cut_went_on():
    """Of ten runs six end at the third step, four are cut there: with no prior to speak of, six tenths end there."""
    runs = [(["a", "b", "a"], "success")] * 4 + [(["a", "b", "a"], "failure")] * 2 + [(["a", "b", "a"], "censored")] * 4
    paths = RunPaths.of_names(runs)
    space = ContextSpace(form=parse_model("clock:0,1,2"), n_states=2)
    survivors = survivor_counts(space, paths)
    assert survivors.sum() == 4
    assert survivors[0, 2, 0] == 4
    row = shrunk_rows(space, context_counts(space, paths), 1e-9, survivors=survivors)[0, 2, 0]
    assert row[2:] == pytest.approx([0.4, 0.2], abs=1e-6)
    assert row[:2].sum() == pytest.approx(0.4, abs=1e-6)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 16.0])
def test_the_probability_to_end_is_the_mode_given_what_is_known(kappa: float):
    """As the docstring has it, in contexts whose coarser row no survivor changes."""
    runs = [(["a", "a"], "success")] * 3 + [(["a", "a"], "censored")] * 5 + [(["b"], "failure")] * 2
    paths = RunPaths.of_names(runs)
    space = ContextSpace(form=parse_model("clock:0,1"), n_states=2)
    counts, cut = context_counts(space, paths), survivor_counts(space, paths)
    coarse = category_rows(counts[0].sum(axis=0), cut[0].sum(axis=0)[:, np.newaxis])[0]
    assert coarse[2] == pytest.approx((3 + 1 / 4) / (11 + 5 + 1))
    mass = min(kappa, 1.0)
    found = shrunk_rows(space, counts, kappa, survivors=cut)[0, 1, 0]
    assert found[2] == pytest.approx((3 + mass * coarse[2]) / (8 + mass))


def test_corpora_side_by_side_have_their_own_survivors():
    runs = [(["a"], "censored"), (["a"], "success"), (["a", "b"], "censored")]
    paths = RunPaths.of_names(runs)
    space = ContextSpace(form=parse_model("order2"), n_states=2)
    both = survivor_counts(space, paths, np.array([0, 1, 1]), 2)
    for i, part in enumerate(([0], [1, 2])):
        assert np.array_equal(both[i], survivor_counts(space, paths.take(np.array(part)))[0])
