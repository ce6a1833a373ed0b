from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.draws_of_chains import checked_alone, first_draws, random_entries, small_fit

from tracebridge.chain import MarkovChain, RewardStructure
from tracebridge.checking.result import Verdict
from tracebridge.checking.run import resolve_for
from tracebridge.closedform.batched.chain_stack import DENSE_STATES, ChainStack
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.inference.batched_evaluation import evaluate_draws, one_by_one
from tracebridge.pctl import fold_steps, parse_properties

PROPERTIES = """
P=? [ F "success" ]; P=? [ F<=3 "success" ]; P=? [ F>=2 "success" ]; P=? [ F[2,5] "answer" ]; P=? [ F=2 "answer" ];
P=? [ X "search" ]; P=? [ G !"retry" ]; P=? [ G<=4 !"retry" ]; P=? [ !"retry" U "success" ];
P=? [ !"retry" W "answer" ]; P=? [ "answer" R !"retry" ]; P=? [ !"answer" U<=3 "search" ]; P=? [ F<=2000 "success" ];
R{"steps"}=? [ F "absorbed" ]; R{"steps"}=? [ F "success" ]; R{"steps"}=? [ C<=4 ]; R{"steps"}=? [ C ];
R{"steps"}=? [ I=2 ]; R{"steps"}=? [ S ]; R{"steps"}=? [ Cdiscount=0.9 ]; R{"steps"}=? [ C<=4 discount=0.9 ];
S=? [ "success" ]; S>=0.5 [ "success" ]; T=? [ F "absorbed" ];
P>=0.5 [ F "success" ]; P<0.4 [ F<=2 "absorbed" ]; R{"steps"}<=3 [ F "absorbed" ];
P=? [ F (P>=0.6 [ F "success" ] & !"absorbed") ]; P=? [ G (P>0.3 [ X "answer" ] => P>0.2 [ X "success" ]) ];
P=? [ F<=3 (R{"steps"}<2.5 [ F "absorbed" ]) ];
1 - pow(1 - P=? [ F "success" ], 3); P=? [ F "success" ] / P=? [ F "failure" ] > 1;
max(P=? [ F "success" ], 0.5) - min(0.25, P=? [ X "answer" ]); P=? [ F "success" ] >= 0.5 ? 1 : 0;
floor(10 * P=? [ F "success" ]) + ceil(P=? [ X "answer" ]) + round(3 * P=? [ X "answer" ]);
mod(floor(7 * P=? [ F "success" ]), 3); log(P=? [ F "success" ], 2); P=? [ X "success" ] / (P=? [ X "init" ] * 0);
filter(min, P=? [ F "success" ], !"absorbed"); filter(max, P=? [ F "success" ]);
filter(sum, P=? [ X "answer" ]); filter(avg, R{"steps"}=? [ F "absorbed" ], !"absorbed");
filter(count, P>=0.6 [ F "success" ]); filter(forall, P>=0.01 [ F "absorbed" ]); filter(exists, P>0.9 [ X "answer" ]);
filter(state, P=? [ F "success" ], "search"); filter(first, P=? [ F "success" ], P>0.5 [ X "answer" ]);
P=? [ F filter(argmax, P=? [ X "answer" ], !"absorbed") ]; filter(print, P=? [ F "success" ]);
A [ F "absorbed" ]; E [ G !"answer" ]; P>=1 [ F "absorbed" ]; P>0 [ F "retry" ]; P<=0 [ X "retry" ];
"plan" | P>=0.5 [ X "search" ]; !(P>=0.5 [ F "success" ] <=> P>=0.5 [ F<=3 "success" ]);
P=? [ F "retry" || F "success" ]; P=? [ (F "retry") & (G !"failure") ]; R{"steps"}=? [ F "success" || F "success" ];
R{"steps"}=? [ F ("search" & X "answer") ]; R{"steps"}=? [ (F "absorbed") & (X "search") ];
P=? [ F P>=0.5 [ (F "retry") & (F "success") ] ]; P=? [ X "plan" || F "success" ];
P=? [ G ("search" => (F<=2 "answer")) || F P>0.6 [ F "success" ] ];
quantile(max B, P<0.6 [ F<=B "success" ]); quantile(min B, R{"steps"}>=2 [ C<=B ]);
filter(max, quantile(min B, P>=0.5 [ F<=B P>0.6 [ F "success" ] ]), !"absorbed");
P=? [ F{"steps"}<=3 "success" ]; quantile(min B, P>0.5 [ F<=B "absorbed" ]);
quantile(min B, P>0.5 [ F{"steps"}<=B "absorbed" ]);
"""


def resolved(chain, text: str):
    file = resolve_for(chain, parse_properties(text), {})
    return [replace(each, formula=fold_steps(each.formula)) for each in file.properties]


def assert_same_as_alone(stack, property_) -> None:
    """Each draw has the value and the truth that the closed-form engine gives its chain."""
    found = evaluate_draws(stack, property_.formula)
    for draw in range(stack.draws):
        alone = checked_alone(stack, draw, property_)
        assert alone.answered, alone.reason
        context = f"{property_.text} in draw {draw}"
        if alone.value is not None:
            np.testing.assert_allclose(
                found.values[draw], float(alone.value.value), rtol=1e-9, atol=1e-12, err_msg=context
            )
        elif alone.verdict is Verdict.UNDECIDED and found.holds is None:
            assert np.isnan(found.values[draw]), context
        if alone.truth is not None:
            assert found.holds[draw] == alone.truth, context
            assert found.fails[draw] != alone.truth, context


