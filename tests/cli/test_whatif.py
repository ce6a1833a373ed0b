"""``tracebridge whatif``: a local change, its effect, and the properties before and after."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.chain.expanded.random_models import random_model

from tracebridge import MarkovChain, RationalMatrix, RationalVector, write_model
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.cli import run

F = Fraction
TENTHS = [{0: 1, 1: 5, 2: 4}, {0: 1, 1: 2, 2: 3, 3: 3, 4: 1}, {1: 1, 2: 6, 4: 3}, {3: 10}, {4: 10}]
PROPS = '"often": P>=0.33 [ F "success" ];\n"soon": P=? [ F<=2 "success" ];\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    chain = MarkovChain(
        states=("s0", "s1", "s2", "success", "failure"),
        transitions=RationalMatrix.from_rows([{j: F(x, 10) for j, x in row.items()} for row in TENTHS]),
        initial=RationalVector.from_fractions([1, 0, 0, 0, 0]),
        labels={"absorbed": np.arange(5) > 2},
    )
    write_model(chain, "chain.json")
    (tmp_path / "my.props").write_text(PROPS)
    return tmp_path


def document(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out)


def test_the_effect_of_a_redirection(here, capsys):
    """The tail: s2 -> s1 with all that goes from s2 to failure: R_inf by hand from h0 = (5 h1 + 4 h2) / 9 and so on."""
    assert run(["whatif", "chain.json", "--redirect", "s2->failure:1->s1", "--d", "2", "--exact", "--json"]) == 0
    found = document(capsys)
    # Then s2 only ever leads to s1: h2 = h1, h0 = h1, and h1 = (h1 + 2 h1 + 3 h1 + 3) / 10 = 3 / 4.
    assert found["effects"]["R_inf"]["before"] == "24/79"
    assert found["effects"]["R_inf"]["after"] == "3/4"
    assert found["effects"]["R_inf"]["change"] == str(F(3, 4) - F(24, 79))
    assert found["effects"]["R_d"]["before"] == found["effects"]["R_d"]["after"] == "3/20"
    assert found["changes"] == {"s2": {"s1": "3/10", "failure": "-3/10"}}
    assert found["redirections"] == ["s2->failure:1->s1"]
    assert found["norm_bound"]["value"] is None
    assert found["properties"] == []


def test_first_order_stands_beside_the_exact_effect(here, capsys):
    assert (
        run(["whatif", "chain.json", "--redirect", "s2->s2:7/60->s1", "--json"]) == 0
    )  # moves .07, as in the golden one
    found = document(capsys)["effects"]["R_inf"]
    assert found["after"] == pytest.approx(0.346681922197, abs=1e-12)
    assert found["before"] + found["first_order"] == pytest.approx(0.351241788175, abs=1e-12)


def test_the_table(here, capsys):
    assert run(["whatif", "chain.json", "--redirect", "s2:0.3->s1"]) == 0
    shown = capsys.readouterr()
    assert "R_inf" in shown.out
    assert "R(10)" in shown.out
    assert "first order" in shown.out
    assert "norm bound" in shown.err


@pytest.mark.storm
def test_properties_are_checked_before_and_after_by_both_engines(here, capsys):
    arguments = ["whatif", "chain.json", "--redirect", "s2->s2:7/60->s1", "--property", "my.props"]
    assert run([*arguments, "--json"]) == 0
    often, soon = document(capsys)["properties"]
    assert (often["before"]["verdict"], often["after"]["verdict"]) == ("violated", "satisfied")
    for pair in (often, soon):
        assert pair["before"]["agree"] is True
        assert pair["after"]["agree"] is True
    assert run(arguments) == 0
    shown = capsys.readouterr()
    assert "often: violated before, satisfied after" in shown.err
    assert "soon" in shown.out


@pytest.mark.storm
def test_a_property_that_the_changed_chain_violates_is_the_exit_code(here, capsys):
    arguments = ["whatif", "chain.json", "--redirect", "s2:0.5->failure", "--property", "my.props", "--json"]
    assert run(arguments) == 1
    assert document(capsys)["exit_code"] == 1


def test_without_a_redirection_states_are_ranked(here, capsys):
    assert run(["whatif", "chain.json", "--json", "--exact"]) == 0
    ranking = document(capsys)["ranking"]
    assert {row["state"] for row in ranking} == {"s0", "s1", "s2"}
    assert all((row["best"], row["worst"]) == ("success", "failure") for row in ranking)
    assert [row["leverage"] for row in ranking] == sorted((row["leverage"] for row in ranking), reverse=True)
    assert run(["whatif", "chain.json"]) == 0
    assert "leverage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--redirect", "s9:0.3->s1"], 3, "no state 's9'"),
        (["--redirect", "s2:2->s1"], 2, "between 0 and 1"),
        (["--redirect", "nonsense"], 2, "STATE:SHARE->TARGET"),
        (["--redirect", "s2:1->s2"], 3, "'s2' would never be left"),
        (["--redirect", "success:0.5->s1"], 3, "'success' is where runs end"),
        (["--property", "my.props"], 2, "needs a --redirect"),
    ],
)
def test_what_cannot_be_done_is_said(here, capsys, arguments, code, message):
    assert run(["whatif", "chain.json", *arguments]) == code
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------- chains whose states remember more


@pytest.fixture
def expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MarkovChain:
    monkeypatch.chdir(tmp_path)
    model = random_model("order2+clock:0,1,3", seed=1)
    chain = ExpandedStructure.of_model(model).chain(model)
    write_model(chain, "chain.json")
    write_model(chain, "chain.prism")
    (tmp_path / "my.props").write_text('"soon": P=? [ F<=4 "success" ];\n"ever b": P=? [ F "b" ];\n')
    return chain


@pytest.mark.parametrize("path", ["chain.json", "chain.prism"])
def test_a_category_is_all_of_its_copies(expanded, path, capsys):
    arguments = ["whatif", path, "--redirect", "a->failure:1/2->b", "--d", "4"]
    assert run([*arguments, "--json"]) == 0
    found = document(capsys)
    copies = [name for name in expanded.states if name.startswith("a [")]
    assert list(found["changes"]) == copies
    assert found["remarks"][0] == f"a: all of its copies were changed ({len(copies)} states)"
    assert found["effects"]["R_inf"]["change"] > 0
    assert run(arguments) == 0
    shown = capsys.readouterr().err
    assert "a: all of its copies were changed" in shown
    assert "to b: to the copies of it that each state leads to anyway" in shown
    assert run(["whatif", path, "--redirect", f"{copies[0]}:0.5->success"]) == 0
    assert f"{copies[0]}: this state alone was changed" in capsys.readouterr().err


def test_categories_are_ranked(expanded, capsys):
    assert run(["whatif", "chain.json", "--json"]) == 0
    found = document(capsys)
    assert {row["state"] for row in found["ranking"]} == {"a", "b", "c"}
    assert sum(found["copies"].values()) == expanded.n_states - 2
    assert run(["whatif", "chain.json"]) == 0
    assert "a category with all of its copies" in capsys.readouterr().err


@pytest.mark.storm
def test_properties_of_an_expanded_chain_are_checked_before_and_after(expanded, capsys):
    arguments = ["whatif", "chain.prism", "--redirect", "c:0.5->b", "--property", "my.props", "--json"]
    assert run(arguments) == 0
    for pair in document(capsys)["properties"]:
        assert pair["before"]["agree"] is True
        assert pair["after"]["agree"] is True


def test_a_written_file_is_shown_by_its_categories(expanded, capsys):
    """As what was fitted is: sums and visit-weighted means over copies, known by the variables of the file."""
    assert run(["show", "chain.prism", "--json"]) == 0
    found = document(capsys)
    assert [row["state"] for row in found["categories"]] == ["a", "b", "c"]
    assert sum(row["visits"] for row in found["categories"]) == pytest.approx(found["mean_time"])
    own = [row for row in found["states"] if row["state"].startswith("b [")]
    mean = sum(row["visits"] * row["mean_time"] for row in own) / sum(row["visits"] for row in own)
    assert found["categories"][1]["mean_time"] == pytest.approx(mean)
    assert run(["show", "chain.prism"]) == 0
    assert "each stands for one of 3 kinds of steps" in capsys.readouterr().out
