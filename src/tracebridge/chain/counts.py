"""TransitionCounts: what a corpus says about a chain, in integers that add up over shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.document import checked_document
from tracebridge.errors import Location, ModelError, UsageError
from tracebridge.html_table import SHOWN_ROWS, html_table
from tracebridge.states.features import OUTCOMES, FeatureCounts
from tracebridge.states.flow import MAX_TOTAL, RunFlow
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from tracebridge.states.abstraction import Abstraction

#: What to make of a run whose end was not seen: use the transitions before it, call it a failure, or leave it out.
CensoringPolicy = Literal["censored", "failure", "drop"]

KIND = "transition-counts"
SCHEMA_VERSION = 1


class _Numbering(dict[str, int]):
    """Numbers names as they are met."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionCounts:
    """Runs over named states, apart by outcome: a commutative monoid under ``+``.

    Attributes:
        states: unique names, kept in ascending order whatever order is given; m of them.
        success, failure, censored: the flow of the runs with that outcome; its places are the states.

    Raises:
        ModelError: for names that are empty or not unique, or a flow of another size.
    """

    states: tuple[str, ...]
    success: RunFlow
    failure: RunFlow
    censored: RunFlow

    def __post_init__(self) -> None:
        states = tuple(self.states)
        if len(set(states)) != len(states) or not all(isinstance(name, str) and name for name in states):
            raise ModelError("counts need unique state names that are not empty")
        for outcome in OUTCOMES:
            if getattr(self, outcome).size != len(states):
                raise ModelError(
                    f"{len(states)} states, but the flow of {outcome} runs is over {getattr(self, outcome).size}"
                )
        ordered = tuple(sorted(states))
        if ordered != states:
            position = {name: i for i, name in enumerate(ordered)}
            moved = [position[name] for name in states]
            for outcome in OUTCOMES:
                object.__setattr__(self, outcome, getattr(self, outcome).relabelled(moved, len(states)))
        object.__setattr__(self, "states", ordered)

    # ------------------------------------------------------------ making

    @classmethod
    def empty(cls) -> TransitionCounts:
        """The neutral element: no run, no state."""
        none = RunFlow.none(0)
        return cls(states=(), success=none, failure=none, censored=none)

    @classmethod
    def from_features(cls, counts: FeatureCounts, abstraction: Abstraction) -> TransitionCounts:
        """The counts of a corpus after its feature vectors became states.

        Raises:
            FitError: for a vector that belongs to no state.
        """
        states = abstraction.space.names
        codes = abstraction.state_codes(counts.vectors)
        return cls(
            states=states,
            success=counts.success.relabelled(codes, len(states)),
            failure=counts.failure.relabelled(codes, len(states)),
            censored=counts.censored.relabelled(codes, len(states)),
        )

    @classmethod
    def from_paths(cls, paths: Iterable[tuple[Sequence[str], Outcome | str]]) -> TransitionCounts:
        """Count runs given as state names in order and an outcome."""
        sequences, outcomes = [], []
        for names, outcome in paths:
            sequences.append(names)
            outcomes.append(outcome)
        numbers = _Numbering()
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        found = map(numbers.__getitem__, chain.from_iterable(sequences))
        steps = np.fromiter(found, dtype=np.int64, count=int(lengths.sum()))
        states = tuple(sorted(numbers))
        rank = np.empty(len(states), dtype=np.int64)
        rank[[numbers[name] for name in states]] = np.arange(len(states))
        steps = rank[steps]
        known = {outcome: OUTCOMES.index(Outcome(outcome)) for outcome in set(outcomes)}
        ends = np.fromiter(map(known.__getitem__, outcomes), dtype=np.int8, count=len(outcomes))
        flows = {}
        for i, outcome in enumerate(OUTCOMES):
            chosen = ends == i
            offsets = np.concatenate([[0], np.cumsum(lengths[chosen])])
            flows[outcome.value] = RunFlow.from_paths(steps[np.repeat(chosen, lengths)], offsets, len(states))
        return cls(states=states, **flows)

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        states = tuple(sorted({*self.states, *other.states}))
        position = {name: i for i, name in enumerate(states)}
        ours = [position[name] for name in self.states]
        theirs = [position[name] for name in other.states]
        flows = {
            outcome.value: getattr(self, outcome).relabelled(ours, len(states))
            + getattr(other, outcome).relabelled(theirs, len(states))
            for outcome in OUTCOMES
        }
        return TransitionCounts(states=states, **flows)

    # ------------------------------------------------------------ reading

    @property
    def n_runs(self) -> int:
        """All runs."""
        return self.success.n_runs + self.failure.n_runs + self.censored.n_runs

    @property
    def n_steps(self) -> int:
        """All steps."""
        return self.success.n_steps + self.failure.n_steps + self.censored.n_steps

    @property
    def visits(self) -> NDArray[np.int64]:
        """Steps in each state over all runs, shape (m,)."""
        return self.success.visits + self.failure.visits + self.censored.visits

    def runs_by_outcome(self) -> dict[str, int]:
        """The number of runs with each outcome."""
        return {outcome.value: getattr(self, outcome).n_runs for outcome in OUTCOMES}

    def pass_rate(self, policy: CensoringPolicy = "censored") -> Fraction | None:
        """Successes among completed runs, or among all runs when a censored run is a failure; None without any."""
        runs = self._n_runs_of_rate(policy)
        return Fraction(self.success.n_runs, runs) if runs else None

    def mean_length(self, policy: CensoringPolicy = "censored") -> Fraction | None:
        """Mean number of steps of the runs that `pass_rate` is taken over; None without any."""
        runs = self._n_runs_of_rate(policy)
        steps = self.success.n_steps + self.failure.n_steps
        if policy == "failure":
            steps += self.censored.n_steps
        return Fraction(steps, runs) if runs else None

    def under(self, policy: CensoringPolicy) -> RowCounts:
        """The counts that a chain is fitted to.

        ``censored``: every transition counts and the last state of a censored run adds nothing to its row, which is the
        maximum-likelihood treatment of ends that were not seen. ``failure``: that state failed. ``drop``: only
        completed runs count.
        """
        _require_policy(policy)
        size = len(self.states)
        flow = self.success + self.failure
        if policy != "drop":
            flow += self.censored
        failures = self.failure.ends
        empty_failures = self.failure.n_empty
        if policy == "failure":
            failures = failures + self.censored.ends
            empty_failures += self.censored.n_empty
        exits = csr_array(np.column_stack([self.success.ends, failures]))
        rows, columns = flow.transitions.tocoo().coords
        exit_rows, exit_columns = exits.tocoo().coords
        counts = csr_array(
            (
                np.concatenate([flow.transitions.data, exits.tocoo().data]),
                (np.concatenate([rows, exit_rows]), np.concatenate([columns, exit_columns + size])),
            ),
            shape=(size, size + 2),
            dtype=np.int64,
        )
        counts.sum_duplicates()
        return RowCounts(
            states=self.states,
            counts=counts,
            starts=np.concatenate([flow.starts, [self.success.n_empty, empty_failures]]).astype(np.int64),
            visits=flow.visits,
        )

    # ------------------------------------------------------------ documents

    def to_records(self, first: int | None = None) -> list[dict[str, Any]]:
        """One record a passage that was seen: ``source``, ``target``, ``outcome`` of its runs, ``count``.

        A run starts from the source None, and the target of its last passage is None.

        Args:
            first: only so many of them; all by default.
        """
        names = [*self.states, None]
        passages = (
            {"source": names[i], "target": names[j], "outcome": outcome.value, "count": number}
            for outcome in OUTCOMES
            for i, j, number in _passages(getattr(self, outcome))
        )
        return list(islice(passages, first))

    def __repr__(self) -> str:
        outcomes = ", ".join(f"{number} {outcome}" for outcome, number in self.runs_by_outcome().items())
        return f"<TransitionCounts of {len(self.states)} states, {self.n_steps} steps, {self.n_runs} runs: {outcomes}>"

    def _repr_html_(self) -> str:
        rows = [
            (each["source"] or "(start)", each["target"] or "(end)", each["outcome"], each["count"])
            for each in self.to_records(SHOWN_ROWS)
        ]
        total = sum(getattr(self, outcome).passages.nnz for outcome in OUTCOMES)
        heads = ("from", "to", "outcome of the run", "count")
        return html_table(heads, rows, caption=repr(self)[1:-1], noun="passages", total=total)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document by state names; zeros are left out."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "states": list(self.states),
            **{outcome.value: _flow_to_dict(getattr(self, outcome), self.states) for outcome in OUTCOMES},
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> TransitionCounts:
        """Read `to_dict`'s document.

        Raises:
            ModelError: naming the field: an unknown version, a wrong type, an unknown state, or runs that enter a state
                more often than they leave it.
        """
        document = checked_document(data, _Document, kind=KIND, version=SCHEMA_VERSION, path=path)
        position = {name: i for i, name in enumerate(document.states)}
        if len(position) != len(document.states) or "" in position:
            raise ModelError("state names must be unique and not empty", location=Location(path=path, field="states"))
        flows = {
            outcome.value: _flow_from_dict(
                getattr(document, outcome), position, Location(path=path, field=outcome.value)
            )
            for outcome in OUTCOMES
        }
        return cls(states=tuple(document.states), **flows)

    def _n_runs_of_rate(self, policy: CensoringPolicy) -> int:
        _require_policy(policy)
        completed = self.success.n_runs + self.failure.n_runs
        return completed + self.censored.n_runs if policy == "failure" else completed