@pytest.mark.parametrize("property_", resolved(small_fit().chain, PROPERTIES), ids=lambda p: p.text[:50])
def test_each_draw_is_what_the_engine_says_of_its_chain(property_):
    assert_same_as_alone(first_draws(small_fit(), 4, seed=3), property_)


GENERAL = """
P=? [ F "a" ]; P=? [ G "a" ]; P=? [ "a" U "b" ]; P=? [ "a" W "b" ]; P=? [ "a" R "b" ]; P=? [ "a" U[1,4] "b" ];
P=? [ "b" R<=3 "a" ]; P=? [ G>=2 "b" ]; S=? [ "a" ]; R{"cost"}=? [ F "a" ]; R{"cost"}=? [ C ]; R{"cost"}=? [ S ];
R{"cost"}=? [ C<=5 ]; R{"cost"}=? [ I=3 ]; P=? [ F S>=0.4 [ "a" ] ]; R{"cost"}=? [ F P>0.5 [ X "b" ] ];
filter(sum, R{"cost"}=? [ F "a" ]); P>=0.5 [ F (R{"cost"}<4 [ F "b" ]) ];
"""


@st.composite
def stacks(draw) -> ChainStack:
    """Draws of any chain: several recurrent classes, periodic ones, unreachable states."""
    n = draw(st.integers(2, 6))
    edges = draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n))
    P = np.array(edges, dtype=float)
    P[~P.any(axis=1), 0] = 1
    P /= P.sum(axis=1, keepdims=True)
    masks = st.lists(st.booleans(), min_size=n, max_size=n).map(lambda held: np.array(held, dtype=bool))
    start = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=float)
    start[0] += not start.any()
    costs = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    chain = MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=P,
        initial=start / start.sum(),
        labels={"a": draw(masks), "b": draw(masks)},
        rewards={"cost": RewardStructure.from_fractions(costs, [Fraction(1, 2)] * n)},
    )
    seed = draw(st.integers(0, 2**32))
    return ChainStack(chain, random_entries(chain, 2, np.random.default_rng(seed)), chain.initial[:, None])


@settings(max_examples=60, deadline=None)
@given(stacks(), st.integers(0, GENERAL.count(";") - 1))
def test_each_draw_of_any_chain_is_what_the_engine_says(stack, which):
    assert_same_as_alone(stack, resolved(stack.chain, GENERAL)[which])


def test_nested_thresholds_are_evaluated_again_in_every_draw():
    # plan goes to search first or not, from draw to draw: the set of states that the threshold singles out changes
    stack = first_draws(small_fit(), 60, seed=1)
    (property_,) = resolved(stack.chain, 'P=? [ F P>=0.75 [ F "success" ] ]')
    inner = evaluate_draws(stack, resolved(stack.chain, 'filter(count, P>=0.75 [ F "success" ])')[0].formula).values
    assert len(np.unique(inner)) > 1
    assert_same_as_alone(stack, property_)


def test_operators_that_take_one_chain_at_a_time_are_named():
    batched, slow = resolved(
        small_fit().chain,
        'P=? [ F "success" || F "retry" ] + quantile(min B, P>=0.5 [ F<=B "success" ]);'
        'P=? [ F{"steps"}<=3 "success" ] + P=? [ X "plan" ]',
    )
    assert one_by_one(batched.formula) == ()
    assert one_by_one(slow.formula) == ('P=? [ F{"steps"}<=3 "success" ]',)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('filter(range, P=? [ F "success" ])', UnsupportedError, "two numbers"),
        ('filter(state, P=? [ F "success" ], !"absorbed")', PropertyError, "single"),
        ('filter(max, P=? [ F "success" ], false)', PropertyError, "no state"),
    ],
)
def test_what_has_no_single_number_is_refused(text, error, message):
    stack = first_draws(small_fit(), 2)
    with pytest.raises(error, match=message):
        evaluate_draws(stack, resolved(stack.chain, text)[0].formula)


@pytest.mark.parametrize("successors", [3, 40])
def test_chains_that_are_solved_one_by_one(successors):
    n, rng = DENSE_STATES + 10, np.random.default_rng(successors)
    P = np.zeros((n, n))
    for i in range(n - 2):
        P[i, [i + 1, *rng.choice(n, size=successors, replace=False)]] = 1
    P[n - 2, n - 2] = P[n - 1, n - 1] = 1
    chain = MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=P / P.sum(axis=1, keepdims=True),
        initial=np.eye(n)[0],
        labels={"a": np.arange(n) >= n - 2, "b": np.arange(n) % 3 == 1},
        rewards={"cost": RewardStructure(state=(np.arange(n) % 4).astype(float) * (np.arange(n) < n - 2))},
    )
    stack = ChainStack(chain, random_entries(chain, 2, rng), chain.initial[:, None])
    for property_ in resolved(chain, GENERAL):
        assert_same_as_alone(stack, property_)
