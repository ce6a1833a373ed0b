"""The texts of a corpus, read once, and the clusters of its steps by rule-based features and text.

A text becomes a vector of length one, or zero if it says nothing. Two steps then differ by 2 in squared distance for
each of kind and name, by 1 for each of error and retry, and by up to ``2 weight^2`` for unrelated texts.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from tracebridge.errors import FitError, Location, Problem
from tracebridge.states.clustering import Clustering, cluster, require_clusterable
from tracebridge.states.features import FeatureVector
from tracebridge.states.hashed_words import MAX_CHARACTERS, NUMBER, STOP_WORDS, WordWeights, bucket_of, unit, words_of
from tracebridge.states.manual import name_of
from tracebridge.states.rule_columns import RuleColumns
from tracebridge.states.text_clusters import TextClusters
from tracebridge.states.text_features import TextFeatures, encoded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.traces.model import Step, Trace

#: More distinct texts than this are refused.
MAX_TEXTS = 200_000

_N_TERMS = 3  # shown of each cluster

#: A word is shown if so large a share of the cluster's steps has it, and so many tasks and so large a share of them:
#: what few people said, such as a name, is not for a reader of the model.
_SHARE_OF_STEPS = 0.2
_FEWEST_TASKS, _SHARE_OF_TASKS = 3, 0.1
_MOST_TASKS = 20  # so many tasks are enough in any corpus; no more are remembered of a word
_LONGEST_TERM = 40
_MOST_WORDS = 200_000  # words beyond are not remembered, and never shown
_DIGITS = 9  # centres are rounded to so many before use, so that documents are shorter


class TextCorpus:
    """The distinct texts of a corpus, read in one pass; a commutative monoid under ``+``.

    As a `StepClassifier` it puts each step into the group of its text, named by a hash of it. Of a text it keeps the
    hashed words, or what the encoder made of it; memory is bounded by distinct texts. Words themselves can be shown
    only of traces that were `watched`, which tells the tasks that they come from.
    """

    def __init__(self, features: TextFeatures) -> None:
        self.features = features
        self._bags: dict[str, tuple[array[int], array[int]]] = {}  # text to its buckets and how often
        self._rows: dict[str, NDArray[np.float32]] = {}
        self._tasks: set[int] = set()  # hashes of the tasks, or of runs without one
        self._tasks_of: dict[str, set[int]] = {}  # of each word some of them

    @property
    def n_texts(self) -> int:
        """The number of distinct texts."""
        return len(self._bags) + len(self._rows)

    def watched(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """The traces as they come, after it was noted which words are from which task."""
        for trace in traces:
            if self.features.encoder is None:
                whose = f"task {trace.task_id}" if trace.task_id is not None else f"run {trace.trace_id}"
                task = int(digest(whose)[:16], 16)
                self._tasks.add(task)
                for word in {word for step in trace.steps for word in words_of(step.text or "")}:
                    self._note(word, [task])
            yield trace

    def _note(self, word: str, tasks: Iterable[int]) -> None:
        if word in self._tasks_of or len(self._tasks_of) < _MOST_WORDS:
            known = self._tasks_of.setdefault(word, set())
            known.update(islice(tasks, max(0, _MOST_TASKS - len(known))))

    def groups(self, steps: Sequence[Step]) -> list[str]:
        """A name for the text of each step.

        Raises:
            FitError: for more than `MAX_TEXTS` distinct texts, or an encoder that gives no rows.
        """
        texts = [(step.text or "")[:MAX_CHARACTERS] for step in steps]
        keys = [digest(text) for text in texts]
        known = self._rows if self.features.encoder else self._bags
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        _require_few(self.n_texts + len(new))
        if self.features.encoder is not None:
            rows = encoded(self.features.encoder, list(new.values()))
            self._rows.update(zip(new, rows.astype(np.float32), strict=True))
        else:
            for key, text in new.items():
                self._add(key, text)
        return keys

    def _add(self, key: str, text: str) -> None:
        counts = Counter(map(bucket_of, words_of(text)))
        self._bags[key] = array("H", counts.keys()), array("H", counts.values())

    def __add__(self, other: TextCorpus) -> TextCorpus:
        if not isinstance(other, TextCorpus) or other.features != self.features:
            return NotImplemented
        both = TextCorpus(self.features)
        both.update(self)
        both.update(other)
        return both

    def update(self, other: TextCorpus) -> None:
        """Add the texts of another corpus.

        Raises:
            FitError: for more than `MAX_TEXTS` distinct texts.
        """
        self._bags |= other._bags
        self._rows |= other._rows
        _require_few(self.n_texts)
        self._tasks |= other._tasks
        for word in sorted(other._tasks_of):
            self._note(word, sorted(other._tasks_of[word]))

    def to_dict(self) -> dict[str, Any]:
        """What is known of the texts, in values of JSON and bytes; not for an encoder, whose rows these are not."""
        return {
            "bags": {key: [_to_bytes(part) for part in bag] for key, bag in self._bags.items()},
            "tasks": sorted(self._tasks),
            "tasks_of": {word: sorted(tasks) for word, tasks in self._tasks_of.items()},
        }

    @classmethod
    def from_dict(cls, data: Any, features: TextFeatures) -> TextCorpus:
        """Read `to_dict`'s values.

        Raises:
            msgspec.ValidationError, ValueError: for values that are none.
            FitError: for too many texts.
        """
        document = msgspec.convert(data, _Document)
        corpus = cls(features)
        for key, (buckets, counts) in document.bags.items():
            if len(buckets) % 2 or len(buckets) != len(counts):
                raise ValueError("the words of a text have no counts")
            corpus._bags[key] = _of_bytes(buckets), _of_bytes(counts)
        _require_few(corpus.n_texts)
        corpus._tasks = set(document.tasks)
        for word, tasks in document.tasks_of.items():
            corpus._note(word, tasks)
        return corpus

    def word_weights(self) -> WordWeights:
        """The document frequencies so far; each distinct text is one document."""
        frequencies = Counter(bucket for buckets, _ in self._bags.values() for bucket in buckets)
        return WordWeights(n_texts=len(self._bags), frequencies=dict(sorted(frequencies.items())))

    def cluster(
        self, vectors: Sequence[FeatureVector], steps: Sequence[int], *, k_max: int
    ) -> tuple[TextClusters, Clustering]:
        """Cluster kinds of step by rule-based features and text.

        Args:
            vectors: with a group of this corpus each. steps: how many there are of each. k_max: see `cluster`.

        Returns:
            The clusters, whose centres are the means of the steps that the Ward tree put together; and the partition
            of the tree, which they follow except for steps that are nearer to another centre.

        Raises:
            FitError: as `cluster` does, and where the encoder gives rows of different lengths.
        """
        columns = RuleColumns.of(vectors)
        weights = self.word_weights()
        texts = {key: weights.embed(dict(zip(*bag, strict=True))) for key, bag in self._bags.items()}
        texts |= {key: unit(row.astype(np.float64)) for key, row in self._rows.items()}
        width = {len(row) for row in texts.values()} or {0}
        if len(width) > 1:
            raise FitError(f"the text encoder gives rows of different lengths, such as {min(width)} and {max(width)}")
        require_clusterable(len(vectors), columns.width + max(width), k_max)
        points = np.zeros((len(vectors), columns.width + max(width)))
        points[:, : columns.width] = columns.rows(vectors)
        for point, vector in zip(points, vectors, strict=True):
            point[columns.width :] = self.features.weight * texts[vector.group]
        mass = np.array(steps, dtype=np.float64)
        found = cluster(points, mass, k_max=k_max)
        centres = np.zeros((found.n_clusters, points.shape[1]))
        np.add.at(centres, found.labels, points * mass[:, None])
        centres /= np.bincount(found.labels, weights=mass, minlength=found.n_clusters)[:, None]
        encoder = self.features.encoder
        clusters = TextClusters(
            columns=columns,
            words=weights if encoder is None else None,
            weight=self.features.weight,
            centres=tuple(tuple(row) for row in np.round(centres, _DIGITS).tolist()),
            terms=self._terms(weights, vectors, steps, found),
            encoder_name=None if encoder is None else name_of(encoder),
            encoder=encoder,
        )
        return clusters, found

    def nearest(self, clusters: TextClusters, vectors: Sequence[FeatureVector]) -> dict[FeatureVector, str]:
        """The cluster of each vector with a group of this corpus."""
        weights, found = clusters.words, {}
        for vector in vectors:
            if weights is not None:
                text = weights.embed(dict(zip(*self._bags[vector.group], strict=True)))
            else:
                text = unit(self._rows[vector.group].astype(np.float64))
            found[vector] = clusters.nearest(vector, text)
        return found

    def _terms(
        self, weights: WordWeights, vectors: Sequence[FeatureVector], steps: Sequence[int], found: Clustering
    ) -> tuple[tuple[str, ...], ...]:
        """For each cluster the words that may be shown whose mean TF-IDF exceeds that of all steps most."""
        words = self._showable()
        if not words:
            return ((),) * found.n_clusters
        used = np.array(sorted({bucket for buckets, _ in self._bags.values() for bucket in buckets}), dtype=np.int64)
        means, having = np.zeros((2, found.n_clusters, len(used)))
        for vector, count, label in zip(vectors, steps, found.labels.tolist(), strict=True):
            buckets, values = weights.tf_idf(dict(zip(*self._bags[vector.group], strict=True)))
            places = np.searchsorted(used, buckets)
            means[label, places] += count * unit(values)
            having[label, places] += count
        overall = means.sum(axis=0) / max(1, sum(steps))
        size = np.bincount(found.labels, weights=steps, minlength=found.n_clusters)[:, None]
        excess = np.round(means / size - overall, _DIGITS)
        excess[having < _SHARE_OF_STEPS * size] = 0
        excess[:, [bucket not in words for bucket in used.tolist()]] = 0
        shown = [words.get(bucket, "") for bucket in used.tolist()]
        alphabet = np.argsort(np.array(shown))
        best = [alphabet[np.argsort(-row[alphabet], kind="stable")][:_N_TERMS] for row in excess]
        return tuple(
            tuple(shown[i] for i in order.tolist() if excess[label, i] > 0) for label, order in enumerate(best)
        )

    def _showable(self) -> dict[int, str]:
        """The words of enough tasks that are about something, by bucket; of those in one bucket that of most tasks."""
        fewest = min(max(_FEWEST_TASKS, math.ceil(_SHARE_OF_TASKS * len(self._tasks))), _MOST_TASKS)
        found: dict[int, str] = {}
        for word in sorted(self._tasks_of, key=lambda word: (len(self._tasks_of[word]), word)):
            if len(self._tasks_of[word]) >= fewest and word not in STOP_WORDS and word != NUMBER:
                found[bucket_of(word)] = word[:_LONGEST_TERM]
        return found


_Task = Annotated[int, msgspec.Meta(ge=0, lt=2**64)]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    bags: dict[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")], tuple[bytes, bytes]]
    tasks: list[_Task]
    tasks_of: dict[str, list[_Task]]


def _to_bytes(numbers: array[int]) -> bytes:
    return np.array(numbers, dtype="<u2").tobytes()


def _of_bytes(data: bytes) -> array[int]:
    return array("H", np.frombuffer(data, dtype="<u2").tolist())


def _require_few(n_texts: int) -> None:
    if n_texts > MAX_TEXTS:
        raise FitError(
            Problem(
                location=Location(),
                message=f"the steps have more than {MAX_TEXTS} distinct texts",
                hint="fit a sample of the runs, or give steps their states by a map",
            )
        )


def digest(text: str) -> str:
    """A short name for a text; equal for equal texts."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
