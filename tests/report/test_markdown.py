"""Text from the input in Markdown: nothing of it becomes markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.report.markdown import code, escape


@pytest.mark.parametrize(
    "text",
    ["~~s~~", "$m$", "https://evil.example", "www.evil.example", "<img onerror=x>", "a|b", "[x](y)", "&lt;", "`c`"],
)
def test_no_markup_survives(text: str) -> None:
    shown = re.sub(r"\\.", "", escape(text))  # what is left to be read as Markdown
    assert not re.search(r"[`*_\[\]<>|#~$&]|://|www\.", shown)


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("`\n\x1b\u202e")))
def test_code_stays_in_its_line_and_between_its_marks(text: str) -> None:
    shown = code(text)
    assert shown.count("`") == 2
    assert shown.isprintable()
    assert shown.strip("`").count("'") == text.count("`") + text.count("'")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_the_text_is_there_without_the_backslashes(text: str) -> None:
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escape(text)) == "".join(
        char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text
    )
