from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure
from tracebridge.errors import ModelError

HALVES = np.array([[0.5, 0.5], [0, 1]])


def chain(**changes):
    return MarkovChain(**({"states": ("a", "b"), "transitions": HALVES, "initial": [1, 0]} | changes))


def test_labels_that_come_by_themselves():
    found = chain(labels={"x": [True, True]})
    assert found.label("a").tolist() == [True, False]
    assert found.label("init").tolist() == [True, False]
    assert found.label("deadlock").tolist() == [False, False]
    assert found.label("x").tolist() == [True, True]
    assert found.label_names() == ["x", "a", "b", "init", "deadlock"]
    assert all(found.has_label(name) for name in found.label_names())
    assert not found.has_label("y")
    with pytest.raises(ModelError, match='unknown label "xx"') as caught:
        found.label("xx")
    assert 'did you mean "x"' in str(caught.value)
    with pytest.raises(ModelError, match="no state 'c'"):
        found.index("c")


def test_variables_and_constants_are_words_beside_the_labels():
    given = np.array([7, -2], dtype=np.int32)
    words = {"n": given, "done": [False, True], "x": [0.5, 1.5]}
    found = chain(variables=words, constants={"p": Fraction(1, 5)}, labels={"done": [True, True]})
    given[:] = 0
    assert found.word_names() == ["n", "done", "x", "p"]
    assert found.variables["n"].dtype == np.int64
    assert found.variables["n"].tolist() == [7, -2]
    assert found.variables["done"].tolist() == [False, True]
    assert found.label("done").tolist() == [True, True]
    with pytest.raises(ValueError, match="read-only"):
        found.variables["x"][0] = 0
    with pytest.raises(TypeError):
        found.constants["q"] = Fraction(1)


def test_absorbing_is_a_matter_of_structure():
    assert chain().absorbing.tolist() == [False, True]
    nearly = chain(transitions=[[1 - 1e-16, 1e-300], [0.5, 0.5]])
    assert nearly.absorbing.tolist() == [False, False]
    swap = chain(transitions=[[0, 1], [1, 0]])
    assert swap.absorbing.tolist() == [False, False]
    assert chain(initial=[0, 1]).reachable_states().tolist() == [False, True]


def test_sparse_input_is_put_in_canonical_form_and_copied():
    rows, columns = [0, 0, 0, 1, 1], [1, 0, 1, 0, 1]
    given = coo_array(([0.25, 0.5, 0.25, 0.0, 1.0], (rows, columns)), shape=(2, 2)).tocsr()
    found = chain(transitions=csr_array(given))
    given.data[:] = 7
    assert found.transitions.nnz == 3
    assert found.transitions.toarray().tolist() == HALVES.tolist()
    for array in (found.transitions.data, found.transitions.indices, found.initial):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        found.labels["new"] = None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variables": {"n": [1]}}, r"variable 'n' has shape \(1,\) for 2 states"),
        ({"variables": {"n": [1, np.nan]}}, "state 'b': variable 'n' is nan"),
        ({"variables": {"n": ["x", "y"]}}, "variable 'n' has values of type <U1"),
        ({"variables": {"n": np.array([1, 2], dtype=np.uint64)}}, "variable 'n' has values of type uint64"),
        ({"variables": {"2n": [1, 2]}}, "'2n' cannot be the name of a variable"),
        ({"constants": {"a b": Fraction(1)}}, "'a b' cannot be the name of a constant"),
        ({"constants": {"p": 0.2}}, "constant 'p' is 0.2"),
        ({"constants": {"n": True}, "variables": {"n": [1, 2]}}, "'n' is both a variable and a constant"),
        ({"states": ("a", "a")}, "two states are called 'a'"),
        ({"states": ("a", "")}, "'' cannot be the name of a state"),
        ({"states": ("a",)}, "1 states need a 1 x 1 transition matrix"),
        ({"initial": [1]}, "2 states need 2 initial probabilities"),
        ({"states": (), "transitions": np.zeros((0, 0)), "initial": []}, "at least one state"),
        ({"transitions": [[0.5, 0.4], [0, 1]]}, "state 'a': its row sums to 0.9"),
        ({"transitions": [[0.5, 0.5], [0, 0]]}, "state 'b': its row sums to 0.0"),
        ({"transitions": [[0.5, 0.5 + 1e-11], [0, 1]]}, "state 'a': its row sums to 1.00000000001"),
        ({"transitions": [[1.5, -0.5], [0, 1]]}, "state 'a': the probability of going to 'b' is -0.5"),
        ({"transitions": [[np.nan, 0.5], [0, 1]]}, "state 'a': the probability of going to 'a' is nan"),
        ({"transitions": [[np.inf, 0.5], [0, 1]]}, "is inf"),
        ({"initial": [0.5, 0.4]}, "the initial distribution sums to 0.9"),
        ({"initial": [1.5, -0.5]}, "state 'b': its initial probability is -0.5"),
        ({"initial": [np.nan, 1]}, "state 'a': its initial probability is nan"),
        ({"labels": {"init": [True, False]}}, "'init' cannot be given as a label"),
        ({"labels": {"x": [True]}}, r"label 'x' has shape \(1,\) for 2 states"),
        ({"labels": {"a": [True, True]}}, "label 'a' is the name of a state but holds elsewhere too"),
        ({"labels": {"a": [False, False]}}, "label 'a' is the name of a state"),
        ({"rewards": {"r": RewardStructure(state=[1, -1])}}, "state 'b': its reward 'r' is -1.0"),
        ({"rewards": {"r": RewardStructure(state=[1, np.inf])}}, "state 'b': its reward 'r' is inf"),
        ({"rewards": {"r": RewardStructure(state=[1])}}, "reward 'r' has shape"),
        ({"rewards": {"": RewardStructure(state=[1, 1])}}, "needs a name"),
        ({"initial": RationalVector.from_fractions([Fraction(1, 3), Fraction(1, 3)])}, "sums to 2/3"),
        ({"transitions": RationalMatrix.from_rows([{0: Fraction(1, 3)}, {1: 1}])}, "state 'a': its row sums to 1/3"),
    ],
)
def test_broken_chains_are_refused_by_name_and_number(changes, message):
    with pytest.raises(ModelError, match=message):
        chain(**changes)


