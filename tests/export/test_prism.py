"""Model files: what is written, what comes back, and that Storm builds the chain that was written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.state_annotations import IMPLICIT_LABELS
from tracebridge.checking.models import read_model
from tracebridge.checking.prism_program import build_prism_chain
from tracebridge.checking.storm_process import StormWorker
from tracebridge.errors import ModelError, UsageError
from tracebridge.export import format_prism, is_own_prism, read_own_prism, restore_chain, single_start, write_prism
from tracebridge.export.names import RESERVED_WORDS

STORM = Path(__file__).parent / "storm_reference.py"
AWKWARD = [
    *sorted(RESERVED_WORDS),
    "start",
    "initial",
    "s",
    "tool-call",
    "tool_x2d_call",
    "*/",
    '"',
    "\\",
    "\\u{41}",
    "\n",
    "\r\n",
    " ",
]


# ---------------------------------------------------------------- random chains


def random_name(random: Random) -> str:
    if random.random() < 0.5:
        return random.choice(AWKWARD)
    return "".join(
        chr(random.choice((random.randrange(128), random.randrange(0x110000)))) for _ in range(random.randint(1, 6))
    )


def random_names(random: Random, n: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < n:
        names.setdefault(random_name(random))
    return list(names)


def random_counts(random: Random, n: int) -> dict[int, int]:
    size = random.choice((30, 1000, 2**40, 2**80))
    targets = random.sample(range(n), random.randint(1, min(n, 4)))
    return {target: random.randint(1, size) for target in sorted(targets)}


def random_vector(random: Random, n: int) -> tuple[np.ndarray, RationalVector | None]:
    """Some rewards: doubles, or rationals over a denominator that need not be the least."""
    if random.random() < 0.5:
        return np.array([random.choice((0.0, 1.0, 0.1, random.random() * 1e20)) for _ in range(n)]), None
    exact = RationalVector(
        np.array([random.choice((0, 1, random.randrange(2**40))) for _ in range(n)], dtype=object),
        random.randint(1, 12),
    )
    return exact.to_float(), exact


def random_rewards(random: Random, n: int) -> RewardStructure:
    state, exact_state = random_vector(random, n)
    action, exact_action = random_vector(random, n) if random.random() < 0.5 else (None, None)
    return RewardStructure(state=state, action=action, exact_state=exact_state, exact_action=exact_action)


def random_chain(random: Random, n: int | None = None) -> MarkovChain:
    n = n or random.randint(1, 6)
    names = random_names(random, n)
    rows = [{i: 1} if random.random() < 0.2 else random_counts(random, n) for i in range(n)]
    start = random_counts(random, n) if random.random() < 0.6 else {random.randrange(n): random.choice((1, 7))}
    counts = np.array([start.get(i, 0) for i in range(n)], dtype=object)
    transitions: Any = RationalMatrix(
        np.cumsum([0, *map(len, rows)]),
        np.array([j for row in rows for j in row]),
        np.array([count for row in rows for count in row.values()], dtype=object),
        np.array([sum(row.values()) for row in rows], dtype=object),
        n,
    )
    initial: Any = RationalVector(counts, sum(start.values()))
    exact = random.random()
    labels = {}
    for name in random_names(random, random.randint(0, 4)):
        if name not in IMPLICIT_LABELS:
            mask = np.array([random.random() < 0.5 for _ in range(n)])
            labels[name] = np.array([state == name for state in names]) if name in names else mask
    return MarkovChain(
        states=tuple(names),
        transitions=transitions if exact < 0.7 else transitions.to_float(),
        initial=initial if 0.1 < exact < 0.8 else initial.to_float(),
        labels=labels,
        rewards={name: random_rewards(random, n) for name in random_names(random, random.randint(0, 3))},
    )


random_chains = st.integers(0, 2**32).map(lambda seed: random_chain(Random(seed)))


def assert_identical(first: MarkovChain, second: MarkovChain) -> None:
    """Equal in every name, every number down to the last bit, and every order."""
    assert first.states == second.states
    assert_same_matrix(first, second)
    assert np.array_equal(first.initial, second.initial)
    assert_same_vector(first.initial_rationals, second.initial_rationals)
    assert list(first.labels) == list(second.labels)
    assert all(np.array_equal(first.labels[name], second.labels[name]) for name in first.labels)
    assert list(first.rewards) == list(second.rewards)
    for name, structure in first.rewards.items():
        other = second.rewards[name]
        assert np.array_equal(structure.state, other.state)
        assert (structure.action is None) == (other.action is None)
        assert structure.action is None or np.array_equal(structure.action, other.action)
        assert_same_vector(structure.exact_state, other.exact_state)
        assert_same_vector(structure.exact_action, other.exact_action)


def assert_same_matrix(first: MarkovChain, second: MarkovChain) -> None:
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(first.transitions, part), getattr(second.transitions, part))
    assert (first.rationals is None) == (second.rationals is None)
    if first.rationals is not None and second.rationals is not None:
        for part in ("indptr", "indices", "numerators", "denominators", "n_columns"):
            assert np.array_equal(getattr(first.rationals, part), getattr(second.rationals, part))


def assert_same_vector(first: RationalVector | None, second: RationalVector | None) -> None:
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert np.array_equal(first.numerators, second.numerators)
        assert first.denominator == second.denominator


# ---------------------------------------------------------------- the text


SMALL = MarkovChain(
    states=("plan", "tool-call", "done", "gave up"),
    transitions=RationalMatrix(  # type: ignore[arg-type]
        np.array([0, 2, 5, 6, 7]),
        np.array([0, 1, 0, 2, 3, 2, 3]),
        np.array([13, 44, 2, 1, 1, 1, 1]),
        np.array([57, 4, 1, 1]),
        4,
    ),
    initial=RationalVector(np.array([5, 3, 0, 0]), 8),  # type: ignore[arg-type]
    labels={"success": [False, False, True, False], "min": [True, True, False, True], "never": [False] * 4},
    rewards={
        "steps": RewardStructure.from_fractions([1, 1, 0, 0]),
        "cost €": RewardStructure(state=np.zeros(4), action=np.array([0.0, 2.5, 0.0, 0.0])),
        "none": RewardStructure(state=np.zeros(4)),
    },
)

SMALL_TEXT = r"""//= tracebridge dtmc 1, transitions exact, initial exact
// A Markov chain of 4 states. The comment behind a command names its state; that behind a
// label or a reward structure gives the name that its identifier stands for. In a name, \u{hex} is the
// character of that code point. tracebridge restores the chain from these comments exactly.
// Runs start in several states, so s=4 (label "start") was added: it leads
// to them and earns nothing. Runs are one step longer here: a step bound k becomes k+1.

