"""``check --const d=1:50``: a row, or an element of the document, for every value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracebridge.cli import run

MODEL = """dtmc
const double p;
module m
 s:[0..2];
 [] s=0 -> p:(s'=1) + 0.5-p:(s'=2) + 0.5:(s'=0);
 [] s>0 -> true;
endmodule
label "won" = s=1;
"""

PROPS = """const int d;
const double bound = 0.5;
"soon": P=? [ F<=d "won" ];
"enough": P>=bound [ F "won" ];
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.prism").write_text(MODEL)
    (tmp_path / "m.props").write_text(PROPS)
    return tmp_path


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


@pytest.mark.storm
def test_a_row_a_point_and_property(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "m.prism", "m.props", "--const", "p=0.25,d=1:3", "--exact"]) == 0
    head, *body = rows(capsys.readouterr().out)
    assert head[:4] == ["d", "property", "verdict", "value"]
    assert [row[0] for row in body] == ["1", "1", "2", "2", "3", "3"]
    assert [row[3] for row in body[::2]] == ["1/4", "3/8", "7/16"]  # half of 1 - 2 ** -d
    assert [row[-1] for row in body] == ["equal"] * 6


@pytest.mark.storm
def test_the_exit_code_is_the_worst_over_the_points(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "m.prism", "m.props", "--const", "d=1", "--const", "p=1/4", "--const", "bound=0.4:0.1:0.6"]
    assert run([*arguments, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "tracebridge-experiment"
    assert document["varying"] == ["bound"]
    assert [point["constants"]["bound"] for point in document["points"]] == ["2/5", "1/2", "3/5"]
    assert [point["constants"]["d"] for point in document["points"]] == ["1"] * 3
    assert [point["exit_code"] for point in document["points"]] == [0, 0, 1]
    assert [point["properties"][1]["verdict"] for point in document["points"]] == ["satisfied", "satisfied", "violated"]
    assert document["exit_code"] == 1


@pytest.mark.storm
def test_a_constant_of_the_model_may_vary_too(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "m.prism", "m.props", "--const", "d=1:2", "--const", "p=0.1:0.2:0.5", "--exact", "--json"]
    assert run(arguments) == 1
    document = json.loads(capsys.readouterr().out)
    found = {
        (point["constants"]["p"], point["constants"]["d"]): point["properties"][0]["engines"][1]["value"]["value"]
        for point in document["points"]
    }
    assert found == {
        ("1/10", "1"): "1/10",
        ("1/10", "2"): "3/20",
        ("3/10", "1"): "3/10",
        ("3/10", "2"): "9/20",
        ("1/2", "1"): "1/2",
        ("1/2", "2"): "3/4",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["m.prism", "--const", "p=0.25", "--const", "d=5:1"], "before the start"),
        (["m.prism", "--const", "p=0.25", "--const", "d=1:x"], "no number"),
        (["m.prism", "--const", "p=0.25", "--const", "d=0:1000000"], "larger steps"),
        (["-", "--const", "d=1", "--const", "p=0.1:0.1:0.5"], "read once"),
    ],
)
def test_ranges_that_mean_nothing_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model, *rest = arguments
    assert run(["check", model, "m.props", *rest]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.storm
def test_lists_and_ranges_are_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "f.props").write_text(
        '"all": filter(printall, P=? [ F "won" ]);\n'
        '"span": filter(range, P=? [ F "won" ]);\n"most": filter(count, s>=0);'
    )
    assert run(["check", "m.prism", "f.props", "--const", "p=0.125"]) == 0
    output = capsys.readouterr().out
    table, _, listing = output.partition("all: filter(printall")
    assert "[0, 1]" in table
    assert [line.strip() for line in listing.splitlines()[1:]] == ["s=0: 0.25", "s=1: 1", "s=2: 0"]
    (here / "long.prism").write_text("dtmc\nmodule m\n s:[0..99];\n [] s<99 -> (s'=s+1);\n [] s=99 -> true;\nendmodule")
    (here / "long.props").write_text('"x": filter(values, s);')
    assert run(["check", "long.prism", "long.props"]) == 0
    assert "and 80 more" in capsys.readouterr().out
