"""Explicit files of PRISM and of Storm: what is written, what comes back, what the tools wrote, and what is refused."""

from __future__ import annotations

import shutil
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from tests.export.test_drn import ask_storm
from tests.export.test_prism import SMALL, assert_identical, random_chains

from tracebridge.chain.markov import MarkovChain
from tracebridge.errors import ModelError, UsageError
from tracebridge.export import name_record
from tracebridge.export.drn import write_drn
from tracebridge.export.drn_reader import read_drn
from tracebridge.export.explicit import Dialect, write_explicit
from tracebridge.export.explicit_reader import is_tra, read_explicit
from tracebridge.export.name_record import in_doubles
from tracebridge.export.single_start import single_start

FIXTURES = Path(__file__).parent / "fixtures"

TEXTS = {
    "small.tra": "5 9\n0 0 13/57\n0 1 44/57\n1 0 2/4\n1 2 1/4\n1 3 1/4\n2 2 1\n3 3 1\n4 0 5/8\n4 1 3/8\n",
    "small.lab": (
        '0="init" 1="deadlock" 2="success" 3="min_x_" 4="never" 5="initial" 6="plan" 7="tool_x2d_call" 8="done" '
        '9="gave_x20_up" 10="start"\n0: 3 5 6\n1: 3 5 7\n2: 2 8\n3: 3 9\n4: 0 10\n'
    ),
    "small.sta": "(s)\n0:(0)\n1:(1)\n2:(2)\n3:(3)\n4:(4)\n",
    "small1.srew": '# Reward structure "steps"\n# State rewards\n5 2\n0 1\n1 1\n',
    "small1.trew": '# Reward structure "steps"\n# Transition rewards\n5 0\n',
    "small2.srew": '# Reward structure "cost_x20__x20ac_"\n# State rewards\n5 0\n',
    "small2.trew": '# Reward structure "cost_x20__x20ac_"\n# Transition rewards\n5 3\n1 0 2.5\n1 2 2.5\n1 3 2.5\n',
    "small3.srew": '# Reward structure "none"\n# State rewards\n5 0\n',
    "small3.trew": '# Reward structure "none"\n# Transition rewards\n5 0\n',
}


# ---------------------------------------------------------------- there and back


@given(chain=random_chains)
@settings(max_examples=60)
def test_a_chain_comes_back_identical(chain: MarkovChain, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("explicit")
    paths = write_explicit(chain, folder / "chain")
    assert is_tra(paths[0].read_text("utf-8")[:4096])
    assert_identical(chain, read_explicit(paths[0]))
    before = {path: path.read_bytes() for path in paths}
    assert {path: path.read_bytes() for path in write_explicit(read_explicit(paths[0]), folder / "chain")} == before


@given(chain=random_chains)
@settings(max_examples=30)
def test_in_doubles_for_either_tool(chain: MarkovChain, tmp_path_factory: pytest.TempPathFactory) -> None:
    dialects: tuple[Dialect, ...] = ("prism", "storm")
    for dialect in dialects:
        path = write_explicit(chain, tmp_path_factory.mktemp("doubles"), dialect=dialect, exact=False)[0]
        assert path.name == "model.tra"
        assert "/" not in path.read_text("utf-8")
        assert_identical(in_doubles(chain), read_explicit(path))


def test_the_texts_of_a_small_chain(tmp_path: Path) -> None:
    paths = write_explicit(SMALL, tmp_path / "small.tra")
    assert [path.name for path in paths] == [*TEXTS, "small.names.json"]
    assert {path.name: path.read_text("utf-8") for path in paths[:-1]} == TEXTS


def test_fractions_are_not_for_storm(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="doubles only"):
        write_explicit(SMALL, tmp_path / "small", dialect="storm")
    assert not list(tmp_path.iterdir())


def test_many_states_are_no_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_record, "MAX_STATE_LABELS", 4)
    path = write_explicit(SMALL, tmp_path / "small")[0]
    assert "tool_x2d_call" not in path.with_suffix(".lab").read_text("utf-8")
    assert_identical(SMALL, read_explicit(path))


