"""Replication: many independent replicates of a few cases, each with a random stream of its own, on several cores.

The streams are spawned from the seed, the study's name, the case and the number of the replicate, so that neither the
number of jobs nor that of replicates changes any of them: more replicates add to those that were there. No backend is
named: joblib's ``parallel_config`` moves a study to Dask or Ray.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from joblib import delayed, effective_n_jobs

from tracebridge.errors import UsageError
from tracebridge.sharding.backend import outputs

CaseT = TypeVar("CaseT")
ResultT = TypeVar("ResultT")

#: Chunks that each job gets, about: enough to share the work evenly and to show progress.
_CHUNKS_PER_JOB = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """How often a study repeats itself, and where.

    Attributes:
        study: its name, a part of the seed. number: replicates of each case, one or more. seed: not negative.
        jobs: how many work; -1 for as many as there are cores, or workers of joblib's backend. None is what joblib is
            configured to, one by default.
        progress: is told how many replicates are done, and of how many.

    Raises:
        UsageError: for numbers out of range.
    """

    study: str
    number: int
    seed: int = 0
    jobs: int | None = None
    progress: Callable[[int, int], None] = lambda done, total: None

    def __post_init__(self) -> None:
        if self.number < 1 or self.seed < 0 or (self.jobs is not None and self.jobs < 1 and self.jobs != -1):
            raise UsageError(
                f"replicates={self.number} and jobs={self.jobs} must be one or more (jobs also -1), seed={self.seed} "
                "must not be negative"
            )

    def of_each(
        self, task: Callable[[CaseT, np.random.Generator], ResultT], cases: Sequence[CaseT]
    ) -> list[list[ResultT]]:
        """``task(case, rng)``, so many times for each case; results by case, in the order of their replicates.

        Args:
            task: a function of a module, and cases and results that can be sent to another process.
        """
        root = np.random.SeedSequence([self.seed, zlib.crc32(self.study.encode())])
        total = len(cases) * self.number
        size = max(1, total // (effective_n_jobs(self.jobs) * _CHUNKS_PER_JOB))
        work: list[tuple[int, list[np.random.SeedSequence]]] = []
        for place, stream in enumerate(root.spawn(len(cases))):
            children = stream.spawn(self.number)
            work += [(place, children[first : first + size]) for first in range(0, self.number, size)]
        calls = [delayed(_replicate)(task, cases[place], children) for place, children in work]
        found = outputs(calls, self.jobs, ordered=True, doing="repeated a study")
        results: list[list[ResultT]] = [[] for _ in cases]
        done = 0
        for (place, _), part in zip(work, found, strict=True):
            results[place] += part
            done += len(part)
            self.progress(done, total)
        return results


def _replicate(
    task: Callable[[CaseT, np.random.Generator], ResultT], case: CaseT, streams: Sequence[np.random.SeedSequence]
) -> list[ResultT]:
    return [task(case, np.random.default_rng(stream)) for stream in streams]
