"""Identifiers: legal, never reserved, injective, reversible, and the same whatever else is named."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import UsageError
from tracebridge.export.names import RESERVED_WORDS, NameMap, identifier_of, name_of, unused_identifier

LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

any_text = st.text(st.characters())  # all of Unicode, lone surrogates included
near_escapes = st.text(st.sampled_from("_xX0af1gé- "), max_size=12)
names = any_text | near_escapes | st.sampled_from(sorted(RESERVED_WORDS))


@given(names)
def test_an_identifier_is_legal_and_not_reserved(name: str) -> None:
    identifier = identifier_of(name)
    assert LEGAL.fullmatch(identifier)
    assert identifier not in RESERVED_WORDS


@given(names)
def test_the_name_comes_back_from_the_identifier_alone(name: str) -> None:
    assert name_of(identifier_of(name)) == name


@given(names, names)
def test_two_names_never_share_an_identifier(first: str, second: str) -> None:
    assert (identifier_of(first) == identifier_of(second)) == (first == second)


@given(st.text(st.sampled_from("_x0af1g"), max_size=10))
def test_every_identifier_is_either_refused_or_the_one_of_its_name(identifier: str) -> None:
    try:
        name = name_of(identifier)
    except UsageError:
        return
    assert identifier_of(name) == identifier


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("success", "success"),
        ("tool_call", "tool_call"),
        ("is_xml", "is_xml"),
        ("tool-call", "tool_x2d_call"),
        ("1st try", "_x_1st_x20_try"),
        ("größe", "gr_xf6__xdf_e"),
        ("", "_x_"),
        ("min", "min_x_"),
        ("Min", "Min"),
        ("init", "init_x_"),
        ("F", "F_x_"),
        ("a_x2d_b", "a_x5f_x2d_b"),
        ("min_x_", "min_x5f_x_"),
        ("\U0001f600", "_x1f600_"),
        ("\ud800", "_xd800_"),
        ('*/\n//"', "_x2a__x2f__xa__x2f__x2f__x22_"),
    ],
)
def test_spelling(name: str, identifier: str) -> None:
    assert identifier_of(name) == identifier
    assert name_of(identifier) == name


@pytest.mark.parametrize(
    "text", ["tool-call", "1st", "", "init", "_x110000_", "_x" + "f" * 50 + "_", "_x02d_", "_x61_"]
)
def test_texts_that_stand_for_no_name_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not an identifier"):
        name_of(text)


def test_a_hundred_thousand_names() -> None:
    tables = [f"{prefix}{i}" for prefix in ("tool-", "tool_x2d_", "tool ", "", "_x_") for i in range(20_000)]
    table = NameMap(tables)
    assert len(table) == 100_000
    assert len({identifier for _, identifier in table}) == 100_000
    assert all(table.name(table.identifier(name)) == name for name in tables)


@given(st.lists(names))
def test_a_map_keeps_the_order_and_does_not_depend_on_its_other_names(given_names: list[str]) -> None:
    table = NameMap(given_names)
    assert [name for name, _ in table] == list(dict.fromkeys(given_names))
    assert all(identifier == identifier_of(name) for name, identifier in table)
    assert all(name in table for name in given_names)


def test_a_map_refuses_what_it_does_not_hold() -> None:
    table = NameMap(["plan"])
    with pytest.raises(UsageError, match="'act' is not among"):
        table.identifier("act")
    with pytest.raises(UsageError, match="no name of this map is written as 'act'"):
        table.name("act")


@given(st.lists(names))
def test_an_unused_identifier_clashes_with_no_name(given_names: list[str]) -> None:
    taken = {identifier_of(name) for name in [*given_names, "start"]}
    chosen = unused_identifier("start", taken)
    assert chosen not in taken
    assert LEGAL.fullmatch(chosen)
    with pytest.raises(UsageError):
        name_of(chosen)
    assert unused_identifier("start", ()) == "start"