def _passages(flow: RunFlow) -> Iterator[tuple[int, int, int]]:
    """Row, column and count of each passage of a flow."""
    matrix = flow.passages
    for row, (begin, end) in enumerate(pairwise(matrix.indptr.tolist())):
        columns, numbers = matrix.indices[begin:end].tolist(), matrix.data[begin:end].tolist()
        yield from ((row, column, number) for column, number in zip(columns, numbers, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowCounts:
    """Counts by row of a chain with m transient states, after a censoring policy was chosen.

    Attributes:
        states: the m names.
        counts: transitions out of each state, CSR int64, shape (m, m + 2); the last columns are success and failure.
        starts: runs by where they start, shape (m + 2,): first steps, then runs without a step by their outcome.
        visits: steps in each state, shape (m,); more than the row's sum where censored runs ended.
        unit: what a count of one stands for, in runs or steps: one, but where runs have weights.
    """

    states: tuple[str, ...]
    counts: csr_array
    starts: NDArray[np.int64]
    visits: NDArray[np.int64]
    unit: Fraction = Fraction(1)

    def restricted(self, kept: NDArray[np.bool_]) -> RowCounts:
        """Without the states where ``kept``, shape (m,), is false; these must never be entered or left."""
        columns = np.concatenate([kept, [True, True]])
        return RowCounts(
            states=tuple(name for name, keep in zip(self.states, kept.tolist(), strict=True) if keep),
            counts=csr_array(self.counts[np.flatnonzero(kept)][:, np.flatnonzero(columns)]),
            starts=self.starts[columns],
            visits=self.visits[kept],
            unit=self.unit,
        )

    def extended(self, states: Sequence[str]) -> RowCounts:
        """Over more states, ascending, those of these counts among them; the others were never visited."""
        m = len(states)
        position = {name: i for i, name in enumerate(states)}
        moved = np.array([*(position[name] for name in self.states), m, m + 1], dtype=np.int64)
        rows, columns = self.counts.tocoo().coords
        starts, visits = np.zeros(m + 2, dtype=np.int64), np.zeros(m, dtype=np.int64)
        starts[moved] = self.starts
        visits[moved[:-2]] = self.visits
        return RowCounts(
            states=tuple(states),
            counts=csr_array((self.counts.data, (moved[rows], moved[columns])), shape=(m, m + 2), dtype=np.int64),
            starts=starts,
            visits=visits,
            unit=self.unit,
        )


def _require_policy(policy: str) -> None:
    if policy not in get_args(CensoringPolicy):
        raise UsageError(f"{policy!r} is no censoring policy; there are {', '.join(get_args(CensoringPolicy))}")


class _Flow(msgspec.Struct, forbid_unknown_fields=True):
    transitions: dict[str, dict[str, int]]
    starts: dict[str, int]
    ends: dict[str, int]
    empty: int


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    states: list[str]
    success: _Flow
    failure: _Flow
    censored: _Flow


def _flow_to_dict(flow: RunFlow, states: Sequence[str]) -> dict[str, Any]:
    transitions: dict[str, dict[str, int]] = {}
    inner = flow.transitions.tocoo()
    for i, j, count in zip(*(part.tolist() for part in inner.coords), inner.data.tolist(), strict=True):
        transitions.setdefault(states[i], {})[states[j]] = count
    by_state = {
        name: {state: count for state, count in zip(states, values.tolist(), strict=True) if count}
        for name, values in (("starts", flow.starts), ("ends", flow.ends))
    }
    return {"transitions": transitions, **by_state, "empty": flow.n_empty}


def _flow_from_dict(flow: _Flow, position: Mapping[str, int], place: Location) -> RunFlow:
    outside = len(position)
    entries = [
        *((source, target, n) for source, row in flow.transitions.items() for target, n in row.items()),
        *((None, target, n) for target, n in flow.starts.items()),
        *((source, None, n) for source, n in flow.ends.items()),
        (None, None, flow.empty),
    ]
    surplus = [0] * (outside + 1)
    rows, columns, counts = [], [], []
    for source, target, n in entries:
        for name in (source, target):
            if name is not None and name not in position:
                raise ModelError(f"there is no state {name!r}", location=place)
        if not 0 <= n < MAX_TOTAL:
            raise ModelError(f"from {source!r} to {target!r}: the count {n} is not in 0..2^60", location=place)
        i = outside if source is None else position[source]
        j = outside if target is None else position[target]
        surplus[i] -= n
        surplus[j] += n
        rows.append(i)
        columns.append(j)
        counts.append(n)
    if sum(counts) >= MAX_TOTAL:
        raise ModelError("the counts are too large: their sum must stay below 2^60", location=place)
    names = [*(f"state {name!r}" for name in position), "outside"]
    for name, difference in zip(names, surplus, strict=True):
        if difference:
            raise ModelError(f"{name}: entries minus departures is {difference}, which must be 0", location=place)
    return RunFlow.from_entries(rows, columns, counts, outside)
