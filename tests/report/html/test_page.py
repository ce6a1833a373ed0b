"""The page as a text: whole, closed in itself, literal, and with the numbers of the summary."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re

import pytest
from tests.report.html.pages import HOSTILE_NAMES, LONG_NAME, Page, demo_evidence, evidence_of_runs, hostile_runs

from tracebridge.cli import run
from tracebridge.confidence.card import audit_card, unavailable
from tracebridge.confidence.card_fields import CARD_GROUPS
from tracebridge.errors import InputError, ModelError
from tracebridge.report.evidence import Evidence
from tracebridge.report.html import render_html
from tracebridge.report.html.folded_graph import DRAWN_OF_MORE, MOST_DRAWN

SVG = {"svg", "title", "desc", "g", "path", "rect", "text", "circle"}
FORM = {"fieldset", "legend", "label", "input", "output"}
HTML = re.findall(
    r"\w+",
    "html head meta title style body a header div p h1 h2 h3 h4 h5 code button nav ol ul li main section span strong "
    "em table caption thead tbody tr th td details summary dl dt dd pre footer script wbr",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Evidence, str, str]:
    return demo_evidence(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Evidence:
    return evidence_of_runs(tmp_path_factory.mktemp("hostile"), hostile_runs())


def checked(html: str) -> Page:
    """What every page must be: strict, without a reference outside, with its own style and script alone."""
    page = Page(html)
    assert {tag for tag, _ in page.elements} <= SVG | FORM | {*HTML}
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    targets = set(ids)
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "src"}], tag
        if "href" in attributes:
            assert attributes["href"].removeprefix("#") in targets
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
    policy = next(each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    for kind, contents in page.raw.items():
        assert len(contents) == len(page.all(kind)) == 1
        digest = base64.b64encode(hashlib.sha256(contents[0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
        assert not re.search(r"url\(|@import|https?:", contents[0])
    for attributes in page.all("th"):
        assert attributes["scope"] in {"col", "row"}
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("aria-labelledby" in each and each["role"] == "img" for each in page.all("svg") if "class" not in each)
    assert {char for char in html if not char.isprintable()} <= {"\n"}
    return page


def test_the_same_evidence_gives_the_same_page(demo):
    evidence, _, written = demo
    assert render_html(evidence) == written
    page = checked(written)
    assert [len(page.all(tag)) for tag in ("main", "nav", "header", "footer", "h1")] == [1] * 5
    heads = [attributes["id"] for attributes in page.all("section")]
    assert heads == [
        *("verdicts", "measured", "chain", "reliability", "states", "certificate", "sensitivity", "properties"),
        *("assumptions", "limits", "replay", "sign-off"),
    ]
    for statement in [*evidence.document["assumptions"], *evidence.document["limits"]]:
        assert statement["statement"] in page.text
    for digest in [evidence.digest, *evidence.document["files"].values()]:
        assert digest in page.text
    assert not re.search(r"\bsafe\b", page.text)


def test_the_page_and_the_summary_say_the_same_numbers(demo):
    evidence, summary, written = demo
    page = Page(written)
    rows = table_of(summary, "property")
    columns = [cell.strip() for cell in page.table("property")[0]]
    for row, shown in zip(rows[1:], page.table("property")[1:], strict=True):
        found = dict(zip(columns, (cell.strip().lstrip("·✓✗?").strip() for cell in shown), strict=True))
        for head, cell in zip(rows[0], row, strict=True):
            if head in evidence.results["tool"]["engines"]:
                assert f"{head} {cell}" in found["by each engine"]
            elif head == "property":
                assert found[head].startswith(cell)
            else:
                assert re.sub(r"[ ?()]", "", cell) == re.sub(r"[ ?()]", "", found[head]), head
    for head in ("figure", "d", "runs that ended by"):
        known = [cells(row) for row in table_of(summary, head)[1:]]
        assert known
        assert known == [cells(row) for row in page.table(head)[1:]]
    assert evidence.results["figures"]["R_inf"] == pytest.approx(float(page.table("figure")[1][1]), rel=1e-5)


def cells(row: list[str]) -> list[str]:
    """Numbers of a row: the words around them, and what stands for none, differ between the two."""
    return re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", " ".join(row).replace("95 %", "").replace("0.01", ""))


def table_of(markdown: str, head: str) -> list[list[str]]:
    lines = markdown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[start:end]]
    return [[re.sub(r"\\(.)", r"\1", cell) for cell in row] for row in rows if set(row[0]) != {"-"} or len(row[0]) == 1]


def test_hostile_names_are_text(hostile):
    document = copy.deepcopy(dict(hostile.document))
    document["inputs"][0]["name"] = "$(reboot) x.jsonl"
    document["limits"].append({"id": "x", "statement": "bell\u0007 \x1b[31mred\r\n<b>bold</b>"})  # no reader checks it
    page = checked(render_html(Evidence(document=document)))
    assert "--traces '$(reboot) x.jsonl'" in page.text
    for name in HOSTILE_NAMES[:4]:
        assert name in page.text
    for shown in (r"a\u{202e}gnp.exe", r"two\u{2028}lines\u{feff}", "{{ 7 * 7 }} {% raw %} &lt;b&gt;"):
        assert shown in page.text
    assert r"bell\u{7} \u{1b}[31mred\u{d}\u{a}<b>bold</b>" in page.text
    assert LONG_NAME in {attributes.get("title") for attributes in page.all("span")}
    assert LONG_NAME not in [cell for rows in page.tables for row in rows for cell in row]


def test_names_of_properties_requirements_and_labels_are_text(tmp_path):
    properties = (
        '//@ requirement <svg onload=alert(1)>\n"p": P>=0.1 [ F "</td></table><script>" ];\n'
        'P=? [ F "success" ];\nfilter(print, P=? [ F "success" ], true);\n'
    )
    runs = [(["</td></table><script>", "b"], "success"), (["b"], "failure")] * 4
    page = checked(render_html(evidence_of_runs(tmp_path, runs, properties)))
    assert "<svg onload=alert(1)>" in page.text
    assert 'P>=0.1 [ F "</td></table><script>" ]' in page.text
    assert [row[0] for row in page.table("property")[1:]] == ["p<svg onload=alert(1)>", "#2", "#3"]


@pytest.mark.parametrize("n_states", [1, 60])
def test_one_state_and_sixty(tmp_path, n_states):
    names = [f"state {k:02d}" for k in range(n_states)]
    runs = [(names[k:] + names[: k // 2], "success" if k % 2 else "failure") for k in range(n_states)]
    nothing = {"draws": 0, "resamples": 0, "replicates": 0}
    options = nothing if n_states == 1 else nothing | {"k_max": 60, "support": "observed"}
    evidence = evidence_of_runs(tmp_path, runs * (8 if n_states == 1 else 1), **options)
    page = checked(render_html(evidence))
    assert len(page.table("state")) == n_states + 1
    drawn = [each["class"] for each in page.all("g") if (each.get("class") or "").startswith("state ")]
    assert len(drawn) == min(n_states, DRAWN_OF_MORE) + 2
    assert ("state step folded" in drawn) is (n_states > MOST_DRAWN)
    shaded = {each["class"] for each in page.all("rect") if (each.get("class") or "").startswith("shade")}
    assert bool(shaded) is (n_states > MOST_DRAWN)


def test_everything_censored_and_no_certificate_and_no_draws(tmp_path):
    runs = [(["plan", "act"], "censored"), (["plan"], "censored")] * 5
    nothing = {"prior": "none", "draws": 0, "resamples": 0, "replicates": 0}
    page = checked(render_html(evidence_of_runs(tmp_path, runs, **nothing)))
    assert page.text.count("No run was seen to succeed or to fail") == 1
    assert "interval" not in "".join(page.table("property")[0])
    assert {row[2].split("(")[0] for row in page.table("property")[1:]} == {"undefined"}
    assert not re.search(r"\bnan\b", page.text, re.IGNORECASE)
    assert "no ranking: the number is undefined; " in page.text


def test_a_chain_that_remembers_more(tmp_path):
    runs = [(["plan", "act", "act"], "success"), (["act", "plan"], "failure"), (["plan", "plan"], "censored")] * 8
    page = checked(render_html(evidence_of_runs(tmp_path, runs, model="order2", robust=0.9)))
    assert [row[0] for row in page.table("state")[1:]] == ["plan (2 states)", "act (2 states)"] or len(
        page.table("state")
    ) == 3
    assert "conservative guarantee" in page.text


def test_repeated_trials_of_classes_of_tasks(tmp_path):
    runs = [(["plan", "act"], "success" if k % 7 < 4 else "failure") for k in range(28)]  # four trials of each of seven
    page = checked(render_html(evidence_of_runs(tmp_path, runs, model="classes:2")))
    table = page.table("k")
    assert [row[0] for row in table[1:]] == [str(k) for k in range(1, 9)]
    single, all_of_four = float(table[1][1]), float(table[4][1])
    assert single == pytest.approx(4 / 7, abs=0.1)
    assert all_of_four > 2 * single**4


def test_a_rejected_chain_says_what_its_bars_mean(demo):
    page = checked(demo[2])
    assert "A red bar that stops before the line" in page.text
    assert "p <= 0.05" in page.text
    assert not re.search(r"p 0\.\d", page.text)


def test_many_properties_can_be_picked_without_a_script(tmp_path):
    properties = "".join(f'"p{k}": P>=0.{k % 10} [ F<={k} "success" ];\n' for k in range(1, 14))
    evidence = evidence_of_runs(tmp_path, [(["a"], "success"), (["a", "b"], "failure")] * 6, properties, draws=0)
    page = checked(render_html(evidence))
    words = [each["verdict"] for each in evidence.results["properties"]]
    keys = [
        attributes["data-key"]
        for tag, attributes in page.elements
        if tag in {"tr", "details"} and "data-key" in attributes
    ]
    assert keys == words * 2
    picks = [each["value"] for each in page.all("input") if each["type"] == "radio"]
    assert picks == ["", *dict.fromkeys(words)]
    for word in picks[1:]:
        assert f'input[value="{word}"]:checked' in page.raw["style"][0]


def test_three_hundred_properties_are_folded(demo):
    document = copy.deepcopy(dict(demo[0].document))
    results = document["results"]
    found, reading = results["properties"][1], document["readings"][1]
    names = [f"p{k}" for k in range(300)]
    results["properties"] = [{**found, "name": name} for name in names]
    document["readings"] = [{**reading, "name": name} for name in names]
    lines = [f'"{name}": P>=0.5 [ F "success" ];\n' for name in names]
    document["properties"] = {"source": "".join(lines), "constants": {}}
    html = render_html(Evidence(document=document))
    page = checked(html)
    assert "300 of 300 properties were answered by fewer than two engines" in page.text
    assert len(html.encode()) < 3_000_000
    blocks = [each for each in page.all("details") if each.get("class") == "property"]
    assert len(blocks) == 300
    assert not any("open" in each for each in blocks)
    assert len(page.table("property")) == 301


def test_an_audit_card_stands_beside(demo):
    reason = "<img src=x onerror=alert(1)>"
    groups = {
        name: {field.name: unavailable(reason) for field in group.fields if field.is_required}
        for name, group in CARD_GROUPS.items()
    }
    groups["calibration"]["ece"] = {"value": 0.125, "lower": 0.1, "upper": 0.15, "n": 40, "denominator_name": "polls"}
    page = checked(render_html(demo[0], audit_card(groups).to_dict()))
    assert "#audit" in [attributes["href"] for attributes in page.all("a")]
    assert reason in page.text
    assert "0.125 [0.1, 0.15] (n = 40 polls)" in page.text
    with pytest.raises(InputError, match="required"):
        render_html(demo[0], {"schema": "trace-audit-card/0.1"})
    with pytest.raises(InputError, match="trace-audit-card"):
        render_html(demo[0], {"schema": "else"})


def test_results_that_do_not_belong_to_the_properties_are_refused(demo):
    document = dict(demo[0].document)
    document["readings"] = document["readings"][:-1]
    with pytest.raises(ModelError, match="4 readings"):
        render_html(Evidence(document=document))


def test_the_verb_writes_what_assess_wrote(demo, tmp_path):
    source = tmp_path / "evidence.json"
    source.write_text(json.dumps(demo[0].document), encoding="utf-8")
    target = tmp_path / "report.html"
    assert run(["report", str(source), "-o", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == demo[2]
    assert run(["report", str(tmp_path), "-o", str(target)]) == 3


def test_contrast_of_text_is_at_least_four_and_a_half(demo):
    """By the formula of WCAG 2, of every text colour on every background of both themes and of paper."""
    style = Page(demo[2]).raw["style"][0]
    blocks = re.findall(r"\{([^{}]*--page:[^{}]*)\}", style)
    assert len(blocks) == 4
    for block in blocks:
        colours = dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{6})\b", block))
        pairs = [(text, back) for text in ("ink", "soft", "accent") for back in ("page", "surface", "sunk")]
        pairs += [(tone, f"{tone}-back") for tone in ("good", "bad", "open")]
        pairs += [("soft", "plain-back"), ("ink", "plain-back"), ("ink", "open-back"), ("soft", "good-back")]
        pairs += [("soft", "bad-back"), ("soft", "node"), ("ink", "node")]
        for text, back in pairs:
            assert contrast(colours[text], colours[back]) >= 4.5, (text, back)


def contrast(first: str, second: str) -> float:
    def luminance(colour: str) -> float:
        shares = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)
