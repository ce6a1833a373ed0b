"""What is in a state: how many steps, which of their features prevail, and how pure it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracebridge.states.features import FeatureVector

Shares = tuple[tuple[str, float], ...]
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDescription:
    """The steps of one state.

    Attributes:
        state: its name. steps: how many steps of the corpus it holds. share: of all steps.
        purity: the share of its steps that have the state's most frequent kind and name; 1 if it holds one kind of
            step.
        names, kinds: its most frequent step names and kinds with their shares, at most three.
        errors, retries: the shares of its steps that failed, and that repeat the step before them.
        terms: words that its texts have more often than others; empty without text features.
    """

    state: str
    steps: int
    share: float
    purity: float
    names: Shares
    kinds: Shares
    errors: float
    retries: float
    terms: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without the name of the state."""
        return {
            "steps": self.steps,
            "share": self.share,
            "purity": self.purity,
            "names": dict(self.names),
            "kinds": dict(self.kinds),
            "errors": self.errors,
            "retries": self.retries,
            "terms": list(self.terms),
        }

    def dominant(self) -> str:
        """The prevailing features in a few words: ``search 90%, look 10%; tool; error 25%``."""
        parts = [_listed(self.names), _listed(self.kinds)]
        parts += [f"{word} {_percent(x)}" for word, x in (("error", self.errors), ("retry", self.retries)) if x]
        if self.terms:
            parts.append("says " + ", ".join(self.terms))
        return "; ".join(parts)


def describe_states(
    names: Sequence[str],
    members: Sequence[Sequence[FeatureVector]],
    steps: Sequence[Sequence[int]],
    terms: Mapping[str, Sequence[str]],
) -> tuple[StateDescription, ...]:
    """Describe states by their vectors.

    Args:
        names: of the states. members: the vectors of each. steps: how many of each vector there are.
        terms: words of text by the group of a vector; a state has those of the group with most of its steps.
    """
    total = sum(map(sum, steps))
    found = []
    for state, vectors, counts in zip(names, members, steps, strict=True):
        here = sum(counts)
        by: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        for vector, count in zip(vectors, counts, strict=True):
            by["name"][vector.name] += count
            by["kind"][vector.kind] += count
            by["both"][vector.kind, vector.name] += count
            by["group"][vector.group] += count
            by["error"][vector.error] += count
            by["retry"][vector.retry] += count
        group = min(by["group"], key=lambda word: (-by["group"][word], word))
        found.append(
            StateDescription(
                state=state,
                steps=here,
                share=here / total,
                purity=max(by["both"].values()) / here,
                names=_top(by["name"], here),
                kinds=_top(by["kind"], here),
                errors=by["error"][True] / here,
                retries=by["retry"][True] / here,
                terms=tuple(terms.get(group, ())),
            )
        )
    return tuple(found)


def _top(counts: Mapping[str, int], total: int) -> Shares:
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple((word, counts[word] / total) for word in order[:_SHOWN])


def _listed(shares: Shares) -> str:
    return ", ".join(word if share == 1 else f"{word} {_percent(share)}" for word, share in shares)


def _percent(share: float) -> str:
    """Rounded, but never to none or all of what is neither."""
    whole = round(100 * share)
    if 0 < share < 1:
        return "<1%" if whole == 0 else ">99%" if whole == 100 else f"{whole}%"
    return f"{whole}%"
