"""Code blocks of the manual, run as a reader runs them: each page in a folder of its own, its blocks in their order.

A ``bash`` block is run by bash, a ``python`` block by Python; the lines of a ``text`` block that follows must be among
what it printed, in their order. What makes this quick enough for a whole manual: each ``tracebridge`` in a block, and
each Python block, is a fork of one process that has loaded the packages already.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIME_LIMIT = 300

_BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_ROUNDING = re.compile(r"\b[0-9.]+e-1[5-9]\b")
_SERVER = Path(__file__).with_name("warm_process.py")

# What a block calls `tracebridge`: it hands its words, folder and files over, and ends as the fork does.
_CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    request = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(connection, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
    answer = connection.recv(16)
sys.exit(int(answer) if answer else 70)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A code block of a page, the line on which its code starts, and the lines that it is said to print."""

    language: str
    code: str
    line: int
    printed: tuple[str, ...]


def blocks_of(page: Path) -> tuple[Block, ...]:
    """The blocks of a page that are run; console transcripts and the set-up (``sh``) are not among them."""
    text = page.read_text(encoding="utf-8")
    return tuple(
        Block(
            language=found[1],
            code=found[2],
            line=text.count("\n", 0, found.start(2)) + 1,
            printed=tuple(_words(line) for line in (found[3] or "").splitlines() if line.strip(" .")),
        )
        for found in _BLOCK.finditer(text)
    )


def _words(line: str) -> str:
    """A line without what may differ: the widths of columns, and rounding errors between machines."""
    return _ROUNDING.sub("tiny", " ".join(line.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmProcess:
    """A process with the packages loaded, of which blocks run forks; ``folder`` holds its socket and its client."""

    folder: Path

    def run(self, block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a block in a folder; a Python block as ``tracebridge``'s fork, a bash block with it first on the path."""
        client = self.folder / "tracebridge"
        command = ["bash", "-euo", "pipefail", "-c", block.code]
        if block.language == "python":
            command = [str(client), "--run-python", block.code]
        path = os.pathsep.join([str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )


@contextlib.contextmanager
def warm_process(folder: Path) -> Iterator[WarmProcess]:
    """Start the process, and end it afterwards."""
    address = folder / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(address))  # the path of a socket is short
        listener.listen()
        client = folder / "tracebridge"
        client.write_text(_CLIENT.format(python=sys.executable, address=str(address)))
        client.chmod(0o755)
        command = [sys.executable, str(_SERVER), str(listener.fileno())]
        server = subprocess.Popen(command, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL)
    try:
        yield WarmProcess(folder=folder)
    finally:
        server.terminate()
        server.wait()


def run_page(page: Path, folder: Path, warm: WarmProcess) -> None:
    """Run the blocks of a page in their order; the first that fails is shown with its place and all that it printed."""
    for block in blocks_of(page):
        done = warm.run(block, folder)
        assert done.returncode == 0, (
            f"{page.relative_to(ROOT)}:{block.line} exits with {done.returncode}\n{block.code}\n"
            f"--- standard output\n{done.stdout}\n--- standard error\n{done.stderr}"
        )
        lines = (_words(line) for line in (done.stdout + done.stderr).splitlines())
        missing = [line for line in block.printed if line not in lines]  # `in` goes on from the line that was found
        assert not missing, (
            f"{page.relative_to(ROOT)}:{block.line} does not print, in this place, {missing[0]!r}\n"
            f"--- standard output\n{done.stdout}\n--- standard error\n{done.stderr}"
        )
