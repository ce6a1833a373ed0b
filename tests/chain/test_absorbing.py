import numpy as np
import pytest

from tracebridge.chain import AbsorbingChain, MarkovChain
from tracebridge.errors import ModelError


def test_canonical_form_of_a_chain_in_any_order():
    # up and down absorb; they stand first and last so that the order must be looked at
    chain = MarkovChain(
        states=("up", "a", "b", "down"),
        transitions=[[1, 0, 0, 0], [0.2, 0.1, 0.3, 0.4], [0, 0.5, 0, 0.5], [0, 0, 0, 1]],
        initial=[0.1, 0.2, 0.3, 0.4],
    )
    form = AbsorbingChain(chain=chain)
    assert form.transient_states == ("a", "b")
    assert form.absorbing_states == ("up", "down")
    assert form.Q.toarray().tolist() == [[0.1, 0.3], [0.5, 0]]
    assert form.R.toarray().tolist() == [[0.2, 0.4], [0, 0.5]]
    assert form.initial.tolist() == [0.2, 0.3]
    assert form.initial_absorbed.tolist() == [0.1, 0.4]


def test_chains_without_a_way_out_are_refused_by_name():
    chain = MarkovChain(
        states=("a", "b", "c", "end"),
        transitions=[[0, 1, 0, 0], [1, 0, 0, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 1]],
        initial=[1, 0, 0, 0],
    )
    with pytest.raises(ModelError, match=r"no absorbing state can be reached from 'a', 'b'$"):
        AbsorbingChain(chain=chain)
    n = 8
    ring = MarkovChain(
        states=tuple(f"s{i}" for i in range(n)), transitions=np.roll(np.eye(n), 1, axis=1), initial=np.eye(n)[0]
    )
    with pytest.raises(ModelError, match="'s4' and 3 more"):
        AbsorbingChain(chain=ring)


def test_a_chain_of_absorbing_states_has_no_transient_one():
    form = AbsorbingChain(chain=MarkovChain(states=("x", "y"), transitions=np.eye(2), initial=[0.5, 0.5]))
    assert form.Q.shape == (0, 0)
    assert form.R.shape == (0, 2)
    assert form.initial_absorbed.tolist() == [0.5, 0.5]
