"""A corpus with the margins that were published for 4,181 traces of three agents, block by block and pair by pair.

What is exact: 11,122 blocks, their pools (1,469 without valid poll, 4,358 all wrong, 1,184 mixed, 4,111 all correct),
23,391 valid polls, 12,116 correct ones, 9,467 valid selections of which 4,795 are correct, 7,970 with another valid
poll, 679 of 2,079 correct-wrong pairs tied; 9,436 valid pairs, 1,927 divergent ones with the published counts, shifts
and flags of their classes; tiers of the published sizes, in 421 clusters. What is not published is drawn: some of it so
that other printed figures come out, as is said where it is; the rest at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tracebridge.confidence.table import ConfidenceTable
from tracebridge.studies.broadcast_notation import Block, Run, build_table
from tracebridge.studies.broadcast_published import TIER_SIZES

PROBLEMS_PER_CLUSTER = 10

# Valid polls of a block, and how many blocks have so many; the selected poll is valid unless it says otherwise.
ALL_CORRECT = {1: 370, 2: 1_126, 3: 2_585}
ALL_WRONG = {1: 1_127, 2: 803, 3: 2_280}
INVALID_SELECTED = {"c": 30, "w": 148}  # blocks of one valid poll that is not selected
N_NONE = 1_469
INVALID_SCORE = 97  # of a selected invalid poll

# Mixed blocks: polls (correct, wrong, wrong with another answer, invalid), their scores, which is the first of the
# highest, how many blocks. A solution in integers of what Tables 1, 6 and 15 print: candidates, selections, ties, PCCA,
# the success of random ties and of both votes, CRA, HRWP and CTR under permutation.
MIXED = (
    ("ccw", (78, 78, 78), "c", 46),
    ("ccw", (78, 78, 85), "w", 121),
    ("ccw", (78, 90, 85), "c", 169),
    ("ccw", (85, 90, 78), "c", 189),
    ("cww", (78, 78, 78), "w", 184),
    ("cww", (85, 78, 90), "w", 157),
    ("cwv", (85, 78, 85), "c", 29),
    ("cwi", (78, 78, 1), "c", 190),
    ("cwi", (85, 78, 1), "c", 91),
    ("cwi", (70, 80, 97), "i", 8),
)

# Scores of the other blocks' valid polls: first and last of a band, its share of the correct ones, of the wrong ones.
# Found by least squares from what Table 2 prints of the confidence as stated, after one temperature, and after isotonic
# regression.
BANDS = (
    (2, 12, 0.006, 0.007),
    (13, 29, 0.007, 0.020),
    (30, 49, 0.008, 0.034),
    (50, 64, 0.027, 0.079),
    (65, 74, 0.058, 0.260),
    (75, 84, 0.311, 0.404),
    (85, 92, 0.510, 0.180),
    (93, 97, 0.064, 0.006),
    (98, 100, 0.009, 0.010),
)

# Class: degraded, improved, both wrong.
CLASSES = {
    "self": (100, 58, 209),
    "incumbent": (20, 22, 78),
    "peer": (60, 48, 130),
    "novel": (316, 207, 679),
}

# Deliberations go to tiers, and within a tier to clusters, in the order of their share of solvable blocks and so much
# noise: about the published ECE of the tiers and interval of CRA come out.
TIER_NOISE, CLUSTER_NOISE = 0.6, 0.25
SELF_WITH_PEER, SELF_WITH_INCUMBENT, N_SILENT, N_PASSED = 192, 104, 31, 3_729


@dataclass
class Turn:
    """A block in the making: polls as (kind, score), in order; which is selected; what becomes of it in public."""

    polls: list[tuple[str, int]]
    selected: int
    speech: str = "kept"
    source: Turn | None = None  # whose public answer is taken up
    incumbent: bool = False  # the answer taken up is also the incumbent's
    answers: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Of the selected poll."""
        return self.polls[self.selected][0]

    @property
    def said(self) -> str:
        """The spoken answer: ``g`` is the correct one, ``w...`` are wrong ones, ``n`` is a wrong one that is new."""
        if self.source is not None:
            return self.source.said
        return {"kept": self.answers[self.selected], "degraded": "n", "improved": "g", "changed": "n"}[self.speech]


