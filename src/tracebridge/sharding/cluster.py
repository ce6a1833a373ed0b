"""A Dask cluster for what goes through joblib: shards, replications of studies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib

from tracebridge.errors import InputError, Location, Problem, UsageError
from tracebridge.version import __version__

#: Seconds that a scheduler has to answer.
SECONDS_TO_ANSWER = 8.0
#: Seconds that a first worker has to appear: those of a new cluster come a little after its scheduler.
SECONDS_TO_START = 30.0


@contextmanager
def cluster(address: str, tell: Callable[[str], None] = lambda message: None) -> Iterator[None]:
    """Have joblib use the workers of a Dask scheduler inside the block.

    Workers need this version of the package, and the trace files under the same absolute paths. A worker that dies is
    replaced by another: its shards are read again.

    Args:
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``. tell: is told what is waited for.

    Raises:
        UsageError: Dask is not installed, or a worker has another version of the package.
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
            tell(f"waiting for a worker of the Dask scheduler at {address}")
            _require_workers(client, address)
            with joblib.parallel_config("dask", client=client, wait_for_workers_timeout=SECONDS_TO_START):
                yield


def _require_scheduler(address: str) -> None:
    """Ask who is there."""
    try:
        identity = asyncio.run(_identity(address))
    except Exception as error:  # what a server of another kind sends can be anything
        reason = _first_cause(error) or f"nothing came back within {SECONDS_TO_ANSWER:g} s"
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


def _require_workers(client: Any, address: str) -> None:
    """Ask all workers; one that has died meanwhile is not needed."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_TO_START)
        versions = client.run(worker_version, on_error="ignore")
    except (OSError, TimeoutError) as error:
        message = f"the Dask scheduler at {address!r} has no worker, and none came within {SECONDS_TO_START:g} s"
        raise _error(message, f"start some: dask worker {address}") from error
    for worker, version in versions.items():
        if version != __version__:
            raise UsageError(f"the worker {worker} has tracebridge {version}, this is {__version__}")


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


def worker_version() -> str:
    """The version of the package where this runs."""
    from tracebridge.version import __version__ as version

    return version
