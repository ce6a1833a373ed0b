"""Expectation maximisation against sums over all paths of phases, and its laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.chain.expanded.phase_models import (
    corpus_of,
    drawn_runs,
    forms,
    phase_paths,
    random_model,
    runs,
    short_runs_in_pieces,
)

from tracebridge.chain.expanded import expectation, forward, phases
from tracebridge.chain.expanded.context_rows import shrunk_rows
from tracebridge.chain.expanded.estimation import space_of
from tracebridge.chain.expanded.expectation import PhaseCounts, expected_counts
from tracebridge.chain.expanded.forward import log_likelihood
from tracebridge.chain.expanded.kernels import Full, LeftToRight, kernel
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.chain.expanded.phases import em_stack, fit_phases
from tracebridge.chain.expanded.side_by_side import ObservedBatch, observed_batches
from tracebridge.chain.expanded.workspace import Workspace
from tracebridge.errors import ModelError, NothingToCheckError, UsageError
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths


def counts_under(model: ExpandedModel, corpus: RunPaths) -> PhaseCounts:
    batches = observed_batches(space_of(corpus, model.form), corpus, most_steps=7)  # several for most corpora
    one = (model.start[np.newaxis], model.rows[np.newaxis], model.advance[np.newaxis])
    return expected_counts(model.form, batches, *one, Workspace())


def summed_counts(model: ExpandedModel, corpus: RunPaths) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Expected numbers of starts, of what followed, of cuts and of changes, path of phases by path of phases."""
    n_phases, m, grouped = model.form.phases, model.n_states, model.form.group is not None
    starts = np.zeros((model.n_groups, n_phases, m))
    rows, changes = np.zeros(model.rows.shape), np.zeros(model.advance.shape)
    cuts = np.zeros(model.rows.shape[:-1])
    contexts = model.space.of_paths(corpus.codes, corpus.offsets, corpus.groups if grouped else None)
    for run in range(corpus.n_runs):
        begin, end = corpus.offsets[run : run + 2].tolist()
        joint = phase_paths(model, corpus, run, 0)
        total = sum(joint.values())
        for path, p in joint.items():
            for i, z in enumerate(path):
                at = begin + i
                if i == 0:
                    starts[corpus.groups[run] if grouped else 0, z, corpus.codes[at]] += p / total
                if corpus.following[at] < m + 2:
                    rows[z, contexts[at], corpus.codes[at], corpus.following[at]] += p / total
                else:
                    cuts[z, contexts[at], corpus.codes[at]] += p / total
                if at + 1 < end:
                    changes[z, corpus.codes[at], path[i + 1]] += p / total
    return starts, rows, cuts, changes


@settings(max_examples=40)
@given(forms, runs, st.integers(0, 2**32), st.booleans())
def test_expected_numbers_are_sums_over_phases(
    form: ModelForm, paths: list[tuple[str, str]], seed: int, in_pieces: bool
) -> None:
    corpus = corpus_of(form, paths)
    model = random_model(form, corpus.states, corpus.group_names, seed)
    with short_runs_in_pieces(in_pieces):
        found = counts_under(model, corpus)
    starts, rows, cuts, changes = summed_counts(model, corpus)
    assert np.allclose(found.starts[0], starts, atol=1e-12)
    assert np.allclose(found.rows[0], rows, atol=1e-12)
    assert np.allclose(found.survivors[0], cuts, atol=1e-12)
    assert np.allclose(found.changes[0], changes, atol=1e-12)
    assert found.log_likelihood == pytest.approx(log_likelihood(model, corpus, given_first=True).sum())


@pytest.mark.parametrize("kind", ["left-to-right", "full"])
def test_a_long_run_that_turns_back_keeps_every_number_finite(kind: str) -> None:
    """6,000 steps as in the second phase, then as many as in the first: each share underflows on the way."""
    form = ModelForm(phases=2, phase_kind=kind)  # type: ignore[arg-type]
    model = random_model(form, ("a", "b"), (), seed=1)
    rows = np.array([[[[0.9, 0.05, 0.02, 0.03]] * 2], [[[0.05, 0.9, 0.03, 0.02]] * 2]])
    advance = np.array([[[0.9, 0.1]] * 2, [[0.0, 1.0]] * 2])
    corpus = RunPaths.of_names([("b" * 6_000 + "a" * 6_000, "success"), ("ab", "censored")])
    found = counts_under(replace(model, rows=rows, advance=advance), corpus)
    assert np.isfinite(found.log_likelihood).all()
    assert found.rows.sum() == pytest.approx(12_001)
    assert found.changes.sum() == pytest.approx(12_000)
    assert found.starts.sum() == pytest.approx(2)


