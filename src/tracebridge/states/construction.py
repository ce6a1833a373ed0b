"""From feature vectors to states: fold what is rare, cluster what is left, split what a property needs apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tracebridge.errors import FitError, Location, Problem, UsageError
from tracebridge.states.abstraction import Abstraction, Classifier, Split
from tracebridge.states.clustering import Clustering, cluster
from tracebridge.states.features import FeatureCounts, FeatureVector
from tracebridge.states.manual import StateFunction, StateMap
from tracebridge.states.rule_columns import one_hot
from tracebridge.states.space import OTHER, Propositions, StateSpace, name_states
from tracebridge.states.text_clusters import TextClusters

#: At most this many states are made of the vectors that are not folded, unless the caller says otherwise.
#: Rule-based vectors are few and their states keep every proposition constant, so that they are clustered late.
DEFAULT_K_MAX = 30
#: The largest number of clusters that the paper tries.
PAPER_K_MAX = 12

_SHOWN = 5

#: Where a vector went: 0 and the number of its cluster or the name of its group, or 1 where it is folded.
_Place = tuple[int, int | str]
_FOLDED: _Place = (1, 0)


def abstract_features(
    counts: FeatureCounts,
    *,
    k_max: int = DEFAULT_K_MAX,
    min_count: int = 0,
    top: int | None = None,
    propositions: Collection[str] = (),
    classifier: Classifier | None = None,
    clustering: Clustering | None = None,
) -> Abstraction:
    """Make states of the vectors of a corpus.

    Args:
        counts: the corpus; every run counts, however it ended.
        k_max: at most so many vectors are a state each; more are clustered into at most so many states (Ward on
            one-hot features, weighted by steps, the number chosen by silhouette). The groups of a classifier are
            states as they are.
        min_count: vectors, or groups of a classifier, with fewer steps are folded into the state ``other`` before that.
        top: so are all but this many most frequent ones; ties go to the one that sorts first.
        propositions: words that a property names; states are split until each is constant on every state, beyond
            ``k_max`` if need be. States of a map or a function are the user's and are not split: they are refused.
            Words that are no proposition of the corpus are left to the property checker.
        classifier: what gave the vectors their groups. clustering: how its text clusters were made.

    Raises:
        UsageError: for options out of range.
        FitError: for too many distinct vectors to cluster, or a map whose states mix what a property needs apart.
    """
    if k_max < 1 or min_count < 0 or (top is not None and top < 0):
        raise UsageError(f"k_max={k_max} must be at least 1; min_count={min_count} and top={top} must not be negative")
    given = isinstance(classifier, StateMap | StateFunction)
    weights = dict(zip(counts.vectors, counts.visits.tolist(), strict=True))
    if classifier is None:
        rare = _rare(weights, min_count, top)
        place_of, clustering = _clustered({v: n for v, n in weights.items() if v not in rare}, k_max)
    else:
        rare = _in_rare_groups(weights, min_count, top)
        place_of = {v: _FOLDED if given and v.group == OTHER else (0, v.group) for v in counts.vectors}
    place_of |= dict.fromkeys(rare, _FOLDED)
    known = Propositions.of(counts.vectors)
    needed = [] if given else sorted({*propositions} & {*known.words()})
    members, places, splits_of = _refined(counts.vectors, place_of, known, needed)
    by_text = isinstance(classifier, TextClusters)
    if given:
        names = [OTHER if place == _FOLDED else str(place[1]) for place in places]
    else:
        names = name_states(members, weights, [place == _FOLDED for place in places], by_text=by_text)
    order = sorted(range(len(names)), key=names.__getitem__)
    space = StateSpace(names=tuple(names[i] for i in order), members=tuple(members[i] for i in order), given=given)
    if given:
        _require_constant(space, propositions)
    return Abstraction(
        space=space,
        k_max=k_max,
        min_count=min_count,
        top=top,
        folded=tuple((v, weights[v]) for v in sorted(rare, key=lambda vector: (-weights[vector], vector))),
        silhouettes=MappingProxyType({}) if clustering is None else clustering.silhouettes,
        approximate=clustering is not None and clustering.approximate,
        steps=tuple(tuple(weights[vector] for vector in member) for member in space.members),
        propositions=tuple(needed),
        splits=_splits(names, places, splits_of, members, weights, classifier),
        classifier=classifier,
    )


def _rare(steps_of: Mapping[Any, int], min_count: int, top: int | None) -> set[Any]:
    by_frequency = sorted(steps_of, key=lambda each: (-steps_of[each], each))
    return {*steps_of} - {each for each in by_frequency[:top] if steps_of[each] >= min_count}


def _in_rare_groups(weights: Mapping[FeatureVector, int], min_count: int, top: int | None) -> set[FeatureVector]:
    steps_of: dict[str, int] = {}
    for vector, steps in weights.items():
        steps_of[vector.group] = steps_of.get(vector.group, 0) + steps
    rare = _rare(steps_of, min_count, top)
    return {vector for vector in weights if vector.group in rare}


def _clustered(
    weights: Mapping[FeatureVector, int], k_max: int
) -> tuple[dict[FeatureVector, _Place], Clustering | None]:
    """Where each vector goes: to a place of its own if there are few."""
    vectors = [*weights]
    if len(vectors) <= k_max:
        return {vector: (0, i) for i, vector in enumerate(vectors)}, None
    found = cluster(one_hot(vectors), [*weights.values()], k_max=k_max)
    return {vector: (0, label) for vector, label in zip(vectors, found.labels.tolist(), strict=True)}, found


def _refined(
    vectors: Sequence[FeatureVector],
    place_of: Mapping[FeatureVector, _Place],
    known: Propositions,
    needed: Sequence[str],
) -> tuple[list[tuple[FeatureVector, ...]], list[_Place], dict[_Place, list[str]]]:
    """The vectors of each state, where these came from, and the words that places with several states differ in."""
    groups: dict[tuple[_Place, tuple[bool, ...]], list[FeatureVector]] = {}
    for vector in vectors:
        truths = known.true_of(vector)
        groups.setdefault((place_of[vector], tuple(word in truths for word in needed)), []).append(vector)
    keys = sorted(groups)
    truths_of: dict[_Place, list[tuple[bool, ...]]] = {}
    for place, held in keys:
        truths_of.setdefault(place, []).append(held)
    words = {
        place: [word for word, column in zip(needed, zip(*held, strict=True), strict=True) if len({*column}) > 1]
        for place, held in truths_of.items()
        if len(held) > 1
    }
    return [tuple(groups[key]) for key in keys], [place for place, _ in keys], words


def _splits(
    names: Sequence[str],
    places: Sequence[_Place],
    words_of: Mapping[_Place, list[str]],
    members: Sequence[Sequence[FeatureVector]],
    weights: Mapping[FeatureVector, int],
    classifier: Classifier | None,
) -> tuple[Split, ...]:
    if not words_of:
        return ()
    whole: dict[_Place, list[FeatureVector]] = {}
    for place, member in zip(places, members, strict=True):
        whole.setdefault(place, []).extend(member)
    before = [*whole.values()]
    by_text = isinstance(classifier, TextClusters)
    called = name_states(before, weights, [place == _FOLDED for place in whole], by_text=by_text)
    found = [
        Split(
            state=state,
            parts=tuple(sorted(name for name, origin in zip(names, places, strict=True) if origin == place)),
            propositions=tuple(words_of[place]),
        )
        for place, state in zip(whole, called, strict=True)
        if place in words_of
    ]
    return tuple(sorted(found, key=lambda split: split.parts))


def _require_constant(space: StateSpace, propositions: Collection[str]) -> None:
    """Refuse a map of the user whose states mix steps with and without what a property names."""
    problems = [
        Problem(
            location=Location(),
            message=f"a property names {word!r}, and the state map mixes steps with and without it in "
            + ", ".join(repr(state) for state in states[:_SHOWN])
            + (f" and {len(states) - _SHOWN} more" if len(states) > _SHOWN else ""),
            hint="put a rule before that gives steps with it a state of their own, or ask for states instead",
        )
        for word, states in space.mixed_labels.items()
        if word in {*propositions}
    ]
    if problems:
        raise FitError(problems)
