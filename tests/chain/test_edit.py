"""Changes of rows: what they are, what they leave alone, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chain.expanded.random_models import FORMS, random_model

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure
from tracebridge.chain.edit import Redirection, RowChange, edited, parse_redirection, row_changes
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.errors import ModelError, UsageError

F = Fraction
ROWS = [{0: 1, 1: 5, 2: 4}, {0: 1, 1: 2, 2: 3, 3: 3, 4: 1}, {1: 1, 2: 6, 4: 3}, {3: 10}, {4: 10}]


def example(states: tuple[str, ...] = ("s0", "s1", "s2", "success", "failure"), *, exact: bool = True) -> MarkovChain:
    matrix = RationalMatrix.from_rows([{j: F(x, 10) for j, x in row.items()} for row in ROWS])
    return MarkovChain(
        states=states,
        transitions=matrix if exact else matrix.to_float(),
        initial=RationalVector.from_fractions([1, 0, 0, 0, 0]) if exact else np.eye(5)[0],
        labels={"error": np.arange(5) == 2},
        rewards={"tokens": RewardStructure(state=np.arange(5.0))},
    )


def rows(chain: MarkovChain) -> list[dict[int, Fraction]]:
    return [chain.exact_transitions().row(i) for i in range(chain.n_states)]


class TestRedirection:
    def test_a_share_of_every_transition_moves(self):
        (change,) = row_changes(example(), [Redirection(state="s2", share=F(3, 10), target="s0")])
        assert change.state == "s2"
        assert change.by == {"s0": F(3, 10), "s1": F(-3, 100), "s2": F(-18, 100), "failure": F(-9, 100)}
        assert rows(edited(example(), [change]))[2] == {0: F(3, 10), 1: F(7, 100), 2: F(42, 100), 4: F(21, 100)}

    def test_only_what_goes_to_one_successor_moves(self):
        moved = Redirection(state="s2", successor="failure", share=F(1), target="success")
        (change,) = row_changes(example(), [moved])
        assert change.by == {"success": F(3, 10), "failure": F(-3, 10)}
        assert rows(edited(example(), [change]))[2] == {1: F(1, 10), 2: F(6, 10), 3: F(3, 10)}

    @given(st.permutations([("s2", F(1, 3), "s0"), ("s2", F(1, 4), "failure"), ("s0", F(1, 2), "s1")]))
    def test_shares_are_of_the_row_as_it_is_so_that_their_order_does_not_matter(self, order):
        moves = [Redirection(state=state, share=share, target=target) for state, share, target in order]
        first, second = row_changes(example(), moves)
        assert (first.state, second.state) == ("s0", "s2")
        kept = 1 - F(1, 3) - F(1, 4)
        assert rows(edited(example(), [first, second]))[2] == {
            0: F(1, 3),
            1: kept / 10,
            2: kept * F(6, 10),
            4: kept * F(3, 10) + F(1, 4),
        }

    def test_more_than_there_is_cannot_be_redirected(self):
        moves = [Redirection(state="s2", share=F(2, 3), target=target) for target in ("s0", "s1")]
        with pytest.raises(ModelError, match=r"together 4/3 of what goes from 's2' to 's1'"):
            row_changes(example(), moves)
        with pytest.raises(UsageError, match="between 0 and 1"):
            row_changes(example(), [Redirection(state="s2", share=F(-1, 3), target="s0")])
        with pytest.raises(ModelError, match="'s2' never goes to 'success'"):
            row_changes(example(), [Redirection(state="s2", successor="success", share=F(1, 3), target="s0")])


class TestEdited:
    def test_everything_else_stays(self):
        chain = example()
        change = RowChange(state="s0", by={"s1": F(-1, 10), "success": F(1, 10)})
        changed = edited(chain, [change])
        assert changed.is_exact
        assert rows(changed)[0] == {0: F(1, 10), 1: F(4, 10), 2: F(4, 10), 3: F(1, 10)}
        assert rows(changed)[1:] == rows(chain)[1:]
        assert changed.exact_initial() == chain.exact_initial()
        assert changed.label("error").tolist() == chain.label("error").tolist()
        assert changed.rewards["tokens"].state.tolist() == [0, 1, 2, 3, 4]
        assert rows(edited(chain, [])) == rows(chain)

    def test_of_a_chain_of_doubles_only_the_changed_rows_are_computed_anew(self):
        chain = example(exact=False)
        changed = edited(chain, [RowChange(state="s1", by={"s0": F(-1, 10), "s2": F(1, 10)})])
        assert not changed.is_exact
        before, after = chain.transitions.toarray(), changed.transitions.toarray()
        assert np.array_equal(after[[0, 2, 3, 4]], before[[0, 2, 3, 4]])
        assert after[1] == pytest.approx([0, 0.2, 0.4, 0.3, 0.1], abs=1e-16)

    @given(st.data())
    def test_a_change_and_its_opposite_cancel(self, data):
        chain = example()
        target = data.draw(st.sampled_from(chain.states))
        share = data.draw(st.fractions(0, F(99, 100), max_denominator=100))
        source = data.draw(st.sampled_from(chain.states[:3]))
        changes = row_changes(chain, [Redirection(state=source, share=share, target=target)])
        back = [RowChange(state=c.state, by={name: -value for name, value in c.by.items()}) for c in changes]
        assert rows(edited(edited(chain, changes), back)) == rows(chain)

    def test_what_breaks_a_chain_is_refused_with_every_place(self):
        with pytest.raises(ModelError) as caught:
            edited(
                example(),
                [
                    RowChange(state="s0", by={"s2": F(-1, 2), "s1": F(1, 2)}),
                    RowChange(state="s2", by={"success": F(-1, 10), "s1": F(1, 10)}),
                ],
            )
        assert str(caught.value).splitlines() == [
            "from 's0' to 's2': the probability would be -1/10",
            "from 's2' to 'success': the probability would be -1/10",
        ]
        with pytest.raises(ModelError, match="'s2' would never be left"):
            edited(example(), row_changes(example(), [Redirection(state="s2", share=F(1), target="s2")]))
        with pytest.raises(ModelError, match="'success' is where runs end"):
            edited(example(), [RowChange(state="success", by={"success": F(-1, 2), "s0": F(1, 2)})])
        with pytest.raises(ModelError, match="changed twice"):
            edited(example(), [RowChange(state="s0", by={}), RowChange(state="s0", by={})])

    def test_changes_sum_to_zero_exactly(self):
        with pytest.raises(ModelError, match="sum to 1/30, which must be 0"):
            RowChange(state="s0", by={"s1": F(1, 3), "s2": F(-3, 10)})


class TestText:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("s2:0.3->s0", Redirection(state="s2", share=F(3, 10), target="s0")),
            (" s2 : 1/3 -> success ", Redirection(state="s2", share=F(1, 3), target="success")),
            ("s2->failure:50%->s1", Redirection(state="s2", share=F(1, 2), target="s1", successor="failure")),
            ("s2:.25->s0", Redirection(state="s2", share=F(1, 4), target="s0")),
            ("s2:1->s0", Redirection(state="s2", share=F(1), target="s0")),
        ],
    )
    def test_forms(self, text, expected):
        parsed = parse_redirection(text, example())
        assert parsed == expected
        assert parse_redirection(str(parsed), example()) == expected

    def test_names_may_hold_colons_and_arrows(self):
        chain = example(("a->b", "b:1->c", "c", "success", "failure"))
        assert parse_redirection("a->b:0.5->b:1->c", chain) == Redirection(state="a->b", share=F(1, 2), target="b:1->c")
        assert parse_redirection("a->b->c:0.5->success", chain) == Redirection(
            state="a->b", share=F(1, 2), target="success", successor="c"
        )

    def test_a_text_with_two_readings_is_refused(self):
        chain = example(("a", "a:1->b", "b:1->c", "c", "failure"))
        with pytest.raises(UsageError, match="can be read as a:1->b:1->c or as a:1->b:1->c"):
            parse_redirection("a:1->b:1->c", chain)

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("s2:0.3", UsageError, "STATE:SHARE->TARGET"),
            ("s2->s0", UsageError, "STATE:SHARE->TARGET"),
            ("s2:1.5->s0", UsageError, "between 0 and 1"),
            ("s2:1/0->s0", UsageError, "divides by zero"),
            ("s2:1e->s0", UsageError, "share"),
            ("s9:0.5->s0", ModelError, "no state 's9' .*'s0'"),
            ("s2:0.5->sucess", ModelError, "no state 'sucess' .*'success'"),
            ("s2->nowhere:0.5->s0", ModelError, "no state 's2->nowhere'"),
        ],
    )
    def test_mistakes_are_named(self, text, error, message):
        with pytest.raises(error, match=message):
            parse_redirection(text, example())

    def test_hostile_texts_are_refused_quickly(self):
        for text in (":1->" * 2_500, ":1->" * 20_000, ":" * 100_000, "s0:" + "1" * 100_000 + "->s1", "->" * 50_000):
            with pytest.raises((UsageError, ModelError)):
                parse_redirection(text, example())


class TestCopies:
    """In an expanded chain a category is all of its copies: the chain of the edited model, by its definition."""

    @pytest.mark.parametrize("name", [name for name in FORMS if "classes" not in name])
    @pytest.mark.parametrize(
        ("text", "source", "lost", "gained", "share"),
        [
            ("a:1/4->b", 0, range(5), 1, 0.25),
            ("b:1/4->b", 1, range(5), 1, 0.25),
            ("c->failure:50%->a", 2, [4], 0, 0.5),
            ("a->b:1/2->success", 0, [1], 3, 0.5),
            ("b->a:1/2->c", 1, [0], 2, 0.5),
        ],
    )
    def test_every_copy_changes_as_the_model_would(self, name, text, source, lost, gained, share):
        model = random_model(name, seed=1)
        structure = ExpandedStructure.of_model(model)
        chain = structure.chain(model)
        changed = np.array(model.rows)
        moved = share * changed[:, :, source, list(lost)]
        changed[:, :, source, list(lost)] -= moved
        changed[:, :, source, gained] += moved.sum(axis=-1)
        expected = structure.chain(replace(model, rows=changed))
        changes = row_changes(chain, [parse_redirection(text, chain)])
        assert len(changes) == np.count_nonzero(chain.label("abc"[source]))
        found = edited(chain, changes)
        assert found.states == expected.states
        assert np.allclose(found.transitions.toarray(), expected.transitions.toarray(), rtol=1e-12, atol=1e-15)
        assert list(found.variables) == list(chain.variables)

    def test_one_copy_may_be_named(self):
        model = random_model("order2", seed=2)
        chain = ExpandedStructure.of_model(model).chain(model)
        (change,) = row_changes(chain, [parse_redirection("a [previous b]:0.5->c", chain)])
        assert change.state == "a [previous b]"
        assert change.by["c [previous a]"] > 0
        assert "c [previous b]" not in change.by

    @pytest.mark.parametrize(
        ("name", "text", "category"),
        [
            ("order2", "a:0.5->c [previous b]", "c"),  # the step before would have been a
            ("phases:2", "a [phase 1]:0.5->b [phase 0]", "b"),  # phases are passed from left to right
        ],
    )
    def test_a_copy_that_memory_never_leads_to_is_refused(self, name, text, category):
        model = random_model(name, seed=2)
        chain = ExpandedStructure.of_model(model).chain(model)
        with pytest.raises(ModelError, match=f"remembers another past; name the category, '{category}'"):
            row_changes(chain, [parse_redirection(text, chain)])

    def test_what_cannot_be_placed_is_refused(self):
        model = random_model("phases:2", seed=3)
        rows = np.array(model.rows)
        rows[:, :, 0, 1] = 0
        model = replace(model, rows=rows / rows.sum(axis=-1, keepdims=True))
        chain = ExpandedStructure.of_model(model).chain(model)
        with pytest.raises(ModelError, match="never goes to 'b', so that it is not known to which of its 2 copies"):
            row_changes(chain, [parse_redirection("a:0.5->b", chain)])
        with pytest.raises(ModelError, match="'a' never goes to 'b'"):
            row_changes(chain, [parse_redirection("a->b:0.5->c", chain)])
        with pytest.raises(ModelError, match=r"no state 'x' \(states: 'a', 'b', 'c'"):
            parse_redirection("x:0.5->b", chain)
        moves = [parse_redirection(text, chain) for text in ("a:0.7->c", "a->c:0.5->success")]
        with pytest.raises(ModelError, match="more than there is"):
            row_changes(chain, moves)
