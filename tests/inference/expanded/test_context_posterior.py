import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chain.expanded.corpora import as_paths, forms, runs

from tracebridge.chain.expanded.estimation import space_of
from tracebridge.errors import UsageError
from tracebridge.inference.expanded.context_posterior import ContextPosterior
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths

DRAWS = 4_000


def posterior(name: str, counts, starts=None, kappa: float = 1.0) -> ContextPosterior:
    """Of counts by context, category and what followed."""
    counts = np.asarray(counts)
    m = counts.shape[-2]
    starts = np.eye(m + 2, dtype=np.int64)[None, 0] if starts is None else np.asarray(starts)
    space = ContextSpace(form=parse_model(name), n_states=m)
    none = np.zeros(counts.shape[:2], dtype=np.int64)
    return ContextPosterior(space=space, kappa=kappa, counts=counts, survivors=none, starts=starts)


def drawn(source: ContextPosterior, number: int = DRAWS, seed: int = 0):
    """Rows with the draws in front, shape (number, C, m, m + 2), and starts (number, G, m + 2)."""
    n = source.at_a_time
    blocks = [source.block(key, min(n, number - key * n), seed) for key in range(-(-number // n))]
    rows = np.concatenate([block.rows for block in blocks], axis=-1)
    starts = np.concatenate([block.start for block in blocks], axis=-1)
    return np.moveaxis(rows[0], -1, 0), np.moveaxis(starts[:, 0], -1, 0)


def assert_dirichlet(values, concentrations):
    """Mean and variance of draws, shape (draws, k), within five Monte-Carlo standard errors of the law's."""
    total = concentrations.sum()
    mean = concentrations / total
    variance = mean * (1 - mean) / (total + 1)
    assert np.all(np.abs(values.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(values)))
    spread = ((values - mean) ** 2 - variance).std(axis=0) / np.sqrt(len(values))
    assert np.all(np.abs(((values - mean) ** 2).mean(axis=0) - variance) < 5 * spread)


def test_first_order_rows_and_starts_are_dirichlet():
    counts = [[[5, 0, 2, 1], [1, 30, 0, 4]]]
    rows, starts = drawn(posterior("first-order", counts, [[3, 9, 0, 2]]))
    for i in range(2):
        assert_dirichlet(rows[:, 0, i], np.array(counts[0][i]) + 1 / 4)
    assert_dirichlet(starts[:, 0, [0, 1, 3]], np.array([3, 9, 2]))
    assert not starts[:, 0, 2].any()


def test_a_context_that_was_never_seen_behaves_as_its_category():
    counts = np.array([[[8, 4, 6]], [[0, 0, 0]]])
    rows, _ = drawn(posterior("clock:0,1", counts))
    # with the seen bin the category has the same counts, and its row is Dirichlet
    assert_dirichlet(rows[:, 1, 0], np.array([8, 4, 6]) + 1 / 3)


def test_no_draw_is_close_to_an_endless_stay():
    """Stays of three steps were never seen: a random share of mass one would often be all but certain there."""
    paths = RunPaths.of_names([(("a", "b"), "success"), (("a", "b", "b", "a"), "failure")] * 10)
    rows, _ = drawn(ContextPosterior.of_runs(space_of(paths, parse_model("order2+dwell3")), paths, 1.0))
    assert rows[:, :, [0, 1], [0, 1]].max() < 0.99


def test_rows_of_a_rich_context_forget_the_category():
    counts = np.array([[[400, 300, 300]], [[10, 1_000, 0]]])
    rows, _ = drawn(posterior("clock:0,1", counts, kappa=0.01))
    mean = counts[0, 0] / 1_000
    assert rows[:, 0, 0].mean(axis=0) == pytest.approx(mean, abs=5 * 0.5 / np.sqrt(1_000 * DRAWS) + 1e-4)
    assert rows[:, 0, 0].var(axis=0) == pytest.approx(mean * (1 - mean) / 1_001, rel=0.1)


def test_with_a_large_kappa_all_contexts_lead_to_the_same_categories():
    counts = np.array([[[4, 2, 3, 0], [0, 1, 1, 1]], [[1, 5, 0, 1], [1, 0, 0, 2]], [[0, 3, 0, 0], [0, 0, 0, 0]]])
    rows, _ = drawn(posterior("clock:0,1,2", counts, kappa=1e9))
    onward = rows[..., :2] / rows[..., :2].sum(axis=-1, keepdims=True)
    assert np.abs(onward - onward[:, :1]).max() < 1e-6
    for i in range(2):
        assert_dirichlet(onward[:, 1, i], counts.sum(axis=0)[i, :2] + 1 / 4)


@pytest.mark.parametrize("kappa", [8.0, 64.0])
def test_shared_counts_vary_together(kappa):
    """Many contexts, each seen twice, that the prior draws together: their mean row varies as the share of all counts.

    If coarse and fine counts varied independently, its variance would be ``kappa^2 / (2 + kappa)^2`` of that, and the
    noise of Dirichlet rows: 0.72 of it in all with kappa 8.
    """
    n = 200
    counts = np.zeros((n, 2, 4), dtype=np.int64)  # what follows category 0: category 0 or 1
    counts[: n // 4, 0, 0] = 2
    counts[n // 4 :, 0, 1] = 2
    rows, _ = drawn(posterior(f"clock:{','.join(map(str, range(n)))}", counts, kappa=kappa), number=2_000)
    share, total = 0.25, 2 * n
    onward = rows[:, :, 0, 0] / rows[:, :, 0, :2].sum(axis=-1)
    assert onward.mean(axis=1).var() == pytest.approx(share * (1 - share) / total, rel=0.15)  # Monte-Carlo error 3 %


@settings(max_examples=25)
@given(drawn_runs=runs, form=forms, kappa=st.sampled_from([0.01, 1.0, 64.0]))
def test_draws_are_distributions_without_a_zero(drawn_runs, form, kappa):
    paths = as_paths(drawn_runs)
    source = ContextPosterior.of_runs(space_of(paths, form), paths, kappa)
    block = source.block(0, 3, 1)
    assert block.draws == 3
    assert block.rows.min() > 0
    assert block.rows.sum(axis=3) == pytest.approx(np.ones((*block.rows.shape[:3], 3)), abs=1e-12)
    if source.starts.any():
        assert block.start.sum(axis=(0, 1, 2)) == pytest.approx(np.ones(3))
    assert np.array_equal(source.block(0, 2, 1).rows, block.rows[..., :2])
    assert not np.array_equal(source.block(1, 3, 1).rows, block.rows)


def test_hidden_parts_are_refused():
    paths = RunPaths.of_names([(("a",), "success")])
    for name in ("phases:2", "classes:2"):
        with pytest.raises(UsageError, match="hidden parts"):
            ContextPosterior.of_runs(ContextSpace(form=parse_model(name), n_states=1), paths, 1.0)
