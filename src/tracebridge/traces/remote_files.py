"""Files behind URLs, through fsspec: ``s3://``, ``https://``, ``zip://``, ``memory://``, and others it has drivers for.

Only what the user wrote is opened: a URL's scheme, and files below it. A driver may wait for ever for a server; here it
has `SECONDS_TO_ANSWER` for whatever it is asked, and `SECONDS_TO_LIST` for the files of a folder.
"""

from __future__ import annotations

import errno
import io
import re
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from tracebridge.errors import Location, TraceError, UsageError
from tracebridge.traces.problems import escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

T = TypeVar("T")

#: Opening a file, or reading its next block (some MiB).
SECONDS_TO_ANSWER = 60.0
#: All files below a folder, or that match a pattern: of a large bucket there are many pages.
SECONDS_TO_LIST = 600.0

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_WEB = ("http", "https")
_CHAIN = "::"


def is_url(item: object) -> bool:
    """Whether an input is a text of the form ``scheme://``; a path object never is."""
    return isinstance(item, str) and _URL.match(item) is not None


def local_path(url: str) -> Path | None:
    """The path of a ``file://`` URL of this machine; None for any other URL."""
    parts = urlsplit(url)
    if parts.scheme.lower() != "file" or _CHAIN in url or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(url[len("file://") + len(parts.netloc) :]))


def is_pattern(url: str) -> bool:
    """Whether a URL stands for all files that match it; in URLs of the web ``?`` begins a query."""
    first = url.split(_CHAIN, maxsplit=1)[0]
    return "*" in first or (urlsplit(first).scheme.lower() not in _WEB and any(char in first for char in "?["))


def shown_url(url: str) -> str:
    """A URL for a message: without user, password and query, which may be secrets."""
    links = []
    for link in url.split(_CHAIN):
        try:
            parts = urlsplit(link)
            netloc = parts.netloc.rpartition("@")[2]
            link = urlunsplit((parts.scheme, netloc, parts.path, "", "")) if parts.netloc else link.partition("?")[0]  # noqa: PLW2901
        except ValueError:
            link = link.partition("://")[0] + "://…"  # noqa: PLW2901
        links.append(link)
    return escaped(_CHAIN.join(links), 300)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file behind a URL, with what the code for local files asks of a path.

    Attributes:
        url: the URL that the user gave, which says where ``path`` is.
        path: the file's name there.
    """

    url: str
    path: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the place: of what the URL leads through, the last link first, and of the path."""
        first, *outer = self.url.split(_CHAIN)
        places = [urlsplit(link).path for link in reversed(outer)]
        path = self.path
        if "://" in path:  # drivers of the web name a file by its whole URL
            path = urlsplit(path).netloc.rpartition("@")[2] + urlsplit(path).path
        elif not outer and not path.lstrip("/").startswith(urlsplit(first).netloc):
            places.append(urlsplit(first).netloc.rpartition("@")[2])
        return tuple(part for place in (*places, path) for part in PurePosixPath(place.strip("/")).parts)

    def resolve(self) -> Self:
        """The file itself: there is no other name for it."""
        return self

    def absolute(self) -> Self:
        """The file itself."""
        return self

    def is_file(self) -> bool:
        """Whether it is a regular file of this machine, which it is not."""
        return False

    def open(self) -> RemoteStream:
        """The stored bytes, from front to back.

        Raises:
            OSError: the file cannot be opened, or the server does not answer.
            UsageError: fsspec, or what it needs for this scheme, is missing.
        """
        system, _ = _opened(self.url)
        try:
            return RemoteStream(_answered(lambda: system.open(self.path, "rb")), system)
        except Exception as error:  # drivers raise what they like
            raise _as_os_error(error) from error


class RemoteStream(io.RawIOBase):
    """A stream of a driver: whatever goes wrong in it is an OSError."""

    def __init__(self, source: Any, system: Any) -> None:
        self._source = source
        self._system = system  # some close what they have opened when they are forgotten

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """The next bytes; none at the end."""
        view = memoryview(buffer).cast("B")
        try:
            data = _answered(lambda: self._source.read(len(view)))
        except Exception as error:
            raise _as_os_error(error) from error
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the driver's stream."""
        self._source.close()
        super().close()


def find_remote(url: str) -> tuple[list[RemoteFile], str | None]:
    """The files that a URL stands for, sorted, and the folder that they were found below.

    A pattern stands for the files that match it, a folder for all files below it, of whatever suffix.

    Raises:
        UsageError: fsspec, or what it needs for this scheme, is missing.
        TraceError: there is nothing, or it cannot be listed, or the server does not answer.
    """
    system, path = _opened(url)
    try:
        if is_pattern(url):
            found = _answered(lambda: system.glob(path, detail=True), SECONDS_TO_LIST)
            names = [name for name, info in found.items() if info["type"] == "file"]
            root: str | None = re.split(r"[*?\[]", path, maxsplit=1)[0].rpartition("/")[0]
        elif _answered(lambda: system.isfile(path)):
            names, root = [path], None
        elif _answered(lambda: system.isdir(path)):
            names, root = _answered(lambda: system.find(path), SECONDS_TO_LIST), path
        else:
            names, root = [], None
    except Exception as error:
        message = f"cannot be listed: {_described(error)}"
        raise TraceError(message, location=Location(path=shown_url(url))) from error
    if not names and root is None:
        raise TraceError("there is no such file or folder", location=Location(path=shown_url(url)))
    if not names and is_pattern(url):
        raise TraceError("no file matches this pattern", location=Location(path=shown_url(url)))
    return [RemoteFile(url, name) for name in sorted(names)], root


def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        message = f"{shown_url(url)} cannot be read without fsspec: pip install 'tracebridge[remote]'"
        raise UsageError(message) from error
    try:
        system, path = _answered(lambda: url_to_fs(url))
    except (ImportError, ValueError) as error:
        raise UsageError(f"{shown_url(url)} cannot be read: {_described(error)}") from error
    except Exception as error:
        message = f"cannot be opened: {_described(error)}"
        raise TraceError(message, location=Location(path=shown_url(url))) from error
    return system, str(path)


def _answered(ask: Callable[[], T], seconds: float | None = None) -> T:
    """What a driver says to a question.

    Raises:
        TimeoutError: it says nothing for so many seconds. The thread that waits for it then ends with the process.
    """
    answer: Future[T] = Future()

    def wait() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is taken
            answer.set_exception(error)

    Thread(target=wait, daemon=True).start()
    limit = SECONDS_TO_ANSWER if seconds is None else seconds
    try:
        return answer.result(limit)
    except TimeoutError as error:
        if answer.done():
            raise  # the driver's own
        raise TimeoutError(errno.ETIMEDOUT, f"nothing came back within {limit:g} s") from error


def _as_os_error(error: Exception) -> OSError:
    return OSError(0, _described(error))


def _described(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = re.sub(r"(https?://)\S+", r"\1…", str(error))  # a signed URL is a secret
    return escaped(f"{type(error).__name__}: {text}" if text else type(error).__name__, 300)
