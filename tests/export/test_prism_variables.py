"""Model files with a variable for each thing that a state remembers: what is written, comes back, and Storm says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.chain.expanded.random_models import FORMS, random_model
from tests.export.test_prism import assert_identical

from tracebridge.chain import MarkovChain, RationalVector, RewardStructure, edited, parse_redirection
from tracebridge.chain.edit import row_changes
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.checking import check
from tracebridge.checking.models import read_model
from tracebridge.checking.prism_program import build_prism_chain
from tracebridge.checking.storm_process import StormWorker
from tracebridge.errors import ModelError, PropertyError, UsageError
from tracebridge.export import (
    exported_chain,
    format_prism,
    is_own_prism,
    read_own_prism,
    restore_chain,
    rewrite_for_export,
    single_start,
    write_prism,
)
from tracebridge.pctl import format_properties, parse_properties
from tracebridge.states.model_form import parse_model

STORM = Path(__file__).parent / "storm_reference.py"
EXPANDED = [name for name in FORMS if name != "first-order"]
WORDS = {"tool": ["a", "c"], "none": []}


def expanded_chain(name: str, *, m: int = 3, seed: int = 0) -> MarkovChain:
    model = random_model(name, m=m, seed=seed)
    return ExpandedStructure.of_model(model).chain(model, WORDS)


def assert_comes_back(chain: MarkovChain) -> str:
    text = format_prism(chain)
    assert is_own_prism(text)
    restored = read_own_prism(text)
    assert_identical(restored, chain)
    assert list(restored.variables) == list(chain.variables)
    assert all(np.array_equal(restored.variables[name], values) for name, values in chain.variables.items())
    assert format_prism(restored) == text
    return text


# ---------------------------------------------------------------- the text

SMALL_MODEL = ExpandedModel(
    form=parse_model("clock:0,1,3"),
    states=("a", "b-c"),
    start=np.array([[[0.5, 0.5, 0.0, 0.0]]]),
    rows=np.array(
        [
            [
                [[0.25, 0.25, 0.25, 0.25], [0.5, 0.0, 0.5, 0.0]],
                [[0.0, 0.5, 0.25, 0.25], [0.25, 0.5, 0.0, 0.25]],
                [[0.5, 0.0, 0.0, 0.5], [0.0, 0.0, 0.5, 0.5]],
            ]
        ]
    ),
    advance=np.ones((1, 2, 1)),
)

SMALL_TEXT = r"""//= tracebridge dtmc 2, transitions float, initial float
// A Markov chain of 10 states in 8 commands, with these variables:
//   category: what the present step is
//   step: earlier steps of the run; 3 stands for more as well
// category 0: "a"
// category 1: "b-c"
// category 2 is success and 3 is failure; the other variables are -1 there.
// In a name, \u{hex} is the character of that code point. tracebridge restores the chain from this file
// exactly; states are in ascending order of their variables, and named by them.
// Probabilities are doubles, digit by digit: a row sums to one up to their rounding only.
// Runs start in several states, so category=4 (label "start") was added: it leads
// to them and earns nothing. Runs are one step longer here: a step bound k becomes k+1.

dtmc

