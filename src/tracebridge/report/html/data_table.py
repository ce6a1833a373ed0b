"""Tables of a page: what stands in them, apart from how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

#: How a cell looks; the meaning is always in its words too.
Tone = Literal["", "good", "bad", "open", "muted"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        text: as it is; the page escapes it. sort: what a numeric column sorts by; None sorts last.
        tone: of a badge around the text; none without one. code: a formula, a name of a file or a hash.
        share: the length of a bar behind a number, from 0 to 1. href: an anchor of the page.
        lines: what stands below it in the same cell.
    """

    text: str
    _: KW_ONLY
    sort: float | None = None
    tone: Tone = ""
    code: bool = False
    share: float | None = None
    href: str | None = None
    lines: Sequence[Cell] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column.

    Attributes:
        numeric: aligned to the right and sorted by `Cell.sort`.
        prose: of sentences, which are cut much later than names are.
        meaning: for those who ask.
    """

    head: str
    _: KW_ONLY
    numeric: bool = False
    prose: bool = False
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """A table; the first cell of each row names it.

    Attributes:
        caption: says what the table shows. columns: the heads. rows: as long as these. sortable: offer to sort it.
        stacks: where the page is narrow, each row becomes a block of its cells with their heads.
        keys: of each row the word that a reader can pick it by; none, or as many as rows.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    sortable: bool = False
    stacks: bool = False
    keys: Sequence[str] = ()


def plain_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> DataTable:
    """A table of texts."""
    return DataTable(
        caption=caption, columns=[Column(head) for head in heads], rows=[[Cell(text) for text in row] for row in rows]
    )