def parent_of(seen: np.ndarray, cut: float) -> np.ndarray:
    """The row of a category over all phases: of what was seen, ends made rarer by the runs that were cut and went on.

    Where p is a probability to end, ``e`` steps of ``n`` ended and the prior is symmetric with mass one, it is
    ``(e + 1/k) / (n + 1 + cut)`` for each of the two ends, and the others share what is left as they were seen.
    """
    share = 1 / len(seen)
    ends = (seen[-2:] + share) / (seen.sum() + 1 + cut)
    onward = seen[:-2] + share
    return np.concatenate([onward / onward.sum() * (1 - ends.sum()), ends])


def objective_of(model: ExpandedModel, corpus: RunPaths, kappa: float) -> float:
    """Log-likelihood and priors as `fit_phases` states them, up to constants, for a form of phases alone."""
    m, n_phases = model.n_states, model.form.phases
    following = corpus.following
    total = float(log_likelihood(model, corpus).sum())
    for c in range(m):
        tally = np.bincount(following[corpus.codes == c], minlength=m + 3)
        parent = parent_of(tally[:-1], tally[-1])
        total += kappa * sum(float((parent * np.log(model.rows[z, 0, c] / parent)).sum()) for z in range(n_phases))
    full = model.form.phase_kind == "full"
    for z in range(n_phases):
        allowed = range(n_phases) if full else range(z, min(z + 2, n_phases))
        for c in range(m if model.form.by_category else 1):
            total += sum(np.log(model.advance[z, c, after]) for after in allowed) / len(allowed)
    if full:
        for c in set(corpus.codes[corpus.offsets[:-1][corpus.lengths > 0]].tolist()):
            given_first = model.start[0, :, c] / model.start[0, :, c].sum()
            total += float(np.log(given_first).sum()) / n_phases
    return total


plain_forms = st.builds(
    ModelForm,
    phases=st.integers(2, 3),
    phase_kind=st.sampled_from(["left-to-right", "full"]),
    by_category=st.booleans(),
)


@settings(max_examples=25)
@given(plain_forms, runs, st.sampled_from([0.1, 1.0, 8.0]), st.integers(0, 2**32))
def test_no_iteration_lowers_the_objective(
    form: ModelForm, paths: list[tuple[str, str]], kappa: float, seed: int
) -> None:
    corpus = corpus_of(form, paths)
    assume(any(steps or outcome != "censored" for steps, outcome in paths))
    zeros = np.zeros(corpus.n_runs, dtype=np.int64)
    model = random_model(form, corpus.states, (), seed)
    reached = []
    for _ in range(6):
        start, rows, advance = em_stack(corpus, zeros, 1, form, kappa, model, 1)
        model = replace(model, start=start[0], rows=rows[0], advance=advance[0])
        reached.append(objective_of(model, corpus, kappa))
    assert min(np.diff(reached)) >= -1e-9 * abs(reached[0])


@settings(max_examples=15)
@given(plain_forms, runs)
def test_the_objective_that_is_reported_is_the_one_that_is_stated(
    form: ModelForm, paths: list[tuple[str, str]]
) -> None:
    corpus = corpus_of(form, paths)
    assume(any(steps or outcome != "censored" for steps, outcome in paths))
    found = fit_phases(corpus, form, kappa=0.5, restarts=2)
    assert found.objective == pytest.approx(objective_of(found.model, corpus, 0.5), rel=1e-9, abs=1e-9)
    assert found.log_likelihood == pytest.approx(log_likelihood(found.model, corpus).sum(), rel=1e-9, abs=1e-9)
    assert found.objective == max(found.restarts)


def mixed_corpus(seed: int, n_runs: int = 60) -> RunPaths:
    rng = np.random.default_rng(seed)
    return RunPaths.of_names(
        [("".join(rng.choice(list("abc"), size=rng.integers(0, 12))), rng.choice(["success", "failure", "censored"]))
         for _ in range(n_runs)],
        states="abc",
        groups=[f"g{i % 2}" for i in range(n_runs)],
    )  # fmt: skip


