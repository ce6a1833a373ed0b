"""Reading a corpus once with whatever says which steps belong together: a state map, a function, text features."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tracebridge.errors import UsageError
from tracebridge.states.abstraction import Classifier
from tracebridge.states.clustering import Clustering
from tracebridge.states.features import (
    EncodedRuns,
    FeatureCounts,
    StepClassifier,
    count_features,
    encode_runs,
)
from tracebridge.states.manual import StateFunction, StateMap
from tracebridge.states.state_map_file import read_state_map
from tracebridge.states.text_corpus import TextCorpus
from tracebridge.states.text_features import TextEncoder, TextFeatures
from tracebridge.traces.model import Step, Trace

#: What `fit_chain` takes as ``states``: a map, a file of one, or a function.
StatesChoice = StateMap | str | Path | Callable[[Step], str]

#: What it takes as ``text_features``: whether to use them, how, or an encoder.
TextChoice = bool | TextFeatures | TextEncoder


class GroupedCorpus(NamedTuple):
    """A corpus over feature vectors with groups.

    Attributes:
        counts: the corpus. runs: the same as paths, if asked for. classifier: what gave the groups.
        clustering: how text clusters were made.
    """

    counts: FeatureCounts
    runs: EncodedRuns | None
    classifier: Classifier | None
    clustering: Clustering | None


def group_steps(
    traces: Iterable[Trace],
    *,
    states: StatesChoice | None = None,
    text_features: TextChoice | None = None,
    k_max: int,
    keep_runs: bool = False,
) -> GroupedCorpus:
    """Count a corpus in one pass.

    Args:
        traces: read once. keep_runs: also return the paths. k_max: at most so many text clusters.
        states: a `StateMap`, the path of a file of one, or a function from a step to the name of its state.
        text_features: cluster by text, too: True for hashed TF-IDF, a `TextFeatures`, or an encoder.

    Raises:
        UsageError: for both of these, or for what is neither.
        TraceError, ModelError, FitError: as reading, counting, mapping and clustering do.
    """
    features = text_choice(text_features)
    classifier = _state_map(states)
    if features is not None and classifier is not None:
        raise UsageError("states come from a map or from clusters with text features, not from both")
    corpus = None if features is None else TextCorpus(features)
    first: StepClassifier | None = classifier if corpus is None else corpus
    traces = traces if corpus is None else corpus.watched(traces)
    runs = encode_runs(traces, first) if keep_runs else None
    counts = count_features(traces, first) if runs is None else runs.counts()
    if corpus is None:
        return GroupedCorpus(counts, runs, classifier, None)
    if runs is None:
        return group_texts(corpus, counts, k_max=k_max)
    clusters, clustering = corpus.cluster(counts.vectors, counts.visits.tolist(), k_max=k_max)
    nearest = corpus.nearest(clusters, counts.vectors)
    regrouped = runs.regrouped(nearest.__getitem__)
    return GroupedCorpus(regrouped.counts(), regrouped, clusters, clustering)


def group_texts(corpus: TextCorpus, counts: FeatureCounts, *, k_max: int) -> GroupedCorpus:
    """Cluster the steps of a corpus by their texts.

    Args:
        corpus: the texts. counts: passages between vectors that the corpus has put into groups, a text each.
        k_max: at most so many clusters.

    Raises:
        FitError: as clustering does.
    """
    clusters, clustering = corpus.cluster(counts.vectors, counts.visits.tolist(), k_max=k_max)
    nearest = corpus.nearest(clusters, counts.vectors)
    return GroupedCorpus(counts.regrouped(nearest.__getitem__), None, clusters, clustering)


def _state_map(states: StatesChoice | None) -> StateMap | StateFunction | None:
    if states is None or isinstance(states, StateMap):
        return states
    if isinstance(states, str | Path):
        return read_state_map(states)
    if callable(states):
        return StateFunction.of(states)
    raise UsageError(f"states are a StateMap, a file of one or a function of a step, not {type(states).__name__}")


def text_choice(choice: TextChoice | None) -> TextFeatures | None:
    """How texts become numbers; None where they are not looked at."""
    if choice is None or isinstance(choice, bool):
        return TextFeatures() if choice else None
    return choice if isinstance(choice, TextFeatures) else TextFeatures(encoder=choice)
