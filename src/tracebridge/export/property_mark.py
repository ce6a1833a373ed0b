"""The first line of a rewritten property file: what tells it from a file in the user's own names.

Properties in a model file's identifiers, with step bounds that count from its added first state, mean something else on
the original chain, often without any sign of it. The mark says so, and which first state the bounds count from. It is a
comment to PRISM and Storm, and parsing and formatting keep it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracebridge.errors import Location, Problem, PropertyError
from tracebridge.export.single_start import added_state, single_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.export.single_start import AddedState
    from tracebridge.pctl.ast import PropertyFile

MARKER = "//= tracebridge properties"
FORMAT_VERSION = 1

_BESIDE = "for the model file beside it"
_MARK = re.compile(rf'{re.escape(MARKER)} ([0-9]+), {_BESIDE}(?: and its added state "([A-Za-z0-9_]+)")?')


def mark(added: AddedState | None) -> str:
    """The line that marks a file rewritten for a model with this added first state, or with none."""
    state = "" if added is None else f' and its added state "{added.label}"'
    return f"{MARKER} {FORMAT_VERSION}, {_BESIDE}{state}"


def is_rewritten(file: PropertyFile) -> bool:
    """Whether a property file is one that `rewrite_for_export` made, to be checked on `exported_chain`.

    Ask of the file as it was read, before constants are resolved, as the mark may stand before one. Where an edit moved
    it does not matter.

    Raises:
        PropertyError: the mark is one that this version cannot read.
    """
    return bool(_first_states(file))


def exported_chain(file: PropertyFile, chain: MarkovChain) -> MarkovChain:
    """The chain that a rewritten property file asks about: that of the model file written of ``chain``.

    Args:
        file: for which `is_rewritten` is true. chain: what `read_own_prism` made of the model file.

    Raises:
        PropertyError: the file was rewritten for a model that starts in another way, so that its step bounds would
            count from the wrong state; or its mark cannot be read.
    """
    added = added_state(chain)
    found = None if added is None else added.label
    for wanted in _first_states(file):
        if wanted != found:
            raise _error(
                file,
                f"the properties were rewritten for a model {_starting(wanted)}, but this is one {_starting(found)}",
                "take the model file that was written together with the properties, or write both anew",
            )
    return single_start(chain)


def refuse_rewritten(file: PropertyFile) -> None:
    """Refuse to rewrite a file again, which would shift its step bounds twice.

    Raises:
        PropertyError: `is_rewritten`.
    """
    if is_rewritten(file):
        raise _error(
            file,
            "the properties are rewritten for a model file already",
            "take the file that they came from; the comment before each property shows it as it was",
        )


def _first_states(file: PropertyFile) -> set[str | None]:
    """The added first state that each mark of the file names, None for a model without one."""
    states = set()
    for comment in _comments(file):
        line = comment.strip()
        if not re.match(rf"{re.escape(MARKER)}\b", line):
            continue
        match = _MARK.fullmatch(line)
        if match is None or match[1] != str(FORMAT_VERSION):
            raise _error(
                file,
                f"the line {line[:120]!r} is not the mark of a file that this version of tracebridge rewrote",
                f"format {FORMAT_VERSION} is known; undo the edit of the line, or write model and properties anew",
            )
        states.add(match[2])
    return states


def _comments(file: PropertyFile) -> Iterator[str]:
    for items in (file.constants, file.labels, file.properties):
        for item in items:
            yield from item.comments
    yield from file.trailing_comments


def _starting(state: str | None) -> str:
    return "with one initial state" if state is None else f'with the added first state "{state}"'


def _error(file: PropertyFile, message: str, hint: str) -> PropertyError:
    return PropertyError(Problem(location=Location(path=file.path), message=message, hint=hint))