FORMS = ["phases:3", "phases:2:full", "phases:2:shared+order2", "phases:2+group:g+dwell2+clock:0,3"]


@pytest.mark.parametrize("name", FORMS)
def test_the_fit_is_a_fixed_point_and_says_so(name: str) -> None:
    corpus, form = mixed_corpus(1), parse_model(name)
    found = fit_phases(corpus, form)
    assert found.converged
    again = fit_phases(corpus, form, warm=found.model)
    assert again.iterations <= 3
    assert again.objective == pytest.approx(found.objective, rel=2 * phases.TOLERANCE)
    assert len(found.restarts) == 3
    assert len(again.restarts) == 1


@pytest.mark.parametrize("name", FORMS)
def test_same_seed_same_bytes_and_the_order_of_runs_does_not_matter(name: str) -> None:
    corpus, form = mixed_corpus(2, n_runs=20), parse_model(name)
    found, again = (fit_phases(corpus, form, restarts=2, seed=5) for _ in range(2))
    assert [getattr(found.model, part).tobytes() for part in ("start", "rows", "advance")] == [
        getattr(again.model, part).tobytes() for part in ("start", "rows", "advance")
    ]
    other = fit_phases(corpus.take(np.random.default_rng(0).permutation(corpus.n_runs)), form, restarts=2, seed=5)
    assert np.allclose(other.model.rows, found.model.rows, atol=1e-6)
    assert other.log_likelihood == pytest.approx(found.log_likelihood)


def test_the_order_of_labels_does_not_matter() -> None:
    corpus, form = mixed_corpus(3), parse_model("phases:3")
    renamed = RunPaths.of_codes("cab", corpus.codes, corpus.offsets, corpus.outcomes)
    found, other = fit_phases(corpus, form), fit_phases(renamed, form)
    # a is called c, b is called a and c is called b.
    order = np.array([2, 0, 1])
    assert np.allclose(other.model.rows[:, :, order][..., [*order, 3, 4]], found.model.rows, atol=1e-6)
    assert np.allclose(other.model.advance[:, order], found.model.advance, atol=1e-6)


@pytest.mark.parametrize("name", FORMS)
def test_corpora_side_by_side_are_refitted_as_each_alone(name: str) -> None:
    form = parse_model(name)
    corpora = [mixed_corpus(seed, n_runs=20) for seed in (4, 5, 6)]
    warm = fit_phases(corpora[0], form, restarts=1).model
    together = replace(
        corpora[0],
        codes=np.concatenate([corpus.codes for corpus in corpora]),
        offsets=np.concatenate([[0], np.cumsum(np.concatenate([corpus.lengths for corpus in corpora]))]),
        outcomes=np.concatenate([corpus.outcomes for corpus in corpora]),
        tasks=np.concatenate([corpus.tasks for corpus in corpora]),
        groups=np.concatenate([corpus.groups for corpus in corpora]),
    )
    order = np.random.default_rng(0).permutation(60)
    shuffled, of_run = together.take(order), np.repeat(np.arange(3), 20)[order]
    with pytest.MonkeyPatch.context() as patch:
        for cells in (50, 2**19):
            patch.setattr(forward, "_BATCH_CELLS", cells)
            found = em_stack(shuffled, of_run, 3, form, 1.0, warm, 3)
            for i, corpus in enumerate(corpora):
                alone = em_stack(corpus, np.zeros(20, dtype=np.int64), 1, form, 1.0, warm, 3)
                for together_part, alone_part in zip(found, alone, strict=True):
                    assert np.allclose(together_part[i], alone_part[0], atol=1e-10)


def test_left_to_right_phases_start_in_the_first_and_go_one_on() -> None:
    found = fit_phases(mixed_corpus(7), parse_model("phases:4")).model
    assert not found.start[:, 1:].any()
    allowed = np.eye(4, dtype=bool) | np.eye(4, k=1, dtype=bool)
    assert not found.advance.transpose(1, 0, 2)[:, ~allowed].any()
    assert (found.advance[3, :, 3] == 1).all()


