"""Clusters of steps by rule-based features and text: a step is in the one whose centre is nearest.

That makes the cluster a function of the step alone, so that steps which come later have one, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracebridge.errors import FitError
from tracebridge.states.features import FeatureVector, retries
from tracebridge.states.hashed_words import MAX_CHARACTERS, N_BUCKETS, N_COLUMNS, WordWeights, bucket_of, unit, words_of
from tracebridge.states.manual import unknown_function
from tracebridge.states.rule_columns import RuleColumns
from tracebridge.states.text_features import TextEncoder, TextFeatures, encoded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.traces.model import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClusters:
    """Steps by the nearest of some centres, in the columns of rule-based features and text.

    Attributes:
        columns: the rule-based features. words: of hashed TF-IDF. weight: see `TextFeatures`.
        centres: one row a cluster; the columns of the rules, then those of the text.
        terms: words that set each cluster apart, of many of its steps and of several tasks; empty with an encoder.
        encoder_name, encoder: of an encoder of the user; a document has its name only.
        names: the groups that are given, in the order of ``centres``.

    Raises:
        FitError: for centres or terms that do not fit the other attributes.
    """

    columns: RuleColumns
    words: WordWeights | None
    weight: float
    centres: tuple[tuple[float, ...], ...]
    terms: tuple[tuple[str, ...], ...]
    encoder_name: str | None = None
    encoder: TextEncoder | None = field(default=None, compare=False)
    _centres: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    names: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.centres}
        expected = {self.columns.width + N_COLUMNS} if self.words is not None else lengths
        if len(lengths) > 1 or lengths - expected or min(lengths, default=self.columns.width) < self.columns.width:
            raise FitError("the centres of text clusters do not have the columns of their features")
        if len(self.terms) != len(self.centres):
            raise FitError("every text cluster needs its terms, and no other")
        object.__setattr__(self, "_centres", np.array(self.centres, dtype=np.float64))
        digits = len(str(len(self.centres)))
        names = tuple(f"cluster_{i:0{digits}}" for i in range(1, len(self.centres) + 1))
        object.__setattr__(self, "names", names)

    def groups(self, steps: Sequence[Step]) -> list[str]:
        """The nearest cluster of each step of a run.

        Raises:
            FitError: if the encoder is not here.
        """
        texts = [(step.text or "")[:MAX_CHARACTERS] for step in steps]
        if self.words is not None:
            rows = [self.words.embed(Counter(map(bucket_of, words_of(text)))) for text in texts]
        elif self.encoder is None:
            raise unknown_function("text features", str(self.encoder_name))
        else:
            single = encoded(self.encoder, texts).astype(np.float32).astype(np.float64)
            rows = [unit(row) for row in single]
        return [
            self.nearest(FeatureVector(step.kind, step.name, step.error, retry), row)
            for step, retry, row in zip(steps, retries(steps), rows, strict=True)
        ]

    def nearest(self, vector: FeatureVector, text: NDArray[np.float64]) -> str:
        """The cluster of a step with these rule-based features and this text; the first of several."""
        point = np.concatenate([self.columns.rows([vector])[0], self.weight * text])
        if point.shape != self._centres.shape[1:]:
            raise FitError(f"the text encoder gives {len(text)} numbers a text, and the fit was made with other rows")
        difference = self._centres - point
        return self.names[int(np.argmin((difference * difference).sum(axis=1)))]

    def to_dict(self) -> dict[str, Any]:
        """The document of the clusters."""
        words = self.words
        return {
            "kind": "text",
            "encoder": self.encoder_name,
            "weight": self.weight,
            "kinds": list(self.columns.kinds),
            "names": list(self.columns.names),
            "words": None
            if words is None
            else {"n_texts": words.n_texts, "frequencies": {str(b): df for b, df in words.frequencies.items()}},
            "centres": [list(row) for row in self.centres],
            "terms": [list(terms) for terms in self.terms],
        }

    @classmethod
    def from_dict(cls, data: Any) -> TextClusters:
        """Read `to_dict`'s document.

        Raises:
            msgspec.ValidationError, FitError: for anything else.
        """
        document = msgspec.convert(data, _Document, strict=True, str_keys=True)
        if (document.words is None) == (document.encoder is None):
            raise FitError("text clusters have either words or an encoder")
        words = None
        if document.words is not None:
            frequencies = document.words.frequencies
            if any(not 0 <= bucket < N_BUCKETS for bucket in frequencies):
                raise FitError(f"the hash of a word is not in 0..{N_BUCKETS - 1}")
            if any(not 1 <= df <= document.words.n_texts for df in frequencies.values()):
                raise FitError("a word is in more texts than there are, or in none")
            words = WordWeights(n_texts=document.words.n_texts, frequencies=dict(sorted(frequencies.items())))
        return cls(
            columns=RuleColumns(kinds=document.kinds, names=document.names),
            words=words,
            weight=TextFeatures(weight=document.weight).weight,
            centres=document.centres,
            terms=document.terms,
            encoder_name=document.encoder,
        )


class _Words(msgspec.Struct, forbid_unknown_fields=True):
    n_texts: int
    frequencies: dict[int, int]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    encoder: str | None
    weight: float
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    words: _Words | None
    centres: tuple[tuple[float, ...], ...]
    terms: tuple[tuple[str, ...], ...]
