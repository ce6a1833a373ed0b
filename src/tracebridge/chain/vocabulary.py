"""A user's own words for the states of a fitted chain: propositions that hold in several, what a visit earns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.document import checked_document, fraction_text
from tracebridge.chain.estimate import parse_fraction
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import Location, ModelError

KIND = "state-vocabulary"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVocabulary:
    """Propositions and rewards over names of states; a state may be called that a chain does not have.

    Attributes:
        labels: each proposition with the states in which it holds, ascending; ``success``, ``failure`` are states too.
        rewards: each reward structure with what a visit of each state earns; states that are left out earn nothing.

    Raises:
        ModelError: for an empty word, a list of states that is a text, a negative reward or one that is no number.
    """

    labels: Mapping[str, Collection[str]] = field(default_factory=dict)
    rewards: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, words in (("labels", self.labels), ("rewards", self.rewards)):
            for word, held in words.items():
                if not word or isinstance(held, str):
                    what = "an empty word" if not word else f"the states of {word!r} are one text, not a list of names"
                    raise ModelError(what, location=Location(field=kind))
        labels = {word: tuple(sorted(set(self.labels[word]))) for word in sorted(self.labels)}
        rewards = {word: MappingProxyType(_amounts(word, self.rewards[word])) for word in sorted(self.rewards)}
        object.__setattr__(self, "labels", MappingProxyType(labels))
        object.__setattr__(self, "rewards", MappingProxyType(rewards))

    def __hash__(self) -> int:
        return hash(
            (tuple(self.labels.items()), tuple((word, tuple(held.items())) for word, held in self.rewards.items()))
        )

    def labels_of(self, states: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
        """The propositions as masks over these states, each of shape (n,); one that holds nowhere is all False."""
        return {
            word: np.array([name in set(held) for name in states], dtype=np.bool_) for word, held in self.labels.items()
        }

    def rewards_of(self, states: Sequence[str]) -> dict[str, RewardStructure]:
        """The reward structures over these states, exactly."""
        none = Fraction(0)
        return {
            word: RewardStructure.from_fractions([amounts.get(name, none) for name in states])
            for word, amounts in self.rewards.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """The JSON document ``state-vocabulary``."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "labels": {word: list(held) for word, held in self.labels.items()},
            "rewards": {
                word: {name: fraction_text(amount) for name, amount in amounts.items()}
                for word, amounts in self.rewards.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> StateVocabulary:
        """Read `to_dict`'s document. Raises ModelError, with the field."""
        document = checked_document(data, _Document, kind=KIND, version=SCHEMA_VERSION, path=path)
        return cls(labels=document.labels, rewards=document.rewards)  # type: ignore[arg-type]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    labels: dict[str, list[str]]
    rewards: dict[str, dict[str, str]]


def _amounts(word: str, amounts: Mapping[str, object]) -> dict[str, Fraction]:
    found = {}
    for name in sorted(amounts):
        try:
            found[name] = parse_fraction(amounts[name])
        except ValueError as error:
            raise ModelError(
                f"the reward {word!r} of state {name!r}: {error}", location=Location(field="rewards")
            ) from None
    return found
