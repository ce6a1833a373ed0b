"""Fit a chain to a corpus: make states of its steps, count its transitions, and hand these to `fit_counts`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from tracebridge.chain.counts import CensoringPolicy, TransitionCounts
from tracebridge.chain.estimate import PriorName
from tracebridge.chain.fit import ChainFit, Profile, StartChoice, SupportChoice, fit_counts
from tracebridge.chain.vocabulary import StateVocabulary
from tracebridge.chain.weights import Weight, WeightedCounts, WeightReader
from tracebridge.errors import UsageError
from tracebridge.states.abstraction import Classifier
from tracebridge.states.construction import DEFAULT_K_MAX, PAPER_K_MAX, abstract_features
from tracebridge.states.features import FeatureCounts
from tracebridge.states.grouping import StatesChoice, TextChoice, group_steps, group_texts
from tracebridge.states.manual import StateMap
from tracebridge.states.text_corpus import TextCorpus
from tracebridge.traces.model import Trace


def fit_chain(
    traces: Iterable[Trace],
    *,
    k_max: int | None = None,
    min_count: int = 0,
    top: int | None = None,
    propositions: Collection[str] = (),
    states: StatesChoice | None = None,
    text_features: TextChoice | None = None,
    prior: PriorName | Fraction | float | None = None,
    support: SupportChoice | None = None,
    policy: CensoringPolicy = "censored",
    start: StartChoice = "observed",
    weight: str | Callable[[Trace], Weight] | None = None,
    profile: Profile | None = None,
    vocabulary: StateVocabulary | None = None,
) -> ChainFit:
    """Fit a chain to traces in one pass; the options are those of `abstract_features`, `group_steps` and `fit_counts`.

    States are made of the rule-based features of steps, unless ``states`` is a map (a `StateMap`, the path of a TOML or
    JSON file, or a function from a step to the name of its state), or ``text_features`` add the texts of the steps
    (True, a `TextFeatures`, or a sentence encoder).

    ``k_max`` is 30 by default, and 12 with ``profile="paper"``. ``weight`` is a function of a trace, or the name of an
    attribute that every trace has; see `WeightedCounts`. States are made of the runs as they are, whatever they weigh;
    with weights all paths are in memory, four bytes a step.

    Raises:
        TraceError, UsageError, FitError, NothingToCheckError: as these do.
    """
    if isinstance(traces, str | Path):
        raise UsageError(f"fit_chain takes traces, not a path: fit_chain(read_traces({str(traces)!r}))")
    reader = None if weight is None else WeightReader(weight)
    features, runs, classifier, clustering = group_steps(
        traces if reader is None else reader.passed_on(traces),
        states=states,
        text_features=text_features,
        k_max=_k_max(k_max, profile),
        keep_runs=reader is not None,
    )
    abstraction = abstract_features(
        features,
        k_max=_k_max(k_max, profile),
        min_count=min_count,
        top=top,
        propositions=propositions,
        classifier=classifier,
        clustering=clustering,
    )
    counts: TransitionCounts | WeightedCounts
    if reader is None or runs is None:
        counts = TransitionCounts.from_features(features, abstraction)
    else:
        paths = abstraction.paths(runs), runs.offsets, runs.outcomes
        counts = WeightedCounts.from_codes(abstraction.space.names, *paths, reader.weights)
    return fit_counts(
        counts,
        profile=profile,
        abstraction=abstraction,
        prior=prior,
        support=support,
        policy=policy,
        start=start,
        vocabulary=vocabulary,
    )


def fit_features(
    features: FeatureCounts,
    *,
    k_max: int | None = None,
    min_count: int = 0,
    top: int | None = None,
    propositions: Collection[str] = (),
    states: StateMap | None = None,
    texts: TextCorpus | None = None,
    profile: Profile | None = None,
    **options: Any,
) -> ChainFit:
    """Fit a chain to a corpus of which the passages between feature vectors were counted: shard by shard, say.

    Args:
        features: the counts. states: the map that gave the vectors their groups; or texts: the texts that did, by which
            steps are clustered. options: those of `fit_counts`. The others are those of `fit_chain`, which this equals
            for the traces that were counted.

    Raises:
        UsageError, FitError, NothingToCheckError: as `fit_chain` does.
    """
    classifier: Classifier | None = states
    clustering = None
    if texts is not None:
        features, _, classifier, clustering = group_texts(texts, features, k_max=_k_max(k_max, profile))
    abstraction = abstract_features(
        features,
        k_max=_k_max(k_max, profile),
        min_count=min_count,
        top=top,
        propositions=propositions,
        classifier=classifier,
        clustering=clustering,
    )
    counts = TransitionCounts.from_features(features, abstraction)
    return fit_counts(counts, profile=profile, abstraction=abstraction, **options)


def _k_max(k_max: int | None, profile: Profile | None) -> int:
    if k_max is not None:
        return k_max
    return PAPER_K_MAX if profile == "paper" else DEFAULT_K_MAX
