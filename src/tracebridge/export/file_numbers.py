"""The numbers of a model file: doubles, or rationals where the file has fractions; and what they make up together."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.transition_rows import ROW_SUM_TOLERANCE
from tracebridge.errors import UsageError
from tracebridge.export.prism_text import MAX_INTEGER_BITS
from tracebridge.export.whole_file import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tracebridge.export.whole_file import LineFile

    #: A vector as doubles, and as rationals where the file is exact.
    Numbers = tuple[NDArray[np.float64], RationalVector | None]

_MAX_DIGITS = 4_300  # of a number; Python reads no longer ones
_MAX_EXPONENT = 400  # of a decimal that is read exactly

_SHOWN_BITS = 500  # of a sum in a message

_DIGITS_HINT = (
    "nothing is normalised: write the file with 17 digits (PRISM: -exportmodelprecision 17; Storm: output_precision "
    "17) or with fractions"
)


def ratio_text(top: int, bottom: int) -> str:
    """A rational as it is given, unreduced. Raises UsageError where it is too long to be read back."""
    if max(top.bit_length(), bottom.bit_length()) > MAX_INTEGER_BITS:
        raise UsageError(
            f"the chain has a rational number of more than {MAX_INTEGER_BITS} bits, too long for a text file; write "
            "the chain in doubles, or round its numbers to shorter fractions"
        )
    return str(top) if bottom == 1 else f"{top}/{bottom}"


def matrix_texts(matrix: csr_array, exact: RationalMatrix | None) -> list[str]:
    """The entries as text: fractions over the denominator of their row, or the shortest decimals of doubles."""
    if exact is None:
        return list(map(repr, matrix.data.tolist()))
    bottoms = exact.denominators[exact.row_of_entry].tolist()
    return [ratio_text(top, bottom) for top, bottom in zip(exact.numerators.tolist(), bottoms, strict=True)]


def vector_texts(values: NDArray[np.float64], exact: RationalVector | None) -> list[str]:
    """The entries as text; zero is ``0``."""
    if exact is None:
        return [repr(value) if value else "0" for value in values.tolist()]
    return [ratio_text(top, exact.denominator) if top else "0" for top in exact.numerators.tolist()]


class NumberColumn:
    """Numbers of a file in the order in which they stand there, collected block by block.

    Doubles are correctly rounded, fractions too. With ``exact`` every number, decimals as well, is kept as a rational.
    """

    __slots__ = ("_bottoms", "_floats", "_lines", "_tops", "exact", "file")

    def __init__(self, file: LineFile, *, exact: bool) -> None:
        self.file = file
        self.exact = exact
        self._floats: list[NDArray[np.float64]] = []
        self._lines: list[NDArray[np.int64]] = []
        self._tops: list[int] = []
        self._bottoms: list[int] = []

    def add(self, tokens: Sequence[bytes], lines: NDArray[np.int64] | Sequence[int]) -> None:
        """Numbers and the lines where they stand. Raises ModelError for what is no finite, non-negative number."""
        self._lines.append(np.asarray(lines, dtype=np.int64))
        if self.exact:
            for token, line in zip(tokens, lines, strict=True):
                top, bottom = self._ratio(token, int(line))
                self._tops.append(top)
                self._bottoms.append(bottom)
            return
        try:
            if b"_" in b" ".join(tokens):  # Python reads 1_0 as ten
                raise ValueError
            values = np.array(list(map(float, tokens)), dtype=np.float64)
        except ValueError:
            values = np.array([self._float(token, int(line)) for token, line in zip(tokens, lines, strict=True)])
        bad = np.flatnonzero(~(values >= 0) | np.isinf(values))
        if len(bad):
            self._refuse_number(tokens[bad[0]], int(lines[bad[0]]))
        self._floats.append(values)

    @property
    def lines(self) -> NDArray[np.int64]:
        """The line of each number, shape (k,)."""
        return _joined(self._lines, np.int64)

    def floats(self) -> NDArray[np.float64]:
        """The numbers as doubles, shape (k,)."""
        if self.exact:
            return np.array([t / b for t, b in zip(self._tops, self._bottoms, strict=True)], dtype=np.float64)
        return _joined(self._floats, np.float64)

    def ratios(self) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Numerators and denominators as Python integers, each of shape (k,); only with ``exact``."""
        return objects(self._tops), objects(self._bottoms)

    def _float(self, token: bytes, line: int) -> float:  # noqa: RET503 - `_refuse_number` does not return
        if b"/" in token:
            top, bottom = self._ratio(token, line)
            try:
                return top / bottom
            except OverflowError:
                self._refuse_number(token, line)
        try:
            if b"_" not in token:
                return float(token)
        except ValueError:
            pass  # told below, as every other text that is no number
        self._refuse_number(token, line)

    def _ratio(self, token: bytes, line: int) -> tuple[int, int]:  # noqa: RET503 - as above
        if len(token) <= 2 * _MAX_DIGITS and b"_" not in token:
            top, slash, bottom = token.partition(b"/")
            if top.isdigit() and len(top) <= _MAX_DIGITS:
                if not slash:
                    return int(top), 1
                if bottom.isdigit() and len(bottom) <= _MAX_DIGITS and int(bottom):
                    return int(top), int(bottom)
            _, _, exponent = token.lower().partition(b"e")
            try:
                if not slash and (not exponent or abs(int(exponent)) <= _MAX_EXPONENT):
                    value = Fraction(token.decode("ascii"))
                    if value >= 0:
                        return value.numerator, value.denominator
            except ValueError:
                pass  # told below, as every other text that is no number
        self._refuse_number(token, line)

    def _refuse_number(self, token: bytes, line: int) -> NoReturn:
        self.file.refuse(f"{shown(token)} is no finite, non-negative number", line=line)


