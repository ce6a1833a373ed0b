"""What a reader of a fit must know about its states, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracebridge.states.clustering import SAMPLED_STEPS, SILHOUETTE_TIE
from tracebridge.states.manual import StateFunction, StateMap
from tracebridge.states.text_clusters import TextClusters
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.states.abstraction import Abstraction

_SHOWN = 5


def state_remarks(abstraction: Abstraction) -> list[str]:
    """How states came about if not by rules alone, whether clusters are approximate, and what was split."""
    return [*_origin(abstraction), *_clusters(abstraction), *_splits(abstraction)]


def _origin(abstraction: Abstraction) -> Iterator[str]:
    classifier = abstraction.classifier
    if isinstance(classifier, StateMap):
        rules = counted(len(classifier.rules), "rule")
        yield f"states are those of a map with {rules}, which is in the document of the fit"
        if unused := sorted({*classifier.states} - {*abstraction.space.names}):
            yield f"no step is in these states of the map: {_listed(unused)}"
    elif isinstance(classifier, StateFunction):
        yield (
            f"states are those that the Python function {classifier.name} gives; a document of the fit has its name "
            "only, so that it cannot be applied to traces again"
        )
    elif isinstance(classifier, TextClusters):
        how = "hashed TF-IDF" if classifier.encoder_name is None else f"the encoder {classifier.encoder_name}"
        yield (
            f"states are clusters of rule-based features and text ({how}; unrelated texts are {classifier.weight:g} "
            "times as far apart as different names); a step is in the cluster with the nearest centre"
        )
        if classifier.encoder_name is not None:
            yield "a document of the fit has the encoder's name only, so that it cannot be applied to traces again"


def _clusters(abstraction: Abstraction) -> Iterator[str]:
    if not abstraction.silhouettes:
        return
    best = max(abstraction.silhouettes.values())
    chosen = min(k for k, score in abstraction.silhouettes.items() if score >= best - SILHOUETTE_TIE)
    tried = f"{min(abstraction.silhouettes)}..{max(abstraction.silhouettes)}"
    more = "; more might be better, and --k-max allows no more" if chosen == abstraction.k_max else ""
    found = f"of {tried} clusters {chosen} have the highest mean silhouette, {best:.3f}{more}"
    yield f"steps were clustered (Ward): {found}"
    if abstraction.approximate:
        yield (
            "the clustering is APPROXIMATE: there were too many distinct steps for an exact tree, so that mini-batch "
            f"k-means gathered them first, and silhouettes are of {SAMPLED_STEPS:,} sampled steps"
        )


def _splits(abstraction: Abstraction) -> Iterator[str]:
    for split in abstraction.splits[:_SHOWN]:
        words = _listed(split.propositions)
        yield f"state {split.state!r} was split into {_listed(split.parts)}, because properties name {words}"
    if len(abstraction.splits) > _SHOWN:
        yield f"{len(abstraction.splits) - _SHOWN} more states were split for properties; the document lists them"


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{text} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else text