module chain
  category : [0..4] init 4;
  step : [-1..3] init -1;

  // "a"
  [] category=0 & step=0 -> 0.25:(category'=0) & (step'=step+1) + 0.25:(category'=1) & (step'=step+1) + 0.25:(category'=2) & (step'=-1) + 0.25:(category'=3) & (step'=-1);
  [] category=0 & step>=1 & step<=2 -> 0.5:(category'=1) & (step'=step+1) + 0.25:(category'=2) & (step'=-1) + 0.25:(category'=3) & (step'=-1);
  [] category=0 & step=3 -> 0.5:(category'=0) + 0.5:(category'=3) & (step'=-1);

  // "b-c"
  [] category=1 & step=0 -> 0.5:(category'=0) & (step'=step+1) + 0.5:(category'=2) & (step'=-1);
  [] category=1 & step>=1 & step<=2 -> 0.25:(category'=0) & (step'=step+1) + 0.5:(category'=1) & (step'=step+1) + 0.25:(category'=3) & (step'=-1);
  [] category=1 & step=3 -> 0.5:(category'=2) & (step'=-1) + 0.5:(category'=3) & (step'=-1);

  // "success"
  [] category=2 -> 1.0:(category'=2);

  // "failure"
  [] category=3 -> 1.0:(category'=3);

  // the initial distribution
  [] category=4 -> 0.5:(category'=0) & (step'=0) + 0.5:(category'=1) & (step'=0);
endmodule

label "success" = category=2;  // label "success"
label "failure" = category=3;  // label "failure"
label "absorbed" = category>=2 & category<=3;  // label "absorbed"
label "a" = category=0;  // label "a"
label "b_x2d_c" = category=1;  // label "b-c"
label "start" = category=4;  // the added first state
label "initial" = (category=0 & step=0) | (category=1 & step=0);  // the states that it leads to

rewards "steps"  // "steps", state float, action none
  category=0 : 1.0;
  category=1 : 1.0;
endrewards
"""  # noqa: E501


def small() -> MarkovChain:
    return ExpandedStructure.of_model(SMALL_MODEL).chain(SMALL_MODEL)


def test_the_text_of_a_small_chain() -> None:
    assert assert_comes_back(small()) == SMALL_TEXT


def test_a_point_start_needs_no_added_state() -> None:
    model = replace(SMALL_MODEL, start=np.array([[[0.0, 1.0, 0.0, 0.0]]]))
    text = assert_comes_back(ExpandedStructure.of_model(model).chain(model))
    assert "  category : [0..3] init 1;\n  step : [-1..3] init 0;\n" in text
    assert "added" not in text


@pytest.mark.parametrize("name", FORMS)
def test_a_chain_comes_back_bit_for_bit(name: str) -> None:
    chain = expanded_chain(name, seed=1)
    assert ("category" in chain.variables) == (name != "first-order")
    assert ("\n  s : [" in assert_comes_back(chain)) == (name == "first-order")


def test_names_of_every_kind_come_back() -> None:
    categories = ('"', "a [phase 0]", "b\n, phase 1]", "x, group g0]~")
    groups = ("", 'g, "0"]', "group g")
    model = random_model("group:model+phases:2", m=4, n_groups=3, seed=2)
    assert_comes_back(
        ExpandedStructure.of_model(changed := replace(model, states=categories, groups=groups)).chain(changed)
    )
    ambiguous = replace(random_model("order2", m=4, seed=2), states=("x", "x [previous y", "y [previous z", "z"))
    assert "  category : [" in assert_comes_back(ExpandedStructure.of_model(ambiguous).chain(ambiguous))


@pytest.mark.parametrize("group", [0, 1])
def test_a_group_that_no_run_is_of_has_no_states(group: int) -> None:
    model = random_model("group:model+order2", seed=15)
    start = np.array(model.start)
    start[group] = 0
    other = replace(model, start=start / start.sum())
    text = assert_comes_back(ExpandedStructure.of_model(other).chain(other))
    assert f"group g{1 - group}" in read_own_prism(text).states[0]


def test_rationals_and_action_rewards_come_back() -> None:
    chain = expanded_chain("order2+clock:0,2", seed=3)
    category = chain.variables["category"]
    cost = RewardStructure.from_fractions([int(c) for c in category], [int(c == 1) for c in category])
    exact: dict[str, Any] = {
        "transitions": chain.exact_transitions(),
        "initial": RationalVector.from_fractions(chain.exact_initial()),
    }
    text = assert_comes_back(replace(chain, **exact, rewards={**chain.rewards, "cost": cost}))
    assert "transitions exact, initial exact" in text
    assert "  [] category=1 : 1;" in text


def test_an_edited_chain_is_written_with_its_variables_too() -> None:
    chain = expanded_chain("order2+clock:0,1,4", seed=4)
    after = edited(chain, row_changes(chain, [parse_redirection("a:0.25->success", chain)]))
    assert "  category : [" in assert_comes_back(after)
    one = next(name for name in chain.states if name.startswith("b [") and "step 2" in name)
    split = edited(chain, row_changes(chain, [parse_redirection(f"{one}:0.25->success", chain)]))
    assert assert_comes_back(split).count("  [] ") == format_prism(chain).count("  [] ") + 2


def test_one_command_covers_the_steps_of_a_bin() -> None:
    chain = expanded_chain("order2+dwell3+clock:0,1,2,4,8,16,32", m=6, seed=5)
    text = format_prism(chain)
    n_commands = int(re.search(r"states in (\d+) commands", text)[1])  # type: ignore[index]
    assert chain.n_states > 4 * n_commands
    assert text.count("  [] ") == n_commands + 1
    assert_comes_back(chain)
    with pytest.raises(UsageError, match=f"{n_commands} commands are too many"):
        format_prism(chain, max_states=n_commands - 1)
    format_prism(chain, max_states=n_commands)


@pytest.mark.parametrize(
    "parts",
    [
        {"labels": {"odd": lambda chain: np.arange(chain.n_states) % 2 == 1}},
        {"rewards": {"r": lambda chain: RewardStructure(state=np.arange(float(chain.n_states)))}},
        {"variables": {"zzz": lambda chain: np.arange(chain.n_states)}},
    ],
)
def test_what_categories_do_not_decide_is_written_state_by_state(parts: dict[str, dict[str, Any]]) -> None:
    chain = expanded_chain("order2", seed=6)
    added = {
        part: {**getattr(chain, part), **{name: make(chain) for name, make in made.items()}}
        for part, made in parts.items()
    }
    text = format_prism(replace(chain, **added))
    assert "  s : [" in text
    assert_identical(read_own_prism(text), replace(chain, **added))


def test_other_orders_and_names_are_written_state_by_state() -> None:
    chain = expanded_chain("order2", seed=7)
    renamed = replace(chain, states=("zzz", *chain.states[1:]))
    shuffled = replace(chain, variables=dict(reversed(chain.variables.items())))
    unlabelled = replace(chain, labels={name: mask for name, mask in chain.labels.items() if name != "a"})
    for other in (renamed, shuffled, unlabelled):
        assert "  s : [" in format_prism(other)


# ---------------------------------------------------------------- edits by hand


def test_an_edit_that_keeps_the_form_is_read() -> None:
    text = SMALL_TEXT.replace("0.5:(category'=0) + 0.5:(category'=3)", "0.125:(category'=0) + 0.875:(category'=3)")
    chain = read_own_prism(text)
    assert chain.transitions.toarray()[chain.index("a [step 3+]"), 0] == 0
    assert chain.transitions[[chain.index("a [step 3+]")]].data.tolist() == [0.125, 0.875]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("dtmc 2,", "dtmc 1,", 21, "is no command of the form"),
        ("// category 1:", "// category 2:", 6, "the category that follows has the number 1, not 2"),
        ('category 1: "b-c"', 'category 1: "a"', 6, "two of them are called 'a'"),
        ("  step : [-1..3] init -1;\n", "", 20, "'step=0' is no condition on one of category"),
        ("  step :", "  clock :", 18, "clock is declared already, or is none of"),
        ("[-1..3] init", "[-1..4] init", 18, "where it would write"),
        ("step<=2 ->", "step<=3 ->", 23, "another command is about the same state"),
        ("step>=1 &", "step>=2 &", 21, "leads to a state that no command is about"),
        ("step=3 -> 0.5:(category'=2)", "step=3 -> 0.6:(category'=2)", 28, "category=1 & step=3 sums to 1.1"),
        ("step=3 -> 0.5:(category'=2)", "step=3 -> 0.5:(category'=3)", 28, "two branches lead to the same state"),
        ("0.25:(category'=0) & (step'=step+1)", "0.25:(category'=0) & (step'=9)", 21, "that no command is about"),
        ("(step'=step+1)", "(step'=category+1)", 21, "is no update of the form"),
        ("(category'=0) & (step'=step+1)", "(category'=category+1)", 21, "the step alone is counted on"),
        ("(step'=step+1)", "(step'=step+2)", 21, "is no update of the form"),
        ("category=3 -> 1.0", "category=2 -> 1.0", 34, "another command is about the same state"),
        (
            "[] category=2 -> 1.0:(category'=2)",
            "[] category=2 & step=0 -> 1.0:(category'=2)",
            31,
            "guard does not give",
        ),
        ("0.5:(category'=1) & (step'=0);", "0.5:(category'=1);", 37, "gives every variable a value"),
        ("0.5:(category'=1) & (step'=0);", "0.5:(category'=0) & (step'=0);", 37, "lead to the same state"),
        ("  [] category=4 ->", "  [] category=4 & (", 37, "is no command of the form"),
        ("category=1;", "category=7;", 44, "category=7, but there are 4 of them"),
        ("  category=1 : 1.0;", "  category=1 : x;", 50, "is no reward of the form"),
        ("category=0 & step=3", "category=200001 & step=3", 23, "200001 is larger than any value"),
        ("category=0 & step=3", "category=0 & step<=3", 23, "does not say which states it is about"),
        ("step>=1 & step<=2", "step>=1 & step<=199999", 51, "about 200007 states, more than can be held"),
        ("module chain", "module chains", 16, "where it would write 'module chain'"),
    ],
)
def test_an_edit_that_the_file_does_not_reflect_is_found_at_its_line(
    old: str, new: str, line: int, message: str
) -> None:
    assert old in SMALL_TEXT
    with pytest.raises(ModelError, match=message) as raised:
        read_own_prism(SMALL_TEXT.replace(old, new, 1), path="edited.prism")
    assert raised.value.problems[0].location.path == "edited.prism"
    assert raised.value.problems[0].location.line == line


@pytest.mark.parametrize("end", range(1, SMALL_TEXT.count("\n") - 6))
def test_a_file_cut_short_is_refused_at_a_line_that_it_has(end: int) -> None:
    with pytest.raises(ModelError) as raised:
        read_own_prism("".join(SMALL_TEXT.splitlines(keepends=True)[:end]))
    assert all(1 <= (problem.location.line or 0) <= end for problem in raised.value.problems)


def test_a_short_text_cannot_ask_for_more_memory_than_there_is() -> None:
    branch = "1.0:(category'=0)"
    lines = [f"  [] category=0 & step>={i} & step<=199999 -> {branch};" for i in range(100)]
    text = SMALL_TEXT.replace("  [] category=0 & step=0 ->", "\n".join(lines) + "\n  [] category=0 & step=0 ->")
    with pytest.raises(ModelError, match="more than can be held"):
        read_own_prism(text)


def test_texts_changed_at_random_are_read_or_refused() -> None:
    """Nothing but `ModelError`, whatever a line has become."""
    random = Random(1)
    texts = [SMALL_TEXT, format_prism(expanded_chain("group:model+order2+clock:0,1+phases:2+classes:2", m=2, seed=14))]
    numbers = ["-1", "0", "1", "7", "199999", "999999999", "1e308"]
    words = ["category", "step", "previous", "phase", "group", "task_class", "init", "clock"]
    n_read = 0
    for _ in range(150):
        lines = random.choice(texts).split("\n")
        for _ in range(random.randint(1, 3)):
            i = random.randrange(len(lines))
            found = re.findall(r"[a-z]+|-?[0-9]+", lines[i]) or [""]
            old = random.choice(found)
            match random.randrange(4):
                case 0:
                    lines[i] = lines[i].replace(old, random.choice(words if old.isalpha() else numbers), 1)
                case 1:
                    place = random.randrange(len(lines[i]) + 1)
                    lines[i] = lines[i][:place] + random.choice("();&|+-'=:<>\"0 x/\\{}") + lines[i][place + 1 :]
                case 2:
                    lines.insert(random.randrange(len(lines)), lines.pop(i))
                case 3:
                    lines[i] = lines[random.randrange(len(lines))]
        try:
            chain = read_own_prism("\n".join(lines))
        except ModelError:
            continue
        assert_comes_back(chain)
        n_read += 1
    assert n_read < 75


# ---------------------------------------------------------------- properties beside the file

PROPERTIES = """
const int step = 2; const int d = 4;
"soon": P=? [ F<=d "success" ];
"bounded": P=? [ "tool" U<=step "b" ];
"next": P=? [ X "b" ];
"remembered": P=? [ F (previous=1 & "a") ];
"never b after b": P=? [ G !(previous=1 & category=1) ];
"cost": R{"tool"}=? [ C<=d ];
"length": R{"steps"}=? [ F "absorbed" ];
"nested": P=? [ F P>=0.5 [ X "success" ] ];
"started": previous=3 | "absorbed";
"""


def test_properties_may_name_variables_and_are_asked_in_the_added_state() -> None:
    chain = expanded_chain("order2+clock:0,2", seed=8)
    file = parse_properties(PROPERTIES)
    text = format_properties(rewrite_for_export(file, chain), target="prism")
    assert "const int step_ = 2;" in text
    properties = parse_properties(text)
    written = exported_chain(properties, read_own_prism(format_prism(chain)))
    assert written.variables["category"][-1] == 5
    expected = check(chain, file, engines=["closed-form"])
    found = check(written, properties, engines=["closed-form"])
    assert len(found) == len(expected) == 9
    for original, result in zip(expected[:-1], found[:-1], strict=True):
        assert result.verdict is original.verdict, original.property
        if original.value is not None and result.value is not None:
            assert result.value.value == pytest.approx(original.value.value, rel=1e-12), original.property
    assert found[-1].truth is True


def test_what_the_model_file_cannot_be_asked_is_said() -> None:
    chain = expanded_chain("order2", seed=9)
    with pytest.raises(PropertyError, match=r"no label for the single state .* on category, previous"):
        rewrite_for_export(parse_properties(f'P=? [ F "{chain.states[0]}" ];'), chain)
    with pytest.raises(PropertyError, match="unknown name step"):
        rewrite_for_export(parse_properties("P=? [ F step=2 ];"), chain)
    rewritten = rewrite_for_export(parse_properties('previous + P=? [ X "a" ];'), chain)
    assert not rewritten.properties
    assert "the variable previous has a value of its own" in " ".join(rewritten.trailing_comments)


# ---------------------------------------------------------------- Storm


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    pytest.importorskip("stormpy")
    with StormWorker() as running:
        yield running


@pytest.mark.storm
@pytest.mark.parametrize("name", EXPANDED)
def test_storm_builds_the_chain_that_was_written(name: str, worker: StormWorker) -> None:
    chain = expanded_chain(name, seed=10)
    text = format_prism(chain)
    built = build_prism_chain(text, worker=worker)
    assert built.n_states == single_start(chain).reachable_states().sum()
    assert_identical(restore_chain(built, text), chain)
    other = format_prism(expanded_chain(name, seed=11))
    with pytest.raises(ModelError, match="the tool built another chain than the file describes"):
        restore_chain(built, other)


@pytest.mark.storm
@pytest.mark.parametrize("name", ["order2", "clock:0,2,3", "phases:3:full", *EXPANDED[-2:]])
def test_both_engines_agree_through_the_written_file(name: str, tmp_path: Path) -> None:
    """The project's engine on the chain, and both engines on the chain that the file restores."""
    pytest.importorskip("stormpy")
    chain = expanded_chain(name, seed=12)
    write_prism(chain, tmp_path / "model.prism")
    restored = read_model(tmp_path / "model.prism").chain
    text = (
        'P=? [ F<=6 "success" ]; P=? [ "tool" U<=9 "failure" ]; P=? [ F "b" ]; R{"tool"}=? [ F "absorbed" ]; '
        'R{"steps"}=? [ C<=5 ]; P=? [ X "b" ]; P=? [ G<=4 !"c" ]; P=? [ F category=1 ];'
    )
    expected = check(chain, text, engines=["closed-form"])
    both = check(restored, text, engines=["closed-form", "storm"])
    assert [result.answered for result in both] == [True] * 16
    for original, closed, storm in zip(expected, both[::2], both[1::2], strict=True):
        assert original.value is not None
        assert closed.value is not None
        assert storm.value is not None
        assert closed.value.value == original.value.value
        assert storm.value.value == pytest.approx(original.value.value, rel=1e-6), original.property.text


@pytest.mark.storm
def test_storm_alone_reads_model_and_properties_and_agrees() -> None:
    """From the two texts, by Storm directly, without anything of the project between."""
    pytest.importorskip("stormpy")
    file = parse_properties(
        'P=? [ F<=6 "success" ]; P=? [ "tool" U<=9 "failure" ]; R{"tool"}=? [ F "absorbed" ]; R{"steps"}=? [ C<=5 ];'
    )
    requests, expected = [], []
    for name in ("order2+dwell2+clock:0,1,4", "group:model+order2+clock:0,1+phases:2+classes:2"):
        chain = expanded_chain(name, seed=13)
        rewritten = rewrite_for_export(file, chain)
        formulas = []
        for entry in rewritten.properties:
            lines = format_properties(replace(rewritten, properties=(entry,)), target="storm").splitlines()
            formulas.append(" ".join(line for line in lines if not line.startswith("//")))
        requests.append({"program": format_prism(chain), "exact": False, "formulas": formulas})
        expected.append([result.value.value for result in check(chain, file, engines=["closed-form"])])  # type: ignore[union-attr]
    done = subprocess.run(
        [sys.executable, str(STORM)],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    for answer, values in zip(json.loads(done.stdout), expected, strict=True):
        found = [float(states[answer["start"]]) for states in answer["values"]]
        assert found == pytest.approx(values, rel=1e-6)
