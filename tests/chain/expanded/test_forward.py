"""The forward pass against sums over all paths of phases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chain.expanded.phase_models import (
    corpus_of,
    forms,
    phase_paths,
    random_model,
    runs,
    short_runs_in_pieces,
)

from tracebridge.chain.expanded import forward, side_by_side
from tracebridge.chain.expanded.context_rows import context_counts, survivor_counts
from tracebridge.chain.expanded.estimation import ModelStack
from tracebridge.chain.expanded.forward import filtered_phases, log_likelihood, predictive, predictive_stack
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.errors import ModelError
from tracebridge.states.model_form import ModelForm
from tracebridge.states.run_paths import CENSORED, RunPaths


def probability(model: ExpandedModel, paths: RunPaths, run: int, first: int | None = None) -> float:
    """Of what is known of a run, or of its first steps."""
    return sum(
        weight * sum(phase_paths(model, paths, run, k, first).values())
        for k, weight in enumerate(model.class_weights.tolist())
    )


def first_steps(paths: RunPaths, run: int, steps: int, outcome: int) -> RunPaths:
    """The first steps of a run, as a run with this outcome."""
    begin = int(paths.offsets[run])
    return replace(
        paths,
        codes=paths.codes[begin : begin + steps],
        offsets=np.array([0, steps]),
        outcomes=np.array([outcome], dtype=np.int8),
        tasks=paths.tasks[run : run + 1],
        groups=paths.groups[run : run + 1],
    )


@settings(max_examples=50)
@given(forms, st.integers(1, 3), st.integers(1, 3), runs, st.integers(0, 2**32), st.booleans())
def test_log_likelihoods_are_sums_over_phases(
    form: ModelForm, phases: int, classes: int, paths: list[tuple[str, str]], seed: int, in_pieces: bool
) -> None:
    form = replace(form, phases=phases, classes=classes)
    corpus = corpus_of(form, paths)
    model = random_model(form, corpus.states, corpus.group_names, seed)
    with short_runs_in_pieces(in_pieces):
        found = log_likelihood(model, corpus)
    assert found == pytest.approx([np.log(probability(model, corpus, run)) for run in range(corpus.n_runs)])
    of_first = [
        np.log(probability(model, corpus, run, first=1) if len(steps) else np.exp(found[run]))
        for run, (steps, _) in enumerate(paths)
    ]
    assert log_likelihood(model, corpus, given_first=True) == pytest.approx(found - of_first)


@settings(max_examples=25)
@given(forms, st.integers(1, 3), st.integers(1, 3), runs, st.integers(0, 2**32))
def test_predictive_rows_are_conditional_probabilities(
    form: ModelForm, phases: int, classes: int, paths: list[tuple[str, str]], seed: int
) -> None:
    form = replace(form, phases=phases, classes=classes)
    corpus = corpus_of(form, paths)
    model = random_model(form, corpus.states, corpus.group_names, seed)
    found, filtered = predictive(model, corpus), filtered_phases(model, corpus)
    for run, (steps, _) in enumerate(paths):
        for i in range(len(steps)):
            place = int(corpus.offsets[run]) + i
            seen = first_steps(corpus, run, i + 1, CENSORED)
            before = phase_paths(model, seen, 0, 0, first=i + 1)
            total = sum(before.values())
            of_phase = [sum(p for path, p in before.items() if path[-1] == z) / total for z in range(phases)]
            assert filtered[place] == pytest.approx(of_phase)
            # What follows, by appending each category, and by each end: one run more, judged as a whole.
            onward = []
            for x in range(3):
                codes = np.append(seen.codes, x).astype(np.int32)
                more = replace(seen, codes=codes, offsets=np.array([0, i + 2]))
                onward.append(probability(model, more, 0, first=i + 2) / total)
            for outcome in (0, 1):
                ended = first_steps(corpus, run, i + 1, outcome)
                onward.append(probability(model, ended, 0) / total)
            assert found[place] == pytest.approx(onward)
            assert found[place].sum() == pytest.approx(1)
            # That the run is cut here adds that it goes on, to any category.
            cut = log_likelihood(model, seen) - np.log(total)
            assert cut == pytest.approx([np.log(sum(onward[:3]))])


@settings(max_examples=30)
@given(forms, runs, st.lists(st.integers(0, 2), min_size=5, max_size=5), st.integers(0, 2**32))
def test_a_stack_is_its_models_one_by_one(
    form: ModelForm, paths: list[tuple[str, str]], corpora: list[int], seed: int
) -> None:
    corpus = corpus_of(form, paths)
    models = [random_model(form, corpus.states, corpus.group_names, seed + i) for i in range(3)]
    stack = ModelStack(
        form=form,
        states=corpus.states,
        groups=corpus.group_names,
        start=np.stack([model.start for model in models]),
        rows=np.stack([model.rows for model in models]),
        advance=np.stack([model.advance for model in models]),
    )
    of_run = np.array(corpora[: corpus.n_runs])
    found = predictive_stack(stack, corpus, of_run)
    of_step = np.repeat(of_run, corpus.lengths)
    for i, model in enumerate(models):
        assert np.allclose(found[of_step == i], predictive(model, corpus)[of_step == i], rtol=1e-12)


@given(forms, runs, st.integers(0, 2**32), st.randoms())
def test_neither_batches_nor_the_order_of_runs_matter(
    form: ModelForm, paths: list[tuple[str, str]], seed: int, random: object
) -> None:
    corpus = corpus_of(form, paths)
    model = random_model(form, corpus.states, corpus.group_names, seed)
    whole = log_likelihood(model, corpus)
    order = np.random.default_rng(seed).permutation(corpus.n_runs)
    assert log_likelihood(model, corpus.take(order)) == pytest.approx(whole[order], rel=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "_BATCH_CELLS", 12)
        assert log_likelihood(model, corpus) == pytest.approx(whole, rel=1e-12)


@given(forms, runs, st.integers(0, 2**32))
def test_one_phase_is_the_product_of_the_rows(form: ModelForm, paths: list[tuple[str, str]], seed: int) -> None:
    form = replace(form, phases=1)
    corpus = corpus_of(form, paths)
    model = random_model(form, corpus.states, corpus.group_names, seed)
    counts, cut = context_counts(model.space, corpus)[0], survivor_counts(model.space, corpus)[0]
    found = log_likelihood(model, corpus, given_first=True).sum()
    going_on = model.rows[0, ..., :3].sum(axis=-1)
    assert found == pytest.approx((counts * np.log(model.rows[0])).sum() + (cut * np.log(going_on)).sum())
    contexts = model.space.of_paths(corpus.codes, corpus.offsets, corpus.groups)
    assert np.allclose(predictive(model, corpus), model.rows[0, contexts, corpus.codes], rtol=1e-12)


def test_a_run_of_100_000_steps_does_not_underflow() -> None:
    form = ModelForm(phases=2, phase_kind="full")
    model = random_model(form, ("a", "b"), (), seed=1)
    codes = np.arange(100_000) % 2
    corpus = RunPaths.of_codes(["a", "b"], codes, np.array([0, len(codes)]), np.array([0]))
    found = log_likelihood(model, corpus)
    # Transfer matrices of a, then b, as one product of small matrices in logarithms.
    onward = [np.diag(model.rows[:, 0, c, 1 - c]) @ model.advance[:, c] for c in (0, 1)]
    twice, log_norm, vector = onward[0] @ onward[1], 0.0, model.start[0, :, 0]
    for _ in range(49_999):
        vector = vector @ twice
        log_norm += np.log(vector.sum())
        vector = vector / vector.sum()
    expected = log_norm + np.log(vector @ onward[0] @ model.rows[:, 0, 1, 2])
    assert found == pytest.approx([expected], rel=1e-10)


@pytest.mark.parametrize("in_pieces", [False, True])
def test_an_impossible_run_has_no_probability_and_nothing_after_it_is_defined(in_pieces: bool) -> None:
    form = ModelForm(phases=2)
    model = random_model(form, ("a", "b"), (), seed=2)
    rows = np.array(model.rows)
    rows[:, 0, 0] = [0, 1, 0, 0]
    model = replace(model, rows=rows)
    corpus = RunPaths.of_names([("aabba", "success"), ("ababb", "success")], states="ab")
    with short_runs_in_pieces(in_pieces):
        found = log_likelihood(model, corpus)
        following = predictive(model, corpus)
    assert found[0] == -np.inf
    assert np.isfinite(found[1])
    assert following[0].tolist() == [0, 1, 0, 0]
    assert np.isnan(following[1:5]).all()
    assert np.isfinite(following[5:]).all()


def test_a_phase_from_which_a_piece_is_impossible_has_no_part_in_it() -> None:
    model = random_model(ModelForm(phases=2, phase_kind="full"), ("a", "b"), (), seed=7)
    rows = np.array(model.rows)
    rows[1, 0, 1] = [0, 0.9, 0.05, 0.05]  # in the second phase no a follows b
    model = replace(model, rows=rows)
    corpus = RunPaths.of_names([("babab", "success"), ("abbab", "censored"), ("bbaba", "failure")], states="ab")
    with short_runs_in_pieces():
        found = log_likelihood(model, corpus)
    assert found == pytest.approx([np.log(probability(model, corpus, run)) for run in range(3)])


@pytest.mark.parametrize("phases", [2, 3])
@pytest.mark.parametrize("kind", ["left-to-right", "full"])
def test_pieces_of_long_runs_change_nothing(phases: int, kind: str) -> None:
    """With rows as sharp as these, a phase that explains a piece of 500 steps badly underflows many times over."""
    form = ModelForm(phases=phases, phase_kind=kind, clock=(0, 100))  # type: ignore[arg-type]
    model = random_model(form, ("a", "b"), (), seed=6)
    rows = np.full((phases, 2, 2, 4), 1e-3)
    rows[np.arange(phases), :, :, np.arange(phases) % 2] = 0.997
    model = replace(model, rows=rows)
    rng = np.random.default_rng(6)
    paths = [("".join(rng.choice(["a", "b"], size=n)), "censored" if n % 2 else "failure") for n in (900, 1_201, 80)]
    corpus = RunPaths.of_names([("b" * 2_000 + "a" * 1_500, "success"), *paths])
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for length in (None, 7, 500):
            patch.setattr(side_by_side, "piece_length", lambda lengths, n_phases, length=length: length)
            found[length] = log_likelihood(model, corpus), predictive(model, corpus)
    for length in (7, 500):
        for cut, whole in zip(found[length], found[None], strict=True):
            assert np.isfinite(whole).all()
            assert np.allclose(cut, whole, rtol=1e-10, atol=1e-12)


def test_a_start_that_was_never_seen_has_the_phases_of_the_others() -> None:
    form = ModelForm(phases=2, phase_kind="full", group="g")
    model = random_model(form, ("a", "b"), ("x", "y"), seed=3)
    start = np.array(model.start)
    start[0, :, 1] = 0  # no run of group x starts with b
    start[1] = 0  # no run of group y at all
    model = replace(model, start=start / start.sum())
    corpus = RunPaths.of_names([("b", "success"), ("a", "success")], states="ab", groups=["x", "y"])
    of_a = model.start[0, :, 0] / model.start[0, :, 0].sum()
    assert filtered_phases(model, corpus) == pytest.approx(np.array([of_a, of_a]))
    assert log_likelihood(model, corpus).tolist() == [-np.inf, -np.inf]


def test_runs_over_other_names_are_refused() -> None:
    model = random_model(ModelForm(phases=2), ("a", "b"), (), seed=4)
    with pytest.raises(ModelError, match="over"):
        log_likelihood(model, RunPaths.of_names([("ac", "success")]))
    grouped = random_model(ModelForm(phases=2, group="g"), ("a", "b"), ("x", "y"), seed=4)
    with pytest.raises(ModelError, match="groups"):
        predictive(grouped, RunPaths.of_names([("ab", "success")], groups=["x"]))
    stack = ModelStack(
        form=model.form,
        states=model.states,
        groups=(),
        start=model.start[np.newaxis],
        rows=model.rows[np.newaxis],
        advance=model.advance[np.newaxis],
    )
    with pytest.raises(ModelError, match="from 0 to 0"):
        predictive_stack(stack, RunPaths.of_names([("ab", "success")]), np.array([1]))


def test_phases_that_leave_the_band_are_refused() -> None:
    model = random_model(ModelForm(phases=2), ("a", "b"), (), seed=5)
    advance = np.array(model.advance)
    advance[1] = 0.5
    with pytest.raises(ModelError, match="one on"):
        log_likelihood(replace(model, advance=advance), RunPaths.of_names([("ab", "success")]))