def transition_matrix(
    n: int, sources: NDArray[np.int64], targets: NDArray[np.int64], values: NumberColumn, *, fix_deadlocks: bool
) -> csr_array | RationalMatrix:
    """The transitions of a file as a matrix of shape (n, n), with every row checked.

    Raises:
        ModelError: an index out of range, a transition given twice, a probability of zero, a state without
            transitions, or a row that does not sum to one; with its line.
    """
    file, lines = values.file, values.lines
    if n > len(sources) + fix_deadlocks:  # of n states that can be reached n - 1 are entered
        hint = "every state needs one; write a loop with probability 1 where a run ends"
        file.refuse(f"{n} states cannot have {len(sources)} transitions between them", hint, line=None)
    for name, column in (("source", sources), ("target", targets)):
        bad = np.flatnonzero(column >= n)
        if len(bad):
            k = bad[0]
            file.refuse(f"the {name} {column[k]} is no state: there are {n}, from 0 to {n - 1}", line=int(lines[k]))
    floats = values.floats()
    tops, bottoms = values.ratios() if values.exact else (floats, None)
    zero = np.flatnonzero(tops == 0)
    if len(zero):
        file.refuse("the probability is 0", "leave the transition out", line=int(lines[zero[0]]))
    missing = np.flatnonzero(np.bincount(sources, minlength=n) == 0)
    if len(missing):
        if not fix_deadlocks:
            message = f"state {missing[0]} has no transitions"
            file.refuse(message, f"write a loop: {missing[0]} to {missing[0]} with probability 1", line=None)
        sources, targets = np.append(sources, missing), np.append(targets, missing)
        tops, floats = (
            np.append(tops, np.ones(len(missing), dtype=tops.dtype)),
            np.append(floats, np.ones(len(missing))),
        )
        bottoms = None if bottoms is None else np.append(bottoms, objects([1] * len(missing)))
        lines = np.append(lines, np.zeros(len(missing), dtype=np.int64))
    order = np.lexsort((targets, sources))
    sources, targets, lines, tops = sources[order], targets[order], lines[order], tops[order]
    twice = np.flatnonzero((np.diff(sources) == 0) & (np.diff(targets) == 0))
    if len(twice):
        k = twice[0]
        earlier, later = sorted((int(lines[k]), int(lines[k + 1])))
        file.refuse(f"{sources[k]} to {targets[k]} was already given in line {earlier}", line=later)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n))]).astype(np.int64)
    if bottoms is None:
        matrix = csr_array((tops, targets, indptr), shape=(n, n))
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        wrong = np.flatnonzero(np.abs(sums - 1) > ROW_SUM_TOLERANCE)
        if len(wrong):
            _refuse_sum(file, int(wrong[0]), repr(float(sums[wrong[0]])), int(lines[indptr[wrong[0]]]))
        return matrix
    numerators, denominators = _over_row_denominators(file, indptr, tops.astype(object), bottoms[order], lines)
    rational = RationalMatrix(indptr, targets, numerators, denominators, n)
    totals = rational.row_sums()
    wrong = np.flatnonzero(totals != rational.denominators)
    if len(wrong):
        i = int(wrong[0])
        total = Fraction(int(totals[i]), int(rational.denominators[i]))
        _refuse_sum(file, i, _sum_text(total), int(lines[indptr[i]]))
    return rational


