"""Options that say where trace files are read, and the line that tells how far reading is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracebridge.cli.help_sections import section

if TYPE_CHECKING:
    from tracebridge.sharding import ReadingProgress

F = TypeVar("F", bound=Callable[..., Any])


@section("Reading traces")
def sharding(command: F) -> F:
    """``--jobs``, ``--manifest``, ``--prune`` and ``--cluster``: a corpus of many files read by many, and once."""
    options = [
        click.option(
            "--jobs",
            type=click.IntRange(min=1),
            metavar="N",
            help="Read the files in this many processes; the result is the same. [default: 1]",
        ),
        click.option(
            "--manifest",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Keep what was found in each file in the folder FILE.shards and list it in FILE: the next time only "
            "files that are new or have changed are read, and so it goes on after it was stopped. Files that are read "
            "with others (of Harbor, tau2-bench, SWE-agent, or with --outcomes) are read every time.",
        ),
        click.option(
            "--prune",
            is_flag=True,
            help="With --manifest: forget, at the end, what it knows of anything that this reading did not use: "
            "files that are gone, earlier contents, readings with other options.",
        ),
        click.option(
            "--cluster",
            metavar="tcp://HOST:PORT",
            help="Read the files on the workers of this Dask scheduler, which need the same version of tracebridge and "
            "the files under the same paths; it has 8 seconds to answer, and its first worker 30 to come.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def sharded(options: Mapping[str, Any], progress: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """The keyword arguments of reading for the options of `sharding`, while the cluster is there if one was named.

    Raises:
        UsageError: for both --jobs and --cluster.
        InputError: for a cluster that is not there.
    """
    address, jobs = options.get("cluster"), options.get("jobs")
    if address is not None and jobs is not None:
        raise click.UsageError("--jobs is for this machine, a --cluster uses all of its workers: give one of them")
    used: Any = nullcontext()
    if address is not None:
        from tracebridge.sharding.cluster import cluster

        used = cluster(address, progress)
    with used:
        told = _Told(progress)
        yield {
            "jobs": jobs,
            "manifest": options.get("manifest"),
            "prune": options.get("prune", False),
            "on_progress": told,
        }


class _Told:
    """Puts how far reading is into words."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._began = time.monotonic()

    def __call__(self, done: ReadingProgress) -> None:
        seconds = time.monotonic() - self._began
        self._progress(progress_text(done, seconds))


def progress_text(done: ReadingProgress, seconds: float) -> str:
    """For example: ``reading traces: 12 of 40 shards, 310,500 steps, 85 MB/s, 9 s left``."""
    text = f"reading traces: {done.shards_read} of {done.n_shards} shards, {done.n_steps:,} steps"
    if done.n_known:
        text += f", {done.n_known} known from before"
    if seconds <= 0 or not done.bytes_read:
        return text
    rate = done.bytes_read / seconds
    left = max(0, done.n_bytes - done.bytes_read) / rate
    return f"{text}, {rate / 1e6:.0f} MB/s, {_duration(left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
