"""From feature vectors to states: fold what is rare, cluster what is left, split what a property needs apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracebridge.errors import FitError, Location, ModelError, UsageError
from tracebridge.states.clustering import cluster, require_clusterable
from tracebridge.states.features import EncodedRuns, FeatureCounts, FeatureVector
from tracebridge.states.space import OTHER, Propositions, StateSpace, name_states

#: At most this many states are made of the vectors that are not folded, unless the caller says otherwise.
#: Rule-based vectors are few and their states keep every proposition constant, so that they are clustered late.
DEFAULT_K_MAX = 30
#: The largest number of clusters that the paper tries.
PAPER_K_MAX = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstraction:
    """The map from steps to states, and how it was made.

    Attributes:
        space: the states.
        k_max, min_count, top: the options it was made with; see `abstract_features`.
        folded: the rare vectors that went to ``other``, with their steps; most frequent first.
        silhouettes: mean silhouette by number of clusters; empty where every vector is its own state.
    """

    space: StateSpace
    k_max: int
    min_count: int
    top: int | None
    folded: tuple[tuple[FeatureVector, int], ...]
    silhouettes: Mapping[int, float]
    _state_of: Mapping[FeatureVector, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        state_of = {vector: i for i, members in enumerate(self.space.members) for vector in members}
        object.__setattr__(self, "_state_of", MappingProxyType(state_of))

    def state_codes(self, vectors: Iterable[FeatureVector]) -> NDArray[np.int64]:
        """The position in ``space.names`` of the state of each vector.

        A vector that was not there when the abstraction was made goes to ``other`` if rare vectors did.

        Raises:
            FitError: naming a vector that belongs to no state.
        """
        other = self.space.names.index(OTHER) if self.folded and OTHER in self.space.names else None
        codes = []
        for vector in vectors:
            code = self._state_of.get(vector, other)
            if code is None:
                raise FitError(f"no state holds the step {vector}: it was not there when the states were made")
            codes.append(code)
        return np.array(codes, dtype=np.int64)

    def paths(self, runs: EncodedRuns) -> NDArray[np.int64]:
        """The state of every step, as positions in ``space.names``, shape (n_steps,); offsets are those of the runs."""
        return self.state_codes(runs.vectors)[runs.codes] if runs.vectors else np.empty(0, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; ``labels``, ``mixed_labels`` and ``renamed`` follow from the states, for the reader."""
        space = self.space
        return {
            "k_max": self.k_max,
            "min_count": self.min_count,
            "top": self.top,
            "states": {
                name: [list(vector) for vector in members]
                for name, members in zip(space.names, space.members, strict=True)
            },
            "folded": [[list(vector), steps] for vector, steps in self.folded],
            "silhouettes": {str(k): score for k, score in self.silhouettes.items()},
            "labels": {word: list(states) for word, states in space.labels.items()},
            "mixed_labels": {word: list(states) for word, states in space.mixed_labels.items()},
            "renamed": [
                {"role": r.role, "original": r.original, "proposition": r.proposition}
                for r in space.propositions.renamings
            ],
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> Abstraction:
        """Read `to_dict`'s document. Raises ModelError, naming the field, for anything else."""
        place = Location(path=path, field="abstraction")
        try:
            document = msgspec.convert(data, _Document, strict=True)
            names = tuple(sorted(document.states))
            abstraction = cls(
                space=StateSpace(names=names, members=tuple(tuple(document.states[name]) for name in names)),
                k_max=document.k_max,
                min_count=document.min_count,
                top=document.top,
                folded=tuple(document.folded),
                silhouettes=MappingProxyType({int(k): score for k, score in document.silhouettes.items()}),
            )
        except (msgspec.ValidationError, FitError, ValueError) as error:
            raise ModelError(str(error), location=place) from error
        written = abstraction.to_dict()
        for key in written:
            if written[key] != data[key]:
                raise ModelError(f"{key} does not follow from the states", location=place)
        return abstraction


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    k_max: int
    min_count: int
    top: int | None
    states: dict[str, list[FeatureVector]]
    folded: list[tuple[FeatureVector, int]]
    silhouettes: dict[str, float]
    labels: dict[str, list[str]]
    mixed_labels: dict[str, list[str]]
    renamed: list[dict[str, str]]


def abstract_features(
    counts: FeatureCounts,
    *,
    k_max: int = DEFAULT_K_MAX,
    min_count: int = 0,
    top: int | None = None,
    propositions: Collection[str] = (),
) -> Abstraction:
    """Make states of the vectors of a corpus.

    Args:
        counts: the corpus; every run counts, however it ended.
        k_max: at most so many vectors are a state each; more are clustered into at most so many states (Ward on
            one-hot features, weighted by steps, the number chosen by silhouette).
        min_count: vectors with fewer steps are folded into the state ``other`` before that.
        top: so are all but this many most frequent ones; ties go to the vector that sorts first.
        propositions: words that a property names; states are split until each is constant on every state, beyond
            ``k_max`` if need be. Words that are no proposition of the corpus are left to the property checker.

    Raises:
        UsageError: for options out of range.
        FitError: for too many distinct vectors to cluster.
    """
    if k_max < 1 or min_count < 0 or (top is not None and top < 0):
        raise UsageError(f"k_max={k_max} must be at least 1; min_count={min_count} and top={top} must not be negative")
    weights = dict(zip(counts.vectors, counts.visits.tolist(), strict=True))
    by_frequency = sorted(weights, key=lambda vector: (-weights[vector], vector))
    frequent = [vector for vector in by_frequency[:top] if weights[vector] >= min_count]
    kept = sorted(frequent)
    rare = [vector for vector in by_frequency if vector not in set(frequent)] if len(kept) < len(weights) else []
    silhouettes: Mapping[int, float] = MappingProxyType({})
    group_of = {vector: (0, i) for i, vector in enumerate(kept)}
    if len(kept) > k_max:
        clustering = cluster(one_hot(kept), [weights[vector] for vector in kept], k_max=k_max)
        silhouettes = clustering.silhouettes
        group_of = {vector: (0, label) for vector, label in zip(kept, clustering.labels.tolist(), strict=True)}
    group_of |= dict.fromkeys(rare, (1, 0))

    known = Propositions.of(counts.vectors)
    needed = sorted({*propositions} & {*known.words()})
    groups: dict[tuple[Any, ...], list[FeatureVector]] = {}
    for vector in counts.vectors:
        truths = known.true_of(vector)
        groups.setdefault((*group_of[vector], *(word in truths for word in needed)), []).append(vector)
    keys = sorted(groups)
    members = [tuple(groups[key]) for key in keys]
    names = name_states(members, weights, [key[0] == 1 for key in keys])
    order = sorted(range(len(names)), key=names.__getitem__)
    return Abstraction(
        space=StateSpace(names=tuple(names[i] for i in order), members=tuple(members[i] for i in order)),
        k_max=k_max,
        min_count=min_count,
        top=top,
        folded=tuple((vector, weights[vector]) for vector in rare),
        silhouettes=silhouettes,
    )


def one_hot(vectors: Collection[FeatureVector]) -> NDArray[np.float64]:
    """One column a kind, one a name, one for errors and one for retries; shape (n, p).

    Raises:
        FitError: for more vectors than can be clustered.
    """
    kinds = {kind: i for i, kind in enumerate(sorted({vector.kind for vector in vectors}))}
    names = {name: i for i, name in enumerate(sorted({vector.name for vector in vectors}), start=len(kinds))}
    width = len(kinds) + len(names) + 2
    require_clusterable(len(vectors), width)
    points = np.zeros((len(vectors), width))
    for row, vector in zip(points, vectors, strict=True):
        row[kinds[vector.kind]] = row[names[vector.name]] = 1
        row[-2:] = vector.error, vector.retry
    return points
