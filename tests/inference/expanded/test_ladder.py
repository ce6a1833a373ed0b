"""The ladder on runs whose form is known, and what stands behind the numbers that follow."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.inference.expanded.ladder import LEAST_BLOCKS, MOST_CERTIFICATES, SCOPES, Ladder, climb
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.inference.expanded.standing import standings
from tracebridge.report.model_certificate import ladder_lines, ladder_markdown, model_certificate_lines
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths

RUNGS = (
    ("first-order", ("timing", "path")),
    ("clock:0,3", ("timing",)),
    ("order2", ("path",)),
)


def clockwork() -> ExpandedModel:
    """Runs that cannot end before their fourth step, and nearly all end soon after it."""
    rows = np.array([[[[0.4, 0.6, 0, 0], [0.6, 0.4, 0, 0]], [[0.2, 0.1, 0.5, 0.2], [0.1, 0.3, 0.2, 0.4]]]])
    return ExpandedModel(
        form=parse_model("clock:0,3"),
        states=("act", "think"),
        start=np.array([[[0.7, 0.3, 0, 0]]]),
        rows=rows,
        advance=np.ones((1, 2, 1)),
    )


def drawn(model: ExpandedModel, runs: int, seed: int) -> RunPaths:
    return ModelSimulation(model).corpora(runs, [np.random.SeedSequence(seed)])[0]


@cache
def climbed() -> Ladder:
    return climb(drawn(clockwork(), 400, 1), rungs=RUNGS, replicates=39, seed=3)


def test_the_clock_is_found() -> None:
    ladder = climbed()
    assert parse_model(ladder.form).clock == (0, 3)
    assert ladder.passed["timing"] == "clock:0,3"
    assert standings(ladder)["timing"].verdict in ("accept", "inconclusive")
    first = ladder.rungs[0]
    assert not first.kept
    assert "clock:0,3 foretells better" in first.remark


def test_what_the_path_needs_is_refused_by_its_own_certificate() -> None:
    """Neither a first-order chain nor one of second order knows the time, which the path depends on here."""
    ladder = climbed()
    assert "path" not in ladder.passed
    tried = [test for test in ladder.tests if test.scope == "path"]
    assert tried
    assert all(test.verdict == "reject" for test in tried)


def test_what_only_the_whole_corpus_shows_speaks_against_a_form() -> None:
    """A quarter of these runs is too few to see that what follows a step changes after the third."""
    rows = np.array([[[[0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.1, 0.2]], [[0.2, 0.1, 0.5, 0.2], [0.1, 0.3, 0.2, 0.4]]]])
    ladder = climb(drawn(replace(clockwork(), rows=rows), 300, 1), rungs=RUNGS[:1], replicates=39, seed=2)
    for scope in SCOPES:
        found = {test.part: test.verdict for test in ladder.tests if test.scope == scope}
        assert found == {"second": "inconclusive", "all": "reject"}
        assert scope not in ladder.passed
        standing = standings(ladder)[scope]
        assert standing.verdict == "reject"
        assert all(reason.startswith("all runs: ") for reason in standing.reasons)
    whole = next(test.certificate for test in ladder.tests if test.part == "all")
    assert not whole.held_out
    assert sum(whole.runs.values()) == sum(ladder.runs)


def test_parts_share_no_run_and_no_task() -> None:
    ladder = climbed()
    assert sum(ladder.runs) == 400
    assert ladder.blocks == (200, 100, 100)
    for scope in SCOPES:
        parts = [test.part for test in ladder.tests if test.scope == scope]
        assert parts.count("all") <= parts.count("second") <= MOST_CERTIFICATES
        assert parts.count("third") <= 1


def test_the_same_runs_and_seed_give_the_same_ladder() -> None:
    runs = drawn(clockwork(), 60, 1)
    first, second = (climb(runs, rungs=RUNGS[:2], replicates=39, seed=2).to_dict() for _ in range(2))
    assert first == second


def test_all_that_was_tried_is_told() -> None:
    ladder = climbed()
    for text in ("\n".join(ladder_lines(ladder)), ladder_markdown(ladder)):
        for rung in ladder.rungs:
            assert rung.form in text
        assert "third" in text
        assert "nothing passes" in text
    lines = "\n".join(model_certificate_lines(ladder.tests[0].certificate))
    assert "first passage" in lines
    assert "dwell" in lines


def test_too_few_tasks_are_refused() -> None:
    with pytest.raises(NothingToCheckError, match="too few"):
        climb(drawn(clockwork(), LEAST_BLOCKS - 1, 1), rungs=RUNGS, replicates=39)


def test_replicates_that_could_never_reject_are_refused() -> None:
    with pytest.raises(UsageError, match="take 39 or more"):
        climb(drawn(clockwork(), 60, 1), rungs=RUNGS, replicates=38)


def test_without_a_last_test_nothing_is_licensed() -> None:
    ladder = climbed()
    second = [test for test in ladder.tests if test.part == "second"]
    cut = type(ladder)(**{**{name: getattr(ladder, name) for name in type(ladder).__slots__}, "tests": tuple(second)})
    found = standings(cut)["timing"]
    assert found.verdict == "none"
    assert found.mark == "chain not certified"
    assert standings("no replicates were asked for")["path"].mark == "chain not certified"


def test_the_table_for_a_terminal_is_narrow_and_the_record_is_whole() -> None:
    ladder = climbed()
    wide = replace(
        ladder.rungs[1],
        form="order2+dwell4+clock:" + ",".join(map(str, range(0, 90, 3))),
        n_states=123_456,
        n_parameters=12_345,
        gains={"timing": -123.456, "path": 12.345},
        errors={"timing": 12.345, "path": 1.234},
    )
    lines = ladder_lines(replace(ladder, rungs=(ladder.rungs[0], wide, ladder.rungs[2])))
    assert max(map(len, lines)) <= 120
    assert any("Kappa is the weight" in line for line in lines)
    header = next(i for i, line in enumerate(lines) if line.split()[:2] == ["#", "model"])
    first, second, _ = (line.split() for line in lines[header + 1 : header + 4])
    assert first[:2] == ["1", "first-order"]
    assert first[-4:-2] == ["<", "2"]  # for timing; number 2 foretells better
    assert second[:2] == ["2", "clock:0,3"]  # the name of the rung: its form is too long
    recorded = ladder.to_dict()["rungs"][0]
    assert recorded["dismissed"]["timing"]["by"] == "clock:0,3"
    assert "clock:0,3 foretells better" in recorded["remark"]


def test_states_are_counted_as_those_of_the_chain_that_is_written() -> None:
    """Success and failure among them, and only what can be reached from where runs start."""
    paths = drawn(clockwork(), 60, 1)
    ladder = climb(paths, rungs=RUNGS, replicates=39, seed=2)
    for rung in ladder.rungs:
        chain = ExpandedStructure.of_model(estimate(paths, parse_model(rung.form)))
        assert rung.n_states == chain.n_states
    for test in ladder.tests:
        assert test.certificate.n_states == next(rung.n_states for rung in ladder.rungs if rung.form == test.form)
