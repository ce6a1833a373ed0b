"""Calibration on a corpus whose scores were chosen so that Table 2 could come out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.folds import tier_stratified_folds
from tracebridge.confidence.recalibration import recalibration_table
from tracebridge.studies.broadcast_published import ACCURACY, CALIBRATION, CANDIDATES, GRID, TEMPERATURE
from tracebridge.studies.result import Table
from tracebridge.studies.statement import equals, fixed

if TYPE_CHECKING:
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.studies.result import Cell
    from tracebridge.studies.statement import Statement

#: Scores are drawn, from bands: most measures come within .004; the ECE after one temperature, whose bins the bands do
#: not follow, within .02.
TOLERANCE = 0.02
TEMPERATURE_TOLERANCE = 0.5
_MEASURES = ("ECE", "Brier", "AUROC", "mean confidence")


def calibration_tables(pools: BlockPools, seed: int) -> tuple[list[Table], list[Statement]]:
    """Table 2 held out by problem, and what Tables 2 and 5 say of themselves."""
    corpus, polls = pools.table, np.flatnonzero(pools.table.polls.valid)
    trace = corpus.blocks.trace[corpus.polls.block[polls]]
    folds = tier_stratified_folds(
        corpus.traces.problem[trace], corpus.traces.tier[trace], group_names=corpus.problems, seed=seed
    )
    found = recalibration_table(
        corpus.polls.confidence[polls],
        pools.correct[polls],
        folds,
        names=("identity", "temperature", "isotonic"),
    )
    rows: list[tuple[Cell, ...]] = []
    distances = []
    for name, printed in CALIBRATION.items():
        quality = next(quality for key, (_, quality) in found.items() if key == name)
        for measure, value in zip(_MEASURES, printed, strict=True):
            rows.append((name, measure, value, quality[measure].value))
            distances.append(abs(quality[measure].value - value))
    scale = found["temperature"][0].on_all.parameters[0]
    rows.append(("temperature", "T, on all candidates", TEMPERATURE, scale))
    n, accuracy = len(polls), float(pools.correct[polls].mean())
    return [
        Table(
            title="Table 2: calibration of candidates, held out by problem, ten bins closed left",
            columns=("confidence", "measure", "paper", "ours"),
            rows=tuple(rows),
        ),
        _grid(),
    ], [
        fixed("Table 2: largest distance of a measure from the printed one", max(distances), upper=TOLERANCE),
        equals("Table 2: temperature", scale, TEMPERATURE, TEMPERATURE_TOLERANCE),
        equals("Table 2: candidates", n, CANDIDATES, 0),
        equals("Table 2: their accuracy", accuracy, ACCURACY, 5e-4),
        *_coherence(),
    ]


def _grid() -> Table:
    rows = tuple(
        (cell, confidence, accuracy, confidence - accuracy, ece)
        for cell, (confidence, accuracy, ece) in GRID.items()
    )  # fmt: skip
    columns = ("actor / benchmark", "mean confidence", "accuracy", "gap", "ECE")
    return Table(title="Tables 5 and 19: ECE is at least the gap (printed figures)", columns=columns, rows=rows)


def _coherence() -> list[Statement]:
    """What must hold between printed figures, whatever the corpus."""
    _, brier, _, _ = CALIBRATION["identity"]
    _, held_out, _, mean_isotonic = CALIBRATION["isotonic"]
    uncertainty = ACCURACY * (1 - ACCURACY)
    # Isotonic confidence is its own accuracy, so that its Brier score is uncertainty less resolution; a monotone map
    # keeps the resolution.
    reliability = brier - held_out
    flattened = 1 / (1 + math.exp(-math.log(0.790 / 0.210) / TEMPERATURE))
    excess = [ece - abs(confidence - accuracy) for confidence, accuracy, ece in GRID.values()]
    return [
        fixed("Tables 5 and 19: least excess of ECE over the gap, rounding allowed", min(excess), lower=-1.5e-3),
        fixed("Table 2: reliability that follows from both Brier scores, at least ECE squared", reliability,
              lower=CALIBRATION["identity"][0] ** 2),
        fixed("Table 2: resolution that follows from the isotonic Brier score", uncertainty - held_out, lower=0),
        equals("Table 2: isotonic mean confidence is the accuracy", mean_isotonic, ACCURACY, 1e-3),
        equals("Table 2: the mean confidence .790 through T = 4.35, up to Jensen's gap", flattened,
               CALIBRATION["temperature"][3], 5e-3),
    ]  # fmt: skip