def build_population(rng: np.random.Generator) -> ConfidenceTable:
    """The corpus; what is drawn follows ``rng``."""
    turns = [*_even_turns(rng), *_mixed_turns(rng), *(_turn([("i", 1)] * 3, 0, "silent") for _ in range(N_NONE))]
    scripts, rest = _scripts([turns[i] for i in rng.permutation(len(turns))], rng)
    return build_table(_runs(scripts, rest, rng), n_tiers=len(TIER_SIZES))


def _turn(polls: Sequence[tuple[str, int]], selected: int, speech: str = "kept") -> Turn:
    """A turn whose wrong polls agree, those of kind ``v`` excepted."""
    return Turn(
        polls=[("w" if kind == "v" else kind, score) for kind, score in polls],
        selected=selected,
        speech=speech,
        answers=[{"c": "g", "w": "w1", "v": "w2", "i": ""}[kind] for kind, _ in polls],
    )


def _even_turns(rng: np.random.Generator) -> Iterator[Turn]:
    """Blocks whose valid polls are all correct, or all wrong; the highest score is that of one poll alone."""
    scores = np.concatenate([np.arange(first, last + 1) for first, last, *_ in BANDS])
    for column, (kind, sizes) in enumerate((("c", ALL_CORRECT), ("w", ALL_WRONG))):
        share = np.concatenate(
            [np.full(last + 1 - first, of[column] / (last + 1 - first)) for first, last, *of in BANDS]
        )
        share /= share.sum()
        for n_valid, number in sizes.items():
            for row in rng.choice(scores, (number, n_valid), p=share).tolist():
                top, *others = sorted(row, reverse=True)
                valid = [(kind, top), *((kind, min(score, top - 1)) for score in others)]
                yield _shuffled([*valid, *[("i", 1)] * (3 - n_valid)], "kept", rng)
        for score in rng.choice(scores[scores < INVALID_SCORE], INVALID_SELECTED[kind]).tolist():
            yield _shuffled([("i", INVALID_SCORE), (kind, score), ("i", 1)], "silent", rng)


def _shuffled(polls: Sequence[tuple[str, int]], speech: str, rng: np.random.Generator) -> Turn:
    """The polls in a random order; the first of these is selected."""
    order = rng.permutation(3)
    return _turn([polls[k] for k in order], int(np.argmin(order)), speech)


def _mixed_turns(rng: np.random.Generator) -> Iterator[Turn]:
    for kinds, scores, first, number in MIXED:
        for _ in range(number):
            yield _first(first, list(zip(kinds, scores, strict=True)), rng)


def _first(kind: str, polls: Sequence[tuple[str, int]], rng: np.random.Generator) -> Turn:
    """A random order in which the first of the highest is of the given kind."""
    top = max(score for _, score in polls)
    while True:
        shuffled = [polls[k] for k in rng.permutation(len(polls))]
        turn = _turn(shuffled, next(k for k, (_, score) in enumerate(shuffled) if score == top))
        if turn.kind == kind:
            turn.speech = "silent" if kind == "i" else "kept"
            return turn


