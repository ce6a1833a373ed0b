"""The Trace-Audit Card: what it must say, and that it reads back."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.confidence.test_broadcast import record

from tracebridge.confidence.card import audit_card, card_problems, card_value, read_card, unavailable
from tracebridge.confidence.card_facts import corpus_facts
from tracebridge.confidence.card_fields import CARD_GROUPS
from tracebridge.confidence.metric_value import MetricValue, ratio
from tracebridge.confidence.reading import read_confidence
from tracebridge.errors import InputError
from tracebridge.report.card_markdown import card_markdown

CRA = ratio("CRA", 4795, 9467, "selected valid blocks", 3).with_interval(0.486, 0.527, level=0.95, method="bootstrap")


def groups() -> dict[str, dict[str, Any]]:
    """A whole card: every required field, facts as texts and metrics as ratios."""
    return {
        name: {
            field.name: CRA if field.kind == "metric" else f"the {field.name}"
            for field in group.fields
            if field.is_required
        }
        for name, group in CARD_GROUPS.items()
    }


def test_a_card_reads_back(tmp_path: Path) -> None:
    whole = groups()
    whole["routing"]["router_counterfactuals"] = {"oracle": CRA, "worst": ratio("worst", 0, 0, "routeable blocks")}
    whole["calibration"]["ece_bins"] = 10
    whole["corpus"]["traces_per_cluster"] = {"median": math.nan, "maximum": math.inf}
    whole["commitment"]["psir"] = unavailable("nobody spoke")
    card = audit_card(whole)
    path = tmp_path / "card.json"
    path.write_text(card.to_json())
    again = read_card(path)
    assert again == card
    assert again.to_json() == card.to_json()
    stored = json.loads(path.read_text())
    assert stored["schema"] == "trace-audit-card/0.1"
    assert stored["routing"]["cra"]["n"] == 9467
    assert stored["routing"]["cra"]["denominator_name"] == "selected valid blocks"
    assert stored["routing"]["router_counterfactuals"]["worst"]["value"] == "NaN"
    assert list(stored)[1:] == [name for name in CARD_GROUPS if name in stored]


def test_the_first_visible_fields_are_the_published_ones() -> None:
    required = {
        f"{name}.{field.name}" for name, group in CARD_GROUPS.items() for field in group.fields if field.is_required
    }
    assert {"protocol_identity.protocol_name", "protocol_identity.protocol_version"} <= required
    assert "inference_setup.agent_model" in required
    assert "protocol_identity.paper_of_record" not in required
    assert not any(field.startswith(("outcome_linkage", "cost", "formal_model")) for field in required)


def test_every_missing_required_field_is_listed() -> None:
    found = {problem.location.field for problem in card_problems({})}
    whole = groups()
    assert found == {f"{name}.{field}" for name, fields in whole.items() for field in fields}
    for name, fields in whole.items():
        for field in fields:
            less = copy.deepcopy(whole)
            less[name][field] = "" if field == "calibrator" else None
            with pytest.raises(InputError) as caught:
                audit_card(less)
            assert [problem.location.field for problem in caught.value.problems] == [f"{name}.{field}"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"denominator_name": ""}, "denominator_name is missing"),
        ({"denominator_name": ...}, "denominator_name is missing"),
        ({"n": ...}, "n is missing"),
        ({"n": -1}, "n is missing"),
        ({"n": True}, "n is missing"),
        ({"value": "high"}, "is a number, this is 'high'"),
        ({"value": "NaN"}, "reason is missing"),
        ({"value": ...}, "a metric is an object with a value"),
    ],
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_metric_without_its_denominator_is_refused(change: dict[str, Any], message: str, is_nested: bool) -> None:
    metric = {key: value for key, value in (card_value(CRA) | change).items() if value is not ...}
    whole = groups()
    if is_nested:
        whole["null_checks"]["permutation_null"] = {"rows": [{"cra": metric}]}
    else:
        whole["routing"]["cra"] = metric
    if is_nested and "object with a value" in message:
        audit_card(whole)  # a fact may hold any object
        return
    with pytest.raises(InputError, match=message) as caught:
        audit_card(whole)
    where = "null_checks.permutation_null.rows[0].cra" if is_nested else "routing.cra"
    assert [problem.location.field for problem in caught.value.problems] == [where]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "breaks off"),
        ("[]", "a card is a JSON object whose schema"),
        ('{"schema": "other"}', "a card is a JSON object whose schema"),
        ('{"schema": "trace-audit-card/0.1", "mood": {}}', "a card has no such group"),
        ('{"schema": "trace-audit-card/0.1", "routing": 3}', "a group is an object, this is 3"),
        ('{"schema": "trace-audit-card/0.1", "routing": {"luck": 3}}', "the group has no such field"),
        (
            '{"schema": "trace-audit-card/0.1", "limits": {"limits": {"unavailable": ""}}}',
            "what is unavailable has a reason",
        ),
        (
            '{"schema": "trace-audit-card/0.1", "limits": {"limits": ' + "[" * 20 + "]" * 20 + "}}",
            "nested more than 8 deep",
        ),
    ],
)
def test_documents_that_are_no_card_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_card(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith("card.json")


def test_markdown_says_everything_literally() -> None:
    whole = groups()
    whole["limits"]["limits"] = "<script>|*x*\n# y"
    whole["commitment"]["psir"] = ratio("PSIR", 0, 0, "divergent pairs")
    whole["commitment"]["psdr"] = unavailable("nobody spoke")
    whole["routing"]["router_counterfactuals"] = [{"router": "oracle", "success": CRA}]
    whole["labels"]["judges"] = ["j1", "j2"]
    text = card_markdown(audit_card(whole))
    assert "\\<script\\>\\|\\*x\\*\\\\u{a}\\# y" in text
    assert "| cra | 0.5065 \\[0.486, 0.527\\] (n = 9467 selected valid blocks, 3 left out) |" in text
    assert "undefined: there are no divergent pairs (n = 0 divergent pairs)" in text
    assert "| psdr | unavailable: nobody spoke |" in text
    assert "| router\\_counterfactuals / 0 / success | 0.5065" in text
    assert "| judges | j1, j2 |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") == 4 for line in rows)


def test_items_of_a_list_are_shown_by_what_tells_them_apart_and_metrics_with_what_is_to_be_known() -> None:
    unsure = ratio("PSIR", 1, 3, "pairs").with_interval(
        0, 1, level=0.95, method="bootstrap", remark="3 clusters: too few"
    )
    whole = groups()
    whole["null_checks"]["noisy_oracle"] = [{"name": "noisy_oracle", "sigma": sigma, "n": 2} for sigma in (0.1, 0.5)]
    whole["routing"]["router_counterfactuals"] = [{"name": f"r{k}", "success": unsure} for k in range(2)]
    text = card_markdown(audit_card(whole)).replace("\\", "")
    assert "| noisy_oracle / 0.5 / n | 2 |" in text
    assert "| router_counterfactuals / r1 / success | 0.3333 [0, 1] (n = 3 pairs; 3 clusters: too few) |" in text


def test_metrics_keep_their_units() -> None:
    assert card_value(CRA)["n"] == 9467
    value = MetricValue(name="m", value=1.0, numerator=1.5, denominator=1.5, denominator_name="weights")
    assert card_value([{"a": (value,)}])[0]["a"][0]["n"] == 1.5


def test_a_corpus_says_what_it_knows(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(record(trace_id=name)) + "\n" for name in ("t1", "t2")))
    corpus = read_confidence(path)
    facts = corpus_facts(corpus, corpus.table())
    assert facts["corpus"]["n_traces"] == 2
    assert facts["corpus"]["n_problems"] == 1
    assert facts["corpus"]["traces_per_cluster"] == {"minimum": 2, "median": 2.0, "maximum": 2}
    assert facts["inference_setup"]["agent_model"] == ["m"]
    assert facts["inference_setup"]["n_agents"] == [2]
    assert facts["confidence_surface"]["confidence_elicitation"] == "how sure?"
    assert facts["confidence_surface"]["parse_fail_value"] == unavailable("the traces do not state it")
    assert facts["labels"]["label_method"] == {"stated": 8}
    for name, fields in facts.items():
        assert set(fields) <= {field.name for field in CARD_GROUPS[name].fields}
    whole = {name: fields | facts.get(name, {}) for name, fields in groups().items()}
    audit_card(whole)
