"""Where a divergent spoken answer comes from: the speaker's own past, the incumbent, a peer, or nowhere in public.

Three flags are not exclusive; the primary class is the first that holds, in this order, and ``novel`` if none does:

- ``self_revert``: the speaker gave an equivalent answer in public earlier in the trace,
- ``incumbent_pull``: the answer that stood before the block is equivalent; none never matches,
- ``peer_echo``: another agent gave an equivalent public answer earlier that the speaker could see.

Answers are equivalent if they are canonically equal, or if a judge found them so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.audit_tally import RatioTally, tally
from tracebridge.confidence.commitment import DIVERGENT_PAIRS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.table import Codes, ConfidenceTable

CLASSES = ("self_revert", "incumbent_pull", "peer_echo", "novel")
"""In the order of precedence."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DivergenceClasses:
    """The classes of the divergent pairs (D).

    Attributes:
        flags: (D, 3) which of the first three classes match.
        primary: (D,) codes into ``CLASSES``.
        shift: (D,) spoken minus poll correctness.
        trace: (D,) rows of the traces.
    """

    flags: NDArray[np.bool_]
    primary: Codes
    shift: Codes
    trace: Codes

    @property
    def n_any_flag(self) -> int:
        """Pairs with a flag."""
        return int(self.flags.any(axis=1).sum())

    @property
    def flag_surplus(self) -> int:
        """How many more flags than pairs with a flag there are."""
        return int(self.flags.sum()) - self.n_any_flag

    @property
    def surplus_by_class(self) -> dict[str, int]:
        """By class, how many flags precedence gave to another class."""
        return {name: int(self.flags[:, k].sum() - (self.primary == k).sum()) for k, name in enumerate(CLASSES[:3])}


def classify_divergences(table: ConfidenceTable, pairs: CommitmentPairs) -> DivergenceClasses:
    """The class of every divergent pair."""
    rows = pairs.speak[pairs.divergent]
    speaks = table.speaks
    answer = speaks.answer[rows]
    incumbent = table.blocks.incumbent[speaks.block[rows]]
    flags = np.column_stack(
        [
            _said_before(table, rows),
            equivalent_answers(table, answer, incumbent),
            _seen_from_peers(table, rows),
        ]
    )
    primary = np.where(flags.any(axis=1), flags.argmax(axis=1), len(CLASSES) - 1).astype(np.int64)
    return DivergenceClasses(
        flags=flags, primary=primary, shift=pairs.shift[pairs.divergent], trace=pairs.trace[pairs.divergent]
    )


def class_tallies(classes: DivergenceClasses) -> tuple[RatioTally, ...]:
    """By class, its share of the divergent pairs and its mean shift; by flag, its share. Units are divergent pairs."""
    every = np.ones(len(classes.trace))
    tallies: list[RatioTally] = []
    for k, name in enumerate(CLASSES):
        member = classes.primary == k
        tallies += [
            tally(f"share[{name}]", DIVERGENT_PAIRS, numerator=member, denominator=every, trace=classes.trace),
            tally(
                f"shift[{name}]",
                f"{DIVERGENT_PAIRS}, {name}",
                numerator=classes.shift,
                denominator=member,
                trace=classes.trace,
                bounds=(-1.0, 1.0),
            ),
        ]
    for k, name in enumerate(CLASSES[:3]):
        flag = classes.flags[:, k]
        tallies.append(
            tally(f"flag_share[{name}]", DIVERGENT_PAIRS, numerator=flag, denominator=every, trace=classes.trace)
        )
    return tuple(tallies)


def equivalent_answers(table: ConfidenceTable, left: Codes, right: Codes) -> NDArray[np.bool_]:
    """Whether two columns of codes of answers are pairwise equivalent; no answer is equivalent to none."""
    known = (left >= 0) & (right >= 0)
    judged = np.zeros(len(left), dtype=np.bool_)
    if len(table.equivalent):
        n = len(table.answers)
        keys = table.equivalent[:, 0] * n + table.equivalent[:, 1]
        sought = np.minimum(left, right) * n + np.maximum(left, right)
        judged = keys[np.minimum(np.searchsorted(keys, sought), len(keys) - 1)] == sought
    return np.asarray(known & ((left == right) | judged))


def visible_pairs(table: ConfidenceTable, rows: Codes) -> tuple[Codes, Codes]:
    """For utterances (rows), every earlier one that was visible: positions in ``rows``, and rows of what was seen."""
    first = table.speaks.first_visible
    length = first[rows + 1] - first[rows]
    position = np.repeat(np.arange(len(rows)), length)
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    return position, table.speaks.visible[first[rows][position] + within]


def _seen_from_peers(table: ConfidenceTable, rows: Codes) -> NDArray[np.bool_]:
    position, seen = visible_pairs(table, rows)
    speaks = table.speaks
    matches = equivalent_answers(table, speaks.answer[rows][position], speaks.answer[seen])
    matches &= speaks.agent[rows][position] != speaks.agent[seen]
    return np.bincount(position[matches], minlength=len(rows)) > 0


def _said_before(table: ConfidenceTable, rows: Codes) -> NDArray[np.bool_]:
    """Own earlier answers, which a speaker remembers whatever window of the public messages is shown."""
    speaks, n = table.speaks, len(table.answers)
    voice = table.blocks.trace[speaks.block] * len(table.agents) + speaks.agent
    _, voice = np.unique(voice, return_inverse=True)  # one agent in one trace
    given = np.flatnonzero(speaks.answer >= 0)
    keys, first = np.unique(voice[given] * n + speaks.answer[given], return_index=True)
    if len(keys) == 0:
        return np.zeros(len(rows), dtype=np.bool_)
    first = given[first]
    position, answer = _with_equivalents(table, speaks.answer[rows])
    sought = voice[rows][position] * n + answer
    at = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
    matches = (keys[at] == sought) & (first[at] < rows[position])
    return np.bincount(position[matches], minlength=len(rows)) > 0


def _with_equivalents(table: ConfidenceTable, answer: Codes) -> tuple[Codes, Codes]:
    """Each answer itself and all that judges found equivalent to it: positions in ``answer``, and codes."""
    both = np.concatenate([table.equivalent.reshape(-1, 2), table.equivalent.reshape(-1, 2)[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    low, high = (np.searchsorted(both[:, 0], answer, side=side) for side in ("left", "right"))
    length = high - low
    position = np.repeat(np.arange(len(answer)), length)
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    others = both[low[position] + within, 1]
    return np.concatenate([np.arange(len(answer)), position]), np.concatenate([answer, others])
