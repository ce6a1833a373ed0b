from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.chain.rational import RationalMatrix, RationalVector

law = settings(deadline=None, max_examples=60)

fractions = st.fractions(min_value=-(2**70), max_value=2**70, max_denominator=2**70)
rows = st.lists(st.dictionaries(st.integers(0, 3), fractions, max_size=4), max_size=4)


@law
@given(st.lists(fractions, max_size=6))
def test_vectors_keep_their_values(values):
    vector = RationalVector.from_fractions(values)
    assert vector.to_fractions() == values
    assert vector.to_float().tolist() == [float(value) for value in values]
    assert len(vector) == len(values)
    assert not vector.numerators.flags.writeable


@law
@given(rows)
def test_matrices_keep_their_values(given_rows):
    matrix = RationalMatrix.from_rows(given_rows, 4)
    assert matrix.shape == (len(given_rows), 4)
    for i, row in enumerate(given_rows):
        kept = {column: value for column, value in sorted(row.items()) if value}
        assert matrix.row(i) == kept
        assert list(matrix.row(i)) == list(kept)
        assert Fraction(int(matrix.row_sums()[i]), int(matrix.denominators[i])) == sum(row.values())
    dense = matrix.to_float().toarray()
    assert all(dense[i, j] == float(value) for i, row in enumerate(given_rows) for j, value in row.items())


@law
@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=5))
def test_an_array_and_a_list_of_integers_are_the_same(values):
    from_array = RationalVector(np.array(values, dtype=np.int64), 7)
    from_list = RationalVector(values, 7)
    assert from_array.numerators.dtype == from_list.numerators.dtype
    assert from_array.to_fractions() == from_list.to_fractions() == [Fraction(value, 7) for value in values]


def test_a_small_array_is_copied():
    values = np.array([1, 2])
    vector = RationalVector(values, 3)
    values[0] = 9
    assert vector.to_fractions() == [Fraction(1, 3), Fraction(2, 3)]


@law
@given(st.lists(st.floats(2**-60, 1), min_size=1, max_size=5))
def test_rows_of_doubles_are_divided_by_their_exact_sum(values):
    matrix = RationalMatrix.from_float(csr_array(np.array([values])))
    total = sum(map(Fraction, values))
    assert matrix.row(0) == {i: Fraction(value) / total for i, value in enumerate(values)}
    assert matrix.row_sums().tolist() == matrix.denominators.tolist()


def test_empty_rows_and_bad_denominators():
    matrix = RationalMatrix.from_rows([{}, {0: Fraction(1)}, {}], 2)
    assert matrix.row_sums().tolist() == [0, 1, 0]
    assert matrix.row(0) == {}
    with pytest.raises(ValueError, match="must be positive"):
        RationalVector(np.array([1]), 0)
