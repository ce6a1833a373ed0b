import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import FitError
from tracebridge.states.features import FeatureVector
from tracebridge.states.space import RESERVED_WORDS, Propositions, Renaming, StateSpace, name_states

law = settings(deadline=None, max_examples=60)


def vector(name, *, kind="tool", error=False, retry=False):
    return FeatureVector(kind, name, error, retry)


def named(*members, weights=None, folded=None):
    everything = [v for member in members for v in member]
    return name_states(members, weights or dict.fromkeys(everything, 1), folded or [False] * len(members))


def test_a_tool_with_one_state_gives_it_its_name():
    assert named([vector("look")], [vector("search")]) == ["look", "search"]


def test_variants_of_a_tool_are_told_apart():
    variants = [(False, False), (True, False), (False, True), (True, True)]
    members = [[vector("search", error=error, retry=retry)] for error, retry in variants]
    assert named(*members) == ["search.ok", "search.error", "search.retry", "search.retry.error"]
    assert named([vector("search", error=True)]) == ["search.error"]


def test_one_name_under_two_kinds_gets_the_kind_in_front():
    assert named([vector("x", kind="tool")], [vector("x", kind="user")]) == ["tool.x", "user.x"]


def test_a_cluster_is_called_by_its_most_frequent_steps():
    a, b, c, d = (vector(name) for name in "abcd")
    weights = {a: 1, b: 5, c: 5, d: 9}
    assert named([a, b], [c], [d], weights=weights) == ["b+a", "c", "d"]
    assert named([a, b, c, d], weights=weights) == ["d+b+2more"]
    assert named([vector("a"), vector("a", error=True)], [c]) == ["a", "c"]
    assert named([vector("a", error=True), vector("b", error=True)], [a], [b]) == ["a+b.error", "a.ok", "b.ok"]


def test_a_state_never_bears_the_word_of_a_proposition_that_holds_elsewhere():
    assert named([vector("a"), vector("a", error=True)], [vector("a", retry=True)]) == ["a_2", "a.retry"]
    names = named([vector("a")], [vector("a", error=True)], [vector("a.ok")])
    assert names == ["a.ok_2", "a.error", "a.ok"]


def test_folded_steps_are_other_and_a_tool_called_other_is_not():
    assert named([vector("other")], [vector("x"), vector("y")], folded=[False, True]) == ["step_other", "other"]
    assert named([vector("x")], [vector("y")], folded=[True, True]) == ["other", "other_2"]


def test_reserved_words_and_ambiguous_kinds_are_renamed():
    vectors = [vector("success"), vector("step_success"), vector("msg", kind="msg"), vector("tool", kind="error")]
    propositions = Propositions.of(vectors)
    assert propositions.names == {
        "success": "step_step_success",
        "step_success": "step_success",
        "msg": "msg",
        "tool": "tool",
    }
    assert propositions.kinds == {"tool": "kind_tool", "msg": "msg", "error": "step_error"}
    assert Renaming(role="kind", original="tool", proposition="kind_tool") in propositions.renamings
    assert propositions.true_of(vector("success", error=True)) == {"step_step_success", "kind_tool", "error"}
    assert propositions.words() == sorted(
        ["step_step_success", "step_success", "msg", "tool", "kind_tool", "step_error", "error", "retry"]
    )


words = st.sampled_from(
    ["a", "b", "a.ok", "a.error", "a+b", "a_2", "tool", "kind_tool", "step_error", *sorted(RESERVED_WORDS)]
)
vectors = st.builds(FeatureVector, st.sampled_from(["tool", "a", "error"]), words, st.booleans(), st.booleans())


@law
@given(st.sets(vectors, min_size=1, max_size=12), st.data())
def test_any_partition_gets_unique_names_and_true_labels(members, data):
    """The space itself refuses a name that a proposition of other states bears: no input may lead there."""
    ordered = sorted(members)
    groups = {}
    for v in ordered:
        groups.setdefault(data.draw(st.integers(0, 4)), []).append(v)
    keys = sorted(groups)
    parts = [tuple(groups[key]) for key in keys]
    folded = [key == 0 for key in keys]
    names = name_states(parts, dict.fromkeys(ordered, 1), folded)
    pairs = sorted(zip(names, parts, strict=True))
    space = StateSpace(names=tuple(n for n, _ in pairs), members=tuple(m for _, m in pairs))
    true_of = space.propositions.true_of
    for word in space.propositions.words():
        some = [n for n, m in pairs if any(word in true_of(v) for v in m)]
        wholly = [n for n, m in pairs if all(word in true_of(v) for v in m)]
        if some == wholly:
            assert list(space.labels.get(word, ())) == some
            assert word not in space.mixed_labels
        else:
            assert list(space.mixed_labels[word]) == [n for n in some if n not in wholly]
            assert word not in space.labels
    by_word = set(names) & set(space.propositions.words())
    assert all(space.labels[word] == (word,) for word in by_word)
    assert not (set(names) - {"other"}) & RESERVED_WORDS
    assert len(set(space.propositions.names.values())) == len(space.propositions.names)


def test_mixed_labels_name_the_states_that_mix():
    a, b = vector("a"), vector("b")
    space = StateSpace(names=("a+b", "c"), members=((a, b), (vector("c"),)))
    assert dict(space.mixed_labels) == {"a": ("a+b",), "b": ("a+b",)}
    assert dict(space.labels) == {"c": ("c",), "tool": ("a+b", "c")}


@pytest.mark.parametrize(
    ("names", "members"),
    [
        (("b", "a"), ((vector("a"),), (vector("b"),))),
        (("a", "a"), ((vector("a"),), (vector("b"),))),
        (("a",), ((vector("a"),), (vector("b"),))),
        (("a", "b"), ((vector("a"),), ())),
        (("a", "b"), ((vector("a"),), (vector("a"),))),
        (("b", "c"), ((vector("a"),), (vector("b"),))),
        (("success",), ((vector("a"),),)),
        (("",), ((vector("a"),),)),
    ],
)
def test_spaces_that_break_the_rules_are_refused(names, members):
    with pytest.raises(FitError):
        StateSpace(names=names, members=members)