def test_runs_that_never_leave_a_category_know_their_rows_whatever_the_phase() -> None:
    """Runs of one step: no phase but the first is seen, and its rows are those of the category in closed form."""
    corpus = RunPaths.of_names([("a", "success")] * 3 + [("a", "failure"), ("b", "failure"), ("", "success")])
    found = fit_phases(corpus, parse_model("phases:2"), kappa=2.0)
    seen = np.zeros((2, 1, 2, 4))
    seen[0, 0, 0], seen[0, 0, 1] = [0, 0, 3, 1], [0, 0, 0, 1]
    space = space_of(corpus, parse_model("phases:2"))
    assert np.allclose(found.model.rows, shrunk_rows(space, seen, 2.0, over_phases=True))
    assert found.model.start[0, 0] == pytest.approx(np.array([4, 1, 1, 0]) / 6)


@pytest.mark.parametrize("name", ["phases:3", "phases:3:full"])
def test_a_known_truth_is_explained_as_well_as_it_explains_itself(name: str) -> None:
    """A model fitted to 2,000 runs of the truth predicts 2,000 others almost as well as the truth does."""
    rng = np.random.default_rng(11)
    form = parse_model(name)
    rows = rng.dirichlet(np.full(5, 0.5), (3, 1, 3)) * [1, 1, 1, 0, 0]
    rows[..., 3:] = rng.dirichlet([1, 1], (3, 1, 3))
    rows[..., :3] *= 0.9 / rows[..., :3].sum(axis=-1, keepdims=True)
    rows[..., 3:] *= 0.1
    stay = np.array([[0.85, 0.15, 0], [0, 0.85, 0.15], [0, 0, 1]])
    if form.phase_kind == "full":
        stay[2] = [0.1, 0, 0.9]
    start = np.zeros((1, 3, 5))
    start[0, 0, :3] = 1 / 3
    truth = ExpandedModel(
        form=form,
        states=("a", "b", "c"),
        start=start,
        rows=rows,
        advance=np.repeat(stay[:, np.newaxis], 3, axis=1),
    )
    corpus, others = drawn_runs(truth, 2_000, seed=1), drawn_runs(truth, 2_000, seed=2)
    found = fit_phases(corpus, form, restarts=2)
    assert found.converged
    # There are about 45 free probabilities: the fit gains half of that in expectation on its own runs, and loses as
    # much on others; the standard deviation of either is about 5.
    gain = found.log_likelihood - log_likelihood(truth, corpus).sum()
    loss = log_likelihood(truth, others).sum() - log_likelihood(found.model, others).sum()
    two_phases = fit_phases(corpus, ModelForm(phases=2, phase_kind=form.phase_kind), restarts=1)
    assert 0 < gain < 45
    assert loss < 45
    assert two_phases.log_likelihood < found.log_likelihood - 45


def ended_within(model: ExpandedModel, steps: int) -> np.ndarray:
    """The probabilities of success and of failure within so many steps, for a form with phases and a clock alone."""
    n_phases, m = model.form.phases, model.n_states
    weights, ended = model.start[0, :, :m], model.start[0, :, m:].sum(axis=0)
    for earlier in range(steps):
        joint = weights[..., np.newaxis] * model.rows[:, model.space.bin_of(np.array([earlier]))[0]]
        ended = ended + joint[..., m:].sum(axis=(0, 1))
        weights = np.zeros((n_phases, m))
        for z in range(n_phases):
            weights += np.einsum("cx,cy->yx", joint[z, :, :m], model.advance[z])
    return ended


