"""The header and the samples of an Inspect archive, whole or in chunks, as the JSON that they stand for."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from tracebridge.errors import TraceError
from tracebridge.traces.readers.inspect_json import without_nan
from tracebridge.traces.readers.records import Record, decode_document
from tracebridge.traces.readers.zip_members import MAX_MEMBER_BYTES, ZipMembers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

# A whole sample is samples/<id>_epoch_<n>.json; one in chunks is a folder of that name. Ids may have slashes.
_OF_CHUNKED = re.compile(
    r"(samples/.*_epoch_[0-9]+)/"
    r"(?:sample|metadata|skeleton|events/stats|events/uuids|"
    r"(?:events|calls|messages|attachments)/(?:0|[1-9][0-9]{0,17}))\.json",
    re.DOTALL,
)


class _Shell(msgspec.Struct):
    message_refs: list[tuple[int, int]] = []


_decode_shell = msgspec.json.Decoder(_Shell).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_chunk = msgspec.json.Decoder(list[msgspec.Raw]).decode


class InspectArchive:
    """An ``.eval`` file.

    Raises:
        TraceError: it is no zip archive, or has no header.
    """

    def __init__(self, file: InputFile, log: ProblemLog) -> None:
        self._file = file
        self._log = log
        self._members = ZipMembers(file)
        name = "header.json" if "header.json" in self._members else "_journal/start.json"  # of one that goes on
        if name not in self._members:
            raise file.damaged("the archive has neither header.json nor _journal/start.json")
        self.header_label = f"{file.label}/{name}"
        self.header = self._read(name)

    def samples(self) -> Iterator[Record]:
        """The samples in the order of the archive, as if each were stored whole; damaged ones go to the log."""
        whole: list[str] = []
        chunked: dict[str, list[str]] = {}
        for name in self._members.names():
            if not (name.startswith("samples/") and name.endswith(".json")):
                continue
            part = _OF_CHUNKED.fullmatch(name)
            if part is None:
                whole.append(name)
            else:
                chunked.setdefault(part[1], []).append(name)
        folders = (folder for folder in chunked if f"{folder}.json" not in self._members)
        for number, name in enumerate(chain(whole, folders)):
            try:
                data = self._read(name) if name not in chunked else self._joined(name, chunked[name])
            except TraceError as error:
                self._log.refuse(error.problems)
            else:
                yield Record(data, f"{self._file.label}[{name}]", number)

    def _read(self, name: str) -> bytes:
        return without_nan(self._members.read(name))

    def _joined(self, folder: str, names: Sequence[str]) -> bytes:
        """A sample in chunks.

        ``messages/<start>.json`` and ``attachments/<start>.json`` are slices of two arrays. The sample's messages are
        the ranges ``message_refs`` of the one; texts ``attachment://<index>`` stand for elements of the other.
        """
        shell = f"{folder}/sample.json"
        if shell not in names:
            raise self._file.damaged(f"the sample {folder[:200]!r} is in chunks and has no sample.json")
        data = self._read(shell)
        label = f"{self._file.label}/{shell}"
        fields = decode_document(_decode_fields, data, label)
        messages, attachments = (self._sequence(f"{folder}/{name}/", names) for name in ("messages", "attachments"))
        chosen: list[msgspec.Raw] = []
        n_bytes = len(data) + sum(map(len, map(bytes, attachments)))
        for start, end in decode_document(_decode_shell, data, label).message_refs:
            if not 0 <= start <= end <= len(messages):
                raise self._file.damaged(f"{shell[:200]!r} refers to messages {start} to {end} of {len(messages)}")
            part = messages[start:end]
            n_bytes += sum(map(len, map(bytes, part)))
            if n_bytes > MAX_MEMBER_BYTES:  # a range may be named again and again
                raise self._file.damaged(f"the sample {folder[:200]!r} is larger than {MAX_MEMBER_BYTES >> 20} MiB")
            chosen += part
        texts = {str(index): text for index, text in enumerate(attachments)}
        return msgspec.json.encode(fields | {"messages": chosen, "attachments": texts})

    def _sequence(self, prefix: str, names: Sequence[str]) -> list[msgspec.Raw]:
        """The elements of all chunks under a prefix, which are named by the index of their first element."""
        starts = [name.removeprefix(prefix).removesuffix(".json") for name in names if name.startswith(prefix)]
        elements: list[msgspec.Raw] = []
        for start in sorted(int(start) for start in starts if start.isdecimal()):
            if start != len(elements):
                raise self._file.damaged(
                    f"of {prefix[:200]!r} the elements from {len(elements)} to {start} are missing"
                )
            name = f"{prefix}{start}.json"
            elements += decode_document(_decode_chunk, self._read(name), f"{self._file.label}/{name}")
        return elements
