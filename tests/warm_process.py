"""A process that has loaded tracebridge and answers each request with a fork that runs it; see manual_blocks.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from importlib import import_module

LOADED = (
    "tracebridge.cli.app",
    "tracebridge.cli.verdicts",
    "tracebridge.auditing",
    "sklearn.cluster",
    "statsmodels.api",
)


def serve(listener: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks but their clients
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            answer(connection)
        connection.close()


def answer(connection: socket.socket) -> None:
    """Become what the client asks for: its files, folder and environment; then end with the code that it is told."""
    code = 70
    try:
        data, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        while not data.endswith(b"\n"):
            data += connection.recv(1 << 20)
        request = json.loads(data)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        code = execute(request["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        connection.sendall(str(code).encode())
        os._exit(code)


def execute(arguments: list[str]) -> int:
    if arguments[:1] == ["--run-python"]:
        sys.argv = ["-c"]
        sys.path.insert(0, "")
        exec(compile(arguments[1], "<block>", "exec"), {"__name__": "__main__"})  # noqa: S102
        return 0
    from tracebridge.cli import run

    sys.argv = ["tracebridge", *arguments]
    return run(arguments)


if __name__ == "__main__":
    for module in LOADED:
        import_module(module)
    import_module("tracebridge.pctl").parse_formula("true")  # which builds the parser
    serve(socket.socket(fileno=int(sys.argv[1])))
