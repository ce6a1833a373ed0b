"""Names of forms, contexts of steps, and whole runs, against their definitions step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import ModelError, UsageError
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths

clocks = st.one_of(
    st.sampled_from(["chosen", "log", "quantiles", "steps", "unrolled"]),
    st.sets(st.integers(1, 20), max_size=4).map(lambda bins: (0, *sorted(bins))),
)
forms = st.builds(
    ModelForm,
    previous=st.booleans(),
    dwell=st.integers(1, 4),
    clock=clocks,
    phases=st.integers(2, 4),
    phase_kind=st.sampled_from(["left-to-right", "full"]),
    by_category=st.booleans(),
    classes=st.integers(1, 3),
    group=st.none() | st.just("model"),
)
runs = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), max_size=9), st.sampled_from(["success", "failure", "censored"])),
    max_size=6,
)


@given(forms)
def test_the_name_of_a_form_says_all_of_it(form: ModelForm) -> None:
    assert parse_model(str(form)) == form
    assert parse_model("+".join(reversed(str(form).split("+")))) == form


@pytest.mark.parametrize(
    "text",
    [
        *["", "order3", "dwell0", "dwell", "clock:", "clock:1,2", "clock:0,2,2", "clock:0,x", "order2++clock"],
        *["phases:0", "phases:4:sideways", "phases:" + "9" * 30, "group:", "order2+order2", "first-order+clock"],
    ],
)
def test_a_name_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_model(text)


@given(runs, st.booleans(), st.integers(1, 4), st.sets(st.integers(1, 9), max_size=3), st.booleans())
def test_contexts_are_what_they_say(
    paths: list[tuple[list[str], str]], previous: bool, dwell: int, later: set[int], grouped: bool
) -> None:
    bins = (0, *sorted(later))
    groups = [f"g{i % 2}" for i in range(len(paths))] if grouped else None
    corpus = RunPaths.of_names(paths, groups=groups, states="abc")
    form = ModelForm(previous=previous, dwell=dwell, clock=bins, group="g" if grouped else None)
    space = ContextSpace(form=form, n_states=3, n_groups=corpus.n_groups)
    found = space.of_paths(corpus.codes, corpus.offsets, corpus.groups)
    expected = []
    for number, (path, _) in enumerate(paths):
        stay = 0
        for i in range(len(path)):
            stay = stay + 1 if i and path[i] == path[i - 1] else 0
            position = 3 if i == 0 else "abc".index(path[i - 1])
            group = corpus.group_names.index(f"g{number % 2}") if grouped else 0
            in_bin = max(b for b, start in enumerate(bins) if start <= i)
            expected.append((group, in_bin, min(stay, dwell - 1), position if previous else 0))
    assert np.array_equal(np.column_stack(space.parts(found)), np.array(expected, dtype=np.int64).reshape(-1, 4))

    inside = np.flatnonzero(corpus.following < 3)
    codes = corpus.codes.astype(np.int64)
    place = np.arange(corpus.n_steps) - np.repeat(corpus.offsets[:-1], corpus.lengths)
    after = space.next_context(found[inside], codes[inside], codes[inside + 1], place[inside] + 1)
    assert np.array_equal(after, found[inside + 1])

    coarse = space.coarser()
    while coarse is not None:
        of_coarse = coarse.of_paths(corpus.codes, corpus.offsets, corpus.groups)
        assert np.array_equal(space.coarse_codes(coarse)[found], of_coarse)
        space, found, coarse = coarse, of_coarse, coarse.coarser()
    assert space.size == 1


@given(runs, st.data())
def test_runs_are_taken_whole(paths: list[tuple[list[str], str]], data: st.DataObject) -> None:
    tasks = [data.draw(st.sampled_from(["x", "y", None])) for _ in paths]
    corpus = RunPaths.of_names(paths, tasks=tasks)
    chosen = data.draw(st.lists(st.integers(0, len(paths) - 1), max_size=8)) if paths else []
    taken = corpus.take(np.array(chosen, dtype=np.int64))
    again = RunPaths.of_names([paths[i] for i in chosen], states=corpus.states)
    assert np.array_equal(taken.codes, again.codes)
    assert np.array_equal(taken.offsets, again.offsets)
    assert np.array_equal(taken.outcomes, again.outcomes)
    assert [corpus.task_names[t] if t >= 0 else None for t in taken.tasks] == [tasks[i] for i in chosen]
    assert len(np.unique(corpus.blocks)) == len({t for t in tasks if t}) + tasks.count(None)


def test_arrays_that_are_no_runs_are_refused() -> None:
    corpus = RunPaths.of_names([(["a", "b"], "success")])
    for offsets in ([0, 1], [1, 2], [0, 2, 2]):
        with pytest.raises(ModelError):
            RunPaths.of_codes(["a", "b"], corpus.codes, np.array(offsets), corpus.outcomes)
    with pytest.raises(ModelError, match="codes"):
        RunPaths(
            states=("a",),
            codes=np.array([1], dtype=np.int32),
            offsets=np.array([0, 1]),
            outcomes=np.array([0], dtype=np.int8),
            tasks=np.array([-1]),
            groups=np.array([0]),
        )
