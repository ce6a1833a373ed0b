"""The manual is true and complete: its blocks run, its links lead on, and all that is public is in it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import click
import pytest
from tests.manual_blocks import ROOT, WarmProcess, blocks_of, run_page, warm_process

import tracebridge

README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))


@cache
def reference_pages() -> ModuleType:
    """The Sphinx extension that fills the generated parts, loaded as Sphinx does."""
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "_ext" / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmProcess]:
    with warm_process(tmp_path_factory.mktemp("warm")) as process:
        yield process


@pytest.mark.storm
@pytest.mark.parametrize("page", [page for page in (README, *PAGES) if blocks_of(page)], ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, warm: WarmProcess) -> None:
    run_page(page, tmp_path, warm)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        linked = page if not target else DOCS / target
        assert linked.is_file(), target
        if heading:
            assert heading in headings_of(linked), f"{target}#{heading}"


@cache
def headings_of(page: Path) -> frozenset[str]:
    """The anchors of a page as GitHub and MyST make them of its headings."""
    filled = reference_pages().filled(page.read_text(encoding="utf-8"))
    outside = re.sub(r"^```.*?^```$", "", filled, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", outside, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles)


#: A test by its file and name, as a row of threats names it.
SHOWN_BY = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_threat_names_tests_that_exist() -> None:
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| threat \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) >= 15
    for row in rows:
        assert SHOWN_BY.search(row.split("|")[-2]), row
    named = SHOWN_BY.findall(text)
    assert len(named) == text.count("`tests/")
    for file, test in named:
        functions = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        assert test in {each.name for each in functions if isinstance(each, ast.FunctionDef)}, f"{file}::{test}"


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = re.findall(r"^([a-z-]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [page.stem for page in PAGES if page.stem != "index"]


def test_every_generated_part_has_a_place() -> None:
    places = re.findall(r"<!-- generated: ([a-z-]+) -->", "".join(page.read_text(encoding="utf-8") for page in PAGES))
    assert sorted(places) == sorted(reference_pages().PARTS)
    for page in PAGES:
        filled = reference_pages().filled(page.read_text(encoding="utf-8"))
        assert "<!-- generated" not in filled, page
        assert "In the built manual" not in filled, page


def test_every_verb_and_option_is_documented() -> None:
    from tracebridge.cli.app import app

    text = reference_pages().commands()
    documented = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    found = walk(app)
    assert len(found) > 20
    for words, command in found.items():
        part = documented[words] if words in documented else text[: text.index("\n## ")]
        assert command.help, words
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{words} {option.name}"
                assert all(f"`{name}`" in part for name in option.opts), f"{words} {option.opts}"


def walk(group: click.Group, above: str = "") -> dict[str, click.Command]:
    """Every verb below a group by the words that call it; independent of how the manual collects them."""
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{above} {name}".strip()
        found |= walk(command, words) if isinstance(command, click.Group) else {words: command}
    return found


def test_every_verb_gives_an_example_and_no_list_of_verbs_is_cut() -> None:
    from tracebridge.cli.app import SECTIONS, VERBS, app

    assert sum(map(len, SECTIONS.values())) == len(VERBS)  # no verb stands in two sections
    for words, command in walk(app).items():
        assert "\n  " in (command.epilog or ""), words
    context = click.Context(app)
    for name in app.list_commands(context):
        group = app.get_command(context, name)
        if isinstance(group, click.Group):
            lines = group.get_help(click.Context(group, info_name=name, terminal_width=80))
            assert "..." not in lines.partition("Commands:")[2], lines


def test_help_has_every_option_once_and_the_shared_ones_apart() -> None:
    from tracebridge.cli.app import app

    for words, command in walk(app).items():
        context = click.Context(command, info_name=words, terminal_width=100)
        sections = re.split(r"^(\S.*):$", command.get_help(context), flags=re.MULTILINE)[1:]
        told = dict(zip(sections[::2], sections[1::2], strict=True))
        listed = re.findall(r"^  (?:-\w, )?(--?[\w-]+)", "".join(told.values()), re.MULTILINE)
        assert sorted(listed) == sorted(option.opts[-1] for option in options_of(command, context)), words
        assert list(told)[-1] == "Options of every verb", words
        assert {"--json", "--seed", "--help"} == set(
            re.findall(r"^  (?:-\w, )?(--[\w-]+)", told[list(told)[-1]], re.MULTILINE)
        )
        assert "RANGE" not in command.get_help(context), words


def options_of(command: click.Command, context: click.Context) -> list[click.Option]:
    return [each for each in command.get_params(context) if isinstance(each, click.Option)]


def test_every_verb_is_in_the_short_manual() -> None:
    from tracebridge.cli.app import app

    text = README.read_text(encoding="utf-8")
    table = text[text.index("## Verbs") : text.index("## Exit codes")]
    named = set(re.findall(r"`([a-z]+)[ `]", table))
    assert {word for words in walk(app) for word in words.split()} <= named


def test_every_public_name_is_documented() -> None:
    text = reference_pages().python()
    documented = re.findall(r"^\.\. auto\w+:: (\w+)$", text, re.MULTILINE)
    assert sorted(documented) == sorted(set(tracebridge.__all__) - {"__version__"})


def test_every_format_and_every_rule_of_the_grammar_is_documented() -> None:
    from tracebridge.traces.readers import FORMATS

    assert re.findall(r"^### (.+)$", reference_pages().formats(), re.MULTILINE) == list(FORMATS)
    grammar = (ROOT / "src" / "tracebridge" / "pctl" / "pctl.lark").read_text(encoding="utf-8")
    rules = re.findall(r"^\??([a-z_]+):", grammar, re.MULTILINE)
    assert len(rules) > 30
    assert re.findall(r"^\??([a-z_]+):", reference_pages().grammar(), re.MULTILINE) == rules


def test_fields_of_docstrings_have_a_line_each() -> None:
    lines = ["Attributes:", "    a: one. b: two, not", "        c: d. here. a: three.", "    b, c: both."]
    reference_pages().one_field_a_line(lines, ["a", "b", "c"])
    assert lines == [
        "Attributes:",
        "    a: one.",
        "    b: two, not",
        "        c: d. here.",
        "    a: three.",
        "    b: both.",
        "    c: both.",
    ]


def test_a_name_is_shown_and_not_taken_as_markup() -> None:
    assert reference_pages()._cell("a|b *c* <d> [e]") == r"a\|b \*c\* \<d\> \[e\]"
