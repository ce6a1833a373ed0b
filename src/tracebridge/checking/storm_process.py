"""The worker process of Storm from outside: started when needed, asked under a deadline, killed on any doubt."""

from __future__ import annotations

import importlib.util
import itertools
import os
import selectors
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

import msgspec

from tracebridge.checking import storm_worker
from tracebridge.checking.storm_worker import protocol
from tracebridge.errors import EngineError, EngineTimeoutError, PropertyError, UnsupportedError

if TYPE_CHECKING:
    from tracebridge.checking.storm_worker.protocol import Reply, Request

#: Seconds that one request may take unless the caller says otherwise.
TIME_LIMIT = 60.0

#: Seconds that the process may take to start.
START_LIMIT = 60.0

#: The worker as a script: it needs nothing of this package, whose import would take longer than Storm's.
_COMMAND = ("-P", str(Path(storm_worker.__file__).with_name("__main__.py")))

#: A worker that was sent more bytes than this ends with its work, and gives its memory back.
_KEPT_WHEN_SENT = 1 << 24

_OUTPUT_KEPT = 8_192
_CHUNK = 1 << 16


class StormUnavailableError(EngineError):
    """stormpy is not installed, or cannot be loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """A running worker with our ends of its pipes."""

    popen: subprocess.Popen[bytes]
    requests: int
    replies: int
    output: int
    stop: Callable[[], object]


def _stop(owner: int, popen: subprocess.Popen[bytes], descriptors: tuple[int, int]) -> None:
    """Kill the process and leave nothing of it behind; it holds no data of ours. A forked child only lets go of it."""
    if owner == os.getpid():
        popen.kill()
        popen.wait()
    if popen.stdout is not None:
        popen.stdout.close()
    for descriptor in descriptors:
        os.close(descriptor)


class StormWorker:
    """A Storm process, started at the first request and again after it died.

    The process is in a session of its own, so that Ctrl-C reaches only us; waiting for it is interruptible at any time,
    and whatever interrupts the wait kills it. A context manager; without ``with`` it ends with the object or the
    interpreter. Threads may share one worker and take turns; a forked child starts its own.
    """

    def __init__(self, *, memory_limit: int | None = None) -> None:
        """Nothing is started yet.

        Args:
            memory_limit: bytes of address space for the process; Storm itself takes about half a gigabyte.
        """
        self._memory_limit = memory_limit
        self._process: _Process | None = None
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._output = b""
        self._forgotten: list[int] = []
        self._ids = itertools.count()
        self._version = ""
        self._generation = 0
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a later request starts a new one."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.stop()

    def version(self) -> str:
        """The version of Storm, such as ``2.0.0``.

        Raises:
            StormUnavailableError: stormpy is not there.
        """
        self.ensure_running()
        return self._version

    def new_model(self) -> int:
        """An id for a chain that is going to be loaded."""
        return next(self._ids)

    def forget(self, model: int) -> None:
        """Let the process drop a chain, when the next one is loaded."""
        self._forgotten.append(model)

    def take_forgotten(self) -> list[int]:
        """The chains that the process may drop; the caller tells it."""
        forgotten, self._forgotten[:] = list(self._forgotten), []
        return forgotten

    def parse_properties(self, text: str) -> list[str]:
        """The properties of a text as Storm understands and prints them.

        Raises:
            PropertyError: Storm's parser refuses the text.
        """
        reply = self.request(protocol.ParseProperties(text))
        if isinstance(reply, protocol.Failure):
            raise PropertyError(f"Storm does not take this property text: {reply.message}")
        assert isinstance(reply, protocol.Parsed)  # noqa: S101 - the worker pairs replies with requests
        return reply.properties

    def ensure_running(self) -> int:
        """Start the process unless it runs; the number of starts so far, which tells whether loaded chains are gone."""
        with self._lock:
            if self._owner != os.getpid():  # we are a forked child: the process is our parent's
                self.close()
                self._owner = os.getpid()
            if self._process is not None and self._process.popen.poll() is not None:
                self.close()
            if self._process is None:
                self._start()
            return self._generation

    def request(self, message: Request, *, time_limit: float = TIME_LIMIT) -> Reply:
        """Send a message and wait for the reply; only a `Failure` that blames the text sent is returned as such.

        Args:
            time_limit: seconds, not counting the start of the process.

        Raises:
            EngineTimeoutError: no reply in time; the process was killed.
            EngineError: the process died, ran out of memory, or Storm failed.
        """
        with self._lock:
            self.ensure_running()
            return self._exchange(message, time_limit)

    @property
    def is_light(self) -> bool:
        """Whether it runs and was never sent much: kept idle it costs little."""
        return self._process is not None and self._sent <= _KEPT_WHEN_SENT

    # ------------------------------------------------------------ inside

    def _start(self) -> None:
        if importlib.util.find_spec("stormpy") is None:
            raise StormUnavailableError('Storm is not installed; try: pip install "stormpy>=2,<3"')
        requests_read, requests_write = os.pipe()
        replies_read, replies_write = os.pipe()
        arguments = [requests_read, replies_write, *([] if self._memory_limit is None else [self._memory_limit])]
        try:
            popen = subprocess.Popen(
                [sys.executable, *_COMMAND, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(requests_read, replies_write),
                start_new_session=True,
            )
        except BaseException:
            os.close(requests_write)
            os.close(replies_read)
            raise
        finally:
            os.close(requests_read)
            os.close(replies_write)
        stop = weakref.finalize(self, _stop, os.getpid(), popen, (requests_write, replies_read))
        assert popen.stdout is not None  # noqa: S101 - it is a pipe
        self._process = _Process(
            popen=popen, requests=requests_write, replies=replies_read, output=popen.stdout.fileno(), stop=stop
        )
        for descriptor in (self._process.requests, self._process.output):
            os.set_blocking(descriptor, False)
        self._generation += 1
        self._sent = 0
        self._forgotten.clear()
        try:
            reply = self._exchange(protocol.AskVersion(), START_LIMIT)
        except EngineError as error:
            last = str(error).strip().splitlines()[-1]  # of a traceback the line that says what is wrong
            raise StormUnavailableError(f"Storm is installed but does not start: {last}") from error
        assert isinstance(reply, protocol.Version)  # noqa: S101 - the worker pairs replies with requests
        self._version = reply.version

    def _exchange(self, message: Request, time_limit: float) -> Reply:
        process = self._process
        assert process is not None  # noqa: S101 - the caller started it
        body = msgspec.msgpack.encode(message)
        if len(body) > protocol.MAX_MESSAGE:
            raise UnsupportedError(f"the chain is too large for one message to Storm ({len(body):,} bytes)")
        self._output = b""
        self._sent += len(body)
        try:
            data = self._converse(process, protocol.LENGTH.pack(len(body)) + body, monotonic() + time_limit)
        except TimeoutError:
            self.close()
            raise EngineTimeoutError(
                f"Storm did not answer within {time_limit:g} s and was stopped{self._captured()}"
            ) from None
        except EOFError:
            self._report_death(process)
        except BaseException:  # Ctrl-C above all: Storm itself would go on
            self.close()
            raise
        reply: Reply = msgspec.msgpack.decode(data, type=protocol.Reply)
        if isinstance(reply, protocol.Failure) and reply.kind in {"storm", "memory", "protocol"}:
            if reply.kind == "memory":
                self.close()
                self._report_memory()
            raise EngineError(f"Storm failed: {reply.message}{self._captured()}")
        return reply

    def _converse(self, process: _Process, message: bytes, deadline: float) -> bytes:
        """Write the message and read the reply, while taking in whatever the process prints."""
        unsent = memoryview(message)
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.requests, selectors.EVENT_WRITE)
            selector.register(process.replies, selectors.EVENT_READ)
            selector.register(process.output, selectors.EVENT_READ)
            while True:
                remaining = deadline - monotonic()
                if remaining <= 0:
                    raise TimeoutError
                for key, _ in selector.select(remaining):
                    if key.fd == process.requests:
                        try:
                            unsent = unsent[os.write(key.fd, unsent[:_CHUNK]) :]
                        except BrokenPipeError:
                            raise EOFError from None
                        if not unsent:
                            selector.unregister(key.fd)
                    elif key.fd == process.output:
                        if not self._take_output(process):
                            selector.unregister(key.fd)
                    else:
                        chunk = os.read(key.fd, 1 << 20)
                        if not chunk:
                            raise EOFError
                        received += chunk
                if len(received) >= protocol.LENGTH.size:
                    (length,) = protocol.LENGTH.unpack_from(received)
                    if length > protocol.MAX_MESSAGE:
                        raise EOFError
                    if len(received) == protocol.LENGTH.size + length:
                        self._take_output(process)
                        return bytes(received[protocol.LENGTH.size :])

    def _take_output(self, process: _Process) -> bool:
        """Read what was printed and keep the end of it; whether there may be more."""
        try:
            while chunk := os.read(process.output, _CHUNK):
                self._output = (self._output + chunk)[-_OUTPUT_KEPT:]
        except BlockingIOError:
            return True
        return False

    def _captured(self) -> str:
        text = self._output.decode(errors="replace").strip()
        return f"; it printed: {text}" if text else ""

    def _report_death(self, process: _Process) -> NoReturn:
        try:
            status = process.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed its pipe but lives on
            status = None
        self._take_output(process)
        self.close()
        if b"annot allocate memory" in self._output or b"bad_alloc" in self._output:  # GMP's last words, and C++'s
            self._report_memory()
        if status is None:
            how = "closed its pipe"
        elif status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        raise EngineError(f"the Storm process {how}{self._captured()}")

    def _report_memory(self) -> NoReturn:
        limit = "" if self._memory_limit is None else f" within its limit of {self._memory_limit:,} bytes"
        raise EngineError(f"Storm ran out of memory{limit}{self._captured()}")


_idle: list[StormWorker] = []


@contextmanager
def lent_worker() -> Iterator[StormWorker]:
    """A worker for one piece of work: the idle one of an earlier piece, or a new one, which takes half a second.

    At most one is kept idle. It ends with the interpreter; whoever works at the same time gets one of their own.
    """
    try:
        worker = _idle.pop()
    except IndexError:
        worker = StormWorker()
    try:
        yield worker
    finally:
        if worker.is_light and not _idle:
            _idle.append(worker)
        else:
            worker.close()
