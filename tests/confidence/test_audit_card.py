"""An audit as a card, and audits of whatever obeys the format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.confidence.broadcast_traces import random_corpus

from tracebridge.confidence.audit import audit_confidence
from tracebridge.confidence.audit_card import card_of_audit
from tracebridge.confidence.card import read_card
from tracebridge.confidence.corpus import ConfidenceCorpus
from tracebridge.confidence.corpus_scale import common_scale
from tracebridge.errors import InputError


def corpus_of(seed: int) -> ConfidenceCorpus:
    traces = tuple(random_corpus(seed))
    return ConfidenceCorpus(traces=traces, scale=common_scale(traces)[0])


@pytest.mark.parametrize("seed", range(8))
def test_any_corpus_has_an_audit_and_a_card(seed: int, tmp_path: Path) -> None:
    corpus = corpus_of(seed)
    table = corpus.table()
    audit = audit_confidence(table, replicates=10, null_replicates=2)
    json.dumps(audit.to_dict(), allow_nan=False)
    card = card_of_audit(audit, corpus, table)
    path = tmp_path / "card.json"
    path.write_text(card.to_json(), encoding="utf-8")
    assert read_card(path) == card
    for metric in ("cra", "hrwp", "mcr", "pcca", "ctr"):
        assert card.groups["routing"][metric]["denominator_name"]


def test_what_the_user_states_comes_first_and_must_be_a_field() -> None:
    corpus = corpus_of(0)
    table = corpus.table()
    audit = audit_confidence(table, replicates=10, null_replicates=2)
    card = card_of_audit(audit, corpus, table, stated={"protocol_identity": {"protocol_name": "mine"}})
    assert card.groups["protocol_identity"]["protocol_name"] == "mine"
    with pytest.raises(InputError, match="no such field"):
        card_of_audit(audit, corpus, table, stated={"routing": {"colour": "red"}})
    with pytest.raises(InputError, match="no such group"):
        card_of_audit(audit, corpus, table, stated={"colours": {}})
