"""What a study gives back: tables with the paper's figures beside ours, statements, and what does not come out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.studies.statement import Statement

Cell = str | int | float | bool | None

KIND = "tracebridge-study"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of figures.

    Attributes:
        title: what it shows, with the source of the figures that are not ours. columns: their heads.
        rows: as many cells each as there are columns; None where there is no such figure.

    Raises:
        UsageError: for a row of another length.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {self.title}")

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; figures have ten digits, and one that is not finite is null."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[_plain(cell) for cell in row] for row in self.rows],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a study found.

    Attributes:
        tables: its figures. statements: what it asserts.
        not_reproduced: figures of the paper that do not come out, and why, one sentence or two each.
        notes: what else a reader must know.
    """

    tables: tuple[Table, ...]
    statements: tuple[Statement, ...]
    not_reproduced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """A study that was run.

    Attributes:
        name, title, source: of the study; source is the place in the paper.
        replicates: how many were run of what; 0 for a study without chance. full: how many a full study takes.
        seed: of its random draws. findings: what came out.
    """

    name: str
    title: str
    source: str
    replicates: int
    full: int
    seed: int
    findings: Findings

    @property
    def failed(self) -> tuple[Statement, ...]:
        """The statements that fail."""
        return tuple(each for each in self.findings.statements if each.verdict == "fails")

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of a study."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "replicates": self.replicates,
            "full_replicates": self.full,
            "seed": self.seed,
            "tables": [table.to_dict() for table in self.findings.tables],
            "statements": [statement.to_dict() for statement in self.findings.statements],
            "not_reproduced": list(self.findings.not_reproduced),
            "notes": list(self.findings.notes),
        }


def _plain(cell: Cell) -> Cell:
    if isinstance(cell, float):
        return float(f"{cell:.10g}") if math.isfinite(cell) else None
    return cell
