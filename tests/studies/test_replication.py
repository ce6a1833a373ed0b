"""Replicates: the same whatever the number of jobs, more add to those before, and cases are independent."""

from __future__ import annotations

import itertools

import pytest
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend

from tracebridge.errors import UsageError
from tracebridge.studies import run_study
from tracebridge.studies.replication import Replication


def draw(case, rng):
    return case, float(rng.random())


@pytest.mark.parametrize("jobs", [2, 3, -1])
def test_the_number_of_jobs_changes_nothing(jobs):
    alone = Replication(study="x", number=25, seed=3).of_each(draw, ["a", "b"])
    with parallel_config(backend="threading"):
        assert Replication(study="x", number=25, seed=3, jobs=jobs).of_each(draw, ["a", "b"]) == alone


def test_without_a_number_of_jobs_it_goes_where_joblib_is_configured_to():
    """As to a cluster of Dask's or Ray's: backends that users register."""
    taken = []

    class Recording(ThreadingBackend):
        def submit(self, func, callback=None):
            taken.append(func)
            return super().submit(func, callback)

    alone = Replication(study="x", number=25).of_each(draw, ["a", "b"])
    register_parallel_backend("recording", Recording)
    with parallel_config(backend="recording", n_jobs=2):
        assert Replication(study="x", number=25).of_each(draw, ["a", "b"]) == alone
    assert len(taken) > 2


def test_more_replicates_add_to_those_before():
    few = Replication(study="x", number=3).of_each(draw, [0, 1])
    many = Replication(study="x", number=40).of_each(draw, [0, 1])
    assert [part[:3] for part in many] == few


def test_studies_cases_replicates_and_seeds_have_streams_of_their_own():
    values = {
        number
        for study, seed in itertools.product("xy", (0, 1))
        for part in Replication(study=study, number=5, seed=seed).of_each(draw, [0, 0, 0])
        for _, number in part
    }
    assert len(values) == 2 * 2 * 3 * 5


def test_progress_counts_up_to_all():
    seen = []
    Replication(study="x", number=50, progress=lambda done, total: seen.append((done, total))).of_each(draw, [0, 1, 2])
    assert seen[-1] == (150, 150)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) > 5


def test_an_error_of_a_replicate_is_not_swallowed():
    def failing(case, rng):
        raise ZeroDivisionError(case)

    with pytest.raises(ZeroDivisionError, match="here"):
        Replication(study="x", number=2).of_each(failing, ["here"])


@pytest.mark.parametrize("wrong", [{"number": 0}, {"jobs": 0}, {"jobs": -2}, {"seed": -1}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match="must be one or more"):
        Replication(**{"study": "x", "number": 1, **wrong})


def test_processes_give_the_same_study():
    alone, together = (run_study("correlation", replicates=4, jobs=jobs).to_dict() for jobs in (1, 2))
    assert alone == together
