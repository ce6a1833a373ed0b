"""Ten models, each written in every format by one command and read back: the identical chain."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from tracebridge import read_model, write_model
from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure, chain_to_dict
from tracebridge.cli import run

FILES = {
    "prism": "model.prism",
    "explicit": "model.tra",
    "storm-explicit": "model.tra",
    "drn": "model.drn",
    "umb": "model.umb",
    "json": "model.json",
}


def rational(names, rows, start, **fields) -> MarkovChain:
    return MarkovChain(
        states=names,
        transitions=RationalMatrix.from_rows(rows),  # type: ignore[arg-type]
        initial=RationalVector.from_fractions(start),  # type: ignore[arg-type]
        **fields,
    )


def random_rows(n: int, seed: int, *, successors: int = 4) -> csr_array:
    """Sparse rows of doubles."""
    rng = np.random.default_rng(seed)
    targets = np.sort(np.argsort(rng.random((n, min(n, 40))), axis=1)[:, :successors], axis=1)
    targets = (targets + np.arange(n)[:, None]) % n
    weights = rng.dirichlet(np.ones(targets.shape[1]), size=n)
    rows = np.repeat(np.arange(n), targets.shape[1])
    return csr_array((weights.ravel(), (rows, targets.ravel())), shape=(n, n))


def doubles(n: int, seed: int, **fields) -> MarkovChain:
    start = np.zeros(n)
    start[0] = 1
    given = {"states": tuple(f"s{i}" for i in range(n)), "initial": start, "transitions": random_rows(n, seed)}
    return MarkovChain(**(given | fields))  # type: ignore[arg-type]


def one_state(*, exact: bool) -> MarkovChain:
    chain = rational(("only",), [{0: Fraction(1)}], [Fraction(1)], labels={"here": np.array([True])})
    return chain if exact else replace(chain, rationals=None, initial_rationals=None)


def awkward_names() -> MarkovChain:
    names = (
        "module",
        "endmodule",
        "init",
        "true",
        "P",
        "\u72b6\u614b",
        "a b",
        'q"uote',
        "\u00e9\u0301",
        "2x",
        "_",
        "success",
    )
    n = len(names)
    rows = [{(i + 1) % n: Fraction(1, 3), i: Fraction(2, 3)} for i in range(n - 1)] + [{n - 1: Fraction(1)}]
    labels = {"\u7d42\u308f\u308a": np.arange(n) == n - 1, "label": np.arange(n) < 3, "s": np.arange(n) % 2 == 0}
    start = [Fraction(int(i == 0)) for i in range(n)]
    return rational((*names[:2], "init_", *names[3:]), rows, start, labels=labels)


def with_rewards(*, exact: bool) -> MarkovChain:
    third = Fraction(1, 3)
    state = [Fraction(1, 7), third, Fraction(0)] if exact else [Fraction(1, 8), Fraction(3), Fraction(0)]
    rewards = {
        "cost": RewardStructure.from_fractions(state, [Fraction(2), Fraction(0), Fraction(0)]),
        "tokens used": RewardStructure.from_fractions([10**12, 1, 0]),
    }
    rows = [{0: third, 1: third, 2: third}, {0: Fraction(1, 2), 2: Fraction(1, 2)}, {2: Fraction(1)}]
    chain = rational(("a", "b", "c"), rows, [Fraction(1), Fraction(0), Fraction(0)], rewards=rewards)
    return chain if exact else replace(chain, rationals=None, initial_rationals=None)


def spread_start(*, exact: bool) -> MarkovChain:
    chain = with_rewards(exact=exact)
    shares = [Fraction(2, 7), Fraction(5, 7), Fraction(0)]
    if exact:
        return replace(chain, initial=RationalVector.from_fractions(shares), initial_rationals=None)  # type: ignore[arg-type]
    return replace(chain, initial=np.array([float(x) for x in shares]))


def small_and_sticky() -> MarkovChain:
    tiny = 2.0**-40
    return doubles(3, 1, transitions=np.array([[1 - tiny, tiny, 0], [1e-300, 0, 1.0], [0, 0, 1]]))


MODELS = {
    "one state, rational": lambda: one_state(exact=True),
    "one state, double": lambda: one_state(exact=False),
    "awkward names": awkward_names,
    "rewards, rational": lambda: with_rewards(exact=True),
    "rewards, double": lambda: with_rewards(exact=False),
    "spread start, rational": lambda: spread_start(exact=True),
    "spread start, double": lambda: spread_start(exact=False),
    "tiny probabilities": small_and_sticky,
    "two thousand states": lambda: doubles(2_000, 2, labels={"even": np.arange(2_000) % 2 == 0}),
    "spread over many": lambda: doubles(
        400, 3, initial=np.full(400, 1 / 400), rewards={"r": RewardStructure(state=np.arange(400) / 7)}
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_format_gives_the_identical_chain_back(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = MODELS[name]()
    write_model(source, "source.json")
    assert run(["export", "source.json", "--to", "all", "-o", "out", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert all((tmp_path / "out" / file).is_file() for file in written)
    expected = set(FILES) - ({"storm-explicit"} if source.is_exact else set())
    assert {Path(file).parent.name for file in written} == expected
    for target in sorted(expected):
        again = read_model(tmp_path / "out" / target / FILES[target]).chain
        assert json.dumps(chain_to_dict(again)) == json.dumps(chain_to_dict(source)), target
    assert run(["export", "source.json", "--to", "all", "-o", "out"]) == 0  # the folder is ours


def test_what_a_format_cannot_hold_is_left_out_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(doubles(10_001, 4), "large.json")
    assert run(["export", "large.json", "--to", "all", "-o", "out"]) == 0
    assert "prism is left out: the model has 10001 states" in capsys.readouterr().err
    assert not (tmp_path / "out" / "prism").exists()
    assert read_model(tmp_path / "out" / "umb" / "model.umb").chain.n_states == 10_001
