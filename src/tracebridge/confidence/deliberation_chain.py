"""The chain of deliberations, in the words of their reviewers, and the audit's figures as they follow from it.

Without a prior and without a censored deliberation, the chain's expected visits are the mean visits of the corpus, so
that CRA, PSDR, NPCS, the blocks of a deliberation and its probability to pass are those of the audit, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from tracebridge.chain import AbsorbingChain, DeclaredSupport, StateVocabulary, fit_counts
from tracebridge.closedform import expected_visits, long_run_reliability
from tracebridge.confidence.deliberation import KINDS, POOLS, ROUTES, SPEAKS

if TYPE_CHECKING:
    from tracebridge.chain import CensoringPolicy, ChainFit, MarkovChain, PriorName
    from tracebridge.confidence.deliberation import Deliberations

_SPOKEN_AFTER: Final = {
    "c": ("kc", "dc", "deg", "uc", "uw", "none"),
    "w": ("kw", "dw", "imp", "uc", "uw", "none"),
    "i": ("uc", "uw", "none"),
    "n": ("uc", "uw", "none"),
}


def fit_deliberations(
    deliberations: Deliberations,
    *,
    calls_per_poll_round: Fraction | int,
    prior: PriorName | Fraction | float | None = None,
    policy: CensoringPolicy = "censored",
) -> ChainFit:
    """The chain of deliberations, smoothed over what the protocol admits and nowhere else.

    Args:
        deliberations: refined or not.
        calls_per_poll_round: what the polls of a block cost, one utterance costing 1.
        prior, policy: see `tracebridge.chain.fit_counts`.

    Raises:
        FitError, NothingToCheckError: as `fit_counts` does.
    """
    return fit_counts(
        deliberations.transition_counts(),
        prior=prior,
        policy=policy,
        support=admissible_transitions(deliberations),
        vocabulary=deliberation_vocabulary(deliberations, calls_per_poll_round=calls_per_poll_round),
    )


def admissible_transitions(deliberations: Deliberations) -> DeclaredSupport:
    """Which state may follow which, and where a deliberation may end: after an utterance.

    That nothing is selected and that an answer is unpaired are failures of the record or of the protocol: they are
    admissible only if they came about in these deliberations.
    """
    seen = {deliberations.states[code] for code in np.unique(deliberations.codes).tolist()}
    unselected = any(name in seen for name in ROUTES if name.endswith("_n"))
    unpaired = not seen.isdisjoint({"speak_uc", "speak_uw"})
    successors: dict[str, tuple[str, ...]] = {}
    for pool in POOLS:
        kinds = [kind for kind in KINDS[pool] if kind != "n" or unselected]
        for poll in _poll_states(deliberations, pool):
            successors[poll] = tuple(f"route_{pool}_{kind}" for kind in kinds)
        for kind in kinds:
            spoken = (speech for speech in _SPOKEN_AFTER[kind] if unpaired or not speech.startswith("u"))
            successors[f"route_{pool}_{kind}"] = tuple(f"speak_{speech}" for speech in spoken)
    polls = [poll for pool in POOLS for poll in _poll_states(deliberations, pool)]
    final = [name for name in SPEAKS if unpaired or not name.startswith("speak_u")]
    return DeclaredSupport(successors={**successors, **dict.fromkeys(final, polls)}, final=final)


def deliberation_vocabulary(
    deliberations: Deliberations, *, calls_per_poll_round: Fraction | int = 1
) -> StateVocabulary:
    """The words in which properties of deliberations are written, and what states earn.

    Rewards: ``blocks``; ``calls``, so many for the polls of a block and one for its utterance; ``degradations``.
    """
    polls_of = {pool: _poll_states(deliberations, pool) for pool in POOLS}
    polls = [poll for of_pool in polls_of.values() for poll in of_pool]
    routes_of = {kind: [name for name in ROUTES if name.endswith(f"_{kind}")] for kind in "wcin"}
    labels = {
        "pass": ["success"],
        "fail": ["failure"],
        "done": ["failure", "success"],
        "poll": polls,
        "route": ROUTES,
        "speak": SPEAKS,
        "unroutable": polls_of["N"],
        "solvable": [*polls_of["M"], *polls_of["C"]],
        "mixed": polls_of["M"],
        "selected_invalid": routes_of["i"],
        "selected_wrong": routes_of["w"],
        "selected_correct": routes_of["c"],
        "selected_none": routes_of["n"],
        "missed": ["route_M_w"],
        "paired": _speaks("kc", "kw", "dc", "dw", "deg", "imp"),
        "diverged": _speaks("dc", "dw", "deg", "imp"),
        "degraded": _speaks("deg"),
        "improved": _speaks("imp"),
        "spoken_correct": _speaks("kc", "dc", "imp", "uc"),
        "spoken_wrong": _speaks("kw", "dw", "deg", "uw"),
        "spoken_none": _speaks("none"),
    }
    return StateVocabulary(
        labels=labels,
        rewards={
            "blocks": dict.fromkeys(polls, Fraction(1)),
            "calls": {**dict.fromkeys(polls, Fraction(calls_per_poll_round)), **dict.fromkeys(SPEAKS, Fraction(1))},
            "degradations": {"speak_deg": Fraction(1)},
        },
    )


def _poll_states(deliberations: Deliberations, pool: str) -> list[str]:
    """The poll states of a pool: one, or those that it was refined into."""
    refined = [name for name in deliberations.states if name.startswith(f"poll_{pool}_")]
    return refined or [f"poll_{pool}"]


def _speaks(*speeches: str) -> list[str]:
    return [f"speak_{speech}" for speech in speeches]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliberationFigures:
    """The audit's figures as ratios of a chain's expected visits; NaN where the denominator is never visited.

    Attributes:
        candidate_routing_accuracy: visits of correct selections by those of valid ones (CRA).
        divergence_rate: divergent utterances by all in a valid pair (PSDR).
        commitment_shift: improvements minus degradations by the same (NPCS, unconditional).
        blocks: blocks of a deliberation. passes: the probability that it passes in the end.
    """

    candidate_routing_accuracy: float
    divergence_rate: float
    commitment_shift: float
    blocks: float
    passes: float

    @classmethod
    def of(cls, chain: MarkovChain) -> DeliberationFigures:
        """The figures of a chain of deliberations."""
        absorbing = AbsorbingChain(chain=chain)
        visits = expected_visits(absorbing)

        def visited(*labels: str) -> float:
            chosen = np.any([chain.label(label) for label in labels], axis=0)
            return float(visits[chosen[absorbing.transient]].sum())

        paired = visited("paired")
        return cls(
            candidate_routing_accuracy=_ratio(
                visited("selected_correct"), visited("selected_correct", "selected_wrong")
            ),
            divergence_rate=_ratio(visited("diverged"), paired),
            commitment_shift=_ratio(visited("improved") - visited("degraded"), paired),
            blocks=visited("poll"),
            passes=float(long_run_reliability(chain)),
        )


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.nan
