"""A Dask cluster for what goes through joblib: shards, replications of studies.

A scheduler waits for workers for ever. Here somebody counts them: when none has been there for a while, what they were
to do is given up, and whoever waits for it is told.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import joblib

from tracebridge.errors import InputError, Location, Problem, UsageError
from tracebridge.version import __version__

#: Seconds that a scheduler has to answer.
SECONDS_TO_ANSWER = 8.0
#: Seconds that a first worker has to appear: those of a new cluster come a little after its scheduler.
SECONDS_TO_START = 30.0
#: Seconds that a worker has to come back, when all are gone.
SECONDS_TO_RETURN = 60.0
#: Seconds between two counts of the workers.
_SECONDS_BETWEEN_COUNTS = 2.0


@contextmanager
def cluster(address: str, tell: Callable[[str], None] = lambda message: None) -> Iterator[None]:
    """Have joblib use the workers of a Dask scheduler inside the block.

    Scheduler and workers need this version of the package, and workers the trace files under the same absolute paths.
    A worker that dies is replaced by another: its shards are read again.

    Args:
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``. tell: is told what is waited for.

    Raises:
        UsageError: Dask is not installed, or somebody there has another version of the package, or none.
        InputError: no scheduler answers within 8 seconds, or it has no worker after another 30.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("a cluster needs Dask: pip install 'tracebridge[cluster]'") from error
    with _quiet():
        # A client of a scheduler that is not there would hang for a minute when it is forgotten, so none is made.
        tell(f"waiting for the Dask scheduler at {address}")
        _require_scheduler(address)
        with Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            _require_scheduler_version(client, address)
            tell(f"waiting for a worker of the Dask scheduler at {address}")
            _require_workers(client, address)
            with (
                joblib.parallel_config("dask", client=client, wait_for_workers_timeout=SECONDS_TO_START),
                _counted_workers(client, address, tell),
            ):
                yield


def _require_scheduler(address: str) -> None:
    """Ask who is there."""
    try:
        identity = asyncio.run(_identity(address))
    except Exception as error:  # what a server of another kind sends can be anything
        reason = _first_cause(error) or _refusal(address) or f"nothing came back within {SECONDS_TO_ANSWER:g} s"
        hint = "an address is tcp://HOST:PORT, as `dask scheduler` prints it"
        raise _error(f"no Dask scheduler answers at {address!r}: {reason}", hint) from error
    if identity.get("type") != "Scheduler":
        raise _error(f"at {address!r} is no Dask scheduler but a {identity.get('type')!s:.40}", "name the scheduler")


async def _identity(address: str) -> dict[str, Any]:
    from distributed import Security, rpc

    arguments = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(SECONDS_TO_ANSWER + 1):  # so that the other, which knows more, comes first
        async with rpc(address, timeout=SECONDS_TO_ANSWER, connection_args=arguments) as server:  # type: ignore[no-untyped-call]
            return dict(await server.identity())


def _first_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _refusal(address: str) -> str | None:
    """Why nothing can be sent there: Dask tries again until its time is up, and may forget the reason."""
    from distributed.comm.addressing import get_address_host_port

    try:
        socket.create_connection(get_address_host_port(address), timeout=1).close()
    except OSError as error:
        return error.strerror
    except ValueError:  # an address of another kind
        return None
    return None


def _require_workers(client: Any, address: str) -> None:
    """Ask all workers; one that has died meanwhile is not needed."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_TO_START)
        answers = client.run(version_there, on_error="return")
    except (OSError, TimeoutError) as error:
        message = f"the Dask scheduler at {address!r} has no worker, and none came within {SECONDS_TO_START:g} s"
        raise _error(message, f"start some: dask worker {address}") from error
    for worker, answer in answers.items():
        if not isinstance(answer, OSError):
            _require_version(f"the worker {worker}", str(answer))


def _require_scheduler_version(client: Any, address: str) -> None:
    """Ask the scheduler, which reads what it hands on to workers."""
    try:
        answer = client.run_on_scheduler(version_there)
    except ImportError as error:
        answer = repr(error)
    _require_version(f"the Dask scheduler at {address}", answer)


def _require_version(who: str, answer: str) -> None:
    if answer != __version__:
        raise UsageError(f"{who} needs tracebridge {__version__}; asked for its version, it says {answer[:200]}")


@contextmanager
def _counted_workers(client: Any, address: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Give up the work when all workers are gone and none comes back."""
    from distributed import Future

    over = Event()

    def count() -> None:
        gone_at: float | None = None
        while not over.wait(_SECONDS_BETWEEN_COUNTS):
            if client.status != "running":  # without a scheduler all work has failed already
                return
            try:
                n_workers = len(client.nthreads())
            except (OSError, TimeoutError):
                continue
            if n_workers:
                gone_at = None
            elif gone_at is None:
                gone_at = time.monotonic()
                tell(f"the Dask scheduler at {address} has no worker any more; waiting {SECONDS_TO_RETURN:g} s for one")
            elif time.monotonic() - gone_at > SECONDS_TO_RETURN:
                client.cancel([Future(key, client) for key in client.futures], force=True)
                return

    counting = Thread(target=count, name="workers of a Dask cluster", daemon=True)
    counting.start()
    try:
        yield
    finally:
        over.set()
        counting.join()


def _error(message: str, hint: str) -> InputError:
    return InputError(Problem(location=Location(), message=message, hint=hint))


@contextmanager
def _quiet() -> Iterator[None]:
    """What goes wrong on a cluster is told once, by us: Dask logs it too, with tracebacks."""
    logger = logging.getLogger("distributed")
    children = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    levels = {each: each.level for each in (logger, *children)}
    for each in levels:
        each.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in levels.items():
            each.setLevel(level)


def version_there() -> str:
    """The version of the package where this runs."""
    from tracebridge.version import __version__ as version

    return version
