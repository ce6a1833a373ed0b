import json
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import FitError, UsageError
from tracebridge.states import hashed_words, text_corpus
from tracebridge.states.features import FeatureVector, count_features, encode_runs
from tracebridge.states.grouping import group_steps
from tracebridge.states.hashed_words import N_BUCKETS, N_COLUMNS, WordWeights, bucket_of, words_of
from tracebridge.states.rule_columns import RuleColumns
from tracebridge.states.text_clusters import TextClusters
from tracebridge.states.text_corpus import TextCorpus
from tracebridge.states.text_features import TextFeatures
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=40)

TOPICS = {
    "money": ["please", "refund", "payment", "card", "money", "back"],
    "post": ["parcel", "street", "delivery", "late", "track", "courier"],
    "hello": ["hello", "thanks", "good", "day", "friend", "nice"],
}


def message(words):
    return Step(name="say", kind="message", text=" ".join(words))


def corpus(seed, n_runs=40):
    """Messages on three topics, and tool calls without text."""
    rng = np.random.default_rng(seed)
    runs = []
    for i in range(n_runs):
        steps = []
        for topic in rng.choice(list(TOPICS), size=4):
            steps.append(message(rng.choice(TOPICS[topic], size=12).tolist()))
            steps.append(Step(name="lookup", kind="tool", error=bool(rng.random() < 0.2)))
        runs.append(Trace(trace_id=str(i), outcome=Outcome.SUCCESS, steps=tuple(steps)))
    return runs


def topic_of(step):
    return next((topic for topic, words in TOPICS.items() if step.text and step.text.split()[0] in words), None)


def test_words_are_folded_and_numbers_are_one_word():
    assert words_of("Order #123-45: ÄRGER, a b don't x_y 7") == ["order", "0", "0", "ärger", "don", "0"]
    assert len(words_of("ab " * 20_000)) == hashed_words.MAX_CHARACTERS // 3 + 1


def test_hashes_do_not_depend_on_the_process():
    """First two bytes of blake2b with a digest of two bytes, as b2sum -l 16 prints them: little-endian."""
    from hashlib import blake2b

    assert bucket_of("refund") == int.from_bytes(blake2b(b"refund", digest_size=2).digest(), "little")
    assert 0 <= bucket_of("\ud800") < N_BUCKETS


def test_weights_by_hand():
    weights = WordWeights(n_texts=9, frequencies={3: 9, 5: 4})
    buckets, values = weights.tf_idf({7: 1, 5: 2, 3: 1})
    assert buckets.tolist() == [3, 5, 7]
    assert values == pytest.approx([1.0, (1 + log(2)) * (log(10 / 5) + 1), log(10) + 1])
    row = weights.embed({7: 1, 5: 2, 3: 1})
    assert sqrt((row**2).sum()) == pytest.approx(1)
    assert weights.embed({}).tolist() == [0.0] * N_COLUMNS


def test_the_sketch_keeps_inner_products_on_average():
    """A count sketch is unbiased, with variance at most 2 / columns for unit vectors: over 400 pairs, 5 deviations."""
    rng = np.random.default_rng(1)
    weights = WordWeights(n_texts=0, frequencies={})
    errors = []
    for _ in range(400):
        shared, first, second = (rng.choice(N_BUCKETS, size=20, replace=False).tolist() for _ in range(3))
        a, b = dict.fromkeys([*shared, *first], 1), dict.fromkeys([*shared, *second], 1)
        exact = len(a.keys() & b.keys()) / sqrt(len(a) * len(b))
        errors.append(float(weights.embed(a) @ weights.embed(b)) - exact)
    assert abs(np.mean(errors)) < 5 * sqrt(2 / N_COLUMNS / 400)
    assert np.std(errors) < 1.5 * sqrt(2 / N_COLUMNS)
    per_column = np.bincount(hashed_words._COLUMN_OF, minlength=N_COLUMNS)
    assert len(per_column) == N_COLUMNS
    assert abs(per_column - N_BUCKETS / N_COLUMNS).max() <= 2
    assert abs(hashed_words._SIGN_OF.mean()) < 0.02


texts = st.lists(st.sampled_from(["", "aa bb", "bb cc cc", "cc 12 34", "dd"]), max_size=8)


