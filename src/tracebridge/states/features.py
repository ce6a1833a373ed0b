"""Steps as small feature vectors, and runs as arrays of integer codes.

The rule-based features of a step are its kind, its name, whether it failed, and whether it retries the step before it.
A classifier adds the group of the step: the state of a map that the user gave, or the cluster of its text. Everything
after this module sees only vectors, codes and counts. Memory is bounded by distinct vectors and the size of one batch,
never by the number of steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import add, attrgetter, is_
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.states.flow import RunFlow, closed_walk
from tracebridge.traces.model import Outcome, Step, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: More distinct vectors than this are free text, not categories.
MAX_VECTORS = 1_000_000

#: The order of outcome codes.
OUTCOMES = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.CENSORED)

_BATCH_SIZE = 65_536  # steps and runs
CODE_BITS = 30  # a key packs outcome, source and target: 2 + 30 + 30 bits
CODE_MASK = (1 << CODE_BITS) - 1
_OUTCOME_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_PENDING = 65_536
_key_of = attrgetter("kind", "name", "error")
_attributes_of = attrgetter("attributes")


class FeatureVector(NamedTuple):
    """What the chain is told about a step.

    ``retry``: the step repeats kind and name of the step before it, which ended in an error; or its attributes say
    ``"retry": true``.
    ``group``: what a `StepClassifier` says of the step; empty without one.
    """

    kind: str
    name: str
    error: bool
    retry: bool
    group: str = ""

    def __str__(self) -> str:
        """For messages: ``kind 'name', error``."""
        told = [flag for flag in ("error", "retry") if getattr(self, flag)]
        return ", ".join([f"{self.kind} {self.name!r}", *told, *([f"of group {self.group!r}"] if self.group else [])])


class StepClassifier(Protocol):
    """Puts steps into named groups."""

    def groups(self, steps: Sequence[Step]) -> Iterable[str]:
        """The group of each step of a run, never empty."""
        ...


def retries(steps: Sequence[Step]) -> list[bool]:
    """Whether each step of a run is a retry, as `FeatureVector` defines it."""
    before: tuple[None, *tuple[Step, ...]] = (None, *steps[:-1])
    return [
        step.attributes.get("retry") is True
        or (last is not None and last.error and (last.kind, last.name) == (step.kind, step.name))
        for step, last in zip(steps, before, strict=False)
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedRuns:
    """Runs as integer paths over distinct feature vectors.

    Attributes:
        vectors: distinct vectors, ascending.
        codes: positions in ``vectors``, run after run, int32, shape (n_steps,).
        offsets: run ``r`` is ``codes[offsets[r]:offsets[r + 1]]``, int64, shape (n_runs + 1,).
        outcomes: positions in `OUTCOMES`, int8, shape (n_runs,).
        task_ids: the task of each run, or None where the trace names none.
    """

    vectors: tuple[FeatureVector, ...]
    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    outcomes: NDArray[np.int8]
    task_ids: tuple[str | None, ...]

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.outcomes)

    def counts(self) -> FeatureCounts:
        """The counts of these runs."""
        counter = PassageCounter()
        counter.add(self.codes, self.offsets, self.outcomes)
        return counter.counts(self.vectors)

    def regrouped(self, group_of: Callable[[FeatureVector], str]) -> EncodedRuns:
        """The same runs after each vector got the group that ``group_of`` gives it."""
        vectors, position = _regrouped(self.vectors, group_of)
        return replace(self, vectors=vectors, codes=position[self.codes].astype(np.int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCounts:
    """Passages between feature vectors, apart by outcome: a commutative monoid under ``+``.

    Only vectors that occur are kept, in ascending order, so that equal corpora give equal counts however they were
    cut into batches and shards and in whatever order these were added.

    Attributes:
        vectors: distinct vectors, ascending; U of them.
        success, failure, censored: the flow of the runs with that outcome over these U places.
    """

    vectors: tuple[FeatureVector, ...]
    success: RunFlow
    failure: RunFlow
    censored: RunFlow

    @classmethod
    def empty(cls) -> FeatureCounts:
        """The neutral element: no run."""
        none = RunFlow.none(0)
        return cls(vectors=(), success=none, failure=none, censored=none)

    @property
    def visits(self) -> NDArray[np.int64]:
        """Steps with each vector over all runs, shape (U,)."""
        return self.success.visits + self.failure.visits + self.censored.visits

    @property
    def n_runs(self) -> int:
        """All runs."""
        return self.success.n_runs + self.failure.n_runs + self.censored.n_runs

    def __add__(self, other: FeatureCounts) -> FeatureCounts:
        if not isinstance(other, FeatureCounts):
            return NotImplemented
        vectors = tuple(sorted({*self.vectors, *other.vectors}))
        position = {vector: i for i, vector in enumerate(vectors)}
        ours = np.array([position[vector] for vector in self.vectors], dtype=np.int64)
        theirs = np.array([position[vector] for vector in other.vectors], dtype=np.int64)
        size = len(vectors)
        flows = {
            outcome.value: getattr(self, outcome).relabelled(ours, size)
            + getattr(other, outcome).relabelled(theirs, size)
            for outcome in OUTCOMES
        }
        return FeatureCounts(vectors=vectors, **flows)

    def regrouped(self, group_of: Callable[[FeatureVector], str]) -> FeatureCounts:
        """The same runs after each vector got the group that ``group_of`` gives it."""
        vectors, position = _regrouped(self.vectors, group_of)
        flows = {outcome.value: getattr(self, outcome).relabelled(position, len(vectors)) for outcome in OUTCOMES}
        return FeatureCounts(vectors=vectors, **flows)


def _regrouped(
    vectors: Sequence[FeatureVector], group_of: Callable[[FeatureVector], str]
) -> tuple[tuple[FeatureVector, ...], NDArray[np.int64]]:
    """The new distinct vectors, ascending, and where among them each old one went."""
    moved = [vector._replace(group=group_of(vector)) for vector in vectors]
    distinct = tuple(sorted(set(moved)))
    position = {vector: i for i, vector in enumerate(distinct)}
    return distinct, np.array([position[vector] for vector in moved], dtype=np.int64)


def count_features(traces: Iterable[Trace], classifier: StepClassifier | None = None) -> FeatureCounts:
    """Count a corpus in one pass; the traces themselves are not kept. ``classifier`` gives the vectors their groups.

    Raises:
        TraceError: for a step without a name or kind, an outcome that is none, or names that are free text.
    """
    encoder, counter = RunEncoder(classifier), PassageCounter()
    for batch in encoder.batches(traces):
        counter.add(batch.codes, batch.offsets, batch.outcomes)
    return counter.counts(encoder.vectors())


def encode_runs(traces: Iterable[Trace], classifier: StepClassifier | None = None) -> EncodedRuns:
    """All runs as paths, in the order given: four bytes a step and some per run. The options are `count_features`'s.

    Raises:
        TraceError: as `count_features` does.
    """
    encoder = RunEncoder(classifier)
    batches = list(encoder.batches(traces))
    none = np.empty(0, dtype=np.int32)
    raw = np.concatenate([none, *(batch.codes for batch in batches)])
    lengths = np.concatenate([none, *(np.diff(batch.offsets) for batch in batches)])
    table = encoder.vectors()
    used = np.unique(raw)
    order = sorted(used.tolist(), key=table.__getitem__)
    position = np.zeros(len(table), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return EncodedRuns(
        vectors=tuple(table[code] for code in order),
        codes=position[raw],
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        outcomes=np.concatenate([np.empty(0, dtype=np.int8), *(batch.outcomes for batch in batches)]),
        task_ids=tuple(task for batch in batches for task in batch.task_ids),
    )


class EncodedBatch(NamedTuple):
    """Some runs in raw codes: twice the code of a step's key, plus one for a retry."""

    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    outcomes: NDArray[np.int8]
    task_ids: list[str | None]


