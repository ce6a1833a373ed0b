"""How texts become numbers: by hashed words, or by an encoder of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import FitError, UsageError
from tracebridge.states.manual import name_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: A sentence encoder: texts to rows of numbers, shape (n, p).
TextEncoder = Callable[[Sequence[str]], "ArrayLike"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFeatures:
    """How texts become numbers.

    Attributes:
        weight: the length of a text's vector; 1 makes unrelated texts as different as different names, 0 ignores them.
        encoder: a function of a list of texts, or an object with such a function ``encode``, giving one row a text;
            hashed TF-IDF without one. It must give a text the same row in any company.

    Raises:
        UsageError: for a weight that is negative or not finite, or an encoder that cannot be called.
    """

    weight: float = 1.0
    encoder: TextEncoder | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.weight < 1e6:
            raise UsageError(f"the weight of texts must be at least 0 and finite, not {self.weight}")
        encode = getattr(self.encoder, "encode", None)
        if callable(encode):
            object.__setattr__(self, "encoder", encode)
        elif self.encoder is not None and not callable(self.encoder):
            raise UsageError(f"a text encoder is a function of a list of texts, not {type(self.encoder).__name__}")


def encoded(encoder: TextEncoder, texts: Sequence[str]) -> NDArray[np.float64]:
    """The encoder's rows for these texts, shape (n, p).

    Raises:
        FitError: if they are not one row of finite numbers a text.
    """
    if not texts:
        return np.empty((0, 0))
    rows = np.asarray(encoder(list(texts)), dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise FitError(
            f"the text encoder {name_of(encoder)} gave shape {rows.shape} for {len(texts)} texts; "
            "it must give one row of finite numbers a text"
        )
    return rows
