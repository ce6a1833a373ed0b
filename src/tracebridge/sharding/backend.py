"""Work through joblib, which knows where: in this process, in others, on a Dask cluster, or a backend of its user's."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import joblib

from tracebridge.errors import InputError, Location, Problem, TraceError

#: How much of the work a backend that gives all results at once is asked for at a time: so many calls for each worker.
_CALLS_EACH = 4

#: What joblib's own processes, Dask after some more tries, and Ray raise for a worker that died.
_DEATHS = frozenset(
    {
        "TerminatedWorkerError",
        "BrokenProcessPool",
        "KilledWorker",
        "ActorDiedError",
        "RayActorError",
        "WorkerCrashedError",
    }
)
#: What Dask raises for work that its scheduler took along when it went, or whose last worker did not come back.
_LOSSES = frozenset({"FutureCancelledError", "CancelledError", "ClosedClientError", "CommClosedError"})


def outputs(calls: Sequence[Any], jobs: int | None, *, ordered: bool, doing: str) -> Generator[Any, None, None]:
    """The results of joblib's delayed calls as they are ready; closed, it works no more.

    Args:
        calls: the work. jobs: how many workers; None is what joblib is configured to.
        ordered: results come in the order of the calls. doing: what workers do, for messages.

    Raises:
        TraceError: workers were killed, more often than is made up for, or their cluster was lost.
    """
    found = _outputs(calls, jobs, ordered=ordered)
    with passing_over_lost_work(), closing(found):
        try:
            yield from found
        except Exception as error:
            problem = None if isinstance(error, InputError) else _problem_of(type(error).__name__, doing)
            if problem is None:
                raise
            raise TraceError(problem) from error


def _outputs(calls: Sequence[Any], jobs: int | None, *, ordered: bool) -> Generator[Any, None, None]:
    try:
        run = joblib.Parallel(n_jobs=jobs, return_as="generator" if ordered else "generator_unordered", batch_size=1)
    except ValueError:  # Ray's backend, for one, gives all results at once
        size = _CALLS_EACH * int(joblib.effective_n_jobs(jobs))
        with joblib.Parallel(n_jobs=jobs, batch_size=1) as run:
            for start in range(0, len(calls), size):
                yield from run(calls[start : start + size])
        return
    results = run(calls)
    try:
        for result in results:  # noqa: UP028 - it would be closed before the warnings are silenced
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that not all was done: an error made it needless
            results.close()


@contextmanager
def passing_over_lost_work() -> Iterator[None]:
    """Say nothing of a fault of joblib's processes, whose traceback would stand beside the error that is to be read.

    Stopped while it takes up new work, the thread that manages them looks for what it has just dropped, and dies of a
    KeyError (joblib 1.6, loky 3.6). The processes have ended by then, and the next work gets new ones.
    """
    told = threading.excepthook

    def hook(found: threading.ExceptHookArgs) -> None:
        name = "" if found.thread is None else found.thread.name
        if not (name == "ExecutorManagerThread" and found.exc_type is KeyError):
            told(found)

    threading.excepthook = hook
    try:
        yield
    finally:
        if threading.excepthook is hook:
            threading.excepthook = told


def _problem_of(error: str, doing: str) -> Problem | None:
    """What an error of a backend says about the work; None for one that is not of the backend."""
    if error in _DEATHS:
        message = f"a process that {doing} was killed ({error})"
        hint = "was it short of memory? Take fewer processes, or give smaller files"
    elif error in _LOSSES:
        message = f"the cluster that {doing} was lost ({error})"
        hint = "are its scheduler and its workers still there? With --manifest reading goes on where it was"
    else:
        return None
    return Problem(location=Location(), message=message, hint=hint)
