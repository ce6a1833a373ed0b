"""DRN files: what is written, what comes back, what Storm reads in them, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.export.test_prism import SMALL, assert_identical, random_chain, random_chains
from tests.export.test_prism_variables import expanded_chain

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import ModelError, UsageError
from tracebridge.export.drn import write_drn
from tracebridge.export.drn_reader import is_drn, read_drn
from tracebridge.export.explicit import write_explicit
from tracebridge.export.explicit_reader import read_explicit
from tracebridge.export.single_start import single_start

FIXTURES = Path(__file__).parent / "fixtures" / "storm"
REFERENCE = Path(__file__).parent / "storm_explicit_reference.py"

HEAD = "@type: DTMC\n@value_type: double\n@parameters\n\n@reward_models\ncost\n@nr_states\n2\n@nr_choices\n2\n@model\n"
BODY = "state 0 [1] init\n\taction 0 [0.5]\n\t\t0 : 0.25\n\t\t1 : 0.75\nstate 1 [0] done\n\taction 0 [0]\n\t\t1 : 1\n"

FIRST_LINES_OF_THE_MODEL = """\
@type: DTMC
@value_type: rational
@parameters

@reward_models
steps cost_x20__x20ac_ none
@nr_states
5
@nr_choices
5
@model
state 0 [1,0,0] min_x_ initial plan
	action 0 [0,0,0]
		0 : 13/57
		1 : 44/57
state 1 [1,0,0] min_x_ initial tool_x2d_call
	action 0 [0,2.5,0]
		0 : 2/4
		2 : 1/4
		3 : 1/4