def test_every_problem_is_listed_up_to_a_limit():
    with pytest.raises(ModelError) as caught:
        chain(transitions=[[0.5, 0.4], [0, 0.9]], initial=[1, 1])
    assert len(caught.value.problems) == 3
    n = 50
    with pytest.raises(ModelError, match="and 30 more problems"):
        MarkovChain(states=tuple(f"s{i}" for i in range(n)), transitions=np.eye(n) / 2, initial=np.eye(n)[0])


def test_exact_numbers_are_kept_and_rounded_correctly():
    thirds = {0: Fraction(1, 3), 1: Fraction(2, 3)}
    exact = chain(
        transitions=RationalMatrix.from_rows([thirds, {1: Fraction(1)}]),
        initial=RationalVector.from_fractions([Fraction(1, 7), Fraction(6, 7)]),
    )
    assert exact.is_exact
    assert exact.exact_transitions().row(0) == thirds
    assert exact.exact_initial() == [Fraction(1, 7), Fraction(6, 7)]
    assert exact.transitions[0, 0] == 1 / 3
    assert exact.to_records()[0] == {"source": "a", "target": "a", "probability": 1 / 3, "exact": "1/3"}
    floats = chain(transitions=[[0.1, 0.9], [0, 1]], initial=[0.1, 0.9])
    assert not floats.is_exact
    assert sum(floats.exact_transitions().row(0).values()) == 1
    assert sum(floats.exact_initial()) == 1


def test_rewards_add_up():
    reward = RewardStructure.from_fractions([Fraction(1, 3), 1], [Fraction(1, 6), 0])
    assert reward.fractions(action=True) == [Fraction(1, 2), 1]
    assert reward.fractions(action=False) == [Fraction(1, 3), 1]
    np.testing.assert_array_equal(reward.per_step, [1 / 3 + 1 / 6, 1])
    plain = RewardStructure(state=[0.5, 1])
    assert plain.fractions(action=True) == [Fraction(1, 2), 1]
    np.testing.assert_array_equal(plain.per_step, [0.5, 1])


def test_other_shapes_of_the_same_chain():
    found = chain(states=("<a>", "b"), labels={"x": [True, False]})
    graph = found.to_networkx()
    assert graph.edges["<a>", "b"]["probability"] == 0.5
    assert graph.nodes["<a>"] == {"initial": 1.0, "labels": ["x"]}
    html = found._repr_html_()
    assert "<a>" not in html
    assert "&lt;a&gt;" in html
    many = MarkovChain(states=tuple(f"s{i}" for i in range(40)), transitions=np.eye(40), initial=np.eye(40)[0])
    assert "10 more transitions" in many._repr_html_()
