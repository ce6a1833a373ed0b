"""The life of the Storm process: it answers requests on two pipes and ends when its client does."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import sys
import threading

import msgspec
import stormpy

from .protocol import LENGTH, MAX_MESSAGE
from .server import Server, reply_to


def _exit_with(client: int) -> None:
    """End the process when the client closes its end of the pipe, even in the middle of a check."""
    poll = select.poll()
    poll.register(client, 0)  # a hang-up is always reported
    poll.poll()
    os._exit(0)


def serve(requests: int, replies: int, *, memory_limit: int | None = None) -> None:
    """Answer requests from one file descriptor on the other until the first is closed.

    Args:
        requests, replies: file descriptors. memory_limit: bytes of address space.
    """
    if memory_limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    sys.set_int_max_str_digits(0)  # exact results may have many digits; this process reads only Storm's
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    libc = ctypes.CDLL(None)
    server = Server()
    with open(requests, "rb") as source, open(replies, "wb") as sink:
        threading.Thread(target=_exit_with, args=(requests,), daemon=True).start()
        while head := source.read(LENGTH.size):
            (length,) = LENGTH.unpack(head)
            if length > MAX_MESSAGE:
                raise SystemExit(f"a message of {length} bytes is too long")
            reply = msgspec.msgpack.encode(reply_to(server, source.read(length)))
            libc.fflush(None)  # what Storm printed must be in the pipe before the reply is
            sink.write(LENGTH.pack(len(reply)) + reply)
            sink.flush()


def main() -> None:
    """Serve: the arguments of the process are the two file descriptors and, optionally, the memory limit."""
    requests, replies, *limit = (int(argument) for argument in sys.argv[1:])
    serve(requests, replies, memory_limit=limit[0] if limit else None)
