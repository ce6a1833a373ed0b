"""The parts of the manual that are generated from the package: what it really has, at the time that pages are built.

A page says ``<!-- generated: NAME -->`` where a part belongs; what follows up to ``<!-- end -->`` is for readers of the
repository. `PARTS` has the function of each name, which returns Markdown (MyST); as a Sphinx extension this module puts
it in the place of both.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator
from importlib import import_module, resources
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import click
from click.testing import CliRunner

import tracebridge
from tracebridge.cli.app import app

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from tracebridge.cli.help_sections import Verb

_PLACE = re.compile(r"^<!-- generated: ([a-z-]+) -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_GRAMMAR_SECTION = re.compile(r"^// -{10,} (.*)$", re.MULTILINE)


def commands() -> str:
    """Every verb with its arguments and options, as click knows them."""
    return "\n".join(_command(*each) for each in verbs(app))


def verbs(group: click.Group, above: str = "tracebridge") -> Iterator[tuple[str, Verb]]:
    """All commands that do something, with the words that call them, in alphabetical order."""
    context = click.Context(group, info_name=above)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        words = f"{above} {name}"
        if isinstance(command, click.Group):
            yield from verbs(command, words)
        else:
            yield words, cast("Verb", command)  # all of ours are


def _command(words: str, command: Verb) -> str:
    context = click.Context(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    lines = [
        f"## {words.removeprefix('tracebridge ')}",
        "",
        f"```text\n{usage}\n```",
        "",
        _prose(command.help or ""),
        "",
    ]
    for title, options in command.sections(context).items():
        lines += [f"| {title[0].lower()}{title[1:]} | what it does |", "|---|---|"]
        lines += [f"| {_spelling(option, context)} | {_meaning(option, context)} |" for option in options]
        lines.append("")
    return "\n".join([*lines, *_examples(command.epilog or "")])


def _examples(epilog: str) -> Iterator[str]:
    """The examples at the end of a help text: what each is about in words, its commands as a block."""
    for part in filter(None, map(str.strip, epilog.split("\b\n"))):
        about, *example = part.split("\n")
        yield f"{_cell(about)}\n\n```text\n{inspect.cleandoc(chr(10).join(example))}\n```\n"


def _spelling(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag or option.count else f" `{option.make_metavar(context)}`".replace("|", "\\|")
    return names + value


def _meaning(option: click.Option, context: click.Context) -> str:
    text = " ".join((option.help or "").split())
    extra = option.get_help_extra(context)
    notes = [f"default: {extra['default']}"] if "default" in extra else []
    notes += [extra["range"]] if "range" in extra else []
    notes += (
        ["may be repeated"] if option.multiple and "several times" not in text and "more than once" not in text else []
    )
    notes += ["required"] if option.required else []
    return _cell(text + (f" ({'; '.join(notes)})" if notes else ""))


def _cell(text: str) -> str:
    """Text of a cell: what Markdown or HTML would take as markup is shown as it is."""
    return re.sub(r"([\\|*_<>\[\]$])", r"\\\1", " ".join(text.split()))


def _prose(help_text: str) -> str:
    """The help of a verb, whose backquotes already are Markdown's."""
    text = inspect.cleandoc(help_text).replace("\b\n", "")
    return "".join(
        re.sub(r"([|*_<>\[\]$])", r"\\\1", part) if k % 2 == 0 else f"`{part}`"
        for k, part in enumerate(re.split(r"`+", text))
    )


def python() -> str:
    """Every public name with its docstring, under the module that it comes from."""
    homes = {name: tracebridge._MODULE_OF[name] for name in tracebridge.__all__ if name != "__version__"}
    parts = []
    for module, names in groupby(sorted(homes, key=lambda name: (homes[name], name)), key=homes.__getitem__):
        parts.append(f"## {module}\n\n```{{eval-rst}}\n.. currentmodule:: {module}\n")
        parts += [_documented(name, getattr(tracebridge, name)) for name in names]
        parts.append("```\n")
    return "\n".join(parts)


def _documented(name: str, value: object) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {name}\n   :members:\n   :member-order: bysource\n"
    return f".. autofunction:: {name}\n" if callable(value) else f".. autodata:: {name}\n   :no-value:\n"


def one_field_a_line(lines: list[str], names: Collection[str]) -> None:
    """Put each ``name: text`` of a docstring on a line of its own, where several stand on one line or share a text."""
    fields = "|".join(map(re.escape, names))
    further = re.compile(rf"(?<=\.) (?=(?:{fields})(?:, (?:{fields}))*: )")
    shared = re.compile(rf"( +)((?:{fields})(?:, (?:{fields}))+): (.*)")
    split = []
    of_fields = ""  # the indent of the names of a section; texts that go on are indented more
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip() and (not of_fields or len(indent) < len(of_fields)):
            of_fields = indent
        first, *others = further.split(line) if names and indent else [line]
        for text in (first, *(of_fields + other for other in others)):
            found = shared.fullmatch(text) if names else None
            split += [f"{found[1]}{name}: {found[3]}" for name in found[2].split(", ")] if found else [text]
    lines[:] = split