def reward_vector(n: int, positions: NDArray[np.int64], values: NumberColumn) -> Numbers:
    """Rewards at their states, shape (n,), and as rationals where the file is exact.

    Raises:
        ModelError: a state out of range or given twice, with its line.
    """
    file, lines = values.file, values.lines
    bad = np.flatnonzero(positions >= n)
    if len(bad):
        file.refuse(f"there is no state {positions[bad[0]]}: there are {n}, from 0 to {n - 1}", line=int(lines[bad[0]]))
    order = np.argsort(positions, kind="stable")
    twice = np.flatnonzero(np.diff(positions[order]) == 0)
    if len(twice):
        k = order[twice[0] + 1]
        file.refuse(f"state {positions[k]} has a reward already", line=int(lines[k]))
    if not values.exact:
        vector = np.zeros(n)
        vector[positions] = values.floats()
        return vector, None
    return numbers_at(n, positions, values)


def numbers_at(n: int, positions: NDArray[np.int64], values: NumberColumn) -> Numbers:
    """The numbers at their positions, which are in range and distinct, and zero elsewhere."""
    if not values.exact:
        vector = np.zeros(n)
        vector[positions] = values.floats()
        return vector, None
    return ratios_at(n, positions, *values.ratios(), values.file)


def ratios_at(
    n: int, positions: NDArray[np.int64], tops: NDArray[np.object_], bottoms: NDArray[np.object_], file: LineFile
) -> tuple[NDArray[np.float64], RationalVector]:
    """Rationals at their positions, over their least common denominator, and zero elsewhere."""
    common = _common_denominator(file, bottoms.tolist(), None)
    numerators = np.zeros(n, dtype=object)
    if len(tops):
        numerators[positions] = tops * (common // bottoms)
    exact = RationalVector(numerators, common)
    return exact.to_float(), exact


def reward_structure(
    state: Numbers,
    action: Numbers | None,
) -> RewardStructure:
    """The two parts of a reward structure, each as doubles and perhaps as rationals."""
    if action is None:
        return RewardStructure(state=state[0], exact_state=state[1])
    return RewardStructure(state=state[0], exact_state=state[1], action=action[0], exact_action=action[1])


def _over_row_denominators(
    file: LineFile,
    indptr: NDArray[np.int64],
    tops: NDArray[np.object_],
    bottoms: NDArray[np.object_],
    lines: NDArray[np.int64],
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Numerators over one denominator a row: the one that is written if all entries share it, else the least common."""
    widths = np.diff(indptr)
    denominators = bottoms[indptr[:-1]]
    numerators = tops.copy()
    for i in np.unique(np.repeat(np.arange(len(widths)), widths)[bottoms != np.repeat(denominators, widths)]).tolist():
        row = slice(indptr[i], indptr[i + 1])
        denominators[i] = _common_denominator(file, bottoms[row].tolist(), int(lines[indptr[i]]))
        numerators[row] = tops[row] * (denominators[i] // bottoms[row])
    return numerators, denominators


def _common_denominator(file: LineFile, bottoms: Iterable[int], line: int | None) -> int:
    common = 1
    for bottom in set(bottoms):
        common = lcm(common, bottom)
        if common.bit_length() > MAX_INTEGER_BITS:
            message = f"the common denominator of the fractions has more than {MAX_INTEGER_BITS} bits"
            file.refuse(message, "write shorter fractions", line=line)
    return common


def _sum_text(total: Fraction) -> str:
    if total.numerator.bit_length() + total.denominator.bit_length() <= _SHOWN_BITS:
        return str(total)
    return f"a fraction of many digits, {'more' if total > 1 else 'less'} than 1,"


def _refuse_sum(file: LineFile, state: int, total: str, line: int) -> NoReturn:
    file.refuse(f"the probabilities of state {state} sum to {total} and not to 1", _DIGITS_HINT, line=line)


def _joined(parts: list[NDArray[np.int64]] | list[NDArray[np.float64]], dtype: type) -> NDArray:  # type: ignore[type-arg]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def objects(values: Sequence[int]) -> NDArray[np.object_]:
    """Python integers of any size as an array, shape (k,)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
