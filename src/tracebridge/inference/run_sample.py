"""RunSample: a random sample of runs, in bounded memory, for tests that must permute whole runs.

The runs with the smallest hashes are kept. Whatever the order and however the corpus was cut, the same runs are, so
that samples of shards add up to the sample of the corpus.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from tracebridge.traces.model import Trace

#: So many runs are kept. A difference that this many do not show is none to speak of.
SAMPLE_SIZE = 5_000

_FIELDS = ("task_id", "trial", "model")
_MISSING = ""  # no identifier is empty; an attribute that is counts as missing


class SampledRun(NamedTuple):
    """A run as permutation tests need it; runs sort by ``rank``.

    Attributes:
        rank: hash of the run's identifier, below 2^64.
        task: its task, empty where the trace names none.
        values: its value of each covariate, empty where it has none.
        outcome: position in success, failure, censored.
        transitions: (state, next, how often), ascending; the end of a censored run is none.
    """

    rank: int
    task: str
    values: tuple[str, ...]
    outcome: int
    transitions: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSample:
    """The runs of smallest rank: a commutative monoid under ``+`` for equal covariates.

    Attributes:
        covariates: what is known of each run: ``task_id``, ``trial``, ``model``, or a key of a trace's attributes.
        runs: at most `SAMPLE_SIZE`, ascending. n_seen: how many runs they were taken from.

    Raises:
        ModelError: for runs that break this.
    """

    covariates: tuple[str, ...]
    runs: tuple[SampledRun, ...] = ()
    n_seen: int = 0

    def __post_init__(self) -> None:
        if len(set(self.covariates)) != len(self.covariates) or "" in self.covariates:
            raise ModelError("covariates need unique names that are not empty")
        if len(self.runs) != min(self.n_seen, SAMPLE_SIZE) or list(self.runs) != sorted(self.runs):
            raise ModelError(f"a sample of {self.n_seen} runs holds the first {SAMPLE_SIZE} of them, ascending")
        if any(len(run.values) != len(self.covariates) for run in self.runs):
            raise ModelError(f"every run of the sample needs {len(self.covariates)} values")

    @property
    def is_complete(self) -> bool:
        """Every run is in the sample."""
        return self.n_seen == len(self.runs)

    def __add__(self, other: RunSample) -> RunSample:
        if not isinstance(other, RunSample):
            return NotImplemented
        if self.covariates != other.covariates:
            raise ModelError(f"samples with covariates {self.covariates} and {other.covariates} do not add up")
        runs = tuple(heapq.merge(self.runs, other.runs))[:SAMPLE_SIZE]
        return RunSample(covariates=self.covariates, runs=runs, n_seen=self.n_seen + other.n_seen)


def covariate_value(trace: Trace, covariate: str) -> str:
    """The value of a covariate as text; empty where the trace has none, or one that is no text, number or truth value.

    ``task_id``, ``trial`` and ``model`` are those of the trace; any other word is a key of its attributes.
    """
    value: Any = getattr(trace, covariate) if covariate in _FIELDS else trace.attributes.get(covariate)
    return str(value) if isinstance(value, str | int | float) else _MISSING


def rank_of(trace: Trace) -> int:
    """The hash that decides whether a run is in the sample."""
    return int.from_bytes(blake2b(trace.trace_id.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def sample_runs(
    traces: Sequence[Trace],
    paths: Sequence[Sequence[str]],
    outcomes: Sequence[int],
    covariates: Sequence[str],
) -> RunSample:
    """The sample of some runs, given with their paths over state names and their outcomes, in one order."""
    kept = heapq.nsmallest(SAMPLE_SIZE, range(len(traces)), key=lambda i: rank_of(traces[i]))
    ends = ("success", "failure")
    runs = []
    for i in kept:
        path = paths[i]
        pairs = Counter(pairwise(path))
        if len(path) and outcomes[i] < len(ends):
            pairs[path[-1], ends[outcomes[i]]] += 1
        runs.append(
            SampledRun(
                rank=rank_of(traces[i]),
                task=traces[i].task_id or _MISSING,
                values=tuple(covariate_value(traces[i], covariate) for covariate in covariates),
                outcome=outcomes[i],
                transitions=tuple((state, after, count) for (state, after), count in sorted(pairs.items())),
            )
        )
    return RunSample(covariates=tuple(covariates), runs=tuple(sorted(runs)), n_seen=len(traces))


def sample_to_dict(sample: RunSample, states: Sequence[str]) -> dict[str, Any]:
    """JSON values; transitions are [state, next, count], as positions in ``states``, then success, then failure."""
    position = {name: i for i, name in enumerate((*states, "success", "failure"))}
    return {
        "covariates": list(sample.covariates),
        "n_seen": sample.n_seen,
        "runs": [
            {
                "rank": f"{run.rank:016x}",
                "task": run.task,
                "values": list(run.values),
                "outcome": run.outcome,
                "transitions": [[position[state], position[after], count] for state, after, count in run.transitions],
            }
            for run in sample.runs
        ],
    }


def sample_from_dict(data: Mapping[str, Any], states: Sequence[str]) -> RunSample:
    """Read `sample_to_dict`'s values, whose types were looked at. Raises ModelError for the rest."""
    names = (*states, "success", "failure")
    runs = []
    for run in data["runs"]:
        triples = run["transitions"]
        if any(not (0 <= i < len(states) and 0 <= j < len(names) and 0 < count < 2**53) for i, j, count in triples):
            raise ModelError(
                "a transition of the sample is between states that are not there, or its count is out of range"
            )
        if not 0 <= run["outcome"] <= 2 or len(run["rank"]) != 16:
            raise ModelError("a run of the sample has an outcome beyond 0..2, or a rank that is not 16 digits")
        try:
            rank = int(run["rank"], 16)
        except ValueError as error:
            raise ModelError(f"the rank {run['rank']!r} is not hexadecimal") from error
        transitions = tuple(sorted((names[i], names[j], count) for i, j, count in triples))
        runs.append(SampledRun(rank, run["task"], tuple(run["values"]), run["outcome"], transitions))
    return RunSample(covariates=tuple(data["covariates"]), runs=tuple(runs), n_seen=data["n_seen"])
