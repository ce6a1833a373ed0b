"""A certificate as a person reads it: every verdict, place and caveat is there, and nothing from the traces acts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracebridge.inference import IDENTITY, SCENARIOS, Certificate, ReferenceEffects, certify
from tracebridge.report import certificate_lines, certificate_markdown


@pytest.fixture(scope="module")
def rejected() -> Certificate:
    return certify(*SCENARIOS["A2"].fitted(200, seed=0), replicates=59)


@pytest.fixture(scope="module")
def accepted() -> Certificate:
    return certify(*SCENARIOS["F1"].fitted(200, seed=3), replicates=59)


@pytest.mark.parametrize("as_markdown", [False, True])
def test_p_values_and_the_published_rule_are_explained(rejected: Certificate, as_markdown: bool) -> None:
    """The smallest p that 59 replicates allow, 1/60, is an upper bound wherever it stands."""
    text = certificate_markdown(rejected).replace("\\", "") if as_markdown else "\n".join(certificate_lines(rejected))
    assert rejected.p == 1 / 60
    assert "chain (p <= 0.0167" in text
    assert "joint p <= 0.0167 at level" in text
    assert "p = 0.0167" not in text
    assert "the smallest that it can be is 1/(59 + 1) = 0.0167." in text
    assert "It accepts where the AIC prefers the first order and the times to success are not told apart" in text


def test_less_than_chance_is_told_in_words(accepted: Certificate) -> None:
    first, second, *rest = accepted.statistics
    shown = replace(accepted, statistics=(first, replace(second, effect=-0.002), *rest))
    assert "none (-0.002 nats a step: less than chance brings)" in "\n".join(certificate_lines(shown))


@pytest.mark.parametrize("as_markdown", [False, True])
def test_a_rejection_says_where_and_why(rejected: Certificate, as_markdown: bool) -> None:
    text = certificate_markdown(rejected) if as_markdown else "\n".join(certificate_lines(rejected))
    assert rejected.verdict == "reject"
    assert "REJECT" in text
    for statistic in rejected.statistics:
        assert statistic.name in text
    worst = max((each for each in rejected.departures if each.statistic == "previous state"), key=lambda e: e.residual)
    assert f"{worst.observed} times, {worst.expected:.1f} expected" in text
    assert rejected.shares[0].state in text
    assert IDENTITY in text
    assert "published rule" in text.lower()
    assert f"<= {1 / 60:.3g}" in text.replace("\\", "")  # no p-value is below 1 / (replicates + 1)
    for note in rejected.notes:
        assert note.split(" ", maxsplit=1)[0] in text


def test_an_acceptance_has_no_departures(accepted: Certificate) -> None:
    text = "\n".join(certificate_lines(accepted))
    assert accepted.verdict == "accept"
    assert text.startswith("certificate: ACCEPT")
    assert "depart from the chain" not in text
    assert "could not have been detected" not in text


def test_what_could_not_have_been_detected_is_said(accepted: Certificate) -> None:
    demanding = replace(accepted, effects=ReferenceEffects(gap=0.001, nats=0.0001))
    assert demanding.verdict == "inconclusive"
    for text in ("\n".join(certificate_lines(demanding)), certificate_markdown(demanding)):
        assert "INCONCLUSIVE" in text
        assert text.count("could not have been detected") == len(demanding.statistics)


def test_names_from_traces_are_shown_and_never_act(rejected: Certificate) -> None:
    markup = "<img src=x>|`x`\n# head\x1b[2J"
    hostile = replace(
        rejected,
        shares=(replace(rejected.shares[0], state=markup),),
        departures=(replace(rejected.departures[0], state=markup, context=markup, following=markup),),
    )
    markdown, lines = certificate_markdown(hostile), certificate_lines(hostile)
    assert "<img" not in markdown.replace("\\<img", "")
    assert "\n# head" not in markdown
    assert all("\n" not in line and "\x1b" not in line for line in lines)
    assert any("img src=x" in line for line in lines)
