"""A Dask cluster for what goes through joblib: shards, replications of studies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib

from tracebridge.errors import UsageError
from tracebridge.version import __version__

#: Seconds that a scheduler has to answer, and a first worker to appear.
PATIENCE = 30


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Have joblib use the workers of a Dask scheduler inside the block.

    Workers need this version of the package, and the trace files under the same absolute paths. A worker that dies is
    replaced by another: its shards are read again.

    Args:
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        UsageError: Dask is not installed, no scheduler answers, or a worker has another version of the package.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("a cluster needs Dask: pip install 'tracebridge[cluster]'") from error
    try:
        client: Any = Client(address, timeout=PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address!r}: {error}") from error
    with client:
        _require_same_version(client, address)
        with joblib.parallel_config("dask", client=client, wait_for_workers_timeout=PATIENCE):
            yield


def _require_same_version(client: Any, address: str) -> None:
    """Ask all workers; one that has died meanwhile is not needed."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        versions = client.run(worker_version, on_error="ignore")
    except (OSError, TimeoutError) as error:
        raise UsageError(f"no worker of the Dask scheduler at {address!r} answers: {error}") from error
    for worker, version in versions.items():
        if version != __version__:
            raise UsageError(f"the worker {worker} has tracebridge {version}, this is {__version__}")


def worker_version() -> str:
    """The version of the package where this runs."""
    from tracebridge.version import __version__ as version

    return version
