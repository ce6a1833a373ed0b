"""The ``prism`` executable from outside: found, asked under a deadline in a folder of its own, killed on any doubt."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tracebridge.errors import EngineError, EngineTimeoutError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Names the executable where it is not on the PATH; set to nothing, it keeps PRISM from being looked for.
ENVIRONMENT_VARIABLE = "TRACEBRIDGE_PRISM"

#: How to get it, for those who have none.
HOW_TO_GET = (
    "PRISM is not here: get it from www.prismmodelchecker.org (it needs Java), and put its bin folder on the PATH, "
    f"give --prism PATH, or set {ENVIRONMENT_VARIABLE}"
)

#: Seconds that one run of PRISM may take unless the caller says otherwise; starting Java takes about one of them.
TIME_LIMIT = 60.0

#: Seconds for telling its version.
VERSION_TIME_LIMIT = 20.0

_OUTPUT_KEPT = 8_192
_CHUNK = 1 << 16
_POLL = 0.1
_VERSION = re.compile(rb"PRISM version (\S{1,80})")


class PrismUnavailableError(EngineError):
    """There is no PRISM executable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrismRun:
    """A run that ended: its exit status, negative for the signal that killed it, and the end of what it printed."""

    status: int
    output: bytes

    @property
    def ending(self) -> str:
        """How it ended, and what it printed last, for people."""
        how = f"was killed by {_signal_name(-self.status)}" if self.status < 0 else f"ended with status {self.status}"
        text = " ".join(self.output.decode(errors="replace").split())[-600:]
        return f"{how}; it printed: {text}" if text else how


@dataclass(frozen=True, slots=True)
class PrismExecutable:
    """The command line of PRISM 4, at an absolute path."""

    path: Path

    def version(self) -> str | None:
        """Its version, such as ``4.8.1``; None if this program does not call itself PRISM."""
        return _version(self.path)

    def run(self, arguments: Sequence[str], folder: Path, *, time_limit: float = TIME_LIMIT) -> PrismRun:
        """Run it in a folder, to which file names in the arguments are relative; no shell is involved.

        Its process group is killed when this function ends, however it ends, so that no Java outlives the script that
        started it. What it prints is taken in, and only the end is kept.

        Raises:
            EngineTimeoutError: it took longer than ``time_limit`` seconds. EngineError: it cannot be started.
        """
        deadline = monotonic() + time_limit
        try:
            process = subprocess.Popen(
                [str(self.path), *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"PRISM ({self.path}) cannot be started: {error.strerror or error}") from None
        output = b""
        try:
            output = _drain(process, deadline)
            status = process.wait(timeout=max(deadline - monotonic(), 0))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise EngineTimeoutError(f"PRISM did not answer within {time_limit:g} s and was stopped") from None
        finally:
            _kill_group(process)
        return PrismRun(status=status, output=output)


def find_prism(given: str | Path | None = None) -> PrismExecutable | None:
    """The PRISM to use: the one given, else that of the environment, else a ``prism`` on the PATH; None without one.

    A program on the PATH that only has the same name is passed over. An environment variable without a name means none.

    Args:
        given: the executable, or the folder that PRISM was unpacked to.

    Raises:
        UsageError: what is given, or named by the environment, is no executable file, or no PRISM.
    """
    named = given or os.environ.get(ENVIRONMENT_VARIABLE)
    if named == "":
        return None
    if named is not None:
        path = Path(named)
        if path.is_dir():
            path = path / "bin" / "prism"
        if not (path.is_file() and os.access(path, os.X_OK)):
            source = "--prism" if given else ENVIRONMENT_VARIABLE
            raise UsageError(f"{source} names {str(named)!r}, where there is no executable file")
        executable = PrismExecutable(path.absolute())
        if executable.version() is None:
            raise UsageError(f"{path} does not answer -version as PRISM does: it is no PRISM, or cannot start")
        return executable
    on_path = shutil.which("prism")
    if on_path is None:
        return None
    executable = PrismExecutable(Path(on_path).absolute())
    return executable if executable.version() is not None else None


@cache
def _version(path: Path) -> str | None:
    try:
        run = PrismExecutable(path).run(["-version"], path.parent, time_limit=VERSION_TIME_LIMIT)
    except EngineError:
        return None
    found = _VERSION.search(run.output)
    return None if found is None else found[1].decode(errors="replace")


def _drain(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Read what it prints until it ends; the end of it.

    Raises:
        TimeoutError: the deadline passed.
    """
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    kept = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            remaining = deadline - monotonic()
            if remaining <= 0:
                raise TimeoutError
            if selector.select(min(remaining, _POLL)):
                chunk = os.read(process.stdout.fileno(), _CHUNK)
                if not chunk:
                    return kept
                kept = (kept + chunk)[-_OUTPUT_KEPT:]
            elif process.poll() is not None:  # a child of it may hold the pipe open
                return kept


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the process and its children, and leave nothing behind."""
    with suppress(ProcessLookupError, PermissionError):  # all gone; the latter is how macOS says it
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
