"""How a stream is watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tracebridge.checking.run import DEFAULT_ENGINES
from tracebridge.errors import UsageError
from tracebridge.inference.online.drift import DEFAULT_ALPHA, DEFAULT_HALF_LIFE, DEFAULT_RUN_LENGTH
from tracebridge.inference.posterior import DEFAULT_DRAWS


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How a stream is watched.

    Attributes:
        every: runs between two fits, and without forgetting at least a hundredth of all runs.
        forget: the half-life of a run in runs, None for none. alpha, run_length, half_life: of the drift monitor.
        certify_every: runs between two certificates, 0 for none; they are about the last ``window`` runs.
        draws: of the posterior. engines: that properties are checked by. seed: of draws.
        constants: of the property file. fit: options of `fit_counts`, without a baseline.

    Raises:
        UsageError: a number out of range.
    """

    every: int = 100
    forget: float | None = None
    alpha: float = DEFAULT_ALPHA
    run_length: float = DEFAULT_RUN_LENGTH
    half_life: float = DEFAULT_HALF_LIFE
    certify_every: int = 1_000
    window: int = 1_000
    draws: int = DEFAULT_DRAWS
    engines: Sequence[str] = DEFAULT_ENGINES
    seed: int = 0
    constants: Mapping[str, Fraction | bool] = field(default_factory=dict)
    fit: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.every < 1 or self.certify_every < 0 or self.window < 1 or self.draws < 1 or self.seed < 0:
            raise UsageError("every, window and draws are at least 1, certify_every and the seed are not negative")
