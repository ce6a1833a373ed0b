"""MARGIN: confidence corrected online by moving averages of correctness and stated confidence, by model and band.

Armstrong, arXiv:2605.22949, with what its text leaves open settled here: averages start at 0, whose bias cancels in
their ratio, and without feedback the factor is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracebridge.errors import InputError, UsageError

if TYPE_CHECKING:
    from typing import Self


@dataclass(slots=True, kw_only=True)
class MovingAverages:
    """Exponentially weighted averages of correctness and stated confidence over the same outcomes."""

    correct: float = 0.0
    confidence: float = 0.0
    n: int = 0

    def add(self, confidence: float, correct: bool, rate: float) -> None:
        """One outcome; right and wrong ones weigh the same."""
        self.correct += rate * (correct - self.correct)
        self.confidence += rate * (confidence - self.confidence)
        self.n += 1

    def ratio(self, otherwise: float) -> float:
        """Correctness over confidence; ``otherwise`` where nothing, or confidence 0 alone, was seen."""
        return self.correct / self.confidence if self.confidence > 0 else otherwise


@dataclass(slots=True, kw_only=True)
class _ModelState:
    overall: MovingAverages = field(default_factory=MovingAverages)
    bands: list[MovingAverages]


class Margin:
    """A confidence s in band b of model a becomes ``clip(f * s, 0, 1)`` with

        f = w A_ab / C_ab + (1 - w) r_a,    w = n_ab / (n_ab + band_shrinkage),

    where A and C are moving averages of correctness and stated confidence, in the band and over all of the model's
    outcomes, and ``r_a = v A_a / C_a + (1 - v)`` with ``v = n_a / (n_a + model_shrinkage)``. The order of confidences
    is kept within a model and band; across bands it may not be, see `inversions`.

    Args:
        n_bands: bands of equal width; 1 is a ratio for each model.
        rate: of the moving averages, in (0, 1).
        band_shrinkage: how many outcomes weigh the band and the model the same.
        model_shrinkage: how many weigh the model and no correction the same. With 0, as published, a first outcome that
            is wrong makes every confidence 0; 10 is advised.

    Raises:
        UsageError: a number out of range.
    """

    def __init__(
        self, *, n_bands: int = 3, rate: float = 0.04, band_shrinkage: float = 100.0, model_shrinkage: float = 0.0
    ) -> None:
        if n_bands < 1 or not 0 < rate < 1 or not 0 <= band_shrinkage < math.inf or not 0 <= model_shrinkage < math.inf:
            raise UsageError(
                "MARGIN needs one band or more, a rate in (0, 1) and shrinkages of at least 0, not "
                f"{n_bands!r}, {rate!r}, {band_shrinkage!r}, {model_shrinkage!r}"
            )
        self.n_bands, self.rate = n_bands, rate
        self.band_shrinkage, self.model_shrinkage = band_shrinkage, model_shrinkage
        self._models: dict[str, _ModelState] = {}

    def corrected(self, model: str, confidence: float) -> float:
        """The corrected confidence of a response; models never heard of keep theirs.

        Raises:
            InputError: a confidence outside [0, 1].
        """
        return min(max(self.factor(model, confidence) * confidence, 0.0), 1.0)

    def observe(self, model: str, confidence: float, correct: bool) -> None:
        """The outcome of one response; the models whose outcomes are not known stay as they are.

        Raises:
            InputError: a confidence outside [0, 1].
        """
        band = self.band(confidence)
        state = self._models.setdefault(model, _ModelState(bands=[MovingAverages() for _ in range(self.n_bands)]))
        state.overall.add(confidence, correct, self.rate)
        state.bands[band].add(confidence, correct, self.rate)

    def factor(self, model: str, confidence: float) -> float:
        """f of a response with this confidence; it may exceed 1."""
        band = self.band(confidence)
        state = self._models.get(model)
        return 1.0 if state is None else self._factor(state, band)

    def band(self, confidence: float) -> int:
        """The band of a confidence: [k/K, (k + 1)/K), the last one closed.

        Raises:
            InputError: a confidence outside [0, 1].
        """
        if not 0 <= confidence <= 1:
            raise InputError(f"a confidence lies in [0, 1], not {confidence!r}")
        return min(self.n_bands - 1, math.floor(round(self.n_bands * confidence, 9)))

    def forget(self, model: str) -> None:
        """Drop what is known of a model; one that leaves and comes back is otherwise remembered."""
        self._models.pop(model, None)

    def inversions(self) -> list[tuple[str, int]]:
        """Models and bands k such that a confidence just below k/K is now corrected above one just at it."""
        found = []
        for model, state in sorted(self._models.items()):
            factors = [self._factor(state, band) for band in range(self.n_bands)]
            for band in range(1, self.n_bands):
                edge = band / self.n_bands
                if min(factors[band - 1] * edge, 1.0) > min(factors[band] * edge, 1.0) + 1e-12:
                    found.append((model, band))
        return found

    def _factor(self, state: _ModelState, band: int) -> float:
        overall, averages = state.overall, state.bands[band]
        trust = overall.n / (overall.n + self.model_shrinkage)
        of_model = trust * overall.ratio(1.0) + (1 - trust)
        weight = averages.n / (averages.n + self.band_shrinkage) if averages.n else 0.0
        return weight * averages.ratio(of_model) + (1 - weight) * of_model

    def to_dict(self) -> dict[str, Any]:
        """A JSON document of the whole state, from which `from_dict` continues."""

        def written(averages: MovingAverages) -> list[float]:
            return [averages.correct, averages.confidence, averages.n]

        return {
            "n_bands": self.n_bands,
            "rate": self.rate,
            "band_shrinkage": self.band_shrinkage,
            "model_shrinkage": self.model_shrinkage,
            "models": {
                model: {"overall": written(state.overall), "bands": [written(band) for band in state.bands]}
                for model, state in sorted(self._models.items())
            },
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Self:
        """The state of a document of `to_dict`.

        Raises:
            InputError: a document that is none. UsageError: a number out of range.
        """

        def read(row: list[float]) -> MovingAverages:
            correct, confidence, n = row
            averages = MovingAverages(correct=float(correct), confidence=float(confidence), n=int(n))
            if not (0 <= averages.correct <= 1 and 0 <= averages.confidence <= 1 and averages.n >= 0):
                raise InputError(f"{row!r} are no moving averages in [0, 1] and a number of outcomes")
            return averages

        try:
            settings = ("n_bands", "rate", "band_shrinkage", "model_shrinkage")
            margin = cls(**{name: document[name] for name in settings})
            for model, state in document["models"].items():
                bands = [read(row) for row in state["bands"]]
                if len(bands) != margin.n_bands:
                    raise InputError(f"model {model!r} has {len(bands)} bands, not {margin.n_bands}")
                margin._models[model] = _ModelState(overall=read(state["overall"]), bands=bands)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"this is no state of MARGIN: {error!r}") from error
        return margin