#: kind, name, error; with a classifier also the group.
_Key = tuple[str, str, bool] | tuple[str, str, bool, str]


class _Codes(dict[_Key, int]):
    """Codes for keys, given out as these appear; what follows from the key is kept beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.activities: dict[tuple[str, str], int] = {}
        self.activity_of_code: list[int] = []
        self.error_of_code: list[bool] = []

    def __missing__(self, key: _Key) -> int:
        kind, name, error = key[:3]
        if not (isinstance(kind, str) and kind and isinstance(name, str) and name and isinstance(error, bool)):
            raise TraceError(f"a step has kind {kind!r}, name {name!r}, error {error!r}: text, text and a truth value")
        code = len(self)
        if 2 * code >= MAX_VECTORS:
            raise TraceError(
                Problem(
                    location=Location(),
                    message=f"the steps have more than {code} different names, the last of them {name[:80]!r}",
                    hint="names must be categories, such as tools, not free text",
                )
            )
        self[key] = code
        self.activity_of_code.append(self.activities.setdefault((kind, name), len(self.activities)))
        self.error_of_code.append(error)
        return code


class RunEncoder:
    """Traces to batches of raw codes, at C speed per step.

    Each trace is let go before the next is read. Keeping even a thousand of them would cost more than encoding does:
    the garbage collector walks through what it finds alive.
    """

    def __init__(self, classifier: StepClassifier | None) -> None:
        self._codes = _Codes()
        self._classifier = classifier

    def batches(self, traces: Iterable[Trace]) -> Iterator[EncodedBatch]:
        """The traces in their order, encoded."""
        code_of, get, classifier = self._codes.__getitem__, dict.get, self._classifier
        base, said, lengths, outcomes = array("i"), bytearray(), array("q"), array("b")
        task_ids: list[str | None] = []
        for trace in traces:
            steps = trace.steps
            if classifier is None:
                base.extend(map(code_of, map(_key_of, steps)))
            else:
                base.extend(map(code_of, map(add, map(_key_of, steps), zip(classifier.groups(steps), strict=True))))
            marks = map(get, map(_attributes_of, steps), repeat("retry"))
            said.extend(map(is_, marks, repeat(True)))
            lengths.append(len(steps))
            outcomes.append(_outcome_code(trace))
            task_ids.append(trace.task_id)
            if len(base) + len(lengths) >= _BATCH_SIZE:
                yield self._batch(base, said, lengths, outcomes, task_ids)
                base, said, lengths, outcomes = array("i"), bytearray(), array("q"), array("b")
                task_ids = []
        if lengths:
            yield self._batch(base, said, lengths, outcomes, task_ids)

    def vectors(self) -> list[FeatureVector]:
        """The vector of every raw code."""
        return [FeatureVector(*key[:3], retry, *key[3:]) for key in self._codes for retry in (False, True)]

    def _batch(
        self, base: array[int], said: bytearray, lengths: array[int], outcomes: array[int], task_ids: list[str | None]
    ) -> EncodedBatch:
        code = np.array(base, dtype=np.int32)
        offsets = np.concatenate([[0], np.cumsum(np.array(lengths, dtype=np.int64))])
        activity = np.array(self._codes.activity_of_code, dtype=np.int32)[code]
        error = np.array(self._codes.error_of_code, dtype=np.bool_)[code]
        repeats = np.zeros(len(code), dtype=np.bool_)
        repeats[1:] = (activity[1:] == activity[:-1]) & error[:-1]
        repeats[offsets[:-1][np.diff(offsets) > 0]] = False
        retry = np.frombuffer(said, dtype=np.bool_) | repeats
        return EncodedBatch(2 * code + retry, offsets, np.array(outcomes, dtype=np.int8), task_ids)


def _outcome_code(trace: Trace) -> int:
    code = _OUTCOME_CODES.get(trace.outcome)
    if code is None:
        raise TraceError(
            f"{trace.outcome!r} is no Outcome", location=Location(record=repr(trace.trace_id), field="outcome")
        )
    return code


class PassageCounter:
    """Sums of equal (outcome, source, target) keys over batches; code 0 is the outside, vector ``c`` is ``c + 1``.

    A key is ``outcome 2^60 + source 2^30 + target``.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        self._pending: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._n_pending = 0

    def add(self, codes: NDArray[np.int32], offsets: NDArray[np.int64], outcomes: NDArray[np.int8]) -> None:
        """Count the passages of some runs, laid end to end."""
        walk = closed_walk(codes, offsets, -1) + 1
        outcome = np.repeat(outcomes.astype(np.int64), np.diff(offsets) + 1)
        keys = (outcome << (2 * CODE_BITS)) | (walk[:-1] << CODE_BITS) | walk[1:]
        self.add_keys(*np.unique(keys, return_counts=True))

    def add_keys(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Count passages that were counted before; the keys are distinct."""
        self._pending.append((keys, counts))
        self._n_pending += len(keys)
        if self._n_pending > max(_PENDING, len(self._keys)):
            self._settle()

    def passages(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct keys so far, ascending, and how often each was passed."""
        self._settle()
        return self._keys, self._counts

    def counts(self, table: Sequence[FeatureVector]) -> FeatureCounts:
        """The counts so far; ``table[c]`` is the vector of code ``c``."""
        self._settle()
        sources = (self._keys >> CODE_BITS) & CODE_MASK
        targets = self._keys & CODE_MASK
        used = np.unique(sources)  # whatever is entered is left again
        order = sorted((used[used > 0] - 1).tolist(), key=table.__getitem__)
        size = len(order)
        position = np.full(len(table) + 1, size, dtype=np.int64)
        position[np.array(order, dtype=np.int64) + 1] = np.arange(size)
        flows = {}
        for code, outcome in enumerate(OUTCOMES):
            mine = self._keys >> (2 * CODE_BITS) == code
            entries = position[sources[mine]], position[targets[mine]], self._counts[mine]
            flows[outcome.value] = RunFlow.from_entries(*entries, size)
        return FeatureCounts(vectors=tuple(table[code] for code in order), **flows)

    def _settle(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._pending)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._pending)])
        self._pending.clear()
        self._n_pending = 0
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        self._keys, self._counts = keys[first], np.add.reduceat(counts[order], first)