def _field_names(value: object) -> list[str]:
    """The names of a class's attributes, or of a function's parameters."""
    if inspect.isclass(value):
        stated = [name for each in value.__mro__ for name in getattr(each, "__annotations__", {})]
        return stated + [name for name, _ in inspect.getmembers(value, lambda found: not callable(found))]
    return list(inspect.signature(value).parameters) if inspect.isfunction(value) or inspect.ismethod(value) else []


def grammar() -> str:
    """The grammar of properties, section by section, as the parser reads it."""
    text = resources.files("tracebridge.pctl").joinpath("pctl.lark").read_text(encoding="utf-8")
    _, *parts = _GRAMMAR_SECTION.split(text)
    sections = zip(parts[::2], parts[1::2], strict=True)
    return "\n".join(f"### {title.capitalize()}\n\n```text\n{body.strip()}\n```\n" for title, body in sections)


def constructs() -> str:
    """Which engine evaluates which construct, found out by asking them (needs stormpy)."""
    from tracebridge.report.constructs import construct_markdown

    return construct_markdown()


def functions() -> str:
    """The functions of expressions and the words that are reserved."""
    from tracebridge.pctl.words import FUNCTIONS, PRISM_WORDS, STORM_WORDS

    lists = {
        "Functions": FUNCTIONS,
        "Reserved": PRISM_WORDS,
        "Reserved in Storm's own syntax too": STORM_WORDS - PRISM_WORDS,
    }
    return "\n\n".join(
        f"{title}: {', '.join(f'`{word}`' for word in sorted(words, key=str.lower))}." for title, words in lists.items()
    )


def annotations() -> str:
    """The keys of annotations that tracebridge itself reads."""
    from tracebridge.pctl.remarks import ANNOTATION_KEYS

    return ", ".join(f"`//@ {key}`" for key in ANNOTATION_KEYS)


def formats() -> str:
    """Each trace format: what its reader says that it takes as a run, a step, an error and an outcome."""
    from tracebridge.traces.readers import FORMATS

    parts = []
    for reader in FORMATS.values():
        about = inspect.getdoc(type(reader)) or inspect.getdoc(import_module(type(reader).__module__))
        parts.append(f"### {reader.name}\n\n{_cell(reader.description)}.\n\n```{{eval-rst}}\n{about}\n```\n")
    return "\n".join(parts)


def endings() -> str:
    """What each reason for the end of a run makes of its outcome."""
    from tracebridge.traces.readers.endings import known_endings

    rows = [ending.to_dict() for ending in known_endings()]
    return _table(
        list(rows[0]), [[f"`{row['format']}`", f"`{row['reason']}`", *list(row.values())[2:]] for row in rows]
    )


def outcome_words() -> str:
    """The words for outcomes that flat files and outcome files may use."""
    from tracebridge.traces import OUTCOME_WORDS

    outcomes = dict.fromkeys(str(outcome) for outcome in OUTCOME_WORDS.values())
    return _table(
        ["outcome", "words"],
        [
            [name, ", ".join(f"`{word}`" for word, meaning in OUTCOME_WORDS.items() if str(meaning) == name)]
            for name in outcomes
        ],
    )


def studies() -> str:
    """The studies that can be run again."""
    from tracebridge.studies.registry import STUDIES

    rows = [
        [f"`{each.name}`", each.title, each.source, str(each.replicates or "-"), str(each.full or "-")]
        for each in STUDIES.values()
    ]
    return _table(["study", "what it looks at", "where in the paper", "replicates by default", "of a full study"], rows)


def limits() -> str:
    """Every bound on what input may ask for, read from the modules that enforce it."""
    rows = []
    for what, module, name, unit in _LIMITS:
        value = getattr(import_module(f"tracebridge.{module}"), name)
        rows.append([what, _amount(value, unit), f"`tracebridge.{module}`"])
    return _table(["what", "at most", "where"], rows)


