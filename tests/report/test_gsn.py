"""The assurance case: the rules of GSN and of gsn2x, no unsupported claim, and hostile text."""

from __future__ import annotations

import copy
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge import assess
from tracebridge.cli import run
from tracebridge.report.evidence import Evidence
from tracebridge.report.github_summary import github_summary
from tracebridge.report.gsn import Element, elements, gsn, gsn_mermaid, gsn_yaml
from tracebridge.resources import packaged

PROPS = """//@ requirement REQ-7
"often": P>=0.3 [ F "success" ];
"always": P>=0.99 [ F "success" ];
"rate": P=? [ F "success" ];
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gsn")


@pytest.fixture(scope="module")
def document(folder) -> dict:
    """Evidence of two verdicts and a query, of two engines that agree on a chain that stands."""
    (folder / "my.props").write_text(PROPS)
    light = {"engines": ["closed-form"], "draws": 100, "resamples": 0, "replicates": 0, "futures": 0}
    evidence = assess([packaged("demo", "refund_agent.jsonl")], folder / "my.props", output=folder / "out", **light)
    found = copy.deepcopy(dict(evidence.evidence.document))
    for item in found["results"]["properties"]:
        item["agree"], item["gap"], item["allowed"] = True, 0.0, 1e-9
    return found


def parsed(text: str) -> dict[str, dict]:
    """The YAML that is written, by its own lines: a node, and its fields, a text in the escapes that JSON shares."""
    nodes: dict[str, dict] = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"([A-Z][A-Za-z]*[0-9]+):", line):
            assert match[1] not in nodes  # YAML's keys are unique
            node = nodes[match[1]] = {}
        elif match := re.fullmatch(r'  text: (".*")', line):
            node["text"] = json.loads(match[1])
        elif match := re.fullmatch(r"  (supportedBy|inContextOf): \[(.+)\]", line):
            node[match[1]] = match[2].split(", ")
        elif line == "  undeveloped: true":
            node["undeveloped"] = True
        else:
            assert line == ""
    return nodes


def kind(name: str) -> str:
    return name.rstrip("0123456789")


def require_valid(nodes: dict[str, dict]) -> None:
    """The checks of gsn2x (V01 to V06, C01 to C04, C08), in its own words."""
    references = [
        (name, field, other)
        for name, node in nodes.items()
        for field in ("supportedBy", "inContextOf")
        for other in node.get(field, [])
    ]
    assert all(kind(name) in {"G", "S", "Sn", "C", "A", "J"} and node["text"] for name, node in nodes.items())
    for name, node in nodes.items():
        if kind(name) in {"G", "S"}:
            assert ("supportedBy" in node) != ("undeveloped" in node)
        else:
            assert set(node) == {"text"}
        for field in ("supportedBy", "inContextOf"):
            assert len(set(node.get(field, []))) == len(node.get(field, []))
    for name, field, other in references:
        assert other in nodes
        assert other != name
        assert kind(other) in ({"G", "S", "Sn"} if field == "supportedBy" else {"C", "A", "J"})
    assert [name for name in nodes if name not in {other for _, _, other in references}] == ["G1"]
    reached, waiting = set(), ["G1"]
    while waiting:
        name = waiting.pop()
        assert name not in reached or kind(name) in {"C", "A", "J", "Sn"}
        reached.add(name)
        waiting += [other for source, _, other in references if source == name]
    assert reached == set(nodes)


def test_the_case_is_valid_and_claims_what_is_satisfied_alone(document):
    nodes = parsed(gsn(Evidence(document=document)))
    require_valid(nodes)
    goals = {name: node for name, node in nodes.items() if kind(name) == "G" and name != "G1"}
    assert set(goals) == {"G2", "G3"}
    assert goals["G2"]["text"].startswith("REQ-7: often")
    (solution,) = goals["G2"]["supportedBy"]
    assert document["digest"] in nodes[solution]["text"]
    assert goals["G3"]["undeveloped"]
    assert "NOT SUPPORTED: violated" in goals["G3"]["text"]
    assert "this evidence supports: 1 of 2" in nodes["G1"]["text"]
    texts = "\n".join(node["text"] for node in nodes.values())
    assert "Measured: rate" in texts
    assert all(each["statement"] in texts for each in (*document["assumptions"], *document["limits"]))


def test_corpus_models_and_dates_are_named_here_and_in_the_summary(document):
    edited = copy.deepcopy(document)
    corpus = edited["results"]["corpus"]
    corpus["dates"] = {"n_runs": 239, "first": "2026-01-02T03:04:05Z", "last": "2026-02-03T04:05:06Z"}
    corpus["models"] = {"model-x": 1, "<b>": 2, "c": 3, "d": 4}
    corpus["files"] = [{**corpus["files"][0], "path": f"{name}.jsonl"} for name in ("a", "b", "c", "d", "e")]
    span = "from 2026-01-02T03:04:05Z to 2026-02-03T04:05:06Z (239 of 240 runs"
    case = parsed(gsn(Evidence(document=edited)))["C1"]["text"]
    summary = re.sub(r"\\(.)", r"\1", github_summary(edited["results"]))
    for text in (case, summary):
        assert span in text
        assert "from a.jsonl, b.jsonl, c.jsonl and 2 more" in text
        assert "models: model-x, <b>, c and 1 more" in text
    assert "<b>" not in github_summary(edited["results"]).replace(r"\<b\>", "")
    bare = github_summary(document["results"])
    assert "When runs began: not recorded" in bare


def without_agreement(item):
    item["agree"] = None


def with_rejection(item):
    item["standing"]["verdict"] = "reject"


def undecided(item):
    item["verdict"] = "undecided"


@pytest.mark.parametrize("doubt", [without_agreement, with_rejection, undecided])
def test_whatever_is_in_doubt_has_no_solution(document, doubt):
    edited = copy.deepcopy(document)
    doubt(edited["results"]["properties"][0])
    nodes = parsed(gsn(Evidence(document=edited)))
    require_valid(nodes)
    assert nodes["G2"]["undeveloped"]
    assert "NOT SUPPORTED" in nodes["G2"]["text"]
    assert not [name for name in nodes if kind(name) == "Sn"]


def test_without_a_verdict_nothing_is_claimed(document):
    edited = copy.deepcopy(document)
    edited["results"]["properties"] = edited["results"]["properties"][2:]
    edited["readings"] = edited["readings"][2:]
    nodes = parsed(gsn(Evidence(document=edited)))
    require_valid(nodes)
    assert nodes["G1"]["undeveloped"]


TEXT = st.text(st.characters(exclude_categories=[]) | st.sampled_from('"`#;<>&\\$\n\x1b\u2028[](){}|'))


@given(st.lists(TEXT, min_size=1, max_size=3))
def test_any_text_stays_inside_its_node(lines):
    found = (Element(name="G1", lines=tuple(lines), undeveloped=True),)
    (node,) = parsed(gsn_yaml(found)).values()
    assert all(char.isprintable() or char == "\n" for char in node["text"])
    assert node["text"].count("\n") == len(lines) - 1
    head, text, style, member = gsn_mermaid(found).splitlines()
    assert (head, style.split()[0], member.split()[0]) == ("flowchart TD", "classDef", "class")
    inside = re.fullmatch(r'  G1\["([^"]*)"\]', text)[1]
    parts = inside.split("<br/>")
    assert len(parts) == len(lines) + 1
    for part, line in zip(parts[1:], lines, strict=True):
        assert not set(part) & set('"<>&`\\$')
        if line.isprintable() and len(line) < 400:
            assert re.sub(r"#(\d+);", lambda code: chr(int(code[1])), part) == line


def test_the_command_writes_it_and_tells_what_is_not_supported(document, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(["gsn", "out/evidence.json", "-o", "case.gsn.yaml"]) == 0
    assert "G2, G3" in capsys.readouterr().err  # there is one engine here
    require_valid(parsed((folder / "case.gsn.yaml").read_text()))
    assert run(["gsn", "out/evidence.json", "--to", "mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart TD\n")
    assert run(["gsn", "out/evidence.json", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["undeveloped"] == ["G2", "G3"]
    assert parsed(told["text"]) == parsed((folder / "case.gsn.yaml").read_text())


def test_the_result_is_the_same_every_time(document):
    evidence = Evidence(document=document)
    assert gsn(evidence) == gsn(evidence)
    assert elements(evidence)[0].name == "G1"
