"""Decision processes as PRISM and DRN files: read back identical, and the same model for Storm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.chain.test_decision import router, same
from tests.closedform.decision.random_processes import random_process

from tracebridge.agreement import compare
from tracebridge.chain import RationalVector
from tracebridge.chain.decision import DecisionProcess
from tracebridge.checking import check
from tracebridge.checking.models import read_model, write_model
from tracebridge.checking.prism_program import build_prism_program
from tracebridge.checking.storm_process import StormWorker
from tracebridge.errors import ModelError, UsageError
from tracebridge.export.prism_decision import format_prism_decision, read_own_decision

#: Names that the language has a use for, cannot say, or that the file itself uses.
ODD_NAMES = ("s", "process", "min", "", "go", "go", "1st", "ä b", "_x_c0_s", 'say "hi"\n')


def in_doubles(process: DecisionProcess) -> DecisionProcess:
    return DecisionProcess(
        states=process.states,
        actions=process.actions,
        transitions=process.transitions,
        initial=process.initial,
        labels=process.labels,
    )


def oddly_named() -> DecisionProcess:
    n = len(ODD_NAMES)
    return DecisionProcess(
        states=tuple(f"{i}: {name}" for i, name in enumerate(ODD_NAMES)),
        actions=(ODD_NAMES, *[("stop",)] * (n - 1)),
        transitions=np.vstack([np.eye(n), np.eye(n)[1:]]),  # type: ignore[arg-type]
        initial=np.eye(n)[0],
        labels={"ä b": np.arange(n) == 1, "goal": np.arange(n) == 9},
    )


@pytest.mark.parametrize("seed", range(6))
def test_what_is_written_is_read_back(tmp_path: Path, seed: int) -> None:
    process = random_process(seed, 7)
    start = RationalVector(np.eye(1, process.n_states, dtype=np.int64)[0], 1)
    pointed = replace(process, initial=start)  # type: ignore[arg-type]
    for model in (pointed, in_doubles(pointed), oddly_named()):
        write_model(model, tmp_path / "model.drn")
        found = read_model(tmp_path / "model.drn").described
        assert isinstance(found, DecisionProcess)
        assert same(found, model)
    for model in (process, in_doubles(process)):
        text = format_prism_decision(model)
        assert same(read_own_decision(text), model)
        assert same(read_own_decision(text.replace("\n", "\r\n") + "\r\n"), model)


def test_any_names_are_read_back() -> None:
    assert same(read_own_decision(format_prism_decision(oddly_named())), oddly_named())


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    pytest.importorskip("stormpy")
    with StormWorker() as running:
        yield running


@pytest.mark.storm
@pytest.mark.parametrize("seed", range(20, 24))
def test_storm_builds_the_process_that_was_written(worker: StormWorker, seed: int) -> None:
    process = random_process(seed, 6)
    start = RationalVector(np.eye(1, process.n_states, dtype=np.int64)[0], 1)
    process = replace(process, initial=start)  # type: ignore[arg-type]
    built = build_prism_program(format_prism_decision(process), worker=worker).described
    assert isinstance(built, DecisionProcess)
    place = [int(name.removeprefix("s=")) for name in built.states]
    assert sorted(place) == np.flatnonzero(process.reachable_states()).tolist()
    for k, i in enumerate(place):
        assert built.actions[k] == process.actions[i]
        for offset in range(len(process.actions[i])):
            row = built.exact_transitions().row(int(built.choice_starts[k]) + offset)
            expected = process.exact_transitions().row(int(process.choice_starts[i]) + offset)
            assert {place[j]: p for j, p in row.items()} == expected
    for name, held in process.rewards.items():
        assert built.rewards[name].state.tolist() == held.state[place].tolist()
        if held.action is not None:
            rows = [process.choice_starts[i] + offset for i in place for offset in range(len(process.actions[i]))]
            action = built.rewards[name].action
            assert (np.zeros(len(rows)) if action is None else action).tolist() == held.action[rows].tolist()
    for name, mask in process.labels.items():
        assert built.labels[name].tolist() == mask[place].tolist()


@pytest.mark.storm
def test_storm_tells_any_names_apart(worker: StormWorker) -> None:
    built = build_prism_program(format_prism_decision(oddly_named()), worker=worker).described
    assert isinstance(built, DecisionProcess)
    assert len(set(built.actions[0])) == len(ODD_NAMES)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("1/4:(s'=0)", "1/5:(s'=0)", 12), ("[weak]", "[strong]", 11), ('"weak"\n', '"other"\n', 11)],
)
def test_an_edit_is_found(old: str, new: str, line: int) -> None:
    text = format_prism_decision(router())
    assert old in text
    with pytest.raises(ModelError, match=f"model.prism:{line}: .*this line is") as caught:
        read_own_decision(text.replace(old, new, 1), path="model.prism")
    assert "take away the first line" in str(caught.value)


def test_an_edit_of_a_drn_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "router.drn"
    write_model(router(), path)
    path.write_text(path.read_text().replace("0 : 1/4", "0 : 1/5"))
    with pytest.raises(ModelError, match=r"router.drn:\d+: .*this line is"):
        read_model(path)


def test_too_many_choices_are_refused() -> None:
    with pytest.raises(UsageError, match="3 choices are too many"):
        format_prism_decision(router(), max_choices=2)


PROPERTIES = (
    'Pmax=? [ F "success" ]; R{"cost"}min=? [ F "success" ]; R{"cost"}max=? [ F "success" ]; P>=1 [ F "success" ]'
)


@pytest.mark.storm
@pytest.mark.parametrize("name", ["router.prism", "router.json", "router.drn", "router.umb"])
def test_files_are_checked_as_they_are(tmp_path: Path, name: str) -> None:
    pytest.importorskip("stormpy")
    write_model(router(), tmp_path / name)
    found = read_model(tmp_path / name).described
    assert isinstance(found, DecisionProcess)
    assert same(found, router())
    agreements = compare(check(found, PROPERTIES, exact=True))
    assert [each.results[0].value.value for each in agreements if each.results[0].value] == [
        1,
        2,  # the weak expert costs 1 and is right every other time
        Fraction(8, 3),
        1,
    ]
    assert all(each.agree and each.gap == 0 for each in agreements)


@pytest.mark.storm
def test_storm_reads_drn_files(tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    path = tmp_path / "router.drn"
    write_model(router(), path)
    model = stormpy.build_model_from_drn[stormpy.Rational](str(path))
    assert (model.nr_states, model.nr_choices) == (2, 3)
    (formula,) = stormpy.parse_properties('R{"cost"}max=? [ F "success" ]')
    assert Fraction(str(stormpy.model_checking(model, formula).get_value(0))) == Fraction(8, 3)


def test_a_spread_start_is_not_written_as_drn(tmp_path: Path) -> None:
    process = replace(router(), initial=RationalVector(np.array([1, 1]), 2))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="starts in one state"):
        write_model(process, tmp_path / "router.drn")
    with pytest.raises(UsageError, match=r"choose \.json, \.prism, \.umb or \.drn"):
        write_model(process, tmp_path / "router.tra")
