"""Texts as bags of hashed words (Weinberger et al. 2009), weighted by TF-IDF and sketched into few columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Words are told apart by so many hash values, and TF-IDF is sketched into so many columns.
N_BUCKETS = 2**16
N_COLUMNS = 128

#: Of a text so many characters are read.
MAX_CHARACTERS = 20_000

#: The word that every number is.
NUMBER = "0"

_GRAMMAR = (
    "about above after again against all also am an and any are aren as at be because been before being below "
    "between both but by can cannot could couldn did didn do does doesn doing don down during each else even ever "
    "every few for from further get got had hadn has hasn have haven having he her here hers herself him himself "
    "his how if in into is isn it its itself just let like ll may me might mine more most must my myself no nor not "
    "now of off on once one only or other our ours ourselves out over own per please re same shall she should "
    "shouldn since so some still such than that the their theirs them themselves then there these they this those "
    "through thus to too under until up upon us very via was wasn we well were weren what when where whether which "
    "while who whom whose why will with within without won would wouldn yes yet you your yours yourself yourselves "
    "ve"
)

#: Words of grammar, which tell a reader nothing of what a text is about.
STOP_WORDS = frozenset(_GRAMMAR.split())

_WORD = re.compile(r"[^\W\d_]{2,}|\d+")


@lru_cache(maxsize=65_536)
def bucket_of(word: str) -> int:
    """The hash of a word in ``range(N_BUCKETS)``, the same on every machine."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=2).digest(), "little")


def words_of(text: str) -> list[str]:
    """Words of two letters and more, folded; every number is one word, so that identifiers do not tell apart."""
    return [NUMBER if word.isdigit() else word for word in _WORD.findall(text[:MAX_CHARACTERS].casefold())]


def _sketch_of_buckets() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Column and sign of every bucket (a count sketch: Charikar, Chen and Farach-Colton 2002)."""
    mixed = np.arange(N_BUCKETS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing, modulo 2^64
    return (mixed >> np.uint64(57)).astype(np.int64), np.where(mixed >> np.uint64(56) & np.uint64(1), 1.0, -1.0)


_COLUMN_OF, _SIGN_OF = _sketch_of_buckets()


@dataclass(frozen=True, slots=True, kw_only=True)
class WordWeights:
    """The inverse document frequencies of a corpus: ``log((1 + n) / (1 + df)) + 1``.

    Attributes:
        n_texts: distinct texts n. frequencies: bucket to the number df of these that have a word of it.
    """

    n_texts: int
    frequencies: Mapping[int, int]

    def tf_idf(self, counts: Mapping[int, int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Buckets, ascending, and weights ``(1 + log tf) idf`` of a text with these bucket counts."""
        buckets = sorted(counts)
        frequencies = np.array([self.frequencies.get(bucket, 0) for bucket in buckets], dtype=np.float64)
        times = np.array([counts[bucket] for bucket in buckets], dtype=np.float64)
        return np.array(buckets, dtype=np.int64), (1 + np.log(times)) * (
            np.log((1 + self.n_texts) / (1 + frequencies)) + 1
        )

    def embed(self, counts: Mapping[int, int]) -> NDArray[np.float64]:
        """The sketched TF-IDF of a text, of length one or zero, shape (N_COLUMNS,)."""
        buckets, weights = self.tf_idf(counts)
        signed = weights * _SIGN_OF[buckets]
        return unit(np.bincount(_COLUMN_OF[buckets], weights=signed, minlength=N_COLUMNS).astype(np.float64))


def unit(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """The row at length one; zeros stay."""
    length = float(np.sqrt((row * row).sum()))
    return row / length if length > 0 else row
