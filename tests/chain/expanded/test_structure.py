"""The chain of an expanded model says what the model says, by direct enumeration of runs and by recursion over time."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.chain.expanded.random_models import FORMS, random_model

from tracebridge.chain import MarkovChain
from tracebridge.chain.counts import TransitionCounts
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.chain.fit import fit_counts
from tracebridge.chain.graph import reachable
from tracebridge.checking import check
from tracebridge.closedform import expected_visits, long_run_reliability, mean_time_to_absorption, reliability_curve
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.errors import FitError, ModelError
from tracebridge.states.model_form import parse_model

# ---------------------------------------------------------------- the model's definition, one step at a time


def bin_of(bins: tuple[int, ...], earlier: int) -> int:
    return max(i for i, first in enumerate(bins) if first <= earlier)


class Walker:
    """Mass over (class, group, previous, stay, category, phase) after t steps, straight from the definition."""

    def __init__(self, model: ExpandedModel) -> None:
        self.model, self.m = model, model.n_states
        self.rows = [model.rows_of_class(k) for k in range(model.form.classes)]

    def first(self) -> tuple[dict[tuple[int, ...], float], np.ndarray]:
        mass: dict[tuple[int, ...], float] = {}
        ended = np.zeros(2)
        for (b, z, x), p in np.ndenumerate(self.model.start):
            if x >= self.m:
                ended[x - self.m] += p
            elif p > 0:
                for k, w in enumerate(self.model.class_weights):
                    mass[k, b, self.m, 0, x, z] = p * w
        return mass, ended

    def step(self, mass: dict[tuple[int, ...], float], t: int) -> tuple[dict[tuple[int, ...], float], np.ndarray]:
        form = self.model.form
        _, n_bins, n_levels, n_previous = self.model.space.shape
        following: dict[tuple[int, ...], float] = {}
        ended = np.zeros(2)
        for (k, b, previous, stay, c, z), p in mass.items():
            bin_, level = bin_of(form.bins, t), min(stay, form.dwell - 1)
            remembered = previous if form.previous else 0
            g = ((b * n_bins + bin_) * n_levels + level) * n_previous + remembered
            row = self.rows[k][z, g, c]
            ended += p * row[self.m :]
            for x, next_z in product(range(self.m), range(form.phases)):
                q = p * row[x] * self.model.advance[z, c, next_z]
                if q > 0:
                    key = (k, b, c, stay + 1 if x == c else 0, x, next_z)
                    following[key] = following.get(key, 0.0) + q
        return following, ended

    def path(self, path: tuple[int, ...], end: int) -> float:
        """The probability of a run that visits exactly these categories and ends so."""
        mass, ended = self.first()
        if not path:
            return float(ended[end])
        for t, c in enumerate(path):
            mass = {key: p for key, p in mass.items() if key[4] == c}
            mass, ended = self.step(mass, t)
        return float(ended[end])


def path_in_chain(chain: MarkovChain, path: tuple[str, ...], end: str) -> float:
    mass = chain.initial
    for name in path:
        mass = (mass * chain.label(name)) @ chain.transitions
    return float((mass * chain.label(end)).sum())


@pytest.mark.parametrize("name", FORMS)
def test_every_short_run_is_as_likely_in_the_chain_as_in_the_model(name: str) -> None:
    model = random_model(name, seed=1)
    chain = ExpandedStructure.of_model(model).chain(model)
    walker = Walker(model)
    for length in range(5):
        for path in product(range(3), repeat=length):
            for end, label in enumerate(("success", "failure")):
                names = tuple(model.states[c] for c in path)
                assert path_in_chain(chain, names, label) == pytest.approx(walker.path(path, end), rel=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_reliability_within_a_budget_is_that_of_the_recursion_over_time(name: str) -> None:
    model = random_model(name, m=4, seed=2)
    chain = ExpandedStructure.of_model(model).chain(model)
    walker = Walker(model)
    mass, ended = walker.first()
    curve = [ended[0]]
    for t in range(12):
        mass, more = walker.step(mass, t)
        curve.append(curve[-1] + more[0])
    assert reliability_curve(chain, 12) == pytest.approx(np.array(curve), rel=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_states_are_those_that_can_be_reached_in_the_order_of_their_variables(name: str) -> None:
    model = random_model(name, seed=3)
    structure = ExpandedStructure.of_model(model)
    chain = structure.chain(model, {})
    assert structure.n_transitions == chain.transitions.nnz
    assert reachable(chain.transitions, chain.initial > 0).all()
    assert chain.states[-2:] == ("success", "failure")
    remembered = list(zip(*structure.variables.values(), strict=True))
    assert remembered == sorted(set(remembered))
    for c, category in enumerate(model.states):
        assert np.array_equal(chain.label(category), structure.variables["category"] == c)
        assert np.array_equal(chain.rewards[category].state, chain.label(category))
    assert np.array_equal(chain.rewards["steps"].state, ~chain.label("absorbed"))


def test_first_order_is_the_plain_chain() -> None:
    paths = [(["b", "a", "b"], "success"), (["a"], "failure"), (["c", "c", "a"], "success"), ([], "failure")]
    plain = fit_counts(TransitionCounts.from_paths(paths)).chain
    matrix = plain.transitions.toarray()
    model = ExpandedModel(
        form=parse_model("first-order"),
        states=plain.states[:-2],
        start=plain.initial[None, None, :],
        rows=matrix[None, None, :-2],
        advance=np.ones((1, 3, 1)),
    )
    chain = ExpandedStructure.of_model(model).chain(model)
    assert chain.states == plain.states
    assert np.array_equal(chain.transitions.toarray(), matrix)
    assert np.array_equal(chain.initial, plain.initial)
    assert list(chain.labels) == list(plain.labels)
    assert all(np.array_equal(chain.labels[name], mask) for name, mask in plain.labels.items())
    assert list(chain.rewards) == list(plain.rewards)
    assert np.array_equal(chain.rewards["steps"].state, plain.rewards["steps"].state)
    assert not chain.variables


def test_words_are_labels_and_rewards_as_in_a_plain_fit() -> None:
    model = random_model("order2", seed=4)
    chain = ExpandedStructure.of_model(model).chain(model, {"tool": ["a", "c"], "a": ["a"], "none": []})
    assert np.array_equal(chain.label("tool"), chain.label("a") | chain.label("c"))
    assert list(chain.labels) == ["success", "failure", "absorbed", "a", "b", "c", "tool", "none"]
    assert list(chain.rewards) == ["steps", "a", "b", "c", "tool"]
    with pytest.raises(FitError, match="'success' cannot be a label"):
        ExpandedStructure.of_model(model).chain(model, {"success": ["a"]})
    with pytest.raises(FitError, match="'a' cannot be a label of \\['b'\\]"):
        ExpandedStructure.of_model(model).chain(model, {"a": ["b"]})


def test_one_class_whose_runs_end_as_they_do_changes_nothing() -> None:
    """And two classes without tilts are the model without classes, whatever their weights."""
    model = random_model("order2+phases:2", seed=5)
    classes = replace(
        model,
        form=replace(model.form, classes=2),
        class_weights=np.array([0.3, 0.7]),
        class_tilts=np.zeros(2),
    )
    plain, both = (ExpandedStructure.of_model(each).chain(each) for each in (model, classes))
    assert both.n_states == 2 * plain.n_states - 2
    assert reliability_curve(both, 9) == pytest.approx(reliability_curve(plain, 9), rel=1e-13)
    assert mean_time_to_absorption(both).overall == pytest.approx(mean_time_to_absorption(plain).overall, rel=1e-13)


def test_a_tilt_moves_the_odds_of_success_and_not_how_long_runs_take() -> None:
    model = random_model("classes:2", seed=6)
    tilted = replace(model, class_weights=np.array([1.0, 0.0]), class_tilts=np.array([np.log(3.0), 0.0]))
    chain = ExpandedStructure.of_model(tilted).chain(tilted)
    i = int(np.flatnonzero((chain.variables["category"] == 1) & (chain.variables["task_class"] == 0))[0])
    row = chain.transitions.toarray()[i]
    success, failure = model.rows[0, 0, 1, -2:]
    assert row[-2] / row[-1] == pytest.approx(3 * success / failure)
    assert row[-2] + row[-1] == pytest.approx(success + failure)
    extreme = replace(model, class_tilts=np.array([2000.0, -2000.0]))
    sure = ExpandedStructure.of_model(extreme).chain(extreme)
    weights = model.class_weights * (1 - model.start[..., -2:].sum())
    assert long_run_reliability(sure) == pytest.approx(weights[0] + model.start[..., -2].sum())


def test_one_step_is_one_step_and_earns_one() -> None:
    """Bounds, next and rewards of properties over categories, against sums over the recursion."""
    model = random_model("order2+dwell2+clock:0,1,4", seed=7)
    chain = ExpandedStructure.of_model(model).chain(model, {})
    walker = Walker(model)
    mass, _ = walker.first()
    second, _ = walker.step(mass, 0)
    next_is_b = sum(p for key, p in second.items() if key[4] == 1)
    visits = steps = 0.0
    for t in range(200):
        visits += sum(p for key, p in mass.items() if key[4] == 1)
        steps += sum(mass.values())
        mass = _folded(walker.step(mass, t)[0])
    found = check(
        chain,
        'P=? [ X "b" ]; R{"b"}=? [ C ]; R{"steps"}=? [ F "absorbed" ]; P=? [ F<=0 step=0 ];',
        engines=["closed-form"],
    )
    values = [result.value.value for result in found]  # type: ignore[union-attr]
    assert values[:3] == pytest.approx([next_is_b, visits, steps], rel=1e-9)
    assert values[3] == pytest.approx(sum(walker.first()[0].values()))
    assert expected_visits(chain).sum() == pytest.approx(steps, rel=1e-9)


def _folded(mass: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    """Stays beyond the last level are one, so that the recursion stays small."""
    folded: dict[tuple[int, ...], float] = {}
    for key, p in mass.items():
        short = (*key[:3], min(key[3], 1), *key[4:])
        folded[short] = folded.get(short, 0.0) + p
    return folded


@pytest.mark.parametrize("name", ["order2", "dwell2+clock:0,3+phases:2:full-shared+classes:3", "phases:3"])
def test_many_draws_are_filled_in_at_once(name: str) -> None:
    models = [random_model(name, seed=seed) for seed in (8, 9, 10)]
    structure = ExpandedStructure.of_model(models[0])

    def stacked(part: str) -> np.ndarray:
        return np.stack([getattr(model, part) for model in models], axis=-1)

    entries = structure.entries(stacked("rows"), stacked("advance"), stacked("class_tilts"))
    initial = structure.initial(stacked("start"), stacked("class_weights"))
    chain = structure.chain(models[0])
    assert entries.shape == (chain.transitions.nnz, 3)
    stack = ChainStack(chain, entries, initial)
    for draw, model in enumerate(models):
        alone = structure.chain(model)
        assert np.allclose(stack.chain_at(draw).transitions.toarray(), alone.transitions.toarray(), rtol=1e-14)
        assert initial[:, draw] == pytest.approx(alone.initial, rel=1e-14)


def test_names_say_what_is_remembered() -> None:
    model = random_model("group:model+order2+clock:0,1+phases:2+classes:2", seed=11)
    names = ExpandedStructure.of_model(model).chain(model).states
    assert "a [first, step 0, phase 0, class 1, group g0]" in names
    assert "b [previous a, step 1+, phase 1, class 0, group g1]" in names
    dwelling = random_model("dwell2", seed=11)
    assert ExpandedStructure.of_model(dwelling).chain(dwelling).states == (
        "a [stay 0]", "a [stay 1+]", "b [stay 0]", "b [stay 1+]", "c [stay 0]", "c [stay 1+]", "success", "failure",
    )  # fmt: skip


@pytest.mark.parametrize(
    "categories",
    [("a", "a [phase 0]", "b"), ("a", "b]", "c, phase 1"), ("a", 'a"', "a [phase 1]~")],
)
def test_names_are_unique_and_no_labels(categories: tuple[str, ...]) -> None:
    model = replace(random_model("phases:2", seed=12), states=categories)
    chain = ExpandedStructure.of_model(model).chain(model)
    assert len(set(chain.states)) == chain.n_states
    assert not set(chain.states[:-2]) & chain.labels.keys()


def test_ambiguous_names_are_quoted() -> None:
    categories = ("x", "x [previous y", "y [previous z", "z")
    model = replace(random_model("order2", m=4, seed=12), states=categories)
    names = ExpandedStructure.of_model(model).chain(model).states
    assert '"x [previous y" [previous "z"]' in names
    assert '"x" [previous "y [previous z"]' in names


def test_rows_that_sum_to_one_only_nearly_are_divided_by_their_sums() -> None:
    model = random_model("order2+phases:2", seed=13)
    off = replace(model, rows=model.rows * (1 + 5e-10), start=model.start * (1 - 5e-10))
    assert ExpandedStructure.of_model(off).chain(off).transitions.data == pytest.approx(
        ExpandedStructure.of_model(model).chain(model).transitions.data, rel=1e-13
    )


def test_a_probability_of_zero_is_no_transition() -> None:
    model = random_model("order2", seed=14)
    rows = np.array(model.rows)
    rows[0, :, 1, 2] = 0
    rows /= rows.sum(axis=-1, keepdims=True)
    structure = ExpandedStructure.of_model(model)
    chain = structure.chain(replace(model, rows=rows))
    b, c = chain.label("b"), chain.label("c")
    assert not chain.transitions[b][:, c].nnz
    assert structure.n_transitions == chain.transitions.nnz + int(b.sum())


def test_what_does_not_fit_is_refused() -> None:
    model = random_model("order2", seed=15)
    structure = ExpandedStructure.of_model(model)
    with pytest.raises(ModelError, match=r"a model of dwell3 does not fit the structure of order2"):
        structure.chain(random_model("dwell3"))
    with pytest.raises(ModelError, match="have shape"):
        ExpandedStructure.of(model.form, model.states, (), np.ones((2, 1, 5), dtype=bool))
    with pytest.raises(ModelError, match="no run starts in a category"):
        ExpandedStructure.of(model.form, model.states, (), np.zeros((1, 1, 5), dtype=bool))
    with pytest.raises(FitError, match="cannot be called 'failure'"):
        ExpandedStructure.of(model.form, ("a", "b", "failure"), (), np.ones((1, 1, 5), dtype=bool))
    only_a = model.start > 0
    only_a[0, 0, 1:3] = False
    with pytest.raises(ModelError, match="where the structure has no start"):
        ExpandedStructure.of(model.form, model.states, (), only_a).initial(model.start, model.class_weights)


@pytest.mark.parametrize(
    ("name", "m", "hint"),
    [
        ("clock:0,5000000", 3, "the clock, whose last bin starts at 5000000"),
        ("order2+dwell4", 2_000, "the previous category"),
        ("order2", 50_000, "the previous category"),
        ("phases:32:full", 500, "the 32 phases"),
    ],
)
def test_too_many_states_are_refused_before_they_are_made(name: str, m: int, hint: str) -> None:
    form = parse_model(name)
    mask = np.ones((1, form.phases, m + 2), dtype=bool)
    with pytest.raises(FitError, match="more than 100000 states") as raised:
        ExpandedStructure.of(form, [f"c{i:05}" for i in range(m)], (), mask)
    assert hint in (raised.value.problems[0].hint or "")


def test_a_start_in_one_state_of_a_clock_has_no_other_first_states() -> None:
    model = random_model("clock:0,2", seed=16)
    start = np.zeros((1, 1, 5))
    start[0, 0, 1] = 1
    chain = ExpandedStructure.of_model(replace(model, start=start)).chain(replace(model, start=start))
    assert chain.states == (
        "a [step 1]", "a [step 2+]", "b [step 0]", "b [step 1]", "b [step 2+]", "c [step 1]", "c [step 2+]",
        "success", "failure",
    )  # fmt: skip
