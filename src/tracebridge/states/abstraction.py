"""The map from steps to states, and the document it is kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracebridge.errors import FitError, InputError, Location, ModelError, UsageError
from tracebridge.states.description import StateDescription, describe_states
from tracebridge.states.features import EncodedRuns, FeatureCounts, FeatureVector, count_features, encode_runs
from tracebridge.states.manual import StateFunction, StateMap
from tracebridge.states.space import OTHER, StateSpace
from tracebridge.states.state_map_file import state_map_from_dict
from tracebridge.states.text_clusters import TextClusters
from tracebridge.traces.model import Trace

#: Version 2 added steps, splits, classifiers and the mark of approximate clusters. Version 1 has no version in it.
SCHEMA_VERSION = 2

#: How steps are put into groups before states are made.
Classifier = StateMap | StateFunction | TextClusters


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A state that was split because a property names what only some of its steps have.

    Attributes:
        state: what it would have been called. parts: the states that there are instead, ascending.
        propositions: the words that the parts differ in, ascending.
    """

    state: str
    parts: tuple[str, ...]
    propositions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstraction:
    """The map from steps to states, and how it was made.

    Attributes:
        space: the states.
        k_max, min_count, top: the options it was made with; see `abstract_features`.
        folded: the rare vectors that went to ``other``, with their steps; most frequent first.
        silhouettes: mean silhouette by number of clusters; empty where nothing was clustered.
        approximate: the clusters are of k-means centres, and their silhouettes of a sample.
        steps: the steps with each vector of each state, as in ``space.members``; None in documents of version 1.
        propositions: the words that are constant on every state because a property names them, ascending.
        splits: the states that were split for these.
        classifier: the state map, function or text clusters that group the steps; None for rule-based features alone.
        descriptions: what is in each state, in the order of ``space.names``; empty in documents of version 1.
    """

    space: StateSpace
    k_max: int
    min_count: int
    top: int | None
    folded: tuple[tuple[FeatureVector, int], ...]
    silhouettes: Mapping[int, float]
    approximate: bool = False
    steps: tuple[tuple[int, ...], ...] | None = None
    propositions: tuple[str, ...] = ()
    splits: tuple[Split, ...] = ()
    classifier: Classifier | None = None
    descriptions: tuple[StateDescription, ...] = field(init=False, repr=False)
    _state_of: Mapping[FeatureVector, int] = field(init=False, repr=False, compare=False)
    _state_of_group: Mapping[tuple[str, frozenset[str]], int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names, members = self.space.names, self.space.members
        state_of = {vector: i for i, vectors in enumerate(members) for vector in vectors}
        object.__setattr__(self, "_state_of", MappingProxyType(state_of))
        of_group = {self._group_key(vector): i for vector, i in state_of.items()} if self.classifier else {}
        object.__setattr__(self, "_state_of_group", MappingProxyType(of_group))
        if self.steps is not None and (
            [len(counts) for counts in self.steps] != [len(vectors) for vectors in members]
            or any(count < 1 for counts in self.steps for count in counts)
        ):
            raise FitError("every kind of step in a state needs the number of its steps, at least 1")
        _require_splits(self.splits, self.space)
        terms: dict[str, Sequence[str]] = {}
        if isinstance(self.classifier, TextClusters):
            terms = dict(zip(self.classifier.names, self.classifier.terms, strict=True))
        descriptions = () if self.steps is None else describe_states(names, members, self.steps, terms)
        object.__setattr__(self, "descriptions", descriptions)

    # ------------------------------------------------------------ applying

    def encode_runs(self, traces: Iterable[Trace]) -> EncodedRuns:
        """Runs over feature vectors with the groups that this map needs; see `paths`.

        Raises:
            TraceError: as `tracebridge.states.encode_runs` does.
            FitError: for a step that the map has no state for, or a map whose function is not in its document.
        """
        return encode_runs(traces, self.classifier)

    def count_features(self, traces: Iterable[Trace]) -> FeatureCounts:
        """The counts of runs over feature vectors with the groups that this map needs; raises as `encode_runs` does."""
        return count_features(traces, self.classifier)

    def state_codes(self, vectors: Iterable[FeatureVector]) -> NDArray[np.int64]:
        """The position in ``space.names`` of the state of each vector.

        A vector that was not there when the abstraction was made goes to the state of its group, and without a
        classifier to ``other`` if rare vectors did.

        Raises:
            FitError: naming a vector that belongs to no state.
        """
        return np.array([self._code(vector) for vector in vectors], dtype=np.int64)

    def _code(self, vector: FeatureVector) -> int:
        code = self._state_of.get(vector)
        if code is not None:
            return code
        if self.classifier is not None:
            if not vector.group:
                raise FitError("these runs were encoded without the map of the abstraction; use its encode_runs")
            code = self._state_of_group.get(self._group_key(vector))
            if code is not None:
                return code
        if not self.folded or OTHER not in self.space.names:
            raise FitError(
                f"no state holds the step {vector}: it was not there when the states were made; "
                "fit a chain to these runs, or fold rare steps into a state of their own with --top or --min-count"
            )
        return self.space.names.index(OTHER)

    def _group_key(self, vector: FeatureVector) -> tuple[str, frozenset[str]]:
        return vector.group, self.space.propositions.true_of(vector) & frozenset(self.propositions)

    def paths(self, runs: EncodedRuns) -> NDArray[np.int64]:
        """The state of every step, as positions in ``space.names``, shape (n_steps,); offsets are those of the runs."""
        return self.state_codes(runs.vectors)[runs.codes] if runs.vectors else np.empty(0, dtype=np.int64)

    # ------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; what follows from the states is there for the reader."""
        space = self.space
        members = zip(space.names, space.members, strict=True)
        head = {
            "k_max": self.k_max,
            "min_count": self.min_count,
            "top": self.top,
            "states": {name: [_written(vector) for vector in vectors] for name, vectors in members},
            "folded": [[_written(vector), steps] for vector, steps in self.folded],
            "silhouettes": {str(k): score for k, score in self.silhouettes.items()},
            "labels": {word: list(states) for word, states in space.labels.items()},
            "mixed_labels": {word: list(states) for word, states in space.mixed_labels.items()},
            "renamed": [
                {"role": r.role, "original": r.original, "proposition": r.proposition}
                for r in space.propositions.renamings
            ],
        }
        if self.steps is None:
            return head
        return {
            "schema_version": SCHEMA_VERSION,
            **head,
            "steps": {name: list(counts) for name, counts in zip(space.names, self.steps, strict=True)},
            "descriptions": {each.state: each.to_dict() for each in self.descriptions},
            "approximate": self.approximate,
            "propositions": list(self.propositions),
            "splits": [
                {"state": split.state, "parts": list(split.parts), "propositions": list(split.propositions)}
                for split in self.splits
            ],
            "classifier": None if self.classifier is None else self.classifier.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> Abstraction:
        """Read `to_dict`'s document, of this version or the one before. Raises ModelError, naming the field."""
        place = Location(path=path, field="abstraction")

        def refuse(message: str) -> NoReturn:
            raise ModelError(message, location=place)

        version = data.get("schema_version", 1) if isinstance(data, Mapping) else 1
        if type(version) is not int or version not in (1, SCHEMA_VERSION):
            refuse(f"schema_version {version!r:.80} is unknown, 1 and {SCHEMA_VERSION} are known")
        try:
            if version == 1:
                abstraction = cls(**_read_head(msgspec.convert(data, _Document, strict=True)))
            else:
                abstraction = cls(**_read_all(msgspec.convert(data, _LaterDocument, strict=True)))
        except (msgspec.ValidationError, InputError, UsageError, ValueError) as error:
            raise ModelError(str(error), location=place) from error
        written = abstraction.to_dict()
        for key in written:
            if written[key] != data[key]:
                refuse(f"{key} does not follow from the states")
        return abstraction


def _written(vector: FeatureVector) -> list[Any]:
    return list(vector) if vector.group else list(vector[:-1])


def _require_splits(splits: Sequence[Split], space: StateSpace) -> None:
    for split in splits:
        for word in split.propositions:
            held = {*space.labels.get(word, ())} & {*split.parts}
            if word not in space.labels or not held or held == {*split.parts} or {*split.parts} - {*space.names}:
                raise FitError(f"state {split.state!r} cannot have been split into {list(split.parts)} by {word!r}")


class _Document(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    k_max: int
    min_count: int
    top: int | None
    states: dict[str, list[FeatureVector]]
    folded: list[tuple[FeatureVector, int]]
    silhouettes: dict[str, float]
    labels: dict[str, list[str]]
    mixed_labels: dict[str, list[str]]
    renamed: list[dict[str, str]]


class _LaterDocument(_Document, forbid_unknown_fields=True, kw_only=True):
    schema_version: int
    steps: dict[str, list[int]]
    descriptions: dict[str, Any]
    approximate: bool
    propositions: list[str]
    splits: list[Split]
    classifier: dict[str, Any] | None


def _read_head(document: _Document, *, given: bool = False) -> dict[str, Any]:
    names = tuple(sorted(document.states))
    members = tuple(tuple(document.states[name]) for name in names)
    return {
        "space": StateSpace(names=names, members=members, given=given),
        "k_max": document.k_max,
        "min_count": document.min_count,
        "top": document.top,
        "folded": tuple(document.folded),
        "silhouettes": MappingProxyType({int(k): score for k, score in document.silhouettes.items()}),
    }


def _read_all(document: _LaterDocument) -> dict[str, Any]:
    classifier = None if document.classifier is None else _read_classifier(document.classifier)
    if {*document.steps} != {*document.states}:
        raise FitError("steps are not those of the states")
    return {
        **_read_head(document, given=isinstance(classifier, StateMap | StateFunction)),
        "steps": tuple(tuple(document.steps[name]) for name in sorted(document.states)),
        "approximate": document.approximate,
        "propositions": tuple(document.propositions),
        "splits": tuple(document.splits),
        "classifier": classifier,
    }


def _read_classifier(data: Mapping[str, Any]) -> Classifier:
    readers: dict[str, Callable[[Mapping[str, Any]], Classifier]] = {
        "rules": lambda rules: state_map_from_dict({key: value for key, value in rules.items() if key != "kind"}),
        "function": _read_function,
        "text": TextClusters.from_dict,
    }
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in readers:
        raise FitError(f"classifier {kind!r:.80} is unknown, there are {', '.join(readers)}")
    return readers[kind](data)


def _read_function(data: Mapping[str, Any]) -> StateFunction:
    name = data.get("name")
    if set(data) != {"kind", "name"} or not isinstance(name, str):
        raise FitError("a function has a name and nothing else")
    return StateFunction(name=name)