def test_what_a_cut_run_is_known_to_have_done_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a known truth are cut after four steps: the fit ends as many within these as the truth and the runs do.

    If nothing were known of what followed the cuts, all that is seen after fourth steps would be ends, and half as many
    again would end. The shares of ends, about .1, have standard errors of .009 over 1,000 runs.
    """
    rows = np.array(
        [[[[0.7, 0.28, 0.01, 0.01], [0.3, 0.68, 0.01, 0.01]]], [[[0.35, 0.5, 0.1, 0.05], [0.3, 0.55, 0.05, 0.1]]]]
    )
    stay = np.array([[0.8, 0.2], [0.0, 1.0]])
    start = np.zeros((1, 2, 4))
    start[0, 0, 0] = 1
    truth = ExpandedModel(
        form=parse_model("phases:2"),
        states=("a", "b"),
        start=start,
        rows=rows,
        advance=np.repeat(stay[:, np.newaxis], 2, axis=1),
    )
    corpus = drawn_runs(truth, 1_000, seed=3, longest=4)
    observed = np.array([(corpus.outcomes == outcome).mean() for outcome in (0, 1)])
    for name in ("phases:2", "phases:2:full", "phases:2+clock:0,2"):
        found = ended_within(fit_phases(corpus, parse_model(name), restarts=1).model, 4)
        assert found == pytest.approx(observed, abs=0.003), name
        assert found == pytest.approx(ended_within(truth, 4), abs=0.03), name

    def blind_kernel(form: ModelForm, batch: ObservedBatch, rows: np.ndarray, *others: Any) -> LeftToRight | Full:
        step = kernel(form, batch, rows, *others)
        assert isinstance(step, LeftToRight)
        going_on = rows[0, :, 0, :, :2].sum(axis=-1)[:, batch.leaving[batch.cut]]
        step.stay[:, batch.cut] /= going_on
        step.move[:, batch.cut] /= going_on[:-1]
        return step

    def blind_counts(*arguments: Any) -> PhaseCounts:
        counts = expected_counts(*arguments)
        return replace(counts, survivors=np.zeros_like(counts.survivors))

    monkeypatch.setattr(expectation, "kernel", blind_kernel)
    monkeypatch.setattr(phases, "expected_counts", blind_counts)
    blind = fit_phases(corpus, truth.form, restarts=1).model
    assert (ended_within(blind, 4) > observed + 0.03).all()


@settings(max_examples=25)
@given(plain_forms, runs, st.sampled_from([0.1, 1.0, 8.0]), st.integers(0, 2**32))
def test_an_iteration_finds_the_rows_where_no_derivative_points_anywhere(
    form: ModelForm, paths: list[tuple[str, str]], kappa: float, seed: int
) -> None:
    """Of the expected log-likelihood, summed path of phases by path of phases, and the prior; both are concave."""
    corpus = corpus_of(form, paths)
    assume(any(steps or outcome != "censored" for steps, outcome in paths))
    model = random_model(form, corpus.states, (), seed)
    _, seen, cuts, _ = summed_counts(model, corpus)
    found = em_stack(corpus, np.zeros(corpus.n_runs, dtype=np.int64), 1, form, kappa, model, 1)[1][0]
    pooled, cut = seen.sum(axis=(0, 1)), cuts.sum(axis=(0, 1))
    for z, c in np.ndindex(form.phases, model.n_states):
        parent, row = parent_of(pooled[c], cut[c]), found[z, 0, c]
        slope = (seen[z, 0, c] + kappa * parent) / row
        slope[:-2] += cuts[z, 0, c] / row[:-2].sum()
        assert row.sum() == pytest.approx(1)
        assert slope == pytest.approx(np.full(len(row), seen[z, 0, c].sum() + cuts[z, 0, c] + kappa), rel=1e-8)


def test_what_cannot_be_fitted_is_refused() -> None:
    corpus = RunPaths.of_names([("ab", "success"), ("a", "failure")])
    form = parse_model("phases:2")
    warm = fit_phases(corpus, form).model
    of_run = np.array([0, 1])
    with pytest.raises(UsageError, match="no hidden phases"):
        fit_phases(corpus, ModelForm())
    with pytest.raises(UsageError, match="start"):
        fit_phases(corpus, form, restarts=0)
    with pytest.raises(UsageError, match="kappa"):
        fit_phases(corpus, form, kappa=0)
    with pytest.raises(UsageError, match="not chosen"):
        fit_phases(corpus, parse_model("phases:2+clock"))
    with pytest.raises(UsageError, match="iteration"):
        em_stack(corpus, of_run, 2, form, 1.0, warm, 0)
    with pytest.raises(NothingToCheckError, match="known start"):
        fit_phases(RunPaths.of_names([("", "censored")], states="a"), form)
    with pytest.raises(NothingToCheckError, match="corpus 2 of 3"):
        em_stack(corpus, of_run, 3, form, 1.0, warm, 1)
    with pytest.raises(ModelError, match="other names"):
        fit_phases(corpus, parse_model("phases:3"), warm=warm)
    impossible = np.array(warm.rows)
    impossible[:, 0, 0] = [1, 0, 0, 0]
    with pytest.raises(ModelError, match="impossible"):
        fit_phases(corpus, form, warm=replace(warm, rows=impossible))
