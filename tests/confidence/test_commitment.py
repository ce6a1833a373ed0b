"""Poll and spoken answers: metrics by a reference, policies, and the classes of divergence with their invariants."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.commitment import CommitmentPairs, commitment_pairs, commitment_tallies
from tracebridge.confidence.divergence_class import CLASSES, class_tallies, classify_divergences
from tracebridge.confidence.metric_value import MetricValue
from tracebridge.errors import InputError, UsageError
from tracebridge.studies.broadcast_notation import Block, Run, build_table


def values(pairs: CommitmentPairs) -> dict[str, MetricValue]:
    return {tally.name: tally.value for tally in commitment_tallies(pairs)}


def run_of(*blocks: Block) -> list[Run]:
    return [Run(blocks=blocks)]


def test_metrics_of_six_pairs() -> None:
    table = build_table(
        run_of(
            Block("c90:4", "c:4"),  # kept
            Block("c90:4", "w:5"),  # degraded
            Block("w90:5", "c:4"),  # improved
            Block("w90:5", "w:6"),  # another wrong answer
            Block("c90:4", "w:5"),  # degraded
            Block("c90:4", "w:4"),  # labels contradict each other
            Block("i90", "c:4"),  # the selected poll is invalid
            Block("c90:4", None),  # nothing was said
        )
    )
    found = values(commitment_pairs(table))
    shares = {name: (value.numerator, value.denominator) for name, value in found.items()}
    assert shares == {
        "PSDR": (4, 6),
        "PSIR": (1, 4),
        "PSDRg": (2, 4),
        "NPCS_given_divergence": (-1, 4),
        "NPCS_unconditional": (-2, 6),
        "label_inconsistency": (1, 2),
    }


def test_without_divergence_the_conditional_metrics_are_undefined_and_the_shift_is_zero() -> None:
    found = values(commitment_pairs(build_table(run_of(Block("c90:4", "c:4")))))
    for name in ("PSIR", "PSDRg", "NPCS_given_divergence"):
        assert math.isnan(found[name].value)
        assert found[name].reason == "there are no divergent pairs"
    assert found["NPCS_unconditional"].value == 0.0


def test_policies_for_what_is_undecided_and_unlabelled() -> None:
    blocks = (Block("c90:4", "c:four", judged=(-1,)), Block("c90:4", "w:5"), Block("u90:4", "w:6"))
    table = build_table(run_of(*blocks))
    excluded = commitment_pairs(table)
    assert (excluded.n_undecided, excluded.n_unlabelled, len(excluded.speak)) == (1, 1, 1)
    assert values(excluded)["PSDR"].n_dropped == 2
    divergent = values(commitment_pairs(table, undecided_policy="divergent"))["PSDR"]
    equivalent = values(commitment_pairs(table, undecided_policy="equivalent"))["PSDR"]
    assert (divergent.numerator, equivalent.numerator, equivalent.denominator) == (2, 1, 2)
    assert values(commitment_pairs(table, on_missing_label="wrong"))["PSDR"].denominator == 2
    with pytest.raises(InputError, match="1 selected polls have no label"):
        commitment_pairs(table, on_missing_label="error")
    with pytest.raises(UsageError, match="exclude, divergent, equivalent"):
        commitment_pairs(table, undecided_policy="ignore")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"no judge 'third'.*known: first"):
        commitment_pairs(table, judge="third")


def test_without_judges_only_canonical_equality_decides() -> None:
    table = build_table(run_of(Block("c90:4", "c:4"), Block("c90:4", "w:5")), judges=())
    assert len(commitment_pairs(table).speak) == 1
    assert values(commitment_pairs(table, undecided_policy="divergent"))["PSDR"].value == 0.5


def test_each_class_once_and_precedence() -> None:
    table = build_table(
        run_of(
            Block("c90:4", "w:5", by=0),  # novel: nothing was said before
            Block("w1:9 c90:4", "w:5", by=1, incumbent="5"),  # the incumbent's answer, which a peer gave too
            Block("c90:4", "w:5", by=0),  # own earlier answer, which a peer gave too
            Block("w1:9 c90:4", "w:V", by=1),  # a peer's and the own answer, as judged
            Block("w1:8 w1:8 c90:4", "w:5", by=2),  # a peer's alone
        ),
        equivalent=[("5", "V")],
    )
    classes = classify_divergences(table, commitment_pairs(table))
    assert [CLASSES[k] for k in classes.primary] == [
        "novel", "incumbent_pull", "self_revert", "self_revert", "peer_echo",
    ]  # fmt: skip
    assert classes.flags.astype(int).tolist() == [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 0, 1], [0, 0, 1]]
    assert classes.n_any_flag == 4
    assert classes.flag_surplus == 3
    assert classes.surplus_by_class == {"self_revert": 0, "incumbent_pull": 0, "peer_echo": 3}


def test_answers_of_other_runs_are_not_seen() -> None:
    block = Block("c90:4", "w:5", by=0)
    table = build_table([Run(blocks=[block]), Run(blocks=[block])])
    assert classify_divergences(table, commitment_pairs(table)).primary.tolist() == [3, 3]


turns = st.tuples(
    st.integers(0, 2),
    st.sampled_from("cwu"),
    st.sampled_from("pqrs"),
    st.sampled_from("cw"),
    st.sampled_from("pqrs"),
    st.sampled_from(["p", "q", None]),
    st.sampled_from([0, 1, -1]),
)
EQUIVALENT = [("p", "r"), ("r", "s")]  # judged pairs need not be transitive


@settings(max_examples=40)
@given(st.lists(st.lists(turns, max_size=6), min_size=1, max_size=3))
def test_against_a_reference_pair_by_pair(corpus: list[list[tuple[int, str, str, str, str, str | None, int]]]) -> None:
    runs, expected, flags = [], Counter[str](), []

    def same(a: str | None, b: str | None) -> bool:
        return a is not None and b is not None and (a == b or (a, b) in EQUIVALENT or (b, a) in EQUIVALENT)

    for run in corpus:
        blocks, public = [], []
        for agent, z, polled, x, said, incumbent, verdict in run:
            judged = 0 if polled == said else verdict
            blocks.append(Block(f"{z}90:{polled}", f"{x}:{said}", by=agent, incumbent=incumbent, judged=(judged,)))
            if z != "u" and judged != -1:
                shift = (x == "c") - (z == "c")
                expected["pairs"] += 1
                expected["shift"] += shift
                if judged == 1:
                    expected["divergent"] += 1
                    expected["improved"] += shift > 0
                    expected["degraded"] += shift < 0
                    expected["shift given divergence"] += shift
                    flags.append(
                        [
                            any(same(said, answer) for who, answer in public if who == agent),
                            same(said, incumbent),
                            any(same(said, answer) for who, answer in public if who != agent),
                        ]
                    )
                else:
                    expected["inconsistent"] += shift != 0
            public.append((agent, said))
        runs.append(Run(blocks=blocks))
    table = build_table(runs, equivalent=EQUIVALENT)
    pairs = commitment_pairs(table)
    found = values(pairs)
    assert (len(pairs.speak), int(pairs.divergent.sum())) == (expected["pairs"], expected["divergent"])
    for name, event, among in (
        ("PSDR", "divergent", "pairs"),
        ("PSIR", "improved", "divergent"),
        ("PSDRg", "degraded", "divergent"),
        ("NPCS_given_divergence", "shift given divergence", "divergent"),
        ("NPCS_unconditional", "shift", "pairs"),
    ):
        assert found[name].denominator == expected[among]
        if expected[among]:
            assert found[name].numerator == expected[event], name
    if expected["inconsistent"] == 0 and expected["divergent"]:
        product = found["PSDR"].value * found["NPCS_given_divergence"].value
        assert found["NPCS_unconditional"].value == pytest.approx(product, abs=1e-12)
    classes = classify_divergences(table, pairs)
    assert classes.flags.tolist() == flags
    primary = np.bincount(classes.primary, minlength=4)
    n = expected["divergent"]
    assert primary.sum() == n
    assert primary[3] == n - classes.n_any_flag  # the novel flag is the novel class
    assert primary[0] == classes.flags[:, 0].sum()  # nothing precedes a self revert
    assert classes.flag_surplus == classes.flags.sum() - (n - primary[3])
    shares = [tally.value.numerator for tally in class_tallies(classes) if tally.name.startswith("share")]
    assert shares == primary.tolist() if n else all(math.isnan(share) for share in shares)
