"""Reading evidence files, which are input like any other: bounded, typed, and with the place in every complaint."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tracebridge.errors import Location, ModelError, Problem
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import KIND
from tracebridge.report.evidence_schema import EvidenceFile
from tracebridge.traces.text_document import decoded, parse_document

#: Larger files are refused.
MAX_BYTES = 128 * 2**20

#: Objects and lists nested deeper are refused; those of ours are not half as deep.
MAX_DEPTH = 40

_CHUNK = 2**20


def read_evidence(path: str | Path) -> Evidence:
    """Read evidence.json; neither its digest nor its numbers are checked, see `tracebridge.replay`.

    Raises:
        ModelError: no such file, too large, nested too deeply, no JSON, or no evidence; with line or field.
    """
    place = Location(path=str(path))
    try:
        with _opened(Path(path)) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ModelError("there is no such file", location=place) from None
    except IsADirectoryError:
        hint = f"give {Path(path) / 'evidence.json'}" if (Path(path) / "evidence.json").is_file() else None
        raise ModelError(Problem(location=place, message="this is a folder", hint=hint)) from None
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", location=place) from error
    if len(data) > MAX_BYTES:
        raise ModelError(f"larger than {MAX_BYTES:,} bytes, which is the most that is read", location=place)
    found = evidence_of(parse_document(decoded(data, str(path)), str(path)), str(path))
    return replace(found, folder=Path(path).parent)


def evidence_of(data: Any, path: str | None = None) -> Evidence:
    """The evidence in JSON values.

    Raises:
        ModelError: it is none, naming the field.
    """
    place = Location(path=path)
    if not isinstance(data, Mapping):
        raise ModelError(f"an evidence file is an object, not {type(data).__name__}", location=place)
    if data.get("kind") != KIND:
        message = f"this is {str(data.get('kind'))[:80]!r}, not {KIND!r}"
        hint = "assess writes evidence.json"
        raise ModelError(Problem(location=Location(path=path, field="kind"), message=message, hint=hint))
    _require_shallow(data, place)
    try:
        msgspec.convert(data, EvidenceFile, strict=True)
    except msgspec.ValidationError as error:
        message, _, field = str(error).partition(" - at ")
        where = Location(path=path, field=field.strip("`").removeprefix("$.") or None)
        raise ModelError(Problem(location=where, message=message, hint="it was not written so by assess")) from error
    return Evidence(document=data)


def _require_shallow(data: Any, place: Location) -> None:
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [item for value in level for item in _items(value)]
        if not level:
            return
    raise ModelError(f"nested deeper than {MAX_DEPTH} levels", location=place)


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def hash_beside(folder: Path, name: str) -> str:
    """The SHA-256 of a file beside an evidence file, in hexadecimal.

    Raises:
        ModelError: a name that is no plain name, a link, no regular file, or one that is missing or cannot be read.
    """
    place = Location(path=name)
    if not is_plain_name(name):
        raise ModelError("this is no plain name of a file in the same folder", location=place)
    path = folder / name
    digest = hashlib.sha256()
    try:
        with _opened(path, follow=False) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        message = "this is a link, which is not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise ModelError(message, location=place) from error
    return digest.hexdigest()


def _opened(path: Path, *, follow: bool = True) -> BinaryIO:
    """A regular file, opened without waiting for anybody.

    Args:
        follow: links. Raises: OSError, also for what is no regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    file = os.fdopen(os.open(path, flags), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode):
        return file
    file.close()
    kind = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(kind, "it is no regular file")


def is_plain_name(name: str) -> bool:
    """Whether it names a file in the same folder, on any system: no path, no drive, nothing that does not print."""
    return bool(name) and name.isprintable() and name not in {".", ".."} and not set(name) & set('/\\:*?"<>|')