@law
@given(texts, texts)
def test_shards_give_the_frequencies_of_the_whole(first, second):
    def read(parts):
        made = TextCorpus(TextFeatures())
        for part in parts:
            made.groups([message([part])])
        return made

    whole, sum_of_shards = read(first + second), read(first) + read(second)
    expected = {
        bucket_of(word): sum(word in words_of(each) for each in {*first, *second})
        for each in {*first, *second}
        for word in words_of(each)
    }
    assert whole.word_weights().frequencies == sum_of_shards.word_weights().frequencies == expected
    assert whole.n_texts == sum_of_shards.n_texts == len({*first, *second})
    assert list(whole.word_weights().frequencies) == sorted(expected)


def test_topics_are_found():
    runs = corpus(1)
    grouped = group_steps(runs, text_features=TextFeatures(weight=2), k_max=12, keep_runs=True)
    classifier = grouped.classifier
    group_of = {}
    for run in runs:
        for step, group in zip(run.steps, classifier.groups(run.steps), strict=True):
            group_of.setdefault(topic_of(step), set()).add(group)
    assert sum(map(len, group_of.values())) == len(classifier.names)  # no cluster mixes topics
    for topic, words in TOPICS.items():
        (group,) = group_of[topic]
        terms = classifier.terms[classifier.names.index(group)]
        assert terms
        assert {*terms} <= {*words}


@pytest.mark.parametrize("features", [True, lambda rows: [[len(row), row.count("e")] for row in rows]])
def test_counts_are_those_of_applying_the_clusters(features):
    runs = corpus(2)
    kept = group_steps(runs, text_features=features, k_max=6, keep_runs=True)
    assert kept.counts == count_features(runs, kept.classifier) == kept.runs.counts()
    assert encode_runs(runs, kept.classifier).codes.tolist() == kept.runs.codes.tolist()
    streamed = group_steps(iter(runs), text_features=features, k_max=6)
    assert streamed.counts == kept.counts
    assert streamed.classifier == kept.classifier
    backwards = group_steps(runs[::-1], text_features=features, k_max=6)
    assert backwards.counts == kept.counts
    assert backwards.classifier == kept.classifier


def test_the_document_is_the_classifier():
    runs = corpus(3)
    classifier = group_steps(runs, text_features=True, k_max=6).classifier
    document = classifier.to_dict()
    again = TextClusters.from_dict(json.loads(json.dumps(document)))
    assert again == classifier
    assert [again.groups(run.steps) for run in runs] == [classifier.groups(run.steps) for run in runs]
    new = [Step(name="never", kind="seen", text="a refund"), Step(name="never")]
    assert again.groups(new) == classifier.groups(new)

    def refused(match, **changes):
        with pytest.raises(FitError, match=match):
            TextClusters.from_dict(document | changes)

    refused("either words or an encoder", words=None)
    refused("either words or an encoder", encoder="f")
    refused("columns of their features", centres=[[1.0]] * len(document["centres"]))
    refused("its terms", terms=[])
    refused("in more texts", words={"n_texts": 1, "frequencies": {"3": 2}})
    refused("hash of a word", words={"n_texts": 3, "frequencies": {"65536": 2}})


def test_an_encoder_is_asked_once_a_text_and_known_by_name_in_documents():
    asked = []

    class Model:
        def encode(self, rows):
            asked.extend(rows)
            return np.array([[row.startswith("a"), row.startswith("b")] for row in rows])

    steps = tuple(Step(name="say", text=word) for word in ["a1", "b1", "a2", "a1"])
    runs = [Trace(trace_id="t", outcome=Outcome.SUCCESS, steps=steps)]
    classifier = group_steps(runs, text_features=TextFeatures(encoder=Model()), k_max=3).classifier
    assert asked == ["a1", "b1", "a2"]
    first, second, third, fourth = classifier.groups(steps)
    assert first == third == fourth != second
    assert classifier.encoder_name.endswith("Model.encode")
    again = TextClusters.from_dict(json.loads(json.dumps(classifier.to_dict())))
    assert again == classifier
    with pytest.raises(FitError, match=r"text features .* Python function .*Model\.encode"):
        again.groups(steps)