_LIMITS = (
    ("a line of a trace file, decompressed", "traces.files", "MAX_LINE_BYTES", "bytes"),
    ("a trace document that is read whole, decompressed", "traces.files", "MAX_DOCUMENT_BYTES", "bytes"),
    ("a member of an Inspect archive, decompressed", "traces.readers.zip_members", "MAX_MEMBER_BYTES", "bytes"),
    (
        "what a zip archive may claim to hold, in multiples of its size",
        "traces.readers.zip_members",
        "MAX_RATIO",
        "times",
    ),
    ("a property file", "pctl.parser", "MAX_BYTES", "bytes"),
    ("nesting in a formula", "pctl.nesting", "MAX_DEPTH", "levels"),
    ("digits of a number in a formula", "pctl.tree_builder.expressions", "MAX_DIGITS", "digits"),
    ("a constant expression", "checking.evaluation", "MAX_CONSTANT_BITS", "bits"),
    ("a model file", "checking.models", "MAX_BYTES", "bytes"),
    ("a UMB archive, decompressed", "export.umb_archive", "MAX_BYTES", "bytes"),
    ("states of a UMB archive", "export.umb_index", "MAX_STATES", "states"),
    ("states of a chain that is written as PRISM text", "export.prism", "MAX_STATES", "states"),
    ("a file of state rules", "states.state_map_file", "MAX_BYTES", "bytes"),
    ("an evidence file", "report.evidence_reading", "MAX_BYTES", "bytes"),
    ("nesting in an evidence file", "report.evidence_reading", "MAX_DEPTH", "levels"),
    ("what a manifest keeps of a file, decompressed", "sharding.summary", "MAX_BYTES", "bytes"),
    ("a run, for the tests of the path", "inference.path_tables", "MAX_RUN_LENGTH", "steps"),
    ("memory for posterior draws at a time", "inference.posterior", "CHUNK_BYTES", "bytes"),
    ("one operator in Storm", "checking.storm_process", "TIME_LIMIT", "seconds"),
    ("one operator in PRISM", "checking.prism_process", "TIME_LIMIT", "seconds"),
    ("one operator in an exact engine", "checking.run", "EXACT_TIME_LIMIT", "seconds"),
    ("building a PRISM program", "checking.models", "BUILD_TIME_LIMIT", "seconds"),
)


def _amount(value: float, unit: str) -> str:
    if unit != "bytes":
        return f"{value:,.10g} {unit}"
    for size, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value % size == 0:
            return f"{value // size:g} {name}"
    return f"{value:,} bytes"


def schema(name: str) -> str:
    """The fields of a document at its top, with what its JSON Schema says of each."""
    printed = CliRunner().invoke(app, ["schema", name], catch_exceptions=False)
    whole = json.loads(printed.stdout)
    document = _resolved(whole, whole)
    required = document.get("required", ())
    rows = []
    for field, about in document["properties"].items():
        found = _resolved(about, whole)
        what = found.get("description") or _resolved(found.get("items", {}), whole).get("description", "")
        rows.append([f"`{field}`", _type(found, whole), "yes" if field in required else "no", _cell(what)])
    return _table(["field", "type", "required", "what it is"], rows)


def _resolved(about: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """A schema with what its reference says."""
    if "$ref" not in about:
        return about
    place = whole
    for key in about["$ref"].removeprefix("#/").split("/"):
        place = place[key]
    return {**place, **about}


def _type(about: dict[str, Any], whole: dict[str, Any]) -> str:
    if "anyOf" in about:
        return " or ".join(dict.fromkeys(_type(_resolved(each, whole), whole) for each in about["anyOf"]))
    if "enum" in about or "const" in about:
        return " or ".join(f"`{value}`" for value in about.get("enum", [about.get("const")]))
    kind = about.get("type", "any")
    if kind == "array" and "items" in about:
        return f"list of {_type(_resolved(about['items'], whole), whole)}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "annotations": annotations,
    "commands": commands,
    "constructs": constructs,
    "endings": endings,
    "formats": formats,
    "functions": functions,
    "grammar": grammar,
    "limits": limits,
    "outcome-words": outcome_words,
    "python": python,
    "schema-broadcast": lambda: schema("broadcast-trace"),
    "schema-evidence": lambda: schema("evidence"),
    "schema-trace": lambda: schema("trace"),
    "studies": studies,
}


def filled(text: str) -> str:
    """A page with its generated parts."""
    return _PLACE.sub(lambda place: PARTS[place[1]](), text)


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Register with Sphinx: each page is filled when it is read, and read in every build."""

    def fill(_: Sphinx, __: str, source: list[str]) -> None:
        source[0] = filled(source[0])

    def split(_: Sphinx, __: str, ___: str, value: object, ____: object, lines: list[str]) -> None:
        one_field_a_line(lines, _field_names(value))

    sphinx.connect("source-read", fill)
    sphinx.connect("autodoc-process-docstring", split, priority=100)  # before napoleon reads the fields
    return {"parallel_read_safe": True, "parallel_write_safe": True}
