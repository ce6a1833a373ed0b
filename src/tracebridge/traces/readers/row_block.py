"""Rows of a flat trace file, by column: whatever its notation, they are split, counted and converted many at a time."""

from __future__ import annotations

from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracebridge.errors import Problem


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


class RowBlock(NamedTuple):
    """Rows in the order of the file, by column.

    Attributes:
        lines: where each row starts in the file.
        names: the fields that have a column; ``run_id`` is always among them.
        cells: for each of these fields what the rows have: texts, blank where there is no value. A column may hold the
            numbers or truth values themselves, where the file has such.
        flaws: why a row cannot be used, by its place in the block; of its cells only the run then counts.
    """

    lines: Sequence[int]
    names: tuple[str, ...]
    cells: tuple[Sequence[Any], ...]
    flaws: Mapping[int, Problem]

    @staticmethod
    def of(rows: Sequence[Row]) -> RowBlock:
        """Rows that were read one by one; what only some of them have is blank in the others."""
        names = tuple(dict.fromkeys(chain(["run_id"], *(row.values for row in rows))))
        return RowBlock(
            [row.line for row in rows],
            names,
            tuple([row.values.get(name, "") for row in rows] for name in names),
            {place: row.flaw for place, row in enumerate(rows) if row.flaw is not None},
        )

    @staticmethod
    def joined(blocks: Sequence[RowBlock]) -> RowBlock:
        """The rows of all blocks, one after the other; at least one."""
        if len(blocks) == 1:
            return blocks[0]
        columns = [block.columns() for block in blocks]
        names = tuple(dict.fromkeys(chain.from_iterable(columns)))
        blanks = [[""] * len(block.lines) for block in blocks]
        cells = tuple(
            [*chain.from_iterable(column.get(name, blank) for column, blank in zip(columns, blanks, strict=True))]
            for name in names
        )
        flaws: dict[int, Problem] = {}
        start = 0
        for block in blocks:
            flaws |= {start + place: flaw for place, flaw in block.flaws.items()}
            start += len(block.lines)
        return RowBlock([*chain.from_iterable(block.lines for block in blocks)], names, cells, flaws)

    def columns(self) -> dict[str, Sequence[Any]]:
        """The cells of each field."""
        return dict(zip(self.names, self.cells, strict=True))

    def stretches(self) -> Iterator[tuple[str, RowBlock]]:
        """The rows of one run that stand one below the other, with the run's id; blank for rows that name no run."""
        lines, names, cells, flaws = self
        start = 0
        for run_id, rows in groupby(cells[names.index("run_id")]):
            end = start + len(list(rows))
            own = {place - start: flaw for place, flaw in flaws.items() if start <= place < end} if flaws else flaws
            yield run_id, RowBlock(lines[start:end], names, tuple([column[start:end] for column in cells]), own)
            start = end

    def n_chars(self) -> int:
        """The length of all texts."""
        return sum(len(cell) for column in self.cells for cell in column if isinstance(cell, str))