def test_clusters_are_of_rules_and_text_together():
    vectors = [FeatureVector("k", name, False, False, group) for name, group in [("a", "1"), ("a", "2"), ("b", "1")]]
    classifier = TextClusters(
        columns=RuleColumns(kinds=("k",), names=("a", "b")),
        words=None,
        weight=0.5,
        centres=((1, 1, 0, 0, 0, 0.5), (1, 1, 0, 0, 0, -0.5), (1, 0, 1, 0, 0, 0.5)),
        terms=((), (), ()),
        encoder_name="f",
    )
    rows = {"1": np.array([1.0]), "2": np.array([-1.0])}
    assert [classifier.nearest(v, rows[v.group]) for v in vectors] == ["cluster_1", "cluster_2", "cluster_3"]
    halfway = FeatureVector("k", "a", False, False)
    assert classifier.nearest(halfway, np.array([0.0])) == "cluster_1"  # the first of equals
    with pytest.raises(FitError, match="other rows"):
        classifier.nearest(halfway, np.array([0.0, 1.0]))


def test_refusals(monkeypatch):
    for weight in (-1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="weight of texts"):
            TextFeatures(weight=weight)
    with pytest.raises(UsageError, match="not int"):
        TextFeatures(encoder=3)
    with pytest.raises(FitError, match=r"shape \(1,\) for \d+ texts"):
        group_steps(corpus(1, 1), text_features=lambda rows: [1.0], k_max=2)
    with pytest.raises(FitError, match="finite"):
        group_steps(corpus(1, 1), text_features=lambda rows: [[float("nan")]] * len(rows), k_max=2)
    widths = iter(range(1, 100))
    with pytest.raises(FitError, match="different lengths, such as 1 and 3"):
        group_steps(corpus(1, 3), text_features=lambda rows: np.ones((len(rows), next(widths))), k_max=2)
    with pytest.raises(UsageError, match="not from both"):
        group_steps([], text_features=True, states=lambda step: "a", k_max=2)
    with pytest.raises(UsageError, match="not int"):
        group_steps([], states=3, k_max=2)
    monkeypatch.setattr(text_corpus, "MAX_TEXTS", 5)
    with pytest.raises(FitError, match="more than 5 distinct texts"):
        group_steps(corpus(1, 3), text_features=True, k_max=2)


def test_no_run_and_no_text():
    assert group_steps([], text_features=True, k_max=3).counts.n_runs == 0
    silent = [Trace(trace_id="t", outcome=Outcome.FAILURE, steps=(Step(name="a"), Step(name="b")))]
    grouped = group_steps(silent, text_features=True, k_max=3)
    assert [vector.name for vector in grouped.counts.vectors] == ["a", "b"]
    assert len({vector.group for vector in grouped.counts.vectors}) == 2


def test_words_of_few_tasks_are_never_shown():
    """Each customer is named in every message of one task, tried four times; what all ask for is shown."""
    names = ["smith", "abel", "jones", "zorn", "mueller", "garcia"]
    runs = [
        Trace(
            trace_id=f"{name}{trial}",
            task_id=name,
            outcome=Outcome.SUCCESS,
            steps=(message(["the", "order", "of", name, "refund", "please"]), message(["the", "parcel", "of", name])),
        )
        for name in names
        for trial in range(4)
    ]
    grouped = group_steps(runs, text_features=TextFeatures(weight=2), k_max=8)
    shown = {word for terms in grouped.classifier.terms for word in terms}
    assert shown
    assert shown <= {"order", "refund", "parcel"}
    assert not any(name in str(grouped.classifier.to_dict()) for name in names)


def test_words_of_fewer_than_three_tasks_are_not_shown_at_all():
    runs = [
        Trace(trace_id=f"{i}", task_id=f"t{i % 2}", outcome=Outcome.SUCCESS, steps=(message([word]),))
        for i, word in enumerate(["refund", "parcel"] * 10)
    ]
    assert {*group_steps(runs, text_features=True, k_max=4).classifier.terms} == {()}


def test_a_common_word_stands_for_its_hash_and_not_a_rare_one(monkeypatch):
    monkeypatch.setattr(text_corpus, "bucket_of", lambda word: 5 if word in {"abel", "refund"} else bucket_of(word))
    whole = TextCorpus(TextFeatures())
    part = TextCorpus(TextFeatures())
    for i, made in enumerate([whole, part] * 4):
        trace = Trace(
            trace_id=str(i), outcome=Outcome.SUCCESS, steps=(message(["refund", *(["abel"] if i < 1 else [])]),)
        )
        assert [*made.watched([trace])] == [trace]
    assert (whole + part)._showable() == (part + whole)._showable() == {5: "refund"}