"""


def ask_storm(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    process = subprocess.run(
        [sys.executable, str(REFERENCE)], input=json.dumps(requests), capture_output=True, text=True, check=True
    )
    answers: list[dict[str, Any]] = json.loads(process.stdout)
    return answers


# ---------------------------------------------------------------- there and back


@given(chain=random_chains)
@settings(max_examples=60)
def test_a_chain_comes_back_identical(chain: MarkovChain, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("drn") / "chain.drn"
    write_drn(chain, path)
    text = path.read_text("utf-8")
    assert is_drn(text[:4096])
    assert_identical(chain, read_drn(path))
    write_drn(read_drn(path), path)
    assert path.read_text("utf-8") == text


def test_line_ends_of_windows_and_variables_and_constants(tmp_path: Path) -> None:
    chain = MarkovChain(
        states=("a", "b"),
        transitions=np.array([[0.1, 0.9], [0.0, 1.0]]),
        initial=np.array([0.3, 0.7]),
        variables={"k": np.array([1, -2]), "on": np.array([True, False]), "x": np.array([0.1, 5e-324])},
        constants={"third": Fraction(-1, 3), "flag": True},
    )
    path = tmp_path / "chain.drn"
    write_drn(chain, path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    found = read_drn(path)
    assert_identical(chain, found)
    assert found.constants == chain.constants
    assert list(found.variables) == list(chain.variables)
    for name, values in chain.variables.items():
        assert found.variables[name].dtype == values.dtype
        assert np.array_equal(found.variables[name], values)


@pytest.mark.parametrize("name", ["order2", "group:model+order2+clock:0,1+phases:2+classes:2"])
def test_states_with_memory_keep_their_variables(tmp_path: Path, name: str) -> None:
    chain = expanded_chain(name)
    write_drn(chain, tmp_path / "chain.drn")
    for found in (read_drn(tmp_path / "chain.drn"), read_explicit(write_explicit(chain, tmp_path)[0])):
        assert_identical(chain, found)
        assert list(found.variables) == list(chain.variables)
        assert all(np.array_equal(found.variables[word], values) for word, values in chain.variables.items())


def test_the_model_reads_as_the_format_has_it(tmp_path: Path) -> None:
    write_drn(SMALL, tmp_path / "small.drn")
    text = (tmp_path / "small.drn").read_text("utf-8")
    assert text[text.index("@type") :].startswith(FIRST_LINES_OF_THE_MODEL)


def test_extreme_doubles_keep_every_bit(tmp_path: Path) -> None:
    tiny = np.array([[5e-324, 1.0], [1e-17, 1.0]])
    rewards = {"r": RewardStructure(state=np.array([5e-324, 1.7976931348623157e308]))}
    chain = MarkovChain(states=("a", "b"), transitions=tiny, initial=np.array([1.0, 0.0]), rewards=rewards)
    write_drn(chain, tmp_path / "tiny.drn")
    assert_identical(chain, read_drn(tmp_path / "tiny.drn"))


def test_integers_that_could_not_be_read_back_are_not_written(tmp_path: Path) -> None:
    huge = 10**4400
    rows = RationalMatrix.from_rows([{0: Fraction(1, huge), 1: 1 - Fraction(1, huge)}, {1: Fraction(1)}])
    with pytest.raises((UsageError, ModelError)):  # the constructor refuses what rounds to zero
        write_drn(MarkovChain(states=("a", "b"), transitions=rows, initial=np.array([1.0, 0.0])), tmp_path / "x.drn")  # type: ignore[arg-type]
    rows = RationalMatrix.from_rows([{0: Fraction(huge // 2, huge + 1), 1: 1 - Fraction(huge // 2, huge + 1)}, {1: 1}])  # type: ignore[dict-item]
    chain = MarkovChain(states=("a", "b"), transitions=rows, initial=np.array([1.0, 0.0]))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="too long"):
        write_drn(chain, tmp_path / "y.drn")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- Storm


@pytest.mark.storm
def test_storm_reads_the_very_chain(tmp_path: Path) -> None:
    chains = [SMALL, *(random_chain(Random(seed)) for seed in range(25))]
    requests: list[dict[str, Any]] = []
    for k, chain in enumerate(chains):
        path = tmp_path / f"{k}.drn"
        write_drn(chain, path)
        requests.append({"drn": str(path), "exact": chain.rationals is not None})
    for chain, found in zip(chains, ask_storm(requests), strict=True):
        written = single_start(chain)
        kind: Any = Fraction if written.rationals is not None else float
        rows = [{j: kind(value) for j, value in row} for row in found["rows"]]
        matrix = written.transitions
        for i, row in enumerate(rows):
            cut = slice(matrix.indptr[i], matrix.indptr[i + 1])
            doubles = dict(zip(matrix.indices[cut].tolist(), matrix.data[cut].tolist(), strict=True))
            assert row == (doubles if written.rationals is None else written.rationals.row(i))
        for name, mask in written.labels.items():  # one that holds nowhere cannot be said
            assert found["labels"].get(name, []) == np.flatnonzero(mask).tolist()
        assert found["labels"]["init"] == np.flatnonzero(written.initial).tolist()
        for i, name in enumerate(written.states):
            assert found["labels"][name] == [i]
        for name, structure in written.rewards.items():
            for part, values in (("state", structure.state), ("action", structure.action)):
                held = found["rewards"].get(name, {}).get(part) or ["0"] * written.n_states
                expected = np.zeros(written.n_states) if values is None else values
                assert [float(kind(x)) for x in held] == expected.tolist()


@pytest.mark.parametrize("kind", ["double", "rational"])
def test_what_storm_wrote(kind: str) -> None:
    """Storm explored s=1 first, so that it is state 0; the numbers are those of the program it was given."""
    chain = read_drn(FIXTURES / f"retry-{kind}.drn")
    assert chain.states == ("s=0", "s=1", "s=2", "s=3")
    third = Fraction(1, 3)
    expected = [[0, Fraction(1, 4), Fraction(3, 4), 0], [third, 0, 0, 2 * third], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert np.array_equal(chain.transitions.toarray(), np.array([[float(x) for x in row] for row in expected]))
    assert (chain.rationals is not None) == chain.is_exact == (kind == "rational")
    if chain.rationals is not None:
        assert [chain.rationals.row(i) for i in range(4)] == [
            {j: x for j, x in enumerate(row) if x} for row in expected
        ]
        assert chain.rewards["cost"].fractions(action=True) == [2, third, 0, 0]
    assert chain.initial.tolist() == [1, 0, 0, 0]
    assert {name: np.flatnonzero(mask).tolist() for name, mask in chain.labels.items()} == {
        "again": [0],
        "done": [2, 3],
    }
    assert list(chain.rewards) == ["cost", "steps"]
    assert chain.rewards["steps"].state.tolist() == [1, 1, 0, 0]
    assert chain.rewards["steps"].action is None
    assert chain.rewards["cost"].state.tolist() == [0, 1 / 3, 0, 0]


def test_labels_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "quoted.drn"
    path.write_text(HEAD + BODY.replace("done", '"all done" "x : y"other'), "utf-8")
    assert list(read_drn(path).labels) == ["all done", "x : y", "other"]


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("@type: DTMC", "@type: MDP", 1, "MDP"),
        ("double", "parametric", 2, "parametric"),
        ("double", "double-interval", 2, "double-interval"),
        ("@parameters\n\n", "@parameters\np q\n", 4, "parameters 'p q'"),
        ("@parameters\n\n", "@placeholders\n$0 : 0.5\n", 3, "placeholders"),
        ("@parameters\n\n", "@type: DTMC\n", 3, "twice"),
        ("@parameters\n\n", "@colour: red\n", 3, "@colour"),
        ("@nr_states\n2", "@nr_states\nmany", 8, "number of states"),
        ("@nr_states\n2\n@nr_choices\n2", "@nr_states\n2\n@nr_choices\n3", 10, "number of states"),
        (
            "@nr_states\n2\n@nr_choices\n2",
            "@nr_states\n999999999999\n@nr_choices\n999999999999",
            None,
            "2 states where",
        ),
        ("@model\n" + BODY, "", None, "before a line @model"),
        ("0.75", "0.74", 14, "sum to 0.99 "),
        ("0.75", "0.7500001", 14, "sum to 1.00000009999"),
        ("0.75", "nan", 15, "'nan' is no finite"),
        ("0.75", "1e999", 15, "'1e999' is no finite"),
        ("0.75", "-0.75", 15, "'-0.75' is no finite"),
        ("0.75", "7_5", 15, "'7_5' is no finite"),
        ("0.75", "$0", 15, "placeholders"),
        ("1 : 0.75", "1 : 0", 15, "probability is 0"),
        ("1 : 0.75", "0 : 0.75", 15, "already given in line 14"),
        ("1 : 0.75", "2 : 0.75", 15, "target 2 is no state"),
        ("1 : 0.75", f"{'9' * 40} : 0.75", 15, "no state"),
        ("1 : 0.75", "1 0.75", 15, "no state, action or transition"),
        ("state 1", "state 2", 16, "state 2 where state 1"),
        ("state 1 [0]", "state 1 [0, 1]", 16, "2 rewards"),
        ("state 1 [0]", "state 1 [-1]", 16, "'-1' is no finite"),
        ("state 1 [0]", "state 1 [inf]", 16, "'inf' is no finite"),
        ("\t\t1 : 1\n", "\t\t1 : 1\n\taction 1 [0]\n\t\t0 : 1\n", 19, "second action"),
        ("\taction 0 [0]\n", "", 17, "below an action"),
        ("\t\t1 : 1\n", "", None, "state 1 has no transitions"),
        (" init", "", None, "init"),
        (" done", " init", None, "2 states"),
        (" done", " deadlock", None, "deadlock"),
        (" done", ' "done', 16, "no line 'state"),
        ("cost", "cost cost", 6, "same name"),
    ],
)
def test_what_is_refused_and_where(tmp_path: Path, old: str, new: str, line: int | None, message: str) -> None:
    path = tmp_path / "bad.drn"
    assert old in HEAD + BODY
    path.write_text((HEAD + BODY).replace(old, new, 1), "utf-8")
    with pytest.raises(ModelError) as caught:
        read_drn(path)
    (problem,) = caught.value.problems
    assert message in str(problem)
    assert (problem.location.path, problem.location.line) == (str(path), line)


def test_deadlocks_are_fixed_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "dead.drn"
    path.write_text((HEAD + BODY).replace("\t\t1 : 1\n", "").replace("done", "deadlock"), "utf-8")
    chain = read_drn(path, fix_deadlocks=True)
    assert chain.transitions.toarray().tolist() == [[0.25, 0.75], [0, 1]]
    assert dict(chain.labels) == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"plan"', '"done"', "two states are called 'done'"),
        ('//=   "plan",\n', "", "3 states are named where the file has 4"),
        ('"0": "5"', '"0": "4"', "sums to 7/8"),
        ('"0": "5",\n//=    "1": "3"', '"0": "3",\n//=    "1": "5"', "other probabilities"),
        ('"0": "5"', '"9": "5"', "no state 9"),
        ('"denominator": "8"', '"denominator": "0"', "no denominator"),
        ('"exact": true', '"exact": false', "not of this kind"),
        ('"schema_version": 1', '"schema_version": 7', "version 7"),
        ("state 2 [0,0,0] success", "state 2 [0,0,0] success more", "'more', which is not named"),
        ("state 4 [0,0,0] init", "state 4 [0,0,0] init success", "added first state"),
        ("state 0 [1,0,0]", "state 0 [2,0,0]", "other rewards 'steps'"),
        ("steps cost_x20__x20ac_ none", "steps cost none", "no reward structure"),
    ],
)
def test_names_that_do_not_fit_the_model(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "small.drn"
    write_drn(SMALL, path)
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(ModelError, match=message):
        read_drn(path)


def test_a_probability_may_be_edited(tmp_path: Path) -> None:
    path = tmp_path / "small.drn"
    write_drn(SMALL, path)
    path.write_text(path.read_text("utf-8").replace("13/57", "1/3").replace("44/57", "2/3"), "utf-8")
    chain = read_drn(path)
    assert chain.states == SMALL.states
    assert chain.exact_transitions().row(0) == {0: Fraction(1, 3), 1: Fraction(2, 3)}


def test_what_begins_as_drn() -> None:
    assert is_drn((FIXTURES / "retry-double.drn").read_text("utf-8"))
    assert is_drn("// by hand\n\n@value_type: double\n@type: dtmc\n")
    assert not is_drn("dtmc\n0 1 0.5\n")
    assert not is_drn("// a PRISM model\ndtmc\nmodule m\n")
    assert not is_drn("")