@pytest.mark.storm
def test_storm_reads_the_very_chain(tmp_path: Path) -> None:
    paths = write_explicit(SMALL, tmp_path / "small", dialect="storm", exact=False)
    requests = []
    for k in (1, 2, 3):  # Storm takes one structure at a time
        request = {suffix[1:]: str(paths[0].with_suffix(suffix)) for suffix in (".tra", ".lab")}
        requests.append(request | {part: str(tmp_path / f"small{k}.{part}") for part in ("srew", "trew")})
    written = single_start(in_doubles(SMALL))
    for found in ask_storm(requests):
        for i, row in enumerate(found["rows"]):
            cut = slice(written.transitions.indptr[i], written.transitions.indptr[i + 1])
            assert [j for j, _ in row] == written.transitions.indices[cut].tolist()
            assert [float(value) for _, value in row] == written.transitions.data[cut].tolist()
        for name, mask in written.labels.items():
            assert found["labels"][name] == np.flatnonzero(mask).tolist()
        assert found["labels"]["init"] == [4]
    assert ask_storm(requests[:1])[0]["rewards"][""]["state"] == ["1.0", "1.0", "0.0", "0.0", "0.0"]


# ---------------------------------------------------------------- files of the tools


def test_files_as_prism_writes_them() -> None:
    chain = read_explicit(FIXTURES / "prism" / "retry.tra")
    assert chain.states == ("s=0,ok=false", "s=1,ok=false", "s=2,ok=false", "s=2,ok=true")
    rows = [[0, 1 / 3, 2 / 3, 0], [0.25, 0, 0, 0.75], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert np.array_equal(chain.transitions.toarray(), np.array(rows))
    assert chain.initial.tolist() == [1, 0, 0, 0]
    assert {name: np.flatnonzero(mask).tolist() for name, mask in chain.labels.items()} == {
        "done": [2, 3],
        "again": [1],
    }
    assert chain.variables["s"].tolist() == [0, 1, 2, 2]
    assert chain.variables["ok"].tolist() == [False, False, False, True]
    assert chain.rewards["steps"].state.tolist() == [1, 1, 0, 0]
    assert chain.rewards["steps"].action is None
    action = chain.rewards["cost"].action
    assert action is not None
    assert action.tolist() == [0.5, 1.5, 0, 0]  # the same on both transitions; 3/4 of 2 in the mean


def test_files_as_storm_has_them() -> None:
    chain = read_explicit(FIXTURES / "storm" / "retry.tra")
    assert chain.states == ("s=0", "s=1", "s=2", "s=3")
    assert chain.transitions.toarray().tolist() == [[0, 0.5, 0.5, 0], [0.25, 0, 0, 0.75], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert chain.initial.tolist() == [0, 1, 0, 0]
    assert {name: np.flatnonzero(mask).tolist() for name, mask in chain.labels.items()} == {
        "done": [2, 3],
        "again": [1],
    }
    assert chain.rewards["rewards"].state.tolist() == [1, 0.5, 0, 0]


def test_fractions_comments_and_actions_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "hand.tra"
    path.write_text("# Transitions (DTMC)\n2 3\n\n0 1 2/3 go\n # a remark\n0 0  1/3\tstay\n1 1 1.0\n", "utf-8")
    (tmp_path / "hand.trew").write_text("2 2\n0 0 1/2\n0 1 0.1\n", "utf-8")
    chain = read_explicit(path)
    assert chain.exact_transitions().row(0) == {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert chain.is_exact
    assert chain.rewards["rewards"].fractions(action=True) == [Fraction(1, 6) + Fraction(1, 15), 0]


def test_a_comment_with_a_slash_makes_no_fractions(tmp_path: Path) -> None:
    path = tmp_path / "comment.tra"
    path.write_text("2 3\n0 0 0.3333333333333333\n# 2/3\n0 1 0.6666666666666666\n1 1 1\n", "utf-8")
    assert read_explicit(path).rationals is None


def test_another_model_with_a_number_keeps_its_rewards(tmp_path: Path) -> None:
    for name in ("model.tra", "model1.tra"):
        (tmp_path / name).write_text("1 1\n0 0 1\n", "utf-8")
    (tmp_path / "model1.srew").write_text("1 1\n0 5\n", "utf-8")
    assert not read_explicit(tmp_path / "model.tra").rewards
    assert read_explicit(tmp_path / "model1.tra").rewards["rewards"].state.tolist() == [5]


def test_deadlocks_are_fixed_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "dead.tra"
    path.write_text("3 2\n0 1 1\n1 1 1\n", "utf-8")
    (tmp_path / "dead.lab").write_text('0="init" 1="deadlock"\n0: 0\n2: 1\n', "utf-8")
    with pytest.raises(ModelError, match="3 states cannot have 2 transitions"):
        read_explicit(path)
    assert read_explicit(path, fix_deadlocks=True).transitions.toarray()[2].tolist() == [0, 0, 1]


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "message"),
    [
        ("retry.tra", "4 6", "4 7", None, "6 transitions where it announces 7"),
        ("retry.tra", "4 6", "999999999999999 6", None, "999999999999999 states cannot have 6"),
        ("retry.tra", "4 6", "four", 1, "'four' should be the numbers"),
        ("retry.tra", "4 6", "4 4 6", 1, "should be the numbers"),
        ("retry.tra", "4 6", "mdp", 1, "type mdp"),
        ("retry.tra", "4 6", "# Transitions (CTMC)\n4 6", 1, "type CTMC"),
        ("retry.tra", "0 1 0.3", "0 1 0.2", 2, "state 0 sum to 0.8999"),
        ("retry.tra", "1 3 0.75", "1 3 0.7500000001", 4, "state 1 sum to 1.0000000001"),
        ("retry.tra", "1 3 0.75", "1 0 0.75", 5, "1 to 0 was already given in line 4"),
        ("retry.tra", "1 3 0.75", "1 4 0.75", 5, "target 4 is no state"),
        ("retry.tra", "1 3 0.75", "9 3 0.75", 5, "source 9 is no state"),
        ("retry.tra", "1 3 0.75", "1 -3 0.75", 5, "no line 'source target number'"),
        ("retry.tra", "1 3 0.75", "1 3 nan", 5, "no line 'source target number'"),
        ("retry.tra", "1 3 0.75", "1 3 -0.75", 5, "'-0.75' is no finite"),
        ("retry.tra", "1 3 0.75", "1 3 1e400", 5, "'1e400' is no finite"),
        ("retry.tra", "1 3 0.75", "1 3 0.7.5", 5, "'0.7.5' is no finite"),
        ("retry.tra", "1 3 0.75", "1 3 3/0", 5, "'3/0' is no finite"),
        ("retry.tra", "1 3 0.75", f"{'1' * 30} 3 0.75", 5, "no line 'source target number'"),
        ("retry.tra", "1 3 0.75", "1 3 0", 5, "probability is 0"),
        ("retry.tra", "3 3 1", "2 3 1", None, "state 3 has no transitions"),
        ("retry.lab", '1="deadlock"', '2="deadlock"', 1, "should declare the labels"),
        ("retry.lab", '"again"', '"done"', 1, "declared twice"),
        ("retry.lab", "1: 3", "1: 4", 3, "'4' is not declared"),
        ("retry.lab", "1: 3", "7: 3", 3, "no state 7"),
        ("retry.lab", "1: 3", "one", 3, "no line 'state: labels'"),
        ("retry.lab", "1: 3", "1: 0 3", None, "2 states"),
        ("retry.lab", "0: 0\n", "", None, "no states"),
        ("retry.lab", "3: 2", "3: 1 2", None, 'label "deadlock" holds in state 3'),
        ("retry.sta", "(s,ok)", "s ok", 1, "names of the variables"),
        ("retry.sta", "(s,ok)", "(s,s)", 1, "same name"),
        ("retry.sta", "2:(2,false)", "2:(2)", 4, "no line 'state:(values)'"),
        ("retry.sta", "2:(2,false)", "2:(2,0)", 4, "truth value in another"),
        ("retry.sta", "2:(2,false)", "1:(2,false)", 4, "state 1 is given twice"),
        ("retry.sta", "2:(2,false)", "8:(2,false)", 4, "state 8 does not exist"),
        ("retry.sta", "2:(2,false)\n", "", None, "state 2 is missing"),
        ("retry1.srew", "4 2", "5 2", 3, "for 5 states and the transitions for 4"),
        ("retry1.srew", "4 2", "4 3", None, "2 rewards where it announces 3"),
        ("retry1.srew", "1 1", "0 1", 5, "state 0 has a reward already"),
        ("retry1.srew", "1 1", "6 1", 5, "no state 6"),
        ("retry1.srew", "1 1", "1 inf", 5, "no line 'state reward'"),
        ("retry1.srew", "steps", "cost", None, "'steps' here and 'cost'"),
        ("retry2.trew", "1 3 2", "1 2 2", 6, "no transition from 1 to 2"),
        ("retry2.trew", "1 3 2", "0 2 2", 6, "from 0 to 2 has a reward already"),
    ],
)
def test_what_is_refused_and_where(
    tmp_path: Path, name: str, old: str, new: str, line: int | None, message: str
) -> None:
    shutil.copytree(FIXTURES / "prism", tmp_path, dirs_exist_ok=True)
    path = tmp_path / name
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(ModelError) as caught:
        read_explicit(tmp_path / "retry.tra")
    problem = caught.value.problems[0]
    assert message in str(problem)
    where = tmp_path / "retry1.trew" if "here and" in message else path
    assert (problem.location.path, problem.location.line) == (str(where), line)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#DECLARATION", "#LABELS", "should be #DECLARATION"),
        ("#END\n", "", "ends before #END"),
        ("2 done", "2 gone", "'gone' is not declared"),
    ],
)
def test_labels_of_storm_that_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    shutil.copytree(FIXTURES / "storm", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "retry.lab"
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(ModelError, match=message):
        read_explicit(tmp_path / "retry.tra")


def test_fractions_that_do_not_sum_to_one(tmp_path: Path) -> None:
    path = tmp_path / "sum.tra"
    path.write_text("2 3\n1 1 1\n0 0 1/3\n0 1 333333333333333333/500000000000000000\n", "utf-8")
    with pytest.raises(ModelError, match=r"sum\.tra:3: the probabilities of state 0 sum to 1499999999999999999/15"):
        read_explicit(path)


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such file"):
        read_explicit(tmp_path / "none.tra")
    (tmp_path / "empty.tra").write_text("", "utf-8")
    with pytest.raises(ModelError, match="no line of numbers"):
        read_explicit(tmp_path / "empty.tra")


def test_a_line_without_end_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.tra"
    with path.open("wb") as file:
        file.write(b"1 1\n")
        file.truncate(2**25)
    with pytest.raises(ModelError, match=r"long\.tra:2: the line has more than"):
        read_explicit(path)


def test_names_and_file_must_fit(tmp_path: Path) -> None:
    path = write_explicit(SMALL, tmp_path / "small")[0]
    path.write_text(path.read_text("utf-8").replace("4 0 5/8\n4 1 3/8", "4 0 1/8\n4 1 7/8"), "utf-8")
    with pytest.raises(ModelError, match="other probabilities"):
        read_explicit(path)


def test_a_damaged_file_is_read_or_refused(tmp_path: Path) -> None:
    """Never another exception, whatever stands in which file."""
    random = Random(7)
    pieces = [
        b"",
        b"\n",
        b" ",
        b"9",
        b"-",
        b"/",
        b"1e",
        b"\xff",
        b'"',
        b"[",
        b":",
        b"\0",
        b"9" * 25,
        b"nan",
        b"#",
        b"\r",
    ]
    write_drn(SMALL, tmp_path / "small.drn")
    for path in [tmp_path / "small.drn", *write_explicit(SMALL, tmp_path / "small")]:
        whole = path.read_bytes()
        for _ in range(25):
            start = random.randrange(len(whole))
            path.write_bytes(whole[:start] + random.choice(pieces) + whole[start + random.choice((0, 1, 5)) :])
            with suppress(ModelError):
                read_drn(path) if path.suffix == ".drn" else read_explicit(tmp_path / "small.tra")
        path.write_bytes(whole)
    assert_identical(SMALL, read_drn(tmp_path / "small.drn"))
    assert_identical(SMALL, read_explicit(tmp_path / "small.tra"))


def test_what_begins_as_transitions() -> None:
    for dialect in ("prism", "storm"):
        assert is_tra((FIXTURES / dialect / "retry.tra").read_text("utf-8"))
    assert is_tra("# Transitions (DTMC)\n2 2\n0 0 1/1\n")
    assert not is_tra("dtmc\nmodule m\n")
    assert not is_tra("@type: DTMC\n")
    assert not is_tra("3 4 5\n0 0 1 1\n")
    assert not is_tra("")
