"""A decision process as a JSON document in the comments of a model file, which makes the file a lossless copy.

What is read is written again, and the two texts must be equal: a change of the model that the comments do not reflect
is found instead of being read half.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from tracebridge.chain.decision_document import decision_from_dict, decision_to_dict
from tracebridge.chain.document import document_text
from tracebridge.errors import Location, ModelError
from tracebridge.traces.text_document import parse_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tracebridge.chain.decision import DecisionProcess

#: What a line of the document begins with.
RECORD = "//= "


def embedded_lines(process: DecisionProcess) -> Iterator[str]:
    """The document, as lines of comments."""
    return (RECORD + line for line in document_text(decision_to_dict(process)).splitlines())


def read_embedded(
    text: str, write: Callable[[DecisionProcess], Iterable[str]], *, path: str | None = None
) -> DecisionProcess:
    """The process in the comments of a text whose first line tells what wrote it.

    Args:
        text: line ends may have become CRLF, and blank lines at its end do not matter.
        write: the lines of the file of a process. path: for messages.

    Raises:
        ModelError: there is no such process, or the file was changed since it was written.
    """
    found = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    record = [line.removeprefix(RECORD) for line in found[1:] if line.startswith(RECORD)]
    process = decision_from_dict(parse_document("\n".join(record), path), path)
    for number, (line, other) in enumerate(zip_longest(found, write(process), fillvalue=""), start=1):
        if line != other:
            raise ModelError(
                f"the file says that tracebridge wrote it, but this line is {line[:80]!r} where it would write "
                f"{other[:80]!r} (undo the edit, or take away the first line and those that begin with {RECORD!r})",
                location=Location(path=path, line=number),
            )
    return process