def _scripts(turns: list[Turn], rng: np.random.Generator) -> tuple[list[list[Turn]], list[Turn]]:
    """The beginnings of traces that make up the divergent pairs, and the turns that are left."""
    even = {
        kind: [t for t in turns if t.speech == "kept" and {k for k, _ in t.polls} - {"i"} == {kind}] for kind in "cw"
    }
    pool = {kind: iter(found) for kind, found in even.items()}
    used: set[int] = set()

    def take(kind: str) -> Turn:
        turn = next(pool[kind])
        used.add(id(turn))
        return turn

    scripts = []
    for name, numbers in CLASSES.items():
        speeches = [s for s, n in zip(("degraded", "improved", "changed"), numbers, strict=True) for _ in range(n)]
        for i, k in enumerate(rng.permutation(len(speeches)).tolist()):
            late = take("c" if speeches[k] == "degraded" else "w")
            late.speech = speeches[k]
            script = [late]
            if name != "novel":
                early = take("c" if speeches[k] == "improved" else "w")
                late.source = early
                _differ(late, early)
                late.incumbent = name == "incumbent" or (name == "self" and i < SELF_WITH_INCUMBENT)
                _turn_to(early, late.selected if name == "self" else (late.selected + 1) % 3)
                script = [early, late]
                if name == "incumbent" or (name == "self" and i >= len(speeches) - SELF_WITH_PEER):
                    peer = early if name == "incumbent" else take(early.kind)
                    if peer is not early:
                        _turn_to(peer, (late.selected + 1) % 3)
                        peer.answers[peer.selected] = early.said
                        script = [early, peer, late]
            scripts.append(script)
    kept = [t for t in turns if id(t) not in used]
    for turn in [t for t in kept if t.speech == "kept"][:N_SILENT]:
        turn.speech = "silent"
    return scripts, kept


def _differ(late: Turn, early: Turn) -> None:
    if late.speech == "changed" and late.answers[late.selected] == early.said:
        late.answers[late.selected] = "w4"


def _turn_to(turn: Turn, position: int) -> None:
    """Rotate the agents, so that the selected poll is at this position; no other poll has its score here."""
    shift = turn.selected - position
    turn.polls = [turn.polls[(k + shift) % 3] for k in range(3)]
    turn.answers = [turn.answers[(k + shift) % 3] for k in range(3)]
    turn.selected = position


def _runs(scripts: list[list[Turn]], rest: list[Turn], rng: np.random.Generator) -> list[Run]:
    n = sum(TIER_SIZES)
    traces: list[list[Turn]] = [*scripts, *([] for _ in range(n - len(scripts)))]
    fillers = iter(rest)
    for trace in traces:
        if not trace:
            trace.append(next(fillers))
    for k, turn in enumerate(fillers):
        traces[k % n].append(turn)
    solvable = np.array([np.mean([any(kind == "c" for kind, _ in t.polls) for t in trace]) for trace in traces])
    passed = np.zeros(n, dtype=np.int64)
    passed[np.argsort(solvable + rng.normal(0, 0.4, n))[n - N_PASSED :]] = 1
    tier = np.repeat(np.arange(len(TIER_SIZES)), TIER_SIZES)
    within = np.concatenate([np.arange(size) // PROBLEMS_PER_CLUSTER for size in TIER_SIZES])
    _, cluster = np.unique(tier * 1_000 + within, return_inverse=True)
    tier_of = np.empty(n, dtype=np.int64)
    tier_of[np.argsort(rng.normal(0, TIER_NOISE, n) - solvable)] = tier
    order = np.lexsort((rng.normal(0, CLUSTER_NOISE, n) - solvable, tier_of))
    return [
        Run(
            blocks=[_block(t, turn, r) for r, turn in enumerate(traces[t])],
            tier=int(tier[place]),
            cluster=int(cluster[place]),
            passed=int(passed[t]),
        )
        for place, t in enumerate(order.tolist())
    ]


def _block(trace: int, turn: Turn, round_: int) -> Block:
    """The words of one block; answers are apart from those of other problems."""
    words = " ".join(
        f"{kind}{score}:{f'{trace}{answer}' if answer else ''}"
        for (kind, score), answer in zip(turn.polls, turn.answers, strict=True)
    )
    if turn.speech == "silent":
        return Block(words, round=round_)
    said = turn.said
    return Block(
        words,
        f"{'c' if said == 'g' else 'w'}:{trace}{said}",
        incumbent=f"{trace}{said}" if turn.incumbent else None,
        round=round_,
    )
