"""Commitment on a corpus with the published margins: divergent pairs, where they come from, what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.commitment import commitment_pairs, commitment_tallies
from tracebridge.confidence.divergence_class import CLASSES, class_tallies, classify_divergences
from tracebridge.studies.broadcast_published import CLASSES as PRINTED
from tracebridge.studies.broadcast_published import DIVERGENT, VALID_PAIRS, prints_as
from tracebridge.studies.result import Table
from tracebridge.studies.statement import fixed

if TYPE_CHECKING:
    from tracebridge.confidence.table import ConfidenceTable
    from tracebridge.studies.result import Cell
    from tracebridge.studies.statement import Statement

#: Of the abstract and Table 3: PSDR, and the unconditional shift.
_RATES = {"PSDR": 0.204, "NPCS_unconditional": -0.017}


def commitment_tables(corpus: ConfidenceTable) -> tuple[list[Table], list[Statement]]:
    """Tables 3 and 13, and the rates of the abstract."""
    pairs = commitment_pairs(corpus)
    classes = classify_divergences(corpus, pairs)
    values = {each.name: 100 * each.value.value for each in class_tallies(classes)}
    counts = np.bincount(classes.primary, minlength=len(CLASSES)).tolist()
    flags = [*classes.flags.sum(axis=0).tolist(), len(classes.primary) - classes.n_any_flag]
    rows: list[tuple[Cell, ...]] = []
    alike = 0
    for name, count, flagged in zip(CLASSES, counts, flags, strict=True):
        n, share, shift, n_flagged = PRINTED[name]
        ours = (count, values[f"share[{name}]"], values[f"shift[{name}]"], flagged)
        alike += (count, flagged) == (n, n_flagged)
        alike += prints_as(ours[1], share, 1) and prints_as(ours[2], shift, 1)
        rows.append((name, n, count, share, ours[1], shift, ours[2], n_flagged, flagged))
    columns = ("class", "pairs", "ours", "% of divergent", "ours", "shift, points", "ours", "flagged", "ours")
    rates = {each.name: each.value for each in commitment_tallies(pairs)}
    rate_rows = tuple(
        (name, _RATES.get(name), value.value, value.denominator_name, int(value.denominator))
        for name, value in rates.items()
    )
    shown = [prints_as(rates[name].value, printed) for name, printed in _RATES.items()]
    margins = (rates["PSDR"].numerator, rates["PSDR"].denominator) == (DIVERGENT, VALID_PAIRS)
    return [
        Table(title="Tables 3 and 13: where divergent answers come from", columns=columns, rows=tuple(rows)),
        Table(
            title="Commitment of the corpus",
            columns=("rate", "paper", "ours", "denominator", "of it"),
            rows=rate_rows,
        ),
    ], [
        fixed("Tables 3 and 13: printed counts, and printed percentages, of classes, of 8", alike, lower=8),
        fixed("abstract: PSDR, unconditional shift, and 1,927 of 9,436 pairs, of 3", sum(shown) + margins, lower=3),
        fixed("Table 13: flags of peer-echo that went to another class, of 416 in all",
              classes.surplus_by_class["peer_echo"], lower=312, upper=312),
    ]  # fmt: skip
