"""The arrays of the unified Markov binary format (UMB) as bytes, both ways: all little-endian, none with a header.

Decoders take what an index declares and raise ModelError with the entry that does not fit; their callers add the place.
Source: the UMB specification, section "Binary File Types".
"""

from __future__ import annotations

from itertools import pairwise
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracebridge.chain.rational import RationalVector
from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORD = 64
_MAX_BITS = 2**33  # of all numerators over a common denominator


class Quotients(NamedTuple):
    """Rationals entry by entry, not in lowest terms: int64 arrays, or Python integers (dtype object); shape (m,)."""

    numerators: NDArray[Any]
    denominators: NDArray[Any]


# ---------------------------------------------------------------- truth values


def bit_vector_size(n: int) -> int:
    """Bytes of n truth values: whole words of 64 bits."""
    return -(-n // _WORD) * 8


def encode_bits(mask: NDArray[np.bool_]) -> bytes:
    """Truth value i is bit i, the least significant first."""
    return np.packbits(mask, bitorder="little").tobytes().ljust(bit_vector_size(len(mask)), b"\0")


def decode_bits(data: bytes, n: int) -> NDArray[np.bool_]:
    """Shape (n,). Raises ModelError for bits that are set beyond the last entry."""
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    beyond = np.flatnonzero(bits[n:])
    if len(beyond):
        raise ModelError(f"bit {n + int(beyond[0])} is set, but there are only {n} entries")
    return bits[:n].astype(np.bool_)


# ---------------------------------------------------------------- offsets and indices


def encode_indices(values: NDArray[np.int64]) -> bytes:
    """Unsigned, 64 bits each."""
    return np.ascontiguousarray(values, dtype="<u8").tobytes()


def decode_offsets(data: bytes, total: int) -> NDArray[np.int64]:
    """The bounds of consecutive ranges that cover ``total`` entries, shape (n + 1,)."""
    offsets = np.frombuffer(data, dtype="<u8")
    if offsets[0] != 0:
        raise ModelError(f"entry 0 is {offsets[0]}: the first range begins at 0")
    falling = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falling):
        i = int(falling[0])
        raise ModelError(f"entry {i + 1} is {offsets[i + 1]}, below entry {i}, which is {offsets[i]}")
    if offsets[-1] != total:
        raise ModelError(f"the last entry is {offsets[-1]}: the last range ends at {total}")
    return offsets.astype(np.int64)


def decode_indices(data: bytes, limit: int) -> NDArray[np.int64]:
    """Indices below ``limit``, shape (m,)."""
    indices = np.frombuffer(data, dtype="<u8")
    outside = np.flatnonzero(indices >= limit)
    if len(outside):
        i = int(outside[0])
        raise ModelError(f"entry {i} is {indices[i]}, but the largest index is {limit - 1}")
    return indices.astype(np.int64)


# ---------------------------------------------------------------- numbers


def encode_doubles(values: NDArray[np.float64]) -> bytes:
    """64 bits each."""
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def decode_doubles(data: bytes) -> NDArray[np.float64]:
    """Shape (m,)."""
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