dtmc

module chain
  s : [0..4] init 4;

  [] s=0 -> 13/57:(s'=0) + 44/57:(s'=1);  // "plan"
  [] s=1 -> 2/4:(s'=0) + 1/4:(s'=2) + 1/4:(s'=3);  // "tool-call"
  [] s=2 -> 1:(s'=2);  // "done"
  [] s=3 -> 1:(s'=3);  // "gave up"
  [] s=4 -> 5/8:(s'=0) + 3/8:(s'=1);  // the initial distribution
endmodule

label "success" = s=2;  // label "success"
label "min_x_" = (s>=0 & s<=1) | s=3;  // label "min"
label "never" = false;  // label "never"
label "plan" = s=0;  // state "plan"
label "tool_x2d_call" = s=1;  // state "tool-call"
label "done" = s=2;  // state "done"
label "gave_x20_up" = s=3;  // state "gave up"
label "start" = s=4;  // the added first state
label "initial" = s>=0 & s<=1;  // the states that it leads to

rewards "steps"  // "steps", state 1, action none
  s=0 : 1;
  s=1 : 1;
endrewards

rewards "cost_x20__x20ac_"  // "cost €", state float, action float
  [] s=1 : 2.5;
endrewards

rewards "none"  // "none", state float, action none
  true : 0;
endrewards
"""


def test_the_text_of_a_small_chain() -> None:
    assert format_prism(SMALL) == SMALL_TEXT
    assert_identical(read_own_prism(SMALL_TEXT), SMALL)


def test_a_point_distribution_needs_no_added_state() -> None:
    chain = MarkovChain(states=("a", "start"), transitions=[[0.25, 0.75], [0, 1]], initial=[1, 0])  # type: ignore[arg-type]
    text = format_prism(chain)
    assert "  s : [0..1] init 0;\n" in text
    assert "[] s=0 -> 0.25:(s'=0) + 0.75:(s'=1);" in text
    assert "added" not in text
    assert_identical(read_own_prism(text), chain)


def test_a_state_called_start_keeps_its_label() -> None:
    chain = MarkovChain(states=("start", "initial"), transitions=np.eye(2), initial=[0.5, 0.5])  # type: ignore[arg-type]
    text = format_prism(chain)
    assert 'label "start" = s=0;  // state "start"' in text
    assert 'label "_x_start" = s=2;' in text
    assert 'label "_x_initial" = s>=0 & s<=1;' in text
    assert_identical(read_own_prism(text), chain)


def test_a_chain_of_one_state_has_a_range_that_prism_accepts() -> None:
    chain = MarkovChain(states=("only",), transitions=[[1.0]], initial=[1.0])  # type: ignore[arg-type]
    assert "  s : [0..1] init 0;" in format_prism(chain)
    assert_identical(read_own_prism(format_prism(chain)), chain)


def test_integers_beyond_those_of_prism_become_decimals_and_come_back() -> None:
    big = 2**31
    row = {0: Fraction(big - 1, big), 1: Fraction(1, big)}
    matrix: Any = RationalMatrix.from_rows([row, {1: Fraction(1)}])
    chain = MarkovChain(states=("a", "b"), transitions=matrix, initial=[1, 0])  # type: ignore[arg-type]
    text = format_prism(chain)
    assert "2147483647/2147483648.0:(s'=0) + 1/2147483648.0:(s'=1)" in text
    assert_identical(read_own_prism(text), chain)


def test_a_label_of_many_scattered_states_is_no_deep_formula() -> None:
    n = 3000
    chain = MarkovChain(
        states=tuple(map(str, range(n))),
        transitions=np.eye(n),  # type: ignore[arg-type]
        initial=np.eye(1, n)[0],
        labels={"even": np.arange(n) % 2 == 0},
    )
    text = format_prism(chain)
    (line,) = (line for line in text.split("\n") if line.startswith('label "even"'))
    assert max(piece.count("|") for piece in re.split(r"[()]", line)) < 32
    assert_identical(read_own_prism(text), chain)


def test_more_states_than_the_tools_can_take_are_refused_unless_asked_for() -> None:
    with pytest.raises(UsageError, match=r"4 states are too many .* \.drn"):
        format_prism(SMALL, max_states=3)
    assert format_prism(SMALL, max_states=None) == SMALL_TEXT


def test_a_rational_too_long_to_be_written_is_refused() -> None:
    row = {0: Fraction(1, 3**9000), 1: 1 - Fraction(1, 3**9000)}
    initial: Any = RationalVector.from_fractions(list(row.values()))
    chain = MarkovChain(states=("a", "b"), transitions=np.eye(2), initial=initial)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="bits, too long for the PRISM language"):
        format_prism(chain)
    tiny = RewardStructure.from_fractions([0, Fraction(1, 3**10_000)])
    chain = MarkovChain(states=("a", "b"), transitions=np.eye(2), initial=[1, 0], rewards={"r": tiny})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="bits, too long for the PRISM language"):
        format_prism(chain)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "chain.prism"
    write_prism(SMALL, path)
    assert path.read_bytes() == SMALL_TEXT.encode()
    with pytest.raises(UsageError):
        write_prism(SMALL, tmp_path / "other.prism", max_states=1)
    assert [entry.name for entry in tmp_path.iterdir()] == ["chain.prism"]


# ---------------------------------------------------------------- the way back


@settings(max_examples=300)
@given(random_chains)
def test_a_chain_comes_back_bit_for_bit(chain: MarkovChain) -> None:
    text = format_prism(chain)
    assert is_own_prism(text)
    assert_identical(read_own_prism(text), chain)
    assert format_prism(read_own_prism(text)) == text


@given(random_chains)
def test_names_stay_inside_their_comments(chain: MarkovChain) -> None:
    text = format_prism(chain)
    text.encode()  # no lone surrogate
    for line in text.split("\n"):
        assert len(line.splitlines()) <= 1
        assert re.fullmatch(r"[ -~]*", line.split("//")[0])


@given(st.text(min_size=1))
def test_any_name_comes_back(name: str) -> None:
    chain = MarkovChain(states=(name,), transitions=[[1.0]], initial=[1.0])  # type: ignore[arg-type]
    assert read_own_prism(format_prism(chain)).states == (name,)


def test_line_ends_may_have_become_those_of_windows() -> None:
    assert_identical(read_own_prism(SMALL_TEXT.replace("\n", "\r\n")), SMALL)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("13/57", "0.25", 13, "0.25 is no fraction of integers"),
        ("13/57", "14/57", 13, "state 'plan': its row sums to 58/57"),
        ("13/57:", "13/57", 13, "\"13/57(s'=0)\" is no branch of the form p:(s'=k)"),
        ("13/57", "13/0", 13, "13/0 is no fraction"),
        ("13/57", "1" * 5000 + "/57", 13, "more than 4300 digits"),
        ("13/57", "1" * 4000 + "/57", 13, "its row sums to a fraction of many digits that is more than 1"),
        ("13/57:(s'=0) + ", "0/57:(s'=0) + ", 13, "the branch to s'=0 has the probability 0; leave it out"),
        ("13/57:(s'=0) + 44/57:(s'=1)", "1/2:(s'=1) + 1/2:(s'=1)", 13, "two branches lead to s'=1"),
        ("1/4:(s'=2) + 1/4:(s'=3)", "1/4:(s'=2) + 249/1000:(s'=3)", 14, "'tool-call': its row sums to 999/1000"),
        ("(s'=0) + 44", "(s'=7) + 44", 13, "speaks of s=7, but the states are s=0 to s=3 (line 11 has s go up to 4)"),
        ("(s'=0) + 44", "(s'=4) + 44", 13, "speaks of s=4, but the states are s=0 to s=3"),
        ("(s'=0) + 44", "(s'=" + "9" * 40 + ") + 44", 13, "but the states are s=0 to s=3"),
        ("(s'=0) + 44", "(s'=00) + 44", 13, "is no branch"),
        ("  [] s=1 -> 2/4", "  [] s=1 -> ½", 14, "is no branch"),
        ("(s'=3);  // \"tool", "(s'=3)  // \"tool", 14, "is no command of the form"),
        ('// "tool-call"\n', "// tool-call\n", 14, "is no command of the form"),
        ('"tool-call"\n', '"plan"\n', 14, "two states are called 'plan'; the first is on line 13"),
        ('"tool-call"\n', '""\n', 14, "a state needs a name"),
        ("  [] s=2 -> 1:", "  [] s=1 -> 1:", 15, "s=1 has a command already, on line 14"),
        ("  [] s=4 ->", "  [] s=3 ->", 17, "s=3 has a command already, on line 16"),
        ("  [] s=2 -> 1:", "  [] s=9 -> 1:", 15, "a command for s=9, but the states are s=0 to s=3"),
        ('  [] s=2 -> 1:(s\'=2);  // "done"\n', "", 15, "s=2, 'done', has no command, which should be here (line 11"),
        (
            '  [] s=3 -> 1:(s\'=3);  // "gave up"\n',
            "",
            16,
            "state s=3, 'gave up', has no command, which should be here",
        ),
        ("  [] s=4 -> 5/8:(s'=0) + 3/8:(s'=1);  // the initial distribution\n", "", 17, "state s=4 has no command"),
        ("5/8:(s'=0) + 3/8", "5/8:(s'=0) + 1/8", 17, "the initial distribution sums to 3/4"),
        ("endmodule\n", "  [] s=5 -> 1:(s'=0);  // the initial distribution\n", 18, "stands already on line 17"),
        ("init 4;", "init 77;", 11, "init 77, but s=4 leads to the initial states (line 17)"),
        ("init 4;", "init 4", 11, "does not have the form 's : [0..k] init i;'"),
        ("init 4;\n", "init 4;\n  s : [0..4] init 4;\n", 12, "the variable s is declared already, on line 11"),
        ("  s : [0..4] init 4;\n", "", 40, "the file ends without a line 's : [0..k] init i;'"),
        ("[0..4]", "[0..5]", 11, "where it would write '  s : [0..4] init 4;'"),
        ("s>=0 & s<=1) |", "s>=0 & s<=1 & s<=0) |", 21, "where it would write 'label"),
        ("s=2;  // label", "s=6;  // label", 20, "speaks of s=6, but the states are s=0 to s=3"),
        ("s=2;  // label", "s=2  // label", 20, "is no label of the form"),
        ('// label "min"', '// label "success"', 21, "the label 'success' is defined already, on line 20"),
        ('// label "min"', '// label "init"', 21, "'init' cannot be given as a label"),
        ('// label "min"', '// label "plan"', 21, "'plan' must hold in s=0 alone, the state of that name (line 13)"),
        ('label "plan"', 'label "plam"', 23, 'where it would write \'label "plan"'),
        ('"plan" = s=0', '"plan" = s=2', 23, 'where it would write \'label "plan" = s=0;'),
        (
            'label "never" = false;  // label "never"\nlabel "plan" = s=0',
            'label "plan" = s=1',
            22,
            '\'label "plan" = s=0',
        ),
        ("state 1, action none", "state 0, action none", 30, "0 is no denominator of rewards"),
        ("state 1, action none", f"state {'9' * 4300}, action none", 30, "is no denominator of rewards"),
        (
            "13/57",
            "1" * 4250 + "/" + "1" * 4300,
            13,
            "common denominator of the probabilities has more than 14000 bits",
        ),
        ("state 1, action none", "state 1", 30, "does not have the form 'rewards"),
        ('// "cost €"', '// "steps"', 35, "the reward structure 'steps' is defined already, on line 30"),
        ('// "cost €"', '// ""', 35, "a reward structure needs a name"),
        ("  s=1 : 1;", "  s=0 : 1;", 32, "a second reward of s=0 in the structure of line 30"),
        ("  s=1 : 1;", "  s=1 : 1/2;", 32, "the reward 1/2 is no multiple of 1"),
        ("  s=1 : 1;", "  s=8 : 1;", 32, "speaks of s=8, but the states are s=0 to s=3"),
        ("  s=1 : 1;", "  [] s=1 : 1;", 32, "line 30 says that the structure has none"),
        ("  s=1 : 1;", "  s=1 : 0;", 32, "where it would write 'endrewards'"),
        ("  [] s=1 : 2.5;", "  [] s=1 : 1e999;", 36, "1e999 is beyond the largest double"),
        ("  [] s=1 : 2.5;", "  [] s=1 : 5/2;", 36, "5/2 is no decimal number"),
        ("  [] s=1 : 2.5;", "  [] s=1 : -0.0;", 36, "is no reward of the form"),
        (
            "  true : 0;\nendrewards\n",
            "  true : 0;\n",
            40,
            "the file ends after this line, where tracebridge would go on",
        ),
        ("endrewards\n", "endrewards\n// a note\n", 34, "'// a note' where it would write"),
        ("// A Markov", "// Markov", 2, "undo the edit, or take away the first line (//= tracebridge dtmc ...)"),
        ("dtmc 1,", "dtmc 3,", 1, "format 3; this version of tracebridge reads formats 1 and 2"),
        ("exact, initial", "about, initial", 1, "was not written by tracebridge"),
        ('endrewards\n\nrewards "none"', 'endrewards\nrewards "none"', 38, "where it would write ''"),
        ('"gave up"\n', '"\\u{110000}"\n', 16, "a character that does not exist"),
    ],
)
def test_an_edit_that_the_file_does_not_reflect_is_found_at_its_line(
    old: str, new: str, line: int, message: str
) -> None:
    assert old in SMALL_TEXT
    text = SMALL_TEXT.replace(old, new, 1)
    with pytest.raises(ModelError, match=re.escape(message)) as raised:
        read_own_prism(text, path="edited.prism")
    location = raised.value.problems[0].location
    assert (location.path, location.line) == ("edited.prism", line)
    assert line <= len(text.splitlines())


@given(st.integers(0, len(SMALL_TEXT)), st.integers(0, 40), st.sampled_from(["", "0", "7", ";", "\n", '"', "s=9"]))
def test_any_edit_is_read_or_refused_at_a_line_of_the_file(start: int, length: int, new: str) -> None:
    text = SMALL_TEXT[:start] + new + SMALL_TEXT[start + length :]
    try:
        chain = read_own_prism(text)
    except ModelError as error:
        for problem in error.problems:
            assert problem.location.line is not None
            assert 1 <= problem.location.line <= max(1, len(text.rstrip("\n").split("\n")))
    else:
        assert single_start(chain).n_states == chain.n_states + 1


def test_every_bad_line_is_listed() -> None:
    text = SMALL_TEXT.replace("13/57", "14/57").replace("2/4", "1/4").replace("5/8", "6/8")
    with pytest.raises(ModelError) as raised:
        read_own_prism(text)
    assert [problem.location.line for problem in raised.value.problems] == [13, 14, 17]
    assert "'plan': its row sums to 58/57" in str(raised.value)
    assert "'tool-call': its row sums to 3/4" in str(raised.value)
    assert "the initial distribution sums to 9/8" in str(raised.value)


FLOATS = """//= tracebridge dtmc 1, transitions float, initial float
// A Markov chain of 2 states. The comment behind a command names its state; that behind a
// label or a reward structure gives the name that its identifier stands for. In a name, \\u{hex} is the
// character of that code point. tracebridge restores the chain from these comments exactly.
// Probabilities are doubles, digit by digit: a row sums to one up to their rounding only.

dtmc

module chain
  s : [0..1] init 0;

  [] s=0 -> 0.25:(s'=0) + 0.75:(s'=1);  // "try"
  [] s=1 -> 1.0:(s'=1);  // "done"
endmodule

label "try" = s=0;  // state "try"
label "done" = s=1;  // state "done"
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("0.75", "0.749", 12, "state 'try': its row sums to 0.999"),
        ("0.75", "1e308", 12, "state 'try': its row sums to 1e+308"),
        ("0.25:(s'=0) + 0.75", "1e308:(s'=0) + 1e308", 12, "state 'try': its row sums to inf"),
        ("0.75", "0.0", 12, "the branch to s'=1 has the probability 0"),
        ("0.75", "3/4", 12, "3/4 is no decimal number"),
        ("0.75", "-0.75", 12, "is no branch"),
        ("init 0", "init 77", 10, "init 77, but the states are s=0 to s=1"),
        ("init 0;", "init 0;  // mass 0.9", 10, "the initial mass sums to 0.9"),
        ('  [] s=1 -> 1.0:(s\'=1);  // "done"\n', "", 13, "state s=1, 'done', has no command, which should be here"),
        ("  [] s=0 -> 0.25:(s'=0) + 0.75:(s'=1);  // \"try\"\n", "", 12, "state s=0, 'try', has no command"),
    ],
)
def test_an_edit_of_a_file_of_doubles_is_found_at_its_line(old: str, new: str, line: int, message: str) -> None:
    assert read_own_prism(FLOATS).n_states == 2
    assert old in FLOATS
    with pytest.raises(ModelError, match=re.escape(message)) as raised:
        read_own_prism(FLOATS.replace(old, new, 1))
    assert raised.value.problems[0].location.line == line


def test_a_row_with_different_denominators_is_read_as_what_it_is() -> None:
    """In any order of branches, and over their common denominator."""
    text = SMALL_TEXT.replace("2/4:(s'=0) + 1/4:(s'=2) + 1/4:(s'=3)", "1/4:(s'=3) + 1/2:(s'=0) + 3/12:(s'=2)")
    chain = read_own_prism(text)
    assert chain.rationals is not None
    assert chain.rationals.row(1) == {0: Fraction(1, 2), 2: Fraction(1, 4), 3: Fraction(1, 4)}
    assert format_prism(chain) == SMALL_TEXT.replace(
        "2/4:(s'=0) + 1/4:(s'=2) + 1/4", "6/12:(s'=0) + 3/12:(s'=2) + 3/12"
    )


def test_an_initial_distribution_with_different_denominators_is_read_as_what_it_is() -> None:
    chain = read_own_prism(SMALL_TEXT.replace("5/8:(s'=0) + 3/8:(s'=1)", "1/3:(s'=0) + 4/6:(s'=1)"))
    assert chain.exact_initial() == [Fraction(1, 3), Fraction(2, 3), 0, 0]


def test_rewards_may_be_reduced_and_doubles_spelled_in_another_way() -> None:
    halves = SMALL_TEXT.replace("state 1, action none", "state 4, action none").replace("  s=1 : 1;", "  s=1 : 1/2;")
    assert read_own_prism(halves).rewards["steps"].fractions(action=False) == [1, Fraction(1, 2), 0, 0]
    assert read_own_prism(SMALL_TEXT.replace(": 2.5;", ": 25e-1;")).rewards["cost €"].per_step.tolist() == [
        0,
        2.5,
        0,
        0,
    ]
    assert_identical(read_own_prism(FLOATS.replace("0.75", "0.750")), read_own_prism(FLOATS))


def test_a_common_denominator_too_long_to_write_is_refused() -> None:
    row = " + ".join(f"1/{base**3000}:(s'={i})" for i, base in enumerate((3, 5, 7, 11)))
    text = SMALL_TEXT.replace("2/4:(s'=0) + 1/4:(s'=2) + 1/4:(s'=3)", row)
    with pytest.raises(ModelError, match="the common denominator of the probabilities has more than 14000 bits"):
        read_own_prism(text)


def test_the_end_of_the_file_may_have_been_trimmed() -> None:
    assert_identical(read_own_prism(SMALL_TEXT.rstrip("\n")), SMALL)
    assert_identical(read_own_prism(SMALL_TEXT + "\n\n"), SMALL)


@pytest.mark.parametrize("end", range(1, SMALL_TEXT.count("\n")))
def test_a_file_cut_short_is_refused_at_a_line_that_it_has(end: int) -> None:
    """Except where it is whole without its last reward structures."""
    text = "".join(SMALL_TEXT.splitlines(keepends=True)[:end])
    kept = text.rstrip("\n") + "\n"
    first = list(SMALL.rewards.items())
    wholes = [format_prism(replace(SMALL, rewards=dict(first[:k]))) for k in range(3)]
    if kept in wholes:
        assert format_prism(read_own_prism(text)) == kept
        return
    with pytest.raises(ModelError) as raised:
        read_own_prism(text)
    assert all(1 <= (problem.location.line or 0) <= end for problem in raised.value.problems)


def test_no_file_holds_a_negative_zero() -> None:
    chain = MarkovChain(
        states=("a", "b", "c"),
        transitions=[[-0.0, 1, 0], [0.5, -0.0, 0.5], [0, 0, 1]],  # type: ignore[arg-type]
        initial=[0.5, -0.0, 0.5],  # type: ignore[arg-type]
        rewards={"r": RewardStructure(state=np.array([-0.0, 1, 0]), action=np.array([-0.0, 0, -0.0]))},
    )
    for written in (chain, single_start(chain)):
        text = format_prism(written)
        assert "-0" not in text
        assert_identical(read_own_prism(text), written)


@pytest.mark.storm
def test_without_its_first_line_an_edited_file_is_read_as_any_prism_model(tmp_path: Path) -> None:
    """As the hint of every refusal says."""
    pytest.importorskip("stormpy")
    edited = FLOATS.replace("s'=0) + 0.75", "s'=0) + 0.5:(s'=1) + 0.25").replace('// "try"', "// of mine")
    path = tmp_path / "edited.prism"
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(ModelError, match="take away the first line"):
        read_model(path)
    path.write_text(edited.split("\n", 1)[1], encoding="utf-8")
    chain = read_model(path).chain
    assert chain.transitions.toarray().tolist() == [[0.25, 0.75], [0, 1]]


def test_an_edit_that_keeps_the_form_is_read() -> None:
    chain = read_own_prism(SMALL_TEXT.replace("13/57", "14/57").replace("44/57", "43/57"))
    assert chain.rationals is not None
    assert chain.rationals.row(0) == {0: Fraction(14, 57), 1: Fraction(43, 57)}


@pytest.mark.parametrize("text", ["", "dtmc\n", "//= tracebridge dtmc 1, transitions exact, initial exact\n"])
def test_texts_without_a_chain_are_refused(text: str) -> None:
    with pytest.raises(ModelError):
        read_own_prism(text)


def test_a_short_text_cannot_ask_for_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracebridge.export.prism_reader._MAX_LABEL_ENTRIES", 11)
    with pytest.raises(ModelError, match="3 labels over 4 states are more than can be held"):
        read_own_prism(SMALL_TEXT)


# ---------------------------------------------------------------- Storm


def ask_storm(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    pytest.importorskip("stormpy")
    command = [sys.executable, str(STORM)]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, timeout=300, check=True)
    answers = json.loads(done.stdout)
    assert not [answer["error"] for answer in answers if "error" in answer]
    return list(answers)


def built_chain(answer: dict[str, Any], *, exact: bool) -> MarkovChain:
    """What Storm built, as a chain whose states are called ``s=<value>``."""
    n = len(answer["states"])
    rows = [{j: Fraction(value) for j, value in row} for row in answer["rows"]]
    matrix = RationalMatrix.from_rows(rows, n)
    rewards = {}
    for name, parts in answer["rewards"].items():
        vectors = {part: values and [Fraction(value) for value in values] for part, values in parts.items()}
        structure = RewardStructure.from_fractions(vectors["state"] or [0] * n, vectors["action"])
        rewards[name] = structure if exact else RewardStructure(state=structure.state, action=structure.action)
    return MarkovChain(
        states=tuple(f"s={state['s']}" for state in answer["states"]),
        transitions=matrix if exact else matrix.to_float(),  # type: ignore[arg-type]
        initial=RationalVector(np.eye(1, n, answer["start"], dtype=np.int64)[0], 1),  # type: ignore[arg-type]
        labels={
            name: np.isin(np.arange(n), members)
            for name, members in answer["labels"].items()
            if name not in IMPLICIT_LABELS
        },
        rewards=rewards,
    )


@pytest.mark.storm
def test_storm_builds_what_was_written_and_it_comes_back() -> None:
    """With Storm's exploration checks where all numbers are rational: rows sum to one exactly for Storm, too."""
    chains = [random_chain(Random(seed)) for seed in range(60)]
    exact = [chain.is_exact for chain in chains]
    assert 10 < sum(exact) < 50
    texts = [format_prism(chain) for chain in chains]
    requests = [{"program": text, "exact": flag, "formulas": []} for text, flag in zip(texts, exact, strict=True)]
    for chain, text, flag, answer in zip(chains, texts, exact, ask_storm(requests), strict=True):
        assert answer["labels"]["deadlock"] == []
        built = built_chain(answer, exact=flag)
        assert built.n_states == single_start(chain).reachable_states().sum()
        assert_identical(restore_chain(built, text), chain)


@pytest.mark.storm
def test_the_importer_of_any_prism_file_and_the_reader_of_ours_agree() -> None:
    """Through the project's own Storm worker, which knows nothing of these files."""
    pytest.importorskip("stormpy")
    with StormWorker() as worker:
        for seed in range(1000, 1025):
            chain = random_chain(Random(seed))
            text = format_prism(chain)
            built = build_prism_chain(text, worker=worker)
            assert_identical(restore_chain(built, text), chain)


@pytest.mark.storm
def test_a_thousand_states_through_storm() -> None:
    chain = next(chain for seed in count() if (chain := random_chain(Random(seed), 1000)).is_exact)
    text = format_prism(chain)
    (answer,) = ask_storm([{"program": text, "exact": True, "formulas": []}])
    assert len(answer["states"]) > 500
    assert_identical(restore_chain(built_chain(answer, exact=True), text), chain)


def small_built() -> MarkovChain:
    return MarkovChain(
        states=("s=4", "s=1", "s=0", "s=3", "s=2"),
        transitions=RationalMatrix.from_rows(  # type: ignore[arg-type]
            [
                {2: Fraction(5, 8), 1: Fraction(3, 8)},
                {2: Fraction(1, 2), 4: Fraction(1, 4), 3: Fraction(1, 4)},
                {2: Fraction(13, 57), 1: Fraction(44, 57)},
                {3: Fraction(1)},
                {4: Fraction(1)},
            ]
        ),
        initial=[1, 0, 0, 0, 0],  # type: ignore[arg-type]
        labels={
            "success": [0, 0, 0, 0, 1],
            "min_x_": [0, 1, 1, 1, 0],
            "never": [0, 0, 0, 0, 0],
            "plan": [0, 0, 1, 0, 0],
            "tool_x2d_call": [0, 1, 0, 0, 0],
            "done": [0, 0, 0, 0, 1],
            "gave_x20_up": [0, 0, 0, 1, 0],
            "start": [1, 0, 0, 0, 0],
            "initial": [0, 1, 1, 0, 0],
        },
        rewards={
            "steps": RewardStructure.from_fractions([0, 1, 1, 0, 0]),
            "cost_x20__x20ac_": RewardStructure.from_fractions([0] * 5, [0, Fraction(5, 2), 0, 0, 0]),
            "none": RewardStructure.from_fractions([0] * 5),
        },
    )


def changed(chain: MarkovChain, **parts: Any) -> MarkovChain:
    kept = {name: getattr(chain, name) for name in ("states", "transitions", "initial", "labels", "rewards")}
    return MarkovChain(**{**kept, **parts})


def test_a_chain_comes_back_from_a_tool_that_orders_states_its_own_way() -> None:
    assert_identical(restore_chain(small_built(), SMALL_TEXT), SMALL)
    assert_identical(restore_chain(changed(small_built()), SMALL_TEXT), SMALL)  # in doubles


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"states": ("s=4", "s=1", "s=0", "s=3", "s=7")}, "only one of them has s=2, s=7"),
        ({"states": ("s=4", "s=0", "s=1", "s=3", "s=2")}, "the commands of s=4 differ"),
        ({"initial": [0, 1, 0, 0, 0]}, "the initial states differ"),
        ({"labels": {**small_built().labels, "never": [1, 0, 0, 0, 0]}}, 'the label "never" differs'),
        ({"labels": {}}, 'the label "success" differs'),
        ({"rewards": {}}, 'the reward structure "steps" differs'),
        ({"rewards": {**small_built().rewards, "none": RewardStructure.from_fractions([1] * 5)}}, '"none" differs'),
    ],
)
def test_a_tool_that_built_another_chain_is_noticed(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        restore_chain(changed(small_built(), **parts), SMALL_TEXT, path="small.prism")


def test_a_file_of_other_origin_passes_through() -> None:
    built = small_built()
    assert restore_chain(built, SMALL_TEXT.split("\n", 1)[1]) is built


# ---------------------------------------------------------------- what the file says


@given(random_chains)
def test_the_chain_that_a_file_says_has_one_start_and_the_same_steps(chain: MarkovChain) -> None:
    written = single_start(chain)
    assert written.initial.tolist().count(1.0) == 1
    n = chain.n_states
    assert np.array_equal(written.transitions[:n, :n].toarray(), chain.transitions.toarray())
    start = int(written.initial.argmax())
    if written.n_states == n:
        assert chain.initial[start] > 0
    else:
        assert start == n
        assert not written.transitions[:, [n]].nnz
        first = written.exact_transitions().row(n)
        assert first == pytest.approx({i: value for i, value in enumerate(chain.exact_initial()) if value}, rel=1e-15)
        assert all(structure.per_step[n] == 0 for structure in written.rewards.values())
