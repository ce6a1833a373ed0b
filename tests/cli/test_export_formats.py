"""`export --to` every format, and every file read back by every verb that takes a model: the identical chain."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tracebridge import read_model, write_model
from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure, chain_to_dict
from tracebridge.cli import run
from tracebridge.errors import UsageError

FILES = {
    "prism": "model.prism",
    "explicit": "model.tra",
    "storm-explicit": "model.tra",
    "drn": "model.drn",
    "umb": "model.umb",
    "json": "model.json",
}
PROPS = '"p": P=? [ F<=4 "success" ]; "r": R{"cost \u00e9"}=? [ F "absorbed" ];'


def chain(*, exact: bool, spread: bool, seed: int = 1) -> MarkovChain:
    """Six states with awkward names, three of them absorbing or nearly so."""
    rng = np.random.default_rng(seed)
    names = ("a b", "module", "\u72b6\u614b", 'q"uote', "success", "failure")
    rows = []
    for _ in range(4):
        counts = rng.integers(1, 9, size=6)
        rows.append({i: Fraction(int(n), int(counts.sum())) for i, n in enumerate(counts)})
    rows += [{4: Fraction(1)}, {5: Fraction(1)}]
    start = [Fraction(1, 3), Fraction(2, 3), 0, 0, 0, 0] if spread else [1, 0, 0, 0, 0, 0]
    cost = [Fraction(int(n)) for n in rng.integers(0, 5, size=4)] + [Fraction(0)] * 2
    labels = {
        "success": np.arange(6) == 4,
        "absorbed": np.arange(6) >= 4,
        "early": np.arange(6) < 2,
    }
    matrix, initial = RationalMatrix.from_rows(rows), RationalVector.from_fractions(start)
    return MarkovChain(
        states=names,
        transitions=matrix if exact else matrix.to_float(),
        initial=initial if exact else initial.to_float(),
        labels=labels,
        rewards={"cost \u00e9": RewardStructure.from_fractions(cost)},
    )


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("target", FILES)
def test_the_identical_chain_comes_back(
    target: str, exact: bool, spread: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = chain(exact=exact and target != "storm-explicit", spread=spread)
    write_model(source, "source.json")
    assert run(["export", "source.json", "--to", target, "-o", "out"]) == 0
    again = read_model(tmp_path / "out" / FILES[target]).chain
    assert json.dumps(chain_to_dict(again)) == json.dumps(chain_to_dict(source))
    manifest = json.loads((tmp_path / "out" / "export.json").read_text())
    assert all((tmp_path / "out" / name).is_file() for name in manifest["files"])
    assert run(["export", "source.json", "--to", target, "-o", "elsewhere"]) == 0
    for name in ("export.json", *manifest["files"]):
        assert (tmp_path / "elsewhere" / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name


@pytest.mark.parametrize("target", FILES)
def test_every_file_is_a_model_for_check(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(chain(exact=False, spread=False), "source.json")
    (tmp_path / "my.props").write_text(PROPS, encoding="utf-8")
    assert run(["export", "source.json", "--to", target, "-o", "out"]) == 0
    found = []
    for model in ("source.json", f"out/{FILES[target]}"):
        capsys.readouterr()
        assert run(["check", model, "my.props", "--json", "--engine", "closed-form"]) == 0
        document = json.loads(capsys.readouterr().out)
        found.append([each["engines"][0]["value"] for each in document["properties"]])
    assert found[0] == found[1]


@pytest.mark.parametrize("ending", [".json", ".prism", ".umb", ".drn", ".tra"])
def test_from_python_the_ending_names_the_format(ending: str, tmp_path: Path) -> None:
    source = chain(exact=ending not in (".tra",), spread=True)
    write_model(source, tmp_path / f"model{ending}")
    again = read_model(tmp_path / f"model{ending}").chain
    assert json.dumps(chain_to_dict(again)) == json.dumps(chain_to_dict(source))


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.umb"):
        write_model(chain(exact=True, spread=False), tmp_path / "model.xyz")


@pytest.mark.storm
def test_decision_processes_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(Path(__file__).parents[2] / "prism_models" / "broadcast_mdp.prism")
    assert run(["export", model, "--to", "all", "-o", str(tmp_path / "out")]) == 0
    process = read_model(model).described
    for target in ("prism", "drn", "umb", "json"):
        again = read_model(tmp_path / "out" / target / f"model.{target}").described
        assert again.to_dict() == process.to_dict()
    assert run(["export", model, "--to", "explicit", "-o", str(tmp_path / "tra")]) == 2
    assert run(["export", model, "--intervals", "0.9", "-o", str(tmp_path / "no")]) == 2
    assert "prism, drn, umb, json, not as explicit" in capsys.readouterr().err