def rational_size(quotients: Quotients) -> int:
    """Bits of one rational: a signed numerator and an unsigned denominator, both of the same number of whole words."""
    if all(part.dtype != object for part in quotients):
        return 2 * _WORD
    top = max((abs(value).bit_length() for value in quotients.numerators.tolist()), default=0)
    bottom = max((value.bit_length() for value in quotients.denominators.tolist()), default=0)
    return 2 * max(-(-(top + 1) // _WORD), -(-bottom // _WORD), 1) * _WORD


def encode_rationals(quotients: Quotients, size: int) -> bytes:
    """Numerator, denominator, numerator, ... of ``size / 2`` bits each, as they are and not in lowest terms."""
    if size == 2 * _WORD:
        pairs = np.empty((len(quotients.numerators), 2), dtype="<i8")
        pairs[:, 0] = quotients.numerators
        pairs[:, 1] = quotients.denominators.astype(np.uint64).view(np.int64)
        return pairs.tobytes()
    half = size // 16
    return b"".join(
        top.to_bytes(half, "little", signed=True) + bottom.to_bytes(half, "little")
        for top, bottom in zip(quotients.numerators.tolist(), quotients.denominators.tolist(), strict=True)
    )


def decode_rationals(data: bytes, size: int) -> Quotients:
    """Shape (m,) both. Raises ModelError for a denominator of zero."""
    if size == 2 * _WORD:
        pairs = np.frombuffer(data, dtype="<i8").reshape(-1, 2)
        bottoms = pairs[:, 1].astype(np.int64)
        if np.any(bottoms < 0):  # of more than 63 bits
            quotients = Quotients(pairs[:, 0].astype(object), bottoms.view(np.uint64).astype(object))
        else:
            quotients = Quotients(pairs[:, 0].astype(np.int64), bottoms)
    else:
        half = size // 16
        tops = [int.from_bytes(data[i : i + half], "little", signed=True) for i in range(0, len(data), 2 * half)]
        parts = [int.from_bytes(data[i + half : i + 2 * half], "little") for i in range(0, len(data), 2 * half)]
        quotients = Quotients(_objects(tops), _objects(parts))
    zeros = np.flatnonzero(quotients.denominators == 0)
    if len(zeros):
        raise ModelError(f"entry {int(zeros[0])} has the denominator 0")
    return quotients


def over_common_denominators(quotients: Quotients, indptr: NDArray[np.int64]) -> Quotients:
    """The same rationals with one denominator a row: the one that all of a row have, else their least common multiple.

    Args:
        indptr: where rows begin and the last one ends, shape (n + 1,); no row is empty.

    Returns:
        Numerators by entry, shape (m,), and denominators by row, shape (n,).

    Raises:
        ModelError: the multiple would have too many digits.
    """
    tops, bottoms = quotients
    starts = indptr[:-1]
    denominators = bottoms[starts]
    mixed = np.flatnonzero(np.logical_or.reduceat(bottoms != np.repeat(denominators, np.diff(indptr)), starts))
    if not len(mixed):
        return Quotients(tops, denominators)
    tops, denominators = tops.astype(object), denominators.astype(object)
    for i in mixed.tolist():
        row = slice(int(indptr[i]), int(indptr[i + 1]))
        parts = bottoms[row].tolist()
        common = 1
        for part in parts:
            common = lcm(common, part)
            if common.bit_length() * len(parts) > _MAX_BITS:
                raise ModelError(f"the common denominator of entries {row.start} to {row.stop - 1} has too many digits")
        tops[row] = [top * (common // part) for top, part in zip(tops[row].tolist(), parts, strict=True)]
        denominators[i] = common
    return Quotients(tops, denominators)


def to_vector(quotients: Quotients) -> RationalVector:
    """The rationals over one denominator, shape (n,), n >= 1."""
    joined = over_common_denominators(quotients, np.array([0, len(quotients.numerators)]))
    return RationalVector(joined.numerators, int(joined.denominators[0]))


def _objects(values: Sequence[int]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# ---------------------------------------------------------------- strings


def encode_strings(texts: Sequence[str]) -> tuple[bytes, bytes]:
    """The bounds of each text in bytes, shape (n + 1,), and all texts together as UTF-8."""
    joined = "".join(texts)
    data = joined.encode("utf-8")
    lengths = map(len, texts) if joined.isascii() else (len(text.encode("utf-8")) for text in texts)
    bounds = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(lengths, dtype=np.int64, count=len(texts)), out=bounds[1:])
    return encode_indices(bounds), data


def decode_strings(bounds: bytes, data: bytes) -> list[str]:
    """The texts. Raises ModelError for bytes that are no UTF-8."""
    offsets = decode_offsets(bounds, len(data)).tolist()
    if data.isascii():
        text = data.decode("ascii")
        return [text[start:end] for start, end in pairwise(offsets)]
    texts = []
    for i, (start, end) in enumerate(pairwise(offsets)):
        try:
            texts.append(data[start:end].decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ModelError(f"string {i} is not UTF-8: byte {error.start} of it") from error
    return texts


# ---------------------------------------------------------------- bit fields


def decode_field(records: NDArray[np.uint8], first_bit: int, size: int) -> NDArray[np.uint64]:
    """The unsigned number of ``size`` bits, at most 64, that begins at this bit of every record, shape (n,).

    Args:
        records: shape (n, bytes of a record).
    """
    if not size:
        return np.zeros(len(records), dtype=np.uint64)
    first, shift = divmod(first_bit, 8)
    last = -(-(first_bit + size) // 8)
    window = np.zeros((len(records), 16), dtype=np.uint8)
    window[:, : last - first] = records[:, first:last]
    words = window.view("<u8").astype(np.uint64)
    field = words[:, 0] >> np.uint64(shift)
    if shift:
        field |= words[:, 1] << np.uint64(_WORD - shift)
    mask = np.uint64(2**size - 1)
    return np.asarray(field & mask, dtype=np.uint64)
