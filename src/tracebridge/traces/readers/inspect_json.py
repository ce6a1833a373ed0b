"""JSON as Inspect writes it: with NaN and Infinity, which JSON does not have."""

from __future__ import annotations

import re

# A string goes by as a whole, so that only literals are replaced.
_STRING_OR_NAN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)|-?(?:NaN|Infinity)\b', re.DOTALL)


def without_nan(data: bytes) -> bytes:
    """The JSON text with null for each NaN and Infinity outside of strings."""
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    return _STRING_OR_NAN.sub(lambda match: match[0] if match[0].startswith(b'"') else b"null", data)
