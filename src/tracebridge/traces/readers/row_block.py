"""Rows of a flat trace file, by column: whatever its notation, they are split, counted and converted many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from tracebridge.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Row(NamedTuple):
    """One row.

    Attributes:
        line: where it starts in the file.
        values: the text of each field that has a column; blank where there is no value.
        flaw: why the row cannot be used; ``values`` then has the run at most.
    """

    line: int
    values: dict[str, str]
    flaw: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFlaw(Problem):
    """One flaw of rows of several runs: told of one of them, it is told of all. It names the run that it is in."""


class RowBlock(NamedTuple):
    """Rows in the order of the file, by column.

    Attributes:
        lines: where each row starts in the file.
        columns: for each field that has a column, ``run_id`` always among them, what the rows have: all texts, blank
            where there is no value, or all values (`own_values`).
        flaws: why a row cannot be used, by its place in the block; of its cells only the run then counts.
    """

    lines: Sequence[int]
    columns: Mapping[str, Sequence[Any]]
    flaws: Mapping[int, Problem]

    @staticmethod
    def of(rows: Sequence[Row]) -> RowBlock:
        """Rows that were read one by one; what only some of them have is blank in the others."""
        names = dict.fromkeys(chain(["run_id"], *(row.values for row in rows)))
        return RowBlock(
            [row.line for row in rows],
            {name: [row.values.get(name, "") for row in rows] for name in names},
            {place: row.flaw for place, row in enumerate(rows) if row.flaw is not None},
        )

    @staticmethod
    def joined(blocks: Sequence[RowBlock]) -> RowBlock:
        """The rows of all blocks, one after the other; at least one."""
        if len(blocks) == 1:
            return blocks[0]
        names = dict.fromkeys(chain.from_iterable(block.columns for block in blocks))
        columns: dict[str, list[Any]] = {}
        for name in names:
            parts = [block.columns.get(name) or [""] * len(block.lines) for block in blocks]
            if len({type(cells[0]) is str for cells in parts}) > 1:
                parts = list(map(as_texts, parts))
            columns[name] = [*chain.from_iterable(parts)]
        flaws: dict[int, Problem] = {}
        start = 0
        for block in blocks:
            flaws |= {start + place: flaw for place, flaw in block.flaws.items()}
            start += len(block.lines)
        return RowBlock([*chain.from_iterable(block.lines for block in blocks)], columns, flaws)

    def part(self, start: int, end: int) -> RowBlock:
        """Rows that follow one another."""
        columns = {name: cells[start:end] for name, cells in self.columns.items()}
        flaws = {place - start: flaw for place, flaw in self.flaws.items() if start <= place < end}
        return RowBlock(self.lines[start:end], columns, flaws)

    def stretches(self) -> Iterator[Stretch]:
        """The rows by the run, where those of one stand one below the other."""
        start = 0
        for run_id, rows in groupby(self.columns["run_id"]):
            end = start + len(list(rows))
            yield Stretch(run_id, self, start, end)
            start = end

    def n_chars(self) -> int:
        """The length of all texts."""
        return sum(len("".join(cells)) for cells in self.columns.values() if isinstance(cells[0], str))


class Stretch(NamedTuple):
    """Rows of one run that stand one below the other.

    Attributes:
        run_id: of the run; blank for rows that name none.
        block: that they are in.
        start: the place of the first in the block.
        end: the place behind the last.
    """

    run_id: str
    block: RowBlock
    start: int
    end: int

    def rows(self) -> RowBlock:
        """The rows by themselves."""
        return self.block.part(self.start, self.end)


def as_texts(cells: Sequence[Any]) -> list[str]:
    """The texts that a column would have in a CSV file."""
    return [cell if isinstance(cell, str) else "" if cell is None else str(cell) for cell in cells]
