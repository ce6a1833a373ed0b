"""The counts of a stream of runs, with or without forgetting, over the states of a baseline or over its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracebridge.chain.counts import TransitionCounts
from tracebridge.chain.fit import ChainFit, fit_counts
from tracebridge.chain.weights import WeightedCounts
from tracebridge.errors import FitError, ModelError, NothingToCheckError, TraceError, UsageError
from tracebridge.states.abstraction import Abstraction
from tracebridge.states.construction import abstract_features
from tracebridge.states.features import MAX_VECTORS, OUTCOMES, FeatureCounts, FeatureVector, encode_runs
from tracebridge.states.space import StateSpace
from tracebridge.watching.run_blocks import (
    BlockDocument,
    RunBlock,
    block_of,
    block_to_dict,
    flows_of,
    passage_keys,
    sources_of,
    summed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.traces.model import Trace

#: So many kinds of step that a baseline does not have get a state each; all others share one.
MOST_NEW_STATES = 200

#: Runs that are forgotten together: this share of the half-life. Weights are multiples of 2^-16, and a block whose
#: weight falls below 2^-10 is let go.
_BLOCKS_A_HALF_LIFE = 16
_WEIGHT_BITS = 16
_LEAST_WEIGHT = Fraction(1, 2**10)

_MORE = "unseen steps of more kinds"


class LiveCounts:
    """Runs as they come, counted by kinds of step.

    Args:
        baseline: the fit whose states and options are used; a chain of its own, and first-order, without one.
        half_life: runs after which a run counts half; None for no forgetting.
        propositions, options: of the states and of the fit, without a baseline: see `abstract_features`, `fit_counts`.

    Attributes:
        runs: how many came. unseen: kinds of step that the baseline does not have, in the order they came.

    Raises:
        UsageError: a half-life that is none, or a baseline that was fitted to counts or to runs with weights.
    """

    def __init__(
        self,
        baseline: ChainFit | None,
        *,
        half_life: float | None = None,
        propositions: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if half_life is not None and not 1 <= half_life < 1e9:
            raise UsageError(f"a half-life is a number of runs, at least 1; not {half_life}")
        if baseline is not None and baseline.abstraction is None:
            raise UsageError("the baseline was fitted to counts: it does not know which state a step belongs to")
        if baseline is not None and baseline.weighted is not None:
            raise UsageError("the runs of the baseline have weights: it cannot be compared with runs that have none")
        self.baseline, self.half_life = baseline, half_life
        self._propositions, self._options = propositions, dict(options or {})
        self._block_size = max(1, round((half_life or 1) / _BLOCKS_A_HALF_LIFE))
        self._blocks: list[RunBlock] = []
        self._numbers: dict[FeatureVector, int] = {}  # in the order they came
        self._new_states: dict[FeatureVector, str] = {}
        self._known: frozenset[FeatureVector] = frozenset()
        if baseline is not None and baseline.abstraction is not None:
            self._known = frozenset(v for members in baseline.abstraction.space.members for v in members)
        self.runs = 0

    @property
    def unseen(self) -> tuple[FeatureVector, ...]:
        """Kinds of step that the baseline does not have, in the order they came."""
        return tuple(self._new_states)

    @property
    def reads_texts(self) -> bool:
        """Whether states may depend on more of a step than its kind, name, error and retry: those of a classifier."""
        return self.baseline is not None and getattr(self.baseline.abstraction, "classifier", None) is not None

    # ------------------------------------------------------------ runs

    def add(self, traces: Sequence[Trace]) -> list[FeatureVector]:
        """Count runs; returns the kinds of step among them that are new to the baseline.

        Raises:
            TraceError, FitError: see `encode_runs`.
        """
        abstraction = None if self.baseline is None else self.baseline.abstraction
        encoded = encode_runs(traces, None if abstraction is None else abstraction.classifier)
        new = [vector for vector in encoded.vectors if vector not in self._numbers]
        if len(self._numbers) + len(new) > MAX_VECTORS:
            raise TraceError(
                f"the steps of the stream have more than {MAX_VECTORS:,} different names, one of them "
                f"{new[0].name[:80]!r}: names must be categories, such as tools, not free text"
            )
        self._numbers |= {vector: i for i, vector in enumerate(new, start=len(self._numbers))}
        keys = passage_keys(encoded, [self._numbers[vector] for vector in encoded.vectors])
        for begin, end in self._cut(encoded.n_runs):
            starts_block = self.half_life is not None and self.runs % self._block_size == 0
            self.runs += end - begin
            offsets = encoded.offsets
            found = np.unique(keys[offsets[begin] + begin : offsets[end] + end], return_counts=True)
            if starts_block or not self._blocks:
                self._blocks.append(RunBlock(self.runs, *found))
            else:
                last = self._blocks[-1]
                last.last = self.runs
                last.keys, last.counts = summed([last.keys, found[0]], [last.counts, found[1]])
        self._blocks = [each for each in self._blocks if self._weight(each) >= _LEAST_WEIGHT]
        return [] if abstraction is None else self._learn(abstraction, encoded.vectors)

    def _cut(self, n_runs: int) -> Iterator[tuple[int, int]]:
        """Where the runs are cut into those of one block: blocks end at multiples of their size."""
        begin, size = 0, n_runs if self.half_life is None else self._block_size
        while begin < n_runs:
            end = n_runs if self.half_life is None else min(begin + size - (self.runs % size), n_runs)
            yield begin, end
            begin = end

    def _learn(self, abstraction: Abstraction, vectors: Iterable[FeatureVector]) -> list[FeatureVector]:
        found = []
        for vector in vectors:
            if vector in self._known or vector in self._new_states:
                continue
            if abstraction.classifier is not None:
                try:
                    abstraction.state_codes([vector])
                    continue  # the user's map says where it belongs
                except FitError:
                    pass
            self._new_states[vector] = self._new_name(vector, abstraction.space)
            found.append(vector)
        return found

    def _new_name(self, vector: FeatureVector, space: StateSpace) -> str:
        taken = {*space.names, *self._new_states.values()}
        if len(taken) - len(space.names) >= MOST_NEW_STATES:
            return _MORE
        marks = [word for word in ("error", "retry") if getattr(vector, word)]
        name = " ".join(["unseen", vector.kind, vector.name, *marks, *([vector.group] if vector.group else [])])
        while name in taken:
            name += "_"
        return name

    def states_of(self, traces: Sequence[Trace]) -> list[tuple[list[str], str]]:
        """The states of each run by the names that the baseline has for them, after `add`, and its outcome.

        Raises:
            UsageError: there is no baseline.
        """
        if self.baseline is None or self.baseline.abstraction is None:
            raise UsageError("without a baseline the states are those of all runs together")
        abstraction = self.baseline.abstraction
        encoded = abstraction.encode_runs(traces)
        names = [
            self._new_states.get(vector) or abstraction.space.names[int(abstraction.state_codes([vector])[0])]
            for vector in encoded.vectors
        ]
        codes, offsets = encoded.codes.tolist(), encoded.offsets.tolist()
        return [
            ([names[code] for code in codes[begin:end]], str(OUTCOMES[outcome]))
            for begin, end, outcome in zip(offsets[:-1], offsets[1:], encoded.outcomes.tolist(), strict=True)
        ]

    # ------------------------------------------------------------ the chain

    def abstraction(self) -> Abstraction:
        """The map from steps to states: that of the baseline with its new states, or one of all runs that count.

        Raises:
            FitError: see `abstract_features`. NothingToCheckError: there is no run.
        """
        if self.baseline is not None and self.baseline.abstraction is not None:
            return _extended(self.baseline.abstraction, self._new_states)
        if not self._blocks:
            raise NothingToCheckError("there is no run yet")
        keys, counts = self._total()
        used = np.unique(sources_of(keys))  # whatever is entered is left again
        vectors = sorted(self._vectors()[number - 1] for number in used[used > 0].tolist())
        places = {vector: i for i, vector in enumerate(vectors)}
        flows = flows_of(keys, counts, [places.get(vector, -1) for vector in self._vectors()], len(vectors))
        return abstract_features(FeatureCounts(vectors=tuple(vectors), **flows), propositions=self._propositions)

    def _vectors(self) -> list[FeatureVector]:
        return list(self._numbers)

    def _total(self, *, weighted: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All passages; each as often as its weight has 2^-16, if that is asked for."""
        factors = [int(self._weight(block) * 2**_WEIGHT_BITS) if weighted else 1 for block in self._blocks]
        counts = [block.counts * factor for block, factor in zip(self._blocks, factors, strict=True)]
        return summed([block.keys for block in self._blocks], counts)

    def fit(self, *, traces: Sequence[Trace] | None = None) -> ChainFit:
        """The chain of the runs so far, each with its weight; or of some of them alone, which count alike.

        Raises:
            FitError, NothingToCheckError: no chain can be fitted yet, or to runs such as these.
        """
        abstraction = self.abstraction()
        counts: TransitionCounts | WeightedCounts
        if traces is not None:
            counts = TransitionCounts.from_features(abstraction.count_features(traces), abstraction)
        else:
            counts = self._counts(abstraction)
        if self.baseline is None:
            return fit_counts(counts, abstraction=abstraction, **self._options)
        base = self.baseline
        return fit_counts(
            counts,
            prior=base.prior,
            support=base.declared or base.support,
            policy=base.policy,
            start=base.start,
            profile=base.profile,
            abstraction=abstraction,
            vocabulary=base.vocabulary,
        )

    def _counts(self, abstraction: Abstraction) -> TransitionCounts | WeightedCounts:
        states = abstraction.space.names
        known = {v: i for i, members in enumerate(abstraction.space.members) for v in members}
        unplaced = [vector for vector in self._vectors() if vector not in known]
        if unplaced and self.baseline is not None:  # a map of the user's says where they belong
            known |= dict(zip(unplaced, abstraction.state_codes(unplaced).tolist(), strict=True))
        places = [known.get(vector, -1) for vector in self._vectors()]  # -1: of forgotten runs alone
        plain = TransitionCounts(states=states, **flows_of(*self._total(), places, len(states)))
        if self.half_life is None:
            return plain
        weighted = flows_of(*self._total(weighted=True), places, len(states))
        return WeightedCounts(
            counts=plain,
            weighted=TransitionCounts(states=states, **weighted),
            unit_weight=Fraction(1, 2**_WEIGHT_BITS),
            sum_of_squares=sum((block.n_runs * self._weight(block) ** 2 for block in self._blocks), Fraction(0)),
        )

    def _weight(self, block: RunBlock) -> Fraction:
        if self.half_life is None:
            return Fraction(1)
        weight = 0.5 ** ((self.runs - block.last) / self.half_life)
        return Fraction(round(weight * 2**_WEIGHT_BITS), 2**_WEIGHT_BITS)

    # ------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """JSON values from which `restore` goes on, given the same baseline and options."""
        return {
            "half_life": self.half_life,
            "runs": self.runs,
            "vectors": [list(vector) for vector in self._numbers],
            "blocks": [block_to_dict(block) for block in self._blocks],
            "unseen": [[list(vector), name] for vector, name in self._new_states.items()],
        }

    def restore(self, data: Any) -> None:
        """Take up `to_dict`'s values.

        Raises:
            ModelError: they are none, or of another half-life.
        """
        try:
            found = msgspec.convert(data, _Document, strict=True)
            blocks = [block_of(block, len(found.vectors)) for block in found.blocks]
        except (msgspec.ValidationError, ValueError) as error:
            raise ModelError(f"what was saved of the runs cannot be read: {error}") from error
        if found.half_life != self.half_life:
            raise ModelError(
                f"the saved runs were forgotten with the half-life {found.half_life}, not {self.half_life}"
            )
        self._blocks, self.runs, self._new_states = blocks, found.runs, dict(found.unseen)
        self._numbers = {vector: i for i, vector in enumerate(found.vectors)}


def _extended(abstraction: Abstraction, new_states: Mapping[FeatureVector, str]) -> Abstraction:
    """The same map with more states; a proposition that is the name of a state gives way where it holds elsewhere."""
    if not new_states:
        return abstraction
    members: dict[str, list[FeatureVector]] = {}
    for name, vectors in zip(abstraction.space.names, abstraction.space.members, strict=True):
        members[name] = list(vectors)
    for vector, name in new_states.items():
        members.setdefault(name, []).append(vector)
    names = tuple(sorted(members))
    space = StateSpace(names=names, members=tuple(tuple(sorted(members[name])) for name in names), given=True)
    return replace(abstraction, space=space, steps=None, splits=())


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    half_life: float | None
    runs: int
    vectors: list[FeatureVector]
    blocks: list[BlockDocument]
    unseen: list[tuple[FeatureVector, str]]
