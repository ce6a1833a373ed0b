"""PathCounts: a corpus as the certificate sees it, without its traces; shards add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracebridge.chain.document import checked_document
from tracebridge.errors import FitError, Location, ModelError
from tracebridge.inference.event_counts import EventCounts
from tracebridge.inference.path_tables import CENSORED, FAILURE, MAX_RUN_LENGTH, STEP_BINS, SUCCESS, PathTables
from tracebridge.inference.run_sample import (
    RunSample,
    sample_from_dict,
    sample_to_dict,
)
from tracebridge.states.features import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray


KIND = "path-counts"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCounts:
    """Sufficient statistics of a corpus for its certificate: a commutative monoid under ``+``.

    Attributes:
        states: the states that occur, ascending, unique; m of them.
        tables: events and runs over these states, of one corpus.
        sample: some of the runs whole, for tests of covariates; None where none was asked for.

    Raises:
        ModelError: for states or tables that break this, or tables that no runs can have.
    """

    states: tuple[str, ...]
    tables: PathTables
    sample: RunSample | None = None

    def __post_init__(self) -> None:
        states = tuple(self.states)
        if list(states) != sorted(set(states)) or "" in states:
            raise ModelError("path counts need unique state names, ascending and not empty")
        if (self.tables.n_corpora, self.tables.n_states) != (1, len(states)):
            raise ModelError(f"{len(states)} states, but tables of {self.tables.n_corpora} corpora over other states")
        _require_runs(self.tables, states)
        if self.sample is not None and self.sample.n_seen != self.n_runs:
            raise ModelError(f"the sample is of {self.sample.n_seen} runs, not of the {self.n_runs} that are counted")
        object.__setattr__(self, "states", states)

    # ------------------------------------------------------------ making

    @classmethod
    def empty(cls, covariates: Sequence[str] = ()) -> PathCounts:
        """The neutral element: no run, no state."""
        sample = RunSample(covariates=tuple(covariates)) if covariates else None
        return cls(states=(), tables=PathTables.none(0), sample=sample)

    @classmethod
    def of_paths(
        cls,
        states: Sequence[str],
        codes: NDArray[np.integer],
        offsets: NDArray[np.integer],
        outcomes: NDArray[np.integer],
        sample: RunSample | None = None,
    ) -> PathCounts:
        """Count runs laid end to end, as in `PathTables.of_paths`; states that do not occur are left out."""
        used = np.unique(codes)
        order = sorted(used.tolist(), key=states.__getitem__)
        position = np.zeros(len(states), dtype=np.int64)
        position[order] = np.arange(len(order))
        moved = position[codes] if len(codes) else np.empty(0, dtype=np.int64)
        names = tuple(states[i] for i in order)
        return cls(states=names, tables=PathTables.of_paths(moved, offsets, outcomes, len(names)), sample=sample)

    def __add__(self, other: PathCounts) -> PathCounts:
        if not isinstance(other, PathCounts):
            return NotImplemented
        if (self.sample is None) != (other.sample is None):
            raise ModelError("counts with and without a sample of runs do not add up")
        states = tuple(sorted({*self.states, *other.states}))
        position = {name: i for i, name in enumerate(states)}
        tables = [
            counts.tables.relabelled([position[name] for name in counts.states], len(states))
            for counts in (self, other)
        ]
        sample = None
        if self.sample is not None and other.sample is not None:
            sample = self.sample + other.sample
        return PathCounts(states=states, tables=tables[0] + tables[1], sample=sample)

    # ------------------------------------------------------------ reading

    @property
    def n_runs(self) -> int:
        """All runs."""
        return int(self.tables.n_runs[0])

    @property
    def n_events(self) -> int:
        """Steps of which it was seen what followed."""
        return int(self.tables.clock.totals[0])

    def runs_by_outcome(self) -> dict[str, int]:
        """The number of runs with each outcome."""
        return {outcome.value: int(n) for outcome, n in zip(OUTCOMES, self.tables.ends[0].sum(axis=1), strict=True)}

    # ------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """A JSON document by state names; zeros are left out.

        ``previous`` has the first steps of runs apart as ``first``; runs by length stand under ``ends``.
        """
        tables, m = self.tables, len(self.states)
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "states": list(self.states),
            "first": self._nested(tables.previous.where(tables.previous.contexts == m), lambda _: "").get("", {}),
            "previous": self._nested(tables.previous.where(tables.previous.contexts < m), self.states.__getitem__),
            "clock": self._nested(tables.clock, STEP_BINS.__getitem__),
            "dwell": self._nested(tables.dwell, STEP_BINS.__getitem__),
            "starts": {name: n for name, n in zip(self.states, tables.starts[0].tolist(), strict=True) if n},
            "ends": {
                outcome.value: {str(i): int(tables.ends[0, code, i]) for i in np.flatnonzero(tables.ends[0, code])}
                for code, outcome in enumerate(OUTCOMES)
            },
            "sample": None if self.sample is None else sample_to_dict(self.sample, self.states),
        }

    def _nested(self, table: EventCounts, context: Callable[[int], str]) -> dict[str, dict[str, dict[str, int]]]:
        names = (*self.states, "success", "failure")
        nested: dict[str, dict[str, dict[str, int]]] = {}
        columns = (table.contexts, table.states, table.following, table.counts)
        for g, i, j, n in zip(*(column.tolist() for column in columns), strict=True):
            nested.setdefault(context(g), {}).setdefault(names[i], {})[names[j]] = n
        return nested

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> PathCounts:
        """Read `to_dict`'s document.

        Raises:
            ModelError: naming the field: an unknown version, a wrong type, an unknown state, or tables that no runs
                can have.
        """
        document = checked_document(data, _Document, kind=KIND, version=SCHEMA_VERSION, path=path)
        place = Location(path=path)
        try:
            reader = _Reader(document.states)
            m = len(document.states)
            first = reader.entries({"": document.first}, {"": m})
            previous = reader.entries(document.previous, {name: i for i, name in enumerate(document.states)})
            bins = {name: i for i, name in enumerate(STEP_BINS)}
            tables = PathTables(
                previous=reader.events(first + previous, m + 1),
                clock=reader.events(reader.entries(document.clock, bins), len(bins)),
                dwell=reader.events(reader.entries(document.dwell, bins), len(bins)),
                starts=reader.starts(document.starts),
                ends=_ends(document.ends),
            )
            sample = None
            if document.sample is not None:
                sample = sample_from_dict(msgspec.to_builtins(document.sample), document.states)
            return cls(states=tuple(document.states), tables=tables, sample=sample)
        except (ModelError, FitError) as error:
            raise ModelError(str(error), location=place) from error


def _require_runs(tables: PathTables, states: Sequence[str]) -> None:
    """Raise ModelError unless the tables can be of runs: the same events, as many in as out, as many ends as runs."""
    m = len(states)
    by_length = tables.ends[0].sum(axis=0, dtype=np.float64)
    if max(tables.starts.sum(dtype=np.float64), by_length.sum(), by_length @ np.arange(len(by_length))) >= 2**53:
        raise ModelError("the counts are too large: runs and steps must stay below 2^53")
    pooled = tables.clock.pooled()
    if tables.dwell.pooled() != pooled or tables.previous.pooled() != pooled:
        raise ModelError("the tables by clock, by dwell and by previous state are not of the same events")
    left = np.bincount(pooled.states, weights=pooled.counts, minlength=m).astype(np.int64)
    reached = np.bincount(pooled.following, weights=pooled.counts, minlength=m + 2).astype(np.int64)
    entered = reached[:m] + tables.starts[0]
    cut = entered - left
    for i in np.flatnonzero(cut < 0).tolist():
        raise ModelError(f"state {states[i]!r} is left {-int(cut[i])} times more than it is entered")
    for i in np.flatnonzero(entered == 0).tolist():
        raise ModelError(f"state {states[i]!r} does not occur")
    ends = tables.ends[0]
    with_steps = ends[:, 1:].sum(axis=1)
    seen = (reached[m], reached[m + 1], cut.sum())
    for code, name in ((SUCCESS, "success"), (FAILURE, "failure"), (CENSORED, "censored")):
        if with_steps[code] != seen[code]:
            raise ModelError(f"{int(with_steps[code])} runs end in {name}, but {int(seen[code])} last steps do")
    if tables.starts.sum() != with_steps.sum():
        raise ModelError(f"{int(tables.starts.sum())} first steps, but {int(with_steps.sum())} runs with a step")
    if (ends.sum(axis=0) * np.arange(ends.shape[1])).sum() != entered.sum():
        raise ModelError(f"the lengths of the runs do not add up to the {int(entered.sum())} steps")
    at_first = tables.previous.contexts == m
    at_zero = tables.clock.contexts == 0
    first, zero = tables.previous.where(at_first), tables.clock.where(at_zero)
    if first.pooled() != zero.pooled():
        raise ModelError("the first steps by previous state and by clock are not the same")


# ---------------------------------------------------------------- documents

_Following = dict[str, int]


class _Sampled(msgspec.Struct, forbid_unknown_fields=True):
    rank: str
    task: str
    values: list[str]
    outcome: int
    transitions: list[tuple[int, int, int]]


class _Sample(msgspec.Struct, forbid_unknown_fields=True):
    covariates: list[str]
    n_seen: int
    runs: list[_Sampled]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    states: list[str]
    first: dict[str, _Following]
    previous: dict[str, dict[str, _Following]]
    clock: dict[str, dict[str, _Following]]
    dwell: dict[str, dict[str, _Following]]
    starts: dict[str, int]
    ends: dict[str, dict[str, int]]
    sample: _Sample | None


class _Reader:
    """Names to positions, with the name in every complaint."""

    def __init__(self, states: Sequence[str]) -> None:
        self._states = {name: i for i, name in enumerate(states)}
        self._following = {**self._states, "success": len(states), "failure": len(states) + 1}

    def entries(
        self, nested: Mapping[str, Mapping[str, Mapping[str, int]]], contexts: Mapping[str, int]
    ) -> list[tuple[int, int, int, int]]:
        return [
            (_at(contexts, context), _at(self._states, state), _at(self._following, after), _count(n))
            for context, by_state in nested.items()
            for state, row in by_state.items()
            for after, n in row.items()
        ]

    def events(self, entries: Sequence[tuple[int, int, int, int]], n_contexts: int) -> EventCounts:
        columns = np.array(entries, dtype=np.int64).reshape(-1, 4).T
        return EventCounts.of(*columns, n_contexts=n_contexts, n_states=len(self._states))

    def starts(self, starts: Mapping[str, int]) -> NDArray[np.int64]:
        result = np.zeros((1, len(self._states)), dtype=np.int64)
        for name, n in starts.items():
            result[0, _at(self._states, name)] = _count(n)
        return result


def _at(positions: Mapping[str, int], name: str) -> int:
    if name not in positions:
        raise ModelError(f"{name[:80]!r} is none of {', '.join(map(repr, list(positions)[:10]))}")
    return positions[name]


def _count(n: int) -> int:
    if not 0 < n < 2**53:
        raise ModelError(f"the count {n} is not between 1 and 2^53")
    return n


def _ends(by_outcome: Mapping[str, Mapping[str, int]]) -> NDArray[np.int64]:
    codes = {outcome.value: code for code, outcome in enumerate(OUTCOMES)}
    entries = []
    for outcome, by_length in by_outcome.items():
        for text, n in by_length.items():
            length = int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else -1
            if not 0 <= length <= MAX_RUN_LENGTH:
                raise ModelError(f"{text[:80]!r} is no length of a run between 0 and {MAX_RUN_LENGTH}")
            entries.append((_at(codes, outcome), length, _count(n)))
    longest = max((length for _, length, _ in entries), default=0)
    ends = np.zeros((1, len(OUTCOMES), longest + 1), dtype=np.int64)
    for code, length, n in entries:
        ends[0, code, length] += n
    return ends
